#include <jansson.h>

#include "base/text.h"
#include "config/kit_records.h"
#include "config/schema.h"
#include "os/powerless.h"
#include "policy/policy.h"

/* ---- what comes back ---- */

static void
plain(char text[KR_KIT_FAULT])
{
	text[KR_KIT_FAULT - 1] = '\0';
	kr_text_plain(text, text, strlen(text), false);
}

/* A text that may stand in a message, an event, a terminal. */
static const char *
plain_copy(struct kr_arena *arena, const char *text)
{
	char *copy = kr_arena_dup(arena, text);

	kr_text_plain(copy, copy, strlen(copy), false);
	return copy;
}

struct reader {
	struct kr_arena *arena;
	struct kr_kit *kit;
	struct kr_credential *credential; /* the last one; NULL: none yet */
	size_t hosts, rules;
};

static bool
take_host(struct reader *r, const char *text, bool is_allow)
{
	const int phase = text[0] - '0';
	struct kr_host_pattern pattern;
	struct kr_host_list *list;

	if (phase < 0 || phase >= KR_PHASE_COUNT || r->hosts++ == KR_KIT_HOSTS ||
		!kr_host_pattern_parse(text + 1, &pattern, NULL))
		return false;
	list = &r->kit->network.phase[phase];
	/* As a person's list has them: without the blanks around. */
	text += 1 + strspn(text + 1, " \t\r\n");
	kr_strs_add(r->arena, is_allow ? &list->allow : &list->deny,
		kr_arena_dup_n(r->arena, text, strcspn(text, " \t\r\n")));
	return true;
}

static bool
take_service(struct reader *r, const char *service)
{
	struct kr_kit *kit = r->kit;

	if (kit->credential_count == KR_KIT_CREDENTIALS)
		return false;
	if (!kit->credentials)
		kit->credentials = kr_arena_alloc(r->arena, KR_KIT_CREDENTIALS * sizeof(*kit->credentials));
	r->credential = &kit->credentials[kit->credential_count++];
	r->credential->service = plain_copy(r->arena, service);
	return true;
}

static bool
take_rule(struct reader *r, const char *domain)
{
	struct kr_credential *c = r->credential;
	struct kr_inject *grown;

	if (r->rules++ == KR_KIT_RULES || kr_fault_domain(domain))
		return false;
	grown = kr_arena_alloc(r->arena, (c->inject_count + 1) * sizeof(*grown));
	if (c->inject_count)
		memcpy(grown, c->inject, c->inject_count * sizeof(*grown));
	grown[c->inject_count++] = (struct kr_inject){ .domain = kr_arena_dup(r->arena, domain) };
	c->inject = grown;
	return true;
}

static bool
take_of_credential(struct reader *r, char letter, const char *text)
{
	struct kr_credential *c = r->credential;
	struct kr_inject *rule = c && c->inject_count ? &c->inject[c->inject_count - 1] : NULL;

	if (!c)
		return false;
	switch (letter) {
	case KR_REC_VARIABLE:
		c->env = kr_arena_dup(r->arena, text);
		return !kr_fault_env_name(text);
	case KR_REC_PHASE:
		if ((text[0] != '0' && text[0] != '1') || text[1])
			return false;
		c->phase[text[0] - '0'] = true;
		return true;
	case KR_REC_RULE:
		return take_rule(r, text);
	case KR_REC_HEADER:
		if (!rule || rule->header || kr_fault_header(text))
			return false;
		rule->header = kr_arena_dup(r->arena, text);
		return true;
	default:
		if (!rule || rule->format || kr_fault_format(text))
			return false;
		rule->format = kr_arena_dup(r->arena, text);
		return true;
	}
}

static bool
take_note(struct reader *r, struct kr_strs *list, const char *text)
{
	const char *copy = plain_copy(r->arena, text);

	if (kr_strs_has(list, copy))
		return true;
	if (r->kit->skipped.n + r->kit->ignored.n == KR_KIT_NOTES)
		return false;
	kr_strs_add(r->arena, list, copy);
	return true;
}

static bool
take(struct reader *r, char letter, const char *text)
{
	struct kr_resources *resources = &r->kit->resources;
	char *end;

	switch (letter) {
	case KR_REC_ALLOW:
	case KR_REC_DENY:
		return take_host(r, text, letter == KR_REC_ALLOW);
	case KR_REC_CPU:
		resources->cpu = strtod(text, &end);
		return !*end && resources->cpu >= 0.01 && resources->cpu <= 1e6;
	case KR_REC_MEMORY:
		return kr_text_to_u64(text, INT64_MAX, &resources->memory_bytes);
	case KR_REC_SERVICE:
		return take_service(r, text);
	case KR_REC_SKIPPED:
		return take_note(r, &r->kit->skipped, text);
	case KR_REC_IGNORED:
		return take_note(r, &r->kit->ignored, text);
	case KR_REC_VARIABLE:
	case KR_REC_PHASE:
	case KR_REC_RULE:
	case KR_REC_HEADER:
	case KR_REC_FORMAT:
		return take_of_credential(r, letter, text);
	default:
		return false;
	}
}

static bool
is_complete(const struct kr_credential *c)
{
	for (size_t i = 0; i < c->inject_count; i++)
		if (!c->inject[i].header || !c->inject[i].format)
			return false;
	return c->env && c->inject_count && (c->phase[KR_PHASE_INSTALL] || c->phase[KR_PHASE_RUNTIME]);
}

static bool
read_records(struct reader *r, const char *records, size_t len)
{
	for (size_t at = 0; at < len;) {
		const char *text = records + at;
		const size_t n = strnlen(text, len - at);

		if (!n || n == len - at || !kr_text_is_utf8(text, n) || !take(r, text[0], text + 1))
			return false;
		at += n + 1;
	}
	for (size_t i = 0; i < r->kit->credential_count; i++)
		if (!is_complete(&r->kit->credentials[i]))
			return false;
	return true;
}

/* ---- what no sandbox may say ---- */

static bool
share_phase(const struct kr_credential *a, const struct kr_credential *b)
{
	return (a->phase[0] && b->phase[0]) || (a->phase[1] && b->phase[1]);
}

static bool
write_same_header(const struct kr_credential *a, const struct kr_credential *b, const struct kr_inject *rule)
{
	for (size_t i = 0; i < b->inject_count && (a != b || &b->inject[i] != rule); i++)
		if (strcasecmp(b->inject[i].domain, rule->domain) == 0 && strcasecmp(b->inject[i].header, rule->header) == 0)
			return true;
	return false;
}

/* As a person's credentials are held to their lists (sandbox.c): by name, and in each phase. */
static int
check_rule(const struct kr_kit *kit, const struct kr_credential *c, const struct kr_inject *rule, struct kr_error *err)
{
	for (int p = 0; p < KR_PHASE_COUNT; p++) {
		const struct kr_host_list *list = &kit->network.phase[p];

		if (c->phase[p] && (!kr_hosts_name(&list->allow, rule->domain) || kr_hosts_name(&list->deny, rule->domain)))
			return kr_fail(err, KR_E_CONFIG,
				"the kit '%s' sends the secret of '%s' to '%s', which its own %s list does not allow by name", kit->name,
				c->service, rule->domain, kr_phase_name((enum kr_phase)p));
	}
	return 0;
}

static int
check_credentials(const struct kr_kit *kit, struct kr_error *err)
{
	for (size_t i = 0; i < kit->credential_count; i++) {
		const struct kr_credential *c = &kit->credentials[i];

		for (size_t k = 0; k < c->inject_count; k++)
			if (check_rule(kit, c, &c->inject[k], err) < 0)
				return -1;
		for (size_t j = 0; j <= i; j++) {
			const struct kr_credential *other = &kit->credentials[j];

			if (!share_phase(c, other))
				continue;
			if (j < i && strcmp(c->env, other->env) == 0)
				return kr_fail(err, KR_E_CONFIG, "the kit '%s' has two credentials for the variable '%s'", kit->name, c->env);
			for (size_t k = 0; k < c->inject_count; k++)
				if (write_same_header(c, other, &c->inject[k]))
					return kr_fail(err, KR_E_CONFIG, "the kit '%s' writes the header '%s' of '%s' twice", kit->name,
						c->inject[k].header, c->inject[k].domain);
		}
	}
	return 0;
}

int
kr_kit_read(
	struct kr_arena *arena, const char *name, struct kr_kit_answer *answer, struct kr_kit *out, struct kr_error *err)
{
	struct kr_kit kit = { .name = name, .network = { .is_set = true, .phase_is_set = { true, true } } };
	struct reader r = { .arena = arena, .kit = &kit };

	plain(answer->fault);
	plain(answer->hint);
	if (answer->fault[0]) {
		kr_fail(err, KR_E_CONFIG, "the kit '%s' %s", name, answer->fault);
		return kr_hint(err, "%s", answer->hint);
	}
	if (!answer->is_whole || answer->len > sizeof(answer->records) || !read_records(&r, answer->records, answer->len)) {
		kr_fail(err, KR_E_CONFIG, "the kit '%s' has a descriptor that asks for more than kraft takes", name);
		return kr_hint(err, "%s", KR_KIT_NO_WAY);
	}
	if (check_credentials(&kit, err) < 0)
		return kr_hint(err, "%s", KR_KIT_NO_WAY);
	*out = kit;
	return 0;
}

int
kr_kit_parse(struct kr_arena *arena, const char *name, const char *descriptor, size_t n, struct kr_kit *out,
	struct kr_error *err)
{
	kr_auto_free struct kr_kit_answer *answer = kr_xcalloc(1, sizeof(*answer));

	json_object_seed(0); /* it would open a file for that */
	if (kr_powerless_parse(kr_kit_decode, descriptor, n, answer, sizeof(*answer), err) < 0)
		return kr_wrap(err, "reading the descriptor of the kit '%s'", name);
	return kr_kit_read(arena, name, answer, out, err);
}

/* ---- onto kind: docker ---- */

static const char *
variable_of(const struct kr_sandbox_file *file, const char *service)
{
	for (size_t i = 0; i < file->credential_count; i++)
		if (strcmp(file->credentials[i].service, service) == 0)
			return file->credentials[i].variable;
	return NULL;
}

const char *
kr_kit_unbound(const struct kr_kit *kit, const struct kr_sandbox_file *file)
{
	for (size_t i = 0; i < kit->credential_count; i++)
		if (!variable_of(file, kit->credentials[i].service))
			return kit->credentials[i].service;
	return NULL;
}

static int
refuse_unbound(const struct kr_kit *kit, const struct kr_sandbox_file *file, const char *service, struct kr_error *err)
{
	kr_auto_buf struct kr_buf line = KR_BUF(1024);

	kr_yaml_add_string(&line, service);
	kr_fail(err, KR_E_CONFIG, "the kit '%s' wants a credential of the service '%s', and '%s' binds no variable to it",
		kit->name, service, file->file);
	return kr_hint(err, "write under 'credentials:' there: '%s: VARIABLE', the variable in kraft's environment that holds it",
		line.data ? line.data : "");
}

int
kr_kit_lower(struct kr_arena *arena, const struct kr_kit *kit, const struct kr_sandbox_file *file,
	const struct kr_sandbox *from, struct kr_sandbox *out, struct kr_error *err)
{
	const char *unbound = kr_kit_unbound(kit, file);
	struct kr_sandbox sandbox = {
		.kind = KR_SANDBOX_DOCKER,
		.network = kit->network,
		.image = kr_kit_reference(arena, kit->name),
		.kit = kit->name,
		.has_resources = kit->resources.cpu > 0 || kit->resources.memory_bytes,
		.resources = kit->resources,
		.credential_count = kit->credential_count,
		.mark = from->mark,
	};

	if (unbound)
		return refuse_unbound(kit, file, unbound, err);
	sandbox.credentials = kr_arena_alloc(arena, (kit->credential_count + 1) * sizeof(*sandbox.credentials));
	for (size_t i = 0; i < kit->credential_count; i++) {
		sandbox.credentials[i] = kit->credentials[i];
		sandbox.credentials[i].source = variable_of(file, kit->credentials[i].service);
		sandbox.credentials[i].mark = from->mark;
	}
	*out = sandbox;
	return 0;
}

const char *
kr_kit_digest(const char *name)
{
	const char *at = strrchr(name, '@');

	KR_BUG_IF(!at); /* the configuration has one (kr_fault_kit) */
	return at + 1;
}

const char *
kr_kit_reference(struct kr_arena *arena, const char *name)
{
	const char *digest = kr_kit_digest(name), *last = name, *colon;
	const size_t n = (size_t)(digest - 1 - name);

	/* A colon before the last slash is of a port. */
	for (size_t i = 0; i < n; i++)
		if (name[i] == '/')
			last = name + i;
	colon = memchr(last, ':', n - (size_t)(last - name));
	return kr_arena_printf(arena, "%.*s@%s", (int)(colon ? (size_t)(colon - name) : n), name, digest);
}
