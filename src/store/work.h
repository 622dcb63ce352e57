/*
 * Work items in the store, and what belongs to them: marks, sessions, review threads. Rows as structs; what
 * they mean is work/'s. Strings given back live in the arena. Errors as in store.h; every change is on the
 * disk when its transaction has returned 0.
 */
#ifndef KR_STORE_WORK_H
#define KR_STORE_WORK_H

#include "agent/usage.h"
#include "store/store.h"

/* All that `body` does is one transaction: all of it or nothing (then its error stands). Not within another
 * one. When the disk is full it is done once more with room from the reserve, so it must not use up what it
 * is given. */
int kr_store_transact(struct kr_store *store, int (*body)(void *context, struct kr_error *err), void *context,
	struct kr_error *err);

struct kr_item_row {
	const char *id, *title, *description, *repo, *chain_id, *chain, *policy;
	const char *base, *worker, *steer; /* NULL: none */
	const char *layer;                 /* its own layer of the policy; NULL: none */
	const char *harness;               /* in place of the one that its chain names; NULL: none */
	const char *turn; /* a session beside its chain that is not settled (work/turn.h); NULL: none */
	const char *status, *stop, *reason, *place;
	int64_t progress; /* -1: none was told */
	int64_t run;
	int64_t asks; /* that are open; only read */
	uint64_t created_ms, changed_ms;
	uint64_t retry_ms; /* RATE_LIMITED: when it goes on; 0: none */
};
int kr_store_item_add(struct kr_store *store, const struct kr_item_row *row, struct kr_error *err);
/* `id` may be any beginning that only one item has. KR_E_NOT_FOUND, or KR_E_USAGE naming those that it could
 * be. */
int kr_store_item_get(struct kr_arena *arena, struct kr_store *store, const char *id, struct kr_item_row *out,
	struct kr_error *err);
/* Status, stop, reason, place, steer, turn, progress, run, retry_ms and changed_ms; the rest never changes. */
int kr_store_item_set(struct kr_store *store, const struct kr_item_row *row, struct kr_error *err);

/* Only how far its worker says it is. */
int kr_store_item_set_progress(
	struct kr_store *store, const char *id, int64_t progress, struct kr_error *err);

struct kr_item_rows {
	struct kr_item_row *v; /* oldest first */
	size_t n;
};
/* chain and policy are "": they are long, and a list needs neither. */
int kr_store_items(
	struct kr_arena *arena, struct kr_store *store, struct kr_item_rows *out, struct kr_error *err);

/* Those of none of these three statuses. */
int kr_store_items_except(struct kr_arena *arena, struct kr_store *store, const char *const statuses[3],
	struct kr_item_rows *out, struct kr_error *err);

/* What has to be completed before an item begins, and how it stands now. */
struct kr_dependency_row {
	const char *id, *status;
};
int kr_store_dependency_add(
	struct kr_store *store, const char *item, const char *on, struct kr_error *err); /* twice is once */
int kr_store_dependency_remove(
	struct kr_store *store, const char *item, const char *on, struct kr_error *err);
struct kr_dependency_rows {
	struct kr_dependency_row *v; /* oldest first */
	size_t n;
};
int kr_store_dependencies(struct kr_arena *arena, struct kr_store *store, const char *item,
	struct kr_dependency_rows *out, struct kr_error *err);

struct kr_mark_row {
	const char *path, *kind;
	const char *session, *note; /* NULL: none */
	const char *fingerprint;    /* of a failure; NULL: none is known */
	int64_t run;
	uint64_t ms;
};
int kr_store_mark_add(
	struct kr_store *store, const char *item, const struct kr_mark_row *row, struct kr_error *err);
struct kr_mark_rows {
	struct kr_mark_row *v; /* in order */
	size_t n;
};
int kr_store_marks(struct kr_arena *arena, struct kr_store *store, const char *item, struct kr_mark_rows *out,
	struct kr_error *err);

struct kr_session_row {
	const char *id, *item, *path, *status;
	const char *reason; /* NULL: none */
	const char *harness, *model; /* of an agent; NULL: it is none, or its model is not known */
	const char *conversation;    /* an agent's own id of it; NULL: not known */
	struct kr_usage usage;
	int64_t run, round;
	uint64_t created_ms, ended_ms; /* ended_ms 0: it has not */
};
int kr_store_session_add(struct kr_store *store, const struct kr_session_row *row, struct kr_error *err);
int kr_store_session_set(struct kr_store *store, const struct kr_session_row *row, struct kr_error *err);
struct kr_session_rows {
	struct kr_session_row *v; /* oldest first */
	size_t n;
};
int kr_store_sessions(struct kr_arena *arena, struct kr_store *store, const char *item,
	struct kr_session_rows *out, struct kr_error *err);

/* state of an ask, name in the store and in JSON */
#define KR_ASK_STATES(X)  \
	X(OPEN, "open")       \
	X(ALLOWED, "allowed") \
	X(DENIED, "denied")   \
	X(EXPIRED, "expired") \
	X(USED, "used")
enum kr_ask_state {
#define X(state, name) KR_ASK_##state,
	KR_ASK_STATES(X)
#undef X
};
const char *kr_ask_state_name(enum kr_ask_state state);

/*
 * Whether a worker may use a tool once, with this input. OPEN until a person allows or denies it, or its time
 * or session is over; ALLOWED until the worker has taken it (USED). Of one that is neither open nor allowed
 * only the beginning of the input is kept.
 */
struct kr_ask_row {
	const char *id, *item, *session, *tool;
	const char *input; /* JSON, as it was asked */
	enum kr_ask_state state;
	const char *note;                   /* of who answered; NULL: none */
	uint64_t ms, until_ms, answered_ms; /* answered_ms 0: not yet */
};
enum { KR_ASK_KEPT_BYTES = 4096 };
int kr_store_ask_add(struct kr_store *store, const struct kr_ask_row *row, struct kr_error *err);
/* From one state to another at this time; note may be NULL. 1: done, 0: it is in another state by now, or not
 * there. */
int kr_store_ask_move(struct kr_store *store, const char *id, enum kr_ask_state from, enum kr_ask_state to,
	const char *note, uint64_t ms, struct kr_error *err);
struct kr_ask_rows {
	struct kr_ask_row *v; /* oldest first */
	size_t n;
};
/* Those of an item, of a session, and that are open; NULL, NULL and false: no matter. */
struct kr_ask_query {
	const char *item, *session;
	bool open_only;
};
int kr_store_asks(struct kr_arena *arena, struct kr_store *store, const struct kr_ask_query *query,
	struct kr_ask_rows *out, struct kr_error *err);
/* How many a session has open, and ever had. */
int kr_store_asks_count(
	struct kr_store *store, const char *session, int64_t *open, int64_t *all, struct kr_error *err);
/* `id` may be any beginning that only one ask has. KR_E_NOT_FOUND. */
int kr_store_ask_get(struct kr_arena *arena, struct kr_store *store, const char *id, struct kr_ask_row *out,
	struct kr_error *err);

/* A turn of an escalation, beside its session's row. */
struct kr_turn_row {
	const char *session, *item;
	int64_t thread, turn; /* each from 1 */
	bool is_auto;
	const char *message;
	const char *retry;       /* JSON {"steer"}; NULL: it asked for none */
	const char *retry_state; /* "", "asked", "done", "dropped" */
};
int kr_store_turn_add(struct kr_store *store, const struct kr_turn_row *row, struct kr_error *err);
/* Its retry and the state of that; the rest never changes. */
int kr_store_turn_set(struct kr_store *store, const struct kr_turn_row *row, struct kr_error *err);
struct kr_turn_rows {
	struct kr_turn_row *v; /* by thread and turn */
	size_t n;
};
int kr_store_turns(struct kr_arena *arena, struct kr_store *store, const char *item, struct kr_turn_rows *out,
	struct kr_error *err);

struct kr_comment_row {
	const char *author, *body;
	const char *claim; /* NULL: none */
	uint64_t ms;
};
struct kr_thread_row {
	const char *id, *item;
	const char *file; /* NULL: about all of it */
	int64_t line;     /* 0: none */
	bool must_fix, is_open;
	uint64_t ms;
	struct kr_comment_row *comments;
	size_t comment_count;
};
int kr_store_thread_add(struct kr_store *store, const struct kr_thread_row *row, struct kr_error *err);
int kr_store_thread_set_open(struct kr_store *store, const char *id, bool is_open, struct kr_error *err);
int kr_store_comment_add(
	struct kr_store *store, const char *thread, const struct kr_comment_row *row, struct kr_error *err);
/* The item that a thread is of. KR_E_NOT_FOUND. */
int kr_store_thread_item(struct kr_arena *arena, struct kr_store *store, const char *thread,
	const char **item, struct kr_error *err);

struct kr_thread_rows {
	struct kr_thread_row *v; /* oldest first, with their comments */
	size_t n;
};
/* Those of one item. */
int kr_store_threads(struct kr_arena *arena, struct kr_store *store, const char *item,
	struct kr_thread_rows *out, struct kr_error *err);

#endif
