/* A replay: the marks one after the other move a position through the chain; what the position then waits for
 * is next. */
#include "work/walk.h"

#include "base/text.h"

static const char *const mark_names[] = {
#define X(kind, name) [KR_MARK_##kind] = name,
	KR_MARKS(X)
#undef X
};
static const char *const stop_names[] = { [KR_STOP_NONE] = "",
#define X(kind, name) [KR_STOP_##kind] = name,
	KR_STOPS(X)
#undef X
};

const char *
kr_mark_name(enum kr_mark_kind kind)
{
	return mark_names[kind];
}

bool
kr_mark_from_name(const char *name, enum kr_mark_kind *out)
{
	for (size_t i = 0; i < KR_COUNT(mark_names); i++)
		if (strcmp(mark_names[i], name) == 0) {
			*out = (enum kr_mark_kind)i;
			return true;
		}
	return false;
}

const char *
kr_stop_name(enum kr_stop stop)
{
	return stop_names[stop];
}

/* ---- the position ---- */

enum phase { MAIN, RECOVERY, FIX };

enum { NONE = -1 }; /* a task without a mark */

struct position {
	const struct kr_chain *chain;
	const struct kr_walk_limits *limits;
	size_t node; /* node_count: all is done */
	enum phase phase;
	size_t step;
	size_t reached;                         /* the node's main step that it came to */
	int got[KR_CHAIN_TASKS];                /* of the step's tasks: a mark's kind, or NONE */
	const char *how[KR_CHAIN_TASKS];        /* and its fingerprint */
	const struct kr_chain_step *before;     /* the main step that failed last; NULL: none can be compared */
	const char *before_how[KR_CHAIN_TASKS]; /* its tasks' fingerprints; NULL: that one did not fail */
	unsigned cycles[KR_CHAIN_NODES], rejections[KR_CHAIN_NODES];
	bool is_recovered[KR_CHAIN_NODES];
	enum kr_stop stop;
	const char *path; /* what stopped it */
};

static const struct kr_node *
node_of(const struct position *p)
{
	return &p->chain->nodes[p->node];
}

static const struct kr_chain_steps *
steps_of(const struct position *p)
{
	const struct kr_node *node = node_of(p);

	return p->phase == RECOVERY ? &node->recovery : p->phase == FIX ? &node->fix : &node->steps;
}

static const struct kr_chain_step *
step_of(const struct position *p)
{
	return &steps_of(p)->v[p->step];
}

static unsigned
cycles_max(const struct position *p, const struct kr_node *node)
{
	return !node->fix.n ? 0 : node->fix_attempts ? node->fix_attempts : p->limits->fix_attempts;
}

static void
go_to(struct position *p, size_t node, enum phase phase, size_t step)
{
	p->node = node;
	p->phase = phase;
	p->step = step;
	p->reached = phase == MAIN ? step : p->reached;
	p->stop = KR_STOP_NONE;
	p->path = NULL;
	for (size_t i = 0; i < KR_CHAIN_TASKS; i++)
		p->got[i] = NONE;
}

/* What was counted in a node and in those after it. */
static void
forget_from(struct position *p, size_t node)
{
	for (size_t i = node; i < KR_CHAIN_NODES; i++) {
		p->cycles[i] = 0;
		p->is_recovered[i] = false;
	}
}

static void
stop(struct position *p, enum kr_stop why, const char *path)
{
	p->stop = why;
	p->path = path;
}

/* A step's tasks all came out well. */
static void
pass_step(struct position *p)
{
	if (p->step + 1 < steps_of(p)->n)
		go_to(p, p->node, p->phase, p->step + 1);
	else if (p->phase == MAIN)
		go_to(p, p->node + 1, MAIN, 0);
	else
		go_to(p, p->node, MAIN, 0); /* mended: measured again */
}

/* How the main step failed, kept for the next time it does; whether it is as before. */
static bool
fails_as_before(struct position *p)
{
	const struct kr_chain_step *step = step_of(p);
	bool is_same = p->before == step, is_known = true;

	for (size_t i = 0; i < step->task_count; i++) {
		const char *how = p->got[i] == KR_MARK_FAILED ? p->how[i] : NULL, *before = p->before_how[i];

		is_known = is_known && (how || p->got[i] != KR_MARK_FAILED);
		is_same = is_same && (how && before ? strcmp(how, before) == 0 : how == before);
		p->before_how[i] = how;
	}
	p->before = is_known ? step : NULL;
	return is_same && is_known;
}

/* Between two failures of a node that has begun its fix loop lies one repair of it. */
static void
fail_step(struct position *p, const char *path)
{
	const struct kr_node *node = node_of(p);
	const bool is_stuck = p->phase == MAIN && fails_as_before(p) && p->cycles[p->node];

	if (p->phase == FIX)
		stop(p, KR_STOP_FAILED, path);
	else if (p->phase == MAIN && node->recovery.n && !p->is_recovered[p->node]) {
		p->is_recovered[p->node] = true;
		go_to(p, p->node, RECOVERY, 0);
	} else if (p->cycles[p->node] < cycles_max(p, node)) {
		if (is_stuck) {
			stop(p, KR_STOP_STUCK, path);
			return;
		}
		p->cycles[p->node]++;
		go_to(p, p->node, FIX, 0);
	} else
		stop(p, node->fix.n ? KR_STOP_CAP : KR_STOP_FAILED, path);
}

/* The worst of a step's marks decides, in this order. */
static void
judge_step(struct position *p)
{
	static const struct {
		int kind;
		enum kr_stop stop;
	} worst[] = { { KR_MARK_UNKNOWN, KR_STOP_INFRA }, { KR_MARK_CONFIG, KR_STOP_CONFIG },
		{ KR_MARK_CAPPED, KR_STOP_CAP }, { KR_MARK_BUDGET, KR_STOP_BUDGET }, { KR_MARK_QUESTION, KR_STOP_QUESTION },
		{ KR_MARK_FAILED, KR_STOP_NONE } };
	const struct kr_chain_step *step = step_of(p);

	for (size_t i = 0; i < step->task_count; i++)
		if (p->got[i] == NONE)
			return;
	for (size_t k = 0; k < KR_COUNT(worst); k++)
		for (size_t i = 0; i < step->task_count; i++) {
			if (p->got[i] != worst[k].kind)
				continue;
			if (worst[k].stop)
				stop(p, worst[k].stop, step->tasks[i].path);
			else
				fail_step(p, step->tasks[i].path);
			return;
		}
	pass_step(p);
}

/* ---- places by path ---- */

struct place {
	size_t node, step, task; /* SIZE_MAX: the path names what is above */
};

/* Of the main steps only: nothing else can be retried or skipped. */
static bool
find_place(const struct kr_chain *chain, const char *path, struct place *out)
{
	*out = (struct place){ 0, SIZE_MAX, SIZE_MAX };
	if (!*path)
		return true;
	for (size_t n = 0; n < chain->node_count; n++) {
		const struct kr_node *node = &chain->nodes[n];

		out->node = n;
		if (strcmp(node->id, path) == 0)
			return true;
		for (size_t s = 0; s < node->steps.n; s++) {
			const struct kr_chain_step *step = &node->steps.v[s];

			*out = (struct place){ n, s, SIZE_MAX };
			if (strcmp(step->path, path) == 0)
				return true;
			for (out->task = 0; out->task < step->task_count; out->task++)
				if (strcmp(step->tasks[out->task].path, path) == 0)
					return true;
		}
		*out = (struct place){ n, SIZE_MAX, SIZE_MAX };
	}
	return false;
}

/* After where the item stands: nothing leads past what failed. */
static bool
is_ahead(const struct place *place, size_t node, size_t reached)
{
	return place->node > node || (place->node == node && place->step != SIZE_MAX && place->step > reached);
}

/* ---- one mark ---- */

/* Everything before a retried task in its step stands. */
static bool
retry(struct position *p, const char *path)
{
	struct place place;

	if (!find_place(p->chain, path, &place) || is_ahead(&place, p->node, p->reached))
		return false;
	forget_from(p, place.node);
	for (size_t i = place.node; i < KR_CHAIN_NODES; i++)
		p->rejections[i] = 0;
	go_to(p, place.node, MAIN, place.step == SIZE_MAX ? 0 : place.step);
	for (size_t i = 0; place.task != SIZE_MAX && i < step_of(p)->task_count; i++)
		p->got[i] = i == place.task ? NONE : KR_MARK_DONE;
	return true;
}

/* Repairs and attempts that were spent stay spent. */
static bool
try_again(struct position *p, const char *path)
{
	if (node_of(p)->is_gate || strcmp(node_of(p)->id, path) != 0)
		return false;
	go_to(p, p->node, MAIN, 0);
	return true;
}

static bool
skip(struct position *p, const char *path)
{
	struct place place;

	if (!find_place(p->chain, path, &place) || !*path || place.node != p->node)
		return false;
	if (place.step == SIZE_MAX) {
		go_to(p, p->node + 1, MAIN, 0);
		return true;
	}
	if (place.step != p->reached)
		return false;
	if (p->phase != MAIN) /* a repair failed: what it was to mend is skipped */
		go_to(p, p->node, MAIN, place.step);
	p->stop = KR_STOP_NONE;
	p->path = NULL;
	if (place.task == SIZE_MAX) {
		pass_step(p);
		return true;
	}
	p->got[place.task] = KR_MARK_DONE;
	judge_step(p);
	return true;
}

static bool
pass_gate(struct position *p, const struct kr_work_mark *mark)
{
	const struct kr_node *node = node_of(p);
	size_t gate = p->node;

	if (!node->is_gate || strcmp(node->id, mark->path) != 0 || p->stop)
		return false;
	if (mark->kind == KR_MARK_APPROVED) {
		go_to(p, gate + 1, MAIN, 0);
		return true;
	}
	p->rejections[gate]++;
	forget_from(p, node->reject_to);
	if (p->rejections[gate] > p->limits->rejections)
		stop(p, KR_STOP_CAP, node->id);
	else
		go_to(p, node->reject_to, MAIN, 0);
	return true;
}

static bool
end_task(struct position *p, const struct kr_work_mark *mark)
{
	const struct kr_chain_step *step;

	if (node_of(p)->is_gate || p->stop)
		return false;
	step = step_of(p);
	for (size_t i = 0; i < step->task_count; i++)
		if (strcmp(step->tasks[i].path, mark->path) == 0 && p->got[i] == NONE) {
			p->got[i] = (int)mark->kind;
			p->how[i] = mark->fingerprint;
			judge_step(p);
			return true;
		}
	return false;
}

static bool
apply(struct position *p, const struct kr_work_mark *mark)
{
	if (mark->kind == KR_MARK_RETRIED)
		return retry(p, mark->path);
	if (p->node >= p->chain->node_count)
		return false;
	switch (mark->kind) {
	case KR_MARK_AGAIN:
		return try_again(p, mark->path);
	case KR_MARK_SKIPPED:
		return skip(p, mark->path);
	case KR_MARK_APPROVED:
	case KR_MARK_REJECTED:
		return pass_gate(p, mark);
	default:
		return end_task(p, mark);
	}
}

/* ---- what comes next ---- */

static void
add_tasks(struct kr_arena *arena, const struct position *p, struct kr_next *out)
{
	const struct kr_chain_step *step = step_of(p);
	const struct kr_task **tasks = kr_arena_alloc(arena, step->task_count * sizeof(*tasks));

	for (size_t i = 0; i < step->task_count; i++)
		if (p->got[i] == NONE)
			tasks[out->task_count++] = &step->tasks[i];
	out->step = step;
	out->tasks = tasks;
}

static void
describe(struct kr_arena *arena, const struct position *p, struct kr_next *out)
{
	*out = (struct kr_next){ .kind = KR_NEXT_COMPLETE, .node = p->node, .reached = p->reached };
	if (p->node >= p->chain->node_count)
		return;
	out->cycle = p->cycles[p->node];
	out->cycles_max = cycles_max(p, node_of(p));
	if (p->stop) {
		out->kind = KR_NEXT_STOP;
		out->stop = p->stop;
		out->path = p->path;
	} else if (node_of(p)->is_gate)
		out->kind = KR_NEXT_GATE;
	else {
		out->kind = KR_NEXT_RUN;
		add_tasks(arena, p, out);
	}
}

int
kr_walk_next(struct kr_arena *arena, const struct kr_chain *chain, const struct kr_walk_limits *limits,
	const struct kr_work_mark *marks, size_t count, struct kr_next *out, struct kr_error *err)
{
	struct position p = { .chain = chain, .limits = limits };

	KR_BUG_IF(chain->node_count > KR_CHAIN_NODES || !limits->fix_attempts || !limits->rejections);
	go_to(&p, 0, MAIN, 0);
	for (size_t i = 0; i < count; i++)
		if (!apply(&p, &marks[i]))
			return kr_fail(err, KR_E_SYSTEM, "record %zu of the item, '%s' of '%s', does not belong there",
				i + 1, kr_mark_name(marks[i].kind), marks[i].path);
	describe(arena, &p, out);
	return 0;
}

/* ---- what a person may say ---- */

static int
find_for_person(const struct kr_chain *chain, const struct kr_next *now, const char *path, const char *verb,
	struct place *place, struct kr_error *err)
{
	if (!find_place(chain, path, place)) {
		kr_fail(err, KR_E_REFUSED, "the item's chain '%s' has nothing called '%s' that can be %s", chain->id,
			path, verb);
		return kr_hint(err, "a path is NODE, NODE.STEP or NODE.STEP.TASK; 'kraft view show' lists them");
	}
	if (is_ahead(place, now->node, now->reached))
		return kr_fail(err, KR_E_REFUSED, "'%s' comes after where the item stands", path);
	return 0;
}

int
kr_walk_may_retry(
	const struct kr_chain *chain, const struct kr_next *now, const char *path, struct kr_error *err)
{
	struct place place;

	return find_for_person(chain, now, path, "retried", &place, err);
}

static bool
is_skippable(const struct kr_chain *chain, const struct place *place)
{
	const struct kr_node *node = &chain->nodes[place->node];
	const struct kr_chain_step *step = place->step == SIZE_MAX ? NULL : &node->steps.v[place->step];

	return !step                     ? node->is_skippable
		   : place->task == SIZE_MAX ? step->is_skippable
									 : step->tasks[place->task].is_skippable;
}

int
kr_walk_may_skip(
	const struct kr_chain *chain, const struct kr_next *now, const char *path, struct kr_error *err)
{
	struct place place;

	if (now->kind == KR_NEXT_COMPLETE)
		return kr_fail(err, KR_E_REFUSED, "the item is complete: nothing is left to skip");
	if (find_for_person(chain, now, path, "skipped", &place, err) < 0)
		return -1;
	if (!*path || place.node != now->node || (place.step != SIZE_MAX && place.step != now->reached))
		return kr_fail(err, KR_E_REFUSED, "the item stands at '%s'; '%s' is not there",
			chain->nodes[now->node].id, path);
	if (!is_skippable(chain, &place))
		return kr_fail(
			err, KR_E_REFUSED, "the chain '%s' says that '%s' is not to be skipped", chain->id, path);
	return 0;
}
