#include "session/terminal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "os/timer.h"

enum { DRAIN_SILENCE_MS = 30, DRAIN_MS = 200 };

static const int crash_signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };

/* For the crash handler alone, which gets no context: the one terminal that is raw now, and who else wants to
 * know. */
static struct kr_terminal *volatile raw_now;
static struct sigaction handled_before[KR_COUNT(crash_signals)];

/* Returning repeats what crashed, now with the handler that was there before; what was only sent is sent
 * again. */
static void
crashed(int signal, siginfo_t *info, void *context)
{
	struct kr_terminal *terminal = raw_now;

	if (terminal)
		(void)tcsetattr(terminal->fd, TCSANOW, &terminal->saved); /* async-signal-safe */
	for (size_t i = 0; i < KR_COUNT(crash_signals); i++)
		if (crash_signals[i] == signal)
			(void)sigaction(signal, &handled_before[i], NULL);
	(void)context;
	if (info->si_code <= 0)
		(void)raise(signal);
}

static void
watch_crashes(void)
{
	static bool watching;
	struct sigaction action = { .sa_sigaction = crashed, .sa_flags = SA_SIGINFO };

	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < KR_COUNT(crash_signals) && !watching; i++)
		(void)sigaction(crash_signals[i], &action, &handled_before[i]);
	watching = true;
}

int
kr_terminal_init(struct kr_terminal *terminal, int fd, struct kr_error *err)
{
	struct kr_terminal t = { .fd = fd };

	if (tcgetattr(fd, &t.saved) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot read the modes of the terminal");
	watch_crashes();
	*terminal = t;
	return 0;
}

bool
kr_terminal_is_ours(const struct kr_terminal *terminal)
{
	pid_t front = tcgetpgrp(terminal->fd);

	/* Not our controlling terminal (ENOTTY): no job control, so nothing forbids reading it. */
	return front < 0 ? errno == ENOTTY : front == getpgrp();
}

/* A change from the background would stop us; in the race with a shell it may as well happen. */
static void
set_modes(int fd, int when, const struct termios *modes)
{
	sigset_t ttou, old;

	sigemptyset(&ttou);
	sigaddset(&ttou, SIGTTOU);
	(void)sigprocmask(SIG_BLOCK, &ttou, &old);
	while (tcsetattr(fd, when, modes) < 0 && errno == EINTR)
		;
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
}

void
kr_terminal_enter(struct kr_terminal *terminal)
{
	if (terminal->raw || !kr_terminal_is_ours(terminal) || tcgetattr(terminal->fd, &terminal->saved) < 0)
		return;
	terminal->modes = terminal->saved;
	cfmakeraw(&terminal->modes);
	terminal->modes.c_cc[VMIN] = 1;
	terminal->modes.c_cc[VTIME] = 0;
	raw_now = terminal;
	terminal->raw = true;
	set_modes(terminal->fd, TCSADRAIN, &terminal->modes);
}

void
kr_terminal_again(struct kr_terminal *terminal)
{
	if (terminal->raw && kr_terminal_is_ours(terminal))
		set_modes(terminal->fd, TCSADRAIN, &terminal->modes);
}

void
kr_terminal_leave(struct kr_terminal *terminal, bool flush)
{
	if (!terminal->raw)
		return;
	set_modes(terminal->fd, flush ? TCSAFLUSH : TCSADRAIN, &terminal->saved);
	terminal->raw = false;
	raw_now = NULL;
}

void
kr_terminal_drain(const struct kr_terminal *terminal)
{
	int64_t end = kr_clock_ms() + DRAIN_MS;
	struct pollfd poller = { .fd = terminal->fd, .events = POLLIN };
	char thrown[256];

	while (terminal->raw && kr_clock_ms() < end && poll(&poller, 1, DRAIN_SILENCE_MS) > 0)
		if (read(terminal->fd, thrown, sizeof(thrown)) <= 0)
			return;
}

void
kr_terminal_size(const struct kr_terminal *terminal, struct winsize *out)
{
	struct winsize size = { 0 };

	if (ioctl(terminal->fd, TIOCGWINSZ, &size) < 0 || !size.ws_row || !size.ws_col)
		size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	*out = size;
}
