#include "agent/hook_list.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* ---- what is asked ---- */

static json_t *
request(int id, const char *method, json_t *params)
{
	return json_pack("{s:i, s:s, s:o}", "id", id, "method", method, "params", params);
}

/* One message a line, as this server wants them: without the member `jsonrpc`. */
const char *
kr_hook_list_question(struct kr_arena *arena, const char *directory)
{
	json_t *messages[] = {
		request(1, "initialize",
			json_pack(
				"{s:{s:s, s:s, s:s}}", "clientInfo", "name", "kraft", "title", "kraft", "version", "1")),
		json_pack("{s:s}", "method", "initialized"),
		request(2, "hooks/list", json_pack("{s:[s]}", "cwds", directory)),
	};
	const char *text = "";

	for (size_t i = 0; i < KR_COUNT(messages); i++) {
		char *line = json_dumps(messages[i], JSON_COMPACT);

		KR_BUG_IF(!line); /* a path of ours is UTF-8, and small allocations do not fail */
		text = kr_arena_printf(arena, "%s%s\n", text, line);
		free(line);
		json_decref(messages[i]);
	}
	return text;
}

/* ---- what is answered ---- */

/* A key or a hash is whole or nothing; of other texts the beginning will do. */
static void
take(char *out, size_t size, bool whole, const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));
	size_t n = text ? strlen(text) : 0;

	out[0] = '\0';
	if (n >= size && whole)
		return;
	if (n >= size)
		for (n = size - 1; n && ((unsigned char)text[n] & 0xc0) == 0x80;)
			n--;
	for (size_t i = 0; i < n; i++)
		out[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7f ? ' ' : text[i];
	out[n] = '\0';
}

#define TAKE(field, whole, object, key) take(field, sizeof(field), whole, object, key)

static void
read_hook(const json_t *from, struct kr_hook *hook)
{
	const char *event = json_string_value(json_object_get(from, "eventName"));

	TAKE(hook->key, true, from, "key");
	TAKE(hook->hash, true, from, "currentHash");
	TAKE(hook->command, false, from, "command");
	TAKE(hook->source, false, from, "source");
	TAKE(hook->trust, false, from, "trustStatus");
	TAKE(hook->matcher, false, from, "matcher");
	/* A word that is missing is taken for the one that refuses. */
	hook->is_before_tool = !event || strcmp(event, "preToolUse") == 0;
	hook->is_enabled = !json_is_false(json_object_get(from, "enabled"));
	hook->is_async = !json_is_false(json_object_get(from, "async"));
}

static void
read_error(const json_t *error, struct kr_hook_list *list)
{
	if (json_is_string(error)) {
		json_t *object = json_pack("{s:O}", "message", error);

		TAKE(list->error, false, object, "message");
		json_decref(object);
	} else
		TAKE(list->error, false, error, "message");
	if (!list->error[0])
		snprintf(list->error, sizeof(list->error), "an error without words");
}

static void
read_list(const json_t *result, struct kr_hook_list *list)
{
	const json_t *data = json_object_get(result, "data"), *of = json_array_get(data, 0);
	const json_t *hooks = json_object_get(of, "hooks"), *errors = json_object_get(of, "errors"), *hook;
	size_t i;

	if (json_array_size(data) != 1 || !json_is_array(hooks) || !json_is_array(errors) || list->is_answered)
		return;
	list->is_answered = true;
	list->count = json_array_size(hooks);
	json_array_foreach(hooks, i, hook) if (i < KR_HOOKS_MAX) read_hook(hook, &list->hooks[i]);
	if (json_array_size(errors))
		read_error(json_array_get(errors, 0), list);
}

/* "kraft/0.171.0 (Debian 12.0.0; x86_64) ...": it puts our name before its version. */
static void
read_version(const json_t *result, struct kr_hook_list *list)
{
	const char *agent = json_string_value(json_object_get(result, "userAgent"));
	const char *slash = agent ? strchr(agent, '/') : NULL;
	size_t n = slash ? strspn(slash + 1, "0123456789.") : 0;

	if (n && n < sizeof(list->version)) {
		memcpy(list->version, slash + 1, n);
		list->version[n] = '\0';
	}
}

static void
read_line(const char *line, size_t n, struct kr_hook_list *list)
{
	json_t *message = json_loadb(line, n, JSON_REJECT_DUPLICATES, NULL);
	const json_t *id = json_object_get(message, "id"), *result = json_object_get(message, "result"),
				 *error = json_object_get(message, "error");

	if (json_is_integer(id) && error && !list->error[0])
		read_error(error, list);
	else if (json_integer_value(id) == 1)
		read_version(result, list);
	else if (json_integer_value(id) == 2)
		read_list(result, list);
	json_decref(message);
}

void
kr_hook_list_parse(const void *bytes, size_t n, void *out)
{
	const char *at = bytes, *end = at + n;
	struct kr_hook_list *list = out;

	memset(list, 0, sizeof(*list));
	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t line = (size_t)((stop ? stop : end) - at);

		read_line(at, line, list);
		at += line + (stop != NULL);
	}
}

static void
check_text(char *text, size_t size)
{
	text[size - 1] = '\0';
	if (!kr_text_is_utf8(text, strlen(text)))
		text[0] = '\0';
}

#define CHECK(field) check_text(field, sizeof(field))

void
kr_hook_list_check(struct kr_hook_list *list)
{
	CHECK(list->version);
	CHECK(list->error);
	for (size_t i = 0; i < KR_HOOKS_MAX; i++) {
		struct kr_hook *hook = &list->hooks[i];

		CHECK(hook->key);
		CHECK(hook->hash);
		CHECK(hook->command);
		CHECK(hook->source);
		CHECK(hook->trust);
		CHECK(hook->matcher);
	}
}

/* ---- whether it will do ---- */

/* They go between double quotes into a word of the command line. */
static bool
can_be_named(const struct kr_hook *hook)
{
	static const char hash[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:+/=_-";

	for (const char *c = hook->key; *c; c++)
		if (*c < ' ' || *c > '~' || *c == '"' || *c == '\\')
			return false;
	return hook->key[0] && hook->hash[0] && !hook->hash[strspn(hook->hash, hash)];
}

static int
fail_gate(struct kr_error *err)
{
	return kr_hint(err,
		"nothing was launched: without its hook no call of a tool would reach kraft; use another "
		"version of it, or another harness");
}

/* The one that is asked before a tool; NULL with err when there is none, or a second. */
static const struct kr_hook *
find_ours(const struct kr_hook_list *list, const char *who, const char *command, struct kr_error *err)
{
	const struct kr_hook *ours = NULL, *other = NULL;

	for (size_t i = 0; i < list->count && i < KR_HOOKS_MAX; i++) {
		const struct kr_hook *hook = &list->hooks[i];

		if (!hook->is_before_tool)
			continue;
		if (!ours && strcmp(hook->command, command) == 0)
			ours = hook;
		else if (hook->is_enabled)
			other = hook;
	}
	if (list->count > KR_HOOKS_MAX)
		kr_fail(err, KR_E_REFUSED, "%s has %zu hooks, more than can be looked at", who, list->count);
	else if (other) {
		kr_fail(err, KR_E_REFUSED, "%s would ask a second hook before a tool: '%s' of '%s'", who,
			other->command, other->source);
		(void)kr_hint(err, "remove it where this host configures the program for all of its users");
		return NULL;
	} else if (!ours)
		kr_fail(err, KR_E_REFUSED, "%s does not list kraft's hook", who);
	else
		return ours;
	(void)fail_gate(err);
	return NULL;
}

static int
check_known(const struct kr_hook *ours, const struct kr_hook *known, const char *who, struct kr_error *err)
{
	if (strcmp(ours->key, known->key) != 0 || strcmp(ours->hash, known->hash) != 0)
		kr_fail(err, KR_E_REFUSED, "%s names another hash of kraft's hook each time: '%s', then '%s'", who,
			known->hash, ours->hash);
	else if (strcmp(ours->trust, "trusted") != 0)
		kr_fail(err, KR_E_REFUSED, "%s lists kraft's hook as '%s'", who, ours->trust);
	else
		return 0;
	return fail_gate(err);
}

const struct kr_hook *
kr_hook_list_find(const struct kr_hook_list *list, const char *name, const char *command,
	const struct kr_hook *known, struct kr_error *err)
{
	const struct kr_hook *ours;
	char who[KR_HOOK_TEXT + 64];

	snprintf(who, sizeof(who), list->version[0] ? "%s %s" : "%s", name, list->version);
	if (list->error[0])
		kr_fail(err, KR_E_REFUSED, "%s cannot say which hooks it has: '%s'", who, list->error);
	else if (!list->is_answered)
		kr_fail(err, KR_E_REFUSED, "%s does not say which hooks it has", who);
	else if (!(ours = find_ours(list, who, command, err)))
		return NULL;
	else if (!can_be_named(ours))
		kr_fail(err, KR_E_REFUSED, "%s gives kraft's hook a key or a hash that cannot be used: '%s'", who,
			ours->key);
	else if (!ours->is_enabled || ours->is_async || (ours->matcher[0] && strcmp(ours->matcher, "*") != 0))
		kr_fail(err, KR_E_REFUSED, "%s would not ask kraft's hook before every tool", who);
	else
		return known && check_known(ours, known, who, err) < 0 ? NULL : ours;
	(void)fail_gate(err);
	return NULL;
}
