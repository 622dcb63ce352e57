#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __linux__
#include <linux/openat2.h>
#include <sys/syscall.h>
#endif

#include "base/fd.h"
#include "base/portable.h"

bool
kr_path_is_clean(const char *path)
{
	if (path[0] != '/' || strlen(path) >= KR_PATH_MAX)
		return false;
	if (path[1] == '\0')
		return true;
	while (*path == '/') {
		size_t n = strcspn(++path, "/");

		if (n == 0 || (n == 1 && path[0] == '.') || (n == 2 && path[0] == '.' && path[1] == '.'))
			return false;
		path += n;
	}
	return true;
}

const char *
kr_path_clean(struct kr_arena *arena, const char *path)
{
	size_t len = strlen(path), used = 0;
	char *out;

	if (path[0] != '/' || len >= KR_PATH_MAX)
		return NULL;
	out = kr_arena_alloc(arena, len + 2);
	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 2 && path[0] == '.' && path[1] == '.') {
			while (used && out[--used] != '/')
				;
		} else if (n && !(n == 1 && path[0] == '.')) {
			out[used++] = '/';
			memcpy(out + used, path, n);
			used += n;
		}
		path += n;
		path += *path == '/';
	}
	if (!used)
		out[used++] = '/';
	out[used] = '\0';
	return out;
}

const char *
kr_path_join(struct kr_arena *arena, const char *directory, const char *name)
{
	if (name[0] == '/')
		return kr_path_clean(arena, name);
	return kr_path_clean(arena, kr_arena_printf(arena, "%s/%s", directory, name));
}

const char *
kr_path_dirname(struct kr_arena *arena, const char *clean)
{
	const char *slash = strrchr(clean, '/');

	KR_BUG_IF(!slash);
	return slash == clean ? "/" : kr_arena_dup_n(arena, clean, (size_t)(slash - clean));
}

const char *
kr_path_basename(const char *clean)
{
	const char *slash = strrchr(clean, '/');

	return slash ? slash + 1 : clean;
}

bool
kr_path_is_within(const char *path, const char *directory)
{
	size_t n = strlen(directory);

	if (n == 1)
		return true;
	return strncmp(path, directory, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* The next character, as it is compared where case does not count: U+017F is an s then, and U+212A a k. */
static char
next_folded(const char **p)
{
	const char *s = *p;

	*p += 1;
	if (strncmp(s, "\xc5\xbf", 2) == 0) {
		*p += 1;
		return 's';
	}
	if (strncmp(s, "\xe2\x84\xaa", 3) == 0) {
		*p += 2;
		return 'k';
	}
	return *s >= 'A' && *s <= 'Z' ? (char)(*s - 'A' + 'a') : *s;
}

bool
kr_path_is_within_folded(const char *path, const char *directory)
{
	if (strcmp(directory, "/") == 0)
		return true;
	while (*directory)
		if (!*path || next_folded(&path) != next_folded(&directory))
			return false;
	return !*path || *path == '/';
}

/* How a directory is opened only to go through it: one that may be searched but not listed will do. */
enum { TRAVERSE = KR_O_PLACE | O_CLOEXEC };

/* Portable walk: each component is opened relative to the one before with O_NOFOLLOW. Takes `at`. */
static int
open_by_component(int start, const char *relative, int flags)
{
	kr_auto_fd int at = start;
	char name[256];

	if (at < 0 || !*relative)
		return kr_steal_fd(at);
	for (const char *p = relative;;) {
		size_t n = strcspn(p, "/");
		bool last = p[n] == '\0';
		int next;

		if (n >= sizeof(name)) {
			errno = ENAMETOOLONG;
			return -1;
		}
		memcpy(name, p, n);
		name[n] = '\0';
		next = openat(at, name, (last ? flags : TRAVERSE) | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0 || last)
			return next;
		(void)close(at);
		at = next;
		p += n + 1;
	}
}

#ifdef __linux__
/* -1 with ENOSYS (or EPERM, from a seccomp filter that does not know the call): walk instead. */
static int
open_by_kernel(int dir_fd, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC),
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | resolve,
	};

	return (int)syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));
}
#endif

static int
open_no_links(const char *clean, int flags)
{
#ifdef __linux__
	int fd = open_by_kernel(AT_FDCWD, clean, flags, 0);

	if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
		return fd;
#endif
	return open_by_component(open("/", TRAVERSE), clean + 1, flags);
}

int
kr_path_open_below(int dir_fd, const char *relative, int flags)
{
	KR_BUG_IF(relative[0] == '/' || relative[0] == '\0' || strstr(relative, ".."));
#ifdef __linux__
	int fd = open_by_kernel(dir_fd, relative, flags, RESOLVE_BENEATH);

	if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
		return fd;
#endif
	return open_by_component(openat(dir_fd, ".", TRAVERSE), relative, flags);
}

int
kr_path_open(const char *clean, int flags, struct kr_error *err)
{
	int fd;

	KR_BUG_IF(!kr_path_is_clean(clean));
	fd = open_no_links(clean, flags);
	if (fd < 0 && errno == ELOOP)
		return kr_fail_errno(err, KR_E_REFUSED, 0,
			"'%s' leads through a symbolic link that was not there when it was checked", clean);
	if (fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot open '%s'", clean);
	return fd;
}

int
kr_path_make_dirs(const char *clean, struct kr_error *err)
{
	kr_auto_fd int at = -1;
	char name[256];

	KR_BUG_IF(!kr_path_is_clean(clean));
	at = open_no_links(clean, TRAVERSE); /* mostly it is there */
	if (at >= 0)
		return kr_steal_fd(at);
	at = open("/", TRAVERSE);
	if (at < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot open '/'");
	for (const char *p = clean + 1; *p;) {
		size_t n = strcspn(p, "/");
		int next;

		if (n >= sizeof(name))
			return kr_fail_errno(err, KR_E_SYSTEM, ENAMETOOLONG, "cannot create '%s'", clean);
		memcpy(name, p, n);
		name[n] = '\0';
		if (mkdirat(at, name, 0700) < 0 && errno != EEXIST && errno != EROFS && errno != EACCES)
			return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot create '%s'", clean);
		next = openat(at, name, TRAVERSE | O_NOFOLLOW);
		if (next < 0)
			return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot open '%.*s' without following links",
				(int)(p + n - clean), clean);
		(void)close(at);
		at = next;
		p += n + (p[n] == '/');
	}
	return kr_steal_fd(at);
}
