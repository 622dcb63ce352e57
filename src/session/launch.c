/*
 * From a plan to a running launcher.
 *
 * Order, and it matters: open and check every source; render with the descriptors; fill the argument, verify
 * and filter files; then one posix_spawn of the launcher with exactly the descriptors it needs and exactly
 * the variables of the plan. Anything that fails before the spawn leaves nothing running. No value of a
 * variable is in an argument list: the launcher is told names (--keep) and finds the values in its
 * environment (OS-LCH-03).
 */
#include "session/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/portable.h"
#include "os/sys.h"
#include "session/item.h"

static void
launch_init(struct kr_launch *launch, struct kr_arena *arena, const struct kr_session_start *start)
{
	*launch = (struct kr_launch){
		.arena = arena,
		.start = start,
		.folder = -1,
		.args = -1,
		.verify = -1,
		.filter = -1,
		.control = -1,
		.lifeline = -1,
		.client_env = -1,
		.client_dir = -1,
		.listener = -1,
		.opened_count = start->plan->step_count,
	};
	launch->opened = kr_arena_alloc(arena, (launch->opened_count + 1) * sizeof(*launch->opened));
	for (size_t i = 0; i < launch->opened_count; i++)
		launch->opened[i].fd = -1;
	posix_spawn_file_actions_init(&launch->actions);
}

static void
launch_fini(struct kr_launch *launch)
{
	int *const fds[] = { &launch->folder, &launch->args, &launch->verify, &launch->filter, &launch->control,
		&launch->lifeline, &launch->client_env, &launch->client_dir, &launch->listener };

	for (size_t i = 0; i < KR_COUNT(fds); i++)
		kr_close_p(fds[i]);
	kr_session_close_sources(launch->opened, launch->opened_count);
	posix_spawn_file_actions_destroy(&launch->actions);
}

void
kr_launch_word(struct kr_launch *launch, const char *text)
{
	kr_strs_add(launch->arena, &launch->argv, text);
}

void
kr_launch_pass(struct kr_launch *launch, const char *option, int fd)
{
	kr_launch_word(launch, option);
	kr_launch_word(launch, kr_arena_printf(launch->arena, "%d", fd));
	posix_spawn_file_actions_adddup2(&launch->actions, fd, fd);
}

static void
pass_stream(struct kr_launch *launch, int fd, int as)
{
	if (fd < 0)
		posix_spawn_file_actions_addopen(&launch->actions, as, "/dev/null", as ? O_WRONLY : O_RDONLY, 0);
	else
		posix_spawn_file_actions_adddup2(&launch->actions, fd, as);
}

/* The plan's variables as an environment for the launcher, and their names as --keep options. */
static const char *const *
environment(struct kr_launch *launch, const struct kr_plan *plan)
{
	struct kr_strs block = { 0 };

	for (size_t i = 0; i < plan->env_count; i++) {
		kr_launch_word(launch, "--keep");
		kr_launch_word(launch, plan->env[i].name);
		kr_strs_add(launch->arena, &block,
			kr_arena_printf(launch->arena, "%s=%s", plan->env[i].name, plan->env[i].value));
	}
	if (!block.n)
		kr_strs_add(launch->arena, &block, NULL);
	return block.v;
}

static int
filter_file(struct kr_error *err)
{
	struct kr_bpf filter[KR_SECCOMP_MAX];
	size_t n = kr_seccomp_build(kr_arch_here(), filter);

	return kr_memory_file("kraft-seccomp", filter, n * sizeof(filter[0]), err);
}

/* ---- for all kinds ---- */

int
kr_launch_open_sources(struct kr_launch *launch, const char **empty, struct kr_error *err)
{
	const struct kr_session_start *start = launch->start;

	*empty = kr_session_empty_file(launch->arena, start->host, err);
	return *empty ? kr_session_open_sources(start->host, start->plan, *empty, launch->opened, err) : -1;
}

int
kr_launch_fill(
	struct kr_launch *launch, const struct kr_buf *args, const struct kr_buf *verify, struct kr_error *err)
{
	launch->args = kr_memory_file("kraft-args", args->data, args->len, err);
	if (launch->args < 0 || !verify->len)
		return launch->args < 0 ? -1 : 0;
	launch->verify = kr_memory_file("kraft-verify", verify->data, verify->len, err);
	return launch->verify < 0 ? -1 : 0;
}

static int
prepare(struct kr_launch *launch, const struct kr_launch_kind *kind, struct kr_error *err)
{
	launch->folder = kr_path_open(launch->start->folder, O_RDONLY | O_DIRECTORY, err);
	if (launch->folder < 0)
		return -1;
	if (kind->has_filter && (launch->filter = filter_file(err)) < 0)
		return -1;
	return kind->prepare(launch, err);
}

static int
connect_ends(struct kr_launch *launch, struct kr_session *session, struct kr_error *err)
{
	int pair[2];

	if (kr_socket_pair(SOCK_STREAM, pair) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a socket pair");
	session->control_fd = pair[0];
	launch->control = pair[1];
	if (!launch->start->lifeline)
		return 0;
	if (kr_pipe_pair(pair, false) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a pipe");
	launch->lifeline = pair[0];
	session->lifeline_fd = pair[1];
	return 0;
}

static void
terminal_words(struct kr_launch *launch)
{
	const struct kr_session_start *start = launch->start;

	if (!start->plan->request->terminal)
		return;
	kr_launch_word(launch, "--terminal");
	if (start->keep_stderr)
		kr_launch_word(launch, "--terminal-keep-stderr");
	if (start->rows) {
		kr_launch_word(launch, "--terminal-size");
		kr_launch_word(launch, kr_arena_printf(launch->arena, "%u,%u", start->rows, start->columns));
	}
}

static void
compose(struct kr_launch *launch, const struct kr_launch_kind *kind)
{
	const struct kr_session_start *start = launch->start;
	const struct kr_plan *plan = start->plan;

	kind->words(launch);
	kr_launch_pass(launch, "--folder", launch->folder);
	kr_launch_pass(launch, "--control", launch->control);
	if (launch->args >= 0)
		kr_launch_pass(launch, "--args", launch->args);
	if (launch->lifeline >= 0)
		kr_launch_pass(launch, "--lifeline", launch->lifeline);
	if (launch->verify >= 0)
		kr_launch_pass(launch, "--verify", launch->verify);
	terminal_words(launch);
	if (start->channel_socket) {
		kr_launch_word(launch, "--channel");
		kr_launch_word(launch, start->channel_socket);
	}
	kr_launch_word(launch, "--cwd");
	kr_launch_word(launch, plan->cwd);
	kr_launch_word(launch, "--exec");
	kr_launch_word(launch, plan->exec_path);
	kr_launch_word(launch, "--");
	for (size_t i = 0; plan->argv[i]; i++)
		kr_launch_word(launch, plan->argv[i]);
}

static int
start_launcher(struct kr_launch *launch, const struct kr_launch_kind *kind, pid_t *pid, struct kr_error *err)
{
	const struct kr_session_start *start = launch->start;
	const char *program = kr_path_join(launch->arena, start->host->guest_dir, "init");
	const char *const *block;
	int failed;

	kr_launch_word(launch, program);
	kr_launch_word(launch, kind->role);
	block = environment(launch, start->plan);
	compose(launch, kind);
	pass_stream(launch, start->stdin_fd, 0);
	pass_stream(launch, start->stdout_fd, 1);
	pass_stream(launch, start->stderr_fd, 2);
	failed = kr_spawn(program, &launch->actions, launch->argv.v, block, pid);
	if (failed)
		return kr_fail_errno(err, KR_E_WALL, failed, "cannot start the launcher '%s'", program);
	return 0;
}

static const struct kr_launch_kind *
kind_of(const struct kr_session_start *start)
{
	if (start->container)
		return &kr_launch_container;
	return start->plan->request->macos ? &kr_launch_seatbelt : &kr_launch_bwrap;
}

int
kr_session_launch(struct kr_arena *arena, const struct kr_session_start *start, struct kr_session *out,
	struct kr_error *err)
{
	const struct kr_launch_kind *kind = kind_of(start);
	struct kr_session session = { .control_fd = -1, .lifeline_fd = -1 };
	struct kr_launch launch;
	int result;

	launch_init(&launch, arena, start);
	result = prepare(&launch, kind, err);
	KR_FAULT(sources_opened);
	if (result == 0)
		result = connect_ends(&launch, &session, err);
	if (result == 0)
		result = start_launcher(&launch, kind, &session.launcher, err);
	KR_FAULT(launcher_spawned);
	launch_fini(&launch);
	if (result < 0) {
		kr_close_p(&session.control_fd);
		kr_close_p(&session.lifeline_fd);
		return -1;
	}
	*out = session;
	return 0;
}
