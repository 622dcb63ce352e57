/* cli: kraft repo connect, list, disconnect, path, run on a home and checkouts of their own. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "cli/cli.h"

#include <cmocka.h>

extern const struct kr_command kr_cmd_repo_connect, kr_cmd_repo_list, kr_cmd_repo_disconnect,
	kr_cmd_repo_path;

enum { CHECKOUTS = 8 };

struct bench {
	char top[64];
	struct kr_arena arena;
	struct kr_error err;
	struct kr_buf out; /* what the last command printed */
};

static const char *
in_top(struct bench *b, const char *name)
{
	return kr_arena_printf(&b->arena, "%s/%s", b->top, name);
}

static void
put(struct bench *b, const char *name, const char *text, unsigned mode)
{
	const char *path = in_top(b, name);
	kr_auto_fd int dir = kr_path_make_dirs(kr_path_dirname(&b->arena, path), &b->err);

	assert_true(dir >= 0);
	assert_int_equal(kr_file_write_at(dir, kr_path_basename(path), text, strlen(text), mode, &b->err), 0);
}

static const char *
get(struct bench *b, const char *name)
{
	struct kr_buf buf = KR_BUF(1u << 20);
	const char *text;

	assert_int_equal(kr_file_read_at(AT_FDCWD, in_top(b, name), &buf, &b->err), 0);
	text = kr_arena_dup_n(&b->arena, buf.data ? buf.data : "", buf.len);
	kr_buf_fini(&buf);
	return text;
}

/* As much of a git directory as finding a checkout asks for. */
static void
make_checkout(struct bench *b, const char *name)
{
	put(b, kr_arena_printf(&b->arena, "%s/.git/HEAD", name), "ref: refs/heads/main\n", 0644);
	put(b, kr_arena_printf(&b->arena, "%s/.git/objects/info/x", name), "", 0644);
	put(b, kr_arena_printf(&b->arena, "%s/.git/refs/x", name), "", 0644);
}

static int
set_up(void **state)
{
	struct bench *b = kr_xcalloc(1, sizeof(*b));

	b->out = KR_BUF(1u << 20);
	snprintf(b->top, sizeof(b->top), "/tmp/kraft-unit-XXXXXX");
	if (!mkdtemp(b->top))
		return -1;
	put(b, "guest/init", "", 0755);
	put(b, "guest/bin/kraft", "", 0755);
	setenv("HOME", b->top, 1);
	setenv("KRAFT_HOME", in_top(b, "kh"), 1);
	setenv("KRAFT_GUEST_DIR", in_top(b, "guest"), 1);
	unsetenv("KRAFT_RUN_DIR");
	unsetenv("KRAFT_CONFIG_DIR");
	make_checkout(b, "app");
	put(b, "app/Makefile", "test:\n\ttrue\n", 0644);
	*state = b;
	return 0;
}

static int
tear_down(void **state)
{
	struct bench *b = *state;
	pid_t child = fork();

	if (child == 0) {
		execlp("rm", "rm", "-rf", "--", b->top, (char *)NULL);
		_exit(127);
	}
	waitpid(child, NULL, 0);
	kr_buf_fini(&b->out);
	kr_arena_fini(&b->arena);
	free(b);
	return 0;
}

/* Runs a command with its output in b->out; returns its status, or -1 with b->err. */
static int
run(struct bench *b, const struct kr_command *command, const char *word, size_t option, const char *value)
{
	char *words[] = { (char *)(uintptr_t)word, NULL };
	struct kr_parsed parsed = { .words = words, .word_count = word != NULL };
	int saved, rc;
	kr_auto_fd int file = open(in_top(b, "out"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	parsed.value[option] = value;
	b->err = (struct kr_error){ 0 };
	fflush(stdout);
	saved = dup(STDOUT_FILENO);
	dup2(file, STDOUT_FILENO);
	rc = command->run(&b->arena, &parsed, &b->err);
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	kr_buf_fini(&b->out);
	kr_buf_adds(&b->out, get(b, "out"));
	if (!b->out.data)
		kr_buf_adds(&b->out, " ");
	return b->err.code ? -1 : rc;
}

static void
connect_writes_an_entry_and_says_the_next_step(void **state)
{
	struct bench *b = *state;
	struct stat st;

	assert_int_equal(run(b, &kr_cmd_repo_connect, in_top(b, "app"), 3, ""), 0); /* --dry-run */
	assert_non_null(strstr(b->out.data, "would connect"));
	assert_int_equal(stat(in_top(b, "kh"), &st), -1);

	assert_int_equal(run(b, &kr_cmd_repo_connect, in_top(b, "app/.git/.."), 0, NULL), 0);
	assert_non_null(strstr(b->out.data, "next: kraft run -- make test"));
	assert_string_equal(get(b, "kh/config/repos.yaml"),
		kr_arena_printf(&b->arena,
			"repos:\n  - path: %s/app\n    setup_command: \"\"\n    test_command: make test\n"
			"    sandbox:\n      kind: os\n      network:\n        install: {allow: []}\n        runtime: "
			"{allow: []}\n",
			b->top));
	assert_int_equal(stat(in_top(b, "kh/config/repos.yaml"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void
connecting_twice_changes_nothing(void **state)
{
	struct bench *b = *state;
	const char *before;

	assert_int_equal(run(b, &kr_cmd_repo_connect, in_top(b, "app"), 0, NULL), 0);
	before = get(b, "kh/config/repos.yaml");
	assert_int_equal(symlink("app", in_top(b, "alias")), 0);
	assert_int_equal(run(b, &kr_cmd_repo_connect, in_top(b, "alias"), 1, "other"), 0);
	assert_non_null(strstr(b->out.data, "already connected"));
	assert_string_equal(get(b, "kh/config/repos.yaml"), before);
	/* An entry that was written through a link is the same checkout. */
	put(b, "kh/config/repos.yaml", kr_arena_printf(&b->arena, "repos:\n  - path: %s/alias\n", b->top), 0600);
	assert_int_equal(run(b, &kr_cmd_repo_connect, in_top(b, "app"), 0, NULL), 0);
	assert_non_null(strstr(b->out.data, "already connected"));
}

static void
a_broken_file_or_a_wrong_place_is_not_written_to(void **state)
{
	struct bench *b = *state;

	put(b, "kh/config/repos.yaml", "repos:\n  - pth: /x\n", 0600);
	assert_int_equal(run(b, &kr_cmd_repo_connect, in_top(b, "app"), 0, NULL), -1);
	assert_int_equal(b->err.place.line, 2);
	assert_string_equal(get(b, "kh/config/repos.yaml"), "repos:\n  - pth: /x\n");
	put(b, "kh/config/repos.yaml", "", 0600);
	assert_int_equal(run(b, &kr_cmd_repo_connect, b->top, 0, NULL), -1); /* no checkout */
	assert_int_equal(b->err.code, KR_E_NOT_FOUND);
	assert_int_equal(run(b, &kr_cmd_repo_connect, in_top(b, "gone"), 0, NULL), -1);
	assert_int_equal(b->err.code, KR_E_NOT_FOUND);
	make_checkout(b, "kh/run/worktrees/w");
	assert_int_equal(run(b, &kr_cmd_repo_connect, in_top(b, "kh/run/worktrees/w"), 0, NULL), -1);
	assert_non_null(strstr(b->err.message, "kraft's own directory"));
	make_checkout(b, "caf\xe9");
	assert_int_equal(run(b, &kr_cmd_repo_connect, in_top(b, "caf\xe9"), 0, NULL), -1);
	assert_non_null(strstr(b->err.message, "UTF-8"));
	assert_string_equal(get(b, "kh/config/repos.yaml"), "");
}

static void
odd_names_are_connected_found_and_disconnected(void **state)
{
	static const char *const names[] = {
		"a: b",
		"x # y",
		"- dash",
		"true",
		"it's \"quoted\"",
		"new\nline",
		"tab\there",
		"[list]",
		"*star",
		"  blanks  ",
		"\xc5\xbc\xc3\xb3\xc5\x82w",
		"\xe2\x80\xa8",
		"--json",
	};
	struct bench *b = *state;

	for (size_t i = 0; i < KR_COUNT(names); i++) {
		make_checkout(b, names[i]);
		assert_int_equal(run(b, &kr_cmd_repo_connect, in_top(b, names[i]), 1, "a: # \"b\" 'c'"), 0);
	}
	for (size_t i = 0; i < KR_COUNT(names); i++) {
		assert_int_equal(run(b, &kr_cmd_repo_path, names[i], 0, NULL), 0);
		assert_string_equal(b->out.data, kr_arena_printf(&b->arena, "%s\n", in_top(b, names[i])));
		assert_int_equal(run(b, &kr_cmd_repo_disconnect, in_top(b, names[i]), 0, NULL), 0);
	}
	assert_string_equal(get(b, "kh/config/repos.yaml"), "repos: []\n");
}

static void
list_shows_what_is_connected(void **state)
{
	struct bench *b = *state;

	assert_int_equal(run(b, &kr_cmd_repo_list, NULL, 1, NULL), 0);
	assert_non_null(strstr(b->out.data, "no repository is connected"));
	put(b, "kh/config/repos.yaml",
		kr_arena_printf(&b->arena,
			"repos:\n  - {path: %s/app, name: \"a\\e[31mb\", test_command: make test}\n"
			"  - {path: /nowhere/gone, id: g, sandbox: {kind: docker, image: x}}\n",
			b->top),
		0600);
	assert_int_equal(run(b, &kr_cmd_repo_list, NULL, 1, NULL), 0);
	assert_non_null(strstr(b->out.data, "a\\x1b[31mb  -         make test     "));
	assert_non_null(strstr(b->out.data, "gone        docker x  (undeclared)  /nowhere/gone (missing)\n"));
	assert_int_equal(run(b, &kr_cmd_repo_list, NULL, 0, ""), 0);
	assert_non_null(strstr(b->out.data, "\"kind\": \"docker\""));
	assert_non_null(strstr(b->out.data, "\"present\": false"));
}

static void
a_name_of_two_is_refused_and_a_gone_checkout_is_disconnected(void **state)
{
	struct bench *b = *state;

	put(b, "kh/config/repos.yaml", "# mine\nrepos:\n  - {path: /a/x}\n  - {path: /b/x, id: bx}\n", 0640);
	assert_int_equal(run(b, &kr_cmd_repo_path, "x", 0, NULL), -1);
	assert_non_null(strstr(b->err.hint, "'/a/x' or '/b/x'"));
	assert_int_equal(run(b, &kr_cmd_repo_path, "bx", 0, NULL), 0);
	assert_int_equal(run(b, &kr_cmd_repo_disconnect, "/b/x", 0, NULL), 0);
	assert_string_equal(get(b, "kh/config/repos.yaml"), "# mine\nrepos:\n  - {path: /a/x}\n");
	assert_int_equal(run(b, &kr_cmd_repo_disconnect, "/b/x", 0, NULL), -1);
	assert_int_equal(b->err.code, KR_E_NOT_FOUND);
}

static void
a_linked_file_stays_a_link(void **state)
{
	struct bench *b = *state;
	struct stat st;

	put(b, "kh/config/x", "", 0600);
	put(b, "dotfiles/repos.yaml", "# mine\n", 0644);
	assert_int_equal(symlink("../../dotfiles/repos.yaml", in_top(b, "kh/config/repos.yaml")), 0);
	assert_int_equal(run(b, &kr_cmd_repo_connect, in_top(b, "app"), 0, NULL), 0);
	assert_int_equal(lstat(in_top(b, "kh/config/repos.yaml"), &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_non_null(strstr(get(b, "dotfiles/repos.yaml"), "# mine\nrepos:\n"));
	assert_int_equal(stat(in_top(b, "dotfiles/repos.yaml"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
}

static void
connecting_many_at_once_loses_none(void **state)
{
	struct bench *b = *state;
	pid_t children[CHECKOUTS];
	const char *text;

	for (int i = 0; i < CHECKOUTS; i++) {
		const char *name = kr_arena_printf(&b->arena, "many-%d", i);

		make_checkout(b, name);
		fflush(stdout);
		children[i] = fork();
		if (children[i] == 0) {
			struct kr_parsed parsed = { .words = (char *[]){ (char *)(uintptr_t)in_top(b, name), NULL },
				.word_count = 1 };

			if (!freopen("/dev/null", "w", stdout))
				_exit(2);
			_exit(kr_cmd_repo_connect.run(&b->arena, &parsed, &b->err) == 0 ? 0 : 1);
		}
	}
	for (int i = 0; i < CHECKOUTS; i++) {
		int status = -1;

		waitpid(children[i], &status, 0);
		assert_int_equal(status, 0);
	}
	text = get(b, "kh/config/repos.yaml");
	for (int i = 0; i < CHECKOUTS; i++)
		assert_non_null(strstr(text, kr_arena_printf(&b->arena, "/many-%d\n", i)));
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(connect_writes_an_entry_and_says_the_next_step),
		TEST(connecting_twice_changes_nothing),
		TEST(a_broken_file_or_a_wrong_place_is_not_written_to),
		TEST(odd_names_are_connected_found_and_disconnected),
		TEST(list_shows_what_is_connected),
		TEST(a_name_of_two_is_refused_and_a_gone_checkout_is_disconnected),
		TEST(a_linked_file_stays_a_link),
		TEST(connecting_many_at_once_loses_none),
	};

	return cmocka_run_group_tests_name("repo", tests, NULL, NULL);
}
