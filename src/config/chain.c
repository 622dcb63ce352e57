/*
 * Chains: from the YAML of one to its nodes, and from an id to its YAML.
 *
 * The table of schema.c checks each mapping's keys and types; the walk here adds what needs surroundings:
 * kinds, ids that are unique among siblings, canonical paths, where a rejection leads. Since it may only lead
 * back to a node before the gate, and the one loop there is has a number, no chain runs for ever. Keys that
 * belong to parts that are not built are refused by name: without effect they would be worse than an error.
 */
#include "config/chain.h"

#include "base/text.h"
#include "config/schema.h"

struct walk {
	struct kr_config c;
	struct kr_chain *chain;
	size_t tasks; /* so far */
};

static const char *const kind_names[] = {
#define X(kind, name) [KR_TASK_##kind] = name,
	KR_TASK_KINDS(X)
#undef X
};

static const char *const builtin_names[] = {
#define X(builtin, name) [KR_BUILTIN_##builtin] = name,
	KR_BUILTINS(X)
#undef X
};

const char *
kr_task_kind_name(enum kr_task_kind kind)
{
	return (unsigned)kind < KR_COUNT(kind_names) ? kind_names[kind] : "unknown";
}

const char *
kr_builtin_name(enum kr_builtin builtin)
{
	return (unsigned)builtin < KR_COUNT(builtin_names) ? builtin_names[builtin] : "unknown";
}

const char *
kr_fault_chain_id(const char *text)
{
	const char *fault = kr_fault_id(text);

	return fault ? fault : strlen(text) > KR_CHAIN_ID ? "is longer than 64 letters" : NULL;
}
_Static_assert(KR_CHAIN_ID == 64, "as the message says");

/* Repair steps stand below these names in a canonical path. */
const char *
kr_fault_step_id(const char *text)
{
	if (strcmp(text, "on_failure") == 0 || strcmp(text, "fix_loop") == 0)
		return "is kept for the paths of repair steps";
	return kr_fault_chain_id(text);
}

int
kr_later_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	(void)c;
	(void)key;
	(void)node;
	(void)target;
	return 0;
}

int
kr_builtin_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	for (size_t i = 0; i < KR_COUNT(builtin_names); i++)
		if (strcmp(builtin_names[i], node->text) == 0) {
			*(enum kr_builtin *)target = (enum kr_builtin)i;
			return 0;
		}
	kr_config_fail(c, node, "'%s' is nothing that kraft does itself", kr_config_quote(c, node->text));
	return kr_hint(c->err, "%s: %s", key->name, key->help);
}

/* ---- what nodes, steps and tasks share ---- */

/* The item is a mapping, and its id is nobody's before it in the list. Call it when its own keys are checked.
 */
static int
check_unique(
	struct walk *w, const struct kr_yaml_node *list, const struct kr_yaml_node *item, const char *what)
{
	const struct kr_yaml_node *id = kr_yaml_get(item, "id");

	for (const struct kr_yaml_node *before = list->child; before != item; before = before->next) {
		const struct kr_yaml_node *other = kr_yaml_get(before, "id");

		if (strcmp(other->text, id->text) != 0)
			continue;
		kr_config_fail(&w->c, id, "the id '%s' stands twice, on lines %u and %u", id->text, other->start.line,
			id->start.line);
		return kr_hint(w->c.err, "an id names one %s among those beside it", what);
	}
	return 0;
}

static int
want_mapping(struct walk *w, const struct kr_yaml_node *item, const char *list)
{
	if (kr_yaml_value(item) == KR_VALUE_MAPPING)
		return 0;
	kr_config_fail(&w->c, item, "an item of '%s' must be a mapping, not %s", list,
		kr_yaml_value_words(kr_yaml_value(item)));
	return kr_hint(w->c.err, "write '- id: NAME' and the other keys below");
}

/* What it extends would have its kind; so say that first. */
static int
want_kind(struct walk *w, const struct kr_yaml_node *item, const char *what, const char *kinds,
	const struct kr_yaml_node **out)
{
	const struct kr_yaml_node *extends = kr_yaml_get(item, "extends");

	*out = kr_yaml_get(item, "kind");
	if (!*out && extends) {
		kr_config_fail(&w->c, extends->key, "'extends' is not built into this kraft");
		return kr_hint(w->c.err, "write the %s out", what);
	}
	if (!*out) {
		kr_config_fail(&w->c, item, "'kind' is missing in a %s", what);
		return kr_hint(w->c.err, "the kinds are %s", kinds);
	}
	if (kr_config_want(&w->c, *out, "kind", KR_KEY_STRING) < 0)
		return kr_hint(w->c.err, "the kinds are %s", kinds);
	return 0;
}

/* ---- tasks ---- */

#define TASK_KINDS "subprocess, agent and builtin"

static int
read_task_kind(struct walk *w, const struct kr_yaml_node *item)
{
	const struct kr_yaml_node *kind;

	if (want_kind(w, item, "task", TASK_KINDS, &kind) < 0)
		return -1;
	for (size_t i = 0; i < KR_COUNT(kind_names); i++)
		if (strcmp(kind_names[i], kind->text) == 0) {
			w->c.task_kind = (enum kr_task_kind)i;
			return 0;
		}
	if (strcmp(kind->text, "forge") == 0)
		kr_config_fail(&w->c, kind, "the task kind 'forge' is not built into this kraft");
	else
		kr_config_fail(&w->c, kind, "unknown kind '%s' of task", kr_config_quote(&w->c, kind->text));
	return kr_hint(w->c.err, "the kinds are " TASK_KINDS);
}

static int
split_command(struct walk *w, const struct kr_yaml_node *item, struct kr_task *task)
{
	const struct kr_yaml_node *command = kr_yaml_get(item, "command");
	const char *why;

	if (!kr_words_split(w->c.arena, task->command, &task->argv, &why)) {
		kr_config_fail(&w->c, command, "'command' %s", why);
		return kr_hint(w->c.err, "its words are split as a shell does; a whole script is: sh -c 'SCRIPT'");
	}
	if (task->argv.n && *task->argv.v[0])
		return 0;
	kr_config_fail(&w->c, command, "'command' names no program");
	return kr_hint(w->c.err, "its first word is the program, such as make");
}

static int
read_task(struct walk *w, const struct kr_yaml_node *list, const struct kr_yaml_node *item, const char *step,
	struct kr_task *out)
{
	*out = (struct kr_task){ .is_skippable = true, .mark = kr_config_mark(item) };
	if (want_mapping(w, item, "tasks") < 0 || read_task_kind(w, item) < 0)
		return -1;
	out->kind = w->c.task_kind;
	if (kr_section_read(&w->c, KR_IN_TASK, item, out) < 0 || check_unique(w, list, item, "task") < 0)
		return -1;
	out->path = kr_arena_printf(w->c.arena, "%s.%s", step, out->id);
	return out->kind == KR_TASK_COMMAND ? split_command(w, item, out) : 0;
}

static int
read_tasks(struct walk *w, const struct kr_yaml_node *list, struct kr_chain_step *step)
{
	if (!list->count) {
		kr_config_fail(&w->c, list, "'tasks' is empty");
		return kr_hint(w->c.err, "a step does something, or is not there");
	}
	if (list->count > KR_CHAIN_TASKS - w->tasks)
		return kr_config_fail(&w->c, list, "the chain has more than %d tasks", KR_CHAIN_TASKS);
	w->tasks += list->count;
	step->tasks = kr_arena_alloc(w->c.arena, list->count * sizeof(*step->tasks));
	for (const struct kr_yaml_node *item = list->child; item; item = item->next)
		if (read_task(w, list, item, step->path, &step->tasks[step->task_count++]) < 0)
			return -1;
	return 0;
}

/* ---- steps ---- */

static int
read_step(struct walk *w, const struct kr_yaml_node *list, const struct kr_yaml_node *item, const char *above,
	struct kr_chain_step *out)
{
	*out = (struct kr_chain_step){ .is_skippable = true, .mark = kr_config_mark(item) };
	if (want_mapping(w, item, "steps") < 0 || kr_section_read(&w->c, KR_IN_STEP, item, out) < 0 ||
		check_unique(w, list, item, "step") < 0)
		return -1;
	out->path = kr_arena_printf(w->c.arena, "%s.%s", above, out->id);
	return read_tasks(w, kr_yaml_get(item, "tasks"), out);
}

static int
read_step_list(struct walk *w, const struct kr_yaml_node *list, const char *above, struct kr_chain_steps *out)
{
	if (!list->count) {
		kr_config_fail(&w->c, list, "'steps' is empty");
		return kr_hint(w->c.err, "write '- id: NAME' with the step's tasks below");
	}
	if (list->count > KR_CHAIN_TASKS) /* each has a task at least */
		return kr_config_fail(&w->c, list, "the chain has more than %d tasks", KR_CHAIN_TASKS);
	out->v = kr_arena_alloc(w->c.arena, list->count * sizeof(*out->v));
	for (const struct kr_yaml_node *item = list->child; item; item = item->next)
		if (read_step(w, list, item, above, &out->v[out->n++]) < 0)
			return -1;
	return 0;
}

/* The steps of a node or of a repair: `steps`, or `tasks` for one that is named "main". */
static int
read_steps(struct walk *w, const struct kr_yaml_node *holder, const char *above, struct kr_chain_steps *out)
{
	const struct kr_yaml_node *tasks = kr_yaml_get(holder, "tasks"), *steps = kr_yaml_get(holder, "steps");

	if (tasks && steps) {
		const struct kr_yaml_node *second = tasks->start.index > steps->start.index ? tasks : steps;

		kr_config_fail(&w->c, second->key, "'tasks' and 'steps' exclude each other");
		return kr_hint(w->c.err, "'tasks' is one step that is named main");
	}
	if (steps)
		return read_step_list(w, steps, above, out);
	if (!tasks) {
		kr_config_fail(&w->c, holder, "'tasks' is missing");
		return kr_hint(w->c.err, "write 'tasks:', or 'steps:' when they come one after the other");
	}
	out->v = kr_arena_new(w->c.arena, struct kr_chain_step);
	out->n = 1;
	out->v[0] = (struct kr_chain_step){ .id = "main",
		.path = kr_arena_printf(w->c.arena, "%s.main", above),
		.is_skippable = true,
		.mark = kr_config_mark(tasks) };
	return read_tasks(w, tasks, &out->v[0]);
}

/* ---- nodes ---- */

static int
read_node_kind(struct walk *w, const struct kr_yaml_node *item)
{
	const struct kr_yaml_node *kind;

	if (want_kind(w, item, "node", "exec and gate", &kind) < 0)
		return -1;
	if (strcmp(kind->text, "exec") != 0 && strcmp(kind->text, "gate") != 0) {
		kr_config_fail(&w->c, kind, "unknown kind '%s' of node", kr_config_quote(&w->c, kind->text));
		return kr_hint(w->c.err, "the kinds are exec and gate");
	}
	w->c.node_kind = *kind->text == 'g' ? KR_NODE_GATE : KR_NODE_EXEC;
	return 0;
}

static int
read_repairs(struct walk *w, const struct kr_yaml_node *item, struct kr_node *node)
{
	const struct kr_yaml_node *recovery = kr_yaml_get(item, "on_failure"),
							  *fix = kr_yaml_get(item, "fix_loop");
	struct kr_arena *arena = w->c.arena;

	if (recovery && kr_yaml_value(recovery) == KR_VALUE_MAPPING &&
		(kr_section_read(&w->c, KR_IN_RECOVERY, recovery, node) < 0 ||
			read_steps(w, recovery, kr_arena_printf(arena, "%s.on_failure", node->id), &node->recovery) < 0))
		return -1;
	if (fix && kr_yaml_value(fix) == KR_VALUE_MAPPING &&
		(kr_section_read(&w->c, KR_IN_FIX_LOOP, fix, node) < 0 ||
			read_steps(w, fix, kr_arena_printf(arena, "%s.fix_loop", node->id), &node->fix) < 0))
		return -1;
	return 0;
}

/* The gate is the next node of the chain; only what is before it counts, so nothing leads in a circle without
 * a person. */
static int
find_reject_to(struct walk *w, const struct kr_yaml_node *item, struct kr_node *gate)
{
	const struct kr_yaml_node *named = kr_yaml_get(item, "reject_to");
	const struct kr_node *nodes = w->chain->nodes;

	for (size_t i = w->chain->node_count; i-- > 0;) {
		if (named ? strcmp(nodes[i].id, named->text) != 0 : nodes[i].is_gate)
			continue;
		if (!nodes[i].is_gate) {
			gate->reject_to = i;
			return 0;
		}
		kr_config_fail(&w->c, named, "'%s' of 'reject_to' is a gate", named->text);
		return kr_hint(w->c.err, "name an exec node before it");
	}
	if (named) {
		kr_config_fail(&w->c, named, "'%s' of 'reject_to' is no node before the gate", named->text);
		return kr_hint(w->c.err, "name an exec node that stands before this one");
	}
	kr_config_fail(&w->c, item, "no exec node stands before the gate");
	return kr_hint(w->c.err, "a gate decides on what was done before it");
}

static int
read_node(struct walk *w, const struct kr_yaml_node *list, const struct kr_yaml_node *item)
{
	struct kr_node *node = &w->chain->nodes[w->chain->node_count];

	*node = (struct kr_node){ .is_skippable = true, .mark = kr_config_mark(item) };
	if (want_mapping(w, item, "nodes") < 0 || read_node_kind(w, item) < 0)
		return -1;
	node->is_gate = w->c.node_kind == KR_NODE_GATE;
	if (kr_section_read(&w->c, KR_IN_NODE, item, node) < 0 || check_unique(w, list, item, "node") < 0)
		return -1;
	if (node->is_gate ? find_reject_to(w, item, node) < 0
					  : read_steps(w, item, node->id, &node->steps) < 0 || read_repairs(w, item, node) < 0)
		return -1;
	w->chain->node_count++;
	return 0;
}

static int
read_nodes(struct walk *w, const struct kr_yaml_node *list)
{
	if (!list->count) {
		kr_config_fail(&w->c, list, "'nodes' is empty");
		return kr_hint(w->c.err, "a chain begins with an exec node");
	}
	if (list->count > KR_CHAIN_NODES)
		return kr_config_fail(&w->c, list, "the chain has more than %d nodes", KR_CHAIN_NODES);
	w->chain->nodes = kr_arena_alloc(w->c.arena, list->count * sizeof(*w->chain->nodes));
	for (const struct kr_yaml_node *item = list->child; item; item = item->next)
		if (read_node(w, list, item) < 0)
			return -1;
	return 0;
}

/* ---- a chain ---- */

#define KIND "chains"
#define BEGIN "'id:', and the list 'nodes:' below"

static int
read_chain(struct walk *w, const char *id)
{
	static const struct kr_yaml_node start = { .start = { .line = 1, .column = 1 } };
	const struct kr_yaml_node *root = w->c.doc->root, *own_id;

	if (!root) {
		kr_config_fail(&w->c, &start, "the file is empty");
		return kr_hint(w->c.err, "begin it with " BEGIN);
	}
	if (kr_section_read(&w->c, KR_IN_CHAIN, root, w->chain) < 0)
		return -1;
	own_id = kr_yaml_get(root, "id");
	if (id && strcmp(id, own_id->text) != 0) {
		kr_config_fail(&w->c, own_id, "the chain '%s' stands in the file of '%s'", own_id->text,
			kr_config_quote(&w->c, id));
		return kr_hint(w->c.err, "its id is the file's name without .yaml");
	}
	return read_nodes(w, kr_yaml_get(root, "nodes"));
}

int
kr_chain_parse(struct kr_arena *arena, const struct kr_places *places, const char *file, const char *id,
	const char *text, size_t len, struct kr_chain *out, struct kr_error *err)
{
	struct kr_chain chain = {
		.file = kr_arena_dup(arena, file), .text = kr_arena_dup_n(arena, text, len), .text_len = len
	};
	struct kr_yaml doc = { 0 };
	struct walk w = {
		.c = { .arena = arena, .doc = &doc, .files = KR_IN_CHAINS, .places = places, .err = err },
		.chain = &chain,
	};

	if (kr_config_parse(&w.c, chain.file, chain.text, len, &doc, BEGIN) < 0 || read_chain(&w, id) < 0)
		return -1;
	*out = chain;
	return 0;
}

/* ---- where they lie ---- */

static int
fail_unknown(struct kr_arena *arena, const struct kr_places *places, const char *id, struct kr_error *err)
{
	struct kr_strs ids = { 0 };

	(void)kr_chain_ids(arena, places, &ids, NULL); /* then without a hint */
	return kr_config_unknown("chain", id, &ids, err);
}

int
kr_chain_load(struct kr_arena *arena, const struct kr_places *places, const char *id, struct kr_chain *out,
	struct kr_error *err)
{
	const char *file, *bytes;
	bool is_missing;
	size_t n;

	if (kr_config_find(arena, places, KIND, id, "no item can begin with this chain until it can be read", &file,
			&bytes, &n, &is_missing, err) < 0)
		return -1;
	if (is_missing)
		return fail_unknown(arena, places, id, err);
	return kr_chain_parse(arena, places, file, id, bytes, n, out, err);
}

int
kr_chain_ids(
	struct kr_arena *arena, const struct kr_places *places, struct kr_strs *out, struct kr_error *err)
{
	struct kr_strs ids = { 0 };

	if (kr_config_ids(arena, places, KIND, &ids, err) < 0)
		return -1;
	*out = ids;
	return 0;
}
