/*
 * Heads: what is refused, what is read, and what is written anew. The parser alone; tests/unit/egress.c does
 * the same to the whole process.
 */
#include <setjmp.h>
#include <stdarg.h>

#include "egress/body.h"
#include "egress/head.h"

#include <cmocka.h>

static struct kr_head head;
static struct kr_destination to;
static const char *why;

static enum kr_scan_state
scan_all(const char *bytes, size_t n, size_t *length)
{
	struct kr_head_scan scan = { 0 };
	enum kr_scan_state whole = kr_head_scan(&scan, bytes, n), piece = KR_SCAN_MORE;
	struct kr_head_scan by_byte = { 0 };

	*length = scan.at;
	for (size_t i = 1; i <= n && piece == KR_SCAN_MORE; i++)
		piece = kr_head_scan(&by_byte, bytes, i);
	assert_int_equal(piece, whole);
	if (whole == KR_SCAN_WHOLE)
		assert_int_equal(by_byte.at, scan.at);
	return whole;
}

/* The status that a request is answered with, however it is refused; 0: it is passed on. */
static unsigned
status_of(const char *bytes, size_t n)
{
	size_t length;
	unsigned status;

	why = "";
	if (!kr_request_begins(bytes, n) || scan_all(bytes, n, &length) != KR_SCAN_WHOLE)
		return 400;
	status = kr_request_parse(bytes, length, &head, &why);
	return status ? status : kr_request_destination(&head, &to, &why) ? 0 : 400;
}

#define REQUEST(target, fields) "GET " target " HTTP/1.1\r\n" fields "\r\n"
#define FIELDS(fields) REQUEST("http://a.test/", fields)
#define BYTES(literal)               \
	{                                \
		literal, sizeof(literal) - 1 \
	}

struct bytes {
	const char *at;
	size_t n;
};

static void
all_are_refused(const struct bytes *cases, size_t n, unsigned status)
{
	for (size_t i = 0; i < n; i++)
		if (status_of(cases[i].at, cases[i].n) != status)
			fail_msg("case %zu is not answered with %u: %s", i, status, cases[i].at);
}
#define status_of_text(literal) status_of(literal, sizeof(literal) - 1)
#define all_are_refused(cases, status) all_are_refused(cases, KR_COUNT(cases), status)

static void
HTTP_01_02_framing_that_can_be_read_in_two_ways_is_400(void **state)
{
	static const struct bytes cases[] = {
		BYTES(FIELDS("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n")),
		BYTES(FIELDS("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n")),
		BYTES(FIELDS("Content-Length: 3\r\nContent-Length: 3\r\n")),
		BYTES(FIELDS("Content-Length: 3\r\ncontent-length: 4\r\n")),
		BYTES(FIELDS("Content-Length: 3, 3\r\n")),
		BYTES(FIELDS("Content-Length: +3\r\n")),
		BYTES(FIELDS("Content-Length: -3\r\n")),
		BYTES(FIELDS("Content-Length: 0x3\r\n")),
		BYTES(FIELDS("Content-Length: 3_0\r\n")),
		BYTES(FIELDS("Content-Length: 3 0\r\n")),
		BYTES(FIELDS("Content-Length:\r\n")),
		BYTES(FIELDS("Content-Length: 99999999999999999999\r\n")),
		BYTES(FIELDS("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")),
		BYTES(FIELDS("Transfer-Encoding: identity\r\n")),
		BYTES(FIELDS("Transfer-Encoding: gzip, chunked\r\n")),
		BYTES(FIELDS("Transfer-Encoding: , chunked\r\n")),
		BYTES(FIELDS("Transfer-Encoding: chunked, gzip\r\n")),
		BYTES(FIELDS("Transfer-Encoding: chunked, chunked\r\n")),
		BYTES(FIELDS("Transfer-Encoding: chunked;a=b\r\n")),
		BYTES(FIELDS("Transfer-Encoding: \"chunked\"\r\n")),
		BYTES(FIELDS("Transfer-Encoding: xchunked\r\n")),
		BYTES(FIELDS("Transfer-Encoding: chunked\x0b\r\n")),
		BYTES(FIELDS("Transfer-Encoding:\r\n")),
		BYTES("POST http://a.test/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
		BYTES("CONNECT a.test:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\n"),
		BYTES("CONNECT a.test:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"),
	};

	(void)state;
	all_are_refused(cases, 400);
	assert_int_equal(status_of_text(FIELDS("tRANSFER-eNCODING: ChunkeD\r\n")), 0);
	assert_int_equal(head.framing, KR_FRAMING_CHUNKED);
	assert_int_equal(status_of_text(FIELDS("Content-Length: 00000000000000042\r\n")), 0);
	assert_int_equal(head.length, 42);
}

static void
HTTP_05_07_line_ends_and_controls_are_400(void **state)
{
	static const struct bytes cases[] = {
		BYTES("GET http://a.test/ HTTP/1.1\n\n"),
		BYTES("GET http://a.test/ HTTP/1.1\r\nA: b\n\r\n"),
		BYTES("GET http://a.test/ HTTP/1.1\nHost: a.test\r\n\r\n"),
		BYTES("GET http://a.test/ HTTP/1.1\rHost: a.test\r\n\r\n"),
		BYTES("GET http://a.test/\r HTTP/1.1\r\n\r\n"),
		BYTES("GET http://a.test/\0 HTTP/1.1\r\n\r\n"),
		BYTES("GET http://a.test/\t HTTP/1.1\r\n\r\n"),
		BYTES("GET http://a.test/\x7f HTTP/1.1\r\n\r\n"),
		BYTES("GET http://a.test/\xc3\xa4 HTTP/1.1\r\n\r\n"),
		BYTES("\r\nGET http://a.test/ HTTP/1.1\r\n\r\n"),
		BYTES(FIELDS("A: b\rc\r\n")),
		BYTES(FIELDS("A: b\0c\r\n")),
		BYTES(FIELDS("A\0: b\r\n")),
		BYTES(FIELDS("A: b\r\r\n")),
		BYTES(FIELDS("A: b\x1b[2J\r\n")),
		BYTES(FIELDS("A : b\r\n")),
		BYTES(FIELDS(" A: b\r\n")),
		BYTES(FIELDS("A: b\r\n c\r\n")),
		BYTES(FIELDS("A: b\r\n\tc\r\n")),
		BYTES(FIELDS("A\r\n")),
		BYTES(FIELDS(": b\r\n")),
		BYTES(FIELDS("A(b): c\r\n")),
		BYTES(FIELDS("\xc3\xa4: c\r\n")),
		BYTES(REQUEST("http://a.test/\r\nX: y", "")),
	};

	(void)state;
	all_are_refused(cases, 400);
	/* An encoded line break is two letters of the path, and stays so. */
	assert_int_equal(status_of_text(REQUEST("http://a.test/%0d%0aX:%20y", "A: \xc3\xa4\tb\r\n")), 0);
}

static void
HTTP_15_what_is_no_request_is_400(void **state)
{
	static const struct bytes cases[] = {
		BYTES("GET http://a.test/\r\n"),
		BYTES("GET http://a.test/ HTTP/0.9\r\n\r\n"),
		BYTES("GET http://a.test/ HTTP/1.2\r\n\r\n"),
		BYTES("GET http://a.test/ HTTP/2.0\r\n\r\n"),
		BYTES("GET http://a.test/ HTTP/1.10\r\n\r\n"),
		BYTES("GET http://a.test/ http/1.1\r\n\r\n"),
		BYTES("GET http://a.test/ HTTP/1.1 \r\n\r\n"),
		BYTES("GET  http://a.test/ HTTP/1.1\r\n\r\n"),
		BYTES("GET http://a.test/ a HTTP/1.1\r\n\r\n"),
		BYTES("GET HTTP/1.1\r\n\r\n"),
		BYTES("get http://a.test/ HTTP/1.1\r\n\r\n"),
		BYTES("GETT http://a.test/ HTTP/1.1\r\n\r\n"),
		BYTES("TRACE http://a.test/ HTTP/1.1\r\n\r\n"),
		BYTES("PROPFIND http://a.test/ HTTP/1.1\r\n\r\n"),
		BYTES("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
		BYTES("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
		BYTES("\x05\x01\x00"),
		BYTES("\x04\x01\x00\x50"),
		BYTES("\0"),
		BYTES("HTTP/1.1 200 OK\r\n\r\n"),
	};

	(void)state;
	all_are_refused(cases, 400);
}

static void
NET_13_14_hosts_and_ports_that_are_none_are_400(void **state)
{
	static const char *const connects[] = { "a.test", "a.test:", "a.test:0", "a.test:65536", "a.test:+443",
		"a.test:-1", "a.test:0443x", "a.test:https", "a.test:000443", "a.test:443:443", ":443", "a..test:443",
		".a.test:443", "a.test..:443", "-:", "127.1:443", "0x7f.1:443", "0177.0.0.1:443", "2130706433:443",
		"1.2.3.4.5:443", "a_b.test:443", "a.test%00:443", "a.test%2e:443", "u@a.test:443", "u:p@a.test:443",
		"a.test#b:443", "a.test\\b:443", "a.test/:443", "http://a.test:443", "[a.test]:443", "[::1:443",
		"::1:443", "[::1]443", "[]:443", "*:443", "*.test:443" };
	static const char *const urls[] = { "https://a.test/", "ftp://a.test/", "a.test/", "/", "*",
		"http:/a.test/", "http://", "http:///", "http://?x", "http://u@a.test/", "http://a.test@b.test/",
		"http://a.test:x/", "http://a.test:/", "http://a.test:0/", "http://a.test:65536/",
		"http://a.test\\b/", "http://a.test#b", "http://a.test/#b", "http://a%2etest/", "http://127.1/",
		"http://0x7f000001/", "http://[a.test]/", "http://[::1/", "http://a.test,b.test/",
		"http://a.test;b/" };
	char text[256];

	(void)state;
	for (size_t i = 0; i < KR_COUNT(connects); i++) {
		int n = snprintf(text, sizeof(text), "CONNECT %s HTTP/1.1\r\n\r\n", connects[i]);

		if (status_of(text, (size_t)n) != 400)
			fail_msg("not refused: %s", text);
	}
	for (size_t i = 0; i < KR_COUNT(urls); i++) {
		int n = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\n\r\n", urls[i]);

		if (status_of(text, (size_t)n) != 400)
			fail_msg("not refused: %s", text);
	}
}

static void
NET_13_a_host_is_read_once_into_one_spelling(void **state)
{
	static const struct {
		const char *line, *host, *authority;
		unsigned port;
	} cases[] = {
		{ "CONNECT A.Test.:443", "a.test", "a.test:443", 443 },
		{ "CONNECT [::FFFF:1.2.3.4]:0080", "1.2.3.4", "1.2.3.4:80", 80 },
		{ "CONNECT [2001:DB8::0:1]:443", "2001:db8::1", "[2001:db8::1]:443", 443 },
		{ "GET HTTP://A.test", "a.test", "a.test", 80 },
		{ "GET http://a.test:80/", "a.test", "a.test:80", 80 },
		{ "GET http://a.test.:8080?x", "a.test", "a.test:8080", 8080 },
		{ "GET http://kraft/x", "kraft", "kraft", 80 },
	};
	char text[256];

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		int n = snprintf(text, sizeof(text), "%s HTTP/1.1\r\n\r\n", cases[i].line);

		assert_int_equal(status_of(text, (size_t)n), 0);
		assert_string_equal(to.target.host, cases[i].host);
		assert_string_equal(to.authority, cases[i].authority);
		assert_int_equal(to.target.port, cases[i].port);
	}
}

static void
HTTP_11_what_cannot_be_expected_is_417(void **state)
{
	static const struct bytes cases[] = {
		BYTES(FIELDS("Expect: 200-ok\r\n")),
		BYTES(FIELDS("Expect: 100-continue, x\r\n")),
		BYTES(FIELDS("Expect: 100-continue\r\nExpect: 100-continue\r\n")),
		BYTES(FIELDS("Expect:\r\n")),
		BYTES("CONNECT a.test:443 HTTP/1.1\r\nExpect: x\r\n\r\n"),
	};

	(void)state;
	all_are_refused(cases, 417);
	assert_int_equal(status_of_text(FIELDS("Expect: 100-Continue\r\n")), 0);
	assert_true(head.expects);
}

static void
HTTP_13_too_large_is_400(void **state)
{
	static char text[KR_HEAD_BYTES + 4096];
	size_t n, length;

	(void)state;
	memset(text, 'a', sizeof(text));
	assert_int_equal(scan_all(text, KR_HEAD_BYTES, &length), KR_SCAN_MORE);
	assert_int_equal(scan_all(text, KR_HEAD_BYTES + 1, &length), KR_SCAN_BAD);
	for (int fields = KR_HEAD_FIELDS; fields <= KR_HEAD_FIELDS + 1; fields++) {
		n = (size_t)snprintf(text, sizeof(text), "GET http://a.test/ HTTP/1.1\r\n");
		for (int i = 0; i < fields; i++)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "A: b\r\n");
		n += (size_t)snprintf(text + n, sizeof(text) - n, "\r\n");
		assert_int_equal(status_of(text, n), fields > KR_HEAD_FIELDS ? 400 : 0);
	}
}

static void
assert_written(const char *request, bool upstream, const char *expected)
{
	kr_auto_buf struct kr_buf out = KR_BUF(4096);

	assert_int_equal(status_of(request, strlen(request)), 0);
	kr_request_write(&(struct kr_request_write){ &head, &to, upstream, upstream ? "Basic eDp5" : "" }, &out);
	assert_string_equal(out.data, expected);
}

static void
HTTP_06_16_17_a_request_is_written_anew(void **state)
{
	(void)state;
	assert_written(
		"GET http://A.test:81/p?q HTTP/1.0\r\nHost: b.test\r\nX:  y \r\nExpect: 100-continue\r\n\r\n", false,
		"GET /p?q HTTP/1.1\r\nHost: a.test:81\r\nX: y\r\nConnection: close\r\n\r\n");
	assert_written("POST http://a.test?q HTTP/1.1\r\nContent-Length: 007\r\nExpect: 100-continue\r\n\r\n",
		false,
		"POST /?q HTTP/1.1\r\nHost: a.test\r\nExpect: 100-continue\r\nContent-Length: 7\r\nConnection: "
		"close\r\n\r\n");
	/* What Connection nominates is not removed for that: neither Host nor what frames or authorises
	 * (HTTP-16). */
	assert_written(
		"PUT http://a.test/ HTTP/1.1\r\nConnection: close, Host, Authorization, Content-Length, "
		"Connection\r\n"
		"Authorization: Basic eA==\r\nContent-Length: 1\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\n"
		"Proxy-Authorization: Basic eA==\r\nTE: trailers\r\nTrailer: X\r\nConnection: x\r\n\r\n",
		false,
		"PUT / HTTP/1.1\r\nHost: a.test\r\nAuthorization: Basic eA==\r\nContent-Length: 1\r\nConnection: "
		"close\r\n\r\n");
	assert_written("GET http://a.test/ HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
				   "HTTP2-Settings: x\r\n\r\n",
		false, "GET / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
	assert_written("OPTIONS http://a.test HTTP/1.1\r\n\r\n", false,
		"OPTIONS * HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
	assert_written("OPTIONS http://a.test HTTP/1.1\r\nProxy-Authorization: x\r\n\r\n", true,
		"OPTIONS http://a.test HTTP/1.1\r\nHost: a.test\r\nProxy-Authorization: Basic eDp5\r\nConnection: "
		"close\r\n\r\n");
	assert_written("GET http://a.test?q HTTP/1.1\r\n\r\n", true,
		"GET http://a.test/?q HTTP/1.1\r\nHost: a.test\r\nProxy-Authorization: Basic eDp5\r\nConnection: "
		"close\r\n\r\n");
}

static void
HTTP_08_responses_that_can_be_read_in_two_ways_are_refused(void **state)
{
	static const struct bytes cases[] = {
		BYTES("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
		BYTES("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
		BYTES("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"),
		BYTES("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
		BYTES("HTTP/1.1 200 OK\n\n"),
		BYTES("HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n"),
		BYTES("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n"),
		BYTES("HTTP/1.1 200 \x01\r\n\r\n"),
		BYTES("HTTP/1.1 20 OK\r\n\r\n"),
		BYTES("HTTP/1.1 2000 OK\r\n\r\n"),
		BYTES("HTTP/1.1 099 OK\r\n\r\n"),
		BYTES("HTTP/1.1 600 OK\r\n\r\n"),
		BYTES("HTTP/2.0 200 OK\r\n\r\n"),
		BYTES("ICY 200 OK\r\n\r\n"),
		BYTES("HTTP/1.1  200 OK\r\n\r\n"),
	};
	static const struct bytes good[] = {
		BYTES("HTTP/1.1 404\r\n\r\n"),
		BYTES("HTTP/1.0 404 Not \xc3\xa4\r\nA:b\r\n\r\n"),
	};
	size_t length;

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++)
		if (scan_all(cases[i].at, cases[i].n, &length) == KR_SCAN_WHOLE &&
			kr_response_parse(cases[i].at, length, &head, &why))
			fail_msg("not refused: %s", cases[i].at);
	for (size_t i = 0; i < KR_COUNT(good); i++) {
		assert_true(kr_response_parse(good[i].at, good[i].n, &head, &why));
		assert_int_equal(head.status, 404);
		assert_int_equal(head.n, i);
	}
}

/* ---- bodies ---- */

/* Fed whole and in pieces of every size, with the same outcome. */
static enum kr_body_state
decode(const char *bytes, size_t n, size_t piece, char *out, size_t *out_n)
{
	struct kr_body body;
	enum kr_body_state state = KR_BODY_MORE;
	char part[256];

	*out_n = 0;
	kr_body_begin(&body, false, KR_FRAMING_CHUNKED, 0);
	for (size_t at = 0; at < n && state == KR_BODY_MORE; at += piece) {
		size_t left, some = n - at < piece ? n - at : piece;

		memcpy(part, bytes + at, some);
		state = kr_body_feed(&body, part, some, &left);
		memcpy(out + *out_n, part, left);
		*out_n += left;
	}
	return state;
}

static void
HTTP_03_chunks_that_are_none_are_refused(void **state)
{
	static const char *const bad[] = { "x", "0x3\r\nabc\r\n0\r\n\r\n", "+3\r\nabc\r\n0\r\n\r\n",
		"-3\r\nabc\r\n0\r\n\r\n", "3_0\r\nabc", " 3\r\nabc\r\n0\r\n\r\n", "3\nabc\r\n0\r\n\r\n",
		"3\r\nabc\n0\r\n\r\n", "3\r\nabcd\r\n0\r\n\r\n", "3\r\nab\r\n0\r\n\r\n", "10000000000000000\r\n",
		"fffffffffffffffffffff\r\n", "3\rabc\r\n0\r\n\r\n", "3;a\rb\r\nabc\r\n0\r\n\r\n",
		"3;a\nb\r\nabc\r\n0\r\n\r\n", "\r\n3\r\nabc\r\n0\r\n\r\n", ";a\r\n", "0\r\nA b\r\n\r\n",
		"0\r\nA: b\n\r\n", "0\n\n" };
	char out[256];
	size_t n;

	(void)state;
	for (size_t i = 0; i < KR_COUNT(bad); i++)
		for (size_t piece = 1; piece <= strlen(bad[i]); piece++)
			if (decode(bad[i], strlen(bad[i]), piece, out, &n) != KR_BODY_BAD)
				fail_msg("case %zu in pieces of %zu is not refused: %s", i, piece, bad[i]);
}

static void
HTTP_04_trailers_and_extensions_are_dropped(void **state)
{
	static const char framing[] = "0\r\nContent-Length: 5\r\n\r\n";
	static const char good[] =
		"3;a=\"b\"\r\nabc\r\n00A\r\n0123456789\r\n0\r\nX-Sum: 5\r\nHost: x\r\nAuthorization: y\r\n\r\nGET /";
	char out[256];
	size_t n;

	(void)state;
	for (size_t piece = 1; piece < sizeof(good); piece++) {
		assert_int_equal(decode(good, sizeof(good) - 1, piece, out, &n), KR_BODY_DONE);
		assert_int_equal(n, 13);
		assert_memory_equal(out, "abc0123456789", 13);
	}
	assert_int_equal(decode(framing, sizeof(framing) - 1, 256, out, &n), KR_BODY_DONE);
	assert_int_equal(n, 0);
	/* Up to any byte before its end it is not complete. */
	for (size_t cut = 0; cut < sizeof(good) - 1 - 5; cut++)
		assert_int_equal(decode(good, cut, 256, out, &n), KR_BODY_MORE);
}

static void
HTTP_04_extensions_without_end_are_refused(void **state)
{
	struct kr_body body;
	char part[1024];
	size_t left, fed = 0;

	(void)state;
	kr_body_begin(&body, false, KR_FRAMING_CHUNKED, 0);
	memcpy(part, "3;", 2);
	assert_int_equal(kr_body_feed(&body, part, 2, &left), KR_BODY_MORE);
	do {
		memset(part, 'a', sizeof(part));
		fed += sizeof(part);
	} while (kr_body_feed(&body, part, sizeof(part), &left) == KR_BODY_MORE && fed < 1 << 20);
	assert_int_equal(body.state, KR_BODY_BAD);
	assert_true(fed <= KR_HEAD_BYTES + 2048);
}

static void
a_length_ends_the_body_and_an_early_end_is_noticed(void **state)
{
	struct kr_body body;
	char text[] = "abcdefgh";
	size_t left;

	(void)state;
	kr_body_begin(&body, true, KR_FRAMING_LENGTH, 5);
	assert_int_equal(kr_body_feed(&body, text, 3, &left), KR_BODY_MORE);
	assert_int_equal(kr_body_feed(&body, text + 3, 5, &left), KR_BODY_DONE);
	assert_int_equal(left, 2);
	kr_body_begin(&body, true, KR_FRAMING_LENGTH, 5);
	assert_int_equal(kr_body_feed(&body, text, 3, &left), KR_BODY_MORE);
	assert_int_equal(kr_body_finish(&body), KR_BODY_BAD);
	kr_body_begin(&body, true, KR_FRAMING_CHUNKED, 0);
	assert_int_equal(kr_body_finish(&body), KR_BODY_BAD);
	kr_body_begin(&body, true, KR_FRAMING_NONE, 0);
	assert_int_equal(kr_body_feed(&body, text, 3, &left), KR_BODY_MORE);
	assert_int_equal(kr_body_finish(&body), KR_BODY_DONE);
	kr_body_begin(&body, true, KR_FRAMING_LENGTH, 0);
	assert_int_equal(body.state, KR_BODY_DONE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(HTTP_01_02_framing_that_can_be_read_in_two_ways_is_400),
		cmocka_unit_test(HTTP_05_07_line_ends_and_controls_are_400),
		cmocka_unit_test(HTTP_15_what_is_no_request_is_400),
		cmocka_unit_test(NET_13_14_hosts_and_ports_that_are_none_are_400),
		cmocka_unit_test(NET_13_a_host_is_read_once_into_one_spelling),
		cmocka_unit_test(HTTP_11_what_cannot_be_expected_is_417),
		cmocka_unit_test(HTTP_13_too_large_is_400),
		cmocka_unit_test(HTTP_06_16_17_a_request_is_written_anew),
		cmocka_unit_test(HTTP_08_responses_that_can_be_read_in_two_ways_are_refused),
		cmocka_unit_test(HTTP_03_chunks_that_are_none_are_refused),
		cmocka_unit_test(HTTP_04_trailers_and_extensions_are_dropped),
		cmocka_unit_test(HTTP_04_extensions_without_end_are_refused),
		cmocka_unit_test(a_length_ends_the_body_and_an_early_end_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
