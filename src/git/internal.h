/* What the files of this room share among themselves. */
#ifndef KR_GIT_INTERNAL_H
#define KR_GIT_INTERNAL_H

#include "git/private.h"

enum {
	KR_REF_NAME_MAX = 1023,
	KR_PACKED_REFS_BYTES = 64 << 20, /* about a million refs */
};

/* "refs/heads/<branch>"; KR_E_REFUSED when git would not take it. */
int kr_ref_of_branch(const char *branch, char ref[KR_REF_NAME_MAX + 1], struct kr_error *err);

/* The packed-refs file of the repository at `common`; trusted. Empty when there is none, NULL on an error; good until the
 * next call. */
const struct kr_buf *kr_packed_refs_read(const char *common, struct kr_error *err);

/* The value of a ref of the repository at `common`, full name; trusted. 1 found, 0 absent, -1 error. */
int kr_ref_read(const char *common, const char *ref, char oid[KR_OID_HEX_MAX + 1], struct kr_error *err);

/* Whether the repository at `common` may keep its refs in another way than files; then git is asked, not the files. */
bool kr_refs_need_git(const char *common);
/* KR_E_UNSUPPORTED naming reftable, for a git that could not read them; `why` is what it said. */
int kr_refs_not_read(const char *common, const char *why, struct kr_error *err);

/* publish.c, for an item that works in the repository itself (shared.c): how git is run on what a worker wrote; whether a failure
 * of it may be none another time; the lock under which commits are judged. */
struct kr_git_where kr_publish_where(const char *git_dir);
bool kr_publish_is_systems(const struct kr_error *err);
int kr_publish_lock(struct kr_arena *arena, const struct kr_private *git, struct kr_error *err);
/* What the branch brings to `tip` that is in no pack yet, as a pack, written where pack_fd stands. */
int kr_publish_pack(
	struct kr_arena *arena, const struct kr_private *git, const char *tip, int pack_fd, struct kr_error *err);
/* KR_E_REFUSED naming the other worktree that has the item's branch checked out. */
int kr_publish_check_free(struct kr_arena *arena, const struct kr_private *git, struct kr_error *err);

/* private.c: kr_private_open, of an item that works in the repository or has a directory of its own. */
int kr_private_open_as(struct kr_arena *arena, const char *run_dir, const char *item, unsigned tree,
	const struct kr_checkout *checkout, const char *worktree_git_dir, bool is_in_repository, struct kr_private *out,
	struct kr_error *err);
/* private_make.c: the record of what `want` makes, written where it says something new. */
int kr_private_renew_record(struct kr_arena *arena, struct kr_private *git, const struct kr_checkout *checkout,
	const struct kr_private_make *want, bool is_in_repository, struct kr_error *err);

/* settings.c: a value as a configuration file has it, in quotes. */
void kr_git_quote(struct kr_buf *out, const char *s);

/* Object directories that `objects` (resolved) borrows from; resolved, nested ones too, each once, never `objects`. */
int kr_objects_borrowed(
	struct kr_arena *arena, const char *objects, struct kr_strs *out, struct kr_error *err);

/*
 * The tree that an index file stands for, from the end of the file (n bytes of it): what git noted there when all of the
 * index was last written as a tree, and nothing was staged since. False when it does not say. raw: bytes of an object id.
 */
bool kr_index_tree(const char *end, size_t n, size_t raw, char oid[KR_OID_HEX_MAX + 1]);

#endif
