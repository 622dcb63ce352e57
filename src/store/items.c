/* Tables items, marks and sessions. */
#include "store/rows.h"

#include "base/text.h"

/* ---- items ---- */

int
kr_store_item_add(struct kr_store *store, const struct kr_item_row *r, struct kr_error *err)
{
	return kr_rows_change(store, "cannot file the item", err,
			   "INSERT INTO items (id, title, description, repo, base, chain_id, chain, policy, worker, "
			   "status, stop, reason,"
			   " place, steer, run, created_ms, changed_ms, layer, harness)"
			   " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)",
			   "ttttttttttttttiiitt", r->id, r->title, r->description, r->repo, r->base, r->chain_id, r->chain,
			   r->policy, r->worker, r->status, r->stop, r->reason, r->place, r->steer, r->run,
			   (int64_t)r->created_ms, (int64_t)r->changed_ms, r->layer, r->harness) < 0
			   ? -1
			   : 0;
}

int
kr_store_item_set(struct kr_store *store, const struct kr_item_row *r, struct kr_error *err)
{
	int n = kr_rows_change(store, "cannot change the item", err,
		"UPDATE items SET status = ?2, stop = ?3, reason = ?4, place = ?5, steer = ?6, progress = nullif(?7, "
		"-1), run = ?8,"
		" changed_ms = ?9, turn = ?10, retry_ms = nullif(?11, 0) WHERE id = ?1",
		"ttttttiiiti", r->id, r->status, r->stop, r->reason, r->place, r->steer, r->progress, r->run,
		(int64_t)r->changed_ms, r->turn, (int64_t)r->retry_ms);

	if (n < 0)
		return -1;
	return n == 1 ? 0 : kr_fail(err, KR_E_NO_ITEM, "there is no item '%s'", r->id);
}

int
kr_store_item_set_progress(struct kr_store *store, const char *id, int64_t progress, struct kr_error *err)
{
	int n = kr_rows_change(store, "cannot change the item", err,
		"UPDATE items SET progress = ?2 WHERE id = ?1", "ti", id, progress);

	if (n < 0)
		return -1;
	return n == 1 ? 0 : kr_fail(err, KR_E_NO_ITEM, "there is no item '%s'", id);
}

#define ITEM_COLUMNS(chain, policy)                                                                         \
	"SELECT id, title, description, repo, base, chain_id, " chain ", " policy                               \
	", worker, status, stop, reason, place, steer, turn, layer, harness, ifnull(progress, -1), run, created_ms, "      \
	"changed_ms, ifnull(retry_ms, 0), "                                                                       \
	"(SELECT count(*) FROM asks WHERE item = items.id AND state = 'open') FROM items "

static void
read_item(struct kr_arena *arena, sqlite3_stmt *s, void *row)
{
	struct kr_item_row *r = row;
	const char **texts[] = { &r->id, &r->title, &r->description, &r->repo, &r->base, &r->chain_id, &r->chain,
		&r->policy, &r->worker, &r->status, &r->stop, &r->reason, &r->place, &r->steer, &r->turn, &r->layer, &r->harness };
	int at = 0;

	for (; at < (int)KR_COUNT(texts); at++)
		*texts[at] = kr_rows_text(arena, s, at);
	r->progress = sqlite3_column_int64(s, at++);
	r->run = sqlite3_column_int64(s, at++);
	r->created_ms = (uint64_t)sqlite3_column_int64(s, at++);
	r->changed_ms = (uint64_t)sqlite3_column_int64(s, at++);
	r->retry_ms = (uint64_t)sqlite3_column_int64(s, at++);
	r->asks = sqlite3_column_int64(s, at);
}

static const char *
list_ids(struct kr_arena *arena, const struct kr_item_row *v, size_t n)
{
	const char *list = "";

	for (size_t i = 0; i < n; i++)
		list = kr_arena_printf(arena, "%s%s'%s'", list, i ? ", " : "", v[i].id);
	return list;
}

int
kr_store_item_get(struct kr_arena *arena, struct kr_store *store, const char *id, struct kr_item_row *out,
	struct kr_error *err)
{
	const struct kr_item_row *v;
	struct kr_rows rows;

	/* Not LIKE, which has letters of its own. */
	if (kr_rows_read(arena, store, err, sizeof(*out), &rows, read_item,
			ITEM_COLUMNS(
				"chain", "policy") "WHERE substr(id, 1, length(?1)) = ?1 ORDER BY id <> ?1, id LIMIT 6",
			"t", id) < 0)
		return -1;
	v = rows.v;
	if (!rows.n || !*id) {
		kr_fail(err, KR_E_NO_ITEM, "there is no item '%s'", id);
		return kr_hint(err, "'kraft view list' shows them");
	}
	if (rows.n > 1 && strcmp(v[0].id, id) != 0) {
		kr_fail(err, KR_E_USAGE, "'%s' can be more than one item", id);
		return kr_hint(err, "say more of it: %s%s", list_ids(arena, v, rows.n < 5 ? rows.n : 5),
			rows.n > 5 ? ", ..." : "");
	}
	*out = v[0];
	return 0;
}

int
kr_store_items(struct kr_arena *arena, struct kr_store *store, struct kr_item_rows *out, struct kr_error *err)
{
	struct kr_rows rows;

	if (kr_rows_read(arena, store, err, sizeof(*out->v), &rows, read_item,
			ITEM_COLUMNS("''", "''") "ORDER BY created_ms, id", "") < 0)
		return -1;
	*out = (struct kr_item_rows){ rows.v, rows.n };
	return 0;
}

int
kr_store_items_except(struct kr_arena *arena, struct kr_store *store, const char *const statuses[3],
	struct kr_item_rows *out, struct kr_error *err)
{
	struct kr_rows rows;

	if (kr_rows_read(arena, store, err, sizeof(*out->v), &rows, read_item,
			ITEM_COLUMNS("''", "''") "WHERE status NOT IN (?1, ?2, ?3) ORDER BY created_ms, id", "ttt",
			statuses[0], statuses[1], statuses[2]) < 0)
		return -1;
	*out = (struct kr_item_rows){ rows.v, rows.n };
	return 0;
}

/* ---- marks ---- */

int
kr_store_mark_add(struct kr_store *store, const char *item, const struct kr_mark_row *r, struct kr_error *err)
{
	return kr_rows_change(store, "cannot record what became of it", err,
			   "INSERT INTO marks (item, run, path, kind, session, note, ms, fingerprint) VALUES (?1, ?2, "
			   "?3, ?4, "
			   "?5, ?6, ?7, ?8)",
			   "tittttit", item, r->run, r->path, r->kind, r->session, r->note, (int64_t)r->ms,
			   r->fingerprint) < 0
			   ? -1
			   : 0;
}

static void
read_mark(struct kr_arena *arena, sqlite3_stmt *s, void *row)
{
	struct kr_mark_row *r = row;

	*r = (struct kr_mark_row){
		.path = kr_rows_text(arena, s, 0),
		.kind = kr_rows_text(arena, s, 1),
		.session = kr_rows_text(arena, s, 2),
		.note = kr_rows_text(arena, s, 3),
		.run = sqlite3_column_int64(s, 4),
		.ms = (uint64_t)sqlite3_column_int64(s, 5),
		.fingerprint = kr_rows_text(arena, s, 6),
	};
}

int
kr_store_marks(struct kr_arena *arena, struct kr_store *store, const char *item, struct kr_mark_rows *out,
	struct kr_error *err)
{
	struct kr_rows rows;

	if (kr_rows_read(arena, store, err, sizeof(*out->v), &rows, read_mark,
			"SELECT path, kind, session, note, run, ms, fingerprint FROM marks WHERE item = ?1 ORDER BY n",
			"t", item) < 0)
		return -1;
	*out = (struct kr_mark_rows){ rows.v, rows.n };
	return 0;
}

/* ---- sessions ---- */

int
kr_store_session_add(struct kr_store *store, const struct kr_session_row *r, struct kr_error *err)
{
	return kr_rows_change(store, "cannot record the session", err,
			   "INSERT INTO sessions (id, item, run, path, round, status, created_ms, harness) VALUES (?1, ?2, ?3, "
			   "?4, ?5, ?6, ?7, ?8)",
			   "ttititit", r->id, r->item, r->run, r->path, r->round, r->status, (int64_t)r->created_ms, r->harness) < 0
			   ? -1
			   : 0;
}

int
kr_store_session_set(struct kr_store *store, const struct kr_session_row *r, struct kr_error *err)
{
	const struct kr_usage *u = &r->usage;
	const int64_t unknown = -1;

	return kr_rows_change(store, "cannot record the session", err,
			   "UPDATE sessions SET status = ?2, reason = ?3, ended_ms = nullif(?4, 0), harness = ?5, model = ?6, "
			   "conversation = ?7, tokens_in = nullif(?8, -1), tokens_out = nullif(?9, -1), "
			   "tokens_cache_write = nullif(?10, -1), tokens_cache_read = nullif(?11, -1), "
			   "cost_micro = nullif(?12, -1) WHERE id = ?1",
			   "tttitttiiiii", r->id, r->status, r->reason, (int64_t)r->ended_ms, r->harness, r->model,
			   r->conversation, u->is_known ? u->input : unknown, u->is_known ? u->output : unknown,
			   u->is_known ? u->cache_write : unknown, u->is_known ? u->cache_read : unknown,
			   u->has_cost ? u->cost_micro : unknown) < 0
			   ? -1
			   : 0;
}

static void
read_usage(sqlite3_stmt *s, int at, struct kr_usage *out)
{
	*out = (struct kr_usage){
		.is_known = sqlite3_column_type(s, at) != SQLITE_NULL,
		.input = sqlite3_column_int64(s, at),
		.output = sqlite3_column_int64(s, at + 1),
		.cache_write = sqlite3_column_int64(s, at + 2),
		.cache_read = sqlite3_column_int64(s, at + 3),
		.has_cost = sqlite3_column_type(s, at + 4) != SQLITE_NULL,
		.cost_micro = sqlite3_column_int64(s, at + 4),
	};
}

static void
read_session(struct kr_arena *arena, sqlite3_stmt *s, void *row)
{
	struct kr_session_row *r = row;

	*r = (struct kr_session_row){
		.id = kr_rows_text(arena, s, 0),
		.item = kr_rows_text(arena, s, 1),
		.path = kr_rows_text(arena, s, 2),
		.status = kr_rows_text(arena, s, 3),
		.reason = kr_rows_text(arena, s, 4),
		.run = sqlite3_column_int64(s, 5),
		.round = sqlite3_column_int64(s, 6),
		.created_ms = (uint64_t)sqlite3_column_int64(s, 7),
		.ended_ms = (uint64_t)sqlite3_column_int64(s, 8),
		.harness = kr_rows_text(arena, s, 9),
		.model = kr_rows_text(arena, s, 10),
		.conversation = kr_rows_text(arena, s, 11),
	};
	read_usage(s, 12, &r->usage);
}

int
kr_store_sessions(struct kr_arena *arena, struct kr_store *store, const char *item,
	struct kr_session_rows *out, struct kr_error *err)
{
	struct kr_rows rows;

	if (kr_rows_read(arena, store, err, sizeof(*out->v), &rows, read_session,
			"SELECT id, item, path, status, reason, run, round, created_ms, ifnull(ended_ms, 0), "
			"harness, model, conversation, tokens_in, tokens_out, tokens_cache_write, tokens_cache_read, cost_micro FROM sessions"
			" WHERE item = ?1 ORDER BY created_ms, id",
			"t", item) < 0)
		return -1;
	*out = (struct kr_session_rows){ rows.v, rows.n };
	return 0;
}
