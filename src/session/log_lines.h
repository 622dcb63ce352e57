/*
 * A session's log as lines: pieces of each stream put together, colours taken out, and what could steer a
 * terminal made visible. What `kraft view logs` prints and what the API sends is the same.
 */
#ifndef KR_SESSION_LOG_LINES_H
#define KR_SESSION_LOG_LINES_H

#include <jansson.h>

#include "session/log.h"

enum { KR_LOG_LINE_BYTES = 16384 }; /* a longer one comes in parts */

struct kr_log_line {
	enum kr_log_stream stream;
	uint64_t ms; /* when it began */
	const char *text;
	bool is_complete; /* with its end; false: a part, or the rest of the log */
};
/* -1 stops. */
typedef int kr_log_line_fn(void *context, const struct kr_log_line *line);

/* All zero but the first two at its beginning. */
struct kr_log_lines {
	kr_log_line_fn *show;
	void *context;
	struct {
		uint64_t ms;
		size_t n;
		char bytes[KR_LOG_LINE_BYTES];
	} line[KR_LOG_STREAM_COUNT];
};

/* For kr_log_reader_next; context: a kr_log_lines. */
int kr_log_lines_add(void *context, const struct kr_log_piece *piece);
/* Lines that have begun and do not end. */
int kr_log_lines_end(struct kr_log_lines *lines);

/* {"ms", "stream", "text", "complete"} */
json_t *kr_log_line_json(const struct kr_log_line *line);

#endif
