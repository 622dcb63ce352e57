/*
 * A call's way:
 *
 *     head --> (waits for a place) --> body read --> decoded --> asked --> answered
 *
 * At most KR_CALLS_MAX have a place, from before their body is read until their answer is out or they end;
 * one whose client went while kraft had it keeps its place until kraft has answered, so kraft never sees
 * more. One that waits is not read from. Of a form's body KR_CALL_FORM_BYTES are kept: what is longer is only
 * counted, so that it can be told what was wrong. So all calls of a session hold a few MiB at the most. One
 * that waits for a person has no place meanwhile (mcp_host.c).
 *
 * KR_CALL_MS are for all of it, from the head on; then as long again for the client to take the answer.
 */
#include "egress/kraft_host.h"

#include "egress/form.h"
#include "egress/pump.h"

static const char no_memory[] = "out of memory";

/* ---- what it is ---- */

bool
kr_is_kraft_host(const struct kr_destination *to)
{
	return strcmp(to->target.host, "kraft") == 0;
}

static enum kr_verb
verb_of(const struct kr_head *head, const struct kr_destination *to)
{
	static const char prefix[] = "/w/";
	size_t n = sizeof(prefix) - 1;

	if (head->method != KR_METHOD_POST || to->target.port != 80 || to->path.n < n ||
		memcmp(to->path.at, prefix, n) != 0)
		return KR_VERB_NONE;
	return kr_verb_of(to->path.at + n, to->path.n - n);
}

/* What is told of one that is none: no query, which may hold a secret. */
static struct kr_call *
refused_call(const struct kr_head *head, const struct kr_destination *to)
{
	const char *query = to->path.n ? memchr(to->path.at, '?', to->path.n) : NULL;
	int path_n = (int)(query ? query - to->path.at : (ptrdiff_t)to->path.n);
	bool is_plain = head->method != KR_METHOD_CONNECT && to->target.port == 80;
	char route[KR_CALL_ROUTE_MAX + 1];
	int n = snprintf(route, sizeof(route), "%s %s%s%.*s", kr_method_name(head->method),
		is_plain ? "" : to->authority, is_plain && !path_n ? "/" : "", path_n, path_n ? to->path.at : "");

	return kr_call_new(KR_VERB_NONE, route, n < (int)sizeof(route) ? (size_t)n : sizeof(route) - 1);
}

/* ---- its place ---- */

void
kr_worker_call_take_place(struct kr_connection *connection)
{
	connection->call->has_place = true;
	connection->egress->calls_n++;
}

void
kr_worker_call_give_place(struct kr_connection *connection)
{
	connection->egress->calls_n -= connection->call->has_place;
	connection->call->has_place = false;
}

void
kr_worker_call_free(struct kr_connection *connection)
{
	struct kr_worker_call *call = kr_steal(connection->call);

	if (!call)
		return;
	connection->egress->calls_waiting -= call->waits;
	connection->egress->calls_n -= call->has_place;
	kr_mcp_call_free(call->mcp);
	free(call->form);
	free(call->call);
	free(call);
}

/* ---- the body ---- */

static void
ask_kraft(struct kr_connection *connection)
{
	struct kr_worker_call *call = connection->call;

	free(kr_steal(call->form));
	kr_intake_clear(&connection->client.intake);
	kr_connection_ask(connection);
}

static void
end_of_body(struct kr_connection *connection)
{
	struct kr_worker_call *call = connection->call;
	const char *why = "a form is longer than any that is taken";

	if (call->mcp) {
		kr_intake_clear(&connection->client.intake);
		kr_mcp_call_take(connection);
		return;
	}
	if (call->total == call->form_n)
		call->call = kr_form_decode(call->verb, call->form, call->form_n, &why);
	if (call->call)
		ask_kraft(connection);
	else
		kr_connection_refuse(connection, why ? 400 : 503, why ? why : no_memory);
}

/* False: no memory. */
static bool
keep(struct kr_worker_call *call, const char *bytes, size_t n)
{
	size_t room = call->most - call->form_n, cap = call->form_cap ? call->form_cap : 1024;
	char *grown;

	call->total += n;
	n = n < room ? n : room;
	while (cap < call->form_n + n)
		cap *= 2;
	if (cap != call->form_cap) {
		grown = realloc(call->form, cap);
		if (!grown)
			return false;
		call->form = grown;
		call->form_cap = cap;
	}
	memcpy(call->form + call->form_n, bytes, n);
	call->form_n += n;
	return true;
}

static const char too_long[] = "a call's body is at most 16 MiB, by MCP 512 KiB, a hook's 1 MiB";

static size_t
longest(const struct kr_worker_call *call)
{
	return call->mcp ? call->most : KR_CALL_BODY_BYTES;
}

/* The bytes are used up. */
static void
feed(struct kr_connection *connection, char *bytes, size_t n)
{
	struct kr_worker_call *call = connection->call;
	size_t left = 0;
	enum kr_body_state state = KR_BODY_DONE;

	if (call->framing != KR_FRAMING_NONE)
		state = kr_body_feed(&call->body, bytes, n, &left);
	if (state != KR_BODY_BAD && left && !keep(call, bytes, left))
		kr_connection_refuse(connection, 503, no_memory);
	else if (state == KR_BODY_BAD)
		kr_connection_refuse(connection, 400, "the request's body is not framed as its head says");
	else if (call->total > longest(call))
		kr_connection_refuse(connection, 413, too_long);
	else if (state == KR_BODY_DONE)
		end_of_body(connection);
}

static bool
send_go_on(struct kr_connection *connection)
{
	static char word[] = "HTTP/1.1 100 Continue\r\n\r\n";
	struct iovec part = { word, sizeof(word) - 1 };

	return kr_side_send(&connection->client, &part, 1);
}

/* It has its place. */
static void
start(struct kr_connection *connection)
{
	struct kr_intake *intake = &connection->client.intake;
	struct kr_worker_call *call = connection->call;

	kr_worker_call_take_place(connection);
	if (call->verb == KR_VERB_NONE) {
		ask_kraft(connection);
		return;
	}
	if (call->framing == KR_FRAMING_LENGTH && call->length > longest(call)) {
		kr_connection_refuse(connection, 413, too_long);
		return;
	}
	kr_body_begin(&call->body, false, call->framing, call->length);
	if (call->expects && intake->n == intake->scan.at && !send_go_on(connection)) {
		kr_connection_end(connection, true);
		return;
	}
	feed(connection, intake->bytes + intake->scan.at, intake->n - intake->scan.at);
	if (connection->stage == KR_STAGE_CALL)
		kr_intake_clear(intake);
}

/* NULL: no memory. */
static struct kr_worker_call *
new_call(const struct kr_head *head, const struct kr_destination *to)
{
	struct kr_worker_call *call = calloc(1, sizeof(*call));
	const bool is_hook = kr_is_hook(head, to), is_ask = is_hook || kr_is_mcp(head, to);

	if (!call)
		return NULL;
	call->verb = is_ask ? KR_VERB_ASK : verb_of(head, to);
	call->expects = head->expects;
	call->framing = head->framing;
	call->length = head->length;
	call->most = is_hook ? KR_HOOK_BODY_BYTES : is_ask ? KR_MCP_BODY_BYTES : KR_CALL_FORM_BYTES;
	call->mcp = is_ask ? kr_mcp_call_new(head, is_hook) : NULL;
	call->call = call->verb == KR_VERB_NONE ? refused_call(head, to) : NULL;
	if ((!is_ask || call->mcp) && (call->verb != KR_VERB_NONE || call->call))
		return call;
	kr_mcp_call_free(call->mcp);
	free(call->call);
	free(call);
	return NULL;
}

void
kr_worker_call_begin(
	struct kr_connection *connection, const struct kr_head *head, const struct kr_destination *to)
{
	struct kr_egress *egress = connection->egress;
	const char *why = "";
	unsigned status = kr_is_mcp(head, to) ? kr_mcp_refuse(head, &why) : 0;
	struct kr_worker_call *call = status ? NULL : new_call(head, to);

	if (!call) {
		kr_connection_refuse(connection, status ? status : 503, status ? why : no_memory);
		return;
	}
	connection->call = call;
	connection->stage = KR_STAGE_CALL;
	connection->tunnel = false; /* whatever it was, it gets an answer */
	kr_connection_set_deadline(connection, KR_CALL_MS);
	call->waits = egress->calls_n >= KR_CALLS_MAX || egress->calls_waiting;
	if (call->waits)
		egress->calls_waiting++;
	else
		start(connection);
}

static void
read_body(struct kr_connection *connection)
{
	struct kr_egress *egress = connection->egress;
	size_t n = 0;

	switch (kr_side_read(egress, &connection->client, &n)) {
	case KR_READ_SOME:
		feed(connection, egress->scratch, n);
		break;
	case KR_READ_NONE:
		break;
	case KR_READ_END:
	case KR_READ_ERROR:
		kr_connection_end(connection, true);
		break;
	}
}

void
kr_worker_call_ready(struct kr_connection *connection, unsigned events)
{
	if (connection->call->waits || !(events & KR_POLL_IN)) {
		if (events & KR_POLL_END)
			kr_connection_end(connection, true);
		return;
	}
	read_body(connection);
}

int
kr_worker_call_events(const struct kr_connection *connection)
{
	return connection->call->waits ? 0 : KR_POLL_IN;
}

void
kr_worker_call_overdue(struct kr_connection *connection)
{
	bool is_asked = connection->stage == KR_STAGE_ASKED;
	struct kr_buf out = kr_egress_written(connection->egress);
	struct iovec part;

	if (connection->stage == KR_STAGE_WAIT) {
		kr_mcp_call_tick(connection);
		return;
	}
	if (!is_asked) {
		kr_connection_refuse(connection, 504, "the call took longer than 30 seconds");
		return;
	}
	if (connection->call->mcp && kr_mcp_call_streams(connection->call->mcp)) {
		kr_connection_end(connection, true); /* no head can follow; what is not told is no permission */
		return;
	}
	/* kraft still has it: it keeps its place, and only the client is let go. */
	kr_refusal_write(504, "kraft did not answer within 30 seconds", !connection->bodyless, &out);
	part = (struct iovec){ out.data, out.len };
	(void)kr_side_send(&connection->client, &part, 1); /* gone: nobody to tell */
	kr_connection_end(connection, false);
}

/* ---- kraft ---- */

const struct kr_call *
kr_worker_call_of(const struct kr_connection *connection, uint32_t *bytes)
{
	const struct kr_call *call = connection->call->call;

	*bytes = (uint32_t)sizeof(*call) + call->text_n;
	return call;
}

static void
write_head(const struct kr_answer *answer, struct kr_buf *out)
{
	kr_buf_addf(out, "HTTP/1.1 %u %s\r\nContent-Type: application/json\r\nContent-Length: %u\r\n",
		answer->status, kr_status_reason(answer->status), answer->bytes);
	if (answer->next)
		kr_buf_addf(out, "Kraft-Next: %lld\r\n", (long long)answer->next);
	kr_buf_adds(out, "Connection: close\r\n\r\n");
}

void
kr_worker_call_give(struct kr_connection *connection, char *body, size_t n)
{
	struct kr_side *client = &connection->client;
	size_t old = client->held_n - client->held_at;
	char *joined = old ? malloc(old + n) : NULL;

	if (joined) {
		memcpy(joined, client->held + client->held_at, old);
		memcpy(joined + old, body, n);
		free(body);
		body = joined;
	}
	if ((old && !joined) || (n && !body)) {
		free(body);
		kr_connection_end(connection, true);
		return;
	}
	free(client->held);
	client->held = body;
	client->held_at = 0;
	client->held_n = (uint32_t)(old + n);
	if (!kr_side_flush(client)) {
		kr_connection_end(connection, true);
		return;
	}
	kr_connection_linger(connection);
	if (!client->shut)
		kr_connection_set_deadline(connection, KR_CALL_MS);
}

bool
kr_worker_call_is_left(struct kr_connection *connection)
{
	return connection->call && connection->call->mcp && kr_mcp_call_is_left(connection);
}

void
kr_worker_call_answer(struct kr_connection *connection, const struct kr_answer *answer, char *body)
{
	struct kr_buf out = kr_egress_written(connection->egress);
	struct kr_side *client = &connection->client;
	struct iovec part;
	bool is_sent;

	if (connection->call->mcp) {
		kr_mcp_call_answer(connection, answer, body);
		free(body);
		return;
	}
	write_head(answer, &out);
	part = (struct iovec){ out.data, out.len };
	is_sent = kr_side_send(client, &part, 1);
	/* A client that does not take even a head is not waited for: only one buffer is held for it. */
	if (!is_sent || !kr_side_is_clear(client)) {
		free(body);
		kr_connection_end(connection, true);
		return;
	}
	kr_worker_call_give(connection, body, answer->bytes);
}

/* ---- those that wait ---- */

/* The one that has waited longest is due first. */
static struct kr_connection *
first_waiting(const struct kr_egress *egress)
{
	struct kr_connection *first = NULL;

	for (size_t i = 0; i < KR_CONNECTIONS_MAX; i++) {
		struct kr_connection *at = egress->connections[i];

		if (at && at->call && at->call->waits && (!first || at->deadline_ms < first->deadline_ms))
			first = at;
	}
	return first;
}

void
kr_worker_calls_settle(struct kr_egress *egress)
{
	while (egress->calls_waiting && egress->calls_n < KR_CALLS_MAX) {
		struct kr_connection *connection = first_waiting(egress);

		connection->call->waits = false;
		egress->calls_waiting--;
		start(connection);
		kr_connection_settle(connection);
	}
}
