/* result: what a worker writes as its result, and the process without power that parses it. */
#include "repo.h"

#include <poll.h>
#include <sys/socket.h>

#include "base/text.h"
#include "os/powerless.h"
#include "work/result.h"

static struct kr_result
read_bytes(struct place *p, const char *bytes, size_t n)
{
	const char *path = below(p, "result.json");
	struct kr_error err = { 0 };
	struct kr_result result;

	assert_int_equal(kr_file_write_at(AT_FDCWD, path, bytes, n, 0600, &err), 0);
	if (kr_result_read(path, &result, &err) < 0)
		fail_msg("%s", err.message);
	return result;
}

static struct kr_result
read_text(struct place *p, const char *text)
{
	return read_bytes(p, text, strlen(text));
}

static void
a_status_wins_and_everything_else_is_failed(void **state)
{
	static const struct {
		const char *text;
		enum kr_mark_kind status;
		bool is_problem;
	} cases[] = {
		{ "{\"status\":\"done\"}", KR_MARK_DONE, false },
		{ " {\"status\": \"done_with_concerns\", \"concerns\": \"x\", \"new\": [1]} ", KR_MARK_CONCERNS,
			false },
		{ "{\"status\":\"failed\"}", KR_MARK_FAILED, false },
		{ "{\"status\":\"needs_context\",\"question\":\"which?\"}", KR_MARK_QUESTION, false },
		/* kraft's own words are not a worker's to say, a gate's least of all (ITM-03) */
		{ "{\"status\":\"config_error\"}", KR_MARK_FAILED, true },
		{ "{\"status\":\"unknown\"}", KR_MARK_FAILED, true },
		{ "{\"status\":\"approved\"}", KR_MARK_FAILED, true },
		{ "{\"status\":\"skipped\"}", KR_MARK_FAILED, true },
		{ "{\"status\":1}", KR_MARK_FAILED, true },
		{ "{}", KR_MARK_FAILED, true },
		{ "[]", KR_MARK_FAILED, true },
		{ "\"done\"", KR_MARK_FAILED, true },
		{ "{\"status\":\"done\",\"status\":\"failed\"}", KR_MARK_FAILED, true },
		{ "{\"status\":\"done\"} x", KR_MARK_FAILED, true },
		{ "not json", KR_MARK_FAILED, true },
		{ "{\"status\":\"done\",\"concerns\":\"\xff\xfe\"}", KR_MARK_FAILED, true },
	};
	struct place *p = *state;

	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_result r = read_text(p, cases[i].text);

		if (!r.is_there || r.status != cases[i].status || (r.problem[0] != '\0') != cases[i].is_problem)
			fail_msg("%s: %s, '%s'", cases[i].text, kr_mark_name(r.status), r.problem);
	}
	assert_string_equal(
		read_text(p, "{\"status\":\"needs_context\",\"question\":\"which?\"}").question, "which?");
	assert_string_equal(read_text(p, "{\"status\":\"done\",\"session_summary\":\"all\"}").summary, "all");
	assert_false(read_text(p, "").is_there);
}

static void
long_texts_are_cut_between_characters(void **state)
{
	struct place *p = *state;
	kr_auto_buf struct kr_buf text = KR_BUF(9000);
	struct kr_result r;

	kr_buf_addf(&text, "{\"status\":\"done\",\"concerns\":\"");
	for (int i = 0; i < 2000; i++)
		kr_buf_addf(&text, "\xc3\xa9");
	kr_buf_addf(&text, "\"}");
	r = read_text(p, text.data);
	assert_int_equal(r.status, KR_MARK_DONE);
	assert_true(strlen(r.concerns) < KR_RESULT_TEXT && strlen(r.concerns) > KR_RESULT_TEXT - 8);
	assert_string_equal(r.concerns + strlen(r.concerns) - 3, "...");
	assert_true(kr_text_is_utf8(r.concerns, strlen(r.concerns)));
}

static void
what_is_no_plain_small_file_is_a_problem_RES_01_RES_02_RES_04(void **state)
{
	struct place *p = *state;
	char *big = kr_arena_alloc(&p->arena, KR_RESULT_BYTES + 2);
	struct kr_error err = { 0 };
	struct kr_result r;

	memset(big, ' ', KR_RESULT_BYTES + 1);
	memcpy(big, "{\"status\":\"done\"}", 17);
	r = read_bytes(p, big, KR_RESULT_BYTES + 1);
	assert_true(r.is_there && r.status == KR_MARK_FAILED && strstr(r.problem, "1 MiB"));
	r = read_bytes(p, big, KR_RESULT_BYTES); /* the control */
	assert_int_equal(r.status, KR_MARK_DONE);
	memset(big, '[', KR_RESULT_BYTES); /* deep */
	r = read_bytes(p, big, KR_RESULT_BYTES);
	assert_true(r.status == KR_MARK_FAILED && r.problem[0]);
	sh(p, "echo '{\"status\":\"done\"}' >real; ln -s real link; mkfifo pipe; mkdir dir; ln -s . here");
	for (const char *const *name = (const char *const[]){ "link", "pipe", "dir", "here/real", NULL }; *name;
		 name++) {
		assert_int_equal(kr_result_read(below(p, *name), &r, &err), 0);
		assert_true(r.is_there && r.status == KR_MARK_FAILED && r.problem[0]);
	}
	assert_int_equal(kr_result_read(below(p, "real"), &r, &err), 0);
	assert_int_equal(r.status, KR_MARK_DONE);
	assert_int_equal(kr_result_read(below(p, "none"), &r, &err), 0);
	assert_false(r.is_there);
}

/* Somebody swaps the file for a link to a secret and back, as fast as they can. */
static void
swap(struct place *p, int end_fd)
{
	const char *at = below(p, "swapped"), *link_at = below(p, "a-link"), *file_at = below(p, "a-file"),
			   *plain = below(p, "plain"), *secret = below(p, "secret");
	struct pollfd end = { .fd = end_fd, .events = POLLIN };

	for (long n = 0; n < 10000 || poll(&end, 1, 0) == 0; n++) {
		const char *next = n % 2 ? file_at : link_at;

		(void)unlink(link_at);
		(void)unlink(file_at);
		if ((n % 2 ? link(plain, file_at) : symlink(secret, link_at)) < 0 || rename(next, at) < 0)
			_exit(1);
	}
	_exit(0);
}

/* What reads by name and follows: the control. */
static bool
naive_read_sees_it(const char *path)
{
	char text[256] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	(void)close(fd);
	return strstr(text, "secret word");
}

static void
a_link_in_its_place_is_never_read_through_RES_03(void **state)
{
	struct place *p = *state;
	const char *path = below(p, "swapped");
	long through = 0, plain = 0, naive = 0;
	int ends[2], status;
	pid_t pid;

	sh(p, "echo '{\"status\":\"done\",\"concerns\":\"secret word\"}' >secret; echo '{\"status\":\"failed\"}' "
		  ">plain; "
		  "cp plain swapped");
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0)
		swap(p, ends[0]);
	for (int i = 0; i < 2000 || (i < 200000 && (!naive || !plain)); i++) {
		struct kr_error err = { 0 };
		struct kr_result r;

		assert_int_equal(kr_result_read(path, &r, &err), 0);
		through += r.status == KR_MARK_DONE || strstr(r.concerns, "secret");
		plain += r.is_there && !r.problem[0];
		naive += naive_read_sees_it(path);
	}
	assert_int_equal(write(ends[1], "x", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(plain > 0 && naive > 0);
	assert_int_equal(through, 0);
	close(ends[0]);
	close(ends[1]);
}

/* ---- without power ---- */

struct answer {
	int got, value;
};

static void
parse_fine(const void *bytes, size_t n, void *out)
{
	char *copy = malloc(n); /* memory is what it has */

	memcpy(copy, bytes, n);
	*(struct answer *)out = (struct answer){ 1, copy[0] };
	free(copy);
}

static void
parse_open(const void *bytes, size_t n, void *out)
{
	(void)bytes, (void)n;
	*(struct answer *)out = (struct answer){ open("/etc/passwd", O_RDONLY) >= 0, 0 };
}

static void
parse_socket(const void *bytes, size_t n, void *out)
{
	(void)bytes, (void)n;
	*(struct answer *)out = (struct answer){ socket(AF_INET, SOCK_STREAM, 0) >= 0, 0 };
}

static void
parse_kill(const void *bytes, size_t n, void *out)
{
	(void)bytes, (void)n;
	*(struct answer *)out = (struct answer){ kill(getppid(), 0) == 0, 0 };
}

static void
parse_fork(const void *bytes, size_t n, void *out)
{
	(void)bytes, (void)n;
	*(struct answer *)out = (struct answer){ fork() >= 0, 0 };
}

static void
parse_exec(const void *bytes, size_t n, void *out)
{
	(void)bytes, (void)n;
	execl("/bin/true", "true", (char *)NULL);
	*(struct answer *)out = (struct answer){ 1, 0 };
}

static void
parse_crash(const void *bytes, size_t n, void *out)
{
	(void)bytes, (void)n;
	*(struct answer *)out = (struct answer){ 1, 1 };
	raise(SIGKILL);
}

static void
parse_for_ever(const void *bytes, size_t n, void *out)
{
	volatile int *got = &((struct answer *)out)->got;

	(void)bytes, (void)n;
	for (;;)
		++*got;
}

static void
parse_write(const void *bytes, size_t n, void *out)
{
	(void)n;
	*(struct answer *)out = (struct answer){ write(*(const int *)bytes, "x", 1) == 1, 0 };
}

static void
a_parser_has_memory_and_nothing_else(void **state)
{
	static kr_parse_fn *const bad[] = { parse_open, parse_socket, parse_kill, parse_fork, parse_exec,
		parse_crash, parse_for_ever };
	struct kr_error err = { 0 };
	struct answer answer;
	int ends[2];

	(void)state;
	assert_int_equal(kr_powerless_parse(parse_fine, "A", 1, &answer, sizeof(answer), &err), 0);
	assert_true(answer.got && answer.value == 'A');
	for (size_t i = KR_SANITIZED ? 5 : 0; i < KR_COUNT(bad); i++) {
		err = (struct kr_error){ 0 };
		assert_int_equal(kr_powerless_parse(bad[i], "A", 1, &answer, sizeof(answer), &err), -1);
		assert_int_equal(err.code, KR_E_REFUSED);
		assert_true(!answer.got && !answer.value);
	}
	/* the control: the same calls work where power was not given up */
	parse_open(NULL, 0, &answer);
	assert_true(answer.got);
	parse_socket(NULL, 0, &answer);
	assert_true(answer.got);
	/* no descriptor of ours is there */
	assert_int_equal(pipe(ends), 0);
	if (kr_powerless_parse(parse_write, &ends[1], sizeof(int), &answer, sizeof(answer), &err) == 0)
		assert_false(answer.got);
	parse_write(&ends[1], sizeof(int), &answer);
	assert_true(answer.got);
	close(ends[0]);
	close(ends[1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		place_test(a_status_wins_and_everything_else_is_failed),
		place_test(long_texts_are_cut_between_characters),
		place_test(what_is_no_plain_small_file_is_a_problem_RES_01_RES_02_RES_04),
		place_test(a_link_in_its_place_is_never_read_through_RES_03),
		cmocka_unit_test(a_parser_has_memory_and_nothing_else),
	};

	return cmocka_run_group_tests_name("result", tests, NULL, NULL);
}
