/* Help, printed from the same tables that parse. Plain text: it is piped and searched more than it is looked
 * at. */
#include "cli/cli.h"

#include <unistd.h>

#include "base/version.h"

enum { LEFT = 24, WIDTH = 80 };

/* One "  left   right" row, the right side wrapped at words. */
static void
print_row(FILE *out, const char *left, const char *right)
{
	int at = fprintf(out, "  %s", left);

	if (at >= LEFT) {
		fputc('\n', out);
		at = 0;
	}
	fprintf(out, "%*s", LEFT - at, "");
	at = LEFT;
	for (int n; *right; right += n) {
		right += *right == ' ';
		n = (int)strcspn(right, " ");
		if (at + 1 + n > WIDTH) {
			fprintf(out, "\n%*s", LEFT, "");
			at = LEFT;
		}
		at += fprintf(out, "%s%.*s", at > LEFT ? " " : "", n, right);
	}
	fputc('\n', out);
}

void
kr_help_overview(FILE *out)
{
	fputs("kraft " KR_VERSION ": runs commands and coding agents unattended inside walls that hold\n\n"
		  "usage: kraft COMMAND [OPTIONS] [ARG...]\n\n",
		out);
	for (size_t i = 0; kr_commands[i]; i++)
		print_row(out, kr_commands[i]->name, kr_commands[i]->summary);
	fputs(
		"\n'kraft help COMMAND' or 'kraft COMMAND --help' tells more, 'kraft help exit-codes' what a status\n"
		"means, 'kraft help E0301' an error, 'kraft help api' the HTTP API; 'kraft --version' prints the version.\n",
		out);
}

void
kr_help_exit_codes(FILE *out)
{
	static const struct {
		const char *status, *meaning;
	} rows[] = {
#define X(name, status, meaning) { #status, meaning },
		KR_EXITS(X)
#undef X
	};

	fputs("exit statuses of kraft\n\n", out);
	for (size_t i = 0; i < KR_COUNT(rows); i++)
		print_row(out, rows[i].status, rows[i].meaning);
	fputs(
		"\n'kraft run' and 'kraft shell' end with the status of the command, or with 128 and the number of\n"
		"the signal that ended it; an error of kraft's own is 2 or 125 there, and no other.\n",
		out);
}

/* ---- errors ---- */

static const struct explained {
	unsigned number;
	enum kr_error_code class;
	const char *title, *text, *example;
} explained[] = {
#define X(name, number, class, title, text, example) { number, KR_E_##class, title, text, example },
	KR_ERRORS(X)
#undef X
};

/* At the left edge, wrapped. */
static void
print_paragraph(FILE *out, const char *text)
{
	int at = 0;

	for (int n; *text; text += n) {
		text += *text == ' ';
		n = (int)strcspn(text, " ");
		if (at && at + 1 + n > WIDTH) {
			fputc('\n', out);
			at = 0;
		}
		at += fprintf(out, "%s%.*s", at ? " " : "", n, text);
	}
	fputc('\n', out);
}

static void
print_example(FILE *out, const char *text, const char *before)
{
	for (size_t n; *text; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		fprintf(out, "%s%.*s\n", before, (int)n, text);
	}
}

/* "E0301", in either case. */
bool
kr_help_error(const char *word, FILE *out)
{
	unsigned number = 0;
	char end;

	if ((word[0] != 'E' && word[0] != 'e') || strlen(word) != 5 || sscanf(word + 1, "%4u%c", &number, &end) != 1)
		return false;
	for (size_t i = 0; i < KR_COUNT(explained); i++) {
		const struct explained *e = &explained[i];

		if (e->number != number)
			continue;
		fprintf(out, "E%04u: %s (%s, exit status %d)\n\n", number, e->title, kr_error_name(e->class), kr_error_exit_status(e->class));
		print_paragraph(out, e->text);
		fputs("\nfor instance:\n", out);
		print_example(out, e->example, "    ");
		return true;
	}
	return false;
}

void
kr_help_errors(FILE *out)
{
	fputs("errors of kraft that have more to tell than their message\n\n", out);
	for (size_t i = 0; i < KR_COUNT(explained); i++) {
		char number[KR_ERROR_NUMBER_TEXT];

		kr_error_number_text(explained[i].number, number);
		print_row(out, number, explained[i].title);
	}
	fputs("\n'kraft help E0301' tells of one. A number is never given to another error.\n", out);
}

/* What scdoc takes for its own stands for itself. */
static void
print_scd(FILE *out, const char *text)
{
	for (; *text; text++)
		fprintf(out, "%s%c", strchr("*_\\`#[]", *text) ? "\\" : "", *text);
}

void
kr_help_errors_page(FILE *out)
{
	fputs("kraft-errors(7)\n\n# NAME\n\nkraft-errors - errors of kraft that have more to tell than their message\n\n# DESCRIPTION\n\n"
		  "An error with a number ends with a line *see: kraft help E0301*. The number is the error's for ever. Its class gives the exit status, see\n"
		  "*kraft*(1). This page is made of the program's own table.\n\n# ERRORS\n",
		out);
	for (size_t i = 0; i < KR_COUNT(explained); i++) {
		const struct explained *e = &explained[i];

		fprintf(out, "\n*E%04u*: ", e->number);
		print_scd(out, e->title);
		fprintf(out, " (%s, exit status %d)\n\t", kr_error_name(e->class), kr_error_exit_status(e->class));
		print_scd(out, e->text);
		fputs("\n\n\t```\n", out);
		print_example(out, e->example, "\t");
		fputs("\t```\n", out);
	}
	fputs("\n# SEE ALSO\n\n*kraft*(1), *kraft-admin*(1), *kraft-why*(1)\n", out);
}

bool
kr_help_group(const char *group, FILE *out)
{
	size_t n = strlen(group);
	bool found = false;

	for (size_t i = 0; kr_commands[i]; i++)
		if (strncmp(kr_commands[i]->name, group, n) == 0 && kr_commands[i]->name[n] == ' ') {
			if (!found)
				fprintf(out, "usage: kraft %s COMMAND [OPTIONS] [ARG...]\n\n", group);
			print_row(out, kr_commands[i]->name, kr_commands[i]->summary);
			found = true;
		}
	return found;
}

static void
print_option(FILE *out, const struct kr_option *option)
{
	char left[96];

	snprintf(left, sizeof(left), "%s%c%s--%s%s%s", option->letter ? "-" : " ",
		option->letter ? option->letter : ' ', option->letter ? ", " : "  ", option->name,
		kr_option_needs_value(option) ? " " : "", option->argument ? option->argument : "");
	print_row(out, left, option->help);
}

void
kr_help_command(const struct kr_command *command, FILE *out)
{
	static const struct kr_option help = { "help", 'h', NULL, "tell this" };

	fprintf(out, "kraft %s: %s\n\nusage: kraft %s%s%s\n", command->name, command->summary, command->name,
		command->usage[0] ? " " : "", command->usage);
	if (command->help && command->help[0])
		fprintf(out, "\n%s\n", command->help);
	fputs("\noptions:\n", out);
	for (const struct kr_option *o = command->options; o && o->name; o++)
		print_option(out, o);
	print_option(out, &kr_colour_option);
	print_option(out, &help);
}
