/* fingerprint: what counts of a failing task's output, and what differs from run to run by itself (CHN-03,
 * ITM-05). */
#include "repo.h"

#include "work/fingerprint.h"

#define P(sign) "\1" sign

static void
what_differs_by_itself_is_left_out_of_a_line(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "", "" },
		{ "2 failed, 5 passed", "2 failed, 5 passed" },
		{ "2 failed in 0.12s", "2 failed in " P("D") },
		{ "ok (15 ms)", "ok (" P("D") ")" },
		{ "took 1m3s.", "took " P("D") P("D") "." },
		{ "took 3 seconds, 4 mistakes", "took " P("D") ", 4 mistakes" },
		{ "4 months", "4 months" },
		{ "12:34:56.789 error", P("T") " error" },
		{ "[2026-01-31T12:34:56Z] E", "[" P("T") "] E" },
		{ "2026-01-31 12:34", P("T") " " P("T") },
		{ "a.c:12:5: error", "a.c:12:5: error" }, /* a place */
		{ "a.c:123:15: error", "a.c:123:15: error" },
		{ "see https://ci.example/x?y=1 now", "see " P("U") " now" },
		{ "at 0x7ffd12 in f", "at " P("X") " in f" },
		{ "commit deadbeef01", "commit " P("X") },
		{ "deadbeef", "deadbeef" }, /* a word */
		{ "defaced", "defaced" },
		{ "x12s", "x12s" },
		{ "10-20", "10-20" },
		{ "v1.2.3", "v1.2.3" },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		char out[KR_FINGERPRINT_LINE + 1];

		kr_fingerprint_line(out, cases[i].in, strlen(cases[i].in));
		assert_string_equal(out, cases[i].out);
	}
}

static void
a_long_line_counts_as_far_as_it_goes(void **state)
{
	char line[3 * KR_FINGERPRINT_LINE], out[KR_FINGERPRINT_LINE + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(line); i++)
		line[i] = i % 3 ? '1' : ' ';
	kr_fingerprint_line(out, line, sizeof(line));
	assert_in_range(strlen(out), KR_FINGERPRINT_LINE - 3, KR_FINGERPRINT_LINE);
	memset(line, '7', sizeof(line)); /* one number without an end */
	kr_fingerprint_line(out, line, sizeof(line));
	assert_true(strlen(out) <= KR_FINGERPRINT_LINE);
}

static void
two_failures_are_compared_by_what_tells(void **state)
{
	static const struct {
		const char *end_a, *a, *end_b, *b;
		bool is_same;
	} cases[] = {
		{ "1", "", "1", "", true },
		{ "1", "", "2", "", false },
		{ "1", "x", "1", "y", false },
		{ "1", "Error: x\nin 3s", "1", "Error: x\nin 4s", true },
		{ "1", "Error: x in 3s", "1", "Error: x in 4s", true },
		{ "1", "noise 1\nError: x\nnoise", "1", "noise 2\nError: x\nother", true }, /* beside what tells */
		{ "1", "3 failed", "1", "2 failed", false },
		{ "1", "noise 1\n---", "1", "noise 2\n---", false }, /* nothing tells: all of it counts */
		{ "1", "a\n---", "1", "a\n===", true },
		{ "1", "fail 1\nfail 2\nfail 3\nfail 4\nfail 5\nfail 6", "1",
			"fail 0\nfail 2\nfail 3\nfail 4\nfail 5\nfail 6", true }, /* the last five */
		{ "1", "fail 1\nfail 2", "1", "fail 2\nfail 1", false },
	};
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		const char *a = kr_fingerprint(&arena, cases[i].end_a, cases[i].a);
		const char *b = kr_fingerprint(&arena, cases[i].end_b, cases[i].b);

		if ((strcmp(a, b) == 0) != cases[i].is_same)
			fail_msg("'%s' and '%s'", cases[i].a, cases[i].b);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_differs_by_itself_is_left_out_of_a_line),
		cmocka_unit_test(a_long_line_counts_as_far_as_it_goes),
		cmocka_unit_test(two_failures_are_compared_by_what_tells),
	};

	return cmocka_run_group_tests_name("fingerprint", tests, NULL, NULL);
}
