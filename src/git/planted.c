/*
 * The walk goes by held descriptors, a directory at a time. Everything that it meets can be swapped meanwhile by a person
 * (no worker runs then): a directory that went away, or became something else, is passed over.
 *
 * Whoever walks a tree with a package manager's hundred thousand directories in it takes a moment, so a person who waits
 * for a start should not wait for this: it is done at a session's end, and the next start finds a mark (git/private.h).
 * Where a directory's link count tells that it has no directories in it, its names are not read; most are such.
 */
#include "git/planted.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#ifdef __linux__
#include <sys/vfs.h>
#endif
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"

enum {
	DEPTH_MAX = 256, /* each level holds a descriptor */
	DIFF_BYTES = 64 << 20,
	RAW_FIELDS = 5,
	LEAF_LINKS = 2, /* its name and its "." */
	MODE_LEN = 6,
};
static const char link_mode[] = "160000";

static void
add(struct kr_arena *arena, struct kr_planted *list, enum kr_planted_kind kind, const char *path)
{
	if (list->n == KR_PLANTED_MAX) {
		list->has_more = true;
		return;
	}
	if (list->n == list->cap) {
		size_t cap = list->cap ? 2 * list->cap : 16;
		struct kr_planted_found *v = kr_arena_alloc(arena, cap * sizeof(*v));

		if (list->n)
			memcpy(v, list->v, list->n * sizeof(*v));
		list->v = v;
		list->cap = cap;
	}
	list->v[list->n++] = (struct kr_planted_found){ kind, kr_arena_dup(arena, path) };
}

void
kr_planted_append(struct kr_arena *arena, struct kr_planted *list, const struct kr_planted *more)
{
	for (size_t i = 0; i < more->n; i++)
		add(arena, list, more->v[i].kind, more->v[i].path);
	list->has_more = list->has_more || more->has_more;
}

/* ---- the walk ---- */

struct walk {
	struct kr_arena *arena;
	const struct kr_strs *own;
	struct kr_planted *out;
	char path[KR_PATH_MAX]; /* of the present directory, relative; "" at the top */
	size_t len;
	int depth;
	bool counts_links; /* as Unix always did, and not every file system does */
};

static int walk_into(struct walk *w, int dir_fd, const char *name, struct kr_error *err);

static bool
is_gone(int error)
{
	return error == ENOENT || error == ENOTDIR || error == ELOOP;
}

static bool
counts_links(int fd)
{
#ifdef __linux__
	static const uint64_t kinds[] = { 0xEF53 /* ext */, 0x58465342 /* XFS */, 0x01021994 /* tmpfs */,
		0x794c7630 /* overlay: 1 where it does not know */ };
	struct statfs fs;

	for (size_t i = 0; fstatfs(fd, &fs) == 0 && i < KR_COUNT(kinds); i++)
		if ((uint64_t)fs.f_type == kinds[i])
			return true;
#endif
	(void)fd;
	return false;
}

static bool
is_leaf(const struct walk *w, int fd)
{
	struct stat st;

	return w->counts_links && fstat(fd, &st) == 0 && st.st_nlink == LEAF_LINKS;
}

/* 1: it is to be looked into. */
static int
judge(struct walk *w, int fd, struct kr_error *err)
{
	struct stat st;

	if (fstatat(fd, ".git", &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (w->own && kr_strs_has(w->own, w->path))
			return 0;
		add(w->arena, w->out, KR_PLANTED_REPOSITORY, w->path);
		return 0;
	}
	if (is_gone(errno))
		return !is_leaf(w, fd);
	if (errno != EACCES)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot look into '%s' of the worktree", w->path);
	add(w->arena, w->out, KR_PLANTED_CLOSED, w->path);
	return 0;
}

static bool
may_be_directory(int dir_fd, const struct dirent *e)
{
	struct stat st;

	if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || strcmp(e->d_name, ".git") == 0)
		return false;
	if (e->d_type != DT_UNKNOWN)
		return e->d_type == DT_DIR;
	return fstatat(dir_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

/* Takes the descriptor. */
static int
walk_through(struct walk *w, int fd, struct kr_error *err)
{
	DIR *dir = fdopendir(fd);
	const struct dirent *e;
	int result = 0;

	if (!dir) {
		kr_close_p(&fd);
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot look into '%s' of the worktree", w->path);
	}
	while (!result && !w->out->has_more && (errno = 0, e = readdir(dir)))
		if (may_be_directory(fd, e))
			result = walk_into(w, fd, e->d_name, err);
	if (!result && !w->out->has_more && errno)
		result = kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot read '%s' of the worktree", w->path);
	closedir(dir);
	return result;
}

static int
open_and_walk(struct walk *w, int dir_fd, const char *name, struct kr_error *err)
{
	kr_auto_fd int fd =
		openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	int go_on;

	if (fd < 0 && is_gone(errno))
		return 0;
	if (fd < 0 && errno == EACCES) {
		add(w->arena, w->out, KR_PLANTED_CLOSED, w->path);
		return 0;
	}
	if (fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot open '%s' of the worktree", w->path);
	go_on = judge(w, fd, err);
	return go_on > 0 ? walk_through(w, kr_steal_fd(fd), err) : go_on;
}

static int
walk_into(struct walk *w, int dir_fd, const char *name, struct kr_error *err)
{
	const size_t before = w->len, n = strlen(name);
	int result = 0;

	if (w->depth == DEPTH_MAX || before + n + 2 > sizeof(w->path)) {
		add(w->arena, w->out, KR_PLANTED_CLOSED, w->path);
		return 0;
	}
	if (before)
		w->path[w->len++] = '/';
	memcpy(w->path + w->len, name, n + 1);
	w->len += n;
	w->depth++;
	result = open_and_walk(w, dir_fd, name, err);
	w->depth--;
	w->len = before;
	w->path[before] = '\0';
	return result;
}

int
kr_planted_walk(struct kr_arena *arena, const char *worktree, const struct kr_strs *own, struct kr_planted *out,
	struct kr_error *err)
{
	struct kr_planted found = { 0 };
	struct walk w = { .arena = arena, .own = own, .out = &found };
	int fd = kr_path_open(worktree, O_RDONLY | O_DIRECTORY, err);

	if (fd < 0)
		return -1;
	w.counts_links = counts_links(fd);
	if (walk_through(&w, fd, err) < 0)
		return -1;
	*out = found;
	return 0;
}

/* ---- what is ignored ---- */

/* A path that begins with ':' would be magic to git, and check-ignore knows no --literal-pathspecs. */
static const char here[] = "./";

const char *const *
kr_planted_ask(struct kr_arena *arena, const struct kr_private *git, const struct kr_planted *found,
	const char **stdin_bytes, size_t *stdin_len)
{
	const char *const words[] = { "git", kr_arena_printf(arena, "--git-dir=%s", kr_private_git_dir(git)),
		"--work-tree=.", "check-ignore", "-z", "--stdin" };
	struct kr_strs argv = { 0 };
	size_t len = 0;
	char *bytes, *p;

	for (size_t i = 0; i < KR_COUNT(words); i++)
		kr_strs_add(arena, &argv, words[i]);
	for (size_t i = 0; i < found->n; i++)
		len += strlen(here) + strlen(found->v[i].path) + 1;
	p = bytes = kr_arena_alloc(arena, len + 1);
	for (size_t i = 0; i < found->n; i++)
		p = stpcpy(stpcpy(p, here), found->v[i].path) + 1;
	*stdin_bytes = bytes;
	*stdin_len = len;
	return argv.v;
}

/* The place of a path at or after `from`. */
static size_t
place_of(const struct kr_planted *found, size_t from, const char *path)
{
	while (from < found->n && strcmp(found->v[from].path, path) != 0)
		from++;
	return from;
}

/* The same for a path of an answer, which comes in the order of the question. */
static size_t
place_of_answer(const struct kr_planted *found, size_t from, const char *answer)
{
	if (!kr_text_has_prefix(answer, here))
		return found->n;
	return place_of(found, from, answer + strlen(here));
}

static bool
is_answer(const struct kr_planted *found, const char *bytes, size_t n)
{
	size_t at = 0;

	if (n && bytes[n - 1])
		return false;
	for (const char *p = bytes; p < bytes + n; p += strlen(p) + 1) {
		at = place_of_answer(found, at, p);
		if (at++ == found->n)
			return false;
	}
	return true;
}

bool
kr_planted_drop_ignored(struct kr_planted *found, const char *bytes, size_t n)
{
	size_t at = 0, kept = 0;

	if (!is_answer(found, bytes, n))
		return false;
	for (const char *p = bytes; p < bytes + n; p += strlen(p) + 1) {
		const size_t ignored = place_of_answer(found, at, p);

		while (at < ignored)
			found->v[kept++] = found->v[at++];
		at++;
	}
	while (at < found->n)
		found->v[kept++] = found->v[at++];
	found->n = kept;
	return true;
}

/* ---- links ---- */

/* One entry: ":mode mode oid oid X" NUL path NUL. Returns its length, 0 when it is none. */
static size_t
parse_entry(const char *bytes, size_t n, bool *is_link, const char **path)
{
	const char *end = memchr(bytes, '\0', n), *path_end;
	int spaces = 0;

	if (!end || bytes[0] != ':')
		return 0;
	for (const char *p = bytes; p < end; p++)
		spaces += *p == ' ';
	/* Without -M and -C there is one path, and the status is one letter. */
	if (spaces != RAW_FIELDS - 1 || end - bytes < 2 * (MODE_LEN + 1) || bytes[MODE_LEN + 1] != ' ' || end[-2] != ' ' ||
		end[-1] < 'A' || end[-1] > 'Z')
		return 0;
	*path = end + 1;
	path_end = memchr(*path, '\0', n - (size_t)(*path - bytes));
	if (!path_end || path_end == *path)
		return 0;
	*is_link = memcmp(bytes + MODE_LEN + 2, link_mode, MODE_LEN) == 0;
	return (size_t)(path_end + 1 - bytes);
}

bool
kr_planted_links_parse(struct kr_arena *arena, const char *bytes, size_t n, struct kr_planted *out)
{
	const struct kr_planted before = *out;

	for (size_t at = 0, len; at < n; at += len) {
		bool is_link;
		const char *path;

		len = parse_entry(bytes + at, n - at, &is_link, &path);
		if (!len) {
			*out = before;
			return false;
		}
		if (is_link)
			add(arena, out, KR_PLANTED_LINK, path);
	}
	return true;
}

int
kr_planted_links(struct kr_arena *arena, const char *common, const char *from, const char *to, struct kr_planted *out,
	struct kr_error *err)
{
	const char *const argv[] = { "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", from, to, "--", NULL };
	const struct kr_git_where where = { .git_dir = common, .work_dir_fd = -1 };
	kr_auto_buf struct kr_buf text = KR_BUF(DIFF_BYTES);

	if (strcmp(from, to) == 0)
		return 0;
	if (kr_git_run(&where, argv, &text, err) < 0)
		return -1;
	if (!kr_planted_links_parse(arena, text.data ? text.data : "", text.len, out))
		return kr_fail(err, KR_E_GIT, "git diff-tree printed what kraft cannot read");
	return 0;
}

void
kr_planted_keep_common(struct kr_planted *links, const struct kr_planted *other)
{
	size_t kept = 0, at = 0;

	/* Both are in git's order of paths. */
	for (size_t i = 0; i < links->n; i++) {
		const size_t found = place_of(other, at, links->v[i].path);

		if (found == other->n)
			continue;
		at = found + 1;
		links->v[kept++] = links->v[i];
	}
	links->n = kept;
}

/* ---- for a person ---- */

const char *
kr_planted_say(struct kr_arena *arena, const struct kr_planted_found *found)
{
	static const char *const phrases[] = {
		[KR_PLANTED_REPOSITORY] = "is a git repository that kraft did not make",
		[KR_PLANTED_CLOSED] = "is a directory that cannot be looked into",
		[KR_PLANTED_LINK] = "is a link to a commit of another repository that the item's branch brought",
	};
	char shown[256];

	kr_text_escape(shown, sizeof(shown), found->path, strlen(found->path));
	return kr_arena_printf(arena, "'%s' %s", shown, phrases[found->kind]);
}

const char *
kr_planted_sum_up(struct kr_arena *arena, const struct kr_planted *found)
{
	const char *first = kr_planted_say(arena, &found->v[0]);

	if (found->n == 1)
		return first;
	return kr_arena_printf(arena, "%s, and %s%zu more %s in the way", first, found->has_more ? "at least " : "",
		found->n - 1, found->n == 2 ? "is" : "are");
}
