/* policy.yaml, the layer of a repository's entry, and what layers come to together: each field in each
 * direction, and properties over many layers made by chance. */
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "config/chain.h"
#include "config/schema.h"
#include "policy/permit.h"

#include <cmocka.h>
#include <fcntl.h>

static const struct kr_places places = {
	.home = "/home/you",
	.kraft_home = "/home/you/.kraft",
	.run_dir = "/home/you/.kraft/run",
	.config_dir = "/home/you/.kraft/config",
};

#define ALL_GRANTS ((1u << KR_GRANT_COUNT) - 1)
#define COMMIT (1u << KR_GRANT_INDEX_COMMIT)
#define REBASE (1u << KR_GRANT_INDEX_REBASE)
#define PUSH (1u << KR_GRANT_INDEX_PUSH)
#define DEFAULT "default: {attempts: 3, wall_clock_s: 3600}\n"

/* ---- policy.yaml ---- */

static void
parse(struct kr_arena *arena, const char *text, struct kr_policy_file *out)
{
	struct kr_error err = { 0 };

	if (kr_policy_file_parse(arena, &places, "policy.yaml", text, strlen(text), out, &err) < 0)
		fail_msg("%u:%u: %s", err.place.line, err.place.column, err.message);
}

static void
check_defaults(const struct kr_policy_file *file)
{
	assert_int_equal(file->attempts, 3);
	assert_int_equal(file->wall_clock_s, 3600);
	assert_int_equal(file->max_concurrent, 3);
	assert_true(file->auto_escalate_stuck);
	assert_int_equal(file->auto_escalate_stuck_cap, 3);
	assert_int_equal(file->auto_escalate_delay_s, 0);
	assert_int_equal(file->auto_review_attempts, 1);
	assert_int_equal(file->rate_limit_retries, 5);
	assert_int_equal(file->archive_after_days, 0);
	assert_int_equal(file->escalation_grants, ALL_GRANTS);
	assert_int_equal(file->loop_severities, 1u << KR_SEVERITY_CRITICAL | 1u << KR_SEVERITY_IMPORTANT);
	assert_int_equal(file->layer.mark.line, 0);
	for (int i = 0; i < KR_BOUND_COUNT; i++)
		assert_true(
			file->maxima[i] + file->node_maxima[i] + file->step_maxima[i] + file->task_maxima[i] <= 0);
}

static void
an_empty_policy_is_the_defaults(void **state)
{
	static const char *const texts[] = { "", "# nothing\n", "null\n", DEFAULT,
		DEFAULT "defaults: null\nmaxima: null\nfindings: {}\nbudget: {}\narchive: null\n" };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(texts); i++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		struct kr_policy_file file;

		parse(&arena, texts[i], &file);
		check_defaults(&file);
	}
}

static void
a_policy_is_read_whole(void **state)
{
	static const char text[] = "default: {attempts: 4, wall_clock_s: 60}\n"
							   "max_concurrent: 9\n"
							   "auto_escalate_stuck: false\n"
							   "auto_escalate_stuck_cap: 0\n"
							   "auto_escalate_delay_s: 7\n"
							   "auto_review_attempts: 2\n"
							   "rate_limit_retries: 0\n"
							   "forge_cli_timeout_s: 10\n"
							   "forge_poll_s: 30\n"
							   "findings: {loop_severities: [minor]}\n"
							   "budget: {work_item_usd: 5, daily_usd: 10.5}\n"
							   "archive: {after_days: 30}\n"
							   "defaults:\n"
							   "  allowed_tools: []\n"
							   "  deny_tools: [Bash, mcp__x__y]\n"
							   "  grants: [git-commit, git-rebase]\n"
							   "  escalation_grants: [git-push]\n"
							   "  sandbox: {kind: os, network: {runtime: {allow: [a.example]}}}\n"
							   "  allowed_harnesses: [claude]\n"
							   "  max_attempts: 100\n"
							   "  timeout_minutes: 0.5\n"
							   "  time_cap_minutes: 20\n"
							   "  total_time_cap_minutes: 30.25\n"
							   "  token_budget: 1000000\n"
							   "  budget_usd: 1.75\n"
							   "  escalation_harness: item\n"
							   "maxima:\n"
							   "  work_item: {max_attempts: 50, budget_usd: 3}\n"
							   "  nodes: {timeout_minutes: 4}\n"
							   "  steps: {timeout_minutes: 3}\n"
							   "  tasks: {timeout_minutes: 2, token_budget: null}\n";
	static const double bounds[KR_BOUND_COUNT] = { 100, 0.5, 20, 30.25, 1000000, 1.75 };
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_policy_file file;

	(void)state;
	parse(&arena, text, &file);
	assert_int_equal(file.attempts, 4);
	assert_int_equal(file.wall_clock_s, 60);
	assert_int_equal(file.max_concurrent, 9);
	assert_false(file.auto_escalate_stuck);
	assert_int_equal(file.auto_escalate_stuck_cap, 0);
	assert_int_equal(file.auto_escalate_delay_s, 7);
	assert_int_equal(file.auto_review_attempts, 2);
	assert_int_equal(file.rate_limit_retries, 0);
	assert_int_equal(file.loop_severities, 1u << KR_SEVERITY_MINOR);
	assert_int_equal(file.archive_after_days, 30);
	assert_int_equal(file.layer.mark.line, 14);
	assert_true(file.layer.has_allowed_tools && file.layer.allowed_tools.n == 0);
	assert_int_equal(file.layer.deny_tools.n, 2);
	assert_true(file.layer.has_grants && file.layer.grants == (COMMIT | REBASE));
	assert_int_equal(file.escalation_grants, PUSH);
	assert_true(file.layer.has_sandbox && file.layer.sandbox.kind == KR_SANDBOX_OS);
	assert_true(file.layer.has_allowed_harnesses);
	assert_string_equal(file.layer.allowed_harnesses.v[0], "claude");
	assert_memory_equal(file.layer.bounds, bounds, sizeof(bounds));
	assert_string_equal(file.layer.escalation_harness, "item");
	assert_true(file.maxima[KR_BOUND_ATTEMPTS] == 50.0 && file.maxima[KR_BOUND_BUDGET] == 3.0);
	assert_true(file.node_maxima[KR_BOUND_TIMEOUT] == 4.0 && file.step_maxima[KR_BOUND_TIMEOUT] == 3.0);
	assert_true(file.task_maxima[KR_BOUND_TIMEOUT] == 2.0 && file.task_maxima[KR_BOUND_TOKENS] <= 0.0);
}

struct mistake {
	const char *text;
	unsigned line, column;
	const char *message, *hint;
};

static bool
is_told(const struct mistake *m)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_policy_file file = { .attempts = 77 };
	struct kr_error err = { 0 };

	if (kr_policy_file_parse(&arena, &places, "policy.yaml", m->text, strlen(m->text), &file, &err) == 0)
		fail_msg("loads: %s", m->text);
	assert_int_equal(file.attempts, 77);
	assert_int_equal(err.code, KR_E_CONFIG);
	assert_string_equal(err.place.path, "policy.yaml");
	if (strstr(err.message, m->message) && strstr(err.hint, m->hint) && err.place.line == m->line &&
		err.place.column == m->column)
		return true;
	print_error("# %s\n# got %u:%u: %s\n# hint: %s\n", m->text, err.place.line, err.place.column, err.message,
		err.hint);
	return false;
}

static void
each_mistake_of_a_policy_has_its_place_CFG_11(void **state)
{
	static const struct mistake mistakes[] = {
		{ "- a\n", 1, 1, "the file must be a mapping, not a list", "begin it with 'default:" },
		{ "max_concurrent: 2\n", 1, 1, "'default' is missing in the file", "attempts, wall_clock_s" },
		{ "default: {}\n", 1, 10, "'attempts' is missing in 'default'", "1 to 100" },
		{ "default: {attempts: 3}\n", 1, 10, "'wall_clock_s' is missing in 'default'", "" },
		{ "default: {attempts: 0, wall_clock_s: 1}\n", 1, 21, "must be a whole number from 1 to 100", "" },
		{ "default: {attempts: 101, wall_clock_s: 1}\n", 1, 21, "must be a whole number from 1 to 100", "" },
		{ "default: {attempts: +3, wall_clock_s: 1}\n", 1, 21, "must be a whole number from 1 to 100", "" },
		{ "default: {attempts: 99999999999999999999999, wall_clock_s: 1}\n", 1, 21, "from 1 to 100", "" },
		{ "default: {attempts: 3, wall_clock_s: 0}\n", 1, 38, "'wall_clock_s' must be a whole number from 1",
			"" },
		{ "default: {attempts: 3, wall_clocks: 1}\n", 1, 24, "unknown key 'wall_clocks' in 'default'",
			"'wall_clock_s'?" },
		{ DEFAULT "max_concurrent: 0\n", 2, 17, "'max_concurrent' must be a whole number from 1", "" },
		{ DEFAULT "max_concurrent: '3'\n", 2, 17, "'max_concurrent' must be a whole number, not a string",
			"take the quotes" },
		{ DEFAULT "auto_escalate_stuck: 1\n", 2, 22, "'auto_escalate_stuck' must be true or false", "" },
		{ DEFAULT "auto_escalate_delay_s: -1\n", 2, 24, "must be a whole number from 0", "" },
		{ DEFAULT "forge_poll_s: 29\n", 2, 15, "must be a whole number from 30", "" },
		{ DEFAULT "forge_cli_timeout_s: 0\n", 2, 22, "must be a whole number from 1", "" },
		{ DEFAULT "loops: {}\n", 2, 1, "'loops' is not built into this kraft", "" },
		{ DEFAULT "findings: {loop_severities: [bad]}\n", 2, 30,
			"'bad' of 'loop_severities' is not a severity", "" },
		{ DEFAULT "budget: {work_item_usd: 0}\n", 2, 25, "'work_item_usd' must be larger than 0", "" },
		{ DEFAULT "budget: {daily_usd: -1.5}\n", 2, 21, "'daily_usd' must be larger than 0", "" },
		{ DEFAULT "archive: {after_days: soon}\n", 2, 23, "'after_days' must be a whole number, not a string",
			"" },
		{ DEFAULT "max_attempts: 3\n", 2, 1, "unknown key 'max_attempts' in the file",
			"belongs inside 'defaults'" },
		{ DEFAULT "path: /x\n", 2, 1, "unknown key 'path' in the file", "the file takes default, defaults" },
		{ DEFAULT "default_: {}\n", 2, 1, "unknown key 'default_'", "did you mean 'default'?" },
		{ DEFAULT "defaults: {policy: {}}\n", 2, 12, "unknown key 'policy' in 'defaults'",
			"'defaults' takes allowed_tools" },
		{ DEFAULT "defaults: {escalation_grants: [root]}\n", 2, 32,
			"'root' of 'escalation_grants' is not a grant", "" },
		{ DEFAULT "defaults: {allowed_tools: ['Bash(ls)']}\n", 2, 28, "is not a bare tool name", "" },
		{ DEFAULT "defaults: {allowed_tools: [1]}\n", 2, 28, "an item of 'allowed_tools' must be a string",
			"" },
		{ DEFAULT "defaults: {deny_tools: null}\n", 2, 24, "'deny_tools' must be a list of strings, not null",
			"" },
		{ DEFAULT "defaults: {allowed_harnesses: ['']}\n", 2, 32, "'' of 'allowed_harnesses' is empty", "" },
		{ DEFAULT "defaults: {escalation_harness: codex}\n", 2, 32, "is neither claude nor item", "" },
		{ DEFAULT "defaults: {sandbox: true}\n", 2, 21, "'sandbox' must be a mapping, or false, not true",
			"" },
		{ DEFAULT "defaults: {sandbox: {kind: os, network: {}}}\n", 2, 41, "{} counts as none", "" },
		{ DEFAULT "defaults: {max_attempts: 101}\n", 2, 26, "'max_attempts' must be at most 100", "" },
		{ DEFAULT "defaults: {max_attempts: 1e1}\n", 2, 26, "must be a whole number, not a fraction", "" },
		{ DEFAULT "defaults: {timeout_minutes: 1e3}\n", 2, 29,
			"'timeout_minutes' must be written in digits, not '1e3'", "" },
		{ DEFAULT "defaults: {timeout_minutes: .inf}\n", 2, 29, "must be written in digits, not '.inf'", "" },
		{ DEFAULT "defaults: {timeout_minutes: .nan}\n", 2, 29, "must be written in digits, not '.nan'", "" },
		{ DEFAULT "defaults: {timeout_minutes: 0.0}\n", 2, 29, "'timeout_minutes' must be larger than 0",
			"" },
		{ DEFAULT "defaults: {token_budget: 1000000000001}\n", 2, 26,
			"'token_budget' must be at most 1000000000000", "" },
		{ DEFAULT "defaults: {token_budget: 0x10}\n", 2, 26, "must be written in digits, not '0x10'", "" },
		{ DEFAULT "maxima: {max_attempts: 1}\n", 2, 10, "unknown key 'max_attempts' in 'maxima'",
			"belongs inside" },
		{ DEFAULT "maxima: {nodes: {attempts: 1}}\n", 2, 18, "unknown key 'attempts' in a level of 'maxima'",
			"" },
		{ DEFAULT "maxima: {tasks: {budget_usd: 0}}\n", 2, 30, "'budget_usd' must be larger than 0", "" },
	};
	size_t untold = 0;

	(void)state;
	for (size_t i = 0; i < KR_COUNT(mistakes); i++)
		untold += !is_told(&mistakes[i]);
	assert_int_equal(untold, 0);
}

static void
an_unreadable_policy_is_not_the_defaults_CFG_06(void **state)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	char home[] = "/tmp/kr-policy-XXXXXX", path[64];
	struct kr_places own = { .home = home, .kraft_home = home, .run_dir = home, .config_dir = home };
	struct kr_policy_file file;
	struct kr_error err = { 0 };

	(void)state;
	assert_non_null(mkdtemp(home));
	assert_int_equal(kr_policy_file_load(&arena, &own, &file, &err), 0);
	check_defaults(&file);
	snprintf(path, sizeof(path), "%s/policy.yaml", home);
	assert_int_equal(mkdir(path, 0700), 0);
	file.attempts = 77;
	assert_int_equal(kr_policy_file_load(&arena, &own, &file, &err), -1);
	assert_int_equal(err.code, KR_E_CONFIG);
	assert_int_equal(file.attempts, 77);
	assert_int_equal(rmdir(path), 0);
	{
		kr_auto_fd int dir = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		static const char text[] = "default: {attempts: 8, wall_clock_s: 1}\n";

		assert_int_equal(kr_file_write_at(dir, "policy.yaml", text, strlen(text), 0600, &err), 0);
	}
	assert_int_equal(kr_policy_file_load(&arena, &own, &file, &err), 0);
	assert_int_equal(file.attempts, 8);
	assert_int_equal(kr_tree_remove_at(AT_FDCWD, home), 0);
}

static void
the_table_has_each_bound_under_its_name(void **state)
{
	static const enum kr_section sections[] = { KR_IN_POLICY, KR_IN_DEFAULTS, KR_IN_MAXIMUM };
	static const size_t bases[] = { offsetof(struct kr_policy_layer, bounds),
		offsetof(struct kr_policy_file, layer.bounds), 0 };

	(void)state;
	for (size_t s = 0; s < KR_COUNT(sections); s++)
		for (size_t i = 0; i < KR_BOUND_COUNT; i++) {
			const struct kr_key *key = kr_key_find(sections[s], kr_bound_name((enum kr_bound)i));

			assert_non_null(key);
			assert_int_equal(key->field, bases[s] + i * sizeof(double));
		}
}

/* ---- the layer of a repository's entry ---- */

static const struct kr_repo *
one_repo(struct kr_arena *arena, const char *keys)
{
	const char *text = kr_arena_printf(arena, "repos:\n  - path: /r\n%s", keys);
	struct kr_error err = { 0 };
	const struct kr_repos *repos = kr_repos_parse(arena, "f", text, strlen(text), &places, &err);

	if (!repos)
		fail_msg("%u:%u: %s", err.place.line, err.place.column, err.message);
	return &repos->repo[0];
}

static void
an_entrys_layer_has_what_stands_beside_policy_too(void **state)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const struct kr_repo *repo =
		one_repo(&arena, "    deny_tools: [A]\n"
						 "    policy: {deny_tools: [B], grants: [git-push], budget_usd: 2}\n"
						 "    sandbox: {kind: os, network: {runtime: {}}}\n");

	(void)state;
	assert_int_equal(repo->policy.deny_tools.n, 2);
	assert_int_equal(repo->policy.grants, PUSH);
	assert_true(repo->policy.bounds[KR_BOUND_BUDGET] == 2.0);
	assert_int_equal(repo->policy.mark.line, 4);
	assert_true(repo->policy.has_sandbox && repo->policy.sandbox.kind == KR_SANDBOX_OS);
	assert_int_equal(repo->sandbox.kind, KR_SANDBOX_OS);
	assert_int_equal(repo->policy.sandbox.mark.line, 5);

	repo = one_repo(&arena, "    policy: {sandbox: {kind: os, network: {runtime: {}}}}\n");
	assert_int_equal(repo->sandbox.kind, KR_SANDBOX_OS);
	assert_true(repo->policy.has_sandbox);
	repo = one_repo(&arena, "    sandbox: false\n");
	assert_true(repo->sandbox_is_false && repo->policy.sandbox_is_false && repo->policy.has_sandbox);
	assert_int_equal(repo->policy.mark.line, 2);
	repo = one_repo(&arena, "    sandbox: null\n    policy: null\n");
	assert_false(repo->policy.has_sandbox || repo->policy.mark.line);
}

/* ---- combining ---- */

/* Seven policies written as YAML, "" for a layer that is not there. */
struct stack {
	struct kr_policy_layer layer[KR_LAYER_COUNT];
	const struct kr_policy_layer *v[KR_LAYER_COUNT];
};

static void
set_layer(struct kr_arena *arena, struct stack *stack, enum kr_layer at, const char *policy)
{
	const struct kr_repo *repo = one_repo(arena, kr_arena_printf(arena, "    policy: {%s}\n", policy));

	stack->layer[at] = repo->policy;
	stack->v[at] = &stack->layer[at];
}

static void
combine(struct kr_arena *arena, const struct stack *stack, const double *maxima, struct kr_policy *out)
{
	struct kr_error err = { 0 };

	if (kr_policy_combine(arena, stack->v, maxima, out, &err) < 0)
		fail_msg("%s", err.message);
}

static const char *
joined(struct kr_arena *arena, const struct kr_strs *list)
{
	const char *out = "";

	for (size_t i = 0; i < list->n; i++)
		out = kr_arena_printf(arena, "%s%s%s", out, i ? " " : "", list->v[i]);
	return out;
}

static void
no_layer_says_nothing(void **state)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct stack stack = { 0 };
	struct kr_policy policy;

	(void)state;
	combine(&arena, &stack, NULL, &policy);
	assert_false(policy.has_allowed_tools || policy.has_allowed_harnesses || policy.grants);
	assert_null(policy.sandbox);
	assert_null(policy.escalation_harness);
	set_layer(&arena, &stack, KR_LAYER_NODE, "");
	combine(&arena, &stack, NULL, &policy);
	assert_false(policy.has_allowed_tools || policy.has_allowed_harnesses || policy.grants || policy.sandbox);
}

static void
allowed_lists_narrow_and_denied_ones_add_up(void **state)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct stack stack = { 0 };
	struct kr_policy policy;

	(void)state;
	set_layer(&arena, &stack, KR_LAYER_REPO,
		"allowed_tools: [A, B, C, B], deny_tools: [X], allowed_harnesses: [h, i]");
	set_layer(&arena, &stack, KR_LAYER_NODE, "deny_tools: [X, Y], ask_tools: [B]");
	combine(&arena, &stack, NULL, &policy);
	assert_string_equal(joined(&arena, &policy.allowed_tools), "A B C");
	assert_string_equal(joined(&arena, &policy.deny_tools), "X Y");
	assert_string_equal(joined(&arena, &policy.allowed_harnesses), "h i");
	set_layer(&arena, &stack, KR_LAYER_STEP, "allowed_tools: [C, D, A], allowed_harnesses: [i, j]");
	set_layer(&arena, &stack, KR_LAYER_ITEM, "allowed_tools: [C, E], deny_tools: [Z], ask_tools: [C, B]");
	combine(&arena, &stack, NULL, &policy);
	assert_string_equal(joined(&arena, &policy.allowed_tools), "C");
	assert_string_equal(joined(&arena, &policy.deny_tools), "X Y Z");
	assert_string_equal(joined(&arena, &policy.ask_tools), "B C");
	assert_string_equal(joined(&arena, &policy.allowed_harnesses), "i");
	set_layer(&arena, &stack, KR_LAYER_TASK, "allowed_tools: [], allowed_harnesses: [k]");
	combine(&arena, &stack, NULL, &policy);
	assert_true(policy.has_allowed_tools && policy.allowed_tools.n == 0); /* none, which is not "any" */
	assert_true(policy.has_allowed_harnesses && policy.allowed_harnesses.n == 0);
}

static void
grants_add_up_and_an_item_only_drops(void **state)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct stack stack = { 0 };
	struct kr_policy policy;

	(void)state;
	set_layer(&arena, &stack, KR_LAYER_HOST, "grants: [git-commit]");
	set_layer(&arena, &stack, KR_LAYER_CHAIN, "grants: []");
	set_layer(&arena, &stack, KR_LAYER_TASK, "grants: [git-rebase]");
	combine(&arena, &stack, NULL, &policy);
	assert_int_equal(policy.grants, COMMIT | REBASE);
	set_layer(&arena, &stack, KR_LAYER_ITEM, "grants: [git-rebase, git-push]");
	combine(&arena, &stack, NULL, &policy);
	assert_int_equal(policy.grants, REBASE);
	set_layer(&arena, &stack, KR_LAYER_ITEM, "grants: []");
	combine(&arena, &stack, NULL, &policy);
	assert_int_equal(policy.grants, 0);
	set_layer(&arena, &stack, KR_LAYER_ITEM, "budget_usd: 1"); /* says nothing of grants */
	combine(&arena, &stack, NULL, &policy);
	assert_int_equal(policy.grants, COMMIT | REBASE);
}

static void
the_last_bound_holds_below_the_maxima(void **state)
{
	static const double maxima[KR_BOUND_COUNT] = { [KR_BOUND_ATTEMPTS] = 5, [KR_BOUND_TOKENS] = 1000 };
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct stack stack = { 0 };
	struct kr_policy policy;

	(void)state;
	set_layer(&arena, &stack, KR_LAYER_HOST, "max_attempts: 2, timeout_minutes: 10, time_cap_minutes: 7");
	set_layer(&arena, &stack, KR_LAYER_NODE, "max_attempts: 9, timeout_minutes: 20");
	combine(&arena, &stack, maxima, &policy);
	assert_true(policy.bounds[KR_BOUND_ATTEMPTS] == 5.0); /* 9 is above the maximum */
	assert_int_equal(policy.bound_from[KR_BOUND_ATTEMPTS], KR_LAYER_HOST);
	assert_true(policy.bounds[KR_BOUND_TIMEOUT] == 20.0);
	assert_int_equal(policy.bound_from[KR_BOUND_TIMEOUT], KR_LAYER_NODE);
	assert_true(policy.bounds[KR_BOUND_TIME_CAP] == 7.0);
	assert_true(policy.bounds[KR_BOUND_TOKENS] == 1000.0); /* nobody said any */
	assert_true(policy.bounds[KR_BOUND_BUDGET] <= 0.0);    /* nor is there a maximum */

	set_layer(&arena, &stack, KR_LAYER_ITEM,
		"max_attempts: 6, timeout_minutes: 5, time_cap_minutes: 8, token_budget: 2000, budget_usd: 3");
	combine(&arena, &stack, maxima, &policy);
	assert_true(policy.bounds[KR_BOUND_ATTEMPTS] == 5.0); /* an item cannot raise */
	assert_true(policy.bounds[KR_BOUND_TIMEOUT] == 5.0);  /* but lower */
	assert_int_equal(policy.bound_from[KR_BOUND_TIMEOUT], KR_LAYER_ITEM);
	assert_true(policy.bounds[KR_BOUND_TIME_CAP] == 7.0);
	assert_true(policy.bounds[KR_BOUND_TOKENS] == 1000.0);
	assert_true(policy.bounds[KR_BOUND_BUDGET] == 3.0); /* or bound what nobody did */
}

static void
maxima_of_a_level_hold_from_there_on(void **state)
{
	const struct kr_policy_file file = {
		.maxima = { 9, 8 }, .node_maxima = { 7 }, .step_maxima = { 0, 0, 6 }, .task_maxima = { 8, 5 }
	};
	static const double want[][3] = { { 9, 8, 0 }, { 9, 8, 0 }, { 9, 8, 0 }, { 7, 8, 0 }, { 7, 8, 6 },
		{ 7, 5, 6 }, { 7, 5, 6 } };
	double got[KR_BOUND_COUNT];

	(void)state;
	for (int i = 0; i < KR_LAYER_COUNT; i++) {
		kr_policy_maxima(&file, (enum kr_layer)i, got);
		assert_memory_equal(got, want[i], sizeof(want[i]));
	}
}

/* ---- the sandbox ---- */

#define DOCKER(keys) "sandbox: {kind: docker, image: i, " keys "}"
#define OPEN(keys) DOCKER("unrestricted_network: true" keys)
#define SECRET(keys, header)                                                \
	DOCKER("network: {runtime: {allow: [a.example]}}, credentials: [{" keys \
		   ", inject: [{domain: a.example, header: " header ", format: '%s'}]}]")
#define KIT(name)                                       \
	"sandbox: {kind: kit, runtime: docker, kit: '" name \
	"@sha256:0123456789012345678901234567890123456789012345678901234567890123'}"
#define SANDBOX "sandbox: {kind: os, network: {runtime: {allow: [a.example]}}, expose: [/opt/x]}"

static void
refuses(struct kr_arena *arena, const struct stack *stack, const char *message)
{
	struct kr_policy policy = { .grants = 77 };
	struct kr_error err = { 0 };

	if (kr_policy_combine(arena, stack->v, NULL, &policy, &err) == 0)
		fail_msg("combined; wanted: %s", message);
	assert_int_equal(err.code, KR_E_CONFIG);
	assert_string_equal(err.message, message);
	assert_int_equal(policy.grants, 77);
	assert_int_equal(kr_policy_combine(arena, stack->v, NULL, &policy, NULL), -1);
}

/* Every layer below the one that set it, with every other sandbox there is. */
static void
a_set_sandbox_cannot_be_changed_or_turned_off_CFG_08(void **state)
{
	static const char *const others[] = {
		"sandbox: {kind: os, network: {runtime: {allow: [b.example]}}, expose: [/opt/x]}",
		"sandbox: {kind: os, network: {runtime: {allow: [a.example, b.example]}}, expose: [/opt/x]}",
		"sandbox: {kind: os, network: {runtime: {allow: [a.example], deny: [b.example]}}, expose: [/opt/x]}",
		"sandbox: {kind: os, network: {runtime: {}}, expose: [/opt/x]}",
		"sandbox: {kind: os, network: {install: {}, runtime: {allow: [a.example]}}, expose: [/opt/x]}",
		"sandbox: {kind: os, network: {runtime: {allow: [a.example]}}, expose: [/opt/x, /opt/y]}",
		"sandbox: {kind: os, network: {runtime: {allow: [a.example]}}, expose: [/opt/y]}",
		"sandbox: {kind: os, network: {runtime: {allow: [a.example]}}}",
		"sandbox: {kind: docker, image: i, network: {runtime: {allow: [a.example]}}}",
		KIT("a"),
	};

	(void)state;
	for (int first = 0; first < KR_LAYER_COUNT - 1; first++)
		for (int later = first + 1; later < KR_LAYER_COUNT; later++) {
			KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
			const char *a = kr_layer_words((enum kr_layer)first), *b = kr_layer_words((enum kr_layer)later);
			struct stack stack = { 0 };
			struct kr_policy policy;

			set_layer(&arena, &stack, (enum kr_layer)first, SANDBOX);
			set_layer(&arena, &stack, (enum kr_layer)later, SANDBOX); /* the same again changes nothing */
			combine(&arena, &stack, NULL, &policy);
			assert_ptr_equal(policy.sandbox, &stack.layer[first]);
			assert_int_equal(policy.sandbox_from, first);
			for (size_t i = 0; i < KR_COUNT(others); i++) {
				set_layer(&arena, &stack, (enum kr_layer)later, others[i]);
				refuses(&arena, &stack,
					kr_arena_printf(&arena, "%s (line 3) sets another sandbox than %s (line 3)", b, a));
			}
			set_layer(&arena, &stack, (enum kr_layer)later, "sandbox: false");
			refuses(&arena, &stack,
				kr_arena_printf(&arena, "%s (line 3) turns off the sandbox that %s (line 3) set", b, a));
		}
}

static void
other_kinds_are_compared_whole_CFG_08(void **state)
{
	static const char *const sandboxes[] = {
		OPEN(""),
		"sandbox: {kind: docker, image: j, unrestricted_network: true}",
		DOCKER("network: {runtime: {allow: [a.example]}}"),
		OPEN(", resources: {}"),
		OPEN(", resources: {cpu: 1}"),
		OPEN(", resources: {cpu: 2}"),
		OPEN(", resources: {memory: 1g}"),
		OPEN(", resources: {pids: 9}"),
		SECRET("env: E", "x"),
		SECRET("env: E", "y"),
		SECRET("env: F", "x"),
		SECRET("env: E, phase: [runtime]", "x"),
		KIT("a"),
		KIT("b"),
		"sandbox: false",
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(sandboxes); i++)
		for (size_t k = 0; k < KR_COUNT(sandboxes); k++) {
			KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
			struct stack stack = { 0 };
			struct kr_policy policy;
			struct kr_error err = { 0 };

			set_layer(&arena, &stack, KR_LAYER_REPO, sandboxes[i]);
			set_layer(&arena, &stack, KR_LAYER_TASK, sandboxes[k]);
			assert_int_equal(kr_policy_combine(&arena, stack.v, NULL, &policy, &err), i == k ? 0 : -1);
		}
}

/* A repository that says `sandbox: false` cannot turn off the host's; where it is the first to speak, it
 * holds. */
static void
false_is_a_word_like_another_CFG_08(void **state)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct stack stack = { 0 };
	struct kr_policy policy;

	(void)state;
	stack.layer[KR_LAYER_REPO] = one_repo(&arena, "    sandbox: false\n")->policy;
	stack.v[KR_LAYER_REPO] = &stack.layer[KR_LAYER_REPO];
	combine(&arena, &stack, NULL, &policy);
	assert_ptr_equal(policy.sandbox, &stack.layer[KR_LAYER_REPO]);
	assert_true(policy.sandbox->sandbox_is_false);
	set_layer(&arena, &stack, KR_LAYER_HOST, SANDBOX);
	refuses(&arena, &stack, "the repository (line 3) turns off the sandbox that policy.yaml (line 3) set");
}

/* ---- by chance ---- */

static const char *const tools[] = { "A", "B", "C", "D" };

static unsigned
chance(unsigned *seed, unsigned n)
{
	*seed = *seed * 1103515245u + 12345u;
	return (*seed >> 16) % n;
}

static void
some_of(struct kr_arena *arena, unsigned *seed, struct kr_strs *out)
{
	for (size_t i = 0; i < KR_COUNT(tools); i++)
		if (chance(seed, 3))
			kr_strs_add(arena, out, tools[i]);
}

static struct kr_policy_layer
any_layer(struct kr_arena *arena, unsigned *seed)
{
	struct kr_policy_layer layer = { .has_allowed_tools = chance(seed, 2),
		.has_allowed_harnesses = chance(seed, 2),
		.has_grants = chance(seed, 2),
		.has_sandbox = !chance(seed, 4) };

	if (layer.has_allowed_tools)
		some_of(arena, seed, &layer.allowed_tools);
	if (layer.has_allowed_harnesses)
		some_of(arena, seed, &layer.allowed_harnesses);
	if (chance(seed, 2))
		some_of(arena, seed, &layer.deny_tools);
	if (chance(seed, 2))
		some_of(arena, seed, &layer.ask_tools);
	if (layer.has_grants)
		layer.grants = chance(seed, ALL_GRANTS + 1);
	if (layer.has_sandbox)
		layer.sandbox.kind = (enum kr_sandbox_kind)chance(seed, 3);
	layer.sandbox_is_false = layer.has_sandbox && layer.sandbox.kind == KR_SANDBOX_NONE;
	for (int i = 0; i < KR_BOUND_COUNT; i++)
		layer.bounds[i] = chance(seed, 8);
	return layer;
}

/* 2: it may be used, 1: a person is asked, 0: it may not. */
static int
may_use(const struct kr_policy *policy, const char *tool)
{
	const struct kr_permit_call call = { .tool = tool };
	struct kr_permit_verdict v;

	kr_permit_decide(policy, KR_PERMIT_PROMPT, false, &call, &v);
	return v.permit == KR_PERMIT_ALLOW ? 2 : v.permit == KR_PERMIT_ASK;
}

static bool
may_run(const struct kr_policy *policy, const char *harness)
{
	return !policy->has_allowed_harnesses || kr_strs_has(&policy->allowed_harnesses, harness);
}

static void
check_step(const struct kr_policy *before, const struct kr_policy *after, const double *maxima, bool is_item)
{
	for (size_t i = 0; i < KR_COUNT(tools); i++) {
		assert_true(may_use(before, tools[i]) >= may_use(after, tools[i]));
		assert_true(may_run(before, tools[i]) || !may_run(after, tools[i]));
	}
	if (before->sandbox) {
		assert_ptr_equal(before->sandbox, after->sandbox);
		assert_int_equal(before->sandbox_from, after->sandbox_from);
	}
	assert_int_equal(is_item ? after->grants & ~before->grants : before->grants & ~after->grants, 0);
	for (int i = 0; i < KR_BOUND_COUNT; i++) {
		double most = maxima[i], was = before->bounds[i], is = after->bounds[i];

		assert_true(!(most > 0) || (is > 0 && is <= most));
		if (is_item && was > 0)
			assert_true(is > 0 && is <= was);
	}
}

static void
one_more_layer_never_widens_anything_CFG_08(void **state)
{
	unsigned seed = 20, refused = 0, combined = 0;

	(void)state;
	for (int round = 0; round < 4000; round++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		double maxima[KR_BOUND_COUNT];
		struct stack stack = { 0 };
		struct kr_policy before;

		for (int i = 0; i < KR_BOUND_COUNT; i++)
			maxima[i] = chance(&seed, 6);
		combine(&arena, &stack, maxima, &before);
		for (int i = 0; i < KR_LAYER_COUNT; i++) {
			struct kr_policy after;
			struct kr_error err = { 0 };

			if (!chance(&seed, 4))
				continue;
			stack.layer[i] = any_layer(&arena, &seed);
			stack.v[i] = &stack.layer[i];
			if (kr_policy_combine(&arena, stack.v, maxima, &after, &err) < 0) {
				assert_true(before.sandbox && stack.layer[i].has_sandbox);
				refused++;
				break;
			}
			combined++;
			check_step(&before, &after, maxima, i == KR_LAYER_ITEM);
			before = after;
		}
	}
	assert_true(refused > 100 && combined > 1000); /* both were seen */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_policy_is_the_defaults),
		cmocka_unit_test(a_policy_is_read_whole),
		cmocka_unit_test(each_mistake_of_a_policy_has_its_place_CFG_11),
		cmocka_unit_test(an_unreadable_policy_is_not_the_defaults_CFG_06),
		cmocka_unit_test(the_table_has_each_bound_under_its_name),
		cmocka_unit_test(an_entrys_layer_has_what_stands_beside_policy_too),
		cmocka_unit_test(no_layer_says_nothing),
		cmocka_unit_test(allowed_lists_narrow_and_denied_ones_add_up),
		cmocka_unit_test(grants_add_up_and_an_item_only_drops),
		cmocka_unit_test(the_last_bound_holds_below_the_maxima),
		cmocka_unit_test(maxima_of_a_level_hold_from_there_on),
		cmocka_unit_test(a_set_sandbox_cannot_be_changed_or_turned_off_CFG_08),
		cmocka_unit_test(other_kinds_are_compared_whole_CFG_08),
		cmocka_unit_test(false_is_a_word_like_another_CFG_08),
		cmocka_unit_test(one_more_layer_never_widens_anything_CFG_08),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
