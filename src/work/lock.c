/*
 * Who hosts an item: a lock on run/worktrees/<item>.host, which the host and the tasks that it started hold
 * together, with the host's pid and start time in it. The lock is the truth; the words only tell whom to ask.
 */
#include "work/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/path.h"
#include "base/text.h"
#include "os/sys.h"

const char *
kr_work_path(struct kr_work *work, const char *item, const char *end)
{
	return kr_arena_printf(work->arena, "%s/worktrees/%s%s", work->host.places.run_dir, item, end);
}

static const char *
path_of(struct kr_work *work, const char *item)
{
	return kr_work_path(work, item, ".host");
}

static int
write_owner(struct kr_work *work, int fd, struct kr_error *err)
{
	const char *words = kr_arena_printf(work->arena, "%d %llu %s\n", (int)getpid(),
		(unsigned long long)kr_process_start(getpid()), kr_boot_id(work->arena));

	if (ftruncate(fd, 0) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot write the lock of the item's host");
	return kr_write_all(fd, words, strlen(words), err);
}

int
kr_work_lock(struct kr_work *work, const char *item, struct kr_error *err)
{
	const char *path = path_of(work, item);
	kr_auto_fd int fd = -1;

	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot open '%s'", path);
	if (!kr_try_lock(fd, F_WRLCK)) {
		kr_fail(err, KR_E_BUSY, "another process is at item '%s'", item);
		return kr_hint(
			err, "'kraft view show %s' tells how far it is; 'kraft item pause %s' ends that", item, item);
	}
	if (write_owner(work, fd, err) < 0)
		return -1;
	return kr_steal_fd(fd);
}

bool
kr_work_is_locked(struct kr_work *work, const char *item)
{
	kr_auto_fd int fd = open(path_of(work, item), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

pid_t
kr_work_host_pid(struct kr_work *work, const char *item)
{
	kr_auto_buf struct kr_buf buf = KR_BUF(256);
	char *rest = NULL;
	long pid;

	if (!kr_work_is_locked(work, item) || kr_file_read_at(AT_FDCWD, path_of(work, item), &buf, NULL) < 0 ||
		!buf.len)
		return 0;
	pid = strtol(buf.data, &rest, 10);
	if (pid <= 1 || pid > INT32_MAX || strtoull(rest, &rest, 10) != kr_process_start((pid_t)pid) ||
		*rest != ' ' || strncmp(rest + 1, kr_boot_id(work->arena), strlen(kr_boot_id(work->arena))) != 0)
		return 0;
	return (pid_t)pid;
}
