/*
 * The private git directory of an item: all of git that a worker sees and may change (REF-01). It has the refs of the
 * repository as of the session's start, HEAD on the item's branch, an index, a configuration and objects of its own, and
 * borrows the repository's objects, which are mounted read-only. Nothing on the host ever runs git in it: what a worker
 * did is read as data, and its commits come out as a pack that a git inside the walls writes (git/publish.h).
 *
 * Below <run_dir>/sandbox-git/, where <name> is <item>-<tree>: an item has one for each repository that it works on, 0 for
 * the one at its root.
 *     <name>/          the directory; the worker can write all of it but objects/info/alternates
 *     <name>.gitfile   "gitdir: <that directory>", mounted read-only over the worktree's .git
 *     <name>.json      what kraft knows: struct kr_private_record; written by atomic rename, never mounted
 *     <name>.lock      held shared by each session that uses the directory, exclusive while it is made
 *     <name>.publish   held exclusive while its commits are taken out
 *     <name>.clean     there while no session has begun since one was looked at after its end and left nothing in the way
 */
#ifndef KR_GIT_PRIVATE_H
#define KR_GIT_PRIVATE_H

#include "git/refs.h"
#include "git/settings.h"

struct kr_private_record {
	const char *checkout, *common; /* of the person's repository */
	const char *worktree_git_dir;  /* of the item's linked worktree */
	const char *branch;            /* without refs/heads/ */
	char start[KR_OID_HEX_MAX + 1]; /* where the branch stood in the directory when it was made */
	char at[KR_OID_HEX_MAX + 1];    /* where it stands as far as its commits were taken out, and the worktree with it */
	char synced[KR_OID_HEX_MAX + 1]; /* what the branch is in the repository, as far as kraft brought it; "": absent */
	char noted[KR_OID_HEX_MAX + 1]; /* a tree: what lay in the worktree before the session that changes nothing and has not
									 * been tidied up after (run/put_back.c); "": none */
	bool is_in_repository; /* there is no directory: the item works in the repository itself (git/shared.h), and `at` is
							* where its branch was when it was last judged */
};

struct kr_private {
	const char *dir, *git_file;  /* absolute, clean */
	const char *objects;         /* the repository's own, resolved */
	struct kr_strs borrowed;     /* object directories that those borrow from, resolved, nested ones too */
	const char *lfs;             /* the repository's lfs directory, where git-lfs looks: beside objects; NULL: none */
	struct kr_private_record record;
	bool is_made;   /* the directory is there and whole */
	bool is_shared; /* another session is using it: it stays as it is */
	int lock_fd;    /* exclusive until kr_private_share; -1 none */
};

/* Only the names of things, and what is borrowed: nothing is made, locked or read of what a worker can write. */
int kr_private_name(struct kr_arena *arena, const char *run_dir, const char *item, unsigned tree,
	const struct kr_checkout *checkout, struct kr_private *out, struct kr_error *err);

/*
 * Takes the lock and reads what is there. With is_shared the lock is shared already. Otherwise it is exclusive, and a
 * caller that finds commits left over (kr_publish_look) takes them out before it makes the directory anew.
 * KR_E_REFUSED for a repository whose objects or alternates cannot be used, naming them.
 */
int kr_private_open(struct kr_arena *arena, const char *run_dir, const char *item, unsigned tree,
	const struct kr_checkout *checkout, const char *worktree_git_dir, struct kr_private *out, struct kr_error *err);

struct kr_private_make {
	const char *branch;  /* without refs/heads/ */
	const char *start;   /* object id */
	const char *synced;  /* the branch's value in the repository; "": absent */
	const char *index;   /* file "index" of the linked worktree, to begin with; NULL or absent: none */
	const struct kr_strs *excludes; /* lines for info/exclude beside the repository's own; NULL: none */
	struct kr_git_settings *settings; /* started by the caller, who keeps it; NULL: one is asked for here */
};
/*
 * Makes the directory anew under the exclusive lock: everything a worker did to the old one is gone, but its index file is
 * kept (it saves git inside from reading every file again; no git outside reads it) where it stands for the same tree as
 * want->index: otherwise it may name staged objects that only the old directory had. The configuration is
 * written from the repository's and the person's, by a list of keys that a worker may know (core.autocrlf, filter.*, user.*,
 * remote.*.url without user and password, ...; never credentials, includes, hooks, helpers that are host programs' secrets).
 * Built beside and renamed, so that one that is_made is whole.
 */
int kr_private_make(struct kr_arena *arena, struct kr_private *git, const struct kr_checkout *checkout,
	const struct kr_private_make *want, struct kr_error *err);
/* The record file beside git->dir: what another session of the item may have written meanwhile, and its renewal from
 * git->record by atomic rename. Under the publish lock. */
int kr_private_record_read(struct kr_arena *arena, const struct kr_private *git, struct kr_private_record *out,
	struct kr_error *err);
int kr_private_record_write(const struct kr_private *git, struct kr_error *err);

/* Where a git inside works: the directory, or else the linked worktree's own. */
const char *kr_private_git_dir(const struct kr_private *git);

/* From exclusive to shared, for as long as the session runs. */
int kr_private_share(struct kr_private *git, struct kr_error *err);
void kr_private_close(struct kr_private *git);

/*
 * After the command, once. True when no other session of the item has its command still to end: then none begins before
 * kr_private_close either. Of sessions that end at the same moment exactly one is told so.
 */
bool kr_private_is_last(struct kr_private *git);

/*
 * The mark <name>.clean. Made by whoever is last and has looked at the worktree (git/planted.h); taken away by each session
 * before its command. So a kraft that is killed in between leaves none, and the next one looks itself.
 */
bool kr_private_is_clean(const struct kr_private *git);
void kr_private_mark_clean(const struct kr_private *git);
int kr_private_unmark_clean(const struct kr_private *git, struct kr_error *err);

/*
 * What stands in the way of moving on (REF-04): operations in progress (rebase, merge, cherry-pick, revert, bisect) and a
 * HEAD that is not on the item's branch, found by looking, not by git. One phrase each, for a person; none: n is 0.
 */
int kr_private_obstacles(struct kr_arena *arena, const struct kr_private *git, struct kr_strs *out,
	struct kr_error *err);

/* user.name and user.email for the repository, from the environment's GIT_AUTHOR_* and GIT_COMMITTER_*, else from git's
 * configuration (CTR-05); "NAME=value" for the worker's environment, empty when there is none. */
int kr_git_identity(struct kr_arena *arena, const struct kr_checkout *checkout, struct kr_strs *out,
	struct kr_error *err);
/* The same from settings that were waited for. */
void kr_git_identity_from(struct kr_arena *arena, const struct kr_git_settings *settings, struct kr_strs *out);

/* Abandons: removes directory, git file, record and locks of a tree of the item. KR_E_BUSY while a session uses it. */
int kr_private_remove(const char *run_dir, const char *item, unsigned tree, struct kr_error *err);
/* The place of a tree's directory. */
const char *kr_private_dir(struct kr_arena *arena, const char *run_dir, const char *item, unsigned tree);

#endif
