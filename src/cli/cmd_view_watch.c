/*
 * kraft view watch: the work items that go on, live.
 *
 * At a terminal a board on the alternate screen. It is laid out again twice a second and written only when it
 * differs from what is there. The terminal is as before on every way out: a key, a signal, an error, a stop
 * (Ctrl-Z) and a crash. In the background it writes nothing, and comes back when it is in front. Elsewhere a
 * line, or an object, for each change.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/board.h"
#include "cli/cli.h"
#include "cli/view.h"
#include "cli/work.h"
#include "session/facts.h"
#include "session/terminal.h"

enum {
	POLL_MS = 500,
	FRAME_BYTES = 8 << 20,
	LINES_MAX = 1000,
	KEY_INTERRUPT = 3,
	KEY_REDRAW = 12,
	KEY_STOP = 26,
	KEY_QUIT = 28,
	KEY_ESCAPE = 27,
	GONE_MS = 200 /* that a terminal which takes nothing gets to take what brings it back */
};

/* No line is wrapped either where the terminal and we disagree about a character's width. */
static const char screen_on[] = "\033[?1049h\033[?25l\033[?7l\033[2J";
static const char screen_off[] = "\033[m\033[?7h\033[?25h\033[?1049l";

/* ---- signals ---- */

static volatile sig_atomic_t ended_by, wants_redraw, wants_stop, is_on_screen;

static void
note_signal(int signal)
{
	if (signal == SIGWINCH || signal == SIGCONT)
		wants_redraw = 1;
	else if (signal == SIGTSTP)
		wants_stop = 1;
	else
		ended_by = signal;
}

/* Installed before those of session/terminal.c, which set the modes back and then hand over to it. */
static void
note_crash(int signal)
{
	if (is_on_screen && write(STDOUT_FILENO, screen_off, sizeof(screen_off) - 1) < 0)
		_exit(128 + signal);
	(void)raise(signal); /* the default by now */
}

/* What our parent had ignored stays so (nohup). No SA_RESTART: a write to a terminal that takes nothing must
 * end. */
static void
catch_signal(int signal, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags }, present;

	sigemptyset(&action.sa_mask);
	if (sigaction(signal, NULL, &present) == 0 && present.sa_handler != SIG_IGN)
		(void)sigaction(signal, &action, NULL);
}

static void
catch_signals(void)
{
	static const int noted[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGCONT, SIGTSTP };
	static const int crashes[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };

	for (size_t i = 0; i < KR_COUNT(noted); i++)
		catch_signal(noted[i], note_signal, 0);
	for (size_t i = 0; i < KR_COUNT(crashes); i++)
		catch_signal(crashes[i], note_crash, (int)(SA_RESETHAND | SA_NODEFER));
}

/* ---- the screen ---- */

struct screen {
	struct kr_terminal out, keys; /* keys.fd -1: stdin is no terminal */
	struct kr_buf shown;          /* what is on it; empty: unknown */
};

static int
init_screen(struct screen *s, struct kr_error *err)
{
	*s = (struct screen){ .shown = KR_BUF(FRAME_BYTES), .keys.fd = -1 };
	catch_signals();
	if (kr_terminal_init(&s->out, STDOUT_FILENO, err) < 0)
		return -1;
	return isatty(STDIN_FILENO) ? kr_terminal_init(&s->keys, STDIN_FILENO, err) : 0;
}

/* -1: the terminal is gone, or takes nothing and we are to end. */
static int
write_out(const char *bytes, size_t n)
{
	while (n) {
		ssize_t done = write(STDOUT_FILENO, bytes, n);
		struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };

		if (done < 0 && errno == EAGAIN)
			(void)poll(&out, 1, GONE_MS); /* somebody made it non-blocking */
		if (ended_by || (done < 0 && errno != EINTR && errno != EAGAIN))
			return -1; /* a write that a signal cut short says how much it wrote */
		bytes += done > 0 ? done : 0;
		n -= done > 0 ? (size_t)done : 0;
	}
	return 0;
}

static int
enter(struct screen *s)
{
	if (s->keys.fd >= 0)
		kr_terminal_enter(&s->keys);
	is_on_screen = 1;
	s->shown.len = 0;
	return write_out(screen_on, sizeof(screen_on) - 1);
}

static void
leave(struct screen *s)
{
	struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };

	if (!is_on_screen)
		return;
	if (poll(&out, 1, GONE_MS) > 0 && (out.revents & POLLOUT) &&
		write(STDOUT_FILENO, screen_off, sizeof(screen_off) - 1) < 0)
		s->shown.len = 0; /* it is gone: nothing is left to bring back */
	is_on_screen = 0;
	if (s->keys.fd >= 0)
		kr_terminal_leave(&s->keys, false); /* what was typed ahead is the shell's */
}

/* A frame goes out whole: cursor home, each line cleared behind its text, then what is below. */
static int
draw(struct screen *s, const struct kr_board *board)
{
	kr_auto_buf struct kr_buf frame = KR_BUF(FRAME_BYTES);
	struct kr_board_layout layout = { .colour = kr_colour_on(STDOUT_FILENO),
		.summary = true,
		.line_end = "\033[K\r\n",
		.now_ms = kr_now_ms() };
	struct winsize size;

	kr_terminal_size(&s->out, &size);
	layout.columns = size.ws_col;
	layout.lines = size.ws_row < LINES_MAX ? size.ws_row : LINES_MAX;
	kr_buf_adds(&frame, "\033[H");
	kr_board_render(board, &layout, &frame);
	kr_buf_adds(&frame, "\033[K\033[J");
	if (frame.overflow || (frame.len == s->shown.len && memcmp(frame.data, s->shown.data, frame.len) == 0))
		return 0;
	kr_buf_fini(&s->shown);
	s->shown = frame;
	frame = KR_BUF(FRAME_BYTES);
	return write_out(s->shown.data, s->shown.len);
}

/* The whole job, as a shell means Ctrl-Z; a stop that was sent to us alone is ours alone. Returns when we go
 * on. */
static void
stop(struct screen *s, bool by_key)
{
	struct sigaction plain = { .sa_handler = SIG_DFL }, noted;

	leave(s);
	sigemptyset(&plain.sa_mask);
	(void)sigaction(SIGTSTP, &plain, &noted);
	(void)(by_key ? kill(0, SIGTSTP) : raise(SIGTSTP));
	(void)sigaction(SIGTSTP, &noted, NULL);
	wants_stop = 0;
}

/* What was typed, at most a moment's wait. 0: nothing that means anything; -1: the terminal is gone. */
static int
next_key(const struct screen *s)
{
	struct pollfd fds[2] = { { .fd = STDOUT_FILENO },
		{ .fd = s->keys.raw && is_on_screen ? s->keys.fd : -1, .events = POLLIN } };
	char keys[64];
	ssize_t n;

	if (poll(fds, 2, POLL_MS) <= 0)
		return 0;
	if (fds[0].revents & (POLLERR | POLLHUP | POLLNVAL))
		return -1;
	n = fds[1].revents ? read(s->keys.fd, keys, sizeof(keys)) : 1;
	if (n <= 0)
		return n < 0 && errno == EINTR ? 0 : -1;
	if (!fds[1].revents || keys[0] == KEY_ESCAPE) /* a function key has letters in it */
		return 0;
	for (ssize_t i = 0; i < n; i++)
		if (keys[i] == 'q' || keys[i] == KEY_INTERRUPT || keys[i] == KEY_QUIT || keys[i] == KEY_STOP ||
			keys[i] == KEY_REDRAW)
			return keys[i];
	return 0;
}

/* 1: the person left. */
static int
obey(struct screen *s, int key)
{
	if (key == KEY_STOP || wants_stop)
		stop(s, key == KEY_STOP);
	if (key == KEY_REDRAW || wants_redraw) {
		wants_redraw = 0;
		s->shown.len = 0;
		if (is_on_screen && kr_terminal_is_ours(&s->out)) {
			kr_terminal_again(&s->keys);
			key = write_out(screen_on, sizeof(screen_on) - 1) < 0
					  ? -1
					  : key; /* others may have drawn on it while we were stopped */
		}
	}
	if (key == KEY_INTERRUPT)
		ended_by = SIGINT;
	if (key == KEY_QUIT)
		ended_by = SIGQUIT;
	return key == 'q' || key < 0;
}

static int
watch_screen(struct kr_board *board, struct kr_error *err)
{
	struct screen s;
	bool has_left = false;
	int result = init_screen(&s, err);

	while (result >= 0 && !has_left && !ended_by) {
		const bool is_ours = kr_terminal_is_ours(&s.out);

		result = kr_board_poll(board, err);
		if (result >= 0 && is_ours && ((!is_on_screen && enter(&s) < 0) || draw(&s, board) < 0))
			has_left = true;
		else if (result >= 0)
			has_left = obey(&s, next_key(&s)) != 0;
	}
	leave(&s);
	kr_buf_fini(&s.shown);
	return result < 0 ? -1 : ended_by ? 128 + ended_by : 0;
}

/* ---- a line for each change ---- */

struct told {
	char *id, *title, *line; /* line: what was last said of it */
	bool is_there;
};

struct telling {
	struct told *v;
	size_t n, room;
	bool is_json;
};

static struct told *
find_told(struct telling *t, const char *id)
{
	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->v[i].id, id) == 0)
			return &t->v[i];
	if (t->n == t->room) {
		t->room = t->room ? 2 * t->room : 16;
		t->v = kr_xrealloc(t->v, t->room * sizeof(*t->v));
	}
	t->v[t->n] = (struct told){ .id = kr_xstrdup(id) };
	return &t->v[t->n++];
}

static void
forget(struct telling *t, size_t at)
{
	free(t->v[at].id);
	free(t->v[at].title);
	free(t->v[at].line);
	t->v[at] = t->v[--t->n];
}

static void
print_object(const struct kr_board_row *row)
{
	json_t *root = json_pack("{s:I, s:s, s:s, s:s, s:o, s:o, s:I, s:I}", "ms", (json_int_t)kr_now_ms(), "id",
		row->id, "title", row->title, "display_status", row->words, "node",
		strcmp(row->place, "-") != 0 ? json_string(row->place) : json_null(), "progress",
		row->progress >= 0 ? json_integer(row->progress) : json_null(), "refused", (json_int_t)row->refused,
		"since_ms", (json_int_t)row->since_ms);
	kr_auto_free char *text = root ? json_dumps(root, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;

	json_decref(root);
	if (text)
		puts(text);
}

static void
print_text(const struct kr_board_row *row)
{
	kr_auto_buf struct kr_buf line = KR_BUF(FRAME_BYTES);
	char at[32], progress[48] = "", refused[48] = "";

	if (row->progress >= 0)
		snprintf(progress, sizeof(progress), "  progress %lld", (long long)row->progress);
	if (row->refused)
		snprintf(refused, sizeof(refused), "  refused %ld", row->refused);
	kr_buf_addf(&line, "%s  ", kr_view_local_time(kr_now_ms(), at, sizeof(at)));
	kr_board_put(&line, row->id, 200, false);
	kr_buf_addf(&line, "  %s  ", row->words);
	kr_board_put(&line, row->place, 200, false);
	kr_buf_addf(&line, "%s%s  ", progress, refused);
	kr_board_put(&line, row->title, 500, false);
	puts(line.data);
}

static void
print_change(const struct telling *t, const struct kr_board_row *row)
{
	if (t->is_json)
		print_object(row);
	else
		print_text(row);
}

/* Each stop is one, also when it is at the same gate again. */
static void
tell_row(struct telling *t, const struct kr_board_row *row)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena turn = { 0 };
	const char *line = kr_arena_printf(&turn, "%s %s %lld %ld %llu", row->words, row->place,
		(long long)row->progress, row->refused, row->rank ? 0ull : (unsigned long long)row->since_ms);
	struct told *told = find_told(t, row->id);

	told->is_there = true;
	if (told->line && strcmp(told->line, line) == 0)
		return;
	free(told->line);
	free(told->title);
	told->line = kr_xstrdup(line);
	told->title = kr_xstrdup(row->title);
	print_change(t, row);
}

/* What is not on the board any more has ended. */
static void
tell_ended(struct telling *t, struct kr_board *board)
{
	for (size_t i = t->n; i-- > 0;) {
		const struct kr_board_row row = { .id = t->v[i].id,
			.title = t->v[i].title,
			.place = "-",
			.progress = -1,
			.since_ms = kr_now_ms(),
			.words = t->v[i].is_there ? "" : kr_board_ending(board, t->v[i].id) };

		if (t->v[i].is_there) {
			t->v[i].is_there = false;
			continue;
		}
		print_change(t, &row);
		forget(t, i);
	}
}

/* Waits a little; false when whoever reads our output is gone. */
static bool
nap(void)
{
	struct pollfd out = { .fd = STDOUT_FILENO };

	return fflush(stdout) == 0 && (poll(&out, 1, POLL_MS) <= 0 || !(out.revents & (POLLERR | POLLNVAL)));
}

static int
watch_lines(struct kr_board *board, bool is_json, bool once, struct kr_error *err)
{
	struct telling t = { .is_json = is_json };
	int result;

	do {
		result = kr_board_poll(board, err);
		for (size_t i = 0; result > 0 && i < board->n; i++)
			tell_row(&t, &board->rows[i]);
		if (result > 0)
			tell_ended(&t, board);
	} while (result >= 0 && !once && nap());
	while (t.n)
		forget(&t, t.n - 1);
	free(t.v);
	return result < 0 ? -1 : 0;
}

/* ---- once ---- */

static int
show_once(struct kr_board *board, struct kr_error *err)
{
	kr_auto_buf struct kr_buf out = KR_BUF(FRAME_BYTES);
	struct kr_board_layout layout = { .columns = UINT16_MAX, .line_end = "\n", .now_ms = kr_now_ms() };

	if (kr_board_poll(board, err) < 0)
		return -1;
	if (isatty(STDOUT_FILENO)) {
		struct winsize size;

		kr_terminal_size(&(struct kr_terminal){ .fd = STDOUT_FILENO }, &size);
		layout.columns = size.ws_col;
		layout.colour = kr_colour_on(STDOUT_FILENO);
	}
	kr_board_render(board, &layout, &out);
	if (out.len)
		fwrite(out.data, 1, out.len, stdout);
	return 0;
}

/* ---- the command ---- */

enum { WATCH_ONCE, WATCH_JSON };
static const struct kr_option watch_options[] = {
	[WATCH_ONCE] = { "once", 0, NULL, "print the board, and that is all" },
	[WATCH_JSON] = { "json", 0, NULL, "one object per change, for programs" },
	{ NULL },
};

static bool
is_screen(void)
{
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

static int
watch(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	const bool is_json = parsed->value[WATCH_JSON] != NULL, once = parsed->value[WATCH_ONCE] != NULL;
	struct kr_board board;
	struct kr_host host;
	int result;

	if (kr_host_gather_places(arena, &host, err) < 0)
		return -1;
	kr_board_init(&board, &host);
	if (once && !is_json)
		result = show_once(&board, err);
	else if (is_json || !is_screen())
		result = watch_lines(&board, is_json, once, err);
	else
		result = watch_screen(&board, err);
	kr_board_fini(&board);
	return result;
}

const struct kr_command kr_cmd_view_watch = {
	.name = "view watch",
	.usage = "[OPTIONS]",
	.summary = "the work items that go on, live; 'q' leaves",
	.help = "One row for each, those that wait for you first. Where stdout is no terminal, a line for each "
			"change.",
	.options = watch_options,
	.words_max = 0,
	.run = watch,
};
