/*
 * The keys of the configuration files: one table of where a key stands, its type, its default and its help;
 * and the one reader that walks a mapping along it. What a key's value must be beyond its type stands beside
 * the struct it fills, in repos.c, sandbox.c, policy_file.c, chain.c, notify.c, access.c, sandbox_file.c and harness.c.
 */
#ifndef KR_CONFIG_SCHEMA_H
#define KR_CONFIG_SCHEMA_H

#include "config/chain.h"
#include "config/harness.h"
#include "config/yaml.h"

/* The files that a section stands in, as bits. */
enum { KR_IN_REPOS = 1, KR_IN_POLICY_FILE = 2, KR_IN_CHAINS = 4, KR_IN_LAYERS = KR_IN_REPOS | KR_IN_CHAINS, KR_IN_ALL = 7,
	KR_IN_NOTIFY_FILE = 8, KR_IN_ACCESS_FILE = 16, KR_IN_HARNESS_FILE = 32, KR_IN_HARNESSES_FILE = 64,
	KR_IN_SANDBOX_FILE = 128 };

/* section, how messages name it, files */
#define KR_SECTIONS(X)                                              \
	X(TOP, "the file", KR_IN_REPOS)                                 \
	X(REPO, "a repository's entry", KR_IN_REPOS)                    \
	X(SCOPE, "'test_scopes'", KR_IN_REPOS)                          \
	X(REVIEW, "'automated_review'", KR_IN_REPOS)                    \
	X(POLICY, "'policy'", KR_IN_LAYERS)                             \
	X(SANDBOX, "'sandbox'", KR_IN_ALL)                              \
	X(NETWORK, "'network'", KR_IN_ALL)                              \
	X(PHASE, "a phase of 'network'", KR_IN_ALL)                     \
	X(RESOURCES, "'resources'", KR_IN_ALL)                          \
	X(CREDENTIAL, "'credentials'", KR_IN_ALL)                       \
	X(INJECT, "'inject'", KR_IN_ALL | KR_IN_HARNESS_FILE)           \
	X(WORKSPACE, "a workspace", KR_IN_REPOS)                        \
	X(MEMBER, "a workspace's member", KR_IN_REPOS)                  \
	X(HOST, "the file", KR_IN_POLICY_FILE)                          \
	X(DEFAULT, "'default'", KR_IN_POLICY_FILE)                      \
	X(DEFAULTS, "'defaults'", KR_IN_POLICY_FILE)                    \
	X(FINDINGS, "'findings'", KR_IN_POLICY_FILE)                    \
	X(BUDGET, "'budget'", KR_IN_POLICY_FILE)                        \
	X(ARCHIVE, "'archive'", KR_IN_POLICY_FILE)                      \
	X(MAXIMA, "'maxima'", KR_IN_POLICY_FILE)                        \
	X(MAXIMUM, "a level of 'maxima'", KR_IN_POLICY_FILE)            \
	X(CHAIN, "the chain", KR_IN_CHAINS)                             \
	X(NODE, "a node", KR_IN_CHAINS)                                 \
	X(STEP, "a step", KR_IN_CHAINS)                                 \
	X(TASK, "a task", KR_IN_CHAINS)                                 \
	X(FIX_LOOP, "'fix_loop'", KR_IN_CHAINS)                         \
	X(RECOVERY, "'on_failure'", KR_IN_CHAINS)                       \
	X(NOTIFY, "the file", KR_IN_NOTIFY_FILE)                       \
	X(ACCESS, "the file", KR_IN_ACCESS_FILE)                        \
	X(CONTAINERS, "the file", KR_IN_SANDBOX_FILE)                  \
	X(HARNESS, "the harness", KR_IN_HARNESS_FILE)                   \
	X(CAPABILITIES, "'capabilities'", KR_IN_HARNESS_FILE)           \
	X(CAPABILITY, "a capability", KR_IN_HARNESS_FILE)               \
	X(REQUIRES, "'network'", KR_IN_HARNESS_FILE)                    \
	X(CONFIG_DIR, "'config_dir'", KR_IN_HARNESS_FILE)               \
	X(HARNESS_CREDENTIAL, "an entry of 'credentials'", KR_IN_HARNESS_FILE) \
	X(HARNESSES, "the file", KR_IN_HARNESSES_FILE)                  \
	X(HARNESS_ENTRY, "an entry of 'harnesses'", KR_IN_HARNESSES_FILE) \
	X(HARNESS_DEFAULTS, "'defaults'", KR_IN_HARNESSES_FILE)

enum kr_section {
#define X(section, words, files) KR_IN_##section,
	KR_SECTIONS(X)
#undef X
		KR_SECTION_COUNT
};

enum kr_key_type {
	KR_KEY_STRING,
	KR_KEY_BOOL,
	KR_KEY_INTEGER,
	KR_KEY_NUMBER,
	KR_KEY_SIZE, /* a string or a whole number */
	KR_KEY_LIST,
	KR_KEY_STRINGS, /* a list of strings */
	KR_KEY_MAPPING,
	KR_KEY_SANDBOX, /* a mapping or false */
	KR_KEY_UNBUILT, /* known, and refused whatever it says: it would be without effect */
	KR_KEY_TYPE_COUNT
};

enum kr_node_kind { KR_NODE_EXEC, KR_NODE_GATE };

/* What a reading of one file carries. */
struct kr_config {
	struct kr_arena *arena;
	const struct kr_yaml *doc;
	const struct kr_places *places;
	struct kr_error *err;
	const char *entry;         /* names the entry that is being read in messages; NULL outside of one */
	unsigned files;            /* the file, as one of the bits */
	enum kr_sandbox_kind kind; /* of the sandbox that is being read */
	enum kr_node_kind node_kind;
	enum kr_task_kind task_kind; /* of the node and the task */
	enum kr_capability capability; /* that is being read */
	struct kr_strs *warnings;
};

struct kr_key {
	enum kr_section section;
	const char *name;
	enum kr_key_type type;
	const char *fallback; /* the default, as it would be written; "" when the key is required */
	const char *help;     /* one phrase, for hints and the reference page */
	unsigned kinds;       /* of a sandbox, node, task or capability: bits of the kinds that take it; 0: all */
	bool nullable;        /* null is the same as leaving the key out */
	/* Where the value goes in the section's struct; KR_NO_FIELD: it is only checked. */
	size_t field;
	/* Strings, and items of KR_KEY_STRINGS: what is wrong with the text, NULL when nothing is. */
	const char *(*fault)(const char *text);
	/* Reads the value instead, after its type was checked. */
	int (*read)(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
};
#define KR_NO_FIELD SIZE_MAX

extern const struct kr_key kr_keys[];
extern const size_t kr_key_count;

const struct kr_key *kr_key_find(enum kr_section section, const char *name);

/*
 * Reads a mapping of `section` into target, key by key. Null-typed target fields stay as they were for keys
 * that are not written. Unknown keys: an error, but in a repository's entry a warning when no known key is
 * near.
 */
int kr_section_read(
	struct kr_config *c, enum kr_section section, const struct kr_yaml_node *node, void *target);

/* Fills the error with the node's place and the entry's name. Returns -1. */
int kr_config_fail(struct kr_config *c, const struct kr_yaml_node *at, const char *fmt, ...) KR_PRINTF(3, 4);
/* A text from the file, short enough for a message. */
const char *kr_config_quote(struct kr_config *c, const char *text);

/* Refuses a value whose type is not the wanted one, with the way to write it. */
int kr_config_want(
	struct kr_config *c, const struct kr_yaml_node *node, const char *name, enum kr_key_type want);

/* Refuses a text that the key's own `fault` finds fault with; for readers, since it is only asked where there is none. */
int kr_config_check(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node);

struct kr_mark kr_config_mark(const struct kr_yaml_node *node);

/* sandbox.c: the readers of the table's sandbox part; a sandbox as a whole. */
int kr_sandbox_read(struct kr_config *c, const struct kr_yaml_node *node, struct kr_sandbox *out);
int kr_network_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_phase_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_hosts_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_expose_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_resources_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_cpu_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_memory_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_pids_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_credentials_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_inject_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_phases_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
/* Whether a list has this very host, at any port; a star does not name it. */
bool kr_hosts_name(const struct kr_strs *list, const char *host);
const char *kr_fault_kit(const char *text);
const char *kr_fault_kit_runtime(const char *text);
const char *kr_fault_domain(const char *text);
const char *kr_fault_header(const char *text);
const char *kr_fault_format(const char *text);
const char *kr_fault_sentinel(const char *text);

/* repos.c: the readers of the table's other part. */
int kr_repo_list_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_workspaces_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_root_pointer_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_members_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_path_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_old_chain_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_models_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_areas_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_scopes_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_env_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_review_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
const char *kr_fault_empty(const char *text);
const char *kr_fault_env_name(const char *text);
const char *kr_fault_id(const char *text);
const char *kr_fault_forge(const char *text);
const char *kr_fault_inside(const char *text);
const char *kr_fault_local_file(const char *text);
const char *kr_fault_member(const char *text);
const char *kr_fault_root_pointer(const char *text);

/* policy_file.c: a layer of the policy wherever it stands, and policy.yaml. Targets: the layer, or the value itself. */
int kr_policy_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_allowed_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_grants_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_grant_bits_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_layer_sandbox_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_bound_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_count_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_count_or_none_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_attempts_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_poll_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_severities_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_default_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_defaults_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_findings_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_budget_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_archive_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_maxima_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_maximum_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
const char *kr_fault_tool(const char *text);
const char *kr_fault_grant(const char *text);
const char *kr_fault_escalation(const char *text);
const char *kr_fault_severity(const char *text);

/* chain.c. What needs its surroundings (nodes, steps, tasks) is read by the chain's own walk; kr_later_read leaves it. */
int kr_later_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_builtin_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
const char *kr_fault_chain_id(const char *text);
const char *kr_fault_step_id(const char *text);

/* notify.c */
int kr_notify_command_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
/* A program: a name that is looked up, or a clean path that is not in run_dir; else NULL with err and this hint. */
const char *kr_program_read(struct kr_config *c, const struct kr_yaml_node *node, const char *name, const char *hint);
int kr_notify_on_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
const char *kr_fault_webhook(const char *text);
const char *kr_fault_occasion(const char *text);

/* access.c */
int kr_port_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_expiry_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
const char *kr_fault_bind(const char *text);
const char *kr_fault_password_hash(const char *text);
const char *kr_fault_allowed_host(const char *text);

/* sandbox_file.c. Target: the file. */
int kr_container_cli_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_selinux_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_ca_bundle_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_relay_image_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_kit_bindings_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
const char *kr_fault_container_cli(const char *text);
const char *kr_fault_selinux(const char *text);
const char *kr_fault_absolute(const char *text);

/* harness.c. Targets: the harness, or the capability. */
int kr_capabilities_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_capability_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_via_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_reader_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_harness_credentials_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_config_dir_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_requires_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_harness_env_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_tool_names_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_harnesses_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_harness_command_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_harness_defaults_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
const char *kr_fault_cli(const char *text);
const char *kr_fault_version(const char *text);
const char *kr_fault_hook(const char *text);
const char *kr_fault_rules(const char *text);
const char *kr_fault_required_host(const char *text);
const char *kr_fault_kept(const char *text);

/* file.c: a configuration file's bytes, with one byte more than KR_CONFIG_FILE_BYTES when it is too large, which the parser
 * refuses. *is_missing: there is none, and no error. KR_E_CONFIG with this hint when it cannot be read. */
int kr_config_load(struct kr_arena *arena, const char *file, const char *hint, const char **bytes, size_t *n,
	bool *is_missing, struct kr_error *err);
/* Parses a document whose top is a mapping; doc->root is NULL when it is empty or null. begin: how such a file begins. */
int kr_config_parse(struct kr_config *c, const char *file, const char *bytes, size_t n, struct kr_yaml *doc,
	const char *begin);

/* What comes with kraft, share/KIND/ID.yaml, sorted; ends with a NULL kind. */
struct kr_shipped {
	const char *kind, *id, *text;
};
extern const struct kr_shipped kr_shipped[];
const char *kr_shipped_text(const char *kind, const char *id); /* NULL: there is none */

/*
 * file.c: files that are named by an id, <config_dir>/KIND/ID.yaml, "chains" and "harnesses". Of kr_config_find the
 * person's file, or else the shipped one, whose file is "kraft's own"; *is_missing: neither is there.
 */
int kr_config_find(struct kr_arena *arena, const struct kr_places *places, const char *kind, const char *id,
	const char *hint, const char **file, const char **bytes, size_t *n, bool *is_missing, struct kr_error *err);
/* Ids, sorted, of both; adds to what is in out. */
int kr_config_ids(struct kr_arena *arena, const struct kr_places *places, const char *kind, struct kr_strs *out,
	struct kr_error *err);
/* KR_E_NOT_FOUND: "there is no chain 'x'", with the ids as its hint. */
int kr_config_unknown(const char *what, const char *id, const struct kr_strs *ids, struct kr_error *err);

#endif
