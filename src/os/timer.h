/* A moment as a descriptor: readable from then on, so that a poller (os/poller.h) can wait for it too.
 * timerfd on Linux, a kqueue on macOS. */
#ifndef KR_OS_TIMER_H
#define KR_OS_TIMER_H

#include "base/error.h"

/* Milliseconds of a clock that never goes back; its zero means nothing. */
int64_t kr_clock_ms(void);
/* The same, a few of them late, for less than reading it costs. */
int64_t kr_clock_coarse_ms(void);

/* Close-on-exec; closed by close(2). Never readable until it is set. */
int kr_timer_open(struct kr_error *err);
/* Readable from at_ms of kr_clock_ms on, in place of what was set before; -1: not any more. Setting it ends
 * readability. */
void kr_timer_set(int timer_fd, int64_t at_ms);

#endif
