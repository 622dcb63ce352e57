/* config: chains. Words, good chains, every mistake with its place, the shipped one, and the directory that
 * they lie in. */
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "config/chain.h"
#include "config/schema.h"

#include <cmocka.h>
#include <fcntl.h>

static const struct kr_places places = {
	.home = "/home/you",
	.kraft_home = "/home/you/.kraft",
	.run_dir = "/home/you/.kraft/run",
	.config_dir = "/home/you/.kraft/config",
};

/* ---- words ---- */

static void
words_are_split_as_a_shell_does(void **state)
{
	static const struct {
		const char *text, *words; /* joined by '|' and closed by it */
	} cases[] = {
		{ "make", "make|" },
		{ "  make \t -j2\n check ", "make|-j2|check|" },
		{ "", "" },
		{ " \n\t", "" },
		{ "''", "|" },
		{ "a '' b", "a||b|" },
		{ "a\"\"b", "ab|" },
		{ "'a b'\"c d\"e", "a bc de|" },
		{ "'a\\b'", "a\\b|" },
		{ "a\\ b", "a b|" },
		{ "a\\\nb", "ab|" },
		{ "a \\\n b", "a|b|" },
		{ "\\'", "'|" },
		{ "\"\\a\\\"\\$\\`\\\\\"", "\\a\"$`\\|" },
		{ "\"a\\\nb\"", "ab|" },
		{ "'a\nb'", "a\nb|" },
		{ "echo $HOME `x` $(y) * ~ # a;b && c > d", "echo|$HOME|`x`|$(y)|*|~|#|a;b|&&|c|>|d|" },
		{ "--name='it'\\''s'", "--name=it's|" },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		struct kr_buf got KR_CLEANUP(kr_buf_fini) = KR_BUF(1000);
		struct kr_strs words = { 0 };
		const char *why;

		assert_true(kr_words_split(&arena, cases[i].text, &words, &why));
		for (size_t k = 0; k < words.n; k++)
			kr_buf_addf(&got, "%s|", words.v[k]);
		assert_string_equal(got.data ? got.data : "", cases[i].words);
	}
}

static void
what_a_shell_would_go_on_asking_for_is_refused(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "a 'b", "has a ' that is not closed" },
		{ "a \"b", "has a \" that is not closed" },
		{ "\"a\\\"", "has a \" that is not closed" },
		{ "'", "has a ' that is not closed" },
		{ "\"\\", "has a \" that is not closed" },
		{ "a\\", "ends in a backslash" },
		{ "\\", "ends in a backslash" },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		struct kr_strs words = { .n = 77 };
		const char *why = NULL;

		assert_false(kr_words_split(&arena, cases[i].text, &words, &why));
		assert_string_equal(why, cases[i].why);
		assert_int_equal(words.n, 77);
	}
}

/* ---- good chains ---- */

static void
parse(struct kr_arena *arena, const char *id, const char *text, struct kr_chain *out)
{
	struct kr_error err = { 0 };

	if (kr_chain_parse(arena, &places, "f.yaml", id, text, strlen(text), out, &err) < 0)
		fail_msg("%u:%u: %s", err.place.line, err.place.column, err.message);
}

static const char whole[] =
	"id: demo\n"
	"description: \"all of it\"\n"
	"policy: {max_attempts: 5, sandbox: {kind: os, network: {runtime: {}}}}\n"
	"nodes:\n"
	"  - id: make\n"
	"    kind: exec\n"
	"    skippable: false\n"
	"    policy: {timeout_minutes: 1.5}\n"
	"    steps:\n"
	"      - id: first\n"
	"        policy: {deny_tools: [Bash]}\n"
	"        skippable: false\n"
	"        tasks:\n"
	"          - {id: a, kind: subprocess, command: \"cc -c 'my file.c'\"}\n"
	"          - {id: b, kind: builtin, builtin: tests, skippable: false}\n"
	"      - id: second\n"
	"        tasks: [{id: a, kind: agent, harness: claude, prompt: do it, model: m, effort: "
	"high, policy: {grants: [git-push]}}]\n"
	"    on_failure:\n"
	"      tasks: [{id: mend, kind: subprocess, command: make clean}]\n"
	"    fix_loop:\n"
	"      max_attempts: 7\n"
	"      steps: [{id: s, tasks: [{id: mend, kind: agent, harness: codex, prompt: mend}]}]\n"
	"  - {id: look, kind: gate, message: look at it}\n"
	"  - {id: more, kind: exec, tasks: [{id: t, kind: subprocess, command: 'true'}]}\n"
	"  - {id: near, kind: gate, skippable: false}\n"
	"  - {id: far, kind: gate, reject_to: make}\n";

static void
a_chain_is_read_whole(void **state)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_chain chain = { 0 };
	const struct kr_node *make;
	const struct kr_task *task;

	(void)state;
	parse(&arena, "demo", whole, &chain);
	assert_string_equal(chain.id, "demo");
	assert_string_equal(chain.description, "all of it");
	assert_string_equal(chain.file, "f.yaml");
	assert_string_equal(chain.text, whole);
	assert_int_equal(chain.text_len, strlen(whole));
	assert_true(chain.policy.has_sandbox && chain.policy.sandbox.kind == KR_SANDBOX_OS);
	assert_true(chain.policy.bounds[KR_BOUND_ATTEMPTS] == 5.0);
	assert_int_equal(chain.node_count, 5);

	make = &chain.nodes[0];
	assert_false(make->is_gate || make->is_skippable);
	assert_true(make->policy.bounds[KR_BOUND_TIMEOUT] == 1.5);
	assert_int_equal(make->mark.line, 5);
	assert_int_equal(make->steps.n, 2);
	assert_string_equal(make->steps.v[0].path, "make.first");
	assert_false(make->steps.v[0].is_skippable);
	assert_string_equal(make->steps.v[0].policy.deny_tools.v[0], "Bash");
	assert_int_equal(make->steps.v[0].task_count, 2);
	task = make->steps.v[0].tasks;
	assert_string_equal(task[0].path, "make.first.a");
	assert_int_equal(task[0].kind, KR_TASK_COMMAND);
	assert_string_equal(task[0].command, "cc -c 'my file.c'");
	assert_int_equal(task[0].argv.n, 3);
	assert_string_equal(task[0].argv.v[2], "my file.c");
	assert_true(task[0].is_skippable);
	assert_int_equal(task[1].kind, KR_TASK_BUILTIN);
	assert_int_equal(task[1].builtin, KR_BUILTIN_TESTS);
	assert_false(task[1].is_skippable);
	task = make->steps.v[1].tasks;
	assert_string_equal(task->path, "make.second.a");
	assert_int_equal(task->kind, KR_TASK_AGENT);
	assert_string_equal(task->harness, "claude");
	assert_string_equal(task->prompt, "do it");
	assert_string_equal(task->model, "m");
	assert_string_equal(task->effort, "high");
	assert_int_equal(task->policy.grants, 1u << KR_GRANT_INDEX_PUSH);

	assert_string_equal(make->recovery.v[0].path, "make.on_failure.main");
	assert_string_equal(make->recovery.v[0].tasks[0].path, "make.on_failure.main.mend");
	assert_int_equal(make->fix_attempts, 7);
	assert_string_equal(make->fix.v[0].tasks[0].path, "make.fix_loop.s.mend");

	assert_true(chain.nodes[1].is_gate && chain.nodes[1].is_skippable && chain.nodes[1].reject_to == 0);
	assert_string_equal(chain.nodes[1].message, "look at it");
	assert_string_equal(chain.nodes[2].steps.v[0].path, "more.main");
	assert_string_equal(chain.nodes[2].steps.v[0].id, "main");
	assert_int_equal(chain.nodes[2].fix.n + chain.nodes[2].recovery.n, 0);
	assert_null(chain.nodes[3].message);
	assert_int_equal(chain.nodes[3].reject_to, 2); /* the nearest */
	assert_int_equal(chain.nodes[4].reject_to, 0); /* the named one */
	assert_string_equal(chain.nodes[1].policy.mark.line ? "there" : "not there", "not there");
}

/* An item reads the text that it kept; what it gets must be the same. */
static void
the_kept_text_gives_the_same_chain(void **state)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_chain once = { 0 }, again = { 0 };

	(void)state;
	parse(&arena, "demo", whole, &once);
	parse(&arena, NULL, once.text, &again);
	assert_string_equal(again.text, once.text);
	assert_int_equal(again.node_count, once.node_count);
	assert_string_equal(again.nodes[0].steps.v[1].tasks->path, once.nodes[0].steps.v[1].tasks->path);
}

static void
the_shipped_chain_is_implementation_checks_review(void **state)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_chain chain = { 0 };
	const struct kr_node *node;

	(void)state;
	parse(&arena, "default", kr_shipped_text("chains", "default"), &chain);
	node = chain.nodes;
	assert_int_equal(chain.node_count, 3);
	assert_string_equal(node[0].id, "implementation");
	assert_int_equal(node[0].steps.v[0].task_count, 1);
	assert_int_equal(node[0].steps.v[0].tasks->kind, KR_TASK_AGENT);
	assert_string_equal(node[0].steps.v[0].tasks->harness, "claude");
	assert_non_null(strstr(node[0].steps.v[0].tasks->prompt, "Commit"));
	assert_string_equal(node[1].id, "checks");
	assert_int_equal(node[1].steps.v[0].tasks->kind, KR_TASK_BUILTIN);
	assert_int_equal(node[1].fix.v[0].tasks->kind, KR_TASK_AGENT);
	assert_int_equal(node[1].fix_attempts, 3);
	assert_string_equal(node[2].id, "review");
	assert_true(node[2].is_gate && node[2].reject_to == 0);
}

/* ---- mistakes ---- */

struct mistake {
	const char *text;
	unsigned line, column;
	const char *message, *hint;
};

static bool
is_told(const struct mistake *m)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_chain chain = { .node_count = 77 };
	struct kr_error err = { 0 };

	if (kr_chain_parse(&arena, &places, "f.yaml", "x", m->text, strlen(m->text), &chain, &err) == 0)
		fail_msg("loads: %s", m->text);
	assert_int_equal(chain.node_count, 77);
	assert_int_equal(err.code, KR_E_CONFIG);
	assert_string_equal(err.place.path, "f.yaml");
	if (!strstr(err.message, m->message) || !strstr(err.hint, m->hint) || err.place.line != m->line ||
		err.place.column != m->column)
		return print_error("# %s\n# got %u:%u: %s\n# hint: %s\n", m->text, err.place.line, err.place.column,
				   err.message, err.hint),
			   false;
	assert_int_equal(kr_chain_parse(&arena, &places, "f", "x", m->text, strlen(m->text), &chain, NULL), -1);
	return true;
}

#define TASK "{id: t, kind: subprocess, command: a}"
#define NODE "  - {id: n, kind: exec, tasks: [" TASK "]}\n"
#define TOP "id: x\nnodes:\n"
#define IN_NODE(keys) TOP "  - {id: n, kind: exec, tasks: [" TASK "], " keys "}\n"
#define IN_GATE(keys) TOP NODE "  - {id: g, kind: gate, " keys "}\n"
#define IN_TASK(task) TOP "  - id: n\n    kind: exec\n    tasks:\n      - {" task "}\n"

static void
each_mistake_has_its_place_CFG_11(void **state)
{
	static const struct mistake mistakes[] = {
		/* the file */
		{ "", 1, 1, "the file is empty", "begin it with 'id:'" },
		{ "# nothing\n", 1, 1, "the file is empty", "" },
		{ "- a\n", 1, 1, "the file must be a mapping, not a list", "'nodes:'" },
		{ "id: x\nnodes: []\n", 2, 8, "'nodes' is empty", "begins with an exec node" },
		{ "id: x\n", 1, 1, "'nodes' is missing in the chain", "" },
		{ "nodes:\n" NODE, 1, 1, "'id' is missing in the chain", "file's name" },
		{ "id: y\nnodes:\n" NODE, 1, 5, "the chain 'y' stands in the file of 'x'", "without .yaml" },
		{ "id: X\nnodes:\n" NODE, 1, 5, "'X' of 'id' is not an id", "" },
		{ "id: 1\nnodes:\n" NODE, 1, 5, "'id' must be a string, not a number", "quotes" },
		{ "id: a2345678901234567890123456789012345678901234567890123456789012345\nnodes:\n" NODE, 1, 5,
			"is longer than 64 letters", "" },
		{ "id: x\nnode:\n" NODE, 2, 1, "unknown key 'node' in the chain", "did you mean 'nodes'?" },
		{ "id: x\nzebra: 1\nnodes:\n" NODE, 2, 1, "unknown key 'zebra' in the chain",
			"the chain takes id, description, nodes, policy" },
		{ "id: x\ncommand: 1\nnodes:\n" NODE, 2, 1, "unknown key 'command'", "belongs inside a task" },
		{ "id: x\nsetup_command: a\nnodes:\n" NODE, 2, 1, "unknown key 'setup_command'", "takes id" },
		{ "id: x\ndescription: [a]\nnodes:\n" NODE, 2, 14, "'description' must be a string, not a list", "" },
		{ "id: x\nnodes: {}\n", 2, 8, "'nodes' must be a list, not a mapping", "" },
		{ "id: x\nid: x\nnodes:\n" NODE, 2, 1, "'id'", "" },
		{ "id: &a x\nnodes:\n" NODE, 1, 5, "anchor", "" },
		/* nodes */
		{ TOP "  - 1\n", 3, 5, "an item of 'nodes' must be a mapping, not a number", "write '- id: NAME'" },
		{ TOP "  - {kind: exec, tasks: [" TASK "]}\n", 3, 5, "'id' is missing in a node", "" },
		{ TOP "  - {id: n, tasks: [" TASK "]}\n", 3, 5, "'kind' is missing in a node", "exec and gate" },
		{ TOP "  - {id: n, kind: run, tasks: [" TASK "]}\n", 3, 19, "unknown kind 'run' of node",
			"exec and gate" },
		{ TOP "  - {id: n, kind: [exec]}\n", 3, 19, "'kind' must be a string, not a list", "exec and gate" },
		{ TOP "  - {id: n, extends: other}\n", 3, 13, "'extends' is not built into this kraft",
			"write the node out" },
		{ TOP "  - {id: n, kind: exec}\n", 3, 5, "'tasks' is missing", "'steps:'" },
		{ TOP "  - {id: n, kind: exec, tasks: []}\n", 3, 32, "'tasks' is empty", "" },
		{ TOP "  - {id: n, kind: exec, steps: []}\n", 3, 32, "'steps' is empty", "" },
		{ TOP "  - {id: n, kind: exec, tasks: {}}\n", 3, 32, "'tasks' must be a list, not a mapping", "" },
		{ TOP "  - {id: n, kind: exec, tasks: null}\n", 3, 32, "'tasks' must be a list, not null", "" },
		{ IN_NODE("steps: []"), 3, 73, "'tasks' and 'steps' exclude each other", "named main" },
		{ TOP NODE NODE, 4, 10, "the id 'n' stands twice, on lines 3 and 4", "one node" },
		{ IN_NODE("message: hi"), 3, 73, "kind: exec takes no message", "kind: exec takes id, tasks, steps" },
		{ IN_NODE("reject_to: n"), 3, 73, "kind: exec takes no reject_to", "" },
		{ IN_NODE("skipable: true"), 3, 73, "unknown key 'skipable' in a node", "did you mean 'skippable'?" },
		{ IN_NODE("skippable: yes"), 3, 84, "'skippable' must be true or false", "YAML 1.2" },
		{ IN_NODE("polcy: {}"), 3, 73, "unknown key 'polcy'", "did you mean 'policy'?" },
		{ IN_NODE("policy: {max_attempt: 1}"), 3, 82, "unknown key 'max_attempt' in 'policy'",
			"'max_attempts'?" },
		{ IN_NODE("policy: {sandbox: {kind: os}}"), 3, 91, "kind: os needs a network", "" },
		{ IN_NODE("policy: {sandbox: {kind: os, network: {runtime: {}}, expose: [~/.ssh]}}"), 3, 135,
			"/home/you/.ssh", "" },
		{ IN_NODE("extends: a"), 3, 73, "'extends' is not built into this kraft", "take the key away" },
		{ IN_NODE("escalation: true"), 3, 73, "'escalation' is not built into this kraft", "" },
		{ IN_NODE("on_base_changed: x"), 3, 73, "'on_base_changed' is not built into this kraft", "" },
		{ IN_NODE("read_only: null"), 3, 73, "'read_only' is not built into this kraft", "" },
		/* gates */
		{ TOP "  - {id: g, kind: gate}\n", 3, 5, "no exec node stands before the gate", "" },
		{ IN_GATE("tasks: []"), 4, 25, "kind: gate takes no tasks",
			"kind: gate takes id, message, reject_to" },
		{ IN_GATE("fix_loop: {}"), 4, 25, "kind: gate takes no fix_loop", "" },
		{ IN_GATE("message: ''"), 4, 34, "'' of 'message' is empty", "" },
		{ IN_GATE("reject_to: m"), 4, 36, "'m' of 'reject_to' is no node before the gate",
			"before this one" },
		{ IN_GATE("reject_to: g"), 4, 36, "'g' of 'reject_to' is no node before the gate", "" },
		{ IN_GATE("reject_to: late") "  - {id: late, kind: exec, tasks: [" TASK "]}\n", 4, 36,
			"'late' of 'reject_to' is no node before", "" },
		{ IN_GATE("message: a") "  - {id: h, kind: gate, reject_to: g}\n", 5, 36,
			"'g' of 'reject_to' is a gate", "exec" },
		{ IN_GATE("artifact: a"), 4, 25, "'artifact' is not built into this kraft", "" },
		{ IN_GATE("artifact_required: true"), 4, 25, "'artifact_required' is not built", "" },
		{ IN_GATE("timeout: 5"), 4, 25, "'timeout' is not built into this kraft", "" },
		{ IN_GATE("auto_review: {}"), 4, 25, "'auto_review' is not built into this kraft", "" },
		{ IN_GATE("chain_finalized: true"), 4, 25, "'chain_finalized' is not built into this kraft", "" },
		/* repair */
		{ IN_NODE("fix_loop: {}"), 3, 83, "'tasks' is missing", "" },
		{ IN_NODE("fix_loop: [" TASK "]"), 3, 83, "'fix_loop' must be a mapping, not a list", "" },
		{ IN_NODE("fix_loop: {tasks: [" TASK "], max_attempts: 0}"), 3, 146,
			"'max_attempts' must be a whole number from 1 to 100", "1 to 100" },
		{ IN_NODE("fix_loop: {tasks: [" TASK "], max_attempts: 101}"), 3, 146, "from 1 to 100", "" },
		{ IN_NODE("fix_loop: {tasks: [" TASK "], max_attempts: 1.5}"), 3, 146,
			"must be a whole number, not a fraction", "" },
		{ IN_NODE("fix_loop: {tasks: [" TASK "], judge: claude}"), 3, 132,
			"'judge' is not built into this kraft", "" },
		{ IN_NODE("fix_loop: {tasks: [" TASK "], jugde: claude}"), 3, 132,
			"unknown key 'jugde' in 'fix_loop'", "'fix_loop' takes tasks, steps, max_attempts" },
		{ IN_NODE("on_failure: {}"), 3, 85, "'tasks' is missing", "" },
		{ IN_NODE("on_failure: {max_attempts: 2}"), 3, 86, "unknown key 'max_attempts' in 'on_failure'",
			"belongs inside" },
		/* steps */
		{ TOP "  - {id: n, kind: exec, steps: [a]}\n", 3, 33, "an item of 'steps' must be a mapping", "" },
		{ TOP "  - {id: n, kind: exec, steps: [{tasks: [" TASK "]}]}\n", 3, 33, "'id' is missing in a step",
			"" },
		{ TOP "  - {id: n, kind: exec, steps: [{id: s}]}\n", 3, 33, "'tasks' is missing in a step", "" },
		{ TOP "  - {id: n, kind: exec, steps: [{id: fix_loop, tasks: [" TASK "]}]}\n", 3, 38,
			"is kept for the paths", "" },
		{ TOP "  - {id: n, kind: exec, steps: [{id: on_failure, tasks: [" TASK "]}]}\n", 3, 38,
			"is kept for the paths", "" },
		{ TOP "  - {id: n, kind: exec, steps: [{id: s, tasks: [" TASK "]}, {id: s, tasks: [" TASK "]}]}\n", 3,
			95, "the id 's' stands twice", "one step" },
		{ TOP "  - {id: n, kind: exec, steps: [{id: s, tasks: [" TASK "], extends: a}]}\n", 3, 89,
			"'extends' is not built", "" },
		/* tasks */
		{ TOP "  - {id: n, kind: exec, tasks: [a]}\n", 3, 33,
			"an item of 'tasks' must be a mapping, not a string", "" },
		{ TOP "  - {id: n, kind: exec, tasks: [" TASK ", " TASK "]}\n", 3, 77, "the id 't' stands twice",
			"one task" },
		{ IN_TASK("kind: subprocess, command: a"), 6, 9, "'id' is missing in a task", "" },
		{ IN_TASK("id: t.u, kind: subprocess, command: a"), 6, 14, "'t.u' of 'id' is not an id", "" },
		{ IN_TASK("id: t, command: a"), 6, 9, "'kind' is missing in a task",
			"subprocess, agent and builtin" },
		{ IN_TASK("id: t, kind: forge"), 6, 23, "the task kind 'forge' is not built into this kraft",
			"subprocess" },
		{ IN_TASK("id: t, kind: shell"), 6, 23, "unknown kind 'shell' of task",
			"subprocess, agent and builtin" },
		{ IN_TASK("id: t, kind: subprocess"), 6, 9, "'command' is missing in a task", "" },
		{ IN_TASK("id: t, kind: subprocess, command: ''"), 6, 44, "'' of 'command' is empty", "" },
		{ IN_TASK("id: t, kind: subprocess, command: ' '"), 6, 44, "'command' names no program",
			"first word" },
		{ IN_TASK("id: t, kind: subprocess, command: \"'' a\""), 6, 44, "'command' names no program", "" },
		{ IN_TASK("id: t, kind: subprocess, command: \"a 'b\""), 6, 44,
			"'command' has a ' that is not closed", "sh -c" },
		{ IN_TASK("id: t, kind: subprocess, command: 'a \"b'"), 6, 44,
			"'command' has a \" that is not closed", "" },
		{ IN_TASK("id: t, kind: subprocess, command: 'a \\'"), 6, 44, "'command' ends in a backslash", "" },
		{ IN_TASK("id: t, kind: subprocess, command: [make, check]"), 6, 44,
			"'command' must be a string, not a list", "write it as one text" },
		{ IN_TASK("id: t, kind: subprocess, command: a, prompt: b"), 6, 47,
			"kind: subprocess takes no prompt", "kind: subprocess takes id, command, policy, skippable" },
		{ IN_TASK("id: t, kind: agent, harness: claude"), 6, 9, "'prompt' is missing in a task",
			"what it is told" },
		{ IN_TASK("id: t, kind: agent, prompt: a"), 6, 9, "'harness' is missing in a task", "" },
		{ IN_TASK("id: t, kind: agent, harness: Claude, prompt: a"), 6, 39,
			"'Claude' of 'harness' is not an id", "" },
		{ IN_TASK("id: t, kind: agent, harness: claude, prompt: a, model: ''"), 6, 65,
			"'' of 'model' is empty", "" },
		{ IN_TASK("id: t, kind: agent, harness: claude, command: a"), 6, 47, "kind: agent takes no command",
			"" },
		{ IN_TASK("id: t, kind: agent, harness: claude, skill: a"), 6, 47,
			"'skill' is not built into this kraft", "" },
		{ IN_TASK("id: t, kind: agent, harness: claude, produces: a"), 6, 47, "'produces' is not built", "" },
		{ IN_TASK("id: t, kind: agent, profile: a"), 6, 30, "'profile' is not built into this kraft", "" },
		{ IN_TASK("id: t, kind: agent, fallback: [a]"), 6, 30, "'fallback' is not built into this kraft",
			"" },
		{ IN_TASK("id: t, kind: agent, inputs: {}"), 6, 30, "'inputs' is not built into this kraft", "" },
		{ IN_TASK("id: t, extends: a"), 6, 17, "'extends' is not built into this kraft",
			"write the task out" },
		{ IN_TASK("id: t, kind: subprocess, scope: a"), 6, 35, "'scope' is not built into this kraft", "" },
		{ IN_TASK("id: t, kind: subprocess, on_failure: {}"), 6, 35,
			"'on_failure' is not built into this kraft", "" },
		{ IN_TASK("id: t, kind: builtin"), 6, 9, "'builtin' is missing in a task", "tests" },
		{ IN_TASK("id: t, kind: builtin, builtin: lint"), 6, 41, "'lint' is nothing that kraft does itself",
			"tests" },
		{ IN_TASK("id: t, kind: builtin, builtin: tests, command: a"), 6, 48,
			"kind: builtin takes no command", "" },
		/* A sandbox in a policy has kinds of its own; the task's must not be lost over it. */
		{ IN_TASK(
			  "id: t, kind: agent, harness: a, policy: {sandbox: {kind: kit, runtime: docker, kit: "
			  "'a@sha256:0123456789012345678901234567890123456789012345678901234567890123'}}, command: a"),
			6, 173, "kind: agent takes no command", "kind: agent takes" },
	};

	size_t untold = 0;

	(void)state;
	for (size_t i = 0; i < KR_COUNT(mistakes); i++)
		untold += !is_told(&mistakes[i]);
	assert_int_equal(untold, 0);
}

/* ---- limits ---- */

static void
add_tasks(struct kr_buf *buf, size_t from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		kr_buf_addf(buf, "      - {id: t%zu, kind: subprocess, command: a}\n", from + i);
}

static int
parse_error(const struct kr_buf *buf, struct kr_error *err)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_chain chain;

	*err = (struct kr_error){ 0 };
	return kr_chain_parse(&arena, &places, "f", "x", buf->data, buf->len, &chain, err);
}

static void
limits_are_reached_but_not_passed(void **state)
{
	struct kr_buf buf KR_CLEANUP(kr_buf_fini) = KR_BUF(1u << 20);
	struct kr_error err;

	(void)state;
	kr_buf_adds(&buf, TOP "  - id: n\n    kind: exec\n    tasks:\n");
	add_tasks(&buf, 0, KR_CHAIN_TASKS - 1);
	kr_buf_adds(&buf, "    fix_loop:\n     tasks:\n");
	add_tasks(&buf, 0, 1); /* repair tasks count too */
	assert_int_equal(parse_error(&buf, &err), 0);
	add_tasks(&buf, 1, 1);
	assert_int_equal(parse_error(&buf, &err), -1);
	assert_string_equal(err.message, "the chain has more than 256 tasks");
	assert_int_equal(err.place.line, 6 + KR_CHAIN_TASKS + 1);

	kr_buf_fini(&buf);
	buf = KR_BUF(1u << 20);
	kr_buf_adds(&buf, TOP);
	for (int i = 0; i < KR_CHAIN_NODES; i++)
		kr_buf_addf(&buf, "  - {id: n%d, kind: exec, tasks: [" TASK "]}\n", i);
	assert_int_equal(parse_error(&buf, &err), 0);
	kr_buf_adds(&buf, "  - {id: last, kind: gate}\n");
	assert_int_equal(parse_error(&buf, &err), -1);
	assert_string_equal(err.message, "the chain has more than 64 nodes");
}

/* ---- the directory ---- */

struct place {
	char home[64], config[96], chains[128];
	struct kr_places places;
};

static void
make_place(struct place *p)
{
	snprintf(p->home, sizeof(p->home), "/tmp/kr-chain-XXXXXX");
	assert_non_null(mkdtemp(p->home));
	snprintf(p->config, sizeof(p->config), "%s/config", p->home);
	snprintf(p->chains, sizeof(p->chains), "%s/chains", p->config);
	p->places = (struct kr_places){
		.home = p->home, .kraft_home = p->home, .run_dir = p->home, .config_dir = p->config
	};
}

static void
write_chain(const struct place *p, const char *name, const char *text)
{
	struct kr_error err = { 0 };
	kr_auto_fd int dir = open(p->chains, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(dir >= 0);
	assert_int_equal(kr_file_write_at(dir, name, text, strlen(text), 0600, &err), 0);
}

static void
remove_place(const struct place *p)
{
	assert_int_equal(kr_tree_remove_at(AT_FDCWD, p->home), 0);
}

static void
the_shipped_chain_is_there_without_any_file(void **state)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_chain chain = { 0 };
	struct kr_error err = { 0 };
	struct kr_strs ids = { 0 };
	struct place p;

	(void)state;
	make_place(&p);
	assert_int_equal(kr_chain_ids(&arena, &p.places, &ids, &err), 0);
	assert_int_equal(ids.n, 1);
	assert_string_equal(ids.v[0], "default");
	assert_int_equal(kr_chain_load(&arena, &p.places, "default", &chain, &err), 0);
	assert_string_equal(chain.file, "kraft's own");
	assert_string_equal(chain.text, kr_shipped_text("chains", "default"));
	assert_int_equal(kr_chain_load(&arena, &p.places, "other", &chain, &err), -1);
	assert_int_equal(err.code, KR_E_NOT_FOUND);
	assert_string_equal(err.hint, "the chains are default");
	remove_place(&p);
}

static void
a_file_takes_the_shipped_ones_place_and_others_are_found(void **state)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_chain chain = { 0 };
	struct kr_error err = { 0 };
	struct kr_strs ids = { 0 };
	struct place p;

	(void)state;
	make_place(&p);
	assert_int_equal(mkdir(p.config, 0700) + mkdir(p.chains, 0700), 0);
	write_chain(&p, "default.yaml", "id: default\ndescription: mine\nnodes:\n" NODE);
	write_chain(&p, "zeta.yaml", "id: zeta\nnodes:\n" NODE);
	write_chain(&p, "broken.yaml", "id: broken\nnodes: 1\n");
	write_chain(&p, "Odd name.yaml", "id: odd\nnodes:\n" NODE);
	write_chain(&p, ".hidden.yaml", "");
	write_chain(&p, ".yaml", "");
	write_chain(&p, "notes.txt", "");
	assert_int_equal(kr_chain_ids(&arena, &p.places, &ids, &err), 0);
	assert_int_equal(ids.n, 4);
	assert_string_equal(ids.v[0], "Odd name");
	assert_string_equal(ids.v[1], "broken");
	assert_string_equal(ids.v[2], "default");
	assert_string_equal(ids.v[3], "zeta");
	assert_int_equal(kr_chain_load(&arena, &p.places, "default", &chain, &err), 0);
	assert_string_equal(chain.description, "mine");
	assert_int_equal(kr_chain_load(&arena, &p.places, "zeta", &chain, &err), 0);
	assert_non_null(strstr(chain.file, "/config/chains/zeta.yaml"));
	assert_int_equal(kr_chain_load(&arena, &p.places, "broken", &chain, &err), -1);
	assert_int_equal(err.code, KR_E_CONFIG);
	assert_int_equal(err.place.line, 2);
	assert_int_equal(kr_chain_load(&arena, &p.places, "Odd name", &chain, &err), -1);
	assert_string_equal(err.message, "the chain 'odd' stands in the file of 'Odd name'");
	assert_int_equal(kr_chain_load(&arena, &p.places, "x", &chain, &err), -1);
	assert_string_equal(err.hint, "the chains are Odd name, broken, default, zeta");
	remove_place(&p);
}

/* An id is a name, never a way to a file elsewhere; and a chain that cannot be read is not taken for the
 * shipped one. */
static void
no_id_leads_out_and_nothing_odd_is_read(void **state)
{
	static const char *const ways[] = { "../secret", "a/b", "/etc/hosts", ".", "..", "", ".hidden" };
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_chain chain = { 0 };
	struct kr_error err = { 0 };
	char path[160], beside[160];
	struct place p;

	(void)state;
	make_place(&p);
	assert_int_equal(mkdir(p.config, 0700) + mkdir(p.chains, 0700), 0);
	write_chain(&p, ".hidden.yaml", "id: x\nnodes:\n" NODE);
	write_chain(&p, "secret.yaml", "id: secret\nnodes:\n" NODE);
	assert_int_equal(kr_chain_load(&arena, &p.places, "secret", &chain, &err), 0); /* the control */
	snprintf(path, sizeof(path), "%s/secret.yaml", p.chains);
	snprintf(beside, sizeof(beside), "%s/secret.yaml", p.config);
	assert_int_equal(rename(path, beside), 0);
	for (size_t i = 0; i < KR_COUNT(ways); i++) {
		assert_int_equal(kr_chain_load(&arena, &p.places, ways[i], &chain, &err), -1);
		assert_int_equal(err.code, KR_E_NOT_FOUND);
	}
	snprintf(path, sizeof(path), "%s/default.yaml", p.chains);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(kr_chain_load(&arena, &p.places, "default", &chain, &err), -1);
	assert_int_equal(err.code, KR_E_CONFIG);
	remove_place(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_split_as_a_shell_does),
		cmocka_unit_test(what_a_shell_would_go_on_asking_for_is_refused),
		cmocka_unit_test(a_chain_is_read_whole),
		cmocka_unit_test(the_kept_text_gives_the_same_chain),
		cmocka_unit_test(the_shipped_chain_is_implementation_checks_review),
		cmocka_unit_test(each_mistake_has_its_place_CFG_11),
		cmocka_unit_test(limits_are_reached_but_not_passed),
		cmocka_unit_test(the_shipped_chain_is_there_without_any_file),
		cmocka_unit_test(a_file_takes_the_shipped_ones_place_and_others_are_found),
		cmocka_unit_test(no_id_leads_out_and_nothing_odd_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
