/*
 * The real kraft-egress, with this test as its kraft, its init, its servers and its clients. Nothing here
 * runs beside it: each step waits for the process's move, at most TIMEOUT_MS.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "egress/channel.h"
#include "egress/confine.h"
#include "egress/control.h"
#include "egress/token.h"
#include "guest/wire.h"

#include <cmocka.h>

#define TOKEN "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define OTHER_TOKEN "10112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

enum { TIMEOUT_MS = 10000, QUIET_MS = 60, IDLE_TUNNELS = 1000 };

static struct lab {
	char path[64];
	int channels; /* the listener of the channel socket, ours and the process's; -1: it serves the listener itself (MAC-06) */
	int control;
	int channel; /* the init's */
	int listener;
	struct sockaddr_in address;
	bool hands_over; /* clients are pairs of unix sockets, handed over one by one */
	int handed;      /* the channel for that, from its first client on; -1 */
	uint32_t number; /* of the newest */
	uint32_t numbers[4096]; /* by our end's descriptor */
	pid_t pid;
} lab;

/* ---- the lab ---- */

static bool
is_readable(int fd, int ms)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	return poll(&poll_fd, 1, ms) == 1;
}

static int
open_listener(struct sockaddr_in *address)
{
	socklen_t n = sizeof(*address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)address, n), 0);
	assert_int_equal(listen(fd, 2048), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)address, &n), 0);
	return fd;
}

static void
start_process(void)
{
	posix_spawn_file_actions_t actions;
	char *argv[] = { (char[]){ "kraft-egress" }, NULL };
	char *none[] = { (char[]){ "ASAN_OPTIONS=detect_leaks=0" }, NULL };
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
	assert_int_equal(posix_spawn_file_actions_adddup2(&actions, pair[1], 103), 0);
	assert_int_equal(
		posix_spawn_file_actions_adddup2(&actions, lab.channels < 0 ? lab.listener : lab.channels, 104), 0);
	if (lab.channels < 0)
		assert_int_equal(send(pair[0], TOKEN, KR_EGRESS_TOKEN, 0), KR_EGRESS_TOKEN);
	assert_int_equal(posix_spawn_file_actions_adddup2(&actions, 103, 3), 0);
	assert_int_equal(posix_spawn_file_actions_adddup2(&actions, 104, 4), 0);
	assert_int_equal(posix_spawn(&lab.pid, KR_EGRESS, &actions, NULL, argv, none), 0);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)close(pair[1]);
	lab.control = pair[0];
}

static int
open_channel(void)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(name.sun_path, lab.path, strlen(lab.path));
	assert_int_equal(connect(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	return fd;
}

static void
send_with(int fd, const void *bytes, size_t n, const int *fds, size_t count)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(8 * sizeof(int))];
	} room = { .bytes = { 0 } };
	struct iovec part = { (void *)(uintptr_t)bytes, n };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

	if (count) {
		message.msg_control = room.bytes;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		*CMSG_FIRSTHDR(&message) = (struct cmsghdr){
			.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(count * sizeof(int))
		};
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), fds, count * sizeof(int));
	}
	assert_int_equal(sendmsg(fd, &message, MSG_NOSIGNAL), n);
}

/* The answer to a hand-over: 'A', or 0 when the channel was closed. */
static char
hand_over(int channel, const char *bytes, const int *fds, size_t count)
{
	char answer = 0;

	send_with(channel, bytes, strlen(bytes), fds, count);
	assert_true(is_readable(channel, TIMEOUT_MS));
	return recv(channel, &answer, 1, 0) == 1 ? answer : '\0';
}

static int
start(void **state)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };

	(void)state;
	(void)snprintf(lab.path, sizeof(lab.path), "/tmp/kraft-egress-test-%ld", (long)getpid());
	memcpy(name.sun_path, lab.path, strlen(lab.path));
	(void)unlink(lab.path);
	lab.handed = -1;
	lab.channels = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(lab.channels, (struct sockaddr *)&name, sizeof(name)), 0);
	assert_int_equal(listen(lab.channels, 64), 0);
	start_process();
	lab.address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	lab.listener = open_listener(&lab.address);
	lab.channel = open_channel();
	assert_int_equal(hand_over(lab.channel, "L", &lab.listener, 1), 'A');
	return 0;
}

/* As on macOS: no channel, but a listener on the host's own loopback, and a token. */
static int
start_on_loopback(void **state)
{
	lab.handed = -1;
	(void)state;
	lab.channels = lab.channel = -1;
	lab.address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	lab.listener = open_listener(&lab.address);
	start_process();
	return 0;
}

/* Lets go of the process, which ends by itself. Its exit status, or minus the signal. */
static int
wait_for_end(void)
{
	int status;

	kr_close_p(&lab.control);
	assert_int_equal(waitpid(lab.pid, &status, 0), lab.pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int
stop(void **state)
{
	int ended = wait_for_end();

	(void)state;
	kr_close_p(&lab.channel);
	kr_close_p(&lab.listener);
	kr_close_p(&lab.handed);
	kr_close_p(&lab.channels);
	if (lab.path[0])
		(void)unlink(lab.path);
	return ended;
}

/* ---- clients, servers, kraft ---- */

static void
say_bytes(int fd, const void *bytes, size_t n)
{
	assert_int_equal(send(fd, bytes, n, MSG_NOSIGNAL), n);
}

static void
say(int fd, const char *text)
{
	say_bytes(fd, text, strlen(text));
}

/* As who stands between kraft-egress and a sandbox that cannot connect to the host. */
static int
hand_client_over(void)
{
	char word[KG_NUMBERED_BYTES] = { KG_CONNECTION };
	int pair[2];

	if (lab.handed < 0)
		lab.handed = open_channel();
	lab.number++;
	memcpy(word + 1, &lab.number, sizeof(lab.number));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	send_with(lab.handed, word, sizeof(word), &pair[1], 1);
	(void)close(pair[1]);
	lab.numbers[pair[0]] = lab.number;
	return pair[0];
}

/* Whether its end was told to be an abrupt one. */
static bool
was_reset(int fd)
{
	char word[KG_NUMBERED_BYTES];
	bool told = false;

	while (lab.hands_over && lab.handed >= 0 && recv(lab.handed, word, sizeof(word), MSG_DONTWAIT) == sizeof(word))
		told |= word[0] == KG_RESET && memcmp(word + 1, &lab.numbers[fd], sizeof(lab.numbers[fd])) == 0;
	return told;
}

static int
open_client(void)
{
	int fd = lab.hands_over ? hand_client_over() : socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	if (lab.hands_over)
		return fd;
	assert_int_equal(connect(fd, (struct sockaddr *)&lab.address, sizeof(lab.address)), 0);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	return fd;
}

static int
client_says(const char *text)
{
	int fd = open_client();

	say(fd, text);
	return fd;
}

static void
expect(int fd, const char *text)
{
	char got[4096];
	size_t n = strlen(text), used = 0;

	while (used < n) {
		ssize_t some;

		if (!is_readable(fd, TIMEOUT_MS))
			fail_msg("nothing came; expected '%s'", text + used);
		some = recv(fd, got + used, n - used, 0);
		if (some <= 0)
			fail_msg("an end came; expected '%s'", text + used);
		used += (size_t)some;
	}
	got[n] = '\0';
	assert_string_equal(got, text);
}

/* All until the end; true when that is a clean one, false for a reset. */
static bool
read_to_end(int fd, char *out, size_t size)
{
	size_t used = 0;

	for (;;) {
		ssize_t some;

		assert_true(is_readable(fd, TIMEOUT_MS));
		some = recv(fd, out + used, size - 1 - used, 0);
		if (some <= 0) {
			bool reset = some < 0 || was_reset(fd);

			out[used] = '\0';
			(void)close(fd);
			return !reset;
		}
		used += (size_t)some;
	}
}

/* Exactly this and a clean end; closes fd. */
static void
expect_all(int fd, const char *text)
{
	char got[8192];

	assert_true(read_to_end(fd, got, sizeof(got)));
	assert_string_equal(got, text);
}

/* An answer of kraft-egress's own with this status, then a clean end; closes fd. */
static void
expect_status(int fd, unsigned status)
{
	char got[8192], line[32];

	if (!read_to_end(fd, got, sizeof(got)))
		fail_msg("reset instead of %u", status);
	(void)snprintf(line, sizeof(line), "HTTP/1.1 %u ", status);
	if (strncmp(got, line, strlen(line)) != 0 || !strstr(got, "\r\n\r\nkraft: "))
		fail_msg("expected %u, got: %s", status, got);
}

static void
expect_quiet(int fd)
{
	if (is_readable(fd, QUIET_MS))
		fail_msg("something came where nothing may");
}

static struct kr_ask
next_ask(const char *host, unsigned port)
{
	struct kr_ask ask;
	struct kr_target target;
	struct kr_frame frame = { .bytes = &ask, .size = sizeof(ask), .fd = -1 };

	if (!is_readable(lab.control, TIMEOUT_MS))
		fail_msg("nobody asks for %s", host);
	assert_int_equal(kr_frame_read(lab.control, &frame, false), KR_FRAME_DONE);
	assert_true(kr_ask_check(&ask, &target));
	assert_string_equal(ask.host, host);
	assert_int_equal(ask.port, port);
	return ask;
}

static void
answer(const struct kr_ask *ask, unsigned type, unsigned status, const char *text, int fd)
{
	struct kr_answer frame = { .type = type, .id = ask->id, .status = status };

	memcpy(frame.text, text, strlen(text));
	send_with(lab.control, &frame, sizeof(frame), &fd, fd >= 0 ? 1 : 0);
}

static void
refuse(const struct kr_ask *ask, const char *text)
{
	answer(ask, KR_ANSWER_REFUSED, 403, text, -1);
}

/* Connects what asked to a server, whose end is returned. */
static int
connect_to(const struct kr_ask *ask, unsigned type, const char *authorization)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
	answer(ask, type, 0, authorization, pair[0]);
	(void)close(pair[0]);
	return pair[1];
}

static int
serve(const char *host, unsigned port)
{
	struct kr_ask ask = next_ask(host, port);

	return connect_to(&ask, KR_ANSWER_DIRECT, "");
}

/* A frame of kraft's, or the test ends. */
static void
read_frame(void *bytes, uint32_t size)
{
	struct kr_frame frame = { .bytes = bytes, .size = size, .fd = -1 };
	enum kr_frame_state state = KR_FRAME_MORE;

	while (state == KR_FRAME_MORE && is_readable(lab.control, TIMEOUT_MS))
		state = kr_frame_read(lab.control, &frame, false);
	assert_int_equal(state, KR_FRAME_DONE);
}

/* The next call, freed by whoever asked for it; its text ends with a NUL. */
static struct kr_call *
next_call(struct kr_ask *ask)
{
	struct kr_target target;
	struct kr_call *call;

	read_frame(ask, sizeof(*ask));
	assert_int_equal(ask->type, KR_ASK_CALL);
	assert_true(kr_ask_check(ask, &target));
	call = calloc(1, ask->bytes + 1);
	assert_non_null(call);
	read_frame(call, ask->bytes);
	assert_true(kr_call_check(call, ask->bytes));
	return call;
}

static void
answer_call(const struct kr_ask *ask, unsigned status, int64_t next, const char *body)
{
	struct kr_answer frame = {
		.type = KR_ANSWER_CALL, .id = ask->id, .status = status, .next = next, .bytes = (uint32_t)strlen(body)
	};

	say_bytes(lab.control, &frame, sizeof(frame));
	if (*body)
		say(lab.control, body);
}

#define ESTABLISHED "HTTP/1.1 200 Connection Established\r\n\r\n"

static void
open_tunnel(int *client, int *server)
{
	*client = client_says("CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n");
	*server = serve("a.test", 443);
	expect(*client, ESTABLISHED);
}

/* ---- tunnels ---- */

static void
a_tunnel_carries_early_bytes_and_half_closes(void **state)
{
	int client = client_says("CONNECT A.test:443 HTTP/1.1\r\nHost: x\r\n\r\nearly"),
		server = serve("a.test", 443);

	(void)state;
	expect(server, "early");
	expect(client, ESTABLISHED);
	say(client, "up");
	expect(server, "up");
	assert_int_equal(shutdown(client, SHUT_WR), 0);
	assert_true(is_readable(server, TIMEOUT_MS));
	assert_int_equal(recv(server, &(char){ 0 }, 1, 0), 0);
	say(server, "down, after the client's end");
	(void)close(server);
	expect_all(client, "down, after the client's end");
}

static void
the_servers_half_close_leaves_the_other_way_open(void **state)
{
	int client, server;

	(void)state;
	open_tunnel(&client, &server);
	say(server, "bye");
	assert_int_equal(shutdown(server, SHUT_WR), 0);
	expect(client, "bye");
	assert_int_equal(recv(client, &(char){ 0 }, 1, 0), 0);
	say(client, "still here");
	expect(server, "still here");
	(void)close(client);
	expect_all(server, "");
}

/* HTTP-09: wherever the bytes are cut, what comes behind the head is the tunnel's. */
static void
HTTP_09_a_connect_cut_at_every_byte(void **state)
{
	static const char text[] =
		"CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\nCONNECT b.test:443 HTTP/1.1\r\n\r\n";
	size_t head = (size_t)(strstr(text, "\r\n\r\n") + 4 - text);

	(void)state;
	for (size_t cut = 1; cut < sizeof(text) - 1; cut++) {
		int client = open_client(), server;

		say_bytes(client, text, cut);
		if (cut < head)
			assert_false(is_readable(lab.control, 1));
		say_bytes(client, text + cut, sizeof(text) - 1 - cut);
		server = serve("a.test", 443);
		expect(server, text + head);
		expect(client, ESTABLISHED);
		assert_false(is_readable(lab.control, 0));
		(void)close(client);
		(void)close(server);
	}
}

/* NET-06: a CONNECT inside a tunnel is bytes of the tunnel. */
static void
NET_06_a_request_inside_a_tunnel_is_no_request(void **state)
{
	int client, server;

	(void)state;
	open_tunnel(&client, &server);
	say(client, "CONNECT denied.test:443 HTTP/1.1\r\n\r\n");
	expect(server, "CONNECT denied.test:443 HTTP/1.1\r\n\r\n");
	expect_quiet(lab.control);
	(void)close(client);
	(void)close(server);
}

static void
a_reset_is_passed_on(void **state)
{
	const struct linger now = { 1, 0 };
	char got[64];
	int client, server;

	(void)state;
	open_tunnel(&client, &server);
	say(server, "part");
	expect(client, "part");
	(void)setsockopt(client, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	(void)close(client);
	assert_true(is_readable(server, TIMEOUT_MS));
	(void)read_to_end(server, got, sizeof(got));
	/* And the client of a server that is gone with bytes unread sees a reset, not an end. */
	open_tunnel(&client, &server);
	say(client, "unread");
	assert_true(is_readable(server, TIMEOUT_MS));
	(void)close(server);
	assert_false(read_to_end(client, got, sizeof(got)));
}

/* ---- refusals ---- */

static void
a_refusal_is_one_line_that_says_why(void **state)
{
	struct kr_ask ask;
	int client = client_says("CONNECT denied.test:443 HTTP/1.1\r\n\r\nearly");

	(void)state;
	ask = next_ask("denied.test", 443);
	assert_int_equal(ask.type, KR_ASK_CONNECT);
	refuse(&ask, "no");
	expect_all(client, "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n"
					   "Connection: close\r\n\r\nkraft: no\n");
	client = client_says("HEAD http://denied.test/ HTTP/1.1\r\n\r\n");
	ask = next_ask("denied.test", 80);
	assert_int_equal(ask.type, KR_ASK_HTTP);
	refuse(&ask, "no");
	expect_all(client, "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\nContent-Length: 10\r\n"
					   "Connection: close\r\n\r\n");
	for (unsigned status = 502; status <= 504; status++) {
		client = client_says("GET http://slow.test/ HTTP/1.1\r\n\r\n");
		ask = next_ask("slow.test", 80);
		answer(&ask, KR_ANSWER_FAILED, status, "cannot connect", -1);
		expect_status(client, status);
	}
}

static void
HTTP_10_a_refused_request_gets_no_100(void **state)
{
	struct kr_ask ask;
	int client =
		client_says("POST http://denied.test/ HTTP/1.1\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");

	(void)state;
	ask = next_ask("denied.test", 80);
	refuse(&ask, "no");
	expect_status(client, 403);
}

static void
a_client_that_leaves_while_kraft_thinks_costs_nothing(void **state)
{
	const struct linger now = { 1, 0 };
	char got[8];

	(void)state;
	for (int i = 0; i < 50; i++) {
		int client = client_says("CONNECT a.test:443 HTTP/1.1\r\n\r\n"), server;
		struct kr_ask ask = next_ask("a.test", 443);

		(void)setsockopt(client, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
		(void)close(client);
		server = connect_to(&ask, KR_ANSWER_DIRECT, "");
		assert_true(is_readable(server, TIMEOUT_MS));
		(void)read_to_end(server, got, sizeof(got));
	}
}

/* What is wrong is answered or closed at once and nobody is asked (HTTP-01, -02, -05, -07, -13, -15; NET-13,
 * -14). The cases themselves are in tests/unit/head.c. */
static void
HTTP_01_to_15_malformed_requests_are_400_and_go_nowhere(void **state)
{
	static const char *const cases[] = {
		"GET http://a.test/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"GET http://a.test/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
		"GET http://a.test/ HTTP/1.1\nHost: a.test\n\n",
		"GET http://a.test/ HTTP/1.1\r\nA: b\rX: y\r\n\r\n",
		"GET http://a.test/ HTTP/1.2\r\n\r\n",
		"GET /path HTTP/1.1\r\nHost: a.test\r\n\r\n",
		"GET https://a.test/ HTTP/1.1\r\n\r\n",
		"TRACE http://a.test/ HTTP/1.1\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"\x16\x03\x01\x02",
		"\x05\x01",
		"CONNECT a.test HTTP/1.1\r\n\r\n",
		"CONNECT a.test:0 HTTP/1.1\r\n\r\n",
		"CONNECT a.test:65536 HTTP/1.1\r\n\r\n",
		"CONNECT 127.1:443 HTTP/1.1\r\n\r\n",
		"CONNECT u@a.test:443 HTTP/1.1\r\n\r\n",
	};
	static char large[KR_HEAD_BYTES + 64];

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++)
		expect_status(client_says(cases[i]), 400);
	memset(large, 'a', sizeof(large) - 1);
	memcpy(large, "GET http://a.test/", 18);
	expect_status(client_says(large), 400);
	expect_status(client_says("GET http://a.test/ HTTP/1.1\r\nExpect: x\r\n\r\n"), 417);
	assert_false(is_readable(lab.control, 0));
}

/* ---- plain requests ---- */

#define OK "HTTP/1.1 200 OK\r\n"

static void
HTTP_06_09_a_plain_request_cut_at_every_byte_with_another_behind_it(void **state)
{
	static const char text[] = "GET http://a.test/p HTTP/1.1\r\nHost: denied.test\r\n\r\n"
							   "GET http://denied.test/ HTTP/1.1\r\nHost: denied.test\r\n\r\n";

	(void)state;
	for (size_t cut = 1; cut < sizeof(text) - 1; cut++) {
		int client = open_client(), server;

		say_bytes(client, text, cut);
		assert_false(is_readable(lab.control, 0) && cut < 40);
		say_bytes(client, text + cut, sizeof(text) - 1 - cut);
		server = serve("a.test", 80);
		expect(server, "GET /p HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
		say(server, OK "Content-Length: 2\r\n\r\nhi");
		expect_all(client, OK "Content-Length: 2\r\nConnection: close\r\n\r\nhi");
		expect_all(server, "");
		assert_false(is_readable(lab.control, 0));
	}
}

static void
bodies_are_framed_anew(void **state)
{
	int client =
			client_says("POST http://a.test/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n"),
		server;

	(void)state;
	server = serve("a.test", 80);
	expect(server, "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\nConnection: "
				   "close\r\n\r\n3\r\nabc\r\n");
	say(client, "2\r\nde\r\n2\r\nfg\r\n0\r\nHost: x\r\nContent-Type: y\r\n\r\n");
	expect(server, "4\r\ndefg\r\n0\r\n\r\n");
	say(server, OK "Transfer-Encoding: chunked\r\nKeep-Alive: x\r\n\r\n1\r\na\r\n2;x\r\nbc\r\n");
	expect(client, OK "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n");
	say(server, "0\r\nTrailer: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n");
	expect_all(client, "0\r\n\r\n");
	expect_all(server, "");
}

static void
an_old_client_gets_no_chunks(void **state)
{
	int client = client_says("GET http://a.test/ HTTP/1.0\r\n\r\n"), server = serve("a.test", 80);

	(void)state;
	expect(server, "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
	say(server, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" OK
				"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
	expect_all(client, OK "Connection: close\r\n\r\nabc");
	(void)close(server);
}

static void
responses_without_a_body_end_at_their_head(void **state)
{
	static const struct {
		const char *method, *response, *passed;
	} cases[] = {
		{ "HEAD", OK "Content-Length: 5\r\n\r\n", OK "Content-Length: 5\r\nConnection: close\r\n\r\n" },
		{ "HEAD", OK "Transfer-Encoding: chunked\r\n\r\nleft",
			OK "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n" },
		{ "GET", "HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\nleft",
			"HTTP/1.1 204 No\r\nConnection: close\r\n\r\n" },
		{ "GET", "HTTP/1.1 304 Not\r\nContent-Length: 5\r\n\r\nleft",
			"HTTP/1.1 304 Not\r\nContent-Length: 5\r\nConnection: close\r\n\r\n" },
		{ "GET", OK "Content-Length: 0\r\n\r\nleft", OK "Content-Length: 0\r\nConnection: close\r\n\r\n" },
	};
	char text[128];

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		int client, server;

		(void)snprintf(text, sizeof(text), "%s http://a.test/ HTTP/1.1\r\n\r\n", cases[i].method);
		client = client_says(text);
		server = serve("a.test", 80);
		say(server, cases[i].response);
		expect_all(client, cases[i].passed);
		(void)close(server);
	}
}

static void
HTTP_08_17_responses_that_cannot_be_passed_on_are_502(void **state)
{
	static const char *const cases[] = {
		OK "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		OK "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"HTTP/1.1 200 OK\nContent-Length: 1\n\na",
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n",
		"<html>",
	};
	char interim[1024] = "";
	int client, server;

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		client = client_says("GET http://a.test/ HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n");
		server = serve("a.test", 80);
		expect(server, "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
		say(server, cases[i]);
		if (cases[i][0] == '<')
			assert_int_equal(shutdown(server, SHUT_WR), 0);
		expect_status(client, 502);
		(void)close(server);
	}
	for (int i = 0; i <= KR_INTERIM_MAX; i++)
		memcpy(interim + strlen(interim), "HTTP/1.1 102 P\r\n\r\n", 19);
	client = client_says("GET http://a.test/ HTTP/1.0\r\n\r\n");
	server = serve("a.test", 80);
	say(server, interim);
	expect_status(client, 502);
	(void)close(server);
	client = client_says("GET http://a.test/ HTTP/1.1\r\n\r\n");
	server = serve("a.test", 80);
	(void)close(server);
	expect_status(client, 502);
}

/* A body that ended early never looks complete (HTTP-04, HTTP-08). */
static void
HTTP_04_08_a_response_that_breaks_off_is_not_complete(void **state)
{
	static const char *const cases[] = { OK "Content-Length: 9\r\n\r\nabc",
		OK "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
		OK "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nX\r\n",
		OK "Transfer-Encoding: chunked\r\n\r\n9\r\nabc" };
	char got[1024];

	(void)state;
	for (int old = 0; old <= 1; old++)
		for (size_t i = 0; i < KR_COUNT(cases); i++) {
			int client = client_says(
				old ? "GET http://a.test/ HTTP/1.0\r\n\r\n" : "GET http://a.test/ HTTP/1.1\r\n\r\n");
			int server = serve("a.test", 80);
			bool clean;

			say(server, cases[i]);
			(void)shutdown(server, SHUT_WR);
			clean = read_to_end(client, got, sizeof(got));
			if (clean && (!strstr(got, "Content-Length: 9") && !strstr(got, "chunked")))
				fail_msg("case %zu looks complete: %s", i, got);
			assert_null(strstr(got, "0\r\n\r\n"));
			(void)close(server);
		}
}

/* HTTP-03, HTTP-04: nothing behind the bad chunk goes up, and what did is not complete. */
static void
HTTP_03_a_request_with_a_bad_chunk_is_400(void **state)
{
	static const char *const bad[] = { "0x3\r\nabc\r\n0\r\n\r\n", "3\r\nabcd\r\n0\r\n\r\n",
		"3\nabc\r\n0\r\n\r\n", "-1\r\n\r\n", "fffffffffffffffffffff\r\nabc" };
	char got[1024];

	(void)state;
	for (size_t i = 0; i < KR_COUNT(bad); i++) {
		int client =
			client_says("POST http://a.test/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n");
		int server = serve("a.test", 80);

		expect(server, "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\nConnection: "
					   "close\r\n\r\n2\r\nok\r\n");
		say(client, bad[i]);
		expect_status(client, 400);
		(void)read_to_end(server, got, sizeof(got));
		assert_string_equal(got, "");
	}
}

static void
HTTP_04_a_request_that_breaks_off_is_not_complete(void **state)
{
	char got[1024];
	int client = client_says("POST http://a.test/ HTTP/1.1\r\nContent-Length: 5\r\n\r\nab"),
		server = serve("a.test", 80);

	(void)state;
	expect(server, "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 5\r\nConnection: close\r\n\r\nab");
	(void)close(client);
	(void)read_to_end(server, got, sizeof(got));
	assert_string_equal(got, "");
}

static void
HTTP_10_expect_100_continue_is_passed_on(void **state)
{
	int client =
			client_says("POST http://a.test/ HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"),
		server;

	(void)state;
	server = serve("a.test", 80);
	expect(server, "POST / HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: "
				   "2\r\nConnection: close\r\n\r\n");
	say(server, "HTTP/1.1 100 Continue\r\n\r\n");
	expect(client, "HTTP/1.1 100 Continue\r\n\r\n");
	say(client, "hi");
	expect(server, "hi");
	say(server, OK "Content-Length: 0\r\n\r\n");
	expect_all(client, OK "Content-Length: 0\r\nConnection: close\r\n\r\n");
	(void)close(server);
	/* The server says no, and the body never comes. */
	client = client_says("POST http://a.test/ HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
	server = serve("a.test", 80);
	say(server, "HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n");
	expect_all(client, "HTTP/1.1 417 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
	(void)close(server);
}

/* ---- the person's own proxy ---- */

static int
serve_upstream(const char *host, unsigned port, const char *authorization)
{
	struct kr_ask ask = next_ask(host, port);

	return connect_to(&ask, KR_ANSWER_UPSTREAM, authorization);
}

static void
a_tunnel_through_the_upstream_proxy(void **state)
{
	static const char *const refused[] = { "HTTP/1.1 407 No\r\n\r\n", "HTTP/1.1 201 Yes\r\n\r\n",
		"HTTP/1.1 200 OK\n\n", "SSH-2.0-x\r\n", "" };
	int client =
			client_says("CONNECT [::1]:443 HTTP/1.1\r\nProxy-Authorization: Basic bWluZQ==\r\n\r\nearly"),
		server;

	(void)state;
	server = serve_upstream("::1", 443, "Basic eDp5");
	expect(
		server, "CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\nProxy-Authorization: Basic eDp5\r\n\r\n");
	expect_quiet(server); /* early bytes wait for the 200 */
	say(server, "HTTP/1.0 200 OK\r\nVia: x\r\n\r\nhello");
	expect(client, ESTABLISHED "hello");
	expect(server, "early");
	(void)close(client);
	(void)close(server);
	for (size_t i = 0; i < KR_COUNT(refused); i++) {
		client = client_says("CONNECT a.test:443 HTTP/1.1\r\n\r\n");
		server = serve_upstream("a.test", 443, "");
		expect(server, "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n");
		if (refused[i][0])
			say(server, refused[i]);
		(void)shutdown(server, SHUT_WR);
		expect_status(client, 502);
		(void)close(server);
	}
}

static void
a_plain_request_through_the_upstream_proxy(void **state)
{
	char got[256];
	int client = client_says(
		"POST http://a.test/p HTTP/1.1\r\nContent-Length: 2\r\n\r\nhiGET http://b.test/ HTTP/1.1\r\n\r\n");
	int server = serve_upstream("a.test", 80, "Basic eDp5");

	(void)state;
	expect(server, "POST http://a.test/p HTTP/1.1\r\nHost: a.test\r\nProxy-Authorization: Basic eDp5\r\n"
				   "Content-Length: 2\r\nConnection: close\r\n\r\nhi");
	expect_quiet(server);
	say(server, OK "Content-Length: 0\r\n\r\n");
	expect_all(client, OK "Content-Length: 0\r\nConnection: close\r\n\r\n");
	(void)read_to_end(server, got, sizeof(got));
	assert_string_equal(got, "");
	client = client_says("POST http://a.test/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
	server = serve_upstream("a.test", 80, "");
	expect_status(client, 400);
	(void)read_to_end(server, got, sizeof(got));
	assert_string_equal(got, "");
	client = client_says("GET http://a.test/ HTTP/1.1\r\n\r\n");
	server = serve_upstream("a.test", 80, "");
	say(server, "HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n");
	expect_status(client, 502);
	(void)close(server);
}

/* ---- amounts ---- */

/* From /proc/PID/status, in KiB or a count. */
static long
status_of(const char *name)
{
	char path[64], text[4096];
	kr_auto_fd int fd = -1;
	const char *at;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%ld/status", (long)lab.pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, text, sizeof(text) - 1);
	assert_true(n > 0);
	text[n] = '\0';
	at = strstr(text, name);
	return at ? strtol(at + strlen(name), NULL, 10) : -1;
}

static void
move_much(int from, int to, size_t amount)
{
	static char out[1 << 16], in[1 << 16];
	size_t sent = 0, got = 0;
	uint32_t next_out = 1, next_in = 1;
	size_t left = 0;

	(void)fcntl(from, F_SETFL, O_NONBLOCK);
	(void)fcntl(to, F_SETFL, O_NONBLOCK);
	while (got < amount) {
		ssize_t n;

		if (left == 0 && sent < amount) {
			for (size_t i = 0; i < sizeof(out); i++)
				out[i] = (char)((next_out = next_out * 1103515245 + 12345) >> 16);
			left = sizeof(out);
		}
		n = left ? send(from, out + sizeof(out) - left, left, MSG_NOSIGNAL) : 0;
		if (n > 0) {
			left -= (size_t)n;
			sent += (size_t)n;
		}
		n = recv(to, in, sizeof(in), 0);
		if (n < 0 && errno == EAGAIN)
			assert_true(is_readable(to, TIMEOUT_MS));
		else
			assert_true(n > 0);
		for (ssize_t i = 0; i < n; i++)
			if (in[i] != (char)((next_in = next_in * 1103515245 + 12345) >> 16))
				fail_msg("a byte changed on its way");
		got += n > 0 ? (size_t)n : 0;
	}
}

/* Both ways, copied and spliced, byte by byte what was sent. */
static void
much_goes_through_unchanged(void **state)
{
	int client, server;

	(void)state;
	open_tunnel(&client, &server);
	for (int i = 0; i < 3; i++) {
		move_much(server, client, 16 << 20);
		move_much(client, server, 16 << 20);
		say(client, "small");
		expect(server, "small");
	}
	(void)close(client);
	(void)close(server);
}

/* HTTP-14 in small: the server sends as fast as it can, the client does not read. */
static void
HTTP_14_a_slow_client_costs_no_memory(void **state)
{
	static char block[1 << 16];
	static const char *const requests[] = { "CONNECT a.test:80 HTTP/1.1\r\n\r\n",
		"GET http://a.test/ HTTP/1.1\r\n\r\n" };
	const size_t amount = 64 << 20;

	(void)state;
	for (size_t i = 0; i < KR_COUNT(requests); i++) {
		int client = client_says(requests[i]), server = serve("a.test", 80), stuck = 0;
		size_t sent = 0, got = 0;
		char text[128];

		if (i == 0) {
			expect(client, ESTABLISHED);
		} else {
			expect(server, "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
			(void)snprintf(text, sizeof(text), OK "Content-Length: %zu\r\n\r\n", amount);
			say(server, text);
			(void)snprintf(text, sizeof(text), OK "Content-Length: %zu\r\nConnection: close\r\n\r\n", amount);
			expect(client, text);
		}
		while (sent < amount && stuck < 10) {
			ssize_t n = send(
				server, block, sizeof(block) < amount - sent ? sizeof(block) : amount - sent, MSG_NOSIGNAL);

			stuck = n > 0 ? 0 : stuck + 1;
			sent += n > 0 ? (size_t)n : 0;
			if (n <= 0)
				(void)poll(NULL, 0, 10);
		}
		assert_int_equal(stuck, 10); /* the control: it did not swallow everything */
		if (!KR_SANITIZED)
			assert_true(status_of("VmHWM:") < 16 << 10);
		while (got < amount) {
			ssize_t n = send(
				server, block, sizeof(block) < amount - sent ? sizeof(block) : amount - sent, MSG_NOSIGNAL);

			sent += n > 0 ? (size_t)n : 0;
			assert_true(is_readable(client, TIMEOUT_MS));
			n = recv(client, block, sizeof(block), MSG_DONTWAIT);
			assert_true(n > 0);
			got += (size_t)n;
		}
		if (!KR_SANITIZED)
			assert_true(status_of("VmHWM:") < 16 << 10);
		(void)close(server);
		expect_all(client, "");
	}
}

static void
a_thousand_idle_tunnels_cost_little_and_wake_nobody(void **state)
{
	static int clients[IDLE_TUNNELS], servers[IDLE_TUNNELS];
	struct rlimit files;
	long before, after, switches;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_cur < 3 * IDLE_TUNNELS) {
		print_message("# skipped: not enough descriptors may be open (ulimit -Hn)\n");
		skip();
	}
	open_tunnel(&clients[0], &servers[0]);
	before = status_of("RssAnon:");
	if (!KR_SANITIZED)
		assert_true(before < 2 << 10);
	for (int i = 1; i < IDLE_TUNNELS; i++)
		open_tunnel(&clients[i], &servers[i]);
	after = status_of("RssAnon:");
	print_message("# %ld KiB idle, %ld KiB with %d tunnels\n", before, after, IDLE_TUNNELS);
	if (!KR_SANITIZED)
		assert_true(after - before < 1 * IDLE_TUNNELS);
	(void)poll(NULL, 0, QUIET_MS); /* until it sleeps */
	switches = status_of("\nvoluntary_ctxt_switches:");
	(void)poll(NULL, 0, 1500);
	assert_int_equal(status_of("\nvoluntary_ctxt_switches:"), switches);
	/* The cap: what comes above it waits in the backlog, and is served when there is a place. */
	for (int i = IDLE_TUNNELS; i < KR_CONNECTIONS_MAX; i++) {
		int client, server;

		open_tunnel(&client, &server); /* left open here, closed with the process */
	}
	{
		int waiting = client_says("CONNECT late.test:443 HTTP/1.1\r\n\r\n"), server;

		expect_quiet(lab.control);
		(void)close(clients[0]);
		(void)close(servers[0]);
		server = serve("late.test", 443);
		expect(waiting, ESTABLISHED);
		(void)close(server);
		(void)close(waiting);
	}
	for (int i = 1; i < IDLE_TUNNELS; i++) {
		(void)close(clients[i]);
		(void)close(servers[i]);
	}
}

static void
many_ask_at_once_and_are_answered_in_any_order(void **state)
{
	enum { MANY = 100 };
	int clients[MANY], servers[MANY];
	struct kr_ask asks[MANY];
	char text[64];

	(void)state;
	for (int i = 0; i < MANY; i++)
		clients[i] = client_says("CONNECT a.test:443 HTTP/1.1\r\n\r\n");
	for (int i = 0; i < MANY; i++)
		asks[i] = next_ask("a.test", 443);
	for (int i = MANY; i-- > 0;)
		servers[i] = connect_to(&asks[i], KR_ANSWER_DIRECT, "");
	for (int i = 0; i < MANY; i++) {
		(void)snprintf(text, sizeof(text), "%d", i);
		expect(clients[i], ESTABLISHED);
		say(clients[i], text);
	}
	for (int i = 0; i < MANY; i++) {
		assert_true(is_readable(servers[i], TIMEOUT_MS));
		(void)close(servers[i]);
		(void)close(clients[i]);
	}
}

/* HTTP-12: a head that does not come to its end is closed without an answer, whatever dribbles in; a tunnel
 * is not. */
static void
HTTP_12_a_head_has_thirty_seconds(void **state)
{
	int client, server, slow, ms = 0;

	(void)state;
	open_tunnel(&client, &server);
	slow = client_says("GET http://a.test/ HTTP/1.1\r\nA: ");
	for (; ms < KR_HEAD_MS + 5000 && !is_readable(slow, 1000); ms += 1000)
		say(slow, "a");
	assert_true(ms >= KR_HEAD_MS - 3000 && ms < KR_HEAD_MS + 5000);
	assert_true(recv(slow, &(char){ 0 }, 1, 0) <= 0);
	(void)close(slow);
	say(client, "still");
	expect(server, "still");
	(void)close(client);
	(void)close(server);
}

/* ---- the channel, kraft ---- */

static void
only_a_listener_on_loopback_can_be_handed_over(void **state)
{
	struct sockaddr_in any = { .sin_family = AF_INET },
					   loopback = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int two[] = { lab.listener, lab.listener, lab.listener, lab.listener, lab.listener, lab.listener };
	int wrong[] = { open_listener(&any), socket(AF_INET, SOCK_STREAM, 0), socket(AF_INET, SOCK_DGRAM, 0),
		lab.channels, open("/dev/null", O_RDONLY), socket(AF_INET6, SOCK_STREAM, 0) };
	int good = open_listener(&loopback), channel;
	char path[64];
	struct stat there;

	(void)state;
	(void)bind(wrong[5], (struct sockaddr *)&six, sizeof(six));
	(void)listen(wrong[5], 1);
	for (size_t i = 0; i < KR_COUNT(wrong); i++) {
		channel = open_channel();
		assert_int_equal(hand_over(channel, "L", &wrong[i], 1), 0);
		(void)close(channel);
		if (wrong[i] != lab.channels)
			(void)close(wrong[i]);
	}
	for (size_t n = 2; n <= KR_COUNT(two); n++) {
		channel = open_channel();
		assert_int_equal(hand_over(channel, "L", two, n), 0);
		(void)close(channel);
	}
	channel = open_channel();
	assert_int_equal(hand_over(channel, "L", NULL, 0), 0);
	(void)close(channel);
	channel = open_channel();
	assert_int_equal(hand_over(channel, "X", &good, 1), 0);
	(void)close(channel);
	channel = open_channel();
	assert_int_equal(hand_over(channel, "LL", &good, 1), 0);
	(void)close(channel);
	channel = open_channel();
	assert_int_equal(hand_over(channel, "L", &good, 1), 'A');
	assert_int_equal(hand_over(channel, "L", &good, 1), 0); /* one each */
	(void)close(channel);
	(void)close(good);
	/* None of them was kept: it has what it had before, and its own. */
	(void)snprintf(path, sizeof(path), "/proc/%ld/fd/10", (long)lab.pid);
	assert_int_equal(stat("/proc/self/fd", &there), 0);
	assert_int_not_equal(lstat(path, &there), 0);
}

/* A channel on which anything else comes is closed, and what came with it. */
static void
only_a_connected_socket_is_a_connection(void **state)
{
	static const char word[KG_NUMBERED_BYTES] = "C1234";
	int stream[2], datagrams[2], tcp = open_client(), channel, server, client;
	char byte;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, datagrams), 0);
	int wrong[] = { lab.channels, socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), datagrams[0], tcp, lab.listener,
		open("/dev/null", O_RDONLY | O_CLOEXEC) };

	for (size_t i = 0; i < KR_COUNT(wrong); i++) {
		channel = open_channel();
		send_with(channel, word, sizeof(word), &wrong[i], 1);
		assert_true(is_readable(channel, TIMEOUT_MS));
		assert_true(recv(channel, &byte, 1, 0) <= 0);
		(void)close(channel);
	}
	for (size_t n = 0; n < 3; n++) { /* no number, a part of one; two descriptors */
		channel = open_channel();
		send_with(channel, word, n == 0 ? 1 : n == 1 ? 4 : sizeof(word), stream, n < 2 ? 1 : 2);
		assert_true(is_readable(channel, TIMEOUT_MS));
		assert_true(recv(channel, &byte, 1, 0) <= 0);
		(void)close(channel);
	}
	/* The right one is served on the same kind of channel. */
	lab.hands_over = true;
	open_tunnel(&client, &server);
	lab.hands_over = false;
	say(client, "x");
	expect(server, "x");
	(void)close(client);
	(void)close(server);
	(void)close(tcp);
	for (int i = 0; i < 2; i++) {
		(void)close(stream[i]);
		(void)close(datagrams[i]);
	}
	(void)close(wrong[1]);
	(void)close(wrong[5]);
}

static void
a_reset_of_one_that_was_handed_over_is_passed_on(void **state)
{
	char word[KG_NUMBERED_BYTES] = { KG_RESET }, got[64];
	int client, server, other, far;

	(void)state;
	open_tunnel(&client, &server);
	open_tunnel(&other, &far);
	memcpy(word + 1, &lab.numbers[client], sizeof(lab.number));
	send_with(lab.handed, word, sizeof(word), NULL, 0);
	send_with(lab.handed, word, sizeof(word), NULL, 0); /* it is gone: nobody's */
	assert_true(is_readable(server, TIMEOUT_MS));
	assert_true(recv(server, got, sizeof(got), 0) <= 0); /* though our end of the pair is open */
	(void)close(client);
	(void)close(server);
	say(other, "on");
	expect(far, "on");
	(void)close(other);
	assert_true(read_to_end(far, got, sizeof(got)));
}

static void
channels_are_few(void **state)
{
	int channels[KR_CHANNELS_MAX], late;

	(void)state;
	/* One is the init's. */
	for (int i = 1; i < KR_CHANNELS_MAX; i++)
		channels[i] = open_channel();
	late = open_channel();
	send_with(late, "X", 1, NULL, 0);
	expect_quiet(late);
	(void)close(channels[1]);
	assert_true(is_readable(late, TIMEOUT_MS)); /* closed for its X: it was looked at */
	(void)close(late);
	for (int i = 2; i < KR_CHANNELS_MAX; i++)
		(void)close(channels[i]);
}

static void
CHAN_13_a_channel_is_of_the_same_user(void **state)
{
	int pair[2], pipes[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(pipe(pipes), 0);
	assert_true(kr_channel_peer_check(pair[0], geteuid()));
	assert_false(kr_channel_peer_check(pair[0], geteuid() + 1));
	assert_false(kr_channel_peer_check(pipes[0], geteuid()));
	for (int i = 0; i < 2; i++) {
		(void)close(pair[i]);
		(void)close(pipes[i]);
	}
}

static void
a_listener_lives_as_long_as_its_channel(void **state)
{
	int client, server, late;

	(void)state;
	open_tunnel(&client, &server);
	kr_close_p(&lab.channel);
	(void)poll(NULL, 0, QUIET_MS);
	late = client_says("CONNECT a.test:443 HTTP/1.1\r\n\r\n"); /* in the backlog */
	expect_quiet(lab.control);
	say(client, "still");
	expect(server, "still");
	lab.channel = open_channel();
	assert_int_equal(hand_over(lab.channel, "L", &lab.listener, 1), 'A');
	(void)close(server);
	server = serve("a.test", 443);
	expect(late, ESTABLISHED);
	(void)close(server);
	(void)close(late);
	(void)close(client);
}

/* OS-LCH-06: another process takes over the same socket, and the same listener is handed over again. */
static void
OS_LCH_06_a_new_process_goes_on(void **state)
{
	int client, server, late;

	(void)state;
	open_tunnel(&client, &server);
	assert_int_equal(kill(lab.pid, SIGKILL), 0);
	assert_int_equal(wait_for_end(), -SIGKILL);
	assert_true(is_readable(client, TIMEOUT_MS));
	assert_true(recv(client, &(char){ 0 }, 1, 0) <= 0);
	assert_true(recv(lab.channel, &(char){ 0 }, 1, 0) <= 0);
	(void)close(client);
	(void)close(server);
	late = client_says("CONNECT a.test:443 HTTP/1.1\r\n\r\n");
	start_process();
	(void)close(lab.channel);
	lab.channel = open_channel();
	assert_int_equal(hand_over(lab.channel, "L", &lab.listener, 1), 'A');
	server = serve("a.test", 443);
	expect(late, ESTABLISHED);
	(void)close(late);
	(void)close(server);
}

static void
it_is_confined_and_seen_to_be(void **state)
{
	char path[64];
	struct stat there;

	(void)state;
	assert_int_equal(status_of("Seccomp:"), 2);
	assert_int_equal(status_of("NoNewPrivs:"), 1);
	/* Not dumpable: its files in /proc are root's. */
	(void)snprintf(path, sizeof(path), "/proc/%ld/fd", (long)lab.pid);
	assert_int_equal(stat(path, &there), 0);
	assert_int_equal(there.st_uid, 0);
}

static void
an_answer_that_nobody_asked_for_ends_it(void **state)
{
	struct kr_ask none = { .id = 12345 };
	int status;

	(void)state;
	refuse(&none, "no");
	assert_int_equal(waitpid(lab.pid, &status, 0), lab.pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	kr_close_p(&lab.control);
	start_process();
}

#define IN_LAB(test) cmocka_unit_test_setup_teardown(test, start, stop)
#define ON_LOOPBACK(test) cmocka_unit_test_setup_teardown(test, start_on_loopback, stop)

static int
start_handing_over(void **state)
{
	lab.hands_over = true;
	return start(state);
}

static int
stop_handing_over(void **state)
{
	int ended = stop(state);

	lab.hands_over = false;
	return ended;
}
#define HANDED(test) \
	{ "handed over: " #test, test, start_handing_over, stop_handing_over, NULL }

/* ---- calls to kraft ---- */

#define CALL_HEAD(verb) "POST http://kraft/w/" verb " HTTP/1.1\r\nHost: kraft\r\n"

static int
call_says(const char *verb, const char *form)
{
	char text[2048];

	(void)snprintf(text, sizeof(text), "POST http://kraft/w/%s HTTP/1.1\r\nContent-Length: %zu\r\n\r\n%s",
		verb, strlen(form), form);
	return client_says(text);
}

static void
CHN_05_a_call_is_read_here_and_answered_by_kraft(void **state)
{
	int client = call_says("events", "id=own-item&after=12&type=plan%5Fprogress");
	struct kr_ask ask;
	struct kr_call *call = next_call(&ask);

	(void)state;
	assert_int_equal(call->verb, KR_VERB_EVENTS);
	assert_string_equal(call->id, "own-item");
	assert_int_equal(call->after, 12);
	assert_string_equal(call->type, "plan_progress");
	assert_string_equal(call->route, "POST /w/events");
	free(call);
	answer_call(&ask, 200, 77, "{\"seq\":1}\n");
	expect_all(client,
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 10\r\nKraft-Next: 77\r\n"
		"Connection: close\r\n\r\n{\"seq\":1}\n");
	client = call_says("show", "");
	free(next_call(&ask));
	answer_call(&ask, 404, 0, "");
	expect_all(client, "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: "
					   "0\r\nConnection: close\r\n\r\n");
	client = call_says("show", "");
	free(next_call(&ask));
	refuse(&ask, "not yours");
	expect_status(client, 403);
}

/* Chunked, and cut wherever: it is the same call. */
static void
CHN_05_a_call_cut_at_every_byte(void **state)
{
	static const char text[] =
		CALL_HEAD("reply") "Transfer-Encoding: chunked\r\n\r\n"
						   "6\r\nthread\r\n5;x=y\r\n=7&bo\r\n9\r\ndy=a+%C3%\r\n2\r\nA4\r\n0\r\n\r\n";

	(void)state;
	for (size_t cut = 1; cut < sizeof(text) - 1; cut++) {
		int client = open_client();
		struct kr_ask ask;
		struct kr_call *call;

		say_bytes(client, text, cut);
		assert_false(is_readable(lab.control, 1));
		say_bytes(client, text + cut, sizeof(text) - 1 - cut);
		call = next_call(&ask);
		assert_string_equal(call->thread, "7");
		assert_int_equal(call->text_n, 4);
		assert_string_equal(call->text, "a \xc3\xa4");
		free(call);
		answer_call(&ask, 200, 0, "{}");
		expect(client, "HTTP/1.1 200 OK\r\n");
		(void)close(client);
	}
}

/* CHAN-02: what the head says beside method, host and path does not get to kraft. */
static void
CHAN_02_no_header_crosses(void **state)
{
	static const char *const heads[] = { CALL_HEAD("show") "\r\n",
		CALL_HEAD("show") "X-Kraft-Session-Id: other\r\nAuthorization: Bearer t\r\nCookie: s=1\r\nOrigin: "
						  "http://x\r\n\r\n",
		"POST http://kraft/w/show HTTP/1.1\r\nHost: other.test\r\nProxy-Authorization: Basic eA==\r\n\r\n",
		"POST HTTP://KRAFT:80/w/show HTTP/1.0\r\n\r\n", "POST http://kraft./w/show HTTP/1.1\r\n\r\n" };
	struct kr_call *first = NULL;

	(void)state;
	for (size_t i = 0; i < KR_COUNT(heads); i++) {
		int client = client_says(heads[i]);
		struct kr_ask ask;
		struct kr_call *call = next_call(&ask);

		if (first)
			assert_memory_equal(call, first, sizeof(*call));
		else
			first = kr_steal(call);
		free(call);
		answer_call(&ask, 200, 0, "{}");
		expect(client, "HTTP/1.1 200 OK\r\n");
		(void)close(client);
	}
	free(first);
}

/* CHAN-08, CHN-07: whatever else names the host is told to kraft and refused, and never a host to reach. */
static void
CHAN_08_what_is_no_call_is_refused_with_its_route(void **state)
{
	static const struct {
		const char *head, *route;
	} rows[] = {
		{ "GET http://kraft/w/show", "GET /w/show" },
		{ "HEAD http://kraft/w/show", "HEAD /w/show" },
		{ "PUT http://kraft/w/show", "PUT /w/show" },
		{ "DELETE http://kraft/w/show", "DELETE /w/show" },
		{ "OPTIONS http://kraft", "OPTIONS /" },
		{ "POST http://kraft/", "POST /" },
		{ "POST http://kraft/w/", "POST /w/" },
		{ "POST http://kraft/w/approve", "POST /w/approve" },
		{ "POST http://kraft/w/permission-hook/", "POST /w/permission-hook/" },
		{ "GET http://kraft/w/permission-hook", "GET /w/permission-hook" },
		{ "POST http://kraft/w/show/", "POST /w/show/" },
		{ "POST http://kraft/w/../w/show", "POST /w/../w/show" },
		{ "POST http://kraft/w/%73how", "POST /w/%73how" },
		{ "POST http://kraft/w/SHOW", "POST /w/SHOW" },
		{ "POST http://kraft/w/show?token=secret", "POST /w/show" },
		{ "POST http://kraft?token=secret", "POST /" },
		{ "POST http://kraft//w/show", "POST //w/show" },
		{ "POST http://kraft/api/work-items/1/approve", "POST /api/work-items/1/approve" },
		{ "POST http://kraft:8080/w/show", "POST kraft:8080/w/show" },
		{ "CONNECT kraft:80", "CONNECT kraft:80" },
		{ "CONNECT KRAFT.:443", "CONNECT kraft:443" },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(rows); i++) {
		char text[256];
		struct kr_call *call;
		struct kr_ask ask;
		int client;

		(void)snprintf(text, sizeof(text), "%s HTTP/1.1\r\nHost: kraft\r\n\r\n", rows[i].head);
		client = client_says(text);
		call = next_call(&ask);
		assert_int_equal(call->verb, KR_VERB_NONE);
		assert_string_equal(call->route, rows[i].route);
		free(call);
		refuse(&ask, "no");
		expect(client, "HTTP/1.1 403 Forbidden\r\n");
		(void)close(client);
	}
	expect_status(client_says("POST http://u:p@kraft/w/show HTTP/1.1\r\n\r\n"), 400);
	expect_status(client_says("POST /w/show HTTP/1.1\r\nHost: kraft\r\n\r\n"), 400);
	expect_quiet(lab.control);
}

/* A long path is cut, and has no byte that is not printable. */
static void
CHAN_07_a_long_route_is_cut(void **state)
{
	static char text[8192];
	struct kr_ask ask;
	struct kr_call *call;
	int client;

	(void)state;
	(void)snprintf(text, sizeof(text), "POST http://kraft/%05000d HTTP/1.1\r\n\r\n", 0);
	client = client_says(text);
	call = next_call(&ask);
	assert_int_equal(strlen(call->route), KR_CALL_ROUTE_MAX);
	free(call);
	refuse(&ask, "no");
	expect_status(client, 403);
}

static void
CHAN_06_what_is_no_form_is_answered_here(void **state)
{
	static const struct {
		const char *verb, *form;
	} rows[] = { { "progress", "" }, { "progress", "task=x" }, { "progress", "task=[[[[" },
		{ "progress", "task=-1" }, { "progress", "task=99999999999999999999" },
		{ "progress", "task=1&task=1" }, { "progress", "task=1&session=2" }, { "progress", "task=1%00" },
		{ "show", "id=%FF" }, { "show", "id=%2" }, { "show", "id=" }, { "show", "id" },
		{ "reply", "thread=1" }, { "reply", "thread=1&body=" }, { "reply", "thread=1&body=%00" },
		{ "reply", "thread=1&body=%ff%fe" }, { "reply", "thread=1&body=%1b[2J" },
		{ "reply", "thread=1&body=x&claim=done" }, { "events", "after=-1" }, { "events", "after=1e3" },
		{ "events", "after=99999999999999999999" }, { "threads", "open=0" } };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(rows); i++)
		expect_status(call_says(rows[i].verb, rows[i].form), 400);
	expect_status(client_says(CALL_HEAD("show") "Transfer-Encoding: chunked\r\n\r\nzz\r\n"), 400);
	expect_quiet(lab.control);
}

/* Sends until the other side has had enough. */
static void
say_much(int fd, size_t n)
{
	static char zeros[1 << 16];

	memset(zeros, 'a', sizeof(zeros));
	while (n) {
		ssize_t sent = send(fd, zeros, n < sizeof(zeros) ? n : sizeof(zeros), MSG_NOSIGNAL);

		if (sent <= 0)
			return;
		n -= (size_t)sent;
	}
}

static void
CHAN_05_a_large_body_is_counted_and_not_kept(void **state)
{
	char got[4096];
	int client;

	(void)state;
	expect_status(client_says(CALL_HEAD("reply") "Content-Length: 16777217\r\n\r\n"), 413);
	expect_status(client_says(CALL_HEAD("reply") "Content-Length: 1099511627776\r\n\r\n"), 413);
	/* The largest that is read, and too long for a form. */
	client = client_says(CALL_HEAD("reply") "Content-Length: 16777216\r\n\r\nthread=1&body=");
	say_much(client, 16777216 - strlen("thread=1&body="));
	expect_status(client, 400);
	client = client_says(CALL_HEAD("reply") "Content-Length: 300000\r\n\r\nthread=1&body=");
	say_much(client, 300000 - strlen("thread=1&body="));
	expect_status(client, 400);
	/* One that goes on and on. */
	client = client_says(CALL_HEAD("reply") "Transfer-Encoding: chunked\r\n\r\nfffffff\r\n");
	say_much(client, 20 << 20);
	(void)read_to_end(client, got, sizeof(got));
	assert_memory_equal(got, "HTTP/1.1 413 ", 13);
	expect_quiet(lab.control);
}

static void
CHN_05_a_client_that_expects_a_word_gets_it(void **state)
{
	int client = client_says(CALL_HEAD("progress") "Content-Length: 6\r\nExpect: 100-continue\r\n\r\n");
	struct kr_ask ask;

	(void)state;
	expect(client, "HTTP/1.1 100 Continue\r\n\r\n");
	say(client, "task=1");
	free(next_call(&ask));
	answer_call(&ask, 200, 0, "{}");
	expect(client, "HTTP/1.1 200 OK\r\n");
	(void)close(client);
}

/* CHAN-05: so many at once; the next waits, and one whose client went still counts until kraft has answered.
 */
static void
CHAN_05_more_calls_than_four_wait(void **state)
{
	enum { ALL = 20 };
	struct kr_ask asks[ALL];
	size_t of[ALL];
	int clients[ALL];
	char form[32];

	(void)state;
	for (size_t i = 0; i < ALL; i++) {
		(void)snprintf(form, sizeof(form), "task=%zu", i);
		clients[i] = call_says("progress", form);
	}
	for (size_t i = 0; i < ALL; i++) {
		struct kr_call *call;

		if (i >= KR_CALLS_MAX) { /* only an answer makes room */
			expect_quiet(lab.control);
			answer_call(&asks[i - KR_CALLS_MAX], 200, 0, "{}");
		}
		call = next_call(&asks[i]);
		of[i] = (size_t)call->task;
		free(call);
		if (i == 1)
			kr_close_p(&clients[of[i]]);
	}
	for (size_t i = ALL - KR_CALLS_MAX; i < ALL; i++)
		answer_call(&asks[i], 200, 0, "{}");
	for (size_t i = 0; i < ALL; i++) {
		if (i == 1)
			continue;
		expect(clients[of[i]], "HTTP/1.1 200 OK\r\n");
		(void)close(clients[of[i]]);
	}
	expect_quiet(lab.control);
}

/* Bodies that do not come hold up only other calls: a tunnel is asked for meanwhile. */
static void
CHAN_05_slow_bodies_hold_no_host_up(void **state)
{
	int slow[KR_CALLS_MAX], waiting, server, client;
	struct kr_ask ask;

	(void)state;
	for (size_t i = 0; i < KR_COUNT(slow); i++)
		slow[i] = client_says(CALL_HEAD("progress") "Content-Length: 6\r\n\r\ntask");
	waiting = call_says("show", "");
	expect_quiet(lab.control);
	open_tunnel(&client, &server);
	(void)close(slow[0]);
	free(next_call(&ask));
	answer_call(&ask, 200, 0, "{}");
	expect(waiting, "HTTP/1.1 200 OK\r\n");
	for (size_t i = 1; i < KR_COUNT(slow); i++)
		(void)close(slow[i]);
	(void)close(waiting);
	(void)close(client);
	(void)close(server);
}

/* The largest answer, for a client that takes its time: held once, and its place is taken until it is out. */
static void
a_large_answer_reaches_a_slow_client(void **state)
{
	static char body[KR_CALL_ANSWER_BYTES + 1], got[KR_CALL_ANSWER_BYTES + 4096];
	int clients[KR_CALLS_MAX], next;
	struct kr_ask asks[KR_CALLS_MAX], ask;

	(void)state;
	memset(body, 'x', sizeof(body) - 1);
	for (size_t i = 0; i < KR_CALLS_MAX; i++) {
		clients[i] = open_client();
		(void)setsockopt(clients[i], SOL_SOCKET, SO_RCVBUF, &(int){ 32768 }, sizeof(int));
		say(clients[i], CALL_HEAD("events") "\r\n");
		free(next_call(&asks[i]));
	}
	next = call_says("show", "");
	for (size_t i = 0; i < KR_CALLS_MAX; i++)
		answer_call(&asks[i], 200, 0, body);
	for (size_t i = 0; i < KR_CALLS_MAX; i++) {
		assert_true(read_to_end(clients[i], got, sizeof(got)));
		assert_string_equal(strstr(got, "\r\n\r\n") + 4, body);
	}
	free(next_call(&ask));
	answer_call(&ask, 200, 0, "{}");
	expect(next, "HTTP/1.1 200 OK\r\n");
	(void)close(next);
}

/* kraft is believed no more than the rest: a socket for a call, a body for a host. */
static void
an_answer_of_the_other_kind_ends_it(void **state)
{
	int client = call_says("show", "");
	struct kr_ask ask;
	int status;

	(void)state;
	free(next_call(&ask));
	(void)close(connect_to(&ask, KR_ANSWER_DIRECT, ""));
	assert_int_equal(waitpid(lab.pid, &status, 0), lab.pid);
	assert_int_equal(status, 0);
	(void)close(client);
	kr_close_p(&lab.control);
	start_process();
	(void)close(lab.channel);
	lab.channel = open_channel();
	assert_int_equal(hand_over(lab.channel, "L", &lab.listener, 1), 'A');
	client = client_says("CONNECT a.test:443 HTTP/1.1\r\n\r\n");
	ask = next_ask("a.test", 443);
	answer_call(&ask, 200, 0, "{}");
	assert_int_equal(waitpid(lab.pid, &status, 0), lab.pid);
	assert_int_equal(status, 0);
	(void)close(client);
	kr_close_p(&lab.control);
	start_process();
}

/* ---- on loopback ---- */

static void
base64(const char *text, char *out)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *in = (const unsigned char *)text;
	size_t n = strlen(text);

	for (size_t i = 0; i < n; i += 3) {
		unsigned three = (unsigned)in[i] << 16 | (i + 1 < n ? in[i + 1] : 0u) << 8 | (i + 2 < n ? in[i + 2] : 0u);

		*out++ = digits[three >> 18];
		*out++ = digits[three >> 12 & 63];
		*out++ = i + 1 < n ? digits[three >> 6 & 63] : '=';
		*out++ = i + 2 < n ? digits[three & 63] : '=';
	}
	*out = '\0';
}

/* The field line with this token, its end included; a buffer of two that take turns. */
static const char *
field_of(const char *token)
{
	static char lines[2][256];
	static unsigned turn;
	char plain[128], coded[192], *line = lines[turn++ % 2];

	(void)snprintf(plain, sizeof(plain), "kraft:%s", token);
	base64(plain, coded);
	(void)snprintf(line, sizeof(lines[0]), "Proxy-Authorization: Basic %s\r\n", coded);
	return line;
}

/* A head's first line, then these field lines. */
static int
client_asks(const char *line, const char *fields)
{
	char text[1024];

	(void)snprintf(text, sizeof(text), "%s HTTP/1.1\r\nHost: a.test\r\n%s\r\n", line, fields);
	return client_says(text);
}

/* 407 with what a client needs to know, and the end; closes fd. */
static void
expect_407(int fd, bool with_body)
{
	char got[8192];

	if (!read_to_end(fd, got, sizeof(got)))
		fail_msg("reset instead of 407");
	if (strncmp(got, "HTTP/1.1 407 Proxy Authentication Required\r\n", 44) != 0 ||
		!strstr(got, "\r\nProxy-Authenticate: Basic realm=\"kraft\"\r\n") || !strstr(got, "\r\nConnection: close\r\n") ||
		(strstr(got, "\r\n\r\nkraft: ") != NULL) != with_body)
		fail_msg("expected 407, got: %s", got);
}

/* kraft is told of so many that were refused, in one frame or several. */
static void
expect_strangers(unsigned n)
{
	struct kr_target none;
	struct kr_ask frame;

	while (n) {
		read_frame(&frame, sizeof(frame));
		assert_int_equal(frame.type, KR_ASK_STRANGERS);
		assert_true(kr_ask_check(&frame, &none));
		assert_in_range(frame.id, 1, n);
		n -= frame.id;
	}
}

static const char *const asked_for[] = { "CONNECT a.test:443", "GET http://a.test/", "POST http://kraft/w/show", "POST http://kraft/mcp",
	"POST http://kraft/w/permission-hook", "GET http://kraft/", "CONNECT kraft:80", "OPTIONS http://a.test", "GET /", "GET https://a.test/",
	"GET http://u:p@a.test/", "BREW http://a.test/", "CONNECT a.test", "GET http://a.test/ x" };

/* The control of each: with the token it is judged as ever. */
static void
MAC_03_whatever_is_asked_without_the_token_is_407(void **state)
{
	unsigned n = 0;

	(void)state;
	for (size_t i = 0; i < KR_COUNT(asked_for); i++) {
		expect_407(client_asks(asked_for[i], ""), true);
		expect_407(client_asks(asked_for[i], field_of(OTHER_TOKEN)), true);
		expect_407(client_asks(asked_for[i], "Authorization: Basic x\r\nProxy-Authorization: Bearer " TOKEN "\r\n"), true);
		n += 3;
	}
	expect_407(client_asks("HEAD http://a.test/", ""), false);
	expect_strangers(n + 1);
	for (size_t i = 8; i < KR_COUNT(asked_for); i++)
		expect_status(client_asks(asked_for[i], field_of(TOKEN)), 400);
	assert_false(is_readable(lab.control, QUIET_MS));
}

static void
MAC_03_what_is_no_head_is_407(void **state)
{
	static const char *const bytes[] = { "\x16\x03\x01\x02", "hello\r\n\r\n", "\r\n\r\n", "GET http://a.test/\nHost: x\n\n",
		"GET http://a.test/ HTTP/1.1\r\nX: \x01\r\n\r\n", "GET http://a.test/ HTTP/1.1\r\nno field\r\n\r\n" };
	static char large[KR_HEAD_BYTES + 64];

	(void)state;
	for (size_t i = 0; i < KR_COUNT(bytes); i++)
		expect_407(client_says(bytes[i]), true);
	memset(large, 'a', sizeof(large) - 1);
	memcpy(large, "GET http://a.test/", 18);
	expect_407(client_says(large), true);
	expect_strangers(KR_COUNT(bytes) + 1);
}

static void
MAC_06_with_the_token_it_is_a_proxy_and_the_token_stays_here(void **state)
{
	char text[1024], body[64];
	int client, server;
	struct kr_ask ask;
	struct kr_call *call;
	struct sockaddr_in name;
	socklen_t n = sizeof(name);

	(void)state;
	client = client_asks("GET http://a.test/p", field_of(TOKEN));
	assert_int_equal(getsockname(client, (struct sockaddr *)&name, &n), 0);
	ask = next_ask("a.test", 80);
	assert_int_equal(ask.client_port, ntohs(name.sin_port));
	server = connect_to(&ask, KR_ANSWER_DIRECT, "");
	expect(server, "GET /p HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
	say(server, OK "Content-Length: 2\r\n\r\nhi");
	expect_all(client, OK "Content-Length: 2\r\nConnection: close\r\n\r\nhi");
	expect_all(server, "");

	client = client_asks("GET http://a.test/", field_of(TOKEN));
	ask = next_ask("a.test", 80);
	server = connect_to(&ask, KR_ANSWER_UPSTREAM, "Basic eDp5");
	expect(server, "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\nProxy-Authorization: Basic eDp5\r\nConnection: close\r\n\r\n");
	(void)close(server);
	(void)close(client);

	(void)snprintf(text, sizeof(text), "CONNECT a.test:443 HTTP/1.1\r\n%s\r\nearly", field_of(TOKEN));
	client = client_says(text);
	server = serve("a.test", 443);
	expect(client, "HTTP/1.1 200 Connection Established\r\n\r\n");
	expect(server, "early");
	(void)close(client);
	expect_all(server, "");

	(void)snprintf(text, sizeof(text), "POST http://kraft/w/show HTTP/1.1\r\nContent-Length: 0\r\n%s\r\n", field_of(TOKEN));
	client = client_says(text);
	call = next_call(&ask);
	assert_int_equal(ask.client_port != 0, 1);
	assert_null(memmem(call, ask.bytes, TOKEN, 16));
	free(call);
	(void)snprintf(body, sizeof(body), "{}");
	answer_call(&ask, 200, 0, body);
	expect(client, "HTTP/1.1 200 OK\r\n");
	(void)close(client);
	assert_false(is_readable(lab.control, QUIET_MS));
}

/* What comes behind a head without the token is thrown away, the right token in it or not. */
static void
MAC_06_nothing_rides_behind_a_407(void **state)
{
	char text[2048];
	int client;

	(void)state;
	(void)snprintf(text, sizeof(text),
		"POST http://a.test/ HTTP/1.1\r\nContent-Length: 200\r\n\r\nGET http://b.test/ HTTP/1.1\r\n%s\r\n", field_of(TOKEN));
	client = client_says(text);
	say(client, "GET http://c.test/ HTTP/1.1\r\n");
	say(client, field_of(TOKEN));
	say(client, "\r\n");
	expect_407(client, true);
	expect_strangers(1);
	assert_false(is_readable(lab.control, QUIET_MS));
	/* And the other way round: who said it once has said it for that request. */
	(void)snprintf(text, sizeof(text), "GET http://a.test/ HTTP/1.1\r\n%s\r\nGET http://b.test/ HTTP/1.1\r\n\r\n", field_of(TOKEN));
	client = client_says(text);
	(void)close(serve("a.test", 80));
	expect_status(client, 502);
	assert_false(is_readable(lab.control, QUIET_MS));
}

/* Three times as many as there may be, that say nothing: the oldest go, and who knows the token is served at once. */
static void
MAC_06_a_flood_without_the_token_takes_no_place(void **state)
{
	static int fds[3 * KR_STRANGERS_MAX];
	unsigned gone = 0;
	int client, server;

	(void)state;
	for (size_t i = 0; i < KR_COUNT(fds); i++) {
		fds[i] = open_client();
		if (i % 100 == 0) {
			client = client_asks("CONNECT a.test:443", field_of(TOKEN));
			server = serve("a.test", 443);
			expect(client, "HTTP/1.1 200 Connection Established\r\n\r\n");
			(void)close(client);
			expect_all(server, "");
		}
	}
	/* They are taken in the order in which they came: once this one is served, all of them were. */
	client = client_asks("CONNECT a.test:443", field_of(TOKEN));
	(void)close(serve("a.test", 443));
	(void)close(client);
	for (size_t i = 0; i < KR_COUNT(fds); i++)
		gone += is_readable(fds[i], 0);
	assert_in_range(gone, 2 * KR_STRANGERS_MAX, 2 * KR_STRANGERS_MAX + 1);
	/* One that is served is none of them, however many there are. */
	client = client_asks("CONNECT a.test:443", field_of(TOKEN));
	server = serve("a.test", 443);
	expect(client, "HTTP/1.1 200 Connection Established\r\n\r\n");
	for (size_t i = 0; i < KR_COUNT(fds); i++) {
		(void)close(fds[i]);
		fds[i] = open_client();
	}
	say(server, "still here");
	expect(client, "still here");
	(void)close(client);
	expect_all(server, "");
	for (size_t i = 0; i < KR_COUNT(fds); i++)
		(void)close(fds[i]);
}

static void
MAC_06_a_stranger_has_five_seconds(void **state)
{
	int slow = client_says("CONNECT a.test:443 HTT"), waits = open_client();
	struct timespec begin, end;
	int64_t ms;

	(void)state;
	(void)clock_gettime(CLOCK_MONOTONIC, &begin);
	expect_all(slow, "");
	expect_all(waits, "");
	(void)clock_gettime(CLOCK_MONOTONIC, &end);
	ms = (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000;
	assert_in_range(ms, KR_STRANGER_MS - 1000, KR_STRANGER_MS + 3000);
}

/* It reads the token before it is confined, and does without none: there is nothing to serve then. */
static void
MAC_06_without_a_token_to_compare_it_does_not_serve(void **state)
{
	posix_spawn_file_actions_t actions;
	char *argv[] = { (char[]){ "kraft-egress" }, NULL }, *none[] = { NULL };
	int pair[2], status;
	pid_t pid;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(send(pair[0], TOKEN, KR_EGRESS_TOKEN - 1, 0), KR_EGRESS_TOKEN - 1);
	assert_int_equal(shutdown(pair[0], SHUT_WR), 0);
	assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
	assert_int_equal(posix_spawn_file_actions_adddup2(&actions, pair[1], 103), 0);
	assert_int_equal(posix_spawn_file_actions_adddup2(&actions, lab.listener, 104), 0);
	assert_int_equal(posix_spawn_file_actions_adddup2(&actions, 103, 3), 0);
	assert_int_equal(posix_spawn_file_actions_adddup2(&actions, 104, 4), 0);
	assert_int_equal(posix_spawn(&pid, KR_EGRESS, &actions, NULL, argv, none), 0);
	(void)posix_spawn_file_actions_destroy(&actions);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 79);
	(void)close(pair[0]);
	(void)close(pair[1]);
}

static void
MAC_06_it_is_confined_on_loopback_too(void **state)
{
	expect_407(client_asks("GET http://a.test/", ""), true);
	it_is_confined_and_seen_to_be(state);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		IN_LAB(a_tunnel_carries_early_bytes_and_half_closes),
		IN_LAB(the_servers_half_close_leaves_the_other_way_open), IN_LAB(HTTP_09_a_connect_cut_at_every_byte),
		IN_LAB(NET_06_a_request_inside_a_tunnel_is_no_request), IN_LAB(a_reset_is_passed_on),
		IN_LAB(a_refusal_is_one_line_that_says_why), IN_LAB(HTTP_10_a_refused_request_gets_no_100),
		IN_LAB(a_client_that_leaves_while_kraft_thinks_costs_nothing),
		IN_LAB(HTTP_01_to_15_malformed_requests_are_400_and_go_nowhere),
		IN_LAB(HTTP_06_09_a_plain_request_cut_at_every_byte_with_another_behind_it),
		IN_LAB(bodies_are_framed_anew), IN_LAB(an_old_client_gets_no_chunks),
		IN_LAB(responses_without_a_body_end_at_their_head),
		IN_LAB(HTTP_08_17_responses_that_cannot_be_passed_on_are_502),
		IN_LAB(HTTP_04_08_a_response_that_breaks_off_is_not_complete),
		IN_LAB(HTTP_03_a_request_with_a_bad_chunk_is_400),
		IN_LAB(HTTP_04_a_request_that_breaks_off_is_not_complete),
		IN_LAB(HTTP_10_expect_100_continue_is_passed_on), IN_LAB(a_tunnel_through_the_upstream_proxy),
		IN_LAB(a_plain_request_through_the_upstream_proxy), IN_LAB(much_goes_through_unchanged),
		IN_LAB(HTTP_14_a_slow_client_costs_no_memory),
		IN_LAB(a_thousand_idle_tunnels_cost_little_and_wake_nobody),
		IN_LAB(many_ask_at_once_and_are_answered_in_any_order),
		IN_LAB(only_a_listener_on_loopback_can_be_handed_over), IN_LAB(only_a_connected_socket_is_a_connection), IN_LAB(channels_are_few),
		IN_LAB(a_listener_lives_as_long_as_its_channel), IN_LAB(OS_LCH_06_a_new_process_goes_on),
		IN_LAB(it_is_confined_and_seen_to_be), IN_LAB(an_answer_that_nobody_asked_for_ends_it),
		IN_LAB(CHAN_13_a_channel_is_of_the_same_user),
		IN_LAB(CHN_05_a_call_is_read_here_and_answered_by_kraft), IN_LAB(CHN_05_a_call_cut_at_every_byte),
		IN_LAB(CHAN_02_no_header_crosses), IN_LAB(CHAN_08_what_is_no_call_is_refused_with_its_route),
		IN_LAB(CHAN_07_a_long_route_is_cut), IN_LAB(CHAN_06_what_is_no_form_is_answered_here),
		IN_LAB(CHAN_05_a_large_body_is_counted_and_not_kept),
		IN_LAB(CHN_05_a_client_that_expects_a_word_gets_it), IN_LAB(CHAN_05_more_calls_than_four_wait),
		IN_LAB(CHAN_05_slow_bodies_hold_no_host_up), IN_LAB(a_large_answer_reaches_a_slow_client),
		IN_LAB(an_answer_of_the_other_kind_ends_it),
		ON_LOOPBACK(MAC_03_whatever_is_asked_without_the_token_is_407), ON_LOOPBACK(MAC_03_what_is_no_head_is_407),
		ON_LOOPBACK(MAC_06_with_the_token_it_is_a_proxy_and_the_token_stays_here),
		ON_LOOPBACK(MAC_06_nothing_rides_behind_a_407), ON_LOOPBACK(MAC_06_a_flood_without_the_token_takes_no_place),
		ON_LOOPBACK(MAC_06_a_stranger_has_five_seconds), ON_LOOPBACK(MAC_06_without_a_token_to_compare_it_does_not_serve),
		ON_LOOPBACK(MAC_06_it_is_confined_on_loopback_too),
		HANDED(a_tunnel_carries_early_bytes_and_half_closes),
		HANDED(the_servers_half_close_leaves_the_other_way_open),
		HANDED(HTTP_09_a_connect_cut_at_every_byte),
		HANDED(NET_06_a_request_inside_a_tunnel_is_no_request),
		HANDED(a_reset_is_passed_on),
		HANDED(a_refusal_is_one_line_that_says_why),
		HANDED(HTTP_10_a_refused_request_gets_no_100),
		HANDED(a_client_that_leaves_while_kraft_thinks_costs_nothing),
		HANDED(HTTP_01_to_15_malformed_requests_are_400_and_go_nowhere),
		HANDED(HTTP_06_09_a_plain_request_cut_at_every_byte_with_another_behind_it),
		HANDED(bodies_are_framed_anew),
		HANDED(an_old_client_gets_no_chunks),
		HANDED(responses_without_a_body_end_at_their_head),
		HANDED(HTTP_08_17_responses_that_cannot_be_passed_on_are_502),
		HANDED(HTTP_04_08_a_response_that_breaks_off_is_not_complete),
		HANDED(HTTP_03_a_request_with_a_bad_chunk_is_400),
		HANDED(HTTP_04_a_request_that_breaks_off_is_not_complete),
		HANDED(HTTP_10_expect_100_continue_is_passed_on),
		HANDED(a_tunnel_through_the_upstream_proxy),
		HANDED(a_plain_request_through_the_upstream_proxy),
		HANDED(much_goes_through_unchanged),
		HANDED(HTTP_14_a_slow_client_costs_no_memory),
		HANDED(a_thousand_idle_tunnels_cost_little_and_wake_nobody),
		HANDED(many_ask_at_once_and_are_answered_in_any_order),
		HANDED(an_answer_that_nobody_asked_for_ends_it),
		HANDED(CHN_05_a_call_is_read_here_and_answered_by_kraft),
		HANDED(CHN_05_a_call_cut_at_every_byte),
		HANDED(CHAN_02_no_header_crosses),
		HANDED(CHAN_08_what_is_no_call_is_refused_with_its_route),
		HANDED(CHAN_07_a_long_route_is_cut),
		HANDED(CHAN_06_what_is_no_form_is_answered_here),
		HANDED(CHAN_05_a_large_body_is_counted_and_not_kept),
		HANDED(CHN_05_a_client_that_expects_a_word_gets_it),
		HANDED(CHAN_05_more_calls_than_four_wait),
		HANDED(CHAN_05_slow_bodies_hold_no_host_up),
		HANDED(a_large_answer_reaches_a_slow_client),
		HANDED(a_reset_of_one_that_was_handed_over_is_passed_on),
		IN_LAB(HTTP_12_a_head_has_thirty_seconds), /* last: only in a full-length run */
	};
	size_t n = KR_COUNT(tests) - (getenv("KRAFT_ALL") ? 0 : 1);

	(void)signal(SIGPIPE, SIG_IGN);
	return _cmocka_run_group_tests("tests", tests, n, NULL, NULL);
}
