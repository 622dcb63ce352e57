/*
 * Names resolved off the loop, for one broker: getaddrinfo blocks for as long as a name server likes.
 *
 * At most KR_LOOKUPS_MAX threads, each made for one question and ended with it; they touch that question and
 * nothing else. Questions beyond wait for a thread; a name that is being asked for is not asked for twice. An
 * answer is kept for KR_LOOKUP_KEPT_MS, a failure never. Who has waited KR_LOOKUP_MS gets a failure, whether
 * a thread had begun or not; the thread still counts until getaddrinfo returns, so that a dead name server
 * holds four threads and no more.
 *
 * All functions are the loop's alone.
 */
#ifndef KR_EGRESS_RESOLVE_H
#define KR_EGRESS_RESOLVE_H

#include <sys/queue.h>

#include "egress/addresses.h"

/* kr_resolve or what a test puts in its place; called by any thread. */
typedef int kr_resolve_fn(const char *name, struct kr_found *out, struct kr_error *err);

/* One who waits; part of what it waits for. Its fields but the first two are the resolver's. */
struct kr_lookup {
	/* found: borrowed, until it returns; NULL for a failure, then why says what failed. May ask anew, may not
	 * cancel. */
	void (*on_done)(void *context, const struct kr_found *found, const char *why);
	void *context;
	struct kr_name *name; /* NULL: not waiting */
	int64_t until_ms;
	TAILQ_ENTRY(kr_lookup) of_name, of_all;
};

struct kr_resolver;

/* NULL with err. */
struct kr_resolver *kr_resolver_new(kr_resolve_fn *resolve, struct kr_error *err);
/* Cancels all; threads that still resolve end by themselves, whenever that is. NULL is allowed. */
void kr_resolver_free(struct kr_resolver *resolver);
/* Readable when a thread has returned: then call step. */
int kr_resolver_fd(const struct kr_resolver *resolver);

/* A kept answer, borrowed until the next call; or NULL with errno 0: on_done will be called, by
 * kr_resolver_step only; or NULL with ENOMEM. name: at most KR_HOST_MAX bytes. */
const struct kr_found *kr_resolver_ask(
	struct kr_resolver *resolver, const char *name, struct kr_lookup *lookup, int64_t now_ms);
void kr_resolver_cancel(
	struct kr_resolver *resolver, struct kr_lookup *lookup); /* one that does not wait: nothing */

/* Takes answers in, tells who has waited too long, begins what can begin. Also to be called after
 * kr_resolver_ask. */
void kr_resolver_step(struct kr_resolver *resolver, int64_t now_ms);
/* When step has to be called at the latest; -1: nobody waits. */
int64_t kr_resolver_due_ms(const struct kr_resolver *resolver);
unsigned kr_resolver_threads(const struct kr_resolver *resolver); /* that have not returned yet */

#endif
