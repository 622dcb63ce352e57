#include "cli/item.h"

#include <errno.h>
#include <unistd.h>

#include "base/path.h"
#include "base/text.h"
#include "cli/work.h"
#include "git/refs.h"
#include "os/host.h"
#include "session/item.h"

/* The repository's own item: it need not be connected any more to look at what was done. */
static const char *
own_id(struct kr_arena *arena, const struct kr_host *host, struct kr_error *err)
{
	struct kr_checkout checkout;
	struct kr_item item;
	char cwd[KR_PATH_MAX];

	if (!getcwd(cwd, sizeof(cwd))) {
		kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot tell the current directory");
		return NULL;
	}
	if (kr_checkout_find(arena, cwd, &checkout, err) < 0) {
		if (err->code == KR_E_NOT_FOUND)
			kr_hint(err, "stand in a checkout, or name an item: 'kraft item list' shows them");
		return NULL;
	}
	return kr_item_name(arena, host, &checkout, NULL, &item, err) < 0 ? NULL : item.id;
}

static int
refuse_busy(const struct kr_item_seen *seen, const char *what, struct kr_error *err)
{
	if (!seen->is_busy)
		return 0;
	kr_fail(err, KR_E_BUSY, "a session runs in item '%s': %s will be there when the session ends", seen->id,
		what);
	return kr_hint(err, "'kraft view sessions --item %s' shows it", seen->id);
}

/* "kraft/x-3" after "kraft/x-2" after "kraft/x"; NULL: it is the first. */
static const char *
branch_before(struct kr_arena *arena, const char *id, const char *branch)
{
	const char *first = kr_arena_printf(arena, "kraft/%s", id);
	size_t n = strlen(first);
	uint64_t number;

	if (strncmp(branch, first, n) != 0 || branch[n] != '-' ||
		!kr_text_to_u64(branch + n + 1, INT32_MAX, &number) || number < 2)
		return NULL;
	return number == 2 ? first : kr_arena_printf(arena, "%s-%llu", first, (unsigned long long)number - 1);
}

/* A session that committed nothing has a branch that does not exist: then the one before it is the item's
 * newest. */
static int
find_branch(struct kr_arena *arena, struct kr_item_at *at, struct kr_error *err)
{
	for (const char *branch = at->seen.branch; branch; branch = branch_before(arena, at->id, branch)) {
		int found = kr_branch_read(&at->checkout, branch, at->tip, err);

		if (found < 0)
			return -1;
		if (found) {
			at->seen.branch = branch;
			return 0;
		}
	}
	at->tip[0] = '\0';
	return 0;
}

static int
find_tree(struct kr_arena *arena, struct kr_item_at *at, struct kr_error *err)
{
	if (kr_checkout_find(arena, at->seen.checkout, &at->checkout, err) < 0)
		return -1;
	if (strcmp(at->checkout.common, at->seen.git_common) != 0) {
		kr_fail(err, KR_E_REFUSED, "'%s' is another repository than the one that item '%s' was made from",
			at->checkout.root, at->id);
		return kr_hint(err, "'kraft item remove %s' forgets the item", at->id);
	}
	if (find_branch(arena, at, err) < 0 || kr_checkout_head(&at->checkout, at->head, err) < 0)
		return -1;
	at->ref = kr_arena_printf(arena, "refs/heads/%s", at->seen.branch);
	return 0;
}

/*
 * Work items are named by any beginning of their id, and without a name the checkout's only one is meant when
 * nothing was run there by itself. Without a store there is none, and then the id is as it was.
 */
static const char *
work_item(struct kr_arena *arena, const struct kr_host *host, const char *id)
{
	struct kr_work work = { .arena = arena, .host = *host };
	struct kr_error ignored = { 0 };
	struct kr_item_row row;
	const char *found = id;

	if (kr_store_open(host->places.run_dir, KR_STORE_READ, &work.store, &ignored) < 0)
		return id;
	if (!id)
		found = kr_work_id(&work, NULL, &ignored);
	else if (kr_store_item_get(arena, work.store, id, &row, &ignored) == 0)
		found = row.id;
	kr_work_close(&work);
	return found;
}

static int
look(struct kr_arena *arena, const struct kr_host *host, const char *id, struct kr_item_seen *seen,
	struct kr_error *err)
{
	const char *run_dir = host->places.run_dir, *own;

	if (id)
		return kr_item_look(arena, run_dir, work_item(arena, host, id), seen, err);
	own = own_id(arena, host, err);
	if (!own)
		return -1;
	if (kr_item_look(arena, run_dir, own, seen, err) == 0)
		return 0;
	id = err->code == KR_E_NOT_FOUND ? work_item(arena, host, NULL) : NULL;
	if (!id)
		return -1;
	*err = (struct kr_error){ 0 };
	return kr_item_look(arena, run_dir, id, seen, err);
}

int
kr_item_find(
	struct kr_arena *arena, const char *id, const char *what, struct kr_item_trees *out, struct kr_error *err)
{
	struct kr_item_trees trees = { 0 };
	struct kr_item_seen seen;
	struct kr_host host;

	if (kr_host_gather_places(arena, &host, err) < 0)
		return -1;
	if (look(arena, &host, id, &seen, err) < 0 || refuse_busy(&seen, what, err) < 0)
		return -1;
	trees.v = kr_arena_alloc(arena, seen.tree_count * sizeof(*trees.v));
	for (; trees.n < seen.tree_count; trees.n++) {
		trees.v[trees.n] = (struct kr_item_at){ .id = seen.id, .seen = seen.trees[trees.n] };
		if (find_tree(arena, &trees.v[trees.n], err) < 0)
			return -1;
	}
	*out = trees;
	return 0;
}

int
kr_item_only(struct kr_item_trees *trees, const char *member, struct kr_error *err)
{
	if (!member)
		return 0;
	for (size_t i = 1; i < trees->n; i++)
		if (strcmp(trees->v[i].seen.member, member) == 0) {
			trees->v += i;
			trees->n = 1;
			return 0;
		}
	kr_fail(err, KR_E_NOT_FOUND, "item '%s' has no member '%s'", trees->v->id, member);
	return kr_hint(err, "'kraft item list' shows its members");
}

/* ---- base ---- */

static int
merge_base(
	const struct kr_item_at *at, const char *commit, char base[KR_OID_HEX_MAX + 1], struct kr_error *err)
{
	const char *const argv[] = { "merge-base", at->tip, at->head, commit, NULL };
	const struct kr_git_where where = { .git_dir = at->checkout.common, .work_dir_fd = -1 };
	kr_auto_buf struct kr_buf out = KR_BUF(4096);

	if (kr_git_run(&where, argv, &out, err) < 0)
		return -1;
	while (out.len && out.data[out.len - 1] == '\n')
		out.data[--out.len] = '\0';
	if (!out.len || !kr_oid_is_valid(out.data, out.len))
		return kr_fail(err, KR_E_GIT, "git merge-base gave no commit");
	memcpy(base, out.data, out.len + 1);
	return 0;
}

/*
 * Three commits are asked about at once: the branch against HEAD and against what the worktree was made from,
 * whichever is nearer. The latter is a commit of its own beside HEAD when uncommitted changes were taken
 * along, and those are not the worker's.
 */
int
kr_item_base(const struct kr_item_at *at, char base[KR_OID_HEX_MAX + 1], struct kr_error *err)
{
	base[0] = '\0';
	if (*at->seen.commit && merge_base(at, at->seen.commit, base, NULL) == 0)
		return 0;
	if (merge_base(at, NULL, base, err) == 0)
		return 0;
	/* It says nothing when there is none. */
	if (err->code != KR_E_GIT || !strstr(err->message, "gave no reason"))
		return -1;
	*err = (struct kr_error){ 0 };
	return 0;
}
