/*
 * Claude Code, --output-format stream-json --verbose: {"type": "system" | "assistant" | "user" | "result" |
 * ...}.
 *
 *     system/init       session_id, model: the conversation
 *     assistant         a part of a message, with the usage that was known when the message began
 *     system/api_retry  a request that failed and is made again
 *     rate_limit_event  how near a subscription's limit is; "rejected": it is reached
 *     result            the end of a turn: is_error (subtype is "success" also for errors), total_cost_usd
 * and modelUsage of all turns so far, usage of this one
 *
 * So the last result's sum over modelUsage is what it used (2.1.332: and what the conversation had used that
 * is resumed; 2.1.197 begins with nothing; see kr_agent_usage_since), and messages only count that came after
 * it: of a session that was ended in the middle.
 */
#include "agent/reading.h"

#include <stdio.h>

#define DOLLARS_MAX 1e9

/* ---- usage ---- */

struct names {
	const char *input, *output, *cache_write, *cache_read;
};
static const struct names of_message = { "input_tokens", "output_tokens", "cache_creation_input_tokens",
	"cache_read_input_tokens" };
static const struct names of_model = { "inputTokens", "outputTokens", "cacheCreationInputTokens",
	"cacheReadInputTokens" };

static struct kr_usage
read_usage(const struct kr_json *object, const struct names *names)
{
	return (struct kr_usage){
		.is_known = kr_agent_member(object, names->input).type == KR_JSON_NUMBER ||
					kr_agent_member(object, names->output).type == KR_JSON_NUMBER,
		.input = (int64_t)kr_agent_number(object, names->input),
		.output = (int64_t)kr_agent_number(object, names->output),
		.cache_write = (int64_t)kr_agent_number(object, names->cache_write),
		.cache_read = (int64_t)kr_agent_number(object, names->cache_read),
	};
}

/* Its place; a new one takes the oldest one's. NULL: it has no id, and is not told again. */
static struct kr_message *
find_message(struct kr_reading *r, const struct kr_json *message)
{
	char id[KR_AGENT_ID];
	struct kr_message *m;

	if (!kr_agent_text(message, "id", false, id, sizeof(id)))
		return NULL;
	for (size_t i = 0; i < KR_MESSAGES && i < r->message_count; i++)
		if (strcmp(r->messages[i].id, id) == 0)
			return &r->messages[i];
	m = &r->messages[r->message_count++ % KR_MESSAGES];
	*m = (struct kr_message){ 0 };
	memcpy(m->id, id, sizeof(id));
	return m;
}

static void
count_message(struct kr_reading *r, const struct kr_json *message)
{
	const struct kr_json usage = kr_agent_member(message, "usage");
	const struct kr_usage now = read_usage(&usage, &of_message);
	struct kr_message *m = now.is_known ? find_message(r, message) : NULL;

	if (!now.is_known || (m && m->is_counted))
		return;
	if (m) {
		kr_agent_usage_take(&r->open, &m->usage);
		m->usage = now;
	}
	kr_agent_usage_add(&r->open, &now);
}

static void
sum_models(const struct kr_json *models, struct kr_usage *sum)
{
	struct kr_json name, value = { 0 };

	while (models->type == KR_JSON_OBJECT && kr_json_next_member(models, &name, &value)) {
		const struct kr_usage usage = read_usage(&value, &of_model);

		kr_agent_usage_add(sum, &usage);
	}
}

static void
count_result(struct kr_reading *r, const struct kr_json *line)
{
	const struct kr_json models = kr_agent_member(line, "modelUsage"), usage = kr_agent_member(line, "usage");
	const struct kr_usage turn = read_usage(&usage, &of_message);
	struct kr_usage all = { .has_cost = r->ended.has_cost, .cost_micro = r->ended.cost_micro };

	sum_models(&models, &all);
	kr_agent_usage_add(&r->own, &turn);
	if (all.is_known)
		r->ended = all;
	else
		kr_agent_usage_add(&r->ended, &turn);
	if (kr_agent_member(line, "total_cost_usd").type == KR_JSON_NUMBER) {
		const double dollars = kr_agent_number(line, "total_cost_usd");

		r->ended.has_cost = true;
		r->ended.cost_micro = (int64_t)((dollars < DOLLARS_MAX ? dollars : DOLLARS_MAX) * 1e6 + 0.5);
	}
	r->open = (struct kr_usage){ 0 };
	for (size_t i = 0; i < KR_MESSAGES; i++)
		r->messages[i].is_counted = true;
}

/* ---- lines ---- */

static enum kr_trouble
trouble_of_status(double status)
{
	return status == 401 || status == 403 ? KR_TROUBLE_LOGIN
		   : status == 429                ? KR_TROUBLE_RATE_LIMIT
										  : KR_TROUBLE_OTHER;
}

static void
read_init(struct kr_reading *r, const struct kr_json *line)
{
	const struct kr_json servers = kr_agent_member(line, "mcp_servers");
	struct kr_json server = { 0 };

	kr_agent_note_conversation(r, line, "session_id");
	(void)kr_agent_text(line, "model", false, r->out->model, sizeof(r->out->model)); /* or none */
	while (servers.type == KR_JSON_ARRAY && kr_json_next(&servers, &server))
		if (kr_agent_member_is(&server, "name", "kraft") && kr_agent_member_is(&server, "status", "failed"))
			r->pending = KR_TROUBLE_GATE;
}

static void
read_retry(struct kr_reading *r, const struct kr_json *line)
{
	const double status = kr_agent_number(line, "error_status");

	r->pending = status > 0 ? trouble_of_status(status) : KR_TROUBLE_UNREACHABLE;
	if (r->pending == KR_TROUBLE_OTHER && kr_agent_member_is(line, "error", "rate_limit"))
		r->pending = KR_TROUBLE_RATE_LIMIT;
}

/* The text of the message's last block of text. */
static void
read_words(struct kr_reading *r, const struct kr_json *message)
{
	const struct kr_json content = kr_agent_member(message, "content");
	struct kr_json block = { 0 };

	while (content.type == KR_JSON_ARRAY && kr_json_next(&content, &block))
		if (kr_agent_member_is(&block, "type", "text"))
			(void)kr_agent_text(&block, "text", true, r->out->said, sizeof(r->out->said));
}

static void
read_assistant(struct kr_reading *r, const struct kr_json *line)
{
	const struct kr_json message = kr_agent_member(line, "message");
	char model[KR_AGENT_ID];

	read_words(r, &message);
	if (kr_agent_member_is(&message, "model", "<synthetic>")) { /* the CLI's own: an error */
		r->pending = kr_agent_trouble_of(r->out->said);
		return;
	}
	r->pending = KR_TROUBLE_NONE;
	count_message(r, &message);
	if (!*r->out->model && kr_agent_text(&message, "model", false, model, sizeof(model)))
		memcpy(r->out->model, model, sizeof(model));
}

static void
read_limit(struct kr_reading *r, const struct kr_json *line)
{
	const struct kr_json info = kr_agent_member(line, "rate_limit_info");
	const double resets = kr_agent_number(&info, "resetsAt");

	if (!kr_agent_member_is(&info, "status", "rejected")) {
		if (r->pending == KR_TROUBLE_RATE_LIMIT)
			r->pending = KR_TROUBLE_NONE;
		return;
	}
	r->pending = KR_TROUBLE_RATE_LIMIT;
	kr_agent_note_reset(r, resets < 1e11 ? resets * 1000 : resets);
	(void)kr_agent_text(&info, "rateLimitType", false, r->out->limit_kind, sizeof(r->out->limit_kind));
}

static enum kr_trouble
trouble_of_result(const struct kr_reading *r, const struct kr_json *line, const char *said)
{
	const enum kr_trouble by_words = kr_agent_trouble_of(said);
	const enum kr_trouble by_status = trouble_of_status(kr_agent_number(line, "api_error_status"));

	if (by_words == KR_TROUBLE_UNREACHABLE || by_status == KR_TROUBLE_OTHER)
		return by_words == KR_TROUBLE_OTHER && r->pending == KR_TROUBLE_RATE_LIMIT ? r->pending : by_words;
	return by_status;
}

static void
read_result(struct kr_reading *r, const struct kr_json *line)
{
	char said[KR_AGENT_SAID];
	bool has_words = kr_agent_text(line, "result", true, said, sizeof(said)) && *said;
	const bool is_error = kr_agent_member(line, "is_error").type == KR_JSON_TRUE;

	kr_agent_note_conversation(r, line, "session_id");
	count_result(r, line);
	if (!has_words && is_error)
		has_words = kr_agent_text(line, "subtype", false, said, sizeof(said));
	if (!is_error) {
		kr_agent_note_end(r, KR_TROUBLE_NONE, has_words ? said : NULL);
		return;
	}
	if (!has_words)
		snprintf(said, sizeof(said), "%s", r->out->said);
	kr_agent_note_end(r, trouble_of_result(r, line, said), said);
	kr_agent_note_limit_text(r, said);
}

void
kr_agent_read_claude(struct kr_reading *r, const struct kr_json *line)
{
	if (kr_agent_member_is(line, "type", "assistant"))
		read_assistant(r, line);
	else if (kr_agent_member_is(line, "type", "result"))
		read_result(r, line);
	else if (kr_agent_member_is(line, "type", "rate_limit_event"))
		read_limit(r, line);
	else if (!kr_agent_member_is(line, "type", "system"))
		return;
	else if (kr_agent_member_is(line, "subtype", "init"))
		read_init(r, line);
	else if (kr_agent_member_is(line, "subtype", "api_retry"))
		read_retry(r, line);
}
