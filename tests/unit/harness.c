/* config: harnesses. What is read, every mistake with its place, the shipped ones, and what harnesses.yaml
 * says. */
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "config/harness.h"
#include "config/schema.h"

#include <cmocka.h>
#include <fcntl.h>

static const struct kr_places places = {
	.home = "/home/you",
	.kraft_home = "/home/you/.kraft",
	.run_dir = "/home/you/.kraft/run",
	.config_dir = "/home/you/.kraft/config",
};

#define TOP "id: x\nkind: cli\ncommand: x\n"
#define CAPS TOP "capabilities:\n  usage: {reader: none}\n  context: {via: prompt}\n"
#define LEAST CAPS "  prompt: {via: stdin}\n"

/* ---- what is read ---- */

static void
parse(struct kr_arena *arena, const char *id, const char *text, struct kr_harness *out)
{
	struct kr_error err = { 0 };

	if (kr_harness_parse(arena, &places, "f.yaml", id, text, strlen(text), out, &err) < 0)
		fail_msg("%u:%u: %s", err.place.line, err.place.column, err.message);
}

static void
the_least_is_taken(void **state)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_harness harness;

	(void)state;
	parse(&arena, "x", LEAST, &harness);
	assert_string_equal(harness.provider, "x");
	assert_string_equal(harness.text, LEAST);
	assert_int_equal(harness.version.n, 1);
	assert_string_equal(harness.version.v[0], "--version");
	assert_true(harness.proxy_aware && harness.enabled);
	assert_null(harness.min_version);
	assert_int_equal(harness.reader, KR_READER_NONE);
	assert_null(kr_harness_cap(&harness, KR_CAP_MODEL));
	assert_int_equal(kr_harness_cap(&harness, KR_CAP_CONTEXT)->via, KR_VIA_PROMPT);
}

static const char whole[] =
	"id: whole\nkind: cli\ncommand: ~/bin/agent\nsubcommand: [go]\nversion: [version, --short]\nmin_version: "
	"'1.20'\n"
	"capabilities:\n"
	"  model: {args: ['--model={value}'], values: [a, b]}\n"
	"  prompt: {args: [-p, '{value}']}\n"
	"  context: {args: [--tell, '{json}']}\n"
	"  usage: {reader: codex}\n"
	"  permission_mode: {args: ['{value}'], always: m, under_allowlist: n, values: [m, n, o]}\n"
	"  deny_tools: {via: hook, also: [Odd]}\n"
	"  ask_tools: {via: hook, under_policy: [Read]}\n"
	"  permission_hook: {args: ['{\"a\":{b={command}}'], trust: ['{key}={hash}']}\n"
	"  resume: {command: [on, '{value}']}\n"
	"permission_hook: cursor\nunhooked_tools: [Web]\ntool_names: {sh: [Bash], patch: [Write, Edit]}\n"
	"container_permission_mode: o\nproxy_aware: false\nlogin: [A_KEY]\nenv: {A: '1', B: '{settings}/b'}\n"
	"network: {requires: [a.example, '*.b.example:8443']}\nconfig_dir: {env: A_HOME, keep: [talks]}\n";

static void
a_harness_is_read_whole(void **state)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const struct kr_cap *cap;
	struct kr_harness harness;

	(void)state;
	parse(&arena, NULL, whole, &harness);
	assert_string_equal(harness.command, "/home/you/bin/agent");
	assert_string_equal(harness.subcommand.v[0], "go");
	assert_int_equal(harness.version.n, 2);
	assert_string_equal(harness.min_version, "1.20");
	assert_int_equal(harness.cap_count, 9);
	assert_int_equal(harness.caps[0].kind, KR_CAP_MODEL); /* in order of declaration */
	assert_int_equal(harness.caps[8].kind, KR_CAP_RESUME);
	assert_int_equal(harness.reader, KR_READER_CODEX);
	cap = kr_harness_cap(&harness, KR_CAP_DENY_TOOLS);
	assert_int_equal(cap->via, KR_VIA_HOOK);
	assert_string_equal(cap->also.v[0], "Odd");
	assert_string_equal(kr_harness_cap(&harness, KR_CAP_ASK_TOOLS)->under_policy.v[0], "Read");
	cap = kr_harness_cap(&harness, KR_CAP_PERMISSION_MODE);
	assert_string_equal(cap->always, "m");
	assert_string_equal(cap->under_allowlist, "n");
	assert_int_equal(cap->values.n, 3);
	assert_int_equal(kr_harness_cap(&harness, KR_CAP_PERMISSION_HOOK)->trust.n, 1);
	assert_string_equal(harness.hook, "cursor");
	assert_string_equal(harness.unhooked.v[0], "Web");
	assert_int_equal(harness.tool_count, 2);
	assert_string_equal(harness.tools[1].policy.v[1], "Edit");
	assert_string_equal(harness.container_permission_mode, "o");
	assert_false(harness.proxy_aware);
	assert_string_equal(harness.login.v[0], "A_KEY");
	assert_int_equal(harness.env_count, 2);
	assert_string_equal(harness.hosts.v[1], "*.b.example:8443");
	assert_string_equal(harness.config_env, "A_HOME");
	assert_string_equal(harness.config_keep.v[0], "talks");
}

static void
placeholders_are_found_among_other_braces(void **state)
{
	enum kr_placeholder which;
	size_t n;
	const char *at = kr_placeholder_find("{a=1}{\"x\":{json}} {}", &which, &n);

	(void)state;
	assert_string_equal(at, "{json}} {}");
	assert_int_equal(which, KR_PLACEHOLDER_JSON);
	assert_int_equal(n, 6);
	assert_null(kr_placeholder_find(at + n, &which, &n));
	assert_non_null(kr_placeholder_find("{what_ever}", &which, &n));
	assert_int_equal(which, KR_PLACEHOLDER_COUNT);
	assert_null(kr_placeholder_find("{Value} { value } {value", &which, &n));
}

/* ---- mistakes ---- */

static const struct mistake {
	const char *text;
	unsigned line, column;
	const char *message, *hint;
} mistakes[] = {
	{ "", 1, 1, "the file is empty", "begin it with 'id:'" },
	{ TOP, 1, 1, "'capabilities' is missing in the harness", "what it can be told" },
	{ "id: x\nkind: gui\n", 2, 7, "'gui' of 'kind' is no kind of harness that this kraft starts", "cli" },
	{ "id: y\nkind: cli\ncommand: x\ncapabilities: {prompt: {via: stdin}, usage: {reader: none}, context: "
	  "{via: prompt}}\n",
		1, 5, "the harness 'y' stands in the file of 'x'", "the file's name" },
	{ "id: x\nkind: cli\ncommand: bin/x\n", 3, 10, "depends on where kraft is called", "absolute path" },
	{ "id: x\nkind: cli\ncommand: ~/.kraft/run/x\n", 3, 10, "lies where workers write", "another program" },
	{ CAPS, 5, 3, "'prompt' is missing in 'capabilities'", "how it gets what it is to do" },
	{ LEAST "  prompt: {via: stdin}\n", 8, 3, "twice", "" },
	{ LEAST "  modle: {args: ['{value}']}\n", 8, 3, "unknown key 'modle' in 'capabilities'", "'model'" },
	{ LEAST "  model: {arg: ['{value}']}\n", 8, 11, "unknown key 'arg' in a capability", "'args'" },
	{ LEAST "  model: {trust: [x]}\n", 8, 11, "'model' takes no trust", "'model' takes args, values" },
	{ LEAST "  autocompact: {}\n", 8, 3, "'autocompact' is not built into this kraft", "take the key away" },
	{ LEAST "credentials: [{env: A_KEY}]\n", 8, 15, "'inject' is missing in an entry of 'credentials'", "domain, header, format" },
	{ LEAST "credentials: [{env: A_KEY, inject: []}]\n", 8, 15, "the credential 'A_KEY' says of no host that it goes there", "" },
	{ LEAST "credentials: [{env: A_KEY, sentinel: 'a b', inject: []}]\n", 8, 38, "'sentinel' holds a blank", "" },
	{ LEAST "config_dir: {keep: [a]}\n", 8, 13, "'env' is missing in 'config_dir'", "names the directory" },
	{ LEAST "config_dir: {env: A, keep: [../a]}\n", 8, 29, "is not the name of a directory in it", "" },
	{ LEAST "args: [x]\n", 8, 1, "unknown key 'args' in the harness", "'args' belongs inside a capability" },
	{ LEAST "  model: {args: []}\n", 8, 10, "'model' has no 'args', so nobody would be told", "" },
	{ LEAST "  model: {args: [--model]}\n", 8, 17,
		"the 'args' of 'model' hold nothing that stands for its value", "{value}" },
	{ LEAST "  deny_tools: {args: ['{value}']}\n", 8, 23, "nothing stands for '{value}' here",
		"kraft-harness(5)" },
	{ LEAST "  deny_tools: {args: [no]}\n", 8, 22, "hold nothing that stands for its value", "{csv}" },
	{ LEAST "  model: {args: ['{vlaue}']}\n", 8, 18, "nothing stands for '{vlaue}' here", "" },
	{ LEAST "  structured_log: {args: ['{value}']}\n", 8, 27, "nothing stands for '{value}' here", "" },
	{ CAPS "  prompt: {via: stdin, args: ['{value}']}\n", 7, 31, "nothing stands for '{value}' here", "" },
	{ CAPS "  prompt: {via: hook}\n", 7, 17, "'hook' is no way for 'prompt'", "via: args, stdin" },
	{ CAPS "  prompt: {args: [x]}\n", 7, 18, "hold nothing that stands for its value", "{value}" },
	{ LEAST "  deny_tools: {via: hook}\n", 8, 21,
		"'deny_tools' goes by 'permission_hook', and the harness has none", "at the top" },
	{ LEAST "  allowed_tools: {via: rules}\n", 8, 24, "'allowed_tools' goes by 'permission_rules'",
		"at the top" },
	{ LEAST "  deny_tools: {via: hook, args: ['{csv}']}\n", 8, 34, "nothing stands for '{csv}' here", "" },
	{ LEAST "  deny_tools: {via: hook, args: [x]}\n", 8, 33, "'deny_tools' goes another way",
		"take 'args' away" },
	{ LEAST "permission_hook: codex\n", 8, 1, "'permission_hook' is not among the capabilities",
		"write the words" },
	{ LEAST "permission_hook: claude\n", 8, 18, "is no hook that kraft answers", "codex or cursor" },
	{ LEAST "permission_rules: codex\n", 8, 19, "is no form of rules that kraft writes", "amp or opencode" },
	{ LEAST "  permission_hook: {args: ['{command}']}\n", 8, 3, "no hook is named that kraft answers",
		"at the top" },
	{ LEAST "  permission_hook: {args: [x]}\n", 8, 27, "hold nothing that stands for its value",
		"{command}" },
	{ LEAST "  permission_hook: {args: ['{command}'], trust: ['{key}']}\npermission_hook: codex\n", 8, 49,
		"'trust' must hold {key} and {hash}", "" },
	{ LEAST "unhooked_tools: [Web]\n", 8, 1, "'unhooked_tools' is without effect", "" },
	{ LEAST "  ask_tools: {args: ['{csv}']}\n", 8, 3, "'ask_tools' lacks 'approval_channel'",
		"nobody to ask" },
	{ LEAST "  approval_channel: {args: [x]}\n", 8, 3, "'approval_channel' lacks 'mcp_config'",
		"its server" },
	{ LEAST "  resume: {args: ['{value}'], command: ['{value}']}\n", 8, 31, "exclude each other", "" },
	{ LEAST "  resume: {command: [on]}\n", 8, 21, "nothing that stands for the conversation", "{value}" },
	{ LEAST "  resume: {}\n", 8, 11, "'resume' has no 'args'", "" },
	{ LEAST "  permission_mode: {args: ['{value}'], always: m, values: [n]}\n", 8, 48,
		"'m' of 'always' is not among its 'values'", "" },
	{ LEAST "container_permission_mode: m\n", 8, 1, "lacks the capability 'permission_mode'", "" },
	{ LEAST "  permission_mode: {args: ['{value}'], values: [n]}\ncontainer_permission_mode: m\n", 9, 28,
		"'m' is not among the values of 'permission_mode'", "" },
	{ LEAST "min_version: '2'\n", 8, 14, "is no version, such as 2.1.0", "older one is refused" },
	{ LEAST "min_version: '2.x'\n", 8, 14, "is no version", "" },
	{ LEAST "min_version: '2.1.'\n", 8, 14, "is no version", "" },
	{ LEAST "min_version: 2.1\n", 8, 14, "must be a string", "quotes" },
	{ LEAST "  deny_tools: {args: ['{csv}'], also: ['Bash(x)']}\n", 8, 40, "is not a bare tool name", "" },
	{ LEAST "tool_names: {sh: []}\n", 8, 18, "'sh' is empty", "" },
	{ LEAST "tool_names: {sh: Bash}\n", 8, 18, "'sh' must be a list of strings", "[Bash]" },
	{ LEAST "tool_names: {sh: ['a*']}\n", 8, 19, "is not a bare tool name", "" },
	{ LEAST "env: {'1A': x}\n", 8, 7, "'1A' in 'env' is not the name of a variable", "" },
	{ LEAST "env: {A: 1}\n", 8, 10, "'A' must be a string", "quotes" },
	{ LEAST "env: {A: '{value}'}\n", 8, 10, "nothing stands for '{value}' here", "" },
	{ LEAST "network: {requires: ['**']}\n", 8, 22, "is every host", "" },
	{ LEAST "network: {requires: ['a b']}\n", 8, 22, "is no host of a network list", "" },
	{ LEAST "network: {runtime: {}}\n", 8, 11, "unknown key 'runtime' in 'network'", "requires" },
	{ LEAST "login: ['A KEY']\n", 8, 9, "is not the name of a variable", "" },
	{ CAPS "  prompt: {via: stdin}\n  usage: {}\n", 8, 3, "twice", "" },
	{ TOP "capabilities: {prompt: {via: stdin}, context: {via: prompt}, usage: {reader: gemini}}\n", 4, 78,
		"'gemini' is no output that kraft can read", "claude, codex or none" },
};

static bool
is_told(const struct mistake *m)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_harness harness = { .cap_count = 77 };
	struct kr_error err = { 0 };

	if (kr_harness_parse(&arena, &places, "f.yaml", "x", m->text, strlen(m->text), &harness, &err) == 0)
		return print_error("# loads: %s\n", m->text), false;
	assert_int_equal(harness.cap_count, 77);
	assert_int_equal(err.code, KR_E_CONFIG);
	assert_string_equal(err.place.path, "f.yaml");
	if (!strstr(err.message, m->message) || !strstr(err.hint, m->hint) || err.place.line != m->line ||
		err.place.column != m->column)
		return print_error("# %s\n# got %u:%u: %s\n# hint: %s\n", m->text, err.place.line, err.place.column,
				   err.message, err.hint),
			   false;
	return true;
}

static void
each_mistake_has_its_place_CFG_11(void **state)
{
	unsigned failed = 0;

	(void)state;
	for (size_t i = 0; i < KR_COUNT(mistakes); i++)
		failed += !is_told(&mistakes[i]);
	assert_int_equal(failed, 0);
}

/* ---- where they lie ---- */

struct place {
	char home[64], config[80];
	struct kr_places places;
};

static void
make_place(struct place *p)
{
	snprintf(p->home, sizeof(p->home), "/tmp/kraft-harness.XXXXXX");
	assert_non_null(mkdtemp(p->home));
	snprintf(p->config, sizeof(p->config), "%s/config", p->home);
	p->places = (struct kr_places){
		.home = p->home, .kraft_home = p->home, .run_dir = p->home, .config_dir = p->config
	};
	assert_int_equal(mkdir(p->config, 0700), 0);
}

static void
write_file(const struct place *p, const char *name, const char *text)
{
	struct kr_error err = { 0 };
	char path[160];

	snprintf(path, sizeof(path), "%s/harnesses", p->config);
	(void)mkdir(path, 0700); /* it may be there */
	snprintf(path, sizeof(path), "%s/%s", p->config, name);
	assert_int_equal(kr_file_write_at(AT_FDCWD, path, text, strlen(text), 0600, &err), 0);
}

static void
remove_place(const struct place *p)
{
	assert_int_equal(kr_tree_remove_at(AT_FDCWD, p->home), 0);
}

static void
seven_come_with_kraft_and_load(void **state)
{
	static const char *const shipped[] = { "amp", "antigravity", "claude", "codex", "cursor", "gemini",
		"opencode" };
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_error err = { 0 };
	struct kr_strs ids = { 0 };
	struct place p;

	(void)state;
	make_place(&p);
	assert_int_equal(kr_harness_ids(&arena, &p.places, &ids, &err), 0);
	assert_int_equal(ids.n, KR_COUNT(shipped));
	for (size_t i = 0; i < ids.n; i++) {
		struct kr_harness harness;

		assert_string_equal(ids.v[i], shipped[i]);
		if (kr_harness_load(&arena, &p.places, ids.v[i], &harness, &err) < 0)
			fail_msg("%s:%u:%u: %s", ids.v[i], err.place.line, err.place.column, err.message);
		assert_string_equal(harness.file, "kraft's own");
		assert_true(harness.enabled);
	}
	remove_place(&p);
}

static void
a_file_takes_the_shipped_ones_place_whole(void **state)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_harness harness = { 0 };
	struct kr_error err = { 0 };
	struct place p;

	(void)state;
	make_place(&p);
	write_file(&p, "harnesses/claude.yaml",
		"id: claude\nkind: cli\ncommand: mine\ncapabilities: {prompt: {via: stdin}, context: {via: prompt}, "
		"usage: "
		"{reader: none}}\n");
	assert_int_equal(kr_harness_load(&arena, &p.places, "claude", &harness, &err), 0);
	assert_string_equal(harness.command, "mine");
	assert_int_equal(harness.hosts.n + harness.env_count, 0);
	assert_non_null(strstr(harness.file, "/config/harnesses/claude.yaml"));
	assert_int_equal(kr_harness_load(&arena, &p.places, "nope", &harness, &err), -1);
	assert_int_equal(err.code, KR_E_NOT_FOUND);
	assert_string_equal(err.message, "there is no harness 'nope'");
	assert_non_null(strstr(err.hint, "the harnesses are amp, antigravity, claude"));
	assert_int_equal(kr_harness_load(&arena, &p.places, "../harnesses/claude", &harness, &err), -1);
	assert_int_equal(err.code, KR_E_NOT_FOUND);
	remove_place(&p);
}

static void
harnesses_yaml_says_what_holds_on_this_host(void **state)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_harness harness = { 0 };
	struct kr_error err = { 0 };
	struct kr_strs ids = { 0 };
	struct place p;

	(void)state;
	make_place(&p);
	write_file(&p, "harnesses.yaml",
		"harnesses:\n"
		"  claude: {enabled: false}\n"
		"  claude-work: {provider: claude, executable: /opt/claude/bin/claude,\n"
		"    defaults: {model: m, effort: high, permission_mode: plan}}\n"
		"  lost: {provider: nope}\n");
	assert_int_equal(kr_harness_ids(&arena, &p.places, &ids, &err), 0);
	assert_int_equal(ids.n, 9);
	assert_string_equal(ids.v[3], "claude-work");
	assert_int_equal(kr_harness_load(&arena, &p.places, "claude", &harness, &err), 0);
	assert_false(harness.enabled);
	assert_string_equal(harness.command, "claude");
	assert_int_equal(kr_harness_load(&arena, &p.places, "claude-work", &harness, &err), 0);
	assert_true(harness.enabled);
	assert_string_equal(harness.id, "claude-work");
	assert_string_equal(harness.provider, "claude");
	assert_string_equal(harness.command, "/opt/claude/bin/claude");
	assert_string_equal(harness.model, "m");
	assert_string_equal(harness.effort, "high");
	assert_string_equal(harness.permission_mode, "plan");
	assert_int_equal(kr_harness_load(&arena, &p.places, "codex", &harness, &err), 0);
	assert_true(harness.enabled);
	assert_int_equal(kr_harness_load(&arena, &p.places, "lost", &harness, &err), -1);
	assert_int_equal(err.code, KR_E_CONFIG);
	assert_int_equal(err.place.line, 5);
	assert_non_null(strstr(err.message, "'nope' of 'provider' is no harness file"));
	remove_place(&p);
}

/* One that is wrong may have been meant to switch something off. */
static void
a_wrong_harnesses_yaml_starts_nothing(void **state)
{
	static const struct {
		const char *text;
		unsigned line, column;
		const char *message;
	} cases[] = {
		{ "harnesses: [claude]\n", 1, 12, "'harnesses' must be a mapping" },
		{ "harness: {}\n", 1, 1, "unknown key 'harness' in the file" },
		{ "harnesses: {claude: off}\n", 1, 21, "'claude' must be a mapping" },
		{ "harnesses: {Claude: {}}\n", 1, 13, "'Claude' in 'harnesses' is not an id" },
		{ "harnesses: {claude: {enabled: no}}\n", 1, 31, "'enabled' must be true or false" },
		{ "harnesses: {claude: {fallback: [codex]}}\n", 1, 22, "'fallback' is not built into this kraft" },
		{ "harnesses: {claude: {executable: x/y}}\n", 1, 34, "depends on where kraft is called" },
		{ "harnesses: {claude: {defaults: {modle: m}}}\n", 1, 33, "unknown key 'modle'" },
		{ "harnesses: {claude: {model: m}}\n", 1, 22, "unknown key 'model'" },
		{ "- a\n", 1, 1, "the file must be a mapping" },
	};
	struct kr_harness harness = { 0 };
	struct place p;

	(void)state;
	make_place(&p);
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		struct kr_error err = { 0 };
		struct kr_strs ids = { 0 };

		write_file(&p, "harnesses.yaml", cases[i].text);
		assert_int_equal(kr_harness_load(&arena, &p.places, "codex", &harness, &err), -1);
		if (!strstr(err.message, cases[i].message) || err.place.line != cases[i].line ||
			err.place.column != cases[i].column)
			fail_msg("%s: got %u:%u: %s", cases[i].text, err.place.line, err.place.column, err.message);
		assert_int_equal(kr_harness_ids(&arena, &p.places, &ids, &err), -1);
		assert_int_equal(
			kr_harnesses_check(&arena, &p.places, "f", cases[i].text, strlen(cases[i].text), NULL), -1);
	}
	write_file(&p, "harnesses.yaml", "# nothing\n");
	{
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };

		assert_int_equal(kr_harness_load(&arena, &p.places, "codex", &harness, NULL), 0);
	}
	remove_place(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_least_is_taken),
		cmocka_unit_test(a_harness_is_read_whole),
		cmocka_unit_test(placeholders_are_found_among_other_braces),
		cmocka_unit_test(each_mistake_has_its_place_CFG_11),
		cmocka_unit_test(seven_come_with_kraft_and_load),
		cmocka_unit_test(a_file_takes_the_shipped_ones_place_whole),
		cmocka_unit_test(harnesses_yaml_says_what_holds_on_this_host),
		cmocka_unit_test(a_wrong_harnesses_yaml_starts_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
