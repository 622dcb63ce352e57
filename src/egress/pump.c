/*
 * A tunnel copies through the loop's one buffer: read, write, nothing kept. When a read fills the whole
 * buffer there is much to move, and that direction changes to a pipe and splice(2), which copies nothing;
 * when the pipe has run dry it goes back to the pool and copying goes on, because for small amounts a copy
 * costs less than two splices. Where there is no splice (macOS) it is copied all the time.
 *
 * Each call does a bounded number of rounds, so that one tunnel does not keep the others waiting.
 */
#include "egress/pump.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/portable.h"
#include "egress/tls.h"

enum { ROUNDS = 8, SEND = MSG_DONTWAIT | MSG_NOSIGNAL };

/* ---- sending ---- */

static size_t
total(const struct iovec *parts, size_t n)
{
	size_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += parts[i].iov_len;
	return bytes;
}

/* Everything behind the first `skip` bytes of the parts. */
static bool
hold(struct kr_side *side, const struct iovec *parts, size_t n, size_t skip)
{
	size_t old = side->held_n - side->held_at, more = total(parts, n) - skip;
	char *bytes;

	if (more == 0)
		return true;
	bytes = old + more <= KR_HELD_HIGH ? malloc(old + more) : NULL;
	if (!bytes)
		return false;
	if (old)
		memcpy(bytes, side->held + side->held_at, old);
	free(side->held);
	side->held = bytes;
	side->held_at = 0;
	side->held_n = (uint32_t)(old + more);
	bytes += old;
	for (size_t i = 0; i < n; i++) {
		size_t cut = skip < parts[i].iov_len ? skip : parts[i].iov_len;

		skip -= cut;
		memcpy(bytes, (const char *)parts[i].iov_base + cut, parts[i].iov_len - cut);
		bytes += parts[i].iov_len - cut;
	}
	return true;
}

static ssize_t
send_parts(int fd, const struct iovec *parts, size_t n)
{
	struct msghdr message = { .msg_iov = (struct iovec *)(uintptr_t)parts };
	ssize_t sent;

	message.msg_iovlen = (__typeof__(message.msg_iovlen))n; /* a few; int on macOS */
	do
		sent = n == 1 ? send(fd, parts[0].iov_base, parts[0].iov_len, SEND) : sendmsg(fd, &message, SEND);
	while (sent < 0 && errno == EINTR);
	if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	return sent;
}

bool
kr_side_put(struct kr_side *side, const struct iovec *parts, size_t n)
{
	ssize_t sent = side->held ? 0 : send_parts(side->watch.fd, parts, n);

	return sent >= 0 && hold(side, parts, n, (size_t)sent);
}

bool
kr_side_send(struct kr_side *side, const struct iovec *parts, size_t n)
{
	return side->tls ? kr_tls_send(side, parts, n) : kr_side_put(side, parts, n);
}

bool
kr_side_flush(struct kr_side *side)
{
	struct iovec part = { side->held + side->held_at, side->held_n - side->held_at };
	ssize_t sent;

	if (!side->held)
		return true;
	sent = send_parts(side->watch.fd, &part, 1);
	if (sent < 0)
		return false;
	side->held_at += (uint32_t)sent;
	if (side->held_at == side->held_n) {
		free(kr_steal(side->held));
		side->held_at = side->held_n = 0;
	}
	return true;
}

void
kr_side_shut(struct kr_side *side)
{
	if (!side->shut && side->watch.fd >= 0)
		(void)shutdown(side->watch.fd, SHUT_WR); /* gone already: the next read says so */
	side->shut = true;
}

/* ---- pipes ---- */

static void
take_pipe(struct kr_egress *egress, struct kr_side *side)
{
	struct kr_pipe *pipe;
	int fds[2];

	if (egress->pipe_n == 0 && egress->pipes_made == KR_PIPES_MAX)
		return;
	pipe = malloc(sizeof(*pipe));
	if (!pipe)
		return;
	if (egress->pipe_n) {
		*pipe = egress->pipes[--egress->pipe_n];
	} else if (kr_splice_pipe(fds, KR_PIPE_BYTES) == 0) {
		*pipe = (struct kr_pipe){ fds[0], fds[1] };
		egress->pipes_made++;
	} else {
		free(kr_steal(pipe));
	}
	side->pipe = pipe;
}

void
kr_side_drop_pipe(struct kr_egress *egress, struct kr_side *side)
{
	if (!side->pipe)
		return;
	if (side->piped == 0 && egress->pipe_n < KR_PIPES_KEPT) {
		egress->pipes[egress->pipe_n++] = *side->pipe;
	} else {
		(void)close(side->pipe->read_fd);
		(void)close(side->pipe->write_fd);
		egress->pipes_made--;
		side->piped = 0;
	}
	free(kr_steal(side->pipe));
}

/* ---- a tunnel ---- */

enum move { MOVED, DRY, BLOCKED, BROKEN };

static enum move
copy(struct kr_egress *egress, struct kr_side *from, struct kr_side *to)
{
	ssize_t got = recv(from->watch.fd, egress->scratch, sizeof(egress->scratch), MSG_DONTWAIT);
	struct iovec part = { egress->scratch, (size_t)got };

	if (got < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? DRY : BROKEN;
	if (got == 0) {
		from->ended = true;
		return DRY;
	}
	if (!kr_side_send(to, &part, 1))
		return BROKEN;
	if (!kr_side_is_clear(to))
		return BLOCKED;
	if (part.iov_len < sizeof(egress->scratch))
		return DRY;
	take_pipe(egress, from);
	return MOVED;
}

static enum move
drain_pipe(struct kr_side *from, struct kr_side *to)
{
	while (from->piped) {
		ssize_t put = kr_splice(from->pipe->read_fd, to->watch.fd, from->piped);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			return put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? BLOCKED : BROKEN;
		from->piped -= (uint32_t)put;
	}
	return MOVED;
}

static enum move
through_pipe(struct kr_egress *egress, struct kr_side *from, struct kr_side *to)
{
	ssize_t got = kr_splice(from->watch.fd, from->pipe->write_fd, KR_PIPE_BYTES);

	if (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
		return BROKEN;
	if (got <= 0) {
		from->ended = got == 0;
		kr_side_drop_pipe(egress, from);
		return DRY;
	}
	from->piped = (uint32_t)got;
	return drain_pipe(from, to);
}

static enum move
move(struct kr_egress *egress, struct kr_side *from, struct kr_side *to)
{
	enum move done = kr_side_flush(to) ? MOVED : BROKEN;

	if (done == MOVED && !kr_side_is_clear(to))
		return BLOCKED;
	if (done == MOVED && from->piped)
		done = drain_pipe(from, to);
	for (int i = 0; i < ROUNDS && done == MOVED && !from->ended; i++)
		done = from->pipe ? through_pipe(egress, from, to) : copy(egress, from, to);
	if (from->ended && !from->piped && kr_side_is_clear(to) && done != BROKEN)
		kr_side_shut(to);
	return done;
}

void
kr_tunnel_ready(struct kr_connection *connection, bool up, bool down)
{
	struct kr_side *client = &connection->client, *server = &connection->server;

	kr_connection_set_deadline(connection, KR_TUNNEL_IDLE_MS);
	if ((up && move(connection->egress, client, server) == BROKEN) ||
		(down && move(connection->egress, server, client) == BROKEN))
		kr_connection_end(connection, true);
	else if (client->shut && server->shut)
		kr_connection_end(connection, false);
}

int
kr_tunnel_events(const struct kr_side *side, const struct kr_side *other)
{
	bool waits = !kr_side_is_clear(side) || other->piped;
	bool reads = !side->ended && kr_side_is_clear(other) && !side->piped;

	return (waits ? KR_POLL_OUT : 0) | (reads ? KR_POLL_IN : 0);
}
