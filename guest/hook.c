/*
 * kraft admin permission-hook HARNESS: what an agent's hook runs before each use of a tool (CHN-02, CHAN-09).
 * The hook's JSON comes on stdin and goes to kraft as it is; kraft's answer, in the words of that agent, is
 * printed.
 *
 *     parent   waits, no longer than HOOK_MS, and prints one object: the child's when it is whole, else the
 * denial child    reads stdin, asks kraft, and writes the answer into a pipe
 *
 * Agents run the tool when a hook fails, is late, says nothing, or says something that they do not know. So
 * whatever happens here (kraft away, slow, answering nonsense; a child that crashes) ends in exactly one
 * object that denies, with a reason, and exit status 0; when not even that can be written, in words on
 * standard error and exit status 2, which denies too. HOOK_MS lies below the ten minutes that agents give a
 * hook when they are told nothing.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "guest/shim.h"

enum {
	HOOK_MS = 540000,
	INPUT_BYTES = 256 << 10,
	ANSWER_BYTES = 128 << 10,
};

static const struct harness {
	const char *name, *denial;
} harnesses[] = {
	{ "codex", "{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\","
			   "\"permissionDecisionReason\":\"" KG_DENIAL_REASON "\"}}\n" },
	{ "cursor", "{\"permission\":\"deny\",\"agent_message\":\"" KG_DENIAL_REASON
				"\",\"user_message\":\"" KG_DENIAL_REASON "\"}\n" },
};

/* ---- the child ---- */

/* All of stdin; -1: it is too long, or cannot be read. */
static ssize_t
read_input(char *to, size_t size)
{
	size_t used = 0;

	while (used < size) {
		ssize_t got = read(0, to + used, size - used);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -1 : (ssize_t)used;
		used += (size_t)got;
	}
	return -1;
}

static char *
add(char *to, const char *text)
{
	size_t n = strlen(text);

	memcpy(to, text, n);
	return to + n;
}

static bool
ask(const struct harness *harness, char *input, char *form, int to)
{
	struct kg_answer answer = { .wait_ms = HOOK_MS };
	ssize_t n = read_input(input, INPUT_BYTES + 1);
	char *end = form;
	int fd;

	if (n < 0)
		return false;
	end = add(add(add(end, "harness="), harness->name), "&stdin=");
	end = kg_shim_escape(end, input, (size_t)n);
	fd = kg_shim_dial();
	return fd >= 0 && kg_shim_post(fd, "permission-hook", form, (size_t)(end - form)) == 0 &&
		   kg_shim_read_head(fd, &answer) && answer.status == 200 && kg_shim_copy_body(fd, &answer, to);
}

static void
be_child(const struct harness *harness, int to)
{
	char *input = kg_map(INPUT_BYTES + 1), *form = kg_map(64 + 3 * (INPUT_BYTES + 1));

	_exit(input && form && ask(harness, input, form, to) ? 0 : 1);
}

/* ---- the parent ---- */

static int64_t
now_ms(void)
{
	struct timespec now;

	return clock_gettime(CLOCK_MONOTONIC, &now) < 0 ? INT64_MAX
													: (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* What the child wrote until its end; -1: it is late, or has too much to say. */
static ssize_t
collect(int fd, char *to, size_t size)
{
	const int64_t until = now_ms() + HOOK_MS;
	size_t used = 0;

	while (used < size) {
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		int64_t left = until - now_ms();
		int count = left > 0 ? poll(&ready, 1, (int)left) : 0;
		ssize_t got;

		if (count < 0 && errno == EINTR)
			continue;
		if (count <= 0)
			return -1;
		got = read(fd, to + used, size - used);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -1 : (ssize_t)used;
		used += (size_t)got;
	}
	return -1;
}

/* Whole, and nothing but an object: what kraft writes is one line. */
static bool
is_object(const char *text, ssize_t n)
{
	return n >= 3 && text[0] == '{' && text[n - 2] == '}' && text[n - 1] == '\n' &&
		   !memchr(text, '\n', (size_t)n - 1);
}

/* Agents that read nothing and see exit status 0 run the tool; the other form that they heed is left then. */
static int
say(const char *object, size_t n)
{
	if (kg_shim_write(1, object, n))
		return 0;
	kg_say(2, KG_DENIAL_REASON, NULL);
	return 2;
}

static int
hook(const struct harness *harness)
{
	char *answer = kg_map(ANSWER_BYTES);
	int ends[2], status = -1;
	ssize_t n = -1;
	pid_t pid = -1;

	(void)signal(SIGPIPE, SIG_IGN);
	if (answer && pipe(ends) == 0) {
		pid = fork();
		if (pid == 0) {
			(void)close(ends[0]);
			be_child(harness, ends[1]);
		}
		(void)close(ends[1]);
	}
	if (pid > 0) {
		n = collect(ends[0], answer, ANSWER_BYTES);
		if (n < 0)
			(void)kill(pid, SIGKILL);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	return status == 0 && is_object(answer, n) ? say(answer, (size_t)n)
											   : say(harness->denial, strlen(harness->denial));
}

int
kg_hook_main(int argc, char **argv)
{
	static const char usage[] = "usage: kraft admin permission-hook codex|cursor";
	const char *name = NULL;

	for (int at = 3; at < argc; at++) {
		if (strcmp(argv[at], "--fail-closed") == 0 || strcmp(argv[at], "--json") == 0)
			continue; /* it always is, and it always does */
		if (name) {
			kg_say(2, usage, NULL);
			return 2;
		}
		name = argv[at];
	}
	for (size_t i = 0; name && i < KG_COUNT(harnesses); i++)
		if (strcmp(harnesses[i].name, name) == 0)
			return hook(&harnesses[i]);
	kg_say(2, usage, NULL);
	return 2;
}
