/* Rows about what runs, what ran and left something, and the agents that could be started. */
#include "cli/doctor.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/api.h"
#include "base/fd.h"
#include "base/path.h"
#include "cli/harnesses.h"
#include "cli/service.h"
#include "run/agent.h"
#include "run/container.h"
#include "server/server.h"
#include "session/facts.h"

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

/* Whoever has it acts for this person. */
static void
check_token(struct kr_doctor *d)
{
	struct kr_error err = { 0 };
	const char *token = NULL;

	if (kr_api_token_look(d->arena, &d->host.places, &token, &err) < 0) {
		kr_doctor_add_error(d, "token", &err);
		kr_doctor_mend_mode(d, kr_path_join(d->arena, d->host.places.run_dir, "token"), 0600);
	} else if (token)
		kr_doctor_add(d, "token", KR_VERDICT_OK, "", "only you can read it");
	else
		kr_doctor_add(d, "token", KR_VERDICT_SKIP, "", "there is none yet: the first server makes it");
}

/* ---- the service ---- */

static bool
has_login(const struct kr_buf *file, const char *name)
{
	const char *line = file->data;

	for (const char *end = line + file->len; line && line < end;) {
		const size_t n = strlen(name);

		if ((size_t)(end - line) > n && memcmp(line, name, n) == 0 && line[n] == '=')
			return true;
		line = memchr(line, '\n', (size_t)(end - line));
		line = line ? line + 1 : NULL;
	}
	return false;
}

/* A shell's login does not reach a service: what is set here and not there is what a person misses at night. */
static void
check_service(struct kr_doctor *d)
{
	static const char *const logins[] = { "CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY" };
	const char *unit = kr_service_file(d->arena, &d->host), *environment = kr_service_environment(d->arena, &d->host);
	kr_auto_buf struct kr_buf text = KR_BUF(64 << 10);
	struct stat st;
	bool well = true;

	if (d->host.os == KR_SYSTEM_MACOS || access(unit, F_OK) < 0)
		return;
	if (lstat(environment, &st) == 0 && st.st_mode & 077) {
		kr_doctor_add(d, "service", KR_VERDICT_FAIL, kr_arena_printf(d->arena, "chmod 600 '%s'", environment), "'%s' holds logins, and others may use it", environment);
		kr_doctor_mend_mode(d, environment, 0600);
		return;
	}
	(void)kr_file_read_at(AT_FDCWD, environment, &text, NULL); /* there is none yet */
	for (size_t i = 0; i < KR_COUNT(logins); i++) {
		const char *value = kr_host_env(&d->host, logins[i]);

		if (!value || !*value || has_login(&text, logins[i]))
			continue;
		well = false;
		kr_doctor_add(d, "service", KR_VERDICT_WARN, kr_arena_printf(d->arena, "write %s=... into '%s' (chmod 600), and restart the service", logins[i], environment),
			"%s is set here, and the service has it not", logins[i]);
		if (value[strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-+/=")] == '\0')
			kr_doctor_mend(d, (struct kr_mend){ .path = environment, .mode = 0600, .name = logins[i], .value = value });
	}
	if (well)
		kr_doctor_add(d, "service", KR_VERDICT_OK, "", "'%s'", unit);
}

/* ---- what was left behind ---- */

struct left {
	struct kr_doctor *d;
	const char *run_dir, *first;
	size_t n;
};

static bool
see_channel(void *context, const char *name, enum kr_fs_type type)
{
	struct left *left = context;

	if (type == KR_FS_DIR && kr_session_is_over(left->run_dir, name) && left->n++ == 0)
		left->first = kr_arena_dup(left->d->arena, name);
	return true;
}

/* The next session sweeps them; one that stays is worth a look. */
static void
check_strays(struct kr_doctor *d)
{
	struct left left = { .d = d, .run_dir = d->host.places.run_dir };
	struct kr_strs containers = { 0 };
	struct kr_error err = { 0 };

	(void)d->host.fs->list(d->host.fs->context, kr_path_join(d->arena, left.run_dir, "sn"), see_channel, &left); /* none yet */
	if (d->runtime && d->runtime->has_runtime &&
		kr_run_container_left(d->arena, &d->host, &d->runtime->runtime, &containers, &err) < 0)
		kr_doctor_add(d, "strays", KR_VERDICT_WARN, err.hint, "%s", err.message);
	else if (containers.n)
		kr_doctor_add(d, "strays", KR_VERDICT_WARN, "the next session removes it; by hand: kraft admin restart",
			"%zu container%s of sessions that are over, the first is '%s'", containers.n, containers.n == 1 ? "" : "s", containers.v[0]);
	else if (left.n)
		kr_doctor_add(d, "strays", KR_VERDICT_WARN, "the next session removes them", "%zu folder%s of sessions that are over, the first is '%s'",
			left.n, left.n == 1 ? "" : "s", left.first);
	else
		kr_doctor_add(d, "strays", KR_VERDICT_OK, "", "no session left anything behind");
}

/* ---- the agents ---- */

/* Asking it would start it, and that is for a session: here is what sessions have found out. */
static const char *
agent_words(struct kr_doctor *d, const struct kr_harness_seen *seen)
{
	struct kr_run_agent_recalled known;

	kr_run_agent_recall(d->arena, &d->host, &seen->harness, seen->program, &known);
	return kr_arena_printf(d->arena, "'%s'%s%s", seen->program,
		known.version              ? kr_arena_printf(d->arena, ", version %s", known.version)
		: seen->harness.min_version ? kr_arena_printf(d->arena, ", which its first task asks whether it is %s or newer", seen->harness.min_version)
									: "",
		known.heeds_hook ? ", shown to heed kraft's hook" : "");
}

static void
check_harness(struct kr_doctor *d, const struct kr_harness_seen *seen)
{
	const char *check = kr_arena_printf(d->arena, "harness %s", seen->id);

	if (!seen->loads)
		kr_doctor_add_error(d, check, &seen->err);
	else if (!seen->harness.enabled)
		kr_doctor_add(d, check, KR_VERDICT_SKIP, "", "it is switched off");
	else if (!seen->program)
		kr_doctor_add(d, check, KR_VERDICT_SKIP, "", "'%s' is not on this host's PATH", seen->harness.command);
	else
		kr_doctor_add(d, check, KR_VERDICT_OK, "", "%s", agent_words(d, seen));
}

static void
check_harnesses(struct kr_doctor *d)
{
	struct kr_error err = { 0 };
	size_t n;
	const struct kr_harness_seen *seen = kr_harnesses_look(d->arena, &d->host, &n, &err);

	if (!seen)
		kr_doctor_add_error(d, "harnesses", &err);
	for (size_t i = 0; seen && i < n; i++)
		check_harness(d, &seen[i]);
}

void
kr_doctor_running(struct kr_doctor *d)
{
	check_user_manager(d);
	check_server(d);
	if (geteuid() != 0) {
		check_token(d);
		check_service(d);
		check_strays(d);
	}
	check_harnesses(d);
}
