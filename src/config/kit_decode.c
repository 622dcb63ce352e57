/*
 * A descriptor to records: all of it runs in a process without power (kr_kit_parse), and trusts nothing but its size.
 * Shapes first, then each capability by its type; the first thing that cannot be taken is the sentence that refuses the
 * kit.
 */
#include <jansson.h>
#include <stdarg.h>

#include "base/text.h"
#include "config/kit_records.h"
#include "config/schema.h"
#include "policy/policy.h"

static void
free_json_p(json_t **json)
{
	json_decref(*json);
}
#define auto_json KR_CLEANUP(free_json_p)

/* ---- refusing and recording, in the process without power ---- */

struct decoder {
	struct kr_kit_answer *out;
	struct kr_strs seen; /* types that may stand once, and services with their phase */
	struct kr_arena arena;
};

/* The first one stays. False. */
KR_PRINTF(3, 4)
static bool
refuse(struct decoder *d, const char *hint, const char *fmt, ...)
{
	va_list ap;

	if (d->out->fault[0])
		return false;
	va_start(ap, fmt);
	vsnprintf(d->out->fault, sizeof(d->out->fault), fmt, ap);
	va_end(ap);
	snprintf(d->out->hint, sizeof(d->out->hint), "%s", hint);
	return false;
}

static bool
record(struct decoder *d, char letter, const char *before, const char *text)
{
	struct kr_kit_answer *out = d->out;
	const size_t left = sizeof(out->records) - out->len;
	const int n = snprintf(out->records + out->len, left, "%c%s%s", letter, before, text);

	if (n < 0 || (size_t)n >= left)
		return refuse(d, KR_KIT_NO_WAY, "says more than can be kept of it");
	out->len += (size_t)n + 1;
	return true;
}

/* The same type, or the same service in the same phase, a second time: nobody could say which is meant. */
static bool
is_first(struct decoder *d, const char *what)
{
	if (kr_strs_has(&d->seen, what))
		return refuse(d, KR_KIT_NO_WAY, "names '%.200s' twice", what);
	kr_strs_add(&d->arena, &d->seen, kr_arena_dup(&d->arena, what));
	return true;
}

/* ---- shapes ---- */

static bool
has_only(struct decoder *d, json_t *object, const char *where, const char *const *keys)
{
	const char *key;
	json_t *value;

	if (!json_is_object(object))
		return refuse(d, KR_KIT_NO_WAY, "has no mapping in '%s'", where);
	json_object_foreach(object, key, value) {
		const char *const *known = keys;

		while (*known && strcmp(*known, key) != 0)
			known++;
		if (!*known)
			return refuse(d, KR_KIT_NO_WAY, "has the unknown key '%.100s' in '%s'", key, where);
	}
	return true;
}

/* NULL with the refusal when it is something else; `fallback` when it is not there. */
static const char *
text_of(struct decoder *d, const json_t *object, const char *key, const char *where, const char *fallback)
{
	const json_t *value = json_object_get(object, key);

	if (!value && fallback)
		return fallback;
	if (json_is_string(value))
		return json_string_value(value);
	refuse(d, KR_KIT_NO_WAY, value ? "has a '%s' in '%s' that is no text" : "has no '%s' in '%s'", key, where);
	return NULL;
}

static bool
flag_of(struct decoder *d, const json_t *object, const char *key, const char *where, bool *out)
{
	const json_t *value = json_object_get(object, key);

	*out = json_is_true(value);
	if (value && !json_is_boolean(value))
		return refuse(d, KR_KIT_NO_WAY, "has a '%s' in '%s' that is neither true nor false", key, where);
	return true;
}

/* Not there: no items. */
static bool
is_list(struct decoder *d, const json_t *list, const char *where)
{
	if (!list || json_is_array(list))
		return true;
	return refuse(d, KR_KIT_NO_WAY, "has no list in '%s'", where);
}

static bool
are_texts(struct decoder *d, json_t *object, const char *const *keys, const char *where)
{
	for (const char *const *key = keys; *key; key++)
		if (json_object_get(object, *key) && !text_of(d, object, *key, where, NULL))
			return false;
	return true;
}

/* "${{ kit.args.x }}" and its like, in any key or text: filled in by whoever composes kits, which kraft does not. */
static bool
has_no_placeholder(struct decoder *d, json_t *value)
{
	const char *key;
	json_t *item;
	size_t i;

	if (json_is_string(value) && strstr(json_string_value(value), "${{"))
		return refuse(d, KR_KIT_NO_WAY, "holds a reference like '%.60s', which kraft does not fill in",
			strstr(json_string_value(value), "${{"));
	json_array_foreach(value, i, item)
		if (!has_no_placeholder(d, item))
			return false;
	json_object_foreach(value, key, item) {
		if (strstr(key, "${{"))
			return refuse(d, KR_KIT_NO_WAY, "holds a reference like '%.60s', which kraft does not fill in", strstr(key, "${{"));
		if (!has_no_placeholder(d, item))
			return false;
	}
	return true;
}

/* ---- network-policy@1 ---- */

static bool
decode_hosts(struct decoder *d, const json_t *list, char letter, int phase, const char *where)
{
	const char number[] = { (char)('0' + phase), '\0' };
	struct kr_host_pattern pattern;
	const json_t *item;
	const char *why;
	size_t i;

	if (!is_list(d, list, where))
		return false;
	json_array_foreach(list, i, item) {
		if (!json_is_string(item))
			return refuse(d, KR_KIT_NO_WAY, "has an item in '%s' that is no text", where);
		if (!kr_host_pattern_parse(json_string_value(item), &pattern, &why))
			return refuse(d, KR_KIT_NO_WAY, "names '%.100s' in '%s', which is no host of a network list: %.100s",
				json_string_value(item), where, why);
		if (!record(d, letter, number, json_string_value(item)))
			return false;
	}
	return true;
}

static bool
decode_network(struct decoder *d, json_t *config)
{
	static const char *const phases[] = { "install", "runtime", NULL }, *const lists[] = { "allow", "deny", NULL };
	static const char *const where[KR_PHASE_COUNT] = { "network-policy@1.install", "network-policy@1.runtime" };

	if (!has_only(d, config, "network-policy@1", phases))
		return false;
	for (int p = 0; p < KR_PHASE_COUNT; p++) {
		json_t *rules = json_object_get(config, phases[p]);

		if (rules && (!has_only(d, rules, where[p], lists) ||
						 !decode_hosts(d, json_object_get(rules, "allow"), KR_REC_ALLOW, p, where[p]) ||
						 !decode_hosts(d, json_object_get(rules, "deny"), KR_REC_DENY, p, where[p])))
			return false;
	}
	return true;
}

/* ---- resources@1 ---- */

/* "2gib", "512m", "1024": a whole number and a unit, in powers of 1024. */
static bool
read_memory(const char *text, uint64_t *out)
{
	static const char units[] = "kmgt";
	const size_t n = strspn(text, "0123456789");
	const char *unit = text + n, *found = *unit ? strchr(units, *unit | 0x20) : NULL;
	const unsigned shift = found ? (unsigned)(found - units + 1) * 10 : 0;
	char digits[24];

	if (!n || n >= sizeof(digits))
		return false;
	memcpy(digits, text, n);
	digits[n] = '\0';
	if (found)
		unit++;
	if (strcasecmp(unit, "") != 0 && strcasecmp(unit, "b") != 0 && (!found || strcasecmp(unit, "ib") != 0))
		return false;
	if (!kr_text_to_u64(digits, (uint64_t)INT64_MAX >> shift, out))
		return false;
	*out <<= shift;
	return true;
}

static bool
decode_memory(struct decoder *d, const json_t *config)
{
	enum { LEAST_MIB = 6 };
	const char *text = text_of(d, config, "memory", "resources@1", "0");
	char number[24];
	uint64_t bytes;

	if (!text)
		return false;
	if (!read_memory(text, &bytes))
		return refuse(d, KR_KIT_NO_WAY, "wants '%.40s' of memory, which is no size", text);
	if (!bytes)
		return true;
	if (bytes < (uint64_t)LEAST_MIB << 20)
		return refuse(d, KR_KIT_NO_WAY, "wants '%.40s' of memory, which is below the smallest limit, 6m", text);
	snprintf(number, sizeof(number), "%llu", (unsigned long long)bytes);
	return record(d, KR_REC_MEMORY, "", number);
}

static bool
decode_cpu(struct decoder *d, const json_t *config)
{
	const json_t *cpu = json_object_get(config, "cpu");
	const double value = json_number_value(cpu);
	char number[40];

	if (cpu && !json_is_number(cpu))
		return refuse(d, KR_KIT_NO_WAY, "has a 'cpu' in 'resources@1' that is no number");
	if (value == 0)
		return true;
	if (!(value >= 0.01) || value > 1e6)
		return refuse(d, KR_KIT_NO_WAY, "wants a 'cpu' of %g, which is no limit of processors", value);
	snprintf(number, sizeof(number), "%.17g", value);
	return record(d, KR_REC_CPU, "", number);
}

static bool
decode_resources(struct decoder *d, json_t *config, bool is_optional)
{
	static const char *const keys[] = { "cpu", "memory", "gpu", NULL };
	const char *gpu;

	if (!has_only(d, config, "resources@1", keys))
		return false;
	gpu = text_of(d, config, "gpu", "resources@1", "");
	if (!gpu)
		return false;
	if (*gpu && !is_optional)
		return refuse(d, KR_KIT_NO_WAY, "needs a gpu, and kraft gives none to a container");
	if (*gpu && !record(d, KR_REC_IGNORED, "", "the gpu of resources@1"))
		return false;
	return decode_cpu(d, config) && decode_memory(d, config);
}

/* ---- credential@1 ---- */

static bool
decode_phase(struct decoder *d, const char *service, const json_t *value)
{
	for (int p = 0; p < KR_PHASE_COUNT; p++) {
		const char number[] = { (char)('0' + p), '\0' };

		if (json_is_string(value) && strcmp(json_string_value(value), kr_phase_name((enum kr_phase)p)) == 0)
			return is_first(d, kr_arena_printf(&d->arena, "%s in %s", service, kr_phase_name((enum kr_phase)p))) &&
				   record(d, KR_REC_PHASE, "", number);
	}
	return refuse(d, KR_KIT_NO_WAY, "has a credential for '%.100s' with a 'phase' that is neither install nor runtime", service);
}

/* One phase, or a list of some. */
static bool
decode_phases(struct decoder *d, const char *service, const json_t *value)
{
	const json_t *item;
	size_t i;

	if (!json_is_array(value))
		return decode_phase(d, service, value);
	if (!json_array_size(value))
		return refuse(d, KR_KIT_NO_WAY, "has a credential for '%.100s' of no phase", service);
	json_array_foreach(value, i, item)
		if (!decode_phase(d, service, item))
			return false;
	return true;
}

static bool
refuse_credential(struct decoder *d, const char *service, const char *why)
{
	return refuse(d, KR_KIT_NO_WAY, "has a credential for '%.100s' that %s, and kraft knows only proxy-managed API keys", service,
		why);
}

static bool
decode_rule(struct decoder *d, const char *service, json_t *rule)
{
	static const char *const keys[] = { "domain", "header", "format", "scheme", "username", NULL };
	const char *domain, *header, *format, *fault;

	if (!has_only(d, rule, "inject", keys) || !are_texts(d, rule, keys, "inject"))
		return false;
	if (json_string_length(json_object_get(rule, "scheme")) || json_string_length(json_object_get(rule, "username")))
		return refuse_credential(d, service, "is not put into a header as it is (a scheme, a user name)");
	if (!json_object_get(rule, "header") || !json_object_get(rule, "format"))
		return refuse_credential(d, service, "does not say which header it goes into, and how");
	domain = text_of(d, rule, "domain", "inject", NULL);
	header = text_of(d, rule, "header", "inject", NULL);
	format = text_of(d, rule, "format", "inject", NULL);
	if (!domain || !header || !format)
		return false;
	if ((fault = kr_fault_domain(domain)) || (fault = kr_fault_header(header)) || (fault = kr_fault_format(format)))
		return refuse(d, KR_KIT_NO_WAY, "has a credential for '%.100s' with a rule of '%.60s', '%.60s', '%.60s' that %s", service,
			domain, header, format, fault);
	return record(d, KR_REC_RULE, "", domain) && record(d, KR_REC_HEADER, "", header) && record(d, KR_REC_FORMAT, "", format);
}

static bool
decode_key(struct decoder *d, const char *service, json_t *key)
{
	static const char *const keys[] = { "name", "proxyManaged", "inject", NULL };
	const char *name;
	bool is_managed;
	json_t *rules, *rule;
	size_t i;

	if (!key)
		return refuse_credential(d, service, "is no API key");
	if (!has_only(d, key, "apiKey", keys) || !flag_of(d, key, "proxyManaged", "apiKey", &is_managed))
		return false;
	name = text_of(d, key, "name", "apiKey", "");
	rules = json_object_get(key, "inject");
	if (!name || !is_list(d, rules, "inject"))
		return false;
	if (!is_managed)
		return refuse_credential(d, service, "would reach the worker (no 'proxyManaged: true')");
	if (!*name)
		return refuse_credential(d, service, "has no name of a variable");
	if (kr_fault_env_name(name))
		return refuse(d, KR_KIT_NO_WAY, "has a credential for '%.100s' with '%.60s' for a variable, which %s", service, name,
			kr_fault_env_name(name));
	if (!json_array_size(rules))
		return refuse_credential(d, service, "goes into no header");
	if (!record(d, KR_REC_VARIABLE, "", name))
		return false;
	json_array_foreach(rules, i, rule)
		if (!decode_rule(d, service, rule))
			return false;
	return true;
}

static bool
decode_credential(struct decoder *d, json_t *config)
{
	static const char *const keys[] = { "service", "phase", "apiKey", "oauth", NULL };
	const char *service;

	if (!has_only(d, config, "credential@1", keys))
		return false;
	service = text_of(d, config, "service", "credential@1", NULL);
	if (!service)
		return false;
	if (!*service || strlen(service) > 128)
		return refuse(d, KR_KIT_NO_WAY, "has a credential whose service is no name");
	if (!record(d, KR_REC_SERVICE, "", service) || !decode_phases(d, service, json_object_get(config, "phase")) ||
		!decode_key(d, service, json_object_get(config, "apiKey")))
		return false;
	return !json_object_get(config, "oauth") ||
		   record(d, KR_REC_IGNORED, "", kr_arena_printf(&d->arena, "the oauth of the credential '%s'", service));
}

/* ---- capabilities ---- */

#define TYPE(name) "com.docker.sandbox/" name

/* <namespace>/<name>@<version>, which may stand in an event. */
static bool
is_type(const char *type)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyz0123456789.-";
	const char *slash = strchr(type, '/'), *at = slash ? strchr(slash, '@') : NULL;

	return at && slash > type && at > slash + 1 && at[1] && strlen(type) <= 200 &&
		   strspn(type, good) == (size_t)(slash - type) && strspn(slash + 1, good) == (size_t)(at - slash - 1) &&
		   !at[1 + strspn(at + 1, "0123456789")];
}

static bool
decode_type(struct decoder *d, const char *type, json_t *config, bool is_optional)
{
	if (strcmp(type, TYPE("credential@1")) == 0)
		return decode_credential(d, config);
	if (strcmp(type, TYPE("network-policy@1")) == 0)
		return is_first(d, type) && decode_network(d, config);
	if (strcmp(type, TYPE("resources@1")) == 0)
		return is_first(d, type) && decode_resources(d, config, is_optional);
	if (strcmp(type, TYPE("agent-sessions@1")) == 0)
		return is_first(d, type) && record(d, KR_REC_IGNORED, "", type);
	if (is_optional)
		return record(d, KR_REC_SKIPPED, "", type);
	return refuse(d, KR_KIT_NO_WAY, "needs the capability '%s', which kraft does not have", type);
}

static bool
decode_capability(struct decoder *d, json_t *item)
{
	static const char *const keys[] = { "type", "name", "optional", "config", "description", "source", NULL };
	static const char *const labels[] = { "name", "description", NULL };
	bool is_optional;
	const char *type;

	if (json_object_get(item, "group"))
		return refuse(d, KR_KIT_NO_WAY, "groups its capabilities, and kraft takes no groups");
	if (!has_only(d, item, "capabilities", keys) || !are_texts(d, item, labels, "capabilities") ||
		!flag_of(d, item, "optional", "capabilities", &is_optional))
		return false;
	type = text_of(d, item, "type", "capabilities", NULL);
	if (!type)
		return false;
	if (!is_type(type))
		return refuse(d, KR_KIT_NO_WAY, "has '%.100s' for a capability, which is not of the form NAMESPACE/NAME@VERSION", type);
	return decode_type(d, type, json_object_get(item, "config"), is_optional);
}

static bool
decode_capabilities(struct decoder *d, const json_t *list)
{
	json_t *item;
	size_t i;

	if (!is_list(d, list, "capabilities"))
		return false;
	json_array_foreach(list, i, item)
		if (!decode_capability(d, item))
			return false;
	if (!kr_strs_has(&d->seen, TYPE("network-policy@1")))
		return refuse(d, KR_KIT_NO_WAY, "does not say which hosts it may reach: it has no '%s'", TYPE("network-policy@1"));
	return true;
}

/* ---- the rest of a descriptor ---- */

static bool
decode_args(struct decoder *d, json_t *args)
{
	static const char *const keys[] = { "default", "required", "description", "enum", "pattern", "env", "buildArg", NULL };
	static const char *const texts[] = { "default", "description", "pattern", "env", "buildArg", NULL };
	const char *name;
	bool is_required;
	json_t *arg;

	if (args && !json_is_object(args))
		return refuse(d, KR_KIT_NO_WAY, "has no mapping in 'args'");
	json_object_foreach(args, name, arg) {
		if (!has_only(d, arg, "args", keys) || !are_texts(d, arg, texts, "args") ||
			!flag_of(d, arg, "required", "args", &is_required))
			return false;
		if (json_object_get(arg, "env"))
			return refuse(d, KR_KIT_NO_WAY, "exports its argument '%.60s' as the variable '%.60s', which kraft does not do", name,
				json_string_value(json_object_get(arg, "env")));
		if (is_required && !json_object_get(arg, "buildArg"))
			return refuse(d, KR_KIT_NO_WAY, "needs a value for its argument '%.60s', and kraft gives none", name);
	}
	return true;
}

/* Records of how it was made, and words for people. */
static const char *const top_keys[] = { "schemaVersion", "kind", "displayName", "author", "description", "sourceUrl",
	"iconUrl", "version", "licenses", "provides", "requires", "integrates", "conflicts", "capabilities", "args", "build",
	"dockerfile", "kits", NULL };

static bool
decode_kind(struct decoder *d, const json_t *root)
{
	const char *version = text_of(d, root, "schemaVersion", "the descriptor", NULL);
	const char *kind = version ? text_of(d, root, "kind", "the descriptor", NULL) : NULL;

	if (!kind)
		return false;
	if (strcmp(version, "3") != 0)
		return refuse(d, KR_KIT_NO_WAY, "is of the schema version '%.40s', and kraft knows version 3", version);
	if (strcmp(kind, "mixin") == 0)
		return refuse(d, "name a kit of kind 'workload'",
			"is a mixin, which is laid over another kit and has no system of its own");
	/* "sandbox": what it was called before. */
	if (strcmp(kind, "workload") != 0 && strcmp(kind, "sandbox") != 0)
		return refuse(d, "name a kit of kind 'workload'", "is of the kind '%.60s', and kraft runs only a 'workload'", kind);
	return true;
}

static bool
decode_descriptor(struct decoder *d, json_t *root)
{
	const json_t *requires;

	if (!has_only(d, root, "the descriptor", top_keys) || !decode_kind(d, root))
		return false;
	requires = json_object_get(root, "requires");
	if (!is_list(d, requires, "requires"))
		return false;
	if (json_array_size(requires))
		return refuse(d, KR_KIT_NO_WAY, "requires another kit ('%.100s'), and kraft runs one kit alone",
			json_is_string(json_array_get(requires, 0)) ? json_string_value(json_array_get(requires, 0)) : "");
	return has_no_placeholder(d, root) && decode_args(d, json_object_get(root, "args")) &&
		   decode_capabilities(d, json_object_get(root, "capabilities"));
}

/* ---- JSON, else YAML ---- */

static json_t *scalar_of(const struct kr_yaml_node *node);

/* As deep as config/yaml.h allows. */
static json_t *
json_of(const struct kr_yaml_node *node)
{
	json_t *value;

	if (node->type == KR_YAML_SCALAR)
		return scalar_of(node);
	value = node->type == KR_YAML_LIST ? json_array() : json_object();
	for (const struct kr_yaml_node *child = node->child; child; child = child->next) {
		json_t *item = json_of(child);
		const int failed = node->type == KR_YAML_LIST ? json_array_append_new(value, item)
													  : json_object_set_new(value, child->key->text, item);

		if (failed) {
			json_decref(value);
			return NULL;
		}
	}
	return value;
}

static json_t *
scalar_of(const struct kr_yaml_node *node)
{
	switch (kr_yaml_value(node)) {
	case KR_VALUE_NULL:
		return json_null();
	case KR_VALUE_BOOL:
		return json_boolean((node->text[0] | 0x20) == 't');
	case KR_VALUE_INTEGER:
	case KR_VALUE_FLOAT:
		return json_real(strtod(node->text, NULL));
	default:
		return json_string(node->text);
	}
}

/* Its notation of a whole number that is none of JSON's would be read as another one; nothing here needs such. */
static json_t *
parse_yaml(struct decoder *d, const char *bytes, size_t n)
{
	struct kr_error why = { 0 };
	struct kr_yaml doc = { 0 };
	json_t *root;

	if (kr_yaml_parse(&d->arena, "descriptor", bytes, n, &doc, &why) < 0 || !doc.root) {
		refuse(d, KR_KIT_NO_WAY, "has a descriptor that is neither JSON nor YAML: %.200s",
			why.message[0] ? why.message : "it is empty");
		return NULL;
	}
	root = json_of(doc.root);
	if (!root)
		refuse(d, KR_KIT_NO_WAY, "has a descriptor that holds what is no text or number");
	return root;
}

static json_t *
parse(struct decoder *d, const char *bytes, size_t n)
{
	const size_t blank = strspn(bytes, " \t\r\n");
	json_error_t why;
	json_t *root;

	if (bytes[blank] != '{')
		return parse_yaml(d, bytes, n);
	root = json_loadb(bytes, n, JSON_REJECT_DUPLICATES, &why);
	if (!root)
		refuse(d, KR_KIT_NO_WAY, "has a descriptor that is no JSON: %.160s", why.text);
	return root;
}

void
kr_kit_decode(const void *bytes, size_t n, void *answer)
{
	struct decoder d = { .out = answer };
	const char *text = n <= KR_KIT_DESCRIPTOR_BYTES ? kr_arena_dup_n(&d.arena, bytes, n) : NULL;
	auto_json json_t *root = NULL;

	memset(d.out, 0, offsetof(struct kr_kit_answer, records));
	if (!text)
		refuse(&d, KR_KIT_NO_WAY, "has a descriptor of more than 512 KiB");
	else if ((root = parse(&d, text, n)))
		d.out->is_whole = decode_descriptor(&d, root);
	kr_arena_fini(&d.arena);
}
