/*
 * What a person says about an item. The word itself is one transaction (work/say.c); going on comes after it,
 * and when that fails the word stands, which the error says.
 */
#include "api/internal.h"

static int
go_on_and_give(struct kr_api_call *call, struct kr_error *err)
{
	if (!kr_api_flag(call, "no_start") && kr_work_go_on(&call->work, call->param[0], err) < 0)
		return kr_wrap(err, "it is recorded, and the item does not go on");
	return kr_api_give_item(call, err);
}

/* 404 for a gate that its chain does not have; the one that it waits at is compared under its lock. */
static int
check_gate(struct kr_api_call *call, struct kr_error *err)
{
	struct kr_work_view v;

	if (kr_work_look(&call->work, call->param[0], &v, err) < 0)
		return -1;
	for (size_t i = 0; i < v.chain.node_count; i++)
		if (v.chain.nodes[i].is_gate && strcmp(v.chain.nodes[i].id, call->param[1]) == 0)
			return 0;
	return kr_fail(err, KR_E_NOT_FOUND, "item '%s' has no gate '%s'", v.row.id, call->param[1]);
}

static int
pass_gate(struct kr_api_call *call, bool approve, struct kr_error *err)
{
	if (kr_api_open(call, err) < 0 || check_gate(call, err) < 0 ||
		kr_work_pass_gate(
			&call->work, call->param[0], call->param[1], approve, kr_api_text(call, "note"), err) < 0)
		return -1;
	return go_on_and_give(call, err);
}

int
kr_api_gates_approve(struct kr_api_call *call, struct kr_error *err)
{
	return pass_gate(call, true, err);
}

int
kr_api_gates_reject(struct kr_api_call *call, struct kr_error *err)
{
	return pass_gate(call, false, err);
}

int
kr_api_gates_review(struct kr_api_call *call, struct kr_error *err)
{
	const char *word = kr_api_text(call, "outcome"), *no_reply;
	enum kr_outcome outcome;
	struct kr_work_view v;

	if (!kr_outcome_from_name(word, &outcome))
		return kr_fail(err, KR_E_USAGE, "an outcome is approve, request-changes or comment");
	if (kr_api_open(call, err) < 0 ||
		kr_work_review(&call->work, call->param[0], outcome, kr_api_text(call, "summary"), &no_reply, err) < 0)
		return -1;
	if (outcome != KR_OUTCOME_COMMENT)
		return go_on_and_give(call, err);
	if (kr_work_look(&call->work, call->param[0], &v, err) < 0)
		return -1;
	call->json = kr_work_reviewed_json(&v, outcome, no_reply);
	return 0;
}

int
kr_api_gates_pause(struct kr_api_call *call, struct kr_error *err)
{
	if (kr_api_open(call, err) < 0 || kr_work_pause(&call->work, call->param[0], err) < 0)
		return -1;
	return kr_api_give_item(call, err);
}

int
kr_api_gates_resume(struct kr_api_call *call, struct kr_error *err)
{
	const char *steer = kr_api_text(call, "steer");

	if (kr_api_open(call, err) < 0 || (steer && kr_work_steer(&call->work, call->param[0], steer, err) < 0) ||
		kr_work_go_on(&call->work, call->param[0], err) < 0)
		return -1;
	return kr_api_give_item(call, err);
}

int
kr_api_gates_steer(struct kr_api_call *call, struct kr_error *err)
{
	if (kr_api_open(call, err) < 0 ||
		kr_work_steer(&call->work, call->param[0], kr_api_text(call, "text"), err) < 0)
		return -1;
	return kr_api_give_item(call, err);
}

int
kr_api_gates_skip(struct kr_api_call *call, struct kr_error *err)
{
	if (kr_api_open(call, err) < 0 || kr_work_skip(&call->work, call->param[0], kr_api_text(call, "path"),
										  kr_api_text(call, "note"), err) < 0)
		return -1;
	return go_on_and_give(call, err);
}

int
kr_api_gates_retry(struct kr_api_call *call, struct kr_error *err)
{
	const char *path = kr_api_text(call, "path");

	if (kr_api_flag(call, "restart") && path)
		return kr_fail(err, KR_E_USAGE, "'restart' and 'path' say two things");
	if (kr_api_flag(call, "restart"))
		path = "";
	if (kr_api_open(call, err) < 0 ||
		kr_work_retry(&call->work, call->param[0], path, kr_api_text(call, "steer"), err) < 0)
		return -1;
	return go_on_and_give(call, err);
}

static int
end_item(struct kr_api_call *call, enum kr_status status, struct kr_error *err)
{
	if (kr_api_open(call, err) < 0 ||
		kr_work_end(&call->work, call->param[0], status, kr_api_text(call, "reason"), err) < 0)
		return -1;
	return kr_api_give_item(call, err);
}

int
kr_api_gates_cancel(struct kr_api_call *call, struct kr_error *err)
{
	return end_item(call, KR_STATUS_CANCELLED, err);
}

int
kr_api_gates_complete(struct kr_api_call *call, struct kr_error *err)
{
	return end_item(call, KR_STATUS_COMPLETED, err);
}

int
kr_api_gates_unblock(struct kr_api_call *call, struct kr_error *err)
{
	if (kr_api_open(call, err) < 0 ||
		kr_work_unblock(&call->work, call->param[0], kr_api_text(call, "dependency"), err) < 0)
		return -1;
	return kr_api_give_item(call, err);
}
