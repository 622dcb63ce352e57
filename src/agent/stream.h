/*
 * What an agent's output says about its session: which conversation it is, what it used, how it ended. The
 * bytes are a worker's: they are read bounded from the session's log (session/agent.h), parsed by a process
 * without power (os/powerless.h), and what comes back is checked again. It decides nothing but figures,
 * waiting times and words for a person.
 *
 *     claude    --output-format stream-json    codex    exec --json
 */
#ifndef KR_AGENT_STREAM_H
#define KR_AGENT_STREAM_H

#include <sys/types.h>

#include "agent/usage.h"
#include "base/error.h"
#include "config/harness.h"

/* Why it did not do its work, as it says. */
#define KR_TROUBLES(X)                                                          \
	X(NONE, "none")                                                             \
	X(LOGIN, "login") /* its login is missing or was refused */                 \
	X(RATE_LIMIT, "rate_limit")                                                 \
	X(UNREACHABLE, "unreachable") /* its model's host */                        \
	X(GATE, "gate")               /* it did not find kraft's permission tool */ \
	X(OTHER, "other")
enum kr_trouble {
#define X(trouble, name) KR_TROUBLE_##trouble,
	KR_TROUBLES(X)
#undef X
		KR_TROUBLE_COUNT
};
const char *kr_trouble_name(enum kr_trouble trouble);

enum { KR_AGENT_ID = 128, KR_AGENT_SAID = 2000 };

/* Plain, zero at first: nothing is known. Texts are UTF-8 without control characters; `said` may have
 * newlines and tabs. */
struct kr_agent_seen {
	char conversation[KR_AGENT_ID]; /* letters, digits, '-' and '_' only; "": not known */
	char model[KR_AGENT_ID];        /* "": not known */
	struct kr_usage usage;          /* as it told last; see kr_agent_usage_since */
	struct kr_usage own;            /* of the turns of this session alone, where they tell that; no price */
	bool has_ended;                 /* it said how its turn ended */
	enum kr_trouble trouble;
	uint64_t resets_ms;       /* RATE_LIMIT: since the epoch; 0: not known */
	char limit_kind[64];      /* RATE_LIMIT: "five_hour", ...; "": not known */
	char said[KR_AGENT_SAID]; /* its last words, or what went wrong; cut with "..." */
};

/* When and where it was said: a CLI tells when its limit is over by the clock on the wall. */
struct kr_agent_clock {
	uint64_t now_ms;
	int offset_s; /* of local time to UTC */
};
void kr_agent_clock_read(struct kr_agent_clock *out);

/* Pure. bytes: its lines; those of its standard error may stand before them. */
void kr_agent_stream_parse(enum kr_reader reader, const char *bytes, size_t n,
	const struct kr_agent_clock *clock, struct kr_agent_seen *out);
/* The same in a process without power, and what comes back is checked. A parser that does not come to an end
 * has seen nothing. -1 only when none can be had. For the output of a session: session/agent.h. */
int kr_agent_stream_parse_apart(enum kr_reader reader, const char *bytes, size_t n,
	const struct kr_agent_clock *clock, struct kr_agent_seen *out, struct kr_error *err);

/*
 * What this session used: codex, and claude since some version, go on counting where a conversation that is
 * resumed had stopped. before: what earlier sessions of the same conversation used, each for itself.
 */
void kr_agent_usage_since(enum kr_reader reader, const struct kr_agent_seen *seen,
	const struct kr_usage *before, struct kr_usage *out);

/*
 * For a person who watches: a process without power that reads the agent's lines and writes what they say
 * (its words, each tool with its subject in one line) to out_fd; what is no such line goes through as it is,
 * cleaned. Colours only where that is a terminal. *in_fd is its end for the lines; it ends at their end, or
 * when nobody reads what it writes. Reap *pid.
 */
int kr_agent_render(
	enum kr_reader reader, int out_fd, bool is_coloured, int *in_fd, pid_t *pid, struct kr_error *err);

#endif
