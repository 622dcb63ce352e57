/*
 * kind: os on macOS: the launcher starts sandbox-exec with the profile that the plan comes to, which lies in the session's
 * folder and is in no argument list.
 *
 * There is nothing to bind, so a profile names its places by path and Seatbelt resolves what a process opens at that moment.
 * Every place is opened and looked at here all the same, by the rules that hold for a mount: what a path leads to when the
 * session starts is what may be shown. That it stays so is the profile's part: inside, no directory on the way to a place
 * can be renamed. A person's own program that swaps one meanwhile is not kept from it.
 */
#include "base/fd.h"
#include "base/path.h"
#include "os/sys.h"
#include "session/launch.h"
#include "session/seatbelt.h"

enum { PROFILE_BYTES = 4 << 20 };

static int
check_mac(struct kr_launch *launch, struct kr_error *err)
{
	struct kr_macos_facts facts;

	kr_macos_look(launch->arena, launch->start->host->sandbox_exec, &facts);
	return kr_macos_check(&facts, err);
}

static int
write_profile(struct kr_launch *launch, struct kr_error *err)
{
	kr_auto_buf struct kr_buf text = KR_BUF(PROFILE_BYTES);

	if (kr_seatbelt_profile(launch->start->plan, &text, err) < 0)
		return -1;
	if (text.overflow)
		return kr_fail(err, KR_E_LIMIT, "the sandbox's profile is larger than %d bytes", PROFILE_BYTES);
	return kr_file_write_at(launch->folder, KR_PROFILE_FILE, text.data, text.len, 0600, err);
}

static int
prepare(struct kr_launch *launch, struct kr_error *err)
{
	const char *empty;

	if (check_mac(launch, err) < 0 || kr_launch_open_sources(launch, &empty, err) < 0)
		return -1;
	return write_profile(launch, err);
}

static void
words(struct kr_launch *launch)
{
	const struct kr_session_start *start = launch->start;

	kr_launch_word(launch, "--seatbelt");
	kr_launch_word(launch, start->host->sandbox_exec);
	kr_launch_word(launch, "--profile");
	kr_launch_word(launch, kr_path_join(launch->arena, start->folder, KR_PROFILE_FILE));
	kr_launch_word(launch, "--own");
	kr_launch_word(launch, start->plan->request->macos->tmpdir);
	kr_launch_word(launch, "--other");
	kr_launch_word(launch, start->folder);
}

const struct kr_launch_kind kr_launch_seatbelt = { .role = "launch-seatbelt", .prepare = prepare, .words = words };
