/*
 * kraft-egress, and kraft-egress-tls, which has TLS in it beside (terminate.h): parses what a worker writes, and has no power
 * (egress/confine.h). Started by kraft with nothing but
 *
 *     fd 3   the control socket to kraft (egress/control.h)
 *     fd 4   the listener of the channel socket (egress/channel.h), or one on 127.0.0.1 of the host itself: what it is decides;
 *            then the token that has to be said to it (egress/token.h) is the first on the control socket
 *     fd 5   kraft-egress-tls: memory with the rules and secrets of the session (egress/managed.h)
 *
 * Ends with status 0 when kraft ends the conversation; with KR_EXIT_CONFINE + the step when it could not give
 * up a power, before it read anything.
 */
#include <signal.h>
#include <sys/socket.h>

#include "egress/channel.h"
#include "egress/confine.h"
#include "egress/loop.h"
#include "egress/terminate.h"
#include "egress/token.h"

enum { CONTROL_FD = 3, CHANNEL_FD = 4, FIRST_FREE_FD = 5, EXIT_START = 79 };

static struct kr_egress egress;
static char token[KR_EGRESS_TOKEN];

/* kraft has written it before it started this process. */
static bool
read_token(void)
{
	return recv(CONTROL_FD, token, sizeof(token), MSG_WAITALL) == (ssize_t)sizeof(token);
}

int
main(int argc, char **argv)
{
	struct kr_terminator *terminator;
	enum kr_confine_step failed;
	bool is_on_loopback;
	int status;

	if (!kr_terminator_start(argc, argv, &terminator, &status))
		return status;
	failed = kr_confine_descriptors(FIRST_FREE_FD);
	if (failed)
		return KR_EXIT_CONFINE + (int)failed;
	is_on_loopback = kr_listener_check(CHANNEL_FD);
	if (is_on_loopback && !read_token())
		return EXIT_START;
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || /* splice(2) knows no MSG_NOSIGNAL */
		kr_egress_init(&egress, CONTROL_FD, CHANNEL_FD, is_on_loopback ? token : NULL, kr_confine_files()) < 0)
		return EXIT_START;
	egress.terminator = terminator;
	failed = terminator ? kr_confine_with_tls() : kr_confine();
	if (failed)
		return KR_EXIT_CONFINE + (int)failed;
	kr_egress_run(&egress);
	return 0;
}
