/* Rows about this host: who runs kraft, what a sandbox needs, and where kraft keeps things. */
#include "cli/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/backend.h"
#include "backend/probe.h"
#include "base/fd.h"
#include "base/path.h"
#include "git/git.h"
#include "os/host.h"
#include "os/sys.h"
#include "server/server.h"

enum { DISK_FAIL_MIB = 100, DISK_WARN_MIB = 2048, GIT_MAJOR = 2, GIT_MINOR = 31 };

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

static void
check_directories(struct kr_doctor *d)
{
	struct kr_error err = { 0 };

	if (is_root()) {
		kr_doctor_add(d, "directories", KR_VERDICT_SKIP, "", "root's are not made");
		return;
	}
	if (kr_host_prepare_dirs(&d->host, &err) < 0)
		kr_doctor_add_error(d, "directories", &err);
	else
		kr_doctor_add(d, "directories", KR_VERDICT_OK, "", "'%s', '%s' and '%s' are yours alone",
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

static void
check_disk(struct kr_doctor *d)
{
	const char *run = d->host.places.run_dir;
	struct statvfs st;
	unsigned long long mib;
	bool no_inodes;

	if (statvfs(run, &st) < 0) {
		kr_doctor_add(d, "disk", KR_VERDICT_SKIP, "", "cannot ask '%s': %s", run, strerror(errno));
		return;
	}
	mib = (unsigned long long)st.f_bavail * st.f_frsize >> 20;
	no_inodes = st.f_files && st.f_favail < 10000;
	kr_doctor_add(d, "disk",
		mib < DISK_FAIL_MIB                ? KR_VERDICT_FAIL
		: mib < DISK_WARN_MIB || no_inodes ? KR_VERDICT_WARN
										   : KR_VERDICT_OK,
		mib < DISK_WARN_MIB || no_inodes ? "make room; worktrees of items are below 'worktrees' there" : "",
		"%llu MiB%s free for '%s'", mib, no_inodes ? " but few inodes" : "", run);
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
		kr_doctor_add(d, "git", KR_VERDICT_WARN, "", "'%s' does not say its version", kr_git_program(NULL));
	else if (major < GIT_MAJOR || (major == GIT_MAJOR && minor < GIT_MINOR))
		kr_doctor_add(d, "git", KR_VERDICT_FAIL, "install git 2.31 or later",
			"git %u.%u at '%s' is too old to be told to run no hooks", major, minor, kr_git_program(NULL));
	else
		kr_doctor_add(d, "git", KR_VERDICT_OK, "", "git %u.%u at '%s'", major, minor, kr_git_program(NULL));
}

/* ---- the walls ---- */

static void
check_architecture(struct kr_doctor *d)
{
	enum kr_arch arch = kr_arch_here();

	if (arch == KR_ARCH_UNKNOWN)
		kr_doctor_add(d, "architecture", KR_VERDICT_FAIL, "use an x86_64 or aarch64 machine",
			"there is no system call filter for this one");
	else
		kr_doctor_add(
			d, "architecture", KR_VERDICT_OK, "", "%s has a system call filter", kr_arch_name(arch));
}

/* For Ubuntu 23.10 and later, where a program without a profile gets user namespaces without rights in them.
 */
static const char *
apparmor_fix(struct kr_arena *arena, const char *name, const char *program)
{
	return kr_arena_printf(arena,
		"give the program a profile, as root:\n"
		"cat >/etc/apparmor.d/%s <<'END'\n"
		"abi <abi/4.0>,\n"
		"include <tunables/global>\n"
		"profile %s \"%s\" flags=(unconfined) {\n"
		"  userns,\n"
		"}\n"
		"END\n"
		"apparmor_parser -r /etc/apparmor.d/%s",
		name, name, program, name);
}

static bool
apparmor_restricts(void)
{
	struct kr_namespace_facts facts;

	kr_namespace_facts_read(&facts);
	return facts.apparmor_restricts == 1;
}

static void
check_sandbox(struct kr_doctor *d)
{
	struct kr_error err = { 0 };
	struct kr_bwrap bwrap;
	struct kr_host host = d->host;

	if (is_root())
		host.places.run_dir =
			"/proc/self/none"; /* nowhere to cache the answer: root's directories are not made */
	if (kr_bwrap_probe(d->arena, &host, &bwrap, &err) < 0) {
		kr_doctor_add_error(d, "bubblewrap", &err);
		kr_doctor_add(d, "sandbox", KR_VERDICT_SKIP, "", "without bubblewrap it cannot be tried");
		return;
	}
	kr_doctor_add(d, "bubblewrap", KR_VERDICT_OK, "", "%u.%u.%u at '%s', not setuid, mounts %s",
		bwrap.version[0], bwrap.version[1], bwrap.version[2], bwrap.path,
		bwrap.bind_fd ? "by descriptor" : "by path, compared afterwards");
	if (kr_bwrap_diagnose(&bwrap, &err) == 0)
		kr_doctor_add(d, "sandbox", KR_VERDICT_OK, "", "one was made");
	else if (apparmor_restricts())
		kr_doctor_add(d, "sandbox", KR_VERDICT_FAIL, apparmor_fix(d->arena, "kraft-bwrap", bwrap.path), "%s",
			err.message);
	else
		kr_doctor_add_error(d, "sandbox", &err);
}

/* OS-SEC-08: where it cannot, only the size caps hold. */
static void
check_inode_caps(struct kr_doctor *d)
{
	const char *launcher =
		d->host.guest_dir ? kr_path_join(d->arena, d->host.guest_dir, "init") : "kraft-guest";
	pid_t child = fork(); /* a small process of one thread */
	int status = -1;

	if (child == 0)
		_exit(kr_try_capped_mount());
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
		kr_doctor_add(d, "inode caps", KR_VERDICT_SKIP, "", "could not be tried");
		return;
	}
	if (WEXITSTATUS(status) == 0)
		kr_doctor_add(
			d, "inode caps", KR_VERDICT_OK, "", "/tmp and /dev/shm inside are capped in files and bytes");
	else
		kr_doctor_add(d, "inode caps", KR_VERDICT_WARN,
			apparmor_restricts() ? apparmor_fix(d->arena, "kraft-guest", launcher) : "",
			"/tmp and /dev/shm inside are capped in bytes only, so a worker can fill kernel memory with "
			"empty files: %s",
			strerror(WEXITSTATUS(status)));
}

/* OS-LIM-01 */
static void
check_user_manager(struct kr_doctor *d)
{
	const char *runtime = kr_host_env(&d->host, "XDG_RUNTIME_DIR");
	struct stat st;

	if (!runtime || runtime[0] != '/')
		runtime = kr_arena_printf(d->arena, "/run/user/%u", (unsigned)getuid());
	if (stat(kr_arena_printf(d->arena, "%s/systemd/private", runtime), &st) == 0)
		kr_doctor_add(d, "user manager", KR_VERDICT_OK, "", "systemd runs one for you");
	else
		kr_doctor_add(d, "user manager", KR_VERDICT_SKIP, "",
			"no systemd user manager answers; 'kraft run' does not need one");
}

/* OS-LIM-01 */
static void
check_server(struct kr_doctor *d)
{
	struct kr_server_seen server;

	if (kr_server_find(d->arena, &d->host.places, &server, NULL) < 0)
		kr_doctor_add(d, "server", KR_VERDICT_SKIP, "", "none is running; every command works without");
	else if (server.ends_hosts)
		kr_doctor_add(d, "server", KR_VERDICT_WARN,
			"let a systemd user manager answer (loginctl enable-linger), or start it from a shell",
			"process %d at %s is part of a service and can make no scope: a restart of the service ends what runs",
			server.pid, server.url);
	else
		kr_doctor_add(d, "server", KR_VERDICT_OK, "", "process %d at %s", server.pid, server.url);
}

bool
kr_doctor_host(struct kr_doctor *d)
{
	struct kr_error err = { 0 };

	if (kr_host_gather_places(d->arena, &d->host, &err) < 0) {
		kr_doctor_add_error(d, "home", &err);
		return false;
	}
	check_user(d);
	check_directories(d);
	check_file_system(d);
	check_disk(d);
	check_guest(d);
	check_egress(d);
	check_git(d);
	if (d->host.os != KR_SYSTEM_MACOS)
		check_architecture(d);
	if (d->host.os == KR_SYSTEM_MACOS) {
		kr_doctor_macos(d);
	} else if (kr_doctor_needs_bubblewrap(d)) {
		check_sandbox(d);
		check_inode_caps(d);
	} else {
		kr_doctor_add(d, "bubblewrap", KR_VERDICT_SKIP, "", "no repository is of kind: os");
	}
	check_user_manager(d);
	check_server(d);
	return true;
}
