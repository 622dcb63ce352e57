#include "server/internal.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/portable.h"

enum { BACKLOG = 128 };

static unsigned
port_of(int fd)
{
	struct sockaddr_storage address;
	socklen_t n = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &n) < 0)
		return 0;
	return ntohs(address.ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)&address)->sin6_port
											   : ((const struct sockaddr_in *)&address)->sin_port);
}

static int
fail_to_bind(const char *address, unsigned port, int sys_errno, struct kr_error *err)
{
	if (sys_errno != EADDRINUSE)
		return kr_fail_errno(err, KR_E_SYSTEM, sys_errno, "cannot listen on '%s' port %u", address, port);
	kr_fail(err, KR_E_BUSY, "another program listens on port %u of '%s'", port, address);
	return kr_hint(err, "choose another with --port, KRAFT_PORT or 'port' in access.yaml");
}

int
kr_listen(const char *address, unsigned port, unsigned *real_port, struct kr_error *err)
{
	const struct addrinfo want = { .ai_flags = AI_NUMERICHOST | AI_PASSIVE, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	kr_auto_fd int fd = -1;
	const int on = 1;
	char service[16];
	int result;

	snprintf(service, sizeof(service), "%u", port);
	if (getaddrinfo(address, service, &want, &found) != 0)
		return kr_fail(err, KR_E_CONFIG, "'%s' is no address to listen on", address);
	fd = kr_socket_make(found->ai_family, SOCK_STREAM, 0, true);
	result = fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
					 bind(fd, found->ai_addr, found->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0
				 ? errno
				 : 0;
	freeaddrinfo(found);
	if (result)
		return fail_to_bind(address, port, result, err);
	*real_port = port_of(fd);
	return kr_steal_fd(fd);
}

const char *
kr_listen_url(struct kr_arena *arena, const char *address, unsigned port)
{
	return strchr(address, ':') ? kr_arena_printf(arena, "http://[%s]:%u", address, port)
								: kr_arena_printf(arena, "http://%s:%u", address, port);
}
