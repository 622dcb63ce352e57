/*
 * For the tests of the API alone: listens on an address, says where and with which token, and gives each
 * connection a process of its own, as the server does. Ends when its stdin does.
 */
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <arpa/inet.h>
#include <unistd.h>

#include "api/api.h"
#include "os/host.h"
#include "session/facts.h"

static int
fail(const struct kr_error *err)
{
	kr_error_print(err, stderr, false);
	return 1;
}

static int
listen_on(struct kr_access *access)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)access->port) };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons((uint16_t)access->port) };
	const bool is_v6 = strchr(access->bind, ':') != NULL;
	socklen_t n = is_v6 ? sizeof(six) : sizeof(four);
	struct sockaddr *address = is_v6 ? (struct sockaddr *)&six : (struct sockaddr *)&four;
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (inet_pton(
			address->sa_family, access->bind, is_v6 ? (void *)&six.sin6_addr : (void *)&four.sin_addr) != 1 ||
		bind(fd, address, n) < 0 || listen(fd, 512) < 0 || getsockname(fd, address, &n) < 0)
		return -1;
	access->port = ntohs(is_v6 ? six.sin6_port : four.sin_port);
	return fd;
}

static void
serve(const struct kr_api *api, int listener)
{
	struct pollfd fds[] = { { .fd = listener, .events = POLLIN }, { .fd = STDIN_FILENO, .events = POLLIN } };

	(void)signal(SIGCHLD, SIG_IGN); /* nobody waits for them */
	while (poll(fds, 2, -1) > 0 && !fds[1].revents) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0)
			continue;
		if (fork() == 0) {
			(void)signal(SIGCHLD, SIG_DFL);
			(void)close(listener);
			kr_api_connection(api, fd);
			_exit(0);
		}
		(void)close(fd);
	}
}

int
main(void)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_api api = { .health = {
							  .pid = (int)getpid(), .started_ms = kr_now_ms(), .scanned = 3, .adopted = 1 } };
	struct kr_error err = { 0 };
	struct kr_access access;
	struct kr_host host;
	int listener;

	if (kr_host_gather_places(&arena, &host, &err) < 0 || kr_host_prepare_dirs(&host, &err) < 0 ||
		kr_access_load(&arena, &host.places, &access, &err) < 0 || kr_access_may_bind(&access, &err) < 0 ||
		kr_api_token(&arena, &host.places, &api.token, &err) < 0)
		return fail(&err);
	listener = listen_on(&access);
	if (listener < 0) {
		perror(access.bind);
		return 1;
	}
	api.access = &access;
	printf("%s %u %s\n", access.bind, access.port, api.token);
	fflush(stdout);
	serve(&api, listener);
	return 0;
}
