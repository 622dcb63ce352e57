/* What a request inside of ended TLS must carry, the bytes that it becomes, and what is found in an answer (SEN-01, SEN-02, CRED-08
 * to CRED-10); the rules as bytes on their way to kraft-egress-tls. */
#include <setjmp.h>
#include <stdarg.h>

#include "egress/echo.h"
#include "egress/secret.h"

#include <cmocka.h>

#define SENTINEL "sk-SENTINEL-0123456789abcdefghij"
#define SENTINEL_B "tok-SENTINELB-0123456789abcdefgh"
#define REAL "real-value/of+the?secret~0123456789"
#define REAL_B "real-b"

static const struct kr_managed_rule all[] = {
	{ "api.example", 443, "x-api-key", "%s", SENTINEL, "API_KEY", "REAL_API_KEY", REAL },
	{ "api.example", 443, "authorization", "Bearer %s", SENTINEL_B, "TOKEN", "REAL_TOKEN", REAL_B },
	{ "other.example", 443, "x-api-key", "k %s.", "sk-OTHER-0123456789abcdefghij", "OTHER_KEY", "REAL_OTHER", NULL },
};
static const struct kr_managed_rule *const first[] = { &all[0], &all[1] }, *const second[] = { &all[2] };
static const struct kr_target api = { .host = "api.example", .port = 443 }, other = { .host = "other.example", .port = 443 };
static const struct kr_secret_host host = { &api, first, 2, all, 3 }, other_host = { &other, second, 1, all, 3 };

/* ---- heads ---- */

static enum kr_secret_reason
judge(const struct kr_secret_host *of, const char *text, const struct kr_managed_rule **rule, struct kr_head *head)
{
	const char *why = "";

	assert_int_equal(kr_request_parse(text, strlen(text), head, &why), 0);
	return kr_secret_judge(of, head, rule);
}

#define HOST "Host: api.example\r\n"
#define KEY "X-Api-Key: " SENTINEL "\r\n"
#define END "\r\n"

static void
SEN_02_a_request_carries_exactly_the_sentinel(void **state)
{
	static const struct {
		const char *text;
		enum kr_secret_reason reason;
	} cases[] = {
		{ "GET / HTTP/1.1\r\n" HOST KEY END, KR_SECRET_GOOD },
		{ "GET / HTTP/1.1\r\nHOST: API.example:443\r\nx-API-key:  " SENTINEL " \r\n" END, KR_SECRET_GOOD },
		{ "OPTIONS * HTTP/1.1\r\n" HOST KEY END, KR_SECRET_GOOD },
		{ "GET / HTTP/1.1\r\n" HOST KEY KEY END, KR_SECRET_GOOD },
		{ "GET / HTTP/1.1\r\n" HOST "Authorization: Bearer " SENTINEL_B "\r\n" END, KR_SECRET_GOOD },
		{ "GET / HTTP/1.1\r\n" HOST KEY "Authorization: Bearer " SENTINEL_B "\r\n" END, KR_SECRET_GOOD },
		{ "GET / HTTP/1.1\r\n" HOST END, KR_SECRET_MISSING },
		{ "GET / HTTP/1.1\r\n" KEY END, KR_SECRET_HOST },
		{ "GET / HTTP/1.1\r\nHost: other.example\r\n" KEY END, KR_SECRET_HOST },
		{ "GET / HTTP/1.1\r\nHost: api.example:80\r\n" KEY END, KR_SECRET_HOST },
		{ "GET / HTTP/1.1\r\nHost: api.example.evil\r\n" KEY END, KR_SECRET_HOST },
		{ "GET / HTTP/1.1\r\nHost: u@api.example\r\n" KEY END, KR_SECRET_HOST },
		{ "GET / HTTP/1.1\r\nHost: \r\n" KEY END, KR_SECRET_HOST },
		{ "GET http://api.example/ HTTP/1.1\r\n" HOST KEY END, KR_SECRET_FORM },
		{ "GET https://api.example/ HTTP/1.1\r\n" HOST KEY END, KR_SECRET_FORM },
		{ "GET * HTTP/1.1\r\n" HOST KEY END, KR_SECRET_FORM },
		{ "GET x HTTP/1.1\r\n" HOST KEY END, KR_SECRET_FORM },
		{ "CONNECT api.example:443 HTTP/1.1\r\n" HOST KEY END, KR_SECRET_FORM },
		{ "GET / HTTP/1.1\r\n" HOST "X-Api-Key: " SENTINEL "x\r\n" END, KR_SECRET_WRONG },
		{ "GET / HTTP/1.1\r\n" HOST "X-Api-Key: sk-SENTINEL-0123456789abcdefghiJ\r\n" END, KR_SECRET_WRONG },
		{ "GET / HTTP/1.1\r\n" HOST "X-Api-Key: Bearer " SENTINEL "\r\n" END, KR_SECRET_WRONG },
		{ "GET / HTTP/1.1\r\n" HOST "X-Api-Key:\r\n" END, KR_SECRET_WRONG },
		{ "GET / HTTP/1.1\r\n" HOST "X-Api-Key: " SENTINEL_B "\r\n" END, KR_SECRET_WRONG },
		{ "GET / HTTP/1.1\r\n" HOST KEY "X-Api-Key: mine\r\n" END, KR_SECRET_WRONG },
		{ "GET / HTTP/1.1\r\n" HOST KEY "X_Api_Key: mine\r\n" END, KR_SECRET_WRONG },
		{ "GET /a#b HTTP/1.1\r\n" HOST KEY END, KR_SECRET_FORM },
		{ "GET / HTTP/1.1\r\n" HOST KEY "Authorization: Bearer mine\r\n" END, KR_SECRET_WRONG },
		{ "GET / HTTP/1.1\r\n" HOST "Authorization: bearer " SENTINEL_B "\r\n" END, KR_SECRET_WRONG },
		{ "GET / HTTP/1.1\r\n" HOST "X-Api-Key: " SENTINEL "," SENTINEL "\r\n" END, KR_SECRET_WRONG },
	};
	static struct kr_head head;
	const struct kr_managed_rule *rule;

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++)
		if (judge(&host, cases[i].text, &rule, &head) != cases[i].reason)
			fail_msg("%zu: %d, not %d: %s", i, (int)judge(&host, cases[i].text, &rule, &head), (int)cases[i].reason, cases[i].text);
	assert_int_equal(judge(&other_host, "GET / HTTP/1.1\r\nHost: other.example\r\nX-Api-Key: k sk-OTHER-0123456789abcdefghij.\r\n\r\n", &rule, &head), KR_SECRET_NO_VALUE);
	assert_ptr_equal(rule, &all[2]);
}

static void
CRED_09_a_sentinel_elsewhere_is_refused(void **state)
{
	static const char *const cases[] = {
		"GET /?k=" SENTINEL " HTTP/1.1\r\n" HOST KEY END,
		"GET /" SENTINEL "/x HTTP/1.1\r\n" HOST END,
		"GET /?k=%73k-SENTINEL-0123456789abcdefghi%6A HTTP/1.1\r\n" HOST KEY END,
		"GET / HTTP/1.1\r\n" HOST KEY "X-Other: a " SENTINEL " b\r\n" END,
		"GET / HTTP/1.1\r\n" HOST KEY "Cookie: k=sk%2DSENTINEL-0123456789abcdefghij\r\n" END,
		"GET / HTTP/1.1\r\n" HOST KEY SENTINEL ": x\r\n" END,
		"GET / HTTP/1.1\r\n" HOST KEY "X: sk-OTHER-0123456789abcdefghij\r\n" END, /* of another host's rule */
		/* "u:" SENTINEL, "uu:" SENTINEL, ":" SENTINEL ":x" in base64 */
		"GET / HTTP/1.1\r\n" HOST KEY "X-Basic: Basic dTpzay1TRU5USU5FTC0wMTIzNDU2Nzg5YWJjZGVmZ2hpag==\r\n" END,
		"GET / HTTP/1.1\r\n" HOST KEY "X-Basic: Basic dXU6c2stU0VOVElORUwtMDEyMzQ1Njc4OWFiY2RlZmdoaWo=\r\n" END,
		"GET / HTTP/1.1\r\n" HOST KEY "X-Basic: Basic OnNrLVNFTlRJTkVMLTAxMjM0NTY3ODlhYmNkZWZnaGlqOng=\r\n" END,
	};
	static struct kr_head head;
	const struct kr_managed_rule *rule;

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++)
		if (judge(&host, cases[i], &rule, &head) != KR_SECRET_ELSEWHERE)
			fail_msg("%zu: %s", i, cases[i]);
	assert_int_equal(judge(&host, "GET /?k=sk-SENTINEL-0123456789abcdefghi HTTP/1.1\r\n" HOST KEY "X-Basic: Basic dTpw\r\n" END, &rule, &head), KR_SECRET_GOOD);
}

static void
expect_written(const char *text, const char *expected)
{
	static struct kr_head head;
	kr_auto_buf struct kr_buf out = KR_BUF(8192);
	const struct kr_managed_rule *rule;

	assert_int_equal(judge(&host, text, &rule, &head), KR_SECRET_GOOD);
	kr_secret_write(&host, &head, "api.example", &out);
	assert_false(out.overflow);
	assert_string_equal(out.data, expected);
}

static void
SEN_01_the_secret_is_in_the_sentinels_place(void **state)
{
	(void)state;
	expect_written("GET /p?q HTTP/1.1\r\nAccept: a\r\n" HOST KEY "Connection: close\r\n" END,
		"GET /p?q HTTP/1.1\r\nHost: api.example\r\nAccept: a\r\nx-api-key: " REAL "\r\n\r\n");
	expect_written("POST / HTTP/1.1\r\n" HOST KEY KEY "Authorization: Bearer " SENTINEL_B "\r\nContent-Length: 5\r\nExpect: 100-continue\r\n" END,
		"POST / HTTP/1.1\r\nHost: api.example\r\nx-api-key: " REAL "\r\nauthorization: Bearer " REAL_B "\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
	expect_written("GET / HTTP/1.1\r\n" HOST "x_API-key: " SENTINEL "\r\nX_Auth_Token: mine\r\nRequest-Range: bytes=0-9\r\nX_Other: a\r\n" END,
		"GET / HTTP/1.1\r\nHost: api.example\r\nX_Other: a\r\nx-api-key: " REAL "\r\n\r\n");
	expect_written("OPTIONS * HTTP/1.1\r\n" HOST KEY END, "OPTIONS * HTTP/1.1\r\nHost: api.example\r\nx-api-key: " REAL "\r\n\r\n");
	expect_written("POST / HTTP/1.1\r\n" HOST KEY "Transfer-Encoding: chunked\r\nUpgrade: h2c\r\nTE: trailers\r\n" END,
		"POST / HTTP/1.1\r\nHost: api.example\r\nx-api-key: " REAL "\r\nTransfer-Encoding: chunked\r\n\r\n");
}

static void
CRED_10_no_other_credential_goes_on(void **state)
{
	(void)state;
	expect_written("GET / HTTP/1.1\r\n" HOST KEY "Cookie: a\r\nX-Goog-Api-Key: b\r\nPrivate-Token: c\r\nProxy-Authorization: d\r\nAccept-Encoding: gzip\r\nX-Mine: e\r\n" END,
		"GET / HTTP/1.1\r\nHost: api.example\r\nX-Mine: e\r\nx-api-key: " REAL "\r\n\r\n");
}

static void
CRED_08_an_answer_is_asked_for_whole_and_unpacked(void **state)
{
	(void)state;
	expect_written("GET / HTTP/1.1\r\n" HOST KEY "Range: bytes=0-9\r\nif-range: x\r\nACCEPT-ENCODING: br\r\nRangefinder: a\r\n" END,
		"GET / HTTP/1.1\r\nHost: api.example\r\nRangefinder: a\r\nx-api-key: " REAL "\r\n\r\n");
}

static void
CRED_14_the_words_name_the_variable_and_no_value(void **state)
{
	char words[KR_SECRET_WORDS];

	(void)state;
	for (unsigned reason = KR_SECRET_GOOD; reason < KR_SECRET_END + 2; reason++) {
		kr_secret_words(reason, &all[0], words);
		assert_int_equal(words[0] != '\0', reason > KR_SECRET_GOOD && reason < KR_SECRET_END);
		assert_null(strstr(words, "%"));
		assert_null(strstr(words, SENTINEL));
		assert_null(strstr(words, "real-value"));
	}
	kr_secret_words(KR_SECRET_NO_VALUE, &all[0], words);
	assert_non_null(strstr(words, "'REAL_API_KEY'"));
	kr_secret_words(KR_SECRET_WRONG, &all[0], words);
	assert_non_null(strstr(words, "'API_KEY'"));
}

/* ---- answers ---- */

static void
a_websocket_is_known_by_its_upgrade(void **state)
{
	static const struct {
		const char *text;
		bool is_one;
	} cases[] = {
		{ "GET / HTTP/1.1\r\n" HOST KEY "Connection: Upgrade\r\nUpgrade: websocket\r\n" END, true },
		{ "GET / HTTP/1.1\r\n" HOST KEY "upgrade: h2c, WebSocket\r\n" END, true },
		{ "GET / HTTP/1.1\r\n" HOST KEY "Upgrade: h2c\r\n" END, false },
		{ "GET / HTTP/1.1\r\n" HOST KEY "Upgrade: websocke\r\n" END, false },
		{ "GET / HTTP/1.1\r\n" HOST KEY "X-Upgrade: websocket\r\n" END, false },
	};
	static struct kr_head head;
	const struct kr_managed_rule *rule;

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		assert_int_equal(judge(&host, cases[i].text, &rule, &head), KR_SECRET_GOOD);
		if (kr_secret_is_websocket(&head) != cases[i].is_one)
			fail_msg("%zu: %s", i, cases[i].text);
	}
}

static unsigned seed = 1;

static unsigned
next_random(unsigned below)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 16) % below;
}

/* What goes out when the text comes in pieces; found: what was found. */
static size_t
feed_in_pieces(const struct kr_echo *echo, const char *text, size_t n, unsigned most, char *out, int *found)
{
	struct kr_echo_watch watch = { 0 };
	size_t sent = 0, before, now;

	*found = -1;
	for (size_t at = 0, piece; at < n && *found < 0; at += piece) {
		piece = 1 + next_random(most);
		piece = piece < n - at ? piece : n - at;
		*found = kr_echo_feed(echo, &watch, text + at, piece, &before, &now);
		memcpy(out + sent, watch.held, before);
		memcpy(out + sent + before, text + at, now);
		sent += before + now;
		if (*found < 0)
			kr_echo_keep(&watch, text + at, piece, before, now);
	}
	if (*found < 0) {
		memcpy(out + sent, watch.held, watch.held_n);
		sent += watch.held_n;
	}
	return sent;
}

static const char *const values[] = { REAL, "short", "another-secret-value-that-is-longer-than-what-is-sought-of-it",
	"both\"kinds/of-what-JSON\\escapes-0123456789" };

static void
CRED_08_each_spelling_is_found_in_any_pieces(void **state)
{
	static const struct {
		const char *text;
		size_t at; /* where it begins */
		int found;
	} cases[] = {
		{ "xx" REAL "yy", 2, 0 },
		{ "ab short cd", 3, 1 },
		{ "another-secret-value-that-is-lon", 0, 2 },
		{ "{\"k\":\"real-value\\/of+the?secret~0123456789\"}", 6, 0 },
		{ "a=real-value%2Fof%2Bthe%3Fsecret~0123456789", 2, 0 },
		{ "a=real-value%2fof%2bthe%3fsecret~0123456789", 2, 0 },
		{ "%72%65%61%6C%2D%76%61%6C%75%65%2F%6F%66%2B%74%68%65%3F%73%65%63%72%65%74%7E%30%31%32%33%34%35%36%37%38%39", 0, 0 },
		{ "{\"k\": \"both\\\"kinds/of-what-JSON\\\\escapes-0123456789\"}", 7, 3 },
		{ "{\"k\": \"both\\\"kinds\\/of-what-JSON\\\\escapes-0123456789\"}", 7, 3 },
		{ "hex 7265616c2d76616c75652f6f662b7468653f7365637265747e30313233343536373839", 4, 0 },
		{ "cmVhbC12YWx1ZS9vZit0aGU/c2VjcmV0fjAxMjM0NTY3ODk=", 0, 0 },
		{ "cmVhbC12YWx1ZS9vZit0aGU_c2VjcmV0fjAxMjM0NTY3ODk", 0, 0 },
		/* "u:" and "xy1:" in front */
		{ "dTpyZWFsLXZhbHVlL29mK3RoZT9zZWNyZXR+MDEyMzQ1Njc4OQ==", 3, 0 },
		{ "eHkxOnJlYWwtdmFsdWUvb2YrdGhlP3NlY3JldH4wMTIzNDU2Nzg5", 6, 0 },
		{ "real-value/of+the?secret~012345", 0, -1 }, /* one byte short */
		{ "73686f7274", 0, -1 },                       /* "short" in hexadecimal: too short for that */
		{ "rreal-value/of+the?secrea", 0, -1 },
	};
	struct kr_echo *echo = kr_echo_new(values, KR_COUNT(values));
	char out[512];
	int found;

	(void)state;
	assert_non_null(echo);
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		size_t n = strlen(cases[i].text), sent;

		assert_int_equal(kr_echo_find(echo, cases[i].text, n), cases[i].found);
		for (unsigned most = 1; most < 200; most++) {
			sent = feed_in_pieces(echo, cases[i].text, n, most, out, &found);
			if (found != cases[i].found || sent > (found < 0 ? n : cases[i].at) || (found < 0 && sent != n) || memcmp(out, cases[i].text, sent) != 0)
				fail_msg("%zu in pieces of %u: found %d, %zu sent", i, most, found, sent);
		}
	}
	kr_echo_free(echo);
}

/* A byte at a time, each is looked at; in longer pieces most are passed by. */
static void
same_in_any_pieces(size_t n_values)
{
	struct kr_echo *echo = kr_echo_new(values, n_values);
	static char text[2000], once[2000], out[2000];
	static const char letters[] = "real-vhot%2F";

	for (int round = 0; round < 3000; round++) {
		size_t n = 1 + next_random(sizeof(text) - 100), sent, sent_once;
		int found, found_once;

		for (size_t i = 0; i < n; i++)
			text[i] = letters[next_random(sizeof(letters) - 1)];
		if (n > 200 && next_random(2))
			memcpy(text + next_random((unsigned)n - 100), REAL, strlen(REAL));
		sent_once = feed_in_pieces(echo, text, n, 1, once, &found_once);
		sent = feed_in_pieces(echo, text, n, 1 + next_random(300), out, &found);
		assert_int_equal(found, found_once);
		assert_int_equal(sent, sent_once);
		assert_memory_equal(out, text, sent);
		assert_null(memmem(out, sent, REAL, KR_ECHO_SOUGHT));
		assert_int_equal(found < 0, sent == n);
		assert_true(found >= 0 || !memmem(text, n, REAL, KR_ECHO_SOUGHT));
	}
	kr_echo_free(echo);
}

static void
CRED_08_whatever_the_pieces_the_same_goes_out(void **state)
{
	(void)state;
	same_in_any_pieces(1); /* long ones only: most is passed by */
	same_in_any_pieces(KR_COUNT(values));
}

/* A judge that took a million guesses for the sentinel's neighbours, of its own length and shape, would take them for others too. */
static void
CRED_15_a_million_guesses_are_refused(void **state)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	static const size_t start = sizeof("sk-SENTINEL-") - 1, n = sizeof(SENTINEL) - 1;
	char text[256], *guess = text + snprintf(text, sizeof(text), "GET / HTTP/1.1\r\n" HOST "X-Api-Key: ");
	const struct kr_managed_rule *rule;
	struct kr_head head;

	(void)state;
	snprintf(guess, sizeof(text) - (size_t)(guess - text), SENTINEL "\r\n" END);
	for (unsigned i = 0; i < 1000000; i++) {
		memcpy(guess, SENTINEL, n);
		/* One letter of it is another, or some, or all. */
		for (unsigned left = i % 3 == 0 ? 1 : i % 3 == 1 ? 1 + next_random(4) : (unsigned)n; left; left--)
			guess[start + next_random((unsigned)(n - start))] = letters[next_random(sizeof(letters) - 1)];
		if (memcmp(guess, SENTINEL, n) != 0)
			assert_int_equal(judge(&host, text, &rule, &head), KR_SECRET_WRONG);
	}
	memcpy(guess, SENTINEL, n);
	assert_int_equal(judge(&host, text, &rule, &head), KR_SECRET_GOOD);
}

static void
no_values_find_nothing(void **state)
{
	static const char *const none[] = { NULL };
	struct kr_echo *echo = kr_echo_new(none, 1);

	(void)state;
	assert_int_equal(kr_echo_find(echo, "anything", 8), -1);
	kr_echo_free(echo);
	kr_echo_free(NULL);
}

/* ---- rules as bytes ---- */

static const char authority[] = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n\0"
								"-----BEGIN PRIVATE KEY-----\nBBBB\n-----END PRIVATE KEY-----\n";
static const struct kr_managed good = { all, 3, "roots", 5, authority, sizeof(authority) };

static void
SEN_03_rules_are_handed_over_whole(void **state)
{
	struct kr_arena arena = { 0 };
	struct kr_error err = { 0 };
	struct kr_managed found = { 0 };
	struct kr_buf packed = { 0 };

	(void)state;
	assert_int_equal(kr_managed_pack(&good, &packed, &err), 0);
	assert_true(kr_managed_unpack(&arena, packed.data, packed.len, &found));
	assert_int_equal(found.rule_count, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_string_equal(found.rules[i].host, all[i].host);
		assert_int_equal(found.rules[i].port, all[i].port);
		assert_string_equal(found.rules[i].header, all[i].header);
		assert_string_equal(found.rules[i].format, all[i].format);
		assert_string_equal(found.rules[i].sentinel, all[i].sentinel);
		assert_string_equal(found.rules[i].variable, all[i].variable);
		assert_string_equal(found.rules[i].source, all[i].source);
		assert_int_equal(found.rules[i].value == NULL, all[i].value == NULL);
	}
	assert_string_equal(found.rules[0].value, REAL);
	assert_memory_equal(found.roots, "roots", 5);
	assert_memory_equal(found.authority, authority, sizeof(authority));
	for (size_t n = 0; n < packed.len; n++)
		assert_false(kr_managed_unpack(&arena, packed.data, n, &found)); /* cut anywhere */
	kr_buf_add(&packed, "", 1);
	assert_false(kr_managed_unpack(&arena, packed.data, packed.len, &found)); /* and longer */
	kr_managed_wipe(&packed);
	assert_null(packed.data);
	kr_arena_fini(&arena);
}

static void
what_cannot_be_managed_is_refused_by_its_name(void **state)
{
	static char long_value[KR_MANAGED_VALUE_BYTES + 2];
	struct kr_managed_rule rule;
	const struct kr_managed one = { &rule, 1, "roots", 5, authority, sizeof(authority) };
	struct kr_error err = { 0 };
	struct kr_buf packed = { 0 };

	(void)state;
	memset(long_value, 'x', sizeof(long_value) - 1);
#define BAD(change)                                            \
	do {                                                       \
		err = (struct kr_error){ 0 };                          \
		rule = all[0];                                         \
		change;                                                \
		assert_int_equal(kr_managed_check(&one, &err), -1);    \
		assert_int_equal(kr_managed_pack(&one, &packed, &err), -1); \
		assert_null(packed.data);                              \
		assert_non_null(strstr(err.message, "'API_KEY'"));     \
		assert_null(strstr(err.message, "real-value"));        \
	} while (0)
	BAD(rule.host = "API.example");
	BAD(rule.host = "api.example.");
	BAD(rule.host = "*.example");
	BAD(rule.host = "");
	BAD(rule.host = NULL);
	BAD(rule.port = 0);
	BAD(rule.header = "X-Api-Key");
	BAD(rule.header = "x api");
	BAD(rule.header = "host");
	BAD(rule.header = "content-length");
	BAD(rule.format = "Bearer");
	BAD(rule.format = "%s%s");
	BAD(rule.format = "%d");
	BAD(rule.format = "%s\r\nX: y");
	BAD(rule.sentinel = "short");
	BAD(rule.sentinel = "with a blank in it, and long enough");
	BAD(rule.value = "");
	BAD(rule.value = "real-value\nwith an end of line");
	BAD(rule.value = " real-value");
	BAD(rule.value = "real-value\x80");
	BAD(rule.value = long_value);
#undef BAD
	rule = all[0];
	assert_int_equal(kr_managed_check(&one, &err), 0);
	assert_int_equal(kr_managed_check(&(struct kr_managed){ &rule, 0, "roots", 5, NULL, 0 }, &err), -1);
	assert_int_equal(kr_managed_check(&(struct kr_managed){ (const struct kr_managed_rule[]){ all[0], all[0] }, 2, "roots", 5, NULL, 0 }, &err), -1);
	assert_int_equal(kr_managed_check(&(struct kr_managed){ &rule, 1, "", 0, NULL, 0 }, &err), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(SEN_02_a_request_carries_exactly_the_sentinel),
		cmocka_unit_test(CRED_09_a_sentinel_elsewhere_is_refused),
		cmocka_unit_test(SEN_01_the_secret_is_in_the_sentinels_place),
		cmocka_unit_test(CRED_10_no_other_credential_goes_on),
		cmocka_unit_test(CRED_08_an_answer_is_asked_for_whole_and_unpacked),
		cmocka_unit_test(CRED_14_the_words_name_the_variable_and_no_value),
		cmocka_unit_test(CRED_08_each_spelling_is_found_in_any_pieces),
		cmocka_unit_test(CRED_08_whatever_the_pieces_the_same_goes_out),
		cmocka_unit_test(CRED_15_a_million_guesses_are_refused),
		cmocka_unit_test(no_values_find_nothing),
		cmocka_unit_test(SEN_03_rules_are_handed_over_whole),
		cmocka_unit_test(a_websocket_is_known_by_its_upgrade),
		cmocka_unit_test(what_cannot_be_managed_is_refused_by_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
