/*
 * One round: wait, give each event to its owner, free what ended meanwhile. Deadlines are looked at together,
 * at the first of them and at most once a second; with none the process sleeps until there is something to
 * do.
 */
#include "egress/loop.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "egress/channel.h"
#include "egress/connection.h"
#include "egress/kraft_host.h"
#include "os/timer.h"

enum { EVENTS = 128, SCAN_EVERY_MS = 1000 };
/* Descriptors besides two for each connection: our own, channels and what rides on them, pipes. */
enum { OTHER_FILES = 16 + 2 * KR_CHANNELS_MAX + 2 * KR_PIPES_MAX };

#define OWNER(watch, type, member) ((struct type *)(void *)((char *)(watch)-offsetof(struct type, member)))

/* ---- watches ---- */

bool
kr_watch_set(struct kr_egress *egress, struct kr_watch *watch, int events)
{
	if (watch->events == events || watch->fd < 0)
		return true;
	if (events < 0)
		kr_poller_remove(egress->poller_fd, watch->fd);
	else if (watch->events >= 0)
		kr_poller_change(egress->poller_fd, watch->fd, (unsigned)events, watch);
	else if (kr_poller_add(egress->poller_fd, watch->fd, (unsigned)events, watch) < 0)
		return false;
	watch->events = events;
	return true;
}

void
kr_watch_close(struct kr_egress *egress, struct kr_watch *watch)
{
	if (watch->fd < 0)
		return;
	(void)kr_watch_set(egress, watch, -1); /* taking out cannot fail */
	(void)close(watch->fd);
	watch->fd = -1;
}

struct kr_buf
kr_egress_written(struct kr_egress *egress)
{
	return (struct kr_buf){
		.data = egress->written, .cap = sizeof(egress->written), .max = sizeof(egress->written) - 1
	};
}

/* ---- time ---- */

void
kr_egress_due(struct kr_egress *egress, int64_t deadline_ms)
{
	int64_t soonest = egress->now_ms + SCAN_EVERY_MS;

	if (deadline_ms < soonest)
		deadline_ms = soonest;
	if (deadline_ms < egress->scan_ms)
		egress->scan_ms = deadline_ms;
}

static int
time_out(const struct kr_egress *egress)
{
	int64_t due_ms = egress->place_ms < egress->scan_ms ? egress->place_ms : egress->scan_ms;
	int64_t left = due_ms - egress->now_ms;

	if (!TAILQ_EMPTY(&egress->waiting))
		return 0;
	if (due_ms == INT64_MAX)
		return -1;
	return left < 0 ? 0 : left > INT32_MAX ? INT32_MAX : (int)left;
}

static void
scan(struct kr_egress *egress)
{
	egress->scan_ms = INT64_MAX;
	for (size_t i = 0; i < KR_CONNECTIONS_MAX; i++) {
		struct kr_connection *connection = egress->connections[i];

		if (connection && connection->deadline_ms <= egress->now_ms)
			kr_connection_overdue(connection);
		connection = egress->connections[i];
		if (connection && connection->deadline_ms != INT64_MAX)
			kr_egress_due(egress, connection->deadline_ms);
	}
	kr_channels_resume(egress);
	if (egress->refused_n)
		kr_egress_tell_strangers(egress);
}

/* ---- kraft ---- */

/* The next thing that kraft sends: an answer, or what follows it. */
static enum kr_frame_state
read_frame(struct kr_egress *egress)
{
	if (egress->body.bytes)
		return kr_frame_read(egress->control.fd, &egress->body, false);
	return kr_frame_read(egress->control.fd, &egress->frame, true);
}

/* There is memory for it, or there is none for anything. */
static bool
expect_body(struct kr_egress *egress)
{
	egress->body =
		(struct kr_frame){ .bytes = malloc(egress->answer.bytes), .size = egress->answer.bytes, .fd = -1 };
	return egress->body.bytes != NULL;
}

static bool
take_answer(struct kr_egress *egress)
{
	bool has_body = egress->body.bytes != NULL;
	int fd = egress->frame.fd;

	egress->frame.used = 0;
	egress->frame.fd = -1;
	if (!has_body && !kr_answer_check(&egress->answer, fd >= 0)) {
		if (fd >= 0)
			(void)close(fd);
		return false;
	}
	if (!has_body && egress->answer.bytes)
		return expect_body(egress);
	return kr_connection_answer(egress, &egress->answer, fd, kr_steal(egress->body.bytes));
}

static bool
read_answers(struct kr_egress *egress)
{
	enum kr_frame_state state;

	while ((state = read_frame(egress)) == KR_FRAME_DONE)
		if (!take_answer(egress))
			return false;
	return state == KR_FRAME_MORE;
}

void
kr_egress_tell_strangers(struct kr_egress *egress)
{
	egress->tells_strangers = true;
	if (!kr_connection_send_asks(egress))
		egress->broken = true;
}

static void
on_control(struct kr_egress *egress, unsigned events)
{
	if (events & KR_POLL_OUT && !kr_connection_send_asks(egress))
		egress->broken = true;
	if (events & (KR_POLL_IN | KR_POLL_END) && !read_answers(egress))
		egress->broken = true;
}

/* ---- the loop ---- */

static void
dispatch(struct kr_egress *egress, struct kr_watch *watch, unsigned events)
{
	if (watch->fd < 0)
		return; /* closed in this round */
	switch ((enum kr_watch_kind)watch->kind) {
	case KR_WATCH_CONTROL:
		on_control(egress, events);
		break;
	case KR_WATCH_CHANNELS:
		kr_channels_accept(egress);
		break;
	case KR_WATCH_CHANNEL:
		kr_channel_ready(egress, OWNER(watch, kr_channel, watch));
		break;
	case KR_WATCH_LISTENER:
		kr_listener_ready(egress, OWNER(watch, kr_channel, listener), events);
		break;
	case KR_WATCH_CLIENT:
		kr_connection_ready(OWNER(watch, kr_connection, client.watch), true, events);
		break;
	case KR_WATCH_SERVER:
		kr_connection_ready(OWNER(watch, kr_connection, server.watch), false, events);
		break;
	}
}

/* glibc's first allocation asks the kernel for a random number and for the heap: calls that are not there
 * later. */
static bool
wake_heap(void)
{
	void *volatile first = malloc(1);
	bool good = first != NULL;

	free(first);
	return good;
}

int
kr_egress_init(struct kr_egress *egress, int control_fd, int channel_fd, const char *token, unsigned files)
{
	unsigned most = files > OTHER_FILES ? (files - OTHER_FILES) / 2 : 0;

	*egress = (struct kr_egress){
		.poller_fd = kr_poller_open(NULL),
		.uid = geteuid(),
		.scan_ms = INT64_MAX,
		.place_ms = INT64_MAX,
		.control = { .fd = control_fd, .kind = KR_WATCH_CONTROL, .events = -1 },
		.token = token,
		.channels = { .fd = token ? -1 : channel_fd, .kind = KR_WATCH_CHANNELS, .events = -1 },
		.frame = { .bytes = &egress->answer, .size = sizeof(egress->answer), .fd = -1 },
	};
	egress->asking_end = &egress->asking;
	TAILQ_INIT(&egress->strangers);
	TAILQ_INIT(&egress->waiting);
	for (unsigned i = most < KR_CONNECTIONS_MAX ? most : KR_CONNECTIONS_MAX; i-- > 0;)
		egress->free_slots[egress->free_n++] = (uint16_t)i;
	egress->strangers_max = egress->free_n / 2 < KR_STRANGERS_MAX ? egress->free_n / 2 + 1 : KR_STRANGERS_MAX;
	if (!wake_heap() || egress->poller_fd < 0 || fcntl(control_fd, F_SETFL, O_NONBLOCK) < 0 ||
		fcntl(channel_fd, F_SETFL, O_NONBLOCK) < 0 || !kr_watch_set(egress, &egress->control, KR_POLL_IN) ||
		!kr_watch_set(egress, &egress->channels, KR_POLL_IN))
		return -1;
	return token ? kr_channels_open_door(egress, channel_fd) : 0;
}

void
kr_egress_round(struct kr_egress *egress, int most_ms)
{
	struct kr_poll_event ready[EVENTS];
	int n;

	egress->round++;
	egress->now_ms = kr_clock_coarse_ms();
	n = time_out(egress);
	n = kr_poller_wait(
		egress->poller_fd, ready, EVENTS, most_ms >= 0 && (n < 0 || n > most_ms) ? most_ms : n);
	egress->now_ms = kr_clock_coarse_ms();
	for (int i = 0; i < n; i++)
		dispatch(egress, ready[i].tag, ready[i].events);
	kr_connections_go_on(egress);
	if (egress->now_ms >= egress->scan_ms)
		scan(egress);
	kr_worker_calls_settle(egress);
	kr_channels_settle(egress);
	kr_connection_free_dead(egress);
	kr_channel_free_dead(egress);
}

void
kr_egress_run(struct kr_egress *egress)
{
	while (!egress->broken)
		kr_egress_round(egress, -1);
}

void
kr_egress_fini(struct kr_egress *egress)
{
	for (size_t i = 0; i < KR_CONNECTIONS_MAX; i++)
		if (egress->connections[i])
			kr_connection_abandon(egress->connections[i]);
	kr_channels_close(egress);
	kr_connection_free_dead(egress);
	kr_channel_free_dead(egress);
	while (egress->pipe_n) {
		egress->pipe_n--;
		(void)close(egress->pipes[egress->pipe_n].read_fd);
		(void)close(egress->pipes[egress->pipe_n].write_fd);
	}
	kr_close_p(&egress->frame.fd);
	free(kr_steal(egress->body.bytes));
	kr_watch_close(egress, &egress->control);
	kr_watch_close(egress, &egress->channels);
	kr_close_p(&egress->poller_fd);
}
