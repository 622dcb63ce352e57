/* A workspace's trees: the root that a person stands in, and the members that repos.yaml names. */
#ifndef KR_RUN_WORKSPACE_H
#define KR_RUN_WORKSPACE_H

#include "run/where.h"
#include "session/item.h"

/*
 * The trees of `name` (NULL: the root alone), the root first. Creates nothing. KR_E_CONFIG when there is no such workspace,
 * KR_E_REFUSED when its root is another checkout or two trees are one repository, KR_E_UNSUPPORTED for
 * root_pointer_default: bump.
 */
int kr_workspace_trees(struct kr_arena *arena, const struct kr_places *places, const struct kr_where *where,
	const char *name, struct kr_tree **trees, size_t *count, struct kr_error *err);

/* Which workspace and item are meant: one that is named, else the one that the named item was made for (*workspace NULL:
 * none); *item stays NULL for the checkout's own. */
int kr_workspace_choose(struct kr_arena *arena, const struct kr_host *host, const struct kr_where *where,
	const char **workspace, const char **item, struct kr_error *err);

/* The plan of every tree after the root's, as one list; worktree and places are filled in. */
void kr_workspace_link(struct kr_tree *trees, size_t count);

#endif
