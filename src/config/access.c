/*
 * access.yaml. The loader judges each value by itself; whether the address may be bound with what the file
 * says is a question of its own, since the command line can overrule the address.
 */
#include "config/access.h"

#include "base/path.h"
#include "base/text.h"
#include "config/schema.h"
#include "policy/policy.h"

enum { PORT = 8765, PORT_MAX = 65535, EXPIRY_DAYS = 7, EXPIRY_MAX = 365, HASH_BYTES = 256 };

#define BEGIN "'bind: 127.0.0.1'"

/* ---- values ---- */

const char *
kr_fault_bind(const char *text)
{
	struct kr_address address;

	return kr_address_parse(text, strlen(text), &address) ? NULL : "is no IPv4 or IPv6 address";
}

/* The two whose guesses cost memory; what crypt(3) has beside them was made to be fast. */
const char *
kr_fault_password_hash(const char *text)
{
	if (!kr_text_has_prefix(text, "$y$") && !kr_text_has_prefix(text, "$7$"))
		return "is no yescrypt or scrypt hash; 'kraft admin password' writes one";
	if (strlen(text) > HASH_BYTES)
		return "is too long for a hash";
	for (const char *c = text; *c; c++)
		if (*c <= ' ' || *c > '~' || strchr(":;*!\\", *c))
			return "holds what no hash does";
	return NULL;
}

const char *
kr_fault_allowed_host(const char *text)
{
	struct kr_target target;
	const char *why;

	if (!kr_target_parse(text, strlen(text), &target, &why))
		return "is no host's name";
	return target.port ? "has a port; every port is meant" : NULL;
}

static int
read_number(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, unsigned min,
	unsigned max, void *target)
{
	uint64_t number;

	if (!kr_text_to_u64(node->text, max, &number) || number < min)
		return kr_config_fail(c, node, "'%s' must be a whole number from %u to %u, not %s", key->name, min,
			max, kr_config_quote(c, node->text));
	*(unsigned *)target = (unsigned)number;
	return 0;
}

int
kr_port_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	return read_number(c, key, node, 0, PORT_MAX, target);
}

int
kr_expiry_read(struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	return read_number(c, key, node, 1, EXPIRY_MAX, target);
}

/* ---- the file ---- */

static int
parse(struct kr_config *c, const char *file, const char *bytes, size_t n, struct kr_yaml *doc,
	struct kr_access *out)
{
	struct kr_access access = { .bind = "127.0.0.1", .port = PORT, .session_expiry_days = EXPIRY_DAYS };

	if (kr_config_parse(c, file, bytes, n, doc, BEGIN) < 0 ||
		(doc->root && kr_section_read(c, KR_IN_ACCESS, doc->root, &access) < 0))
		return -1;
	*out = access;
	return 0;
}

int
kr_access_parse(struct kr_arena *arena, const struct kr_places *places, const char *file, const char *bytes,
	size_t n, struct kr_access *out, struct kr_error *err)
{
	struct kr_yaml doc = { 0 };
	struct kr_config c = {
		.arena = arena, .doc = &doc, .files = KR_IN_ACCESS_FILE, .places = places, .err = err
	};

	return parse(&c, kr_arena_dup(arena, file), bytes, n, &doc, out);
}

int
kr_access_load(
	struct kr_arena *arena, const struct kr_places *places, struct kr_access *out, struct kr_error *err)
{
	const char *file = kr_path_join(arena, places->config_dir, "access.yaml"), *bytes;
	bool is_missing;
	size_t n;

	if (!file)
		return kr_fail(err, KR_E_LIMIT, "the path of '%s' is too long", places->config_dir);
	if (kr_config_load(arena, file, "nothing listens until it can be read", &bytes, &n, &is_missing, err) < 0)
		return -1;
	return kr_access_parse(arena, places, file, bytes, n, out, err);
}

/* ---- what it comes to ---- */

/* Those two ranges, as they are: an address that only holds one of them is another one. */
bool
kr_access_is_loopback(const struct kr_access *access)
{
	static const uint8_t one[16] = { [15] = 1 };
	struct kr_address address;

	if (!kr_address_parse(access->bind, strlen(access->bind), &address))
		return false;
	return address.is_v6 ? memcmp(address.b, one, sizeof(one)) == 0 : address.b[0] == 127;
}

int
kr_access_may_bind(const struct kr_access *access, struct kr_error *err)
{
	if (access->password_hash || kr_access_is_loopback(access))
		return 0;
	kr_fail(err, KR_E_REFUSED, "'%s' is reached from other machines, and no password is set", access->bind);
	return kr_hint(err, "'kraft admin password' sets one; or bind 127.0.0.1");
}

/* ---- the hash put in ---- */

/* Where the old value stands; without one, a new line at the end, which a top in braces has no place for. */
static int
splice(const struct kr_yaml *doc, const char *hash, struct kr_buf *out, struct kr_error *err)
{
	const struct kr_yaml_node *old = doc->root ? kr_yaml_get(doc->root, "password_hash") : NULL;
	size_t to = doc->n, from = to;

	if (!old && doc->root && doc->root->flow) {
		kr_fail(err, KR_E_CONFIG, "'%s' is one mapping in braces, which a key is not put into", doc->file);
		return kr_hint(err, "write its keys on lines of their own, or password_hash: '%s'", hash);
	}
	if (old) {
		from = kr_yaml_offset(doc, &old->start);
		to = kr_yaml_offset(doc, &old->end);
	}
	kr_buf_add(out, doc->bytes, from);
	if (!old && out->len && out->data[out->len - 1] != '\n')
		kr_buf_adds(out, "\n");
	if (old)
		kr_buf_addf(
			out, "%s'%s'", from && doc->bytes[from - 1] == ':' ? " " : "", hash); /* null may be nothing */
	else
		kr_buf_addf(out, "password_hash: '%s'\n", hash);
	kr_buf_add(out, doc->bytes + to, doc->n - to);
	return 0;
}

int
kr_access_edit_hash(const struct kr_places *places, const char *file, const char *bytes, size_t n,
	const char *hash, struct kr_buf *out, struct kr_error *err)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_yaml doc = { 0 };
	struct kr_config c = {
		.arena = &arena, .doc = &doc, .files = KR_IN_ACCESS_FILE, .places = places, .err = err
	};
	struct kr_access before, after;

	if (parse(&c, file, bytes, n, &doc, &before) < 0 || splice(&doc, hash, out, err) < 0)
		return -1;
	if (out->overflow)
		return kr_fail(err, KR_E_LIMIT, "'%s' would be too long", file);
	if (kr_access_parse(&arena, places, file, out->data, out->len, &after, NULL) < 0 ||
		!after.password_hash || strcmp(after.password_hash, hash) != 0 || after.port != before.port ||
		strcmp(after.bind, before.bind) != 0) {
		kr_fail(err, KR_E_CONFIG, "'%s' is laid out so that the hash cannot be put in", file);
		return kr_hint(err, "put it in by hand: password_hash: '%s'", hash);
	}
	return 0;
}
