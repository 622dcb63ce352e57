/* Items: filed, listed, shown; what they changed; what they left. */
#include "api/internal.h"

#include "base/text.h"
#include "session/facts.h"
#include "work/diff.h"

int
kr_api_open(struct kr_api_call *call, struct kr_error *err)
{
	return call->work.store ? 0 : kr_work_open(call->arena, &call->work, err);
}

int
kr_api_give_item(struct kr_api_call *call, struct kr_error *err)
{
	struct kr_work_view view;

	if (kr_api_open(call, err) < 0 || kr_work_look(&call->work, call->param[0], &view, err) < 0)
		return -1;
	call->json = kr_work_json(&view);
	return 0;
}

int
kr_api_items_list(struct kr_api_call *call, struct kr_error *err)
{
	json_t *items = json_array();
	struct kr_work_list list;

	call->json = json_pack("{s:o}", "items", items);
	if (kr_api_open(call, err) < 0 || kr_work_list(&call->work, kr_api_flag(call, "all"), &list, err) < 0)
		return -1;
	for (size_t i = 0; i < list.n; i++)
		json_array_append_new(items, kr_work_row_json(&list.v[i].row, list.v[i].is_hosted));
	return 0;
}

int
kr_api_items_show(struct kr_api_call *call, struct kr_error *err)
{
	return kr_api_give_item(call, err);
}

/* ---- filing ---- */

static const char *const *
words(const struct kr_api_call *call, const char *name)
{
	struct kr_strs list = { 0 };
	const json_t *value, *all = json_object_get(call->args, name);
	size_t i;

	json_array_foreach(all, i, value) kr_strs_add(call->arena, &list, json_string_value(value));
	return list.v;
}

/* A server has no place of its own that a path could begin at. */
static int
check_repo(const char *repo, struct kr_error *err)
{
	if (*repo == '/')
		return 0;
	kr_fail(err, KR_E_USAGE, "'repo' is no absolute path");
	return kr_hint(err, "GET /api/repos lists the connected ones");
}

int
kr_api_items_file(struct kr_api_call *call, struct kr_error *err)
{
	const bool starts = kr_api_flag(call, "autostart");
	const struct kr_work_new want = {
		.title = kr_api_text(call, "title"),
		.description = kr_api_text(call, "description"),
		.repo = kr_api_text(call, "repo"),
		.chain = kr_api_text(call, "chain"),
		.harness = kr_api_text(call, "harness"),
		.base = kr_api_text(call, "base_branch"),
		.depends_on = words(call, "depends_on"),
		.layer_file = "policy",
		.layer = kr_api_text(call, "policy"),
	};
	struct kr_item_row row;

	if (starts && (call->is_session || call->is_tool)) {
		call->status = 403;
		call->json =
			json_pack("{s:s}", "detail", "only a person starts an item, and the call says that it is none's");
		return 0;
	}
	if (check_repo(want.repo, err) < 0 || kr_api_open(call, err) < 0 ||
		kr_work_file(&call->work, &want, &row, err) < 0)
		return -1;
	call->param[0] = row.id;
	if (starts && kr_work_go_on(&call->work, row.id, err) < 0)
		return kr_wrap(err, "item '%s' was filed and does not go on", row.id);
	return kr_api_give_item(call, err);
}

/* ---- what it changed ---- */

static int
send_patch(void *context, const char *bytes, size_t n)
{
	struct kr_api_call *call = context;

	if (!call->is_streaming && !kr_api_stream_begin(call, "text/plain; charset=utf-8"))
		return -1;
	return kr_api_stream_add(call, bytes, n) ? 0 : -1;
}

static int
diff_trees(struct kr_api_call *call, const struct kr_item_trees *trees, struct kr_error *err)
{
	const struct kr_diff_form form = { .as_text = kr_api_flag(call, "text") };

	for (size_t i = 0; i < trees->n; i++) {
		char base[KR_OID_HEX_MAX + 1];

		if (!*trees->v[i].tip)
			continue;
		if (kr_item_base(&trees->v[i], base, err) < 0 ||
			kr_item_diff(call->arena, &trees->v[i], base, &form, send_patch, call, err) < 0)
			return -1;
	}
	return 0;
}

/* Nothing was run in it yet: then nothing was changed. */
static int
find_trees(struct kr_api_call *call, struct kr_item_trees *out, struct kr_error *err)
{
	struct kr_item_row row;

	*out = (struct kr_item_trees){ 0 };
	if (kr_store_item_get(call->arena, call->work.store, call->param[0], &row, err) < 0)
		return -1;
	if (kr_work_is_locked(&call->work, row.id))
		return kr_fail(err, KR_E_BUSY, "a process is at item '%s': its diff is there when that ends", row.id);
	if (kr_item_trees_find(call->arena, &call->work.host, row.id, "the diff", out, err) == 0)
		return 0;
	if (err->code != KR_E_NOT_FOUND)
		return -1;
	*err = (struct kr_error){ 0 };
	return 0;
}

int
kr_api_items_diff(struct kr_api_call *call, struct kr_error *err)
{
	struct kr_item_trees trees;

	if (kr_api_open(call, err) < 0 || find_trees(call, &trees, err) < 0 ||
		kr_item_only(&trees, kr_api_text(call, "member"), err) < 0 || diff_trees(call, &trees, err) < 0)
		return -1;
	if (!call->is_streaming)
		(void)kr_api_stream_begin(
			call, "text/plain; charset=utf-8"); /* its end says whether the client is there */
	return kr_api_stream_end(call) ? 0 : -1;
}

/* ---- what it left ---- */

int
kr_api_items_archive(struct kr_api_call *call, struct kr_error *err)
{
	struct kr_leftovers_list list;
	struct kr_item_row row;
	uint64_t bytes = 0;

	if (kr_api_open(call, err) < 0 ||
		kr_store_item_get(call->arena, call->work.store, call->param[0], &row, err) < 0)
		return -1;
	if (!kr_work_has_ended(&row))
		return kr_fail(
			err, KR_E_REFUSED, "item '%s' is %s: only what has ended is archived", row.id, row.status);
	if (kr_work_leftovers(&call->work, kr_now_ms(), &list, err) < 0)
		return -1;
	for (size_t i = 0; i < list.n; i++) {
		if (strcmp(list.v[i].row.id, row.id) != 0)
			continue;
		if (list.v[i].kept)
			return kr_fail(err, KR_E_REFUSED, "item '%s' is kept: %s", row.id, list.v[i].kept);
		bytes = list.v[i].bytes;
		if (kr_work_archive(&call->work, &list.v[i], "api", err) < 0)
			return -1;
	}
	call->json = json_pack("{s:s, s:I}", "id", row.id, "bytes", (json_int_t)bytes);
	return 0;
}
