/* Between the files of this room, and for its tests. */
#ifndef KR_STORE_INTERNAL_H
#define KR_STORE_INTERNAL_H

#include <sqlite3.h>

#include "store/store.h"

/* steps[v] leads from version v to v + 1. The real one is made of schema/NNN.sql. */
struct kr_schema {
	const char *const *steps;
	int version;
};
extern const struct kr_schema kr_store_schema;

enum {
	KR_STORE_BUSY_MS = 5000,
	KR_STORE_RESERVE_BYTES = 4 << 20,
	KR_STORE_APPLICATION_ID = 0x6b726674, /* "krft", in the file's header */
};

struct kr_store {
	sqlite3 *db;
	char *run_dir, *path; /* <run_dir>/orchestrator.db */
	enum kr_store_mode mode;
	sqlite3_stmt *insert; /* NULL until the first event is added */
	bool is_migrating;    /* a copy of everything is not what the reserve is for */
	bool has_given;       /* of the reserve: it is to be made again */
};

/* kr_store_open with another schema: tests have older and newer programs. */
int kr_store_open_as(const char *run_dir, enum kr_store_mode mode, const struct kr_schema *schema,
	struct kr_store **out, struct kr_error *err);

/* What SQLite just answered, as an error of ours: "what 'path': ...". Never called with SQLITE_OK. */
int kr_store_failed(const char *path, sqlite3 *db, int rc, const char *what, struct kr_error *err);
/* Statements whose results do not matter. */
int kr_store_exec(struct kr_store *store, const char *sql, const char *what, struct kr_error *err);

/* place.c: the directory and the files are ours alone and on a disk of this machine. KR_STORE_WRITE makes the
 * file. */
int kr_store_check_place(
	const char *run_dir, const char *path, enum kr_store_mode mode, struct kr_error *err);
/* A type of file system as the mount table names it ("nfs4", "fuse.sshfs"): do SQLite's locks and shared
 * memory fail? */
bool kr_store_is_network_type(const char *type);

/* reserve.c: room for events and states while the disk is full. */
#define KR_STORE_RESERVE "orchestrator.reserve"
/* Makes it, or what is missing of it, when there is plenty of room. */
void kr_reserve_keep(const char *run_dir);
/* Gives a part of it back to the file system; false: nothing is left. */
bool kr_reserve_give(const char *run_dir);
/* Whether what failed for want of room is to be done again, with a part of the reserve. Clears *err then. */
bool kr_store_made_room(struct kr_store *store, struct kr_error *err);

/* migrate.c. KR_E_REFUSED: the file is not kraft's; KR_E_UNSUPPORTED: newer than the schema. 0: nothing is in
 * it yet. */
int kr_store_version(
	struct kr_store *store, const struct kr_schema *schema, int *version, struct kr_error *err);
/* Keeps a copy and runs the steps that are missing: all or none. Another process may do the same at the same
 * time. */
int kr_store_migrate(struct kr_store *store, const struct kr_schema *schema, struct kr_error *err);

#endif
