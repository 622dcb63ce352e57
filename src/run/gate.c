/*
 * The proof itself; see gate.h. What is asked and played inside is guest/prove.c's, what the answer means
 * agent/hook_list.c's.
 *
 * The words are those of a launch (agent/agent.h), without a policy: so the hook, its trust and the settings
 * that make a worker's files powerless are the same as later. The listing takes over only its settings ("-c
 * ..."), since the rest are words of another subcommand. Everything runs away from the worktree with a home
 * that is thrown away, so nothing that a worker left can make the proof come out well; the worktree is named
 * only as what the hooks are listed for.
 */
#include "run/gate.h"

#include <jansson.h>
#include <stdio.h>

#include "agent/hook_list.h"
#include "os/powerless.h"
#include "run/internal.h"

/* The guest has its own deadline, which is sooner. */
enum { ANSWER_BYTES = 300 << 10, LIMIT_MS = 60000 };

#define GUEST_KRAFT "/opt/kraft/bin/kraft"

struct proof {
	struct kr_run_state *run;
	struct kr_harness harness;
	struct kr_policy policy; /* none */
	struct kr_agent_want want;
};

/* ---- words ---- */

static bool
is_setting(const char *word)
{
	static const char *const names[] = { "-c", "--config", "--enable", "--disable" };

	for (size_t i = 0; i < KR_COUNT(names); i++)
		if (strcmp(word, names[i]) == 0)
			return true;
	return false;
}

static struct kr_strs
listing_words(struct kr_arena *arena, const struct kr_strs *launch)
{
	struct kr_strs words = { 0 };

	kr_strs_add(arena, &words, launch->v[0]);
	kr_strs_add(arena, &words, "app-server");
	for (size_t i = 1; i + 1 < launch->n; i++)
		if (is_setting(launch->v[i])) {
			kr_strs_add(arena, &words, launch->v[i]);
			kr_strs_add(arena, &words, launch->v[++i]);
		}
	return words;
}

/* Its model is the one that guest/prove.c plays; before the words that end with the prompt. */
static struct kr_strs
call_words(struct kr_arena *arena, const struct kr_strs *launch)
{
	const char *provider = kr_arena_printf(arena,
		"model_providers.kraft-proof={name=\"kraft\",base_url=\"http://127.0.0.1:%d/"
		"v1\",wire_api=\"responses\"}",
		KG_PROOF_PORT);
	const char *const model[] = { "-c", provider, "-c", "model_provider=\"kraft-proof\"" };
	struct kr_strs words = { 0 };
	bool is_in = false;

	for (size_t i = 0; i <= launch->n; i++) {
		bool is_end = i == launch->n || strcmp(launch->v[i], "-") == 0 || strcmp(launch->v[i], "--") == 0;

		for (size_t k = 0; is_end && !is_in && k < KR_COUNT(model); k++)
			kr_strs_add(arena, &words, model[k]);
		is_in = is_in || is_end;
		if (i < launch->n)
			kr_strs_add(arena, &words, launch->v[i]);
	}
	return words;
}

/* ---- a short run ---- */

/* `what` is a word of prove-hook's. */
static int
ask(const struct proof *proof, const char *what, const struct kr_agent_launch *launch,
	const struct kr_strs *words, const char *in, struct kr_buf *answer, struct kr_job *job,
	struct kr_error *err)
{
	const char *const starter[] = { GUEST_KRAFT, "admin", "prove-hook", proof->harness.hook, what, "--",
		NULL };
	const struct kr_strs none = { 0 };
	const struct kr_plan_agent agent = { .id = proof->harness.id,
		.hosts = &none,
		.env = launch->env,
		.env_count = launch->env_count,
		.files = &none };
	const struct kr_run_question question = {
		.argv = words->v,
		.starter = starter,
		.cwd = "/",
		.in = in,
		.in_len = in ? strlen(in) : 0,
		.limit_ms = LIMIT_MS,
		.agent = &agent,
	};

	if (kr_run_ask_inside(proof->run, "gate", &question, answer, job, err) < 0)
		return kr_wrap(err, "whether '%s' heeds its hook", proof->harness.id);
	return 0;
}

/* What it printed is in the log. */
static int
fail_run(const struct kr_job *job, struct kr_error *err)
{
	return kr_hint(err, "nothing was launched; 'kraft view logs %s' has what it said", job->paths.id);
}

/* ---- the two listings ---- */

static int
list(const struct proof *proof, const struct kr_agent_want *want, struct kr_hook_list *out,
	struct kr_error *err)
{
	kr_auto_buf struct kr_buf answer = KR_BUF(ANSWER_BYTES);
	struct kr_agent_launch launch;
	struct kr_strs words;
	struct kr_job job;

	if (kr_agent_launch(proof->run->arena, want, &launch, err) < 0)
		return -1;
	words = listing_words(proof->run->arena, &launch.argv);
	if (ask(proof, "list", &launch, &words,
			kr_hook_list_question(proof->run->arena, proof->run->item.worktree), &answer, &job, err) < 0)
		return -1;
	if (kr_session_exit_status(&job.end) != 0) {
		kr_fail(err, KR_E_GATE_UNPROVEN, "'%s app-server' does not say which hooks it has", proof->harness.command);
		return fail_run(&job, err);
	}
	json_object_seed(0); /* it would open a file for that */
	if (kr_powerless_parse(kr_hook_list_parse, answer.data, answer.len, out, sizeof(*out), err) < 0)
		return kr_wrap(err, "what '%s' says of its hooks", proof->harness.id);
	kr_hook_list_check(out);
	return 0;
}

/* Our hook, as it is listed by want's words. */
static int
find_hook(const struct proof *proof, const struct kr_agent_want *want, const struct kr_hook *known,
	struct kr_hook *out, struct kr_error *err)
{
	const char *command = kr_arena_printf(proof->run->arena, KR_AGENT_HOOK_COMMAND, proof->harness.hook);
	struct kr_hook_list *listed = kr_arena_new(proof->run->arena, struct kr_hook_list);
	const struct kr_hook *found;

	if (list(proof, want, listed, err) < 0 ||
		!(found = kr_hook_list_find(listed, proof->harness.id, command, known, err)))
		return -1;
	*out = *found;
	return 0;
}

/* ---- the two calls ---- */

/* Exit statuses of prove-hook call. */
enum { DENIED = 0, RAN = 1 };

/* *status: how it came out. */
static int
try_call(const struct proof *proof, const struct kr_agent_want *want, struct kr_job *job, int *status,
	struct kr_error *err)
{
	kr_auto_buf struct kr_buf answer = KR_BUF(ANSWER_BYTES);
	struct kr_agent_launch launch;
	struct kr_strs words;

	if (kr_agent_launch(proof->run->arena, want, &launch, err) < 0)
		return -1;
	words = call_words(proof->run->arena, &launch.argv);
	if (ask(proof, "call", &launch, &words, launch.input, &answer, job, err) < 0)
		return -1;
	*status = kr_session_exit_status(&job->end);
	return 0;
}

static int
prove_denial(const struct proof *proof, const struct kr_agent_want *want, struct kr_error *err)
{
	struct kr_job job;
	int status;

	if (try_call(proof, want, &job, &status, err) < 0)
		return -1;
	if (status == DENIED)
		return 0;
	if (status == RAN)
		kr_fail(err, KR_E_GATE_UNPROVEN, "'%s' ran a call that its hook denied", proof->harness.id);
	else
		kr_fail(err, KR_E_REFUSED,
			"it cannot be told whether '%s' heeds its hook: it did not make the call that was to "
			"be denied, or did not end",
			proof->harness.id);
	return fail_run(&job, err);
}

/* Else the call did not run for another reason than the hook. */
static int
prove_call(const struct proof *proof, const struct kr_agent_want *want, struct kr_error *err)
{
	struct kr_harness bare = proof->harness;
	struct kr_agent_want without = *want;
	struct kr_job job;
	int status;

	bare.caps = kr_arena_alloc(proof->run->arena, bare.cap_count * sizeof(*bare.caps));
	bare.cap_count = 0;
	for (size_t i = 0; i < proof->harness.cap_count; i++)
		if (proof->harness.caps[i].kind != KR_CAP_PERMISSION_HOOK)
			bare.caps[bare.cap_count++] = proof->harness.caps[i];
	without.harness = &bare;
	without.hook_key = without.hook_hash = NULL;
	if (try_call(proof, &without, &job, &status, err) < 0)
		return -1;
	if (status == RAN)
		return 0;
	kr_fail(err, KR_E_REFUSED,
		"it cannot be told whether '%s' heeds its hook: the call that was denied does not run without it "
		"either",
		proof->harness.id);
	return fail_run(&job, err);
}

int
kr_gate_prove(
	struct kr_run_state *run, const struct kr_agent_want *want, struct kr_gate *out, struct kr_error *err)
{
	struct proof *proof = kr_arena_new(run->arena, struct proof);
	struct kr_hook *ours = kr_arena_new(run->arena, struct kr_hook),
				   *again = kr_arena_new(run->arena, struct kr_hook);

	*proof = (struct proof){ .run = run, .harness = *want->harness };
	proof->want = (struct kr_agent_want){
		.harness = &proof->harness,
		.policy = &proof->policy,
		.context = "",
		.prompt = "Go on.",
		.settings_dir = want->settings_dir,
	};
	if (find_hook(proof, &proof->want, NULL, ours, err) < 0)
		return -1;
	proof->want.hook_key = ours->key;
	proof->want.hook_hash = ours->hash;
	if (find_hook(proof, &proof->want, ours, again, err) < 0 || prove_denial(proof, &proof->want, err) < 0 ||
		prove_call(proof, &proof->want, err) < 0)
		return -1;
	snprintf(out->key, sizeof(out->key), "%s", ours->key);
	snprintf(out->hash, sizeof(out->hash), "%s", ours->hash);
	return 0;
}
