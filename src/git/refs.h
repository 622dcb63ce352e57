/*
 * Refs as data: read by kraft itself, never by a git that was pointed at files which a worker can write (GIT-11, REF-02).
 * Regular files only, opened without following links and without blocking, bounded.
 */
#ifndef KR_GIT_REFS_H
#define KR_GIT_REFS_H

#include "git/git.h"

/* An object id: 40 or 64 lower-case hex digits and nothing else. */
bool kr_oid_is_valid(const char *text, size_t n);
/* What git takes for the name of a ref ("refs/..."): then it is also a relative path without '..'. */
bool kr_ref_name_is_valid(const char *name, size_t n);

/*
 * The value of "refs/heads/<branch>" in the git directory at dir_fd, which a worker may have written: the loose file wins
 * over packed-refs. 1 found; 0 no value (absent, or what is there is no plain value: a link, a FIFO, a directory, a
 * symbolic ref, other bytes); -1 a limit or a system error.
 */
int kr_ref_read_hostile(int dir_fd, const char *branch, char oid[KR_OID_HEX_MAX + 1], struct kr_error *err);

/* Pure parsers, for the above and for the fuzzer. kr_packed_refs_find: the same three results. */
bool kr_ref_file_parse(const char *bytes, size_t n, char oid[KR_OID_HEX_MAX + 1]);
int kr_packed_refs_find(const char *bytes, size_t n, const char *ref, char oid[KR_OID_HEX_MAX + 1]);

/* The entries of a packed-refs file, one after the other; what git would not take for one is passed over. Borrows. */
struct kr_packed_ref {
	const char *oid, *name, *peeled; /* none is terminated; peeled: as long as oid, NULL when the file gives none */
	size_t oid_len, name_len;
};
bool kr_packed_refs_next(const char *bytes, size_t n, size_t *at, struct kr_packed_ref *out);

/*
 * Every ref of the repository at `common` (trusted; loose and packed, no worktree's own refs, no refs/kraft/), as the text
 * of a sorted packed-refs file, with `branch` (without refs/heads/) at `oid` in place of what it is. Reads files itself for
 * ref storage "files"; asks git (for-each-ref) for another one that git can read. KR_E_UNSUPPORTED naming reftable when
 * the git here cannot.
 */
int kr_refs_snapshot(const struct kr_checkout *checkout, const char *branch, const char *oid, struct kr_buf *out,
	struct kr_error *err);
/* A branch's value in the repository at `common`; trusted. 1 found, 0 absent, -1 error. */
int kr_branch_read(const struct kr_checkout *checkout, const char *branch, char oid[KR_OID_HEX_MAX + 1],
	struct kr_error *err);

#endif
