/*
 * Heads against another reader: whatever our check accepts, llhttp must read alike, as it came and as it is
 * written anew. Where llhttp is the stricter of the two for a head as it came, that is no finding; for one of
 * ours it is.
 */
#include <llhttp.h>

#include "egress/head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What llhttp saw. */
struct reading {
	struct kr_buf target, text; /* text: "name: value\n" for each field */
	size_t value;               /* where the last value begins in it */
	unsigned method, status, minor;
	uint64_t length;
	bool complete, chunked, has_length;
};

static int
on_url(llhttp_t *parser, const char *at, size_t n)
{
	kr_buf_add(&((struct reading *)parser->data)->target, at, n);
	return 0;
}
static int
on_text(llhttp_t *parser, const char *at, size_t n)
{
	kr_buf_add(&((struct reading *)parser->data)->text, at, n);
	return 0;
}
static int
on_name_end(llhttp_t *parser)
{
	struct reading *reading = parser->data;

	kr_buf_add(&reading->text, ": ", 2);
	reading->value = reading->text.len;
	return 0;
}
static int
on_value_end(llhttp_t *parser)
{
	struct reading *reading = parser->data;
	struct kr_buf *text = &reading->text;

	while (text->len > reading->value && strchr(" \t", text->data[text->len - 1]))
		text->len--;
	kr_buf_add(text, "\n", 1);
	return 0;
}
static int
on_end(llhttp_t *parser)
{
	struct reading *reading = parser->data;

	reading->complete = true;
	reading->method = parser->method;
	reading->status = parser->status_code;
	reading->minor = parser->http_minor;
	reading->chunked = parser->flags & F_CHUNKED;
	reading->has_length = parser->flags & F_CONTENT_LENGTH;
	reading->length = parser->content_length;
	return HPE_PAUSED;
}

static void
read_by_llhttp(struct reading *out, bool response, const char *bytes, size_t n)
{
	static const llhttp_settings_t settings = {
		.on_url = on_url,
		.on_header_field = on_text,
		.on_header_field_complete = on_name_end,
		.on_header_value = on_text,
		.on_header_value_complete = on_value_end,
		.on_headers_complete = on_end,
	};
	llhttp_t parser;

	*out = (struct reading){ .target = KR_BUF(1 << 20), .text = KR_BUF(1 << 20) };
	llhttp_init(&parser, response ? HTTP_RESPONSE : HTTP_REQUEST, &settings);
	parser.data = out;
	(void)llhttp_execute(&parser, bytes, n);
}

static bool
same(const struct kr_buf *buf, const char *at, size_t n)
{
	return buf->len == n && (n == 0 || memcmp(buf->data, at, n) == 0);
}

static void
compare(const struct kr_head *head, const struct reading *reading, bool response)
{
	kr_auto_buf struct kr_buf text = KR_BUF(1 << 20);

	for (size_t i = 0; i < head->n; i++) {
		kr_buf_add(&text, head->fields[i].name.at, head->fields[i].name.n);
		kr_buf_add(&text, ": ", 2);
		kr_buf_add(&text, head->fields[i].value.at, head->fields[i].value.n);
		kr_buf_add(&text, "\n", 1);
	}
	KR_BUG_IF(!same(&reading->text, text.data, text.len));
	KR_BUG_IF(reading->minor != head->minor);
	KR_BUG_IF(reading->chunked != (head->framing == KR_FRAMING_CHUNKED));
	KR_BUG_IF(reading->has_length != (head->framing == KR_FRAMING_LENGTH));
	KR_BUG_IF(reading->has_length && reading->length != head->length);
	KR_BUG_IF(response && reading->status != head->status);
	KR_BUG_IF(!response && !same(&reading->target, head->target.at, head->target.n));
	KR_BUG_IF(!response && strcmp(kr_method_name(head->method),
							   llhttp_method_name((llhttp_method_t)reading->method)) != 0);
}

static void
fini(struct reading *reading)
{
	kr_buf_fini(&reading->target);
	kr_buf_fini(&reading->text);
}

/* As it came. */
static void
check_received(const struct kr_head *head, bool response, const char *bytes, size_t n)
{
	struct reading reading;

	read_by_llhttp(&reading, response, bytes, n);
	if (reading.complete)
		compare(head, &reading, response);
	fini(&reading);
}

/* As we write it: ours must accept it, llhttp must, and both the same. */
static void
check_written(const struct kr_buf *out, bool response)
{
	static struct kr_head head;
	struct kr_head_scan scan = { 0 };
	struct reading reading;
	const char *why;

	KR_BUG_IF(out->overflow);
	KR_BUG_IF(kr_head_scan(&scan, out->data, out->len) != KR_SCAN_WHOLE || scan.at != out->len);
	if (response)
		KR_BUG_IF(!kr_response_parse(out->data, out->len, &head, &why));
	else
		KR_BUG_IF(kr_request_parse(out->data, out->len, &head, &why) != 0);
	read_by_llhttp(&reading, response, out->data, out->len);
	KR_BUG_IF(!reading.complete);
	compare(&head, &reading, response);
	fini(&reading);
}

static void
write_request(const struct kr_head *head, const struct kr_destination *to, bool upstream)
{
	kr_auto_buf struct kr_buf out = KR_BUF(KR_HEAD_BYTES + (16 << 10));

	if (head->method == KR_METHOD_CONNECT)
		kr_connect_write(to, "Basic eDp5", &out);
	else
		kr_request_write(&(struct kr_request_write){ head, to, upstream, "Basic eDp5" }, &out);
	if (out.len <= KR_HEAD_BYTES && head->n < KR_HEAD_FIELDS - 4)
		check_written(&out, false);
}

static void
check_request(const char *bytes, size_t n)
{
	static struct kr_head head;
	struct kr_destination to;
	const char *why;

	if (!kr_request_begins(bytes, n) || kr_request_parse(bytes, n, &head, &why) != 0)
		return;
	check_received(&head, false, bytes, n);
	if (!kr_request_destination(&head, &to, &why))
		return;
	write_request(&head, &to, false);
	write_request(&head, &to, true);
}

static void
check_response(const char *bytes, size_t n)
{
	static struct kr_head head;
	const char *why;

	if (!kr_response_parse(bytes, n, &head, &why))
		return;
	check_received(&head, true, bytes, n);
	for (int framing = KR_FRAMING_NONE; framing <= KR_FRAMING_CHUNKED; framing++) {
		kr_auto_buf struct kr_buf out = KR_BUF(KR_HEAD_BYTES + (16 << 10));

		kr_response_write(&head, (enum kr_framing)framing, false, &out);
		if (out.len <= KR_HEAD_BYTES && head.n < KR_HEAD_FIELDS - 4)
			check_written(&out, true);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kr_head_scan scan = { 0 };

	if (kr_head_scan(&scan, (const char *)data, size) != KR_SCAN_WHOLE)
		return 0;
	check_request((const char *)data, scan.at);
	check_response((const char *)data, scan.at);
	return 0;
}
