/* By a filter of system calls: an allow-list, and a call that is not on it ends the child. */
#include "os/power.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

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

static const struct sock_fprog filters[] = {
	[KR_POWER_PARSE] = { KR_COUNT(parse_filter), parse_filter },
	[KR_POWER_PASS] = { KR_COUNT(pass_filter), pass_filter },
};

/* The sanitizers' run time makes calls of its own: their builds have the limits, and no filter. */
bool
kr_power_drop(enum kr_power left)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return false;
	return KR_SANITIZED || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filters[left], 0, 0) == 0;
}
