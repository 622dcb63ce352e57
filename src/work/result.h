/*
 * The result file that a task may write at KRAFT_RESULT_PATH: a JSON object whose `status` wins over the exit
 * code. It is a worker's word: read bounded, parsed by a process without power (os/powerless.h), and what
 * comes back is checked again.
 */
#ifndef KR_WORK_RESULT_H
#define KR_WORK_RESULT_H

#include "work/walk.h"

enum { KR_RESULT_BYTES = 1 << 20, KR_RESULT_TEXT = 2000 };

struct kr_result {
	bool is_there;            /* an empty file counts as none */
	enum kr_mark_kind status; /* DONE, CONCERNS, FAILED, QUESTION; FAILED for a file that is no such object */
	char problem[200];        /* what is wrong with the file; "": nothing */
	char concerns[KR_RESULT_TEXT], question[KR_RESULT_TEXT], summary[KR_RESULT_TEXT]; /* UTF-8, cut with "..."; "": none */
};

/* Pure: bytes to struct kr_result. A kr_parse_fn. */
void kr_result_parse(const void *bytes, size_t n, void *result);
/* A regular file, never through a link, of at most KR_RESULT_BYTES; anything else is `problem`. -1 only when
 * no parser can be had. */
int kr_result_read(const char *path, struct kr_result *out, struct kr_error *err);

#endif
