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
	OUT_OF_THE_WAY = 16, /* descriptors from here on are none of the above */
	RESTARTS = 1,
};

struct kr_egress {
	struct kr_egress_want want;
	char *socket_path; /* NULL: on loopback */
	struct kr_egress_door door;
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

static int
spawn(struct kr_egress *e, int control, struct kr_error *err)
{
	static const char *const argv[] = { "kraft-egress", NULL }, *const environment[] = { NULL };
	kr_auto_fd int far = out_of_the_way(control, err), channel = far < 0 ? -1 : out_of_the_way(e->channel, err);
	posix_spawn_file_actions_t actions;
	int failed;

	if (channel < 0)
		return -1;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
	posix_spawn_file_actions_adddup2(&actions, 0, 1);
	posix_spawn_file_actions_adddup2(&actions, 0, 2);
	posix_spawn_file_actions_adddup2(&actions, far, EGRESS_CONTROL);
	posix_spawn_file_actions_adddup2(&actions, channel, EGRESS_CHANNEL);
	failed = kr_spawn(e->want.program, &actions, argv, environment, &e->pid);
	posix_spawn_file_actions_destroy(&actions);
	if (!failed)
		return 0;
	e->pid = 0;
	kr_fail_errno(err, KR_E_WALL, failed, "cannot start '%s'", e->want.program);
	return kr_hint(err, "install kraft again: it belongs to it");
}

static int
start_process(struct kr_egress *e, struct kr_error *err)
{
	int pair[2];
	kr_auto_fd int ours = -1, theirs = -1;

	if (kr_socket_pair(SOCK_STREAM, pair) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a socket pair");
	ours = pair[0];
	theirs = pair[1];
	/* A new socket has room for it. */
	if (e->want.is_on_loopback && send(ours, e->door.token, KR_EGRESS_TOKEN, 0) != KR_EGRESS_TOKEN)
		return kr_fail(err, KR_E_SYSTEM, "cannot tell kraft-egress its token");
	if (spawn(e, theirs, err) < 0)
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
	if ((want->is_on_loopback ? open_door(e, err) : listen_on_channel(e, err)) < 0 || kr_broker_new(&want->broker, &e->broker, err) < 0) {
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
	free(e->socket_path);
	free(e);
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
