/*
 * Events: one INSERT, which is its own transaction, and pages of them read back.
 *
 * A page is read whole and the reading transaction ended before the first of its events is shown: a visitor
 * may wait for ever (a pager that nobody scrolls), and the write-ahead log cannot shrink below a reader.
 */
#include "store/internal.h"

#include <jansson.h>

enum { PAGE_EVENTS = 256, PAGE_BYTES = 1 << 20 };

static int
failed(struct kr_store *store, int rc, const char *what, struct kr_error *err)
{
	return kr_store_failed(store->path, store->db, rc, what, err);
}

static int
prepare_insert(struct kr_store *store, struct kr_error *err)
{
	int rc;

	if (store->insert)
		return 0;
	rc = sqlite3_prepare_v3(store->db,
		"INSERT INTO events (ms, type, item, session, data) VALUES (?1, ?2, ?3, ?4, ?5)", -1,
		SQLITE_PREPARE_PERSISTENT, &store->insert, NULL);
	return rc == SQLITE_OK ? 0 : failed(store, rc, "cannot add an event to the store", err);
}

static int
bind_text(sqlite3_stmt *statement, int at, const char *text)
{
	return text ? sqlite3_bind_text(statement, at, text, -1, SQLITE_STATIC)
				: sqlite3_bind_null(statement, at);
}

static int
insert(sqlite3_stmt *s, const struct kr_event *event)
{
	int rc = sqlite3_bind_int64(s, 1, (sqlite3_int64)(event->ms & INT64_MAX));

	rc = rc != SQLITE_OK ? rc : bind_text(s, 2, event->type);
	rc = rc != SQLITE_OK ? rc : bind_text(s, 3, event->item);
	rc = rc != SQLITE_OK ? rc : bind_text(s, 4, event->session);
	rc = rc != SQLITE_OK ? rc : bind_text(s, 5, event->data);
	rc = rc != SQLITE_OK ? rc : sqlite3_step(s);
	(void)sqlite3_clear_bindings(s); /* the event is the caller's */
	(void)sqlite3_reset(s);          /* repeats what the step said */
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Not by a CHECK of the table: SQLite lets no schema call its JSON functions while trusted_schema is off. */
static int
check_event(const struct kr_event *event, struct kr_error *err)
{
	json_t *data;
	bool is_object;

	if (strlen(event->data) > KR_EVENT_DATA_BYTES)
		return kr_fail(err, KR_E_LIMIT, "the event '%s' has more than %d bytes of data", event->type,
			KR_EVENT_DATA_BYTES);
	data = json_loads(event->data, 0, NULL);
	is_object = json_is_object(data);
	json_decref(data);
	if (!is_object || !*event->type)
		return kr_fail(err, KR_E_REFUSED, "an event needs a type, and data that is one JSON object");
	return 0;
}

static int
add(struct kr_store *store, struct kr_event *event, struct kr_error *err)
{
	int rc;

	if (prepare_insert(store, err) < 0)
		return -1;
	rc = insert(store->insert, event);
	if (rc != SQLITE_OK)
		return failed(store, rc, "cannot add an event to the store", err);
	event->seq = sqlite3_last_insert_rowid(store->db);
	return 0;
}

int
kr_store_add_event(struct kr_store *store, struct kr_event *event, struct kr_error *err)
{
	struct kr_error why = { 0 };
	const bool was_in_transaction = !sqlite3_get_autocommit(store->db);

	KR_BUG_IF(store->mode != KR_STORE_WRITE || !event->type || !event->data);
	if (check_event(event, err) < 0)
		return -1;
	/* Within a transaction the whole of it is done again, by who began it. */
	while (add(store, event, &why) < 0)
		if (!sqlite3_get_autocommit(store->db) || was_in_transaction || !kr_store_made_room(store, &why)) {
			if (err)
				*err = why;
			return -1;
		}
	return 0;
}

/* ---- reading ---- */

/* Statement text for those filters that are set, so that each has its index. The parameters are always the
 * same. */
static sqlite3_stmt *
prepare_query(struct kr_store *store, const struct kr_event_query *q, const char *before, const char *after,
	struct kr_error *err)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const char *sql = kr_arena_printf(&arena, "%s FROM events WHERE seq > ?1%s%s%s %s", before,
		q->type ? " AND type = ?2" : "", q->item ? " AND item = ?3" : "",
		q->session ? " AND session = ?4" : "", after);
	sqlite3_stmt *s = NULL;
	int rc = sqlite3_prepare_v2(store->db, sql, -1, &s, NULL);

	rc = rc != SQLITE_OK || !q->type ? rc : bind_text(s, 2, q->type);
	rc = rc != SQLITE_OK || !q->item ? rc : bind_text(s, 3, q->item);
	rc = rc != SQLITE_OK || !q->session ? rc : bind_text(s, 4, q->session);
	rc = rc != SQLITE_OK ? rc : sqlite3_bind_int64(s, 1, q->after);
	if (rc == SQLITE_OK)
		return s;
	failed(store, rc, "cannot read the store", err);
	(void)sqlite3_finalize(s); /* never ran */
	return NULL;
}

/* Moves q->after up to just before the newest `newest` that match. */
static int
skip_to_newest(struct kr_store *store, struct kr_event_query *q, struct kr_error *err)
{
	sqlite3_stmt *s = prepare_query(store, q, "SELECT seq", "ORDER BY seq DESC LIMIT 1 OFFSET ?5", err);
	int rc;

	if (!s)
		return -1;
	rc = sqlite3_bind_int64(s, 5, q->newest - 1);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(s);
	if (rc == SQLITE_ROW)
		q->after = sqlite3_column_int64(s, 0) - 1;
	else if (rc != SQLITE_DONE)
		failed(store, rc, "cannot read the store", err);
	(void)sqlite3_finalize(s); /* repeats what the step said */
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : -1;
}

struct page {
	struct kr_arena arena;
	size_t n, bytes;
	struct kr_event event[PAGE_EVENTS];
};

static const char *
column_text(struct page *page, sqlite3_stmt *s, int at)
{
	const char *text = (const char *)sqlite3_column_text(s, at);

	page->bytes += (size_t)sqlite3_column_bytes(s, at);
	return text ? kr_arena_dup(&page->arena, text) : NULL;
}

static void
add_to_page(struct page *page, sqlite3_stmt *s)
{
	struct kr_event *event = &page->event[page->n++];

	event->seq = sqlite3_column_int64(s, 0);
	event->ms = (uint64_t)sqlite3_column_int64(s, 1);
	event->type = column_text(page, s, 2);
	event->item = column_text(page, s, 3);
	event->session = column_text(page, s, 4);
	event->data = column_text(page, s, 5);
}

/* Fills an empty page, and moves q->after to its last event; a page without any is the end. */
static int
read_page(struct kr_store *store, struct kr_event_query *q, struct page *page, struct kr_error *err)
{
	sqlite3_stmt *s =
		prepare_query(store, q, "SELECT seq, ms, type, item, session, data", "ORDER BY seq", err);
	int rc = SQLITE_ROW;

	if (!s)
		return -1;
	while (page->n < PAGE_EVENTS && page->bytes < PAGE_BYTES && (rc = sqlite3_step(s)) == SQLITE_ROW) {
		add_to_page(page, s);
		if (!page->event[page->n - 1].type || !page->event[page->n - 1].data)
			rc = SQLITE_CORRUPT; /* the columns are NOT NULL */
		if (rc != SQLITE_ROW)
			break;
		q->after = page->event[page->n - 1].seq;
	}
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		failed(store, rc, "cannot read the store", err);
	(void)sqlite3_finalize(s); /* repeats what the step said */
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : -1;
}

long
kr_store_events(struct kr_store *store, const struct kr_event_query *query,
	int (*visit)(void *context, const struct kr_event *event), void *context, struct kr_error *err)
{
	struct kr_event_query q = *query;
	struct page *page = kr_xcalloc(1, sizeof(*page));
	long visited = 0;
	bool is_over = false, has_failed = q.newest > 0 && skip_to_newest(store, &q, err) < 0;

	while (!has_failed && !is_over) {
		page->n = page->bytes = 0;
		has_failed = read_page(store, &q, page, err) < 0;
		is_over = page->n == 0;
		for (size_t i = 0; i < page->n && !is_over && !has_failed; i++, visited++)
			is_over = visit(context, &page->event[i]) < 0;
		kr_arena_fini(&page->arena);
	}
	free(page);
	return has_failed ? -1 : visited;
}
