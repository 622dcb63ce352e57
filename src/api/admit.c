/*
 * Who may ask. Two questions, both pure:
 *
 * Where was it asked? A page in a browser of this person can make it send requests here. A name that suddenly
 * leads to this address (DNS rebinding) shows in Host, a page of another site in Origin and Sec-Fetch-Site;
 * what is not ours there is refused, reads too.
 *
 * Who asks? What changes something needs the token, from anywhere. On loopback, reading needs none when the
 * other end of the connection is our own user's. Elsewhere the token, or the cookie of a login, is needed for
 * all of it. No other header says who somebody is: they can be written by anybody.
 *
 * A call that says of itself that it is a session's is believed in that, and refused what is a person's
 * (CHN-12). That is a check against mistakes. The wall is another one: no session reaches this server, and
 * none can read the token.
 */
#include "api/internal.h"

#include <strings.h>

#include "base/text.h"

/* ---- where ---- */

static bool
is_host(const struct kr_target *target, const char *name)
{
	struct kr_target ours;
	const char *why;

	/* An address of version 6 has brackets in a Host and none in a file. */
	if (!name || (!kr_target_parse(name, strlen(name), &ours, &why)))
		return false;
	return strcmp(target->host, ours.host) == 0;
}

static bool
is_address(const struct kr_target *target, const char *text)
{
	struct kr_address address;

	return text && target->is_address && kr_address_parse(text, strlen(text), &address) &&
		   kr_address_same(&target->address, &address);
}

static bool
is_ours(const struct kr_api_call *call, const char *text, size_t n)
{
	static const char *const loopback[] = { "127.0.0.1", "localhost", "[::1]" };
	const struct kr_access *access = call->api->access;
	struct kr_target target;
	const char *why;

	if (!kr_target_parse(text, n, &target, &why))
		return false;
	for (size_t i = 0; i < KR_COUNT(loopback); i++)
		if (is_host(&target, loopback[i]))
			return true;
	if (is_address(&target, access->bind))
		return true;
	if (kr_access_is_loopback(access))
		return false;
	for (size_t i = 0; i < access->allowed_hosts.n; i++)
		if (is_host(&target, access->allowed_hosts.v[i]))
			return true;
	return is_address(&target, call->client->local);
}

static bool
is_our_origin(const struct kr_api_call *call, struct kr_bytes origin)
{
	size_t scheme = origin.n > 7 && strncasecmp(origin.at, "http://", 7) == 0    ? 7
					: origin.n > 8 && strncasecmp(origin.at, "https://", 8) == 0 ? 8
																				 : 0;

	return scheme && is_ours(call, origin.at + scheme, origin.n - scheme);
}

bool
kr_api_admit_place(const struct kr_api_call *call, struct kr_api_refusal *out)
{
	size_t count;
	const struct kr_field *host = kr_head_find(call->head, "host", &count);

	if (!host)
		return kr_api_refuse(out, 400, "there is no Host");
	if (!is_ours(call, host->value.at, host->value.n))
		return kr_api_refuse(out, 403, "the Host is no name of this server");
	for (size_t i = 0; i < call->head->n; i++) {
		const struct kr_field *f = &call->head->fields[i];

		if (f->name.n == 6 && strncasecmp(f->name.at, "origin", 6) == 0 && !is_our_origin(call, f->value))
			return kr_api_refuse(out, 403, "the Origin is another site");
		if (f->name.n == 14 && strncasecmp(f->name.at, "sec-fetch-site", 14) == 0 && f->value.n == 10 &&
			strncasecmp(f->value.at, "cross-site", 10) == 0)
			return kr_api_refuse(out, 403, "another site asks");
	}
	return true;
}

/* ---- who ---- */

bool
kr_api_same_secret(const char *given, const char *secret)
{
	const size_t given_n = strlen(given), n = strlen(secret);
	volatile unsigned char differs = (unsigned char)(given_n != n);

	for (size_t i = 0; i < n; i++)
		differs |= (unsigned char)(secret[i] ^ (given_n ? given[i % given_n] : 0));
	return !differs && n > 0;
}

static bool
has_token(const struct kr_api_call *call)
{
	const char *given = kr_api_header(call, "authorization");

	if (strncasecmp(given, "bearer ", 7) != 0)
		return false;
	given += 7 + strspn(given + 7, " ");
	return kr_api_same_secret(given, call->api->token);
}

/* Of "a=b; kraft_session=VALUE; c=d". */
static bool
has_cookie(const struct kr_api_call *call)
{
	const char *at = kr_api_header(call, "cookie");
	const size_t name = strlen(KR_API_COOKIE "=");

	for (; *at; at += strcspn(at, ";"), at += *at == ';') {
		at += strspn(at, " ");
		if (strncmp(at, KR_API_COOKIE "=", name) != 0)
			continue;
		return kr_api_cookie_holds(call->arena, call->api,
			kr_arena_dup_n(call->arena, at + name, strcspn(at + name, "; ")), call->client->now_s);
	}
	return false;
}

static bool
has_credential(const struct kr_api_call *call)
{
	return has_token(call) || (!kr_access_is_loopback(call->api->access) && has_cookie(call));
}

static bool
has_header(const struct kr_api_call *call, const char *name)
{
	size_t count;

	return kr_head_find(call->head, name, &count) != NULL;
}

bool
kr_api_admit_caller(struct kr_api_call *call, struct kr_api_refusal *out)
{
	const enum kr_api_who who = call->route->who;
	const bool is_writer = who == KR_API_WRITER || who == KR_API_PERSON, has = has_credential(call);

	call->is_session = has_header(call, "x-kraft-session-id");
	call->is_tool = has_header(call, "x-kraft-client");
	call->is_known = has || (call->client->is_ours && kr_access_is_loopback(call->api->access));
	if (who == KR_API_PERSON && call->is_session)
		return kr_api_refuse(
			out, 403, "this is for a person, and X-Kraft-Session-Id says that a session asks");
	if (who == KR_API_ANYBODY || (is_writer ? has : call->is_known))
		return true;
	kr_api_refuse(out, 401,
		is_writer ? "what changes something needs the token; 'kraft admin token' prints it"
				  : "this needs the token; 'kraft admin token' prints it");
	out->header = "WWW-Authenticate: Bearer realm=\"kraft\"\r\n";
	return false;
}
