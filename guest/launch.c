/*
 * The launcher: on the host, parent of what makes the sandbox, one per session. It outlives a kraft that
 * restarts.
 *
 * Order: read the arguments; refuse root; close what was not named; leave everything that ties it to its
 * surroundings (directory, session, keyring, core files); write the start message; start bubblewrap or the
 * container's client; serve; write the exit file. Everything up to that start that fails is said on stderr,
 * on the control socket and in the exit file, and ends with 125.
 *
 * Trusts: its arguments, its descriptors and kraft. Does not trust the init once a command runs inside: its
 * messages are checked one by one, a descriptor is taken once and only before the command started, and what
 * it says never reaches further than this session.
 *
 * does: pass messages on in both directions, remember how it ended. must not: block on a reader, read
 * anything the worker can write.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
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

#include "guest/launch.h"

#ifndef SYS_keyctl
#error "no keyctl number for this architecture: the sandbox cannot have a keyring of its own (OS-LCH-02)"
#endif

enum {
	QUOTA_TRIES = 40,
	QUOTA_WAIT_MS = 25,
};

/* One per process, too large for a stack page: not reached by name, only passed. */
static struct kg_launch only;

/* ---- ends that come before the sandbox ---- */

void
kg_launch_fault(struct kg_launch *launch, enum kg_fault fault, int failed)
{
	struct kg_message message = { .type = KG_LAUNCH_FAILED, .a = (int32_t)fault, .b = failed };

	if (launch->control.fd >= 0)
		(void)kg_send(launch->control.fd, &message, -1, MSG_DONTWAIT); /* stderr and the exit file say it too */
}

void
kg_launch_refuse(struct kg_launch *launch, enum kg_fault fault, int failed)
{
	struct kg_result result = { .code = KG_EXIT_REFUSED };

	kg_launch_fault(launch, fault, failed);
	if (launch->control.folder >= 0)
		kg_control_write_exit(&launch->control, &result);
	_exit(KG_EXIT_REFUSED);
}

void
kg_launch_refuse_errno(struct kg_launch *launch, enum kg_fault fault, const char *what)
{
	int failed = errno;

	kg_say(2, what, ": ", kg_errno_text(failed), NULL);
	kg_launch_refuse(launch, fault, failed);
}

/* ---- the process ---- */

static void
keep_descriptors(struct kg_launch *launch)
{
	const int named[] = { launch->control.folder, launch->control.fd, launch->args, launch->lifeline, launch->verify,
		launch->bwrap.seccomp, launch->container.environment, launch->container.directory,
		launch->container.filter, launch->container.listener };
	static int keep[KG_PASS_MAX + KG_COUNT(named)];
	size_t n;

	memcpy(keep, launch->bwrap.pass, launch->bwrap.pass_count * sizeof(*keep));
	n = launch->bwrap.pass_count;
	for (size_t i = 0; i < KG_COUNT(named); i++)
		if (named[i] >= 0)
			keep[n++] = named[i];
	for (size_t i = 0; i < n; i++)
		if (fcntl(keep[i], F_GETFD) < 0)
			kg_launch_refuse_errno(launch, KG_FAULT_INTERNAL, "launch: a named descriptor is not open");
	if (!kg_close_others(keep, n)) {
		kg_say(2, "launch: a descriptor is named twice, or close_range failed", NULL);
		kg_launch_refuse(launch, KG_FAULT_INTERNAL, EINVAL);
	}
	if (syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		kg_launch_refuse_errno(launch, KG_FAULT_INTERNAL, "launch: close_range");
}

__attribute__((noreturn)) static void
refuse_keyring(struct kg_launch *launch)
{
	if (errno == EDQUOT) {
		kg_say(2, "cannot make a session keyring: your key quota is spent (see /proc/key-users); ",
			"end other sessions or raise kernel.keys.maxkeys", NULL);
		kg_launch_refuse(launch, KG_FAULT_KEYRING, EDQUOT);
	}
	kg_launch_refuse_errno(launch, KG_FAULT_KEYRING, "cannot make a session keyring");
}

/* Everything in the session keyring that we came with would be the worker's (OS-LCH-02). */
static void
join_keyring(struct kg_launch *launch)
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
leave_surroundings(struct kg_launch *launch)
{
	static const struct rlimit no_core;

	ignore_signals();
	if (setsid() < 0 && getsid(0) != getpid())
		kg_launch_refuse_errno(launch, KG_FAULT_INTERNAL, "launch: cannot lead a session of its own");
	if (chdir("/") < 0 || setrlimit(RLIMIT_CORE, &no_core) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0)
		kg_launch_refuse_errno(launch, KG_FAULT_INTERNAL, "launch: cannot prepare itself");
	/* A launcher that is stopped does not see the end of its lifeline; the death of kraft lets it go on. */
	if (launch->lifeline >= 0)
		(void)prctl(PR_SET_PDEATHSIG, SIGCONT);
	join_keyring(launch);
}

/* ---- the start message ---- */

/* Copies the kept variables to out, or with NULL only counts their bytes. */
static size_t
kept_variables(const struct kg_launch *launch, char *out)
{
	size_t total = 0;

	for (size_t i = 0; i < launch->keep_count; i++) {
		const char *text = kg_env_find(launch->environment, launch->keep[i]);
		size_t n = text ? strlen(text) + 1 : 0;

		if (out && n)
			memcpy(out + total, text, n);
		total += n;
	}
	return total;
}

size_t
kg_launch_file_bytes(struct kg_launch *launch, int fd, size_t max, const char *what)
{
	struct stat file;

	if (fstat(fd, &file) < 0)
		kg_launch_refuse_errno(launch, KG_FAULT_INTERNAL, what);
	if (file.st_size < 0 || (size_t)file.st_size > max) {
		errno = E2BIG;
		kg_launch_refuse_errno(launch, KG_FAULT_INTERNAL, what);
	}
	return (size_t)file.st_size;
}

static void
put_message(struct kg_launch *launch, const struct kg_message *message)
{
	memcpy(launch->start + launch->start_bytes, message, sizeof(*message));
	launch->start_bytes += sizeof(*message);
}

static void
put_file(struct kg_launch *launch, int fd, size_t n, const char *what)
{
	if (n && pread(fd, launch->start + launch->start_bytes, n, 0) != (ssize_t)n)
		kg_launch_refuse_errno(launch, KG_FAULT_INTERNAL, what);
	launch->start_bytes += n;
}

static void
write_start(struct kg_launch *launch)
{
	static const char filter_name[] = "launch: seccomp filter", verify_name[] = "launch: list of mounts";
	const int filter_fd = launch->container.filter, verify_fd = launch->verify;
	size_t environment = kept_variables(launch, NULL);
	size_t verify = verify_fd < 0 ? 0 : kg_launch_file_bytes(launch, verify_fd, KG_VERIFY_BYTES, verify_name);
	size_t filter = filter_fd < 0 ? 0 : kg_launch_file_bytes(launch, filter_fd, KG_FILTER_BYTES, filter_name);
	struct kg_message filter_head = { .type = KG_FILTER, .a = (int32_t)filter },
					  start = { .type = KG_START, .a = (int32_t)environment, .b = (int32_t)verify };

	if (environment > KG_ENV_BYTES) {
		errno = E2BIG;
		kg_launch_refuse_errno(launch, KG_FAULT_INTERNAL, "the environment of the command is too large");
	}
	launch->start_room = 2 * sizeof(start) + filter + environment + verify;
	launch->start = kg_map(launch->start_room);
	if (!launch->start)
		kg_launch_refuse_errno(launch, KG_FAULT_INTERNAL, "launch: start message");
	if (filter_fd >= 0)
		put_message(launch, &filter_head);
	put_file(launch, filter_fd, filter, filter_name);
	put_message(launch, &start);
	launch->start_bytes += kept_variables(launch, launch->start + launch->start_bytes);
	put_file(launch, verify_fd, verify, verify_name);
}

/* As much as the pipe takes now. */
void
kg_launch_send_start(struct kg_launch *launch)
{
	ssize_t n = send(launch->pipe, launch->start + launch->start_sent,
		launch->start_bytes - launch->start_sent, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n > 0)
		launch->start_sent += (size_t)n;
	if (launch->start_sent < launch->start_bytes)
		return;
	kg_unmap(launch->start, launch->start_room);
	launch->start = NULL;
}

/* ---- the child ---- */

void
kg_launch_init_words(const struct kg_launch *launch, const char **out)
{
	const char *head[] = { "--cwd", launch->cwd, "--exec", launch->exec };
	size_t n = KG_COUNT(head);

	memcpy(out, head, sizeof(head));
	if (launch->terminal)
		out[n++] = "--terminal";
	if (launch->keep_stderr)
		out[n++] = "--terminal-keep-stderr";
	if (launch->terminal_size) {
		out[n++] = "--terminal-size";
		out[n++] = launch->terminal_size;
	}
	if (launch->channel) {
		out[n++] = "--channel";
		out[n++] = launch->channel;
	}
	out[n++] = "--";
	memcpy(out + n, launch->command, (size_t)launch->command_count * sizeof(*out));
	out[n + (size_t)launch->command_count] = NULL;
}

void
kg_launch_child(struct kg_launch *launch, int (*become)(void *), enum kg_fault fault, const char *what)
{
	static char stack[16384] __attribute__((aligned(16)));

	launch->child = clone(become, stack + sizeof(stack), CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD,
		launch, &launch->child_fd);
	(void)prctl(PR_SET_DUMPABLE, 0); /* cannot fail */
	if (launch->child < 0)
		kg_launch_refuse_errno(launch, fault, what);
}

/* ---- ending it ---- */

static void
end_sandbox(struct kg_launch *launch)
{
	launch->killed = true;
	(void)shutdown(launch->pipe, SHUT_RDWR); /* what was sent before stays readable */
	launch->kind->end(launch);
}

/* ---- from the init ---- */

static bool
is_terminal_master(int fd)
{
	unsigned number;

	return ioctl(fd, TIOCGPTN, &number) == 0;
}

static void
first_word(struct kg_launch *launch, pid_t sender)
{
	struct kg_message child = { .type = KG_CHILD, .a = sender };

	launch->spoke = true;
	launch->kind->spoke(launch);
	kg_control_tell(&launch->control, &child, -1);
}

static void
take_word(struct kg_launch *launch)
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
		kg_control_mark_started(&launch->control);
	kg_control_tell(&launch->control, &launch->word, fd);
}

/* What came beside the bytes: the sender's number on the host, and descriptors, of which one is kept. */
static void
take_control_data(struct kg_launch *launch, struct msghdr *head)
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
hear_init(struct kg_launch *launch)
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
pass_signals(struct kg_launch *launch)
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
hear_kraft(struct kg_launch *launch)
{
	struct kg_message order;

	if (!kg_control_hear(&launch->control, &order))
		return;
	if (order.type == KG_KILL)
		end_sandbox(launch);
	else
		launch->signals |= 1ull << (order.a - 1);
}

/* ---- serving ---- */

enum { AT_CONTROL, AT_INIT, AT_LIFELINE, AT_KIND, PLACES = AT_KIND + KG_KIND_PLACES };

static int
watch(const struct kg_launch *launch, struct pollfd at[PLACES])
{
	bool writes = launch->start || launch->signals;

	at[AT_CONTROL] =
		(struct pollfd){ launch->control.fd, (short)(launch->control.queued ? POLLIN | POLLOUT : POLLIN), 0 };
	/* Not watched at all while kraft does not read: its end would be reported again and again. */
	at[AT_INIT] = (struct pollfd){ kg_control_has_room(&launch->control) && !launch->killed ? launch->pipe : -1,
		(short)(writes ? POLLIN | POLLOUT : POLLIN), 0 };
	at[AT_LIFELINE] = (struct pollfd){ launch->killed ? -1 : launch->lifeline, POLLIN, 0 };
	for (int i = AT_KIND; i < PLACES; i++)
		at[i] = (struct pollfd){ .fd = -1 };
	return launch->kind->watch(launch, at + AT_KIND);
}

static void
handle(struct kg_launch *launch, const struct pollfd at[PLACES])
{
	if (at[AT_CONTROL].revents & POLLOUT)
		kg_control_flush(&launch->control);
	if (launch->control.fd >= 0 && (at[AT_CONTROL].revents & (POLLIN | POLLHUP | POLLERR)))
		hear_kraft(launch);
	if (at[AT_LIFELINE].revents && !launch->killed)
		end_sandbox(launch);
	if (launch->start && (at[AT_INIT].revents & POLLOUT))
		kg_launch_send_start(launch);
	if (launch->signals)
		pass_signals(launch);
	if ((at[AT_INIT].revents & (POLLIN | POLLHUP)) && !launch->deaf && !hear_init(launch) &&
		(at[AT_INIT].revents & POLLHUP))
		launch->deaf = true;
}

/* Until the sandbox is gone. */
static void
serve(struct kg_launch *launch)
{
	for (;;) {
		struct pollfd at[PLACES];
		int patience = watch(launch, at), n;

		if (launch->deaf)
			at[AT_INIT].fd = -1;
		n = poll(at, PLACES, patience);
		if (n > 0)
			handle(launch, at);
		if (n >= 0 && launch->kind->look(launch, at + AT_KIND, n == 0))
			return;
	}
}

/*
 * Reads what the init still said, in the room that kraft leaves. A kraft that does not read at all is given
 * up: how it ended stands in the exit file then, which needs the init's last word.
 */
static void
last_words(struct kg_launch *launch)
{
	for (;;) {
		while (!launch->deaf && kg_control_has_room(&launch->control) && hear_init(launch))
			;
		if (!launch->control.queued)
			return;
		kg_control_wait(&launch->control);
	}
}

int
kg_launch_main(int argc, char **argv, char **environment)
{
	struct kg_launch *launch = &only;
	int *const none[] = { &launch->control.folder, &launch->control.fd, &launch->lifeline, &launch->args,
		&launch->verify, &launch->pipe, &launch->child_fd, &launch->word_fd, &launch->bwrap.seccomp,
		&launch->bwrap.init_end, &launch->container.environment, &launch->container.directory,
		&launch->container.filter, &launch->container.listener, &launch->container.init };
	struct kg_result result;

	for (size_t i = 0; i < KG_COUNT(none); i++)
		*none[i] = -1;
	launch->environment = environment;
	kg_fill_streams();
	kg_launch_options(launch, argc, argv);
	if (getuid() == 0 || geteuid() == 0) {
		kg_say(2, "the sandbox refuses to run as root; run kraft as an ordinary user", NULL);
		kg_launch_refuse(launch, KG_FAULT_INTERNAL, EPERM);
	}
	keep_descriptors(launch);
	leave_surroundings(launch);
	write_start(launch);
	launch->kind->start(launch);
	serve(launch);
	last_words(launch);
	launch->kind->reap(launch);
	if (!launch->spoke && !launch->killed)
		launch->kind->explain(launch);
	result = kg_result_of(&launch->talk, launch->killed);
	kg_control_write_exit(&launch->control, &result);
	return result.code;
}
