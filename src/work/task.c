/*
 * One task as a session of kr_run, in a process of its own: it can be ended and given a time without ending
 * the host, and what goes wrong in it ends nothing else. It reports over a pipe how the launch went; how the
 * task came out is decided here, from that, the time, and the result file (facts of ITM-02, in this order).
 */
#include "work/turn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/path.h"
#include "os/sys.h"
#include "os/timer.h"
#include "policy/layers.h"
#include "run/run.h"
#include "run/where.h"
#include "session/facts.h"
#include "session/log.h"
#include "work/brief.h"
#include "work/fingerprint.h"

enum { LOOK_MS = 200, GRACE_MS = 10000 };

/* From the task's process, whole or not at all. */
struct report {
	int status; /* of kr_run */
	struct kr_run_done done;
	int sys_errno;      /* of its error */
	char message[1300]; /* of its error, with the hint; "": none */
};

/* ---- what is to run ---- */

struct launch {
	const char *const *argv; /* NULL: nothing; then `out` says what that means */
	const char *instruction; /* for its stdin; NULL: none */
	double seconds;          /* that it may take */
	const char *cap;         /* the key that says so, of sessions that were before it too; NULL: it is not one of these */
	enum kr_bound bound;     /* with cap */
	struct kr_policy policy; /* its tools' lists are what the worker is answered by */
	bool commit;             /* what it leaves uncommitted */
	const struct kr_policy_layer **layers; /* the sandbox is theirs too */
};

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

static const char *
command_of(const struct kr_task *task, const struct kr_repo *repo)
{
	return task->kind == KR_TASK_COMMAND   ? task->command
		   : task->kind == KR_TASK_BUILTIN ? repo->test_command
										   : NULL;
}

/* Who mends is told what failed. */
static void
add_failures(
	struct kr_work *work, const struct kr_work_task *t, const struct kr_repo *repo, struct kr_brief *brief)
{
	const struct kr_work_view *v = t->view;
	struct kr_brief_failure *list = kr_arena_alloc(work->arena, KR_BRIEF_FAILURES * sizeof(*list));
	const struct kr_brief_failed *failed;
	size_t n;

	failed = kr_brief_failed(work->arena, &v->chain.nodes[v->next.node], &v->marks, &n);
	for (size_t i = 0; i < n && i < KR_BRIEF_FAILURES; i++)
		list[brief->failure_count++] = (struct kr_brief_failure){
			.path = failed[i].task->path,
			.command = command_of(failed[i].task, repo),
			.reason = failed[i].mark->note,
			.output = kr_work_tail(work, failed[i].mark->session, KR_BRIEF_TAIL),
		};
	brief->failures = list;
	brief->left_out = n - brief->failure_count;
}

/* What stopped the item, where it is none of what failed when its node was measured: a repair, what could not
 * start. */
static void
add_stop(struct kr_work *work, const struct kr_work_view *v, struct kr_brief *brief)
{
	struct kr_brief_failure *list;
	const struct kr_mark_row *mark = NULL;

	for (size_t i = 0; v->next.kind == KR_NEXT_STOP && i < v->marks.n; i++)
		if (strcmp(v->marks.v[i].path, v->next.path) == 0 && v->marks.v[i].session)
			mark = &v->marks.v[i];
	for (size_t i = 0; mark && i < brief->failure_count; i++)
		if (strcmp(brief->failures[i].path, mark->path) == 0)
			mark = NULL;
	if (!mark)
		return;
	list = kr_arena_alloc(work->arena, (brief->failure_count + 1) * sizeof(*list));
	memcpy(list, brief->failures, brief->failure_count * sizeof(*list));
	list[brief->failure_count++] = (struct kr_brief_failure){
		.path = mark->path, .reason = mark->note, .output = kr_work_tail(work, mark->session, KR_BRIEF_TAIL)
	};
	brief->failures = list;
}

static const char *
instruction(struct kr_work *work, const struct kr_work_task *t, const struct kr_repo *repo)
{
	const struct kr_item_row *row = &t->view->row;
	struct kr_brief brief = {
		.title = row->title,
		.description = row->description,
		.steer = t->steer,
		.is_agents_steer = t->steer && kr_turn_says(work->arena, t->view, t->steer),
		.prompt = t->task->prompt,
	};

	if (t->instruct && t->view->next.kind == KR_NEXT_STOP) {
		add_failures(work, t, repo, &brief);
		add_stop(work, t->view, &brief);
	}
	if (t->instruct)
		return t->instruct(work, t, &brief);
	if (kr_brief_is_repair(t->task->path))
		add_failures(work, t, repo, &brief);
	return kr_brief_text(work->arena, &brief);
}

static int
refuse(struct kr_work_outcome *out, const char *reason)
{
	out->kind = KR_MARK_CONFIG;
	out->reason = reason;
	return 0;
}

static int
find_agent(struct kr_work *work, const struct kr_work_task *t, const struct kr_repo *repo,
	struct launch *launch, struct kr_work_outcome *out)
{
	launch->argv = kr_work_words_of(work->arena, t->view->row.worker);
	if (!launch->argv)
		return refuse(
			out, kr_arena_printf(work->arena, "agents are not built into this kraft yet, and the item has no "
											  "command in their place: 'kraft item create ... "
											  "-- COMMAND' gives it one"));
	launch->instruction = instruction(work, t, repo);
	launch->commit = !t->put_back;
	return 0;
}

static int
find_tests(
	struct kr_work *work, const struct kr_repo *repo, struct launch *launch, struct kr_work_outcome *out)
{
	const char **argv;

	if (!repo->test_command)
		return refuse(
			out, kr_arena_printf(work->arena,
					 "'%s' has no test_command in repos.yaml; \"\" there says that there are no tests",
					 repo->name));
	if (!*repo->test_command) {
		out->reason = "the repository says that it has no tests";
		return 0;
	}
	argv = kr_arena_alloc(work->arena, 4 * sizeof(*argv));
	memcpy(argv, (const char *const[]){ "/bin/sh", "-c", repo->test_command, NULL }, 4 * sizeof(*argv));
	launch->argv = argv;
	return 0;
}

/* What the sessions of a path (NULL: of all) have taken since a person last let them begin anew. */
static double
spent_s(const struct kr_work_view *v, const char *path)
{
	uint64_t ms = 0;

	for (size_t i = 0; i < v->sessions.n; i++) {
		const struct kr_session_row *s = &v->sessions.v[i];

		if (s->run == v->row.run && s->ended_ms > s->created_ms && (!path || strcmp(s->path, path) == 0))
			ms += s->ended_ms - s->created_ms;
	}
	return (double)ms / 1000;
}

static void
apply_cap(const struct kr_work_view *v, const char *path, enum kr_bound bound, struct launch *launch)
{
	const double cap_s = launch->policy.bounds[bound] * 60, left_s = cap_s - spent_s(v, path);

	if (!(cap_s > 0) || left_s >= launch->seconds)
		return;
	launch->seconds = left_s;
	launch->cap = kr_bound_name(bound);
	launch->bound = bound;
}

/* What its layers come to. The time: the nearest layer's that says one, else the host's usual one. */
static int
find_policy(struct kr_work *work, const struct kr_work_task *t, const struct kr_repo *repo,
	struct launch *launch, struct kr_work_outcome *out)
{
	const struct kr_work_view *v = t->view;
	const struct kr_policy_layer *const layers[KR_LAYER_COUNT] = {
		[KR_LAYER_HOST] = &v->policy.layer,
		[KR_LAYER_REPO] = &repo->policy,
		[KR_LAYER_CHAIN] = &v->chain.policy,
		[KR_LAYER_NODE] = v->next.node < v->chain.node_count ? &v->chain.nodes[v->next.node].policy : NULL,
		[KR_LAYER_STEP] = v->next.step && !t->instruct ? &v->next.step->policy : NULL,
		[KR_LAYER_TASK] = &t->task->policy,
		[KR_LAYER_ITEM] = v->row.layer ? &v->layer : NULL,
	};
	struct kr_error err = { 0 };
	double maxima[KR_BOUND_COUNT];
	const struct kr_policy *policy = &launch->policy;

	kr_policy_maxima(&v->policy, KR_LAYER_TASK, maxima);
	if (kr_policy_combine(work->arena, layers, maxima, &launch->policy, &err) < 0)
		return refuse(out, kr_arena_dup(work->arena, err.message));
	launch->layers = kr_arena_alloc(work->arena, sizeof(layers));
	memcpy(launch->layers, layers, sizeof(layers));
	launch->seconds =
		policy->bounds[KR_BOUND_TIMEOUT] > 0 ? policy->bounds[KR_BOUND_TIMEOUT] * 60 : v->policy.wall_clock_s;
	apply_cap(v, t->task->path, KR_BOUND_TIME_CAP, launch);
	apply_cap(v, NULL, KR_BOUND_TOTAL_TIME_CAP, launch);
	if (launch->seconds > 0)
		return 0;
	out->kind = KR_MARK_CAPPED;
	out->cap = launch->cap;
	out->cap_minutes = policy->bounds[launch->bound];
	out->reason = kr_arena_printf(
		work->arena, "no time is left of %s %g; a retry counts anew", out->cap, out->cap_minutes);
	return 0;
}

static int
find_launch(
	struct kr_work *work, const struct kr_work_task *t, struct launch *launch, struct kr_work_outcome *out)
{
	struct kr_error err = { 0 };
	struct kr_where where;

	if (kr_where_find(work->arena, &work->host.places, t->view->row.repo, &where, &err) < 0)
		return refuse(out, kr_arena_dup(work->arena, err.message));
	if (find_policy(work, t, where.repo, launch, out) < 0 || out->kind != KR_MARK_DONE)
		return 0;
	switch (t->task->kind) {
	case KR_TASK_COMMAND:
		launch->argv = t->task->argv.v;
		return 0;
	case KR_TASK_BUILTIN:
		return find_tests(work, where.repo, launch, out);
	case KR_TASK_AGENT:
		return find_agent(work, t, where.repo, launch, out);
	}
	return 0;
}

/* ---- its process ---- */

static int
instruction_fd(const struct launch *launch, struct kr_error *err)
{
	return launch->instruction
			   ? kr_memory_file("kraft-instruction", launch->instruction, strlen(launch->instruction), err)
			   : open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void
run_here(
	struct kr_work *work, const struct kr_work_task *t, const struct launch *launch, struct report *report)
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
		.argv = launch->argv,
	};

	report->status = streams.in < 0 ? -1 : kr_run(&arena, &want, &err);
	report->sys_errno = err.sys_errno;
	if (report->status < 0)
		snprintf(report->message, sizeof(report->message), "%s%s%s", err.message, err.hint[0] ? "; " : "",
			err.hint);
}

/* A kraft that is killed takes the task with it: prctl for the process, the lifeline for the sandbox. */
static void
be_task(struct kr_work *work, const struct kr_work_task *t, const struct launch *launch, int report_fd,
	pid_t host)
{
	struct report report = { 0 };

	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* it could not be told otherwise either */
	if (getppid() != host)
		_exit(1);
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
start(struct kr_work *work, const struct kr_work_task *t, const struct launch *launch, struct running *r,
	struct kr_error *err)
{
	const pid_t host = getpid();
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
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
end_in_time(struct running *r, const struct launch *launch, bool stop)
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
follow(struct kr_work *work, const struct kr_work_task *t, struct running *r, const struct launch *launch,
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
									  : result->concerns;
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

/* said: by its result file. */
static const char *
fingerprint(struct kr_work *work, const struct kr_work_task *t, const struct report *report, const char *said)
{
	char line[KR_FINGERPRINT_LINE + 1];

	kr_fingerprint_line(line, said, strlen(said));
	return kr_fingerprint(work->arena,
		kr_arena_printf(work->arena, "%d %d %s", report->status, report->done.signal, line),
		kr_work_tail(work, t->session, KR_FINGERPRINT_TAIL));
}

static int
judge(struct kr_work *work, const struct kr_work_task *t, const struct running *r,
	const struct launch *launch, const struct report *report, struct kr_work_outcome *out,
	struct kr_error *err)
{
	bool has_result = false;

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
	if (report->status < 0 || (!report->done.started && report->status >= 126))
		return refuse(out, *report->message ? kr_arena_dup(work->arena, report->message)
											: kr_arena_printf(work->arena,
												  "the command could not be started (%d)", report->status));
	if (read_result(work, t->view->row.id, t->session, out, &has_result, err) < 0)
		return -1;
	if (!has_result)
		judge_exit(work, t, report, out);
	if (out->kind == KR_MARK_FAILED)
		out->fingerprint = fingerprint(work, t, report, has_result ? out->reason : "");
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

	if (out->was_paused ||
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

int
kr_work_judge_left(struct kr_work *work, const char *item, const char *session, struct kr_work_outcome *out,
	struct kr_error *err)
{
	kr_auto_fd int folder = kr_session_folder_open(work->host.places.run_dir, session, NULL);
	struct kr_session_seen seen;
	bool has_result;

	*out = (struct kr_work_outcome){ .kind = KR_MARK_UNKNOWN, .reason = "its host ended before it did" };
	if (folder < 0 || kr_session_facts_read(work->arena, folder, &seen, NULL) < 0 ||
		seen.state != KR_SESSION_EXITED || seen.signal)
		return 0;
	if (read_result(work, item, session, out, &has_result, err) < 0)
		return -1;
	if (!has_result && seen.code == 0)
		*out = (struct kr_work_outcome){ .kind = KR_MARK_DONE, .reason = "" };
	return 0;
}

int
kr_work_run_task(struct kr_work *work, const struct kr_work_task *t, const volatile sig_atomic_t *stop,
	struct kr_work_outcome *out, struct kr_error *err)
{
	struct launch launch = { 0 };
	struct running r = { .report_fd = -1 };
	struct report report = { 0 };

	*out = (struct kr_work_outcome){ .kind = KR_MARK_DONE, .reason = "" };
	if (find_launch(work, t, &launch, out) < 0)
		return -1;
	if (!launch.argv)
		return 0;
	if (start(work, t, &launch, &r, err) < 0)
		return -1;
	if (!follow(work, t, &r, &launch, stop, &report) && !r.is_over_time && !r.is_stopped) {
		out->kind = KR_MARK_UNKNOWN;
		out->reason = "the process that ran it ended without a word";
	} else if (judge(work, t, &r, &launch, &report, out, err) < 0)
		return -1;
	judge_disk(work, &report, out);
	return 0;
}
