/*
 * Harnesses: from the YAML of one to its capabilities, and from an id to its YAML and what harnesses.yaml
 * says.
 *
 * The tables of schema.c check keys and types. What is checked here is what would only be found at a launch,
 * or never: a placeholder that nobody fills, a value that reaches the CLI nowhere, a list that a hook is to
 * keep and no hook is there. A harness file decides which words start a program inside the walls, and which
 * calls reach kraft, so a mistake in one is refused and never guessed at. It is a person's, never a worker's:
 * it lies in the configuration.
 */
#include "config/harness.h"

#include "base/path.h"
#include "base/text.h"
#include "config/schema.h"
#include "policy/policy.h"

#define KIND "harnesses"

static const char *const capability_names[] = {
#define X(capability, name) [KR_CAP_##capability] = name,
	KR_CAPABILITIES(X)
#undef X
};

static const char *const via_names[] = {
#define X(via, name) [KR_VIA_##via] = name,
	KR_VIAS(X)
#undef X
};

static const char *const reader_names[] = {
#define X(reader, name) [KR_READER_##reader] = name,
	KR_READERS(X)
#undef X
};

static const char *const placeholder_names[] = {
#define X(placeholder, name) [KR_PLACEHOLDER_##placeholder] = name,
	KR_PLACEHOLDERS(X)
#undef X
};

const char *
kr_capability_name(enum kr_capability capability)
{
	return (unsigned)capability < KR_CAP_COUNT ? capability_names[capability] : "unknown";
}

const char *
kr_via_name(enum kr_via via)
{
	return (unsigned)via < KR_COUNT(via_names) ? via_names[via] : "unknown";
}

const char *
kr_reader_name(enum kr_reader reader)
{
	return (unsigned)reader < KR_READER_COUNT ? reader_names[reader] : "unknown";
}

/* -1: it is none of them. */
static int
find_name(const char *const names[], size_t count, const char *name, size_t n)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(names[i]) == n && memcmp(names[i], name, n) == 0)
			return (int)i;
	return -1;
}

const char *
kr_placeholder_find(const char *text, enum kr_placeholder *which, size_t *n)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";

	for (const char *at = text; (at = strchr(at, '{')); at++) {
		size_t name = strspn(at + 1, letters);
		int found;

		if (!name || at[1 + name] != '}')
			continue;
		found = find_name(placeholder_names, KR_PLACEHOLDER_COUNT, at + 1, name);
		*which = found < 0 ? KR_PLACEHOLDER_COUNT : (enum kr_placeholder)found;
		*n = name + 2;
		return at;
	}
	return NULL;
}

const struct kr_cap *
kr_harness_cap(const struct kr_harness *harness, enum kr_capability capability)
{
	for (size_t i = 0; i < harness->cap_count; i++)
		if (harness->caps[i].kind == capability)
			return &harness->caps[i];
	return NULL;
}

/* ---- what is wrong with a text ---- */

const char *
kr_fault_cli(const char *text)
{
	return strcmp(text, "cli") == 0 ? NULL : "is no kind of harness that this kraft starts";
}

const char *
kr_fault_hook(const char *text)
{
	return strcmp(text, "codex") == 0 || strcmp(text, "cursor") == 0 ? NULL : "is no hook that kraft answers";
}

const char *
kr_fault_rules(const char *text)
{
	return strcmp(text, "amp") == 0 || strcmp(text, "opencode") == 0
			   ? NULL
			   : "is no form of rules that kraft writes";
}

/* 64: as long as a version that a program prints is read (agent/version.c). */
const char *
kr_fault_version(const char *text)
{
	size_t parts = 0;

	for (const char *at = text;; at++) {
		size_t digits = strspn(at, "0123456789");

		at += digits;
		parts++;
		if (!digits || (*at && *at != '.') || strlen(text) > 64)
			return "is no version, such as 2.1.0";
		if (!*at)
			return parts > 1 ? NULL : "is no version, such as 2.1.0";
	}
}

const char *
kr_fault_required_host(const char *text)
{
	struct kr_host_pattern pattern;
	const char *why;

	if (!kr_host_pattern_parse(text, &pattern, &why))
		return "is no host of a network list";
	return pattern.any ? "is every host, which no harness needs" : NULL;
}

const char *
kr_fault_kept(const char *text)
{
	return *text && *text != '.' && !strchr(text, '/') ? NULL : "is not the name of a directory in it";
}

/* ---- words ---- */

#define BIT(placeholder) (1u << KR_PLACEHOLDER_##placeholder)

/* Refuses a placeholder that is not among `taken`; what was seen is added to *seen. */
static int
check_text(struct kr_config *c, const struct kr_yaml_node *node, unsigned taken, unsigned *seen)
{
	const char *at = node->text;
	enum kr_placeholder which;
	size_t n;

	for (; (at = kr_placeholder_find(at, &which, &n)); at += n) {
		if (which == KR_PLACEHOLDER_COUNT || !((taken | BIT(SETTINGS)) >> which & 1)) {
			kr_config_fail(c, node, "nothing stands for '%.*s' here", (int)(n < 40 ? n : 40), at);
			return kr_hint(c->err, "its placeholders are in kraft-harness(5)");
		}
		*seen |= 1u << which;
	}
	return 0;
}

static int
check_words(struct kr_config *c, const struct kr_yaml_node *list, unsigned taken, unsigned *seen)
{
	for (const struct kr_yaml_node *item = list ? list->child : NULL; item; item = item->next)
		if (check_text(c, item, taken, seen) < 0)
			return -1;
	return 0;
}

/* ---- one capability ---- */

/* What is read before it is known to be whole; the table's offsets are those of the first. */
struct reading {
	struct kr_cap cap;
	enum kr_reader reader;
};

/* Ways that a capability's value can go, and what stands for it in its words; 0: it has no value. */
static const struct {
	unsigned vias, takes;
} specs[KR_CAP_COUNT] = {
#define VIA(via) (1u << KR_VIA_##via)
	[KR_CAP_PROMPT] = { VIA(ARGS) | VIA(STDIN), BIT(VALUE) },
	[KR_CAP_CONTEXT] = { VIA(ARGS) | VIA(PROMPT), BIT(VALUE) | BIT(JSON) },
	[KR_CAP_USAGE] = { VIA(ARGS), 0 },
	[KR_CAP_STRUCTURED_LOG] = { VIA(ARGS), 0 },
	[KR_CAP_MODEL] = { VIA(ARGS), BIT(VALUE) | BIT(JSON) },
	[KR_CAP_EFFORT] = { VIA(ARGS), BIT(VALUE) | BIT(JSON) },
	[KR_CAP_PERMISSION_MODE] = { VIA(ARGS), BIT(VALUE) | BIT(JSON) },
	[KR_CAP_DENY_TOOLS] = { VIA(ARGS) | VIA(HOOK) | VIA(RULES), BIT(CSV) | BIT(JSON) },
	[KR_CAP_ALLOWED_TOOLS] = { VIA(ARGS) | VIA(HOOK) | VIA(RULES), BIT(CSV) | BIT(JSON) },
	[KR_CAP_RESTRICT_TOOLS] = { VIA(ARGS), BIT(CSV) | BIT(JSON) },
	[KR_CAP_ASK_TOOLS] = { VIA(ARGS) | VIA(HOOK), BIT(CSV) | BIT(JSON) },
	[KR_CAP_APPROVAL_CHANNEL] = { VIA(ARGS), 0 },
	[KR_CAP_MCP_CONFIG] = { VIA(ARGS), BIT(VALUE) },
	[KR_CAP_PERMISSION_HOOK] = { VIA(ARGS), BIT(COMMAND) },
	[KR_CAP_RESUME] = { VIA(ARGS), BIT(VALUE) },
#undef VIA
};

/* The capability names it: "args, hook and rules". */
int
kr_via_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	unsigned vias = specs[c->capability].vias;
	int via = find_name(via_names, KR_COUNT(via_names), node->text, strlen(node->text));
	kr_auto_buf struct kr_buf list = KR_BUF(100);

	if (via >= 0 && vias >> via & 1) {
		*(enum kr_via *)target = (enum kr_via)via;
		return 0;
	}
	for (size_t i = 0; i < KR_COUNT(via_names); i++)
		if (vias >> i & 1)
			kr_buf_addf(&list, "%s%s", list.len ? ", " : "", via_names[i]);
	kr_config_fail(c, node, "'%s' is no way for '%s'", kr_config_quote(c, node->text),
		kr_capability_name(c->capability));
	return kr_hint(c->err, "%s: %s", key->name, list.data);
}

int
kr_reader_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	int reader = find_name(reader_names, KR_READER_COUNT, node->text, strlen(node->text));

	if (reader >= 0) {
		((struct reading *)target)->reader = (enum kr_reader)reader;
		return 0;
	}
	kr_config_fail(c, node, "'%s' is no output that kraft can read", kr_config_quote(c, node->text));
	return kr_hint(c->err, "%s: %s", key->name, key->help);
}

/* Its words, and that its value is among them when that is its way. */
static int
check_args(struct kr_config *c, const struct kr_yaml_node *node, const struct kr_cap *cap)
{
	const struct kr_yaml_node *args = kr_yaml_get(node, "args");
	unsigned takes = cap->via == KR_VIA_ARGS ? specs[cap->kind].takes : 0, seen = 0;
	const char *name = kr_capability_name(cap->kind);

	if (check_words(c, args, takes, &seen) < 0)
		return -1;
	if (args && args->child && (cap->via == KR_VIA_HOOK || cap->via == KR_VIA_PROMPT)) {
		kr_config_fail(c, args, "'%s' goes another way, so its 'args' would be without effect", name);
		return kr_hint(c->err, "take 'args' away, or 'via'");
	}
	if (cap->via != KR_VIA_ARGS || cap->kind == KR_CAP_USAGE || cap->command.n)
		return 0;
	if (!cap->args.n)
		return kr_config_fail(c, node, "'%s' has no 'args', so nobody would be told", name);
	if (takes && !(seen & takes)) {
		kr_config_fail(c, args, "the 'args' of '%s' hold nothing that stands for its value", name);
		return kr_hint(c->err, "such as {%s}",
			placeholder_names[takes & BIT(CSV)       ? KR_PLACEHOLDER_CSV
							  : takes & BIT(COMMAND) ? KR_PLACEHOLDER_COMMAND
													 : KR_PLACEHOLDER_VALUE]);
	}
	return 0;
}

static int
check_trust(struct kr_config *c, const struct kr_yaml_node *node)
{
	const struct kr_yaml_node *trust = kr_yaml_get(node, "trust");
	unsigned seen = 0, both = BIT(KEY) | BIT(HASH);

	if (check_words(c, trust, both, &seen) < 0)
		return -1;
	if (trust && (seen & both) != both) {
		kr_config_fail(c, trust, "'trust' must hold {key} and {hash}");
		return kr_hint(c->err, "the CLI is asked for both, and trusts no other hook by them");
	}
	return 0;
}

static int
check_resume(struct kr_config *c, const struct kr_yaml_node *node, const struct kr_cap *cap)
{
	const struct kr_yaml_node *command = kr_yaml_get(node, "command");
	unsigned seen = 0;

	if (cap->args.n && cap->command.n)
		return kr_config_fail(c, command->key, "'args' and 'command' exclude each other");
	if (check_words(c, command, BIT(VALUE), &seen) < 0)
		return -1;
	if (cap->command.n && !(seen & BIT(VALUE))) {
		kr_config_fail(c, command, "'command' holds nothing that stands for the conversation");
		return kr_hint(c->err, "write {value} where its id goes");
	}
	return 0;
}

static bool
takes_value(const struct kr_cap *cap, const char *value)
{
	return !value || !cap->values.n || kr_strs_has(&cap->values, value);
}

static int
check_mode(struct kr_config *c, const struct kr_yaml_node *node, const struct kr_cap *cap)
{
	static const char *const keys[] = { "always", "under_allowlist" };
	const char *const modes[] = { cap->always, cap->under_allowlist };

	for (size_t i = 0; i < KR_COUNT(keys); i++)
		if (!takes_value(cap, modes[i])) {
			kr_config_fail(
				c, kr_yaml_get(node, keys[i]), "'%s' of '%s' is not among its 'values'", modes[i], keys[i]);
			return kr_hint(c->err, "add it there, or take another");
		}
	return 0;
}

int
kr_capability_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_harness *harness = target;
	int kind = find_name(capability_names, KR_CAP_COUNT, key->name, strlen(key->name));
	struct reading reading = { .cap = {
								   .kind = (enum kr_capability)kind, .mark = kr_config_mark(node->key) } };
	struct kr_cap *cap = &reading.cap;

	KR_BUG_IF(kind < 0);
	c->capability = cap->kind;
	if (kr_section_read(c, KR_IN_CAPABILITY, node, &reading) < 0 || check_resume(c, node, cap) < 0 ||
		check_args(c, node, cap) < 0 || check_trust(c, node) < 0 || check_mode(c, node, cap) < 0)
		return -1;
	if (cap->kind == KR_CAP_USAGE)
		harness->reader = reading.reader;
	harness->caps[harness->cap_count++] = *cap;
	return 0;
}

int
kr_capabilities_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_harness *harness = target;

	(void)key;
	harness->caps = kr_arena_alloc(c->arena, (node->count + 1) * sizeof(*harness->caps));
	return kr_section_read(c, KR_IN_CAPABILITIES, node, harness);
}

/* ---- the rest of a file ---- */

int
kr_harness_command_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	const char *program = kr_program_read(c, node, key->name, "a worker could put another program there");

	if (!program)
		return -1;
	*(const char **)target = program;
	return 0;
}

int
kr_requires_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	(void)key;
	return kr_section_read(c, KR_IN_REQUIRES, node, target);
}

int
kr_config_dir_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	(void)key;
	return kr_section_read(c, KR_IN_CONFIG_DIR, node, target);
}

int
kr_harness_credentials_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_harness *harness = target;

	harness->credentials = kr_arena_alloc(c->arena, (node->count + 1) * sizeof(*harness->credentials));
	for (const struct kr_yaml_node *item = node->child; item; item = item->next) {
		struct kr_credential *one = &harness->credentials[harness->credential_count];

		if (kr_config_want(c, item, key->name, KR_KEY_MAPPING) < 0 ||
			kr_section_read(c, KR_IN_HARNESS_CREDENTIAL, item, one) < 0)
			return -1;
		if (!one->inject_count)
			return kr_config_fail(c, item, "the credential '%s' says of no host that it goes there", one->env);
		for (size_t i = 0; i < harness->credential_count; i++)
			if (strcmp(harness->credentials[i].env, one->env) == 0)
				return kr_config_fail(c, item, "the credential '%s' stands twice", one->env);
		harness->credential_count++;
	}
	return 0;
}

int
kr_harness_env_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_harness *harness = target;
	unsigned seen = 0;

	(void)key;
	harness->env = kr_arena_alloc(c->arena, (node->count + 1) * sizeof(*harness->env));
	for (const struct kr_yaml_node *value = node->child; value; value = value->next) {
		const char *fault = kr_fault_env_name(value->key->text);

		if (fault)
			return kr_config_fail(
				c, value->key, "'%s' in 'env' %s", kr_config_quote(c, value->key->text), fault);
		if (kr_config_want(c, value, value->key->text, KR_KEY_STRING) < 0 ||
			check_text(c, value, 0, &seen) < 0)
			return -1;
		harness->env[harness->env_count++] = (struct kr_env_literal){
			.name = value->key->text, .value = value->text, .mark = kr_config_mark(value->key)
		};
	}
	return 0;
}

/* A list of strings that is the value of a free name. */
static int
read_list(struct kr_config *c, const struct kr_yaml_node *value, const char *(*fault)(const char *),
	struct kr_strs *out)
{
	if (kr_config_want(c, value, value->key->text, KR_KEY_STRINGS) < 0)
		return -1;
	if (!value->child)
		return kr_config_fail(c, value, "'%s' is empty", kr_config_quote(c, value->key->text));
	for (const struct kr_yaml_node *item = value->child; item; item = item->next) {
		const char *why;

		if (kr_config_want(c, item, "an item", KR_KEY_STRING) < 0)
			return -1;
		why = fault ? fault(item->text) : NULL;
		if (why)
			return kr_config_fail(c, item, "'%s' %s", kr_config_quote(c, item->text), why);
		kr_strs_add(c->arena, out, item->text);
	}
	return 0;
}

int
kr_tool_names_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_harness *harness = target;

	(void)key;
	harness->tools = kr_arena_alloc(c->arena, (node->count + 1) * sizeof(*harness->tools));
	for (const struct kr_yaml_node *value = node->child; value; value = value->next) {
		const char *fault = kr_fault_tool(value->key->text);
		struct kr_tool_name *out = &harness->tools[harness->tool_count++];

		if (fault)
			return kr_config_fail(c, value->key, "'%s' %s", kr_config_quote(c, value->key->text), fault);
		*out = (struct kr_tool_name){ .cli = value->key->text };
		if (read_list(c, value, kr_fault_tool, &out->policy) < 0)
			return -1;
	}
	return 0;
}

/* ---- what belongs together ---- */

static const struct kr_yaml_node *
cap_node(const struct kr_config *c, enum kr_capability capability)
{
	return kr_yaml_get(kr_yaml_get(c->doc->root, "capabilities"), kr_capability_name(capability));
}

/* One that goes by a hook or by rules, and none is named. */
static int
check_vias(struct kr_config *c, const struct kr_harness *harness)
{
	for (size_t i = 0; i < harness->cap_count; i++) {
		const struct kr_cap *cap = &harness->caps[i];
		const char *missing = cap->via == KR_VIA_HOOK && !harness->hook     ? "permission_hook"
							  : cap->via == KR_VIA_RULES && !harness->rules ? "permission_rules"
																			: NULL;

		if (!missing)
			continue;
		kr_config_fail(c, kr_yaml_get(cap_node(c, cap->kind), "via"),
			"'%s' goes by '%s', and the harness has none", kr_capability_name(cap->kind), missing);
		return kr_hint(c->err, "write '%s:' at the top, with whose form it has", missing);
	}
	return 0;
}

static int
check_hook(struct kr_config *c, const struct kr_harness *harness)
{
	const struct kr_cap *cap = kr_harness_cap(harness, KR_CAP_PERMISSION_HOOK);
	const struct kr_yaml_node *root = c->doc->root, *named = kr_yaml_get(root, "permission_hook"),
							  *unhooked = kr_yaml_get(root, "unhooked_tools");

	if (harness->hook && !cap) {
		kr_config_fail(c, named->key, "'permission_hook' is not among the capabilities, so no hook is set");
		return kr_hint(c->err, "write the words that set it there");
	}
	if (cap && !harness->hook) {
		kr_config_fail(c, cap_node(c, KR_CAP_PERMISSION_HOOK)->key, "no hook is named that kraft answers");
		return kr_hint(c->err, "write 'permission_hook: codex' at the top");
	}
	if (harness->unhooked.n && !harness->hook && !harness->rules)
		return kr_config_fail(
			c, unhooked->key, "'unhooked_tools' is without effect: there is neither hook nor rules");
	return 0;
}

/* A tool that is to be asked for by words needs somebody who is asked. */
static int
check_asking(struct kr_config *c, const struct kr_harness *harness)
{
	const struct kr_cap *ask = kr_harness_cap(harness, KR_CAP_ASK_TOOLS);

	if (kr_harness_cap(harness, KR_CAP_APPROVAL_CHANNEL) && !kr_harness_cap(harness, KR_CAP_MCP_CONFIG)) {
		kr_config_fail(c, cap_node(c, KR_CAP_APPROVAL_CHANNEL)->key, "'approval_channel' lacks 'mcp_config'");
		return kr_hint(c->err, "kraft is asked through its server, which the CLI has to be given");
	}
	if (!ask || ask->via != KR_VIA_ARGS || kr_harness_cap(harness, KR_CAP_APPROVAL_CHANNEL))
		return 0;
	kr_config_fail(c, cap_node(c, KR_CAP_ASK_TOOLS)->key, "'ask_tools' lacks 'approval_channel'");
	return kr_hint(c->err, "without it the CLI has nobody to ask");
}

static int
check_container_mode(struct kr_config *c, const struct kr_harness *harness)
{
	const struct kr_cap *mode = kr_harness_cap(harness, KR_CAP_PERMISSION_MODE);
	const struct kr_yaml_node *node = kr_yaml_get(c->doc->root, "container_permission_mode");

	if (!harness->container_permission_mode ||
		(mode && takes_value(mode, harness->container_permission_mode)))
		return 0;
	if (!mode)
		return kr_config_fail(
			c, node->key, "'container_permission_mode' lacks the capability 'permission_mode'");
	return kr_config_fail(
		c, node, "'%s' is not among the values of 'permission_mode'", harness->container_permission_mode);
}

#define BEGIN "'id:', 'kind: cli', 'command:' and 'capabilities:'"

static int
read_harness(struct kr_config *c, const char *id, struct kr_harness *out)
{
	static const struct kr_yaml_node start = { .start = { .line = 1, .column = 1 } };
	const struct kr_yaml_node *root = c->doc->root, *own_id;

	if (!root) {
		kr_config_fail(c, &start, "the file is empty");
		return kr_hint(c->err, "begin it with " BEGIN);
	}
	if (kr_section_read(c, KR_IN_HARNESS, root, out) < 0)
		return -1;
	own_id = kr_yaml_get(root, "id");
	if (id && strcmp(id, own_id->text) != 0) {
		kr_config_fail(
			c, own_id, "the harness '%s' stands in the file of '%s'", own_id->text, kr_config_quote(c, id));
		return kr_hint(c->err, "its id is the file's name without .yaml");
	}
	if (check_vias(c, out) < 0 || check_hook(c, out) < 0 || check_asking(c, out) < 0)
		return -1;
	return check_container_mode(c, out);
}

int
kr_harness_parse(struct kr_arena *arena, const struct kr_places *places, const char *file, const char *id,
	const char *text, size_t len, struct kr_harness *out, struct kr_error *err)
{
	struct kr_harness harness = { .file = kr_arena_dup(arena, file),
		.text = kr_arena_dup_n(arena, text, len),
		.text_len = len,
		.proxy_aware = true,
		.enabled = true };
	struct kr_yaml doc = { 0 };
	struct kr_config c = {
		.arena = arena, .doc = &doc, .files = KR_IN_HARNESS_FILE, .places = places, .err = err
	};

	if (kr_config_parse(&c, harness.file, harness.text, len, &doc, BEGIN) < 0 ||
		read_harness(&c, id, &harness) < 0)
		return -1;
	harness.provider = harness.id;
	if (!harness.version.n)
		kr_strs_add(arena, &harness.version, "--version");
	*out = harness;
	return 0;
}

/* ---- harnesses.yaml ---- */

struct entry {
	struct kr_harness says; /* id, provider, enabled, command, model, effort, permission_mode */
	const struct kr_yaml_node *node;
};

struct entries {
	struct kr_yaml doc;
	struct entry *v;
	size_t n;
};

int
kr_harness_defaults_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	(void)key;
	return kr_section_read(c, KR_IN_HARNESS_DEFAULTS, node, target);
}

int
kr_harnesses_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct entries *entries = target;

	entries->v = kr_arena_alloc(c->arena, (node->count + 1) * sizeof(*entries->v));
	for (const struct kr_yaml_node *value = node->child; value; value = value->next) {
		const char *id = value->key->text, *fault = kr_fault_chain_id(id);
		struct entry *entry = &entries->v[entries->n++];

		if (fault) {
			kr_config_fail(c, value->key, "'%s' in '%s' %s", kr_config_quote(c, id), key->name, fault);
			return kr_hint(c->err, "write the id of a harness file, or another one and its 'provider'");
		}
		*entry = (struct entry){ .says = { .id = id, .provider = id, .enabled = true }, .node = value };
		c->entry = kr_arena_printf(c->arena, "'%s'", id);
		if (kr_config_want(c, value, id, KR_KEY_MAPPING) < 0 ||
			kr_section_read(c, KR_IN_HARNESS_ENTRY, value, &entry->says) < 0)
			return -1;
		c->entry = NULL;
	}
	return 0;
}

static int
parse_entries(struct kr_config *c, const char *file, const char *text, size_t len, struct entries *out)
{
	c->doc = &out->doc;
	c->files = KR_IN_HARNESSES_FILE;
	if (kr_config_parse(c, file, text, len, &out->doc, "'harnesses:', and the id of one below") < 0)
		return -1;
	return out->doc.root ? kr_section_read(c, KR_IN_HARNESSES, out->doc.root, out) : 0;
}

int
kr_harnesses_check(struct kr_arena *arena, const struct kr_places *places, const char *file, const char *text,
	size_t len, struct kr_error *err)
{
	struct entries entries = { 0 };
	struct kr_config c = { .arena = arena, .places = places, .err = err };

	return parse_entries(&c, kr_arena_dup(arena, file), kr_arena_dup_n(arena, text, len), len, &entries);
}

static int
load_entries(struct kr_config *c, struct entries *out)
{
	const char *file = kr_path_join(c->arena, c->places->config_dir, "harnesses.yaml"), *bytes;
	bool is_missing;
	size_t n;

	if (!file)
		return kr_fail(c->err, KR_E_LIMIT, "the path of '%s' is too long", c->places->config_dir);
	if (kr_config_load(
			c->arena, file, "no agent is started until it can be read", &bytes, &n, &is_missing, c->err) < 0)
		return -1;
	return parse_entries(c, file, bytes, n, out);
}

static const struct entry *
find_entry(const struct entries *entries, const char *id)
{
	for (size_t i = 0; i < entries->n; i++)
		if (strcmp(entries->v[i].says.id, id) == 0)
			return &entries->v[i];
	return NULL;
}

/* ---- one by its id ---- */

static void
apply(const struct kr_harness *says, struct kr_harness *harness)
{
	harness->id = says->id;
	harness->enabled = says->enabled;
	if (says->command)
		harness->command = says->command;
	harness->model = says->model;
	harness->effort = says->effort;
	harness->permission_mode = says->permission_mode;
}

static int
fail_unknown(struct kr_config *c, const struct entry *entry, const char *id)
{
	struct kr_strs ids = { 0 };

	if (entry && strcmp(entry->says.provider, id) != 0) {
		kr_config_fail(c, kr_yaml_get(entry->node, "provider"), "'%s' of 'provider' is no harness file",
			entry->says.provider);
		return kr_hint(c->err, "a provider is one of those that 'kraft admin harnesses' lists with a file");
	}
	(void)kr_harness_ids(c->arena, c->places, &ids, NULL); /* then without a hint */
	return kr_config_unknown("harness", id, &ids, c->err);
}

int
kr_harness_load(struct kr_arena *arena, const struct kr_places *places, const char *id,
	struct kr_harness *out, struct kr_error *err)
{
	struct entries entries = { 0 };
	struct kr_config c = { .arena = arena, .places = places, .err = err };
	const struct entry *entry;
	struct kr_harness harness;
	const char *provider, *file, *bytes;
	bool is_missing;
	size_t n;

	if (load_entries(&c, &entries) < 0)
		return -1;
	entry = find_entry(&entries, id);
	provider = entry ? entry->says.provider : id;
	if (kr_config_find(arena, places, KIND, provider, "this harness is not started until it can be read",
			&file, &bytes, &n, &is_missing, err) < 0)
		return -1;
	if (is_missing)
		return fail_unknown(&c, entry, id);
	if (kr_harness_parse(arena, places, file, provider, bytes, n, &harness, err) < 0)
		return -1;
	if (entry)
		apply(&entry->says, &harness);
	*out = harness;
	return 0;
}

int
kr_harness_ids(
	struct kr_arena *arena, const struct kr_places *places, struct kr_strs *out, struct kr_error *err)
{
	struct entries entries = { 0 };
	struct kr_config c = { .arena = arena, .places = places, .err = err };
	struct kr_strs ids = { 0 };

	if (load_entries(&c, &entries) < 0)
		return -1;
	for (size_t i = 0; i < entries.n; i++)
		kr_strs_add(arena, &ids, entries.v[i].says.id);
	if (kr_config_ids(arena, places, KIND, &ids, err) < 0)
		return -1;
	*out = ids;
	return 0;
}
