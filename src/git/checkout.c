/*
 * Finding the checkout that the person stands in, and its HEAD, without starting git: what is read here is
 * small, bounded, and read as data. Nothing in it is believed beyond what git itself would believe.
 *
 *   .git is a directory (or a link to one)    an ordinary checkout
 *   .git is a file, "gitdir: PATH"            a linked worktree (PATH has a `commondir`) or a submodule
 *
 * Because later git runs are given GIT_DIR, git no longer asks who owns the repository (CVE-2022-24765), so
 * it is asked here.
 */
#include "git/git.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "git/internal.h"

enum {
	POINTER_BYTES = 8192, /* a `.git` file, commondir, HEAD, a loose ref */
	SYMREFS_MAX = 5,      /* as git follows */
};

static const char *
resolve(struct kr_arena *arena, const char *path)
{
	char resolved[KR_PATH_MAX];

	return realpath(path, resolved) ? kr_arena_dup(arena, resolved) : NULL;
}

static bool
exists_in(const char *directory, const char *name)
{
	char path[KR_PATH_MAX];
	struct stat st;
	int len = snprintf(path, sizeof(path), "%s/%s", directory, name);

	return len > 0 && (size_t)len < sizeof(path) && lstat(path, &st) == 0;
}

/* What git takes for a git directory, less the part below `common`. */
static bool
looks_like_git_dir(const char *directory)
{
	return exists_in(directory, "HEAD") &&
		   (exists_in(directory, "commondir") ||
			   (exists_in(directory, "objects") && exists_in(directory, "refs")));
}

/* The bytes of a small file without its trailing newlines; NULL when it cannot be read or holds a NUL. */
static const char *
read_pointer(struct kr_arena *arena, int dir_fd, const char *path, struct kr_error *err)
{
	kr_auto_buf struct kr_buf buf = KR_BUF(POINTER_BYTES);

	if (kr_file_read_at(dir_fd, path, &buf, err) < 0)
		return NULL;
	while (buf.len && (buf.data[buf.len - 1] == '\n' || buf.data[buf.len - 1] == '\r'))
		buf.data[--buf.len] = '\0';
	if (!buf.len || memchr(buf.data, '\0', buf.len)) {
		kr_fail(err, KR_E_GIT, "'%s' is empty or not text", path);
		return NULL;
	}
	return kr_arena_dup_n(arena, buf.data, buf.len);
}

/* A path in a file of git's, relative to the file's directory. Paths may hold any byte but NUL. */
static const char *
resolve_pointer(struct kr_arena *arena, const char *directory, const char *path)
{
	return resolve(arena, path[0] == '/' ? path : kr_arena_printf(arena, "%s/%s", directory, path));
}

/* ---- which directory ---- */

static int
no_such_git_dir(const char *file, const char *target, struct kr_error *err)
{
	kr_fail(err, KR_E_NOT_FOUND, "'%s' points to the git directory '%s', which is not there", file, target);
	return kr_hint(
		err, "if the repository or the worktree was moved, 'git worktree repair' mends the pointer");
}

/* `.git` is a file. */
static int
follow_git_file(struct kr_arena *arena, const char *directory, struct kr_checkout *out, struct kr_error *err)
{
	const char *file = kr_arena_printf(arena, "%s/.git", directory);
	const char *text = read_pointer(arena, AT_FDCWD, file, err), *target, *git_dir;

	if (!text)
		return -1;
	if (!kr_text_has_prefix(text, "gitdir:"))
		return kr_fail(err, KR_E_NOT_FOUND, "'%s' is a file that does not say 'gitdir:'", file);
	target = text + strlen("gitdir:");
	target += *target == ' ';
	git_dir = resolve_pointer(arena, directory, target);
	if (!git_dir || !looks_like_git_dir(git_dir))
		return no_such_git_dir(file, target, err);
	out->git_dir = git_dir;
	return 0;
}

/* Fills out->common from out->git_dir. */
static int
find_common(struct kr_arena *arena, struct kr_checkout *out, struct kr_error *err)
{
	const char *text;

	out->common = out->git_dir;
	if (!exists_in(out->git_dir, "commondir"))
		return 0;
	text = read_pointer(arena, AT_FDCWD, kr_arena_printf(arena, "%s/commondir", out->git_dir), err);
	if (!text)
		return -1;
	out->common = resolve_pointer(arena, out->git_dir, text);
	if (!out->common || !exists_in(out->common, "objects"))
		return no_such_git_dir(kr_arena_printf(arena, "%s/commondir", out->git_dir), text, err);
	return 0;
}

bool
kr_worktree_is_of(const char *git_dir, const char *common)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const char *text = read_pointer(&arena, AT_FDCWD, kr_arena_printf(&arena, "%s/commondir", git_dir), NULL);
	const char *leads = text ? resolve_pointer(&arena, git_dir, text) : NULL;

	return leads && strcmp(leads, common) == 0;
}

/* 1: this is the top of a checkout; 0: look further up; -1: an error. */
static int
look_in(struct kr_arena *arena, const char *directory, struct kr_checkout *out, struct kr_error *err)
{
	const char *dot_git = kr_arena_printf(arena, "%s/.git", strlen(directory) == 1 ? "" : directory);
	struct stat st;

	if (stat(dot_git, &st) == 0 && S_ISDIR(st.st_mode)) {
		const char *git_dir = resolve(arena, dot_git);

		if (git_dir && looks_like_git_dir(git_dir)) {
			out->git_dir = git_dir;
			return 1;
		}
	} else if (stat(dot_git, &st) == 0 && S_ISREG(st.st_mode)) {
		return follow_git_file(arena, directory, out, err) < 0 ? -1 : 1;
	}
	if (!looks_like_git_dir(directory))
		return 0;
	kr_fail(err, KR_E_NOT_FOUND, "'%s' is a bare repository or a git directory, not a checkout", directory);
	return kr_hint(err, "stand in the working tree, or make one: git clone '%s'", directory);
}

/* ---- whose ---- */

static bool
is_ours(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && (st.st_uid == geteuid() || st.st_uid == 0);
}

static bool
safe_entry_names(const char *entry, const char *root)
{
	size_t n = strlen(entry);

	if (strcmp(entry, "*") == 0 || strcmp(entry, root) == 0)
		return true;
	return n > 2 && strcmp(entry + n - 2, "/*") == 0 && strncmp(entry, root, n - 1) == 0;
}

/* The person may have named it in safe.directory of their own configuration; asked in "/", outside of it. */
static bool
is_declared_safe(const char *root)
{
	static const char *const argv[] = { "config", "--includes", "-z", "--get-all", "safe.directory", NULL };
	struct kr_git_where where = { .work_dir_fd = -1 };
	kr_auto_buf struct kr_buf out = KR_BUF(1 << 20);
	bool safe = false;

	if (kr_git_run(&where, argv, &out, NULL) < 0)
		return false;
	for (size_t i = 0; i < out.len; i += strlen(out.data + i) + 1) {
		if (out.data[i] == '\0')
			safe = false; /* an empty value clears the list */
		else
			safe = safe || safe_entry_names(out.data + i, root);
	}
	return safe;
}

static int
check_owner(const struct kr_checkout *c, struct kr_error *err)
{
	if ((is_ours(c->root) && is_ours(c->git_dir) && is_ours(c->common)) || is_declared_safe(c->root))
		return 0;
	kr_fail(err, KR_E_OTHERS_CHECKOUT, "the repository at '%s' belongs to another user", c->root);
	return kr_hint(err, "if you trust it: git config --global --add safe.directory '%s'", c->root);
}

int
kr_checkout_find(struct kr_arena *arena, const char *start, struct kr_checkout *out, struct kr_error *err)
{
	struct kr_checkout found = { .root = resolve(arena, start) };
	int here = 0;

	if (!found.root)
		return kr_fail_errno(err, KR_E_NOT_FOUND, errno, "cannot find '%s'", start);
	while ((here = look_in(arena, found.root, &found, err)) == 0) {
		if (found.root[1] == '\0') {
			kr_fail(err, KR_E_NO_CHECKOUT, "'%s' is not inside a git checkout", start);
			return kr_hint(err, "go into one, or make one: git init && git commit");
		}
		found.root = kr_path_dirname(arena, found.root);
	}
	if (here < 0 || find_common(arena, &found, err) < 0 || check_owner(&found, err) < 0)
		return -1;
	*out = found;
	return 0;
}

/* ---- HEAD ---- */

static void
set_oid(char oid[KR_OID_HEX_MAX + 1], const char *hex, size_t n)
{
	memcpy(oid, hex, n);
	oid[n] = '\0';
}

/* What a name must be before it is used as a path below the git directory. */
static bool
is_plain_ref(const char *name)
{
	return kr_text_has_prefix(name, "refs/") && !strstr(name, "..") && !strstr(name, "//") &&
		   strlen(name) < 1024;
}

/* Refs that each worktree has of its own. */
static bool
is_per_worktree(const char *name)
{
	return kr_text_has_prefix(name, "refs/bisect/") || kr_text_has_prefix(name, "refs/worktree/") ||
		   kr_text_has_prefix(name, "refs/rewritten/");
}

enum answer { FOUND, ABSENT, ASK_GIT };

static enum answer
find_packed(const char *common, const char *name, char oid[KR_OID_HEX_MAX + 1])
{
	const struct kr_buf *text = kr_packed_refs_read(common, NULL);

	if (!text)
		return ASK_GIT;
	return text->len && kr_packed_refs_find(text->data, text->len, name, oid) > 0 ? FOUND : ABSENT;
}

/* Follows HEAD; `name` receives the last symbolic name met, for the message about one without a commit. */
static enum answer
follow_head(
	struct kr_arena *arena, const struct kr_checkout *c, const char **name, char oid[KR_OID_HEX_MAX + 1])
{
	*name = "HEAD";
	for (unsigned depth = 0; depth <= SYMREFS_MAX; depth++) {
		bool own = depth == 0 || is_per_worktree(*name);
		const char *path = kr_arena_printf(arena, "%s/%s", own ? c->git_dir : c->common, *name);
		struct kr_error err = { 0 };
		const char *text = read_pointer(arena, AT_FDCWD, path, &err);

		if (!text)
			return depth && (err.sys_errno == ENOENT || err.sys_errno == ENOTDIR || err.sys_errno == EISDIR)
					   ? find_packed(c->common, *name, oid)
					   : ASK_GIT;
		if (kr_oid_is_valid(text, strlen(text))) {
			set_oid(oid, text, strlen(text));
			return FOUND;
		}
		if (!kr_text_has_prefix(text, "ref:"))
			return ASK_GIT;
		*name = text + 4 + strspn(text + 4, " \t");
		if (!is_plain_ref(*name))
			return ASK_GIT;
	}
	return ASK_GIT;
}

static int
ask_git_for_head(const struct kr_checkout *c, char oid[KR_OID_HEX_MAX + 1], struct kr_error *err)
{
	static const char *const argv[] = { "rev-parse", "--verify", "HEAD^{commit}", NULL };
	const struct kr_git_where where = { .git_dir = c->git_dir, .work_tree = c->root, .work_dir_fd = -1 };
	kr_auto_buf struct kr_buf out = KR_BUF(1024);
	struct kr_error failed = { 0 };

	if (kr_git_run(&where, argv, &out, &failed) < 0) {
		if (exists_in(c->common, "reftable") && strstr(failed.message, "extension"))
			return kr_refs_not_read(c->common, failed.message, err);
		if (err)
			*err = failed;
		return kr_wrap(err, "cannot read HEAD of '%s'", c->root);
	}
	if (!out.len || !kr_oid_is_valid(out.data, out.len - 1))
		return kr_fail(err, KR_E_GIT, "git gave no commit for HEAD of '%s'", c->root);
	set_oid(oid, out.data, out.len - 1);
	return 0;
}

int
kr_checkout_head(const struct kr_checkout *checkout, char oid[KR_OID_HEX_MAX + 1], struct kr_error *err)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const char *name;

	/* With reftable HEAD names refs/heads/.invalid, for tools that would not notice. */
	if (exists_in(checkout->common, "reftable"))
		return ask_git_for_head(checkout, oid, err);
	switch (follow_head(&arena, checkout, &name, oid)) {
	case FOUND:
		return 0;
	case ABSENT:
		kr_fail(err, KR_E_NO_COMMIT, "'%s' has no commit yet: HEAD names '%s', which does not exist",
			checkout->root, name);
		return kr_hint(err, "make a first commit: git add -A && git commit");
	case ASK_GIT:
		break;
	}
	return ask_git_for_head(checkout, oid, err);
}
