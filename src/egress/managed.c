/*
 * The rules and values of a session as bytes: kraft packs them, its kraft-egress-tls unpacks them, in memory of their own that
 * both wipe. Both ends are the same build on the same machine, so numbers are in host byte order; everything is checked all
 * the same, field by field, because what comes out is believed from then on.
 *
 *     magic, the counts, then of each rule its port and its texts (length, bytes, NUL), then roots and authority likewise
 *
 * Unpacked strings are the packed bytes themselves, which must outlive them: there is one copy of a value to wipe.
 */
#include "egress/managed.h"

#include "base/portable.h"

enum {
	HEADER_BYTES = 128,
	FORMAT_BYTES = 256,
	NAME_BYTES = 256,     /* of a variable */
	SENTINEL_LEAST = 22,  /* characters: 128 bits of letters and digits */
	NO_VALUE = -1,
};

static const char magic[8] = "krmng 1"; /* with its NUL */

/* ---- what may be in it ---- */

static bool
is_printable(const char *text, size_t least, size_t most)
{
	size_t n = text ? strnlen(text, most + 1) : 0;

	for (size_t i = 0; i < n; i++)
		if (text[i] < 0x20 || text[i] > 0x7e)
			return false;
	return text && n >= least && n <= most;
}

static bool
has_blank_ends(const char *text)
{
	return text[0] == ' ' || (text[0] && text[strlen(text) - 1] == ' ');
}

/* A token of RFC 9110 in lower case, and none that says how a message is framed or where it goes. */
static bool
is_header(const char *text)
{
	static const char *const others[] = { "host", "connection", "proxy-connection", "keep-alive", "te", "trailer", "upgrade",
		"http2-settings", "transfer-encoding", "content-length", "proxy-authorization", "expect" };

	if (!is_printable(text, 1, HEADER_BYTES))
		return false;
	for (const char *at = text; *at; at++)
		if (!((*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9') || strchr("!#$%&'*+-.^_`|~", *at)))
			return false;
	for (size_t i = 0; i < KR_COUNT(others); i++)
		if (strcmp(text, others[i]) == 0)
			return false;
	return true;
}

static bool
is_format(const char *text)
{
	const char *first;

	if (!is_printable(text, 2, FORMAT_BYTES) || has_blank_ends(text))
		return false;
	first = strchr(text, '%');
	return first && first[1] == 's' && !strchr(first + 1, '%');
}

static bool
is_host(const char *text)
{
	struct kr_target target;

	return is_printable(text, 1, KR_HOST_MAX) && kr_target_of_host(text, &target);
}

/* NULL: it is good. */
static const char *
wrong_with(const struct kr_managed_rule *rule)
{
	if (!is_host(rule->host) || !rule->port)
		return "its host is none, or not written in the one way that is canonical";
	if (!is_header(rule->header))
		return "its header is no field name in lower case that a credential can be in";
	if (!is_format(rule->format))
		return "its format is not printable ASCII with exactly one '%s'";
	if (!is_printable(rule->sentinel, SENTINEL_LEAST, KR_MANAGED_SENTINEL_BYTES) || strchr(rule->sentinel, ' '))
		return "its sentinel is too short or too long, or not printable ASCII without a blank";
	if (!is_printable(rule->variable, 1, NAME_BYTES) || !is_printable(rule->source, 1, NAME_BYTES))
		return "the name of its variable is not printable ASCII";
	if (rule->value && (!is_printable(rule->value, 1, KR_MANAGED_VALUE_BYTES) || has_blank_ends(rule->value)))
		return "the secret is empty, longer than 16 KiB, or not printable ASCII without blanks at its ends";
	return NULL;
}

bool
kr_managed_is_of(const struct kr_managed_rule *rule, const char *host, unsigned port)
{
	return rule->port == port && strcmp(rule->host, host) == 0;
}

static const char *
wrong_with_all(const struct kr_managed *managed, size_t *which)
{
	const char *wrong = NULL;

	*which = 0;
	for (size_t i = 0; i < managed->rule_count && !wrong; i++) {
		const struct kr_managed_rule *rule = &managed->rules[i];

		*which = i;
		wrong = wrong_with(rule);
		for (size_t k = 0; k < i && !wrong; k++)
			if (kr_managed_is_of(&managed->rules[k], rule->host, rule->port) &&
				strcmp(managed->rules[k].header, rule->header) == 0)
				wrong = "another rule of the same host has the same header";
	}
	return wrong;
}

int
kr_managed_check(const struct kr_managed *managed, struct kr_error *err)
{
	const char *wrong;
	size_t which;

	if (!managed->rule_count || managed->rule_count > KR_MANAGED_RULES)
		return kr_fail(err, KR_E_LIMIT, "a session has from 1 to %d managed credentials, not %zu", KR_MANAGED_RULES,
			managed->rule_count);
	wrong = wrong_with_all(managed, &which);
	if (wrong)
		return kr_fail(err, KR_E_CONFIG, "the credential '%s' cannot be managed: %s",
			managed->rules[which].variable ? managed->rules[which].variable : "", wrong);
	if (!managed->roots || !managed->roots_bytes || managed->roots_bytes > KR_MANAGED_ROOTS_BYTES)
		return kr_fail(err, KR_E_LIMIT, "the certificates that hosts are verified with are none, or more than %d MiB",
			KR_MANAGED_ROOTS_BYTES >> 20);
	return 0;
}

/* A certificate and its key, a NUL behind each. */
bool
kr_managed_is_authority(const char *bytes, size_t n)
{
	static const char begin[] = "-----BEGIN CERTIFICATE-----\n", key[] = "-----BEGIN PRIVATE KEY-----\n";
	const char *end = n > sizeof(begin) && n <= KR_MANAGED_AUTHORITY_BYTES ? memchr(bytes, '\0', n) : NULL;
	size_t rest = end ? n - (size_t)(end + 1 - bytes) : 0;

	return end && strncmp(bytes, begin, sizeof(begin) - 1) == 0 && rest > sizeof(key) && bytes[n - 1] == '\0' &&
		   strlen(end + 1) == rest - 1 && strncmp(end + 1, key, sizeof(key) - 1) == 0;
}

/* ---- packed ---- */

static void
add_number(struct kr_buf *out, uint32_t number)
{
	kr_buf_add(out, &number, sizeof(number));
}

static void
add_bytes(struct kr_buf *out, const char *bytes, size_t n)
{
	add_number(out, bytes ? (uint32_t)n : (uint32_t)NO_VALUE);
	if (!bytes)
		return;
	kr_buf_add(out, bytes, n);
	kr_buf_add(out, "", 1);
}

/* The fields that are texts, in the order in which they are packed. */
#define TEXTS(X) X(host) X(header) X(format) X(sentinel) X(variable) X(source) X(value)

/* One allocation, so that no growing leaves a copy behind. */
static size_t
packed_size(const struct kr_managed *managed)
{
	size_t n = sizeof(magic) + sizeof(uint32_t) + 2 * (sizeof(uint32_t) + 1) + managed->roots_bytes + managed->authority_bytes;

	for (size_t i = 0; i < managed->rule_count; i++) {
		n += sizeof(uint32_t);
#define X(text) n += sizeof(uint32_t) + (managed->rules[i].text ? strlen(managed->rules[i].text) + 1 : 0);
		TEXTS(X)
#undef X
	}
	return n;
}

int
kr_managed_pack(const struct kr_managed *managed, struct kr_buf *out, struct kr_error *err)
{
	if (kr_managed_check(managed, err) < 0)
		return -1;
	if (!kr_managed_is_authority(managed->authority, managed->authority_bytes))
		return kr_fail(err, KR_E_WALL, "the session's own certificate authority is not what kraft-egress-tls makes");
	*out = KR_BUF(KR_MANAGED_PACKED_BYTES);
	kr_buf_reserve(out, packed_size(managed) + 1);
	kr_buf_add(out, magic, sizeof(magic));
	add_number(out, (uint32_t)managed->rule_count);
	for (size_t i = 0; i < managed->rule_count; i++) {
		const struct kr_managed_rule *rule = &managed->rules[i];

		add_number(out, rule->port);
#define X(text) add_bytes(out, rule->text, rule->text ? strlen(rule->text) : 0);
		TEXTS(X)
#undef X
	}
	add_bytes(out, managed->roots, managed->roots_bytes);
	add_bytes(out, managed->authority, managed->authority_bytes);
	KR_BUG_IF(out->overflow || out->len != packed_size(managed));
	return 0;
}

void
kr_managed_wipe(struct kr_buf *packed)
{
	if (packed->data)
		kr_wipe(packed->data, packed->cap);
	kr_buf_fini(packed);
}

/* ---- unpacked ---- */

struct reader {
	const char *at;
	size_t left;
	bool is_bad;
};

static uint32_t
read_number(struct reader *in)
{
	uint32_t number = 0;

	if (in->left < sizeof(number)) {
		in->is_bad = true;
		return 0;
	}
	memcpy(&number, in->at, sizeof(number));
	in->at += sizeof(number);
	in->left -= sizeof(number);
	return number;
}

static const char *
read_bytes(struct reader *in, size_t *n)
{
	const char *bytes;

	*n = read_number(in);
	bytes = in->at;
	if (in->is_bad || *n == (uint32_t)NO_VALUE)
		return NULL;
	if (in->left <= *n || bytes[*n]) {
		in->is_bad = true;
		return NULL;
	}
	in->at += *n + 1;
	in->left -= *n + 1;
	return bytes;
}

/* Not NULL, unless there is none; no NUL in it. */
static const char *
read_text(struct reader *in)
{
	size_t n;
	const char *text = read_bytes(in, &n);

	if (text && strlen(text) != n)
		in->is_bad = true;
	return text;
}

bool
kr_managed_unpack(struct kr_arena *arena, const char *bytes, size_t n, struct kr_managed *out)
{
	struct reader in = { .is_bad = false };
	struct kr_managed found = { 0 };
	struct kr_managed_rule *rules;
	size_t which;

	if (n < sizeof(magic) || n > KR_MANAGED_PACKED_BYTES || memcmp(bytes, magic, sizeof(magic)) != 0)
		return false;
	in = (struct reader){ .at = bytes + sizeof(magic), .left = n - sizeof(magic) };
	found.rule_count = read_number(&in);
	if (in.is_bad || !found.rule_count || found.rule_count > KR_MANAGED_RULES)
		return false;
	rules = kr_arena_alloc(arena, found.rule_count * sizeof(*rules));
	for (size_t i = 0; i < found.rule_count && !in.is_bad; i++) {
		uint32_t port = read_number(&in);

		in.is_bad |= port > UINT16_MAX;
		rules[i].port = (uint16_t)port;
#define X(text) rules[i].text = read_text(&in);
		TEXTS(X)
#undef X
	}
	found.rules = rules;
	found.roots = read_bytes(&in, &found.roots_bytes);
	found.authority = read_bytes(&in, &found.authority_bytes);
	if (in.is_bad || in.left || !found.roots || !found.authority || wrong_with_all(&found, &which) || !found.roots_bytes ||
		found.roots_bytes > KR_MANAGED_ROOTS_BYTES || !kr_managed_is_authority(found.authority, found.authority_bytes))
		return false;
	*out = found;
	return true;
}
