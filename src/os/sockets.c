#include "os/sockets.h"

struct kr_end
kr_end_v4(struct in_addr address, uint16_t port)
{
	struct kr_end end = { .port = port };

	end.address.s6_addr[10] = end.address.s6_addr[11] = 0xff;
	memcpy(&end.address.s6_addr[12], &address, sizeof(address));
	return end;
}

bool
kr_end_of(const struct sockaddr_storage *from, struct kr_end *out)
{
	const struct sockaddr_in6 *six = (const void *)from;
	const struct sockaddr_in *four = (const void *)from;

	if (from->ss_family == AF_INET)
		*out = kr_end_v4(four->sin_addr, ntohs(four->sin_port));
	else if (from->ss_family == AF_INET6)
		*out = (struct kr_end){ .address = six->sin6_addr, .port = ntohs(six->sin6_port) };
	else
		return false;
	return true;
}

static bool
is_same(const struct kr_end *a, const struct kr_end *b)
{
	return a->port == b->port && memcmp(&a->address, &b->address, sizeof(a->address)) == 0;
}

bool
kr_tcp_is_other_side(const struct kr_tcp *a, const struct kr_tcp *b)
{
	return is_same(&a->local, &b->remote) && is_same(&a->remote, &b->local);
}
