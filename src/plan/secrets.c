/*
 * The secrets of a session that stay outside (SEN-01): from `credentials` and what its harness knows of them to the sentinels
 * that the worker has and the rules by which they are replaced on the way out. No value of a secret is kept here.
 *
 * A rule needs an entry of the phase's allow list that is the host itself; it holds for that entry's port, for 443 where it has
 * none. A star binds nothing: it would send the secret to hosts that nobody had in mind.
 */
#include "plan/build.h"

#include <ctype.h>

#include "base/text.h"
#include "policy/policy.h"

/* 32 digits are 5 bits each without a remainder: 200 bits. */
static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
enum { RANDOM_DIGITS = 40, HTTPS = 443 };

bool
kr_plan_is_managed(const struct kr_repo *repo, const char *name)
{
	for (size_t i = 0; i < repo->sandbox.credential_count; i++)
		if (strcmp(repo->sandbox.credentials[i].env, name) == 0 || strcmp(repo->sandbox.credentials[i].source, name) == 0)
			return true;
	return false;
}

/* It has to stand in a header, between other words. */
const char *
kr_plan_secret_fault(const char *value)
{
	const size_t n = value ? strlen(value) : 0;

	if (!n)
		return "is not set";
	if (n > KR_PLAN_SECRET_BYTES)
		return "is too long for a header";
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)value[i] < 0x20 || (unsigned char)value[i] > 0x7e)
			return "holds a control character, or one that is not ASCII";
	return value[0] == ' ' || value[n - 1] == ' ' ? "begins or ends with a blank" : NULL;
}

static const char *
make_sentinel(struct kr_arena *arena, const char *prefix, kr_random_fn *random)
{
	unsigned char bytes[RANDOM_DIGITS] = { 0 };
	char text[RANDOM_DIGITS + 1] = "";

	if (random && !random(bytes, sizeof(bytes)))
		return NULL;
	for (size_t i = 0; i < RANDOM_DIGITS; i++)
		text[i] = digits[bytes[i] % 32];
	return kr_arena_printf(arena, "%s%s", prefix, text);
}

static const char *
lower_case(struct kr_arena *arena, const char *text)
{
	char *lower = kr_arena_dup(arena, text);

	for (char *c = lower; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return lower;
}

/* ---- rules ---- */

struct resolve {
	struct kr_arena *arena;
	const struct kr_request *request;
	const struct kr_host_list *hosts;
	struct kr_plan_secrets *out;
};

static int
add_rule(struct resolve *r, const struct kr_plan_rule *rule, struct kr_error *err)
{
	struct kr_plan_secrets *out = r->out;

	for (size_t i = 0; i < out->rule_count; i++) {
		const struct kr_plan_rule *other = &out->rules[i];

		if (other->port != rule->port || strcmp(other->host, rule->host) != 0 || strcmp(other->header, rule->header) != 0)
			continue;
		if (strcmp(other->variable, rule->variable) == 0)
			return 0; /* the list has the host twice */
		kr_fail(err, KR_E_CONFIG, "the header '%s' of '%s' is written by two credentials, '%s' and '%s'", rule->header,
			rule->host, other->variable, rule->variable);
		return kr_hint(err, "keep one of them under 'credentials', or give one an 'inject' of its own");
	}
	if (out->rule_count == KR_PLAN_RULES) {
		kr_fail(err, KR_E_LIMIT, "'credentials' come to more than %d rules, of one header, host and port each", KR_PLAN_RULES);
		return kr_hint(err, "leave ports out of the network's list, or take entries away");
	}
	out->rules[out->rule_count++] = *rule;
	return 0;
}

/* How many entries of the allow list bind it; -1: err. */
static int
bind_host(struct resolve *r, const struct kr_inject *inject, const struct kr_plan_secret *secret, struct kr_error *err)
{
	struct kr_plan_rule rule = { .header = lower_case(r->arena, inject->header),
		.format = inject->format,
		.sentinel = secret->sentinel,
		.variable = secret->variable,
		.source = secret->source };
	struct kr_host_pattern wanted, entry;
	int bound = 0;

	KR_BUG_IF(!kr_host_pattern_parse(inject->domain, &wanted, NULL)); /* checked when it was read */
	rule.host = kr_arena_dup(r->arena, wanted.host);
	for (size_t i = 0; i < r->hosts->allow.n; i++) {
		if (!kr_host_pattern_parse(r->hosts->allow.v[i], &entry, NULL) || entry.any || entry.star ||
			strcmp(entry.host, wanted.host) != 0)
			continue;
		rule.port = (uint16_t)(entry.port ? entry.port : HTTPS);
		if (add_rule(r, &rule, err) < 0)
			return -1;
		bound++;
	}
	return bound;
}

/* ---- one entry ---- */

static const struct kr_credential *
of_harness(const struct kr_request *request, const char *variable)
{
	const struct kr_plan_agent *agent = request->agent;

	for (size_t i = 0; agent && i < agent->credential_count; i++)
		if (strcmp(agent->credentials[i].env, variable) == 0)
			return &agent->credentials[i];
	return NULL;
}

/* What the entry itself says was checked when it was read, and without a phase it may be meant for the other one. */
static int
check_bound(const struct resolve *r, const struct kr_credential *entry, const struct kr_inject *inject, struct kr_error *err)
{
	const char *phase = kr_phase_name(r->request->phase);

	if (entry->inject_count)
		return 0;
	kr_fail(err, KR_E_CONFIG,
		"the credential '%s' goes to '%s', as the harness '%s' says, but the network's %s list does not allow that host by name",
		entry->env, inject->domain, r->request->agent->id, phase);
	return kr_hint(err, "add '%s' to network.%s.allow of '%s'", inject->domain, phase, r->request->repo->name);
}

static int
resolve_one(struct resolve *r, const struct kr_credential *entry, kr_random_fn *random, struct kr_error *err)
{
	const struct kr_credential *own = of_harness(r->request, entry->env), *says = entry->inject_count || !own ? entry : own;
	const char *prefix = entry->sentinel ? entry->sentinel : own && own->sentinel ? own->sentinel : "kraft-proxy-managed-";
	struct kr_plan_secret *secret = &r->out->secrets[r->out->secret_count];

	if (kr_plan_sets(r->request->repo, entry->env)) {
		kr_fail(err, KR_E_CONFIG, "'credentials' names %s, which only kraft sets", entry->env);
		return kr_hint(err, "give the worker the sentinel in another variable ('env'), and name ours under 'source'");
	}
	*secret = (struct kr_plan_secret){ .variable = entry->env,
		.source = entry->source,
		.sentinel = make_sentinel(r->arena, prefix, random) };
	if (!secret->sentinel)
		return kr_fail(err, KR_E_SYSTEM, "the system gives no random bytes for a sentinel");
	r->out->secret_count++;
	for (size_t i = 0; i < says->inject_count; i++) {
		int bound = bind_host(r, &says->inject[i], secret, err);

		if (bound < 0 || (!bound && check_bound(r, entry, &says->inject[i], err) < 0))
			return -1;
	}
	return 0;
}

int
kr_plan_secrets(struct kr_arena *arena, const struct kr_request *request, kr_random_fn *random,
	const struct kr_plan_secrets **out, struct kr_error *err)
{
	const struct kr_sandbox *sandbox = &request->repo->sandbox;
	struct kr_plan_secrets *secrets = kr_arena_new(arena, struct kr_plan_secrets);
	size_t needed;
	struct resolve r = { .arena = arena,
		.request = request,
		.hosts = kr_plan_hosts(arena, request, &needed),
		.out = secrets };

	secrets->secrets = kr_arena_alloc(arena, (sandbox->credential_count + 1) * sizeof(*secrets->secrets));
	secrets->rules = kr_arena_alloc(arena, KR_PLAN_RULES * sizeof(*secrets->rules));
	for (size_t i = 0; i < sandbox->credential_count; i++)
		if (sandbox->credentials[i].phase[request->phase] && resolve_one(&r, &sandbox->credentials[i], random, err) < 0)
			return -1;
	*out = secrets;
	return 0;
}
