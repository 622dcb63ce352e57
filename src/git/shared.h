/*
 * The git of an item that works in the repository itself (MAC-08): on macOS nothing can be mounted, so no private git directory
 * stands in the place of the worktree's `.git`. The worker writes loose objects, its own branch with its log, and its linked
 * worktree's own files; the walls keep it from everything by which git finds or runs something (configuration, hooks, packs,
 * alternates, all other refs), and from names of objects that are taken.
 *
 * So nothing is published: what a session committed is on its branch at once, and is judged after it. A branch that holds
 * anything but a whole commit is put back to where it was. Whoever moved it meanwhile is not asked (MAC-13): there is no
 * compare-and-swap between a worker and the person. Sessions of one item that run at the same time share branch and index, as they
 * share the private directory on Linux.
 *
 * Record, locks and marks lie beside <name>, as of a private directory (git/private.h), which is not there itself; all that takes a
 * struct kr_private takes this one too. <name>.index is there for a moment, while an index is made.
 */
#ifndef KR_GIT_SHARED_H
#define KR_GIT_SHARED_H

#include "git/publish.h"

/*
 * As kr_private_open. KR_E_UNSUPPORTED for a repository whose refs are no files (CTR-12) or whose objects are elsewhere; KR_E_REFUSED
 * for a worktree whose git directory is not the repository's, or for an item that has a private directory.
 */
int kr_shared_open(struct kr_arena *arena, const char *run_dir, const char *item, unsigned tree,
	const struct kr_checkout *checkout, const char *worktree_git_dir, struct kr_private *out, struct kr_error *err);

/*
 * Before a session, under the exclusive lock: the branch is at want->start, made where it is missing, and the worktree's HEAD is on it.
 * want->synced is what the branch is now. drops: what a session did to them goes, whatever the branch is, and staged
 * changes with it. No file of the worktree is looked at. (want->index, excludes and settings mean nothing here.)
 */
int kr_shared_make(struct kr_arena *arena, struct kr_private *git, const struct kr_checkout *checkout,
	const struct kr_private_make *want, bool drops, struct kr_error *err);

/*
 * After a session, and before the next one for a session that was cut off. 0: the branch is where it was; 1: it is not, and
 * *out says what became of it (KR_PUBLISHED_MOVED or _PUT_BACK); -1: a system's fault, to be tried again. Takes the publish lock.
 * is_alone: no other session of the item runs, so its lock files are nobody's. pack_fd: an empty regular file.
 */
int kr_shared_take(struct kr_arena *arena, struct kr_private *git, bool is_alone, int pack_fd, struct kr_publish *out,
	struct kr_error *err);

/*
 * What git inside is told in one tree of several alone: the file `name` in `dir`, which the plan has it include (KR_TREE_SETTINGS).
 * identity: "GIT_AUTHOR_NAME=..." and the like; the environment's own come before it. excludes: what is none of its files, beside
 * its info/exclude and in the place of core.excludesFile; NULL or none: nothing. No worker may write in `dir`.
 */
int kr_shared_write_settings(struct kr_arena *arena, const char *dir, const char *name, const struct kr_strs *identity,
	const struct kr_strs *excludes, struct kr_error *err);

#endif
