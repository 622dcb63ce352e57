/*
 * An item's trees in the person's repository, and what their branches change. For whoever looks at an item
 * from outside: the command line, the API.
 */
#ifndef KR_WORK_DIFF_H
#define KR_WORK_DIFF_H

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
 * The trees of an item that was looked at, and their checkouts. KR_E_BUSY while a session of it runs, saying
 * what the person has to wait for ("the diff").
 */
int kr_item_trees_of(struct kr_arena *arena, const struct kr_item_seen *seen, const char *what,
	struct kr_item_trees *out, struct kr_error *err);
/* The same of an item by its whole id. KR_E_NOT_FOUND when nothing was run in it. */
int kr_item_trees_find(struct kr_arena *arena, const struct kr_host *host, const char *id, const char *what,
	struct kr_item_trees *out, struct kr_error *err);
/* Leaves the member of that name alone; NULL: all stay. KR_E_NOT_FOUND. */
int kr_item_only(struct kr_item_trees *trees, const char *member, struct kr_error *err);

/* The nearest common ancestor of the branch and of what the item was made from; "" when there is none. */
int kr_item_base(const struct kr_item_at *at, char base[KR_OID_HEX_MAX + 1], struct kr_error *err);

struct kr_diff_form {
	bool stat, names_only; /* in place of the changes; one of them at most */
	bool as_text;          /* what looks binary, too */
};
/* From base ("": from nothing) to the branch, which has a commit, as git prints it, piece by piece; sink
 * returns -1 to stop it, and then an error comes back. */
int kr_item_diff(struct kr_arena *arena, const struct kr_item_at *at, const char *base,
	const struct kr_diff_form *form, int (*sink)(void *context, const char *bytes, size_t n), void *context,
	struct kr_error *err);

#endif
