/*
 * The load for bench/egress: a server, and clients that measure what lies between. One thread, epoll.
 *
 *     load server ADDRESS:PORT                    until it is killed
 *     load tunnels VIA TARGET AT_ONCE SECONDS     new tunnels, each good for one byte there and back
 *     load trips   VIA TARGET AT_ONCE SECONDS     64 bytes there and back on open tunnels
 *     load down|up VIA TARGET MIB                 one tunnel, in one direction
 *     load idle    VIA TARGET COUNT SECONDS       opens so many, says so, holds them
 *
 * VIA is ADDRESS:PORT of a proxy, which gets a CONNECT to TARGET; with "-" as TARGET, of the server itself or
 * of a relay to it. Prints "name value" lines. Anything that goes wrong ends it with a message: a number must
 * never come from half of the connections.
 *
 * The client's first byte on a connection says what the server does: 'E' sends back what comes, 'S' and eight
 * bytes of a length sends that much, 'K' reads to the end and tells how much it was.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	BLOCK = 256 << 10,
	TRIP = 64,
	HEAD = 1024,
	EVENTS = 256,
	SAMPLES = 1 << 22,
	BACKLOG = 4096,
	FILES = 1 << 16,
	PATIENCE_MS = 20000
};

static char block[BLOCK];

static uint64_t
now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct sockaddr_in
parse_address(const char *text)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	const char *colon = strrchr(text, ':');
	char host[INET_ADDRSTRLEN] = "";

	if (!colon || (size_t)(colon - text) >= sizeof(host))
		errx(2, "'%s' is no ADDRESS:PORT", text);
	memcpy(host, text, (size_t)(colon - text));
	if (inet_pton(AF_INET, host, &at.sin_addr) != 1)
		errx(2, "'%s' is no ADDRESS:PORT", text);
	at.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
	return at;
}

static void
send_at_once(int fd)
{
	int on = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* a slower number says it as well */
}

static void
watch(int poller, int how, int fd, unsigned events, void *tag)
{
	struct epoll_event event = { .events = events, .data.ptr = tag };

	if (epoll_ctl(poller, how, fd, &event) < 0)
		err(1, "epoll_ctl");
}

/* ---- server ---- */

struct served {
	int fd;
	char mode;
	uint64_t left; /* to send or to read */
};
static struct served served[FILES]; /* by descriptor */

static void
accept_all(int poller, int listener)
{
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct served *s = &served[fd];

		if (fd >= FILES)
			errx(1, "more than %d connections", FILES);
		*s = (struct served){ .fd = fd };
		send_at_once(fd);
		watch(poller, EPOLL_CTL_ADD, fd, EPOLLIN, s);
	}
}

/* How many of these bytes, the first that came, say what to do; 0: something else. */
static size_t
begin_service(int poller, struct served *s, const char *bytes, size_t n)
{
	s->mode = bytes[0];
	if (s->mode == 'E')
		return 1;
	if ((s->mode != 'S' && s->mode != 'K') || n < 1 + sizeof(s->left))
		return 0;
	memcpy(&s->left, bytes + 1, sizeof(s->left));
	if (s->mode == 'S')
		watch(poller, EPOLL_CTL_MOD, s->fd, EPOLLOUT, s);
	return 1 + sizeof(s->left);
}

/* False when the connection is over. */
static bool
serve_input(int poller, struct served *s)
{
	ssize_t n = read(s->fd, block, sizeof(block));
	size_t used = 0;

	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	if (!s->mode && (used = begin_service(poller, s, block, (size_t)n)) == 0)
		return false;
	n -= (ssize_t)used;
	if (s->mode == 'E' && n > 0)
		return write(s->fd, block + used, (size_t)n) == n;
	if (s->mode != 'K')
		return true;
	s->left -= (uint64_t)n;
	return s->left > 0 || write(s->fd, "K", 1) == 1;
}

static bool
serve_output(struct served *s)
{
	size_t want = s->left < sizeof(block) ? (size_t)s->left : sizeof(block);
	ssize_t n = write(s->fd, block, want);

	if (n < 0)
		return errno == EAGAIN;
	s->left -= (uint64_t)n;
	return s->left > 0;
}

static void
serve(const char *where)
{
	struct sockaddr_in at = parse_address(where);
	struct epoll_event events[EVENTS];
	int on = 1, poller = epoll_create1(EPOLL_CLOEXEC), listener;

	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (poller < 0 || listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
		bind(listener, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(listener, BACKLOG) < 0)
		err(1, "cannot listen on %s", where);
	watch(poller, EPOLL_CTL_ADD, listener, EPOLLIN, NULL);
	for (;;) {
		int n = epoll_wait(poller, events, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			struct served *s = events[i].data.ptr;

			if (!s) {
				accept_all(poller, listener);
			} else if (!(events[i].events & EPOLLOUT ? serve_output(s) : serve_input(poller, s))) {
				(void)close(s->fd);
			}
		}
	}
}

/* ---- clients ---- */

enum kind { TUNNELS, TRIPS, IDLE };
enum state { CONNECTING, ASKED, WAITING, HELD };

struct client {
	int fd;
	enum state state;
	size_t got; /* of the proxy's head, or of the reply */
	uint64_t since_ns;
	char head[HEAD];
};

struct load {
	enum kind kind;
	struct sockaddr_in via;
	char request[HEAD]; /* "" without a proxy */
	int poller;
	uint64_t done, held;
	uint32_t *samples_ns; /* of trips; SAMPLES of them */
};

static void
send_all(int fd, const void *bytes, size_t n)
{
	ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);

	if (sent < 0)
		err(1, "cannot send");
	if ((size_t)sent != n)
		errx(1, "a few bytes did not fit into an idle connection");
}

static void
open_client(struct load *load, struct client *c)
{
	*c = (struct client){ .fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0),
		.state = CONNECTING };
	if (c->fd < 0)
		err(1, "socket");
	send_at_once(c->fd);
	if (connect(c->fd, (struct sockaddr *)&load->via, sizeof(load->via)) < 0 && errno != EINPROGRESS)
		err(1, "cannot connect");
	watch(load->poller, EPOLL_CTL_ADD, c->fd, EPOLLIN | EPOLLOUT | EPOLLET, c);
}

static void
send_trip(struct client *c)
{
	c->got = 0;
	c->since_ns = now_ns();
	send_all(c->fd, block, TRIP);
}

static void
begin(struct load *load, struct client *c)
{
	static const char first[] = { 'E', 'x' };

	c->got = 0;
	c->state = load->kind == IDLE ? HELD : WAITING;
	if (load->kind == IDLE)
		load->held++;
	else
		send_all(c->fd, first, load->kind == TUNNELS ? 2 : 1);
	if (load->kind == TRIPS)
		send_trip(c);
}

static void
connected(struct load *load, struct client *c)
{
	socklen_t size = sizeof(errno);

	if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &errno, &size) < 0 || errno)
		err(1, "cannot connect");
	if (!load->request[0]) {
		begin(load, c);
		return;
	}
	send_all(c->fd, load->request, strlen(load->request));
	c->state = ASKED;
}

/* The proxy's answer: true once it is complete. Nothing can follow it, since the server waits for our first
 * byte. */
static bool
head_is_complete(struct client *c, const char *bytes, size_t n)
{
	if (c->got + n >= sizeof(c->head))
		errx(1, "the proxy's answer is too long");
	memcpy(c->head + c->got, bytes, n);
	c->got += n;
	c->head[c->got] = '\0';
	if (!strstr(c->head, "\r\n\r\n"))
		return false;
	if (strncmp(c->head, "HTTP/1.", 7) != 0 || strncmp(c->head + 8, " 200", 4) != 0)
		errx(1, "the proxy refused: %s", c->head);
	return true;
}

static void
finish_reply(struct load *load, struct client *c)
{
	if (load->kind == TRIPS) {
		uint64_t took = now_ns() - c->since_ns;

		load->samples_ns[load->done++ % SAMPLES] = (uint32_t)(took < UINT32_MAX ? took : UINT32_MAX);
		send_trip(c);
		return;
	}
	load->done++;
	(void)close(c->fd);
	open_client(load, c);
}

static void
read_client(struct load *load, struct client *c)
{
	char bytes[HEAD];
	ssize_t n = read(c->fd, bytes, sizeof(bytes));

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0)
		errx(1, "a connection ended: %s", n ? strerror(errno) : "closed by the other side");
	if (c->state == ASKED) {
		if (head_is_complete(c, bytes, (size_t)n))
			begin(load, c);
		return;
	}
	c->got += (size_t)n;
	if (c->got == (load->kind == TRIPS ? TRIP : 1))
		finish_reply(load, c);
}

/* Until a time has come, or so many are held. */
static void
turn(struct load *load, uint64_t until_ns, uint64_t held)
{
	struct epoll_event events[EVENTS];

	while (now_ns() < until_ns && (!held || load->held < held)) {
		int n = epoll_wait(load->poller, events, EVENTS, PATIENCE_MS);

		if (n == 0)
			errx(1, "nothing has moved for %d s", PATIENCE_MS / 1000);
		for (int i = 0; i < n; i++) {
			struct client *c = events[i].data.ptr;

			if (c->state == CONNECTING && events[i].events & EPOLLOUT)
				connected(load, c);
			else if (events[i].events & EPOLLIN)
				read_client(load, c);
		}
	}
}

static int
compare_samples(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void
print_latency(struct load *load)
{
	size_t n = load->done < SAMPLES ? (size_t)load->done : SAMPLES, half = n / 2, most = n * 99 / 100;

	qsort(load->samples_ns, n, sizeof(*load->samples_ns), compare_samples);
	printf("p50_us %.1f\np99_us %.1f\n", load->samples_ns[half] / 1e3, load->samples_ns[most] / 1e3);
}

static void
measure(struct load *load, size_t at_once, double seconds)
{
	struct client *clients = calloc(at_once, sizeof(*clients));
	uint64_t start = now_ns();

	load->samples_ns = calloc(SAMPLES, sizeof(*load->samples_ns));
	if (!clients || !load->samples_ns)
		err(1, "calloc");
	for (size_t i = 0; i < at_once; i++)
		open_client(load, &clients[i]);
	turn(load, start + (uint64_t)(seconds * 1e9), 0);
	printf("per_s %.1f\n", (double)load->done / ((double)(now_ns() - start) / 1e9));
	if (!load->done)
		errx(1, "nothing was done in %.1f s", seconds);
	if (load->kind == TRIPS)
		print_latency(load);
	free(load->samples_ns);
	free(clients);
}

static void
hold(struct load *load, size_t count, double seconds)
{
	struct client *clients = calloc(count, sizeof(*clients));

	if (!clients)
		err(1, "calloc");
	puts("open 0");
	fflush(stdout);
	sleep(1);
	for (size_t i = 0; i < count; i++) { /* one after the other: it is not their making that is measured */
		open_client(load, &clients[i]);
		turn(load, UINT64_MAX, i + 1);
	}
	printf("open %zu\n", count);
	fflush(stdout);
	usleep((useconds_t)(seconds * 1e6));
	free(clients);
}

/* ---- one direction ---- */

/* One tunnel, opened as the others are, and then blocking. */
static int
open_tunnel(struct load *load)
{
	struct client c;
	int flags = 0;

	open_client(load, &c);
	turn(load, UINT64_MAX, 1);
	if (ioctl(c.fd, FIONBIO, &flags) < 0)
		err(1, "ioctl");
	return c.fd;
}

static void
ask_transfer(int fd, char mode, uint64_t bytes)
{
	char ask[1 + sizeof(bytes)] = { mode };

	memcpy(ask + 1, &bytes, sizeof(bytes));
	send_all(fd, ask, sizeof(ask));
}

static void
read_down(int fd, uint64_t bytes)
{
	uint64_t got = 0;
	ssize_t n;

	ask_transfer(fd, 'S', bytes);
	while ((n = read(fd, block, sizeof(block))) > 0)
		got += (uint64_t)n;
	if (n < 0 || got != bytes)
		errx(1, "%llu bytes came of %llu", (unsigned long long)got, (unsigned long long)bytes);
}

static void
write_up(int fd, uint64_t bytes)
{
	uint64_t sent = 0;
	char end;

	ask_transfer(fd, 'K', bytes);
	while (sent < bytes) {
		ssize_t n = write(fd, block, bytes - sent < BLOCK ? (size_t)(bytes - sent) : BLOCK);

		if (n < 0)
			err(1, "cannot write");
		sent += (uint64_t)n;
	}
	if (read(fd, &end, 1) != 1)
		errx(1, "not all of %llu bytes arrived", (unsigned long long)bytes);
}

static void
transfer(struct load *load, bool is_up, double mib)
{
	uint64_t bytes = (uint64_t)(mib * (1 << 20)), start;
	int fd = open_tunnel(load);

	start = now_ns();
	(is_up ? write_up : read_down)(fd, bytes);
	printf("mb_per_s %.1f\n", (double)bytes / 1e6 / ((double)(now_ns() - start) / 1e9));
}

static void
usage(void)
{
	fputs("usage: load server ADDRESS:PORT\n"
		  "       load tunnels|trips VIA TARGET AT_ONCE SECONDS\n"
		  "       load down|up VIA TARGET MIB\n"
		  "       load idle VIA TARGET COUNT SECONDS\n",
		stderr);
	exit(2);
}

static double
number(const char *text)
{
	double value = text ? strtod(text, NULL) : 0;

	if (value <= 0)
		usage();
	return value;
}

int
main(int argc, char **argv)
{
	struct load load = { .poller = epoll_create1(EPOLL_CLOEXEC) };
	const char *mode = argc > 1 ? argv[1] : "";
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files); /* without, few connections say so themselves */
	}
	(void)signal(SIGPIPE, SIG_IGN);
	if (argc == 3 && strcmp(mode, "server") == 0)
		serve(argv[2]);
	if (argc < 5)
		usage();
	load.via = parse_address(argv[2]);
	if (strcmp(argv[3], "-") != 0)
		snprintf(
			load.request, sizeof(load.request), "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", argv[3], argv[3]);
	load.kind = strcmp(mode, "tunnels") == 0 ? TUNNELS : strcmp(mode, "trips") == 0 ? TRIPS : IDLE;
	if (load.kind != IDLE)
		measure(&load, (size_t)number(argv[4]), number(argv[5]));
	else if (strcmp(mode, "idle") == 0)
		hold(&load, (size_t)number(argv[4]), number(argv[5]));
	else if (strcmp(mode, "down") == 0 || strcmp(mode, "up") == 0)
		transfer(&load, mode[0] == 'u', number(argv[4]));
	else
		usage();
	return 0;
}
