/*
 * A byte buffer born with a maximum. Adding past it sets `overflow` and drops the whole addition; nobody has to
 * check each call, only the flag at the end. data is always terminated once anything was added.
 */
#ifndef KR_BASE_BUF_H
#define KR_BASE_BUF_H

#include "base/base.h"

struct kr_buf {
	char *data; /* NULL until the first addition */
	size_t len, cap, max;
	bool overflow;
};

#define KR_BUF(max_bytes) ((struct kr_buf){ .max = (max_bytes) })
void kr_buf_fini(struct kr_buf *buf);
#define kr_auto_buf KR_CLEANUP(kr_buf_fini)
/* Room for n more bytes at once, where much is known to come; beyond the maximum nothing happens. */
void kr_buf_reserve(struct kr_buf *buf, size_t n);
void kr_buf_add(struct kr_buf *buf, const void *bytes, size_t n);
void kr_buf_adds(struct kr_buf *buf, const char *s);
void kr_buf_addf(struct kr_buf *buf, const char *fmt, ...) KR_PRINTF(2, 3);
/* Keeps the last max bytes of all that is added so; never overflows. */
void kr_buf_add_last(struct kr_buf *buf, const char *bytes, size_t n);
/* The string with its end: one NUL-terminated argument of an argument file. */
void kr_buf_add_arg(struct kr_buf *buf, const char *s);

#endif
