#include "base/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/portable.h"

void
kr_close_p(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		(void)close(*fd); /* nothing to be done about a failed close */
	*fd = -1;
	errno = saved;
}

int
kr_pipe(int *read_end, int *write_end, struct kr_error *err)
{
	int fds[2], in, out, failed;

	if (kr_pipe_pair(fds, false) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a pipe");
	in = fcntl(fds[0], F_DUPFD_CLOEXEC, 3);
	out = in < 0 ? -1 : fcntl(fds[1], F_DUPFD_CLOEXEC, 3);
	failed = errno;
	(void)close(fds[0]);
	(void)close(fds[1]);
	if (out < 0) {
		kr_close_p(&in);
		return kr_fail_errno(err, KR_E_SYSTEM, failed, "cannot make a pipe");
	}
	*read_end = in;
	*write_end = out;
	return 0;
}

bool
kr_try_lock(int fd, short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET };

	return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

int
kr_write_all(int fd, const void *bytes, size_t n, struct kr_error *err)
{
	const char *p = bytes;

	while (n) {
		ssize_t done = write(fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot write");
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

/* As much of `size` as can be had at once, without a copy; whoever goes on finds the rest, or what is wrong. */
static void
read_size(int fd, struct kr_buf *buf, size_t size)
{
	ssize_t got = 0;

	kr_buf_reserve(buf, size);
	if (buf->cap <= buf->len)
		return;
	for (size_t room; (room = buf->cap - buf->len - 1) > 0; buf->len += (size_t)got)
		if ((got = read(fd, buf->data + buf->len, room)) <= 0)
			break;
	buf->data[buf->len] = '\0';
}

int
kr_read_all(int fd, struct kr_buf *buf, const char *name, struct kr_error *err)
{
	char chunk[16384];
	struct stat st;

	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > (off_t)sizeof(chunk))
		read_size(fd, buf, (size_t)st.st_size);
	for (;;) {
		ssize_t got = read(fd, chunk, sizeof(chunk));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot read '%s'", name);
		if (got == 0)
			return 0;
		kr_buf_add(buf, chunk, (size_t)got);
		if (buf->overflow)
			return kr_fail(err, KR_E_LIMIT, "'%s' is larger than %zu bytes", name, buf->max);
	}
}

int
kr_file_read_at(int dir_fd, const char *path, struct kr_buf *buf, struct kr_error *err)
{
	kr_auto_fd int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot open '%s'", path);
	if (fstat(fd, &st) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot look at '%s'", path);
	if (!S_ISREG(st.st_mode))
		return kr_fail(err, KR_E_SYSTEM, "'%s' is not a regular file", path);
	return kr_read_all(fd, buf, path, err);
}

int
kr_file_write_at(
	int dir_fd, const char *name, const void *bytes, size_t n, unsigned mode, struct kr_error *err)
{
	char temporary[512];
	kr_auto_fd int fd = -1;
	int len = snprintf(temporary, sizeof(temporary), "%s.%ld.new", name, (long)getpid());

	if (len < 0 || (size_t)len >= sizeof(temporary))
		return kr_fail(err, KR_E_LIMIT, "the file name '%s' is too long", name);
	(void)unlinkat(dir_fd, temporary, 0); /* left by a process of our number that died */
	fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot create '%s'", temporary);
	if (kr_write_all(fd, bytes, n, err) < 0 || fsync(fd) < 0) {
		int saved = errno;

		(void)unlinkat(dir_fd, temporary, 0);
		return kr_fail_errno(err, KR_E_SYSTEM, saved, "cannot write '%s'", name);
	}
	if (renameat(dir_fd, temporary, dir_fd, name) < 0) {
		int saved = errno;

		(void)unlinkat(dir_fd, temporary, 0);
		return kr_fail_errno(err, KR_E_SYSTEM, saved, "cannot rename to '%s'", name);
	}
	return 0;
}

enum {
	TREE_DEPTH_MAX = 512
}; /* descriptors held at once, and stack; a deeper tree is reported, not removed */

static int remove_below(int dir_fd, const char *name, dev_t device, int depth);

/* Module caches are made of directories that are closed to their owner too; one that is not ours stays as it is. */
static int
open_directory(int dir_fd, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int fd = openat(dir_fd, name, flags);

	if (fd < 0 && errno == EACCES && fchmodat(dir_fd, name, S_IRWXU, AT_SYMLINK_NOFOLLOW) == 0)
		fd = openat(dir_fd, name, flags);
	return fd;
}

/* Takes the descriptor. */
static int
empty_directory(int fd, dev_t device, int depth)
{
	DIR *dir = fdopendir(fd);
	int failed = 0;

	if (!dir) {
		kr_close_p(&fd);
		return -1;
	}
	for (const struct dirent *e; (e = readdir(dir));)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
			remove_below(fd, e->d_name, device, depth + 1) < 0)
			failed = errno;
	closedir(dir);
	errno = failed;
	return failed ? -1 : 0;
}

static int
remove_below(int dir_fd, const char *name, dev_t device, int depth)
{
	struct stat st;
	int fd;

	if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM) /* EPERM is POSIX's word for a directory, and for what its owner locked */
		return -1;
	if (errno == EPERM && kr_unlock_at(dir_fd, name) == 0 && unlinkat(dir_fd, name, 0) == 0)
		return 0;
	if (depth >= TREE_DEPTH_MAX) {
		errno = ELOOP;
		return -1;
	}
	fd = open_directory(dir_fd, name);
	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	if (fstat(fd, &st) < 0 || (depth && st.st_dev != device)) {
		kr_close_p(&fd);
		errno = EXDEV;
		return -1;
	}
	if ((st.st_mode & S_IRWXU) != S_IRWXU)
		(void)fchmod(fd, S_IRWXU); /* what cannot be removed then says so */
	if (empty_directory(fd, st.st_dev, depth) < 0)
		return -1;
	return unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT ? 0 : -1;
}

int
kr_tree_remove_at(int dir_fd, const char *name)
{
	return remove_below(dir_fd, name, 0, 0);
}
