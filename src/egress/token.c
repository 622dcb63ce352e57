#include "egress/token.h"

#include <strings.h>

#include "base/text.h"

enum { PLAIN_MAX = KR_TOKEN_NAME + 1 + KR_EGRESS_TOKEN };

/* Four digits, of which the last `pads` are '='; false: they are none, or say more than their bytes hold. */
static bool
decode_four(const char *in, size_t pads, unsigned char out[3])
{
	uint32_t bits = 0;

	for (size_t i = 0; i < 4; i++) {
		int value = i < 4 - pads ? kr_base64_digit(in[i]) : 0;

		if (value < 0)
			return false;
		bits = bits << 6 | (uint32_t)value;
	}
	out[0] = (unsigned char)(bits >> 16);
	out[1] = (unsigned char)(bits >> 8);
	out[2] = (unsigned char)bits;
	return (pads < 1 || out[2] == 0) && (pads < 2 || out[1] == 0);
}

/* How many bytes; 0: it is no base64, or longer than PLAIN_MAX. */
static size_t
decode(struct kr_bytes in, unsigned char out[PLAIN_MAX + 2])
{
	size_t pads = 0, n = in.n / 4 * 3;

	if (in.n == 0 || in.n % 4)
		return 0;
	while (pads < 2 && in.at[in.n - 1 - pads] == '=')
		pads++;
	if (n - pads > PLAIN_MAX)
		return 0;
	for (size_t i = 0; i < in.n / 4; i++)
		if (!decode_four(in.at + 4 * i, i + 1 == in.n / 4 ? pads : 0, out + 3 * i))
			return 0;
	return n - pads;
}

/* What follows the scheme; n 0: nothing, or it is another one. */
static struct kr_bytes
credentials(struct kr_bytes value)
{
	static const char basic[] = "basic ";
	size_t n = sizeof(basic) - 1;

	if (value.n < n || strncasecmp(value.at, basic, n) != 0)
		return (struct kr_bytes){ "", 0 };
	while (n < value.n && value.at[n] == ' ')
		n++;
	return (struct kr_bytes){ value.at + n, value.n - n };
}

/* Every byte is looked at, wherever the first wrong one is. */
static bool
is_same(const unsigned char *said, const char *token)
{
	volatile unsigned char different = 0;

	for (size_t i = 0; i < KR_EGRESS_TOKEN; i++)
		different |= said[i] ^ (unsigned char)token[i];
	return different == 0;
}

bool
kr_token_is_said(const struct kr_head *head, const char token[KR_EGRESS_TOKEN])
{
	size_t count, n, name;
	const struct kr_field *field = kr_head_find(head, "proxy-authorization", &count);
	unsigned char plain[PLAIN_MAX + 2];
	const unsigned char *colon;

	if (count != 1)
		return false;
	n = decode(credentials(field->value), plain);
	colon = n ? memchr(plain, ':', n) : NULL;
	if (!colon)
		return false;
	name = (size_t)(colon - plain);
	return n - name - 1 == KR_EGRESS_TOKEN && name <= KR_TOKEN_NAME && is_same(colon + 1, token);
}
