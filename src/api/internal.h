/*
 * Between the files of this room. A request is judged in one order, and the first "no" answers it:
 *
 *     connection.c   bytes in, bytes out, deadlines; the loop of one connection
 *     request.c      its target, its route, its arguments (pure)
 *     admit.c        who may ask (pure)
 *     routes.c       the table of all routes, and the reference made of it
 *     res_*.c        what each route does
 *     answer.c       answers, and those that come bit by bit
 *     token.c        the token's file; the cookie of a login
 */
#ifndef KR_API_INTERNAL_H
#define KR_API_INTERNAL_H

#include <jansson.h>

#include "api/api.h"
#include "egress/head.h"
#include "work/work.h"

enum {
	KR_API_HEAD_MS = 10000,  /* for a head, from its first byte (of the first request: from the start) */
	KR_API_BODY_MS = 30000,  /* for all of a body */
	KR_API_IDLE_MS = 60000,  /* between requests */
	KR_API_WRITE_MS = 60000, /* for the next so many bytes of an answer, or all that is left of it */
	KR_API_WRITE_BYTES = 64 << 10,
	KR_API_BODY_BYTES = 1 << 20,
	KR_API_BODY_DEPTH = 16,
	KR_API_BODY_VALUES = 4096, /* commas, brackets and braces: what a parser allocates for */
	KR_API_ANSWER_BYTES = 64 << 20,
	KR_API_SEGMENTS = 8, /* of a path */
	KR_API_PARAMS = 2,   /* of a pattern */
	KR_API_TOKEN_CHARS = 43,
	KR_API_TEXT_BYTES = 64 << 10,
	KR_API_WORD_BYTES = 1024,
};

/* ---- the table ---- */

enum kr_api_who {
	KR_API_ANYBODY, /* nothing is needed */
	KR_API_READER,  /* our own user, or a credential */
	KR_API_WRITER,  /* a credential; a session's call too */
	KR_API_PERSON,  /* a credential, and no session's call (CHN-12) */
};

enum kr_api_type { KR_API_STRING, KR_API_BOOLEAN, KR_API_NUMBER, KR_API_STRINGS };

/* An argument: in the query of GET and HEAD, in the body of the others. */
struct kr_api_field {
	const char *name; /* NULL ends a list */
	enum kr_api_type type;
	bool is_required;
	int64_t min, max; /* of a number; bytes of a string; how many strings */
	const char *help;
};

struct kr_api_call;
struct kr_api_route {
	enum kr_method method; /* GET answers HEAD too */
	const char *pattern;   /* "/api/work-items/{id}" */
	enum kr_api_who who;
	const char *summary;
	const struct kr_api_field *fields; /* NULL: none */
	unsigned status;                   /* when it went well */
	const char *gives, *refusals;      /* for the reference */
	int (*run)(struct kr_api_call *call, struct kr_error *err);
};
extern const struct kr_api_route kr_api_routes[];
extern const size_t kr_api_route_count;

/* ---- one request ---- */

/* What is known of the connection before a byte is read. */
struct kr_api_client {
	bool is_ours;      /* over loopback, and its socket is our user's */
	const char *local; /* our end's address; NULL: none is known */
	uint64_t now_s;    /* since the epoch */
};

/* "No", and why. */
struct kr_api_refusal {
	unsigned status;
	const char *detail;
	const char *header; /* one more line, with its end; "" for none */
};

struct kr_api_io;
struct kr_api_call {
	const struct kr_api *api;
	const struct kr_api_client *client;
	struct kr_arena *arena;
	const struct kr_head *head;
	const struct kr_api_route *route;
	const char *segment[KR_API_SEGMENTS], *param[KR_API_PARAMS];
	size_t segment_count;
	const char *query;        /* as it came */
	json_t *args;             /* an object: what the route's fields were given */
	bool is_known;            /* our own user, or with a credential */
	bool is_session, is_tool; /* says that it is a session's, or a tool server's */
	/* What the handler leaves. */
	unsigned status;
	json_t *json;
	const char *cookie; /* to be set */
	/* Of a running one. */
	struct kr_work work;
	struct kr_api_io *io;
	bool is_streaming, is_chunked;
};

/* request.c. False: refused. take_body: n bytes of a body that `judge` let in. */
bool kr_api_judge(struct kr_api_call *call, struct kr_api_refusal *out);
bool kr_api_take_body(struct kr_api_call *call, const char *bytes, size_t n, struct kr_api_refusal *out);
bool kr_api_refuse(struct kr_api_refusal *out, unsigned status, const char *detail);
void kr_api_call_fini(struct kr_api_call *call);
/* NULL, the fallback: it was left out. */
const char *kr_api_text(const struct kr_api_call *call, const char *name);
int64_t kr_api_number(const struct kr_api_call *call, const char *name, int64_t fallback);
bool kr_api_flag(const struct kr_api_call *call, const char *name);
/* "" where the header is not there, or more than once. */
const char *kr_api_header(const struct kr_api_call *call, const char *name);

/* admit.c */
bool kr_api_admit_place(const struct kr_api_call *call, struct kr_api_refusal *out);
bool kr_api_admit_caller(struct kr_api_call *call, struct kr_api_refusal *out);
/* In a time that does not tell how much of it is right. */
bool kr_api_same_secret(const char *given, const char *secret);

/* token.c: "kraft_session=..."; what the cookie says is signed with the token and the password's hash. */
#define KR_API_COOKIE "kraft_session"
const char *kr_api_cookie_make(struct kr_arena *arena, const struct kr_api *api, uint64_t expires_s);
bool kr_api_cookie_holds(struct kr_arena *arena, const struct kr_api *api, const char *value, uint64_t now_s);

/* answer.c */
unsigned kr_api_status_of(const struct kr_error *err);
/* False: the client is gone. */
bool kr_api_answer(struct kr_api_call *call, bool keep);
bool kr_api_answer_error(struct kr_api_call *call, const struct kr_error *err, bool keep);
bool kr_api_answer_refusal(
	struct kr_api_io *io, const struct kr_api_refusal *refusal, bool with_body, bool keep);
/* An answer bit by bit, after which the connection ends. begin: false when the client wants no body of it.
 * What is not ended is cut off, and does not look complete. */
bool kr_api_stream_begin(struct kr_api_call *call, const char *type);
bool kr_api_stream_add(struct kr_api_call *call, const char *bytes, size_t n);
bool kr_api_stream_end(struct kr_api_call *call);
/* Waits so long at most; false when the client has gone. */
bool kr_api_stream_nap(struct kr_api_call *call, int ms);

/* connection.c: all of it, or false. */
bool kr_api_send(struct kr_api_io *io, const char *bytes, size_t n);
bool kr_api_io_nap(struct kr_api_io *io, int ms);

/* Opens the store, once in a call. */
int kr_api_open(struct kr_api_call *call, struct kr_error *err);
/* The item of the path, as an answer. */
int kr_api_give_item(struct kr_api_call *call, struct kr_error *err);

/* ---- handlers ---- */

/* file, name of the function */
#define KR_API_HANDLERS(X) \
	X(items_list)          \
	X(items_file)          \
	X(items_show)          \
	X(items_diff)          \
	X(items_archive)       \
	X(gates_approve)       \
	X(gates_reject)        \
	X(gates_review)        \
	X(gates_pause)         \
	X(gates_resume)        \
	X(gates_steer)         \
	X(gates_skip)          \
	X(gates_retry)         \
	X(gates_cancel)        \
	X(gates_complete)      \
	X(gates_unblock)       \
	X(threads_list)        \
	X(threads_begin)       \
	X(threads_comment)     \
	X(threads_resolve)     \
	X(threads_reopen)      \
	X(events_list)         \
	X(events_stream)       \
	X(sessions_log)        \
	X(repos_list)          \
	X(chains_list)         \
	X(server_health)       \
	X(server_login)
#define X(name) int kr_api_##name(struct kr_api_call *call, struct kr_error *err);
KR_API_HANDLERS(X)
#undef X

#endif
