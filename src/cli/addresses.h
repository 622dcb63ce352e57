/* The addresses of this host and of a name, asked of the system. Both may block; neither is cached. */
#ifndef KR_CLI_ADDRESSES_H
#define KR_CLI_ADDRESSES_H

#include "base/arena.h"
#include "policy/policy.h"

/* Every address of every interface, down ones too. */
int kr_own_addresses(struct kr_arena *arena, struct kr_addresses *out, struct kr_error *err);

/*
 * Asks the resolver once: the addresses in its order, each once. KR_E_NOT_FOUND when the name has none or
 * nobody answers.
 */
int kr_resolve(struct kr_arena *arena, const char *name, struct kr_addresses *out, struct kr_error *err);

#endif
