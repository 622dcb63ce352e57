/* notify.yaml: what may stand in it, every mistake with its place, and where it is read. */
#include "repo.h"

#include "config/notify.h"
#include "config/schema.h"

static const struct kr_places places = {
	.home = "/home/you",
	.kraft_home = "/home/you/.kraft",
	.run_dir = "/home/you/.kraft/run",
	.config_dir = "/home/you/.kraft/config",
};

enum {
	GATE = 1 << KR_OCCASION_GATE,
	STOP = 1 << KR_OCCASION_STOP,
	COMPLETE = 1 << KR_OCCASION_COMPLETE,
	QUESTION = 1 << KR_OCCASION_QUESTION,
	USUAL = GATE | STOP | QUESTION
};

static void
good_files_are_read_whole(void **state)
{
	static const struct {
		const char *text, *command, *webhook; /* command: its words, each closed by '|' */
		unsigned on;
	} cases[] = {
		{ "", "", NULL, USUAL },
		{ "null\n", "", NULL, USUAL },
		{ "command: [notify-send, kraft]\n", "notify-send|kraft|", NULL, USUAL },
		{ "command: [~/bin/tell, '', '$x `y`']\n", "/home/you/bin/tell||$x `y`|", NULL, USUAL },
		{ "command: [//opt/./tell]\n", "/opt/tell|", NULL, USUAL },
		{ "command: null\nwebhook: http://127.0.0.1:80\n", "", "http://127.0.0.1:80", USUAL },
		{ "webhook: HTTPS://user:word@hooks.example/a?b=%20&c={d}#e\non: [complete]\n", "",
			"HTTPS://user:word@hooks.example/a?b=%20&c={d}#e", COMPLETE },
		{ "on: [stop, complete, gate, question, stop]\ncommand: [x]\nwebhook: https://h.example\n", "x|",
			"https://h.example", USUAL | COMPLETE },
		{ "on: []\ncommand: [x]\n", "x|", NULL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		struct kr_buf words KR_CLEANUP(kr_buf_fini) = KR_BUF(1000);
		struct kr_error err = { 0 };
		struct kr_notify got;

		if (kr_notify_parse(
				&arena, &places, "notify.yaml", cases[i].text, strlen(cases[i].text), &got, &err) < 0)
			fail_msg("%s: %s", cases[i].text, err.message);
		for (size_t k = 0; k < got.command.n; k++)
			kr_buf_addf(&words, "%s|", got.command.v[k]);
		assert_string_equal(words.data ? words.data : "", cases[i].command);
		assert_string_equal(got.webhook ? got.webhook : "-", cases[i].webhook ? cases[i].webhook : "-");
		assert_int_equal(got.on, cases[i].on);
		assert_true(!got.command.n || got.command.v[got.command.n] == NULL);
	}
}

static void
a_mistake_is_refused_with_its_place(void **state)
{
	static const struct {
		const char *text, *message, *hint; /* parts of them */
		unsigned line, column;
	} cases[] = {
		{ "comand: [x]\n", "unknown key 'comand' in the file", "did you mean 'command'?", 1, 1 },
		{ "command: [x]\nshell: true\n", "unknown key 'shell'", "command, webhook, on", 2, 1 },
		{ "command: x y\n", "'command' must be a list of strings", "[x y]", 1, 10 },
		{ "command: []\n", "'command' is empty", "", 1, 10 },
		{ "command: [x, 3]\n", "an item of 'command' must be a string", "\"3\"", 1, 14 },
		{ "command: ['']\n", "program of 'command' is empty", "", 1, 11 },
		{ "command: [bin/x]\n", "depends on where kraft is called", "absolute", 1, 11 },
		{ "command: [./x]\n", "depends on where kraft is called", "absolute", 1, 11 },
		{ "command: [~you/x]\n", "depends on where kraft is called", "absolute", 1, 11 },
		{ "command: [/home/you/.kraft/run/worktrees/i/x]\n", "lies where workers write",
			"outside of any sandbox", 1, 11 },
		{ "command: [~/.kraft/config/../run/x]\n", "lies where workers write", "outside of any sandbox", 1,
			11 },
		{ "webhook: ftp://h.example/\n", "is no http or https URL", "", 1, 10 },
		{ "webhook: h.example\n", "is no http or https URL", "", 1, 10 },
		{ "webhook: https://\n", "names no host", "", 1, 10 },
		{ "webhook: https:///x\n", "names no host", "", 1, 10 },
		{ "webhook: 'https://h.example/a b'\n", "holds what no URL does", "", 1, 10 },
		{ "webhook: 'https://h.example/a\"b'\n", "holds what no URL does", "", 1, 10 },
		{ "webhook: 'https://h.example/a\\b'\n", "holds what no URL does", "", 1, 10 },
		{ "webhook: \"https://h.example/\\nx\"\n", "holds what no URL does", "", 1, 10 },
		{ "webhook: https://h.example/\xc3\xa4\n", "holds what no URL does", "", 1, 10 },
		{ "command: [x]\non: [gates]\n", "'gates' of 'on' is none of gate, stop, question and complete", "",
			2, 6 },
		{ "command: [x]\non: gate\n", "'on' must be a list of strings", "[gate]", 2, 5 },
		{ "on: [gate]\n", "neither 'command' nor 'webhook'", "begin it with", 1, 1 },
		{ "- x\n", "the file must be a mapping", "command", 1, 1 },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		struct kr_notify got = { .on = 77 };
		struct kr_error err = { 0 };

		assert_int_equal(
			kr_notify_parse(&arena, &places, "notify.yaml", cases[i].text, strlen(cases[i].text), &got, &err),
			-1);
		if (!strstr(err.message, cases[i].message) || !strstr(err.hint, cases[i].hint))
			fail_msg("%s: %s (%s)", cases[i].text, err.message, err.hint);
		assert_int_equal(err.code, KR_E_CONFIG);
		assert_int_equal(err.place.line, cases[i].line);
		assert_int_equal(err.place.column, cases[i].column);
		assert_int_equal(got.on, 77);
	}
}

static void
a_long_webhook_is_refused(void **state)
{
	char url[KR_WEBHOOK_BYTES + 2];

	(void)state;
	memset(url, 'a', sizeof(url));
	memcpy(url, "http://", 7);
	url[KR_WEBHOOK_BYTES] = '\0';
	assert_null(kr_fault_webhook(url));
	url[KR_WEBHOOK_BYTES] = 'a';
	url[KR_WEBHOOK_BYTES + 1] = '\0';
	assert_non_null(kr_fault_webhook(url));
}

static void
it_is_read_in_the_configuration_and_may_be_missing(void **state)
{
	struct place *p = *state;
	const struct kr_places here = { .home = below(p, "home"),
		.kraft_home = below(p, "k"),
		.run_dir = below(p, "k/run"),
		.config_dir = below(p, "k/config") };
	struct kr_error err = { 0 };
	struct kr_notify got;

	assert_int_equal(kr_notify_load(&p->arena, &here, &got, &err), 0);
	assert_true(!got.command.n && !got.webhook);
	sh(p, "mkdir -p k/config && echo 'command: [tell]' >k/config/notify.yaml");
	assert_int_equal(kr_notify_load(&p->arena, &here, &got, &err), 0);
	assert_string_equal(got.command.v[0], "tell");
	sh(p, "rm k/config/notify.yaml && mkdir k/config/notify.yaml");
	assert_int_equal(kr_notify_load(&p->arena, &here, &got, &err), -1);
	assert_int_equal(err.code, KR_E_CONFIG);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_files_are_read_whole),
		cmocka_unit_test(a_mistake_is_refused_with_its_place),
		cmocka_unit_test(a_long_webhook_is_refused),
		place_test(it_is_read_in_the_configuration_and_may_be_missing),
	};

	return cmocka_run_group_tests_name("notify", tests, NULL, NULL);
}
