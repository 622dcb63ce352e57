/*
 * Opening an item: whose it is, the lock, and the state machine of its worktree.
 *
 *   record    directory         what is done (under the exclusive lock)
 *   absent    none              make
 *   absent    there             put it aside, make: it is not known to be ours
 *   making    there or none     remove it, make: a kraft was killed; nothing has run in it yet
 *   ready     none              make: the person removed it
 *   ready     not linked        put it aside, make: the repository forgot it, but a worker's files are in it
 *   ready     at another commit note "moving"; the caller moves it by a git run inside the walls
 *   moving    there             remove git's stale locks; the caller moves it: nobody knows how far it came
 *   ready     at the commit     nothing
 *
 * "At the commit" is said of all trees: one that is elsewhere is moved alone. A member that is not what was made stops the
 * item (session/member.c); what a workspace's members are is recorded, and stays.
 *
 * A directory is only ever removed in the one state in which no worker and no person can have put anything
 * there; in every other it is renamed to <item>.aside-N and a note says so. Host git never looks into a
 * worktree once a worker may have written it: what is asked of git afterwards is asked of the git directory
 * that the record names.
 *
 * The lock is an open-file-description lock, not flock: only this kind goes from exclusive to shared without
 * a moment in which somebody else can take it.
 */
#include "session/item.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/portable.h"
#include "base/text.h"
#include "session/local_files.h"
#include "session/record.h"

enum {
	ID_MAX = 64,
	SLUG_MAX = 40,
	WAIT_MS = 3000, /* for another kraft that is making the worktree; a setup command can take much longer */
	STEP_MS = 20,
	ASIDE_MAX = 10000,
};

static const char id_chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

struct opening {
	struct kr_arena *arena;
	const struct kr_host *host;
	struct kr_item *item;
	struct kr_tree *root; /* the first of the item's trees */
	int dir_fd; /* <run_dir>/worktrees */
	bool exclusive, keep, follow;
	struct kr_record record;
};

/* ---- the id ---- */

static bool
ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && strcmp(s + n - m, end) == 0;
}

int
kr_item_check_id(const char *id, struct kr_error *err)
{
	size_t n = strlen(id);

	if (n == 0 || n > ID_MAX || id[strspn(id, id_chars)] || id[0] == '.' || id[0] == '-' || ends_with(id, ".") ||
		strstr(id, "..")) {
		kr_fail(err, KR_E_USAGE, "'%s' cannot name an item", id);
		return kr_hint(err, "1 to 64 of letters, digits, '.', '_' and '-', the first neither '.' nor '-'; no '.' at the end "
							"or beside another");
	}
	if (ends_with(id, ".json") || ends_with(id, ".lock") || ends_with(id, ".new") ||
		ends_with(id, ".host") || ends_with(id, ".log") || strstr(id, ".aside-")) {
		kr_fail(err, KR_E_USAGE, "'%s' cannot name an item", id);
		return kr_hint(
			err, "'.json', '.lock', '.new', '.host', '.log' and '.aside-' are the names of kraft's own files there");
	}
	return 0;
}

/* What can be read of a directory's name in a file name: runs of other characters become one '-'. */
static const char *
slug(struct kr_arena *arena, const char *name)
{
	char *out = kr_arena_alloc(arena, SLUG_MAX + 1);
	size_t n = 0;

	for (; *name && n < SLUG_MAX; name++) {
		bool plain = *name != '.' && *name != '-' && strchr(id_chars, *name);

		if (plain)
			out[n++] = *name;
		else if (n && out[n - 1] != '-')
			out[n++] = *name == '.' ? '.' : '-';
	}
	while (n && (out[n - 1] == '-' || out[n - 1] == '.'))
		out[--n] = '\0';
	return n ? out : "repo";
}

static const char *
default_id(struct kr_arena *arena, const char *root)
{
	uint32_t hash = 2166136261u; /* FNV-1a: tells two checkouts of the same name apart */

	for (const char *p = root; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 16777619u;
	return kr_arena_printf(arena, "run-%s-%08x", slug(arena, kr_path_basename(root)), hash);
}

const char *
kr_item_workspace_id(struct kr_arena *arena, const char *root, const char *workspace)
{
	/* No path holds an empty component, so no other pair gives the same. */
	return default_id(arena, kr_arena_printf(arena, "%s//%s", root, workspace));
}

/* ---- the lock ---- */

static int
open_lock(int dir_fd, const char *id, struct kr_error *err)
{
	char name[ID_MAX + 8];
	kr_auto_fd int fd = -1;
	struct stat st;

	snprintf(name, sizeof(name), "%s.lock", id);
	fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (fd < 0 || fstat(fd, &st) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot open the lock of item '%s'", id);
	if (!S_ISREG(st.st_mode))
		return kr_fail(err, KR_E_REFUSED, "the lock of item '%s' is not a regular file", id);
	return kr_steal_fd(fd);
}

/* Whoever removed the item held this lock; the next one makes another file. */
static bool
is_removed(int lock_fd)
{
	struct stat st;

	return fstat(lock_fd, &st) == 0 && st.st_nlink == 0;
}

/* Exclusive when nobody is there, shared beside running sessions; waits a little for one that prepares. */
static int
take_lock(struct opening *o, struct kr_error *err)
{
	const struct timespec step = { .tv_nsec = STEP_MS * 1000000L };
	struct kr_item *item = o->item;

	for (int waited = 0; waited <= WAIT_MS; waited += STEP_MS) {
		if (item->lock_fd < 0)
			item->lock_fd = open_lock(o->dir_fd, item->id, err);
		if (item->lock_fd < 0)
			return -1;
		o->exclusive = kr_try_lock(item->lock_fd, F_WRLCK);
		if (o->exclusive || kr_try_lock(item->lock_fd, F_RDLCK)) {
			if (!is_removed(item->lock_fd))
				return 0;
			kr_close_p(&item->lock_fd);
			continue;
		}
		if (errno != EAGAIN && errno != EACCES)
			return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot lock item '%s'", item->id);
		(void)nanosleep(&step, NULL);
	}
	kr_fail(err, KR_E_BUSY, "another session is preparing item '%s'", item->id);
	return kr_hint(err, "wait for it, or use an item of its own: --item NAME");
}

int
kr_item_lock_alone(int dir_fd, const char *id, struct kr_error *err)
{
	kr_auto_fd int fd = open_lock(dir_fd, id, err);

	if (fd < 0)
		return -1;
	if (kr_try_lock(fd, F_WRLCK) && !is_removed(fd))
		return kr_steal_fd(fd);
	kr_fail(err, KR_E_ITEM_BUSY, "a session runs in item '%s'", id);
	return kr_hint(err, "'kraft view sessions --item %s' shows it; wait for its end, or end it", id);
}

static int
share(struct kr_item *item, struct kr_error *err)
{
	if (!kr_try_lock(item->lock_fd, F_RDLCK))
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot share the lock of item '%s'", item->id);
	return 0;
}

/* ---- what is there ---- */

enum found { NOTHING, EMPTY_DIRECTORY, SOMETHING };

static enum found
look(const struct opening *o)
{
	struct stat st;

	if (fstatat(o->dir_fd, o->item->id, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return NOTHING;
	/* Asked by trying: a worker's directory is not read here. */
	if (S_ISDIR(st.st_mode) && o->record.state == KR_RECORD_ABSENT &&
		unlinkat(o->dir_fd, o->item->id, AT_REMOVEDIR) == 0)
		return EMPTY_DIRECTORY;
	return SOMETHING;
}

static bool
is_usable(const struct opening *o)
{
	struct stat st;

	if (o->record.state != KR_RECORD_READY && o->record.state != KR_RECORD_MOVING)
		return false;
	return fstatat(o->dir_fd, o->item->id, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
		   kr_worktree_is_linked(o->record.git_dir, o->item->worktree);
}

static int
check_owner(const struct opening *o, struct kr_error *err)
{
	if (o->record.state == KR_RECORD_ABSENT || strcmp(o->record.checkout, o->root->checkout.root) == 0)
		return 0;
	kr_fail(err, KR_E_REFUSED, "item '%s' belongs to the checkout '%s'", o->item->id, o->record.checkout);
	return kr_hint(err, "choose another name for this one: --item NAME");
}

/* ---- making ---- */

static int
remove_half_made(const struct opening *o, struct kr_error *err)
{
	if (kr_tree_remove_at(o->dir_fd, o->item->id) < 0)
		return kr_fail_errno(
			err, KR_E_SYSTEM, errno, "cannot remove the half-made worktree '%s'", o->item->worktree);
	return 0;
}

/*
 * The .git file of a worktree of ours that was put aside: git reuses the name of a forgotten worktree, so it
 * would lead to the new one's index and HEAD. What kraft has no record of is left as it is.
 */
static void
cut_off(const struct opening *o, const char *name)
{
	kr_auto_fd int aside = -1;

	if (o->record.state == KR_RECORD_ABSENT)
		return;
	aside = openat(o->dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (aside < 0)
		return;
	(void)unlinkat(aside, ".git", 0); /* a worker may have made it anything; then git refuses it */
	for (size_t i = 0; i < o->record.member_count; i++) {
		kr_auto_fd int member = kr_member_open(aside, o->record.members[i].below);

		if (member >= 0)
			(void)unlinkat(member, ".git", 0); /* as above */
	}
}

static int
put_aside(const struct opening *o, struct kr_error *err)
{
	char name[ID_MAX + 24];
	struct stat st;

	for (unsigned n = 1; n < ASIDE_MAX; n++) {
		snprintf(name, sizeof(name), "%s.aside-%u", o->item->id, n);
		if (fstatat(o->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			continue;
		if (renameat(o->dir_fd, o->item->id, o->dir_fd, name) < 0)
			return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot put '%s' aside", o->item->worktree);
		cut_off(o, name);
		kr_strs_add(o->arena, &o->item->notes,
			kr_arena_printf(o->arena, "%s; it was put aside as '%s/worktrees/%s'",
				o->record.state == KR_RECORD_ABSENT
					? "there was a directory in the worktree's place that kraft has no record of"
					: "the repository no longer knows the old worktree",
				o->host->places.run_dir, name));
		return 0;
	}
	return kr_fail(err, KR_E_LIMIT, "too many old worktrees beside '%s'", o->item->worktree);
}

static int
clear_place(const struct opening *o, struct kr_error *err)
{
	switch (look(o)) {
	case NOTHING:
	case EMPTY_DIRECTORY:
		return 0;
	case SOMETHING:
		break;
	}
	return o->record.state == KR_RECORD_MAKING ? remove_half_made(o, err) : put_aside(o, err);
}

/* What the record says of the members. */
static void
record_members(const struct opening *o, struct kr_record *record)
{
	const struct kr_item *item = o->item;

	record->workspace = item->workspace;
	record->members = kr_arena_alloc(o->arena, item->tree_count * sizeof(*record->members));
	for (size_t i = 1; i < item->tree_count; i++) {
		const struct kr_tree *tree = &item->trees[i];

		record->members[record->member_count++] = (struct kr_record_member){
			.name = tree->member,
			.below = tree->below,
			.checkout = tree->checkout.root,
			.git_dir = tree->git_dir ? tree->git_dir : "",
			.git_common = tree->checkout.common,
			.commit = tree->wanted,
		};
	}
}

static int
write_record(const struct opening *o, enum kr_record_state state, struct kr_error *err)
{
	const struct kr_tree *root = o->root;
	struct kr_record record = {
		.state = state,
		.checkout = root->checkout.root,
		.git_dir = root->git_dir ? root->git_dir : "",
		.git_common = root->checkout.common,
		.commit = root->wanted,
		.setup = "",
	};

	if (o->item->workspace)
		record_members(o, &record);
	return kr_record_write(o->dir_fd, o->item->id, &record, err);
}

static int
make_tree(const struct opening *o, struct kr_tree *tree, struct kr_error *err)
{
	if (*tree->below && kr_member_make_place(o->item->worktree, tree, err) < 0)
		return -1;
	if (kr_worktree_add(o->arena, &tree->checkout, tree->worktree, tree->wanted, o->item->lock_fd, &tree->git_dir,
			err) < 0 ||
		kr_local_files_copy(tree->repo, tree->checkout.root, tree->worktree, err) < 0)
		return -1;
	KR_FAULT(worktree_added);
	memcpy(tree->at, tree->wanted, sizeof(tree->at));
	return *tree->below ? kr_member_check(o->arena, o->item->id, o->item->worktree, tree, NULL, NULL, err) : 0;
}

/* Does: everything up to a worktree whose trees are at their wanted commits with their local files. Must not: touch what
 * may be somebody's. */
static int
make(struct opening *o, struct kr_error *err)
{
	struct kr_item *item = o->item;

	for (size_t i = 0; i < item->tree_count; i++)
		if (kr_local_files_check(item->trees[i].repo, item->trees[i].checkout.root, err) < 0)
			return -1;
	if (kr_members_check_room(o->arena, item->trees, item->tree_count, err) < 0 || clear_place(o, err) < 0 ||
		write_record(o, KR_RECORD_MAKING, err) < 0)
		return -1;
	KR_FAULT(item_making);
	for (size_t i = 0; i < item->tree_count; i++)
		if (make_tree(o, &item->trees[i], err) < 0)
			return -1;
	if (write_record(o, KR_RECORD_READY, err) < 0)
		return -1;
	KR_FAULT(item_ready);
	item->setup_done = *kr_setup_hash(o->arena, o->root->repo->setup_command) == '\0';
	item->state = KR_ITEM_MADE;
	return 0;
}

/* ---- deciding ---- */

static int
busy(const struct kr_item *item, const char *why, struct kr_error *err)
{
	kr_fail(err, KR_E_ITEM_BUSY, "another session runs in item '%s', and %s", item->id, why);
	return kr_hint(err, "wait for it, or use an item of its own: --item NAME");
}

static bool
is_younger(struct timespec a, struct timespec b)
{
	return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec >= b.tv_nsec;
}

/*
 * A git that was killed while it moved the worktree left its locks, and every later one would stop at them.
 * The record was written just before it started; an older lock is the person's, who may be at work there.
 */
static void
drop_stale_locks(const struct opening *o, const char *git_dir)
{
	static const char *const locks[] = { "index.lock", "HEAD.lock" };
	const char *name = kr_arena_printf(o->arena, "%s.json", o->item->id);
	kr_auto_fd int fd = kr_path_open(git_dir, KR_O_PLACE, NULL);
	struct stat ordered, lock;

	if (fd < 0 || fstatat(o->dir_fd, name, &ordered, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	for (size_t i = 0; i < KR_COUNT(locks); i++)
		if (fstatat(fd, locks[i], &lock, AT_SYMLINK_NOFOLLOW) == 0 &&
			is_younger(kr_mtime(&lock), kr_mtime(&ordered)))
			(void)unlinkat(fd, locks[i], 0); /* git says so if it is still there */
}

/* To where a person brought the item's branch, if that is only forward. */
static void
follow_branch(struct kr_tree *tree, const char *branch)
{
	char tip[KR_OID_HEX_MAX + 1];

	if (kr_branch_read(&tree->checkout, branch, tip, NULL) > 0 && kr_commit_has(tree->checkout.common, tip, tree->at))
		memcpy(tree->wanted, tip, sizeof(tip));
}

/* Commits move the worktree, and the record of the private git directory knows it; where it stands is where it stays with
 * --keep. */
static void
find_position(const struct opening *o, struct kr_tree *tree, const char *recorded)
{
	const struct kr_private git = {
		.dir = kr_private_dir(o->arena, o->host->places.run_dir, o->item->id, (unsigned)(tree - o->root)),
	};
	struct kr_private_record private;

	const bool is_ours = kr_private_record_read(o->arena, &git, &private, NULL) == 0 &&
						 strcmp(private.worktree_git_dir, tree->git_dir) == 0;

	snprintf(tree->at, sizeof(tree->at), "%s", is_ours ? private.at : recorded);
	if (o->keep)
		memcpy(tree->wanted, tree->at, sizeof(tree->wanted));
	if (o->follow && is_ours)
		follow_branch(tree, private.branch);
}

/* Where a tree stands and where it should; a member is looked at before anything is done with it. */
static int
judge_tree(const struct opening *o, size_t index, struct kr_error *err)
{
	const struct kr_record_member *member = index ? &o->record.members[index - 1] : NULL;
	struct kr_tree *tree = &o->item->trees[index];

	tree->git_dir = member ? member->git_dir : o->record.git_dir;
	find_position(o, tree, member ? member->commit : o->record.commit);
	tree->is_elsewhere = o->record.state == KR_RECORD_MOVING || strcmp(tree->at, tree->wanted) != 0;
	return member ? kr_member_check(o->arena, o->item->id, o->item->worktree, tree, NULL, NULL, err) : 0;
}

static int
add_local_files(const struct kr_item *item, struct kr_error *err)
{
	for (size_t i = 0; i < item->tree_count; i++) {
		const struct kr_tree *tree = &item->trees[i];

		if (kr_local_files_add(tree->repo, tree->checkout.root, tree->worktree, err) < 0)
			return -1;
	}
	return 0;
}

/* The worktree is there; does it stand where it should? */
static int
judge(struct opening *o, struct kr_error *err)
{
	struct kr_item *item = o->item;
	const char *setup = kr_setup_hash(o->arena, o->root->repo->setup_command);
	bool moving = o->record.state == KR_RECORD_MOVING;

	item->setup_done = *setup == '\0' || strcmp(setup, o->record.setup) == 0;
	item->state = KR_ITEM_READY;
	for (size_t i = 0; i < item->tree_count; i++) {
		if (judge_tree(o, i, err) < 0)
			return -1;
		if (item->trees[i].is_elsewhere)
			item->state = KR_ITEM_NEEDS_CHECKOUT;
	}
	if (o->root->is_elsewhere && kr_members_check_room(o->arena, item->trees, item->tree_count, err) < 0)
		return -1;
	if (item->state == KR_ITEM_READY && o->exclusive && add_local_files(item, err) < 0)
		return -1;
	if (item->state == KR_ITEM_READY && item->setup_done)
		return o->exclusive ? share(item, err) : 0;
	if (!o->exclusive && item->state == KR_ITEM_NEEDS_CHECKOUT) {
		busy(item, "its worktree stands at another commit", err);
		return kr_hint(
			err, "wait for it, add --keep to run at its commit, or use an item of its own: --item NAME");
	}
	if (!o->exclusive)
		return busy(item, "its setup command has to run first", err);
	for (size_t i = 0; moving && i < item->tree_count; i++)
		drop_stale_locks(o, item->trees[i].git_dir);
	return 0;
}

static bool
is_same_member(const struct kr_record_member *was, const struct kr_tree *is)
{
	return strcmp(was->name, is->member) == 0 && strcmp(was->below, is->below) == 0 &&
		   strcmp(was->checkout, is->checkout.root) == 0 && strcmp(was->git_common, is->checkout.common) == 0;
}

static int
refuse_workspace(const struct opening *o, const char *why, struct kr_error *err)
{
	kr_fail(err, KR_E_REFUSED, "item '%s' %s", o->item->id, why);
	return kr_hint(err, "choose another name for this one with --item NAME, or begin anew: 'kraft item remove %s'",
		o->item->id);
}

/* An item's members stay what they were when it was made. */
static int
check_workspace(const struct opening *o, struct kr_error *err)
{
	const struct kr_record *was = &o->record;
	const struct kr_item *is = o->item;

	if (was->state == KR_RECORD_ABSENT)
		return 0;
	if (!was->workspace && is->workspace)
		return refuse_workspace(
			o, kr_arena_printf(o->arena, "was not made for the workspace '%s'", is->workspace), err);
	if (was->workspace && (!is->workspace || strcmp(was->workspace, is->workspace) != 0))
		return refuse_workspace(
			o, kr_arena_printf(o->arena, "belongs to the workspace '%s'", was->workspace), err);
	for (size_t i = 0; i < was->member_count; i++)
		if (i + 1 >= is->tree_count || !is_same_member(&was->members[i], &is->trees[i + 1]))
			return refuse_workspace(o,
				kr_arena_printf(o->arena, "was made when the workspace '%s' had the member '%s' of '%s' at '%s'",
					was->workspace, was->members[i].name, was->members[i].checkout, was->members[i].below),
				err);
	if (is->tree_count > was->member_count + 1)
		return refuse_workspace(o,
			kr_arena_printf(o->arena, "was made when the workspace '%s' had no member '%s'", was->workspace,
				is->trees[was->member_count + 1].member),
			err);
	return 0;
}

static int
settle(struct opening *o, struct kr_error *err)
{
	if (kr_record_read(o->arena, o->dir_fd, o->item->id, &o->record, err) < 0 || check_owner(o, err) < 0 ||
		check_workspace(o, err) < 0)
		return -1;
	if (is_usable(o))
		return judge(o, err);
	if (!o->exclusive)
		return busy(o->item, "its worktree is gone", err);
	return make(o, err) < 0 || (o->item->setup_done && share(o->item, err) < 0) ? -1 : 0;
}

static int
make_dir(const char *path, struct kr_error *err)
{
	kr_auto_fd int fd = kr_path_make_dirs(path, err);

	return fd < 0 ? -1 : 0;
}

static int
make_places(struct opening *o, struct kr_error *err)
{
	struct kr_arena *a = o->arena;

	o->dir_fd = kr_path_make_dirs(kr_path_dirname(a, o->item->worktree), err);
	if (o->dir_fd < 0 || make_dir(o->item->home, err) < 0 || make_dir(o->item->results_dir, err) < 0)
		return -1;
	return 0;
}

static int
find_commit(const struct kr_tree *tree, const char *base, char oid[KR_OID_HEX_MAX + 1], struct kr_error *err)
{
	int found;

	if (!base)
		return kr_checkout_head(&tree->checkout, oid, err);
	found = kr_branch_read(&tree->checkout, base, oid, err);
	if (found == 0)
		return kr_fail(err, KR_E_REFUSED, "'%s' has no branch '%s'", tree->checkout.root, base);
	return found < 0 ? -1 : 0;
}

/* What each tree should stand at. */
static int
find_wanted(const struct opening *o, const struct kr_item_want *want, struct kr_error *err)
{
	for (size_t i = 0; i < o->item->tree_count; i++) {
		struct kr_tree *tree = &o->root[i];
		char head[KR_OID_HEX_MAX + 1];

		tree->worktree = *tree->below ? kr_path_join(o->arena, o->item->worktree, tree->below) : o->item->worktree;
		if (find_commit(tree, i ? NULL : want->base, head, err) < 0)
			return -1;
		memcpy(tree->wanted, head, sizeof(head));
		if (want->with_changes && kr_checkout_snapshot(&tree->checkout, head, tree->wanted, err) < 0)
			return -1;
	}
	return 0;
}

struct kr_tree
kr_tree_of(const struct kr_repo *repo, const struct kr_checkout *checkout)
{
	return (struct kr_tree){
		.member = "", .below = "", .repo = repo, .checkout = *checkout, .git = { .lock_fd = -1 }
	};
}

int
kr_item_name(struct kr_arena *arena, const struct kr_host *host, const struct kr_checkout *checkout,
	const char *id, struct kr_item *out, struct kr_error *err)
{
	const char *run = host->places.run_dir;

	if (id && kr_item_check_id(id, err) < 0)
		return -1;
	if (!id)
		id = default_id(arena, checkout->root);
	*out = (struct kr_item){
		.id = id,
		.worktree = kr_arena_printf(arena, "%s/worktrees/%s", run, id),
		.home = kr_arena_printf(arena, "%s/sandbox-home/%s", run, id),
		.results_dir = kr_arena_printf(arena, "%s/results/%s", run, id),
		.lock_fd = -1,
	};
	return 0;
}

int
kr_item_workspace(struct kr_arena *arena, const struct kr_host *host, const char *id, const char **workspace,
	struct kr_error *err)
{
	const char *place = kr_arena_printf(arena, "%s/worktrees", host->places.run_dir);
	kr_auto_fd int dir_fd = -1;
	struct kr_record record;

	*workspace = NULL;
	if (kr_item_check_id(id, err) < 0)
		return -1;
	dir_fd = kr_path_open(place, KR_O_PLACE, NULL);
	if (dir_fd < 0)
		return 0; /* there is no item yet */
	if (kr_record_read(arena, dir_fd, id, &record, err) < 0)
		return -1;
	*workspace = record.workspace;
	return 0;
}

int
kr_item_open(struct kr_arena *arena, const struct kr_host *host, struct kr_tree *trees, size_t tree_count,
	const struct kr_item_want *want, struct kr_item *out, struct kr_error *err)
{
	struct kr_item item;
	struct opening o = {
		.arena = arena,
		.host = host,
		.item = &item,
		.root = trees,
		.dir_fd = -1,
		.keep = want->keep,
		.follow = want->follow,
	};
	int result = -1;

	if (kr_item_name(arena, host, &trees->checkout, want->id, &item, err) < 0)
		return -1;
	item.trees = trees;
	item.tree_count = tree_count;
	item.workspace = want->workspace;
	if (find_wanted(&o, want, err) == 0 && make_places(&o, err) == 0 && take_lock(&o, err) == 0)
		result = settle(&o, err);
	kr_close_p(&o.dir_fd);
	if (result < 0)
		kr_item_close(&item);
	else
		*out = item;
	return result;
}

void
kr_item_close(struct kr_item *item)
{
	kr_close_p(&item->lock_fd);
}

/* ---- afterwards, under the exclusive lock ---- */

static int
update(const struct kr_host *host, const struct kr_item *item, enum kr_record_state state, bool moved,
	const char *setup, struct kr_error *err)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const char *path = kr_arena_printf(&arena, "%s/worktrees", host->places.run_dir);
	kr_auto_fd int dir_fd = kr_path_open(path, KR_O_PLACE, err);
	struct kr_record record;

	if (dir_fd < 0 || kr_record_read(&arena, dir_fd, item->id, &record, err) < 0)
		return -1;
	if (record.state != KR_RECORD_READY && record.state != KR_RECORD_MOVING)
		return kr_fail(err, KR_E_SYSTEM, "the record of item '%s' was lost while it was in use", item->id);
	record.state = state == KR_RECORD_ABSENT ? record.state : state;
	if (moved)
		record.commit = item->trees->wanted;
	for (size_t i = 0; moved && i < record.member_count && i + 1 < item->tree_count; i++)
		record.members[i].commit = item->trees[i + 1].wanted;
	if (setup)
		record.setup = setup;
	return kr_record_write(dir_fd, item->id, &record, err);
}

int
kr_item_moving(const struct kr_host *host, const struct kr_item *item, struct kr_error *err)
{
	return update(host, item, KR_RECORD_MOVING, false, NULL, err);
}

int
kr_item_moved(const struct kr_host *host, struct kr_item *item, struct kr_error *err)
{
	if (update(host, item, KR_RECORD_READY, true, NULL, err) < 0)
		return -1;
	for (size_t i = 0; i < item->tree_count; i++) {
		memcpy(item->trees[i].at, item->trees[i].wanted, sizeof(item->trees[i].at));
		item->trees[i].is_elsewhere = false;
	}
	item->state = KR_ITEM_READY;
	return 0;
}

int
kr_item_set_up(const struct kr_host *host, struct kr_item *item, struct kr_error *err)
{
	const char *command = item->trees->repo->setup_command;
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };

	if (update(host, item, KR_RECORD_ABSENT, false, kr_setup_hash(&arena, command), err) < 0)
		return -1;
	item->setup_done = true;
	return 0;
}

int
kr_item_share(struct kr_item *item, struct kr_error *err)
{
	return share(item, err);
}
