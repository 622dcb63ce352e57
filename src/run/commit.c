/* Leftovers into a commit; see end.h. The decisions and the parser are in git/leftovers.c. */
#include <jansson.h>

#include "base/path.h"
#include "run/end.h"
#include "git/leftovers.h"
#include "store/store.h"

enum { SHOWN = 3 };

/* ---- what is told ---- */

static void
failed(struct kr_run_state *run, const char *session, const struct kr_tree *tree, const char *reason)
{
	kr_run_say("what is uncommitted in the worktree of %s was not committed: %s",
		kr_tree_words(run->arena, run->item.id, tree), reason);
	kr_run_record(run, session, "sweep_failed", json_pack("{s:s}", "error", reason));
}

static void
tell_left_out(const struct kr_strs *paths)
{
	for (size_t i = 0; i < paths->n && i < SHOWN; i++)
		kr_run_say("'%s' could not be committed; it is still in the worktree", paths->v[i]);
	if (paths->n > SHOWN)
		kr_run_say("and %zu more", paths->n - SHOWN);
}

/* As many as an event has room for, also when JSON doubles every byte of theirs. */
static json_t *
some_of(const struct kr_strs *paths)
{
	json_t *list = json_array();
	size_t bytes = 0;

	for (size_t i = 0; i < paths->n && i < KR_LEFTOVERS_SHOWN; i++) {
		bytes += strlen(paths->v[i]) + 3;
		if (bytes > KR_EVENT_DATA_BYTES / 4)
			break;
		json_array_append_new(list, json_string(paths->v[i]));
	}
	return list;
}

static void
left_out(struct kr_run_state *run, const char *session, const struct kr_strs *paths)
{
	if (!paths->n)
		return;
	kr_run_record(run, session, "sweep_left_out",
		json_pack("{s:o, s:I}", "paths", some_of(paths), "count", (json_int_t)paths->n));
}

/* ---- may it be done? ---- */

static void
add_planted(struct kr_run_state *run, const struct kr_planted *planted, struct kr_strs *paths)
{
	for (size_t i = 0; i < planted->n; i++)
		kr_strs_add(run->arena, paths, kr_leftovers_escape(run->arena, planted->v[i].path));
}

/* NULL when nothing stands in the way. */
static const char *
why_not(struct kr_run_state *run, const struct kr_run_leftovers *left)
{
	if (!left->planted)
		return "its worktree could not be looked through";
	if (left->planted->n)
		return kr_planted_sum_up(run->arena, left->planted);
	return NULL;
}

static const char *
why_not_in(struct kr_run_state *run, const struct kr_tree *tree)
{
	struct kr_strs obstacles = { 0 }, identity = { 0 };
	struct kr_error err = { 0 };

	if (kr_private_obstacles(run->arena, &tree->git, &obstacles, &err) < 0)
		return kr_arena_dup(run->arena, err.message);
	if (obstacles.n)
		return obstacles.v[0];
	kr_git_identity_from(run->arena, &tree->settings, &identity);
	if (!kr_leftovers_has_identity(&identity))
		return kr_arena_printf(run->arena,
			"nobody is named who commits; set user.name and user.email in '%s', or GIT_AUTHOR_* and GIT_COMMITTER_*",
			tree->checkout.root);
	return NULL;
}

/* ---- doing it ---- */

/* NULL when it went well. */
static const char *
judge(struct kr_run_state *run, const struct kr_job *job)
{
	const int status = kr_session_exit_status(&job->end);

	if (status == KR_RUN_OUT_OF_TIME || job->end.signal || job->end.is_over_time)
		return "git inside was ended: it took too long, or was interrupted";
	return status == 0 ? NULL : kr_run_inside_reason(run, job);
}

static void
add_below(struct kr_run_state *run, const struct kr_tree *tree, struct kr_strs *paths)
{
	for (size_t i = 0; *tree->below && i < paths->n; i++)
		paths->v[i] = kr_path_join(run->arena, tree->below, paths->v[i]);
}

static bool
commit(struct kr_run_state *run, const struct kr_tree *tree, const struct kr_run_leftovers *left)
{
	kr_auto_buf struct kr_buf answer = KR_BUF(KR_LEFTOVERS_BYTES);
	const struct kr_run_question question = {
		.argv = kr_leftovers_commit(run->arena, &tree->git, left->message),
		.cwd = tree->worktree,
		.bound_s = KR_LEFTOVERS_S,
	};
	const char *reason = why_not_in(run, tree);
	struct kr_strs paths = { 0 };
	struct kr_error err = { 0 };
	struct kr_job job;

	if (!reason && kr_run_ask_inside(run, "commit", &question, &answer, &job, &err) < 0)
		reason = err.message;
	else if (!reason) {
		reason = judge(run, &job);
		if (!reason && !kr_leftovers_parse(run->arena, answer.data ? answer.data : "", answer.len, &paths))
			reason = "git inside answered what kraft cannot read";
	}
	if (reason)
		failed(run, left->session, tree, reason);
	add_below(run, tree, &paths);
	tell_left_out(&paths);
	left_out(run, left->session, &paths);
	return !reason;
}

bool
kr_run_commit_leftovers(struct kr_run_state *run, const struct kr_run_leftovers *left)
{
	const char *reason = why_not(run, left);
	struct kr_strs paths = { 0 };
	bool all = true;

	if (!left->is_last) {
		kr_run_say("another session of the item runs; the last one that ends with --commit takes what is uncommitted");
		return true;
	}
	for (size_t i = 0; !reason && i < run->tree_count; i++)
		all = commit(run, &run->trees[i], left) && all;
	if (!reason)
		return all;
	failed(run, left->session, run->trees, reason);
	if (left->planted)
		add_planted(run, left->planted, &paths);
	left_out(run, left->session, &paths);
	return false;
}
