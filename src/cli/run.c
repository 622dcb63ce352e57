/*
 * Order: facts of the host, checkout, repository, item; then what has to happen once in the item (moving its
 * worktree to the wanted commit, the setup command), then the command itself. Each of them is one session
 * with a folder, a log and an exit file, launched and followed the same way. Whatever is refused after the
 * folder exists is in the log too (OS-LCH-12).
 *
 * Beside the first sandbox's start run `git status` of the checkout, for the remark about changes that are not
 * included, and the sweep of what older sessions left: a person waits for the start, and for nothing else.
 */
#include "cli/run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/where.h"
#include "os/fs.h"
#include "os/host.h"
#include "os/timer.h"
#include "session/facts.h"
#include "session/item.h"
#include "session/local_files.h"
#include "session/log.h"
#include "session/network.h"
#include "session/outside.h"
#include "session/relay.h"
#include "session/terminal.h"

enum { STATUS_WAIT_MS = 50, TAIL_BYTES = 4096 };

/* `git status` in flight, counted as it arrives. */
struct changes {
	struct kr_git_run git;
	size_t count;
	size_t column; /* in the present entry */
	bool is_rename, skip;
	bool started, running;
	bool quiet; /* a terminal program draws now: said at the end */
};

struct run {
	struct kr_arena *arena;
	const struct kr_run_want *want;
	enum kr_phase phase;
	struct kr_host host;
	struct kr_checkout checkout;
	const struct kr_repo *repo;
	struct kr_where where;
	struct kr_item item;
	struct changes changes;
};

/* One launch. */
struct job {
	const char *purpose;
	enum kr_phase phase;
	const char *const *argv;
	const char *cwd, *home;
	bool terminal, is_git;
	int in, out, err; /* as in struct kr_relay_want */
	/* what came of it: */
	struct kr_session_paths paths;
	const struct kr_plan *plan;
	struct kr_session_network *network; /* NULL: it has none */
	struct kr_session_end end;
	int log_errno;
};

KR_PRINTF(1, 2) static void say(const char *fmt, ...)
{
	char text[1024], safe[4 * sizeof(text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	kr_text_escape(safe, sizeof(safe), text, strlen(text));
	fprintf(stderr, "kraft: %s\n", safe);
}

/* ---- changes that are not included ---- */

static void
start_changes(struct run *run)
{
	static const char *const argv[] = { "status", "--porcelain", "-z", "--untracked-files=normal", NULL };
	const struct kr_git_where where = {
		.git_dir = run->checkout.git_dir, .work_tree = run->checkout.root, .work_dir_fd = -1
	};
	struct changes *c = &run->changes;

	if (c->started)
		return;
	c->started = true;
	/* A remark is not worth an error. */
	c->running = !run->want->with_changes && kr_git_start(&where, argv, &c->git, NULL) == 0;
}

/* Entries of `status --porcelain -z`: "XY path\0", and after a rename or copy one more "old path\0". */
static void
count_changes(struct changes *c, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (bytes[i] == '\0') {
			c->count += !c->skip;
			c->skip = !c->skip && c->is_rename;
			c->is_rename = false;
			c->column = 0;
			continue;
		}
		if (c->column++ < 2 && !c->skip)
			c->is_rename = c->is_rename || bytes[i] == 'R' || bytes[i] == 'C';
	}
}

static void
say_changes(struct changes *c)
{
	if (c->count)
		say("%zu uncommitted change%s not included; --with-changes takes %s along", c->count,
			c->count == 1 ? " is" : "s are", c->count == 1 ? "it" : "them");
	c->count = 0; /* said */
}

/* Takes what git says now; its pipe is readable. False when that was the end of it. */
static bool
take_changes(void *context)
{
	struct changes *c = context;
	kr_auto_buf struct kr_buf rest = KR_BUF(1);
	char chunk[8192];
	ssize_t got = read(c->git.out_fd, chunk, sizeof(chunk));

	if (got > 0) {
		count_changes(c, chunk, (size_t)got);
		return true;
	}
	if (kr_git_finish(&c->git, &rest, NULL) < 0)
		c->count = 0;
	c->running = false;
	if (!c->quiet)
		say_changes(c);
	return false;
}

/* Waits a moment for the last of it; a command that was done sooner than git does not wait for ever. */
static void
finish_changes(struct changes *c, int wait_ms)
{
	int64_t end = kr_clock_ms() + wait_ms;

	c->quiet = false;
	while (c->running) {
		struct pollfd poller = { .fd = c->git.out_fd, .events = POLLIN };
		int64_t left = end - kr_clock_ms();

		if (poll(&poller, 1, left > 0 ? (int)left : 0) <= 0) {
			kr_git_abandon(&c->git);
			c->running = false;
			say("whether there are uncommitted changes could not be told in time; --with-changes takes them "
				"along");
			return;
		}
		(void)take_changes(c);
	}
	say_changes(c);
}

/* ---- why a launch failed ---- */

static int
explain_bwrap(struct run *run, const struct kr_session_end *end, struct kr_error *err)
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
explain_fault(struct run *run, const struct kr_session_end *end, struct kr_error *err)
{
	if (end->wall >= 0) {
		kr_fail(err, KR_E_WALL,
			"a mount is not what was checked before the start: somebody changed it in between");
		return kr_hint(err, "run the command again");
	}
	switch (end->fault) {
	case KG_FAULT_BWRAP:
		return explain_bwrap(run, end, err);
	case KG_FAULT_KEYRING:
		kr_fail_errno(err, KR_E_WALL, end->fault_errno, "cannot join a new session keyring");
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

static const struct kr_plan *
make_plan(struct run *run, struct job *job, struct kr_error *err)
{
	struct kr_request *request = kr_arena_new(run->arena, struct kr_request);

	*request = (struct kr_request){
		.repo = run->repo,
		.phase = job->phase,
		.item = run->item.id,
		.session = job->paths.id,
		.worktree = run->item.worktree,
		.checkout = run->checkout.root,
		.home = job->home ? job->home : run->item.home,
		.results_dir = run->item.results_dir,
		.result_file = job->paths.result_file,
		.channel_dir = job->paths.channel_dir,
		.cwd = job->cwd,
		.argv = job->argv,
		.terminal = job->terminal,
		.git_common = job->is_git ? run->item.git_common : NULL,
		.git_dir = job->is_git ? run->item.git_dir : NULL,
	};
	return kr_plan_build(run->arena, &run->host, request, NULL, err);
}

/* What goes on while bubblewrap starts. A failure is the proxy's: without it the init runs nothing, and the session is to
 * be ended. */
static int
start_beside(struct run *run, struct job *job, struct kr_relay_side sides[KR_RELAY_SIDES], struct kr_error *err)
{
	bool first = !run->changes.started;

	if (job->network && kr_session_network_serve(job->network, err) < 0)
		return -1;
	if (job->network)
		sides[1] = (struct kr_relay_side){ kr_session_network_fd(job->network), kr_session_network_ready,
			job->network };
	start_changes(run);
	sides[0] = (struct kr_relay_side){ run->changes.running ? run->changes.git.out_fd : -1, take_changes,
		&run->changes };
	if (first)
		kr_session_sweep(run->host.places.run_dir);
	return 0;
}

static int
launch_and_follow(struct run *run, struct job *job, struct kr_log *log, struct kr_error *err)
{
	struct kr_relay_side sides[KR_RELAY_SIDES] = { { .fd = -1 }, { .fd = -1 } };
	const struct kr_relay_want want = {
		.terminal = job->terminal,
		.in = job->in,
		.out = job->out,
		.err = job->err,
		.folder = job->paths.folder,
		.log = log,
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
		result = explain_fault(run, &job->end, err);
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
	n = snprintf(exit_text, sizeof(exit_text), "%d 0 not-started\n", kr_error_exit_status(err->code));
	(void)kr_file_write_at(
		folder, KG_EXIT_FILE, exit_text, (size_t)n, 0600, NULL); /* `view` then says lost */
}

/* The way out comes first: a session that cannot get it runs nothing (POL-09). */
static int
connect_and_launch(struct run *run, struct job *job, struct kr_log *log, struct kr_error *err)
{
	const struct kr_session_network_want want = {
		.host = &run->host,
		.hosts = job->plan->hosts,
		.phase = job->phase,
		.item = run->item.id,
		.session = job->paths.id,
		.channel_dir = job->paths.channel_dir,
	};
	int result;

	if (!job->is_git && kr_session_network_open(run->arena, &want, &job->network, err) < 0)
		return -1;
	result = launch_and_follow(run, job, log, err);
	kr_session_network_close(job->network);
	return result;
}

static int
run_job(struct run *run, struct job *job, struct kr_error *err)
{
	kr_auto_fd int folder = -1, facts_lock = -1;
	struct kr_session_facts facts;
	struct kr_log log;
	int result = -1;

	if (kr_session_paths_make(run->arena, &run->host, &run->item, &job->paths, err) < 0)
		return -1;
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
		.argv = job->argv,
		.started_ms = kr_now_ms(),
	};
	facts_lock = kr_session_facts_write(folder, &facts, err);
	if (facts_lock < 0)
		return -1;
	kr_log_init(&log, folder, KR_LOG_LIMIT_BYTES);
	job->plan = make_plan(run, job, err);
	if (job->plan)
		result = connect_and_launch(run, job, &log, err);
	if (result < 0)
		record_failure(folder, &log, err);
	job->log_errno = log.sys_errno;
	kr_log_close(&log);
	(void)kr_tree_remove_at(AT_FDCWD, job->paths.channel_dir); /* the sweep of a later session does it else */
	return result;
}

/* ---- what its network refused ---- */

/* The exact lines to add, where they belong (POL-06). */
static void
tell_grants(const struct run *run, const struct job *job, const struct kr_session_network_notes *notes)
{
	bool told = false;

	for (size_t i = 0; i < notes->refused_count; i++) {
		if (!notes->refused[i].grant)
			continue;
		if (!told)
			say("to allow them, add to sandbox.network.%s.allow of '%s' in '%s/repos.yaml':",
				kr_phase_name(job->phase), run->repo->name, run->host.places.config_dir);
		told = true;
		say("    - \"%s\"", notes->refused[i].grant);
	}
}

static void
tell_network(const struct run *run, const struct job *job)
{
	const struct kr_session_network_notes *notes =
		job->network ? kr_session_network_notes(job->network) : NULL;

	if (!notes)
		return;
	if (notes->refused_count)
		say("%zu host%s refused in the %s phase:", notes->refused_count, notes->refused_count == 1 ? " was" : "s were",
			kr_phase_name(job->phase));
	for (size_t i = 0; i < notes->refused_count; i++)
		say("    %s", notes->refused[i].reason);
	if (notes->more)
		say("    and more");
	tell_grants(run, job, notes);
	if (notes->lost)
		say("the session's proxy ended before its time and was %s; its connections were cut",
			notes->is_out ? "not started again" : "started again");
	if (notes->record.code != KR_E_NONE)
		say("not every event of this session could be recorded: %s", notes->record.message);
}

/* ---- what happens once in an item ---- */

/* What git complains of: its first "error: " or "fatal: " line, with up to three of the files that it lists
 * below. */
static const char *
git_reason(struct run *run, const struct job *job)
{
	kr_auto_fd int folder = open(job->paths.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char tail[TAIL_BYTES + 1];
	size_t n = folder < 0 ? 0 : kr_log_tail(folder, tail, TAIL_BYTES);
	const char *reason = NULL;
	int files = 0;

	tail[n] = '\0';
	for (char *line = tail, *next; *line; line = next) {
		size_t len = strcspn(line, "\n");

		next = line + len + (line[len] == '\n');
		line[len] = '\0';
		if (!reason && (kr_text_has_prefix(line, "error: ") || kr_text_has_prefix(line, "fatal: ")))
			reason = kr_arena_dup(run->arena, line + strlen("error: "));
		else if (reason && line[0] == '\t' && files < 3)
			reason = kr_arena_printf(run->arena, "%s%s'%s'", reason, files++ ? ", " : " ", line + 1);
	}
	return reason ? reason : "git failed";
}

/* A home that the worker of another session never wrote to: git would read a configuration from it. */
static const char *
throwaway_home(struct run *run, struct kr_error *err)
{
	const char *home = kr_arena_printf(run->arena, "%s/sandbox-home/git-%ld-%llx", run->host.places.run_dir,
		(long)getpid(), (unsigned long long)kr_now_ms());
	kr_auto_fd int fd = kr_path_make_dirs(home, err);

	return fd < 0 ? NULL : home;
}

static int
move_worktree(struct run *run, struct kr_error *err)
{
	const char *const argv[] = { "git", kr_arena_printf(run->arena, "--git-dir=%s", run->item.git_dir),
		kr_arena_printf(run->arena, "--work-tree=%s", run->item.worktree), "-c", "core.hooksPath=/dev/null",
		"-c", "core.fsmonitor=false", "checkout", "-q", "--detach", run->item.wanted, NULL };
	struct job job = { .purpose = "checkout",
		.phase = KR_PHASE_INSTALL,
		.argv = argv,
		.cwd = run->item.worktree,
		.home = throwaway_home(run, err),
		.is_git = true,
		.in = -1,
		.out = -1,
		.err = -1 };
	int result;

	if (!job.home)
		return -1;
	result = run_job(run, &job, err);
	(void)rmdir(job.home); /* git leaves nothing in it */
	if (result < 0)
		return kr_wrap(err, "cannot move the worktree of item '%s'", run->item.id);
	if (kr_session_exit_status(&job.end) == 0) {
		if (kr_item_moved(&run->host, run->repo, &run->item, err) < 0)
			return -1;
		return kr_local_files_add(run->repo, run->checkout.root, run->item.worktree, err);
	}
	kr_fail(err, KR_E_BUSY, "cannot move the worktree of item '%s' to commit %.12s: %s", run->item.id,
		run->item.wanted, git_reason(run, &job));
	return kr_hint(err, "--keep runs on the worktree as it is, --item NAME in another one; it lies in '%s'",
		run->item.worktree);
}

static int
set_up(struct run *run, struct kr_error *err)
{
	const char *const argv[] = { "/bin/sh", "-c", run->repo->setup_command, NULL };
	struct job job = { .purpose = "setup",
		.phase = KR_PHASE_INSTALL,
		.argv = argv,
		.cwd = run->item.worktree,
		.in = -1,
		.out = STDERR_FILENO,
		.err = STDERR_FILENO };

	say("setting up item '%s': %s", run->item.id, run->repo->setup_command);
	if (run_job(run, &job, err) < 0)
		return kr_wrap(err, "the setup command of '%s'", run->repo->name);
	if (kr_session_exit_status(&job.end) == 0)
		return kr_item_set_up(&run->host, run->repo, &run->item, err);
	tell_network(run, &job);
	if (job.end.signal)
		kr_fail(err, KR_E_REFUSED, "the setup command of '%s' was ended by signal %d", run->repo->name,
			job.end.signal);
	else
		kr_fail(err, KR_E_REFUSED, "the setup command of '%s' failed with exit code %d", run->repo->name,
			kr_session_exit_status(&job.end));
	return kr_hint(
		err, "what it said is above and in 'kraft view logs %s'; it runs again next time", job.paths.id);
}

static int
prepare_item(struct run *run, struct kr_error *err)
{
	const char *setup = run->repo->setup_command;

	if (run->item.state == KR_ITEM_NEEDS_CHECKOUT && move_worktree(run, err) < 0)
		return -1;
	if (!run->item.setup_done && setup && *setup && set_up(run, err) < 0)
		return -1;
	return kr_item_share(&run->item, err);
}

/* ---- the way there ---- */

static int
refuse_root(struct kr_error *err)
{
	if (geteuid() != 0 && getuid() != 0)
		return 0;
	kr_fail(err, KR_E_REFUSED, "the sandbox does not run as root"); /* OS-LCH-14 */
	return kr_hint(
		err, "run kraft as an ordinary user; in a container make one first, for instance 'useradd -m me'");
}

static int
find_repo(struct run *run, struct kr_error *err)
{
	struct kr_where *where = &run->where;

	if (kr_where_find(run->arena, &run->host.places, run->want->repo, where, err) < 0)
		return -1;
	for (size_t i = 0; i < where->repos->warnings.n; i++)
		say("%s", where->repos->warnings.v[i]);
	run->checkout = where->checkout;
	run->repo = where->repo;
	return 0;
}

static const char *
find_cwd(struct run *run)
{
	const char *wanted, *cwd = kr_where_cwd(run->arena, &run->where, run->item.worktree, &wanted);

	if (strcmp(cwd, wanted) != 0)
		say("'%s' is not in the worktree, so the command starts in '%s'", run->where.here, cwd);
	return cwd;
}

/* ---- after the command ---- */

static void
tell_outside(struct run *run, const struct job *job)
{
	kr_auto_fd int folder = open(job->paths.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char *tail = kr_arena_alloc(run->arena, KR_OUTSIDE_BYTES);
	size_t n = folder < 0 ? 0 : kr_log_tail(folder, tail, KR_OUTSIDE_BYTES);
	struct kr_outside found[KR_OUTSIDE_MAX];
	size_t count = kr_outside_find(run->arena, &run->host, job->plan, tail, n, found), at = 0;
	const char *remark;

	while ((remark = kr_outside_remark(tail, n, &at)) != NULL)
		say("%s", remark);
	for (size_t i = 0; i < count; i++) {
		if (!found[i].expose)
			say("'%s' is in your checkout, which is not shown; the command runs in '%s'", found[i].path,
				run->item.worktree);
		else
			say("'%s' exists here but not in the sandbox; to show it, add '%s' to the expose list of '%s' in "
				"'%s/repos.yaml'",
				found[i].path, found[i].expose, run->repo->name, run->host.places.config_dir);
	}
}

/* A file that is not in the worktree: the init's word can only speak of the expose list. */
static void
tell_missing(struct run *run, const struct job *job)
{
	const char *command = job->argv[0], *inside, *mine;

	if (job->end.exec_errno != ENOENT || !strchr(command, '/') || command[0] == '/')
		return;
	inside = kr_path_join(run->arena, job->cwd, command);
	if (!inside || !kr_path_is_within(inside, run->item.worktree) ||
		kr_fs_live.look(NULL, inside).type != KR_FS_NONE)
		return;
	mine = kr_path_join(run->arena, run->checkout.root, inside + strlen(run->item.worktree) + 1);
	if (mine && kr_fs_live.look(NULL, mine).type != KR_FS_NONE)
		say("'%s' is in your checkout but not in the worktree; commit it, or take it along with "
			"--with-changes",
			command);
	else
		say("there is no '%s' in the worktree", command);
}

static void
sum_up(struct run *run, const struct job *job)
{
	if (job->end.write_errno)
		say("cannot write what the command says: %s; it is in 'kraft view logs %s'",
			strerror(job->end.write_errno), job->paths.id);
	if (job->log_errno)
		say("the log of this session ends early: %s", strerror(job->log_errno));
	tell_network(run, job);
	if (kr_session_exit_status(&job->end) != 0) {
		for (size_t i = 0; i < job->plan->notes.n; i++)
			say("%s", job->plan->notes.v[i]);
		tell_missing(run, job);
		tell_outside(run, job);
	}
	finish_changes(&run->changes, STATUS_WAIT_MS);
}

static int
run_command(struct run *run, struct kr_error *err)
{
	struct job job = {
		.purpose = run->want->purpose,
		.phase = run->phase,
		.argv = run->want->argv,
		.cwd = find_cwd(run),
		.terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO),
		.in = STDIN_FILENO,
		.out = STDOUT_FILENO,
		.err = STDERR_FILENO,
	};
	int status;

	if (run_job(run, &job, err) < 0)
		return -1;
	sum_up(run, &job);
	status = kr_session_exit_status(&job.end);
	return status == 0 && job.end.write_errno ? 1 : status;
}

static int
run_in_item(struct run *run, struct kr_error *err)
{
	const struct kr_item_want want = {
		.id = run->want->item, .with_changes = run->want->with_changes, .keep = run->want->keep
	};
	int result;

	if (kr_item_open(run->arena, &run->host, &run->checkout, run->repo, &want, &run->item, err) < 0)
		return -1;
	for (size_t i = 0; i < run->item.notes.n; i++)
		say("%s", run->item.notes.v[i]);
	result = prepare_item(run, err);
	if (result == 0)
		result = run_command(run, err);
	kr_item_close(&run->item);
	return result;
}

static int
open_and_run(struct kr_arena *arena, const struct kr_run_want *want, struct kr_error *err)
{
	struct run run = { .arena = arena, .want = want };
	int result;

	if (refuse_root(err) < 0 || kr_where_phase(want->phase, &run.phase, err) < 0 ||
		kr_host_gather(arena, &run.host, err) < 0 || kr_host_prepare_dirs(&run.host, err) < 0 ||
		find_repo(&run, err) < 0)
		return -1;
	result = run_in_item(&run, err);
	if (run.changes.running)
		kr_git_abandon(&run.changes.git);
	return result;
}

int
kr_run(struct kr_arena *arena, const struct kr_run_want *want, struct kr_error *err)
{
	int result = open_and_run(arena, want, err);

	/* Status 1 would read as the command's own: a test suite that failed. */
	if (result < 0 && err->code == KR_E_NOT_FOUND)
		err->code = KR_E_REFUSED;
	return result;
}
