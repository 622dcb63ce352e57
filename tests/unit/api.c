/* The HTTP API without a server: its table, what a request is judged by, its token and cookie, and a
 * connection over a pair of sockets. */
#include "repo.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "api/internal.h"
#include "base/fd.h"
#include "os/sys.h"

#define TOKEN "AAAAAAAAAABBBBBBBBBBCCCCCCCCCCDDDDDDDDDDEEE"
#define HASH "$y$j9T$abcdefghijklmnop$ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnop0"

static const struct kr_access loopback = { .bind = "127.0.0.1", .port = 8765, .session_expiry_days = 7 };
static const struct kr_api api = { .access = &loopback, .token = TOKEN };

/* ---- the table ---- */

static void
the_table_holds_together(void **state)
{
	(void)state;
	for (size_t i = 0; i < kr_api_route_count; i++) {
		const struct kr_api_route *r = &kr_api_routes[i];

		assert_non_null(r->run);
		assert_true(strncmp(r->pattern, "/api/", 5) == 0 && *r->summary && *r->gives);
		for (size_t k = 0; k < i; k++)
			assert_false(
				r->method == kr_api_routes[k].method && strcmp(r->pattern, kr_api_routes[k].pattern) == 0);
		for (const struct kr_api_field *f = r->fields; f && f->name; f++)
			assert_true(f->type == KR_API_BOOLEAN || f->max > f->min);
	}
}

/* CHN-12: a new route that changes something is a person's unless it is named here. */
static void
what_changes_is_a_persons_CHN_12(void **state)
{
	(void)state;
	for (size_t i = 0; i < kr_api_route_count; i++) {
		const struct kr_api_route *r = &kr_api_routes[i];
		enum kr_api_who want = r->method == KR_METHOD_GET ? KR_API_READER : KR_API_PERSON;

		if (strcmp(r->pattern, "/api/health") == 0 || strcmp(r->pattern, "/api/login") == 0)
			want = KR_API_ANYBODY;
		else if (r->method == KR_METHOD_POST && strcmp(r->pattern, "/api/work-items") == 0)
			want = KR_API_WRITER;
		if (r->who != want)
			fail_msg("%s %s", kr_method_name(r->method), r->pattern);
	}
}

/* ---- judging ---- */

struct asking {
	struct kr_arena arena;
	struct kr_head head;
	struct kr_api_client client;
	struct kr_api_call call;
	struct kr_api_refusal refusal;
};

/* 0: let in; else the status of the refusal. */
static unsigned
ask(struct asking *a, const struct kr_api *server, const char *text)
{
	const char *why, *own;

	own = kr_arena_dup(&a->arena, text);
	assert_int_equal(kr_request_parse(own, strlen(own), &a->head, &why), 0);
	a->call =
		(struct kr_api_call){ .api = server, .client = &a->client, .arena = &a->arena, .head = &a->head };
	return kr_api_judge(&a->call, &a->refusal) ? 0 : a->refusal.status;
}

static void
done(struct asking *a)
{
	kr_api_call_fini(&a->call);
	kr_arena_fini(&a->arena);
}

static unsigned
judged(const struct kr_api *server, bool is_ours, const char *text)
{
	struct asking a = { .client = { .is_ours = is_ours, .now_s = 1000 } };
	unsigned status = ask(&a, server, text);

	done(&a);
	return status;
}

#define LOCAL "Host: localhost\r\n"
#define BEARER "Authorization: Bearer " TOKEN "\r\n"

static void
a_request_is_judged_in_one_order(void **state)
{
	static const struct {
		const char *text;
		bool is_ours;
		unsigned status;
	} cases[] = {
		{ "GET /api/work-items HTTP/1.1\r\n" LOCAL "\r\n", true, 0 },
		{ "GET /api/work-items HTTP/1.1\r\n" LOCAL "\r\n", false, 401 },
		{ "GET /api/work-items HTTP/1.1\r\n" LOCAL BEARER "\r\n", false, 0 },
		{ "GET /api/health HTTP/1.1\r\n" LOCAL "\r\n", false, 0 },
		/* The place is first: a page learns nothing of what there is. */
		{ "GET /api/nothing HTTP/1.1\r\nHost: evil.example\r\n" BEARER "\r\n", true, 403 },
		{ "GET /api/nothing HTTP/1.1\r\n" LOCAL "\r\n", false, 404 },
		{ "POST /api/work-items/x/pause HTTP/1.1\r\n" LOCAL "\r\n", true, 401 },
		{ "POST /api/work-items/x/pause HTTP/1.1\r\n" LOCAL BEARER "\r\n", false, 0 },
		{ "POST /api/work-items/x/pause HTTP/1.1\r\n" LOCAL BEARER "X-Kraft-Session-Id: a\r\n\r\n", true,
			403 },
		{ "POST /api/work-items/x/pause HTTP/1.1\r\n" LOCAL BEARER "Content-Length: 1048577\r\n\r\n", true,
			413 },
		{ "POST /api/work-items/x/pause HTTP/1.1\r\n" LOCAL "Content-Length: 1048577\r\n\r\n", true, 401 },
		{ "POST /api/work-items/x/pause HTTP/1.1\r\n" LOCAL BEARER "Transfer-Encoding: chunked\r\n\r\n", true,
			411 },
		{ "POST /api/work-items/x/pause HTTP/1.1\r\n" LOCAL BEARER "Content-Length: 2\r\n\r\n", true, 415 },
		{ "GET /api/work-items?all=1 HTTP/1.1\r\n" LOCAL "Content-Length: 1\r\n\r\n", true, 400 },
		{ "GET /api/work-items/%2 HTTP/1.1\r\n" LOCAL "\r\n", true, 400 },
		{ "GET * HTTP/1.1\r\n" LOCAL "\r\n", true, 400 },
		{ "CONNECT localhost:1 HTTP/1.1\r\n" LOCAL "\r\n", true, 400 },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++)
		if (judged(&api, cases[i].is_ours, cases[i].text) != cases[i].status)
			fail_msg("%s: %u", cases[i].text, judged(&api, cases[i].is_ours, cases[i].text));
}

static void
a_path_is_decoded_once_and_arguments_are_typed(void **state)
{
	struct asking a = { .client = { .is_ours = true } };

	(void)state;
	assert_int_equal(
		ask(&a, &api,
			"POST /api/work-items/a%2Fb%2525/gates/%c3%a9/approve HTTP/1.1\r\n" LOCAL BEARER "\r\n"),
		0);
	assert_string_equal(a.call.param[0], "a/b%25");
	assert_string_equal(a.call.param[1], "\xc3\xa9");
	assert_ptr_equal(a.call.route->run, kr_api_gates_approve);
	kr_api_call_fini(&a.call);
	assert_int_equal(
		ask(&a, &api,
			"GET /api/work-items/x/events?after_seq=7&limit=500&type=a+b%2B HTTP/1.1\r\n" LOCAL "\r\n"),
		0);
	assert_int_equal(kr_api_number(&a.call, "after_seq", 0), 7);
	assert_int_equal(kr_api_number(&a.call, "limit", 0), 500);
	assert_string_equal(kr_api_text(&a.call, "type"), "a b+");
	kr_api_call_fini(&a.call);
	assert_int_equal(ask(&a, &api, "GET /api/work-items/x/events?limit=501 HTTP/1.1\r\n" LOCAL "\r\n"), 422);
	assert_non_null(strstr(a.refusal.detail, "'limit'"));
	done(&a);
}

static unsigned
body_of(const char *body, size_t n, char detail[256])
{
	struct asking a = { .client = { .is_ours = true } };
	char text[512];
	unsigned status;

	snprintf(text, sizeof(text),
		"POST /api/work-items/x/retry HTTP/1.1\r\n" LOCAL BEARER
		"Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
		n);
	assert_int_equal(ask(&a, &api, text), 0);
	status = kr_api_take_body(&a.call, body, n, &a.refusal) ? 0 : a.refusal.status;
	snprintf(detail, 256, "%s", status ? a.refusal.detail : "");
	done(&a);
	return status;
}

static void
a_body_is_counted_before_it_is_parsed(void **state)
{
	static const struct {
		const char *body;
		unsigned status;
		const char *detail;
	} cases[] = {
		{ "{}", 0, "" },
		{ " {\"restart\": true, \"steer\": \"[[[[[[[[[[[[[[[[[[[[\", \"path\": null}", 0, "" },
		{ "{\"steer\": \"\\\"[[[[[[[[[[[[[[[[[[[[[[\"}", 0, "" },
		{ "{\"restart\": [[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]}", 422, "'restart'" },
		{ "{\"restart\": [[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]}", 400, "too deep" },
		{ "{\"restart\": true}}", 400, "no JSON" },
		{ "{\"a\": 1e999}", 400, "no JSON" },
		{ "{\"\\u001b[31m\": 1}", 422, "'\\x1b[31m'" },
		{ "\"x\"", 400, "no JSON" },
	};
	char detail[256], *deep = malloc(200000);

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		unsigned status = body_of(cases[i].body, strlen(cases[i].body), detail);

		if (status != cases[i].status || !strstr(detail, cases[i].detail))
			fail_msg("%s: %u %s", cases[i].body, status, detail);
	}
	assert_non_null(deep);
	memset(deep, '[', 200000);
	assert_int_equal(body_of(deep, 200000, detail), 400);
	memset(deep, ',', 200000);
	assert_int_equal(body_of(deep, 200000, detail), 400);
	free(deep);
}

static void
off_loopback_a_cookie_is_as_good_as_the_token(void **state)
{
	struct kr_access access = { .bind = "192.0.2.1", .password_hash = HASH, .session_expiry_days = 7 };
	const struct kr_api server = { .access = &access, .token = TOKEN };
	const struct kr_api other = { .access = &access, .token = "B" TOKEN };
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const char *cookie = kr_api_cookie_make(&arena, &server, 2000);
	const char *text = kr_arena_printf(&arena,
		"GET /api/repos HTTP/1.1\r\nHost: 192.0.2.1:1\r\nCookie: a=b; " KR_API_COOKIE "=%s\r\n\r\n", cookie);

	(void)state;
	assert_int_equal(judged(&server, true, "GET /api/repos HTTP/1.1\r\nHost: 192.0.2.1\r\n\r\n"), 401);
	assert_int_equal(judged(&server, false, text), 0);
	assert_int_equal(judged(&other, false, text), 401);
	assert_true(kr_api_cookie_holds(&arena, &server, cookie, 1999));
	assert_false(kr_api_cookie_holds(&arena, &server, cookie, 2000));
	assert_false(kr_api_cookie_holds(&arena, &server, "", 0));
	assert_false(kr_api_cookie_holds(&arena, &server, "18446744073709551615.", 0));
	access.password_hash = HASH "x";
	assert_int_equal(judged(&server, false, text), 401);
	access.password_hash = NULL;
	assert_false(kr_api_cookie_holds(&arena, &server, cookie, 0));
}

static void
secrets_are_the_same_or_not(void **state)
{
	(void)state;
	assert_true(kr_api_same_secret(TOKEN, TOKEN));
	assert_false(kr_api_same_secret("", TOKEN));
	assert_false(kr_api_same_secret(TOKEN "A", TOKEN));
	assert_false(kr_api_same_secret(TOKEN TOKEN, TOKEN));
	assert_false(kr_api_same_secret("A", "AA"));
	assert_false(kr_api_same_secret("", ""));
}

static void
an_error_has_its_status(void **state)
{
	struct kr_error err = { 0 };

	(void)state;
	kr_fail_errno(&err, KR_E_SYSTEM, ENOSPC, "x");
	assert_int_equal(kr_api_status_of(&err), 507);
	kr_fail(&err, KR_E_LIMIT, "x");
	assert_int_equal(kr_api_status_of(&err), 500);
	kr_fail(&err, KR_E_USAGE, "x");
	assert_int_equal(kr_api_status_of(&err), 422);
	kr_fail(&err, KR_E_BUSY, "x");
	assert_int_equal(kr_api_status_of(&err), 409);
	kr_fail(&err, KR_E_CONFIG, "x");
	assert_int_equal(kr_api_status_of(&err), 503);
}

/* ---- the token's file ---- */

static void
a_token_is_made_once_and_read_by_us_alone(void **state)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	char dir[] = "/tmp/kraft-unit-XXXXXX";
	const char *file, *first, *second;
	struct kr_error err = { 0 };
	struct kr_places places = { 0 };
	struct stat st;

	(void)state;
	places.run_dir = mkdtemp(dir);
	file = kr_arena_printf(&arena, "%s/token", dir);
	assert_int_equal(kr_api_token(&arena, &places, &first, &err), 0);
	assert_int_equal(kr_api_token(&arena, &places, &second, &err), 0);
	assert_string_equal(first, second);
	assert_int_equal(strlen(first), KR_API_TOKEN_CHARS);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_nlink, 1);
	assert_int_equal(chmod(file, 0640), 0);
	assert_int_equal(kr_api_token(&arena, &places, &second, &err), -1);
	assert_int_equal(err.code, KR_E_REFUSED);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(symlink("/dev/zero", file), 0);
	assert_int_equal(kr_api_token(&arena, &places, &second, &err), -1);
	assert_int_equal(err.code, KR_E_REFUSED);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(mkfifo(file, 0600), 0);
	assert_int_equal(kr_api_token(&arena, &places, &second, &err), -1);
	assert_int_equal(err.code, KR_E_REFUSED);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(close(open(file, O_CREAT | O_WRONLY, 0600)), 0);
	assert_int_equal(kr_api_token(&arena, &places, &second, &err), -1);
	assert_int_equal(err.code, KR_E_REFUSED);
	assert_int_equal(unlink(file), 0);
	assert_int_equal(kr_api_token(&arena, &places, &second, &err), 0);
	assert_string_not_equal(first, second);
	(void)unlink(file);
	(void)rmdir(dir);
}

/* ---- a connection ---- */

static char *
talk(const char *text, bool ends)
{
	int ends_fd[2];
	kr_auto_buf struct kr_buf out = KR_BUF(1 << 20);
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_fd), 0);
	pid = fork();
	if (pid == 0) {
		(void)close(ends_fd[1]);
		kr_api_connection(&api, ends_fd[0]);
		_exit(0);
	}
	(void)close(ends_fd[0]);
	assert_int_equal(kr_write_all(ends_fd[1], text, strlen(text), NULL), 0);
	if (ends)
		(void)shutdown(ends_fd[1], SHUT_WR);
	assert_int_equal(kr_read_all(ends_fd[1], &out, "answer", NULL), 0);
	(void)close(ends_fd[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return kr_xstrdup(out.data ? out.data : "");
}

static size_t
count(const char *text, const char *word)
{
	size_t n = 0;

	for (; (text = strstr(text, word)); text += strlen(word))
		n++;
	return n;
}

static void
requests_are_answered_in_order_on_one_connection(void **state)
{
	char *out = talk("GET /api/health HTTP/1.1\r\n" LOCAL "\r\nGET /api/nothing HTTP/1.1\r\n" LOCAL
					 "\r\nHEAD /api/health HTTP/1.1\r\n" LOCAL
					 "Connection: close\r\n\r\nGET /api/health HTTP/1.1\r\n" LOCAL "\r\n",
		false);

	(void)state;
	assert_int_equal(count(out, "HTTP/1.1 "), 3);
	assert_int_equal(count(out, "HTTP/1.1 404 "), 1);
	assert_int_equal(count(out, "\"status\": \"ok\""), 1);
	assert_int_equal(count(out, "run_dir"), 0);
	free(out);
}

static void
what_is_no_request_ends_the_connection(void **state)
{
	static const char *const texts[] = { "SSH-2.0-x\r\n", "GET /api/health HTTP/1.1\nHost: localhost\n\n",
		"GET /api/health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx" };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(texts); i++) {
		char *out = talk(texts[i], true);

		assert_int_equal(strncmp(out, "HTTP/1.1 400 ", 13), 0);
		assert_int_equal(count(out, "HTTP/1.1 "), 1);
		free(out);
	}
	free(talk("", true));
	free(talk("GET /api/he", true));
}

/* ---- whose connection it is ---- */

static int
loopback_pair(int family, int fds[2])
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr *address = family == AF_INET ? (struct sockaddr *)&four : (struct sockaddr *)&six;
	socklen_t n = family == AF_INET ? sizeof(four) : sizeof(six);
	kr_auto_fd int listener = socket(family, SOCK_STREAM, 0);

	if (listener < 0 || bind(listener, address, n) < 0)
		return -1;
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, address, &n), 0);
	fds[1] = socket(family, SOCK_STREAM, 0);
	assert_int_equal(connect(fds[1], address, n), 0);
	fds[0] = accept(listener, NULL, NULL);
	return fds[0];
}

static void
the_other_end_of_a_loopback_connection_has_a_user(void **state)
{
	static const int families[] = { AF_INET, AF_INET6 };
	int fds[2], pair[2];
	uid_t uid = 12345;
	struct kr_error err = { 0 };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(families); i++) {
		if (loopback_pair(families[i], fds) < 0)
			continue; /* a machine without IPv6 */
		assert_int_equal(kr_peer_uid(fds[0], &uid, &err), 0);
		assert_int_equal(uid, geteuid());
		(void)close(fds[1]);
		assert_int_equal(kr_peer_uid(fds[0], &uid, &err), -1);
		assert_int_equal(err.code, KR_E_NOT_FOUND);
		(void)close(fds[0]);
	}
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(kr_peer_uid(pair[0], &uid, &err), -1);
	assert_int_equal(err.code, KR_E_UNSUPPORTED);
	(void)close(pair[0]);
	(void)close(pair[1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_holds_together),
		cmocka_unit_test(what_changes_is_a_persons_CHN_12),
		cmocka_unit_test(a_request_is_judged_in_one_order),
		cmocka_unit_test(a_path_is_decoded_once_and_arguments_are_typed),
		cmocka_unit_test(a_body_is_counted_before_it_is_parsed),
		cmocka_unit_test(off_loopback_a_cookie_is_as_good_as_the_token),
		cmocka_unit_test(secrets_are_the_same_or_not),
		cmocka_unit_test(an_error_has_its_status),
		cmocka_unit_test(a_token_is_made_once_and_read_by_us_alone),
		cmocka_unit_test(requests_are_answered_in_order_on_one_connection),
		cmocka_unit_test(what_is_no_request_ends_the_connection),
		cmocka_unit_test(the_other_end_of_a_loopback_connection_has_a_user),
	};

	return cmocka_run_group_tests_name("api", tests, NULL, NULL);
}
