/*
 * What a person says about an item. Each is one transaction of a mark or a comment, the item's row, and its
 * event. None of it is reached by a worker: its channel has no such verb, and the command line refuses a
 * caller that is inside a session.
 */
#include "work/turn.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "base/fault.h"
#include "base/portable.h"
#include "base/text.h"

enum { PAUSE_S = 60, STEP_MS = 50 };

int
kr_work_event(struct kr_work *work, const char *item, const char *type, json_t *data, struct kr_error *err)
{
	kr_auto_free char *text = data ? json_dumps(data, JSON_COMPACT) : NULL;
	struct kr_event event = { .ms = kr_now_ms(), .type = type, .item = item, .data = text };

	json_decref(data);
	if (!text)
		return kr_fail(err, KR_E_SYSTEM, "no memory for an event");
	return kr_store_add_event(work->store, &event, err);
}

/* ---- one word ---- */

struct word {
	struct kr_work *work;
	struct kr_item_row *row;        /* as it is to be */
	const struct kr_mark_row *mark; /* NULL: none */
	const char *event, *second;     /* second: NULL: none */
	json_t *data, *second_data;
};

static int
write_word(void *context, struct kr_error *err)
{
	struct word *w = context;

	w->row->changed_ms = kr_now_ms();
	if (w->mark && kr_store_mark_add(w->work->store, w->row->id, w->mark, err) < 0)
		return -1;
	if (kr_store_item_set(w->work->store, w->row, err) < 0)
		return -1;
	if (kr_work_event(w->work, w->row->id, w->event, json_incref(w->data), err) < 0)
		return -1;
	return w->second ? kr_work_event(w->work, w->row->id, w->second, json_incref(w->second_data), err) : 0;
}

int
kr_work_say_both(struct kr_work *work, struct kr_item_row *row, const struct kr_mark_row *mark,
	const char *event, json_t *data, const char *second, json_t *second_data, struct kr_error *err)
{
	struct word word = { work, row, mark, event, second, data, second_data };
	int result = kr_store_transact(work->store, write_word, &word, err);

	json_decref(word.data);
	json_decref(word.second_data);
	return result;
}

int
kr_work_say(struct kr_work *work, struct kr_item_row *row, const struct kr_mark_row *mark, const char *event,
	json_t *data, struct kr_error *err)
{
	return kr_work_say_both(work, row, mark, event, data, NULL, NULL, err);
}

int
kr_work_look_alone(
	struct kr_work *work, const char *id, struct kr_work_view *v, int *lock, struct kr_error *err)
{
	if (kr_work_look(work, id, v, err) < 0)
		return -1;
	if (kr_work_has_ended(&v->row)) {
		kr_fail(err, KR_E_REFUSED, "item '%s' is %s", v->row.id, v->row.status);
		return kr_hint(err, "its branch is 'kraft/%s'; file another one with 'kraft item create'", v->row.id);
	}
	*lock = kr_work_lock(work, v->row.id, err);
	return *lock < 0 ? -1 : kr_work_look(work, v->row.id, v, err);
}

static void
pause_row(struct kr_item_row *row)
{
	row->status = kr_status_name(KR_STATUS_PAUSED);
	row->stop = row->reason = "";
	row->retry_ms = 0;
}

/* Where it goes on; "": nowhere. */
static const char *
node_id(const struct kr_chain *chain, size_t node)
{
	return node < chain->node_count ? chain->nodes[node].id : "";
}

/* ---- gates ---- */

int
kr_work_check_gate(const struct kr_work_view *v, const char *gate, struct kr_error *err)
{
	const bool waits = v->next.kind == KR_NEXT_GATE;

	if (waits && (!gate || strcmp(v->chain.nodes[v->next.node].id, gate) == 0))
		return 0;
	if (waits)
		kr_fail(
			err, KR_E_REFUSED, "item '%s' waits at gate '%s'", v->row.id, v->chain.nodes[v->next.node].id);
	else
		kr_fail(err, KR_E_REFUSED, "item '%s' waits at no gate", v->row.id);
	return kr_hint(err, "'kraft view show %s' tells where it stands", v->row.id);
}

static int
check_threads(const struct kr_work_view *v, struct kr_error *err)
{
	for (size_t i = 0; i < v->threads.n; i++) {
		const struct kr_thread_row *t = &v->threads.v[i];

		if (!t->is_open || !t->must_fix)
			continue;
		kr_fail(err, KR_E_REFUSED, "thread '%s' has to be fixed first: %.80s", t->id,
			t->comment_count ? t->comments[0].body : "");
		return kr_hint(
			err, "'kraft item resolve %s' when it is, or 'kraft item reject' sends it back", t->id);
	}
	return 0;
}

/* No one answers threads while the gate is passed; a reply agent that is at work has the lock. */
static int
refuse_reply(struct kr_work *work, struct kr_work_view *v, struct kr_error *err)
{
	if (kr_turn_settle(work, v, err) < 0)
		return -1;
	if (!v->row.turn)
		return 0;
	kr_fail(err, KR_E_BUSY, "an agent is about to begin on item '%s'", v->row.id);
	return kr_hint(err, "wait for its end, or 'kraft item escalate --stop %s'", v->row.id);
}

static const char *const outcome_names[] = {
#define X(outcome, name) [KR_OUTCOME_##outcome] = name,
	KR_OUTCOMES(X)
#undef X
};

const char *
kr_outcome_name(enum kr_outcome outcome)
{
	return outcome_names[outcome];
}

bool
kr_outcome_from_name(const char *name, enum kr_outcome *out)
{
	for (size_t i = 0; i < KR_COUNT(outcome_names); i++)
		if (strcmp(outcome_names[i], name) == 0) {
			*out = (enum kr_outcome)i;
			return true;
		}
	return false;
}

static json_t *
review_json(const char *review, const char *gate, bool approve)
{
	return review ? json_pack("{s:s, s:s, s:s}", "review_id", review, "gate", gate, "outcome",
						kr_outcome_name(approve ? KR_OUTCOME_APPROVE : KR_OUTCOME_REQUEST_CHANGES))
				  : NULL;
}

int
kr_work_pass_reviewed(struct kr_work *work, const char *id, const char *gate, bool approve, const char *note,
	const char *review,
	struct kr_error *err)
{
	kr_auto_fd int lock = -1;
	struct kr_work_view v;
	struct kr_mark_row mark;

	if ((note || !approve) && kr_work_check_text("the note", note ? note : "", err) < 0)
		return -1;
	if (kr_work_look_alone(work, id, &v, &lock, err) < 0 || kr_work_check_gate(&v, gate, err) < 0 ||
		refuse_reply(work, &v, err) < 0 || (approve && check_threads(&v, err) < 0))
		return -1;
	gate = v.chain.nodes[v.next.node].id;
	mark = (struct kr_mark_row){
		.path = gate,
		.kind = kr_mark_name(approve ? KR_MARK_APPROVED : KR_MARK_REJECTED),
		.note = note,
		.run = v.row.run,
		.ms = kr_now_ms(),
	};
	pause_row(&v.row);
	v.row.place = node_id(&v.chain, approve ? v.next.node + 1 : v.chain.nodes[v.next.node].reject_to);
	if (!approve)
		v.row.steer = note;
	if (kr_work_say_both(work, &v.row, &mark, approve ? "gate_approved" : "gate_rejected",
			json_pack("{s:s, s:s, s:s?}", "gate", gate, "by", "human", "note", note),
			review ? "review_submitted" : NULL, review_json(review, gate, approve), err) < 0)
		return -1;
	KR_FAULT(approved);
	return 0;
}

int
kr_work_pass_gate(struct kr_work *work, const char *id, const char *gate, bool approve, const char *note,
	struct kr_error *err)
{
	return kr_work_pass_reviewed(work, id, gate, approve, note, NULL, err);
}

int
kr_work_approve(struct kr_work *work, const char *id, const char *note, struct kr_error *err)
{
	return kr_work_pass_gate(work, id, NULL, true, note, err);
}

int
kr_work_reject(struct kr_work *work, const char *id, const char *note, struct kr_error *err)
{
	return kr_work_pass_gate(work, id, NULL, false, note, err);
}

/* ---- after a stop ---- */

int
kr_work_retry(struct kr_work *work, const char *id, const char *path, const char *steer, struct kr_error *err)
{
	kr_auto_fd int lock = -1;
	struct kr_work_view v;
	struct kr_mark_row mark;

	if ((steer && kr_work_check_text("the steer", steer, err) < 0) ||
		kr_work_look_alone(work, id, &v, &lock, err) < 0)
		return -1;
	if (strcmp(v.row.status, kr_status_name(KR_STATUS_NEEDS_HUMAN)) != 0) {
		kr_fail(err, KR_E_REFUSED, "item '%s' is %s: nothing of it failed", v.row.id, v.row.status);
		return kr_hint(err, "'kraft item start %s' goes on with it", v.row.id);
	}
	if (!path)
		path = v.chain.nodes[v.next.node].id;
	if (kr_walk_may_retry(&v.chain, &v.next, path, err) < 0)
		return -1;
	pause_row(&v.row);
	v.row.place = path;
	v.row.run++;
	v.row.steer = steer ? steer : v.row.steer;
	mark = (struct kr_mark_row){
		.path = path, .kind = kr_mark_name(KR_MARK_RETRIED), .run = v.row.run, .ms = kr_now_ms()
	};
	return kr_work_say(work, &v.row, &mark, "work_item_retried",
		json_pack("{s:s, s:s?, s:s}", "path", path, "steer", steer, "by", "human"), err);
}

int
kr_work_skip(struct kr_work *work, const char *id, const char *path, const char *note, struct kr_error *err)
{
	kr_auto_fd int lock = -1;
	struct kr_work_view v;
	struct kr_mark_row mark;

	if ((note && kr_work_check_text("the note", note, err) < 0) || kr_work_look_alone(work, id, &v, &lock, err) < 0)
		return -1;
	if (!path && v.next.kind != KR_NEXT_COMPLETE)
		path = v.chain.nodes[v.next.node].id;
	if (kr_walk_may_skip(&v.chain, &v.next, path ? path : "", err) < 0)
		return -1;
	pause_row(&v.row);
	mark = (struct kr_mark_row){
		.path = path, .kind = kr_mark_name(KR_MARK_SKIPPED), .note = note, .run = v.row.run, .ms = kr_now_ms()
	};
	return kr_work_say(work, &v.row, &mark, "scope_skipped",
		json_pack("{s:s, s:s?, s:s}", "path", path, "note", note, "by", "human"), err);
}

int
kr_work_steer(struct kr_work *work, const char *id, const char *text, struct kr_error *err)
{
	kr_auto_fd int lock = -1;
	struct kr_work_view v;

	if (kr_work_check_text("the steer", text, err) < 0 || kr_work_look_alone(work, id, &v, &lock, err) < 0)
		return -1;
	v.row.steer = text;
	return kr_work_say(work, &v.row, NULL, "steer_context_set", json_pack("{s:s}", "steer", text), err);
}

int
kr_work_end(
	struct kr_work *work, const char *id, enum kr_status status, const char *reason, struct kr_error *err)
{
	static const char *const events[KR_STATUS_COUNT] = { [KR_STATUS_COMPLETED] = "work_item_manually_completed",
		[KR_STATUS_CANCELLED] = "work_item_cancelled",
		[KR_STATUS_ABANDONED] = "work_item_abandoned" };
	kr_auto_fd int lock = -1;
	struct kr_work_view v;

	KR_BUG_IF(!events[status]);
	if ((reason && kr_work_check_text("the reason", reason, err) < 0) ||
		kr_work_look_alone(work, id, &v, &lock, err) < 0)
		return -1;
	pause_row(&v.row);
	v.row.status = kr_status_name(status);
	v.row.reason = reason ? reason : "";
	return kr_work_say(work, &v.row, NULL, events[status], json_pack("{s:s?, s:s}", "reason", reason, "by", "human"), err);
}

/* Nobody is at it yet. */
static int
pause_waiting(struct kr_work *work, const char *id, struct kr_error *err)
{
	kr_auto_fd int lock = -1;
	struct kr_work_view v;

	if (kr_work_look_alone(work, id, &v, &lock, err) < 0)
		return -1;
	pause_row(&v.row);
	return kr_work_say(work, &v.row, NULL, "work_item_paused", json_object(), err);
}

int
kr_work_pause(struct kr_work *work, const char *id, struct kr_error *err)
{
	struct kr_item_row row;
	pid_t host;

	if (kr_store_item_get(work->arena, work->store, id, &row, err) < 0)
		return -1;
	if (kr_work_is(&row, KR_STATUS_QUEUED) || kr_work_is(&row, KR_STATUS_BLOCKED))
		return pause_waiting(work, row.id, err);
	host = kr_work_host_pid(work, row.id);
	if (!host && kr_work_is(&row, KR_STATUS_RATE_LIMITED))
		return pause_waiting(work, row.id, err);
	if (!host)
		return kr_fail(err, KR_E_REFUSED, "nobody is at item '%s': it is %s", row.id, row.status);
	if (kr_work_event(work, row.id, "pause_requested", json_pack("{s:s}", "by", "human"), err) < 0)
		return -1;
	return kr_work_end_host(work, row.id, host, err);
}

int
kr_work_end_host(struct kr_work *work, const char *id, pid_t host, struct kr_error *err)
{
	if (kill(host, SIGTERM) < 0 && errno != ESRCH)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot ask process %d to pause", (int)host);
	for (int waited = 0; waited < PAUSE_S * 1000; waited += STEP_MS) {
		if (!kr_work_is_locked(work, id))
			return 0;
		(void)nanosleep(&(struct timespec){ .tv_nsec = STEP_MS * 1000000 }, NULL);
	}
	kr_fail(err, KR_E_BUSY, "item '%s' has not paused within %d s", id, PAUSE_S);
	return kr_hint(err, "process %d is at it", (int)host);
}

/* ---- threads ---- */

const char *
kr_work_random_id(struct kr_arena *arena, char letter, struct kr_error *err)
{
	unsigned salt;

	if (kr_random(&salt, sizeof(salt)))
		return kr_arena_printf(arena, "%c%07x", letter, salt & 0xfffffff);
	kr_fail(err, KR_E_SYSTEM, "the system gives no random bytes");
	return NULL;
}

struct speaking {
	struct kr_work *work;
	const struct kr_thread_row *thread;
	const struct kr_comment_row *comment; /* NULL: only its state changes */
	bool is_new;
};

static int
speak(void *context, struct kr_error *err)
{
	const struct speaking *s = context;
	const struct kr_thread_row *t = s->thread;
	struct kr_store *store = s->work->store;

	if (s->is_new && kr_store_thread_add(store, t, err) < 0)
		return -1;
	if (s->comment && kr_store_comment_add(store, t->id, s->comment, err) < 0)
		return -1;
	if (!s->comment && kr_store_thread_set_open(store, t->id, t->is_open, err) < 0)
		return -1;
	return kr_work_event(s->work, t->item, "thread_updated",
		json_pack("{s:s, s:s, s:s}", "thread_id", t->id, "state", t->is_open ? "open" : "resolved", "by",
			s->comment ? s->comment->author : "human"),
		err);
}

int
kr_work_comment(struct kr_work *work, const char *id, const struct kr_work_comment *comment,
	const char **thread, struct kr_error *err)
{
	const struct kr_comment_row row = { .author = "human", .body = comment->body, .ms = kr_now_ms() };
	struct kr_thread_row t = { .file = comment->file,
		.line = comment->line,
		.must_fix = comment->must_fix,
		.is_open = true,
		.ms = kr_now_ms() };
	struct speaking s = { work, &t, &row, true };
	struct kr_item_row item;

	if (kr_work_check_text("the comment", comment->body, err) < 0 ||
		(comment->file && kr_work_check_text("the file's name", comment->file, err) < 0) ||
		kr_store_item_get(work->arena, work->store, id, &item, err) < 0 ||
		!(t.id = kr_work_random_id(work->arena, 't', err)))
		return -1;
	t.item = item.id;
	*thread = t.id;
	return kr_store_transact(work->store, speak, &s, err);
}

static int
find_thread(
	struct kr_work *work, const char *id, const char *thread, struct kr_thread_row *out, struct kr_error *err)
{
	struct kr_item_row item;
	struct kr_thread_rows rows;
	size_t found = 0;

	if (kr_store_item_get(work->arena, work->store, id, &item, err) < 0 ||
		kr_store_threads(work->arena, work->store, item.id, &rows, err) < 0)
		return -1;
	for (size_t i = 0; i < rows.n; i++)
		if (*thread && kr_text_has_prefix(rows.v[i].id, thread)) {
			*out = rows.v[i];
			found++;
		}
	if (found == 1)
		return 0;
	kr_fail(
		err, KR_E_NOT_FOUND, "item '%s' has %s thread '%s'", item.id, found ? "more than one" : "no", thread);
	return kr_hint(err, "'kraft view threads %s' shows them", item.id);
}

int
kr_work_reply(struct kr_work *work, const char *id, const char *thread, const char *by, const char *claim,
	const char *body, struct kr_error *err)
{
	const struct kr_comment_row row = { .author = by, .body = body, .claim = claim, .ms = kr_now_ms() };
	struct kr_thread_row t;
	struct speaking s = { work, &t, &row, false };

	if (kr_work_check_text("the reply", body, err) < 0 || find_thread(work, id, thread, &t, err) < 0)
		return -1;
	return kr_store_transact(work->store, speak, &s, err);
}

int
kr_work_set_open(struct kr_work *work, const char *id, const char *thread, bool is_open, struct kr_error *err)
{
	struct kr_thread_row t;
	struct speaking s = { work, &t, NULL, false };

	if (find_thread(work, id, thread, &t, err) < 0)
		return -1;
	t.is_open = is_open;
	return kr_store_transact(work->store, speak, &s, err);
}
