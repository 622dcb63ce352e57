/*
 * A fork, because what is to be parsed is in memory already and the parser is a function. The child's filter
 * is an allow-list; a call that is not on it ends the child. The answer is written to a mapping that both
 * share, and is believed only when the child ended of itself with status 0.
 */
#include "os/powerless.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FAILED = 1 };

#if defined(__x86_64__) && defined(__LP64__)
#define AUDIT_ARCH_HERE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define AUDIT_ARCH_HERE AUDIT_ARCH_AARCH64
#else
#error "there is no filter for this machine"
#endif

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define UNLESS(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 0, (skip))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define ALLOW_CALL(name) UNLESS(SYS_##name, 1), ALLOW

#define KILL BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define ALLOW_CALL_ON(name, fd) UNLESS(SYS_##name, 4), LOAD(args[0]), UNLESS(fd, 1), ALLOW, KILL

/* clang-format off */
#define FILTER(...)                                                                                            \
	LOAD(arch),                                                                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_HERE, 1, 0),                                                \
	KILL,                                                                                                      \
	LOAD(nr),                                                                                                  \
	ALLOW_CALL(brk),                                                                                           \
	ALLOW_CALL(munmap),                                                                                        \
	ALLOW_CALL(mremap),                                                                                        \
	ALLOW_CALL(futex),                                                                                         \
	ALLOW_CALL(clock_gettime),                                                                                 \
	ALLOW_CALL(getrandom), /* a hash table's seed */                                                           \
	ALLOW_CALL(exit_group),                                                                                    \
	__VA_ARGS__                                                                                                \
	UNLESS(SYS_mmap, 5), /* private anonymous memory that is never executed */                                 \
	LOAD(args[2]),                                                                                             \
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, ~(uint32_t)(PROT_READ | PROT_WRITE), 3, 0),                           \
	LOAD(args[3]),                                                                                             \
	UNLESS(MAP_PRIVATE | MAP_ANONYMOUS, 1),                                                                    \
	ALLOW,                                                                                                     \
	KILL
static struct sock_filter parse_filter[] = { FILTER() };
static struct sock_filter pass_filter[] = {
	FILTER(ALLOW_CALL_ON(read, STDIN_FILENO), ALLOW_CALL_ON(write, STDOUT_FILENO),)
};
/* clang-format on */

/* What a kind of child keeps. */
struct power {
	struct sock_fprog filter;
	unsigned first_closed; /* of its descriptors; all that follow too */
	rlim_t cpu_s, data_bytes;
};
static const struct power of_parse = { { KR_COUNT(parse_filter), parse_filter }, 0, 2, 256 << 20 };
static const struct power of_pass = { { KR_COUNT(pass_filter), pass_filter }, STDOUT_FILENO + 1, 600,
	64 << 20 };

static bool
set_limit(__rlimit_resource_t what, rlim_t most)
{
	return setrlimit(what, &(struct rlimit){ most, most }) == 0;
}

/* The sanitizers' run time makes calls of its own: their builds have the limits, and no filter. */
static bool
keep_only(const struct power *power)
{
	if (syscall(SYS_close_range, power->first_closed, ~0u, 0u) < 0 || !set_limit(RLIMIT_CORE, 0) ||
		!set_limit(RLIMIT_CPU, power->cpu_s) ||
		(!KR_SANITIZED && !set_limit(RLIMIT_DATA, power->data_bytes)) ||
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return false;
	return KR_SANITIZED || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &power->filter, 0, 0) == 0;
}

static int
follow(pid_t pid, const void *shared, void *out, size_t out_size, struct kr_error *err)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot wait for the parser");
	if (WIFEXITED(status) && WEXITSTATUS(status) == FAILED)
		return kr_fail(err, KR_E_SYSTEM, "the parser's process could not be confined");
	if (status != 0)
		return kr_fail(err, KR_E_REFUSED, "its parser did not come to an end");
	memcpy(out, shared, out_size);
	return 0;
}

int
kr_powerless_parse(
	kr_parse_fn *parse, const void *bytes, size_t n, void *out, size_t out_size, struct kr_error *err)
{
	void *shared = mmap(NULL, out_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int result;
	pid_t pid;

	memset(out, 0, out_size);
	if (shared == MAP_FAILED)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "no memory for the parser's answer");
	pid = fork();
	if (pid == 0) {
		if (!keep_only(&of_parse))
			_exit(FAILED);
		parse(bytes, n, shared);
		_exit(0);
	}
	result = pid < 0 ? kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot start the parser's process")
					 : follow(pid, shared, out, out_size, err);
	(void)munmap(shared, out_size);
	return result;
}

/* ---- piece by piece ---- */

/* Whichever numbers they have, also when each has the other's. */
static bool
move_streams(int in_fd, int out_fd)
{
	const int in = fcntl(in_fd, F_DUPFD, STDERR_FILENO + 1), out = fcntl(out_fd, F_DUPFD, STDERR_FILENO + 1);

	return in >= 0 && out >= 0 && dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0;
}

/* A handler that we were forked with would need a call to come back from. */
static void
forget_signals(void)
{
	static const int ignored[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE, SIGTSTP, SIGTTOU };

	for (int i = 1; i < NSIG; i++)
		(void)signal(i, SIG_DFL); /* some cannot be */
	for (size_t i = 0; i < KR_COUNT(ignored); i++)
		(void)signal(ignored[i], SIG_IGN);
}

int
kr_powerless_pass(kr_pass_fn *pass, void *context, int in_fd, int out_fd, pid_t *pid, struct kr_error *err)
{
	*pid = fork();
	if (*pid == 0) {
		forget_signals();
		if (!move_streams(in_fd, out_fd) || !keep_only(&of_pass))
			_exit(FAILED);
		pass(context);
		_exit(0);
	}
	return *pid < 0 ? kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot start the process that shows what comes")
					: 0;
}
