/* Statements with values and rows with columns, and transactions: what the tables' files share. */
#include "store/rows.h"

#include <stdarg.h>

#include "base/fault.h"

static int
bind(sqlite3_stmt *s, const char *types, va_list ap)
{
	int rc = SQLITE_OK;

	for (int at = 1; types[at - 1] && rc == SQLITE_OK; at++)
		if (types[at - 1] == 't') {
			const char *text = va_arg(ap, const char *);

			rc = text ? sqlite3_bind_text(s, at, text, -1, SQLITE_TRANSIENT) : sqlite3_bind_null(s, at);
		} else {
			KR_BUG_IF(types[at - 1] != 'i');
			rc = sqlite3_bind_int64(s, at, va_arg(ap, int64_t));
		}
	return rc;
}

static sqlite3_stmt *
prepare(struct kr_store *store, const char *what, const char *sql, const char *types, va_list ap,
	struct kr_error *err)
{
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(store->db, sql, -1, &s, NULL);

	rc = rc != SQLITE_OK ? rc : bind(s, types, ap);
	if (rc == SQLITE_OK)
		return s;
	kr_store_failed(store->path, store->db, rc, what, err);
	(void)sqlite3_finalize(s); /* never ran */
	return NULL;
}

int
kr_rows_change(
	struct kr_store *store, const char *what, struct kr_error *err, const char *sql, const char *types, ...)
{
	sqlite3_stmt *s;
	va_list ap;
	int rc;

	va_start(ap, types);
	s = prepare(store, what, sql, types, ap, err);
	va_end(ap);
	if (!s)
		return -1;
	rc = sqlite3_step(s);
	if (rc != SQLITE_DONE)
		kr_store_failed(store->path, store->db, rc, what, err);
	(void)sqlite3_finalize(s); /* repeats what the step said */
	return rc == SQLITE_DONE ? sqlite3_changes(store->db) : -1;
}

int
kr_rows_read(struct kr_arena *arena, struct kr_store *store, struct kr_error *err, size_t size,
	struct kr_rows *out, void (*read)(struct kr_arena *arena, sqlite3_stmt *s, void *row), const char *sql,
	const char *types, ...)
{
	static const char what[] = "cannot read the store";
	size_t room = 0;
	sqlite3_stmt *s;
	va_list ap;
	int rc;

	*out = (struct kr_rows){ 0 };
	va_start(ap, types);
	s = prepare(store, what, sql, types, ap, err);
	va_end(ap);
	if (!s)
		return -1;
	while ((rc = sqlite3_step(s)) == SQLITE_ROW) {
		if (out->n == room) {
			void *grown = kr_arena_alloc(arena, (room = room ? 2 * room : 16) * size);

			if (out->n)
				memcpy(grown, out->v, out->n * size);
			out->v = grown;
		}
		read(arena, s, (char *)out->v + out->n++ * size);
	}
	if (rc != SQLITE_DONE)
		kr_store_failed(store->path, store->db, rc, what, err);
	(void)sqlite3_finalize(s); /* repeats what the step said */
	return rc == SQLITE_DONE ? 0 : -1;
}

const char *
kr_rows_text(struct kr_arena *arena, sqlite3_stmt *s, int at)
{
	const char *text = (const char *)sqlite3_column_text(s, at);

	return text ? kr_arena_dup(arena, text) : NULL;
}

static int
transact(struct kr_store *store, int (*body)(void *context, struct kr_error *err), void *context,
	struct kr_error *err)
{
	static const char what[] = "cannot change the store";

	if (kr_store_exec(store, "BEGIN IMMEDIATE", what, err) < 0)
		return -1;
	if (body(context, err) == 0) {
		KR_FAULT(in_transaction);
		if (kr_store_exec(store, "COMMIT", what, err) == 0)
			return 0;
	}
	if (!sqlite3_get_autocommit(store->db)) /* some errors have rolled back already */
		(void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
	return -1;
}

int
kr_store_transact(struct kr_store *store, int (*body)(void *context, struct kr_error *err), void *context,
	struct kr_error *err)
{
	struct kr_error why = { 0 };

	KR_BUG_IF(store->mode != KR_STORE_WRITE);
	while (transact(store, body, context, &why) < 0)
		if (!kr_store_made_room(store, &why)) {
			if (err)
				*err = why;
			return -1;
		}
	return 0;
}
