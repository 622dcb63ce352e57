/*
 * One table of every key, and the reader that walks along it.
 *
 * A key that is missing here is unknown everywhere: the reader, its "did you mean", and the list of keys in a
 * hint all come from these rows. A key that a sandbox kind does not take is known but refused, which is
 * another message.
 */
#include "config/schema.h"

#include <stdarg.h>

#include "base/text.h"
#include "config/access.h"
#include "config/harness.h"
#include "config/notify.h"
#include "config/policy_file.h"

enum { NEAR = 2, QUOTE_BYTES = 120 };

#define OS (1u << KR_SANDBOX_OS)
#define DOCKER (1u << KR_SANDBOX_DOCKER)
#define KIT (1u << KR_SANDBOX_KIT)
#define REPO(member) offsetof(struct kr_repo, member)
#define SANDBOX(member) offsetof(struct kr_sandbox, member)
#define CREDENTIAL(member) offsetof(struct kr_credential, member)
#define INJECT(member) offsetof(struct kr_inject, member)
#define HOSTS(member) offsetof(struct kr_host_list, member)
#define SCOPE(member) offsetof(struct kr_test_scope, member)
#define WORKSPACE(member) offsetof(struct kr_workspace, member)
#define MEMBER(member) offsetof(struct kr_member, member)
#define HOST(member) offsetof(struct kr_policy_file, member)
#define LAYER(member) offsetof(struct kr_policy_layer, member)
#define CHAIN(member) offsetof(struct kr_chain, member)
#define NODE(member) offsetof(struct kr_node, member)
#define STEP(member) offsetof(struct kr_chain_step, member)
#define TASK(member) offsetof(struct kr_task, member)
#define NOTIFY(member) offsetof(struct kr_notify, member)
#define ACCESS(member) offsetof(struct kr_access, member)
#define HARNESS(member) offsetof(struct kr_harness, member)
#define CAP(member) offsetof(struct kr_cap, member)
#define OF(capability) (1u << KR_CAP_##capability)
#define EXEC (1u << KR_NODE_EXEC)
#define GATE (1u << KR_NODE_GATE)
#define COMMAND (1u << KR_TASK_COMMAND)
#define AGENT (1u << KR_TASK_AGENT)
#define BUILTIN (1u << KR_TASK_BUILTIN)
#define NONE KR_NO_FIELD

/* A bound in an array of them that begins at `bounds`. */
#define BOUND(in, bounds, bound, name, type, help)                                                         \
	{                                                                                                      \
		KR_IN_##in, name, type, "null", help, 0, true, (bounds) + KR_BOUND_##bound * sizeof(double), NULL, \
			kr_bound_read                                                                                  \
	}
#define BOUND_KEYS(in, bounds)                                                                         \
	BOUND(in, bounds, ATTEMPTS, "max_attempts", KR_KEY_INTEGER, "attempts of a task"),                 \
		BOUND(in, bounds, TIMEOUT, "timeout_minutes", KR_KEY_NUMBER, "time of one session"),           \
		BOUND(in, bounds, TIME_CAP, "time_cap_minutes", KR_KEY_NUMBER, "time of a task"),              \
		BOUND(in, bounds, TOTAL_TIME_CAP, "total_time_cap_minutes", KR_KEY_NUMBER, "time of an item"), \
		BOUND(in, bounds, TOKENS, "token_budget", KR_KEY_INTEGER, "tokens of an item"),                \
		BOUND(in, bounds, BUDGET, "budget_usd", KR_KEY_NUMBER, "money of an item")
/* The keys of a layer that lies at `layer` in the section's struct. */
#define LAYER_KEYS(in, layer)                                                                                \
	{ KR_IN_##in, "allowed_tools", KR_KEY_STRINGS, "null", "the only tools that agents may use", 0, true,    \
		layer, kr_fault_tool, kr_allowed_read },                                                             \
		{ KR_IN_##in, "deny_tools", KR_KEY_STRINGS, "[]", "tools that agents may not use", 0, false,         \
			(layer) + LAYER(deny_tools), kr_fault_tool, NULL },                                              \
		{ KR_IN_##in, "ask_tools", KR_KEY_STRINGS, "[]", "tools for which a person is asked each time", 0,   \
			false, (layer) + LAYER(ask_tools), kr_fault_tool, NULL },                                        \
		{ KR_IN_##in, "grants", KR_KEY_STRINGS, "[]", "what agents may do with git", 0, false, layer,        \
			kr_fault_grant, kr_grants_read },                                                                \
		{ KR_IN_##in, "sandbox", KR_KEY_SANDBOX, "null", "the walls around its workers", 0, true, layer,     \
			NULL, kr_layer_sandbox_read },                                                                   \
		{ KR_IN_##in, "allowed_harnesses", KR_KEY_STRINGS, "null", "the only harnesses that may run", 0,     \
			true, layer, kr_fault_empty, kr_allowed_read },                                                  \
		BOUND_KEYS(in, (layer) + LAYER(bounds)),                                                             \
	{                                                                                                        \
		KR_IN_##in, "escalation_harness", KR_KEY_STRING, "item", "who helps a stopped item: claude or item", \
			0, false, (layer) + LAYER(escalation_harness), kr_fault_escalation, NULL                         \
	}
#define POLICY_KEY(in, field)                                                                          \
	{                                                                                                  \
		KR_IN_##in, "policy", KR_KEY_MAPPING, "null", "its layer of the policy", 0, true, field, NULL, \
			kr_policy_read                                                                             \
	}
#define SKIPPABLE_KEY(in, field)                                                                             \
	{                                                                                                        \
		KR_IN_##in, "skippable", KR_KEY_BOOL, "true", "whether a person may skip it", 0, false, field, NULL, \
			NULL                                                                                             \
	}
#define TASKS_KEYS(in, kinds)                                                                             \
	{ KR_IN_##in, "tasks", KR_KEY_LIST, "null", "what is done, all together", kinds, false, NONE, NULL,   \
		kr_later_read },                                                                                  \
	{                                                                                                     \
		KR_IN_##in, "steps", KR_KEY_LIST, "null", "what is done, one step after the other", kinds, false, \
			NONE, NULL, kr_later_read                                                                     \
	}
#define CAPABILITY(name, fallback, help)                                                                   \
	{                                                                                                      \
		KR_IN_CAPABILITIES, name, KR_KEY_MAPPING, fallback, help, 0, false, (size_t)0, NULL, kr_capability_read \
	}
#define UNBUILT(in, name)                                                                                 \
	{                                                                                                     \
		KR_IN_##in, name, KR_KEY_UNBUILT, "null", "not built into this kraft", 0, false, NONE, NULL, NULL \
	}

/* section, name, type, default, help, kinds, nullable, field, fault, read */
const struct kr_key kr_keys[] = {
	{ KR_IN_TOP, "repos", KR_KEY_LIST, "[]", "the connected repositories", 0, true, 0, NULL,
		kr_repo_list_read },
	{ KR_IN_TOP, "workspaces", KR_KEY_MAPPING, "{}", "repositories that are worked on together, by name", 0,
		true, 0, NULL, kr_workspaces_read },

	{ KR_IN_REPO, "path", KR_KEY_STRING, "", "the checkout, an absolute path", 0, false, REPO(path), NULL,
		kr_path_read },
	{ KR_IN_REPO, "name", KR_KEY_STRING, "null", "the shown name; else the directory's", 0, true, REPO(name),
		kr_fault_empty, NULL },
	{ KR_IN_REPO, "id", KR_KEY_STRING, "null", "a unique id, for workspaces", 0, true, REPO(id), kr_fault_id,
		NULL },
	{ KR_IN_REPO, "enabled", KR_KEY_BOOL, "true", "whether work is taken in by itself", 0, false,
		REPO(enabled), NULL, NULL },
	{ KR_IN_REPO, "managed", KR_KEY_BOOL, "true", "whether saved settings own the entry", 0, false,
		REPO(managed), NULL, NULL },
	{ KR_IN_REPO, "forge", KR_KEY_STRING, "null", "who hosts its merge requests: github or gitlab", 0, true,
		REPO(forge), kr_fault_forge, NULL },
	{ KR_IN_REPO, "project", KR_KEY_STRING, "null", "its project path on the forge", 0, true, REPO(project),
		kr_fault_empty, NULL },
	{ KR_IN_REPO, "default_chain", KR_KEY_STRING, "null", "the chain of its work items", 0, true,
		REPO(default_chain), kr_fault_empty, NULL },
	{ KR_IN_REPO, "default_chain_template", KR_KEY_STRING, "null", "the older name of default_chain", 0, true,
		REPO(default_chain), kr_fault_empty, kr_old_chain_read },
	{ KR_IN_REPO, "models", KR_KEY_MAPPING, "{}", "a model by harness profile", 0, false, NONE, NULL,
		kr_models_read },
	{ KR_IN_REPO, "setup_command", KR_KEY_STRING, "null",
		"makes a new worktree ready; \"\" when there is nothing to do", 0, true, REPO(setup_command), NULL,
		NULL },
	{ KR_IN_REPO, "test_command", KR_KEY_STRING, "null", "runs the tests; \"\" when there are none", 0, true,
		REPO(test_command), NULL, NULL },
	{ KR_IN_REPO, "test_scopes", KR_KEY_LIST, "null", "test commands by changed paths", 0, true, NONE, NULL,
		kr_scopes_read },
	{ KR_IN_REPO, "areas", KR_KEY_MAPPING, "{}", "setup and test commands by area", 0, false, NONE, NULL,
		kr_areas_read },
	{ KR_IN_REPO, "intent_dir", KR_KEY_STRING, "null", "a directory inside the repository", 0, true,
		REPO(intent_dir), kr_fault_inside, NULL },
	{ KR_IN_REPO, "local_files", KR_KEY_STRINGS, "[]", "untracked files that each worktree gets a copy of", 0,
		false, REPO(local_files), kr_fault_local_file, NULL },
	{ KR_IN_REPO, "env", KR_KEY_MAPPING, "{}", "variables of every worker, by name", 0, false, NONE, NULL,
		kr_env_read },
	{ KR_IN_REPO, "env_passthrough", KR_KEY_STRINGS, "[]", "names of our own variables that workers get too",
		0, false, REPO(env_passthrough), kr_fault_env_name, NULL },
	{ KR_IN_REPO, "policy", KR_KEY_MAPPING, "null", "the repository's layer of the policy", 0, true,
		REPO(policy), NULL, kr_policy_read },
	{ KR_IN_REPO, "deny_tools", KR_KEY_STRINGS, "[]", "tools that agents may not use", 0, false,
		REPO(policy.deny_tools), kr_fault_tool, NULL },
	{ KR_IN_REPO, "steering", KR_KEY_STRINGS, "[]", "names of steering documents", 0, false, REPO(steering),
		kr_fault_empty, NULL },
	{ KR_IN_REPO, "sandbox", KR_KEY_SANDBOX, "null", "the walls around its workers", 0, true, REPO(policy),
		NULL, kr_layer_sandbox_read },
	{ KR_IN_REPO, "automated_review", KR_KEY_MAPPING, "null", "the bot or the check that reviews", 0, true,
		NONE, NULL, kr_review_read },
	{ KR_IN_REPO, "ci_checks", KR_KEY_BOOL, "true", "whether the forge's checks count", 0, false,
		REPO(ci_checks), NULL, NULL },

	{ KR_IN_SCOPE, "paths", KR_KEY_STRINGS, "", "the paths that the scope covers", 0, false, SCOPE(paths),
		kr_fault_empty, NULL },
	{ KR_IN_SCOPE, "command", KR_KEY_STRING, "", "the test command of those paths", 0, false, SCOPE(command),
		kr_fault_empty, NULL },

	{ KR_IN_REVIEW, "bot", KR_KEY_STRING, "unset", "the reviewing bot's login", 0, false, NONE,
		kr_fault_empty, NULL },
	{ KR_IN_REVIEW, "check", KR_KEY_STRING, "unset", "the reviewing check's name", 0, false, NONE,
		kr_fault_empty, NULL },

	LAYER_KEYS(POLICY, (size_t)0),

	{ KR_IN_SANDBOX, "kind", KR_KEY_STRING, "", "os, docker or kit", 0, false, NONE, NULL, NULL },
	{ KR_IN_SANDBOX, "network", KR_KEY_MAPPING, "{}", "the hosts that each phase may reach", OS | DOCKER,
		false, SANDBOX(network), NULL, kr_network_read },
	{ KR_IN_SANDBOX, "expose", KR_KEY_STRINGS, "[]", "host paths that workers may read", OS, false, NONE,
		NULL, kr_expose_read },
	{ KR_IN_SANDBOX, "image", KR_KEY_STRING, "", "the container's image", DOCKER, false, SANDBOX(image),
		kr_fault_empty, NULL },
	{ KR_IN_SANDBOX, "resources", KR_KEY_MAPPING, "{}", "the container's limits", DOCKER, false,
		SANDBOX(resources), NULL, kr_resources_read },
	{ KR_IN_SANDBOX, "credentials", KR_KEY_LIST, "[]", "secrets that workers never hold", DOCKER, false, NONE,
		NULL, kr_credentials_read },
	{ KR_IN_SANDBOX, "unrestricted_network", KR_KEY_BOOL, "false", "runs workers on an open network", DOCKER,
		false, SANDBOX(unrestricted_network), NULL, NULL },
	{ KR_IN_SANDBOX, "runtime", KR_KEY_STRING, "", "what runs the kit: docker", KIT, false, SANDBOX(runtime),
		kr_fault_kit_runtime, NULL },
	{ KR_IN_SANDBOX, "kit", KR_KEY_STRING, "", "the kit, NAME@sha256:DIGEST", KIT, false, SANDBOX(kit),
		kr_fault_kit, NULL },

	{ KR_IN_NETWORK, "install", KR_KEY_MAPPING, "{}", "hosts of the setup command", 0, false, NONE, NULL,
		kr_phase_read },
	{ KR_IN_NETWORK, "runtime", KR_KEY_MAPPING, "{}", "hosts of every session", 0, false, NONE, NULL,
		kr_phase_read },

	{ KR_IN_PHASE, "allow", KR_KEY_STRINGS, "[]", "hosts that may be reached", 0, false, HOSTS(allow), NULL,
		kr_hosts_read },
	{ KR_IN_PHASE, "deny", KR_KEY_STRINGS, "[]", "hosts that may not, whatever allow says", 0, false,
		HOSTS(deny), NULL, kr_hosts_read },

	{ KR_IN_RESOURCES, "cpu", KR_KEY_NUMBER, "no limit", "processors, at least 0.01", 0, false, NONE, NULL,
		kr_cpu_read },
	{ KR_IN_RESOURCES, "memory", KR_KEY_SIZE, "no limit", "a whole number of bytes, or with b, k, m or g", 0,
		false, NONE, NULL, kr_memory_read },
	{ KR_IN_RESOURCES, "pids", KR_KEY_INTEGER, "4096", "processes, at least 1", 0, false, NONE, NULL,
		kr_pids_read },

	{ KR_IN_CREDENTIAL, "env", KR_KEY_STRING, "", "the variable that the worker sees", 0, false,
		CREDENTIAL(env), kr_fault_env_name, NULL },
	{ KR_IN_CREDENTIAL, "service", KR_KEY_STRING, "null", "a label", 0, true, CREDENTIAL(service),
		kr_fault_empty, NULL },
	{ KR_IN_CREDENTIAL, "sentinel", KR_KEY_STRING, "null", "how what the worker sees in its place begins", 0,
		true, CREDENTIAL(sentinel), kr_fault_sentinel, NULL },
	{ KR_IN_CREDENTIAL, "inject", KR_KEY_LIST, "the harness's own",
		"where the secret goes: domain, header, format", 0, false, NONE, NULL, kr_inject_read },
	{ KR_IN_CREDENTIAL, "phase", KR_KEY_STRINGS, "[install, runtime]", "the phases that it is for", 0, false,
		NONE, NULL, kr_phases_read },
	{ KR_IN_CREDENTIAL, "source", KR_KEY_STRING, "the same as env", "our own variable that holds the secret",
		0, false, CREDENTIAL(source), kr_fault_env_name, NULL },

	{ KR_IN_INJECT, "domain", KR_KEY_STRING, "", "one exact host, without a port", 0, false, INJECT(domain),
		kr_fault_domain, NULL },
	{ KR_IN_INJECT, "header", KR_KEY_STRING, "", "the header that carries the secret", 0, false,
		INJECT(header), kr_fault_header, NULL },
	{ KR_IN_INJECT, "format", KR_KEY_STRING, "", "the header's value, with one %s for the secret", 0, false,
		INJECT(format), kr_fault_format, NULL },

	{ KR_IN_WORKSPACE, "root", KR_KEY_STRING, "", "the id of the repository at the root", 0, false,
		WORKSPACE(root_id), kr_fault_id, NULL },
	{ KR_IN_WORKSPACE, "root_pointer_default", KR_KEY_STRING, "ignore",
		"what happens to the root's pointers: ignore or bump", 0, false, NONE, kr_fault_root_pointer,
		kr_root_pointer_read },
	{ KR_IN_WORKSPACE, "members", KR_KEY_MAPPING, "{}", "the other repositories, by name", 0, false, NONE,
		NULL, kr_members_read },

	{ KR_IN_MEMBER, "repository", KR_KEY_STRING, "", "the id of the member's repository", 0, false,
		MEMBER(repository), kr_fault_id, NULL },
	{ KR_IN_MEMBER, "path", KR_KEY_STRING, "", "where it stands below the root", 0, false, MEMBER(path),
		kr_fault_member, NULL },

	{ KR_IN_HOST, "default", KR_KEY_MAPPING, "", "what holds where no layer says: attempts, wall_clock_s", 0,
		false, (size_t)0, NULL, kr_default_read },
	{ KR_IN_HOST, "defaults", KR_KEY_MAPPING, "{}", "the host's layer of the policy", 0, true, (size_t)0,
		NULL, kr_defaults_read },
	{ KR_IN_HOST, "maxima", KR_KEY_MAPPING, "{}", "what no bound may be above, by level", 0, true, (size_t)0,
		NULL, kr_maxima_read },
	{ KR_IN_HOST, "max_concurrent", KR_KEY_INTEGER, "3", "sessions at a time", 0, false, HOST(max_concurrent),
		NULL, kr_count_read },
	{ KR_IN_HOST, "auto_escalate_stuck", KR_KEY_BOOL, "true", "whether a stuck item is helped by itself", 0,
		false, HOST(auto_escalate_stuck), NULL, NULL },
	{ KR_IN_HOST, "auto_escalate_stuck_cap", KR_KEY_INTEGER, "3", "how many times", 0, false,
		HOST(auto_escalate_stuck_cap), NULL, kr_count_or_none_read },
	{ KR_IN_HOST, "auto_escalate_delay_s", KR_KEY_INTEGER, "0", "seconds before that", 0, false,
		HOST(auto_escalate_delay_s), NULL, kr_count_or_none_read },
	{ KR_IN_HOST, "auto_review_attempts", KR_KEY_INTEGER, "1", "attempts of an automated review", 0, false,
		HOST(auto_review_attempts), NULL, kr_count_or_none_read },
	{ KR_IN_HOST, "rate_limit_retries", KR_KEY_INTEGER, "5", "retries when a provider asks to wait", 0, false,
		HOST(rate_limit_retries), NULL, kr_count_or_none_read },
	{ KR_IN_HOST, "forge_cli_timeout_s", KR_KEY_INTEGER, "120", "seconds of a call of the forge's program", 0,
		false, NONE, NULL, kr_count_read },
	{ KR_IN_HOST, "forge_poll_s", KR_KEY_INTEGER, "300",
		"seconds between two looks at the forge, at least 30", 0, false, NONE, NULL, kr_poll_read },
	{ KR_IN_HOST, "findings", KR_KEY_MAPPING, "{}", "which findings open a fix loop", 0, true, (size_t)0,
		NULL, kr_findings_read },
	{ KR_IN_HOST, "budget", KR_KEY_MAPPING, "{}", "US dollars: of an item, of a day", 0, true, NONE, NULL,
		kr_budget_read },
	{ KR_IN_HOST, "archive", KR_KEY_MAPPING, "{}", "when ended items are put away", 0, true, (size_t)0, NULL,
		kr_archive_read },
	UNBUILT(HOST, "loops"),

	{ KR_IN_DEFAULT, "attempts", KR_KEY_INTEGER, "", "attempts of a fix loop, 1 to 100", 0, false,
		HOST(attempts), NULL, kr_attempts_read },
	{ KR_IN_DEFAULT, "wall_clock_s", KR_KEY_INTEGER, "", "seconds of one session", 0, false,
		HOST(wall_clock_s), NULL, kr_count_read },

	LAYER_KEYS(DEFAULTS, HOST(layer)),
	{ KR_IN_DEFAULTS, "escalation_grants", KR_KEY_STRINGS, "[git-commit, git-rebase, git-push]",
		"what an escalation turn may do with git too", 0, false, HOST(escalation_grants), kr_fault_grant,
		kr_grant_bits_read },

	{ KR_IN_FINDINGS, "loop_severities", KR_KEY_STRINGS, "[critical, important]",
		"the severities that open a fix loop", 0, false, HOST(loop_severities), kr_fault_severity,
		kr_severities_read },

	{ KR_IN_BUDGET, "work_item_usd", KR_KEY_NUMBER, "null", "money of an item", 0, true, NONE, NULL,
		kr_bound_read },
	{ KR_IN_BUDGET, "daily_usd", KR_KEY_NUMBER, "null", "money of a day", 0, true, NONE, NULL,
		kr_bound_read },

	{ KR_IN_ARCHIVE, "after_days", KR_KEY_INTEGER, "null", "days after which an ended item is put away", 0,
		true, HOST(archive_after_days), NULL, kr_count_or_none_read },

	{ KR_IN_MAXIMA, "work_item", KR_KEY_MAPPING, "{}", "of a work item", 0, true, HOST(maxima), NULL,
		kr_maximum_read },
	{ KR_IN_MAXIMA, "nodes", KR_KEY_MAPPING, "{}", "of each node", 0, true, HOST(node_maxima), NULL,
		kr_maximum_read },
	{ KR_IN_MAXIMA, "steps", KR_KEY_MAPPING, "{}", "of each step", 0, true, HOST(step_maxima), NULL,
		kr_maximum_read },
	{ KR_IN_MAXIMA, "tasks", KR_KEY_MAPPING, "{}", "of each task", 0, true, HOST(task_maxima), NULL,
		kr_maximum_read },

	BOUND_KEYS(MAXIMUM, (size_t)0),

	{ KR_IN_CHAIN, "id", KR_KEY_STRING, "", "the file's name without .yaml", 0, false, CHAIN(id),
		kr_fault_chain_id, NULL },
	{ KR_IN_CHAIN, "description", KR_KEY_STRING, "null", "one line for people", 0, true, CHAIN(description),
		NULL, NULL },
	{ KR_IN_CHAIN, "nodes", KR_KEY_LIST, "", "what is done, in order", 0, false, NONE, NULL, kr_later_read },
	POLICY_KEY(CHAIN, CHAIN(policy)),

	{ KR_IN_NODE, "id", KR_KEY_STRING, "", "small letters, digits, _ and -; a letter first", 0, false,
		NODE(id), kr_fault_chain_id, NULL },
	{ KR_IN_NODE, "kind", KR_KEY_STRING, "", "exec or gate", 0, false, NONE, NULL, NULL },
	TASKS_KEYS(NODE, EXEC),
	{ KR_IN_NODE, "on_failure", KR_KEY_MAPPING, "null", "tasks that run once when the node fails", EXEC, true,
		NONE, NULL, kr_later_read },
	{ KR_IN_NODE, "fix_loop", KR_KEY_MAPPING, "null", "tasks that repair, and how many times", EXEC, true,
		NONE, NULL, kr_later_read },
	{ KR_IN_NODE, "message", KR_KEY_STRING, "null", "what the person who decides is told", GATE, true,
		NODE(message), kr_fault_empty, NULL },
	{ KR_IN_NODE, "reject_to", KR_KEY_STRING, "the nearest exec node before",
		"the exec node that a rejection goes back to", GATE, false, NONE, kr_fault_chain_id, NULL },
	POLICY_KEY(NODE, NODE(policy)),
	SKIPPABLE_KEY(NODE, NODE(is_skippable)),
	UNBUILT(NODE, "extends"),
	UNBUILT(NODE, "escalation"),
	UNBUILT(NODE, "on_base_changed"),
	UNBUILT(NODE, "read_only"),
	UNBUILT(NODE, "artifact"),
	UNBUILT(NODE, "artifact_required"),
	UNBUILT(NODE, "timeout"),
	UNBUILT(NODE, "auto_review"),
	UNBUILT(NODE, "chain_finalized"),

	{ KR_IN_STEP, "id", KR_KEY_STRING, "", "small letters, digits, _ and -; a letter first", 0, false,
		STEP(id), kr_fault_step_id, NULL },
	{ KR_IN_STEP, "tasks", KR_KEY_LIST, "", "what is done, all together", 0, false, NONE, NULL,
		kr_later_read },
	POLICY_KEY(STEP, STEP(policy)),
	SKIPPABLE_KEY(STEP, STEP(is_skippable)),
	UNBUILT(STEP, "extends"),

	{ KR_IN_TASK, "id", KR_KEY_STRING, "", "small letters, digits, _ and -; a letter first", 0, false,
		TASK(id), kr_fault_chain_id, NULL },
	{ KR_IN_TASK, "kind", KR_KEY_STRING, "", "subprocess, agent or builtin", 0, false, NONE, NULL, NULL },
	{ KR_IN_TASK, "command", KR_KEY_STRING, "", "the command and its arguments; no shell reads it", COMMAND,
		false, TASK(command), kr_fault_empty, NULL },
	{ KR_IN_TASK, "harness", KR_KEY_STRING, "", "the agent that is started", AGENT, false, TASK(harness),
		kr_fault_chain_id, NULL },
	{ KR_IN_TASK, "prompt", KR_KEY_STRING, "", "what it is told", AGENT, false, TASK(prompt), kr_fault_empty,
		NULL },
	{ KR_IN_TASK, "model", KR_KEY_STRING, "null", "the harness's model", AGENT, true, TASK(model),
		kr_fault_empty, NULL },
	{ KR_IN_TASK, "effort", KR_KEY_STRING, "null", "how hard it thinks", AGENT, true, TASK(effort),
		kr_fault_empty, NULL },
	{ KR_IN_TASK, "builtin", KR_KEY_STRING, "", "what kraft does itself: tests", BUILTIN, false,
		TASK(builtin), NULL, kr_builtin_read },
	POLICY_KEY(TASK, TASK(policy)),
	SKIPPABLE_KEY(TASK, TASK(is_skippable)),
	UNBUILT(TASK, "extends"),
	UNBUILT(TASK, "scope"),
	UNBUILT(TASK, "on_failure"),
	UNBUILT(TASK, "skill"),
	UNBUILT(TASK, "produces"),
	UNBUILT(TASK, "profile"),
	UNBUILT(TASK, "fallback"),
	UNBUILT(TASK, "inputs"),

	TASKS_KEYS(FIX_LOOP, 0),
	{ KR_IN_FIX_LOOP, "max_attempts", KR_KEY_INTEGER, "the policy's", "how many times, 1 to 100", 0, false,
		NODE(fix_attempts), NULL, kr_attempts_read },
	UNBUILT(FIX_LOOP, "judge"),

	TASKS_KEYS(RECOVERY, 0),

	{ KR_IN_NOTIFY, "command", KR_KEY_STRINGS, "null", "a program and its arguments; no shell reads it", 0,
		true, NOTIFY(command), NULL, kr_notify_command_read },
	{ KR_IN_NOTIFY, "webhook", KR_KEY_STRING, "null", "where it is posted: an http or https URL", 0, true,
		NOTIFY(webhook), kr_fault_webhook, NULL },
	{ KR_IN_NOTIFY, "on", KR_KEY_STRINGS, "[gate, stop]", "of what: gate, stop, complete", 0, false, NOTIFY(on),
		kr_fault_occasion, kr_notify_on_read },

	{ KR_IN_ACCESS, "bind", KR_KEY_STRING, "127.0.0.1", "the address that is listened on", 0, false, ACCESS(bind),
		kr_fault_bind, NULL },
	{ KR_IN_ACCESS, "port", KR_KEY_INTEGER, "8765", "its port; 0: any that is free", 0, false, ACCESS(port), NULL,
		kr_port_read },
	{ KR_IN_ACCESS, "password_hash", KR_KEY_STRING, "null", "written by 'kraft admin password'", 0, true,
		ACCESS(password_hash), kr_fault_password_hash, NULL },
	{ KR_IN_ACCESS, "session_expiry_days", KR_KEY_INTEGER, "7", "how long a login by password holds", 0, false,
		ACCESS(session_expiry_days), NULL, kr_expiry_read },
	{ KR_IN_ACCESS, "allowed_hosts", KR_KEY_STRINGS, "[]", "names that a client may call the server by", 0, false,
		ACCESS(allowed_hosts), kr_fault_allowed_host, NULL },

	{ KR_IN_CONTAINERS, "cli", KR_KEY_STRING, "null", "docker, podman or an absolute path; else what is on PATH", 0,
		true, (size_t)0, kr_fault_container_cli, kr_container_cli_read },
	{ KR_IN_CONTAINERS, "selinux", KR_KEY_STRING, "auto", "what is done where SELinux enforces: relabel or disable", 0,
		false, (size_t)0, kr_fault_selinux, kr_selinux_read },
	{ KR_IN_CONTAINERS, "ca_bundle", KR_KEY_STRING, "null", "a CA that every container trusts as well", 0, true,
		(size_t)0, kr_fault_absolute, kr_ca_bundle_read },
	{ KR_IN_CONTAINERS, "relay_image", KR_KEY_STRING, "null", "without effect: there is no relay container", 0, true,
		(size_t)0, kr_fault_empty, kr_relay_image_read },
	{ KR_IN_CONTAINERS, "credentials", KR_KEY_MAPPING, "{}", "for kits: the variable of each service", 0, false,
		(size_t)0, NULL, kr_kit_bindings_read },

	{ KR_IN_HARNESS, "id", KR_KEY_STRING, "", "the file's name without .yaml", 0, false, HARNESS(id),
		kr_fault_chain_id, NULL },
	{ KR_IN_HARNESS, "kind", KR_KEY_STRING, "", "what it starts: cli", 0, false, NONE, kr_fault_cli, NULL },
	{ KR_IN_HARNESS, "command", KR_KEY_STRING, "", "the program", 0, false, HARNESS(command), NULL,
		kr_harness_command_read },
	{ KR_IN_HARNESS, "subcommand", KR_KEY_STRINGS, "[]", "words right behind the program", 0, false,
		HARNESS(subcommand), NULL, NULL },
	{ KR_IN_HARNESS, "version", KR_KEY_STRINGS, "[--version]", "words that make it print its version", 0, false,
		HARNESS(version), NULL, NULL },
	{ KR_IN_HARNESS, "min_version", KR_KEY_STRING, "null", "an older one is refused", 0, true,
		HARNESS(min_version), kr_fault_version, NULL },
	{ KR_IN_HARNESS, "capabilities", KR_KEY_MAPPING, "", "what it can be told, in the order of its words", 0,
		false, (size_t)0, NULL, kr_capabilities_read },
	{ KR_IN_HARNESS, "network", KR_KEY_MAPPING, "{}", "the hosts that it needs", 0, false, (size_t)0, NULL,
		kr_requires_read },
	{ KR_IN_HARNESS, "login", KR_KEY_STRINGS, "[]", "variables, of which one has to be there", 0, false,
		HARNESS(login), kr_fault_env_name, NULL },
	{ KR_IN_HARNESS, "env", KR_KEY_MAPPING, "{}", "variables that are set inside, by name", 0, false, (size_t)0,
		NULL, kr_harness_env_read },
	{ KR_IN_HARNESS, "tool_names", KR_KEY_MAPPING, "{}", "the policy's names of its tools, by its own name", 0,
		false, (size_t)0, NULL, kr_tool_names_read },
	{ KR_IN_HARNESS, "unhooked_tools", KR_KEY_STRINGS, "[]", "tools that neither hook nor rules reach", 0, false,
		HARNESS(unhooked), kr_fault_tool, NULL },
	{ KR_IN_HARNESS, "permission_hook", KR_KEY_STRING, "null", "whose form its hook has: codex or cursor", 0,
		true, HARNESS(hook), kr_fault_hook, NULL },
	{ KR_IN_HARNESS, "permission_rules", KR_KEY_STRING, "null", "whose form its rules have: amp or opencode", 0,
		true, HARNESS(rules), kr_fault_rules, NULL },
	{ KR_IN_HARNESS, "proxy_aware", KR_KEY_BOOL, "true", "whether it heeds a proxy", 0, false,
		HARNESS(proxy_aware), NULL, NULL },
	{ KR_IN_HARNESS, "container_permission_mode", KR_KEY_STRING, "null",
		"the mode inside of walls, in place of 'always'", 0, true, HARNESS(container_permission_mode),
		kr_fault_empty, NULL },
	{ KR_IN_HARNESS, "config_dir", KR_KEY_MAPPING, "null", "where its configuration and state lie", 0, true,
		(size_t)0, NULL, kr_config_dir_read },
	{ KR_IN_HARNESS, "credentials", KR_KEY_LIST, "[]", "where its secrets go when they stay outside", 0, false,
		(size_t)0, NULL, kr_harness_credentials_read },

	{ KR_IN_HARNESS_CREDENTIAL, "env", KR_KEY_STRING, "", "the variable that it reads", 0, false, CREDENTIAL(env),
		kr_fault_env_name, NULL },
	{ KR_IN_HARNESS_CREDENTIAL, "sentinel", KR_KEY_STRING, "null", "how what it gets in the secret's place begins", 0,
		true, CREDENTIAL(sentinel), kr_fault_sentinel, NULL },
	{ KR_IN_HARNESS_CREDENTIAL, "inject", KR_KEY_LIST, "", "where the secret goes: domain, header, format", 0, false,
		NONE, NULL, kr_inject_read },

	CAPABILITY("prompt", "", "how it gets what it is to do"),
	CAPABILITY("context", "", "how it gets what kraft tells it"),
	CAPABILITY("usage", "", "how what it used is read"),
	CAPABILITY("structured_log", "null", "words that make it print what can be read"),
	CAPABILITY("model", "null", "how its model is named"),
	CAPABILITY("effort", "null", "how hard it thinks"),
	CAPABILITY("permission_mode", "null", "its own permission mode"),
	CAPABILITY("deny_tools", "null", "how tools are denied"),
	CAPABILITY("allowed_tools", "null", "how tools are allowed"),
	CAPABILITY("restrict_tools", "null", "how all other tools are taken away"),
	CAPABILITY("ask_tools", "null", "how a person comes to be asked for a tool"),
	CAPABILITY("approval_channel", "null", "words that make it ask kraft"),
	CAPABILITY("mcp_config", "null", "how it is given kraft's server"),
	CAPABILITY("permission_hook", "null", "how it is given kraft's hook"),
	CAPABILITY("resume", "null", "how a conversation goes on"),
	UNBUILT(CAPABILITIES, "autocompact"),
	UNBUILT(CAPABILITIES, "rate_limit_signal"),
	UNBUILT(CAPABILITIES, "writable_dirs"),

	{ KR_IN_CAPABILITY, "args", KR_KEY_STRINGS, "[]", "its words", ~OF(USAGE), false, CAP(args), NULL, NULL },
	{ KR_IN_CAPABILITY, "via", KR_KEY_STRING, "args", "args, stdin, prompt, hook or rules",
		OF(PROMPT) | OF(CONTEXT) | OF(DENY_TOOLS) | OF(ALLOWED_TOOLS) | OF(ASK_TOOLS), false, CAP(via), NULL,
		kr_via_read },
	{ KR_IN_CAPABILITY, "values", KR_KEY_STRINGS, "any", "the values that it takes",
		OF(MODEL) | OF(EFFORT) | OF(PERMISSION_MODE), false, CAP(values), kr_fault_empty, NULL },
	{ KR_IN_CAPABILITY, "always", KR_KEY_STRING, "null", "the mode when none is asked for", OF(PERMISSION_MODE),
		true, CAP(always), kr_fault_empty, NULL },
	{ KR_IN_CAPABILITY, "under_allowlist", KR_KEY_STRING, "null", "the same, when there is a list of allowed tools",
		OF(PERMISSION_MODE), true, CAP(under_allowlist), kr_fault_empty, NULL },
	{ KR_IN_CAPABILITY, "also", KR_KEY_STRINGS, "[]", "tools that are denied at each launch", OF(DENY_TOOLS),
		false, CAP(also), kr_fault_tool, NULL },
	{ KR_IN_CAPABILITY, "under_policy", KR_KEY_STRINGS, "[]", "the same, when the policy says anything of tools",
		OF(ASK_TOOLS), false, CAP(under_policy), kr_fault_tool, NULL },
	{ KR_IN_CAPABILITY, "trust", KR_KEY_STRINGS, "[]", "words that make it trust the hook", OF(PERMISSION_HOOK),
		false, CAP(trust), NULL, NULL },
	{ KR_IN_CAPABILITY, "command", KR_KEY_STRINGS, "[]", "words in place of 'subcommand'", OF(RESUME), false,
		CAP(command), NULL, NULL },
	{ KR_IN_CAPABILITY, "reader", KR_KEY_STRING, "", "whose output it is: claude, codex or none", OF(USAGE),
		false, (size_t)0, NULL, kr_reader_read },

	{ KR_IN_REQUIRES, "requires", KR_KEY_STRINGS, "[]", "hosts that join the runtime list", 0, false,
		HARNESS(hosts), kr_fault_required_host, NULL },

	{ KR_IN_CONFIG_DIR, "env", KR_KEY_STRING, "", "the variable that names the directory", 0, false,
		HARNESS(config_env), kr_fault_env_name, NULL },
	{ KR_IN_CONFIG_DIR, "keep", KR_KEY_STRINGS, "[]", "directories in it that outlive a session", 0, false,
		HARNESS(config_keep), kr_fault_kept, NULL },

	{ KR_IN_HARNESSES, "harnesses", KR_KEY_MAPPING, "{}", "what holds on this host, by id", 0, true, (size_t)0,
		NULL, kr_harnesses_read },

	{ KR_IN_HARNESS_ENTRY, "provider", KR_KEY_STRING, "the same id", "the harness file that it is made from", 0,
		false, HARNESS(provider), kr_fault_chain_id, NULL },
	{ KR_IN_HARNESS_ENTRY, "enabled", KR_KEY_BOOL, "true", "whether it may be started", 0, false,
		HARNESS(enabled), NULL, NULL },
	{ KR_IN_HARNESS_ENTRY, "executable", KR_KEY_STRING, "null", "the program in place of the file's", 0, true,
		HARNESS(command), NULL, kr_harness_command_read },
	{ KR_IN_HARNESS_ENTRY, "defaults", KR_KEY_MAPPING, "{}", "what holds when nobody says otherwise", 0, false,
		(size_t)0, NULL, kr_harness_defaults_read },
	UNBUILT(HARNESS_ENTRY, "profiles"),
	UNBUILT(HARNESS_ENTRY, "fallback"),

	{ KR_IN_HARNESS_DEFAULTS, "model", KR_KEY_STRING, "null", "its model", 0, true, HARNESS(model),
		kr_fault_empty, NULL },
	{ KR_IN_HARNESS_DEFAULTS, "effort", KR_KEY_STRING, "null", "how hard it thinks", 0, true, HARNESS(effort),
		kr_fault_empty, NULL },
	{ KR_IN_HARNESS_DEFAULTS, "permission_mode", KR_KEY_STRING, "null", "its own permission mode", 0, true,
		HARNESS(permission_mode), kr_fault_empty, NULL },
};
const size_t kr_key_count = KR_COUNT(kr_keys);

static const char *const section_words[] = {
#define X(section, words, files) [KR_IN_##section] = words,
	KR_SECTIONS(X)
#undef X
};

static const unsigned section_files[] = {
#define X(section, words, files) [KR_IN_##section] = files,
	KR_SECTIONS(X)
#undef X
};

static const struct {
	const char *words;
	unsigned values; /* bits of enum kr_yaml_value */
} types[] = {
	[KR_KEY_STRING] = { "a string", 1u << KR_VALUE_STRING },
	[KR_KEY_BOOL] = { "true or false", 1u << KR_VALUE_BOOL },
	[KR_KEY_INTEGER] = { "a whole number", 1u << KR_VALUE_INTEGER },
	[KR_KEY_NUMBER] = { "a number", 1u << KR_VALUE_INTEGER | 1u << KR_VALUE_FLOAT },
	[KR_KEY_SIZE] = { "a size such as 4g",
		1u << KR_VALUE_INTEGER | 1u << KR_VALUE_FLOAT | 1u << KR_VALUE_STRING },
	[KR_KEY_LIST] = { "a list", 1u << KR_VALUE_LIST },
	[KR_KEY_STRINGS] = { "a list of strings", 1u << KR_VALUE_LIST },
	[KR_KEY_MAPPING] = { "a mapping", 1u << KR_VALUE_MAPPING },
	[KR_KEY_SANDBOX] = { "a mapping, or false", 1u << KR_VALUE_MAPPING | 1u << KR_VALUE_BOOL },
	[KR_KEY_UNBUILT] = { "away", ~0u },
};
_Static_assert(KR_COUNT(types) == KR_KEY_TYPE_COUNT, "one row per type");

struct kr_mark
kr_config_mark(const struct kr_yaml_node *node)
{
	return (struct kr_mark){ .line = node->start.line, .column = node->start.column };
}

const char *
kr_config_quote(struct kr_config *c, const char *text)
{
	size_t n = strlen(text);

	if (n <= QUOTE_BYTES)
		return text;
	for (n = QUOTE_BYTES; n && ((unsigned char)text[n] & 0xc0) == 0x80; n--)
		; /* never half a character */
	return kr_arena_printf(c->arena, "%.*s...", (int)n, text);
}

int
kr_config_fail(struct kr_config *c, const struct kr_yaml_node *at, const char *fmt, ...)
{
	char message[sizeof(c->err->message)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	if (c->entry)
		kr_fail(c->err, KR_E_CONFIG, "%s (entry %s)", message, c->entry);
	else
		kr_fail(c->err, KR_E_CONFIG, "%s", message);
	kr_yaml_place(c->doc, &at->start, c->err);
	return -1;
}

/* ---- types ---- */

static bool
looks_boolean(const char *text)
{
	static const char *const words[] = { "yes", "no", "on", "off", "y", "n", "true", "false" };

	for (size_t i = 0; i < KR_COUNT(words); i++)
		if (strcasecmp(text, words[i]) == 0)
			return true;
	return false;
}

static int
hint_type(struct kr_config *c, const struct kr_yaml_node *node, enum kr_key_type want)
{
	enum kr_yaml_value is = kr_yaml_value(node);
	const char *text = kr_config_quote(c, node->text);

	if (want == KR_KEY_STRING && strcmp(text, "~") == 0)
		return kr_hint(
			c->err, "in YAML a '~' by itself is null; put the text in quotes, or write the path out");
	if (want == KR_KEY_STRING && is == KR_VALUE_NULL)
		return kr_hint(c->err, "write \"\" for an empty text");
	if (want == KR_KEY_STRING && (is == KR_VALUE_BOOL || is == KR_VALUE_INTEGER || is == KR_VALUE_FLOAT))
		return kr_hint(c->err, "put it in quotes: \"%s\"", text);
	if (want == KR_KEY_BOOL && is == KR_VALUE_STRING && looks_boolean(text))
		return kr_hint(c->err,
			node->plain ? "write true or false; in YAML 1.2 '%s' is a text"
						: "write true or false, without quotes; \"%s\" is a text",
			text);
	if ((want == KR_KEY_STRINGS || want == KR_KEY_LIST) && is == KR_VALUE_NULL)
		return kr_hint(c->err, "write [] for an empty list, or take the key away");
	if (want == KR_KEY_STRINGS && node->type == KR_YAML_SCALAR)
		return kr_hint(c->err, "put it in brackets: [%s]", text);
	if (want == KR_KEY_MAPPING && is == KR_VALUE_NULL)
		return kr_hint(c->err, "indent what belongs to it below it, or take the key away");
	if (want == KR_KEY_STRING && is == KR_VALUE_MAPPING)
		return kr_hint(c->err, "a text that holds ': ' needs quotes");
	if (want == KR_KEY_STRING && is == KR_VALUE_LIST)
		return kr_hint(c->err, "write it as one text");
	if ((want == KR_KEY_INTEGER || want == KR_KEY_NUMBER) && is == KR_VALUE_STRING && !node->plain)
		return kr_hint(c->err, "take the quotes away");
	return -1;
}

int
kr_config_want(struct kr_config *c, const struct kr_yaml_node *node, const char *name, enum kr_key_type want)
{
	enum kr_yaml_value is = kr_yaml_value(node);

	if (types[want].values >> is & 1)
		return 0;
	kr_config_fail(c, node, "'%s' must be %s, not %s", kr_config_quote(c, name), types[want].words,
		want == KR_KEY_INTEGER && is == KR_VALUE_FLOAT ? "a fraction" : kr_yaml_value_words(is));
	return hint_type(c, node, want);
}

int
kr_config_check(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node)
{
	const char *fault = key->fault ? key->fault(node->text) : NULL;

	if (!fault)
		return 0;
	kr_config_fail(c, node, "'%s' of '%s' %s", kr_config_quote(c, node->text), key->name, fault);
	return kr_hint(c->err, "%s: %s", key->name, key->help);
}

static int
read_strings(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, struct kr_strs *out)
{
	for (const struct kr_yaml_node *item = node->child; item; item = item->next) {
		if (kr_yaml_value(item) != KR_VALUE_STRING) {
			kr_config_fail(c, item, "an item of '%s' must be a string, not %s", key->name,
				kr_yaml_value_words(kr_yaml_value(item)));
			return hint_type(c, item, KR_KEY_STRING);
		}
		if (kr_config_check(c, key, item) < 0)
			return -1;
		if (out)
			kr_strs_add(c->arena, out, item->text);
	}
	return 0;
}

static int
read_plain(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *field)
{
	switch (key->type) {
	case KR_KEY_STRING:
		if (kr_config_check(c, key, node) < 0)
			return -1;
		if (field)
			*(const char **)field = node->text;
		return 0;
	case KR_KEY_BOOL:
		if (field)
			*(bool *)field = node->text[0] == 't' || node->text[0] == 'T';
		return 0;
	case KR_KEY_STRINGS:
		return read_strings(c, key, node, field);
	case KR_KEY_UNBUILT:
		kr_config_fail(c, node->key, "'%s' is not built into this kraft", key->name);
		return kr_hint(c->err, "take the key away: it would be without effect");
	default:
		KR_BUG_IF(true);
	}
}

static int
read_value(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	void *field = key->field == KR_NO_FIELD || !target ? NULL : (char *)target + key->field;

	if (key->nullable && kr_yaml_value(node) == KR_VALUE_NULL)
		return 0;
	if (kr_config_want(c, node, key->name, key->type) < 0) {
		bool required = !*key->fallback;

		if (c->err && (!c->err->hint[0] || (required && kr_yaml_value(node) == KR_VALUE_NULL)))
			kr_hint(c->err, "%s: %s", key->name, key->help);
		return -1;
	}
	if (key->type == KR_KEY_STRINGS && key->read && read_strings(c, key, node, NULL) < 0)
		return -1;
	if (key->read)
		return key->read(c, key, node, field ? field : target);
	return read_plain(c, key, node, field);
}

/* ---- keys ---- */

static unsigned
kind_in(const struct kr_config *c, enum kr_section section)
{
	if (section == KR_IN_SANDBOX)
		return c->kind;
	if (section == KR_IN_CAPABILITY)
		return c->capability;
	return section == KR_IN_NODE ? (unsigned)c->node_kind : (unsigned)c->task_kind;
}

/* What has the kind, for messages: "kind: os", "'model'". */
static const char *
kind_words(const struct kr_config *c, enum kr_section section)
{
	const char *kind = section == KR_IN_SANDBOX ? kr_sandbox_kind_name(c->kind)
					   : section == KR_IN_NODE  ? (c->node_kind == KR_NODE_GATE ? "gate" : "exec")
												: kr_task_kind_name(c->task_kind);

	if (section == KR_IN_CAPABILITY)
		return kr_arena_printf(c->arena, "'%s'", kr_capability_name(c->capability));
	return kr_arena_printf(c->arena, "kind: %s", kind);
}

static bool
has_kinds(enum kr_section section)
{
	return section == KR_IN_SANDBOX || section == KR_IN_NODE || section == KR_IN_TASK ||
		   section == KR_IN_CAPABILITY;
}

static bool
is_taken(const struct kr_config *c, const struct kr_key *key)
{
	return !key->kinds || key->kinds >> kind_in(c, key->section) & 1;
}

/* What a message may advise to write. */
static bool
is_offered(const struct kr_config *c, const struct kr_key *key)
{
	return key->type != KR_KEY_UNBUILT && is_taken(c, key);
}

const struct kr_key *
kr_key_find(enum kr_section section, const char *name)
{
	for (size_t i = 0; i < kr_key_count; i++)
		if (kr_keys[i].section == section && strcmp(kr_keys[i].name, name) == 0)
			return &kr_keys[i];
	return NULL;
}

static const struct kr_key *
nearest(const struct kr_config *c, enum kr_section section, const char *name)
{
	const struct kr_key *best = NULL;
	unsigned best_distance = NEAR + 1;

	for (size_t i = 0; i < kr_key_count; i++) {
		unsigned distance;

		if (kr_keys[i].section != section || !is_offered(c, &kr_keys[i]))
			continue;
		distance = kr_text_distance(name, kr_keys[i].name, NEAR);
		if (distance < best_distance) {
			best = &kr_keys[i];
			best_distance = distance;
		}
	}
	return best;
}

/* A key of that name in another place of this file, to tell where it belongs; NULL when there is none. */
static const struct kr_key *
find_elsewhere(const struct kr_config *c, enum kr_section section, const char *name)
{
	for (size_t i = 0; i < kr_key_count; i++)
		if (kr_keys[i].section != section && kr_keys[i].type != KR_KEY_UNBUILT &&
			section_files[kr_keys[i].section] & c->files && strcmp(kr_keys[i].name, name) == 0)
			return &kr_keys[i];
	return NULL;
}

static int
hint_keys(struct kr_config *c, enum kr_section section)
{
	struct kr_buf list = KR_BUF(400);

	for (size_t i = 0; i < kr_key_count; i++)
		if (kr_keys[i].section == section && is_offered(c, &kr_keys[i]) &&
			strcmp(kr_keys[i].name, "kind") != 0)
			kr_buf_addf(&list, "%s%s", list.len ? ", " : "", kr_keys[i].name);
	if (has_kinds(section))
		kr_hint(c->err, "%s takes %s", kind_words(c, section), list.data);
	else
		kr_hint(c->err, "%s takes %s", section_words[section], list.data);
	kr_buf_fini(&list);
	return -1;
}

static void
warn_unknown(struct kr_config *c, const struct kr_yaml_node *key)
{
	kr_strs_add(c->arena, c->warnings,
		kr_arena_printf(c->arena, "%s:%u:%u: unknown key '%s' is ignored (entry %s)", c->doc->file,
			key->start.line, key->start.column, kr_config_quote(c, key->text), c->entry));
}

static int
unknown_key(struct kr_config *c, enum kr_section section, const struct kr_yaml_node *key)
{
	const struct kr_key *elsewhere = find_elsewhere(c, section, key->text);
	const struct kr_key *near = nearest(c, section, key->text);

	/* A key of the sandbox that slid out of it would leave the walls lower than they were meant: never a
	 * warning. */
	bool misplaced = elsewhere && (section != KR_IN_REPO || elsewhere->section == KR_IN_SANDBOX);

	if (section == KR_IN_REPO && !near && !misplaced) {
		warn_unknown(c, key);
		return 0;
	}
	kr_config_fail(c, key, "unknown key '%s' in %s", kr_config_quote(c, key->text), section_words[section]);
	(void)kr_number(c->err, KR_E_UNKNOWN_KEY);
	if (misplaced)
		return kr_hint(c->err, "'%s' belongs inside %s; check the indentation", elsewhere->name,
			section_words[elsewhere->section]);
	if (near)
		return kr_hint(c->err, "did you mean '%s'?", near->name);
	return hint_keys(c, section);
}

static int
refused_key(struct kr_config *c, enum kr_section section, const struct kr_yaml_node *key)
{
	kr_config_fail(c, key, "%s takes no %s", kind_words(c, section), key->text);
	return hint_keys(c, section);
}

static int
check_required(struct kr_config *c, enum kr_section section, const struct kr_yaml_node *node)
{
	for (size_t i = 0; i < kr_key_count; i++) {
		const struct kr_key *key = &kr_keys[i];

		if (key->section != section || *key->fallback || !is_taken(c, key) || kr_yaml_get(node, key->name))
			continue;
		kr_config_fail(c, node, "'%s' is missing in %s", key->name, section_words[section]);
		return kr_hint(c->err, "%s: %s", key->name, key->help);
	}
	return 0;
}

int
kr_section_read(struct kr_config *c, enum kr_section section, const struct kr_yaml_node *node, void *target)
{
	for (const struct kr_yaml_node *value = node->child; value; value = value->next) {
		const struct kr_key *key = kr_key_find(section, value->key->text);

		if (!key                ? unknown_key(c, section, value->key) < 0
			: !is_taken(c, key) ? refused_key(c, section, value->key) < 0
								: read_value(c, key, value, target) < 0)
			return -1;
	}
	return check_required(c, section, node);
}
