/* Whose a connection on the host's loopback is: the judgement over fakes, and the table over sockets of this test's own. */
#include <setjmp.h>
#include <stdarg.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "egress/peer.h"
#include "os/listen.h"
#include "os/sys.h"

#include <cmocka.h>

enum { OURS = 10, STRANGE = 20, UNTOLD = 30 };

static enum kr_peer
of(void *context, pid_t pid)
{
	(void)context;
	return pid < STRANGE ? KR_PEER_SESSION : pid < UNTOLD ? KR_PEER_OTHER : KR_PEER_UNKNOWN;
}

static void
MAC_06_one_holder_of_the_session_is_enough(void **state)
{
	static const struct {
		pid_t holders[3];
		int n;
		enum kr_peer peer;
	} cases[] = {
		{ { 0 }, -1, KR_PEER_UNKNOWN },
		{ { 0 }, 0, KR_PEER_UNKNOWN },
		{ { OURS }, 1, KR_PEER_SESSION },
		{ { STRANGE }, 1, KR_PEER_OTHER },
		{ { UNTOLD }, 1, KR_PEER_UNKNOWN },
		{ { STRANGE, OURS }, 2, KR_PEER_SESSION },
		{ { OURS, STRANGE }, 2, KR_PEER_SESSION },
		{ { STRANGE, UNTOLD }, 2, KR_PEER_UNKNOWN },
		{ { UNTOLD, STRANGE, OURS }, 3, KR_PEER_SESSION },
		{ { STRANGE, STRANGE + 1, STRANGE + 2 }, 3, KR_PEER_OTHER },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++)
		assert_int_equal(kr_peer_judge(cases[i].holders, cases[i].n, of, NULL), cases[i].peer);
}

/* Connected to the listener; its own port in *port. */
static int
client_of(uint16_t to, uint16_t *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(to), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t n = sizeof(at);

	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	*port = ntohs(at.sin_port);
	return fd;
}

/* A child that holds what this process does, until it is ended. */
static pid_t
make_holder(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		for (;;)
			(void)pause();
	return pid;
}

static void
MAC_06_who_holds_a_socket_is_found_by_both_ends(void **state)
{
	uint16_t door = 0, near = 0;
	kr_auto_fd int listener = kr_listen_loopback(4, &door, NULL);
	int client = client_of(door, &near);
	pid_t holders[4], child;

	(void)state;
	assert_true(listener >= 0);
	assert_int_equal(kr_socket_holders(near, door, holders, 4), 1);
	assert_int_equal(holders[0], getpid());
	assert_int_equal(kr_socket_holders(door, near, holders, 4), 0); /* not accepted: nobody holds that end */
	assert_int_equal(kr_socket_holders(near, (uint16_t)(door + 1), holders, 4), 0);
	child = make_holder();
	assert_int_equal(kr_socket_holders(near, door, holders, 4), 2);
	assert_int_equal(kr_socket_holders(near, door, holders, 1), -1);
	(void)close(client);
	assert_int_equal(kr_socket_holders(near, door, holders, 4), 1);
	assert_int_equal(holders[0], child);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(kr_socket_holders(near, door, holders, 4), 0);
}

static void
MAC_06_the_door_is_on_loopback_and_nobody_shares_it(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	uint16_t port = 0, second = 0;
	kr_auto_fd int one = kr_listen_loopback(4, &port, NULL), two = kr_listen_loopback(4, &second, NULL);
	kr_auto_fd int thief = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t n = sizeof(at);

	(void)state;
	assert_true(one >= 0 && two >= 0 && port && second && port != second);
	assert_int_equal(getsockname(one, (struct sockaddr *)&at, &n), 0);
	assert_int_equal(at.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	assert_int_equal(ntohs(at.sin_port), port);
	(void)setsockopt(thief, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
	(void)setsockopt(thief, SOL_SOCKET, SO_REUSEPORT, &(int){ 1 }, sizeof(int));
	assert_int_equal(bind(thief, (struct sockaddr *)&at, sizeof(at)), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(MAC_06_one_holder_of_the_session_is_enough),
		cmocka_unit_test(MAC_06_who_holds_a_socket_is_found_by_both_ends),
		cmocka_unit_test(MAC_06_the_door_is_on_loopback_and_nobody_shares_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
