/*
 * The watch over what a host answers: whether a secret comes back (CRED-08). Pure, but for memory at the beginning.
 *
 * Sought are the first KR_ECHO_SOUGHT bytes of each secret, in these spellings: as it is; with '"' and '\' escaped as JSON does, '/'
 * as well or not; percent-encoded as URLs and forms do (all but letters, digits and "-._~", and all of them, hexadecimal digits of either case);
 * base64 in its three places, in both alphabets; hexadecimal. One automaton reads each byte once. A secret that is packed, split,
 * mixed with other bytes or spelled in another way is not found; one shorter than KR_ECHO_LEAST bytes is sought as it is only, since
 * the rest would be found where it is not.
 *
 * Bytes that may be the beginning of one are held back until it is known, so of what is found nothing at all goes out.
 */
#ifndef KR_EGRESS_ECHO_H
#define KR_EGRESS_ECHO_H

#include "base/base.h"

enum {
	KR_ECHO_SOUGHT = 32, /* of a secret; another one that begins so, as web tokens do with their header, is cut off too */
	KR_ECHO_LEAST = 8,
	KR_ECHO_HELD = 3 * KR_ECHO_SOUGHT, /* the longest spelling, and so the most that is held back */
};

struct kr_echo; /* of one host: its secrets as an automaton */

/* values[i] NULL: there is none. NULL: there is no memory. */
struct kr_echo *kr_echo_new(const char *const values[], size_t n);
void kr_echo_free(struct kr_echo *echo); /* NULL is allowed; wipes */

/* Where one response is; zero is its beginning. */
struct kr_echo_watch {
	uint32_t state;
	uint32_t held_n;
	char held[KR_ECHO_HELD]; /* came before, and may go out yet */
};

/*
 * Looks at bytes[0, n). What may go out now is *before of the held ones, which are in `held` still (the caller sends them first),
 * and the first *now of the bytes. Returns -1, and kr_echo_keep is next; or which secret is there: then these are all that come
 * before it, and the watch is over.
 */
int kr_echo_feed(const struct kr_echo *echo, struct kr_echo_watch *watch, const char *bytes, size_t n, size_t *before, size_t *now);
/* What went out is dropped, and what did not is held. */
void kr_echo_keep(struct kr_echo_watch *watch, const char *bytes, size_t n, size_t before, size_t now);

/* The same at once: which secret is in these bytes; -1: none. */
int kr_echo_find(const struct kr_echo *echo, const char *bytes, size_t n);

#endif
