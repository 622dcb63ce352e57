/* Between the files of this room. */
#ifndef KR_WORK_INTERNAL_H
#define KR_WORK_INTERNAL_H

#include <signal.h>
#include <sys/types.h>

#include "base/fd.h"
#include "session/calls.h"
#include "session/facts.h"
#include "work/result.h"
#include "work/work.h"

enum { KR_WORK_REJECTIONS = 10 }; /* of one gate */

/* An event of this item; data is taken. Call it in a transaction, so that it is there exactly when the change
 * is. */
int kr_work_event(
	struct kr_work *work, const char *item, const char *type, json_t *data, struct kr_error *err);

/* <run_dir>/worktrees/<item><end>. */
const char *kr_work_path(struct kr_work *work, const char *item, const char *end);

/* The lock of an item's host; a descriptor, or -1: KR_E_BUSY when another process has it. Processes of the
 * holder's that inherit it hold it too: a task that outlives its host keeps the next one out. */
int kr_work_lock(struct kr_work *work, const char *item, struct kr_error *err);
/* The process that holds it, as it wrote it there; 0: none that is known and alive. */
pid_t kr_work_host_pid(struct kr_work *work, const char *item);

/* look.c: "14:05", or with the date where it is not today; local time. */
enum { KR_CLOCK_WORDS = 32 };
const char *kr_work_clock_words(uint64_t ms, char out[KR_CLOCK_WORDS]);

/* KR_E_REFUSED, with what a person can do, when there is nothing that it could go on with. */
int kr_work_may_go_on(const struct kr_work_view *view, struct kr_error *err);

/* A line of a person's: not empty, no control characters but tab and newline, at most 64 KiB. */
int kr_work_check_text(const char *what, const char *text, struct kr_error *err);

/* say.c: the item and its lock, for words that change where it stands: nobody walks it meanwhile.
 * KR_E_REFUSED when it has ended. */
int kr_work_look_alone(
	struct kr_work *work, const char *id, struct kr_work_view *v, int *lock, struct kr_error *err);
/* say.c: a letter and seven random ones: "t3fa90c1"; NULL with err. */
const char *kr_work_random_id(struct kr_arena *arena, char letter, struct kr_error *err);

/* say.c: the row as it is to be, a mark (NULL: none) and an event, in one transaction. `data` is taken. */
int kr_work_say(struct kr_work *work, struct kr_item_row *row, const struct kr_mark_row *mark,
	const char *event, json_t *data, struct kr_error *err);

/* The same with a second event. */
int kr_work_say_both(struct kr_work *work, struct kr_item_row *row, const struct kr_mark_row *mark,
	const char *event, json_t *data, const char *second, json_t *second_data, struct kr_error *err);
/* say.c: kr_work_pass_gate, with the event review_submitted when `review` is not NULL. */
int kr_work_pass_reviewed(struct kr_work *work, const char *id, const char *gate, bool approve, const char *note,
	const char *review, struct kr_error *err);
/* KR_E_REFUSED unless it waits at this gate; NULL: at any. */
int kr_work_check_gate(const struct kr_work_view *view, const char *gate, struct kr_error *err);
/* say.c: asks the item's host to end, and waits until it has. */
int kr_work_end_host(struct kr_work *work, const char *id, pid_t host, struct kr_error *err);

/* Who calls: a task, with the policy that its layers come to. */
struct kr_work_caller {
	const struct kr_work *work; /* its host's; the store is not looked at */
	const struct kr_policy *policy;
	const char *path; /* canonical */
};
/* calls.c: a kr_calls_fn, for the sessions of an item; context: its struct kr_work_caller. */
void kr_work_answer(
	void *context, struct kr_calls *calls, const struct kr_call *call, struct kr_call_answer *answer);

/* ask.c: verbs ask, ask_state, ask_close. */
void kr_work_answer_ask(struct kr_work *work, const struct kr_work_caller *caller, struct kr_calls *calls,
	const struct kr_call *call, struct kr_call_answer *answer);
/* In the transaction that records the end of this session: what it asked is denied. */
int kr_work_end_asks(struct kr_work *work, const char *session, struct kr_error *err);
/* While the session runs: denies what is over, and tells the person of what is new. Opens the store anew when
 * somebody is told. Does it once a second, however often it is called. */
struct kr_work_asks {
	int64_t next_ms, told; /* zero at first */
};
int kr_work_look_at_asks(struct kr_work *work, const char *item, const char *session,
	struct kr_work_asks *seen, struct kr_error *err);

/*
 * notify.c: once the stop or the end is recorded and the item's lock given up: who is told would inherit it.
 * Returns at once. What goes wrong in telling is written down; -1 only when the store could not be opened
 * again.
 */
int kr_work_notify(struct kr_work *work, const struct kr_work_view *view, struct kr_error *err);
/* The same while it runs, of a worker's ask; who tells it holds no lock of ours. */
int kr_work_notify_question(struct kr_work *work, const struct kr_work_view *view, struct kr_error *err);

/* ---- task.c ---- */

struct kr_brief;
struct kr_work_seen;
struct kr_work_task;

struct kr_work_task {
	const char *session; /* the id that it is to have */
	const struct kr_work_view *view;
	const struct kr_task *task;
	unsigned round;
	const char *steer; /* NULL: none */
	bool show;
	bool put_back; /* what it changes is put back, and its commits are dropped */
	bool is_anew;  /* it does not go on with a conversation that broke off */
	/* What it is told, of the item and what failed (`steer` and `prompt` are not set); NULL: as a task is. */
	const char *(*instruct)(
		struct kr_work *work, const struct kr_work_task *task, const struct kr_brief *brief);
};
/* What became of it. reason: a sentence, "" when there is nothing to say. */
struct kr_work_outcome {
	enum kr_mark_kind kind;
	bool was_paused;
	const char *reason;
	const char *fingerprint; /* FAILED: how; NULL: not known */
	const char *cap;         /* CAPPED: the key of the policy that ended it, and what it says */
	double cap_minutes;
	const char *breach; /* BUDGET: the key of the policy */
	/* Of an agent. */
	const struct kr_work_seen *seen;      /* what it said of itself (work/agent.h); NULL: nothing, or it is none */
	const struct kr_session_row *resumed; /* whose conversation it went on with; NULL: none */
	uint64_t retry_ms;                    /* its provider turned it away until then, and it has no mark; 0: no */
	const char *limit_kind;               /* with retry_ms; may be "" */
	bool is_worth_another;                /* anew, once: it never got to its work */
	const char *left_running;             /* what it left in the background, escaped; NULL: nothing */
	/* with put_back: what was, a path on each line, escaped; and why it could not be. NULL: nothing */
	const char *wrote, *not_put_back;
};
/* Statuses of sessions beside the names of marks. */
#define KR_SESSION_PAUSED "paused"
#define KR_SESSION_LIMITED "rate_limited"
/* The one that its row gets. */
const char *kr_work_outcome_status(const struct kr_work_outcome *outcome);
/* The data of its event worker_session_exited or _paused. */
json_t *kr_work_ended_json(const struct kr_session_row *session, int64_t wall_ms);

/* Blocks; *stop is looked at between waits: when it is set, the task is ended. -1 only when nothing can be
 * recorded. */
int kr_work_run_task(struct kr_work *work, const struct kr_work_task *task, const volatile sig_atomic_t *stop,
	struct kr_work_outcome *out, struct kr_error *err);

/* What became of a session whose host ended before it could tell; UNKNOWN when nothing of it says so. */
int kr_work_judge_left(struct kr_work *work, const char *item, const struct kr_session_row *session,
	struct kr_work_outcome *out, struct kr_error *err);

/* The last `max` bytes of what a session printed; "" when there is nothing, or it cannot be read any more. */
const char *kr_work_tail(struct kr_work *work, const char *session, size_t max);
/* The words that run in place of agents, of the item's row; NULL: none. */
const char *const *kr_work_words_of(struct kr_arena *arena, const char *json);

#endif
