#include "base/portable.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

int
kr_pipe_pair(int fds[2], bool never_blocks)
{
	return pipe2(fds, O_CLOEXEC | (never_blocks ? O_NONBLOCK : 0));
}

int
kr_socket_make(int family, int type, int protocol, bool never_blocks)
{
	return socket(family, type | SOCK_CLOEXEC | (never_blocks ? SOCK_NONBLOCK : 0), protocol);
}

int
kr_socket_pair(int type, int fds[2])
{
	return socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds);
}

int
kr_socket_accept(int listener, bool never_blocks, struct sockaddr_in *from)
{
	socklen_t n = sizeof(*from);

	/* cppcheck-suppress nullPointer ; both are NULL, or neither */
	return accept4(listener, (struct sockaddr *)from, from ? &n : NULL, SOCK_CLOEXEC | (never_blocks ? SOCK_NONBLOCK : 0));
}

ssize_t
kr_socket_receive(int fd, struct msghdr *message)
{
	return recvmsg(fd, message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
}

int
kr_close_from(unsigned first)
{
	return (int)syscall(SYS_close_range, first, ~0u, 0u);
}

int
kr_nameless_file(const char *directory)
{
	return open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

int
kr_splice_pipe(int fds[2], size_t bytes)
{
	if (kr_pipe_pair(fds, true) < 0)
		return -1;
	(void)fcntl(fds[1], F_SETPIPE_SZ, (int)bytes); /* past the user's share it stays small */
	return 0;
}

ssize_t
kr_splice(int from, int to, size_t n)
{
	return splice(from, NULL, to, NULL, n, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
}

static bool
option_is(int fd, int option, int wanted)
{
	int value = 0;
	socklen_t n = sizeof(value);

	return getsockopt(fd, SOL_SOCKET, option, &value, &n) == 0 && n == sizeof(value) && value == wanted;
}

bool
kr_socket_is_tcp4(int fd)
{
	return option_is(fd, SO_DOMAIN, AF_INET) && option_is(fd, SO_TYPE, SOCK_STREAM) &&
		option_is(fd, SO_PROTOCOL, IPPROTO_TCP);
}

int
kr_socket_peer(int fd, uid_t *out)
{
	struct ucred peer = { 0 };
	socklen_t n = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0 || n != sizeof(peer))
		return -1;
	*out = peer.uid;
	return 0;
}

int
kr_file_copy_within(int from, int to)
{
	ssize_t n;

	while ((n = copy_file_range(from, NULL, to, NULL, 1 << 30, 0)) > 0)
		;
	return n < 0 ? -1 : 0;
}

int
kr_file_reserve(int fd, off_t bytes)
{
	const int failed = posix_fallocate(fd, 0, bytes);

	errno = failed ? failed : errno;
	return failed ? -1 : 0;
}

bool
kr_random(void *out, size_t n)
{
	return getrandom(out, n, 0) == (ssize_t)n;
}

const void *
kr_memrchr(const void *bytes, int byte, size_t n)
{
	return memrchr(bytes, byte, n);
}

void
kr_wipe(void *bytes, size_t n)
{
	explicit_bzero(bytes, n);
}
