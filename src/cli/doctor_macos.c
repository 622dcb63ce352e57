/*
 * What kind: os needs on macOS (MAC-11): sandbox-exec and that it may raise a sandbox, developer tools behind /usr/bin/git, and a
 * kraft that is no other machine's. Facts are gathered first; what they mean is a pure function, since nobody here has a Mac. Each
 * launch asks for the same facts (session/launch_seatbelt.c); here a sandbox is raised as well.
 */
#include "cli/doctor.h"

#include <sys/wait.h>
#include <unistd.h>

#include "backend/backend.h"
#include "base/fd.h"
#include "os/sys.h"

enum { ANSWER_BYTES = 4096, LIMIT_MS = 10000 };

/* ---- what the facts mean ---- */

static void
judge_walls(struct kr_doctor *d, const struct kr_macos_facts *facts, const struct kr_macos_trial *trial)
{
	if (!facts->has_sandbox_exec) {
		kr_doctor_add(d, "sandbox-exec", KR_VERDICT_FAIL, "it is a part of macOS: repair the system, or use kind: docker",
			"'%s' is not there, or cannot be executed", facts->sandbox_exec);
		kr_doctor_add(d, "sandbox", KR_VERDICT_SKIP, "", "without sandbox-exec it cannot be tried");
		return;
	}
	kr_doctor_add(d, "sandbox-exec", KR_VERDICT_OK, "", "'%s'", facts->sandbox_exec);
	if (trial->is_raised)
		kr_doctor_add(d, "sandbox", KR_VERDICT_OK, "", "one was made");
	else
		kr_doctor_add(d, "sandbox", KR_VERDICT_FAIL,
			"run kraft from a terminal of your own: inside of a sandbox, an application's or another kraft's, none can be made",
			"none could be made: %s", *trial->said ? trial->said : "sandbox-exec gave no reason");
}

static void
judge_tools(struct kr_doctor *d, const struct kr_macos_facts *facts)
{
	if (facts->has_tools)
		kr_doctor_add(d, "developer tools", KR_VERDICT_OK, "", "'%s'", facts->developer);
	else
		kr_doctor_add(d, "developer tools", KR_VERDICT_FAIL, "xcode-select --install",
			"neither Xcode nor the Command Line Tools are there: /usr/bin/git only leads to them");
}

/* As a launch would refuse it, whatever else is wrong. */
static void
judge_machine(struct kr_doctor *d, const struct kr_macos_facts *facts)
{
	const struct kr_macos_facts alone = {
		.machine = facts->machine,
		.is_root = facts->is_root,
		.is_sandboxed = facts->is_sandboxed,
		.is_translated = facts->is_translated,
		.sandbox_exec = "",
		.has_sandbox_exec = true,
		.has_tools = true,
	};
	struct kr_error err = { 0 };

	if (kr_macos_check(&alone, &err) == 0)
		kr_doctor_add(d, "machine", KR_VERDICT_OK, "", "%s, and kraft is of this machine's kind", facts->machine);
	else
		kr_doctor_add(d, "machine", KR_VERDICT_FAIL, err.hint, "%s", err.message);
}

void
kr_doctor_macos_judge(struct kr_doctor *d, const struct kr_macos_facts *facts, const struct kr_macos_trial *trial)
{
	judge_walls(d, facts, trial);
	judge_tools(d, facts);
	judge_machine(d, facts);
}

/* ---- the facts ---- */

/* The first line that a program prints; its exit status, -1: it did not end by itself. */
static int
ask(struct kr_arena *arena, const char *const argv[], const char **line)
{
	static const char *const nothing[] = { NULL };
	const struct kr_child call = { .path = argv[0], .argv = argv, .envp = nothing, .directory = "/", .limit_ms = LIMIT_MS };
	kr_auto_buf struct kr_buf out = KR_BUF(ANSWER_BYTES);
	int status = -1;

	*line = "";
	if (kr_child_run(&call, &out, NULL, &status, NULL) < 0)
		return -1;
	if (out.len)
		*line = kr_arena_dup_n(arena, out.data, strcspn(out.data, "\n"));
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void
try_sandbox(struct kr_doctor *d, const char *sandbox_exec, struct kr_macos_trial *trial)
{
	static const char profile[] = "(version 1)\n(allow default)\n";
	char file[] = "/tmp/kraft-doctor-XXXXXX";
	const char *const argv[] = { sandbox_exec, "-f", file, "/usr/bin/true", NULL };
	kr_auto_fd int made = mkstemp(file);

	if (made < 0 || kr_write_all(made, profile, sizeof(profile) - 1, NULL) < 0)
		trial->said = "no profile could be written in /tmp";
	else
		trial->is_raised = ask(d->arena, argv, &trial->said) == 0;
	if (made >= 0)
		(void)unlink(file); /* a few bytes in /tmp else */
}

void
kr_doctor_macos(struct kr_doctor *d)
{
	struct kr_macos_facts facts;
	struct kr_macos_trial trial = { .said = "" };

	kr_macos_look(d->arena, d->host.sandbox_exec, &facts);
	if (facts.has_sandbox_exec)
		try_sandbox(d, facts.sandbox_exec, &trial);
	kr_doctor_macos_judge(d, &facts, &trial);
}
