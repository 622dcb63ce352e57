/*
 * Codex, exec --json: {"type": "thread.started" | "turn.completed" | "item.completed" | ...}.
 *
 *     thread.started    thread_id: the conversation
 *     item.completed    item.type agent_message: its words; "error": a warning
 *     error             a request that failed and is made again, or the reason of what follows
 *     turn.failed       the end, with error.message
 *     turn.completed    the end, with the usage of all of the thread so far, also of what it was before it
 * was resumed; the input counts what came from the cache and went into it
 *
 * It tells neither its model nor a price.
 */
#include "agent/reading.h"

#include <stdio.h>

static int64_t
beyond(int64_t n, int64_t part)
{
	return n > part ? n - part : 0;
}

static void
count_turn(struct kr_reading *r, const struct kr_json *line)
{
	const struct kr_json u = kr_agent_member(line, "usage");
	struct kr_usage turn = {
		.is_known = kr_agent_member(&u, "input_tokens").type == KR_JSON_NUMBER,
		.output = (int64_t)kr_agent_number(&u, "output_tokens"),
		.cache_write = (int64_t)kr_agent_number(&u, "cache_write_input_tokens"),
		.cache_read = (int64_t)kr_agent_number(&u, "cached_input_tokens"),
	};

	turn.input = beyond((int64_t)kr_agent_number(&u, "input_tokens"), turn.cache_read + turn.cache_write);
	if (turn.is_known)
		r->ended = turn;
}

/* Of an object with a message. */
static void
read_error(struct kr_reading *r, const struct kr_json *error)
{
	char said[KR_AGENT_SAID];

	if (!kr_agent_text(error, "message", true, said, sizeof(said)))
		return;
	snprintf(r->out->said, sizeof(r->out->said), "%s", said);
	r->pending = kr_agent_trouble_of(said);
	kr_agent_note_limit_text(r, said);
}

static void
read_item(struct kr_reading *r, const struct kr_json *line)
{
	const struct kr_json item = kr_agent_member(line, "item");

	if (kr_agent_member_is(&item, "type", "error"))
		return;
	r->pending = KR_TROUBLE_NONE;
	if (kr_agent_member_is(&item, "type", "agent_message"))
		(void)kr_agent_text(&item, "text", true, r->out->said, sizeof(r->out->said));
}

static void
read_failure(struct kr_reading *r, const struct kr_json *line)
{
	const struct kr_json error = kr_agent_member(line, "error");

	read_error(r, &error);
	kr_agent_note_end(r, r->pending ? r->pending : KR_TROUBLE_OTHER, NULL);
}

void
kr_agent_read_codex(struct kr_reading *r, const struct kr_json *line)
{
	if (kr_agent_member_is(line, "type", "item.completed") ||
		kr_agent_member_is(line, "type", "item.started"))
		read_item(r, line);
	else if (kr_agent_member_is(line, "type", "thread.started"))
		kr_agent_note_conversation(r, line, "thread_id");
	else if (kr_agent_member_is(line, "type", "error"))
		read_error(r, line);
	else if (kr_agent_member_is(line, "type", "turn.failed"))
		read_failure(r, line);
	else if (kr_agent_member_is(line, "type", "turn.completed")) {
		count_turn(r, line);
		kr_agent_note_end(r, KR_TROUBLE_NONE, NULL);
	}
}
