#include "work/turn.h"

#include "os/timer.h"
#include "session/item.h"
#include "work/agent.h"
#include "work/brief.h"

/* ---- one transaction ---- */

enum { EVENTS = 2 };

struct record {
	struct kr_work *work;
	struct kr_item_row *row; /* as it is to be */
	const struct kr_session_row *session;
	const struct kr_turn_row *turn; /* NULL: it stays */
	const struct kr_mark_row *mark; /* NULL: none */
	bool is_new;                    /* session and turn */
	struct {
		const char *type; /* NULL: none */
		json_t *data;
	} events[EVENTS];
};

static int
write_record(void *context, struct kr_error *err)
{
	struct record *r = context;
	struct kr_store *store = r->work->store;

	if ((r->is_new ? kr_store_session_add : kr_store_session_set)(store, r->session, err) < 0 ||
		(r->turn && (r->is_new ? kr_store_turn_add : kr_store_turn_set)(store, r->turn, err) < 0) ||
		(r->mark && kr_store_mark_add(store, r->row->id, r->mark, err) < 0) ||
		kr_store_item_set(store, r->row, err) < 0)
		return -1;
	for (size_t i = 0; i < EVENTS && r->events[i].type; i++)
		if (kr_work_event(r->work, r->row->id, r->events[i].type, json_incref(r->events[i].data), err) < 0)
			return -1;
	return 0;
}

static int
record(struct record r, struct kr_error *err)
{
	int result;

	if (!r.is_new) /* a new one has the time of its session: see may_begin */
		r.row->changed_ms = kr_now_ms();
	result = kr_store_transact(r.work->store, write_record, &r, err);
	for (size_t i = 0; i < EVENTS; i++)
		json_decref(r.events[i].data);
	return result;
}

/* ---- questions ---- */

static struct kr_session_row *
find_session(const struct kr_work_view *v, const char *id)
{
	for (size_t i = 0; i < v->sessions.n; i++)
		if (strcmp(v->sessions.v[i].id, id) == 0)
			return &v->sessions.v[i];
	return NULL;
}

/* One that the view has been found to have. */
static struct kr_session_row *
session_of(const struct kr_work_view *v, const char *id)
{
	struct kr_session_row *s = find_session(v, id);

	KR_BUG_IF(!s);
	return s;
}

const struct kr_turn_row *
kr_turn_of(const struct kr_work_view *v, const char *session)
{
	for (size_t i = 0; i < v->turns.n; i++)
		if (strcmp(v->turns.v[i].session, session) == 0)
			return &v->turns.v[i];
	return NULL;
}

static const char *
node_id(const struct kr_work_view *v)
{
	return v->next.node < v->chain.node_count ? v->chain.nodes[v->next.node].id : "";
}

const char *
kr_turn_no_retry(const struct kr_work_view *v)
{
	if (!kr_work_is(&v->row, KR_STATUS_NEEDS_HUMAN))
		return "the item has not stopped";
	if (v->next.kind == KR_NEXT_COMPLETE || v->chain.nodes[v->next.node].is_gate)
		return "the item waits at a gate, where only a person decides";
	return NULL;
}

/* Nobody has said anything about the item since it was filed. */
static bool
may_begin(const struct kr_work_view *v, const struct kr_session_row *s)
{
	return s->created_ms == v->row.changed_ms && s->run == v->row.run &&
		   (kr_work_is(&v->row, KR_STATUS_NEEDS_HUMAN) || kr_work_is(&v->row, KR_STATUS_PAUSED));
}

/* ---- filed ---- */

int
kr_turn_file(
	struct kr_work *work, struct kr_work_view *v, const struct kr_turn_wish *wish, struct kr_error *err)
{
	struct kr_turn_row turn = { .item = v->row.id, .is_auto = wish->is_auto, .retry_state = "" };
	struct kr_session_row session = {
		.id = kr_session_new_id(work->arena, err),
		.item = v->row.id,
		.path = wish->message ? KR_TURN_PATH : KR_REPLY_PATH,
		.status = "pending",
		.run = v->row.run,
		.created_ms = kr_now_ms(),
	};
	struct record r = { .work = work, .row = &v->row, .session = &session, .is_new = true };
	size_t n = 0;

	if (!session.id)
		return -1;
	v->row.turn = session.id;
	v->row.changed_ms = session.created_ms;
	if (wish->message) {
		turn.session = session.id;
		turn.message = wish->message;
		turn.thread = wish->thread;
		turn.turn = wish->turn;
		r.turn = &turn;
		if (wish->is_auto) {
			r.events[n].type = "stuck_escalation_started";
			r.events[n++].data = json_pack("{s:s, s:s, s:s, s:I}", "node_id", node_id(v), "task",
				v->next.path, "reason", v->row.reason, "attempt", (json_int_t)wish->attempt);
		}
		r.events[n].type = "escalation_message";
		r.events[n].data =
			json_pack("{s:s, s:s, s:b, s:I, s:I}", "session_id", session.id, "message", wish->message, "auto",
				wish->is_auto, "thread", (json_int_t)turn.thread, "turn", (json_int_t)turn.turn);
	} else {
		r.events[n].type = "review_submitted";
		r.events[n].data =
			json_pack("{s:s, s:s, s:s}", "review_id", wish->review, "gate", node_id(v), "outcome", "comment");
	}
	return record(r, err);
}

void
kr_turn_place(const struct kr_work_view *v, bool new_thread, struct kr_turn_wish *wish)
{
	const struct kr_turn_row *last = v->turns.n ? &v->turns.v[v->turns.n - 1] : NULL;

	wish->thread = !last ? 1 : last->thread + new_thread;
	wish->turn = !last || new_thread ? 1 : last->turn + 1;
}

/* ---- by itself ---- */

static unsigned
count_auto(const struct kr_work_view *v)
{
	unsigned n = 0;

	for (size_t i = 0; i < v->turns.n; i++) {
		const struct kr_session_row *s = find_session(v, v->turns.v[i].session);

		n += v->turns.v[i].is_auto && s && s->run == v->row.run;
	}
	return n;
}

bool
kr_turn_is_wanted(struct kr_work *work, const struct kr_work_view *v)
{
	const char *why;

	if (!kr_work_is(&v->row, KR_STATUS_NEEDS_HUMAN) || v->next.kind != KR_NEXT_STOP || v->next.stop != KR_STOP_STUCK ||
		!v->policy.auto_escalate_stuck || v->row.turn || count_auto(v) >= v->policy.auto_escalate_stuck_cap)
		return false;
	(void)kr_work_beside(work, v, &why);
	return !why;
}

int
kr_turn_file_auto(struct kr_work *work, struct kr_work_view *v, struct kr_error *err)
{
	const struct kr_turn_row *last = v->turns.n ? &v->turns.v[v->turns.n - 1] : NULL;
	const struct kr_session_row *before = last ? find_session(v, last->session) : NULL;
	struct kr_turn_wish wish = {
		.message = "A repair changed nothing: the same fails as before. Find out why, and mend it.",
		.is_auto = true,
		.attempt = count_auto(v) + 1,
	};

	kr_turn_place(v, !before || before->run != v->row.run, &wish);
	if (!last)
		wish.thread = 1;
	return kr_turn_file(work, v, &wish, err);
}

/* ---- settled ---- */

static bool
ended_well(const struct kr_session_row *s)
{
	return strcmp(s->status, kr_mark_name(KR_MARK_DONE)) == 0 ||
		   strcmp(s->status, kr_mark_name(KR_MARK_CONCERNS)) == 0;
}

static const char *
steer_of(struct kr_arena *arena, const struct kr_turn_row *turn)
{
	json_t *retry = json_loads(turn->retry ? turn->retry : "{}", 0, NULL);
	const char *steer = json_string_value(json_object_get(retry, "steer"));
	const char *out = steer && *steer ? kr_arena_dup(arena, steer) : NULL;

	json_decref(retry);
	return out;
}

bool
kr_turn_says(struct kr_arena *arena, const struct kr_work_view *v, const char *steer)
{
	for (size_t i = 0; i < v->turns.n; i++) {
		const char *its = v->turns.v[i].retry ? steer_of(arena, &v->turns.v[i]) : NULL;

		if (its && strcmp(its, steer) == 0)
			return true;
	}
	return false;
}

static int
drop_retry(struct kr_work *work, struct kr_work_view *v, struct kr_turn_row *turn, const char *why,
	struct kr_error *err)
{
	struct kr_session_row *s = session_of(v, turn->session);
	struct record r = { .work = work, .row = &v->row, .session = s, .turn = turn };

	turn->retry_state = "dropped";
	v->row.turn = NULL;
	r.events[0].type = "work_item_self_retry_dropped";
	r.events[0].data =
		json_pack("{s:s, s:s, s:s}", "node_id", node_id(v), "status", s->status, "reason", why);
	return record(r, err);
}

static int
do_retry(struct kr_work *work, struct kr_work_view *v, struct kr_turn_row *turn, struct kr_error *err)
{
	const char *node = node_id(v), *steer = steer_of(work->arena, turn);
	const struct kr_mark_row mark = {
		.path = node,
		.kind = kr_mark_name(KR_MARK_AGAIN),
		.session = turn->session,
		.run = v->row.run,
		.ms = kr_now_ms(),
	};
	struct record r = {
		.work = work, .row = &v->row, .session = session_of(v, turn->session), .turn = turn, .mark = &mark
	};

	turn->retry_state = "done";
	v->row.turn = NULL;
	v->row.status = kr_status_name(KR_STATUS_ACTIVE);
	v->row.stop = v->row.reason = "";
	v->row.place = node;
	v->row.steer = steer ? steer : v->row.steer;
	r.events[0].type = "work_item_retried";
	r.events[0].data = json_pack("{s:s, s:s, s:s?, s:s, s:b}", "node_id", node, "path", node, "steer", steer,
		"by", "agent", "escalated", 1);
	return record(r, err);
}

/* Its session has ended. */
static int
settle_ended(struct kr_work *work, struct kr_work_view *v, struct kr_error *err)
{
	struct kr_turn_row *turn = v->row.turn ? (struct kr_turn_row *)kr_turn_of(v, v->row.turn) : NULL;
	const char *why;
	int result;

	if (!v->row.turn)
		return 0;
	KR_BUG_IF(!turn || strcmp(turn->retry_state, "asked") != 0); /* end_session let it go */
	why = !ended_well(session_of(v, turn->session)) ? "the turn did not end well" : kr_turn_no_retry(v);
	result = why ? drop_retry(work, v, turn, why, err) : do_retry(work, v, turn, err);
	return result < 0 ? -1 : kr_work_look(work, v->row.id, v, err);
}

/* ---- ended ---- */

static int
end_session(struct kr_work *work, struct kr_work_view *v, struct kr_session_row *s,
	const struct kr_work_outcome *outcome, int64_t wall_ms, struct kr_error *err)
{
	const struct kr_turn_row *turn = kr_turn_of(v, s->id);
	struct record r = { .work = work, .row = &v->row, .session = s };

	s->status = kr_work_outcome_status(outcome);
	s->reason = outcome->reason;
	s->ended_ms = kr_now_ms();
	kr_work_take_seen(v, outcome->seen, s);
	if (!turn || strcmp(turn->retry_state, "asked") != 0)
		v->row.turn = NULL;
	r.events[0].type = outcome->was_paused ? "worker_session_paused" : "worker_session_exited";
	r.events[0].data = kr_work_ended_json(s, wall_ms);
	if (turn && turn->is_auto) {
		r.events[1].type = "stuck_escalation_finished";
		r.events[1].data =
			json_pack("{s:s, s:s, s:s}", "session_id", s->id, "node_id", node_id(v), "status", s->status);
	}
	return record(r, err);
}

static json_t *
lines_of(const char *text)
{
	json_t *list = json_array();

	for (size_t n; *text; text += n + (text[n] == '\n')) {
		n = strcspn(text, "\n");
		json_array_append_new(list, json_stringn(text, n));
	}
	return list;
}

/* A reply agent has nothing to change: what it changed has been put back. */
static int
tell_reply(struct kr_work *work, const struct kr_work_view *v, const struct kr_work_outcome *outcome,
	struct kr_error *err)
{
	const bool is_done = outcome->kind == KR_MARK_DONE || outcome->kind == KR_MARK_CONCERNS;

	if (outcome->wrote && *outcome->wrote &&
		kr_work_event(work, v->row.id, "reply_agent_wrote",
			json_pack("{s:s, s:o}", "gate", node_id(v), "files", lines_of(outcome->wrote)), err) < 0)
		return -1;
	if (outcome->was_paused || (is_done && !outcome->not_put_back))
		return 0;
	return kr_work_event(work, v->row.id, "reply_agent_failed",
		json_pack("{s:s, s:s}", "gate", node_id(v), "error",
			outcome->not_put_back ? outcome->not_put_back : outcome->reason),
		err);
}

int
kr_turn_drop(struct kr_work *work, struct kr_work_view *v, const char *why, struct kr_error *err)
{
	const struct kr_work_outcome outcome = { .was_paused = true, .reason = why };

	return end_session(work, v, session_of(v, v->row.turn), &outcome, 0, err);
}

int
kr_turn_settle(struct kr_work *work, struct kr_work_view *v, struct kr_error *err)
{
	struct kr_session_row *s = v->row.turn ? find_session(v, v->row.turn) : NULL;
	struct kr_work_outcome outcome = { .kind = KR_MARK_UNKNOWN, .reason = "" };

	if (!v->row.turn)
		return 0;
	if (!s)
		return kr_fail(
			err, KR_E_SYSTEM, "item '%s' names a session '%s' that is not there", v->row.id, v->row.turn);
	if (strcmp(s->status, "pending") == 0)
		return may_begin(v, s) ? 0 : kr_turn_drop(work, v, "the item went on before it began", err);
	if (!s->ended_ms && (kr_work_judge_left(work, v->row.id, s, &outcome, err) < 0 ||
							end_session(work, v, s, &outcome, 0, err) < 0 ||
							(strcmp(s->path, KR_REPLY_PATH) == 0 && tell_reply(work, v, &outcome, err) < 0)))
		return -1;
	return settle_ended(work, v, err);
}

/* ---- what it is told ---- */

static const char *
turn_text(struct kr_work *work, const struct kr_work_task *t, const struct kr_brief *brief)
{
	const struct kr_work_view *v = t->view;
	const struct kr_turn_row *now = kr_turn_of(v, t->session);
	struct kr_brief_said *said = kr_arena_alloc(work->arena, (v->turns.n + 1) * sizeof(*said));
	struct kr_brief_turn turn = {
		.item = brief,
		.is_paused = kr_work_is(&v->row, KR_STATUS_PAUSED),
		.place = v->row.place,
		.stop = v->row.stop,
		.reason = v->row.reason,
		.said = said,
		.message = now->message,
		.by_kraft = now->is_auto,
		.retries = !brief->has_channel || kr_turn_no_retry(v) ? NULL : node_id(v),
	};

	for (size_t i = 0; i < v->turns.n && &v->turns.v[i] != now; i++) {
		const struct kr_turn_row *row = &v->turns.v[i];
		const struct kr_session_row *s = find_session(v, row->session);

		if (row->thread == now->thread && s && row->turn + KR_BRIEF_SAID >= now->turn)
			said[turn.said_count++] = (struct kr_brief_said){
				.turn = row->turn,
				.by_kraft = row->is_auto,
				.message = row->message,
				.status = s->status,
				.retry = row->retry_state,
				.output = kr_work_last_words(work, v, row->session),
			};
	}
	return kr_brief_turn_text(work->arena, &turn);
}

static const char *
reply_text(struct kr_work *work, const struct kr_work_task *t, const struct kr_brief *brief)
{
	return kr_brief_reply_text(work->arena, brief, &t->view->threads);
}

/* ---- begun ---- */

static int
begin(struct kr_work *work, struct kr_work_view *v, struct kr_session_row *s, struct kr_error *err)
{
	const struct kr_turn_row *turn = kr_turn_of(v, s->id);
	struct record r = { .work = work, .row = &v->row, .session = s };

	s->status = "running";
	s->harness = kr_work_harness_of(work, v, NULL);
	r.events[0].type = "worker_session_created";
	r.events[0].data =
		json_pack("{s:s, s:s, s:s}", "session_id", s->id, "node_id", node_id(v), "hook_point", s->path);
	if (turn) {
		json_object_set_new(r.events[0].data, "thread", json_integer(turn->thread));
		json_object_set_new(r.events[0].data, "turn", json_integer(turn->turn));
	}
	return record(r, err);
}

int
kr_turn_run(struct kr_work *work, struct kr_work_view *v, bool show, const volatile sig_atomic_t *stop,
	struct kr_error *err)
{
	struct kr_session_row *s = session_of(v, v->row.turn);
	const bool is_turn = strcmp(s->path, KR_TURN_PATH) == 0;
	const struct kr_task task = { .id = s->path, .path = s->path, .kind = KR_TASK_AGENT };
	const struct kr_work_task want = {
		.session = s->id,
		.view = v,
		.task = &task,
		.show = show,
		.instruct = is_turn ? turn_text : reply_text,
		.put_back = !is_turn,
	};
	const int64_t begun_ms = kr_clock_ms();
	struct kr_work_outcome outcome;

	if (begin(work, v, s, err) < 0 || kr_work_run_task(work, &want, stop, &outcome, err) < 0 ||
		kr_work_look(work, v->row.id, v, err) < 0)
		return -1;
	s = session_of(v, want.session);
	if (end_session(work, v, s, &outcome, kr_clock_ms() - begun_ms, err) < 0 ||
		(!is_turn && tell_reply(work, v, &outcome, err) < 0))
		return -1;
	return settle_ended(work, v, err);
}

/* ---- its retry ---- */

struct asking {
	struct kr_work *work;
	const struct kr_work_view *v;
	const struct kr_turn_row *turn;
	const char *steer;
};

static int
write_asking(void *context, struct kr_error *err)
{
	const struct asking *a = context;

	if (kr_store_turn_set(a->work->store, a->turn, err) < 0)
		return -1;
	return kr_work_event(a->work, a->v->row.id, "work_item_self_retry_requested",
		json_pack("{s:s, s:s, s:s, s:b, s:s?}", "session_id", a->turn->session, "node_id", node_id(a->v),
			"path", node_id(a->v), "restart", 0, "steer", a->steer),
		err);
}

int
kr_turn_ask_retry(struct kr_work *work, const struct kr_work_view *v, const struct kr_turn_row *turn,
	const char *steer, struct kr_error *err)
{
	json_t *json = json_pack("{s:s?}", "steer", steer);
	kr_auto_free char *text = json_dumps(json, JSON_COMPACT);
	struct kr_turn_row row = *turn;
	struct asking asking = { work, v, &row, steer };
	const char *why = kr_turn_no_retry(v);

	json_decref(json);
	if (!v->row.turn || strcmp(v->row.turn, turn->session) != 0)
		why = "this turn is over";
	if (*turn->retry_state)
		why = "this turn has asked already";
	if (why || !text)
		return kr_fail(err, why ? KR_E_REFUSED : KR_E_SYSTEM, "%s", why ? why : "no memory for a retry");
	row.retry = text;
	row.retry_state = "asked";
	return kr_store_transact(work->store, write_asking, &asking, err);
}
