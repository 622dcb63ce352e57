/* Starting programs. posix_spawn only: forking a large process stalls it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/sys.h"
#include "os/timer.h"

static int
spawn(const char *path, const posix_spawn_file_actions_t *actions, const char *const argv[],
	const char *const envp[], short flags, pid_t *pid)
{
	posix_spawnattr_t attr;
	sigset_t none, all;
	int failed;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | flags);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setpgroup(&attr, 0);
	failed = posix_spawn(pid, path, actions, &attr, (char *const *)argv, (char *const *)envp);
	posix_spawnattr_destroy(&attr);
	return failed;
}

int
kr_spawn(const char *path, const posix_spawn_file_actions_t *actions, const char *const argv[],
	const char *const envp[], pid_t *pid)
{
	return spawn(path, actions, argv, envp, 0, pid);
}

/* ---- a program run to its end ---- */

enum {
	LOOK_MS = 100
}; /* how often a child is asked whether it ended, where the system cannot tell by itself */

/* One run: the child leads a group of its own, so that what it started ends with it. */
struct running {
	const struct kr_child *child;
	struct kr_buf *out, *errors;
	pid_t pid;
	int out_fd, err_fd; /* what we read; -1: at its end, or never ours */
	int ended_fd, signals_fd;
	int status;
	bool has_ended, is_full;
};

static void
close_running(struct running *r)
{
	kr_close_p(&r->out_fd);
	kr_close_p(&r->err_fd);
	kr_close_p(&r->ended_fd);
	kr_close_p(&r->signals_fd);
}

/*
 * The signals that a person ends kraft by, as far as they would: one that is ignored (nohup) ends nothing.
 * They are blocked while we wait and never taken, so they do afterwards what they would have done.
 */
static void
ending_signals(sigset_t *set)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

	sigemptyset(set);
	for (size_t i = 0; i < KR_COUNT(signals); i++) {
		struct sigaction now;

		if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
			sigaddset(set, signals[i]);
	}
}

static int
start(struct running *r, struct kr_error *err)
{
	const struct kr_child *child = r->child;
	kr_auto_fd int out_write = -1, err_write = -1;
	posix_spawn_file_actions_t actions;
	int failed;

	if ((child->stdout_fd <= 0 && kr_pipe(&r->out_fd, &out_write, err) < 0) ||
		(r->errors && child->stderr_fd <= 0 && kr_pipe(&r->err_fd, &err_write, err) < 0))
		return -1;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, child->stdout_fd > 0 ? child->stdout_fd : out_write, 1);
	posix_spawn_file_actions_adddup2(&actions,
		child->stderr_fd > 0 ? child->stderr_fd
		: r->errors          ? err_write
							 : 1,
		2);
	if (child->directory)
		posix_spawn_file_actions_addchdir_np(&actions, child->directory);
	failed = spawn(child->path, &actions, child->argv, child->envp, POSIX_SPAWN_SETPGROUP, &r->pid);
	posix_spawn_file_actions_destroy(&actions);
	if (failed)
		return kr_fail_errno(err, KR_E_SYSTEM, failed, "cannot start '%s'", child->path);
	r->ended_fd = kr_process_watch(r->pid, NULL); /* without it the child is asked now and then */
	return 0;
}

static void
look_whether_ended(struct running *r)
{
	if (!r->has_ended)
		r->has_ended = waitpid(r->pid, &r->status, WNOHANG) == r->pid;
}

static void
end(struct running *r)
{
	if (r->has_ended)
		return;
	(void)kill(-r->pid, SIGKILL);
	(void)kill(r->pid, SIGKILL);
	while (waitpid(r->pid, &r->status, 0) < 0 && errno == EINTR)
		;
	r->has_ended = true;
}

/* Takes what is there; closes the descriptor at its end. False when nothing was there. */
static bool
take(struct running *r, int *fd)
{
	char chunk[16384];
	ssize_t n = read(*fd, chunk, sizeof(chunk));

	if (n < 0)
		return errno == EINTR;
	if (n == 0) {
		kr_close_p(fd);
		return true;
	}
	if (fd == &r->err_fd)
		kr_buf_add_last(r->errors, chunk, (size_t)n);
	else
		kr_buf_add(r->out, chunk, (size_t)n);
	r->is_full = r->is_full || (fd == &r->out_fd && r->out->overflow);
	return true;
}

/* What lies in a pipe when the program has ended is all there will be: a helper that it left behind may hold
 * it open for ever. */
static void
take_rest(struct running *r, int *fd)
{
	while (*fd >= 0 && !r->is_full) {
		struct pollfd one = { *fd, POLLIN, 0 };

		if (poll(&one, 1, 0) <= 0 || !take(r, fd))
			return;
	}
}

static int
too_late(const struct running *r, int64_t deadline_ms, struct kr_error *err)
{
	const char *name = strrchr(r->child->path, '/');

	name = name ? name + 1 : r->child->path;
	if (r->is_full)
		return kr_fail(err, KR_E_LIMIT, "'%s' printed more than %zu bytes", name, r->out->max);
	if (deadline_ms && kr_clock_ms() >= deadline_ms)
		return kr_fail(err, KR_E_TIMEOUT, "'%s' did not end within %lld s", name,
			(long long)(r->child->limit_ms + 999) / 1000);
	return kr_fail_errno(err, KR_E_SYSTEM, EINTR, "'%s' was ended with kraft", name);
}

/* Waits for its end, an end of the time, a full buffer, or a signal. -1: it has to be ended. */
static int
gather(struct running *r, int64_t deadline_ms, struct kr_error *err)
{
	for (;;) {
		int64_t left = deadline_ms ? deadline_ms - kr_clock_ms() : INT32_MAX;
		struct pollfd fds[] = { { r->out_fd, POLLIN, 0 }, { r->err_fd, POLLIN, 0 },
			{ r->ended_fd, POLLIN, 0 }, { r->signals_fd, POLLIN, 0 } };

		look_whether_ended(r);
		if (r->has_ended)
			return 0;
		if (left <= 0 || r->is_full)
			return too_late(r, deadline_ms, err);
		if (r->ended_fd < 0 && left > LOOK_MS)
			left = LOOK_MS;
		if (poll(fds, KR_COUNT(fds), left > INT32_MAX ? INT32_MAX : (int)left) <= 0)
			continue;
		if (fds[3].revents)
			return too_late(r, 0, err);
		if (fds[0].revents)
			(void)take(r, &r->out_fd);
		if (fds[1].revents)
			(void)take(r, &r->err_fd);
	}
}

int
kr_child_run(const struct kr_child *child, struct kr_buf *out, struct kr_buf *errors, int *status,
	struct kr_error *err)
{
	struct running r = { .child = child,
		.out = out,
		.errors = errors,
		.out_fd = -1,
		.err_fd = -1,
		.ended_fd = -1,
		.signals_fd = -1 };
	int64_t deadline_ms = child->limit_ms ? kr_clock_ms() + child->limit_ms : 0;
	sigset_t ending, before;
	int failed;

	ending_signals(&ending);
	(void)pthread_sigmask(SIG_BLOCK, &ending, &before);
	r.signals_fd = kr_signals_open(&ending, err);
	failed = r.signals_fd < 0 || start(&r, err) < 0;
	if (!failed) {
		failed = gather(&r, deadline_ms, err) < 0;
		end(&r);
		take_rest(&r, &r.out_fd);
		take_rest(&r, &r.err_fd);
		if (!failed && r.is_full)
			failed = too_late(&r, 0, err) < 0;
	}
	close_running(&r);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed)
		return -1;
	*status = r.status;
	return 0;
}

int
kr_capture(const char *path, const char *const argv[], const char *const envp[], struct kr_buf *out,
	int *status, struct kr_error *err)
{
	const struct kr_child child = { .path = path, .argv = argv, .envp = envp };

	return kr_child_run(&child, out, NULL, status, err);
}
