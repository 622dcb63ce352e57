/* Shared by the commands about one item. */
#ifndef KR_CLI_ITEM_H
#define KR_CLI_ITEM_H

#include "work/diff.h"

/*
 * The trees of the item of that name, or with NULL of the one of the repository that we stand in; their checkouts, and
 * where both stand. KR_E_BUSY while a session of it runs, saying what the person has to wait for ("the diff").
 */
int kr_item_find(struct kr_arena *arena, const char *id, const char *what, struct kr_item_trees *out,
	struct kr_error *err);

#endif
