/*
 * A harness file, and harnesses.yaml. Beyond "no crash": a refusal has its place; what loads has each
 * capability once, goes by no hook or rules that it does not name, holds no placeholder that nobody fills,
 * and reads the same from the text it kept; and a launch of it under a policy is words, or a refusal with its
 * reason.
 */
#include "agent/agent.h"
#include "base/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct kr_places places = {
	.home = "/home/you",
	.kraft_home = "/home/you/.kraft",
	.run_dir = "/home/you/.kraft/run",
	.config_dir = "/home/you/.kraft/config",
};

static void
check_words(const struct kr_strs *words)
{
	for (size_t i = 0; i < words->n; i++) {
		enum kr_placeholder which;
		size_t n;

		for (const char *at = words->v[i]; (at = kr_placeholder_find(at, &which, &n)); at += n)
			KR_BUG_IF(which == KR_PLACEHOLDER_COUNT || n < 3 || at[0] != '{' || at[n - 1] != '}');
	}
}

static void
check_cap(const struct kr_harness *harness, const struct kr_cap *cap)
{
	KR_BUG_IF(kr_harness_cap(harness, cap->kind) != cap); /* each once */
	KR_BUG_IF(cap->via == KR_VIA_HOOK && !harness->hook);
	KR_BUG_IF(cap->via == KR_VIA_RULES && !harness->rules);
	KR_BUG_IF(cap->always && cap->values.n && !kr_strs_has(&cap->values, cap->always));
	check_words(&cap->args);
	check_words(&cap->trust);
	check_words(&cap->command);
}

static void
check_harness(const struct kr_harness *harness)
{
	KR_BUG_IF(!harness->id || !harness->provider || !*harness->command || !harness->version.n);
	KR_BUG_IF(strchr(harness->command, '/') && !kr_path_is_clean(harness->command));
	KR_BUG_IF(harness->hook && !kr_harness_cap(harness, KR_CAP_PERMISSION_HOOK));
	for (int i = KR_CAP_PROMPT; i <= KR_CAP_USAGE; i++)
		KR_BUG_IF(!kr_harness_cap(harness, (enum kr_capability)i));
	for (size_t i = 0; i < harness->cap_count; i++)
		check_cap(harness, &harness->caps[i]);
}

/* A list that holds has a way by which it does. */
static void
check_kept(const struct kr_harness *harness, const struct kr_policy *policy)
{
	const struct kr_cap *deny = kr_harness_cap(harness, KR_CAP_DENY_TOOLS),
						*allow = kr_harness_cap(harness, KR_CAP_ALLOWED_TOOLS);

	KR_BUG_IF(
		policy->deny_tools.n &&
		(!deny || (deny->via != KR_VIA_ARGS && kr_strs_has(&harness->unhooked, policy->deny_tools.v[0]))));
	KR_BUG_IF(policy->has_allowed_tools && !kr_harness_cap(harness, KR_CAP_RESTRICT_TOOLS) &&
			  (!allow || allow->via == KR_VIA_ARGS));
	KR_BUG_IF(policy->ask_tools.n && !policy->deny_tools.n && !kr_harness_cap(harness, KR_CAP_ASK_TOOLS));
	KR_BUG_IF(!harness->proxy_aware);
}

static void
check_launch(struct kr_arena *arena, const struct kr_harness *harness, unsigned which)
{
	struct kr_policy policy = { .has_allowed_tools = which & 1, .grants = which >> 3 & 7 };
	const struct kr_agent_want want = { .harness = harness,
		.policy = &policy,
		.context = which & 64 ? "" : "context {value}",
		.prompt = "prompt \"{json}\"",
		.model = which & 128 ? "model" : NULL,
		.resume = which & 256 ? "id" : NULL,
		.settings_dir = "/s",
		.hook_key = which & 512 ? "/a:b" : NULL,
		.hook_hash = which & 512 ? "sha256:0" : NULL };
	struct kr_agent_launch launch;
	struct kr_error err = { 0 };

	kr_strs_add(arena, &policy.allowed_tools, "Bash");
	if (which & 2)
		kr_strs_add(arena, &policy.deny_tools, "Bash");
	if (which & 4)
		kr_strs_add(arena, &policy.ask_tools, "Bash");
	if (kr_agent_launch(arena, &want, &launch, &err) < 0) {
		KR_BUG_IF(!err.message[0] ||
				  (err.code != KR_E_CONFIG && err.code != KR_E_REFUSED && err.code != KR_E_LIMIT));
		return;
	}
	KR_BUG_IF(!launch.argv.n || strcmp(launch.argv.v[0], harness->command) != 0);
	KR_BUG_IF((launch.file_count != 0) != (harness->rules != NULL));
	check_kept(harness, &policy);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_harness harness, again;
	struct kr_error err = { 0 };
	/* Exactly n bytes, so that reading one too many is seen. */
	kr_auto_free char *bytes = kr_xcalloc(1, n ? n : 1);

	if (n)
		memcpy(bytes, data, n);
	if (kr_harnesses_check(&arena, &places, "f", bytes, n, &err) < 0)
		KR_BUG_IF(err.code != KR_E_CONFIG || !err.place.line || !err.message[0]);
	err = (struct kr_error){ 0 };
	if (kr_harness_parse(&arena, &places, "f", NULL, bytes, n, &harness, &err) < 0) {
		KR_BUG_IF(err.code != KR_E_CONFIG || !err.place.line || !err.message[0]);
		return 0;
	}
	check_harness(&harness);
	KR_BUG_IF(harness.text_len != n || memcmp(harness.text, bytes, n) != 0);
	KR_BUG_IF(
		kr_harness_parse(&arena, &places, "f", harness.id, harness.text, harness.text_len, &again, NULL) < 0);
	KR_BUG_IF(again.cap_count != harness.cap_count);
	for (unsigned which = 0; which < 1024; which += 1 + n % 61)
		check_launch(&arena, &harness, which);
	return 0;
}
