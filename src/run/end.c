/* The end of a session for the item's worktree and git; see end.h. */
#include "run/end.h"

#include "base/fault.h"
#include "base/path.h"
#include "git/leftovers.h"

enum { SHOWN = 3 };

/* ---- planted repositories ---- */

/* Without an answer everything counts. */
static int
drop_ignored(struct kr_run_state *run, const struct kr_tree *tree, struct kr_planted *found, struct kr_error *err)
{
	kr_auto_buf struct kr_buf answer = { 0 };
	struct kr_run_question question = { .cwd = tree->worktree, .bound_s = KR_PLANTED_ASK_S };
	struct kr_job job;

	if (!found->n || found->has_more || !tree->git.is_made)
		return 0;
	question.argv = kr_planted_ask(run->arena, &tree->git, found, &question.in, &question.in_len);
	answer.max = question.in_len + 1;
	if (kr_run_ask_inside(run, "look", &question, &answer, &job, err) < 0)
		return -1;
	/* 0: some are, 1: none is. */
	if (kr_session_exit_status(&job.end) > 1 ||
		!kr_planted_drop_ignored(found, answer.data ? answer.data : "", answer.len))
		kr_run_say("git inside could not tell which of them are ignored: %s", kr_run_inside_reason(run, &job));
	return 0;
}

/* The checkouts of a workspace's members, which kraft made, are looked through by themselves. */
static void
add_members(struct kr_run_state *run, const struct kr_tree *tree, struct kr_strs *own)
{
	for (size_t i = 1; tree == run->trees && i < run->tree_count; i++)
		kr_strs_add(run->arena, own, run->trees[i].below);
}

/* Paths of a member are told as they lie in the item's worktree. */
static void
add_found(struct kr_run_state *run, const struct kr_tree *tree, struct kr_planted *found, struct kr_planted *out)
{
	for (size_t i = 0; *tree->below && i < found->n; i++)
		found->v[i].path = kr_path_join(run->arena, tree->below, found->v[i].path);
	kr_planted_append(run->arena, out, found);
}

/* What lies in the worktree. */
static int
look(struct kr_run_state *run, struct kr_planted *out, struct kr_error *err)
{
	for (size_t i = 0; i < run->tree_count; i++) {
		const struct kr_tree *tree = &run->trees[i];
		struct kr_strs own = { 0 };
		struct kr_planted found = { 0 };

		add_members(run, tree, &own);
		if (kr_planted_walk(run->arena, tree->worktree, &own, &found, err) < 0 || drop_ignored(run, tree, &found, err) < 0)
			return kr_wrap(err, "looking for git repositories in the worktree of item '%s'", run->item.id);
		add_found(run, tree, &found, out);
	}
	return 0;
}

/* What the branches brought. The person's commit may have some of them by now: then they are the base's. */
static int
look_at_links(struct kr_run_state *run, bool at_wanted, struct kr_planted *out, struct kr_error *err)
{
	for (size_t i = 0; i < run->tree_count; i++) {
		const struct kr_tree *tree = &run->trees[i];
		const struct kr_private_record *record = &tree->git.record;
		struct kr_planted links = { 0 }, not_wanted = { 0 };

		if (!tree->git.is_made)
			continue;
		if (kr_planted_links(run->arena, record->common, record->start, record->at, &links, err) < 0)
			return -1;
		if (links.n && at_wanted) {
			if (kr_planted_links(run->arena, record->common, tree->wanted, record->at, &not_wanted, err) < 0)
				return -1;
			kr_planted_keep_common(&links, &not_wanted);
		}
		add_found(run, tree, &links, out);
	}
	return 0;
}

static int
refuse(const struct kr_run_state *run, const struct kr_planted *found, struct kr_error *err)
{
	kr_fail(err, KR_E_REFUSED, "item '%s' cannot go on: %s", run->item.id, kr_planted_sum_up(run->arena, found));
	return kr_hint(err,
		"take it out or ignore it with 'kraft shell --item %s --keep' (the worktree is '%s'), or let go of all of it "
		"with 'kraft item remove --force %s'",
		run->item.id, run->item.worktree, run->item.id);
}

int
kr_run_refuse_planted(struct kr_run_state *run, struct kr_error *err)
{
	struct kr_planted found = { 0 };

	/* A worktree that was just made has nobody's files in it. */
	if (run->item.state == KR_ITEM_MADE || kr_private_is_clean(&run->trees->git))
		return 0;
	if (look(run, &found, err) < 0)
		return -1;
	if (!found.n && look_at_links(run, true, &found, err) < 0)
		return -1;
	return found.n ? refuse(run, &found, err) : 0;
}

static void
tell_planted(const struct kr_run_state *run, const struct kr_planted *found)
{
	for (size_t i = 0; i < found->n && i < SHOWN; i++)
		kr_run_say("%s", kr_planted_say(run->arena, &found->v[i]));
	if (found->n > SHOWN)
		kr_run_say("and %s%zu more", found->has_more ? "at least " : "", found->n - SHOWN);
	kr_run_say("so item '%s' stops until %s gone: 'kraft shell --item %s --keep' goes in, 'kraft item remove --force %s' "
		"lets go of all of it",
		run->item.id, found->n == 1 ? "that is" : "those are", run->item.id, run->item.id);
}

/* ---- the end ---- */

/* True when nothing was found; *could_look: it is known. */
static bool
look_and_tell(struct kr_run_state *run, struct kr_planted *found, bool *could_look)
{
	struct kr_error err = { 0 };

	*could_look = look(run, found, &err) == 0;
	if (!*could_look)
		kr_run_say("%s; the next run looks again", err.message);
	else if (found->n)
		tell_planted(run, found);
	return *could_look && !found->n;
}

static bool
has_no_links(struct kr_run_state *run)
{
	struct kr_planted found = { 0 };
	struct kr_error err = { 0 };

	if (look_at_links(run, false, &found, &err) < 0)
		return false; /* the next start asks again, and says so */
	if (found.n)
		tell_planted(run, &found);
	return !found.n;
}

static bool
commit(struct kr_run_state *run, const struct kr_job *job, bool is_last, const struct kr_planted *planted)
{
	const char *message = run->want->commit;
	const struct kr_run_leftovers left = {
		.session = job->paths.id,
		.message = *message ? message : kr_leftovers_message(run->arena, job->argv[0], run->item.id),
		.is_last = is_last,
		.planted = planted,
	};

	return kr_run_commit_leftovers(run, &left);
}

void
kr_run_end(struct kr_run_state *run, const struct kr_job *job, bool ran)
{
	const bool is_last = kr_private_is_last(&run->trees->git);
	struct kr_planted planted = { 0 };
	struct kr_run_done unwanted, *done = run->want->done ? run->want->done : &unwanted;
	bool could_look = false, is_clean;

	if (run->want->put_back && ran && !kr_run_put_back(run))
		return;
	is_clean = is_last && look_and_tell(run, &planted, &could_look);
	if (run->want->commit && ran) {
		done->files_stay = !commit(run, job, is_last, could_look ? &planted : NULL);
		KR_FAULT(leftovers_committed);
	}
	done->commits_stay = !kr_run_git_publish(run, job->paths.id, is_last);
	if (done->commits_stay)
		return;
	/* Only the last one may, and nobody begins meanwhile: whoever does takes the mark away. */
	if (is_clean && has_no_links(run))
		kr_private_mark_clean(&run->trees->git);
}
