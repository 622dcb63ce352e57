/* What the command line asks a server: by its lock, by signals, and GET /api/health. */
#include "server/internal.h"

#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/portable.h"
#include "base/text.h"
#include "os/owner.h"
#include "os/timer.h"

enum { ANSWER_S = 5, ANSWER_BYTES = 1 << 20, STOP_MS = 10000, STEP_MS = 20 };

int
kr_server_find(
	struct kr_arena *arena, const struct kr_places *places, struct kr_server_seen *out, struct kr_error *err)
{
	struct kr_owner owner;

	if (!kr_owner_find(kr_work_server_path(arena, places), &owner)) {
		kr_fail(err, KR_E_NO_SERVER, "no server is running on '%s'", places->run_dir);
		return kr_hint(err, "'kraft admin start --detach' starts one");
	}
	*out = (struct kr_server_seen){ .pid = (int)owner.pid,
		.url = kr_arena_dup_n(arena, owner.note, strcspn(owner.note, " ")),
		.ends_hosts = strstr(owner.note, KR_SERVER_ENDS_HOSTS) != NULL };
	return 0;
}

/* ---- one request ---- */

/* "http://127.0.0.1:8765" and "http://[::1]:8765", as listen.c writes them. */
static int
dial(const char *url, struct kr_error *err)
{
	const struct addrinfo want = { .ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM };
	const struct timeval time = { .tv_sec = ANSWER_S };
	struct addrinfo *found = NULL;
	char host[128];
	const char *port = strrchr(url, ':');
	kr_auto_fd int fd = -1;
	int result;

	if (!kr_text_has_prefix(url, "http://") || !port || port < url + 8)
		return kr_fail(err, KR_E_SERVER, "the server does not say where it listens yet");
	url += strlen("http://");
	snprintf(host, sizeof(host), "%.*s", (int)(port - url), url);
	if (host[0] == '[') {
		host[strlen(host) - 1] = '\0';
		memmove(host, host + 1, strlen(host));
	}
	if (getaddrinfo(host, port + 1, &want, &found) != 0)
		return kr_fail(err, KR_E_SERVER, "'%s' is no address", host);
	fd = kr_socket_make(found->ai_family, SOCK_STREAM, 0, false);
	result = fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time)) < 0 ||
					 connect(fd, found->ai_addr, found->ai_addrlen) < 0
				 ? errno
				 : 0;
	freeaddrinfo(found);
	if (result)
		return kr_fail_errno(err, KR_E_SERVER, result, "the server does not answer at '%s'", host);
	return kr_steal_fd(fd);
}

int
kr_server_health(const struct kr_server_seen *server, json_t **out, struct kr_error *err)
{
	static const char request[] = "GET /api/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
	kr_auto_buf struct kr_buf answer = KR_BUF(ANSWER_BYTES);
	kr_auto_fd int fd = dial(server->url, err);
	struct kr_error why = { 0 };
	const char *body;

	if (fd < 0)
		return -1;
	if (send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL) != sizeof(request) - 1 ||
		kr_read_all(fd, &answer, server->url, &why) < 0) {
		if (why.sys_errno != EAGAIN)
			return kr_fail(err, KR_E_SERVER, "process %d, the server, ended meanwhile", server->pid);
		kr_fail(err, KR_E_TIMEOUT, "process %d, the server, does not answer within %d s", server->pid, ANSWER_S);
		return kr_hint(err, "'kraft admin restart' starts it anew; what runs goes on meanwhile");
	}
	body = answer.data ? strstr(answer.data, "\r\n\r\n") : NULL;
	*out = body && kr_text_has_prefix(answer.data, "HTTP/1.1 200 ") ? json_loads(body + 4, 0, NULL) : NULL;
	return *out ? 0 : kr_fail(err, KR_E_SERVER, "what answers at '%s' is no server of kraft's", server->url);
}

/* ---- signals ---- */

static int
tell(const struct kr_server_seen *server, int signal, struct kr_error *err)
{
	if (kill((pid_t)server->pid, signal) == 0 || errno == ESRCH)
		return 0;
	return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot tell process %d", server->pid);
}

int
kr_server_stop(struct kr_arena *arena, const struct kr_places *places, struct kr_error *err)
{
	const int64_t until = kr_clock_ms() + STOP_MS;
	struct kr_server_seen server;

	if (kr_server_find(arena, places, &server, err) < 0 || tell(&server, SIGTERM, err) < 0)
		return -1;
	while (kr_owner_is_held(kr_work_server_path(arena, places))) {
		if (kr_clock_ms() > until)
			return kr_fail(err, KR_E_TIMEOUT, "process %d, the server, has not ended within %d s", server.pid,
				STOP_MS / 1000);
		(void)nanosleep(&(struct timespec){ .tv_nsec = STEP_MS * 1000000 }, NULL);
	}
	return 0;
}

int
kr_server_reload(struct kr_arena *arena, const struct kr_places *places, struct kr_error *err)
{
	struct kr_server_seen server;

	return kr_server_find(arena, places, &server, err) < 0 ? -1 : tell(&server, SIGHUP, err);
}
