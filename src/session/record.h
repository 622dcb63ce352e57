/*
 * What kraft knows of an item's worktree: <run_dir>/worktrees/<item>.json, written by atomic rename under the
 * item's exclusive lock. It lies where no worker can write and is believed.
 */
#ifndef KR_SESSION_RECORD_H
#define KR_SESSION_RECORD_H

#include "base/arena.h"
#include "base/error.h"

/* state, name in the file; what a worktree directory that is there then is */
#define KR_RECORD_STATES(X)                                                                              \
	X(ABSENT, "absent") /* never written: no record, or one that cannot be read. Not known to be ours */ \
	X(MAKING, "making") /* half made by us; nothing has run in it yet */                                 \
	X(READY, "ready")   /* stands at `commit` */                                                         \
	X(MOVING, "moving") /* somewhere between `commit` and another one */

enum kr_record_state {
#define X(state, name) KR_RECORD_##state,
	KR_RECORD_STATES(X)
#undef X
		KR_RECORD_STATE_COUNT
};

/* A workspace's member: its own linked worktree, below the item's. */
struct kr_record_member {
	const char *name, *below;
	const char *checkout, *git_dir, *git_common, *commit; /* as of the root */
};

struct kr_record {
	enum kr_record_state state;
	const char *checkout; /* root of the person's checkout */
	const char *git_dir;  /* of the worktree; "" while it is made */
	const char *git_common;
	const char *commit;
	const char *setup; /* kr_setup_hash of the command that succeeded last; "" for none */
	const char *workspace; /* its name; NULL: none, and no members */
	struct kr_record_member *members;
	size_t member_count;
};

/* dir_fd: <run_dir>/worktrees. A missing or damaged record is KR_RECORD_ABSENT, not an error. */
int kr_record_read(
	struct kr_arena *arena, int dir_fd, const char *item, struct kr_record *out, struct kr_error *err);
int kr_record_write(int dir_fd, const char *item, const struct kr_record *record, struct kr_error *err);

/* 16 hex digits; "" for no command or an empty one. */
const char *kr_setup_hash(struct kr_arena *arena, const char *command);

#endif
