/*
 * Completions for three shells, printed from the command tables. The scripts know the names of commands and
 * options, and ask kraft for the ids of harnesses; after "--", and in commands that run another program, the
 * shell's own completion of commands and files goes on.
 */
#include "cli/cli.h"

#include "base/buf.h"
#include "base/text.h"

/* The first column without its heading; between single quotes in all three. */
#define HARNESS_IDS "kraft admin harnesses 2>/dev/null | tail -n +2 | cut -d\" \" -f1"

static bool
is_harness(const struct kr_option *option)
{
	return strcmp(option->name, "harness") == 0;
}

static void
first_words(struct kr_arena *arena, struct kr_strs *out)
{
	for (size_t i = 0; kr_commands[i]; i++) {
		const char *word = kr_arena_dup_n(arena, kr_commands[i]->name, strcspn(kr_commands[i]->name, " "));

		if (!kr_strs_has(out, word))
			kr_strs_add(arena, out, word);
	}
	kr_strs_add(arena, out, "help");
}

/* "sub1 sub2" of a group, or "" for a command of one word. */
static const char *
second_words(struct kr_arena *arena, const char *group)
{
	const char *words = "";
	size_t n = strlen(group);

	for (size_t i = 0; kr_commands[i]; i++)
		if (strncmp(kr_commands[i]->name, group, n) == 0 && kr_commands[i]->name[n] == ' ')
			words = kr_arena_printf(arena, "%s%s%s", words, *words ? " " : "", kr_commands[i]->name + n + 1);
	return words;
}

static void
print_bash(struct kr_arena *arena)
{
	struct kr_strs first = { 0 };

	first_words(arena, &first);
	puts("# kraft completion bash: source it, or put it into bash-completion's directory as 'kraft'\n"
		 "_kraft() {\n"
		 "\tlocal word=${COMP_WORDS[COMP_CWORD]} name=${COMP_WORDS[1]} i\n"
		 "\tCOMPREPLY=()\n"
		 "\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
		 "\t\t[[ ${COMP_WORDS[i]} == -- ]] && { _kraft_command $((i + 1)); return; }\n"
		 "\tdone\n"
		 "\tif [[ ${COMP_WORDS[COMP_CWORD-1]} == --harness ]]; then\n"
		 "\t\tCOMPREPLY=($(compgen -W \"$(" HARNESS_IDS ")\" -- \"$word\"))\n"
		 "\t\treturn\n\tfi\n"
		 "\tif ((COMP_CWORD == 1)); then");
	printf("\t\tCOMPREPLY=($(compgen -W '");
	for (size_t i = 0; i < first.n; i++)
		printf("%s%s", i ? " " : "", first.v[i]);
	puts("' -- \"$word\"))\n\t\treturn\n\tfi\n\tcase $name in");
	for (size_t i = 0; i < first.n; i++) {
		const char *second = second_words(arena, first.v[i]);

		if (*second)
			printf("\t%s) ((COMP_CWORD == 2)) && { COMPREPLY=($(compgen -W '%s' -- \"$word\")); return; }\n"
				   "\t\tname=\"$name ${COMP_WORDS[2]}\" ;;\n",
				first.v[i], second);
	}
	puts("\tesac\n\tif [[ $word == -* ]]; then\n\t\tcase $name in");
	for (size_t i = 0; kr_commands[i]; i++) {
		printf("\t\t'%s') COMPREPLY=($(compgen -W '", kr_commands[i]->name);
		for (const struct kr_option *o = kr_commands[i]->options; o && o->name; o++)
			printf("--%s ", o->name);
		puts("--color --help' -- \"$word\")) ;;");
	}
	puts("\t\tesac\n\t\treturn\n\tfi\n"
		 "\tCOMPREPLY=($(compgen -f -- \"$word\"))\n"
		 "}\n"
		 "# What follows '--' is a command line of its own; bash-completion has a function for that.\n"
		 "_kraft_command() {\n"
		 "\tif declare -F _command_offset >/dev/null; then\n"
		 "\t\t_command_offset \"$1\"\n"
		 "\telif ((COMP_CWORD == $1)); then\n"
		 "\t\tCOMPREPLY=($(compgen -c -f -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
		 "\telse\n"
		 "\t\tCOMPREPLY=($(compgen -f -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
		 "\tfi\n"
		 "}\n"
		 "complete -o filenames -F _kraft kraft");
}

/* Text for the inside of single quotes of a shell ('\'' ends and reopens them); zsh's _arguments also wants [
 * ] : out. */
static const char *
quote(struct kr_arena *arena, const char *text)
{
	kr_auto_buf struct kr_buf out = KR_BUF(4096);

	for (; *text; text++) {
		if (*text == '\'')
			kr_buf_adds(&out, "'\\''");
		else if (strchr("[]:", *text))
			kr_buf_addf(&out, "\\%c", *text);
		else
			kr_buf_add(&out, text, 1);
	}
	return kr_arena_dup(arena, out.data ? out.data : "");
}

/* A value that may be left out stands in the same word, and no file is meant. */
static void
print_zsh_option(struct kr_arena *arena, const struct kr_option *o)
{
	const char *help = quote(arena, o->help), *argument = o->argument ? quote(arena, o->argument) : NULL;

	if (!argument)
		printf(" '--%s[%s]'", o->name, help);
	else if (is_harness(o))
		printf(" '--%s=[%s]:%s:{compadd -- $(" HARNESS_IDS ")}'", o->name, help, argument);
	else if (kr_option_needs_value(o))
		printf(" '--%s=[%s]:%s:_files'", o->name, help, argument);
	else
		printf(" '--%s=-[%s]::%s: '", o->name, help, argument);
}

static void
print_zsh(struct kr_arena *arena)
{
	puts("#compdef kraft\n"
		 "_kraft() {\n"
		 "\tlocal -a names\n"
		 "\tlocal -a common\n"
		 "\tcommon=('--help[tell this]' '--color=[when to write in colour]:when:(auto always never)')\n"
		 "\tlocal name=$words[2]\n"
		 "\tif (( CURRENT == 2 )); then\n"
		 "\t\tnames=(");
	for (size_t i = 0; kr_commands[i]; i++)
		if (!strchr(kr_commands[i]->name, ' '))
			printf("\t\t\t'%s:%s'\n", kr_commands[i]->name, quote(arena, kr_commands[i]->summary));
	{
		struct kr_strs first = { 0 };

		first_words(arena, &first);
		for (size_t i = 0; i < first.n; i++)
			if (*second_words(arena, first.v[i]))
				printf("\t\t\t'%s:%s'\n", first.v[i], second_words(arena, first.v[i]));
		puts("\t\t\t'help:tell about a command'\n\t\t)\n\t\t_describe command "
			 "names\n\t\treturn\n\tfi\n\tcase $name in");
		for (size_t i = 0; i < first.n; i++)
			if (*second_words(arena, first.v[i]))
				printf("\t%s)\n\t\tif (( CURRENT == 3 )); then\n\t\t\tcompadd %s\n\t\t\treturn\n\t\tfi\n"
					   "\t\tname=\"$name $words[3]\"; shift words; (( CURRENT-- )) ;;\n",
					first.v[i], second_words(arena, first.v[i]));
	}
	puts("\tesac\n\tshift words; (( CURRENT-- ))\n\tcase $name in");
	for (size_t i = 0; kr_commands[i]; i++) {
		printf("\t'%s') _arguments", kr_commands[i]->name);
		for (const struct kr_option *o = kr_commands[i]->options; o && o->name; o++)
			print_zsh_option(arena, o);
		puts(kr_commands[i]->stops_at_word ? " $common '*::command:_normal' ;;"
										   : " $common '*:file:_files' ;;");
	}
	puts("\tesac\n}\n_kraft \"$@\"");
}

static void
print_fish(struct kr_arena *arena)
{
	struct kr_strs first = { 0 };

	first_words(arena, &first);
	puts("# kraft completion fish: put it into ~/.config/fish/completions/kraft.fish");
	for (size_t i = 0; i < first.n; i++) {
		const char *second = second_words(arena, first.v[i]);

		printf("complete -c kraft -n __fish_use_subcommand -f -a %s\n", first.v[i]);
		if (*second)
			printf("complete -c kraft -n '__fish_seen_subcommand_from %s; and not "
				   "__fish_seen_subcommand_from %s' -f -a '%s'\n",
				first.v[i], second, second);
	}
	puts("complete -c kraft -l color -x -a 'auto always never' -d 'when to write in colour'\n"
		 "complete -c kraft -l help -d 'tell this'");
	for (size_t i = 0; kr_commands[i]; i++) {
		const char *name = kr_commands[i]->name, *last = strchr(name, ' ') ? strchr(name, ' ') + 1 : name;

		for (const struct kr_option *o = kr_commands[i]->options; o && o->name; o++)
			printf("complete -c kraft -n '__fish_seen_subcommand_from %s' -l %s%s -d '%s'\n", last, o->name,
				is_harness(o)              ? " -x -a '(" HARNESS_IDS ")'"
				: kr_option_needs_value(o) ? " -r"
										   : "",
				quote(arena, o->help));
	}
}

static int
run(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	static const struct {
		const char *shell;
		void (*print)(struct kr_arena *arena);
	} shells[] = { { "bash", print_bash }, { "zsh", print_zsh }, { "fish", print_fish } };

	for (size_t i = 0; i < KR_COUNT(shells); i++)
		if (strcmp(parsed->words[0], shells[i].shell) == 0) {
			shells[i].print(arena);
			return 0;
		}
	kr_fail(err, KR_E_USAGE, "there is no completion for '%s'", parsed->words[0]);
	return kr_hint(err, "one of 'bash', 'zsh', 'fish'");
}

const struct kr_command kr_cmd_completion = {
	.name = "completion",
	.usage = "bash|zsh|fish",
	.summary = "print a shell's completion script",
	.help = "For bash: source <(kraft completion bash)",
	.words_min = 1,
	.words_max = 1,
	.run = run,
};
