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

/*
 * Finds the working tree that holds `start` (absolute; links in it are resolved) by walking up, reading `.git` as data.
 * KR_E_NOT_FOUND when there is none or it is bare; KR_E_REFUSED when it is another user's and safe.directory of the
 * person's own git configuration does not name it.
 */
int kr_checkout_find(struct kr_arena *arena, const char *start, struct kr_checkout *out,
	struct kr_error *err);
/* The commit HEAD is at: read from HEAD, loose refs and packed-refs; asks git only for other ref storages.
 * KR_E_NOT_FOUND for a branch without a commit. */
int kr_checkout_head(const struct kr_checkout *checkout, char oid[KR_OID_HEX_MAX + 1],
	struct kr_error *err);

/*
 * A git run in flight: a child that leads a session of its own (no prompt reaches the terminal), holds no descriptor of
 * ours but 0, 1 and 2, and is killed when the thread that started it ends (but see hold_fd).
 */
struct kr_git_run {
	pid_t pid;          /* 0: not running */
	int out_fd, err_fd; /* our ends of its stdout and stderr */
	bool show_progress; /* copy its stderr to ours while it runs, when ours is a terminal */
	/* Given its stdout piece by piece, in place of kr_git_finish's `out`; -1 ends the run. NULL: none. */
	int (*sink)(void *context, const char *bytes, size_t n);
	void *sink_context;
	int64_t until_ms; /* on the monotonic clock: then it is ended; 0: no limit */
	char verb[32];    /* "status", for errors */
};
struct kr_git_where {
	const char *git_dir;    /* given by GIT_DIR; NULL only for verbs that need no repository */
	const char *work_tree;  /* NULL: none */
	const char *index_file; /* NULL: git's own */
	int work_dir_fd;        /* where it runs; 0 or -1: the work tree, else "/" */
	int stdin_fd;           /* its stdin, from where it stands; 0 or -1: /dev/null */
	int hold_fd;            /* a lock that the run holds to its end, also when we are killed; 0 or -1: none */
	bool lives_on;          /* goes on when we are killed: for a short run that would leave a lock file behind */
	uint64_t memory_bytes;  /* that it may allocate, for what reads a worker's bytes; 0: no limit */
	unsigned cpu_s;         /* that it may use; 0: no limit */
	unsigned wall_s;        /* that it may take: what a worker put in its way can hold it for ever; 0: no limit */
	const char *const *extra_env; /* "NAME=value", NULL-terminated, beside ours; NULL: none */
	bool pushes; /* a push at the person's word: the repository's pre-push hook runs, and transports are allowed */
};
/* A program by its name, by the same rule as git below; NULL: there is none. */
const char *kr_program_find(struct kr_arena *arena, const char *name);
/* The git program: the system's, else the first one on the absolute entries of PATH that lie in no checkout; looked for
 * once. NULL with KR_E_UNSUPPORTED. */
const char *kr_git_program(struct kr_error *err);
/* argv: the verb and what follows it ("status", "-z", NULL), without "git". */
int kr_git_start(const struct kr_git_where *where, const char *const argv[], struct kr_git_run *run,
	struct kr_error *err);
/* Waits, collects stdout (bounded by out->max); non-zero exit is KR_E_GIT with git's own last line of stderr. */
int kr_git_finish(struct kr_git_run *run, struct kr_buf *out, struct kr_error *err);
void kr_git_abandon(struct kr_git_run *run);
int kr_git_run(const struct kr_git_where *where, const char *const argv[], struct kr_buf *out,
	struct kr_error *err);

/* Whether `new` has all of `old`; both are commits of the repository at `common`. */
bool kr_commit_has(const char *common, const char *new, const char *old);

/*
 * A linked worktree at `path` (its parent exists, it does not), detached at oid; hooks off. git_dir, when not NULL,
 * receives the worktree's own git directory, resolved and in the arena. hold_fd: the lock under which this is called
 * (-1: none); git may hold it for some milliseconds longer when we are killed.
 */
int kr_worktree_add(struct kr_arena *arena, const struct kr_checkout *checkout, const char *path,
	const char *oid, int hold_fd, const char **git_dir, struct kr_error *err);
/*
 * True when git_dir is (still) the git directory of the linked worktree at `path`: it says so itself. Reads nothing
 * below `path`, which a worker may have written.
 */
bool kr_worktree_is_linked(const char *git_dir, const char *path);
/* True when git_dir belongs to the repository at `common`: its commondir leads there. */
bool kr_worktree_is_of(const char *git_dir, const char *common);
/*
 * Makes the repository at `common` forget the linked worktree at `path`, whose files the caller has removed: nothing is there
 * that git could open. git_dir as recorded; nothing happens when it is not that worktree's any more.
 */
int kr_worktree_forget(const char *common, const char *git_dir, const char *path, struct kr_error *err);
/* A commit of the checkout's present state, tracked and untracked (not ignored), beside HEAD; the checkout and its
 * index stay as they are. `head` itself when nothing differs; the same state gives the same commit again. */
int kr_checkout_snapshot(const struct kr_checkout *checkout, const char *head, char oid[KR_OID_HEX_MAX + 1],
	struct kr_error *err);

#endif
