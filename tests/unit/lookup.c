/* lookup/: OS-CMD-01 to OS-CMD-09, OS-EXP-04, CFG-06 to CFG-09. */
#include <setjmp.h>
#include <stdarg.h>

#include "fake_fs.h"
#include "lookup/lookup.h"

#include <cmocka.h>

static const struct kr_places places = {
	.home = "/home/ada",
	.kraft_home = "/home/ada/.kraft",
	.run_dir = "/home/ada/.kraft/run",
	.config_dir = "/home/ada/.kraft/config",
};

#define WT "/home/ada/.kraft/run/worktrees/r"
#define NVM "/home/ada/.nvm/versions/node/v20"

static const struct fake_entry host[] = {
	{ "/bin", "-> usr/bin" },
	{ "/usr/bin/sh", "exec" },
	{ "/usr/bin/env", "exec" },
	{ "/usr/bin/make", "exec" },
	{ "/usr/bin/python3", "-> python3.11" },
	{ "/usr/bin/python3.11", "exec" },
	{ "/usr/bin/script", "#!/home/ada/py/bin/python\n" },
	{ "/srv/guest/bin/kraft", "exec" },
	/* nvm, and a link to the version in use */
	{ "/home/ada/.nvm/current", "-> versions/node/v20" },
	{ NVM "/bin/node", "exec" },
	{ NVM "/bin/npm", "-> ../lib/node_modules/npm/bin/npm-cli.js" },
	{ NVM "/lib/node_modules/npm/bin/npm-cli.js", "#!/usr/bin/env node\n" },
	{ "/home/ada/py/bin/python", "exec" },
	{ "/home/ada/py/bin/tool", "#!/home/ada/py/bin/python -E\n" },
	{ "/home/ada/py/bin/inner", "#!/home/ada/py/bin/tool\n" },
	/* links into a real place elsewhere */
	{ "/home/ada/.local/bin/claude", "-> /home/ada/.local/share/claude/versions/2.0" },
	{ "/home/ada/.local/share/claude/versions/2.0", "exec" },
	{ "/home/ada/.local/bin/pipped", "#!/usr/bin/python3\n" },
	{ "/home/ada/bin/mine", "exec" },
	{ "/home/ada/stray", "exec" },
	{ "/home/ada/.cargo/bin/cargo", "-> rustup" },
	{ "/home/ada/.cargo/bin/rustup", "exec" },
	{ "/home/ada/.claude/local/agent", "exec" },
	{ "/home/ada/.docker", "-> /data/docker" },
	{ "/data/docker/bin/compose", "exec" },
	/* odd candidates */
	{ "/odd/bin/adir", "dir" },
	{ "/odd/bin/plain", "file" },
	{ "/odd/bin/dangling", "-> gone" },
	{ "/odd/bin/round", "-> round2" },
	{ "/odd/bin/round2", "-> round" },
	{ "/odd/bin/viaproc", "-> /proc/self/root/usr/bin/make" },
	{ "/proc/self", "-> 42" },
	{ "/proc/42/root", "-> /" },
	{ "/odd/bin/intocheckout", "-> /home/ada/code/r/tool.sh" },
	{ "/odd/bin/intoworktree", "-> " WT "/tool.sh" },
	{ "/odd/bin/noint", "#!/gone/python\n" },
	{ "/odd/bin/relint", "#!python\n" },
	{ "/odd/bin/wtint", "#!" WT "/.venv/bin/python\n" },
	{ "/odd/bin/envs", "#!/usr/bin/env -S A=b node --flag\n" },
	{ "/odd/bin/envgone", "#!/usr/bin/env nothing-here\n" },
	{ "/odd/bin/minescript", "#!/home/ada/bin/mine\n" },
	{ "/locked", "denied" },
	{ "/dev/shm/t/bin/x", "exec" },
	{ "/home/ada/code/bin/near", "exec" },
	/* checkout and worktree */
	{ "/home/ada/code/r/tool.sh", "#!/home/ada/py/bin/python\n" },
	{ WT "/tool.sh", "#!/home/ada/py/bin/python\n" },
	{ WT "/node_modules/.bin/jest", "exec" },
	{ WT "/out", "-> /home/ada/bin/mine" },
	{ WT "/sys", "-> /usr/bin/make" },
	{ WT "/exposed", "-> /home/ada/py/bin/tool" },
	{ WT "/through", "-> /home/ada/hop" },
	{ "/home/ada/hop", "-> " WT "/tool.sh" },
	{ WT "/dirlink", "-> /odd" },
	{ WT "/sub/here", "exec" },
	{ WT "/gone", "-> nothing" },
	{ WT "/plain", "file" },
	{ "/home/ada/hop2", "-> py/bin/tool" },
	{ "/ln", "-> /home/ada/py/bin" },
	{ NULL, NULL },
};

static struct kr_arena arena;
static struct fake_fs fake = { .entries = host };

static struct kr_lookup_input
input(const char *path, const struct kr_strs *expose)
{
	static struct kr_fs fs;
	static struct kr_strs system_dirs, protected_real, none;

	fs = fake_fs_view(&fake);
	system_dirs = protected_real = (struct kr_strs){ 0 };
	kr_strs_add(&arena, &system_dirs, "/usr");
	kr_strs_add(&arena, &system_dirs, "/etc");
	kr_strs_add(&arena, &system_dirs, "/bin");
	kr_strs_add(&arena, &protected_real, "/data/docker");
	return (struct kr_lookup_input){
		.fs = &fs,
		.places = &places,
		.path = path,
		.protected_real = &protected_real,
		.worktree = WT,
		.home = "/home/ada/.kraft/run/sandbox-home/r",
		.checkout = "/home/ada/code/r",
		.cwd = WT,
		.guest_bin = "/srv/guest/bin",
		.system_dirs = &system_dirs,
		.expose = expose ? expose : &none,
	};
}

/* "a b" from a list, so that a whole answer is one string. */
static const char *
joined(const struct kr_strs *list)
{
	const char *all = "";

	for (size_t i = 0; i < list->n; i++)
		all = kr_arena_printf(&arena, "%s%s%s", all, i ? " " : "", list->v[i]);
	return all;
}

struct lookup_case {
	const char *command, *path, *expose; /* expose: one path, or NULL */
	const char *exec_path, *mounts, *links;
	const char *message, *hint; /* of a refusal: part of each; NULL where it works */
};

static void
check(const struct lookup_case *c)
{
	struct kr_strs expose = { 0 };
	struct kr_lookup_input in;
	struct kr_lookup out;
	struct kr_error err = { 0 };
	int failed;

	if (c->expose)
		kr_strs_add(&arena, &expose, c->expose);
	in = input(c->path ? c->path : "/usr/bin", &expose);
	failed = kr_lookup_command(&arena, &in, c->command, &out, &err);
	print_message(
		"# %s: %s%s%s\n", c->command, failed ? err.message : "found", failed ? "; hint: " : "", err.hint);
	if (c->message) {
		assert_int_equal(failed, -1);
		assert_int_equal(err.code, KR_E_REFUSED);
		assert_non_null(strstr(err.message, c->message));
		if (c->hint)
			assert_non_null(strstr(err.hint, c->hint));
		assert_true(out.steps.n > 0); /* explain can tell how far it came */
		return;
	}
	assert_int_equal(failed, 0);
	assert_string_equal(out.exec_path, c->exec_path);
	assert_string_equal(joined(&out.mounts), c->mounts ? c->mounts : "");
	assert_string_equal(joined(&out.links), c->links ? c->links : "");
	assert_int_equal(out.mounts.n, out.mount_why.n);
}

#define CHECK_ALL(cases)                            \
	for (size_t i_ = 0; i_ < KR_COUNT(cases); i_++) \
	check(&(cases)[i_])

/* OS-CMD-01, -02, -04, -08 */
static void
bare_names(void **state)
{
	static const struct lookup_case cases[] = {
		{ "make", .exec_path = "/usr/bin/make" },
		{ "make", .path = "/bin:/usr/bin", .exec_path = "/bin/make" },
		{ "kraft", .path = "/usr/bin", .exec_path = "/opt/kraft/bin/kraft" },
		{ "node", .path = NVM "/bin:/usr/bin", .exec_path = NVM "/bin/node", .mounts = NVM },
		{ "node", .path = "/home/ada/.nvm/current/bin", .exec_path = "/home/ada/.nvm/current/bin/node",
			.mounts = NVM, .links = "/home/ada/.nvm/current versions/node/v20" },
		{ "claude", .path = "/home/ada/.local/bin", .exec_path = "/home/ada/.local/bin/claude",
			.mounts = "/home/ada/.local/share/claude/versions",
			.links = "/home/ada/.local/bin/claude /home/ada/.local/share/claude/versions/2.0" },
		{ "cargo", .path = "/home/ada/.cargo/bin", .exec_path = "/home/ada/.cargo/bin/cargo",
			.mounts = "/home/ada/.cargo" },
		{ "missing", .message = "'missing' was not found on PATH", .hint = "expose does not add to PATH" },
		{ "mine", .message = "'mine' was not found on PATH", .expose = "/home/ada/bin" }, /* OS-CMD-09 */
		{ "tool", .path = "/ln/../bin", .exec_path = "/home/ada/py/bin/tool", .mounts = "/home/ada/py" },
	};

	(void)state;
	CHECK_ALL(cases);
}

/* OS-CMD-05, CFG-09: an exposed bin/ is not widened. */
static void
exposed_bin_is_not_widened(void **state)
{
	static const struct lookup_case cases[] = {
		{ "cargo", .path = "/home/ada/.cargo/bin", .expose = "/home/ada/.cargo/bin",
			.exec_path = "/home/ada/.cargo/bin/cargo" },
		{ "mine", .path = "/home/ada/bin", .expose = "/home/ada/bin", .exec_path = "/home/ada/bin/mine" },
		{ "mine", .path = "/home/ada/bin",
			.message = "'mine' is at '/home/ada/bin/mine' and needs '/home/ada' shown, "
					   "and that is the home directory",
			.hint = "add '/home/ada/bin' to the sandbox's expose list" },
		{ "pipped", .path = "/home/ada/.local/bin",
			.message = "and that holds '/home/ada/.local/share/keyrings', which is protected",
			.hint = "add '/home/ada/.local/bin'" },
	};

	(void)state;
	CHECK_ALL(cases);
}

/* OS-EXP-04 */
static void
protected_directories_are_refused(void **state)
{
	static const struct lookup_case cases[] = {
		{ "agent", .path = "/home/ada/.claude/local",
			.message = "is inside '/home/ada/.claude', which is protected",
			.hint = "a directory of its own" },
		{ "stray", .path = "/home/ada", .message = "and that is the home directory",
			.hint = "a directory of its own" },
		{ "compose", .path = "/home/ada/.docker/bin", .message = "is '/data/docker', which is protected" },
		{ "x", .path = "/dev/shm/t/bin", .message = "is inside '/dev'" },
		{ "near", .path = "/home/ada/code/bin", .message = "holds the checkout '/home/ada/code/r'",
			.hint = "add '/home/ada/code/bin'" },
	};

	(void)state;
	CHECK_ALL(cases);
}

/* OS-CMD-03 */
static void
scripts_show_their_interpreter(void **state)
{
	static const struct lookup_case cases[] = {
		{ "npm", .path = NVM "/bin:/usr/bin", .exec_path = NVM "/bin/npm",
			.mounts = NVM "/lib/node_modules/npm " NVM },
		{ "tool", .path = "/home/ada/py/bin", .exec_path = "/home/ada/py/bin/tool",
			.mounts = "/home/ada/py" },
		{ "script", .exec_path = "/usr/bin/script", .mounts = "/home/ada/py" },
		{ "noint", .path = "/odd/bin", .exec_path = "/odd/bin/noint", .mounts = "/odd" },
		{ "relint", .path = "/odd/bin", .exec_path = "/odd/bin/relint", .mounts = "/odd" },
		{ "wtint", .path = "/odd/bin", .exec_path = "/odd/bin/wtint", .mounts = "/odd" },
		{ "envs", .path = "/odd/bin:" NVM "/bin", .exec_path = "/odd/bin/envs", .mounts = "/odd " NVM },
		{ "envgone", .path = "/odd/bin", .exec_path = "/odd/bin/envgone", .mounts = "/odd" },
		{ "tool", .path = "/home/ada/py/bin", .expose = "/home/ada/py",
			.exec_path = "/home/ada/py/bin/tool" },
		{ "minescript", .path = "/odd/bin",
			.message = "the interpreter of 'minescript' is at '/home/ada/bin/mine' and needs '/home/ada' "
					   "shown, and that is the home directory" },
	};

	(void)state;
	CHECK_ALL(cases);
}

static void
interpreters_are_followed_one_level(void **state)
{
	static const struct fake_entry entries[] = {
		{ "/a/bin/one", "#!/b/two\n" },
		{ "/b/two", "#!/c/three\n" },
		{ "/c/three", "exec" },
		{ NULL, NULL },
	};
	struct fake_fs two = { .entries = entries };
	struct kr_fs fs = fake_fs_view(&two);
	struct kr_lookup_input in = input("/a/bin", NULL);
	struct kr_lookup out;

	(void)state;
	in.fs = &fs;
	assert_int_equal(kr_lookup_command(&arena, &in, "one", &out, NULL), 0);
	assert_string_equal(joined(&out.mounts), "/a /b");
}

/* CFG-06: nothing of the checkout or worktree is found by a bare name; CFG-07: odd candidates and entries of
 * PATH. */
static void
unusable_candidates_are_passed_over(void **state)
{
	static const struct lookup_case cases[] = {
		{ "jest", .path = WT "/node_modules/.bin:/usr/bin", .message = "not found on PATH",
			.hint = "call it by its path" },
		{ "tool.sh", .path = "/home/ada/code/r", .message = "not found on PATH",
			.hint = "call it by its path" },
		{ "tool.sh", .path = ".", .message = "not found on PATH", .hint = "call it by its path" },
		{ "tool.sh", .path = "", .message = "not found on PATH", .hint = "call it by its path" },
		{ "tool.sh", .path = "/usr/bin::", .message = "not found on PATH", .hint = "call it by its path" },
		{ "make", .path = ":.:bin:" WT ":/home/ada/code/r:/usr/bin", .exec_path = "/usr/bin/make" },
		{ "intocheckout", .path = "/odd/bin", .message = "not found on PATH", .hint = "leads to" },
		{ "intoworktree", .path = "/odd/bin", .message = "not found on PATH", .hint = "leads to" },
		{ "adir", .path = "/odd/bin", .message = "not found on PATH", .hint = "is not an executable file" },
		{ "plain", .path = "/odd/bin", .message = "not found on PATH", .hint = "is not an executable file" },
		{ "dangling", .path = "/odd/bin", .message = "not found on PATH", .hint = "leads nowhere" },
		{ "round", .path = "/odd/bin", .message = "not found on PATH", .hint = "cannot be reached" },
		{ "viaproc", .path = "/odd/bin", .message = "not found on PATH",
			.hint = "leads through '/proc/self'" },
		{ "make", .path = "/locked:/usr/bin:/usr/bin", .exec_path = "/usr/bin/make" },
		{ "x", .path = "/locked", .message = "not found on PATH", .hint = "cannot be reached" },
		{ ".", .message = "not found on PATH" },
		{ "..", .message = "not found on PATH" },
		{ "--help", .message = "'--help' was not found on PATH" },
	};

	(void)state;
	CHECK_ALL(cases);
}

/* CFG-07: 100 KiB of PATH ends, with a bounded story. */
static void
a_long_path_ends(void **state)
{
	char *path = kr_arena_alloc(&arena, 102401);
	struct kr_lookup_input in;
	struct kr_lookup out;
	struct kr_error err = { 0 };

	(void)state;
	for (size_t i = 0; i < 102400; i++)
		path[i] = ":.x"[i % 3];
	in = input(path, NULL);
	assert_int_equal(kr_lookup_command(&arena, &in, "nope", &out, &err), -1);
	assert_true(out.steps.n < 40);
	memset(path, 'x', 102400);
	path[0] = '/';
	assert_int_equal(kr_lookup_command(&arena, &in, "nope", &out, &err), -1);
}

/* OS-CMD-06, OS-CMD-07, CFG-08 */
static void
path_named_commands(void **state)
{
	static const struct lookup_case cases[] = {
		{ "./tool.sh", .exec_path = WT "/tool.sh" }, /* its #! line would show /home/ada/py */
		{ "sub/../tool.sh", .exec_path = WT "/tool.sh" },
		{ "./nothing", .exec_path = WT "/nothing" },
		{ "./gone", .exec_path = WT "/gone" },
		{ "./plain", .exec_path = WT "/plain" }, /* left to exec: 126 */
		{ "./sys", .exec_path = WT "/sys" },
		{ "./out",
			.message =
				"./out leads to /home/ada/bin/mine, outside the sandbox's view; add its directory to the "
				"sandbox's expose list" },
		{ "./out", .expose = "/home/ada/bin", .exec_path = WT "/out" },
		{ "./exposed", .expose = "/home/ada/py/bin/tool", .exec_path = WT "/exposed" }, /* #! not followed */
		{ "./through", .message = "./through leads to /home/ada/hop, outside" },
		{ "./dirlink/bin/noint", .message = "leads to /odd/bin/noint, outside" },
		{ "/home/ada/bin/mine", .message = "/home/ada/bin/mine leads to /home/ada/bin/mine, outside" },
		{ "/home/ada/code/r/tool.sh", .message = "outside the sandbox's view" },
		{ "../../../../bin/mine", .message = "../../../../bin/mine leads to /home/ada/bin/mine, outside" },
		{ "/usr/bin/make", .exec_path = "/usr/bin/make" },
		{ "/bin/make", .exec_path = "/bin/make" },
		{ "/opt/kraft/bin/kraft", .exec_path = "/opt/kraft/bin/kraft" },
		{ "/home/ada/hop2", .expose = "/home/ada/py", .exec_path = "/home/ada/hop2",
			.links = "/home/ada/hop2 py/bin/tool" },
		{ "/proc/self/root/usr/bin/make", .message = "leads to /proc/self, outside" },
		{ "/usr/bin/script", .exec_path = "/usr/bin/script", .mounts = "/home/ada/py" },
	};

	(void)state;
	CHECK_ALL(cases);
}

static void
limits_are_named(void **state)
{
	struct kr_lookup_input in = input("/usr/bin", NULL);
	char *longer = kr_arena_alloc(&arena, 9000);
	struct kr_lookup out;
	struct kr_error err = { 0 };

	(void)state;
	assert_int_equal(kr_lookup_command(&arena, &in, "/odd/bin/round", &out, &err), -1);
	assert_int_equal(err.code, KR_E_LIMIT);
	memset(longer, 'a', 8999);
	assert_int_equal(kr_lookup_command(&arena, &in, longer, &out, &err), -1);
	assert_int_equal(err.code, KR_E_REFUSED);
	longer[1] = '/';
	assert_int_equal(kr_lookup_command(&arena, &in, longer, &out, &err), -1);
	assert_int_equal(err.code, KR_E_LIMIT);
	assert_int_equal(kr_lookup_command(&arena, &in, "", &out, &err), -1);
}

static void
interpreter_lines(void **state)
{
	static const struct {
		const char *head, *path, *name;
		bool is_env;
	} cases[] = {
		{ "#!/bin/sh\n", "/bin/sh", "", false }, { "#! \t/bin/sh -e \n", "/bin/sh", "", false },
		{ "#!/bin/sh", "/bin/sh", "", false }, { "#!python\n", "python", "", false },
		{ "#!/usr/bin/env node\n", "/usr/bin/env", "node", true },
		{ "#!/usr/bin/env\tnode  \n", "/usr/bin/env", "node", true },
		{ "#!/usr/bin/env python -u\n", "/usr/bin/env", "python -u",
			true }, /* one argument, as the kernel gives it */
		{ "#!/usr/bin/env -S python -u\n", "/usr/bin/env", "python", true },
		{ "#!/usr/bin/env -Spython -u\n", "/usr/bin/env", "python", true },
		{ "#!/usr/bin/env -vS python -u\n", "/usr/bin/env", "python", true },
		{ "#!/usr/bin/env -iS A=1 B=2 python\n", "/usr/bin/env", "python", true },
		{ "#!/usr/bin/env -S -i -u HOME --chdir /x python\n", "/usr/bin/env", "python", true },
		{ "#!/usr/bin/env --split-string=python -u\n", "/usr/bin/env", "python", true },
		{ "#!/usr/bin/env -S 'my python' x\n", "/usr/bin/env", "my python", true },
		{ "#!/usr/bin/env -S ${PY} x\n", "/usr/bin/env", "", true },
		{ "#!/usr/bin/env -S py\\_thon x\n", "/usr/bin/env", "", true },
		{ "#!/usr/bin/env -i\n", "/usr/bin/env", "", true }, { "#!/usr/bin/env\n", "/usr/bin/env", "", true },
		{ "#!/nix/store/x/bin/env bash\n", "/nix/store/x/bin/env", "bash", true },
		{ "#!/usr/bin/envy node\n", "/usr/bin/envy", "", false },
		{ "#!/a/b\r\n", "/a/b\r", "", false }, /* as the kernel: the carriage return belongs to the name */
	};
	static const char *const none[] = { "", "#", "#!", "#!\n", "#!   \n", "x#!/bin/sh\n", "\177ELF",
		" #!/bin/sh\n" };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_interpreter got;

		assert_true(kr_interpreter_parse(cases[i].head, strlen(cases[i].head), &got));
		assert_string_equal(got.path, cases[i].path);
		assert_string_equal(got.name, cases[i].name);
		assert_int_equal(got.is_env, cases[i].is_env);
	}
	for (size_t i = 0; i < KR_COUNT(none); i++) {
		struct kr_interpreter got;

		assert_false(kr_interpreter_parse(none[i], strlen(none[i]), &got));
	}
}

static void
interpreter_lines_are_bounded_like_the_kernels(void **state)
{
	char head[400];
	struct kr_interpreter got;

	(void)state;
	memset(head, 'a', sizeof(head));
	memcpy(head, "#!/", 3);
	assert_false(kr_interpreter_parse(head, sizeof(head), &got)); /* cut: refused */
	head[300] = '\n';
	assert_false(kr_interpreter_parse(head, sizeof(head), &got));
	head[254] = '\n';
	assert_true(kr_interpreter_parse(head, sizeof(head), &got));
	assert_int_equal(strlen(got.path), 252);
	head[100] = '\0';
	assert_true(kr_interpreter_parse(head, sizeof(head), &got));
	assert_int_equal(strlen(got.path), 98);
}

static void
commands_of_a_shell_line(void **state)
{
	static const struct {
		const char *line, *words;
	} cases[] = {
		{ "npm test", "npm" },
		{ "npm ci && npm run build; make -j4", "npm make" },
		{ "cd web && yarn install", "yarn" },
		{ "CI=1 FOO='a b' pytest -q", "pytest" },
		{ "env -i A=1 tox", "tox" },
		{ "exec ./gradlew test", "./gradlew" },
		{ "if command -v uv >/dev/null 2>&1; then uv sync; else pip install .; fi", "uv pip" },
		{ "for d in a b; do go test ./$d; done", "go" },
		{ "a|b||c&d\ne # f\n(g;h)", "a b c d e g h" },
		{ "'my tool' x", "my tool" },
		{ "\"tool\" x", "tool" },
		{ "$TOOL x && real", "real" },
		{ "\"$TOOL\" x", "" },
		{ "X=$Y make", "make" },
		{ ">out 2>err make all", "make" },
		{ "make >x <y 2>&1 && z", "make z" },
		{ "echo hi; test -f x; [ -f y ] && true", "" },
		{ "cat <<EOF\nfoo\nEOF\n", "cat" },
		{ "case x in a) b;; esac", "" },
		{ "f() { g; }; f2 () { :; }", "g f2" },
		{ "make \\\n  all", "make" },
		{ "echo $(git rev-parse HEAD)", "git" },
		{ "", "" },
		{ "'unclosed", "unclosed" },
		{ "! { time make; }", "make" },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_strs words = { 0 };

		kr_shell_commands(&arena, cases[i].line, &words);
		assert_string_equal(joined(&words), cases[i].words);
	}
}

static void
lines_that_need_no_shell_are_split(void **state)
{
	static const struct {
		const char *line, *words;
	} cases[] = {
		{ "npm test", "npm test" },
		{ "  a 'b c' \"d\" ", "a b c d" },
		{ "a \\\n b", "a b" },
		{ "a && b", NULL },
		{ "a $X", NULL },
		{ "a > f", NULL },
		{ "a *.c", NULL },
		{ "a `b`", NULL },
		{ "a;b", NULL },
		{ "", NULL },
		{ "  ", NULL },
		{ "a <<E", NULL },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_strs words = { 0 };
		bool split = kr_shell_split(&arena, cases[i].line, &words);

		assert_int_equal(split, cases[i].words != NULL);
		if (split)
			assert_string_equal(joined(&words), cases[i].words);
	}
}

static int
forget(void **state)
{
	(void)state;
	kr_arena_fini(&arena);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bare_names),
		cmocka_unit_test(exposed_bin_is_not_widened),
		cmocka_unit_test(protected_directories_are_refused),
		cmocka_unit_test(scripts_show_their_interpreter),
		cmocka_unit_test(interpreters_are_followed_one_level),
		cmocka_unit_test(unusable_candidates_are_passed_over),
		cmocka_unit_test(a_long_path_ends),
		cmocka_unit_test(path_named_commands),
		cmocka_unit_test(limits_are_named),
		cmocka_unit_test(interpreter_lines),
		cmocka_unit_test(interpreter_lines_are_bounded_like_the_kernels),
		cmocka_unit_test(commands_of_a_shell_line),
		cmocka_unit_test(lines_that_need_no_shell_are_split),
	};

	return cmocka_run_group_tests(tests, NULL, forget);
}
