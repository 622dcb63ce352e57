/* `local_files` of a repository: untracked files of the person's checkout that each new worktree gets a copy
 * of. */
#ifndef KR_SESSION_LOCAL_FILES_H
#define KR_SESSION_LOCAL_FILES_H

#include "config/config.h"

enum { KR_LOCAL_FILE_BYTES = 256 << 20 }; /* each; more is a mistake in the list */

/* Can each be copied? Errors name the entry and the fix. Copies nothing. */
int kr_local_files_check(const struct kr_repo *repo, const char *checkout, struct kr_error *err);
/* checkout, worktree: clean paths without links. */
int kr_local_files_copy(
	const struct kr_repo *repo, const char *checkout, const char *worktree, struct kr_error *err);
/* Only those that the worktree has not: one that was listed later, or that left with --with-changes. What a
 * worker made of the others is kept. */
int kr_local_files_add(
	const struct kr_repo *repo, const char *checkout, const char *worktree, struct kr_error *err);

#endif
