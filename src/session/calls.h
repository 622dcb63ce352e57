/*
 * What a worker of `kraft run` gets from kraft when it calls (CHN-02 to CHN-07, egress/call.h): its own
 * item's events and facts, and a way to say how far it is. It can do nothing to the item: no verb approves,
 * answers or starts anything (CHN-12).
 *
 *     events    200: the item's events after a number, of one type; a line each, as `kraft view events
 * --json` has them progress  200: {"id", "task"}; event plan_progress {session_id, task}, at most
 * KR_PROGRESS_MAX of a session, then 429 show      200: {"id", "repo", "worktree", "branch", "session"}
 *     threads   404: an item of `kraft run` has none
 *     reply     refused: so no thread is the session's own
 *     retry     403, and no event (CHN-03): a worker session cannot act on its own work item
 *
 * Another item's id is refused whatever the verb. 503: the store cannot be read or written.
 */
#ifndef KR_SESSION_CALLS_H
#define KR_SESSION_CALLS_H

#include <jansson.h>

#include "egress/call.h"
#include "store/store.h"

struct kr_calls {
	const char *item, *session, *repo, *worktree;
	const char *branch; /* NULL: none */
	/* The store, open for writing; NULL with err. Borrowed for one call. */
	struct kr_store *(*store)(void *context, struct kr_error *err);
	void *context;
	unsigned progress, replies; /* so far */
};

/* Answers in place of kr_calls_answer, for what is more than an item of `kraft run`. */
typedef void kr_calls_fn(
	void *context, struct kr_calls *calls, const struct kr_call *call, struct kr_call_answer *answer);

/* {"id", ...} as the body of a 200; value is taken, NULL is out of memory. */
void kr_calls_give(struct kr_call_answer *answer, json_t *value);
/* Not this session's: 403 and an event. */
void kr_calls_refuse(struct kr_call_answer *answer, const char *what, const char *name, const char *why);

void kr_calls_answer(struct kr_calls *calls, const struct kr_call *call, struct kr_call_answer *answer);

#endif
