/*
 * Where a work item stands in its chain, and what comes next: a pure function of the chain and of the item's
 * marks. A mark says what became of one path: a task ended, a person passed a gate. Marks are only ever
 * added, so an item is its log, and whoever picks it up after a crash comes to the same answer.
 *
 * A node's tasks run step by step. When a step fails: the node's recovery steps once, then its fix loop,
 * after each of which the node begins again; then the item stops. It stops sooner, as stuck, when after a
 * repair of the fix loop the same tasks fail as they did before it. A rejected gate leads back to the node
 * that it names, a retry to what it names; both clear what was counted from there on (ITM-02 to ITM-04).
 */
#ifndef KR_WORK_WALK_H
#define KR_WORK_WALK_H

#include "config/chain.h"

/* kind, name in the store */
#define KR_MARKS(X)                                                                                 \
	/* of a task */                                                                                 \
	X(DONE, "done")                                                                                 \
	X(CONCERNS, "done_with_concerns")                                                               \
	X(FAILED, "failed")                                                                             \
	X(QUESTION, "needs_context")                                                                    \
	X(CONFIG, "config_error")                                                                       \
	X(CAPPED, "capped_out")                                                                         \
	X(BUDGET, "over_budget")                                                                        \
	X(UNKNOWN, "unknown")                                                                           \
	/* of a gate */                                                                                 \
	X(APPROVED, "approved")                                                                         \
	X(REJECTED, "rejected")                                                                         \
	/* a person's word about a node, step or task; "" for the whole chain */                        \
	X(SKIPPED, "skipped")                                                                           \
	X(RETRIED, "retried")                                                                           \
	/* of the node where it stands, by an escalation turn: nothing that was counted is forgotten */ \
	X(AGAIN, "retried_by_turn")
enum kr_mark_kind {
#define X(kind, name) KR_MARK_##kind,
	KR_MARKS(X)
#undef X
		KR_MARK_COUNT
};
const char *kr_mark_name(enum kr_mark_kind kind);
bool kr_mark_from_name(const char *name, enum kr_mark_kind *out);

struct kr_work_mark {
	const char *path; /* canonical, config/chain.h */
	enum kr_mark_kind kind;
	const char *fingerprint; /* FAILED: how it did (work/fingerprint.h); NULL: not known, so like no other */
};

/* kind, name in the store and in JSON */
#define KR_STOPS(X)         \
	X(FAILED, "failed")     \
	X(STUCK, "stuck")       \
	X(CAP, "cap")           \
	X(BUDGET, "budget")     \
	X(CONFIG, "config")     \
	X(QUESTION, "question") \
	X(INFRA, "infra")
enum kr_stop {
	KR_STOP_NONE,
#define X(kind, name) KR_STOP_##kind,
	KR_STOPS(X)
#undef X
};
const char *kr_stop_name(enum kr_stop stop); /* "" for none */

enum kr_next_kind {
	KR_NEXT_RUN,     /* the tasks; the step is judged when all have run */
	KR_NEXT_GATE,    /* a person is waited for, at node */
	KR_NEXT_STOP,    /* a person is needed: stop, path */
	KR_NEXT_COMPLETE /* nothing is left to do */
};

struct kr_next {
	enum kr_next_kind kind;
	size_t node;                        /* its index; of COMPLETE: node_count */
	size_t reached;                     /* the node's step that it came to */
	const struct kr_chain_step *step;   /* RUN */
	const struct kr_task *const *tasks; /* RUN: those of the step that have no mark yet; in the arena */
	size_t task_count;
	unsigned cycle;      /* of the node's fix loop: 0 before the first */
	unsigned cycles_max; /* 0: the node has none */
	enum kr_stop stop;
	const char *path; /* STOP: what stopped it */
};

struct kr_walk_limits {
	unsigned fix_attempts; /* for a fix loop that names none; at least 1 */
	unsigned rejections;   /* of one gate; at least 1 */
};

/* KR_E_SYSTEM for a mark that does not belong where it stands: the log is kraft's own, so it was damaged. */
int kr_walk_next(struct kr_arena *arena, const struct kr_chain *chain, const struct kr_walk_limits *limits,
	const struct kr_work_mark *marks, size_t count, struct kr_next *out, struct kr_error *err);

/*
 * What a person may say now. KR_E_REFUSED with a sentence when the path is not in the chain, lies after where
 * the item stands, is a repair step, or (skip) is not skippable or not where it stands.
 */
int kr_walk_may_retry(
	const struct kr_chain *chain, const struct kr_next *now, const char *path, struct kr_error *err);
int kr_walk_may_skip(
	const struct kr_chain *chain, const struct kr_next *now, const char *path, struct kr_error *err);

#endif
