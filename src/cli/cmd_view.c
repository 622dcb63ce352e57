/*
 * kraft view sessions, kraft view logs: what was run and what it said. What a worker wrote is shown with
 * everything that could steer a terminal made visible (RES-07); its bytes as they are go to a pipe only, when
 * asked for.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/view.h"
#include "cli/work.h"
#include "os/host.h"
#include "session/facts.h"
#include "session/log_lines.h"

enum { FOLLOW_MS = 100, ID_CHARS = 16 };

const char *
kr_view_local_time(uint64_t ms, char *out, size_t size)
{
	time_t seconds = (time_t)(ms / 1000);
	struct tm parts;

	if (!localtime_r(&seconds, &parts) || !strftime(out, size, "%Y-%m-%d %H:%M:%S", &parts))
		snprintf(out, size, "?");
	return out;
}

/* ---- sessions ---- */

static const char *
outcome(struct kr_arena *arena, const struct kr_session_seen *s)
{
	if (s->state == KR_SESSION_RUNNING || s->state == KR_SESSION_LOST)
		return kr_session_state_name(s->state);
	if (s->signal)
		return kr_arena_printf(arena, "signal %d", s->signal);
	return kr_arena_printf(arena, "%s %d", s->state == KR_SESSION_EXITED ? "exit" : "failed", s->code);
}

static void
print_command(const char *const *argv, size_t room)
{
	char text[1024] = "", safe[sizeof(text)];
	size_t used = 0;

	for (const char *const *a = argv; a && *a && used < sizeof(text); a++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", used ? " " : "", *a);
	kr_text_escape(safe, sizeof(safe), text, strlen(text));
	if (strlen(safe) > room && room > 3)
		printf("%.*s...\n", (int)room - 3, safe);
	else
		printf("%s\n", safe);
}

/* What a person asked for; kraft's own steps by what they do and not by how. */
static void
print_purpose(struct kr_arena *arena, const struct kr_session_facts *facts, size_t room)
{
	const char *words[] = { NULL, NULL };
	size_t n = 0;

	while (facts->argv && facts->argv[n])
		n++;
	if (n && strcmp(facts->purpose, "checkout") == 0)
		words[0] = kr_arena_printf(arena, "(moves the worktree to commit %.12s)", facts->argv[n - 1]);
	else if (n && strcmp(facts->purpose, "setup") == 0)
		words[0] = kr_arena_printf(arena, "(sets up) %s", facts->argv[n - 1]);
	else if (n && strcmp(facts->purpose, "version") == 0)
		words[0] = kr_arena_printf(arena, "(asks which version it is) %s", facts->argv[0]);
	else if (n && strcmp(facts->purpose, "gate") == 0)
		words[0] = kr_arena_printf(arena, "(proves that its hook holds) %s", facts->argv[0]);
	print_command(words[0] ? words : facts->argv, room);
}

static json_t *
seen_to_json(const struct kr_session_seen *s)
{
	json_t *root = json_object(), *argv = json_array();

	for (const char *const *a = s->facts.argv; a && *a; a++)
		json_array_append_new(argv, json_string(*a));
	json_object_set_new(root, "id", json_string(s->facts.id));
	json_object_set_new(root, "item", json_string(s->facts.item));
	json_object_set_new(root, "repo", json_string(s->facts.repo));
	json_object_set_new(root, "phase", json_string(s->facts.phase));
	json_object_set_new(root, "purpose", json_string(s->facts.purpose));
	json_object_set_new(root, "command", argv);
	json_object_set_new(root, "state", json_string(kr_session_state_name(s->state)));
	json_object_set_new(root, "code", s->ended_ms ? json_integer(s->code) : json_null());
	json_object_set_new(root, "signal", s->ended_ms ? json_integer(s->signal) : json_null());
	json_object_set_new(root, "started_ms", json_integer((json_int_t)s->facts.started_ms));
	json_object_set_new(root, "ended_ms", s->ended_ms ? json_integer((json_int_t)s->ended_ms) : json_null());
	return root;
}

enum { SESSIONS_ITEM, SESSIONS_JSON };
static const struct kr_option sessions_options[] = {
	[SESSIONS_ITEM] = { "item", 0, "ID", "of this item only" },
	[SESSIONS_JSON] = { "json", 0, NULL, "for programs" },
	{ NULL },
};

static int
sessions(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct kr_host host;
	struct kr_session_list list;

	if (kr_host_gather(arena, &host, err) < 0 ||
		kr_session_list(arena, host.places.run_dir, parsed->value[SESSIONS_ITEM], &list, err) < 0)
		return -1;
	if (parsed->value[SESSIONS_JSON]) {
		json_t *all = json_array();

		for (size_t i = 0; i < list.n; i++)
			json_array_append_new(all, seen_to_json(&list.v[i]));
		return kr_print_json(all, err);
	}
	if (!list.n) {
		puts("no sessions yet");
		return 0;
	}
	printf("%-16s  %-19s  %-10s  %-24s  %s\n", "SESSION", "STARTED", "OUTCOME", "ITEM", "COMMAND");
	for (size_t i = 0; i < list.n; i++) {
		char started[32], item[128];
		const struct kr_session_seen *s = &list.v[i];

		kr_text_escape(item, sizeof(item), s->facts.item, strlen(s->facts.item));
		printf("%-16s  %-19s  %-10s  %-24s  ", s->facts.id,
			kr_view_local_time(s->facts.started_ms, started, sizeof(started)), outcome(arena, s), item);
		print_purpose(arena, &s->facts, 60);
	}
	return 0;
}

const struct kr_command kr_cmd_view_sessions = {
	.name = "view sessions",
	.usage = "[OPTIONS]",
	.summary = "list sessions, the newest first",
	.help = "",
	.options = sessions_options,
	.run = sessions,
};

/* ---- logs ---- */

enum form { FORM_TEXT, FORM_RAW, FORM_JSON };

struct show {
	enum form form;
	bool timestamps;
	struct kr_log_lines lines;
};

static void
print_json_line(const struct kr_log_line *line)
{
	json_t *root = kr_log_line_json(line);
	char *dumped = json_dumps(root, JSON_COMPACT);

	json_decref(root);
	if (dumped)
		puts(dumped);
	free(dumped);
}

static int
print_line(void *context, const struct kr_log_line *line)
{
	const struct show *show = context;
	char at[48];

	if (show->form == FORM_JSON) {
		print_json_line(line);
	} else {
		if (show->timestamps)
			printf("%s.%03u %-6s  ", kr_view_local_time(line->ms, at, sizeof(at)),
				(unsigned)(line->ms % 1000), kr_log_stream_name(line->stream));
		printf("%s%s\n", line->stream == KR_LOG_NOTE ? "[kraft] " : "", line->text);
	}
	return ferror(stdout) ? -1 : 0;
}

static int
show_piece(void *context, const struct kr_log_piece *piece)
{
	struct show *show = context;

	if (show->form != FORM_RAW)
		return kr_log_lines_add(&show->lines, piece);
	if (piece->stream != KR_LOG_NOTE)
		fwrite(piece->bytes, 1, piece->n, stdout);
	return ferror(stdout) ? -1 : 0;
}

static int
show_log(int folder, struct show *show, bool follow, struct kr_error *err)
{
	struct kr_log_reader reader;
	struct kr_session_seen seen;
	long pieces;

	kr_log_reader_init(&reader, folder);
	for (;;) {
		struct kr_arena turn = { 0 };

		/* The state before the log: when it had ended by then, nothing can come after this reading. */
		if (kr_session_facts_read(&turn, folder, &seen, err) < 0)
			seen.state = KR_SESSION_LOST;
		kr_arena_fini(&turn);
		pieces = kr_log_reader_next(&reader, show_piece, show, err);
		if (pieces < 0 || !follow || seen.state != KR_SESSION_RUNNING || ferror(stdout))
			break;
		fflush(stdout);
		(void)poll(NULL, 0, FOLLOW_MS); /* a nap */
	}
	(void)kr_log_lines_end(&show->lines); /* nothing follows that it could stop */
	kr_log_reader_fini(&reader);
	return pieces < 0 || err->code ? -1 : 0;
}

enum { LOGS_ITEM, LOGS_FOLLOW, LOGS_TIMESTAMPS, LOGS_JSON, LOGS_RAW };
static const struct kr_option logs_options[] = {
	[LOGS_ITEM] = { "item", 0, "ID", "the newest session of this item" },
	[LOGS_FOLLOW] = { "follow", 'f', NULL, "go on until the session ends" },
	[LOGS_TIMESTAMPS] = { "timestamps", 't', NULL, "when each line began, and its stream" },
	[LOGS_JSON] = { "json", 0, NULL, "one object per line, for programs" },
	[LOGS_RAW] = { "raw", 0, NULL, "the bytes as they were written; not to a terminal" },
	{ NULL },
};

/* To follow, one that still runs rather than a newer one that is over. */
static const char *
choose_session(
	struct kr_arena *arena, const struct kr_host *host, const char *item, bool follow, struct kr_error *err)
{
	struct kr_session_list list;

	if (kr_session_list(arena, host->places.run_dir, item, &list, err) < 0)
		return NULL;
	for (size_t i = 0; follow && i < list.n; i++)
		if (list.v[i].state == KR_SESSION_RUNNING)
			return list.v[i].facts.id;
	if (list.n)
		return list.v[0].facts.id;
	if (item)
		kr_fail(err, KR_E_NOT_FOUND, "there is no session of item '%s'", item);
	else
		kr_fail(err, KR_E_NOT_FOUND, "there are no sessions yet");
	return NULL;
}

/* The beginning of an id is enough where only one session has it. */
static const char *
complete_id(struct kr_arena *arena, const struct kr_host *host, const char *start, struct kr_error *err)
{
	struct kr_session_list list;
	const char *id = NULL;

	if (!*start || strlen(start) >= ID_CHARS)
		return start;
	if (kr_session_list(arena, host->places.run_dir, NULL, &list, err) < 0)
		return NULL;
	for (size_t i = 0; i < list.n; i++) {
		if (!kr_text_has_prefix(list.v[i].facts.id, start))
			continue;
		if (id) {
			kr_fail(err, KR_E_USAGE, "more than one session begins with '%s'", start);
			kr_hint(err, "give more of it; 'kraft view sessions' lists them");
			return NULL;
		}
		id = list.v[i].facts.id;
	}
	return id ? id : start;
}

/* The item whose id begins so; NULL: none, or more than one. */
static const char *
item_of(struct kr_arena *arena, const struct kr_host *host, const char *start)
{
	struct kr_store *store = NULL;
	struct kr_item_row row = { 0 };

	if (kr_store_open(host->places.run_dir, KR_STORE_READ, &store, NULL) == 0 &&
		kr_store_item_get(arena, store, start, &row, NULL) < 0)
		row.id = NULL;
	kr_store_close(store);
	return row.id;
}

static bool
is_at_work(struct kr_arena *arena, const struct kr_host *host, const char *item)
{
	struct kr_work work = { .arena = arena, .host = *host };

	return kr_work_is_locked(&work, item);
}

/* The oldest of the item's sessions that began after `after` (NULL: that runs, else the newest). */
static const char *
next_session(
	struct kr_arena *arena, const struct kr_host *host, const char *item, const char *after, struct kr_error *err)
{
	struct kr_session_list list;
	size_t i = 0;

	if (!after)
		return choose_session(arena, host, item, true, err);
	if (kr_session_list(arena, host->places.run_dir, item, &list, err) < 0)
		return NULL;
	while (i < list.n && strcmp(list.v[i].facts.id, after) != 0)
		i++;
	return i && i < list.n ? list.v[i - 1].facts.id : NULL;
}

/* One session after the other, while a host is at the item. */
static int
follow_item(struct kr_arena *arena, const struct kr_host *host, const char *item, struct show *show,
	struct kr_error *err)
{
	for (const char *last = NULL;;) {
		const bool goes_on = is_at_work(arena, host, item);
		const char *id = next_session(arena, host, item, last, err);
		kr_auto_fd int folder = id ? kr_session_folder_open(host->places.run_dir, id, err) : -1;

		if (!last && goes_on && err->code == KR_E_NOT_FOUND)
			*err = (struct kr_error){ 0 }; /* its first is about to begin */
		if (err->code || (!id && !goes_on) || ferror(stdout))
			return err->code ? -1 : 0;
		if (!id) {
			(void)poll(NULL, 0, FOLLOW_MS);
			continue;
		}
		if (show->form == FORM_TEXT)
			printf("[kraft] session %s\n", id);
		if (show_log(folder, show, true, err) < 0)
			return -1;
		last = id;
	}
}

static int
choose_form(const struct kr_parsed *parsed, struct show *show, struct kr_error *err)
{
	if (parsed->value[LOGS_RAW] && parsed->value[LOGS_JSON])
		return kr_fail(err, KR_E_USAGE, "'--raw' and '--json' exclude each other");
	if (parsed->value[LOGS_RAW] && isatty(STDOUT_FILENO)) {
		kr_fail(err, KR_E_USAGE, "'--raw' does not write to a terminal: what a worker wrote could steer it");
		return kr_hint(err, "pipe it into a program or a file");
	}
	show->form = parsed->value[LOGS_RAW] ? FORM_RAW : parsed->value[LOGS_JSON] ? FORM_JSON : FORM_TEXT;
	show->timestamps = parsed->value[LOGS_TIMESTAMPS] != NULL;
	show->lines.show = print_line;
	show->lines.context = show;
	return 0;
}

static int
logs(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct show *show = kr_arena_new(arena, struct show);
	const char *id = parsed->word_count ? parsed->words[0] : NULL, *item = parsed->value[LOGS_ITEM];
	kr_auto_fd int folder = -1;
	struct kr_host host;

	if (id && parsed->value[LOGS_ITEM])
		return kr_fail(err, KR_E_USAGE, "name a session or an item, not both");
	if (choose_form(parsed, show, err) < 0 || kr_host_gather(arena, &host, err) < 0)
		return -1;
	if (id && !(item = item_of(arena, &host, id)))
		id = complete_id(arena, &host, id, err);
	else if (item && parsed->value[LOGS_FOLLOW])
		return follow_item(arena, &host, item, show, err);
	else
		id = choose_session(arena, &host, item, parsed->value[LOGS_FOLLOW] != NULL, err);
	folder = id ? kr_session_folder_open(host.places.run_dir, id, err) : -1;
	if (folder < 0)
		return -1;
	return show_log(folder, show, parsed->value[LOGS_FOLLOW] != NULL, err);
}

const struct kr_command kr_cmd_view_logs = {
	.name = "view logs",
	.usage = "[OPTIONS] [SESSION|ITEM]",
	.summary = "print what a session said",
	.help =
		"The beginning of an id is enough where no other has it. Of an item: its newest session, or with\n"
		"--follow one session after the other while it goes on. Without a word: the newest session of all,\n"
		"or with --follow the newest that still runs. Colours are left out, and everything else that could\n"
		"steer a terminal is made visible as \\xNN. The log keeps the beginning and the end of long output;\n"
		"what is missing in between is marked.",
	.options = logs_options,
	.words_max = 1,
	.run = logs,
};
