/*
 * Large files of git-lfs: a commit holds a pointer, and the content lies beside the repository's objects
 * under the SHA-256 of its bytes. What a worker added lies in its private directory and goes with it, so it
 * is taken out before a branch that points to it moves.
 *
 * Read as data: regular files only, no link followed, nothing that blocks, bounded in number and bytes.
 * Content whose hash is not its name is left; a file that the repository has is never written.
 */
#ifndef KR_GIT_LARGE_H
#define KR_GIT_LARGE_H

#include "git/private.h"

struct kr_large {
	size_t taken, left; /* left: not what the name says, or over the bound */
};

/* Takes what is new. -1 for a system's fault (the disk is full): to be tried again. */
int kr_large_take(
	struct kr_arena *arena, const struct kr_private *git, struct kr_large *out, struct kr_error *err);

#endif
