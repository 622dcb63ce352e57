#include "os/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/sys.h"

int
kr_owner_tell(int fd, const char *note, struct kr_error *err)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const char *words = kr_arena_printf(&arena, "%d %llu %s\n%s\n", (int)getpid(),
		(unsigned long long)kr_process_start(getpid()), kr_boot_id(&arena), note);

	if (ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot write who holds a lock");
	return kr_write_all(fd, words, strlen(words), err);
}

int
kr_owner_take(const char *path, const char *note, struct kr_error *err)
{
	kr_auto_fd int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot open '%s'", path);
	if (!kr_try_lock(fd, F_WRLCK))
		return kr_fail(err, KR_E_BUSY, "another process holds '%s'", path);
	if (kr_owner_tell(fd, note, err) < 0)
		return -1;
	return kr_steal_fd(fd);
}

bool
kr_owner_is_held(const char *path)
{
	kr_auto_fd int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

bool
kr_owner_find(const char *path, struct kr_owner *out)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	kr_auto_buf struct kr_buf buf = KR_BUF(512);
	const char *boot = kr_boot_id(&arena);
	char *rest = NULL;
	long pid;

	if (!kr_owner_is_held(path) || kr_file_read_at(AT_FDCWD, path, &buf, NULL) < 0 || !buf.len)
		return false;
	pid = strtol(buf.data, &rest, 10);
	if (pid <= 1 || pid > INT32_MAX || strtoull(rest, &rest, 10) != kr_process_start((pid_t)pid) ||
		*rest != ' ' || strncmp(rest + 1, boot, strlen(boot)) != 0)
		return false;
	rest += 1 + strlen(boot);
	out->pid = (pid_t)pid;
	snprintf(out->note, sizeof(out->note), "%.*s", *rest == '\n' ? (int)strcspn(rest + 1, "\n") : 0, rest + 1);
	return true;
}
