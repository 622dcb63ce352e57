/*
 * kraft view diff: what an item's branch changes, for a person who decides on it.
 *
 * It is made from two object ids of the person's repository: no file of the worktree, no private git
 * directory is opened (GIT-04). What is in the trees cannot make a change look like none (GIT-13, GIT-14):
 * replacement is off, attributes are read from nowhere that a tree reaches (git runs in an empty directory
 * with no index), so no `-diff`, no textconv and no driver applies, and no .gitmodules hides a submodule that
 * moved. Git itself then takes for binary what has a NUL byte at its beginning; that is said, and --text
 * shows it all the same.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/item.h"
#include "cli/patch.h"
#include "store/store.h"

enum { JSON_BYTES = 64 << 20 }; /* of the changes in one tree */

enum { STAT, NAME_ONLY, TEXT, MEMBER, JSON };
static const struct kr_option options[] = {
	[STAT] = { "stat", 0, NULL, "how much of each file changed, in place of the changes" },
	[NAME_ONLY] = { "name-only", 0, NULL, "only the names of the files that changed" },
	[TEXT] = { "text", 0, NULL, "show what looks binary as text, too" },
	[MEMBER] = { "member", 0, "NAME", "only what changed in this member of the item's workspace" },
	[JSON] = { "json", 0, NULL, "one object for each tree, the changes as text in it" },
	{ NULL },
};

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
add_words(struct kr_arena *arena, struct kr_strs *argv, const struct kr_parsed *parsed, const char *below)
{
	const char *slash = *below ? "/" : "";
	static const char *const always[] = { "diff", "--no-ext-diff", "--no-textconv", "--no-color",
		"--no-relative", "--submodule=short", "--ignore-submodules=none", "--find-renames" };

	for (size_t i = 0; i < KR_COUNT(always); i++)
		kr_strs_add(arena, argv, always[i]);
	kr_strs_add(arena, argv, kr_arena_printf(arena, "--src-prefix=a/%s%s", below, slash));
	kr_strs_add(arena, argv, kr_arena_printf(arena, "--dst-prefix=b/%s%s", below, slash));
	if (*below && parsed->value[NAME_ONLY])
		kr_strs_add(arena, argv, kr_arena_printf(arena, "--line-prefix=%s/", below));
	if (parsed->value[TEXT])
		kr_strs_add(arena, argv, "--text");
	if (parsed->value[STAT])
		kr_strs_add(arena, argv, "--stat=100");
	if (parsed->value[NAME_ONLY])
		kr_strs_add(arena, argv, "--name-only");
}

struct show {
	const struct kr_item_at *at;
	const struct kr_parsed *parsed;
	const char *base; /* NULL: there is no commit yet */
	char oid[KR_OID_HEX_MAX + 1];
	bool is_too_long;
	struct kr_patch patch;
};

static bool
is_patch(const struct kr_parsed *parsed)
{
	return !parsed->value[STAT] && !parsed->value[NAME_ONLY];
}

/* Of type kr_git_run.sink. What goes into one JSON text is kept whole, so it has a bound. */
static int
add(void *context, const char *bytes, size_t n)
{
	struct show *show = context;

	if (kr_patch_add(&show->patch, bytes, n) < 0)
		return -1;
	show->is_too_long = show->parsed->value[JSON] && ftello(show->patch.out) > JSON_BYTES;
	return show->is_too_long ? -1 : 0;
}

/* directory: an empty one, where git runs. */
static int
run_git(struct kr_arena *arena, struct show *show, const char *directory, struct kr_error *err)
{
	const char *const attributes[] = { empty_tree(show->at->tip), "GIT_ATTR_NOSYSTEM=1", NULL };
	kr_auto_fd int fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const struct kr_git_where where = {
		.git_dir = show->at->checkout.common,
		.index_file = kr_arena_printf(arena, "%s/none", directory),
		.work_dir_fd = fd,
		.extra_env = attributes,
	};
	struct kr_git_run run = { 0 };
	struct kr_strs argv = { 0 };

	if (fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot open '%s'", directory);
	add_words(arena, &argv, show->parsed, show->at->seen.below);
	kr_strs_add(arena, &argv, show->base);
	kr_strs_add(arena, &argv, show->at->tip);
	kr_strs_add(arena, &argv, "--");
	if (kr_git_start(&where, argv.v, &run, err) < 0)
		return -1;
	run.sink = add;
	run.sink_context = show;
	return kr_git_finish(&run, NULL, err);
}

static int
show_diff(struct kr_arena *arena, struct show *show, struct kr_error *err)
{
	char directory[] = "/tmp/kraft-diff-XXXXXX";
	int result;

	if (!mkdtemp(directory))
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a temporary directory in '/tmp'");
	result = run_git(arena, show, directory, err);
	(void)rmdir(directory); /* git writes nothing there */
	kr_patch_end(&show->patch);
	if (show->is_too_long) {
		kr_fail(err, KR_E_LIMIT, "the changes in item '%s' are more than %d MiB of text", show->at->id,
			JSON_BYTES >> 20);
		return kr_hint(err, "without --json they are printed at any length");
	}
	if (result < 0 && ferror(stdout)) {
		*err = (struct kr_error){ 0 }; /* whoever read it has seen enough; main tells of a full disk */
		return 0;
	}
	return result;
}

static void
tell(const struct show *show)
{
	const struct kr_tree_seen *seen = &show->at->seen;

	fflush(stdout);
	if (show->patch.binary && is_patch(show->parsed))
		fprintf(stderr,
			"kraft: %zu file%s binary to git, so what changed in %s is not shown; --text shows it\n",
			show->patch.binary, show->patch.binary == 1 ? " is" : "s are",
			show->patch.binary == 1 ? "it" : "them");
	if (seen->is_pending)
		fprintf(stderr,
			"kraft: the last session was cut off, and commits of it are not here yet; "
			"'kraft run --item %s --keep -- true' brings them\n",
			show->at->id);
}

/* A table of files has no place for a path in front of each. */
static void
print_heading(const struct kr_item_at *at)
{
	char below[4096];

	kr_text_escape(below, sizeof(below), at->seen.below, strlen(at->seen.below));
	printf("%s/:\n", below);
}

static int
find_base(struct show *show, struct kr_error *err)
{
	const struct kr_item_at *at = show->at;

	if (!*at->tip)
		return 0;
	if (kr_item_base(at, show->oid, err) < 0)
		return -1;
	/* Histories with nothing in common: all of it is new. */
	show->base = *show->oid ? show->oid : strchr(empty_tree(at->tip), '=') + 1;
	return 0;
}

static int
diff_tree(struct kr_arena *arena, struct show *show, struct kr_error *err)
{
	const struct kr_item_at *at = show->at;

	show->patch.out = stdout;
	show->patch.colour = kr_colour_on(STDOUT_FILENO) && is_patch(show->parsed);
	if (show->base && show->parsed->value[STAT] && *at->seen.below && strcmp(show->base, at->tip) != 0)
		print_heading(at);
	return show->base ? show_diff(arena, show, err) : 0;
}

static int
diff_json(struct kr_arena *arena, struct show *show, json_t *trees, struct kr_error *err)
{
	const struct kr_item_at *at = show->at;
	kr_auto_free char *text = NULL;
	size_t n;
	int result;

	show->patch.out = open_memstream(&text, &n);
	if (!show->patch.out)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot keep the changes");
	result = show->base ? show_diff(arena, show, err) : 0;
	if (fclose(show->patch.out) != 0 && result == 0)
		result = kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot keep the changes");
	if (result < 0)
		return -1;
	if (json_array_append_new(
			trees, json_pack("{s:s, s:o, s:s, s:s, s:s?, s:o, s:b, s:s}", "item", at->id, "member",
					   kr_text_or_null(at->seen.member), "checkout", at->seen.checkout, "branch",
					   at->seen.branch, "base", show->base, "tip", kr_text_or_null(at->tip), "cut_off",
					   (int)at->seen.is_pending, "changes", text)) < 0)
		return kr_fail(
			err, KR_E_UNSUPPORTED, "the names of item '%s' are not UTF-8, which JSON has to be", at->id);
	return 0;
}

static int
diff_trees(struct kr_arena *arena, const struct kr_parsed *parsed, const struct kr_item_trees *trees,
	json_t *json, struct kr_error *err)
{
	for (size_t i = 0; i < trees->n; i++) {
		struct show *show = kr_arena_new(arena, struct show);

		*show = (struct show){ .at = &trees->v[i], .parsed = parsed };
		if (find_base(show, err) < 0 ||
			(json ? diff_json(arena, show, json, err) : diff_tree(arena, show, err)) < 0)
			return -1;
		tell(show);
	}
	return 0;
}

static int
print_trees(struct kr_arena *arena, const struct kr_parsed *parsed, const struct kr_item_trees *trees,
	struct kr_error *err)
{
	json_t *json = parsed->value[JSON] ? json_array() : NULL;
	int result = diff_trees(arena, parsed, trees, json, err);

	if (result == 0 && json)
		return kr_print_json(json, err);
	json_decref(json);
	return result;
}

static int
diff(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct kr_item_trees trees;
	bool has_commits = false;

	if (parsed->value[STAT] && parsed->value[NAME_ONLY])
		return kr_fail(err, KR_E_USAGE, "'--stat' and '--name-only' exclude each other");
	if (kr_item_find(arena, parsed->word_count ? parsed->words[0] : NULL, "the diff", &trees, err) < 0 ||
		kr_item_only(&trees, parsed->value[MEMBER], err) < 0)
		return -1;
	for (size_t i = 0; i < trees.n; i++)
		has_commits = has_commits || *trees.v[i].tip;
	if (print_trees(arena, parsed, &trees, err) < 0)
		return -1;
	if (!has_commits && isatty(STDERR_FILENO))
		fprintf(stderr, "kraft: nothing was committed in item '%s' yet\n", trees.v->id);
	return 0;
}

const struct kr_command kr_cmd_view_diff = {
	.name = "view diff",
	.usage = "[OPTIONS] [ITEM]",
	.summary = "print what was committed in an item",
	.help =
		"What the item's branch changes since it left yours: only what was committed inside, and none of\n"
		"your own later commits. Without an item: the repository's own, of a plain 'kraft run'.\n"
		"Of a workspace's item all members are shown, each file with the path of its member in front.\n"
		"While a session of the item runs there is no diff; it is there when the session ends.\n\n"
		"Attributes, drivers and replacements that could hide a change are off, and everything that could\n"
		"steer a terminal is made visible as \\xNN.",
	.options = options,
	.words_max = 1,
	.run = diff,
};
