/* What sys.h says of descriptors, signals and terminals, by Linux's own calls. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "guest/sys.h"

int
kg_connect_unix(const char *path, int flags)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd, failed;

	if (strlen(path) >= sizeof(to.sun_path))
		return -ENAMETOOLONG;
	memcpy(to.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0)
		return fd;
	failed = errno;
	close(fd);
	return -failed;
}

bool
kg_close_others(int *keep, size_t n)
{
	unsigned from = 3;

	if (!kg_sort(keep, n))
		return false;
	for (size_t i = 0; i < n; i++) {
		unsigned fd = (unsigned)keep[i];

		if (fd > from && syscall(SYS_close_range, from, fd - 1, 0) < 0)
			return false;
		from = fd + 1;
	}
	return syscall(SYS_close_range, from, ~0u, 0) == 0;
}

/* Ignored signals would be inherited, and the launcher ignores some. All zero is the default action. */
void
kg_default_signals(void)
{
	static const char default_action[64];
	sigset_t none;

	for (int signal = 1; signal <= 64; signal++)
		(void)syscall(SYS_rt_sigaction, signal, default_action, NULL, 8); /* KILL and STOP refuse, rightly */
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

int
kg_open_master(void)
{
	return open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
}

/* By the master and not by name: whatever else lies at /dev/pts. */
int
kg_open_slave(int master, int flags)
{
	int unlocked = 0;

	if (ioctl(master, TIOCSPTLCK, &unlocked) < 0)
		return -1;
	return ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC | flags);
}

ssize_t
kg_receive(int fd, void *out, size_t most, int *fds, size_t count)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(KG_DESCRIPTORS * sizeof(int))];
	} control;
	struct iovec part = { out, most };
	struct msghdr head = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof(control.room)
	};
	ssize_t n = recvmsg(fd, &head, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const struct cmsghdr *first = n >= 0 ? CMSG_FIRSTHDR(&head) : NULL;
	size_t came = 0;

	if (first && first->cmsg_level == SOL_SOCKET && first->cmsg_type == SCM_RIGHTS)
		came = (first->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	for (size_t i = 0; i < count; i++)
		fds[i] = -1;
	for (size_t i = 0; i < came; i++) {
		int one;

		memcpy(&one, CMSG_DATA(first) + i * sizeof(one), sizeof(one));
		if (i < count)
			fds[i] = one;
		else
			close(one);
	}
	return n;
}
