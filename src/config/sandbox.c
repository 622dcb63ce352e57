/*
 * The value of `sandbox`: its kinds, network lists, exposed paths, limits and credentials.
 *
 * Everything here is checked without touching the host. A protected path is looked for in the path as written
 * (links are resolved, and the rule applied again, when a session is launched). The rule of the whole: a key
 * that a kind does not take stops the file from loading, so that nobody believes in a wall that is not there.
 */
#include "config/schema.h"

#include "base/path.h"
#include "base/text.h"
#include "policy/policy.h"

static const char *const kind_names[] = { [KR_SANDBOX_NONE] = "none",
#define X(kind, name) [KR_SANDBOX_##kind] = name,
	KR_SANDBOX_KINDS(X)
#undef X
};

static const char *const phase_names[] = { [KR_PHASE_INSTALL] = "install", [KR_PHASE_RUNTIME] = "runtime" };
_Static_assert(KR_COUNT(phase_names) == KR_PHASE_COUNT, "one name per phase");

const char *
kr_sandbox_kind_name(enum kr_sandbox_kind kind)
{
	return (unsigned)kind < KR_COUNT(kind_names) ? kind_names[kind] : "unknown";
}

const char *
kr_phase_name(enum kr_phase phase)
{
	return (unsigned)phase < KR_PHASE_COUNT ? phase_names[phase] : "unknown";
}

static int
find_phase(const char *name)
{
	for (int i = 0; i < KR_PHASE_COUNT; i++)
		if (strcmp(phase_names[i], name) == 0)
			return i;
	return -1;
}

/* ---- network ---- */

int
kr_network_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_network *network = target;

	(void)key;
	network->is_set = node->count > 0; /* a bare {} is the same as no network at all */
	return kr_section_read(c, KR_IN_NETWORK, node, network);
}

int
kr_phase_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_network *network = target;
	int phase = find_phase(key->name);

	KR_BUG_IF(phase < 0);
	network->phase_is_set[phase] = true;
	return kr_section_read(c, KR_IN_PHASE, node, &network->phase[phase]);
}

static const char *
trimmed(struct kr_arena *arena, const char *text)
{
	size_t n;

	text += strspn(text, " \t\r\n");
	for (n = strlen(text); n && strchr(" \t\r\n", text[n - 1]); n--)
		;
	return kr_arena_dup_n(arena, text, n);
}

static int
hint_host(struct kr_config *c, const char *text)
{
	const char *after = strstr(text, "://");
	size_t n = after ? strcspn(after + 3, "/?#") : 0;
	struct kr_host_pattern pattern;
	char host[KR_HOST_MAX + 1];

	if (n && n < sizeof(host)) {
		memcpy(host, after + 3, n);
		host[n] = '\0';
		if (kr_host_pattern_parse(host, &pattern, NULL))
			return kr_hint(c->err, "write '%s'", host);
	}
	return kr_hint(c->err, "write a host (example.com), a host with a port (example.com:443), one label open "
						   "(\"*.example.com\"), or \"*\" or \"**\" for every host");
}

int
kr_hosts_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_host_list *list = (struct kr_host_list *)((char *)target - key->field);
	struct kr_mark *marks = kr_arena_alloc(c->arena, (node->count + 1) * sizeof(*marks));
	struct kr_host_pattern pattern;
	size_t n = 0;
	const char *why;

	for (const struct kr_yaml_node *item = node->child; item; item = item->next) {
		if (!kr_host_pattern_parse(item->text, &pattern, &why)) {
			kr_config_fail(c, item, "'%s' in '%s' is no host of a network list: %s",
				kr_config_quote(c, item->text), key->name, why);
			return hint_host(c, item->text);
		}
		kr_strs_add(c->arena, target, trimmed(c->arena, item->text));
		marks[n++] = kr_config_mark(item);
	}
	if (key->field == offsetof(struct kr_host_list, allow)) {
		list->allow_marks = marks;
		list->allow_marked = n;
	} else {
		list->deny_marks = marks;
		list->deny_marked = n;
	}
	return 0;
}

/* ---- expose ---- */

static int
read_exposed(struct kr_config *c, const struct kr_yaml_node *item, struct kr_expose *out)
{
	const char *text = item->text, *shown = kr_config_quote(c, text), *path, *why;

	if (text[0] != '/' && !kr_text_has_prefix(text, "~/")) {
		kr_config_fail(c, item, "'%s' in 'expose' is not an absolute path", shown);
		return kr_hint(c->err, "write a path that begins with '/' or '~/'");
	}
	path = text[0] == '/' ? text : kr_arena_printf(c->arena, "%s/%s", c->places->home, text + 2);
	path = kr_path_clean(c->arena, path);
	if (!path)
		return kr_config_fail(c, item, "'%s' in 'expose' is too long for a path", shown);
	why = kr_protect_why(c->arena, c->places, path);
	if (!why)
		why = kr_place_why(c->arena, c->places, path);
	if (why) {
		kr_config_fail(c, item, "'%s' in 'expose' cannot be shown to a worker: it %s", shown, why);
		return kr_hint(
			c->err, "expose the narrowest directory that the toolchain needs, or take the path away");
	}
	*out = (struct kr_expose){ .text = text, .path = path, .mark = kr_config_mark(item) };
	return 0;
}

int
kr_expose_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_sandbox *sandbox = target;
	struct kr_expose *list = kr_arena_alloc(c->arena, node->count * sizeof(*list));
	size_t n = 0;

	(void)key;
	for (const struct kr_yaml_node *item = node->child; item; item = item->next)
		if (read_exposed(c, item, &list[n++]) < 0)
			return -1;
	sandbox->expose = n ? list : NULL;
	sandbox->expose_count = n;
	return 0;
}

/* ---- resources ---- */

int
kr_resources_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	(void)key;
	return kr_section_read(c, KR_IN_RESOURCES, node, target);
}

int
kr_cpu_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_resources *resources = target;
	char *end;
	double cpu = strtod(node->text, &end); /* the locale is C: kraft never sets another */

	(void)key;
	if (*end || !(cpu >= 0.01) || cpu > 1e6) {
		kr_config_fail(c, node, "'%s' processors are no limit", kr_config_quote(c, node->text));
		return kr_hint(c->err, "write a number of at least 0.01, such as 1.5");
	}
	resources->cpu = cpu;
	return 0;
}

int
kr_memory_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	static const char units[] = "bkmg";
	enum { LEAST_MIB = 6 };
	struct kr_resources *resources = target;
	char digits[32];
	size_t n = strspn(node->text, "0123456789");
	const char *suffix = node->text + n;
	const char *unit = *suffix ? strchr(units, *suffix | 0x20) : units;
	unsigned shift = unit ? (unsigned)(unit - units) * 10 : 0;
	uint64_t value = 0;

	(void)key;
	snprintf(digits, sizeof(digits), "%.*s", n < sizeof(digits) ? (int)n : 0, node->text);
	if (!unit || (*suffix && suffix[1]) || !kr_text_to_u64(digits, (uint64_t)INT64_MAX >> shift, &value)) {
		kr_config_fail(c, node, "'%s' of 'memory' is not a size", kr_config_quote(c, node->text));
		return kr_hint(c->err, "write a whole number with b, k, m or g behind it, such as 4g");
	}
	resources->memory_bytes = value << shift;
	if (resources->memory_bytes < (uint64_t)LEAST_MIB << 20) {
		kr_config_fail(
			c, node, "'%s' of 'memory' is below the smallest limit", kr_config_quote(c, node->text));
		return kr_hint(c->err, "the smallest is 6m");
	}
	return 0;
}

int
kr_pids_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_resources *resources = target;

	(void)key;
	if (!kr_text_to_u64(node->text, INT32_MAX, &resources->pids) || !resources->pids) {
		kr_config_fail(c, node, "'%s' of 'pids' is no limit of processes", kr_config_quote(c, node->text));
		return kr_hint(c->err, "write a whole number of at least 1");
	}
	return 0;
}

/* ---- credentials ---- */

const char *
kr_fault_domain(const char *text)
{
	struct kr_host_pattern pattern;

	if (!kr_host_pattern_parse(text, &pattern, NULL))
		return "is not a host";
	if (pattern.any || pattern.star)
		return "holds a star, but one exact host is needed";
	return pattern.port ? "holds a port, but only the host is needed" : NULL;
}

const char *
kr_fault_header(const char *text)
{
	static const char token[] = "!#$%&'*+-.^_`|~0123456789"
								"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

	return *text && !text[strspn(text, token)] ? NULL : "is not the name of a header";
}

const char *
kr_fault_format(const char *text)
{
	const char *percent = strchr(text, '%');

	if (!percent || percent[1] != 's' || strchr(percent + 1, '%'))
		return "does not hold '%s' exactly once";
	for (const char *p = text; *p; p++)
		if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
			return "holds a control character, or one that is not ASCII";
	return NULL;
}

const char *
kr_fault_sentinel(const char *text)
{
	enum { MOST = 256 };

	if (!*text)
		return "is empty";
	for (const char *p = text; *p; p++)
		if ((unsigned char)*p <= 0x20 || (unsigned char)*p >= 0x7f)
			return "holds a blank, a control character, or one that is not ASCII";
	return strlen(text) <= MOST ? NULL : "is longer than 256 bytes";
}

int
kr_inject_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_credential *credential = target;

	credential->inject = kr_arena_alloc(c->arena, node->count * sizeof(*credential->inject));
	for (const struct kr_yaml_node *item = node->child; item; item = item->next) {
		if (kr_config_want(c, item, key->name, KR_KEY_MAPPING) < 0 ||
			kr_section_read(c, KR_IN_INJECT, item, &credential->inject[credential->inject_count++]) < 0)
			return -1;
	}
	return 0;
}

int
kr_phases_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_credential *credential = target;

	if (!node->count) {
		kr_config_fail(c, node, "'%s' lists no phase", key->name);
		return kr_hint(c->err, "write [install], [runtime], or take the key away for both");
	}
	for (const struct kr_yaml_node *item = node->child; item; item = item->next) {
		int phase = find_phase(item->text);

		if (phase < 0) {
			kr_config_fail(c, item, "'%s' is not a phase", kr_config_quote(c, item->text));
			return kr_hint(c->err, "the phases are install and runtime");
		}
		credential->phase[phase] = true;
	}
	return 0;
}

bool
kr_hosts_name(const struct kr_strs *list, const char *host)
{
	struct kr_host_pattern entry, wanted;

	if (!kr_host_pattern_parse(host, &wanted, NULL))
		return false;
	for (size_t i = 0; i < list->n; i++)
		if (kr_host_pattern_parse(list->v[i], &entry, NULL) && !entry.any && !entry.star &&
			strcmp(entry.host, wanted.host) == 0)
			return true;
	return false;
}

/* A secret goes only to hosts that the lists name outright: a star would send it to hosts that nobody had in
 * mind. */
static int
check_domain(struct kr_config *c, const struct kr_sandbox *sandbox, const struct kr_credential *credential,
	bool phase_is_written, const struct kr_yaml_node *at, const char *domain)
{
	bool anywhere = false;

	for (int p = 0; p < KR_PHASE_COUNT; p++) {
		const struct kr_host_list *lists = &sandbox->network.phase[p];
		bool allowed = kr_hosts_name(&lists->allow, domain) && !kr_hosts_name(&lists->deny, domain);

		anywhere |= allowed;
		if (!phase_is_written || !credential->phase[p] || allowed)
			continue;
		kr_config_fail(c, at, "'%s' gets a secret, but the network's %s list does not allow it by name",
			domain, phase_names[p]);
		return kr_hint(c->err, "add '%s' to network.%s.allow", domain, phase_names[p]);
	}
	if (anywhere || phase_is_written)
		return 0;
	kr_config_fail(c, at, "'%s' gets a secret, but no list of the network allows it by name", domain);
	return kr_hint(c->err, "add '%s' to network.runtime.allow", domain);
}

static bool
share_phase(const struct kr_credential *a, const struct kr_credential *b)
{
	return (a->phase[0] && b->phase[0]) || (a->phase[1] && b->phase[1]);
}

static bool
same_header(const struct kr_inject *a, const struct kr_inject *b)
{
	return strcasecmp(a->domain, b->domain) == 0 && strcasecmp(a->header, b->header) == 0;
}

/* Each header on a host is written by one credential of a phase; `count` rules of `one` come before. */
static bool
header_is_taken(const struct kr_credential *one, size_t count, const struct kr_inject *rule)
{
	for (size_t i = 0; i < count; i++)
		if (same_header(&one->inject[i], rule))
			return true;
	return false;
}

static int
check_against_earlier(struct kr_config *c, const struct kr_sandbox *sandbox,
	const struct kr_credential *credential, const struct kr_yaml_node *node)
{
	for (size_t i = 0; i < sandbox->credential_count; i++) {
		const struct kr_credential *other = &sandbox->credentials[i];

		if (!share_phase(other, credential))
			continue;
		if (strcmp(other->env, credential->env) == 0)
			return kr_config_fail(c, node,
				"the credential '%s' stands twice for one phase, on lines %u and %u",
				kr_config_quote(c, credential->env), other->mark.line, node->start.line);
		for (size_t k = 0; k < credential->inject_count; k++)
			if (header_is_taken(other, other->inject_count, &credential->inject[k]))
				return kr_config_fail(c, node, "the header '%s' of '%s' is written by two credentials",
					credential->inject[k].header, credential->inject[k].domain);
	}
	return 0;
}

static int
check_credential(struct kr_config *c, const struct kr_sandbox *sandbox,
	const struct kr_credential *credential, const struct kr_yaml_node *node, bool phase_is_written)
{
	const struct kr_yaml_node *rules = kr_yaml_get(node, "inject");
	const struct kr_yaml_node *rule = rules ? rules->child : NULL;

	for (size_t k = 0; rule && k < credential->inject_count; k++, rule = rule->next) {
		if (check_domain(c, sandbox, credential, phase_is_written, rule, credential->inject[k].domain) < 0)
			return -1;
		if (header_is_taken(credential, k, &credential->inject[k]))
			return kr_config_fail(c, rule, "the header '%s' of '%s' is written twice",
				credential->inject[k].header, credential->inject[k].domain);
	}
	return check_against_earlier(c, sandbox, credential, node);
}

static int
read_credential(struct kr_config *c, const struct kr_yaml_node *item, struct kr_sandbox *sandbox)
{
	struct kr_credential *out = &sandbox->credentials[sandbox->credential_count];
	bool phase_is_written = kr_yaml_get(item, "phase") != NULL;

	out->mark = kr_config_mark(item);
	if (kr_section_read(c, KR_IN_CREDENTIAL, item, out) < 0)
		return -1;
	if (!phase_is_written)
		out->phase[KR_PHASE_INSTALL] = out->phase[KR_PHASE_RUNTIME] = true;
	if (!out->source)
		out->source = out->env;
	if (check_credential(c, sandbox, out, item, phase_is_written) < 0)
		return -1;
	sandbox->credential_count++;
	return 0;
}

/* Only shapes; the entries are read when the network is known (see read_credentials). */
int
kr_credentials_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	(void)target;
	for (const struct kr_yaml_node *item = node->child; item; item = item->next) {
		if (kr_yaml_value(item) == KR_VALUE_MAPPING)
			continue;
		kr_config_fail(c, item, "an item of '%s' must be a mapping, not %s", key->name,
			kr_yaml_value_words(kr_yaml_value(item)));
		return kr_hint(c->err, "write '- env: NAME'");
	}
	return 0;
}

static int
read_credentials(struct kr_config *c, const struct kr_yaml_node *node, struct kr_sandbox *sandbox)
{
	if (!node || !node->count)
		return 0;
	if (!sandbox->network.is_set) {
		kr_config_fail(c, node, "'credentials' needs a 'network'");
		return kr_hint(c->err, "list the hosts that get the secrets in network.runtime.allow");
	}
	sandbox->credentials = kr_arena_alloc(c->arena, node->count * sizeof(*sandbox->credentials));
	for (const struct kr_yaml_node *item = node->child; item; item = item->next)
		if (read_credential(c, item, sandbox) < 0)
			return -1;
	return 0;
}

/* ---- kit ---- */

const char *
kr_fault_kit_runtime(const char *text)
{
	return strcmp(text, "docker") == 0 ? NULL : "is not a runtime of kits, which is docker";
}

const char *
kr_fault_kit(const char *text)
{
	enum { DIGEST = 64 };
	static const char digest[] = "@sha256:";
	const char *at = strstr(text, digest), *hex = at ? at + strlen(digest) : NULL;

	if (!at || at == text)
		return "is not of the form NAME@sha256:DIGEST";
	for (const char *p = text; p < at; p++)
		if ((unsigned char)*p <= 0x20 || *p == 0x7f || *p == '@')
			return "is not of the form NAME@sha256:DIGEST";
	if (strspn(hex, "0123456789abcdef") != DIGEST || hex[DIGEST])
		return "does not end in a digest of 64 hexadecimal digits";
	return NULL;
}

void
kr_memory_words(uint64_t bytes, char out[KR_MEMORY_WORDS])
{
	static const char units[] = "bkmg";
	size_t unit = 0;

	while (unit < 3 && bytes && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	snprintf(out, KR_MEMORY_WORDS, "%llu%c", (unsigned long long)bytes, units[unit]);
}

/* ---- the sandbox ---- */

static int
read_kind(struct kr_config *c, const struct kr_yaml_node *node)
{
	const struct kr_yaml_node *kind = kr_yaml_get(node, "kind");

	if (!kind) {
		kr_config_fail(c, node, "'kind' is missing in 'sandbox'");
		return kr_hint(c->err, "write kind: os, kind: docker or kind: kit");
	}
	if (kr_config_want(c, kind, "kind", KR_KEY_STRING) < 0)
		return kr_hint(c->err, "the kinds are os, docker and kit");
	for (size_t i = KR_SANDBOX_NONE + 1; i < KR_COUNT(kind_names); i++)
		if (strcmp(kind_names[i], kind->text) == 0) {
			c->kind = (enum kr_sandbox_kind)i;
			return 0;
		}
	kr_config_fail(c, kind, "unknown kind '%s' of sandbox", kr_config_quote(c, kind->text));
	return kr_hint(c->err, "the kinds are os, docker and kit");
}

static int
check_network(struct kr_config *c, const struct kr_yaml_node *node, const struct kr_sandbox *sandbox)
{
	const struct kr_yaml_node *network = kr_yaml_get(node, "network");

	if (sandbox->kind == KR_SANDBOX_OS && !sandbox->network.is_set) {
		kr_config_fail(c, network ? network : node,
			network ? "kind: os needs a network, and {} counts as none" : "kind: os needs a network");
		return kr_hint(c->err,
			"write network: {runtime: {allow: []}} to allow no host; without it nothing would keep a "
			"worker from kraft's own API");
	}
	if (sandbox->unrestricted_network && sandbox->network.is_set) {
		kr_config_fail(c, kr_yaml_get(node, "unrestricted_network"),
			"'unrestricted_network' and 'network' exclude each other");
		return kr_hint(c->err, "keep one of them");
	}
	return 0;
}

int
kr_sandbox_read(struct kr_config *c, const struct kr_yaml_node *node, struct kr_sandbox *out)
{
	if (read_kind(c, node) < 0)
		return -1;
	out->kind = c->kind;
	out->mark = kr_config_mark(node);
	out->has_resources = kr_yaml_get(node, "resources") != NULL;
	if (kr_section_read(c, KR_IN_SANDBOX, node, out) < 0)
		return -1;
	if (check_network(c, node, out) < 0)
		return -1;
	return read_credentials(c, kr_yaml_get(node, "credentials"), out);
}
