/* Starting programs. posix_spawn only: forking a large process stalls it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/sys.h"

int
kr_spawn(const char *path, const posix_spawn_file_actions_t *actions, const char *const argv[],
	const char *const envp[], pid_t *pid)
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
	failed = posix_spawn(pid, path, actions, &attr, (char *const *)argv, (char *const *)envp);
	posix_spawnattr_destroy(&attr);
	return failed;
}

static int
spawn_into(const char *path, const char *const argv[], const char *const envp[], int out_fd, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	int failed;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out_fd, 1);
	posix_spawn_file_actions_adddup2(&actions, out_fd, 2);
	failed = kr_spawn(path, &actions, argv, envp, pid);
	posix_spawn_file_actions_destroy(&actions);
	return failed;
}

int
kr_capture(const char *path, const char *const argv[], const char *const envp[], struct kr_buf *out,
	int *status, struct kr_error *err)
{
	int pipe_fds[2], failed, wait_status;
	kr_auto_fd int read_end = -1, write_end = -1;
	pid_t pid;

	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a pipe");
	read_end = pipe_fds[0];
	write_end = pipe_fds[1];
	failed = spawn_into(path, argv, envp, write_end, &pid);
	if (failed)
		return kr_fail_errno(err, KR_E_SYSTEM, failed, "cannot start '%s'", path);
	kr_close_p(&write_end);
	failed = kr_read_all(read_end, out, path, err);
	if (failed < 0)
		(void)kill(pid, SIGKILL); /* it printed more than anybody wants to read */
	while (waitpid(pid, &wait_status, 0) < 0)
		if (errno != EINTR)
			return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot wait for '%s'", path);
	if (failed == 0)
		*status = wait_status;
	return failed;
}
