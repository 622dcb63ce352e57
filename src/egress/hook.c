/* Agents run a tool when they do not know what a hook says, so each answer is exactly one of their own
 * objects, and a denial never without a reason. */
#include "egress/hook.h"

#include "egress/form.h"

static const char wrong_form[] = "the form has 'harness' and 'stdin', each once, and nothing else";
static const char wrong_json[] = "'stdin' is no object with a 'tool_name' of 1 to 128 printable characters "
								 "and a 'tool_input' of at most 256 KiB";

static bool
fail(struct kr_mcp *out, const char *why)
{
	*out = (struct kr_mcp){ .kind = KR_MCP_WRONG, .status = 400, .why = why };
	return false;
}

static bool
read_input(const struct kr_bytes *text, struct kr_mcp *out)
{
	struct kr_json all, tool;

	if (!kr_json_check(text->at, text->n, &all) || all.type != KR_JSON_OBJECT ||
		!kr_json_member(&all, "tool_name", &tool) || !kr_json_member(&all, "tool_input", &out->input) ||
		!kr_mcp_read_tool(&tool, out) || out->input.type != KR_JSON_OBJECT ||
		!kr_call_is_input(out->input.at, out->input.n))
		return fail(out, wrong_json);
	kr_mcp_read_command(out);
	return true;
}

void
kr_hook_read(char *form, size_t n, struct kr_mcp *out)
{
	static const char *const names[2] = { "harness", "stdin" };
	struct kr_bytes values[2];
	enum kr_hooked harness;

	*out = (struct kr_mcp){ .kind = KR_MCP_CALL };
	if (!kr_form_pair(form, n, names, values)) {
		(void)fail(out, wrong_form);
		return;
	}
	harness = kr_hooked_of(values[0].at, values[0].n);
	if (harness == KR_HARNESS_NONE)
		(void)fail(out, "'harness' is neither codex nor cursor");
	else if (read_input(&values[1], out))
		out->harness = harness;
}

static void
write_codex(bool allow, const char *message, size_t n, struct kr_buf *out)
{
	kr_buf_addf(out,
		"{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"%s\","
		"\"permissionDecisionReason\":\"Kraft: ",
		allow ? "allow" : "deny");
	kr_json_escape(out, message, n);
	kr_buf_adds(out, "\"}}\n");
}

static void
write_cursor(bool allow, const char *message, size_t n, struct kr_buf *out)
{
	static const char *const names[] = { "agent_message", "user_message" };

	kr_buf_addf(out, "{\"permission\":\"%s\"", allow ? "allow" : "deny");
	for (size_t i = 0; i < KR_COUNT(names); i++) {
		kr_buf_addf(out, ",\"%s\":\"Kraft: ", names[i]);
		kr_json_escape(out, message, n);
		kr_buf_adds(out, "\"");
	}
	kr_buf_adds(out, "}\n");
}

void
kr_hook_write(const struct kr_mcp *mcp, enum kr_hook_decision decision, const char *message, size_t n,
	struct kr_buf *out)
{
	static const char allowed[] = "it is allowed";
	const bool allow = decision == KR_HOOK_ALLOW;

	if (decision == KR_HOOK_SILENT) {
		kr_buf_adds(out, "{}\n");
		return;
	}
	if (allow) {
		message = allowed;
		n = sizeof(allowed) - 1;
	}
	(mcp->harness == KR_HARNESS_CODEX ? write_codex : write_cursor)(allow, message, n, out);
}
