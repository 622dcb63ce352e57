/*
 * Making a private git directory, under its exclusive lock.
 *
 *   1. git is asked for the configuration (it answers meanwhile), leftovers of a make that was cut off go
 * away
 *   2. <name>.new is built: everything but the index
 *   3. the index is moved over from the old directory, or copied from the linked worktree's
 *   4. the old directory is renamed to <name>.old, git file and record are written, <name>.new is renamed to
 * <name>
 *   5. <name>.old goes away when the session closes the directory, or at the next make: nobody waits for it
 *
 * Cut off before the last rename of 4 there is no directory, or the old one with the old record; the next
 * open makes it again. So nothing has to be on the disk when a step begins; only the record is synced.
 *
 * Must not: follow what a worker left in the old directory; only `index` and the files that a split index
 * needs are moved out of it, by rename.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/portable.h"
#include "base/text.h"
#include "git/internal.h"

enum {
	REFS_BYTES = 256 << 20,
	CONFIG_BYTES = 32 << 20,
	COPIED_BYTES = 64 << 20, /* shallow, exclude, attributes */
	INDEX_BYTES_MIN = 32,
	SHARED_INDEX_MAX = 8,
};

struct making {
	struct kr_arena *arena;
	struct kr_private *git;
	const struct kr_checkout *checkout;
	const struct kr_private_make *want;
	struct kr_git_settings *settings;
	const char *name;
	int place_fd, fd; /* fd: of <name>.new */
	bool has_sparse_patterns;
};

/* ---- files of the new directory ---- */

static int
put(const struct making *m, const char *name, const char *bytes, size_t n, struct kr_error *err)
{
	kr_auto_fd int fd = openat(m->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot create '%s.new/%s'", m->git->dir, name);
	return n ? kr_write_all(fd, bytes, n, err) : 0;
}

static int
put_text(const struct making *m, const char *name, const char *text, struct kr_error *err)
{
	return put(m, name, text, strlen(text), err);
}

static int
make_directories(const struct making *m, struct kr_error *err)
{
	static const char *const names[] = { "objects", "objects/info", "objects/pack", "refs", "refs/heads",
		"refs/tags", "info", "lfs" };

	for (size_t i = 0; i < KR_COUNT(names); i++)
		if (mkdirat(m->fd, names[i], 0700) < 0)
			return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot create '%s.new/%s'", m->git->dir, names[i]);
	return 0;
}

/* A name with a newline is quoted, as git reads it. */
static void
add_alternate(struct kr_buf *out, const char *path)
{
	bool quoted = strchr(path, '\n') != NULL;

	if (quoted)
		kr_buf_add(out, "\"", 1);
	for (; *path; path++) {
		if (quoted && (*path == '"' || *path == '\\'))
			kr_buf_add(out, "\\", 1);
		if (*path == '\n')
			kr_buf_add(out, "\\n", 2);
		else
			kr_buf_add(out, path, 1);
	}
	kr_buf_adds(out, quoted ? "\"\n" : "\n");
}

/* The borrowed ones too, by their resolved paths: those in the repository's own file may lead through links
 * that are not there inside, and old versions of git take no relative one there. */
static int
put_alternates(const struct making *m, struct kr_error *err)
{
	kr_auto_buf struct kr_buf out = KR_BUF(1 << 20);

	add_alternate(&out, m->git->objects);
	for (size_t i = 0; i < m->git->borrowed.n; i++)
		add_alternate(&out, m->git->borrowed.v[i]);
	return put(m, "objects/info/alternates", out.data, out.len, err);
}

/* In a file of its own too: so whether there is something to take out is told by 41 bytes, not by all refs. */
static int
put_branch(const struct making *m, struct kr_error *err)
{
	const char *path = kr_arena_printf(m->arena, "refs/heads/%s", m->want->branch);

	for (const char *end = path + strlen("refs/heads/"); (end = strchr(end, '/')); end++) {
		const char *above = kr_arena_dup_n(m->arena, path, (size_t)(end - path));

		if (mkdirat(m->fd, above, 0700) < 0)
			return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot create '%s.new/%s'", m->git->dir, above);
	}
	return put_text(m, path, kr_arena_printf(m->arena, "%s\n", m->want->start), err);
}

static int
put_refs(const struct making *m, struct kr_error *err)
{
	kr_auto_buf struct kr_buf out = KR_BUF(REFS_BYTES);

	if (kr_refs_snapshot(m->checkout, m->want->branch, m->want->start, &out, err) < 0 ||
		put(m, "packed-refs", out.data, out.len, err) < 0 || put_branch(m, err) < 0)
		return -1;
	return put_text(m, "HEAD", kr_arena_printf(m->arena, "ref: refs/heads/%s\n", m->want->branch), err);
}

/* A small file of the person's repository, when it has one. */
static int
put_copy(
	const struct making *m, const char *directory, const char *name, bool *is_there, struct kr_error *err)
{
	kr_auto_buf struct kr_buf buf = KR_BUF(COPIED_BYTES);
	struct kr_error failed = { 0 };

	*is_there = false;
	if (kr_file_read_at(AT_FDCWD, kr_arena_printf(m->arena, "%s/%s", directory, name), &buf, &failed) < 0) {
		if (failed.sys_errno == ENOENT || failed.sys_errno == ENOTDIR)
			return 0;
		if (err)
			*err = failed;
		return -1;
	}
	*is_there = true;
	return put(m, name, buf.data, buf.len, err);
}

/* The repository's own, then ours. */
static int
put_exclude(const struct making *m, struct kr_error *err)
{
	kr_auto_buf struct kr_buf buf = KR_BUF(COPIED_BYTES);
	const char *file = kr_arena_printf(m->arena, "%s/info/exclude", m->checkout->common);
	struct kr_error failed = { 0 };
	bool is_there;

	if (!m->want->excludes || !m->want->excludes->n)
		return put_copy(m, m->checkout->common, "info/exclude", &is_there, err);
	if (kr_file_read_at(AT_FDCWD, file, &buf, &failed) < 0 && failed.sys_errno != ENOENT &&
		failed.sys_errno != ENOTDIR) {
		if (err)
			*err = failed;
		return -1;
	}
	kr_buf_adds(&buf, "\n");
	for (size_t i = 0; i < m->want->excludes->n; i++)
		kr_buf_addf(&buf, "%s\n", m->want->excludes->v[i]);
	return put(m, "info/exclude", buf.data, buf.len, err);
}

static int
put_copies(struct making *m, struct kr_error *err)
{
	const char *common = m->checkout->common;
	bool is_there;

	if (put_copy(m, common, "shallow", &is_there, err) < 0 || put_exclude(m, err) < 0 ||
		put_copy(m, common, "info/attributes", &is_there, err) < 0)
		return -1;
	return put_copy(m, m->git->record.worktree_git_dir, "info/sparse-checkout", &m->has_sparse_patterns, err);
}

static int
put_config(const struct making *m, struct kr_error *err)
{
	kr_auto_buf struct kr_buf out = KR_BUF(CONFIG_BYTES);

	if (kr_git_settings_wait(m->arena, m->settings, err) < 0)
		return -1;
	kr_git_settings_write(m->arena, m->settings, m->has_sparse_patterns, &out);
	if (out.overflow)
		return kr_fail(err, KR_E_LIMIT, "git's configuration is more than %zu bytes", out.max);
	return put(m, "config", out.data, out.len, err);
}

/* ---- the index ---- */

static bool
is_file_name_of_index(const char *name)
{
	return strcmp(name, "index") == 0 || kr_text_has_prefix(name, "sharedindex.");
}

/* The whole of it with its time: git takes an entry as young as the index for one that may have changed
 * since. */
static int
copy_file(const struct making *m, int from_dir, const char *name, struct kr_error *err)
{
	kr_auto_fd int from = openat(from_dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW),
				   to = -1;
	struct stat st;

	if (from < 0 && errno == ENOENT)
		return 0;
	if (from < 0 || fstat(from, &st) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot open '%s' of the worktree", name);
	if (!S_ISREG(st.st_mode))
		return kr_fail(err, KR_E_REFUSED, "'%s' of the worktree is not a regular file", name);
	to = openat(m->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (to < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot create '%s.new/%s'", m->git->dir, name);
	if (kr_file_copy_within(from, to) < 0) { /* another file system, or one that cannot */
		kr_auto_buf struct kr_buf buf = KR_BUF((size_t)st.st_size + (1 << 20));

		if (lseek(from, 0, SEEK_SET) < 0 || lseek(to, 0, SEEK_SET) < 0 || ftruncate(to, 0) < 0 ||
			kr_read_all(from, &buf, name, err) < 0 ||
			(buf.len && kr_write_all(to, buf.data, buf.len, err) < 0))
			return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot copy '%s' of the worktree", name);
	}
	if (futimens(to, (const struct timespec[]){ kr_atime(&st), kr_mtime(&st) }) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot set the time of '%s'", name);
	return 0;
}

/* By name and type alone; git inside judges what is in it. */
static int
move_file(const struct making *m, int from_dir, const char *name, struct kr_error *err)
{
	struct stat st;

	if (fstatat(from_dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if (renameat(from_dir, name, m->fd, name) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot keep '%s' of '%s'", name, m->git->dir);
	return 0;
}

/* Takes from_dir. */
static int
bring_index(const struct making *m, int from_dir, bool is_move, struct kr_error *err)
{
	DIR *dir = fdopendir(from_dir);
	int result = 0, taken = 0;

	if (!dir) {
		kr_close_p(&from_dir);
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot look for an index");
	}
	for (const struct dirent *e; !result && taken <= SHARED_INDEX_MAX && (e = readdir(dir));)
		if (is_file_name_of_index(e->d_name)) {
			result =
				is_move ? move_file(m, dirfd(dir), e->d_name, err) : copy_file(m, dirfd(dir), e->d_name, err);
			taken++;
		}
	closedir(dir);
	return result;
}

/* The tree that an index stands for; see index_tree.c. Its note is near the end, so a little is read first.
 */
static bool
read_index_tree(const struct making *m, int dir_fd, char oid[KR_OID_HEX_MAX + 1])
{
	static const off_t tails[] = { 256 << 10, 16 << 20 };
	kr_auto_fd int fd = kr_path_open_below(dir_fd, "index", O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < INDEX_BYTES_MIN)
		return false;
	for (size_t i = 0; i < KR_COUNT(tails); i++) {
		size_t size = (size_t)(st.st_size < tails[i] ? st.st_size : tails[i]);
		kr_auto_free char *tail = kr_xcalloc(1, size);

		if (pread(fd, tail, size, st.st_size - (off_t)size) != (ssize_t)size)
			return false;
		if (kr_index_tree(tail, size, strlen(m->want->start) / 2, oid))
			return true;
		if (st.st_size <= tails[i])
			return false;
	}
	return false;
}

/*
 * Whether the repository has all that the old directory's index names: it stands for the same tree as the
 * linked worktree's, which no worker can write. The old one then is the better of two good ones: it knows the
 * files as they are.
 */
static bool
is_index_good(const struct making *m, int old_fd, int linked_fd)
{
	char old[KR_OID_HEX_MAX + 1], linked[KR_OID_HEX_MAX + 1];

	return read_index_tree(m, old_fd, old) && read_index_tree(m, linked_fd, linked) &&
		   strcmp(old, linked) == 0;
}

static int
put_index(const struct making *m, struct kr_error *err)
{
	kr_auto_fd int old_fd = -1, linked_fd = -1;

	if (!m->want->index)
		return 0;
	linked_fd = open(kr_path_dirname(m->arena, m->want->index), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (linked_fd < 0 && errno == ENOENT)
		return 0;
	if (linked_fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot open the directory of '%s'", m->want->index);
	old_fd = kr_path_open_below(m->place_fd, m->name, O_RDONLY | O_DIRECTORY);
	if (old_fd >= 0 && is_index_good(m, old_fd, linked_fd))
		return bring_index(m, kr_steal_fd(old_fd), true, err);
	return bring_index(m, kr_steal_fd(linked_fd), false, err);
}

/* ---- in its place ---- */

static int
clear(const struct making *m, const char *suffix, struct kr_error *err)
{
	const char *name = kr_arena_printf(m->arena, "%s%s", m->name, suffix);

	if (kr_tree_remove_at(m->place_fd, name) == 0)
		return 0;
	kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot remove the old git directory '%s%s'", m->git->dir, suffix);
	return kr_hint(err, "remove it by hand");
}

static int
move(const struct making *m, const char *from, const char *to, struct kr_error *err)
{
	const char *a = kr_arena_printf(m->arena, "%s%s", m->name, from);
	const char *b = kr_arena_printf(m->arena, "%s%s", m->name, to);

	if (renameat(m->place_fd, a, m->place_fd, b) < 0 && !(errno == ENOENT && !*from))
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot rename '%s' to '%s'", a, b);
	return 0;
}

/* Not synced: what a crash leaves is compared at the next open. */
static int
write_git_file(const struct making *m, struct kr_error *err)
{
	const char *name = kr_arena_printf(m->arena, "%s.gitfile", m->name);
	const char *text = kr_arena_printf(m->arena, "gitdir: %s\n", m->git->dir);
	kr_auto_fd int fd = -1;

	if (kr_tree_remove_at(m->place_fd, name) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot replace '%s'", m->git->git_file);
	fd = openat(m->place_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot create '%s'", m->git->git_file);
	return kr_write_all(fd, text, strlen(text), err);
}

static void
fill_record(struct kr_arena *arena, const struct kr_checkout *checkout, const struct kr_private_make *want,
	struct kr_private_record *r)
{
	r->checkout = checkout->root;
	r->common = checkout->common;
	r->branch = kr_arena_dup(arena, want->branch);
	snprintf(r->start, sizeof(r->start), "%s", want->start);
	memcpy(r->at, r->start, sizeof(r->at));
	snprintf(r->synced, sizeof(r->synced), "%s", want->synced);
	r->noted[0] = '\0';
}

/* Writing the record waits for the disk; one that says the same already is left alone. */
static int
renew_record(struct kr_arena *arena, const struct kr_private *git, struct kr_error *err)
{
	const struct kr_private_record *new = &git->record;
	struct kr_private_record written;

	if (kr_private_record_read(arena, git, &written, NULL) == 0 && strcmp(written.checkout, new->checkout) == 0 &&
		strcmp(written.common, new->common) == 0 && strcmp(written.worktree_git_dir, new->worktree_git_dir) == 0 &&
		strcmp(written.branch, new->branch) == 0 && strcmp(written.start, new->start) == 0 &&
		strcmp(written.at, new->at) == 0 && strcmp(written.synced, new->synced) == 0 && !written.noted[0] &&
		written.is_in_repository == new->is_in_repository)
		return 0;
	return kr_private_record_write(git, err);
}

int
kr_private_renew_record(struct kr_arena *arena, struct kr_private *git, const struct kr_checkout *checkout,
	const struct kr_private_make *want, bool is_in_repository, struct kr_error *err)
{
	const struct kr_private_record before = git->record;

	fill_record(arena, checkout, want, &git->record);
	git->record.is_in_repository = is_in_repository;
	if (renew_record(arena, git, err) == 0)
		return 0;
	git->record = before;
	return -1;
}

static int
take_place(const struct making *m, struct kr_error *err)
{
	const struct kr_private_record before = m->git->record;

	KR_FAULT(private_built);
	if (move(m, "", ".old", err) < 0)
		return -1;
	KR_FAULT(private_aside);
	m->git->is_made = false;
	if (write_git_file(m, err) < 0 ||
		kr_private_renew_record(m->arena, m->git, m->checkout, m->want, false, err) < 0 ||
		move(m, ".new", "", err) < 0) {
		m->git->record = before;
		return -1;
	}
	KR_FAULT(private_made);
	m->git->is_made = true;
	return 0;
}

static int
build(struct making *m, struct kr_error *err)
{
	const char *name = kr_arena_printf(m->arena, "%s.new", m->name);

	if (clear(m, ".new", err) < 0 || clear(m, ".old", err) < 0)
		return -1;
	if (mkdirat(m->place_fd, name, 0700) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot create '%s.new'", m->git->dir);
	m->fd = openat(m->place_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (m->fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot open '%s.new'", m->git->dir);
	if (make_directories(m, err) < 0 || put_refs(m, err) < 0 || put_alternates(m, err) < 0 ||
		put_copies(m, err) < 0 || put_config(m, err) < 0)
		return -1;
	return put_index(m, err);
}

int
kr_private_make(struct kr_arena *arena, struct kr_private *git, const struct kr_checkout *checkout,
	const struct kr_private_make *want, struct kr_error *err)
{
	KR_CLEANUP(kr_git_settings_fini) struct kr_git_settings own = { 0 };
	kr_auto_fd int place_fd = kr_path_open(kr_path_dirname(arena, git->dir), O_RDONLY | O_DIRECTORY, err);
	struct making m = {
		.arena = arena,
		.git = git,
		.checkout = checkout,
		.want = want,
		.settings = want->settings ? want->settings : &own,
		.name = kr_path_basename(git->dir),
		.place_fd = place_fd,
		.fd = -1,
	};
	int result = -1;

	KR_BUG_IF(git->is_shared || git->lock_fd < 0 || !kr_oid_is_valid(want->start, strlen(want->start)));
	if (place_fd < 0 || (!want->settings && kr_git_settings_start(checkout, &own, err) < 0))
		return -1;
	if (build(&m, err) == 0)
		result = take_place(&m, err);
	kr_close_p(&m.fd);
	return result;
}
