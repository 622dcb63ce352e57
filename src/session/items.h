/*
 * Items from outside: what is known of one without running anything in it, the list of them, and removing
 * one.
 *
 * Everything comes from kraft's own records (session/record.h, git/private.h), from the locks and from refs
 * read as data; nothing that a worker can write is opened but the one ref file, as data.
 */
#ifndef KR_SESSION_ITEMS_H
#define KR_SESSION_ITEMS_H

#include "git/git.h"

/* One repository's part of it (session/tree.h). */
struct kr_tree_seen {
	const char *member, *below; /* "" for the root */
	const char *worktree;
	const char *checkout, *git_dir, *git_common; /* as recorded; git_dir is the worktree's own */
	const char *commit; /* of the checkout, that the worktree was last brought to; "": none */
	const char *branch; /* without refs/heads/ */
	char synced[KR_OID_HEX_MAX +
				1];  /* what kraft brought the branch to in the repository; "": no commit came yet */
	bool is_pending; /* commits of a session that was cut off are not in the repository yet */
};

struct kr_item_seen {
	const char *id;
	const char *workspace;      /* NULL: none */
	struct kr_tree_seen *trees; /* the root first */
	size_t tree_count;
	bool is_busy;    /* a session runs in it, or it is being prepared */
	bool is_pending; /* of any tree */
};

/* KR_E_NOT_FOUND when there is no such item, KR_E_USAGE for an id that cannot be one. */
int kr_item_look(struct kr_arena *arena, const char *run_dir, const char *id, struct kr_item_seen *out,
	struct kr_error *err);

struct kr_item_list {
	struct kr_item_seen *v; /* by id */
	size_t n;
};
int kr_item_list(struct kr_arena *arena, const char *run_dir, struct kr_item_list *out, struct kr_error *err);

/*
 * Removes worktree (and the repository's entry of it), private git directory, home, results and record, under
 * the item's lock. Never the branch, nor refs/kraft/unsynced/: what came in stays. The record goes last, so
 * that a removal that was cut off is finished by the next one. KR_E_BUSY while a session runs; KR_E_REFUSED
 * when is_pending and not `force`.
 */
int kr_item_remove(
	struct kr_arena *arena, const char *run_dir, const char *id, bool force, struct kr_error *err);

#endif
