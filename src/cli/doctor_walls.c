/* Rows about the walls of kind: os on this host: whether they can be raised is found out by raising them. */
#include "cli/doctor.h"

#include <errno.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/backend.h"
#include "backend/probe.h"
#include "base/path.h"
#include "os/sys.h"

enum { KERNEL_MAJOR = 5, KERNEL_MINOR = 10 };

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

/* Whether it can stand in the profile as it is. */
static bool
is_plain(const char *path)
{
	return path[strspn(path, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._+-")] == '\0';
}

/* For Ubuntu 23.10 and later, where a program without a profile gets user namespaces without rights in them. Only this one gets
 * them back. */
static void
add_apparmor(struct kr_doctor *d, const char *check, enum kr_verdict verdict, const char *name, const char *program, const char *detail)
{
	const char *script = kr_arena_printf(d->arena,
		"cat >/etc/apparmor.d/%s <<'END'\n"
		"abi <abi/4.0>,\n"
		"include <tunables/global>\n"
		"profile %s \"%s\" flags=(unconfined) {\n"
		"  userns,\n"
		"}\n"
		"END\n"
		"apparmor_parser -r /etc/apparmor.d/%s",
		name, name, program, name);

	kr_doctor_add(d, check, verdict, kr_arena_printf(d->arena, "give the program a profile, as root:\n%s", script), "%s", detail);
	if (is_plain(program))
		kr_doctor_mend(d, (struct kr_mend){ .script = script });
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

	host.places.run_dir = "/proc/self/none"; /* asked anew, and the answer is kept nowhere */
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
		add_apparmor(d, "sandbox", KR_VERDICT_FAIL, "kraft-bwrap", bwrap.path, err.message);
	else
		kr_doctor_add_error(d, "sandbox", &err);
}

/* What a launcher does to itself, done by a process of its own: 0, an errno, or -1. */
static int
in_child(int (*try_it)(void))
{
	pid_t child = fork(); /* of a small process of one thread */
	int status = -1;

	if (child == 0)
		_exit(try_it());
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void
add_missing_caps(struct kr_doctor *d, int failed)
{
	const char *launcher = d->host.guest_dir ? kr_path_join(d->arena, d->host.guest_dir, "init") : "kraft-guest";
	const char *detail = kr_arena_printf(d->arena,
		"/tmp and /dev/shm inside are capped in bytes only, so a worker can fill kernel memory with empty files: %s", strerror(failed));

	if (apparmor_restricts())
		add_apparmor(d, "inode caps", KR_VERDICT_WARN, "kraft-guest", launcher, detail);
	else
		kr_doctor_add(d, "inode caps", KR_VERDICT_WARN, "", "%s", detail);
}

/* OS-SEC-08: where it cannot, only the size caps hold. */
static void
check_inode_caps(struct kr_doctor *d)
{
	const int failed = in_child(kr_try_capped_mount);

	if (failed < 0)
		kr_doctor_add(d, "inode caps", KR_VERDICT_SKIP, "", "could not be tried");
	else if (failed == 0)
		kr_doctor_add(
			d, "inode caps", KR_VERDICT_OK, "", "/tmp and /dev/shm inside are capped in files and bytes");
	else
		add_missing_caps(d, failed);
}

/* OS-LCH-02: a new one, away from the person's keys; else the launch is refused. */
static void
check_keyring(struct kr_doctor *d)
{
	const int failed = in_child(kr_try_keyring);

	if (failed < 0)
		kr_doctor_add(d, "keyring", KR_VERDICT_SKIP, "", "could not be tried");
	else if (failed == 0)
		kr_doctor_add(d, "keyring", KR_VERDICT_OK, "", "a session gets one of its own");
	else
		kr_doctor_add(d, "keyring", KR_VERDICT_FAIL,
			failed == EDQUOT ? "raise kernel.keys.maxkeys, or end what holds them (/proc/keys)" : "use a kernel with keyrings (CONFIG_KEYS), and allow keyctl",
			"a session would get no keyring of its own: %s", strerror(failed));
}

static void
check_kernel(struct kr_doctor *d)
{
	struct utsname name;
	unsigned major = 0, minor = 0;

	if (uname(&name) < 0 || sscanf(name.release, "%u.%u", &major, &minor) != 2)
		kr_doctor_add(d, "kernel", KR_VERDICT_WARN, "", "it does not say its version");
	else if (major < KERNEL_MAJOR || (major == KERNEL_MAJOR && minor < KERNEL_MINOR))
		kr_doctor_add(d, "kernel", KR_VERDICT_WARN, "use Linux 5.10 or later", "Linux %s is older than what kraft was tried on", name.release);
	else
		kr_doctor_add(d, "kernel", KR_VERDICT_OK, "", "Linux %s", name.release);
}

void
kr_doctor_walls(struct kr_doctor *d)
{
	if (d->host.os == KR_SYSTEM_MACOS) {
		kr_doctor_macos(d);
		return;
	}
	check_architecture(d);
	check_kernel(d);
	if (!kr_doctor_needs_bubblewrap(d)) {
		kr_doctor_add(d, "bubblewrap", KR_VERDICT_SKIP, "", "no repository is of kind: os");
		return;
	}
	check_sandbox(d);
	check_inode_caps(d);
	check_keyring(d);
}
