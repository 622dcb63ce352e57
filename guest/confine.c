#include "guest/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include "guest/sys.h"

#if defined(__x86_64__) && defined(__LP64__)
#define AUDIT_ARCH_HERE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define AUDIT_ARCH_HERE AUDIT_ARCH_AARCH64
#else
#error "the outside end has no filter for this machine"
#endif

enum { FILES = 2048 };

/* A call, and where one of its arguments is held (by its low 32 bits): which, and the one value that passes. */
struct rule {
	uint32_t call;
	int argument; /* -1: any */
	uint32_t value;
};

#define CALL(name)           \
	{                        \
		SYS_##name, -1, 0    \
	}
#define CALL1(name, argument, value) \
	{                                \
		SYS_##name, argument, value  \
	}

static const struct rule rules[] = {
	CALL(read),
	CALL(write),
#ifdef SYS_poll
	CALL(poll),
#endif
	CALL(ppoll),
	CALL(recvmsg),
	CALL(recvfrom),
	CALL1(sendmsg, 2, MSG_DONTWAIT | MSG_NOSIGNAL), /* MSG_FASTOPEN would connect */
	CALL(close),
	CALL(shutdown),
	CALL1(socketpair, 0, AF_UNIX),
	CALL1(setsockopt, 2, SO_LINGER),
	CALL1(fcntl, 1, F_GETFL),
	CALL1(fcntl, 1, F_SETFL),
	CALL1(ioctl, 1, TIOCGWINSZ),
	CALL(writev),        /* the last words on stderr */
	CALL(clock_gettime), /* when the clock cannot be read without a call */
	CALL(rt_sigreturn),
	CALL(restart_syscall), /* of a poll that was stopped */
	CALL(exit_group),
};

enum { STEPS_OF_A_RULE = 5, STEPS_MAX = 5 + STEPS_OF_A_RULE * (int)KG_COUNT(rules) + 1 };

#define LOAD(field) \
	(struct sock_filter) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, field))
#define RETURN(what) (struct sock_filter) BPF_STMT(BPF_RET | BPF_K, what)
#define UNLESS_EQUAL(value, skip) (struct sock_filter) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip)

/* Each rule loads the call's number anew, since the one before may have looked at an argument. */
static size_t
write_rule(const struct rule *rule, struct sock_filter *out)
{
	size_t n = 0;

	out[n++] = LOAD(nr);
	if (rule->argument < 0) {
		out[n++] = UNLESS_EQUAL(rule->call, 1);
	} else {
		out[n++] = UNLESS_EQUAL(rule->call, 3);
		out[n] = LOAD(args[0]);
		out[n++].k += (uint32_t)rule->argument * (uint32_t)sizeof(uint64_t);
		out[n++] = UNLESS_EQUAL(rule->value, 1);
	}
	out[n++] = RETURN(SECCOMP_RET_ALLOW);
	return n;
}

/* Numbers of another ABI of this processor lie outside of ours (x32), or under another architecture. */
static size_t
write_filter(struct sock_filter *out)
{
	size_t n = 0;

	out[n++] = LOAD(arch);
	out[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_HERE, 1, 0);
	out[n++] = RETURN(SECCOMP_RET_KILL_PROCESS);
	for (size_t i = 0; i < KG_COUNT(rules); i++)
		n += write_rule(&rules[i], out + n);
	out[n++] = RETURN(SECCOMP_RET_KILL_PROCESS);
	return n;
}

static bool
set_limits(void)
{
	static const struct rlimit none;
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return false;
	if (files.rlim_max > FILES)
		files.rlim_max = FILES;
	files.rlim_cur = files.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &files) == 0 && setrlimit(RLIMIT_CORE, &none) == 0 &&
		   setrlimit(RLIMIT_NPROC, &none) == 0;
}

int
kg_confine(void)
{
	static struct sock_filter steps[STEPS_MAX];
	const struct sock_fprog program = { (unsigned short)write_filter(steps), steps };

	if (!set_limits() || prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		return errno;
	return 0;
}
