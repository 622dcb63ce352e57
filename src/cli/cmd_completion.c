/*
 * Completions for three shells, printed from the command tables. The scripts know the names of commands and options, and ask kraft
 * itself for ids ('kraft completion ids items'); after "--", and in commands that run another program, the shell's own completion
 * of commands and files goes on.
 *
 * A shell may expand what it is given to choose from, so of ids only those are printed that are no shell's business: letters, digits
 * and "._-". And it waits for us with a key pressed, so what takes too long is not there.
 */
#include "cli/cli.h"

#include <sys/time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/text.h"
#include "cli/work.h"
#include "config/chain.h"
#include "config/harness.h"
#include "os/host.h"
#include "session/facts.h"

enum { IDS_MS = 150 };

/* ---- ids ---- */

static bool
is_plain(const char *id)
{
	return *id && id[0] != '-' && id[strspn(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")] == '\0';
}

static void
print_id(const char *id)
{
	if (is_plain(id))
		puts(id);
}

static void
print_items(struct kr_arena *arena)
{
	struct kr_work work;
	struct kr_work_list list;

	if (kr_work_open_for_person(arena, &work, NULL) < 0)
		return;
	if (kr_work_list(&work, false, &list, NULL) == 0)
		for (size_t i = 0; i < list.n; i++)
			print_id(list.v[i].row.id);
	kr_work_close(&work);
}

static void
print_sessions(struct kr_arena *arena)
{
	struct kr_session_list list;
	struct kr_host host;

	if (kr_host_gather_places(arena, &host, NULL) == 0 && kr_session_list(arena, host.places.run_dir, NULL, &list, NULL) == 0)
		for (size_t i = 0; i < list.n; i++)
			print_id(list.v[i].facts.id);
}

static void
print_repositories(struct kr_arena *arena)
{
	struct kr_host host;
	const struct kr_repos *repos = kr_host_gather_places(arena, &host, NULL) == 0 ? kr_repos_load(arena, &host.places, NULL) : NULL;

	for (size_t i = 0; repos && i < repos->repo_count; i++)
		print_id(repos->repo[i].name);
}

static void
print_strs(int (*find)(struct kr_arena *arena, const struct kr_places *places, struct kr_strs *ids, struct kr_error *err), struct kr_arena *arena)
{
	struct kr_strs ids = { 0 };
	struct kr_host host;

	if (kr_host_gather_places(arena, &host, NULL) < 0 || find(arena, &host.places, &ids, NULL) < 0)
		return;
	for (size_t i = 0; i < ids.n; i++)
		print_id(ids.v[i]);
}

static void
print_harnesses(struct kr_arena *arena)
{
	print_strs(kr_harness_ids, arena);
}

static void
print_chains(struct kr_arena *arena)
{
	print_strs(kr_chain_ids, arena);
}

/* What there are ids of; `placeholder`: how a usage calls one; `options`: whose values they are. */
static const struct kind {
	const char *name, *placeholder, *options[3];
	void (*print)(struct kr_arena *arena);
} kinds[] = {
	{ "items", "ITEM", { "item", "depends-on" }, print_items },
	{ "sessions", "SESSION", { "session" }, print_sessions },
	{ "repositories", "REPOSITORY", { NULL }, print_repositories },
	{ "repositories", "[NAME|PATH]", { NULL }, print_repositories },
	{ "harnesses", NULL, { "harness" }, print_harnesses },
	{ "chains", NULL, { "chain" }, print_chains },
};

/* No output is an answer; so is a part of one. */
static int
print_ids(struct kr_arena *arena, const char *name, struct kr_error *err)
{
	const struct itimerval limit = { .it_value = { 0, IDS_MS * 1000 } };

	for (size_t i = 0; i < KR_COUNT(kinds); i++)
		if (strcmp(kinds[i].name, name) == 0) {
			(void)setitimer(ITIMER_REAL, &limit, NULL); /* SIGALRM ends us */
			kinds[i].print(arena);
			return 0;
		}
	kr_fail(err, KR_E_USAGE, "there are no ids of '%s'", name);
	return kr_hint(err, "one of 'items', 'sessions', 'repositories', 'harnesses', 'chains'");
}

static const char *
kind_of_option(const struct kr_option *option)
{
	for (size_t i = 0; i < KR_COUNT(kinds); i++)
		for (size_t k = 0; k < KR_COUNT(kinds[i].options) && kinds[i].options[k]; k++)
			if (strcmp(kinds[i].options[k], option->name) == 0)
				return kinds[i].name;
	return NULL;
}

/* Of its words that are no options; NULL: files, or nothing. */
static const char *
kind_of_words(const struct kr_command *command)
{
	const char *second = strchr(command->name, ' ');

	for (size_t i = 0; i < KR_COUNT(kinds); i++)
		if ((kinds[i].placeholder && strstr(command->usage, kinds[i].placeholder)) || (second && strcmp(second + 1, kinds[i].name) == 0))
			return kinds[i].name;
	return NULL;
}

/* ---- scripts ---- */

#define ASK "kraft completion ids %s 2>/dev/null"

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
		 "\tcase ${COMP_WORDS[COMP_CWORD-1]} in");
	for (size_t i = 0; i < KR_COUNT(kinds); i++)
		for (size_t k = 0; k < KR_COUNT(kinds[i].options) && kinds[i].options[k]; k++)
			printf("\t--%s) COMPREPLY=($(compgen -W \"$(" ASK ")\" -- \"$word\")); return ;;\n", kinds[i].options[k], kinds[i].name);
	puts("\tesac\n"
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
	puts("\t\tesac\n\t\treturn\n\tfi\n\tcase $name in");
	for (size_t i = 0; kr_commands[i]; i++)
		if (kind_of_words(kr_commands[i]))
			printf("\t'%s') COMPREPLY=($(compgen -W \"$(" ASK ")\" -- \"$word\")); return ;;\n", kr_commands[i]->name, kind_of_words(kr_commands[i]));
	puts("\tesac\n"
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
	else if (kind_of_option(o))
		printf(" '--%s=[%s]:%s:{compadd -- $(" ASK ")}'", o->name, help, argument, kind_of_option(o));
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
		if (kind_of_words(kr_commands[i]))
			printf(" $common '*:id:{compadd -- $(" ASK ")}' ;;\n", kind_of_words(kr_commands[i]));
		else
			puts(kr_commands[i]->stops_at_word ? " $common '*::command:_normal' ;;" : " $common '*:file:_files' ;;");
	}
	puts("\tesac\n}\n_kraft \"$@\"");
}

/* Once both words of it are there: 'start' is of items and of the server. */
static void
print_fish_command(struct kr_arena *arena, const struct kr_command *command)
{
	const char *space = strchr(command->name, ' ');
	const char *seen = space ? kr_arena_printf(arena, "__fish_seen_subcommand_from %.*s; and __fish_seen_subcommand_from %s",
								   (int)(space - command->name), command->name, space + 1)
							 : kr_arena_printf(arena, "__fish_seen_subcommand_from %s", command->name);

	if (kind_of_words(command))
		printf("complete -c kraft -n '%s' -f -a '(" ASK ")'\n", seen, kind_of_words(command));
	for (const struct kr_option *o = command->options; o && o->name; o++) {
		printf("complete -c kraft -n '%s' -l %s", seen, o->name);
		if (kind_of_option(o))
			printf(" -x -a '(" ASK ")'", kind_of_option(o));
		else if (kr_option_needs_value(o))
			printf(" -r");
		printf(" -d '%s'\n", quote(arena, o->help));
	}
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
	for (size_t i = 0; kr_commands[i]; i++)
		print_fish_command(arena, kr_commands[i]);
}

static int
run(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	static const struct {
		const char *shell;
		void (*print)(struct kr_arena *arena);
	} shells[] = { { "bash", print_bash }, { "zsh", print_zsh }, { "fish", print_fish } };

	if (parsed->word_count == 2 && strcmp(parsed->words[0], "ids") == 0)
		return print_ids(arena, parsed->words[1], err);
	if (parsed->word_count == 2)
		return kr_fail(err, KR_E_USAGE, "'%s' takes no second word", parsed->words[0]);
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
	.usage = "bash|zsh|fish | ids KIND",
	.summary = "print a shell's completion script",
	.help = "For bash: source <(kraft completion bash). The scripts ask 'ids' for what there is: items, sessions, repositories,\n"
			"harnesses, chains; a line each, and nothing when it cannot be had at once.",
	.words_min = 1,
	.words_max = 2,
	.run = run,
};
