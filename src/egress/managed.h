/*
 * Secrets that a worker never holds (SEN-01 to SEN-04). For a host that a rule binds, kraft-egress ends the worker's TLS itself,
 * with a certificate of the session's own CA: each request must carry the sentinel in exactly the rule's header, and goes on to
 * the host, over TLS that is verified there, with the real value in its place. Every other host stays a blind tunnel.
 *
 * kraft makes the rules at launch and reads the values anew at each start of a kraft-egress (kraft-egress-tls, which alone has
 * TLS in it); the rules are kept without their values. A value is in the memory of kraft and of that session's kraft-egress,
 * and is wiped there after use; it is in no file, log, event, argument list and environment of a process that kraft starts.
 */
#ifndef KR_EGRESS_MANAGED_H
#define KR_EGRESS_MANAGED_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "policy/policy.h"

enum {
	KR_MANAGED_RULES = 64,            /* of one session */
	KR_MANAGED_VALUE_BYTES = 16384,   /* of a secret; printable ASCII without blanks at its ends */
	KR_MANAGED_SENTINEL_BYTES = 512,
	KR_MANAGED_ROOTS_BYTES = 4 << 20, /* PEM, the host's roots and the extra CA together */
	KR_MANAGED_AUTHORITY_BYTES = 8 << 10,
	KR_MANAGED_PACKED_BYTES = (8 << 20) - 1,
};

/* One header of one host. Of the rules for one host and port each has another header; all values are one host's at once. */
struct kr_managed_rule {
	const char *host;     /* canonical, as struct kr_target has it; the allow list has exactly this entry */
	uint16_t port;
	const char *header;   /* a token, in lower case */
	const char *format;   /* of the header's value; exactly one "%s", printable ASCII */
	const char *sentinel; /* what the worker has in the secret's place; printable ASCII without a blank; at least 128 of its bits random */
	const char *variable; /* that the worker sees, for what it is told */
	const char *source;   /* kraft's own variable that holds the secret, likewise */
	const char *value;    /* the secret. NULL: kraft has none now, and a request is 403 and names `source` */
};

struct kr_managed {
	const struct kr_managed_rule *rules;
	size_t rule_count;
	const char *roots;     /* PEM of all that a host's certificate may be issued by: this host's roots, and the extra CA */
	size_t roots_bytes;
	const char *authority; /* the session's CA, as kraft-egress-tls made it (kr_egress_authority); NULL in a want */
	size_t authority_bytes;
};

bool kr_managed_is_of(const struct kr_managed_rule *rule, const char *host, unsigned port);

/* All but the authority. KR_E_CONFIG names the variable, never the value. */
int kr_managed_check(const struct kr_managed *managed, struct kr_error *err);
/* The session's CA as kraft-egress-tls gives it: its certificate and its key in PEM, a NUL behind each. */
bool kr_managed_is_authority(const char *bytes, size_t n);

/* For the hand-over to a kraft-egress-tls; *out is the caller's to wipe. On an error there is nothing in it. */
int kr_managed_pack(const struct kr_managed *managed, struct kr_buf *out, struct kr_error *err);
void kr_managed_wipe(struct kr_buf *packed);
/* Any bytes. What is found points into them. False: they are not what pack makes; *out is untouched. */
bool kr_managed_unpack(struct kr_arena *arena, const char *bytes, size_t n, struct kr_managed *out);

#endif
