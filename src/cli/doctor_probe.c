/*
 * kraft admin doctor --probe: are this host's walls what the documentation says, asked from inside of a real session of each kind.
 *
 * Also for somebody whose system nobody here could try, as macOS at the time of writing: one run, and a table to send in. A home of
 * kraft's own, a repository and canaries are made below the person's home directory and taken away again; `kraft run`, this
 * program, starts a session in it, in which the guest program asks its questions (guest/probe.c). The same questions are asked
 * outside of it: what fails there as well proves nothing when it fails inside, and is said to be so.
 *
 * The table holds no path and no name of the person's: its texts are constant, and errors have ~ in the place of the home.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "cli/cli.h"
#include "cli/doctor.h"
#include "os/host.h"
#include "os/listen.h"
#include "os/sys.h"

enum { RUN_MS = 300000, SETUP_MS = 60000, OUTPUT_BYTES = 64 << 10, GOT_BYTES = 96, PROBES_MAX = 80 };

enum systems { LINUX = 1, MACOS = 2, BOTH = 3, IMAGE = 4 /* a container, with no program but a shell's */, EVERY = 7 };
enum expected { ALLOW, DENY, DENY_ALONE /* outside it may fail as well, so it is not asked there */ };

/* @ stands for: c the canary, d its directory, r the repository, k kraft's home, t and u a port and a socket that are
 * listened on, p a process. */
struct probe {
	const char *id;
	enum systems systems;
	enum expected expected;
	const char *question;
	const char *what;
};

static const struct probe probes[] = {
	{ "OS-MNT-04 MAC-04", EVERY, ALLOW, "read:README", "read a file of the worktree" },
	{ "OS-MNT-04 MAC-04", EVERY, ALLOW, "make:probe-file", "make a file in the worktree" },
	{ "OS-MNT-07 MAC-04", EVERY, ALLOW, "shell:t=$HOME/probe-file; echo x >\"$t\" && rm \"$t\"", "write in the session's home" },
	{ "OS-MNT-03 MAC-07", BOTH, ALLOW, "shell:t=${TMPDIR:-/tmp}/probe-file; echo x >\"$t\" && rm \"$t\"", "write in TMPDIR" },
	{ "OS-MNT-01 MAC-03", BOTH, ALLOW, "list:/usr/bin", "list /usr/bin" },
	{ "OS-MNT-01 MAC-03", EVERY, ALLOW, "read:/bin/sh", "read /bin/sh" },
	{ "OS-MNT-01 MAC-03", BOTH, ALLOW, "shell:/usr/bin/env >/dev/null", "run a program of the system's" },
	{ "OS-MNT-02 MAC-03", EVERY, ALLOW, "read:/dev/urandom", "read /dev/urandom" },
	{ "OS-MNT-02 MAC-03", EVERY, ALLOW, "open:/dev/null", "write to /dev/null" },
	{ "OS-MNT-11 MAC-04", EVERY, DENY, "read:@c", "read a file of the home directory" },
	{ "OS-MNT-11 MAC-04", EVERY, DENY, "open:@c", "write to a file of the home directory" },
	{ "OS-MNT-11 MAC-04", EVERY, DENY, "list:@d", "list a directory of the home directory" },
	{ "OS-MNT-11 MAC-04", EVERY, DENY, "make:@d/probe-made", "make a file in the home directory" },
	{ "OS-MNT-11 MAC-04", EVERY, DENY, "shell:ln -s @c probe-link; cat probe-link; s=$?; rm probe-link; exit $s",
		"read it through a link" },
	{ "OS-MNT-11 MAC-04", EVERY, DENY, "link:@c", "have it under a second name" },
	{ "OS-MNT-11 MAC-04", EVERY, DENY, "shell:mv @d @d-moved && mv @d-moved @d", "move the directory above it away" },
	{ "OS-MNT-11 MAC-04", EVERY, DENY, "shell:cat @c", "read it by another program" },
	{ "OS-MNT-06 MAC-04", EVERY, DENY, "list:@k/run/sessions", "list kraft's sessions" },
	{ "OS-MNT-11 MAC-04", EVERY, DENY, "list:@k/config", "list kraft's configuration" },
	{ "OS-MNT-11 MAC-04", EVERY, DENY, "make:@k/run/probe-made", "make a file in kraft's run directory" },
	{ "OS-MNT-11 MAC-04", EVERY, DENY, "read:@r/README", "read the person's checkout" },
	{ "OS-MNT-11 MAC-04", EVERY, DENY, "make:@r/probe-made", "make a file in the person's checkout" },
	{ "OS-MNT-11 MAC-08", EVERY, DENY, "open:@r/.git/config", "write to the repository's configuration" },
	{ "OS-MNT-11 MAC-08", EVERY, DENY, "make:@r/.git/hooks/probe-made", "make a hook in the repository" },
	{ "OS-MNT-04 MAC-13", BOTH, ALLOW, "shell:git status", "git status" },
	{ "OS-MNT-04 MAC-13", BOTH, ALLOW, "shell:git log -1 && git for-each-ref", "git log, and listing refs" },
	{ "OS-MNT-04 MAC-08", BOTH, ALLOW, "shell:echo x >probe-new && git add probe-new && git commit -qm probe", "git commit" },
	{ "MAC-08", MACOS, DENY_ALONE, "shell:git branch probe-branch", "git branch NAME" },
	{ "MAC-08", MACOS, DENY_ALONE, "shell:git tag probe-tag", "git tag NAME" },
	{ "OS-LCH-06 MAC-05", EVERY, DENY, "connect:@t", "connect to a port of the host's loopback" },
	{ "OS-MNT-11 MAC-05", EVERY, DENY, "unix:@u", "connect to a unix socket of the host" },
	{ "OS-LCH-06 MAC-05", EVERY, DENY_ALONE, "far:192.0.2.1", "connect to another host" },
	{ "OS-LCH-06", LINUX | IMAGE, ALLOW, "listen:", "listen on a port inside" },
	{ "MAC-05", MACOS, DENY, "listen:", "listen on a port" },
	{ "OS-SEC-05 MAC-05", EVERY, ALLOW, "serve-unix:probe.sock", "a unix socket in TMPDIR" },
	{ "CHN-01", EVERY, ALLOW, "call:show", "a call to kraft by the session's channel" },
	{ "POL-02 MAC-06", EVERY, DENY_ALONE, "host:closed.example", "a host that is not on the list, or no token" },
	{ "OS-SEC-07 MAC-10", EVERY, DENY, "signal:@p", "signal a process of the host" },
	{ "OS-SEC-07 MAC-10", EVERY, ALLOW, "shell:sleep 60 & kill $!", "signal a process of its own" },
	{ "OS-MNT-02", LINUX | IMAGE, DENY, "read:/proc/@p/cmdline", "see a process of the host" },
	{ "OS-LCH-03", EVERY, DENY, "variable:KRAFT_PROBE_CANARY", "a variable of the person's shell" },
	{ "OS-MNT-07", EVERY, ALLOW, "variable:HOME", "a variable of its own" },
	{ "OS-MNT-01", LINUX, DENY_ALONE, "make:/usr/probe-made", "make a file in /usr" },
	{ "OS-MNT-02", LINUX | IMAGE, DENY_ALONE, "read:/dev/mem", "read the memory of the machine" },
	{ "OS-SEC-04", LINUX, DENY_ALONE, "shell:unshare -U true", "make a user namespace" },
	{ "OS-SEC-04", LINUX | IMAGE, ALLOW, "shell:grep -q '^CapEff:[^1-9a-f]*$' /proc/self/status", "no capability" },
	{ "OS-SEC-04", LINUX | IMAGE, ALLOW, "shell:grep -q '^CapBnd:[^1-9a-f]*$' /proc/self/status", "none to be had" },
	{ "OS-SEC-04", LINUX | IMAGE, ALLOW, "shell:grep -q '^NoNewPrivs:[^0]*1$' /proc/self/status", "no program gains privileges" },
	{ "OS-SEC-01", LINUX | IMAGE, ALLOW, "shell:grep -q '^Seccomp:[^0]*2$' /proc/self/status", "a filter for system calls" },
	{ "OS-SEC-06", LINUX | IMAGE, ALLOW, "shell:test \"$(ulimit -c)\" = 0", "no core is written" },
	{ "OS-SEC-06", LINUX | IMAGE, DENY_ALONE, "make:/probe-made", "make a file in /" },
	{ "OS-MNT-02", LINUX, DENY, "list:/sys/kernel", "see the kernel's own tree" },
	{ "CHN-07", EVERY, DENY_ALONE, "call:approve", "let its own item through the gate" },
	{ "POL-04", EVERY, DENY_ALONE, "host:169.254.169.254", "the metadata of a cloud" },
	{ "MAC-04", MACOS, DENY_ALONE, "list:/Applications", "list /Applications" },
	{ "MAC-04", MACOS, DENY_ALONE, "list:/Library", "list /Library" },
	{ "MAC-04", MACOS, ALLOW, "stat:/Applications", "stat works anywhere" },
	{ "MAC-07", MACOS, DENY, "make:/tmp/kraft-probe-made", "make a file in /tmp" },
	{ "MAC-07", MACOS, DENY, "list:/private/var/folders", "list /private/var/folders" },
	{ "MAC-09", MACOS, DENY_ALONE, "shell:launchctl list", "launchd" },
	{ "MAC-09", MACOS, DENY_ALONE, "shell:open -g -a TextEdit", "LaunchServices" },
	{ "MAC-09", MACOS, DENY_ALONE, "shell:osascript -e 'tell application \"Finder\" to get name'", "Apple Events" },
	{ "MAC-09", MACOS, DENY_ALONE, "shell:echo x | pbcopy && pbpaste | grep x", "the pasteboard" },
	{ "MAC-09", MACOS, DENY_ALONE, "shell:security find-generic-password -g -s kraft-probe 2>&1 | grep -q 'could not be found'",
		"the keychain" },
	{ "MAC-13", MACOS, ALLOW, "read:/private/etc/ssl/cert.pem", "the host's CA file" },
};

struct row {
	const struct probe *probe;
	const char *question;
	char inside[GOT_BYTES], outside[GOT_BYTES]; /* "ok", or why not; "": it was not asked */
};

struct probing {
	struct kr_arena *arena;
	struct kr_host host;
	const char *self, *base; /* base: all that is made */
	const char *version;     /* what the program says of itself */
	const struct kr_probe_kind *kind;
	const char *const *environment;
	uint16_t port;
	pid_t process;
	struct row rows[PROBES_MAX];
	size_t n;
};
_Static_assert(KR_COUNT(probes) <= PROBES_MAX, "there is a row for each");

/* ---- what is asked ---- */

static const char *
value_of(const struct probing *s, char letter)
{
	struct kr_arena *arena = s->arena;

	switch (letter) {
	case 'c':
		return kr_path_join(arena, s->base, "canary/file");
	case 'd':
		return kr_path_join(arena, s->base, "canary");
	case 'r':
		return kr_path_join(arena, s->base, "repo");
	case 'k':
		return kr_path_join(arena, s->base, "k");
	case 'u':
		return kr_path_join(arena, s->base, "u");
	case 't':
		return kr_arena_printf(arena, "%u", s->port);
	default:
		return kr_arena_printf(arena, "%ld", (long)s->process);
	}
}

static const char *
filled(const struct probing *s, const char *text)
{
	kr_auto_buf struct kr_buf out = KR_BUF(4096);

	for (; *text; text++)
		if (*text == '@')
			kr_buf_adds(&out, value_of(s, *++text));
		else
			kr_buf_add(&out, text, 1);
	return kr_arena_dup_n(s->arena, out.data, out.len);
}

static void
choose(struct probing *s)
{
	const enum systems here = s->kind->image ? IMAGE : s->host.os == KR_SYSTEM_MACOS ? MACOS : LINUX;

	s->n = 0;

	for (size_t i = 0; i < KR_COUNT(probes); i++)
		if (probes[i].systems & here)
			s->rows[s->n++] = (struct row){ .probe = &probes[i], .question = filled(s, probes[i].question) };
}

/* ---- what is made for it ---- */

static int
run_child(const struct probing *s, const char *const argv[], const char *directory, int64_t limit_ms, struct kr_buf *out,
	struct kr_buf *errors, int *status, struct kr_error *err)
{
	const struct kr_child child = {
		.path = argv[0], .argv = argv, .envp = s->environment, .directory = directory, .limit_ms = limit_ms
	};

	return kr_child_run(&child, out, errors, status, err);
}

static const char script[] =
	"set -e; umask 077; mkdir canary repo k k/config; echo secret >canary/file; "
	"cd repo; git init -q; echo a probe >README; git add README; "
	"git -c user.name=kraft -c user.email=kraft@kraft.example -c commit.gpgsign=false -c core.hooksPath=/dev/null commit -qm probe; "
	"mkdir -p .git/hooks; git config user.name kraft; git config user.email kraft@kraft.example";

/* The sandbox of the kind, with one host on its list; what the person says of containers holds here too. */
static int
write_configuration(struct probing *s, struct kr_error *err)
{
	const char *config = kr_path_join(s->arena, s->base, "k/config"), *own = kr_path_join(s->arena, s->host.places.config_dir, "sandbox.yaml");
	const char *image = s->kind->image;
	json_t *sandbox = json_pack("{s:s, s:s*, s:{s:{s:[s]}}}", "kind", image ? "docker" : "os", "image", image, "network", "runtime", "allow", "allowed.example");
	json_t *root = json_pack("{s:[{s:s, s:s, s:s, s:o}]}", "repos", "path", value_of(s, 'r'), "setup_command", "", "test_command", "true", "sandbox", sandbox);
	kr_auto_buf struct kr_buf theirs = KR_BUF(KR_CONFIG_FILE_BYTES);
	char *text = root ? json_dumps(root, 0) : NULL;
	int result = text ? kr_file_write_at(AT_FDCWD, kr_path_join(s->arena, config, "repos.yaml"), text, strlen(text), 0600, err)
					  : kr_fail(err, KR_E_SYSTEM, "there is no memory for a configuration");

	if (result == 0 && image && kr_file_read_at(AT_FDCWD, own, &theirs, NULL) == 0)
		result = kr_file_write_at(AT_FDCWD, kr_path_join(s->arena, config, "sandbox.yaml"), theirs.data ? theirs.data : "", theirs.len, 0600, err);
	free(text);
	json_decref(root);
	return result;
}

/* Where no variable of kraft's leads elsewhere: all of it is below the base. */
static void
set_environment(struct probing *s)
{
	static const char *const dropped[] = { "KRAFT_HOME=", "KRAFT_RUN_DIR=", "KRAFT_CONFIG_DIR=", "GIT_" };
	struct kr_strs out = { 0 };

	for (const char *const *at = s->host.environment; *at; at++) {
		bool is_dropped = false;

		for (size_t i = 0; i < KR_COUNT(dropped); i++)
			is_dropped = is_dropped || strncmp(*at, dropped[i], strlen(dropped[i])) == 0;
		if (!is_dropped)
			kr_strs_add(s->arena, &out, *at);
	}
	kr_strs_add(s->arena, &out, kr_arena_printf(s->arena, "KRAFT_HOME=%s/k", s->base));
	kr_strs_add(s->arena, &out, "KRAFT_PROBE_CANARY=1");
	kr_strs_add(s->arena, &out, NULL);
	s->environment = out.v;
}

static int
make_place(struct probing *s, struct kr_error *err)
{
	char *base = (char *)(uintptr_t)kr_arena_printf(s->arena, "%s/.kraft-probe-XXXXXX", s->host.places.home);
	const char *argv[] = { "/bin/sh", "-c", script, NULL };
	kr_auto_buf struct kr_buf said = KR_BUF(OUTPUT_BYTES);
	int status;

	if (!mkdtemp(base))
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a directory in the home directory");
	s->base = base;
	set_environment(s);
	if (run_child(s, argv, base, SETUP_MS, &said, NULL, &status, err) < 0)
		return -1;
	if (status == 0)
		return write_configuration(s, err);
	return kr_fail(err, KR_E_SYSTEM, "cannot make a repository for the test: %.*s", (int)said.len, said.data ? said.data : "");
}

/* It only waits, and is no child of the session's. */
static pid_t
make_process(void)
{
	pid_t pid = fork();

	if (pid == 0)
		for (;;)
			(void)pause();
	return pid;
}

/* ---- asking ---- */

static void
take_answers(struct probing *s, bool inside, const char *text)
{
	for (const char *line = text; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		char *end;
		unsigned long i = strtoul(line, &end, 10);
		char *to = i < s->n ? (inside ? s->rows[i].inside : s->rows[i].outside) : NULL;

		if (to && *end == ' ')
			snprintf(to, GOT_BYTES, "%.*s", (int)strcspn(end + 1, "\n"), end + 1);
	}
}

/* A text of another program's for the table: on one line, with no home directory in it. */
static const char *
without_home(const struct probing *s, const char *text)
{
	const char *home = s->host.places.home;
	kr_auto_buf struct kr_buf out = KR_BUF(OUTPUT_BYTES);
	size_t n = strlen(home);

	for (; *text; text++)
		if (strncmp(text, home, n) == 0) {
			kr_buf_adds(&out, "~");
			text += n - 1;
		} else {
			kr_buf_add(&out, *text == '\n' ? " " : text, 1);
		}
	return kr_shown(s->arena, kr_arena_dup_n(s->arena, out.data ? out.data : "", out.len));
}

static int
ask(struct probing *s, bool inside, struct kr_error *err)
{
	const char *program = kr_path_join(s->arena, s->host.guest_dir, "bin/kraft"), *repo = value_of(s, 'r');
	struct kr_strs argv = { 0 };
	kr_auto_buf struct kr_buf out = KR_BUF(OUTPUT_BYTES), errors = KR_BUF(4096);
	const char *const first[] = { s->self, "run", "--", "sh", "-c", "exec kraft admin probe-walls \"$@\"", "sh" };
	int status;

	for (size_t i = 0; inside && i < KR_COUNT(first); i++)
		kr_strs_add(s->arena, &argv, first[i]);
	for (int i = 0; !inside && i < 3; i++)
		kr_strs_add(s->arena, &argv, i == 0 ? program : i == 1 ? "admin" : "probe-walls");
	for (size_t i = 0; i < s->n; i++)
		kr_strs_add(s->arena, &argv, inside || s->rows[i].probe->expected == DENY ? s->rows[i].question : "none:");
	kr_strs_add(s->arena, &argv, NULL);
	if (run_child(s, argv.v, repo, RUN_MS, &out, &errors, &status, err) < 0)
		return -1;
	take_answers(s, inside, out.data ? out.data : "");
	if (s->n == 0 || (inside ? s->rows[s->n - 1].inside : s->rows[s->n - 1].outside)[0])
		return 0;
	return kr_fail(err, KR_E_WALL, "the probes did not run %s: %s", inside ? "inside" : "outside",
		without_home(s, errors.data ? errors.data : ""));
}

/* ---- the table ---- */

/* "": as it must be. */
static const char *
wrong(const struct row *row)
{
	bool passed = strcmp(row->inside, "ok") == 0;

	if (row->probe->expected == ALLOW)
		return passed ? "" : "WRONG";
	if (passed)
		return "WRONG";
	return row->probe->expected == DENY && strcmp(row->outside, "ok") != 0 ? "NO CONTROL" : "";
}

static const char *
system_words(const struct probing *s, const struct utsname *name)
{
	const char *words = kr_system_words(s->arena);

	return *words ? kr_shown(s->arena, words) : name->sysname;
}

static void
add_json(const struct probing *s, json_t *rows)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct row *row = &s->rows[i];

		json_array_append_new(rows,
			json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b}", "kind", s->kind->name, "id", row->probe->id, "probe", row->probe->what, "expected",
				row->probe->expected == ALLOW ? "allow" : "deny", "inside", row->inside, "outside",
				row->probe->expected == DENY ? row->outside : "", "right", !*wrong(row)));
	}
}

static void
print(const struct probing *s, const struct utsname *name)
{
	size_t right = 0;

	printf("kraft %s; %s, %s %s %s, kind %s\n", s->version, system_words(s, name), name->sysname, name->release, name->machine, s->kind->name);
	for (size_t i = 0; i < s->n; i++) {
		const struct row *row = &s->rows[i];
		const char *verdict = wrong(row);

		right += !*verdict;
		printf("%-10s  %-5s  %-44s  %-18s  inside: %s\n", *verdict ? verdict : "right",
			row->probe->expected == ALLOW ? "allow" : "deny", row->probe->what, row->probe->id, row->inside);
	}
	printf("%zu of %zu as they must be\n", right, s->n);
}

/* ---- all of it ---- */

/* Of the program that is tested, which has the commit that it was built of. */
static int
ask_version(struct probing *s, struct kr_error *err)
{
	const char *const argv[] = { s->self, "--version", NULL };
	kr_auto_buf struct kr_buf said = KR_BUF(GOT_BYTES), errors = KR_BUF(GOT_BYTES);
	int status;

	s->environment = s->host.environment;
	if (run_child(s, argv, "/", SETUP_MS, &said, &errors, &status, err) < 0)
		return -1;
	if (status != 0 || !said.len || strncmp(said.data, "kraft ", 6) != 0)
		return kr_fail(err, KR_E_SYSTEM, "this program does not say its version");
	s->version = kr_shown(s->arena, kr_arena_dup_n(s->arena, said.data + 6, strcspn(said.data + 6, "\n")));
	return 0;
}

static int
ask_all(struct probing *s, struct kr_error *err)
{
	kr_auto_fd int port = -1, socket = -1;

	if (make_place(s, err) < 0)
		return -1;
	port = kr_listen_loopback(8, &s->port, err);
	socket = port < 0 ? -1 : kr_listen_unix(value_of(s, 'u'), 8, err);
	if (socket < 0)
		return -1;
	s->process = make_process();
	if (s->process < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a process");
	choose(s);
	return ask(s, true, err) < 0 || ask(s, false, err) < 0 ? -1 : 0;
}

static void
clean(struct probing *s)
{
	if (s->process > 0 && kill(s->process, SIGKILL) == 0)
		(void)waitpid(s->process, NULL, 0); /* it is gone either way */
	if (s->base && kr_tree_remove_at(AT_FDCWD, s->base) < 0)
		fprintf(stderr, "kraft: cannot remove '%s'\n", s->base);
}

/* One kind. -1: no session starts, or nothing can be asked. */
static int
probe_kind(struct probing *s, struct kr_error *err)
{
	int result = ask_all(s, err);

	clean(s);
	return result;
}

int
kr_doctor_probe(struct kr_arena *arena, const struct kr_host *host, const struct kr_probe_kind *kinds, size_t n, bool json, struct kr_error *err)
{
	struct probing *s = kr_arena_new(arena, struct probing);
	json_t *rows = json_array();
	struct utsname name;
	bool well = true;
	int result = 0;

	*s = (struct probing){ .arena = arena, .host = *host };
	s->self = kr_self_path(arena);
	if (!s->self || uname(&name) < 0)
		result = kr_fail(err, KR_E_SYSTEM, "the system does not say which program this is");
	if (result == 0)
		result = ask_version(s, err);
	for (size_t i = 0; i < n && result == 0; i++) {
		s->kind = &kinds[i];
		result = probe_kind(s, err);
		if (result < 0 && n > 1)
			kr_wrap(err, "kind %s", kinds[i].name);
		for (size_t k = 0; k < s->n && result == 0; k++)
			well = well && !*wrong(&s->rows[k]);
		if (result == 0 && !json)
			print(s, &name);
		add_json(s, rows);
	}
	if (result == 0 && json)
		result = kr_print_json(json_pack("{s:b, s:s, s:s, s:s, s:s, s:O}", "ok", well, "kraft", s->version, "system", system_words(s, &name), "release",
								   name.release, "machine", name.machine, "rows", rows), err);
	json_decref(rows);
	return result < 0 ? -1 : well ? 0 : 1;
}
