/*
 * A file system on which owners lock what is theirs, as macOS's with chflags uchg: what is locked, and what lies right in a locked
 * directory, can be neither removed nor replaced, and a directory is no file to unlink (EPERM there for all of them). In the place of
 * the system's own calls and of kr_unlock_at, in a test's program.
 */
#ifndef KR_TEST_LOCKED_H
#define KR_TEST_LOCKED_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/portable.h"

enum { LOCKED_MAX = 16 };
static struct stat locked[LOCKED_MAX];
static size_t locked_count;
static bool unlocks = true; /* false: as if nobody unlocked */

static size_t
find_locked(int dir_fd, const char *name)
{
	struct stat st;

	for (size_t i = 0; fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && i < locked_count; i++)
		if (st.st_dev == locked[i].st_dev && st.st_ino == locked[i].st_ino)
			return i;
	return LOCKED_MAX;
}

static bool
is_locked(int dir_fd, const char *name)
{
	return find_locked(dir_fd, name) < locked_count || (name[0] != '/' && find_locked(dir_fd, ".") < locked_count);
}

static void
lock_file(const char *path)
{
	assert_true(locked_count < LOCKED_MAX && lstat(path, &locked[locked_count++]) == 0);
}

int
kr_unlock_at(int dir_fd, const char *name)
{
	size_t i = find_locked(dir_fd, name);

	if (!unlocks || i >= locked_count)
		return -1;
	locked[i] = locked[--locked_count];
	return 0;
}

int
unlinkat(int dir_fd, const char *name, int flags)
{
	struct stat st;

	if (is_locked(dir_fd, name) ||
		(!(flags & AT_REMOVEDIR) && fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode))) {
		errno = EPERM;
		return -1;
	}
	return (int)syscall(SYS_unlinkat, dir_fd, name, flags);
}

int
renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	if (is_locked(from_fd, from) || is_locked(to_fd, to)) {
		errno = EPERM;
		return -1;
	}
	return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, 0);
}

#endif
