/*
 * The configuration as typed structs. Everything lives in the arena given to the loader and is const afterwards.
 *
 * The loader touches nothing of the host but the file itself: it checks shapes and rules that need no file system
 * (CFG-01 to CFG-11, facts of the sandbox keys). Whether an exposed path exists is found out at launch (CFG-04).
 * Errors are KR_E_CONFIG with place (file:line:column), the line with a caret, the nearest known key, and the fix.
 */
#ifndef KR_CONFIG_CONFIG_H
#define KR_CONFIG_CONFIG_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

/* kind, name in YAML */
#define KR_SANDBOX_KINDS(X) X(OS, "os") X(DOCKER, "docker") X(KIT, "kit")
enum kr_sandbox_kind {
	KR_SANDBOX_NONE, /* no sandbox, or `sandbox: false` */
#define X(kind, name) KR_SANDBOX_##kind,
	KR_SANDBOX_KINDS(X)
#undef X
};
const char *kr_sandbox_kind_name(enum kr_sandbox_kind kind);

enum kr_phase { KR_PHASE_INSTALL, KR_PHASE_RUNTIME, KR_PHASE_COUNT };
const char *kr_phase_name(enum kr_phase phase); /* "install", "runtime" */

/* One line of the file that a value came from, for errors found later. line 0: no place. */
struct kr_mark {
	unsigned line, column;
};

struct kr_host_list {
	struct kr_strs allow, deny; /* entries as in policy/hosts.h, trimmed, checked */
	/* Places of the first so many entries; one that was added to a list later has none. */
	const struct kr_mark *allow_marks, *deny_marks;
	size_t allow_marked, deny_marked;
};

struct kr_network {
	bool is_set;                               /* a `network:` that is not literally {} */
	bool phase_is_set[KR_PHASE_COUNT];         /* the phase is written, even when empty */
	struct kr_host_list phase[KR_PHASE_COUNT];
};

struct kr_expose {
	const char *text; /* as written: "/opt/x" or "~/x" */
	const char *path; /* clean, "~/" replaced by the home directory; links not resolved */
	struct kr_mark mark;
};

struct kr_resources {
	double cpu;            /* 0: no limit */
	uint64_t memory_bytes; /* 0: no limit */
	uint64_t pids;         /* 0: the default */
};

/* As `memory` is written: "512m". */
enum { KR_MEMORY_WORDS = 32 };
void kr_memory_words(uint64_t bytes, char out[KR_MEMORY_WORDS]);

/* kind docker only: a secret that stays outside (plan/secrets.c). */
struct kr_inject {
	const char *domain, *header, *format;
};
struct kr_credential {
	const char *env, *service, *sentinel, *source; /* service and sentinel (how one begins) may be NULL */
	bool phase[KR_PHASE_COUNT];
	struct kr_inject *inject;
	size_t inject_count;
	struct kr_mark mark;
};

struct kr_sandbox {
	enum kr_sandbox_kind kind;
	struct kr_network network;
	struct kr_expose *expose;
	size_t expose_count;
	const char *image, *runtime, *kit; /* NULL when unset */
	bool has_resources;
	struct kr_resources resources;
	bool unrestricted_network;
	struct kr_credential *credentials;
	size_t credential_count;
	struct kr_mark mark;
};

/* bit, name in YAML */
#define KR_GRANTS(X) X(COMMIT, "git-commit") X(REBASE, "git-rebase") X(PUSH, "git-push")
enum kr_grant {
#define X(grant, name) KR_GRANT_INDEX_##grant,
	KR_GRANTS(X)
#undef X
		KR_GRANT_COUNT
};
const char *kr_grant_name(enum kr_grant grant);

/* A bound or a budget; 0: the layer says nothing about it. name in YAML, unit */
#define KR_BOUNDS(X)                                    \
	X(ATTEMPTS, "max_attempts", "attempts")             \
	X(TIMEOUT, "timeout_minutes", "minutes")            \
	X(TIME_CAP, "time_cap_minutes", "minutes")          \
	X(TOTAL_TIME_CAP, "total_time_cap_minutes", "minutes") \
	X(TOKENS, "token_budget", "tokens")                 \
	X(BUDGET, "budget_usd", "US dollars")
enum kr_bound {
#define X(bound, name, unit) KR_BOUND_##bound,
	KR_BOUNDS(X)
#undef X
		KR_BOUND_COUNT
};
const char *kr_bound_name(enum kr_bound bound);

/* What one layer of the policy says. policy/layers.h says what the layers come to together. */
struct kr_policy_layer {
	bool has_allowed_tools;            /* else: this layer lists none; an empty list allows none */
	struct kr_strs allowed_tools, deny_tools, ask_tools;
	unsigned grants;                   /* bits of 1 << enum kr_grant */
	bool has_grants;
	bool has_sandbox;
	bool sandbox_is_false;
	struct kr_sandbox sandbox;
	bool has_allowed_harnesses;
	struct kr_strs allowed_harnesses;
	double bounds[KR_BOUND_COUNT];
	const char *escalation_harness;    /* "claude", "item"; NULL: unset */
	struct kr_mark mark;               /* line 0: the layer is not there */
};

struct kr_env_literal {
	const char *name, *value;
	struct kr_mark mark;
};

struct kr_test_scope {
	struct kr_strs paths;
	const char *command;
};

struct kr_repo {
	const char *path; /* clean absolute path of the checkout */
	const char *name; /* shown name: the key, else the directory's name */
	const char *id;   /* NULL when unset */
	const char *default_chain, *forge, *project, *intent_dir; /* NULL when unset */
	bool enabled, managed, ci_checks;
	const char *setup_command; /* NULL: undeclared; "": nothing to do */
	const char *test_command;  /* NULL: undeclared; "": no tests */
	struct kr_test_scope *test_scopes;
	size_t test_scope_count;
	struct kr_strs local_files, env_passthrough, steering;
	struct kr_env_literal *env;
	size_t env_count;
	/* The repository's layer: `policy`, with `sandbox` and `deny_tools` that may stand beside it. */
	struct kr_policy_layer policy;
	bool sandbox_is_false;     /* as in the layer */
	struct kr_sandbox sandbox; /* as in the layer; a launch takes its walls from here */
	struct kr_mark mark;      /* of the entry */
};

/* Repositories that are worked on together: each member stands in a directory below the root's files. */
struct kr_member {
	const char *name;
	const char *repository;     /* the id as written */
	const struct kr_repo *repo; /* the entry that has it */
	const char *path;           /* relative, clean; equal to no other member's, inside none, holding none */
	struct kr_mark mark;
};
struct kr_workspace {
	const char *name;
	const char *root_id;
	const struct kr_repo *root;
	bool bumps_root_pointer; /* root_pointer_default: bump */
	struct kr_member *members;
	size_t member_count;
	struct kr_mark mark;
};

struct kr_repos {
	const char *file; /* path of repos.yaml, for errors */
	struct kr_repo *repo;
	size_t repo_count;
	struct kr_workspace *workspaces;
	size_t workspace_count;
	struct kr_strs warnings; /* "file:line:column: text", e.g. an unknown key far from any known one */
};

/* What the rules need to know of the person: all clean absolute paths. */
struct kr_places {
	const char *home;       /* the home directory */
	const char *kraft_home; /* $KRAFT_HOME or ~/.kraft */
	const char *run_dir;    /* $KRAFT_RUN_DIR or <kraft_home>/run */
	const char *config_dir; /* $KRAFT_CONFIG_DIR or <kraft_home>/config */
	bool is_macos;          /* names that differ in case alone are one, and other places are the system's */
};

enum {
	KR_CONFIG_FILE_BYTES = 1 << 20, /* a larger file is refused */
	KR_CONFIG_DEPTH = 32,
	KR_CONFIG_NODES = 10000,
	KR_CONFIG_FILES = 1000, /* in a directory of them: of chains, of harnesses */
	KR_WORKSPACE_MEMBERS = 32, /* each costs a git directory and some mounts in every session */
};

/*
 * Parses bytes as repos.yaml. `file` is only used in errors. Pure. An empty document gives no repositories.
 * Returns NULL on the first error.
 */
const struct kr_repos *kr_repos_parse(struct kr_arena *arena, const char *file, const char *bytes,
	size_t n, const struct kr_places *places, struct kr_error *err);

/* Reads <config_dir>/repos.yaml; a missing file gives an empty list, an unreadable one is an error (CFG-06). */
const struct kr_repos *kr_repos_load(struct kr_arena *arena, const struct kr_places *places,
	struct kr_error *err);

/* The entry whose path is `path` or the nearest one above it; NULL when there is none. Both clean and resolved. */
const struct kr_repo *kr_repos_find(const struct kr_repos *repos, const char *path);

/* NULL when there is none of that name. */
const struct kr_workspace *kr_workspace_find(const struct kr_repos *repos, const char *name);

/*
 * Editing a person's file: a text patch at a mark, never a re-emission; comments and layout survive.
 * kr_repos_edit_add appends an entry (YAML text without the leading "- ", one key a line) to `repos:`, making the
 * key when the file has none. kr_repos_edit_remove takes the entry of `path` out. Both return the new bytes in `out`,
 * checked by parsing them again; the caller writes them by atomic rename.
 */
int kr_repos_edit_add(const char *file, const char *bytes, size_t n, const struct kr_places *places,
	const char *entry_yaml, struct kr_buf *out, struct kr_error *err);
int kr_repos_edit_remove(const char *file, const char *bytes, size_t n, const struct kr_places *places,
	const char *path, struct kr_buf *out, struct kr_error *err);

#endif
