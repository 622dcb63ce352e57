/* egress: messages of MCP, and what is answered; jansson, which kraft-egress does not have, is its judge. */
#include <setjmp.h>
#include <stdarg.h>

#include <jansson.h>

#include "egress/call.h"
#include "egress/hook.h"
#include "egress/mcp.h"

#include <cmocka.h>

/* ---- messages ---- */

static const char *
read_as(const char *version, const char *method, const char *name, const char *body, struct kr_mcp *out)
{
	static struct kr_mcp_fields fields;
	static char text[4096];
	struct kr_buf json = KR_BUF(KR_MCP_ANSWER_BYTES);

	snprintf(fields.version, sizeof(fields.version), "%s", version);
	snprintf(fields.method, sizeof(fields.method), "%s", method);
	snprintf(fields.name, sizeof(fields.name), "%s", name);
	kr_mcp_read(&fields, body, strlen(body), out);
	kr_mcp_write(out, &json);
	snprintf(text, sizeof(text), "%s", json.data ? json.data : "");
	if (*text) {
		json_t *judge = json_loads(text, 0, NULL);

		if (!judge)
			fail_msg("no JSON: %s", text);
		json_decref(judge);
	}
	kr_buf_fini(&json);
	return text;
}

static const char *
read_old(const char *body, struct kr_mcp *out)
{
	return read_as("", "", "", body, out);
}

#define REQUEST(method, more) "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\"" more "}"
#define CALL(arguments) \
	REQUEST("tools/call", ",\"params\":{\"name\":\"permission_request\",\"arguments\":" arguments "}")

static void
each_version_starts_its_way(void **state)
{
	static const char *const versions[][2] = { { "2024-11-05", "2024-11-05" }, { "2025-03-26", "2025-03-26" },
		{ "2025-06-18", "2025-06-18" }, { "2025-11-25", "2025-11-25" }, { "2026-07-28", "2025-11-25" },
		{ "2020-01-01", "2025-11-25" } };
	struct kr_mcp mcp;
	const char *said;

	(void)state;
	for (size_t i = 0; i < KR_COUNT(versions); i++) {
		char body[256], want[64];

		snprintf(body, sizeof(body), REQUEST("initialize", ",\"params\":{\"protocolVersion\":\"%s\"}"),
			versions[i][0]);
		snprintf(want, sizeof(want), "\"protocolVersion\":\"%s\"", versions[i][1]);
		said = read_old(body, &mcp);
		assert_int_equal(mcp.kind, KR_MCP_INITIALIZE);
		assert_non_null(strstr(said, want));
	}
	said = read_as("2026-07-28", "server/discover", "", REQUEST("server/discover", ""), &mcp);
	assert_int_equal(mcp.kind, KR_MCP_DISCOVER);
	assert_non_null(strstr(said, "\"supportedVersions\":[\"2026-07-28\",\"2025-11-25\","));
	assert_non_null(strstr(said, "\"resultType\":\"complete\""));
	said = read_as("2025-11-25", "", "", REQUEST("tools/list", ""), &mcp);
	assert_int_equal(mcp.kind, KR_MCP_LIST);
	assert_null(strstr(said, "resultType"));
	assert_string_equal(read_old("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", &mcp), "");
	assert_int_equal(mcp.kind, KR_MCP_NOTED);
	assert_string_equal(read_old(REQUEST("ping", ""), &mcp), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
}

static void
head_and_body_agree(void **state)
{
	static const char meta[] = REQUEST(
		"tools/list", ",\"params\":{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}");
	static const struct {
		const char *version, *method, *name, *body;
		int code;
		unsigned status;
	} rows[] = { { "2026-07-28", "tools/list", "", meta, 0, 0 }, { "2026-07-28", "", "", meta, -32020, 400 },
		{ "2026-07-28", "tools/call", "", meta, -32020, 400 },
		{ "2025-11-25", "tools/list", "", meta, -32020, 400 }, { "", "tools/list", "", meta, -32020, 400 },
		{ "2027-01-01", "tools/list", "", meta, -32022, 400 },
		{ "x\"y", "", "", REQUEST("ping", ""), -32022, 400 },
		{ "", "tools/list", "", REQUEST("ping", ""), -32020, 400 },
		{ "2026-07-28", "tools/call", "", CALL("{\"tool_name\":\"A\",\"input\":{}}"), -32020, 400 },
		{ "2026-07-28", "tools/call", "other", CALL("{\"tool_name\":\"A\",\"input\":{}}"), -32020, 400 },
		{ "2026-07-28", "tools/call", "permission_request", CALL("{\"tool_name\":\"A\",\"input\":{}}"), 0,
			0 },
		{ "2026-07-28", "initialize", "",
			REQUEST("initialize", ",\"params\":{\"protocolVersion\":\"2025-06-18\"}"), -32601, 404 },
		{ "2025-11-25", "", "", REQUEST("server/discover", ""), -32601, 200 },
		{ "", "", "", REQUEST("resources/list", ""), -32601, 200 } };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(rows); i++) {
		struct kr_mcp mcp;

		(void)read_as(rows[i].version, rows[i].method, rows[i].name, rows[i].body, &mcp);
		if (mcp.code != rows[i].code || mcp.status != rows[i].status ||
			(mcp.kind == KR_MCP_WRONG) != (rows[i].code != 0))
			fail_msg("row %zu: %d, %u", i, mcp.code, mcp.status);
	}
}

static void
a_call_is_read(void **state)
{
	struct kr_mcp mcp;

	(void)state;
	(void)read_old(CALL("{\"tool_name\":\"Bash\",\"input\":{\"command\":\"git "
						"\\u0063ommit\",\"x\":1},\"tool_use_id\":null}"),
		&mcp);
	assert_int_equal(mcp.kind, KR_MCP_CALL);
	assert_string_equal(mcp.tool, "Bash");
	assert_true(mcp.has_command);
	assert_int_equal(mcp.command_n, 10);
	assert_memory_equal(mcp.command, "git commit", 10);
	assert_int_equal(mcp.input.n, strlen("{\"command\":\"git \\u0063ommit\",\"x\":1}"));
	assert_int_equal(mcp.token.type, KR_JSON_ABSENT);
	(void)read_old(CALL("{\"tool_name\":\"Bash\",\"input\":{\"command\":\"a\",\"command\":\"b\"}}"), &mcp);
	assert_true(mcp.kind == KR_MCP_CALL && !mcp.has_command); /* who can say which is meant */
	(void)read_old(CALL("{\"tool_name\":\"Bash\",\"input\":{\"command\":\"a\\u0000b\"}}"), &mcp);
	assert_true(mcp.kind == KR_MCP_CALL && !mcp.has_command);
	(void)read_old(CALL("{\"tool_name\":\"Shell\",\"input\":{\"command\":\"a\"}}"), &mcp);
	assert_true(mcp.kind == KR_MCP_CALL && mcp.has_command); /* whose command it is, is the policy's to say */
	(void)read_old(CALL("{\"tool_name\":\"Bash\",\"input\":{\"command\":[\"a\"]}}"), &mcp);
	assert_true(mcp.kind == KR_MCP_CALL && !mcp.has_command);
	(void)read_old("{\"jsonrpc\":\"2.0\",\"id\":\"i\",\"method\":\"tools/"
				   "call\",\"params\":{\"_meta\":{\"progressToken\":7},\"name\":\"permission_"
				   "request\",\"arguments\":{\"tool_name\":\"A\",\"input\":{}}}}",
		&mcp);
	assert_int_equal(mcp.token.n, 1);
	assert_memory_equal(mcp.id.at, "\"i\"", 3);
	(void)read_old(
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"i\"}}",
		&mcp);
	assert_true(mcp.kind == KR_MCP_CANCELLED && mcp.cancelled.n == 3);
}

static void
a_bent_message_is_refused_CHAN_06(void **state)
{
	static const struct {
		const char *body;
		int code;
	} rows[] = { { "", -32700 }, { "x", -32700 }, { "[]", -32600 }, { "[" REQUEST("ping", "") "]", -32600 },
		{ "1", -32600 }, { "{}", -32600 }, { "{\"jsonrpc\":\"2.0\",\"id\":1}", -32600 },
		{ "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}", -32600 },
		{ "{\"id\":1,\"method\":\"ping\"}", -32600 },
		{ "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", -32600 },
		{ "{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}", -32600 },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}", -32600 },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":1}", -32600 },
		{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[]}", -32602 },
		{ REQUEST("initialize", ""), -32602 }, { REQUEST("tools/call", ""), -32602 },
		{ REQUEST("tools/call", ",\"params\":{\"name\":\"Bash\"}"), -32602 }, { CALL("[]"), -32602 },
		{ CALL("{}"), -32602 }, { CALL("{\"tool_name\":\"A\"}"), -32602 }, { CALL("{\"input\":{}}"), -32602 },
		{ CALL("{\"tool_name\":\"\",\"input\":{}}"), -32602 },
		{ CALL("{\"tool_name\":\"a b\",\"input\":{}}"), -32602 },
		{ CALL("{\"tool_name\":\"a\\u0000\",\"input\":{}}"), -32602 },
		{ CALL("{\"tool_name\":\"\xc3\xa9\",\"input\":{}}"), -32602 },
		{ CALL("{\"tool_name\":1,\"input\":{}}"), -32602 },
		{ CALL("{\"tool_name\":\"A\",\"input\":[]}"), -32602 },
		{ CALL("{\"tool_name\":\"A\",\"input\":{\"a\":\"\x7f\"}}"), -32602 },
		{ CALL("{\"tool_name\":\"A\",\"input\":{},\"tool_use_id\":1}"), -32602 },
		{ CALL("{\"tool_name\":\"A\",\"input\":{},\"input\":{}}"), -32602 } };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(rows); i++) {
		struct kr_mcp mcp;

		assert_true(*read_old(rows[i].body, &mcp));
		if (mcp.kind != KR_MCP_WRONG || mcp.code != rows[i].code)
			fail_msg("'%s' is %d, %d", rows[i].body, mcp.kind, mcp.code);
	}
}

/* ---- answers ---- */

/* What an agent finds in the answer's text. Freed by the caller. */
static json_t *
permit(const struct kr_mcp *mcp, bool allow, const char *message)
{
	struct kr_buf out = KR_BUF(KR_MCP_ANSWER_BYTES);
	json_t *all, *text;
	const char *inner;

	kr_mcp_write_permit(mcp, allow, message, strlen(message), &out);
	assert_false(out.overflow);
	all = json_loadb(out.data, out.len, 0, NULL);
	assert_non_null(all);
	assert_int_equal(json_integer_value(json_object_get(all, "id")), 1);
	assert_int_equal(strlen(out.data), strcspn(out.data, "\n")); /* an event is one line */
	inner = json_string_value(json_object_get(
		json_array_get(json_object_get(json_object_get(all, "result"), "content"), 0), "text"));
	assert_non_null(inner);
	text = json_loads(inner, 0, NULL);
	assert_non_null(text);
	json_decref(all);
	kr_buf_fini(&out);
	return text;
}

static void
an_input_comes_back_as_it_was_CHN_09(void **state)
{
	static const char input[] = "{\n\t\"a\":\"\\\"\\\\ \\u00e9 \xc3\xa9\",\r\n\"b\":[1.50,{}]}";
	struct kr_mcp mcp;
	json_t *text, *want;

	(void)state;
	(void)read_old(
		CALL("{\"tool_name\":\"A\",\"input\":{\n\t\"a\":\"\\\"\\\\ \\u00e9 \xc3\xa9\",\r\n\"b\":[1.50,{}]}}"),
		&mcp);
	assert_int_equal(mcp.kind, KR_MCP_CALL);
	text = permit(&mcp, true, "");
	want = json_loads(input, 0, NULL);
	assert_string_equal(json_string_value(json_object_get(text, "behavior")), "allow");
	assert_true(json_equal(json_object_get(text, "updatedInput"), want));
	json_decref(text);
	json_decref(want);
	text = permit(&mcp, false, "no \"x\"\n\\ \xc3\xa9");
	assert_string_equal(json_string_value(json_object_get(text, "behavior")), "deny");
	assert_string_equal(json_string_value(json_object_get(text, "message")), "no \"x\"\n\\ \xc3\xa9");
	json_decref(text);
}

/* ---- hooks ---- */

/* The form is kept by the caller: what is read borrows from it. */
static void
read_hook(const char *text, char form[512], struct kr_mcp *out)
{
	snprintf(form, 512, "%s", text);
	kr_hook_read(form, strlen(form), out);
}

static void
expect_hook(const struct kr_mcp *mcp, enum kr_hook_decision decision, const char *message, const char *want)
{
	struct kr_buf out = KR_BUF(1000);

	kr_hook_write(mcp, decision, message, strlen(message), &out);
	assert_string_equal(out.data, want);
	kr_buf_fini(&out);
}

static void
a_hook_is_read_and_answered_CHAN_09(void **state)
{
	static const char *const bad[] = { "", "harness=codex", "stdin={}",
		"harness=codex&stdin=", "harness=codex&stdin={}",
		"harness=claude&stdin={\"tool_name\":\"A\",\"tool_input\":{}}",
		"stdin={\"tool_name\":\"A\",\"tool_input\":{}}&harness=codex",
		"harness=codex&stdin={\"tool_name\":\"A\",\"tool_input\":{}}&x=1",
		"harness=codex&stdin={\"tool_name\":\"A\",\"tool_input\":[]}",
		"harness=codex&stdin={\"tool_name\":\"a+b\",\"tool_input\":{}}",
		"harness=codex&stdin={\"tool_name\":\"A\"}",
		"harness=codex&stdin=[{\"tool_name\":\"A\",\"tool_input\":{}}]", "harness=codex&stdin=%7",
		"harness=codex&stdin=%00",
		"harness=codex&stdin={\"tool_name\":\"A\",\"tool_name\":\"B\",\"tool_input\":{}}" };
	struct kr_mcp mcp;
	char form[512];

	(void)state;
	for (size_t i = 0; i < KR_COUNT(bad); i++) {
		read_hook(bad[i], form, &mcp);
		if (mcp.kind != KR_MCP_WRONG || !mcp.why || mcp.status != 400)
			fail_msg("'%s' is taken", bad[i]);
	}
	read_hook(
		"harness=cursor&stdin=%7B%22tool_name%22:%22Shell%22,%22tool_input%22:{%22command%22:%22a+%2B%22}}",
		form, &mcp);
	assert_true(mcp.kind == KR_MCP_CALL && mcp.harness == KR_HARNESS_CURSOR && mcp.has_command);
	assert_string_equal(mcp.tool, "Shell");
	assert_memory_equal(mcp.command, "a +", 3);
	expect_hook(&mcp, KR_HOOK_DENY, "no \"x\"",
		"{\"permission\":\"deny\",\"agent_message\":\"Kraft: no \\\"x\\\"\",\"user_message\":\"Kraft: no "
		"\\\"x\\\"\"}\n");
	expect_hook(&mcp, KR_HOOK_SILENT, "", "{}\n");
	mcp.harness = KR_HARNESS_CODEX;
	expect_hook(&mcp, KR_HOOK_ALLOW, "",
		"{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"allow\","
		"\"permissionDecisionReason\":\"Kraft: it is allowed\"}}\n");
	expect_hook(&mcp, KR_HOOK_DENY, "",
		"{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"deny\","
		"\"permissionDecisionReason\":\"Kraft: \"}}\n"); /* never without a reason */
}

/* ---- as a call to kraft ---- */

static struct kr_call *
ask_call(size_t command_n, size_t input_n)
{
	struct kr_call *call = calloc(1, sizeof(*call) + command_n + input_n);

	assert_non_null(call);
	call->verb = KR_VERB_ASK;
	call->has_command = command_n > 0;
	call->command_n = (uint32_t)command_n;
	call->text_n = (uint32_t)(command_n + input_n);
	snprintf(call->tool, sizeof(call->tool), "%s", "Bash");
	snprintf(call->route, sizeof(call->route), "%s", KR_MCP_ROUTE);
	memset(call->text, 'x', call->text_n);
	return call;
}

#define BENT(change)                                                     \
	do {                                                                 \
		struct kr_call *bent = ask_call(3, 5);                           \
		change;                                                          \
		assert_false(kr_call_check(bent, sizeof(*bent) + bent->text_n)); \
		free(bent);                                                      \
	} while (0)

static void
kraft_takes_an_ask_as_it_must_be(void **state)
{
	struct kr_call *call = ask_call(KR_ASK_COMMAND_BYTES, KR_ASK_INPUT_BYTES);

	(void)state;
	assert_true(kr_call_check(call, KR_CALL_BYTES_MAX));
	free(call);
	call = ask_call(0, 1);
	assert_true(kr_call_check(call, sizeof(*call) + 1));
	call->verb = KR_VERB_ASK_STATE;
	assert_false(kr_call_check(call, sizeof(*call) + 1));
	free(call);
	call = ask_call(0, 0);
	assert_false(kr_call_check(call, sizeof(*call))); /* no input */
	memset(call->tool, 0, sizeof(call->tool));
	call->verb = KR_VERB_ASK_CLOSE;
	assert_false(kr_call_check(call, sizeof(*call))); /* which one */
	snprintf(call->ask, sizeof(call->ask), "%s", "a1234567");
	assert_true(kr_call_check(call, sizeof(*call)));
	call->verb = KR_VERB_SHOW;
	assert_false(kr_call_check(call, sizeof(*call)));
	free(call);
	BENT(bent->tool[0] = 0);
	BENT(bent->tool[1] = ' ');
	BENT(bent->tool[1] = '\n');
	BENT(bent->tool[10] = 'x');
	BENT(memset(bent->tool, 'x', sizeof(bent->tool)));
	BENT(bent->has_command = 2);
	BENT(bent->has_command = 0);
	BENT(bent->command_n = 9);
	BENT(bent->command_n = 8);
	BENT(bent->text[0] = 0);
	BENT(bent->text[4] = '\x1b');
	BENT(bent->text[4] = '\xff');
	BENT(bent->harness = KR_HARNESS_END);
	BENT(bent->zero = 1);
	BENT(bent->ask[0] = 'a');
	BENT(bent->id[0] = 'a');
	BENT(bent->claim = 1);
	BENT(bent->route[0] = 0);
	BENT(bent->verb = KR_VERB_REPLY);
	BENT(bent->verb = KR_VERB_NONE);
	assert_int_equal(kr_verb_of("ask", 3), KR_VERB_NONE); /* of no path */
	assert_int_equal(kr_verb_of("ask_state", 9), KR_VERB_NONE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_version_starts_its_way),
		cmocka_unit_test(head_and_body_agree),
		cmocka_unit_test(a_call_is_read),
		cmocka_unit_test(a_bent_message_is_refused_CHAN_06),
		cmocka_unit_test(an_input_comes_back_as_it_was_CHN_09),
		cmocka_unit_test(a_hook_is_read_and_answered_CHAN_09),
		cmocka_unit_test(kraft_takes_an_ask_as_it_must_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
