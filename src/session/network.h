/*
 * A session's network: its way out (egress/egress.h), and what is kept of what was refused there: an event in the store
 * for each, and a list for the person who waits for the end.
 */
#ifndef KR_SESSION_NETWORK_H
#define KR_SESSION_NETWORK_H

#include "egress/egress.h"
#include "plan/plan.h"
#include "policy/policy.h"
#include "session/calls.h"

struct kr_session_network_want {
	const struct kr_host *host;
	const struct kr_host_list *hosts; /* of the phase, borrowed */
	enum kr_phase phase;
	const char *item, *session, *channel_dir;
	kr_calls_fn *on_call; /* answers the worker's calls; NULL: kr_calls_answer */
	void *context;        /* its */
	const char *repo, *worktree, *branch; /* what such a session's `kraft view show` tells; branch may be NULL */
	const struct kr_policy *policy;       /* of its tools, where kr_calls_answer answers; NULL: it cannot be resolved */
	const struct kr_harness *harness;     /* of the agent that is launched; NULL: none */
	/* What is managed for it, borrowed; NULL: nothing, and all TLS is tunnelled. The values are read from host's environment. */
	const struct kr_plan_secrets *secrets;
	const char *roots; /* with secrets: PEM of what their hosts' certificates are verified by; borrowed */
	size_t roots_bytes;
	bool is_on_loopback;                  /* as in struct kr_egress_want: no channel_dir */
};

struct kr_session_network;

/* Before the launch: makes the channel socket. KR_E_CONFIG: kraft's environment has no usable value for a secret. */
int kr_session_network_open(struct kr_arena *arena, const struct kr_session_network_want *want,
	struct kr_session_network **out, struct kr_error *err);
void kr_session_network_close(struct kr_session_network *network); /* NULL is allowed; what it noted stays in the arena */

/* Right after the launch, so that nobody waits for it: starts the proxy. The init runs nothing before it has the proxy's
 * word (POL-09), so a failure only has to end the session. */
int kr_session_network_serve(struct kr_session_network *network, struct kr_error *err);
/* Path of the channel socket for the launch; NULL: it is on loopback. */
const char *kr_session_network_socket(const struct kr_session_network *network);
/* The certificate of the session's own CA, PEM; NULL: nothing is managed. */
const char *kr_session_network_authority(const struct kr_session_network *network);
/* On loopback: what the session's proxy URL is made of; else NULL. */
const struct kr_egress_door *kr_session_network_door(const struct kr_session_network *network);
/* A side of the relay's (session/relay.h): never finished. */
int kr_session_network_fd(const struct kr_session_network *network);
bool kr_session_network_ready(void *network);

struct kr_session_refused {
	const char *reason;  /* a sentence that names host and port */
	const char *grant;   /* the allow entry that would help; NULL: none would, or one may not be advised */
};
struct kr_session_network_notes {
	const struct kr_session_refused *refused;
	size_t refused_count;
	bool more;               /* hosts beyond those were refused too */
	unsigned echoed;         /* secrets that a host sent back; their connections were cut before them */
	unsigned calls_refused;  /* kinds of calls to kraft that were not the worker's to make */
	unsigned strangers;      /* requests to a proxy on loopback that did not say its token, or were not the session's */
	unsigned lost;           /* times the proxy ended before its time */
	bool is_out;             /* and now there is none */
	struct kr_error record;  /* why the first event that could not be recorded could not; code NONE: all were */
};
const struct kr_session_network_notes *kr_session_network_notes(const struct kr_session_network *network);

#endif
