/*
 * What must outlive a crash: events now, work items and their sessions later. One SQLite file,
 * <run_dir>/orchestrator.db (0600), write-ahead log, STRICT tables, migrations numbered in user_version. An
 * event whose number was given back survives kill -9 and a power cut (synchronous=FULL).
 *
 * Any number of processes open it at once; a writer waits some seconds for another one.
 *
 * Errors: KR_E_UNSUPPORTED: the store is newer than this program (both versions are named), or it lies on a
 * network file system, where SQLite's locks do not hold. KR_E_REFUSED: the file is somebody else's, a link,
 * or open to others. KR_E_BUSY: another process held it for longer than a writer waits. KR_E_SYSTEM without
 * an errno: the file is damaged; nothing was changed. KR_E_LIMIT with ENOSPC: the disk is full; nothing is
 * lost and the same call works once there is room. Before that a reserve beside the database is used up
 * (reserve.c): what tells of a full disk can still be written.
 *
 * A copy of the file is kept beside it (<name>.before-N) before a migration to version N, except of an empty
 * one.
 */
#ifndef KR_STORE_STORE_H
#define KR_STORE_STORE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

struct kr_store;
#define KR_STORE_FILE "orchestrator.db" /* in run_dir */

/* KR_STORE_READ: KR_E_NOT_FOUND when there is no store yet; never migrates. KR_STORE_WRITE: makes, migrates.
 */
enum kr_store_mode { KR_STORE_READ, KR_STORE_WRITE };
int kr_store_open(const char *run_dir, enum kr_store_mode mode, struct kr_store **out, struct kr_error *err);
void kr_store_close(struct kr_store *store); /* NULL is allowed */
/* What kr_store_open would refuse of the file, without opening it as a database, and how large it is: writes nothing. */
int kr_store_look(const char *run_dir, uint64_t *bytes, struct kr_error *err);

struct kr_event {
	int64_t seq;         /* global and rising, from 1; given by the store */
	uint64_t ms;         /* since the epoch */
	const char *type;    /* "sandbox_egress_refused", ... */
	const char *item;    /* NULL: none */
	const char *session; /* NULL: none */
	const char *data;    /* one JSON object */
};
enum { KR_EVENT_DATA_BYTES = 64 << 10 };
/* A line is at most so long: every byte of the data escaped, and the rest. */
enum { KR_EVENT_JSON_BYTES = 6 * KR_EVENT_DATA_BYTES + 4096 };

/* Adds {"seq", "ms", "type", "item", "session", "data"} as one line of ASCII. */
void kr_event_json(const struct kr_event *event, struct kr_buf *out);
struct json_t;
struct json_t *kr_text_or_null(const char *text); /* JSON's null for NULL and for "" */

/* Fills event->seq in. When it returns 0 the event is on the disk. */
int kr_store_add_event(struct kr_store *store, struct kr_event *event, struct kr_error *err);

struct kr_event_query {
	int64_t after;                     /* seq greater than this */
	const char *type, *item, *session; /* NULL: all */
	int64_t newest;                    /* only the last so many of those; 0: all */
};
/*
 * Oldest first; what visit is given lives until it returns; visit returns -1 to stop. Returns the number
 * visited, or -1. A visitor may take its time: no transaction is open while it runs.
 */
long kr_store_events(struct kr_store *store, const struct kr_event_query *query,
	int (*visit)(void *context, const struct kr_event *event), void *context, struct kr_error *err);

#endif
