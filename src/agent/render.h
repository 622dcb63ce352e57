/* What a person sees of an agent's lines. Pure: what it shows goes to `write`, free of control characters but
 * newline, tab and its own colours. stream.h has it as a process. */
#ifndef KR_AGENT_RENDER_H
#define KR_AGENT_RENDER_H

#include "agent/reading.h"

enum { KR_RENDER_LINE = 1 << 20, KR_RENDER_OUT = 16 << 10 }; /* a longer line is left out, with a remark */

struct kr_render {
	enum kr_reader reader;
	bool is_coloured;
	void (*write)(void *context, const char *bytes, size_t n);
	void *context;
	/* zero at first */
	struct kr_agent_seen seen;
	struct kr_reading reading;
	unsigned turns;
	double taken_ms;
	bool is_long;
	size_t len, held;
	char line[KR_RENDER_LINE + 1], out[KR_RENDER_OUT];
};

void kr_render_feed(struct kr_render *r, const char *bytes, size_t n);
void kr_render_end(struct kr_render *r);

#endif
