/*
 * The board of `kraft view watch`: the work items that go on, one row each, read again when something
 * changed, and laid out for a width that no line passes. What a person or a worker wrote is shown with
 * everything visible that could steer a terminal.
 */
#ifndef KR_CLI_BOARD_H
#define KR_CLI_BOARD_H

#include "base/buf.h"
#include "work/work.h"

struct kr_board_row {
	const char *id, *title, *status, *place;
	const char *words; /* as a person reads its state: "needs you", "running", ... */
	const char *until; /* the same with how long it lasts; NULL: nobody knows */
	bool has_host;     /* a process should be at it */
	int64_t progress;  /* -1: none was told */
	long refused;      /* sandbox_egress_refused events of the item */
	uint64_t since_ms; /* when it came into this state */
	unsigned rank;     /* 0: a person is waited for */
};

struct kr_board {
	const struct kr_host *host;
	struct kr_store *store; /* NULL: there is none yet */
	struct kr_board_row *rows;
	size_t n;
	struct kr_arena arena;          /* of rows: replaced whole at each reading */
	struct kr_board_tally *tallies; /* heap; never forgotten: a count only rises */
	size_t tally_count, tally_room;
	int64_t seq, tallied_seq;
	unsigned idle; /* polls since the rows were read */
	void *locale;  /* locale_t */
};

/* host is borrowed. fini accepts a board that is all zero. */
void kr_board_init(struct kr_board *board, const struct kr_host *host);
void kr_board_fini(struct kr_board *board);

/* 1: the rows were read again; 0: nothing happened. Without a store there are no rows. Pointers of rows live
 * until then. */
int kr_board_poll(struct kr_board *board, struct kr_error *err);

/* How an item stands that was on the board and is no more: its words; "gone" when nobody knows. In the
 * board's arena. */
const char *kr_board_ending(struct kr_board *board, const char *id);

struct kr_board_layout {
	unsigned columns, lines; /* no line is wider, nor are there more; lines 0: any number */
	bool colour, summary;    /* summary: a first line that counts */
	const char *line_end;
	uint64_t now_ms;
};
void kr_board_render(const struct kr_board *board, const struct kr_board_layout *layout, struct kr_buf *out);

/* At most so many columns of a text that came from outside, made safe, padded when asked for. Returns the
 * columns. */
unsigned kr_board_put(struct kr_buf *out, const char *text, unsigned columns, bool pad);

#endif
