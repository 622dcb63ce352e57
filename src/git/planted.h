/*
 * Repositories in an item's worktree that kraft did not make (REF-04): `git add` would record one as a link without its
 * content, and a person who stands in one later runs git with the configuration that a worker wrote (GIT-06).
 *
 * What counts: a directory below the worktree that has something called `.git` in it, whatever that is; a directory that
 * cannot be looked into; a link to a commit of another repository (gitlink) that the item's branch has and its base has
 * not. What does not: what the repository ignores (a package manager clones into such directories), a link of the base
 * without a repository in its place, a bare repository, which is files like others (GIT-05).
 *
 * No git on the host reads a worktree, so kraft walks it itself, as data: names and types, no file is opened, no link
 * followed. Only when the walk finds something is git inside the walls asked whether it is ignored; a worker that wants
 * its repository ignored can write that down for all to see, so its answer needs no more trust than the worker has.
 */
#ifndef KR_GIT_PLANTED_H
#define KR_GIT_PLANTED_H

#include "git/private.h"

enum kr_planted_kind {
	KR_PLANTED_REPOSITORY, /* there is a `.git` in it */
	KR_PLANTED_CLOSED,     /* it cannot be looked into, or lies too deep */
	KR_PLANTED_LINK,       /* a gitlink that the branch added or moved */
};
enum {
	KR_PLANTED_MAX = 10000,
	KR_PLANTED_ASK_S = 60, /* that git inside may take to answer */
};
struct kr_planted_found {
	enum kr_planted_kind kind;
	const char *path; /* relative to the worktree; any bytes but NUL */
};
struct kr_planted {
	struct kr_planted_found *v;
	size_t n, cap;
	bool has_more; /* the walk ended at KR_PLANTED_MAX */
};

/*
 * Walks the worktree. own: directories (relative) whose `.git` kraft put there, the checkouts of a workspace's members:
 * they are neither found nor entered, for each of them is walked by itself. What is below a found directory is not looked at.
 */
int kr_planted_walk(struct kr_arena *arena, const char *worktree, const struct kr_strs *own, struct kr_planted *out,
	struct kr_error *err);

/* The command to run inside, in the worktree, and what it reads on stdin: it prints which of the found are ignored. */
const char *const *kr_planted_ask(struct kr_arena *arena, const struct kr_private *git, const struct kr_planted *found,
	const char **stdin_bytes, size_t *stdin_len);
/* Pure: takes out what n bytes of its answer name. False when they are no such answer; then nothing is taken out. */
bool kr_planted_drop_ignored(struct kr_planted *found, const char *bytes, size_t n);

/* Adds the gitlinks of commit `to` that commit `from` has not; by object ids, in the repository at `common`. */
int kr_planted_links(struct kr_arena *arena, const char *common, const char *from, const char *to, struct kr_planted *out,
	struct kr_error *err);
/* Pure: what git prints for that (`diff-tree -r -z --raw`). False when it is not that. */
bool kr_planted_links_parse(struct kr_arena *arena, const char *bytes, size_t n, struct kr_planted *out);
/* Adds what another look found. */
void kr_planted_append(struct kr_arena *arena, struct kr_planted *list, const struct kr_planted *more);
/* Leaves only the links that are in both. */
void kr_planted_keep_common(struct kr_planted *links, const struct kr_planted *other);

/* "'a' is a git repository that kraft did not make": one for a person, in the arena. */
const char *kr_planted_say(struct kr_arena *arena, const struct kr_planted_found *found);
/* The same of several: the first, and how many more. */
const char *kr_planted_sum_up(struct kr_arena *arena, const struct kr_planted *found);

#endif
