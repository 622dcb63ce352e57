#include "session/items.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/portable.h"
#include "base/text.h"
#include "git/private.h"
#include "git/publish.h"
#include "git/refs.h"
#include "session/item.h"
#include "session/record.h"

enum { NAME_MAX_BYTES = 96, LIST_MAX = 4096 };

struct looking {
	struct kr_arena *arena;
	const char *run_dir;
	int dir_fd; /* <run_dir>/worktrees */
};

static int
open_below(const struct looking *l, const char *kind, struct kr_error *err)
{
	return kr_path_open(kr_arena_printf(l->arena, "%s/%s", l->run_dir, kind), O_RDONLY | O_DIRECTORY, err);
}

/* Where there is no directory there is no item. */
static int
open_items(struct looking *l, struct kr_error *err)
{
	struct kr_error opened = { 0 };

	l->dir_fd = open_below(l, "worktrees", &opened);
	if (l->dir_fd >= 0 || opened.sys_errno == ENOENT)
		return 0;
	if (err)
		*err = opened;
	return -1;
}

/* ---- one item ---- */

/* Asks without taking: who runs holds it shared, who prepares or removes holds it alone. */
static bool
is_held(const struct looking *l, const char *id)
{
	const char *name = kr_arena_printf(l->arena, "%s.lock", id);
	kr_auto_fd int fd = openat(l->dir_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* The branch of the private directory, or of the repository, against what kraft knows to have brought over, or to be good. */
static bool
is_pending(const char *dir, const struct kr_private_record *record)
{
	kr_auto_fd int fd = kr_path_open(record->is_in_repository ? record->common : dir, O_RDONLY | O_DIRECTORY, NULL);
	char tip[KR_OID_HEX_MAX + 1];

	return fd >= 0 && kr_ref_read_hostile(fd, record->branch, tip, NULL) == 1 &&
		   strcmp(tip, record->at) != 0;
}

static void
look_private(const struct looking *l, const char *id, unsigned number, struct kr_tree_seen *tree)
{
	const struct kr_private git = { .dir = kr_private_dir(l->arena, l->run_dir, id, number) };
	struct kr_private_record record;

	tree->branch = kr_arena_printf(l->arena, "kraft/%s", id);
	if (kr_private_record_read(l->arena, &git, &record, NULL) < 0)
		return; /* it never had a session */
	tree->branch = record.branch;
	memcpy(tree->synced, record.synced, sizeof(tree->synced));
	tree->is_pending = is_pending(git.dir, &record);
}

static void
look_trees(const struct looking *l, const struct kr_record *record, struct kr_item_seen *seen)
{
	seen->workspace = record->workspace;
	seen->tree_count = 1 + record->member_count;
	seen->trees = kr_arena_alloc(l->arena, seen->tree_count * sizeof(*seen->trees));
	*seen->trees = (struct kr_tree_seen){
		.member = "",
		.below = "",
		.worktree = kr_arena_printf(l->arena, "%s/worktrees/%s", l->run_dir, seen->id),
		.checkout = record->checkout,
		.git_dir = record->git_dir,
		.git_common = record->git_common,
		.commit = record->state == KR_RECORD_MAKING ? "" : record->commit,
	};
	for (size_t i = 1; i < seen->tree_count; i++) {
		const struct kr_record_member *member = &record->members[i - 1];

		seen->trees[i] = (struct kr_tree_seen){
			.member = member->name,
			.below = member->below,
			.worktree = kr_arena_printf(l->arena, "%s/%s", seen->trees->worktree, member->below),
			.checkout = member->checkout,
			.git_dir = member->git_dir,
			.git_common = member->git_common,
			.commit = record->state == KR_RECORD_MAKING ? "" : member->commit,
		};
	}
	for (size_t i = 0; i < seen->tree_count; i++) {
		look_private(l, seen->id, (unsigned)i, &seen->trees[i]);
		seen->is_pending = seen->is_pending || seen->trees[i].is_pending;
	}
}

/* 1: there; 0: no such item. */
static int
look(const struct looking *l, const char *id, struct kr_item_seen *out, struct kr_error *err)
{
	struct kr_record record;

	if (l->dir_fd < 0)
		return 0;
	if (kr_record_read(l->arena, l->dir_fd, id, &record, err) < 0)
		return -1;
	if (record.state == KR_RECORD_ABSENT)
		return 0;
	*out = (struct kr_item_seen){
		.id = kr_arena_dup(l->arena, id),
		.is_busy = is_held(l, id),
	};
	look_trees(l, &record, out);
	return 1;
}

int
kr_item_look(struct kr_arena *arena, const char *run_dir, const char *id, struct kr_item_seen *out,
	struct kr_error *err)
{
	struct looking l = { .arena = arena, .run_dir = run_dir, .dir_fd = -1 };
	int found;

	if (kr_item_check_id(id, err) < 0 || open_items(&l, err) < 0)
		return -1;
	found = look(&l, id, out, err);
	kr_close_p(&l.dir_fd);
	if (found)
		return found < 0 ? -1 : 0;
	kr_fail(err, KR_E_NO_ITEM, "there is no item '%s'", id);
	return kr_hint(err, "'kraft item list' shows those that there are; a 'kraft run' makes one");
}

/* ---- all of them ---- */

static int
by_id(const void *a, const void *b)
{
	return strcmp(((const struct kr_item_seen *)a)->id, ((const struct kr_item_seen *)b)->id);
}

/* "<id>.json" of a record. */
static bool
id_of(const char *name, char id[NAME_MAX_BYTES])
{
	size_t n = strlen(name);

	if (n <= 5 || n - 5 >= NAME_MAX_BYTES || strcmp(name + n - 5, ".json") != 0)
		return false;
	memcpy(id, name, n - 5);
	id[n - 5] = '\0';
	return kr_item_check_id(id, NULL) == 0;
}

static int
list_all(struct looking *l, DIR *dir, struct kr_item_list *list, struct kr_error *err)
{
	size_t cap = 0;

	for (const struct dirent *e; (e = readdir(dir));) {
		char id[NAME_MAX_BYTES];
		struct kr_item_seen seen;
		int found = id_of(e->d_name, id) ? look(l, id, &seen, err) : 0;

		if (found < 0)
			return -1;
		if (!found || list->n == LIST_MAX)
			continue;
		if (list->n == cap) {
			struct kr_item_seen *more = kr_arena_alloc(l->arena, (cap = cap ? 2 * cap : 16) * sizeof(*more));

			if (list->n)
				memcpy(more, list->v, list->n * sizeof(*more));
			list->v = more;
		}
		list->v[list->n++] = seen;
	}
	if (list->n)
		qsort(list->v, list->n, sizeof(*list->v), by_id);
	return 0;
}

int
kr_item_list(struct kr_arena *arena, const char *run_dir, struct kr_item_list *out, struct kr_error *err)
{
	struct looking l = { .arena = arena, .run_dir = run_dir, .dir_fd = -1 };
	struct kr_item_list list = { 0 };
	int own, result;
	DIR *dir;

	if (open_items(&l, err) < 0)
		return -1;
	own = l.dir_fd < 0 ? -1 : openat(l.dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = own < 0 ? NULL : fdopendir(own);
	result = dir ? list_all(&l, dir, &list, err) : 0;
	if (dir)
		closedir(dir);
	kr_close_p(&l.dir_fd);
	if (result == 0)
		*out = list;
	return result;
}

/* ---- removing ---- */

static int
remove_tree(
	int dir_fd, const char *name, const char *what, const struct kr_item_seen *seen, struct kr_error *err)
{
	if (kr_tree_remove_at(dir_fd, name) == 0)
		return 0;
	return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot remove the %s of item '%s'", what, seen->id);
}

static int
remove_below(const struct looking *l, const char *kind, const char *what, const struct kr_item_seen *seen,
	struct kr_error *err)
{
	struct kr_error opened = { 0 };
	kr_auto_fd int fd = open_below(l, kind, &opened);

	if (fd >= 0)
		return remove_tree(fd, seen->id, what, seen, err);
	if (opened.sys_errno == ENOENT)
		return 0;
	if (err)
		*err = opened;
	return -1;
}

/* The person may have removed the repository as well: then there is nothing in it to undo. */
static int
let_go(const char *id, const struct kr_tree_seen *tree, struct kr_error *err)
{
	const struct kr_checkout checkout = {
		.root = tree->checkout, .git_dir = tree->git_common, .common = tree->git_common
	};
	kr_auto_fd int common =
		*tree->git_common ? kr_path_open(tree->git_common, KR_O_PLACE, NULL) : -1;

	if (common < 0)
		return 0;
	if (kr_worktree_forget(tree->git_common, tree->git_dir, tree->worktree, err) < 0)
		return -1;
	return kr_base_drop(&checkout, id, err);
}

static int
remove_all(const struct looking *l, const struct kr_item_seen *seen, struct kr_error *err)
{
	const char *const own[] = {
		kr_arena_printf(l->arena, "%s.json", seen->id),
		kr_arena_printf(l->arena, "%s.lock", seen->id),
		kr_arena_printf(l->arena, "%s.host", seen->id), /* of a work item (work/), which has ended */
		kr_arena_printf(l->arena, "%s.host.log", seen->id),
	};

	for (size_t i = 0; i < seen->tree_count; i++)
		if (kr_private_remove(l->run_dir, seen->id, (unsigned)i, err) < 0)
			return -1;
	KR_FAULT(private_removed);
	if (remove_tree(l->dir_fd, seen->id, "worktree", seen, err) < 0)
		return -1;
	KR_FAULT(tree_removed);
	for (size_t i = 0; i < seen->tree_count; i++)
		if (let_go(seen->id, &seen->trees[i], err) < 0)
			return -1;
	KR_FAULT(tree_forgotten);
	if (remove_below(l, "sandbox-home", "home", seen, err) < 0 ||
		remove_below(l, "results", "results", seen, err) < 0)
		return -1;
	for (size_t i = 0; i < KR_COUNT(own); i++)
		if (unlinkat(l->dir_fd, own[i], 0) < 0 && errno != ENOENT)
			return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot remove '%s'", own[i]);
	return 0;
}

static int
check_removable(const struct kr_item_seen *seen, bool force, struct kr_error *err)
{
	if (!seen->is_pending || force)
		return 0;
	kr_fail(err, KR_E_REFUSED,
		"commits of item '%s' are not in your repository yet: its last session was cut off", seen->id);
	return kr_hint(
		err, "'kraft run --item %s --keep -- true' brings them in; --force removes them", seen->id);
}

int
kr_item_remove(struct kr_arena *arena, const char *run_dir, const char *id, bool force, struct kr_error *err)
{
	struct looking l = { .arena = arena, .run_dir = run_dir, .dir_fd = -1 };
	kr_auto_fd int lock = -1;
	struct kr_item_seen seen;
	int found = -1, result = -1;

	if (kr_item_look(arena, run_dir, id, &seen, err) < 0 || open_items(&l, err) < 0)
		return -1;
	lock = kr_item_lock_alone(l.dir_fd, id, err);
	if (lock >= 0)
		found = look(&l, id, &seen, err);
	if (found == 0)
		result = 0; /* somebody else removed it just now */
	if (found > 0 && check_removable(&seen, force, err) == 0)
		result = remove_all(&l, &seen, err);
	kr_close_p(&l.dir_fd);
	return result;
}
