/*
 * Order: no new privileges (both walls ask for it), closed to debuggers, ended with kraft, limits, Landlock,
 * and the filter last, because it leaves no call that could do the others.
 *
 * The filter is a list of what the loop calls; everything else, and every other system-call ABI, ends the
 * process. Where a call could give power back through an argument, the argument is held too:
 *
 *     mmap                only private anonymous memory, never executable; mprotect is not there at all
 *     sendto, sendmsg     without MSG_FASTOPEN, which is a connect in disguise: on a socket that lost its
 * peer it would reach any address from the host's own network setsockopt          TCP_NODELAY and SO_LINGER
 * only (TCP_FASTOPEN_CONNECT, SO_ATTACH_FILTER and others are not) fcntl               O_NONBLOCK, and the
 * size of a pipe
 *
 * Arguments are compared on their low 32 bits, all that the kernel looks at in these.
 *
 * The memory limit, and calls that the sanitizers' own run time makes, differ in a build for tests: see
 * KR_SANITIZED.
 */
#include "egress/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/portable.h"
#include "egress/limits.h"

#if defined(__x86_64__) && defined(__LP64__)
#define AUDIT_ARCH_HERE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define AUDIT_ARCH_HERE AUDIT_ARCH_AARCH64
#else
#error "kraft-egress has no filter for this machine"
#endif

/* ---- descriptors, limits ---- */

enum kr_confine_step
kr_confine_descriptors(unsigned first)
{
	return kr_close_from(first) < 0 ? KR_CONFINE_DESCRIPTORS : KR_CONFINE_DONE;
}

/* Never above the hard limit that kraft was started with. */
static bool
set_limit(__rlimit_resource_t what, rlim_t most)
{
	struct rlimit limit;

	if (getrlimit(what, &limit) < 0)
		return false;
	if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max > most)
		limit.rlim_max = most;
	limit.rlim_cur = limit.rlim_max;
	return setrlimit(what, &limit) == 0;
}

static bool
set_limits(void)
{
	/* The sanitizers' shadow is terabytes of address space that counts as data. */
	rlim_t data = KR_SANITIZED ? RLIM_INFINITY : KR_EGRESS_DATA_BYTES;

	return set_limit(RLIMIT_CORE, 0) && set_limit(RLIMIT_NOFILE, KR_EGRESS_FILES) &&
		   set_limit(RLIMIT_DATA, data) && set_limit(RLIMIT_FSIZE, 0) && set_limit(RLIMIT_NPROC, 0);
}

unsigned
kr_confine_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_max > KR_EGRESS_FILES)
		return KR_EGRESS_FILES;
	return (unsigned)limit.rlim_max;
}

/* ---- Landlock ---- */

/* As of ABI 6 (Linux 6.12); written out because the header of the machine that builds may be older. */
struct landlock_ruleset {
	uint64_t fs, net, scoped;
};
enum {
	FS_ABI_1 = 0x1fff,
	FS_REFER = 0x2000,         /* ABI 2 */
	FS_TRUNCATE = 0x4000,      /* ABI 3 */
	NET_BIND_CONNECT = 3,      /* ABI 4 */
	FS_IOCTL_DEV = 0x8000,     /* ABI 5 */
	SCOPE_ABSTRACT_SIGNAL = 3, /* ABI 6 */
};

static struct landlock_ruleset
ruleset_of(long abi)
{
	return (struct landlock_ruleset){
		.fs = FS_ABI_1 | (abi >= 2 ? FS_REFER : 0u) | (abi >= 3 ? FS_TRUNCATE : 0u) |
			  (abi >= 5 ? FS_IOCTL_DEV : 0u),
		.net = abi >= 4 ? NET_BIND_CONNECT : 0u,
		.scoped = abi >= 6 ? SCOPE_ABSTRACT_SIGNAL : 0u,
	};
}

static size_t
ruleset_size(long abi)
{
	return abi >= 6 ? 24 : abi >= 4 ? 16 : 8;
}

bool
kr_confine_landlock(bool *raised)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
	struct landlock_ruleset ruleset = ruleset_of(abi);
	bool good;
	long fd;

	*raised = abi >= 0;
	if (abi < 0)
		return errno == ENOSYS || errno == EOPNOTSUPP;
	fd = syscall(SYS_landlock_create_ruleset, &ruleset, ruleset_size(abi), 0);
	if (fd < 0)
		return false;
	good = syscall(SYS_landlock_restrict_self, (int)fd, 0) == 0;
	return close((int)fd) == 0 && good;
}

/* ---- the filter ---- */

enum how { ANY, EQUAL, WITHIN };
enum { CHECKS = 2 };

struct rule {
	uint32_t call;
	struct {
		uint8_t how, argument;
		uint32_t value;
	} checks[CHECKS];
};

#define CALL(name)         \
	{                      \
		.call = SYS_##name \
	}
#define CALL1(name, how, argument, value)                          \
	{                                                              \
		.call = SYS_##name, .checks = { { how, argument, value } } \
	}
#define CALL2(name, how, argument, value, how2, argument2, value2)                              \
	{                                                                                           \
		.call = SYS_##name, .checks = { { how, argument, value }, { how2, argument2, value2 } } \
	}

enum { SEND_FLAGS = MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE };

/* What is called most stands first. */
static const struct rule rules[] = {
	CALL(recvfrom),
	CALL1(sendto, WITHIN, 3, SEND_FLAGS),
#ifdef SYS_epoll_wait
	CALL(epoll_wait),
#endif
	CALL(epoll_pwait),
	CALL(splice),
	CALL(epoll_ctl),
	CALL(accept4),
	CALL(close),
	CALL(recvmsg),
	CALL1(sendmsg, WITHIN, 2, SEND_FLAGS),
	CALL(shutdown),
	CALL2(setsockopt, EQUAL, 1, IPPROTO_TCP, EQUAL, 2, TCP_NODELAY),
	CALL2(setsockopt, EQUAL, 1, SOL_SOCKET, EQUAL, 2, SO_LINGER),
	CALL1(getsockopt, EQUAL, 1, SOL_SOCKET),
	CALL(getsockname),
	CALL(pipe2),
	CALL2(fcntl, EQUAL, 1, F_SETFL, EQUAL, 2, O_NONBLOCK),
	CALL1(fcntl, EQUAL, 1, F_SETPIPE_SZ),
	CALL(brk),
	CALL2(mmap, WITHIN, 2, PROT_READ | PROT_WRITE, EQUAL, 3, MAP_PRIVATE | MAP_ANONYMOUS),
	CALL(munmap),
	CALL(mremap),
	CALL(clock_gettime), /* when the clock cannot be read without a call */
	CALL(write),         /* the last words of a broken invariant */
	CALL(rt_sigreturn),
	CALL(exit_group),
#if KR_SANITIZED
	CALL1(mmap, WITHIN, 2, PROT_READ | PROT_WRITE),
	CALL1(mprotect, WITHIN, 2, PROT_READ | PROT_WRITE),
	CALL(madvise),
	CALL(futex),
	CALL(sched_yield),
	CALL(getpid),
	CALL(gettid),
	CALL(prctl),
	CALL(sigaltstack),
	CALL(rt_sigaction),
	CALL(rt_sigprocmask),
	CALL(openat), /* of the report; Landlock refuses it */
	CALL(readlinkat),
#endif
};

/* Of kraft-egress-tls besides. OpenSSL asks whether it is still the process that it was before it draws random numbers, and its
 * way of doing a thing once ends with waking nobody. */
static const struct rule tls_rules[] = {
	CALL(getrandom),
	CALL(getpid),
	CALL1(futex, EQUAL, 1, FUTEX_WAKE_PRIVATE),
};

/* Offsets in struct seccomp_data; the arguments are 64 bits each, low half first. */
enum { AT_NUMBER = 0, AT_ARCH = 4, AT_ARGUMENTS = 16 };
enum { FILTER_MAX = 5 + (KR_COUNT(rules) + KR_COUNT(tls_rules)) * (3 + 3 * CHECKS) };

struct program {
	struct sock_filter code[FILTER_MAX];
	unsigned short n;
};

static struct sock_filter *
emit(struct program *program, uint16_t code, uint32_t k, unsigned unequal)
{
	struct sock_filter *at = &program->code[program->n++];

	*at = (struct sock_filter){ .code = code, .jf = (uint8_t)unequal, .k = k };
	return at;
}

static void
load(struct program *program, uint32_t offset)
{
	emit(program, BPF_LD | BPF_W | BPF_ABS, offset, 0);
}

/* The call's number is in the accumulator before and after. A check that fails goes to the rule's end. */
static void
emit_rule(struct program *program, const struct rule *rule)
{
	struct sock_filter *jumps[1 + CHECKS];
	size_t n = 0;
	bool loaded = false;

	jumps[n++] = emit(program, BPF_JMP | BPF_JEQ | BPF_K, rule->call, 0);
	for (size_t i = 0; i < CHECKS && rule->checks[i].how != ANY; i++) {
		bool within = rule->checks[i].how == WITHIN;

		load(program, AT_ARGUMENTS + 8u * rule->checks[i].argument);
		loaded = true;
		if (within)
			emit(program, BPF_ALU | BPF_AND | BPF_K, ~rule->checks[i].value, 0);
		jumps[n++] = emit(program, BPF_JMP | BPF_JEQ | BPF_K, within ? 0 : rule->checks[i].value, 0);
	}
	emit(program, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0);
	for (size_t i = 0; i < n; i++)
		jumps[i]->jf = (uint8_t)(&program->code[program->n] - jumps[i] - 1);
	if (loaded)
		load(program, AT_NUMBER);
}

static void
build(struct program *program, bool has_tls)
{
	program->n = 0;
	load(program, AT_ARCH);
	emit(program, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_HERE, 0)->jt = 1;
	emit(program, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0);
	load(program, AT_NUMBER); /* x32's have bit 30 set and equal none below */
	for (size_t i = 0; i < KR_COUNT(rules); i++)
		emit_rule(program, &rules[i]);
	for (size_t i = 0; has_tls && i < KR_COUNT(tls_rules); i++)
		emit_rule(program, &tls_rules[i]);
	emit(program, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0);
}

static bool
load_filter(bool has_tls)
{
	static struct program program;
	struct sock_fprog filter = { .filter = program.code };

	build(&program, has_tls);
	filter.len = program.n;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

/* ---- all of it ---- */

enum kr_confine_step
kr_confine_memory(void)
{
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return KR_CONFINE_DUMPABLE;
	return set_limit(RLIMIT_CORE, 0) ? KR_CONFINE_DONE : KR_CONFINE_LIMITS;
}

static enum kr_confine_step
confine(bool has_tls)
{
	bool raised;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return KR_CONFINE_PRIVILEGES;
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return KR_CONFINE_DUMPABLE;
	/* Also when it hangs in a call that a worker made hang: a descriptor from it is shared with it. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return KR_CONFINE_PARENT;
	if (!set_limits())
		return KR_CONFINE_LIMITS;
	if (!kr_confine_landlock(&raised))
		return KR_CONFINE_LANDLOCK;
	return load_filter(has_tls) ? KR_CONFINE_DONE : KR_CONFINE_FILTER;
}

enum kr_confine_step
kr_confine(void)
{
	return confine(false);
}

enum kr_confine_step
kr_confine_with_tls(void)
{
	return confine(true);
}
