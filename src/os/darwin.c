#include "os/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <libproc.h>
#include <pthread.h>
#include <sys/event.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/proc_info.h>
#include <sys/sysctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/portable.h"
#include "os/apple.h"
#include "os/sockets.h"

const char *
kr_self_path(struct kr_arena *arena)
{
	char path[PROC_PIDPATHINFO_MAXSIZE], real[KR_PATH_MAX];
	const int n = proc_pidpath(getpid(), path, sizeof(path));

	return n > 0 && realpath(path, real) ? kr_path_clean(arena, real) : NULL;
}

/* ---- files ---- */

/* In the directory that the system makes for each user, closed to others; the name is gone before a byte is written. */
int
kr_memory_file(const char *name, const void *bytes, size_t n, struct kr_error *err)
{
	char directory[KR_PATH_MAX];
	const size_t size = confstr(_CS_DARWIN_USER_TEMP_DIR, directory, sizeof(directory));
	kr_auto_fd int fd = size && size <= sizeof(directory) ? kr_nameless_file(directory) : -1;

	if (fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a file for '%s' in the user's temporary directory", name);
	if (kr_write_all(fd, bytes, n, err) < 0)
		return -1;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot rewind a file in the user's temporary directory");
	return kr_steal_fd(fd);
}

/* /dev/fd makes another descriptor of the same description, so only what has a name can be opened anew: a terminal. */
int
kr_reopen(int fd, int flags)
{
	char name[KR_PATH_MAX];
	kr_auto_fd int again = -1;
	struct stat a, b;

	if (ttyname_r(fd, name, sizeof(name)) != 0) {
		errno = ENOTSUP;
		return -1;
	}
	again = open(name, flags | O_CLOEXEC | O_NOCTTY);
	if (again < 0 || fstat(fd, &a) < 0 || fstat(again, &b) < 0)
		return -1;
	if (!S_ISCHR(b.st_mode) || a.st_rdev != b.st_rdev) {
		errno = ENOTSUP;
		return -1;
	}
	return kr_steal_fd(again);
}

/* Only a master can say what its other side is called. */
bool
kr_is_terminal_master(int fd)
{
	char name[128];

	return ioctl(fd, TIOCPTYGNAME, name) == 0;
}

const char *
kr_file_system_type(struct kr_arena *arena, int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 ? kr_arena_dup_n(arena, fs.f_fstypename, strnlen(fs.f_fstypename, sizeof(fs.f_fstypename))) : "";
}

int
kr_try_capped_mount(void)
{
	return ENOTSUP;
}

int
kr_try_keyring(void)
{
	return ENOTSUP;
}

/* ---- kqueues ---- */

static int
change(int queue, uintptr_t ident, int filter, unsigned flags, unsigned fflags)
{
	struct kevent one;

	EV_SET(&one, ident, (int16_t)filter, (uint16_t)flags, fflags, 0, NULL);
	return kevent(queue, &one, 1, NULL, 0, NULL);
}

/* No child inherits one, and a program that is executed does not either. */
static int
new_queue(void)
{
	kr_auto_fd int fd = kqueue();

	return fd >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 ? kr_steal_fd(fd) : -1;
}

/*
 * A kqueue tells of signals that are sent while it watches, also of blocked ones, and leaves them pending: who asks for the next
 * one takes it from there. For one that was pending before, there is an event of ours.
 */
int
kr_signals_open(const sigset_t *set, struct kr_error *err)
{
	kr_auto_fd int fd = new_queue();
	sigset_t pending;

	for (int i = 1; fd >= 0 && i < NSIG; i++)
		if (sigismember(set, i) == 1 && change(fd, (uintptr_t)i, EVFILT_SIGNAL, EV_ADD | EV_CLEAR, 0) < 0)
			kr_close_p(&fd);
	sigemptyset(&pending);
	if (fd >= 0 && sigpending(&pending) < 0)
		kr_close_p(&fd);
	for (int i = 1; fd >= 0 && i < NSIG; i++)
		if (sigismember(set, i) == 1 && sigismember(&pending, i) == 1 &&
			(change(fd, (uintptr_t)i, EVFILT_USER, EV_ADD | EV_ONESHOT, 0) < 0 ||
				change(fd, (uintptr_t)i, EVFILT_USER, 0, NOTE_TRIGGER) < 0))
			kr_close_p(&fd);
	if (fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot watch signals");
	return kr_steal_fd(fd);
}

int
kr_signals_next(int fd)
{
	const struct timespec now = { 0, 0 };
	struct kevent event;

	while (kevent(fd, NULL, 0, &event, 1, &now) == 1) {
		sigset_t pending, one;
		int taken = 0;

		sigemptyset(&one);
		sigaddset(&one, (int)event.ident);
		/* Told twice, or ignored: then it is not there, and waiting for it would be for ever. */
		if (sigpending(&pending) == 0 && sigismember(&pending, (int)event.ident) == 1 && sigwait(&one, &taken) == 0)
			return taken;
	}
	return 0;
}

int
kr_process_watch(pid_t pid, struct kr_error *err)
{
	kr_auto_fd int fd = new_queue();

	if (fd < 0 || change(fd, (uintptr_t)pid, EVFILT_PROC, EV_ADD, NOTE_EXIT) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot watch process %ld", (long)pid);
	return kr_steal_fd(fd);
}

/* ---- processes ---- */

uint64_t
kr_process_start(pid_t pid)
{
	struct proc_bsdinfo info;

	if (proc_pidinfo(pid, PROC_PIDTBSDINFO, 0, &info, sizeof(info)) != sizeof(info))
		return 0;
	return info.pbi_start_tvsec * 1000000 + info.pbi_start_tvusec;
}

/* "": the system does not say. */
static const char *
ask_words(struct kr_arena *arena, const char *name)
{
	char words[64];
	size_t n = sizeof(words);

	return sysctlbyname(name, words, &n, NULL, 0) == 0 ? kr_arena_dup_n(arena, words, strnlen(words, n)) : "";
}

const char *
kr_system_words(struct kr_arena *arena)
{
	const char *version = ask_words(arena, "kern.osproductversion"), *build = ask_words(arena, "kern.osversion");

	return *version ? kr_arena_printf(arena, "macOS %s (%s)", version, build) : "";
}

const char *
kr_boot_id(struct kr_arena *arena)
{
	char id[64];
	size_t n = sizeof(id);

	return sysctlbyname("kern.bootsessionuuid", id, &n, NULL, 0) == 0 ? kr_arena_dup_n(arena, id, strnlen(id, n)) : "";
}

struct watched {
	pid_t parent;
	int signal, queue;
};

static void *
wait_for_parent(void *context)
{
	const struct watched *watched = context;
	struct kevent event;

	while (kevent(watched->queue, NULL, 0, &event, 1, NULL) < 0 && errno == EINTR)
		;
	(void)kill(getpid(), watched->signal);
	if (watched->signal == SIGKILL)
		_exit(128 + SIGKILL); /* a sandbox may not let us signal even ourselves */
	return NULL;
}

/* No signal of the system's: a thread waits. Without one this process would outlive its parent, so it ends. */
void
kr_end_with_parent(pid_t parent, int signal)
{
	static struct watched watched; /* for as long as the process */
	sigset_t all, before;
	pthread_t thread;

	watched = (struct watched){ parent, signal, new_queue() };
	if (watched.queue < 0 || change(watched.queue, (uintptr_t)parent, EVFILT_PROC, EV_ADD, NOTE_EXIT) < 0 || getppid() != parent)
		_exit(1); /* it may have died before */
	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, NULL, wait_for_parent, &watched) != 0)
		_exit(1);
	(void)pthread_detach(thread);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- starting ---- */

static void
forget_signals(void)
{
	sigset_t none;

	for (int i = 1; i < NSIG; i++)
		(void)signal(i, SIG_DFL); /* some cannot be */
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

__attribute__((noreturn)) static void
end_as(int status)
{
	if (WIFSIGNALED(status)) {
		(void)kill(getpid(), WTERMSIG(status)); /* every one is at its default */
		_exit(128 + WTERMSIG(status));
	}
	_exit(WEXITSTATUS(status));
}

/* Holds nothing: what the program holds ends with the program. */
__attribute__((noreturn)) static void
watch_over(pid_t program, pid_t parent)
{
	struct kevent event = { .ident = 0 };
	int queue, status = 0;

	if (kr_close_from(0) < 0 || (queue = new_queue()) < 0 || change(queue, (uintptr_t)program, EVFILT_PROC, EV_ADD, NOTE_EXIT) < 0 ||
		change(queue, (uintptr_t)parent, EVFILT_PROC, EV_ADD, NOTE_EXIT) < 0 || getppid() != parent)
		event.ident = (uintptr_t)parent;
	while (!event.ident && kevent(queue, NULL, 0, &event, 1, NULL) < 0 && errno == EINTR)
		;
	if (event.ident != (uintptr_t)program)
		(void)kill(program, SIGKILL);
	while (waitpid(program, &status, 0) < 0 && errno == EINTR)
		;
	end_as(status);
}

__attribute__((noreturn)) static void
be_child(const struct kr_start *start, pid_t parent, int report)
{
	int failed = 0;

	forget_signals();
	(void)setsid();
	if (start->ends_with_us) {
		pid_t program = fork();

		if (program > 0)
			watch_over(program, parent);
		failed = program < 0 ? errno : 0;
	}
	if (!failed)
		failed = start->become(start->context);
	(void)!write(report, &failed, sizeof(failed)); /* who reads it takes its end for a start */
	_exit(127);
}

/* Every signal stays blocked until the child is another program: no handler of ours runs there. */
int
kr_start_program(const struct kr_start *start, pid_t *pid)
{
	const pid_t parent = getpid();
	kr_auto_fd int told = -1, report = -1;
	struct kr_error err = { 0 };
	sigset_t all, before;
	int failed = 0;
	pid_t made;

	if (kr_pipe(&told, &report, &err) < 0)
		return err.sys_errno;
	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	made = fork();
	if (made == 0)
		be_child(start, parent, report);
	failed = made < 0 ? errno : 0;
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	kr_close_p(&report);
	while (made > 0 && read(told, &failed, sizeof(failed)) < 0 && errno == EINTR)
		;
	if (failed && made > 0)
		(void)waitpid(made, NULL, 0);
	else if (made > 0)
		*pid = made;
	return failed;
}

/* ---- whose connection it is ---- */

/* The system tells an ordinary user of the user's own processes only. */
typedef bool visit_fn(void *context, pid_t pid, const struct kr_tcp *tcp);

static struct kr_end
end_at(const struct in_sockinfo *in, bool is_local)
{
	const int port = is_local ? in->insi_lport : in->insi_fport;
	struct kr_end end = { .port = ntohs((uint16_t)port) };

	if (in->insi_vflag & INI_IPV4)
		return kr_end_v4(is_local ? in->insi_laddr.ina_46.i46a_addr4 : in->insi_faddr.ina_46.i46a_addr4, end.port);
	end.address = is_local ? in->insi_laddr.ina_6 : in->insi_faddr.ina_6;
	return end;
}

static bool
visit_process(pid_t pid, visit_fn *visit, void *context)
{
	enum { MORE = 16 };
	const int size = proc_pidinfo(pid, PROC_PIDLISTFDS, 0, NULL, 0) + MORE * (int)sizeof(struct proc_fdinfo);
	kr_auto_free struct proc_fdinfo *list = kr_xcalloc(1, (size_t)size);
	const int got = proc_pidinfo(pid, PROC_PIDLISTFDS, 0, list, size);

	for (size_t i = 0; got > 0 && i < (size_t)got / sizeof(*list); i++) {
		struct socket_fdinfo info;
		struct kr_tcp tcp;

		if (list[i].proc_fdtype != PROX_FDTYPE_SOCKET ||
			proc_pidfdinfo(pid, list[i].proc_fd, PROC_PIDFDSOCKETINFO, &info, sizeof(info)) != sizeof(info) ||
			info.psi.soi_kind != SOCKINFO_TCP)
			continue;
		tcp.local = end_at(&info.psi.soi_proto.pri_tcp.tcpsi_ini, true);
		tcp.remote = end_at(&info.psi.soi_proto.pri_tcp.tcpsi_ini, false);
		if (!visit(context, pid, &tcp))
			return false;
	}
	return true;
}

/* -1: the system does not say. */
static int
visit_sockets(visit_fn *visit, void *context)
{
	enum { MORE = 64 };
	const int size = proc_listpids(PROC_UID_ONLY, geteuid(), NULL, 0) + MORE * (int)sizeof(pid_t);
	kr_auto_free pid_t *pids = kr_xcalloc(1, (size_t)size);
	const int got = proc_listpids(PROC_UID_ONLY, geteuid(), pids, size);

	if (got <= 0)
		return -1;
	for (size_t i = 0; i < (size_t)got / sizeof(pids[0]); i++)
		if (pids[i] > 0 && !visit_process(pids[i], visit, context))
			break;
	return 0;
}

struct other_side {
	struct kr_tcp ours;
	pid_t *holders;
	int most, n;
};

static bool
note_holder(void *context, pid_t pid, const struct kr_tcp *tcp)
{
	struct other_side *other = context;

	if (!kr_tcp_is_other_side(tcp, &other->ours) || (other->n && other->holders[other->n - 1] == pid))
		return true;
	if (other->n == other->most) {
		other->n = -1;
		return false;
	}
	other->holders[other->n++] = pid;
	return true;
}

int
kr_socket_holders(uint16_t local_port, uint16_t remote_port, pid_t *out, int most)
{
	const struct in_addr loopback = { htonl(INADDR_LOOPBACK) };
	struct other_side other = { .holders = out, .most = most };

	other.ours.local = kr_end_v4(loopback, remote_port);
	other.ours.remote = kr_end_v4(loopback, local_port);
	return visit_sockets(note_holder, &other) < 0 ? -1 : other.n;
}

int
kr_peer_uid(int fd, uid_t *out, struct kr_error *err)
{
	struct sockaddr_storage ours = { 0 }, theirs = { 0 };
	socklen_t ours_n = sizeof(ours), theirs_n = sizeof(theirs);
	pid_t holder;
	struct other_side other = { .holders = &holder, .most = 1 };

	if (getsockname(fd, (struct sockaddr *)&ours, &ours_n) < 0 || getpeername(fd, (struct sockaddr *)&theirs, &theirs_n) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot tell who is connected");
	if (!kr_end_of(&ours, &other.ours.local) || !kr_end_of(&theirs, &other.ours.remote))
		return kr_fail(err, KR_E_UNSUPPORTED, "this is no TCP connection");
	if (visit_sockets(note_holder, &other) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot tell who is connected");
	if (other.n == 0) /* several processes of one user may hold it, and then n is -1 */
		return kr_fail(err, KR_E_NOT_FOUND, "the other end of the connection is no process of yours, or closing");
	*out = geteuid();
	return 0;
}

/* ---- what has to be true ---- */

/* A translated program may ask; an Intel Mac has no such name. */
static bool
is_translated(void)
{
	int32_t answer = 0;
	size_t n = sizeof(answer);

	return sysctlbyname("sysctl.proc_translated", &answer, &n, NULL, 0) == 0 && answer == 1;
}

/* The directory that xcode-select has chosen, else that of the Command Line Tools; "": no git is in either. */
static const char *
find_tools(struct kr_arena *arena)
{
	static const char *const places[] = { "/var/db/xcode_select_link", "/Library/Developer/CommandLineTools" };
	char real[KR_PATH_MAX];

	for (size_t i = 0; i < KR_COUNT(places); i++)
		if (realpath(places[i], real) && access(kr_path_join(arena, real, "usr/bin/git"), X_OK) == 0)
			return kr_arena_dup(arena, real);
	return "";
}

void
kr_macos_look(struct kr_arena *arena, const char *sandbox_exec, struct kr_macos_facts *out)
{
	const char *developer = find_tools(arena);
	struct utsname name;

	*out = (struct kr_macos_facts){
		.machine = uname(&name) == 0 ? kr_arena_dup(arena, name.machine) : "",
		.sandbox_exec = sandbox_exec,
		.has_sandbox_exec = access(sandbox_exec, X_OK) == 0,
		.is_root = geteuid() == 0,
		.is_sandboxed = sandbox_check(getpid(), NULL, 0) == 1,
		.is_translated = is_translated(),
		.has_tools = *developer != '\0',
		.developer = developer,
	};
}
