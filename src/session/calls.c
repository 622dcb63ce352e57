/* The session is never the call's to say: it is the one whose channel the call came in on (CHN-06). */
#include "session/calls.h"

#include "base/text.h"
#include "session/facts.h"

/* Takes value over. */
void
kr_calls_give(struct kr_call_answer *answer, json_t *value)
{
	char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;

	json_decref(value);
	if (!text) {
		kr_call_fail(answer, 500, "out of memory");
		return;
	}
	answer->status = 200;
	kr_buf_adds(&answer->body, text);
	kr_buf_adds(&answer->body, "\n");
	free(text);
}

/* What failed in the store is the person's to know, not the worker's. */
static void
fail_store(struct kr_call_answer *answer, const char *what)
{
	answer->next = 0;
	kr_call_fail(answer, 503, what);
}

/* ---- events ---- */

struct listing {
	struct kr_call_answer *answer;
	int64_t last;
};

static int
add_event(void *context, const struct kr_event *event)
{
	struct listing *listing = context;
	struct kr_buf *body = &listing->answer->body;

	if (body->max - body->len < KR_EVENT_JSON_BYTES) {
		listing->answer->next = listing->last;
		return -1;
	}
	kr_event_json(event, body);
	listing->last = event->seq;
	return 0;
}

static void
list_events(struct kr_calls *calls, const struct kr_call *call, struct kr_call_answer *answer)
{
	const struct kr_event_query query = {
		.after = call->after, .item = calls->item, .type = call->type[0] ? call->type : NULL
	};
	struct listing listing = { .answer = answer };
	struct kr_store *store = calls->store(calls->context, NULL);

	answer->status = 200;
	if (!store || kr_store_events(store, &query, add_event, &listing, NULL) < 0)
		fail_store(answer, "the events cannot be read now");
}

/* ---- progress ---- */

static void
note_progress(struct kr_calls *calls, const struct kr_call *call, struct kr_call_answer *answer)
{
	kr_auto_free char *data = NULL;
	struct kr_event event = {
		.ms = kr_now_ms(), .type = "plan_progress", .item = calls->item, .session = calls->session
	};
	json_t *said = json_pack("{s:s, s:I}", "session_id", calls->session, "task", (json_int_t)call->task);
	struct kr_store *store = calls->store(calls->context, NULL);

	event.data = data = json_dumps(said, JSON_COMPACT);
	json_decref(said);
	if (calls->progress >= KR_PROGRESS_MAX) {
		kr_call_fail(answer, 429, "this session has told its progress often enough");
		return;
	}
	if (!data || !store || kr_store_add_event(store, &event, NULL) < 0) {
		fail_store(answer, "the progress cannot be recorded now");
		return;
	}
	calls->progress++;
	kr_calls_give(answer, json_pack("{s:s, s:I}", "id", calls->item, "task", (json_int_t)call->task));
}

/* ---- whether a tool may be used ---- */

/* What the harness says of a tool that a hook tells of; NULL: nothing. */
static const struct kr_tool_name *
find_tool(const struct kr_calls *calls, const struct kr_call *call)
{
	const struct kr_harness *harness = call->harness ? calls->harness : NULL;

	for (size_t i = 0; harness && i < harness->tool_count; i++)
		if (strcmp(harness->tools[i].cli, call->tool) == 0)
			return &harness->tools[i];
	return NULL;
}

/* *also: further names, NULL: none; `second` is room for one. */
static const char *
names_of_tool(const struct kr_calls *calls, const struct kr_call *call, const char **second, struct kr_strs *room,
	const struct kr_strs **also)
{
	const struct kr_tool_name *known = find_tool(calls, call);
	const char *name;

	*also = known ? &known->policy : NULL;
	if (known)
		return known->policy.v[0];
	name = kr_permit_name_of_tool(kr_hooked_name((enum kr_hooked)call->harness), call->tool, second);
	*room = (struct kr_strs){ .v = second, .n = 1 };
	*also = *second ? room : NULL;
	return name;
}

const char *
kr_calls_tool(const struct kr_calls *calls, const struct kr_call *call)
{
	const struct kr_strs *also;
	struct kr_strs room;
	const char *second;

	return names_of_tool(calls, call, &second, &room, &also);
}

void
kr_calls_judge(const struct kr_calls *calls, const struct kr_policy *policy, const struct kr_call *call,
	struct kr_permit_verdict *out)
{
	struct kr_strs room;
	const char *second;
	struct kr_permit_call want = { .command = call->has_command ? call->text : NULL,
		.command_n = call->command_n,
		.branch = calls->branch };

	want.tool = names_of_tool(calls, call, &second, &room, &want.also);
	kr_permit_decide(policy, call->harness ? KR_PERMIT_ENFORCE : KR_PERMIT_PROMPT, true, &want, out);
}

void
kr_calls_decide(struct kr_call_answer *answer, bool allow, const char *why)
{
	answer->status = 200;
	answer->body.len = 0;
	if (allow)
		kr_buf_adds(&answer->body, "allow");
	else
		kr_buf_addf(&answer->body, "deny\n%s", why);
}

static int
record_permit(
	struct kr_calls *calls, const struct kr_call *call, const char *node, const struct kr_permit_verdict *v)
{
	const char *harness = call->harness ? kr_hooked_name((enum kr_hooked)call->harness) : NULL;
	json_t *said = json_pack("{s:s, s:s*, s:s, s:s, s:s, s:s*, s:s*, s:s*}", "session_id", calls->session,
		"node_id", node, "tool", kr_calls_tool(calls, call), "decision", kr_permit_name(v->permit), "reason",
		v->reason, "grant", v->grant, "harness", harness, "cli_tool", harness ? call->tool : NULL);
	kr_auto_free char *data = said ? json_dumps(said, JSON_COMPACT) : NULL;
	struct kr_event event = { .ms = kr_now_ms(),
		.type = "permission_decision",
		.item = calls->item,
		.session = calls->session,
		.data = data };
	struct kr_store *store = calls->store(calls->context, NULL);

	json_decref(said);
	return data && store ? kr_store_add_event(store, &event, NULL) : -1;
}

void
kr_calls_permit(struct kr_calls *calls, const struct kr_call *call, const char *node,
	const struct kr_permit_verdict *verdict, struct kr_call_answer *answer)
{
	if (verdict->permit == KR_PERMIT_SILENT) {
		answer->status = 200;
		kr_buf_adds(&answer->body, "silent");
		return;
	}
	if (calls->permits >= KR_PERMITS_MAX) {
		kr_calls_decide(answer, false, "kraft denies it: this session has asked often enough");
		return;
	}
	calls->permits++;
	if (record_permit(calls, call, node, verdict) < 0)
		kr_calls_decide(answer, false, "kraft denies it: the decision cannot be recorded now");
	else {
		char why[256];

		snprintf(why, sizeof(why), "kraft denies it: %s", verdict->reason);
		kr_calls_decide(answer, verdict->permit == KR_PERMIT_ALLOW, why);
	}
}

/* There is no item that a person looks at. */
static void
permit(struct kr_calls *calls, const struct kr_call *call, struct kr_call_answer *answer)
{
	struct kr_permit_verdict v;

	kr_calls_judge(calls, calls->policy, call, &v);
	if (v.permit == KR_PERMIT_ASK)
		v = (struct kr_permit_verdict){ KR_PERMIT_DENY,
			"the policy has the tool in ask_tools, and nobody is asked in 'kraft run' or 'kraft shell', only "
			"in an item "
			"of 'kraft item create'",
			NULL };
	kr_calls_permit(calls, call, NULL, &v, answer);
}

/* ---- all of them ---- */

/* A path is any bytes, JSON is UTF-8: what is none is shown as \xNN. NULL is null. */
static json_t *
path_text(const char *path)
{
	size_t size = path ? 4 * strlen(path) + 1 : 0;
	kr_auto_free char *safe = NULL;

	if (!path)
		return json_null();
	if (kr_text_is_utf8(path, strlen(path)))
		return json_string(path);
	safe = kr_xcalloc(1, size);
	kr_text_escape(safe, size, path, strlen(path));
	return json_string(safe);
}

static void
show(const struct kr_calls *calls, struct kr_call_answer *answer)
{
	kr_calls_give(answer,
		json_pack("{s:s, s:o, s:o, s:o, s:s}", "id", calls->item, "repo", path_text(calls->repo), "worktree",
			path_text(calls->worktree), "branch", path_text(calls->branch), "session", calls->session));
}

void
kr_calls_refuse(struct kr_call_answer *answer, const char *what, const char *name, const char *why)
{
	snprintf(answer->refused, sizeof(answer->refused), "%s '%s' is not this session's: %s", what, name, why);
}

void
kr_calls_answer(struct kr_calls *calls, const struct kr_call *call, struct kr_call_answer *answer)
{
	if (call->id[0] && strcmp(call->id, calls->item) != 0) {
		kr_calls_refuse(answer, "item", call->id, "a worker calls about its own item only");
		return;
	}
	switch ((enum kr_verb)call->verb) {
	case KR_VERB_EVENTS:
		list_events(calls, call, answer);
		break;
	case KR_VERB_PROGRESS:
		note_progress(calls, call, answer);
		break;
	case KR_VERB_SHOW:
		show(calls, answer);
		break;
	case KR_VERB_THREADS:
		kr_call_fail(answer, 404, "an item of 'kraft run' has no review threads");
		break;
	case KR_VERB_REPLY:
		kr_calls_refuse(answer, "thread", call->thread, "an item of 'kraft run' has no review threads");
		break;
	case KR_VERB_RETRY:
		kr_call_fail(answer, 403, "a worker session cannot act on its own work item");
		break;
	case KR_VERB_ASK:
		permit(calls, call, answer);
		break;
	case KR_VERB_ASK_STATE:
	case KR_VERB_ASK_CLOSE:
		kr_calls_refuse(answer, "ask", call->ask, "there is none in 'kraft run'");
		break;
	case KR_VERB_NONE:
	case KR_VERB_END:
		KR_BUG_IF(true); /* the broker's */
	}
}
