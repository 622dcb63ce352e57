#include "guest/pump_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest/pump.h"
#include "guest/sys.h"

enum { ACCEPT_ROUNDS = 16, AGAIN_MS = 500, AT_ROUTE = KG_PUMP_PLACES, AT_LISTENER, PLACES };

/* One per process, too large for a stack. */
static struct {
	struct kg_pump pump; /* first: the hook gets it */
	int route, listener; /* -1: none */
	bool no_room;        /* for one more connection, for a while */
	bool bye;
} inside;

/* What process 1 ends with: written before the pipe is shut, read after that was seen. */
static volatile int exit_code = KG_EXIT_REFUSED;

/* ---- before the thread ---- */

int
kg_inside_open(struct kg_inside *out, bool has_route)
{
	int pair[2], nothing;

	*out = (struct kg_inside){ -1, -1, -1, -1, -1, -1 };
	out->in = fcntl(0, F_DUPFD_CLOEXEC, 3);
	out->out = fcntl(1, F_DUPFD_CLOEXEC, 3);
	nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (out->in < 0 || out->out < 0 || nothing < 0 || dup2(nothing, 0) < 0 || dup2(nothing, 1) < 0)
		return errno;
	close(nothing);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return errno;
	out->pipe = pair[0];
	out->pipe_far = pair[1];
	if (!has_route)
		return 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return errno;
	out->route = pair[0];
	out->route_far = pair[1];
	return 0;
}

/* The command's ends of the three pipes go to the init as they do from a launcher. */
static int
give_streams(struct kg_pump *pump, int talk)
{
	const struct kg_message message = { .type = KG_STREAMS };
	int theirs[KG_DESCRIPTORS], failed;

	for (int i = 0; i < KG_DESCRIPTORS; i++) {
		int ends[2];

		if (pipe2(ends, O_CLOEXEC) < 0 || !kg_pump_unblock(ends[i == 0]))
			return errno;
		theirs[i] = ends[i != 0];
		kg_pump_attach(pump, KG_STREAM_STDIN + (unsigned)i, ends[i == 0], false);
	}
	failed = kg_send_bytes(talk, &message, sizeof(message), theirs, KG_COUNT(theirs), MSG_DONTWAIT);
	for (int i = 0; i < KG_DESCRIPTORS; i++)
		close(theirs[i]);
	return failed;
}

/* ---- what comes with a descriptor ---- */

static void
set_size(void)
{
	const struct kg_mux *mux = &inside.pump.mux;
	const struct winsize size = { .ws_row = (unsigned short)(mux->size_value >> 16),
		.ws_col = (unsigned short)(mux->size_value & 0xffff) };
	const int master = inside.pump.end[KG_STREAM_TERMINAL].fd;

	if (mux->size_came && master >= 0)
		(void)ioctl(master, TIOCSWINSZ, &size); /* it ended, then */
}

/* The init's words, and with one of them the terminal. */
static ssize_t
read_talk(struct kg_pump *pump, int fd, char *out, size_t most)
{
	int master;
	ssize_t n = kg_receive(fd, out, most, &master, 1);

	if (master >= 0 && kg_pump_unblock(master)) {
		kg_pump_attach(pump, KG_STREAM_TERMINAL, master, false);
		set_size();
	}
	return n;
}

/* ---- the way out ---- */

static void
take_listener(void)
{
	char word;

	if (kg_receive(inside.route, &word, 1, &inside.listener, 1) == 1 && word == KG_HAND_OVER && inside.listener >= 0) {
		inside.pump.mux.route_due = true;
		return;
	}
	close(inside.route);
	inside.route = -1;
}

/* What the outside says of it is what the proxy says elsewhere. */
static void
tell_route(void)
{
	const char taken = KG_TAKEN;

	inside.pump.mux.route_came = false;
	if (inside.pump.mux.route_value == 0 && inside.route >= 0 &&
		send(inside.route, &taken, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1)
		return;
	if (inside.route >= 0)
		close(inside.route);
	if (inside.listener >= 0)
		close(inside.listener);
	inside.route = inside.listener = -1;
}

static void
accept_some(void)
{
	const int on = 1;

	for (int i = 0; i < ACCEPT_ROUNDS; i++) {
		int fd = accept4(inside.listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		unsigned stream = fd < 0 ? 0 : kg_mux_open(&inside.pump.mux);

		inside.no_room = fd < 0 && errno != EAGAIN && errno != ECONNABORTED;
		if (fd < 0)
			return;
		if (!stream) {
			close(fd); /* cannot happen: it was looked whether there is a place */
			return;
		}
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* only slower without */
		kg_pump_attach(&inside.pump, stream, fd, true);
		if (!kg_mux_has_place(&inside.pump.mux))
			return;
	}
}

/* ---- the thread ---- */

static bool
is_all_said(void)
{
	static const unsigned from[] = { KG_STREAM_TALK, KG_STREAM_STDOUT, KG_STREAM_STDERR, KG_STREAM_TERMINAL };

	for (size_t i = 0; i < KG_COUNT(from); i++) {
		const struct kg_stream *s = &inside.pump.mux.stream[from[i]];

		if (s->open && !s->sent_end && !s->sent_closed && inside.pump.end[from[i]].fd >= 0)
			return false;
	}
	return inside.pump.mux.stream[KG_STREAM_TALK].sent_end;
}

static void
look_around(void)
{
	struct kg_mux *mux = &inside.pump.mux;

	if (mux->route_came)
		tell_route();
	if (mux->size_came) {
		set_size();
		mux->size_came = inside.pump.end[KG_STREAM_TERMINAL].fd < 0; /* kept for when there is one */
	}
	if (!inside.bye && is_all_said()) {
		inside.bye = true;
		mux->bye_due = true;
	}
}

static void *
serve(void *context)
{
	static struct pollfd at[PLACES];

	(void)context;
	for (;;) {
		kg_pump_watch(&inside.pump, at);
		at[AT_ROUTE] = (struct pollfd){ inside.listener < 0 ? inside.route : -1, POLLIN, 0 };
		at[AT_LISTENER] = (struct pollfd){
			inside.no_room || !kg_mux_has_place(&inside.pump.mux) ? -1 : inside.listener, POLLIN, 0
		};
		if (poll(at, PLACES, inside.no_room ? AGAIN_MS : -1) == 0)
			inside.no_room = false;
		if (!kg_pump_handle(&inside.pump, at) || inside.pump.in < 0 || inside.pump.out < 0)
			_exit(exit_code);
		if (at[AT_ROUTE].revents)
			take_listener();
		if (at[AT_LISTENER].revents)
			accept_some();
		look_around();
	}
}

int
kg_inside_start(const struct kg_inside *opened, bool terminal)
{
	pthread_t thread;
	int failed = kg_pump_init(&inside.pump, false, terminal, opened->in, opened->out);

	inside.route = opened->route_far;
	inside.listener = -1;
	inside.pump.read_talk = read_talk;
	if (failed)
		return failed;
	failed = give_streams(&inside.pump, opened->pipe_far);
	if (failed)
		return failed;
	kg_pump_attach(&inside.pump, KG_STREAM_TALK, opened->pipe_far, true);
	if (!kg_pump_unblock(opened->pipe_far))
		return errno;
	return pthread_create(&thread, NULL, serve, NULL);
}

/*
 * Whoever still holds the command's streams would keep them from ending. What cannot be ended (a process in a call
 * that hangs) is waited for; kraft ends the container, then.
 */
void
kg_inside_leave(int pipe, int code)
{
	exit_code = code;
	do
		(void)kill(-1, SIGKILL);
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR);
	for (int fd = 0; fd < KG_DESCRIPTORS; fd++)
		close(fd);
	(void)shutdown(pipe, SHUT_WR);
	for (;;)
		pause();
}
