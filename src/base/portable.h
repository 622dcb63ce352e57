/*
 * Calls that Linux has in one piece and macOS in several, or under another name: the same function in linux.c and in darwin.c,
 * chosen by the build. What the systems do differently beyond a call's form is room os/ (os/sys.h).
 *
 * Every descriptor that is made here is close-on-exec. On Linux from birth; macOS has no such call, so there it becomes that
 * right after: a thread that starts a program in between could hand it on, and kraft's own threads start none.
 */
#ifndef KR_BASE_PORTABLE_H
#define KR_BASE_PORTABLE_H

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include "base/base.h"

/* ---- descriptors: -1 with errno ---- */

int kr_pipe_pair(int fds[2], bool never_blocks);
int kr_socket_make(int family, int type, int protocol, bool never_blocks);
int kr_socket_pair(int type, int fds[2]); /* of unix sockets that block */
struct sockaddr_in;
int kr_socket_accept(int listener, bool never_blocks, struct sockaddr_in *from); /* from: of an IPv4 listener's client, or NULL */
/* recvmsg that never waits; descriptors that come with it are close-on-exec too. */
ssize_t kr_socket_receive(int fd, struct msghdr *message);
/* Closes every descriptor from `first` on. */
int kr_close_from(unsigned first);
/* A file without a name in this directory, 0600, to write and to read. */
int kr_nameless_file(const char *directory);

/*
 * Flags for open: to go through a directory or to name things in it, which one that may be searched but not listed is
 * good for; and to look at whatever is there without opening it. macOS knows no descriptor that reads nothing: there the
 * second wants the right to read, and opens no socket.
 */
#ifdef O_PATH
#define KR_O_PLACE (O_PATH | O_DIRECTORY)
#define KR_O_LOOK O_PATH
#else
#define KR_O_PLACE O_SEARCH
#define KR_O_LOOK (O_RDONLY | O_EVTONLY | O_NONBLOCK | O_NOCTTY)
#endif

/* ---- from descriptor to descriptor, with nothing copied ---- */

/* A pipe to do it with, of this size if the system likes, that never blocks; -1: here bytes have to be copied (macOS). */
int kr_splice_pipe(int fds[2], size_t bytes);
/* As read and write say it; never waits. One of the two is such a pipe's end. */
ssize_t kr_splice(int from, int to, size_t n);

/* ---- what a socket is ---- */

/* A TCP socket over IPv4, and nothing that is only like one. */
bool kr_socket_is_tcp4(int fd);
/* Who made or dialled the other end of a unix socket. */
int kr_socket_peer(int fd, uid_t *out);

/* ---- files ---- */

/*
 * Takes away the flags by which a file's owner keeps it from being changed, moved or removed (macOS: chflags uchg and uappnd, which
 * any process of the user's may set); a link itself, not what it names. 0: there were some and they are gone, so what was refused is
 * worth another try; else -1. A file of its own: tests put theirs in its place.
 */
int kr_unlock_at(int dir_fd, const char *name);
/* All of the one's bytes into the other, which is empty, without going through us; -1: it has to be done otherwise, and both
 * may have been moved along. */
int kr_file_copy_within(int from, int to);
/* Real blocks for a file's first `bytes`; -1: not all of them could be had. */
int kr_file_reserve(int fd, off_t bytes);

#ifdef __APPLE__
#define KR_STAT_TIME(st, which) ((st)->st_##which##timespec)
#else
#define KR_STAT_TIME(st, which) ((st)->st_##which##tim)
#endif
static inline struct timespec
kr_mtime(const struct stat *st)
{
	return KR_STAT_TIME(st, m);
}
static inline struct timespec
kr_ctime(const struct stat *st)
{
	return KR_STAT_TIME(st, c);
}
static inline struct timespec
kr_atime(const struct stat *st)
{
	return KR_STAT_TIME(st, a);
}

/* ---- memory ---- */

/* False: the system gives no random bytes. n: 256 at most. */
bool kr_random(void *out, size_t n);
/* The last such byte, or NULL. */
const void *kr_memrchr(const void *bytes, int byte, size_t n);
/* Zeroes what the compiler may take for dead. */
void kr_wipe(void *bytes, size_t n);

#endif
