/*
 * A fork, because what is to be parsed is in memory already and the parser is a function. The child's power is taken away in
 * powerless_linux.c or powerless_darwin.c. The answer is written to a mapping that both share, and is believed only
 * when the child ended of itself with status 0.
 */
#include "os/powerless.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/portable.h"
#include "os/power.h"

enum { FAILED = 1, SANITIZED_IS_SLOWER = 5 };

/* What a kind of child may use. */
static const struct {
	unsigned first_closed; /* of its descriptors; all that follow too */
	rlim_t cpu_s, data_bytes;
} limits[] = {
	[KR_POWER_PARSE] = { 0, 2, 256 << 20 },
	[KR_POWER_PASS] = { STDOUT_FILENO + 1, 600, 64 << 20 },
};

static bool
set_limit(int what, rlim_t most)
{
	return setrlimit(what, &(struct rlimit){ most, most }) == 0;
}

static bool
keep_only(enum kr_power power)
{
	return kr_close_from(limits[power].first_closed) == 0 && set_limit(RLIMIT_CORE, 0) &&
		set_limit(RLIMIT_CPU, (KR_SANITIZED ? SANITIZED_IS_SLOWER : 1) * limits[power].cpu_s) &&
		(KR_SANITIZED || set_limit(RLIMIT_DATA, limits[power].data_bytes)) && kr_power_drop(power);
}

static int
follow(pid_t pid, const void *shared, void *out, size_t out_size, struct kr_error *err)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot wait for the parser");
	if (WIFEXITED(status) && WEXITSTATUS(status) == FAILED)
		return kr_fail(err, KR_E_SYSTEM, "the parser's process could not be confined");
	if (status != 0)
		return kr_fail(err, KR_E_REFUSED, "its parser did not come to an end");
	memcpy(out, shared, out_size);
	return 0;
}

int
kr_powerless_parse(
	kr_parse_fn *parse, const void *bytes, size_t n, void *out, size_t out_size, struct kr_error *err)
{
	void *shared = mmap(NULL, out_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int result;
	pid_t pid;

	memset(out, 0, out_size);
	if (shared == MAP_FAILED)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "no memory for the parser's answer");
	pid = fork();
	if (pid == 0) {
		if (!keep_only(KR_POWER_PARSE))
			_exit(FAILED);
		parse(bytes, n, shared);
		_exit(0);
	}
	result = pid < 0 ? kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot start the parser's process")
					 : follow(pid, shared, out, out_size, err);
	(void)munmap(shared, out_size);
	return result;
}

/* ---- piece by piece ---- */

/* Whichever numbers they have, also when each has the other's. */
static bool
move_streams(int in_fd, int out_fd)
{
	const int in = fcntl(in_fd, F_DUPFD, STDERR_FILENO + 1), out = fcntl(out_fd, F_DUPFD, STDERR_FILENO + 1);

	return in >= 0 && out >= 0 && dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0;
}

/* A handler that we were forked with would need a call to come back from. */
static void
forget_signals(void)
{
	static const int ignored[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE, SIGTSTP, SIGTTOU };

	for (int i = 1; i < NSIG; i++)
		(void)signal(i, SIG_DFL); /* some cannot be */
	for (size_t i = 0; i < KR_COUNT(ignored); i++)
		(void)signal(ignored[i], SIG_IGN);
}

int
kr_powerless_pass(kr_pass_fn *pass, void *context, int in_fd, int out_fd, pid_t *pid, struct kr_error *err)
{
	*pid = fork();
	if (*pid == 0) {
		forget_signals();
		if (!move_streams(in_fd, out_fd) || !keep_only(KR_POWER_PASS))
			_exit(FAILED);
		pass(context);
		_exit(0);
	}
	return *pid < 0 ? kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot start the process that shows what comes")
					: 0;
}
