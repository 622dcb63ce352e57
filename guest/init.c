/*
 * Process 1 of the sandbox: starts the command, reaps what it leaves, says what became of it.
 *
 * Order: close every descriptor but the pipe and become unreadable, since the command will run as the same
 * user; ask to die with bubblewrap; lead a session of its own, so that nothing outside shares a group with
 * the command; read the start message; compare the mounts with what kraft checked; hand the listener of the
 * way out over; open the terminal; start the command; serve.
 *
 * In a container (container.c) it connects to its launcher first, takes its streams and the filter from
 * there, and puts itself under the filter last of all before it starts the command. It does not ask to die
 * with its parent, which is a runtime's monitor that may be started again. A runtime that asks it to end
 * (SIGTERM of `docker stop`) is not heard, as no signal is: the runtime then kills it, and kraft is who ends
 * a session. Where nothing can be connected to (--stdio), a thread of ours stands for the launcher and for the
 * proxy, at the other ends of two pairs of sockets (pump_inside.h); all else is the same.
 *
 * Trusts the pipe and its arguments, which are kraft's. Trusts nothing that happens after
 * the command started. It ends when its pipe ends, whatever else goes on, and with it the whole pid
 * namespace: this, not a parent-death signal, is what makes a killed launcher take its sandbox along from the
 * first moment on (see wire.h).
 *
 * does: wait, pass signals on, tell. must not: block on anything that the command controls, hold a secret
 * while it runs (the environment block is given back once the exec is known to have worked), act on a signal
 * that the command sends.
 *
 * States: starting -> started <-> stopped -> ended. Orders of kraft are read from `started` on.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest/container.h"
#include "guest/left.h"
#include "guest/pump_inside.h"
#include "guest/route.h"
#include "guest/sys.h"
#include "guest/terminal.h"

enum {
	REAP_AT_ONCE = 256, /* then the pipe is looked at again: a storm cannot hide its end */
	LEFT_WAIT_MS = 1000,   /* for what the command left and that ends by itself */
	OOM_SCORE_ADDED = 200, /* the kernel ends the worker before kraft (PROC-25) */
	OOM_KILLS_MAX = 1 << 20,
	ENTRIES_BYTES = 4096,
};

struct block {
	char *bytes;
	size_t n;
};

struct init {
	const char *cwd, *exec;
	const char *connect; /* in a container: the launcher's socket, or NULL with --stdio */
	bool stdio, pumps; /* asked for; the thread runs */
	struct kg_inside inside;
	char **own;          /* our variables */
	char **image;        /* its own variables, under those of the start; NULL: they are not for the command */
	char **command_argv; /* the place before it is ours: see kg_exec */
	const char *name;    /* what it is called by, for messages */
	int pipe, signals;
	bool wants_terminal;
	struct kg_terminal terminal;
	struct kg_route route;
	struct block environment, verify;
	struct kg_filter filter;
	struct kg_oom oom;
	char **variables;
	size_t variables_bytes;
	pid_t command;
	volatile int exec_errno; /* of the command's process, which shares our memory until its exec */
	int stop, stop_told;     /* signal that stopped the command, 0 while it runs; and what was said last */
	struct kg_message order;
	size_t order_bytes;
};

/* ---- words to the launcher ---- */

static void
tell(struct init *init, uint32_t type, int a, int b)
{
	struct kg_message message = { .type = type, .a = a, .b = b };

	if (kg_send(init->pipe, &message, -1, 0) != 0)
		_exit(KG_EXIT_REFUSED); /* the launcher is gone, and so are we */
}

static bool
is_container(const struct init *init)
{
	return init->connect || init->stdio;
}

/* After the last word. What the command left ends with us. */
__attribute__((noreturn)) static void
leave(struct init *init, int code)
{
	if (!init->pumps)
		_exit(code);
	if (init->terminal.tty >= 0)
		close(init->terminal.tty);
	kg_inside_leave(init->pipe, code);
}

__attribute__((noreturn)) static void
fail(struct init *init, enum kg_fault fault, int failed, const char *what)
{
	kg_say(2, what, ": ", kg_errno_text(failed), NULL);
	tell(init, KG_LAUNCH_FAILED, (int)fault, failed);
	leave(init, KG_EXIT_REFUSED);
}

/* A line for the person on the command's stderr. */
static void
hint(struct init *init, const char *name, const char *text)
{
	kg_hint(init->terminal.tty >= 0 ? init->terminal.tty : 2, name, text);
}

static void
hint_not_found(struct init *init)
{
	hint(init, "",
		is_container(init) ? "a command was not found inside the container; its image has to bring it"
						   : KG_HINT_NOT_FOUND);
}

/* ---- before the command ---- */

KG_TAKE_FD(struct init, pipe, pipe)
KG_TAKE_TEXT(struct init, channel, route.path)
KG_TAKE_TEXT(struct init, cwd, cwd)
KG_TAKE_TEXT(struct init, connect, connect)
KG_TAKE_TEXT(struct init, exec, exec)
KG_TAKE_FLAG(struct init, stdio, stdio)
KG_TAKE_FLAG(struct init, terminal, wants_terminal)
KG_TAKE_FLAG(struct init, keep_stderr, terminal.keep_stderr)
KG_TAKE(struct init, terminal_size, return kg_terminal_parse_size(value, &taken->terminal.size);)
KG_TAKE(struct init, image_env, (void)value; taken->image = taken->own; return true;)

static const struct kg_option init_options[] = {
	{ "--pipe", true, take_pipe },
	{ "--connect", true, take_connect },
	{ "--stdio", false, take_stdio },
	{ "--image-env", false, take_image_env },
	{ "--terminal", false, take_terminal },
	{ "--terminal-size", true, take_terminal_size },
	{ "--terminal-keep-stderr", false, take_keep_stderr },
	{ "--channel", true, take_channel },
	{ "--cwd", true, take_cwd },
	{ "--exec", true, take_exec },
};

static bool
read_arguments(struct init *init, int argc, char **argv)
{
	struct kg_options options = { argv, argc, 2 };
	const char *culprit;

	if (!kg_options_read(&options, init_options, KG_COUNT(init_options), init, &culprit) ||
		options.at == argc || (init->pipe >= 0) + (init->connect != NULL) + init->stdio != 1 || !init->cwd ||
		!init->exec) {
		kg_say(2, "init: wrong arguments", NULL);
		return false;
	}
	init->command_argv = argv + options.at;
	init->name = init->command_argv[0];
	return true;
}

/* The command inherits it. Before harden: afterwards the file is not ours. */
static void
offer_to_oom_killer(void)
{
	int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	char text[24];
	const char *at = text;
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	uint64_t score;

	/* A negative score is somebody's decision to keep all of this alive: left alone. */
	if (n > 0 && kg_number(&at, text + n, 1000, &score)) {
		score = score > 1000 - OOM_SCORE_ADDED ? 1000 : score + OOM_SCORE_ADDED;
		(void)!pwrite(fd, text, kg_decimal(score, text), 0); /* a courtesy, not a wall */
	}
	if (fd >= 0)
		close(fd);
}

static bool
connect_launcher(struct init *init)
{
	kg_fill_streams();
	/* Not tried again: a socket that is not there now belongs to a launcher that has ended. */
	init->pipe = kg_connect_unix(init->connect, 0);
	if (init->pipe < 0)
		kg_say(2, "cannot connect to '", init->connect, "': ", kg_errno_text(-init->pipe), NULL);
	return init->pipe >= 0;
}

/* In place of a connection. The thread comes later: it is to have no signal, and nothing but what harden leaves. */
static bool
open_stdio(struct init *init)
{
	int failed;

	kg_fill_streams();
	failed = kg_inside_open(&init->inside, init->route.path != NULL);
	if (failed)
		kg_say(2, "init: cannot take its streams: ", kg_errno_text(failed), NULL);
	init->pipe = init->inside.pipe;
	init->route.given = init->inside.route;
	return !failed;
}

static bool
reach_launcher(struct init *init)
{
	return init->stdio ? open_stdio(init) : !init->connect || connect_launcher(init);
}

/* From here on the command, though the same user, can neither read nor write us nor take our descriptors. */
static void
harden(struct init *init)
{
	static const struct rlimit no_core;
	const struct kg_inside *inside = &init->inside;
	int keep[] = { init->pipe, inside->in, inside->out, inside->pipe_far, inside->route, inside->route_far };
	size_t n = 1;
	sigset_t all;

	for (size_t i = 1; init->stdio && i < KG_COUNT(keep); i++)
		if (keep[i] >= 0)
			keep[n++] = keep[i];
	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL); /* cannot fail with these arguments */
	if (prctl(PR_SET_DUMPABLE, 0) < 0 || (!is_container(init) && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) ||
		!kg_close_others(keep, n) || fcntl(init->pipe, F_SETFD, FD_CLOEXEC) < 0 ||
		(setsid() < 0 && getsid(0) != getpid()) || setrlimit(RLIMIT_CORE, &no_core) < 0)
		fail(init, KG_FAULT_INTERNAL, errno, "init: cannot harden itself");
}

static void
start_pump(struct init *init)
{
	int failed = init->stdio ? kg_inside_start(&init->inside, init->wants_terminal) : 0;

	init->pumps = init->stdio;
	if (!failed)
		return;
	kg_say(2, "init: cannot serve its streams: ", kg_errno_text(failed), NULL);
	_exit(KG_EXIT_REFUSED); /* there is nobody to tell */
}

static void
read_block(struct init *init, struct block *block, int32_t bytes, int32_t max)
{
	if (bytes < 0 || bytes > max)
		fail(init, KG_FAULT_INTERNAL, EINVAL, "init: start message");
	if (bytes == 0)
		return;
	block->bytes = kg_map((size_t)bytes);
	if (!block->bytes)
		fail(init, KG_FAULT_INTERNAL, errno, "init: cannot take the start message");
	block->n = (size_t)bytes;
	if (!kg_read_all(init->pipe, block->bytes, block->n))
		_exit(KG_EXIT_REFUSED);
}

static void
list_variables(struct init *init)
{
	static char *nothing[1];
	char **under = init->image ? init->image : nothing;
	long count = kg_env_count(init->environment.bytes, init->environment.n);
	size_t n = (size_t)count + 1;

	if (count < 0)
		fail(init, KG_FAULT_INTERNAL, EINVAL, "init: environment");
	for (char **one = under; *one; one++)
		n++;
	init->variables_bytes = n * sizeof(char *);
	init->variables = kg_map(init->variables_bytes);
	if (!init->variables)
		fail(init, KG_FAULT_INTERNAL, errno, "init: environment");
	kg_env_merge(under, init->environment.bytes, init->environment.n, (const char **)init->variables);
}

/* What comes before the start in a container. */
static void
receive_surroundings(struct init *init)
{
	int failed = kg_container_take_streams(init->pipe);

	if (!failed)
		failed = kg_container_take_filter(init->pipe, &init->filter);
	if (failed == EPIPE)
		_exit(KG_EXIT_REFUSED);
	if (failed)
		fail(init, KG_FAULT_INTERNAL, failed, "init: streams and filter");
	kg_container_watch_oom(&init->oom);
}

static void
receive_start(struct init *init)
{
	struct kg_message start;

	if (!kg_read_all(init->pipe, &start, sizeof(start)))
		_exit(KG_EXIT_REFUSED); /* the launcher is gone before anything began */
	if (start.type != KG_START || start.zero != 0)
		fail(init, KG_FAULT_INTERNAL, EPROTO, "init: start message");
	read_block(init, &init->environment, start.a, KG_ENV_BYTES);
	read_block(init, &init->verify, start.b, KG_VERIFY_BYTES);
	list_variables(init);
}

/* Whether something is mounted there: its place is made by the runtime where it is missing. */
static bool
is_mount(int dir, const char *name)
{
	/* The beginning of struct statx, which not every libc has. */
	struct {
		uint32_t mask, block_bytes;
		uint64_t attributes;
		char rest[240];
	} seen = { 0 };
	enum { IS_MOUNT = 0x2000 };

	/* A kernel before 5.8 does not say it. */
	return syscall(SYS_statx, dir, name, AT_SYMLINK_NOFOLLOW, 0, &seen) == 0 && (seen.attributes & IS_MOUNT);
}

/* Whether there is a name in it; one that we may not read is not known to be empty. */
static bool
has_entries(const char *path)
{
	static char list[ENTRIES_BYTES] __attribute__((aligned(8)));
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool found = fd < 0;
	long got;

	while (!found && (got = syscall(SYS_getdents64, fd, list, sizeof(list))) > 0)
		for (long at = 0; at < got && !found; at += ((struct dirent *)(list + at))->d_reclen) {
			const char *name = ((struct dirent *)(list + at))->d_name;

			found = strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !is_mount(fd, name);
		}
	if (fd >= 0)
		close(fd);
	return found;
}

/* What a runtime makes where it does not see the host's directory is an empty one. */
static bool
is_what_was_checked(const struct kg_verify *mount, const struct stat *file)
{
	if (!mount->is_elsewhere)
		return file->st_dev == mount->device && file->st_ino == mount->inode;
	return (file->st_mode & S_IFMT) == mount->device &&
		   (!mount->inode || !S_ISDIR(file->st_mode) || has_entries(mount->path));
}

/* 0 when the mount is the one that was checked, else what to say as errno; ESTALE: it is another file. */
static int
check_mount(const struct kg_verify *mount)
{
	struct statvfs file_system;
	struct stat file;

	if (lstat(mount->path, &file) < 0)
		return errno;
	if (!is_what_was_checked(mount, &file))
		return ESTALE;
	if (!mount->read_only)
		return 0;
	if (statvfs(mount->path, &file_system) < 0)
		return errno;
	return file_system.f_flag & ST_RDONLY ? 0 : EROFS;
}

/* A source could have been swapped between kraft's check and the mount: compare what is mounted. */
static void
check_mounts(struct init *init)
{
	const char *at = init->verify.bytes, *end = at + init->verify.n;
	struct kg_verify mount;
	int more;

	for (int index = 0; (more = kg_verify_next(&at, end, &mount)) > 0; index++) {
		int wrong = check_mount(&mount);

		if (!wrong)
			continue;
		kg_say(2, "the mount '", mount.path, "' is not what was checked before", NULL);
		tell(init, KG_WALL, index, wrong);
		leave(init, KG_EXIT_REFUSED);
	}
	if (more < 0)
		fail(init, KG_FAULT_INTERNAL, EINVAL, "init: list of mounts");
	kg_unmap(init->verify.bytes, init->verify.n);
}

static void
open_route(struct init *init)
{
	int failed = init->route.path ? kg_route_open(&init->route, init->pipe) : 0;

	if (failed == EPIPE)
		_exit(KG_EXIT_REFUSED);
	if (failed)
		fail(init, KG_FAULT_ROUTE, failed, "the way out of the sandbox");
}

static void
open_terminal(struct init *init)
{
	int master = kg_terminal_open(&init->terminal);
	struct kg_message message = { .type = KG_TERMINAL };

	if (master < 0)
		fail(init, KG_FAULT_PTY, -master, "cannot open a pseudo-terminal inside the sandbox");
	if (kg_send(init->pipe, &message, master, 0) != 0)
		_exit(KG_EXIT_REFUSED);
	close(master);
}

static void
watch_signals(struct init *init)
{
	sigset_t watched;

	sigemptyset(&watched);
	sigaddset(&watched, SIGCHLD);
	sigaddset(&watched, SIGHUP); /* of a terminal whose master went away; see hang_up */
	init->signals = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
	if (init->signals < 0)
		fail(init, KG_FAULT_INTERNAL, errno, "init: signals");
}

/* As under bubblewrap, who does it before the init starts: what the init still does is allowed. */
static void
install_filter(struct init *init)
{
	int failed = kg_container_install(&init->filter);

	if (failed)
		fail(init, KG_FAULT_FILTER, failed, "cannot install the filter of system calls");
}

/*
 * ---- the command's own process, before its exec ----
 * It runs on our memory while we stand still, and writes to nothing of it but exec_errno and the arguments.
 */

static int
become_command(void *context)
{
	struct init *init = context;

	(void)setpgid(0, 0); /* cannot fail: a new process, no leader of a session */
	kg_terminal_give(&init->terminal);
	kg_default_signals();
	init->exec_errno = kg_exec(init->exec, init->command_argv, init->variables);
	_exit(KG_EXIT_REFUSED);
}

static bool
launcher_is_gone(struct init *init)
{
	struct pollfd pipe = { .fd = init->pipe };

	return poll(&pipe, 1, 0) == 1 && (pipe.revents & (POLLHUP | POLLERR));
}

__attribute__((noreturn)) static void
exec_failed(struct init *init)
{
	if (kg_exec_exit(init->exec_errno) == KG_EXIT_NOT_EXECUTABLE)
		hint(init, init->name, " is not executable");
	else
		hint_not_found(init);
	tell(init, KG_EXEC_FAILED, init->exec_errno, 0);
	leave(init, kg_exec_exit(init->exec_errno));
}

/*
 * As vfork does it, but on a stack of its own: copying our memory would cost more than the rest of our work
 * together, and there is no pipe to wait on for the exec. We stand still as long as the exec takes, which is
 * long only where a file system hangs; killing bubblewrap ends us there too.
 */
static void
start_command(struct init *init)
{
	static char stack[16384] __attribute__((aligned(16)));

	if (launcher_is_gone(init))
		_exit(KG_EXIT_REFUSED);
	init->command = clone(become_command, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | SIGCHLD, init);
	if (init->command < 0)
		fail(init, KG_FAULT_INTERNAL, errno, "cannot start a process inside the sandbox");
	if (init->exec_errno)
		exec_failed(init);
	tell(init, KG_STARTED, 0, 0);
	kg_terminal_given(&init->terminal);
	kg_unmap(init->environment.bytes, init->environment.n);
	kg_unmap(init->variables, init->variables_bytes);
}

/* ---- while it runs ---- */

/* Nobody waits when nothing is left. A signal that comes for the command comes too late. */
static void
wait_for_rest(struct init *init)
{
	struct pollfd ready[] = { { .fd = init->pipe }, { .fd = init->signals, .events = POLLIN } };
	struct signalfd_siginfo info;
	const int64_t until = kg_now_ms() + LEFT_WAIT_MS;

	for (;;) {
		int64_t left = until - kg_now_ms();

		for (int i = 0; i < REAP_AT_ONCE && waitpid(-1, NULL, WNOHANG) > 0; i++)
			;
		if (left <= 0 || !kg_left_any())
			return;
		(void)poll(ready, KG_COUNT(ready), (int)left); /* by a signal it only comes back sooner */
		if (ready[0].revents)
			_exit(KG_EXIT_REFUSED);
		while (read(init->signals, &info, sizeof(info)) == sizeof(info))
			;
	}
}

static void
tell_left(struct init *init)
{
	static struct kg_left left;

	if (!kg_left_any())
		return;
	kg_left_look(&left);
	if (!left.count)
		return; /* it ended meanwhile */
	tell(init, KG_LEFT, left.count, 0);
	for (size_t at = 0; at < left.bytes; at += KG_LEFT_PIECE) {
		int32_t piece[2];

		memcpy(piece, left.names + at, sizeof(piece));
		tell(init, KG_LEFT_NAMES, piece[0], piece[1]);
	}
}

static void
tell_oom(struct init *init)
{
	uint64_t kills = kg_container_oom_kills(&init->oom);

	if (kills)
		tell(init, KG_OOM, kills < OOM_KILLS_MAX ? (int)kills : OOM_KILLS_MAX, 0);
}

__attribute__((noreturn)) static void
command_ended(struct init *init, int status)
{
	struct kg_message message = kg_exit_message(status);

	if (message.a == KG_EXIT_NOT_FOUND && message.b == 0)
		hint_not_found(init);
	wait_for_rest(init);
	tell_left(init);
	tell_oom(init);
	tell(init, KG_EXIT, message.a, message.b);
	leave(init, message.a);
}

/* Returns whether there may be more to reap. */
static bool
reap(struct init *init)
{
	for (int i = 0; i < REAP_AT_ONCE; i++) {
		int status;
		pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);

		if (pid <= 0)
			return false;
		if (pid != init->command)
			continue;
		if (WIFSTOPPED(status))
			init->stop = WSTOPSIG(status);
		else if (WIFCONTINUED(status))
			init->stop = 0;
		else
			command_ended(init, status);
	}
	return true;
}

static void
deliver(struct init *init, int signal)
{
	unsigned targets = kg_signal_targets(init->command, getpgid(init->command));

	if (signal == SIGCONT && init->stop)
		kg_terminal_foreground(&init->terminal, init->command);
	if (targets & KG_TO_GROUP)
		(void)kill(-init->command, signal); /* no group left: then only the command itself */
	if (targets & KG_TO_COMMAND)
		(void)kill(init->command, signal); /* unreaped, so still the command */
}

/*
 * The terminal's master was closed: the kernel tells the session's leader alone, which is us. Only the kernel
 * can send SI_KERNEL; what the command sends to process 1 is read and dropped.
 */
static void
take_signals(struct init *init)
{
	struct signalfd_siginfo info;

	while (read(init->signals, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo == SIGHUP && info.ssi_code == SI_KERNEL) {
			deliver(init, SIGHUP);
			deliver(init, SIGCONT);
		}
}

static void
take_orders(struct init *init)
{
	ssize_t n = recv(init->pipe, (char *)&init->order + init->order_bytes,
		sizeof(init->order) - init->order_bytes, MSG_DONTWAIT);

	if (n == 0)
		_exit(KG_EXIT_REFUSED);
	if (n < 0)
		return;
	init->order_bytes += (size_t)n;
	if (init->order_bytes < sizeof(init->order))
		return;
	init->order_bytes = 0;
	if (kg_order_valid(&init->order) && init->order.type == KG_SIGNAL)
		deliver(init, init->order.a);
}

/* Stops and continuations faster than anybody reads are told as the last one. */
static void
tell_stop(struct init *init)
{
	struct kg_message message = { .type = init->stop ? KG_STOPPED : KG_CONTINUED, .a = init->stop };

	if (init->stop != init->stop_told && kg_send(init->pipe, &message, -1, MSG_DONTWAIT) == 0)
		init->stop_told = init->stop;
}

__attribute__((noreturn)) static void
serve(struct init *init)
{
	bool more = false;

	for (;;) {
		struct pollfd ready[] = {
			{ .fd = init->pipe,
				.events = (short)(init->stop == init->stop_told ? POLLIN : POLLIN | POLLOUT) },
			{ .fd = init->signals, .events = POLLIN },
			{ .fd = init->route.channel, .events = POLLIN },
		};

		if (poll(ready, KG_COUNT(ready), more ? 0 : kg_route_wait_ms(&init->route)) < 0 && errno != EINTR)
			_exit(KG_EXIT_REFUSED); /* cannot happen with these arguments */
		if (ready[0].revents & (POLLHUP | POLLERR))
			_exit(KG_EXIT_REFUSED);
		if (ready[0].revents & POLLIN)
			take_orders(init);
		if (ready[1].revents)
			take_signals(init);
		if (ready[1].revents || more)
			more = reap(init);
		tell_stop(init);
		if (ready[2].revents)
			kg_route_lost(&init->route);
		kg_route_again(&init->route);
	}
}

int
kg_init_main(int argc, char **argv, char **environment)
{
	struct init init = { .pipe = -1,
		.signals = -1,
		.own = environment,
		.inside = { -1, -1, -1, -1, -1, -1 },
		.oom = { .fd = -1 },
		.route = { .given = -1, .listener = -1, .channel = -1 },
		.terminal = { .tty = -1, .command_tty = -1 } };

	if (!read_arguments(&init, argc, argv))
		return KG_EXIT_REFUSED;
	offer_to_oom_killer();
	if (!reach_launcher(&init))
		return KG_EXIT_REFUSED;
	harden(&init);
	start_pump(&init);
	if (is_container(&init))
		receive_surroundings(&init);
	receive_start(&init);
	check_mounts(&init);
	if (chdir(init.cwd) < 0)
		fail(&init, KG_FAULT_CWD, errno, init.cwd);
	open_route(&init);
	if (init.wants_terminal)
		open_terminal(&init);
	watch_signals(&init);
	if (is_container(&init))
		install_filter(&init);
	start_command(&init);
	serve(&init);
}
