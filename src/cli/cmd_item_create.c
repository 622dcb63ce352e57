/* kraft item create: files a work item. */
#include "cli/work.h"

#include <fcntl.h>

#include "base/fd.h"

enum { DESCRIPTION, CHAIN, HARNESS, BASE, REPO, DEPENDS_ON, POLICY, AUTOSTART, JSON };
static const struct kr_option options[] = {
	[DESCRIPTION] = { "description", 'd', "TEXT", "what is to be done, in full" },
	[CHAIN] = { "chain", 0, "ID", "how it is done; 'kraft admin chains' lists them" },
	[HARNESS] = { "harness", 0, "ID", "the agent that does it, in place of the one that its chain names" },
	[BASE] = { "base-branch", 'b', "BRANCH", "begin at this branch, in place of where the checkout stands" },
	[REPO] = { "repo", 'C', "PATH", "the checkout to work for, in place of the one you stand in" },
	[DEPENDS_ON] = { "depends-on", 0, "ITEM[,ITEM...]", "it begins when these are done" },
	[POLICY] = { "policy", 0, "FILE", "its own layer of the policy, YAML: it can only take away" },
	[AUTOSTART] = { "autostart", 0, NULL, "start it, in the background" },
	[JSON] = { "json", 0, NULL, "for programs" },
	{ NULL },
};

static int
tell(struct kr_work *work, const char *id, bool json, struct kr_error *err)
{
	struct kr_work_view view;

	if (kr_work_look(work, id, &view, err) < 0)
		return -1;
	if (json)
		return kr_print_json(kr_work_json(&view), err);
	printf("%s %s\n", view.row.id, view.row.status);
	return 0;
}

/* "a,b" */
static const char *const *
split(struct kr_arena *arena, const char *list)
{
	struct kr_strs words = { 0 };

	for (; list && *list; list += strspn(list, ", ")) {
		size_t n = strcspn(list, ", ");

		if (n)
			kr_strs_add(arena, &words, kr_arena_dup_n(arena, list, n));
		list += n;
	}
	kr_strs_add(arena, &words, NULL);
	return words.v;
}

static const char *
read_layer(struct kr_arena *arena, const char *file, struct kr_error *err)
{
	kr_auto_buf struct kr_buf text = KR_BUF(KR_CONFIG_FILE_BYTES);

	if (kr_file_read_at(AT_FDCWD, file, &text, err) < 0)
		return NULL;
	return kr_arena_dup_n(arena, text.data ? text.data : "", text.len);
}

static int
create(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct kr_work_new want = {
		.title = parsed->words[0],
		.description = parsed->value[DESCRIPTION],
		.repo = parsed->value[REPO],
		.chain = parsed->value[CHAIN],
		.harness = parsed->value[HARNESS],
		.base = parsed->value[BASE],
		.layer_file = parsed->value[POLICY],
		.worker = (const char *const *)parsed->words + 1,
		.depends_on = split(arena, parsed->value[DEPENDS_ON]),
	};
	struct kr_item_row row;
	struct kr_work work;
	int result;

	if (parsed->word_count > 1 && !parsed->dashes) {
		kr_fail(err, KR_E_USAGE, "'%s' after the title", parsed->words[1]);
		return kr_hint(err, "quote a title of several words; the worker's command comes after '--'");
	}
	if (want.layer_file && !(want.layer = read_layer(arena, want.layer_file, err)))
		return -1;
	result = kr_work_open_for_person(arena, &work, err);
	if (result == 0)
		result = kr_work_file(&work, &want, &row, err);
	if (result == 0 && parsed->value[AUTOSTART])
		result = kr_work_go_on(&work, row.id, err);
	if (result == 0)
		result = tell(&work, row.id, parsed->value[JSON] != NULL, err);
	kr_work_close(&work);
	return result;
}

const struct kr_command kr_cmd_item_create = {
	.name = "item create",
	.usage = "[OPTIONS] TITLE [-- COMMAND [ARG...]]",
	.summary = "file a work item: a worktree, a branch, a chain, a gate",
	.help =
		"The item is filed paused, with the chain and policy.yaml as they are now; 'kraft item start' "
		"begins.\n"
		"Its work happens in a worktree and on a branch 'kraft/ID' of its own. COMMAND runs where the chain\n"
		"has an agent: it reads what is to be done on stdin, and what it leaves uncommitted is committed.\n\n"
		"Prints the item's id and status.",
	.options = options,
	.words_min = 1,
	.words_max = -1,
	.run = create,
};
