#include "api/shapes.h"

#include <unistd.h>

#include "config/chain.h"

static json_t *
string_or_null(const char *text)
{
	return text ? json_string(text) : json_null();
}

json_t *
kr_strings_json(const struct kr_strs *list)
{
	json_t *array = json_array();

	for (size_t i = 0; i < list->n; i++)
		json_array_append_new(array, json_string(list->v[i]));
	return array;
}

/* ---- sandboxes ---- */

static json_t *
network_json(const struct kr_network *network)
{
	json_t *object = json_object();

	for (int phase = 0; phase < KR_PHASE_COUNT; phase++)
		if (network->phase_is_set[phase])
			json_object_set_new(object, kr_phase_name((enum kr_phase)phase),
				json_pack("{s:o, s:o}", "allow", kr_strings_json(&network->phase[phase].allow), "deny",
					kr_strings_json(&network->phase[phase].deny)));
	return object;
}

static json_t *
resources_json(const struct kr_resources *resources)
{
	json_t *object = json_object();
	char memory[KR_MEMORY_WORDS];

	if (resources->cpu > 0)
		json_object_set_new(object, "cpu", json_real(resources->cpu));
	kr_memory_words(resources->memory_bytes, memory);
	if (resources->memory_bytes)
		json_object_set_new(object, "memory", json_string(memory));
	if (resources->pids)
		json_object_set_new(object, "pids", json_integer((json_int_t)resources->pids));
	return object;
}

json_t *
kr_sandbox_json(const struct kr_sandbox *sandbox)
{
	json_t *object = json_pack("{s:s, s:s*, s:s*, s:s*}", "kind", kr_sandbox_kind_name(sandbox->kind), "image",
		sandbox->image, "runtime", sandbox->runtime, "kit", sandbox->kit);
	json_t *expose = json_array();

	if (sandbox->network.is_set)
		json_object_set_new(object, "network", network_json(&sandbox->network));
	if (sandbox->unrestricted_network)
		json_object_set_new(object, "unrestricted_network", json_true());
	if (sandbox->has_resources)
		json_object_set_new(object, "resources", resources_json(&sandbox->resources));
	for (size_t i = 0; i < sandbox->expose_count; i++)
		json_array_append_new(expose, json_string(sandbox->expose[i].text));
	if (sandbox->expose_count)
		json_object_set(object, "expose", expose);
	json_decref(expose);
	return object;
}

/* ---- repositories ---- */

json_t *
kr_repo_json(const struct kr_repo *repo)
{
	const bool has_sandbox = repo->sandbox.kind != KR_SANDBOX_NONE;

	return json_pack("{s:s, s:s?, s:s, s:i, s:b, s:b, s:s?, s:s?, s:o}", "name", repo->name, "id", repo->id,
		"path", repo->path, "line", (int)repo->mark.line, "present", access(repo->path, F_OK) == 0, "enabled",
		(int)repo->enabled, "setup_command", repo->setup_command, "test_command", repo->test_command,
		"sandbox", has_sandbox ? kr_sandbox_json(&repo->sandbox) : json_null());
}

json_t *
kr_repos_json(const struct kr_repos *repos)
{
	json_t *object = json_object(), *list = json_array(), *warnings = json_array();

	for (size_t i = 0; i < repos->repo_count; i++)
		json_array_append_new(list, kr_repo_json(&repos->repo[i]));
	for (size_t i = 0; i < repos->warnings.n; i++)
		json_array_append_new(warnings, json_string(repos->warnings.v[i]));
	json_object_set_new(object, "file", json_string(repos->file));
	json_object_set_new(object, "repos", list);
	json_object_set_new(object, "warnings", warnings);
	return object;
}

/* ---- chains ---- */

json_t *
kr_error_json(const struct kr_error *err)
{
	json_t *object = json_object();
	char number[KR_ERROR_NUMBER_TEXT];

	kr_error_number_text(err->number, number);
	json_object_set_new(object, "code", json_string(kr_error_name(err->code)));
	json_object_set_new(object, "number", err->number ? json_string(number) : json_null());
	json_object_set_new(object, "message", json_string(err->message));
	json_object_set_new(object, "hint", string_or_null(*err->hint ? err->hint : NULL));
	json_object_set_new(object, "line", err->place.line ? json_integer(err->place.line) : json_null());
	json_object_set_new(object, "column", err->place.line ? json_integer(err->place.column) : json_null());
	return object;
}

static json_t *
chain_json(struct kr_arena *arena, const struct kr_places *places, const char *id)
{
	json_t *object = json_object();
	struct kr_error why = { 0 };
	struct kr_chain chain;
	const bool loads = kr_chain_load(arena, places, id, &chain, &why) == 0;

	json_object_set_new(object, "id", json_string(id));
	json_object_set_new(object, "loads", json_boolean(loads));
	if (loads) {
		json_object_set_new(object, "file", json_string(chain.file));
		json_object_set_new(object, "description", string_or_null(chain.description));
	} else {
		json_object_set_new(object, "error", kr_error_json(&why));
	}
	return object;
}

json_t *
kr_chains_json(struct kr_arena *arena, const struct kr_places *places, struct kr_error *err)
{
	json_t *chains = json_array();
	struct kr_strs ids;

	if (kr_chain_ids(arena, places, &ids, err) < 0) {
		json_decref(chains);
		return NULL;
	}
	for (size_t i = 0; i < ids.n; i++)
		json_array_append_new(chains, chain_json(arena, places, ids.v[i]));
	return json_pack("{s:o}", "chains", chains);
}
