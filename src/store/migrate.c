/*
 * The version of a store, and from an old one to the present one.
 *
 * The header of the file holds two numbers of ours: application_id says that the file is kraft's,
 * user_version how many steps it has taken. A migration is one transaction: whoever is killed in it leaves
 * the old version behind, and of two that begin at once the second finds nothing left to do. The copy is made
 * inside that transaction, so that no event can come between it and the first step.
 */
#include "store/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"

static int
get_number(struct kr_store *store, const char *sql, int *out, struct kr_error *err)
{
	sqlite3_stmt *statement = NULL;
	int rc = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(statement);
	if (rc == SQLITE_ROW)
		*out = sqlite3_column_int(statement, 0);
	(void)sqlite3_finalize(statement); /* repeats what the step said */
	return rc == SQLITE_ROW ? 0 : kr_store_failed(store->path, store->db, rc, "cannot read the store", err);
}

/* In a transaction: another process may be at its first migration. */
static int
read_version(struct kr_store *store, const struct kr_schema *schema, int *out, struct kr_error *err)
{
	int application = 0, version = 0, tables = 0;

	if (get_number(store, "PRAGMA application_id", &application, err) < 0 ||
		get_number(store, "PRAGMA user_version", &version, err) < 0 ||
		get_number(store, "SELECT count(*) FROM sqlite_schema", &tables, err) < 0)
		return -1;
	if (application != KR_STORE_APPLICATION_ID && (application || version || tables)) {
		kr_fail(
			err, KR_E_REFUSED, "'%s' is not a store of kraft's but another program's database", store->path);
		return kr_hint(err, "move it away; kraft begins a new one");
	}
	if (version > schema->version) {
		kr_fail(err, KR_E_UNSUPPORTED,
			"the store '%s' is of version %d, newer than this kraft, which knows version %d", store->path,
			version, schema->version);
		return kr_hint(err, "use the newer kraft; it kept a copy from before in '%s.before-N'", store->path);
	}
	*out = version;
	return 0;
}

int
kr_store_version(struct kr_store *store, const struct kr_schema *schema, int *out, struct kr_error *err)
{
	int result;

	if (kr_store_exec(store, "BEGIN", "cannot read the store", err) < 0)
		return -1;
	result = read_version(store, schema, out, err);
	if (!sqlite3_get_autocommit(store->db)) /* some errors have ended it already */
		(void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
	return result;
}

/* By SQLite's own backup, which sees what is still in the log. A second connection: one that writes cannot be
 * copied from. */
static int
copy_database(struct kr_store *store, const char *to_path, struct kr_error *err)
{
	sqlite3 *from = NULL, *to = NULL;
	sqlite3_backup *backup = NULL;
	int flags = SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE, result = 0, rc;

	rc = sqlite3_open_v2(store->path, &from, SQLITE_OPEN_READWRITE | flags, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_open_v2(to_path, &to, SQLITE_OPEN_READWRITE | flags, NULL);
	if (rc == SQLITE_OK) {
		(void)sqlite3_busy_timeout(from, KR_STORE_BUSY_MS);
		backup = sqlite3_backup_init(to, "main", from, "main");
		rc = backup ? sqlite3_backup_step(backup, -1) : sqlite3_extended_errcode(to);
	}
	if (rc != SQLITE_DONE) /* before the handle that knows the system's error is gone */
		result = kr_store_failed(store->path, to ? to : from, rc, "cannot keep a copy of the store", err);
	(void)sqlite3_backup_finish(backup); /* repeats what the step said */
	(void)sqlite3_close(to);
	(void)sqlite3_close(from);
	return result;
}

static int
fail_copy(int sys_errno, const char *path, struct kr_error *err)
{
	bool is_full = sys_errno == ENOSPC || sys_errno == EDQUOT;

	return kr_fail_errno(
		err, is_full ? KR_E_LIMIT : KR_E_SYSTEM, sys_errno, "cannot keep a copy of the store '%s'", path);
}

/* Whole under its name or not at all, and there before the first step. */
static int
keep_copy(struct kr_store *store, int new_version, struct kr_error *err)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const char *path = kr_arena_printf(&arena, "%s.before-%d", store->path, new_version);
	const char *part = kr_arena_printf(&arena, "%s.part", path);
	kr_auto_fd int dir_fd = kr_path_open(store->run_dir, O_RDONLY | O_DIRECTORY, err), fd = -1;

	if (dir_fd < 0)
		return -1;
	(void)unlinkat(dir_fd, kr_path_basename(part), 0); /* of one that was killed */
	fd = openat(dir_fd, kr_path_basename(part), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail_copy(errno, store->path, err);
	if (copy_database(store, part, err) < 0) {
		(void)unlinkat(dir_fd, kr_path_basename(part), 0); /* half a copy helps nobody */
		return -1;
	}
	if (fsync(fd) < 0 || renameat(dir_fd, kr_path_basename(part), dir_fd, kr_path_basename(path)) < 0 ||
		fsync(dir_fd) < 0)
		return fail_copy(errno, store->path, err);
	return 0;
}

static int
run_steps(struct kr_store *store, const struct kr_schema *schema, struct kr_error *err)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	int version;

	if (read_version(store, schema, &version, err) < 0)
		return -1;
	if (version > 0 && version < schema->version && keep_copy(store, schema->version, err) < 0)
		return -1;
	for (int v = version; v < schema->version; v++)
		if (kr_store_exec(store, schema->steps[v], "cannot migrate the store", err) < 0)
			return kr_wrap(err, "step %d of the schema", v + 1);
	return kr_store_exec(store,
		kr_arena_printf(&arena, "PRAGMA application_id = %d; PRAGMA user_version = %d",
			KR_STORE_APPLICATION_ID, schema->version),
		"cannot migrate the store", err);
}

int
kr_store_migrate(struct kr_store *store, const struct kr_schema *schema, struct kr_error *err)
{
	store->is_migrating = true;
	if (kr_store_exec(store, "BEGIN IMMEDIATE", "cannot migrate the store", err) < 0)
		return -1;
	if (run_steps(store, schema, err) == 0 &&
		kr_store_exec(store, "COMMIT", "cannot migrate the store", err) == 0)
		return 0;
	if (!sqlite3_get_autocommit(store->db)) /* some errors have rolled back already */
		(void)sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
	return -1;
}
