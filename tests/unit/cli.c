/* cli: the option parser, finding commands, suggestions, help, colour. */
#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/patch.h"

#include <cmocka.h>

static const struct kr_option options[] = {
	{ "repo", 'r', "PATH", "the repository" },
	{ "keep", 'k', NULL, "keep it" },
	{ "all", 'a', NULL, "everything" },
	{ NULL },
};
static const struct kr_command mixed = { .name = "mixed", .usage = "X", .options = options, .words_max = 2 };
static const struct kr_command stops = {
	.name = "stops", .usage = "X", .options = options, .words_min = 1, .words_max = -1, .stops_at_word = true
};

enum { WORDS = 12 };

struct outcome {
	char *argv[WORDS];
	struct kr_parsed parsed;
	struct kr_error err;
	bool wants_help;
	int result;
};

static void
parse(struct outcome *o, const struct kr_command *command, const char *const words[])
{
	int n = 0;

	*o = (struct outcome){ 0 };
	for (; words[n]; n++)
		o->argv[n] = (char *)(uintptr_t)words[n];
	o->result = kr_options_parse(command, n, o->argv, &o->parsed, &o->wants_help, &o->err);
}
#define PARSE(o, command, ...) parse((o), (command), (const char *const[]){ __VA_ARGS__, NULL })

static void
every_form_of_an_option_is_read(void **state)
{
	struct outcome o;

	(void)state;
	PARSE(&o, &mixed, "--repo", "/a", "w", "--keep");
	assert_int_equal(o.result, 0);
	assert_string_equal(o.parsed.value[0], "/a");
	assert_string_equal(o.parsed.value[1], "");
	assert_null(o.parsed.value[2]);
	assert_int_equal(o.parsed.word_count, 1);
	assert_string_equal(o.parsed.words[0], "w");
	assert_null(o.parsed.words[1]);

	PARSE(&o, &mixed, "--repo=/a=b", "-ka");
	assert_string_equal(o.parsed.value[0], "/a=b");
	assert_non_null(o.parsed.value[1]);
	assert_non_null(o.parsed.value[2]);

	PARSE(&o, &mixed, "-kr/x");
	assert_string_equal(o.parsed.value[0], "/x");
	PARSE(&o, &mixed, "-r", "-x");
	assert_string_equal(o.parsed.value[0], "-x");
	PARSE(&o, &mixed, "-");
	assert_string_equal(o.parsed.words[0], "-");
}

static void
dashes_and_the_first_word_end_the_options(void **state)
{
	struct outcome o;

	(void)state;
	PARSE(&o, &mixed, "-k", "--", "--all", "-r");
	assert_true(o.parsed.dashes);
	assert_int_equal(o.parsed.word_count, 2);
	assert_string_equal(o.parsed.words[0], "--all");
	assert_null(o.parsed.value[2]);

	PARSE(&o, &stops, "-k", "npm", "--all", "--", "x");
	assert_int_equal(o.result, 0);
	assert_int_equal(o.parsed.word_count, 4);
	assert_string_equal(o.parsed.words[1], "--all");
	assert_string_equal(o.parsed.words[2], "--"); /* the command's own */
	assert_false(o.parsed.dashes);

	PARSE(&o, &stops, "--", "--", "x"); /* a command may even be called "--" */
	assert_string_equal(o.parsed.words[0], "--");
	PARSE(&o, &stops, "npm", "--help");
	assert_false(o.wants_help);
	PARSE(&o, &stops, "--help", "npm");
	assert_true(o.wants_help);
}

static void
wrong_command_lines_name_the_fix(void **state)
{
	static const struct {
		const struct kr_command *command;
		const char *words[4], *message, *hint;
	} cases[] = {
		{ &mixed, { "--kep" }, "unknown option '--kep'", "did you mean '--keep'?" },
		{ &mixed, { "--zzzzzz" }, "unknown option '--zzzzzz'", "'kraft mixed --help'" },
		{ &mixed, { "-z" }, "unknown option '-z'", "'kraft mixed --help'" },
		{ &mixed, { "--colour=never" }, "unknown option '--colour=never'", "" },
		{ &mixed, { "--colr" }, "unknown option '--colr'", "did you mean '--color'?" },
		{ &mixed, { "--color=red" }, "'--color' takes no 'red'", "'auto', 'always', 'never'" },
		{ &mixed, { "--color=" }, "'--color' takes no ''", "'never'" },
		{ &mixed, { "--color" }, "option '--color' needs a value, WHEN", "" },
		{ &mixed, { "--color=auto", "--color=never" }, "option '--color' is given twice", "" },
		{ &mixed, { "--keep=1" }, "option '--keep' takes no value", "" },
		{ &mixed, { "--repo" }, "option '--repo' needs a value, PATH", "" },
		{ &mixed, { "-r" }, "option '--repo' needs a value, PATH", "" },
		{ &mixed, { "-k", "--keep" }, "option '--keep' is given twice", "" },
		{ &mixed, { "a", "b", "c" }, "does not take 'c'", "" },
		{ &stops, { "--keep" }, "'kraft stops' needs more: X", "" },
	};
	struct outcome o;

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		parse(&o, cases[i].command, cases[i].words);
		assert_int_equal(o.result, -1);
		assert_int_equal(o.err.code, KR_E_USAGE);
		assert_non_null(strstr(o.err.message, cases[i].message));
		assert_non_null(strstr(o.err.hint, cases[i].hint));
	}
}

static void
unknown_commands_suggest_the_nearest(void **state)
{
	char first[] = "compltion", far[] = "zzzzzz", *near_words[] = { first, NULL },
		 *far_words[] = { far, NULL };
	struct kr_error err = { 0 };
	int used = 0;

	(void)state;
	assert_null(kr_command_find(1, near_words, &used, &err));
	assert_int_equal(err.code, KR_E_USAGE);
	assert_non_null(strstr(err.hint, "'kraft completion'"));
	assert_null(kr_command_find(1, far_words, &used, &err));
	assert_non_null(strstr(err.hint, "kraft help"));
}

static void
every_command_can_be_found_and_tells_of_itself(void **state)
{
	(void)state;
	for (size_t i = 0; kr_commands[i]; i++) {
		const struct kr_command *c = kr_commands[i];
		char name[64], *words[3] = { name, NULL, NULL }, *space;
		struct kr_error err = { 0 };
		int used = 0, n = 1;
		size_t count = 0;

		snprintf(name, sizeof(name), "%s", c->name);
		if ((space = strchr(name, ' '))) {
			*space = '\0';
			words[1] = space + 1;
			n = 2;
		}
		assert_ptr_equal(kr_command_find(n, words, &used, &err), c);
		assert_int_equal(used, n);
		assert_non_null(c->run);
		assert_true(c->summary && c->summary[0] && c->usage);
		while (c->options && c->options[count].name) {
			for (size_t k = 0; k < count; k++) {
				assert_string_not_equal(c->options[k].name, c->options[count].name);
				assert_true(!c->options[k].letter || c->options[k].letter != c->options[count].letter);
			}
			assert_string_not_equal(c->options[count].name, kr_colour_option.name);
			count++;
		}
		assert_true(count <= KR_OPTIONS_MAX);
	}
}

static void
color_is_an_option_of_every_command(void **state)
{
	struct outcome o;

	(void)state;
	PARSE(&o, &mixed, "w", "--color=never", "--keep");
	assert_int_equal(o.result, 0);
	assert_true(o.parsed.has_colour);
	assert_int_equal(o.parsed.colour, KR_COLOUR_NEVER);
	assert_non_null(o.parsed.value[1]);
	assert_int_equal(o.parsed.word_count, 1);
	PARSE(&o, &mixed, "--color", "always");
	assert_int_equal(o.parsed.colour, KR_COLOUR_ALWAYS);
	PARSE(&o, &mixed, "w");
	assert_false(o.parsed.has_colour);

	PARSE(&o, &stops, "ls", "--color=never"); /* the command's own */
	assert_false(o.parsed.has_colour);
	assert_int_equal(o.parsed.word_count, 2);
	PARSE(&o, &mixed, "--color=always", "--bad"); /* the error, too, is written as asked for */
	assert_int_equal(o.result, -1);
	assert_int_equal(o.parsed.colour, KR_COLOUR_ALWAYS);
}

/* Descriptors of a pipe and of a terminal. */
struct ends {
	int pipe[2], terminal[2];
};

static const char *const colour_variables[] = { "NO_COLOR", "CLICOLOR_FORCE", "FORCE_COLOR", "TERM" };

static void
open_ends(struct ends *ends)
{
	assert_int_equal(pipe(ends->pipe), 0);
	assert_int_equal(openpty(&ends->terminal[0], &ends->terminal[1], NULL, NULL, NULL), 0);
}

static void
close_ends(struct ends *ends)
{
	for (int i = 0; i < 2; i++) {
		close(ends->pipe[i]);
		close(ends->terminal[i]);
	}
	for (size_t i = 0; i < KR_COUNT(colour_variables); i++)
		unsetenv(colour_variables[i]);
	kr_colour_choose(KR_COLOUR_AUTO);
}

/* By the order of the rules: each column is decided by the first one that says something. */
static void
colour_is_decided_by_option_then_environment_then_terminal(void **state)
{
	static const struct {
		enum kr_colour option;
		const char *value[KR_COUNT(colour_variables)]; /* NULL: not set */
		bool on_pipe, on_terminal;
	} cases[] = {
		{ KR_COLOUR_AUTO, { NULL, NULL, NULL, "xterm" }, false, true },
		{ KR_COLOUR_AUTO, { NULL, NULL, NULL, "dumb" }, false, false },
		{ KR_COLOUR_AUTO, { NULL, NULL, NULL, "" }, false, false },
		{ KR_COLOUR_AUTO, { NULL, NULL, NULL, NULL }, false, false },
		{ KR_COLOUR_AUTO, { "1", NULL, NULL, "xterm" }, false, false },
		{ KR_COLOUR_AUTO, { "", NULL, NULL, "xterm" }, false, true },
		{ KR_COLOUR_AUTO, { NULL, "1", NULL, "dumb" }, true, true },
		{ KR_COLOUR_AUTO, { NULL, NULL, "1", NULL }, true, true },
		{ KR_COLOUR_AUTO, { NULL, "", "", "xterm" }, false, true },
		{ KR_COLOUR_AUTO, { "1", "1", "1", "xterm" }, false, false },
		{ KR_COLOUR_AUTO, { "", "1", NULL, "xterm" }, true, true },
		{ KR_COLOUR_ALWAYS, { "1", NULL, NULL, "dumb" }, true, true },
		{ KR_COLOUR_NEVER, { NULL, "1", "1", "xterm" }, false, false },
	};
	struct ends ends;

	(void)state;
	open_ends(&ends);
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		for (size_t k = 0; k < KR_COUNT(colour_variables); k++)
			if (cases[i].value[k])
				setenv(colour_variables[k], cases[i].value[k], 1);
			else
				unsetenv(colour_variables[k]);
		kr_colour_choose(cases[i].option);
		if (kr_colour_on(ends.pipe[1]) != cases[i].on_pipe || kr_colour_on(ends.terminal[1]) != cases[i].on_terminal)
			fail_msg("case %zu", i);
	}
	close_ends(&ends);
}

/* ---- exit statuses ---- */

static void
every_error_has_a_status_of_the_table(void **state)
{
	static const int known[] = {
#define X(name, status, meaning) status,
		KR_EXITS(X)
#undef X
	};

	(void)state;
	for (size_t i = 1; i < KR_COUNT(known); i++)
		assert_true(known[i - 1] < known[i]);
	for (int code = KR_E_NONE; code < KR_E_COUNT; code++) {
		int status = kr_error_exit_status((enum kr_error_code)code);
		size_t at = 0;

		while (at < KR_COUNT(known) && known[at] != status)
			at++;
		assert_true(at < KR_COUNT(known));
		assert_true(status < KR_EXIT_LAUNCH); /* 125 and up are a launch's */
		assert_true((status == KR_EXIT_DONE) == (code == KR_E_NONE));
	}
	assert_int_equal(kr_error_exit_status(KR_E_CONFIG), 3);
	assert_int_equal(kr_error_exit_status(KR_E_LOGIN), 4);
	assert_int_equal(kr_error_exit_status(KR_E_REFUSED), 5);
	assert_int_equal(kr_error_exit_status(KR_E_SERVER), 6);
	assert_int_equal(kr_error_exit_status(KR_E_NOT_FOUND), 7);
	assert_int_equal(kr_error_exit_status(KR_E_TIMEOUT), 8);
	assert_int_equal(kr_error_exit_status(KR_E_WALL), 1);
}

/* A command that launches has 2 and 125 for errors of kraft's: all others could be the command's. */
static void
an_error_of_a_launch_is_125_but_for_usage(void **state)
{
	size_t launching = 0;

	(void)state;
	for (int code = KR_E_USAGE; code < KR_E_COUNT; code++)
		assert_int_equal(kr_error_launch_status((enum kr_error_code)code), code == KR_E_USAGE ? 2 : 125);
	for (size_t i = 0; kr_commands[i]; i++) {
		const char *name = kr_commands[i]->name;

		assert_true(kr_commands[i]->launches == (strcmp(name, "run") == 0 || strcmp(name, "shell") == 0));
		launching += kr_commands[i]->launches;
	}
	assert_int_equal(launching, 2);
}

static void
the_table_of_statuses_is_printed(void **state)
{
	static char shown[1 << 14];
	FILE *out = fmemopen(shown, sizeof(shown), "w");

	(void)state;
	assert_non_null(out);
	kr_help_exit_codes(out);
	assert_int_equal(fclose(out), 0);
#define X(name, status, meaning) assert_non_null(strstr(shown, "\n  " #status " "));
	KR_EXITS(X)
#undef X
}

/* ---- patches ---- */

/* What comes out of `text` in pieces of `piece` bytes. */
static const char *
patched(const char *text, size_t n, size_t piece, bool colour, size_t *binary)
{
	static char shown[1 << 17];
	struct kr_patch *patch = kr_xcalloc(1, sizeof(*patch));

	memset(shown, 0, sizeof(shown));
	patch->out = fmemopen(shown, sizeof(shown), "w");
	assert_non_null(patch->out);
	patch->colour = colour;
	for (size_t i = 0; i < n; i += piece)
		assert_int_equal(kr_patch_add(patch, text + i, n - i < piece ? n - i : piece), 0);
	kr_patch_end(patch);
	assert_int_equal(fclose(patch->out), 0);
	if (binary)
		*binary = patch->binary;
	free(patch);
	return shown;
}

static void
a_patch_cannot_steer_a_terminal_GIT_15(void **state)
{
	static const char text[] = "+a\033[2J\r\n-\342\200\256x\n+caf\303\251\ttab\n+\302\233\n+bad\303";
	static const char safe[] = "+a\\x1b[2J\\x0d\n-\\xe2\\x80\\xaex\n+caf\303\251\ttab\n+\\xc2\\x9b\n+bad\\xc3\n";

	(void)state;
	for (size_t piece = 1; piece <= sizeof(text); piece++)
		assert_string_equal(patched(text, sizeof(text) - 1, piece, false, NULL), safe);
}

static void
the_parts_of_a_patch_are_counted_not_guessed_GIT_15(void **state)
{
	static const char text[] = "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@ int\n same\n--- a/g\n-@@ -1 +1 @@\n+++ b/g\n"
							   "+Binary files a/x and b/x differ\n\\ No newline at end of file\n"
							   "Binary files a/x and b/x differ\n";
	const char *shown;
	size_t binary = 0;

	(void)state;
	shown = patched(text, sizeof(text) - 1, 7, true, &binary);
	assert_non_null(strstr(shown, "\033[1m--- a/f\033[m\n\033[1m+++ b/f\033[m\n\033[36m@@ -1,3 +1,3 @@ int\033[m\n same\n"));
	assert_non_null(strstr(shown, "\n\033[31m--- a/g\033[m\n\033[31m-@@ -1 +1 @@\033[m\n\033[32m+++ b/g\033[m\n\033[32m+Binary"));
	assert_non_null(strstr(shown, "\n\\ No newline at end of file\n\033[1mBinary files"));
	assert_int_equal(binary, 1);
}

static void
long_lines_come_whole(void **state)
{
	enum { LONG = 20000 };
	char *text = kr_xcalloc(2 * LONG + 2, 1);
	const char *shown;

	(void)state;
	text[0] = '+';
	for (size_t i = 0; i < LONG; i++)
		memcpy(text + 1 + 2 * i, "\303\251", 2);
	text[2 * LONG + 1] = '\n';
	shown = patched(text, 2 * LONG + 2, 4099, true, NULL);
	assert_int_equal(strlen(shown), 2 * LONG + 2 + strlen("\033[1m\033[m"));
	assert_null(strstr(shown, "\\x"));
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_of_an_option_is_read),
		cmocka_unit_test(dashes_and_the_first_word_end_the_options),
		cmocka_unit_test(wrong_command_lines_name_the_fix),
		cmocka_unit_test(unknown_commands_suggest_the_nearest),
		cmocka_unit_test(every_command_can_be_found_and_tells_of_itself),
		cmocka_unit_test(color_is_an_option_of_every_command),
		cmocka_unit_test(colour_is_decided_by_option_then_environment_then_terminal),
		cmocka_unit_test(every_error_has_a_status_of_the_table),
		cmocka_unit_test(an_error_of_a_launch_is_125_but_for_usage),
		cmocka_unit_test(the_table_of_statuses_is_printed),
		cmocka_unit_test(a_patch_cannot_steer_a_terminal_GIT_15),
		cmocka_unit_test(the_parts_of_a_patch_are_counted_not_guessed_GIT_15),
		cmocka_unit_test(long_lines_come_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
