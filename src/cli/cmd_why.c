/*
 * kraft why host: the decision on one host, and where it comes from. The same function decides for a session.
 *
 * The name is looked up once, here, and only when the lists allow it: a refused name must not reach a name
 * server, and this command keeps to that as well.
 */
#include <jansson.h>

#include "cli/cli.h"
#include "run/kit.h"
#include "run/where.h"
#include "config/yaml.h"
#include "egress/addresses.h"
#include "os/host.h"
#include "plan/plan.h"
#include "policy/policy.h"

enum { DEFAULT_PORT = 443, OUT_BYTES = 4 << 20 };

enum { PHASE, REPO, JSON };
static const struct kr_option options[] = {
	[PHASE] = { "phase", 0, "PHASE", "which network lists hold: install or runtime (the usual one)" },
	[REPO] = { "repo", 'C', "PATH", "the checkout whose lists are asked, in place of the one you stand in" },
	[JSON] = { "json", 0, NULL, "print one JSON object" },
	{ NULL },
};

struct why {
	struct kr_arena *arena;
	struct kr_where where;
	struct kr_addresses own;
	struct kr_found found;
	struct kr_verdict verdict, *each; /* each: one for every address of found */
	bool port_was_given;
	bool is_kit; /* the lists are a kit's, and nobody's to add to */
};

static int
read_target(const char *text, struct kr_target *out, bool *port_was_given, struct kr_error *err)
{
	const char *fault;

	if (!kr_target_parse(text, strlen(text), out, &fault)) {
		kr_fail(err, KR_E_USAGE, "'%.300s' is no host: it %s", text, fault);
		return kr_hint(err,
			"write a name (example.com), a name with a port (example.com:443), an IPv4 address, or "
			"an IPv6 address in brackets");
	}
	*port_was_given = out->port != 0;
	if (!out->port)
		out->port = DEFAULT_PORT;
	return 0;
}

static int
find_lists(struct why *w, const char *repo, struct kr_error *err)
{
	struct kr_run_kit kit = { 0 };
	struct kr_host host;

	if (kr_host_gather_places(w->arena, &host, err) < 0 ||
		kr_where_find(w->arena, &host.places, repo, &w->where, err) < 0 ||
		kr_where_layers(w->arena, &host.places, NULL, &w->where, err) < 0 ||
		kr_run_kit_find(w->arena, &host, false, -1, &w->where.repo, &kit, err) < 0)
		return -1;
	w->is_kit = kit.is_used;
	if (w->where.repo->sandbox.network.is_set)
		return 0;
	kr_fail(err, KR_E_CONFIG, "'%s' has no network lists: its sandbox %s", w->where.repo->path,
		w->where.repo->sandbox.unrestricted_network ? "has 'unrestricted_network'" : "sets no 'network'");
	return kr_hint(err, "'kraft explain' tells what a worker of it gets");
}

static void
judge_addresses(struct why *w)
{
	struct kr_verdict host = w->verdict;
	struct kr_error err = { 0 };

	if (kr_resolve(host.target.host, &w->found, &err) < 0) {
		kr_unresolved_decide(&host, err.message, &w->verdict);
		return;
	}
	w->each = kr_arena_alloc(w->arena, w->found.n * sizeof(*w->each));
	kr_found_decide(&host, &w->found, &w->own, w->each, &w->verdict);
}

static void
decide(struct why *w, enum kr_phase phase, const struct kr_target *target)
{
	const struct kr_host_list *lists = &w->where.repo->sandbox.network.phase[phase];

	kr_host_decide(lists, phase, target, &w->own, &w->verdict);
	if (!target->is_address && w->verdict.decision == KR_HOST_ALLOWED)
		judge_addresses(w);
	if (target->is_address) {
		w->found.v[0] = w->verdict.target.address;
		w->found.n = 1;
		w->each = &w->verdict;
	}
}

/* ---- text ---- */

static const char *
list_of(const struct kr_verdict *v)
{
	return v->decision == KR_HOST_DENIED ? "deny" : "allow";
}

static void
print_rule(const struct why *w, struct kr_buf *out)
{
	const struct kr_verdict *v = &w->verdict;

	if (!v->entry)
		return;
	kr_buf_addf(out, "  rule '%s' of network.%s.%s", v->entry, kr_phase_name(v->phase), list_of(v));
	if (v->mark.line)
		kr_buf_addf(out, ", %s:%u:%u", w->where.sandbox_file, v->mark.line, v->mark.column);
	kr_buf_addf(out, "\n");
}

static void
print_addresses(const struct why *w, struct kr_buf *out)
{
	if (w->found.n)
		kr_buf_addf(out, "addresses\n");
	for (size_t i = 0; i < w->found.n; i++) {
		struct kr_address_report report;
		char text[KR_ADDRESS_TEXT], inner[KR_ADDRESS_TEXT];

		kr_address_classify(&w->found.v[i], &w->own, &report);
		kr_address_format(&w->found.v[i], text);
		kr_buf_addf(
			out, "  %-7s  %s  ", w->each[i].decision == KR_HOST_ALLOWED ? "allowed" : "refused", text);
		if (report.form) {
			kr_address_format(&report.inner, inner);
			kr_buf_addf(out, "%s of %s, ", report.form, inner);
		}
		kr_buf_addf(out, "%s: %s (%s)\n", kr_address_class_words(report.class), report.what, report.source);
	}
}

static void
print_grant(const struct why *w, struct kr_buf *out)
{
	const struct kr_verdict *v = &w->verdict;

	if (!v->grant[0])
		return;
	if (w->is_kit) {
		kr_buf_addf(out, "the lists are the kit's, and nobody adds to them: another kit, or 'kind: docker', can allow it\n");
		return;
	}
	kr_buf_addf(out, "to allow it, add in %s", w->where.sandbox_file);
	if (w->where.repo->sandbox.mark.line)
		kr_buf_addf(out, ", in the sandbox at line %u", w->where.repo->sandbox.mark.line);
	kr_buf_addf(out, ":\n  network:\n    %s:\n      allow:\n        - ", kr_phase_name(v->phase));
	kr_yaml_add_string(out, v->grant);
	kr_buf_addf(out, "\n");
}

/* The credential that goes to it, by what the configuration itself says: a harness may name more. NULL: none. */
static const char *
bound_to(const struct why *w)
{
	const struct kr_verdict *v = &w->verdict;
	const struct kr_request request = { .repo = w->where.repo, .phase = v->phase };
	const struct kr_plan_secrets *secrets;

	if (v->decision != KR_HOST_ALLOWED || kr_plan_secrets(w->arena, &request, NULL, &secrets, NULL) < 0)
		return NULL;
	for (size_t i = 0; i < secrets->rule_count; i++)
		if (secrets->rules[i].port == v->target.port && strcmp(secrets->rules[i].host, v->target.host) == 0)
			return secrets->rules[i].variable;
	return NULL;
}

static void
print_text(const struct why *w, struct kr_buf *out)
{
	const struct kr_verdict *v = &w->verdict;
	const char *credential = bound_to(w);
	char target[KR_TARGET_TEXT];

	kr_target_format(&v->target, target);
	kr_buf_addf(out, "%s  %s in the %s phase%s\n", v->decision == KR_HOST_ALLOWED ? "allowed" : "refused",
		target, kr_phase_name(v->phase), w->port_was_given ? "" : " (no port was given: 443)");
	kr_buf_addf(out, "  %s\n", v->reason);
	print_rule(w, out);
	if (credential)
		kr_buf_addf(out, "  TLS to it ends in kraft, which puts the credential '%s' in\n", credential);
	print_addresses(w, out);
	print_grant(w, out);
}

/* ---- JSON ---- */

static json_t *
entry_json(const struct why *w)
{
	const struct kr_verdict *v = &w->verdict;
	json_t *entry;

	if (!v->entry)
		return json_null();
	entry = json_pack("{s:s,s:s,s:s}", "text", v->entry, "list", list_of(v), "file", w->where.sandbox_file);
	if (entry && v->mark.line) {
		json_object_set_new(entry, "line", json_integer(v->mark.line));
		json_object_set_new(entry, "column", json_integer(v->mark.column));
	}
	return entry;
}

static json_t *
address_json(const struct why *w, size_t i)
{
	struct kr_address_report report;
	char text[KR_ADDRESS_TEXT], inner[KR_ADDRESS_TEXT] = "";
	json_t *object;

	kr_address_classify(&w->found.v[i], &w->own, &report);
	kr_address_format(&w->found.v[i], text);
	object =
		json_pack("{s:s,s:b,s:s,s:s,s:s}", "address", text, "allowed", w->each[i].decision == KR_HOST_ALLOWED,
			"class", kr_address_class_name(report.class), "what", report.what, "source", report.source);
	if (report.form && object) {
		kr_address_format(&report.inner, inner);
		json_object_set_new(object, "form", json_string(report.form));
		json_object_set_new(object, "stands_for", json_string(inner));
	}
	return object;
}

static int
print_json(const struct why *w, struct kr_error *err)
{
	const struct kr_verdict *v = &w->verdict;
	json_t *addresses = json_array();

	for (size_t i = 0; i < w->found.n; i++)
		json_array_append_new(addresses, address_json(w, i));
	return kr_print_json(
		json_pack("{s:s,s:i,s:s,s:b,s:s,s:s,s:o,s:b,s:s*,s:s*,s:o}", "host", v->target.host, "port",
			(int)v->target.port, "phase", kr_phase_name(v->phase), "allowed", v->decision == KR_HOST_ALLOWED,
			"decision", kr_decision_name(v->decision), "reason", v->reason, "entry", entry_json(w), "exact",
			v->exact, "grant", v->grant[0] && !w->is_kit ? v->grant : NULL, "credential", bound_to(w), "addresses", addresses),
		err);
}

static int
why_host(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct why *w = kr_arena_new(arena, struct why);
	kr_auto_buf struct kr_buf out = KR_BUF(OUT_BYTES);
	struct kr_target target;
	enum kr_phase phase;

	w->arena = arena;
	if (kr_where_phase(parsed->value[PHASE], &phase, err) < 0 ||
		read_target(parsed->words[0], &target, &w->port_was_given, err) < 0 ||
		find_lists(w, parsed->value[REPO], err) < 0 || kr_own_addresses(arena, &w->own, err) < 0)
		return -1;
	decide(w, phase, &target);
	if (parsed->value[JSON] && print_json(w, err) < 0)
		return -1;
	if (!parsed->value[JSON])
		print_text(w, &out);
	if (out.len)
		fwrite(out.data, 1, out.len, stdout);
	return w->verdict.decision == KR_HOST_ALLOWED ? 0 : 1;
}

const struct kr_command kr_cmd_why_host = {
	.name = "why host",
	.usage = "[OPTIONS] NAME[:PORT]",
	.summary = "tell whether a worker may reach a host, by which rule, and what would allow it",
	.help = "Decides as a session would: the lists of the phase first, then, for a name that they allow, "
			"each address\n"
			"that it resolves to. A refused name is not looked up. Without a port: 443.\n\n"
			"Exit status: 0 allowed, 1 refused.",
	.options = options,
	.words_min = 1,
	.words_max = 1,
	.run = why_host,
};
