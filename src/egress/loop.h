/*
 * What the parts of kraft-egress share: the poller, the time, who is connected, one buffer to read into.
 *
 * One thread, nothing blocks. Whoever is polled is a struct kr_watch inside its owner. A watch that is
 * dropped while a round of events is worked off may still be named by a later event of that round: its
 * descriptor is -1 then, and its memory stays until the round is over (kr_connection_free_dead,
 * kr_channel_free_dead).
 */
#ifndef KR_EGRESS_LOOP_H
#define KR_EGRESS_LOOP_H

#include <sys/queue.h>
#include <sys/types.h>

#include "egress/control.h"
#include "egress/limits.h"
#include "base/buf.h"
#include "os/poller.h"

enum kr_watch_kind {
	KR_WATCH_CONTROL = 1,
	KR_WATCH_CHANNELS, /* the listener of the channel socket */
	KR_WATCH_CHANNEL,
	KR_WATCH_LISTENER, /* of connections; handed over on a channel */
	KR_WATCH_CLIENT,
	KR_WATCH_SERVER,
};

struct kr_watch {
	int fd;       /* -1: none */
	uint8_t kind; /* enum kr_watch_kind */
	int events;   /* as last told to the poller; -1: not in it */
};

enum {
	KR_SCRATCH_BYTES = 64 << 10,
	KR_PIPES_MAX = 16,       /* at once; a direction that gets none goes on copying */
	KR_PIPES_KEPT = 4,       /* empty ones, for the next */
	KR_PIPE_BYTES = 1 << 20, /* all together a quarter of the person's share (pipe(7)) */
	KR_WRITTEN_BYTES = KR_HEAD_BYTES + (32 << 10), /* a head written anew: what it was and what we add, a secret too */
	KR_TOLDS_MAX = 64, /* more at once, each of a connection that has ended, are not told of */
};

struct kr_pipe {
	int read_fd, write_fd;
};

struct kr_connection;
struct kr_channel;
struct kr_terminator;

struct kr_egress {
	int poller_fd;
	uid_t uid; /* whose channels are taken */
	uint32_t round;
	int64_t now_ms;  /* of this round */
	int64_t scan_ms; /* when to look for what is overdue; INT64_MAX: nothing has a deadline */
	struct kr_watch control, channels;

	/* asks that wait for the control socket, oldest first; `ask` is what was begun to be sent */
	struct kr_connection *asking, **asking_end;
	struct kr_ask ask;
	uint32_t ask_used, call_used; /* of the ask, and of the call behind it */
	struct kr_ask told;           /* what is no ask, while told_begun */
	uint32_t told_used;
	bool told_begun;
	struct kr_ask tolds[KR_TOLDS_MAX]; /* KR_ASK_TOLD that wait for the socket, oldest first */
	unsigned tolds_n;
	struct kr_answer answer;
	struct kr_frame frame;
	struct kr_frame body; /* what follows the answer, while it comes; body.bytes NULL: nothing does */

	unsigned calls_n, calls_waiting; /* that have a place, and that wait for one (kraft_host.c) */

	struct kr_connection *connections[KR_CONNECTIONS_MAX];
	uint16_t free_slots[KR_CONNECTIONS_MAX];
	unsigned free_n;
	uint16_t turn;

	const char *token; /* on loopback: KR_EGRESS_TOKEN digits, say them first; NULL: who comes over the channel is the session's */
	TAILQ_HEAD(, kr_connection) strangers; /* oldest first */
	unsigned strangers_n, strangers_max;
	uint32_t refused_n; /* for want of the token, and kraft is not told yet */
	bool had_strangers, tells_strangers;

	bool broken; /* the conversation with kraft is over */
	int64_t place_ms; /* nobody is accepted until then: a stranger must go first; INT64_MAX: not for that */
	bool paused; /* no accepting until the next scan: the system has no room */
	struct kr_connection *dead;
	TAILQ_HEAD(, kr_connection) waiting; /* that have something to read which no descriptor tells of */

	struct kr_terminator *terminator; /* of kraft-egress-tls; NULL: no TLS ends here */

	struct kr_channel *open_channels, *dead_channels;
	unsigned channel_n;

	struct kr_pipe pipes[KR_PIPES_KEPT]; /* the empty ones */
	unsigned pipe_n, pipes_made;

	char scratch[KR_SCRATCH_BYTES];
	char written[KR_WRITTEN_BYTES];
};

/* control_fd and channel_fd become the loop's. Before confinement: nothing is read here. With a token, which outlives the
 * loop, channel_fd is no channel socket but a listener on the host's loopback. */
int kr_egress_init(struct kr_egress *egress, int control_fd, int channel_fd, const char *token, unsigned files);
/* Until kraft ends the conversation. */
void kr_egress_run(struct kr_egress *egress);
/* One round of it; waits at most most_ms (-1: until something happens). */
void kr_egress_round(struct kr_egress *egress, int most_ms);
/* For tests: the process itself just ends. */
void kr_egress_fini(struct kr_egress *egress);

/* Watches for `events` (KR_POLL_*) and nothing else; 0 still tells KR_POLL_END, -1 nothing. False: the kernel
 * cannot watch it, so its owner must give it up. */
bool kr_watch_set(struct kr_egress *egress, struct kr_watch *watch, int events);
void kr_watch_close(struct kr_egress *egress, struct kr_watch *watch);

/* Tells kraft what became of a connection: a frame of KR_ASK_TOLD. */
void kr_egress_tell(struct kr_egress *egress, const struct kr_ask *told);
/* Tells kraft how many were refused for want of the token. */
void kr_egress_tell_strangers(struct kr_egress *egress);

/* An empty buffer that heads are written in, until the next call. */
struct kr_buf kr_egress_written(struct kr_egress *egress);

/* Makes sure that the deadline is looked at. */
void kr_egress_due(struct kr_egress *egress, int64_t deadline_ms);

#endif
