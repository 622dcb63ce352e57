/*
 * What a worker committed, taken into the person's repository: its branch moves, only if nobody else moved it, and nothing
 * else does (REF-02, REF-03).
 *
 *   1. kr_publish_look    reads the branch of the private directory as data
 *   2. the caller         runs kr_publish_export's command inside the walls, its stdout into a file
 *   3. kr_publish_take    index-pack --strict of that file in the repository, a look that all of it is connected, then
 *                         update-ref by compare-and-swap, then HEAD and index of the linked worktree
 *
 * Each step can be cut off by kill -9: the next start finds the branch still unpublished (or published, and only the record
 * behind) and does it again. Objects that came in for nothing are unreachable, and the person's gc drops them.
 */
#ifndef KR_GIT_PUBLISH_H
#define KR_GIT_PUBLISH_H

#include "git/private.h"

/* 1: there are commits to take out, tip is the branch's value; 0: nothing; -1 error. Waits for the publish lock and keeps it
 * in *lock_fd for the rest (-1 when 0 or -1 is returned); git->record is read again under it, because another session of
 * the item may have published meanwhile. */
int kr_publish_look(struct kr_arena *arena, struct kr_private *git, char tip[KR_OID_HEX_MAX + 1], int *lock_fd,
	struct kr_error *err);

/* The command to run inside, with the private directory, the worktree and the borrowed objects mounted, and what it reads
 * on stdin: it writes a pack of what the repository does not have. argv[0] is "git". Whether it succeeds is the worker's
 * to decide: kr_publish_take judges by what came out, and an empty file may do when the objects came in before. */
const char *const *kr_publish_export(struct kr_arena *arena, const struct kr_private *git, const char *tip,
	const char **stdin_text);

enum { KR_PUBLISH_MESSAGE = 1024 };
enum kr_published {
	KR_PUBLISHED_MOVED, /* the branch is at tip */
	KR_PUBLISHED_KEPT,  /* it could not move; the commit is at refs/kraft/unsynced/<branch>: event sandbox_branch_not_synced */
	KR_PUBLISHED_LOST,  /* not even that: the pack was refused; the private directory still has it */
	KR_PUBLISHED_PUT_BACK, /* in the repository (git/shared.h): it held something else, and is again where it was */
};
struct kr_publish {
	enum kr_published what;
	char from[KR_OID_HEX_MAX + 1], to[KR_OID_HEX_MAX + 1]; /* from: "" when the branch was made */
	size_t commits;                  /* between base and to; 0 when it cannot be told */
	char problem[KR_PUBLISH_MESSAGE]; /* one line; "" when MOVED */
};
/* pack_fd: a regular file with what the export wrote, read from its beginning. Updates git->record and the record file.
 * The linked worktree stands at tip afterwards, detached when the branch could not move. -1 only for what is nobody's
 * fault but the system's (disk full...): to be tried again. */
int kr_publish_take(struct kr_arena *arena, struct kr_private *git, const char *tip, int pack_fd,
	struct kr_publish *out, struct kr_error *err);

/* refs/kraft/base/<item>: keeps what the private directory borrows from being pruned. */
int kr_base_keep(const struct kr_checkout *checkout, const char *item, const char *oid, struct kr_error *err);
int kr_base_drop(const struct kr_checkout *checkout, const char *item, struct kr_error *err);

/* The linked worktree (git_dir; no worker can write there) stands at oid, detached or on branch (without refs/heads/, NULL:
 * detached): its HEAD and its index, without a look at any file of the worktree. */
int kr_worktree_stands_at(const char *git_dir, const char *oid, const char *branch, struct kr_error *err);

#endif
