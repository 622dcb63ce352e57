/* kraft run: one command, or one agent, in the sandbox of the repository that the person stands in. */
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/cli.h"
#include "config/harness.h"
#include "os/host.h"
#include "run/run.h"

enum { PROMPT_BYTES = 4 << 20 };

enum {
	REPO,
	PHASE,
	ITEM,
	WORKSPACE,
	KEEP,
	WITH_CHANGES,
	COMMIT,
	HARNESS,
	MODEL,
	EFFORT,
	PERMISSION_MODE,
	RESUME
};
static const struct kr_option options[] = {
	[REPO] = { "repo", 'C', "PATH", "the checkout to work for, in place of the one you stand in" },
	[PHASE] = { "phase", 0, "PHASE", "which network lists hold: install or runtime (the usual one)" },
	[ITEM] = { "item", 0, "ID", "a worktree of its own under this name, kept from run to run" },
	[WORKSPACE] = { "workspace", 0, "NAME", "with the members of this workspace below the root" },
	[KEEP] = { "keep", 0, NULL, "leave the worktree at the commit it has" },
	[WITH_CHANGES] = { "with-changes", 0, NULL, "take uncommitted changes of the checkout along" },
	[COMMIT] = { "commit", 0, "[=MESSAGE]",
		"commit what the command leaves uncommitted, on the item's branch" },
	[HARNESS] = { "harness", 0, "ID", "run this agent with a prompt, in place of a command" },
	[MODEL] = { "model", 0, "MODEL", "the agent's model" },
	[EFFORT] = { "effort", 0, "EFFORT", "how hard the agent thinks" },
	[PERMISSION_MODE] = { "permission-mode", 0, "MODE", "the agent's permission mode" },
	[RESUME] = { "resume", 0, "[=CONVERSATION]", "go on with an agent's conversation; the item's last one" },
	{ NULL },
};

/* ---- an agent ---- */

/* The one word, or what stdin has when that is '-'. NULL with err. */
static const char *
read_prompt(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	kr_auto_buf struct kr_buf bytes = KR_BUF(PROMPT_BYTES);

	if (parsed->word_count > 1) {
		kr_fail(
			err, KR_E_USAGE, "an agent's prompt is one word: put it in quotes, or give it on stdin as '-'");
		return NULL;
	}
	if (strcmp(parsed->words[0], "-") != 0)
		return parsed->words[0];
	if (kr_read_all(STDIN_FILENO, &bytes, "the prompt on stdin", err) < 0)
		return NULL;
	if (bytes.len && !memchr(bytes.data, '\0', bytes.len))
		return kr_arena_dup(arena, bytes.data);
	kr_fail(err, KR_E_USAGE, "the prompt on stdin %s", bytes.len ? "has a zero byte in it" : "is empty");
	return NULL;
}

static int
run_agent(
	struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_run_want *want, struct kr_error *err)
{
	struct kr_harness harness;
	struct kr_run_agent agent = { .harness = &harness,
		.model = parsed->value[MODEL],
		.effort = parsed->value[EFFORT],
		.permission_mode = parsed->value[PERMISSION_MODE],
		.resume = parsed->value[RESUME],
		.is_rendered = isatty(STDOUT_FILENO),
		.is_coloured = kr_colour_on(STDOUT_FILENO) };
	struct kr_host host;

	if (want->phase && strcmp(want->phase, "runtime") != 0)
		return kr_fail(err, KR_E_USAGE, "an agent runs in the runtime phase");
	if (kr_host_gather_places(arena, &host, err) < 0 ||
		kr_harness_load(arena, &host.places, parsed->value[HARNESS], &harness, err) < 0 ||
		!(agent.prompt = read_prompt(arena, parsed, err)))
		return -1;
	want->purpose = "agent";
	want->agent = &agent;
	return kr_run(arena, want, err);
}

static int
refuse_agents_options(const struct kr_parsed *parsed, struct kr_error *err)
{
	for (int i = MODEL; i <= RESUME; i++)
		if (parsed->value[i])
			return kr_fail(err, KR_E_USAGE, "--%s is an agent's: it goes with --harness", options[i].name);
	return 0;
}

/* ---- the command ---- */

static int
run(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct kr_run_want want = {
		.repo = parsed->value[REPO],
		.phase = parsed->value[PHASE],
		.item = parsed->value[ITEM],
		.workspace = parsed->value[WORKSPACE],
		.keep = parsed->value[KEEP] != NULL,
		.with_changes = parsed->value[WITH_CHANGES] != NULL,
		.commit = parsed->value[COMMIT],
		.purpose = "command",
	};

	if (parsed->value[HARNESS])
		return run_agent(arena, parsed, &want, err);
	if (refuse_agents_options(parsed, err) < 0)
		return -1;
	want.argv = (const char *const *)parsed->words;
	return kr_run(arena, &want, err);
}

const struct kr_command kr_cmd_run = {
	.name = "run",
	.usage = "[OPTIONS] -- COMMAND [ARG...], or [OPTIONS] --harness ID PROMPT",
	.summary = "run one command, or one agent, in the repository's sandbox",
	.help =
		"The command runs in a worktree of the repository at your present commit, which is made on the\n"
		"first run and kept. It sees that worktree, the system's programs and what the repository's\n"
		"'expose' lists, and nothing else of yours; 'kraft explain -- COMMAND' tells exactly what.\n\n"
		"With a terminal on both ends it gets one of its own: Ctrl-C, Ctrl-Z and the window's size work.\n"
		"Without one, a second Ctrl-C within two seconds ends it. A pipe on stdin is read ahead of the\n"
		"command; give it </dev/null where something else is to read on.\n\n"
		"With --harness an agent's CLI runs in the command's place ('kraft admin harnesses' lists them): by\n"
		"itself, without a terminal, under the policy of policy.yaml and the repository. On a terminal what "
		"it\n"
		"does is shown in words; elsewhere its lines are passed on as they are. What it leaves uncommitted\n"
		"stays in the worktree unless --commit is there too.\n\n"
		"Exit status: the command's, or 128 and the signal that ended it; 125 when it was refused or could\n"
		"not be started; 126 when it is not executable, 127 when it was not found.",
	.options = options,
	.words_min = 1,
	.words_max = -1,
	.stops_at_word = true,
	.launches = true,
	.run = run,
};
