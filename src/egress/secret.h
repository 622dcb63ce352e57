/*
 * What a request to a host whose secrets are managed must carry, and how it goes on with the secrets in the sentinels' place
 * (SEN-01, SEN-02). Pure. The request is parsed by head.h, so its framing is sound.
 *
 * Exactly one identity reaches the host: each header of a rule that the request has must be the rule's format with the sentinel in
 * it, byte for byte; every other header that is known to carry a credential is dropped, cookies among them. A sentinel of the
 * session anywhere else in the head is refused, whatever it was meant for; in a body it is not looked for, and goes out as the
 * sentinel that it is.
 */
#ifndef KR_EGRESS_SECRET_H
#define KR_EGRESS_SECRET_H

#include "egress/head.h"
#include "egress/managed.h"

/* Why a request is refused (403); words about the rule, "%s": what of it is named. */
#define KR_SECRET_REASONS(X)                                                                                                 \
	X(FORM, NOTHING, "the request's target is no path, as it is inside of a tunnel")                                             \
	X(HOST, NOTHING, "its Host is not the one host that the tunnel was asked for")                                               \
	X(MISSING, VARIABLE, "it carries no credential that is managed here: send what the variable '%s' holds")                      \
	X(WRONG, VARIABLE, "its header does not carry the sentinel that '%s' is managed with")                                        \
	X(ELSEWHERE, VARIABLE, "it carries the sentinel of '%s' where no credential is put in: only the header of its rule is")       \
	X(NO_VALUE, SOURCE, "kraft has no value for it: set '%s' in the environment of kraft")
enum kr_secret_reason {
	KR_SECRET_GOOD,
#define X(reason, of, words) KR_SECRET_##reason,
	KR_SECRET_REASONS(X)
#undef X
	KR_SECRET_END
};

/* The rules of one host and port, and those of the session. */
struct kr_secret_host {
	const struct kr_target *target; /* with the port */
	const struct kr_managed_rule *const *rules;
	size_t n;
	const struct kr_managed_rule *all;
	size_t all_n;
};

/* *rule: the one that it is about, when it is not good. */
enum kr_secret_reason kr_secret_judge(
	const struct kr_secret_host *host, const struct kr_head *head, const struct kr_managed_rule **rule);
enum { KR_SECRET_WORDS = 512 };
/* One line; "" for what is no reason. */
void kr_secret_words(unsigned reason, const struct kr_managed_rule *rule, char out[KR_SECRET_WORDS]);

/* Whether it asks to go on as a WebSocket, whose messages nobody could look through. */
bool kr_secret_is_websocket(const struct kr_head *head);

/* The head of a request that is good, in origin form, on a connection that goes on. `authority`: of its Host. The caller wipes what
 * it is written into. */
void kr_secret_write(const struct kr_secret_host *host, const struct kr_head *head, const char *authority, struct kr_buf *out);

#endif
