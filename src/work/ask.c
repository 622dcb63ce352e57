/*
 * Asks: a worker's question whether it may use a tool, where the policy wants a person to decide (CHN-12).
 *
 *     open --(a person)--> allowed --(the worker takes it)--> used
 *      |  '--(a person)--> denied
 *      '--(its time is over, its session ends, its worker leaves)--> expired, which is a denial
 *
 * Two sides that never meet: the session of the worker (kr_work_answer_ask), which opens, looks and takes,
 * and a person's command, which allows or denies. Each move is one statement that names the state it comes
 * from, so of two that come at once one finds that it is too late. What is allowed is this tool with these
 * bytes, once: another input is another ask.
 *
 * The host of the item looks once a second: who is told by notify.yaml, and what is over.
 */
#include "work/internal.h"


#include "os/timer.h"

enum { ASK_MS = 30 * 60 * 1000, LOOK_MS = 1000, SHOWN_BYTES = 1000 };
static const char nobody_answered[] = "nobody answered it within 30 minutes";

/* ---- events ---- */

static const char *
node_of_path(struct kr_arena *arena, const char *path)
{
	return kr_arena_dup_n(arena, path, strcspn(path, "."));
}

/* Of the ask's session; "" when it is not known. */
static const char *
node_of(struct kr_work *work, const struct kr_ask_row *ask)
{
	struct kr_session_rows rows;

	if (kr_store_sessions(work->arena, work->store, ask->item, &rows, NULL) < 0)
		return "";
	for (size_t i = 0; i < rows.n; i++)
		if (strcmp(rows.v[i].id, ask->session) == 0)
			return node_of_path(work->arena, rows.v[i].path);
	return "";
}

/* data is taken. */
static int
tell(struct kr_work *work, const struct kr_ask_row *ask, const char *type, json_t *data, struct kr_error *err)
{
	kr_auto_free char *text = data ? json_dumps(data, JSON_COMPACT) : NULL;
	struct kr_event event = {
		.ms = kr_now_ms(), .type = type, .item = ask->item, .session = ask->session, .data = text
	};

	json_decref(data);
	if (!text)
		return kr_fail(err, KR_E_SYSTEM, "no memory for an event");
	return kr_store_add_event(work->store, &event, err);
}

static int
tell_decision(struct kr_work *work, const struct kr_ask_row *ask, bool allow, const char *reason,
	const char *by, const char *note, struct kr_error *err)
{
	return tell(work, ask, "permission_decision",
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s*}", "session_id", ask->session, "node_id",
			node_of(work, ask), "tool", ask->tool, "decision", allow ? "allow" : "deny", "reason", reason,
			"ask_id", ask->id, "by", by, "note", note),
		err);
}

/* Not more than a part of it, which ends with a whole character. */
static const char *
shown(struct kr_arena *arena, const char *input)
{
	size_t n = strlen(input);

	if (n <= SHOWN_BYTES)
		return input;
	for (n = SHOWN_BYTES; n && ((unsigned char)input[n] & 0xc0) == 0x80; n--)
		;
	return kr_arena_printf(arena, "%.*s...", (int)n, input);
}

/* ---- the end without an answer ---- */

/* 1: it is expired by this; 0: it was in another state already. */
static int
expire(struct kr_work *work, const struct kr_ask_row *ask, const char *reason, struct kr_error *err)
{
	int moved =
		kr_store_ask_move(work->store, ask->id, KR_ASK_OPEN, KR_ASK_EXPIRED, reason, kr_now_ms(), err);

	if (moved != 1)
		return moved;
	return tell_decision(work, ask, false, reason, "kraft", NULL, err) < 0 ? -1 : 1;
}

struct expiring {
	struct kr_work *work;
	const struct kr_ask_row *ask;
	const char *reason;
};

static int
do_expire(void *context, struct kr_error *err)
{
	const struct expiring *e = context;

	return expire(e->work, e->ask, e->reason, err) < 0 ? -1 : 0;
}

static int
expire_alone(struct kr_work *work, const struct kr_ask_row *ask, const char *reason, struct kr_error *err)
{
	struct expiring e = { work, ask, reason };

	return kr_store_transact(work->store, do_expire, &e, err);
}

int
kr_work_end_asks(struct kr_work *work, const char *session, struct kr_error *err)
{
	const struct kr_ask_query query = { .session = session };
	struct kr_ask_rows rows;

	if (kr_store_asks(work->arena, work->store, &query, &rows, err) < 0)
		return -1;
	for (size_t i = 0; i < rows.n; i++) {
		const struct kr_ask_row *ask = &rows.v[i];

		if (ask->state == KR_ASK_OPEN && expire(work, ask, "its session has ended", err) < 0)
			return -1;
		/* Nobody is there to take it. */
		if (ask->state == KR_ASK_ALLOWED && kr_store_ask_move(work->store, ask->id, KR_ASK_ALLOWED,
												KR_ASK_EXPIRED, NULL, kr_now_ms(), err) < 0)
			return -1;
	}
	return 0;
}

/* ---- the worker's side ---- */

struct opening {
	struct kr_work *work;
	const struct kr_ask_row *ask;
	const char *node;
};

static int
do_open(void *context, struct kr_error *err)
{
	const struct opening *o = context;
	const struct kr_ask_row *ask = o->ask;

	if (kr_store_ask_add(o->work->store, ask, err) < 0)
		return -1;
	return tell(o->work, ask, "permission_asked",
		json_pack("{s:s, s:s, s:s, s:s, s:s, s:I}", "session_id", ask->session, "node_id", o->node, "ask_id",
			ask->id, "tool", ask->tool, "input", shown(o->work->arena, ask->input), "until_ms",
			(json_int_t)ask->until_ms),
		err);
}

static void
give_id(struct kr_call_answer *answer, const char *id)
{
	answer->status = 202;
	kr_buf_adds(&answer->body, id);
}

static void
open_ask(struct kr_work *work, const char *node, const struct kr_calls *calls, const struct kr_call *call,
	struct kr_call_answer *answer)
{
	const uint64_t now = kr_now_ms();
	const struct kr_ask_row ask = { .id = kr_work_random_id(work->arena, 'a', NULL),
		.item = calls->item,
		.session = calls->session,
		.tool = kr_calls_tool(calls, call),
		.input = call->text + call->command_n,
		.state = KR_ASK_OPEN,
		.ms = now,
		.until_ms = now + ASK_MS };
	struct opening o = { work, &ask, node };
	struct kr_error err = { 0 };

	if (ask.id && kr_store_transact(work->store, do_open, &o, &err) == 0)
		give_id(answer, ask.id);
	else
		kr_calls_decide(answer, false, "kraft denies it: a person cannot be asked now");
}

static void
answer_new(struct kr_work *work, const struct kr_work_caller *caller, struct kr_calls *calls,
	const struct kr_call *call, struct kr_call_answer *answer)
{
	const char *node = node_of_path(work->arena, caller->path);
	struct kr_permit_verdict verdict;
	int64_t open = 0, all = 0;

	kr_calls_judge(calls, caller->policy, call, &verdict);
	if (verdict.permit == KR_PERMIT_ASK &&
		kr_store_asks_count(work->store, calls->session, &open, &all, NULL) < 0)
		verdict = (struct kr_permit_verdict){ KR_PERMIT_DENY, "a person cannot be asked now", NULL };
	else if (verdict.permit == KR_PERMIT_ASK && open >= KR_ASKS_OPEN_MAX)
		verdict = (struct kr_permit_verdict){ KR_PERMIT_DENY,
			"a person is asked 8 things by this session already, and has not answered", NULL };
	else if (verdict.permit == KR_PERMIT_ASK && all >= KR_ASKS_A_SESSION)
		verdict =
			(struct kr_permit_verdict){ KR_PERMIT_DENY, "this session has asked a person 200 times", NULL };
	if (verdict.permit == KR_PERMIT_ASK)
		open_ask(work, node, calls, call, answer);
	else
		kr_calls_permit(calls, call, node, &verdict, answer);
}

/* KR_ASK_ALLOWED is taken here, and by nobody else a second time. */
static void
answer_state(struct kr_work *work, const struct kr_ask_row *ask, struct kr_call_answer *answer)
{
	const char *why = "kraft denies it: it is over";
	bool allow = false;

	switch (ask->state) {
	case KR_ASK_OPEN:
		if (kr_now_ms() < ask->until_ms) {
			give_id(answer, ask->id);
			return;
		}
		(void)expire_alone(work, ask, nobody_answered, NULL); /* the host tries too */
		why = kr_arena_printf(work->arena, "kraft denies it: %s", nobody_answered);
		break;
	case KR_ASK_ALLOWED:
		allow = kr_store_ask_move(
					work->store, ask->id, KR_ASK_ALLOWED, KR_ASK_USED, NULL, kr_now_ms(), NULL) == 1;
		break;
	case KR_ASK_DENIED:
		why = ask->note ? kr_arena_printf(work->arena, "a person denies it: %s", ask->note)
						: "a person denies it";
		break;
	case KR_ASK_EXPIRED:
		why = ask->note ? kr_arena_printf(work->arena, "kraft denies it: %s", ask->note) : why;
		break;
	case KR_ASK_USED:
		break;
	}
	kr_calls_decide(answer, allow, why);
}

static void
close_ask(struct kr_work *work, const struct kr_ask_row *ask, struct kr_call_answer *answer)
{
	if (ask->state == KR_ASK_OPEN)
		(void)expire_alone(work, ask, "its worker waits no more", NULL); /* its session's end does it else */
	else if (ask->state == KR_ASK_ALLOWED)
		(void)kr_store_ask_move(
			work->store, ask->id, KR_ASK_ALLOWED, KR_ASK_EXPIRED, NULL, kr_now_ms(), NULL);
	answer->status = 200;
}

void
kr_work_answer_ask(struct kr_work *work, const struct kr_work_caller *caller, struct kr_calls *calls,
	const struct kr_call *call, struct kr_call_answer *answer)
{
	struct kr_error err = { 0 };
	struct kr_ask_row ask;

	if (call->verb == KR_VERB_ASK) {
		answer_new(work, caller, calls, call, answer);
		return;
	}
	if (kr_store_ask_get(work->arena, work->store, call->ask, &ask, &err) < 0 && err.code != KR_E_NOT_FOUND)
		kr_call_fail(answer, 503, "the ask cannot be read now");
	else if (err.code || strcmp(ask.id, call->ask) != 0 || strcmp(ask.session, calls->session) != 0)
		kr_calls_refuse(answer, "ask", call->ask, "it has asked no such thing");
	else if (call->verb == KR_VERB_ASK_CLOSE)
		close_ask(work, &ask, answer);
	else
		answer_state(work, &ask, answer);
}

/* ---- a person's side ---- */

struct deciding {
	struct kr_work *work;
	const struct kr_ask_row *ask;
	bool allow;
	const char *note;
};

static int
do_decide(void *context, struct kr_error *err)
{
	const struct deciding *d = context;
	int moved = kr_store_ask_move(d->work->store, d->ask->id, KR_ASK_OPEN,
		d->allow ? KR_ASK_ALLOWED : KR_ASK_DENIED, d->note, kr_now_ms(), err);

	if (moved < 0)
		return -1;
	if (moved == 0)
		return kr_fail(err, KR_E_REFUSED, "ask '%s' is no longer open", d->ask->id);
	return tell_decision(d->work, d->ask, d->allow, d->allow ? "a person allowed it" : "a person denied it",
		"human", d->note, err);
}

/* Why it can have no answer any more; NULL: it can. */
static const char *
over(struct kr_work *work, const struct kr_ask_row *ask)
{
	if (kr_now_ms() >= ask->until_ms)
		return nobody_answered;
	return kr_work_is_locked(work, ask->item) ? NULL : "its session has ended";
}

static int
decide(struct kr_work *work, const char *id, bool allow, const char *note, struct kr_ask_row *out,
	struct kr_error *err)
{
	struct deciding d = { work, out, allow, note };
	const char *why;

	if ((note && kr_work_check_text("the note", note, err) < 0) ||
		kr_store_ask_get(work->arena, work->store, id, out, err) < 0)
		return -1;
	if (out->state != KR_ASK_OPEN)
		return kr_fail(
			err, KR_E_REFUSED, "ask '%s' is not open: it is %s", out->id, kr_ask_state_name(out->state));
	why = over(work, out);
	if (why) {
		if (expire_alone(work, out, why, err) < 0)
			return -1;
		return kr_fail(err, KR_E_REFUSED, "ask '%s' is over: %s", out->id, why);
	}
	return kr_store_transact(work->store, do_decide, &d, err);
}

int
kr_work_allow(
	struct kr_work *work, const char *id, const char *note, struct kr_ask_row *out, struct kr_error *err)
{
	return decide(work, id, true, note, out, err);
}

int
kr_work_deny(
	struct kr_work *work, const char *id, const char *note, struct kr_ask_row *out, struct kr_error *err)
{
	return decide(work, id, false, note, out, err);
}

/* ---- the host's look ---- */

static int
tell_person(struct kr_work *work, const char *item, struct kr_error *err)
{
	struct kr_work_view v;

	return kr_work_look(work, item, &v, err) < 0 ? -1 : kr_work_notify_question(work, &v, err);
}

static int
expire_old(struct kr_work *work, const char *session, struct kr_error *err)
{
	const struct kr_ask_query query = { .session = session, .open_only = true };
	struct kr_ask_rows rows;

	if (kr_store_asks(work->arena, work->store, &query, &rows, err) < 0)
		return -1;
	for (size_t i = 0; i < rows.n; i++)
		if (kr_now_ms() >= rows.v[i].until_ms && expire_alone(work, &rows.v[i], nobody_answered, err) < 0)
			return -1;
	return 0;
}

int
kr_work_look_at_asks(struct kr_work *work, const char *item, const char *session, struct kr_work_asks *seen,
	struct kr_error *err)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_work turn = *work;
	int64_t open = 0, all = 0;
	int result = 0;

	if (kr_clock_ms() < seen->next_ms)
		return 0;
	seen->next_ms = kr_clock_ms() + LOOK_MS;
	turn.arena = &arena;
	if (kr_store_asks_count(work->store, session, &open, &all, err) < 0)
		return -1;
	if (open)
		result = expire_old(&turn, session, err);
	if (result == 0 && open && all > seen->told)
		result = tell_person(&turn, item, err);
	seen->told = all;
	work->store = turn.store; /* telling opens it anew */
	return result;
}

/* ---- as JSON ---- */

json_t *
kr_work_asks_json(const struct kr_ask_rows *asks)
{
	json_t *list = json_array();

	for (size_t i = 0; i < asks->n; i++) {
		const struct kr_ask_row *r = &asks->v[i];

		json_array_append_new(
			list, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s?, s:I, s:I, s:o}", "id", r->id, "item",
					  r->item, "session_id", r->session, "tool", r->tool, "input", r->input, "state",
					  kr_ask_state_name(r->state), "note", r->note, "ms", (json_int_t)r->ms, "until_ms",
					  (json_int_t)r->until_ms, "answered_ms",
					  r->answered_ms ? json_integer((json_int_t)r->answered_ms) : json_null()));
	}
	return list;
}
