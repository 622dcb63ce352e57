/*
 * Whether a worker may reach a host, and why: one function, for the proxy, for its refusals and for `kraft
 * why host`.
 *
 * In this order, the first that speaks decides:
 *   1. names and literal addresses that no list can open (POL-03);
 *   2. the deny list; 3. the allow list; 4. nothing: refused (POL-02);
 *   5. an address that is not public needs an allow entry that names the host itself (POL-04).
 * The same holds for each address that an allowed name resolves to (POL-05), in kr_address_decide.
 *
 * Matching (NET-17): an entry's port, when it has one, must be the port asked for. A name equals or does not;
 * "*.x" is any one label in front of x, so neither x itself nor a.b.x; "*" and "**" are everything. A star's
 * label is a label of a name: "*.2.3.4" opens no address. Of several entries that match, one that names the
 * host itself is told first.
 *
 * The deny list also sees the IPv4 inside an IPv6 literal: an address that is denied stays so in every
 * spelling.
 */
#include "policy/policy.h"

#include <stdarg.h>

const char *
kr_decision_name(enum kr_decision decision)
{
	static const char *const names[] = {
#define X(decision, name) [KR_HOST_##decision] = name,
		KR_DECISIONS(X)
#undef X
	};

	return names[decision];
}

static const struct {
	const char *name, *what;
	bool below; /* also every name that ends in it */
} closed_names[] = {
	{ "metadata", "a cloud's metadata service", false },
	{ "metadata.google.internal", "Google Cloud's metadata service", false },
	{ "metadata.goog", "Google Cloud's metadata service", false },
	{ "metadata.azure.com", "Azure's metadata service", false },
	{ "instance-data", "EC2's metadata service", false },
	{ "instance-data.ec2.internal", "EC2's metadata service", false },
	{ "localhost", "this host's loopback (RFC 6761)", true },
	{ "kraft", "kraft's own name inside a sandbox", false },
};

/* True when host is n or more labels in front of `base`. */
static bool
is_below(const char *host, const char *base)
{
	size_t n = strlen(host), m = strlen(base);

	return n > m + 1 && host[n - m - 1] == '.' && strcmp(host + n - m, base) == 0;
}

static const char *
closed_name(const char *host)
{
	for (size_t i = 0; i < KR_COUNT(closed_names); i++)
		if (strcmp(host, closed_names[i].name) == 0 ||
			(closed_names[i].below && is_below(host, closed_names[i].name)))
			return closed_names[i].what;
	return NULL;
}

/* ---- entries ---- */

static bool
host_matches(const struct kr_host_pattern *entry, const char *host, bool is_address)
{
	if (entry->any)
		return true;
	if (!entry->star)
		return strcmp(entry->host, host) == 0;
	return !is_address && is_below(host, entry->host) &&
		   strchr(host, '.') + 1 == host + strlen(host) - strlen(entry->host);
}

static bool
port_matches(const struct kr_host_pattern *entry, unsigned port)
{
	return entry->port == 0 || entry->port == port;
}

static bool
is_exact(const struct kr_host_pattern *entry)
{
	return !entry->any && !entry->star;
}

struct match {
	size_t index;
	bool found, exact;
};

static void
find_entry(const struct kr_strs *list, const char *host, bool is_address, unsigned port, struct match *out)
{
	struct kr_host_pattern entry;

	for (size_t i = 0; i < list->n && !out->exact; i++) {
		/* The loader took no other text; one that slips in matches nothing. */
		if (!kr_host_pattern_parse(list->v[i], &entry, NULL) || !host_matches(&entry, host, is_address) ||
			!port_matches(&entry, port) || (out->found && !is_exact(&entry)))
			continue;
		*out = (struct match){ .index = i, .found = true, .exact = is_exact(&entry) };
	}
}

static void
find_denied(const struct kr_strs *list, const struct kr_target *target, struct match *out)
{
	struct kr_embedded inside[KR_EMBEDDED_MAX];
	size_t n = target->is_address ? kr_address_embedded(&target->address, inside) : 0;
	char text[KR_ADDRESS_TEXT];

	find_entry(list, target->host, target->is_address, target->port, out);
	for (size_t i = 0; i < n && !out->found; i++) {
		kr_address_format(&inside[i].address, text);
		find_entry(list, text, true, target->port, out);
	}
}

/* ---- words ---- */

static void KR_PRINTF(2, 3) say(struct kr_verdict *v, const char *fmt, ...)
{
	size_t used = strlen(v->reason);
	va_list args;

	va_start(args, fmt);
	vsnprintf(v->reason + used, sizeof(v->reason) - used, fmt, args);
	va_end(args);
}

/* An allow entry that somebody may have thought to be enough. */
static void
say_near_miss(struct kr_verdict *v, const struct kr_strs *allow)
{
	const struct kr_target *t = &v->target;
	struct kr_host_pattern entry;

	for (size_t i = 0; i < allow->n; i++) {
		if (!kr_host_pattern_parse(allow->v[i], &entry, NULL))
			continue;
		if (host_matches(&entry, t->host, t->is_address)) {
			say(v, "; '%s' is for port %u", allow->v[i], entry.port);
			return;
		}
		if (t->is_address || entry.any || !port_matches(&entry, t->port))
			continue;
		if (entry.star && (strcmp(entry.host, t->host) == 0 || is_below(t->host, entry.host))) {
			say(v, "; '%s' stands for exactly one label in front of '%s'", allow->v[i], entry.host);
			return;
		}
		if (!entry.star && is_below(t->host, entry.host)) {
			say(v, "; '%s' names only itself", allow->v[i]);
			return;
		}
	}
}

/* The host with the port, where the grammar of entries has a word for it: an IPv6 address has none. */
static void
offer_grant(struct kr_verdict *v)
{
	struct kr_host_pattern pattern;

	kr_target_format(&v->target, v->grant);
	if (kr_host_pattern_parse(v->grant, &pattern, NULL))
		return;
	v->grant[0] = '\0';
	say(v, "; no entry can name %s", v->target.is_address ? "an IPv6 address" : "such a name");
}

static struct kr_mark
mark_of(const struct kr_mark *marks, size_t marked, size_t index)
{
	return index < marked ? marks[index] : (struct kr_mark){ 0 };
}

/* ---- deciding ---- */

static void
refuse_always(struct kr_verdict *v)
{
	v->decision = KR_HOST_ALWAYS;
	v->entry = NULL;
	v->mark = (struct kr_mark){ 0 };
	v->grant[0] = '\0';
	v->reason[0] = '\0';
}

static void
decide_by_lists(const struct kr_host_list *list, struct kr_verdict *v)
{
	const struct kr_target *t = &v->target;
	const char *phase = kr_phase_name(v->phase);
	struct match deny = { 0 }, allow = { 0 };

	find_denied(&list->deny, t, &deny);
	find_entry(&list->allow, t->host, t->is_address, t->port, &allow);
	v->exact = allow.exact;
	if (deny.found) {
		v->decision = KR_HOST_DENIED;
		v->entry = list->deny.v[deny.index];
		v->mark = mark_of(list->deny_marks, list->deny_marked, deny.index);
		say(v, "'%s' is on the deny list of the %s phase, as '%s', and deny wins over allow", t->host, phase,
			v->entry);
	} else if (allow.found) {
		v->decision = KR_HOST_ALLOWED;
		v->entry = list->allow.v[allow.index];
		v->mark = mark_of(list->allow_marks, list->allow_marked, allow.index);
		say(v, "'%s' port %u is on the allow list of the %s phase, as '%s'", t->host, t->port, phase,
			v->entry);
	} else {
		v->decision = KR_HOST_UNLISTED;
		say(v, "'%s' port %u is not on the allow list of the %s phase", t->host, t->port, phase);
		say_near_miss(v, &list->allow);
		offer_grant(v);
	}
}

/* Names the address, and where it is not the host's own spelling how the two hang together. */
static void
say_address(struct kr_verdict *v, const struct kr_address *address, const struct kr_address_report *report)
{
	char text[KR_ADDRESS_TEXT], inner[KR_ADDRESS_TEXT];

	kr_address_format(address, text);
	if (v->target.is_address)
		say(v, "'%s' ", text);
	else
		say(v, "'%s' has the address %s, which ", v->target.host, text);
	if (report->form) {
		kr_address_format(&report->inner, inner);
		say(v, "stands for %s (%s) and so ", inner, report->form);
	}
	say(v, "is %s: %s (%s)", kr_address_class_words(report->class), report->what, report->source);
}

void
kr_address_decide(const struct kr_verdict *host, const struct kr_address *address,
	const struct kr_addresses *own, struct kr_verdict *out)
{
	struct kr_address_report report;
	struct kr_verdict v = *host;

	kr_address_classify(address, own, &report);
	if (v.decision == KR_HOST_ALWAYS) {
		;
	} else if (kr_address_is_always_denied(report.class)) {
		refuse_always(&v);
		say_address(&v, address, &report);
		say(&v, "; such an address is refused whatever the lists say");
	} else if (v.decision == KR_HOST_ALLOWED && report.class == KR_ADDRESS_PRIVATE && !v.exact) {
		v.decision = KR_HOST_INEXACT;
		v.reason[0] = '\0';
		say_address(&v, address, &report);
		say(&v, "; such an address needs an allow entry that names the host itself, and '%s' does not",
			v.entry);
		offer_grant(&v);
	}
	*out = v;
}

void
kr_host_decide(const struct kr_host_list *list, enum kr_phase phase, const struct kr_target *target,
	const struct kr_addresses *own, struct kr_verdict *out)
{
	struct kr_verdict v = { .phase = phase, .target = *target };
	const char *closed = target->is_address ? NULL : closed_name(target->host);

	if (closed) {
		refuse_always(&v);
		say(&v, "'%s' is %s, which is refused whatever the lists say", target->host, closed);
	} else {
		decide_by_lists(list, &v);
		if (target->is_address)
			kr_address_decide(&v, &target->address, own, &v);
	}
	*out = v;
}
