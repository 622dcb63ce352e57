/*
 * What items that have ended left on the disk: worktree, private git directory, home and results
 * (session/items.h), and the folders of their sessions. Rows, events and branches stay.
 *
 * Nothing that a live process holds is touched: the host's lock is taken first, the item's by kr_item_remove,
 * and a session's folder goes only when nobody holds its facts. An item whose commits did not come out keeps
 * all of it.
 */
#include "work/internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/path.h"
#include "git/private.h"
#include "session/items.h"

enum { DEPTH_MAX = 512 }; /* as of kr_tree_remove_at: deeper ones are not removed either */

/* ---- how much it is ---- */

static uint64_t add_up(int dir_fd, const char *name, dev_t device, unsigned depth);

/* Takes the descriptor. */
static uint64_t
add_up_entries(int fd, dev_t device, unsigned depth)
{
	uint64_t bytes = 0;
	DIR *dir = fdopendir(fd);

	if (!dir) {
		kr_close_p(&fd);
		return 0;
	}
	for (const struct dirent *e; (e = readdir(dir));)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			bytes += add_up(fd, e->d_name, device, depth + 1);
	closedir(dir);
	return bytes;
}

/*
 * What the file system gives back. A file with several names counts as much as its share for each; a
 * directory that its worker closed counts as empty, since telling changes nothing.
 */
static uint64_t
add_up(int dir_fd, const char *name, dev_t device, unsigned depth)
{
	uint64_t bytes;
	struct stat st;
	int fd;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	bytes = (uint64_t)st.st_blocks * 512;
	if (!S_ISDIR(st.st_mode)) /* under overlayfs a file's device is not its directory's */
		return st.st_nlink > 1 ? bytes / (uint64_t)st.st_nlink : bytes;
	if (depth && st.st_dev != device)
		return 0;
	fd = depth < DEPTH_MAX ? openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	return fd < 0 ? bytes : bytes + add_up_entries(fd, st.st_dev, depth);
}

static uint64_t
add_up_path(struct kr_work *work, const char *path)
{
	kr_auto_fd int fd = kr_path_open(kr_path_dirname(work->arena, path), O_RDONLY | O_DIRECTORY, NULL);

	return fd < 0 ? 0 : add_up(fd, kr_path_basename(path), 0, 0);
}

static uint64_t
add_up_below(struct kr_work *work, const char *kind, const char *name)
{
	return add_up_path(work, kr_arena_printf(work->arena, "%s/%s/%s", work->host.places.run_dir, kind, name));
}

static uint64_t
add_up_all(struct kr_work *work, const struct kr_leftovers *l, const struct kr_item_seen *seen)
{
	const char *run_dir = work->host.places.run_dir;
	uint64_t bytes = 0;

	for (size_t i = 0; i < seen->tree_count; i++)
		bytes += add_up_path(work, kr_private_dir(work->arena, run_dir, l->row.id, (unsigned)i));
	if (l->has_worktree)
		bytes += add_up_below(work, "worktrees", l->row.id) + add_up_below(work, "sandbox-home", l->row.id) +
				 add_up_below(work, "results", l->row.id);
	for (size_t i = 0; i < l->sessions.n; i++)
		bytes += add_up_below(work, "sessions", l->sessions.v[i]);
	return bytes;
}

/* ---- what there is ---- */

static void
find_kept(struct kr_work *work, struct kr_leftovers *l, const struct kr_item_seen *seen, bool is_running)
{
	if (is_running || seen->is_busy || kr_work_is_locked(work, l->row.id))
		l->kept = "a process is at it";
	else if (seen->is_pending)
		l->kept = kr_arena_printf(work->arena,
			"commits of its last session are not in your repository yet; 'kraft run --item %s --keep -- "
			"true' brings them in",
			l->row.id);
}

/* 1: it left something. */
static int
look_at(struct kr_work *work, const struct kr_item_row *row, const struct kr_session_list *all,
	struct kr_leftovers *out, struct kr_error *err)
{
	struct kr_leftovers l = { .row = *row };
	struct kr_item_seen seen = { 0 };
	struct kr_error looked = { 0 };
	bool is_running = false;

	l.has_worktree = kr_item_look(work->arena, work->host.places.run_dir, row->id, &seen, &looked) == 0;
	if (!l.has_worktree && looked.code != KR_E_NOT_FOUND) {
		*err = looked;
		return -1;
	}
	for (size_t i = 0; i < all->n; i++)
		if (strcmp(all->v[i].facts.item, row->id) == 0) {
			kr_strs_add(work->arena, &l.sessions, all->v[i].facts.id);
			is_running = is_running || all->v[i].state == KR_SESSION_RUNNING;
		}
	if (!l.has_worktree && !l.sessions.n)
		return 0;
	l.bytes = add_up_all(work, &l, &seen);
	find_kept(work, &l, &seen, is_running);
	*out = l;
	return 1;
}

int
kr_work_leftovers(
	struct kr_work *work, uint64_t until_ms, struct kr_leftovers_list *out, struct kr_error *err)
{
	struct kr_leftovers_list list = { 0 };
	struct kr_session_list sessions;
	struct kr_item_rows rows;

	if (kr_store_items(work->arena, work->store, &rows, err) < 0 ||
		kr_session_list(work->arena, work->host.places.run_dir, NULL, &sessions, err) < 0)
		return -1;
	list.v = kr_arena_alloc(work->arena, (rows.n + 1) * sizeof(*list.v));
	for (size_t i = 0; i < rows.n; i++) {
		int found = 0;

		if (kr_work_has_ended(&rows.v[i]) && rows.v[i].changed_ms <= until_ms)
			found = look_at(work, &rows.v[i], &sessions, &list.v[list.n], err);
		if (found < 0)
			return -1;
		list.n += (size_t)found;
	}
	*out = list;
	return 0;
}

int
kr_work_leftovers_of(struct kr_work *work, const char *id, struct kr_leftovers *out, struct kr_error *err)
{
	struct kr_session_list sessions;
	struct kr_item_row row;

	if (kr_store_item_get(work->arena, work->store, id, &row, err) < 0 ||
		kr_session_list(work->arena, work->host.places.run_dir, row.id, &sessions, err) < 0)
		return -1;
	*out = (struct kr_leftovers){ .row = row };
	return look_at(work, &row, &sessions, out, err) < 0 ? -1 : 0;
}

/* ---- removing it ---- */

static int
remove_session(struct kr_work *work, int sessions_fd, const char *id, struct kr_error *err)
{
	kr_auto_fd int folder = openat(sessions_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct kr_session_seen seen;

	if (folder < 0)
		return 0; /* swept just now */
	if (kr_session_facts_read(work->arena, folder, &seen, NULL) == 0 && seen.state == KR_SESSION_RUNNING)
		return kr_fail(err, KR_E_BUSY, "session '%s' still runs", id);
	if (kr_tree_remove_at(sessions_fd, id) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot remove the folder of session '%s'", id);
	return 0;
}

static int
remove_sessions(struct kr_work *work, const struct kr_leftovers *l, struct kr_error *err)
{
	kr_auto_fd int fd = -1;

	if (!l->sessions.n)
		return 0;
	fd = kr_path_open(
		kr_arena_printf(work->arena, "%s/sessions", work->host.places.run_dir), O_RDONLY | O_DIRECTORY, err);
	if (fd < 0)
		return -1;
	for (size_t i = 0; i < l->sessions.n; i++)
		if (remove_session(work, fd, l->sessions.v[i], err) < 0)
			return -1;
	return 0;
}

/* Somebody may have removed it since it was looked at. */
static int
remove_worktree(struct kr_work *work, const struct kr_leftovers *l, struct kr_error *err)
{
	struct kr_error why = { 0 };

	if (!l->has_worktree ||
		kr_item_remove(work->arena, work->host.places.run_dir, l->row.id, false, &why) == 0 ||
		why.code == KR_E_NOT_FOUND)
		return 0;
	*err = why;
	return -1;
}

static int
count_it(void *context, const struct kr_event *event)
{
	(void)context;
	(void)event;
	return 0;
}

/*
 * Before the sessions' folders go: as long as one is there, whoever is killed here leaves an item that is
 * looked at again. A second time it has been told.
 */
static int
tell_once(struct kr_work *work, const char *item, const char *reason, struct kr_error *err)
{
	static const char type[] = "work_item_archived";
	const struct kr_event_query query = { .type = type, .item = item, .newest = 1 };
	long told = kr_store_events(work->store, &query, count_it, NULL, err);

	if (told != 0)
		return told < 0 ? -1 : 0;
	return kr_work_event(work, item, type, json_pack("{s:s, s:s}", "by", "human", "reason", reason), err);
}

int
kr_work_archive(struct kr_work *work, const struct kr_leftovers *l, const char *reason, struct kr_error *err)
{
	kr_auto_fd int lock = kr_work_lock(work, l->row.id, err);
	int result;

	if (lock < 0)
		return -1;
	result = remove_worktree(work, l, err);
	KR_FAULT(item_removed);
	result = result < 0 ? -1 : tell_once(work, l->row.id, reason, err);
	KR_FAULT(archived);
	result = result < 0 ? -1 : remove_sessions(work, l, err);
	KR_FAULT(sessions_removed);
	if (result == 0) {
		/* Whoever makes the lock's file anew finds an item that has ended. Neither need be there. */
		(void)unlink(kr_work_path(work, l->row.id, ".host"));
		(void)unlink(kr_work_path(work, l->row.id, ".host.log"));
	}
	return result;
}

int
kr_work_abandon(struct kr_work *work, const char *id, const char *reason, struct kr_error *err)
{
	struct kr_leftovers l;

	if (kr_work_leftovers_of(work, id, &l, err) < 0)
		return -1;
	if (l.kept)
		return kr_fail(err, KR_E_REFUSED, "item '%s' has to stay: %s", l.row.id, l.kept);
	if (kr_work_end(work, l.row.id, KR_STATUS_ABANDONED, reason, err) < 0)
		return -1;
	return kr_work_archive(work, &l, "abandoned", err);
}
