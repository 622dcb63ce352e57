/*
 * Which container runtime there is, what it can enforce, and one call of it.
 *
 * The CLI is looked for on the PATH that kraft was started with, in absolute directories that lie in no
 * checkout and not in the run directory: what a worker writes is never run on the host. It gets an
 * environment made here: where its configuration lies, which service it talks to, and nothing else, above all
 * no value of a worker's and no proxy (podman would hand one on to every container). It runs in "/", in a
 * process group of its own, with a limit of time.
 *
 * A launch must start no process only to learn what it already knew, so the answers are kept in
 * <run_dir>/cache under the key of what they are of (engine_key.c), for an hour at most. A service that hangs
 * must stall nobody: its failures to answer are kept there too, and after the second one it is asked at most
 * every 30 s. Both files are ours alone; a damaged one is only a reason to ask.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend/engine.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sha256.h"
#include "base/text.h"
#include "os/host.h"
#include "os/sys.h"
#include "os/timer.h"

enum { PATH_BYTES = 65536, STDERR_KEPT = 4096, CACHE_AGE_S = 3600, WORDS_BYTES = 480 };

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"
/* Podman's helpers lie there, and the PATH of an ordinary user often lacks them. */
static const char *const system_places[] = { "/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin",
	"/usr/sbin", "/sbin" };

/* ---- the program ---- */

static bool
is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* A link in one directory may lead to a file in another. */
static bool
leads_to_workers(struct kr_arena *arena, const struct kr_host *host, const char *path)
{
	char resolved[KR_PATH_MAX];

	return !realpath(path, resolved) ||
		   kr_is_workers_directory(arena, &host->places, kr_path_dirname(arena, resolved));
}

/* The directories of PATH that may be used. */
static void
usable_path(struct kr_arena *arena, const struct kr_host *host, struct kr_strs *out)
{
	const char *path = kr_host_env(host, "PATH");

	if (!path || strlen(path) >= PATH_BYTES)
		path = DEFAULT_PATH;
	for (const char *p = path; *p;) {
		size_t n = strcspn(p, ":");
		const char *entry = kr_arena_dup_n(arena, p, n);

		if (entry[0] == '/' && n < KR_PATH_MAX && !kr_is_workers_directory(arena, &host->places, entry))
			kr_strs_add(arena, out, entry);
		p += n + (p[n] == ':');
	}
}

static const char *
find_on(
	struct kr_arena *arena, const struct kr_host *host, const struct kr_strs *directories, const char *name)
{
	for (size_t i = 0; i < directories->n; i++) {
		const char *path = kr_arena_printf(arena, "%s/%s", directories->v[i], name);

		if (strlen(path) < KR_PATH_MAX && is_program(path) && !leads_to_workers(arena, host, path))
			return path;
	}
	return NULL;
}

static const char *
no_program(const struct kr_sandbox_file *file, struct kr_error *err)
{
	if (file->cli && file->cli[0] == '/')
		kr_fail(err, KR_E_NO_RUNTIME, "'%s', the container CLI of sandbox.yaml, is no program outside of checkouts",
			file->cli);
	else if (file->cli)
		kr_fail(err, KR_E_NO_RUNTIME, "'%s', the container CLI of sandbox.yaml, is not on PATH", file->cli);
	else
		kr_fail(err, KR_E_NO_RUNTIME, "neither docker nor podman is on PATH, so no container can be started");
	kr_hint(err, "install Docker or Podman (Debian and Ubuntu: sudo apt-get install podman), or name the CLI "
				 "by an absolute "
				 "path with 'cli' in sandbox.yaml; directories in a checkout are not searched");
	return NULL;
}

/* programs: all whose files say something about the answers (a `docker` may be a script that runs podman). */
static const char *
find_program(struct kr_arena *arena, const struct kr_host *host, const struct kr_strs *path,
	const struct kr_sandbox_file *file, struct kr_strs *programs, struct kr_error *err)
{
	const char *docker = find_on(arena, host, path, "docker"), *podman = find_on(arena, host, path, "podman"),
			   *found;

	if (!file->cli)
		found = docker ? docker : podman;
	else if (file->cli[0] == '/')
		found = is_program(file->cli) && !leads_to_workers(arena, host, file->cli) ? file->cli : NULL;
	else
		found = strcmp(file->cli, "docker") == 0 ? docker : podman;
	if (!found)
		return no_program(file, err);
	kr_strs_add(arena, programs, found);
	if (podman && podman != found)
		kr_strs_add(arena, programs, podman);
	return found;
}

/* ---- the environment ---- */

static const char *const passed_on[] = {
	/* the person, and where programs keep what is theirs */
	"USER",
	"LOGNAME",
	"XDG_RUNTIME_DIR",
	"XDG_CONFIG_HOME",
	"XDG_DATA_HOME",
	"XDG_CACHE_HOME",
	"TMPDIR",
	"DBUS_SESSION_BUS_ADDRESS",
	"SSH_AUTH_SOCK",
	/* docker's service */
	"DOCKER_HOST",
	"DOCKER_CONTEXT",
	"DOCKER_CONFIG",
	"DOCKER_API_VERSION",
	"DOCKER_CERT_PATH",
	"DOCKER_TLS_VERIFY",
	/* podman's service, configuration and store */
	"CONTAINER_HOST",
	"CONTAINER_CONNECTION",
	"CONTAINER_SSHKEY",
	"CONTAINERS_CONF",
	"CONTAINERS_CONF_OVERRIDE",
	"CONTAINERS_STORAGE_CONF",
	"CONTAINERS_REGISTRIES_CONF",
	"REGISTRY_AUTH_FILE",
	"STORAGE_DRIVER",
	"STORAGE_OPTS",
};

static const char *const *
environment_of(struct kr_arena *arena, const struct kr_host *host, const struct kr_strs *path)
{
	kr_auto_buf struct kr_buf directories = KR_BUF(PATH_BYTES + 1024);
	struct kr_strs env = { 0 };

	for (size_t i = 0; i < path->n; i++)
		kr_buf_addf(&directories, "%s%s", i ? ":" : "", path->v[i]);
	for (size_t i = 0; i < KR_COUNT(system_places); i++)
		if (!kr_strs_has(path, system_places[i]))
			kr_buf_addf(&directories, "%s%s", directories.len ? ":" : "", system_places[i]);
	kr_strs_add(arena, &env, kr_arena_printf(arena, "PATH=%s", directories.data));
	kr_strs_add(arena, &env, kr_arena_printf(arena, "HOME=%s", host->places.home));
	kr_strs_add(arena, &env, "LANG=C.UTF-8");
	for (size_t i = 0; i < KR_COUNT(passed_on); i++) {
		const char *value = kr_host_env(host, passed_on[i]);

		if (value && *value)
			kr_strs_add(arena, &env, kr_arena_printf(arena, "%s=%s", passed_on[i], value));
	}
	return env.v;
}

/* ---- one call ---- */

/* What CLIs print beside the reason. */
static bool
is_noise(const char *line, size_t n)
{
	static const char *const begins[] = { "WARN", "time=\"", "See 'docker", "Emulate Docker CLI" };

	for (size_t i = 0; i < KR_COUNT(begins); i++)
		if (n >= strlen(begins[i]) && memcmp(line, begins[i], strlen(begins[i])) == 0)
			return true;
	return false;
}

static void
add_words(struct kr_buf *out, const char *text, size_t n, bool with_noise)
{
	for (const char *at = text, *end = text + n; at < end;) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t len = stop ? (size_t)(stop - at) : (size_t)(end - at);
		char safe[WORDS_BYTES];

		if (len && (with_noise || !is_noise(at, len))) {
			kr_text_escape(safe, sizeof(safe), at, len);
			kr_buf_addf(out, "%s%s", out->len ? "; " : "", safe);
		}
		at += len + (stop != NULL);
	}
}

const char *
kr_runtime_words(struct kr_arena *arena, const char *text, size_t n)
{
	kr_auto_buf struct kr_buf out = KR_BUF(WORDS_BYTES);

	add_words(&out, text, n, false);
	if (!out.len)
		add_words(&out, text, n, true);
	return kr_arena_dup(arena, out.len ? out.data : "it gave no reason");
}

/* Texts of docker 20.10 to 28 and podman 4 and 5. */
static const struct {
	const char *said, *step;
} next_steps[] = {
	{ "permission denied while trying to connect to the",
		"as root: 'usermod -aG docker YOU' and log in again (that group is as good as root), or use rootless "
		"Docker or Podman" },
	{ "Is the docker daemon running", "start it ('sudo systemctl start docker', rootless: 'systemctl --user "
									  "start docker'), or write 'cli: podman' into "
									  "sandbox.yaml; 'docker info' has to answer" },
	{ "is too new. Maximum supported API version",
		"set DOCKER_API_VERSION to the version that it names, or update the service" },
	{ "is too old. Minimum supported API version", "update the docker CLI" },
	{ "error during connect", "look at DOCKER_HOST and 'docker context show'; 'docker info' has to answer" },
	{ "context", "look at DOCKER_CONTEXT and 'docker context ls'" },
	{ "nable to connect to Podman",
		"start its service ('systemctl --user start podman.socket'), or unset CONTAINER_HOST" },
	{ "subuid", "as root: 'usermod --add-subuids 100000-165535 --add-subgids 100000-165535 YOU', then "
				"'podman system migrate'" },
	{ "newuidmap", "install the package uidmap (Debian, Ubuntu) or shadow-utils (Fedora)" },
	{ "user namespace", "'kraft admin doctor' says whether this host allows user namespaces" },
	{ "XDG_RUNTIME_DIR", "log in by a session of its own (not by su), or: 'loginctl enable-linger YOU'" },
};

const char *
kr_runtime_next_step(struct kr_arena *arena, const char *program, const char *said)
{
	for (size_t i = 0; i < KR_COUNT(next_steps); i++)
		if (strstr(said, next_steps[i].said))
			return next_steps[i].step;
	return kr_arena_printf(arena, "run '%s info' by hand; it has to answer", program);
}

int
kr_runtime_ask(struct kr_arena *arena, const struct kr_runtime *runtime, const struct kr_runtime_ask *ask,
	struct kr_buf *out, struct kr_error *err)
{
	kr_auto_buf struct kr_buf errors = KR_BUF(STDERR_KEPT), none = KR_BUF(PATH_BYTES);
	const char *name = kr_path_basename(runtime->program), *said;
	struct kr_strs words = { 0 };
	struct kr_child child = { .path = runtime->program,
		.envp = ask->environment ? ask->environment : runtime->environment,
		.directory = "/",
		.stdout_fd = ask->stdout_fd,
		.stderr_fd = ask->stderr_fd,
		.limit_ms = ask->limit_ms };
	int status, ended;

	kr_strs_add(arena, &words, name);
	for (const char *const *word = ask->argv; *word; word++)
		kr_strs_add(arena, &words, *word);
	child.argv = words.v;
	if (kr_child_run(&child, out ? out : &none, &errors, &status, err) < 0)
		return kr_wrap(err, "asking '%s %s'", name, ask->argv[0]);
	ended = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	if (ended == 0)
		return 0;
	said = ask->stderr_fd > 0 ? "the reason is above"
							  : kr_runtime_words(arena, errors.data ? errors.data : "", errors.len);
	kr_fail(err, KR_E_WALL, "'%s %s' failed (status %d): %s", name, ask->argv[0], ended, said);
	kr_hint(err, "%s", kr_runtime_next_step(arena, name, said));
	return ended;
}

/* A wall that cannot be raised, whatever it was that took too long. */
static int
as_wall(struct kr_error *err, int status)
{
	if (status < 0 && err && err->code == KR_E_TIMEOUT)
		err->code = KR_E_WALL;
	return status;
}

int
kr_runtime_call(struct kr_arena *arena, const struct kr_runtime *runtime, const char *const *argv,
	int64_t limit_ms, struct kr_buf *out, struct kr_error *err)
{
	const struct kr_runtime_ask ask = { .argv = argv, .limit_ms = limit_ms };

	return as_wall(err, kr_runtime_ask(arena, runtime, &ask, out, err));
}

/* ---- what is kept ---- */

int64_t
kr_runtime_patience(const struct kr_runtime_wait *wait, int64_t now_ms)
{
	if (wait->failures == 0)
		return KR_RUNTIME_FIRST_MS;
	if (wait->failures > 1 && now_ms >= wait->at_ms && now_ms - wait->at_ms < KR_RUNTIME_BACK_OFF_MS)
		return 0;
	return KR_RUNTIME_NEXT_MS;
}

static int64_t
wall_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The two files of one program. */
struct kept {
	const char *directory, *answers, *wait;
};

static struct kept
kept_for(struct kr_arena *arena, const struct kr_host *host, const char *program)
{
	struct kr_sha256 sha;
	char hex[KR_SHA256_HEX + 1];

	kr_sha256_init(&sha);
	kr_sha256_add(&sha, program, strlen(program));
	kr_sha256_hex(&sha, hex);
	return (struct kept){ .directory = kr_path_join(arena, host->places.run_dir, "cache"),
		.answers = kr_arena_printf(arena, "runtime-%.16s", hex),
		.wait = kr_arena_printf(arena, "runtime-%.16s.wait", hex) };
}

/* The file's lines after the first, when that one is the key. */
static const char *
read_kept(struct kr_arena *arena, const struct kept *kept, const char *name, const char *key)
{
	kr_auto_buf struct kr_buf bytes = KR_BUF(4096);
	const char *first = kr_arena_printf(arena, "1 %s\n", key);

	if (!kept->directory ||
		kr_file_read_at(AT_FDCWD, kr_arena_printf(arena, "%s/%s", kept->directory, name), &bytes, NULL) < 0 ||
		!bytes.data || !kr_text_has_prefix(bytes.data, first))
		return NULL;
	return kr_arena_dup(arena, bytes.data + strlen(first));
}

/* Without it the next one asks again. */
static void
write_kept(
	struct kr_arena *arena, const struct kept *kept, const char *name, const char *key, const char *lines)
{
	kr_auto_fd int fd = kept->directory ? kr_path_make_dirs(kept->directory, NULL) : -1;
	const char *text = kr_arena_printf(arena, "1 %s\n%s", key, lines);

	if (fd >= 0)
		(void)kr_file_write_at(fd, name, text, strlen(text), 0600, NULL);
}

static bool
read_answers(struct kr_arena *arena, const struct kept *kept, struct kr_runtime *out)
{
	const char *text = read_kept(arena, kept, kept->answers, out->key);
	struct kr_runtime read = *out;
	unsigned kind, rootless, remapped, machine, selinux;
	long long at;
	int n = 0;

	if (!text ||
		sscanf(text, "%lld %u %u.%u.%u %u %u %u %u %u %u %n", &at, &kind, &read.version[0], &read.version[1],
			&read.version[2], &rootless, &remapped, &machine, &selinux, &read.limits, &read.flaws,
			&n) != 11 ||
		!n || kind >= KR_RUNTIME_COUNT || read.limits >= 1u << KR_LIMIT_COUNT ||
		read.flaws >= 1u << KR_FLAW_COUNT)
		return false;
	if (wall_ms() / 1000 < at || wall_ms() / 1000 - at > CACHE_AGE_S || !text[n] ||
		text[strlen(text) - 1] != '\n')
		return false;
	read.kind = (enum kr_runtime_kind)kind;
	read.is_rootless = rootless;
	read.is_remapped = remapped;
	read.is_machine = machine;
	read.enforces_selinux = selinux;
	read.name = kr_arena_dup_n(arena, text + n, strcspn(text + n, "\n"));
	*out = read;
	return true;
}

static void
write_answers(struct kr_arena *arena, const struct kept *kept, const struct kr_runtime *r)
{
	write_kept(arena, kept, kept->answers, r->key,
		kr_arena_printf(arena, "%lld %u %u.%u.%u %u %u %u %u %u %u %s\n", (long long)wall_ms() / 1000,
			(unsigned)r->kind, r->version[0], r->version[1], r->version[2], r->is_rootless, r->is_remapped,
			r->is_machine, r->enforces_selinux, r->limits, r->flaws, r->name));
}

static struct kr_runtime_wait
read_wait(struct kr_arena *arena, const struct kept *kept, const char *key)
{
	const char *text = read_kept(arena, kept, kept->wait, key);
	struct kr_runtime_wait wait = { 0 };
	long long at;

	if (!text || sscanf(text, "%u %lld\n", &wait.failures, &at) != 2)
		return (struct kr_runtime_wait){ 0 };
	wait.at_ms = at;
	return wait;
}

/* ---- asking ---- */

/* One JSON answer within what is left of the time. */
static int
ask_json(struct kr_arena *arena, const struct kr_runtime *runtime, const char *question, int64_t deadline_ms,
	struct kr_buf *out, struct kr_error *err)
{
	const char *const argv[] = { question, "--format", "{{json .}}", NULL };
	int64_t left = deadline_ms - kr_clock_ms();
	const struct kr_runtime_ask ask = { .argv = argv, .limit_ms = left > 0 ? left : 1 };

	return kr_runtime_ask(arena, runtime, &ask, out, err) == 0 ? 0 : -1;
}

static bool
begins_with(const char *path, char c)
{
	kr_auto_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	char first;

	return fd >= 0 && read(fd, &first, 1) == 1 && first == c;
}

/* Podman asks for the same files before it limits swap. */
static bool
accounts_swap(void)
{
	static const char *const files[] = { "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes",
		"/sys/fs/cgroup/init.scope/memory.swap.max", "/sys/fs/cgroup/system.slice/memory.swap.max",
		"/sys/fs/cgroup/user.slice/memory.swap.max", "/sys/fs/cgroup/memory.swap.max" };

	for (size_t i = 0; i < KR_COUNT(files); i++)
		if (access(files[i], F_OK) == 0)
			return true;
	return false;
}

static int
ask_all(struct kr_arena *arena, int64_t limit_ms, struct kr_runtime *runtime, struct kr_error *err)
{
	kr_auto_buf struct kr_buf version = KR_BUF(KR_RUNTIME_TEXT_BYTES), info = KR_BUF(KR_RUNTIME_TEXT_BYTES);
	int64_t deadline_ms = kr_clock_ms() + limit_ms;
	struct kr_runtime_info said;
	struct utsname here;

	if (uname(&here) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot ask the kernel's version");
	if (ask_json(arena, runtime, "version", deadline_ms, &version, err) < 0 ||
		kr_runtime_read_version(arena, version.data ? version.data : "", version.len, runtime, err) < 0 ||
		ask_json(arena, runtime, "info", deadline_ms, &info, err) < 0 ||
		kr_runtime_read_info(arena, runtime->kind, info.data ? info.data : "", info.len, &said, err) < 0)
		return -1;
	kr_runtime_settle(arena, &said,
		&(const struct kr_runtime_host){ .kernel = here.release,
			.hostname = here.nodename,
			.enforces_selinux = begins_with("/sys/fs/selinux/enforce", '1'),
			.accounts_swap = accounts_swap() },
		runtime);
	return 0;
}

static int
refuse_at_once(const struct kr_runtime *runtime, const struct kr_runtime_wait *wait, int64_t now_ms,
	struct kr_error *err)
{
	kr_fail(err, KR_E_RUNTIME_SILENT, "'%s' did not answer %u times, and is not asked again for %lld s",
		kr_path_basename(runtime->program), wait->failures,
		(long long)(KR_RUNTIME_BACK_OFF_MS - (now_ms - wait->at_ms) + 999) / 1000);
	return kr_hint(err, "'%s info' has to answer; is its service stuck, or the disk that it works on?",
		runtime->program);
}

/* Asks as long as its failures allow, and keeps what came of it. */
static int
ask_patiently(
	struct kr_arena *arena, const struct kept *kept, struct kr_runtime *runtime, struct kr_error *err)
{
	struct kr_runtime_wait wait = read_wait(arena, kept, runtime->key);
	int64_t now_ms = wall_ms(), limit_ms = kr_runtime_patience(&wait, now_ms);
	struct kr_error own = { 0 };

	if (limit_ms == 0)
		return refuse_at_once(runtime, &wait, now_ms, err);
	if (ask_all(arena, limit_ms, runtime, &own) == 0) {
		if (wait.failures)
			write_kept(arena, kept, kept->wait, runtime->key, "0 0\n");
		write_answers(arena, kept, runtime);
		return 0;
	}
	if (own.code == KR_E_TIMEOUT) {
		write_kept(arena, kept, kept->wait, runtime->key,
			kr_arena_printf(
				arena, "%u %lld\n", wait.failures < 1000 ? wait.failures + 1 : 1000, (long long)wall_ms()));
		kr_fail(&own, KR_E_RUNTIME_SILENT, "'%s' gives no answer within %lld s", kr_path_basename(runtime->program),
			(long long)limit_ms / 1000);
		kr_hint(&own, "'%s info' has to answer; is its service stuck, or the disk that it works on?",
			runtime->program);
	}
	own.code = KR_E_WALL;
	if (!own.hint[0])
		kr_hint(&own, "is '%s' docker or podman?", runtime->program);
	if (err)
		*err = own;
	return -1;
}

/* A worker's directories are mounted by the service, so it has to be one of this host. */
static int
check_service(struct kr_arena *arena, const struct kr_host *host, const struct kr_runtime *runtime,
	struct kr_error *err)
{
	const char *url = kr_runtime_service(arena, host, runtime->kind);

	if (!url || kr_text_has_prefix(url, "unix://"))
		return 0;
	kr_fail(err, KR_E_WALL, "the service at '%s' is another host's as far as kraft can tell", url);
	return kr_hint(err, "let %s point at a unix:// socket of this host",
		runtime->kind == KR_RUNTIME_DOCKER ? "DOCKER_HOST, or the context of docker's," : "CONTAINER_HOST");
}

int
kr_runtime_find(struct kr_arena *arena, const struct kr_host *host, const struct kr_sandbox_file *file,
	struct kr_runtime *out, struct kr_error *err)
{
	struct kr_strs path = { 0 }, programs = { 0 };
	struct kr_runtime runtime = { 0 };
	struct kept kept;

	usable_path(arena, host, &path);
	runtime.program = find_program(arena, host, &path, file, &programs, err);
	if (!runtime.program)
		return -1;
	runtime.environment = environment_of(arena, host, &path);
	runtime.key = kr_runtime_key(arena, host, runtime.program, &programs, runtime.environment);
	kept = kept_for(arena, host, runtime.program);
	if (!read_answers(arena, &kept, &runtime) && ask_patiently(arena, &kept, &runtime, err) < 0)
		return -1;
	if (check_service(arena, host, &runtime, err) < 0)
		return -1;
	*out = runtime;
	return 0;
}
