#include "os/sys.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"

const char *
kr_self_path(struct kr_arena *arena)
{
	char path[KR_PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path));

	if (n <= 0 || (size_t)n >= sizeof(path) || path[0] != '/')
		return NULL;
	return kr_path_clean(arena, kr_arena_dup_n(arena, path, (size_t)n));
}

int
kr_memory_file(const char *name, const void *bytes, size_t n, struct kr_error *err)
{
	kr_auto_fd int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a memory file");
	if (kr_write_all(fd, bytes, n, err) < 0)
		return -1;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot rewind a memory file");
	return kr_steal_fd(fd);
}
