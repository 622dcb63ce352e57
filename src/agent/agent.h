/*
 * How an agent CLI is launched: its harness, the policy and what it is to do go in; words, standard input, variables,
 * files and hosts come out, or a refusal. Pure, so that each harness's launch is a golden file (tests/golden/agents).
 *
 * What is refused, before anything runs (config_error):
 *     the harness is switched off, or allowed_harnesses lacks it        KR_E_REFUSED
 *     a proxy that it does not heed, under a network policy             KR_E_REFUSED (CHN-10)
 *     it asks kraft for each tool, or its hook would keep something of
 *     the policy, and in an open network nothing reaches kraft          KR_E_REFUSED (CHN-11)
 *     an option that it has no capability for, or a value that it
 *     does not take (model, effort, permission_mode, resume)            KR_E_CONFIG, by name
 *     a tool that nothing would keep from running:                      KR_E_REFUSED, by name
 *
 *     of the policy      holds by                                            else
 *     deny_tools         deny_tools as words; by hook or rules, but not      refused
 *                        for what is in unhooked_tools
 *     allowed_tools      restrict_tools; allowed_tools by hook or rules      refused; also when unhooked_tools has one
 *                                                                            that the list lacks
 *     ask_tools          ask_tools as words (with approval_channel); by      refused; one that is denied, or not
 *                        hook, but not for what is in unhooked_tools         allowed, is not asked for
 *     grants             approval_channel or a hook: a gate                  git-commit is then of no use; others are
 *                                                                            refused
 *
 * In an open network the words of MCP server and hook are left out, and a grant of git-commit is of no use.
 *
 * allowed_tools as words keeps nothing from running: such tools only run unasked, and kraft wants to be asked. A grant
 * needs Bash, so under a list of allowed tools that lacks it Bash is offered all the same, and asked for each time.
 */
#ifndef KR_AGENT_AGENT_H
#define KR_AGENT_AGENT_H

#include "config/harness.h"
#include "policy/layers.h"

struct kr_agent_want {
	const struct kr_harness *harness;
	const char *model, *effort, *permission_mode; /* NULL: the harness's default */
	const struct kr_policy *policy;               /* of its task, all layers */
	const char *context;                          /* what kraft tells beside the prompt; "" is allowed */
	const char *prompt;
	const char *resume;            /* the id of its conversation that goes on (letters, digits, '-', '_'); NULL: a new one */
	const char *settings_dir;      /* where the files below are seen inside, read-only */
	const char *hook_key, *hook_hash; /* of a hook that has to be trusted; NULL: not known yet, and `trust` is left out */
};

struct kr_agent_file {
	const char *name; /* below settings_dir */
	const char *text;
};

struct kr_agent_launch {
	struct kr_strs argv;              /* argv[0] is looked up as any command */
	const char *input;                /* its standard input; NULL: nothing to read */
	struct kr_env_literal *env;
	size_t env_count;
	struct kr_agent_file *files;      /* written anew for each launch, never where a worker can write (CFG-03) */
	size_t file_count;
};

int kr_agent_launch(struct kr_arena *arena, const struct kr_agent_want *want, struct kr_agent_launch *out,
	struct kr_error *err);

/*
 * What an agent's hook runs, of the hook's name. Codex runs the call when a hook is killed, and denies it at exit status 2
 * with words on standard error, so somebody stands behind it (CHN-08).
 */
#define KR_AGENT_HOOK_COMMAND \
	"/opt/kraft/bin/kraft admin permission-hook %s || (echo kraft does not answer >&2; exit 2)"

/* A version as a CLI prints it ("2.1.197 (Claude Code)", "codex-cli 0.171.0"): its first dotted number; NULL: there is
 * none. */
const char *kr_agent_version(struct kr_arena *arena, const char *printed, size_t n);
/* Compares dotted numbers, part by part: below 0, 0, above 0. */
int kr_agent_version_compare(const char *a, const char *b);

#endif
