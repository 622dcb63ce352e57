#include "guest/pump.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guest/sys.h"

enum { WIRE_BYTES = 64 << 10, WRITE_MOST = 16 << 10, ROUNDS = 4 };

bool
kg_pump_unblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

int
kg_pump_init(struct kg_pump *pump, bool is_outside, bool terminal, int in, int out)
{
	char *rings = mmap(NULL, KG_RINGS_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (rings == MAP_FAILED || !kg_pump_unblock(in) || !kg_pump_unblock(out))
		return errno;
	kg_mux_init(&pump->mux, is_outside, terminal, rings);
	for (size_t i = 0; i < KG_STREAMS_MAX; i++)
		pump->end[i].fd = -1;
	pump->in = in;
	pump->out = out;
	return 0;
}

void
kg_pump_attach(struct kg_pump *pump, unsigned stream, int fd, bool is_socket)
{
	pump->end[stream] = (struct kg_pump_end){ .fd = fd, .is_socket = is_socket };
}

/* The one at the far end sees an abrupt end as one, where its kind of socket can show it. */
static void
close_end(struct kg_pump_end *end, bool abruptly)
{
	const struct linger now = { .l_onoff = 1 };

	if (end->fd < 0)
		return;
	if (abruptly && end->is_socket)
		(void)setsockopt(end->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)); /* else it is a plain close */
	close(end->fd);
	end->fd = -1;
}

void
kg_pump_drop(struct kg_pump *pump, unsigned stream)
{
	if (pump->dropping)
		pump->dropping(pump, stream);
	close_end(&pump->end[stream], true);
	kg_mux_close(&pump->mux, stream);
}

bool
kg_pump_is_dry(const struct kg_pump *pump, unsigned stream)
{
	const struct kg_stream *s = &pump->mux.stream[stream];

	return pump->end[stream].fd < 0 || (s->n == 0 && (s->got_end || s->got_closed || pump->in < 0));
}

/* ---- both ways of one stream ---- */

static bool
may_say(const struct kg_pump *pump, unsigned stream)
{
	const struct kg_stream *s = &pump->mux.stream[stream];

	return s->open && !s->sent_end && !s->end_due && !s->got_closed;
}

/*
 * After each step: what came to its end is closed. A descriptor that only one way is left of is shut for the
 * other one, which only a socket can be.
 */
static void
settle(struct kg_pump *pump, unsigned stream)
{
	struct kg_pump_end *end = &pump->end[stream];
	const struct kg_stream *s = &pump->mux.stream[stream];
	bool is_dry = s->n == 0 && (s->got_end || pump->in < 0);

	if (!s->open || end->fd < 0)
		return;
	if (s->got_closed && !s->got_end) {
		kg_pump_drop(pump, stream);
	} else if (is_dry && !may_say(pump, stream)) {
		close_end(end, false);
		kg_mux_close(&pump->mux, stream);
	} else if (is_dry && end->is_socket && !end->shut) {
		(void)shutdown(end->fd, SHUT_WR); /* broken already: the next read says so */
		end->shut = true;
	}
}

static bool
is_for_later(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/*
 * EIO is how a pseudo-terminal says that nobody holds its other side. Inside, where it is the command's, that ends
 * one way; outside nobody is left to see any of it, and the one inside has to be hung up.
 */
static bool
is_end(const struct kg_pump *pump, unsigned stream, ssize_t n)
{
	const bool is_none = n == 0 || (n < 0 && errno == EIO);

	if (pump->mux.is_outside && stream == KG_STREAM_TERMINAL)
		return false;
	if (is_none && pump->ended)
		pump->ended();
	return is_none && !pump->end[stream].is_broken;
}

static void
read_end(struct kg_pump *pump, unsigned stream)
{
	const int fd = pump->end[stream].fd;
	size_t most;
	char *place = kg_mux_place(&pump->mux, stream, &most);
	ssize_t n;

	if (!place)
		return;
	n = stream == KG_STREAM_TALK && pump->read_talk ? pump->read_talk(pump, fd, place, most)
													: read(fd, place, most);
	if (n > 0)
		kg_mux_put(&pump->mux, stream, (size_t)n);
	else if (is_end(pump, stream, n))
		kg_mux_end(&pump->mux, stream);
	else if (n == 0 || !is_for_later())
		kg_pump_drop(pump, stream);
}

static void
write_end(struct kg_pump *pump, unsigned stream)
{
	for (int i = 0; i < ROUNDS; i++) {
		size_t n;
		const char *bytes = kg_mux_front(&pump->mux, stream, &n);
		const int fd = pump->end[stream].fd;
		ssize_t done;

		if (n == 0)
			return;
		n = n < WRITE_MOST ? n : WRITE_MOST;
		done = stream == KG_STREAM_TALK && pump->write_talk ? pump->write_talk(pump, fd, bytes, n)
															: write(fd, bytes, n);
		if (done < 0 && !is_for_later())
			kg_pump_drop(pump, stream);
		if (done <= 0)
			return;
		kg_mux_passed(&pump->mux, stream, (size_t)done);
	}
}

/* ---- the pipes ---- */

static bool
read_wire(struct kg_pump *pump)
{
	static char bytes[WIRE_BYTES];
	ssize_t n = read(pump->in, bytes, sizeof(bytes));

	if (n > 0)
		return kg_mux_take(&pump->mux, bytes, (size_t)n);
	if (n == 0 || !is_for_later()) {
		close(pump->in);
		pump->in = -1;
	}
	return true;
}

static void
write_wire(struct kg_pump *pump)
{
	size_t n;
	const char *bytes = kg_mux_out(&pump->mux, &n);
	ssize_t done = n ? write(pump->out, bytes, n) : 0;

	if (done > 0)
		kg_mux_sent(&pump->mux, (size_t)done);
	if (done >= 0 || is_for_later())
		return;
	close(pump->out);
	pump->out = -1;
}

/* ---- a round ---- */

static struct pollfd
watch_end(struct kg_pump *pump, unsigned stream)
{
	const struct kg_pump_end *end = &pump->end[stream];
	const struct kg_stream *s = &pump->mux.stream[stream];
	size_t most;
	short events = 0;

	if (end->fd < 0 || !s->open)
		return (struct pollfd){ .fd = -1 };
	if (s->n)
		events |= POLLOUT;
	if (pump->out >= 0 && may_say(pump, stream) && kg_mux_place(&pump->mux, stream, &most))
		events |= POLLIN;
	/* What is only written to is watched for its reader's end; the rest would tell an end that nobody can take now
	 * again and again. */
	if (!events && s->sent_end && !s->got_end && !end->is_socket)
		return (struct pollfd){ .fd = end->fd };
	return (struct pollfd){ .fd = events ? end->fd : -1, .events = events };
}

void
kg_pump_watch(struct kg_pump *pump, struct pollfd at[KG_PUMP_PLACES])
{
	size_t n;

	for (unsigned i = 0; i < KG_STREAMS_MAX; i++)
		at[i] = watch_end(pump, i);
	(void)kg_mux_out(&pump->mux, &n);
	at[KG_PUMP_IN] = (struct pollfd){ .fd = pump->in, .events = POLLIN };
	/* Also without a word to say: its end is the other's. */
	at[KG_PUMP_OUT] = (struct pollfd){ .fd = pump->out, .events = n ? POLLOUT : 0 };
}

static void
handle_end(struct kg_pump *pump, unsigned stream, const struct pollfd *at)
{
	/* The number may have been given to another one meanwhile. */
	if (at->fd < 0 || pump->end[stream].fd != at->fd || !at->revents)
		return;
	if (at->revents & POLLERR && !(at->events & POLLIN) && pump->mux.stream[stream].n == 0) {
		kg_pump_drop(pump, stream); /* its reader is gone */
		return;
	}
	if (at->events & POLLOUT)
		write_end(pump, stream);
	if (at->events & POLLIN && at->revents & ~POLLOUT && pump->end[stream].fd == at->fd)
		read_end(pump, stream);
}

bool
kg_pump_handle(struct kg_pump *pump, const struct pollfd at[KG_PUMP_PLACES])
{
	if (pump->in >= 0 && at[KG_PUMP_IN].revents && !read_wire(pump))
		return false;
	pump->turn = (pump->turn + 1) % KG_STREAMS_MAX;
	for (unsigned i = 0; i < KG_STREAMS_MAX; i++) {
		unsigned stream = (i + pump->turn) % KG_STREAMS_MAX;

		handle_end(pump, stream, &at[stream]);
		settle(pump, stream);
	}
	if (pump->out >= 0)
		write_wire(pump);
	return true;
}
