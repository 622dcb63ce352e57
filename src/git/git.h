/*
 * The one caller of the git program on the host: absolute path, an environment of our own, hooks and helpers pinned off,
 * no discovery, no prompt, no pager. And what kraft reads of a repository itself, as data.
 */
#ifndef KR_GIT_GIT_H
#define KR_GIT_GIT_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

enum { KR_OID_HEX_MAX = 64 };

struct kr_checkout {
	const char *root;    /* resolved top of the working tree */
	const char *git_dir; /* its own git directory (for a linked worktree, the one below worktrees/) */
	const char *common;  /* the common git directory */
};

/* Finds the working tree that holds `start` by walking up, reading `.git` as data. KR_E_NOT_FOUND when there is none. */
int kr_checkout_find(struct kr_arena *arena, const char *start, struct kr_checkout *out,
	struct kr_error *err);
/* The commit HEAD is at: read from HEAD, loose refs and packed-refs; asks git only for other ref storages. */
int kr_checkout_head(const struct kr_checkout *checkout, char oid[KR_OID_HEX_MAX + 1],
	struct kr_error *err);

/* A git run in flight: started with posix_spawn, stdout into a pipe. */
struct kr_git_run {
	pid_t pid;  /* 0: not running */
	int out_fd;
};
struct kr_git_where {
	const char *git_dir;   /* given by GIT_DIR; NULL only where `common` discovery is not needed */
	const char *work_tree; /* NULL: none */
	const char *index_file; /* NULL: git's own */
	int work_dir_fd;       /* -1: the work tree, else "/" */
};
int kr_git_start(const struct kr_git_where *where, const char *const argv[], struct kr_git_run *run,
	struct kr_error *err);
/* Waits, collects stdout (bounded by out->max); non-zero exit is KR_E_GIT with git's own last line of stderr. */
int kr_git_finish(struct kr_git_run *run, struct kr_buf *out, struct kr_error *err);
void kr_git_abandon(struct kr_git_run *run);
int kr_git_run(const struct kr_git_where *where, const char *const argv[], struct kr_buf *out,
	struct kr_error *err);

/* A linked worktree at `path` (its parent exists), detached at oid; hooks off. */
int kr_worktree_add(const struct kr_checkout *checkout, const char *path, const char *oid,
	struct kr_error *err);
/* A commit of the checkout's present state, tracked and untracked (not ignored), beside HEAD; the checkout and its
 * index stay as they are. */
int kr_checkout_snapshot(const struct kr_checkout *checkout, const char *head, char oid[KR_OID_HEX_MAX + 1],
	struct kr_error *err);

#endif
