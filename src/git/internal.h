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

/* Object directories that `objects` (resolved) borrows from; resolved, nested ones too, each once, never `objects`. */
int kr_objects_borrowed(
	struct kr_arena *arena, const char *objects, struct kr_strs *out, struct kr_error *err);

/*
 * The tree that an index file stands for, from the end of the file (n bytes of it): what git noted there when all of the
 * index was last written as a tree, and nothing was staged since. False when it does not say. raw: bytes of an object id.
 */
bool kr_index_tree(const char *end, size_t n, size_t raw, char oid[KR_OID_HEX_MAX + 1]);

#endif
