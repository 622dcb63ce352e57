/*
 * One launch: folder, plan, way out, launcher, and then the relay to its end. Beside the sandbox's start run the proxy,
 * the first `git status` of the checkout, for the remark about changes that are not included, and the sweep of what
 * older sessions left: a person waits for the start, and for nothing else.
 */
#include "run/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fd.h"
#include "base/portable.h"
#include "base/path.h"
#include "git/shared.h"
#include "session/seatbelt.h"
#include "session/terminal.h"

/* ---- why a launch failed ---- */

static int
explain_bwrap(struct kr_run_state *run, const struct kr_session_end *end, struct kr_error *err)
{
	struct kr_bwrap bwrap;

	if (end->fault_errno)
		return kr_fail_errno(err, KR_E_WALL, end->fault_errno, "bubblewrap could not be started");
	if (kr_bwrap_probe(run->arena, &run->host, &bwrap, err) < 0 || kr_bwrap_diagnose(&bwrap, err) < 0)
		return -1;
	kr_fail(err, KR_E_WALL, "bubblewrap ended before the command started");
	return kr_hint(err, "what it said is above");
}

static int
explain_seatbelt(struct kr_run_state *run, const struct kr_session_end *end, struct kr_error *err)
{
	if (end->fault_errno)
		return kr_fail_errno(err, KR_E_WALL, end->fault_errno, "'%s' could not be started", run->host.sandbox_exec);
	kr_fail(err, KR_E_WALL, "'%s' ended before the command started", run->host.sandbox_exec);
	return kr_hint(err, "what it said is above; 'kraft admin doctor' tells what it needs");
}

/* What the CLI said is in the log, and on stderr unless it is a short run. */
/* What a virtual machine does not share with this host is missing inside, or empty. */
static int
hint_shared(struct kr_run_state *run, const char *also, struct kr_error *err)
{
	return kr_hint(err,
		"do the repository, '%s' and kraft's own directory '%s' lie in directories that the virtual machine shares (Docker "
		"Desktop: Settings, Resources, File sharing; podman: 'podman machine init --volume')?%s",
		run->host.places.kraft_home, run->host.guest_dir, also);
}

static int
explain_runtime(struct kr_run_state *run, const struct kr_job *job, struct kr_error *err)
{
	if (job->end.fault_errno) {
		kr_fail(err, KR_E_WALL, "'%s' did not start the container (status %d)", run->container.runtime.name,
			job->end.fault_errno);
		if (run->container.runtime.is_machine)
			return hint_shared(run,
				kr_arena_printf(run->arena, " 'kraft view logs %s' has what it said", job->paths.id), err);
		return kr_hint(err, "'kraft view logs %s' has what it said", job->paths.id);
	}
	kr_fail(err, KR_E_WALL, run->container.runtime.is_machine ? "the container ran, but kraft's init in it said nothing"
															 : "the container ran, but could not reach kraft's socket");
	if (run->container.runtime.is_machine)
		return hint_shared(run, "", err);
	return kr_hint(err,
		"does SELinux enforce ('selinux' in sandbox.yaml), may others not enter '%s', or does '%s' run in a virtual machine or for "
		"another user?",
		run->host.places.run_dir, run->container.runtime.name);
}

static int
explain_fault(struct kr_run_state *run, const struct kr_job *job, struct kr_error *err)
{
	const struct kr_session_end *end = &job->end;

	if (end->wall >= 0) {
		kr_fail(err, KR_E_WALL,
			run->container.is_used && run->container.runtime.is_machine
				? "a mount is not what is here: another kind of file, empty, or not read-only"
				: "a mount is not what was checked before the start: somebody changed it in between");
		if (run->container.is_used && run->container.runtime.is_machine)
			return hint_shared(run, "", err);
		return kr_hint(err, "run the command again");
	}
	switch (end->fault) {
	case KG_FAULT_BWRAP:
		return explain_bwrap(run, end, err);
	case KG_FAULT_CLIENT:
		return kr_fail_errno(
			err, KR_E_WALL, end->fault_errno, "'%s' could not be started", run->container.runtime.program);
	case KG_FAULT_RUNTIME:
		return explain_runtime(run, job, err);
	case KG_FAULT_FILTER:
		return kr_fail_errno(
			err, KR_E_WALL, end->fault_errno, "the kernel does not take kraft's filter inside the container");
	case KG_FAULT_SEATBELT:
		return explain_seatbelt(run, end, err);
	case KG_FAULT_KEYRING:
		kr_fail_errno(err, KR_E_NO_KEYRING, end->fault_errno, "cannot join a new session keyring");
		if (end->fault_errno == EDQUOT)
			return kr_hint(
				err, "this user's quota of keys is spent: end some sessions, or raise kernel.keys.maxkeys");
		return -1;
	case KG_FAULT_ROUTE:
		kr_fail_errno(err, KR_E_WALL, end->fault_errno, "the sandbox's way out could not be made");
		return kr_hint(err, "run the command again; 'kraft view events' tells whether its proxy failed");
	case KG_FAULT_PTY:
		return kr_fail_errno(err, KR_E_WALL, end->fault_errno, "cannot open a terminal inside the sandbox");
	case KG_FAULT_CWD:
		return kr_fail_errno(
			err, KR_E_REFUSED, end->fault_errno, "cannot enter the directory inside the sandbox");
	default:
		if (end->killed_by_us)
			return kr_fail(err, KR_E_SYSTEM, "ended before the command started");
		if (end->fault_errno)
			return kr_fail_errno(err, KR_E_SYSTEM, end->fault_errno, "the launcher failed");
		return kr_fail(err, KR_E_SYSTEM, "the launcher ended before the command started");
	}
}

/* ---- one launch ---- */

/* In the session's folder, where no worker ever wrote: git would read a configuration from it. */
static const char throwaway[] = "home";

static const char *
throwaway_home(struct kr_run_state *run, const struct kr_job *job, int folder, struct kr_error *err)
{
	if (mkdirat(folder, throwaway, 0700) < 0) {
		kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make '%s/%s'", job->paths.folder, throwaway);
		return NULL;
	}
	return kr_path_join(run->arena, job->paths.folder, throwaway);
}

/* Before every launch: what is mounted is what was looked at now (REF-04, REF-06). */
static int
check_members(struct kr_run_state *run, struct kr_error *err)
{
	for (size_t i = 1; i < run->tree_count; i++) {
		struct kr_tree *tree = &run->trees[i];
		struct kr_plan_place *places;

		if (kr_member_check(run->arena, run->item.id, run->item.worktree, tree, &places, &tree->plan.place_count, err) < 0)
			return -1;
		tree->plan.places = places;
	}
	kr_workspace_link(run->trees, run->tree_count);
	return 0;
}

static struct kr_request *
make_request(struct kr_run_state *run, struct kr_job *job, const char *home, struct kr_error *err)
{
	struct kr_request *request = kr_arena_new(run->arena, struct kr_request);

	if (check_members(run, err) < 0)
		return NULL;
	*request = (struct kr_request){
		.repo = run->repo,
		.phase = job->phase,
		.item = run->item.id,
		.session = job->paths.id,
		.worktree = run->item.worktree,
		.checkout = run->trees->checkout.root,
		.home = home,
		.results_dir = run->item.results_dir,
		.result_file = job->paths.result_file,
		.channel_dir = job->paths.channel_dir,
		.cwd = job->cwd,
		.argv = job->argv,
		.starter = job->starter,
		.terminal = job->terminal,
		.git = &run->trees->plan,
		.is_short_run = job->is_short_run,
		.agent = job->launch ? &job->launch->plan : job->agent,
		.container = job->container ? &job->container->plan : NULL,
	};
	return request;
}

/* What goes on while the sandbox starts. A failure is the proxy's: without it the init runs nothing, and the session is to
 * be ended. */
static int
start_beside(struct kr_run_state *run, struct kr_job *job, struct kr_relay_side sides[KR_RELAY_SIDES], struct kr_error *err)
{
	bool first = !run->changes.started;

	if (job->network && kr_session_network_serve(job->network, err) < 0)
		return -1;
	KR_FAULT(egress_started);
	if (job->network)
		sides[1] = (struct kr_relay_side){ kr_session_network_fd(job->network), kr_session_network_ready,
			job->network };
	kr_changes_start(run);
	sides[0] = (struct kr_relay_side){ run->changes.running ? run->changes.git.out_fd : -1, kr_changes_take,
		&run->changes };
	if (first) {
		kr_session_sweep(run->host.places.run_dir, kr_run_is_macos(run) ? run->host.guest_dir : NULL);
		kr_run_container_sweep(run);
	}
	return 0;
}

static int
launch_and_follow(struct kr_run_state *run, struct kr_job *job, struct kr_log *log, struct kr_error *err)
{
	struct kr_relay_side sides[KR_RELAY_SIDES] = { { .fd = -1 }, { .fd = -1 } };
	const struct kr_relay_want want = {
		.terminal = job->terminal,
		.in = job->in,
		.out = job->out,
		.err = job->err,
		.folder = job->paths.folder,
		.log = log,
		.out_is_data = job->is_short_run,
		.is_interrupted_first = job->launch != NULL,
		.limit_ms = job->limit_ms,
		.limit_bytes = job->limit_bytes,
		.sides = sides,
	};
	struct kr_relay *relay = kr_relay_new(&want, err);
	struct kr_session session = { .control_fd = -1, .lifeline_fd = -1 };
	struct kr_session_start start = {
		.host = &run->host,
		.plan = job->plan,
		.folder = job->paths.folder,
		.channel_socket = job->network ? kr_session_network_socket(job->network) : NULL,
		.lifeline = true,
		.container = job->container ? &job->container->container : NULL,
	};
	int result;

	if (!relay)
		return -1;
	run->changes.quiet = job->terminal;
	kr_relay_worker_ends(relay, &start.stdin_fd, &start.stdout_fd, &start.stderr_fd);
	if (job->terminal) {
		struct winsize size;

		kr_terminal_size(&(struct kr_terminal){ .fd = job->in }, &size);
		start.rows = size.ws_row;
		start.columns = size.ws_col;
		start.keep_stderr = !isatty(job->err);
	}
	result = kr_session_launch(run->arena, &start, &session, err);
	job->is_launched = result == 0;
	if (result == 0) {
		bool is_served = start_beside(run, job, sides, err) == 0;

		if (!is_served)
			kr_close_p(&session.lifeline_fd);
		result = kr_relay_follow(relay, &session, &job->end, is_served ? err : NULL);
		result = is_served ? result : -1;
	}
	run->changes.quiet = false;
	kr_relay_free(relay);
	if (result == 0 && !job->end.started && !job->end.exec_errno)
		result = explain_fault(run, job, err);
	return result;
}

/* A refusal belongs to the session as much as to the person: into its log, and an end that `view` can show.
 */
static void
record_failure(int folder, struct kr_log *log, const struct kr_error *err)
{
	char text[sizeof(err->message) + sizeof(err->hint) + 16], exit_text[32];
	int n = snprintf(text, sizeof(text), "%s%s%s\n", err->message, err->hint[0] ? "; hint: " : "", err->hint);

	kr_log_add(log, KR_LOG_NOTE, text, (size_t)n, kr_now_ms());
	if (faccessat(folder, KG_EXIT_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return; /* the launcher's own word */
	n = snprintf(exit_text, sizeof(exit_text), "%d 0 not-started\n", KG_EXIT_REFUSED);
	(void)kr_file_write_at(
		folder, KG_EXIT_FILE, exit_text, (size_t)n, 0600, NULL); /* `view` then says lost */
}

/* What the command left is no part of what it printed. */
static void
record_left(struct kr_log *log, const struct kr_session_end *end)
{
	char words[KR_LEFT_WORDS], text[KR_LEFT_WORDS + 64];
	int n;

	kr_session_left_words(end, words);
	if (!*words)
		return;
	n = snprintf(text, sizeof(text), "still running when the command had ended: %s\n", words);
	kr_log_add(log, KR_LOG_NOTE, text, (size_t)n, kr_now_ms());
}

/* CHN-11: at every launch. */
static void
tell_open_network(struct kr_log *log)
{
	static const char text[] =
		"unrestricted_network: the session reaches every host that this machine does, and kraft not at all\n";

	kr_run_say("%.*s", (int)sizeof(text) - 2, text);
	kr_log_add(log, KR_LOG_NOTE, text, sizeof(text) - 1, kr_now_ms());
}

/* The way out comes first: a session that cannot get it runs nothing (POL-09), and on macOS the plan says where it is. A
 * container with an open network has none of kraft's, and nobody to call it by (CHN-11). */
static int
open_network(struct kr_run_state *run, struct kr_job *job, const struct kr_request *request, struct kr_error *err)
{
	size_t needed;
	struct kr_session_network_want want = {
		.host = &run->host,
		.hosts = kr_plan_hosts(run->arena, request, &needed),
		.phase = job->phase,
		.item = run->item.id,
		.session = job->paths.id,
		.channel_dir = job->paths.channel_dir,
		.on_call = run->want->on_call,
		.context = run->want->context,
		.repo = run->repo->path,
		.worktree = run->item.worktree,
		.branch = run->trees->git.record.branch,
		.policy = job->is_short_run ? NULL : &run->where.policy,
		.harness = job->launch ? job->launch->agent->harness : NULL,
		.is_on_loopback = kr_run_is_macos(run),
	};

	if (job->is_short_run || kr_plan_has_open_network(request))
		return 0;
	if (request->secrets && request->secrets->rule_count) {
		want.secrets = request->secrets;
		if (kr_run_container_host_roots(run, &want.roots, &want.roots_bytes, err) < 0)
			return -1;
	}
	return kr_session_network_open(run->arena, &want, &job->network, err);
}

static int
write_tree_settings(struct kr_run_state *run, const struct kr_job *job, struct kr_error *err)
{
	for (size_t i = 0; run->tree_count > 1 && i < run->tree_count; i++)
		if (kr_shared_write_settings(run->arena, job->paths.channel_dir, kr_arena_printf(run->arena, KR_TREE_SETTINGS "-%zu", i),
				&run->trees[i].plan.identity, i ? NULL : kr_run_members_as_excludes(run), err) < 0)
			return -1;
	return 0;
}

/* What is different in a request on macOS. */
static int
fill_macos(struct kr_run_state *run, struct kr_job *job, struct kr_request *request, struct kr_error *err)
{
	struct kr_plan_macos *macos = kr_arena_new(run->arena, struct kr_plan_macos);
	const struct kr_egress_door *door = job->network ? kr_session_network_door(job->network) : NULL;

	if (door) {
		macos->proxy = kr_arena_printf(run->arena, "http://kraft:%s@127.0.0.1:%u", door->token, door->port);
		macos->proxy_port = door->port;
	}
	if (kr_seatbelt_make_tmpdir(run->arena, &run->host, job->paths.id, &macos->tmpdir, err) < 0 ||
		write_tree_settings(run, job, err) < 0)
		return -1;
	macos->git = &run->trees->shared;
	request->macos = macos;
	request->git = NULL;
	return 0;
}

static int
plan_and_follow(struct kr_run_state *run, struct kr_job *job, struct kr_request *request, struct kr_log *log, struct kr_error *err)
{
	if (kr_run_is_macos(run) && fill_macos(run, job, request, err) < 0)
		return -1;
	job->plan = kr_plan_build(run->arena, &run->host, request, NULL, err);
	if (!job->plan)
		return -1;
	if (kr_plan_has_open_network(request))
		tell_open_network(log);
	KR_FAULT(channel_bound);
	return launch_and_follow(run, job, log, err);
}

/* New ones for each session (CRED-15); a short run has no way out, so it gets none. */
static int
make_sentinels(const struct kr_run_state *run, struct kr_request *request, struct kr_error *err)
{
	if (request->is_short_run || !run->repo->sandbox.credential_count)
		return 0;
	return kr_plan_secrets(run->arena, request, kr_random, &request->secrets, err);
}

static int
trust(struct kr_run_state *run, struct kr_job *job, struct kr_error *err)
{
	if (!job->container)
		return 0;
	return kr_run_container_trust(
		run, &job->paths, job->network ? kr_session_network_authority(job->network) : NULL, job->container, err);
}

static int
plan_and_launch(
	struct kr_run_state *run, struct kr_job *job, const char *home, struct kr_log *log, struct kr_error *err)
{
	struct kr_request *request;
	int result;

	if (job->refusal) {
		*err = *job->refusal;
		return -1;
	}
	if (run->container.is_used)
		job->container = kr_run_container_place(run, &job->paths);
	if (job->launch && kr_run_agent_place(run, job->launch, &job->paths, err) < 0)
		return -1;
	request = make_request(run, job, home, err);
	if (!request || make_sentinels(run, request, err) < 0 || open_network(run, job, request, err) < 0)
		return -1;
	result = trust(run, job, err);
	if (result == 0)
		result = plan_and_follow(run, job, request, log, err);
	kr_session_network_close(job->network);
	return result;
}

/* ---- its end on macOS ---- */

/* A launcher that was killed has ended nothing. */
static void
end_for_launcher(struct kr_run_state *run, struct kr_job *job, int folder)
{
	struct kr_error err = { 0 };

	if (!job->is_launched || faccessat(folder, KG_EXIT_FILE, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return;
	if (kr_seatbelt_end(run->arena, run->host.guest_dir, run->host.places.run_dir, job->paths.id, job->end.outlived,
			&job->end.outlived_count, &err) < 0)
		kr_run_say("%s", err.message);
}

static void
end_on_macos(struct kr_run_state *run, struct kr_job *job, int folder, struct kr_log *log)
{
	if (!kr_run_is_macos(run))
		return;
	end_for_launcher(run, job, folder);
	kr_run_note_outlived(run, job, log);
	(void)kr_tree_remove_at(AT_FDCWD, kr_seatbelt_tmpdir(run->arena, &run->host, job->paths.id)); /* the sweep does it else */
}

int
kr_job_run(struct kr_run_state *run, struct kr_job *job, struct kr_error *err)
{
	const char *home = NULL;
	kr_auto_fd int folder = -1, facts_lock = -1;
	struct kr_session_facts facts;
	struct kr_log log;
	int result;

	if (kr_session_paths_make(run->arena, &run->host, &run->item, job->id, &job->paths, err) < 0)
		return -1;
	KR_FAULT(folder_made);
	folder = kr_path_open(job->paths.folder, O_RDONLY | O_DIRECTORY, err);
	if (folder < 0)
		return -1;
	facts = (struct kr_session_facts){
		.id = job->paths.id,
		.item = run->item.id,
		.repo = run->repo->path,
		.worktree = run->item.worktree,
		.phase = kr_phase_name(job->phase),
		.purpose = job->purpose,
		.harness = job->harness,
		.argv = job->argv,
		.container = run->container.is_used ? kr_container_name(run->arena, job->paths.id) : NULL,
		.started_ms = kr_now_ms(),
	};
	facts_lock = kr_session_facts_write(folder, &facts, err);
	if (facts_lock < 0)
		return -1;
	KR_FAULT(facts_written);
	if (job->is_short_run && !(home = throwaway_home(run, job, folder, err)))
		return -1;
	kr_log_init(&log, folder, KR_LOG_LIMIT_BYTES);
	result = plan_and_launch(run, job, home ? home : run->item.home, &log, err);
	end_on_macos(run, job, folder, &log);
	if (result < 0)
		record_failure(folder, &log, err);
	else
		record_left(&log, &job->end);
	job->log_errno = log.sys_errno;
	kr_log_close(&log);
	if (home)
		(void)kr_tree_remove_at(folder, throwaway);
	if (job->launch)
		kr_run_agent_clear(&job->paths);
	kr_run_container_clear(run, job);
	(void)kr_tree_remove_at(AT_FDCWD, job->paths.channel_dir); /* the sweep of a later session does it else */
	return result;
}
