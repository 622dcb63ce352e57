/*
 * kraft: dispatch only. Finds the command, parses its options by its table, runs it, reports its error once.
 * Exit status: the command's own; with an error, what the table in base/error.h says; 2 for a wrong command
 * line.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/version.h"

static int
report(const struct kr_error *err)
{
	fflush(stdout);
	kr_error_print(err, stderr, kr_colour_on(STDERR_FILENO));
	if (getenv("KRAFT_DEBUG") && err->file)
		fprintf(stderr, "at: %s:%d\n", err->file, err->line);
	return kr_error_exit_status(err->code);
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

	if (!command || kr_options_parse(command, argc - used, argv + used, &parsed, &wants_help, &err) < 0)
		return report(&err);
	if (wants_help) {
		kr_help_command(command, stdout);
		return 0;
	}
	status = command->run(&arena, &parsed, &err);
	return err.code ? report(&err) : status;
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

int
main(int argc, char **argv)
{
	int n = argc - 1;
	char **words = argv + 1;

	open_missing_streams();
	(void)signal(SIGCHLD, SIG_DFL); /* ignored by who started us, there would be no child to wait for */
	if (argc < 2)
		return close_stdout(dispatch(2, (char *[]){ (char[]){ "admin" }, (char[]){ "start" }, NULL }));
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return close_stdout(help(0, NULL));
	if (strcmp(argv[1], "help") == 0)
		return close_stdout(help(n - 1, words + 1));
	if (strcmp(argv[1], "--version") == 0) {
		puts("kraft " KR_VERSION);
		return close_stdout(0);
	}
	if (n == 2 && (strcmp(words[1], "--help") == 0 || strcmp(words[1], "-h") == 0) &&
		kr_help_group(words[0], stdout))
		return close_stdout(0);
	return close_stdout(dispatch(n, words));
}
