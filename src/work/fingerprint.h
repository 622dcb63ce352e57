/*
 * Whether a task fails as it failed before: a fingerprint of what it said. Of the last lines that name a
 * fault, or the last ones of any kind where none does, without what differs from run to run by itself: times,
 * dates, durations, URLs, addresses and long hexadecimal numbers. Counts stay: "2 failed" after "3 failed" is
 * another failure. Pure.
 */
#ifndef KR_WORK_FINGERPRINT_H
#define KR_WORK_FINGERPRINT_H

#include "base/arena.h"

enum {
	KR_FINGERPRINT_TAIL = 20 << 10, /* bytes of an output, from its end */
	KR_FINGERPRINT_LINES = 5,
	KR_FINGERPRINT_LINE = 400, /* bytes of a line that count */
};

/* end: how it ended, in words without an id of its session. output: as of kr_brief_tail. In the arena. */
const char *kr_fingerprint(struct kr_arena *arena, const char *end, const char *output);

/* One line as it counts; out has room for KR_FINGERPRINT_LINE + 1 bytes. */
void kr_fingerprint_line(char *out, const char *line, size_t n);

#endif
