/* What an item's agents used, and what its caps leave of it. Pure. */
#ifndef KR_WORK_USAGE_H
#define KR_WORK_USAGE_H

#include "agent/stream.h"
#include "work/work.h"

struct kr_spent {
	struct kr_usage usage; /* of all that told; is_known: one did, has_cost: one told a price */
	unsigned silent;       /* agents' sessions that have ended and did not say what they used */
	unsigned unpriced;     /* that said it, and no price: budget_usd does not count them */
};
/* this_run: only since a person last let the item begin anew, as its caps count (a retry, a rejection). */
void kr_work_spent(const struct kr_work_view *view, bool this_run, struct kr_spent *out);

/* What a session of its used, by what it told: without what earlier sessions of the same conversation have in
 * their rows, where the agent counted on. */
void kr_work_usage_of(const struct kr_work_view *view, const struct kr_session_row *session,
	enum kr_reader reader, const struct kr_agent_seen *seen, struct kr_usage *out);

/* What token_budget and budget_usd leave for the item's next launch; INT64_MAX: there is no such cap. */
struct kr_left {
	int64_t tokens, cost_micro; /* at most 0: it is used up */
	bool is_used_up;            /* then nothing is launched */
	enum kr_bound by;           /* is_used_up: the cap */
};
void kr_work_left(const struct kr_spent *spent, const double bounds[KR_BOUND_COUNT], struct kr_left *out);

#endif
