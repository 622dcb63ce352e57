/*
 * Regular files only, opened from the top of the checkout without following any link, so that an entry cannot
 * lead out of it; written below the worktree without following any link, so that a link in the commit cannot
 * lead the copy out.
 */
#include "session/local_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/portable.h"

static int
say(struct kr_error *err, const char *name, const char *what, const char *hint)
{
	kr_fail(err, KR_E_REFUSED, "local file '%s' %s", name, what);
	return kr_hint(err, "%s", hint);
}

static bool
has_component(const char *path, const char *component)
{
	size_t len = strlen(component);

	for (const char *p = path; *p;) {
		size_t n = strcspn(p, "/");

		if (n == len && memcmp(p, component, n) == 0)
			return true;
		p += n + (p[n] == '/');
	}
	return false;
}

static int
check_name(const char *name, struct kr_error *err)
{
	static const char hint[] = "entries of local_files are paths below the checkout, like '.env'";

	if (!*name || name[0] == '/')
		return say(err, name, "is not a relative path", hint);
	if (has_component(name, ".."))
		return say(err, name, "leads out of the checkout", hint);
	if (has_component(name, ".git"))
		return say(err, name, "is git's own", hint);
	return 0;
}

static int
why_not_opened(const char *name, const char *checkout, const struct kr_error *opened, struct kr_error *err)
{
	if (opened->code == KR_E_REFUSED)
		return say(
			err, name, "is a symbolic link or leads through one", "name the file itself in local_files");
	if (opened->sys_errno == ENOENT || opened->sys_errno == ENOTDIR) {
		kr_fail(err, KR_E_REFUSED, "local file '%s' is not there in '%s'", name, checkout);
		return kr_hint(err, "make it, or take it out of local_files");
	}
	return kr_fail_errno(err, KR_E_SYSTEM, opened->sys_errno, "cannot open local file '%s'", name);
}

/* The descriptor of a file that may be copied, or -1. */
static int
open_source(const char *checkout, const char *name, struct stat *st, struct kr_error *err)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	kr_auto_fd int fd = -1;
	struct kr_error opened = { 0 };
	const char *path;

	if (check_name(name, err) < 0)
		return -1;
	path = kr_path_join(&arena, checkout, name);
	if (!path)
		return say(err, name, "makes too long a path", "shorten it");
	fd = kr_path_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, &opened);
	if (fd < 0)
		return why_not_opened(name, checkout, &opened, err);
	if (fstat(fd, st) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot look at local file '%s'", name);
	if (S_ISDIR(st->st_mode))
		return say(err, name, "is a directory", "list its files one by one, or make them in setup_command");
	if (!S_ISREG(st->st_mode))
		return say(err, name, "is not a regular file", "take it out of local_files");
	if (st->st_size > KR_LOCAL_FILE_BYTES)
		return say(err, name, "is larger than 256 MiB", "fetch it in setup_command instead");
	return kr_steal_fd(fd);
}

int
kr_local_files_check(const struct kr_repo *repo, const char *checkout, struct kr_error *err)
{
	for (size_t i = 0; i < repo->local_files.n; i++) {
		struct stat st;
		kr_auto_fd int fd = open_source(checkout, repo->local_files.v[i], &st, err);

		if (fd < 0)
			return -1;
	}
	return 0;
}

static int
copy_bytes(int from, int to, const char *name, struct kr_error *err)
{
	char chunk[65536];
	uint64_t total = 0;

	for (;;) {
		ssize_t n = read(from, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot read local file '%s'", name);
		if (n == 0)
			return 0;
		total += (uint64_t)n;
		if (total > KR_LOCAL_FILE_BYTES) /* it grows while we read */
			return say(err, name, "is larger than 256 MiB", "fetch it in setup_command instead");
		if (kr_write_all(to, chunk, (size_t)n, err) < 0)
			return -1;
	}
}

/* A link counts too, also one on the way there: what a worker put in the way stays. */
static bool
is_in(const char *worktree, const char *name)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const char *path = kr_path_join(&arena, worktree, name);
	struct kr_error opened = { 0 };
	kr_auto_fd int parent = -1;
	struct stat st;

	if (!path)
		return false;
	parent = kr_path_open(kr_path_dirname(&arena, path), KR_O_PLACE, &opened);
	if (parent < 0)
		return opened.code == KR_E_REFUSED;
	return fstatat(parent, kr_path_basename(path), &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int
copy_one(const char *checkout, const char *worktree, const char *name, struct kr_error *err)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct stat st;
	kr_auto_fd int from = open_source(checkout, name, &st, err), parent = -1, to = -1;
	const char *path;

	if (from < 0)
		return -1;
	path = kr_path_join(&arena, worktree, name);
	if (!path)
		return say(err, name, "makes too long a path", "shorten it");
	parent = kr_path_make_dirs(kr_path_dirname(&arena, path), err);
	if (parent < 0)
		return kr_wrap(err, "local file '%s'", name);
	if (unlinkat(parent, kr_path_basename(path), 0) < 0 && errno != ENOENT) /* a tracked one is replaced */
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot replace '%s'", path);
	to = openat(parent, kr_path_basename(path), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (to < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot create '%s'", path);
	if (copy_bytes(from, to, name, err) < 0)
		return -1;
	if (fchmod(to, st.st_mode & 0777) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot set the mode of '%s'", path);
	return 0;
}

int
kr_local_files_copy(
	const struct kr_repo *repo, const char *checkout, const char *worktree, struct kr_error *err)
{
	for (size_t i = 0; i < repo->local_files.n; i++)
		if (copy_one(checkout, worktree, repo->local_files.v[i], err) < 0)
			return -1;
	return 0;
}

int
kr_local_files_add(
	const struct kr_repo *repo, const char *checkout, const char *worktree, struct kr_error *err)
{
	for (size_t i = 0; i < repo->local_files.n; i++) {
		const char *name = repo->local_files.v[i];

		if (check_name(name, err) < 0 ||
			(!is_in(worktree, name) && copy_one(checkout, worktree, name, err) < 0))
			return -1;
	}
	return 0;
}
