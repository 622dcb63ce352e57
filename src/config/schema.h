/*
 * The keys of the configuration files: one table of where a key stands, its type, its default and its help;
 * and the one reader that walks a mapping along it. What a key's value must be beyond its type stands beside
 * the struct it fills, in repos.c and sandbox.c.
 */
#ifndef KR_CONFIG_SCHEMA_H
#define KR_CONFIG_SCHEMA_H

#include "config/yaml.h"

/* section, how messages name it */
#define KR_SECTIONS(X)               \
	X(TOP, "the file")               \
	X(REPO, "a repository's entry")  \
	X(SCOPE, "'test_scopes'")        \
	X(REVIEW, "'automated_review'")  \
	X(POLICY, "'policy'")            \
	X(SANDBOX, "'sandbox'")          \
	X(NETWORK, "'network'")          \
	X(PHASE, "a phase of 'network'") \
	X(RESOURCES, "'resources'")      \
	X(CREDENTIAL, "'credentials'")   \
	X(INJECT, "'inject'")            \
	X(WORKSPACE, "a workspace")      \
	X(MEMBER, "a workspace's member")

enum kr_section {
#define X(section, words) KR_IN_##section,
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
	KR_KEY_TYPE_COUNT
};

/* What a reading of one file carries. */
struct kr_config {
	struct kr_arena *arena;
	const struct kr_yaml *doc;
	const struct kr_places *places;
	struct kr_error *err;
	const char *entry;         /* names the entry that is being read in messages; NULL outside of one */
	enum kr_sandbox_kind kind; /* of the sandbox that is being read */
	struct kr_strs *warnings;
};

struct kr_key {
	enum kr_section section;
	const char *name;
	enum kr_key_type type;
	const char *fallback; /* the default, as it would be written; "" when the key is required */
	const char *help;     /* one phrase, for hints and the reference page */
	unsigned kinds;       /* in 'sandbox': bits of the kinds that take it; 0: all */
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
const char *kr_fault_kit(const char *text);
const char *kr_fault_kit_runtime(const char *text);
const char *kr_fault_domain(const char *text);
const char *kr_fault_header(const char *text);
const char *kr_fault_format(const char *text);

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
int kr_policy_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_review_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
int kr_repo_sandbox_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target);
const char *kr_fault_empty(const char *text);
const char *kr_fault_env_name(const char *text);
const char *kr_fault_id(const char *text);
const char *kr_fault_forge(const char *text);
const char *kr_fault_inside(const char *text);
const char *kr_fault_local_file(const char *text);
const char *kr_fault_member(const char *text);
const char *kr_fault_tool(const char *text);
const char *kr_fault_grant(const char *text);
const char *kr_fault_escalation(const char *text);
const char *kr_fault_root_pointer(const char *text);

#endif
