/*
 * One task as a session of kr_run, in a process of its own: it can be ended and given a time without ending
 * the host, and what goes wrong in it ends nothing else. It reports over a pipe how the launch went; how the
 * task came out is decided here, from that, the time, and the result file (facts of ITM-02, in this order).
 */
#include "work/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/path.h"
#include "base/portable.h"
#include "os/sys.h"
#include "os/timer.h"
#include "session/facts.h"
#include "session/log.h"
#include "work/brief.h"
#include "work/fingerprint.h"

/* From TERM to KILL: the relay ends what is inside sooner (session/relay.h), and then its commits come out. */
enum { LOOK_MS = 200, GRACE_MS = 30000 };

/* From the task's process, whole or not at all. */
struct report {
	int status; /* of kr_run */
	struct kr_run_done done;
	int sys_errno;      /* of its error */
	char message[1300]; /* of its error, with the hint; "": none */
};

/* ---- what others ask ---- */

const char *const *
kr_work_words_of(struct kr_arena *arena, const char *json)
{
	json_t *list = json ? json_loads(json, 0, NULL) : NULL;
	size_t n = json_array_size(list);
	const char **words = kr_arena_alloc(arena, (n + 1) * sizeof(*words));

	for (size_t i = 0; i < n; i++)
		words[i] = kr_arena_dup(arena,
			json_string_value(json_array_get(list, i)) ? json_string_value(json_array_get(list, i)) : "");
	words[n] = NULL;
	json_decref(list);
	return n ? words : NULL;
}

const char *
kr_work_tail(struct kr_work *work, const char *session, size_t max)
{
	const char *folder =
		kr_arena_printf(work->arena, "%s/sessions/%s", work->host.places.run_dir, session ? session : "");
	kr_auto_fd int fd = session ? kr_path_open(folder, O_RDONLY | O_DIRECTORY, NULL) : -1;
	char *bytes = kr_arena_alloc(work->arena, max + 1);
	size_t n = fd < 0 ? 0 : kr_log_tail(fd, bytes, max);

	(void)kr_brief_tail(bytes, bytes, n, n == max);
	return bytes;
}

/* ---- its process ---- */

static int
instruction_fd(const struct kr_work_launch *launch, struct kr_error *err)
{
	return launch->instruction
			   ? kr_memory_file("kraft-instruction", launch->instruction, strlen(launch->instruction), err)
			   : open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void
run_here(
	struct kr_work *work, const struct kr_work_task *t, const struct kr_work_launch *launch, struct report *report)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_error err = { 0 };
	struct kr_work_caller caller = { work, &launch->policy, t->task->path };
	const struct kr_run_streams streams = { .in = instruction_fd(launch, &err),
		.out = t->show ? STDOUT_FILENO : -1,
		.err = t->show ? STDERR_FILENO : -1 };
	const struct kr_run_want want = {
		.repo = t->view->row.repo,
		.item = t->view->row.id,
		.base = t->view->row.base,
		.session = t->session,
		.purpose = t->task->path,
		.go_on = true,
		.commit = launch->commit ? "" : NULL,
		.put_back = t->put_back,
		.streams = &streams,
		.done = &report->done,
		.on_call = kr_work_answer,
		.context = &caller,
		.layers = launch->layers,
		.ask_image = true,
		.argv = launch->argv,
		.agent = launch->agent,
	};

	report->status = streams.in < 0 ? -1 : kr_run(&arena, &want, &err);
	report->sys_errno = err.sys_errno;
	if (report->status < 0)
		snprintf(report->message, sizeof(report->message), "%s%s%s", err.message, err.hint[0] ? "; " : "",
			err.hint);
}

/* A kraft that is killed takes the task with it: a signal for the process, the lifeline for the sandbox. */
static void
be_task(struct kr_work *work, const struct kr_work_task *t, const struct kr_work_launch *launch, int report_fd,
	pid_t host)
{
	struct report report = { 0 };

	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	kr_end_with_parent(host, SIGTERM);
	KR_FAULT(task_begun);
	run_here(work, t, launch, &report);
	if (kr_write_all(report_fd, &report, sizeof(report), NULL) < 0)
		_exit(1);
	KR_FAULT(task_reported);
	_exit(0);
}

struct running {
	pid_t pid;
	int report_fd;
	int64_t started_ms, ended_ms; /* ended_ms: when it was asked to end; 0: not yet */
	bool is_over_time, is_stopped;
};

static int
start(struct kr_work *work, const struct kr_work_task *t, const struct kr_work_launch *launch, struct running *r,
	struct kr_error *err)
{
	const pid_t host = getpid();
	int ends[2];

	if (kr_pipe_pair(ends, false) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a pipe");
	kr_work_close(work); /* SQLite's locks are a process's, and what it knows of them would be inherited */
	fflush(NULL);
	r->pid = fork();
	if (r->pid == 0) {
		(void)close(ends[0]);
		be_task(work, t, launch, ends[1], host);
	}
	KR_FAULT(task_forked);
	(void)close(ends[1]);
	r->report_fd = ends[0];
	r->started_ms = kr_clock_ms();
	if (r->pid < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot start a process for the task");
	return kr_store_open(work->host.places.run_dir, KR_STORE_WRITE, &work->store, err);
}

static void
end_in_time(struct running *r, const struct kr_work_launch *launch, bool stop)
{
	const int64_t now = kr_clock_ms();

	r->is_stopped = r->is_stopped || stop;
	if (launch->seconds > 0 && (double)(now - r->started_ms) >= launch->seconds * 1000)
		r->is_over_time = true;
	if (!r->is_stopped && !r->is_over_time)
		return;
	if (!r->ended_ms) {
		r->ended_ms = now;
		(void)kill(r->pid, SIGTERM);
	} else if (now - r->ended_ms >= GRACE_MS)
		(void)kill(r->pid, SIGKILL); /* its lifeline ends what is inside */
}

/* A store that cannot be read now costs a notice, and no task. */
static void
look_at_asks(struct kr_work *work, const struct kr_work_task *t, struct kr_work_asks *seen)
{
	struct kr_error err = { 0 };

	if (work->store && kr_work_look_at_asks(work, t->view->row.id, t->session, seen, &err) < 0)
		kr_error_print(&err, stderr, false);
}

/* False: it ended without a word. */
static bool
follow(struct kr_work *work, const struct kr_work_task *t, struct running *r, const struct kr_work_launch *launch,
	const volatile sig_atomic_t *stop, struct report *report)
{
	struct kr_work_asks asks = { 0 };
	size_t n = 0;

	for (;;) {
		struct pollfd poll_fd = { .fd = r->report_fd, .events = POLLIN };
		ssize_t got;

		end_in_time(r, launch, *stop != 0);
		look_at_asks(work, t, &asks);
		if (poll(&poll_fd, 1, LOOK_MS) <= 0)
			continue;
		got = read(r->report_fd, (char *)report + n, sizeof(*report) - n);
		if (got <= 0 || (n += (size_t)got) == sizeof(*report))
			break;
	}
	while (waitpid(r->pid, NULL, 0) < 0 && errno == EINTR)
		;
	(void)close(r->report_fd);
	return n == sizeof(*report);
}

/* ---- how it came out ---- */

static int
read_result(struct kr_work *work, const char *item, const char *session, struct kr_work_outcome *out,
	bool *is_there, struct kr_error *err)
{
	const char *path =
		kr_arena_printf(work->arena, "%s/results/%s/%s.json", work->host.places.run_dir, item, session);
	struct kr_result *result = kr_arena_new(work->arena, struct kr_result);

	*is_there = false;
	if (kr_result_read(path, result, err) < 0)
		return -1;
	if (!result->is_there)
		return 0;
	*is_there = true;
	out->kind = result->status;
	out->reason = *result->problem
					  ? kr_arena_printf(work->arena, "its result file is of no use: %s", result->problem)
				  : *result->question ? result->question
				  : *result->concerns ? result->concerns
									  : result->summary;
	return 0;
}

static void
judge_exit(struct kr_work *work, const struct kr_work_task *t, const struct report *report,
	struct kr_work_outcome *out)
{
	out->kind = report->status == 0 ? KR_MARK_DONE : KR_MARK_FAILED;
	if (report->done.signal)
		out->reason = kr_arena_printf(work->arena, "it was ended by signal %d", report->done.signal);
	else if (report->status)
		out->reason = kr_arena_printf(
			work->arena, "exit code %d; 'kraft view logs %s' has what it said", report->status, t->session);
}

/* said: by its result file. The lines of an agent's stream differ each time: its words count. */
static const char *
fingerprint(struct kr_work *work, const struct kr_work_task *t, const struct report *report, const char *said,
	const struct kr_work_seen *seen)
{
	char line[KR_FINGERPRINT_LINE + 1];

	kr_fingerprint_line(line, said, strlen(said));
	return kr_fingerprint(work->arena,
		kr_arena_printf(work->arena, "%d %d %s", report->status, report->done.signal, line),
		seen && *seen->seen.said ? seen->seen.said : kr_work_tail(work, t->session, KR_FINGERPRINT_TAIL));
}

/* A question is worth more than a tidy end. */
static void
judge_left(struct kr_work *work, const struct report *report, struct kr_work_outcome *out)
{
	const bool is_done = out->kind == KR_MARK_DONE || out->kind == KR_MARK_CONCERNS;

	if (!*report->done.left_running || (!is_done && out->kind != KR_MARK_FAILED))
		return;
	out->left_running = kr_arena_dup(work->arena, report->done.left_running);
	if (is_done)
		out->reason = kr_arena_printf(work->arena, "it left processes running in the background: %s", out->left_running);
	out->kind = KR_MARK_FAILED;
}

/* What its session used is known however it ended. */
static void
note_agent(struct kr_work *work, const struct kr_work_task *t, const struct kr_work_launch *launch,
	struct kr_work_outcome *out)
{
	if (!launch->agent)
		return;
	out->resumed = launch->resumed;
	out->seen = kr_work_see(work, launch->agent->harness->id, t->session);
}

bool
kr_work_judge_launch(struct kr_arena *arena, const struct kr_work_ran *ran, struct kr_work_outcome *out)
{
	static const struct kr_sandbox none = { 0 };

	if (ran->status < 0 || (!ran->done->started && ran->status >= 126)) {
		kr_work_refuse(out, *ran->message ? kr_arena_dup(arena, ran->message)
										  : kr_arena_printf(arena, "the command could not be started (%d)", ran->status));
		return true;
	}
	if (!ran->done->oom || ran->has_result)
		return false;
	/* No repair would help: what it needs is more than it may have. */
	kr_work_refuse(out,
		kr_arena_printf(arena, "%s; raise it, or let the task need less, then 'kraft item retry'",
			kr_run_oom_words(arena, ran->walls ? &ran->walls->sandbox : &none, ran->done->oom_confirmed)));
	return true;
}

static int
judge(struct kr_work *work, const struct kr_work_task *t, const struct running *r,
	const struct kr_work_launch *launch, const struct report *report, struct kr_work_outcome *out,
	struct kr_error *err)
{
	struct kr_work_ran ran = { .status = report->status,
		.done = &report->done,
		.message = report->message,
		.walls = launch->policy.sandbox };

	if (t->put_back) {
		out->wrote = kr_arena_dup(work->arena, report->done.wrote);
		out->not_put_back =
			*report->done.not_put_back ? kr_arena_dup(work->arena, report->done.not_put_back) : NULL;
	}
	if (r->is_over_time) {
		out->kind = KR_MARK_CAPPED;
		out->cap = launch->cap ? launch->cap : kr_bound_name(KR_BOUND_TIMEOUT);
		out->cap_minutes = launch->cap ? launch->policy.bounds[launch->bound] : launch->seconds / 60;
		out->reason = kr_arena_printf(work->arena, "it was ended after %.0f minutes%s%s", launch->seconds / 60,
			launch->cap ? ", all that was left of " : "", launch->cap ? launch->cap : "");
		return 0;
	}
	if (r->is_stopped) {
		out->was_paused = true;
		return 0;
	}
	if (report->status >= 0 && read_result(work, t->view->row.id, t->session, out, &ran.has_result, err) < 0)
		return -1;
	if (kr_work_judge_launch(work->arena, &ran, out))
		return 0;
	if (!ran.has_result && launch->agent)
		kr_work_judge_agent(work, t, launch, report->status, out);
	else if (!ran.has_result)
		judge_exit(work, t, report, out);
	if (launch->agent && !out->is_worth_another)
		judge_left(work, report, out);
	if (out->kind == KR_MARK_FAILED)
		out->fingerprint = fingerprint(work, t, report, ran.has_result ? out->reason : "", out->seen);
	return 0;
}

enum { ROOM_BYTES = 16 << 20 };

/*
 * How a task came out on a full disk says nothing about the task: it is told apart from the others, and runs
 * again when there is room. So does one whose commits are still inside: what follows would not see them.
 */
static void
judge_disk(struct kr_work *work, const struct report *report, struct kr_work_outcome *out)
{
	const char *run_dir = work->host.places.run_dir;
	const uint64_t room = kr_room_bytes(run_dir);
	const bool is_full = room < ROOM_BYTES || report->sys_errno == ENOSPC || report->sys_errno == EDQUOT;
	const bool came_out = out->kind == KR_MARK_DONE || out->kind == KR_MARK_CONCERNS;

	if (out->was_paused || out->retry_ms ||
		(!report->done.commits_stay && (!is_full || (came_out && !report->done.files_stay))))
		return;
	out->was_paused = true;
	out->reason =
		is_full ? kr_arena_printf(work->arena,
					  "the disk of '%s' is full (%llu KiB are free); make room, then 'kraft item start' "
					  "goes on",
					  run_dir, (unsigned long long)(room >> 10))
				: "what it committed could not be taken out yet; 'kraft item start' tries again";
}

const char *
kr_work_outcome_status(const struct kr_work_outcome *outcome)
{
	return outcome->was_paused ? KR_SESSION_PAUSED
		   : outcome->retry_ms ? KR_SESSION_LIMITED
							   : kr_mark_name(outcome->kind);
}

int
kr_work_judge_left(struct kr_work *work, const char *item, const struct kr_session_row *s, struct kr_work_outcome *out,
	struct kr_error *err)
{
	kr_auto_fd int folder = kr_session_folder_open(work->host.places.run_dir, s->id, NULL);
	struct kr_session_seen seen;
	bool has_result;

	*out = (struct kr_work_outcome){ .kind = KR_MARK_UNKNOWN,
		.reason = "its host ended before it did",
		.seen = kr_work_see(work, s->harness, s->id) };
	if (folder < 0 || kr_session_facts_read(work->arena, folder, &seen, NULL) < 0 ||
		seen.state != KR_SESSION_EXITED || seen.signal)
		return 0;
	if (read_result(work, item, s->id, out, &has_result, err) < 0)
		return -1;
	if (!has_result && seen.code == 0 && !s->harness) {
		out->kind = KR_MARK_DONE;
		out->reason = "";
	}
	return 0;
}

int
kr_work_run_task(struct kr_work *work, const struct kr_work_task *t, const volatile sig_atomic_t *stop,
	struct kr_work_outcome *out, struct kr_error *err)
{
	struct kr_work_launch launch = { 0 };
	struct running r = { .report_fd = -1 };
	struct report report = { 0 };
	bool has_word;

	*out = (struct kr_work_outcome){ .kind = KR_MARK_DONE, .reason = "" };
	kr_work_find_launch(work, t, &launch, out);
	if (!launch.argv && !launch.agent)
		return 0;
	if (start(work, t, &launch, &r, err) < 0)
		return -1;
	has_word = follow(work, t, &r, &launch, stop, &report);
	note_agent(work, t, &launch, out);
	if (!has_word && !r.is_over_time && !r.is_stopped) {
		out->kind = KR_MARK_UNKNOWN;
		out->reason = "the process that ran it ended without a word";
	} else if (judge(work, t, &r, &launch, &report, out, err) < 0)
		return -1;
	judge_disk(work, &report, out);
	return 0;
}
