/* Tables threads and comments: what a person and a worker say to each other about an item. */
#include "store/rows.h"

int
kr_store_thread_add(struct kr_store *store, const struct kr_thread_row *r, struct kr_error *err)
{
	return kr_rows_change(store, "cannot keep the comment", err,
			   "INSERT INTO threads (id, item, file, line, must_fix, is_open, ms) VALUES (?1, ?2, ?3, "
			   "nullif(?4, 0), ?5, ?6, ?7)",
			   "tttiiii", r->id, r->item, r->file, r->line, (int64_t)r->must_fix, (int64_t)r->is_open,
			   (int64_t)r->ms) < 0
			   ? -1
			   : 0;
}

int
kr_store_thread_set_open(struct kr_store *store, const char *id, bool is_open, struct kr_error *err)
{
	int n = kr_rows_change(store, "cannot change the thread", err,
		"UPDATE threads SET is_open = ?2 WHERE id = ?1", "ti", id, (int64_t)is_open);

	if (n < 0)
		return -1;
	return n == 1 ? 0 : kr_fail(err, KR_E_NOT_FOUND, "there is no thread '%s'", id);
}

int
kr_store_comment_add(
	struct kr_store *store, const char *thread, const struct kr_comment_row *r, struct kr_error *err)
{
	return kr_rows_change(store, "cannot keep the comment", err,
			   "INSERT INTO comments (thread, author, claim, body, ms) VALUES (?1, ?2, ?3, ?4, ?5)", "tttti",
			   thread, r->author, r->claim, r->body, (int64_t)r->ms) < 0
			   ? -1
			   : 0;
}

static void
read_thread(struct kr_arena *arena, sqlite3_stmt *s, void *row)
{
	struct kr_thread_row *r = row;

	*r = (struct kr_thread_row){
		.id = kr_rows_text(arena, s, 0),
		.item = kr_rows_text(arena, s, 1),
		.file = kr_rows_text(arena, s, 2),
		.line = sqlite3_column_int64(s, 3),
		.must_fix = sqlite3_column_int(s, 4),
		.is_open = sqlite3_column_int(s, 5),
		.ms = (uint64_t)sqlite3_column_int64(s, 6),
	};
}

static void
read_comment(struct kr_arena *arena, sqlite3_stmt *s, void *row)
{
	struct kr_comment_row *r = row;

	*r = (struct kr_comment_row){
		.author = kr_rows_text(arena, s, 0),
		.body = kr_rows_text(arena, s, 1),
		.claim = kr_rows_text(arena, s, 2),
		.ms = (uint64_t)sqlite3_column_int64(s, 3),
	};
}

int
kr_store_threads(struct kr_arena *arena, struct kr_store *store, const char *item, struct kr_thread_rows *out,
	struct kr_error *err)
{
	struct kr_rows rows;

	if (kr_rows_read(arena, store, err, sizeof(*out->v), &rows, read_thread,
			"SELECT id, item, file, ifnull(line, 0), must_fix, is_open, ms FROM threads WHERE item = ?1 "
			"ORDER BY ms, id",
			"t", item) < 0)
		return -1;
	*out = (struct kr_thread_rows){ rows.v, rows.n };
	for (size_t i = 0; i < out->n; i++) {
		if (kr_rows_read(arena, store, err, sizeof(struct kr_comment_row), &rows, read_comment,
				"SELECT author, body, claim, ms FROM comments WHERE thread = ?1 ORDER BY n", "t",
				out->v[i].id) < 0)
			return -1;
		out->v[i].comments = rows.v;
		out->v[i].comment_count = rows.n;
	}
	return 0;
}

static void
read_id(struct kr_arena *arena, sqlite3_stmt *s, void *row)
{
	*(const char **)row = kr_rows_text(arena, s, 0);
}

int
kr_store_thread_item(struct kr_arena *arena, struct kr_store *store, const char *thread, const char **item,
	struct kr_error *err)
{
	struct kr_rows rows;

	if (kr_rows_read(arena, store, err, sizeof(*item), &rows, read_id,
			"SELECT item FROM threads WHERE id = ?1", "t", thread) < 0)
		return -1;
	if (!rows.n)
		return kr_fail(err, KR_E_NOT_FOUND, "there is no thread '%s'", thread);
	*item = *(const char **)rows.v;
	return 0;
}
