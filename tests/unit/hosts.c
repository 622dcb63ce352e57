/* policy: the grammar of a network list entry (POL-01). */
#include <setjmp.h>
#include <stdarg.h>

#include "policy/policy.h"

#include <cmocka.h>

static void
entries_are_read_POL_01(void **state)
{
	static const struct {
		const char *text, *host;
		unsigned port;
		bool star, any;
	} cases[] = {
		{ "example.com", "example.com", 0, false, false },
		{ "EXAMPLE.Com", "example.com", 0, false, false },
		{ "localhost", "localhost", 0, false, false },
		{ "a", "a", 0, false, false },
		{ "1", "1", 0, false, false },
		{ "10.1.2.3", "10.1.2.3", 0, false, false },
		{ "a-b.c--d.e", "a-b.c--d.e", 0, false, false },
		{ "xn--w-0ga12b.example", "xn--w-0ga12b.example", 0, false, false },
		{ "example.com:443", "example.com", 443, false, false },
		{ "example.com:1", "example.com", 1, false, false },
		{ "example.com:65535", "example.com", 65535, false, false },
		{ "example.com:00443", "example.com", 443, false, false },
		{ "*.example.com", "example.com", 0, true, false },
		{ "*.com", "com", 0, true, false },
		{ "*.example.com:8443", "example.com", 8443, true, false },
		{ "*", "", 0, false, true },
		{ "**", "", 0, false, true },
		{ "  example.com\t", "example.com", 0, false, false },
		{ " * ", "", 0, false, true },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_host_pattern out = { .port = 7 };
		const char *why = NULL;

		if (!kr_host_pattern_parse(cases[i].text, &out, &why))
			fail_msg("'%s': %s", cases[i].text, why);
		assert_string_equal(out.host, cases[i].host);
		assert_int_equal(out.port, cases[i].port);
		assert_int_equal(out.star, cases[i].star);
		assert_int_equal(out.any, cases[i].any);
	}
}

static void
nothing_else_is_an_entry_POL_01(void **state)
{
	static const char *const cases[] = {
		"",
		" ",
		"\t",
		".",
		"..",
		"a.",
		".a",
		"a..b",
		"-a",
		"a-",
		"a.-b",
		"a-.b",
		"*a",
		"a*",
		"*.",
		"**.",
		"***",
		"*.*",
		"*.*.a",
		"**.a",
		"a.*",
		"a.*.b",
		"*:443",
		"**:443",
		"*.:443",
		":443",
		"a:",
		"a:0",
		"a:00000",
		"a:65536",
		"a:99999",
		"a:123456",
		"a:4x",
		"a:-1",
		"a:+1",
		"a: 443",
		"a :443",
		"a:1:2",
		"::1",
		"[::1]",
		"[::1]:443",
		"fe80::1%eth0",
		"10.0.0.0/8",
		"http://a",
		"https://a/b",
		"a/b",
		"/",
		"a_b",
		"_a.b",
		"a b",
		"a\tb",
		"a\nb",
		"you@a",
		"a,b",
		"a;b",
		"a?",
		"a#b",
		"a%b",
		"a\\b",
		"\"a\"",
		"(a)",
		"~",
		"!a",
		"\xc5\xbc.pl",
		"a\x7f",
		"a\x01",
		"\xe3\x80\x82",
		"\xe3\x80\x82.com",
		"\xef\xbc\x8a",
	};
	char label[80] = { 0 }, name[400] = { 0 };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_host_pattern out = { .port = 7 };
		const char *why = NULL;

		if (kr_host_pattern_parse(cases[i], &out, &why))
			fail_msg("'%s' is read", cases[i]);
		assert_non_null(why);
		assert_int_equal(out.port, 7); /* left alone */
		assert_false(kr_host_pattern_parse(cases[i], &out, NULL));
	}
	memset(label, 'a', 64);
	assert_false(kr_host_pattern_parse(label, &(struct kr_host_pattern){ 0 }, NULL));
	label[63] = '\0';
	assert_true(kr_host_pattern_parse(label, &(struct kr_host_pattern){ 0 }, NULL));
	for (size_t i = 0; i < 254; i++)
		name[i] = i % 50 == 49 ? '.' : 'a';
	assert_false(kr_host_pattern_parse(name, &(struct kr_host_pattern){ 0 }, NULL));
	name[253] = '\0';
	assert_true(kr_host_pattern_parse(name, &(struct kr_host_pattern){ 0 }, NULL));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_read_POL_01),
		cmocka_unit_test(nothing_else_is_an_entry_POL_01),
	};

	return cmocka_run_group_tests_name("hosts", tests, NULL, NULL);
}
