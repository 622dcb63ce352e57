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
#include <sys/stat.h>
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

/* Whether a file with these numbers in its header is one for this program; `tables`: what it holds. */
static int
check_numbers(const char *path, const struct kr_schema *schema, int application, int version, int tables, struct kr_error *err)
{
	if (application != KR_STORE_APPLICATION_ID && (application || version || tables)) {
		kr_fail(
			err, KR_E_REFUSED, "'%s' is not a store of kraft's but another program's database", path);
		return kr_hint(err, "move it away; kraft begins a new one");
	}
	if (version > schema->version) {
		kr_fail(err, KR_E_STORE_NEWER,
			"the store '%s' is of version %d, newer than this kraft, which knows version %d", path,
			version, schema->version);
		return kr_hint(err, "use the newer kraft; it kept a copy from before in '%s.before-N'", path);
	}
	return 0;
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
	if (check_numbers(store->path, schema, application, version, tables, err) < 0)
		return -1;
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

/* ---- from outside ---- */

static int
big_endian(const unsigned char *b)
{
	return (int)((unsigned)b[0] << 24 | (unsigned)b[1] << 16 | (unsigned)b[2] << 8 | b[3]);
}

/* Of a file that SQLite wrote, where it says these numbers lie (sqlite.org/fileformat.html, 1.3). */
int
kr_store_look(const char *run_dir, uint64_t *bytes, struct kr_error *err)
{
	enum { HEADER = 100, VERSION_AT = 60, APPLICATION_AT = 68 };
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const char *path = kr_path_join(&arena, run_dir, KR_STORE_FILE);
	static const char magic[16] = "SQLite format 3";
	unsigned char header[HEADER];
	ssize_t got;
	kr_auto_fd int fd = -1;
	struct stat st;

	if (!path)
		return kr_fail(err, KR_E_LIMIT, "the path of '%s' is too long", run_dir);
	if (kr_store_check_place(run_dir, path, KR_STORE_READ, err) < 0)
		return -1;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot open '%s'", path);
	got = pread(fd, header, HEADER, 0);
	if (got == HEADER && memcmp(header, magic, sizeof(magic)) != 0)
		return kr_fail(err, KR_E_REFUSED, "'%s' is no database", path);
	if (got == HEADER &&
		check_numbers(path, &kr_store_schema, big_endian(header + APPLICATION_AT), big_endian(header + VERSION_AT), 1, err) < 0)
		return -1;
	*bytes = (uint64_t)st.st_size;
	if (fstatat(AT_FDCWD, kr_arena_printf(&arena, "%s-wal", path), &st, AT_SYMLINK_NOFOLLOW) == 0)
		*bytes += (uint64_t)st.st_size;
	return 0;
}
