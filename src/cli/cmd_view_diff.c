/* kraft view diff: what an item's branch changes, for a person who decides on it. It is made by work/diff.c;
 * here it is shown. */
#include <errno.h>
#include <jansson.h>
#include <unistd.h>

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

/* What goes into one JSON text is kept whole, so it has a bound. */
static int
add(void *context, const char *bytes, size_t n)
{
	struct show *show = context;

	if (kr_patch_add(&show->patch, bytes, n) < 0)
		return -1;
	show->is_too_long = show->parsed->value[JSON] && ftello(show->patch.out) > JSON_BYTES;
	return show->is_too_long ? -1 : 0;
}

static int
show_diff(struct kr_arena *arena, struct show *show, struct kr_error *err)
{
	const struct kr_diff_form form = {
		.stat = show->parsed->value[STAT] != NULL,
		.names_only = show->parsed->value[NAME_ONLY] != NULL,
		.as_text = show->parsed->value[TEXT] != NULL,
	};
	int result = kr_item_diff(arena, show->at, show->base, &form, add, show, err);

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
	show->base = show->oid;
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
			trees, json_pack("{s:s, s:o, s:s, s:s, s:o, s:o, s:b, s:s}", "item", at->id, "member",
					   kr_text_or_null(at->seen.member), "checkout", at->seen.checkout, "branch",
					   at->seen.branch, "base", kr_text_or_null(show->base), "tip", kr_text_or_null(at->tip), "cut_off",
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
