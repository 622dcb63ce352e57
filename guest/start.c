/*
 * Inside, on macOS: sandbox-exec has put the profile on and becomes this, and this becomes the command. The environment comes
 * by a pipe, so that sandbox-exec, which is not yet under the profile, sees no variable that the repository chose (PROC-17).
 *
 * does: enter the directory, say what became of it, execute. must not: leave the command a descriptor of ours.
 */
#include "guest/start.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct start {
	int environment, status;
	const char *cwd, *exec;
	char *block, **variables;
	size_t bytes;
};

KG_TAKE_FD(struct start, environment, environment)
KG_TAKE_FD(struct start, status, status)
KG_TAKE_TEXT(struct start, cwd, cwd)
KG_TAKE_TEXT(struct start, exec, exec)

static const struct kg_option start_options[] = {
	{ "--environment", true, take_environment },
	{ "--status", true, take_status },
	{ "--cwd", true, take_cwd },
	{ "--exec", true, take_exec },
};

/* The profile says EPERM to what may not be read inside. */
static void
hint(const char *name, int exec_errno)
{
	if (kg_exec_exit(exec_errno) == KG_EXIT_NOT_FOUND)
		kg_hint(2, "", KG_HINT_NOT_FOUND);
	else
		kg_hint(2, name,
			exec_errno == EPERM ? " may not be executed inside the os sandbox; add its directory to the sandbox's expose list"
								: " is not executable");
}

static void
say(const struct start *start, uint32_t type, int32_t a, int32_t b)
{
	struct kg_message message = { .type = type, .a = a, .b = b };

	if (write(start->status, &message, sizeof(message)) != (ssize_t)sizeof(message))
		_exit(KG_EXIT_REFUSED); /* the launcher is gone, and nothing starts without it */
}

/* Its length first, in as many bytes as a message has: the same KG_START as on Linux. */
static bool
take_environment_block(struct start *start)
{
	struct kg_message head;
	long count;

	if (!kg_read_all(start->environment, &head, sizeof(head)) || head.type != KG_START || head.a < 0 || head.a > KG_ENV_BYTES)
		return false;
	start->bytes = (size_t)head.a;
	start->block = kg_map(start->bytes + 1);
	if (!start->block || !kg_read_all(start->environment, start->block, start->bytes))
		return false;
	count = kg_env_count(start->block, start->bytes);
	start->variables = count < 0 ? NULL : kg_map(((size_t)count + 1) * sizeof(*start->variables));
	return start->variables != NULL;
}

int
kg_start_main(int argc, char **argv)
{
	static char *nothing[1];
	struct start start = { .environment = -1, .status = -1 };
	struct kg_options options = { argv, argc, 2 };
	const char *culprit;
	int failed;

	if (!kg_options_read(&options, start_options, KG_COUNT(start_options), &start, &culprit) || options.at == argc ||
		start.environment < 0 || start.status < 0 || !start.cwd || !start.exec ||
		fcntl(start.status, F_SETFD, FD_CLOEXEC) < 0 || fcntl(start.environment, F_SETFD, FD_CLOEXEC) < 0) {
		kg_say(2, "start: wrong arguments", NULL);
		return KG_EXIT_REFUSED;
	}
	say(&start, KG_INSIDE, 0, 0);
	if (!take_environment_block(&start)) {
		say(&start, KG_LAUNCH_FAILED, KG_FAULT_INTERNAL, EPROTO);
		return KG_EXIT_REFUSED;
	}
	if (chdir(start.cwd) < 0) {
		failed = errno;
		kg_say(2, start.cwd, ": ", kg_errno_text(failed), NULL);
		say(&start, KG_LAUNCH_FAILED, KG_FAULT_CWD, failed);
		return KG_EXIT_REFUSED;
	}
	kg_env_merge(nothing, start.block, start.bytes, (const char **)start.variables);
	argv += options.at;
	failed = kg_exec(start.exec, argv, start.variables);
	hint(argv[0], failed);
	say(&start, KG_EXEC_FAILED, failed, 0);
	return kg_exec_exit(failed);
}
