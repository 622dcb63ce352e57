/* plan/: what the golden plans do not show: limits, order, bounds of the search, and that no secret is
 * printed. */
#include <setjmp.h>
#include <stdarg.h>

#include "base/path.h"
#include "plan_case.h"

#include <cmocka.h>

static const struct kr_step *
step_at(const struct kr_plan *plan, enum kr_step_kind kind, const char *path)
{
	for (size_t i = 0; i < plan->step_count; i++)
		if (plan->steps[i].kind == kind && strcmp(plan->steps[i].path, path) == 0)
			return &plan->steps[i];
	return NULL;
}

/* OS-MNT-10 */
static void
an_exposed_path_is_shown_read_only_and_checked_again(void **state)
{
	static const struct fake_entry entries[] = { { "/srv/t/x", "file" }, { NULL, NULL } };
	struct plan_case c;
	const struct kr_plan *plan;
	const struct kr_step *step;

	(void)state;
	plan_case_init(&c, entries, "make");
	plan_case_expose(&c, "/srv/t");
	plan = plan_case_build(&c);
	assert_non_null(plan);
	step = step_at(plan, KR_STEP_BIND_RO, "/srv/t");
	KR_BUG_IF(!step);
	assert_int_equal(step->check, KR_CHECK_PROTECT);
	assert_string_equal(step->source, "/srv/t");
	assert_string_equal(plan->exec_path, "/usr/bin/make");
	plan_case_fini(&c);
}

/* OS-MNT-06, OS-MNT-11: of KRAFT_HOME only the item's and the session's own places. */
static void
nothing_else_of_kraft_home_is_shown(void **state)
{
	static const char *const allowed[] = { CASE_WORKTREE, "/home/ada/.kraft/run/sandbox-home/w",
		"/home/ada/.kraft/run/results/w", "/home/ada/.kraft/run/results/w/s.json",
		"/home/ada/.kraft/run/sn/s", CASE_WORKTREE "/.git" };
	struct plan_case c;
	const struct kr_plan *plan;
	size_t seen = 0;

	(void)state;
	plan_case_init(&c, NULL, "make");
	plan = plan_case_build(&c);
	assert_non_null(plan);
	for (size_t i = 0; i < plan->step_count; i++) {
		bool known = false;

		if (!kr_path_is_within(plan->steps[i].path, "/home"))
			continue;
		for (size_t k = 0; k < KR_COUNT(allowed); k++)
			known = known || strcmp(plan->steps[i].path, allowed[k]) == 0;
		assert_true(known);
		seen++;
	}
	assert_int_equal(seen, KR_COUNT(allowed));
	plan_case_fini(&c);
}

/* A mount hides what was mounted below it before; the sealing of / and /dev ends the list. */
static void
parents_come_before_children(void **state)
{
	static const struct fake_entry entries[] = { { "/srv/t/x", "file" }, { "/srv/t-x/.npmrc", "file" },
		{ "/opt/t/bin/tool", "exec" }, { "/srv/l", "-> t" }, { NULL, NULL } };
	struct plan_case c;
	const struct kr_plan *plan;

	(void)state;
	plan_case_init(&c, entries, "tool");
	plan_case_expose(&c, "/srv/t-x");
	plan_case_expose(&c, "/srv/l");
	plan = plan_case_build(&c);
	assert_non_null(plan);
	for (size_t i = 0; i + 2 < plan->step_count; i++)
		for (size_t k = i + 1; k + 2 < plan->step_count; k++)
			assert_false(kr_path_is_within(plan->steps[i].path, plan->steps[k].path));
	assert_int_equal(plan->steps[plan->step_count - 2].kind, KR_STEP_READ_ONLY);
	assert_string_equal(plan->steps[plan->step_count - 2].path, "/");
	assert_string_equal(plan->steps[plan->step_count - 1].path, "/dev");
	plan_case_fini(&c);
}

/* FS-17: what lies in the host's /tmp is below directories that the worker cannot rename. */
static void
places_in_tmp_cannot_be_moved(void **state)
{
	static const struct fake_entry entries[] = { { "/tmp/a/b/t/x", "file" }, { "/tmp/a/c/u", "file" },
		{ "/tmp/whole/x", "file" }, { "/tmp/l/k", "-> ../a/c" }, { NULL, NULL } };
	struct plan_case c;
	const struct kr_plan *plan;

	(void)state;
	plan_case_init(&c, entries, "make");
	plan_case_expose(&c, "/tmp/a/b/t");
	plan_case_expose(&c, "/tmp/l/k");
	plan_case_expose(&c, "/tmp/whole");
	plan = plan_case_build(&c);
	KR_BUG_IF(!plan);
	assert_non_null(step_at(plan, KR_STEP_TMPFS, "/tmp/a"));
	assert_non_null(step_at(plan, KR_STEP_READ_ONLY, "/tmp/a"));
	assert_non_null(step_at(plan, KR_STEP_TMPFS, "/tmp/l"));
	assert_non_null(step_at(plan, KR_STEP_READ_ONLY, "/tmp/l"));
	assert_null(step_at(plan, KR_STEP_TMPFS, "/tmp/whole")); /* a mount itself */
	assert_true(step_at(plan, KR_STEP_TMPFS, "/tmp/a") < step_at(plan, KR_STEP_BIND_RO, "/tmp/a/b/t"));
	assert_true(step_at(plan, KR_STEP_LINK, "/tmp/l/k") < step_at(plan, KR_STEP_READ_ONLY, "/tmp/l"));
	plan_case_fini(&c);
}

/* Links as the worker's kernel follows them: over what is mounted there, not over the host. */
static void
what_a_worker_finds_at_a_path(void **state)
{
	static const struct fake_entry entries[] = { { "/srv/t/x", "file" }, { "/srv/t/.npmrc", "file" }, { "/srv/t/out", "-> ../secret/y" },
		{ "/srv/t/back", "-> x" }, { "/srv/t/gone", "-> none/z" }, { "/srv/secret/y", "file" }, { "/srv/l", "-> t" }, { "/srv/t/loop", "-> loop" },
		{ "/tmp/a/b/x", "file" }, { "/tmp/a/other", "file" }, { NULL, NULL } };
	static const struct {
		const char *path, *leads_to;
		enum kr_sight_kind kind;
		bool is_there;
	} cases[] = {
		{ "/srv/t/x", "/srv/t/x", KR_SIGHT_READ, true },
		{ "/srv/t", "/srv/t", KR_SIGHT_READ, true },
		{ "/srv/t/back", "/srv/t/x", KR_SIGHT_READ, true },
		{ "/srv/l/x", "/srv/t/x", KR_SIGHT_READ, true },
		{ "/srv/l/none/more", "/srv/t/none/more", KR_SIGHT_ABSENT, false },
		{ "/srv/t/.npmrc", "/srv/t/.npmrc", KR_SIGHT_EMPTY, true },
		{ "/srv/t/out", "/srv/secret/y", KR_SIGHT_ABSENT, false },
		{ "/srv/t/gone", "/srv/t/none/z", KR_SIGHT_ABSENT, false },
		{ "/srv/t/loop", "/srv/t/loop", KR_SIGHT_ABSENT, false },
		{ "/srv/secret/y", "/srv/secret/y", KR_SIGHT_ABSENT, false },
		{ "/srv/secret", "/srv/secret", KR_SIGHT_ABSENT, false },
		{ "/srv", "/srv", KR_SIGHT_READ, true },
		{ "/", "/", KR_SIGHT_READ, true },
		{ "/usr/bin/make", "/usr/bin/make", KR_SIGHT_READ, true },
		{ "/usr/bin/none", "/usr/bin/none", KR_SIGHT_ABSENT, false },
		{ "/proc/1", "/proc/1", KR_SIGHT_OWN, false },
		{ "/var/tmp/x", "/tmp/x", KR_SIGHT_OWN, false },
		{ "/tmp", "/tmp", KR_SIGHT_OWN, true },
		{ "/tmp/a", "/tmp/a", KR_SIGHT_READ, true }, /* sealed: leads to what is exposed below */
		{ "/tmp/a/b/x", "/tmp/a/b/x", KR_SIGHT_READ, true },
		{ "/tmp/a/other", "/tmp/a/other", KR_SIGHT_ABSENT, false },
		{ CASE_WORKTREE "/new", CASE_WORKTREE "/new", KR_SIGHT_WRITE, false },
		{ CASE_WORKTREE, CASE_WORKTREE, KR_SIGHT_WRITE, true },
	};
	struct plan_case c;
	const struct kr_plan *plan;

	(void)state;
	plan_case_init(&c, entries, "make");
	plan_case_expose(&c, "/srv/t");
	plan_case_expose(&c, "/srv/l");
	plan_case_expose(&c, "/tmp/a/b");
	plan = plan_case_build(&c);
	KR_BUG_IF(!plan);
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_sight sight;

		kr_plan_look(&c.arena, &c.host, plan, cases[i].path, &sight);
		if (sight.kind != cases[i].kind || sight.is_there != cases[i].is_there || strcmp(sight.path, cases[i].leads_to) != 0)
			fail_msg("%s: %s, leads to '%s', %d", cases[i].path, kr_sight_name(sight.kind), sight.path, sight.is_there);
	}
	plan_case_fini(&c);
}

/* 300 exposed paths and masks work, one more is refused with the count. */
static void
three_hundred_binds_are_the_limit(void **state)
{
	(void)state;
	for (int count = KR_PLAN_BINDS_MAX; count <= KR_PLAN_BINDS_MAX + 1; count++) {
		struct fake_entry entries[KR_PLAN_BINDS_MAX + 2] = { { NULL, NULL } };
		struct kr_arena arena = { 0 };
		struct plan_case c;
		const struct kr_plan *plan;

		for (int i = 0; i < count; i++)
			entries[i] = (struct fake_entry){ kr_arena_printf(&arena, "/srv/d%03d/x", i), "file" };
		plan_case_init(&c, entries, "make");
		for (int i = 0; i < count; i++)
			plan_case_expose(&c, kr_arena_printf(&arena, "/srv/d%03d", i));
		plan = plan_case_build(&c);
		if (count == KR_PLAN_BINDS_MAX) {
			assert_non_null(plan);
			assert_int_equal(plan->expose_and_mask_count, KR_PLAN_BINDS_MAX);
		} else {
			assert_null(plan);
			assert_int_equal(c.err.code, KR_E_LIMIT);
			assert_non_null(strstr(c.err.message, "301"));
		}
		plan_case_fini(&c);
		kr_arena_fini(&arena);
	}
}

/* ---- the search ---- */

static size_t flood_entries;
static struct kr_fs plain;

/* /srv/flood holds flood_entries files; everything else is as in the fake. */
static int
flood(void *context, const char *path,
	bool (*visit)(void *visit_context, const char *name, enum kr_fs_type type), void *visit_context)
{
	if (strcmp(path, "/srv/flood") != 0)
		return plain.list(context, path, visit, visit_context);
	for (size_t i = 0; i < flood_entries; i++)
		if (!visit(visit_context, "x", KR_FS_FILE))
			return 0;
	return 0;
}

static void
the_search_is_bounded(void **state)
{
	static const struct fake_entry entries[] = { { "/srv/flood", "dir" }, { NULL, NULL } };

	(void)state;
	for (int over = 0; over <= 1; over++) {
		struct plan_case c;

		plan_case_init(&c, entries, "make");
		plan_case_expose(&c, "/srv/flood");
		plain = c.fs;
		c.fs.list = flood;
		flood_entries = KR_SCAN_ENTRIES + (size_t)over;
		assert_int_equal(plan_case_build(&c) == NULL, over);
		if (over) {
			assert_int_equal(c.err.code, KR_E_LIMIT);
			assert_non_null(strstr(c.err.message, "'/srv/flood'"));
		}
		plan_case_fini(&c);
	}
}

static int
unlistable(void *context, const char *path,
	bool (*visit)(void *visit_context, const char *name, enum kr_fs_type type), void *visit_context)
{
	return strcmp(path, "/srv/blind") == 0 ? -1 : plain.list(context, path, visit, visit_context);
}

/* FS-12: a directory that may be entered but not listed: who knows the name of a credential file reads it as
 * empty too. */
static void
names_in_an_unlistable_directory_are_masked(void **state)
{
	static const struct fake_entry entries[] = { { "/srv/blind/.npmrc", "file" },
		{ "/srv/blind/credentials", "file" }, { "/srv/blind/plain", "file" }, { NULL, NULL } };
	struct plan_case c;
	const struct kr_plan *plan;
	size_t masks = 0;

	(void)state;
	plan_case_init(&c, entries, "make");
	plan_case_expose(&c, "/srv/blind");
	plain = c.fs;
	c.fs.list = unlistable;
	plan = plan_case_build(&c);
	assert_non_null(plan);
	for (size_t i = 0; i < plan->step_count; i++)
		if (plan->steps[i].kind == KR_STEP_MASK && kr_path_is_within(plan->steps[i].path, "/srv/blind"))
			masks++;
	assert_int_equal(masks, 2);
	plan_case_fini(&c);
}

/* Start cost does not move with the size of the worktree: nothing in it is listed. */
static void
the_worktree_is_not_listed(void **state)
{
	static const struct fake_entry entries[] = { { CASE_WORKTREE "/a/b/c/.npmrc", "file" },
		{ CASE_WORKTREE "/a/s", "socket" }, { NULL, NULL } };
	struct plan_case c;

	(void)state;
	plan_case_init(&c, entries, "make");
	assert_non_null(plan_case_build(&c));
	assert_int_equal(c.fake.lists, 0);
	plan_case_fini(&c);
}

/* REF-01 GIT-04: the private git directory is the worker's, but for what leads git to objects and configuration. */
static void
git_inside_is_led_by_mounts_REF_01(void **state)
{
#define GIT_DIR "/home/ada/.kraft/run/sandbox-git/w-0"
	static const struct fake_entry entries[] = { { NULL, NULL } };
	static const char *const read_only[] = { CASE_WORKTREE "/.git", GIT_DIR "/objects/info/alternates",
		"/home/ada/code/w/.git/objects", "/srv/mirror/objects", "/home/ada/code/w/.git/lfs" };
	static const char *const mounts[] = { GIT_DIR, GIT_DIR "/objects", GIT_DIR "/objects/info",
		GIT_DIR "/objects/info/alternates" };
	struct kr_plan_git git = { .dir = GIT_DIR, .git_file = GIT_DIR ".gitfile",
		.objects = "/home/ada/code/w/.git/objects", .lfs = "/home/ada/code/w/.git/lfs" };
	struct plan_case c;
	const struct kr_plan *plan;
	const struct kr_step *dot_git;

	(void)state;
	plan_case_init(&c, entries, "make");
	kr_strs_add(&c.arena, &git.borrowed, "/srv/mirror/objects");
	c.request.git = &git;
	plan = plan_case_build(&c);
	KR_BUG_IF(!plan);
	for (size_t i = 0; i < KR_COUNT(read_only); i++)
		assert_non_null(step_at(plan, KR_STEP_BIND_RO, read_only[i]));
	for (size_t i = 1; i < KR_COUNT(mounts); i++)
		assert_true(step_at(plan, i == 3 ? KR_STEP_BIND_RO : KR_STEP_BIND_RW, mounts[i]) >
			step_at(plan, KR_STEP_BIND_RW, mounts[i - 1]));
	dot_git = step_at(plan, KR_STEP_BIND_RO, CASE_WORKTREE "/.git");
	KR_BUG_IF(!dot_git);
	assert_string_equal(dot_git->source, GIT_DIR ".gitfile");
	assert_null(step_at(plan, KR_STEP_MASK, CASE_WORKTREE "/.git"));
	plan_case_fini(&c);
#undef GIT_DIR
}

/* kraft's places may not lie where the sandbox has something of its own. */
static void
places_in_the_sandboxs_own_are_refused(void **state)
{
	static const char *const places[] = { "/var/tmp/k/w", "/dev/shm/k/w" };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(places); i++)
		for (int which = 0; which < 4; which++) {
			struct plan_case c;

			plan_case_init(&c, NULL, "make");
			*(const char **[]){ &c.request.worktree, &c.request.home, &c.request.results_dir,
				&c.request.channel_dir }[which] = places[i];
			assert_null(plan_case_build(&c));
			assert_int_equal(c.err.code, KR_E_REFUSED);
			assert_non_null(strstr(c.err.message, places[i]));
			plan_case_fini(&c);
		}
}

/* A command's directory that is refused late leaves no mask of a file that is not shown. */
static void
a_refused_directory_leaves_no_masks(void **state)
{
	static const struct fake_entry entries[] = { { "/opt/t/bin/tool", "exec" }, { "/opt/t/.npmrc", "file" },
		{ "/opt/t/z/sock", "socket" }, { NULL, NULL } };
	struct plan_case c;
	const struct kr_plan *plan;

	(void)state;
	plan_case_init(&c, entries, "make");
	c.repo.test_command = "tool --all";
	plan = plan_case_build(&c);
	assert_non_null(plan);
	assert_null(step_at(plan, KR_STEP_MASK, "/opt/t/.npmrc"));
	assert_null(step_at(plan, KR_STEP_BIND_RO, "/opt/t"));
	assert_int_equal(plan->notes.n, 1);
	assert_non_null(strstr(plan->notes.v[0], "test_command"));
	plan_case_fini(&c);
}

/* ---- environment and printing ---- */

static void
names_are_sorted_and_unique(void **state)
{
	static struct kr_env_literal literals[] = { { "B", "1", { 0, 0 } }, { "USER", "x", { 0, 0 } },
		{ "A", "2", { 0, 0 } } };
	struct plan_case c;
	const struct kr_plan *plan;

	(void)state;
	plan_case_init(&c, NULL, "make");
	c.repo.env = literals;
	c.repo.env_count = KR_COUNT(literals);
	kr_strs_add(&c.arena, &c.repo.env_passthrough, "HOME");
	kr_strs_add(&c.arena, &c.repo.env_passthrough, "ANTHROPIC_API_KEY");
	plan = plan_case_build(&c);
	assert_non_null(plan);
	for (size_t i = 1; i < plan->env_count; i++)
		assert_true(strcmp(plan->env[i - 1].name, plan->env[i].name) < 0);
	for (size_t i = 0; i < plan->env_count; i++)
		if (strcmp(plan->env[i].name, "HOME") == 0)
			assert_string_equal(plan->env[i].value, c.request.home);
	plan_case_fini(&c);
}

static void
secrets_are_never_printed(void **state)
{
	static struct kr_env_literal literals[] = { { "API", "repo-secret", { 0, 0 } },
		{ "PATH", "/repo-secret", { 0, 0 } } };
	kr_auto_buf struct kr_buf text = KR_BUF(1 << 20), json = KR_BUF(1 << 20);
	struct plan_case c;
	const struct kr_plan *plan;

	(void)state;
	plan_case_init(&c, NULL, "make");
	c.repo.env = literals;
	c.repo.env_count = KR_COUNT(literals);
	plan = plan_case_build(&c);
	assert_non_null(plan);
	kr_plan_print(plan, NULL, &text);
	kr_plan_print_json(plan, NULL, &json);
	assert_null(strstr(text.data, "secret"));
	assert_null(strstr(json.data, "secret"));
	assert_non_null(strstr(text.data, "ANTHROPIC_API_KEY"));
	assert_non_null(strstr(json.data, "\"API\""));
	plan_case_fini(&c);
}

static void
kernel_rules_are_printed_when_given(void **state)
{
	kr_auto_buf struct kr_buf text = KR_BUF(1 << 20), json = KR_BUF(1 << 20);
	struct kr_strs rules = { 0 };
	struct plan_case c;
	const struct kr_plan *plan;

	(void)state;
	plan_case_init(&c, NULL, "make");
	plan = plan_case_build(&c);
	assert_non_null(plan);
	kr_strs_add(&c.arena, &rules, "EPERM keyctl");
	kr_strs_add(&c.arena, &rules, "EPERM bpf");
	kr_strs_add(&c.arena, &rules, "EAFNOSUPPORT socket of any family but unix");
	kr_plan_print(plan, &rules, &text);
	kr_plan_print_json(plan, &rules, &json);
	assert_non_null(
		strstr(text.data, "\nkernel\n  EPERM         keyctl, bpf\n  EAFNOSUPPORT  socket of any"));
	assert_non_null(strstr(json.data, "EPERM keyctl"));
	plan_case_fini(&c);
}

/* Bytes that are no UTF-8 in a path do not break the JSON. */
static void
json_survives_any_bytes(void **state)
{
	kr_auto_buf struct kr_buf json = KR_BUF(1 << 20);
	static const struct fake_entry entries[] = { { "/srv/\xff/x", "file" }, { NULL, NULL } };
	struct plan_case c;
	const struct kr_plan *plan;

	(void)state;
	plan_case_init(&c, entries, "make");
	plan_case_expose(&c, "/srv/\xff");
	plan = plan_case_build(&c);
	assert_non_null(plan);
	kr_plan_print_json(plan, NULL, &json);
	assert_non_null(strstr(json.data, "/srv/\\\\xff"));
	plan_case_fini(&c);
}

static void
a_refusal_keeps_the_lookup(void **state)
{
	struct plan_case c;

	(void)state;
	plan_case_init(&c, NULL, "nothing-like-it");
	assert_null(plan_case_build(&c));
	assert_int_equal(c.err.code, KR_E_REFUSED);
	assert_true(c.lookup.n > 0);
	plan_case_fini(&c);
}

/* The same input gives the same plan, byte by byte. */
static void
a_plan_is_a_function_of_its_input(void **state)
{
	static const struct fake_entry entries[] = { { "/srv/t/.npmrc", "file" },
		{ "/opt/t/bin/tool", "#!/usr/bin/env sh\n" }, { NULL, NULL } };
	kr_auto_buf struct kr_buf first = KR_BUF(1 << 20), second = KR_BUF(1 << 20);

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct plan_case c;
		const struct kr_plan *plan;

		plan_case_init(&c, entries, "tool");
		plan_case_expose(&c, "/srv/t");
		plan = plan_case_build(&c);
		assert_non_null(plan);
		kr_plan_print_json(plan, NULL, i ? &second : &first);
		plan_case_fini(&c);
	}
	assert_string_equal(first.data, second.data);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_exposed_path_is_shown_read_only_and_checked_again),
		cmocka_unit_test(nothing_else_of_kraft_home_is_shown),
		cmocka_unit_test(parents_come_before_children),
		cmocka_unit_test(places_in_tmp_cannot_be_moved),
		cmocka_unit_test(what_a_worker_finds_at_a_path),
		cmocka_unit_test(three_hundred_binds_are_the_limit),
		cmocka_unit_test(the_search_is_bounded),
		cmocka_unit_test(names_in_an_unlistable_directory_are_masked),
		cmocka_unit_test(the_worktree_is_not_listed),
		cmocka_unit_test(git_inside_is_led_by_mounts_REF_01),
		cmocka_unit_test(places_in_the_sandboxs_own_are_refused),
		cmocka_unit_test(a_refused_directory_leaves_no_masks),
		cmocka_unit_test(names_are_sorted_and_unique),
		cmocka_unit_test(secrets_are_never_printed),
		cmocka_unit_test(kernel_rules_are_printed_when_given),
		cmocka_unit_test(json_survives_any_bytes),
		cmocka_unit_test(a_refusal_keeps_the_lookup),
		cmocka_unit_test(a_plan_is_a_function_of_its_input),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
