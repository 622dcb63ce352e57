#include "os/poller.h"

#include <errno.h>
#include <sys/epoll.h>

#include "base/base.h"

enum { AT_ONCE = 128 };

int
kr_poller_open(struct kr_error *err)
{
	int fd = epoll_create1(EPOLL_CLOEXEC);

	if (fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make an epoll descriptor");
	return fd;
}

static struct epoll_event
event_of(unsigned events, void *tag)
{
	return (struct epoll_event){
		.events = (events & KR_POLL_IN ? EPOLLIN : 0u) | (events & KR_POLL_OUT ? EPOLLOUT : 0u),
		.data.ptr = tag,
	};
}

int
kr_poller_add(int poller_fd, int fd, unsigned events, void *tag)
{
	struct epoll_event event = event_of(events, tag);

	return epoll_ctl(poller_fd, EPOLL_CTL_ADD, fd, &event);
}

void
kr_poller_change(int poller_fd, int fd, unsigned events, void *tag)
{
	struct epoll_event event = event_of(events, tag);

	KR_BUG_IF(epoll_ctl(poller_fd, EPOLL_CTL_MOD, fd, &event) < 0);
}

void
kr_poller_remove(int poller_fd, int fd)
{
	KR_BUG_IF(epoll_ctl(poller_fd, EPOLL_CTL_DEL, fd, NULL) < 0);
}

int
kr_poller_wait(int poller_fd, struct kr_poll_event *out, int max, int timeout_ms)
{
	struct epoll_event ready[AT_ONCE];
	int n = epoll_wait(poller_fd, ready, max < AT_ONCE ? max : AT_ONCE, timeout_ms);

	for (int i = 0; i < n; i++) {
		unsigned events = ready[i].events;

		out[i].tag = ready[i].data.ptr;
		out[i].events = (events & EPOLLIN ? KR_POLL_IN : 0u) | (events & EPOLLOUT ? KR_POLL_OUT : 0u) |
			(events & (EPOLLERR | EPOLLHUP) ? KR_POLL_END : 0u);
	}
	return n < 0 ? 0 : n;
}
