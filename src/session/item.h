/*
 * The item of a `kraft run`: a name under which a worktree, a home and results are kept from run to run, and the lock
 * that its sessions share. One per repository unless --item names another.
 *
 * On disk, below run_dir: worktrees/<item> (a linked worktree, detached), worktrees/<item>.json (checkout, commit,
 * setup state), worktrees/<item>.lock, sandbox-home/<item>, results/<item>/<session>.json, sn/<session>/ (channel
 * directory), sessions/<session>/ (folder: log, started, exit, session.json; never mounted), empty (for masks).
 */
#ifndef KR_SESSION_ITEM_H
#define KR_SESSION_ITEM_H

#include "session/tree.h"

struct kr_item_want {
	const char *id;     /* NULL: the repository's own, run-<name>-<8 hex of the path> */
	const char *base;   /* a branch of the root's, whose tip the worktree is made at; NULL: where the checkout stands */
	bool with_changes;  /* take uncommitted changes of the checkout along */
	const char *workspace; /* whose members the other trees are; NULL: there are none */
	bool keep;          /* leave the worktree, where there is one, at the commit it has; wins over with_changes */
	bool follow;        /* with keep: but bring it forward to its branch, where a person has added to that */
};

enum kr_item_state {
	KR_ITEM_READY,         /* the worktree is there at the wanted commit */
	KR_ITEM_MADE,          /* it was just made; local_files are copied */
	KR_ITEM_NEEDS_CHECKOUT /* it stands at another commit: move it with a short git run inside the walls */
};

struct kr_item {
	const char *id, *worktree, *home, *results_dir;
	const char *workspace; /* NULL: none */
	enum kr_item_state state;
	bool setup_done;       /* the present setup_command has succeeded in this worktree, or there is none */
	struct kr_tree *trees; /* the root first; the caller's */
	size_t tree_count;
	int lock_fd;           /* shared, or exclusive while the worktree is made, moved or set up */
	struct kr_strs notes;  /* for the person: what was put aside and where */
};

/* Whether this can name an item. KR_E_USAGE. */
int kr_item_check_id(const char *id, struct kr_error *err);
/* Only the names: id and the three places, whether they exist or not. Nothing is made, opened or locked (lock_fd -1). */
int kr_item_name(struct kr_arena *arena, const struct kr_host *host, const struct kr_checkout *checkout,
	const char *id, struct kr_item *out, struct kr_error *err);

/* The id of a checkout's item for a workspace, when none is named. */
const char *kr_item_workspace_id(struct kr_arena *arena, const char *root, const char *workspace);
/* The workspace that an item was made for; NULL: none, or there is no such item yet. It is asked again under the lock. */
int kr_item_workspace(struct kr_arena *arena, const struct kr_host *host, const char *id, const char **workspace,
	struct kr_error *err);

/*
 * Takes the lock and makes the worktree where it is missing. The lock is shared when the item is ready and set up; else it
 * is exclusive and the caller moves the worktree (kr_item_moved), runs the setup command (kr_item_set_up), and shares.
 * KR_E_USAGE for an id that cannot be one; KR_E_REFUSED when the item belongs to another checkout or workspace, or when a
 * member is not what kraft made (kr_member_check); KR_E_BUSY when another
 * session runs in it and it would have to change, or when another session has been preparing it for some seconds.
 * A kraft that is killed anywhere in here leaves nothing that the next call does not finish or make again.
 */
int kr_item_open(struct kr_arena *arena, const struct kr_host *host, struct kr_tree *trees, size_t tree_count,
	const struct kr_item_want *want, struct kr_item *out, struct kr_error *err);
void kr_item_close(struct kr_item *item);
/* Records that the worktree begins to move: until kr_item_moved it is somewhere in between, whatever happens to us. */
int kr_item_moving(const struct kr_host *host, const struct kr_item *item, struct kr_error *err);
/* Records that each tree now stands where it is wanted; that setup succeeded. Both keep the lock. */
int kr_item_moved(const struct kr_host *host, struct kr_item *item, struct kr_error *err);
int kr_item_set_up(const struct kr_host *host, struct kr_item *item, struct kr_error *err);
/* From exclusive to shared, before the command runs. Nobody gets in between. */
int kr_item_share(struct kr_item *item, struct kr_error *err);

/* The lock of the item in dir_fd (<run_dir>/worktrees), exclusive, for removing it; KR_E_BUSY when anybody holds it. */
int kr_item_lock_alone(int dir_fd, const char *id, struct kr_error *err);

/* 16 hex digits, random. NULL with err. */
const char *kr_session_new_id(struct kr_arena *arena, struct kr_error *err);
/* Paths of one new session of the item, its directories and empty result file made. id: NULL for a new one. */
struct kr_session_paths {
	const char *id, *folder, *result_file, *channel_dir;
};
int kr_session_paths_make(struct kr_arena *arena, const struct kr_host *host, const struct kr_item *item,
	const char *id, struct kr_session_paths *out, struct kr_error *err);
/* Where a session's result file is, whether it exists or not. */
const char *kr_item_result_file(struct kr_arena *arena, const struct kr_item *item, const char *session);
/* Where the channel's socket of a session is, whether it exists or not. */
const char *kr_session_channel_dir(struct kr_arena *arena, const struct kr_host *host, const char *id);
/* <run_dir>/empty, made when missing. */
const char *kr_session_empty_file(struct kr_arena *arena, const struct kr_host *host,
	struct kr_error *err);

#endif
