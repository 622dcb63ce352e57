/*
 * notify.yaml. Its command runs on the host, as the person, so what it names is looked at: a relative path
 * would be looked up wherever kraft was called, and below the run directory everything can be a worker's.
 */
#include "config/notify.h"

#include <strings.h>

#include "base/path.h"
#include "base/text.h"
#include "config/schema.h"

static const char *const occasion_names[] = {
#define X(occasion, name) [KR_OCCASION_##occasion] = name,
	KR_OCCASIONS(X)
#undef X
};

const char *
kr_occasion_name(enum kr_occasion occasion)
{
	return (unsigned)occasion < KR_OCCASION_COUNT ? occasion_names[occasion] : "unknown";
}

static int
find_occasion(const char *name)
{
	for (int i = 0; i < KR_OCCASION_COUNT; i++)
		if (strcmp(occasion_names[i], name) == 0)
			return i;
	return -1;
}

const char *
kr_fault_occasion(const char *text)
{
	return find_occasion(text) >= 0 ? NULL : "is none of gate, stop, question and complete";
}

const char *
kr_fault_webhook(const char *text)
{
	size_t scheme = strncasecmp(text, "https://", 8) == 0 ? 8 : strncasecmp(text, "http://", 7) == 0 ? 7 : 0;

	if (!scheme)
		return "is no http or https URL";
	if (!text[scheme] || strchr("/?#:@", text[scheme]))
		return "names no host";
	if (strlen(text) > KR_WEBHOOK_BYTES)
		return "is longer than 2048 bytes";
	for (const char *c = text; *c; c++)
		if (*c <= ' ' || *c > '~' || strchr("\"\\<>", *c))
			return "holds what no URL does; percent-encode it";
	return NULL;
}

/* ---- the command ---- */

const char *
kr_program_read(struct kr_config *c, const struct kr_yaml_node *node, const char *name, const char *hint)
{
	const char *word = node->text, *path;

	if (!*word) {
		kr_config_fail(c, node, "the program of '%s' is empty", name);
		return NULL;
	}
	if (!strchr(word, '/') && *word != '~')
		return word;
	if (*word != '/' && !kr_text_has_prefix(word, "~/")) {
		kr_config_fail(
			c, node, "'%s' of '%s' depends on where kraft is called", kr_config_quote(c, word), name);
		kr_hint(c->err, "write an absolute path, ~/ and a path, or a name that is looked up on PATH");
		return NULL;
	}
	path = kr_path_clean(
		c->arena, *word == '/' ? word : kr_arena_printf(c->arena, "%s%s", c->places->home, word + 1));
	if (!path)
		kr_config_fail(c, node, "'%s' of '%s' is too long", kr_config_quote(c, word), name);
	if (!path || !kr_path_is_within(path, c->places->run_dir))
		return path;
	kr_config_fail(c, node, "'%s' of '%s' lies where workers write", kr_config_quote(c, word), name);
	kr_hint(c->err, "%s; keep it in another place", hint);
	return NULL;
}

int
kr_notify_command_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	struct kr_strs words = { 0 };
	const char *program;

	if (!node->child) {
		kr_config_fail(c, node, "'command' is empty");
		return kr_hint(c->err, "%s: %s", key->name, key->help);
	}
	program = kr_program_read(
		c, node->child, key->name, "it would run on this host, outside of any sandbox");
	if (!program)
		return -1;
	kr_strs_add(c->arena, &words, program);
	for (const struct kr_yaml_node *item = node->child->next; item; item = item->next)
		kr_strs_add(c->arena, &words, item->text);
	*(struct kr_strs *)target = words;
	return 0;
}

int
kr_notify_on_read(
	struct kr_config *c, const struct kr_key *key, const struct kr_yaml_node *node, void *target)
{
	unsigned bits = 0;

	(void)c;
	(void)key;
	for (const struct kr_yaml_node *item = node->child; item; item = item->next) {
		int occasion = find_occasion(item->text);

		KR_BUG_IF(occasion < 0); /* they were checked */
		bits |= 1u << occasion;
	}
	*(unsigned *)target = bits;
	return 0;
}

/* ---- the file ---- */

#define BEGIN "'command: [notify-send, kraft]'"

int
kr_notify_parse(struct kr_arena *arena, const struct kr_places *places, const char *file, const char *bytes,
	size_t n, struct kr_notify *out, struct kr_error *err)
{
	struct kr_notify notify = { .on = 1u << KR_OCCASION_GATE | 1u << KR_OCCASION_STOP |
									  1u << KR_OCCASION_QUESTION };
	struct kr_yaml doc = { 0 };
	struct kr_config c = {
		.arena = arena, .doc = &doc, .files = KR_IN_NOTIFY_FILE, .places = places, .err = err
	};

	if (kr_config_parse(&c, kr_arena_dup(arena, file), bytes, n, &doc, BEGIN) < 0 ||
		(doc.root && kr_section_read(&c, KR_IN_NOTIFY, doc.root, &notify) < 0))
		return -1;
	if (doc.root && !notify.command.n && !notify.webhook) {
		kr_config_fail(&c, doc.root, "the file has neither 'command' nor 'webhook', so nobody is told");
		return kr_hint(err, "begin it with %s, or remove it", BEGIN);
	}
	*out = notify;
	return 0;
}

int
kr_notify_load(
	struct kr_arena *arena, const struct kr_places *places, struct kr_notify *out, struct kr_error *err)
{
	const char *file = kr_path_join(arena, places->config_dir, "notify.yaml"), *bytes;
	bool is_missing;
	size_t n;

	if (!file)
		return kr_fail(err, KR_E_LIMIT, "the path of '%s' is too long", places->config_dir);
	if (kr_config_load(arena, file, "nobody is told of items that wait until it can be read", &bytes, &n,
			&is_missing, err) < 0)
		return -1;
	return kr_notify_parse(arena, places, file, bytes, n, out, err);
}
