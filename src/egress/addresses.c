#include "egress/addresses.h"

#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

static bool
from_sockaddr(const struct sockaddr *sa, struct kr_address *out)
{
	*out = (struct kr_address){ 0 };
	if (sa && sa->sa_family == AF_INET) {
		memcpy(out->b, &((const struct sockaddr_in *)(const void *)sa)->sin_addr, 4);
		return true;
	}
	if (sa && sa->sa_family == AF_INET6) {
		out->is_v6 = true;
		memcpy(out->b, &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr, 16);
		return true;
	}
	return false;
}

static bool
has(const struct kr_address *v, size_t n, const struct kr_address *address)
{
	for (size_t i = 0; i < n; i++)
		if (kr_address_same(&v[i], address))
			return true;
	return false;
}

int
kr_own_addresses(struct kr_arena *arena, struct kr_addresses *out, struct kr_error *err)
{
	struct ifaddrs *all = NULL;
	struct kr_address *v;
	size_t n = 0;

	if (getifaddrs(&all) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot list the addresses of this host");
	for (const struct ifaddrs *at = all; at; at = at->ifa_next)
		n++;
	v = kr_arena_alloc(arena, (n + 1) * sizeof(*v));
	n = 0;
	for (const struct ifaddrs *at = all; at; at = at->ifa_next)
		n += from_sockaddr(at->ifa_addr, &v[n]);
	freeifaddrs(all);
	*out = (struct kr_addresses){ v, n };
	return 0;
}

/* False when there are more than an answer may have. */
static bool
gather(const struct addrinfo *all, struct kr_found *out)
{
	struct kr_address address;

	*out = (struct kr_found){ .n = 0 };
	for (const struct addrinfo *at = all; at; at = at->ai_next) {
		if (!from_sockaddr(at->ai_addr, &address) || has(out->v, out->n, &address))
			continue;
		if (out->n == KR_COUNT(out->v))
			return false;
		out->v[out->n++] = address;
	}
	return true;
}

int
kr_resolve(const char *name, struct kr_found *out, struct kr_error *err)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *all = NULL;
	struct kr_found found;
	int status = getaddrinfo(name, NULL, &hints, &all);
	bool fits;

	if (status != 0)
		return kr_fail(err, KR_E_NOT_FOUND, "'%s' does not resolve: %s", name,
			status == EAI_SYSTEM ? strerror(errno) : gai_strerror(status));
	fits = gather(all, &found);
	freeaddrinfo(all);
	if (!fits)
		return kr_fail(err, KR_E_LIMIT, "'%s' has more than %d addresses", name, KR_LOOKUP_ADDRESSES);
	if (found.n == 0)
		return kr_fail(err, KR_E_NOT_FOUND, "'%s' does not resolve: it has no address", name);
	*out = found;
	return 0;
}

void
kr_found_decide(const struct kr_verdict *host, const struct kr_found *found, const struct kr_addresses *own,
	struct kr_verdict *each, struct kr_verdict *out)
{
	struct kr_verdict strictest = *host, one;

	for (size_t i = 0; i < found->n; i++) {
		kr_address_decide(host, &found->v[i], own, &one);
		if (each)
			each[i] = one;
		/* Of two refusals the one that no grant can lift is the one to tell. */
		if (one.decision > strictest.decision)
			strictest = one;
	}
	*out = strictest;
}

void
kr_unresolved_decide(const struct kr_verdict *host, const char *why, struct kr_verdict *out)
{
	struct kr_verdict v = *host;

	v.decision = KR_HOST_UNRESOLVED;
	snprintf(v.reason, sizeof(v.reason), "%s", why);
	*out = v;
}
