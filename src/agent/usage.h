/* What an agent's session used. */
#ifndef KR_AGENT_USAGE_H
#define KR_AGENT_USAGE_H

#include "base/base.h"

struct kr_usage {
	bool is_known;                                  /* it told what it used; else all zero */
	bool has_cost;                                  /* it told a price */
	int64_t input, output, cache_write, cache_read; /* tokens; input: without what came from a cache */
	int64_t cost_micro;                             /* millionths of a US dollar */
};

/* The numbers come from workers, who may tell any: a sum that would pass the end of its type stays there, and what is below 0
 * does not count. */
static inline void
kr_usage_add(int64_t *sum, int64_t n)
{
	if (n > 0 && __builtin_add_overflow(*sum, n, sum))
		*sum = INT64_MAX;
}

/* What token_budget counts: what was not read from a cache. */
static inline int64_t
kr_usage_tokens(const struct kr_usage *usage)
{
	int64_t tokens = 0;

	kr_usage_add(&tokens, usage->input);
	kr_usage_add(&tokens, usage->output);
	kr_usage_add(&tokens, usage->cache_write);
	return tokens;
}

#endif
