/*
 * Files of rules; see rules.h. Written from the documentation of both CLIs and never run with either, so they
 * say more than should be needed: every tool by name beside the rule for all, and what switches rules off as
 * not switched.
 *
 *     opencode    permission: {tool: "allow" | "deny"}, the last that matches holds; "*" stands first
 *     amp         amp.permissions: [{tool, action: "allow" | "reject"}], the first that matches holds; "*"
 * stands last
 */
#include "agent/rules.h"

enum { RULES_BYTES = 100 << 10 }; /* a variable may have 128 KiB */

void
kr_agent_json(const char *text, struct kr_buf *out)
{
	kr_buf_adds(out, "\"");
	for (const char *c = text; *c; c++)
		if (*c == '"' || *c == '\\')
			kr_buf_addf(out, "\\%c", *c);
		else if (*c == '\n' || *c == '\t')
			kr_buf_adds(out, *c == '\n' ? "\\n" : "\\t");
		else if ((unsigned char)*c < ' ' || *c == 0x7f)
			kr_buf_addf(out, "\\u%04x", (unsigned char)*c);
		else
			kr_buf_add(out, c, 1);
	kr_buf_adds(out, "\"");
}

/* ---- verdicts ---- */

struct rules {
	const struct kr_harness *harness;
	const struct kr_policy *policy;
	const struct kr_strs *denied;
};

static bool
any_of(const struct kr_strs *names, const struct kr_strs *list)
{
	for (size_t i = 0; i < names->n; i++)
		if (kr_strs_has(list, names->v[i]))
			return true;
	return false;
}

static bool
all_of(const struct kr_strs *names, const struct kr_strs *list)
{
	for (size_t i = 0; i < names->n; i++)
		if (!kr_strs_has(list, names->v[i]))
			return false;
	return true;
}

/* As policy/permit.h has it: one denied name denies, all have to be allowed. Its own name counts too. */
static bool
is_allowed(const struct rules *r, const struct kr_tool_name *tool)
{
	const struct kr_strs *allowed = &r->policy->allowed_tools;

	if (kr_strs_has(r->denied, tool->cli) || any_of(&tool->policy, r->denied))
		return false;
	return !r->policy->has_allowed_tools || kr_strs_has(allowed, tool->cli) || all_of(&tool->policy, allowed);
}

/* A name of the policy's that stands for none of the harness's tools: one that it calls the same, or has not.
 */
static bool
is_own(const struct rules *r, const char *name)
{
	for (size_t i = 0; i < r->harness->tool_count; i++) {
		const struct kr_tool_name *tool = &r->harness->tools[i];

		if (strcmp(tool->cli, name) == 0 || kr_strs_has(&tool->policy, name))
			return false;
	}
	return true;
}

typedef void add_rule(const char *tool, bool is_allowed, struct kr_buf *out);

static void
add_rules(const struct rules *r, add_rule *add, struct kr_buf *out)
{
	const struct kr_strs *allowed = &r->policy->allowed_tools;

	for (size_t i = 0; i < r->harness->tool_count; i++)
		add(r->harness->tools[i].cli, is_allowed(r, &r->harness->tools[i]), out);
	for (size_t i = 0; i < r->denied->n; i++)
		if (is_own(r, r->denied->v[i]))
			add(r->denied->v[i], false, out);
	for (size_t i = 0; r->policy->has_allowed_tools && i < allowed->n; i++)
		if (is_own(r, allowed->v[i]) && !kr_strs_has(r->denied, allowed->v[i]))
			add(allowed->v[i], true, out);
}

/* ---- opencode ---- */

static void
add_opencode(const char *tool, bool is_allowed, struct kr_buf *out)
{
	kr_buf_adds(out, ",");
	kr_agent_json(tool, out);
	kr_buf_adds(out, is_allowed ? ":\"allow\"" : ":\"deny\"");
}

/* NULL: too long. Its two guards are not tools, and would ask: what lies outside is the walls' to keep. Its
 * questions have nobody who answers. */
static const char *
opencode_permission(struct kr_arena *arena, const struct rules *r)
{
	kr_auto_buf struct kr_buf out = KR_BUF(RULES_BYTES);

	kr_buf_addf(&out,
		"{\"*\":\"%s\",\"external_directory\":\"allow\",\"doom_loop\":\"allow\",\"question\":\"deny\"",
		r->policy->has_allowed_tools ? "deny" : "allow");
	add_rules(r, add_opencode, &out);
	kr_buf_adds(&out, "}");
	return out.overflow ? NULL : kr_arena_dup_n(arena, out.data, out.len);
}

/* ---- amp ---- */

static void
add_amp(const char *tool, bool is_allowed, struct kr_buf *out)
{
	kr_buf_adds(out, "{\"tool\":");
	kr_agent_json(tool, out);
	kr_buf_adds(out, is_allowed ? ",\"action\":\"allow\"}," : ",\"action\":\"reject\"},");
}

static const char *
amp_settings(struct kr_arena *arena, const struct rules *r)
{
	kr_auto_buf struct kr_buf out = KR_BUF(RULES_BYTES);

	kr_buf_adds(&out, "{\"amp.permissions\":[");
	add_rules(r, add_amp, &out);
	kr_buf_addf(
		&out, "{\"tool\":\"*\",\"action\":\"%s\"}]", r->policy->has_allowed_tools ? "reject" : "allow");
	kr_buf_adds(&out,
		",\"amp.dangerouslyAllowAll\":false,\"amp.mcpServers\":{},\"amp.updates.mode\":\"disabled\"}\n");
	return out.overflow ? NULL : kr_arena_dup_n(arena, out.data, out.len);
}

int
kr_agent_rules(struct kr_arena *arena, const struct kr_harness *harness, const struct kr_policy *policy,
	const struct kr_strs *denied, struct kr_agent_launch *launch, struct kr_error *err)
{
	const struct rules r = { .harness = harness, .policy = policy, .denied = denied };
	bool is_amp = strcmp(harness->rules, "amp") == 0;
	const char *text = is_amp ? amp_settings(arena, &r) : opencode_permission(arena, &r);
	struct kr_agent_file *file = kr_arena_new(arena, struct kr_agent_file);

	if (!text)
		return kr_fail(
			err, KR_E_LIMIT, "the rules of harness '%s' are longer than %d bytes", harness->id, RULES_BYTES);
	*file = (struct kr_agent_file){ .name = "amp.json", .text = text };
	launch->files = file;
	launch->file_count = 1;
	if (is_amp)
		return 0;
	*file = (struct kr_agent_file){ .name = "opencode.json",
		.text = kr_arena_printf(
			arena, "{\"permission\":%s,\"share\":\"disabled\",\"autoupdate\":false}\n", text) };
	launch->env[launch->env_count++] =
		(struct kr_env_literal){ .name = "OPENCODE_PERMISSION", .value = text };
	return 0;
}
