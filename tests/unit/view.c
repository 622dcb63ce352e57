/* view: kraft view events, from its options to what it prints, each run in a process of its own. */
#include "repo.h"

#include <jansson.h>
#include <poll.h>

#include "cli/cli.h"
#include "store/store.h"

static struct kr_store *
open_store(struct place *p)
{
	struct kr_store *store = NULL;
	struct kr_error err = { 0 };

	if (kr_store_open(below(p, "run"), KR_STORE_WRITE, &store, &err) < 0)
		fail_msg("%s", err.message);
	return store;
}

static void
add(struct kr_store *store, const char *type, const char *session, const char *data)
{
	struct kr_event event = { .ms = 1753000000000, .type = type, .session = session, .data = data };
	struct kr_error err = { 0 };

	if (kr_store_add_event(store, &event, &err) < 0)
		fail_msg("%s", err.message);
}

/* As main does; never returns. */
static void
be_kraft(struct place *p, char **words)
{
	struct kr_arena arena = { 0 };
	struct kr_parsed parsed;
	struct kr_error err = { 0 };
	const struct kr_command *command;
	bool wants_help = false;
	int n = 0, used, status = 0;

	while (words[n])
		n++;
	(void)setenv("KRAFT_RUN_DIR", below(p, "run"), 1);
	(void)setenv("TZ", "UTC", 1);
	command = kr_command_find(n, words, &used, &err);
	if (command && kr_options_parse(command, n - used, words + used, &parsed, &wants_help, &err) == 0)
		status = command->run(&arena, &parsed, &err);
	if (err.code)
		fprintf(stderr, "# %s\n", err.message);
	fflush(stdout);
	_exit(err.code ? kr_error_exit_status(err.code) : status);
}

/* Starts "kraft view events ..."; *out is where its output can be read. */
static pid_t
start(struct place *p, const char *const options[], int *out)
{
	char *words[16] = { (char *)(uintptr_t) "view", (char *)(uintptr_t) "events" };
	int fds[2];
	pid_t pid;

	for (size_t i = 0; options[i]; i++)
		words[i + 2] = (char *)(uintptr_t)options[i];
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (dup2(fds[1], STDOUT_FILENO) < 0)
			_exit(99);
		(void)signal(SIGINT, SIG_DFL);
		(void)signal(SIGPIPE, SIG_DFL);
		(void)close(fds[0]);
		(void)close(fds[1]); /* only the standard output keeps the pipe open */
		be_kraft(p, words);
	}
	(void)close(fds[1]);
	*out = fds[0];
	return pid;
}

static const char *
run(struct place *p, int want_status, const char *const options[])
{
	struct kr_buf buf = KR_BUF(1 << 20);
	struct kr_error err = { 0 };
	int out, status = -1;
	pid_t pid = start(p, options, &out);
	const char *text;

	assert_int_equal(kr_read_all(out, &buf, "output", &err), 0);
	(void)close(out);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), want_status);
	text = kr_arena_dup(&p->arena, buf.len ? buf.data : "");
	kr_buf_fini(&buf);
	return text;
}
#define RUN(p, ...) run((p), 0, (const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })
#define RUN_WRONG(p, ...) (void)run((p), 2, (const char *const[]){ __VA_ARGS__, NULL })

static size_t
lines(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

#define assert_in(text, part)                               \
	do {                                                    \
		if (!strstr((text), (part)))                        \
			fail_msg("'%s' is not in: %s", (part), (text)); \
	} while (0)

static void
make_some(struct place *p)
{
	struct kr_store *store = open_store(p);

	add(store, "sandbox_egress_refused", "00000000000000aa",
		"{\"session_id\": \"00000000000000aa\", \"host\": \"evil.example\", \"port\": 443, \"phase\": "
		"\"runtime\","
		" \"reason\": \"not on the allow list\"}");
	add(store, "sandbox_egress_lost", "00000000000000bb",
		"{\"session_id\": \"00000000000000bb\", \"restarted\": true}");
	add(store, "sandbox_egress_refused", "00000000000000bb",
		"{\"session_id\": \"00000000000000bb\", \"host\": \"b.example\"}");
	kr_store_close(store);
}

static void
events_are_rows_for_a_person(void **state)
{
	struct place *p = *state;
	const char *text;

	make_some(p);
	text = RUN(p);
	assert_int_equal(lines(text), 4);
	assert_in(text,
		"\n     1  2025-07-20 08:26:40  00000000000000aa  sandbox_egress_refused  host=evil.example port=443"
		" phase=runtime reason=\"not on the allow list\"\n");
	assert_in(
		text, "\n     2  2025-07-20 08:26:40  00000000000000bb  sandbox_egress_lost     restarted=true\n");
}

static void
events_are_lines_of_json_for_a_program(void **state)
{
	struct place *p = *state;
	const char *text;
	json_t *first;

	make_some(p);
	text = RUN(p, "--json");
	assert_int_equal(lines(text), 3);
	first = json_loads(text, JSON_DISABLE_EOF_CHECK, NULL);
	assert_int_equal(json_integer_value(json_object_get(first, "seq")), 1);
	assert_int_equal(json_integer_value(json_object_get(first, "ms")), 1753000000000);
	assert_string_equal(json_string_value(json_object_get(first, "type")), "sandbox_egress_refused");
	assert_string_equal(json_string_value(json_object_get(first, "session")), "00000000000000aa");
	assert_true(json_is_null(json_object_get(first, "item")));
	assert_string_equal(
		json_string_value(json_object_get(json_object_get(first, "data"), "host")), "evil.example");
	json_decref(first);
}

static void
filters_narrow_what_is_shown_CHAN_07(void **state)
{
	struct place *p = *state;

	make_some(p);
	assert_int_equal(lines(RUN(p, "--json", "--after", "1")), 2);
	assert_int_equal(lines(RUN(p, "--json", "--after", "9223372036854775807")), 0);
	assert_int_equal(lines(RUN(p, "--json", "--type", "sandbox_egress_refused")), 2);
	assert_int_equal(lines(RUN(p, "--json", "--type", "x' OR '1'='1")), 0);
	assert_int_equal(lines(RUN(p, "--json", "--session=00000000000000bb")), 2);
	assert_int_equal(lines(RUN(p, "--json", "--session=00000000000000bb", "--type=sandbox_egress_lost")), 1);
	assert_int_equal(lines(RUN(p, "--json", "--item=x")), 0);
	assert_in(RUN(p, "--json", "-n1"), "{\"seq\":3,");
	RUN_WRONG(p, "--after", "-1");
	RUN_WRONG(p, "--after", "9223372036854775808");
	RUN_WRONG(p, "--after", "all");
	RUN_WRONG(p, "-n", "0");
	RUN_WRONG(p, "evil.example");
}

static void
without_events_nothing_is_printed(void **state)
{
	struct place *p = *state;

	assert_string_equal(RUN(p), "");
	sh(p, "test ! -e run");
	kr_store_close(open_store(p));
	assert_string_equal(RUN(p), "");
	assert_string_equal(RUN(p, "--json"), "");
}

/* RES-07: title, clipboard, colour, C1, DEL, right-to-left override, in a value, a key, the type and the
 * session. */
static void
nothing_steers_the_terminal_RES_07(void **state)
{
	struct place *p = *state;
	struct kr_store *store = open_store(p);
	const char *forms[2];

	add(store, "t\033]0;x\a", "s\x7f",
		"{\"host\": \"\\u001b]52;c;aGk\\u0007\\u009b31m\\u007f\\u202e\", \"k\\u001b[2J\": 1, \"n\": "
		"\"a\\nb\"}");
	kr_store_close(store);
	forms[0] = RUN(p);
	forms[1] = RUN(p, "--json");
	assert_int_equal(lines(forms[0]), 2);
	assert_int_equal(lines(forms[1]), 1);
	for (size_t i = 0; i < KR_COUNT(forms); i++)
		for (const char *c = forms[i]; *c; c++)
			if (*c != '\n' && ((unsigned char)*c < ' ' || (unsigned char)*c >= 0x7f))
				fail_msg("byte %#x in: %s", (unsigned char)*c, forms[i]);
	assert_in(forms[0], "\\x1b]52;c;aGk\\x07");
	assert_in(forms[1], "\\u001B]52;c;aGk\\u0007\\u009B31m\\u007F\\u202E");
}

static void
long_data_is_cut_for_a_person_only(void **state)
{
	struct place *p = *state;
	struct kr_store *store = open_store(p);
	char data[9000], *at = data + snprintf(data, sizeof(data), "{\"host\": \"");

	memset(at, 'x', 8000);
	snprintf(at + 8000, 8, "\"}");
	add(store, "a", NULL, data);
	kr_store_close(store);
	assert_in(RUN(p), "xxx...\n");
	assert_true(strlen(RUN(p)) < 1400);
	assert_true(strlen(RUN(p, "--json")) > 8000);
}

/* ---- follow ---- */

/* The next line, or NULL when none comes in time. */
static const char *
next_line(struct place *p, int fd)
{
	char line[1024];
	size_t n = 0;

	while (n + 1 < sizeof(line)) {
		struct pollfd ready = { .fd = fd, .events = POLLIN };

		if (poll(&ready, 1, 10000) <= 0 || read(fd, line + n, 1) != 1)
			return NULL;
		if (line[n] == '\n')
			return kr_arena_dup_n(&p->arena, line, n);
		n++;
	}
	return NULL;
}

#define START(p, out, ...) start((p), (const char *const[]){ __VA_ARGS__, NULL }, (out))

static int
end_with(pid_t pid, int fd, int signal_number)
{
	int status = -1;

	if (signal_number)
		assert_int_equal(kill(pid, signal_number), 0);
	(void)close(fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void
follow_shows_each_that_comes_until_ctrl_c(void **state)
{
	struct place *p = *state;
	struct kr_store *store;
	int out, status;
	pid_t pid = START(p, &out, "-f", "--json"); /* there is no store yet */

	(void)poll(NULL, 0, 300);
	store = open_store(p);
	add(store, "a", NULL, "{}");
	assert_in(next_line(p, out), "\"seq\":1,");
	add(store, "a", NULL, "{}");
	add(store, "b", NULL, "{}");
	assert_in(next_line(p, out), "\"seq\":2,");
	assert_in(next_line(p, out), "\"seq\":3,");
	status = end_with(pid, out, SIGINT);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT); /* what a shell calls 130 */

	pid = START(p, &out, "-f", "--json", "-n1", "--type", "a");
	assert_in(next_line(p, out), "\"seq\":2,");
	add(store, "b", NULL, "{}");
	add(store, "a", NULL, "{}");
	assert_in(next_line(p, out), "\"seq\":5,");
	(void)end_with(pid, out, SIGINT);
	kr_store_close(store);
}

static void
follow_ends_when_nobody_reads(void **state)
{
	struct place *p = *state;
	int out, status;
	pid_t pid = START(p, &out, "--follow");

	(void)poll(NULL, 0, 100);
	status = end_with(pid, out, 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		place_test(events_are_rows_for_a_person),
		place_test(events_are_lines_of_json_for_a_program),
		place_test(filters_narrow_what_is_shown_CHAN_07),
		place_test(without_events_nothing_is_printed),
		place_test(nothing_steers_the_terminal_RES_07),
		place_test(long_data_is_cut_for_a_person_only),
		place_test(follow_shows_each_that_comes_until_ctrl_c),
		place_test(follow_ends_when_nobody_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
