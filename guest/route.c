#include "guest/route.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guest/sys.h"

enum {
	TAKEN_MS = 8000, /* less than what the launcher grants an init that says nothing */
	AGAIN_MS = 250,
	BACKLOG = 4096, /* the proxy accepts as many as it may; more wait here */
};

static int
listen_on_loopback(void)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_port = htons(KG_PROXY_PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	if (bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	close(fd);
	return -1;
}

/*
 * A connection to the channel socket that carries the listener, or -1. The socket stays from one proxy to the next; when
 * nobody listens there, no proxy will come for now, and the listener is closed: a client is then refused at once, where
 * it would wait in the backlog for ever. It is made again with the first connection that succeeds.
 */
static int
hand_over(struct kg_route *route)
{
	const char word = KG_HAND_OVER;
	int fd = kg_connect_unix(route->path, SOCK_NONBLOCK), failed = -fd;

	if (fd >= 0) {
		if (route->listener < 0)
			route->listener = listen_on_loopback();
		failed = route->listener < 0 ? errno : kg_send_bytes(fd, &word, 1, &route->listener, 1, MSG_DONTWAIT);
		if (!failed)
			return fd;
		close(fd);
	} else if ((failed == ECONNREFUSED || failed == ENOENT) && route->listener >= 0) {
		close(route->listener);
		route->listener = -1;
		failed = ECONNREFUSED;
	}
	errno = failed;
	return -1;
}

static int
give(struct kg_route *route)
{
	const char word = KG_HAND_OVER;
	int failed = kg_send_bytes(route->given, &word, 1, &route->listener, 1, MSG_DONTWAIT);

	errno = failed;
	return failed ? -1 : route->given;
}

/* 0, or errno when the proxy did not take it. */
static int
wait_taken(int channel, int pipe)
{
	struct pollfd ready[] = { { .fd = channel, .events = POLLIN }, { .fd = pipe } };
	char word = 0;

	if (poll(ready, KG_COUNT(ready), TAKEN_MS) < 1)
		return ETIMEDOUT;
	if (ready[1].revents)
		return EPIPE;
	return recv(channel, &word, 1, MSG_DONTWAIT) == 1 && word == KG_TAKEN ? 0 : ECONNREFUSED;
}

int
kg_route_open(struct kg_route *route, int pipe)
{
	route->listener = listen_on_loopback();
	if (route->listener < 0)
		return errno;
	route->channel = route->given >= 0 ? give(route) : hand_over(route);
	if (route->channel < 0)
		return errno;
	return wait_taken(route->channel, pipe);
}

void
kg_route_lost(struct kg_route *route)
{
	char word;

	if (recv(route->channel, &word, 1, MSG_DONTWAIT) == 1 && word == KG_TAKEN)
		return; /* the answer to kg_route_again */
	close(route->channel);
	route->channel = -1;
	route->again_at = kg_now_ms() + AGAIN_MS;
}

void
kg_route_again(struct kg_route *route)
{
	if (kg_route_wait_ms(route) != 0)
		return;
	route->channel = hand_over(route);
	route->again_at = kg_now_ms() + AGAIN_MS;
}

int
kg_route_wait_ms(const struct kg_route *route)
{
	int64_t left = route->again_at - kg_now_ms();

	if (!route->path || route->given >= 0 || route->channel >= 0)
		return -1;
	return left > 0 ? (int)left : 0;
}
