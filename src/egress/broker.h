/*
 * The broker: kraft's side of a session's way out. Decides about each ask (policy/policy.h), resolves an allowed name once
 * and never again for that request, checks every address, dials the checked ones in order, and hands the connected
 * socket over (POL-03 to POL-05, POL-07). A worker's call is checked and
 * handed on, at most so many at once and so often. It reads frames of known size only, and of the worker's bytes only words
 * and texts in a struct kr_call.
 *
 * One loop's: nothing here blocks. Names are resolved by up to KR_LOOKUPS_MAX threads that touch nothing but their own
 * question; a name server that never answers holds up only who waits for it.
 */
#ifndef KR_EGRESS_BROKER_H
#define KR_EGRESS_BROKER_H

#include "egress/control.h"
#include "egress/managed.h"
#include "egress/peer.h"
#include "egress/resolve.h"

/* One host or call refused, told once per session and host, or route; the KR_REFUSED_HOSTS_MAX + first is told with suppressed set and
 * is the last one told. It is refused all the same. */
struct kr_refusal {
	const struct kr_verdict *verdict; /* of a call: host "kraft", port 80, and the reason */
	const char *route;                /* of a call: what was called, "POST /w/show"; else NULL */
	bool suppressed;
};

enum { KR_REFUSAL_LINE = KR_ANSWER_TEXT };
/* The reason, and the smallest grant that would help where there is one: one line of printable ASCII. */
void kr_refusal_line(const struct kr_verdict *verdict, char out[KR_REFUSAL_LINE]);
/* The data of event sandbox_egress_refused: {session_id, host, port, phase, reason}, route for a call, and suppressed: true on the last.
 * Freed by the caller; NULL when memory is out. */
char *kr_refusal_json(const struct kr_refusal *refusal, const char *session_id);

struct kr_broker_want {
	const struct kr_host_list *hosts; /* of the phase; borrowed, as launched with (POL-10) */
	enum kr_phase phase;
	const char *const *environment;   /* kraft's own, for http_proxy, https_proxy, no_proxy in both cases */
	void (*on_refused)(void *context, const struct kr_refusal *refusal); /* may be NULL; may not call the broker */
	/*
	 * A worker's call, checked (egress/call.h); never KR_VERB_NONE. Fills the answer in before it returns; whose item it is
	 * about is its to judge. At most one in KR_CALL_EVERY_MS, after a burst. NULL: the session has no calls, each is
	 * refused. May not call the broker.
	 */
	void (*on_call)(void *context, const struct kr_call *call, struct kr_call_answer *answer);
	/*
	 * On loopback, of what said the token: whose the connection from this port of 127.0.0.1 is. NULL: the token decides, as it does
	 * where the system does not say.
	 */
	enum kr_peer (*whose)(void *context, uint16_t client_port);
	/* On loopback: so many more were refused, for want of the token or because they are another's. May be NULL. */
	void (*on_strangers)(void *context, unsigned n);
	/* A host answered with the secret of this variable, and was cut off before it. Once for each variable. May be NULL. */
	void (*on_echoed)(void *context, const char *host, const char *variable);
	void *context;
	kr_resolve_fn *resolve;           /* called by threads; NULL: kr_resolve */
};

struct kr_broker;

/* KR_E_USAGE for a proxy variable that cannot be read: the variable is named, its value never (it may hold a password). */
int kr_broker_new(const struct kr_broker_want *want, struct kr_broker **out, struct kr_error *err);
void kr_broker_free(struct kr_broker *broker); /* NULL is allowed; threads that still resolve end by themselves */

/* The broker's end of a kraft-egress's control socket; taken over and made non-blocking. One at a time: an older one,
 * and what it asked for, is dropped. */
int kr_broker_attach(struct kr_broker *broker, int control_fd, struct kr_error *err);
/* Whether the kraft-egress is there: attached, and neither gone nor thrown out for a frame it must not send. */
bool kr_broker_attached(const struct kr_broker *broker);

/* What the next kraft-egress is told to manage; copied without the values. At most KR_MANAGED_RULES. */
void kr_broker_manage(struct kr_broker *broker, const struct kr_managed_rule *rules, size_t n);

/* Readable when there is something to do; then call step, which does what can be done now. */
int kr_broker_fd(const struct kr_broker *broker);
void kr_broker_step(struct kr_broker *broker);

#endif
