/* egress: the person's own proxy, read from an environment (POL-07). */
#include <setjmp.h>
#include <stdarg.h>

#include "egress/upstream.h"

#include <cmocka.h>

static struct kr_target
target(const char *text)
{
	struct kr_target out;

	if (!kr_target_parse(text, strlen(text), &out, NULL))
		fail_msg("'%s' is no target", text);
	if (!out.port)
		out.port = 443;
	return out;
}

/* "" for directly, else host:port and what is sent along. */
static void
expect(const char *const *environment, enum kr_ask_type type, const char *host, const char *want)
{
	struct kr_target t = target(host);
	const struct kr_upstream *u;
	struct kr_upstreams all;
	struct kr_error err = { 0 };
	char got[KR_TARGET_TEXT + KR_ANSWER_TEXT + 2] = "";

	if (kr_upstreams_init(&all, environment, &err) < 0)
		fail_msg("%s: %s", environment[0], err.message);
	u = kr_upstream_for(&all, type, &t);
	if (u) {
		kr_target_format(&u->proxy, got);
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s", u->authorization[0] ? " " : "",
			u->authorization);
	}
	if (strcmp(got, want) != 0)
		fail_msg("%s, %s: '%s', not '%s'", environment[0] ? environment[0] : "(empty)", host, got, want);
	kr_upstreams_fini(&all);
}

#define ENVIRONMENT(...) ((const char *const[]){ __VA_ARGS__, NULL })

static void
each_kind_has_its_own_variable_and_lower_case_comes_first(void **state)
{
	static const char *const all[] = { "HTTPS_PROXY=http://upper-s.example:1",
		"HTTP_PROXY=http://upper.example:2", "https_proxy=http://lower-s.example:3",
		"http_proxy=http://lower.example:4", NULL };

	(void)state;
	expect(all, KR_ASK_CONNECT, "x.example", "lower-s.example:3");
	expect(all, KR_ASK_HTTP, "x.example", "lower.example:4");
	expect(ENVIRONMENT(all[0], all[1]), KR_ASK_CONNECT, "x.example", "upper-s.example:1");
	expect(ENVIRONMENT(all[0], all[1]), KR_ASK_HTTP, "x.example", "upper.example:2");
	expect(ENVIRONMENT(all[2]), KR_ASK_HTTP, "x.example", "");
	expect(ENVIRONMENT(all[3]), KR_ASK_CONNECT, "x.example", "");
	expect(ENVIRONMENT("https_proxy=", all[0]), KR_ASK_CONNECT, "x.example", "");
	expect(ENVIRONMENT("https_proxyx=http://no.example", "xhttps_proxy=http://no.example",
			   "all_proxy=http://no.example"),
		KR_ASK_CONNECT, "x.example", "");
	expect((const char *const[]){ NULL }, KR_ASK_CONNECT, "x.example", "");
}

static void
a_proxy_is_read_in_every_usual_form(void **state)
{
	static const struct {
		const char *variable, *want;
	} cases[] = {
		{ "https_proxy=proxy.example", "proxy.example:80" },
		{ "https_proxy=proxy.example:3128", "proxy.example:3128" },
		{ "https_proxy=http://proxy.example", "proxy.example:80" },
		{ "https_proxy=HTTP://Proxy.Example.:3128/", "proxy.example:3128" },
		{ "https_proxy=http://proxy.example:3128/path?query#fragment", "proxy.example:3128" },
		{ "https_proxy=http://127.0.0.1:3128", "127.0.0.1:3128" },
		{ "https_proxy=http://[::1]:3128", "[::1]:3128" },
		{ "https_proxy=http://u:p@proxy.example:1", "proxy.example:1 Basic dTpw" },
		{ "https_proxy=u:p@proxy.example", "proxy.example:80 Basic dTpw" },
		{ "https_proxy=http://u@proxy.example", "proxy.example:80 Basic dTo=" },
		{ "https_proxy=http://u:@proxy.example", "proxy.example:80 Basic dTo=" },
		{ "https_proxy=http://:p@proxy.example", "proxy.example:80 Basic OnA=" },
		{ "https_proxy=http://Aladdin:open%20sesame@proxy.example",
			"proxy.example:80 Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==" },
		{ "https_proxy=http://u:p%40%3a%2F@proxy.example", "proxy.example:80 Basic dTpwQDov" },
		{ "https_proxy=http://u:p@q@proxy.example", "proxy.example:80 Basic dTpwQHE=" },
		{ "https_proxy=http://u:100%@proxy.example", "proxy.example:80 Basic dToxMDAl" },
		{ "https_proxy=http://u:%0d%0a@proxy.example", "proxy.example:80 Basic dToNCg==" },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++)
		expect(ENVIRONMENT(cases[i].variable), KR_ASK_CONNECT, "x.example", cases[i].want);
}

static void
what_cannot_be_read_is_an_error_that_does_not_tell_the_value(void **state)
{
	static const char *const cases[] = { "https_proxy=https://u:geheim@proxy.example",
		"https_proxy=socks5://u:geheim@h", "HTTP_PROXY=socks5h://geheim.example",
		"http_proxy=http://geheim_x", "http_proxy=http://geheim:0", "http_proxy=http://geheim:99999",
		"HTTPS_PROXY=http://", "http_proxy=http://geheim:geheim@", "http_proxy=://geheim",
		"http_proxy= http://geheim", "http_proxy=http://geheim.example\r\nX: y" };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_upstreams all = { .never = NULL };
		struct kr_error err = { 0 };
		char name[32];

		assert_int_equal(kr_upstreams_init(&all, ENVIRONMENT(cases[i]), &err), -1);
		assert_int_equal(err.code, KR_E_USAGE);
		snprintf(name, sizeof(name), "'%.*s'", (int)strcspn(cases[i], "="), cases[i]);
		assert_non_null(strstr(err.message, name));
		assert_null(strstr(err.message, "geheim"));
		assert_null(strstr(err.hint, "geheim"));
	}
}

static void
user_information_has_a_limit(void **state)
{
	struct kr_upstreams all;
	char text[4096];
	int n;

	(void)state;
	n = snprintf(text, sizeof(text), "http_proxy=http://%01024d@proxy.example", 7);
	assert_true(n > 0);
	assert_int_equal(kr_upstreams_init(&all, ENVIRONMENT(text), NULL), 0);
	assert_int_equal(strlen(all.http.authorization), strlen("Basic ") + 1368);
	kr_upstreams_fini(&all);
	n = snprintf(text, sizeof(text), "http_proxy=http://%01025d@proxy.example", 7);
	assert_true(n > 0);
	assert_int_equal(kr_upstreams_init(&all, ENVIRONMENT(text), NULL), -1);
}

static void
no_proxy_exempts_by_whole_labels(void **state)
{
	static const struct {
		const char *list, *host;
		bool exempt;
	} cases[] = {
		{ "x.example", "x.example", true },
		{ "x.example", "a.x.example", true },
		{ "x.example", "a.b.x.example", true },
		{ "x.example", "ax.example", false },
		{ "x.example", "x.example.test", false },
		{ ".x.example", "x.example", true },
		{ ".x.example", "a.x.example", true },
		{ "X.Example.", "x.example", true },
		{ "example", "x.example", true },
		{ "x.example:443", "x.example:443", true },
		{ "x.example:443", "a.x.example:443", true },
		{ "x.example:443", "x.example:80", false },
		{ "*", "x.example", true },
		{ "*", "8.8.8.8", true },
		{ "", "x.example", false },
		{ ",, ,", "x.example", false },
		{ "y.example,x.example", "x.example", true },
		{ "y.example, x.example", "x.example", true },
		{ "y.example x.example", "x.example", true },
		{ " y.example\t,\tx.example ", "x.example", true },
		{ "y.example,z.example", "x.example", false },
		{ "8.8.8.8", "8.8.8.8", true },
		{ "8.8.8.8:443", "8.8.8.8", true },
		{ "8.8.8.8:80", "8.8.8.8", false },
		{ "8.8", "8.8.8.8", false },
		{ "8.8.8.0/24", "8.8.8.8", false },
		{ "2001:db8::a", "[2001:db8::a]", true },
		{ "[2001:DB8:0::a]", "[2001:db8::a]", true },
		{ "[2001:db8::a]:443", "[2001:db8::a]", true },
		{ "2001:db8::b", "[2001:db8::a]", false },
		{ "\xff\xfe,x.example", "x.example", true },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		char list[128];

		snprintf(list, sizeof(list), "no_proxy=%s", cases[i].list);
		expect(ENVIRONMENT(list, "https_proxy=p.example:1"), KR_ASK_CONNECT, cases[i].host,
			cases[i].exempt ? "" : "p.example:1");
	}
	expect(ENVIRONMENT("NO_PROXY=x.example", "http_proxy=p.example:1"), KR_ASK_HTTP, "x.example", "");
	expect(ENVIRONMENT("NO_PROXY=x.example", "no_proxy=", "http_proxy=p.example:1"), KR_ASK_HTTP, "x.example",
		"p.example:1");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_has_its_own_variable_and_lower_case_comes_first),
		cmocka_unit_test(a_proxy_is_read_in_every_usual_form),
		cmocka_unit_test(what_cannot_be_read_is_an_error_that_does_not_tell_the_value),
		cmocka_unit_test(user_information_has_a_limit),
		cmocka_unit_test(no_proxy_exempts_by_whole_labels),
	};

	return cmocka_run_group_tests_name("upstream", tests, NULL, NULL);
}
