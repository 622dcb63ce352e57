/*
 * A tree of an item: one repository's part of its worktree. Tree 0 is the root. A workspace has one more for each member,
 * which stands below the root's files and is a linked worktree of its own repository, with a private git directory, a
 * branch and a way out of its own (REF-06).
 *
 * All places come from the configuration, the person's repository and kraft's own records: never from a `.git` that lies
 * in the worktree.
 */
#ifndef KR_SESSION_TREE_H
#define KR_SESSION_TREE_H

#include "git/private.h"
#include "plan/plan.h"

struct kr_tree {
	const char *member;         /* its name in the workspace; "" for the root */
	const char *below;          /* where it stands, relative to the item's worktree; "" for the root */
	const struct kr_repo *repo; /* its entry in repos.yaml */
	struct kr_checkout checkout;
	/* kr_item_open fills these: */
	const char *worktree, *git_dir; /* of the linked worktree; git_dir is recorded by us and trusted */
	char at[KR_OID_HEX_MAX + 1], wanted[KR_OID_HEX_MAX + 1];
	bool is_elsewhere; /* it has to be moved to `wanted` */
	/* and its git (run/git.c): */
	struct kr_private git;           /* lock_fd is -1 from the start */
	struct kr_git_settings settings; /* git's configuration, asked for while other things are done */
	struct kr_plan_git plan;
	struct kr_plan_shared_git shared; /* in place of plan, for an item that works in the repository itself (MAC-08) */
};

/* A root before anything is opened. */
struct kr_tree kr_tree_of(const struct kr_repo *repo, const struct kr_checkout *checkout);
/* "item 'x'", "member 'lib' of item 'x'": for messages. */
const char *kr_tree_words(struct kr_arena *arena, const char *item, const struct kr_tree *tree);

/* ---- members (session/member.c); top: the item's worktree ---- */

/*
 * Whether the root's commit leaves room for the members: at no member's path is a file or a directory with files, and
 * no link is on the way. (A submodule's entry is an empty directory: fine.)
 */
int kr_members_check_room(struct kr_arena *arena, const struct kr_tree *trees, size_t count, struct kr_error *err);
/* The directories down to a member, and none for itself; in a root that git made a moment ago. */
int kr_member_make_place(const char *top, const struct kr_tree *tree, struct kr_error *err);
/*
 * Whether a member still is the checkout that kraft made (REF-04, facts of members): its path stays in the worktree, no
 * link is on the way, its `.git` names the expected git directory, which names it, and leads to the member's repository.
 * By looking, never by git. places: the directories from below the worktree down to the member, as they were found.
 */
int kr_member_check(struct kr_arena *arena, const char *item, const char *top, const struct kr_tree *tree,
	struct kr_plan_place **places, size_t *place_count, struct kr_error *err);
/* `below` in a directory, component by component without following a link; -1 with errno. */
int kr_member_open(int top_fd, const char *below);

#endif
