/*
 * From a plan to a running launcher.
 *
 * Order, and it matters: open and check every source; render with the descriptors; fill the argument, verify and filter
 * files; then one posix_spawn of the launcher with exactly the descriptors it needs and exactly the variables of the plan.
 * Anything that fails before the spawn leaves nothing running. No value of a variable is in an argument list: the launcher
 * is told names (--keep) and finds the values in its environment (OS-LCH-03).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "guest/wire.h"
#include "os/sys.h"
#include "session/item.h"
#include "session/session.h"

/* The launcher's command line and descriptors while they are put together. */
struct launch {
	struct kr_arena *arena;
	struct kr_strs argv;
	posix_spawn_file_actions_t actions;
};

static void
launch_init(struct launch *launch, struct kr_arena *arena)
{
	*launch = (struct launch){ .arena = arena };
	posix_spawn_file_actions_init(&launch->actions);
}

static void
launch_fini(struct launch *launch)
{
	posix_spawn_file_actions_destroy(&launch->actions);
}

static void
word(struct launch *launch, const char *text)
{
	kr_strs_add(launch->arena, &launch->argv, text);
}

/* Says a descriptor by its number and lets it through: dup2 onto itself takes close-on-exec off in the child only. */
static void
pass(struct launch *launch, const char *option, int fd)
{
	word(launch, option);
	word(launch, kr_arena_printf(launch->arena, "%d", fd));
	posix_spawn_file_actions_adddup2(&launch->actions, fd, fd);
}

static void
pass_stream(struct launch *launch, int fd, int as)
{
	if (fd < 0)
		posix_spawn_file_actions_addopen(&launch->actions, as, "/dev/null", as ? O_WRONLY : O_RDONLY, 0);
	else
		posix_spawn_file_actions_adddup2(&launch->actions, fd, as);
}

static int
spawn(struct launch *launch, const char *program, const char *const *environment, pid_t *pid, struct kr_error *err)
{
	posix_spawnattr_t attr;
	sigset_t none, all;
	int failed;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	failed = posix_spawn(pid, program, &launch->actions, &attr, (char *const *)launch->argv.v,
		(char *const *)environment);
	posix_spawnattr_destroy(&attr);
	if (failed)
		return kr_fail_errno(err, KR_E_WALL, failed, "cannot start the launcher '%s'", program);
	return 0;
}

/* The plan's variables as an environment for the launcher, and their names as --keep options. */
static const char *const *
environment(struct launch *launch, const struct kr_plan *plan)
{
	struct kr_strs block = { 0 };

	for (size_t i = 0; i < plan->env_count; i++) {
		word(launch, "--keep");
		word(launch, plan->env[i].name);
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

/* All descriptors that exist only until the launcher has its own copies. */
struct files {
	int folder, args, verify, seccomp, control, lifeline;
	struct kr_opened *opened;
	size_t opened_count;
};

static void
files_fini(struct files *files)
{
	kr_close_p(&files->folder);
	kr_close_p(&files->args);
	kr_close_p(&files->verify);
	kr_close_p(&files->seccomp);
	kr_close_p(&files->control);
	kr_close_p(&files->lifeline);
	kr_session_close_sources(files->opened, files->opened_count);
}

static int
render(struct kr_arena *arena, const struct kr_session_start *start, const struct kr_bwrap *bwrap,
	struct files *files, struct kr_error *err)
{
	struct kr_bwrap_render text = { 0 };
	const char *empty = kr_session_empty_file(arena, start->host, err);
	int result = -1;

	if (!empty || kr_session_open_sources(start->host, start->plan, empty, files->opened, err) < 0)
		return -1;
	if (kr_bwrap_args(start->plan, bwrap, files->opened, NULL, NULL, empty, &text, err) < 0)
		goto out;
	files->args = kr_memory_file("kraft-args", text.args.data, text.args.len, err);
	if (files->args < 0)
		goto out;
	if (text.verify.len) {
		files->verify = kr_memory_file("kraft-verify", text.verify.data, text.verify.len, err);
		if (files->verify < 0)
			goto out;
	}
	result = 0;
out:
	kr_buf_fini(&text.args);
	kr_buf_fini(&text.verify);
	return result;
}

static int
open_files(struct kr_arena *arena, const struct kr_session_start *start, const struct kr_bwrap *bwrap,
	struct files *files, struct kr_error *err)
{
	files->folder = kr_path_open(start->folder, O_RDONLY | O_DIRECTORY, err);
	if (files->folder < 0)
		return -1;
	files->seccomp = filter_file(err);
	if (files->seccomp < 0)
		return -1;
	return render(arena, start, bwrap, files, err);
}

static int
connect_ends(const struct kr_session_start *start, struct files *files, struct kr_session *session,
	struct kr_error *err)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a socket pair");
	session->control_fd = pair[0];
	files->control = pair[1];
	if (!start->lifeline)
		return 0;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a pipe");
	files->lifeline = pair[0];
	session->lifeline_fd = pair[1];
	return 0;
}

static void
compose(struct launch *launch, const struct kr_session_start *start, const struct kr_bwrap *bwrap,
	const struct files *files)
{
	const struct kr_plan *plan = start->plan;

	word(launch, "--bwrap");
	word(launch, bwrap->path);
	pass(launch, "--folder", files->folder);
	pass(launch, "--control", files->control);
	pass(launch, "--args", files->args);
	pass(launch, "--seccomp", files->seccomp);
	if (files->lifeline >= 0)
		pass(launch, "--lifeline", files->lifeline);
	if (files->verify >= 0)
		pass(launch, "--verify", files->verify);
	for (size_t i = 0; i < files->opened_count; i++)
		if (files->opened[i].fd >= 0 && bwrap->bind_fd)
			pass(launch, "--pass-fd", files->opened[i].fd);
	if (plan->request->terminal)
		word(launch, "--terminal");
	word(launch, "--cwd");
	word(launch, plan->cwd);
	word(launch, "--exec");
	word(launch, plan->exec_path);
	word(launch, "--");
	for (size_t i = 0; plan->argv[i]; i++)
		word(launch, plan->argv[i]);
}

static int
start_launcher(struct launch *launch, const struct kr_session_start *start, const struct kr_bwrap *bwrap,
	const struct files *files, pid_t *pid, struct kr_error *err)
{
	const char *program = kr_path_join(launch->arena, start->host->guest_dir, "init");
	const char *const *block;

	word(launch, program);
	word(launch, "launch");
	block = environment(launch, start->plan);
	compose(launch, start, bwrap, files);
	pass_stream(launch, start->stdin_fd, 0);
	pass_stream(launch, start->stdout_fd, 1);
	pass_stream(launch, start->stderr_fd, 2);
	return spawn(launch, program, block, pid, err);
}

int
kr_session_launch(struct kr_arena *arena, const struct kr_session_start *start, struct kr_session *out,
	struct kr_error *err)
{
	struct files files = { -1, -1, -1, -1, -1, -1, NULL, start->plan->step_count };
	struct kr_session session = { .control_fd = -1, .lifeline_fd = -1 };
	struct kr_bwrap bwrap;
	struct launch launch;
	int result;

	if (kr_bwrap_probe(arena, start->host, &bwrap, err) < 0)
		return -1;
	files.opened = kr_arena_alloc(arena, (files.opened_count + 1) * sizeof(*files.opened));
	for (size_t i = 0; i < files.opened_count; i++)
		files.opened[i].fd = -1;
	launch_init(&launch, arena);
	result = open_files(arena, start, &bwrap, &files, err);
	if (result == 0)
		result = connect_ends(start, &files, &session, err);
	if (result == 0)
		result = start_launcher(&launch, start, &bwrap, &files, &session.launcher, err);
	launch_fini(&launch);
	files_fini(&files);
	if (result < 0) {
		kr_close_p(&session.control_fd);
		kr_close_p(&session.lifeline_fd);
		return -1;
	}
	*out = session;
	return 0;
}
