/* agent: what codex's app server says of its hooks, read by a process without power, and what of it is relied
 * on (CHN-08). */
#include <setjmp.h>
#include <stdarg.h>

#include <jansson.h>

#include "agent/hook_list.h"
#include "base/buf.h"
#include "base/text.h"
#include "os/powerless.h"

#include <cmocka.h>

#define COMMAND "/opt/kraft/bin/kraft admin permission-hook codex"
#define KEY "/<session-flags>/config.toml:pre_tool_use:0:0"
#define HASH "sha256:50a34000306de190b241a3aafbc9ce9d08765bffeac4ae642e0df7aeb6f1ad27"

/* As codex 0.171.0 prints it. */
#define HELLO                                                                                           \
	"{\"id\":1,\"result\":{\"userAgent\":\"kraft/0.171.0 (Debian 12.0.0; x86_64) unknown (kraft; 1)\"," \
	"\"codexHome\":\"/home/x/.codex\",\"platformFamily\":\"unix\",\"platformOs\":\"linux\"}}\n"         \
	"{\"method\":\"remoteControl/status/"                                                               \
	"changed\",\"params\":{\"status\":\"disabled\",\"serverName\":\"vm\"},"                             \
	"\"emittedAtMs\":1796049396836}\n"
#define HOOK(event, command, more)                                                                        \
	"{\"key\":\"" KEY "\",\"eventName\":\"" event "\",\"handlerType\":\"command\",\"command\":\"" command \
	"\",\"timeoutSec\":86400,\"sourcePath\":\"/<session-flags>/"                                          \
	"config.toml\",\"source\":\"sessionFlags\"," more ",\"isManaged\":false}"
#define GOOD "\"async\":false,\"matcher\":\"*\",\"enabled\":true,\"currentHash\":\"" HASH "\""
#define UNTRUSTED GOOD ",\"trustStatus\":\"untrusted\""
#define TRUSTED GOOD ",\"trustStatus\":\"trusted\""
#define LIST(hooks, errors)                                              \
	"{\"id\":2,\"result\":{\"data\":[{\"cwd\":\"/wt\",\"hooks\":[" hooks \
	"],\"warnings\":[],\"errors\":[" errors "]}]}}\n"
#define OTHER \
	"{\"key\":\"k\",\"eventName\":\"preToolUse\",\"command\":\"/x/allow\",\"source\":\"user\"," UNTRUSTED "}"

static struct kr_hook_list
read_text(const char *text)
{
	struct kr_error err = { 0 };
	struct kr_hook_list list;

	json_object_seed(0); /* it would open a file for that */
	if (kr_powerless_parse(kr_hook_list_parse, text, strlen(text), &list, sizeof(list), &err) < 0)
		fail_msg("%s", err.message);
	kr_hook_list_check(&list);
	return list;
}

static const struct kr_hook known = { .key = KEY, .hash = HASH };

static void
the_list_of_codex_0_171_names_our_hook_CHN_08(void **state)
{
	struct kr_hook_list list = read_text(HELLO LIST(HOOK("preToolUse", COMMAND, UNTRUSTED), ""));
	struct kr_error err = { 0 };
	const struct kr_hook *ours = kr_hook_list_find(&list, "codex", COMMAND, NULL, &err);

	(void)state;
	assert_non_null(ours);
	assert_string_equal(ours->key, KEY);
	assert_string_equal(ours->hash, HASH);
	assert_string_equal(list.version, "0.171.0");
	assert_null(kr_hook_list_find(&list, "codex", COMMAND, &known, &err));
	assert_string_equal(err.message, "codex 0.171.0 lists kraft's hook as 'untrusted'");
	list = read_text(HELLO LIST(HOOK("preToolUse", COMMAND, TRUSTED), ""));
	assert_non_null(kr_hook_list_find(&list, "codex", COMMAND, &known, &err));
	/* a hook that is asked at another time, and one before a tool that is switched off, are no second ones */
	list = read_text(HELLO LIST(HOOK("preToolUse", COMMAND, TRUSTED) "," HOOK("sessionStart", "/x/y",
									UNTRUSTED) "," HOOK("preToolUse", "/x/y", "\"enabled\":false"),
		""));
	assert_non_null(kr_hook_list_find(&list, "codex", COMMAND, &known, &err));
}

#define LONG "0123456789012345678901234567890123456789012345678901234567890123456789"
#define TOO_LONG LONG LONG LONG LONG

static void
each_way_of_not_being_relied_on_is_refused_by_its_own_sentence_CHN_08(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "", "codex does not say which hooks it has" },
		{ "garbage\n{\"id\":2}\n[]\n2\n\"id\"\n{\"id\":\"2\"}\n", "codex does not say which hooks it has" },
		{ HELLO, "codex 0.171.0 does not say which hooks it has" },
		{ HELLO "{\"id\":2,\"error\":{\"code\":-32601,\"message\":\"no such\\nmethod\"}}\n",
			"codex 0.171.0 cannot say which hooks it has: 'no such method'" },
		{ HELLO "{\"id\":2,\"error\":7}\n",
			"codex 0.171.0 cannot say which hooks it has: 'an error without words'" },
		{ HELLO "{\"id\":2,\"result\":{\"data\":[]}}\n", "codex 0.171.0 does not say which hooks it has" },
		{ HELLO "{\"id\":2,\"result\":{\"data\":[{\"hooks\":[]}]}}\n",
			"codex 0.171.0 does not say which hooks it has" },
		{ HELLO LIST("", ""), "codex 0.171.0 does not list kraft's hook" },
		{ HELLO LIST("1,null,[]", ""), "codex 0.171.0 would ask a second hook before a tool: '' of ''" },
		{ HELLO LIST(HOOK("preToolUse", COMMAND, TRUSTED), "{\"path\":\"/wt\",\"message\":\"bad file\"}"),
			"codex 0.171.0 cannot say which hooks it has: 'bad file'" },
		{ HELLO LIST(HOOK("preToolUse", COMMAND, TRUSTED), "\"bad\""),
			"codex 0.171.0 cannot say which hooks it has: 'bad'" },
		{ HELLO LIST(HOOK("preToolUse", COMMAND, TRUSTED) "," OTHER, ""),
			"codex 0.171.0 would ask a second hook before a tool: '/x/allow' of 'user'" },
		{ HELLO LIST(OTHER "," HOOK("preToolUse", COMMAND, TRUSTED), ""),
			"codex 0.171.0 would ask a second hook before a tool: '/x/allow' of 'user'" },
		{ HELLO LIST(HOOK("preToolUse", COMMAND, TRUSTED) "," HOOK("preToolUse", COMMAND, TRUSTED), ""),
			"codex 0.171.0 would ask a second hook before a tool: '" COMMAND "' of 'sessionFlags'" },
		{ HELLO LIST(HOOK("preToolUse", "/opt/kraft/bin/kraft admin permission-hook cursor", TRUSTED), ""),
			"codex 0.171.0 would ask a second hook before a tool: '/opt/kraft/bin/kraft admin "
			"permission-hook cursor' of "
			"'sessionFlags'" },
		{ HELLO LIST(HOOK("postToolUse", COMMAND, TRUSTED), ""), "codex 0.171.0 does not list kraft's hook" },
		{ HELLO LIST(HOOK("preToolUse", COMMAND,
						 "\"async\":false,\"matcher\":\"*\",\"enabled\":false,\"currentHash\":\"" HASH
						 "\",\"trustStatus\":\"trusted\""),
			  ""),
			"codex 0.171.0 would not ask kraft's hook before every tool" },
		{ HELLO LIST(HOOK("preToolUse", COMMAND,
						 "\"async\":true,\"matcher\":\"*\",\"enabled\":true,\"currentHash\":\"" HASH
						 "\",\"trustStatus\":\"trusted\""),
			  ""),
			"codex 0.171.0 would not ask kraft's hook before every tool" },
		{ HELLO LIST(HOOK("preToolUse", COMMAND,
						 "\"async\":false,\"matcher\":\"Bash\",\"enabled\":true,\"currentHash\":\"" HASH
						 "\",\"trustStatus\":\"trusted\""),
			  ""),
			"codex 0.171.0 would not ask kraft's hook before every tool" },
		{ HELLO LIST(HOOK("preToolUse", COMMAND,
						 "\"async\":false,\"enabled\":true,\"currentHash\":\"sha256:a\\\"b\""),
			  ""),
			"codex 0.171.0 gives kraft's hook a key or a hash that cannot be used: '" KEY "'" },
		{ HELLO LIST(HOOK("preToolUse", COMMAND,
						 "\"async\":false,\"enabled\":true,\"currentHash\":\"" TOO_LONG "\""),
			  ""),
			"codex 0.171.0 gives kraft's hook a key or a hash that cannot be used: '" KEY "'" },
		{ HELLO LIST("{\"key\":\"a\\\"b\",\"eventName\":\"preToolUse\",\"command\":\"" COMMAND "\"," TRUSTED
					 "}",
			  ""),
			"codex 0.171.0 gives kraft's hook a key or a hash that cannot be used: 'a\"b'" },
		{ HELLO LIST(HOOK("preToolUse", COMMAND, GOOD ",\"trustStatus\":\"modified\""), ""),
			"codex 0.171.0 lists kraft's hook as 'modified'" },
		{ HELLO LIST(HOOK("preToolUse", COMMAND, GOOD), ""), "codex 0.171.0 lists kraft's hook as ''" },
		{ HELLO LIST(HOOK("preToolUse", COMMAND,
						 "\"async\":false,\"enabled\":true,\"currentHash\":\"sha256:0\",\"trustStatus\":"
						 "\"trusted\""),
			  ""),
			"codex 0.171.0 names another hash of kraft's hook each time: '" HASH "', then 'sha256:0'" },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_hook_list list = read_text(cases[i].text);
		struct kr_error err = { 0 };

		if (kr_hook_list_find(&list, "codex", COMMAND, &known, &err) || err.code != KR_E_REFUSED ||
			!err.hint[0] || strcmp(err.message, cases[i].message) != 0)
			fail_msg("%zu: '%s', not '%s'", i, err.message, cases[i].message);
	}
}

static void
more_hooks_than_are_kept_are_refused(void **state)
{
	kr_auto_buf struct kr_buf text = KR_BUF(64 << 10);
	struct kr_error err = { 0 };
	struct kr_hook_list list;

	(void)state;
	kr_buf_addf(&text, "%s", "{\"id\":2,\"result\":{\"data\":[{\"errors\":[],\"hooks\":[");
	for (int i = 0; i < KR_HOOKS_MAX + 1; i++)
		kr_buf_addf(&text, "%s%s", i ? "," : "",
			i ? HOOK("stop", "/x", "\"enabled\":true") : HOOK("preToolUse", COMMAND, TRUSTED));
	kr_buf_addf(&text, "]}]}}");
	list = read_text(text.data);
	assert_int_equal(list.count, KR_HOOKS_MAX + 1);
	assert_null(kr_hook_list_find(&list, "codex", COMMAND, &known, &err));
	assert_string_equal(err.message, "codex has 17 hooks, more than can be looked at");
}

static void
what_comes_back_from_the_parser_is_checked_again(void **state)
{
	struct kr_hook_list list;

	(void)state;
	memset(&list, 'x', sizeof(list));
	memset(list.hooks[0].key, 0xff, sizeof(list.hooks[0].key));
	kr_hook_list_check(&list);
	assert_int_equal(strlen(list.version), sizeof(list.version) - 1);
	assert_string_equal(list.hooks[0].key, "");
	assert_int_equal(strlen(list.hooks[KR_HOOKS_MAX - 1].matcher), KR_HOOK_TEXT - 1);
}

static void
the_question_is_one_message_a_line(void **state)
{
	struct kr_arena arena = { 0 };

	(void)state;
	assert_string_equal(kr_hook_list_question(&arena, "/w/a \"b\""),
		"{\"id\":1,\"method\":\"initialize\",\"params\":{\"clientInfo\":{\"name\":\"kraft\",\"title\":"
		"\"kraft\",\"version\":"
		"\"1\"}}}\n{\"method\":\"initialized\"}\n{\"id\":2,\"method\":\"hooks/"
		"list\",\"params\":{\"cwds\":[\"/w/a "
		"\\\"b\\\"\"]}}\n");
	kr_arena_fini(&arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_list_of_codex_0_171_names_our_hook_CHN_08),
		cmocka_unit_test(each_way_of_not_being_relied_on_is_refused_by_its_own_sentence_CHN_08),
		cmocka_unit_test(more_hooks_than_are_kept_are_refused),
		cmocka_unit_test(what_comes_back_from_the_parser_is_checked_again),
		cmocka_unit_test(the_question_is_one_message_a_line),
	};

	return cmocka_run_group_tests_name("hook_list", tests, NULL, NULL);
}
