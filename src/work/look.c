/* An item as it is: rows, chain and marks put together; as JSON, and in words. */
#include "work/internal.h"

#include <time.h>

#include "base/path.h"
#include "work/usage.h"

static const char *const status_names[] = {
#define X(status, name) [KR_STATUS_##status] = name,
	KR_STATUSES(X)
#undef X
};

const char *
kr_status_name(enum kr_status status)
{
	return status_names[status];
}

bool
kr_work_is(const struct kr_item_row *row, enum kr_status status)
{
	return strcmp(row->status, kr_status_name(status)) == 0;
}

bool
kr_work_has_ended(const struct kr_item_row *row)
{
	return kr_work_is(row, KR_STATUS_COMPLETED) || kr_work_is(row, KR_STATUS_CANCELLED) ||
		   kr_work_is(row, KR_STATUS_ABANDONED);
}

int
kr_work_rows(struct kr_arena *arena, struct kr_store *store, struct kr_item_rows *out, struct kr_error *err)
{
	const char *const ended[] = { kr_status_name(KR_STATUS_COMPLETED), kr_status_name(KR_STATUS_CANCELLED),
		kr_status_name(KR_STATUS_ABANDONED) };

	return kr_store_items_except(arena, store, ended, out, err);
}

int
kr_work_open(struct kr_arena *arena, struct kr_work *out, struct kr_error *err)
{
	kr_auto_fd int dir_fd = -1;

	*out = (struct kr_work){ .arena = arena };
	if (kr_host_gather(arena, &out->host, err) < 0 || kr_host_prepare_dirs(&out->host, err) < 0)
		return -1;
	dir_fd = kr_path_make_dirs(kr_arena_printf(arena, "%s/worktrees", out->host.places.run_dir), err);
	if (dir_fd < 0)
		return -1;
	return kr_store_open(out->host.places.run_dir, KR_STORE_WRITE, &out->store, err);
}

void
kr_work_close(struct kr_work *work)
{
	kr_store_close(work->store);
	work->store = NULL;
}

/* ---- together ---- */

static int
read_frozen(struct kr_work *work, struct kr_work_view *v, struct kr_error *err)
{
	const struct kr_places *places = &work->host.places;
	const char *file = kr_arena_printf(work->arena, "chain of item '%s'", v->row.id);

	if (kr_chain_parse(work->arena, places, file, v->row.chain_id, v->row.chain, strlen(v->row.chain),
			&v->chain, err) < 0)
		return kr_wrap(err, "the chain that item '%s' was filed with", v->row.id);
	file = kr_arena_printf(work->arena, "policy of item '%s'", v->row.id);
	if (kr_policy_file_parse(
			work->arena, places, file, v->row.policy, strlen(v->row.policy), &v->policy, err) < 0)
		return kr_wrap(err, "the policy that item '%s' was filed with", v->row.id);
	file = kr_arena_printf(work->arena, "layer of item '%s'", v->row.id);
	if (v->row.layer && kr_policy_layer_parse(work->arena, places, file, v->row.layer, strlen(v->row.layer),
							&v->layer, err) < 0)
		return kr_wrap(err, "the layer of the policy that item '%s' was filed with", v->row.id);
	return 0;
}

static int
find_next(struct kr_work *work, struct kr_work_view *v, struct kr_error *err)
{
	const struct kr_walk_limits limits = { .fix_attempts = v->policy.attempts ? v->policy.attempts : 1,
		.rejections = KR_WORK_REJECTIONS };
	struct kr_work_mark *marks = kr_arena_alloc(work->arena, (v->marks.n + 1) * sizeof(*marks));

	for (size_t i = 0; i < v->marks.n; i++) {
		marks[i].path = v->marks.v[i].path;
		marks[i].fingerprint = v->marks.v[i].fingerprint;
		if (!kr_mark_from_name(v->marks.v[i].kind, &marks[i].kind))
			return kr_fail(err, KR_E_SYSTEM, "the store has a record '%s' that this kraft does not know",
				v->marks.v[i].kind);
	}
	return kr_walk_next(work->arena, &v->chain, &limits, marks, v->marks.n, &v->next, err);
}

static int
look(struct kr_work *work, const char *id, struct kr_work_view *v, struct kr_error *err)
{
	struct kr_ask_query open = { .open_only = true };

	*v = (struct kr_work_view){ 0 };
	if (kr_store_item_get(work->arena, work->store, id, &v->row, err) < 0 || read_frozen(work, v, err) < 0)
		return -1;
	open.item = v->row.id;
	if (kr_store_asks(work->arena, work->store, &open, &v->asks, err) < 0 ||
		kr_store_marks(work->arena, work->store, v->row.id, &v->marks, err) < 0 ||
		kr_store_sessions(work->arena, work->store, v->row.id, &v->sessions, err) < 0 ||
		kr_store_threads(work->arena, work->store, v->row.id, &v->threads, err) < 0 ||
		kr_store_turns(work->arena, work->store, v->row.id, &v->turns, err) < 0 ||
		kr_store_dependencies(work->arena, work->store, v->row.id, &v->dependencies, err) < 0 ||
		find_next(work, v, err) < 0)
		return -1;
	v->is_hosted = kr_work_is_locked(work, v->row.id);
	return 0;
}

/* A host writes where its item stands before it ends. One that ended between our two questions left a newer row, and was not cut
 * off: what still says that it has a host is read once more. */
int
kr_work_look(struct kr_work *work, const char *id, struct kr_work_view *v, struct kr_error *err)
{
	if (look(work, id, v, err) < 0)
		return -1;
	return v->is_hosted || !kr_work_has_host(&v->row) ? 0 : look(work, id, v, err);
}

static int
brief(struct kr_work *work, const struct kr_item_row *row, struct kr_work_brief *out, struct kr_error *err)
{
	const bool may_have = kr_work_has_host(row) || row->turn, is_hosted = may_have && kr_work_is_locked(work, row->id);

	*out = (struct kr_work_brief){ *row, is_hosted };
	return may_have && !is_hosted ? kr_store_item_get(work->arena, work->store, row->id, &out->row, err) : 0;
}

int
kr_work_list(struct kr_work *work, bool with_ended, struct kr_work_list *out, struct kr_error *err)
{
	struct kr_item_rows rows;

	*out = (struct kr_work_list){ 0 };
	if ((with_ended ? kr_store_items : kr_work_rows)(work->arena, work->store, &rows, err) < 0)
		return -1;
	out->v = kr_arena_alloc(work->arena, (rows.n + 1) * sizeof(*out->v));
	for (; out->n < rows.n; out->n++)
		if (brief(work, &rows.v[out->n], &out->v[out->n], err) < 0)
			return -1;
	return 0;
}

const struct kr_dependency_row *
kr_work_waits_for(const struct kr_work_view *v)
{
	for (size_t i = 0; i < v->dependencies.n; i++)
		if (strcmp(v->dependencies.v[i].status, kr_status_name(KR_STATUS_COMPLETED)) != 0)
			return &v->dependencies.v[i];
	return NULL;
}

/* ---- in words ---- */

const char *
kr_work_clock_words(uint64_t ms, char out[KR_CLOCK_WORDS])
{
	const time_t then = (time_t)(ms / 1000), now = (time_t)(kr_now_ms() / 1000);
	struct tm at, today;

	out[0] = '\0';
	if (localtime_r(&then, &at) && localtime_r(&now, &today))
		(void)strftime(out, KR_CLOCK_WORDS, at.tm_year == today.tm_year && at.tm_yday == today.tm_yday ? "%H:%M" : "%Y-%m-%d %H:%M",
			&at);
	return out;
}

const char *
kr_work_words(const struct kr_item_row *row, bool is_hosted)
{
	if (kr_work_is(row, KR_STATUS_COMPLETED))
		return "done";
	if (kr_work_is(row, KR_STATUS_ACTIVE))
		return !is_hosted ? "cut off" : row->asks ? "asks you" : "running";
	if (kr_work_is(row, KR_STATUS_RATE_LIMITED))
		return is_hosted ? "rate-limited" : "cut off";
	if (kr_work_is(row, KR_STATUS_NEEDS_HUMAN) && row->turn && is_hosted && !kr_work_gate(row))
		return "escalated";
	if (kr_work_is(row, KR_STATUS_NEEDS_HUMAN))
		return strcmp(row->stop, "failed") == 0 || strcmp(row->stop, "config") == 0 ||
					   strcmp(row->stop, "infra") == 0
				   ? "failed"
				   : "needs you";
	return row->status; /* paused, queued, blocked, cancelled, abandoned */
}

const char *
kr_work_state(struct kr_arena *arena, const struct kr_item_row *row, bool is_hosted)
{
	const char *words = kr_work_words(row, is_hosted);
	char clock[KR_CLOCK_WORDS];

	return is_hosted && kr_work_is(row, KR_STATUS_RATE_LIMITED)
			   ? kr_arena_printf(arena, "%s until %s", words, kr_work_clock_words(row->retry_ms, clock))
			   : words;
}

bool
kr_work_has_host(const struct kr_item_row *row)
{
	return kr_work_is(row, KR_STATUS_ACTIVE) || kr_work_is(row, KR_STATUS_RATE_LIMITED);
}

const char *
kr_work_gate(const struct kr_item_row *row)
{
	return kr_work_is(row, KR_STATUS_NEEDS_HUMAN) && strcmp(row->stop, "gate") == 0 ? row->place : NULL;
}

/* ---- as JSON ---- */

static json_t *
number_or_null(int64_t number, bool is_there)
{
	return is_there ? json_integer(number) : json_null();
}

json_t *
kr_work_usage_json(const struct kr_usage *u)
{
	return u->is_known ? json_pack("{s:I, s:I, s:I, s:I}", "input", (json_int_t)u->input, "output",
							 (json_int_t)u->output, "cache_write", (json_int_t)u->cache_write, "cache_read",
							 (json_int_t)u->cache_read)
					   : json_null();
}

static json_t *
cost_json(const struct kr_usage *u)
{
	return u->has_cost ? json_real((double)u->cost_micro / 1e6) : json_null();
}

void
kr_work_add_agent_json(json_t *object, const struct kr_session_row *r)
{
	json_object_set_new(object, "harness", kr_text_or_null(r->harness));
	json_object_set_new(object, "model", kr_text_or_null(r->model));
	json_object_set_new(object, "conversation", kr_text_or_null(r->conversation));
	json_object_set_new(object, "usage", kr_work_usage_json(&r->usage));
	json_object_set_new(object, "cost_usd", cost_json(&r->usage));
}

static json_t *
session_json(const struct kr_session_row *r)
{
	json_t *session = json_pack("{s:s, s:s, s:s, s:I, s:I, s:o, s:I, s:o}", "id", r->id, "path", r->path,
		"status", r->status, "run", (json_int_t)r->run, "round", (json_int_t)r->round, "reason",
		kr_text_or_null(r->reason), "created_ms", (json_int_t)r->created_ms, "ended_ms",
		number_or_null((int64_t)r->ended_ms, r->ended_ms != 0));

	kr_work_add_agent_json(session, r);
	return session;
}

json_t *
kr_work_ended_json(const struct kr_session_row *s, int64_t wall_ms)
{
	json_t *data = json_pack("{s:s, s:s, s:I, s:s}", "session_id", s->id, "status", s->status, "wall_ms",
		(json_int_t)wall_ms, "reason", s->reason);

	if (s->harness)
		kr_work_add_agent_json(data, s);
	return data;
}

static json_t *
thread_json(const struct kr_thread_row *r)
{
	json_t *comments = json_array();

	for (size_t i = 0; i < r->comment_count; i++)
		json_array_append_new(comments, json_pack("{s:s, s:o, s:s, s:I}", "author", r->comments[i].author,
											"claim", kr_text_or_null(r->comments[i].claim), "body",
											r->comments[i].body, "ms", (json_int_t)r->comments[i].ms));
	return json_pack("{s:s, s:s, s:b, s:o, s:o, s:o}", "id", r->id, "state", r->is_open ? "open" : "resolved",
		"must_fix", r->must_fix, "file", kr_text_or_null(r->file), "line",
		number_or_null(r->line, r->line != 0), "comments", comments);
}

json_t *
kr_work_threads_json(const struct kr_work_view *v, bool open_only)
{
	json_t *threads = json_array();

	for (size_t i = 0; i < v->threads.n; i++)
		if (v->threads.v[i].is_open || !open_only)
			json_array_append_new(threads, thread_json(&v->threads.v[i]));
	return threads;
}

static json_t *
turn_json(const struct kr_work_view *v, const struct kr_turn_row *t)
{
	const char *status = "unknown";

	for (size_t i = 0; i < v->sessions.n; i++)
		if (strcmp(v->sessions.v[i].id, t->session) == 0)
			status = v->sessions.v[i].status;
	return json_pack("{s:I, s:s, s:s, s:b, s:s, s:o}", "turn", (json_int_t)t->turn, "session_id", t->session,
		"status", status, "auto", t->is_auto, "message", t->message, "retry", kr_text_or_null(t->retry_state));
}

/* A list of threads, each with its turns. */
static json_t *
escalations_json(const struct kr_work_view *v)
{
	json_t *threads = json_array(), *turns = NULL;

	for (size_t i = 0; i < v->turns.n; i++) {
		const struct kr_turn_row *t = &v->turns.v[i];

		if (!i || t->thread != v->turns.v[i - 1].thread) {
			turns = json_array();
			json_array_append_new(
				threads, json_pack("{s:I, s:o}", "thread", (json_int_t)t->thread, "turns", turns));
		}
		json_array_append_new(turns, turn_json(v, t));
	}
	return threads;
}

json_t *
kr_work_row_json(const struct kr_item_row *r, bool is_hosted)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I}",
		"id", r->id, "title", r->title, "description", r->description, "status", r->status, "display_status",
		kr_work_words(r, is_hosted), "stop", kr_text_or_null(r->stop), "repo", r->repo, "chain", r->chain_id,
		"base_branch", kr_text_or_null(r->base), "reason", kr_text_or_null(r->reason), "node",
		kr_text_or_null(r->place), "pending_gate", kr_text_or_null(kr_work_gate(r)), "steer",
		kr_text_or_null(r->steer), "harness", kr_text_or_null(r->harness), "retry_ms",
		number_or_null((int64_t)r->retry_ms, r->retry_ms != 0), "progress", number_or_null(r->progress, r->progress >= 0), "run",
		(json_int_t)r->run, "created_ms", (json_int_t)r->created_ms, "changed_ms", (json_int_t)r->changed_ms);
}

json_t *
kr_work_json(const struct kr_work_view *v)
{
	json_t *item = kr_work_row_json(&v->row, v->is_hosted), *sessions = json_array();
	json_t *dependencies = json_array();
	struct kr_spent spent;

	for (size_t i = 0; i < v->dependencies.n; i++)
		json_array_append_new(dependencies,
			json_pack("{s:s, s:s}", "id", v->dependencies.v[i].id, "status", v->dependencies.v[i].status));
	json_object_set_new(item, "depends_on", dependencies);
	for (size_t i = 0; i < v->sessions.n; i++)
		json_array_append_new(sessions, session_json(&v->sessions.v[i]));
	json_object_set_new(item, "sessions", sessions);
	kr_work_spent(v, false, &spent);
	json_object_set_new(item, "usage", kr_work_usage_json(&spent.usage));
	json_object_set_new(item, "cost_usd", cost_json(&spent.usage));
	json_object_set_new(item, "asks", kr_work_asks_json(&v->asks));
	json_object_set_new(item, "escalation_session_id", kr_text_or_null(v->row.turn));
	json_object_set_new(item, "escalation_threads", escalations_json(v));
	return item;
}
