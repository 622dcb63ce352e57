/*
 * Answers. All are JSON but what comes bit by bit (a diff, a log, events). What an error says was written for
 * a person at a terminal; it goes out as text, without our own files and lines, and with what could steer a
 * terminal made visible.
 */
#include "api/internal.h"

#include <errno.h>
#include <time.h>

#include "base/text.h"

enum { HEAD_BYTES = 4096, CHUNK_MAX = 1 << 20 };

/* ---- heads ---- */

static void
add_date(struct kr_buf *out)
{
	const time_t now = time(NULL);
	struct tm parts;
	char text[64];

	/* The locale is C: kraft never sets another. */
	if (gmtime_r(&now, &parts) && strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &parts))
		kr_buf_addf(out, "Date: %s\r\n", text);
}

/* The answer belongs to who asked: nobody keeps it, guesses its type, or puts it into a page. */
static void
add_head(struct kr_buf *out, unsigned status, const char *type, const char *more, bool keep)
{
	kr_buf_addf(out, "HTTP/1.1 %u %s\r\n", status, kr_status_reason(status));
	add_date(out);
	kr_buf_addf(out,
		"Content-Type: %s\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
		"Cross-Origin-Resource-Policy: same-origin\r\nContent-Security-Policy: default-src 'none'\r\n%s%s",
		type, more, keep ? "" : "Connection: close\r\n");
}

static bool
send_json(struct kr_api_io *io, unsigned status, const char *more, const char *body, size_t n, bool with_body,
	bool keep)
{
	kr_auto_buf struct kr_buf out = KR_BUF(KR_API_ANSWER_BYTES + HEAD_BYTES);

	add_head(&out, status, "application/json", more, keep);
	kr_buf_addf(&out, "Content-Length: %zu\r\n\r\n", n);
	if (with_body)
		kr_buf_add(&out, body, n);
	return !out.overflow && kr_api_send(io, out.data, out.len);
}

/* ---- errors ---- */

unsigned
kr_api_status_of(const struct kr_error *err)
{
	static const unsigned statuses[KR_E_COUNT] = {
		[KR_E_NONE] = 500,
		[KR_E_USAGE] = 422,
		[KR_E_CONFIG] = 503,
		[KR_E_REFUSED] = 409,
		[KR_E_WALL] = 500,
		[KR_E_UNSUPPORTED] = 500,
		[KR_E_NOT_FOUND] = 404,
		[KR_E_BUSY] = 409,
		[KR_E_LIMIT] = 500,
		[KR_E_GIT] = 500,
		[KR_E_SYSTEM] = 500,
	};

	if (err->sys_errno == ENOSPC || err->sys_errno == EDQUOT)
		return 507;
	return (unsigned)err->code < KR_E_COUNT ? statuses[err->code] : 500;
}

static json_t *
safe_text(struct kr_arena *arena, const char *text)
{
	size_t size = 4 * strlen(text) + 1;
	char *safe = kr_arena_alloc(arena, size);

	kr_text_escape(safe, size, text, strlen(text));
	return json_string(safe);
}

static json_t *
error_json(struct kr_arena *arena, const struct kr_error *err)
{
	json_t *root = json_object();
	const char *detail = err->message;

	if (err->place.line)
		detail = kr_arena_printf(
			arena, "%s:%u:%u: %s", err->place.path, err->place.line, err->place.column, err->message);
	json_object_set_new(root, "detail", safe_text(arena, detail));
	if (*err->hint)
		json_object_set_new(root, "hint", safe_text(arena, err->hint));
	return root;
}

static bool
send_object(struct kr_api_call *call, json_t *json, bool keep)
{
	kr_auto_free char *text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
	const char *cookie = call->cookie ? kr_arena_printf(call->arena, "Set-Cookie: %s\r\n", call->cookie) : "";
	size_t n = text ? strlen(text) : 0;

	if (!text || n + 1 > KR_API_ANSWER_BYTES) {
		const struct kr_api_refusal no = { 500, "the answer could not be made", "" };

		return kr_api_answer_refusal(call->io, &no, call->head->method != KR_METHOD_HEAD, keep);
	}
	text[n] = '\n'; /* in place of its end: from here on it is n + 1 bytes, and no string */
	return send_json(call->io, call->status, cookie, text, n + 1, call->head->method != KR_METHOD_HEAD, keep);
}

bool
kr_api_answer(struct kr_api_call *call, bool keep)
{
	return send_object(call, call->json, keep);
}

bool
kr_api_answer_error(struct kr_api_call *call, const struct kr_error *err, bool keep)
{
	json_t *json = error_json(call->arena, err);
	bool sent;

	call->status = kr_api_status_of(err);
	sent = send_object(call, json, keep);
	json_decref(json);
	return sent;
}

bool
kr_api_answer_refusal(struct kr_api_io *io, const struct kr_api_refusal *refusal, bool with_body, bool keep)
{
	json_t *json = json_pack("{s:s}", "detail", refusal->detail);
	kr_auto_free char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

	json_decref(json);
	return send_json(
		io, refusal->status, refusal->header, text ? text : "{}", text ? strlen(text) : 2, with_body, keep);
}

/* ---- bit by bit ---- */

/* HTTP/1.0 knows no chunks: there the end of the connection is the end, whole or not. */
bool
kr_api_stream_begin(struct kr_api_call *call, const char *type)
{
	kr_auto_buf struct kr_buf out = KR_BUF(HEAD_BYTES);

	call->is_streaming = true;
	call->is_chunked = call->head->minor > 0;
	add_head(&out, 200, type, call->is_chunked ? "Transfer-Encoding: chunked\r\n" : "", false);
	kr_buf_adds(&out, "\r\n");
	return kr_api_send(call->io, out.data, out.len) && call->head->method != KR_METHOD_HEAD;
}

bool
kr_api_stream_add(struct kr_api_call *call, const char *bytes, size_t n)
{
	kr_auto_buf struct kr_buf out = KR_BUF(CHUNK_MAX + 64);

	while (n) {
		size_t some = n < CHUNK_MAX ? n : CHUNK_MAX;

		out.len = 0;
		if (call->is_chunked)
			kr_buf_addf(&out, "%zx\r\n", some);
		kr_buf_add(&out, bytes, some);
		if (call->is_chunked)
			kr_buf_adds(&out, "\r\n");
		if (out.overflow || !kr_api_send(call->io, out.data, out.len))
			return false;
		bytes += some;
		n -= some;
	}
	return true;
}

bool
kr_api_stream_end(struct kr_api_call *call)
{
	return !call->is_chunked || call->head->method == KR_METHOD_HEAD || kr_api_send(call->io, "0\r\n\r\n", 5);
}

bool
kr_api_stream_nap(struct kr_api_call *call, int ms)
{
	return kr_api_io_nap(call->io, ms);
}
