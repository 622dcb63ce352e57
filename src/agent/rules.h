/*
 * A policy of tools as a CLI's own file of rules. Each tool that the harness names is told its own verdict, and the
 * rest is what the policy says of tools that it does not name. Nobody is asked by such rules (agent.h refuses that).
 */
#ifndef KR_AGENT_RULES_H
#define KR_AGENT_RULES_H

#include "agent/agent.h"
#include "base/buf.h"

enum { KR_RULES_ENV = 1 }; /* most variables that rules need */

/* Adds the files and variables of harness->rules to the launch, whose env has room for KR_RULES_ENV more. denied: the
 * policy's, and the harness's own. Pure. KR_E_LIMIT when they are too long. */
int kr_agent_rules(struct kr_arena *arena, const struct kr_harness *harness, const struct kr_policy *policy,
	const struct kr_strs *denied, struct kr_agent_launch *launch, struct kr_error *err);

/* A UTF-8 text as a string of JSON, with its quotes; TOML reads it as the same. */
void kr_agent_json(const char *text, struct kr_buf *out);

#endif
