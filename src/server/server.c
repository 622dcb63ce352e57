/*
 * One loop: a connection gets a process, a child that ended is noted, the items are looked at four times a second.
 * Nothing here blocks, and nothing that a client sends is read here.
 */
#include "server/internal.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/portable.h"
#include "os/owner.h"
#include "os/sys.h"
#include "run/container.h"
#include "session/facts.h"

enum { CONNECTIONS = 64, LOOK_MS = 250, ACCEPTS = 16 };

struct server {
	struct kr_arena arena; /* of the configuration that holds now */
	struct kr_host host;
	struct kr_access access;
	struct kr_api api;
	struct kr_keeper *keeper;
	int listener, signals, owner;
	pid_t connections[CONNECTIONS];
	size_t connection_count;
	sigset_t before; /* the signal mask that we were started with */
	bool is_ending;
};

void
kr_server_log(const char *fmt, ...)
{
	time_t now = time(NULL);
	struct tm tm;
	char at[32];
	va_list ap;

	strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%S%z", localtime_r(&now, &tm));
	fprintf(stderr, "%s ", at);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

/* ---- connections ---- */

static void
be_a_child(struct server *s)
{
	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigprocmask(SIG_SETMASK, &s->before, NULL);
	(void)close(s->listener);
	(void)close(s->signals);
	(void)close(s->owner); /* it would hold the lock when the server is gone */
	kr_end_with_parent(getppid(), SIGTERM); /* else its time ends it */
}

static void
be_connection(struct server *s, int fd)
{
	be_a_child(s);
	kr_api_connection(&s->api, fd);
	_exit(0);
}

static void
refuse_connection(int fd)
{
	static const char full[] = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
							   "Connection: close\r\n\r\n";

	(void)send(fd, full, sizeof(full) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	(void)close(fd);
}

static void
take_connections(struct server *s)
{
	for (int i = 0; i < ACCEPTS; i++) {
		int fd = kr_socket_accept(s->listener, false, NULL);
		pid_t pid;

		if (fd < 0)
			return;
		if (s->connection_count == CONNECTIONS) {
			refuse_connection(fd);
			continue;
		}
		fflush(NULL);
		pid = fork();
		if (pid == 0)
			be_connection(s, fd);
		if (pid > 0)
			s->connections[s->connection_count++] = pid;
		(void)close(fd);
	}
}

static void
reap(struct server *s)
{
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
		if (kr_keeper_reaped(s->keeper, pid))
			continue;
		for (size_t i = 0; i < s->connection_count; i++)
			if (s->connections[i] == pid) {
				s->connections[i] = s->connections[--s->connection_count];
				break;
			}
	}
}

/* ---- configuration ---- */

static int
load(struct kr_arena *arena, const struct kr_host *host, const struct kr_server_want *want,
	struct kr_access *access, unsigned *slots, struct kr_error *err)
{
	struct kr_policy_file policy;

	if (kr_access_load(arena, &host->places, access, err) < 0 ||
		kr_policy_file_load(arena, &host->places, &policy, err) < 0)
		return -1;
	if (want->bind)
		access->bind = want->bind;
	if (want->port >= 0)
		access->port = (unsigned)want->port;
	*slots = policy.max_concurrent;
	return kr_access_may_bind(access, err);
}

/* Address and port stay as they are bound. The arena grows a little with each. */
static void
reload(struct server *s, const struct kr_server_want *want)
{
	struct kr_error err = { 0 };
	struct kr_access access;
	unsigned slots;

	if (load(&s->arena, &s->host, want, &access, &slots, &err) < 0) {
		kr_server_log("the configuration stays as it was: %s", err.message);
		return;
	}
	access.bind = s->access.bind;
	access.port = s->access.port;
	s->access = access;
	kr_keeper_set_slots(s->keeper, slots);
	kr_server_log("configuration read again: %u items at a time", slots);
}

/* ---- its life ---- */

static void
take_signals(struct server *s, const struct kr_server_want *want)
{
	for (int signal; (signal = kr_signals_next(s->signals)) != 0;) {
		if (signal == SIGCHLD)
			reap(s);
		else if (signal == SIGHUP)
			reload(s, want);
		else
			s->is_ending = true;
	}
}

static void
serve(struct server *s, const struct kr_server_want *want)
{
	struct pollfd fds[] = { { .fd = s->listener, .events = POLLIN }, { .fd = s->signals, .events = POLLIN } };

	while (!s->is_ending) {
		if (poll(fds, KR_COUNT(fds), LOOK_MS) < 0 && errno != EINTR)
			break;
		take_signals(s, want);
		if (fds[0].revents)
			take_connections(s);
		kr_keeper_look(s->keeper, &s->api.health);
	}
	for (size_t i = 0; i < s->connection_count; i++)
		(void)kill(s->connections[i], SIGTERM);
	kr_server_log("ended; what runs goes on");
}

static int
watch_signals(struct server *s, struct kr_error *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, &s->before) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot hold signals back");
	s->signals = kr_signals_open(&set, err);
	return s->signals < 0 ? -1 : 0;
}

static int
take_store(struct server *s, struct kr_error *err)
{
	const char *path = kr_work_server_path(&s->arena, &s->host.places);
	struct kr_owner owner = { 0 };

	s->owner = kr_owner_take(path, "", err);
	if (s->owner >= 0)
		return 0;
	if (err->code == KR_E_BUSY && kr_owner_find(path, &owner)) {
		kr_fail(err, KR_E_BUSY, "a server is running already: process %d, %s", (int)owner.pid, owner.note);
		kr_hint(err, "'kraft admin restart' starts it anew");
	}
	return -1;
}

/* What died before us may have left containers. Their runtime can let us wait, so a process of its own asks it. */
static void
sweep_containers(struct server *s)
{
	if (!kr_session_left_client(s->host.places.run_dir))
		return;
	fflush(NULL);
	if (fork() != 0)
		return; /* where there is no process for it, the next session does it */
	be_a_child(s);
	kr_run_container_sweep_home(&s->arena, &s->host);
	_exit(0);
}

static int
begin(struct server *s, const struct kr_server_want *want, struct kr_error *err)
{
	struct kr_store *store = NULL;
	const char *const *within;
	bool ends_hosts = false;
	const char *url, *note;
	unsigned slots;

	if (kr_host_gather(&s->arena, &s->host, err) < 0 || kr_host_prepare_dirs(&s->host, err) < 0 ||
		load(&s->arena, &s->host, want, &s->access, &slots, err) < 0 || take_store(s, err) < 0 ||
		kr_store_open(s->host.places.run_dir, KR_STORE_WRITE, &store, err) < 0)
		return -1;
	kr_store_close(store); /* it could be opened, and is of this version */
	if (kr_api_token(&s->arena, &s->host.places, &s->api.token, err) < 0)
		return -1;
	s->listener = kr_listen(s->access.bind, s->access.port, &s->access.port, err);
	if (s->listener < 0)
		return -1;
	url = kr_listen_url(&s->arena, s->access.bind, s->access.port);
	within = kr_scope_words(&s->arena, &ends_hosts);
	note = kr_arena_printf(&s->arena, "%s%s", url, ends_hosts ? KR_SERVER_ENDS_HOSTS : "");
	if (watch_signals(s, err) < 0 || kr_owner_tell(s->owner, note, err) < 0)
		return -1;
	s->api.access = &s->access;
	s->api.health.pid = (int)getpid();
	s->api.health.started_ms = kr_now_ms();
	s->keeper = kr_keeper_open(&s->host, within);
	kr_keeper_set_slots(s->keeper, slots);
	sweep_containers(s);
	kr_server_log("listening on %s; %u items at a time", url, slots);
	kr_tell_ready();
	if (want->on_ready)
		want->on_ready(want->context, url);
	return 0;
}

int
kr_server_run(const struct kr_server_want *want, struct kr_error *err)
{
	struct server s = { .listener = -1, .signals = -1, .owner = -1 };
	int result = begin(&s, want, err);

	if (result == 0) {
		serve(&s, want);
		kr_keeper_close(s.keeper);
	}
	kr_close_p(&s.listener);
	kr_close_p(&s.signals);
	kr_close_p(&s.owner);
	kr_arena_fini(&s.arena);
	return result;
}
