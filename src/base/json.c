/*
 * The checker is a machine of three states (a value may come, a member's name may come, a value has ended)
 * and one bit for each level: an object or an array. Whoever looks for parts afterwards knows that the text
 * is good, and only counts brackets outside of strings.
 */
#include "base/json.h"

#include "base/text.h"

struct reader {
	const char *at, *end;
};

static void
skip_blanks(struct reader *r)
{
	while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
		r->at++;
}

static bool
take(struct reader *r, char c)
{
	if (r->at == r->end || *r->at != c)
		return false;
	r->at++;
	return true;
}

/* ---- scalars ---- */

/* The four digits of a \u. -1: they are none. */
static int
take_unit(struct reader *r)
{
	int unit = 0;

	for (int i = 0; i < 4; i++) {
		int digit = r->at < r->end ? kr_hex_digit(*r->at++) : -1;

		if (digit < 0)
			return -1;
		unit = unit << 4 | digit;
	}
	return unit;
}

/* Behind the backslash. The character, or -1. */
static int32_t
take_escape(struct reader *r)
{
	static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	char c = r->at < r->end ? *r->at++ : '\0';
	const char *at = c ? strchr(letters, c) : NULL;
	int first, second;

	if (at)
		return meant[at - letters];
	first = c == 'u' ? take_unit(r) : -1;
	if (first < 0xd800 || first > 0xdfff)
		return first;
	if (first > 0xdbff || !take(r, '\\') || !take(r, 'u'))
		return -1;
	second = take_unit(r);
	return second >= 0xdc00 && second <= 0xdfff ? 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00) : -1;
}

static bool
check_string(struct reader *r)
{
	if (!take(r, '"'))
		return false;
	while (r->at < r->end) {
		unsigned char c = (unsigned char)*r->at++;

		if (c == '"')
			return true;
		if (c < 0x20 || (c == '\\' && take_escape(r) < 0))
			return false;
	}
	return false;
}

static size_t
skip_digits(struct reader *r)
{
	const char *from = r->at;

	while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
		r->at++;
	return (size_t)(r->at - from);
}

static bool
check_number(struct reader *r)
{
	(void)take(r, '-'); /* may be there */
	if (!take(r, '0') && !skip_digits(r))
		return false;
	if (take(r, '.') && !skip_digits(r))
		return false;
	if (take(r, 'e') || take(r, 'E')) {
		if (!take(r, '+'))
			(void)take(r, '-'); /* may be there */
		return skip_digits(r) > 0;
	}
	return true;
}

static bool
check_word(struct reader *r, const char *word)
{
	size_t n = strlen(word);

	if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
		return false;
	r->at += n;
	return true;
}

static enum kr_json_type
type_of(char c)
{
	switch (c) {
	case '{':
		return KR_JSON_OBJECT;
	case '[':
		return KR_JSON_ARRAY;
	case '"':
		return KR_JSON_STRING;
	case 't':
		return KR_JSON_TRUE;
	case 'f':
		return KR_JSON_FALSE;
	case 'n':
		return KR_JSON_NULL;
	default:
		return KR_JSON_NUMBER;
	}
}

static bool
check_scalar(struct reader *r)
{
	switch (type_of(*r->at)) {
	case KR_JSON_STRING:
		return check_string(r);
	case KR_JSON_TRUE:
		return check_word(r, "true");
	case KR_JSON_FALSE:
		return check_word(r, "false");
	case KR_JSON_NULL:
		return check_word(r, "null");
	default:
		return check_number(r);
	}
}

/* ---- all of it ---- */

struct checker {
	struct reader r;
	unsigned depth;
	bool is_object[KR_JSON_DEPTH];
};

static bool
check_name(struct reader *r)
{
	skip_blanks(r);
	if (!check_string(r))
		return false;
	skip_blanks(r);
	return take(r, ':');
}

/* One or more values begin, the last of which is a scalar or empty. */
static bool
check_opening(struct checker *c)
{
	for (;;) {
		skip_blanks(&c->r);
		if (c->r.at == c->r.end)
			return false;
		if (*c->r.at != '{' && *c->r.at != '[')
			return check_scalar(&c->r);
		if (c->depth == KR_JSON_DEPTH)
			return false;
		c->is_object[c->depth] = *c->r.at++ == '{';
		skip_blanks(&c->r);
		if (take(&c->r, c->is_object[c->depth] ? '}' : ']'))
			return true;
		if (c->is_object[c->depth++] && !check_name(&c->r))
			return false;
	}
}

/* Behind a value: closes what ends here. 1: another value has to follow, 0: that was all, -1: neither. */
static int
check_closing(struct checker *c)
{
	while (c->depth) {
		const bool is_object = c->is_object[c->depth - 1];

		skip_blanks(&c->r);
		if (take(&c->r, ','))
			return is_object && !check_name(&c->r) ? -1 : 1;
		if (!take(&c->r, is_object ? '}' : ']'))
			return -1;
		c->depth--;
	}
	return 0;
}

bool
kr_json_check(const char *bytes, size_t n, struct kr_json *out)
{
	struct checker c = { .r = { bytes, bytes + n } };
	const char *from;
	int more = 1;

	if (!n || !kr_text_is_utf8(bytes, n))
		return false;
	skip_blanks(&c.r);
	from = c.r.at;
	while (more == 1)
		more = check_opening(&c) ? check_closing(&c) : -1;
	if (more < 0)
		return false;
	*out = (struct kr_json){ type_of(*from), from, (size_t)(c.r.at - from) };
	skip_blanks(&c.r);
	return c.r.at == c.r.end;
}

/* ---- parts of a checked text ---- */

static void
skip_string(struct reader *r)
{
	for (r->at++; *r->at != '"'; r->at++)
		r->at += *r->at == '\\';
	r->at++;
}

static struct kr_json
take_value(struct reader *r)
{
	struct kr_json value = { type_of(*r->at), r->at, 0 };
	unsigned depth = 0;

	do {
		if (*r->at == '"') {
			skip_string(r);
			continue;
		}
		if (*r->at == '{' || *r->at == '[')
			depth++;
		else if (*r->at == '}' || *r->at == ']')
			depth--;
		r->at++;
	} while (r->at < r->end && (depth || (value.type >= KR_JSON_NUMBER && !strchr(",]} \t\n\r", *r->at))));
	value.n = (size_t)(r->at - value.at);
	return value;
}

/* To what follows `last` in this object or array; false: its end follows. */
static bool
go_on(struct reader *r, const struct kr_json *in, const struct kr_json *last)
{
	const bool is_first = last->type == KR_JSON_ABSENT;

	*r = (struct reader){ is_first ? in->at + 1 : last->at + last->n, in->at + in->n };
	skip_blanks(r);
	if (!is_first && take(r, ','))
		skip_blanks(r);
	return *r->at != '}' && *r->at != ']';
}

bool
kr_json_next(const struct kr_json *array, struct kr_json *item)
{
	struct reader r;

	if (!go_on(&r, array, item))
		return false;
	*item = take_value(&r);
	return true;
}

bool
kr_json_next_member(const struct kr_json *object, struct kr_json *name, struct kr_json *value)
{
	struct reader r;

	if (!go_on(&r, object, value))
		return false;
	*name = take_value(&r);
	skip_blanks(&r);
	r.at++; /* ':' */
	skip_blanks(&r);
	*value = take_value(&r);
	return true;
}

bool
kr_json_member(const struct kr_json *object, const char *name, struct kr_json *out)
{
	const struct kr_json in = *object; /* out may be the same */
	struct kr_json key, value = { KR_JSON_ABSENT, NULL, 0 };

	*out = value;
	while (kr_json_next_member(&in, &key, &value)) {
		if (!kr_json_is(&key, name))
			continue;
		if (out->type != KR_JSON_ABSENT)
			return false;
		*out = value;
	}
	return true;
}

static size_t
put_utf8(uint32_t c, char out[4])
{
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* One character, escaped or not. Returns its length. */
static size_t
take_character(struct reader *r, char out[4])
{
	size_t n = 0;

	if (take(r, '\\'))
		return put_utf8((uint32_t)take_escape(r), out);
	do
		out[n++] = *r->at++;
	while (n < 4 && r->at < r->end && ((unsigned char)*r->at & 0xc0) == 0x80);
	return n;
}

size_t
kr_json_text_part(struct kr_json *string, char *out, size_t size)
{
	const char *end = string->at + string->n;
	struct reader r = { string->at + 1, end - 1 };
	char bytes[4];
	size_t used = 0;

	while (r.at < r.end) {
		struct reader next = r;
		size_t n = take_character(&next, bytes);

		if (n > size - used)
			break;
		memcpy(out + used, bytes, n);
		used += n;
		r = next;
	}
	string->at = r.at - 1; /* stands where its quote stood */
	string->n = (size_t)(end - string->at);
	return used;
}

bool
kr_json_text(const struct kr_json *string, char *out, size_t size, size_t *n)
{
	struct kr_json rest = *string;
	size_t used = kr_json_text_part(&rest, out, size);

	if (rest.n > 2)
		return false;
	*n = used;
	return true;
}

bool
kr_json_is(const struct kr_json *string, const char *text)
{
	char decoded[128];
	size_t n;

	return kr_json_text(string, decoded, sizeof(decoded), &n) && strlen(text) == n &&
		   memcmp(decoded, text, n) == 0;
}

void
kr_json_escape(struct kr_buf *out, const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '"' || c == '\\') {
			const char pair[2] = { '\\', (char)c };

			kr_buf_add(out, pair, 2);
		} else if (c < 0x20)
			kr_buf_addf(out, "\\u%04x", c);
		else
			kr_buf_add(out, &text[i], 1);
	}
}
