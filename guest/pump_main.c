/*
 * `kraft-guest pump`: the parent of the outside end. Starts the container's client and the confined process
 * between the two pipes to it, and connects for that process, which cannot, to the two sockets of its own
 * session: nothing else, whatever it asks for.
 *
 * does: wait. must not: read a byte of what the container says; hold an end of its pipes, whose ends are what
 * ends both.
 *
 * The confined process ends with this one. The client does not: it ends the container when its stdin ends, and
 * itself when the container has. A SIGTERM of the launcher's, which does not wait for that any longer, ends both.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest/pump_outside.h"
#include "guest/sys.h"
#include "guest/terminal.h"

struct parent {
	const char *connect, *channel, *program;
	char **words, **environment;
	struct kg_outside outside;
	int to_client, from_client; /* the client's ends */
	int helper, signals;
	pid_t client, confined; /* 0: ended */
	int code;               /* of the client */
	bool connected;
};

KG_TAKE_PATH(struct parent, connect, connect)
KG_TAKE_TEXT(struct parent, channel, channel)
KG_TAKE_PATH(struct parent, client, program)
KG_TAKE_FLAG(struct parent, terminal, outside.terminal)
KG_TAKE(struct parent, terminal_size, return kg_terminal_parse_size(value, &taken->outside.size);)

static const struct kg_option pump_options[] = {
	{ "--connect", true, take_connect },
	{ "--channel", true, take_channel },
	{ "--client", true, take_client },
	{ "--terminal", false, take_terminal },
	{ "--terminal-size", true, take_terminal_size },
};

__attribute__((noreturn)) static void
refuse(const char *what)
{
	kg_say(2, what, ": ", kg_errno_text(errno), NULL);
	_exit(KG_EXIT_REFUSED);
}

static void
read_arguments(struct parent *p, int argc, char **argv)
{
	struct kg_options options = { argv, argc, 2 };
	const char *culprit;

	if (!kg_options_read(&options, pump_options, KG_COUNT(pump_options), p, &culprit) || options.at == argc ||
		!p->connect || !p->program) {
		kg_say(2, "pump: wrong arguments", NULL);
		_exit(KG_EXIT_REFUSED);
	}
	p->words = argv + options.at;
}

static void
make_pipes(struct parent *p)
{
	int in[2], out[2], pair[2];

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0 ||
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		refuse("cannot make pipes to the container's client");
	p->to_client = in[0];
	p->outside.out = in[1];
	p->outside.in = out[0];
	p->from_client = out[1];
	p->helper = pair[0];
	p->outside.helper = pair[1];
	/* Ours alone: whether it blocks is nobody else's matter. */
	p->outside.errors = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static void
watch_signals(struct parent *p)
{
	sigset_t watched;

	sigemptyset(&watched);
	sigaddset(&watched, SIGCHLD);
	sigaddset(&watched, SIGTERM);
	(void)sigprocmask(SIG_BLOCK, &watched, NULL); /* cannot fail with these arguments */
	p->signals = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
	if (p->signals < 0)
		refuse("cannot watch signals");
}

static void
start_client(struct parent *p)
{
	p->client = fork();
	if (p->client < 0)
		refuse("cannot start a process for the container's client");
	if (p->client)
		return;
	kg_default_signals();
	if (dup2(p->to_client, 0) == 0 && dup2(p->from_client, 1) == 1)
		execve(p->program, p->words, p->environment);
	refuse(p->program);
}

static void
start_confined(struct parent *p)
{
	const pid_t parent = getpid();
	int keep[] = { p->outside.in, p->outside.out, p->outside.helper, p->outside.errors };

	p->confined = fork();
	if (p->confined < 0)
		refuse("cannot start a process between the container and the session");
	if (p->confined)
		return;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent || chdir("/") < 0 ||
		!kg_close_others(keep, KG_COUNT(keep) - (p->outside.errors < 0)))
		refuse("cannot prepare to be confined");
	kg_outside_serve(&p->outside);
}

/* ---- serving ---- */

static void
answer_wish(struct parent *p)
{
	struct kg_message answer = { 0 };
	char wish;
	int fd = -EINVAL;

	if (read(p->helper, &wish, 1) != 1) {
		close(p->helper);
		p->helper = -1;
		return;
	}
	if (wish == KG_WISH_LAUNCHER && !p->connected)
		fd = kg_connect_unix(p->connect, 0);
	else if (wish == KG_WISH_CHANNEL && p->channel)
		fd = kg_connect_unix(p->channel, SOCK_NONBLOCK);
	p->connected = p->connected || (wish == KG_WISH_LAUNCHER && fd >= 0);
	answer.type = (uint32_t)wish;
	answer.a = fd < 0 ? -fd : 0;
	(void)kg_send(p->helper, &answer, fd < 0 ? -1 : fd, MSG_DONTWAIT); /* it is gone, then */
	if (fd >= 0)
		close(fd);
}

static void
reap(struct parent *p)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == p->client) {
			p->client = 0;
			p->code = kg_exit_message(status).a;
		} else if (pid == p->confined) {
			p->confined = 0;
		}
	}
}

static void
take_signals(struct parent *p)
{
	struct signalfd_siginfo info;

	while (read(p->signals, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo != SIGTERM)
			continue;
		if (p->client)
			(void)kill(p->client, SIGTERM); /* unreaped, so still it */
		if (p->confined)
			(void)kill(p->confined, SIGKILL);
	}
	reap(p);
}

int
kg_pump_main(int argc, char **argv, char **environment)
{
	struct parent p = { .environment = environment };

	kg_fill_streams();
	read_arguments(&p, argc, argv);
	watch_signals(&p);
	make_pipes(&p);
	(void)signal(SIGPIPE, SIG_IGN); /* sends tell the same */
	start_client(&p);
	start_confined(&p);
	close(p.to_client);
	close(p.from_client);
	close(p.outside.in);
	close(p.outside.out);
	close(p.outside.helper);
	while (p.client || p.confined) {
		struct pollfd at[] = { { .fd = p.helper, .events = POLLIN }, { .fd = p.signals, .events = POLLIN } };

		if (poll(at, KG_COUNT(at), -1) < 0)
			continue;
		if (at[0].revents)
			answer_wish(&p);
		if (at[1].revents)
			take_signals(&p);
	}
	return p.code || p.connected ? p.code : KG_EXIT_REFUSED;
}
