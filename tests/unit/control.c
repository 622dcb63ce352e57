/*
 * egress: the frames between kraft and kraft-egress. Both sides are taken for hostile: every field is bent,
 * frames are cut at every byte, and descriptors come where none may; after each the process has as many
 * descriptors as before.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "egress/control.h"

#include <cmocka.h>

static unsigned
open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* ---- checks ---- */

static struct kr_ask
ask_for(const char *host, unsigned port)
{
	struct kr_ask ask = { .type = KR_ASK_CONNECT, .id = 7, .port = port };

	assert_true(strlen(host) < sizeof(ask.host));
	memcpy(ask.host, host, strlen(host));
	return ask;
}

static bool
passes(const struct kr_ask *ask)
{
	struct kr_target target;

	return kr_ask_check(ask, &target);
}

static void
a_canonical_ask_passes(void **state)
{
	static const char *const hosts[] = { "x.example", "a", "1.2.3.4", "2001:db8::a", "::1",
		"xn--w-0ga12b.example", "localhost" };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(hosts); i++) {
		struct kr_ask ask = ask_for(hosts[i], 443);
		struct kr_target target;

		if (!kr_ask_check(&ask, &target))
			fail_msg("'%s' does not pass", hosts[i]);
		assert_string_equal(target.host, hosts[i]);
		assert_int_equal(target.port, 443);
		assert_int_equal(target.is_address, i >= 2 && i <= 4);
	}
}

static void
the_longest_name_passes_and_one_letter_more_does_not(void **state)
{
	struct kr_ask ask = ask_for("", 443);

	(void)state;
	for (size_t i = 0; i < KR_HOST_MAX; i++)
		ask.host[i] = i % 64 == 63 ? '.' : 'a';
	assert_true(passes(&ask));
	ask.host[KR_HOST_MAX] = 'a';
	assert_false(passes(&ask));
	memset(ask.host, 'a', sizeof(ask.host));
	assert_false(passes(&ask));
}

static void
no_other_spelling_of_a_host_passes_NET_13(void **state)
{
	static const char *const hosts[] = { "", "X.example", "x.example.", ".x.example", "x..example", "127.1",
		"0x7f.1", "2130706433", "0177.0.0.1", "1.2.3.4.", "1.2.3.4:80", "x.example:443", "[::1]", "[::1",
		"::1]", "::1]:80", "0:0:0:0:0:0:0:1", "2001:DB8::a", "fe80::1%1", "fe80::1%25eth0", "::ffff:1.2.3.4",
		"user@x.example", "x.example#y", "x.example/y", "x%2eexample", "x.example\\y", "x example",
		" x.example", "x.example\r\nHost: y", "*", "*.example", "x_y.example", "\xc3\xa9.example", "\x7f",
		":", "::", "1:2" };
	unsigned passed = 0;

	(void)state;
	for (size_t i = 0; i < KR_COUNT(hosts); i++) {
		struct kr_ask ask = ask_for(hosts[i], 443);

		if (strcmp(hosts[i], "::") == 0)
			passed += passes(&ask); /* canonical; the policy refuses it */
		else if (passes(&ask))
			fail_msg("'%s' passes", hosts[i]);
	}
	assert_int_equal(passed, 1);
}

static void
each_field_of_an_ask_is_checked_NET_14(void **state)
{
	struct kr_ask good = ask_for("x.example", 443), ask;
	static const uint32_t types[] = { 0, KR_ASK_TYPE_END, 99, UINT32_MAX };
	static const uint32_t ports[] = { 0, 65536, 443 + 65536, UINT32_MAX, 1u << 31 };

	(void)state;
	assert_true(passes(&good));
	for (size_t i = 0; i < KR_COUNT(types); i++) {
		ask = good;
		ask.type = types[i];
		assert_false(passes(&ask));
	}
	for (size_t i = 0; i < KR_COUNT(ports); i++) {
		ask = good;
		ask.port = ports[i];
		assert_false(passes(&ask));
	}
	ask = good;
	ask.client_port = 65536;
	assert_false(passes(&ask));
	for (size_t i = strlen(good.host) + 1; i < sizeof(ask.host); i++) {
		ask = good;
		ask.host[i] = 'x';
		assert_false(passes(&ask));
	}
}

static void
an_answer_is_one_of_four_kinds(void **state)
{
	static const struct {
		uint32_t type, status;
		const char *text;
		bool fd, good;
	} cases[] = {
		{ KR_ANSWER_DIRECT, 0, "", true, true },
		{ KR_ANSWER_DIRECT, 0, "", false, false },
		{ KR_ANSWER_DIRECT, 0, "x", true, false },
		{ KR_ANSWER_DIRECT, 403, "", true, false },
		{ KR_ANSWER_UPSTREAM, 0, "", true, true },
		{ KR_ANSWER_UPSTREAM, 0, "Basic eA==", true, true },
		{ KR_ANSWER_UPSTREAM, 0, "Basic eA==", false, false },
		{ KR_ANSWER_UPSTREAM, 0, "Basic\r\nX: y", true, false },
		{ KR_ANSWER_UPSTREAM, 200, "", true, false },
		{ KR_ANSWER_REFUSED, 403, "no", false, true },
		{ KR_ANSWER_REFUSED, 403, "no", true, false },
		{ KR_ANSWER_REFUSED, 403, "", false, false },
		{ KR_ANSWER_REFUSED, 200, "no", false, false },
		{ KR_ANSWER_REFUSED, 502, "no", false, false },
		{ KR_ANSWER_FAILED, 502, "no", false, true },
		{ KR_ANSWER_FAILED, 504, "no", false, true },
		{ KR_ANSWER_FAILED, 505, "no", false, false },
		{ KR_ANSWER_FAILED, 501, "no", false, false },
		{ KR_ANSWER_FAILED, 502, "no\n", false, false },
		{ KR_ANSWER_FAILED, 502, "\xc3\xa9", false, false },
		{ KR_ANSWER_FAILED, 502, "\x1b[2J", false, false },
		{ 0, 0, "", true, false },
		{ KR_ANSWER_TYPE_END, 0, "", true, false },
		{ UINT32_MAX, 0, "", true, false },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_answer answer = { .type = cases[i].type, .status = cases[i].status };

		snprintf(answer.text, sizeof(answer.text), "%s", cases[i].text);
		if (kr_answer_check(&answer, cases[i].fd) != cases[i].good)
			fail_msg("case %zu is not %d", i, cases[i].good);
		answer.zero = 1;
		assert_false(kr_answer_check(&answer, cases[i].fd));
		answer.zero = 0;
		memset(answer.text, 'x', sizeof(answer.text)); /* without its end */
		assert_false(kr_answer_check(&answer, cases[i].fd));
	}
}

static void
MAC_06_a_number_of_strangers_is_nothing_but_a_number(void **state)
{
	const struct kr_ask good = { .type = KR_ASK_STRANGERS, .id = 1 };
	struct kr_ask ask;

	(void)state;
	assert_true(passes(&good));
#define BAD(change)              \
	do {                         \
		ask = good;              \
		change;                  \
		assert_false(passes(&ask)); \
	} while (0)
	BAD(ask.id = 0);
	BAD(ask.port = 80);
	BAD(ask.client_port = 1);
	BAD(ask.bytes = 1);
	BAD(ask.host[0] = 'k');
#undef BAD
}

static void
SEN_02_what_is_told_of_tls_is_a_number_and_at_most_a_name(void **state)
{
	static const uint32_t without[] = { KR_TOLD_ECHO, KR_TOLD_NO_NAME, KR_TOLD_SERVER, KR_TOLD_HEAD + 1, KR_TOLD_END - 1 },
						  none[] = { 0, KR_TOLD_SERVER + 1, KR_TOLD_HEAD, KR_TOLD_END, UINT32_MAX };
	const struct kr_ask good = { .type = KR_ASK_TOLD, .id = 2, .bytes = KR_TOLD_OTHER_NAME, .host = "b.example" };
	struct kr_ask ask = good;

	(void)state;
	assert_true(passes(&good));
	memset(ask.host, 0, sizeof(ask.host));
	for (size_t i = 0; i < KR_COUNT(without); i++) {
		ask.bytes = without[i];
		assert_true(passes(&ask));
		assert_true(without[i] == KR_TOLD_ECHO || without[i] > KR_TOLD_HEAD || kr_told_words(without[i]));
		ask.host[0] = 'b';
		assert_false(passes(&ask));
		ask.host[0] = 0;
	}
	for (size_t i = 0; i < KR_COUNT(none); i++) {
		ask.bytes = none[i];
		assert_false(passes(&ask));
	}
#define BAD(change)              \
	do {                         \
		ask = good;              \
		change;                  \
		assert_false(passes(&ask)); \
	} while (0)
	BAD(ask.id = KR_MANAGED_RULES);
	BAD(ask.port = 443);
	BAD(ask.client_port = 1);
	BAD(ask.host[0] = 'B');
	BAD(ask.host[sizeof(ask.host) - 1] = 'x');
	BAD(memset(ask.host, 0, sizeof(ask.host)));
#undef BAD
}

static void
a_call_is_an_ask_without_a_host(void **state)
{
	struct kr_ask good = { .type = KR_ASK_CALL, .id = 7, .bytes = sizeof(struct kr_call) }, ask;
	static const uint32_t sizes[] = { 0, 1, sizeof(struct kr_call) - 1,
		KR_CALL_BYTES_MAX + 1, UINT32_MAX };

	(void)state;
	assert_true(passes(&good));
	good.bytes = KR_CALL_BYTES_MAX;
	assert_true(passes(&good));
	for (size_t i = 0; i < KR_COUNT(sizes); i++) {
		ask = good;
		ask.bytes = sizes[i];
		assert_false(passes(&ask));
	}
	ask = good;
	ask.port = 80;
	assert_false(passes(&ask));
	ask = good;
	ask.client_port = 65536;
	assert_false(passes(&ask));
	for (size_t i = 0; i < sizeof(ask.host); i++) {
		ask = good;
		ask.host[i] = 'k';
		assert_false(passes(&ask));
	}
	ask = ask_for("x.example", 443); /* and nothing follows any other */
	ask.bytes = sizeof(struct kr_call);
	assert_false(passes(&ask));
}

static void
a_calls_answer_has_a_body_of_bounded_size(void **state)
{
	struct kr_answer good = { .type = KR_ANSWER_CALL,
		.status = 200,
		.bytes = KR_CALL_ANSWER_BYTES,
		.next = INT64_MAX },
					 answer;

	(void)state;
	assert_true(kr_answer_check(&good, false));
	assert_false(kr_answer_check(&good, true));
#define BENT(what) \
	answer = good; \
	what;          \
	assert_false(kr_answer_check(&answer, false))
	BENT(answer.status = 199);
	BENT(answer.status = 600);
	BENT(answer.bytes++);
	BENT(answer.bytes = UINT32_MAX);
	BENT(answer.next = -1);
	BENT(answer.zero = 1);
	BENT(answer.zero2 = 1);
	BENT(answer.text[0] = 'x');
	BENT(answer = ((struct kr_answer){ .type = KR_ANSWER_REFUSED, .status = 403, .text = "no", .bytes = 1 }));
	BENT(answer = ((struct kr_answer){ .type = KR_ANSWER_REFUSED, .status = 403, .text = "no", .next = 1 }));
#undef BENT
	answer = (struct kr_answer){ .type = KR_ANSWER_REFUSED, .status = 403, .text = "no" };
	assert_true(kr_answer_check(&answer, false));
}

/* ---- moving ---- */

struct pair {
	int a, b;
	unsigned before;
};

static void
open_pair(struct pair *p)
{
	int fds[2];

	p->before = open_descriptors();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	p->a = fds[0];
	p->b = fds[1];
}

static void
close_pair(struct pair *p)
{
	kr_close_p(&p->a);
	kr_close_p(&p->b);
	assert_int_equal(open_descriptors(), p->before);
}

/* n bytes with as many copies of standard input as descriptors. */
static void
send_raw(int fd, const void *bytes, size_t n, size_t descriptors)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(16 * sizeof(int))];
	} room = { .bytes = { 0 } };
	struct iovec part = { (void *)(uintptr_t)bytes, n };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(descriptors <= 16);
	if (descriptors) {
		message.msg_control = room.bytes;
		message.msg_controllen = CMSG_SPACE(descriptors * sizeof(int));
		room.align = (struct cmsghdr){
			.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(descriptors * sizeof(int))
		};
		for (size_t i = 0; i < descriptors; i++)
			memcpy(CMSG_DATA(&room.align) + i * sizeof(int), &null, sizeof(int));
	}
	assert_int_equal(sendmsg(fd, &message, MSG_NOSIGNAL), n);
	close(null);
}

static void
a_frame_comes_whole_with_its_descriptor(void **state)
{
	struct kr_answer sent = { .type = KR_ANSWER_DIRECT, .id = 3 }, got;
	struct kr_frame frame = { .bytes = &got, .size = sizeof(got), .fd = -1 };
	struct stat a, b;
	struct pair p;
	uint32_t used = 0;

	(void)state;
	open_pair(&p);
	assert_int_equal(kr_frame_read(p.b, &frame, true), KR_FRAME_MORE);
	assert_int_equal(kr_frame_write(p.a, &sent, sizeof(sent), &used, p.a), 1);
	assert_int_equal(kr_frame_read(p.b, &frame, true), KR_FRAME_DONE);
	assert_memory_equal(&got, &sent, sizeof(got));
	assert_true(frame.fd >= 0);
	assert_true(fcntl(frame.fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(fstat(frame.fd, &a) | fstat(p.a, &b), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	close(frame.fd);
	close_pair(&p);
}

static void
frames_in_a_row_keep_their_own_descriptors(void **state)
{
	struct kr_answer sent = { 0 }, got;
	struct kr_frame frame = { .bytes = &got, .size = sizeof(got), .fd = -1 };
	struct pair p;

	(void)state;
	open_pair(&p);
	for (uint32_t i = 0; i < 16; i++) {
		uint32_t used = 0;

		sent.id = i;
		assert_int_equal(kr_frame_write(p.a, &sent, sizeof(sent), &used, i % 3 == 1 ? p.a : -1), 1);
	}
	for (uint32_t i = 0; i < 16; i++) {
		assert_int_equal(kr_frame_read(p.b, &frame, true), KR_FRAME_DONE);
		assert_int_equal(got.id, i);
		assert_int_equal(frame.fd >= 0, i % 3 == 1);
		kr_close_p(&frame.fd);
		frame.used = 0;
	}
	assert_int_equal(kr_frame_read(p.b, &frame, true), KR_FRAME_MORE);
	close_pair(&p);
}

static void
a_frame_cut_anywhere_is_put_together(void **state)
{
	struct kr_ask sent = ask_for("x.example", 443), got;

	(void)state;
	for (size_t cut = 1; cut < sizeof(sent); cut++) {
		struct kr_frame frame = { .bytes = &got, .size = sizeof(got), .fd = -1 };
		struct pair p;

		open_pair(&p);
		send_raw(p.a, &sent, cut, cut % 2);
		assert_int_equal(kr_frame_read(p.b, &frame, true), KR_FRAME_MORE);
		assert_int_equal(frame.used, cut);
		send_raw(p.a, (char *)&sent + cut, sizeof(sent) - cut, 0);
		assert_int_equal(kr_frame_read(p.b, &frame, true), KR_FRAME_DONE);
		assert_memory_equal(&got, &sent, sizeof(got));
		assert_int_equal(frame.fd >= 0, cut % 2);
		kr_close_p(&frame.fd);
		close_pair(&p);
	}
}

static void
descriptors_that_must_not_come_end_it_and_none_stays_open(void **state)
{
	static const struct {
		size_t first, second; /* descriptors with the first byte, with the rest */
		bool takes;
	} cases[] = { { 2, 0, true }, { 3, 0, true }, { 4, 0, true }, { 5, 0, true }, { 16, 0, true },
		{ 0, 1, true }, { 1, 1, true }, { 0, 16, true }, { 1, 0, false }, { 16, 0, false }, { 0, 1, false } };
	struct kr_ask ask = ask_for("x.example", 443), got;

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_frame frame = { .bytes = &got, .size = sizeof(got), .fd = -1 };
		enum kr_frame_state first;
		struct pair p;

		open_pair(&p);
		send_raw(p.a, &ask, 1, cases[i].first);
		first = kr_frame_read(p.b, &frame, cases[i].takes);
		if (first == KR_FRAME_MORE) {
			send_raw(p.a, (char *)&ask + 1, sizeof(ask) - 1, cases[i].second);
			first = kr_frame_read(p.b, &frame, cases[i].takes);
		}
		if (first != KR_FRAME_END)
			fail_msg("case %zu is taken", i);
		assert_int_equal(frame.fd, -1);
		close_pair(&p);
	}
}

static void
the_end_of_the_other_side_is_told_and_leaves_nothing_open(void **state)
{
	struct kr_answer answer = { .type = KR_ANSWER_DIRECT }, got;
	struct kr_frame frame = { .bytes = &got, .size = sizeof(got), .fd = -1 };
	uint32_t used = 0;
	struct pair p;

	(void)state;
	open_pair(&p);
	send_raw(p.a, &answer, 100, 1);
	assert_int_equal(kr_frame_read(p.b, &frame, true), KR_FRAME_MORE);
	assert_true(frame.fd >= 0);
	kr_close_p(&p.a);
	assert_int_equal(kr_frame_read(p.b, &frame, true), KR_FRAME_END);
	assert_int_equal(frame.fd, -1);
	/* Without a SIGPIPE, which would end this test. */
	assert_int_equal(kr_frame_write(p.b, &answer, sizeof(answer), &used, -1), -1);
	assert_int_equal(errno, EPIPE);
	close_pair(&p);
}

static void
a_full_socket_takes_the_rest_later(void **state)
{
	struct kr_answer answer = { .type = KR_ANSWER_DIRECT }, got;
	struct kr_frame frame = { .bytes = &got, .size = sizeof(got), .fd = -1 };
	uint32_t used = 0, sent = 0;
	struct pair p;
	int status;

	(void)state;
	open_pair(&p);
	memset(answer.text, 'x', sizeof(answer.text) - 1);
	while ((status = kr_frame_write(p.a, &answer, sizeof(answer), &used, p.b)) == 1) {
		answer.id = ++sent;
		used = 0;
	}
	assert_int_equal(status, 0);
	assert_true(sent > 10);
	for (uint32_t i = 0; i <= sent; i++) {
		if (status == 0)
			status = kr_frame_write(p.a, &answer, sizeof(answer), &used, p.b);
		assert_int_equal(kr_frame_read(p.b, &frame, true), KR_FRAME_DONE);
		assert_int_equal(got.id, i);
		assert_true(frame.fd >= 0);
		kr_close_p(&frame.fd);
		frame.used = 0;
	}
	assert_int_equal(status, 1);
	assert_int_equal(kr_frame_read(p.b, &frame, true), KR_FRAME_MORE);
	close_pair(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_canonical_ask_passes),
		cmocka_unit_test(the_longest_name_passes_and_one_letter_more_does_not),
		cmocka_unit_test(no_other_spelling_of_a_host_passes_NET_13),
		cmocka_unit_test(each_field_of_an_ask_is_checked_NET_14),
		cmocka_unit_test(an_answer_is_one_of_four_kinds),
		cmocka_unit_test(MAC_06_a_number_of_strangers_is_nothing_but_a_number),
		cmocka_unit_test(SEN_02_what_is_told_of_tls_is_a_number_and_at_most_a_name),
		cmocka_unit_test(a_call_is_an_ask_without_a_host),
		cmocka_unit_test(a_calls_answer_has_a_body_of_bounded_size),
		cmocka_unit_test(a_frame_comes_whole_with_its_descriptor),
		cmocka_unit_test(frames_in_a_row_keep_their_own_descriptors),
		cmocka_unit_test(a_frame_cut_anywhere_is_put_together),
		cmocka_unit_test(descriptors_that_must_not_come_end_it_and_none_stays_open),
		cmocka_unit_test(the_end_of_the_other_side_is_told_and_leaves_nothing_open),
		cmocka_unit_test(a_full_socket_takes_the_rest_later),
	};

	return cmocka_run_group_tests_name("control", tests, NULL, NULL);
}
