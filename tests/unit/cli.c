/* cli: the option parser, finding commands, suggestions, help, colour. */
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include "cli/cli.h"

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
			count++;
		}
		assert_true(count <= KR_OPTIONS_MAX);
	}
}

static void
colour_is_for_terminals_only(void **state)
{
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	setenv("TERM", "xterm", 1);
	unsetenv("NO_COLOR");
	assert_false(kr_colour_on(fds[1]));
	close(fds[0]);
	close(fds[1]);
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
		cmocka_unit_test(colour_is_for_terminals_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
