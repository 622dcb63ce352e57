/* Sums of what sessions told, which stay at the end of their type (agent/usage.h): no number can turn a cap around. */
#include "work/usage.h"

static void
add_session(struct kr_spent *spent, const struct kr_session_row *s)
{
	const struct kr_usage *u = &s->usage;

	if (s->harness && s->ended_ms) {
		spent->silent += !u->is_known;
		spent->unpriced += u->is_known && !u->has_cost;
	}
	spent->usage.is_known |= u->is_known;
	spent->usage.has_cost |= u->has_cost;
	kr_usage_add(&spent->usage.input, u->input);
	kr_usage_add(&spent->usage.output, u->output);
	kr_usage_add(&spent->usage.cache_write, u->cache_write);
	kr_usage_add(&spent->usage.cache_read, u->cache_read);
	kr_usage_add(&spent->usage.cost_micro, u->cost_micro);
}

void
kr_work_spent(const struct kr_work_view *v, bool this_run, struct kr_spent *out)
{
	*out = (struct kr_spent){ 0 };
	for (size_t i = 0; i < v->sessions.n; i++)
		if (!this_run || v->sessions.v[i].run == v->row.run)
			add_session(out, &v->sessions.v[i]);
}

void
kr_work_usage_of(const struct kr_work_view *v, const struct kr_session_row *session, enum kr_reader reader,
	const struct kr_agent_seen *seen, struct kr_usage *out)
{
	struct kr_spent before = { 0 };

	for (size_t i = 0; i < v->sessions.n; i++) {
		const struct kr_session_row *s = &v->sessions.v[i];

		if (s->conversation && strcmp(s->conversation, seen->conversation) == 0 &&
			strcmp(s->id, session->id) != 0)
			add_session(&before, s);
	}
	kr_agent_usage_since(reader, seen, &before.usage, out);
}

static int64_t
left_of(double cap, double unit, int64_t spent)
{
	const double units = cap * unit;

	if (!(cap > 0) || units >= (double)INT64_MAX)
		return INT64_MAX;
	return (int64_t)units - spent;
}

void
kr_work_left(const struct kr_spent *spent, const double bounds[KR_BOUND_COUNT], struct kr_left *out)
{
	const struct kr_usage *u = &spent->usage;

	*out = (struct kr_left){ .tokens = left_of(bounds[KR_BOUND_TOKENS], 1, kr_usage_tokens(u)),
		.cost_micro = left_of(bounds[KR_BOUND_BUDGET], 1e6, u->cost_micro) };
	out->is_used_up = out->tokens <= 0 || out->cost_micro <= 0;
	out->by = out->tokens <= 0 ? KR_BOUND_TOKENS : KR_BOUND_BUDGET;
}
