/*
 * kind: os on macOS: what a session has beside its folder, and its end where no launcher is left to see to it.
 * The profile and the launch are in launch_seatbelt.c.
 */
#ifndef KR_SESSION_SEATBELT_H
#define KR_SESSION_SEATBELT_H

#include "plan/plan.h"

#define KR_PROFILE_FILE "profile.sb" /* in the session's folder, 0600: no worker sees it */
#define KR_TMPDIRS "t"               /* below the run directory: short, since a unix socket's path has 104 bytes */

/* The session's TMPDIR, which is made with it and is gone with it (MAC-07). */
const char *kr_seatbelt_tmpdir(struct kr_arena *arena, const struct kr_host *host, const char *id);
int kr_seatbelt_make_tmpdir(struct kr_arena *arena, const struct kr_host *host, const char *id, const char **path,
	struct kr_error *err);

/*
 * Ends every process that a session left whose launcher ended without a word (MAC-10); takes a moment where there are none, and
 * two seconds at most. *count: how many of outlived, of those that did not end.
 */
enum { KR_OUTLIVED_MAX = 8 };
int kr_seatbelt_end(struct kr_arena *arena, const char *guest_dir, const char *run_dir, const char *id,
	int outlived[KR_OUTLIVED_MAX], size_t *count, struct kr_error *err);

/* Of a session that is over: ends what it left and then removes its TMPDIR, which lies in parent. */
void kr_seatbelt_sweep(int parent, const char *guest_dir, const char *run_dir, const char *id);

#endif
