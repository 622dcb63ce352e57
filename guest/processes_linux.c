/*
 * /proc, for tests of macOS's way on Linux (main.c): what Linux says of processes in the words of macOS.
 *
 * A parent's number changes when it ends here, so descent is what it is at the moment. In the place of the sandbox stand two
 * signs: the user namespace that the test's stand-in for sandbox-exec may make, which nothing leaves; and the session's TMPDIR
 * in the variables that a process was started with.
 */
#include "guest/processes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The list is taken in small pieces, so that little time is between a process's place in it and the question: what forks and
 * ends has its child further on in the list. */
enum { TEXT_BYTES = 512, LIST_BYTES = 320, ENVIRONMENT_BYTES = 1 << 17, PID_BITS = 22, FLAG_EXITING = 4 };

static int
open_of(pid_t pid, const char *file, char *path)
{
	size_t n = strlen("/proc/");

	memcpy(path, "/proc/", n);
	n += kg_decimal((uint64_t)pid, path + n);
	memcpy(path + n, file, strlen(file) + 1);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static ssize_t
read_of(pid_t pid, const char *file, char *out, size_t room)
{
	char path[64];
	int fd = open_of(pid, file, path);
	size_t n = 0;
	ssize_t got = fd < 0 ? -1 : 1;

	while (got > 0 && n < room && (got = read(fd, out + n, room - n)) > 0)
		n += (size_t)got;
	if (fd >= 0)
		close(fd);
	return got < 0 ? -1 : (ssize_t)n;
}

/* "user:[4026531837]" */
static uint64_t
user_namespace(pid_t pid)
{
	char path[64] = "/proc/", text[64];
	size_t n = strlen(path);
	const char *at = text + strlen("user:[");
	uint64_t number = 0;
	ssize_t got;

	n += kg_decimal((uint64_t)pid, path + n);
	memcpy(path + n, "/ns/user", sizeof("/ns/user"));
	got = readlink(path, text, sizeof(text));
	if (got > 0 && !kg_number(&at, text + got, UINT64_MAX, &number))
		return 0;
	return number;
}

/* Field by its number in proc(5), from 4 on; those behind the name are numbers. */
static uint64_t
field(const char *stat, size_t n, int wanted)
{
	const char *at = memrchr(stat, ')', n), *end = stat + n;
	uint64_t value = 0;

	for (int i = 2; at && i < wanted; i++)
		at = memchr(at + 1, ' ', (size_t)(end - at - 1));
	if (!at)
		return 0;
	at++;
	return kg_number(&at, end, UINT64_MAX, &value) ? value : 0;
}

static uint64_t
id_of(pid_t pid, const char *stat, size_t n)
{
	return field(stat, n, 22) << PID_BITS | (uint64_t)pid;
}

uint64_t
kg_process_id(pid_t pid)
{
	char stat[TEXT_BYTES];
	ssize_t n = read_of(pid, "/stat", stat, sizeof(stat));

	return n > 0 ? id_of(pid, stat, (size_t)n) : 0;
}

void
kg_processes_mark(struct kg_mark *mark, pid_t command)
{
	const uint64_t its = user_namespace(command);

	mark->space = its != user_namespace(getpid()) ? its : 0;
}

static bool
has_tmpdir(const struct kg_mark *mark, pid_t pid)
{
	static char text[ENVIRONMENT_BYTES];
	ssize_t n = read_of(pid, "/environ", text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	for (const char *at = text; at < text + n; at += strlen(at) + 1)
		if (strncmp(at, "TMPDIR=", 7) == 0 && strcmp(at + 7, mark->own) == 0)
			return true;
	return false;
}

static bool
is_ending(pid_t pid)
{
	char stat[TEXT_BYTES], name[KG_LEFT_NAME], state;
	ssize_t n = read_of(pid, "/stat", stat, sizeof(stat));

	if (n <= 0 || !kg_stat_name(stat, (size_t)n, name, &state))
		return true;
	return state == 'Z' || state == 'X' || field(stat, (size_t)n, 9) & FLAG_EXITING;
}

static bool
describe(const struct kg_mark *mark, pid_t pid, struct kg_process *out)
{
	char stat[TEXT_BYTES], path[64], state;
	ssize_t n = read_of(pid, "/stat", stat, sizeof(stat));
	struct stat owner;
	int fd = open_of(pid, "/stat", path);
	bool is_there = n > 0 && fd >= 0 && fstat(fd, &owner) == 0;

	if (fd >= 0)
		close(fd);
	*out = (struct kg_process){ .pid = pid };
	if (!is_there || !kg_stat_name(stat, (size_t)n, out->name, &state))
		return false;
	out->uid = owner.st_uid;
	out->id = id_of(pid, stat, (size_t)n);
	out->parent_id = kg_process_id((pid_t)field(stat, (size_t)n, 4));
	out->has_ended = state == 'Z' || state == 'X';
	if (out->uid != getuid() || out->has_ended)
		return true;
	if ((mark->space && user_namespace(pid) == mark->space) || has_tmpdir(mark, pid))
		out->inside = KG_INSIDE_YES;
	else
		out->inside = KG_INSIDE_NO;
	/* One that is ending has no variables any more. */
	return out->inside == KG_INSIDE_YES || !is_ending(pid);
}

long
kg_processes_look(const struct kg_mark *mark, struct kg_look *look, struct kg_process *out, size_t room)
{
	static char list[LIST_BYTES] __attribute__((aligned(8)));
	int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t n = 0;
	long got = proc < 0 ? -1 : 1;

	look->missed = 0;
	while (got > 0 && (got = syscall(SYS_getdents64, proc, list, sizeof(list))) > 0)
		for (long at = 0; at < got; at += ((struct dirent *)(list + at))->d_reclen) {
			const char *name = ((struct dirent *)(list + at))->d_name, *digits = name;
			uint64_t pid;

			if (!kg_number(&digits, name + strlen(name), INT32_MAX, &pid) || *digits || n == room)
				continue;
			if (!describe(mark, (pid_t)pid, &out[n])) {
				look->missed++;
				continue;
			}
			kg_strike(look, &out[n++]);
		}
	if (proc >= 0)
		close(proc);
	return got < 0 ? -errno : n == room ? -ENOSPC : (long)n;
}
