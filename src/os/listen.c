#include "os/listen.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/portable.h"

int
kr_listen_check(const char *path, struct kr_error *err)
{
	const size_t most = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;

	if (strlen(path) <= most)
		return 0;
	kr_fail(err, KR_E_SOCKET_PATH, "the path of the session's socket is longer than the %zu bytes that a socket may have: '%s'", most, path);
	return kr_hint(err, "set KRAFT_HOME or KRAFT_RUN_DIR to a shorter path");
}

int
kr_listen_unix(const char *path, int backlog, struct kr_error *err)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	kr_auto_fd int fd = -1;

	if (kr_listen_check(path, err) < 0)
		return -1;
	memcpy(at.sun_path, path, strlen(path) + 1);
	fd = kr_socket_make(AF_UNIX, SOCK_STREAM, 0, true);
	if (fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a socket");
	(void)unlink(path); /* may not be there */
	if (bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 || chmod(path, 0600) < 0 ||
		listen(fd, backlog) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot listen on '%s'", path);
	return kr_steal_fd(fd);
}

int
kr_listen_loopback(int backlog, uint16_t *port, struct kr_error *err)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	kr_auto_fd int fd = kr_socket_make(AF_INET, SOCK_STREAM, IPPROTO_TCP, true);
	socklen_t n = sizeof(at);

	if (fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a socket");
	if (bind(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, backlog) < 0 ||
		getsockname(fd, (struct sockaddr *)&at, &n) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot listen on 127.0.0.1");
	*port = ntohs(at.sin_port);
	return kr_steal_fd(fd);
}
