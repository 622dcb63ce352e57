/* Table asks: a worker's questions whether it may use a tool, and what became of each. */
#include "store/rows.h"

static const char *const state_names[] = {
#define X(state, name) [KR_ASK_##state] = name,
	KR_ASK_STATES(X)
#undef X
};

const char *
kr_ask_state_name(enum kr_ask_state state)
{
	return state_names[state];
}

/* An unknown one is as good as expired: it gives nothing. */
static enum kr_ask_state
state_of(const char *name)
{
	for (size_t i = 0; i < KR_COUNT(state_names); i++)
		if (strcmp(state_names[i], name) == 0)
			return (enum kr_ask_state)i;
	return KR_ASK_EXPIRED;
}

int
kr_store_ask_add(struct kr_store *store, const struct kr_ask_row *r, struct kr_error *err)
{
	return kr_rows_change(store, "cannot keep the ask", err,
			   "INSERT INTO asks (id, item, session, tool, input, state, ms, until_ms) VALUES (?1, ?2, ?3, "
			   "?4, ?5, ?6, "
			   "?7, ?8)",
			   "ttttttii", r->id, r->item, r->session, r->tool, r->input, state_names[r->state],
			   (int64_t)r->ms, (int64_t)r->until_ms) < 0
			   ? -1
			   : 0;
}

int
kr_store_ask_move(struct kr_store *store, const char *id, enum kr_ask_state from, enum kr_ask_state to,
	const char *note, uint64_t ms, struct kr_error *err)
{
	const bool ends = to != KR_ASK_OPEN && to != KR_ASK_ALLOWED;

	return kr_rows_change(store, "cannot change the ask", err,
		"UPDATE asks SET state = ?3, note = ifnull(?4, note), answered_ms = ifnull(answered_ms, ?5),"
		" input = substr(input, 1, ?6) WHERE id = ?1 AND state = ?2",
		"ttttii", id, state_names[from], state_names[to], note, (int64_t)ms,
		(int64_t)(ends ? KR_ASK_KEPT_BYTES : INT64_MAX));
}

static void
read_ask(struct kr_arena *arena, sqlite3_stmt *s, void *row)
{
	struct kr_ask_row *r = row;

	*r = (struct kr_ask_row){
		.id = kr_rows_text(arena, s, 0),
		.item = kr_rows_text(arena, s, 1),
		.session = kr_rows_text(arena, s, 2),
		.tool = kr_rows_text(arena, s, 3),
		.input = kr_rows_text(arena, s, 4),
		.state = state_of(kr_rows_text(arena, s, 5)),
		.note = kr_rows_text(arena, s, 6),
		.ms = (uint64_t)sqlite3_column_int64(s, 7),
		.until_ms = (uint64_t)sqlite3_column_int64(s, 8),
		.answered_ms = (uint64_t)sqlite3_column_int64(s, 9),
	};
}

#define ASK_COLUMNS \
	"SELECT id, item, session, tool, input, state, note, ms, until_ms, ifnull(answered_ms, 0) FROM asks "

int
kr_store_asks(struct kr_arena *arena, struct kr_store *store, const struct kr_ask_query *q,
	struct kr_ask_rows *out, struct kr_error *err)
{
	struct kr_rows rows;

	if (kr_rows_read(arena, store, err, sizeof(*out->v), &rows, read_ask,
			ASK_COLUMNS "WHERE (?1 IS NULL OR item = ?1) AND (?2 IS NULL OR session = ?2)"
						" AND (?3 = 0 OR state = 'open') ORDER BY ms, id",
			"tti", q->item, q->session, (int64_t)q->open_only) < 0)
		return -1;
	*out = (struct kr_ask_rows){ rows.v, rows.n };
	return 0;
}

static void
read_count(struct kr_arena *arena, sqlite3_stmt *s, void *row)
{
	int64_t *counts = row;

	(void)arena;
	counts[0] = sqlite3_column_int64(s, 0);
	counts[1] = sqlite3_column_int64(s, 1);
}

int
kr_store_asks_count(
	struct kr_store *store, const char *session, int64_t *open, int64_t *all, struct kr_error *err)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_rows rows;
	const int64_t *counts;

	if (kr_rows_read(&arena, store, err, 2 * sizeof(int64_t), &rows, read_count,
			"SELECT ifnull(sum(state = 'open'), 0), count(*) FROM asks WHERE session = ?1", "t", session) < 0)
		return -1;
	counts = rows.v;
	*open = rows.n ? counts[0] : 0;
	*all = rows.n ? counts[1] : 0;
	return 0;
}

int
kr_store_ask_get(struct kr_arena *arena, struct kr_store *store, const char *id, struct kr_ask_row *out,
	struct kr_error *err)
{
	const struct kr_ask_row *v;
	struct kr_rows rows;

	if (kr_rows_read(arena, store, err, sizeof(*out), &rows, read_ask,
			ASK_COLUMNS "WHERE substr(id, 1, length(?1)) = ?1 ORDER BY id <> ?1, ms DESC LIMIT 2", "t",
			id) < 0)
		return -1;
	v = rows.v;
	if (rows.n && *id && (rows.n == 1 || strcmp(v[0].id, id) == 0)) {
		*out = v[0];
		return 0;
	}
	kr_fail(
		err, KR_E_NOT_FOUND, rows.n && *id ? "'%s' can be more than one ask" : "there is no ask '%s'", id);
	return kr_hint(err, "'kraft view asks' shows those that are open");
}
