/*
 * The grammar of a network list entry (POL-01): an exact host, host:port, "*." for exactly one label in
 * front, "*" and
 * "**" for everything. Nothing else is an entry: no URL, path, CIDR, IPv6 literal or underscore. What an
 * entry matches is decided where a name is asked for; here it is only read.
 *
 * Stricter than the letters of the grammar in three places, each of which would otherwise be a silent
 * surprise: port 0 (it would read as "any port"), ports over 65535, and labels or names longer than DNS can
 * carry.
 */
#include "policy/policy.h"

enum { LABEL_MAX = 63, PORT_MAX = 65535 };

static bool
refuse(const char **why, const char *text)
{
	*why = text;
	return false;
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool
is_letter_or_digit(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static size_t
count_of(const char *s, size_t n, char c)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += s[i] == c;
	return count;
}

/* What people write instead of a host, each with its own word; NULL when it is none of those. */
static const char *
mistaken_for(const char *s, size_t n)
{
	if (memmem(s, n, "://", 3))
		return "it is a URL; write only the host";
	if (memchr(s, '/', n))
		return "it holds a '/': address ranges and paths are not read here";
	if (memchr(s, '[', n) || count_of(s, n, ':') > 1)
		return "it looks like an IPv6 address; only names and IPv4 addresses are read here";
	if (memchr(s, '@', n))
		return "it holds an '@'; write only the host";
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)s[i] >= 0x80)
			return "it is not ASCII; write the name's 'xn--' form";
	for (size_t i = 0; i < n; i++)
		if (is_blank(s[i]))
			return "it holds a blank; write one host an entry";
	if (memchr(s, '_', n))
		return "it holds an underscore, which no host name has";
	return NULL;
}

static bool
parse_port(const char *s, size_t n, unsigned *port, const char **why)
{
	unsigned value = 0;

	if (n == 0)
		return refuse(why, "no port follows the ':'");
	for (size_t i = 0; i < n; i++)
		if (s[i] < '0' || s[i] > '9')
			return refuse(why, "its port is not a number");
	if (n > 5)
		return refuse(why, "its port is not between 1 and 65535");
	for (size_t i = 0; i < n; i++)
		value = value * 10 + (unsigned)(s[i] - '0');
	if (value == 0 || value > PORT_MAX)
		return refuse(why, "its port is not between 1 and 65535");
	*port = value;
	return true;
}

static bool
check_label(const char *s, size_t n, const char **why)
{
	if (n == 0)
		return refuse(why, "it has an empty part between dots or at an end");
	if (n > LABEL_MAX)
		return refuse(why, "it has a part of more than 63 letters");
	if (s[0] == '-' || s[n - 1] == '-')
		return refuse(why, "it has a part that begins or ends with a hyphen");
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '*')
			return refuse(why, "a star stands alone or as '*.' in front of a name, once");
		if (!is_letter_or_digit(s[i]) && s[i] != '-')
			return refuse(why, "it holds a character that no host name has");
	}
	return true;
}

static bool
check_name(const char *s, size_t n, const char **why)
{
	if (n > KR_HOST_MAX)
		return refuse(why, "it is longer than a host name can be (253)");
	for (size_t from = 0, to; from <= n; from = to + 1) {
		const char *dot = memchr(s + from, '.', n - from);

		to = dot ? (size_t)(dot - s) : n;
		if (!check_label(s + from, to - from, why))
			return false;
	}
	return true;
}

static bool
parse_trimmed(const char *s, size_t n, struct kr_host_pattern *out, const char **why)
{
	const char *colon, *mistake;

	if (n == 0)
		return refuse(why, "it is empty");
	if ((n == 1 && s[0] == '*') || (n == 2 && memcmp(s, "**", 2) == 0)) {
		out->any = true;
		return true;
	}
	mistake = mistaken_for(s, n);
	if (mistake)
		return refuse(why, mistake);
	colon = memchr(s, ':', n);
	if (colon) {
		size_t before = (size_t)(colon - s);

		if (!parse_port(colon + 1, n - before - 1, &out->port, why))
			return false;
		n = before;
	}
	if (n >= 2 && memcmp(s, "*.", 2) == 0) {
		out->star = true;
		s += 2;
		n -= 2;
	}
	if (!check_name(s, n, why))
		return false;
	for (size_t i = 0; i < n; i++)
		out->host[i] = (char)(s[i] >= 'A' && s[i] <= 'Z' ? s[i] - 'A' + 'a' : s[i]);
	return true;
}

bool
kr_host_pattern_parse(const char *text, struct kr_host_pattern *out, const char **why)
{
	struct kr_host_pattern pattern = { 0 };
	const char *ignored;
	size_t n = strlen(text);

	for (; n && is_blank(text[n - 1]); n--)
		;
	for (; n && is_blank(text[0]); n--)
		text++;
	if (!parse_trimmed(text, n, &pattern, why ? why : &ignored))
		return false;
	*out = pattern;
	return true;
}
