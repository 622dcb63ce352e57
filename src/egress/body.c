/*
 * Only chunked bodies need a parser, yet all go through it: one path to test. Extensions and trailers are
 * read and dropped; more of them than a head may hold is refused, so that a body cannot be endless without
 * having a byte (HTTP-04).
 */
#include "egress/body.h"

static struct kr_body *
body_of(llhttp_t *parser)
{
	return parser->data;
}

static int
on_body(llhttp_t *parser, const char *at, size_t n)
{
	struct kr_body *body = body_of(parser);

	/* The framing only ever takes bytes away, so this is never ahead of what llhttp has yet to read. */
	memmove(body->to, at, n);
	body->to += n;
	return 0;
}

static int
on_extra(llhttp_t *parser, const char *at, size_t n)
{
	struct kr_body *body = body_of(parser);

	(void)at;
	body->extra += n;
	return body->extra > KR_HEAD_BYTES ? HPE_USER : 0;
}

static int
on_chunk_complete(llhttp_t *parser)
{
	body_of(parser)->extra = 0;
	return 0;
}

static int
on_message_complete(llhttp_t *parser)
{
	body_of(parser)->state = KR_BODY_DONE;
	return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
	.on_body = on_body,
	.on_header_field = on_extra,
	.on_header_value = on_extra,
	.on_chunk_extension_name = on_extra,
	.on_chunk_extension_value = on_extra,
	.on_chunk_complete = on_chunk_complete,
	.on_message_complete = on_message_complete,
};

static enum kr_body_state
judge(struct kr_body *body, llhttp_errno_t result)
{
	if (body->state == KR_BODY_MORE && result != HPE_OK)
		body->state = KR_BODY_BAD;
	return body->state;
}

void
kr_body_begin(struct kr_body *body, bool response, enum kr_framing framing, uint64_t length)
{
	char field[64] = "", head[128];
	int n;

	if (framing == KR_FRAMING_LENGTH)
		(void)snprintf(field, sizeof(field), "Content-Length: %llu\r\n", (unsigned long long)length);
	else if (framing == KR_FRAMING_CHUNKED)
		(void)snprintf(field, sizeof(field), "Transfer-Encoding: chunked\r\n");
	n = snprintf(head, sizeof(head), "%s\r\n%s\r\n", response ? "HTTP/1.1 200 OK" : "POST / HTTP/1.1", field);
	*body = (struct kr_body){ .state = KR_BODY_MORE };
	llhttp_init(&body->parser, response ? HTTP_RESPONSE : HTTP_REQUEST, &settings);
	body->parser.data = body;
	KR_BUG_IF(judge(body, llhttp_execute(&body->parser, head, (size_t)n)) == KR_BODY_BAD);
	body->extra = 0;
}

enum kr_body_state
kr_body_feed(struct kr_body *body, char *bytes, size_t n, size_t *left)
{
	*left = body->used = 0;
	if (body->state != KR_BODY_MORE || n == 0)
		return body->state;
	body->to = bytes;
	body->used = n;
	if (judge(body, llhttp_execute(&body->parser, bytes, n)) == KR_BODY_DONE)
		body->used = (size_t)(llhttp_get_error_pos(&body->parser) - bytes);
	*left = (size_t)(body->to - bytes);
	return body->state;
}

enum kr_body_state
kr_body_finish(struct kr_body *body)
{
	if (body->state == KR_BODY_MORE)
		(void)judge(body, llhttp_finish(&body->parser));
	if (body->state == KR_BODY_MORE)
		body->state = KR_BODY_BAD;
	return body->state;
}
