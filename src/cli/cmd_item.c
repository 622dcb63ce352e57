/*
 * kraft item: the items there are, and taking over what was committed in one.
 *
 * `merge` and `push` do nothing that the person could not type: they print the git command and run it, in the
 * person's checkout and on the branch that kraft brought there. A merge that is none but a fast-forward is
 * the person's own to make.
 */
#include <jansson.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/item.h"
#include "cli/patch.h"
#include "cli/work.h"
#include "os/host.h"

/* ---- list ---- */

enum { LIST_JSON };
static const struct kr_option list_options[] = {
	[LIST_JSON] = { "json", 0, NULL, "for programs" },
	{ NULL },
};

static const char *
state_of(const struct kr_item_seen *seen)
{
	return seen->is_busy ? "running" : seen->is_pending ? "cut off" : "idle";
}

static void
add_members(json_t *one, const struct kr_item_seen *seen)
{
	json_t *members = json_array();

	json_object_set_new(one, "workspace", json_string(seen->workspace));
	json_object_set_new(one, "members", members);
	for (size_t i = 1; i < seen->tree_count; i++) {
		const struct kr_tree_seen *tree = &seen->trees[i];
		json_t *member = json_object();

		json_object_set_new(member, "member", json_string(tree->member));
		json_object_set_new(member, "path", json_string(tree->below));
		json_object_set_new(member, "checkout", json_string(tree->checkout));
		json_object_set_new(member, "branch", json_string(tree->branch));
		json_object_set_new(member, "tip", *tree->synced ? json_string(tree->synced) : json_null());
		json_array_append_new(members, member);
	}
}

static int
print_json(const struct kr_item_list *list, struct kr_error *err)
{
	json_t *all = json_array();

	for (size_t i = 0; i < list->n; i++) {
		const struct kr_item_seen *seen = &list->v[i];
		json_t *one = json_object();

		json_object_set_new(one, "item", json_string(seen->id));
		json_object_set_new(one, "checkout", json_string(seen->trees->checkout));
		json_object_set_new(one, "worktree", json_string(seen->trees->worktree));
		json_object_set_new(one, "branch", json_string(seen->trees->branch));
		json_object_set_new(
			one, "tip", *seen->trees->synced ? json_string(seen->trees->synced) : json_null());
		if (seen->workspace)
			add_members(one, seen);
		json_object_set_new(one, "running", json_boolean(seen->is_busy));
		json_object_set_new(one, "cut_off", json_boolean(seen->is_pending));
		json_array_append_new(all, one);
	}
	return kr_print_json(all, err);
}

/* A member's row has its path in place of the item's name, below the item's. */
static void
print_tree(const struct kr_item_seen *seen, const struct kr_tree_seen *tree)
{
	char branch[512], checkout[2048], below[512];
	const char *name = *tree->below ? below : seen->id;

	kr_text_escape(below, sizeof(below), tree->below, strlen(tree->below));
	kr_text_escape(branch, sizeof(branch), tree->branch, strlen(tree->branch));
	kr_text_escape(checkout, sizeof(checkout), tree->checkout, strlen(tree->checkout));
	printf("%s%-*s  %-7s  %-12.12s  %-32s  %s\n", *tree->below ? "  " : "", *tree->below ? 30 : 32, name,
		*tree->below ? "" : state_of(seen), *tree->synced ? tree->synced : "-", branch, checkout);
}

static void
print_row(const struct kr_item_seen *seen)
{
	for (size_t i = 0; i < seen->tree_count; i++)
		print_tree(seen, &seen->trees[i]);
}

static int
list(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct kr_host host;
	struct kr_item_list items;

	if (kr_host_gather_places(arena, &host, err) < 0 ||
		kr_item_list(arena, host.places.run_dir, &items, err) < 0)
		return -1;
	if (parsed->value[LIST_JSON])
		return print_json(&items, err);
	if (!items.n) {
		puts("no items yet");
		return 0;
	}
	printf("%-32s  %-7s  %-12s  %-32s  %s\n", "ITEM", "STATE", "COMMIT", "BRANCH", "CHECKOUT");
	for (size_t i = 0; i < items.n; i++)
		print_row(&items.v[i]);
	return 0;
}

const struct kr_command kr_cmd_item_list = {
	.name = "item list",
	.usage = "[--json]",
	.summary = "list the items and their branches",
	.help = "An item is a name under which a worktree, a home and a branch are kept from run to run.\n"
			"COMMIT is where its branch stands in your repository, '-' before its first commit.",
	.options = list_options,
	.run = list,
};

/* ---- taking over ---- */

/* As a shell would take it. */
static const char *
quoted(struct kr_arena *arena, const char *word)
{
	const char *out = "'";

	if (*word &&
		word[strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+=:,./_-")] ==
			'\0')
		return word;
	for (; *word; word++)
		out = kr_arena_printf(arena, *word == '\'' ? "%s'\\''" : "%s%c", out, *word);
	return kr_arena_printf(arena, "%s'", out);
}

/* "git -C CHECKOUT VERB..." for the person to read, or to type. */
static const char *
typed(struct kr_arena *arena, const struct kr_item_at *at, const char *const argv[])
{
	const char *text = kr_arena_printf(arena, "git -C %s", quoted(arena, at->checkout.root));

	for (; *argv; argv++)
		text = kr_arena_printf(arena, "%s %s", text, quoted(arena, *argv));
	return text;
}

static void
say_command(const char *command)
{
	char safe[4096];

	kr_text_escape(safe, sizeof(safe), command, strlen(command));
	printf("%s\n", safe);
	fflush(stdout);
}

/* Shows the command, runs it in the checkout, and passes on what it prints. */
static int
run_shown(struct kr_arena *arena, const struct kr_item_at *at, const char *const argv[], bool pushes,
	struct kr_error *err)
{
	struct kr_patch *out = kr_arena_new(arena, struct kr_patch);
	const struct kr_git_where where = {
		.git_dir = at->checkout.git_dir,
		.work_tree = at->checkout.root,
		.work_dir_fd = -1,
		.pushes = pushes,
	};
	struct kr_git_run run = { 0 };
	int result;

	say_command(typed(arena, at, argv));
	if (kr_git_start(&where, argv, &run, err) < 0)
		return -1;
	out->out = stdout;
	run.show_progress = true;
	run.sink = kr_patch_add;
	run.sink_context = out;
	result = kr_git_finish(&run, NULL, err);
	kr_patch_end(out);
	return result;
}

enum { TAKE_MEMBER };
static const struct kr_option take_options[] = {
	[TAKE_MEMBER] = { "member", 0, "NAME", "only of this member of the item's workspace" },
	{ NULL },
};

/* The trees that have commits. */
static int
find_committed(struct kr_arena *arena, const struct kr_parsed *parsed, const char *what,
	struct kr_item_trees *out, struct kr_error *err)
{
	struct kr_item_trees trees;
	size_t n = 0;

	if (kr_item_find(arena, parsed->word_count ? parsed->words[0] : NULL, what, &trees, err) < 0 ||
		kr_item_only(&trees, parsed->value[TAKE_MEMBER], err) < 0)
		return -1;
	for (size_t i = 0; i < trees.n; i++)
		if (trees.v[i].seen.is_pending) {
			kr_fail(err, KR_E_REFUSED,
				"the last session of item '%s' was cut off, and commits of it are not here yet", trees.v->id);
			return kr_hint(err, "'kraft run --item %s --keep -- true' brings them", trees.v->id);
		}
	for (size_t i = 0; i < trees.n; i++)
		if (*trees.v[i].tip)
			trees.v[n++] = trees.v[i];
	trees.n = n;
	*out = trees;
	if (n)
		return 0;
	kr_fail(err, KR_E_NOT_FOUND, "nothing was committed in item '%s' yet", trees.v->id);
	return kr_hint(err, "'kraft view sessions --item %s' shows what ran in it", trees.v->id);
}

/* 1: a fast-forward; 0: it is there already; -1: the merge is the person's own to make. */
static int
judge_merge(struct kr_arena *arena, struct kr_item_at *at, struct kr_error *err)
{
	char base[KR_OID_HEX_MAX + 1];

	at->seen.commit = ""; /* of no meaning here: only HEAD counts */
	if (kr_item_base(at, base, err) < 0)
		return -1;
	if (strcmp(base, at->tip) == 0)
		return 0;
	if (strcmp(base, at->head) == 0)
		return 1;
	kr_fail(err, KR_E_REFUSED, "'%s' has commits that '%s' does not have, so this is no fast-forward",
		at->checkout.root, at->seen.branch);
	return kr_hint(
		err, "merge it yourself: %s", typed(arena, at, (const char *const[]){ "merge", at->ref, NULL }));
}

/* Nothing is merged before all can be. */
static int
merge(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct kr_item_trees trees;
	int *todo;

	if (find_committed(arena, parsed, "what to merge", &trees, err) < 0)
		return -1;
	todo = kr_arena_alloc(arena, trees.n * sizeof(*todo));
	for (size_t i = 0; i < trees.n; i++)
		if ((todo[i] = judge_merge(arena, &trees.v[i], err)) < 0)
			return -1;
	for (size_t i = 0; i < trees.n; i++) {
		const struct kr_item_at *at = &trees.v[i];

		if (!todo[i])
			printf("'%s' is in '%s' already\n", at->seen.branch, at->checkout.root);
		else if (run_shown(
					 arena, at, (const char *const[]){ "merge", "--ff-only", at->ref, NULL }, false, err) < 0)
			return -1;
	}
	return 0;
}

const struct kr_command kr_cmd_item_merge = {
	.name = "item merge",
	.usage = "[OPTIONS] [ITEM]",
	.summary = "bring your checkout to an item's branch",
	.options = take_options,
	.help =
		"Runs and prints 'git merge --ff-only' in your checkout. Where you have commits of your own the\n"
		"merge is yours to make, and the command for it is printed. Hooks do not run: what was just merged\n"
		"could be one. 'kraft view diff' shows beforehand what comes. The branch stays.\n"
		"Of a workspace's item each member's checkout is brought to its own, or none when one cannot be.",
	.words_max = 1,
	.run = merge,
};

/* ---- push ---- */

static const char *
ask(struct kr_arena *arena, const struct kr_item_at *at, const char *const argv[])
{
	const struct kr_git_where where = { .git_dir = at->checkout.git_dir, .work_dir_fd = -1 };
	kr_auto_buf struct kr_buf out = KR_BUF(4096);

	if (kr_git_run(&where, argv, &out, NULL) < 0)
		return NULL; /* not set */
	out.len = out.len ? strcspn(out.data, "\n") : 0;
	return out.len ? kr_arena_dup_n(arena, out.data, out.len) : NULL;
}

/* The person's usual one. A name must be a remote's: anything else could be a mistyped one, and the push
 * would go there. */
static const char *
choose_remote(struct kr_arena *arena, const struct kr_item_at *at, const char *named, struct kr_error *err)
{
	const char *remote = named;

	if (!remote)
		remote = ask(arena, at, (const char *const[]){ "config", "--get", "remote.pushDefault", NULL });
	if (!remote)
		remote = "origin";
	if (ask(arena, at,
			(const char *const[]){
				"config", "--get", kr_arena_printf(arena, "remote.%s.url", remote), NULL }))
		return remote;
	kr_fail(err, KR_E_NOT_FOUND, "'%s' has no remote '%s'", at->checkout.root, remote);
	kr_hint(err, "'git -C %s remote -v' lists them; name one: kraft item push %s REMOTE",
		quoted(arena, at->checkout.root), at->id);
	return NULL;
}

static int
push_tree(struct kr_arena *arena, const struct kr_item_at *at, const char *named, struct kr_error *err)
{
	const char *remote = choose_remote(arena, at, named, err);
	/* Its branch and nothing else, whatever the configuration would add. */
	const char *const argv[] = { "push", "--no-follow-tags", "--", remote,
		kr_arena_printf(arena, "%s:%s", at->ref, at->ref), NULL };

	if (!remote)
		return -1;
	if (run_shown(arena, at, argv, true, err) == 0)
		return 0;
	return kr_hint(err, "it had no terminal to ask on; where it has to ask, type it yourself: %s",
		typed(arena, at, argv));
}

static int
push(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct kr_item_trees trees;

	if (find_committed(arena, parsed, "what to push", &trees, err) < 0)
		return -1;
	for (size_t i = 0; i < trees.n; i++)
		if (push_tree(arena, &trees.v[i], parsed->word_count > 1 ? parsed->words[1] : NULL, err) < 0)
			return -1;
	return 0;
}

const struct kr_command kr_cmd_item_push = {
	.name = "item push",
	.usage = "[OPTIONS] [ITEM [REMOTE]]",
	.options = take_options,
	.summary = "push an item's branch to a remote of yours",
	.help = "Runs and prints 'git push' of that branch alone, in your checkout, with your keys and your\n"
			"pre-push hook. Without a remote: the one that remote.pushDefault names, else 'origin'. Of a\n"
			"workspace's item each member's branch is pushed from its own checkout.",
	.words_max = 2,
	.run = push,
};

/* ---- remove ---- */

enum { REMOVE_FORCE };
static const struct kr_option remove_options[] = {
	[REMOVE_FORCE] = { "force", 'f', NULL, "also when commits of a session that was cut off are lost" },
	{ NULL },
};

/* A work item that goes on still needs what would be removed. */
static int
refuse_going_on(struct kr_arena *arena, const struct kr_host *host, const char *id, struct kr_error *err)
{
	struct kr_store *store = NULL;
	struct kr_error ignored = { 0 };
	struct kr_item_row row = { .id = "" };
	bool goes_on = false;

	if (kr_store_open(host->places.run_dir, KR_STORE_READ, &store, &ignored) == 0 &&
		kr_store_item_get(arena, store, id, &row, &ignored) == 0)
		goes_on = strcmp(row.id, id) == 0 && !kr_work_has_ended(&row);
	kr_store_close(store);
	if (!goes_on)
		return 0;
	kr_fail(err, KR_E_REFUSED, "item '%s' is %s: it has not ended", id, row.status);
	return kr_hint(err, "'kraft item cancel %s' gives it up, then it can be removed", id);
}

static int
item_remove(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	const char *id = parsed->words[0];
	struct kr_item_seen seen;
	struct kr_host host;
	bool told = false;

	if (kr_host_gather_places(arena, &host, err) < 0 || refuse_going_on(arena, &host, id, err) < 0 ||
		kr_item_look(arena, host.places.run_dir, id, &seen, err) < 0 ||
		kr_item_remove(arena, host.places.run_dir, id, parsed->value[REMOVE_FORCE] != NULL, err) < 0)
		return -1;
	for (size_t i = 0; i < seen.tree_count; i++) {
		const struct kr_tree_seen *tree = &seen.trees[i];

		if (!*tree->synced)
			continue;
		printf("removed; its commits %sstay on the branch '%s'\n",
			i ? kr_arena_printf(arena, "in '%s' ", tree->checkout) : "", tree->branch);
		told = true;
	}
	if (!told)
		puts("removed");
	return 0;
}

const struct kr_command kr_cmd_item_remove = {
	.name = "item remove",
	.usage = "[OPTIONS] ITEM",
	.summary = "remove an item's worktree and home; its branch stays",
	.help =
		"Removes the worktree with everything that was not committed in it, the home and the results, and\n"
		"kraft's record. The branch stays, as do the logs of its sessions.",
	.options = remove_options,
	.words_min = 1,
	.words_max = 1,
	.run = item_remove,
};
