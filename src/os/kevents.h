/*
 * From what a kqueue tells, one filter at a time, to what os/poller.h promises: one event for each descriptor. The part of
 * poller_darwin.c that is no system call, so that it can be tested anywhere.
 */
#ifndef KR_OS_KEVENTS_H
#define KR_OS_KEVENTS_H

#include "base/base.h"
#include "os/poller.h"

struct kr_kevent {
	int fd;
	void *tag;
	bool is_read;   /* else it may be written */
	bool is_asked;  /* for this direction */
	bool is_end;    /* of this direction, or of both */
	bool is_broken; /* with an error */
};

/* has_ended: whether both directions of a descriptor have, asked where an end is told without an error. Returns how many there
 * are in `out`, which has room for n; n below 0 is none. */
int kr_kevents_join(const struct kr_kevent *seen, int n, bool (*has_ended)(int fd), struct kr_poll_event *out);

#endif
