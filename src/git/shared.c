/*
 * What a worker left in a repository, and in a linked worktree's git directory, is the worker's word like all of a
 * private directory (private.c): it is looked at relative to held descriptors, without following a link. But here
 * the person's own git comes by, and kraft's: `git worktree list` reads the HEAD of every worktree, a reflog is appended to where
 * it lies, an object is opened by its name. So before any git of kraft's looks, what is no plain file goes: a FIFO would
 * hold git for ever, a link would lead its writing elsewhere.
 *
 * Then, in this order: the branch's file, read as data; what it brings, packed and judged (publish.c). The branch is put back
 * by kraft itself, as git writes a ref: a file <ref>.lock that is renamed; a lock that the worker left does not stand in its way.
 *
 * A worker on macOS may lock its own files (chflags uchg): whatever is to be replaced here is unlocked first (kr_unlock_at).
 *
 * Must not: run git with the worktree's git directory (its config.worktree, index and HEAD are read by nobody but git inside);
 * trust a name or a type that was looked at a moment ago, where another session of the item still runs: what it
 * gains by being quick is that git waits, for an hour at most, or that the branch is put back.
 */
#include "git/shared.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/portable.h"
#include "base/text.h"
#include "git/internal.h"

enum {
	DEPTH_MAX = 64,
	ENTRIES_MAX = 1 << 20,
	HEAD_BYTES = 4096, /* of one that says something */
	INDEX_BYTES = 1 << 30,
	SETTINGS_BYTES = 1 << 20,
	FANOUT = 256, /* directories of loose objects, by the first byte of their names */
	SHOWN = 12,
};
#define REFLOG "kraft: where a sandboxed session begins"

/* ---- what is no plain file ---- */

static bool
is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static bool
ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && strcmp(name + n - m, end) == 0;
}

struct tidy {
	bool drops_locks;
	size_t left; /* entries that may still be looked at */
	struct kr_error *err;
};

static int tidy_directory(struct tidy *t, int fd, int depth);

/* Git makes no second name for a file there; what is written to one of a worker's would be written to the other. */
static int
tidy_entry(struct tidy *t, int dir_fd, const char *name, int depth)
{
	struct stat st;

	(void)kr_unlock_at(dir_fd, name);
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0; /* gone */
	if (S_ISDIR(st.st_mode))
		return tidy_directory(t, openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), depth + 1);
	if (S_ISREG(st.st_mode) && st.st_nlink == 1 && !(t->drops_locks && ends_with(name, ".lock")))
		return 0;
	if (unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT)
		return kr_fail_errno(t->err, KR_E_SYSTEM, errno, "cannot remove '%s', which a session left", name);
	return 0;
}

/* Takes the descriptor. */
static int
tidy_directory(struct tidy *t, int fd, int depth)
{
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int result = 0;

	if (!dir) {
		int saved = errno;

		kr_close_p(&fd);
		return saved == ENOENT || saved == ENOTDIR || saved == ELOOP
				   ? 0
				   : kr_fail_errno(t->err, KR_E_SYSTEM, saved, "cannot look into a directory that a session left");
	}
	if (depth > DEPTH_MAX)
		result = kr_fail(t->err, KR_E_LIMIT, "a session left directories more than %d deep", DEPTH_MAX);
	for (const struct dirent *e; !result && (e = readdir(dir));) {
		if (is_dots(e->d_name))
			continue;
		if (t->left-- == 0)
			result = kr_fail(t->err, KR_E_LIMIT, "a session left more than %d files", ENTRIES_MAX);
		else
			result = tidy_entry(t, dirfd(dir), e->d_name, depth);
	}
	closedir(dir);
	return result;
}

/* ---- the worktree's git directory ---- */

static int
write_head(int fd, const char *branch, struct kr_error *err)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const char *text = kr_arena_printf(&arena, "ref: refs/heads/%s\n", branch);

	return kr_file_write_at(fd, "HEAD", text, strlen(text), 0644, err);
}

static bool
head_says(int fd, const char *branch)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	kr_auto_buf struct kr_buf head = KR_BUF(HEAD_BYTES);
	const char *text = kr_arena_printf(&arena, "ref: refs/heads/%s\n", branch);

	return kr_file_read_at(fd, "HEAD", &head, NULL) == 0 && head.len == strlen(text) &&
		   memcmp(head.data, text, head.len) == 0;
}

/* One that is there stays, wherever it leads: that is for the person to see (kr_private_obstacles). */
static int
mend_head(int fd, const char *branch, struct kr_error *err)
{
	struct stat st;

	if (fstatat(fd, "HEAD", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) && st.st_size <= HEAD_BYTES)
		return 0;
	if (kr_tree_remove_at(fd, "HEAD") < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot remove what is in the place of HEAD");
	return write_head(fd, branch, err);
}

static int
open_worktree_git(const struct kr_private *git, struct kr_error *err)
{
	return kr_path_open(git->record.worktree_git_dir, O_RDONLY | O_DIRECTORY, err);
}

static int
tidy_worktree_git(const struct kr_private *git, const char *branch, bool is_alone, struct kr_error *err)
{
	struct tidy t = { .drops_locks = is_alone, .left = ENTRIES_MAX, .err = err };
	kr_auto_fd int fd = open_worktree_git(git, err);

	if (fd >= 0)
		(void)kr_unlock_at(fd, ".");
	if (fd < 0 || tidy_directory(&t, fcntl(fd, F_DUPFD_CLOEXEC, 3), 0) < 0)
		return -1;
	return mend_head(fd, branch, err);
}

/* ---- the branch's files ---- */

/* The directory of a file below the repository's git directory, and the file's name; made where git removed it. -1 with errno. */
static int
open_above(int common_fd, const char *path, const char **name)
{
	kr_auto_fd int fd = openat(common_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	*name = path;
	for (const char *slash; fd >= 0 && (slash = strchr(*name, '/')); *name = slash + 1) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		const char *part = kr_arena_dup_n(&arena, *name, (size_t)(slash - *name));
		int next;

		if (mkdirat(fd, part, 0777) < 0 && errno != EEXIST)
			return -1;
		next = openat(fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		kr_close_p(&fd);
		fd = next;
	}
	return kr_steal_fd(fd);
}

static int
cannot_reach(const struct kr_private *git, const char *path, struct kr_error *err)
{
	return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot reach '%s/%s'", git->record.common, path);
}

/* The branch itself stays as it is, for its value is to be judged; a git of the person's appends to its log. */
static int
tidy_branch(const struct kr_private *git, int common_fd, const char *branch, bool is_alone, struct kr_error *err)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const char *ref = kr_arena_printf(&arena, "refs/heads/%s", branch), *log = kr_arena_printf(&arena, "logs/%s", ref);
	const char *name;
	kr_auto_fd int above = open_above(common_fd, ref, &name), log_above = open_above(common_fd, log, &name);
	struct stat st;

	if (above < 0 || (is_alone && kr_tree_remove_at(above, kr_arena_printf(&arena, "%s.lock", name)) < 0))
		return cannot_reach(git, ref, err);
	if (log_above < 0)
		return cannot_reach(git, log, err);
	(void)kr_unlock_at(above, name);
	(void)kr_unlock_at(log_above, name);
	if (fstatat(log_above, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || (S_ISREG(st.st_mode) && st.st_nlink == 1))
		return 0;
	return kr_tree_remove_at(log_above, name) < 0 ? cannot_reach(git, log, err) : 0;
}

/* ---- loose objects ---- */

/* What is named as an object and is none that git wrote. A directory is not opened as an object, and stays. */
static int
tidy_objects_of(const struct kr_private *git, int objects_fd, const char *name, struct kr_error *err)
{
	int fd = openat(objects_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int result = 0;

	if (!dir) {
		int saved = errno;

		kr_close_p(&fd);
		if (saved == ENOENT)
			return 0;
		return kr_fail_errno(err, KR_E_SYSTEM, saved, "cannot look into '%s/%s'", git->objects, name);
	}
	for (const struct dirent *e; !result && (e = readdir(dir));) {
		struct stat st;

		if (e->d_type == DT_REG || e->d_type == DT_DIR || is_dots(e->d_name))
			continue;
		if (fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || S_ISREG(st.st_mode) || S_ISDIR(st.st_mode))
			continue;
		if (unlinkat(dirfd(dir), e->d_name, 0) < 0 && errno != ENOENT)
			result = kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot remove '%s/%s/%s'", git->objects, name, e->d_name);
	}
	closedir(dir);
	return result;
}

static int
tidy_objects(const struct kr_private *git, struct kr_error *err)
{
	kr_auto_fd int fd = kr_path_open(git->objects, O_RDONLY | O_DIRECTORY, err);

	if (fd < 0)
		return -1;
	for (unsigned i = 0; i < FANOUT; i++) {
		char name[8];

		snprintf(name, sizeof(name), "%02x", i);
		if (tidy_objects_of(git, fd, name, err) < 0)
			return -1;
	}
	return 0;
}

/* Before any git of kraft's comes by. */
static int
tidy(const struct kr_private *git, int common_fd, const char *branch, bool is_alone, struct kr_error *err)
{
	if (tidy_worktree_git(git, branch, is_alone, err) < 0 || tidy_branch(git, common_fd, branch, is_alone, err) < 0)
		return -1;
	return tidy_objects(git, err);
}

/* ---- opening ---- */

static int
check_repository(const struct kr_private *git, struct kr_error *err)
{
	const char *common = git->record.common;
	size_t n = strlen(common);

	if (kr_refs_need_git(common)) {
		kr_fail(err, KR_E_UNSUPPORTED,
			"the repository '%s' keeps its refs as reftable: a worker on macOS writes its branch's own file, and there is none",
			common);
		return kr_hint(err, "go back with 'git refs migrate --ref-format=files', or run the item in a container (kind: docker)");
	}
	if (strncmp(git->objects, common, n) == 0 && strcmp(git->objects + n, "/objects") == 0)
		return 0;
	kr_fail(err, KR_E_UNSUPPORTED, "the objects of the repository '%s' lie elsewhere, in '%s'", common, git->objects);
	return kr_hint(err, "clone it (git clone), or run the item in a container (kind: docker)");
}

int
kr_shared_open(struct kr_arena *arena, const char *run_dir, const char *item, unsigned tree,
	const struct kr_checkout *checkout, const char *worktree_git_dir, struct kr_private *out, struct kr_error *err)
{
	struct kr_private git;

	if (kr_private_name(arena, run_dir, item, tree, checkout, &git, err) < 0 || check_repository(&git, err) < 0)
		return -1;
	if (strcmp(kr_path_dirname(arena, worktree_git_dir), kr_arena_printf(arena, "%s/worktrees", checkout->common)) != 0 ||
		!kr_worktree_is_of(worktree_git_dir, checkout->common)) {
		kr_fail(err, KR_E_REFUSED, "the worktree of item '%s' does not lead to the repository '%s'", item, checkout->common);
		return kr_hint(err, "begin anew: 'kraft item remove %s' (its branches stay)", item);
	}
	return kr_private_open_as(arena, run_dir, item, tree, checkout, worktree_git_dir, true, out, err);
}

/* ---- moving the branch ---- */

/* As git does it, but for a lock that is there: whoever holds it is a worker. */
static int
write_ref(const struct kr_private *git, int common_fd, const char *branch, const char *oid, struct kr_error *err)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const char *path = kr_arena_printf(&arena, "refs/heads/%s", branch), *name, *lock;
	const char *text = kr_arena_printf(&arena, "%s\n", oid);
	kr_auto_fd int dir = open_above(common_fd, path, &name), fd = -1;
	struct stat st;

	lock = kr_arena_printf(&arena, "%s.lock", name);
	if (dir >= 0)
		(void)kr_unlock_at(dir, name);
	if (dir < 0 || kr_tree_remove_at(dir, lock) < 0 ||
		(fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) && kr_tree_remove_at(dir, name) < 0))
		return cannot_reach(git, path, err);
	fd = openat(dir, lock, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (fd < 0)
		return cannot_reach(git, kr_arena_printf(&arena, "%s.lock", path), err);
	if (kr_write_all(fd, text, strlen(text), err) < 0 || fsync(fd) < 0 || renameat(dir, lock, dir, name) < 0) {
		int saved = errno;

		(void)unlinkat(dir, lock, 0);
		return kr_fail_errno(err, KR_E_SYSTEM, saved, "cannot write '%s/%s'", git->record.common, path);
	}
	return 0;
}

/* From what it is in the repository, by git, which makes its log too: that the worker may only append to. */
static int
begin_branch(struct kr_arena *arena, const struct kr_private *git, const struct kr_private_make *want, struct kr_error *err)
{
	const char *ref = kr_arena_printf(arena, "refs/heads/%s", want->branch);
	const char *old = *want->synced ? want->synced : kr_arena_printf(arena, "%0*d", (int)strlen(want->start), 0);
	const char *const argv[] = { "update-ref", "-m", REFLOG, "--create-reflog", "--no-deref", ref, want->start, old, NULL };
	struct kr_git_where where = kr_publish_where(git->record.common);
	struct kr_private named = *git;

	named.record.branch = want->branch;
	if (kr_publish_check_free(arena, &named, err) < 0)
		return kr_wrap(err, "the branch '%s' cannot be worked on", want->branch);
	if (strcmp(want->synced, want->start) == 0)
		return 0;
	where.lives_on = true;
	if (kr_git_run(&where, argv, NULL, err) < 0)
		return kr_wrap(err, "the branch '%s' cannot be brought to where the session begins", want->branch);
	return 0;
}

/* Made where no worker writes, and copied: the worktree's own is the worker's, and nobody but git inside reads it. */
static int
write_index(struct kr_arena *arena, const struct kr_private *git, const struct kr_checkout *checkout, const char *oid,
	int worktree_fd, struct kr_error *err)
{
	const char *path = kr_arena_printf(arena, "%s.index", git->dir);
	const char *const argv[] = { "read-tree", "-i", "--reset", oid, NULL };
	kr_auto_buf struct kr_buf bytes = KR_BUF(INDEX_BYTES);
	struct kr_git_where where = kr_publish_where(checkout->git_dir);
	int result;

	where.index_file = path;
	(void)unlink(path); /* mostly not there */
	(void)unlink(kr_arena_printf(arena, "%s.lock", path));
	result = kr_git_run(&where, argv, NULL, err);
	if (result == 0)
		result = kr_file_read_at(AT_FDCWD, path, &bytes, err);
	if (result == 0)
		result = kr_file_write_at(worktree_fd, "index", bytes.data ? bytes.data : "", bytes.len, 0644, err);
	(void)unlink(path);
	return result < 0 ? kr_wrap(err, "cannot make the worktree's index anew") : 0;
}

int
kr_shared_make(struct kr_arena *arena, struct kr_private *git, const struct kr_checkout *checkout,
	const struct kr_private_make *want, bool drops, struct kr_error *err)
{
	kr_auto_fd int common_fd = kr_path_open(checkout->common, O_RDONLY | O_DIRECTORY, err), worktree_fd = -1;
	struct kr_private_make made = *want;

	KR_BUG_IF(git->is_shared || git->lock_fd < 0 || !kr_oid_is_valid(want->start, strlen(want->start)));
	if (common_fd < 0 || tidy(git, common_fd, want->branch, true, err) < 0)
		return -1;
	worktree_fd = open_worktree_git(git, err);
	if (worktree_fd < 0)
		return -1;
	if (drops && (write_ref(git, common_fd, want->branch, want->start, err) < 0 ||
					 write_index(arena, git, checkout, want->start, worktree_fd, err) < 0))
		return -1;
	if (!drops && begin_branch(arena, git, want, err) < 0)
		return -1;
	if (!head_says(worktree_fd, want->branch) && write_head(worktree_fd, want->branch, err) < 0)
		return -1;
	made.synced = made.start;
	if (kr_private_renew_record(arena, git, checkout, &made, true, err) < 0)
		return -1;
	git->is_made = true;
	return 0;
}

/* ---- after a session ---- */

static int
put_back(struct kr_arena *arena, struct kr_private *git, int common_fd, const char *why, struct kr_publish *out,
	struct kr_error *err)
{
	const char *at = git->record.at;
	const char *text =
		kr_arena_printf(arena, "the branch '%s' was put back to %.*s: %s", git->record.branch, SHOWN, at, why);

	if (write_ref(git, common_fd, git->record.branch, at, err) < 0)
		return -1;
	out->what = KR_PUBLISHED_PUT_BACK;
	(void)kr_text_escape(out->problem, sizeof(out->problem), text, strlen(text));
	return 1;
}

static int
judge(struct kr_arena *arena, struct kr_private *git, int common_fd, const char *tip, int pack_fd, struct kr_publish *out,
	struct kr_error *err)
{
	struct kr_error why = { 0 };

	snprintf(out->from, sizeof(out->from), "%s", git->record.at);
	snprintf(out->to, sizeof(out->to), "%s", tip);
	if (kr_publish_pack(arena, git, tip, pack_fd, &why) < 0) {
		if (!kr_publish_is_systems(&why))
			return put_back(arena, git, common_fd, why.message, out, err);
		if (err)
			*err = why;
		return -1;
	}
	if (kr_publish_take(arena, git, tip, pack_fd, out, err) < 0)
		return -1;
	return out->what == KR_PUBLISHED_MOVED ? 1 : put_back(arena, git, common_fd, out->problem, out, err);
}

int
kr_shared_take(struct kr_arena *arena, struct kr_private *git, bool is_alone, int pack_fd, struct kr_publish *out,
	struct kr_error *err)
{
	kr_auto_fd int lock = -1, common_fd = -1;
	struct kr_publish taken = { 0 };
	char tip[KR_OID_HEX_MAX + 1];
	int found;

	if (!git->is_made)
		return 0;
	lock = kr_publish_lock(arena, git, err);
	if (lock < 0 || kr_private_record_read(arena, git, &git->record, err) < 0)
		return -1;
	common_fd = kr_path_open(git->record.common, O_RDONLY | O_DIRECTORY, err);
	if (common_fd < 0 || tidy(git, common_fd, git->record.branch, is_alone, err) < 0)
		return -1;
	found = kr_ref_read_hostile(common_fd, git->record.branch, tip, err);
	if (found > 0 && strcmp(tip, git->record.at) == 0)
		return 0;
	if (found > 0)
		found = judge(arena, git, common_fd, tip, pack_fd, &taken, err);
	else if (found == 0)
		found = put_back(arena, git, common_fd, "it held no commit, or was deleted", &taken, err);
	if (found > 0)
		*out = taken;
	return found;
}

/* ---- what one tree of several is told ---- */

static void
add_identity(struct kr_buf *out, const struct kr_strs *identity)
{
	static const char *const parts[][3] = {
		{ "GIT_AUTHOR_NAME=", "author", "name" },
		{ "GIT_AUTHOR_EMAIL=", "author", "email" },
		{ "GIT_COMMITTER_NAME=", "committer", "name" },
		{ "GIT_COMMITTER_EMAIL=", "committer", "email" },
	};

	for (size_t i = 0; i < identity->n; i++)
		for (size_t k = 0; k < KR_COUNT(parts); k++)
			if (kr_text_has_prefix(identity->v[i], parts[k][0])) {
				kr_buf_addf(out, "[%s]\n\t%s = ", parts[k][1], parts[k][2]);
				kr_git_quote(out, identity->v[i] + strlen(parts[k][0]));
				kr_buf_adds(out, "\n");
			}
}

static int
write_excludes(int dir_fd, const char *name, const struct kr_strs *excludes, struct kr_error *err)
{
	kr_auto_buf struct kr_buf lines = KR_BUF(SETTINGS_BYTES);

	for (size_t i = 0; i < excludes->n; i++)
		kr_buf_addf(&lines, "%s\n", excludes->v[i]);
	if (lines.overflow)
		return kr_fail(err, KR_E_LIMIT, "the paths of the members are more than %d bytes", SETTINGS_BYTES);
	return kr_file_write_at(dir_fd, name, lines.data, lines.len, 0600, err);
}

int
kr_shared_write_settings(struct kr_arena *arena, const char *dir, const char *name, const struct kr_strs *identity,
	const struct kr_strs *excludes, struct kr_error *err)
{
	const char *list = kr_arena_printf(arena, "%s-exclude", name);
	kr_auto_buf struct kr_buf out = KR_BUF(SETTINGS_BYTES);
	kr_auto_fd int fd = kr_path_open(dir, O_RDONLY | O_DIRECTORY, err);

	if (fd < 0)
		return -1;
	add_identity(&out, identity);
	if (excludes && excludes->n) {
		if (write_excludes(fd, list, excludes, err) < 0)
			return -1;
		kr_buf_adds(&out, "[core]\n\texcludesFile = ");
		kr_git_quote(&out, kr_path_join(arena, dir, list));
		kr_buf_adds(&out, "\n");
	}
	if (out.overflow)
		return kr_fail(err, KR_E_LIMIT, "who commits takes more than %d bytes to say", SETTINGS_BYTES);
	return kr_file_write_at(fd, name, out.data ? out.data : "", out.len, 0600, err);
}
