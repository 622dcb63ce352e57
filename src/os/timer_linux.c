#include "os/timer.h"

#include <errno.h>
#include <sys/timerfd.h>
#include <time.h>

#include "base/base.h"

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
	return read_clock(CLOCK_MONOTONIC);
}

int64_t
kr_clock_coarse_ms(void)
{
	return read_clock(CLOCK_MONOTONIC_COARSE);
}

int
kr_timer_open(struct kr_error *err)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a timer");
	return fd;
}

void
kr_timer_set(int timer_fd, int64_t at_ms)
{
	struct itimerspec when = { .it_value = { 0 } };

	if (at_ms >= 0) {
		when.it_value.tv_sec = (time_t)(at_ms / 1000);
		when.it_value.tv_nsec = (long)(at_ms % 1000) * 1000000;
		if (at_ms == 0)
			when.it_value.tv_nsec = 1; /* all zero would switch it off */
	}
	KR_BUG_IF(timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &when, NULL) < 0);
}
