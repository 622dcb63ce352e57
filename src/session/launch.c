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
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
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

/*
 * What a launch needs beside the plan. The descriptors exist only until the launcher has its own copies; tmp and shm are
 * where it mounts the capped file systems before bubblewrap binds them (guest/wire.h).
 */
struct parts {
	struct kr_bwrap bwrap;
	const char *tmp, *shm;
	int folder, args, verify, seccomp, control, lifeline;
	struct kr_opened *opened;
	size_t opened_count;
};

static void
parts_init(struct parts *parts, struct kr_arena *arena, size_t step_count)
{
	*parts = (struct parts){ .folder = -1, .args = -1, .verify = -1, .seccomp = -1, .control = -1, .lifeline = -1 };
	parts->opened = kr_arena_alloc(arena, (step_count + 1) * sizeof(*parts->opened));
	parts->opened_count = step_count;
	for (size_t i = 0; i < step_count; i++)
		parts->opened[i].fd = -1;
}

static void
parts_fini(struct parts *parts)
{
	kr_close_p(&parts->folder);
	kr_close_p(&parts->args);
	kr_close_p(&parts->verify);
	kr_close_p(&parts->seccomp);
	kr_close_p(&parts->control);
	kr_close_p(&parts->lifeline);
	kr_session_close_sources(parts->opened, parts->opened_count);
}

static const char *
make_scratch(struct kr_arena *arena, const struct kr_session_start *start, int folder, const char *name,
	struct kr_error *err)
{
	if (mkdirat(folder, name, 0700) < 0 && errno != EEXIST) {
		kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make '%s' in '%s'", name, start->folder);
		return NULL;
	}
	return kr_path_join(arena, start->folder, name);
}

/* The rendered text as files; a verify block is only written where bubblewrap cannot bind by descriptor. */
static int
fill(struct parts *parts, const struct kr_bwrap_render *text, struct kr_error *err)
{
	parts->args = kr_memory_file("kraft-args", text->args.data, text->args.len, err);
	if (parts->args < 0 || !text->verify.len)
		return parts->args < 0 ? -1 : 0;
	parts->verify = kr_memory_file("kraft-verify", text->verify.data, text->verify.len, err);
	return parts->verify < 0 ? -1 : 0;
}

static int
render(struct kr_arena *arena, const struct kr_session_start *start, struct parts *parts, struct kr_error *err)
{
	struct kr_bwrap_render text = { 0 };
	const char *empty = kr_session_empty_file(arena, start->host, err);
	int result;

	if (!empty || kr_session_open_sources(start->host, start->plan, empty, parts->opened, err) < 0)
		return -1;
	result = kr_bwrap_args(start->plan, &parts->bwrap, parts->opened, parts->tmp, parts->shm, empty, &text, err);
	if (result == 0)
		result = fill(parts, &text, err);
	kr_buf_fini(&text.args);
	kr_buf_fini(&text.verify);
	return result;
}

static int
open_parts(struct kr_arena *arena, const struct kr_session_start *start, struct parts *parts,
	struct kr_error *err)
{
	parts->folder = kr_path_open(start->folder, O_RDONLY | O_DIRECTORY, err);
	if (parts->folder < 0)
		return -1;
	parts->tmp = make_scratch(arena, start, parts->folder, "tmp", err);
	parts->shm = parts->tmp ? make_scratch(arena, start, parts->folder, "shm", err) : NULL;
	if (!parts->shm)
		return -1;
	parts->seccomp = filter_file(err);
	if (parts->seccomp < 0)
		return -1;
	return render(arena, start, parts, err);
}

static int
connect_ends(const struct kr_session_start *start, struct parts *parts, struct kr_session *session,
	struct kr_error *err)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a socket pair");
	session->control_fd = pair[0];
	parts->control = pair[1];
	if (!start->lifeline)
		return 0;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a pipe");
	parts->lifeline = pair[0];
	session->lifeline_fd = pair[1];
	return 0;
}

static void
compose(struct launch *launch, const struct kr_session_start *start, const struct parts *parts)
{
	const struct kr_plan *plan = start->plan;

	word(launch, "--tmp");
	word(launch, parts->tmp);
	word(launch, "--shm");
	word(launch, parts->shm);
	word(launch, "--caps");
	word(launch, kr_arena_printf(launch->arena, "%llu,%llu,%llu,%llu", KR_TMP_BYTES, KR_TMP_INODES, KR_SHM_BYTES,
		KR_SHM_INODES));

	word(launch, "--bwrap");
	word(launch, parts->bwrap.path);
	pass(launch, "--folder", parts->folder);
	pass(launch, "--control", parts->control);
	pass(launch, "--args", parts->args);
	pass(launch, "--seccomp", parts->seccomp);
	if (parts->lifeline >= 0)
		pass(launch, "--lifeline", parts->lifeline);
	if (parts->verify >= 0)
		pass(launch, "--verify", parts->verify);
	for (size_t i = 0; i < parts->opened_count; i++)
		if (parts->opened[i].fd >= 0 && parts->bwrap.bind_fd)
			pass(launch, "--pass-fd", parts->opened[i].fd);
	if (plan->request->terminal)
		word(launch, "--terminal");
	if (plan->request->terminal && start->keep_stderr)
		word(launch, "--terminal-keep-stderr");
	if (plan->request->terminal && start->rows) {
		word(launch, "--terminal-size");
		word(launch, kr_arena_printf(launch->arena, "%u,%u", start->rows, start->columns));
	}
	if (start->channel_socket) {
		word(launch, "--channel");
		word(launch, start->channel_socket);
	}
	word(launch, "--cwd");
	word(launch, plan->cwd);
	word(launch, "--exec");
	word(launch, plan->exec_path);
	word(launch, "--");
	for (size_t i = 0; plan->argv[i]; i++)
		word(launch, plan->argv[i]);
}

static int
start_launcher(struct launch *launch, const struct kr_session_start *start, const struct parts *parts, pid_t *pid, struct kr_error *err)
{
	const char *program = kr_path_join(launch->arena, start->host->guest_dir, "init");
	const char *const *block;
	int failed;

	word(launch, program);
	word(launch, "launch");
	block = environment(launch, start->plan);
	compose(launch, start, parts);
	pass_stream(launch, start->stdin_fd, 0);
	pass_stream(launch, start->stdout_fd, 1);
	pass_stream(launch, start->stderr_fd, 2);
	failed = kr_spawn(program, &launch->actions, launch->argv.v, block, pid);
	if (failed)
		return kr_fail_errno(err, KR_E_WALL, failed, "cannot start the launcher '%s'", program);
	return 0;
}

int
kr_session_launch(struct kr_arena *arena, const struct kr_session_start *start, struct kr_session *out,
	struct kr_error *err)
{
	struct kr_session session = { .control_fd = -1, .lifeline_fd = -1 };
	struct parts parts;
	struct launch launch;
	int result;

	parts_init(&parts, arena, start->plan->step_count);
	if (kr_bwrap_probe(arena, start->host, &parts.bwrap, err) < 0)
		return -1;
	launch_init(&launch, arena);
	result = open_parts(arena, start, &parts, err);
	KR_FAULT(sources_opened);
	if (result == 0)
		result = connect_ends(start, &parts, &session, err);
	if (result == 0)
		result = start_launcher(&launch, start, &parts, &session.launcher, err);
	KR_FAULT(launcher_spawned);
	launch_fini(&launch);
	parts_fini(&parts);
	if (result < 0) {
		kr_close_p(&session.control_fd);
		kr_close_p(&session.lifeline_fd);
		return -1;
	}
	*out = session;
	return 0;
}
