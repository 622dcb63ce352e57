/* Shared by the commands about one item. */
#ifndef KR_CLI_ITEM_H
#define KR_CLI_ITEM_H

#include "git/git.h"
#include "plan/plan.h"
#include "session/items.h"

/* One tree of an item, in the person's repository. */
struct kr_item_at {
	const char *id;
	struct kr_tree_seen seen;
	struct kr_checkout checkout; /* the person's */
	char head[KR_OID_HEX_MAX + 1];
	char tip[KR_OID_HEX_MAX + 1]; /* of the item's branch in the repository; "": it has no commit yet */
	const char *ref;              /* refs/heads/<branch> */
};

struct kr_item_trees {
	struct kr_item_at *v; /* the root first */
	size_t n;
};

/*
 * The trees of the item of that name, or with NULL of the one of the repository that we stand in; their checkouts, and
 * where both stand. KR_E_BUSY while a session of it runs, saying what the person has to wait for ("the diff").
 */
int kr_item_find(struct kr_arena *arena, const char *id, const char *what, struct kr_item_trees *out,
	struct kr_error *err);
/* Leaves the member of that name alone; NULL: all stay. KR_E_NOT_FOUND. */
int kr_item_only(struct kr_item_trees *trees, const char *member, struct kr_error *err);

/* The nearest common ancestor of the branch and of what the item was made from; "" when there is none. */
int kr_item_base(const struct kr_item_at *at, char base[KR_OID_HEX_MAX + 1], struct kr_error *err);

#endif
