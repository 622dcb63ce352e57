/*
 * What bench/server measures of the store from inside of a program.
 *
 *     store one|batch RUN-DIR COUNT    so many events, each by itself or a hundred to a transaction; by the
 * store, and by a plain loop of SQLite on the same tables with the same settings, in turns store items
 * RUN-DIR COUNT        files so many items, as rows alone
 *
 * Prints "name value" lines; the times are of all events together.
 */
#include <err.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "store/work.h"

enum { BATCH = 100, TURN = 1000 };

#define TYPE "sandbox_egress_refused"
#define ITEM "an-item-0123"
#define SESSION "0123456789abcdef"
#define DATA                                                                                                 \
	"{\"host\":\"registry.example\",\"port\":443,\"reason\":\"no rule allows it\",\"session_id\":\"" SESSION \
	"\"}"

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- the store ---- */

struct batch {
	struct kr_store *store;
	long count;
};

static int
add(void *context, struct kr_error *error)
{
	const struct batch *b = context;

	for (long i = 0; i < b->count; i++) {
		struct kr_event event = {
			.ms = 1700000000000, .type = TYPE, .item = ITEM, .session = SESSION, .data = DATA
		};

		if (kr_store_add_event(b->store, &event, error) < 0)
			return -1;
	}
	return 0;
}

static void
by_store(struct kr_store *store, long count, long size)
{
	struct kr_error error = { 0 };

	for (long done = 0; done < count; done += size) {
		struct batch b = { store, size };

		if ((size == 1 ? add(&b, &error) : kr_store_transact(store, add, &b, &error)) < 0)
			errx(1, "%s", error.message);
	}
}

/* ---- plain ---- */

static void
must(int rc, sqlite3 *db)
{
	if (rc != SQLITE_OK && rc != SQLITE_DONE)
		errx(1, "sqlite: %s", sqlite3_errmsg(db));
}

static void
by_loop(sqlite3 *db, sqlite3_stmt *s, long count, long size)
{
	for (long done = 0; done < count; done += size) {
		if (size > 1)
			must(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), db);
		for (long i = 0; i < size; i++) {
			sqlite3_bind_int64(s, 1, 1700000000000);
			sqlite3_bind_text(s, 2, TYPE, -1, SQLITE_STATIC);
			sqlite3_bind_text(s, 3, ITEM, -1, SQLITE_STATIC);
			sqlite3_bind_text(s, 4, SESSION, -1, SQLITE_STATIC);
			sqlite3_bind_text(s, 5, DATA, -1, SQLITE_STATIC);
			must(sqlite3_step(s), db);
			sqlite3_reset(s);
		}
		if (size > 1)
			must(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), db);
	}
}

static sqlite3 *
open_plain(const char *run_dir, sqlite3_stmt **insert)
{
	char path[8192];
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/plain/orchestrator.db", run_dir);
	if (sqlite3_open(path, &db) != SQLITE_OK)
		errx(1, "cannot open '%s'", path);
	must(sqlite3_exec(db,
			 "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 4194304",
			 NULL, NULL, NULL),
		db);
	must(sqlite3_prepare_v2(db,
			 "INSERT INTO events (ms, type, item, session, data) VALUES (?1, ?2, ?3, ?4, ?5)", -1, insert,
			 NULL),
		db);
	return db;
}

/* A store of its own for each: <run_dir>/ours, <run_dir>/plain. */
static struct kr_store *
open_below(const char *run_dir, const char *name)
{
	struct kr_error error = { 0 };
	struct kr_store *store;
	char path[8192];

	snprintf(path, sizeof(path), "%s/%s", run_dir, name);
	if (kr_store_open(path, KR_STORE_WRITE, &store, &error) < 0)
		errx(1, "%s", error.message);
	return store;
}

static void
events(const char *run_dir, long count, long size)
{
	struct kr_store *store = open_below(run_dir, "ours");
	double ours = 0, plain = 0;
	sqlite3_stmt *insert;
	sqlite3 *db;

	kr_store_close(open_below(run_dir, "plain"));
	db = open_plain(run_dir, &insert);
	for (long done = 0; done < count; done += TURN) {
		double start = now(), middle;

		by_store(store, TURN, size);
		middle = now();
		by_loop(db, insert, TURN, size);
		ours += middle - start;
		plain += now() - middle;
	}
	printf("ours %f\nplain %f\n", ours, plain);
	sqlite3_finalize(insert);
	sqlite3_close(db);
	kr_store_close(store);
}

/* ---- items ---- */

static void
items(const char *run_dir, long count)
{
	struct kr_error error = { 0 };
	struct kr_store *store;

	if (kr_store_open(run_dir, KR_STORE_WRITE, &store, &error) < 0)
		errx(1, "%s", error.message);
	for (long i = 0; i < count; i++) {
		static const char *const states[] = { "paused", "needs_human", "active", "completed" };
		char id[32], title[64], chain[1400];
		struct kr_item_row row = { .id = id,
			.title = title,
			.description = "What it is to do.",
			.repo = "/home/me/code",
			.chain_id = "default",
			.chain = chain,
			.policy = "default: {attempts: 3}\n",
			.status = states[i % 4],
			.stop = i % 4 == 1 ? "gate" : "",
			.reason = "",
			.place = i % 4 == 1 ? "review" : "",
			.progress = -1,
			.run = 1,
			.created_ms = 1700000000000 + (uint64_t)i,
			.changed_ms = 1700000000000 + (uint64_t)i };

		snprintf(id, sizeof(id), "item-%05ld", i);
		snprintf(title, sizeof(title), "item number %ld of many", i);
		memset(chain, '#', sizeof(chain) - 1); /* as long as the shipped one is */
		chain[sizeof(chain) - 1] = '\0';
		if (kr_store_item_add(store, &row, &error) < 0)
			errx(1, "%s", error.message);
	}
	kr_store_close(store);
}

int
main(int argc, char **argv)
{
	long count = argc == 4 ? strtol(argv[3], NULL, 10) : 0;

	if (count <= 0)
		errx(2, "usage: store one|batch|items RUN-DIR COUNT");
	if (strcmp(argv[1], "items") == 0)
		items(argv[2], count);
	else
		events(argv[2], count, strcmp(argv[1], "batch") == 0 ? BATCH : 1);
	return 0;
}
