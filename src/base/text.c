#include "base/text.h"

/* Decodes one UTF-8 character of at most n bytes; returns its length, 0 when it is not valid. */
static size_t
decode(const unsigned char *s, size_t n, uint32_t *out)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len = s[0] < 0x80 ? 1 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3
		: s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : 0;
	uint32_t c;

	if (!len || len > n)
		return 0;
	c = len == 1 ? s[0] : s[0] & (0x7fu >> len);
	for (size_t i = 1; i < len; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if ((len > 1 && c < least[len]) || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	*out = c;
	return len;
}

/* Controls and the characters that reorder or hide text (CVE-2021-42574 and its kin). */
static bool
steers_terminal(uint32_t c)
{
	return (c < 0x20 && c != '\t') || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c ||
		(c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
		(c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xe0000 && c <= 0xe0fff);
}

size_t
kr_text_escape(char *out, size_t out_size, const char *in, size_t n)
{
	const unsigned char *s = (const unsigned char *)in;
	size_t used = 0;

	KR_BUG_IF(out_size == 0);
	for (size_t i = 0, len; i < n; i += len) {
		char piece[24];
		size_t piece_len = 0;
		uint32_t c = 0;

		len = decode(s + i, n - i, &c);
		if (len && !steers_terminal(c)) {
			memcpy(piece, s + i, len);
			piece_len = len;
		} else if (len && c == '\n') {
			memcpy(piece, "\\n", 2);
			piece_len = 2;
		} else {
			len = len ? len : 1;
			for (size_t k = 0; k < len; k++)
				piece_len += (size_t)snprintf(piece + piece_len, sizeof(piece) - piece_len, "\\x%02x", s[i + k]);
		}
		if (used + piece_len >= out_size)
			break;
		memcpy(out + used, piece, piece_len);
		used += piece_len;
	}
	out[used] = '\0';
	return used;
}

size_t
kr_text_plain(char *out, const char *in, size_t n, bool lines)
{
	size_t used = 0;

	for (size_t i = 0, len; i < n; i += len) {
		uint32_t c = '?';

		len = decode((const unsigned char *)in + i, n - i, &c);
		if (!len) {
			out[used++] = '?';
			len = 1;
		} else if (c == '\n' || c == '\t' ? lines : !steers_terminal(c)) {
			memmove(out + used, in + i, len);
			used += len;
		}
	}
	out[used] = '\0';
	return used;
}

bool
kr_text_has_prefix(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool
kr_text_is_utf8(const char *s, size_t n)
{
	uint32_t c;

	for (size_t i = 0, len; i < n; i += len) {
		len = decode((const unsigned char *)s + i, n - i, &c);
		if (!len)
			return false;
	}
	return true;
}

bool
kr_text_is_env_name(const char *s)
{
	if (!*s || (*s >= '0' && *s <= '9'))
		return false;
	return s[strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
}

unsigned
kr_text_distance(const char *a, const char *b, unsigned limit)
{
	size_t na = strlen(a), nb = strlen(b);
	unsigned row[65];

	if (na > 64 || nb > 64)
		return limit + 1;
	for (size_t j = 0; j <= nb; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= na; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= nb; j++) {
			unsigned best = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			best = row[j] + 1 < best ? row[j] + 1 : best;
			best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
			row[j] = best;
		}
	}
	return row[nb] > limit ? limit + 1 : row[nb];
}

bool
kr_text_to_u64(const char *s, uint64_t max, uint64_t *out)
{
	uint64_t value = 0;

	if (!*s)
		return false;
	for (; *s; s++) {
		if (*s < '0' || *s > '9' || value > (UINT64_MAX - 9) / 10)
			return false;
		value = value * 10 + (uint64_t)(*s - '0');
	}
	if (value > max)
		return false;
	*out = value;
	return true;
}

int
kr_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int
kr_base64_digit(char c)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}
