/*
 * policy.yaml, and the `policy:` mapping that every later layer may have: repository, chain, node, step,
 * task, item. Here they are typed and checked; policy/layers.h says what they come to together.
 */
#ifndef KR_CONFIG_POLICY_FILE_H
#define KR_CONFIG_POLICY_FILE_H

#include "config/config.h"

enum { KR_ATTEMPTS_MAX = 100 }; /* of a loop, wherever they are written */

/* severity of a finding, name in YAML */
#define KR_SEVERITIES(X)      \
	X(CRITICAL, "critical")   \
	X(IMPORTANT, "important") \
	X(MINOR, "minor")
enum kr_severity {
#define X(severity, name) KR_SEVERITY_##severity,
	KR_SEVERITIES(X)
#undef X
		KR_SEVERITY_COUNT
};

/* The host's policy.yaml; without a file the defaults hold. */
struct kr_policy_file {
	struct kr_policy_layer layer;     /* its own layer: `defaults` */
	unsigned attempts;                /* default.attempts: 3 */
	unsigned wall_clock_s;            /* default.wall_clock_s: 3600 */
	unsigned max_concurrent;          /* 3 */
	bool auto_escalate_stuck;         /* true */
	unsigned auto_escalate_stuck_cap; /* 3 */
	unsigned auto_escalate_delay_s, auto_review_attempts, rate_limit_retries;
	unsigned archive_after_days; /* 0: never */
	unsigned escalation_grants;  /* defaults.escalation_grants: bits as of a layer's grants; all three */
	unsigned
		loop_severities; /* findings.loop_severities: bits of 1 << enum kr_severity; critical, important */
	double maxima[KR_BOUND_COUNT]; /* of a work item; 0: none */
	/* Of each node, step and task; kr_policy_maxima says which hold where. */
	double node_maxima[KR_BOUND_COUNT], step_maxima[KR_BOUND_COUNT], task_maxima[KR_BOUND_COUNT];
};

/* Pure. An empty document is the defaults; one with anything in it must have `default`. `file` is only used
 * in errors. */
int kr_policy_file_parse(struct kr_arena *arena, const struct kr_places *places, const char *file,
	const char *bytes, size_t n, struct kr_policy_file *out, struct kr_error *err);
/* Pure. One layer alone, as it stands under `policy` in a chain; an empty document says nothing. */
int kr_policy_layer_parse(struct kr_arena *arena, const struct kr_places *places, const char *file,
	const char *bytes, size_t n, struct kr_policy_layer *out, struct kr_error *err);
/* Reads <config_dir>/policy.yaml; a missing file is the defaults, an unreadable one an error. */
int kr_policy_file_load(
	struct kr_arena *arena, const struct kr_places *places, struct kr_policy_file *out, struct kr_error *err);

#endif
