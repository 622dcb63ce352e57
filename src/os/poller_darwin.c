/*
 * Readiness by a kqueue. It has a filter for each direction, and both of a descriptor are always there, because the end of a
 * connection is told by them and has to be told whatever is asked for. One that is asked for is level-triggered; the other one
 * tells of each change once, and all but an end is dropped.
 */
#include "os/poller.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/event.h>
#include <sys/socket.h>
#include <time.h>

#include "base/base.h"
#include "base/fd.h"
#include "os/kevents.h"

enum { AT_ONCE = 128 };

int
kr_poller_open(struct kr_error *err)
{
	kr_auto_fd int fd = kqueue(); /* no child inherits one */

	if (fd < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a kqueue");
	return kr_steal_fd(fd);
}

static int
change(int poller_fd, int fd, int filter, unsigned flags, void *tag)
{
	struct kevent one;

	EV_SET(&one, (uintptr_t)fd, (int16_t)filter, (uint16_t)flags, 0, 0, tag);
	return kevent(poller_fd, &one, 1, NULL, 0, NULL);
}

/* A filter that nobody asked for may be one that this descriptor cannot have: then it tells of no end either. */
static int
add(int poller_fd, int fd, int filter, bool wanted, void *tag)
{
	return change(poller_fd, fd, filter, wanted ? EV_ADD : EV_ADD | EV_CLEAR, tag) < 0 && wanted ? -1 : 0;
}

int
kr_poller_add(int poller_fd, int fd, unsigned events, void *tag)
{
	if (add(poller_fd, fd, EVFILT_READ, events & KR_POLL_IN, tag) == 0 &&
		add(poller_fd, fd, EVFILT_WRITE, events & KR_POLL_OUT, tag) == 0)
		return 0;
	kr_poller_remove(poller_fd, fd);
	return -1;
}

/* EV_CLEAR is fixed when a filter is added. */
void
kr_poller_change(int poller_fd, int fd, unsigned events, void *tag)
{
	kr_poller_remove(poller_fd, fd);
	KR_BUG_IF(kr_poller_add(poller_fd, fd, events, tag) < 0);
}

void
kr_poller_remove(int poller_fd, int fd)
{
	const int saved = errno;

	(void)change(poller_fd, fd, EVFILT_READ, EV_DELETE, NULL); /* one of them may not have been possible */
	(void)change(poller_fd, fd, EVFILT_WRITE, EV_DELETE, NULL);
	errno = saved;
}

/*
 * An end of one direction is told as readable or writable, and only an end of both is KR_POLL_END. Which filter says it is not
 * enough to know: the other one may have said it before, to nobody. So the socket is asked; a pipe has one direction.
 */
static bool
has_ended(int fd)
{
	char one;
	ssize_t got = recv(fd, &one, sizeof(one), MSG_PEEK | MSG_DONTWAIT);

	if (got < 0 && errno == ENOTSOCK)
		return true;
	if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)))
		return false;
	return got < 0 || (send(fd, NULL, 0, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EPIPE);
}

int
kr_poller_wait(int poller_fd, struct kr_poll_event *out, int max, int timeout_ms)
{
	struct kevent ready[AT_ONCE];
	struct kr_kevent seen[AT_ONCE];
	const struct timespec limit = { timeout_ms / 1000, timeout_ms % 1000 * 1000000L };
	int n = kevent(poller_fd, NULL, 0, ready, max < AT_ONCE ? max : AT_ONCE, timeout_ms < 0 ? NULL : &limit);

	for (int i = 0; i < n; i++)
		seen[i] = (struct kr_kevent){ .fd = (int)ready[i].ident,
			.tag = ready[i].udata,
			.is_read = ready[i].filter == EVFILT_READ,
			.is_asked = !(ready[i].flags & EV_CLEAR),
			.is_end = ready[i].flags & EV_EOF,
			.is_broken = ready[i].flags & EV_ERROR || (ready[i].flags & EV_EOF && ready[i].fflags != 0) };
	return kr_kevents_join(seen, n, has_ended, out);
}
