/*
 * A poll asks for the number of the newest event, and whether a process holds each item that says it is
 * active: both cost microseconds. Rows are read again when either changed, once more at the poll after that
 * (a worker's progress is written right behind its event), and every few seconds, since the events of very
 * much progress end.
 */
#include "cli/board.h"

#include <locale.h>
#include <wchar.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

#include "base/text.h"

enum {
	REREAD_POLLS = 10,
	COLUMNS_MAX = 1000,
	TEXT_BYTES = 4 * COLUMNS_MAX,
	DAY_MINUTES = 24 * 60,
	ID_MIN = 8,
	ID_MOST = 40,
	STATE_WIDTH = 24, /* "rate-limited until 14:05" */
	PLACE_MIN = 8,
	PLACE_MOST = 32,
	NUMBER_WIDTH = 8,
	MARKS_MOST = 2, /* characters without a width, on one that has one */
	GAP = 2
};

/* ---- reading ---- */

struct kr_board_tally {
	char *id;
	long n;
};

void
kr_board_init(struct kr_board *board, const struct kr_host *host)
{
	locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);

	if (!locale)
		locale = newlocale(LC_CTYPE_MASK, "UTF-8", (locale_t)0); /* as macOS calls it */
	*board = (struct kr_board){ .host = host, .locale = locale };
	if (locale)
		(void)uselocale(locale); /* for the widths of characters; without it only ASCII is shown */
}

void
kr_board_fini(struct kr_board *board)
{
	if (board->locale) {
		(void)uselocale(LC_GLOBAL_LOCALE);
		freelocale((locale_t)board->locale);
	}
	for (size_t i = 0; i < board->tally_count; i++)
		free(board->tallies[i].id);
	free(board->tallies);
	kr_store_close(board->store);
	kr_arena_fini(&board->arena);
	*board = (struct kr_board){ 0 };
}

static struct kr_board_tally *
find_tally(const struct kr_board *board, const char *id)
{
	for (size_t i = 0; i < board->tally_count; i++)
		if (strcmp(board->tallies[i].id, id) == 0)
			return &board->tallies[i];
	return NULL;
}

static int
count_refusal(void *context, const struct kr_event *event)
{
	struct kr_board *board = context;
	struct kr_board_tally *tally = event->item ? find_tally(board, event->item) : NULL;

	board->tallied_seq = event->seq;
	if (!event->item)
		return 0;
	if (!tally) {
		if (board->tally_count == board->tally_room) {
			board->tally_room = board->tally_room ? 2 * board->tally_room : 16;
			board->tallies = kr_xrealloc(board->tallies, board->tally_room * sizeof(*board->tallies));
		}
		tally = &board->tallies[board->tally_count++];
		*tally = (struct kr_board_tally){ .id = kr_xstrdup(event->item) };
	}
	tally->n++;
	return 0;
}

static int
note_seq(void *context, const struct kr_event *event)
{
	*(int64_t *)context = event->seq;
	return 0;
}

static int
note_ms(void *context, const struct kr_event *event)
{
	*(uint64_t *)context = event->ms;
	return 0;
}

/* Before a task: the row changes with each of them, the state does not. */
static int
running_since(struct kr_board *board, const char *id, uint64_t *ms, struct kr_error *err)
{
	const struct kr_event_query query = { .type = "work_item_resumed", .item = id, .newest = 1 };

	return kr_store_events(board->store, &query, note_ms, ms, err) < 0 ? -1 : 0;
}

static unsigned
rank_of(const char *words)
{
	static const char *const order[] = { "needs you", "asks you", "failed", "cut off", "running", "escalated" };
	static const unsigned ranks[] = { 0, 0, 0, 1, 2, 2 };

	for (size_t i = 0; i < KR_COUNT(order); i++)
		if (strcmp(words, order[i]) == 0)
			return ranks[i];
	return 3;
}

static bool
is_hosted(struct kr_board *board, const char *id)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena turn = { 0 };
	struct kr_work work = { .arena = &turn, .host = *board->host };

	return kr_work_is_locked(&work, id);
}

static int
fill_row(struct kr_arena *arena, struct kr_board *board, const struct kr_item_row *item, struct kr_board_row *out,
	struct kr_error *err)
{
	const bool hosted = (kr_work_has_host(item) || item->turn) && is_hosted(board, item->id);
	const struct kr_board_tally *tally = find_tally(board, item->id);

	*out = (struct kr_board_row){
		.id = item->id,
		.title = item->title,
		.status = item->status,
		.place = *item->place ? item->place : "-",
		.words = kr_work_words(item, hosted),
		.until = hosted && item->retry_ms ? kr_work_state(arena, item, hosted) : NULL,
		.has_host = kr_work_has_host(item),
		.progress = item->progress,
		.refused = tally ? tally->n : 0,
		.since_ms = item->changed_ms,
	};
	out->rank = rank_of(out->words);
	return hosted && kr_work_has_host(item) ? running_since(board, item->id, &out->since_ms, err) : 0;
}

/* Whoever has waited longest first. */
static int
by_rank(const void *a, const void *b)
{
	const struct kr_board_row *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (x->since_ms != y->since_ms)
		return x->since_ms < y->since_ms ? -1 : 1;
	return strcmp(x->id, y->id);
}

static int
read_rows(struct kr_board *board, struct kr_error *err)
{
	const struct kr_event_query refusals = { .type = "sandbox_egress_refused", .after = board->tallied_seq };
	struct kr_arena arena = { 0 };
	struct kr_item_rows items = { 0 };
	struct kr_board_row *rows;
	int result;

	if (kr_store_events(board->store, &refusals, count_refusal, board, err) < 0)
		return -1;
	result = kr_work_rows(&arena, board->store, &items, err);
	rows = kr_arena_alloc(&arena, (items.n + 1) * sizeof(*rows));
	for (size_t i = 0; result == 0 && i < items.n; i++)
		result = fill_row(&arena, board, &items.v[i], &rows[i], err);
	if (result < 0) {
		kr_arena_fini(&arena);
		return -1;
	}
	if (items.n)
		qsort(rows, items.n, sizeof(*rows), by_rank);
	kr_arena_fini(&board->arena);
	board->arena = arena;
	board->rows = rows;
	board->n = items.n;
	return 0;
}

static bool
locks_changed(struct kr_board *board)
{
	for (size_t i = 0; i < board->n; i++)
		if (board->rows[i].has_host &&
			is_hosted(board, board->rows[i].id) != (strcmp(board->rows[i].words, "cut off") != 0))
			return true;
	return false;
}

int
kr_board_poll(struct kr_board *board, struct kr_error *err)
{
	const struct kr_event_query newest = { .newest = 1 };
	struct kr_error why = { 0 };
	int64_t seq = board->seq;

	if (!board->store && kr_store_open(board->host->places.run_dir, KR_STORE_READ, &board->store, &why) < 0) {
		if (why.code == KR_E_NOT_FOUND)
			return 0;
		*err = why;
		return -1;
	}
	if (kr_store_events(board->store, &newest, note_seq, &seq, err) < 0)
		return -1;
	if (seq == board->seq && board->rows && board->idle > 0 && board->idle < REREAD_POLLS &&
		!locks_changed(board)) {
		board->idle++;
		return 0;
	}
	board->idle = seq == board->seq;
	board->seq = seq;
	return read_rows(board, err) < 0 ? -1 : 1;
}

const char *
kr_board_ending(struct kr_board *board, const char *id)
{
	struct kr_error ignored = { 0 };
	struct kr_item_row row;

	if (!board->store || kr_store_item_get(&board->arena, board->store, id, &row, &ignored) < 0)
		return "gone";
	return kr_work_words(&row, false);
}

/* ---- laying out ---- */

/* One character of text that is safe already. Returns its bytes; what this terminal may not know is a '?'. */
static size_t
next_character(const char *text, size_t n, const char **bytes, unsigned *width)
{
	mbstate_t state = { 0 };
	wchar_t c = 0;
	size_t len = mbrtowc(&c, text, n, &state);
	int columns = len && len <= n ? wcwidth(c) : -1;

	if (columns >= 0) {
		*bytes = text;
		*width = (unsigned)columns;
		return len;
	}
	*bytes = *text == '\t' ? " " : "?";
	*width = 1;
	return len && len <= n ? len : 1;
}

unsigned
kr_board_put(struct kr_buf *out, const char *text, unsigned columns, bool pad)
{
	size_t n = strnlen(text, TEXT_BYTES), size = 4 * n + 1;
	kr_auto_free char *safe = kr_xcalloc(1, size);
	unsigned used = 0, marks = 0, width;
	const char *bytes;

	n = kr_text_escape(safe, size, text, n);
	for (size_t i = 0, len; i < n; i += len) {
		len = next_character(safe + i, n - i, &bytes, &width);
		if (used + width > columns)
			break;
		marks = width ? 0 : marks + 1;
		if (marks > MARKS_MOST || (!width && !used))
			continue;
		kr_buf_add(out, bytes, bytes == safe + i ? len : 1);
		used += width;
	}
	for (; pad && used < columns; used++)
		kr_buf_adds(out, " ");
	return used;
}

struct line {
	struct kr_buf *out;
	unsigned left;
};

static void
cell(struct line *line, const char *text, unsigned width, bool is_last)
{
	unsigned most = width < line->left ? width : line->left;

	line->left -= kr_board_put(line->out, text, is_last ? line->left : most, !is_last);
	for (unsigned i = 0; i < GAP && !is_last && line->left; i++, line->left--)
		kr_buf_adds(line->out, " ");
}

static void
age(uint64_t since_ms, uint64_t now_ms, char *out, size_t size)
{
	unsigned long long minutes =
		now_ms > since_ms ? (now_ms - since_ms) / 60000 : 0; /* clocks are set back */

	if (!minutes)
		snprintf(out, size, "<1m");
	else if (minutes < 60)
		snprintf(out, size, "%llum", minutes);
	else if (minutes < 2ull * DAY_MINUTES)
		snprintf(out, size, "%lluh", minutes / 60);
	else
		snprintf(out, size, "%llud", minutes / DAY_MINUTES);
}

static const char *
colour_of(const struct kr_board_row *row)
{
	if (strcmp(row->words, "needs you") == 0 || strcmp(row->words, "asks you") == 0)
		return "\033[1;33m";
	if (strcmp(row->words, "failed") == 0 || strcmp(row->words, "cut off") == 0)
		return "\033[1;31m";
	return strcmp(row->words, "running") == 0 ? "\033[32m" : "";
}

struct widths {
	unsigned id, place;
};

static unsigned
grow(unsigned width, const char *text, unsigned most)
{
	size_t n = strlen(text);

	return n > most ? most : n > width ? (unsigned)n : width;
}

static struct widths
measure(const struct kr_board *board)
{
	struct widths w = { ID_MIN, PLACE_MIN };

	for (size_t i = 0; i < board->n; i++) {
		w.id = grow(w.id, board->rows[i].id, ID_MOST);
		w.place = grow(w.place, board->rows[i].place, PLACE_MOST);
	}
	return w;
}

static void
head_line(struct line *line, const struct widths *w)
{
	cell(line, "ID", w->id, false);
	cell(line, "STATE", STATE_WIDTH, false);
	cell(line, "NODE", w->place, false);
	cell(line, "PROGRESS", NUMBER_WIDTH, false);
	cell(line, "REFUSED", NUMBER_WIDTH, false);
	cell(line, "TITLE", 0, true);
}

static void
row_line(struct line *line, const struct widths *w, const struct kr_board_row *row,
	const struct kr_board_layout *layout)
{
	const char *colour = layout->colour ? colour_of(row) : "";
	char state[64], since[32], progress[32] = "-", refused[32] = "-";

	age(row->since_ms, layout->now_ms, since, sizeof(since));
	if (row->until)
		snprintf(state, sizeof(state), "%s", row->until);
	else
		snprintf(state, sizeof(state), "%s since %s", row->words, since);
	if (row->progress >= 0)
		snprintf(progress, sizeof(progress), "%lld", (long long)row->progress);
	if (row->refused)
		snprintf(refused, sizeof(refused), "%ld", row->refused);
	cell(line, row->id, w->id, false);
	kr_buf_adds(line->out, colour);
	cell(line, state, STATE_WIDTH, false);
	kr_buf_adds(line->out, *colour ? "\033[m" : "");
	cell(line, row->place, w->place, false);
	cell(line, progress, NUMBER_WIDTH, false);
	cell(line, refused, NUMBER_WIDTH, false);
	cell(line, row->title, 0, true);
}

static void
summary_line(struct line *line, const struct kr_board *board)
{
	size_t waiting = 0;
	char text[128];

	while (waiting < board->n && board->rows[waiting].rank == 0)
		waiting++;
	snprintf(text, sizeof(text), "kraft: %zu item%s, %zu wait%s for you (q leaves)", board->n,
		board->n == 1 ? "" : "s", waiting, waiting == 1 ? "s" : "");
	cell(line, text, 0, true);
}

/* The last line of the screen has no end: it would scroll. */
static void
end_line(const struct kr_board_layout *layout, unsigned *at, struct kr_buf *out)
{
	if (++*at < layout->lines || !layout->lines)
		kr_buf_adds(out, layout->line_end);
}

static bool
has_room(const struct kr_board_layout *layout, unsigned at)
{
	return !layout->lines || at < layout->lines;
}

void
kr_board_render(const struct kr_board *board, const struct kr_board_layout *layout, struct kr_buf *out)
{
	const unsigned columns = layout->columns < COLUMNS_MAX ? layout->columns : COLUMNS_MAX;
	const struct widths w = measure(board);
	unsigned at = 0;

	if (layout->summary) {
		summary_line(&(struct line){ out, columns }, board);
		end_line(layout, &at, out);
	}
	if (has_room(layout, at)) {
		if (board->n)
			head_line(&(struct line){ out, columns }, &w);
		else
			cell(&(struct line){ out, columns }, "(nothing)", 0, true);
		end_line(layout, &at, out);
	}
	for (size_t i = 0; i < board->n && has_room(layout, at); i++) {
		struct line line = { out, columns };
		char more[64];

		if (layout->lines && at + 1 == layout->lines && i + 1 < board->n) {
			snprintf(more, sizeof(more), "... and %zu more", board->n - i);
			cell(&line, more, 0, true);
		} else
			row_line(&line, &w, &board->rows[i], layout);
		end_line(layout, &at, out);
	}
}
