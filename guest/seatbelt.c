/*
 * The launcher on macOS: on the host, parent of sandbox-exec, which becomes the command in two steps (start.c). One per
 * session. It outlives a kraft that restarts.
 *
 * Order: read the arguments; refuse root; close what was not named; leave the surroundings; write the environment block; make
 * the terminal; start; serve; end all that the session left; write the exit file. What fails before the command is said on
 * stderr, on the control socket and in the exit file, and ends with 125.
 *
 * Nothing inside speaks to it once the command runs: it watches the command as its parent, owns the terminal and passes signals
 * on. The profile keeps the worker from signalling it. No namespace ends with a session here, so the launcher finds its
 * processes and ends them (family.h, ending.c); one that does not end is told to kraft by its number.
 *
 * Where kraft dies the lifeline ends and the session with it. Where the launcher is killed kraft runs the role `end`, and the
 * next kraft does where both died.
 *
 * does: wait, pass signals on, tell, end. must not: hand sandbox-exec a variable or a descriptor but the two pipes; block on
 * anything that the command controls; signal a process that is not proven to be the session's.
 *
 * In a test's build the same file runs on Linux (main.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest/control.h"
#include "guest/ending.h"
#include "guest/start.h"
#include "guest/terminal.h"

enum {
	LEFT_WAIT_MS = 1000, /* for what the command left and that ends by itself */
	LEFT_PAUSE_MS = 20,
	FD_TEXT = 12,
};

struct seatbelt {
	struct kg_control control;
	/* the command line */
	const char *self, *program, *profile, *cwd, *exec;
	int lifeline;
	const char *keep[KG_KEEP_MAX];
	size_t keep_count;
	bool wants_terminal;
	char **command, **environment;
	int command_count;
	/* while it starts */
	int block_fd, status_fd; /* our ends of the pipes; -1: closed */
	int block_end, status_end;
	char *block;
	size_t block_room, block_bytes, block_sent;
	struct kg_message word;
	size_t word_bytes;
	bool is_inside, failed;
	const char **argv;
	/* while it runs */
	struct kg_terminal terminal;
	int children; /* of the pipe that a handler writes to */
	pid_t child;
	bool has_ended, killed;
	int status; /* of waitpid */
	int stop, stop_told;
	uint64_t signals; /* bit n-1: signal n waits for the start */
	struct kg_talk talk;
	struct kg_end end;
};

/* One per process, too large for a stack page: not reached by name, only passed. But a handler has nothing to be passed. */
static struct seatbelt only;
static int children_write = -1;

/* ---- to kraft ---- */

static void
tell(struct seatbelt *s, uint32_t type, int32_t a, int32_t b, int descriptor)
{
	struct kg_message message = { .type = type, .a = a, .b = b };

	kg_control_tell(&s->control, &message, descriptor);
}

/* Of the command: what decides how the session ended. */
static void
tell_talk(struct seatbelt *s, uint32_t type, int32_t a, int32_t b, int descriptor)
{
	struct kg_message message = { .type = type, .a = a, .b = b };

	(void)kg_talk_take(&s->talk, &message, descriptor >= 0); /* ours, and in order */
	tell(s, type, a, b, descriptor);
}

/* At the end nothing is left that waits for us, and no word may be lost. */
static void
tell_last(struct seatbelt *s, uint32_t type, int32_t a, int32_t b)
{
	while (!kg_control_has_room(&s->control))
		kg_control_wait(&s->control);
	tell_talk(s, type, a, b, -1);
}

/* ---- ends that come before the command ---- */

__attribute__((noreturn)) static void
refuse(struct seatbelt *s, enum kg_fault fault, int failed)
{
	struct kg_message message = { .type = KG_LAUNCH_FAILED, .a = (int32_t)fault, .b = failed };
	struct kg_result result = { .code = KG_EXIT_REFUSED };

	if (s->control.fd >= 0)
		(void)kg_send(s->control.fd, &message, -1, MSG_DONTWAIT); /* stderr and the exit file say it too */
	if (s->control.folder >= 0)
		kg_control_write_exit(&s->control, &result);
	_exit(KG_EXIT_REFUSED);
}

__attribute__((noreturn)) static void
refuse_errno(struct seatbelt *s, enum kg_fault fault, const char *what)
{
	int failed = errno;

	kg_say(2, what, ": ", kg_errno_text(failed), NULL);
	refuse(s, fault, failed);
}

/* ---- the command line ---- */

KG_TAKE_FD(struct seatbelt, folder, control.folder)
KG_TAKE_FD(struct seatbelt, control, control.fd)
KG_TAKE_FD(struct seatbelt, lifeline, lifeline)
KG_TAKE_TEXT(struct seatbelt, cwd, cwd)
KG_TAKE_TEXT(struct seatbelt, exec, exec)
KG_TAKE_PATH(struct seatbelt, seatbelt, program)
KG_TAKE_PATH(struct seatbelt, profile, profile)
KG_TAKE_PATH(struct seatbelt, own, end.mark.own)
KG_TAKE_PATH(struct seatbelt, other, end.mark.other)
KG_TAKE_FLAG(struct seatbelt, terminal, wants_terminal)
KG_TAKE_FLAG(struct seatbelt, keep_stderr, terminal.keep_stderr)
KG_TAKE(struct seatbelt, terminal_size, return kg_terminal_parse_size(value, &taken->terminal.size);)

static bool
take_keep(void *context, const char *value)
{
	struct seatbelt *s = context;

	if (s->keep_count == KG_KEEP_MAX || !*value || strchr(value, '='))
		return false;
	s->keep[s->keep_count++] = value;
	return true;
}

static const struct kg_option seatbelt_options[] = {
	{ "--seatbelt", true, take_seatbelt },
	{ "--profile", true, take_profile },
	{ "--own", true, take_own },
	{ "--other", true, take_other },
	{ "--folder", true, take_folder },
	{ "--control", true, take_control },
	{ "--lifeline", true, take_lifeline },
	{ "--keep", true, take_keep },
	{ "--terminal", false, take_terminal },
	{ "--terminal-size", true, take_terminal_size },
	{ "--terminal-keep-stderr", false, take_keep_stderr },
	{ "--cwd", true, take_cwd },
	{ "--exec", true, take_exec },
};

static void
read_arguments(struct seatbelt *s, int argc, char **argv)
{
	struct kg_options options = { argv, argc, 2 };
	const char *culprit = "";

	s->self = argv[0];
	if (!kg_options_read(&options, seatbelt_options, KG_COUNT(seatbelt_options), s, &culprit)) {
		kg_say(2, "launch: wrong argument '", culprit, "'", NULL);
		refuse(s, KG_FAULT_INTERNAL, EINVAL);
	}
	s->command = argv + options.at;
	s->command_count = argc - options.at;
	if (s->self[0] != '/' || !s->command_count || !s->cwd || !s->exec || s->control.folder < 0 || s->control.fd < 0 ||
		!s->program || !s->profile || !s->end.mark.own || !s->end.mark.other) {
		kg_say(2, "launch: arguments are missing", NULL);
		refuse(s, KG_FAULT_INTERNAL, EINVAL);
	}
}

/* ---- the process ---- */

static void
keep_descriptors(struct seatbelt *s)
{
	int keep[3] = { s->control.folder, s->control.fd }, n = 2;

	if (s->lifeline >= 0)
		keep[n++] = s->lifeline;
	for (int i = 0; i < n; i++)
		if (fcntl(keep[i], F_SETFD, FD_CLOEXEC) < 0)
			refuse_errno(s, KG_FAULT_INTERNAL, "launch: a named descriptor is not open");
	if (!kg_close_others(keep, (size_t)n)) {
		kg_say(2, "launch: a descriptor is named twice, or others cannot be closed", NULL);
		refuse(s, KG_FAULT_INTERNAL, EINVAL);
	}
}

static void
child_changed(int signal)
{
	const int saved = errno;

	(void)signal;
	(void)!write(children_write, "", 1); /* full: somebody is told already */
	errno = saved;
}

/* Close-on-exec, and never blocking for us. */
static bool
make_pipe(int ends[2])
{
	if (pipe(ends) < 0)
		return false;
	for (int i = 0; i < 2; i++)
		if (fcntl(ends[i], F_SETFD, FD_CLOEXEC) < 0)
			return false;
	return true;
}

/* A terminal's own signals reach its foreground group, which is never ours; TTOU would stop us where we change that group. */
static void
take_signals(struct seatbelt *s)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP, SIGTTIN, SIGTTOU };
	struct sigaction ignore = { .sa_handler = SIG_IGN }, told = { .sa_handler = child_changed, .sa_flags = SA_RESTART };
	int ends[2];
	sigset_t none;

	if (!make_pipe(ends) || fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0 || fcntl(ends[1], F_SETFL, O_NONBLOCK) < 0)
		refuse_errno(s, KG_FAULT_INTERNAL, "launch: signals");
	s->children = ends[0];
	children_write = ends[1];
	for (size_t i = 0; i < KG_COUNT(ignored); i++)
		(void)sigaction(ignored[i], &ignore, NULL); /* these can be ignored */
	(void)sigaction(SIGCHLD, &told, NULL);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static void
leave_surroundings(struct seatbelt *s)
{
	static const struct rlimit no_core;

	take_signals(s);
	if (setsid() < 0 && getsid(0) != getpid())
		refuse_errno(s, KG_FAULT_INTERNAL, "launch: cannot lead a session of its own");
	if (chdir("/") < 0 || setrlimit(RLIMIT_CORE, &no_core) < 0)
		refuse_errno(s, KG_FAULT_INTERNAL, "launch: cannot prepare itself");
}

/* ---- what the command gets ---- */

static size_t
kept_variables(const struct seatbelt *s, char *out)
{
	size_t total = 0;

	for (size_t i = 0; i < s->keep_count; i++) {
		const char *text = kg_env_find(s->environment, s->keep[i]);
		size_t n = text ? strlen(text) + 1 : 0;

		if (out && n)
			memcpy(out + total, text, n);
		total += n;
	}
	return total;
}

static void
write_block(struct seatbelt *s)
{
	size_t bytes = kept_variables(s, NULL);
	struct kg_message head = { .type = KG_START, .a = (int32_t)bytes };

	if (bytes > KG_ENV_BYTES) {
		errno = E2BIG;
		refuse_errno(s, KG_FAULT_INTERNAL, "the environment of the command is too large");
	}
	s->block_room = sizeof(head) + bytes;
	s->block = kg_map(s->block_room);
	if (!s->block)
		refuse_errno(s, KG_FAULT_INTERNAL, "launch: start message");
	memcpy(s->block, &head, sizeof(head));
	s->block_bytes = sizeof(head) + kept_variables(s, s->block + sizeof(head));
}

static void
open_terminal(struct seatbelt *s)
{
	int master = kg_terminal_open(&s->terminal);

	if (master < 0) {
		errno = -master;
		refuse_errno(s, KG_FAULT_PTY, "cannot open a pseudo-terminal");
	}
	tell_talk(s, KG_TERMINAL, 0, 0, master);
}

/* ---- the child ---- */

static void
make_words(struct seatbelt *s)
{
	static char block[FD_TEXT], status[FD_TEXT];
	const char *head[] = { s->program, "-f", s->profile, s->self, "start", "--environment", block, "--status", status, "--cwd",
		s->cwd, "--exec", s->exec, "--" };

	block[kg_decimal((uint64_t)s->block_end, block)] = '\0';
	status[kg_decimal((uint64_t)s->status_end, status)] = '\0';
	s->argv = kg_map((KG_COUNT(head) + (size_t)s->command_count + 1) * sizeof(*s->argv));
	if (!s->argv)
		refuse_errno(s, KG_FAULT_INTERNAL, "launch: the command's words");
	memcpy(s->argv, head, sizeof(head));
	memcpy(s->argv + KG_COUNT(head), s->command, (size_t)s->command_count * sizeof(*s->argv));
}

__attribute__((noreturn)) static void
become_sandbox(struct seatbelt *s)
{
	static char *no_environment[1];
	struct kg_message failed = { .type = KG_LAUNCH_FAILED, .a = KG_FAULT_SEATBELT };

	(void)setpgid(0, 0); /* cannot fail: a new process, no leader of a session */
	kg_terminal_give(&s->terminal); /* SIGTTOU is still ignored */
	kg_default_signals();
	if (fcntl(s->block_end, F_SETFD, 0) == 0 && fcntl(s->status_end, F_SETFD, 0) == 0)
		execve(s->program, (char **)s->argv, no_environment);
	failed.b = errno;
	kg_say(2, "cannot run '", s->program, "': ", kg_errno_text(failed.b), NULL);
	(void)!write(s->status_end, &failed, sizeof(failed)); /* else our end tells */
	_exit(KG_EXIT_REFUSED);
}

static void
start(struct seatbelt *s)
{
	int block[2], status[2];

	if (!make_pipe(block) || !make_pipe(status) || fcntl(block[1], F_SETFL, O_NONBLOCK) < 0 ||
		fcntl(status[0], F_SETFL, O_NONBLOCK) < 0)
		refuse_errno(s, KG_FAULT_INTERNAL, "launch: pipes");
	s->block_end = block[0];
	s->block_fd = block[1];
	s->status_fd = status[0];
	s->status_end = status[1];
	make_words(s);
	s->child = fork();
	if (s->child == 0)
		become_sandbox(s);
	if (s->child < 0)
		refuse_errno(s, KG_FAULT_SEATBELT, "cannot start a process for the sandbox");
	(void)setpgid(s->child, s->child); /* whoever is first; a signal of kraft's finds the group */
	s->end.family.command_id = kg_process_id(s->child);
	close(s->block_end);
	close(s->status_end);
	kg_terminal_given(&s->terminal);
	tell(s, KG_CHILD, s->child, 0, -1);
}

/* ---- while it starts ---- */

static void
close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void
send_block(struct seatbelt *s)
{
	ssize_t n = write(s->block_fd, s->block + s->block_sent, s->block_bytes - s->block_sent);

	if (n > 0)
		s->block_sent += (size_t)n;
	if ((n < 0 && (errno == EAGAIN || errno == EINTR)) || (n > 0 && s->block_sent < s->block_bytes))
		return;
	close_one(&s->block_fd); /* all of it, or nobody reads it: the other pipe says why */
	kg_unmap(s->block, s->block_room);
	s->block = NULL;
}

static void
take_word(struct seatbelt *s)
{
	s->word_bytes = 0;
	if (s->word.type == KG_INSIDE && !s->is_inside) {
		s->is_inside = true;
		kg_processes_mark(&s->end.mark, s->child);
		return;
	}
	s->failed = true;
	if (s->word.type == KG_EXEC_FAILED)
		tell_talk(s, KG_EXEC_FAILED, s->word.a, 0, -1);
	else
		tell_talk(s, KG_LAUNCH_FAILED, s->word.a, s->word.b, -1);
}

/* Only kraft's own programs hold that pipe: the command never does. */
static void
hear_start(struct seatbelt *s)
{
	ssize_t n = read(s->status_fd, (char *)&s->word + s->word_bytes, sizeof(s->word) - s->word_bytes);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		s->word_bytes += (size_t)n;
		if (s->word_bytes == sizeof(s->word))
			take_word(s);
		return;
	}
	close_one(&s->status_fd);
	if (!s->is_inside || s->failed || s->killed)
		return;
	kg_control_mark_started(&s->control);
	tell_talk(s, KG_STARTED, 0, 0, -1);
}

/* ---- while it runs ---- */

static void
deliver(struct seatbelt *s, int signal)
{
	unsigned targets = kg_signal_targets(s->child, getpgid(s->child));

	if (signal == SIGCONT && s->stop)
		kg_terminal_foreground(&s->terminal, s->child);
	if (targets & KG_TO_GROUP)
		(void)kill(-s->child, signal); /* no group left: then only the command itself */
	if (targets & KG_TO_COMMAND)
		(void)kill(s->child, signal); /* unreaped, so still the command */
}

static void
pass_signals(struct seatbelt *s)
{
	for (int signal = 1; signal < 64 && s->signals && s->talk.started && !s->has_ended; signal++) {
		const uint64_t bit = 1ull << (signal - 1);

		if (s->signals & bit)
			deliver(s, signal);
		s->signals &= ~bit;
	}
}

static void
hear_kraft(struct seatbelt *s)
{
	struct kg_message order;

	if (!kg_control_hear(&s->control, &order))
		return;
	if (order.type == KG_KILL)
		s->killed = true;
	else
		s->signals |= 1ull << (order.a - 1);
}

/* Takes what is known of the command, and is its only reaper. False: it was no child of ours that changed. */
static bool
reap(void *context)
{
	struct seatbelt *s = context;
	int status;

	while (!s->has_ended && waitpid(s->child, &status, WNOHANG | WUNTRACED | WCONTINUED) == s->child) {
		if (WIFSTOPPED(status)) {
			s->stop = WSTOPSIG(status);
		} else if (WIFCONTINUED(status)) {
			s->stop = 0;
		} else {
			s->has_ended = true;
			s->status = status;
		}
	}
	return s->has_ended;
}

static void
look_at_child(struct seatbelt *s)
{
	char drain[64];

	while (read(s->children, drain, sizeof(drain)) > 0)
		;
	(void)reap(s);
}

/* Stops and continuations faster than anybody reads are told as the last one. */
static void
tell_stop(struct seatbelt *s)
{
	if (s->stop == s->stop_told || !s->talk.started || !kg_control_has_room(&s->control))
		return;
	tell_talk(s, s->stop ? KG_STOPPED : KG_CONTINUED, s->stop, 0, -1);
	s->stop_told = s->stop;
}

enum { AT_CONTROL, AT_LIFELINE, AT_CHILDREN, AT_STATUS, AT_BLOCK, PLACES };

static void
handle(struct seatbelt *s, const struct pollfd at[PLACES])
{
	if (at[AT_CONTROL].revents & POLLOUT)
		kg_control_flush(&s->control);
	if (s->control.fd >= 0 && (at[AT_CONTROL].revents & (POLLIN | POLLHUP | POLLERR)))
		hear_kraft(s);
	if (at[AT_LIFELINE].revents)
		s->killed = true;
	if (at[AT_BLOCK].revents)
		send_block(s);
	if (at[AT_CHILDREN].revents)
		look_at_child(s);
	if (at[AT_STATUS].revents)
		hear_start(s);
}

/* Until the command has ended and has said all, or the session is to be ended. */
static void
serve(struct seatbelt *s)
{
	while (!s->killed && (!s->has_ended || s->status_fd >= 0)) {
		struct pollfd at[PLACES] = {
			[AT_CONTROL] = { .fd = s->control.fd, .events = (short)(s->control.queued ? POLLIN | POLLOUT : POLLIN) },
			[AT_LIFELINE] = { .fd = s->lifeline, .events = POLLIN },
			[AT_CHILDREN] = { .fd = s->children, .events = POLLIN },
			[AT_STATUS] = { .fd = s->status_fd, .events = POLLIN },
			[AT_BLOCK] = { .fd = s->block_fd, .events = POLLOUT },
		};

		if (poll(at, PLACES, -1) > 0)
			handle(s, at);
		pass_signals(s);
		tell_stop(s);
	}
}

/* ---- the end ---- */

/* Nobody waits when nothing is left. */
static void
wait_for_rest(struct seatbelt *s)
{
	const int64_t until = kg_now_ms() + LEFT_WAIT_MS;

	while (kg_end_look(&s->end) > 0 && kg_now_ms() < until) {
		struct pollfd gone[] = { { .fd = s->control.fd, .events = POLLIN }, { .fd = s->lifeline, .events = POLLIN } };

		if (poll(gone, KG_COUNT(gone), LEFT_PAUSE_MS) <= 0)
			continue;
		if (gone[1].revents)
			return;
		if (gone[0].revents)
			hear_kraft(s);
		if (s->killed || s->control.fd < 0)
			return;
	}
}

static void
tell_left(struct seatbelt *s)
{
	const struct kg_process *table = s->end.table[s->end.turn];
	char names[KG_LEFT_BYTES] = { 0 };
	size_t at = 0;
	int32_t count = 0;

	for (size_t i = 0; i < s->end.count; i++) {
		size_t n = strlen(table[i].name) + 1;

		if (!table[i].is_ours || table[i].has_ended || count++ >= KG_LEFT_SHOWN)
			continue;
		memcpy(names + at, table[i].name, n);
		at += n;
	}
	if (!count)
		return;
	tell_last(s, KG_LEFT, count, 0);
	for (size_t i = 0; i < at; i += KG_LEFT_PIECE) {
		int32_t piece[2];

		memcpy(piece, names + i, sizeof(piece));
		tell_last(s, KG_LEFT_NAMES, piece[0], piece[1]);
	}
}

static void
tell_outlived(struct seatbelt *s)
{
	const struct kg_process *table = s->end.table[s->end.turn];
	int told = 0;

	for (size_t i = 0; i < s->end.count && told < KG_OUTLIVED_MAX; i++) {
		if (!table[i].is_ours || table[i].has_ended)
			continue;
		while (!kg_control_has_room(&s->control))
			kg_control_wait(&s->control);
		tell(s, KG_OUTLIVED, table[i].pid, 0, -1);
		told++;
	}
	kg_say(2, "a process of the session does not end", NULL);
}

static void
end_session(struct seatbelt *s)
{
	long left;

	if (s->talk.started && !s->killed) {
		wait_for_rest(s);
		tell_left(s);
	}
	left = kg_end_all(&s->end);
	if (left < 0)
		kg_say(2, "cannot look at the processes of the session: ", kg_errno_text((int)-left), NULL);
	if (left > 0)
		tell_outlived(s);
	(void)reap(s);
}

/* What the command came to, after all that it left is gone. */
static void
tell_end(struct seatbelt *s)
{
	struct kg_message exit;

	if (s->talk.started && s->has_ended && !s->killed) {
		exit = kg_exit_message(s->status);
		if (exit.a == KG_EXIT_NOT_FOUND && !exit.b)
			kg_hint(s->terminal.tty >= 0 ? s->terminal.tty : 2, "", KG_HINT_NOT_FOUND);
		tell_last(s, KG_EXIT, exit.a, exit.b);
	} else if (!s->failed && !s->talk.started && !s->killed) {
		tell_last(s, KG_LAUNCH_FAILED, KG_FAULT_SEATBELT, 0); /* sandbox-exec has said why on stderr */
	}
	while (s->control.queued)
		kg_control_wait(&s->control);
}

int
kg_seatbelt_main(int argc, char **argv, char **environment)
{
	struct seatbelt *s = &only;
	int *const none[] = { &s->control.fd, &s->control.folder, &s->lifeline, &s->block_fd, &s->status_fd, &s->block_end,
		&s->status_end, &s->children, &s->terminal.tty, &s->terminal.command_tty };
	struct kg_result result;

	for (size_t i = 0; i < KG_COUNT(none); i++)
		*none[i] = -1;
	s->environment = environment;
	kg_fill_streams();
	read_arguments(s, argc, argv);
	if (getuid() == 0 || geteuid() == 0) {
		kg_say(2, "the sandbox refuses to run as root; run kraft as an ordinary user", NULL);
		refuse(s, KG_FAULT_INTERNAL, EPERM);
	}
	keep_descriptors(s);
	leave_surroundings(s);
	s->end.reap = reap;
	s->end.context = s;
	if (!kg_end_init(&s->end))
		refuse_errno(s, KG_FAULT_INTERNAL, "launch: room for a table of processes");
	write_block(s);
	if (s->wants_terminal)
		open_terminal(s);
	start(s);
	serve(s);
	end_session(s);
	tell_end(s);
	result = kg_result_of(&s->talk, s->killed);
	kg_control_write_exit(&s->control, &result);
	return result.code;
}
