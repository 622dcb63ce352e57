/*
 * A body to http://kraft/mcp: what passes for JSON is JSON for jansson too (which has limits of its own for
 * numbers), what is answered is JSON in one line, and an ask passes kraft's check. The first byte chooses the
 * head.
 */
#include <jansson.h>

#include "egress/call.h"
#include "egress/hook.h"
#include "egress/mcp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_answer(const struct kr_buf *out)
{
	struct kr_json json;

	KR_BUG_IF(!kr_json_check(out->data, out->len, &json) || memchr(out->data, '\n', out->len));
}

static void
check_ask(const struct kr_mcp *mcp)
{
	size_t command_n = mcp->has_command ? mcp->command_n : 0, n = command_n + mcp->input.n;
	struct kr_call *call = calloc(1, sizeof(*call) + n);

	KR_BUG_IF(!call);
	call->verb = KR_VERB_ASK;
	call->text_n = (uint32_t)n;
	call->has_command = mcp->has_command;
	call->command_n = (uint32_t)command_n;
	(void)snprintf(call->tool, sizeof(call->tool), "%s", mcp->tool);
	(void)snprintf(call->route, sizeof(call->route), KR_MCP_ROUTE);
	call->harness = mcp->harness;
	memcpy(call->text, mcp->command, command_n);
	memcpy(call->text + command_n, mcp->input.at, mcp->input.n);
	KR_BUG_IF(!kr_call_check(call, sizeof(*call) + n));
	free(call);
}

/* jansson reads a number that is no double as an error; the checker only its form. */
static void
check_json(const char *body, size_t n)
{
	json_t *judge = json_loadb(body, n, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, NULL);
	struct kr_json json;
	bool good = kr_json_check(body, n, &json);

	KR_BUG_IF(good && !judge && !memchr(body, 'e', n) && !memchr(body, 'E', n) && n < 300);
	KR_BUG_IF(good && (json.at < body || json.at + json.n > body + n));
	json_decref(judge);
}

/* The same bytes as a hook's form. */
static void
check_hook(const uint8_t *data, size_t size)
{
	char *form = malloc(size);
	struct kr_buf out = KR_BUF(KR_MCP_ANSWER_BYTES);
	struct kr_mcp mcp;

	KR_BUG_IF(!form);
	memcpy(form, data, size);
	kr_hook_read(form, size, &mcp);
	KR_BUG_IF(mcp.kind != KR_MCP_CALL && (mcp.kind != KR_MCP_WRONG || !mcp.why));
	if (mcp.kind == KR_MCP_CALL) {
		check_ask(&mcp);
		kr_hook_write(&mcp, KR_HOOK_DENY, "a \"reason\"\n", 11, &out);
		out.len--; /* its line feed */
		check_answer(&out);
	}
	kr_buf_fini(&out);
	free(form);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kr_mcp_fields fields = { .version = "" };
	struct kr_buf out = KR_BUF(KR_MCP_ANSWER_BYTES);
	struct kr_mcp mcp;
	char *body;

	if (size < 1 || size > KR_MCP_BODY_BYTES)
		return 0;
	body = malloc(size); /* the body is exactly so large */
	KR_BUG_IF(!body);
	memcpy(body, data + 1, size - 1);
	if (data[0] & 1) {
		(void)snprintf(fields.version, sizeof(fields.version), "2026-07-28");
		(void)snprintf(fields.method, sizeof(fields.method), data[0] & 2 ? "tools/call" : "tools/list");
		(void)snprintf(fields.name, sizeof(fields.name), "permission_request");
	}
	check_hook(data, size);
	check_json(body, size - 1);
	kr_mcp_read(&fields, body, size - 1, &mcp);
	if (mcp.kind == KR_MCP_CALL) {
		check_ask(&mcp);
		kr_mcp_write_permit(&mcp, data[0] & 4, "a \"reason\"\n", 11, &out);
	} else
		kr_mcp_write(&mcp, &out);
	if (out.len && !out.overflow)
		check_answer(&out);
	out.len = 0;
	if (mcp.kind == KR_MCP_CALL && kr_mcp_write_progress(&mcp, "a1", 1, &out))
		check_answer(&out);
	kr_buf_fini(&out);
	free(body);
	return 0;
}
