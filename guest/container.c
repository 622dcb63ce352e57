/*
 * The init in a container. The runtime makes the namespaces and the mounts; the streams, the filter and the
 * end come over a connection to the launcher, so that they are the same whatever the runtime does with its
 * own.
 *
 * Trusts the launcher at the other end: the socket lies in a folder of kraft's user that is mounted
 * read-only, and when the command starts its file is gone. Nothing here runs after the command has started
 * but the count of kills.
 */
#include "guest/container.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "guest/sys.h"

enum { OOM_TEXT = 1024 };

/* Closes them all; 0 when they were three and could be put on 0, 1 and 2, in case they are `wanted`. */
static int
put_streams(const struct cmsghdr *control, bool wanted)
{
	const int *fds = (const int *)CMSG_DATA(control);
	size_t n = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	int failed = wanted && n == KG_DESCRIPTORS ? 0 : EPROTO;

	for (int i = 0; i < KG_DESCRIPTORS && !failed; i++)
		if (dup2(fds[i], i) < 0)
			failed = errno;
	for (size_t i = 0; i < n; i++)
		close(fds[i]); /* above 2, which existed before they came */
	return failed;
}

int
kg_container_take_streams(int pipe)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(KG_DESCRIPTORS * sizeof(int))];
	} control;
	struct kg_message message = { 0 };
	struct iovec part = { &message, sizeof(message) };
	struct msghdr head = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof(control.room)
	};
	ssize_t n = recvmsg(pipe, &head, MSG_WAITALL | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *first = n > 0 ? CMSG_FIRSTHDR(&head) : NULL;

	if (n <= 0)
		return EPIPE;
	if (!first || first->cmsg_level != SOL_SOCKET || first->cmsg_type != SCM_RIGHTS)
		return EPROTO;
	return put_streams(first, (size_t)n == sizeof(message) && message.type == KG_STREAMS &&
								  message.zero == 0 && !(head.msg_flags & MSG_CTRUNC));
}

int
kg_container_take_filter(int pipe, struct kg_filter *out)
{
	struct kg_message head;

	if (!kg_read_all(pipe, &head, sizeof(head)))
		return EPIPE;
	if (head.type != KG_FILTER || head.zero != 0 || head.a <= 0 || head.a > KG_FILTER_BYTES ||
		head.a % KG_FILTER_STEP)
		return EPROTO;
	out->bytes = (size_t)head.a;
	return kg_read_all(pipe, out->text, out->bytes) ? 0 : EPIPE;
}

_Static_assert(sizeof(struct sock_filter) == KG_FILTER_STEP, "a filter is a whole number of steps");

int
kg_container_install(const struct kg_filter *filter)
{
	const struct sock_fprog program = { (unsigned short)(filter->bytes / KG_FILTER_STEP),
		(struct sock_filter *)filter->text };
	long failed;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return errno;
	/* With the thread of --stdio; one that does not come along is told by its number. */
	failed = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);
	return failed < 0 ? errno : failed > 0 ? EBUSY : 0;
}

static uint64_t
read_kills(int fd)
{
	char text[OOM_TEXT];
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text), 0);

	return n > 0 ? kg_oom_kills(text, (size_t)n) : 0;
}

/*
 * The kernel's own files, mounted by the runtime: opened before the command could mount or replace anything.
 * Where they are those of another group (a runtime without a view of its own), what happened before is not
 * ours.
 */
void
kg_container_watch_oom(struct kg_oom *out)
{
	out->fd = open("/sys/fs/cgroup/memory.events", O_RDONLY | O_CLOEXEC);
	if (out->fd < 0)
		out->fd = open("/sys/fs/cgroup/memory/memory.oom_control", O_RDONLY | O_CLOEXEC);
	out->before = read_kills(out->fd);
}

uint64_t
kg_container_oom_kills(const struct kg_oom *oom)
{
	uint64_t now = read_kills(oom->fd);

	return now > oom->before ? now - oom->before : 0;
}
