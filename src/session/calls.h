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
 *     ask       whether a tool may be used: as the policy says, with the event permission_decision; where a
 *               person would be asked it is denied, since there is none
 *
 * Another item's id is refused whatever the verb. 503: the store cannot be read or written.
 */
#ifndef KR_SESSION_CALLS_H
#define KR_SESSION_CALLS_H

#include <jansson.h>

#include "config/harness.h"
#include "egress/call.h"
#include "policy/permit.h"
#include "store/store.h"

struct kr_calls {
	const char *item, *session, *repo, *worktree;
	const char *branch; /* NULL: none */
	/* The store, open for writing; NULL with err. Borrowed for one call. */
	struct kr_store *(*store)(void *context, struct kr_error *err);
	void *context;
	const struct kr_policy *policy;      /* of the tools; NULL: it cannot be resolved */
	const struct kr_harness *harness;    /* whose names a hook tells tools by; NULL: kraft's own table knows */
	unsigned progress, replies, permits; /* so far */
};

/* Answers in place of kr_calls_answer, for what is more than an item of `kraft run`. */
typedef void kr_calls_fn(
	void *context, struct kr_calls *calls, const struct kr_call *call, struct kr_call_answer *answer);

/* {"id", ...} as the body of a 200; value is taken, NULL is out of memory. */
void kr_calls_give(struct kr_call_answer *answer, json_t *value);
/* Not this session's: 403 and an event. */
void kr_calls_refuse(struct kr_call_answer *answer, const char *what, const char *name, const char *why);

/* ---- whether a tool may be used ---- */

/* The call's tool by its name in the policy, the first where it has several. */
const char *kr_calls_tool(const struct kr_calls *calls, const struct kr_call *call);
void kr_calls_judge(const struct kr_calls *calls, const struct kr_policy *policy, const struct kr_call *call,
	struct kr_permit_verdict *out);
/* The answer's body as egress/call.h has it. why: of a denial. */
void kr_calls_decide(struct kr_call_answer *answer, bool allow, const char *why);
/* {session_id, node_id, tool, decision, reason, grant}, of a hook harness and cli_tool; node NULL: none. An
 * allow that cannot be recorded is none. No opinion is not recorded. */
void kr_calls_permit(struct kr_calls *calls, const struct kr_call *call, const char *node,
	const struct kr_permit_verdict *verdict, struct kr_call_answer *answer);

void kr_calls_answer(struct kr_calls *calls, const struct kr_call *call, struct kr_call_answer *answer);

#endif
