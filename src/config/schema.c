/*
 * One table of every key, and the reader that walks along it.
 *
 * A key that is missing here is unknown everywhere: the reader, its "did you mean", and the list of keys in a
 * hint all come from these rows. A key that a sandbox kind does not take is known but refused, which is
 * another message.
 */
#include "config/schema.h"

#include <stdarg.h>

#include "base/text.h"

enum { NEAR = 2, QUOTE_BYTES = 120 };

#define OS (1u << KR_SANDBOX_OS)
#define DOCKER (1u << KR_SANDBOX_DOCKER)
#define KIT (1u << KR_SANDBOX_KIT)
#define REPO(member) offsetof(struct kr_repo, member)
#define SANDBOX(member) offsetof(struct kr_sandbox, member)
#define CREDENTIAL(member) offsetof(struct kr_credential, member)
#define INJECT(member) offsetof(struct kr_inject, member)
#define HOSTS(member) offsetof(struct kr_host_list, member)
#define SCOPE(member) offsetof(struct kr_test_scope, member)
#define WORKSPACE(member) offsetof(struct kr_workspace, member)
#define MEMBER(member) offsetof(struct kr_member, member)
#define NONE KR_NO_FIELD

/* section, name, type, default, help, kinds, nullable, field, fault, read */
const struct kr_key kr_keys[] = {
	{ KR_IN_TOP, "repos", KR_KEY_LIST, "[]", "the connected repositories", 0, true, 0, NULL,
		kr_repo_list_read },
	{ KR_IN_TOP, "workspaces", KR_KEY_MAPPING, "{}", "repositories that are worked on together, by name", 0,
		true, 0, NULL, kr_workspaces_read },

	{ KR_IN_REPO, "path", KR_KEY_STRING, "", "the checkout, an absolute path", 0, false, REPO(path), NULL,
		kr_path_read },
	{ KR_IN_REPO, "name", KR_KEY_STRING, "null", "the shown name; else the directory's", 0, true, REPO(name),
		kr_fault_empty, NULL },
	{ KR_IN_REPO, "id", KR_KEY_STRING, "null", "a unique id, for workspaces", 0, true, REPO(id), kr_fault_id,
		NULL },
	{ KR_IN_REPO, "enabled", KR_KEY_BOOL, "true", "whether work is taken in by itself", 0, false,
		REPO(enabled), NULL, NULL },
	{ KR_IN_REPO, "managed", KR_KEY_BOOL, "true", "whether saved settings own the entry", 0, false,
		REPO(managed), NULL, NULL },
	{ KR_IN_REPO, "forge", KR_KEY_STRING, "null", "who hosts its merge requests: github or gitlab", 0, true,
		REPO(forge), kr_fault_forge, NULL },
	{ KR_IN_REPO, "project", KR_KEY_STRING, "null", "its project path on the forge", 0, true, REPO(project),
		kr_fault_empty, NULL },
	{ KR_IN_REPO, "default_chain", KR_KEY_STRING, "null", "the chain of its work items", 0, true,
		REPO(default_chain), kr_fault_empty, NULL },
	{ KR_IN_REPO, "default_chain_template", KR_KEY_STRING, "null", "the older name of default_chain", 0, true,
		REPO(default_chain), kr_fault_empty, kr_old_chain_read },
	{ KR_IN_REPO, "models", KR_KEY_MAPPING, "{}", "a model by harness profile", 0, false, NONE, NULL,
		kr_models_read },
	{ KR_IN_REPO, "setup_command", KR_KEY_STRING, "null",
		"makes a new worktree ready; \"\" when there is nothing to do", 0, true, REPO(setup_command), NULL,
		NULL },
	{ KR_IN_REPO, "test_command", KR_KEY_STRING, "null", "runs the tests; \"\" when there are none", 0, true,
		REPO(test_command), NULL, NULL },
	{ KR_IN_REPO, "test_scopes", KR_KEY_LIST, "null", "test commands by changed paths", 0, true, NONE, NULL,
		kr_scopes_read },
	{ KR_IN_REPO, "areas", KR_KEY_MAPPING, "{}", "setup and test commands by area", 0, false, NONE, NULL,
		kr_areas_read },
	{ KR_IN_REPO, "intent_dir", KR_KEY_STRING, "null", "a directory inside the repository", 0, true,
		REPO(intent_dir), kr_fault_inside, NULL },
	{ KR_IN_REPO, "local_files", KR_KEY_STRINGS, "[]", "untracked files that each worktree gets a copy of", 0,
		false, REPO(local_files), kr_fault_local_file, NULL },
	{ KR_IN_REPO, "env", KR_KEY_MAPPING, "{}", "variables of every worker, by name", 0, false, NONE, NULL,
		kr_env_read },
	{ KR_IN_REPO, "env_passthrough", KR_KEY_STRINGS, "[]", "names of our own variables that workers get too",
		0, false, REPO(env_passthrough), kr_fault_env_name, NULL },
	{ KR_IN_REPO, "policy", KR_KEY_MAPPING, "null", "the repository's layer of the policy", 0, true, NONE,
		NULL, kr_policy_read },
	{ KR_IN_REPO, "deny_tools", KR_KEY_STRINGS, "[]", "tools that agents may not use", 0, false,
		REPO(deny_tools), kr_fault_tool, NULL },
	{ KR_IN_REPO, "steering", KR_KEY_STRINGS, "[]", "names of steering documents", 0, false, REPO(steering),
		kr_fault_empty, NULL },
	{ KR_IN_REPO, "sandbox", KR_KEY_SANDBOX, "null", "the walls around its workers", 0, true, NONE, NULL,
		kr_repo_sandbox_read },
	{ KR_IN_REPO, "automated_review", KR_KEY_MAPPING, "null", "the bot or the check that reviews", 0, true,
		NONE, NULL, kr_review_read },
	{ KR_IN_REPO, "ci_checks", KR_KEY_BOOL, "true", "whether the forge's checks count", 0, false,
		REPO(ci_checks), NULL, NULL },

	{ KR_IN_SCOPE, "paths", KR_KEY_STRINGS, "", "the paths that the scope covers", 0, false, SCOPE(paths),
		kr_fault_empty, NULL },
	{ KR_IN_SCOPE, "command", KR_KEY_STRING, "", "the test command of those paths", 0, false, SCOPE(command),
		kr_fault_empty, NULL },

	{ KR_IN_REVIEW, "bot", KR_KEY_STRING, "unset", "the reviewing bot's login", 0, false, NONE,
		kr_fault_empty, NULL },
	{ KR_IN_REVIEW, "check", KR_KEY_STRING, "unset", "the reviewing check's name", 0, false, NONE,
		kr_fault_empty, NULL },

	{ KR_IN_POLICY, "allowed_tools", KR_KEY_STRINGS, "null", "the only tools that agents may use", 0, true,
		NONE, kr_fault_tool, NULL },
	{ KR_IN_POLICY, "deny_tools", KR_KEY_STRINGS, "[]", "tools that agents may not use", 0, false,
		REPO(deny_tools), kr_fault_tool, NULL },
	{ KR_IN_POLICY, "grants", KR_KEY_STRINGS, "[]", "what agents may do with git", 0, false, NONE,
		kr_fault_grant, NULL },
	{ KR_IN_POLICY, "sandbox", KR_KEY_SANDBOX, "null", "the walls around its workers", 0, true, NONE, NULL,
		kr_repo_sandbox_read },
	{ KR_IN_POLICY, "allowed_harnesses", KR_KEY_STRINGS, "null", "the only harnesses that may run", 0, true,
		NONE, kr_fault_empty, NULL },
	{ KR_IN_POLICY, "max_attempts", KR_KEY_INTEGER, "null", "attempts of a task", 0, true, NONE, NULL, NULL },
	{ KR_IN_POLICY, "timeout_minutes", KR_KEY_NUMBER, "null", "time of one session", 0, true, NONE, NULL,
		NULL },
	{ KR_IN_POLICY, "time_cap_minutes", KR_KEY_NUMBER, "null", "time of a task", 0, true, NONE, NULL, NULL },
	{ KR_IN_POLICY, "total_time_cap_minutes", KR_KEY_NUMBER, "null", "time of an item", 0, true, NONE, NULL,
		NULL },
	{ KR_IN_POLICY, "token_budget", KR_KEY_INTEGER, "null", "tokens of an item", 0, true, NONE, NULL, NULL },
	{ KR_IN_POLICY, "budget_usd", KR_KEY_NUMBER, "null", "money of an item", 0, true, NONE, NULL, NULL },
	{ KR_IN_POLICY, "escalation_harness", KR_KEY_STRING, "item", "who helps a stopped item: claude or item",
		0, false, NONE, kr_fault_escalation, NULL },

	{ KR_IN_SANDBOX, "kind", KR_KEY_STRING, "", "os, docker or kit", 0, false, NONE, NULL, NULL },
	{ KR_IN_SANDBOX, "network", KR_KEY_MAPPING, "{}", "the hosts that each phase may reach", OS | DOCKER,
		false, SANDBOX(network), NULL, kr_network_read },
	{ KR_IN_SANDBOX, "expose", KR_KEY_STRINGS, "[]", "host paths that workers may read", OS, false, NONE,
		NULL, kr_expose_read },
	{ KR_IN_SANDBOX, "image", KR_KEY_STRING, "", "the container's image", DOCKER, false, SANDBOX(image),
		kr_fault_empty, NULL },
	{ KR_IN_SANDBOX, "resources", KR_KEY_MAPPING, "{}", "the container's limits", DOCKER, false,
		SANDBOX(resources), NULL, kr_resources_read },
	{ KR_IN_SANDBOX, "credentials", KR_KEY_LIST, "[]", "secrets that workers never hold", DOCKER, false, NONE,
		NULL, kr_credentials_read },
	{ KR_IN_SANDBOX, "unrestricted_network", KR_KEY_BOOL, "false", "runs workers on an open network", DOCKER,
		false, SANDBOX(unrestricted_network), NULL, NULL },
	{ KR_IN_SANDBOX, "runtime", KR_KEY_STRING, "", "what runs the kit: docker", KIT, false, SANDBOX(runtime),
		kr_fault_kit_runtime, NULL },
	{ KR_IN_SANDBOX, "kit", KR_KEY_STRING, "", "the kit, NAME@sha256:DIGEST", KIT, false, SANDBOX(kit),
		kr_fault_kit, NULL },

	{ KR_IN_NETWORK, "install", KR_KEY_MAPPING, "{}", "hosts of the setup command", 0, false, NONE, NULL,
		kr_phase_read },
	{ KR_IN_NETWORK, "runtime", KR_KEY_MAPPING, "{}", "hosts of every session", 0, false, NONE, NULL,
		kr_phase_read },

	{ KR_IN_PHASE, "allow", KR_KEY_STRINGS, "[]", "hosts that may be reached", 0, false, HOSTS(allow), NULL,
		kr_hosts_read },
	{ KR_IN_PHASE, "deny", KR_KEY_STRINGS, "[]", "hosts that may not, whatever allow says", 0, false,
		HOSTS(deny), NULL, kr_hosts_read },

	{ KR_IN_RESOURCES, "cpu", KR_KEY_NUMBER, "no limit", "processors, at least 0.01", 0, false, NONE, NULL,
		kr_cpu_read },
	{ KR_IN_RESOURCES, "memory", KR_KEY_SIZE, "no limit", "a whole number of bytes, or with b, k, m or g", 0,
		false, NONE, NULL, kr_memory_read },
	{ KR_IN_RESOURCES, "pids", KR_KEY_INTEGER, "4096", "processes, at least 1", 0, false, NONE, NULL,
		kr_pids_read },

	{ KR_IN_CREDENTIAL, "env", KR_KEY_STRING, "", "the variable that the worker sees", 0, false,
		CREDENTIAL(env), kr_fault_env_name, NULL },
	{ KR_IN_CREDENTIAL, "service", KR_KEY_STRING, "null", "a label", 0, true, CREDENTIAL(service),
		kr_fault_empty, NULL },
	{ KR_IN_CREDENTIAL, "sentinel", KR_KEY_STRING, "null", "what the worker sees in the secret's place", 0,
		true, CREDENTIAL(sentinel), kr_fault_empty, NULL },
	{ KR_IN_CREDENTIAL, "inject", KR_KEY_LIST, "the harness's own",
		"where the secret goes: domain, header, format", 0, false, NONE, NULL, kr_inject_read },
	{ KR_IN_CREDENTIAL, "phase", KR_KEY_STRINGS, "[install, runtime]", "the phases that it is for", 0, false,
		NONE, NULL, kr_phases_read },
	{ KR_IN_CREDENTIAL, "source", KR_KEY_STRING, "the same as env", "our own variable that holds the secret",
		0, false, CREDENTIAL(source), kr_fault_env_name, NULL },

	{ KR_IN_INJECT, "domain", KR_KEY_STRING, "", "one exact host, without a port", 0, false, INJECT(domain),
		kr_fault_domain, NULL },
	{ KR_IN_INJECT, "header", KR_KEY_STRING, "", "the header that carries the secret", 0, false,
		INJECT(header), kr_fault_header, NULL },
	{ KR_IN_INJECT, "format", KR_KEY_STRING, "", "the header's value, with one %s for the secret", 0, false,
		INJECT(format), kr_fault_format, NULL },

	{ KR_IN_WORKSPACE, "root", KR_KEY_STRING, "", "the id of the repository at the root", 0, false,
		WORKSPACE(root_id), kr_fault_id, NULL },
	{ KR_IN_WORKSPACE, "root_pointer_default", KR_KEY_STRING, "ignore",
		"what happens to the root's pointers: ignore or bump", 0, false, NONE, kr_fault_root_pointer,
		kr_root_pointer_read },
	{ KR_IN_WORKSPACE, "members", KR_KEY_MAPPING, "{}", "the other repositories, by name", 0, false, NONE,
		NULL, kr_members_read },

	{ KR_IN_MEMBER, "repository", KR_KEY_STRING, "", "the id of the member's repository", 0, false,
		MEMBER(repository), kr_fault_id, NULL },
	{ KR_IN_MEMBER, "path", KR_KEY_STRING, "", "where it stands below the root", 0, false, MEMBER(path),
		kr_fault_member, NULL },
};
const size_t kr_key_count = KR_COUNT(kr_keys);

static const char *const section_words[] = {
#define X(section, words) [KR_IN_##section] = words,
	KR_SECTIONS(X)
#undef X
};

static const struct {
	const char *words;
	unsigned values; /* bits of enum kr_yaml_value */
} types[] = {
	[KR_KEY_STRING] = { "a string", 1u << KR_VALUE_STRING },
	[KR_KEY_BOOL] = { "true or false", 1u << KR_VALUE_BOOL },
	[KR_KEY_INTEGER] = { "a whole number", 1u << KR_VALUE_INTEGER },
	[KR_KEY_NUMBER] = { "a number", 1u << KR_VALUE_INTEGER | 1u << KR_VALUE_FLOAT },
	[KR_KEY_SIZE] = { "a size such as 4g",
		1u << KR_VALUE_INTEGER | 1u << KR_VALUE_FLOAT | 1u << KR_VALUE_STRING },
	[KR_KEY_LIST] = { "a list", 1u << KR_VALUE_LIST },
	[KR_KEY_STRINGS] = { "a list of strings", 1u << KR_VALUE_LIST },
	[KR_KEY_MAPPING] = { "a mapping", 1u << KR_VALUE_MAPPING },
	[KR_KEY_SANDBOX] = { "a mapping, or false", 1u << KR_VALUE_MAPPING | 1u << KR_VALUE_BOOL },
};
_Static_assert(KR_COUNT(types) == KR_KEY_TYPE_COUNT, "one row per type");

struct kr_mark
kr_config_mark(const struct kr_yaml_node *node)
{
	return (struct kr_mark){ .line = node->start.line, .column = node->start.column };
}

const char *
kr_config_quote(struct kr_config *c, const char *text)
{
	size_t n = strlen(text);

	if (n <= QUOTE_BYTES)
		return text;
	for (n = QUOTE_BYTES; n && ((unsigned char)text[n] & 0xc0) == 0x80; n--)
		; /* never half a character */
	return kr_arena_printf(c->arena, "%.*s...", (int)n, text);
}

int
kr_config_fail(struct kr_config *c, const struct kr_yaml_node *at, const char *fmt, ...)
{
	char message[sizeof(c->err->message)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	if (c->entry)
		kr_fail(c->err, KR_E_CONFIG, "%s (entry %s)", message, c->entry);
	else
		kr_fail(c->err, KR_E_CONFIG, "%s", message);
	kr_yaml_place(c->doc, &at->start, c->err);
	return -1;
}

/* ---- types ---- */

static bool
looks_boolean(const char *text)
{
	static const char *const words[] = { "yes", "no", "on", "off", "y", "n", "true", "false" };

	for (size_t i = 0; i < KR_COUNT(words); i++)
		if (strcasecmp(text, words[i]) == 0)
			return true;
	return false;
}

static int
hint_type(struct kr_config *c, const struct kr_yaml_node *node, enum kr_key_type want)
{
	enum kr_yaml_value is = kr_yaml_value(node);
	const char *text = kr_config_quote(c, node->text);

	if (want == KR_KEY_STRING && strcmp(text, "~") == 0)
		return kr_hint(
			c->err, "in YAML a '~' by itself is null; put the text in quotes, or write the path out");
	if (want == KR_KEY_STRING && is == KR_VALUE_NULL)
		return kr_hint(c->err, "write \"\" for an empty text");
	if (want == KR_KEY_STRING && (is == KR_VALUE_BOOL || is == KR_VALUE_INTEGER || is == KR_VALUE_FLOAT))
		return kr_hint(c->err, "put it in quotes: \"%s\"", text);
	if (want == KR_KEY_BOOL && is == KR_VALUE_STRING && looks_boolean(text))
		return kr_hint(c->err,
			node->plain ? "write true or false; in YAML 1.2 '%s' is a text"
						: "write true or false, without quotes; \"%s\" is a text",
			text);
	if ((want == KR_KEY_STRINGS || want == KR_KEY_LIST) && is == KR_VALUE_NULL)
		return kr_hint(c->err, "write [] for an empty list, or take the key away");
	if (want == KR_KEY_STRINGS && node->type == KR_YAML_SCALAR)
		return kr_hint(c->err, "put it in brackets: [%s]", text);
	if (want == KR_KEY_MAPPING && is == KR_VALUE_NULL)
		return kr_hint(c->err, "indent what belongs to it below it, or take the key away");
	if (want == KR_KEY_STRING && is == KR_VALUE_MAPPING)
		return kr_hint(c->err, "a text that holds ': ' needs quotes");
	if (want == KR_KEY_STRING && is == KR_VALUE_LIST)
		return kr_hint(c->err, "write it as one text");
	if ((want == KR_KEY_INTEGER || want == KR_KEY_NUMBER) && is == KR_VALUE_STRING && !node->plain)
		return kr_hint(c->err, "take the quotes away");
	return -1;
}

int
kr_config_want(struct kr_config *c, const struct kr_yaml_node *node, const char *name, enum kr_key_type want)
{
	enum kr_yaml_value is = kr_yaml_value(node);

	if (types[want].values >> is & 1)
		return 0;
	kr_config_fail(c, node, "'%s' must be %s, not %s", kr_config_quote(c, name), types[want].words,
		want == KR_KEY_INTEGER && is == KR_VALUE_FLOAT ? "a fraction" : kr_yaml_value_words(is));
	return hint_type(c, node, want);
}

static int
check_fault(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node)
{
	const char *fault = key->fault ? key->fault(node->text) : NULL;

	if (!fault)
		return 0;
	kr_config_fail(c, node, "'%s' of '%s' %s", kr_config_quote(c, node->text), key->name, fault);
	return kr_hint(c->err, "%s: %s", key->name, key->help);
}

static int
read_strings(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, struct kr_strs *out)
{
	for (const struct kr_yaml_node *item = node->child; item; item = item->next) {
		if (kr_yaml_value(item) != KR_VALUE_STRING) {
			kr_config_fail(c, item, "an item of '%s' must be a string, not %s", key->name,
				kr_yaml_value_words(kr_yaml_value(item)));
			return hint_type(c, item, KR_KEY_STRING);
		}
		if (check_fault(c, key, item) < 0)
			return -1;
		if (out)
			kr_strs_add(c->arena, out, item->text);
	}
	return 0;
}

static int
read_plain(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *field)
{
	switch (key->type) {
	case KR_KEY_STRING:
		if (check_fault(c, key, node) < 0)
			return -1;
		if (field)
			*(const char **)field = node->text;
		return 0;
	case KR_KEY_BOOL:
		if (field)
			*(bool *)field = node->text[0] == 't' || node->text[0] == 'T';
		return 0;
	case KR_KEY_STRINGS:
		return read_strings(c, key, node, field);
	case KR_KEY_INTEGER:
	case KR_KEY_NUMBER:
		if (strspn(node->text, "0123456789.") == strlen(node->text) &&
			strspn(node->text, "0.") != strlen(node->text))
			return 0;
		return kr_config_fail(c, node, "'%s' must be larger than 0", key->name);
	default:
		KR_BUG_IF(true);
	}
}

static int
read_value(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	void *field = key->field == KR_NO_FIELD || !target ? NULL : (char *)target + key->field;

	if (key->nullable && kr_yaml_value(node) == KR_VALUE_NULL)
		return 0;
	if (kr_config_want(c, node, key->name, key->type) < 0) {
		bool required = !*key->fallback;

		if (c->err && (!c->err->hint[0] || (required && kr_yaml_value(node) == KR_VALUE_NULL)))
			kr_hint(c->err, "%s: %s", key->name, key->help);
		return -1;
	}
	if (key->type == KR_KEY_STRINGS && key->read && read_strings(c, key, node, NULL) < 0)
		return -1;
	if (key->read)
		return key->read(c, key, node, field ? field : target);
	return read_plain(c, key, node, field);
}

/* ---- keys ---- */

static bool
is_taken(const struct kr_config *c, const struct kr_key *key)
{
	return key->section != KR_IN_SANDBOX || !key->kinds || key->kinds >> c->kind & 1;
}

const struct kr_key *
kr_key_find(enum kr_section section, const char *name)
{
	for (size_t i = 0; i < kr_key_count; i++)
		if (kr_keys[i].section == section && strcmp(kr_keys[i].name, name) == 0)
			return &kr_keys[i];
	return NULL;
}

static const struct kr_key *
nearest(const struct kr_config *c, enum kr_section section, const char *name)
{
	const struct kr_key *best = NULL;
	unsigned best_distance = NEAR + 1;

	for (size_t i = 0; i < kr_key_count; i++) {
		unsigned distance;

		if (kr_keys[i].section != section || !is_taken(c, &kr_keys[i]))
			continue;
		distance = kr_text_distance(name, kr_keys[i].name, NEAR);
		if (distance < best_distance) {
			best = &kr_keys[i];
			best_distance = distance;
		}
	}
	return best;
}

/* A key of that name in another place, to tell where it belongs; NULL when there is none. */
static const struct kr_key *
find_elsewhere(enum kr_section section, const char *name)
{
	for (size_t i = 0; i < kr_key_count; i++)
		if (kr_keys[i].section != section && strcmp(kr_keys[i].name, name) == 0)
			return &kr_keys[i];
	return NULL;
}

static int
hint_keys(struct kr_config *c, enum kr_section section)
{
	struct kr_buf list = KR_BUF(400);

	for (size_t i = 0; i < kr_key_count; i++)
		if (kr_keys[i].section == section && is_taken(c, &kr_keys[i]) && strcmp(kr_keys[i].name, "kind") != 0)
			kr_buf_addf(&list, "%s%s", list.len ? ", " : "", kr_keys[i].name);
	if (section == KR_IN_SANDBOX)
		kr_hint(c->err, "kind: %s takes %s", kr_sandbox_kind_name(c->kind), list.data);
	else
		kr_hint(c->err, "%s takes %s", section_words[section], list.data);
	kr_buf_fini(&list);
	return -1;
}

static void
warn_unknown(struct kr_config *c, const struct kr_yaml_node *key)
{
	kr_strs_add(c->arena, c->warnings,
		kr_arena_printf(c->arena, "%s:%u:%u: unknown key '%s' is ignored (entry %s)", c->doc->file,
			key->start.line, key->start.column, kr_config_quote(c, key->text), c->entry));
}

static int
unknown_key(struct kr_config *c, enum kr_section section, const struct kr_yaml_node *key)
{
	const struct kr_key *elsewhere = find_elsewhere(section, key->text);
	const struct kr_key *near = nearest(c, section, key->text);

	/* A key of the sandbox that slid out of it would leave the walls lower than they were meant: never a
	 * warning. */
	bool misplaced = elsewhere && (section != KR_IN_REPO || elsewhere->section == KR_IN_SANDBOX);

	if (section == KR_IN_REPO && !near && !misplaced) {
		warn_unknown(c, key);
		return 0;
	}
	kr_config_fail(c, key, "unknown key '%s' in %s", kr_config_quote(c, key->text), section_words[section]);
	if (misplaced)
		return kr_hint(c->err, "'%s' belongs inside %s; check the indentation", elsewhere->name,
			section_words[elsewhere->section]);
	if (near)
		return kr_hint(c->err, "did you mean '%s'?", near->name);
	return hint_keys(c, section);
}

static int
refused_key(struct kr_config *c, const struct kr_yaml_node *key)
{
	kr_config_fail(c, key, "kind: %s takes no %s", kr_sandbox_kind_name(c->kind), key->text);
	return hint_keys(c, KR_IN_SANDBOX);
}

static int
check_required(struct kr_config *c, enum kr_section section, const struct kr_yaml_node *node)
{
	for (size_t i = 0; i < kr_key_count; i++) {
		const struct kr_key *key = &kr_keys[i];

		if (key->section != section || *key->fallback || !is_taken(c, key) || kr_yaml_get(node, key->name))
			continue;
		kr_config_fail(c, node, "'%s' is missing in %s", key->name, section_words[section]);
		return kr_hint(c->err, "%s: %s", key->name, key->help);
	}
	return 0;
}

int
kr_section_read(struct kr_config *c, enum kr_section section, const struct kr_yaml_node *node, void *target)
{
	for (const struct kr_yaml_node *value = node->child; value; value = value->next) {
		const struct kr_key *key = kr_key_find(section, value->key->text);

		if (!key                ? unknown_key(c, section, value->key) < 0
			: !is_taken(c, key) ? refused_key(c, value->key) < 0
								: read_value(c, key, value, target) < 0)
			return -1;
	}
	return check_required(c, section, node);
}
