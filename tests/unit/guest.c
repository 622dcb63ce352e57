/* The judging parts of launcher and init (guest/protocol.c): the same code as in the guest, without a system
 * call. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "guest/protocol.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct kg_message
message(uint32_t type, int32_t a, int32_t b)
{
	return (struct kg_message){ .type = type, .a = a, .b = b };
}

static bool
take(struct kg_talk *talk, uint32_t type, int32_t a, int32_t b, size_t fds)
{
	struct kg_message m = message(type, a, b);

	return kg_talk_take(talk, &m, fds);
}

/* ---- messages of the init ---- */

static void
an_ordinary_talk(void **state)
{
	struct kg_talk talk = { 0 };

	(void)state;
	assert_true(take(&talk, KG_TERMINAL, 0, 0, 1));
	assert_true(take(&talk, KG_STARTED, 0, 0, 0));
	assert_true(take(&talk, KG_STOPPED, 20, 0, 0));
	assert_true(take(&talk, KG_CONTINUED, 0, 0, 0));
	assert_true(take(&talk, KG_STOPPED, 19, 0, 0));
	assert_true(take(&talk, KG_EXIT, 3, 0, 0));
	assert_int_equal(talk.last_word, KG_EXIT);
}

/* Every type twice in every state: what must not come does not, and nothing changes by it. */
static void
nothing_comes_out_of_turn(void **state)
{
	(void)state;
	for (uint32_t type = 0; type < KG_TYPE_END + 2; type++) {
		struct kg_talk fresh = { 0 }, started = { .started = true },
					   ended = { .started = true, .last_word = KG_EXIT };
		bool early =
			type == KG_STARTED || type == KG_EXEC_FAILED || type == KG_WALL || type == KG_LAUNCH_FAILED;
		bool late = type == KG_STOPPED || type == KG_EXIT || type == KG_LEFT || type == KG_OOM;
		int32_t b = 0;

		if (type == KG_STARTED || type == KG_TERMINAL || type == KG_CONTINUED)
			assert_false(take(&fresh, type, 1, 0, 0));
		assert_int_equal(take(&fresh, type, type == KG_STARTED ? 0 : KG_FAULT_CWD, b, 0), early);
		assert_int_equal(take(&started, type, 5, 0, 0), late);
		assert_int_equal(take(&ended, type, 0, 0, 0), false);
		assert_int_equal(take(&ended, type, 5, 0, 0), false);
	}
}

static void
a_descriptor_comes_once_and_with_the_terminal_only(void **state)
{
	(void)state;
	for (uint32_t type = 0; type < KG_TYPE_END; type++) {
		struct kg_talk talk = { .started = type == KG_STOPPED || type == KG_CONTINUED || type == KG_EXIT };
		struct kg_talk before = talk;

		if (type != KG_TERMINAL)
			assert_false(take(&talk, type, 0, 0, 1));
		assert_false(take(&talk, type, 0, 0, 2));
		assert_memory_equal(&talk, &before, sizeof(talk));
	}
	struct kg_talk talk = { 0 };
	assert_false(take(&talk, KG_TERMINAL, 0, 0, 0));
	assert_true(take(&talk, KG_TERMINAL, 0, 0, 1));
	assert_false(take(&talk, KG_TERMINAL, 0, 0, 1));
	assert_true(take(&talk, KG_STARTED, 0, 0, 0));
	assert_false(take(&talk, KG_TERMINAL, 0, 0, 1));
}

static void
what_is_left_comes_once_before_the_end_in_so_many_pieces(void **state)
{
	struct kg_talk talk = { .started = true };

	(void)state;
	assert_false(take(&talk, KG_LEFT_NAMES, 1, 1, 0));
	assert_false(take(&talk, KG_LEFT, 0, 0, 0));
	assert_false(take(&talk, KG_LEFT, -1, 0, 0));
	assert_false(take(&talk, KG_LEFT, 1, 1, 0));
	assert_false(take(&talk, KG_LEFT, INT32_MAX, 0, 0));
	assert_true(take(&talk, KG_LEFT, 3, 0, 0));
	assert_false(take(&talk, KG_LEFT, 3, 0, 0));
	for (int i = 0; i < KG_LEFT_PIECES; i++)
		assert_true(take(&talk, KG_LEFT_NAMES, -1, INT32_MIN, 0));
	assert_false(take(&talk, KG_LEFT_NAMES, 1, 1, 0));
	assert_true(take(&talk, KG_EXIT, 0, 0, 0));
	assert_false(take(&talk, KG_LEFT, 3, 0, 0));
}

static void
kills_for_want_of_memory_are_told_once_before_the_end(void **state)
{
	struct kg_talk fresh = { 0 }, talk = { .started = true };

	(void)state;
	assert_false(take(&fresh, KG_OOM, 1, 0, 0));
	assert_false(take(&talk, KG_OOM, 0, 0, 0));
	assert_false(take(&talk, KG_OOM, -1, 0, 0));
	assert_false(take(&talk, KG_OOM, 1, 1, 0));
	assert_true(take(&talk, KG_OOM, INT32_MAX, 0, 0));
	assert_false(take(&talk, KG_OOM, 1, 0, 0));
	assert_true(take(&talk, KG_EXIT, 137, 9, 0));
	assert_false(take(&talk, KG_OOM, 1, 0, 0));
}

static void
the_name_of_a_process(void **state)
{
	static const struct {
		const char *stat, *name; /* name NULL: it is none */
		char state;
	} cases[] = {
		{ "12 (sleep) S 1 1", "sleep", 'S' },
		{ "1 (a) b) S) R 1", "a) b) S", 'R' },
		{ "1 () Z", "", 'Z' },
		{ "1 (0123456789abcdefgh) S 1", "0123456789abcde", 'S' },
		{ "1 (a\n\033) S 1", "a\n\033", 'S' },
		{ "1 (a)", NULL, 0 },
		{ "1 (a) ", NULL, 0 },
		{ "1 (a)S 1", NULL, 0 },
		{ "1 )a( S", NULL, 0 },
		{ "1 a", NULL, 0 },
		{ "", NULL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char name[KG_LEFT_NAME], letter;
		bool is_one = kg_stat_name(cases[i].stat, strlen(cases[i].stat), name, &letter);

		assert_int_equal(is_one, cases[i].name != NULL);
		if (!is_one)
			continue;
		assert_string_equal(name, cases[i].name);
		assert_int_equal(letter, cases[i].state);
	}
}

static void
values_out_of_range(void **state)
{
	static const struct kg_message wrong_early[] = {
		{ KG_EXEC_FAILED, 0, 0, 0 },
		{ KG_EXEC_FAILED, -1, 0, 0 },
		{ KG_EXEC_FAILED, 4096, 0, 0 },
		{ KG_EXEC_FAILED, 2, 1, 0 },
		{ KG_WALL, -1, 0, 0 },
		{ KG_WALL, 0, 4096, 0 },
		{ KG_WALL, 0, -1, 0 },
		{ KG_LAUNCH_FAILED, KG_FAULT_KEYRING, 0, 0 },
		{ KG_LAUNCH_FAILED, KG_FAULT_BWRAP, 0, 0 },
		{ KG_LAUNCH_FAILED, KG_FAULT_NAMESPACE, 0, 0 },
		{ KG_LAUNCH_FAILED, KG_FAULT_NONE, 0, 0 },
		{ KG_LAUNCH_FAILED, KG_FAULT_CLIENT, 2, 0 },
		{ KG_LAUNCH_FAILED, KG_FAULT_RUNTIME, 0, 0 },
		{ KG_LAUNCH_FAILED, KG_FAULT_END, 0, 0 },
		{ KG_LAUNCH_FAILED, KG_FAULT_FILTER, -1, 0 },
		{ KG_STREAMS, 0, 0, 0 },
		{ KG_FILTER, 8, 0, 0 },
		{ KG_LAUNCH_FAILED, KG_FAULT_CWD, -1, 0 },
		{ KG_STARTED, 0, 0, 1 },
		{ KG_STARTED, 0, 1, 0 },
	};
	static const struct kg_message wrong_late[] = {
		{ KG_EXIT, -1, 0, 0 },
		{ KG_EXIT, 256, 0, 0 },
		{ KG_EXIT, 137, 65, 0 },
		{ KG_EXIT, 0, 9, 0 },
		{ KG_EXIT, 137, -9, 0 },
		{ KG_EXIT, 0, 0, 7 },
		{ KG_STOPPED, 0, 0, 0 },
		{ KG_STOPPED, 65, 0, 0 },
		{ KG_CONTINUED, 1, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(wrong_early); i++) {
		struct kg_talk talk = { 0 };

		assert_false(kg_talk_take(&talk, &wrong_early[i], 0));
		assert_int_equal(talk.last_word, 0);
	}
	for (size_t i = 0; i < COUNT(wrong_late); i++) {
		struct kg_talk talk = { .started = true };

		assert_false(kg_talk_take(&talk, &wrong_late[i], 0));
		assert_int_equal(talk.last_word, 0);
	}
}

static void
orders_of_kraft(void **state)
{
	(void)state;
	for (uint32_t type = 0; type < KG_TYPE_END; type++)
		for (int32_t a = -1; a < 70; a++) {
			struct kg_message m = message(type, a, 0);
			bool good = (type == KG_SIGNAL && a >= 1 && a <= 64) || (type == KG_KILL && a == 0);

			assert_int_equal(kg_order_valid(&m), good);
			m.b = 1;
			assert_false(kg_order_valid(&m));
			m.b = 0;
			m.zero = 1;
			assert_false(kg_order_valid(&m));
		}
}

/* ---- how it ended ---- */

static void
check_result(const struct kg_talk *talk, bool killed, const char *expected)
{
	struct kg_result result = kg_result_of(talk, killed);
	char text[KG_RESULT_BYTES + 1] = "";

	assert_int_equal(kg_result_text(&result, text), strlen(expected));
	assert_string_equal(text, expected);
}

/* OS-LCH-08 to -11: the command's own code; 125, 126, 127 otherwise; 137 when it was ended from outside. */
static void
results(void **state)
{
	struct kg_talk talk = { .started = true, .last_word = KG_EXIT, .a = 3 };

	(void)state;
	check_result(&talk, false, "3 0 started\n");
	check_result(&talk, true, "3 0 started\n");
	talk = (struct kg_talk){ .started = true, .last_word = KG_EXIT, .a = 143, .b = 15 };
	check_result(&talk, false, "143 15 started\n");
	talk = (struct kg_talk){ .last_word = KG_EXEC_FAILED, .a = EACCES };
	check_result(&talk, false, "126 0 not-started\n");
	talk.a = EPERM;
	check_result(&talk, false, "126 0 not-started\n");
	talk.a = ENOENT;
	check_result(&talk, false, "127 0 not-started\n");
	talk = (struct kg_talk){ .last_word = KG_WALL, .a = 4, .b = ESTALE };
	check_result(&talk, false, "125 0 not-started\n");
	talk = (struct kg_talk){ 0 };
	check_result(&talk, false, "125 0 not-started\n");
	check_result(&talk, true, "137 9 not-started\n");
	talk.started = true;
	check_result(&talk, false, "137 9 started\n");
}

static void
wait_statuses(void **state)
{
	(void)state;
	for (int code = 0; code < 256; code++) {
		struct kg_message m = kg_exit_message(code << 8);

		assert_int_equal(m.type, KG_EXIT);
		assert_int_equal(m.a, code);
		assert_int_equal(m.b, 0);
	}
	for (int signal = 1; signal <= 64; signal++) {
		struct kg_message m = kg_exit_message(signal | 0x80 /* core */);
		struct kg_talk talk = { .started = true };

		assert_int_equal(m.a, 128 + signal);
		assert_int_equal(m.b, signal);
		assert_true(kg_talk_take(&talk, &m, 0));
	}
}

static void
exec_errors(void **state)
{
	(void)state;
	for (int e = 1; e < 134; e++)
		assert_int_equal(kg_exec_exit(e), e == EACCES || e == EPERM ? 126 : 127);
}

/* OS-LCH-07 */
static void
a_signal_reaches_the_command_once(void **state)
{
	(void)state;
	assert_int_equal(kg_signal_targets(7, 7), KG_TO_GROUP);
	assert_int_equal(kg_signal_targets(7, 9), KG_TO_GROUP | KG_TO_COMMAND);
	assert_int_equal(kg_signal_targets(7, -1), KG_TO_GROUP | KG_TO_COMMAND);
}

/* ---- numbers and blocks ---- */

static void
check_number(const char *text, uint64_t max, bool good, uint64_t value, const char *rest)
{
	const char *at = text;
	uint64_t out = 99;

	assert_int_equal(kg_number(&at, text + strlen(text), max, &out), good);
	assert_int_equal(out, good ? value : 99);
	assert_string_equal(at, good ? rest : text);
}

static void
numbers(void **state)
{
	char text[21] = "";

	(void)state;
	check_number("0", 5, true, 0, "");
	check_number("5x", 5, true, 5, "x");
	check_number("6", 5, false, 0, "");
	check_number("", 5, false, 0, "");
	check_number("-1", 5, false, 0, "");
	check_number(" 1", 5, false, 0, "");
	check_number("18446744073709551615", UINT64_MAX, true, UINT64_MAX, "");
	check_number("18446744073709551616", UINT64_MAX, false, 0, "");
	check_number("99999999999999999999999999", UINT64_MAX, false, 0, "");
	check_number("9", 3, false, 0, "");
	assert_int_equal(kg_decimal(0, text), 1);
	assert_string_equal(text, "0");
	assert_int_equal(kg_decimal(UINT64_MAX, text), 20);
	assert_string_equal(text, "18446744073709551615");
}

static void
verify_block(void **state)
{
	static const char block[] = "64768 12 1 /usr\0"
								"7 18446744073709551615 0 /a b\0"
								"16384 1 3 /vm";
	const char *at = block, *end = block + sizeof(block);
	struct kg_verify out;

	(void)state;
	assert_int_equal(kg_verify_next(&at, end, &out), 1);
	assert_true(out.device == 64768 && out.inode == 12 && out.read_only);
	assert_string_equal(out.path, "/usr");
	assert_int_equal(kg_verify_next(&at, end, &out), 1);
	assert_true(out.device == 7 && out.inode == UINT64_MAX && !out.read_only && !out.is_elsewhere);
	assert_string_equal(out.path, "/a b");
	assert_int_equal(kg_verify_next(&at, end, &out), 1);
	assert_true(out.device == 16384 && out.inode == 1 && out.read_only && out.is_elsewhere);
	assert_int_equal(kg_verify_next(&at, end, &out), 0);
}

static void
malformed_verify_blocks(void **state)
{
	static const char *const wrong[] = { "", " ", "1", "1 ", "1 2", "1 2 ", "1 2 0", "1 2 0 ", "1 2 0 usr",
		"1 2 4 /usr", "1  2 0 /usr", "x 2 0 /usr", "1 2 0/usr", "-1 2 0 /usr",
		"18446744073709551616 2 0 /usr" };
	struct kg_verify out;

	(void)state;
	for (size_t i = 0; i < COUNT(wrong); i++) {
		const char *at = wrong[i];

		assert_int_equal(kg_verify_next(&at, at + strlen(at) + 1, &out), -1);
	}
	const char *at = "1 2 0 /usr"; /* no NUL before the end */
	assert_int_equal(kg_verify_next(&at, at + 10, &out), -1);
}

static void
environment_block(void **state)
{
	(void)state;
	assert_int_equal(kg_env_count("", 0), 0);
	assert_int_equal(kg_env_count("A=1\0B=", 7), 2);
	assert_int_equal(kg_env_count("A=a=b", 6), 1);
	assert_int_equal(kg_env_count("A=1", 3), -1);
	assert_int_equal(kg_env_count("A", 2), -1);
	assert_int_equal(kg_env_count("=x", 3), -1);
	assert_int_equal(kg_env_count("A=1\0\0", 5), -1);
}

/* ---- in a container ---- */

static void
add_word(char *text, size_t room, const char *word)
{
	size_t at = strlen(text), n = strlen(word);

	assert_true(at + n + 2 <= room);
	memcpy(text + at, word, n);
	memcpy(text + at + n, " ", 2);
}

static void
check_merge(const char *const *under, const char *block, size_t bytes, const char *expected)
{
	const char *out[16];
	char text[128] = "";
	size_t n = kg_env_merge((char *const *)under, block, bytes, out);

	assert_null(out[n]);
	for (size_t i = 0; i < n; i++) {
		add_word(text, sizeof(text), out[i]);
	}
	assert_string_equal(text, expected);
}

static void
the_variables_of_the_start_lie_over_those_of_the_image(void **state)
{
	const char *none[] = { NULL },
			   *image[] = { "A=1", "AB=2", "nothing", "=x", "", "B==y", "A=3", "C=", NULL };

	(void)state;
	check_merge(none, "", 0, "");
	check_merge(none, "A=1\0B=", 7, "A=1 B= ");
	check_merge(image, "", 0, "A=1 AB=2 B==y A=3 C= ");
	check_merge(image, "A=9\0C=c", 8, "AB=2 B==y A=9 C=c ");
	check_merge(image, "B=", 3, "A=1 AB=2 A=3 C= B= ");
}

static void
a_variable_is_found_by_its_whole_name(void **state)
{
	const char *list[] = { "PATHS=1", "PAT=2", "PATH=a=b", "PATH=c", "PATH", NULL };
	char *const *variables = (char *const *)list;

	(void)state;
	assert_string_equal(kg_env_find(variables, "PATH"), "PATH=a=b");
	assert_null(kg_env_find(variables, "PA"));
	assert_null(kg_env_find(variables + 4, "PATH"));
}

static void
check_path(const char *path, const char *name, const char *expected)
{
	const char *at = path;
	char place[KG_PATH_ROOM], text[128] = "";

	while (kg_path_next(&at, name, place)) {
		add_word(text, sizeof(text), place);
	}
	assert_string_equal(text, expected);
}

static void
a_command_is_looked_up_in_absolute_directories_only(void **state)
{
	(void)state;
	check_path("/bin:/usr/bin", "sh", "/bin/sh /usr/bin/sh ");
	check_path("/bin", "sh", "/bin/sh ");
	check_path("", "sh", "");
	check_path(":", "sh", "");
	check_path(":/bin::.:bin:../x:/usr/bin:", "sh", "/bin/sh /usr/bin/sh ");
	check_path("/", "sh", "//sh ");
	check_path("/bin", "", "");
}

static void
a_place_that_is_too_long_is_passed_over(void **state)
{
	static char path[2 * KG_PATH_ROOM], place[KG_PATH_ROOM];

	(void)state;
	for (size_t n = KG_PATH_ROOM - 8; n < KG_PATH_ROOM + 8; n++) {
		const char *at = path;
		bool fits = n + strlen("/sh") < KG_PATH_ROOM;

		memset(path, 'd', n);
		path[0] = '/';
		memcpy(path + n, ":/bin", sizeof(":/bin"));
		assert_true(kg_path_next(&at, "sh", place));
		assert_int_equal(strlen(place), fits ? n + 3 : strlen("/bin/sh"));
		assert_int_equal(kg_path_next(&at, "sh", place), fits);
	}
}

static void
the_kernels_count_of_kills(void **state)
{
	static const struct {
		const char *text;
		uint64_t kills;
	} cases[] = {
		{ "low 0\nhigh 0\nmax 7\noom 3\noom_kill 2\noom_group_kill 1\n", 2 },
		{ "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n", 5 },
		{ "oom_kill 0\n", 0 },
		{ "oom_kill 12", 0 }, /* cut off */
		{ "oom_kill \n", 0 },
		{ "oom_kill -1\n", 0 },
		{ "oom_kill 1 2\n", 0 },
		{ "xoom_kill 1\n", 0 },
		{ "oom_kill\n1\n", 0 },
		{ "\n\noom_kill 4\n", 4 },
		{ "oom_kill 99999999999999999999\n", 0 },
		{ "", 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_int_equal(kg_oom_kills(cases[i].text, strlen(cases[i].text)), cases[i].kills);
}

static void
how_long_the_launcher_waits_for_a_container(void **state)
{
	struct kg_client client = { .started_at = 1000 };

	(void)state;
	assert_int_equal(kg_client_patience(&client, 1000), 900000);
	assert_int_equal(kg_client_patience(&client, 900999), 1);
	assert_int_equal(kg_client_patience(&client, 901000), 0);
	assert_int_equal(kg_client_patience(&client, 999999), 0);
	client.ended = true;
	client.ended_at = 880000;
	assert_int_equal(kg_client_patience(&client, 880000), 15000);
	assert_int_equal(kg_client_patience(&client, 901000), 0); /* and not sooner than 15 s after its end */
	client.ended_at = 900990;
	assert_int_equal(kg_client_patience(&client, 901000), 14990);
	client.code = 7;
	assert_int_equal(kg_client_patience(&client, 900990), 0); /* it says itself that there is none */
}

/* ---- capped file systems given up ---- */

#define ARGS(text) text, sizeof(text) /* with the final NUL */

static void
check_uncap(const char *args, size_t bytes, const char *expected, size_t expected_bytes)
{
	char *out = malloc(bytes + KG_UNCAP_ROOM); /* exactly the room that is promised */

	assert_int_equal(kg_args_uncap(args, bytes, "/s/tmp", "/tmp", 2147483648u, out), expected_bytes);
	assert_memory_equal(out, expected, expected_bytes);
	free(out);
}

static void
capped_binds_become_tmpfs(void **state)
{
	(void)state;
	check_uncap(ARGS("--proc\0/proc\0--bind\0/s/tmp\0/tmp\0--remount-ro\0/"),
		ARGS("--proc\0/proc\0--perms\0"
			 "1777\0--size\0"
			 "2147483648\0--tmpfs\0/tmp\0--remount-ro\0/"));
	check_uncap(ARGS("--bind\0/s/tmp\0/tmp"), ARGS("--perms\0"
												   "1777\0--size\0"
												   "2147483648\0--tmpfs\0/tmp"));
	check_uncap(ARGS("--bind\0/s/tmp\0/tmp2"), "", 0);
	check_uncap(ARGS("--ro-bind\0/s/tmp\0/tmp"), "", 0);
	check_uncap(ARGS("--bind\0/s/tmp\0/tmp\0--bind\0/s/tmp\0/tmp"), "", 0);
	check_uncap("", 0, "", 0);
	check_uncap("--bind\0/s/tmp\0/tmp", 18, "", 0); /* the last argument has no end */
}

static void
mac_06_the_proxy_of_a_session_and_its_token(void **state)
{
	static const struct {
		const char *url;
		int port;
		const char *basic;
	} cases[] = {
		{ "http://kraft:abc@127.0.0.1:49152", 49152, "a3JhZnQ6YWJj" },
		{ "http://kraft:ab@127.0.0.1:1/", 1, "a3JhZnQ6YWI=" },
		{ "http://kraft:a@127.0.0.1:65535", 65535, "a3JhZnQ6YQ==" },
		{ "http://127.0.0.1:3128", 0, NULL },
		{ "http://kraft@127.0.0.1:3128", 0, NULL },
		{ "http://kraft:abc@127.0.0.1:0", 0, NULL },
		{ "http://kraft:abc@127.0.0.1:65536", 0, NULL },
		{ "http://kraft:abc@127.0.0.1:31 28", 0, NULL },
		{ "http://kraft:abc@127.0.0.1.example:3128", 0, NULL },
		{ "http://kraft:abc@proxy.example:3128", 0, NULL },
		{ "http://kraft:abc@", 0, NULL },
		{ "https://kraft:abc@127.0.0.1:3128", 0, NULL },
		{ "http://kraft:a%41@127.0.0.1:3128", 0, NULL },
		{ "", 0, NULL },
	};
	char longest[256] = "http://kraft:", too_long[256];
	struct kg_proxy proxy;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		bool is_one = kg_proxy_parse(cases[i].url, &proxy);

		assert_int_equal(is_one, cases[i].basic != NULL);
		if (is_one) {
			assert_int_equal(proxy.port, cases[i].port);
			assert_string_equal(proxy.basic, cases[i].basic);
		}
	}
	memset(longest + 13, 'x', KG_PROXY_NAME - 6);
	strcpy(longest + 7 + KG_PROXY_NAME, "@127.0.0.1:80");
	assert_true(kg_proxy_parse(longest, &proxy));
	assert_int_equal(strlen(proxy.basic), KG_BASIC_ROOM - 1);
	memcpy(too_long, longest, 7);
	too_long[7] = 'k';
	strcpy(too_long + 8, longest + 7);
	assert_false(kg_proxy_parse(too_long, &proxy));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_ordinary_talk),
		cmocka_unit_test(nothing_comes_out_of_turn),
		cmocka_unit_test(a_descriptor_comes_once_and_with_the_terminal_only),
		cmocka_unit_test(what_is_left_comes_once_before_the_end_in_so_many_pieces),
		cmocka_unit_test(kills_for_want_of_memory_are_told_once_before_the_end),
		cmocka_unit_test(the_name_of_a_process),
		cmocka_unit_test(values_out_of_range),
		cmocka_unit_test(orders_of_kraft),
		cmocka_unit_test(results),
		cmocka_unit_test(wait_statuses),
		cmocka_unit_test(exec_errors),
		cmocka_unit_test(a_signal_reaches_the_command_once),
		cmocka_unit_test(numbers),
		cmocka_unit_test(verify_block),
		cmocka_unit_test(malformed_verify_blocks),
		cmocka_unit_test(environment_block),
		cmocka_unit_test(the_variables_of_the_start_lie_over_those_of_the_image),
		cmocka_unit_test(a_variable_is_found_by_its_whole_name),
		cmocka_unit_test(a_command_is_looked_up_in_absolute_directories_only),
		cmocka_unit_test(a_place_that_is_too_long_is_passed_over),
		cmocka_unit_test(the_kernels_count_of_kills),
		cmocka_unit_test(how_long_the_launcher_waits_for_a_container),
		cmocka_unit_test(capped_binds_become_tmpfs),
		cmocka_unit_test(mac_06_the_proxy_of_a_session_and_its_token),
	};

	return cmocka_run_group_tests_name("guest", tests, NULL, NULL);
}
