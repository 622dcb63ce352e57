/*
 * The CA that containers trust beside the roots of their image: which file it is, and what of it is theirs to
 * see.
 *
 * sandbox.yaml's `ca_bundle` was asked for, so one that cannot be used stops every task. SSL_CERT_FILE is
 * there for other programs as well, so one that cannot be used is only said (doctor). Of either nothing but
 * its certificates is taken: a file that also holds a key, as those of small proxies do, must not bring it
 * into a container. The lists of revoked certificates in it are for what verifies hosts on this side of the walls.
 */
#include <fcntl.h>

#include "backend/container.h"
#include "base/fd.h"
#include "base/path.h"

struct label {
	const char *begins, *ends;
};
static const struct label certificate = { "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----" };
static const struct label revocations = { "-----BEGIN X509 CRL-----", "-----END X509 CRL-----" };

/* The line at `at`, without its end and the blanks before it. */
static size_t
line_length(const char *at, size_t left)
{
	const char *end = memchr(at, '\n', left);
	size_t n = end ? (size_t)(end - at) : left;

	while (n && strchr(" \t\r", at[n - 1]))
		n--;
	return n;
}

static bool
is_base64(const char *at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!(at[i] >= 'A' && at[i] <= 'Z') && !(at[i] >= 'a' && at[i] <= 'z') &&
			!(at[i] >= '0' && at[i] <= '9') && at[i] != '+' && at[i] != '/' && at[i] != '=')
			return false;
	return true;
}

static bool
is_line(const char *at, size_t n, const char *text)
{
	return n == strlen(text) && memcmp(at, text, n) == 0;
}

/* Adds the whole blocks. Returns how many. */
static size_t
add_blocks(const struct label *label, const char *bytes, size_t size, struct kr_buf *out)
{
	kr_auto_buf struct kr_buf block = KR_BUF(KR_CA_BYTES);
	bool inside = false;
	size_t count = 0;

	for (const char *at = bytes, *end = bytes + size; at < end;) {
		const char *next = memchr(at, '\n', (size_t)(end - at));
		size_t n = line_length(at, (size_t)(end - at));

		if (is_line(at, n, label->begins)) {
			inside = true;
			block.len = 0;
			kr_buf_addf(&block, "%s\n", label->begins);
		} else if (inside && is_line(at, n, label->ends) && block.len > strlen(label->begins) + 1) {
			inside = false;
			kr_buf_addf(&block, "%s\n", label->ends);
			kr_buf_add(out, block.data, block.len);
			count++;
		} else if (inside && n) {
			inside = is_base64(at, n);
			kr_buf_addf(&block, "%.*s\n", (int)n, at);
		}
		at = next ? next + 1 : end;
	}
	return count;
}

size_t
kr_ca_certificates(const char *bytes, size_t n, struct kr_buf *out)
{
	return add_blocks(&certificate, bytes, n, out);
}

bool
kr_ca_revocations(const char *bytes, size_t n, struct kr_buf *out)
{
	static const char begun[] = "BEGIN X509 CRL";
	const char *end = bytes + n;
	size_t count = 0;

	for (const char *at = bytes; (at = memmem(at, (size_t)(end - at), begun, sizeof(begun) - 1)); at++)
		count++;
	return add_blocks(&revocations, bytes, n, out) == count;
}

/* NULL with why, of KR_E_CONFIG. */
static int
read_bundle(struct kr_arena *arena, const char *path, struct kr_ca *out, struct kr_error *why)
{
	kr_auto_buf struct kr_buf bytes = KR_BUF(KR_CA_BYTES), pem = KR_BUF(KR_CA_BYTES), revoked = KR_BUF(KR_CA_BYTES);

	if (path[0] != '/')
		return kr_fail(why, KR_E_CONFIG, "'%s' is not an absolute path", path);
	if (kr_file_read_at(AT_FDCWD, path, &bytes, why) < 0) {
		why->code = KR_E_CONFIG;
		return -1;
	}
	if (!kr_ca_certificates(bytes.data ? bytes.data : "", bytes.len, &pem))
		return kr_fail(why, KR_E_CONFIG, "'%s' holds no certificate in PEM form", path);
	if (!kr_ca_revocations(bytes.data, bytes.len, &revoked))
		return kr_fail(why, KR_E_CONFIG, "'%s' holds a list of revoked certificates (X509 CRL) that is not whole", path);
	*out = (struct kr_ca){ .path = kr_arena_dup(arena, path),
		.pem = kr_arena_dup_n(arena, pem.data, pem.len),
		.pem_len = pem.len,
		.revoked = kr_arena_dup_n(arena, revoked.data ? revoked.data : "", revoked.len),
		.revoked_len = revoked.len };
	return 0;
}

int
kr_ca_extra(struct kr_arena *arena, const struct kr_host *host, const struct kr_sandbox_file *file,
	struct kr_ca *out, struct kr_error *err)
{
	const char *variable = kr_host_env(host, "SSL_CERT_FILE");
	struct kr_error why = { 0 };
	struct kr_ca ca = { 0 };

	if (file->ca_bundle) {
		if (read_bundle(arena, file->ca_bundle, out, &why) == 0)
			return 0;
		snprintf(why.place.path, sizeof(why.place.path), "%s", file->file);
		why.place.line = file->ca_bundle_mark.line;
		why.place.column = file->ca_bundle_mark.column;
		kr_wrap(&why, "'ca_bundle' cannot be used");
		kr_hint(&why, "name a file of PEM certificates that kraft can read, or take the key away");
		if (err)
			*err = why;
		return -1;
	}
	if (variable && *variable && read_bundle(arena, variable, &ca, &why) < 0)
		ca.ignored = kr_arena_dup(arena, why.message);
	*out = ca;
	return 0;
}
