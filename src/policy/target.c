/*
 * What somebody asks to reach, read once into one spelling (NET-13, NET-14). What is judged, looked up and
 * dialled is this spelling and never the text, so no two readers can disagree about it.
 *
 * A name is ASCII letters, digits and hyphens in labels of 63 at most, 253 in all, its last label beginning
 * with a letter: "127.1", "0x7f.1" and "2130706433" are neither names nor addresses here, although a resolver
 * would take them for 127.0.0.1. One dot at the end is the root, and dropped.
 */
#include "policy/policy.h"

enum { LABEL_MAX = 63, PORT_MAX = 65535, ZONE_MAX = 32 };

static bool
refuse(const char **why, const char *text)
{
	*why = text;
	return false;
}

static bool
is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* What is wrong with a byte that no host has; NULL when it may stand there. */
static const char *
fault_of(char c)
{
	if (is_letter(c) || is_digit(c) || c == '-' || c == '.')
		return NULL;
	switch (c) {
	case '\0':
		return "holds a NUL byte";
	case '@':
		return "holds an '@': user information has no place here";
	case '#':
		return "holds a '#': a fragment has no place here";
	case '%':
		return "holds a '%': nothing is percent-decoded here";
	case '\\':
		return "holds a backslash";
	case '/':
	case '?':
		return "is a URL or a path; only the host is wanted";
	case '_':
		return "holds an underscore, which no host name has";
	case '*':
		return "holds a star; one host is wanted, not a pattern";
	case '[':
	case ']':
		return "has brackets around something that is no IPv6 address";
	default:
		break;
	}
	if ((unsigned char)c >= 0x80)
		return "is not ASCII; write the name's 'xn--' form";
	return (unsigned char)c <= 0x20 || c == 0x7f ? "holds a blank or a control character"
												 : "holds a character that no host name has";
}

static bool
parse_port(const char *s, size_t n, unsigned *port, const char **why)
{
	unsigned value = 0;

	if (n == 0)
		return refuse(why, "has no port after the ':'");
	for (size_t i = 0; i < n; i++)
		if (!is_digit(s[i]))
			return refuse(why, "has a port that is not a number");
	for (size_t i = 0; i < n && n <= 5; i++)
		value = value * 10 + (unsigned)(s[i] - '0');
	if (value == 0 || value > PORT_MAX)
		return refuse(why, "has a port that is not between 1 and 65535 in at most five digits");
	*port = value;
	return true;
}

/* *last is where the last label begins. */
static bool
check_labels(const char *s, size_t n, size_t *last, const char **why)
{
	for (size_t from = 0, to; from <= n; from = to + 1) {
		const char *dot = memchr(s + from, '.', n - from);

		to = dot ? (size_t)(dot - s) : n;
		if (to == from)
			return refuse(why, "has an empty part between dots or at an end");
		if (to - from > LABEL_MAX)
			return refuse(why, "has a part of more than 63 letters");
		*last = from;
	}
	return true;
}

static bool
parse_name(const char *s, size_t n, struct kr_target *out, const char **why)
{
	size_t last = 0;

	for (size_t i = 0; i < n; i++)
		if (fault_of(s[i]))
			return refuse(why, fault_of(s[i]));
	if (n > 1 && s[n - 1] == '.')
		n--;
	if (n == 0)
		return refuse(why, "is empty");
	if (n > KR_HOST_MAX)
		return refuse(why, "is longer than a host name can be (253)");
	if (!check_labels(s, n, &last, why))
		return false;
	if (kr_address_parse(s, n, &out->address)) {
		out->is_address = true;
		kr_address_format(&out->address, out->host);
		return true;
	}
	if (!is_letter(s[last]))
		return refuse(why, "ends like a number but is no IPv4 address: that is four numbers from 0 to 255, "
						   "decimal, without leading zeros");
	for (size_t i = 0; i < n; i++)
		out->host[i] = (char)(s[i] >= 'A' && s[i] <= 'Z' ? s[i] - 'A' + 'a' : s[i]);
	return true;
}

static bool
is_zone(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_letter(s[i]) && !is_digit(s[i]) && !memchr("-._~", s[i], 4))
			return false;
	return n > 0 && n <= ZONE_MAX;
}

/* Between the brackets. */
static bool
parse_bracketed(const char *s, size_t n, struct kr_target *out, const char **why)
{
	const char *percent = memchr(s, '%', n);
	struct kr_embedded inside[KR_EMBEDDED_MAX];
	size_t address = percent ? (size_t)(percent - s) : n;

	if (percent) {
		const char *zone = percent + 1;
		size_t left = n - address - 1;

		if (left > 2 && memcmp(zone, "25", 2) == 0) { /* RFC 6874 */
			zone += 2;
			left -= 2;
		}
		if (!is_zone(zone, left))
			return refuse(why, "has an IPv6 zone that is not a name of letters and digits");
	}
	if (!kr_address_parse(s, address, &out->address) || !out->address.is_v6)
		return refuse(why, "has brackets around something that is no IPv6 address");
	/* The kernel sends IPv4 for a mapped address, so that is what the lists must see. */
	if (kr_address_embedded(&out->address, inside) && strcmp(inside[0].form, "IPv4-mapped") == 0)
		out->address = inside[0].address;
	out->is_address = true;
	kr_address_format(&out->address, out->host);
	return true;
}

static bool
parse_whole(const char *text, size_t n, struct kr_target *out, const char **why)
{
	bool bracket = n && text[0] == '[';
	const char *end = bracket ? memchr(text, ']', n) : memchr(text, ':', n);
	size_t host = end ? (size_t)(end - text) : n, after = host + (bracket ? 1 : 0);

	if (n == 0)
		return refuse(why, "is empty");
	if (bracket && !end)
		return refuse(why, "has a '[' without its ']'");
	if (after < n && text[after] != ':')
		return refuse(why, "has something other than a port after the ']'");
	if (!bracket && end && memchr(end + 1, ':', n - after - 1))
		return refuse(why, kr_address_parse(text, n, &(struct kr_address){ 0 })
							   ? "is an IPv6 address without its brackets; write '[ADDRESS]'"
							   : "holds more than one ':'");
	if (after < n && !parse_port(text + after + 1, n - after - 1, &out->port, why))
		return false;
	return bracket ? parse_bracketed(text + 1, host - 1, out, why) : parse_name(text, host, out, why);
}

bool
kr_target_parse(const char *text, size_t n, struct kr_target *out, const char **why)
{
	struct kr_target target = { 0 };
	const char *ignored;

	if (!parse_whole(text, n, &target, why ? why : &ignored))
		return false;
	*out = target;
	return true;
}

bool
kr_target_of_host(const char *host, struct kr_target *out)
{
	char text[KR_HOST_MAX + 3];
	int n = snprintf(text, sizeof(text), strchr(host, ':') ? "[%s]" : "%s", host);

	return n < (int)sizeof(text) && kr_target_parse(text, (size_t)n, out, NULL) && !out->port && strcmp(out->host, host) == 0;
}

void
kr_target_format(const struct kr_target *target, char out[KR_TARGET_TEXT])
{
	bool bracket = target->is_address && target->address.is_v6;
	int used = snprintf(out, KR_TARGET_TEXT, "%s%s%s", bracket ? "[" : "", target->host, bracket ? "]" : "");

	if (target->port)
		snprintf(out + used, (size_t)(KR_TARGET_TEXT - used), ":%u", target->port);
}
