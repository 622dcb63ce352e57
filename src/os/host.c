/*
 * Facts of this host, read once at the start of a command. The person's own environment is trusted to say where things
 * are; it is read here and nowhere else.
 */
#include "os/host.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "os/sys.h"

extern char **environ;

const char *
kr_host_env(const struct kr_host *host, const char *name)
{
	size_t n = strlen(name);

	for (const char *const *e = host->environment; e && *e; e++)
		if (strncmp(*e, name, n) == 0 && (*e)[n] == '=')
			return *e + n + 1;
	return NULL;
}

/*
 * Resolves the links of everything above the last component, as far as it exists. The last component is left alone,
 * so that kr_host_prepare_dirs can see a link there and refuse it.
 */
static const char *
resolve_parent(struct kr_arena *arena, const char *clean)
{
	const char *existing = kr_path_dirname(arena, clean);

	for (;; existing = kr_path_dirname(arena, existing)) {
		char resolved[KR_PATH_MAX];

		if (realpath(existing, resolved)) {
			size_t n = strlen(existing);

			return kr_path_clean(arena, kr_arena_printf(arena, "%s/%s", resolved, clean + n));
		}
		if (existing[1] == '\0')
			return clean;
	}
}

/* The directory that a variable names, else the default. */
static const char *
place(struct kr_arena *arena, const struct kr_host *host, const char *variable, const char *fallback,
	struct kr_error *err)
{
	const char *value = kr_host_env(host, variable), *clean;

	if (!value || !*value)
		return resolve_parent(arena, fallback);
	clean = kr_path_clean(arena, value);
	if (!clean || clean[1] == '\0') {
		kr_fail(err, KR_E_USAGE, "%s is '%s', which is not an absolute path of a directory", variable, value);
		kr_hint(err, "begin it with '/', or unset it: then it is below the home directory");
		return NULL;
	}
	return resolve_parent(arena, clean);
}

static const char *
home_directory(struct kr_arena *arena, const struct kr_host *host, struct kr_error *err)
{
	const char *home = kr_host_env(host, "HOME");
	char resolved[KR_PATH_MAX];

	if (!home || home[0] != '/') {
		const struct passwd *pw = getpwuid(getuid());

		home = pw ? pw->pw_dir : NULL;
	}
	if (!home || home[0] != '/') {
		kr_fail(err, KR_E_USAGE, "HOME is not set and the user has no home directory");
		return NULL;
	}
	if (!realpath(home, resolved)) {
		kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot find the home directory '%s'", home);
		return NULL;
	}
	if (resolved[1] == '\0') {
		kr_fail(err, KR_E_USAGE, "the home directory is '/'");
		kr_hint(err, "run kraft as a user with a home directory of its own");
		return NULL;
	}
	return kr_arena_dup(arena, resolved);
}

static const char *
user_name(struct kr_arena *arena, const struct kr_host *host)
{
	const char *name = kr_host_env(host, "USER");

	if (!name || !*name)
		name = kr_host_env(host, "LOGNAME");
	if (!name || !*name) {
		const struct passwd *pw = getpwuid(getuid());

		name = pw ? kr_arena_dup(arena, pw->pw_name) : "user";
	}
	return name;
}

static bool
is_guest_dir(struct kr_arena *arena, const char *directory)
{
	return directory && access(kr_arena_printf(arena, "%s/init", directory), X_OK) == 0 &&
		access(kr_arena_printf(arena, "%s/bin/kraft", directory), X_OK) == 0;
}

/* The guest lies below the build directory (guest/opt) or, installed, in ../libexec/kraft/guest. */
static const char *
guest_directory(struct kr_arena *arena, const struct kr_host *host, struct kr_error *err)
{
	const char *named = kr_host_env(host, "KRAFT_GUEST_DIR"), *self = kr_self_path(arena);
	const char *tried[] = {
		named && *named ? kr_path_clean(arena, named) : NULL,
		self ? kr_path_join(arena, kr_path_dirname(arena, self), "guest/opt") : NULL,
		self ? kr_path_join(arena, kr_path_dirname(arena, self), "../libexec/kraft/guest") : NULL,
	};

	for (size_t i = 0; i < KR_COUNT(tried); i++) {
		char resolved[KR_PATH_MAX];

		if (is_guest_dir(arena, tried[i]) && realpath(tried[i], resolved))
			return kr_arena_dup(arena, resolved);
		if (i == 0 && named && *named)
			break;
	}
	kr_fail(err, KR_E_WALL, "kraft's guest program was not found beside '%s'", self ? self : "kraft");
	kr_hint(err, "install kraft again, or set KRAFT_GUEST_DIR to the directory that holds init and bin/kraft");
	return NULL;
}

/* `variable` names it, or it is where kraft is. NULL with an error that says what does not go without it. */
static const char *
find_program(struct kr_arena *arena, const struct kr_host *host, const char *variable, const char *name, const char *without,
	struct kr_error *err)
{
	const char *named = kr_host_env(host, variable), *self = kr_self_path(arena);
	const char *directory = self ? kr_path_dirname(arena, self) : NULL;
	const char *tried[] = {
		directory ? kr_path_join(arena, directory, name) : NULL,
		directory ? kr_path_join(arena, directory, kr_arena_printf(arena, "../libexec/kraft/%s", name)) : NULL,
	};

	if (named && *named) {
		const char *clean = kr_path_clean(arena, named);

		if (clean && access(clean, X_OK) == 0)
			return clean;
		kr_fail(err, KR_E_WALL, "%s names '%s', which cannot be executed", variable, named);
		return NULL;
	}
	for (size_t i = 0; i < KR_COUNT(tried); i++)
		if (tried[i] && access(tried[i], X_OK) == 0)
			return tried[i];
	kr_fail(err, KR_E_WALL, "%s, without which %s, was not found beside '%s'", name, without, self ? self : "kraft");
	kr_hint(err, "install kraft again, or set %s to its absolute path", variable);
	return NULL;
}

const char *
kr_host_egress_program(struct kr_arena *arena, const struct kr_host *host, struct kr_error *err)
{
	return find_program(arena, host, "KRAFT_EGRESS", "kraft-egress", "nothing may leave a sandbox", err);
}

const char *
kr_host_egress_tls_program(struct kr_arena *arena, const struct kr_host *host, struct kr_error *err)
{
	if (host->os != KR_SYSTEM_MACOS)
		return find_program(arena, host, "KRAFT_EGRESS_TLS", "kraft-egress-tls", "no credential can be managed", err);
	kr_fail(err, KR_E_UNSUPPORTED, "credentials cannot be managed on macOS: kraft-egress-tls, which ends TLS, is not built there");
	kr_hint(err, "run the session on a Linux host, or without 'credentials'");
	return NULL;
}

/* A test's build can be told to go the other way; an installed one cannot. */
static void
find_walls(struct kr_host *host)
{
	const char *stand_in = KR_FAULT_MACOS();

#ifdef __APPLE__
	const bool is_macos = true;
#else
	const bool is_macos = stand_in != NULL;
#endif
	host->os = is_macos ? KR_SYSTEM_MACOS : KR_SYSTEM_LINUX;
	host->places.is_macos = is_macos;
	if (is_macos)
		host->sandbox_exec = stand_in ? stand_in : "/usr/bin/sandbox-exec";
}

int
kr_host_gather_places(struct kr_arena *arena, struct kr_host *out, struct kr_error *err)
{
	struct kr_host host = { .fs = &kr_fs_live, .environment = (const char *const *)environ };
	struct kr_places *p = &host.places;

	p->home = home_directory(arena, &host, err);
	if (!p->home)
		return -1;
	p->kraft_home = place(arena, &host, "KRAFT_HOME", kr_path_join(arena, p->home, ".kraft"), err);
	if (!p->kraft_home)
		return -1;
	p->run_dir = place(arena, &host, "KRAFT_RUN_DIR", kr_path_join(arena, p->kraft_home, "run"), err);
	p->config_dir =
		p->run_dir ? place(arena, &host, "KRAFT_CONFIG_DIR", kr_path_join(arena, p->kraft_home, "config"), err) : NULL;
	if (!p->config_dir)
		return -1;
	host.user = user_name(arena, &host);
	find_walls(&host);
	*out = host;
	return 0;
}

int
kr_host_gather(struct kr_arena *arena, struct kr_host *out, struct kr_error *err)
{
	struct kr_host host;

	if (kr_host_gather_places(arena, &host, err) < 0)
		return -1;
	host.guest_dir = guest_directory(arena, &host, err);
	if (!host.guest_dir)
		return -1;
	*out = host;
	return 0;
}

static int
refuse_link(const char *what, const char *path, struct kr_error *err)
{
	kr_fail(err, KR_E_REFUSED, "%s '%s' is a symbolic link", what, path);
	return kr_hint(err, "name the directory itself in the environment, or replace the link by a directory");
}

static int
check_dir(const char *what, const char *path, const struct stat *st, struct kr_error *err)
{
	if (st->st_uid != getuid()) {
		kr_fail(err, KR_E_REFUSED, "%s '%s' belongs to another user", what, path);
		return kr_hint(err, "chown it to you, or choose another place");
	}
	if (st->st_mode & 022) {
		kr_fail(err, KR_E_REFUSED, "%s '%s' can be written by others (mode %03o)", what, path,
			(unsigned)(st->st_mode & 0777));
		return kr_hint(err, "chmod 700 '%s'", path);
	}
	return 0;
}

static int
prepare_dir(const char *what, const char *path, struct kr_error *err)
{
	kr_auto_fd int fd = -1;
	struct stat st;

	if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
		return refuse_link(what, path, err);
	fd = kr_path_make_dirs(path, err);
	if (fd < 0) {
		kr_wrap(err, "%s", what);
		return kr_hint(err, "it has to be a directory of yours that can be written; KRAFT_HOME and KRAFT_RUN_DIR name others");
	}
	if (fstat(fd, &st) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot look at '%s'", path);
	return check_dir(what, path, &st, err);
}

/* Of one that is missing the nearest directory above it, in which it is to be made. */
static int
look_for_room(const char *what, const char *path, struct kr_error *err)
{
	char above[KR_PATH_MAX];

	snprintf(above, sizeof(above), "%s", path);
	while (above[1] && access(above, F_OK) < 0)
		*(strrchr(above, '/') == above ? above + 1 : strrchr(above, '/')) = '\0';
	if (access(above, W_OK | X_OK) == 0)
		return 0;
	kr_fail_errno(err, KR_E_SYSTEM, errno, "%s '%s' cannot be written", what, path);
	return kr_hint(err, "it has to be a directory of yours that can be written; KRAFT_HOME and KRAFT_RUN_DIR name others");
}

/* What stands in the way of prepare_dir, as far as that can be seen without making anything. */
static int
look_dir(const char *what, const char *path, struct kr_error *err)
{
	struct stat st;

	if (lstat(path, &st) < 0 && errno == ENOENT)
		return look_for_room(what, path, err);
	if (lstat(path, &st) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot look at '%s'", path);
	if (S_ISLNK(st.st_mode))
		return refuse_link(what, path, err);
	if (!S_ISDIR(st.st_mode))
		return kr_fail(err, KR_E_REFUSED, "%s '%s' is no directory", what, path);
	return check_dir(what, path, &st, err) < 0 ? -1 : look_for_room(what, path, err);
}

static int
each_dir(const struct kr_host *host, int (*act)(const char *what, const char *path, struct kr_error *err), struct kr_error *err)
{
	return act("kraft's home directory", host->places.kraft_home, err) < 0 || act("the run directory", host->places.run_dir, err) < 0 ||
				   act("the configuration directory", host->places.config_dir, err) < 0
			   ? -1
			   : 0;
}

int
kr_host_prepare_dirs(const struct kr_host *host, struct kr_error *err)
{
	return each_dir(host, prepare_dir, err);
}

int
kr_host_look_at_dirs(const struct kr_host *host, struct kr_error *err)
{
	return each_dir(host, look_dir, err);
}

uint64_t
kr_room_bytes(const char *path)
{
	struct statvfs fs;

	return statvfs(path, &fs) < 0 ? UINT64_MAX : (uint64_t)fs.f_bavail * fs.f_frsize;
}

bool
kr_in_checkout(struct kr_arena *arena, const char *directory)
{
	char resolved[KR_PATH_MAX];
	const char *at;

	if (!realpath(directory, resolved))
		return false; /* nothing is found there either */
	for (at = kr_arena_dup(arena, resolved); at[1]; at = kr_path_dirname(arena, at)) {
		struct stat st;

		if (lstat(kr_arena_printf(arena, "%s/.git", at), &st) == 0)
			return true;
	}
	return false;
}

bool
kr_is_workers_directory(struct kr_arena *arena, const struct kr_places *places, const char *directory)
{
	char resolved[KR_PATH_MAX];

	return kr_in_checkout(arena, directory) ||
		(realpath(directory, resolved) && kr_path_is_within(resolved, places->run_dir));
}
