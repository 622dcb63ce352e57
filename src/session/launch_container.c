/*
 * kind: docker: the launcher starts the runtime's CLI, and kraft's init connects from inside the container to
 * a socket in the session's channel directory.
 *
 * The runtime mounts by path, so what was opened and checked here and what is mounted can differ; device and
 * inode of each source go into the verify block, and the init compares them before it starts anything. In a
 * virtual machine they are other ones; there it compares what else tells a directory that is not shared with
 * the machine from the one that was meant.
 *
 * The client stands in a directory of its own, <run_dir>/sandbox-client/<name>: never in a worktree, where a
 * file of a worker's could mean something to it. The socket is of our user only, in a directory of our user
 * only, and the launcher takes the first connection of our user and no other.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/path.h"
#include "os/listen.h"
#include "os/sys.h"
#include "session/launch.h"

static int
make_client_dir(struct kr_launch *launch, struct kr_error *err)
{
	const char *path = launch->start->container->client_dir;
	kr_auto_fd int parent = kr_path_make_dirs(kr_path_dirname(launch->arena, path), err);

	if (parent < 0)
		return -1;
	if (mkdirat(parent, kr_path_basename(path), 0700) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make '%s'", path);
	launch->client_dir = kr_path_open(path, O_RDONLY | O_DIRECTORY, err);
	return launch->client_dir < 0 ? -1 : 0;
}

static int
client_environment(struct kr_launch *launch, struct kr_error *err)
{
	const char *const *environment = launch->start->container->runtime->environment;
	kr_auto_buf struct kr_buf block = KR_BUF(KG_ENV_BYTES);

	for (; *environment; environment++)
		kr_buf_add_arg(&block, *environment);
	if (block.overflow)
		return kr_fail(
			err, KR_E_LIMIT, "the environment of the container's CLI is larger than %d bytes", KG_ENV_BYTES);
	launch->client_env = kr_memory_file("kraft-client-env", block.data, block.len, err);
	return launch->client_env < 0 ? -1 : 0;
}

static bool
is_mount_point(struct kr_launch *launch, const char *directory, const char *name)
{
	const struct kr_plan *plan = launch->start->plan;
	const char *path = kr_path_join(launch->arena, directory, name);

	for (size_t i = 0; i < plan->step_count; i++)
		if (strcmp(plan->steps[i].path, path) == 0)
			return true;
	return false;
}

/*
 * An unreadable one has none, as far as anybody can tell; a machine may not show sockets at all; and what is
 * mounted in it is there also where the directory is another one.
 */
static void
look_for_entries(struct kr_launch *launch, const char *path, struct kr_opened *opened)
{
	int fd = S_ISDIR(opened->type) ? openat(opened->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir) {
		kr_close_p(&fd);
		return;
	}
	for (const struct dirent *e; (e = readdir(dir)) && !opened->has_entries;)
		opened->has_entries =
			e->d_type != DT_SOCK && strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
			!is_mount_point(launch, path, e->d_name);
	closedir(dir);
}

static int
render(struct kr_launch *launch, struct kr_error *err)
{
	const struct kr_session_start *start = launch->start;
	struct kr_container container = *start->container;
	struct kr_container_render text = { 0 };
	const char *empty;
	int result;

	if (kr_launch_open_sources(launch, &empty, err) < 0)
		return -1;
	container.empty_path = empty;
	for (size_t i = 0; container.runtime->is_machine && i < launch->opened_count; i++)
		if (launch->opened[i].fd >= 0)
			look_for_entries(launch, start->plan->steps[i].path, &launch->opened[i]);
	result = kr_container_args(start->plan, &container, launch->opened, &text, err);
	if (result == 0)
		result = kr_launch_fill(launch, &text.args, &text.verify, err);
	kr_buf_fini(&text.args);
	kr_buf_fini(&text.verify);
	return result;
}

static int
prepare(struct kr_launch *launch, struct kr_error *err)
{
	launch->socket = kr_path_join(launch->arena, launch->start->plan->request->channel_dir, KG_INIT_SOCKET);
	launch->listener = kr_listen_unix(launch->socket, 1, err);
	if (launch->listener < 0 || make_client_dir(launch, err) < 0 || client_environment(launch, err) < 0)
		return -1;
	return render(launch, err);
}

static void
words(struct kr_launch *launch)
{
	kr_launch_word(launch, "--client");
	kr_launch_word(launch, launch->start->container->runtime->program);
	kr_launch_pass(launch, "--client-env", launch->client_env);
	kr_launch_pass(launch, "--client-dir", launch->client_dir);
	kr_launch_pass(launch, "--filter", launch->filter);
	kr_launch_pass(launch, "--listen", launch->listener);
	kr_launch_word(launch, "--connect");
	kr_launch_word(launch, launch->socket);
	if (launch->start->container->runtime->is_machine)
		kr_launch_word(launch, "--machine");
}

const struct kr_launch_kind kr_launch_container = { .role = "launch", .has_filter = true, .prepare = prepare, .words = words };
