/*
 * kraft: dispatch only. Finds the command, parses its options by its table, runs it, reports its error once.
 * Exit status: the command's own; with an error, what the tables in base/error.h say.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "api/api.h"
#include "base/version.h"
#include "cli/cli.h"

static int
report(const struct kr_error *err)
{
	fflush(stdout);
	kr_error_print(err, stderr, kr_colour_on(STDERR_FILENO));
	if (getenv("KRAFT_DEBUG") && err->file)
		fprintf(stderr, "at: %s:%d\n", err->file, err->line);
	return kr_error_exit_status(err->code);
}

enum { REFERENCE_BYTES = 256 << 10 };

/* docs/api.md */
static int
help_api(void)
{
	kr_auto_buf struct kr_buf text = KR_BUF(REFERENCE_BYTES);

	kr_api_reference(&text);
	KR_BUG_IF(text.overflow);
	fwrite(text.data, 1, text.len, stdout);
	return 0;
}

static int
help(int argc, char **argv)
{
	struct kr_error err = { 0 };
	const struct kr_command *command;
	int used = 0;

	if (argc == 0) {
		kr_help_overview(stdout);
		return 0;
	}
	if (argc == 1 && strcmp(argv[0], "exit-codes") == 0) {
		kr_help_exit_codes(stdout);
		return 0;
	}
	if (argc == 1 && strcmp(argv[0], "api") == 0)
		return help_api();
	if (argc == 1 && strcmp(argv[0], "errors") == 0) {
		kr_help_errors(stdout);
		return 0;
	}
	if (argc == 1 && strcmp(argv[0], "kraft-errors") == 0) {
		kr_help_errors_page(stdout);
		return 0;
	}
	if (argc == 1 && kr_help_error(argv[0], stdout))
		return 0;
	if (argc == 1 && kr_help_group(argv[0], stdout))
		return 0;
	command = kr_command_find(argc, argv, &used, &err);
	if (!command)
		return report(&err);
	kr_help_command(command, stdout);
	return 0;
}

static int
dispatch(int argc, char **argv)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_error err = { 0 };
	struct kr_parsed parsed;
	bool wants_help = false;
	int used = 0, status;
	const struct kr_command *command = kr_command_find(argc, argv, &used, &err);

	if (!command)
		return report(&err);
	status = kr_options_parse(command, argc - used, argv + used, &parsed, &wants_help, &err);
	if (parsed.has_colour)
		kr_colour_choose(parsed.colour);
	if (status < 0)
		return report(&err);
	if (wants_help) {
		kr_help_command(command, stdout);
		return 0;
	}
	status = command->run(&arena, &parsed, &err);
	if (!err.code)
		return status;
	/* What failed beneath a launch knows of no next step; the host may. */
	if (command->launches && !err.hint[0] && (err.code == KR_E_GIT || err.code == KR_E_SYSTEM || err.code == KR_E_WALL))
		kr_hint(&err, err.sys_errno == ENOSPC ? "make room and try again" : "'kraft admin doctor' tells whether this host is fit");
	(void)report(&err);
	return command->launches ? kr_error_launch_status(err.code) : kr_error_exit_status(err.code);
}

/* --color may stand before the command, too. Returns how many words it took, or -1. */
static int
take_colour(int argc, char **argv, struct kr_error *err)
{
	static const char option[] = "--color";
	const size_t n = sizeof(option) - 1;
	enum kr_colour colour;

	if (argc < 1 || strncmp(argv[0], option, n) != 0 || (argv[0][n] && argv[0][n] != '='))
		return 0;
	if (!argv[0][n] && argc < 2)
		return kr_fail(err, KR_E_USAGE, "option '%s' needs a value, %s", option, kr_colour_option.argument);
	if (kr_colour_read(argv[0][n] ? argv[0] + n + 1 : argv[1], &colour, err) < 0)
		return -1;
	kr_colour_choose(colour);
	return argv[0][n] ? 1 : 2;
}

/* A full disk or a closed pipe must not look like success. */
static int
close_stdout(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	if (errno != EPIPE)
		fprintf(stderr, "kraft: cannot write to the standard output: %s\n", strerror(errno));
	return status ? status : 1;
}

/* Whoever started us with a standard stream closed would find the next file we open in its place. */
static void
open_missing_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_WRONLY : O_RDONLY) != fd)
			abort(); /* the lowest free number is fd, or there is no /dev/null to run with */
}

static bool
asks_for_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int
act(int n, char **words)
{
	if (n < 1)
		return dispatch(2, (char *[]){ (char[]){ "admin" }, (char[]){ "start" }, NULL });
	if (asks_for_help(words[0]))
		return help(0, NULL);
	if (strcmp(words[0], "help") == 0)
		return help(n - 1, words + 1);
	if (strcmp(words[0], "--version") == 0) {
		printf("kraft " KR_VERSION "%s%s\n", *kr_commit ? ", commit " : "", kr_commit);
		return 0;
	}
	if (n == 2 && asks_for_help(words[1]) && kr_help_group(words[0], stdout))
		return 0;
	return dispatch(n, words);
}

int
main(int argc, char **argv)
{
	struct kr_error err = { 0 };
	int taken;

	open_missing_streams();
	(void)signal(SIGCHLD, SIG_DFL); /* ignored by who started us, there would be no child to wait for */
	if (argc < 1)
		return close_stdout(act(0, argv));
	taken = take_colour(argc - 1, argv + 1, &err);
	return close_stdout(taken < 0 ? report(&err) : act(argc - 1 - taken, argv + 1 + taken));
}
