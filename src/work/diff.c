/*
 * What an item's branch changes, for a person who decides on it.
 *
 * It is made from two object ids of the person's repository: no file of the worktree, no private git
 * directory is opened (GIT-04). What is in the trees cannot make a change look like none (GIT-13, GIT-14):
 * replacement is off, attributes are read from nowhere that a tree reaches (git runs in an empty directory
 * with no index), so no `-diff`, no textconv and no driver applies, and no .gitmodules hides a submodule that
 * moved. Git itself then takes for binary what has a NUL byte at its beginning; that is said, and as_text
 * shows it all the same.
 */
#include "work/diff.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/portable.h"
#include "base/text.h"
#include "git/refs.h"

/* ---- an item's trees ---- */

static int
refuse_busy(const struct kr_item_seen *seen, const char *what, struct kr_error *err)
{
	if (!seen->is_busy)
		return 0;
	kr_fail(err, KR_E_BUSY, "a session runs in item '%s': %s will be there when the session ends", seen->id,
		what);
	return kr_hint(err, "'kraft view sessions --item %s' shows it", seen->id);
}

/* "kraft/x-3" after "kraft/x-2" after "kraft/x"; NULL: it is the first. */
static const char *
branch_before(struct kr_arena *arena, const char *id, const char *branch)
{
	const char *first = kr_arena_printf(arena, "kraft/%s", id);
	size_t n = strlen(first);
	uint64_t number;

	if (strncmp(branch, first, n) != 0 || branch[n] != '-' ||
		!kr_text_to_u64(branch + n + 1, INT32_MAX, &number) || number < 2)
		return NULL;
	return number == 2 ? first : kr_arena_printf(arena, "%s-%llu", first, (unsigned long long)number - 1);
}

/* A session that committed nothing has a branch that does not exist: then the one before it is the item's
 * newest. */
static int
find_branch(struct kr_arena *arena, struct kr_item_at *at, struct kr_error *err)
{
	for (const char *branch = at->seen.branch; branch; branch = branch_before(arena, at->id, branch)) {
		int found = kr_branch_read(&at->checkout, branch, at->tip, err);

		if (found < 0)
			return -1;
		if (found) {
			at->seen.branch = branch;
			return 0;
		}
	}
	at->tip[0] = '\0';
	return 0;
}

static int
find_tree(struct kr_arena *arena, struct kr_item_at *at, struct kr_error *err)
{
	if (kr_checkout_find(arena, at->seen.checkout, &at->checkout, err) < 0)
		return -1;
	if (strcmp(at->checkout.common, at->seen.git_common) != 0) {
		kr_fail(err, KR_E_REFUSED, "'%s' is another repository than the one that item '%s' was made from",
			at->checkout.root, at->id);
		return kr_hint(err, "'kraft item remove %s' forgets the item", at->id);
	}
	if (find_branch(arena, at, err) < 0 || kr_checkout_head(&at->checkout, at->head, err) < 0)
		return -1;
	at->ref = kr_arena_printf(arena, "refs/heads/%s", at->seen.branch);
	return 0;
}

int
kr_item_trees_of(struct kr_arena *arena, const struct kr_item_seen *seen, const char *what,
	struct kr_item_trees *out, struct kr_error *err)
{
	struct kr_item_trees trees = { 0 };

	if (refuse_busy(seen, what, err) < 0)
		return -1;
	trees.v = kr_arena_alloc(arena, seen->tree_count * sizeof(*trees.v));
	for (; trees.n < seen->tree_count; trees.n++) {
		trees.v[trees.n] = (struct kr_item_at){ .id = seen->id, .seen = seen->trees[trees.n] };
		if (find_tree(arena, &trees.v[trees.n], err) < 0)
			return -1;
	}
	*out = trees;
	return 0;
}

int
kr_item_trees_find(struct kr_arena *arena, const struct kr_host *host, const char *id, const char *what,
	struct kr_item_trees *out, struct kr_error *err)
{
	struct kr_item_seen seen;

	if (kr_item_look(arena, host->places.run_dir, id, &seen, err) < 0)
		return -1;
	return kr_item_trees_of(arena, &seen, what, out, err);
}

int
kr_item_only(struct kr_item_trees *trees, const char *member, struct kr_error *err)
{
	if (!member)
		return 0;
	for (size_t i = 1; i < trees->n; i++)
		if (strcmp(trees->v[i].seen.member, member) == 0) {
			trees->v += i;
			trees->n = 1;
			return 0;
		}
	kr_fail(err, KR_E_NOT_FOUND, "item '%s' has no member '%s'", trees->v->id, member);
	return kr_hint(err, "'kraft item list' shows its members");
}

/* ---- base ---- */

static int
merge_base(
	const struct kr_item_at *at, const char *commit, char base[KR_OID_HEX_MAX + 1], struct kr_error *err)
{
	const char *const argv[] = { "merge-base", at->tip, at->head, commit, NULL };
	const struct kr_git_where where = { .git_dir = at->checkout.common, .work_dir_fd = -1 };
	kr_auto_buf struct kr_buf out = KR_BUF(4096);

	if (kr_git_run(&where, argv, &out, err) < 0)
		return -1;
	while (out.len && out.data[out.len - 1] == '\n')
		out.data[--out.len] = '\0';
	if (!out.len || !kr_oid_is_valid(out.data, out.len))
		return kr_fail(err, KR_E_GIT, "git merge-base gave no commit");
	memcpy(base, out.data, out.len + 1);
	return 0;
}

/*
 * Three commits are asked about at once: the branch against HEAD and against what the worktree was made from,
 * whichever is nearer. The latter is a commit of its own beside HEAD when uncommitted changes were taken
 * along, and those are not the worker's.
 */
int
kr_item_base(const struct kr_item_at *at, char base[KR_OID_HEX_MAX + 1], struct kr_error *err)
{
	base[0] = '\0';
	if (*at->seen.commit && merge_base(at, at->seen.commit, base, NULL) == 0)
		return 0;
	if (merge_base(at, NULL, base, err) == 0)
		return 0;
	/* It says nothing when there is none. */
	if (err->code != KR_E_GIT || !strstr(err->message, "gave no reason"))
		return -1;
	*err = (struct kr_error){ 0 };
	return 0;
}

/* ---- the diff ---- */

/* The empty tree is known to every git without being stored. A git that has this variable takes attributes
 * from there. */
static const char *
empty_tree(const char *oid)
{
	return strlen(oid) == 40
			   ? "GIT_ATTR_SOURCE=4b825dc642cb6eb9a060e54bf8d69288fbee4904"
			   : "GIT_ATTR_SOURCE=6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321";
}

/* below: where the tree stands in the worktree; "" for the root. */
static void
add_words(struct kr_arena *arena, struct kr_strs *argv, const struct kr_diff_form *form, const char *below)
{
	const char *slash = *below ? "/" : "";
	static const char *const always[] = { "diff", "--no-ext-diff", "--no-textconv", "--no-color",
		"--no-relative", "--submodule=short", "--ignore-submodules=none", "--find-renames" };

	for (size_t i = 0; i < KR_COUNT(always); i++)
		kr_strs_add(arena, argv, always[i]);
	kr_strs_add(arena, argv, kr_arena_printf(arena, "--src-prefix=a/%s%s", below, slash));
	kr_strs_add(arena, argv, kr_arena_printf(arena, "--dst-prefix=b/%s%s", below, slash));
	if (*below && form->names_only)
		kr_strs_add(arena, argv, kr_arena_printf(arena, "--line-prefix=%s/", below));
	if (form->as_text)
		kr_strs_add(arena, argv, "--text");
	if (form->stat)
		kr_strs_add(arena, argv, "--stat=100");
	if (form->names_only)
		kr_strs_add(arena, argv, "--name-only");
}

struct diff {
	const struct kr_item_at *at;
	const struct kr_diff_form *form;
	const char *base;
	int (*sink)(void *context, const char *bytes, size_t n);
	void *context;
};

/* directory: an empty one, where git runs. */
static int
run_git(struct kr_arena *arena, const struct diff *diff, const char *directory, struct kr_error *err)
{
	const char *const attributes[] = { empty_tree(diff->at->tip), "GIT_ATTR_NOSYSTEM=1", NULL };
	kr_auto_fd int fd = open(directory, KR_O_PLACE | O_CLOEXEC);
	const struct kr_git_where where = {
		.git_dir = diff->at->checkout.common,
		.index_file = kr_arena_printf(arena, "%s/none", directory),
		.work_dir_fd = fd,
		.extra_env = attributes,
	};
	struct kr_git_run run = { 0 };
	struct kr_strs argv = { 0 };

	if (fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot open '%s'", directory);
	add_words(arena, &argv, diff->form, diff->at->seen.below);
	kr_strs_add(arena, &argv, diff->base);
	kr_strs_add(arena, &argv, diff->at->tip);
	kr_strs_add(arena, &argv, "--");
	if (kr_git_start(&where, argv.v, &run, err) < 0)
		return -1;
	run.sink = diff->sink;
	run.sink_context = diff->context;
	return kr_git_finish(&run, NULL, err);
}

int
kr_item_diff(struct kr_arena *arena, const struct kr_item_at *at, const char *base,
	const struct kr_diff_form *form, int (*sink)(void *context, const char *bytes, size_t n), void *context,
	struct kr_error *err)
{
	/* Histories with nothing in common: all of it is new. */
	const char *from = *base ? base : strchr(empty_tree(at->tip), '=') + 1;
	const struct diff diff = { at, form, from, sink, context };
	char directory[] = "/tmp/kraft-diff-XXXXXX";
	int result;

	if (!mkdtemp(directory))
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a temporary directory in '/tmp'");
	result = run_git(arena, &diff, directory, err);
	(void)rmdir(directory); /* git writes nothing there */
	return result;
}
