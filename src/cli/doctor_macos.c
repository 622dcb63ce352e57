/*
 * What kind: os needs on macOS (MAC-11): sandbox-exec and that it may raise a sandbox, developer tools behind /usr/bin/git, and a
 * kraft that is no other machine's. Facts are gathered first; what they mean is a pure function, since nobody here has a Mac.
 *
 * Whether kraft is inside of a sandbox itself is not asked for but tried: a second one cannot be raised in there.
 */
#include "cli/doctor.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "os/sys.h"

#define TOOLS "/Library/Developer/CommandLineTools"
enum { ANSWER_BYTES = 4096, LIMIT_MS = 10000 };

/* ---- what the facts mean ---- */

static void
judge_walls(struct kr_doctor *d, const struct kr_macos_found *facts)
{
	if (!facts->has_program) {
		kr_doctor_add(d, "sandbox-exec", KR_VERDICT_FAIL, "it is a part of macOS: repair the system, or use kind: docker",
			"'%s' is not there, or cannot be executed", facts->sandbox_exec);
		kr_doctor_add(d, "sandbox", KR_VERDICT_SKIP, "", "without sandbox-exec it cannot be tried");
		return;
	}
	kr_doctor_add(d, "sandbox-exec", KR_VERDICT_OK, "", "'%s'", facts->sandbox_exec);
	if (facts->is_raised)
		kr_doctor_add(d, "sandbox", KR_VERDICT_OK, "", "one was made");
	else
		kr_doctor_add(d, "sandbox", KR_VERDICT_FAIL,
			"run kraft from a terminal of your own: inside of a sandbox, an application's or another kraft's, none can be made",
			"none could be made: %s", *facts->said ? facts->said : "sandbox-exec gave no reason");
}

static void
judge_tools(struct kr_doctor *d, const struct kr_macos_found *facts)
{
	if (*facts->developer)
		kr_doctor_add(d, "developer tools", KR_VERDICT_OK, "", "xcode-select has chosen '%s'", facts->developer);
	else if (facts->has_tools)
		kr_doctor_add(d, "developer tools", KR_VERDICT_OK, "", "'" TOOLS "'");
	else
		kr_doctor_add(d, "developer tools", KR_VERDICT_FAIL, "xcode-select --install",
			"neither Xcode nor the Command Line Tools are there: /usr/bin/git only leads to them");
}

static void
judge_machine(struct kr_doctor *d, const struct kr_macos_found *facts)
{
	if (facts->is_translated)
		kr_doctor_add(d, "machine", KR_VERDICT_WARN, "install kraft for arm64, with a Homebrew below /opt/homebrew",
			"Rosetta translates this kraft, and everything that it starts");
	else
		kr_doctor_add(d, "machine", KR_VERDICT_OK, "", "kraft is of this machine's kind");
}

void
kr_doctor_macos_judge(struct kr_doctor *d, const struct kr_macos_found *facts)
{
	judge_walls(d, facts);
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
try_sandbox(struct kr_doctor *d, struct kr_macos_found *facts)
{
	static const char profile[] = "(version 1)\n(allow default)\n";
	char file[] = "/tmp/kraft-doctor-XXXXXX";
	const char *const argv[] = { facts->sandbox_exec, "-f", file, "/usr/bin/true", NULL };
	kr_auto_fd int made = mkstemp(file);

	if (made < 0 || kr_write_all(made, profile, sizeof(profile) - 1, NULL) < 0)
		facts->said = "no profile could be written in /tmp";
	else
		facts->is_raised = ask(d->arena, argv, &facts->said) == 0;
	if (made >= 0)
		(void)unlink(file); /* a few bytes in /tmp else */
}

void
kr_doctor_macos(struct kr_doctor *d)
{
	static const char *const translated[] = { "/usr/sbin/sysctl", "-n", "sysctl.proc_translated", NULL };
	struct kr_macos_found facts = { .sandbox_exec = d->host.sandbox_exec, .said = "", .developer = "" };
	char chosen[KR_PATH_MAX];
	const char *line;
	struct stat st;

	facts.has_program = access(facts.sandbox_exec, X_OK) == 0;
	if (facts.has_program)
		try_sandbox(d, &facts);
	if (realpath("/var/db/xcode_select_link", chosen))
		facts.developer = kr_arena_dup(d->arena, chosen);
	facts.has_tools = stat(TOOLS "/usr/bin/git", &st) == 0;
	/* What a translated program starts is translated as well, where there is a choice. An Intel Mac has no such name. */
	facts.is_translated = ask(d->arena, translated, &line) == 0 && strcmp(line, "1") == 0;
	kr_doctor_macos_judge(d, &facts);
}
