/*
 * Linked worktrees and snapshots: the two things that kraft makes in a person's repository. Both only add: an
 * entry below worktrees/, objects that nothing of the person's refers to. Branches, index, HEAD and files
 * stay as they are.
 */
#include "git/git.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/portable.h"
#include "base/text.h"

enum {
	POINTER_BYTES = 8192,
	INDEX_BYTES_MAX = 1 << 30,
	WALL_S = 300, /* git reads the HEAD of every worktree, and some of them are a worker's (git/shared.h) */
};

/* ---- worktree ---- */

/* `.git` of a worktree that git made a moment ago and no worker has seen. */
static const char *
git_dir_of_new(struct kr_arena *arena, const char *path, struct kr_error *err)
{
	kr_auto_buf struct kr_buf buf = KR_BUF(POINTER_BYTES);
	char resolved[KR_PATH_MAX];

	if (kr_file_read_at(AT_FDCWD, kr_arena_printf(arena, "%s/.git", path), &buf, err) < 0)
		return NULL;
	while (buf.len && buf.data[buf.len - 1] == '\n')
		buf.data[--buf.len] = '\0';
	if (!buf.len || !kr_text_has_prefix(buf.data, "gitdir: /") || !realpath(buf.data + 8, resolved)) {
		kr_fail(err, KR_E_GIT, "git made '%s' without an absolute path to its git directory", path);
		return NULL;
	}
	return kr_arena_dup(arena, resolved);
}

/*
 * The checkout is a run of its own, a child of ours and not git's grandchild: it then dies with us.
 * (`worktree add` would start `reset`, which goes on for minutes after both of us are gone.)
 */
static int
fill(const char *git_dir, const char *path, const char *oid, struct kr_error *err)
{
	const char *const argv[] = { "checkout", "--quiet", "--progress", "--force", "--detach",
		"--no-recurse-submodules", oid, NULL };
	const struct kr_git_where where = { .git_dir = git_dir, .work_tree = path, .work_dir_fd = -1 };
	struct kr_git_run run = { 0 };

	if (kr_git_start(&where, argv, &run, err) < 0)
		return -1;
	run.show_progress = true;
	return kr_git_finish(&run, NULL, err);
}

/*
 * --force twice takes over the entry of a worktree that was at this very path and is gone, also one that a
 * killed `worktree add` left locked. `worktree prune` would do for the first, but it also forgets every
 * worktree of the person's that happens to be on a disk that is not mounted now.
 *
 * The add is not killed with us: half an entry (one without `commondir`) makes every later `git worktree` of
 * the person's fail. It takes milliseconds; the checkout, which takes minutes, is killed.
 */
int
kr_worktree_add(struct kr_arena *arena, const struct kr_checkout *checkout, const char *path, const char *oid,
	int hold_fd, const char **git_dir, struct kr_error *err)
{
	const char *const add[] = { "worktree", "add", "--force", "--force", "--no-checkout", "--detach", "--",
		path, oid, NULL };
	const struct kr_git_where where = {
		.git_dir = checkout->git_dir,
		.work_tree = checkout->root,
		.work_dir_fd = -1,
		.hold_fd = hold_fd,
		.wall_s = WALL_S,
	};
	const char *own;

	if (kr_git_run(&where, add, NULL, err) < 0)
		return kr_wrap(err, "cannot make a worktree of '%s'", checkout->root);
	own = git_dir_of_new(arena, path, err);
	if (!own)
		return -1;
	if (fill(own, path, oid, err) < 0)
		return kr_wrap(err, "cannot check out '%s' of '%s'", oid, checkout->root);
	if (git_dir)
		*git_dir = own;
	return 0;
}

bool
kr_commit_has(const char *common, const char *new, const char *old)
{
	const char *const argv[] = { "merge-base", "--is-ancestor", old, new, NULL };
	const struct kr_git_where where = { .git_dir = common, .work_dir_fd = -1 };

	return strcmp(old, new) == 0 || kr_git_run(&where, argv, NULL, NULL) == 0;
}

bool
kr_worktree_is_linked(const char *git_dir, const char *path)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	kr_auto_buf struct kr_buf buf = KR_BUF(POINTER_BYTES);
	struct stat st;

	if (lstat(git_dir, &st) < 0 || !S_ISDIR(st.st_mode))
		return false;
	if (kr_file_read_at(AT_FDCWD, kr_arena_printf(&arena, "%s/gitdir", git_dir), &buf, NULL) < 0)
		return false;
	while (buf.len && buf.data[buf.len - 1] == '\n')
		buf.data[--buf.len] = '\0';
	return buf.len && strcmp(buf.data, kr_arena_printf(&arena, "%s/.git", path)) == 0;
}

int
kr_worktree_forget(const char *common, const char *git_dir, const char *path, struct kr_error *err)
{
	/* Twice: also one that is locked. */
	const char *const argv[] = { "worktree", "remove", "--force", "--force", "--", path, NULL };
	const struct kr_git_where where = { .git_dir = common, .work_dir_fd = -1, .wall_s = WALL_S };
	struct stat st;

	if (!kr_worktree_is_linked(git_dir, path))
		return 0;
	if (lstat(path, &st) == 0)
		return kr_fail(err, KR_E_REFUSED, "the worktree '%s' is still there", path);
	return kr_git_run(&where, argv, NULL, err);
}

/* ---- snapshot ---- */

struct snapshot {
	struct kr_arena *arena;
	const struct kr_checkout *checkout;
	const char *index;
	const char *head_tree, *date; /* of HEAD */
};

static int
copy_bytes(int from, int to, struct kr_error *err)
{
	kr_auto_buf struct kr_buf buf = KR_BUF(INDEX_BYTES_MAX);

	if (kr_read_all(from, &buf, "index", err) < 0)
		return -1;
	return buf.len ? kr_write_all(to, buf.data, buf.len, err) : 0;
}

/*
 * Copies the index with its modification time: git takes an entry that is as young as the index for one that
 * may have changed since, and a copy that looked younger would hide such a change. No index is a valid one.
 */
static int
copy_index(const struct snapshot *s, struct kr_error *err)
{
	const char *source = kr_arena_printf(s->arena, "%s/index", s->checkout->git_dir);
	kr_auto_fd int from = open(source, O_RDONLY | O_CLOEXEC | O_NONBLOCK), to = -1;
	struct stat st;

	if (from < 0 && errno == ENOENT)
		return 0;
	if (from < 0 || fstat(from, &st) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot open '%s'", source);
	to = open(s->index, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (to < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot create '%s'", s->index);
	if (copy_bytes(from, to, err) < 0)
		return -1;
	if (futimens(to, (const struct timespec[]){ kr_atime(&st), kr_mtime(&st) }) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot set the time of '%s'", s->index);
	return 0;
}

/* One line of output, without its end. */
static const char *
ask(const struct snapshot *s, const char *const argv[], const char *const *extra_env, struct kr_error *err)
{
	const struct kr_git_where where = {
		.git_dir = s->checkout->git_dir,
		.work_tree = s->checkout->root,
		.index_file = s->index,
		.work_dir_fd = -1,
		.extra_env = extra_env,
	};
	kr_auto_buf struct kr_buf out = KR_BUF(4096);

	if (kr_git_run(&where, argv, &out, err) < 0)
		return NULL;
	while (out.len && out.data[out.len - 1] == '\n')
		out.data[--out.len] = '\0';
	return kr_arena_dup_n(s->arena, out.len ? out.data : "", out.len);
}

static int
read_head(struct snapshot *s, const char *head, struct kr_error *err)
{
	const char *const argv[] = { "log", "-1", "--format=%T %ct", head, "--", NULL };
	const char *line = ask(s, argv, NULL, err), *space = line ? strchr(line, ' ') : NULL;

	if (!line)
		return -1;
	if (!space)
		return kr_fail(err, KR_E_GIT, "git does not tell the tree of '%s'", head);
	s->head_tree = kr_arena_dup_n(s->arena, line, (size_t)(space - line));
	s->date = kr_arena_printf(s->arena, "@%s +0000", space + 1);
	return 0;
}

/* The commit has HEAD's date and a name of ours, so that the same state is the same commit, whoever asks and
 * when. */
static const char *
commit_tree(const struct snapshot *s, const char *head, const char *tree, struct kr_error *err)
{
	const char *const argv[] = { "commit-tree", "--no-gpg-sign", "-p", head, "-m",
		"uncommitted changes, taken along by kraft", tree, NULL };
	const char *const identity[] = {
		"GIT_AUTHOR_NAME=kraft",
		"GIT_AUTHOR_EMAIL=kraft@localhost",
		"GIT_COMMITTER_NAME=kraft",
		"GIT_COMMITTER_EMAIL=kraft@localhost",
		kr_arena_printf(s->arena, "GIT_AUTHOR_DATE=%s", s->date),
		kr_arena_printf(s->arena, "GIT_COMMITTER_DATE=%s", s->date),
		NULL,
	};

	return ask(s, argv, identity, err);
}

static const char *
take(struct snapshot *s, const char *head, struct kr_error *err)
{
	static const char *const add[] = { "add", "--all", NULL }, *const write_tree[] = { "write-tree", NULL };
	const char *tree;

	if (read_head(s, head, err) < 0 || copy_index(s, err) < 0 || !ask(s, add, NULL, err))
		return NULL;
	tree = ask(s, write_tree, NULL, err);
	if (!tree)
		return NULL;
	return strcmp(tree, s->head_tree) == 0 ? head : commit_tree(s, head, tree, err);
}

int
kr_checkout_snapshot(
	const struct kr_checkout *checkout, const char *head, char oid[KR_OID_HEX_MAX + 1], struct kr_error *err)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	char directory[] = "/tmp/kraft-index-XXXXXX";
	struct snapshot s = { .arena = &arena, .checkout = checkout };
	const char *commit;

	if (!mkdtemp(directory))
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a temporary directory in '/tmp'");
	s.index = kr_arena_printf(&arena, "%s/index", directory);
	commit = take(&s, head, err);
	(void)unlink(s.index); /* may not have been made */
	(void)unlink(kr_arena_printf(&arena, "%s.lock", s.index));
	(void)rmdir(directory); /* empty now */
	if (!commit)
		return kr_wrap(err, "cannot take the changes of '%s' along", checkout->root);
	if (strlen(commit) > KR_OID_HEX_MAX)
		return kr_fail(err, KR_E_GIT, "git gave no commit for the changes of '%s'", checkout->root);
	memcpy(oid, commit, strlen(commit) + 1);
	return 0;
}
