/*
 * The foreground relay: follows a launched session to its end, between our own streams and the worker's.
 *
 * One poll loop, no threads. The worker never holds a descriptor of ours: pipes of our making, or a
 * pseudo-terminal that the init makes inside; a descriptor of ours could be opened again through /proc for
 * more than it was given for.
 *
 * With a terminal: keys go in as they are, so Ctrl-C and Ctrl-Z are the inner line discipline's. When the
 * init reports that the command stopped, our terminal is put back and our whole process group stops, as a
 * shell's job does; after SIGCONT everything goes on. Where nobody could continue us (an orphaned group), the
 * command is continued at once.
 *
 * With pipes: INT, QUIT, TERM, HUP, TSTP and CONT that reach us are passed on, once each. After TSTP we stop
 * when the command has stopped; when it stops by itself we do not.
 *     a second INT or QUIT within two seconds, ten seconds after TERM    the sandbox is ended
 *     TERM, for an agent    INT first, and TERM two seconds later: it writes down where its conversation was
 *     our reader is gone (EPIPE)    we close our end, so the worker gets its SIGPIPE, as in `command | head`
 *     our reader is slow            we stop reading the worker: 32 KiB per stream, no more is held
 * When stdout and stderr are one file the worker gets one pipe for both, and its order of writing is kept.
 *
 * The end is the launcher's: then every process inside is gone, the pipes are read empty, and nobody who kept
 * them open can hold us (PROC-03).
 */
#ifndef KR_SESSION_RELAY_H
#define KR_SESSION_RELAY_H

#include "guest/wire.h"
#include "session/log.h"
#include "session/session.h"

/* Something else to look after meanwhile: ready is called when fd is readable; false: it is finished, and fd becomes -1,
 * which is not watched. */
struct kr_relay_side {
	int fd;
	bool (*ready)(void *context);
	void *context;
};
enum { KR_RELAY_SIDES = 2 };

struct kr_relay_want {
	bool terminal; /* in and out are terminals; err is where launcher and bubblewrap speak, and the command's
					* own stderr when it was sent elsewhere */
	int in, out, err;   /* ours, borrowed; -1: nothing to read, log only */
	const char *folder; /* of the session, for the exit file when the control socket ends without a word */
	struct kr_log *log; /* may be NULL */
	bool out_is_data;   /* what comes on stdout is not for the log */
	int64_t limit_ms;   /* the sandbox is ended when it runs for longer; 0: no such limit */
	uint64_t limit_bytes; /* or has written more to stdout; 0: no such limit */
	bool is_interrupted_first; /* TERM is an agent's: see above */
	struct kr_relay_side *sides; /* KR_RELAY_SIDES of them, borrowed; NULL: none */
};

struct kr_session_end {
	bool started;        /* the command's exec succeeded */
	int code, signal;    /* the command's, when started; signal 0: it exited */
	bool is_told;        /* the init told it, so the sandbox ended by itself */
	bool killed_by_us;   /* by the second INT, after TERM, by a limit, or because it did not end */
	bool is_over_time;   /* by limit_ms */
	int exec_errno;      /* not started: exec failed with it */
	enum kg_fault fault; /* not started: launcher or init could not do their part */
	int fault_errno;
	int wall; /* not started: index in the verify block of a mount that is not what was checked; -1 */
	unsigned left;      /* processes that still ran when the command had ended, and were ended; as the init says */
	char left_names[KG_LEFT_BYTES]; /* of the first of them (guest/wire.h): a worker's bytes */
	int outlived[KG_OUTLIVED_MAX]; /* macOS: processes of the session that did not end, by their numbers */
	size_t outlived_count;
	unsigned oom_kills; /* processes that the container's memory limit killed; as the init says */
	uint64_t out_bytes; /* what the worker wrote */
	int write_errno;    /* our stdout or stderr took no more, and not because its reader went away; 0: no such
						   thing */
};

struct kr_relay;

/* Makes the pipes. NULL on failure. */
struct kr_relay *kr_relay_new(const struct kr_relay_want *want, struct kr_error *err);
void kr_relay_free(struct kr_relay *relay); /* NULL is fine; restores the terminal */
/* The worker's ends, for the launch; they stay the relay's, which closes them when it follows. */
void kr_relay_worker_ends(const struct kr_relay *relay, int *in, int *out, int *err);
/* Blocks until the session is over. Takes over the session's descriptors and reaps the launcher. */
int kr_relay_follow(
	struct kr_relay *relay, struct kr_session *session, struct kr_session_end *end, struct kr_error *err);

/* "sleep, node and 3 more", escaped; "" when nothing was left. */
enum { KR_LEFT_WORDS = 256 };
void kr_session_left_words(const struct kr_session_end *end, char out[KR_LEFT_WORDS]);

/* The exit status of kraft for an end: the command's, or 128 + signal, or 125 to 127. */
int kr_session_exit_status(const struct kr_session_end *end);

#endif
