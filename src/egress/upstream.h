/*
 * The person's own proxy, as the environment of kraft names it. Pure.
 *
 *     CONNECT        https_proxy, else HTTPS_PROXY
 *     absolute form  http_proxy, else HTTP_PROXY
 *     never through  no_proxy, else NO_PROXY: a list with commas or blanks between. "*" is every host;
 * "x.example" and
 *                    ".x.example" are x.example and every name below; "x.example:443" the same for that port;
 * an address is itself. No CIDR ranges.
 *
 * A variable that is set decides, also an empty one: that is "no proxy" for this kind.
 * [http://][USER[:PASSWORD]@]HOST[:PORT], with a path that is ignored; port 80 when none is written; user
 * information may be percent-encoded. No other scheme.
 */
#ifndef KR_EGRESS_UPSTREAM_H
#define KR_EGRESS_UPSTREAM_H

#include "egress/control.h"

struct kr_upstream {
	struct kr_target proxy;             /* port 0: there is none */
	char authorization[KR_ANSWER_TEXT]; /* the value of Proxy-Authorization; "" for none */
};

struct kr_upstreams {
	struct kr_upstream connect, http;
	char *never; /* no_proxy; NULL for none */
};

/* KR_E_USAGE names the variable that cannot be read and never its value. environment ends with NULL. */
int kr_upstreams_init(struct kr_upstreams *out, const char *const *environment, struct kr_error *err);
void kr_upstreams_fini(struct kr_upstreams *upstreams);
/* NULL: directly. Borrowed. */
const struct kr_upstream *kr_upstream_for(
	const struct kr_upstreams *upstreams, enum kr_ask_type type, const struct kr_target *target);

#endif
