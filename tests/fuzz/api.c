/*
 * A request to the API: head, who may ask, route, arguments, body; up to the handler, which is not called.
 * Whatever the bytes are: what is let in has a route of the table, parameters that are text, arguments that
 * the route takes, and where it changes something it carries the token; what is refused has a status and a
 * reason that is text.
 */
#include "api/internal.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TOKEN "AAAAAAAAAABBBBBBBBBBCCCCCCCCCCDDDDDDDDDDEEE"
#define HASH "$y$j9T$abcdefghijklmnop$ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnop0"

static bool
is_plain(const char *text)
{
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return false;
	return kr_text_is_utf8(text, strlen(text));
}

static void
check_refused(const struct kr_api_refusal *refusal)
{
	KR_BUG_IF(
		refusal->status < 400 || refusal->status > 499 || !refusal->detail || !is_plain(refusal->detail));
	KR_BUG_IF(*refusal->header && !strstr(refusal->header, "\r\n"));
	KR_BUG_IF(*refusal->header && strstr(refusal->header, "\r\n")[2]); /* one line */
}

/* The token stands in the head, or there is a cookie where one is looked at. */
static void
check_caller(const struct kr_api_call *call, const char *head, size_t n)
{
	const enum kr_api_who who = call->route->who;
	const bool writes = who == KR_API_WRITER || who == KR_API_PERSON;

	KR_BUG_IF(writes && !memmem(head, n, TOKEN, strlen(TOKEN)) &&
			  !memmem(head, n, KR_API_COOKIE, strlen(KR_API_COOKIE)));
	KR_BUG_IF(who == KR_API_PERSON && call->is_session);
	KR_BUG_IF(who == KR_API_READER && !call->is_known);
}

static void
check_let_in(const struct kr_api_call *call, const char *head, size_t n)
{
	const char *name;
	json_t *value;

	KR_BUG_IF(
		!call->route || call->route < kr_api_routes || call->route >= kr_api_routes + kr_api_route_count);
	for (size_t i = 0; i < KR_API_PARAMS; i++)
		KR_BUG_IF(call->param[i] && (!*call->param[i] || !is_plain(call->param[i])));
	check_caller(call, head, n);
	json_object_foreach(call->args, name, value)
	{
		const struct kr_api_field *f = call->route->fields;

		while (f && f->name && strcmp(f->name, name) != 0)
			f++;
		KR_BUG_IF(!f || !f->name);
		KR_BUG_IF(f->type == KR_API_STRING && json_is_string(value) &&
				  (int64_t)strlen(json_string_value(value)) > f->max);
		KR_BUG_IF(f->type == KR_API_NUMBER && json_is_integer(value) &&
				  (json_integer_value(value) < f->min || json_integer_value(value) > f->max));
	}
}

static void
one(struct kr_api_call *call, const char *bytes, size_t head_n, size_t n)
{
	struct kr_head *head = kr_arena_new(call->arena, struct kr_head);
	struct kr_api_refusal refusal;
	const char *why;

	if (kr_request_parse(bytes, head_n, head, &why))
		return;
	call->head = head;
	if (!kr_api_judge(call, &refusal)) {
		check_refused(&refusal);
		return;
	}
	KR_BUG_IF(head->framing == KR_FRAMING_CHUNKED || head->length > KR_API_BODY_BYTES);
	if (head->length > n - head_n)
		return;
	if (!kr_api_take_body(call, bytes + head_n, (size_t)head->length, &refusal))
		check_refused(&refusal);
	else
		check_let_in(call, bytes, head_n);
}

/* The first byte: on loopback or not, our own user or not. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct kr_access near = { .bind = "127.0.0.1", .session_expiry_days = 7 }, far = {
		.bind = "192.0.2.1", .password_hash = HASH, .session_expiry_days = 7
	};
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const struct kr_api api = { .access = size && data[0] & 1 ? &far : &near, .token = TOKEN };
	const struct kr_api_client client = {
		.is_ours = size && data[0] & 2, .local = "192.0.2.1", .now_s = 1000
	};
	struct kr_api_call call = { .api = &api, .client = &client, .arena = &arena };
	struct kr_head_scan scan = { 0 };
	char *bytes;

	if (!size || size > KR_HEAD_BYTES + KR_API_BODY_BYTES)
		return 0;
	bytes = malloc(size - 1 ? size - 1 : 1); /* exactly: a byte too far shows */
	KR_BUG_IF(!bytes);
	memcpy(bytes, data + 1, size - 1);
	if (kr_head_scan(&scan, bytes, size - 1) == KR_SCAN_WHOLE)
		one(&call, bytes, scan.at, size - 1);
	kr_api_call_fini(&call);
	free(bytes);
	return 0;
}
