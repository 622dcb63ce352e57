/*
 * The launcher: on the host, parent of bubblewrap, one per session. It outlives a kraft that restarts.
 *
 * Order: read the arguments; refuse root; close what was not named; leave everything that ties it to its
 * surroundings (directory, session, keyring, core files); write the start message into the init's pipe; start
 * bubblewrap; serve; write the exit file. Everything up to bubblewrap's start that fails is said on stderr,
 * on the control socket and in the exit file, and ends with 125.
 *
 * Trusts: its arguments, its descriptors and
 * kraft. Does not trust the init once a command runs inside: its messages are checked one by one, a
 * descriptor is taken once and only before the command started, and what it says never reaches further than
 * this session.
 *
 * does: pass messages on in both directions, remember how it ended. must not: hand bubblewrap a variable (it
 * is a dynamic program on the host, and the repository chooses values: PROC-17), block on a reader, read
 * anything the worker can write.
 *
 * Ending a sandbox. The init ends when its pipe ends. Once it has spoken it has also asked to die with
 * bubblewrap, so killing bubblewrap kills it in whatever state, and the kernel then kills the whole pid
 * namespace. Before it has spoken bubblewrap must not be killed: see wire.h. Orphans of bubblewrap come to
 * the launcher, which is a subreaper, so that "nothing is left" is a wait and not a guess at process numbers.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h> /* renameat alone */
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/close_range.h>
#include <linux/keyctl.h>

#include "guest/namespace.h"
#include "guest/sys.h"

#ifndef SYS_keyctl
#error "no keyctl number for this architecture: the sandbox cannot have a keyring of its own (OS-LCH-02)"
#endif

enum {
	QUEUE = 8,              /* messages to kraft that it has not read yet; then the init waits */
	SILENT_INIT_MS = 10000, /* after this, bubblewrap is killed although the init never spoke */
	LAST_WORDS_MS = 2000,   /* for a kraft that does not read */
	ORPHAN_PATIENCE_S = 10,
	QUOTA_TRIES = 40,
	QUOTA_WAIT_MS = 25,
};

/* How far the process that becomes bubblewrap came. It shares our memory until its exec. */
enum stage { STAGE_NAMESPACE, STAGE_EXEC, STAGE_DONE };

struct launch {
	/* the command line */
	const char *bwrap, *terminal_size, *channel, *cwd, *exec;
	int folder, control, lifeline, args, seccomp, verify;
	const char *keep[KG_KEEP_MAX];
	size_t keep_count;
	int pass[KG_PASS_MAX];
	size_t pass_count;
	struct kg_capped tmp, shm, capped[2];
	size_t capped_count;
	bool has_caps, terminal, keep_stderr;
	char **command;
	int command_count;
	char **environment;
	/* the sandbox */
	const char **bwrap_argv;
	int pipe, init_end, child_fd;
	pid_t child;
	volatile enum stage stage; /* where it failed, or STAGE_DONE */
	volatile int stage_errno;
	char *start;
	size_t start_bytes, start_sent;
	/* the talk */
	struct kg_talk talk;
	bool spoke, killed, deaf;
	struct kg_message order, word;
	size_t order_bytes, word_bytes, word_fds;
	int word_fd;
	uint64_t signals; /* bit n-1: signal n waits to be passed on */
	struct kg_message queue[QUEUE];
	int queue_fd[QUEUE];
	size_t queued;
};

/* One per process, too large for a stack page: not reached by name, only passed. */
static struct launch only;

/* ---- ends that come before the sandbox ---- */

static void
write_exit_file(struct launch *launch, const struct kg_result *result)
{
	char text[KG_RESULT_BYTES];
	size_t n = kg_result_text(result, text);
	int fd = openat(
		launch->folder, KG_EXIT_FILE ".new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd >= 0 && write(fd, text, n) == (ssize_t)n &&
		renameat(launch->folder, KG_EXIT_FILE ".new", launch->folder, KG_EXIT_FILE) == 0) {
		close(fd);
		return;
	}
	kg_say(2, "cannot write the exit file: ", kg_errno_text(errno), NULL);
	(void)unlinkat(launch->folder, KG_EXIT_FILE ".new", 0); /* on a full disk it is there, and empty */
}

static void
tell_fault(struct launch *launch, enum kg_fault fault, int failed)
{
	struct kg_message message = { .type = KG_LAUNCH_FAILED, .a = (int32_t)fault, .b = failed };

	if (launch->control >= 0)
		(void)kg_send(launch->control, &message, -1, MSG_DONTWAIT); /* stderr and the exit file say it too */
}

__attribute__((noreturn)) static void
refuse(struct launch *launch, enum kg_fault fault, int failed)
{
	struct kg_result result = { .code = KG_EXIT_REFUSED };

	tell_fault(launch, fault, failed);
	if (launch->folder >= 0)
		write_exit_file(launch, &result);
	_exit(KG_EXIT_REFUSED);
}

__attribute__((noreturn)) static void
refuse_errno(struct launch *launch, enum kg_fault fault, const char *what)
{
	int failed = errno;

	kg_say(2, what, ": ", kg_errno_text(failed), NULL);
	refuse(launch, fault, failed);
}

/* ---- the command line ---- */

static bool
fd_option(int *out, const char *value)
{
	*out = kg_parse_fd(value);
	return *out >= 0;
}

#define FD_OPTION(name)                                             \
	static bool take_##name(void *context, const char *value)       \
	{                                                               \
		return fd_option(&((struct launch *)context)->name, value); \
	}
FD_OPTION(folder)
FD_OPTION(control)
FD_OPTION(lifeline)
FD_OPTION(args)
FD_OPTION(seccomp)
FD_OPTION(verify)

#define TEXT_OPTION(name, field)                              \
	static bool take_##name(void *context, const char *value) \
	{                                                         \
		((struct launch *)context)->field = value;            \
		return true;                                          \
	}
TEXT_OPTION(channel, channel)
TEXT_OPTION(cwd, cwd)
TEXT_OPTION(exec, exec)
TEXT_OPTION(terminal_size, terminal_size)

#define PATH_OPTION(name, field)                              \
	static bool take_##name(void *context, const char *value) \
	{                                                         \
		((struct launch *)context)->field = value;            \
		return value[0] == '/';                               \
	}
PATH_OPTION(bwrap, bwrap)
PATH_OPTION(tmp, tmp.path)
PATH_OPTION(shm, shm.path)

static bool
take_terminal(void *context, const char *value)
{
	struct launch *launch = context;

	(void)value; /* a flag */
	launch->terminal = true;
	return true;
}

static bool
take_keep_stderr(void *context, const char *value)
{
	struct launch *launch = context;

	(void)value; /* a flag */
	launch->keep_stderr = true;
	return true;
}

static bool
take_keep(void *context, const char *value)
{
	struct launch *launch = context;

	if (launch->keep_count == KG_KEEP_MAX || !*value || strchr(value, '='))
		return false;
	launch->keep[launch->keep_count++] = value;
	return true;
}

static bool
take_pass_fd(void *context, const char *value)
{
	struct launch *launch = context;

	if (launch->pass_count == KG_PASS_MAX)
		return false;
	return fd_option(&launch->pass[launch->pass_count++], value);
}

static bool
take_caps(void *context, const char *value)
{
	struct launch *launch = context;
	uint64_t *caps[] = { &launch->tmp.bytes, &launch->tmp.inodes, &launch->shm.bytes, &launch->shm.inodes };
	const char *end = value + strlen(value);

	for (size_t i = 0; i < KG_COUNT(caps); i++) {
		if (i && (value == end || *value++ != ','))
			return false;
		if (!kg_number(&value, end, INT64_MAX, caps[i]) || *caps[i] == 0)
			return false;
	}
	launch->has_caps = value == end;
	return launch->has_caps;
}

static const struct kg_option launch_options[] = {
	{ "--bwrap", true, take_bwrap },
	{ "--folder", true, take_folder },
	{ "--control", true, take_control },
	{ "--lifeline", true, take_lifeline },
	{ "--args", true, take_args },
	{ "--seccomp", true, take_seccomp },
	{ "--verify", true, take_verify },
	{ "--tmp", true, take_tmp },
	{ "--shm", true, take_shm },
	{ "--caps", true, take_caps },
	{ "--keep", true, take_keep },
	{ "--pass-fd", true, take_pass_fd },
	{ "--terminal", false, take_terminal },
	{ "--terminal-size", true, take_terminal_size },
	{ "--terminal-keep-stderr", false, take_keep_stderr },
	{ "--channel", true, take_channel },
	{ "--cwd", true, take_cwd },
	{ "--exec", true, take_exec },
};

static bool
complete(const struct launch *launch)
{
	return launch->command_count > 0 && launch->bwrap && launch->cwd && launch->exec && launch->folder >= 0 &&
		   launch->control >= 0 && launch->args >= 0 && launch->seccomp >= 0 &&
		   (launch->has_caps || (!launch->tmp.path && !launch->shm.path));
}

static void
read_arguments(struct launch *launch, int argc, char **argv)
{
	struct kg_options options = { argv, argc, 2 };
	const char *culprit = "";

	if (!kg_options_read(&options, launch_options, KG_COUNT(launch_options), launch, &culprit)) {
		kg_say(2, "launch: wrong argument '", culprit, "'", NULL);
		refuse(launch, KG_FAULT_INTERNAL, EINVAL);
	}
	launch->command = argv + options.at;
	launch->command_count = argc - options.at;
	if (!complete(launch)) {
		kg_say(2, "launch: arguments are missing", NULL);
		refuse(launch, KG_FAULT_INTERNAL, EINVAL);
	}
	launch->tmp.dest = "/tmp";
	launch->shm.dest = "/dev/shm";
	if (launch->tmp.path)
		launch->capped[launch->capped_count++] = launch->tmp;
	if (launch->shm.path)
		launch->capped[launch->capped_count++] = launch->shm;
}

/* ---- the process ---- */

/* 0 to 2 exist in any case, so that no descriptor of ours ever becomes somebody's standard stream. */
static void
fill_streams(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)open("/dev/null", fd ? O_WRONLY : O_RDONLY); /* takes the lowest number: this one */
}

static void
keep_descriptors(struct launch *launch)
{
	static int keep[KG_PASS_MAX + 6];
	size_t n = 0;

	memcpy(keep, launch->pass, launch->pass_count * sizeof(*keep));
	n = launch->pass_count;
	keep[n++] = launch->folder;
	keep[n++] = launch->control;
	keep[n++] = launch->args;
	keep[n++] = launch->seccomp;
	if (launch->lifeline >= 0)
		keep[n++] = launch->lifeline;
	if (launch->verify >= 0)
		keep[n++] = launch->verify;
	for (size_t i = 0; i < n; i++)
		if (fcntl(keep[i], F_GETFD) < 0)
			refuse_errno(launch, KG_FAULT_INTERNAL, "launch: a named descriptor is not open");
	if (!kg_close_others(keep, n)) {
		kg_say(2, "launch: a descriptor is named twice, or close_range failed", NULL);
		refuse(launch, KG_FAULT_INTERNAL, EINVAL);
	}
	if (syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		refuse_errno(launch, KG_FAULT_INTERNAL, "launch: close_range");
}

__attribute__((noreturn)) static void
refuse_keyring(struct launch *launch)
{
	if (errno == EDQUOT) {
		kg_say(2, "cannot make a session keyring: your key quota is spent (see /proc/key-users); ",
			"end other sessions or raise kernel.keys.maxkeys", NULL);
		refuse(launch, KG_FAULT_KEYRING, EDQUOT);
	}
	refuse_errno(launch, KG_FAULT_KEYRING, "cannot make a session keyring");
}

/* Everything in the session keyring that we came with would be the worker's (OS-LCH-02). */
static void
join_keyring(struct launch *launch)
{
	/* The kernel gives back what ended sessions held a little later than they end. */
	for (int i = 0; syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0; i++) {
		if (errno != EDQUOT || i == QUOTA_TRIES)
			refuse_keyring(launch);
		poll(NULL, 0, QUOTA_WAIT_MS);
	}
}

static void
ignore_signals(void)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE };
	struct sigaction ignore = { .sa_handler = SIG_IGN }, normal = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (size_t i = 0; i < KG_COUNT(ignored); i++)
		(void)sigaction(ignored[i], &ignore, NULL); /* these five can be ignored */
	(void)sigaction(SIGCHLD, &normal, NULL);        /* ignored, children would vanish before we look */
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static void
leave_surroundings(struct launch *launch)
{
	static const struct rlimit no_core;

	ignore_signals();
	if (setsid() < 0 && getsid(0) != getpid())
		refuse_errno(launch, KG_FAULT_INTERNAL, "launch: cannot lead a session of its own");
	if (chdir("/") < 0 || setrlimit(RLIMIT_CORE, &no_core) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0 ||
		prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		refuse_errno(launch, KG_FAULT_INTERNAL, "launch: cannot prepare itself");
	/* A launcher that is stopped does not see the end of its lifeline; the death of kraft lets it go on. */
	if (launch->lifeline >= 0)
		(void)prctl(PR_SET_PDEATHSIG, SIGCONT);
	join_keyring(launch);
}

/* ---- the start message ---- */

static const char *
variable(char **environment, const char *name)
{
	size_t n = strlen(name);

	for (; *environment; environment++)
		if (strncmp(*environment, name, n) == 0 && (*environment)[n] == '=')
			return *environment;
	return NULL;
}

/* Copies the kept variables to out, or with NULL only counts their bytes. */
static size_t
kept_variables(const struct launch *launch, char *out)
{
	size_t total = 0;

	for (size_t i = 0; i < launch->keep_count; i++) {
		const char *text = variable(launch->environment, launch->keep[i]);
		size_t n = text ? strlen(text) + 1 : 0;

		if (out && n)
			memcpy(out + total, text, n);
		total += n;
	}
	return total;
}

static size_t
verify_bytes(struct launch *launch)
{
	struct stat file;

	if (launch->verify < 0)
		return 0;
	if (fstat(launch->verify, &file) < 0)
		refuse_errno(launch, KG_FAULT_INTERNAL, "launch: list of mounts");
	if (file.st_size < 0 || file.st_size > KG_VERIFY_BYTES) {
		errno = E2BIG;
		refuse_errno(launch, KG_FAULT_INTERNAL, "launch: list of mounts");
	}
	return (size_t)file.st_size;
}

static void
write_start(struct launch *launch)
{
	size_t environment = kept_variables(launch, NULL), verify = verify_bytes(launch);
	struct kg_message start = { .type = KG_START, .a = (int32_t)environment, .b = (int32_t)verify };

	if (environment > KG_ENV_BYTES) {
		errno = E2BIG;
		refuse_errno(launch, KG_FAULT_INTERNAL, "the environment of the command is too large");
	}
	launch->start_bytes = sizeof(start) + environment + verify;
	launch->start = kg_map(launch->start_bytes);
	if (!launch->start)
		refuse_errno(launch, KG_FAULT_INTERNAL, "launch: start message");
	memcpy(launch->start, &start, sizeof(start));
	kept_variables(launch, launch->start + sizeof(start));
	if (verify &&
		pread(launch->verify, launch->start + sizeof(start) + environment, verify, 0) != (ssize_t)verify)
		refuse_errno(launch, KG_FAULT_INTERNAL, "launch: list of mounts");
}

/* As much as the pipe takes now. */
static void
send_start(struct launch *launch)
{
	ssize_t n = send(launch->pipe, launch->start + launch->start_sent,
		launch->start_bytes - launch->start_sent, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n > 0)
		launch->start_sent += (size_t)n;
	if (launch->start_sent < launch->start_bytes)
		return;
	kg_unmap(launch->start, launch->start_bytes);
	launch->start = NULL;
}

static void
make_pipe(struct launch *launch)
{
	int pair[2], on = 1;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		refuse_errno(launch, KG_FAULT_INTERNAL, "launch: pipe to the init");
	launch->pipe = pair[0];
	launch->init_end = pair[1];
	if (setsockopt(launch->pipe, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0)
		refuse_errno(launch, KG_FAULT_INTERNAL, "launch: pipe to the init");
}

/* ---- bubblewrap ---- */

enum { FD_TEXT = 12 };

static const char *
fd_text(int fd, char out[FD_TEXT])
{
	out[kg_decimal((uint64_t)fd, out)] = '\0';
	return out;
}

static const char **
bwrap_arguments(struct launch *launch)
{
	static char args[FD_TEXT], seccomp[FD_TEXT], pipe[FD_TEXT];
	const char *head[] = { launch->bwrap, "--args", fd_text(launch->args, args), "--seccomp",
		fd_text(launch->seccomp, seccomp), "--", "/opt/kraft/init", "init", "--pipe",
		fd_text(launch->init_end, pipe), "--cwd", launch->cwd, "--exec", launch->exec };
	const char **argv = kg_map((KG_COUNT(head) + 7 + (size_t)launch->command_count) * sizeof(*argv));
	size_t n = KG_COUNT(head);

	if (!argv)
		return NULL;
	memcpy(argv, head, sizeof(head));
	if (launch->terminal)
		argv[n++] = "--terminal";
	if (launch->keep_stderr)
		argv[n++] = "--terminal-keep-stderr";
	if (launch->terminal_size) {
		argv[n++] = "--terminal-size";
		argv[n++] = launch->terminal_size;
	}
	if (launch->channel) {
		argv[n++] = "--channel";
		argv[n++] = launch->channel;
	}
	argv[n++] = "--";
	memcpy(argv + n, launch->command, (size_t)launch->command_count * sizeof(*argv));
	return argv;
}

static bool
let_through(int fd)
{
	return fcntl(fd, F_SETFD, 0) == 0;
}

static bool
let_all_through(const struct launch *launch)
{
	for (size_t i = 0; i < launch->pass_count; i++)
		if (!let_through(launch->pass[i]))
			return false;
	return let_through(launch->args) && let_through(launch->seccomp) && let_through(launch->init_end);
}

/* In the new process, on our memory: it writes to nothing but the stage, and ends in exec or _exit. */
static int
become_bwrap(void *context)
{
	static char *no_environment[1];
	struct launch *launch = context;

	launch->stage = STAGE_NAMESPACE;
	launch->stage_errno = launch->capped_count ? kg_namespace_enter(launch->capped, launch->capped_count) : 0;
	if (launch->stage_errno)
		_exit(KG_EXIT_REFUSED);
	launch->stage = STAGE_EXEC;
	if (let_all_through(launch)) {
		launch->stage = STAGE_DONE; /* the word of a process that cannot speak any more once it is true */
		execve(launch->bwrap, (char **)launch->bwrap_argv, no_environment);
		launch->stage = STAGE_EXEC;
	}
	launch->stage_errno = errno;
	_exit(KG_EXIT_REFUSED);
}

/*
 * As vfork does it, but on a stack of its own: a copy of our memory, small as it is, costs more than all else
 * that the launcher does. We stand still until the exec.
 */
static void
start_bwrap(struct launch *launch)
{
	static char stack[16384] __attribute__((aligned(16)));

	if (!launch->bwrap_argv)
		launch->bwrap_argv = bwrap_arguments(launch);
	if (!launch->bwrap_argv)
		refuse_errno(launch, KG_FAULT_INTERNAL, "launch: memory");
	/* Its files in /proc/self belong to root while our memory is not dumpable, and it writes two of them. */
	if (launch->capped_count)
		(void)prctl(PR_SET_DUMPABLE, 1); /* cannot fail */
	launch->child = clone(become_bwrap, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD,
		launch, &launch->child_fd);
	(void)prctl(PR_SET_DUMPABLE, 0); /* cannot fail */
	if (launch->child < 0)
		refuse_errno(launch, KG_FAULT_BWRAP, "cannot start a process for bubblewrap");
}

/* The namespace for capped file systems is not allowed here: the same once more, without. */
static void
start_uncapped(struct launch *launch)
{
	int args = kg_namespace_without(launch->args, launch->capped, launch->capped_count);

	if (args < 0) {
		errno = -args;
		refuse_errno(launch, KG_FAULT_INTERNAL, "launch: arguments without capped file systems");
	}
	tell_fault(launch, KG_FAULT_NAMESPACE, launch->stage_errno);
	close(launch->args);
	launch->args = args;
	launch->bwrap_argv = NULL; /* another descriptor, another text; a page is not worth giving back */
	launch->capped_count = 0;
	close(launch->child_fd);
	start_bwrap(launch);
}

/* ---- ending it ---- */

static void
end_sandbox(struct launch *launch)
{
	launch->killed = true;
	(void)shutdown(launch->pipe, SHUT_RDWR); /* what was sent before stays readable */
	if (launch->spoke)
		(void)syscall(SYS_pidfd_send_signal, launch->child_fd, SIGKILL, NULL, 0); /* ours, unreaped */
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
reap_orphans(void)
{
	static const struct timespec patience = { .tv_sec = ORPHAN_PATIENCE_S };
	sigset_t child_ended;
	pid_t pid;

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

/* ---- to kraft ---- */

static void
drop_control(struct launch *launch)
{
	close(launch->control);
	launch->control = -1; /* a session without lifeline goes on; the next kraft reads the files */
	for (size_t i = 0; i < launch->queued; i++)
		if (launch->queue_fd[i] >= 0)
			close(launch->queue_fd[i]);
	launch->queued = 0;
}

static void
flush_queue(struct launch *launch)
{
	size_t sent = 0;
	int failed = 0;

	while (sent < launch->queued && !failed) {
		failed = kg_send(launch->control, &launch->queue[sent], launch->queue_fd[sent], MSG_DONTWAIT);
		if (failed)
			break;
		if (launch->queue_fd[sent] >= 0)
			close(launch->queue_fd[sent]);
		sent++;
	}
	launch->queued -= sent;
	memmove(launch->queue, launch->queue + sent, launch->queued * sizeof(*launch->queue));
	memmove(launch->queue_fd, launch->queue_fd + sent, launch->queued * sizeof(*launch->queue_fd));
	if (failed && failed != EAGAIN)
		drop_control(launch);
}

static void
to_kraft(struct launch *launch, const struct kg_message *message, int fd)
{
	if (launch->control < 0 || launch->queued == QUEUE) {
		if (fd >= 0)
			close(fd);
		return;
	}
	launch->queue[launch->queued] = *message;
	launch->queue_fd[launch->queued++] = fd;
	flush_queue(launch);
}

/* Room for a message of the init and for what we say before it. */
static bool
queue_has_room(const struct launch *launch)
{
	return launch->queued + 2 <= QUEUE;
}

/* ---- from the init ---- */

static bool
is_terminal_master(int fd)
{
	unsigned number;

	return ioctl(fd, TIOCGPTN, &number) == 0;
}

static void
first_word(struct launch *launch, pid_t sender)
{
	struct kg_message child = { .type = KG_CHILD, .a = sender };

	launch->spoke = true;
	close(launch->init_end);
	launch->init_end = -1;
	to_kraft(launch, &child, -1);
}

static void
mark_started(struct launch *launch)
{
	int fd = openat(launch->folder, KG_STARTED_FILE, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd >= 0)
		close(fd);
	else
		kg_say(2, "cannot write the started mark: ", kg_errno_text(errno), NULL);
}

static void
take_word(struct launch *launch)
{
	int fd = launch->word_fd;
	bool fine =
		kg_talk_take(&launch->talk, &launch->word, launch->word_fds) && (fd < 0 || is_terminal_master(fd));

	launch->word_bytes = launch->word_fds = 0;
	launch->word_fd = -1;
	if (!fine) {
		if (fd >= 0)
			close(fd);
		kg_say(2, "process 1 of the sandbox said what it may not say; the sandbox is ended", NULL);
		launch->deaf = true;
		end_sandbox(launch);
		return;
	}
	if (launch->word.type == KG_STARTED)
		mark_started(launch);
	to_kraft(launch, &launch->word, fd);
}

/* What came beside the bytes: the sender's number on the host, and descriptors, of which one is kept. */
static void
take_control_data(struct launch *launch, struct msghdr *head)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(head); c; c = CMSG_NXTHDR(head, c)) {
		const int *fds = (const int *)CMSG_DATA(c);
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		struct ucred sender;

		if (c->cmsg_type == SCM_CREDENTIALS && !launch->spoke) {
			memcpy(&sender, CMSG_DATA(c), sizeof(sender));
			first_word(launch, sender.pid);
		}
		for (size_t i = 0; c->cmsg_type == SCM_RIGHTS && i < n; i++) {
			if (launch->word_fds++ == 0)
				launch->word_fd = fds[i];
			else
				close(fds[i]);
		}
	}
	if (head->msg_flags & MSG_CTRUNC)
		launch->word_fds = SIZE_MAX; /* more than fits: the kernel has closed the rest, and we refuse */
}

/* Reads one message or a part of it. False: nothing more now. */
static bool
hear_init(struct launch *launch)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct iovec part = { (char *)&launch->word + launch->word_bytes,
		sizeof(launch->word) - launch->word_bytes };
	struct msghdr head = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof(control.room)
	};
	ssize_t n = recvmsg(launch->pipe, &head, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n <= 0)
		return false;
	take_control_data(launch, &head);
	launch->word_bytes += (size_t)n;
	if (launch->word_bytes == sizeof(launch->word))
		take_word(launch);
	return !launch->deaf;
}

/* ---- from kraft ---- */

static void
pass_signals(struct launch *launch)
{
	for (int signal = 1; signal <= 64 && launch->signals && !launch->start; signal++) {
		uint64_t bit = 1ull << (signal - 1);
		struct kg_message message = { .type = KG_SIGNAL, .a = signal };

		if (!(launch->signals & bit))
			continue;
		if (kg_send(launch->pipe, &message, -1, MSG_DONTWAIT) == EAGAIN)
			return;
		launch->signals &= ~bit;
	}
}

static void
take_order(struct launch *launch)
{
	launch->order_bytes = 0;
	if (!kg_order_valid(&launch->order))
		return; /* a kraft of another version: not understood, not done */
	if (launch->order.type == KG_KILL)
		end_sandbox(launch);
	else
		launch->signals |= 1ull << (launch->order.a - 1);
}

static void
hear_kraft(struct launch *launch)
{
	ssize_t n = recv(launch->control, (char *)&launch->order + launch->order_bytes,
		sizeof(launch->order) - launch->order_bytes, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		drop_control(launch);
		return;
	}
	launch->order_bytes += (size_t)n;
	if (launch->order_bytes == sizeof(launch->order))
		take_order(launch);
}

/* ---- serving ---- */

enum { AT_CONTROL, AT_INIT, AT_LIFELINE, AT_CHILD, PLACES };

static void
watch(const struct launch *launch, struct pollfd at[PLACES])
{
	bool writes = launch->start || launch->signals;

	at[AT_CONTROL] =
		(struct pollfd){ launch->control, (short)(launch->queued ? POLLIN | POLLOUT : POLLIN), 0 };
	/* Not watched at all while kraft does not read: its end would be reported again and again. */
	at[AT_INIT] = (struct pollfd){ queue_has_room(launch) && !launch->killed ? launch->pipe : -1,
		(short)(writes ? POLLIN | POLLOUT : POLLIN), 0 };
	at[AT_LIFELINE] = (struct pollfd){ launch->killed ? -1 : launch->lifeline, POLLIN, 0 };
	at[AT_CHILD] = (struct pollfd){ launch->child_fd, POLLIN, 0 };
}

static void
handle(struct launch *launch, const struct pollfd at[PLACES])
{
	if (at[AT_CONTROL].revents & POLLOUT)
		flush_queue(launch);
	if (launch->control >= 0 && (at[AT_CONTROL].revents & (POLLIN | POLLHUP | POLLERR)))
		hear_kraft(launch);
	if (at[AT_LIFELINE].revents && !launch->killed)
		end_sandbox(launch);
	if (launch->start && (at[AT_INIT].revents & POLLOUT))
		send_start(launch);
	if (launch->signals)
		pass_signals(launch);
	if ((at[AT_INIT].revents & (POLLIN | POLLHUP)) && !launch->deaf && !hear_init(launch) &&
		(at[AT_INIT].revents & POLLHUP))
		launch->deaf = true;
}

/* Until bubblewrap is gone. */
static void
serve(struct launch *launch)
{
	for (;;) {
		struct pollfd at[PLACES];
		bool waiting = launch->killed && !launch->spoke;
		int n;

		watch(launch, at);
		if (launch->deaf)
			at[AT_INIT].fd = -1;
		n = poll(at, PLACES, waiting ? SILENT_INIT_MS : -1);
		if (n == 0)
			(void)syscall(SYS_pidfd_send_signal, launch->child_fd, SIGKILL, NULL, 0); /* ours, unreaped */
		if (n > 0)
			handle(launch, at);
		if (n > 0 && at[AT_CHILD].revents)
			return;
	}
}

/* Reads what the init still said, in the room that kraft leaves. */
static void
last_words(struct launch *launch)
{
	struct pollfd control = { .fd = launch->control, .events = POLLOUT };

	while (!launch->deaf && queue_has_room(launch) && hear_init(launch))
		;
	while (launch->control >= 0 && launch->queued && poll(&control, 1, LAST_WORDS_MS) == 1)
		flush_queue(launch);
}

/* bubblewrap ended before the init spoke: it has said why on stderr; or it was never executed. */
static void
explain_silence(struct launch *launch)
{
	int failed = 0;

	if (launch->stage == STAGE_EXEC) {
		failed = launch->stage_errno;
		kg_say(2, "cannot run '", launch->bwrap, "': ", kg_errno_text(failed), NULL);
	}
	tell_fault(launch, KG_FAULT_BWRAP, failed);
}

int
kg_launch_main(int argc, char **argv, char **environment)
{
	struct launch *launch = &only;
	struct kg_result result;

	launch->folder = launch->control = launch->lifeline = launch->args = launch->seccomp = launch->verify =
		-1;
	launch->pipe = launch->init_end = launch->child_fd = launch->word_fd = -1;
	launch->environment = environment;
	fill_streams();
	read_arguments(launch, argc, argv);
	if (getuid() == 0 || geteuid() == 0) {
		kg_say(2, "the os sandbox refuses to run as root; run kraft as an ordinary user", NULL);
		refuse(launch, KG_FAULT_INTERNAL, EPERM);
	}
	keep_descriptors(launch);
	leave_surroundings(launch);
	make_pipe(launch);
	write_start(launch);
	send_start(launch);
	start_bwrap(launch);
	serve(launch);
	if (launch->stage == STAGE_NAMESPACE && !launch->killed) {
		(void)waitpid(launch->child, NULL, 0);
		start_uncapped(launch);
		serve(launch);
	}
	last_words(launch);
	reap_orphans();
	if (!launch->spoke && !launch->killed)
		explain_silence(launch);
	result = kg_result_of(&launch->talk, launch->killed);
	write_exit_file(launch, &result);
	return result.code;
}
