/* Between the tables' files. Types of values: 't' a text or NULL, 'i' an int64_t. */
#ifndef KR_STORE_ROWS_H
#define KR_STORE_ROWS_H

#include "store/internal.h"
#include "store/work.h"

/* The number of rows changed, or -1. */
int kr_rows_change(
	struct kr_store *store, const char *what, struct kr_error *err, const char *sql, const char *types, ...);

struct kr_rows {
	void *v; /* in the arena */
	size_t n;
};
/* All rows at once: no transaction is open afterwards. `size` bytes each, filled in by `read`. */
int kr_rows_read(struct kr_arena *arena, struct kr_store *store, struct kr_error *err, size_t size,
	struct kr_rows *out, void (*read)(struct kr_arena *arena, sqlite3_stmt *s, void *row), const char *sql,
	const char *types, ...);
const char *kr_rows_text(struct kr_arena *arena, sqlite3_stmt *s, int at); /* NULL for NULL */

#endif
