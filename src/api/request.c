/*
 * From a head to a route with its arguments. All of it is pure, and nothing of a request is acted on before
 * all of it was judged: the target, the place it was asked at, the route, who asks, the query, and what the
 * head says of the body, before a byte of that is read. A body is counted before it is parsed: how deep, and
 * how much.
 */
#include "api/internal.h"

#include <strings.h>

#include "base/text.h"

bool
kr_api_refuse(struct kr_api_refusal *out, unsigned status, const char *detail)
{
	*out = (struct kr_api_refusal){ status, detail, "" };
	return false;
}

const char *
kr_api_header(const struct kr_api_call *call, const char *name)
{
	size_t count;
	const struct kr_field *field = kr_head_find(call->head, name, &count);

	return count == 1 ? kr_arena_dup_n(call->arena, field->value.at, field->value.n) : "";
}

/* ---- the target ---- */

/* NULL: badly written, or what no text of ours holds. */
static const char *
decode(struct kr_arena *arena, const char *text, size_t n, bool plus_is_blank)
{
	char *out = kr_arena_alloc(arena, n + 1);
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		char c = text[i];

		if (c == '%') {
			const bool is_whole = i + 2 < n;
			int high = is_whole ? kr_hex_digit(text[i + 1]) : -1, low = is_whole ? kr_hex_digit(text[i + 2]) : -1;

			if (high < 0 || low < 0)
				return NULL;
			c = (char)(high << 4 | low);
			i += 2;
		} else if (c == '+' && plus_is_blank) {
			c = ' ';
		}
		if ((unsigned char)c < 0x20 || c == 0x7f)
			return NULL;
		out[used++] = c;
	}
	return kr_text_is_utf8(out, used) ? out : NULL;
}

/* Only "/path?query": what names another host is for a proxy. */
static bool
split_target(struct kr_api_call *call, struct kr_api_refusal *out)
{
	const struct kr_bytes target = call->head->target;
	const char *mark = memchr(target.at, '?', target.n), *end = mark ? mark : target.at + target.n,
			   *at = target.at;

	if (*at != '/' || memchr(at, '#', target.n))
		return kr_api_refuse(out, 400, "the target is no path");
	call->query =
		mark ? kr_arena_dup_n(call->arena, mark + 1, (size_t)(target.at + target.n - mark - 1)) : "";
	while (at < end) {
		const char *slash = memchr(at + 1, '/', (size_t)(end - at - 1)), *stop = slash ? slash : end;

		if (call->segment_count == KR_API_SEGMENTS)
			return kr_api_refuse(out, 404, "there is no such route");
		call->segment[call->segment_count] = decode(call->arena, at + 1, (size_t)(stop - at - 1), false);
		if (!call->segment[call->segment_count])
			return kr_api_refuse(
				out, 400, "the path is not percent-encoded UTF-8 without control characters");
		call->segment_count++;
		at = stop;
	}
	return true;
}

/* ---- the route ---- */

static bool
fits(struct kr_api_call *call, const char *pattern, const char *params[KR_API_PARAMS])
{
	size_t at = 0, n = 0;

	for (; *pattern == '/'; at++) {
		size_t length = strcspn(++pattern, "/");

		if (at == call->segment_count)
			return false;
		if (*pattern == '{') {
			KR_BUG_IF(n == KR_API_PARAMS);
			params[n++] = call->segment[at];
			if (!*call->segment[at])
				return false;
		} else if (strlen(call->segment[at]) != length || memcmp(call->segment[at], pattern, length) != 0) {
			return false;
		}
		pattern += length;
	}
	return at == call->segment_count;
}

static bool
find_route(struct kr_api_call *call, struct kr_api_refusal *out)
{
	const enum kr_method method = call->head->method == KR_METHOD_HEAD ? KR_METHOD_GET : call->head->method;
	const char *params[KR_API_PARAMS] = { NULL }, *allow = "";

	for (size_t i = 0; i < kr_api_route_count; i++) {
		const struct kr_api_route *route = &kr_api_routes[i];

		if (!fits(call, route->pattern, params))
			continue;
		if (route->method == method) {
			call->route = route;
			memcpy(call->param, params, sizeof(params));
			return true;
		}
		allow = kr_arena_printf(call->arena, "%s%s%s%s", allow, *allow ? ", " : "",
			kr_method_name(route->method), route->method == KR_METHOD_GET ? ", HEAD" : "");
	}
	if (!*allow)
		return kr_api_refuse(out, 404, "there is no such route");
	kr_api_refuse(out, 405, "the route does not take this method");
	out->header = kr_arena_printf(call->arena, "Allow: %s\r\n", allow);
	return false;
}

/* ---- arguments ---- */

static const struct kr_api_field *
find_field(const struct kr_api_route *route, const char *name)
{
	for (const struct kr_api_field *f = route->fields; f && f->name; f++)
		if (strcmp(f->name, name) == 0)
			return f;
	return NULL;
}

static bool
refuse_field(struct kr_api_call *call, const char *name, const char *what, struct kr_api_refusal *out)
{
	char safe[256];

	kr_text_escape(safe, sizeof(safe), name, strlen(name));
	return kr_api_refuse(out, 422, kr_arena_printf(call->arena, "'%s' %s", safe, what));
}

static bool
check_string(struct kr_api_call *call, const struct kr_api_field *f, const char *name, const json_t *value,
	struct kr_api_refusal *out)
{
	const int64_t n = (int64_t)json_string_length(value);

	if (n >= (f->type == KR_API_STRINGS ? 1 : f->min) &&
		n <= (f->type == KR_API_STRINGS ? KR_API_WORD_BYTES : f->max))
		return true;
	return refuse_field(call, name, n ? "is too long" : "is empty", out);
}

static bool
check_strings(
	struct kr_api_call *call, const struct kr_api_field *f, const json_t *list, struct kr_api_refusal *out)
{
	const json_t *value;
	size_t i;

	if ((int64_t)json_array_size(list) > f->max)
		return refuse_field(call, f->name, "has too many of them", out);
	json_array_foreach(list, i, value)
	{
		if (!json_is_string(value))
			return refuse_field(call, f->name, "holds what is no string", out);
		if (!check_string(call, f, f->name, value, out))
			return false;
	}
	return true;
}

static bool
check_value(
	struct kr_api_call *call, const struct kr_api_field *f, const json_t *value, struct kr_api_refusal *out)
{
	switch (f->type) {
	case KR_API_STRING:
		return json_is_string(value) ? check_string(call, f, f->name, value, out)
									 : refuse_field(call, f->name, "has to be a string", out);
	case KR_API_BOOLEAN:
		return json_is_boolean(value) || refuse_field(call, f->name, "has to be true or false", out);
	case KR_API_NUMBER:
		if (json_is_integer(value) && json_integer_value(value) >= f->min &&
			json_integer_value(value) <= f->max)
			return true;
		return refuse_field(call, f->name,
			kr_arena_printf(call->arena, "has to be a whole number from %lld to %lld", (long long)f->min,
				(long long)f->max),
			out);
	case KR_API_STRINGS:
		return json_is_array(value) ? check_strings(call, f, value, out)
									: refuse_field(call, f->name, "has to be a list of strings", out);
	}
	return false;
}

/* null is the same as leaving it out. */
static bool
check_args(struct kr_api_call *call, struct kr_api_refusal *out)
{
	const char *name;
	json_t *value;

	json_object_foreach(call->args, name, value)
	{
		const struct kr_api_field *f = find_field(call->route, name);

		if (!f)
			return refuse_field(call, name, "is nothing that this route takes", out);
		if (!json_is_null(value) && !check_value(call, f, value, out))
			return false;
	}
	for (const struct kr_api_field *f = call->route->fields; f && f->name; f++)
		if (f->is_required && !kr_api_text(call, f->name))
			return refuse_field(call, f->name, "is missing", out);
	return true;
}

const char *
kr_api_text(const struct kr_api_call *call, const char *name)
{
	return json_string_value(json_object_get(call->args, name));
}

int64_t
kr_api_number(const struct kr_api_call *call, const char *name, int64_t fallback)
{
	const json_t *value = json_object_get(call->args, name);

	return json_is_integer(value) ? json_integer_value(value) : fallback;
}

bool
kr_api_flag(const struct kr_api_call *call, const char *name)
{
	return json_is_true(json_object_get(call->args, name));
}

/* A query has texts only: the field tells what one stands for. NULL: not that. */
static json_t *
query_value(const struct kr_api_field *f, const char *text)
{
	uint64_t number;

	if (f->type == KR_API_BOOLEAN && (!*text || strcmp(text, "1") == 0 || strcmp(text, "true") == 0))
		return json_true();
	if (f->type == KR_API_BOOLEAN && (strcmp(text, "0") == 0 || strcmp(text, "false") == 0))
		return json_false();
	if (f->type == KR_API_NUMBER && kr_text_to_u64(text, INT64_MAX, &number))
		return json_integer((json_int_t)number);
	return json_string(text);
}

static bool
add_pair(struct kr_api_call *call, const char *pair, size_t n, struct kr_api_refusal *out)
{
	const char *equals = memchr(pair, '=', n);
	size_t name_n = equals ? (size_t)(equals - pair) : n;
	const char *name = decode(call->arena, pair, name_n, true);
	const char *value = equals ? decode(call->arena, equals + 1, n - name_n - 1, true) : "";
	const struct kr_api_field *f = name ? find_field(call->route, name) : NULL;

	if (!name || !value)
		return kr_api_refuse(out, 400, "the query is not percent-encoded UTF-8 without control characters");
	if (!f)
		return refuse_field(call, name, "is nothing that this route takes", out);
	if (json_object_get(call->args, name))
		return refuse_field(call, name, "is there more than once", out);
	json_object_set_new(call->args, name, query_value(f, value));
	return true;
}

static bool
takes_body(const struct kr_api_call *call)
{
	return call->route->method != KR_METHOD_GET;
}

static bool
take_query(struct kr_api_call *call, struct kr_api_refusal *out)
{
	call->args = json_object();
	for (const char *at = call->query; *at; at += *at == '&') {
		size_t n = strcspn(at, "&");

		if (takes_body(call))
			return kr_api_refuse(out, 422, "this route takes no query");
		if (n && !add_pair(call, at, n, out))
			return false;
		at += n;
	}
	return takes_body(call) || check_args(call, out);
}

/* ---- the body ---- */

/* "application/json", with no charset but UTF-8. No form of a page can send it without asking first. */
static bool
is_json(const char *type)
{
	size_t n = strcspn(type, ";");

	while (n && (type[n - 1] == ' ' || type[n - 1] == '\t'))
		n--;
	if (n != 16 || strncasecmp(type, "application/json", n) != 0)
		return false;
	type += strcspn(type, ";");
	if (!*type)
		return true;
	type += 1 + strspn(type + 1, " \t");
	return strcasecmp(type, "charset=utf-8") == 0 || strcasecmp(type, "charset=\"utf-8\"") == 0;
}

static bool
judge_body(const struct kr_api_call *call, struct kr_api_refusal *out)
{
	const struct kr_head *head = call->head;

	if (head->framing == KR_FRAMING_CHUNKED)
		return kr_api_refuse(out, 411, "a body needs a Content-Length");
	if (head->length > KR_API_BODY_BYTES)
		return kr_api_refuse(out, 413, "a body has at most 1 MiB");
	if (head->length && !takes_body(call))
		return kr_api_refuse(out, 400, "this method has no body");
	if (head->length && !is_json(kr_api_header(call, "content-type")))
		return kr_api_refuse(out, 415, "a body has to be application/json");
	return true;
}

/* Strings are passed over; whether they are well-formed is the parser's to say. */
static bool
is_bounded(const char *bytes, size_t n)
{
	size_t depth = 0, values = 0;
	bool in_string = false;

	for (size_t i = 0; i < n; i++) {
		char c = bytes[i];

		if (in_string && c == '\\')
			i++;
		else if (c == '"')
			in_string = !in_string;
		else if (!in_string && (c == '[' || c == '{')) {
			values++;
			if (++depth > KR_API_BODY_DEPTH)
				return false;
		} else if (!in_string && (c == ']' || c == '}')) {
			depth -= depth > 0;
		} else if (!in_string && c == ',') {
			values++;
		}
	}
	return values <= KR_API_BODY_VALUES;
}

bool
kr_api_take_body(struct kr_api_call *call, const char *bytes, size_t n, struct kr_api_refusal *out)
{
	json_error_t why;

	if (!takes_body(call))
		return true;
	if (n) {
		if (!is_bounded(bytes, n))
			return kr_api_refuse(out, 400, "the body is too deep, or has too many values");
		json_decref(call->args);
		call->args = json_loadb(bytes, n, JSON_REJECT_DUPLICATES, &why);
		if (!json_is_object(call->args))
			return kr_api_refuse(out, 400,
				call->args ? "the body is no JSON object"
						   : kr_arena_printf(call->arena, "the body is no JSON: line %d, column %d", why.line,
								 why.column));
	}
	return check_args(call, out);
}

/* ---- all of it ---- */

bool
kr_api_judge(struct kr_api_call *call, struct kr_api_refusal *out)
{
	*out = (struct kr_api_refusal){ .header = "" };
	return split_target(call, out) && kr_api_admit_place(call, out) && find_route(call, out) &&
		   kr_api_admit_caller(call, out) && take_query(call, out) && judge_body(call, out);
}

void
kr_api_call_fini(struct kr_api_call *call)
{
	json_decref(call->args);
	json_decref(call->json);
	kr_work_close(&call->work);
	call->args = call->json = NULL;
}
