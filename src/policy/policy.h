/*
 * Rules as pure functions: each decides and explains in one step; nobody re-derives either.
 */
#ifndef KR_POLICY_POLICY_H
#define KR_POLICY_POLICY_H

#include "base/arena.h"
#include "config/config.h"

/* ---- hosts (POL-01): the grammar of a network list entry ---- */

enum { KR_HOST_MAX = 253 };

struct kr_host_pattern {
	bool any;        /* "*" or "**" */
	bool star;       /* "*." in front: exactly one label */
	char host[KR_HOST_MAX + 1]; /* lower case, without "*." and port */
	unsigned port;   /* 0: any port */
};
/* Trims blanks, then parses. False when it is not an entry; `why` then names what is wrong with it. */
bool kr_host_pattern_parse(const char *text, struct kr_host_pattern *out, const char **why);

/* ---- protected paths (OS-EXP-01 to -04) ---- */

/* The six names whose contents read as empty inside (OS-MNT-12). */
extern const char *const kr_credential_names[];
extern const size_t kr_credential_name_count;
bool kr_is_credential_name(const char *basename);

/* Fills `out` with the protected paths of this person: clean, absolute, in a fixed order; `home` itself is not in it. */
void kr_protected_paths(struct kr_arena *arena, const struct kr_places *places, struct kr_strs *out);

/*
 * Why `path` (clean; call it for the path as written and again as resolved) may not be shown to a worker; NULL when
 * it may. The text continues a sentence: "is the home directory", "holds '/home/you/.ssh', which is protected",
 * "is inside '/home/you/.ssh', which is protected", "is named 'credentials', ...".
 */
const char *kr_protect_why(struct kr_arena *arena, const struct kr_places *places, const char *path);

/* The same for other protected paths: those of kr_protected_paths as they resolve, where a link leads elsewhere. */
const char *kr_protect_why_among(struct kr_arena *arena, const struct kr_strs *protected, const char *path);

/*
 * Why a host directory cannot be shown at `path` (clean): the sandbox has something of its own there (/proc, /sys, /dev,
 * /run and what is below; /tmp; /var/tmp, which is /tmp; /opt/kraft). Continues a sentence; NULL when it can.
 */
const char *kr_place_why(struct kr_arena *arena, const char *path);

#endif
