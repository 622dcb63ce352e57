/*
 * The host of an item: asks the walk what comes next and does it, until a person is needed. Every step is one
 * transaction of mark, session, row and event, so a host that is killed leaves an item that the next one goes
 * on with.
 */
#include "work/turn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/fault.h"
#include "os/timer.h"
#include "session/item.h"
#include "work/agent.h"

enum { LIMIT_LOOK_MS = 1000 };

static volatile sig_atomic_t is_stopped;

static void
note_stop(int signal)
{
	(void)signal;
	is_stopped = 1;
}

struct hosting {
	struct kr_work *work;
	struct kr_work_view v;
	bool show;
};

/* ---- changes, each a transaction ---- */

struct change {
	struct hosting *h;
	const struct kr_mark_row *mark;       /* NULL: none */
	const struct kr_session_row *session; /* NULL: none */
	bool is_new_session;
	const char *event;
	json_t *data;
};

static int
write_change(void *context, struct kr_error *err)
{
	struct change *c = context;
	struct kr_store *store = c->h->work->store;
	struct kr_item_row *row = &c->h->v.row;
	struct kr_item_row now;

	/* A worker may have told its progress meanwhile. */
	if (kr_store_item_get(c->h->work->arena, store, row->id, &now, err) < 0)
		return -1;
	row->progress = now.progress;
	row->changed_ms = kr_now_ms();
	if (c->mark && kr_store_mark_add(store, row->id, c->mark, err) < 0)
		return -1;
	if (c->session && c->is_new_session && kr_store_session_add(store, c->session, err) < 0)
		return -1;
	if (c->session && !c->is_new_session &&
		(kr_store_session_set(store, c->session, err) < 0 ||
			kr_work_end_asks(c->h->work, c->session->id, err) < 0))
		return -1;
	if (kr_store_item_set(store, row, err) < 0)
		return -1;
	return kr_work_event(c->h->work, row->id, c->event, json_incref(c->data), err);
}

static int
change(struct hosting *h, struct change c, struct kr_error *err)
{
	int result;

	c.h = h;
	result = kr_store_transact(h->work->store, write_change, &c, err);
	json_decref(c.data);
	return result;
}

static int
set_status(struct hosting *h, enum kr_status status, const char *stop, const char *place, const char *reason,
	const char *event, json_t *data, struct kr_error *err)
{
	h->v.row.status = kr_status_name(status);
	h->v.row.stop = stop;
	h->v.row.place = place;
	h->v.row.reason = reason;
	h->v.row.retry_ms = 0;
	return change(h, (struct change){ .event = event, .data = data }, err);
}

/* ---- the start ---- */

int
kr_work_may_go_on(const struct kr_work_view *v, struct kr_error *err)
{
	const char *id = v->row.id;
	/* A host that was killed before it had said so is not there to be waited for: the next one says it. */
	const bool is_told = kr_work_is(&v->row, KR_STATUS_NEEDS_HUMAN);

	if (kr_work_has_ended(&v->row))
		return kr_fail(err, KR_E_REFUSED, "item '%s' is %s", id, v->row.status);
	if (v->next.kind == KR_NEXT_GATE && is_told) {
		kr_fail(
			err, KR_E_REFUSED, "item '%s' waits for you at gate '%s'", id, v->chain.nodes[v->next.node].id);
		return kr_hint(err,
			"'kraft view diff %s' shows it; 'kraft item approve %s' or 'kraft item reject %s --note ...'", id,
			id, id);
	}
	if (v->next.kind == KR_NEXT_STOP && is_told) {
		kr_fail(err, KR_E_REFUSED, "item '%s' stopped at '%s': %s", id, v->next.path, v->row.reason);
		return kr_hint(err, "'kraft item retry %s' tries again, 'kraft item skip %s' goes past it", id, id);
	}
	return 0;
}

static int
refuse_blocked(const struct kr_work_view *v, struct kr_error *err)
{
	const struct kr_dependency_row *on = kr_work_waits_for(v);

	if (!on)
		return 0;
	kr_fail(err, KR_E_REFUSED, "item '%s' waits for item '%s', which is %s", v->row.id, on->id, on->status);
	return kr_hint(err, "'kraft item unblock %s %s' lets it begin without", v->row.id, on->id);
}

/* The lock's file may have been removed under its holder; the session's own lock is another. */
static bool
lives(struct hosting *h, const char *session)
{
	kr_auto_fd int folder = kr_session_folder_open(h->work->host.places.run_dir, session, NULL);
	struct kr_session_seen seen;

	return folder >= 0 && kr_session_facts_read(h->work->arena, folder, &seen, NULL) == 0 &&
		   seen.state == KR_SESSION_RUNNING;
}

/* Sessions that another host left unfinished: nobody knows how they ended, and their tasks run again. */
static int
settle_sessions(struct hosting *h, struct kr_error *err)
{
	for (size_t i = 0; i < h->v.sessions.n; i++) {
		struct kr_session_row *s = &h->v.sessions.v[i];

		if (strcmp(s->status, "running") != 0)
			continue;
		if (lives(h, s->id)) {
			kr_fail(err, KR_E_BUSY, "session '%s' of item '%s' still runs", s->id, h->v.row.id);
			return kr_hint(
				err, "'kraft view sessions --item %s' shows it; it ends with its host", h->v.row.id);
		}
		s->status = "unknown";
		s->reason = "its host ended before it did";
		s->ended_ms = kr_now_ms();
		kr_work_take_seen(&h->v, kr_work_see(h->work, s->harness, s->id), s);
		if (change(h,
				(struct change){ .session = s,
					.event = "session_unknown",
					.data = json_pack("{s:s, s:s}", "session_id", s->id, "reason", s->reason) },
				err) < 0)
			return -1;
	}
	return 0;
}

/* ---- one task ---- */

static int
begin_task(struct hosting *h, const struct kr_task *task, struct kr_session_row *s, struct kr_error *err)
{
	const struct kr_work_view *v = &h->v;

	*s = (struct kr_session_row){
		.id = kr_session_new_id(h->work->arena, err),
		.item = v->row.id,
		.path = task->path,
		.status = "running",
		.harness = kr_work_harness_of(h->work, v, task),
		.run = v->row.run,
		.round = v->next.cycle,
		.created_ms = kr_now_ms(),
	};
	if (!s->id)
		return -1;
	h->v.row.place = task->path;
	return change(h,
		(struct change){ .session = s,
			.is_new_session = true,
			.event = "worker_session_created",
			.data = json_pack("{s:s, s:s, s:s, s:I}", "session_id", s->id, "node_id",
				v->chain.nodes[v->next.node].id, "hook_point", task->path, "round",
				(json_int_t)v->next.cycle) },
		err);
}

/* Without a mark it runs again. */
static bool
has_mark(const struct kr_work_outcome *outcome, bool is_again)
{
	return !outcome->was_paused && !outcome->retry_ms && !is_again;
}

/* is_again: it will be tried once more, now. */
static int
end_task(struct hosting *h, const struct kr_task *task, struct kr_session_row *s,
	const struct kr_work_outcome *outcome, bool is_again, struct kr_error *err)
{
	const struct kr_mark_row mark = {
		.path = task->path,
		.kind = kr_mark_name(outcome->kind),
		.session = s->id,
		.note = outcome->reason,
		.fingerprint = outcome->kind == KR_MARK_FAILED ? outcome->fingerprint : NULL,
		.run = h->v.row.run,
		.ms = kr_now_ms(),
	};

	s->status = kr_work_outcome_status(outcome);
	s->reason = outcome->reason;
	s->ended_ms = kr_now_ms();
	kr_work_take_seen(&h->v, outcome->seen, s);
	if (task->kind == KR_TASK_AGENT && has_mark(outcome, is_again))
		h->v.row.steer = NULL; /* it has been said */
	return change(h,
		(struct change){ .mark = has_mark(outcome, is_again) ? &mark : NULL,
			.session = s,
			.event = outcome->was_paused ? "worker_session_paused" : "worker_session_exited",
			.data = kr_work_ended_json(s, (int64_t)(s->ended_ms - s->created_ms)) },
		err);
}

static const char *
node_id(const struct hosting *h)
{
	return h->v.chain.nodes[h->v.next.node].id;
}

static int
tell_cap(struct hosting *h, const struct kr_task *task, const struct kr_work_outcome *outcome, struct kr_error *err)
{
	return change(h,
		(struct change){ .event = "time_cap_reached",
			.data = json_pack("{s:s, s:s, s:f, s:s, s:s}", "scope", task->path, "field", outcome->cap, "minutes",
				outcome->cap_minutes, "reason", outcome->reason, "node_id", node_id(h)) },
		err);
}

/* What is told beside the end of a session. */
static int
tell_beside(struct hosting *h, const struct kr_task *task, const struct kr_session_row *s,
	const struct kr_work_outcome *outcome, struct kr_error *err)
{
	if (outcome->cap && tell_cap(h, task, outcome, err) < 0)
		return -1;
	if (outcome->resumed && change(h,
								(struct change){ .event = "agent_session_resumed",
									.data = json_pack("{s:s, s:s, s:s}", "task", task->path, "session_id", s->id,
										"from", outcome->resumed->id) },
								err) < 0)
		return -1;
	if (outcome->breach && change(h,
							   (struct change){ .event = "scope_budget_reached",
								   .data = json_pack("{s:s, s:s, s:s, s:s}", "breach", outcome->breach, "task",
									   task->path, "reason", outcome->reason, "node_id", node_id(h)) },
							   err) < 0)
		return -1;
	if (!outcome->left_running)
		return 0;
	return change(h,
		(struct change){ .event = "background_jobs_abandoned",
			.data = json_pack("{s:s, s:s, s:s, s:s}", "session_id", s->id, "node_id", node_id(h), "jobs",
				outcome->left_running, "reason", outcome->reason) },
		err);
}

/* ---- its provider turns it away ---- */

static const char *
iso_time(uint64_t ms, char out[32])
{
	const time_t seconds = (time_t)(ms / 1000);
	struct tm at;

	out[0] = '\0';
	if (gmtime_r(&seconds, &at))
		(void)strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &at);
	return out;
}

static int
begin_limit(struct hosting *h, const struct kr_work_outcome *outcome, struct kr_error *err)
{
	char at[32];

	iso_time(outcome->retry_ms, at);
	if (change(h,
			(struct change){ .event = "rate_limit_hit",
				.data = json_pack("{s:s, s:s, s:s}", "node_id", node_id(h), "rate_limit_type", outcome->limit_kind,
					"resets_at_iso", at) },
			err) < 0)
		return -1;
	h->v.row.status = kr_status_name(KR_STATUS_RATE_LIMITED);
	h->v.row.reason = outcome->reason;
	h->v.row.retry_ms = outcome->retry_ms;
	return change(h,
		(struct change){ .event = "work_item_rate_limited",
			.data = json_pack("{s:s, s:s}", "node_id", node_id(h), "retry_at", at) },
		err);
}

static int
resume(struct hosting *h, struct kr_error *err)
{
	return set_status(h, KR_STATUS_ACTIVE, "", h->v.row.place, "", "work_item_resumed",
		json_pack("{s:s?}", "steer", h->v.row.steer), err);
}

/* With the item's lock: it is ours, and waits. */
static int
sit_out_limit(struct hosting *h, struct kr_error *err)
{
	char clock[KR_CLOCK_WORDS];

	if (h->show)
		fprintf(stderr, "kraft: %s is rate-limited until %s; it goes on then\n", h->v.row.id,
			kr_work_clock_words(h->v.row.retry_ms, clock));
	for (uint64_t now = kr_now_ms(); !is_stopped && now < h->v.row.retry_ms; now = kr_now_ms())
		(void)poll(NULL, 0, h->v.row.retry_ms - now < LIMIT_LOOK_MS ? (int)(h->v.row.retry_ms - now) : LIMIT_LOOK_MS);
	return is_stopped ? 0 : resume(h, err);
}

/* ---- one task, from begin to end ---- */

enum ran { RAN, RAN_PAUSED, RAN_LIMITED };

static int
run_once(struct hosting *h, const struct kr_task *task, bool is_anew, struct kr_work_outcome *outcome, struct kr_error *err)
{
	struct kr_work_task want = { .view = &h->v,
		.task = task,
		.round = h->v.next.cycle,
		.steer = h->v.row.steer,
		.show = h->show,
		.is_anew = is_anew };
	struct kr_session_row session;
	bool is_again;

	if (begin_task(h, task, &session, err) < 0)
		return -1;
	KR_FAULT(session_row);
	want.session = session.id;
	if (kr_work_run_task(h->work, &want, &is_stopped, outcome, err) < 0)
		return -1;
	KR_FAULT(outcome_known);
	is_again = outcome->is_worth_another && !is_anew && !is_stopped;
	if (tell_beside(h, task, &session, outcome, err) < 0 || end_task(h, task, &session, outcome, is_again, err) < 0)
		return -1;
	KR_FAULT(mark_written);
	return is_again;
}

/* enum ran. PAUSED: for this reason; "": by a person. */
static int
run_task(struct hosting *h, const struct kr_task *task, const char **reason, struct kr_error *err)
{
	struct kr_work_outcome outcome;
	int result = run_once(h, task, false, &outcome, err);

	if (result > 0)
		result = run_once(h, task, true, &outcome, err);
	if (result < 0)
		return -1;
	*reason = outcome.reason;
	if (outcome.retry_ms && begin_limit(h, &outcome, err) < 0)
		return -1;
	return outcome.was_paused ? RAN_PAUSED : outcome.retry_ms ? RAN_LIMITED : RAN;
}

/* ---- the walk ---- */

static const char *
last_note(const struct kr_work_view *v, const char *path)
{
	for (size_t i = v->marks.n; i-- > 0;)
		if (strcmp(v->marks.v[i].path, path) == 0)
			return v->marks.v[i].note ? v->marks.v[i].note : "";
	return "";
}

static int
ask_person(struct hosting *h, struct kr_error *err)
{
	const struct kr_work_view *v = &h->v;
	const struct kr_node *node = &v->chain.nodes[v->next.node];
	const char *reason;

	if (v->next.kind == KR_NEXT_GATE) {
		h->v.row.steer = NULL;
		return set_status(h, KR_STATUS_NEEDS_HUMAN, "gate", node->id, node->message ? node->message : "",
			"gate_requested", json_pack("{s:s, s:s}", "gate", node->id, "node_id", node->id), err);
	}
	reason = last_note(v, v->next.path);
	if (v->next.stop == KR_STOP_STUCK)
		reason = kr_arena_printf(h->work->arena, "it fails as it did before the repair: %s", reason);
	return set_status(h, KR_STATUS_NEEDS_HUMAN, kr_stop_name(v->next.stop), v->next.path, reason,
		"work_item_needs_human",
		json_pack(
			"{s:s, s:s, s:s}", "node_id", node->id, "kind", kr_stop_name(v->next.stop), "reason", reason),
		err);
}

static int
pause_item(struct hosting *h, const char *reason, struct kr_error *err)
{
	return set_status(h, KR_STATUS_PAUSED, "", h->v.row.place, reason, "work_item_paused",
		*reason ? json_pack("{s:s}", "reason", reason) : json_object(), err);
}

/* 1: there is no more to do. */
static int
step(struct hosting *h, struct kr_error *err)
{
	const struct kr_next *next = &h->v.next;

	if (kr_work_is(&h->v.row, KR_STATUS_RATE_LIMITED) && sit_out_limit(h, err) < 0)
		return -1;
	switch (next->kind) {
	case KR_NEXT_RUN:
		for (size_t i = 0; i < next->task_count; i++) {
			const char *reason = "";
			int result = is_stopped ? RAN_PAUSED : run_task(h, next->tasks[i], &reason, err);

			if (result == RAN_LIMITED)
				return 0;
			if (result != RAN)
				return result < 0 || pause_item(h, reason, err) < 0 ? -1 : 1;
		}
		return 0;
	case KR_NEXT_COMPLETE:
		if (set_status(h, KR_STATUS_COMPLETED, "", "", "", "work_item_completed", json_object(), err) < 0)
			return -1;
		KR_FAULT(completed);
		return 1;
	default:
		if (ask_person(h, err) < 0)
			return -1;
		KR_FAULT(gate_asked);
		return 1;
	}
}

static int
tell_node(struct hosting *h, size_t *node, struct kr_error *err)
{
	const struct kr_chain *chain = &h->v.chain;

	if (h->v.next.node == *node || h->v.next.kind == KR_NEXT_STOP)
		return 0;
	if (*node < h->v.next.node && *node < chain->node_count &&
		change(h,
			(struct change){
				.event = "node_completed", .data = json_pack("{s:s}", "node_id", chain->nodes[*node].id) },
			err) < 0)
		return -1;
	*node = h->v.next.node;
	if (*node == chain->node_count)
		return 0;
	return change(h,
		(struct change){
			.event = "node_started", .data = json_pack("{s:s}", "node_id", chain->nodes[*node].id) },
		err);
}

static int
walk(struct hosting *h, struct kr_error *err)
{
	size_t node = SIZE_MAX;
	int result = 0;

	while (result == 0) {
		result = tell_node(h, &node, err);
		KR_FAULT(node_told);
		result = result < 0 ? -1 : step(h, err);
		if (result == 0)
			result = kr_work_look(h->work, h->v.row.id, &h->v, err);
	}
	return result < 0 ? -1 : 0;
}

static void
catch_signals(void)
{
	const struct sigaction action = { .sa_handler = note_stop };

	is_stopped = 0;
	(void)sigaction(SIGTERM, &action, NULL);
	(void)sigaction(SIGINT, &action, NULL);
	(void)sigaction(SIGHUP, &action, NULL);
}

/* ---- help ---- */

enum { LOOK_MS = 100 };

/* Without the lock, so that a person may say something meanwhile. 1: nobody did, and it is ours again. */
static int
wait_before_help(struct hosting *h, int *lock, struct kr_error *err)
{
	const int64_t until_ms = kr_clock_ms() + (int64_t)h->v.policy.auto_escalate_delay_s * 1000;
	const uint64_t changed_ms = h->v.row.changed_ms;
	struct kr_error why = { 0 };

	if (!h->v.policy.auto_escalate_delay_s)
		return 1;
	kr_close_p(lock);
	while (!is_stopped && kr_clock_ms() < until_ms)
		(void)poll(NULL, 0, LOOK_MS);
	if (is_stopped)
		return 0;
	*lock = kr_work_lock(h->work, h->v.row.id, &why);
	if (*lock < 0) {
		if (why.code != KR_E_BUSY && err)
			*err = why;
		return why.code == KR_E_BUSY ? 0 : -1;
	}
	if (kr_work_look(h->work, h->v.row.id, &h->v, err) < 0)
		return -1;
	return h->v.row.changed_ms == changed_ms;
}

/* An item that is stuck gets a turn by itself. 1: it goes on. */
static int
help(struct hosting *h, int *lock, struct kr_error *err)
{
	int result;

	if (is_stopped || kr_work_look(h->work, h->v.row.id, &h->v, err) < 0)
		return is_stopped ? 0 : -1;
	if (!kr_turn_is_wanted(h->work, &h->v))
		return 0;
	result = wait_before_help(h, lock, err);
	if (result <= 0)
		return result;
	if (kr_turn_file_auto(h->work, &h->v, err) < 0 || kr_work_look(h->work, h->v.row.id, &h->v, err) < 0 ||
		kr_turn_run(h->work, &h->v, h->show, &is_stopped, err) < 0)
		return -1;
	return kr_work_is(&h->v.row, KR_STATUS_ACTIVE);
}

static int
walk_and_help(struct hosting *h, int *lock, struct kr_error *err)
{
	int goes_on;

	do
		goes_on = walk(h, err) < 0 ? -1 : help(h, lock, err);
	while (goes_on > 0);
	return goes_on;
}

/* ---- all of it ---- */

/* What is to be done before the walk: what a dead host left, and a turn that waits to begin. */
static int
take_turn(struct hosting *h, struct kr_work_start *start, struct kr_error *err)
{
	if (kr_turn_settle(h->work, &h->v, err) < 0 || settle_sessions(h, err) < 0)
		return -1;
	KR_FAULT(sessions_settled);
	if (!h->v.row.turn)
		return 0;
	if (start->on_start)
		start->on_start(start->context);
	start->on_start = NULL;
	return kr_turn_run(h->work, &h->v, h->show, &is_stopped, err);
}

static int
begin_walk(struct hosting *h, struct kr_work_start *start, struct kr_error *err)
{
	if (kr_work_may_go_on(&h->v, err) < 0 || refuse_blocked(&h->v, err) < 0 ||
		(!kr_work_is(&h->v.row, KR_STATUS_RATE_LIMITED) && resume(h, err) < 0))
		return -1;
	KR_FAULT(item_active);
	if (start->on_start)
		start->on_start(start->context);
	return 0;
}

int
kr_work_host(struct kr_work *work, const char *id, struct kr_work_start start, struct kr_error *err)
{
	struct hosting h = { .work = work, .show = start.show };
	kr_auto_fd int lock = -1;

	if (kr_work_look(work, id, &h.v, err) < 0)
		return -1;
	lock = kr_work_lock(work, h.v.row.id, err);
	if (lock < 0 || kr_work_look(work, h.v.row.id, &h.v, err) < 0)
		return -1;
	KR_FAULT(host_locked);
	catch_signals();
	if (take_turn(&h, &start, err) < 0)
		return -1;
	if (start.turn_only && !kr_work_has_host(&h.v.row)) {
		if (start.on_start) /* there was nothing to do any more */
			start.on_start(start.context);
		return 0;
	}
	if (begin_walk(&h, &start, err) < 0 || walk_and_help(&h, &lock, err) < 0)
		return -1;
	kr_close_p(&lock);
	KR_FAULT(lock_given);
	return kr_work_notify(work, &h.v, err);
}
