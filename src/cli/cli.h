/*
 * The command line. main.c only dispatches; each command is one file with one const struct kr_command, listed
 * in commands.c. Options are a table; parsing, --help, errors and completions come from it.
 */
#ifndef KR_CLI_CLI_H
#define KR_CLI_CLI_H

#include "base/arena.h"
#include "base/error.h"

struct kr_option {
	const char *name;     /* without "--" */
	char letter;          /* 0: none */
	const char *argument; /* its placeholder, "PATH"; NULL: a flag; "[=PATH]": may be left out */
	const char *help;     /* one line */
};

enum { KR_OPTIONS_MAX = 16 };

enum kr_colour { KR_COLOUR_AUTO, KR_COLOUR_ALWAYS, KR_COLOUR_NEVER };

struct kr_parsed {
	const char
		*value[KR_OPTIONS_MAX]; /* by the option's index in the table: its value, "" for a flag, NULL unset */
	char **words;               /* what is not an option; after "--" everything */
	int word_count;
	bool dashes; /* a "--" was there */
	bool has_colour;
	enum kr_colour colour; /* of --color, which every command takes */
};

struct kr_command {
	const char *name;                /* "run", "repo connect": up to two words */
	const char *usage;               /* after the name: "[OPTIONS] -- COMMAND [ARG...]" */
	const char *summary;             /* one line */
	const char *help;                /* paragraphs, "" for none */
	const struct kr_option *options; /* ends with a NULL name */
	int words_min, words_max;        /* -1: any number */
	bool stops_at_word;              /* the first word ends the options (run, shell, explain) */
	bool launches; /* ends with the status of what it starts, so its own errors are kr_error_launch_status */
	/* Returns the exit status; with err filled it is reported by main and gives the status of its code. */
	int (*run)(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err);
};

extern const struct kr_command *const kr_commands[]; /* NULL-terminated */
/* Of the sources that the program was built of, short; "": not known. The program has it, the library has not. */
extern const char kr_commit[];

struct json_t;
/* For programs: indented, on stdout. Takes it; NULL is out of memory. */
int kr_print_json(struct json_t *json, struct kr_error *err);
/* A text from a file for a terminal: control bytes and what is no UTF-8 as \xNN (kr_text_escape). */
const char *kr_shown(struct kr_arena *arena, const char *text);

bool kr_colour_on(int fd); /* whether to write to it in colour */

/* ---- between main.c and the tables; commands do not need these ---- */

/*
 * The command that the first one or two words name; *used tells how many. NULL with KR_E_USAGE when there is
 * none; the hint names the nearest ones. A word that only starts two-word commands ("repo") is an error that
 * lists them.
 */
const struct kr_command *kr_command_find(int argc, char **argv, int *used, struct kr_error *err);
/*
 * Parses what follows the command's name: --name VALUE, --name=VALUE, -l VALUE, -lVALUE, flags in one (-ab),
 * "--". out->words borrows from argv, which is reordered. *wants_help is set, and nothing else is checked,
 * when --help or -h stands among the options. KR_E_USAGE otherwise; out->colour is then what was read of it
 * so far.
 */
int kr_options_parse(const struct kr_command *command, int argc, char **argv, struct kr_parsed *out,
	bool *wants_help, struct kr_error *err);

/* The value of --color. KR_E_USAGE. */
int kr_colour_read(const char *word, enum kr_colour *out, struct kr_error *err);
void kr_colour_choose(enum kr_colour when); /* before the first kr_colour_on */
extern const struct kr_option kr_colour_option;

bool kr_option_needs_value(const struct kr_option *option);

void kr_help_overview(FILE *out);
void kr_help_exit_codes(FILE *out);
/* "E0301", in either case; false: no error has this number. */
bool kr_help_error(const char *word, FILE *out);
void kr_help_errors(FILE *out);
void kr_help_errors_page(FILE *out); /* kraft-errors(7) as scdoc's source */
void kr_help_command(const struct kr_command *command, FILE *out);
/* Everything below `group` ("repo"): false when no command starts with that word. */
bool kr_help_group(const char *group, FILE *out);

#endif
