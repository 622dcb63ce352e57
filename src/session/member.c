/*
 * A workspace's members in an item's worktree.
 *
 * A worker can write all around a member, and a session without walls, or the person, can do anything between two
 * sessions. So before each launch a member is looked at anew, by descriptors that follow no link, and held against what
 * is known from elsewhere: the repository that is connected, and the git directory that kraft recorded when it made the
 * member. Nothing that is found in the worktree chooses a path. What was looked at is what is mounted: the launch compares
 * device and inode of each directory on the way (session/open.c).
 *
 * Five things can be wrong, and each stops the item: 1. the path does not lead to a directory of the worktree; 2. a
 * symbolic link is on the way; 3. `.git` is not the file that names the member's git directory; 4. that directory does
 * not name the member; 5. it does not belong to the member's repository.
 *
 * Must not: run git here, or change anything.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/portable.h"
#include "base/text.h"
#include "os/sys.h"
#include "session/item.h"

enum { ANSWER_BYTES = 1 << 20 };

const char *
kr_tree_words(struct kr_arena *arena, const char *item, const struct kr_tree *tree)
{
	return *tree->member ? kr_arena_printf(arena, "member '%s' of item '%s'", tree->member, item)
						 : kr_arena_printf(arena, "item '%s'", item);
}

/* The next component of a relative path; its end, or NULL when there is none. */
static const char *
next_component(const char *at, char name[KR_PATH_MAX])
{
	size_t n = strcspn(at, "/");

	if (n == 0 || n >= KR_PATH_MAX)
		return NULL;
	memcpy(name, at, n);
	name[n] = '\0';
	return at + n + (at[n] == '/');
}

int
kr_member_open(int top_fd, const char *below)
{
	int fd = openat(top_fd, ".", KR_O_PLACE | O_CLOEXEC);
	char name[KR_PATH_MAX];

	for (const char *at = below; fd >= 0 && (at = next_component(at, name));) {
		int next = openat(fd, name, KR_O_PLACE | O_NOFOLLOW | O_CLOEXEC);

		kr_close_p(&fd);
		fd = next;
	}
	return fd;
}

/* ---- room in the root's commit ---- */

struct room {
	struct kr_arena *arena;
	const struct kr_tree *root;
	struct kr_strs paths;               /* asked for, in this order */
	const struct kr_tree *member[4096]; /* whose each is */
	bool is_last[4096];
};

static int
ask_for(struct room *r, const struct kr_tree *tree, struct kr_error *err)
{
	char name[KR_PATH_MAX];

	for (const char *at = tree->below; (at = next_component(at, name));) {
		size_t n = (size_t)(at - tree->below) - (at[-1] == '/');

		if (r->paths.n == KR_COUNT(r->member))
			return kr_fail(err, KR_E_LIMIT, "the members' paths have more than %zu directories", r->paths.n);
		r->member[r->paths.n] = tree;
		r->is_last[r->paths.n] = !*at;
		kr_strs_add(r->arena, &r->paths, kr_arena_dup_n(r->arena, tree->below, n));
	}
	return 0;
}

/* "<id> <type> <size>", or "... missing": nothing is there, or the entry is a submodule's, whose commit is elsewhere. */
static int
judge(const struct room *r, size_t i, const char *line, struct kr_error *err)
{
	const char *type = strchr(line, ' ');
	size_t n = strlen(line);
	bool is_free = n > 8 && strcmp(line + n - 8, " missing") == 0;

	is_free = is_free || (n > 10 && strcmp(line + n - 10, " submodule") == 0) ||
			  (type && kr_text_has_prefix(type, " commit "));
	if (is_free || (type && !r->is_last[i] && kr_text_has_prefix(type, " tree ")))
		return 0;
	kr_fail(err, KR_E_REFUSED, "member '%s' has no place: commit %.12s of '%s' has something at '%s'",
		r->member[i]->member, r->root->wanted, r->root->checkout.root, r->paths.v[i]);
	return kr_hint(err, "give the member another path in repos.yaml, or take '%s' out of the root's repository",
		r->paths.v[i]);
}

static int
ask(struct room *r, struct kr_buf *out, struct kr_error *err)
{
	static const char *const argv[] = { "cat-file", "--batch-check", NULL };
	kr_auto_buf struct kr_buf names = KR_BUF(ANSWER_BYTES);
	kr_auto_fd int in = -1;
	struct kr_git_where where = { .git_dir = r->root->checkout.common, .work_dir_fd = -1 };

	for (size_t i = 0; i < r->paths.n; i++)
		kr_buf_addf(&names, "%s:%s\n", r->root->wanted, r->paths.v[i]);
	if (names.overflow)
		return kr_fail(err, KR_E_LIMIT, "the members' paths are too long");
	in = kr_memory_file("kraft-paths", names.data, names.len, err);
	if (in < 0)
		return -1;
	where.stdin_fd = in;
	return kr_git_run(&where, argv, out, err);
}

int
kr_members_check_room(struct kr_arena *arena, const struct kr_tree *trees, size_t count, struct kr_error *err)
{
	struct room *r = kr_arena_new(arena, struct room);
	kr_auto_buf struct kr_buf out = KR_BUF((size_t)4 * ANSWER_BYTES);
	char *line;

	if (count < 2)
		return 0;
	r->arena = arena;
	r->root = trees;
	for (size_t i = 1; i < count; i++)
		if (ask_for(r, &trees[i], err) < 0)
			return -1;
	if (ask(r, &out, err) < 0)
		return -1;
	line = out.len ? out.data : NULL;
	for (size_t i = 0; i < r->paths.n; i++) {
		size_t n = line ? strcspn(line, "\n") : 0;

		if (!line || line[n] != '\n')
			return kr_fail(err, KR_E_GIT, "git did not tell what is at '%s'", r->paths.v[i]);
		line[n] = '\0';
		if (judge(r, i, line, err) < 0)
			return -1;
		line += n + 1;
	}
	return 0;
}

/* ---- making ---- */

int
kr_member_make_place(const char *top, const struct kr_tree *tree, struct kr_error *err)
{
	kr_auto_fd int fd = kr_path_open(top, KR_O_PLACE, err);
	char name[KR_PATH_MAX];

	if (fd < 0)
		return -1;
	for (const char *at = tree->below; (at = next_component(at, name)) && *at;) {
		int next;

		if (mkdirat(fd, name, 0777) < 0 && errno != EEXIST)
			return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make the way to member '%s'", tree->member);
		next = openat(fd, name, KR_O_PLACE | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make the way to member '%s'", tree->member);
		kr_close_p(&fd);
		fd = next;
	}
	return 0;
}

/* ---- checking ---- */

struct check {
	struct kr_arena *arena;
	const char *item, *top;
	const struct kr_tree *tree;
	struct kr_plan_place *places;
	size_t place_count;
	struct kr_error *err;
};

static int
refuse(const struct check *c, const char *why)
{
	kr_fail(c->err, KR_E_REFUSED, "%s is not the checkout that kraft made: %s",
		kr_tree_words(c->arena, c->item, c->tree), why);
	return kr_hint(c->err,
		"put back what was at '%s', or begin anew: 'kraft item remove %s' (its branches stay)", c->tree->worktree,
		c->item);
}

/* One step on the way: path is where it leads. Takes *fd along. */
static int
step_into(struct check *c, int *fd, const char *name, const char *path, dev_t device)
{
	kr_auto_fd int next = openat(*fd, name, KR_O_LOOK | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (next < 0 || fstat(next, &st) < 0)
		return refuse(c, kr_arena_printf(c->arena, "'%s' cannot be reached: %s", path, strerror(errno)));
	if (S_ISLNK(st.st_mode))
		return refuse(c, kr_arena_printf(c->arena, "'%s' is a symbolic link", path));
	if (!S_ISDIR(st.st_mode))
		return refuse(c, kr_arena_printf(c->arena, "'%s' is not a directory", path));
	if (st.st_dev != device)
		return refuse(c, kr_arena_printf(c->arena, "'%s' leads out of the worktree, to another file system", path));
	c->places[c->place_count++] =
		(struct kr_plan_place){ .path = path, .device = (uint64_t)st.st_dev, .inode = (uint64_t)st.st_ino };
	kr_close_p(fd);
	*fd = kr_steal_fd(next);
	return 0;
}

/* The member's directory; -1 when it is refused. */
static int
walk(struct check *c)
{
	kr_auto_fd int fd = kr_path_open(c->top, KR_O_PLACE, c->err);
	char name[KR_PATH_MAX];
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return kr_fail_errno(c->err, KR_E_SYSTEM, errno, "cannot look at '%s'", c->top);
	for (const char *at = c->tree->below; (at = next_component(at, name));) {
		size_t n = (size_t)(at - c->tree->below) - (at[-1] == '/');
		const char *path = kr_arena_printf(c->arena, "%s/%.*s", c->top, (int)n, c->tree->below);

		if (step_into(c, &fd, name, path, st.st_dev) < 0)
			return -1;
	}
	return kr_steal_fd(fd);
}

static bool
names_git_dir(struct check *c, int member_fd)
{
	kr_auto_buf struct kr_buf buf = KR_BUF((size_t)2 * KR_PATH_MAX);
	kr_auto_fd int fd = kr_path_open_below(member_fd, ".git", O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && kr_read_all(fd, &buf, ".git", NULL) == 0 &&
		   buf.len && strcmp(buf.data, kr_arena_printf(c->arena, "gitdir: %s\n", c->tree->git_dir)) == 0;
}

static int
check_git(struct check *c, int member_fd)
{
	const struct kr_tree *tree = c->tree;
	const char *admin = kr_arena_printf(c->arena, "%s/worktrees", tree->checkout.common);

	if (!*tree->git_dir || strcmp(kr_path_dirname(c->arena, tree->git_dir), admin) != 0)
		return refuse(c, kr_arena_printf(c->arena, "its git directory '%s' is not in '%s'", tree->git_dir, admin));
	if (!names_git_dir(c, member_fd))
		return refuse(c, kr_arena_printf(c->arena, "its '.git' is not the file that names '%s'", tree->git_dir));
	if (!kr_worktree_is_linked(tree->git_dir, tree->worktree))
		return refuse(c, kr_arena_printf(c->arena, "'%s/gitdir' does not name it", tree->git_dir));
	if (!kr_worktree_is_of(tree->git_dir, tree->checkout.common))
		return refuse(c, kr_arena_printf(c->arena, "'%s/commondir' does not lead to '%s'", tree->git_dir,
							 tree->checkout.common));
	return 0;
}

int
kr_member_check(struct kr_arena *arena, const char *item, const char *top, const struct kr_tree *tree,
	struct kr_plan_place **places, size_t *place_count, struct kr_error *err)
{
	struct check c = { .arena = arena, .item = item, .top = top, .tree = tree, .err = err };
	kr_auto_fd int fd = -1;

	c.places = kr_arena_alloc(arena, (strlen(tree->below) / 2 + 1) * sizeof(*c.places));
	fd = walk(&c);
	if (fd < 0 || check_git(&c, fd) < 0)
		return -1;
	if (places) {
		*places = c.places;
		*place_count = c.place_count;
	}
	return 0;
}
