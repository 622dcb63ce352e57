/*
 * What an agent is told: where it is and how it tells what became of it (the context, the same for every task), and
 * its task: the item, a person's word, the task's prompt; in a repair also what failed. Pure.
 *
 * What failed holds text of a worker's: reason and output are cleaned (UTF-8, no control characters but
 * newline and tab) and every line of them is indented, so that none of it can pass for a line of the item's
 * or of a person's.
 */
#ifndef KR_WORK_BRIEF_H
#define KR_WORK_BRIEF_H

#include "config/chain.h"
#include "store/work.h"

enum {
	KR_BRIEF_TAIL = 4096,  /* bytes of a failed task's output, from its end */
	KR_BRIEF_FAILURES = 4, /* that are told in full; of more only the number */
};

struct kr_brief_failure {
	const char *path;
	const char *command; /* as written; NULL: it has none */
	const char *reason;  /* NULL or "": none */
	const char *output;  /* as of kr_brief_tail; NULL or "": it printed nothing */
};

struct kr_brief {
	const char *title, *description; /* description may be "" */
	const char *steer, *prompt;      /* NULL: none */
	bool is_agents_steer;            /* of an escalation turn, and no person's */
	const struct kr_brief_failure *failures;
	size_t failure_count, left_out; /* left_out: failures beside those */
	bool has_channel;               /* of a turn: it can call kraft (CHN-11) */
};
const char *kr_brief_text(struct kr_arena *arena, const struct kr_brief *brief);

struct kr_brief_context {
	bool has_channel;  /* kraft's command works inside; else the network is open, and nothing reaches kraft (CHN-11) */
	bool is_image;     /* its programs are those of an image, not of this host */
	bool may_push;     /* by the policy's grant */
	bool is_reader;    /* what it changes is put back */
	bool is_by_result; /* without a result file it has failed; else its exit status tells */
	const char *result; /* where that file is inside, in every session; NULL: only its variable says */
};
const char *kr_brief_context_text(struct kr_arena *arena, const struct kr_brief_context *context);

/* Why a conversation broke off. */
enum kr_break { KR_BREAK_PAUSE, KR_BREAK_LIMIT, KR_BREAK_CRASH };
/* For one that goes on where it was. Only the steer is looked at in `brief`. */
const char *kr_brief_resume_text(struct kr_arena *arena, enum kr_break why, const struct kr_brief *brief);

/* ---- of a session beside the chain (work/turn.h) ---- */

/* An earlier turn of the same thread. */
enum { KR_BRIEF_SAID = 8 }; /* that are told: the last ones */
struct kr_brief_said {
	int64_t turn;
	bool by_kraft;
	const char *message, *status;
	const char *retry;  /* "", "asked", "done", "dropped" */
	const char *output; /* as of kr_brief_tail */
};
struct kr_brief_turn {
	const struct kr_brief *item; /* title, description, what failed */
	bool is_paused;
	const char *place, *stop, *reason; /* place and reason may be "" */
	const struct kr_brief_said *said;
	size_t said_count;
	const char *message;
	bool by_kraft;       /* the message */
	const char *retries; /* the node that a retry runs again; NULL: it may not ask for one */
};
const char *kr_brief_turn_text(struct kr_arena *arena, const struct kr_brief_turn *turn);

/* Which open threads are to be answered. */
const char *kr_brief_reply_text(
	struct kr_arena *arena, const struct kr_brief *item, const struct kr_thread_rows *threads);

/* Whether a task of this path is there to mend what failed. */
bool kr_brief_is_repair(const char *path);

struct kr_brief_failed {
	const struct kr_task *task;
	const struct kr_mark_row *mark;
};
/* What failed in `node` when it was last measured, in order; for a repair of that node. In the arena; *n may
 * be 0. */
const struct kr_brief_failed *kr_brief_failed(
	struct kr_arena *arena, const struct kr_node *node, const struct kr_mark_rows *marks, size_t *n);

/*
 * The end of an output, to be read: whole lines where it has some, without a terminal's escape sequences. out
 * has room for n + 1 bytes, is terminated and may be `in`; is_cut: bytes came before. Returns the length, at
 * most n.
 */
size_t kr_brief_tail(char *out, const char *in, size_t n, bool is_cut);

#endif
