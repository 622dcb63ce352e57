/*
 * Room that is kept for the day when the disk is full: a file beside the database with real blocks. A write
 * that finds no room takes a step of it and is done again, so that what happened, and why, can still be
 * recorded, and the store can be opened at all (its log and its shared memory are files too). In steps,
 * because whoever fills the disk takes what is given back as gladly as we do.
 *
 * It is made again by the next process that opens the store to write when there is plenty of room. Best
 * effort: without it the store is what it was, and says that the disk is full.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/portable.h"
#include "store/internal.h"

enum { STEP_BYTES = 256 << 10, SPARE = 4 /* this many times its size must be free before it is made */ };

/* Its descriptor, or -1. Only a file of ours, with one name. */
static int
open_file(const char *run_dir, int flags, off_t *size)
{
	kr_auto_fd int dir_fd = kr_path_open(run_dir, O_RDONLY | O_DIRECTORY, NULL), fd = -1;
	struct stat st;

	if (dir_fd >= 0)
		fd = openat(dir_fd, KR_STORE_RESERVE, flags | O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1)
		return -1;
	*size = st.st_size;
	return kr_steal_fd(fd);
}

static bool
has_plenty(int fd)
{
	struct rlimit limit;
	struct statvfs fs;

	/* Past that limit there is a signal in place of an error. */
	if (getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur < KR_STORE_RESERVE_BYTES)
		return false;
	return fstatvfs(fd, &fs) == 0 &&
		   (uint64_t)fs.f_bavail * fs.f_frsize >= (uint64_t)SPARE * KR_STORE_RESERVE_BYTES;
}

void
kr_reserve_keep(const char *run_dir)
{
	off_t size = 0;
	kr_auto_fd int fd = open_file(run_dir, O_CREAT, &size);

	if (fd < 0 || size >= KR_STORE_RESERVE_BYTES || !has_plenty(fd))
		return;
	/* What could be made of it on the way to a failure counts as well. */
	(void)kr_file_reserve(fd, KR_STORE_RESERVE_BYTES);
}

bool
kr_reserve_give(const char *run_dir)
{
	off_t size = 0;
	kr_auto_fd int fd = open_file(run_dir, 0, &size);

	return fd >= 0 && size > 0 && ftruncate(fd, size > STEP_BYTES ? size - STEP_BYTES : 0) == 0;
}
