/*
 * A fork, because what is to be parsed is in memory already and the parser is a function. The child's filter
 * is an allow-list; a call that is not on it ends the child. The answer is written to a mapping that both
 * share, and is believed only when the child ended of itself with status 0.
 */
#include "os/powerless.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CPU_S = 2, DATA_BYTES = 256 << 20, FAILED = 1 };

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

static struct sock_filter filter[] = {
	LOAD(arch),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_HERE, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	LOAD(nr),
	ALLOW_CALL(brk),
	ALLOW_CALL(munmap),
	ALLOW_CALL(mremap),
	ALLOW_CALL(futex),
	ALLOW_CALL(clock_gettime),
	ALLOW_CALL(getrandom), /* a hash table's seed */
	ALLOW_CALL(exit_group),
	UNLESS(SYS_mmap, 5), /* private anonymous memory that is never executed */
	LOAD(args[2]),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, ~(uint32_t)(PROT_READ | PROT_WRITE), 3, 0),
	LOAD(args[3]),
	UNLESS(MAP_PRIVATE | MAP_ANONYMOUS, 1),
	ALLOW,
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};

static bool
set_limit(__rlimit_resource_t what, rlim_t most)
{
	return setrlimit(what, &(struct rlimit){ most, most }) == 0;
}

/* The sanitizers' run time makes calls of its own: their builds have the limits, and no filter. */
static bool
give_up_power(void)
{
	const struct sock_fprog program = { .len = sizeof(filter) / sizeof(filter[0]), .filter = filter };

	if (syscall(SYS_close_range, 0u, ~0u, 0u) < 0 || !set_limit(RLIMIT_CORE, 0) ||
		!set_limit(RLIMIT_CPU, CPU_S) || (!KR_SANITIZED && !set_limit(RLIMIT_DATA, DATA_BYTES)) ||
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return false;
	return KR_SANITIZED || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
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
		if (!give_up_power())
			_exit(FAILED);
		parse(bytes, n, shared);
		_exit(0);
	}
	result = pid < 0 ? kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot start the parser's process")
					 : follow(pid, shared, out, out_size, err);
	(void)munmap(shared, out_size);
	return result;
}
