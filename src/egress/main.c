/*
 * kraft-egress: parses what a worker writes, and has no power (egress/confine.h). Started by kraft with
 * nothing but
 *
 *     fd 3   the control socket to kraft (egress/control.h)
 *     fd 4   the listener of the channel socket (egress/channel.h)
 *
 * Ends with status 0 when kraft ends the conversation; with KR_EXIT_CONFINE + the step when it could not give
 * up a power, before it read anything.
 */
#include <signal.h>

#include "egress/confine.h"
#include "egress/loop.h"

enum { CONTROL_FD = 3, CHANNEL_FD = 4, FIRST_FREE_FD = 5, EXIT_START = 79 };

static struct kr_egress egress;

int
main(void)
{
	enum kr_confine_step failed = kr_confine_descriptors(FIRST_FREE_FD);

	if (failed)
		return KR_EXIT_CONFINE + (int)failed;
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || /* splice(2) knows no MSG_NOSIGNAL */
		kr_egress_init(&egress, CONTROL_FD, CHANNEL_FD, kr_confine_files()) < 0)
		return EXIT_START;
	failed = kr_confine();
	if (failed)
		return KR_EXIT_CONFINE + (int)failed;
	kr_egress_run(&egress);
	return 0;
}
