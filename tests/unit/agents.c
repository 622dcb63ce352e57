/*
 * agent: how each CLI is launched. tests/golden/agents/<harness>.golden has its words, input, variables and
 * files for a dozen policies, or the refusal; their diff is read as a change of what keeps a tool from
 * running. Beside them: what must hold for every harness, whatever its file says.
 */
#include <setjmp.h>
#include <stdarg.h>

#include "agent/agent.h"
#include "agent/rules.h"
#include "config/schema.h"
#include "session/calls.h"

#include <cmocka.h>

#include "golden.h"

static const struct kr_places places = {
	.home = "/home/you",
	.kraft_home = "/home/you/.kraft",
	.run_dir = "/home/you/.kraft/run",
	.config_dir = "/home/you/.kraft/config",
};

/* ---- what is asked for ---- */

/* Lists are words with blanks between; NULL: there is none. */
struct sample {
	const char *name, *allowed, *deny, *ask;
	unsigned grants;
	const char *model, *effort, *mode, *resume, *key, *context;
	bool is_open; /* unrestricted_network */
};

#define GRANT(grant) (1u << KR_GRANT_INDEX_##grant)

static const struct sample samples[] = {
	{ .name = "nothing is said of tools" },
	{ .name = "without anything beside the prompt", .context = "" },
	{ .name = "a list of allowed tools", .allowed = "Read Edit Bash" },
	{ .name = "a list that allows nothing", .allowed = "" },
	{ .name = "allowed and denied", .allowed = "Read Bash WebFetch", .deny = "Bash" },
	{ .name = "denied", .deny = "Bash WebFetch mcp__forge__merge" },
	{ .name = "asked for", .ask = "Bash" },
	{ .name = "asked for, but denied or not allowed",
		.allowed = "Read",
		.deny = "Bash",
		.ask = "Bash Write" },
	{ .name = "a search is denied", .deny = "WebSearch" },
	{ .name = "a grant beside a list without Bash", .allowed = "Read Edit", .grants = GRANT(COMMIT) },
	{ .name = "grants", .grants = GRANT(COMMIT) | GRANT(PUSH) },
	{ .name = "grants, and Bash is denied", .allowed = "Read", .deny = "Bash", .grants = GRANT(COMMIT) },
	{ .name = "another model, effort and mode", .model = "large-1", .effort = "high", .mode = "default" },
	{ .name = "a model", .model = "large-1" },
	{ .name = "a mode that none has", .mode = "anything" },
	{ .name = "a conversation goes on", .resume = "0199-abc_D" },
	{ .name = "its hook is trusted", .key = "/<session-flags>/config.toml:pre_tool_use:0:0" },
	{ .name = "an open network", .is_open = true },
	{ .name = "an open network, allowed", .is_open = true, .allowed = "Read" },
	{ .name = "an open network, denied", .is_open = true, .deny = "Bash" },
	{ .name = "an open network, asked for", .is_open = true, .ask = "Bash" },
	{ .name = "an open network, and git-commit", .is_open = true, .grants = GRANT(COMMIT) },
	{ .name = "an open network, and git-push", .is_open = true, .grants = GRANT(COMMIT) | GRANT(PUSH) },
};

static const struct kr_policy_layer open_walls = {
	.has_sandbox = true, .sandbox = { .kind = KR_SANDBOX_DOCKER, .unrestricted_network = true }
};

static struct kr_strs
words_of(struct kr_arena *arena, const char *text)
{
	struct kr_strs list = { 0 };
	const char *why;

	if (text)
		assert_true(kr_words_split(arena, text, &list, &why));
	return list;
}

static void
make_policy(struct kr_arena *arena, const struct sample *sample, struct kr_policy *out)
{
	*out = (struct kr_policy){ .has_allowed_tools = sample->allowed,
		.allowed_tools = words_of(arena, sample->allowed),
		.deny_tools = words_of(arena, sample->deny),
		.ask_tools = words_of(arena, sample->ask),
		.grants = sample->grants,
		.sandbox = sample->is_open ? &open_walls : NULL };
}

static int
launch(struct kr_arena *arena, const struct kr_harness *harness, const struct sample *sample,
	const struct kr_policy *policy, struct kr_agent_launch *out, struct kr_error *err)
{
	const struct kr_agent_want want = { .harness = harness,
		.model = sample->model,
		.effort = sample->effort,
		.permission_mode = sample->mode,
		.policy = policy,
		.context = sample->context ? sample->context : "You work on item \"7\".",
		.prompt = "Mend the test.\nThen commit.",
		.resume = sample->resume,
		.settings_dir = "/run/kraft",
		.hook_key = sample->key,
		.hook_hash = sample->key ? "sha256:00ff" : NULL };

	return kr_agent_launch(arena, &want, out, err);
}

static void
load(struct kr_arena *arena, const char *id, struct kr_harness *out)
{
	const char *text = kr_shipped_text("harnesses", id);
	struct kr_error err = { 0 };

	assert_non_null(text);
	if (kr_harness_parse(arena, &places, id, id, text, strlen(text), out, &err) < 0)
		fail_msg("%s:%u: %s", id, err.place.line, err.message);
}

static void
parse(struct kr_arena *arena, const char *text, struct kr_harness *out)
{
	struct kr_error err = { 0 };

	if (kr_harness_parse(arena, &places, "f.yaml", NULL, text, strlen(text), out, &err) < 0)
		fail_msg("%u:%u: %s", err.place.line, err.place.column, err.message);
}

/* ---- the golden files ---- */

static void
add_quoted(const char *lead, const char *text, struct kr_buf *out)
{
	kr_buf_addf(out, "  %s ", lead);
	kr_agent_json(text, out);
	kr_buf_adds(out, "\n");
}

static void
add_launch(const struct kr_agent_launch *launch, struct kr_buf *out)
{
	for (size_t i = 0; i < launch->argv.n; i++)
		add_quoted("argv", launch->argv.v[i], out);
	if (launch->input)
		add_quoted("stdin", launch->input, out);
	for (size_t i = 0; i < launch->env_count; i++)
		add_quoted(launch->env[i].name, launch->env[i].value, out);
	for (size_t i = 0; i < launch->file_count; i++)
		add_quoted(launch->files[i].name, launch->files[i].text, out);
}

static void
each_launch_is_what_was_read(void **state)
{
	unsigned failed = 0;

	(void)state;
	for (size_t i = 0; kr_shipped[i].kind; i++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		kr_auto_buf struct kr_buf text = KR_BUF(1 << 20);
		struct kr_harness harness;
		char name[80];

		if (strcmp(kr_shipped[i].kind, "harnesses") != 0)
			continue;
		load(&arena, kr_shipped[i].id, &harness);
		for (size_t k = 0; k < KR_COUNT(samples); k++) {
			struct kr_agent_launch made;
			struct kr_policy policy;
			struct kr_error err = { 0 };

			make_policy(&arena, &samples[k], &policy);
			kr_buf_addf(&text, "%s\n", samples[k].name);
			if (launch(&arena, &harness, &samples[k], &policy, &made, &err) == 0)
				add_launch(&made, &text);
			else
				kr_buf_addf(&text, "  %s: %s\n  hint: %s\n", kr_error_name(err.code), err.message, err.hint);
		}
		snprintf(name, sizeof(name), "golden/agents/%s.golden", kr_shipped[i].id);
		failed += !golden_agrees(name, &text);
	}
	assert_int_equal(failed, 0);
}

/* ---- what holds for all ---- */

static bool
has_word(const struct kr_agent_launch *launch, const char *word)
{
	return kr_strs_has(&launch->argv, word);
}

/* The word behind this one; NULL: it is not there. */
static const char *
word_behind(const struct kr_agent_launch *launch, const char *word)
{
	for (size_t i = 0; i + 1 < launch->argv.n; i++)
		if (strcmp(launch->argv.v[i], word) == 0)
			return launch->argv.v[i + 1];
	return NULL;
}

/* One of a list that is joined by commas. */
static bool
lists(const char *csv, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = csv; at; at = (at = strchr(at, ',')) ? at + 1 : NULL)
		if (strncmp(at, name, n) == 0 && (at[n] == ',' || !at[n]))
			return true;
	return false;
}

/* Whether this launch keeps the CLI from running a tool that is called `tool` in the policy, and `own` by the
 * CLI. */
static bool
keeps_from(
	const struct kr_harness *harness, const struct kr_agent_launch *launch, const char *tool, const char *own)
{
	const struct kr_cap *deny = kr_harness_cap(harness, KR_CAP_DENY_TOOLS);
	const char *tools = word_behind(launch, "--tools");

	if (deny && deny->via == KR_VIA_HOOK)
		return word_behind(launch, "-c") && !kr_strs_has(&harness->unhooked, tool);
	for (size_t i = 0; i < launch->file_count; i++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };

		if (strstr(launch->files[i].text, kr_arena_printf(&arena, "\"%s\":\"deny\"", own)) ||
			strstr(launch->files[i].text,
				kr_arena_printf(&arena, "{\"tool\":\"%s\",\"action\":\"reject\"}", own)))
			return true;
	}
	return lists(word_behind(launch, "--disallowedTools"), tool) || (tools && !lists(tools, tool));
}

static void
a_tool_that_is_not_allowed_is_kept_from_running_or_nothing_is_launched_CTR_08(void **state)
{
	static const struct {
		const char *id, *bash, *edit; /* as the CLI calls them; NULL: it is never told, so it never starts */
	} clis[] = { { "claude", "Bash", "Edit" }, { "codex", "shell", "apply_patch" },
		{ "opencode", "bash", "edit" }, { "amp", "Bash", "edit_file" }, { "gemini", NULL, NULL },
		{ "antigravity", NULL, NULL }, { "cursor", NULL, NULL } };
	static const struct sample deny = { .deny = "Bash Edit" }, allow = { .allowed = "Read" },
							   other = { .deny = "WebFetch" }, none = { 0 };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(clis); i++) {
		const struct sample *const cases[] = { &deny, &allow };
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		struct kr_harness harness;
		struct kr_agent_launch made;
		struct kr_policy policy;
		struct kr_error err = { 0 };

		load(&arena, clis[i].id, &harness);
		make_policy(&arena, &none, &policy);
		assert_int_equal(launch(&arena, &harness, &none, &policy, &made, &err),
			strcmp(clis[i].id, "cursor") == 0 ? -1 : 0); /* the control */
		for (size_t k = 0; k < KR_COUNT(cases); k++) {
			make_policy(&arena, cases[k], &policy);
			if (launch(&arena, &harness, cases[k], &policy, &made, &err) < 0) {
				assert_int_equal(err.code, KR_E_REFUSED);
				assert_null(clis[i].bash);
				continue;
			}
			assert_non_null(clis[i].bash);
			assert_true(keeps_from(&harness, &made, "Bash", clis[i].bash));
			assert_true(keeps_from(&harness, &made, "Edit", clis[i].edit));
			if (kr_harness_cap(&harness, KR_CAP_DENY_TOOLS)->via == KR_VIA_HOOK)
				continue; /* which of them is the gate's to say */
			make_policy(&arena, &other, &policy);
			assert_int_equal(launch(&arena, &harness, &other, &policy, &made, &err), 0);
			assert_false(keeps_from(&harness, &made, "Bash", clis[i].bash)); /* the control */
		}
	}
}

static void
no_file_of_a_workers_weakens_the_gate_CFG_03(void **state)
{
	static const char server[] =
		"{\"mcpServers\":{\"kraft\":{\"type\":\"http\",\"url\":\"http://kraft/mcp\"}}}";

	(void)state;
	for (size_t i = 0; i < KR_COUNT(samples); i++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		struct kr_harness harness;
		struct kr_agent_launch made;
		struct kr_policy policy;

		make_policy(&arena, &samples[i], &policy);
		load(&arena, "claude", &harness);
		if (launch(&arena, &harness, &samples[i], &policy, &made, NULL) == 0) {
			assert_string_equal(word_behind(&made, "--setting-sources"), "");
			assert_true(has_word(&made, "--strict-mcp-config"));
			assert_string_equal(word_behind(&made, "--mcp-config"), server);
			assert_string_equal(
				word_behind(&made, "--permission-prompt-tool"), "mcp__kraft__permission_request");
			assert_string_equal(word_behind(&made, "--permission-mode"), "default");
			assert_true(lists(word_behind(&made, "--disallowedTools"), "Monitor"));
		}
		load(&arena, "codex", &harness);
		if (launch(&arena, &harness, &samples[i], &policy, &made, NULL) == 0) {
			assert_true(has_word(&made, "--ignore-user-config") && has_word(&made, "--strict-config"));
			assert_true(has_word(&made, "features.unified_exec_tty=false"));
			assert_true(has_word(&made, "allow_login_shell=false"));
			assert_true(has_word(&made, "web_search=\"disabled\""));
			assert_true(has_word(&made, "sandbox_mode=\"danger-full-access\"")); /* CTR-08 */
			if (samples[i].is_open)
				continue;
			assert_true(has_word(&made, "features.hooks=true"));
			assert_true(
				has_word(&made, "hooks.PreToolUse=[{matcher=\"*\",hooks=[{type=\"command\",command="
								"\"/opt/kraft/bin/kraft admin permission-hook codex || (echo kraft does "
								"not answer >&2; exit 2)\",timeout=86400}]}]"));
		}
	}
}

/* Read-only is what a person asked for by name; workspace-write is only its usual mode. */
static void
the_mode_inside_of_walls_stands_in_place_of_the_usual_one_CTR_08(void **state)
{
	static const struct sample cases[] = { { 0 }, { .mode = "workspace-write" }, { .mode = "read-only" } };
	static const char *const want[] = { "sandbox_mode=\"danger-full-access\"",
		"sandbox_mode=\"danger-full-access\"", "sandbox_mode=\"read-only\"" };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		struct kr_harness harness;
		struct kr_agent_launch made;
		struct kr_policy policy = { 0 };

		load(&arena, "codex", &harness);
		assert_int_equal(launch(&arena, &harness, &cases[i], &policy, &made, NULL), 0);
		assert_true(has_word(&made, want[i]));
	}
}

static void
a_harness_is_only_started_where_it_may_be_CHN_10(void **state)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	static const struct sample none = { 0 };
	struct kr_policy_layer walls = { .sandbox.kind = KR_SANDBOX_DOCKER,
		.sandbox.unrestricted_network = true };
	struct kr_policy policy = { .has_allowed_harnesses = true };
	struct kr_agent_launch made;
	struct kr_harness harness;
	struct kr_error err = { 0 };

	(void)state;
	load(&arena, "claude", &harness);
	assert_int_equal(launch(&arena, &harness, &none, &policy, &made, &err), -1);
	assert_int_equal(err.code, KR_E_REFUSED);
	assert_non_null(strstr(err.message, "allowed_harnesses lack it"));
	kr_strs_add(&arena, &policy.allowed_harnesses, "claude");
	assert_int_equal(launch(&arena, &harness, &none, &policy, &made, &err), 0);
	harness.enabled = false;
	assert_int_equal(launch(&arena, &harness, &none, &policy, &made, &err), -1);
	assert_int_equal(err.code, KR_E_REFUSED);
	assert_non_null(strstr(err.message, "switched off"));

	policy = (struct kr_policy){ 0 };
	load(&arena, "cursor", &harness); /* CHN-10 */
	assert_int_equal(launch(&arena, &harness, &none, &policy, &made, &err), -1);
	assert_non_null(strstr(err.message, "goes around a proxy"));
	policy.sandbox = &walls;
	assert_int_equal(launch(&arena, &harness, &none, &policy, &made, &err), 0);
	walls.sandbox.unrestricted_network = false;
	assert_int_equal(launch(&arena, &harness, &none, &policy, &made, &err), -1);
}

/* Without a way to kraft: no word of MCP server or hook, and nothing that only they would keep. */
static void
in_an_open_network_nothing_is_promised_that_kraft_would_have_to_keep_CHN_11(void **state)
{
	static const struct {
		const char *id;
		struct sample sample;
		bool is_refused; /* for what nothing of kraft's can be asked about; else: as under a network policy */
	} cases[] = {
		{ "claude", { 0 }, true },
		{ "claude", { .deny = "Bash" }, true },
		{ "codex", { 0 }, false },
		{ "codex", { .grants = GRANT(COMMIT) }, false },
		{ "codex", { .grants = GRANT(PUSH) }, true },
		{ "codex", { .grants = GRANT(COMMIT) | GRANT(REBASE) }, true },
		{ "codex", { .deny = "Bash" }, true },
		{ "codex", { .allowed = "" }, true },
		{ "codex", { .ask = "Bash" }, true },
		{ "opencode", { .deny = "Bash" }, false },
		{ "opencode", { .allowed = "Read" }, false },
		{ "amp", { .deny = "Bash" }, false },
		{ "gemini", { 0 }, false },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		struct sample sample = cases[i].sample;
		struct kr_harness harness;
		struct kr_agent_launch made;
		struct kr_policy policy;
		struct kr_error err = { 0 };

		load(&arena, cases[i].id, &harness);
		make_policy(&arena, &sample, &policy);
		assert_int_equal(launch(&arena, &harness, &sample, &policy, &made, &err), 0); /* the control */
		sample.is_open = true;
		make_policy(&arena, &sample, &policy);
		assert_int_equal(launch(&arena, &harness, &sample, &policy, &made, &err), cases[i].is_refused ? -1 : 0);
		if (cases[i].is_refused) {
			assert_int_equal(err.code, KR_E_REFUSED);
			assert_non_null(strstr(err.message, "unrestricted_network"));
			assert_non_null(strstr(err.hint, "set 'network' in place of"));
			continue;
		}
		for (size_t k = 0; k < made.argv.n; k++) {
			assert_null(strstr(made.argv.v[k], "/opt/kraft/bin/kraft"));
			assert_null(strstr(made.argv.v[k], "http://kraft"));
		}
	}
}

/* Cursor goes around a proxy, so an open network is the only place for it, and it can hold no list there. */
static void
cursor_runs_in_an_open_network_and_only_without_a_policy_of_tools_CHN_11(void **state)
{
	static const struct sample refused[] = { { .is_open = true, .deny = "Bash" }, { .is_open = true, .allowed = "Read" },
		{ .is_open = true, .ask = "Bash" }, { .is_open = true, .grants = GRANT(PUSH) } };
	static const struct sample fine = { .is_open = true, .grants = GRANT(COMMIT) };
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_agent_launch made;
	struct kr_harness harness;
	struct kr_policy policy;
	struct kr_error err = { 0 };

	(void)state;
	load(&arena, "cursor", &harness);
	make_policy(&arena, &fine, &policy);
	assert_int_equal(launch(&arena, &harness, &fine, &policy, &made, &err), 0);
	for (size_t i = 0; i < KR_COUNT(refused); i++) {
		make_policy(&arena, &refused[i], &policy);
		assert_int_equal(launch(&arena, &harness, &refused[i], &policy, &made, &err), -1);
		assert_int_equal(err.code, KR_E_REFUSED);
	}
}

#define TOP "id: x\nkind: cli\ncommand: x\n"

/* A value never becomes a word of its own, a placeholder, or an option. */
static void
values_stay_values(void **state)
{
	static const char text[] = TOP "capabilities:\n"
								   "  model: {args: ['m={value}', -c, 'a={json}']}\n"
								   "  context: {args: [-c, 't={json}']}\n"
								   "  usage: {reader: none}\n"
								   "  prompt: {args: ['{value}']}\n"
								   "  effort: {args: [--effort, '{value}']}\n";
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_policy policy = { 0 };
	struct kr_agent_launch made;
	struct kr_harness harness;
	struct kr_error err = { 0 };
	struct kr_agent_want want = { .harness = &harness,
		.policy = &policy,
		.model = "{value}\"\\\n\x7f{settings}",
		.effort = "e",
		.context = "{json}",
		.prompt = "a 'b' {csv}",
		.settings_dir = "/s" };

	(void)state;
	parse(&arena, text, &harness);
	assert_int_equal(kr_agent_launch(&arena, &want, &made, &err), 0);
	assert_int_equal(made.argv.n, 9);
	assert_string_equal(made.argv.v[1], "m={value}\"\\\n\x7f{settings}");
	assert_string_equal(made.argv.v[3], "a=\"{value}\\\"\\\\\\n\\u007f{settings}\"");
	assert_string_equal(made.argv.v[5], "t=\"{json}\"");
	assert_string_equal(made.argv.v[8], "a 'b' {csv}"); /* bare, so it goes last */
	want.prompt = "--help";
	assert_int_equal(kr_agent_launch(&arena, &want, &made, &err), -1);
	assert_int_equal(err.code, KR_E_CONFIG);
	want.prompt = "x";
	want.effort = "--other";
	assert_int_equal(kr_agent_launch(&arena, &want, &made, &err), -1);
	assert_int_equal(err.code, KR_E_CONFIG);
	want.effort = "e";
	want.context = "\xff";
	assert_int_equal(kr_agent_launch(&arena, &want, &made, &err), -1);
	assert_non_null(strstr(err.message, "not UTF-8"));
}

static void
odd_names_and_ids_are_refused(void **state)
{
	static const char *const tools[] = { "", "-p", "a b", "Bash(git *)", "a,b", "a\"b", "*", ".",
		"\xc3\xa9" };
	static const char *const ids[] = { "", "-1", "a b", "a/b", "a\"b", "--last" };
	static const char *const keys[] = { "a\"b", "a\\b", "a\nb", "a b", "{", "" };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(tools); i++)
		for (int list = 0; list < 3; list++) {
			KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
			static const struct sample none = { 0 };
			struct kr_policy policy = { .has_allowed_tools = list == 0 };
			struct kr_strs *const lists_of[] = { &policy.allowed_tools, &policy.deny_tools,
				&policy.ask_tools };
			struct kr_agent_launch made;
			struct kr_harness harness;
			struct kr_error err = { 0 };

			kr_strs_add(&arena, lists_of[list], tools[i]);
			load(&arena, "claude", &harness);
			assert_int_equal(launch(&arena, &harness, &none, &policy, &made, &err), -1);
			assert_int_equal(err.code, KR_E_CONFIG);
		}
	for (size_t i = 0; i < KR_COUNT(ids); i++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		const struct sample resume = { .resume = ids[i] }, trust = { .key = keys[i] };
		struct kr_policy policy = { 0 };
		struct kr_agent_launch made;
		struct kr_harness harness;

		load(&arena, "codex", &harness);
		assert_int_equal(launch(&arena, &harness, &resume, &policy, &made, NULL), -1);
		assert_int_equal(launch(&arena, &harness, &trust, &policy, &made, NULL), -1);
	}
}

/* By a hook that never sees one of the tools. */
static void
a_tool_that_a_hook_never_sees_refuses_the_launch(void **state)
{
	static const char text[] =
		TOP "capabilities: {prompt: {via: stdin}, context: {via: prompt}, usage: {reader: none}, "
			"permission_hook: {args: ['{command}']}, deny_tools: {via: hook}, allowed_tools: {via: "
			"hook}, ask_tools: {via: hook}}\npermission_hook: codex\nunhooked_tools: [Web]\n";
	static const struct {
		struct sample want;
		const char *refused;
	} cases[] = {
		{ { .deny = "Bash" }, NULL },
		{ { .deny = "Web" }, "the policy denies 'Web'" },
		{ { .allowed = "Bash Web" }, NULL },
		{ { .allowed = "Bash" }, "allowed_tools lack 'Web'" },
		{ { .allowed = "" }, "allowed_tools lack 'Web'" },
		{ { .ask = "Bash" }, NULL },
		{ { .ask = "Web" }, "asks a person for 'Web'" },
		{ { .grants = GRANT(PUSH) }, NULL },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		struct kr_agent_launch made;
		struct kr_harness harness;
		struct kr_policy policy;
		struct kr_error err = { 0 };

		parse(&arena, text, &harness);
		make_policy(&arena, &cases[i].want, &policy);
		assert_int_equal(
			launch(&arena, &harness, &cases[i].want, &policy, &made, &err), cases[i].refused ? -1 : 0);
		if (cases[i].refused)
			assert_non_null(strstr(err.message, cases[i].refused));
	}
}

/* Tools that run unasked are not tools that alone run. */
static void
allowed_tools_as_words_keep_no_list(void **state)
{
	static const char text[] =
		TOP "capabilities: {prompt: {via: stdin}, context: {via: prompt}, usage: {reader: none}, "
			"allowed_tools: {args: [--allow, '{csv}']}%s}\n";
	static const struct sample sample = { .allowed = "Read" };
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_agent_launch made;
	struct kr_harness harness;
	struct kr_policy policy;
	struct kr_error err = { 0 };

	(void)state;
	make_policy(&arena, &sample, &policy);
	parse(&arena, kr_arena_printf(&arena, text, ""), &harness);
	assert_int_equal(launch(&arena, &harness, &sample, &policy, &made, &err), -1);
	assert_non_null(strstr(err.message, "nothing would keep others from running"));
	parse(&arena, kr_arena_printf(&arena, text, ", restrict_tools: {args: [--only, '{json}']}"), &harness);
	assert_int_equal(launch(&arena, &harness, &sample, &policy, &made, &err), 0);
	assert_string_equal(word_behind(&made, "--only"), "[\"Read\"]");
}

/* What a hook tells of is judged by the names that the harness file has for it. */
static void
a_call_is_judged_by_the_harnesss_names_of_its_tool(void **state)
{
	static const struct {
		const char *tool, *allowed, *deny;
		enum kr_permit permit;
	} cases[] = {
		{ "view_image", NULL, "Read", KR_PERMIT_DENY },
		{ "view_image", "Read", NULL, KR_PERMIT_ALLOW },
		{ "view_image", "Bash", NULL, KR_PERMIT_DENY },
		{ "apply_patch", NULL, "Edit", KR_PERMIT_DENY },
		{ "apply_patch", "Write", NULL, KR_PERMIT_DENY },
		{ "apply_patch", "Write Edit", NULL, KR_PERMIT_ALLOW },
		{ "webrun", NULL, "WebFetch", KR_PERMIT_DENY },
		{ "Bash", "Bash", NULL, KR_PERMIT_ALLOW },
		{ "Bash", NULL, "Read", KR_PERMIT_SILENT },
	};
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_harness harness;
	const struct kr_calls calls = { .harness = &harness }, bare = { 0 };

	(void)state;
	load(&arena, "codex", &harness);
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		const struct sample sample = { .allowed = cases[i].allowed, .deny = cases[i].deny };
		struct kr_call call = { .harness = KR_HARNESS_CODEX };
		struct kr_permit_verdict verdict;
		struct kr_policy policy;

		snprintf(call.tool, sizeof(call.tool), "%s", cases[i].tool);
		make_policy(&arena, &sample, &policy);
		kr_calls_judge(&calls, &policy, &call, &verdict);
		assert_int_equal(verdict.permit, cases[i].permit);
		if (strcmp(cases[i].tool, "apply_patch") != 0)
			continue;
		kr_calls_judge(&bare, &policy, &call, &verdict); /* kraft's own table has this one too */
		assert_int_equal(verdict.permit, cases[i].permit);
	}
}

/* ---- versions ---- */

static void
a_version_is_found_and_compared(void **state)
{
	static const struct {
		const char *printed, *version;
	} cases[] = {
		{ "2.1.197 (Claude Code)\n", "2.1.197" },
		{ "codex-cli 0.171.0\n", "0.171.0" },
		{ "v1.2", "1.2" },
		{ "built 2026, 3.4.5-beta.1", "3.4.5" },
		{ "no version 7 here", NULL },
		{ "1.", NULL },
		{ "", NULL },
	};
	static const struct {
		const char *a, *b;
		int order;
	} pairs[] = { { "2.1.197", "2.1.332", -1 }, { "2.1.332", "2.1.332", 0 }, { "0.171.0", "0.99.9", 1 },
		{ "1.2", "1.2.0", 0 }, { "1.2", "1.2.1", -1 }, { "10.0", "9.9", 1 }, { "1.02", "1.2", 0 },
		{ "99999999999999999999.1", "99999999999999999998.1", 1 } };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		const char *got = kr_agent_version(&arena, cases[i].printed, strlen(cases[i].printed));

		if (!cases[i].version)
			assert_null(got);
		else
			assert_string_equal(got, cases[i].version);
	}
	for (size_t i = 0; i < KR_COUNT(pairs); i++) {
		int order = kr_agent_version_compare(pairs[i].a, pairs[i].b);

		assert_int_equal((order > 0) - (order < 0), pairs[i].order);
		order = kr_agent_version_compare(pairs[i].b, pairs[i].a);
		assert_int_equal((order > 0) - (order < 0), -pairs[i].order);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_launch_is_what_was_read),
		cmocka_unit_test(a_tool_that_is_not_allowed_is_kept_from_running_or_nothing_is_launched_CTR_08),
		cmocka_unit_test(no_file_of_a_workers_weakens_the_gate_CFG_03),
		cmocka_unit_test(the_mode_inside_of_walls_stands_in_place_of_the_usual_one_CTR_08),
		cmocka_unit_test(a_harness_is_only_started_where_it_may_be_CHN_10),
		cmocka_unit_test(in_an_open_network_nothing_is_promised_that_kraft_would_have_to_keep_CHN_11),
		cmocka_unit_test(cursor_runs_in_an_open_network_and_only_without_a_policy_of_tools_CHN_11),
		cmocka_unit_test(values_stay_values),
		cmocka_unit_test(odd_names_and_ids_are_refused),
		cmocka_unit_test(a_tool_that_a_hook_never_sees_refuses_the_launch),
		cmocka_unit_test(allowed_tools_as_words_keep_no_list),
		cmocka_unit_test(a_call_is_judged_by_the_harnesss_names_of_its_tool),
		cmocka_unit_test(a_version_is_found_and_compared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
