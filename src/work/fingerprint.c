#include "work/fingerprint.h"

#include <ctype.h>
#include <strings.h>

#include "base/sha256.h"
#include "base/text.h"

/* ---- one line ---- */

/* A line as it is read: p up to end. Each `eat_` returns where what it knows ends, or NULL when it does not
 * begin at p. */
struct line {
	const char *start, *end;
};

static bool
is_word(const struct line *l, const char *p)
{
	return p >= l->start && p < l->end && (isalnum((unsigned char)*p) || *p == '_');
}

static const char *
digits(const struct line *l, const char *p)
{
	while (p < l->end && isdigit((unsigned char)*p))
		p++;
	return p;
}

static const char *
eat_url(const struct line *l, const char *p)
{
	const char *q = p;

	while (q < l->end && isalpha((unsigned char)*q))
		q++;
	if (q == p || l->end - q < 3 || memcmp(q, "://", 3) != 0)
		return NULL;
	while (q < l->end && !isspace((unsigned char)*q))
		q++;
	return q;
}

enum { HEX_MIN = 8 };

/* 0x..., and words of hexadecimal digits that are as long as an id. */
static const char *
eat_hex(const struct line *l, const char *p)
{
	const bool is_marked = l->end - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X');
	const char *from = is_marked ? p + 2 : p, *q = from;
	bool has_digit = false;

	for (; q < l->end && isxdigit((unsigned char)*q); q++)
		has_digit = has_digit || isdigit((unsigned char)*q);
	if (is_word(l, q) || q == from || (!is_marked && (q - from < HEX_MIN || !has_digit)))
		return NULL;
	return q;
}

/* 12:34, 12:34:56.789, 2026-01-31; sign: what stands between the numbers. */
static const char *
eat_numbers(const struct line *l, const char *p, char sign)
{
	const char *q = digits(l, p);
	unsigned parts = 1;

	if (q == p || q - p > (sign == ':' ? 2 : 4))
		return NULL;
	for (; parts < 3 && q < l->end && *q == sign && digits(l, q + 1) - q == 3; parts++)
		q += 3;
	return parts < (sign == ':' ? 2u : 3u) ? NULL : q;
}

static const char *
eat_clock(const struct line *l, const char *p)
{
	const char *q = eat_numbers(l, p, ':');

	if (q && q < l->end && strchr(".,", *q) && digits(l, q + 1) > q + 1)
		q = digits(l, q + 1);
	return q && q < l->end && *q == 'Z' ? q + 1 : q;
}

/* A date, perhaps with the time of day, or that alone. */
static const char *
eat_time(const struct line *l, const char *p)
{
	const char *q = eat_numbers(l, p, '-'), *clock;

	if (q && q < l->end && *q == 'T' && (clock = eat_clock(l, q + 1)))
		q = clock;
	if (!q)
		q = eat_clock(l, p);
	return q && !is_word(l, q) ? q : NULL;
}

/* 3s, 0.12 seconds, 15 ms */
static const char *
eat_duration(const struct line *l, const char *p)
{
	static const char *const units[] = { "seconds", "second", "secs", "sec", "s", "ms", "us", "ns", "minutes",
		"minute", "min", "m" };
	const char *q = digits(l, p);

	if (q == p)
		return NULL;
	if (q < l->end && *q == '.')
		q = digits(l, q + 1);
	q += q < l->end && *q == ' ';
	for (size_t i = 0; i < KR_COUNT(units); i++) {
		const size_t n = strlen(units[i]);

		if ((size_t)(l->end - q) >= n && memcmp(q, units[i], n) == 0) {
			/* "1m3s" is one; "4 mistakes" is none. */
			if (!is_word(l, q + n) ||
				(q[-1] != ' ' && isdigit((unsigned char)q[n]) && eat_duration(l, q + n)))
				return q + n;
		}
	}
	return NULL;
}

enum { LOOKED_AT = 4 * KR_FINGERPRINT_LINE };

void
kr_fingerprint_line(char *out, const char *line, size_t n)
{
	static const struct {
		const char *(*eat)(const struct line *l, const char *p);
		char sign;
	} known[] = { { eat_url, 'U' }, { eat_time, 'T' }, { eat_duration, 'D' }, { eat_hex, 'X' } };
	/* No line is worth more: what it can be made to cost grows with its length. */
	const struct line l = { line, line + (n < LOOKED_AT ? n : LOOKED_AT) };
	size_t used = 0;

	for (const char *p = line; p < l.end && used + 2 < KR_FINGERPRINT_LINE;) {
		const char *past = NULL;
		size_t i = 0;

		/* In the middle of a word only a duration may begin, after another one: "1m3s". */
		for (; !past && i < KR_COUNT(known) && (!is_word(&l, p - 1) || (used && out[used - 1] == 'D')); i++)
			past = known[i].eat(&l, p);
		if (past) {
			out[used++] = '\1'; /* no output has it: kr_brief_tail left it out */
			out[used++] = known[i - 1].sign;
			p = past;
		} else
			out[used++] = *p++;
	}
	out[used] = '\0';
}

/* ---- which lines ---- */

static bool
has_word(const char *line, size_t n, const char *word)
{
	const size_t length = strlen(word);

	for (size_t i = 0; i + length <= n; i++)
		if (strncasecmp(line + i, word, length) == 0)
			return true;
	return false;
}

/* One that names a fault. */
static bool
is_telling(const char *line, size_t n)
{
	static const char *const words[] = { "error", "fail", "assert", "exception", "panic", "fatal",
		"undefined", "not found", "no such", "cannot", "not ok", "expected", "mismatch", "denied", "abort",
		"warning" };

	for (size_t i = 0; i < KR_COUNT(words); i++)
		if (has_word(line, n, words[i]))
			return true;
	return false;
}

static bool
has_something(const char *line, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (isalnum((unsigned char)line[i]) || (unsigned char)line[i] >= 0x80)
			return true;
	return false;
}

struct lines {
	const char *v[KR_FINGERPRINT_LINES]; /* a ring */
	size_t n[KR_FINGERPRINT_LINES], count;
};

static void
keep(struct lines *lines, const char *line, size_t n)
{
	lines->v[lines->count % KR_FINGERPRINT_LINES] = line;
	lines->n[lines->count++ % KR_FINGERPRINT_LINES] = n;
}

static void
add_lines(struct kr_sha256 *sha, const struct lines *lines)
{
	const size_t from = lines->count > KR_FINGERPRINT_LINES ? lines->count - KR_FINGERPRINT_LINES : 0;

	for (size_t i = from; i < lines->count; i++) {
		char line[KR_FINGERPRINT_LINE + 1];

		kr_fingerprint_line(line, lines->v[i % KR_FINGERPRINT_LINES], lines->n[i % KR_FINGERPRINT_LINES]);
		kr_sha256_add(sha, line, strlen(line));
		kr_sha256_add(sha, "\n", 1);
	}
}

const char *
kr_fingerprint(struct kr_arena *arena, const char *end, const char *output)
{
	struct lines telling = { 0 }, any = { 0 };
	char hex[KR_SHA256_HEX + 1];
	struct kr_sha256 sha;

	for (const char *p = output; *p;) {
		const size_t n = strcspn(p, "\n");

		if (has_something(p, n))
			keep(&any, p, n);
		if (is_telling(p, n))
			keep(&telling, p, n);
		p += n + (p[n] == '\n');
	}
	kr_sha256_init(&sha);
	kr_sha256_add(&sha, end, strlen(end) + 1);
	add_lines(&sha, telling.count ? &telling : &any);
	kr_sha256_hex(&sha, hex);
	return kr_arena_dup_n(arena, hex, KR_SHA256_HEX / 2);
}
