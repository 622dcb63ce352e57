/*
 * An agent's words as they are, a tool in one line, nothing of what tools gave back but why one failed; at
 * the end what all of it took:
 *
 *     I look at the tests first.
 *     > Bash: make test
 *       failed: Exit code 2
 *     -- 3 turns, 5120 tokens, $0.0412, 38 s
 *
 * A line is shown when it is whole.
 */
#include "agent/render.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/portable.h"
#include "base/text.h"
#include "os/powerless.h"

enum { SUBJECT_MAX = 200 };
#define PLAIN ""
#define DIM "\033[2m"
#define RED "\033[31m"

/* ---- what is written ---- */

static void
flush(struct kr_render *r)
{
	if (r->held)
		r->write(r->context, r->out, r->held);
	r->held = 0;
}

static void
put(struct kr_render *r, const char *bytes, size_t n)
{
	while (n) {
		size_t piece = sizeof(r->out) - r->held;

		piece = n < piece ? n : piece;
		memcpy(r->out + r->held, bytes, piece);
		r->held += piece;
		bytes += piece;
		n -= piece;
		if (r->held == sizeof(r->out))
			flush(r);
	}
}

/* A line of ours; what comes from outside in it is clean. */
KR_PRINTF(3, 4)
static void
put_line(struct kr_render *r, const char *colour, const char *fmt, ...)
{
	char text[KR_AGENT_SAID + 512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap); /* cut, when it is that long */
	va_end(ap);
	if (r->is_coloured && *colour)
		put(r, colour, strlen(colour));
	put(r, text, strlen(text));
	if (r->is_coloured && *colour)
		put(r, "\033[0m", 4);
	put(r, "\n", 1);
}

/* All of a text. */
static void
put_text(struct kr_render *r, struct kr_json text)
{
	char part[4096 + 1], last = '\n';
	size_t n;

	if (text.type != KR_JSON_STRING)
		return;
	while ((n = kr_json_text_part(&text, part, sizeof(part) - 1)) > 0) {
		n = kr_text_plain(part, part, n, true);
		put(r, part, n);
		last = n ? part[n - 1] : last;
	}
	if (last != '\n')
		put(r, "\n", 1);
}

/* The first line of a member's text. */
static bool
first_line(const struct kr_json *object, const char *name, char out[SUBJECT_MAX])
{
	size_t n;

	if (!kr_agent_text(object, name, true, out, SUBJECT_MAX))
		return false;
	n = strcspn(out, "\n");
	if (out[n] && n <= SUBJECT_MAX - sizeof("..."))
		memcpy(out + n, "...", sizeof("..."));
	else
		out[n] = '\0';
	return true;
}

/* ---- claude ---- */

/* What a tool is used on, by what tools call it. */
static void
find_subject(const struct kr_json *input, char out[SUBJECT_MAX])
{
	static const char *const names[] = { "command", "file_path", "notebook_path", "path", "pattern", "url",
		"query", "skill", "description", "prompt" };

	out[0] = '\0';
	for (size_t i = 0; i < KR_COUNT(names); i++)
		if (first_line(input, names[i], out))
			return;
}

static void
show_tool(struct kr_render *r, const struct kr_json *block, const char *indent)
{
	const struct kr_json input = kr_agent_member(block, "input");
	char name[KR_AGENT_ID] = "a tool", subject[SUBJECT_MAX];

	(void)kr_agent_text(block, "name", false, name, sizeof(name)); /* or that */
	find_subject(&input, subject);
	put_line(r, DIM, "%s> %s%s%s", indent, name, *subject ? ": " : "", subject);
}

/* Its content is a text, or a list of blocks with one. */
static void
show_failure(struct kr_render *r, const struct kr_json *block, const char *indent)
{
	const struct kr_json content = kr_agent_member(block, "content");
	struct kr_json part = { 0 };
	char why[SUBJECT_MAX] = "";

	if (kr_agent_member(block, "is_error").type != KR_JSON_TRUE)
		return;
	if (!first_line(block, "content", why))
		while (
			content.type == KR_JSON_ARRAY && kr_json_next(&content, &part) && !first_line(&part, "text", why))
			;
	put_line(r, RED, "%s  failed%s%s", indent, *why ? ": " : "", why);
}

static void
show_message(struct kr_render *r, const struct kr_json *line)
{
	const struct kr_json message = kr_agent_member(line, "message"),
						 content = kr_agent_member(&message, "content");
	/* of an agent that it started itself */
	const char *indent = kr_agent_member(line, "parent_tool_use_id").type == KR_JSON_STRING ? "  " : "";
	struct kr_json block = { 0 };

	while (content.type == KR_JSON_ARRAY && kr_json_next(&content, &block)) {
		if (kr_agent_member_is(&block, "type", "tool_use"))
			show_tool(r, &block, indent);
		else if (kr_agent_member_is(&block, "type", "tool_result"))
			show_failure(r, &block, indent);
		else if (kr_agent_member_is(&block, "type", "text") && kr_agent_member_is(line, "type", "assistant"))
			put_text(r, kr_agent_member(&block, "text"));
	}
}

static void
show_retry(struct kr_render *r, const struct kr_json *line)
{
	char why[SUBJECT_MAX] = "unknown";

	(void)first_line(line, "error", why); /* or that */
	put_line(r, DIM, "  the model's host did not answer as it should (%s, %.0f), try %.0f of %.0f", why,
		kr_agent_number(line, "error_status"), kr_agent_number(line, "attempt"),
		kr_agent_number(line, "max_retries"));
}

static void
show_result(struct kr_render *r, const struct kr_json *line)
{
	char why[SUBJECT_MAX];

	r->turns += (unsigned)kr_agent_number(line, "num_turns");
	r->taken_ms += kr_agent_number(line, "duration_ms");
	/* An error with words has said them as the agent's. */
	if (kr_agent_member(line, "is_error").type == KR_JSON_TRUE &&
		kr_agent_member(line, "result").type != KR_JSON_STRING && first_line(line, "subtype", why))
		put_line(r, RED, "failed: %s", why);
}

static void
show_claude(struct kr_render *r, const struct kr_json *line)
{
	const struct kr_json limit = kr_agent_member(line, "rate_limit_info");

	kr_agent_read_claude(&r->reading, line);
	if (kr_agent_member_is(line, "type", "assistant") || kr_agent_member_is(line, "type", "user"))
		show_message(r, line);
	else if (kr_agent_member_is(line, "type", "result"))
		show_result(r, line);
	else if (kr_agent_member_is(line, "subtype", "api_retry"))
		show_retry(r, line);
	else if (kr_agent_member_is(&limit, "status", "rejected"))
		put_line(r, RED, "  the limit of its subscription is reached");
}

/* ---- codex ---- */

static void
show_command(struct kr_render *r, const struct kr_json *item, bool is_done)
{
	static const char *const shells[] = { "/bin/bash -lc ", "/bin/bash -c " };
	const double code = kr_agent_number(item, "exit_code");
	char command[SUBJECT_MAX] = "";
	const char *shown = command;

	if (is_done) {
		if (code > 0)
			put_line(r, RED, "  failed: exit code %.0f", code);
		return;
	}
	(void)first_line(item, "command", command); /* or nothing */
	for (size_t i = 0; i < KR_COUNT(shells); i++)
		if (kr_text_has_prefix(command, shells[i]))
			shown = command + strlen(shells[i]);
	put_line(r, DIM, "> Bash: %s", shown);
}

static void
show_changes(struct kr_render *r, const struct kr_json *item)
{
	const struct kr_json changes = kr_agent_member(item, "changes");
	struct kr_json change = { 0 };
	char path[SUBJECT_MAX];

	while (changes.type == KR_JSON_ARRAY && kr_json_next(&changes, &change))
		if (first_line(&change, "path", path))
			put_line(r, DIM, "> Edit: %s", path);
}

static void
show_item(struct kr_render *r, const struct kr_json *line, bool is_done)
{
	const struct kr_json item = kr_agent_member(line, "item");
	char text[SUBJECT_MAX];

	if (kr_agent_member_is(&item, "type", "command_execution"))
		show_command(r, &item, is_done);
	else if (!is_done)
		return;
	else if (kr_agent_member_is(&item, "type", "agent_message"))
		put_text(r, kr_agent_member(&item, "text"));
	else if (kr_agent_member_is(&item, "type", "file_change"))
		show_changes(r, &item);
	else if (kr_agent_member_is(&item, "type", "mcp_tool_call") && first_line(&item, "tool", text))
		put_line(r, DIM, "> %s", text);
	else if (kr_agent_member_is(&item, "type", "web_search") && first_line(&item, "query", text))
		put_line(r, DIM, "> WebSearch: %s", text);
	else if (kr_agent_member_is(&item, "type", "error") && first_line(&item, "message", text))
		put_line(r, DIM, "  %s", text);
}

static void
show_codex(struct kr_render *r, const struct kr_json *line)
{
	const struct kr_json error = kr_agent_member(line, "error");
	char text[SUBJECT_MAX];

	kr_agent_read_codex(&r->reading, line);
	if (kr_agent_member_is(line, "type", "item.started"))
		show_item(r, line, false);
	else if (kr_agent_member_is(line, "type", "item.completed"))
		show_item(r, line, true);
	else if (kr_agent_member_is(line, "type", "turn.completed"))
		r->turns++;
	else if (kr_agent_member_is(line, "type", "error") && first_line(line, "message", text))
		put_line(r, DIM, "  %s", text);
	else if (kr_agent_member_is(line, "type", "turn.failed") && first_line(&error, "message", text))
		put_line(r, RED, "failed: %s", text);
}

/* ---- lines ---- */

static void
show_line(struct kr_render *r)
{
	struct kr_json all;

	if (r->is_long)
		put_line(r, DIM, "  (a line of more than %d bytes is left out)", KR_RENDER_LINE);
	else if (r->reader == KR_READER_NONE || r->line[0] != '{' || !kr_json_check(r->line, r->len, &all)) {
		put(r, r->line, kr_text_plain(r->line, r->line, r->len, true));
		put(r, "\n", 1);
	} else if (r->reader == KR_READER_CLAUDE)
		show_claude(r, &all);
	else
		show_codex(r, &all);
	r->len = 0;
	r->is_long = false;
	flush(r);
}

void
kr_render_feed(struct kr_render *r, const char *bytes, size_t n)
{
	const char *end = bytes + n;

	r->reading.out = &r->seen;
	while (bytes < end) {
		const char *stop = memchr(bytes, '\n', (size_t)(end - bytes));
		size_t piece = (size_t)((stop ? stop : end) - bytes);

		if (piece > KR_RENDER_LINE - r->len) {
			piece = KR_RENDER_LINE - r->len;
			r->is_long = true;
		}
		memcpy(r->line + r->len, bytes, piece);
		r->len += piece;
		bytes = stop ? stop + 1 : end;
		if (stop)
			show_line(r);
	}
}

void
kr_render_end(struct kr_render *r)
{
	const struct kr_usage *u = &r->seen.usage, *own = &r->seen.own;
	char cost[48] = "", taken[48] = "";

	r->reading.out = &r->seen;
	if (r->len || r->is_long)
		show_line(r);
	kr_agent_conclude(&r->reading);
	if (!u->is_known)
		return;
	if (u->has_cost)
		snprintf(cost, sizeof(cost), ", $%.4f", (double)u->cost_micro / 1e6);
	if (r->taken_ms > 0)
		snprintf(taken, sizeof(taken), ", %.0f s", r->taken_ms / 1000);
	put_line(r, DIM, "-- %u %s, %lld tokens%s%s", r->turns, r->turns == 1 ? "turn" : "turns",
		(long long)kr_usage_tokens(own->is_known ? own : u), cost, taken);
	flush(r);
}

/* ---- a process ---- */

static void
write_out(void *context, const char *bytes, size_t n)
{
	(void)context;
	while (n) {
		const ssize_t done = write(STDOUT_FILENO, bytes, n);

		if (done < 0 && errno != EINTR)
			_exit(0); /* nobody reads */
		bytes += done > 0 ? done : 0;
		n -= done > 0 ? (size_t)done : 0;
	}
}

static void
pass(void *context)
{
	struct kr_render *r = context;
	char bytes[16 << 10];
	ssize_t n;

	while ((n = read(STDIN_FILENO, bytes, sizeof(bytes))) != 0)
		if (n > 0)
			kr_render_feed(r, bytes, (size_t)n);
		else if (errno != EINTR)
			break;
	kr_render_end(r);
}

int
kr_agent_render(
	enum kr_reader reader, int out_fd, bool is_coloured, int *in_fd, pid_t *pid, struct kr_error *err)
{
	kr_auto_free struct kr_render *r = kr_xcalloc(1, sizeof(*r));
	kr_auto_fd int read_end = -1;
	int ends[2];

	*r = (struct kr_render){
		.reader = reader, .is_coloured = is_coloured && isatty(out_fd), .write = write_out
	};
	if (kr_pipe_pair(ends, false) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a pipe");
	read_end = ends[0];
	if (kr_powerless_pass(pass, r, read_end, out_fd, pid, err) < 0) {
		(void)close(ends[1]);
		return -1;
	}
	*in_fd = ends[1];
	return 0;
}
