/* usage: what an item's sessions used together, and what its caps leave. */
#include "repo.h"

#include "work/usage.h"

static const struct kr_usage none;

static struct kr_session_row
session(int64_t run, const char *harness, struct kr_usage usage)
{
	return (struct kr_session_row){
		.id = "s", .path = "make.one.a", .run = run, .harness = harness, .ended_ms = 1, .usage = usage
	};
}

static struct kr_usage
told(int64_t input, int64_t output, int64_t cost_micro)
{
	return (struct kr_usage){ .is_known = true,
		.has_cost = cost_micro >= 0,
		.input = input,
		.output = output,
		.cache_write = 1,
		.cache_read = 1000,
		.cost_micro = cost_micro >= 0 ? cost_micro : 0 };
}

static void
sessions_of_the_run_are_summed(void **state)
{
	struct kr_session_row rows[] = { session(0, "claude", told(100, 10, 500)), session(1, NULL, none),
		session(1, "claude", told(7, 2, 300)), session(1, "codex", told(5, 1, -1)), session(1, "amp", none) };
	struct kr_work_view view = { .row.run = 1, .sessions = { rows, KR_COUNT(rows) } };
	struct kr_spent spent;

	(void)state;
	kr_work_spent(&view, true, &spent);
	assert_true(spent.usage.is_known && spent.usage.has_cost);
	assert_int_equal(spent.usage.input, 12);
	assert_int_equal(spent.usage.output, 3);
	assert_int_equal(spent.usage.cache_write, 2);
	assert_int_equal(spent.usage.cache_read, 2000);
	assert_int_equal(spent.usage.cost_micro, 300);
	assert_int_equal(spent.silent, 1);
	assert_int_equal(spent.unpriced, 1);
	kr_work_spent(&view, false, &spent);
	assert_int_equal(spent.usage.input, 112);
	assert_int_equal(spent.usage.cost_micro, 800);
	rows[4].ended_ms = 0; /* one that still runs has not been silent */
	kr_work_spent(&view, true, &spent);
	assert_int_equal(spent.silent, 0);
	view.sessions.n = 0;
	kr_work_spent(&view, true, &spent);
	assert_false(spent.usage.is_known || spent.usage.has_cost);
}

/* codex tells of the whole thread, in each of its sessions. */
static void
a_session_that_resumes_counts_what_is_new(void **state)
{
	struct kr_session_row rows[] = { session(0, "codex", told(100, 10, -1)),
		session(0, "codex", told(50, 5, -1)), session(0, "codex", none),
		session(0, "codex", told(9, 9, -1)) };
	struct kr_work_view view = { .sessions = { rows, KR_COUNT(rows) } };
	struct kr_agent_seen seen = { .conversation = "t1", .usage = told(400, 40, -1) };
	struct kr_usage used;

	(void)state;
	rows[0].conversation = rows[1].conversation = "t1";
	rows[3].conversation = "t2";
	rows[2].id = "now";
	seen.usage.cache_read = 2500;
	seen.usage.cache_write = 2;
	kr_work_usage_of(&view, &rows[2], KR_READER_CODEX, &seen, &used);
	assert_true(used.is_known);
	assert_int_equal(used.input, 250);
	assert_int_equal(used.output, 25);
	assert_int_equal(used.cache_write, 0);
	assert_int_equal(used.cache_read, 500);
	memcpy(seen.conversation, "t3", 3);
	kr_work_usage_of(&view, &rows[2], KR_READER_CODEX, &seen, &used);
	assert_int_equal(used.input, 400);
}

static struct kr_left
left_of(struct kr_usage usage, double tokens, double dollars)
{
	const struct kr_spent spent = { .usage = usage };
	const double bounds[KR_BOUND_COUNT] = { [KR_BOUND_TOKENS] = tokens, [KR_BOUND_BUDGET] = dollars };
	struct kr_left left;

	kr_work_left(&spent, bounds, &left);
	return left;
}

static void
a_cap_counts_down_to_nothing(void **state)
{
	struct kr_left left = left_of(told(100, 50, 1500000), 0, 0);

	(void)state;
	assert_true(!left.is_used_up && left.tokens == INT64_MAX && left.cost_micro == INT64_MAX);
	left = left_of(told(100, 50, 1500000), 152, 1.6); /* what came from a cache does not count */
	assert_true(!left.is_used_up && left.tokens == 1 && left.cost_micro == 100000);
	left = left_of(told(100, 50, 1500000), 151, 1.6);
	assert_true(left.is_used_up && left.by == KR_BOUND_TOKENS && left.tokens == 0);
	left = left_of(told(100, 50, 1500000), 152, 1.5);
	assert_true(left.is_used_up && left.by == KR_BOUND_BUDGET && left.cost_micro == 0);
	left = left_of(none, 1, 0.000001);
	assert_false(left.is_used_up);
}

/* A worker tells these numbers. */
static void
no_number_turns_a_cap_around(void **state)
{
	struct kr_session_row rows[] = { session(0, "x", told(INT64_MAX, INT64_MAX, INT64_MAX)),
		session(0, "x", told(5, 5, 5)), session(0, "x", told(INT64_MIN, -9, 0)) };
	struct kr_work_view view = { .sessions = { rows, KR_COUNT(rows) } };
	struct kr_spent spent;
	struct kr_left left;

	(void)state;
	kr_work_spent(&view, true, &spent);
	assert_true(spent.usage.input == INT64_MAX && spent.usage.output == INT64_MAX);
	assert_true(spent.usage.cost_micro == INT64_MAX);
	left = left_of(spent.usage, 1e15, 1e9);
	assert_true(left.is_used_up && left.tokens < 0 && left.cost_micro < 0);
	left = left_of(spent.usage, 1e300, 1e300);
	assert_false(left.is_used_up);
}

static void
tokens_of_any_numbers_have_a_sum(void **state)
{
	(void)state;
	assert_int_equal(kr_usage_tokens(&(struct kr_usage){ .input = 3, .output = 4, .cache_write = 5, .cache_read = 6 }), 12);
	assert_int_equal(
		kr_usage_tokens(&(struct kr_usage){ .input = INT64_MAX, .output = INT64_MAX, .cache_write = 1 }), INT64_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tokens_of_any_numbers_have_a_sum),
		cmocka_unit_test(sessions_of_the_run_are_summed),
		cmocka_unit_test(a_session_that_resumes_counts_what_is_new),
		cmocka_unit_test(a_cap_counts_down_to_nothing),
		cmocka_unit_test(no_number_turns_a_cap_around),
	};

	return cmocka_run_group_tests_name("usage", tests, NULL, NULL);
}
