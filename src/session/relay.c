#include "session/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fd.h"
#include "base/portable.h"
#include "base/text.h"
#include "os/sys.h"
#include "os/timer.h"
#include "session/facts.h"
#include "session/modes.h"
#include "session/terminal.h"

enum {
	CHANNEL_BYTES = 32 << 10,
	AGAIN_MS = 2000,      /* a second interrupt within it ends the sandbox */
	GRACE_MS = 10000,     /* after TERM */
	FLUSH_MS = 2000,      /* between an agent's INT and TERM */
	HANG_UP_MS = 5000,    /* after our terminal is gone: nobody sees what it does with more */
	EXIT_MS = 5000,       /* from the exit message to the end of the launcher */
	HARD_MS = 3000,       /* from KG_KILL to SIGKILL of the launcher */
	BACKGROUND_MS = 200,  /* how often a background job looks whether it came to the front */
	QUIET_MS = 100,       /* how long a pseudo-terminal that nobody inside holds is left alone */
	QUERY_MS = 1000,      /* a question asked to the terminal this long ago may still be answered */
	REST_BYTES = 1 << 20, /* read of a stream after the launcher's end: more than any pipe holds */
	PIPE_SAFE = 4096,     /* POLLOUT on a pipe promises room for PIPE_BUF bytes */
	TTY_SAFE = 256,       /* on a terminal for less */
};

/* One direction of one stream, with at most one buffer in between: it reads only when the buffer is empty. */
struct channel {
	int from, to;
	bool own_to; /* `to` is our own open file description */
	bool to_is_socket;
	size_t to_safe; /* 0: writing never blocks; else bytes that POLLOUT promises */
	bool logged;
	enum kr_log_stream stream;
	int64_t quiet_until; /* monotonic ms; 0: reads */
	size_t start, len;
	char bytes[CHANNEL_BYTES];
};

enum { INPUT, OUTPUT, ERRORS, CHANNELS };

struct kr_relay {
	struct kr_relay_want want;
	struct channel channel[CHANNELS];
	int worker[CHANNELS]; /* the worker's ends, until it is followed */
	int control, lifeline, signals, watch;
	pid_t launcher;
	struct kr_terminal terminal;
	bool input_is_tty;
	int input_rest; /* the worker's end of its stdin when ours is a file; see give_back_input */
	struct kr_modes modes;
	int64_t query_at; /* monotonic ms of the last question; 0: none */
	char message[sizeof(struct kg_message)];
	size_t message_len;
	sigset_t mask_before;
	struct sigaction pipe_before, ttin_before;
	bool signals_taken;
	bool got_exit, launcher_gone, command_stopped, stop_asked, abandon;
	size_t rest; /* read since the launcher's end, at most */
	uint64_t answered; /* bytes on stdout */
	size_t left_bytes; /* of end.left_names */
	int64_t interrupted_at, term_at, kill_at, hard_at, limit_at;
	struct kr_session_end end;
};

/* ---- making and ending ---- */

static bool
same_file(int a, int b)
{
	struct stat x, y;

	return a >= 0 && b >= 0 && fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_dev == y.st_dev &&
		   x.st_ino == y.st_ino;
}

/*
 * How to write to a descriptor of ours without ever blocking on it: through an open file description that is
 * only ours (O_NONBLOCK on a shared one would change the shell's), else in pieces that POLLOUT promises room
 * for.
 */
static void
set_target(struct channel *c, int fd)
{
	struct stat st;

	c->to = fd;
	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	c->to_is_socket = S_ISSOCK(st.st_mode);
	if (S_ISFIFO(st.st_mode) || (S_ISCHR(st.st_mode) && isatty(fd))) {
		int own = kr_reopen(fd, O_WRONLY | O_NONBLOCK);

		if (own >= 0) {
			c->to = own;
			c->own_to = true;
		} else {
			c->to_safe = S_ISFIFO(st.st_mode) ? PIPE_SAFE : TTY_SAFE;
		}
	}
}

static int
make_pipe(int *ours, int *workers, bool we_write, struct kr_error *err)
{
	int ends[2];

	if (kr_pipe_pair(ends, false) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a pipe");
	*ours = ends[we_write];
	*workers = ends[!we_write];
	(void)fcntl(*ours, F_SETFL, O_NONBLOCK); /* cannot fail on a pipe of ours */
	return 0;
}

static int
make_streams(struct kr_relay *r, struct kr_error *err)
{
	struct channel *in = &r->channel[INPUT], *out = &r->channel[OUTPUT], *errors = &r->channel[ERRORS];
	bool joined = !r->want.terminal && same_file(r->want.out, r->want.err);
	struct stat st;

	in->from = r->want.in;
	set_target(out, r->want.out);
	out->stream = joined || r->want.terminal ? KR_LOG_OUTPUT : KR_LOG_STDOUT;
	out->logged = errors->logged = true;
	errors->stream = KR_LOG_STDERR;
	if (!joined)
		set_target(errors, r->want.err);
	/* Under a terminal the worker's streams come from the init; what launcher and bubblewrap say takes this
	 * pipe. */
	if (!joined && make_pipe(&errors->from, &r->worker[ERRORS], false, err) < 0)
		return -1;
	if (r->want.terminal)
		return kr_terminal_init(&r->terminal, r->want.in, err);
	if (make_pipe(&in->to, &r->worker[INPUT], true, err) < 0 ||
		make_pipe(&out->from, &r->worker[OUTPUT], false, err) < 0)
		return -1;
	if (in->from < 0)
		kr_close_p(&in->to);
	else if (fstat(in->from, &st) == 0 && S_ISREG(st.st_mode))
		r->input_rest = fcntl(r->worker[INPUT], F_DUPFD_CLOEXEC, 0);
	return 0;
}

/* A signal that was ignored when we started stays ignored, for the command too: nohup, background jobs of old
 * shells. */
static int
take_signals(struct kr_relay *r, struct kr_error *err)
{
	static const int wanted[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT, SIGWINCH };
	struct sigaction ignore = { .sa_handler = SIG_IGN }, present;
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < KR_COUNT(wanted); i++)
		if (sigaction(wanted[i], NULL, &present) == 0 && present.sa_handler != SIG_IGN)
			sigaddset(&set, wanted[i]);
	r->signals = kr_signals_open(&set, err);
	if (r->signals < 0)
		return -1;
	(void)sigprocmask(SIG_BLOCK, &set, &r->mask_before);
	sigemptyset(&ignore.sa_mask);
	(void)sigaction(SIGPIPE, &ignore, &r->pipe_before); /* EPIPE tells the same */
	(void)sigaction(SIGTTIN, &ignore, &r->ttin_before); /* EIO tells the same */
	r->signals_taken = true;
	return 0;
}

struct kr_relay *
kr_relay_new(const struct kr_relay_want *want, struct kr_error *err)
{
	struct kr_relay *r = kr_xcalloc(1, sizeof(*r));

	r->want = *want;
	r->control = r->lifeline = r->signals = r->watch = r->terminal.fd = r->input_rest = -1;
	for (int i = 0; i < CHANNELS; i++)
		r->channel[i].from = r->channel[i].to = r->worker[i] = -1;
	r->end.wall = -1;
	r->input_is_tty = want->in >= 0 && isatty(want->in);
	if (make_streams(r, err) < 0 || take_signals(r, err) < 0) {
		kr_relay_free(r);
		return NULL;
	}
	return r;
}

static void
close_channel(struct kr_relay *r, int which)
{
	struct channel *c = &r->channel[which];

	/* Our own streams are borrowed; the master is both INPUT's and OUTPUT's, and is closed as OUTPUT's. */
	if (which == INPUT) {
		if (!r->want.terminal)
			kr_close_p(&c->to);
		c->from = c->to = -1;
		return;
	}
	kr_close_p(&c->from);
	if (c->own_to)
		kr_close_p(&c->to);
	c->to = -1;
}

void
kr_relay_free(struct kr_relay *r)
{
	if (!r)
		return;
	kr_terminal_leave(&r->terminal, false);
	for (int i = 0; i < CHANNELS; i++) {
		close_channel(r, i);
		kr_close_p(&r->worker[i]);
	}
	kr_close_p(&r->input_rest);
	kr_close_p(&r->control);
	kr_close_p(&r->lifeline);
	kr_close_p(&r->signals);
	kr_close_p(&r->watch);
	if (r->signals_taken) {
		(void)sigaction(SIGPIPE, &r->pipe_before, NULL);
		(void)sigaction(SIGTTIN, &r->ttin_before, NULL);
		(void)sigprocmask(SIG_SETMASK, &r->mask_before, NULL);
	}
	free(r);
}

void
kr_relay_worker_ends(const struct kr_relay *r, int *in, int *out, int *err)
{
	*in = r->worker[INPUT];
	*out = r->worker[OUTPUT];
	*err = r->worker[ERRORS] >= 0 ? r->worker[ERRORS] : r->worker[OUTPUT];
}

/* ---- to the launcher ---- */

static bool
tell(struct kr_relay *r, enum kg_type type, int a)
{
	struct kg_message message = { .type = (uint32_t)type, .a = a };

	/* Sixteen bytes fit a socket or do not; a full one means that nobody in there listens. */
	return r->control >= 0 &&
		   send(r->control, &message, sizeof(message), MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(message);
}

static void
kill_sandbox(struct kr_relay *r)
{
	if (r->launcher_gone)
		return;
	r->end.killed_by_us = true;
	r->kill_at = 0;
	if (!tell(r, KG_KILL, 0))
		kr_close_p(&r->lifeline);
	if (!r->hard_at)
		r->hard_at = kr_clock_ms() + HARD_MS;
}

/* The launcher does not answer: its death takes the sandbox down (OS-LCH-04). It is not reaped, so its pid is
 * its. */
static void
kill_launcher(struct kr_relay *r)
{
	r->hard_at = 0;
	kr_close_p(&r->lifeline);
	(void)kill(r->launcher, SIGKILL);
}

/* Nobody is left to talk to: what a shell does when its terminal goes, with an end to the patience. */
static void
hang_up(struct kr_relay *r)
{
	if (r->kill_at)
		return;
	(void)tell(r, KG_SIGNAL, SIGHUP);
	r->kill_at = kr_clock_ms() + HANG_UP_MS;
}

/* ---- streams ---- */

static void
note_output(struct kr_relay *r, struct channel *c, const char *bytes, size_t n)
{
	uint64_t asked = r->modes.queries;

	bool is_data = r->want.out_is_data && r->want.out >= 0 && c->stream == KR_LOG_STDOUT;

	r->end.out_bytes += n;
	if (c == &r->channel[OUTPUT])
		r->answered += n;
	if (r->want.limit_bytes && r->answered > r->want.limit_bytes && !r->end.killed_by_us)
		kill_sandbox(r);
	if (r->want.log && !is_data)
		kr_log_add(r->want.log, c->stream, bytes, n, kr_now_ms());
	if (!r->want.terminal)
		return;
	kr_modes_feed(&r->modes, bytes, n);
	if (r->modes.queries != asked)
		r->query_at = kr_clock_ms();
}

/* Our side of an output takes no more. */
static void
target_failed(struct kr_relay *r, int which, int failed)
{
	struct channel *c = &r->channel[which];

	c->len = 0;
	if (which == INPUT) {
		close_channel(r, INPUT); /* the worker closed its stdin; what was left for it is nobody's */
		return;
	}
	if (c->own_to)
		kr_close_p(&c->to);
	c->to = -1;
	if (r->want.terminal && which == OUTPUT) {
		hang_up(r);
		return;
	}
	if (failed != EPIPE)
		r->end.write_errno = failed;
	kr_close_p(&c->from); /* now the worker's next write meets a closed pipe, as it would without us */
}

static void
flush(struct kr_relay *r, int which)
{
	struct channel *c = &r->channel[which];

	while (c->len && c->to >= 0) {
		size_t want = c->to_safe && c->to_safe < c->len ? c->to_safe : c->len;
		ssize_t done = c->to_is_socket ? send(c->to, c->bytes + c->start, want, MSG_DONTWAIT | MSG_NOSIGNAL)
									   : write(c->to, c->bytes + c->start, want);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0 && errno == EAGAIN)
			return;
		if (done < 0) {
			target_failed(r, which, errno);
			return;
		}
		c->start += (size_t)done;
		c->len -= (size_t)done;
		if (c->to_safe)
			return; /* only POLLOUT knows whether the next piece fits */
	}
	if (c->to < 0)
		c->len = 0;
	if (!c->len)
		c->start = 0;
}

static void
source_ended(struct kr_relay *r, int which, int failed)
{
	struct channel *c = &r->channel[which];

	if (which == INPUT && failed == EIO && r->input_is_tty &&
		!kr_terminal_is_ours(&(struct kr_terminal){ .fd = c->from }))
		return; /* went to the background in this moment */
	if (which == INPUT) {
		if (r->want.terminal) {
			c->from = -1;
			hang_up(r);
		} else if (!c->len) {
			close_channel(r, INPUT);
		}
		return;
	}
	if (r->want.terminal && which == OUTPUT && failed == EIO && !r->launcher_gone) {
		c->quiet_until = kr_clock_ms() + QUIET_MS; /* nobody inside holds it now; somebody may open it again */
		return;
	}
	kr_close_p(&c->from);
}

/* Reads once and passes on what can be. Returns false when there was nothing to read. */
static bool
pump(struct kr_relay *r, int which)
{
	struct channel *c = &r->channel[which];
	ssize_t got;

	if (c->from < 0 || c->len)
		return false;
	got = read(c->from, c->bytes, sizeof(c->bytes));
	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return false;
	if (got <= 0) {
		source_ended(r, which, got < 0 ? errno : 0);
		return false;
	}
	c->start = 0;
	c->len = (size_t)got;
	if (c->logged)
		note_output(r, c, c->bytes, c->len);
	if (!c->to_safe)
		flush(r, which);
	return true;
}

/* ---- the terminal ---- */

static void
resize(struct kr_relay *r)
{
	struct winsize size;
	int master = r->channel[OUTPUT].from;

	if (!r->want.terminal || master < 0)
		return;
	kr_terminal_size(&r->terminal, &size);
	(void)ioctl(master, TIOCSWINSZ, &size); /* the foreground group inside gets SIGWINCH by it */
}

/* Only a pseudo-terminal's master, and only the first: the worker may become the init, and sends what it
 * likes. */
static void
take_master(struct kr_relay *r, int fd)
{
	if (!r->want.terminal || r->channel[OUTPUT].from >= 0 || r->end.started || !kr_is_terminal_master(fd)) {
		(void)close(fd);
		return;
	}
	(void)fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK); /* a master takes it */
	r->channel[OUTPUT].from = fd;
	r->channel[INPUT].to = fd;
	resize(r);
	kr_terminal_enter(&r->terminal);
}

/* What the worker wrote before it stopped, or ended, is shown before our terminal changes hands. */
static void
show_rest(struct kr_relay *r)
{
	int64_t end = kr_clock_ms() + QUIET_MS;

	while (kr_clock_ms() < end && (pump(r, OUTPUT) || pump(r, ERRORS)))
		;
}

static void
go_on(struct kr_relay *r)
{
	kr_terminal_enter(&r->terminal);
	resize(r);
	if (r->command_stopped)
		(void)tell(r, KG_SIGNAL, SIGCONT);
	r->command_stopped = r->stop_asked = false;
}

/*
 * Stops us as the shell's job that we are. TSTP and not STOP: the kernel does not deliver it to a group that
 * nobody could continue, and then we go on at once. With a terminal the key reached nobody but the command,
 * so the whole group is told; without one the group has had its own signal.
 */
static void
stop_ourselves(struct kr_relay *r, int signal)
{
	sigset_t tstp;

	sigemptyset(&tstp);
	sigaddset(&tstp, SIGTSTP);
	show_rest(r);
	kr_terminal_leave(&r->terminal, false);
	(void)sigprocmask(SIG_UNBLOCK, &tstp, NULL);
	(void)kill(r->want.terminal && signal == SIGTSTP ? 0 : getpid(), SIGTSTP);
	/* Here we are stopped, and continued. */
	(void)sigprocmask(SIG_BLOCK, &tstp, NULL);
	go_on(r);
}

/*
 * With a terminal somebody sits there who gets it back. Without one only the person's own stop stops us too: a
 * command that stops itself, and is perhaps continued from inside, must not leave us stopped for ever.
 */
static void
on_stopped(struct kr_relay *r, int signal)
{
	r->command_stopped = true;
	if (r->want.terminal || r->stop_asked)
		stop_ourselves(r, signal);
}

static void
on_stop_key(struct kr_relay *r)
{
	r->stop_asked = true;
	if (r->command_stopped)
		stop_ourselves(r, SIGTSTP); /* it will not say so again */
	else
		(void)tell(r, KG_SIGNAL, SIGTSTP);
}

/* Gives our terminal back in the state we got it. A clean program is believed to have left what it wanted to
 * leave. */
static void
give_back_terminal(struct kr_relay *r)
{
	bool clean = r->got_exit && !r->end.signal && !r->end.killed_by_us;
	bool asked = r->query_at && kr_clock_ms() - r->query_at < QUERY_MS;
	kr_auto_buf struct kr_buf bytes = KR_BUF(1024);

	if (!r->terminal.raw)
		return;
	if (!clean)
		kr_modes_reset(&r->modes, &bytes);
	if (bytes.len)
		(void)kr_write_all(r->want.out, bytes.data, bytes.len, NULL); /* a terminal that is gone needs none */
	if (asked || bytes.len)
		kr_terminal_drain(&r->terminal);
	kr_terminal_leave(&r->terminal, asked || bytes.len);
}

/* ---- messages and signals ---- */

static void
on_message(struct kr_relay *r, const struct kg_message *m)
{
	switch (m->type) {
	case KG_STARTED:
		r->end.started = true;
		KR_FAULT(started_seen);
		break;
	case KG_EXEC_FAILED:
		r->end.exec_errno = m->a;
		break;
	case KG_STOPPED:
		on_stopped(r, m->a);
		break;
	case KG_CONTINUED:
		r->command_stopped = false;
		break;
	case KG_LEFT:
		r->end.left = m->a < 1 ? 1 : (unsigned)m->a;
		break;
	case KG_LEFT_NAMES:
		if (r->left_bytes + KG_LEFT_PIECE > sizeof(r->end.left_names))
			break;
		memcpy(r->end.left_names + r->left_bytes, &m->a, sizeof(m->a));
		memcpy(r->end.left_names + r->left_bytes + sizeof(m->a), &m->b, sizeof(m->b));
		r->left_bytes += KG_LEFT_PIECE;
		break;
	case KG_OUTLIVED:
		if (r->end.outlived_count < KR_COUNT(r->end.outlived))
			r->end.outlived[r->end.outlived_count++] = m->a;
		break;
	case KG_OOM:
		r->end.oom_kills = m->a < 1 ? 1 : (unsigned)m->a;
		break;
	case KG_EXIT:
		r->got_exit = true;
		r->end.is_told = true;
		r->end.code = m->a & 255;
		r->end.signal = m->b > 0 && m->b < NSIG ? m->b : 0;
		r->kill_at = kr_clock_ms() + EXIT_MS;
		break;
	case KG_WALL:
		r->end.wall = m->a < 0 ? 0 : m->a;
		r->end.fault_errno = m->b;
		break;
	case KG_LAUNCH_FAILED:
		if (m->a == KG_FAULT_NAMESPACE)
			break; /* it goes on without */
		r->end.fault =
			m->a > KG_FAULT_NONE && m->a < KG_FAULT_END ? (enum kg_fault)m->a : KG_FAULT_INTERNAL;
		r->end.fault_errno = m->b;
		break;
	default: /* KG_TERMINAL came with its descriptor; anything else is nobody's */
		break;
	}
}

/* Takes the descriptors of one receive: a master is kept by take_master, everything else is closed. */
static void
take_descriptors(struct kr_relay *r, struct msghdr *header)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			take_master(r, fd);
		}
	}
}

/* Receives one message or a part of one. False when there is none now; the socket's end closes it. */
static bool
receive(struct kr_relay *r)
{
	struct iovec piece = { r->message + r->message_len, sizeof(r->message) - r->message_len };
	union {
		char bytes[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} ancillary;
	struct msghdr header = {
		.msg_iov = &piece, .msg_iovlen = 1, .msg_control = &ancillary, .msg_controllen = sizeof(ancillary)
	};
	ssize_t got = kr_socket_receive(r->control, &header);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return errno == EINTR;
	if (got <= 0) {
		kr_close_p(&r->control);
		return false;
	}
	take_descriptors(r, &header);
	r->message_len += (size_t)got;
	if (r->message_len == sizeof(r->message)) {
		struct kg_message message;

		memcpy(&message, r->message, sizeof(message));
		r->message_len = 0;
		on_message(r, &message);
	}
	return true;
}

static void
on_interrupt(struct kr_relay *r, int signal)
{
	int64_t now = kr_clock_ms();

	if (r->interrupted_at && now - r->interrupted_at <= AGAIN_MS) {
		kill_sandbox(r);
		return;
	}
	r->interrupted_at = now;
	(void)tell(r, KG_SIGNAL, signal);
}

static void
terminate(struct kr_relay *r)
{
	r->term_at = 0;
	if (!r->kill_at)
		r->kill_at = kr_clock_ms() + GRACE_MS;
	(void)tell(r, KG_SIGNAL, SIGTERM);
}

/* Ctrl-C of a foreground item reached us too by then, and it is passed on once. */
static void
interrupt_first(struct kr_relay *r)
{
	const int64_t now = kr_clock_ms();

	r->term_at = now + FLUSH_MS;
	if (r->interrupted_at && now - r->interrupted_at <= AGAIN_MS)
		return;
	r->interrupted_at = now;
	(void)tell(r, KG_SIGNAL, SIGINT);
}

static void
on_signal(struct kr_relay *r, int signal)
{
	if (r->launcher_gone && signal != SIGCONT && signal != SIGWINCH) {
		r->abandon = true; /* only our slow reader is left; the person does not want to wait for it */
		return;
	}
	switch (signal) {
	case SIGINT:
	case SIGQUIT:
		on_interrupt(r, signal);
		break;
	case SIGTERM:
		if (r->want.is_interrupted_first && !r->term_at && !r->kill_at)
			interrupt_first(r);
		else
			terminate(r);
		break;
	case SIGTSTP:
		on_stop_key(r);
		break;
	case SIGCONT:
		kr_terminal_again(&r->terminal);
		go_on(r);
		break;
	case SIGWINCH:
		resize(r);
		break;
	default:
		(void)tell(r, KG_SIGNAL, signal);
		break;
	}
}

/*
 * A file is read ahead of the command, which may want less of it. What it left is put back, as if it had read
 * by itself: `while read line; do kraft run ...; done <list` depends on it. A pipe or a terminal cannot be
 * put back.
 */
static void
give_back_input(struct kr_relay *r)
{
	int left = 0;

	if (r->input_rest < 0 || ioctl(r->input_rest, FIONREAD, &left) < 0)
		return;
	(void)lseek(r->want.in, -((off_t)left + (off_t)r->channel[INPUT].len),
		SEEK_CUR); /* a file that seeks, or nothing to do */
}

static void
on_launcher_gone(struct kr_relay *r)
{
	int status;

	while (waitpid(r->launcher, &status, 0) < 0 && errno == EINTR)
		;
	r->launcher_gone = true;
	r->term_at = r->kill_at = r->hard_at = r->limit_at = 0;
	while (r->control >= 0 && receive(r))
		;
	kr_close_p(&r->control);
	give_back_input(r);
	close_channel(r, INPUT);
}

/* ---- the loop ---- */

/* May we read our own stdin now? A terminal only while we are in front. */
static bool
may_read_input(struct kr_relay *r)
{
	const struct kr_terminal tty = { .fd = r->channel[INPUT].from };

	if (tty.fd < 0 || r->channel[INPUT].to < 0)
		return false;
	if (r->input_is_tty && !kr_terminal_is_ours(&tty))
		return false;
	if (r->want.terminal && !r->terminal.raw) {
		kr_terminal_enter(&r->terminal); /* came to the front without a signal, by `fg` after `bg` */
		resize(r);
	}
	return true;
}

enum {
	POLL_CONTROL,
	POLL_SIGNALS,
	POLL_LAUNCHER,
	POLL_SIDE,
	POLL_READ = POLL_SIDE + KR_RELAY_SIDES,
	POLL_WRITE = POLL_READ + CHANNELS,
	POLLS = POLL_WRITE + CHANNELS
};

static void
fill_polls(struct kr_relay *r, struct pollfd polls[POLLS], int64_t now)
{
	bool input = may_read_input(r);

	polls[POLL_CONTROL] = (struct pollfd){ .fd = r->control, .events = POLLIN };
	polls[POLL_SIGNALS] = (struct pollfd){ .fd = r->signals, .events = POLLIN };
	polls[POLL_LAUNCHER] = (struct pollfd){ .fd = r->launcher_gone ? -1 : r->watch, .events = POLLIN };
	for (int i = 0; i < KR_RELAY_SIDES; i++)
		polls[POLL_SIDE + i] =
			(struct pollfd){ .fd = r->want.sides ? r->want.sides[i].fd : -1, .events = POLLIN };
	for (int i = 0; i < CHANNELS; i++) {
		const struct channel *c = &r->channel[i];
		bool reads = c->from >= 0 && !c->len && c->quiet_until <= now && (i != INPUT || input);
		/* Without anything to write, the worker's stdin is watched for its closing only. */
		bool writes = c->to >= 0 && (c->len || (i == INPUT && !r->want.terminal));

		polls[POLL_READ + i] = (struct pollfd){ .fd = reads ? c->from : -1, .events = POLLIN };
		polls[POLL_WRITE + i] = (struct pollfd){ .fd = writes ? c->to : -1, .events = c->len ? POLLOUT : 0 };
	}
}

static int
timeout_ms(const struct kr_relay *r, int64_t now)
{
	int64_t until = INT64_MAX;
	const int64_t times[] = { r->term_at, r->kill_at, r->hard_at, r->limit_at,
		r->channel[OUTPUT].quiet_until > now ? r->channel[OUTPUT].quiet_until : 0,
		r->input_is_tty && r->channel[INPUT].from >= 0 &&
				!kr_terminal_is_ours(&(struct kr_terminal){ .fd = r->channel[INPUT].from })
			? now + BACKGROUND_MS
			: 0 };

	for (size_t i = 0; i < KR_COUNT(times); i++)
		if (times[i] && times[i] < until)
			until = times[i];
	if (until == INT64_MAX)
		return -1;
	return until > now ? (int)(until - now) + 1 : 0;
}

static void
serve_channel(struct kr_relay *r, int which, const struct pollfd *read_poll, const struct pollfd *write_poll)
{
	struct channel *c = &r->channel[which];

	if (write_poll->fd >= 0 && write_poll->revents) {
		if (c->len)
			flush(r, which);
		else if (write_poll->revents & (POLLERR | POLLNVAL))
			target_failed(r, which, EPIPE);
	}
	if (read_poll->fd >= 0 && read_poll->revents && c->from == read_poll->fd)
		(void)pump(r, which);
}

static void
keep_times(struct kr_relay *r)
{
	int64_t now = kr_clock_ms();

	if (r->limit_at && now >= r->limit_at) {
		r->limit_at = 0;
		r->end.is_over_time = true;
		kill_sandbox(r);
	}
	if (r->term_at && now >= r->term_at)
		terminate(r);
	if (r->kill_at && now >= r->kill_at)
		kill_sandbox(r);
	if (r->hard_at && now >= r->hard_at)
		kill_launcher(r);
}

static int
turn(struct kr_relay *r, struct kr_error *err)
{
	struct pollfd polls[POLLS];
	int64_t now = kr_clock_ms();

	fill_polls(r, polls, now);
	if (poll(polls, POLLS, timeout_ms(r, now)) < 0 && errno != EINTR)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot wait for the session");
	keep_times(r);
	if (polls[POLL_SIGNALS].revents)
		for (int signal; (signal = kr_signals_next(r->signals));)
			on_signal(r, signal);
	if (polls[POLL_CONTROL].revents)
		while (r->control >= 0 && receive(r))
			;
	for (int i = 0; i < CHANNELS; i++)
		serve_channel(r, i, &polls[POLL_READ + i], &polls[POLL_WRITE + i]);
	for (int i = 0; i < KR_RELAY_SIDES; i++)
		if (polls[POLL_SIDE + i].revents && !r->want.sides[i].ready(r->want.sides[i].context))
			r->want.sides[i].fd = -1;
	if (polls[POLL_LAUNCHER].revents && !r->launcher_gone)
		on_launcher_gone(r);
	return 0;
}

/*
 * After the launcher: everything that could write is gone, so what is in the pipes is all there will be.
 * Bounded all the same: a process that got away must not hold us by writing on.
 */
static bool
is_drained(struct kr_relay *r)
{
	bool drained = true;

	for (int i = OUTPUT; i < CHANNELS; i++) {
		struct channel *c = &r->channel[i];

		while (!c->len && r->rest < REST_BYTES && pump(r, i))
			r->rest += c->len ? c->len : 1;
		if (!c->len)
			kr_close_p(&c->from);
		drained = drained && !c->len;
	}
	return drained || r->abandon;
}

/* Without a word on the socket: what the launcher wrote down, else what must have happened. */
static void
find_end(struct kr_relay *r)
{
	kr_auto_fd int folder =
		r->got_exit || !r->want.folder ? -1 : open(r->want.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	kr_auto_buf struct kr_buf bytes = KR_BUF(128);
	int code, signal;

	if (r->got_exit)
		return;
	if (folder >= 0 && kr_file_read_at(folder, KG_EXIT_FILE, &bytes, NULL) == 0 && bytes.data &&
		sscanf(bytes.data, "%d %d", &code, &signal) == 2) {
		r->end.code = code & 255;
		r->end.signal = signal > 0 && signal < NSIG ? signal : 0;
	} else if (r->end.started) {
		r->end.signal = SIGKILL;
	} else {
		r->end.code = KG_EXIT_REFUSED;
	}
}

int
kr_relay_follow(
	struct kr_relay *r, struct kr_session *session, struct kr_session_end *end, struct kr_error *err)
{
	int result = 0;

	for (int i = 0; i < CHANNELS; i++)
		kr_close_p(&r->worker[i]);
	r->control = kr_steal_fd(session->control_fd);
	r->lifeline = kr_steal_fd(session->lifeline_fd);
	r->launcher = session->launcher;
	session->launcher = 0;
	r->limit_at = r->want.limit_ms ? kr_clock_ms() + r->want.limit_ms : 0;
	r->watch = kr_process_watch(r->launcher, err);
	if (r->watch < 0) {
		kill_launcher(r);
		on_launcher_gone(r);
		return -1;
	}
	while (result == 0 && !(r->launcher_gone && is_drained(r)))
		result = turn(r, err);
	give_back_terminal(r);
	if (result < 0) {
		kill_launcher(r);
		on_launcher_gone(r);
		return -1;
	}
	find_end(r);
	KR_FAULT(exit_seen);
	*end = r->end;
	return 0;
}

void
kr_session_left_words(const struct kr_session_end *end, char out[KR_LEFT_WORDS])
{
	enum { REST = sizeof(" and 4294967295 more") };
	const char *at = end->left_names, *stop = at + sizeof(end->left_names);
	unsigned told = 0;
	size_t used = 0;

	out[0] = '\0';
	for (; told < end->left && told < KG_LEFT_SHOWN; told++) {
		const char *nul = memchr(at, '\0', (size_t)(stop - at));
		char name[4 * KG_LEFT_NAME + 1];

		if (!nul || nul == at)
			break; /* that many were not told */
		kr_text_escape(name, sizeof(name), at, (size_t)(nul - at));
		if (used + strlen(name) + 2 + REST > KR_LEFT_WORDS)
			break;
		used += (size_t)snprintf(out + used, KR_LEFT_WORDS - used, "%s%s", told ? ", " : "", name);
		at = nul + 1;
	}
	if (told < end->left)
		(void)snprintf(out + used, KR_LEFT_WORDS - used, told ? " and %u more" : "%u without a name", end->left - told);
}

_Static_assert((int)KR_EXIT_LAUNCH == (int)KG_EXIT_REFUSED &&
				   (int)KR_EXIT_NOT_EXECUTABLE == (int)KG_EXIT_NOT_EXECUTABLE &&
				   (int)KR_EXIT_NO_COMMAND == (int)KG_EXIT_NOT_FOUND,
	"what the guest ends with is in the table of statuses");

int
kr_session_exit_status(const struct kr_session_end *end)
{
	if (end->signal)
		return 128 + end->signal;
	if (!end->started && end->exec_errno)
		return end->exec_errno == EACCES || end->exec_errno == EPERM || end->exec_errno == ENOEXEC
			? KG_EXIT_NOT_EXECUTABLE
			: KG_EXIT_NOT_FOUND;
	if (!end->started)
		return KG_EXIT_REFUSED;
	return end->code;
}
