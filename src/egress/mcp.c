/*
 * What a message is, in this order: JSON; one message; its id; its version, where head and body have to
 * agree; its method; the method's parameters. The first that is wrong is told, with the codes of JSON-RPC and
 * of MCP.
 */
#include "egress/mcp.h"

#include "base/version.h"
#include "egress/call.h"

/* name; whether it is one of those with server/discover and without initialize */
static const struct {
	const char *name;
	bool is_modern;
} versions[] = {
	{ "2024-11-05", false },
	{ "2025-03-26", false },
	{ "2025-06-18", false },
	{ "2025-11-25", false }, /* the one for a client that begins with another */
	{ "2026-07-28", true },
};
enum { NEWEST_OLD = 3 };

enum {
	PARSE_ERROR = -32700,
	INVALID_REQUEST = -32600,
	METHOD_NOT_FOUND = -32601,
	INVALID_PARAMS = -32602,
	HEADER_MISMATCH = -32020,
	UNSUPPORTED_VERSION = -32022,
};

static const char tool_name[] = "permission_request";

static bool
fail(struct kr_mcp *out, unsigned status, int code, const char *why)
{
	out->kind = KR_MCP_WRONG;
	out->status = status;
	out->code = code;
	out->why = why;
	return false;
}

static bool
fail_request(struct kr_mcp *out, const char *why)
{
	return fail(out, 400, INVALID_REQUEST, why);
}

/* Both eras have these in an answer of their own, with the id. */
static bool
fail_params(struct kr_mcp *out, const char *why)
{
	return fail(out, 200, INVALID_PARAMS, why);
}

/* ---- the message ---- */

struct message {
	struct kr_json all, method, params;
	bool is_answer;
};

static bool
read_id(const struct kr_json *id, struct kr_mcp *out)
{
	if (id->type == KR_JSON_ABSENT)
		return true;
	if ((id->type != KR_JSON_STRING && id->type != KR_JSON_NUMBER) || id->n > KR_MCP_WORD_BYTES)
		return fail_request(out, "'id' is no string or number of at most 128 bytes");
	out->id = *id;
	return true;
}

static bool
read_message(const char *body, size_t n, struct message *m, struct kr_mcp *out)
{
	struct kr_json version, id, result, error;

	if (!kr_json_check(body, n, &m->all))
		return fail(out, 400, PARSE_ERROR, "this is no JSON of at most 64 levels");
	if (m->all.type == KR_JSON_ARRAY)
		return fail_request(out, "one message at a time: a list of them is not taken");
	if (m->all.type != KR_JSON_OBJECT)
		return fail_request(out, "a message is an object");
	if (!kr_json_member(&m->all, "id", &id) || !kr_json_member(&m->all, "jsonrpc", &version) ||
		!kr_json_member(&m->all, "method", &m->method) || !kr_json_member(&m->all, "params", &m->params) ||
		!kr_json_member(&m->all, "result", &result) || !kr_json_member(&m->all, "error", &error))
		return fail_request(out, "a member of the message is there twice");
	if (!read_id(&id, out))
		return false;
	if (version.type != KR_JSON_STRING || !kr_json_is(&version, "2.0"))
		return fail_request(out, "'jsonrpc' is not 2.0");
	m->is_answer =
		m->method.type == KR_JSON_ABSENT && (result.type != KR_JSON_ABSENT || error.type != KR_JSON_ABSENT);
	if (!m->is_answer && m->method.type != KR_JSON_STRING)
		return fail_request(out, "'method' is no string");
	if (m->params.type != KR_JSON_ABSENT && m->params.type != KR_JSON_OBJECT)
		return fail_params(out, "'params' is no object");
	return true;
}

/* Absent too when there is no such object to look in. False: it is there twice. */
static bool
find(const struct kr_json *object, const char *name, struct kr_json *out)
{
	*out = (struct kr_json){ KR_JSON_ABSENT, NULL, 0 };
	return object->type != KR_JSON_OBJECT || kr_json_member(object, name, out);
}

/* ---- the version ---- */

static int
version_at(const char *name)
{
	for (int i = 0; i < (int)KR_COUNT(versions); i++)
		if (strcmp(versions[i].name, name) == 0)
			return i;
	return -1;
}

static bool
read_version(const struct kr_mcp_fields *fields, const struct kr_json *meta, struct kr_mcp *out)
{
	struct kr_json said;
	int at = *fields->version ? version_at(fields->version) : 0;

	if (at < 0) {
		out->requested = fields->version;
		return fail(out, 400, UNSUPPORTED_VERSION, "this version of the protocol is not known");
	}
	out->is_modern = versions[at].is_modern;
	if (!find(meta, "io.modelcontextprotocol/protocolVersion", &said))
		return fail_params(out, "a member of '_meta' is there twice");
	if (said.type == KR_JSON_ABSENT)
		return true;
	if (said.type != KR_JSON_STRING || !kr_json_is(&said, *fields->version ? fields->version : ""))
		return fail(out, 400, HEADER_MISMATCH, "MCP-Protocol-Version and the body name different versions");
	return true;
}

/* For the newest version they have to be there, for the older ones only not to be wrong. */
static bool
check_field(const char *field, const struct kr_json *body, struct kr_mcp *out)
{
	if (!*field && !out->is_modern)
		return true;
	if (*field && body->type == KR_JSON_STRING && kr_json_is(body, field))
		return true;
	return fail(out, 400, HEADER_MISMATCH, "Mcp-Method or Mcp-Name is missing, or differs from the body");
}

/* ---- tools/call ---- */

bool
kr_mcp_read_tool(const struct kr_json *name, struct kr_mcp *out)
{
	size_t n = 0;

	if (name->type != KR_JSON_STRING || !kr_json_text(name, out->tool, sizeof(out->tool) - 1, &n) || !n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (out->tool[i] <= ' ' || out->tool[i] > '~')
			return false;
	out->tool[n] = '\0';
	return true;
}

void
kr_mcp_read_command(struct kr_mcp *out)
{
	struct kr_json command;

	if (!kr_json_member(&out->input, "command", &command) || command.type != KR_JSON_STRING)
		return;
	out->has_command = kr_json_text(&command, out->command, sizeof(out->command), &out->command_n) &&
					   kr_call_is_text(out->command, out->command_n);
}

static bool
read_arguments(const struct kr_json *arguments, struct kr_mcp *out)
{
	struct kr_json tool, use;

	if (arguments->type != KR_JSON_OBJECT || !kr_json_member(arguments, "tool_name", &tool) ||
		!kr_json_member(arguments, "input", &out->input) || !kr_json_member(arguments, "tool_use_id", &use))
		return fail_params(out, "'arguments' is no object that has each member once");
	if (!kr_mcp_read_tool(&tool, out))
		return fail_params(out, "'tool_name' is not 1 to 128 printable ASCII characters without a blank");
	if (out->input.type != KR_JSON_OBJECT || out->input.n > KR_ASK_INPUT_BYTES ||
		!kr_call_is_input(out->input.at, out->input.n))
		return fail_params(out, "'input' is no object of at most 256 KiB without control characters");
	if (use.type != KR_JSON_ABSENT && use.type != KR_JSON_STRING && use.type != KR_JSON_NULL)
		return fail_params(out, "'tool_use_id' is neither a string nor null");
	kr_mcp_read_command(out);
	return true;
}

static bool
read_call(const struct kr_mcp_fields *fields, const struct kr_json *params, struct kr_mcp *out)
{
	struct kr_json name, arguments;

	if (!find(params, "name", &name) || !find(params, "arguments", &arguments))
		return fail_params(out, "a member of 'params' is there twice");
	if (!check_field(fields->name, &name, out))
		return false;
	if (name.type != KR_JSON_STRING || !kr_json_is(&name, tool_name))
		return fail_params(out, "there is one tool, 'permission_request'");
	out->kind = KR_MCP_CALL;
	return read_arguments(&arguments, out);
}

/* ---- the methods ---- */

static bool
read_initialize(const struct kr_json *params, struct kr_mcp *out)
{
	struct kr_json version;

	out->kind = KR_MCP_INITIALIZE;
	out->version = versions[NEWEST_OLD].name;
	if (!find(params, "protocolVersion", &version) || version.type != KR_JSON_STRING)
		return fail_params(out, "'protocolVersion' is no string");
	for (int i = 0; i <= NEWEST_OLD; i++)
		if (kr_json_is(&version, versions[i].name))
			out->version = versions[i].name;
	return true;
}

/* Nothing that it says is an error: it gets no answer. */
static void
read_notification(const struct message *m, struct kr_mcp *out)
{
	out->kind = KR_MCP_NOTED;
	if (m->is_answer || !kr_json_is(&m->method, "notifications/cancelled") ||
		!find(&m->params, "requestId", &out->cancelled))
		return;
	if (out->cancelled.type == KR_JSON_STRING || out->cancelled.type == KR_JSON_NUMBER)
		out->kind = KR_MCP_CANCELLED;
}

static bool
read_request(const struct kr_mcp_fields *fields, const struct message *m, struct kr_mcp *out)
{
	if (!check_field(fields->method, &m->method, out))
		return false;
	if (kr_json_is(&m->method, "tools/call"))
		return read_call(fields, &m->params, out);
	if (kr_json_is(&m->method, "initialize") && !out->is_modern)
		return read_initialize(&m->params, out);
	if (kr_json_is(&m->method, "tools/list"))
		out->kind = KR_MCP_LIST;
	else if (kr_json_is(&m->method, "ping"))
		out->kind = KR_MCP_PING;
	else if (kr_json_is(&m->method, "server/discover") && out->is_modern)
		out->kind = KR_MCP_DISCOVER;
	else
		return fail(out, out->is_modern ? 404 : 200, METHOD_NOT_FOUND, "there is no such method");
	return true;
}

void
kr_mcp_read(const struct kr_mcp_fields *fields, const char *body, size_t n, struct kr_mcp *out)
{
	struct message m;
	struct kr_json meta;

	*out = (struct kr_mcp){ .kind = KR_MCP_WRONG };
	if (!read_message(body, n, &m, out))
		return;
	if (m.is_answer || out->id.type == KR_JSON_ABSENT) {
		read_notification(&m, out);
		return;
	}
	if (!find(&m.params, "_meta", &meta) || !find(&meta, "progressToken", &out->token)) {
		fail_params(out, "a member of 'params' is there twice");
		return;
	}
	if ((out->token.type != KR_JSON_STRING && out->token.type != KR_JSON_NUMBER) ||
		out->token.n > KR_MCP_WORD_BYTES)
		out->token.type = KR_JSON_ABSENT;
	if (read_version(fields, &meta, out))
		(void)read_request(fields, &m, out); /* what was wrong is in it */
}

/* ---- answers ---- */

static void
begin(const struct kr_mcp *mcp, const char *what, struct kr_buf *out)
{
	kr_buf_adds(out, "{\"jsonrpc\":\"2.0\",\"id\":");
	if (mcp->id.type == KR_JSON_ABSENT)
		kr_buf_adds(out, "null");
	else
		kr_buf_add(out, mcp->id.at, mcp->id.n);
	kr_buf_addf(out, ",\"%s\":{", what);
}

#define SERVER "{\"name\":\"kraft\",\"version\":\"" KR_VERSION "\"}"

/* What each result of the newest version has. lasts: it may be kept by the client, for as long as it likes.
 */
static void
add_modern(const struct kr_mcp *mcp, bool lasts, struct kr_buf *out)
{
	if (!mcp->is_modern)
		return;
	kr_buf_adds(
		out, "\"resultType\":\"complete\",\"_meta\":{\"io.modelcontextprotocol/serverInfo\":" SERVER "},");
	if (lasts)
		kr_buf_adds(out, "\"ttlMs\":3600000,\"cacheScope\":\"private\",");
}

static void
add_versions(struct kr_buf *out)
{
	for (size_t i = KR_COUNT(versions); i-- > 0;)
		kr_buf_addf(out, "\"%s\"%s", versions[i].name, i ? "," : "");
}

static void
write_wrong(const struct kr_mcp *mcp, struct kr_buf *out)
{
	begin(mcp, "error", out);
	kr_buf_addf(out, "\"code\":%d,\"message\":\"%s\"", mcp->code, mcp->why);
	if (mcp->requested) {
		kr_buf_adds(out, ",\"data\":{\"supported\":[");
		add_versions(out);
		kr_buf_adds(out, "],\"requested\":\"");
		for (const char *c = mcp->requested; *c; c++)
			kr_buf_add(out, *c > 0x20 && *c < 0x7f && *c != '"' && *c != '\\' ? c : "?", 1);
		kr_buf_adds(out, "\"}");
	}
	kr_buf_adds(out, "}}");
}

static const char the_tool[] =
	"\"tools\":[{\"name\":\"permission_request\",\"description\":\"Asks kraft whether a tool may be used "
	"with this input; "
	"where the policy says so, a person is asked.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{"
	"\"tool_name\":{\"type\":\"string\"},\"input\":{\"type\":\"object\",\"additionalProperties\":true},"
	"\"tool_use_id\":{\"type\":[\"string\",\"null\"]}},\"required\":[\"tool_name\",\"input\"]}}]}}";

void
kr_mcp_write(const struct kr_mcp *mcp, struct kr_buf *out)
{
	switch (mcp->kind) {
	case KR_MCP_NOTED:
	case KR_MCP_CANCELLED:
	case KR_MCP_CALL:
		return;
	case KR_MCP_WRONG:
		write_wrong(mcp, out);
		return;
	case KR_MCP_INITIALIZE:
		begin(mcp, "result", out);
		kr_buf_addf(out,
			"\"protocolVersion\":\"%s\",\"capabilities\":{\"tools\":{}},\"serverInfo\":" SERVER "}}",
			mcp->version);
		return;
	case KR_MCP_PING:
		begin(mcp, "result", out);
		kr_buf_adds(out, mcp->is_modern ? "\"resultType\":\"complete\"}}" : "}}");
		return;
	case KR_MCP_DISCOVER:
		begin(mcp, "result", out);
		add_modern(mcp, true, out);
		kr_buf_adds(out, "\"supportedVersions\":[");
		add_versions(out);
		kr_buf_adds(out, "],\"capabilities\":{\"tools\":{}},\"serverInfo\":" SERVER "}}");
		return;
	case KR_MCP_LIST:
		begin(mcp, "result", out);
		add_modern(mcp, true, out);
		kr_buf_adds(out, the_tool);
		return;
	}
}

void
kr_mcp_write_permit(const struct kr_mcp *mcp, bool allow, const char *message, size_t n, struct kr_buf *out)
{
	kr_auto_buf struct kr_buf text = KR_BUF(KR_MCP_ANSWER_BYTES);

	kr_buf_adds(
		&text, allow ? "{\"behavior\":\"allow\",\"updatedInput\":" : "{\"behavior\":\"deny\",\"message\":\"");
	if (allow)
		kr_buf_add(&text, mcp->input.at, mcp->input.n);
	else
		kr_json_escape(&text, message, n);
	kr_buf_adds(&text, allow ? "}" : "\"}");
	begin(mcp, "result", out);
	add_modern(mcp, false, out);
	kr_buf_adds(out, "\"content\":[{\"type\":\"text\",\"text\":\"");
	kr_json_escape(out, text.data, text.len);
	kr_buf_adds(out, "\"}]}}");
	out->overflow = out->overflow || text.overflow;
}

bool
kr_mcp_write_progress(const struct kr_mcp *mcp, const char *ask, int64_t seconds, struct kr_buf *out)
{
	if (mcp->token.type == KR_JSON_ABSENT)
		return false;
	kr_buf_adds(
		out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":");
	kr_buf_add(out, mcp->token.at, mcp->token.n);
	kr_buf_addf(out, ",\"progress\":%lld,\"message\":\"a person is asked: %s\"}}", (long long)seconds, ask);
	return true;
}
