/*
 * What a command left uncommitted in an item's worktree, and how it gets onto the item's branch (facts of REF-02): the
 * command to run inside the walls, and what it answers. Pure; who calls it is run/commit.c.
 */
#ifndef KR_GIT_LEFTOVERS_H
#define KR_GIT_LEFTOVERS_H

#include "git/private.h"

enum {
	KR_LEFTOVERS_BYTES = 1 << 20, /* of an answer */
	KR_LEFTOVERS_SHOWN = 100,     /* paths that an event has */
	KR_LEFTOVERS_FAILED = 3,      /* exit status: the commit could not be made; git's log says why */
	KR_LEFTOVERS_S = 1200,        /* that it may take */
};

/*
 * To run in the worktree. It commits what is untracked (and not ignored), changed or deleted, and prints what could not be
 * taken: files that cannot be read, names that git refuses. A file that is tracked although it is ignored stays tracked.
 * Nothing to commit: no commit, exit status 0.
 */
const char *const *kr_leftovers_commit(struct kr_arena *arena, const struct kr_private *git, const char *message);

/* What it prints (`status --porcelain -z`), as text to be shown: escaped, valid UTF-8. False when it is not that; nothing
 * is added then. */
bool kr_leftovers_parse(struct kr_arena *arena, const char *bytes, size_t n, struct kr_strs *out);

/* A path as text to be shown. */
const char *kr_leftovers_escape(struct kr_arena *arena, const char *path);

/* "kraft: left by make in item x": escaped, one line. */
const char *kr_leftovers_message(struct kr_arena *arena, const char *command, const char *item);

/* Whether both names and both addresses are there (kr_git_identity). Git would make something up. */
bool kr_leftovers_has_identity(const struct kr_strs *identity);

#endif
