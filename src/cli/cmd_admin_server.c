/* kraft admin start, stop, restart, health, reload: the server. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/portable.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/work.h"
#include "config/access.h"
#include "server/server.h"

enum { START_DETACH, START_BIND, START_PORT };
static const struct kr_option start_options[] = {
	[START_DETACH] = { "detach", 'd', NULL, "in the background, when it listens; its log is run/server.log" },
	[START_BIND] = { "bind", 0, "ADDRESS", "listen here, in place of KRAFT_HOST or access.yaml's bind" },
	[START_PORT] = { "port", 0, "N", "and on this port, in place of KRAFT_PORT or access.yaml's; 0: any" },
	{ NULL },
};

static int
read_port(const char *name, const char *text, int *out, struct kr_error *err)
{
	uint64_t port;

	if (!kr_text_to_u64(text, UINT16_MAX, &port))
		return kr_fail(err, KR_E_USAGE, "%s '%s' is no port: a number from 0 to 65535", name, text);
	*out = (int)port;
	return 0;
}

static int
read_want(const struct kr_parsed *parsed, struct kr_server_want *want, struct kr_error *err)
{
	const char *host = getenv("KRAFT_HOST"), *port = getenv("KRAFT_PORT");

	*want = (struct kr_server_want){ .bind = host && *host ? host : NULL, .port = -1 };
	if (port && *port && read_port("KRAFT_PORT", port, &want->port, err) < 0)
		return -1;
	if (parsed->value[START_BIND])
		want->bind = parsed->value[START_BIND];
	return parsed->value[START_PORT] ? read_port("--port", parsed->value[START_PORT], &want->port, err) : 0;
}

/* ---- in the background ---- */

struct word {
	bool is_ready;
	char url[256];
	struct kr_error err;
};

static void
tell_ready(void *context, const char *url)
{
	struct word word = { .is_ready = true };
	int *fd = context;

	snprintf(word.url, sizeof(word.url), "%s", url);
	(void)kr_write_all(*fd, &word, sizeof(word), NULL); /* nobody waits any more when it fails */
	kr_close_p(fd);
}

static void
be_server(struct kr_server_want *want, const char *log, int word_fd)
{
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	int log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct word word = { 0 };

	(void)setsid();
	want->on_ready = tell_ready;
	want->context = &word_fd;
	if (null_fd < 0 || log_fd < 0 || dup2(null_fd, 0) < 0 || dup2(log_fd, 1) < 0 || dup2(log_fd, 2) < 0)
		kr_fail_errno(&word.err, KR_E_SYSTEM, errno, "cannot open '%s'", log);
	else if (kr_server_run(want, &word.err) < 0 && word_fd < 0)
		kr_error_print(&word.err, stderr, false);
	if (word_fd >= 0)
		(void)kr_write_all(word_fd, &word, sizeof(word), NULL);
	fflush(NULL);
	_exit(word.err.code != 0);
}

static int
detach(struct kr_arena *arena, struct kr_server_want *want, struct kr_error *err)
{
	struct word word = { 0 };
	struct kr_host host;
	const char *log;
	size_t n = 0;
	int ends[2];
	pid_t pid;

	if (kr_host_gather(arena, &host, err) < 0 || kr_host_prepare_dirs(&host, err) < 0)
		return -1;
	log = kr_arena_printf(arena, "%s/server.log", host.places.run_dir);
	if (kr_pipe_pair(ends, false) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a pipe");
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		(void)close(ends[0]);
		be_server(want, log, ends[1]);
	}
	(void)close(ends[1]);
	while (pid > 0 && n < sizeof(word)) {
		ssize_t got = read(ends[0], (char *)&word + n, sizeof(word) - n);

		if (got == 0 || (got < 0 && errno != EINTR))
			break;
		n += got > 0 ? (size_t)got : 0;
	}
	(void)close(ends[0]);
	if (pid < 0 || n != sizeof(word)) {
		kr_fail(err, KR_E_SERVER, "the server ended before it listened");
		return kr_hint(err, "its log is '%s'", log);
	}
	if (!word.is_ready) {
		*err = word.err;
		return -1;
	}
	printf("process %d listens on %s\n", (int)pid, word.url);
	return 0;
}

/* ---- the commands ---- */

static int
start(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct kr_server_want want;

	if (kr_work_refuse_session(err) < 0 || read_want(parsed, &want, err) < 0)
		return -1;
	return parsed->value[START_DETACH] ? detach(arena, &want, err) : kr_server_run(&want, err);
}

const struct kr_command kr_cmd_admin_start = {
	.name = "admin start",
	.usage = "[OPTIONS]",
	.summary = "start the server: it keeps items going and answers the HTTP API",
	.help = "It gives every item that is to go on a process of its own, max_concurrent (policy.yaml) at a time. "
			"It\n"
			"can end or be killed at any time: what runs goes on, and the next one finds it.\n"
			"'kraft' alone does the same. Ctrl-C ends it.",
	.options = start_options,
	.words_max = 0,
	.run = start,
};

enum { STOP_SESSIONS };
static const struct kr_option stop_options[] = {
	[STOP_SESSIONS] = { "sessions", 0, NULL, "also pause every item that runs" },
	{ NULL },
};

static int
pause_all(struct kr_arena *arena, struct kr_error *err)
{
	struct kr_work_list list;
	struct kr_work work;
	int result = kr_work_open(arena, &work, err);

	if (result == 0)
		result = kr_work_list(&work, false, &list, err);
	for (size_t i = 0; result == 0 && i < list.n; i++) {
		struct kr_error why = { 0 };

		if (!list.v[i].is_hosted)
			continue;
		if (kr_work_pause(&work, list.v[i].row.id, &why) == 0)
			printf("%s paused\n", list.v[i].row.id);
		else if (why.code != KR_E_REFUSED) { /* else it came to its end meanwhile */
			*err = why;
			result = -1;
		}
	}
	kr_work_close(&work);
	return result;
}

static int
stop(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct kr_host host;

	if (kr_work_refuse_session(err) < 0 || kr_host_gather_places(arena, &host, err) < 0 ||
		kr_server_stop(arena, &host.places, err) < 0)
		return -1;
	puts("the server has ended");
	return parsed->value[STOP_SESSIONS] ? pause_all(arena, err) : 0;
}

const struct kr_command kr_cmd_admin_stop = {
	.name = "admin stop",
	.usage = "[OPTIONS]",
	.summary = "end the server; what runs goes on",
	.help = "Items that wait for a slot stay in the queue until a server is there again.",
	.options = stop_options,
	.words_max = 0,
	.run = stop,
};

static int
restart(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct kr_error why = { 0 };
	struct kr_server_want want;
	struct kr_host host;

	if (kr_work_refuse_session(err) < 0 || read_want(parsed, &want, err) < 0 ||
		kr_host_gather_places(arena, &host, err) < 0)
		return -1;
	if (kr_server_stop(arena, &host.places, &why) < 0 && why.code != KR_E_SERVER) {
		*err = why;
		return -1;
	}
	return detach(arena, &want, err);
}

const struct kr_command kr_cmd_admin_restart = {
	.name = "admin restart",
	.usage = "[OPTIONS]",
	.summary = "end the server if there is one, and start it in the background",
	.help = "What runs goes on.",
	.options = start_options,
	.words_max = 0,
	.run = restart,
};

enum { HEALTH_JSON };
static const struct kr_option health_options[] = {
	[HEALTH_JSON] = { "json", 0, NULL, "for programs" },
	{ NULL },
};

static void
print_value(const char *key, const json_t *value)
{
	kr_auto_free char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);

	if (json_is_string(value))
		printf("%-12s %s\n", key, json_string_value(value));
	else
		printf("%-12s %s\n", key, text ? text : "?");
}

static int
health(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct kr_server_seen server;
	struct kr_host host;
	json_t *answer, *value;
	const char *key;

	if (kr_host_gather_places(arena, &host, err) < 0 ||
		kr_server_find(arena, &host.places, &server, err) < 0 || kr_server_health(&server, &answer, err) < 0)
		return -1;
	if (parsed->value[HEALTH_JSON])
		return kr_print_json(answer, err);
	printf("%-12s %s\n", "url", server.url);
	json_object_foreach(answer, key, value)
		print_value(key, value);
	json_decref(answer);
	return 0;
}

const struct kr_command kr_cmd_admin_health = {
	.name = "admin health",
	.usage = "[OPTIONS]",
	.summary = "whether the server runs and answers",
	.help = "Exit status: 0; 6 when none runs or it cannot be reached, 8 when it does not answer.",
	.options = health_options,
	.words_max = 0,
	.run = health,
};

static int
reload(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct kr_policy_file policy;
	struct kr_access access;
	struct kr_host host;

	(void)parsed;
	if (kr_work_refuse_session(err) < 0 || kr_host_gather_places(arena, &host, err) < 0 ||
		kr_access_load(arena, &host.places, &access, err) < 0 ||
		kr_policy_file_load(arena, &host.places, &policy, err) < 0)
		return -1;
	return kr_server_reload(arena, &host.places, err);
}

const struct kr_command kr_cmd_admin_reload = {
	.name = "admin reload",
	.usage = "",
	.summary = "have the server read policy.yaml and access.yaml again",
	.help = "What does not load is told here, and changes nothing. Address and port need 'kraft admin restart'.",
	.words_max = 0,
	.run = reload,
};
