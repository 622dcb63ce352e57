/*
 * Whether an agent may use a tool: one call of it, the policy of its task, one verdict with its reason. Pure.
 *
 *     the policy cannot be resolved        deny
 *     a name of it is in deny_tools        deny
 *     an instance of a grant that is held  allow
 *     allowed_tools lacks a name of it     deny
 *     a name of it is in ask_tools         ask: a person decides
 *     every name is in allowed_tools       allow
 *     there is no allowed_tools            allow; a hook's has no opinion
 *
 * So ask_tools never gives what the other lists take, and one more layer never makes a verdict milder, but
 * for grants, which add up (policy/layers.h).
 */
#ifndef KR_POLICY_PERMIT_H
#define KR_POLICY_PERMIT_H

#include "policy/layers.h"

/* permit, name in events */
#define KR_PERMITS(X) \
	X(ALLOW, "allow") \
	X(DENY, "deny")   \
	X(ASK, "ask")     \
	X(SILENT, "silent") /* no opinion: the agent's own rules hold */
enum kr_permit {
#define X(permit, name) KR_PERMIT_##permit,
	KR_PERMITS(X)
#undef X
};
const char *kr_permit_name(enum kr_permit permit);

enum kr_permit_mode {
	KR_PERMIT_PROMPT, /* the agent asks, and does what it is told */
	KR_PERMIT_ENFORCE /* a hook in front of the agent's own rules */
};

struct kr_permit_call {
	const char *tool;           /* bare name, as in the lists */
	const struct kr_strs *also; /* further names that the same call stands for; NULL: none */
	const char *command;        /* command_n bytes that Bash is to run; NULL: none that can be read */
	size_t command_n;
	const char *branch; /* that a push may update; NULL: none */
};

struct kr_permit_verdict {
	enum kr_permit permit;
	const char *reason; /* a sentence, lower case, no full stop; static */
	const char *grant;  /* that allowed it, "git-commit"; NULL: none did */
};

/* policy NULL: it cannot be resolved. fails_closed: a hook then denies too. */
void kr_permit_decide(const struct kr_policy *policy, enum kr_permit_mode mode, bool fails_closed,
	const struct kr_permit_call *call, struct kr_permit_verdict *out);

/*
 * The name in the policy of a tool that an agent calls otherwise ("codex", "apply_patch"); *also: a second
 * one, or NULL. A tool that is not known has its own.
 */
const char *kr_permit_name_of_tool(const char *harness, const char *tool, const char **also);

/*
 * The grant that this command of Bash's is an instance of: one plain `git commit`, `git rebase` or `git
 * push`, in which a shell finds nothing to expand, and of a push only an update of `branch` (NULL: none).
 * KR_GRANT_COUNT when it is none.
 */
enum kr_grant kr_permit_grant(const char *command, size_t n, const char *branch);

#endif
