/* The addresses of this host and of a name, asked of the system. Both may block; neither is cached here. */
#ifndef KR_EGRESS_ADDRESSES_H
#define KR_EGRESS_ADDRESSES_H

#include "base/arena.h"
#include "egress/limits.h"
#include "policy/policy.h"

/* Every address of every interface, down ones too. */
int kr_own_addresses(struct kr_arena *arena, struct kr_addresses *out, struct kr_error *err);

/* What a name resolves to, in the resolver's order, each once. */
struct kr_found {
	struct kr_address v[KR_LOOKUP_ADDRESSES];
	size_t n;
};

/*
 * Asks the resolver once; may be called by any thread. KR_E_NOT_FOUND when the name has no address or nobody
 * answers, KR_E_LIMIT when it has more than KR_LOOKUP_ADDRESSES; the message says so of the name and stands
 * for itself.
 */
int kr_resolve(const char *name, struct kr_found *out, struct kr_error *err);

/*
 * The verdict on an allowed name that has these addresses: the first of the strictest refusals, for one bad
 * address refuses the name (POL-05); host's own when all are good. each: room for the n verdicts, or NULL.
 */
void kr_found_decide(const struct kr_verdict *host, const struct kr_found *found,
	const struct kr_addresses *own, struct kr_verdict *each, struct kr_verdict *out);
/* The verdict on an allowed name that kr_resolve failed for. */
void kr_unresolved_decide(const struct kr_verdict *host, const char *why, struct kr_verdict *out);

#endif
