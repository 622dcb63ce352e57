/*
 * Lines one after the other: JSON objects are the reader's (claude.c, codex.c), the rest is plain text. JSON
 * is read where it lies (base/json.h), so neither the size of a line nor its depth costs memory. A number
 * from outside is used only between 0 and KR_AGENT_NUMBER_MAX, so that sums of a session stay far from the
 * end of their type.
 */
#include "agent/reading.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "base/text.h"
#include "os/powerless.h"

static const char *const trouble_names[] = {
#define X(trouble, name) [KR_TROUBLE_##trouble] = name,
	KR_TROUBLES(X)
#undef X
};

const char *
kr_trouble_name(enum kr_trouble trouble)
{
	return (unsigned)trouble < KR_TROUBLE_COUNT ? trouble_names[trouble] : "unknown";
}

/* ---- parts of an object ---- */

struct kr_json
kr_agent_member(const struct kr_json *object, const char *name)
{
	struct kr_json out = { 0 };

	if (object->type != KR_JSON_OBJECT || !kr_json_member(object, name, &out))
		return (struct kr_json){ 0 };
	return out;
}

bool
kr_agent_member_is(const struct kr_json *object, const char *name, const char *text)
{
	const struct kr_json member = kr_agent_member(object, name);

	return member.type == KR_JSON_STRING && kr_json_is(&member, text);
}

double
kr_agent_number(const struct kr_json *object, const char *name)
{
	const struct kr_json member = kr_agent_member(object, name);
	char digits[64];
	double number;

	if (member.type != KR_JSON_NUMBER || member.n >= sizeof(digits))
		return 0;
	memcpy(digits, member.at, member.n);
	digits[member.n] = '\0';
	number = strtod(digits, NULL);
	if (!(number > 0))
		return 0;
	return number < KR_AGENT_NUMBER_MAX ? number : KR_AGENT_NUMBER_MAX;
}

bool
kr_agent_text(const struct kr_json *object, const char *name, bool lines, char *out, size_t size)
{
	struct kr_json member = kr_agent_member(object, name);
	size_t n;

	if (member.type != KR_JSON_STRING)
		return false;
	n = kr_json_text_part(&member, out, size - sizeof("..."));
	n = kr_text_plain(out, out, n, lines);
	if (member.n > 2)
		memcpy(out + n, "...", sizeof("..."));
	return true;
}

/* ---- what is noted ---- */

static bool
is_id(const char *text)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

	return *text && *text != '-' && text[strspn(text, letters)] == '\0';
}

/* It becomes a word of a command line when the conversation goes on. */
void
kr_agent_note_conversation(struct kr_reading *r, const struct kr_json *object, const char *name)
{
	char id[KR_AGENT_ID];

	if (kr_agent_text(object, name, true, id, sizeof(id)) && is_id(id))
		memcpy(r->out->conversation, id, sizeof(id));
}

/* The first that the words name. A proxy's refusal comes first: some tell it as a login that failed. */
static const struct {
	const char *words;
	enum kr_trouble trouble;
} signs[] = {
	{ "403 kraft: ", KR_TROUBLE_UNREACHABLE }, /* the way out's own answer */
	{ "403 forbidden: kraft: ", KR_TROUBLE_UNREACHABLE },
	{ "proxy", KR_TROUBLE_UNREACHABLE },
	{ "tunnel", KR_TROUBLE_UNREACHABLE },
	{ "--permission-prompt-tool) not found", KR_TROUBLE_GATE },
	{ "usage limit", KR_TROUBLE_RATE_LIMIT },
	{ "ve hit your ", KR_TROUBLE_RATE_LIMIT }, /* "session limit", "5-hour limit" */
	{ "rate limit", KR_TROUBLE_RATE_LIMIT },
	{ "(429)", KR_TROUBLE_RATE_LIMIT },
	{ "429 too many requests", KR_TROUBLE_RATE_LIMIT },
	{ "run /login", KR_TROUBLE_LOGIN },
	{ "not logged in", KR_TROUBLE_LOGIN },
	{ "invalid api key", KR_TROUBLE_LOGIN },
	{ "incorrect api key", KR_TROUBLE_LOGIN },
	{ "failed to authenticate", KR_TROUBLE_LOGIN },
	{ "401 unauthorized", KR_TROUBLE_LOGIN },
	{ "403 forbidden", KR_TROUBLE_LOGIN },
	{ "unable to connect", KR_TROUBLE_UNREACHABLE },
	{ "connection refused", KR_TROUBLE_UNREACHABLE },
	{ "error sending request", KR_TROUBLE_UNREACHABLE },
	{ "failed to lookup address", KR_TROUBLE_UNREACHABLE },
};

enum kr_trouble
kr_agent_trouble_of(const char *text)
{
	for (size_t i = 0; i < KR_COUNT(signs); i++)
		if (strcasestr(text, signs[i].words))
			return signs[i].trouble;
	return KR_TROUBLE_OTHER;
}

void
kr_agent_note_reset(struct kr_reading *r, double ms)
{
	if (ms >= 1e12 && ms < 1e14) /* 2001 to 5138 */
		r->out->resets_ms = (uint64_t)ms;
}

/* ---- when a limit is over, in words ---- */

static double
unit_ms(const char *unit)
{
	static const struct {
		const char *name;
		double ms;
	} units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60e3 }, { "h", 3600e3 }, { "d", 86400e3 } };

	for (size_t i = 0; i < KR_COUNT(units); i++)
		if (strncasecmp(unit, units[i].name, strlen(units[i].name)) == 0)
			return units[i].ms;
	return 0;
}

/* "1.5s", "2 hours 3 minutes" */
static double
duration_ms(const char *text)
{
	double sum = 0;

	for (;;) {
		char *end;
		double number;

		text += strspn(text, " ");
		if (*text < '0' || *text > '9')
			return sum;
		number = strtod(text, &end);
		end += strspn(end, " ");
		if (!(number < KR_AGENT_NUMBER_MAX) || !(unit_ms(end) > 0))
			return 0;
		sum += number * unit_ms(end);
		text = end + strspn(end, "abcdefghijklmnopqrstuvwxyz");
	}
}

/* Days since 1970-01-01 of the proleptic Gregorian calendar. */
static int64_t
days_of(int64_t year, int month, int day)
{
	const int64_t y = year - (month <= 2), era = y / 400, in_era = y % 400;
	const int64_t in_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

	return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719468;
}

static int
month_of(const char *name)
{
	static const char names[] = "janfebmaraprmayjunjulaugsepoctnovdec";

	for (int i = 0; i < 12; i++)
		if (strncasecmp(name, names + (size_t)i * 3, 3) == 0)
			return i + 1;
	return 0;
}

/* "3:23 PM" of today, "Mar 3rd, 2026 3:23 PM"; local time. 0: it is neither. */
static double
wall_ms(const struct kr_agent_clock *clock, const char *text)
{
	char name[4] = "", half[3] = "", suffix[3];
	int day, year, hour, minute, month = 0;
	int64_t days = ((int64_t)(clock->now_ms / 1000) + clock->offset_s) / 86400;

	if (sscanf(text, "%3[A-Za-z] %2d%2[a-z], %4d %2d:%2d %2[APMapm]", name, &day, suffix, &year, &hour,
			&minute, half) == 7) {
		month = month_of(name);
		if (!month || day < 1 || day > 31 || year < 2001)
			return 0;
		days = days_of(year, month, day);
	} else if (sscanf(text, "%2d:%2d %2[APMapm]", &hour, &minute, half) != 3)
		return 0;
	if (hour < 1 || hour > 12 || minute < 0 || minute > 59)
		return 0;
	hour = hour % 12 + (half[0] == 'P' || half[0] == 'p' ? 12 : 0);
	return (double)(days * 86400 + hour * 3600 + minute * 60 - clock->offset_s) * 1000;
}

void
kr_agent_note_limit_text(struct kr_reading *r, const char *text)
{
	const char *at = strcasestr(text, "try again at "), *in = strcasestr(text, "try again in ");
	const char *bar = strstr(text, "limit reached|");
	double ms = 0;

	if (at)
		kr_agent_note_reset(r, wall_ms(&r->clock, at + strlen("try again at ")));
	else if (in)
		ms = duration_ms(in + strlen("try again in "));
	else if (bar)
		kr_agent_note_reset(r, strtod(bar + strlen("limit reached|"), NULL) * 1000);
	if (ms > 0)
		kr_agent_note_reset(r, (double)r->clock.now_ms + ms);
}

void
kr_agent_note_end(struct kr_reading *r, enum kr_trouble trouble, const char *said)
{
	r->out->has_ended = true;
	r->out->trouble = trouble;
	if (said)
		snprintf(r->out->said, sizeof(r->out->said), "%s", said);
}

/* ---- sums ---- */

void
kr_agent_usage_add(struct kr_usage *sum, const struct kr_usage *more)
{
	static const int64_t most = INT64_MAX / 4; /* two of them are one yet */
	int64_t *const to[] = { &sum->input, &sum->output, &sum->cache_write, &sum->cache_read,
		&sum->cost_micro };
	const int64_t from[] = { more->input, more->output, more->cache_write, more->cache_read,
		more->cost_micro };

	sum->is_known |= more->is_known;
	sum->has_cost |= more->has_cost;
	for (size_t i = 0; i < KR_COUNT(to); i++)
		*to[i] = *to[i] < most - from[i] ? *to[i] + from[i] : most;
}

void
kr_agent_usage_take(struct kr_usage *sum, const struct kr_usage *less)
{
	int64_t *const from[] = { &sum->input, &sum->output, &sum->cache_write, &sum->cache_read };
	const int64_t what[] = { less->input, less->output, less->cache_write, less->cache_read };

	for (size_t i = 0; i < KR_COUNT(from); i++)
		*from[i] = *from[i] > what[i] ? *from[i] - what[i] : 0;
}

static bool
holds(const struct kr_usage *all, const struct kr_usage *part)
{
	return all->input >= part->input && all->output >= part->output &&
		   all->cache_write >= part->cache_write && all->cache_read >= part->cache_read;
}

void
kr_agent_usage_since(enum kr_reader reader, const struct kr_agent_seen *seen, const struct kr_usage *before,
	struct kr_usage *out)
{
	struct kr_usage rest = seen->usage;

	*out = seen->usage;
	kr_agent_usage_take(&rest, &seen->own);
	/* What it told beyond its own turns: what was before, or agents that it started itself. */
	if (!out->is_known || !holds(reader == KR_READER_CODEX ? &seen->usage : &rest, before))
		return;
	kr_agent_usage_take(out, before);
	if (before->has_cost)
		out->cost_micro = out->cost_micro > before->cost_micro ? out->cost_micro - before->cost_micro : 0;
}

/* ---- all of it ---- */

/* Text for a person: the CLI's own words before or beside its lines. */
static void
read_plain(struct kr_reading *r, const char *line, size_t n)
{
	char text[KR_AGENT_SAID];
	enum kr_trouble trouble;

	n = kr_text_plain(text, line, n < sizeof(text) - 1 ? n : sizeof(text) - 1, false);
	if (text[strspn(text, " \t")] == '\0')
		return;
	memcpy(r->plain, text, n + 1);
	trouble = kr_agent_trouble_of(text);
	if (trouble == KR_TROUBLE_GATE)
		r->has_lost_gate = true;
	else if (trouble != KR_TROUBLE_OTHER)
		r->pending = trouble;
}

static void
read_line(struct kr_reading *r, enum kr_reader reader, const char *line, size_t n)
{
	struct kr_json all;

	if (!n || *line != '{')
		read_plain(r, line, n);
	else if (!kr_json_check(line, n, &all))
		return; /* cut off, or no line of the CLI's */
	else if (reader == KR_READER_CLAUDE)
		kr_agent_read_claude(r, &all);
	else
		kr_agent_read_codex(r, &all);
}

void
kr_agent_conclude(struct kr_reading *r)
{
	struct kr_agent_seen *out = r->out;

	out->usage = r->ended;
	kr_agent_usage_add(&out->usage, &r->open);
	out->own = r->own;
	kr_agent_usage_add(&out->own, &r->open);
	if (!out->has_ended)
		out->trouble = r->has_lost_gate ? KR_TROUBLE_GATE : r->pending;
	if (!*out->said || (!out->has_ended && r->has_lost_gate))
		memcpy(out->said, r->plain, sizeof(out->said));
	if (out->trouble != KR_TROUBLE_RATE_LIMIT) {
		out->resets_ms = 0;
		memset(out->limit_kind, 0, sizeof(out->limit_kind));
	}
}

void
kr_agent_stream_parse(enum kr_reader reader, const char *bytes, size_t n, const struct kr_agent_clock *clock,
	struct kr_agent_seen *out)
{
	struct kr_reading r = { .out = out, .clock = *clock };
	const char *end = bytes + n;

	*out = (struct kr_agent_seen){ 0 };
	if (reader == KR_READER_NONE)
		return;
	while (bytes < end) {
		const char *stop = memchr(bytes, '\n', (size_t)(end - bytes));

		if (!stop)
			stop = end;
		read_line(&r, reader, bytes, (size_t)(stop - bytes));
		bytes = stop + 1;
	}
	kr_agent_conclude(&r);
}

/* ---- apart ---- */

void
kr_agent_clock_read(struct kr_agent_clock *out)
{
	struct timespec now;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	*out = (struct kr_agent_clock){ .now_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000 };
	if (localtime_r(&now.tv_sec, &tm))
		out->offset_s = (int)tm.tm_gmtoff;
}

struct question {
	enum kr_reader reader;
	struct kr_agent_clock clock;
	const char *bytes;
	size_t n;
};

static void
answer(const void *bytes, size_t n, void *out)
{
	const struct question *q = bytes;

	(void)n;
	kr_agent_stream_parse(q->reader, q->bytes, q->n, &q->clock, out);
}

static void
check_text(char *text, size_t size, bool lines)
{
	text[size - 1] = '\0';
	(void)kr_text_plain(text, text, strlen(text), lines);
}

static void
check_bool(bool *flag)
{
	unsigned char byte;

	memcpy(&byte, flag, sizeof(byte));
	*flag = byte != 0;
}

static void
check_usage(struct kr_usage *u)
{
	int64_t *const numbers[] = { &u->input, &u->output, &u->cache_write, &u->cache_read, &u->cost_micro };

	check_bool(&u->is_known);
	check_bool(&u->has_cost);
	for (size_t i = 0; i < KR_COUNT(numbers); i++)
		if (*numbers[i] < 0)
			*numbers[i] = 0;
}

/* The parser may have been the worker's in the end. */
static void
check(struct kr_agent_seen *seen)
{
	check_text(seen->conversation, sizeof(seen->conversation), false);
	if (!is_id(seen->conversation))
		seen->conversation[0] = '\0';
	check_text(seen->model, sizeof(seen->model), false);
	check_text(seen->limit_kind, sizeof(seen->limit_kind), false);
	check_text(seen->said, sizeof(seen->said), true);
	if ((unsigned)seen->trouble >= KR_TROUBLE_COUNT)
		seen->trouble = KR_TROUBLE_OTHER;
	check_bool(&seen->has_ended);
	check_usage(&seen->usage);
	check_usage(&seen->own);
	if (seen->resets_ms > INT64_MAX)
		seen->resets_ms = 0;
}

int
kr_agent_stream_parse_apart(enum kr_reader reader, const char *bytes, size_t n,
	const struct kr_agent_clock *clock, struct kr_agent_seen *out, struct kr_error *err)
{
	const struct question q = { reader, *clock, bytes, n };
	struct kr_error why = { 0 };

	*out = (struct kr_agent_seen){ 0 };
	if (reader == KR_READER_NONE || !n)
		return 0;
	if (kr_powerless_parse(answer, &q, sizeof(q), out, sizeof(*out), &why) == 0)
		check(out);
	else if (why.code != KR_E_REFUSED) {
		if (err)
			*err = why;
		return kr_wrap(err, "cannot read what the agent said");
	}
	return 0;
}
