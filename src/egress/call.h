/*
 * A worker's call to kraft (CHN-05): POST http://kraft/w/VERB with a form, or by MCP the one call of its tool
 * (mcp.h). kraft-egress reads the form (form.h) or the JSON and makes this of it; kraft checks it again and
 * acts as the session whose kraft-egress it came from. Nothing else of the request crosses: no header, no
 * token, no session (CHN-06).
 *
 * Whether a tool may be used is answered at once where the policy decides. Where a person is asked, the
 * answer is the ask's id, and kraft-egress asks again with it each second: so nothing in kraft waits, and an
 * ask whose worker has gone is known.
 *
 *     ask        200 "allow", 200 "deny" LF and why, or 202 and the ask's id; to a hook also 200 "silent"
 *     ask_state  the same; an "allow" is given out once
 *     ask_close  200: nobody waits for it any more
 */
#ifndef KR_EGRESS_CALL_H
#define KR_EGRESS_CALL_H

#include "base/buf.h"
#include "egress/limits.h"

/* name: of the path, and what the worker's `kraft` calls it */
#define KR_VERBS(X)         \
	X(PROGRESS, "progress") \
	X(REPLY, "reply")       \
	X(RETRY, "retry")       \
	X(SHOW, "show")         \
	X(THREADS, "threads")   \
	X(EVENTS, "events")
/* kraft-egress's own, for a call by MCP: of no path */
#define KR_ASK_VERBS(X)       \
	X(ASK, "ask")             \
	X(ASK_STATE, "ask_state") \
	X(ASK_CLOSE, "ask_close")
enum kr_verb {
	KR_VERB_NONE, /* asked for something that is none: `route` says what, and it is to be refused */
#define X(verb, name) KR_VERB_##verb,
	KR_VERBS(X) KR_ASK_VERBS(X)
#undef X
		KR_VERB_END,
	KR_VERB_FORM_END = KR_VERB_ASK, /* those before it have a form */
};
const char *kr_verb_name(enum kr_verb verb);         /* "" for KR_VERB_NONE */
enum kr_verb kr_verb_of(const char *name, size_t n); /* of a path; KR_VERB_NONE when it is none */
#define KR_MCP_ROUTE "POST /mcp"

#define KR_CLAIMS(X)        \
	X(FIXED, "fixed")       \
	X(ANSWERED, "answered") \
	X(SHOULD_FIX, "should_fix")
enum kr_claim {
	KR_CLAIM_NONE,
#define X(claim, name) KR_CLAIM_##claim,
	KR_CLAIMS(X)
#undef X
		KR_CLAIM_END
};
const char *kr_claim_name(enum kr_claim claim); /* "" for KR_CLAIM_NONE */

/* Whose hook asks for a tool. */
#define KR_HARNESSES(X) \
	X(CODEX, "codex")   \
	X(CURSOR, "cursor")
enum kr_hooked {
	KR_HARNESS_NONE, /* no hook: by MCP */
#define X(harness, name) KR_HARNESS_##harness,
	KR_HARNESSES(X)
#undef X
		KR_HARNESS_END
};
const char *kr_hooked_name(enum kr_hooked harness); /* "" for KR_HARNESS_NONE */
enum kr_hooked kr_hooked_of(const char *name, size_t n);

/*
 * As it stands on the control socket, behind its struct kr_ask, and as kraft gives it to
 * kr_broker_want.on_call. What a verb does not take is zero. No byte is padding.
 */
struct kr_call {
	uint32_t verb;  /* enum kr_verb */
	uint32_t claim; /* reply: enum kr_claim */
	uint32_t open;  /* threads: 1: only those that are open */
	uint32_t text_n;
	int64_t task;    /* progress: 0 to KR_CALL_TASK_MAX */
	int64_t after;   /* events: 0 or more */
	char id[72];     /* "": the session's own item. Each a word (kr_call_is_word), the rest of the array 0 */
	char thread[72]; /* reply */
	char type[72];   /* events; "": all */
	char ask[72];    /* ask_state, ask_close: its id */
	char tool[136];  /* ask: a word too, of at most KR_MCP_WORD_BYTES */
	char route[264]; /* "POST /w/show": method and path; printable ASCII, at most KR_CALL_ROUTE_MAX */
	uint32_t has_command; /* ask: 1: `text` begins with command_n bytes, the command that Bash is to run */
	uint32_t command_n;
	uint32_t harness; /* ask: enum kr_hooked; `tool` is in its words then */
	uint32_t zero;    /* must be 0 */
	char text[]; /* reply: the body. retry: the steer, or nothing. ask: the command, and the tool's input as
					JSON. text_n bytes and, in kraft, a NUL behind them */
};
/* The most that a call is in bytes. */
enum { KR_CALL_BYTES_MAX = sizeof(struct kr_call) + KR_ASK_COMMAND_BYTES + KR_ASK_INPUT_BYTES };
enum { KR_CALL_WORD_MAX = 64, KR_CALL_ROUTE_MAX = 256, KR_CALL_TASK_MAX = 1000000 };

/* Pure. `bytes`: the size of all of it, without the NUL. Every field as described, or false. */
bool kr_call_check(const struct kr_call *call, size_t bytes);

/* 1 to KR_CALL_WORD_MAX bytes of printable ASCII without a blank. */
bool kr_call_is_word(const char *bytes, size_t n);
/* At most KR_CALL_TEXT_BYTES of UTF-8 whose only control characters are tab, line feed and carriage return.
 */
bool kr_call_is_text(const char *bytes, size_t n);
/* The same of at most KR_ASK_INPUT_BYTES, and not empty: what a tool is given. */
bool kr_call_is_input(const char *bytes, size_t n);

/* What kraft answers. */
struct kr_call_answer {
	/*
	 * Not "": the call is not this session's to make. It is answered 403 with this line of printable ASCII
	 * and told in an event sandbox_egress_refused, once for each route; the fields below are not looked at.
	 */
	char refused[KR_CALL_REASON_MAX];
	unsigned status;    /* 200 to 599 */
	struct kr_buf body; /* one JSON value, or one per line. Given with its maximum; freed by the broker */
	int64_t next;       /* 0: that is all. Else there is more, for the same call with `after` set to this */
};
/* {"detail": TEXT} with this status, as the API says what is wrong. */
void kr_call_fail(struct kr_call_answer *answer, unsigned status, const char *detail);

#endif
