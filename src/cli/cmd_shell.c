/* kraft shell: an interactive shell in the same walls, to look around as a worker would. */
#include <unistd.h>

#include "base/path.h"
#include "base/text.h"
#include "cli/cli.h"
#include "run/run.h"

enum { REPO, PHASE, ITEM, WORKSPACE, KEEP, WITH_CHANGES };
static const struct kr_option options[] = {
	[REPO] = { "repo", 'C', "PATH", "the checkout to work for, in place of the one you stand in" },
	[PHASE] = { "phase", 0, "PHASE", "which network lists hold: install or runtime (the usual one)" },
	[ITEM] = { "item", 0, "ID", "the worktree of this name" },
	[WORKSPACE] = { "workspace", 0, "NAME", "with the members of this workspace below the root" },
	[KEEP] = { "keep", 0, NULL, "leave the worktree at the commit it has" },
	[WITH_CHANGES] = { "with-changes", 0, NULL, "take uncommitted changes of the checkout along" },
	{ NULL },
};

/* The person's own shell where it is the system's; one from a home directory is not in the view as a rule. */
static const char *
choose_shell(struct kr_arena *arena)
{
	const char *shell = getenv("SHELL"), *clean = shell ? kr_path_clean(arena, shell) : NULL;

	if (clean && (kr_path_is_within(clean, "/usr") || kr_path_is_within(clean, "/bin")) &&
		access(clean, X_OK) == 0)
		return clean;
	return "/bin/sh";
}

static int
run(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	const char *const argv[] = { choose_shell(arena), "-i", NULL };
	const struct kr_run_want want = {
		.repo = parsed->value[REPO],
		.phase = parsed->value[PHASE],
		.item = parsed->value[ITEM],
		.workspace = parsed->value[WORKSPACE],
		.keep = parsed->value[KEEP] != NULL,
		.with_changes = parsed->value[WITH_CHANGES] != NULL,
		.purpose = "shell",
		.argv = argv,
	};

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		kr_fail(err, KR_E_USAGE, "'kraft shell' needs a terminal");
		return kr_hint(err, "'kraft run -- sh' reads commands from a pipe");
	}
	return kr_run(arena, &want, err);
}

const struct kr_command kr_cmd_shell = {
	.name = "shell",
	.usage = "[OPTIONS]",
	.summary = "open a shell in the repository's sandbox",
	.help = "The shell is $SHELL where that is one of the system's, else /bin/sh. Everything else is as for\n"
			"'kraft run'.",
	.options = options,
	.launches = true,
	.run = run,
};
