/* Gathers the facts of this host that planning needs. Reads the environment and the password database once. */
#ifndef KR_OS_HOST_H
#define KR_OS_HOST_H

#include "plan/plan.h"

/*
 * Fills places (KRAFT_HOME, KRAFT_RUN_DIR, KRAFT_CONFIG_DIR, HOME or the password database; links in them resolved),
 * user, environment and guest_dir (KRAFT_GUEST_DIR, else beside or below the running program). KR_E_USAGE when
 * a variable is not an absolute path. Creates nothing.
 */
int kr_host_gather(struct kr_arena *arena, struct kr_host *out, struct kr_error *err);

/* The same without guest_dir (NULL): for what runs no session, and has to work where the guest program is missing. */
int kr_host_gather_places(struct kr_arena *arena, struct kr_host *out, struct kr_error *err);

/* kraft-egress: KRAFT_EGRESS, else beside the running program or in its ../libexec/kraft. NULL with KR_E_WALL. */
const char *kr_host_egress_program(struct kr_arena *arena, const struct kr_host *host, struct kr_error *err);
/* kraft-egress-tls, for sessions whose credentials are managed: KRAFT_EGRESS_TLS, else likewise. KR_E_UNSUPPORTED on macOS. */
const char *kr_host_egress_tls_program(struct kr_arena *arena, const struct kr_host *host, struct kr_error *err);

/*
 * Makes kraft_home, run_dir and config_dir 0700 where missing, and refuses one that is a link, is not ours, or that
 * others may write (CFG-13 of the security cases).
 */
int kr_host_prepare_dirs(const struct kr_host *host, struct kr_error *err);
/* The same refusals, and nothing is made: a missing one is none. */
int kr_host_look_at_dirs(const struct kr_host *host, struct kr_error *err);

/*
 * Whether a directory belongs to a checkout: the person's, or a worktree that a worker writes. A program found there (direnv,
 * node_modules/.bin and .venv/bin put such places on PATH) would run what the repository says, on the host.
 */
bool kr_in_checkout(struct kr_arena *arena, const char *directory);
/* That, or below the run directory, where worktrees and workers' homes lie. */
bool kr_is_workers_directory(struct kr_arena *arena, const struct kr_places *places, const char *directory);

/* What an ordinary user may still write on the file system of this path; UINT64_MAX when the system does not say. */
uint64_t kr_room_bytes(const char *path);

#endif
