/*
 * A message to http://kraft/mcp on its connection. All but a call of the tool is answered here and now. A
 * call's way:
 *
 *     asked (ask) --> allowed or denied ---------------------------------------------> answered, as JSON
 *               '--> open: WAIT, a stream --(each second: ask_state)--> allowed or denied --> answered, the
 * stream's end
 *                                '--(the client goes, or cancels)--> ask_close
 *
 * While it waits for a person it has no place among the calls, so other calls go on, and the client is shown
 * every ten seconds that it is being waited: else agents give up after one minute or five. How many wait is
 * kraft's bound, since only kraft says that an ask is open. What the tool is to be used with stays here and
 * goes back as it came.
 *
 * An agent's hook (hook.h) goes the same way, and is shown nothing meanwhile: its client is kraft's own.
 *
 * Whatever goes wrong is a denial, or an answer that does not come; neither is a permission.
 */
#include <strings.h>

#include "egress/form.h"
#include "egress/hook.h"
#include "egress/kraft_host.h"
#include "egress/pump.h"

enum { PLACE_MS = 100 }; /* until it is looked again whether there is a place */

struct kr_mcp_call {
	struct kr_mcp_fields fields;
	struct kr_mcp message;
	char ask[sizeof(((struct kr_call *)0)->ask)]; /* that is open; "": none */
	int64_t since_ms, sign_ms;                    /* of waiting; when the next sign of it is due */
	bool is_hook;
	bool streams;
	bool is_closing; /* kraft is told that nobody waits */
};

/* ---- the head ---- */

static bool
is_name(struct kr_bytes bytes, const char *name)
{
	return bytes.n == strlen(name) && strncasecmp(bytes.at, name, bytes.n) == 0;
}

bool
kr_is_mcp(const struct kr_head *head, const struct kr_destination *to)
{
	static const char path[] = "/mcp";

	return (head->method == KR_METHOD_POST || head->method == KR_METHOD_GET ||
			   head->method == KR_METHOD_DELETE) &&
		   to->target.port == 80 && to->path.n == sizeof(path) - 1 &&
		   memcmp(to->path.at, path, to->path.n) == 0;
}

bool
kr_is_hook(const struct kr_head *head, const struct kr_destination *to)
{
	static const char path[] = "/w/permission-hook";

	return head->method == KR_METHOD_POST && to->target.port == 80 && to->path.n == sizeof(path) - 1 &&
		   memcmp(to->path.at, path, to->path.n) == 0;
}

static bool
holds(struct kr_bytes value, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= value.n; i++)
		if (strncasecmp(value.at + i, word, n) == 0)
			return true;
	return false;
}

static bool
takes_stream(const struct kr_head *head)
{
	bool says = false, takes = false;

	for (size_t i = 0; i < head->n; i++) {
		const struct kr_field *field = &head->fields[i];

		if (!is_name(field->name, "accept"))
			continue;
		says = true;
		takes = takes || holds(field->value, "text/event-stream") || holds(field->value, "*/*") ||
				holds(field->value, "text/*");
	}
	return takes || !says;
}

unsigned
kr_mcp_refuse(const struct kr_head *head, const char **why)
{
	for (size_t i = 0; i < head->n; i++)
		if (is_name(head->fields[i].name, "origin")) {
			*why = "a page of a browser is not answered here";
			return 403;
		}
	*why = "http://kraft/mcp has no sessions and no stream but an answer's: only POST";
	if (head->method != KR_METHOD_POST)
		return 405;
	*why = "the answer may be a stream: accept text/event-stream";
	return takes_stream(head) ? 0 : 406;
}

static void
copy_field(const struct kr_field *field, char out[KR_MCP_WORD_BYTES + 1])
{
	size_t n = field->value.n < KR_MCP_WORD_BYTES ? field->value.n : KR_MCP_WORD_BYTES;

	memcpy(out, field->value.at, n);
	out[n] = '\0';
}

struct kr_mcp_call *
kr_mcp_call_new(const struct kr_head *head, bool is_hook)
{
	struct kr_mcp_call *mcp = calloc(1, sizeof(*mcp));

	if (mcp)
		mcp->is_hook = is_hook;
	for (size_t i = 0; mcp && i < head->n; i++) {
		const struct kr_field *field = &head->fields[i];

		if (is_name(field->name, "mcp-protocol-version"))
			copy_field(field, mcp->fields.version);
		else if (is_name(field->name, "mcp-method"))
			copy_field(field, mcp->fields.method);
		else if (is_name(field->name, "mcp-name"))
			copy_field(field, mcp->fields.name);
	}
	return mcp;
}

void
kr_mcp_call_free(struct kr_mcp_call *mcp)
{
	free(mcp);
}

bool
kr_mcp_call_streams(const struct kr_mcp_call *mcp)
{
	return mcp->streams;
}

/* ---- answers to the client ---- */

static void
give(struct kr_connection *connection, struct kr_buf *out)
{
	if (out->overflow) {
		kr_buf_fini(out);
		kr_connection_end(connection, true);
		return;
	}
	kr_worker_call_give(connection, kr_steal(out->data), out->len);
}

static void
write_head(unsigned status, size_t n, struct kr_buf *out)
{
	kr_buf_addf(out, "HTTP/1.1 %u %s\r\n%sContent-Length: %zu\r\nConnection: close\r\n\r\n", status,
		kr_status_reason(status), n ? "Content-Type: application/json\r\n" : "", n);
}

/* Head and JSON; of a stream its last event. */
static void
give_json(struct kr_connection *connection, unsigned status, const struct kr_buf *json)
{
	struct kr_buf out = KR_BUF(KR_MCP_ANSWER_BYTES + 1024);
	const bool streams = connection->call->mcp->streams;

	if (streams)
		kr_buf_adds(&out, "event: message\ndata: ");
	else
		write_head(status, json->len, &out);
	if (json->len)
		kr_buf_add(&out, json->data, json->len);
	if (streams)
		kr_buf_adds(&out, "\n\n");
	out.overflow = out.overflow || json->overflow;
	give(connection, &out);
}

enum decision { ALLOWED, DENIED, SILENT, OPEN, LATER };

static void
give_decision(struct kr_connection *connection, enum decision decision, const char *message, size_t n)
{
	const struct kr_mcp_call *mcp = connection->call->mcp;
	kr_auto_buf struct kr_buf json = KR_BUF(KR_MCP_ANSWER_BYTES);
	const enum kr_hook_decision said = decision == ALLOWED  ? KR_HOOK_ALLOW
									   : decision == SILENT ? KR_HOOK_SILENT
															: KR_HOOK_DENY;

	if (mcp->is_hook)
		kr_hook_write(&mcp->message, said, message, n, &json);
	else
		kr_mcp_write_permit(&mcp->message, decision == ALLOWED, message, n, &json);
	give_json(connection, 200, &json);
}

/* ---- asking kraft ---- */

static struct kr_call *
ask_of(const struct kr_mcp *message)
{
	size_t command_n = message->has_command ? message->command_n : 0, n = command_n + message->input.n;
	struct kr_call *call = calloc(1, sizeof(*call) + n);

	if (!call)
		return NULL;
	call->verb = KR_VERB_ASK;
	call->text_n = (uint32_t)n;
	call->has_command = message->has_command;
	call->command_n = (uint32_t)command_n;
	(void)snprintf(call->tool, sizeof(call->tool), "%s", message->tool);
	(void)snprintf(call->route, sizeof(call->route), "%s", message->harness ? KR_HOOK_ROUTE : KR_MCP_ROUTE);
	call->harness = message->harness;
	memcpy(call->text, message->command, command_n);
	memcpy(call->text + command_n, message->input.at, message->input.n);
	return call;
}

/* In place of what was asked before. False: no memory. */
static bool
turn_to(struct kr_connection *connection, enum kr_verb verb)
{
	const struct kr_mcp_call *mcp = connection->call->mcp;
	struct kr_call *call = kr_call_new(verb, KR_MCP_ROUTE, sizeof(KR_MCP_ROUTE) - 1);

	if (!call)
		return false;
	(void)snprintf(call->ask, sizeof(call->ask), "%s", mcp->ask);
	free(connection->call->call);
	connection->call->call = call;
	return true;
}

/* Without a place it waits for one. */
static void
look_after(struct kr_connection *connection)
{
	const bool is_closing = connection->call->mcp->is_closing;

	connection->stage = KR_STAGE_WAIT;
	kr_connection_set_deadline(connection, PLACE_MS);
	if (connection->egress->calls_n >= KR_CALLS_MAX ||
		!turn_to(connection, is_closing ? KR_VERB_ASK_CLOSE : KR_VERB_ASK_STATE))
		return;
	kr_worker_call_take_place(connection);
	kr_connection_set_deadline(connection, KR_CALL_MS);
	kr_connection_ask(connection);
}

/* ---- the client has gone ---- */

bool
kr_mcp_call_is_left(struct kr_connection *connection)
{
	struct kr_mcp_call *mcp = connection->call->mcp;

	if (!*mcp->ask)
		return false;
	mcp->is_closing = true;
	return turn_to(connection, KR_VERB_ASK_CLOSE);
}

/* In KR_STAGE_WAIT or while kraft is asked; the client may be there still. */
static void
leave(struct kr_connection *connection)
{
	const bool is_asked = connection->stage == KR_STAGE_ASKED;

	connection->call->mcp->is_closing = true;
	connection->stage = KR_STAGE_ASKED; /* so that only its sides are closed */
	kr_connection_end(connection, true);
	if (!is_asked)
		look_after(connection);
}

/* Nobody waits any more for the answer to this id: of the same session, so it can only take from itself. */
static void
cancel(const struct kr_connection *by)
{
	const struct kr_json *id = &by->call->mcp->message.cancelled;

	for (size_t i = 0; i < KR_CONNECTIONS_MAX; i++) {
		struct kr_connection *at = by->egress->connections[i];
		const struct kr_mcp_call *mcp = at && at != by && at->call ? at->call->mcp : NULL;

		if (mcp && (at->stage == KR_STAGE_WAIT || at->stage == KR_STAGE_ASKED) && !mcp->is_closing &&
			mcp->message.id.n == id->n && memcmp(mcp->message.id.at, id->at, id->n) == 0)
			leave(at);
	}
}

/* ---- the body ---- */

void
kr_mcp_call_take(struct kr_connection *connection)
{
	struct kr_worker_call *call = connection->call;
	struct kr_mcp *message = &call->mcp->message;
	char none[1] = "";
	kr_auto_buf struct kr_buf json = KR_BUF(KR_MCP_ANSWER_BYTES);

	if (call->mcp->is_hook)
		kr_hook_read(call->form ? call->form : none, call->form_n, message);
	else
		kr_mcp_read(&call->mcp->fields, call->form ? call->form : none, call->form_n, message);
	if (message->kind == KR_MCP_CALL) {
		call->call = ask_of(message);
		if (call->call)
			kr_connection_ask(connection);
		else
			kr_connection_refuse(connection, 503, "out of memory");
		return;
	}
	if (call->mcp->is_hook) {
		kr_connection_refuse(connection, message->status, message->why);
		return;
	}
	if (message->kind == KR_MCP_CANCELLED)
		cancel(connection);
	kr_mcp_write(message, &json);
	give_json(connection, message->kind == KR_MCP_WRONG ? message->status : json.len ? 200 : 202, &json);
}

/* ---- waiting ---- */

/* False: the client is gone. */
static bool
show_sign(struct kr_connection *connection)
{
	struct kr_mcp_call *mcp = connection->call->mcp;
	struct kr_buf out = kr_egress_written(connection->egress);
	const int64_t now_ms = connection->egress->now_ms;
	struct iovec part;

	if (mcp->is_hook || now_ms < mcp->sign_ms || !kr_side_is_clear(&connection->client))
		return true;
	mcp->sign_ms = now_ms + KR_ASK_SIGN_MS;
	if (!mcp->streams)
		kr_buf_adds(&out, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
						  "Connection: close\r\n\r\n");
	mcp->streams = true;
	kr_buf_adds(&out, ": a person is asked\n\n");
	if (mcp->message.token.type != KR_JSON_ABSENT) {
		kr_buf_adds(&out, "event: message\ndata: ");
		kr_mcp_write_progress(&mcp->message, mcp->ask, (now_ms - mcp->since_ms) / 1000, &out);
		kr_buf_adds(&out, "\n\n");
	}
	part = (struct iovec){ out.data, out.len };
	return kr_side_send(&connection->client, &part, 1);
}

void
kr_mcp_call_tick(struct kr_connection *connection)
{
	if (connection->call->mcp->is_closing || show_sign(connection))
		look_after(connection);
	else
		leave(connection);
}

void
kr_mcp_call_ready(struct kr_connection *connection, unsigned events)
{
	size_t n;

	/* A client that says more behind its message is as good as gone: nothing could be answered. */
	if (events & KR_POLL_END || !kr_side_flush(&connection->client) ||
		(events & KR_POLL_IN && kr_side_read(connection->egress, &connection->client, &n) != KR_READ_NONE))
		leave(connection);
}

/* ---- kraft's answers ---- */

/* text[0, *n): why it is denied, or the id. What is not understood is a denial. */
static enum decision
decision_of(const struct kr_mcp_call *mcp, const struct kr_answer *answer, const char *body,
	const char **text, size_t *n)
{
	static const char allow[] = "allow", silent[] = "silent", deny[] = "deny\n",
					  later[] = "kraft cannot decide it now";
	const size_t bytes = answer->type == KR_ANSWER_CALL ? answer->bytes : 0;

	*text = later;
	*n = sizeof(later) - 1;
	if (answer->type != KR_ANSWER_CALL) {
		*text = answer->text;
		*n = strlen(answer->text);
		return DENIED;
	}
	if (answer->status == 200 && bytes == sizeof(allow) - 1 && memcmp(body, allow, bytes) == 0)
		return ALLOWED;
	if (mcp->is_hook && answer->status == 200 && bytes == sizeof(silent) - 1 &&
		memcmp(body, silent, bytes) == 0)
		return SILENT;
	if (answer->status == 200 && bytes > sizeof(deny) - 1 && memcmp(body, deny, sizeof(deny) - 1) == 0) {
		*text = body + sizeof(deny) - 1;
		*n = bytes - (sizeof(deny) - 1);
		return DENIED;
	}
	if (answer->status == 202 && kr_call_is_word(body, bytes)) {
		*text = body;
		*n = bytes;
		return OPEN;
	}
	return *mcp->ask ? LATER : DENIED; /* of one that is open the next look may know more */
}

static void
begin_to_wait(struct kr_connection *connection, const char *ask, size_t n)
{
	struct kr_mcp_call *mcp = connection->call->mcp;

	if (!*mcp->ask) {
		memcpy(mcp->ask, ask, n);
		mcp->since_ms = mcp->sign_ms = connection->egress->now_ms;
	}
	connection->stage = KR_STAGE_WAIT;
	if (connection->client.watch.fd < 0) {
		mcp->is_closing = true;
		look_after(connection);
	} else if (show_sign(connection))
		kr_connection_set_deadline(connection, KR_ASK_POLL_MS);
	else
		leave(connection);
}

void
kr_mcp_call_answer(struct kr_connection *connection, const struct kr_answer *answer, const char *body)
{
	struct kr_mcp_call *mcp = connection->call->mcp;
	const bool was_closing = connection->call->call->verb == KR_VERB_ASK_CLOSE;
	const char *text;
	size_t n;
	enum decision decision = decision_of(mcp, answer, body, &text, &n);

	kr_worker_call_give_place(connection);
	if (was_closing)
		kr_connection_end(connection, true);
	else if (decision == OPEN || decision == LATER)
		begin_to_wait(connection, text, n);
	else if (connection->client.watch.fd < 0)
		kr_connection_end(connection, true);
	else
		give_decision(connection, decision, text, n);
}
