/* The exact table of what counts as the token, and what does not (MAC-06); the answer is checked in egress.c. */
#include <setjmp.h>
#include <stdarg.h>

#include "egress/token.h"

#include <cmocka.h>

#define TOKEN "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdee"

static void
base64(const char *text, char *out)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *in = (const unsigned char *)text;
	size_t n = strlen(text);

	for (size_t i = 0; i < n; i += 3) {
		unsigned three = (unsigned)in[i] << 16 | (i + 1 < n ? in[i + 1] : 0u) << 8 | (i + 2 < n ? in[i + 2] : 0u);

		*out++ = digits[three >> 18];
		*out++ = digits[three >> 12 & 63];
		*out++ = i + 1 < n ? digits[three >> 6 & 63] : '=';
		*out++ = i + 2 < n ? digits[three & 63] : '=';
	}
	*out = '\0';
}

/* Field lines, each with its end. */
static bool
is_said(const char *fields)
{
	static struct kr_head head;
	static char text[8192];
	const char *why;

	snprintf(text, sizeof(text), "GET http://a.test/ HTTP/1.1\r\n%s\r\n", fields);
	assert_int_equal(kr_request_parse(text, strlen(text), &head, &why), 0);
	return kr_token_is_said(&head, TOKEN);
}

/* One field: what is in front of the credentials, and the credentials in plain. */
static bool
says(const char *name, const char *scheme, const char *plain)
{
	static char coded[2048], line[4096];

	base64(plain, coded);
	snprintf(line, sizeof(line), "%s: %s%s\r\n", name, scheme, coded);
	return is_said(line);
}

static void
MAC_06_the_token_is_a_password_of_any_name(void **state)
{
	static char long_name[KR_TOKEN_NAME + 2 + sizeof(TOKEN)];

	(void)state;
	assert_true(says("Proxy-Authorization", "Basic ", "kraft:" TOKEN));
	assert_true(says("proxy-authorization", "Basic ", "kraft:" TOKEN));
	assert_true(says("PROXY-AUTHORIZATION", "bAsIC ", "kraft:" TOKEN));
	assert_true(says("Proxy-Authorization", "Basic    ", "kraft:" TOKEN));
	assert_true(says("Proxy-Authorization", "  Basic ", "kraft:" TOKEN));
	assert_true(says("Proxy-Authorization", "Basic ", ":" TOKEN));
	assert_true(says("Proxy-Authorization", "Basic ", "someone else:" TOKEN));
	assert_true(says("Proxy-Authorization", "Basic ", "\xc3\xa4:" TOKEN));
	memset(long_name, 'n', KR_TOKEN_NAME);
	memcpy(long_name + KR_TOKEN_NAME, ":" TOKEN, sizeof(":" TOKEN));
	assert_true(says("Proxy-Authorization", "Basic ", long_name));
	assert_false(is_said(""));
}

static void
MAC_06_everything_else_is_no_token(void **state)
{
	static const char *const plain[] = { "kraft:" OTHER, "kraft:" TOKEN "0", "kraft:" TOKEN ":", "kraft:" TOKEN "\n", "kraft::" TOKEN,
		"kraft: " TOKEN, "kraft:", "kraft", "", ":", TOKEN, TOKEN ":", TOKEN ":kraft", "kraft:" TOKEN TOKEN,
		"kraft:0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF0123456789ABCDEF", "kraft:0123456789abcdef",
		"a:b:" TOKEN, "kraft:1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" };
	static const char *const schemes[] = { "Basic", "Bearer ", "Digest ", "Basic\t", "Basic, ", "Basic:", "", "Basic Basic ", "Basic =", "\"Basic\" " };
	static const char *const names[] = { "Authorization", "Proxy-Authenticate", "X-Proxy-Authorization", "Proxy_Authorization",
		"Proxy-Authorization1", "Cookie" };
	static char long_name[KR_TOKEN_NAME + 3 + sizeof(TOKEN)];

	(void)state;
	for (size_t i = 0; i < KR_COUNT(plain); i++)
		if (says("Proxy-Authorization", "Basic ", plain[i]))
			fail_msg("taken: %s", plain[i]);
	for (size_t i = 0; i < KR_COUNT(schemes); i++)
		if (says("Proxy-Authorization", schemes[i], "kraft:" TOKEN))
			fail_msg("taken: %s", schemes[i]);
	for (size_t i = 0; i < KR_COUNT(names); i++)
		if (says(names[i], "Basic ", "kraft:" TOKEN))
			fail_msg("taken: %s", names[i]);
	memset(long_name, 'n', KR_TOKEN_NAME + 1);
	memcpy(long_name + KR_TOKEN_NAME + 1, ":" TOKEN, sizeof(":" TOKEN));
	assert_false(says("Proxy-Authorization", "Basic ", long_name));
	assert_true(is_said("Proxy-Authorization: Basic a3JhZnQ6MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWYwMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZg==\r\n"));
}

/* The same bytes, written in each other way that some reader of base64 takes. */
static void
MAC_06_base64_has_one_spelling(void **state)
{
#define GOOD "a3JhZnQ6MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWYwMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZ"
	static const char *const bad[] = { GOOD, GOOD "g", GOOD "g=", GOOD "g===", GOOD "g====", GOOD "g== ", GOOD "g==x", GOOD "h==", GOOD "n==",
		GOOD "g=g", GOOD "=g=", GOOD "g==\t=", "=" GOOD "g==", " =" GOOD "g==", "\"" GOOD "g==\"", GOOD "g%3D%3D", GOOD "g==, Basic " GOOD "g==",
		GOOD "g==" GOOD "g==", "====", "=", "==", "a3Jh ZnQ6", "a3JhZnQ6-_-_", "a3JhZnQ6 ", GOOD "g==," };
	static char line[1024];

	(void)state;
	assert_true(is_said("Proxy-Authorization: Basic " GOOD "g==\r\n"));
	for (size_t i = 0; i < KR_COUNT(bad); i++) {
		bool blank_at_end = strcmp(bad[i], GOOD "g== ") == 0;

		snprintf(line, sizeof(line), "Proxy-Authorization: Basic %s\r\n", bad[i]);
		if (is_said(line) != blank_at_end) /* blanks around a value are none of it */
			fail_msg("judged wrongly: %s", bad[i]);
	}
}

static void
MAC_06_two_fields_are_none(void **state)
{
#define LINE "Proxy-Authorization: Basic " GOOD "g==\r\n"
	(void)state;
	assert_true(is_said("Accept: x\r\n" LINE "Accept: y\r\n"));
	assert_false(is_said(LINE LINE));
	assert_false(is_said(LINE "proxy-authorization: Basic x\r\n"));
	assert_false(is_said("proxy-authorization:\r\n" LINE));
	assert_false(is_said("Proxy-Authorization:\r\n"));
	assert_false(is_said("Proxy-Authorization: Basic\r\n"));
}

/* A request that cannot be read as one has its token all the same, so that its sender is told what is wrong with it. */
static void
a_bad_request_may_say_the_token(void **state)
{
	static const struct {
		const char *text;
		bool is_said;
	} cases[] = {
		{ "GET\r\n" LINE "\r\n", true },
		{ "BREW http://a.test/ HTTP/1.1\r\n" LINE "\r\n", true },
		{ "GET http://a.test/ HTTP/1.1\r\nContent-Length: x\r\n" LINE "\r\n", true },
		{ "GET http://a.test/ HTTP/1.1\r\n" LINE "no field\r\n\r\n", true },
		{ "GET http://a.test/ HTTP/1.1\r\nno field\r\n" LINE "\r\n", false },
		{ "GET http://a.test/ HTTP/1.1\r\nContent-Length: x\r\n\r\n", false },
	};
	static struct kr_head head;
	const char *why;

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		assert_int_equal(kr_request_parse(cases[i].text, strlen(cases[i].text), &head, &why), 400);
		assert_int_equal(kr_token_is_said(&head, TOKEN), cases[i].is_said);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(MAC_06_the_token_is_a_password_of_any_name),
		cmocka_unit_test(MAC_06_everything_else_is_no_token),
		cmocka_unit_test(MAC_06_base64_has_one_spelling),
		cmocka_unit_test(MAC_06_two_fields_are_none),
		cmocka_unit_test(a_bad_request_may_say_the_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
