/* policy/protect.c: OS-EXP-01 to OS-EXP-03, FS-11 (on text). */
#include <setjmp.h>
#include <stdarg.h>

#include "base/path.h"
#include "policy/policy.h"

#include <cmocka.h>

static const struct kr_places usual = {
	.home = "/home/ada",
	.kraft_home = "/home/ada/.kraft",
	.run_dir = "/home/ada/.kraft/run",
	.config_dir = "/home/ada/.kraft/config",
};
static const struct kr_places moved = {
	.home = "/home/ada",
	.kraft_home = "/srv/kraft/home",
	.run_dir = "/var/lib/kraft/run",
	.config_dir = "/opt/conf/kraft",
};

static const char *
why(struct kr_arena *arena, const struct kr_places *places, const char *path)
{
	const char *text = kr_protect_why(arena, places, path);

	return text ? text : "";
}

static void
home_is_refused_from_above_only(void **state)
{
	struct kr_arena arena = { 0 };

	(void)state;
	assert_string_equal(why(&arena, &usual, "/home/ada"), "is the home directory");
	assert_string_equal(why(&arena, &usual, "/home"), "holds the home directory '/home/ada'");
	assert_string_equal(why(&arena, &usual, "/"), "holds the home directory '/home/ada'");
	assert_null(kr_protect_why(&arena, &usual, "/home/ada/bin"));
	assert_null(kr_protect_why(&arena, &usual, "/home/ada2"));
	assert_null(kr_protect_why(&arena, &usual, "/home/ad"));
	kr_arena_fini(&arena);
}

/* Every protected path of both persons: is, inside, inside deep, holds; and the neighbours that only look
 * like it. */
static void
protected_paths_are_refused_from_all_sides(void **state)
{
	const struct kr_places *all[] = { &usual, &moved };

	(void)state;
	for (size_t p = 0; p < KR_COUNT(all); p++) {
		struct kr_arena arena = { 0 };
		struct kr_strs list = { 0 };

		kr_protected_paths(&arena, all[p], &list);
		assert_int_equal(list.n, 15);
		for (size_t i = 0; i < list.n; i++) {
			const char *path = list.v[i], *parent = kr_path_dirname(&arena, path);

			assert_true(kr_path_is_clean(path));
			assert_non_null(strstr(why(&arena, all[p], path), "which is protected"));
			assert_non_null(kr_protect_why(&arena, all[p], kr_arena_printf(&arena, "%s/x", path)));
			assert_non_null(kr_protect_why(&arena, all[p], kr_arena_printf(&arena, "%s/x/y/z", path)));
			assert_non_null(kr_protect_why(&arena, all[p], parent));
		}
		kr_arena_fini(&arena);
	}
}

static void
protected_list_is_the_promised_one(void **state)
{
	static const char *const names[] = { ".ssh", ".gnupg", ".config/gh", ".config/glab-cli", ".aws", ".kube",
		".docker", ".claude", ".codex", ".local/share/keyrings", "Library/Keychains", "Library/Cookies" };
	struct kr_arena arena = { 0 };
	struct kr_strs list = { 0 };

	(void)state;
	kr_protected_paths(&arena, &moved, &list);
	assert_true(kr_strs_has(&list, "/srv/kraft/home"));
	assert_true(kr_strs_has(&list, "/var/lib/kraft/run"));
	assert_true(kr_strs_has(&list, "/opt/conf/kraft"));
	for (size_t i = 0; i < KR_COUNT(names); i++)
		assert_true(kr_strs_has(&list, kr_arena_printf(&arena, "/home/ada/%s", names[i])));
	assert_false(kr_strs_has(&list, "/home/ada"));
	kr_arena_fini(&arena);
}

static void
wording_names_the_relation(void **state)
{
	static const struct {
		const char *path, *why;
	} cases[] = {
		{ "/home/ada/.ssh", "is '/home/ada/.ssh', which is protected" },
		{ "/home/ada/.ssh/keys", "is inside '/home/ada/.ssh', which is protected" },
		{ "/home/ada/.config", "holds '/home/ada/.config/gh', which is protected" },
		{ "/home/ada/.local", "holds '/home/ada/.local/share/keyrings', which is protected" },
		{ "/srv", "holds '/srv/kraft/home', which is protected" },
		{ "/srv/kraft/home", "is '/srv/kraft/home', which is protected" },
		{ "/var/lib/kraft/run/worktrees/x", "is inside '/var/lib/kraft/run', which is protected" },
		{ "/opt/conf/kraft/repos.yaml", "is inside '/opt/conf/kraft', which is protected" },
		{ "/data/.npmrc", "is named '.npmrc', a name that holds credentials" },
	};
	struct kr_arena arena = { 0 };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++)
		assert_string_equal(why(&arena, &moved, cases[i].path), cases[i].why);
	kr_arena_fini(&arena);
}

static void
neighbours_pass(void **state)
{
	static const char *const paths[] = { "/home/ada/.sshx", "/home/ada/.ss", "/home/ada/ssh",
		"/home/ada/.cargo/bin", "/home/ada/.rustup", "/home/ada/.config/ghx", "/home/ada/.config/nvim",
		"/home/ada/.local/share/uv/python", "/home/ada/.local/bin", "/home/ada/Library/Caches",
		"/home/bob/.ssh", "/opt", "/usr", "/etc", "/home/ada/.kraftx", "/home/ada/.claude.json",
		"/nix/store" };
	struct kr_arena arena = { 0 };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(paths); i++)
		assert_string_equal(why(&arena, &usual, paths[i]), "");
	kr_arena_fini(&arena);
}

static void
credential_names_only_as_last_component(void **state)
{
	static const char *const names[] = { "credentials.toml", "credentials", ".npmrc", ".netrc", ".pypirc",
		".git-credentials" };
	static const char *const others[] = { "credentials.tom", "Credentials", "npmrc", ".npmrc2", "x.netrc",
		"" };
	struct kr_arena arena = { 0 };

	(void)state;
	assert_int_equal(kr_credential_name_count, KR_COUNT(names));
	for (size_t i = 0; i < KR_COUNT(names); i++) {
		assert_true(kr_is_credential_name(&usual, names[i]));
		assert_non_null(kr_protect_why(&arena, &usual, kr_arena_printf(&arena, "/data/%s", names[i])));
		assert_null(kr_protect_why(&arena, &usual, kr_arena_printf(&arena, "/data/%s/tool", names[i])));
	}
	for (size_t i = 0; i < KR_COUNT(others); i++)
		assert_false(kr_is_credential_name(&usual, others[i]));
	kr_arena_fini(&arena);
}

/* A home of "/" (a service account) makes everything that holds it refused, and the rest still works. */
static void
home_may_be_the_root(void **state)
{
	const struct kr_places root = {
		.home = "/", .kraft_home = "/.kraft", .run_dir = "/.kraft/run", .config_dir = "/.kraft/config"
	};
	struct kr_arena arena = { 0 };

	(void)state;
	assert_string_equal(why(&arena, &root, "/"), "is the home directory");
	assert_non_null(kr_protect_why(&arena, &root, "/.ssh"));
	assert_null(kr_protect_why(&arena, &root, "/opt/tool"));
	kr_arena_fini(&arena);
}

/* Whatever the path, the answer is that of the list, asked one by one. */
static void
the_quick_answer_is_the_lists(void **state)
{
	static const char *const parts[] = { ".", "s", ".s", ".ssh", ".sshx", ".config", "gh", ".config/gh",
		".config/ghx", "Library", "Library/Cookies", ".local", ".local/share", ".kraft", "x" };
	struct kr_arena arena = { 0 };
	struct kr_strs list = { 0 };

	(void)state;
	kr_protected_paths(&arena, &usual, &list);
	for (size_t i = 0; i < KR_COUNT(parts); i++)
		for (size_t k = 0; k < KR_COUNT(parts); k++) {
			const char *path =
				kr_path_clean(&arena, kr_arena_printf(&arena, "/home/ada/%s/%s", parts[i], parts[k]));
			const char *one = kr_protect_why_among(&arena, &usual, &list, path);

			assert_string_equal(why(&arena, &usual, path), strcmp(path, "/home/ada") == 0
															   ? "is the home directory"
														   : one ? one
																 : "");
		}
	kr_arena_fini(&arena);
}

/* What the sandbox has of its own cannot come from the host; what only looks like it can. */
static void
places_of_the_sandbox(void **state)
{
	static const struct {
		const char *path;
		bool refused;
	} cases[] = {
		{ "/", true },
		{ "/proc", true },
		{ "/proc/1/root", true },
		{ "/sys/kernel", true },
		{ "/dev", true },
		{ "/dev/shm/x", true },
		{ "/run", true },
		{ "/run/user/1000/bus", true },
		{ "/tmp", true },
		{ "/tmp/x", false },
		{ "/var", true },
		{ "/var/tmp", true },
		{ "/var/tmp/x", true },
		{ "/var/lib", false },
		{ "/opt", true },
		{ "/opt/kraft", true },
		{ "/opt/kraft/bin", true },
		{ "/opt/kraftx", false },
		{ "/opt/x", false },
		{ "/runx", false },
		{ "/usr", false },
		{ "/srv", false },
	};
	struct kr_arena arena = { 0 };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++)
		assert_int_equal(kr_place_why(&arena, &usual, cases[i].path) != NULL, cases[i].refused);
	kr_arena_fini(&arena);
}

static const struct kr_places mac = {
	.home = "/Users/ada",
	.kraft_home = "/Users/ada/.kraft",
	.run_dir = "/Users/ada/.kraft/run",
	.config_dir = "/Users/ada/.kraft/config",
	.is_macos = true,
};

/* On a Mac another spelling is the same file; a control: on Linux it is another one. */
static void
case_does_not_count_on_macos_MAC_04(void **state)
{
	static const char *const spellings[] = { "/Users/ada/.SSH", "/users/ADA/.ssh/id", "/Users/ada/.\xc5\xbf\xc5\xbfh",
		("/Users/ada/.\xe2\x84\xaa" "ube/config"), "/Users/ada/library", "/Users/ada/LIBRARY/keychains", "/USERS/ADA",
		"/users", "/Users/ada/.KRAFT/run/x", "/data/Credentials", "/data/.NPMRC" };
	static const char *const others[] = { "/Users/ada/.sshx", "/Users/adam", "/Users/ada/Library/Caches", "/data/Credential",
		"/Users/ada/.\xc5\xbfh", "/Users/ad", "/data/k" };
	struct kr_places linux_places = mac;
	struct kr_arena arena = { 0 };

	(void)state;
	linux_places.is_macos = false;
	for (size_t i = 0; i < KR_COUNT(spellings); i++) {
		assert_non_null(kr_protect_why(&arena, &mac, spellings[i]));
		assert_null(kr_protect_why(&arena, &linux_places, spellings[i]));
	}
	for (size_t i = 0; i < KR_COUNT(others); i++)
		assert_null(kr_protect_why(&arena, &mac, others[i]));
	kr_arena_fini(&arena);
}

static void
places_of_macos_MAC_07(void **state)
{
	static const struct {
		const char *path;
		bool refused;
	} cases[] = {
		{ "/tmp", true },
		{ "/private/tmp", true },
		{ "/private/TMP", true },
		{ "/private/tmp/shared", false },
		{ "/private", true },
		{ "/private/var", true },
		{ "/var/folders", true },
		{ "/private/var/folders", true },
		{ "/private/var/run/x", true },
		{ "/private/var/db/dyld", false },
		{ "/System/Volumes/Data/Users/ada/.ssh", true },
		{ "/system/volumes/data", true },
		{ "/.vol/16777220/2", true },
		{ "/dev/disk0", true },
		{ "/opt/homebrew", false },
		{ "/opt", false },
		{ "/usr/local", false },
		{ "/proc/1", false },
	};
	struct kr_arena arena = { 0 };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++)
		assert_int_equal(kr_place_why(&arena, &mac, cases[i].path) != NULL, cases[i].refused);
	kr_arena_fini(&arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(home_is_refused_from_above_only),
		cmocka_unit_test(case_does_not_count_on_macos_MAC_04),
		cmocka_unit_test(places_of_macos_MAC_07),
		cmocka_unit_test(protected_paths_are_refused_from_all_sides),
		cmocka_unit_test(protected_list_is_the_promised_one),
		cmocka_unit_test(wording_names_the_relation),
		cmocka_unit_test(neighbours_pass),
		cmocka_unit_test(credential_names_only_as_last_component),
		cmocka_unit_test(home_may_be_the_root),
		cmocka_unit_test(the_quick_answer_is_the_lists),
		cmocka_unit_test(places_of_the_sandbox),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
