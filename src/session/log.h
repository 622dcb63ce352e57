/*
 * The log of a session: every byte that the worker wrote, unchanged, with the time and the stream it came by.
 *
 * In the session's folder, 0600:
 *     log      the first half of the limit, as it came; plain bytes, so any tool can read it
 *     log.1 log.2   what follows, a quarter of the limit each, taking turns: the newest part always stays
 * whole
 *     *.idx    beside each: a header, then one record per piece (where it starts, its stream, its time)
 * A part and its index together never pass the part's share, so the limit bounds the disk whatever the worker
 * does. What was dropped between the first part and the oldest that is left shows as a gap, which readers
 * mark. The log stops, and says why, when the disk has less than KR_LOG_RESERVE_BYTES left.
 *
 * One writer, any number of readers meanwhile: a part is replaced by new files, never truncated.
 */
#ifndef KR_SESSION_LOG_H
#define KR_SESSION_LOG_H

#include "base/error.h"

/* name in --json */
#define KR_LOG_STREAMS(X)                                                    \
	X(OUTPUT, "output") /* the terminal's, or both in one pipe */            \
	X(STDOUT, "stdout")                                                      \
	X(STDERR, "stderr")                                                      \
	X(NOTE, "kraft") /* a remark of ours: a gap, why a launch was refused */ \
	X(MARK, "mark")  /* where the first part is cut, for who reads the file itself; readers get none of it */

enum kr_log_stream {
#define X(stream, name) KR_LOG_##stream,
	KR_LOG_STREAMS(X)
#undef X
		KR_LOG_STREAM_COUNT
};
const char *kr_log_stream_name(enum kr_log_stream stream);

#define KR_LOG_LIMIT_BYTES (64ull << 20)
#define KR_LOG_RESERVE_BYTES (128ull << 20)

struct kr_log {
	int dir_fd;            /* the session's folder; borrowed */
	int data_fd, index_fd; /* -1 until the first byte */
	uint64_t limit_bytes;
	uint64_t generation; /* 0: log; odd: log.1; even: log.2 */
	uint64_t total;      /* bytes of output so far */
	uint64_t part_bytes; /* data of the present part */
	uint64_t part_records;
	uint64_t unchecked; /* bytes since the last look at the disk */
	uint64_t last_ms;
	enum kr_log_stream last_stream;
	int sys_errno; /* why logging stopped; 0: it did not */
};

/* Makes no file: a silent session has no log. dir_fd is borrowed until kr_log_close. */
void kr_log_init(struct kr_log *log, int dir_fd, uint64_t limit_bytes);
/* Never fails towards the caller: a log that cannot be written does not end the session; see sys_errno. */
void kr_log_add(struct kr_log *log, enum kr_log_stream stream, const void *bytes, size_t n, uint64_t now_ms);
void kr_log_close(struct kr_log *log);

struct kr_log_piece {
	enum kr_log_stream stream;
	uint64_t ms; /* since the epoch */
	const char *bytes;
	size_t n;
};
struct kr_log_reader {
	int dir_fd; /* borrowed */
	int data_fd, index_fd;
	uint64_t generation, start, record, data_at;
};
void kr_log_reader_init(struct kr_log_reader *reader, int dir_fd);
void kr_log_reader_fini(struct kr_log_reader *reader);
/*
 * Calls visit for everything that was added since the last call; visit returns -1 to stop. Returns the number
 * of pieces, 0 when there is nothing new, -1 with err (KR_E_SYSTEM: a part cannot be read, or its index is
 * damaged).
 */
long kr_log_reader_next(struct kr_log_reader *reader,
	int (*visit)(void *context, const struct kr_log_piece *piece), void *context, struct kr_error *err);

/* The last up to n bytes of the log; returns how many. For a question about the end, not for showing it. */
size_t kr_log_tail(int dir_fd, char *out, size_t n);

#endif
