/*
 * A command that has nothing to change (run.h, put_back): its worktree's tracked and untracked files are written down as a
 * tree before it, by git inside the walls, and put back after it; then the private git directory is made anew, so that
 * commits, refs and configuration of its are gone as well. Ignored files, and what git leaves out, are not looked at. The
 * tree is in the private directory's record until then: when kraft is killed in between, the item's next session does it
 * before it takes anything out. No other session of the item runs beside it.
 *
 * What git inside says is a worker's word: a worker that deceives it keeps its changes in the worktree, where every other
 * task of the item may change things too. Its commits never get out: the directory that has them is replaced.
 */
#include "base/path.h"
#include "git/leftovers.h"
#include "run/end.h"

enum { ANSWER_BYTES = 1 << 20, TIME_S = 1200 };

/* An index of its own: what a person or a worker staged stays as it is. */
#define BEGIN                                                                                     \
	"export GIT_DIR=\"$1\" GIT_WORK_TREE=\"$2\" GIT_INDEX_FILE=\"$1/kraft-index\" GIT_TERMINAL_PROMPT=0\n" \
	"rm -f \"$1/index.lock\" \"$GIT_INDEX_FILE\" \"$GIT_INDEX_FILE.lock\"\n"                          \
	"cp \"$1/index\" \"$GIT_INDEX_FILE\" 2>/dev/null\n"                                               \
	"git -c core.safecrlf=false add -A --ignore-errors >&2 || test $? -eq 1 || exit 3\n"

static const char note_script[] = BEGIN "git write-tree || exit 3\n";

/* What was added goes first: it may stand where something was. */
static const char back_script[] = BEGIN
	"after=$(git write-tree) || exit 3\n"
	"test \"$after\" = \"$3\" && exit 0\n"
	"list() { git diff-tree -r -z --no-renames --name-only \"$@\"; }\n"
	"list \"$3\" \"$after\" || exit 3\n"
	"list --diff-filter=A \"$3\" \"$after\" | xargs -0 -r rm -rf -- >&2 || exit 3\n"
	"git read-tree \"$3\" >&2 || exit 3\n"
	"list --diff-filter=a \"$3\" \"$after\" | git checkout-index -f -z --stdin >&2 || exit 3\n";

static int
ask(struct kr_run_state *run, const struct kr_tree *tree, const char *script, const char *oid, struct kr_buf *answer,
	struct kr_error *err)
{
	const char *const words[] = { "/bin/sh", "-c", script, "sh", kr_private_git_dir(&tree->git), ".", oid };
	struct kr_run_question question = { .cwd = tree->worktree, .bound_s = TIME_S };
	struct kr_strs argv = { 0 };
	struct kr_job job;

	for (size_t i = 0; i < KR_COUNT(words); i++)
		kr_strs_add(run->arena, &argv, words[i]);
	question.argv = argv.v;
	if (kr_run_ask_inside(run, "look", &question, answer, &job, err) < 0)
		return -1;
	if (kr_session_exit_status(&job.end) == 0)
		return 0;
	return kr_fail(err, KR_E_GIT, "git inside failed in the worktree of %s: %s",
		kr_tree_words(run->arena, run->item.id, tree), kr_run_inside_reason(run, &job));
}

int
kr_run_note_files(struct kr_run_state *run, struct kr_error *err)
{
	if (!kr_private_is_last(&run->trees->git))
		return kr_fail(err, KR_E_BUSY, "another session of item '%s' runs", run->item.id);
	for (size_t i = 0; i < run->tree_count; i++) {
		kr_auto_buf struct kr_buf answer = KR_BUF(4096);
		struct kr_private *git = &run->trees[i].git;

		if (ask(run, &run->trees[i], note_script, NULL, &answer, err) < 0)
			return -1;
		while (answer.len && answer.data[answer.len - 1] == '\n')
			answer.data[--answer.len] = '\0';
		if (!answer.len || !kr_oid_is_valid(answer.data, answer.len))
			return kr_fail(err, KR_E_GIT, "git inside did not say what lies in the worktree");
		memcpy(git->record.noted, answer.data, answer.len + 1);
		if (kr_private_record_write(git, err) < 0)
			return -1;
	}
	return 0;
}

static void
tell(struct kr_run_state *run, const struct kr_tree *tree, const struct kr_buf *names)
{
	struct kr_run_done unused = { 0 }, *done = run->want->done ? run->want->done : &unused;
	size_t used = strlen(done->wrote);

	for (const char *name = names->data; name && name < names->data + names->len; name += strlen(name) + 1) {
		const char *path = *tree->below ? kr_path_join(run->arena, tree->below, name) : name;
		const char *safe = kr_leftovers_escape(run->arena, path);

		kr_run_say("'%s' was changed, and is put back", path);
		if (used + strlen(safe) + 2 < sizeof(done->wrote))
			used += (size_t)snprintf(done->wrote + used, sizeof(done->wrote) - used, "%s%s", used ? "\n" : "", safe);
	}
}

/* Those that have been noted. */
static int
put_back(struct kr_run_state *run, struct kr_error *err)
{
	int result = 0;

	for (size_t i = 0; i < run->tree_count; i++) {
		kr_auto_buf struct kr_buf names = KR_BUF(ANSWER_BYTES);
		const struct kr_tree *tree = &run->trees[i];
		struct kr_error why = { 0 };

		if (*tree->git.record.noted && ask(run, tree, back_script, tree->git.record.noted, &names, &why) < 0) {
			*err = why;
			result = -1;
		}
		tell(run, tree, &names);
	}
	/* Also when files could not be: commits are what would get out. */
	return kr_run_git_drop(run, err) < 0 ? -1 : result;
}

bool
kr_run_put_back(struct kr_run_state *run)
{
	struct kr_error err = { 0 };

	if (put_back(run, &err) == 0)
		return true;
	kr_run_say("what the command changed could not be put back: %s", err.message);
	if (run->want->done)
		snprintf(run->want->done->not_put_back, sizeof(run->want->done->not_put_back), "%s", err.message);
	return false;
}

int
kr_run_put_back_left(struct kr_run_state *run, struct kr_error *err)
{
	bool is_noted = false;

	for (size_t i = 0; i < run->tree_count; i++) {
		const struct kr_private *git = &run->trees[i].git;

		is_noted = is_noted || (git->is_made && !git->is_shared && *git->record.noted);
	}
	if (!is_noted || kr_run_put_back(run))
		return 0;
	/* The files are lost track of; a commit may not get out for that. */
	return kr_run_git_drop(run, err);
}
