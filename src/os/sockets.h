/*
 * Whose socket is at the other end of a connection over the loopback, from a table of sockets. The part of it that is no system
 * call: darwin.c fills the table by what libproc says of each descriptor of each process that it may look at.
 */
#ifndef KR_OS_SOCKETS_H
#define KR_OS_SOCKETS_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "base/base.h"

/* One end of a TCP connection, in a form that an IPv4 pair has only one of: IPv4 as a mapped address. */
struct kr_end {
	struct in6_addr address;
	uint16_t port; /* of this machine's byte order */
};
struct kr_tcp {
	struct kr_end local, remote;
};

/* False when it is neither IPv4 nor IPv6. */
bool kr_end_of(const struct sockaddr_storage *from, struct kr_end *out);
struct kr_end kr_end_v4(struct in_addr address, uint16_t port);
/* The same pair of ends, the other way round. */
bool kr_tcp_is_other_side(const struct kr_tcp *a, const struct kr_tcp *b);

#endif
