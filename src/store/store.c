/*
 * Opening the store: the place is checked, SQLite opens it with everything off that a hostile file could use,
 * the version is compared, and only then is anything written.
 *
 * Trusted: the directory, once place.c has looked. Not trusted: the bytes of the file, which may be damaged,
 * or of another program or another time.
 */
#include "store/internal.h"

#include <errno.h>
#include <poll.h>

#include "base/path.h"
#include "os/timer.h"

/* The system's own number behind an error. The connection knows it only at times; then the files do. */
static int
system_errno(sqlite3 *db)
{
	int sys = sqlite3_system_errno(db);
	sqlite3_file *log = NULL;

	if (!sys)
		(void)sqlite3_file_control(db, "main", SQLITE_FCNTL_LAST_ERRNO, &sys);
	if (!sys && sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK && log &&
		log->pMethods)
		(void)log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &sys);
	return sys;
}

/* A write that found no room, in every form in which SQLite tells of it. */
static bool
is_full(int rc, int sys)
{
	return (rc & 0xff) == SQLITE_FULL || sys == ENOSPC || sys == EDQUOT || sys == EFBIG;
}

int
kr_store_failed(const char *path, sqlite3 *db, int rc, const char *what, struct kr_error *err)
{
	int primary = rc & 0xff, sys = 0;

	if (db && (primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN || primary == SQLITE_READONLY))
		sys = system_errno(db);
	if (is_full(rc, sys)) {
		kr_fail(err, KR_E_DISK_FULL, "%s '%s': the disk is full", what, path);
		if (err)
			err->sys_errno = ENOSPC; /* whatever said it: another limit is none of the disk */
		return kr_hint(err, "make room and do it again; what the store holds is whole");
	}
	if (primary == SQLITE_BUSY || primary == SQLITE_LOCKED) {
		kr_fail(err, KR_E_BUSY, "%s '%s': another process has held it for %d s", what, path,
			KR_STORE_BUSY_MS / 1000);
		return kr_hint(err, "see who has it open: fuser -v '%s'", path);
	}
	if (primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB) {
		kr_fail(err, KR_E_STORE_DAMAGED, "%s '%s': the file is damaged (%s)", what, path, sqlite3_errstr(rc));
		return kr_hint(err, "keep a copy of it with its -wal; 'sqlite3 FILE .recover' reads what is left; "
							"without it kraft begins a new store");
	}
	if (primary == SQLITE_NOMEM)
		return kr_fail_errno(err, KR_E_SYSTEM, ENOMEM, "%s '%s'", what, path);
	if (sys)
		return kr_fail_errno(err, KR_E_SYSTEM, sys, "%s '%s'", what, path);
	return kr_fail(err, KR_E_SYSTEM, "%s '%s': %s", what, path,
		db && sqlite3_extended_errcode(db) == rc ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
}

int
kr_store_exec(struct kr_store *store, const char *sql, const char *what, struct kr_error *err)
{
	int rc = sqlite3_exec(store->db, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : kr_store_failed(store->path, store->db, rc, what, err);
}

/*
 * What a file may not do to us: run functions or virtual tables named in its schema (trusted_schema), let
 * statements write its inner tables (defensive), have cells that lie over each other (cell_size_check). No
 * mmap: a file that shrinks would be a SIGBUS instead of an error. synchronous=FULL: a commit has reached the
 * disk when it returns.
 */
static int
set_up(struct kr_store *store, struct kr_error *err)
{
	static const struct {
		int what, value;
	} config[] = { { SQLITE_DBCONFIG_DEFENSIVE, 1 }, { SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0 },
		{ SQLITE_DBCONFIG_DQS_DML, 0 }, { SQLITE_DBCONFIG_DQS_DDL, 0 }, { SQLITE_DBCONFIG_ENABLE_TRIGGER, 0 },
		{ SQLITE_DBCONFIG_ENABLE_VIEW, 0 }, { SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0 } };

	for (size_t i = 0; i < KR_COUNT(config); i++) {
		int rc = sqlite3_db_config(store->db, config[i].what, config[i].value, (int *)NULL);

		if (rc != SQLITE_OK)
			return kr_store_failed(store->path, store->db, rc, "cannot set up the store", err);
	}
	(void)sqlite3_limit(store->db, SQLITE_LIMIT_ATTACHED, 0);
	(void)sqlite3_limit(store->db, SQLITE_LIMIT_LENGTH, 16 << 20);
	(void)sqlite3_busy_timeout(store->db, KR_STORE_BUSY_MS);
	return kr_store_exec(store,
		"PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY; PRAGMA foreign_keys "
		"= ON;"
		"PRAGMA synchronous = FULL; PRAGMA journal_size_limit = 4194304",
		"cannot open the store", err);
}

/* Tells whether the answer was "wal": elsewhere SQLite stays with another kind of log and says so in place of
 * failing. */
static int
is_wal(void *context, int n, char **values, char **names)
{
	(void)names;
	*(bool *)context = n == 1 && values[0] && strcmp(values[0], "wal") == 0;
	return 0;
}

/* SQLite does not wait by itself here when several processes begin on a new file at once. */
static int
use_write_ahead_log(struct kr_store *store, struct kr_error *err)
{
	int64_t until = kr_clock_ms() + KR_STORE_BUSY_MS;
	bool is_used = false;

	for (;;) {
		int rc = sqlite3_exec(store->db, "PRAGMA journal_mode = WAL", is_wal, &is_used, NULL);

		if (rc == SQLITE_OK && is_used)
			return 0;
		if (rc == SQLITE_OK)
			return kr_fail(
				err, KR_E_UNSUPPORTED, "the file system of '%s' cannot hold a write-ahead log", store->path);
		if ((rc & 0xff) != SQLITE_BUSY || kr_clock_ms() > until)
			return kr_store_failed(store->path, store->db, rc, "cannot set up the store", err);
		(void)poll(NULL, 0, 10); /* a nap */
	}
}

static int
bring_to_version(struct kr_store *store, const struct kr_schema *schema, struct kr_error *err)
{
	int version;

	if (kr_store_version(store, schema, &version, err) < 0)
		return -1;
	if (store->mode == KR_STORE_WRITE) {
		if (use_write_ahead_log(store, err) < 0)
			return -1;
		return version < schema->version ? kr_store_migrate(store, schema, err) : 0;
	}
	if (version == 0)
		return kr_fail(err, KR_E_NOT_FOUND, "there is nothing in the store '%s' yet", store->path);
	if (version < schema->version) {
		kr_fail(err, KR_E_UNSUPPORTED, "the store '%s' is of version %d, and this kraft reads version %d",
			store->path, version, schema->version);
		return kr_hint(err, "'kraft run' brings it up to date, and keeps a copy");
	}
	return kr_store_exec(store, "PRAGMA query_only = ON", "cannot open the store", err);
}

static int
open_database(struct kr_store *store, const struct kr_schema *schema, struct kr_error *err)
{
	/* A reader as well opens for writing: it may have to bring back what a killed writer left in the log. */
	int rc = sqlite3_open_v2(store->path, &store->db,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE | SQLITE_OPEN_PRIVATECACHE,
		NULL);

	if (rc != SQLITE_OK)
		return kr_store_failed(store->path, store->db, rc, "cannot open the store", err);
	return set_up(store, err) < 0 ? -1 : bring_to_version(store, schema, err);
}

static void
close_database(struct kr_store *store)
{
	(void)sqlite3_finalize(store->insert); /* repeats what its last step said */
	KR_BUG_IF(sqlite3_close(store->db) != SQLITE_OK);
	store->insert = NULL;
	store->db = NULL;
}

bool
kr_store_made_room(struct kr_store *store, struct kr_error *err)
{
	if (err->sys_errno != ENOSPC || store->is_migrating || !kr_reserve_give(store->run_dir))
		return false;
	store->has_given = true;
	*err = (struct kr_error){ 0 };
	return true;
}

/* A full disk has no room for the log and the shared memory either, which a reader needs too. */
static int
open_with_room(struct kr_store *store, const struct kr_schema *schema, struct kr_error *err)
{
	struct kr_error why = { 0 };

	while (open_database(store, schema, &why) < 0) {
		close_database(store);
		if (!kr_store_made_room(store, &why)) {
			if (err)
				*err = why;
			return -1;
		}
	}
	if (store->mode == KR_STORE_WRITE)
		kr_reserve_keep(store->run_dir);
	return 0;
}

int
kr_store_open_as(const char *run_dir, enum kr_store_mode mode, const struct kr_schema *schema,
	struct kr_store **out, struct kr_error *err)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const char *path = kr_path_join(&arena, run_dir, KR_STORE_FILE);
	struct kr_store *store;

	KR_BUG_IF(!path);
	if (kr_store_check_place(run_dir, path, mode, err) < 0)
		return -1;
	store = kr_xcalloc(1, sizeof(*store));
	store->run_dir = kr_xstrdup(run_dir);
	store->path = kr_xstrdup(path);
	store->mode = mode;
	if (open_with_room(store, schema, err) < 0) {
		kr_store_close(store);
		return -1;
	}
	*out = store;
	return 0;
}

int
kr_store_open(const char *run_dir, enum kr_store_mode mode, struct kr_store **out, struct kr_error *err)
{
	return kr_store_open_as(run_dir, mode, &kr_store_schema, out, err);
}

void
kr_store_close(struct kr_store *store)
{
	if (!store)
		return;
	close_database(store);
	free(store->path);
	free(store->run_dir);
	free(store);
}
