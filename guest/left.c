#include "guest/left.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest/sys.h"

enum { LIST_BYTES = 4096, PROCESSES_MAX = 1 << 22, PATH_ROOM = 32, STAT_BYTES = 128 };

bool
kg_left_any(void)
{
	return kill(-1, 0) == 0;
}

/* False: it has ended, or is no process. */
static bool
read_name(int proc, const char *number, char name[KG_LEFT_NAME])
{
	char path[PATH_ROOM], stat[STAT_BYTES], state = 'Z';
	size_t n = strlen(number);
	ssize_t got;
	int fd;

	if (n + sizeof("/stat") > sizeof(path))
		return false;
	memcpy(path, number, n);
	memcpy(path + n, "/stat", sizeof("/stat"));
	fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
	got = fd < 0 ? -1 : read(fd, stat, sizeof(stat));
	if (fd >= 0)
		close(fd);
	return got > 0 && kg_stat_name(stat, (size_t)got, name, &state) && state != 'Z' && state != 'X';
}

static void
take_entry(struct kg_left *left, int proc, const char *entry)
{
	const char *at = entry;
	char name[KG_LEFT_NAME];
	uint64_t pid;

	if (!kg_number(&at, entry + strlen(entry), PROCESSES_MAX, &pid) || *at || pid == 1 || !read_name(proc, entry, name))
		return;
	left->count++;
	if (left->count > KG_LEFT_SHOWN)
		return;
	memcpy(left->names + left->bytes, name, strlen(name) + 1);
	left->bytes += strlen(name) + 1;
}

void
kg_left_look(struct kg_left *left)
{
	static char list[LIST_BYTES] __attribute__((aligned(8)));
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long got;

	while (proc >= 0 && (got = syscall(SYS_getdents64, proc, list, sizeof(list))) > 0)
		for (long at = 0; at < got; at += ((struct dirent *)(list + at))->d_reclen)
			take_entry(left, proc, ((struct dirent *)(list + at))->d_name);
	if (proc >= 0)
		close(proc);
}
