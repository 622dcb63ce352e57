/*
 * From a harness and a task's policy to the words of a launch; see agent.h.
 *
 * First everything that could refuse, then the words, so nothing is left half said. A tool is only taken to
 * be kept from running by what was told in a way that the harness file declares; where there is no such way,
 * there is no launch. Words come from the person's files and, as values in them, from the item, so a value
 * never makes a word of its own and what goes into JSON is written as JSON.
 */
#include "agent/agent.h"

#include "agent/rules.h"
#include "base/text.h"

#define SERVER "{\"mcpServers\":{\"kraft\":{\"type\":\"http\",\"url\":\"http://kraft/mcp\"}}}"

enum { TEXT_BYTES = 8 << 20, QUOTED = 60 };

struct build {
	struct kr_arena *arena;
	const struct kr_agent_want *want;
	const struct kr_harness *harness;
	const struct kr_policy *policy;
	struct kr_error *err;
	struct kr_strs denied;     /* the policy's, and the harness's own */
	struct kr_strs offered;    /* under a list of allowed tools: what is left of it */
	struct kr_strs asked;      /* calls of these have to reach kraft */
	struct kr_strs argv, last; /* last: words of the prompt that go behind all others */
};

/* ---- small questions ---- */

static const struct kr_cap *
cap_of(const struct build *b, enum kr_capability capability)
{
	return kr_harness_cap(b->harness, capability);
}

static bool
goes_by(const struct build *b, enum kr_capability capability, enum kr_via via)
{
	const struct kr_cap *cap = cap_of(b, capability);

	return cap && cap->via == via;
}

/* Something of kraft's is asked before a call runs. */
static bool
has_gate(const struct build *b)
{
	return kr_policy_has_channel(b->policy) &&
		   (cap_of(b, KR_CAP_APPROVAL_CHANNEL) || (b->harness->hook && cap_of(b, KR_CAP_PERMISSION_HOOK)));
}

static void
add_new(struct build *b, struct kr_strs *list, const char *name)
{
	if (!kr_strs_has(list, name))
		kr_strs_add(b->arena, list, name);
}

static int
refuse(struct build *b, const char *why)
{
	return kr_fail(b->err, KR_E_REFUSED, "harness '%s' is not started: %s", b->harness->id, why);
}

/* ---- what is refused ---- */

static int
check_harness(struct build *b)
{
	const struct kr_policy_layer *walls = b->policy->sandbox;

	if (!b->harness->enabled) {
		refuse(b, "it is switched off");
		return kr_hint(b->err, "harnesses.yaml says 'enabled: false' of it");
	}
	if (b->policy->has_allowed_harnesses && !kr_strs_has(&b->policy->allowed_harnesses, b->harness->id)) {
		refuse(b, "the policy's allowed_harnesses lack it");
		return kr_hint(b->err, "name another harness, or add it in each layer that has the list");
	}
	if (b->harness->proxy_aware || (walls && walls->sandbox.unrestricted_network))
		return 0;
	refuse(b, "it goes around a proxy, so no network policy would hold for it");
	return kr_hint(b->err, "take a harness that heeds a proxy; 'kraft admin harnesses' lists them");
}

/* What of the policy only the hook would keep; NULL: nothing. */
static const char *
kept_by_hook(const struct build *b)
{
	const struct kr_policy *policy = b->policy;

	if (policy->has_allowed_tools && goes_by(b, KR_CAP_ALLOWED_TOOLS, KR_VIA_HOOK))
		return "allowed_tools";
	if (policy->deny_tools.n && goes_by(b, KR_CAP_DENY_TOOLS, KR_VIA_HOOK))
		return "deny_tools";
	if (policy->ask_tools.n && goes_by(b, KR_CAP_ASK_TOOLS, KR_VIA_HOOK))
		return "ask_tools";
	for (int i = 0; b->harness->hook && i < KR_GRANT_COUNT; i++)
		if (i != KR_GRANT_INDEX_COMMIT && (policy->grants >> i & 1))
			return kr_arena_printf(b->arena, "the grant '%s'", kr_grant_name((enum kr_grant)i));
	return NULL;
}

/* CHN-11. Nobody could be asked: who asks for each call would wait for ever, and a hook lets run what it cannot ask for. */
static int
check_channel(struct build *b)
{
	const char *kept;

	if (kr_policy_has_channel(b->policy))
		return 0;
	if (cap_of(b, KR_CAP_APPROVAL_CHANNEL)) {
		refuse(b, "it asks kraft before it uses a tool, and with 'unrestricted_network' nothing inside reaches kraft");
		return kr_hint(b->err, "set 'network' in place of 'unrestricted_network', or take a harness that asks nobody");
	}
	kept = kept_by_hook(b);
	if (!kept)
		return 0;
	refuse(b, kr_arena_printf(b->arena,
				  "its hook would keep %s of the policy, and with 'unrestricted_network' the hook cannot ask kraft", kept));
	return kr_hint(b->err, "set 'network' in place of 'unrestricted_network', or take %s away", kept);
}

/* The configuration's own rule is wider; here a name becomes part of a word. */
static int
check_names(struct build *b, const struct kr_strs *list)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

	for (size_t i = 0; i < list->n; i++) {
		const char *name = list->v[i];

		if (*name && *name != '-' && *name != '.' && !name[strspn(name, good)])
			continue;
		kr_fail(b->err, KR_E_CONFIG, "'%.*s' is not a bare tool name", QUOTED, name);
		return kr_hint(b->err, "a policy's lists take names such as Bash or mcp__server__tool");
	}
	return 0;
}

static bool
is_unhooked(const struct build *b, const char *tool)
{
	return kr_strs_has(&b->harness->unhooked, tool);
}

static int
check_denied(struct build *b)
{
	const struct kr_cap *cap = cap_of(b, KR_CAP_DENY_TOOLS);

	for (size_t i = 0; i < b->policy->deny_tools.n; i++) {
		const char *tool = b->policy->deny_tools.v[i];

		if (cap && (cap->via == KR_VIA_ARGS || !is_unhooked(b, tool)))
			continue;
		refuse(b, kr_arena_printf(
					  b->arena, "the policy denies '%s', and nothing would keep it from running", tool));
		return kr_hint(b->err, "take a harness that can be told, or take the tool out of deny_tools");
	}
	return 0;
}

static int
check_allowed(struct build *b)
{
	const struct kr_cap *cap = cap_of(b, KR_CAP_ALLOWED_TOOLS);

	if (!b->policy->has_allowed_tools || cap_of(b, KR_CAP_RESTRICT_TOOLS))
		return 0;
	if (!cap || cap->via == KR_VIA_ARGS) {
		refuse(b, "the policy has a list of allowed tools, and nothing would keep others from running");
		return kr_hint(b->err, "take a harness that can be told, or take allowed_tools away");
	}
	for (size_t i = 0; i < b->harness->unhooked.n; i++) {
		const char *tool = b->harness->unhooked.v[i];

		if (kr_strs_has(&b->policy->allowed_tools, tool))
			continue;
		refuse(b, kr_arena_printf(b->arena,
					  "the policy's allowed_tools lack '%s', and nothing would keep it from running", tool));
		return kr_hint(b->err, "take a harness that can be told, or allow the tool");
	}
	return 0;
}

/* One that is denied, or not allowed, is not asked for. */
static bool
may_be_asked(const struct build *b, const char *tool)
{
	return !kr_strs_has(&b->denied, tool) &&
		   (!b->policy->has_allowed_tools || kr_strs_has(&b->offered, tool));
}

static int
check_asked(struct build *b)
{
	const struct kr_cap *cap = cap_of(b, KR_CAP_ASK_TOOLS);

	for (size_t i = 0; i < b->policy->ask_tools.n; i++) {
		const char *tool = b->policy->ask_tools.v[i];

		if (!may_be_asked(b, tool) || (cap && (cap->via == KR_VIA_ARGS || !is_unhooked(b, tool))))
			continue;
		refuse(b,
			kr_arena_printf(b->arena, "the policy asks a person for '%s', and nobody would be asked", tool));
		return kr_hint(b->err, "take a harness that can ask, or take the tool out of ask_tools");
	}
	return 0;
}

static int
check_grants(struct build *b)
{
	unsigned grants = b->policy->grants & ~(1u << KR_GRANT_INDEX_COMMIT);

	for (int i = 0; i < KR_GRANT_COUNT; i++) {
		if (!(grants >> i & 1) || has_gate(b))
			continue;
		refuse(
			b, kr_arena_printf(b->arena, "the policy grants '%s', and it asks nobody what such a command is",
				   kr_grant_name((enum kr_grant)i)));
		return kr_hint(b->err, "take a harness that asks kraft, or take the grant away");
	}
	return 0;
}

/* ---- the lists ---- */

static bool
says_of_tools(const struct kr_policy *policy)
{
	return policy->has_allowed_tools || policy->deny_tools.n || policy->ask_tools.n || policy->grants;
}

/* A command that is granted runs by Bash, so the tool is there, and the gate looks at each call of it. */
static void
list_offered(struct build *b)
{
	const struct kr_strs *allowed = &b->policy->allowed_tools;

	for (size_t i = 0; b->policy->has_allowed_tools && i < allowed->n; i++)
		if (!kr_strs_has(&b->denied, allowed->v[i]))
			add_new(b, &b->offered, allowed->v[i]);
	if (b->policy->has_allowed_tools && b->policy->grants && has_gate(b) && !kr_strs_has(&b->denied, "Bash"))
		add_new(b, &b->offered, "Bash");
}

/* Under a list of allowed tools all that is offered is asked for: the list is the gate's to keep too. */
static void
list_asked(struct build *b)
{
	const struct kr_cap *cap = cap_of(b, KR_CAP_ASK_TOOLS);

	for (size_t i = 0; i < b->offered.n; i++)
		add_new(b, &b->asked, b->offered.v[i]);
	for (size_t i = 0; i < b->policy->ask_tools.n; i++)
		if (may_be_asked(b, b->policy->ask_tools.v[i]))
			add_new(b, &b->asked, b->policy->ask_tools.v[i]);
	for (size_t i = 0; cap && says_of_tools(b->policy) && i < cap->under_policy.n; i++)
		if (!kr_strs_has(&b->denied, cap->under_policy.v[i]))
			add_new(b, &b->asked, cap->under_policy.v[i]);
}

static void
make_lists(struct build *b)
{
	const struct kr_cap *deny = cap_of(b, KR_CAP_DENY_TOOLS);

	for (size_t i = 0; deny && i < deny->also.n; i++)
		add_new(b, &b->denied, deny->also.v[i]);
	for (size_t i = 0; i < b->policy->deny_tools.n; i++)
		add_new(b, &b->denied, b->policy->deny_tools.v[i]);
	list_offered(b);
	list_asked(b);
}

/* ---- words ---- */

/* What stands for the placeholders of one capability; NULL, or no list: it has no such value. */
struct filling {
	const char *value, *key, *hash;
	const struct kr_strs *list;
};

static void
add_joined(const struct kr_strs *list, bool is_json, struct kr_buf *out)
{
	for (size_t i = 0; i < list->n; i++) {
		kr_buf_adds(out, i ? "," : "");
		if (is_json)
			kr_agent_json(list->v[i], out);
		else
			kr_buf_adds(out, list->v[i]);
	}
}

static void
fill_one(const struct build *b, const struct filling *with, enum kr_placeholder which, struct kr_buf *out)
{
	switch (which) {
	case KR_PLACEHOLDER_VALUE:
		kr_buf_adds(out, with->value);
		break;
	case KR_PLACEHOLDER_CSV:
		add_joined(with->list, false, out);
		break;
	case KR_PLACEHOLDER_JSON:
		if (with->value)
			kr_agent_json(with->value, out);
		kr_buf_adds(out, with->list ? "[" : "");
		if (with->list)
			add_joined(with->list, true, out);
		kr_buf_adds(out, with->list ? "]" : "");
		break;
	case KR_PLACEHOLDER_COMMAND:
		kr_buf_addf(out, KR_AGENT_HOOK_COMMAND, b->harness->hook);
		break;
	case KR_PLACEHOLDER_KEY:
		kr_buf_adds(out, with->key);
		break;
	case KR_PLACEHOLDER_HASH:
		kr_buf_adds(out, with->hash);
		break;
	case KR_PLACEHOLDER_SETTINGS:
		kr_buf_adds(out, b->want->settings_dir);
		break;
	case KR_PLACEHOLDER_COUNT:
		KR_BUG_IF(true); /* no file that was read has one */
	}
}

/* A value is put in once and not looked at again: what it holds is text. */
static const char *
fill(const struct build *b, const char *text, const struct filling *with)
{
	kr_auto_buf struct kr_buf out = KR_BUF(TEXT_BYTES);
	enum kr_placeholder which;
	const char *at;
	size_t n;

	for (; (at = kr_placeholder_find(text, &which, &n)); text = at + n) {
		kr_buf_add(&out, text, (size_t)(at - text));
		fill_one(b, with, which, &out);
	}
	kr_buf_adds(&out, text);
	return out.overflow ? NULL : kr_arena_dup_n(b->arena, out.data ? out.data : "", out.len);
}

static int
add_words(struct build *b, const struct kr_strs *words, const struct filling *with, struct kr_strs *out)
{
	for (size_t i = 0; i < words->n; i++) {
		const char *word = fill(b, words->v[i], with);

		if (!word)
			return kr_fail(b->err, KR_E_LIMIT, "what harness '%s' is told is too long", b->harness->id);
		kr_strs_add(b->arena, out, word);
	}
	return 0;
}

/* A bare {value} goes behind all other words, with a "--" that stands in front of it. */
static int
add_prompt(struct build *b, const struct kr_cap *cap, const struct filling *with)
{
	struct kr_strs front = cap->args, back = { 0 };
	size_t n = cap->args.n;

	if (cap->via == KR_VIA_ARGS && strcmp(cap->args.v[n - 1], "{value}") == 0 &&
		(n == 1 || strcmp(cap->args.v[n - 2], "--") == 0)) {
		front.n = n > 1 ? n - 2 : 0;
		back = (struct kr_strs){ .v = cap->args.v + front.n, .n = n - front.n };
	}
	return add_words(b, &front, with, &b->argv) < 0 ? -1 : add_words(b, &back, with, &b->last);
}

/* ---- the one value of a capability ---- */

static const char *
mode_of(const struct build *b)
{
	const struct kr_cap *cap = cap_of(b, KR_CAP_PERMISSION_MODE);
	const char *mode = b->want->permission_mode ? b->want->permission_mode : b->harness->permission_mode;
	const char *usual = !cap                                                   ? NULL
						: b->policy->has_allowed_tools && cap->under_allowlist ? cap->under_allowlist
																			   : cap->always;

	if (!mode)
		mode = usual;
	/* Its own walls cannot be raised inside of others. */
	if (b->harness->container_permission_mode &&
		(!mode || (cap && cap->always && strcmp(mode, cap->always) == 0)))
		return b->harness->container_permission_mode;
	return mode;
}

/* NULL: none is asked for. */
static const char *
option_of(const struct build *b, enum kr_capability capability)
{
	if (capability == KR_CAP_MODEL)
		return b->want->model ? b->want->model : b->harness->model;
	if (capability == KR_CAP_EFFORT)
		return b->want->effort ? b->want->effort : b->harness->effort;
	return capability == KR_CAP_PERMISSION_MODE ? mode_of(b) : NULL;
}

static const char *
values_of(struct build *b, const struct kr_strs *values)
{
	kr_auto_buf struct kr_buf list = KR_BUF(400);

	for (size_t i = 0; i < values->n; i++)
		kr_buf_addf(&list, "%s%s", i ? ", " : "", values->v[i]);
	return kr_arena_dup(b->arena, list.data ? list.data : "");
}

/* An option that the harness does not have is refused by name, and never left out. */
static int
check_option(struct build *b, enum kr_capability capability)
{
	const char *name = kr_capability_name(capability), *value = option_of(b, capability);
	const struct kr_cap *cap = cap_of(b, capability);

	if (!value)
		return 0;
	if (!cap) {
		kr_fail(b->err, KR_E_CONFIG, "harness '%s' takes no %s, and '%.*s' is asked for", b->harness->id,
			name, QUOTED, value);
		return kr_hint(b->err, "leave it out, or take a harness that has it");
	}
	if (!*value || !kr_text_is_utf8(value, strlen(value)) || *value == '-')
		return kr_fail(
			b->err, KR_E_CONFIG, "'%.*s' is no %s of harness '%s'", QUOTED, value, name, b->harness->id);
	if (!cap->values.n || kr_strs_has(&cap->values, value))
		return 0;
	kr_fail(b->err, KR_E_CONFIG, "harness '%s' takes no %s '%.*s'", b->harness->id, name, QUOTED, value);
	return kr_hint(b->err, "it takes %s", values_of(b, &cap->values));
}

static bool
is_all_of(const char *text, const char *letters)
{
	return *text && !text[strspn(text, letters)];
}

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static int
check_resume(struct build *b)
{
	const char *id = b->want->resume;

	if (!id)
		return 0;
	if (!cap_of(b, KR_CAP_RESUME))
		return kr_fail(b->err, KR_E_CONFIG, "harness '%s' cannot go on with a conversation", b->harness->id);
	if (is_all_of(id, LETTERS "-_") && *id != '-')
		return 0;
	return kr_fail(b->err, KR_E_CONFIG, "'%.*s' is no conversation's id", QUOTED, id);
}

/* They were the CLI's to say, and become part of its settings. */
static int
check_hook(struct build *b)
{
	const char *key = b->want->hook_key, *hash = b->want->hook_hash;

	if (!key || !hash)
		return 0;
	if (is_all_of(key, LETTERS "/<>:._-") && is_all_of(hash, LETTERS ":+/=_-"))
		return 0;
	return refuse(b, "what it calls its hook cannot be written back to it");
}

/* Behind "--" it may begin as it likes. */
static bool
is_bare(const struct kr_cap *prompt)
{
	size_t n = prompt->args.n;

	return prompt->via == KR_VIA_ARGS && prompt->args.v[0][0] == '{' && n == 1;
}

static int
check_texts(struct build *b)
{
	const char *const texts[] = { b->want->context, b->want->prompt };

	if (is_bare(cap_of(b, KR_CAP_PROMPT)) && *b->want->prompt == '-')
		return kr_fail(b->err, KR_E_CONFIG,
			"harness '%s' would take an instruction that begins with '-' for an option", b->harness->id);

	for (size_t i = 0; i < KR_COUNT(texts); i++)
		if (!kr_text_is_utf8(texts[i], strlen(texts[i])))
			return kr_fail(b->err, KR_E_CONFIG, "what harness '%s' is told is not UTF-8", b->harness->id);
	return 0;
}

static int
check_all(struct build *b)
{
	static const enum kr_capability options[] = { KR_CAP_MODEL, KR_CAP_EFFORT, KR_CAP_PERMISSION_MODE };

	if (check_harness(b) < 0 || check_channel(b) < 0 || check_names(b, &b->policy->allowed_tools) < 0 ||
		check_names(b, &b->policy->deny_tools) < 0 || check_names(b, &b->policy->ask_tools) < 0)
		return -1;
	make_lists(b);
	for (size_t i = 0; i < KR_COUNT(options); i++)
		if (check_option(b, options[i]) < 0)
			return -1;
	if (check_denied(b) < 0 || check_allowed(b) < 0 || check_asked(b) < 0 || check_grants(b) < 0)
		return -1;
	return check_resume(b) < 0 || check_hook(b) < 0 ? -1 : check_texts(b);
}

/* ---- one capability after the other ---- */

/* Words of a way to kraft that is not there are left out. */
static bool
is_said(const struct build *b, enum kr_capability capability)
{
	return kr_policy_has_channel(b->policy) ||
		   (capability != KR_CAP_PERMISSION_HOOK && capability != KR_CAP_MCP_CONFIG);
}

static int
add_hook(struct build *b, const struct kr_cap *cap)
{
	const struct filling with = { .key = b->want->hook_key, .hash = b->want->hook_hash };

	if (add_words(b, &cap->args, &with, &b->argv) < 0)
		return -1;
	return with.key && with.hash ? add_words(b, &cap->trust, &with, &b->argv) : 0;
}

/* The list that a capability tells; NULL: there is nothing to tell. An empty list is told too. */
static const struct kr_strs *
list_of(const struct build *b, enum kr_capability capability)
{
	switch (capability) {
	case KR_CAP_DENY_TOOLS:
		return b->denied.n ? &b->denied : NULL;
	case KR_CAP_ALLOWED_TOOLS:
	case KR_CAP_RESTRICT_TOOLS:
		return b->policy->has_allowed_tools ? &b->offered : NULL;
	case KR_CAP_ASK_TOOLS:
		return b->asked.n ? &b->asked : NULL;
	default:
		return NULL;
	}
}

static bool
is_list(enum kr_capability capability)
{
	return capability == KR_CAP_DENY_TOOLS || capability == KR_CAP_ALLOWED_TOOLS ||
		   capability == KR_CAP_RESTRICT_TOOLS || capability == KR_CAP_ASK_TOOLS;
}

/* NULL: the capability's words are left out. */
static const char *
value_of(const struct build *b, enum kr_capability capability)
{
	switch (capability) {
	case KR_CAP_PROMPT:
		return b->want->prompt;
	case KR_CAP_CONTEXT:
		return *b->want->context ? b->want->context : NULL;
	case KR_CAP_MCP_CONFIG:
		return SERVER;
	case KR_CAP_RESUME:
		return b->want->resume;
	case KR_CAP_STRUCTURED_LOG:
	case KR_CAP_APPROVAL_CHANNEL:
		return ""; /* they have words only */
	default:
		return option_of(b, capability);
	}
}

static int
add_cap(struct build *b, const struct kr_cap *cap)
{
	struct filling with = { 0 };

	if (cap->kind == KR_CAP_PERMISSION_HOOK)
		return add_hook(b, cap);
	if (is_list(cap->kind)) {
		with.list = list_of(b, cap->kind);
		/* The file of rules is always there, and so are the words that name it. */
		return with.list || cap->via == KR_VIA_RULES ? add_words(b, &cap->args, &with, &b->argv) : 0;
	}
	with.value = value_of(b, cap->kind);
	if (!with.value)
		return 0;
	return cap->kind == KR_CAP_PROMPT ? add_prompt(b, cap, &with) : add_words(b, &cap->args, &with, &b->argv);
}

static int
add_argv(struct build *b)
{
	const struct kr_cap *resume = b->want->resume ? cap_of(b, KR_CAP_RESUME) : NULL;
	const struct filling with = { .value = b->want->resume };

	kr_strs_add(b->arena, &b->argv, b->harness->command);
	if (add_words(
			b, resume && resume->command.n ? &resume->command : &b->harness->subcommand, &with, &b->argv) < 0)
		return -1;
	for (size_t i = 0; i < b->harness->cap_count; i++)
		if (is_said(b, b->harness->caps[i].kind) && add_cap(b, &b->harness->caps[i]) < 0)
			return -1;
	for (size_t i = 0; i < b->last.n; i++)
		kr_strs_add(b->arena, &b->argv, b->last.v[i]);
	return 0;
}

/* ---- all of it ---- */

static const char *
led_by_context(const struct build *b)
{
	if (!goes_by(b, KR_CAP_CONTEXT, KR_VIA_PROMPT) || !*b->want->context)
		return b->want->prompt;
	return kr_arena_printf(b->arena, "%s\n\n%s", b->want->context, b->want->prompt);
}

static void
add_env(struct build *b, struct kr_agent_launch *out)
{
	static const struct filling nothing = { 0 };

	out->env = kr_arena_alloc(b->arena, (b->harness->env_count + KR_RULES_ENV) * sizeof(*out->env));
	for (size_t i = 0; i < b->harness->env_count; i++) {
		out->env[i] = b->harness->env[i];
		out->env[i].value = fill(b, b->harness->env[i].value, &nothing);
		KR_BUG_IF(!out->env[i].value); /* a file is far shorter than the most */
	}
	out->env_count = b->harness->env_count;
}

int
kr_agent_launch(struct kr_arena *arena, const struct kr_agent_want *want, struct kr_agent_launch *out,
	struct kr_error *err)
{
	struct kr_agent_want own = *want;
	struct build b = {
		.arena = arena, .want = &own, .harness = want->harness, .policy = want->policy, .err = err
	};
	struct kr_agent_launch launch = { 0 };

	own.prompt = led_by_context(&b);
	if (check_all(&b) < 0 || add_argv(&b) < 0)
		return -1;
	launch.argv = b.argv;
	launch.input = goes_by(&b, KR_CAP_PROMPT, KR_VIA_STDIN) ? own.prompt : NULL;
	add_env(&b, &launch);
	if (b.harness->rules && kr_agent_rules(arena, b.harness, b.policy, &b.denied, &launch, err) < 0)
		return -1;
	*out = launch;
	return 0;
}
