/* Which items get a host: a pure choice over what the store says and what is running. */
#ifndef KR_SERVER_KEEP_H
#define KR_SERVER_KEEP_H

#include "work/work.h"

enum kr_keep_word {
	KR_KEEP_NOTHING,
	KR_KEEP_START,   /* give it a host */
	KR_KEEP_REQUEUE, /* BLOCKED, and need not be any more */
	KR_KEEP_GIVE_UP, /* its hosts end before they get anywhere */
};

struct kr_keep {
	const char *id;
	enum kr_status status;
	bool is_hosted; /* a process holds its lock, or is about to take it */
	bool waits;     /* for what it depends on */
	bool has_turn;  /* a session beside its chain waits to begin or to be settled (work/turn.h) */
	unsigned failures;      /* hosts that ended and left it as it was, in a row */
	uint64_t since_ms;      /* the queue's order */
	uint64_t not_before_ms; /* another try; 0: now. In the same clock as now_ms */
	enum kr_keep_word word; /* out */
};

enum { KR_KEEP_FAILURES = 4 };

/*
 * What a host was lost of begins again first, then the queue in its order, while fewer than `slots` are hosted. An
 * item that is hosted holds a slot, whoever started it.
 */
void kr_keep_choose(struct kr_keep *items, size_t n, unsigned slots, uint64_t now_ms);

#endif
