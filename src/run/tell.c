/* What a person is told on stderr beside what the command says: changes that are not included, hosts that were refused,
 * paths that are outside. Nothing of a worker's gets there but escaped. */
#include "run/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "os/fs.h"
#include "os/timer.h"
#include "session/agent.h"
#include "session/outside.h"
#include "store/store.h"

enum { STATUS_WAIT_MS = 50, SAID = 300 };

void
kr_run_say(const char *fmt, ...)
{
	char text[1024], safe[4 * sizeof(text)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	kr_text_escape(safe, sizeof(safe), text, strlen(text));
	fprintf(stderr, "kraft: %s\n", safe);
}

/* ---- what is kept of it ---- */

void
kr_run_record(const struct kr_run_state *run, const char *session, const char *type, json_t *data)
{
	struct kr_store *store = NULL;
	struct kr_error err = { 0 };
	kr_auto_free char *text = NULL;
	struct kr_event event = { .ms = kr_now_ms(), .type = type, .item = run->item.id, .session = session };

	if (session)
		json_object_set_new(data, "session_id", json_string(session));
	text = json_dumps(data, JSON_COMPACT);
	event.data = text;
	if (!text || kr_store_open(run->host.places.run_dir, KR_STORE_WRITE, &store, &err) < 0 ||
		kr_store_add_event(store, &event, &err) < 0)
		kr_run_say("the event about it could not be recorded: %s", err.message);
	kr_store_close(store);
	json_decref(data);
}

/* ---- changes that are not included ---- */

void
kr_changes_start(struct kr_run_state *run)
{
	static const char *const argv[] = { "status", "--porcelain", "-z", "--untracked-files=normal", NULL };
	const struct kr_git_where where = {
		.git_dir = run->trees->checkout.git_dir, .work_tree = run->trees->checkout.root, .work_dir_fd = -1
	};
	struct kr_changes *c = &run->changes;

	if (c->started)
		return;
	c->started = true;
	/* A remark is not worth an error. */
	c->running = !run->want->with_changes && kr_git_start(&where, argv, &c->git, NULL) == 0;
}

/* Entries of `status --porcelain -z`: "XY path\0", and after a rename or copy one more "old path\0". */
static void
count_changes(struct kr_changes *c, const char *bytes, size_t n)
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
say_changes(struct kr_changes *c)
{
	if (c->count)
		kr_run_say("%zu uncommitted change%s not included; --with-changes takes %s along", c->count,
			c->count == 1 ? " is" : "s are", c->count == 1 ? "it" : "them");
	c->count = 0; /* said */
}

/* Takes what git says now; its pipe is readable. False when that was the end of it. */
bool
kr_changes_take(void *context)
{
	struct kr_changes *c = context;
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
void
kr_changes_finish(struct kr_changes *c, int wait_ms)
{
	int64_t end = kr_clock_ms() + wait_ms;

	c->quiet = false;
	while (c->running) {
		struct pollfd poller = { .fd = c->git.out_fd, .events = POLLIN };
		int64_t left = end - kr_clock_ms();

		if (poll(&poller, 1, left > 0 ? (int)left : 0) <= 0) {
			kr_git_abandon(&c->git);
			c->running = false;
			kr_run_say("whether there are uncommitted changes could not be told in time; --with-changes takes them "
				"along");
			return;
		}
		(void)kr_changes_take(c);
	}
	say_changes(c);
}

/* ---- what its network refused ---- */

/* The exact lines to add, where they belong (POL-06). */
static void
tell_grants(const struct kr_run_state *run, const struct kr_job *job, const struct kr_session_network_notes *notes)
{
	bool told = false;

	for (size_t i = 0; i < notes->refused_count; i++) {
		if (!notes->refused[i].grant)
			continue;
		if (!told)
			kr_run_say("to allow them, add to sandbox.network.%s.allow of %s:",
				kr_phase_name(job->phase), run->where.sandbox_from);
		told = true;
		kr_run_say("    - \"%s\"", notes->refused[i].grant);
	}
}

void
kr_run_tell_network(const struct kr_run_state *run, const struct kr_job *job)
{
	const struct kr_session_network_notes *notes =
		job->network ? kr_session_network_notes(job->network) : NULL;

	if (!notes)
		return;
	if (notes->refused_count)
		kr_run_say("%zu host%s refused in the %s phase:", notes->refused_count, notes->refused_count == 1 ? " was" : "s were",
			kr_phase_name(job->phase));
	for (size_t i = 0; i < notes->refused_count; i++)
		kr_run_say("    %s", notes->refused[i].reason);
	if (notes->more)
		kr_run_say("    and more");
	tell_grants(run, job, notes);
	if (notes->echoed)
		kr_run_say("%u credential%s sent back by the host that got it, and cut off there; 'kraft view events --session %s' has them",
			notes->echoed, notes->echoed == 1 ? " was" : "s were", job->paths.id);
	if (notes->calls_refused)
		kr_run_say("calls of the command to kraft were refused; 'kraft view events --session %s' has them", job->paths.id);
	if (notes->strangers)
		kr_run_say("%u request%s to the session's proxy did not say its token, or came from outside of the session", notes->strangers,
			notes->strangers == 1 ? "" : "s");
	if (notes->lost)
		kr_run_say("the session's proxy ended before its time and was %s; its connections were cut",
			notes->is_out ? "not started again" : "started again");
	if (notes->record.code != KR_E_NONE)
		kr_run_say("not every event of this session could be recorded: %s", notes->record.message);
}

/* ---- its memory ---- */

/* Not confirmed: it was killed, by nobody here, under a limit; the worker may have done that too. */
void
kr_run_note_oom(const struct kr_run_state *run, struct kr_job *job)
{
	const uint64_t memory = run->repo->sandbox.resources.memory_bytes;
	const struct kr_session_end *end = &job->end;
	const int status = kr_session_exit_status(end);

	if (!job->container || !memory || !end->started || end->killed_by_us || !(end->oom_kills || status == 128 + SIGKILL))
		return;
	if (status == 0) {
		kr_run_say("its memory limit killed %u process%s of the command, which ended well all the same", end->oom_kills,
			end->oom_kills == 1 ? "" : "es");
		return;
	}
	job->oom = true;
	job->oom_confirmed = end->oom_kills > 0;
	kr_run_say("the command failed: %s", kr_run_oom_words(run->arena, &run->repo->sandbox, job->oom_confirmed));
	kr_run_record(run, job->paths.id, "sandbox_oom_killed",
		json_pack("{s:I, s:b}", "memory", (json_int_t)memory, "confirmed", job->oom_confirmed));
}

/* ---- what it left on macOS ---- */

void
kr_run_note_outlived(const struct kr_run_state *run, const struct kr_job *job, struct kr_log *log)
{
	for (size_t i = 0; i < job->end.outlived_count; i++) {
		const int pid = job->end.outlived[i];
		char text[96];
		int n = snprintf(text, sizeof(text), "process %d of the session could not be ended and still runs\n", pid);

		kr_run_say("%.*s", n - 1, text);
		kr_log_add(log, KR_LOG_NOTE, text, (size_t)n, kr_now_ms());
		kr_run_record(run, job->paths.id, "sandbox_session_outlived", json_pack("{s:i}", "pid", pid));
	}
}

/* ---- what an agent says went wrong ---- */

static const char *const agent_advice[KR_TROUBLE_COUNT] = {
	[KR_TROUBLE_LOGIN] = "its login was refused; see the variables of its login in 'kraft admin harnesses'",
	[KR_TROUBLE_RATE_LIMIT] = "a rate limit stopped it; 'kraft run --harness ID --resume' goes on when that is over",
	[KR_TROUBLE_UNREACHABLE] = "it did not reach its model's host; what was refused is above",
	[KR_TROUBLE_GATE] = "it began before it had found kraft's permission tool; run it again",
	[KR_TROUBLE_OTHER] = "it did not do its work",
};

void
kr_run_tell_agent(struct kr_run_state *run, const struct kr_job *job)
{
	const struct kr_harness *harness = job->launch->agent->harness;
	struct kr_agent_seen *seen = kr_arena_new(run->arena, struct kr_agent_seen);
	struct kr_error err = { 0 };
	int said;

	if (kr_agent_stream_read(run->host.places.run_dir, job->paths.id, harness->reader, seen, &err) < 0)
		kr_run_say("what '%s' said could not be read: %s", harness->id, err.message);
	said = (int)strcspn(seen->said, "\n");
	if ((unsigned)seen->trouble < KR_TROUBLE_COUNT && agent_advice[seen->trouble])
		kr_run_say("'%s': %s%s%.*s", harness->id, agent_advice[seen->trouble], *seen->said ? ": " : "",
			said < SAID ? said : SAID, seen->said);
}

/* ---- after the command ---- */

static void
tell_outside(struct kr_run_state *run, const struct kr_job *job)
{
	kr_auto_fd int folder = open(job->paths.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char *tail = kr_arena_alloc(run->arena, KR_OUTSIDE_BYTES);
	size_t n = folder < 0 ? 0 : kr_log_tail(folder, tail, KR_OUTSIDE_BYTES);
	struct kr_outside found[KR_OUTSIDE_MAX];
	size_t count = kr_outside_find(run->arena, &run->host, job->plan, tail, n, found), at = 0;
	const char *remark;

	while ((remark = kr_outside_remark(tail, n, &at)) != NULL)
		kr_run_say("%s", remark);
	for (size_t i = 0; i < count; i++) {
		if (!found[i].expose)
			kr_run_say("'%s' is in your checkout, which is not shown; the command runs in '%s'", found[i].path,
				run->item.worktree);
		else if (!job->container) /* whose file system is the image's */
			kr_run_say("'%s' exists here but not in the sandbox; to show it, add '%s' to the expose list of %s",
				found[i].path, found[i].expose, run->where.sandbox_from);
	}
}

/* A file that is not in the worktree: the init's word can only speak of the expose list. */
static void
tell_missing(struct kr_run_state *run, const struct kr_job *job)
{
	const char *command = job->argv[0], *inside, *mine;

	if (job->end.exec_errno != ENOENT || !strchr(command, '/') || command[0] == '/')
		return;
	inside = kr_path_join(run->arena, job->cwd, command);
	if (!inside || !kr_path_is_within(inside, run->item.worktree) ||
		kr_fs_live.look(NULL, inside).type != KR_FS_NONE)
		return;
	mine = kr_path_join(run->arena, run->trees->checkout.root, inside + strlen(run->item.worktree) + 1);
	if (mine && kr_fs_live.look(NULL, mine).type != KR_FS_NONE)
		kr_run_say("'%s' is in your checkout but not in the worktree; commit it, or take it along with "
			"--with-changes",
			command);
	else
		kr_run_say("there is no '%s' in the worktree", command);
}

void
kr_run_sum_up(struct kr_run_state *run, const struct kr_job *job)
{
	char left[KR_LEFT_WORDS];

	if (job->end.write_errno)
		kr_run_say("cannot write what the command says: %s; it is in 'kraft view logs %s'",
			strerror(job->end.write_errno), job->paths.id);
	if (job->log_errno)
		kr_run_say("the log of this session ends early: %s", strerror(job->log_errno));
	kr_session_left_words(&job->end, left);
	if (*left)
		kr_run_say("still running when the command had ended, and ended with it: %s", left);
	kr_run_tell_network(run, job);
	if (kr_session_exit_status(&job->end) != 0) {
		for (size_t i = 0; i < job->plan->notes.n; i++)
			kr_run_say("%s", job->plan->notes.v[i]);
		tell_missing(run, job);
		tell_outside(run, job);
	}
	kr_changes_finish(&run->changes, STATUS_WAIT_MS);
}
