/*
 * What kraft-egress cannot do, tried from inside: every system call by number, and by name the calls that
 * would give power back, each with the control that it works without confinement.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "egress/confine.h"
#include "egress/limits.h"

#include <cmocka.h>

enum { LAST_CALL = 600, FAILED_TO_CONFINE = 77 };

/* The tests are run for both programs. */
static bool with_tls;

static enum kr_confine_step
confine(void)
{
	return with_tls ? kr_confine_with_tls() : kr_confine();
}

static int
for_tls(void **state)
{
	(void)state;
	with_tls = true;
	return 0;
}

static int
for_plain(void **state)
{
	(void)state;
	with_tls = false;
	return 0;
}

/* With all arguments zero. The filter's own list is not asked: this one is written down on its own. */
static const long allowed[] = {
	SYS_recvfrom,
	SYS_sendto,
	SYS_epoll_pwait,
	SYS_splice,
	SYS_epoll_ctl,
	SYS_accept4,
	SYS_close,
	SYS_recvmsg,
	SYS_sendmsg,
	SYS_shutdown,
	SYS_getsockname,
	SYS_pipe2,
	SYS_brk,
	SYS_munmap,
	SYS_mremap,
	SYS_clock_gettime,
	SYS_write,
	SYS_rt_sigreturn,
	SYS_exit_group,
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
#endif
#if KR_SANITIZED
	SYS_mmap,
	SYS_mprotect,
	SYS_madvise,
	SYS_futex,
	SYS_sched_yield,
	SYS_getpid,
	SYS_gettid,
	SYS_prctl,
	SYS_sigaltstack,
	SYS_rt_sigaction,
	SYS_rt_sigprocmask,
	SYS_openat,
	SYS_readlinkat,
#endif
};

/* uretprobe and uprobe of x86_64: the kernel puts these into a traced program itself, lets them pass every
 * filter, and refuses or ends whoever else calls them. */
static bool
is_exempt(long call)
{
#ifdef __x86_64__
	return call == 335 || call == 336;
#else
	(void)call;
	return false;
#endif
}

static bool
is_allowed(long call)
{
	for (size_t i = 0; i < KR_COUNT(allowed); i++)
		if (allowed[i] == call)
			return true;
	/* With all arguments zero a futex is waited for, and that is not among what OpenSSL needs. */
	return with_tls && (call == SYS_getrandom || call == SYS_getpid);
}

static void
confine_or_exit(void)
{
	if (kr_confine_descriptors(3) || confine())
		_exit(FAILED_TO_CONFINE);
}

/* The signal that ended a child, or minus its exit status. */
static int
outcome(pid_t child)
{
	int status;

	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

/* A child of this test: the framework's own handlers would let it go on as if it were the test. */
static pid_t
start_child(void)
{
	static const int handled[] = { SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGSYS };
	pid_t child = fork();

	for (size_t i = 0; child == 0 && i < KR_COUNT(handled); i++)
		(void)signal(handled[i], SIG_DFL);
	return child;
}

static int
try_call(long call)
{
	pid_t child = start_child();

	if (child == 0) {
		confine_or_exit();
		(void)syscall(call, 0, 0, 0, 0, 0, 0);
		_exit(0);
	}
	return outcome(child);
}

static void
every_other_call_ends_the_process(void **state)
{
	(void)state;
	for (long call = 0; call <= LAST_CALL; call++) {
		int ended = try_call(call);

		if (ended == -FAILED_TO_CONFINE)
			fail_msg("confinement failed");
		if (is_allowed(call) && ended == SIGSYS)
			fail_msg("call %ld is needed and ends the process", call);
		if (!is_allowed(call) && !is_exempt(call) && ended != SIGSYS)
			fail_msg("call %ld goes through: %d", call, ended);
	}
}

/* ---- by name ---- */

static int
get_file(void)
{
	return open("/etc/passwd", O_RDONLY | O_CLOEXEC);
}
static int
get_socket(void)
{
	return socket(AF_INET, SOCK_STREAM, 0);
}
static int
get_pair(void)
{
	int fds[2];

	return socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
}
static int
get_child(void)
{
	pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

	if (child == 0)
		_exit(0);
	return child;
}
static int
get_program(void)
{
	char *argv[] = { (char[]){ "true" }, NULL };

	return execve("/bin/true", argv, argv + 1);
}
static int
get_traced(void)
{
	return (int)ptrace(PTRACE_TRACEME, 0, 0, 0);
}
static int
get_signal(void)
{
	return kill(getppid(), 0);
}
static int
get_memory_of_another(void)
{
	char byte;
	struct iovec part = { &byte, 1 };

	return process_vm_readv((pid_t)syscall(SYS_gettid), &part, 1, &part, 1, 0) == 1 ? 0 : -1;
}
static int
get_executable_memory(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0;
}
static int
get_executable_later(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return page == MAP_FAILED ? -1 : mprotect(page, 4096, PROT_READ | PROT_EXEC);
}
static int
get_memory_file(void)
{
	return (int)syscall(SYS_memfd_create, "x", 0);
}

/* The sockets were made before, as those that kraft hands over are. */
static int made_before = -1, listener_before = -1;
static struct sockaddr_in address_before;

static int
get_connection(void)
{
	return connect(made_before, (struct sockaddr *)&address_before, sizeof(address_before));
}
/* connect(2) by another name: it needs no call of that name. */
static int
get_fast_open(void)
{
	return sendto(made_before, "x", 1, MSG_FASTOPEN, (struct sockaddr *)&address_before,
			   sizeof(address_before)) < 0
			   ? -1
			   : 0;
}
static int
get_fast_open_message(void)
{
	struct iovec part = { (char[]){ "x" }, 1 };
	struct msghdr message = {
		.msg_name = &address_before, .msg_namelen = sizeof(address_before), .msg_iov = &part, .msg_iovlen = 1
	};

	return sendmsg(made_before, &message, MSG_FASTOPEN) < 0 ? -1 : 0;
}
static int
get_fast_open_option(void)
{
	return setsockopt(made_before, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, &(int){ 1 }, sizeof(int));
}
static int
get_option(void)
{
	return setsockopt(made_before, SOL_SOCKET, SO_KEEPALIVE, &(int){ 1 }, sizeof(int));
}
static int
get_bound(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET };

	return bind(made_before, (struct sockaddr *)&any, sizeof(any));
}
static int
get_owner(void)
{
	return fcntl(made_before, F_SETOWN, getppid());
}
static int
get_request(void)
{
	int n;

	return ioctl(made_before, FIONREAD, &n);
}

static const struct {
	const char *name;
	int (*take)(void);
	bool sanitizers_need;
} powers[] = {
	{ "open a file", get_file, true },
	{ "make a socket", get_socket, false },
	{ "make a pair of sockets", get_pair, false },
	{ "start a process", get_child, false },
	{ "run a program", get_program, false },
	{ "be traced", get_traced, false },
	{ "signal", get_signal, false },
	{ "read another's memory", get_memory_of_another, false },
	{ "map executable memory", get_executable_memory, false },
	{ "make memory executable", get_executable_later, false },
	{ "make a file in memory", get_memory_file, false },
	{ "connect", get_connection, false },
	{ "connect by sendto", get_fast_open, false },
	{ "connect by sendmsg", get_fast_open_message, false },
	{ "connect by an option", get_fast_open_option, false },
	{ "set another option", get_option, false },
	{ "bind", get_bound, false },
	{ "own a socket's signals", get_owner, false },
	{ "ioctl", get_request, false },
};

static int
try_power(int (*take)(void), bool confined)
{
	pid_t child = start_child();

	if (child == 0) {
		/* Not kr_confine_descriptors: the sockets stay. */
		if (confined && confine())
			_exit(FAILED_TO_CONFINE);
		_exit(take() < 0 ? 1 : 0);
	}
	return outcome(child);
}

static void
make_sockets(void)
{
	socklen_t n = sizeof(address_before);

	made_before = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	listener_before = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	address_before = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	assert_int_equal(bind(listener_before, (struct sockaddr *)&address_before, n), 0);
	assert_int_equal(listen(listener_before, 8), 0);
	assert_int_equal(getsockname(listener_before, (struct sockaddr *)&address_before, &n), 0);
}

static void
no_power_is_left(void **state)
{
	(void)state;
	for (size_t i = 0; i < KR_COUNT(powers); i++) {
		int free_hand, confined;

		make_sockets();
		free_hand = try_power(powers[i].take, false);
		(void)close(made_before);
		(void)close(listener_before);
		make_sockets();
		confined = try_power(powers[i].take, true);
		(void)close(made_before);
		(void)close(listener_before);
		if (free_hand != 0)
			fail_msg("control: '%s' does not work without confinement either: %d", powers[i].name, free_hand);
		if (KR_SANITIZED && powers[i].sanitizers_need ? confined == 0 : confined != SIGSYS)
			fail_msg("'%s' goes through: %d", powers[i].name, confined);
	}
}

/* What the loop does is still there. */
static void
what_is_needed_works(void **state)
{
	pid_t child;
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	child = start_child();
	if (child == 0) {
		char byte, *volatile large;
		bool good = confine() == KR_CONFINE_DONE;

		good = good && send(pair[0], "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1 &&
			   recv(pair[1], &byte, 1, MSG_DONTWAIT) == 1;
		for (int i = 0; i < 64; i++) {
			large = malloc(1 << 20);
			good = good && large;
			if (large)
				memset(large, 1, 1 << 20);
			free(large);
		}
		_exit(good ? 0 : 1);
	}
	assert_int_equal(outcome(child), 0);
	(void)close(pair[0]);
	(void)close(pair[1]);
}

/* Seen from outside, because inside there is no call left to look. */
static void
limits_are_set(void **state)
{
	static const __rlimit_resource_t whats[] = { RLIMIT_CORE, RLIMIT_FSIZE, RLIMIT_NPROC, RLIMIT_NOFILE,
		RLIMIT_DATA };
	static const rlim_t most[] = { 0, 0, 0, KR_EGRESS_FILES,
		KR_SANITIZED ? RLIM_INFINITY : KR_EGRESS_DATA_BYTES };
	int go[2], ready[2];
	char byte = 0;
	pid_t child;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, go), 0);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	child = start_child();
	if (child == 0) {
		bool good = confine() == KR_CONFINE_DONE && write(ready[1], "x", 1) == 1;

		(void)close(go[1]);
		_exit(good && recv(go[0], &byte, 1, 0) == 0 ? 0 : 1); /* until the parent lets go */
	}
	(void)close(go[0]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	for (size_t i = 0; i < KR_COUNT(whats); i++) {
		struct rlimit limit;

		assert_int_equal(prlimit(child, whats[i], NULL, &limit), 0);
		assert_true(limit.rlim_cur <= most[i] && limit.rlim_max <= most[i]);
	}
	(void)close(go[1]);
	assert_int_equal(outcome(child), 0);
	(void)close(ready[0]);
	(void)close(ready[1]);
}

static void
landlock_refuses_files_and_connections(void **state)
{
	pid_t child;
	int ended;

	(void)state;
	make_sockets();
	child = start_child();
	if (child == 0) {
		bool raised = false;

		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || get_file() < 0 || !kr_confine_landlock(&raised))
			_exit(1);
		if (!raised)
			_exit(2);
		_exit(get_file() < 0 && errno == EACCES ? 0 : 3);
	}
	ended = outcome(child);
	(void)close(made_before);
	(void)close(listener_before);
	if (ended == -2) {
		print_message("# skipped: this kernel has no Landlock\n");
		skip();
	}
	assert_int_equal(ended, 0);
}

static void
what_openssl_needs_works_and_no_more(void **state)
{
	static const int operations[] = { FUTEX_WAKE_PRIVATE, FUTEX_WAIT_PRIVATE, FUTEX_WAKE, FUTEX_REQUEUE_PRIVATE };
	uint32_t word = 1, bytes;

	(void)state;
	for (size_t i = 0; i < KR_COUNT(operations); i++) {
		pid_t child = start_child();
		int ended;

		if (child == 0) {
			bool good = confine() == KR_CONFINE_DONE && syscall(SYS_getrandom, &bytes, sizeof(bytes), 0) == sizeof(bytes) && syscall(SYS_getpid) > 0;

			_exit(good && syscall(SYS_futex, &word, operations[i], 0, NULL, NULL, 0) != 1 ? 0 : 1);
		}
		ended = outcome(child);
		if (i == 0)
			assert_int_equal(ended, 0);
		else if (!KR_SANITIZED)
			assert_int_equal(ended, SIGSYS);
	}
}

#define BOTH(test) cmocka_unit_test_setup(test, for_plain), { "with TLS: " #test, test, for_tls, NULL, NULL }

int
main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(every_other_call_ends_the_process),
		BOTH(no_power_is_left),
		BOTH(what_is_needed_works),
		BOTH(limits_are_set),
		cmocka_unit_test(landlock_refuses_files_and_connections),
		cmocka_unit_test_setup(what_openssl_needs_works_and_no_more, for_tls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
