/* Readiness of many descriptors: epoll on Linux. The set is itself a descriptor that can be polled. */
#ifndef KR_OS_POLLER_H
#define KR_OS_POLLER_H

#include "base/error.h"

enum {
	KR_POLL_IN = 1,  /* there is something to read, or the end */
	KR_POLL_OUT = 2, /* writing would not block */
	KR_POLL_END = 4, /* error or hang-up on both sides; told whether asked for or not */
};

struct kr_poll_event {
	void *tag;
	unsigned events;
};

/* Close-on-exec; closed by close(2). */
int kr_poller_open(struct kr_error *err);
/* Level-triggered. Adding can fail (ENOMEM, ENOSPC): -1 with errno. events may be 0: only END is told. A descriptor must
 * be removed before it is closed. */
int kr_poller_add(int poller_fd, int fd, unsigned events, void *tag);
void kr_poller_change(int poller_fd, int fd, unsigned events, void *tag);
void kr_poller_remove(int poller_fd, int fd);
/* Up to max events; 0 at the time-out (-1: none) and after a signal. */
int kr_poller_wait(int poller_fd, struct kr_poll_event *out, int max, int timeout_ms);

#endif
