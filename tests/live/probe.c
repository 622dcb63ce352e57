/*
 * probe: what a hostile worker would try, one attempt per subcommand, harmless when it succeeds.
 *
 * It runs inside the sandbox (the attempt) and outside of it (the control), and says what happened in lines
 * of words: "label ok", "label EPERM", "label value". The Python tests judge; the probe only reports.
 *
 * The verdicts of the system-call filter are taken without making the calls: a child adds a filter of its own
 * that answers TRACE for the call in question. The kernel obeys the strictest of all filters, and ERRNO is
 * stricter than TRACE. So when the sandbox's filter refuses the call, the child sees that errno; when it
 * allows it, the parent, which traces the child, is told, and ends the child before the call happens. That
 * way numbers that need privileges (kexec_load, bpf) and dangerous ones (reboot, exit) can be asked about as
 * well, and EPERM of the filter is not mistaken for EPERM of the kernel.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#if defined(__x86_64__)
#define ARCH_HERE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH_HERE AUDIT_ARCH_AARCH64
#else
#error "no filter exists for this architecture"
#endif

#define X32_BIT 0x40000000

/* ---- names of errors ---- */

#define ERRORS(X)      \
	X(EPERM)           \
	X(ENOENT)          \
	X(ESRCH)           \
	X(EINTR)           \
	X(EIO)             \
	X(ENXIO)           \
	X(E2BIG)           \
	X(ENOEXEC)         \
	X(EBADF)           \
	X(ECHILD)          \
	X(EAGAIN)          \
	X(ENOMEM)          \
	X(EACCES)          \
	X(EFAULT)          \
	X(EBUSY)           \
	X(EEXIST)          \
	X(EXDEV)           \
	X(ENODEV)          \
	X(ENOTDIR)         \
	X(EISDIR)          \
	X(EINVAL)          \
	X(ENFILE)          \
	X(EMFILE)          \
	X(ENOTTY)          \
	X(ETXTBSY)         \
	X(EFBIG)           \
	X(ENOSPC)          \
	X(ESPIPE)          \
	X(EROFS)           \
	X(EMLINK)          \
	X(EPIPE)           \
	X(ENAMETOOLONG)    \
	X(ENOSYS)          \
	X(ELOOP)           \
	X(EPROTONOSUPPORT) \
	X(ESOCKTNOSUPPORT) \
	X(EOPNOTSUPP)      \
	X(EAFNOSUPPORT)    \
	X(EADDRINUSE)      \
	X(EADDRNOTAVAIL)   \
	X(ENETDOWN)        \
	X(ENETUNREACH)     \
	X(ECONNREFUSED)    \
	X(EHOSTUNREACH)    \
	X(ETIMEDOUT)       \
	X(EDQUOT)          \
	X(ENOKEY)          \
	X(EUSERS)          \
	X(EPROTOTYPE)      \
	X(ENOPROTOOPT)

static const char *
error_name(int number)
{
	static char other[32];
	switch (number) {
	case 0:
		return "ok";
#define X(name) \
	case name:  \
		return #name;
		ERRORS(X)
#undef X
	}
	snprintf(other, sizeof other, "E%d", number);
	return other;
}

/* Says how a call went: rc below 0 means errno tells why. Returns whether it went well. */
static bool
report(const char *label, long rc)
{
	printf("%s %s\n", label, error_name(rc < 0 ? errno : 0));
	fflush(stdout);
	return rc >= 0;
}

static void
nap_ms(long ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000 };
	nanosleep(&t, NULL);
}

static double
now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static long
number(const char *text)
{
	return strtol(text, NULL, 0);
}

/* ---- verdicts of the filter ---- */

enum { ALLOWED = -1, DIED = -2 };
enum abi { NATIVE, INT80 };

static int
trace_only(long nr, enum abi abi)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		/* int80: every call of the foreign architecture is traced, none of ours. */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH_HERE, abi == INT80 ? 3 : 0, abi == INT80 ? 2 : 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = COUNT(code), .filter = code };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static long
call_int80(long nr)
{
#if defined(__x86_64__)
	long rc = nr;
	__asm__ volatile("int $0x80" : "+a"(rc) : "b"(0), "c"(0), "d"(0) : "memory", "r8", "r9", "r10", "r11");
	return (int)rc;
#else
	(void)nr;
	return -ENOSYS;
#endif
}

/* Makes the call; -errno or the result. Nothing of libc touches errno in between. */
static long
call_native(long nr, const long a[6])
{
	long rc = syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	return rc < 0 ? -errno : rc;
}

/* In the child: asks to be traced, adds the filter, makes the call, notes the result, dies without a system
 * call. */
static void __attribute__((noreturn)) ask_child(volatile long *result, long nr, const long a[6], enum abi abi)
{
	if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0)
		_exit(1);
	raise(SIGSTOP);
	if (trace_only(nr, abi) != 0)
		_exit(1);
	*result = DIED;
	*result = abi == INT80 ? call_int80(nr) : call_native(nr, a);
	__builtin_trap();
}

/* In the parent: lets the child go on until the kernel says that the call would be made, or the child dies.
 */
static bool
was_allowed(pid_t child)
{
	int status;
	bool allowed = false;
	waitpid(child, &status, 0);
	ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL);
	for (long signal_number = 0;;) {
		ptrace(PTRACE_CONT, child, 0, signal_number);
		if (waitpid(child, &status, 0) < 0 || !WIFSTOPPED(status))
			return allowed;
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_SECCOMP << 8)) {
			allowed = true;
			kill(child, SIGKILL);
		}
		signal_number = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
	}
}

/* The errno that the filters outside this process answer, ALLOWED, or DIED. */
static int
verdict(long nr, const long a[6], enum abi abi)
{
	static volatile long *result;
	if (!result)
		result = mmap(NULL, sizeof *result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	*result = 1000;
	pid_t child = fork();
	if (child == 0)
		ask_child(result, nr, a, abi);
	if (was_allowed(child))
		return ALLOWED;
	if (*result == 1000) {
		fprintf(stderr, "probe: cannot ask about %ld\n", nr);
		exit(3);
	}
	return *result < 0 && *result != DIED ? (int)-*result : DIED;
}

static const char *
verdict_name(int v)
{
	return v == ALLOWED ? "allowed" : v == DIED ? "died" : error_name(v);
}

/* Numbers that old kernel headers do not have; the same on both architectures. */
#define NR_OPEN_TREE_ATTR 467
struct named_call {
	const char *name;
	long nr;
};
static const struct named_call listed[] = {
	{ "keyctl", SYS_keyctl },
	{ "add_key", SYS_add_key },
	{ "request_key", SYS_request_key },
	{ "io_uring_setup", 425 },
	{ "io_uring_enter", 426 },
	{ "io_uring_register", 427 },
	{ "bpf", SYS_bpf },
	{ "perf_event_open", SYS_perf_event_open },
	{ "userfaultfd", SYS_userfaultfd },
	{ "kexec_load", SYS_kexec_load },
#ifdef SYS_kexec_file_load
	{ "kexec_file_load", SYS_kexec_file_load },
#endif
	{ "init_module", SYS_init_module },
	{ "finit_module", SYS_finit_module },
	{ "delete_module", SYS_delete_module },
	{ "mount", SYS_mount },
	{ "umount2", SYS_umount2 },
	{ "pivot_root", SYS_pivot_root },
	{ "open_tree", 428 },
	{ "move_mount", 429 },
	{ "fsopen", 430 },
	{ "fsconfig", 431 },
	{ "fsmount", 432 },
	{ "fspick", 433 },
	{ "mount_setattr", 442 },
	{ "open_tree_attr", NR_OPEN_TREE_ATTR },
	{ "setns", SYS_setns },
};

/* Every call of the list: "name number verdict". */
static int
cmd_listed(int argc, char **argv)
{
	(void)argc, (void)argv;
	const long none[6] = { 0 };
	for (size_t i = 0; i < COUNT(listed); i++)
		printf(
			"%s %ld %s\n", listed[i].name, listed[i].nr, verdict_name(verdict(listed[i].nr, none, NATIVE)));
	return 0;
}

/* sweep FROM TO [ADD]: "number verdict" for every call that is not allowed. The arguments are -1 each. */
static int
cmd_sweep(int argc, char **argv)
{
	long from = number(argv[0]), to = number(argv[1]), add = argc > 2 ? number(argv[2]) : 0;
	const long all_bits[6] = { -1, -1, -1, -1, -1, -1 };
	const long zeros[6] = { 0 };
	for (long nr = from; nr <= to; nr++) {
		int with_bits = verdict(nr + add, all_bits, NATIVE), with_zeros = verdict(nr + add, zeros, NATIVE);
		if (with_bits != ALLOWED || with_zeros != ALLOWED)
			printf("%ld %s %s\n", nr, verdict_name(with_bits), verdict_name(with_zeros));
	}
	printf("end %ld\n", to);
	return 0;
}

/* The 32-bit interface entered from this 64-bit program: "number verdict" for each number asked. */
static int
cmd_int80(int argc, char **argv)
{
	const long none[6] = { 0 };
	for (int i = 0; i < argc; i++)
		printf("int80:%s %s\n", argv[i], verdict_name(verdict(number(argv[i]), none, INT80)));
	return 0;
}

/* ioctl requests with bits above the low 32 set as well: "request bits verdict". */
static int
cmd_ioctls(int argc, char **argv)
{
	(void)argc, (void)argv;
	static const struct {
		const char *name;
		unsigned long request;
	} asked[] = { { "TIOCSTI", 0x5412 }, { "TIOCLINUX", 0x541c }, { "TIOCGWINSZ", 0x5413 },
		{ "TIOCSWINSZ", 0x5414 }, { "TCGETS", 0x5401 }, { "FIONREAD", 0x541b }, { "TIOCSETD", 0x5423 },
		{ "TIOCNOTTY", 0x5422 }, { "TIOCSTI+1bit", 0x15412 }, { "low-16-equal", 0x00ff5412 } };
	static const uint64_t high[] = { 0, 1ull << 32, 1ull << 63, 0xffffffff00000000ull, 0x00010000ull << 32 };
	for (size_t i = 0; i < COUNT(asked); i++)
		for (size_t k = 0; k < COUNT(high); k++) {
			const long a[6] = { 0, (long)(asked[i].request | high[k]), 0 };
			printf(
				"%s %#" PRIx64 " %s\n", asked[i].name, high[k], verdict_name(verdict(SYS_ioctl, a, NATIVE)));
		}
	return 0;
}

/* socket() and socketpair() of every family, also with high bits set: "call family verdict". */
static int
cmd_families(int argc, char **argv)
{
	(void)argc, (void)argv;
	static const uint64_t high[] = { 0, 1ull << 32, 0xffffffff00000000ull };
	for (long family = 0; family < 64; family++)
		for (size_t k = 0; k < COUNT(high); k++) {
			const long a[6] = { (long)((uint64_t)family | high[k]), SOCK_STREAM, 0 };
			printf("socket %ld %s\n", family, verdict_name(verdict(SYS_socket, a, NATIVE)));
			printf("socketpair %ld %s\n", family, verdict_name(verdict(SYS_socketpair, a, NATIVE)));
		}
	return 0;
}

/* socket FAMILY TYPE: the real thing. */
static int
cmd_socket(int argc, char **argv)
{
	(void)argc;
	return report("socket", socket((int)number(argv[0]), (int)number(argv[1]), 0)) ? 0 : 1;
}

/* ---- the calls themselves ---- */

/* Pushes a byte into the controlling terminal, as the classic escape does; plain and with high bits. */
static int
cmd_tiocsti(int argc, char **argv)
{
	(void)argc, (void)argv;
	if (fork() != 0) {
		wait(NULL);
		return 0;
	}
	setsid();
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	if (!report("pty", master) || grantpt(master) != 0 || unlockpt(master) != 0)
		_exit(1);
	int slave = open(ptsname(master), O_RDWR);
	report("ctty", ioctl(slave, TIOCSCTTY, 0));
	char byte = 'x', linux_code = 3;
	report("tiocsti", syscall(SYS_ioctl, slave, 0x5412ul, &byte));
	report("tiocsti-high", syscall(SYS_ioctl, slave, 0x5412ul | 1ul << 32, &byte));
	report("tioclinux", syscall(SYS_ioctl, slave, 0x541cul, &linux_code));
	struct winsize size = { .ws_row = 1, .ws_col = 1 };
	report("tiocswinsz", ioctl(slave, TIOCSWINSZ, &size));
	_exit(0);
}

/* tiocsti-in FD TEXT: pushes into the terminal that was inherited. */
static int
cmd_push(int argc, char **argv)
{
	(void)argc;
	long rc = 0;
	for (const char *c = argv[1]; *c && rc == 0; c++)
		rc = syscall(SYS_ioctl, (int)number(argv[0]), 0x5412ul, c);
	return report("push", rc) ? 0 : 1;
}

static int
cmd_keys(int argc, char **argv)
{
	(void)argc, (void)argv;
	long session = syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0);
	report("session-keyring", session);
	report("user-keyring", syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 0));
	report("add_key", syscall(SYS_add_key, "user", "kraft-probe", "x", 1ul, KEY_SPEC_PROCESS_KEYRING));
	report("request_key", syscall(SYS_request_key, "user", "kraft-canary", NULL, 0));
	return 0;
}

/* session-keyring-id: its serial number, and how many keys it holds (the control of a new session keyring).
 */
static int
cmd_keyring_id(int argc, char **argv)
{
	(void)argc, (void)argv;
	printf("%ld\n", syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0));
	return 0;
}

/* keyed COMMAND...: puts a canary key in a session keyring of its own, then runs the command: a host with
 * keys. */
static int
cmd_keyed(int argc, char **argv)
{
	(void)argc;
	report("join", syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, "kraft-host-ring"));
	report("add", syscall(SYS_add_key, "user", "kraft-canary", "secret", 6ul, KEY_SPEC_SESSION_KEYRING));
	execvp(argv[0], argv);
	return 127;
}

static int
try_in_child(int (*attempt)(void))
{
	fflush(stdout);
	pid_t child = fork();
	if (child == 0)
		_exit(attempt());
	int status = 0;
	waitpid(child, &status, 0);
	return status;
}

static int
unshare_user(void)
{
	if (report("unshare-user", unshare(CLONE_NEWUSER)))
		report("mount-in-userns",
			unshare(CLONE_NEWNS) == 0 ? mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) : -1);
	return 0;
}

static int
unshare_mount(void)
{
	report("unshare-mount", unshare(CLONE_NEWNS));
	return 0;
}

static int
unshare_net(void)
{
	report("unshare-net", unshare(CLONE_NEWNET));
	return 0;
}

static int
unshare_pid(void)
{
	report("unshare-pid", unshare(CLONE_NEWPID));
	return 0;
}

static int
clone_user(void)
{
	long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
	if (child == 0)
		_exit(0);
	report("clone-user", child);
	return 0;
}

/* The kernel drops what is above 32 bits. */
static int
clone_user_high(void)
{
	long child = syscall(SYS_clone, 1ul << 32 | CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
	if (child == 0)
		_exit(0);
	report("clone-user-high", child);
	return 0;
}

static int
clone3_user(void)
{
	struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	long child = syscall(SYS_clone3, &args, sizeof args);
	if (child == 0)
		_exit(0);
	report("clone3-user", child);
	return 0;
}

static int
setns_init(void)
{
	int fd = open("/proc/1/ns/user", O_RDONLY);
	report("setns-user", fd < 0 ? -1 : setns(fd, CLONE_NEWUSER));
	return 0;
}

static int
cmd_namespaces(int argc, char **argv)
{
	(void)argc, (void)argv;
	int (*const attempts[])(void) = { unshare_user, clone_user, clone_user_high, clone3_user, unshare_mount,
		unshare_net, unshare_pid, setns_init };
	for (size_t i = 0; i < COUNT(attempts); i++)
		try_in_child(attempts[i]);
	return 0;
}

/* mounts TARGET: bind, tmpfs and remount at TARGET. */
static int
cmd_mounts(int argc, char **argv)
{
	(void)argc;
	report("mount-tmpfs", mount("none", argv[0], "tmpfs", 0, NULL));
	report("mount-bind", mount("/", argv[0], NULL, MS_BIND, NULL));
	report("remount-rw", mount("none", "/", NULL, MS_REMOUNT | MS_BIND, NULL));
	report("umount", umount2("/proc", MNT_DETACH));
	report("chroot", chroot(argv[0]));
	return 0;
}

/* ---- pid 1 ---- */

/* Attaches to a process, reads and writes its memory, looks at its descriptors. */
static int
cmd_attack(int argc, char **argv)
{
	(void)argc;
	pid_t pid = (pid_t)number(argv[0]);
	char path[64];
	report("seize", ptrace(PTRACE_SEIZE, pid, 0, 0));
	if (report("attach", ptrace(PTRACE_ATTACH, pid, 0, 0)))
		ptrace(PTRACE_DETACH, pid, 0, 0);
	char byte;
	struct iovec mine = { &byte, 1 }, theirs = { (void *)0x400000, 1 };
	report("vm_readv", process_vm_readv(pid, &mine, 1, &theirs, 1, 0));
	report("vm_writev", process_vm_writev(pid, &mine, 1, &theirs, 1, 0));
	snprintf(path, sizeof path, "/proc/%d/mem", pid);
	report("mem-r", open(path, O_RDONLY));
	report("mem-w", open(path, O_RDWR));
	snprintf(path, sizeof path, "/proc/%d/environ", pid);
	int environ_fd = open(path, O_RDONLY);
	report("environ", environ_fd < 0 ? -1 : read(environ_fd, &byte, 1));
	snprintf(path, sizeof path, "/proc/%d/fd", pid);
	report("fd-dir", open(path, O_RDONLY | O_DIRECTORY));
	snprintf(path, sizeof path, "/proc/%d/root", pid);
	report("root", open(path, O_RDONLY | O_DIRECTORY));
	long pidfd = syscall(SYS_pidfd_open, pid, 0);
	report("pidfd_open", pidfd);
	long taken = -1;
	for (int fd = 0; fd < 64 && taken < 0; fd++)
		taken = syscall(SYS_pidfd_getfd, (int)pidfd, fd, 0);
	report("pidfd_getfd", taken);
	return 0;
}

/* ---- descriptors ---- */

static void
list_fds(const char *process)
{
	char path[300], target[4096];
	snprintf(path, sizeof path, "/proc/%s/fd", process);
	DIR *dir = opendir(path);
	if (!dir) {
		printf("%s - %s\n", process, error_name(errno));
		return;
	}
	for (struct dirent *entry; (entry = readdir(dir));) {
		if (entry->d_name[0] == '.' || (strcmp(process, "self") == 0 && number(entry->d_name) == dirfd(dir)))
			continue;
		ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1);
		target[n > 0 ? n : 0] = 0;
		printf("%s %s %s\n", process, entry->d_name, target);
	}
	closedir(dir);
}

/* fds: those of this process; fds all: those of every process that can be seen. */
static int
cmd_fds(int argc, char **argv)
{
	(void)argv;
	if (argc == 0) {
		list_fds("self");
		return 0;
	}
	DIR *proc = opendir("/proc");
	for (struct dirent *entry; proc && (entry = readdir(proc));)
		if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9' && number(entry->d_name) != getpid())
			list_fds(entry->d_name);
	if (proc)
		closedir(proc);
	return 0;
}

/* leaky FILE DIR COMMAND...: runs the command with descriptors left open as a careless parent would. */
static int
cmd_leaky(int argc, char **argv)
{
	(void)argc;
	struct rlimit many;
	getrlimit(RLIMIT_NOFILE, &many);
	many.rlim_cur = many.rlim_max < 4096 ? many.rlim_max : 4096;
	setrlimit(RLIMIT_NOFILE, &many);
	int file = open(argv[0], O_RDWR), dir = open(argv[1], O_RDONLY | O_DIRECTORY), pair[2];
	if (file < 0 || dir < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
		return 3;
	dup2(file, 7);
	dup2(dir, 9);
	dup2(pair[0], 64);
	dup2(file, (int)many.rlim_cur - 1);
	execvp(argv[2], argv + 2);
	return 127;
}

/* closed LIST COMMAND...: runs the command with the named standard descriptors closed ("0", "012", "-"). */
static int
cmd_closed(int argc, char **argv)
{
	(void)argc;
	for (const char *c = argv[0]; *c; c++)
		if (*c >= '0' && *c <= '2')
			close(*c - '0');
	execvp(argv[1], argv + 1);
	return 127;
}

/* ---- files ---- */

static int
cmd_mknod(int argc, char **argv)
{
	mode_t type = argv[1][0] == 'c'   ? S_IFCHR
				  : argv[1][0] == 'b' ? S_IFBLK
				  : argv[1][0] == 's' ? S_IFSOCK
									  : S_IFIFO;
	dev_t device = argc > 3 ? makedev((unsigned)number(argv[2]), (unsigned)number(argv[3])) : 0;
	return report("mknod", mknod(argv[0], type | 0600, device)) ? 0 : 1;
}

static int
open_flags(const char *how)
{
	int flags = 0;
	for (const char *c = how; *c; c++)
		flags |= *c == 'w'   ? O_WRONLY
				 : *c == 'b' ? O_RDWR
				 : *c == 'c' ? O_CREAT
				 : *c == 't' ? O_TRUNC
				 : *c == 'n' ? O_NONBLOCK
				 : *c == 'd' ? O_DIRECTORY
				 : *c == 'p' ? O_PATH
							 : 0;
	return flags;
}

/* open HOW PATH...: one line for each path. HOW: r w b(oth) c(reate) t(runcate) n(onblock) d(irectory). */
static int
cmd_open(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		int fd = open(argv[i], open_flags(argv[0]), 0600);
		report(argv[i], fd);
		if (fd >= 0)
			close(fd);
	}
	return 0;
}

/* Ways to change what lies at PATH; each undoes nothing because none should succeed. */
static int
cmd_tamper(int argc, char **argv)
{
	(void)argc;
	const char *path = argv[0];
	char beside[4200], dir[4200];
	snprintf(beside, sizeof beside, "%s.moved", path);
	snprintf(dir, sizeof dir, "%s", path);
	char *slash = strrchr(dir, '/');
	if (slash)
		*slash = 0;
	report("open-write", open(path, O_WRONLY));
	report("open-trunc", open(path, O_RDWR | O_TRUNC));
	report("rename", rename(path, beside));
	report("unlink", unlink(path));
	report("chmod", chmod(path, 0777));
	report("utimes", utimes(path, NULL));
	report("link", link(path, beside));
	report("truncate", truncate(path, 0));
	report("create-beside", open(beside, O_CREAT | O_EXCL | O_WRONLY, 0600));
	report("rename-dir", rename(dir, "/tmp/kraft-moved"));
	int anonymous = open(dir, O_TMPFILE | O_WRONLY, 0600);
	report("otmpfile", anonymous);
	report("symlink-beside", symlink("/", beside));
	report("rmdir", rmdir(dir));
	report("setxattr", syscall(SYS_setxattr, path, "user.kraft", "x", 1ul, 0));
	return 0;
}

/* otmpfile DIR NAME: an anonymous file in DIR, given a name. */
static int
cmd_otmpfile(int argc, char **argv)
{
	(void)argc;
	int fd = open(argv[0], O_TMPFILE | O_WRONLY, 0600);
	if (!report("otmpfile", fd))
		return 1;
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return report("linkat", linkat(AT_FDCWD, path, AT_FDCWD, argv[1], AT_SYMLINK_FOLLOW)) ? 0 : 1;
}

/* fill FILE BYTES: writes until told enough or an error: "fill BYTES ERROR". */
static int
cmd_fill(int argc, char **argv)
{
	(void)argc;
	static char block[1 << 20];
	memset(block, 'k', sizeof block);
	int fd = open(argv[0], O_CREAT | O_WRONLY, 0600);
	if (fd < 0)
		return report("fill 0", -1), 1;
	long long want = strtoll(argv[1], NULL, 0), done = 0;
	ssize_t n = 0;
	while (done < want && (n = write(fd, block, sizeof block)) > 0)
		done += n;
	printf("fill %lld %s\n", done, error_name(n < 0 ? errno : 0));
	return 0;
}

/* files DIR N: creates empty files: "files COUNT ERROR". */
static int
cmd_files(int argc, char **argv)
{
	(void)argc;
	long want = number(argv[1]), done = 0;
	char name[64];
	int dir = open(argv[0], O_RDONLY | O_DIRECTORY), fd = dir;
	for (; fd >= 0 && done < want; done++) {
		/* A hundred directories keep each short. */
		snprintf(name, sizeof name, "d%ld", done % 100);
		if (done < 100)
			mkdirat(dir, name, 0700);
		snprintf(name, sizeof name, "d%ld/f%ld", done % 100, done);
		if ((fd = openat(dir, name, O_CREAT | O_WRONLY, 0600)) < 0)
			break;
		close(fd);
	}
	printf("files %ld %s\n", done, error_name(fd < 0 ? errno : 0));
	return 0;
}

/* statvfs PATH: "bytes inodes flags". */
static int
cmd_statvfs(int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		struct statvfs s;
		if (statvfs(argv[i], &s) != 0) {
			report(argv[i], -1);
			continue;
		}
		printf("%s %llu %llu%s%s%s\n", argv[i], (unsigned long long)s.f_blocks * s.f_frsize,
			(unsigned long long)s.f_files, s.f_flag & ST_RDONLY ? " ro" : " rw",
			s.f_flag & ST_NODEV ? " nodev" : "", s.f_flag & ST_NOSUID ? " nosuid" : "");
	}
	return 0;
}

/* unix PATH, unix @NAME: connects, as stream, datagram and seqpacket. */
static int
cmd_unix(int argc, char **argv)
{
	(void)argc;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t n = strlen(argv[0]);
	if (n >= sizeof address.sun_path)
		return 2;
	memcpy(address.sun_path, argv[0], n);
	if (argv[0][0] == '@')
		address.sun_path[0] = 0;
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET };
	static const char *const names[] = { "stream", "datagram", "seqpacket" };
	for (size_t i = 0; i < COUNT(types); i++) {
		int fd = socket(AF_UNIX, types[i] | SOCK_CLOEXEC, 0);
		report(names[i], connect(fd, (struct sockaddr *)&address,
							 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)));
		close(fd);
	}
	return 0;
}

/* ---- processes ---- */

/* memfd COMMAND...: runs a copy of this program from memory with the given arguments. */
static int
cmd_memfd(int argc, char **argv)
{
	(void)argc;
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = (int)syscall(SYS_memfd_create, "probe", 1u);
	char block[65536];
	for (ssize_t n; (n = read(from, block, sizeof block)) > 0;)
		if (write(to, block, (size_t)n) != n)
			return 3;
	char **words = argv - 1;
	words[0] = (char *)(uintptr_t) "probe";
	extern char **environ;
	fexecve(to, words, environ);
	return report("memfd", -1), 1;
}

/* signal TARGET SIGNAL: kill(2) as it is, 0 and -1 included. */
static int
cmd_signal(int argc, char **argv)
{
	(void)argc;
	return report("signal", kill((pid_t)number(argv[0]), (int)number(argv[1]))) ? 0 : 1;
}

static void
ignore_what_can_be(void)
{
	for (int s = 1; s < 32; s++)
		if (s != SIGCHLD)
			signal(s, SIG_IGN);
}

/* daemon SECONDS FILE MARK [keep]: leaves the session, ignores signals, beats into FILE. Without keep it
 * closes all. */
static int
cmd_daemon(int argc, char **argv)
{
	bool keep = argc > 3;
	if (fork() != 0)
		return 0;
	setsid();
	if (fork() != 0)
		_exit(0);
	ignore_what_can_be();
	for (int fd = 0; fd < 3 && !keep; fd++)
		close(fd);
	double end = now() + (double)number(argv[0]);
	while (now() < end) {
		int fd = open(argv[1], O_CREAT | O_WRONLY | O_APPEND, 0600);
		if (fd >= 0) {
			(void)!write(fd, ".", 1);
			close(fd);
		}
		nap_ms(20);
	}
	_exit(0);
}

/* stubborn SECONDS MARK: says ready, ignores every signal it can, stays. */
static int
cmd_stubborn(int argc, char **argv)
{
	(void)argc;
	ignore_what_can_be();
	printf("ready\n");
	fflush(stdout);
	for (double end = now() + (double)number(argv[0]); now() < end;)
		nap_ms(100);
	return 0;
}

static volatile sig_atomic_t signals_seen[65];

static void
count_signal(int s)
{
	signals_seen[s]++;
}

/* count SECONDS [setpgid]: says ready, then how often INT, TERM and HUP came ("count INT TERM HUP"). */
static int
cmd_count(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "setsid") == 0)
		setsid();
	else if (argc > 1)
		setpgid(0, 0);
	struct sigaction action = { .sa_handler = count_signal };
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	printf("ready %d %d %d\n", getpid(), getpgrp(), getsid(0));
	fflush(stdout);
	for (double end = now() + strtod(argv[0], NULL); now() < end;)
		nap_ms(20);
	printf("count %d %d %d\n", signals_seen[SIGINT], signals_seen[SIGTERM], signals_seen[SIGHUP]);
	return 0;
}

/* sleep SECONDS MARK: a process that is easy to find by its mark. */
static int
cmd_sleep(int argc, char **argv)
{
	(void)argc;
	printf("ready\n");
	fflush(stdout);
	nap_ms((long)(strtod(argv[0], NULL) * 1000));
	return 0;
}

static int
count_zombies(void)
{
	DIR *proc = opendir("/proc");
	int zombies = 0;
	for (struct dirent *entry; proc && (entry = readdir(proc));) {
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		char path[300], line[512];
		snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
		int fd = open(path, O_RDONLY);
		ssize_t n = fd < 0 ? 0 : read(fd, line, sizeof line - 1);
		if (fd >= 0)
			close(fd);
		line[n > 0 ? n : 0] = 0;
		const char *state = strrchr(line, ')');
		zombies += state && state[1] == ' ' && state[2] == 'Z';
	}
	if (proc)
		closedir(proc);
	return zombies;
}

/* Makes children whose parent ends first, until the time comes; adds them up in *made. */
static void
make_orphans(double end, long *made)
{
	while (now() < end) {
		pid_t child = fork();
		if (child == 0) {
			if (fork() == 0)
				_exit(0);
			_exit(0);
		}
		if (child > 0 && waitpid(child, NULL, 0) == child)
			__atomic_add_fetch(made, 1, __ATOMIC_RELAXED);
	}
}

/* orphans SECONDS WORKERS: a storm of orphans: "orphans MADE MOST_ZOMBIES LEFT". */
static int
cmd_orphans(int argc, char **argv)
{
	(void)argc;
	double end = now() + strtod(argv[0], NULL);
	long *made = mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int most = 0;
	for (long i = number(argv[1]); i > 0; i--)
		if (fork() == 0) {
			make_orphans(end, made);
			_exit(0);
		}
	while (now() < end) {
		nap_ms(50);
		int zombies = count_zombies();
		most = zombies > most ? zombies : most;
	}
	while (waitpid(-1, NULL, 0) > 0)
		;
	nap_ms(300);
	printf("orphans %ld %d %d\n", *made, most, count_zombies());
	return 0;
}

/* bomb MOST SECONDS MARK: every child forks, until MOST live; all stay. Says how many there are. */
static int
cmd_bomb(int argc, char **argv)
{
	(void)argc;
	long most = number(argv[0]);
	double end = now() + strtod(argv[1], NULL);
	long *count = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	*count = 1;
	pid_t first = getpid();
	while (now() < end) {
		if (__atomic_load_n(count, __ATOMIC_RELAXED) < most) {
			pid_t child = fork();
			if (child == 0) {
				__atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
				setsid();
			} else if (child < 0) {
				nap_ms(10);
			}
			continue;
		}
		if (getpid() == first) {
			printf("bomb %ld\n", *count);
			fflush(stdout);
			first = -1;
		}
		nap_ms(1000);
	}
	return 0;
}

/* memory BYTES: touches that much, in steps. */
static int
cmd_memory(int argc, char **argv)
{
	(void)argc;
	for (long long left = strtoll(argv[0], NULL, 0); left > 0; left -= 1 << 24) {
		char *block = mmap(NULL, 1 << 24, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (block == MAP_FAILED)
			return report("memory", -1), 1;
		memset(block, 1, 1 << 24);
	}
	return report("memory", 0), 0;
}

/* Crashes, after raising the core limit as far as it may. */
static int
cmd_crash(int argc, char **argv)
{
	(void)argc, (void)argv;
	struct rlimit core = { RLIM_INFINITY, RLIM_INFINITY };
	report("core-raise", setrlimit(RLIMIT_CORE, &core));
	getrlimit(RLIMIT_CORE, &core);
	core.rlim_cur = core.rlim_max;
	setrlimit(RLIMIT_CORE, &core);
	printf("core-limit %llu\n", (unsigned long long)core.rlim_cur);
	fflush(stdout);
	abort();
}

/* exit CODE; die SIGNAL. */
static int
cmd_exit(int argc, char **argv)
{
	(void)argc;
	return (int)number(argv[0]);
}

static int
cmd_die(int argc, char **argv)
{
	(void)argc;
	signal((int)number(argv[0]), SIG_DFL);
	raise((int)number(argv[0]));
	return 0;
}

/* argv: its arguments, each on a line, lengths first: "N TEXT" with bytes over 126 and below 33 as \xNN. */
static int
cmd_argv(int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		printf("%zu ", strlen(argv[i]));
		for (const unsigned char *c = (const unsigned char *)argv[i]; *c; c++)
			if (*c < 33 || *c > 126 || *c == '\\')
				printf("\\x%02x", *c);
			else
				putchar(*c);
		putchar('\n');
	}
	return 0;
}

/* write BYTES CHAR LINE: fast output, a newline every LINE bytes (0: never). */
static int
cmd_write(int argc, char **argv)
{
	(void)argc;
	long long left = strtoll(argv[0], NULL, 0);
	long line = number(argv[2]);
	static char block[65536];
	memset(block, argv[1][0], sizeof block);
	for (long i = line; line > 0 && i <= (long)sizeof block; i += line)
		block[i - 1] = '\n';
	while (left > 0) {
		ssize_t n = write(1, block, left < (long long)sizeof block ? (size_t)left : sizeof block);
		if (n < 0)
			return fprintf(stderr, "write %s\n", error_name(errno)), 1;
		left -= n;
	}
	return 0;
}

/* stop SIGNAL: stops itself, then says that it goes on. */
static int
cmd_stop(int argc, char **argv)
{
	(void)argc;
	printf("stopping\n");
	fflush(stdout);
	raise((int)number(argv[0]));
	printf("goes on\n");
	return 0;
}

/* ignoring LIST COMMAND...: runs it with the signals ignored and blocked, as an odd parent would. */
static int
cmd_ignoring(int argc, char **argv)
{
	(void)argc;
	sigset_t set;
	sigemptyset(&set);
	for (char *end, *at = argv[0]; *at; at = *end ? end + 1 : end) {
		int s = (int)strtol(at, &end, 10);
		signal(s, SIG_IGN);
		sigaddset(&set, s);
		if (end == at)
			break;
	}
	sigprocmask(SIG_BLOCK, &set, NULL);
	execvp(argv[1], argv + 1);
	return 127;
}

/* fork-free look at the flags of this process. */
static int
cmd_flags(int argc, char **argv)
{
	(void)argc, (void)argv;
	printf("no_new_privs %d\n", prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	printf("seccomp %d\n", prctl(PR_GET_SECCOMP, 0, 0, 0, 0));
	printf("dumpable %d\n", prctl(PR_GET_DUMPABLE, 0, 0, 0, 0));
	printf("ids %d %d %d %d\n", getuid(), geteuid(), getgid(), getegid());
	struct rlimit core;
	getrlimit(RLIMIT_CORE, &core);
	printf("core %llu %llu\n", (unsigned long long)core.rlim_cur, (unsigned long long)core.rlim_max);
	printf("setuid-0 %s\n", error_name(setuid(0) < 0 ? errno : 0));
	return 0;
}

struct command {
	const char *name;
	int least;
	int (*run)(int argc, char **argv);
};
static const struct command commands[] = {
	{ "listed", 0, cmd_listed },
	{ "sweep", 2, cmd_sweep },
	{ "int80", 1, cmd_int80 },
	{ "ioctls", 0, cmd_ioctls },
	{ "families", 0, cmd_families },
	{ "socket", 2, cmd_socket },
	{ "tiocsti", 0, cmd_tiocsti },
	{ "push", 2, cmd_push },
	{ "keys", 0, cmd_keys },
	{ "keyring-id", 0, cmd_keyring_id },
	{ "keyed", 1, cmd_keyed },
	{ "namespaces", 0, cmd_namespaces },
	{ "mounts", 1, cmd_mounts },
	{ "attack", 1, cmd_attack },
	{ "fds", 0, cmd_fds },
	{ "leaky", 3, cmd_leaky },
	{ "closed", 2, cmd_closed },
	{ "mknod", 2, cmd_mknod },
	{ "open", 2, cmd_open },
	{ "tamper", 1, cmd_tamper },
	{ "otmpfile", 2, cmd_otmpfile },
	{ "fill", 2, cmd_fill },
	{ "files", 2, cmd_files },
	{ "statvfs", 1, cmd_statvfs },
	{ "unix", 1, cmd_unix },
	{ "memfd", 1, cmd_memfd },
	{ "signal", 2, cmd_signal },
	{ "daemon", 3, cmd_daemon },
	{ "stubborn", 2, cmd_stubborn },
	{ "count", 1, cmd_count },
	{ "sleep", 2, cmd_sleep },
	{ "orphans", 2, cmd_orphans },
	{ "bomb", 3, cmd_bomb },
	{ "memory", 1, cmd_memory },
	{ "crash", 0, cmd_crash },
	{ "exit", 1, cmd_exit },
	{ "die", 1, cmd_die },
	{ "argv", 0, cmd_argv },
	{ "write", 3, cmd_write },
	{ "stop", 1, cmd_stop },
	{ "ignoring", 2, cmd_ignoring },
	{ "flags", 0, cmd_flags },
};

int
main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < COUNT(commands); i++)
		if (strcmp(argv[1], commands[i].name) == 0 && argc - 2 >= commands[i].least)
			return commands[i].run(argc - 2, argv + 2);
	fprintf(stderr, "usage: probe COMMAND ...; commands:");
	for (size_t i = 0; i < COUNT(commands); i++)
		fprintf(stderr, " %s", commands[i].name);
	fputc('\n', stderr);
	return 2;
}
