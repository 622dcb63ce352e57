/*
 * Order: facts of the host, checkout, repository, item; its private git directory; then what has to happen once in the
 * item (moving its worktree to the wanted commit, the setup command), then the command itself. Each of them is one
 * session with a folder, a log and an exit file, launched and followed the same way. What was committed is taken into the
 * repository at the end, also after a failure.
 */
#include "run/end.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"

/* ---- what happens once in an item ---- */

const char *
kr_run_oom_words(struct kr_arena *arena, const struct kr_sandbox *sandbox, bool is_confirmed)
{
	char limit[KR_MEMORY_WORDS];

	kr_memory_words(sandbox->resources.memory_bytes, limit);
	return kr_arena_printf(arena, "%s killed by its memory limit of %s ('memory' of 'resources')",
		is_confirmed ? "it was" : "it was most likely", limit);
}

static int
set_up(struct kr_run_state *run, struct kr_error *err)
{
	const char *const argv[] = { "/bin/sh", "-c", run->repo->setup_command, NULL };
	struct kr_job job = { .purpose = "setup",
		.phase = KR_PHASE_INSTALL,
		.argv = argv,
		.cwd = run->item.worktree,
		.in = -1,
		.out = STDERR_FILENO,
		.err = STDERR_FILENO };

	kr_run_say("setting up item '%s'%s: %s", run->item.id, run->tree_count > 1 ? " (the root's command, once)" : "",
		run->repo->setup_command);
	if (kr_job_run(run, &job, err) < 0)
		return kr_wrap(err, "the setup command of '%s'", run->repo->name);
	if (kr_session_exit_status(&job.end) == 0)
		return kr_item_set_up(&run->host, &run->item, err);
	kr_run_tell_network(run, &job);
	kr_run_note_oom(run, &job);
	if (job.oom)
		kr_fail(err, KR_E_REFUSED, "the setup command of '%s' failed: %s", run->repo->name,
			kr_run_oom_words(run->arena, &run->repo->sandbox, job.oom_confirmed));
	else if (job.end.signal)
		kr_fail(err, KR_E_REFUSED, "the setup command of '%s' was ended by signal %d", run->repo->name,
			job.end.signal);
	else
		kr_fail(err, KR_E_REFUSED, "the setup command of '%s' failed with exit code %d", run->repo->name,
			kr_session_exit_status(&job.end));
	return kr_hint(
		err, "what it said is above and in 'kraft view logs %s'; it runs again next time", job.paths.id);
}

static int
prepare_item(struct kr_run_state *run, struct kr_error *err)
{
	const char *setup = run->repo->setup_command;

	if (run->item.state == KR_ITEM_NEEDS_CHECKOUT && kr_run_git_move(run, err) < 0)
		return -1;
	if (!run->item.setup_done && setup && *setup && (set_up(run, err) < 0 || kr_run_git_reset(run, err) < 0))
		return -1;
	if (kr_run_git_share(run, err) < 0)
		return -1;
	return kr_item_share(&run->item, err);
}

/* ---- the way there ---- */

static int
refuse_root(struct kr_error *err)
{
	if (geteuid() != 0 && getuid() != 0)
		return 0;
	kr_fail(err, KR_E_IS_ROOT, "the sandbox does not run as root"); /* OS-LCH-14 */
	return kr_hint(
		err, "run kraft as an ordinary user; in a container make one first, for instance 'useradd -m me'");
}

static int
find_repo(struct kr_run_state *run, struct kr_error *err)
{
	struct kr_where *where = &run->where;

	if (kr_where_find(run->arena, &run->host.places, run->want->repo, where, err) < 0 ||
		kr_where_layers(run->arena, &run->host.places, run->want->layers, where, err) < 0)
		return -1;
	for (size_t i = 0; i < where->repos->warnings.n; i++)
		kr_run_say("%s", where->repos->warnings.v[i]);
	run->repo = where->repo;
	run->item_id = run->want->item;
	run->workspace = run->want->workspace;
	if (kr_workspace_choose(run->arena, &run->host, where, &run->workspace, &run->item_id, err) < 0)
		return -1;
	return kr_workspace_trees(
		run->arena, &run->host.places, where, run->workspace, &run->trees, &run->tree_count, err);
}

static const char *
find_cwd(struct kr_run_state *run)
{
	const char *wanted, *cwd = kr_where_cwd(run->arena, &run->where, run->item.worktree, &wanted);

	if (strcmp(cwd, wanted) != 0)
		kr_run_say("'%s' is not in the worktree, so the command starts in '%s'", run->where.here, cwd);
	return cwd;
}

static const struct kr_run_streams own_streams = { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO };

static void
note_done(const struct kr_run_state *run, const struct kr_job *job)
{
	struct kr_run_done *done = run->want->done;

	if (!done || !job->paths.id)
		return;
	done->has_session = true;
	done->started = job->end.started;
	done->signal = job->end.signal;
	done->oom = job->oom;
	done->oom_confirmed = job->oom_confirmed;
	kr_session_left_words(&job->end, done->left_running);
}

static int
run_job(struct kr_run_state *run, struct kr_job *job, struct kr_error *err)
{
	int result;

	if (!job->launch)
		return kr_job_run(run, job, err);
	result = kr_run_agent_begin(job->launch, job, err);
	if (result == 0)
		result = kr_job_run(run, job, err);
	kr_run_agent_end(job->launch);
	return result;
}

/* What a refusal is of is known by then, so it is in the session's log as well. */
static int
prepare_command(struct kr_run_state *run, struct kr_job *job, struct kr_error *err)
{
	if (run->want->agent)
		return kr_run_agent_prepare(run, job, err);
	return run->want->ask_image ? kr_run_container_ask(run, job->argv[0], NULL, err) : 0;
}

static int
run_command(struct kr_run_state *run, struct kr_error *err)
{
	const struct kr_run_streams *streams = run->want->streams ? run->want->streams : &own_streams;
	struct kr_job job = {
		.id = run->want->session,
		.purpose = run->want->purpose,
		.phase = run->phase,
		.argv = run->want->argv,
		.cwd = find_cwd(run),
		.terminal = !run->want->streams && !run->want->agent && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO),
		.in = streams->in,
		.out = streams->out,
		.err = streams->err,
	};
	struct kr_error refusal = { 0 };
	int status, result;

	if (prepare_command(run, &job, &refusal) < 0)
		job.refusal = &refusal;
	if (!job.refusal && run->want->put_back && kr_run_note_files(run, err) < 0)
		return -1;
	result = run_job(run, &job, err);
	kr_run_note_oom(run, &job);
	note_done(run, &job);
	kr_run_end(run, &job, result == 0 && job.end.started);
	if (result < 0)
		return -1;
	kr_run_sum_up(run, &job);
	status = kr_session_exit_status(&job.end);
	if (job.launch && status && !run->want->streams)
		kr_run_tell_agent(run, &job);
	return status == 0 && job.end.write_errno ? 1 : status;
}

/* 1: an interrupted session's commits were taken out, and the item stands elsewhere than it seemed. */
static int
open_item(struct kr_run_state *run, struct kr_error *err)
{
	const struct kr_item_want want = {
		.id = run->item_id,
		.workspace = run->workspace,
		.base = run->want->base,
		.with_changes = run->want->with_changes,
		.keep = run->want->keep || run->want->go_on,
		.follow = run->want->go_on,
	};

	if (kr_item_open(run->arena, &run->host, run->trees, run->tree_count, &want, &run->item, err) < 0 ||
		kr_run_container_check_owner(run, err) < 0)
		return -1;
	return kr_run_git_open(run, err);
}

static void
close_item(struct kr_run_state *run)
{
	kr_run_git_close(run);
	kr_item_close(&run->item);
}

static int
run_in_item(struct kr_run_state *run, struct kr_error *err)
{
	int result = open_item(run, err);

	if (result > 0) {
		close_item(run);
		result = open_item(run, err);
	}
	for (size_t i = 0; i < run->item.notes.n; i++)
		kr_run_say("%s", run->item.notes.v[i]);
	if (result == 0)
		kr_run_kit_note(run);
	if (result == 0)
		result = prepare_item(run, err);
	if (result == 0)
		result = run_command(run, err);
	close_item(run);
	return result;
}

/* Early: it takes a run of git for each. */
static int
start_settings(struct kr_run_state *run, struct kr_error *err)
{
	for (size_t i = 0; i < run->tree_count; i++)
		if (kr_git_settings_start(&run->trees[i].checkout, &run->trees[i].settings, err) < 0)
			return -1;
	return 0;
}

int
kr_run(struct kr_arena *arena, const struct kr_run_want *want, struct kr_error *err)
{
	struct kr_run_state run = { .arena = arena, .want = want, .item = { .lock_fd = -1 } };
	int result;

	if (refuse_root(err) < 0 || kr_where_phase(want->phase, &run.phase, err) < 0 ||
		kr_host_gather(arena, &run.host, err) < 0 || kr_host_prepare_dirs(&run.host, err) < 0 ||
		find_repo(&run, err) < 0 || kr_run_container_find(&run, err) < 0)
		return -1;
	result = start_settings(&run, err);
	if (result == 0)
		result = run_in_item(&run, err);
	for (size_t i = 0; i < run.tree_count; i++)
		kr_git_settings_fini(&run.trees[i].settings);
	if (run.changes.running)
		kr_git_abandon(&run.changes.git);
	return result;
}
