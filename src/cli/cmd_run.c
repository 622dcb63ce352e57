/* kraft run: one command in the sandbox of the repository that the person stands in. */
#include "cli/cli.h"
#include "run/run.h"

enum { REPO, PHASE, ITEM, WORKSPACE, KEEP, WITH_CHANGES, COMMIT };
static const struct kr_option options[] = {
	[REPO] = { "repo", 'C', "PATH", "the checkout to work for, in place of the one you stand in" },
	[PHASE] = { "phase", 0, "PHASE", "which network lists hold: install or runtime (the usual one)" },
	[ITEM] = { "item", 0, "ID", "a worktree of its own under this name, kept from run to run" },
	[WORKSPACE] = { "workspace", 0, "NAME", "with the members of this workspace below the root" },
	[KEEP] = { "keep", 0, NULL, "leave the worktree at the commit it has" },
	[WITH_CHANGES] = { "with-changes", 0, NULL, "take uncommitted changes of the checkout along" },
	[COMMIT] = { "commit", 0, "[=MESSAGE]",
		"commit what the command leaves uncommitted, on the item's branch" },
	{ NULL },
};

static int
run(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	const struct kr_run_want want = {
		.repo = parsed->value[REPO],
		.phase = parsed->value[PHASE],
		.item = parsed->value[ITEM],
		.workspace = parsed->value[WORKSPACE],
		.keep = parsed->value[KEEP] != NULL,
		.with_changes = parsed->value[WITH_CHANGES] != NULL,
		.commit = parsed->value[COMMIT],
		.purpose = "command",
		.argv = (const char *const *)parsed->words,
	};

	return kr_run(arena, &want, err);
}

const struct kr_command kr_cmd_run = {
	.name = "run",
	.usage = "[OPTIONS] -- COMMAND [ARG...]",
	.summary = "run one command in the repository's sandbox",
	.help =
		"The command runs in a worktree of the repository at your present commit, which is made on the\n"
		"first run and kept. It sees that worktree, the system's programs and what the repository's\n"
		"'expose' lists, and nothing else of yours; 'kraft explain -- COMMAND' tells exactly what.\n\n"
		"With a terminal on both ends it gets one of its own: Ctrl-C, Ctrl-Z and the window's size work.\n"
		"Without one, a second Ctrl-C within two seconds ends it. A pipe on stdin is read ahead of the\n"
		"command; give it </dev/null where something else is to read on.\n\n"
		"Exit status: the command's, or 128 and the signal that ended it; 125 when it was refused or could\n"
		"not be started; 126 when it is not executable, 127 when it was not found.",
	.options = options,
	.words_min = 1,
	.words_max = -1,
	.stops_at_word = true,
	.launches = true,
	.run = run,
};
