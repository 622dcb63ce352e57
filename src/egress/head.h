/*
 * A request's or response's head: from bytes that a worker or a server chose to fields that are what they
 * seem, and back into bytes of ours. Pure. Nothing of a head is forwarded as it came; what is written anew
 * has one reading (HTTP-01, HTTP-02, HTTP-05 to HTTP-07, HTTP-16).
 *
 * Everything in a struct kr_head points into the bytes that were parsed.
 */
#ifndef KR_EGRESS_HEAD_H
#define KR_EGRESS_HEAD_H

#include "base/buf.h"
#include "egress/limits.h"
#include "policy/policy.h"

/* ---- where it ends ---- */

/* How far the bytes of a head were looked at. Zero is the beginning. */
struct kr_head_scan {
	size_t at;   /* the next byte */
	size_t line; /* where its line begins */
};
enum kr_scan_state {
	KR_SCAN_MORE,
	KR_SCAN_WHOLE, /* scan->at is its length, the empty line included */
	KR_SCAN_BAD,   /* no head begins like this: NUL, control character, bare CR or LF, too long */
};
/* bytes[0, n) are all that came so far; each byte is looked at once. */
enum kr_scan_state kr_head_scan(struct kr_head_scan *scan, const char *bytes, size_t n);

/* Whether these first bytes can still become a request: what is no HTTP at all is told apart at once. */
bool kr_request_begins(const char *bytes, size_t n);

/* ---- what it says ---- */

#define KR_METHODS(X) \
	X(CONNECT)        \
	X(GET)            \
	X(HEAD)           \
	X(POST)           \
	X(PUT)            \
	X(PATCH)          \
	X(DELETE)         \
	X(OPTIONS)
enum kr_method {
#define X(method) KR_METHOD_##method,
	KR_METHODS(X)
#undef X
		KR_METHOD_COUNT
};
const char *kr_method_name(enum kr_method method);

struct kr_bytes {
	const char *at;
	size_t n;
};
struct kr_field {
	struct kr_bytes name, value; /* value without blanks around it */
};

enum kr_framing {
	KR_FRAMING_NONE, /* a request: no body. A response: until the end of the connection */
	KR_FRAMING_LENGTH,
	KR_FRAMING_CHUNKED,
};

struct kr_head {
	enum kr_method method;  /* of a request */
	struct kr_bytes target; /* of a request; as written */
	unsigned status;        /* of a response: 100 to 599 */
	struct kr_bytes reason;
	unsigned minor; /* HTTP/1.minor: 0 or 1 */
	enum kr_framing framing;
	uint64_t length; /* with KR_FRAMING_LENGTH */
	bool expects;    /* "100-continue", and it is HTTP/1.1 */
	size_t n;
	struct kr_field fields[KR_HEAD_FIELDS];
};

/* A whole head of n bytes (as kr_head_scan found it). 0, or the status to answer with (400, 417) and why, one
 * line; out->fields then holds the fields up to the first that is none, for the token of a proxy on loopback. */
unsigned kr_request_parse(const char *bytes, size_t n, struct kr_head *out, const char **why);
/* False: no response that may be passed on. */
bool kr_response_parse(const char *bytes, size_t n, struct kr_head *out, const char **why);

/* The last field of that name (lower case), and how many have it; NULL: none has. */
const struct kr_field *kr_head_find(const struct kr_head *head, const char *name, size_t *count);

/* Whether its sender ends the connection behind the message: it says so, or is of HTTP/1.0. */
bool kr_head_closes(const struct kr_head *head);

/* Where a request wants to go. */
struct kr_destination {
	struct kr_target target;        /* port is set: 80 when none was written */
	char authority[KR_TARGET_TEXT]; /* canonical; with a port when one was written */
	struct kr_bytes path;           /* of an absolute form; "" or what begins with '/' or '?' */
};
bool kr_request_destination(const struct kr_head *head, struct kr_destination *out, const char **why);

/* ---- written anew ---- */

/* A plain request: in origin form, or for an upstream proxy, whose Proxy-Authorization is `authorization`
 * ("": none). */
struct kr_request_write {
	const struct kr_head *head;
	const struct kr_destination *to;
	bool upstream;
	const char *authorization;
	/* Where a request's fields are not all passed on (secret.c): keeps the connection, drops fields, adds some. NULL: none. */
	bool keeps;
	bool (*is_dropped)(const void *context, const struct kr_field *field);
	void (*add)(const void *context, const struct kr_head *head, struct kr_buf *out);
	const void *context;
};
void kr_request_write(const struct kr_request_write *request, struct kr_buf *out);

/* A response for the client, its body framed as `framing` says; keeps: the connection goes on behind it. An interim one (1xx)
 * has none of that. */
void kr_response_write(const struct kr_head *head, enum kr_framing framing, bool keeps, struct kr_buf *out);

/* CONNECT for an upstream proxy. */
void kr_connect_write(const struct kr_destination *to, const char *authorization, struct kr_buf *out);

/* The words behind a status of ours. */
const char *kr_status_reason(unsigned status);
/* Our own answer, body and all: "kraft: " and `why`. */
void kr_refusal_write(unsigned status, const char *why, bool with_body, struct kr_buf *out);

#endif
