/*
 * The launcher's part of bubblewrap, its child, whose own child is the init. The pipe to the init is a socket
 * pair, so the start message waits in it before there is an init.
 *
 * must not: hand bubblewrap a variable (it is a dynamic program on the host, and the repository chooses
 * values: PROC-17).
 *
 * Ending it. The init ends when its pipe ends. Once it has spoken it has also asked to die with bubblewrap,
 * so killing bubblewrap kills it in whatever state, and the kernel then kills the whole pid namespace. Before
 * it has spoken bubblewrap must not be killed: see wire.h. Orphans of bubblewrap come to the launcher, which
 * is a subreaper, so that "nothing is left" is a wait and not a guess at process numbers.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest/launch.h"

enum {
	SILENT_INIT_MS = 10000, /* after this, bubblewrap is killed although the init never spoke */
	ORPHAN_PATIENCE_S = 10,
	FD_TEXT = 12,
};

static void
make_pipe(struct kg_launch *launch)
{
	int pair[2], on = 1;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		kg_launch_refuse_errno(launch, KG_FAULT_INTERNAL, "launch: pipe to the init");
	launch->pipe = pair[0];
	launch->bwrap.init_end = pair[1];
	if (setsockopt(launch->pipe, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
		kg_launch_refuse_errno(launch, KG_FAULT_INTERNAL, "launch: pipe to the init");
}

static const char *
fd_text(int fd, char out[FD_TEXT])
{
	out[kg_decimal((uint64_t)fd, out)] = '\0';
	return out;
}

static const char **
bwrap_arguments(struct kg_launch *launch)
{
	static char args[FD_TEXT], seccomp[FD_TEXT], pipe[FD_TEXT];
	const char *head[] = { launch->bwrap.program, "--args", fd_text(launch->args, args), "--seccomp",
		fd_text(launch->bwrap.seccomp, seccomp), "--", "/opt/kraft/init", "init", "--pipe",
		fd_text(launch->bwrap.init_end, pipe) };
	const char **argv =
		kg_map((KG_COUNT(head) + KG_INIT_WORDS + (size_t)launch->command_count) * sizeof(*argv));

	if (!argv)
		return NULL;
	memcpy(argv, head, sizeof(head));
	kg_launch_init_words(launch, argv + KG_COUNT(head));
	return argv;
}

static bool
let_through(int fd)
{
	return fcntl(fd, F_SETFD, 0) == 0;
}

static bool
let_all_through(const struct kg_launch *launch)
{
	for (size_t i = 0; i < launch->bwrap.pass_count; i++)
		if (!let_through(launch->bwrap.pass[i]))
			return false;
	return let_through(launch->args) && let_through(launch->bwrap.seccomp) &&
		   let_through(launch->bwrap.init_end);
}

/* In the new process, on our memory: it writes to nothing but the stage, and ends in exec or _exit. */
static int
become_bwrap(void *context)
{
	static char *no_environment[1];
	struct kg_launch *launch = context;

	launch->stage = KG_STAGE_NAMESPACE;
	launch->stage_errno =
		launch->bwrap.capped_count ? kg_namespace_enter(launch->bwrap.capped, launch->bwrap.capped_count) : 0;
	if (launch->stage_errno)
		_exit(KG_EXIT_REFUSED);
	launch->stage = KG_STAGE_EXEC;
	if (let_all_through(launch)) {
		launch->stage = KG_STAGE_DONE; /* the word of a process that cannot speak any more once it is true */
		execve(launch->bwrap.program, (char **)launch->bwrap.argv, no_environment);
		launch->stage = KG_STAGE_EXEC;
	}
	launch->stage_errno = errno;
	_exit(KG_EXIT_REFUSED);
}

static void
start_bwrap(struct kg_launch *launch)
{
	if (!launch->bwrap.argv)
		launch->bwrap.argv = bwrap_arguments(launch);
	if (!launch->bwrap.argv)
		kg_launch_refuse_errno(launch, KG_FAULT_INTERNAL, "launch: memory");
	/* Its files in /proc/self belong to root while our memory is not dumpable, and it writes two of them. */
	if (launch->bwrap.capped_count)
		(void)prctl(PR_SET_DUMPABLE, 1); /* cannot fail */
	kg_launch_child(launch, become_bwrap, KG_FAULT_BWRAP, "cannot start a process for bubblewrap");
}

static void
start(struct kg_launch *launch)
{
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		kg_launch_refuse_errno(launch, KG_FAULT_INTERNAL, "launch: cannot prepare itself");
	make_pipe(launch);
	kg_launch_send_start(launch);
	start_bwrap(launch);
}

/* The namespace for capped file systems is not allowed here: the same once more, without. */
static void
start_uncapped(struct kg_launch *launch)
{
	int args = kg_namespace_without(launch->args, launch->bwrap.capped, launch->bwrap.capped_count);

	if (args < 0) {
		errno = -args;
		kg_launch_refuse_errno(launch, KG_FAULT_INTERNAL, "launch: arguments without capped file systems");
	}
	kg_launch_fault(launch, KG_FAULT_NAMESPACE, launch->stage_errno);
	close(launch->args);
	launch->args = args;
	launch->bwrap.argv = NULL; /* another descriptor, another text; a page is not worth giving back */
	launch->bwrap.capped_count = 0;
	close(launch->child_fd);
	start_bwrap(launch);
}

static int
watch(const struct kg_launch *launch, struct pollfd at[KG_KIND_PLACES])
{
	at[0] = (struct pollfd){ launch->child_fd, POLLIN, 0 };
	return launch->killed && !launch->spoke ? SILENT_INIT_MS : -1;
}

static void
kill_bwrap(struct kg_launch *launch)
{
	(void)syscall(SYS_pidfd_send_signal, launch->child_fd, SIGKILL, NULL, 0); /* ours, unreaped */
}

static bool
look(struct kg_launch *launch, const struct pollfd at[KG_KIND_PLACES], bool is_late)
{
	if (is_late)
		kill_bwrap(launch);
	if (!at[0].revents)
		return false;
	if (launch->stage != KG_STAGE_NAMESPACE || launch->killed)
		return true;
	(void)waitpid(launch->child, NULL, 0);
	start_uncapped(launch);
	return false;
}

static void
spoke(struct kg_launch *launch)
{
	close(launch->bwrap.init_end);
	launch->bwrap.init_end = -1;
}

static void
end(struct kg_launch *launch)
{
	if (launch->spoke)
		kill_bwrap(launch);
}

/* SIGKILL to each child of ours: none is reaped yet, so each number is still that child's. */
static void
kill_children(void)
{
	char path[64] = "/proc/self/task/", text[512];
	size_t n = strlen(path);
	const char *at = text;
	uint64_t pid;
	ssize_t got;
	int fd;

	n += kg_decimal((uint64_t)getpid(), path + n);
	memcpy(path + n, "/children", 10);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	got = fd < 0 ? -1 : read(fd, text, sizeof(text));
	while (got > 0 && kg_number(&at, text + got, INT32_MAX, &pid)) {
		(void)kill((pid_t)pid, SIGKILL);
		at += at < text + got;
	}
	if (fd >= 0)
		close(fd);
}

/* bubblewrap is gone. What it left is ours now; in an ordinary end that is nothing. */
static void
reap_orphans(struct kg_launch *launch)
{
	static const struct timespec patience = { .tv_sec = ORPHAN_PATIENCE_S };
	sigset_t child_ended;
	pid_t pid;

	(void)launch; /* whoever our child is */
	sigemptyset(&child_ended);
	sigaddset(&child_ended, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &child_ended, NULL); /* cannot fail with these arguments */
	while ((pid = waitpid(-1, NULL, WNOHANG)) >= 0) {
		if (pid > 0)
			continue;
		kill_children();
		if (sigtimedwait(&child_ended, NULL, &patience) < 0 && errno == EAGAIN) {
			kg_say(2, "a process of the sandbox does not end", NULL);
			return;
		}
	}
}

/* bubblewrap ended before the init spoke: it has said why on stderr; or it was never executed. */
static void
explain(struct kg_launch *launch)
{
	int failed = 0;

	if (launch->stage == KG_STAGE_EXEC) {
		failed = launch->stage_errno;
		kg_say(2, "cannot run '", launch->bwrap.program, "': ", kg_errno_text(failed), NULL);
	}
	kg_launch_fault(launch, KG_FAULT_BWRAP, failed);
}

const struct kg_kind kg_kind_bwrap = {
	.start = start,
	.watch = watch,
	.look = look,
	.spoke = spoke,
	.end = end,
	.reap = reap_orphans,
	.explain = explain,
};
