#include "run/where.h"
#include "work/agent.h"
#include "work/brief.h"
#include "work/turn.h"

/* ---- what it is told ---- */

static const char *
command_of(const struct kr_task *task, const struct kr_repo *repo)
{
	return task->kind == KR_TASK_COMMAND   ? task->command
		   : task->kind == KR_TASK_BUILTIN ? repo->test_command
										   : NULL;
}

/* Who mends is told what failed. */
static void
add_failures(
	struct kr_work *work, const struct kr_work_task *t, const struct kr_repo *repo, struct kr_brief *brief)
{
	const struct kr_work_view *v = t->view;
	struct kr_brief_failure *list = kr_arena_alloc(work->arena, KR_BRIEF_FAILURES * sizeof(*list));
	const struct kr_brief_failed *failed;
	size_t n;

	failed = kr_brief_failed(work->arena, &v->chain.nodes[v->next.node], &v->marks, &n);
	for (size_t i = 0; i < n && i < KR_BRIEF_FAILURES; i++)
		list[brief->failure_count++] = (struct kr_brief_failure){
			.path = failed[i].task->path,
			.command = command_of(failed[i].task, repo),
			.reason = failed[i].mark->note,
			.output = kr_work_last_words(work, v, failed[i].mark->session),
		};
	brief->failures = list;
	brief->left_out = n - brief->failure_count;
}

/* What stopped the item, where it is none of what failed when its node was measured: a repair, what could not
 * start. */
static void
add_stop(struct kr_work *work, const struct kr_work_view *v, struct kr_brief *brief)
{
	struct kr_brief_failure *list;
	const struct kr_mark_row *mark = NULL;

	for (size_t i = 0; v->next.kind == KR_NEXT_STOP && i < v->marks.n; i++)
		if (strcmp(v->marks.v[i].path, v->next.path) == 0 && v->marks.v[i].session)
			mark = &v->marks.v[i];
	for (size_t i = 0; mark && i < brief->failure_count; i++)
		if (strcmp(brief->failures[i].path, mark->path) == 0)
			mark = NULL;
	if (!mark)
		return;
	list = kr_arena_alloc(work->arena, (brief->failure_count + 1) * sizeof(*list));
	memcpy(list, brief->failures, brief->failure_count * sizeof(*list));
	list[brief->failure_count++] = (struct kr_brief_failure){
		.path = mark->path, .reason = mark->note, .output = kr_work_last_words(work, v, mark->session)
	};
	brief->failures = list;
}

const char *
kr_work_instruction(
	struct kr_work *work, const struct kr_work_task *t, const struct kr_repo *repo, const struct kr_policy *policy)
{
	const struct kr_item_row *row = &t->view->row;
	struct kr_brief brief = {
		.title = row->title,
		.description = row->description,
		.steer = t->steer,
		.is_agents_steer = t->steer && kr_turn_says(work->arena, t->view, t->steer),
		.prompt = t->task->prompt,
		.has_channel = kr_policy_has_channel(policy),
	};

	if (t->instruct && t->view->next.kind == KR_NEXT_STOP) {
		add_failures(work, t, repo, &brief);
		add_stop(work, t->view, &brief);
	}
	if (t->instruct)
		return t->instruct(work, t, &brief);
	if (kr_brief_is_repair(t->task->path))
		add_failures(work, t, repo, &brief);
	return kr_brief_text(work->arena, &brief);
}

/* ---- what is to run ---- */

void
kr_work_refuse(struct kr_work_outcome *out, const char *reason)
{
	out->kind = KR_MARK_CONFIG;
	out->reason = reason;
}

static void
find_tests(
	struct kr_work *work, const struct kr_repo *repo, struct kr_work_launch *launch, struct kr_work_outcome *out)
{
	const char **argv;

	if (!repo->test_command) {
		kr_work_refuse(out,
			kr_arena_printf(work->arena,
				"'%s' has no test_command in repos.yaml; \"\" there says that there are no tests", repo->name));
		return;
	}
	if (!*repo->test_command) {
		out->reason = "the repository says that it has no tests";
		return;
	}
	argv = kr_arena_alloc(work->arena, 4 * sizeof(*argv));
	memcpy(argv, (const char *const[]){ "/bin/sh", "-c", repo->test_command, NULL }, 4 * sizeof(*argv));
	launch->argv = argv;
}

/* What the sessions of a path (NULL: of all) have taken since a person last let them begin anew. */
static double
spent_s(const struct kr_work_view *v, const char *path)
{
	uint64_t ms = 0;

	for (size_t i = 0; i < v->sessions.n; i++) {
		const struct kr_session_row *s = &v->sessions.v[i];

		if (s->run == v->row.run && s->ended_ms > s->created_ms && (!path || strcmp(s->path, path) == 0))
			ms += s->ended_ms - s->created_ms;
	}
	return (double)ms / 1000;
}

static void
apply_cap(const struct kr_work_view *v, const char *path, enum kr_bound bound, struct kr_work_launch *launch)
{
	const double cap_s = launch->policy.bounds[bound] * 60, left_s = cap_s - spent_s(v, path);

	if (!(cap_s > 0) || left_s >= launch->seconds)
		return;
	launch->seconds = left_s;
	launch->cap = kr_bound_name(bound);
	launch->bound = bound;
}

int
kr_work_policy(struct kr_work *work, const struct kr_work_view *v, const struct kr_task *task, bool is_beside,
	const struct kr_repo *repo, const struct kr_policy_layer **layers, struct kr_policy *out, struct kr_error *err)
{
	const struct kr_policy_layer *const all[KR_LAYER_COUNT] = {
		[KR_LAYER_HOST] = &v->policy.layer,
		[KR_LAYER_REPO] = &repo->policy,
		[KR_LAYER_CHAIN] = &v->chain.policy,
		[KR_LAYER_NODE] = v->next.node < v->chain.node_count ? &v->chain.nodes[v->next.node].policy : NULL,
		[KR_LAYER_STEP] = v->next.step && !is_beside ? &v->next.step->policy : NULL,
		[KR_LAYER_TASK] = task ? &task->policy : NULL,
		[KR_LAYER_ITEM] = v->row.layer ? &v->layer : NULL,
	};
	double maxima[KR_BOUND_COUNT];

	kr_policy_maxima(&v->policy, KR_LAYER_TASK, maxima);
	memcpy(layers, all, sizeof(all));
	return kr_policy_combine(work->arena, all, maxima, out, err);
}

/* The nearest layer's that says one, else the host's usual one. */
static void
find_time(const struct kr_work_task *t, struct kr_work_launch *launch)
{
	const struct kr_work_view *v = t->view;
	const double minutes = launch->policy.bounds[KR_BOUND_TIMEOUT];

	launch->seconds = minutes > 0 ? minutes * 60 : v->policy.wall_clock_s;
	apply_cap(v, t->task->path, KR_BOUND_TIME_CAP, launch);
	apply_cap(v, NULL, KR_BOUND_TOTAL_TIME_CAP, launch);
}

/* True: it may start, as far as that goes. */
static bool
find_policy(struct kr_work *work, const struct kr_work_task *t, const struct kr_repo *repo,
	struct kr_work_launch *launch, struct kr_work_outcome *out)
{
	struct kr_error err = { 0 };

	launch->layers = kr_arena_alloc(work->arena, KR_LAYER_COUNT * sizeof(*launch->layers));
	if (kr_work_policy(work, t->view, t->task, t->instruct != NULL, repo, launch->layers, &launch->policy, &err) < 0) {
		kr_work_refuse(out, kr_arena_dup(work->arena, err.message));
		return false;
	}
	find_time(t, launch);
	if (launch->seconds > 0)
		return true;
	out->kind = KR_MARK_CAPPED;
	out->cap = launch->cap;
	out->cap_minutes = launch->policy.bounds[launch->bound];
	out->reason = kr_arena_printf(
		work->arena, "no time is left of %s %g; a retry counts anew", out->cap, out->cap_minutes);
	return false;
}

static void
find_words(struct kr_work *work, const struct kr_work_task *t, const struct kr_repo *repo, struct kr_work_launch *launch,
	struct kr_work_outcome *out)
{
	switch (t->task->kind) {
	case KR_TASK_COMMAND:
		launch->argv = t->task->argv.v;
		break;
	case KR_TASK_BUILTIN:
		find_tests(work, repo, launch, out);
		break;
	case KR_TASK_AGENT:
		kr_work_find_agent(work, t, repo, launch, out);
		break;
	}
}

void
kr_work_find_launch(
	struct kr_work *work, const struct kr_work_task *t, struct kr_work_launch *launch, struct kr_work_outcome *out)
{
	struct kr_error err = { 0 };
	struct kr_where where;

	if (kr_where_find(work->arena, &work->host.places, t->view->row.repo, &where, &err) < 0)
		kr_work_refuse(out, kr_arena_dup(work->arena, err.message));
	else if (find_policy(work, t, where.repo, launch, out))
		find_words(work, t, where.repo, launch, out);
}
