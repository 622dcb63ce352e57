/*
 * A chain: what is done for a work item, in order. YAML at <config_dir>/chains/<id>.yaml; one, `default`,
 * comes with kraft and a file of that name takes its place. An item keeps the text that it was filed with and
 * reads it again with the same parser, so a later edit of the file changes no item (ITM).
 *
 *     chain > node (exec or gate) > step (judged when all its tasks have run) > task
 *
 * Canonical paths name each: "checks", "checks.main", "checks.main.unit"; an exec node's repair steps are
 * "checks.on_failure.main.mend" and "checks.fix_loop.main.mend". Errors are KR_E_CONFIG with place, caret and
 * the nearest known key; an unknown key refuses the load.
 */
#ifndef KR_CONFIG_CHAIN_H
#define KR_CONFIG_CHAIN_H

#include "config/policy_file.h"

/* kind, name in YAML */
#define KR_TASK_KINDS(X)     \
	X(COMMAND, "subprocess") \
	X(AGENT, "agent")        \
	X(BUILTIN, "builtin")
enum kr_task_kind {
#define X(kind, name) KR_TASK_##kind,
	KR_TASK_KINDS(X)
#undef X
};
const char *kr_task_kind_name(enum kr_task_kind kind);

/* What kraft does itself. name in YAML, what it does */
#define KR_BUILTINS(X) X(TESTS, "tests") /* the repository's test_command, by sh -c */
enum kr_builtin {
#define X(builtin, name) KR_BUILTIN_##builtin,
	KR_BUILTINS(X)
#undef X
};
const char *kr_builtin_name(enum kr_builtin builtin);

struct kr_task {
	const char *id, *path;
	enum kr_task_kind kind;
	const char *command;     /* COMMAND: as written */
	struct kr_strs argv;     /* COMMAND: its words, split as a shell does (quotes, backslash) and nothing
								expanded; not empty */
	enum kr_builtin builtin; /* BUILTIN */
	const char *harness, *prompt, *model, *effort; /* AGENT; NULL: unset */
	bool is_skippable;
	struct kr_policy_layer policy;
	struct kr_mark mark;
};

struct kr_chain_step {
	const char *id, *path;
	struct kr_task *tasks;
	size_t task_count; /* at least 1 */
	bool is_skippable;
	struct kr_policy_layer policy;
	struct kr_mark mark;
};

struct kr_chain_steps {
	struct kr_chain_step *v;
	size_t n;
};

struct kr_node {
	const char *id;
	bool is_gate, is_skippable;
	struct kr_policy_layer policy;
	struct kr_mark mark;
	/* exec */
	struct kr_chain_steps steps;    /* at least 1; `tasks:` is one step named "main" */
	struct kr_chain_steps recovery; /* on_failure; n 0: none */
	struct kr_chain_steps fix;      /* fix_loop; n 0: none */
	unsigned fix_attempts;          /* fix_loop.max_attempts; 0: the policy's */
	/* gate */
	const char *message; /* NULL: unset */
	size_t reject_to;    /* index of an exec node before it: `reject_to`, else the nearest one */
};

enum {
	KR_CHAIN_NODES = 64,   /* in one chain; more is refused */
	KR_CHAIN_TASKS = 256,  /* in one chain, repair tasks too */
	KR_CHAIN_ID = 64,      /* letters of an id */
};

struct kr_chain {
	const char *id, *description; /* description may be NULL */
	const char *file;             /* where it was read, for messages; "kraft's own" for the shipped one */
	const char *text;             /* all of it */
	size_t text_len;
	struct kr_policy_layer policy;
	struct kr_node *nodes;
	size_t node_count; /* at least 1, an exec node among them before any gate */
};

/*
 * A command's words as a POSIX shell would split them: blanks, quotes, backslash; operators, variables,
 * globs, `~` and `#` are text. False when it cannot; `why` then continues "'command' ...".
 */
bool kr_words_split(struct kr_arena *arena, const char *text, struct kr_strs *out, const char **why);

/* Pure; id: what it must be called (the file's name), NULL: anything valid. */
int kr_chain_parse(struct kr_arena *arena, const struct kr_places *places, const char *file, const char *id,
	const char *text, size_t len, struct kr_chain *out, struct kr_error *err);
/* KR_E_NOT_FOUND with the ids there are as the hint. */
int kr_chain_load(struct kr_arena *arena, const struct kr_places *places, const char *id,
	struct kr_chain *out, struct kr_error *err);
/* Ids, sorted; also of files that would not load. */
int kr_chain_ids(
	struct kr_arena *arena, const struct kr_places *places, struct kr_strs *out, struct kr_error *err);

#endif
