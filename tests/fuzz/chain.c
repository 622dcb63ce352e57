/*
 * A chain, policy.yaml, an item's layer of it, and a command's words. Beyond "no crash": a refusal has its place; what loads keeps
 * every limit, has paths that name one thing each, leads back only to an exec node before the gate, and reads
 * the same from the text it kept; words that are quoted and split again are the same words.
 */
#include "base/path.h"
#include "config/chain.h"
#include "config/notify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct kr_places places = {
	.home = "/home/you",
	.kraft_home = "/home/you/.kraft",
	.run_dir = "/home/you/.kraft/run",
	.config_dir = "/home/you/.kraft/config",
};

static void
add_path(struct kr_arena *arena, struct kr_strs *paths, const char *path)
{
	KR_BUG_IF(!path || kr_strs_has(paths, path));
	kr_strs_add(arena, paths, path);
}

static void
check_layer(const struct kr_policy_layer *layer)
{
	KR_BUG_IF(layer->grants >> KR_GRANT_COUNT || (layer->grants && !layer->has_grants));
	KR_BUG_IF(!layer->has_sandbox && (layer->sandbox_is_false || layer->sandbox.kind != KR_SANDBOX_NONE));
	KR_BUG_IF(layer->has_sandbox && layer->sandbox_is_false != (layer->sandbox.kind == KR_SANDBOX_NONE));
	for (int i = 0; i < KR_BOUND_COUNT; i++)
		KR_BUG_IF(!(layer->bounds[i] >= 0) || layer->bounds[i] > 1e12);
	KR_BUG_IF(layer->bounds[KR_BOUND_ATTEMPTS] > KR_ATTEMPTS_MAX);
}

static void
check_task(const struct kr_task *task)
{
	KR_BUG_IF(
		task->kind == KR_TASK_COMMAND && (!task->argv.n || !*task->argv.v[0] || task->argv.v[task->argv.n]));
	KR_BUG_IF(task->kind == KR_TASK_AGENT && (!*task->harness || !*task->prompt));
	KR_BUG_IF(task->kind != KR_TASK_COMMAND && task->command);
	KR_BUG_IF(task->kind != KR_TASK_AGENT && task->harness);
	check_layer(&task->policy);
}

static size_t
check_steps(struct kr_arena *arena, struct kr_strs *paths, const struct kr_chain_steps *steps)
{
	size_t tasks = 0;

	for (size_t i = 0; i < steps->n; i++) {
		const struct kr_chain_step *step = &steps->v[i];

		KR_BUG_IF(!step->task_count);
		add_path(arena, paths, step->path);
		check_layer(&step->policy);
		tasks += step->task_count;
		for (size_t k = 0; k < step->task_count; k++) {
			add_path(arena, paths, step->tasks[k].path);
			check_task(&step->tasks[k]);
		}
	}
	return tasks;
}

static void
check_chain(struct kr_arena *arena, const struct kr_chain *chain)
{
	struct kr_strs paths = { 0 };
	size_t tasks = 0;

	KR_BUG_IF(!chain->node_count || chain->node_count > KR_CHAIN_NODES || chain->nodes[0].is_gate);
	check_layer(&chain->policy);
	for (size_t i = 0; i < chain->node_count; i++) {
		const struct kr_node *node = &chain->nodes[i];

		add_path(arena, &paths, node->id);
		check_layer(&node->policy);
		KR_BUG_IF(node->is_gate &&
				  (node->steps.n || node->reject_to >= i || chain->nodes[node->reject_to].is_gate));
		KR_BUG_IF(!node->is_gate && (!node->steps.n || node->message));
		KR_BUG_IF(node->fix_attempts > KR_ATTEMPTS_MAX);
		tasks += check_steps(arena, &paths, &node->steps) + check_steps(arena, &paths, &node->recovery) +
				 check_steps(arena, &paths, &node->fix);
	}
	KR_BUG_IF(tasks > KR_CHAIN_TASKS);
}

static void
check_words(struct kr_arena *arena, const char *text)
{
	struct kr_buf quoted KR_CLEANUP(kr_buf_fini) = KR_BUF(8u << 20);
	struct kr_strs words = { 0 }, again = { 0 };
	const char *why;

	if (!kr_words_split(arena, text, &words, &why)) {
		KR_BUG_IF(!why || words.n);
		return;
	}
	for (size_t i = 0; i < words.n; i++) {
		kr_buf_adds(&quoted, " '");
		for (const char *p = words.v[i]; *p; p++)
			kr_buf_add(&quoted, *p == '\'' ? "'\\''" : p, *p == '\'' ? 4 : 1);
		kr_buf_adds(&quoted, "'");
	}
	KR_BUG_IF(!kr_words_split(arena, quoted.data ? quoted.data : "", &again, &why) || again.n != words.n);
	for (size_t i = 0; i < words.n; i++)
		KR_BUG_IF(strcmp(words.v[i], again.v[i]) != 0);
}

static void
check_policy(struct kr_arena *arena, const char *bytes, size_t n)
{
	struct kr_policy_file file;
	struct kr_error err = { 0 };

	if (kr_policy_file_parse(arena, &places, "f", bytes, n, &file, &err) < 0) {
		KR_BUG_IF(err.code != KR_E_CONFIG || !err.place.line || !err.message[0]);
		return;
	}
	check_layer(&file.layer);
	KR_BUG_IF(
		!file.attempts || file.attempts > KR_ATTEMPTS_MAX || !file.wall_clock_s || !file.max_concurrent);
}

static void
check_item_layer(struct kr_arena *arena, const char *bytes, size_t n)
{
	struct kr_policy_layer layer;
	struct kr_error err = { 0 };

	if (kr_policy_layer_parse(arena, &places, "f", bytes, n, &layer, &err) < 0)
		KR_BUG_IF(err.code != KR_E_CONFIG || !err.place.line || !err.message[0]);
	else
		check_layer(&layer);
}

static void
check_notify(struct kr_arena *arena, const char *bytes, size_t n)
{
	struct kr_error err = { 0 };
	struct kr_notify notify;

	if (kr_notify_parse(arena, &places, "f", bytes, n, &notify, &err) < 0) {
		KR_BUG_IF(err.code != KR_E_CONFIG || !err.place.line || !err.message[0]);
		return;
	}
	KR_BUG_IF(notify.on >> KR_OCCASION_COUNT);
	KR_BUG_IF(notify.webhook && (strlen(notify.webhook) > KR_WEBHOOK_BYTES || strpbrk(notify.webhook, " \"\\\n\r\t")));
	if (!notify.command.n)
		return;
	KR_BUG_IF(strchr(notify.command.v[0], '/') && !kr_path_is_clean(notify.command.v[0]));
	KR_BUG_IF(!*notify.command.v[0] || notify.command.v[notify.command.n]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_chain chain, again;
	struct kr_error err = { 0 };
	/* Exactly n bytes, so that reading one too many is seen. */
	kr_auto_free char *bytes = kr_xcalloc(1, n ? n : 1);

	if (n)
		memcpy(bytes, data, n);
	check_words(&arena, kr_arena_dup_n(&arena, bytes, n));
	check_policy(&arena, bytes, n);
	check_item_layer(&arena, bytes, n);
	check_notify(&arena, bytes, n);
	if (kr_chain_parse(&arena, &places, "f", NULL, bytes, n, &chain, &err) < 0) {
		KR_BUG_IF(err.code != KR_E_CONFIG || !err.place.line || !err.message[0]);
		return 0;
	}
	check_chain(&arena, &chain);
	KR_BUG_IF(chain.text_len != n || memcmp(chain.text, bytes, n) != 0);
	KR_BUG_IF(kr_chain_parse(&arena, &places, "f", chain.id, chain.text, chain.text_len, &again, NULL) < 0);
	KR_BUG_IF(again.node_count != chain.node_count);
	return 0;
}
