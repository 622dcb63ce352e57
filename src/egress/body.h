/*
 * A body on its way in: llhttp takes the framing off. The head it belongs to was judged before (head.h);
 * llhttp sees one of ours that says the same about the body and nothing else, so the two cannot disagree
 * about where it ends.
 *
 * A struct kr_body must not move once it is begun.
 */
#ifndef KR_EGRESS_BODY_H
#define KR_EGRESS_BODY_H

#include <llhttp.h>

#include "egress/head.h"

enum kr_body_state {
	KR_BODY_MORE,
	KR_BODY_DONE, /* what came behind the end was not looked at */
	KR_BODY_BAD,
};

struct kr_body {
	llhttp_t parser;
	enum kr_body_state state;
	char *to;     /* while feeding: where the next bytes of the body go */
	size_t used;  /* of the bytes fed last; when the state is DONE, those behind them are not this body's */
	size_t extra; /* bytes of chunk extensions since the last chunk, and of trailers */
};

void kr_body_begin(struct kr_body *body, bool response, enum kr_framing framing, uint64_t length);
/* Takes the framing off in place: bytes[0, *left) are body afterwards, also when the state is BAD. */
enum kr_body_state kr_body_feed(struct kr_body *body, char *bytes, size_t n, size_t *left);
/* The sender closed: DONE or BAD. */
enum kr_body_state kr_body_finish(struct kr_body *body);

#endif
