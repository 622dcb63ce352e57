/*
 * Refs as data. Two kinds of reader use this file:
 *
 *   of a private git directory   a worker has written every byte of it and every name in it. Paths are opened
 * below a held descriptor without following a link, without blocking, and judged by the descriptor; what is
 * no plain value is no value. Git may take more (symbolic refs, links, upper case): a branch that reaches its
 * commit that way is not published. of the person's repository   refs_snapshot.c, with the same parsers
 *
 * The loose file is read before packed-refs, because git packs in the other order: writes packed-refs, then
 * removes the loose file. So a value is never missed in between.
 */
#include "git/refs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/portable.h"
#include "base/text.h"
#include "git/internal.h"

enum { LOOSE_BYTES = 256 };

/* ---- parsers ---- */

bool
kr_oid_is_valid(const char *text, size_t n)
{
	if (n != 40 && n != 64)
		return false;
	for (size_t i = 0; i < n; i++)
		if ((text[i] < '0' || text[i] > '9') && (text[i] < 'a' || text[i] > 'f'))
			return false;
	return true;
}

/* Zeroes are git's word for "no object": as a new value they would delete a branch. */
static bool
is_null(const char *oid, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (oid[i] != '0')
			return false;
	return true;
}

static bool
is_component(const char *s, size_t n)
{
	if (n == 0 || s[0] == '.' || (n >= 5 && memcmp(s + n - 5, ".lock", 5) == 0))
		return false;
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c <= ' ' || c == 0x7f || strchr("~^:?*[\\", c))
			return false;
		if (i && ((c == '.' && s[i - 1] == '.') || (c == '{' && s[i - 1] == '@')))
			return false;
	}
	return true;
}

bool
kr_ref_name_is_valid(const char *name, size_t n)
{
	if (n <= 5 || n > KR_REF_NAME_MAX || name[n - 1] == '.' || memcmp(name, "refs/", 5) != 0)
		return false;
	for (size_t at = 5; at <= n;) {
		const char *slash = memchr(name + at, '/', n - at);
		size_t len = slash ? (size_t)(slash - name) - at : n - at;

		if (!is_component(name + at, len))
			return false;
		at += len + 1;
	}
	return true;
}

bool
kr_ref_file_parse(const char *bytes, size_t n, char oid[KR_OID_HEX_MAX + 1])
{
	if (n && bytes[n - 1] == '\n')
		n--;
	if (!kr_oid_is_valid(bytes, n) || is_null(bytes, n))
		return false;
	memcpy(oid, bytes, n);
	oid[n] = '\0';
	return true;
}

/* The line at *at without its newline; moves *at behind it. A last line without a newline may be cut off: it
 * is none. */
static bool
next_line(const char *bytes, size_t n, size_t *at, const char **line, size_t *len)
{
	const char *stop = *at < n ? memchr(bytes + *at, '\n', n - *at) : NULL;

	if (!stop)
		return false;
	*line = bytes + *at;
	*len = (size_t)(stop - *line);
	*at += *len + 1;
	return true;
}

static bool
parse_entry(const char *line, size_t len, struct kr_packed_ref *out)
{
	const char *space = memchr(line, ' ', len);
	struct kr_packed_ref ref = { .oid = line };

	if (!space)
		return false;
	ref.oid_len = (size_t)(space - line);
	ref.name = space + 1;
	ref.name_len = len - ref.oid_len - 1;
	if (!kr_oid_is_valid(ref.oid, ref.oid_len) || is_null(ref.oid, ref.oid_len) ||
		!kr_ref_name_is_valid(ref.name, ref.name_len))
		return false;
	*out = ref;
	return true;
}

bool
kr_packed_refs_next(const char *bytes, size_t n, size_t *at, struct kr_packed_ref *out)
{
	const char *line;
	size_t len;

	while (next_line(bytes, n, at, &line, &len)) {
		size_t behind = *at;

		if (!parse_entry(line, len, out))
			continue;
		if (next_line(bytes, n, &behind, &line, &len) && len == out->oid_len + 1 && line[0] == '^' &&
			kr_oid_is_valid(line + 1, len - 1)) {
			out->peeled = line + 1;
			*at = behind;
		}
		return true;
	}
	return false;
}

/* The name is looked for, and only its line is read: a repository may have a hundred thousand refs. */
int
kr_packed_refs_find(const char *bytes, size_t n, const char *ref, char oid[KR_OID_HEX_MAX + 1])
{
	const size_t ref_len = strlen(ref);
	const char *end = bytes + n;

	if (n > KR_PACKED_REFS_BYTES)
		return -1;
	for (const char *at = bytes; (at = memmem(at, (size_t)(end - at), ref, ref_len)); at++) {
		const char *before = kr_memrchr(bytes, '\n', (size_t)(at - bytes));
		const char *line = before ? before + 1 : bytes;
		struct kr_packed_ref found;

		/* A last line without a newline may be cut off. */
		if (at + ref_len == end || at[ref_len] != '\n' ||
			!parse_entry(line, (size_t)(at - line) + ref_len, &found) || found.name != at)
			continue;
		memcpy(oid, found.oid, found.oid_len);
		oid[found.oid_len] = '\0';
		return 1;
	}
	return 0;
}

/* ---- what a worker wrote ---- */

enum reading { READ, NOTHING, NO_PLAIN_FILE, FAILED };

/* A file of at most buf->max bytes. */
static enum reading
read_hostile(int dir_fd, const char *path, struct kr_buf *buf, struct kr_error *err)
{
	kr_auto_fd int fd = kr_path_open_below(dir_fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return NOTHING;
	if (fd < 0 && (errno == ELOOP || errno == ENXIO)) /* a link, a socket */
		return NO_PLAIN_FILE;
	if (fd < 0 || fstat(fd, &st) < 0) {
		kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot open '%s' of the private git directory", path);
		return FAILED;
	}
	if (!S_ISREG(st.st_mode))
		return NO_PLAIN_FILE;
	return kr_read_all(fd, buf, path, err) < 0 ? FAILED : READ;
}

static int
find_packed(int dir_fd, const char *ref, char oid[KR_OID_HEX_MAX + 1], struct kr_error *err)
{
	kr_auto_buf struct kr_buf buf = KR_BUF(KR_PACKED_REFS_BYTES);

	switch (read_hostile(dir_fd, "packed-refs", &buf, err)) {
	case NOTHING:
	case NO_PLAIN_FILE:
		return 0;
	case FAILED:
		return -1;
	case READ:
		break;
	}
	return buf.len ? kr_packed_refs_find(buf.data, buf.len, ref, oid) : 0;
}

int
kr_ref_of_branch(const char *branch, char ref[KR_REF_NAME_MAX + 1], struct kr_error *err)
{
	int n = snprintf(ref, KR_REF_NAME_MAX + 1, "refs/heads/%s", branch);

	if (n <= 0 || n > KR_REF_NAME_MAX || !kr_ref_name_is_valid(ref, (size_t)n))
		return kr_fail(err, KR_E_REFUSED, "'%s' cannot be the name of a branch", branch);
	return 0;
}

int
kr_ref_read_hostile(int dir_fd, const char *branch, char oid[KR_OID_HEX_MAX + 1], struct kr_error *err)
{
	kr_auto_buf struct kr_buf buf = KR_BUF(LOOSE_BYTES);
	struct kr_error failed = { 0 };
	char ref[KR_REF_NAME_MAX + 1];

	if (kr_ref_of_branch(branch, ref, err) < 0)
		return -1;
	switch (read_hostile(dir_fd, ref, &buf, &failed)) {
	case NOTHING:
		return find_packed(dir_fd, ref, oid, err);
	case NO_PLAIN_FILE:
		return 0;
	case READ:
		return kr_ref_file_parse(buf.data ? buf.data : "", buf.len, oid);
	case FAILED:
		break;
	}
	if (failed.code == KR_E_LIMIT) /* longer than any value */
		return 0;
	if (err)
		*err = failed;
	return -1;
}
