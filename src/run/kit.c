#include "run/kit.h"

#include <unistd.h>

#include "backend/kit.h"
#include "run/internal.h"
#include "store/store.h"

/* ---- the descriptor ---- */

static int
fetch(struct kr_arena *arena, const struct kr_host *host, const char *name, int stderr_fd,
	const struct kr_sandbox_file *file, struct kr_kit_source *source, struct kr_error *err)
{
	struct kr_runtime runtime;

	if (kr_runtime_find(arena, host, file, &runtime, err) < 0)
		return -1;
	kr_run_say("fetching the kit '%s'", name);
	return kr_kit_fetch(arena, &runtime, name, stderr_fd, source, err);
}

static int
refuse_missing(const char *name, struct kr_error *err)
{
	kr_fail(err, KR_E_NOT_FOUND, "the kit '%s' has not been fetched yet, so what it asks for is not known", name);
	return kr_hint(err, "the first run fetches it: 'kraft run -- true'");
}

/* One that is refused is not kept: who corrects sandbox.yaml has it, and who published it can say something else only under
 * another digest. */
static int
find_kit(struct kr_arena *arena, const struct kr_host *host, bool may_fetch, int stderr_fd, const char *name,
	struct kr_run_kit *out, struct kr_error *err)
{
	kr_auto_free struct kr_kit_source *source = kr_xcalloc(1, sizeof(*source));
	const bool is_kept = kr_kit_look(arena, host->places.run_dir, name, source) == 0;

	if (!is_kept && !may_fetch)
		return refuse_missing(name, err);
	if (!is_kept && fetch(arena, host, name, stderr_fd, &out->file, source, err) < 0)
		return -1;
	if (kr_kit_parse(arena, name, source->bytes, source->len, &out->kit, err) < 0)
		return -1;
	out->manifest = kr_arena_dup(arena, source->digest);
	return is_kept ? 0 : kr_kit_keep(arena, host->places.run_dir, name, source, err);
}

int
kr_run_kit_find(struct kr_arena *arena, const struct kr_host *host, bool may_fetch, int stderr_fd,
	const struct kr_repo **repo, struct kr_run_kit *out, struct kr_error *err)
{
	const struct kr_sandbox *from = &(*repo)->sandbox;
	struct kr_repo *lowered;

	out->is_used = from->kind == KR_SANDBOX_KIT;
	if (!out->is_used)
		return 0;
	if (kr_run_container_check_host(host, err) < 0 ||
		kr_sandbox_file_load(arena, &host->places, &out->file, err) < 0 ||
		find_kit(arena, host, may_fetch, stderr_fd, from->kit, out, err) < 0)
		return -1;
	lowered = kr_arena_new(arena, struct kr_repo);
	*lowered = **repo;
	if (kr_kit_lower(arena, &out->kit, &out->file, from, &lowered->sandbox, err) < 0)
		return -1;
	*repo = lowered;
	return 0;
}

/* ---- what is told of it ---- */

void
kr_run_kit_tell(struct kr_arena *arena, const struct kr_run_kit *kit, struct kr_strs *lines)
{
	if (!kit->is_used)
		return;
	kr_strs_add(arena, lines,
		kr_arena_printf(arena, "the sandbox is the kit's, '%s': its hosts, its limits, and %zu credential%s", kit->kit.name,
			kit->kit.credential_count, kit->kit.credential_count == 1 ? "" : "s"));
	for (size_t i = 0; i < kit->kit.skipped.n; i++)
		kr_strs_add(arena, lines,
			kr_arena_printf(arena, "the kit would like '%s', which kraft does not have: it goes without", kit->kit.skipped.v[i]));
	for (size_t i = 0; i < kit->kit.ignored.n; i++)
		kr_strs_add(arena, lines, kr_arena_printf(arena, "without effect: %s", kit->kit.ignored.v[i]));
}

struct search {
	const char *kit;
	bool found;
};

static int
look_for(void *context, const struct kr_event *event)
{
	struct search *search = context;
	json_t *data = json_loads(event->data, 0, NULL);
	const char *kit = json_string_value(json_object_get(data, "kit"));

	search->found = kit && strcmp(kit, search->kit) == 0;
	json_decref(data);
	return search->found ? -1 : 0;
}

/* A store that cannot be asked is told of when the event cannot be recorded either. */
static bool
is_noted(const struct kr_run_state *run)
{
	const struct kr_event_query query = { .type = "sandbox_kit_resolved", .item = run->item.id };
	struct search search = { .kit = run->kit.kit.name };
	struct kr_store *store = NULL;

	if (kr_store_open(run->host.places.run_dir, KR_STORE_READ, &store, NULL) == 0)
		(void)kr_store_events(store, &query, look_for, &search, NULL);
	kr_store_close(store);
	return search.found;
}

static json_t *
list_of(const struct kr_strs *words)
{
	json_t *list = json_array();

	for (size_t i = 0; i < words->n; i++)
		json_array_append_new(list, json_string(words->v[i]));
	return list;
}

void
kr_run_kit_note(const struct kr_run_state *run)
{
	const struct kr_run_kit *kit = &run->kit;

	if (!kit->is_used || is_noted(run))
		return;
	kr_run_record(run, NULL, "sandbox_kit_resolved",
		json_pack("{s:s, s:s, s:o, s:o}", "kit", kit->kit.name, "manifest", kit->manifest, "skipped",
			list_of(&kit->kit.skipped), "ignored", list_of(&kit->kit.ignored)));
}
