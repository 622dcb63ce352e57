/*
 * The launcher's part of a container: the runtime's CLI is its child, and nothing else. The container is made
 * by a service or by helpers of the CLI, wherever they are, and belongs to the launcher by one thing: the
 * connection of its process 1.
 *
 * States: client runs -> connected -> over, or client runs -> given up. Until the connection comes the socket
 * is listened on; afterwards there is none, its file is gone, and the process that connected is watched
 * through a pidfd. It is process 1 of a pid namespace, so when the pidfd says that it is gone, nothing of the
 * container is left.
 *
 * The client gets the variables that kraft names, no signal ignored, and nobody's stdin: all of the session
 * goes over the connection. It is waited for also when the container is over, since it may still be about to
 * write where kraft looks (its directory), but not for long. It is no sandbox, and killing it ends none: a
 * runtime that made a container and is killed leaves it made. Then the init finds no socket and ends, and
 * what never started kraft removes by its name.
 *
 * Where the container lives in a virtual machine (--machine), the child is this program's pump with the client
 * below it, and what connects is the pump. Its end is the client's end, which is the container's; so nothing is
 * killed to end the container, but the connection is shut, and only what does not follow in time is.
 *
 * Unlike bubblewrap's launcher this is no subreaper: what the client leaves (podman's monitor, which removes
 * the container when it has ended) has its own work to do, and is not the launcher's.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest/launch.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* since Linux 6.5 */
#endif

enum {
	CLIENT_REST_MS =
		1500, /* for a client whose container is over; with the next one below what kraft waits for us */
	CLIENT_TERM_MS = 1000, /* from SIGTERM to SIGKILL */
	PUMP_WORDS = 12,
};

/* ---- the client ---- */

/* The NUL-terminated words of a file as a vector, NULL behind them, with room before and behind; refuses what is none. */
static const char **
read_words(struct kg_launch *launch, int fd, size_t before, size_t behind, size_t *count, const char *what)
{
	size_t bytes = kg_launch_file_bytes(launch, fd, KG_CLIENT_BYTES, what), n = 0;
	char *text = kg_map(bytes + 1);
	const char **words;

	if (!text)
		kg_launch_refuse_errno(launch, KG_FAULT_INTERNAL, what);
	errno = EINVAL;
	if (pread(fd, text, bytes, 0) != (ssize_t)bytes || (bytes && text[bytes - 1] != '\0'))
		kg_launch_refuse_errno(launch, KG_FAULT_INTERNAL, what);
	for (size_t i = 0; i < bytes; i++)
		n += text[i] == '\0';
	words = kg_map((before + n + behind + 1) * sizeof(*words));
	if (!words)
		kg_launch_refuse_errno(launch, KG_FAULT_INTERNAL, what);
	words += before;
	for (size_t i = 0; i < n; i++) {
		words[i] = text;
		text += strlen(text) + 1;
	}
	*count = n;
	return words;
}

/* The pump's own words, before those of the client; returns where they begin. */
static const char **
pump_words(const struct kg_launch *launch, const char **client)
{
	const char *own[PUMP_WORDS] = { "kraft-guest", "pump", "--connect", launch->container.connect, "--client",
		launch->container.program };
	size_t n = 6;

	if (launch->channel) {
		own[n++] = "--channel";
		own[n++] = launch->channel;
	}
	if (launch->terminal)
		own[n++] = "--terminal";
	if (launch->terminal && launch->terminal_size) {
		own[n++] = "--terminal-size";
		own[n++] = launch->terminal_size;
	}
	own[n++] = "--";
	memcpy(client - n, own, n * sizeof(*own));
	return client - n;
}

static void
write_arguments(struct kg_launch *launch)
{
	const char *connect[] = { "init", "--connect", launch->container.connect, "--image-env" };
	const char *stdio[] = { "init", "--stdio", "--image-env" };
	const bool is_machine = launch->container.is_machine;
	const char *const *init = is_machine ? stdio : connect;
	const size_t init_count = is_machine ? KG_COUNT(stdio) : KG_COUNT(connect);
	const size_t behind = init_count + KG_INIT_WORDS + (size_t)launch->command_count;
	const char **words;
	size_t n;

	words = read_words(launch, launch->args, PUMP_WORDS, behind, &n, "launch: words of the container's client");
	if (n == 0) {
		errno = EINVAL;
		kg_launch_refuse_errno(launch, KG_FAULT_INTERNAL, "launch: words of the container's client");
	}
	memcpy(words + n, init, init_count * sizeof(*init));
	kg_launch_init_words(launch, words + n + init_count);
	launch->container.argv = is_machine ? pump_words(launch, words) : words;
	launch->container.variables = read_words(
		launch, launch->container.environment, 0, 0, &n, "launch: variables of the container's client");
}

/* In the new process, on our memory: it writes to nothing but the stage, and ends in exec or _exit. */
static int
become_client(void *context)
{
	struct kg_launch *launch = context;
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	launch->stage = KG_STAGE_EXEC;
	kg_default_signals();
	/* A group of its own: some clients have a second process, which is killed with them. */
	if (nothing >= 0 && dup2(nothing, 0) == 0 && dup2(nothing, 1) == 1 && setpgid(0, 0) == 0 &&
		fchdir(launch->container.directory) == 0) {
		launch->stage = KG_STAGE_DONE; /* the word of a process that cannot speak any more once it is true */
		execve(launch->container.is_machine ? "/proc/self/exe" : launch->container.program,
			(char **)launch->container.argv, (char **)launch->container.variables);
		launch->stage = KG_STAGE_EXEC;
	}
	launch->stage_errno = errno;
	_exit(KG_EXIT_REFUSED);
}

static void
start(struct kg_launch *launch)
{
	write_arguments(launch);
	if (fcntl(launch->container.listener, F_SETFL, O_NONBLOCK) < 0)
		kg_launch_refuse_errno(launch, KG_FAULT_INTERNAL, "launch: socket for the init");
	launch->container.client.started_at = kg_now_ms();
	kg_launch_child(
		launch, become_client, KG_FAULT_CLIENT, "cannot start a process for the container's client");
}

/* In some time, if it does not end by itself before. */
static void
stop_client(struct kg_launch *launch, int in_ms)
{
	if (!launch->container.client.ended && !launch->container.stop_at)
		launch->container.stop_at = kg_now_ms() + in_ms;
}

/* Ours and unreaped, so the group's number is the client's. */
static void
go_on_stopping(struct kg_launch *launch)
{
	const int64_t now = kg_now_ms();

	if (launch->container.client.ended || !launch->container.stop_at || now < launch->container.stop_at)
		return;
	if (launch->container.stopping)
		(void)kill(-launch->child, SIGKILL);
	else
		(void)kill(launch->child, SIGTERM);
	launch->container.stopping = true;
	launch->container.stop_at = now + CLIENT_TERM_MS;
}

static void
reap_client(struct kg_launch *launch)
{
	struct kg_client *client = &launch->container.client;
	int status;

	if (waitpid(launch->child, &status, WNOHANG) != launch->child)
		return;
	client->ended = true;
	client->ended_at = kg_now_ms();
	client->code = kg_exit_message(status).a;
}

/* ---- the connection ---- */

static void
close_listener(struct kg_launch *launch)
{
	if (launch->container.listener < 0)
		return;
	close(launch->container.listener); /* who waits in it sees its connection end */
	launch->container.listener = -1;
	(void)unlink(launch->container.connect); /* kraft's folder goes with the session anyway */
}

/*
 * A pidfd of the connection's process, or -1. By its number only on a kernel that has no better: it could be
 * another process by now, but then the first one has ended and its connection with it.
 */
static int
open_peer(int connection, pid_t pid)
{
	struct pollfd ended = { .fd = connection, .events = POLLRDHUP };
	socklen_t n = sizeof(int);
	int fd = -1;

	if (getsockopt(connection, SOL_SOCKET, SO_PEERPIDFD, &fd, &n) == 0)
		return fd;
	if (errno != ENOPROTOOPT)
		return -1;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd >= 0 && poll(&ended, 1, 0) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* The streams go first, in an empty socket; from then on they are the command's alone. stderr stays ours too.
 */
static void
hand_streams_over(struct kg_launch *launch)
{
	const struct kg_message streams = { .type = KG_STREAMS };
	const int ours[] = { 0, 1, 2 };
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)kg_send_bytes(launch->pipe, &streams, sizeof(streams), ours, KG_COUNT(ours), MSG_DONTWAIT);
	for (int fd = 0; fd < 2 && nothing >= 0; fd++)
		(void)dup2(nothing, fd); /* small numbers that exist */
	if (nothing >= 0)
		close(nothing);
}

/* False: it is not the init's. */
static bool
take_connection(struct kg_launch *launch, int connection)
{
	struct ucred peer;
	socklen_t n = sizeof(peer);
	int on = 1;

	if (getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &n) < 0 || peer.uid != geteuid())
		return false;
	launch->container.init = open_peer(connection, peer.pid);
	if (launch->container.init < 0)
		return false;
	launch->container.connected = true;
	launch->pipe = connection;
	(void)setsockopt(connection, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)); /* cannot fail on a unix socket */
	close_listener(launch);
	return true;
}

static void
accept_init(struct kg_launch *launch)
{
	while (launch->container.listener >= 0) {
		int connection = accept4(launch->container.listener, NULL, NULL, SOCK_CLOEXEC);

		if (connection < 0)
			return;
		if (!take_connection(launch, connection))
			close(connection);
		else
			hand_streams_over(launch);
	}
}

/* ---- the kind ---- */

static int
watch(const struct kg_launch *launch, struct pollfd at[KG_KIND_PLACES])
{
	const int64_t now = kg_now_ms();
	int patience = -1;

	if (!launch->container.client.ended)
		at[0] = (struct pollfd){ launch->child_fd, POLLIN, 0 };
	at[1] =
		(struct pollfd){ launch->container.connected ? launch->container.init : launch->container.listener,
			POLLIN, 0 };
	if (launch->container.listener >= 0)
		patience = kg_client_patience(&launch->container.client, now);
	if (launch->container.stop_at && !launch->container.client.ended) {
		int64_t left = launch->container.stop_at - now;

		if (patience < 0 || left < patience)
			patience = left > 0 ? (int)left : 0;
	}
	return patience;
}

/* Whatever woke us: the client may end between the connection and our look, so the connection is looked for
 * first. */
static bool
look(struct kg_launch *launch, const struct pollfd at[KG_KIND_PLACES], bool is_late)
{
	(void)is_late; /* by the clock */
	if (launch->container.connected && at[1].revents) {
		close(launch->container.init);
		launch->container.init = -1;
		stop_client(launch, CLIENT_REST_MS);
	}
	if (at[0].revents)
		reap_client(launch);
	accept_init(launch);
	if (launch->container.listener >= 0 && !kg_client_patience(&launch->container.client, kg_now_ms())) {
		close_listener(launch);
		stop_client(launch, 0);
	}
	go_on_stopping(launch);
	return launch->container.client.ended && launch->container.listener < 0 && launch->container.init < 0;
}

static void
spoke(struct kg_launch *launch)
{
	(void)launch; /* nothing of ours was for the time before */
}

/* An init that comes later finds no socket, and ends by itself. */
static void
end(struct kg_launch *launch)
{
	accept_init(launch);
	close_listener(launch);
	if (launch->container.init >= 0 && !launch->container.is_machine)
		(void)syscall(
			SYS_pidfd_send_signal, launch->container.init, SIGKILL, NULL, 0); /* it may have ended: fine */
	else if (launch->container.init >= 0)
		(void)shutdown(launch->pipe, SHUT_RDWR); /* it may have come just now */
	stop_client(launch, launch->container.connected ? CLIENT_REST_MS : 0);
}

static void
reap(struct kg_launch *launch)
{
	(void)launch; /* the client was waited for, and there is no other child */
}

/* The client has said why on stderr; or it was never executed, or there is nothing that anybody said. */
static void
explain(struct kg_launch *launch)
{
	if (launch->stage == KG_STAGE_EXEC) {
		kg_say(2, "cannot run '", launch->container.program, "': ", kg_errno_text(launch->stage_errno), NULL);
		kg_launch_fault(launch, KG_FAULT_CLIENT, launch->stage_errno);
		return;
	}
	/* One that we ended ourselves has no code to tell. */
	kg_launch_fault(launch, KG_FAULT_RUNTIME, launch->container.stopping ? 0 : launch->container.client.code);
}

const struct kg_kind kg_kind_container = {
	.start = start,
	.watch = watch,
	.look = look,
	.spoke = spoke,
	.end = end,
	.reap = reap,
	.explain = explain,
};
