/*
 * Why a command failed, as far as a path tells: absolute paths in the end of its output that exist on this
 * host but not in its view. The output is hostile; so this only looks (lstat), never opens, never leaves
 * local file systems (a path may name an automount or a dead network mount), looks at a few paths only, and
 * proposes nothing that the rules for expose would refuse.
 */
#ifndef KR_SESSION_OUTSIDE_H
#define KR_SESSION_OUTSIDE_H

#include "plan/plan.h"

enum {
	KR_OUTSIDE_BYTES = 64 << 10, /* of the end of the output */
	KR_OUTSIDE_PATH = 1024,      /* longer ones are passed over */
	KR_OUTSIDE_LOOKS = 200,      /* different paths looked at */
	KR_OUTSIDE_MAX = 3,          /* named */
};

/*
 * The next absolute path in a text, from *at on, cleaned, into path; false at the end. Escape sequences count
 * as blanks, trailing punctuation does not belong to it, and "https://host/x" is none. Pure.
 */
bool kr_outside_next(const char *bytes, size_t n, size_t *at, char path[KR_OUTSIDE_PATH]);

/* Whether a clean path can be seen in the plan's view, by the longest step that covers it. Pure. */
bool kr_outside_is_visible(const struct kr_plan *plan, const char *path);

struct kr_outside {
	const char *path;   /* as the output has it, clean */
	const char *expose; /* what to write in `expose`, "~/" for the home directory; NULL: it lies in the
						 * checkout, which is never shown: the worktree has its own copy */
};
size_t kr_outside_find(struct kr_arena *arena, const struct kr_host *host, const struct kr_plan *plan,
	const char *bytes, size_t n, struct kr_outside out[KR_OUTSIDE_MAX]);

/*
 * What a well-known message in the end of the output means inside: no name resolution, no route, no git. A sentence of
 * ours, or NULL; *at is 0 for the first call and is moved on, so that each is said once. Pure.
 */
const char *kr_outside_remark(const char *bytes, size_t n, size_t *at);

#endif
