/*
 * policy.yaml, and one layer of the policy wherever it stands: `defaults` here, `policy` in a repository's
 * entry, a chain, a node, a step, a task.
 *
 * Types and ranges are checked where they are written; whether a layer may say it beside the others is for
 * policy/layers.h. Some keys of policy.yaml belong to parts that are not built yet: they are checked all the
 * same, so that a mistake is not found years later. As in repos.yaml one error stops the whole file, because
 * half of a policy is another policy.
 */
#include "config/policy_file.h"

#include "base/path.h"
#include "config/schema.h"

static const char *const grant_names[] = {
#define X(grant, name) [KR_GRANT_INDEX_##grant] = name,
	KR_GRANTS(X)
#undef X
};

static const char *const bound_names[] = {
#define X(bound, name, unit) [KR_BOUND_##bound] = name,
	KR_BOUNDS(X)
#undef X
};

static const char *const severity_names[] = {
#define X(severity, name) [KR_SEVERITY_##severity] = name,
	KR_SEVERITIES(X)
#undef X
};

enum { GRANTS_ALL = (1u << KR_GRANT_COUNT) - 1 };

const char *
kr_grant_name(enum kr_grant grant)
{
	return (unsigned)grant < KR_GRANT_COUNT ? grant_names[grant] : "unknown";
}

const char *
kr_bound_name(enum kr_bound bound)
{
	return (unsigned)bound < KR_BOUND_COUNT ? bound_names[bound] : "unknown";
}

static int
find_name(const char *const names[], size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return (int)i;
	return -1;
}

/* The bits of a list of names that were checked. */
static unsigned
bits_of(const char *const names[], size_t count, const struct kr_yaml_node *list)
{
	unsigned bits = 0;

	for (const struct kr_yaml_node *item = list->child; item; item = item->next) {
		int bit = find_name(names, count, item->text);

		KR_BUG_IF(bit < 0);
		bits |= 1u << bit;
	}
	return bits;
}

/* ---- what is wrong with a text ---- */

const char *
kr_fault_tool(const char *text)
{
	static const char name[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

	return *text && !text[strspn(text, name)] ? NULL
											  : "is not a bare tool name, such as Bash or mcp__server__tool";
}

const char *
kr_fault_grant(const char *text)
{
	return find_name(grant_names, KR_GRANT_COUNT, text) >= 0
			   ? NULL
			   : "is not a grant: git-commit, git-rebase or git-push";
}

const char *
kr_fault_severity(const char *text)
{
	return find_name(severity_names, KR_SEVERITY_COUNT, text) >= 0
			   ? NULL
			   : "is not a severity: critical, important or minor";
}

const char *
kr_fault_escalation(const char *text)
{
	return strcmp(text, "claude") == 0 || strcmp(text, "item") == 0 ? NULL : "is neither claude nor item";
}

/* ---- numbers ---- */

static int
fail_number(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node)
{
	if (node->text[0] != '-' && strspn(node->text, "0.") != strlen(node->text))
		return kr_config_fail(
			c, node, "'%s' must be written in digits, not '%s'", key->name, kr_config_quote(c, node->text));
	return kr_config_fail(c, node, "'%s' must be larger than 0", key->name);
}

int
kr_bound_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	static const double most = 1e12; /* counted exactly by a double */
	bool is_attempts = strcmp(key->name, kr_bound_name(KR_BOUND_ATTEMPTS)) == 0;
	double value;

	if (strspn(node->text, "0123456789.") != strlen(node->text))
		return fail_number(c, key, node);
	value = strtod(node->text, NULL); /* the locale is C: kraft never sets another */
	if (!(value > 0))
		return fail_number(c, key, node);
	if (is_attempts && value > (double)KR_ATTEMPTS_MAX)
		return kr_config_fail(c, node, "'%s' must be at most %d", key->name, KR_ATTEMPTS_MAX);
	if (value > most)
		return kr_config_fail(c, node, "'%s' must be at most %.0f", key->name, most);
	if (key->field != KR_NO_FIELD)
		*(double *)target = value;
	return 0;
}

static int
read_count(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, unsigned least,
	unsigned most, void *target)
{
	size_t n = strspn(node->text, "0123456789");
	unsigned long value = strtoul(node->text, NULL, 10); /* ULONG_MAX when it is too large */

	if (node->text[n] || !n || value < least || value > most) {
		kr_config_fail(c, node, "'%s' must be a whole number from %u to %u", key->name, least, most);
		return kr_hint(c->err, "%s: %s", key->name, key->help);
	}
	if (key->field != KR_NO_FIELD)
		*(unsigned *)target = (unsigned)value;
	return 0;
}

enum { COUNT_MAX = 100000000, POLL_LEAST_S = 30 };

int
kr_count_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	return read_count(c, key, node, 1, COUNT_MAX, target);
}

int
kr_count_or_none_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	return read_count(c, key, node, 0, COUNT_MAX, target);
}

int
kr_attempts_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	return read_count(c, key, node, 1, KR_ATTEMPTS_MAX, target);
}

int
kr_poll_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	return read_count(c, key, node, POLL_LEAST_S, COUNT_MAX, target);
}

/* ---- a layer ---- */

int
kr_policy_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_policy_layer *layer = target;

	(void)key;
	layer->mark = kr_config_mark(node);
	return kr_section_read(c, KR_IN_POLICY, node, layer);
}

/* allowed_tools and allowed_harnesses: an empty list is not the same as none. */
int
kr_allowed_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_policy_layer *layer = target;
	bool is_tools = strcmp(key->name, "allowed_tools") == 0;
	struct kr_strs *list = is_tools ? &layer->allowed_tools : &layer->allowed_harnesses;

	*(is_tools ? &layer->has_allowed_tools : &layer->has_allowed_harnesses) = true;
	for (const struct kr_yaml_node *item = node->child; item; item = item->next)
		kr_strs_add(c->arena, list, item->text);
	return 0;
}

int
kr_grant_bits_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	(void)c;
	(void)key;
	*(unsigned *)target = bits_of(grant_names, KR_GRANT_COUNT, node);
	return 0;
}

int
kr_grants_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_policy_layer *layer = target;

	layer->has_grants = true;
	return kr_grant_bits_read(c, key, node, &layer->grants);
}

/* In a repository's entry `sandbox` and `policy.sandbox` both come here (CFG-07). */
int
kr_layer_sandbox_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_policy_layer *layer = target;

	(void)key;
	if (layer->has_sandbox) {
		kr_config_fail(c, node, "the sandbox is set in 'sandbox' and in 'policy.sandbox', on lines %u and %u",
			layer->sandbox.mark.line, node->start.line);
		return kr_hint(c->err, "keep one of them");
	}
	layer->has_sandbox = true;
	if (kr_yaml_value(node) == KR_VALUE_MAPPING)
		return kr_sandbox_read(c, node, &layer->sandbox);
	if (node->text[0] != 'f' && node->text[0] != 'F') {
		kr_config_fail(c, node, "'sandbox' must be a mapping, or false, not true");
		return kr_hint(c->err, "write sandbox: {kind: os, network: {runtime: {allow: []}}}");
	}
	layer->sandbox_is_false = true;
	layer->sandbox.mark = kr_config_mark(node);
	return 0;
}

/* ---- policy.yaml ---- */

int
kr_default_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	(void)key;
	return kr_section_read(c, KR_IN_DEFAULT, node, target);
}

int
kr_defaults_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_policy_file *file = target;

	(void)key;
	file->layer.mark = kr_config_mark(node);
	return kr_section_read(c, KR_IN_DEFAULTS, node, file);
}

int
kr_findings_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	(void)key;
	return kr_section_read(c, KR_IN_FINDINGS, node, target);
}

int
kr_severities_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	(void)c;
	(void)key;
	*(unsigned *)target = bits_of(severity_names, KR_SEVERITY_COUNT, node);
	return 0;
}

int
kr_budget_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	(void)key;
	(void)target;
	return kr_section_read(c, KR_IN_BUDGET, node, NULL);
}

int
kr_archive_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	(void)key;
	return kr_section_read(c, KR_IN_ARCHIVE, node, target);
}

int
kr_maxima_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	(void)key;
	return kr_section_read(c, KR_IN_MAXIMA, node, target);
}

int
kr_maximum_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	(void)key;
	return kr_section_read(c, KR_IN_MAXIMUM, node, target);
}

int
kr_policy_file_parse(struct kr_arena *arena, const struct kr_places *places, const char *file,
	const char *bytes, size_t n, struct kr_policy_file *out, struct kr_error *err)
{
	struct kr_policy_file policy = {
		.attempts = 3,
		.wall_clock_s = 3600,
		.max_concurrent = 3,
		.auto_escalate_stuck = true,
		.auto_escalate_stuck_cap = 3,
		.auto_review_attempts = 1,
		.rate_limit_retries = 5,
		.escalation_grants = GRANTS_ALL,
		.loop_severities = 1u << KR_SEVERITY_CRITICAL | 1u << KR_SEVERITY_IMPORTANT,
	};
	struct kr_yaml doc = { 0 };
	struct kr_config c = {
		.arena = arena, .doc = &doc, .files = KR_IN_POLICY_FILE, .places = places, .err = err
	};

	if (kr_config_parse(&c, kr_arena_dup(arena, file), bytes, n, &doc,
			"'default: {attempts: 3, wall_clock_s: 3600}'") < 0 ||
		(doc.root && kr_section_read(&c, KR_IN_HOST, doc.root, &policy) < 0))
		return -1;
	*out = policy;
	return 0;
}

int
kr_policy_layer_parse(struct kr_arena *arena, const struct kr_places *places, const char *file,
	const char *bytes, size_t n, struct kr_policy_layer *out, struct kr_error *err)
{
	struct kr_policy_layer layer = { 0 };
	struct kr_yaml doc = { 0 };
	struct kr_config c = { .arena = arena, .doc = &doc, .files = KR_IN_CHAINS, .places = places, .err = err };

	if (kr_config_parse(&c, kr_arena_dup(arena, file), bytes, n, &doc, "'timeout_minutes: 30'") < 0 ||
		(doc.root && kr_policy_read(&c, NULL, doc.root, &layer) < 0))
		return -1;
	*out = layer;
	return 0;
}

int
kr_policy_file_load(
	struct kr_arena *arena, const struct kr_places *places, struct kr_policy_file *out, struct kr_error *err)
{
	const char *file = kr_path_join(arena, places->config_dir, "policy.yaml"), *bytes;
	bool is_missing;
	size_t n;

	if (!file)
		return kr_fail(err, KR_E_LIMIT, "the path of '%s' is too long", places->config_dir);
	if (kr_config_load(arena, file, "no work is taken in until the policy can be read", &bytes, &n,
			&is_missing, err) < 0)
		return -1;
	return kr_policy_file_parse(arena, places, file, bytes, n, out, err);
}
