/*
 * What a worker of an item is answered (CHN-02 to CHN-07): its item as a person sees it, its threads, a reply
 * in one of them, how far it is, whether it may use a tool (ask.c). None of it moves the item (CHN-12). An
 * escalation turn may ask for one retry (CHN-03), which is written down and done when it has ended. Whether a
 * session is one is what the store says of it.
 */
#include "work/turn.h"

#include <string.h>

#include "base/text.h"

static const struct kr_thread_row *
find_thread(const struct kr_work_view *v, const char *id)
{
	for (size_t i = 0; i < v->threads.n; i++)
		if (strcmp(v->threads.v[i].id, id) == 0)
			return &v->threads.v[i];
	return NULL;
}

static void
reply(struct kr_work *work, const struct kr_work_view *v, struct kr_calls *calls, const struct kr_call *call,
	struct kr_call_answer *answer)
{
	const struct kr_thread_row *thread = find_thread(v, call->thread);
	struct kr_error err = { 0 };

	if (!thread) {
		kr_calls_refuse(answer, "thread", call->thread, "it is none of its item's");
		return;
	}
	if (calls->replies++ >= KR_REPLIES_MAX)
		kr_call_fail(answer, 429, "this session has replied often enough");
	else if (kr_work_reply(work, v->row.id, thread->id, "agent",
				 call->claim ? kr_claim_name((enum kr_claim)call->claim) : NULL, call->text, &err) < 0)
		kr_call_fail(answer, err.code == KR_E_USAGE ? 422 : 503,
			err.code == KR_E_USAGE ? err.message : "it cannot be kept now");
	else
		kr_calls_give(answer,
			json_pack("{s:s, s:s}", "id", thread->id, "state", thread->is_open ? "open" : "resolved"));
}

/* An ordinary worker's is answered as in `kraft run`. */
static void
retry(struct kr_work *work, const struct kr_work_view *v, struct kr_calls *calls, const struct kr_call *call,
	struct kr_call_answer *answer)
{
	const struct kr_turn_row *turn = kr_turn_of(v, calls->session);
	const char *steer = call->text_n ? call->text : NULL;
	struct kr_error err = { 0 };

	if (!turn)
		kr_calls_answer(calls, call, answer);
	else if (steer && kr_work_check_text("the steer", steer, &err) < 0)
		kr_call_fail(answer, 422, err.message);
	else if (kr_turn_ask_retry(work, v, turn, steer, &err) < 0)
		kr_call_fail(answer, err.code == KR_E_REFUSED ? 409 : 503,
			err.code == KR_E_REFUSED ? err.message : "the retry cannot be recorded now");
	else {
		kr_calls_give(
			answer, json_pack("{s:s, s:s, s:I, s:s?}", "id", v->row.id, "node_id",
						v->chain.nodes[v->next.node].id, "loop", (json_int_t)v->next.cycle, "steer", steer));
		answer->status = answer->status == 200 ? 202 : answer->status;
	}
}

static void
answer_item(
	struct kr_work *work, struct kr_calls *calls, const struct kr_call *call, struct kr_call_answer *answer)
{
	struct kr_error err = { 0 };
	struct kr_work_view v;

	if (kr_work_look(work, calls->item, &v, &err) < 0)
		kr_call_fail(answer, 503, "the item cannot be read now");
	else if (call->verb == KR_VERB_SHOW)
		kr_calls_give(answer, kr_work_json(&v));
	else if (call->verb == KR_VERB_RETRY)
		retry(work, &v, calls, call, answer);
	else if (call->verb == KR_VERB_THREADS)
		kr_calls_give(answer, kr_work_threads_json(&v, call->open != 0));
	else
		reply(work, &v, calls, call, answer);
}

void
kr_work_answer(
	void *context, struct kr_calls *calls, const struct kr_call *call, struct kr_call_answer *answer)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const struct kr_work_caller *caller = context;
	struct kr_work work = {
		.arena = &arena, .host = caller->work->host, .store = calls->store(calls->context, NULL)
	};
	const bool is_own = !call->id[0] || strcmp(call->id, calls->item) == 0;

	if (call->verb == KR_VERB_ASK || call->verb == KR_VERB_ASK_STATE || call->verb == KR_VERB_ASK_CLOSE) {
		if (work.store)
			kr_work_answer_ask(&work, caller, calls, call, answer);
		else
			kr_call_fail(answer, 503, "nothing can be decided now");
		return;
	}
	if (is_own && (call->verb == KR_VERB_SHOW || call->verb == KR_VERB_THREADS ||
					  call->verb == KR_VERB_REPLY || call->verb == KR_VERB_RETRY)) {
		if (work.store)
			answer_item(&work, calls, call, answer);
		else
			kr_call_fail(answer, 503, "the item cannot be read now");
		return;
	}
	kr_calls_answer(calls, call, answer);
	if (call->verb == KR_VERB_PROGRESS && answer->status == 200 && !answer->refused[0] &&
		kr_store_item_set_progress(work.store, calls->item, call->task, NULL) < 0)
		kr_call_fail(answer, 503, "the progress cannot be recorded now");
}
