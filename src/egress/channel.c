/*
 * The other side is the worker's: everything that it sends is checked, every descriptor closed that is not
 * the one asked for. There is room for a few more than one in a message, so that two are seen as two; what
 * does not fit is closed by the kernel, which says so.
 */
#include "egress/channel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/portable.h"
#include "egress/connection.h"
#include "guest/wire.h"

enum { ROOM = 4, ACCEPT_ROUNDS = 64, RETRY_MS = 1000 };

/* ---- handing over ---- */

union room {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(ROOM * sizeof(int))];
};

/* How many came; the first stays open in *first. */
static size_t
take_first(struct msghdr *message, int *first)
{
	size_t count = 0;
	int fd;

	for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at; at = CMSG_NXTHDR(message, at)) {
		if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= at->cmsg_len; i++) {
			memcpy(&fd, CMSG_DATA(at) + i * sizeof(int), sizeof(fd));
			if (count++ == 0)
				*first = fd;
			else
				(void)close(fd);
		}
	}
	return count;
}

enum kr_hand_over
kr_hand_over_read(int channel_fd, int *fd, uint32_t *number)
{
	union room room;
	char bytes[KG_NUMBERED_BYTES]; /* no more, as two that carry nothing come together */
	struct iovec part = { bytes, sizeof(bytes) };
	struct msghdr message = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = room.bytes, .msg_controllen = sizeof(room.bytes)
	};
	ssize_t got = kr_socket_receive(channel_fd, &message);
	size_t count;

	*fd = -1;
	if (got < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? KR_HAND_OVER_NONE
																		 : KR_HAND_OVER_BAD;
	count = take_first(&message, fd);
	if (count == 1 && !(message.msg_flags & MSG_CTRUNC)) {
		if (got == 1 && bytes[0] == KG_HAND_OVER)
			return KR_HAND_OVER_LISTENER;
		memcpy(number, bytes + 1, sizeof(*number));
		if (got == KG_NUMBERED_BYTES && bytes[0] == KG_CONNECTION)
			return KR_HAND_OVER_CONNECTION;
	}
	if (got == KG_NUMBERED_BYTES && bytes[0] == KG_RESET && count == 0 && !(message.msg_flags & MSG_CTRUNC)) {
		memcpy(number, bytes + 1, sizeof(*number));
		return KR_HAND_OVER_RESET;
	}
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
	return KR_HAND_OVER_BAD;
}

static bool
option_is(int fd, int option, int wanted)
{
	int value = 0;
	socklen_t n = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, option, &value, &n) == 0 && n == sizeof(value) && value == wanted;
}

/* macOS answers with the option's bit. */
static bool
is_listening(int fd)
{
	int value = 0;
	socklen_t n = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &value, &n) == 0 && n == sizeof(value) && value != 0;
}

bool
kr_listener_check(int fd)
{
	struct sockaddr_in name = { 0 };
	socklen_t n = sizeof(name);

	return kr_socket_is_tcp4(fd) && is_listening(fd) &&
		   getsockname(fd, (struct sockaddr *)&name, &n) == 0 && n == sizeof(name) &&
		   name.sin_family == AF_INET && name.sin_addr.s_addr == htonl(INADDR_LOOPBACK);
}

bool
kr_channel_peer_check(int fd, uid_t uid)
{
	uid_t peer;

	return kr_socket_peer(fd, &peer) == 0 && peer == uid;
}

/* One that is not connected has nobody at its other end. */
bool
kr_handed_connection_check(int fd, uid_t uid)
{
	struct sockaddr_storage name = { 0 };
	socklen_t n = sizeof(name);

	return getsockname(fd, (struct sockaddr *)&name, &n) == 0 && name.ss_family == AF_UNIX &&
		   option_is(fd, SO_TYPE, SOCK_STREAM) && option_is(fd, SO_ACCEPTCONN, 0) && kr_channel_peer_check(fd, uid);
}

/* ---- channels ---- */

static void
close_channel(struct kr_egress *egress, struct kr_channel *channel)
{
	struct kr_channel **at = &egress->open_channels;

	while (*at != channel)
		at = &(*at)->next;
	*at = channel->next;
	egress->channel_n--;
	for (size_t i = 0; channel->hands_over && i < KR_CONNECTIONS_MAX; i++)
		if (egress->connections[i] && egress->connections[i]->channel == channel)
			egress->connections[i]->channel = NULL;
	kr_watch_close(egress, &channel->watch);
	kr_watch_close(egress, &channel->listener);
	channel->next = egress->dead_channels;
	egress->dead_channels = channel;
}

void
kr_channels_close(struct kr_egress *egress)
{
	while (egress->open_channels)
		close_channel(egress, egress->open_channels);
}

void
kr_channel_free_dead(struct kr_egress *egress)
{
	while (egress->dead_channels) {
		struct kr_channel *dead = egress->dead_channels;

		egress->dead_channels = dead->next;
		free(dead);
	}
}

static void
add_channel(struct kr_egress *egress, int fd)
{
	struct kr_channel *channel = kr_channel_peer_check(fd, egress->uid) ? calloc(1, sizeof(*channel)) : NULL;

	if (!channel) {
		(void)close(fd);
		return;
	}
	channel->watch = (struct kr_watch){ .fd = fd, .kind = KR_WATCH_CHANNEL, .events = -1 };
	channel->listener = (struct kr_watch){ .fd = -1, .kind = KR_WATCH_LISTENER, .events = -1 };
	channel->next = egress->open_channels;
	egress->open_channels = channel;
	egress->channel_n++;
	if (!kr_watch_set(egress, &channel->watch, KR_POLL_IN))
		close_channel(egress, channel);
}

/* No room in the system: a pause, or the listener would wake us again and again. */
static void
pause_accepting(struct kr_egress *egress)
{
	egress->paused = true;
	kr_egress_due(egress, egress->now_ms + RETRY_MS);
}

/* -1: there is none, now or for a while. from: an IPv4 listener's; NULL: nobody wants it. */
static int
accept_one(struct kr_egress *egress, int listener_fd, struct sockaddr_in *from)
{
	int fd;

	do
		fd = kr_socket_accept(listener_fd, true, from);
	while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
	if (fd < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
		pause_accepting(egress);
	return fd;
}

void
kr_channels_accept(struct kr_egress *egress)
{
	while (egress->channel_n < KR_CHANNELS_MAX) {
		int fd = accept_one(egress, egress->channels.fd, NULL);

		if (fd < 0)
			break;
		add_channel(egress, fd);
	}
}

/* On accepted sockets, too: they take it over from the listener. */
static void
prepare_listener(int fd)
{
	const int on = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* only slower without */
}

static bool
take_listener(struct kr_egress *egress, struct kr_channel *channel, int fd)
{
	const char taken = KG_TAKEN;
	bool first = channel->listener.fd < 0;

	if (!first || !kr_listener_check(fd) || fcntl(fd, F_SETFL, O_NONBLOCK) < 0) {
		(void)close(fd);
		return false;
	}
	prepare_listener(fd);
	channel->listener.fd = fd;
	return kr_watch_set(egress, &channel->listener, KR_POLL_IN) &&
		   send(channel->watch.fd, &taken, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

int
kr_channels_open_door(struct kr_egress *egress, int fd)
{
	struct kr_channel *channel = calloc(1, sizeof(*channel));

	if (!channel)
		return -1;
	prepare_listener(fd);
	channel->watch = (struct kr_watch){ .fd = -1, .kind = KR_WATCH_CHANNEL, .events = -1 };
	channel->listener = (struct kr_watch){ .fd = fd, .kind = KR_WATCH_LISTENER, .events = -1 };
	egress->open_channels = channel;
	egress->channel_n = 1;
	return kr_watch_set(egress, &channel->listener, KR_POLL_IN) ? 0 : -1;
}

static bool
take_handed(struct kr_egress *egress, struct kr_channel *channel, int fd, uint32_t number)
{
	struct kr_connection *connection;

	if (!kr_handed_connection_check(fd, egress->uid) || fcntl(fd, F_SETFL, O_NONBLOCK) < 0) {
		(void)close(fd);
		return false;
	}
	channel->hands_over = true;
	connection = kr_connection_accept(egress, fd, 0);
	if (connection) {
		connection->channel = channel;
		connection->number = number;
	}
	return true;
}

/* One that ended meanwhile has no number any more. */
static void
reset_connection(struct kr_egress *egress, const struct kr_channel *channel, uint32_t number)
{
	for (size_t i = 0; i < KR_CONNECTIONS_MAX; i++) {
		struct kr_connection *connection = egress->connections[i];

		if (!connection || connection->channel != channel || connection->number != number)
			continue;
		connection->channel = NULL; /* who told it need not be told */
		kr_connection_end(connection, true);
		return;
	}
}

void
kr_channel_tell_reset(struct kr_channel *channel, uint32_t number)
{
	char bytes[KG_NUMBERED_BYTES] = { KG_RESET };

	memcpy(bytes + 1, &number, sizeof(number));
	(void)send(channel->watch.fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_NOSIGNAL); /* it reads, or is gone */
}

void
kr_channel_ready(struct kr_egress *egress, struct kr_channel *channel)
{
	uint32_t number;
	int fd = -1;

	switch (kr_hand_over_read(channel->watch.fd, &fd, &number)) {
	case KR_HAND_OVER_NONE:
		break;
	case KR_HAND_OVER_CONNECTION:
		if (!take_handed(egress, channel, fd, number))
			close_channel(egress, channel);
		break;
	case KR_HAND_OVER_RESET:
		reset_connection(egress, channel, number);
		break;
	case KR_HAND_OVER_LISTENER:
		if (!take_listener(egress, channel, fd))
			close_channel(egress, channel);
		break;
	case KR_HAND_OVER_BAD:
		close_channel(egress, channel);
		break;
	}
}

/* ---- connections ---- */

/* On the host's loopback the far end says nothing about who it is unless it is at the one address where kraft looks for it. */
static void
take_connection(struct kr_egress *egress, int fd, const struct sockaddr_in *from)
{
	if (!egress->token)
		kr_connection_accept(egress, fd, 0);
	else if (from->sin_family == AF_INET && from->sin_addr.s_addr == htonl(INADDR_LOOPBACK))
		kr_connection_accept(egress, fd, ntohs(from->sin_port));
	else
		(void)close(fd);
}

/* Alone, looking for one more would cost a call for nothing; where they come round after round, it saves
 * rounds. */
void
kr_listener_ready(struct kr_egress *egress, struct kr_channel *channel, unsigned events)
{
	struct sockaddr_in from = { 0 };
	int most = egress->round - channel->last_round <= 1 ? ACCEPT_ROUNDS : 1;

	channel->last_round = egress->round;
	if (events & KR_POLL_END) { /* it listens no more */
		close_channel(egress, channel);
		return;
	}
	for (int i = 0; i < most && kr_connection_has_place(egress); i++) {
		int fd = accept_one(egress, channel->listener.fd, egress->token ? &from : NULL);

		if (fd < 0)
			break;
		take_connection(egress, fd, &from);
	}
}

void
kr_channels_settle(struct kr_egress *egress)
{
	bool places = kr_connection_has_place(egress) && !egress->paused;
	bool channels = egress->channel_n < KR_CHANNELS_MAX && !egress->paused;
	struct kr_channel *next;

	egress->place_ms = places || egress->paused ? INT64_MAX : kr_connection_place_ms(egress);
	(void)kr_watch_set(
		egress, &egress->channels, channels ? KR_POLL_IN : 0); /* it is in the set: no failure */
	for (struct kr_channel *channel = egress->open_channels; channel; channel = next) {
		next = channel->next;
		if (!kr_watch_set(egress, &channel->watch, channel->hands_over && !places ? 0 : KR_POLL_IN) ||
			(channel->listener.fd >= 0 && !kr_watch_set(egress, &channel->listener, places ? KR_POLL_IN : 0)))
			close_channel(egress, channel);
	}
}

void
kr_channels_resume(struct kr_egress *egress)
{
	egress->paused = false;
}
