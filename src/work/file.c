/* A new item: what it is to do, in which repository, by which chain; the texts of chain and policy as they
 * are now. */
#include "work/internal.h"

#include <errno.h>
#include <fcntl.h>

#include "base/fault.h"
#include "base/path.h"
#include "base/portable.h"
#include "base/text.h"
#include "config/harness.h"
#include "run/where.h"

enum { TITLE_BYTES = 500, SLUG_MAX = 24, TEXT_BYTES = 64 << 10 };

static bool
has_control(const char *text, const char *but)
{
	for (const char *p = text; *p; p++)
		if (((unsigned char)*p < 0x20 && !strchr(but, *p)) || *p == 0x7f)
			return true;
	return false;
}

static int
check_title(const char *title, struct kr_error *err)
{
	if (!*title || strspn(title, " ") == strlen(title))
		return kr_fail(err, KR_E_USAGE, "an item needs a title");
	if (strlen(title) > TITLE_BYTES)
		return kr_fail(err, KR_E_USAGE, "a title has at most %d characters; the rest goes to --description",
			TITLE_BYTES);
	if (has_control(title, "") || !kr_text_is_utf8(title, strlen(title)))
		return kr_fail(err, KR_E_USAGE, "a title is one line of UTF-8 without control characters");
	return 0;
}

int
kr_work_check_text(const char *what, const char *text, struct kr_error *err)
{
	if (!*text || strspn(text, " \t\n") == strlen(text))
		return kr_fail(err, KR_E_USAGE, "%s says nothing", what);
	if (strlen(text) > TEXT_BYTES)
		return kr_fail(err, KR_E_USAGE, "%s has more than %d KiB", what, TEXT_BYTES >> 10);
	if (has_control(text, "\t\n\r") || !kr_text_is_utf8(text, strlen(text)))
		return kr_fail(err, KR_E_USAGE, "%s has to be UTF-8 without control characters", what);
	return 0;
}

/* "Add --json!" is "add-json-3fa9". */
static const char *
make_id(struct kr_arena *arena, const char *title, struct kr_error *err)
{
	char slug[SLUG_MAX + 1];
	unsigned short salt;
	size_t n = 0;

	for (; *title && n < SLUG_MAX; title++) {
		char c = *title >= 'A' && *title <= 'Z' ? (char)(*title + 32) : *title;

		if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
			slug[n++] = c;
		else if (n && slug[n - 1] != '-')
			slug[n++] = '-';
	}
	while (n && slug[n - 1] == '-')
		n--;
	if (!kr_random(&salt, sizeof(salt))) {
		kr_fail(err, KR_E_SYSTEM, "the system gives no random bytes");
		return NULL;
	}
	slug[n] = '\0';
	return kr_arena_printf(arena, "%s-%04x", n ? slug : "item", salt);
}

/* Its text is kept, so it must be one that loads. */
static const char *
freeze_policy(struct kr_work *work, struct kr_error *err)
{
	const struct kr_places *places = &work->host.places;
	const char *path = kr_path_join(work->arena, places->config_dir, "policy.yaml");
	kr_auto_buf struct kr_buf text = KR_BUF(KR_CONFIG_FILE_BYTES);
	struct kr_error why = { 0 };
	struct kr_policy_file file;

	if (kr_file_read_at(AT_FDCWD, path, &text, &why) < 0 && why.sys_errno != ENOENT) {
		*err = why;
		return NULL;
	}
	if (kr_policy_file_parse(work->arena, places, path, text.data ? text.data : "", text.len, &file, err) < 0)
		return NULL;
	return kr_arena_dup_n(work->arena, text.data ? text.data : "", text.len);
}

static const char *
words_json(struct kr_arena *arena, const char *const *words)
{
	json_t *list = json_array();
	const char *out;
	char *text;

	for (; *words; words++)
		json_array_append_new(list, json_string(*words));
	text = json_dumps(list, JSON_COMPACT);
	json_decref(list);
	out = text ? kr_arena_dup(arena, text) : NULL;
	free(text);
	return out;
}

/* Whole ids. One that was cancelled will never be completed. */
static int
find_dependencies(
	struct kr_work *work, const char *const *words, struct kr_strs *out, struct kr_error *err)
{
	for (; words && *words; words++) {
		struct kr_item_row on;

		if (kr_store_item_get(work->arena, work->store, *words, &on, err) < 0)
			return kr_wrap(err, "what the item is to depend on");
		if (kr_work_has_ended(&on) && !kr_work_is(&on, KR_STATUS_COMPLETED))
			return kr_fail(err, KR_E_REFUSED, "item '%s' is %s: nothing can wait for it", on.id, on.status);
		kr_strs_add(work->arena, out, on.id);
	}
	return 0;
}

/* It has to load, and only what it takes away has an effect. */
static int
check_layer(struct kr_work *work, const struct kr_work_new *want, struct kr_error *err)
{
	struct kr_policy_layer layer;

	return want->layer && kr_policy_layer_parse(work->arena, &work->host.places, want->layer_file, want->layer,
							  strlen(want->layer), &layer, err) < 0
			   ? -1
			   : 0;
}

/* Which it is is looked at again at each launch; that there is one, now. */
static int
check_harness(struct kr_work *work, const struct kr_work_new *want, struct kr_error *err)
{
	struct kr_harness harness;

	if (!want->harness)
		return 0;
	if (want->worker && want->worker[0])
		return kr_fail(err, KR_E_USAGE, "an item has a harness, or a command in an agent's place, and not both");
	return kr_harness_load(work->arena, &work->host.places, want->harness, &harness, err);
}

struct filing {
	struct kr_work *work;
	struct kr_item_row *row;
	struct kr_strs depends_on;
};

static int
file(void *context, struct kr_error *err)
{
	const struct filing *f = context;
	const struct kr_item_row *row = f->row;

	if (kr_store_item_add(f->work->store, row, err) < 0)
		return -1;
	for (size_t i = 0; i < f->depends_on.n; i++)
		if (kr_store_dependency_add(f->work->store, row->id, f->depends_on.v[i], err) < 0)
			return -1;
	return kr_work_event(f->work, row->id, "work_item_created",
		json_pack("{s:s, s:s, s:s}", "title", row->title, "repo", row->repo, "chain_template", row->chain_id),
		err);
}

int
kr_work_file(
	struct kr_work *work, const struct kr_work_new *want, struct kr_item_row *out, struct kr_error *err)
{
	struct filing filing = { work, out, { 0 } };
	struct kr_chain chain;
	struct kr_where where;

	if (check_title(want->title, err) < 0 ||
		(want->description && *want->description &&
			kr_work_check_text("the description", want->description, err) < 0) ||
		kr_where_find(work->arena, &work->host.places, want->repo, &where, err) < 0 ||
		check_layer(work, want, err) < 0 || check_harness(work, want, err) < 0 ||
		find_dependencies(work, want->depends_on, &filing.depends_on, err) < 0)
		return -1;
	*out = (struct kr_item_row){
		.id = make_id(work->arena, want->title, err),
		.title = want->title,
		.description = want->description ? want->description : "",
		.repo = where.checkout.root,
		.base = want->base,
		.layer = want->layer,
		.harness = want->harness,
		.policy = freeze_policy(work, err),
		.status = kr_status_name(KR_STATUS_PAUSED),
		.stop = "",
		.reason = "",
		.place = "",
		.progress = -1,
		.run = 1,
		.created_ms = kr_now_ms(),
		.changed_ms = kr_now_ms(),
	};
	if (!out->id || !out->policy)
		return -1;
	out->chain_id = want->chain                 ? want->chain
					: where.repo->default_chain ? where.repo->default_chain
												: "default";
	if (kr_chain_load(work->arena, &work->host.places, out->chain_id, &chain, err) < 0)
		return -1;
	out->chain = chain.text;
	if (want->worker && want->worker[0] && !(out->worker = words_json(work->arena, want->worker)))
		return kr_fail(err, KR_E_USAGE, "the worker's command has to be UTF-8");
	if (kr_store_transact(work->store, file, &filing, err) < 0)
		return -1;
	KR_FAULT(item_filed);
	return 0;
}
