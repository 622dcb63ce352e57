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

/* What token_budget counts: what was not read from a cache. */
static inline int64_t
kr_usage_tokens(const struct kr_usage *usage)
{
	return usage->input + usage->output + usage->cache_write;
}

#endif
