/*
 * The option parser: a command's table in, struct kr_parsed out. Options and words may be mixed, except where
 * a command stops at its first word, because what follows is another program's command line. An option given
 * twice is refused: the two were meant to differ, and silently taking one of them would run something else
 * than was asked.
 */
#include "cli/cli.h"

#include "base/text.h"

enum { NEAR = 2 };

struct parse {
	const struct kr_command *command;
	int argc, at;
	char **argv;
	struct kr_parsed *out;
	bool wants_help;
	struct kr_error *err;
};

static int
usage(const struct parse *p)
{
	return kr_hint(p->err, "'kraft %s --help' tells its options", p->command->name);
}

static void
keep_nearer(const char *name, const struct kr_option *o, unsigned *best, const struct kr_option **near)
{
	unsigned d = kr_text_distance(name, o->name, NEAR);

	if (d < *best) {
		*best = d;
		*near = o;
	}
}

static int
unknown(const struct parse *p, const char *name)
{
	const struct kr_option *near = NULL;
	unsigned best = NEAR + 1;

	kr_fail(p->err, KR_E_USAGE, "unknown option '--%s' of 'kraft %s'", name, p->command->name);
	for (const struct kr_option *o = p->command->options; o && o->name; o++)
		keep_nearer(name, o, &best, &near);
	keep_nearer(name, &kr_colour_option, &best, &near);
	return near ? kr_hint(p->err, "did you mean '--%s'?", near->name) : usage(p);
}

static int
twice(const struct parse *p, const struct kr_option *option)
{
	kr_fail(p->err, KR_E_USAGE, "option '--%s' is given twice", option->name);
	return usage(p);
}

static int
set(struct parse *p, size_t index, const char *value)
{
	KR_BUG_IF(index >= KR_OPTIONS_MAX);
	if (p->out->value[index])
		return twice(p, &p->command->options[index]);
	p->out->value[index] = value;
	return 0;
}

bool
kr_option_needs_value(const struct kr_option *option)
{
	return option->argument && option->argument[0] != '[';
}

/* The value of an option that needs one and has none attached: the next word, whatever it looks like. */
static const char *
next_value(struct parse *p, const struct kr_option *o)
{
	if (p->at < p->argc)
		return p->argv[p->at++];
	kr_fail(p->err, KR_E_USAGE, "option '--%s' needs a value, %s", o->name, o->argument);
	usage(p);
	return NULL;
}

static int
set_next(struct parse *p, size_t index)
{
	const char *value = next_value(p, &p->command->options[index]);

	return value ? set(p, index, value) : -1;
}

static bool
is_named(const struct kr_option *option, const char *text)
{
	size_t n = strcspn(text, "=");

	return strlen(option->name) == n && memcmp(option->name, text, n) == 0;
}

static int
set_colour(struct parse *p, const char *text)
{
	const char *value = strchr(text, '=') ? strchr(text, '=') + 1 : next_value(p, &kr_colour_option);

	if (!value)
		return -1;
	if (p->out->has_colour)
		return twice(p, &kr_colour_option);
	p->out->has_colour = true;
	return kr_colour_read(value, &p->out->colour, p->err);
}

static int
parse_long(struct parse *p, const char *text)
{
	const size_t n = strcspn(text, "=");
	const struct kr_option *options = p->command->options;

	if (strcmp(text, "help") == 0) {
		p->wants_help = true;
		return 0;
	}
	if (is_named(&kr_colour_option, text))
		return set_colour(p, text);
	for (size_t i = 0; options && options[i].name; i++) {
		if (!is_named(&options[i], text))
			continue;
		if (!options[i].argument && text[n]) {
			kr_fail(p->err, KR_E_USAGE, "option '--%s' takes no value", options[i].name);
			return usage(p);
		}
		if (!kr_option_needs_value(&options[i]))
			return set(p, i, text[n] ? text + n + 1 : "");
		return text[n] ? set(p, i, text + n + 1) : set_next(p, i);
	}
	return unknown(p, text);
}

/* "-ab": flags one by one; the first letter that takes a value takes the rest of the word, or the next one.
 */
static int
parse_letters(struct parse *p, const char *letters)
{
	const struct kr_option *options = p->command->options;

	for (const char *c = letters; *c; c++) {
		size_t i = 0;

		if (*c == 'h') {
			p->wants_help = true;
			return 0;
		}
		while (options && options[i].name && options[i].letter != *c)
			i++;
		if (!options || !options[i].name) {
			kr_fail(p->err, KR_E_USAGE, "unknown option '-%c' of 'kraft %s'", *c, p->command->name);
			return usage(p);
		}
		if (kr_option_needs_value(&options[i]))
			return c[1] ? set(p, i, c + 1) : set_next(p, i);
		if (set(p, i, "") < 0)
			return -1;
	}
	return 0;
}

static int
count_words(const struct parse *p)
{
	const struct kr_command *command = p->command;
	int n = p->out->word_count;

	if (n >= command->words_min && (command->words_max < 0 || n <= command->words_max))
		return 0;
	if (n < command->words_min)
		kr_fail(p->err, KR_E_USAGE, "'kraft %s' needs more: %s", command->name, command->usage);
	else
		kr_fail(p->err, KR_E_USAGE, "'kraft %s' does not take '%s'", command->name,
			p->out->words[command->words_max]);
	return usage(p);
}

int
kr_options_parse(const struct kr_command *command, int argc, char **argv, struct kr_parsed *out,
	bool *wants_help, struct kr_error *err)
{
	struct parse p = { .command = command, .argc = argc, .argv = argv, .out = out, .err = err };

	*out = (struct kr_parsed){ .words = argv };
	*wants_help = false;
	while (p.at < argc && !(command->stops_at_word && out->word_count)) {
		char *word = argv[p.at++];

		if (strcmp(word, "--") == 0) {
			out->dashes = true;
			break;
		}
		if (word[0] != '-' || !word[1])
			argv[out->word_count++] = word; /* never past at: words move down only */
		else if ((word[1] == '-' ? parse_long(&p, word + 2) : parse_letters(&p, word + 1)) < 0)
			return -1;
		if (p.wants_help) {
			*wants_help = true;
			return 0;
		}
	}
	while (p.at < argc)
		argv[out->word_count++] = argv[p.at++];
	argv[out->word_count] = NULL;
	return count_words(&p);
}
