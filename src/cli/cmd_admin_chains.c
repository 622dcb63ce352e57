/*
 * kraft admin chains: the chains there are and whether they load; with an ID, what one consists of, path by
 * path.
 *
 * A chain that does not load is a row like the others: a list must show what is wrong, and one broken file
 * must not hide the rest. Named by its ID it is an error, with its place.
 */
#include <jansson.h>

#include "api/shapes.h"
#include "base/text.h"
#include "cli/cli.h"
#include "config/chain.h"
#include "os/host.h"

enum { JSON };
static const struct kr_option options[] = {
	[JSON] = { "json", 0, NULL, "print one JSON object" },
	{ 0 },
};

/* A chain as it was found: loaded, or the error. */
struct seen {
	const char *id;
	bool loads;
	struct kr_chain chain;
	struct kr_error err;
};

/* ---- as JSON ---- */

static json_t *
string_or_null(const char *text)
{
	return text ? json_string(text) : json_null();
}

static json_t *
sandbox_json(const struct kr_policy_layer *layer)
{
	return layer->sandbox_is_false ? json_false() : kr_sandbox_json(&layer->sandbox);
}

/* What the layer says, under its keys' names; {} when it says nothing. */
static json_t *
policy_json(const struct kr_policy_layer *layer)
{
	json_t *object = json_object(), *grants = json_array();

	if (layer->has_allowed_tools)
		json_object_set_new(object, "allowed_tools", kr_strings_json(&layer->allowed_tools));
	if (layer->deny_tools.n)
		json_object_set_new(object, "deny_tools", kr_strings_json(&layer->deny_tools));
	if (layer->ask_tools.n)
		json_object_set_new(object, "ask_tools", kr_strings_json(&layer->ask_tools));
	for (int i = 0; i < KR_GRANT_COUNT; i++)
		if (layer->grants >> i & 1)
			json_array_append_new(grants, json_string(kr_grant_name((enum kr_grant)i)));
	if (layer->has_grants)
		json_object_set(object, "grants", grants);
	json_decref(grants);
	if (layer->has_sandbox)
		json_object_set_new(object, "sandbox", sandbox_json(layer));
	if (layer->has_allowed_harnesses)
		json_object_set_new(object, "allowed_harnesses", kr_strings_json(&layer->allowed_harnesses));
	for (int i = 0; i < KR_BOUND_COUNT; i++)
		if (layer->bounds[i] > 0)
			json_object_set_new(object, kr_bound_name((enum kr_bound)i), json_real(layer->bounds[i]));
	if (layer->escalation_harness)
		json_object_set_new(object, "escalation_harness", json_string(layer->escalation_harness));
	return object;
}

static json_t *
task_json(const struct kr_task *task)
{
	json_t *object = json_object();

	json_object_set_new(object, "path", json_string(task->path));
	json_object_set_new(object, "kind", json_string(kr_task_kind_name(task->kind)));
	if (task->kind == KR_TASK_COMMAND)
		json_object_set_new(object, "argv", kr_strings_json(&task->argv));
	if (task->kind == KR_TASK_BUILTIN)
		json_object_set_new(object, "builtin", json_string(kr_builtin_name(task->builtin)));
	if (task->kind == KR_TASK_AGENT) {
		json_object_set_new(object, "harness", json_string(task->harness));
		json_object_set_new(object, "prompt", json_string(task->prompt));
		json_object_set_new(object, "model", string_or_null(task->model));
		json_object_set_new(object, "effort", string_or_null(task->effort));
	}
	json_object_set_new(object, "skippable", json_boolean(task->is_skippable));
	json_object_set_new(object, "policy", policy_json(&task->policy));
	return object;
}

static json_t *
steps_json(const struct kr_chain_steps *steps)
{
	json_t *array = json_array();

	for (size_t i = 0; i < steps->n; i++) {
		const struct kr_chain_step *step = &steps->v[i];
		json_t *object = json_object(), *tasks = json_array();

		for (size_t k = 0; k < step->task_count; k++)
			json_array_append_new(tasks, task_json(&step->tasks[k]));
		json_object_set_new(object, "path", json_string(step->path));
		json_object_set_new(object, "tasks", tasks);
		json_object_set_new(object, "skippable", json_boolean(step->is_skippable));
		json_object_set_new(object, "policy", policy_json(&step->policy));
		json_array_append_new(array, object);
	}
	return array;
}

static json_t *
node_json(const struct kr_chain *chain, const struct kr_node *node)
{
	json_t *object = json_object();

	json_object_set_new(object, "id", json_string(node->id));
	json_object_set_new(object, "kind", json_string(node->is_gate ? "gate" : "exec"));
	if (node->is_gate) {
		json_object_set_new(object, "message", string_or_null(node->message));
		json_object_set_new(object, "reject_to", json_string(chain->nodes[node->reject_to].id));
	} else {
		json_object_set_new(object, "steps", steps_json(&node->steps));
		json_object_set_new(object, "on_failure", steps_json(&node->recovery));
		json_object_set_new(object, "fix_loop", steps_json(&node->fix));
		json_object_set_new(
			object, "fix_attempts", node->fix_attempts ? json_integer(node->fix_attempts) : json_null());
	}
	json_object_set_new(object, "skippable", json_boolean(node->is_skippable));
	json_object_set_new(object, "policy", policy_json(&node->policy));
	return object;
}

static json_t *
chain_json(const struct kr_chain *chain)
{
	json_t *object = json_object(), *nodes = json_array();

	for (size_t i = 0; i < chain->node_count; i++)
		json_array_append_new(nodes, node_json(chain, &chain->nodes[i]));
	json_object_set_new(object, "id", json_string(chain->id));
	json_object_set_new(object, "file", json_string(chain->file));
	json_object_set_new(object, "description", string_or_null(chain->description));
	json_object_set_new(object, "policy", policy_json(&chain->policy));
	json_object_set_new(object, "nodes", nodes);
	return object;
}

/* ---- one chain, for people ---- */

static void
print_policy(struct kr_arena *arena, const struct kr_policy_layer *layer, int indent)
{
	json_t *object = policy_json(layer), *value;
	const char *key, *lead = "policy: ";

	if (json_object_size(object))
		printf("%*s", indent, "");
	json_object_foreach(object, key, value)
	{
		char *text = json_is_real(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

		if (text)
			printf("%s%s %s", lead, key, kr_shown(arena, text));
		else
			printf("%s%s %.12g", lead, key, json_real_value(value));
		free(text);
		lead = ", ";
	}
	if (json_object_size(object))
		printf("\n");
	json_decref(object);
}

static const char *
task_words(struct kr_arena *arena, const struct kr_task *task)
{
	if (task->kind == KR_TASK_COMMAND)
		return kr_shown(arena, task->command);
	if (task->kind == KR_TASK_BUILTIN)
		return kr_builtin_name(task->builtin);
	return kr_arena_printf(arena, "%s%s%s%s%s", task->harness, task->model ? ", model " : "",
		task->model ? kr_shown(arena, task->model) : "", task->effort ? ", effort " : "",
		task->effort ? kr_shown(arena, task->effort) : "");
}

static void
print_steps(struct kr_arena *arena, const struct kr_chain_steps *steps, int width)
{
	for (size_t i = 0; i < steps->n; i++) {
		const struct kr_chain_step *step = &steps->v[i];

		if (step->policy.mark.line)
			printf("  %s\n", step->path);
		print_policy(arena, &step->policy, 4);
		for (size_t k = 0; k < step->task_count; k++) {
			const struct kr_task *task = &step->tasks[k];

			printf("  %-*s  %-10s  %s%s\n", width - 2, task->path, kr_task_kind_name(task->kind),
				task_words(arena, task), task->is_skippable && step->is_skippable ? "" : ", not skippable");
			print_policy(arena, &task->policy, 4);
		}
	}
}

static int
widest(const struct kr_chain_steps *steps, int width)
{
	for (size_t i = 0; i < steps->n; i++)
		for (size_t k = 0; k < steps->v[i].task_count; k++) {
			int n = (int)strlen(steps->v[i].tasks[k].path) + 2;

			width = n > width ? n : width;
		}
	return width;
}

static const char *
node_words(struct kr_arena *arena, const struct kr_chain *chain, const struct kr_node *node)
{
	if (node->is_gate)
		return kr_arena_printf(arena, "a rejection goes to %s", chain->nodes[node->reject_to].id);
	if (!node->fix.n)
		return "";
	if (node->fix_attempts)
		return kr_arena_printf(arena, "fix loop: at most %u attempts", node->fix_attempts);
	return "fix loop: attempts as the policy says";
}

static void
print_chain(struct kr_arena *arena, const struct kr_chain *chain)
{
	int width = 20;

	for (size_t i = 0; i < chain->node_count; i++)
		width = widest(
			&chain->nodes[i].fix, widest(&chain->nodes[i].recovery, widest(&chain->nodes[i].steps, width)));
	printf("%s  (%s)\n", chain->id, kr_shown(arena, chain->file));
	if (chain->description)
		printf("%s\n", kr_shown(arena, chain->description));
	print_policy(arena, &chain->policy, 0);
	for (size_t i = 0; i < chain->node_count; i++) {
		const struct kr_node *node = &chain->nodes[i];
		const char *words = node_words(arena, chain, node);

		printf("%-*s  %s%s%s%s\n", width, node->id, node->is_gate ? "gate" : "exec", *words ? "        " : "",
			words, node->is_skippable ? "" : ", not skippable");
		print_policy(arena, &node->policy, 2);
		print_steps(arena, &node->steps, width);
		print_steps(arena, &node->recovery, width);
		print_steps(arena, &node->fix, width);
	}
}

/* ---- all of them ---- */

static const char *
seen_words(struct kr_arena *arena, const struct seen *seen)
{
	const struct kr_error *err = &seen->err;

	if (seen->loads)
		return seen->chain.description ? kr_shown(arena, seen->chain.description) : "";
	if (err->place.line)
		return kr_arena_printf(
			arena, "line %u, column %u: %s", err->place.line, err->place.column, kr_shown(arena, err->message));
	return kr_shown(arena, err->message);
}

static void
print_table(struct kr_arena *arena, const struct seen *seen, size_t n)
{
	int width = 5;

	for (size_t i = 0; i < n; i++) {
		int length = (int)strlen(kr_shown(arena, seen[i].id));

		width = length > width && length <= 40 ? length : width;
	}
	printf("%-*s  LOADS  DESCRIPTION\n", width, "CHAIN");
	for (size_t i = 0; i < n; i++)
		printf("%-*s  %-5s  %s\n", width, kr_shown(arena, seen[i].id), seen[i].loads ? "yes" : "no",
			seen_words(arena, &seen[i]));
}

static int
list(struct kr_arena *arena, const struct kr_places *places, struct kr_error *err)
{
	struct kr_strs ids;
	struct seen *seen;

	if (kr_chain_ids(arena, places, &ids, err) < 0)
		return -1;
	seen = kr_arena_alloc(arena, ids.n * sizeof(*seen));
	for (size_t i = 0; i < ids.n; i++) {
		seen[i].id = ids.v[i];
		seen[i].loads = kr_chain_load(arena, places, ids.v[i], &seen[i].chain, &seen[i].err) == 0;
	}
	print_table(arena, seen, ids.n);
	return 0;
}

static int
run(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	bool as_json = parsed->value[JSON];
	struct kr_chain chain;
	struct kr_host host;

	if (kr_host_gather_places(arena, &host, err) < 0)
		return -1;
	if (!parsed->word_count && as_json) {
		json_t *chains = kr_chains_json(arena, &host.places, err);

		return chains ? kr_print_json(chains, err) : -1;
	}
	if (!parsed->word_count)
		return list(arena, &host.places, err);
	if (kr_chain_load(arena, &host.places, parsed->words[0], &chain, err) < 0)
		return -1;
	if (as_json)
		return kr_print_json(chain_json(&chain), err);
	print_chain(arena, &chain);
	return 0;
}

const struct kr_command kr_cmd_admin_chains = {
	.name = "admin chains",
	.usage = "[--json] [ID]",
	.summary = "list the chains of work items, or show one",
	.help = "Lists the chains in config/chains and the one that comes with kraft, and whether they load. "
			"With an\n"
			"ID: its nodes and tasks by their paths, with their kinds and bounds.\n",
	.options = options,
	.words_max = 1,
	.run = run,
};
