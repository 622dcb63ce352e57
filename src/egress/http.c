/*
 * A request goes up as the client sends it, the response comes down as the server sends it, side by
 * side: a server may answer before it has all of the request.
 *
 * Where a body breaks off nothing may look complete. A length is short then, a chunked body has no last
 * chunk, and one that lasts until the close ends with a reset.
 *
 * A plain request is the only one of its connection, on both sides. Inside of TLS that ends here (terminate.h) both sides go on:
 * the client's with what it sent behind the request, the server's when nothing came behind the response, for that would be read
 * as the answer to a request that is not made yet.
 */
#include "egress/http.h"

#include <strings.h>

#include "base/portable.h"
#include "egress/body.h"
#include "egress/pump.h"
#include "egress/echo.h"
#include "egress/terminate.h"

struct kr_http {
	struct kr_body request, response;
	enum kr_framing up, down; /* how we frame them */
	bool request_over;        /* all sent, or the server takes no more */
	bool answering;           /* the response's head is out */
	bool old_client;          /* HTTP/1.0: no interim responses, no chunks */
	bool upstream;
	bool waits; /* the client expects a word before it sends the body, and has sent nothing of it */
	bool keeps;        /* the client's side goes on behind the response */
	bool server_keeps; /* so does the server's */
	unsigned interims;
	const struct kr_echo *echo; /* what no response may hold; NULL: nothing is looked for */
	struct kr_echo_watch watch;
};

/* A client that never sends the body it announced is not waited for as long as one in the midst of it (HTTP-10). */
static void
set_deadline(struct kr_connection *connection)
{
	kr_connection_set_deadline(connection, connection->http->waits ? KR_HEAD_MS : KR_BODY_IDLE_MS);
}

void
kr_http_free(struct kr_http *http)
{
	if (http && http->echo)
		kr_wipe(http, sizeof(*http)); /* the beginning of a secret may be held in it */
	free(http);
}

/* ---- bodies on their way out ---- */

enum { PARTS = 4 };

/* head may be empty; the body is one chunk where it goes out chunked. */
static bool
send_framed(struct kr_side *to, struct iovec head, struct iovec body, enum kr_framing framing,
	enum kr_body_state state)
{
	bool chunked = framing == KR_FRAMING_CHUNKED, last = chunked && state == KR_BODY_DONE;
	struct iovec parts[PARTS];
	static char last_chunk[] = "\r\n0\r\n\r\n";
	char size[32];
	size_t n = 0;

	if (head.iov_len)
		parts[n++] = head;
	if (body.iov_len && chunked)
		parts[n++] = (struct iovec){ size, (size_t)snprintf(size, sizeof(size), "%zx\r\n", body.iov_len) };
	if (body.iov_len)
		parts[n++] = body;
	if (body.iov_len && chunked)
		parts[n++] = (struct iovec){ last_chunk, last ? 7 : 2 };
	else if (last)
		parts[n++] = (struct iovec){ last_chunk + 2, 5 };
	return n == 0 || kr_side_send(to, parts, n);
}

/* ---- the request ---- */

/* The server takes no more; its answer may be there all the same. */
static void
give_up_request(struct kr_connection *connection)
{
	struct kr_side *server = &connection->server;

	connection->http->request_over = true;
	connection->http->keeps = false; /* the rest of the request is the client's next */
	free(kr_steal(server->held));
	server->held_at = server->held_n = 0;
}

/* The client's fault: nothing that it sent may look complete to the server. */
static void
refuse_request(struct kr_connection *connection, const char *why)
{
	if (connection->http->answering)
		kr_connection_end(connection, true);
	else
		kr_connection_refuse(connection, 400, why);
}

/* How many of the bytes are this request's. */
static size_t
send_request(struct kr_connection *connection, struct iovec head, char *bytes, size_t n)
{
	struct kr_http *http = connection->http;
	struct iovec body = { bytes, 0 };
	enum kr_body_state state = KR_BODY_DONE;
	size_t used = http->up == KR_FRAMING_NONE ? 0 : n;

	if (http->up != KR_FRAMING_NONE)
		state = kr_body_feed(&http->request, bytes, n, &body.iov_len);
	if (http->up != KR_FRAMING_NONE && state == KR_BODY_DONE)
		used = http->request.used;
	if (state == KR_BODY_BAD)
		body.iov_len = 0;
	http->request_over = state == KR_BODY_DONE;
	if (state == KR_BODY_BAD)
		refuse_request(connection, "the request's body is not framed as its head says");
	else if (!send_framed(&connection->server, head, body, http->up, state))
		give_up_request(connection);
	return used;
}

static void
write_head(struct kr_connection *connection, const struct kr_http_begin *begin, struct kr_buf *out)
{
	if (connection->bound)
		kr_terminate_write(connection, &begin->head, out);
	else
		kr_request_write(
			&(struct kr_request_write){ .head = &begin->head,
				.to = &begin->to,
				.upstream = begin->upstream,
				.authorization = begin->authorization },
			out);
}

/* The request's head is written, and goes out with what is there of its body. */
static void
send_first(struct kr_connection *connection, const struct kr_head *head, const struct kr_buf *out)
{
	struct kr_intake *intake = &connection->client.intake;
	struct kr_http *http = connection->http;
	size_t used;

	http->up = head->framing;
	http->old_client = head->minor == 0;
	http->keeps = connection->bound && !kr_head_closes(head);
	kr_body_begin(&http->request, false, head->framing, head->length);
	http->waits = head->expects && intake->n == intake->scan.at;
	connection->stage = KR_STAGE_HTTP;
	set_deadline(connection);
	used = send_request(connection, (struct iovec){ out->data, out->len }, intake->bytes + intake->scan.at,
		intake->n - intake->scan.at);
	if (connection->stage != KR_STAGE_HTTP)
		return;
	if (http->keeps && intake->scan.at + used < intake->n)
		kr_intake_drop(intake, intake->scan.at + used);
	else
		kr_intake_clear(intake);
}

void
kr_http_begin(struct kr_connection *connection, const struct kr_http_begin *begin)
{
	const struct kr_head *head = &begin->head;
	struct kr_buf out = kr_egress_written(connection->egress);
	struct kr_http *http;

	/* A second request could ride along where the upstream proxy reads chunks in another way than we. */
	if (begin->upstream && head->framing == KR_FRAMING_CHUNKED) {
		kr_connection_refuse(connection, 400, "a chunked request cannot go through the upstream proxy");
		return;
	}
	write_head(connection, begin, &out);
	http = connection->http = calloc(1, sizeof(*http));
	if (http && !out.overflow) {
		http->upstream = begin->upstream;
		http->echo = kr_terminate_echo(connection);
		send_first(connection, head, &out);
	}
	if (connection->bound)
		kr_wipe(out.data, out.len); /* a secret is in it */
	if (!http || out.overflow)
		kr_connection_refuse(connection, http ? 400 : 503, http ? "the head is too long" : "out of memory");
}

/* What came behind the request is the next one's. False: there is no memory. */
static bool
keep_rest(struct kr_connection *connection, const char *bytes, size_t n)
{
	if (connection->stage != KR_STAGE_HTTP || !connection->http->keeps || n == 0)
		return true;
	return kr_intake_add(&connection->client.intake, bytes, n);
}

static void
go_up(struct kr_connection *connection)
{
	struct kr_egress *egress = connection->egress;
	size_t n = 0, used;

	if (!kr_side_flush(&connection->server))
		give_up_request(connection);
	if (connection->http->request_over || !kr_side_is_clear(&connection->server))
		return;
	switch (kr_side_read(egress, &connection->client, &n)) {
	case KR_READ_SOME:
		connection->http->waits = false;
		set_deadline(connection);
		used = send_request(connection, (struct iovec){ 0 }, egress->scratch, n);
		if (!keep_rest(connection, egress->scratch + used, n - used))
			kr_connection_end(connection, true);
		break;
	case KR_READ_NONE:
		break;
	case KR_READ_END:
	case KR_READ_ERROR:
		kr_connection_end(connection, true);
		break;
	}
}

/* ---- the response ---- */

static void
refuse_response(struct kr_connection *connection, const char *why)
{
	if (connection->http->answering)
		kr_connection_end(connection, true);
	else
		kr_connection_refuse(connection, 502, why);
}

/* The response is out. */
static void
end_response(struct kr_connection *connection)
{
	struct kr_http *http = connection->http;

	if (!http->keeps || !http->request_over) {
		kr_connection_linger(connection);
		return;
	}
	if (!http->server_keeps)
		kr_connection_close_server(connection, false);
	kr_http_free(kr_steal(connection->http));
	kr_connection_next(connection);
}

/* A secret came back: kraft is told, and nothing of it goes on. */
static void
cut_off(struct kr_connection *connection, int which)
{
	struct kr_intake *intake = &connection->server.intake;

	kr_terminate_echoed(connection, which);
	kr_wipe(connection->egress->scratch, sizeof(connection->egress->scratch));
	kr_wipe(connection->egress->written, sizeof(connection->egress->written));
	if (intake->bytes)
		kr_wipe(intake->bytes, intake->cap);
	refuse_response(connection, "the host answered with the secret itself, which is not passed on");
}

/* What was held back goes out first. *found: the secret that comes behind all of it; -1: none. */
static bool
send_watched(struct kr_connection *connection, struct iovec head, struct iovec body, enum kr_body_state state, int *found)
{
	struct kr_http *http = connection->http;
	struct kr_echo_watch *watch = &http->watch;
	size_t n = body.iov_len, before, now;
	bool good = true;

	*found = kr_echo_feed(http->echo, watch, body.iov_base, n, &before, &now);
	if (state == KR_BODY_DONE && *found < 0) {
		before = watch->held_n;
		now = n;
	}
	if (before)
		good = send_framed(&connection->client, head, (struct iovec){ watch->held, before }, http->down, KR_BODY_MORE);
	if (*found < 0)
		kr_echo_keep(watch, body.iov_base, n, before, now);
	body.iov_len = now;
	if (before)
		head = (struct iovec){ 0 };
	return good && send_framed(&connection->client, head, body, http->down, *found < 0 ? state : KR_BODY_MORE);
}

/* bytes: of the body, and maybe more. */
static void
send_response(struct kr_connection *connection, struct iovec head, char *bytes, size_t n)
{
	struct kr_http *http = connection->http;
	struct iovec body = { bytes, 0 };
	enum kr_body_state state = kr_body_feed(&http->response, bytes, n, &body.iov_len);
	int found = -1;
	bool good;

	http->server_keeps &= http->response.used == n;
	if (http->echo)
		good = send_watched(connection, head, body, state, &found);
	else
		good = send_framed(&connection->client, head, body, http->down, state);
	if (found >= 0)
		cut_off(connection, found);
	else if (!good || state == KR_BODY_BAD)
		kr_connection_end(connection, true);
	else if (state == KR_BODY_DONE)
		end_response(connection);
}

/* The body ended with the connection. */
static void
end_body(struct kr_connection *connection)
{
	struct kr_http *http = connection->http;
	struct iovec held = { http->watch.held, http->watch.held_n };

	if (kr_body_finish(&http->response) == KR_BODY_DONE &&
		send_framed(&connection->client, (struct iovec){ 0 }, held, http->down, KR_BODY_DONE))
		end_response(connection);
	else
		kr_connection_end(connection, true);
}

static bool
has_body(const struct kr_connection *connection, unsigned status)
{
	return !connection->bodyless && status != 204 && status != 304;
}

/* True: it holds a secret, and has been refused. */
static bool
is_echo(struct kr_connection *connection, const struct kr_buf *head)
{
	const struct kr_echo *echo = connection->http->echo;
	int found = echo ? kr_echo_find(echo, head->data, head->len) : -1;

	if (found >= 0)
		cut_off(connection, found);
	return found >= 0;
}

/* None was asked for (secret.c). */
static bool
is_part(const struct kr_head *head)
{
	size_t n;

	return head->status == 206 || kr_head_find(head, "content-range", &n);
}

/* A packed body cannot be looked through, and none was asked for. */
static bool
is_packed(const struct kr_head *head)
{
	size_t n;
	const struct kr_field *field = kr_head_find(head, "content-encoding", &n);

	return n > 1 || (field && !(field->value.n == 8 && strncasecmp(field->value.at, "identity", 8) == 0));
}

static void
begin_response(struct kr_connection *connection, const struct kr_head *head)
{
	struct kr_http *http = connection->http;
	struct kr_intake *intake = &connection->server.intake;
	struct kr_buf out = kr_egress_written(connection->egress);
	bool body = has_body(connection, head->status);
	enum kr_framing in = body ? head->framing : KR_FRAMING_LENGTH;

	http->down = http->old_client && head->framing == KR_FRAMING_CHUNKED ? KR_FRAMING_NONE : head->framing;
	http->server_keeps = !kr_head_closes(head) && !(body && head->framing == KR_FRAMING_NONE);
	http->keeps &= !(body && http->down == KR_FRAMING_NONE) && http->request_over;
	kr_response_write(head, http->down, http->keeps, &out);
	if (out.overflow) {
		refuse_response(connection, "the response's head is too long");
		return;
	}
	if (is_echo(connection, &out))
		return;
	if (http->echo && body && is_packed(head)) {
		refuse_response(connection, "the host packed its answer (Content-Encoding), so it cannot be looked through for the secret");
		return;
	}
	if (http->echo && body && is_part(head)) {
		refuse_response(connection, "the host answered with a part, which it was not asked for: in parts a secret could come back unseen");
		return;
	}
	if (!body)
		http->down = KR_FRAMING_NONE;
	http->answering = true;
	kr_body_begin(&http->response, true, in, body ? head->length : 0);
	send_response(connection, (struct iovec){ out.data, out.len }, intake->bytes + intake->scan.at,
		intake->n - intake->scan.at);
	if (connection->stage == KR_STAGE_HTTP || connection->stage == KR_STAGE_HEAD)
		kr_intake_clear(intake);
}

/* False: the response is over, by a refusal. */
static bool
pass_interim(struct kr_connection *connection, const struct kr_head *head)
{
	struct kr_buf out = kr_egress_written(connection->egress);
	struct iovec part;

	if (head->status == 101 || ++connection->http->interims > KR_INTERIM_MAX) {
		refuse_response(connection, head->status == 101 ? "the server switched to another protocol"
														: "the server sent no end of interim responses");
		return false;
	}
	if (connection->http->old_client)
		return true;
	kr_response_write(head, KR_FRAMING_NONE, false, &out);
	part = (struct iovec){ out.data, out.len };
	if (!out.overflow && is_echo(connection, &out))
		return false;
	if (!out.overflow && kr_side_send(&connection->client, &part, 1))
		return true;
	kr_connection_end(connection, true);
	return false;
}

/* True: it was an interim response, and there may be another. */
static bool
on_response_head(struct kr_connection *connection)
{
	struct kr_intake *intake = &connection->server.intake;
	const char *why;
	struct kr_head head;

	if (!kr_response_parse(intake->bytes, intake->scan.at, &head, &why)) {
		refuse_response(connection, "the server's response cannot be passed on");
		return false;
	}
	if (head.status < 200) {
		if (!pass_interim(connection, &head))
			return false;
		kr_intake_drop(intake, intake->scan.at);
		return true;
	}
	if (head.status == 407 && connection->http->upstream)
		refuse_response(connection, "the upstream proxy does not take its credentials");
	else
		begin_response(connection, &head);
	return false;
}

static void
read_response_head(struct kr_connection *connection)
{
	struct kr_intake *intake = &connection->server.intake;
	enum kr_scan_state state;

	switch (kr_intake_read(connection->egress, &connection->server)) {
	case KR_READ_SOME:
		break;
	case KR_READ_NONE:
		return;
	case KR_READ_END:
	case KR_READ_ERROR:
		refuse_response(connection, "the server closed the connection without an answer");
		return;
	}
	set_deadline(connection);
	do
		state = kr_head_scan(&intake->scan, intake->bytes, intake->n);
	while (state == KR_SCAN_WHOLE && on_response_head(connection));
	if (state == KR_SCAN_BAD)
		refuse_response(connection, "the server's response cannot be read");
}

static void
read_response_body(struct kr_connection *connection)
{
	struct kr_egress *egress = connection->egress;
	size_t n = 0;

	switch (kr_side_read(egress, &connection->server, &n)) {
	case KR_READ_SOME:
		kr_connection_set_deadline(connection, KR_BODY_IDLE_MS);
		send_response(connection, (struct iovec){ 0 }, egress->scratch, n);
		break;
	case KR_READ_NONE:
		break;
	case KR_READ_END:
		end_body(connection);
		break;
	case KR_READ_ERROR:
		kr_connection_end(connection, true);
		break;
	}
}

static void
go_down(struct kr_connection *connection)
{
	if (!kr_side_flush(&connection->client))
		kr_connection_end(connection, true);
	else if (!kr_side_is_clear(&connection->client))
		return;
	else if (connection->http->answering)
		read_response_body(connection);
	else
		read_response_head(connection);
}

/* ---- both ---- */

void
kr_http_ready(struct kr_connection *connection, bool up, bool down)
{
	if (up)
		go_up(connection);
	if (down && connection->stage == KR_STAGE_HTTP)
		go_down(connection);
}

void
kr_http_events(const struct kr_connection *connection, int *client, int *server)
{
	const struct kr_side *c = &connection->client, *s = &connection->server;
	bool up = !connection->http->request_over && kr_side_is_clear(s), down = kr_side_is_clear(c);

	*client = (up ? KR_POLL_IN : 0) | (down ? 0 : KR_POLL_OUT);
	*server = (down ? KR_POLL_IN : 0) | (kr_side_is_clear(s) ? 0 : KR_POLL_OUT);
}
