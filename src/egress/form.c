/*
 * One pass over the fields, one table of what each verb takes. A value is decoded in place, which only ever
 * makes it shorter, and judged whole before it is used. Nothing recurses, and the number of fields is bounded
 * by there being none twice.
 */
#include "egress/form.h"

#include "base/text.h"

struct field {
	const char *name;
	unsigned verbs, needed_by; /* bits */
	const char *(*take)(struct kr_call *call, const struct field *field, const char *value, size_t n);
	size_t at; /* of a word: where it goes */
};

/* ---- values ---- */

static const char *
take_word(struct kr_call *call, const struct field *field, const char *value, size_t n)
{
	if (!kr_call_is_word(value, n))
		return "an id, a thread or a type is not 1 to 64 printable ASCII characters without a blank";
	memcpy((char *)call + field->at, value, n);
	return NULL;
}

/* Digits only, at most max. */
static bool
read_number(const char *value, size_t n, int64_t max, int64_t *out)
{
	int64_t number = 0;

	for (size_t i = 0; i < n; i++) {
		int digit = value[i] - '0';

		if (digit < 0 || digit > 9 || number > (max - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	*out = number;
	return n > 0;
}

static const char *
take_task(struct kr_call *call, const struct field *field, const char *value, size_t n)
{
	(void)field;
	return read_number(value, n, KR_CALL_TASK_MAX, &call->task)
			   ? NULL
			   : "'task' is not a whole number up to 1000000";
}

static const char *
take_after(struct kr_call *call, const struct field *field, const char *value, size_t n)
{
	(void)field;
	return read_number(value, n, INT64_MAX, &call->after) ? NULL : "'after' is not the number of an event";
}

static const char *
take_open(struct kr_call *call, const struct field *field, const char *value, size_t n)
{
	(void)field;
	call->open = 1;
	return n == 1 && value[0] == '1' ? NULL : "'open' is not 1";
}

static const char *
take_claim(struct kr_call *call, const struct field *field, const char *value, size_t n)
{
	(void)field;
	for (enum kr_claim claim = KR_CLAIM_NONE + 1; claim < KR_CLAIM_END; claim++)
		if (strlen(kr_claim_name(claim)) == n && memcmp(kr_claim_name(claim), value, n) == 0)
			call->claim = claim;
	return call->claim ? NULL : "'claim' is none of fixed, answered, should_fix";
}

static const char *
take_text(struct kr_call *call, const struct field *field, const char *value, size_t n)
{
	(void)field;
	if (n > KR_CALL_TEXT_BYTES)
		return "a text is longer than 64 KiB";
	if (!kr_call_is_text(value, n))
		return "a text is no UTF-8, or holds a control character";
	memcpy(call->text, value, n);
	call->text_n = (uint32_t)n;
	return NULL;
}

/* ---- fields ---- */

#define BIT(verb) (1u << KR_VERB_##verb)
static const struct field fields[] = {
	{ "id", BIT(PROGRESS) | BIT(RETRY) | BIT(SHOW) | BIT(THREADS) | BIT(EVENTS), 0, take_word,
		offsetof(struct kr_call, id) },
	{ "task", BIT(PROGRESS), BIT(PROGRESS), take_task, 0 },
	{ "thread", BIT(REPLY), BIT(REPLY), take_word, offsetof(struct kr_call, thread) },
	{ "body", BIT(REPLY), BIT(REPLY), take_text, 0 },
	{ "claim", BIT(REPLY), 0, take_claim, 0 },
	{ "steer", BIT(RETRY), 0, take_text, 0 },
	{ "open", BIT(THREADS), 0, take_open, 0 },
	{ "after", BIT(EVENTS), 0, take_after, 0 },
	{ "type", BIT(EVENTS), 0, take_word, offsetof(struct kr_call, type) },
};

/* In place; the new length, or -1 for a '%' without two digits. */
static ptrdiff_t
unescape(char *text, size_t n)
{
	size_t to = 0;

	for (size_t i = 0; i < n; i++, to++) {
		text[to] = text[i] == '+' ? ' ' : text[i];
		if (text[i] != '%')
			continue;
		if (n - i < 3 || kr_hex_digit(text[i + 1]) < 0 || kr_hex_digit(text[i + 2]) < 0)
			return -1;
		text[to] = (char)(kr_hex_digit(text[i + 1]) << 4 | kr_hex_digit(text[i + 2]));
		i += 2;
	}
	return (ptrdiff_t)to;
}

static const struct field *
field_of(enum kr_verb verb, const char *name, size_t n)
{
	for (size_t i = 0; i < KR_COUNT(fields); i++)
		if (fields[i].verbs & 1u << verb && strlen(fields[i].name) == n &&
			memcmp(fields[i].name, name, n) == 0)
			return &fields[i];
	return NULL;
}

/* Names are not unescaped: none needs it, so each has one spelling. */
static const char *
take_pair(struct kr_call *call, char *pair, size_t n, unsigned *seen)
{
	char *equals = memchr(pair, '=', n);
	const struct field *field = equals ? field_of(call->verb, pair, (size_t)(equals - pair)) : NULL;
	ptrdiff_t value_n;
	unsigned bit;

	if (!field)
		return "a field is none that this call takes";
	bit = 1u << (field - fields);
	if (*seen & bit)
		return "a field is there twice";
	*seen |= bit;
	value_n = unescape(equals + 1, n - (size_t)(equals + 1 - pair));
	if (value_n < 0)
		return "a '%' is not followed by two hexadecimal digits";
	return field->take(call, field, equals + 1, (size_t)value_n);
}

static const char *
take_all(struct kr_call *call, char *form, size_t n)
{
	const char *why = NULL;
	unsigned seen = 0;

	for (size_t from = 0; from < n && !why;) {
		char *end = memchr(form + from, '&', n - from);
		size_t pair_n = end ? (size_t)(end - form) - from : n - from;

		why = take_pair(call, form + from, pair_n, &seen);
		from += pair_n + 1;
	}
	for (size_t i = 0; i < KR_COUNT(fields) && !why; i++)
		if (fields[i].needed_by & 1u << call->verb && !(seen & 1u << i))
			why = "a field is missing";
	if (!why && call->verb == KR_VERB_REPLY && call->text_n == 0)
		why = "the reply is empty";
	return why;
}

/* ---- the call ---- */

static struct kr_call *
new_call(enum kr_verb verb, size_t text_max)
{
	struct kr_call *call = calloc(1, sizeof(*call) + text_max);

	if (call)
		call->verb = verb;
	return call;
}

struct kr_call *
kr_call_new(enum kr_verb verb, const char *route, size_t n)
{
	struct kr_call *call = new_call(verb, 0);

	for (size_t i = 0; call && i < n && i < KR_CALL_ROUTE_MAX; i++)
		call->route[i] = route[i] < 0x20 || route[i] > 0x7e ? '?' : route[i];
	return call;
}

struct kr_call *
kr_form_decode(enum kr_verb verb, char *form, size_t n, const char **why)
{
	struct kr_call *call = new_call(verb, n < KR_CALL_TEXT_BYTES ? n : KR_CALL_TEXT_BYTES);

	*why = NULL;
	if (!call)
		return NULL;
	(void)snprintf(call->route, sizeof(call->route), "POST /w/%s", kr_verb_name(verb));
	*why = take_all(call, form, n);
	if (!*why)
		return call;
	free(call);
	return NULL;
}

bool
kr_form_pair(char *form, size_t n, const char *const names[2], struct kr_bytes out[2])
{
	char *between = memchr(form, '&', n), *pairs[2];
	size_t sizes[2];

	if (!between)
		return false;
	pairs[0] = form;
	pairs[1] = between + 1;
	sizes[0] = (size_t)(between - form);
	sizes[1] = n - sizes[0] - 1;
	for (size_t i = 0; i < 2; i++) {
		size_t name_n = strlen(names[i]);
		ptrdiff_t value_n;

		if (sizes[i] <= name_n || memcmp(pairs[i], names[i], name_n) != 0 || pairs[i][name_n] != '=' ||
			memchr(pairs[i], '&', sizes[i]))
			return false;
		value_n = unescape(pairs[i] + name_n + 1, sizes[i] - name_n - 1);
		if (value_n < 0)
			return false;
		out[i] = (struct kr_bytes){ pairs[i] + name_n + 1, (size_t)value_n };
	}
	return true;
}
