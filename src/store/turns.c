/* Table turns: sessions that are to find out why their item stopped, and what each was asked. */
#include "store/rows.h"

int
kr_store_turn_add(struct kr_store *store, const struct kr_turn_row *r, struct kr_error *err)
{
	return kr_rows_change(store, "cannot record the turn", err,
			   "INSERT INTO turns (session, item, thread, turn, is_auto, message, retry, retry_state)"
			   " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
			   "ttiiittt", r->session, r->item, r->thread, r->turn, (int64_t)r->is_auto, r->message, r->retry,
			   r->retry_state) < 0
			   ? -1
			   : 0;
}

int
kr_store_turn_set(struct kr_store *store, const struct kr_turn_row *r, struct kr_error *err)
{
	int n = kr_rows_change(store, "cannot record what the turn asked for", err,
		"UPDATE turns SET retry = ?2, retry_state = ?3 WHERE session = ?1", "ttt", r->session, r->retry,
		r->retry_state);

	if (n < 0)
		return -1;
	return n == 1 ? 0 : kr_fail(err, KR_E_NOT_FOUND, "there is no turn '%s'", r->session);
}

static void
read_turn(struct kr_arena *arena, sqlite3_stmt *s, void *row)
{
	struct kr_turn_row *r = row;

	*r = (struct kr_turn_row){
		.session = kr_rows_text(arena, s, 0),
		.item = kr_rows_text(arena, s, 1),
		.thread = sqlite3_column_int64(s, 2),
		.turn = sqlite3_column_int64(s, 3),
		.is_auto = sqlite3_column_int(s, 4),
		.message = kr_rows_text(arena, s, 5),
		.retry = kr_rows_text(arena, s, 6),
		.retry_state = kr_rows_text(arena, s, 7),
	};
}

int
kr_store_turns(struct kr_arena *arena, struct kr_store *store, const char *item, struct kr_turn_rows *out,
	struct kr_error *err)
{
	struct kr_rows rows;

	if (kr_rows_read(arena, store, err, sizeof(*out->v), &rows, read_turn,
			"SELECT session, item, thread, turn, is_auto, message, retry, retry_state FROM turns"
			" WHERE item = ?1 ORDER BY thread, turn",
			"t", item) < 0)
		return -1;
	*out = (struct kr_turn_rows){ rows.v, rows.n };
	return 0;
}
