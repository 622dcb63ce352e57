/*
 * The item's git around its sessions: private (git/private.h, git/publish.h), or on macOS the repository's own (git/shared.h).
 *
 * Before: commits that an interrupted session left are taken out; then the private directory is made anew, so that a
 * worker finds the repository as it is now and nothing of what another one did to refs and configuration. While another
 * session of the item runs, and with --keep, it stays as it is.
 * After: what was committed on the item's branch is taken into the repository.
 *
 * The branch is kraft/<item>. It is made in the person's repository only when there is something to put on it. When it
 * holds commits that the wanted commit does not, they are somebody's work: the next session gets kraft/<item>-2.
 * In the repository it is there from the first session on, for that is where its commits go.
 */
#include "run/end.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "git/large.h"
#include "git/shared.h"
#include "os/sys.h"
#include "session/local_files.h"
#include "store/store.h"

enum {
	BRANCHES_MAX = 100,
	SHOWN = 12,
	EXPORT_S = 1200, /* no longer than index-pack may compute over it */
};

bool
kr_run_is_macos(const struct kr_run_state *run)
{
	return run->host.os == KR_SYSTEM_MACOS && !run->container.is_used;
}

/* ---- after a session ---- */

static int
export_pack(struct kr_run_state *run, const struct kr_tree *tree, const char *tip, int pack_fd, struct kr_error *err)
{
	const char *text, *const *export = kr_publish_export(run->arena, &tree->git, tip, &text);
	kr_auto_fd int in = kr_memory_file("kraft-revisions", text, strlen(text), err);
	struct kr_job job = { .purpose = "publish", .in = in, .out = pack_fd };

	/* A pipe without a writer in a file's place holds git for ever, and what it packs can be made to take days. */
	export = kr_run_bounded(run, export, EXPORT_S, &job.limit_ms);
	if (in < 0 || kr_run_inside(run, &job, export, err) < 0)
		return -1;
	if (job.end.write_errno)
		return kr_fail_errno(err, KR_E_SYSTEM, job.end.write_errno, "cannot write the pack");
	/* A worker can make it fail for ever: what came out decides, not how it ended. */
	if (kr_session_exit_status(&job.end) != 0)
		kr_run_say("git inside could not pack all of the commits: %s", kr_run_inside_reason(run, &job));
	return 0;
}

/* A member's commits are in another repository than where the person stands: it is named. */
static const char *
in_repository(const struct kr_run_state *run, const struct kr_tree *tree)
{
	return *tree->member ? kr_arena_printf(run->arena, " in '%s'", tree->checkout.root) : "";
}

static void
record_not_synced(struct kr_run_state *run, const struct kr_tree *tree, const char *session,
	const struct kr_publish *publish)
{
	const char *repository = *tree->member ? tree->checkout.root : NULL;
	const char *reason =
		repository ? kr_arena_printf(run->arena, "%s: %s", repository, publish->problem) : publish->problem;

	kr_run_record(run, session, "sandbox_branch_not_synced",
		json_pack("{s:s*, s:s, s:s*, s:s}", "repository", repository, "branch", tree->git.record.branch, "commit",
			*publish->to ? publish->to : NULL, "reason", reason));
}

static void
tell_published(const struct kr_run_state *run, const struct kr_tree *tree, const struct kr_publish *publish)
{
	const char *branch = tree->git.record.branch, *in = in_repository(run, tree);

	switch (publish->what) {
	case KR_PUBLISHED_MOVED:
		kr_run_say("%zu commit%s on branch '%s'%s (%.*s); 'git merge %s' takes %s", publish->commits,
			publish->commits == 1 ? "" : "s", branch, in, SHOWN, publish->to, branch, publish->commits == 1 ? "it" : "them");
		return;
	case KR_PUBLISHED_KEPT:
		kr_run_say("branch '%s'%s was not moved: %s", branch, in, publish->problem);
		kr_run_say("the commits are kept%s at refs/kraft/unsynced/%s (%.*s)", in, branch, SHOWN, publish->to);
		return;
	case KR_PUBLISHED_PUT_BACK:
		kr_run_say("%s%s", publish->problem, in);
		return;
	case KR_PUBLISHED_LOST:
		kr_run_say("the commits on branch '%s'%s were not taken: %s", branch, in, publish->problem);
		return;
	}
}

/* Before the branch moves: a pointer without its content is worth nothing, and the directory that has it goes. */
static int
take_large_files(struct kr_run_state *run, const struct kr_tree *tree, struct kr_error *err)
{
	struct kr_large large;

	if (kr_large_take(run->arena, &tree->git, &large, err) < 0)
		return -1;
	if (large.left)
		kr_run_say("%zu large file%s not taken: the content is not what the name says, or too much",
			large.left, large.left == 1 ? " was" : "s were");
	return 0;
}

static enum kr_published
note_published(struct kr_run_state *run, const struct kr_tree *tree, const char *session, const struct kr_publish *done)
{
	tell_published(run, tree, done);
	if (done->what != KR_PUBLISHED_MOVED)
		record_not_synced(run, tree, session, done);
	return done->what;
}

static int
publish(struct kr_run_state *run, struct kr_tree *tree, const char *session, const char *tip, enum kr_published *what,
	struct kr_error *err)
{
	kr_auto_fd int pack = kr_run_data_file(run, err);
	struct kr_publish done;

	if (pack < 0 || export_pack(run, tree, tip, pack, err) < 0 || take_large_files(run, tree, err) < 0)
		return -1;
	KR_FAULT(pack_out);
	if (kr_publish_take(run->arena, &tree->git, tip, pack, &done, err) < 0)
		return -1;
	*what = note_published(run, tree, session, &done);
	return 0;
}

/* In the repository the branch has moved already. */
static int
judge_branch(struct kr_run_state *run, struct kr_tree *tree, const char *session, bool is_alone, enum kr_published *what,
	struct kr_error *err)
{
	kr_auto_fd int pack = kr_run_data_file(run, err);
	struct kr_publish done;
	int found = pack < 0 ? -1 : kr_shared_take(run->arena, &tree->git, is_alone, pack, &done, err);

	if (found > 0)
		*what = note_published(run, tree, session, &done);
	return found;
}

/* 1: there was something to take out, and this became of it. */
static int
look_and_publish(struct kr_run_state *run, struct kr_tree *tree, const char *session, bool is_alone, enum kr_published *what,
	struct kr_error *err)
{
	char tip[KR_OID_HEX_MAX + 1];
	kr_auto_fd int lock = -1;
	int found;

	if (tree->git.record.is_in_repository)
		return judge_branch(run, tree, session, is_alone, what, err);
	found = kr_publish_look(run->arena, &tree->git, tip, &lock, err);
	if (found <= 0)
		return found;
	return publish(run, tree, session, tip, what, err) < 0 ? -1 : 1;
}

bool
kr_run_git_publish(struct kr_run_state *run, const char *session, bool is_last)
{
	bool all_out = true;

	for (size_t i = 0; i < run->tree_count; i++) {
		enum kr_published what;
		struct kr_error err = { 0 };

		if (look_and_publish(run, &run->trees[i], session, is_last, &what, &err) >= 0)
			continue;
		kr_run_say("what was committed could not be taken yet, the next run tries again: %s", err.message);
		all_out = false;
	}
	return all_out;
}

/* What an interrupted session left. 1: it was taken out; -1 also when it cannot be: making the directory anew would
 * lose it. */
static int
take_leftovers(struct kr_run_state *run, struct kr_tree *tree, struct kr_error *err)
{
	enum kr_published what;
	int found = look_and_publish(run, tree, NULL, true, &what, err);

	if (found <= 0)
		return found < 0 ? kr_wrap(err, "commits that the last session of %s left",
							   kr_tree_words(run->arena, run->item.id, tree))
						 : 0;
	if (what != KR_PUBLISHED_LOST || run->want->keep)
		return 1;
	kr_fail(err, KR_E_GIT, "the commits in %s cannot be taken, and going on would lose them",
		kr_tree_words(run->arena, run->item.id, tree));
	return kr_hint(err, "look at them with 'kraft shell --keep', or give them up with 'kraft item remove --force %s'",
		run->item.id);
}

/* ---- before a session ---- */

/* The first name whose commits, if it has any, are in `start`; synced is what it is in the repository. */
static const char *
choose_branch(const struct kr_run_state *run, const struct kr_tree *tree, const char *start,
	char synced[KR_OID_HEX_MAX + 1], struct kr_error *err)
{
	for (int n = 1; n <= BRANCHES_MAX; n++) {
		const char *branch = n == 1 ? kr_arena_printf(run->arena, "kraft/%s", run->item.id)
									: kr_arena_printf(run->arena, "kraft/%s-%d", run->item.id, n);
		int found = kr_branch_read(&tree->checkout, branch, synced, err);

		if (found < 0)
			return NULL;
		if (!found)
			synced[0] = '\0';
		if (!found || kr_commit_has(tree->checkout.common, start, synced))
			return branch;
	}
	kr_fail(err, KR_E_LIMIT, "%d branches of %s hold commits of their own", BRANCHES_MAX,
		kr_tree_words(run->arena, run->item.id, tree));
	kr_hint(err, "merge or delete some of kraft/%s-*, or use --item NAME", run->item.id);
	return NULL;
}

/* A pattern's letters stand for themselves. */
const struct kr_strs *
kr_run_members_as_excludes(struct kr_run_state *run)
{
	struct kr_strs *lines = kr_arena_new(run->arena, struct kr_strs);

	for (size_t i = 1; i < run->tree_count; i++) {
		const char *line = "/";

		for (const char *p = run->trees[i].below; *p; p++)
			line = kr_arena_printf(run->arena, strchr("*?[]\\ ", *p) ? "%s\\%c" : "%s%c", line, *p);
		kr_strs_add(run->arena, lines, line);
	}
	return lines;
}

/* What the walls are to let through. */
static void
fill_plan(struct kr_tree *tree)
{
	const struct kr_private *git = &tree->git;

	if (git->record.is_in_repository)
		tree->shared = (struct kr_plan_shared_git){
			.common = git->record.common,
			.worktree_git_dir = git->record.worktree_git_dir,
			.branch = git->record.branch,
			.borrowed = git->borrowed,
			.identity = tree->shared.identity,
		};
	else
		tree->plan = (struct kr_plan_git){
			.dir = git->dir,
			.git_file = git->git_file,
			.objects = git->objects,
			.borrowed = git->borrowed,
			.lfs = git->lfs,
		};
}

static int
make_git(struct kr_run_state *run, struct kr_tree *tree, const struct kr_private_make *want, bool drops, struct kr_error *err)
{
	if (!tree->git.record.is_in_repository)
		return kr_private_make(run->arena, &tree->git, &tree->checkout, want, err);
	if (kr_shared_make(run->arena, &tree->git, &tree->checkout, want, drops, err) < 0)
		return -1;
	fill_plan(tree);
	return 0;
}

static int
make(struct kr_run_state *run, struct kr_tree *tree, const char *start, struct kr_error *err)
{
	char synced[KR_OID_HEX_MAX + 1];
	struct kr_private_make want = {
		.branch = choose_branch(run, tree, start, synced, err),
		.start = start,
		.synced = synced,
		.index = kr_path_join(run->arena, tree->git_dir, "index"),
		.excludes = tree == run->trees ? kr_run_members_as_excludes(run) : NULL,
		.settings = &tree->settings,
	};

	if (!want.branch || make_git(run, tree, &want, false, err) < 0)
		return -1;
	if (kr_base_keep(&tree->checkout, run->item.id, start, err) < 0)
		return -1;
	KR_FAULT(base_kept);
	return 0;
}

static int
refuse_obstacles(struct kr_run_state *run, const struct kr_tree *tree, struct kr_error *err)
{
	struct kr_strs found = { 0 };

	if (kr_private_obstacles(run->arena, &tree->git, &found, err) < 0)
		return -1;
	if (!found.n)
		return 0;
	kr_fail(err, KR_E_REFUSED, "%s cannot go on: %s%s", kr_tree_words(run->arena, run->item.id, tree), found.v[0],
		found.n > 1 ? ", and more" : "");
	return kr_hint(err, "finish or abort it with 'kraft shell --keep', or use another item: --item NAME");
}

static int
open_tree(struct kr_run_state *run, struct kr_tree *tree, struct kr_error *err)
{
	unsigned number = (unsigned)(tree - run->trees);

	if ((kr_run_is_macos(run) ? kr_shared_open : kr_private_open)(run->arena, run->host.places.run_dir,
			run->item.id, number, &tree->checkout, tree->git_dir, &tree->git, err) < 0)
		return -1;
	fill_plan(tree);
	return 0;
}

/* 1: commits were left and taken out, and a tree stands elsewhere than it seemed. */
static int
take_all_leftovers(struct kr_run_state *run, struct kr_error *err)
{
	int left = 0;

	for (size_t i = 0; i < run->tree_count; i++) {
		struct kr_tree *tree = &run->trees[i];
		int result = tree->git.is_made && !tree->git.is_shared ? take_leftovers(run, tree, err) : 0;

		if (result < 0)
			return -1;
		left |= result;
	}
	return run->want->keep ? 0 : left;
}

static int
refuse_all_obstacles(struct kr_run_state *run, struct kr_error *err)
{
	for (size_t i = 0; i < run->tree_count; i++)
		if (run->trees[i].git.is_made && !run->trees[i].git.is_shared && refuse_obstacles(run, &run->trees[i], err) < 0)
			return -1;
	return 0;
}

static int
make_all(struct kr_run_state *run, struct kr_error *err)
{
	for (size_t i = 0; i < run->tree_count; i++) {
		struct kr_tree *tree = &run->trees[i];
		bool stays = tree->git.is_shared || (tree->git.is_made && run->want->keep);

		if (!stays && make(run, tree, tree->at, err) < 0)
			return -1;
	}
	return 0;
}

/* The mark that nothing was planted is the root's: it speaks of all of the worktree. */
static int
settle(struct kr_run_state *run, struct kr_error *err)
{
	int left = kr_run_put_back_left(run, err) < 0 ? -1 : take_all_leftovers(run, err);

	if (left)
		return left;
	if (!run->want->keep && !run->trees->git.is_shared &&
		(refuse_all_obstacles(run, err) < 0 || kr_run_refuse_planted(run, err) < 0))
		return -1;
	if (kr_private_unmark_clean(&run->trees->git, err) < 0)
		return -1;
	return make_all(run, err);
}

/* Variables hold for every repository and win over its configuration, so only what all of them say is one: who else commits in a
 * tree is in the configuration of its private directory (CTR-05), on macOS in its settings (KR_TREE_SETTINGS), for which each
 * tree's plan.identity stays what it says itself. Last: git reads its configuration while
 * other things are done. */
static int
agree_on_identity(struct kr_run_state *run, struct kr_error *err)
{
	struct kr_strs agreed = { 0 };

	for (size_t i = 0; i < run->tree_count; i++) {
		struct kr_tree *tree = &run->trees[i];

		if (kr_git_settings_wait(run->arena, &tree->settings, err) < 0)
			return -1;
		tree->plan.identity = (struct kr_strs){ 0 };
		kr_git_identity_from(run->arena, &tree->settings, &tree->plan.identity);
	}
	for (size_t i = 0; i < run->trees->plan.identity.n; i++) {
		const char *line = run->trees->plan.identity.v[i];
		bool by_all = true;

		for (size_t k = 1; k < run->tree_count; k++)
			by_all = by_all && kr_strs_has(&run->trees[k].plan.identity, line);
		if (by_all)
			kr_strs_add(run->arena, &agreed, line);
	}
	if (run->trees->git.record.is_in_repository)
		run->trees->shared.identity = agreed;
	else
		run->trees->plan.identity = agreed;
	return 0;
}

int
kr_run_git_open(struct kr_run_state *run, struct kr_error *err)
{
	int left;

	for (size_t i = 0; i < run->tree_count; i++)
		if (open_tree(run, &run->trees[i], err) < 0)
			return -1;
	left = settle(run, err);
	return left ? left : agree_on_identity(run, err);
}

/* ---- to another commit ---- */

static int
move_tree(struct kr_run_state *run, struct kr_tree *tree, struct kr_error *err)
{
	const struct kr_item *item = &run->item;
	const bool is_in_repository = tree->git.record.is_in_repository;
	const char *const git_dir = kr_arena_printf(run->arena, "--git-dir=%s", kr_private_git_dir(&tree->git));
	const char *const work_tree = kr_arena_printf(run->arena, "--work-tree=%s", tree->worktree);
	const char *const argv[] = { "git", git_dir, work_tree, "checkout", "-q", "-B", tree->git.record.branch, tree->wanted,
		"--", NULL };
	/* The branch is somebody's there, also when the next session has another one. */
	const char *const detached[] = { "git", git_dir, work_tree, "checkout", "-q", "--detach", tree->wanted, "--", NULL };
	struct kr_job job = { .purpose = "checkout", .in = -1, .out = -1 };

	if (kr_run_inside(run, &job, is_in_repository ? detached : argv, err) < 0)
		return kr_wrap(err, "cannot move the worktree of %s", kr_tree_words(run->arena, item->id, tree));
	if (kr_session_exit_status(&job.end) != 0) {
		kr_fail(err, KR_E_BUSY, "cannot move the worktree of %s to commit %.*s: %s",
			kr_tree_words(run->arena, item->id, tree), SHOWN, tree->wanted, kr_run_inside_reason(run, &job));
		return kr_hint(err, "--keep runs on the worktree as it is, --item NAME in another one; it lies in '%s'",
			tree->worktree);
	}
	return is_in_repository ? 0 : kr_worktree_stands_at(tree->git_dir, tree->wanted, NULL, err);
}

static int
settle_moved(struct kr_run_state *run, struct kr_tree *tree, struct kr_error *err)
{
	if (make(run, tree, tree->wanted, err) < 0)
		return -1;
	return kr_local_files_add(tree->repo, tree->checkout.root, tree->worktree, err);
}

int
kr_run_git_move(struct kr_run_state *run, struct kr_error *err)
{
	if (kr_item_moving(&run->host, &run->item, err) < 0)
		return -1;
	for (size_t i = 0; i < run->tree_count; i++)
		if (run->trees[i].is_elsewhere && move_tree(run, &run->trees[i], err) < 0)
			return -1;
	if (kr_item_moved(&run->host, &run->item, err) < 0)
		return -1;
	for (size_t i = 0; i < run->tree_count; i++)
		if (settle_moved(run, &run->trees[i], err) < 0)
			return -1;
	return 0;
}

/* In the repository the branch itself is put back, whatever it holds, and is not another one for that. */
static int
drop_to(struct kr_run_state *run, struct kr_tree *tree, const char *recorded, struct kr_error *err)
{
	char oid[KR_OID_HEX_MAX + 1];
	struct kr_private_make want = { .branch = tree->git.record.branch, .start = oid, .synced = "" };

	memcpy(oid, recorded, sizeof(oid));
	if (tree->git.is_shared)
		return 0;
	return tree->git.record.is_in_repository ? make_git(run, tree, &want, true, err) : make(run, tree, oid, err);
}

int
kr_run_git_reset(struct kr_run_state *run, struct kr_error *err)
{
	for (size_t i = 0; i < run->tree_count; i++)
		if (drop_to(run, &run->trees[i], run->trees[i].git.record.start, err) < 0)
			return -1;
	return 0;
}

int
kr_run_git_drop(struct kr_run_state *run, struct kr_error *err)
{
	for (size_t i = 0; i < run->tree_count; i++)
		if (drop_to(run, &run->trees[i], run->trees[i].git.record.at, err) < 0)
			return -1;
	return 0;
}

int
kr_run_git_share(struct kr_run_state *run, struct kr_error *err)
{
	for (size_t i = 0; i < run->tree_count; i++)
		if (kr_private_share(&run->trees[i].git, err) < 0)
			return -1;
	return 0;
}

/* The root last: who gets its lock alone then finds nobody in the others. */
void
kr_run_git_close(struct kr_run_state *run)
{
	for (size_t i = run->tree_count; i-- > 0;)
		kr_private_close(&run->trees[i].git);
}
