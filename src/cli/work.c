#include "cli/work.h"

#include <errno.h>
#include <unistd.h>

#include "base/path.h"
#include "base/text.h"
#include "git/git.h"

int
kr_work_refuse_session(struct kr_error *err)
{
	if (!getenv("KRAFT_SESSION_ID"))
		return 0;
	kr_fail(err, KR_E_REFUSED, "this is for a person, and KRAFT_SESSION_ID says that a session asks");
	return kr_hint(err, "type it in a terminal of your own");
}

int
kr_work_open_for_person(struct kr_arena *arena, struct kr_work *out, struct kr_error *err)
{
	*out = (struct kr_work){ .arena = arena };
	return kr_work_refuse_session(err) < 0 ? -1 : kr_work_open(arena, out, err);
}

static const char *
id_of_checkout(struct kr_work *work, const char *cwd, struct kr_error *err)
{
	const char *found = NULL, *list = "";
	struct kr_checkout checkout;
	struct kr_item_rows rows;
	size_t n = 0;

	if (kr_checkout_find(work->arena, cwd, &checkout, err) < 0 ||
		kr_store_items(work->arena, work->store, &rows, err) < 0)
		return NULL;
	for (size_t i = 0; i < rows.n; i++) {
		const struct kr_item_row *row = &rows.v[i];

		if (kr_work_has_ended(row) || strcmp(row->repo, checkout.root) != 0)
			continue;
		found = row->id;
		list = kr_arena_printf(work->arena, "%s%s'%s'", list, n++ ? ", " : "", row->id);
	}
	if (n == 1)
		return found;
	kr_fail(
		err, KR_E_USAGE, n ? "which item? '%s' has %zu" : "'%s' has no item that goes on", checkout.root, n);
	if (n)
		kr_hint(err, "name one: %.400s", list);
	else
		kr_hint(err, "'kraft item create TITLE' files one, 'kraft view list' shows all");
	return NULL;
}

const char *
kr_work_id(struct kr_work *work, const char *word, struct kr_error *err)
{
	const char *trees = kr_arena_printf(work->arena, "%s/worktrees/", work->host.places.run_dir);
	char cwd[KR_PATH_MAX];

	if (word)
		return word;
	if (!getcwd(cwd, sizeof(cwd))) {
		kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot tell the current directory");
		return NULL;
	}
	if (kr_text_has_prefix(cwd, trees)) {
		const char *id = cwd + strlen(trees);

		return kr_arena_dup_n(work->arena, id, strcspn(id, "/"));
	}
	return id_of_checkout(work, cwd, err);
}
