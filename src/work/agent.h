/*
 * The agents of an item's tasks: which one does a task, what it is told, whether it goes on with a conversation, and what
 * its own word about its session means. That word is a worker's: it decides figures, waiting times and words.
 */
#ifndef KR_WORK_AGENT_H
#define KR_WORK_AGENT_H

#include "agent/stream.h"
#include "work/launch.h"

struct kr_work_agent {
	const char *harness;        /* its id */
	const char *model, *effort; /* NULL: the harness's own */
};
/* Pure. Of a task of the chain. False: neither the item nor its chain names one. */
bool kr_work_agent_of(const struct kr_work_view *view, const struct kr_task *task, struct kr_work_agent *out);
/*
 * Pure. Of a session beside the chain, by the policy's escalation_harness ("claude"; "item" or NULL: that of the agent of
 * the node where the item stands, else of the chain's first one). False: the chain has no agent.
 */
bool kr_work_agent_beside(const struct kr_work_view *view, const char *escalation, struct kr_work_agent *out);

/* Its id; NULL: the item's own words are in its place, or there is none, and then *why is set. */
const char *kr_work_beside(struct kr_work *work, const struct kr_work_view *view, const char **why);

/* Why no agent can answer a review; NULL: one can. An answer is a call to kraft, so it takes a channel (CHN-11). */
const char *kr_work_no_reply(struct kr_work *work, const struct kr_work_view *view);

/* The harness for the row of a session: of a task, or (NULL) beside the chain. NULL: it is no agent's, or nobody knows. */
const char *kr_work_harness_of(struct kr_work *work, const struct kr_work_view *view, const struct kr_task *task);

struct kr_work_seen {
	enum kr_reader reader;
	struct kr_agent_seen seen;
};
/* In the arena; NULL: it is no agent's session, or tells nothing that can be read. */
const struct kr_work_seen *kr_work_see(struct kr_work *work, const char *harness, const char *session);
/* The last that a session of the view said, as a person reads it: an agent's words, else the end of what it printed. */
const char *kr_work_last_words(struct kr_work *work, const struct kr_work_view *view, const char *session);
/* Model, conversation and usage into the row of its session; the other rows in the view are those before it. */
void kr_work_take_seen(
	const struct kr_work_view *view, const struct kr_work_seen *seen, struct kr_session_row *session);

/* How an agent came out that left no result; out->seen is set, or NULL. status: its exit status. */
void kr_work_judge_agent(struct kr_work *work, const struct kr_work_task *task, const struct kr_work_launch *launch,
	int status, struct kr_work_outcome *out);

#endif
