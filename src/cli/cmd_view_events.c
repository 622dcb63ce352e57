/*
 * kraft view events: what kraft wrote down, from the store. Much of an event's data came from a worker (the
 * host that it asked for), so a person sees it with everything that could steer a terminal made visible, and
 * a program gets ASCII only.
 */
#include <jansson.h>
#include <poll.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/cli.h"
#include "cli/view.h"
#include "os/host.h"
#include "store/store.h"

enum { FOLLOW_MS = 200, TEXT_BYTES = 1024 };

struct show {
	bool is_json;
	struct kr_event_query query; /* after: the last one that was shown */
	long shown;
};

/* ---- one event ---- */

/* JSON where a bare word could be taken for something else. */
static bool
is_plain(const char *word)
{
	return *word && !strpbrk(word, " \t\n\"\\=");
}

static void
add_field(char *text, size_t *used, const char *key, json_t *value)
{
	const char *word = json_string_value(value);
	char *dumped = word && is_plain(word) ? NULL : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	int n = snprintf(text + *used, TEXT_BYTES - *used, "%s%s=%s", *used ? " " : "", key,
		dumped ? dumped
		: word ? word
			   : "?");

	*used = n < 0 || (size_t)n >= TEXT_BYTES - *used ? TEXT_BYTES - 1 : *used + (size_t)n;
	free(dumped);
}

/* "host=x.example port=443": each field but the session, which has a column. */
static void
print_data(const struct kr_event *event)
{
	char text[TEXT_BYTES] = "", safe[4 * TEXT_BYTES + 1];
	json_t *root = json_loads(event->data, 0, NULL), *value;
	size_t used = 0;
	const char *key;

	json_object_foreach(root, key, value) if (!event->session || strcmp(key, "session_id") != 0)
		add_field(text, &used, key, value);
	kr_text_escape(safe, sizeof(safe), text, used);
	printf("%s%s\n", safe, used == TEXT_BYTES - 1 ? "..." : "");
	json_decref(root);
}

static void
print_row(const struct kr_event *event)
{
	char at[32], type[256], session[256];
	const char *id = event->session ? event->session : "-";

	kr_text_escape(type, sizeof(type), event->type, strlen(event->type));
	kr_text_escape(session, sizeof(session), id, strlen(id));
	printf("%6lld  %-19s  %-16s  %-22s  ", (long long)event->seq,
		kr_view_local_time(event->ms, at, sizeof(at)), session, type);
	print_data(event);
}

static void
print_json(const struct kr_event *event)
{
	kr_auto_buf struct kr_buf line = KR_BUF(2 * KR_EVENT_JSON_BYTES);

	kr_event_json(event, &line);
	fwrite(line.data, 1, line.len, stdout);
}

static int
show_event(void *context, const struct kr_event *event)
{
	struct show *show = context;

	if (show->is_json)
		print_json(event);
	else if (show->shown == 0)
		printf("%6s  %-19s  %-16s  %-22s  %s\n", "SEQ", "TIME", "SESSION", "TYPE", "DATA");
	if (!show->is_json)
		print_row(event);
	show->query.after = event->seq;
	show->shown++;
	return ferror(stdout) ? -1 : 0;
}

/* ---- all of them, and those to come ---- */

/* 1: the store is there; 0: not yet. */
static int
open_store(const char *run_dir, struct kr_store **store, struct kr_error *err)
{
	struct kr_error why = { 0 };

	if (*store || kr_store_open(run_dir, KR_STORE_READ, store, &why) == 0)
		return 1;
	if (why.code == KR_E_NOT_FOUND)
		return 0;
	*err = why;
	return -1;
}

/* Waits a little; false when whoever reads our output is gone. */
static bool
nap(void)
{
	struct pollfd out = { .fd = STDOUT_FILENO };

	return fflush(stdout) == 0 && (poll(&out, 1, FOLLOW_MS) <= 0 || !(out.revents & (POLLERR | POLLNVAL)));
}

static int
show_all(const char *run_dir, struct show *show, bool follow, struct kr_error *err)
{
	struct kr_store *store = NULL;
	int there;

	do {
		there = open_store(run_dir, &store, err);
		if (there > 0 && kr_store_events(store, &show->query, show_event, show, err) < 0)
			there = -1;
		if (show->shown)
			show->query.newest = 0; /* from then on each that comes */
	} while (there >= 0 && follow && nap());
	kr_store_close(store);
	return there < 0 ? -1 : 0;
}

/* ---- the command ---- */

enum { EVENTS_AFTER, EVENTS_TYPE, EVENTS_SESSION, EVENTS_ITEM, EVENTS_NEWEST, EVENTS_FOLLOW, EVENTS_JSON };
static const struct kr_option events_options[] = {
	[EVENTS_AFTER] = { "after", 0, "SEQ", "only those with a higher number" },
	[EVENTS_TYPE] = { "type", 0, "TYPE", "of this type only" },
	[EVENTS_SESSION] = { "session", 0, "ID", "of this session only" },
	[EVENTS_ITEM] = { "item", 0, "ID", "of this item only" },
	[EVENTS_NEWEST] = { "newest", 'n', "N", "only the last N of them" },
	[EVENTS_FOLLOW] = { "follow", 'f', NULL, "go on with each that comes, until Ctrl-C" },
	[EVENTS_JSON] = { "json", 0, NULL, "one object per line, for programs" },
	{ NULL },
};

static int
read_number(const struct kr_parsed *parsed, int option, uint64_t min, int64_t *out, struct kr_error *err)
{
	const char *text = parsed->value[option];
	uint64_t number;

	if (!text)
		return 0;
	if (!kr_text_to_u64(text, INT64_MAX, &number) || number < min)
		return kr_fail(err, KR_E_USAGE, "'--%s' takes a whole number from %d, not '%s'",
			events_options[option].name, (int)min, text);
	*out = (int64_t)number;
	return 0;
}

static int
events(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct show show = {
		.is_json = parsed->value[EVENTS_JSON] != NULL,
		.query.type = parsed->value[EVENTS_TYPE],
		.query.session = parsed->value[EVENTS_SESSION],
		.query.item = parsed->value[EVENTS_ITEM],
	};
	struct kr_host host;

	if (read_number(parsed, EVENTS_AFTER, 0, &show.query.after, err) < 0 ||
		read_number(parsed, EVENTS_NEWEST, 1, &show.query.newest, err) < 0 ||
		kr_host_gather_places(arena, &host, err) < 0 ||
		show_all(host.places.run_dir, &show, parsed->value[EVENTS_FOLLOW] != NULL, err) < 0)
		return -1;
	if (!show.shown && isatty(STDERR_FILENO))
		fputs("no events\n", stderr);
	return 0;
}

const struct kr_command kr_cmd_view_events = {
	.name = "view events",
	.usage = "[OPTIONS]",
	.summary = "print what kraft wrote down, the newest last",
	.help =
		"Each event has a number that only rises: '--after' with the last one that was seen gives what is "
		"new.\n"
		"Everything that could steer a terminal is made visible as \\xNN. The types and what each tells are\n"
		"in kraft-events(7).",
	.options = events_options,
	.run = events,
};
