/*
 * The confined process of the outside end: stands where the init stands elsewhere.
 *
 * Order: a session of its own with the terminal that kraft will get the other side of; confine; then the
 * loop. When the inside has said hello it asks its parent for the connection to the launcher, takes the
 * command's streams from there, and passes everything on. Each connection that is accepted inside becomes a
 * pair of sockets, of which one goes to kraft-egress over the channel.
 *
 * Takes bytes that a worker may have written, so it holds no power (confine.h) and nothing but what belongs to
 * its own session; what the inside says towards the launcher the launcher judges, as it judges an init.
 *
 * The command's end (KG_EXIT) is passed on when all of its output was; so nobody thinks that a slow reader
 * of it is a session that does not end.
 *
 * It ends with the launcher's connection, at once; and when the inside's bytes have ended and were passed on.
 */
#include "guest/pump_outside.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "guest/confine.h"
#include "guest/pump.h"
#include "guest/sys.h"

enum { AGAIN_MS = 250, AT_HELPER = KG_PUMP_PLACES, AT_CHANNEL, AT_SIGNALS, PLACES };

/* One per process, too large for a stack. */
static struct {
	struct kg_pump pump; /* first: the hooks get it */
	int helper, errors, signals;
	int master, slave;    /* of the terminal, until they are given away; -1 */
	int tty;              /* the slave, as long as it is ours to ask for its size */
	bool asked;           /* a wish is on its way */
	bool wants_launcher, has_launcher, has_streams;
	bool wants_channel, has_route, no_route; /* the way out was asked for; is there; there is none for now */
	int channel;
	int64_t again_at; /* the next wish for it */
	int waiting[KG_STREAMS_MAX];     /* for kraft-egress; -1 */
	uint32_t number[KG_STREAMS_MAX]; /* of the connection there; 0: none */
	uint32_t numbers;
	bool handed[KG_STREAMS_MAX];     /* it has it */
	char word[KG_NUMBERED_BYTES];    /* of its words, what came of it */
	size_t word_bytes;
} own;

__attribute__((noreturn)) static void
refuse(const char *why, int failed)
{
	kg_say(2, why, failed ? ": " : NULL, kg_errno_text(failed), NULL);
	_exit(KG_EXIT_REFUSED);
}

/* ---- the terminal ---- */

/* Raw: the one inside does what a terminal does. We lead its session, so a change of its size is told to us. */
static void
open_terminal(const struct winsize *size)
{
	struct termios modes;
	int unlocked = 0;

	own.master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (own.master < 0 || ioctl(own.master, TIOCSPTLCK, &unlocked) < 0)
		refuse("cannot open a pseudo-terminal", errno);
	own.slave = ioctl(own.master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	if (own.slave < 0 || tcgetattr(own.slave, &modes) < 0)
		refuse("cannot open a pseudo-terminal", errno);
	cfmakeraw(&modes);
	if (tcsetattr(own.slave, TCSANOW, &modes) < 0 || (size->ws_row && ioctl(own.slave, TIOCSWINSZ, size) < 0) ||
		ioctl(own.slave, TIOCSCTTY, 0) < 0)
		refuse("cannot set a pseudo-terminal up", errno);
	own.tty = own.slave;
}

static void
watch_signals(void)
{
	sigset_t all, watched;

	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL); /* cannot fail with these arguments */
	sigemptyset(&watched);
	sigaddset(&watched, SIGWINCH);
	own.signals = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
	if (own.signals < 0)
		refuse("cannot watch signals", errno);
}

/* The newest size counts, however often it changed. */
static void
take_size(void)
{
	struct signalfd_siginfo info;
	struct winsize size;

	while (read(own.signals, &info, sizeof(info)) == sizeof(info))
		;
	if (own.tty < 0 || own.pump.end[KG_STREAM_TERMINAL].fd != own.tty || ioctl(own.tty, TIOCGWINSZ, &size) < 0)
		return;
	own.pump.mux.size = (uint32_t)size.ws_row << 16 | size.ws_col;
	own.pump.mux.size_due = true;
}

/* ---- what is asked of the parent ---- */

/* One after the other; the launcher first. */
static void
ask(void)
{
	const bool channel = own.wants_channel && own.channel < 0 && kg_now_ms() >= own.again_at;
	const char wish = own.wants_launcher ? KG_WISH_LAUNCHER : KG_WISH_CHANNEL;

	if (own.asked || (!own.wants_launcher && !channel))
		return;
	if (write(own.helper, &wish, 1) != 1)
		_exit(KG_EXIT_REFUSED);
	own.asked = true;
}

static void
take_launcher(int fd, int failed)
{
	if (fd < 0)
		refuse("cannot connect to the launcher", failed);
	own.wants_launcher = false;
	own.has_launcher = true;
	if (!kg_pump_unblock(fd))
		refuse("cannot talk to the launcher", errno);
	kg_pump_attach(&own.pump, KG_STREAM_TALK, fd, true);
}

/* The first answer is the init's to hear; later ones say whether to wait for another proxy, or there is none. */
static void
take_channel(int fd, int failed)
{
	own.channel = fd;
	own.again_at = kg_now_ms() + AGAIN_MS;
	own.no_route = fd < 0 && (failed == ECONNREFUSED || failed == ENOENT);
	if (own.has_route)
		return;
	own.has_route = true;
	own.wants_channel = fd >= 0;
	own.pump.mux.route = fd < 0 ? (uint32_t)failed : 0;
	own.pump.mux.route_due = true;
}

static void
take_answer(void)
{
	struct kg_message answer;
	int fd;

	/* The parent is gone, or answers otherwise than it should: nothing to be done. */
	if (kg_receive(own.helper, &answer, sizeof(answer), &fd, 1) != (ssize_t)sizeof(answer))
		_exit(KG_EXIT_REFUSED);
	own.asked = false;
	if (answer.type == KG_WISH_LAUNCHER)
		take_launcher(fd, answer.a);
	else
		take_channel(fd, answer.a);
}

/* ---- the launcher ---- */

static bool
attach_stream(unsigned stream, int fd)
{
	if (fd < 0 || !kg_pump_unblock(fd))
		return false;
	kg_pump_attach(&own.pump, stream, fd, false);
	return true;
}

/* stderr is others' too, whom it must go on to block, so ours is an opening of our own. */
static void
take_streams(int talk)
{
	struct kg_message message;
	int fds[KG_DESCRIPTORS];
	ssize_t n = kg_receive(talk, &message, sizeof(message), fds, KG_COUNT(fds));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != (ssize_t)sizeof(message) || message.type != KG_STREAMS || fds[2] < 0 ||
		!attach_stream(KG_STREAM_STDIN, fds[0]) || !attach_stream(KG_STREAM_STDOUT, fds[1]))
		_exit(KG_EXIT_REFUSED);
	if (own.errors >= 0) {
		close(fds[2]);
		fds[2] = own.errors;
	}
	if (!attach_stream(KG_STREAM_STDERR, fds[2]))
		_exit(KG_EXIT_REFUSED);
	own.has_streams = true;
}

static ssize_t
read_talk(struct kg_pump *pump, int fd, char *out, size_t most)
{
	ssize_t n;

	(void)pump;
	if (!own.has_streams) {
		take_streams(fd);
		errno = EAGAIN;
		return -1;
	}
	n = read(fd, out, most);
	if (n == 0)
		_exit(KG_EXIT_REFUSED); /* the launcher is gone, and so are we */
	return n;
}

/* Whether the inside's next word has to wait for the command's output. */
static bool
is_early(void)
{
	size_t n;
	const struct kg_message *word = (const void *)kg_mux_front(&own.pump.mux, KG_STREAM_TALK, &n);

	return n >= sizeof(*word) && word->type == KG_EXIT &&
		   !(kg_pump_is_dry(&own.pump, KG_STREAM_STDOUT) && kg_pump_is_dry(&own.pump, KG_STREAM_STDERR) &&
			   kg_pump_is_dry(&own.pump, KG_STREAM_TERMINAL));
}

/* One word. The terminal's master rides along where the inside has one; the launcher judges whether it may. */
static ssize_t
write_talk(struct kg_pump *pump, int fd, const char *bytes, size_t n)
{
	struct kg_message word;
	int master = -1, failed;

	errno = EAGAIN;
	if (n < sizeof(word) || is_early())
		return -1;
	memcpy(&word, bytes, sizeof(word));
	if (word.type == KG_TERMINAL)
		master = own.master;
	failed = kg_send(fd, &word, master, MSG_DONTWAIT);
	errno = failed;
	if (failed)
		return -1;
	if (master >= 0) {
		close(master);
		kg_pump_attach(pump, KG_STREAM_TERMINAL, own.slave, false);
		own.master = own.slave = -1;
	}
	return sizeof(word);
}

/* ---- the way out ---- */

static void
make_pair(unsigned stream)
{
	int pair[2];

	if (own.no_route || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
		kg_mux_close(&own.pump.mux, stream); /* who connected is refused */
		return;
	}
	kg_pump_attach(&own.pump, stream, pair[0], true);
	own.waiting[stream] = pair[1];
	own.number[stream] = ++own.numbers ? own.numbers : ++own.numbers;
}

/* A plain end of the pair would look to kraft-egress like one that was meant. */
static void
tell_reset(struct kg_pump *pump, unsigned stream)
{
	char word[KG_NUMBERED_BYTES] = { KG_RESET };

	(void)pump;
	if (stream < KG_STREAM_FIRST || !own.handed[stream] || own.channel < 0)
		return;
	memcpy(word + 1, &own.number[stream], sizeof(own.number[stream]));
	(void)kg_send_bytes(own.channel, word, sizeof(word), NULL, 0, MSG_DONTWAIT); /* it is told by the end alone, then */
}

static void
take_connections(void)
{
	for (unsigned i = KG_STREAM_FIRST; i < KG_STREAMS_MAX; i++) {
		const struct kg_stream *s = &own.pump.mux.stream[i];

		if (s->open && own.pump.end[i].fd < 0 && !s->closed_due && !s->sent_closed)
			make_pair(i);
		if (own.pump.end[i].fd < 0)
			own.number[i] = own.handed[i] = 0;
		/* One that ended before anybody took it; or one that nobody will take. */
		if (own.waiting[i] >= 0 && (own.no_route || own.pump.end[i].fd < 0)) {
			close(own.waiting[i]);
			own.waiting[i] = -1;
		}
	}
}

static void
lose_channel(void)
{
	close(own.channel);
	own.channel = -1;
	own.word_bytes = 0;
	memset(own.handed, 0, sizeof(own.handed));
}

/* What kraft-egress says was said before the socket that it means ended. */
static void
hear_channel(void)
{
	for (;;) {
		ssize_t n = own.channel < 0
						? 0
						: recv(own.channel, own.word + own.word_bytes, sizeof(own.word) - own.word_bytes, MSG_DONTWAIT);
		uint32_t number;

		if (n <= 0) {
			if (own.channel >= 0 && (n == 0 || (errno != EAGAIN && errno != EINTR)))
				lose_channel();
			return;
		}
		own.word_bytes += (size_t)n;
		if (own.word_bytes < sizeof(own.word))
			continue;
		own.word_bytes = 0;
		memcpy(&number, own.word + 1, sizeof(number));
		for (unsigned i = KG_STREAM_FIRST; i < KG_STREAMS_MAX && number; i++)
			own.pump.end[i].is_broken |= own.number[i] == number;
	}
}

/* False: nobody waits any more. */
static bool
hand_over(void)
{
	char word[KG_NUMBERED_BYTES] = { KG_CONNECTION };

	for (unsigned i = KG_STREAM_FIRST; i < KG_STREAMS_MAX && own.channel >= 0; i++) {
		int failed;

		if (own.waiting[i] < 0)
			continue;
		memcpy(word + 1, &own.number[i], sizeof(own.number[i]));
		failed = kg_send_bytes(own.channel, word, sizeof(word), &own.waiting[i], 1, MSG_DONTWAIT);
		if (failed == EAGAIN)
			return true;
		if (failed) {
			lose_channel();
			return false;
		}
		close(own.waiting[i]);
		own.waiting[i] = -1;
		own.handed[i] = true;
	}
	return false;
}

/* ---- the loop ---- */

static int
watch(struct pollfd at[PLACES])
{
	const bool channel_is_full = own.channel >= 0 && hand_over();
	int64_t left = own.again_at - kg_now_ms();

	kg_pump_watch(&own.pump, at);
	if (own.has_launcher) {
		struct pollfd *talk = &at[KG_STREAM_TALK];

		talk->fd = own.pump.end[KG_STREAM_TALK].fd;
		talk->events |= POLLRDHUP;
		if (!own.has_streams)
			talk->events |= POLLIN;
		if (is_early())
			talk->events &= ~POLLOUT;
	}
	at[AT_HELPER] = (struct pollfd){ own.helper, POLLIN, 0 };
	at[AT_CHANNEL] = (struct pollfd){ own.channel, (short)(channel_is_full ? POLLIN | POLLOUT : POLLIN), 0 };
	at[AT_SIGNALS] = (struct pollfd){ own.signals, POLLIN, 0 };
	if (!own.wants_channel || own.channel >= 0 || own.asked)
		return -1;
	return left > 0 ? (int)left : 0;
}

/* Everything that the inside said was passed on. */
static bool
is_over(void)
{
	const struct kg_mux *mux = &own.pump.mux;

	return own.pump.in < 0 && mux->stream[KG_STREAM_TALK].n == 0 &&
		   kg_pump_is_dry(&own.pump, KG_STREAM_STDOUT) && kg_pump_is_dry(&own.pump, KG_STREAM_STDERR) &&
		   kg_pump_is_dry(&own.pump, KG_STREAM_TERMINAL);
}

static void
look_around(void)
{
	struct kg_mux *mux = &own.pump.mux;

	if (mux->greeted && !own.has_launcher)
		own.wants_launcher = true;
	if (own.has_launcher && own.pump.end[KG_STREAM_TALK].fd < 0)
		_exit(KG_EXIT_REFUSED); /* it takes no more words */
	if (mux->route_came && !own.has_route)
		own.wants_channel = true;
	if (mux->bye_came && own.pump.out >= 0) {
		close(own.pump.out); /* now it ends */
		own.pump.out = -1;
	}
	take_connections();
	ask();
	if (is_over())
		_exit(0);
}

static void
handle(const struct pollfd at[PLACES])
{
	if (own.has_launcher && (at[KG_STREAM_TALK].revents & (POLLRDHUP | POLLHUP | POLLERR)))
		_exit(KG_EXIT_REFUSED);
	if (at[AT_HELPER].revents)
		take_answer();
	/* First, so that an end which comes after such a word is known for what it is. */
	hear_channel();
	if (at[AT_SIGNALS].revents)
		take_size();
	if (!kg_pump_handle(&own.pump, at))
		refuse("the container said what it may not say; the session is ended", 0);
	look_around();
}

void
kg_outside_serve(const struct kg_outside *outside)
{
	static struct pollfd at[PLACES];
	int failed;

	own.helper = outside->helper;
	own.errors = outside->errors;
	own.master = own.slave = own.tty = own.channel = -1;
	for (size_t i = 0; i < KG_COUNT(own.waiting); i++)
		own.waiting[i] = -1;
	watch_signals();
	if (setsid() < 0)
		refuse("cannot lead a session", errno);
	if (outside->terminal)
		open_terminal(&outside->size);
	failed = kg_pump_init(&own.pump, true, outside->terminal, outside->in, outside->out);
	if (!failed)
		failed = kg_confine();
	if (failed)
		refuse("cannot confine itself", failed);
	own.pump.read_talk = read_talk;
	own.pump.write_talk = write_talk;
	own.pump.dropping = tell_reset;
	own.pump.ended = hear_channel;
	for (;;) {
		int patience = watch(at);

		if (poll(at, PLACES, patience) >= 0)
			handle(at);
		else if (errno != EINTR)
			_exit(KG_EXIT_REFUSED);
	}
}
