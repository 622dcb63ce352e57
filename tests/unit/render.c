/* render: what a person sees of an agent's lines, whatever they hold; and the process that shows them. */
#include "repo.h"

#include <poll.h>
#include <sys/socket.h>

#include "agent/render.h"
#include "os/powerless.h"

static void
collect(void *context, const char *bytes, size_t n)
{
	kr_buf_add(context, bytes, n);
}

/* The same in pieces of 1, 7 and all bytes. */
static const char *
show(struct place *p, enum kr_reader reader, bool is_coloured, const char *text)
{
	static const size_t pieces[] = { 1, 7, 1 << 20 };
	const char *first = NULL;

	for (size_t i = 0; i < KR_COUNT(pieces); i++) {
		kr_auto_free struct kr_render *r = kr_xcalloc(1, sizeof(*r));
		kr_auto_buf struct kr_buf out = KR_BUF(1 << 20);
		size_t n = strlen(text);

		*r = (struct kr_render){
			.reader = reader, .is_coloured = is_coloured, .write = collect, .context = &out
		};
		for (size_t at = 0; at < n; at += pieces[i])
			kr_render_feed(r, text + at, n - at < pieces[i] ? n - at : pieces[i]);
		kr_render_end(r);
		if (first)
			assert_string_equal(out.data ? out.data : "", first);
		first = kr_arena_dup(&p->arena, out.data ? out.data : "");
	}
	return first;
}

#define CLAUDE                                                                                             \
	"{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"a\",\"model\":\"m\"}\n"                    \
	"{\"type\":\"assistant\",\"message\":{\"id\":\"m1\",\"content\":[{\"type\":\"thinking\",\"thinking\":" \
	"\"hm\"},"                                                                                             \
	"{\"type\":\"text\",\"text\":\"I look.\\nThen I "                                                      \
	"mend.\"},{\"type\":\"tool_use\",\"name\":\"Bash\",\"input\":"                                         \
	"{\"description\":\"d\",\"command\":\"make test\\nrm x\"}}]},\"parent_tool_use_id\":null}\n"           \
	"{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\",\"content\":\"Exit code "      \
	"2\\nmuch\",\"is_error\":true}]}}\n"                                                                   \
	"{\"type\":\"assistant\",\"message\":{\"id\":\"m2\",\"content\":[{\"type\":\"tool_use\",\"name\":"     \
	"\"Edit\",\"input\":"                                                                                  \
	"{\"file_path\":\"src/x.c\",\"old_string\":\"secret\"}}]},\"parent_tool_use_id\":\"t\"}\n"             \
	"{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\",\"content\":[{\"type\":"       \
	"\"text\",\"text\":\"no\"}],\"is_error\":true}]},\"parent_tool_use_id\":\"t\"}\n"                      \
	"{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\",\"content\":\"a big "          \
	"result\",\"is_error\":false}]}}\n"                                                                    \
	"{\"type\":\"system\",\"subtype\":\"api_retry\",\"attempt\":1,\"max_retries\":4,\"error_status\":429," \
	"\"error\":\"rate_limit\"}\n"                                                                          \
	"{\"type\":\"result\",\"is_error\":false,\"num_turns\":3,\"duration_ms\":38400,\"result\":\"Then I "   \
	"mend.\","                                                                                             \
	"\"total_cost_usd\":0.0412,\"usage\":{\"input_tokens\":5000,\"output_tokens\":120,\"cache_read_input_" \
	"tokens\":9}}"

static void
claudes_words_and_tools_are_shown(void **state)
{
	struct place *p = *state;

	assert_string_equal(show(p, KR_READER_CLAUDE, false, CLAUDE),
		"I look.\nThen I mend.\n> Bash: make test...\n  failed: Exit code 2...\n  > Edit: src/x.c\n    "
		"failed: no\n"
		"  the model's host did not answer as it should (rate_limit, 429), try 1 of 4\n"
		"-- 3 turns, 5120 tokens, $0.0412, 38 s\n");
	assert_string_equal(show(p, KR_READER_CLAUDE, true,
							"{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"tool_use\","
							"\"name\":\"Read\"}]}}\n"),
		"\033[2m> Read\033[0m\n");
	assert_string_equal(show(p, KR_READER_CLAUDE, false,
							"{\"type\":\"result\",\"is_error\":true,\"subtype\":\"error_during_execution\"}"),
		"failed: error_during_execution\n");
}

static void
codexs_words_and_tools_are_shown(void **state)
{
	struct place *p = *state;

	assert_string_equal(
		show(p, KR_READER_CODEX, false,
			"{\"type\":\"thread.started\",\"thread_id\":\"a\"}\n"
			"{\"type\":\"item.started\",\"item\":{\"type\":\"command_execution\",\"command\":\"/bin/bash -lc "
			"'ls x'\"}}\n"
			"{\"type\":\"item.completed\",\"item\":{\"type\":\"command_execution\",\"command\":\"c\","
			"\"aggregated_output\":\"much\",\"exit_code\":2}}\n"
			"{\"type\":\"item.completed\",\"item\":{\"type\":\"file_change\",\"changes\":[{\"path\":\"a.c\","
			"\"kind\":\"update\"},{\"path\":\"b.c\"}]}}\n"
			"{\"type\":\"item.completed\",\"item\":{\"type\":\"reasoning\",\"text\":\"hm\"}}\n"
			"{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"done\\nall\"}}\n"
			"{\"type\":\"error\",\"message\":\"Reconnecting... 1/5\"}\n"
			"{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":200,\"cached_input_tokens\":50,"
			"\"output_tokens\":20}}\n"
			"{\"type\":\"turn.failed\",\"error\":{\"message\":\"no\"}}\n"),
		"> Bash: 'ls x'\n  failed: exit code 2\n> Edit: a.c\n> Edit: b.c\ndone\nall\n  Reconnecting... "
		"1/5\nfailed: no\n"
		"-- 1 turn, 170 tokens\n");
}

/* A worker's words do not drive the terminal. */
static void
what_is_no_line_goes_through_clean(void **state)
{
	struct place *p = *state;

	assert_string_equal(show(p, KR_READER_CLAUDE, false, "\x1b[2Jplain\ttext\r\n\n{\"broken\": \xff\nend"),
		"[2Jplain\ttext\n\n{\"broken\": ?\nend\n");
	assert_string_equal(show(p, KR_READER_NONE, false, "{\"type\":\"result\"}\n"), "{\"type\":\"result\"}\n");
	assert_string_equal(show(p, KR_READER_CLAUDE, true,
							"{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":"
							"\"a\\u001b]0;x\\u0007b\\u202e\"},"
							"{\"type\":\"tool_use\",\"name\":\"\\u001b[31m\",\"input\":{\"command\":"
							"\"\\u009b2J\\r\\nx\"}}]}}\n"),
		"a]0;xb\n\033[2m> [31m: 2J...\033[0m\n");
	assert_string_equal(
		show(p, KR_READER_CODEX, false, "{\"type\":1}\n{\"type\":\"new\"}\n[]\n{}\n"), "[]\n");
}

static void
a_line_that_is_too_long_is_left_out(void **state)
{
	struct place *p = *state;
	kr_auto_free char *text = malloc((3 << 20) + 1);

	assert_non_null(text);
	memset(text, 'x', 3 << 20);
	text[3 << 20] = '\0';
	memcpy(text, "a\n{\"type\":\"assistant\"", 21);
	memcpy(text + (3 << 20) - 3, "\nb\n", 3);
	assert_string_equal(
		show(p, KR_READER_CLAUDE, false, text), "a\n  (a line of more than 1048576 bytes is left out)\nb\n");
}

/* ---- the process ---- */

static void
lines_go_through_a_process_of_their_own(void **state)
{
	struct kr_error err = { 0 };
	int ends[2], in_fd = -1, status;
	char seen[200] = "";
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(kr_agent_render(KR_READER_CODEX, ends[1], false, &in_fd, &pid, &err), 0);
	(void)close(ends[1]);
	assert_int_equal(write(in_fd, "plain\n{\"type\":\"error\",", 22), 22);
	assert_int_equal(read(ends[0], seen, sizeof(seen)), 6); /* before there is more */
	assert_int_equal(write(in_fd, "\"message\":\"x\"}", 14), 14);
	(void)close(in_fd);
	assert_int_equal(read(ends[0], seen, sizeof(seen) - 1), 4);
	assert_string_equal(seen, "  x\nn\n");
	assert_int_equal(read(ends[0], seen, sizeof(seen)), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	(void)close(ends[0]);
	/* nobody reads: it ends, also while more comes */
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(kr_agent_render(KR_READER_CODEX, ends[1], false, &in_fd, &pid, &err), 0);
	(void)close(ends[0]);
	(void)close(ends[1]);
	assert_int_equal(write(in_fd, "x\n", 2), 2);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	(void)close(in_fd);
}

/* It has come through: to its output. */
static void
tell(char what)
{
	if (write(STDOUT_FILENO, &what, 1) != 1)
		_exit(1);
}

static void
pass_open(void *context)
{
	(void)context;
	tell(open("/etc/hostname", O_RDONLY) >= 0 ? 'y' : 'n');
}

static void
pass_socket(void *context)
{
	(void)context;
	tell(socket(AF_UNIX, SOCK_STREAM, 0) >= 0 ? 'y' : 'n');
}

static void
pass_fork(void *context)
{
	(void)context;
	if (fork() == 0)
		_exit(0);
	tell('y');
}

/* Its output may be a terminal, which gives what a person types. */
static void
pass_read_output(void *context)
{
	char byte;

	(void)context;
	tell(read(STDOUT_FILENO, &byte, 1) == 1 ? 'y' : 'n');
}

static void
pass_write_input(void *context)
{
	(void)context;
	tell(write(STDIN_FILENO, "x", 1) == 1 ? 'y' : 'n');
}

static void
pass_write_other(void *context)
{
	tell(write(*(const int *)context, "x", 1) == 1 ? 'y' : 'n');
}

static void
pass_copy(void *context)
{
	char byte;

	(void)context;
	if (read(STDIN_FILENO, &byte, 1) == 1)
		tell(byte);
}

/* The control: a child that has given up nothing. */
static pid_t
pass_powerful(kr_pass_fn *pass, void *context, int in_fd, int out_fd)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)dup2(in_fd, STDIN_FILENO);
		(void)dup2(out_fd, STDOUT_FILENO);
		pass(context);
		_exit(0);
	}
	return pid;
}

/* What came out of it; '-': nothing did. */
static char
try_pass(kr_pass_fn *pass, void *context, bool is_powerful)
{
	struct kr_error err = { 0 };
	char got = '-';
	int out[2], in[2];
	pid_t pid;

	fflush(NULL);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, out), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in), 0);
	assert_int_equal(write(in[0], "c", 1), 1);
	assert_int_equal(write(out[0], "c", 1), 1);
	if (is_powerful)
		pid = pass_powerful(pass, context, in[1], out[1]);
	else
		assert_int_equal(kr_powerless_pass(pass, context, in[1], out[1], &pid, &err), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	(void)close(out[1]);
	if (read(out[0], &got, 1) != 1)
		got = '-';
	(void)close(out[0]);
	(void)close(in[0]);
	(void)close(in[1]);
	return got;
}

static void
who_shows_lines_has_two_descriptors_and_nothing_else(void **state)
{
	static kr_pass_fn *const bad[] = { pass_open, pass_socket, pass_fork, pass_read_output, pass_write_input,
		pass_write_other };
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(try_pass(pass_copy, NULL, false), 'c');
	/* The sanitizers' builds have no filter. */
	for (size_t i = 0; !KR_SANITIZED && i < KR_COUNT(bad); i++) {
		assert_int_equal(try_pass(bad[i], &ends[1], true), 'y');
		if (try_pass(bad[i], &ends[1], false) == 'y')
			fail_msg("bad call %zu came through", i);
	}
	(void)close(ends[0]);
	(void)close(ends[1]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		place_test(claudes_words_and_tools_are_shown),
		place_test(codexs_words_and_tools_are_shown),
		place_test(what_is_no_line_goes_through_clean),
		place_test(a_line_that_is_too_long_is_left_out),
		cmocka_unit_test(lines_go_through_a_process_of_their_own),
		cmocka_unit_test(who_shows_lines_has_two_descriptors_and_nothing_else),
	};

	return cmocka_run_group_tests_name("render", tests, NULL, NULL);
}
