/* Table dependencies: what has to be completed before an item begins. */
#include "store/rows.h"

int
kr_store_dependency_add(struct kr_store *store, const char *item, const char *on, struct kr_error *err)
{
	return kr_rows_change(store, "cannot record what the item depends on", err,
			   "INSERT OR IGNORE INTO dependencies (item, on_item) VALUES (?1, ?2)", "tt", item, on) < 0
			   ? -1
			   : 0;
}

int
kr_store_dependency_remove(struct kr_store *store, const char *item, const char *on, struct kr_error *err)
{
	return kr_rows_change(store, "cannot change what the item depends on", err,
			   "DELETE FROM dependencies WHERE item = ?1 AND on_item = ?2", "tt", item, on) < 0
			   ? -1
			   : 0;
}

static void
read_dependency(struct kr_arena *arena, sqlite3_stmt *s, void *row)
{
	struct kr_dependency_row *r = row;

	*r = (struct kr_dependency_row){ kr_rows_text(arena, s, 0), kr_rows_text(arena, s, 1) };
}

int
kr_store_dependencies(struct kr_arena *arena, struct kr_store *store, const char *item,
	struct kr_dependency_rows *out, struct kr_error *err)
{
	struct kr_rows rows;

	if (kr_rows_read(arena, store, err, sizeof(*out->v), &rows, read_dependency,
			"SELECT i.id, i.status FROM dependencies d JOIN items i ON i.id = d.on_item WHERE d.item = ?1"
			" ORDER BY i.created_ms, i.id",
			"t", item) < 0)
		return -1;
	*out = (struct kr_dependency_rows){ rows.v, rows.n };
	return 0;
}
