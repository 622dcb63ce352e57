#include "run/workspace.h"

#include "base/text.h"

static const struct kr_workspace *
find(struct kr_arena *arena, const struct kr_where *where, const char *name, struct kr_error *err)
{
	const struct kr_workspace *space = kr_workspace_find(where->repos, name);
	const char *names = "";

	if (space)
		return space;
	for (size_t i = 0; i < where->repos->workspace_count; i++)
		names = kr_arena_printf(arena, "%s%s'%s'", names, i ? ", " : "", where->repos->workspaces[i].name);
	kr_fail(err, KR_E_CONFIG, "there is no workspace '%s'", name);
	if (where->repos->workspace_count)
		kr_hint(err, "'%s' has %s", where->repos->file, names);
	else
		kr_hint(err, "write it below 'workspaces' in '%s'", where->repos->file);
	return NULL;
}

static int
check(const struct kr_where *where, const struct kr_workspace *space, struct kr_error *err)
{
	if (space->root != where->repo) {
		kr_fail(err, KR_E_REFUSED, "the root of the workspace '%s' is '%s', not '%s'", space->name, space->root->path,
			where->repo->path);
		return kr_hint(err, "stand there, or name it: -C '%s'", space->root->path);
	}
	if (!space->bumps_root_pointer)
		return 0;
	kr_fail(err, KR_E_UNSUPPORTED, "root_pointer_default: bump of the workspace '%s' is not supported yet", space->name);
	return kr_hint(err, "write root_pointer_default: ignore, and commit the root's pointers yourself");
}

static int
add_member(struct kr_arena *arena, const struct kr_places *places, const struct kr_where *where,
	const struct kr_member *member, struct kr_tree *out, struct kr_error *err)
{
	struct kr_checkout checkout;

	if (kr_checkout_find(arena, member->repo->path, &checkout, err) < 0 ||
		kr_where_check_apart(places, checkout.root, err) < 0)
		return kr_wrap(err, "the workspace's member '%s'", member->name);
	if (kr_repos_find(where->repos, checkout.root) != member->repo || strcmp(checkout.root, member->repo->path) != 0) {
		kr_fail(err, KR_E_CONFIG, "'%s', the workspace's member '%s', is not the top of a checkout: that is '%s'",
			member->repo->path, member->name, checkout.root);
		return kr_hint(err, "write the path of the checkout, without links, in its entry in '%s'", where->repos->file);
	}
	*out = kr_tree_of(member->repo, &checkout);
	out->member = member->name;
	out->below = member->path;
	return 0;
}

/* Each has the item's branch, and one repository has only one of that name. */
static int
check_distinct(const struct kr_tree *trees, size_t last, struct kr_error *err)
{
	for (size_t i = 0; i < last; i++) {
		if (strcmp(trees[i].checkout.common, trees[last].checkout.common) != 0)
			continue;
		if (i)
			kr_fail(err, KR_E_REFUSED, "the workspace's members '%s' and '%s' are one repository", trees[i].member,
				trees[last].member);
		else
			kr_fail(err, KR_E_REFUSED, "the workspace's member '%s' is the root's own repository", trees[last].member);
		return kr_hint(err, "a repository can stand in a workspace once: each has a branch for the item");
	}
	return 0;
}

int
kr_workspace_trees(struct kr_arena *arena, const struct kr_places *places, const struct kr_where *where,
	const char *name, struct kr_tree **trees, size_t *count, struct kr_error *err)
{
	const struct kr_workspace *space = name ? find(arena, where, name, err) : NULL;
	size_t members = space ? space->member_count : 0;
	struct kr_tree *all;

	if (name && (!space || check(where, space, err) < 0))
		return -1;
	all = kr_arena_alloc(arena, (1 + members) * sizeof(*all));
	all[0] = kr_tree_of(where->repo, &where->checkout);
	for (size_t i = 0; i < members; i++)
		if (add_member(arena, places, where, &space->members[i], &all[i + 1], err) < 0 ||
			check_distinct(all, i + 1, err) < 0)
			return -1;
	*trees = all;
	*count = 1 + members;
	return 0;
}

int
kr_workspace_choose(struct kr_arena *arena, const struct kr_host *host, const struct kr_where *where,
	const char **workspace, const char **item, struct kr_error *err)
{
	if (!*workspace && *item)
		return kr_item_workspace(arena, host, *item, workspace, err);
	if (*workspace && !*item)
		*item = kr_item_workspace_id(arena, where->checkout.root, *workspace);
	return 0;
}

void
kr_workspace_link(struct kr_tree *trees, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		trees[i].plan.worktree = i ? trees[i].worktree : NULL;
		trees[i].plan.next = i + 1 < count ? &trees[i + 1].plan : NULL;
		trees[i].shared.worktree = trees[i].plan.worktree;
		trees[i].shared.next = i + 1 < count ? &trees[i + 1].shared : NULL;
	}
}
