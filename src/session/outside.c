#include "session/outside.h"

#include <fcntl.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "policy/policy.h"

enum { MOUNTS_BYTES = 1 << 20 };

/* ---- finding ---- */

/* What may stand before a path in messages: "'/x", "(/x)", "A=/x", "error:/x", "-I/x" does not count. */
static bool
opens_path(unsigned char c)
{
	return c <= ' ' || c == 0x7f || strchr("'\"`([{<=:,;|", c) != NULL;
}

static bool
ends_path(unsigned char c)
{
	return c <= ' ' || c == 0x7f || strchr("'\"`()[]{}<>:,;|*?$&!\\", c) != NULL;
}

/* Length of the escape sequence at s, which starts with ESC: control sequences and strings whole, others two
 * bytes. */
static size_t
escape_length(const char *s, size_t n)
{
	size_t i = 2;

	if (n < 2)
		return n;
	if (s[1] == '[') {
		while (i < n && !(s[i] >= 0x40 && s[i] <= 0x7e))
			i++;
		return i < n ? i + 1 : n;
	}
	if (s[1] == ']' || s[1] == 'P') {
		while (i < n && s[i] != '\a' && s[i] != '\033')
			i++;
		if (i + 1 < n && s[i] == '\033' && s[i + 1] == '\\')
			return i + 2;
		return i < n && s[i] == '\a' ? i + 1 : i;
	}
	return 2;
}

static size_t
path_length(const char *s, size_t n)
{
	size_t len = 0;

	while (len < n && !ends_path((unsigned char)s[len]))
		len++;
	while (len > 1 && (s[len - 1] == '.' || s[len - 1] == '/'))
		len--; /* the full stop of a sentence; a slash says no more */
	return len;
}

/* Cleans in place what kr_path_clean would: by hand, since a scan of 64 KiB must not fill an arena. */
static bool
copy_clean(const char *s, size_t len, char path[KR_OUTSIDE_PATH])
{
	size_t used = 0;

	if (len < 2 || len >= KR_OUTSIDE_PATH || s[1] == '/')
		return false; /* "/" alone, or the rest of "https://host/" */
	for (size_t i = 0; i < len;) {
		size_t part = 0;

		i++; /* its slash */
		while (i + part < len && s[i + part] != '/')
			part++;
		if (part == 2 && s[i] == '.' && s[i + 1] == '.')
			return false; /* lexically and really are two things, and nothing here resolves */
		if (part && !(part == 1 && s[i] == '.')) {
			path[used++] = '/';
			memcpy(path + used, s + i, part);
			used += part;
		}
		i += part;
	}
	path[used] = '\0';
	return used > 1;
}

bool
kr_outside_next(const char *bytes, size_t n, size_t *at, char path[KR_OUTSIDE_PATH])
{
	bool open = *at == 0 || opens_path((unsigned char)bytes[*at - 1]);

	while (*at < n) {
		const char *s = bytes + *at;
		size_t len;

		if (*s == '\033') {
			*at += escape_length(s, n - *at);
			open = true;
			continue;
		}
		if (*s != '/' || !open) {
			open = opens_path((unsigned char)*s);
			++*at;
			continue;
		}
		len = path_length(s, n - *at);
		*at += len;
		open = false;
		if (copy_clean(s, len, path))
			return true;
	}
	return false;
}

/* ---- judging ---- */

bool
kr_outside_is_visible(const struct kr_plan *plan, const char *path)
{
	const struct kr_step *best = NULL;

	for (size_t i = 0; i < plan->step_count; i++) {
		const struct kr_step *step = &plan->steps[i];

		if (step->kind == KR_STEP_READ_ONLY || !kr_path_is_within(path, step->path))
			continue;
		if (!best || strlen(step->path) >= strlen(best->path))
			best = step;
	}
	if (!best)
		return false;
	/* An empty file system has nothing of the host's but itself. */
	return best->kind != KR_STEP_TMPFS || strcmp(best->path, path) == 0;
}

/* Types of file systems whose look may go over a network, or to a program that does not answer. */
static bool
is_far(const char *type, size_t n)
{
	static const char *const far[] = { "autofs", "nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph",
		"lustre", "glusterfs", "ncpfs", "coda" };

	if (n >= 4 && strncmp(type, "fuse", 4) == 0)
		return true;
	for (size_t i = 0; i < KR_COUNT(far); i++)
		if (strlen(far[i]) == n && strncmp(type, far[i], n) == 0)
			return true;
	return false;
}

/* The octal escapes of mountinfo, undone. */
static char *
mount_point(struct kr_arena *arena, const char *s, size_t n)
{
	char *out = kr_arena_dup_n(arena, s, n), *to = out;

	for (const char *p = out; *p; p++) {
		if (*p == '\\' && p[1] >= '0' && p[1] <= '3' && p[2] && p[3]) {
			*to++ = (char)((p[1] - '0') << 6 | (p[2] - '0') << 3 | (p[3] - '0'));
			p += 3;
		} else {
			*to++ = *p;
		}
	}
	*to = '\0';
	return out;
}

/* "36 35 98:0 /root /point options... - type source options" per line: points of far file systems. */
static void
far_mounts(struct kr_arena *arena, const char *text, struct kr_strs *out)
{
	for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
		const char *p = line, *type;
		size_t n;

		end = line + strcspn(line, "\n");
		for (int field = 1; p && p < end && field < 5; field++)
			p = memchr(p, ' ', (size_t)(end - p)) ? strchr(p, ' ') + 1 : NULL;
		type = p ? memmem(p, (size_t)(end - p), " - ", 3) : NULL;
		if (!type)
			continue;
		n = strcspn(type + 3, " \n");
		if (is_far(type + 3, n))
			kr_strs_add(arena, out, mount_point(arena, p, strcspn(p, " ")));
	}
}

struct judge {
	struct kr_arena *arena;
	const struct kr_host *host;
	const struct kr_plan *plan;
	struct kr_strs far;
	struct kr_strs seen;
};

static bool
is_near(const struct judge *j, const char *path)
{
	static const char *const never[] = { "/proc", "/sys", "/dev", "/run", "/net", "/afs" };

	for (size_t i = 0; i < KR_COUNT(never); i++)
		if (kr_path_is_within(path, never[i]))
			return false;
	for (size_t i = 0; i < j->far.n; i++)
		if (kr_path_is_within(path, j->far.v[i]))
			return false;
	return true;
}

static const char *
as_expose(const struct judge *j, const char *path)
{
	const char *home = j->host->places.home;

	return kr_path_is_within(path, home) ? kr_arena_printf(j->arena, "~%s", path + strlen(home)) : path;
}

static bool
may_expose(const struct judge *j, const char *path)
{
	return !kr_protect_why(j->arena, &j->host->places, path);
}

/* A file's directory, since what lies beside it is needed as a rule; the file itself where that is refused.
 */
static const char *
proposal(const struct judge *j, const char *path, enum kr_fs_type type)
{
	const char *parent = kr_path_dirname(j->arena, path);

	if (type != KR_FS_DIR && parent[1] && strchr(parent + 1, '/') && may_expose(j, parent))
		return as_expose(j, parent);
	return may_expose(j, path) ? as_expose(j, path) : NULL;
}

/* Every look goes component by component, so that a link on the way does not lead to a place that was not
 * judged. */
static bool
exists(const struct judge *j, const char *path, enum kr_fs_type *type)
{
	char prefix[KR_OUTSIDE_PATH];

	for (const char *p = path;;) {
		size_t n;
		struct kr_fs_entry entry;

		p += strcspn(p + 1, "/") + 1;
		n = (size_t)(p - path);
		memcpy(prefix, path, n);
		prefix[n] = '\0';
		entry = j->host->fs->look(j->host->fs->context, prefix);
		*type = entry.type;
		if (!*p)
			return entry.type != KR_FS_NONE;
		if (entry.type != KR_FS_DIR)
			return false;
	}
}

static bool
judge(struct judge *j, const char *path, struct kr_outside *out)
{
	const char *expose;
	enum kr_fs_type type;

	if (kr_strs_has(&j->seen, path) || j->seen.n >= KR_OUTSIDE_LOOKS)
		return false;
	path = kr_arena_dup(j->arena, path);
	kr_strs_add(j->arena, &j->seen, path);
	if (kr_outside_is_visible(j->plan, path) || !is_near(j, path) || !exists(j, path, &type))
		return false;
	if (kr_path_is_within(path, j->plan->request->checkout)) {
		*out = (struct kr_outside){ .path = path };
		return true;
	}
	expose = proposal(j, path, type);
	if (!expose)
		return false;
	*out = (struct kr_outside){ .path = path, .expose = expose };
	return true;
}

size_t
kr_outside_find(struct kr_arena *arena, const struct kr_host *host, const struct kr_plan *plan,
	const char *bytes, size_t n, struct kr_outside out[KR_OUTSIDE_MAX])
{
	struct judge j = { .arena = arena, .host = host, .plan = plan };
	kr_auto_buf struct kr_buf mounts = KR_BUF(MOUNTS_BYTES);
	char path[KR_OUTSIDE_PATH];
	size_t at = 0, found = 0;

	if (kr_file_read_at(AT_FDCWD, "/proc/self/mountinfo", &mounts, NULL) < 0)
		return 0; /* without it nothing is known to be near */
	far_mounts(arena, mounts.data ? mounts.data : "", &j.far);
	while (found < KR_OUTSIDE_MAX && kr_outside_next(bytes, n, &at, path)) {
		bool again = false;

		if (!judge(&j, path, &out[found]))
			continue;
		for (size_t i = 0; i < found; i++)
			again = again || strcmp(out[i].expose ? out[i].expose : "",
								 out[found].expose ? out[found].expose : "") == 0;
		found += !again;
	}
	return found;
}

/* ---- messages ---- */

static const char *const no_network[] = { "Could not resolve", "Temporary failure in name resolution",
	"EAI_AGAIN", "getaddrinfo", "Network is unreachable", "ENETUNREACH", "dns error", NULL };

static const struct {
	const char *const *said;
	const char *remark;
} known[] = {
	{ no_network, "what does not use the proxy that HTTPS_PROXY names has no way out of the sandbox: no name "
				  "resolves inside" },
};

const char *
kr_outside_remark(const char *bytes, size_t n, size_t *at)
{
	while (*at < KR_COUNT(known)) {
		size_t i = (*at)++;

		for (const char *const *said = known[i].said; *said; said++)
			if (memmem(bytes, n, *said, strlen(*said)))
				return known[i].remark;
	}
	return NULL;
}
