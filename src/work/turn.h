/*
 * Sessions of an item beside its chain, one at a time, while the item waits for a person:
 *
 *     an escalation turn   "escalation": finds out why the item stopped, and may ask for one retry (ITM-05)
 *     a reply agent        "reply": answers the open threads of a review, and changes nothing
 *
 * The item's row names the one that is not settled. In order, each step one transaction:
 *
 *     filed      session "pending"                 by a person's command, or by the host at a stop that is
 * stuck begun      session "running"                 by a host, which holds the item's lock from here on
 *     ended      session "done", "failed", ...     the retry that it asked for is still "asked"
 *     settled    the retry "done" or "dropped"     the row names none any more
 *
 * Whoever is the item's next host after a crash goes on from there, so no retry is lost or done twice. What
 * its host left running is judged by what the launcher and the result file say.
 */
#ifndef KR_WORK_TURN_H
#define KR_WORK_TURN_H

#include "work/internal.h"

#define KR_TURN_PATH "escalation"
#define KR_REPLY_PATH "reply"

/*
 * Under the item's lock, in the view: what a dead host left is ended and settled, and what can not begin any
 * more is dropped. Afterwards the row names none, or one that may begin; and the item is ACTIVE when a retry
 * was done.
 */
int kr_turn_settle(struct kr_work *work, struct kr_work_view *view, struct kr_error *err);

/* Runs the one that the row names to its end, and settles it. The item is ACTIVE afterwards when it is to go
 * on. */
int kr_turn_run(struct kr_work *work, struct kr_work_view *view, bool show, const volatile sig_atomic_t *stop,
	struct kr_error *err);

struct kr_turn_wish {
	const char *message; /* NULL: a reply agent; then `review` is its review's id */
	const char *review;
	int64_t thread, turn;
	bool is_auto;
	unsigned attempt; /* of the automatic ones: its number in the item's run */
};
/* The next turn of the last thread, or the first one of a new thread. */
void kr_turn_place(const struct kr_work_view *view, bool new_thread, struct kr_turn_wish *wish);
/* Under the item's lock; the row names none. */
int kr_turn_file(
	struct kr_work *work, struct kr_work_view *view, const struct kr_turn_wish *wish, struct kr_error *err);

/* One that has not begun will not. */
int kr_turn_drop(struct kr_work *work, struct kr_work_view *view, const char *why, struct kr_error *err);

/* Whether the item just stopped in a way that kraft helps by itself. */
bool kr_turn_is_wanted(struct kr_work *work, const struct kr_work_view *view);
/* Files that turn. */
int kr_turn_file_auto(struct kr_work *work, struct kr_work_view *view, struct kr_error *err);

/* The row of a session of this item that is an escalation turn; NULL: it is none. */
const struct kr_turn_row *kr_turn_of(const struct kr_work_view *view, const char *session);
/* Whether these words for the next agent are those of a turn of the item, and no person's. */
bool kr_turn_says(struct kr_arena *arena, const struct kr_work_view *view, const char *steer);
/* Whether a turn of the item could have it retried now; else why not. */
const char *kr_turn_no_retry(const struct kr_work_view *view);
/* Writes down the retry that a turn asks for. KR_E_REFUSED: not now, or not again. */
int kr_turn_ask_retry(struct kr_work *work, const struct kr_work_view *view, const struct kr_turn_row *turn,
	const char *steer, struct kr_error *err);

#endif
