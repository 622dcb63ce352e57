/*
 * kraft admin harnesses: the agents that kraft knows how to start, whether their files load and their
 * programs are here; with an ID, what holds for one, and its file.
 *
 * One that is shown is what could be written to config/harnesses: what harnesses.yaml adds stands in front of
 * it as comments. A file that does not load is a row like the others, as in 'admin chains'.
 */
#include <jansson.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/shapes.h"
#include "base/path.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/harnesses.h"
#include "config/harness.h"
#include "os/host.h"

enum { JSON };
static const struct kr_option options[] = {
	[JSON] = { "json", 0, NULL, "print one JSON object" },
	{ 0 },
};

/* ---- as JSON ---- */

static json_t *
seen_json(const struct kr_harness_seen *seen)
{
	const struct kr_harness *h = &seen->harness;

	if (!seen->loads)
		return json_pack("{s:s, s:b, s:o}", "id", seen->id, "loads", 0, "error", kr_error_json(&seen->err));
	return json_pack("{s:s, s:b, s:s, s:s, s:b, s:s, s:s?}", "id", h->id, "loads", 1, "file", h->file,
		"provider", h->provider, "enabled", (int)h->enabled, "command", h->command, "program", seen->program);
}

static json_t *
one_json(const struct kr_harness_seen *seen)
{
	const struct kr_harness *h = &seen->harness;
	json_t *object = seen_json(seen), *capabilities = json_array();

	for (size_t i = 0; i < h->cap_count; i++)
		json_array_append_new(capabilities, json_string(kr_capability_name(h->caps[i].kind)));
	json_object_set_new(object, "min_version", h->min_version ? json_string(h->min_version) : json_null());
	json_object_set_new(object, "defaults",
		json_pack("{s:s?, s:s?, s:s?}", "model", h->model, "effort", h->effort, "permission_mode",
			h->permission_mode));
	json_object_set_new(object, "capabilities", capabilities);
	json_object_set_new(object, "hosts", kr_strings_json(&h->hosts));
	json_object_set_new(object, "login", kr_strings_json(&h->login));
	json_object_set_new(object, "proxy_aware", json_boolean(h->proxy_aware));
	json_object_set_new(object, "text", json_stringn(h->text, h->text_len));
	return object;
}

static int
print_all_json(const struct kr_harness_seen *seen, size_t n, struct kr_error *err)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, seen_json(&seen[i]));
	return kr_print_json(json_pack("{s:o}", "harnesses", list), err);
}

/* ---- for people ---- */

static const char *
program_words(struct kr_arena *arena, const struct kr_harness_seen *seen)
{
	if (seen->program)
		return kr_shown(arena, seen->program);
	return kr_arena_printf(arena, "%s: not found", kr_shown(arena, seen->harness.command));
}

static const char *
from_words(const struct kr_harness_seen *seen)
{
	const struct kr_harness *h = &seen->harness;

	if (strcmp(h->id, h->provider) != 0)
		return h->provider;
	return *h->file == '/' ? "your file" : h->file;
}

static void
print_row(struct kr_arena *arena, const struct kr_harness_seen *seen, int width)
{
	const struct kr_error *err = &seen->err;

	if (seen->loads)
		printf("%-*s  yes    %-7s  %-11s  %s\n", width, kr_shown(arena, seen->id),
			seen->harness.enabled ? "yes" : "no", from_words(seen), program_words(arena, seen));
	else if (err->place.line)
		printf("%-*s  no     line %u, column %u: %s\n", width, kr_shown(arena, seen->id), err->place.line,
			err->place.column, kr_shown(arena, err->message));
	else
		printf("%-*s  no     %s\n", width, kr_shown(arena, seen->id), kr_shown(arena, err->message));
}

static void
print_all(struct kr_arena *arena, const struct kr_harness_seen *seen, size_t n)
{
	int width = 7;

	for (size_t i = 0; i < n; i++) {
		int length = (int)strlen(kr_shown(arena, seen[i].id));

		width = length > width && length <= 40 ? length : width;
	}
	printf("%-*s  LOADS  ENABLED  FROM         PROGRAM\n", width, "HARNESS");
	for (size_t i = 0; i < n; i++)
		print_row(arena, &seen[i], width);
}

/* The file as it is, but for what could steer a terminal. */
static void
print_text(struct kr_arena *arena, const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n");

		printf("%s\n", kr_shown(arena, kr_arena_dup_n(arena, text, n)));
		text += n + (text[n] == '\n');
	}
}

static void
print_default(struct kr_arena *arena, const char *name, const char *value)
{
	if (value)
		printf("# default %s: %s\n", name, kr_shown(arena, value));
}

static void
print_one(struct kr_arena *arena, const struct kr_harness_seen *seen)
{
	const struct kr_harness *h = &seen->harness;
	bool is_other = strcmp(h->id, h->provider) != 0;

	printf("# %s: %s%s%s%s, program: %s\n", h->id, is_other ? "from " : "", is_other ? h->provider : "",
		is_other ? ", " : "", kr_shown(arena, h->file), program_words(arena, seen));
	if (!h->enabled)
		printf("# switched off in harnesses.yaml\n");
	print_default(arena, "model", h->model);
	print_default(arena, "effort", h->effort);
	print_default(arena, "permission_mode", h->permission_mode);
	print_text(arena, h->text);
}

static int
run_one(
	struct kr_arena *arena, const struct kr_host *host, const char *id, bool as_json, struct kr_error *err)
{
	struct kr_harness_seen seen;

	if (kr_harness_look(arena, host, id, &seen) < 0) {
		*err = seen.err;
		return -1;
	}
	if (as_json)
		return kr_print_json(one_json(&seen), err);
	print_one(arena, &seen);
	return 0;
}

static int
run(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	bool as_json = parsed->value[JSON];
	struct kr_host host;
	struct kr_harness_seen *seen;
	size_t n;

	if (kr_host_gather_places(arena, &host, err) < 0)
		return -1;
	if (parsed->word_count)
		return run_one(arena, &host, parsed->words[0], as_json, err);
	seen = kr_harnesses_look(arena, &host, &n, err);
	if (!seen)
		return -1;
	if (as_json)
		return print_all_json(seen, n, err);
	print_all(arena, seen, n);
	return 0;
}

const struct kr_command kr_cmd_admin_harnesses = {
	.name = "admin harnesses",
	.usage = "[--json] [ID]",
	.summary = "list the agents that kraft can start, or show one",
	.help = "Lists the harnesses in config/harnesses, those that come with kraft and those of "
			"harnesses.yaml: whether "
			"their\n"
			"files load, and where their programs are. With an ID: its file, which is a beginning for one of "
			"your own.\n",
	.options = options,
	.words_max = 1,
	.run = run,
};
