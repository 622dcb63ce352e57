/* Threads: what a person and a worker say to each other about an item. Here speaks the person. */
#include "api/internal.h"

int
kr_api_threads_list(struct kr_api_call *call, struct kr_error *err)
{
	struct kr_work_view view;

	if (kr_api_open(call, err) < 0 || kr_work_look(&call->work, call->param[0], &view, err) < 0)
		return -1;
	call->json = kr_work_threads_json(&view, kr_api_flag(call, "open"));
	return 0;
}

int
kr_api_threads_begin(struct kr_api_call *call, struct kr_error *err)
{
	const struct kr_work_comment want = {
		.body = kr_api_text(call, "body"),
		.file = kr_api_text(call, "file"),
		.line = kr_api_number(call, "line", 0),
		.must_fix = kr_api_flag(call, "must_fix"),
	};
	const char *thread;

	if (want.line && !want.file)
		return kr_fail(err, KR_E_USAGE, "'line' is a line of a 'file'");
	if (kr_api_open(call, err) < 0 || kr_work_comment(&call->work, call->param[0], &want, &thread, err) < 0)
		return -1;
	call->json = json_pack("{s:s, s:s}", "id", thread, "state", "open");
	return 0;
}

static int
give_thread(struct kr_api_call *call, const char *item, struct kr_error *err)
{
	struct kr_thread_rows rows;

	if (kr_store_threads(call->arena, call->work.store, item, &rows, err) < 0)
		return -1;
	for (size_t i = 0; i < rows.n; i++)
		if (strcmp(rows.v[i].id, call->param[0]) == 0)
			call->json =
				json_pack("{s:s, s:s}", "id", rows.v[i].id, "state", rows.v[i].is_open ? "open" : "resolved");
	return 0;
}

static int
find_item(struct kr_api_call *call, const char **item, struct kr_error *err)
{
	if (kr_api_open(call, err) < 0)
		return -1;
	return kr_store_thread_item(call->arena, call->work.store, call->param[0], item, err);
}

int
kr_api_threads_comment(struct kr_api_call *call, struct kr_error *err)
{
	const char *item;

	if (find_item(call, &item, err) < 0 ||
		kr_work_reply(&call->work, item, call->param[0], "human", NULL, kr_api_text(call, "body"), err) < 0)
		return -1;
	return give_thread(call, item, err);
}

static int
set_open(struct kr_api_call *call, bool is_open, struct kr_error *err)
{
	const char *item;

	if (find_item(call, &item, err) < 0 ||
		kr_work_set_open(&call->work, item, call->param[0], is_open, err) < 0)
		return -1;
	return give_thread(call, item, err);
}

int
kr_api_threads_resolve(struct kr_api_call *call, struct kr_error *err)
{
	return set_open(call, false, err);
}

int
kr_api_threads_reopen(struct kr_api_call *call, struct kr_error *err)
{
	return set_open(call, true, err);
}
