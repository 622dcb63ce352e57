/*
 * The token: 43 letters in a file that only we can read. Whoever has it acts for us; a session has it never,
 * since the run directory is not in its walls.
 *
 * The cookie of a login holds when it ends, and HMAC-SHA-256 of that with the token as key and the password's
 * hash in the text. So nothing is kept on our side, every process of the server can judge it, and a new
 * password or a new token ends all logins.
 */
#include "api/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/portable.h"
#include "base/sha256.h"
#include "base/text.h"

/* ---- the file ---- */

static bool
is_token(const char *text, size_t n)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

	return n == KR_API_TOKEN_CHARS && strspn(text, letters) == n;
}

static const char *
new_token(struct kr_arena *arena, struct kr_error *err)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	unsigned char bytes[KR_API_TOKEN_CHARS];
	char *out = kr_arena_alloc(arena, sizeof(bytes) + 1);

	if (!kr_random(bytes, sizeof(bytes))) {
		kr_fail(err, KR_E_SYSTEM, "the system gives no random bytes");
		return NULL;
	}
	for (size_t i = 0; i < sizeof(bytes); i++)
		out[i] = letters[bytes[i] & 63];
	return out;
}

static int
check_file(int fd, const char *path, struct kr_error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot look at '%s'", path);
	if (S_ISREG(st.st_mode) && st.st_uid == geteuid() && !(st.st_mode & 077))
		return 0;
	kr_fail(err, KR_E_REFUSED, "'%s' is not a file of yours that only you can read", path);
	return kr_hint(err, "remove it: the next start makes a new one");
}

/* 1: read; 0: there is none. */
static int
read_token(struct kr_arena *arena, const char *path, const char **out, struct kr_error *err)
{
	kr_auto_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	kr_auto_buf struct kr_buf text = KR_BUF(256);
	size_t n;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return kr_fail_errno(
			err, errno == ELOOP ? KR_E_REFUSED : KR_E_SYSTEM, errno, "cannot open '%s'", path);
	if (check_file(fd, path, err) < 0 || kr_read_all(fd, &text, path, err) < 0)
		return -1;
	n = text.data ? strcspn(text.data, "\n") : 0;
	if (!is_token(text.data ? text.data : "", n) || text.len > n + 1) {
		kr_fail(err, KR_E_REFUSED, "'%s' holds no token", path);
		return kr_hint(err, "remove it: the next start makes a new one");
	}
	*out = kr_arena_dup_n(arena, text.data, n);
	return 1;
}

/* Under its name it appears whole, and never in place of one that is there. */
static int
make_token(struct kr_arena *arena, const char *path, struct kr_error *err)
{
	const char *token = new_token(arena, err), *line, *name;
	kr_auto_fd int fd = -1;
	int result = 0;

	if (!token)
		return -1;
	line = kr_arena_printf(arena, "%s\n", token);
	name = kr_arena_printf(arena, "%s.%d", path, (int)getpid());
	(void)unlink(name); /* of a process that was cut off */
	fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make '%s'", name);
	if (kr_write_all(fd, line, strlen(line), err) < 0 || fsync(fd) < 0)
		result = -1;
	if (result == 0 && link(name, path) < 0 && errno != EEXIST)
		result = kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make '%s'", path);
	(void)unlink(name);
	return result;
}

int
kr_api_token_look(struct kr_arena *arena, const struct kr_places *places, const char **out, struct kr_error *err)
{
	const char *path = kr_path_join(arena, places->run_dir, "token");

	*out = NULL;
	if (!path)
		return kr_fail(err, KR_E_LIMIT, "the path of '%s' is too long", places->run_dir);
	return read_token(arena, path, out, err) < 0 ? -1 : 0;
}

int
kr_api_token(struct kr_arena *arena, const struct kr_places *places, const char **out, struct kr_error *err)
{
	const char *path = kr_path_join(arena, places->run_dir, "token");
	int found;

	if (!path)
		return kr_fail(err, KR_E_LIMIT, "the path of '%s' is too long", places->run_dir);
	found = read_token(arena, path, out, err);
	if (found == 0) {
		if (make_token(arena, path, err) < 0)
			return -1;
		found = read_token(arena, path, out, err);
		if (found == 0)
			return kr_fail(err, KR_E_SYSTEM, "'%s' went as soon as it was made", path);
	}
	return found < 0 ? -1 : 0;
}

/* ---- the cookie ---- */

enum { BLOCK = 64, DIGEST = 32 };

static void
hash_to(const unsigned char *pad, const void *bytes, size_t n, char out[KR_SHA256_HEX + 1])
{
	struct kr_sha256 sha;

	kr_sha256_init(&sha);
	kr_sha256_add(&sha, pad, BLOCK);
	kr_sha256_add(&sha, bytes, n);
	kr_sha256_hex(&sha, out);
}

static unsigned char
nibble(char c)
{
	return (unsigned char)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* RFC 2104; a token is shorter than a block. */
static void
hmac(const char *key, const char *text, char out[KR_SHA256_HEX + 1])
{
	unsigned char inner[BLOCK] = { 0 }, outer[BLOCK] = { 0 }, digest[DIGEST];
	size_t n = strlen(key);

	KR_BUG_IF(n > BLOCK);
	memcpy(inner, key, n);
	memcpy(outer, key, n);
	for (size_t i = 0; i < BLOCK; i++) {
		inner[i] ^= 0x36;
		outer[i] ^= 0x5c;
	}
	hash_to(inner, text, strlen(text), out);
	for (size_t i = 0; i < DIGEST; i++)
		digest[i] = (unsigned char)(nibble(out[2 * i]) << 4 | nibble(out[2 * i + 1]));
	hash_to(outer, digest, sizeof(digest), out);
}

const char *
kr_api_cookie_make(struct kr_arena *arena, const struct kr_api *api, uint64_t expires_s)
{
	char mac[KR_SHA256_HEX + 1];

	hmac(api->token,
		kr_arena_printf(arena, "login %llu %s", (unsigned long long)expires_s,
			api->access->password_hash ? api->access->password_hash : ""),
		mac);
	return kr_arena_printf(arena, "%llu.%s", (unsigned long long)expires_s, mac);
}

bool
kr_api_cookie_holds(struct kr_arena *arena, const struct kr_api *api, const char *value, uint64_t now_s)
{
	const char *dot = strchr(value, '.');
	uint64_t expires_s;

	if (!api->access->password_hash || !dot ||
		!kr_text_to_u64(kr_arena_dup_n(arena, value, (size_t)(dot - value)), INT64_MAX, &expires_s))
		return false;
	return kr_api_same_secret(value, kr_api_cookie_make(arena, api, expires_s)) && expires_s > now_s;
}
