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
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/item.h"
#include "cli/patch.h"

enum { STAT, NAME_ONLY, TEXT, MEMBER };
static const struct kr_option options[] = {
	[STAT] = { "stat", 0, NULL, "how much of each file changed, in place of the changes" },
	[NAME_ONLY] = { "name-only", 0, NULL, "only the names of the files that changed" },
	[TEXT] = { "text", 0, NULL, "show what looks binary as text, too" },
	[MEMBER] = { "member", 0, "NAME", "only what changed in this member of the item's workspace" },
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
	const char *base;
	struct kr_patch patch;
};

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
	run.sink = kr_patch_add;
	run.sink_context = &show->patch;
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
	bool is_patch = !show->parsed->value[STAT] && !show->parsed->value[NAME_ONLY];

	fflush(stdout);
	if (show->patch.binary && is_patch)
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
diff_tree(
	struct kr_arena *arena, const struct kr_parsed *parsed, const struct kr_item_at *at, struct kr_error *err)
{
	struct show *show = kr_arena_new(arena, struct show);
	char base[KR_OID_HEX_MAX + 1];

	*show = (struct show){ .at = at, .parsed = parsed, .base = base };
	show->patch.out = stdout;
	show->patch.colour = kr_colour_on(STDOUT_FILENO) && !parsed->value[STAT] && !parsed->value[NAME_ONLY];
	if (*at->tip) {
		if (kr_item_base(at, base, err) < 0)
			return -1;
		if (!*base) /* histories with nothing in common: all of it is new */
			show->base = strchr(empty_tree(at->tip), '=') + 1;
		if (parsed->value[STAT] && *at->seen.below && strcmp(show->base, at->tip) != 0)
			print_heading(at);
		if (show_diff(arena, show, err) < 0)
			return -1;
	}
	tell(show);
	return 0;
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
	for (size_t i = 0; i < trees.n; i++) {
		has_commits = has_commits || *trees.v[i].tip;
		if (diff_tree(arena, parsed, &trees.v[i], err) < 0)
			return -1;
	}
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
