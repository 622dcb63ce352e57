#include "egress/egress.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/portable.h"
#include "guest/wire.h"
#include "os/listen.h"
#include "os/sys.h"

enum {
	EGRESS_CONTROL = 3, /* what kraft-egress expects where */
	EGRESS_CHANNEL = 4,
	EGRESS_MANAGED = 5,
	OUT_OF_THE_WAY = 16, /* descriptors from here on are none of the above */
	RESTARTS = 1,
};

struct kr_egress {
	struct kr_egress_want want;
	char *socket_path; /* NULL: on loopback */
	struct kr_egress_door door;
	struct kr_buf authority; /* the session's CA: certificate, NUL, key, NUL; wiped at the end */
	int channel; /* the listening channel socket, or the door: outlives each kraft-egress */
	struct kr_broker *broker;
	pid_t pid; /* 0: none runs */
	int restarts;
};

static int
listen_on_channel(struct kr_egress *e, struct kr_error *err)
{
	size_t n = strlen(e->want.channel_dir) + sizeof("/" KG_CHANNEL_SOCKET);

	e->socket_path = kr_xcalloc(1, n);
	snprintf(e->socket_path, n, "%s/%s", e->want.channel_dir, KG_CHANNEL_SOCKET);
	e->channel = kr_listen_unix(e->socket_path, KR_CHANNELS_MAX, err);
	return e->channel < 0 ? -1 : 0;
}

static int
open_door(struct kr_egress *e, struct kr_error *err)
{
	unsigned char bits[KR_EGRESS_TOKEN / 2];

	if (!kr_random(bits, sizeof(bits)))
		return kr_fail(err, KR_E_SYSTEM, "the system gives no random bytes");
	for (size_t i = 0; i < sizeof(bits); i++)
		snprintf(e->door.token + 2 * i, 3, "%02x", bits[i]);
	e->channel = kr_listen_loopback(KR_DOOR_BACKLOG, &e->door.port, err);
	return e->channel < 0 ? -1 : 0;
}

/* A copy that no number which kraft-egress expects can fall on. */
static int
out_of_the_way(int fd, struct kr_error *err)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);

	return copy < 0 ? kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot copy a descriptor") : copy;
}

static const char *const no_environment[] = { NULL };

static int
no_program(const struct kr_egress *e, int failed, struct kr_error *err)
{
	kr_fail_errno(err, KR_E_WALL, failed, "cannot start '%s'", e->want.program);
	return kr_hint(err, "install kraft again: it belongs to it");
}

/* managed: what kraft-egress-tls is handed, in memory; -1: it is kraft-egress. */
static int
spawn(struct kr_egress *e, int control, int managed, struct kr_error *err)
{
	static const char *const argv[] = { "kraft-egress", NULL };
	kr_auto_fd int far = out_of_the_way(control, err), channel = far < 0 ? -1 : out_of_the_way(e->channel, err);
	kr_auto_fd int memory = channel < 0 || managed < 0 ? -1 : out_of_the_way(managed, err);
	posix_spawn_file_actions_t actions;
	int failed;

	if (channel < 0 || (managed >= 0 && memory < 0))
		return -1;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
	posix_spawn_file_actions_adddup2(&actions, 0, 1);
	posix_spawn_file_actions_adddup2(&actions, 0, 2);
	posix_spawn_file_actions_adddup2(&actions, far, EGRESS_CONTROL);
	posix_spawn_file_actions_adddup2(&actions, channel, EGRESS_CHANNEL);
	if (memory >= 0)
		posix_spawn_file_actions_adddup2(&actions, memory, EGRESS_MANAGED);
	failed = kr_spawn(e->want.program, &actions, argv, no_environment, &e->pid);
	posix_spawn_file_actions_destroy(&actions);
	if (!failed)
		return 0;
	e->pid = 0;
	return no_program(e, failed, err);
}

/* ---- what kraft-egress-tls has of kraft ---- */

static int
spawn_authority(const struct kr_egress *e, int out, pid_t *pid, struct kr_error *err)
{
	static const char *const argv[] = { "kraft-egress-tls", "authority", NULL };
	posix_spawn_file_actions_t actions;
	int failed;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
	posix_spawn_file_actions_adddup2(&actions, out, 1);
	posix_spawn_file_actions_adddup2(&actions, 0, 2);
	failed = kr_spawn(e->want.program, &actions, argv, no_environment, pid);
	posix_spawn_file_actions_destroy(&actions);
	return failed ? no_program(e, failed, err) : 0;
}

/* Made by the program that has TLS in it; here it is bytes that are handed back to it at each start. */
static int
make_authority(struct kr_egress *e, struct kr_error *err)
{
	kr_auto_fd int in = -1, out = -1;
	int status = -1, got;
	pid_t pid;

	e->authority = KR_BUF(KR_MANAGED_AUTHORITY_BYTES);
	kr_buf_reserve(&e->authority, KR_MANAGED_AUTHORITY_BYTES); /* no growing that leaves copies of a key behind */
	if (kr_pipe(&in, &out, err) < 0 || spawn_authority(e, out, &pid, err) < 0)
		return -1;
	kr_close_p(&out);
	got = kr_read_all(in, &e->authority, "the session's certificate authority", err);
	kr_close_p(&in);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (got < 0)
		return -1;
	if (status == 0 && kr_managed_is_authority(e->authority.data, e->authority.len))
		return 0;
	kr_fail(err, KR_E_WALL, "'%s' made no certificate authority for the session", e->want.program);
	return kr_hint(err, "install kraft again: this program belongs to it");
}

/* *fd is the memory, or -1 with an error. What the session's secrets are is asked for anew, and nothing of it stays here. */
static int
open_managed(struct kr_egress *e, int *fd, struct kr_error *err)
{
	struct kr_managed managed = { 0 };
	struct kr_buf packed = { 0 };

	if (!e->want.managed(e->want.broker.context, &managed, err))
		return -1;
	managed.authority = e->authority.data;
	managed.authority_bytes = e->authority.len;
	if (kr_managed_pack(&managed, &packed, err) < 0)
		return -1;
	kr_broker_manage(e->broker, managed.rules, managed.rule_count);
	*fd = kr_memory_file("kraft-managed", packed.data, packed.len, err);
	kr_managed_wipe(&packed);
	return *fd < 0 ? -1 : 0;
}

static int
start_process(struct kr_egress *e, struct kr_error *err)
{
	int pair[2];
	kr_auto_fd int ours = -1, theirs = -1, managed = -1;

	if (e->want.managed && open_managed(e, &managed, err) < 0)
		return -1;
	if (kr_socket_pair(SOCK_STREAM, pair) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a socket pair");
	ours = pair[0];
	theirs = pair[1];
	/* A new socket has room for it. */
	if (e->want.is_on_loopback && send(ours, e->door.token, KR_EGRESS_TOKEN, 0) != KR_EGRESS_TOKEN)
		return kr_fail(err, KR_E_SYSTEM, "cannot tell kraft-egress its token");
	if (spawn(e, theirs, managed, err) < 0)
		return -1;
	return kr_broker_attach(e->broker, kr_steal_fd(ours), err);
}

static void
end_process(struct kr_egress *e)
{
	if (e->pid <= 0)
		return;
	(void)kill(e->pid, SIGKILL);
	while (waitpid(e->pid, NULL, 0) < 0 && errno == EINTR)
		;
	e->pid = 0;
}

/* Who waits on it is told at once: a connection that nobody will take any more would hang. */
static void
close_channel(struct kr_egress *e)
{
	if (e->channel >= 0 && e->socket_path)
		(void)unlink(e->socket_path);
	kr_close_p(&e->channel);
}

int
kr_egress_open(const struct kr_egress_want *want, struct kr_egress **out, struct kr_error *err)
{
	struct kr_egress *e = kr_xcalloc(1, sizeof(*e));

	*e = (struct kr_egress){ .want = *want, .channel = -1 };
	if ((want->is_on_loopback ? open_door(e, err) : listen_on_channel(e, err)) < 0 ||
		kr_broker_new(&want->broker, &e->broker, err) < 0 || (want->managed && make_authority(e, err) < 0)) {
		kr_egress_end(e);
		return -1;
	}
	*out = e;
	return 0;
}

int
kr_egress_serve(struct kr_egress *e, struct kr_error *err)
{
	return start_process(e, err);
}

void
kr_egress_end(struct kr_egress *e)
{
	if (!e)
		return;
	end_process(e);
	kr_broker_free(e->broker);
	close_channel(e);
	kr_managed_wipe(&e->authority);
	free(e->socket_path);
	free(e);
}

const char *
kr_egress_authority(const struct kr_egress *e)
{
	return e->want.managed ? e->authority.data : NULL;
}

const struct kr_egress_door *
kr_egress_door(const struct kr_egress *e)
{
	return e->want.is_on_loopback ? &e->door : NULL;
}

const char *
kr_egress_socket(const struct kr_egress *e)
{
	return e->socket_path;
}

int
kr_egress_fd(const struct kr_egress *e)
{
	return kr_broker_fd(e->broker);
}

void
kr_egress_step(struct kr_egress *e)
{
	bool restarted = false;

	kr_broker_step(e->broker);
	if (e->pid == 0 || kr_broker_attached(e->broker))
		return;
	end_process(e);
	if (e->restarts++ < RESTARTS)
		restarted = start_process(e, NULL) == 0;
	if (!restarted)
		close_channel(e);
	if (e->want.on_lost)
		e->want.on_lost(e->want.broker.context, restarted);
}
