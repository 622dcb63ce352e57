#include "work/agent.h"

#include "run/where.h"
#include "session/agent.h"
#include "work/brief.h"
#include "work/turn.h"
#include "work/usage.h"

/* ---- which one ---- */

/* A model is one harness's: it goes with the task's own. */
static bool
choose(const struct kr_work_view *v, const struct kr_task *task, struct kr_work_agent *out)
{
	const char *named = task ? task->harness : NULL, *id = v->row.harness ? v->row.harness : named;
	const bool is_named = id && named && strcmp(id, named) == 0;

	*out = (struct kr_work_agent){ id, is_named ? task->model : NULL, is_named ? task->effort : NULL };
	return id != NULL;
}

bool
kr_work_agent_of(const struct kr_work_view *v, const struct kr_task *task, struct kr_work_agent *out)
{
	return choose(v, task, out);
}

static const struct kr_task *
first_in_steps(const struct kr_chain_steps *steps)
{
	for (size_t s = 0; s < steps->n; s++)
		for (size_t t = 0; t < steps->v[s].task_count; t++)
			if (steps->v[s].tasks[t].kind == KR_TASK_AGENT)
				return &steps->v[s].tasks[t];
	return NULL;
}

static const struct kr_task *
first_in_node(const struct kr_node *node)
{
	const struct kr_chain_steps *const all[] = { &node->steps, &node->recovery, &node->fix };
	const struct kr_task *task = NULL;

	for (size_t i = 0; i < KR_COUNT(all) && !task; i++)
		task = first_in_steps(all[i]);
	return task;
}

bool
kr_work_agent_beside(const struct kr_work_view *v, const char *escalation, struct kr_work_agent *out)
{
	const struct kr_task *task =
		v->next.node < v->chain.node_count ? first_in_node(&v->chain.nodes[v->next.node]) : NULL;

	if (escalation && strcmp(escalation, "item") != 0) {
		*out = (struct kr_work_agent){ .harness = escalation };
		return true;
	}
	for (size_t i = 0; i < v->chain.node_count && !task; i++)
		task = first_in_node(&v->chain.nodes[i]);
	return choose(v, task, out);
}

static const char *
find_beside(struct kr_work *work, const struct kr_work_view *v, struct kr_policy *policy, const char **why)
{
	const struct kr_policy_layer *layers[KR_LAYER_COUNT];
	struct kr_work_agent agent;
	struct kr_error err = { 0 };
	struct kr_where where;

	*why = NULL;
	if (kr_where_find(work->arena, &work->host.places, v->row.repo, &where, &err) < 0 ||
		kr_work_policy(work, v, NULL, true, where.repo, layers, policy, &err) < 0)
		*why = kr_arena_dup(work->arena, err.message);
	else if (!v->row.worker && !kr_work_agent_beside(v, policy->escalation_harness, &agent))
		*why = "the item's chain has no agent, and the item neither a harness nor a command in its place";
	return *why || v->row.worker ? NULL : agent.harness;
}

const char *
kr_work_beside(struct kr_work *work, const struct kr_work_view *v, const char **why)
{
	struct kr_policy policy;

	return find_beside(work, v, &policy, why);
}

const char *
kr_work_no_reply(struct kr_work *work, const struct kr_work_view *v)
{
	struct kr_policy policy;
	const char *why;

	(void)find_beside(work, v, &policy, &why);
	if (why || kr_policy_has_channel(&policy))
		return why;
	return "an agent answers by 'kraft item reply', which does not work in a sandbox with 'unrestricted_network'";
}

const char *
kr_work_harness_of(struct kr_work *work, const struct kr_work_view *v, const struct kr_task *task)
{
	struct kr_work_agent agent;
	const char *why;

	if (v->row.worker || (task && task->kind != KR_TASK_AGENT))
		return NULL;
	if (!task)
		return kr_work_beside(work, v, &why);
	return kr_work_agent_of(v, task, &agent) ? agent.harness : NULL;
}

/* ---- what it said of itself ---- */

const struct kr_work_seen *
kr_work_see(struct kr_work *work, const char *id, const char *session)
{
	struct kr_work_seen *seen = kr_arena_new(work->arena, struct kr_work_seen);
	struct kr_harness harness;

	if (!id || !session || kr_harness_load(work->arena, &work->host.places, id, &harness, NULL) < 0)
		return NULL;
	*seen = (struct kr_work_seen){ .reader = harness.reader };
	return kr_agent_stream_read(work->host.places.run_dir, session, harness.reader, &seen->seen, NULL) < 0 ? NULL : seen;
}

const char *
kr_work_last_words(struct kr_work *work, const struct kr_work_view *v, const char *session)
{
	const struct kr_work_seen *seen = NULL;

	for (size_t i = 0; session && i < v->sessions.n; i++)
		if (strcmp(v->sessions.v[i].id, session) == 0)
			seen = kr_work_see(work, v->sessions.v[i].harness, session);
	return seen && *seen->seen.said ? seen->seen.said : kr_work_tail(work, session, KR_BRIEF_TAIL);
}

void
kr_work_take_seen(const struct kr_work_view *v, const struct kr_work_seen *seen, struct kr_session_row *s)
{
	if (!seen)
		return;
	if (*seen->seen.model)
		s->model = seen->seen.model;
	if (*seen->seen.conversation)
		s->conversation = seen->seen.conversation;
	kr_work_usage_of(v, s, seen->reader, &seen->seen, &s->usage);
}

/* ---- a conversation that broke off ---- */

static bool
broke_off(const struct kr_session_row *s, enum kr_break *why)
{
	static const char *const names[] = { [KR_BREAK_PAUSE] = KR_SESSION_PAUSED, [KR_BREAK_LIMIT] = KR_SESSION_LIMITED,
		[KR_BREAK_CRASH] = "unknown" };

	for (size_t i = 0; i < KR_COUNT(names); i++)
		if (strcmp(s->status, names[i]) == 0) {
			*why = (enum kr_break)i;
			return true;
		}
	return false;
}

/* Whatever came after it, a person's word or another task, lets the task begin anew. */
static const struct kr_session_row *
find_broken(const struct kr_work_task *t, const struct kr_harness *harness, enum kr_break *why)
{
	const struct kr_work_view *v = t->view;
	const struct kr_session_row *last = NULL;

	for (size_t i = 0; i < v->sessions.n; i++)
		if (strcmp(v->sessions.v[i].path, t->task->path) == 0 && strcmp(v->sessions.v[i].id, t->session) != 0)
			last = &v->sessions.v[i];
	if (!last || t->instruct || t->is_anew || !kr_harness_cap(harness, KR_CAP_RESUME) || last->run != v->row.run ||
		!last->conversation || !last->harness || strcmp(last->harness, harness->id) != 0 || !broke_off(last, why))
		return NULL;
	return v->marks.n && v->marks.v[v->marks.n - 1].ms > last->created_ms ? NULL : last;
}

/* ---- its caps ---- */

/* One that its harness cannot keep to is refused: it would be no cap. True: it may begin. */
static bool
check_caps(struct kr_work *work, const struct kr_work_task *t, const struct kr_harness *harness,
	const struct kr_work_launch *launch, struct kr_work_outcome *out)
{
	const double *bounds = launch->policy.bounds;
	struct kr_spent spent;
	struct kr_left left;

	if (bounds[KR_BOUND_BUDGET] > 0 && harness->reader != KR_READER_CLAUDE) {
		kr_work_refuse(out, kr_arena_printf(work->arena,
			"'%s' does not tell what it costs, so budget_usd (of %s) cannot be kept; token_budget %s", harness->id,
			kr_layer_words(launch->policy.bound_from[KR_BOUND_BUDGET]),
			harness->reader == KR_READER_NONE ? "cannot either" : "can"));
		return false;
	}
	if (bounds[KR_BOUND_TOKENS] > 0 && harness->reader == KR_READER_NONE) {
		kr_work_refuse(out,
			kr_arena_printf(work->arena, "'%s' does not tell what it uses, so token_budget (of %s) cannot be kept",
				harness->id, kr_layer_words(launch->policy.bound_from[KR_BOUND_TOKENS])));
		return false;
	}
	kr_work_spent(t->view, true, &spent);
	kr_work_left(&spent, bounds, &left);
	if (!left.is_used_up)
		return true;
	out->kind = KR_MARK_BUDGET;
	out->breach = kr_bound_name(left.by);
	out->reason = kr_arena_printf(
		work->arena, "nothing is left of %s %.15g; a retry counts anew", out->breach, bounds[left.by]);
	return false;
}

/* ---- the launch ---- */

static const char *
context_of(struct kr_work *work, const struct kr_work_task *t, const struct kr_work_launch *launch, bool is_words)
{
	const struct kr_policy_layer *walls = launch->policy.sandbox;
	const bool is_image = walls && walls->sandbox.kind != KR_SANDBOX_OS;
	const struct kr_brief_context context = {
		.has_channel = kr_policy_has_channel(&launch->policy),
		.is_image = is_image,
		.may_push = launch->policy.grants >> KR_GRANT_INDEX_PUSH & 1,
		.is_reader = t->put_back,
		.is_by_result = !is_words,
		.result = is_words || (work->host.os == KR_SYSTEM_MACOS && !is_image) ? NULL : KR_AGENT_RESULT,
	};

	return kr_brief_context_text(work->arena, &context);
}

/* No prompt begins with what a person wrote: a CLI may take "/..." for a command of its own. */
static const char *
prompt_of(struct kr_work *work, const struct kr_work_task *t, const struct kr_repo *repo,
	const struct kr_work_launch *launch, enum kr_break why)
{
	const struct kr_brief brief = { .steer = t->steer,
		.is_agents_steer = t->steer && kr_turn_says(work->arena, t->view, t->steer) };

	return launch->resumed
			   ? kr_brief_resume_text(work->arena, why, &brief)
			   : kr_arena_printf(
					 work->arena, "Work item: %s", kr_work_instruction(work, t, repo, &launch->policy));
}

static const struct kr_run_agent *
make_agent(struct kr_work *work, const struct kr_work_task *t, const struct kr_repo *repo,
	const struct kr_harness *harness, const struct kr_work_agent *wanted, struct kr_work_launch *launch)
{
	struct kr_run_agent *agent = kr_arena_new(work->arena, struct kr_run_agent);
	enum kr_break why = KR_BREAK_PAUSE;

	launch->resumed = find_broken(t, harness, &why);
	*agent = (struct kr_run_agent){ .harness = harness,
		.model = wanted->model,
		.effort = wanted->effort,
		.context = context_of(work, t, launch, false),
		.prompt = prompt_of(work, t, repo, launch, why),
		.resume = launch->resumed ? launch->resumed->conversation : NULL,
		.is_rendered = t->show };
	return agent;
}

static void
find_harness(struct kr_work *work, const struct kr_work_task *t, const struct kr_repo *repo, struct kr_work_launch *launch,
	struct kr_work_outcome *out)
{
	struct kr_harness *harness = kr_arena_new(work->arena, struct kr_harness);
	struct kr_error err = { 0 };
	struct kr_work_agent wanted;

	if (!(t->instruct ? kr_work_agent_beside(t->view, launch->policy.escalation_harness, &wanted)
					  : kr_work_agent_of(t->view, t->task, &wanted)))
		kr_work_refuse(out, "neither the task nor the item names a harness: 'harness' in the chain, or 'kraft item create "
							"--harness', does");
	else if (kr_harness_load(work->arena, &work->host.places, wanted.harness, harness, &err) < 0)
		kr_work_refuse(out, kr_arena_printf(work->arena, "%s%s%s", err.message, *err.hint ? "; " : "", err.hint));
	else if (check_caps(work, t, harness, launch, out))
		launch->agent = make_agent(work, t, repo, harness, &wanted, launch);
}
void
kr_work_find_agent(struct kr_work *work, const struct kr_work_task *t, const struct kr_repo *repo,
	struct kr_work_launch *launch, struct kr_work_outcome *out)
{
	launch->commit = !t->put_back;
	launch->argv = kr_work_words_of(work->arena, t->view->row.worker);
	if (!launch->argv)
		find_harness(work, t, repo, launch, out);
	else
		launch->instruction = kr_arena_printf(
			work->arena, "%s\n%s", kr_work_instruction(work, t, repo, &launch->policy),
			context_of(work, t, launch, true));
}

/* ---- how it came out ---- */

enum { MINUTE_MS = 60000, LIMIT_DAYS = 8 };

/* How often in a row it was turned away before it had said a word. */
static unsigned
count_turned_away(const struct kr_work_task *t)
{
	const struct kr_session_rows *rows = &t->view->sessions;
	unsigned n = 0;

	for (size_t i = rows->n; i-- > 0;) {
		const struct kr_session_row *s = &rows->v[i];

		if (strcmp(s->path, t->task->path) != 0 || strcmp(s->id, t->session) == 0)
			continue;
		if (s->run != t->view->row.run || strcmp(s->status, KR_SESSION_LIMITED) != 0 || s->usage.output > 0)
			break;
		n++;
	}
	return n;
}

/* A time that is over, or further away than any limit lasts, is none. */
static uint64_t
retry_ms(const struct kr_agent_seen *seen, unsigned before)
{
	static const unsigned minutes[] = { 1, 2, 5, 10, 15 };
	const uint64_t now = kr_now_ms(), most = now + (uint64_t)LIMIT_DAYS * 24 * 60 * MINUTE_MS;

	if (seen->resets_ms > now && seen->resets_ms < most)
		return seen->resets_ms + 1000;
	return now + (uint64_t)MINUTE_MS * minutes[before < KR_COUNT(minutes) ? before : KR_COUNT(minutes) - 1];
}

static void
judge_limit(
	struct kr_work *work, const struct kr_work_task *t, const struct kr_agent_seen *seen, struct kr_work_outcome *out)
{
	const unsigned before = count_turned_away(t);
	const char *kind =
		*seen->limit_kind ? kr_arena_printf(work->arena, " (%s)", seen->limit_kind) : "";
	char clock[KR_CLOCK_WORDS];

	if (before >= t->view->policy.rate_limit_retries) {
		out->kind = KR_MARK_CAPPED;
		out->reason = kr_arena_printf(work->arena,
			"its provider has turned it away%s %u times in a row (rate_limit_retries); 'kraft item retry' tries again", kind,
			before + 1);
		return;
	}
	out->kind = KR_MARK_UNKNOWN; /* of a session beside the chain, which does not wait */
	out->retry_ms = retry_ms(seen, before);
	out->limit_kind = *seen->limit_kind ? seen->limit_kind : "";
	out->reason = kr_arena_printf(work->arena, "its provider turns it away%s until %s", kind,
		kr_work_clock_words(out->retry_ms, clock));
}

static const char *
list_words(struct kr_arena *arena, const struct kr_strs *words, const char *last)
{
	const char *text = "";

	for (size_t i = 0; i < words->n; i++)
		text = kr_arena_printf(arena, "%s%s%s", text, !i ? "" : i + 1 == words->n ? last : ", ", words->v[i]);
	return text;
}

/* The first line. */
static const char *
said_of(struct kr_work *work, const struct kr_agent_seen *seen)
{
	return *seen->said ? kr_arena_printf(work->arena, ": %.*s", (int)strcspn(seen->said, "\n"), seen->said) : "";
}

static void
judge_failed(struct kr_work *work, const struct kr_work_task *t, const struct kr_work_launch *launch, int status,
	const struct kr_agent_seen *seen, struct kr_work_outcome *out)
{
	out->kind = KR_MARK_FAILED;
	out->reason = seen && *seen->said
					  ? kr_arena_printf(work->arena, "it left no result; it ended with%s", said_of(work, seen))
					  : kr_arena_printf(work->arena,
							"it left no result, and ended with %d; 'kraft view logs %s' has what it said", status, t->session);
	/* Its conversation is gone: nothing was said in it. */
	if (launch->resumed && status && (!seen || seen->usage.output <= 0)) {
		out->is_worth_another = true;
		out->reason = kr_arena_printf(work->arena, "its conversation could not go on; %s", out->reason);
	}
}

void
kr_work_judge_agent(struct kr_work *work, const struct kr_work_task *t, const struct kr_work_launch *launch, int status,
	struct kr_work_outcome *out)
{
	const struct kr_agent_seen *seen = out->seen ? &out->seen->seen : NULL;
	const struct kr_harness *harness = launch->agent->harness;
	struct kr_arena *arena = work->arena;

	switch (seen ? seen->trouble : KR_TROUBLE_NONE) {
	case KR_TROUBLE_RATE_LIMIT:
		judge_limit(work, t, seen, out);
		break;
	case KR_TROUBLE_LOGIN:
		kr_work_refuse(out, kr_arena_printf(arena, "its login was refused%s; look at %s, then 'kraft item retry'",
			said_of(work, seen), harness->login.n ? list_words(arena, &harness->login, " or ") : "its variables"));
		break;
	case KR_TROUBLE_UNREACHABLE:
		kr_work_refuse(out, kr_arena_printf(arena,
			"it could not reach its model%s; it needs %s: 'kraft view events --session %s' tells what was refused",
			said_of(work, seen), harness->hosts.n ? list_words(arena, &harness->hosts, " and ") : "a host", t->session));
		break;
	case KR_TROUBLE_GATE:
		kr_work_refuse(out,
			kr_arena_printf(arena, "it did not find kraft's permission tool%s; 'kraft item retry' starts it again",
				said_of(work, seen)));
		out->is_worth_another = true;
		break;
	default:
		judge_failed(work, t, launch, status, seen, out);
	}
}
