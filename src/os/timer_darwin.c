/* The clocks stand still while the machine sleeps, as Linux's do and as the kqueue's timers. */
#include "os/timer.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/event.h>
#include <time.h>

#include "base/base.h"
#include "base/fd.h"

enum { TIMER = 1 }; /* its name in its kqueue */

static int64_t
read_clock(clockid_t clock)
{
	struct timespec now;

	KR_BUG_IF(clock_gettime(clock, &now) < 0);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t
kr_clock_ms(void)
{
	return read_clock(CLOCK_UPTIME_RAW);
}

int64_t
kr_clock_coarse_ms(void)
{
	return read_clock(CLOCK_UPTIME_RAW_APPROX);
}

int
kr_timer_open(struct kr_error *err)
{
	kr_auto_fd int fd = kqueue(); /* no child inherits one */

	if (fd < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a timer");
	return kr_steal_fd(fd);
}

/* An event that nobody took goes with its timer, so the kqueue is readable no more. */
void
kr_timer_set(int timer_fd, int64_t at_ms)
{
	const int64_t left = at_ms - kr_clock_ms();
	struct kevent change;

	EV_SET(&change, TIMER, EVFILT_TIMER, EV_DELETE, 0, 0, NULL);
	KR_BUG_IF(kevent(timer_fd, &change, 1, NULL, 0, NULL) < 0 && errno != ENOENT);
	if (at_ms < 0)
		return;
	EV_SET(&change, TIMER, EVFILT_TIMER, EV_ADD | EV_ONESHOT, 0, left > 0 ? (intptr_t)left : 1, NULL); /* in ms */
	KR_BUG_IF(kevent(timer_fd, &change, 1, NULL, 0, NULL) < 0);
}
