/*
 * What this host's bubblewrap can do, and why it cannot when it cannot.
 *
 * A run must start no process only to learn bubblewrap's version, so the answer is kept in <run_dir>/cache/bwrap together
 * with the identity of the program file (device, inode, size, change time); another file, another probe. The setuid bit is
 * looked at every time: a setuid bubblewrap is a way to root for the worker (CVE-2026-41163) and is refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/backend.h"
#include "backend/probe.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/portable.h"
#include "base/text.h"
#include "os/sys.h"

static const char *const no_environment[] = { NULL };
static const char *const places_to_look[] = {
	"/usr/bin/bwrap",
	"/usr/local/bin/bwrap",
	"/bin/bwrap",
	"/run/current-system/sw/bin/bwrap",
};

static int
not_found(struct kr_error *err)
{
	kr_fail(err, KR_E_NO_BWRAP, "bubblewrap (bwrap) is not installed, so the sandbox cannot be made");
	return kr_hint(err, "install it: apt install bubblewrap, dnf install bubblewrap or pacman -S bubblewrap");
}

static const char *
find_program(const struct kr_host *host, struct stat *st, struct kr_error *err)
{
	const char *named = kr_host_env(host, "KRAFT_BWRAP");

	if (named && *named) {
		if (named[0] != '/') {
			kr_fail(err, KR_E_USAGE, "KRAFT_BWRAP is '%s', which is not an absolute path", named);
			return NULL;
		}
		if (stat(named, st) == 0)
			return named;
		kr_fail_errno(err, KR_E_WALL, errno, "KRAFT_BWRAP names '%s'", named);
		kr_hint(err, "name a bubblewrap that is there, or unset it");
		return NULL;
	}
	for (size_t i = 0; i < KR_COUNT(places_to_look); i++)
		if (stat(places_to_look[i], st) == 0 && S_ISREG(st->st_mode))
			return places_to_look[i];
	not_found(err);
	return NULL;
}

bool
kr_bwrap_parse_version(const char *text, unsigned version[3])
{
	unsigned v[3] = { 0 };

	if (sscanf(text, "bubblewrap %u.%u.%u", &v[0], &v[1], &v[2]) < 2)
		return false;
	memcpy(version, v, sizeof(v));
	return true;
}

static int
ask(const char *path, struct kr_bwrap *out, struct kr_error *err)
{
	kr_auto_buf struct kr_buf version = KR_BUF(4096);
	kr_auto_buf struct kr_buf help = KR_BUF(1 << 16);
	int status;

	if (kr_capture(path, (const char *[]){ path, "--version", NULL }, no_environment, &version, &status, err) < 0 ||
		kr_capture(path, (const char *[]){ path, "--help", NULL }, no_environment, &help, &status, err) < 0) {
		kr_wrap(err, "asking bubblewrap its version");
		return kr_hint(err, "see whether '%s --version' works", path);
	}
	out->bind_fd = help.data && strstr(help.data, "--ro-bind-fd ") && strstr(help.data, "--bind-fd ");
	if (!version.data || !kr_bwrap_parse_version(version.data, out->version)) {
		kr_fail(err, KR_E_WALL, "'%s' does not say which bubblewrap it is", path);
		return kr_hint(err, "run '%s --version'; kraft needs bubblewrap 0.8.0 or later", path);
	}
	return 0;
}

static int
check(const struct kr_bwrap *bwrap, const struct stat *st, struct kr_error *err)
{
	const unsigned *v = bwrap->version;

	if (st->st_mode & (S_ISUID | S_ISGID)) {
		kr_fail(err, KR_E_BWRAP_SETUID, "'%s' is installed setuid, which would hand a worker a program that runs as root",
			bwrap->path);
		return kr_hint(err, "chmod u-s,g-s '%s' (user namespaces make the bit needless), or install another bubblewrap",
			bwrap->path);
	}
	if (v[0] == 0 && v[1] < 8) {
		kr_fail(err, KR_E_BWRAP_OLD, "bubblewrap %u.%u.%u at '%s' is too old to switch off user namespaces inside", v[0], v[1],
			v[2], bwrap->path);
		return kr_hint(err, "install bubblewrap 0.8.0 or later (Debian 12, Ubuntu 24.04 and Fedora 38 have it)");
	}
	return 0;
}

static const char *
identity(struct kr_arena *arena, const char *path, const struct stat *st)
{
	return kr_arena_printf(arena, "1 %llu %llu %lld %lld.%09ld %s", (unsigned long long)st->st_dev,
		(unsigned long long)st->st_ino, (long long)st->st_size, (long long)kr_ctime(st).tv_sec,
		kr_ctime(st).tv_nsec, path);
}

/* The cache is ours alone (run_dir is 0700); a damaged one is only a reason to ask again. */
static bool
read_cache(const char *file, const char *who, struct kr_bwrap *out)
{
	kr_auto_buf struct kr_buf bytes = KR_BUF(KR_PATH_MAX + 256);
	size_t n = strlen(who);
	unsigned v[3], bind_fd;

	if (kr_file_read_at(AT_FDCWD, file, &bytes, NULL) < 0 || bytes.len <= n + 1 || memcmp(bytes.data, who, n) != 0 ||
		sscanf(bytes.data + n, "\n%u %u %u %u\n", &v[0], &v[1], &v[2], &bind_fd) != 4)
		return false;
	memcpy(out->version, v, sizeof(v));
	out->bind_fd = bind_fd != 0;
	return true;
}

static void
write_cache(const struct kr_host *host, struct kr_arena *arena, const char *who, const struct kr_bwrap *bwrap)
{
	const char *directory = kr_path_join(arena, host->places.run_dir, "cache");
	const char *text = kr_arena_printf(arena, "%s\n%u %u %u %u\n", who, bwrap->version[0], bwrap->version[1],
		bwrap->version[2], bwrap->bind_fd);
	kr_auto_fd int fd = kr_path_make_dirs(directory, NULL);

	if (fd >= 0)
		(void)kr_file_write_at(fd, "bwrap", text, strlen(text), 0600, NULL); /* without it the next run asks again */
}

int
kr_bwrap_probe(struct kr_arena *arena, const struct kr_host *host, struct kr_bwrap *out, struct kr_error *err)
{
	struct kr_bwrap found = { 0 };
	struct stat st;
	const char *who;

	found.path = find_program(host, &st, err);
	if (!found.path)
		return -1;
	if (kr_arch_here() == KR_ARCH_UNKNOWN)
		return kr_fail(err, KR_E_NO_FILTER, "kraft has no system call filter for this machine's architecture");
	who = identity(arena, found.path, &st);
	if (!read_cache(kr_path_join(arena, host->places.run_dir, "cache/bwrap"), who, &found)) {
		if (ask(found.path, &found, err) < 0)
			return -1;
		write_cache(host, arena, who, &found);
	}
	if (check(&found, &st, err) < 0)
		return -1;
	*out = found;
	return 0;
}

/* ---- why a sandbox cannot be made ---- */

static long
read_number(const char *path)
{
	kr_auto_buf struct kr_buf bytes = KR_BUF(64);
	uint64_t value;

	if (kr_file_read_at(AT_FDCWD, path, &bytes, NULL) < 0 || !bytes.data)
		return -1;
	bytes.data[strcspn(bytes.data, "\n")] = '\0';
	return kr_text_to_u64(bytes.data, INT32_MAX, &value) ? (long)value : -1;
}

static bool
is_filtered(void)
{
	kr_auto_buf struct kr_buf bytes = KR_BUF(1 << 16);
	const char *line;

	if (kr_file_read_at(AT_FDCWD, "/proc/self/status", &bytes, NULL) < 0 || !bytes.data)
		return false;
	line = strstr(bytes.data, "\nSeccomp:");
	return line && strchr("12", line[strcspn(line + 1, "\t") + 2]);
}

/* In a chroot the root directory is not the root of its mount, so the first namespace is already refused. */
static bool
is_chroot(void)
{
	kr_auto_buf struct kr_buf bytes = KR_BUF(1 << 20);

	if (kr_file_read_at(AT_FDCWD, "/proc/self/mountinfo", &bytes, NULL) < 0 || !bytes.data)
		return false;
	return !strstr(bytes.data, " / / ");
}

void
kr_namespace_facts_read(struct kr_namespace_facts *out)
{
	*out = (struct kr_namespace_facts){
		.has_user_namespaces = access("/proc/self/ns/user", F_OK) == 0,
		.userns_clone = read_number("/proc/sys/kernel/unprivileged_userns_clone"),
		.max_user_namespaces = read_number("/proc/sys/user/max_user_namespaces"),
		.apparmor_restricts = read_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
		.in_container = access("/.dockerenv", F_OK) == 0 || access("/run/.containerenv", F_OK) == 0,
		.filtered = is_filtered(),
		.in_chroot = is_chroot(),
	};
}

int
kr_bwrap_explain(const char *output, const struct kr_namespace_facts *f, struct kr_error *err)
{
	char said[256];
	size_t n = strcspn(output, "\n");
	bool at_namespace = strstr(output, "new namespace") != NULL, at_map = strstr(output, "uid map") != NULL,
		 at_loopback = strstr(output, "loopback") != NULL, at_proc = strstr(output, "proc on") != NULL,
		 no_space = strstr(output, "No space left") != NULL;

	snprintf(said, sizeof(said), "%.*s", (int)(n < 200 ? n : 200), output);
	if (!f->has_user_namespaces) {
		kr_fail(err, KR_E_NO_USERNS, "this kernel is built without user namespaces");
		return kr_hint(err, "boot a kernel with CONFIG_USER_NS=y");
	}
	if (f->userns_clone == 0) {
		kr_fail(err, KR_E_NO_USERNS, "user namespaces are switched off for users (kernel.unprivileged_userns_clone is 0)");
		return kr_hint(err, "as root: sysctl -w kernel.unprivileged_userns_clone=1 (and a file in /etc/sysctl.d to keep it)");
	}
	if (f->max_user_namespaces == 0) {
		kr_fail(err, KR_E_NO_USERNS, "user namespaces are switched off (user.max_user_namespaces is 0)");
		return kr_hint(err, "as root: sysctl -w user.max_user_namespaces=15000 (and a file in /etc/sysctl.d to keep it)");
	}
	if (f->apparmor_restricts == 1 && (at_map || at_loopback || at_namespace || strstr(output, "ermission"))) {
		kr_fail(err, KR_E_APPARMOR, "AppArmor lets bubblewrap make a user namespace but gives it no rights in it%s (%s)",
			at_loopback ? ", not even over the loopback device" : "", said);
		return kr_hint(err, "install the AppArmor profile that 'kraft admin doctor' prints");
	}
	if (no_space && at_namespace) {
		kr_fail(err, KR_E_TOO_NESTED, "the limit of user namespaces is reached (user.max_user_namespaces is %ld, or they nest too deep)",
			f->max_user_namespaces);
		return kr_hint(err, "end other sandboxes, or raise user.max_user_namespaces as root");
	}
	if (at_namespace && f->in_chroot) {
		kr_fail(err, KR_E_IN_CHROOT, "kraft runs in a chroot, where the kernel allows no user namespace");
		return kr_hint(err, "use a container or a mount namespace with pivot_root in place of the chroot");
	}
	if ((at_namespace || at_proc || at_loopback) && (f->in_container || f->filtered)) {
		kr_fail(err, KR_E_IN_CONTAINER, "kraft runs inside a container that does not allow sandboxes of its own (%s)", said);
		return kr_hint(err, "run kraft on the host, or start the container with user namespaces and an unmasked /proc allowed");
	}
	if (at_proc) {
		kr_fail(err, KR_E_IN_CONTAINER, "the sandbox may not mount its own /proc (%s)", said);
		return kr_hint(err, "something covers parts of /proc here; run kraft outside of the container or namespace it is in");
	}
	kr_fail(err, KR_E_WALL, "bubblewrap cannot make a sandbox: %s", *said ? said : "it gave no reason");
	return kr_hint(err, "run 'kraft admin doctor'");
}

int
kr_bwrap_diagnose(const struct kr_bwrap *bwrap, struct kr_error *err)
{
	const char *const argv[] = { bwrap->path, "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent",
		"--cap-drop", "ALL", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--", "/usr/bin/env", NULL };
	kr_auto_buf struct kr_buf output = KR_BUF(1 << 16);
	struct kr_namespace_facts facts;
	int status;

	if (kr_capture(bwrap->path, argv, no_environment, &output, &status, err) < 0)
		return kr_wrap(err, "trying bubblewrap");
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	kr_namespace_facts_read(&facts);
	return kr_bwrap_explain(output.data ? output.data : "", &facts, err);
}
