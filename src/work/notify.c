/*
 * Tells a person who is not looking that an item waits or is done, as notify.yaml says (config/notify.h).
 *
 *     host        has recorded the stop and given up the item's lock, or has seen a worker's ask; forks and
 * goes on notifier    a session of its own, output to the host's log; starts what tells, waits for 10 s at
 * most, and writes down what came of it what tells  the person's command, and curl for the webhook, each in a
 * process group of its own, which is killed when time is out
 *
 * The message is data: the item's JSON on stdin. What a worker wrote (a question) is nowhere but in there,
 * and nothing of it is in a command line or the environment. A reason that is written down names no word of
 * notify.yaml: an item's worker can read its events, and a webhook's URL is often a secret.
 */
#include "work/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/portable.h"
#include "base/text.h"
#include "config/notify.h"
#include "git/git.h"
#include "os/sys.h"
#include "os/timer.h"

enum { NOTIFY_S = 10, LOOK_MS = 20 };
#define CURL_MAX_TIME "10"

/* ---- the message ---- */

struct message {
	const struct kr_item_row *row;
	const char *event; /* an occasion's name, or "test" */
	const char *json;  /* one line of ASCII */
};

static int
make_message(struct kr_arena *arena, const struct kr_work_view *v, const char *event, struct message *out,
	struct kr_error *err)
{
	json_t *object = kr_work_json(v);
	kr_auto_free char *text = NULL;

	if (object && json_object_set_new(object, "event", json_string(event)) == 0)
		text = json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII);
	json_decref(object);
	if (!text)
		return kr_fail(err, KR_E_SYSTEM, "no memory for the message");
	*out = (struct message){ &v->row, event, kr_arena_dup(arena, text) };
	return 0;
}

/* ---- one way to tell ---- */

struct way {
	const char *by; /* "command", "webhook" */
	const char *path;
	const char *const *argv;
	const char *in; /* what it reads */
	bool is_curl;
	pid_t pid;          /* 0: it was not started */
	const char *reason; /* why it failed; NULL: it did not */
};

static void
be_program(
	const struct kr_work *work, const struct way *way, const struct message *message, int in_fd, int out_fd)
{
	const size_t n = strlen(message->row->title);
	char *title = kr_arena_alloc(work->arena, n + 1);
	sigset_t none;

	(void)kr_text_plain(title, message->row->title, n, false);
	(void)setpgid(0, 0);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	for (int number = 1; number < 32; number++)
		(void)signal(number, SIG_DFL);
	/* Where kraft was called may be a worktree, and a program may load what lies where it stands. */
	if (chdir(work->host.places.home) < 0 && chdir("/") < 0)
		_exit(126);
	if (dup2(in_fd, 0) < 0 || dup2(out_fd, 1) < 0 || dup2(out_fd, 2) < 0)
		_exit(126);
	if (!way->is_curl && (setenv("KRAFT_ITEM", message->row->id, 1) < 0 ||
							 setenv("KRAFT_ITEM_STATUS", message->row->status, 1) < 0 ||
							 setenv("KRAFT_ITEM_TITLE", title, 1) < 0))
		_exit(126);
	(void)execv(way->path, (char *const *)way->argv);
	_exit(127);
}

static void
start(const struct kr_work *work, struct way *way, const struct message *message, int out_fd)
{
	kr_auto_fd int in_fd = -1;

	if (way->reason)
		return;
	in_fd = kr_memory_file("kraft-notify", way->in, strlen(way->in), NULL);
	fflush(NULL);
	way->pid = in_fd < 0 ? -1 : fork();
	if (way->pid == 0)
		be_program(work, way, message, in_fd, out_fd);
	if (way->pid < 0) {
		way->pid = 0;
		way->reason = "no process could be started for it";
	} else
		(void)setpgid(way->pid, way->pid); /* it does so too: whoever comes first */
}

/* curl(1), "EXIT CODES" */
static const char *
words_of_curl(int code)
{
	static const struct {
		int code;
		const char *words;
	} known[] = { { 5, "the proxy's name has no address" }, { 6, "its name has no address" },
		{ 7, "nobody answers there" }, { 22, "it answered with an HTTP error" },
		{ 28, "it did not answer in time" }, { 35, "TLS failed" }, { 52, "it gave no answer" },
		{ 60, "its certificate is not valid" }, { 127, "curl could not be started" } };

	for (size_t i = 0; i < KR_COUNT(known); i++)
		if (known[i].code == code)
			return known[i].words;
	return NULL;
}

static const char *
judge(struct kr_arena *arena, const struct way *way, int status)
{
	const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	const char *words = way->is_curl ? words_of_curl(code) : code == 127 ? "it could not be started" : NULL;

	if (code == 0)
		return NULL;
	if (words)
		return words;
	if (code < 0)
		return kr_arena_printf(arena, "it was ended by signal %d", WTERMSIG(status));
	return kr_arena_printf(arena, "%s exit code %d", way->is_curl ? "curl:" : "it ended with", code);
}

static void
await(struct kr_arena *arena, struct way *way, int64_t deadline_ms)
{
	int status = 0;

	if (!way->pid)
		return;
	while (waitpid(way->pid, &status, WNOHANG) != way->pid) {
		if (kr_clock_ms() >= deadline_ms) {
			(void)kill(-way->pid, SIGKILL);
			while (waitpid(way->pid, NULL, 0) < 0 && errno == EINTR)
				;
			way->reason = kr_arena_printf(arena, "it had not ended after %d s", NOTIFY_S);
			return;
		}
		(void)nanosleep(&(struct timespec){ .tv_nsec = LOOK_MS * 1000000L }, NULL);
	}
	way->reason = judge(arena, way, status);
}

/* ---- the ways ---- */

enum { WAYS_MAX = 2 };

static struct way
command_way(struct kr_arena *arena, const struct kr_notify *notify, const struct message *message)
{
	const char *name = notify->command.v[0];
	struct way way = { .by = "command", .argv = notify->command.v, .in = message->json };

	way.path = strchr(name, '/') ? name : kr_program_find(arena, name);
	if (!way.path)
		way.reason = "it is not found on PATH";
	return way;
}

/* A value of curl's configuration file. */
static void
add_quoted(struct kr_buf *out, const char *key, const char *value)
{
	kr_buf_addf(out, "%s = \"", key);
	for (const char *c = value; *c; c++) {
		if (*c == '"' || *c == '\\')
			kr_buf_add(out, "\\", 1);
		kr_buf_add(out, c, 1);
	}
	kr_buf_adds(out, "\"\n");
}

enum { CURL_CONFIG_BYTES = 8 << 20 }; /* curl takes lines of 10 MB */

/* URL and message on stdin: a command line can be read by everybody on this machine. */
static struct way
webhook_way(struct kr_arena *arena, const struct kr_notify *notify, const struct message *message)
{
	static const char *const argv[] = { "curl", "--disable", "--config", "-", NULL };
	kr_auto_buf struct kr_buf config = KR_BUF(CURL_CONFIG_BYTES);
	struct way way = { .by = "webhook", .argv = argv, .is_curl = true };

	kr_buf_adds(&config,
		"silent\nshow-error\nfail\ngloboff\nmax-time = " CURL_MAX_TIME "\nproto = \"=http,https\"\n"
		"output = \"/dev/null\"\nheader = \"content-type: application/json\"\n");
	add_quoted(&config, "url", notify->webhook);
	add_quoted(&config, "data-binary", message->json);
	way.in = config.overflow ? "" : kr_arena_dup(arena, config.data);
	way.path = kr_program_find(arena, "curl");
	if (config.overflow)
		way.reason = "the message is too large";
	else if (!way.path)
		way.reason = "a webhook needs curl, which is not installed";
	return way;
}

/* All at once, and none longer than NOTIFY_S. out_fd: where their output goes. Returns how many there are. */
static size_t
tell(struct kr_work *work, const struct kr_notify *notify, const struct message *message, int out_fd,
	struct way ways[WAYS_MAX])
{
	const int64_t deadline_ms = kr_clock_ms() + NOTIFY_S * 1000;
	size_t n = 0;

	if (notify->command.n)
		ways[n++] = command_way(work->arena, notify, message);
	if (notify->webhook)
		ways[n++] = webhook_way(work->arena, notify, message);
	for (size_t i = 0; i < n; i++)
		start(work, &ways[i], message, out_fd);
	for (size_t i = 0; i < n; i++)
		await(work->arena, &ways[i], deadline_ms);
	return n;
}

/* ---- of an item ---- */

static void
write_down(struct kr_work *work, const char *item, const char *event, const char *by, const char *reason)
{
	struct kr_error err = { 0 };
	json_t *data = reason ? json_pack("{s:s, s:s?, s:s}", "event", event, "by", by, "reason", reason)
						  : json_pack("{s:s, s:s?}", "event", event, "by", by);

	if (reason)
		fprintf(stderr, "kraft: nobody was told of '%s' by %s: %s\n", item, by ? by : "notify.yaml", reason);
	if (kr_work_event(work, item, reason ? "notify_failed" : "notify_sent", data, &err) < 0)
		kr_error_print(&err, stderr, false);
}

static void
be_notifier(struct kr_work *work, const struct kr_notify *notify, const struct message *message)
{
	const char *item = message->row->id, *log = kr_work_path(work, item, ".host.log");
	/* The item's lock, where it is held still, is its host's alone. */
	const int closed = kr_close_from(3);
	int null_fd = closed < 0 ? -1 : open("/dev/null", O_RDWR | O_CLOEXEC);
	int log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct kr_error err = { 0 };
	struct way ways[WAYS_MAX];
	size_t n;

	(void)setsid();
	(void)signal(SIGTERM, SIG_DFL);
	(void)signal(SIGINT, SIG_DFL);
	(void)signal(SIGHUP, SIG_DFL);
	/* Whoever reads our output waits for its end, and must not wait for us. */
	if (null_fd < 0 || dup2(null_fd, 0) < 0 || dup2(log_fd < 0 ? null_fd : log_fd, 1) < 0 || dup2(1, 2) < 0)
		_exit(1);
	n = tell(work, notify, message, 1, ways);
	if (kr_store_open(work->host.places.run_dir, KR_STORE_WRITE, &work->store, &err) < 0) {
		kr_error_print(&err, stderr, false);
		_exit(1);
	}
	for (size_t i = 0; i < n; i++)
		write_down(work, item, message->event, ways[i].by, ways[i].reason);
	kr_work_close(work);
	fflush(NULL);
	_exit(0);
}

static int
send_off(
	struct kr_work *work, const struct kr_notify *notify, const struct message *message, struct kr_error *err)
{
	int status = -1;
	pid_t pid;

	kr_work_close(work); /* as in task.c */
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		pid = fork(); /* nobody here waits for its end */
		if (pid == 0)
			be_notifier(work, notify, message);
		_exit(pid < 0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	KR_FAULT(notifier_forked);
	if (kr_store_open(work->host.places.run_dir, KR_STORE_WRITE, &work->store, err) < 0)
		return -1;
	if (status != 0)
		write_down(work, message->row->id, message->event, NULL, "no process could be started for it");
	return 0;
}

static bool
find_occasion(const struct kr_work_view *v, enum kr_occasion *out)
{
	if (strcmp(v->row.status, kr_status_name(KR_STATUS_COMPLETED)) == 0)
		*out = KR_OCCASION_COMPLETE;
	else if (strcmp(v->row.status, kr_status_name(KR_STATUS_NEEDS_HUMAN)) == 0)
		*out = v->next.kind == KR_NEXT_GATE ? KR_OCCASION_GATE : KR_OCCASION_STOP;
	else if (strcmp(v->row.status, kr_status_name(KR_STATUS_PAUSED)) == 0 && *v->row.reason)
		*out = KR_OCCASION_STOP; /* not by a person's word */
	else
		return false;
	return true;
}

/* What is wrong, without a word of the file: the place, and who tells more. */
static const char *
words_of_file(struct kr_arena *arena, const struct kr_error *why)
{
	const char *place =
		why->place.line ? kr_arena_printf(arena, ":%u:%u", why->place.line, why->place.column) : "";

	return kr_arena_printf(arena, "notify.yaml%s does not load; 'kraft admin notify' tells why", place);
}

static int
notify_of(struct kr_work *work, const struct kr_work_view *v, enum kr_occasion occasion, struct kr_error *err)
{
	struct kr_error why = { 0 };
	struct kr_notify notify;
	struct message message;

	if (kr_notify_load(work->arena, &work->host.places, &notify, &why) < 0) {
		write_down(work, v->row.id, kr_occasion_name(occasion), NULL, words_of_file(work->arena, &why));
		return 0;
	}
	if ((!notify.command.n && !notify.webhook) || !(notify.on >> occasion & 1))
		return 0;
	if (make_message(work->arena, v, kr_occasion_name(occasion), &message, &why) < 0) {
		write_down(work, v->row.id, kr_occasion_name(occasion), NULL, why.message);
		return 0;
	}
	return send_off(work, &notify, &message, err);
}

int
kr_work_notify(struct kr_work *work, const struct kr_work_view *v, struct kr_error *err)
{
	enum kr_occasion occasion;

	return find_occasion(v, &occasion) ? notify_of(work, v, occasion, err) : 0;
}

int
kr_work_notify_question(struct kr_work *work, const struct kr_work_view *v, struct kr_error *err)
{
	return notify_of(work, v, KR_OCCASION_QUESTION, err);
}

/* ---- a test ---- */

int
kr_work_notify_test(
	struct kr_work *work, struct kr_work_told told[KR_WORK_TOLD_MAX], size_t *n, struct kr_error *err)
{
	const struct kr_work_view v = {
		.row = { .id = "test",
			.title = "a test of 'kraft admin notify'",
			.description = "",
			.repo = work->host.places.home,
			.chain_id = "default",
			.status = kr_status_name(KR_STATUS_NEEDS_HUMAN),
			.stop = "gate",
			.reason = "",
			.place = "",
			.progress = -1,
			.run = 1,
			.created_ms = kr_now_ms(),
			.changed_ms = kr_now_ms() },
		.next = { .kind = KR_NEXT_COMPLETE },
	};
	struct kr_notify notify;
	struct message message;
	struct way ways[WAYS_MAX];

	if (kr_notify_load(work->arena, &work->host.places, &notify, err) < 0 ||
		make_message(work->arena, &v, "test", &message, err) < 0)
		return -1;
	if (!notify.command.n && !notify.webhook) {
		kr_fail(err, KR_E_NOT_FOUND, "there is no notify.yaml in '%s', so nobody is told",
			work->host.places.config_dir);
		return kr_hint(err,
			"write 'command: [notify-send, kraft]' or 'webhook: https://...' into it; kraft-notify(5)");
	}
	*n = tell(work, &notify, &message, STDERR_FILENO, ways);
	for (size_t i = 0; i < *n; i++)
		told[i] = (struct kr_work_told){ ways[i].by, ways[i].reason };
	return 0;
}
