/*
 * Order: closed to debuggers, ended with kraft, limits, and the sandbox last. It denies everything, so no file is opened, no
 * program started, no name asked for and no connection made; what is held or handed over stays usable, and connections come in
 * over the loopback. Unlike Linux's filter it knows no list of system calls.
 *
 * Nobody could try this on a Mac yet: what it cannot raise ends the process before it reads a byte.
 */
#include "egress/confine.h"

#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/portable.h"
#include "egress/limits.h"
#include "os/apple.h"
#include "os/sys.h"

static const char profile[] = "(version 1)\n(deny default)\n(allow network-inbound (local ip \"localhost:*\"))\n";

enum kr_confine_step
kr_confine_descriptors(unsigned first)
{
	return kr_close_from(first) < 0 ? KR_CONFINE_DESCRIPTORS : KR_CONFINE_DONE;
}

static rlim_t
file_limit(rlim_t hard)
{
	return hard == RLIM_INFINITY || hard > KR_EGRESS_FILES ? KR_EGRESS_FILES : hard;
}

unsigned
kr_confine_files(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) < 0 ? KR_EGRESS_FILES : (unsigned)file_limit(limit.rlim_max);
}

/* No limit of data or memory holds here. */
static bool
set_limits(void)
{
	const struct rlimit none = { 0, 0 };
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return false;
	files.rlim_cur = files.rlim_max = file_limit(files.rlim_max);
	return setrlimit(RLIMIT_CORE, &none) == 0 && setrlimit(RLIMIT_FSIZE, &none) == 0 && setrlimit(RLIMIT_NOFILE, &files) == 0;
}

bool
kr_confine_landlock(bool *raised)
{
	*raised = false; /* Linux's alone */
	return true;
}

enum kr_confine_step
kr_confine(void)
{
	char *error = NULL;

	if (ptrace(KR_PT_DENY_ATTACH, 0, NULL, 0) < 0)
		return KR_CONFINE_DUMPABLE;
	kr_end_with_parent(getppid(), SIGKILL);
	if (!set_limits())
		return KR_CONFINE_LIMITS;
	return sandbox_init(profile, 0, &error) == 0 ? KR_CONFINE_DONE : KR_CONFINE_FILTER;
}

/* No kraft-egress-tls is built here. */
enum kr_confine_step
kr_confine_with_tls(void)
{
	return kr_confine();
}
