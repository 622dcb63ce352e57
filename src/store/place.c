/*
 * Where the store lies, looked at before SQLite gets the path.
 *
 * The directory is reached without following a link, is ours, and nobody else can write it: then nobody else
 * can put another file in a checked one's place afterwards. The database and what SQLite keeps beside it
 * (-wal, -shm, -journal) are regular files of ours, with one name each, closed to others.
 *
 * The files are looked at by name and never opened here: POSIX drops all of a process's locks on a file when
 * it closes any descriptor of it, so an open-and-close would take the locks of a store that this process
 * already holds.
 */
#include "store/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/portable.h"
#include "base/text.h"
#include "os/sys.h"

/* Write-ahead logging needs memory shared by all who have the file open; another machine cannot share it. */
bool
kr_store_is_network_type(const char *type)
{
	static const char *const networks[] = { "nfs", "nfs4", "cifs", "smb3", "smbfs", "smb2", "ncpfs", "9p",
		"afs", "ceph", "coda", "gfs2", "ocfs2", "lustre", "glusterfs", "beegfs", "gpfs", "orangefs", "pvfs2",
		"virtiofs", "vboxsf", "vmhgfs", "prl_fs", "afpfs", "webdav" };
	/* FUSE hides what is behind it: those that are known to lie on a disk of this machine, and no other. */
	static const char *const local_fuse[] = { "fuse.fuse-overlayfs", "fuse.gocryptfs", "fuse.encfs",
		"fuse.cryfs", "fuse.securefs", "fuse.ext2", "fuse.ext4", "fuse.zfs" };

	for (size_t i = 0; i < KR_COUNT(networks); i++)
		if (strcmp(type, networks[i]) == 0)
			return true;
	for (size_t i = 0; i < KR_COUNT(local_fuse); i++)
		if (strcmp(type, local_fuse[i]) == 0)
			return false;
	return strcmp(type, "fuse") == 0 || kr_text_has_prefix(type, "fuse.");
}

static int
check_directory(int dir_fd, const char *run_dir, struct kr_error *err)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const char *type;
	struct stat st;

	if (fstat(dir_fd, &st) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot look at '%s'", run_dir);
	if (st.st_uid != geteuid()) {
		kr_fail(err, KR_E_REFUSED, "the run directory '%s' belongs to another user", run_dir);
		return kr_hint(err, "chown it to you, or choose another place with KRAFT_RUN_DIR");
	}
	if (st.st_mode & 022) {
		kr_fail(err, KR_E_REFUSED, "the run directory '%s' can be written by others (mode %03o)", run_dir,
			(unsigned)(st.st_mode & 0777));
		return kr_hint(err, "chmod 700 '%s'", run_dir);
	}
	type = kr_file_system_type(&arena, dir_fd);
	if (kr_store_is_network_type(type)) {
		kr_fail(err, KR_E_UNSUPPORTED,
			"the run directory '%s' lies on a network file system (%s), where a database is damaged", run_dir,
			type);
		return kr_hint(err, "set KRAFT_RUN_DIR to a directory on a disk of this machine");
	}
	return 0;
}

/* 0 when there is no such file as well. */
static int
check_file(int dir_fd, const char *name, const char *path, off_t *size, struct kr_error *err)
{
	struct stat st;

	*size = 0;
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot look at '%s'", path);
	if (!S_ISREG(st.st_mode) || st.st_nlink > 1) {
		kr_fail(err, KR_E_REFUSED, "the store's file '%s' is %s", path,
			S_ISLNK(st.st_mode)    ? "a symbolic link"
			: !S_ISREG(st.st_mode) ? "no regular file"
								   : "a hard link: it has another name");
		return kr_hint(err, "something else put it there; look at it, then move it away");
	}
	if (st.st_uid != geteuid()) {
		kr_fail(err, KR_E_REFUSED, "the store's file '%s' belongs to another user", path);
		return kr_hint(err, "something else put it there; look at it, then move it away");
	}
	if (st.st_mode & 077) {
		kr_fail(err, KR_E_REFUSED, "the store's file '%s' is open to others (mode %03o)", path,
			(unsigned)(st.st_mode & 0777));
		return kr_hint(err, "chmod 600 '%s'", path);
	}
	*size = st.st_size;
	return 0;
}

/* SQLite takes the log beside an empty database for a leftover and deletes it. Ours is never empty once it
 * has a log. */
static int
check_files(int dir_fd, const char *path, struct kr_error *err)
{
	static const char *const beside[] = { "-shm", "-journal", "-wal", "" };
	off_t size = 0, log_size = 0;

	for (size_t i = 0; i < KR_COUNT(beside); i++) {
		char full[KR_PATH_MAX + 16];

		log_size = size;
		snprintf(full, sizeof(full), "%s%s", path, beside[i]);
		if (check_file(dir_fd, kr_path_basename(full), full, &size, err) < 0)
			return -1;
	}
	if (size == 0 && log_size > 0) {
		kr_fail(err, KR_E_SYSTEM, "the store '%s' is damaged: it is empty and its log is not", path);
		return kr_hint(err,
			"put the file back if it was moved; else move '%s-wal' away, and kraft begins a new store", path);
	}
	return 0;
}

/* A new file is only good for what follows when its name, too, outlives a power cut. */
static int
make_file(int dir_fd, const char *path, struct kr_error *err)
{
	kr_auto_fd int fd =
		openat(dir_fd, kr_path_basename(path), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	kr_auto_fd int sync_fd = -1;

	if (fd < 0 && errno == EEXIST)
		return 0;
	if (fd < 0 && (errno == ENOSPC || errno == EDQUOT))
		return kr_fail_errno(err, KR_E_LIMIT, errno, "cannot create the store '%s'", path);
	if (fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot create the store '%s'", path);
	sync_fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (sync_fd < 0 || fsync(sync_fd) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot create the store '%s'", path);
	return 0;
}

static int
not_found(const char *path, struct kr_error *err)
{
	return kr_fail(err, KR_E_NOT_FOUND, "there is no store '%s' yet", path);
}

int
kr_store_check_place(const char *run_dir, const char *path, enum kr_store_mode mode, struct kr_error *err)
{
	kr_auto_fd int dir_fd = -1;
	struct kr_error why = { 0 };

	dir_fd = kr_path_open(run_dir, KR_O_PLACE, &why);
	if (dir_fd < 0 && mode == KR_STORE_WRITE && why.sys_errno == ENOENT)
		dir_fd = kr_path_make_dirs(run_dir, &why);
	if (dir_fd < 0 && mode == KR_STORE_READ && why.sys_errno == ENOENT)
		return not_found(path, err);
	if (dir_fd < 0) {
		if (err)
			*err = why;
		return -1;
	}
	if (check_directory(dir_fd, run_dir, err) < 0)
		return -1;
	if (mode == KR_STORE_WRITE && make_file(dir_fd, path, err) < 0)
		return -1;
	if (faccessat(dir_fd, kr_path_basename(path), F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		return not_found(path, err);
	return check_files(dir_fd, path, err);
}
