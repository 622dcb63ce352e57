#include "base/portable.h"

#include <copyfile.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <libproc.h>
#include <sys/proc_info.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"

/* ---- descriptors ---- */

/* -1, with fd closed, when it cannot be made so. */
static int
prepare(int fd, bool never_blocks)
{
	if (fd < 0)
		return -1;
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 &&
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | (never_blocks ? O_NONBLOCK : 0)) == 0)
		return fd;
	kr_close_p(&fd);
	return -1;
}

static int
prepare_both(int made, int fds[2], bool never_blocks)
{
	if (made < 0)
		return -1;
	fds[0] = prepare(fds[0], never_blocks);
	fds[1] = prepare(fds[1], never_blocks);
	if (fds[0] >= 0 && fds[1] >= 0)
		return 0;
	kr_close_p(&fds[0]);
	kr_close_p(&fds[1]);
	return -1;
}

int
kr_pipe_pair(int fds[2], bool never_blocks)
{
	return prepare_both(pipe(fds), fds, never_blocks);
}

int
kr_socket_make(int family, int type, int protocol, bool never_blocks)
{
	return prepare(socket(family, type, protocol), never_blocks);
}

int
kr_socket_pair(int type, int fds[2])
{
	return prepare_both(socketpair(AF_UNIX, type, 0, fds), fds, false);
}

/* Here an accepted socket has its listener's O_NONBLOCK, so it is set or taken away. */
int
kr_socket_accept(int listener, bool never_blocks, struct sockaddr_in *from)
{
	socklen_t n = sizeof(*from);
	int fd = accept(listener, (struct sockaddr *)from, from ? &n : NULL);

	if (fd < 0)
		return -1;
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && fcntl(fd, F_SETFL, never_blocks ? O_NONBLOCK : 0) == 0)
		return fd;
	kr_close_p(&fd);
	return -1;
}

static void
close_on_exec(struct msghdr *message)
{
	int fd;

	for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at; at = CMSG_NXTHDR(message, at))
		for (size_t i = 0; at->cmsg_level == SOL_SOCKET && at->cmsg_type == SCM_RIGHTS &&
			 CMSG_LEN((i + 1) * sizeof(int)) <= at->cmsg_len;
			 i++) {
			memcpy(&fd, CMSG_DATA(at) + i * sizeof(int), sizeof(fd));
			(void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* it was made a moment ago: it cannot fail */
		}
}

ssize_t
kr_socket_receive(int fd, struct msghdr *message)
{
	const ssize_t got = recvmsg(fd, message, MSG_DONTWAIT);

	if (got >= 0)
		close_on_exec(message);
	return got;
}

/* By the system's list of what is open: the limit is no bound for the numbers, since it may have been lowered. */
int
kr_close_from(unsigned first)
{
	enum { MORE = 16 }; /* than there were when its size was asked */
	const int size = proc_pidinfo(getpid(), PROC_PIDLISTFDS, 0, NULL, 0) + MORE * PROC_PIDLISTFD_SIZE;
	kr_auto_free struct proc_fdinfo *list = kr_xcalloc(1, (size_t)size);
	const int got = proc_pidinfo(getpid(), PROC_PIDLISTFDS, 0, list, size);

	if (got <= 0 || got >= size) {
		errno = got < 0 ? errno : EMFILE;
		return -1;
	}
	for (size_t i = 0; i < (size_t)got / sizeof(*list); i++)
		if (list[i].proc_fd >= 0 && (unsigned)list[i].proc_fd >= first)
			(void)close(list[i].proc_fd);
	return 0;
}

int
kr_nameless_file(const char *directory)
{
	char path[1024];
	const int n = snprintf(path, sizeof(path), "%s/.kraft-XXXXXX", directory);
	kr_auto_fd int fd = -1;

	if (n < 0 || (size_t)n >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0 || unlink(path) < 0)
		return -1;
	return kr_steal_fd(fd);
}

int
kr_splice_pipe(int fds[2], size_t bytes)
{
	(void)fds;
	(void)bytes;
	errno = ENOTSUP;
	return -1;
}

ssize_t
kr_splice(int from, int to, size_t n)
{
	(void)from;
	(void)to;
	(void)n;
	errno = ENOTSUP;
	return -1;
}

/* ---- what a socket is ---- */

/* The other protocols of streams here have families of their own. */
bool
kr_socket_is_tcp4(int fd)
{
	struct sockaddr_storage name = { 0 };
	socklen_t name_n = sizeof(name), n = sizeof(int);
	int type = 0;

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_STREAM &&
		getsockname(fd, (struct sockaddr *)&name, &name_n) == 0 && name.ss_family == AF_INET;
}

int
kr_socket_peer(int fd, uid_t *out)
{
	gid_t group;

	return getpeereid(fd, out, &group);
}

/* ---- files ---- */

int
kr_file_copy_within(int from, int to)
{
	return fcopyfile(from, to, NULL, COPYFILE_DATA);
}

int
kr_file_reserve(int fd, off_t bytes)
{
	struct stat st;
	fstore_t more = { .fst_flags = F_ALLOCATEALL, .fst_posmode = F_PEOFPOSMODE };

	if (fstat(fd, &st) < 0)
		return -1;
	more.fst_length = bytes - st.st_size;
	if (more.fst_length <= 0)
		return 0;
	return fcntl(fd, F_PREALLOCATE, &more) < 0 ? -1 : ftruncate(fd, bytes);
}

/* ---- memory ---- */

bool
kr_random(void *out, size_t n)
{
	arc4random_buf(out, n); /* it cannot fail */
	return true;
}

const void *
kr_memrchr(const void *bytes, int byte, size_t n)
{
	const unsigned char *at = bytes;

	while (n--)
		if (at[n] == (unsigned char)byte)
			return at + n;
	return NULL;
}

void
kr_wipe(void *bytes, size_t n)
{
	(void)memset_s(bytes, n, 0, n);
}
