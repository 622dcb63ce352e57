/*
 * policy.yaml, and the `policy:` mapping that every later layer may have: repository, chain, node, step, task, item. Here
 * they are typed and checked; policy/layers.h says what they come to together.
 */
#ifndef KR_CONFIG_POLICY_FILE_H
#define KR_CONFIG_POLICY_FILE_H

#include "config/config.h"

/* bit, name in YAML */
#define KR_GRANTS(X) X(COMMIT, "git-commit") X(REBASE, "git-rebase") X(PUSH, "git-push")
enum kr_grant {
	KR_GRANT_INDEX_COMMIT, KR_GRANT_INDEX_REBASE, KR_GRANT_INDEX_PUSH, KR_GRANT_COUNT
};

/* A bound or a budget; 0: the layer says nothing about it. name in YAML, unit */
#define KR_BOUNDS(X)                                    \
	X(ATTEMPTS, "max_attempts", "attempts")             \
	X(TIMEOUT, "timeout_minutes", "minutes")            \
	X(TIME_CAP, "time_cap_minutes", "minutes")          \
	X(TOTAL_TIME_CAP, "total_time_cap_minutes", "minutes") \
	X(TOKENS, "token_budget", "tokens")                 \
	X(BUDGET, "budget_usd", "US dollars")
enum kr_bound {
#define X(bound, name, unit) KR_BOUND_##bound,
	KR_BOUNDS(X)
#undef X
		KR_BOUND_COUNT
};

struct kr_policy_layer {
	bool has_allowed_tools;            /* else: this layer lists none; an empty list allows none */
	struct kr_strs allowed_tools, deny_tools;
	unsigned grants;                   /* bits of 1 << enum kr_grant */
	bool has_grants;
	bool has_sandbox;
	bool sandbox_is_false;
	struct kr_sandbox sandbox;
	bool has_allowed_harnesses;
	struct kr_strs allowed_harnesses;
	double bounds[KR_BOUND_COUNT];
	const char *escalation_harness;    /* "claude", "item"; NULL: unset */
	struct kr_mark mark;               /* line 0: the layer is not there */
};

/* The host's policy.yaml; without a file the defaults hold. */
struct kr_policy_file {
	struct kr_policy_layer layer;      /* its own layer: `defaults` */
	unsigned attempts;                 /* default.attempts: 3 */
	unsigned wall_clock_s;             /* default.wall_clock_s: 3600 */
	unsigned max_concurrent;           /* 3 */
	bool auto_escalate_stuck;          /* true */
	unsigned auto_escalate_stuck_cap;  /* 3 */
	unsigned auto_escalate_delay_s, auto_review_attempts, rate_limit_retries;
	unsigned archive_after_days;       /* 0: never */
	double maxima[KR_BOUND_COUNT];     /* of a work item; 0: none */
};

#endif
