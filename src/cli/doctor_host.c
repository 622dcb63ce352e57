/* Rows about this host: who runs kraft, where kraft keeps things, and the programs that it starts. */
#include "cli/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "git/git.h"
#include "os/host.h"
#include "os/listen.h"
#include "session/item.h"
#include "store/store.h"
#include "guest/wire.h"

enum { DISK_FAIL_MIB = 100, DISK_WARN_MIB = 2048, STORE_WARN_MIB = 2048, INODES_FAIL = 500, INODES_WARN = 10000, GIT_MAJOR = 2, GIT_MINOR = 31 };

static bool
is_root(void)
{
	return geteuid() == 0 || getuid() == 0;
}

static void
check_user(struct kr_doctor *d)
{
	if (is_root())
		kr_doctor_add(d, "user", KR_VERDICT_FAIL,
			"run kraft as an ordinary user; in a container make one first, for instance 'useradd -m me'",
			"this is root, and the sandbox does not run as root");
	else
		kr_doctor_add(d, "user", KR_VERDICT_OK, "", "%s, not root", d->host.user);
}

/* ---- places ---- */

/* The first that others may write: the next one is found when the row is asked again. */
static void
mend_directories(struct kr_doctor *d)
{
	const char *const all[] = { d->host.places.kraft_home, d->host.places.run_dir, d->host.places.config_dir };

	for (size_t i = 0; i < KR_COUNT(all); i++) {
		struct stat st;

		if (lstat(all[i], &st) < 0 || !(st.st_mode & 022))
			continue;
		kr_doctor_mend_mode(d, all[i], 0755);
		return;
	}
}

static void
check_directories(struct kr_doctor *d)
{
	struct kr_error err = { 0 };

	if (is_root()) {
		kr_doctor_add(d, "directories", KR_VERDICT_SKIP, "", "root's are not looked at");
		return;
	}
	if (kr_host_look_at_dirs(&d->host, &err) < 0) {
		kr_doctor_add_error(d, "directories", &err);
		mend_directories(d);
		return;
	}
	kr_doctor_add(d, "directories", KR_VERDICT_OK, "", "'%s', '%s' and '%s' are yours alone, or will be when they are made",
		d->host.places.kraft_home, d->host.places.run_dir, d->host.places.config_dir);
}

static void
check_file_system(struct kr_doctor *d)
{
	kr_auto_buf struct kr_buf buf = KR_BUF(8 << 20);
	const char *run = d->host.places.run_dir, *type = NULL;
	enum kr_verdict verdict;

	if (kr_file_read_at(AT_FDCWD, "/proc/self/mountinfo", &buf, NULL) == 0 && buf.data)
		type = kr_mount_type(d->arena, buf.data, run);
	if (!type) {
		kr_doctor_add(d, "run directory", KR_VERDICT_SKIP, "", "the mount table does not name '%s'", run);
		return;
	}
	verdict = kr_mount_verdict(type);
	kr_doctor_add(d, "run directory", verdict,
		verdict == KR_VERDICT_OK ? "" : "set KRAFT_RUN_DIR to a directory on a local disk", "'%s' is on %s%s",
		run, type,
		verdict == KR_VERDICT_FAIL   ? ", a network file system, where locks and sockets do not hold"
		: verdict == KR_VERDICT_WARN ? ", where locks may not hold"
									 : "");
}

/* The nearest directory that is there. */
static const char *
existing(struct kr_doctor *d, const char *path)
{
	while (access(path, F_OK) < 0 && path[1])
		path = kr_path_dirname(d->arena, path);
	return path;
}

static void
check_disk(struct kr_doctor *d)
{
	const char *run = existing(d, d->host.places.run_dir);
	struct statvfs st;
	unsigned long long mib;
	bool no_inodes;

	if (statvfs(run, &st) < 0) {
		kr_doctor_add(d, "disk", KR_VERDICT_SKIP, "", "cannot ask '%s': %s", run, strerror(errno));
		return;
	}
	mib = (unsigned long long)st.f_bavail * st.f_frsize >> 20;
	no_inodes = st.f_files && st.f_favail < INODES_WARN;
	kr_doctor_add(d, "disk",
		mib < DISK_FAIL_MIB || (st.f_files && st.f_favail < INODES_FAIL) ? KR_VERDICT_FAIL
		: mib < DISK_WARN_MIB || no_inodes ? KR_VERDICT_WARN
										   : KR_VERDICT_OK,
		mib < DISK_WARN_MIB || no_inodes ? "make room; worktrees of items are below 'worktrees' there" : "",
		"%llu MiB%s free for '%s'", mib, no_inodes ? " but few inodes" : "", run);
}

static void
check_store(struct kr_doctor *d)
{
	struct kr_error err = { 0 };
	uint64_t bytes = 0;

	if (is_root()) {
		kr_doctor_add(d, "store", KR_VERDICT_SKIP, "", "root has none");
		return;
	}
	if (kr_store_look(d->host.places.run_dir, &bytes, &err) == 0)
		kr_doctor_add(d, "store", bytes >> 20 > STORE_WARN_MIB ? KR_VERDICT_WARN : KR_VERDICT_OK,
			bytes >> 20 > STORE_WARN_MIB ? "kraft admin prune" : "", "%llu KiB", (unsigned long long)bytes >> 10);
	else if (err.code == KR_E_NOT_FOUND)
		kr_doctor_add(d, "store", KR_VERDICT_SKIP, "", "there is none yet");
	else {
		kr_doctor_add_error(d, "store", &err);
		kr_doctor_mend_mode(d, kr_path_join(d->arena, d->host.places.run_dir, KR_STORE_FILE), 0600);
	}
}

static void
check_socket_path(struct kr_doctor *d)
{
	const char *path = kr_path_join(d->arena, kr_session_channel_dir(d->arena, &d->host, "0123456789abcdef"), KG_CHANNEL_SOCKET);
	struct kr_error err = { 0 };

	if (kr_listen_check(path, &err) < 0)
		kr_doctor_add_error(d, "socket path", &err);
	else
		kr_doctor_add(d, "socket path", KR_VERDICT_OK, "", "%zu bytes", strlen(path));
}

/* ---- programs ---- */

static void
check_guest(struct kr_doctor *d)
{
	struct kr_host whole;
	struct kr_error err = { 0 };

	if (kr_host_gather(d->arena, &whole, &err) < 0) {
		kr_doctor_add_error(d, "guest program", &err);
		return;
	}
	d->host.guest_dir = whole.guest_dir;
	kr_doctor_add(d, "guest program", KR_VERDICT_OK, "", "'%s'", whole.guest_dir);
}

static void
check_egress(struct kr_doctor *d)
{
	struct kr_error err = { 0 };
	const char *program = kr_host_egress_program(d->arena, &d->host, &err);

	if (program)
		kr_doctor_add(d, "egress program", KR_VERDICT_OK, "", "'%s'", program);
	else
		kr_doctor_add_error(d, "egress program", &err);
}

static void
check_git(struct kr_doctor *d)
{
	static const char *const argv[] = { "version", NULL };
	const struct kr_git_where where = { .work_dir_fd = -1 };
	kr_auto_buf struct kr_buf out = KR_BUF(4096);
	struct kr_error err = { 0 };
	unsigned major = 0, minor = 0;

	if (kr_git_run(&where, argv, &out, &err) < 0) {
		kr_doctor_add_error(d, "git", &err);
		return;
	}
	if (!out.data || sscanf(out.data, "git version %u.%u", &major, &minor) != 2)
		kr_doctor_add(d, "git", KR_VERDICT_FAIL, "install git 2.31 or later", "'%s' does not say its version", kr_git_program(NULL));
	else if (major < GIT_MAJOR || (major == GIT_MAJOR && minor < GIT_MINOR))
		kr_doctor_add(d, "git", KR_VERDICT_FAIL, "install git 2.31 or later",
			"git %u.%u at '%s' is too old to be told to run no hooks", major, minor, kr_git_program(NULL));
	else
		kr_doctor_add(d, "git", KR_VERDICT_OK, "", "git %u.%u at '%s'", major, minor, kr_git_program(NULL));
}

void
kr_doctor_host(struct kr_doctor *d)
{
	check_user(d);
	check_directories(d);
	check_file_system(d);
	check_disk(d);
	check_store(d);
	check_socket_path(d);
	check_guest(d);
	check_egress(d);
	check_git(d);
}
