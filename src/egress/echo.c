/*
 * Aho and Corasick's automaton, every step written out: one look-up for each byte, whatever is sought. A state's depth is how many
 * of the bytes just read may be the beginning of something, and those are what is held back.
 *
 * Where nothing is begun, most bytes are not looked at at all: the two at the end of a window as long as the shortest spelling say
 * how many bytes from here on nothing can begin at, as Wu and Manber's search does.
 */
#include "egress/echo.h"

#include "base/portable.h"

enum { SPELLINGS = 15, SPELLING_MAX = KR_ECHO_HELD, BYTES = 256, PAIRS = BYTES * BYTES };

struct state {
	uint32_t next[BYTES];
	uint32_t fail;
	int32_t secret; /* that ends here; -1: none */
	uint32_t depth;
};

struct kr_echo {
	struct state *states;
	uint32_t n, cap;
	size_t window;       /* bytes of the shortest spelling */
	uint8_t skip[PAIRS]; /* by the last two bytes of a window: nothing begins in so many of its first bytes */
};

struct spelling {
	unsigned char bytes[SPELLING_MAX + 4];
	size_t n;
};

/* ---- spellings ---- */

static bool
is_plain_in_url(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("-._~", c));
}

static void
spell_hex(struct spelling *out, const char *value, size_t n, const char *digits, const char *before, bool all)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)value[i];

		if (!all && is_plain_in_url(value[i])) {
			out->bytes[out->n++] = c;
			continue;
		}
		for (const char *at = before; *at; at++)
			out->bytes[out->n++] = (unsigned char)*at;
		out->bytes[out->n++] = (unsigned char)digits[c >> 4];
		out->bytes[out->n++] = (unsigned char)digits[c & 15];
	}
}

/* Most writers escape what has to be, some '/' as well. */
static void
spell_json(struct spelling *out, const char *value, size_t n, const char *escaped)
{
	for (size_t i = 0; i < n; i++) {
		if (strchr(escaped, value[i]))
			out->bytes[out->n++] = '\\';
		out->bytes[out->n++] = (unsigned char)value[i];
	}
}

/* As it stands in a longer text's base64, `place` bytes behind the beginning of a group of three: only the digits that no other byte
 * has a part in. */
static void
spell_base64(struct spelling *out, const char *value, size_t n, size_t place, const char *last_two)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	size_t bits = 8 * (place + n), first = (8 * place + 5) / 6;

	for (size_t d = first; 6 * (d + 1) <= bits; d++) {
		unsigned value6 = 0;

		for (size_t bit = 6 * d; bit < 6 * (d + 1); bit++) {
			size_t at = bit / 8 - place;

			value6 = value6 << 1 | ((unsigned char)value[at] >> (7 - bit % 8) & 1u);
		}
		out->bytes[out->n++] = (unsigned char)(value6 < 62 ? digits[value6] : last_two[value6 - 62]);
	}
}

/* Returns how many. */
static size_t
spell(const char *value, struct spelling out[SPELLINGS])
{
	static const char lower[] = "0123456789abcdef", upper[] = "0123456789ABCDEF";
	size_t n = strnlen(value, KR_ECHO_SOUGHT), k = 0;

	memcpy(out[k].bytes, value, n);
	out[k++].n = n;
	if (n < KR_ECHO_LEAST)
		return k;
	spell_json(&out[k++], value, n, "\"\\");
	spell_json(&out[k++], value, n, "\"\\/");
	spell_hex(&out[k++], value, n, upper, "%", false);
	spell_hex(&out[k++], value, n, lower, "%", false);
	spell_hex(&out[k++], value, n, upper, "%", true);
	spell_hex(&out[k++], value, n, lower, "%", true);
	spell_hex(&out[k++], value, n, upper, "", true);
	spell_hex(&out[k++], value, n, lower, "", true);
	for (size_t place = 0; place < 3; place++) {
		spell_base64(&out[k++], value, n, place, "+/");
		spell_base64(&out[k++], value, n, place, "-_");
	}
	return k;
}

/* ---- the automaton ---- */

static uint32_t
add_state(struct kr_echo *echo, uint32_t depth)
{
	if (echo->n == echo->cap) {
		uint32_t cap = echo->cap ? 2 * echo->cap : 256;
		struct state *grown = calloc(cap, sizeof(*grown));

		if (!grown)
			return 0;
		if (echo->n)
			memcpy(grown, echo->states, echo->n * sizeof(*grown));
		if (echo->states)
			kr_wipe(echo->states, echo->n * sizeof(*echo->states)); /* it spells a secret */
		free(echo->states);
		echo->states = grown;
		echo->cap = cap;
	}
	echo->states[echo->n] = (struct state){ .secret = -1, .depth = depth };
	return echo->n++;
}

/* False: there is no memory. */
static bool
add_spelling(struct kr_echo *echo, const struct spelling *spelling, int secret)
{
	uint32_t at = 0;

	for (size_t i = 0; i < spelling->n; i++) {
		uint32_t next = echo->states[at].next[spelling->bytes[i]];

		if (!next) {
			next = add_state(echo, (uint32_t)i + 1);
			if (!next)
				return false;
			echo->states[at].next[spelling->bytes[i]] = next;
		}
		at = next;
	}
	if (at && echo->states[at].secret < 0)
		echo->states[at].secret = secret;
	return true;
}

/* By depth, so that what a state fails to is whole before it. */
static bool
close_states(struct kr_echo *echo)
{
	uint32_t *queue = calloc(echo->n, sizeof(*queue));
	uint32_t first = 0, n = 0;

	if (!queue)
		return false;
	for (int c = 0; c < BYTES; c++)
		if (echo->states[0].next[c])
			queue[n++] = echo->states[0].next[c];
	while (first < n) {
		struct state *state = &echo->states[queue[first++]];
		const struct state *fail = &echo->states[state->fail];

		if (state->secret < 0)
			state->secret = fail->secret;
		for (int c = 0; c < BYTES; c++) {
			if (!state->next[c]) {
				state->next[c] = fail->next[c];
				continue;
			}
			echo->states[state->next[c]].fail = fail->next[c];
			queue[n++] = state->next[c];
		}
	}
	free(queue);
	return true;
}

static size_t
pair(const unsigned char *two)
{
	return (size_t)two[0] * BYTES + two[1];
}

/* For spellings of at least two bytes; the window is at most SPELLING_MAX, so what is skipped fits a byte. */
static void
add_skips(struct kr_echo *echo, const struct spelling *spelling)
{
	for (size_t at = 0; at + 2 <= echo->window; at++) {
		uint8_t *skip = &echo->skip[pair(spelling->bytes + at)], least = (uint8_t)(echo->window - 2 - at);

		if (least < *skip)
			*skip = least;
	}
}

struct kr_echo *
kr_echo_new(const char *const values[], size_t n)
{
	struct kr_echo *echo = calloc(1, sizeof(*echo));
	struct spelling *spellings = calloc(n * SPELLINGS + 1, sizeof(*spellings));
	bool good = echo && spellings;
	size_t count = 0;

	if (good) {
		(void)add_state(echo, 0);
		good = echo->states;
		echo->window = SPELLING_MAX;
	}
	for (size_t i = 0; i < n && good; i++) {
		size_t first = count;

		count += values[i] ? spell(values[i], &spellings[count]) : 0;
		for (size_t k = first; k < count && good; k++) {
			good = add_spelling(echo, &spellings[k], (int)i);
			if (spellings[k].n < echo->window)
				echo->window = spellings[k].n;
		}
	}
	if (good && echo->window >= 2) {
		memset(echo->skip, (int)echo->window - 1, sizeof(echo->skip));
		for (size_t k = 0; k < count; k++)
			add_skips(echo, &spellings[k]);
	}
	good = good && close_states(echo);
	if (spellings)
		kr_wipe(spellings, (n * SPELLINGS + 1) * sizeof(*spellings));
	free(spellings);
	if (good)
		return echo;
	kr_echo_free(echo);
	return NULL;
}

void
kr_echo_free(struct kr_echo *echo)
{
	if (!echo)
		return;
	if (echo->states)
		kr_wipe(echo->states, echo->n * sizeof(*echo->states));
	free(echo->states);
	kr_wipe(echo, sizeof(*echo));
	free(echo);
}

/* ---- watching ---- */

/* How many bytes at the beginning of these cannot be the first one of anything; fewer than n. */
static size_t
skip(const struct kr_echo *echo, const unsigned char *bytes, size_t n)
{
	size_t at = 0, step = 1;

	if (echo->window < 2)
		return 0;
	for (; at + echo->window <= n && step > 0; at += step)
		step = echo->skip[pair(bytes + at + echo->window - 2)];
	return at;
}

int
kr_echo_feed(const struct kr_echo *echo, struct kr_echo_watch *watch, const char *bytes, size_t n, size_t *before, size_t *now)
{
	uint32_t at = watch->state;
	size_t kept, i;
	int found = -1;

	for (i = 0; i < n && found < 0; i++) {
		if (at == 0)
			i += skip(echo, (const unsigned char *)bytes + i, n - i);
		at = echo->states[at].next[(unsigned char)bytes[i]];
		found = echo->states[at].secret;
	}
	watch->state = at;
	kept = echo->states[at].depth;
	*now = i > kept ? i - kept : 0;
	*before = i >= kept ? watch->held_n : watch->held_n - (kept - i);
	return found;
}

void
kr_echo_keep(struct kr_echo_watch *watch, const char *bytes, size_t n, size_t before, size_t now)
{
	watch->held_n -= (uint32_t)before;
	memmove(watch->held, watch->held + before, watch->held_n);
	KR_BUG_IF(watch->held_n + (n - now) > sizeof(watch->held));
	memcpy(watch->held + watch->held_n, bytes + now, n - now);
	watch->held_n += (uint32_t)(n - now);
}

int
kr_echo_find(const struct kr_echo *echo, const char *bytes, size_t n)
{
	struct kr_echo_watch watch = { 0 };
	size_t before, now;

	return kr_echo_feed(echo, &watch, bytes, n, &before, &now);
}
