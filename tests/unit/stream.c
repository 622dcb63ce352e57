/* stream: what the lines of claude 2.1.197 and 2.1.332 and of codex 0.171 say; and whatever else a worker
 * prints. */
#include "repo.h"

#include "agent/stream.h"
#include "session/agent.h"
#include "session/log.h"

/* 2026-11-30 14:51:06 UTC, one hour east of it */
static const struct kr_agent_clock now = { 1796050266000, 3600 };

static struct kr_agent_seen
read_lines(enum kr_reader reader, const char *const *lines)
{
	kr_auto_buf struct kr_buf text = KR_BUF(1 << 20);
	struct kr_agent_seen seen;

	for (; *lines; lines++)
		kr_buf_addf(&text, "%s\n", *lines);
	kr_agent_stream_parse(reader, text.data ? text.data : "", text.len, &now, &seen);
	return seen;
}
#define READ(reader, ...) read_lines(KR_READER_##reader, (const char *const[]){ __VA_ARGS__, NULL })

static void
expect_usage(
	const struct kr_usage *u, int64_t input, int64_t output, int64_t write, int64_t read, int64_t cost)
{
	assert_true(u->is_known);
	assert_int_equal(u->input, input);
	assert_int_equal(u->output, output);
	assert_int_equal(u->cache_write, write);
	assert_int_equal(u->cache_read, read);
	assert_int_equal(u->has_cost ? u->cost_micro : -1, cost);
}

/* ---- claude ---- */

#define INIT                                                                                             \
	"{\"type\":\"system\",\"subtype\":\"init\",\"cwd\":\"/"                                              \
	"w\",\"session_id\":\"5f4321c6-d99e-495f-96c3-b58220116190\","                                       \
	"\"tools\":[\"Task\",\"Bash\"],\"mcp_servers\":[{\"name\":\"kraft\",\"status\":\"connected\"}],"     \
	"\"model\":\"claude-opus-4-8[1m]\",\"permissionMode\":\"default\",\"apiKeySource\":\"ANTHROPIC_API_" \
	"KEY\"}"
/* What is known when a message begins: told with each of its parts. */
#define PART(id, content, input, output)                                                                  \
	"{\"type\":\"assistant\",\"message\":{\"id\":\"" id "\",\"type\":\"message\",\"role\":\"assistant\"," \
	"\"model\":\"claude-opus-4-8\",\"content\":[" content                                                 \
	"],\"stop_reason\":null,\"usage\":{\"input_tokens\":" input ",\"output_tokens\":" output              \
	",\"cache_creation_input_tokens\":2,\"cache_read_input_tokens\":30},"                                 \
	"\"context_management\":null},\"parent_tool_use_id\":null,\"session_id\":\"5f4321c6\"}"
#define TEXT(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define TOOL "{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"Bash\",\"input\":{\"command\":\"true\"}}"
#define SYNTHETIC(text)                                                                                   \
	"{\"type\":\"assistant\",\"message\":{\"id\":\"m\",\"model\":\"<synthetic>\",\"role\":\"assistant\"," \
	"\"content\":[" TEXT(text) "],\"usage\":{\"input_tokens\":0,\"output_tokens\":0}},\"error\":\"x\"}"
/* In the order of 2.1.332. */
#define RESULT(error, status, text, input, output, all_input, all_output, cost)                            \
	"{\"duration_api_ms\":166,\"stop_reason\":\"end_turn\",\"session_id\":\"2c8179e3\",\"total_cost_"      \
	"usd\":" cost ",\"usage\":{\"input_tokens\":" input                                                    \
	",\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":0,"                                    \
	"\"output_tokens\":" output ",\"server_tool_use\":{\"web_search_requests\":0}},\"modelUsage\":{"       \
	"\"claude-opus-5-5\":{\"inputTokens\":" all_input ",\"outputTokens\":" all_output                      \
	",\"cacheReadInputTokens\":11,"                                                                        \
	"\"cacheCreationInputTokens\":3,\"costUSD\":" cost "}},\"permission_denials\":[],\"type\":\"result\"," \
	"\"subtype\":\"success\",\"is_error\":" error ",\"api_error_status\":" status                          \
	",\"num_turns\":1,\"result\":\"" text "\"}"
#define RETRY(status, error)                                                                                 \
	"{\"type\":\"system\",\"subtype\":\"api_retry\",\"attempt\":1,\"max_retries\":4,\"retry_delay_ms\":595," \
	"\"error_status\":" status ",\"error\":\"" error "\"}"
#define LIMIT(status)                                                                                        \
	"{\"type\":\"rate_limit_event\",\"rate_limit_info\":{\"status\":\"" status "\",\"resetsAt\":1796052893," \
	"\"rateLimitType\":\"five_hour\",\"isUsingOverage\":false}}"

static void
claudes_last_result_tells_what_it_used(void **state)
{
	struct kr_agent_seen s = READ(CLAUDE, INIT, PART("m1", TEXT("I look."), "7", "1"),
		PART("m1", TOOL, "7", "1"), RESULT("false", "null", "one", "7", "5", "7", "5", "0.00018425"),
		PART("m2", TEXT("two"), "100", "1"),
		RESULT("false", "null", "two", "100", "50", "107", "55", "0.00193425"));

	(void)state;
	expect_usage(&s.usage, 107, 55, 3, 11, 1934);
	expect_usage(&s.own, 107, 55, 0, 0, -1);
	assert_true(s.has_ended);
	assert_int_equal(s.trouble, KR_TROUBLE_NONE);
	assert_string_equal(s.said, "two");
	assert_string_equal(s.conversation, "2c8179e3");
	assert_string_equal(s.model, "claude-opus-4-8[1m]");
	s = READ(CLAUDE, "{\"type\":\"result\",\"is_error\":false,\"result\":\"x\",\"usage\":{\"input_tokens\":3,"
					 "\"output_tokens\":2}}");
	expect_usage(&s.usage, 3, 2, 0, 0, -1);
}

static void
of_a_claude_that_was_ended_each_message_counts_once(void **state)
{
	struct kr_agent_seen s = READ(CLAUDE, INIT, PART("m1", TEXT("I look."), "7", "1"),
		PART("m2", TEXT("aside"), "5", "2"), PART("m1", TOOL, "7", "4"),
		"{\"type\":\"assistant\",\"message\":{\"id\":\"m3\",\"usage\":{\"input_to");

	(void)state;
	expect_usage(&s.usage, 12, 6, 4, 60, -1);
	assert_false(s.has_ended);
	assert_int_equal(s.trouble, KR_TROUBLE_NONE);
	assert_string_equal(s.said, "aside");
	assert_string_equal(s.conversation, "5f4321c6-d99e-495f-96c3-b58220116190");
	/* behind a result: what it covers does not count again, what is new does */
	s = READ(CLAUDE, INIT, PART("m1", TEXT("a"), "7", "1"),
		RESULT("false", "null", "one", "7", "5", "7", "5", "0.5"), PART("m1", TOOL, "7", "1"),
		PART("m2", TEXT("b"), "100", "1"));
	expect_usage(&s.usage, 107, 6, 5, 41, 500000);
}

static void
claude_says_what_went_wrong(void **state)
{
	static const struct {
		const char *lines[4];
		enum kr_trouble trouble;
		uint64_t resets_ms;
	} rows[] = {
		{ { SYNTHETIC("Not logged in · Please run /login"),
			  RESULT("true", "null", "Not logged in · Please run /login", "0", "0", "0", "0", "0") },
			KR_TROUBLE_LOGIN, 0 },
		{ { RETRY("401", "authentication_failed"),
			  RESULT("true", "401", "Failed to authenticate. API Error: 401 no", "0", "0", "0", "0", "0") },
			KR_TROUBLE_LOGIN, 0 },
		{ { RESULT("true", "403", "Failed to authenticate. API Error: 403 no", "0", "0", "0", "0", "0") },
			KR_TROUBLE_LOGIN, 0 },
		{ { RESULT("true", "403", "Failed to authenticate. API Error: 403 kraft: host is denied\\n", "0", "0",
			  "0", "0", "0") },
			KR_TROUBLE_UNREACHABLE, 0 },
		{ { RETRY("null", "unknown"),
			  RESULT("true", "null", "API Error: Couldn't connect through your proxy (ERR_PROXY_TUNNEL)", "0",
				  "0", "0", "0", "0") },
			KR_TROUBLE_UNREACHABLE, 0 },
		{ { RESULT("true", "null", "API Error: Unable to connect to API (ConnectionRefused)", "0", "0", "0",
			  "0", "0") },
			KR_TROUBLE_UNREACHABLE, 0 },
		{ { RESULT("true", "429", "API Error: Request rejected (429) · slow", "0", "0", "0", "0", "0") },
			KR_TROUBLE_RATE_LIMIT, 0 },
		{ { LIMIT("rejected"), RESULT("true", "429", "You've hit your session limit · resets 3:34pm (UTC)",
								   "0", "0", "0", "0", "0") },
			KR_TROUBLE_RATE_LIMIT, 1796052893000 },
		{ { LIMIT("rejected"), RESULT("true", "null", "words that are new", "0", "0", "0", "0", "0") },
			KR_TROUBLE_RATE_LIMIT, 1796052893000 },
		{ { RESULT("true", "null", "Claude AI usage limit reached|1796052900", "0", "0", "0", "0", "0") },
			KR_TROUBLE_RATE_LIMIT, 1796052900000 },
		{ { RESULT("true", "529", "API Error: 529 over.", "0", "0", "0", "0", "0") }, KR_TROUBLE_OTHER, 0 },
		{ { RESULT("true", "404", "There's an issue with the selected model (x)", "0", "0", "0", "0", "0") },
			KR_TROUBLE_OTHER, 0 },
		/* a limit that was near, and one that was reached and paid for */
		{ { LIMIT("allowed_warning"), RESULT("false", "null", "done", "1", "1", "1", "1", "0") },
			KR_TROUBLE_NONE, 0 },
		{ { LIMIT("rejected"), RESULT("false", "null", "done", "1", "1", "1", "1", "0") }, KR_TROUBLE_NONE,
			0 },
		/* the words of a good end are no trouble */
		{ { RESULT("false", "null", "I told them to run /login; 401 Unauthorized", "1", "1", "1", "1", "0") },
			KR_TROUBLE_NONE, 0 },
		/* ended while it tried again */
		{ { RETRY("401", "authentication_failed") }, KR_TROUBLE_LOGIN, 0 },
		{ { RETRY("429", "rate_limit") }, KR_TROUBLE_RATE_LIMIT, 0 },
		{ { RETRY("null", "unknown") }, KR_TROUBLE_UNREACHABLE, 0 },
		{ { RETRY("429", "rate_limit"), PART("m", TEXT("goes on"), "1", "1") }, KR_TROUBLE_NONE, 0 },
		{ { LIMIT("rejected"), LIMIT("allowed") }, KR_TROUBLE_NONE, 0 },
		/* the gate: its standard error stands before its lines */
		{ { "Error: MCP tool mcp__kraft__permission_request (passed via --permission-prompt-tool) not found. "
			"Available MCP tools: none",
			  PART("m", TOOL, "1", "1") },
			KR_TROUBLE_GATE, 0 },
		{ { "{\"type\":\"system\",\"subtype\":\"init\",\"mcp_servers\":[{\"name\":\"x\",\"status\":"
			"\"connected\"},"
			"{\"name\":\"kraft\",\"status\":\"failed\"}]}" },
			KR_TROUBLE_GATE, 0 },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(rows); i++) {
		const char *const lines[] = { INIT, rows[i].lines[0], rows[i].lines[1], rows[i].lines[2], NULL };
		const struct kr_agent_seen s = read_lines(KR_READER_CLAUDE, lines);

		if (s.trouble != rows[i].trouble || s.resets_ms != rows[i].resets_ms)
			fail_msg("%s: %s, %llu", rows[i].lines[0], kr_trouble_name(s.trouble),
				(unsigned long long)s.resets_ms);
		assert_string_equal(
			s.limit_kind, strstr(rows[i].lines[0], "\"rejected\"") && s.trouble ? "five_hour" : "");
	}
	assert_string_equal(READ(CLAUDE, SYNTHETIC("Credit balance is too low"),
							"{\"type\":\"result\",\"subtype\":\"error_during_execution\",\"is_error\":true}")
							.said,
		"error_during_execution");
}

/* ---- codex ---- */

#define THREAD                                                                              \
	"{\"type\":\"thread.started\",\"thread_id\":\"01a22cd3-6bc1-7a23-aa27-f357b1cbd565\"}", \
		"{\"type\":\"turn.started\"}"
#define ITEM(kind, more) "{\"type\":\"item." kind "\",\"item\":{\"id\":\"item_0\"," more "}}"
#define COMMAND                                                         \
	"\"type\":\"command_execution\",\"command\":\"/bin/bash -lc 'echo " \
	"hi'\",\"aggregated_output\":\"\",\"exit_code\":null,\"status\":\"in_progress\""
#define DONE(input, cached, write, output)                                                               \
	"{\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":" input ",\"cached_input_tokens\":" cached \
	",\"cache_write_input_tokens\":" write ",\"output_tokens\":" output ",\"reasoning_output_tokens\":0}}"
#define BROKEN(text) "{\"type\":\"error\",\"message\":\"" text "\"}"
#define FAILED(text) "{\"type\":\"turn.failed\",\"error\":{\"message\":\"" text "\"}}"

static void
codexs_last_turn_tells_what_the_thread_used(void **state)
{
	struct kr_agent_seen s = READ(CODEX,
		"ERROR codex_api::endpoint::responses_websocket: failed to connect to Responses WebSocket", THREAD,
		ITEM("started", COMMAND), ITEM("completed", "\"type\":\"agent_message\",\"text\":\"done\""),
		DONE("200", "150", "20", "20"), DONE("300", "180", "20", "30"));

	(void)state;
	expect_usage(&s.usage, 100, 30, 20, 180, -1);
	assert_true(s.has_ended && !s.trouble);
	assert_string_equal(s.said, "done");
	assert_string_equal(s.conversation, "01a22cd3-6bc1-7a23-aa27-f357b1cbd565");
	s = READ(CODEX, THREAD, ITEM("started", COMMAND));
	assert_false(s.usage.is_known || s.has_ended || s.trouble);
	s = READ(CODEX, DONE("5", "10", "0", "1")); /* more from the cache than there was */
	expect_usage(&s.usage, 0, 1, 0, 10, -1);
}

static void
codex_says_what_went_wrong(void **state)
{
	static const struct {
		const char *lines[3];
		enum kr_trouble trouble;
		uint64_t resets_ms;
	} rows[] = {
		{ { BROKEN("Reconnecting... 5/5 (unexpected status 401 Unauthorized: x)"),
			  FAILED("unexpected status 401 Unauthorized: Incorrect API key provided: sk-x., url: "
					 "http://a/v1/responses") },
			KR_TROUBLE_LOGIN, 0 },
		{ { FAILED("unexpected status 403 Forbidden: no") }, KR_TROUBLE_LOGIN, 0 },
		{ { FAILED("unexpected status 403 Forbidden: kraft: the host is not on the list") },
			KR_TROUBLE_UNREACHABLE, 0 },
		{ { BROKEN("Reconnecting... 1/5 (stream disconnected before completion: URL error: Proxy connection "
				   "failed: HTTP CONNECT failed with status 403)"),
			  FAILED("Connection failed: error sending request") },
			KR_TROUBLE_UNREACHABLE, 0 },
		{ { FAILED("exceeded retry limit, last status: 429 Too Many Requests") }, KR_TROUBLE_RATE_LIMIT, 0 },
		{ { FAILED(
			  "You’ve hit your usage limit. Upgrade to Pro (https://a.example), or try again at 6:23 PM.") },
			KR_TROUBLE_RATE_LIMIT, 1796059380000 },
		{ { FAILED("You've hit your usage limit. Try again at Dec 3rd, 2026 12:05 AM.") },
			KR_TROUBLE_RATE_LIMIT, 1796252700000 },
		{ { FAILED("rate limit exceeded: Rate limit reached for x. Please try again in 1.5s.") },
			KR_TROUBLE_RATE_LIMIT, 1796050267500 },
		{ { FAILED("You've hit your usage limit. Try again in 2 hours 3 minutes.") }, KR_TROUBLE_RATE_LIMIT,
			1796057646000 },
		{ { FAILED("rate limit; try again in 500ms") }, KR_TROUBLE_RATE_LIMIT, 1796050266500 },
		{ { FAILED("usage limit; try again at 25:99 PM") }, KR_TROUBLE_RATE_LIMIT, 0 },
		{ { FAILED("usage limit; try again in 99999999999999999999 days") }, KR_TROUBLE_RATE_LIMIT, 0 },
		{ { FAILED("usage limit; try again in a while") }, KR_TROUBLE_RATE_LIMIT, 0 },
		{ { FAILED("We’re currently experiencing high demand, which may cause temporary errors.") },
			KR_TROUBLE_OTHER, 0 },
		{ { "{\"type\":\"turn.failed\"}" }, KR_TROUBLE_OTHER, 0 },
		{ { BROKEN("Reconnecting... 1/5 (unexpected status 401 Unauthorized: x)") }, KR_TROUBLE_LOGIN, 0 },
		{ { BROKEN("Reconnecting... 1/5 (unexpected status 401 Unauthorized: x)"), ITEM("started", COMMAND) },
			KR_TROUBLE_NONE, 0 },
		/* a warning */
		{ { ITEM("completed",
				"\"type\":\"error\",\"message\":\"Model metadata for `x` not found. rate limit\""),
			  DONE("1", "0", "0", "1") },
			KR_TROUBLE_NONE, 0 },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(rows); i++) {
		const char *const lines[] = { THREAD, rows[i].lines[0], rows[i].lines[1], NULL };
		const struct kr_agent_seen s = read_lines(KR_READER_CODEX, lines);

		if (s.trouble != rows[i].trouble || s.resets_ms != rows[i].resets_ms)
			fail_msg("%s: %s, %llu", rows[i].lines[0], kr_trouble_name(s.trouble),
				(unsigned long long)s.resets_ms);
	}
	assert_string_equal(READ(CODEX, "Error loading config.toml: unknown configuration field `x`", "").said,
		"Error loading config.toml: unknown configuration field `x`");
}

/* ---- a conversation that goes on ---- */

static void
a_resumed_conversation_counts_once(void **state)
{
	const struct kr_usage before = { true, true, 107, 55, 0, 0, 1528 }, none = { 0 };
	struct kr_agent_seen s =
		READ(CLAUDE, RESULT("false", "null", "x", "1000", "1", "1107", "56", "0.005548"));
	struct kr_usage now_used;

	(void)state;
	kr_agent_usage_since(KR_READER_CLAUDE, &s, &before, &now_used); /* 2.1.332 */
	expect_usage(&now_used, 1000, 1, 3, 11, 4020);
	kr_agent_usage_since(KR_READER_CLAUDE, &s, &none, &now_used);
	expect_usage(&now_used, 1107, 56, 3, 11, 5548);
	s = READ(CLAUDE, RESULT("false", "null", "x", "1000", "100", "1000", "100", "0.005025")); /* 2.1.197 */
	kr_agent_usage_since(KR_READER_CLAUDE, &s, &before, &now_used);
	expect_usage(&now_used, 1000, 100, 3, 11, 5025);
	s = READ(CLAUDE, INIT, PART("m", TEXT("x"), "500", "60")); /* ended before it could tell */
	kr_agent_usage_since(KR_READER_CLAUDE, &s, &before, &now_used);
	expect_usage(&now_used, 500, 60, 2, 30, -1);
	s = READ(CODEX, THREAD, DONE("300", "0", "0", "60"));
	kr_agent_usage_since(KR_READER_CODEX, &s, &before, &now_used);
	expect_usage(&now_used, 193, 5, 0, 0, -1);
	s = READ(CODEX, THREAD);
	kr_agent_usage_since(KR_READER_CODEX, &s, &before, &now_used);
	assert_false(now_used.is_known);
}

/* ---- whatever a worker prints ---- */

static void
odd_numbers_and_texts_do_no_harm(void **state)
{
	static const char *const numbers[] = { "-5", "1e999", "-1e999", "9223372036854775808", "1.7", "0.0000001",
		"\"12\"", "null", "{}", "1e15",
		"123456789012345678901234567890123456789012345678901234567890123456789" };
	struct kr_agent_seen s;

	(void)state;
	for (size_t i = 0; i < KR_COUNT(numbers); i++) {
		kr_auto_buf struct kr_buf line = KR_BUF(4096);

		kr_buf_addf(&line,
			"{\"type\":\"result\",\"total_cost_usd\":%s,\"usage\":{\"input_tokens\":%s,\"output_tokens\":%s},"
			"\"api_error_status\":%s,\"is_error\":%s}",
			numbers[i], numbers[i], numbers[i], numbers[i], numbers[i]);
		s = READ(CLAUDE, line.data, line.data, line.data);
		assert_in_range(s.usage.input, 0, 3000000000000000);
		assert_in_range(s.usage.cost_micro, 0, 1000000000000000);
	}
	s = READ(CLAUDE, "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"--resume\",\"model\":"
					 "\"a\\u001b[2Jb\\u202ec\\u0000\"}");
	assert_string_equal(s.conversation, "");
	assert_string_equal(s.model, "a[2Jbc");
	s = READ(CLAUDE,
		"{\"type\":\"result\",\"session_id\":\"a b\",\"session_id\":\"c\",\"result\":\"x\\u0007\\ny\"}");
	assert_string_equal(s.conversation, "");
	assert_string_equal(s.said, "x\ny");
	s = READ(CLAUDE, "\x1b]0;title\x07 words\xff", "");
	assert_string_equal(s.said, "]0;title words?");
	s = READ(NONE, INIT);
	assert_string_equal(s.conversation, "");
}

static void
lines_may_be_long_and_deep(void **state)
{
	enum { LONG = 3 << 20 };
	kr_auto_buf struct kr_buf text = KR_BUF(8 << 20);
	kr_auto_free char *much = malloc(LONG);
	struct kr_agent_seen s;

	(void)state;
	assert_non_null(much);
	memset(much, 'x', LONG);
	kr_buf_adds(&text, "{\"type\":\"result\",\"is_error\":true,\"result\":\"");
	kr_buf_add(&text, much, LONG);
	kr_buf_adds(&text, "\",\"usage\":{\"input_tokens\":1,\"output_tokens\":2}}\n");
	memset(much, '[', LONG);
	kr_buf_adds(&text, "{\"a\":");
	kr_buf_add(&text, much, LONG); /* too deep, and no line */
	kr_agent_stream_parse(KR_READER_CLAUDE, text.data, text.len, &now, &s);
	expect_usage(&s.usage, 1, 2, 0, 0, -1);
	assert_int_equal(strlen(s.said), KR_AGENT_SAID - 1);
	assert_string_equal(s.said + KR_AGENT_SAID - 5, "x...");
}

/* ---- from a log ---- */

static void
add(struct kr_log *log, enum kr_log_stream stream, const char *text)
{
	kr_log_add(log, stream, text, strlen(text), 1);
}

static struct kr_agent_seen
read_log(struct place *p)
{
	struct kr_error err = { 0 };
	struct kr_agent_seen s;

	if (kr_agent_stream_read(p->top, "0123456789abcdef", KR_READER_CLAUDE, &s, &err) < 0)
		fail_msg("%s", err.message);
	return s;
}

static void
begin_log(struct place *p, struct kr_log *log, uint64_t limit)
{
	sh(p, "mkdir -p sessions/0123456789abcdef");
	kr_log_init(log, open(below(p, "sessions/0123456789abcdef"), O_RDONLY | O_DIRECTORY | O_CLOEXEC), limit);
	assert_true(log->dir_fd >= 0);
}

static void
end_log(struct kr_log *log)
{
	int dir_fd = log->dir_fd;

	assert_int_equal(log->sys_errno, 0);
	kr_log_close(log);
	(void)close(dir_fd);
}

static void
a_log_has_lines_in_pieces_of_two_streams(void **state)
{
	struct place *p = *state;
	struct kr_agent_seen s = read_log(p);
	struct kr_log log;

	assert_false(s.usage.is_known || *s.conversation);
	begin_log(p, &log, KR_LOG_LIMIT_BYTES);
	add(&log, KR_LOG_STDOUT, INIT "\n{\"type\":\"res");
	add(&log, KR_LOG_STDERR, "Error: MCP tool a (passed via --permission-prompt");
	add(&log, KR_LOG_NOTE, "a remark");
	add(&log, KR_LOG_STDOUT, "ult\",\"is_error\":false,\"result\":\"fine\"}\n");
	add(&log, KR_LOG_STDERR, "-tool) not found.\n");
	end_log(&log);
	s = read_log(p);
	assert_string_equal(s.said, "fine");
	assert_true(s.has_ended && !s.trouble);
	assert_string_equal(s.model, "claude-opus-4-8[1m]");
}

/* 64 MiB, and lines that were cut where the log drops its middle. */
static void
of_a_long_log_both_ends_are_read_in_time(void **state)
{
	static const char line[] = PART("m", TEXT("0123456789012345678901234567890123456789"), "1", "1") "\n";
	struct place *p = *state;
	struct kr_agent_seen s;
	struct kr_log log;

	begin_log(p, &log, KR_LOG_LIMIT_BYTES);
	add(&log, KR_LOG_STDOUT, INIT "\n");
	for (size_t n = 0; n < 80 << 20; n += sizeof(line) - 1)
		add(&log, KR_LOG_STDOUT, line);
	add(&log, KR_LOG_STDOUT, RESULT("false", "null", "fine", "7", "5", "7", "5", "0.5") "\n");
	end_log(&log);
	s = read_log(p);
	expect_usage(&s.usage, 7, 5, 3, 11, 500000);
	assert_string_equal(s.model, "claude-opus-4-8[1m]");
	assert_string_equal(s.said, "fine");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(claudes_last_result_tells_what_it_used),
		cmocka_unit_test(of_a_claude_that_was_ended_each_message_counts_once),
		cmocka_unit_test(claude_says_what_went_wrong),
		cmocka_unit_test(codexs_last_turn_tells_what_the_thread_used),
		cmocka_unit_test(codex_says_what_went_wrong),
		cmocka_unit_test(a_resumed_conversation_counts_once),
		cmocka_unit_test(odd_numbers_and_texts_do_no_harm),
		cmocka_unit_test(lines_may_be_long_and_deep),
		place_test(a_log_has_lines_in_pieces_of_two_streams),
		place_test(of_a_long_log_both_ends_are_read_in_time),
	};

	return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
