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

#include "base/fd.h"
#include "base/path.h"
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
	const struct kr_checkout *checkout;
	const struct kr_repo *repo;
	struct kr_item *item;
	int dir_fd; /* <run_dir>/worktrees */
	bool exclusive, keep;
	struct kr_record record;
};

/* ---- the id ---- */

static bool
ends_with(const char *s, const char *end)
{
	size_t n = strlen(s), m = strlen(end);

	return n >= m && strcmp(s + n - m, end) == 0;
}

static int
check_id(const char *id, struct kr_error *err)
{
	size_t n = strlen(id);

	if (n == 0 || n > ID_MAX || id[strspn(id, id_chars)] || id[0] == '.' || id[0] == '-') {
		kr_fail(err, KR_E_USAGE, "'%s' cannot name an item", id);
		return kr_hint(err, "1 to 64 of letters, digits, '.', '_' and '-', the first neither '.' nor '-'");
	}
	if (ends_with(id, ".json") || ends_with(id, ".lock") || ends_with(id, ".new") || strstr(id, ".aside-")) {
		kr_fail(err, KR_E_USAGE, "'%s' cannot name an item", id);
		return kr_hint(
			err, "'.json', '.lock', '.new' and '.aside-' are the names of kraft's own files there");
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

/* ---- the lock ---- */

static bool
try_lock(int fd, short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET };

	return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

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

/* Exclusive when nobody is there, shared beside running sessions; waits a little for one that prepares. */
static int
take_lock(struct opening *o, struct kr_error *err)
{
	const struct timespec step = { .tv_nsec = STEP_MS * 1000000L };
	struct kr_item *item = o->item;

	item->lock_fd = open_lock(o->dir_fd, item->id, err);
	if (item->lock_fd < 0)
		return -1;
	for (int waited = 0; waited <= WAIT_MS; waited += STEP_MS) {
		o->exclusive = try_lock(item->lock_fd, F_WRLCK);
		if (o->exclusive || try_lock(item->lock_fd, F_RDLCK))
			return 0;
		if (errno != EAGAIN && errno != EACCES)
			return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot lock item '%s'", item->id);
		(void)nanosleep(&step, NULL);
	}
	kr_fail(err, KR_E_BUSY, "another session is preparing item '%s'", item->id);
	return kr_hint(err, "wait for it, or use an item of its own: --item NAME");
}

static int
share(struct kr_item *item, struct kr_error *err)
{
	if (!try_lock(item->lock_fd, F_RDLCK))
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
	if (o->record.state == KR_RECORD_ABSENT || strcmp(o->record.checkout, o->checkout->root) == 0)
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
	if (aside >= 0)
		(void)unlinkat(aside, ".git", 0); /* a worker may have made it anything; then git refuses it */
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

static int
write_record(const struct opening *o, enum kr_record_state state, const char *git_dir, const char *commit,
	struct kr_error *err)
{
	const struct kr_record record = {
		.state = state,
		.checkout = o->checkout->root,
		.git_dir = git_dir,
		.git_common = o->checkout->common,
		.commit = commit,
		.setup = "",
	};

	return kr_record_write(o->dir_fd, o->item->id, &record, err);
}

/* Does: everything up to a worktree at item->wanted with its local files. Must not: touch what may be
 * somebody's. */
static int
make(struct opening *o, struct kr_error *err)
{
	struct kr_item *item = o->item;

	if (kr_local_files_check(o->repo, o->checkout->root, err) < 0 || clear_place(o, err) < 0 ||
		write_record(o, KR_RECORD_MAKING, "", item->wanted, err) < 0 ||
		kr_worktree_add(
			o->arena, o->checkout, item->worktree, item->wanted, item->lock_fd, &item->git_dir, err) < 0 ||
		kr_local_files_copy(o->repo, o->checkout->root, item->worktree, err) < 0 ||
		write_record(o, KR_RECORD_READY, item->git_dir, item->wanted, err) < 0)
		return -1;
	item->git_common = o->checkout->common;
	memcpy(item->at, item->wanted, sizeof(item->at));
	item->setup_done = *kr_setup_hash(o->arena, o->repo->setup_command) == '\0';
	item->state = KR_ITEM_MADE;
	return 0;
}

/* ---- deciding ---- */

static int
busy(const struct kr_item *item, const char *why, struct kr_error *err)
{
	kr_fail(err, KR_E_BUSY, "another session runs in item '%s', and %s", item->id, why);
	return kr_hint(err, "wait for it, or use an item of its own: --item NAME");
}

static bool
is_younger(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec >= b->tv_nsec;
}

/*
 * A git that was killed while it moved the worktree left its locks, and every later one would stop at them.
 * The record was written just before it started; an older lock is the person's, who may be at work there.
 */
static void
drop_stale_locks(const struct opening *o)
{
	static const char *const locks[] = { "index.lock", "HEAD.lock" };
	const char *name = kr_arena_printf(o->arena, "%s.json", o->item->id);
	kr_auto_fd int fd = kr_path_open(o->record.git_dir, O_PATH | O_DIRECTORY, NULL);
	struct stat ordered, lock;

	if (fd < 0 || fstatat(o->dir_fd, name, &ordered, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	for (size_t i = 0; i < KR_COUNT(locks); i++)
		if (fstatat(fd, locks[i], &lock, AT_SYMLINK_NOFOLLOW) == 0 &&
			is_younger(&lock.st_mtim, &ordered.st_mtim))
			(void)unlinkat(fd, locks[i], 0); /* git says so if it is still there */
}

/* The worktree is there; does it stand where it should? */
static int
judge(struct opening *o, struct kr_error *err)
{
	struct kr_item *item = o->item;
	const char *setup = kr_setup_hash(o->arena, o->repo->setup_command);
	bool moving = o->record.state == KR_RECORD_MOVING;

	snprintf(item->at, sizeof(item->at), "%s", o->record.commit);
	if (o->keep)
		memcpy(item->wanted, item->at, sizeof(item->wanted));
	item->git_dir = o->record.git_dir;
	item->git_common = o->record.git_common;
	item->setup_done = *setup == '\0' || strcmp(setup, o->record.setup) == 0;
	item->state = !moving && strcmp(item->at, item->wanted) == 0 ? KR_ITEM_READY : KR_ITEM_NEEDS_CHECKOUT;
	if (item->state == KR_ITEM_READY && o->exclusive &&
		kr_local_files_add(o->repo, o->checkout->root, item->worktree, err) < 0)
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
	if (moving)
		drop_stale_locks(o);
	if (item->state == KR_ITEM_READY || moving)
		return 0;
	o->record.state = KR_RECORD_MOVING;
	return kr_record_write(o->dir_fd, item->id, &o->record, err);
}

static int
settle(struct opening *o, struct kr_error *err)
{
	if (kr_record_read(o->arena, o->dir_fd, o->item->id, &o->record, err) < 0 || check_owner(o, err) < 0)
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

/* What the worktree should stand at. */
static int
find_wanted(const struct opening *o, bool with_changes, struct kr_error *err)
{
	char head[KR_OID_HEX_MAX + 1];

	if (kr_checkout_head(o->checkout, head, err) < 0)
		return -1;
	if (with_changes)
		return kr_checkout_snapshot(o->checkout, head, o->item->wanted, err);
	memcpy(o->item->wanted, head, sizeof(head));
	return 0;
}

int
kr_item_name(struct kr_arena *arena, const struct kr_host *host, const struct kr_checkout *checkout,
	const char *id, struct kr_item *out, struct kr_error *err)
{
	const char *run = host->places.run_dir;

	if (id && check_id(id, err) < 0)
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
kr_item_open(struct kr_arena *arena, const struct kr_host *host, const struct kr_checkout *checkout,
	const struct kr_repo *repo, const struct kr_item_want *want, struct kr_item *out, struct kr_error *err)
{
	struct kr_item item;
	struct opening o = {
		.arena = arena,
		.host = host,
		.checkout = checkout,
		.repo = repo,
		.item = &item,
		.dir_fd = -1,
		.keep = want->keep,
	};
	int result = -1;

	if (kr_item_name(arena, host, checkout, want->id, &item, err) < 0)
		return -1;
	if (find_wanted(&o, want->with_changes, err) == 0 && make_places(&o, err) == 0 && take_lock(&o, err) == 0)
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
update(const struct kr_host *host, const struct kr_item *item, const char *commit, const char *setup,
	struct kr_error *err)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const char *path = kr_arena_printf(&arena, "%s/worktrees", host->places.run_dir);
	kr_auto_fd int dir_fd = kr_path_open(path, O_DIRECTORY | O_PATH, err);
	struct kr_record record;

	if (dir_fd < 0 || kr_record_read(&arena, dir_fd, item->id, &record, err) < 0)
		return -1;
	if (record.state != KR_RECORD_READY && record.state != KR_RECORD_MOVING)
		return kr_fail(err, KR_E_SYSTEM, "the record of item '%s' was lost while it was in use", item->id);
	if (commit) {
		record.state = KR_RECORD_READY;
		record.commit = commit;
	}
	if (setup)
		record.setup = setup;
	return kr_record_write(dir_fd, item->id, &record, err);
}

int
kr_item_moved(
	const struct kr_host *host, const struct kr_repo *repo, struct kr_item *item, struct kr_error *err)
{
	(void)repo;
	if (update(host, item, item->wanted, NULL, err) < 0)
		return -1;
	memcpy(item->at, item->wanted, sizeof(item->at));
	item->state = KR_ITEM_READY;
	return 0;
}

int
kr_item_set_up(
	const struct kr_host *host, const struct kr_repo *repo, struct kr_item *item, struct kr_error *err)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };

	if (update(host, item, NULL, kr_setup_hash(&arena, repo->setup_command), err) < 0)
		return -1;
	item->setup_done = true;
	return 0;
}

int
kr_item_share(struct kr_item *item, struct kr_error *err)
{
	return share(item, err);
}
