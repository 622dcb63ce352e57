/*
 * The one caller of the git program on the host.
 *
 * What a run is given: the program at an absolute path; an environment made here (nothing of ours crosses but
 * what env_fill names, so no GIT_* variable steers it); the repository by GIT_DIR, so that nothing is
 * discovered; pins for every setting through which a repository can start a program that the person did not
 * mean to start now. The person's own git configuration counts (filters of large files live there), and so
 * does the repository's: a worker writes neither.
 *
 * What a run must not do: ask (its own session, no terminal, no stdin but a file it is given), page, fetch
 * what a partial clone lacks, follow refs/replace, collect garbage, or outlive us: half of a checkout that
 * goes on after its kraft was killed would race with the next kraft that makes the worktree anew. The
 * exceptions are short runs that leave the repository broken when they are killed half-way (`worktree add`,
 * and `update-ref` with a ref's lock file); those go on to their end, and can hold a lock of the caller's
 * until then.
 *
 * Not started by posix_spawn for that last point alone (os/sys.h, kr_start_program): posix_spawn cannot set a parent-death
 * signal.
 */
#include "git/git.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "os/host.h"
#include "os/sys.h"

enum {
	STDERR_KEPT = 4096, /* the end of what git said; the reason is in its last lines */
	LOOK_MS = 200,      /* how often a run whose pipes stay open is asked whether it ended */
};

/* Facts 4.1, the findings M11 and M12 of the security cases, and what would make a run slow or long-lived. */
static const struct {
	const char *key, *value;
} pins[] = {
	{ "core.hooksPath", "/dev/null" }, /* the first: see add_pins */
	{ "core.fsmonitor", "" },
	{ "core.pager", "cat" },
	{ "core.askPass", "" },
	{ "core.splitIndex", "false" },
	{ "core.alternateRefsCommand", "" },
	{ "submodule.recurse", "false" },
	{ "fetch.recurseSubmodules", "false" },
	{ "push.recurseSubmodules", "no" },
	{ "diff.submodule", "short" },
	{ "status.submoduleSummary", "false" },
	{ "diff.ignoreSubmodules", "dirty" },
	{ "safe.bareRepository", "explicit" },
	{ "commit.gpgSign", "false" },
	{ "log.showSignature", "false" },
	{ "gc.auto", "0" },
	{ "maintenance.auto", "false" },
	{ "protocol.ext.allow", "never" },
	{ "worktree.useRelativePaths", "false" },
	{ "advice.addEmbeddedRepo", "false" },
};

/*
 * What crosses from our own environment. Large-file filters fetch what they lack from the person's own server
 * while a worktree is made, so the way out of this network crosses too.
 */
static const char *const passed_on[] = {
	"USER",
	"LOGNAME",
	"XDG_CONFIG_HOME",
	"XDG_CACHE_HOME",
	"SSH_AUTH_SOCK",
	"http_proxy",
	"https_proxy",
	"all_proxy",
	"no_proxy",
	"HTTP_PROXY",
	"HTTPS_PROXY",
	"ALL_PROXY",
	"NO_PROXY",
	"SSL_CERT_FILE",
	"SSL_CERT_DIR",
};

/* ---- the program ---- */

static bool
is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

enum { SEARCH_PATH_BYTES = 65536 };

/* Where a system keeps its programs: nobody's checkout lies there, so these come before what PATH says. */
static const char *const system_places[] = {
	"/usr/local/bin",
	"/usr/bin",
	"/bin",
	"/run/current-system/sw/bin",
};

/* Where git and its helpers are looked for: no relative entry, none in a checkout. What is too long is left
 * out. */
static const char *
search_path(struct kr_arena *arena)
{
	kr_auto_buf struct kr_buf out = KR_BUF(SEARCH_PATH_BYTES);
	const char *path = getenv("PATH");

	for (size_t i = 0; i < KR_COUNT(system_places); i++)
		kr_buf_addf(&out, "%s%s", i ? ":" : "", system_places[i]);
	for (const char *p = path ? path : ""; *p && !out.overflow;) {
		size_t n = strcspn(p, ":");
		const char *entry = kr_arena_dup_n(arena, p, n);

		if (entry[0] == '/' && n < KR_PATH_MAX && !kr_in_checkout(arena, entry))
			kr_buf_addf(&out, ":%s", entry);
		p += n + (p[n] == ':');
	}
	return kr_arena_dup(arena, out.data);
}

const char *
kr_program_find(struct kr_arena *arena, const char *name)
{
	for (const char *p = search_path(arena); *p;) {
		size_t n = strcspn(p, ":");
		const char *path = kr_arena_printf(arena, "%.*s/%s", (int)n, p, name);

		if (strlen(path) < KR_PATH_MAX && is_program(path))
			return path;
		p += n + (p[n] == ':');
	}
	return NULL;
}

const char *
kr_git_program(struct kr_error *err)
{
	static char found[KR_PATH_MAX]; /* one process has one PATH */
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const char *path = found[0] ? NULL : kr_program_find(&arena, "git");

	if (path)
		snprintf(found, sizeof(found), "%s", path);
	if (found[0])
		return found;
	kr_fail(err, KR_E_NO_GIT, "git was not found on PATH");
	kr_hint(err, "install git (Debian and Ubuntu: sudo apt-get install git)");
	return NULL;
}

/* ---- the environment ---- */

static void
add_env(struct kr_arena *arena, struct kr_strs *env, const char *name, const char *value)
{
	if (value)
		kr_strs_add(arena, env, kr_arena_printf(arena, "%s=%s", name, value));
}

static const char *
home_of_person(void)
{
	const char *home = getenv("HOME");
	const struct passwd *pw;

	if (home && home[0] == '/')
		return home;
	pw = getpwuid(getuid());
	return pw ? pw->pw_dir : "/";
}

/* A push lifts the first one: the repository's pre-push hook is meant to run. */
static void
add_pins(struct kr_arena *arena, const struct kr_git_where *where, struct kr_strs *env)
{
	size_t first = where->pushes;

	add_env(arena, env, "GIT_CONFIG_COUNT", kr_arena_printf(arena, "%zu", KR_COUNT(pins) - first));
	for (size_t i = first; i < KR_COUNT(pins); i++) {
		add_env(arena, env, kr_arena_printf(arena, "GIT_CONFIG_KEY_%zu", i - first), pins[i].key);
		add_env(arena, env, kr_arena_printf(arena, "GIT_CONFIG_VALUE_%zu", i - first), pins[i].value);
	}
}

static void
env_fill(struct kr_arena *arena, const struct kr_git_where *where, struct kr_strs *env)
{
	add_env(arena, env, "PATH", search_path(arena));
	add_env(arena, env, "HOME", home_of_person());
	for (size_t i = 0; i < KR_COUNT(passed_on); i++)
		add_env(arena, env, passed_on[i], getenv(passed_on[i]));
	add_env(arena, env, "LANG", "C");
	add_env(arena, env, "LC_ALL", "C");
	add_env(arena, env, "GIT_TERMINAL_PROMPT", "0");
	add_env(arena, env, "GIT_OPTIONAL_LOCKS", "0");
	add_env(arena, env, "GIT_NO_REPLACE_OBJECTS", "1");
	add_env(arena, env, "GIT_PAGER", "cat");
	add_env(arena, env, "GIT_EDITOR", "false");
	/* A git older than 2.44 does not know the first; the second stops its fetch all the same. */
	add_env(arena, env, "GIT_NO_LAZY_FETCH", "1");
	if (!where->pushes)
		add_env(arena, env, "GIT_ALLOW_PROTOCOL", "");
	/* For reflogs. Where the person's is not configured git asks the name server for this host's name, and waits. */
	add_env(arena, env, "GIT_COMMITTER_EMAIL", "kraft@localhost");
	add_env(arena, env, "GIT_DIR", where->git_dir);
	if (!where->git_dir)
		add_env(arena, env, "GIT_CEILING_DIRECTORIES", "/");
	add_env(arena, env, "GIT_WORK_TREE", where->work_tree);
	add_env(arena, env, "GIT_INDEX_FILE", where->index_file);
	add_pins(arena, where, env);
	for (const char *const *e = where->extra_env; e && *e; e++)
		kr_strs_add(arena, env, *e);
}

/* ---- the child ---- */

struct child {
	const char *program, *directory; /* directory: NULL when directory_fd is set */
	char *const *argv, *const *env;
	int directory_fd, in_fd, out_fd, err_fd;
	int hold_fd; /* 0 or -1: none */
	uint64_t memory_bytes;
	unsigned cpu_s;
};

static void
close_on_exec_above_stdio(void)
{
#if defined(__linux__) && defined(CLOSE_RANGE_CLOEXEC)
	if (close_range(3, ~0u, CLOSE_RANGE_CLOEXEC) == 0)
		return;
#endif
	/* Ours are close-on-exec from birth; this is for what a library opened, or our own parent left open. */
	for (int fd = 3; fd < 1024; fd++)
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

static int
limit_to(int resource, rlim_t most)
{
	struct rlimit now;

	if (most == 0)
		return 0;
	if (getrlimit(resource, &now) == 0 && now.rlim_max != RLIM_INFINITY && now.rlim_max < most)
		most = now.rlim_max;
	return setrlimit(resource, &(const struct rlimit){ most, most });
}

/* Comes back when it cannot; see kr_start. */
static int
become_git(const void *context)
{
	const struct child *child = context;

	if (dup2(child->in_fd, 0) < 0 || dup2(child->out_fd, 1) < 0 || dup2(child->err_fd, 2) < 0 ||
		limit_to(RLIMIT_DATA, child->memory_bytes) < 0 || limit_to(RLIMIT_CPU, child->cpu_s) < 0 ||
		(child->directory ? chdir(child->directory) : fchdir(child->directory_fd)) < 0)
		return errno;
	close_on_exec_above_stdio();
	if (child->hold_fd > 0)
		(void)fcntl(child->hold_fd, F_SETFD, 0);
	execve(child->program, child->argv, child->env);
	return errno;
}

static int64_t
now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now); /* it has no way to fail */
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int
kr_git_start(
	const struct kr_git_where *where, const char *const argv[], struct kr_git_run *run, struct kr_error *err)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	kr_auto_fd int out_read = -1, out_write = -1, err_read = -1, err_write = -1, null_fd = -1;
	const char *program = kr_git_program(err);
	struct kr_strs words = { 0 }, env = { 0 };
	struct child child;
	pid_t pid;
	int failed;

	if (!program || kr_pipe(&out_read, &out_write, err) < 0 || kr_pipe(&err_read, &err_write, err) < 0)
		return -1;
	null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null_fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot open '/dev/null'");
	kr_strs_add(&arena, &words, "git");
	for (const char *const *word = argv; *word; word++)
		kr_strs_add(&arena, &words, *word);
	env_fill(&arena, where, &env);
	child = (struct child){
		.program = program,
		.argv = (char *const *)words.v,
		.env = (char *const *)env.v,
		.directory = where->work_dir_fd > 0 ? NULL
					 : where->work_tree     ? where->work_tree
											: "/",
		.directory_fd = where->work_dir_fd,
		.in_fd = where->stdin_fd > 0 ? where->stdin_fd : null_fd,
		.out_fd = out_write,
		.err_fd = err_write,
		.hold_fd = where->hold_fd,
		.memory_bytes = where->memory_bytes,
		.cpu_s = where->cpu_s,
	};
	failed = kr_start_program(&(const struct kr_start){ .become = become_git,
							  .context = &child,
							  .ends_with_us = where->hold_fd <= 0 && !where->lives_on },
		&pid);
	if (failed)
		return kr_fail_errno(err, KR_E_SYSTEM, failed, "cannot start '%s'", program);
	*run =
		(struct kr_git_run){ .pid = pid, .out_fd = kr_steal_fd(out_read), .err_fd = kr_steal_fd(err_read) };
	if (where->wall_s)
		run->until_ms = now_ms() + (int64_t)where->wall_s * 1000;
	snprintf(run->verb, sizeof(run->verb), "%s", argv[0]);
	return 0;
}

/* ---- its end ---- */

/* Progress is ASCII with carriage returns; anything else might steer the terminal. */
static void
show(const char *bytes, size_t n)
{
	char safe[4096];

	n = n < sizeof(safe) ? n : sizeof(safe);
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)bytes[i];

		safe[i] = (c >= 0x20 && c < 0x7f) || c == '\r' || c == '\n' || c == '\t' ? bytes[i] : '?';
	}
	(void)kr_write_all(STDERR_FILENO, safe, n, NULL); /* a terminal that went away is no reason to stop */
}

struct gather {
	struct kr_git_run *run;
	struct kr_buf *out; /* NULL: dropped */
	struct kr_buf *tail; /* the last of what it said */
	bool show, failed; /* failed: *out is full, or the sink wants no more */
	bool is_late;      /* it took longer than it may */
};

/* Takes what is there; closes the descriptor at its end. False when nothing was there. */
static bool
take(struct gather *g, int *fd)
{
	char chunk[4096];
	ssize_t n = read(*fd, chunk, sizeof(chunk));

	if (n < 0)
		return errno == EINTR;
	if (n == 0) {
		kr_close_p(fd);
		return true;
	}
	if (fd == &g->run->err_fd) {
		kr_buf_add_last(g->tail, chunk, (size_t)n);
		if (g->show)
			show(chunk, (size_t)n);
	} else if (g->run->sink) {
		g->failed = g->failed || g->run->sink(g->run->sink_context, chunk, (size_t)n) < 0;
	} else if (g->out) {
		kr_buf_add(g->out, chunk, (size_t)n);
		g->failed = g->failed || g->out->overflow;
	}
	return true;
}

static void
look_whether_ended(struct kr_git_run *run, int *status)
{
	if (run->pid && waitpid(run->pid, status, WNOHANG) == run->pid)
		run->pid = 0;
}

/*
 * Reads both pipes to their end. A helper that a filter left behind can hold them open for ever (a credential
 * cache does), so once git itself has ended what is there is all there will be.
 */
static void
gather(struct gather *g, int *status)
{
	struct kr_git_run *run = g->run;

	while ((run->out_fd >= 0 || run->err_fd >= 0) && !g->failed) {
		struct pollfd fds[] = { { run->out_fd, POLLIN, 0 }, { run->err_fd, POLLIN, 0 } };
		int ready = poll(fds, KR_COUNT(fds), run->pid ? LOOK_MS : 0);

		g->is_late = run->pid && run->until_ms && now_ms() >= run->until_ms;
		if (g->is_late)
			return;
		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0 && (!run->pid || ready < 0))
			return;
		if (ready == 0)
			look_whether_ended(run, status);
		if (fds[0].revents)
			(void)take(g, &run->out_fd);
		if (fds[1].revents)
			(void)take(g, &run->err_fd);
	}
}

/* A part of the tail. */
struct words {
	const char *text;
	size_t len;
};

static bool
mark(struct words line, const char *prefix, struct words *out)
{
	size_t n = strlen(prefix);

	if (line.len <= n || memcmp(line.text, prefix, n) != 0)
		return false;
	*out = (struct words){ line.text + n, line.len - n };
	return true;
}

/* "fatal" is often as general as "adding files failed", and the "error" before it says which. */
static void
last_words(const struct kr_buf *tail, char *out, size_t out_size)
{
	struct words fatal = { 0 }, error = { 0 }, last = { "it gave no reason", 17 };
	size_t used;

	for (size_t i = 0; i < tail->len;) {
		struct words line = { tail->data + i, 0 };

		while (i + line.len < tail->len && line.text[line.len] != '\n' && line.text[line.len] != '\r')
			line.len++;
		if (line.len && !mark(line, "fatal: ", &fatal) && !mark(line, "error: ", &error))
			last = line;
		i += line.len + 1;
	}
	if (!fatal.len && !error.len)
		error = last;
	used = kr_text_escape(out, out_size, fatal.text, fatal.len);
	if (fatal.len && error.len && used + 3 < out_size)
		used += (size_t)snprintf(out + used, out_size - used, ": ");
	if (used < out_size)
		kr_text_escape(out + used, out_size - used, error.text, error.len);
}

static int
judge(const struct gather *g, int status, struct kr_error *err)
{
	char why[600];

	if (g->is_late)
		return kr_fail(err, KR_E_GIT, "git %s was ended: it took too long", g->run->verb);
	if (g->failed && g->run->sink)
		return kr_fail(err, KR_E_SYSTEM, "git %s was ended: what it prints could not be passed on", g->run->verb);
	if (g->failed)
		return kr_fail(err, KR_E_LIMIT, "git %s printed more than %zu bytes", g->run->verb, g->out->max);
	if (WIFSIGNALED(status))
		return kr_fail(err, KR_E_GIT, "git %s was ended by signal %d", g->run->verb, WTERMSIG(status));
	if (WEXITSTATUS(status) == 0)
		return 0;
	last_words(g->tail, why, sizeof(why));
	return kr_fail(err, KR_E_GIT, "git %s failed: %s", g->run->verb, why);
}

int
kr_git_finish(struct kr_git_run *run, struct kr_buf *out, struct kr_error *err)
{
	kr_auto_buf struct kr_buf tail = KR_BUF(STDERR_KEPT);
	struct gather g = { .run = run, .out = out, .tail = &tail };
	int status = 0;

	KR_BUG_IF(!run->pid);
	g.show = run->show_progress && isatty(STDERR_FILENO);
	gather(&g, &status);
	if (g.failed || g.is_late)
		kr_git_abandon(run);
	while (run->pid && waitpid(run->pid, &status, 0) < 0)
		if (errno != EINTR)
			return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot wait for git %s", run->verb);
	run->pid = 0;
	kr_close_p(&run->out_fd);
	kr_close_p(&run->err_fd);
	return judge(&g, status, err);
}

void
kr_git_abandon(struct kr_git_run *run)
{
	if (!run->pid)
		return;
	(void)kill(-run->pid, SIGKILL); /* what it started too: it leads its session */
	(void)kill(run->pid, SIGKILL);
	while (waitpid(run->pid, NULL, 0) < 0 && errno == EINTR)
		;
	run->pid = 0;
	kr_close_p(&run->out_fd);
	kr_close_p(&run->err_fd);
}

int
kr_git_run(
	const struct kr_git_where *where, const char *const argv[], struct kr_buf *out, struct kr_error *err)
{
	struct kr_git_run run = { 0 };

	if (kr_git_start(where, argv, &run, err) < 0)
		return -1;
	return kr_git_finish(&run, out, err);
}
