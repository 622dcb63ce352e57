#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "guest/sys.h"

enum { HINT_WAIT_MS = 1000 };

void
kg_say(int fd, ...)
{
	struct iovec parts[8] = { { (void *)"kraft: ", 7 } };
	size_t n = 1;
	va_list list;

	va_start(list, fd);
	while (n < KG_COUNT(parts) - 1) {
		const char *part = va_arg(list, const char *);

		if (!part)
			break;
		parts[n++] = (struct iovec){ (void *)part, strlen(part) };
	}
	va_end(list);
	parts[n++] = (struct iovec){ (void *)"\n", 1 };
	(void)!writev(fd, parts, (int)n); /* nobody left to tell */
}

void
kg_hint(int fd, const char *name, const char *text)
{
	struct pollfd out = { .fd = fd, .events = POLLOUT };

	if (poll(&out, 1, HINT_WAIT_MS) == 1 && (out.revents & POLLOUT))
		kg_say(fd, name, text, NULL);
}

const char *
kg_errno_text(int sys_errno)
{
	return strerror(sys_errno);
}

static const struct kg_option *
find(const struct kg_option *table, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}

bool
kg_options_read(
	struct kg_options *options, const struct kg_option *table, size_t n, void *context, const char **culprit)
{
	while (options->at < options->argc) {
		const char *name = *culprit = options->argv[options->at++];
		const struct kg_option *option;
		const char *value = NULL;

		if (strcmp(name, "--") == 0)
			return true;
		option = find(table, n, name);
		if (!option || (option->has_value && options->at == options->argc))
			return false;
		if (option->has_value)
			value = options->argv[options->at++];
		if (!option->take(context, value))
			return false;
	}
	*culprit = "--";
	return false;
}

int
kg_parse_fd(const char *text)
{
	const char *end = text + strlen(text);
	uint64_t value;

	if (!kg_number(&text, end, INT32_MAX - 1, &value) || text != end || value < 3)
		return -1;
	return (int)value;
}

bool
kg_sort(int *v, size_t n)
{
	for (size_t i = 1; i < n; i++)
		for (size_t j = i; j > 0 && v[j - 1] >= v[j]; j--) {
			int t = v[j];

			if (v[j - 1] == t)
				return false;
			v[j] = v[j - 1];
			v[j - 1] = t;
		}
	return true;
}

bool
kg_read_all(int fd, void *out, size_t n)
{
	char *at = out;

	while (n) {
		ssize_t got = read(fd, at, n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		at += got;
		n -= (size_t)got;
	}
	return true;
}

int
kg_write_file(const char *path, const char *text, size_t n)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int failed = 0;

	if (fd < 0)
		return errno;
	if (write(fd, text, n) != (ssize_t)n)
		failed = errno ? errno : EIO;
	close(fd);
	return failed;
}

int64_t
kg_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void *
kg_map(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

void
kg_unmap(void *memory, size_t bytes)
{
	if (memory)
		(void)munmap(memory, bytes); /* cannot fail for a mapping of ours */
}

void
kg_fill_streams(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)open("/dev/null", fd ? O_WRONLY : O_RDONLY); /* takes the lowest number: this one */
}

/* To every shell and to execvp(3), so to us. */
static void
exec_script(const char *path, char **argv, char **variables)
{
	char *name = argv[0];

	argv[-1] = (char *)"/bin/sh";
	argv[0] = (char *)path;
	execve("/bin/sh", argv - 1, variables);
	argv[0] = name;
	errno = ENOEXEC;
}

static void
exec_file(const char *path, char **argv, char **variables)
{
	execve(path, argv, variables);
	if (errno == ENOEXEC)
		exec_script(path, argv, variables);
}

/* A file that may not be executed does not end the search, but is what is told when there is no other. */
static int
exec_search(const char *name, char **argv, char **variables)
{
	static char path[KG_PATH_ROOM];
	const char *at = kg_env_find(variables, "PATH");
	int refused = 0;

	at = at ? at + strlen("PATH=") : "/usr/bin:/bin";
	while (kg_path_next(&at, name, path)) {
		exec_file(path, argv, variables);
		if (errno == EACCES)
			refused = errno;
		else if (errno != ENOENT && errno != ENOTDIR && errno != ESTALE && errno != ENODEV &&
				 errno != ETIMEDOUT)
			return errno;
	}
	return refused ? refused : ENOENT;
}

int
kg_exec(const char *file, char **argv, char **variables)
{
	if (!strchr(file, '/'))
		return exec_search(file, argv, variables);
	exec_file(file, argv, variables);
	return errno;
}

int
kg_send_bytes(int fd, const void *bytes, size_t n, const int *descriptors, size_t count, int flags)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(KG_DESCRIPTORS * sizeof(int))];
	} control;
	struct iovec part = { (void *)bytes, n };
	struct msghdr head = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t sent;

	if (count) {
		memset(&control, 0, sizeof(control));
		head.msg_control = control.room;
		head.msg_controllen = (socklen_t)CMSG_SPACE(count * sizeof(int));
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = (socklen_t)CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.head), descriptors, count * sizeof(int));
	}
	do
		sent = sendmsg(fd, &head, flags | KG_NO_SIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return errno;
	return (size_t)sent == n ? 0 : EIO;
}

int
kg_send(int fd, const struct kg_message *message, int descriptor, int flags)
{
	return kg_send_bytes(fd, message, sizeof(*message), &descriptor, descriptor >= 0, flags);
}
