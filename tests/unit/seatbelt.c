/* backend/seatbelt.c and backend/macos.c: paths that have no safe spelling, what holds for every profile, and MAC-11. What profiles
 * allow is asked of the golden ones (tests/seatbelt). */
#include <setjmp.h>
#include <stdarg.h>

#include "backend/backend.h"
#include "os/sys.h"

#include <cmocka.h>

enum { PROFILE_BYTES = 1 << 20 };

/* The profile of one step; "" with the error when it is refused. */
static const char *
profile_of(struct kr_arena *arena, struct kr_step step, bool terminal, struct kr_error *err)
{
	static const struct kr_repo repo;
	const struct kr_plan_macos macos = { .tmpdir = "/run/t", .proxy_port = 4000 };
	const struct kr_request request = { .repo = &repo, .macos = &macos, .terminal = terminal };
	const struct kr_plan plan = { .request = &request, .steps = &step, .step_count = 1 };
	kr_auto_buf struct kr_buf out = KR_BUF(PROFILE_BYTES);

	return kr_seatbelt_profile(&plan, &out, err) < 0 ? "" : kr_arena_dup(arena, out.data);
}

static void
a_path_is_text_and_no_program_MAC_02(void **state)
{
	static const struct {
		const char *path, *filter;
	} cases[] = {
		{ "/a b", "(subpath \"/a b\")" },
		{ "/a\"b", "(subpath \"/a\\\"b\")" },
		{ "/a\\", "(subpath \"/a\\\\\")" },
		{ "/a\\\"b", "(subpath \"/a\\\\\\\"b\")" },
		{ "/a\")) (allow default) (deny signal (literal \"/b", "(subpath \"/a\\\")) (allow default) (deny signal (literal \\\"/b\")" },
		{ "/;x", "(subpath \"/;x\")" },
		{ "/\xd0\xba", "(subpath \"/\xd0\xba\")" },
	};
	struct kr_arena arena = { 0 };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_error err = { 0 };
		const char *text = profile_of(&arena, (struct kr_step){ KR_STEP_BIND_RO, .path = cases[i].path }, false, &err);

		assert_string_equal(err.message, "");
		assert_non_null(strstr(text, cases[i].filter));
	}
	kr_arena_fini(&arena);
}

static void
what_has_no_safe_spelling_is_refused_MAC_02(void **state)
{
	static const char *const paths[] = { "/a\nb", "/a\tb", "/a\x7f", "/a\x1b[0m", "/a\xff", "/a\xc3", "/a\xed\xa0\x80", "a", "/a/../b" };
	struct kr_arena arena = { 0 };
	struct kr_error err = { 0 };
	char longest[1002];

	(void)state;
	for (size_t i = 0; i < KR_COUNT(paths); i++) {
		err = (struct kr_error){ 0 };
		assert_string_equal(profile_of(&arena, (struct kr_step){ KR_STEP_MASK, .path = paths[i] }, false, &err), "");
		assert_int_equal(err.code, KR_E_REFUSED);
		assert_string_not_equal(err.hint, "");
	}
	memset(longest, 'a', sizeof(longest) - 1);
	longest[0] = '/';
	longest[sizeof(longest) - 1] = '\0';
	assert_string_equal(profile_of(&arena, (struct kr_step){ KR_STEP_BIND_RO, .path = longest }, false, &err), "");
	longest[1000] = '\0';
	assert_string_not_equal(profile_of(&arena, (struct kr_step){ KR_STEP_BIND_RO, .path = longest }, false, &err), "");
	kr_arena_fini(&arena);
}

/* MAC-02, MAC-12: what a profile has beside its plan is what explain tells. */
static void
what_is_allowed_beside_is_told_MAC_02(void **state)
{
	struct kr_arena arena = { 0 };
	struct kr_error err = { 0 };
	struct kr_strs with = { 0 }, without = { 0 };
	const char *text = profile_of(&arena, (struct kr_step){ KR_STEP_BIND_RO, .path = "/a" }, true, &err);

	(void)state;
	kr_seatbelt_beside(&arena, true, &with);
	kr_seatbelt_beside(&arena, false, &without);
	assert_true(with.n > without.n);
	assert_true(kr_strs_has(&with, "device /dev/tty") && !kr_strs_has(&without, "device /dev/tty"));
	for (size_t i = 0; i < with.n; i++) {
		const char *value = strchr(with.v[i], ' ') + 1;

		if (strchr("/ch", *value) && !strchr(value, ' ')) /* a name, which stands in the profile as it is told, but for a star */
			assert_non_null(strstr(text, kr_arena_printf(&arena, "\"%.*s\"", (int)strcspn(value, "*"), value)));
	}
	kr_arena_fini(&arena);
}

static const struct kr_macos_facts good = {
	.machine = "arm64", .sandbox_exec = "/usr/bin/sandbox-exec", .has_sandbox_exec = true, .has_tools = true
};

static void
expect_refusal(struct kr_macos_facts facts, const char *words, const char *hint)
{
	struct kr_error err = { 0 };

	assert_int_equal(kr_macos_check(&facts, &err), -1);
	assert_non_null(strstr(err.message, words));
	assert_non_null(strstr(err.hint, hint));
}

static void
a_mac_is_looked_at_before_a_launch_MAC_11(void **state)
{
	struct kr_macos_facts facts = good;

	(void)state;
	assert_int_equal(kr_macos_check(&facts, NULL), 0);
	facts.machine = "x86_64";
	assert_int_equal(kr_macos_check(&facts, NULL), 0);
	facts.machine = "ppc";
	expect_refusal(facts, "'ppc'", "");
	facts = good, facts.is_translated = true;
	expect_refusal(facts, "Rosetta", "Apple silicon");
	facts = good, facts.is_root = true;
	expect_refusal(facts, "root", "ordinary user");
	facts = good, facts.is_sandboxed = true;
	expect_refusal(facts, "inside a sandbox", "terminal");
	facts = good, facts.has_sandbox_exec = false;
	expect_refusal(facts, "/usr/bin/sandbox-exec", "kind: docker");
	facts = good, facts.has_tools = false;
	expect_refusal(facts, "Command Line Tools", "xcode-select --install");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_is_text_and_no_program_MAC_02),
		cmocka_unit_test(what_has_no_safe_spelling_is_refused_MAC_02),
		cmocka_unit_test(what_is_allowed_beside_is_told_MAC_02),
		cmocka_unit_test(a_mac_is_looked_at_before_a_launch_MAC_11),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
