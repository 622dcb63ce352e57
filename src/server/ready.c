/*
 * A service manager that waits until the server listens (sd_notify(3)): one datagram to the socket that NOTIFY_SOCKET names. The
 * variable goes, so that nobody who is started later speaks for the server.
 */
#include "server/internal.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/portable.h"

void
kr_tell_ready(void)
{
	static const char word[] = "READY=1";
	const char *name = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t n = name ? strlen(name) : 0;
	kr_auto_fd int fd = -1;

	if (n < 2 || n >= sizeof(to.sun_path) || (name[0] != '/' && name[0] != '@'))
		return;
	memcpy(to.sun_path, name, n);
	if (name[0] == '@')
		to.sun_path[0] = '\0'; /* of the abstract namespace */
	fd = kr_socket_make(AF_UNIX, SOCK_DGRAM, 0, true);
	if (fd >= 0)
		(void)sendto(fd, word, sizeof(word) - 1, 0, (const struct sockaddr *)&to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)); /* it waits in vain else, and says so */
	(void)unsetenv("NOTIFY_SOCKET");
}
