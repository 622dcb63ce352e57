/*
 * What a terminal program left switched on: watches the output that goes to the terminal and knows which
 * modes would outlive it, and whether it asked the terminal something whose answer may still come. Pure; the
 * input is hostile, so the state is small and bounded, and nothing but numbers is taken from it.
 */
#ifndef KR_SESSION_MODES_H
#define KR_SESSION_MODES_H

#include "base/buf.h"

enum { KR_MODES_PARAMS = 48 };

struct kr_modes {
	uint32_t on;       /* bits by place in the table of modes.c: differs from a fresh terminal */
	unsigned keyboard; /* pushed keyboard protocol levels */
	bool keypad, region, any_escape;
	uint64_t queries; /* questions asked so far */
	/* the parser: */
	unsigned state;
	size_t used;
	bool too_long;
	char params[KR_MODES_PARAMS];
};

void kr_modes_feed(struct kr_modes *modes, const char *bytes, size_t n);
/* Adds the bytes that bring a terminal back; none when there was no escape sequence at all. */
void kr_modes_reset(const struct kr_modes *modes, struct kr_buf *out);

#endif
