/*
 * File systems that are capped in bytes and inodes (OS-SEC-08). bubblewrap can cap bytes only, and empty
 * files cost kernel memory without end, so the process that becomes bubblewrap makes a namespace of its own
 * first, mounts them there on empty directories of the session, and bubblewrap binds them. It is done in that
 * process and not in the launcher, because a failure half way (a security module that lets the namespace be
 * made and then takes its powers) leaves it useless: the launcher then starts another one without.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "guest/namespace.h"
#include "guest/sys.h"

enum { ARGS_MAX = 8 << 20 }; /* 9,000 arguments of bubblewrap, far below */

/* "N N 1": the user keeps the own number, and no other exists. */
static int
map_identity(const char *file, uint64_t id)
{
	char text[48];
	size_t n = kg_decimal(id, text);

	text[n++] = ' ';
	n += kg_decimal(id, text + n);
	memcpy(text + n, " 1", 2);
	return kg_write_file(file, text, n + 2);
}

static int
mount_capped(const struct kg_capped *capped)
{
	char options[96] = "mode=1777,size=";
	size_t n = strlen(options);

	n += kg_decimal(capped->bytes, options + n);
	memcpy(options + n, ",nr_inodes=", 11);
	n += 11;
	n += kg_decimal(capped->inodes, options + n);
	options[n] = '\0';
	return mount("tmpfs", capped->path, "tmpfs", MS_NODEV | MS_NOSUID, options) < 0 ? errno : 0;
}

int
kg_namespace_enter(const struct kg_capped *capped, size_t n)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int failed;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return errno;
	failed = kg_write_file("/proc/self/setgroups", "deny", 4);
	if (!failed)
		failed = map_identity("/proc/self/uid_map", uid);
	if (!failed)
		failed = map_identity("/proc/self/gid_map", gid);
	if (!failed && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		failed = errno;
	for (size_t i = 0; i < n && !failed; i++)
		failed = mount_capped(&capped[i]);
	return failed;
}

static int
memory_file(const char *bytes, size_t n)
{
	int fd = memfd_create("kraft-args", MFD_CLOEXEC);
	int failed;

	if (fd < 0)
		return -errno;
	if (write(fd, bytes, n) == (ssize_t)n && lseek(fd, 0, SEEK_SET) == 0)
		return fd;
	failed = errno ? errno : EIO;
	close(fd);
	return -failed;
}

/* Each pass writes into the other half of the room. */
static int
rewrite(char *room, size_t half, size_t used, const struct kg_capped *capped, size_t n)
{
	char *from = room, *to = room + half;

	for (size_t i = 0; i < n; i++) {
		char *t = from;

		used = kg_args_uncap(from, used, capped[i].path, capped[i].dest, capped[i].bytes, to);
		if (!used)
			return -EINVAL;
		from = to;
		to = t;
	}
	return memory_file(from, used);
}

int
kg_namespace_without(int args_fd, const struct kg_capped *capped, size_t n)
{
	struct stat file;
	size_t half;
	char *room;
	int result = -EINVAL;

	if (fstat(args_fd, &file) < 0)
		return -errno;
	if (file.st_size <= 0 || file.st_size > ARGS_MAX)
		return -EINVAL;
	half = (size_t)file.st_size + n * KG_UNCAP_ROOM;
	room = kg_map(2 * half);
	if (!room)
		return -errno;
	if (pread(args_fd, room, (size_t)file.st_size, 0) == file.st_size)
		result = rewrite(room, half, (size_t)file.st_size, capped, n);
	kg_unmap(room, 2 * half);
	return result;
}
