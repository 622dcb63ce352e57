#include "egress/upstream.h"

#include <strings.h>

#include "base/portable.h"

enum { USER_MAX = 1024, DEFAULT_PORT = 80 };

/* The value of the first of two variables that is set; *name is the one. NULL: neither is. */
static const char *
value_of(const char *const *environment, const char *const names[2], const char **name)
{
	for (int i = 0; i < 2; i++) {
		size_t n = strlen(names[i]);

		for (const char *const *at = environment; at && *at; at++)
			if (strncmp(*at, names[i], n) == 0 && (*at)[n] == '=') {
				*name = names[i];
				return *at + n + 1;
			}
	}
	return NULL;
}

/* ---- user information ---- */

static int
hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A '%' that no two hexadecimal digits follow stands for itself. Returns the bytes written, at most n. */
static size_t
percent_decode(const char *s, size_t n, unsigned char *out)
{
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		bool coded = s[i] == '%' && n - i > 2 && hex(s[i + 1]) >= 0 && hex(s[i + 2]) >= 0;

		out[used++] = coded ? (unsigned char)(hex(s[i + 1]) << 4 | hex(s[i + 2])) : (unsigned char)s[i];
		i += coded ? 2 : 0;
	}
	return used;
}

static void
base64(const unsigned char *in, size_t n, char *out)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < n; i += 3) {
		uint32_t three =
			(uint32_t)in[i] << 16 | (uint32_t)(i + 1 < n ? in[i + 1] : 0) << 8 | (i + 2 < n ? in[i + 2] : 0);

		*out++ = digits[three >> 18];
		*out++ = digits[three >> 12 & 63];
		*out++ = i + 1 < n ? digits[three >> 6 & 63] : '=';
		*out++ = i + 2 < n ? digits[three & 63] : '=';
	}
	*out = '\0';
}

/* user or user:password, as the URL has them, into the value of Proxy-Authorization (RFC 7617). */
static bool
set_authorization(const char *s, size_t n, struct kr_upstream *out)
{
	static const char basic[] = "Basic ";
	const char *colon = memchr(s, ':', n);
	size_t user = colon ? (size_t)(colon - s) : n;
	unsigned char plain[USER_MAX + 1];
	size_t used;

	_Static_assert(sizeof(basic) + (size_t)(USER_MAX + 3) / 3 * 4 < KR_ANSWER_TEXT, "must fit an answer");
	if (n > USER_MAX)
		return false;
	used = percent_decode(s, user, plain);
	plain[used++] = ':';
	if (colon)
		used += percent_decode(colon + 1, n - user - 1, plain + used);
	memcpy(out->authorization, basic, sizeof(basic));
	base64(plain, used, out->authorization + sizeof(basic) - 1);
	return true;
}

/* ---- the proxy ---- */

/* What is wrong with it; NULL: nothing. Never with a part of the value. */
static const char *
read_proxy(const char *url, struct kr_upstream *out)
{
	const char *scheme = strstr(url, "://"), *at;
	struct kr_upstream upstream = { .authorization = "" };
	size_t n;

	if (scheme && (scheme - url != 4 || strncasecmp(url, "http", 4) != 0))
		return "is no http:// URL, the only kind of proxy that kraft speaks to";
	if (scheme)
		url = scheme + 3;
	n = strcspn(url, "/?#");
	at = kr_memrchr(url, '@', n);
	if (at && !set_authorization(url, (size_t)(at - url), &upstream))
		return "has user information of more than 1024 bytes";
	if (at) {
		n -= (size_t)(at + 1 - url);
		url = at + 1;
	}
	if (!kr_target_parse(url, n, &upstream.proxy, NULL))
		return "does not name a host, or a host and a port";
	if (!upstream.proxy.port)
		upstream.proxy.port = DEFAULT_PORT;
	*out = upstream;
	return NULL;
}

static int
set_proxy(
	struct kr_upstream *out, const char *const *environment, const char *const names[2], struct kr_error *err)
{
	const char *name = NULL, *value = value_of(environment, names, &name), *fault;

	if (!value || !value[0])
		return 0;
	fault = read_proxy(value, out);
	if (!fault)
		return 0;
	kr_fail(err, KR_E_USAGE, "the environment variable '%s' %s", name, fault);
	return kr_hint(err, "write http://HOST:PORT, or unset '%s' to reach hosts directly", name);
}

int
kr_upstreams_init(struct kr_upstreams *out, const char *const *environment, struct kr_error *err)
{
	static const char *const connect[2] = { "https_proxy", "HTTPS_PROXY" };
	static const char *const http[2] = { "http_proxy", "HTTP_PROXY" };
	static const char *const never[2] = { "no_proxy", "NO_PROXY" };
	struct kr_upstreams u = { .never = NULL };
	const char *name, *value;

	if (set_proxy(&u.connect, environment, connect, err) < 0 ||
		set_proxy(&u.http, environment, http, err) < 0)
		return -1;
	value = value_of(environment, never, &name);
	u.never = value ? kr_xstrdup(value) : NULL;
	*out = u;
	return 0;
}

void
kr_upstreams_fini(struct kr_upstreams *upstreams)
{
	free(upstreams->never);
	upstreams->never = NULL;
}

/* ---- whom it is for ---- */

static bool
is_name_or_below(const char *host, const char *suffix, size_t n)
{
	size_t length = strlen(host);

	return length >= n && strncasecmp(host + length - n, suffix, n) == 0 &&
		   (length == n || host[length - n - 1] == '.');
}

/* An address without its brackets too, which kr_target_parse does not take. */
static bool
is_address(const char *s, size_t n, const struct kr_address *address)
{
	struct kr_address one;

	return kr_address_parse(s, n, &one) && kr_address_same(&one, address);
}

static bool
exempts(const char *s, size_t n, const struct kr_target *target)
{
	struct kr_target one;

	if (n == 1 && s[0] == '*')
		return true;
	if (target->is_address && is_address(s, n, &target->address))
		return true;
	if (n && s[0] == '.') {
		s++;
		n--;
	}
	if (!kr_target_parse(s, n, &one, NULL) || (one.port && one.port != target->port))
		return false;
	if (one.is_address || target->is_address)
		return one.is_address && target->is_address && kr_address_same(&one.address, &target->address);
	return is_name_or_below(target->host, one.host, strlen(one.host));
}

static bool
is_exempt(const char *list, const struct kr_target *target)
{
	static const char between[] = ", \t";

	for (size_t n; *list; list += n) {
		list += strspn(list, between);
		n = strcspn(list, between);
		if (exempts(list, n, target))
			return true;
	}
	return false;
}

const struct kr_upstream *
kr_upstream_for(const struct kr_upstreams *upstreams, enum kr_ask_type type, const struct kr_target *target)
{
	const struct kr_upstream *u = type == KR_ASK_CONNECT ? &upstreams->connect : &upstreams->http;

	return !u->proxy.port || (upstreams->never && is_exempt(upstreams->never, target)) ? NULL : u;
}
