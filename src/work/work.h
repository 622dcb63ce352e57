/*
 * Work items: filed by a person, walked through their chain by a host, stopped where a person is needed
 * (ITM-01 to ITM-06). One process hosts an item at a time and holds its lock; all that it knows is in the
 * store, so the next one goes on where it was, whatever ended it.
 *
 *     file.c   a new item, its chain and policy frozen          host.c   the walk: tasks, marks, stops
 *     look.c   an item with all that belongs to it              task.c   one task as a session of kr_run
 *     say.c    what only a person may say, and comments         walk.c   what comes next (pure)
 *     notify.c telling who is not looking                       brief.c  what an agent is told (pure)
 *     archive.c   what ended items left, and its removal        diff.c   what its branch changes (diff.h)
 *     queue.c  going on in the background                       ask.c    whether a worker may use a tool
 *     turn.c   sessions beside the chain                        escalate.c   what begins them, and reviews
 *     fingerprint.c   whether a task fails as before (pure)      launch.c   what a task comes to
 *     agent.c  which agent, what it goes on with, and what its own word means
 *     usage.c  what its agents used, and what is left of its caps (usage.h, pure)
 */
#ifndef KR_WORK_WORK_H
#define KR_WORK_WORK_H

#include <jansson.h>

#include "config/chain.h"
#include "os/host.h"
#include "store/work.h"
#include "work/walk.h"

/* status, name in the store and in JSON */
#define KR_STATUSES(X)            \
	X(PAUSED, "paused")           \
	X(QUEUED, "queued")           \
	X(BLOCKED, "blocked")         \
	X(ACTIVE, "active")           \
	X(NEEDS_HUMAN, "needs_human") \
	X(RATE_LIMITED, "rate_limited") /* its host waits until the row's retry_ms, then it is active */ \
	X(COMPLETED, "completed")     \
	X(CANCELLED, "cancelled")     \
	X(ABANDONED, "abandoned") /* as cancelled, and its worktree is gone */
enum kr_status {
#define X(status, name) KR_STATUS_##status,
	KR_STATUSES(X)
#undef X
		KR_STATUS_COUNT
};
const char *kr_status_name(enum kr_status status);
bool kr_work_is(const struct kr_item_row *row, enum kr_status status);
bool kr_work_has_ended(const struct kr_item_row *row); /* completed, cancelled or abandoned */
/* Those that have not ended, as of kr_store_items. */
int kr_work_rows(
	struct kr_arena *arena, struct kr_store *store, struct kr_item_rows *out, struct kr_error *err);

struct kr_work {
	struct kr_arena *arena;
	struct kr_host host;
	struct kr_store *store;
};
/* Opens the store to change it. */
int kr_work_open(struct kr_arena *arena, struct kr_work *out, struct kr_error *err);
void kr_work_close(struct kr_work *work);

/* An item with what belongs to it, as of one moment. */
struct kr_work_view {
	struct kr_item_row row;
	struct kr_chain chain;
	struct kr_policy_file policy;
	struct kr_policy_layer layer; /* its own */
	struct kr_mark_rows marks;
	struct kr_session_rows sessions;
	struct kr_thread_rows threads;
	struct kr_turn_rows turns;
	struct kr_dependency_rows dependencies;
	struct kr_ask_rows asks; /* that are open */
	struct kr_next next;
	bool is_hosted; /* a process is at it now */
};
/* id: any beginning of it. */
int kr_work_look(struct kr_work *work, const char *id, struct kr_work_view *out, struct kr_error *err);
/* All of them, oldest first, without what belongs to them: what a list needs, and no more is read. */
struct kr_work_brief {
	struct kr_item_row row;
	bool is_hosted;
};
struct kr_work_list {
	struct kr_work_brief *v;
	size_t n;
};
int kr_work_list(struct kr_work *work, bool with_ended, struct kr_work_list *out, struct kr_error *err);

/* The first of those that it waits for; NULL: it need not wait. */
const struct kr_dependency_row *kr_work_waits_for(const struct kr_work_view *view);

/* Whether a process is at it. */
bool kr_work_is_locked(struct kr_work *work, const char *item);
/* Whether a process should be at it: it is active, or waits for its provider. */
bool kr_work_has_host(const struct kr_item_row *row);
/* What a person reads as its state: "needs you", "running", ... */
const char *kr_work_words(const struct kr_item_row *row, bool is_hosted);
/* The same with how long it lasts, where that is known: "rate-limited until 14:05". */
const char *kr_work_state(struct kr_arena *arena, const struct kr_item_row *row, bool is_hosted);
/* The gate that it waits at; NULL: none. */
const char *kr_work_gate(const struct kr_item_row *row);
/* The same everywhere: `view list --json`; with its sessions `view show --json`, and what a worker is
 * answered. */
json_t *kr_work_row_json(const struct kr_item_row *row, bool is_hosted);
json_t *kr_work_json(const struct kr_work_view *view);
/* {input, output, cache_write, cache_read}; null: it is not known. */
json_t *kr_work_usage_json(const struct kr_usage *usage);
/* Adds harness, model, conversation, usage and cost_usd to object; null where it is not known. */
void kr_work_add_agent_json(json_t *object, const struct kr_session_row *session);
json_t *kr_work_threads_json(const struct kr_work_view *view, bool open_only);
json_t *kr_work_asks_json(const struct kr_ask_rows *asks);

/* ---- file.c ---- */

struct kr_work_new {
	const char *title; /* one line, 1 to 500 characters, no control characters */
	const char *description,
		*repo; /* description may be NULL; repo: a path in a connected checkout, NULL: where we stand */
	const char *chain, *base;      /* NULL: the repository's, else "default"; where the checkout stands */
	const char *const *worker;     /* words that run in place of agents; NULL or empty: none */
	const char *layer_file, *layer; /* its own layer of the policy, YAML, and its name in errors; NULL: none */
	const char *harness;           /* in place of the one that its chain names; NULL: none */
	const char *const *depends_on; /* ids, or beginnings of them, that only one has; NULL or empty: none */
};
/* Paused; id is made of the title. */
int kr_work_file(
	struct kr_work *work, const struct kr_work_new *want, struct kr_item_row *out, struct kr_error *err);

/* ---- say.c: none of it over a channel, or for a caller that is a session (CHN-12): the CLI of a person only
 * ---- */

int kr_work_approve(struct kr_work *work, const char *id, const char *note, struct kr_error *err);
/* Either, of this gate: KR_E_REFUSED when it waits at another one by then. */
int kr_work_pass_gate(struct kr_work *work, const char *id, const char *gate, bool approve, const char *note,
	struct kr_error *err);
/* The note leads the instruction of the next task. */
int kr_work_reject(struct kr_work *work, const char *id, const char *note, struct kr_error *err);
/* path "": the whole chain; NULL: what stopped. steer may be NULL. */
int kr_work_retry(
	struct kr_work *work, const char *id, const char *path, const char *steer, struct kr_error *err);
int kr_work_skip(
	struct kr_work *work, const char *id, const char *path, const char *note, struct kr_error *err);
int kr_work_steer(struct kr_work *work, const char *id, const char *text, struct kr_error *err);
/* An end by hand: COMPLETED, CANCELLED or, by kr_work_abandon, ABANDONED; the branch stays. */
int kr_work_end(
	struct kr_work *work, const char *id, enum kr_status status, const char *reason, struct kr_error *err);
/* Asks the host, if there is one, to end what runs; waits until it has. */
int kr_work_pause(struct kr_work *work, const char *id, struct kr_error *err);

struct kr_work_comment {
	const char *body, *file; /* file may be NULL */
	int64_t line;            /* 0: none */
	bool must_fix;
};
int kr_work_comment(struct kr_work *work, const char *id, const struct kr_work_comment *comment,
	const char **thread, struct kr_error *err);
/* thread: any beginning of its id that only one has. by: "human" or "agent"; claim: an agent's, NULL: none.
 */
int kr_work_reply(struct kr_work *work, const char *id, const char *thread, const char *by, const char *claim,
	const char *body, struct kr_error *err);
int kr_work_set_open(
	struct kr_work *work, const char *id, const char *thread, bool is_open, struct kr_error *err);

/*
 * ask: any beginning of its id that only one has. It holds for this tool and this input, once. KR_E_REFUSED when it is not
 * open any more. note may be NULL; a denial's is told to the worker.
 */
int kr_work_allow(
	struct kr_work *work, const char *ask, const char *note, struct kr_ask_row *out, struct kr_error *err);
int kr_work_deny(
	struct kr_work *work, const char *ask, const char *note, struct kr_ask_row *out, struct kr_error *err);

/* ---- escalate.c ---- */

/* A turn of the item's agent about why it waits: it begins in the background. KR_E_REFUSED unless the item
 * needs a person or is paused. */
int kr_work_escalate(
	struct kr_work *work, const char *id, const char *message, bool new_thread, struct kr_error *err);
/* Ends the turn, or the reply agent, that is at work or about to begin. */
int kr_work_escalate_stop(struct kr_work *work, const char *id, struct kr_error *err);

/* outcome, name in options and events */
#define KR_OUTCOMES(X)                    \
	X(APPROVE, "approve")                 \
	X(REQUEST_CHANGES, "request-changes") \
	X(COMMENT, "comment")
enum kr_outcome {
#define X(outcome, name) KR_OUTCOME_##outcome,
	KR_OUTCOMES(X)
#undef X
};
bool kr_outcome_from_name(const char *name, enum kr_outcome *out);
const char *kr_outcome_name(enum kr_outcome outcome);
/* At a gate. COMMENT leaves the item there, and the agent answers the open threads in the background;
 * no_reply then says why it does not, or is NULL. The item can go on after the others. */
int kr_work_review(struct kr_work *work, const char *id, enum kr_outcome outcome, const char *summary,
	const char **no_reply, struct kr_error *err);
/* What a review answers: the item, and of a comment `reply_agent`: whether one answers, else why not. */
json_t *kr_work_reviewed_json(const struct kr_work_view *view, enum kr_outcome outcome, const char *no_reply);

/* ---- archive.c ---- */

/* What an item that has ended left on the disk. */
struct kr_leftovers {
	struct kr_item_row row;
	bool has_worktree;       /* and with it private git directory, home, results */
	struct kr_strs sessions; /* ids of folders */
	uint64_t bytes;          /* that its removal gives back */
	const char *kept;        /* why it has to stay; NULL: it need not */
};
struct kr_leftovers_list {
	struct kr_leftovers *v; /* the oldest item first */
	size_t n;
};
/* Of items that ended at this time or before, those that left something. */
int kr_work_leftovers(
	struct kr_work *work, uint64_t until_ms, struct kr_leftovers_list *out, struct kr_error *err);
/*
 * Removes it, with the event work_item_archived. KR_E_BUSY when a process is at it, KR_E_REFUSED when its
 * commits did not come out. After any error what is left is there for the next call.
 */
int kr_work_archive(
	struct kr_work *work, const struct kr_leftovers *leftovers, const char *reason, struct kr_error *err);

/* The same of one item, ended or not. */
int kr_work_leftovers_of(
	struct kr_work *work, const char *id, struct kr_leftovers *out, struct kr_error *err);
/* Ends it and removes what it left. KR_E_REFUSED, and nothing changes, when that has to stay. */
int kr_work_abandon(struct kr_work *work, const char *id, const char *reason, struct kr_error *err);

/* ---- host.c ---- */

struct kr_work_start {
	bool show;      /* the tasks' output on our streams, else only in their logs */
	bool turn_only; /* the turn that waits to begin, or its retry (work/turn.h), and the walk only when that
					   was done */
	/* Called once, when the item is ours and active, or its turn begins; NULL is allowed. */
	void (*on_start)(void *context);
	void *context;
};
/*
 * Walks the item until it waits for a person, is paused, or is complete. One that stops as stuck is helped by
 * an escalation turn, where the policy says so. KR_E_BUSY when another process hosts it, KR_E_REFUSED when
 * there is nothing to go on with, with what a person can do. A task that another host left behind unfinished
 * is run again.
 */
int kr_work_host(struct kr_work *work, const char *id, struct kr_work_start start, struct kr_error *err);

/* ---- queue.c ---- */

/*
 * Lets the item go on in the background. A running server does it, when there is a slot (QUEUED until then)
 * and what it depends on is complete (BLOCKED until then); without a server it begins at once in a process
 * that outlives us, and this returns when it has begun, or with why it could not. Errors as of kr_work_host.
 */
int kr_work_go_on(struct kr_work *work, const char *id, struct kr_error *err);
/* Lets the turn that the item's row names begin, in the same way: a server does it when there is a slot. */
int kr_work_go_turn(struct kr_work *work, const char *id, struct kr_error *err);
/* Whether a server keeps this store's items now. */
bool kr_work_has_server(const struct kr_work *work);
const char *kr_work_server_path(struct kr_arena *arena, const struct kr_places *places); /* os/owner.h */
/* A BLOCKED item that need not wait any more is QUEUED. */
int kr_work_requeue(struct kr_work *work, const char *id, struct kr_error *err);
/* It no longer waits for this one (any beginning of its id); NULL: for none. KR_E_REFUSED when it did not. */
int kr_work_unblock(struct kr_work *work, const char *id, const char *dependency, struct kr_error *err);
/* No host stays at it: it stops (infra) until a person starts it again. */
int kr_work_give_up(struct kr_work *work, const char *id, const char *reason, struct kr_error *err);

/* A host in a process of its own: this program's `item start --hosted`, its output in the item's .host.log.
 * turn_only: as in struct kr_work_start. */
struct kr_work_child {
	pid_t pid;
	int word_fd; /* close it; kr_work_child_word reads it */
};
/* within: words that go before the program's ("systemd-run", ...); NULL: none. */
int kr_work_spawn(struct kr_work *work, const char *id, bool turn_only, const char *const *within,
	struct kr_work_child *out, struct kr_error *err);
/* What it said: true when it has begun; else err says why not. Waits for it where word_fd does. */
bool kr_work_child_word(int word_fd, struct kr_error *err);
/* Of that process, once: it has begun (err NULL), or why not. */
void kr_work_tell_word(const struct kr_error *err);

/* ---- notify.c ---- */

enum { KR_WORK_TOLD_MAX = 2 };
struct kr_work_told {
	const char *by;     /* "command", "webhook" */
	const char *reason; /* why it failed; NULL: it did not */
};
/* Sends a message of no item's by every way that notify.yaml has, their output to stderr; waits until it is
 * known what came of it, at most 10 s. KR_E_NOT_FOUND when there is none. work needs no store. */
int kr_work_notify_test(
	struct kr_work *work, struct kr_work_told told[KR_WORK_TOLD_MAX], size_t *n, struct kr_error *err);

#endif
