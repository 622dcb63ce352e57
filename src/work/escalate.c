/*
 * What a person says that begins a session beside the chain: a word to an escalation turn, and a review. Both
 * file it under the item's lock, give that up, and let a host begin it (work/turn.h).
 */
#include "work/turn.h"

#include "base/text.h"
#include "work/agent.h"

/* ---- what they share ---- */

/* Under the lock: what a dead host left is settled first. */
static int
refuse_turn(struct kr_work *work, struct kr_work_view *v, struct kr_error *err)
{
	if (kr_turn_settle(work, v, err) < 0)
		return -1;
	if (!v->row.turn)
		return 0;
	kr_fail(err, KR_E_BUSY, "an agent is about to begin on item '%s'", v->row.id);
	return kr_hint(err, "'kraft item escalate --stop %s' ends that", v->row.id);
}

/* Starts what was filed, or takes it back. */
static int
let_begin(struct kr_work *work, const char *id, struct kr_error *err)
{
	struct kr_error ignored = { 0 };

	if (kr_work_go_turn(work, id, err) == 0)
		return 0;
	(void)kr_work_escalate_stop(work, id, &ignored); /* why it did not begin is what counts */
	return -1;
}

/* ---- a turn ---- */

static int
file_turn(struct kr_work *work, const char *id, const char *message, bool new_thread, const char **item,
	struct kr_error *err)
{
	struct kr_turn_wish wish = { .message = message };
	kr_auto_fd int lock = -1;
	struct kr_work_view v;
	const char *why;

	if (kr_work_look_alone(work, id, &v, &lock, err) < 0 || refuse_turn(work, &v, err) < 0)
		return -1;
	*item = v.row.id;
	if (!kr_work_is(&v.row, KR_STATUS_NEEDS_HUMAN) && !kr_work_is(&v.row, KR_STATUS_PAUSED)) {
		kr_fail(err, KR_E_REFUSED, "item '%s' is %s: there is nothing to help with", v.row.id, v.row.status);
		return kr_hint(err, "a turn begins while the item waits for you or is paused");
	}
	(void)kr_work_beside(work, &v, &why);
	if (why)
		return kr_fail(err, KR_E_REFUSED, "no agent can help item '%s': %s", v.row.id, why);
	kr_turn_place(&v, new_thread, &wish);
	return kr_turn_file(work, &v, &wish, err);
}

int
kr_work_escalate(
	struct kr_work *work, const char *id, const char *message, bool new_thread, struct kr_error *err)
{
	const char *item = id;

	if (kr_work_check_text("the message", message, err) < 0 ||
		file_turn(work, id, message, new_thread, &item, err) < 0)
		return -1;
	return let_begin(work, item, err);
}

/* Nobody is at it. */
static int
stop_left(struct kr_work *work, const char *id, struct kr_error *err)
{
	kr_auto_fd int lock = -1;
	struct kr_work_view v;

	if (kr_work_look_alone(work, id, &v, &lock, err) < 0 || kr_turn_settle(work, &v, err) < 0)
		return -1;
	return v.row.turn ? kr_turn_drop(work, &v, "it was stopped before it began", err) : 0;
}

int
kr_work_escalate_stop(struct kr_work *work, const char *id, struct kr_error *err)
{
	struct kr_item_row row;
	pid_t host;

	if (kr_store_item_get(work->arena, work->store, id, &row, err) < 0)
		return -1;
	if (!row.turn || kr_work_has_host(&row)) {
		kr_fail(err, KR_E_REFUSED, "no escalation turn and no reply agent is at item '%s'", row.id);
		return kr_hint(err, "'kraft item pause %s' ends what runs of its chain", row.id);
	}
	host = kr_work_host_pid(work, row.id);
	return host ? kr_work_end_host(work, row.id, host, err) : stop_left(work, row.id, err);
}

/* ---- a review ---- */

static size_t
count_open(const struct kr_work_view *v)
{
	size_t n = 0;

	for (size_t i = 0; i < v->threads.n; i++)
		n += v->threads.v[i].is_open;
	return n;
}

/* What the next run is told: the summary, and what was said in the threads that are open. */
static const char *
note_of(struct kr_arena *arena, const struct kr_work_view *v, const char *summary)
{
	const char *note = summary ? summary : "The review left open threads.";

	for (size_t i = 0; i < v->threads.n; i++) {
		const struct kr_thread_row *t = &v->threads.v[i];
		const char *line = t->line ? kr_arena_printf(arena, ":%lld", (long long)t->line) : "";

		if (!t->is_open)
			continue;
		note = kr_arena_printf(arena, "%s\nThread %s%s%s%s%s:", note, t->id, t->file ? " about " : "",
			t->file ? t->file : "", line, t->must_fix ? ", has to be fixed" : "");
		for (size_t k = 0; k < t->comment_count;
			 k++) /* a worker's answers are in the thread, and no person's word */
			if (strcmp(t->comments[k].author, "human") == 0)
				note = kr_arena_printf(arena, "%s %s", note, t->comments[k].body);
	}
	return note;
}

static int
request_changes(
	struct kr_work *work, const char *id, const char *summary, const char *review, struct kr_error *err)
{
	struct kr_work_view v;

	if (kr_work_look(work, id, &v, err) < 0)
		return -1;
	if (!summary && !count_open(&v))
		return kr_fail(
			err, KR_E_USAGE, "changes are asked for by --summary or by open threads, and there are none");
	return kr_work_pass_reviewed(work, id, NULL, false, note_of(work->arena, &v, summary), review, err);
}

/* 1: an agent is to begin. */
static int
file_reply(struct kr_work *work, const char *id, const char *review, const char **why, struct kr_error *err)
{
	const struct kr_turn_wish wish = { .review = review };
	kr_auto_fd int lock = -1;
	struct kr_work_view v;
	const char *gate;

	if (kr_work_look_alone(work, id, &v, &lock, err) < 0 || kr_work_check_gate(&v, NULL, err) < 0 ||
		refuse_turn(work, &v, err) < 0)
		return -1;
	if (!count_open(&v))
		return kr_fail(err, KR_E_USAGE, "there is no open thread to answer; --summary begins one");
	gate = v.chain.nodes[v.next.node].id;
	*why = kr_work_no_reply(work, &v);
	if (!*why)
		return kr_turn_file(work, &v, &wish, err) < 0 ? -1 : 1;
	return kr_work_say_both(work, &v.row, NULL, "review_submitted",
		json_pack("{s:s, s:s, s:s}", "review_id", review, "gate", gate, "outcome", "comment"),
		"reply_agent_skipped", json_pack("{s:s, s:s}", "gate", gate, "reason", *why), err);
}

static int
comment(struct kr_work *work, const char *id, const char *summary, const char *review, const char **why,
	struct kr_error *err)
{
	const struct kr_work_comment thread = { .body = summary };
	struct kr_work_view v;
	const char *thread_id;
	int filed;

	if (kr_work_look(work, id, &v, err) < 0 || kr_work_check_gate(&v, NULL, err) < 0 ||
		(summary && kr_work_comment(work, v.row.id, &thread, &thread_id, err) < 0))
		return -1;
	filed = file_reply(work, v.row.id, review, why, err);
	return filed <= 0 ? filed : let_begin(work, v.row.id, err);
}

int
kr_work_review(struct kr_work *work, const char *id, enum kr_outcome outcome, const char *summary,
	const char **no_reply, struct kr_error *err)
{
	const char *review = kr_work_random_id(work->arena, 'r', err);

	*no_reply = NULL;
	if (!review || (summary && kr_work_check_text("the summary", summary, err) < 0))
		return -1;
	switch (outcome) {
	case KR_OUTCOME_APPROVE:
		return kr_work_pass_reviewed(work, id, NULL, true, summary, review, err);
	case KR_OUTCOME_REQUEST_CHANGES:
		return request_changes(work, id, summary, review, err);
	case KR_OUTCOME_COMMENT:
		break;
	}
	return comment(work, id, summary, review, no_reply, err);
}

json_t *
kr_work_reviewed_json(const struct kr_work_view *v, enum kr_outcome outcome, const char *no_reply)
{
	json_t *json = kr_work_json(v);

	if (outcome != KR_OUTCOME_COMMENT)
		return json;
	json_object_set_new(json, "reply_agent", json_boolean(!no_reply));
	if (no_reply)
		json_object_set_new(json, "reply_agent_reason", json_string(no_reply));
	return json;
}
