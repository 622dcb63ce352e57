#include "os/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/keyctl.h>

#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"

const char *
kr_self_path(struct kr_arena *arena)
{
	char path[KR_PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path));

	if (n <= 0 || (size_t)n >= sizeof(path) || path[0] != '/')
		return NULL;
	return kr_path_clean(arena, kr_arena_dup_n(arena, path, (size_t)n));
}

void
kr_end_with_parent(pid_t parent, int signal)
{
	(void)prctl(PR_SET_PDEATHSIG, signal); /* it has no way to fail */
	if (getppid() != parent)
		_exit(1); /* it died before the line above */
}

/* ---- vfork ---- */

struct starting {
	const struct kr_start *start;
	pid_t parent;
	volatile int failed; /* written by the child: after vfork memory is shared */
};

__attribute__((noreturn, noinline)) static void
be_child(struct starting *s)
{
	struct sigaction plain = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		(void)sigaction(sig, &plain, NULL); /* SIGKILL and SIGSTOP say no */
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)setsid();
	if (s->start->ends_with_us)
		kr_end_with_parent(s->parent, SIGKILL);
	s->failed = s->start->become(s->start->context);
	_exit(127);
}

/* Every signal stays blocked until the child is another program: a handler of ours must not run on shared
 * memory. */
int
kr_start_program(const struct kr_start *start, pid_t *pid)
{
	struct starting s = { .start = start, .parent = getpid() };
	sigset_t all, before;
	pid_t made;

	sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	made = vfork();
	if (made == 0)
		be_child(&s);
	if (made < 0)
		s.failed = errno;
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	if (made > 0 && s.failed)
		(void)waitpid(made, NULL, 0);
	else if (made > 0)
		*pid = made;
	return s.failed;
}

int
kr_memory_file(const char *name, const void *bytes, size_t n, struct kr_error *err)
{
	kr_auto_fd int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a memory file");
	if (kr_write_all(fd, bytes, n, err) < 0)
		return -1;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot rewind a memory file");
	return kr_steal_fd(fd);
}

int
kr_reopen(int fd, int flags)
{
	char name[48];

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return open(name, flags | O_CLOEXEC | O_NOCTTY);
}

bool
kr_is_terminal_master(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(5, 2);
}

int
kr_signals_open(const sigset_t *set, struct kr_error *err)
{
	int fd = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);

	if (fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot watch signals");
	return fd;
}

int
kr_signals_next(int fd)
{
	struct signalfd_siginfo info;

	return read(fd, &info, sizeof(info)) == sizeof(info) ? (int)info.ssi_signo : 0;
}

int
kr_process_watch(pid_t pid, struct kr_error *err)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0); /* close-on-exec by itself */

	if (fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot watch process %ld", (long)pid);
	return fd;
}

uint64_t
kr_process_start(pid_t pid)
{
	char name[64];
	kr_auto_buf struct kr_buf text = KR_BUF(4096);
	const char *p;

	snprintf(name, sizeof(name), "/proc/%ld/stat", (long)pid);
	if (kr_file_read_at(AT_FDCWD, name, &text, NULL) < 0 || !text.data)
		return 0;
	/* Field 22; the name in field 2 may hold blanks and brackets, so count from its end. */
	p = strrchr(text.data, ')');
	for (int field = 2; p && field < 22; field++) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
	}
	return p ? strtoull(p, NULL, 10) : 0;
}

const char *
kr_boot_id(struct kr_arena *arena)
{
	kr_auto_buf struct kr_buf text = KR_BUF(64);

	if (kr_file_read_at(AT_FDCWD, "/proc/sys/kernel/random/boot_id", &text, NULL) < 0 || !text.data)
		return "";
	return kr_arena_dup_n(arena, text.data, strcspn(text.data, "\n"));
}

const char *
kr_system_words(struct kr_arena *arena)
{
	static const char key[] = "PRETTY_NAME=";
	kr_auto_buf struct kr_buf text = KR_BUF(8192);
	const char *line = kr_file_read_at(AT_FDCWD, "/etc/os-release", &text, NULL) == 0 ? text.data : NULL, *value;

	while (line && strncmp(line, key, strlen(key)) != 0)
		line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL;
	if (!line)
		return "";
	value = line + strlen(key);
	value += *value == '"';
	return kr_arena_dup_n(arena, value, strcspn(value, "\"\n"));
}

/* By the mount table and not by statfs, whose number is the same for every file system in FUSE. */
const char *
kr_file_system_type(struct kr_arena *arena, int fd)
{
	FILE *table = fopen("/proc/self/mountinfo", "re");
	const char *type = "";
	struct statx st;
	char *line = NULL;
	size_t size = 0;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) < 0 || !(st.stx_mask & STATX_MNT_ID))
		st.stx_mnt_id = 0;
	while (table && st.stx_mnt_id && getline(&line, &size, table) > 0) {
		const char *dash = strstr(line, " - ");

		if (strtoull(line, NULL, 10) == st.stx_mnt_id && dash) {
			type = kr_arena_dup_n(arena, dash + 3, strcspn(dash + 3, " \n"));
			break;
		}
	}
	free(line);
	if (table)
		(void)fclose(table); /* only read */
	return type;
}

static int
write_line(const char *file, const char *text)
{
	kr_auto_fd int fd = open(file, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -1 : kr_write_all(fd, text, strlen(text), NULL);
}

int
kr_try_capped_mount(void)
{
	char uid[64], gid[64];

	snprintf(uid, sizeof(uid), "%u %u 1", (unsigned)geteuid(), (unsigned)geteuid());
	snprintf(gid, sizeof(gid), "%u %u 1", (unsigned)getegid(), (unsigned)getegid());
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 || write_line("/proc/self/setgroups", "deny") < 0 ||
		write_line("/proc/self/uid_map", uid) < 0 || write_line("/proc/self/gid_map", gid) < 0 ||
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount("tmpfs", "/tmp", "tmpfs", MS_NODEV | MS_NOSUID, "mode=1777,size=65536,nr_inodes=16") < 0)
		return errno ? errno : EIO;
	return 0;
}

int
kr_try_keyring(void)
{
	return syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 ? errno : 0;
}

/* ---- whose connection it is ---- */

enum { ENDPOINT_TEXT = 40, ESTABLISHED = 1 };

/* As /proc/net/tcp and tcp6 have it: words of the address in this machine's byte order, and the port. */
static void
endpoint_text(const struct sockaddr_storage *from, bool as_v6, char out[ENDPOINT_TEXT])
{
	const struct sockaddr_in6 *six = (const void *)from;
	const struct sockaddr_in *four = (const void *)from;
	uint32_t w[4] = { 0, 0, htonl(0xffff), 0 };
	unsigned port = ntohs(from->ss_family == AF_INET ? four->sin_port : six->sin6_port);

	if (from->ss_family == AF_INET6)
		memcpy(w, &six->sin6_addr, sizeof(w));
	else
		w[3] = four->sin_addr.s_addr;
	if (as_v6)
		snprintf(out, ENDPOINT_TEXT, "%08X%08X%08X%08X:%04X", w[0], w[1], w[2], w[3], port);
	else
		snprintf(out, ENDPOINT_TEXT, "%08X:%04X", w[3], port);
}

static bool
is_v4(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET ||
		   IN6_IS_ADDR_V4MAPPED(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

/* How many open connections the table has from `local` to `remote`; *uid is the last one's. */
static unsigned
find_owner(const char *table, const char *local, const char *remote, uid_t *uid)
{
	FILE *file = fopen(table, "re");
	unsigned found = 0, state, owner;
	char *line = NULL, from[ENDPOINT_TEXT], to[ENDPOINT_TEXT];
	size_t size = 0;

	while (file && getline(&line, &size, file) > 0)
		if (sscanf(line, " %*u: %39s %39s %x %*s %*s %*s %u", from, to, &state, &owner) == 4 &&
			state == ESTABLISHED && strcmp(from, local) == 0 && strcmp(to, remote) == 0) {
			*uid = owner;
			found++;
		}
	free(line);
	if (file)
		(void)fclose(file); /* only read */
	return found;
}

/* ---- which processes hold it ---- */

/* Of the connection in /proc/net/tcp; 0: there is none. */
static unsigned long
socket_inode(uint16_t local_port, uint16_t remote_port)
{
	FILE *file = fopen("/proc/net/tcp", "re");
	unsigned a, b, local, remote, state;
	unsigned long inode = 0, found = 0;
	char *line = NULL;
	size_t size = 0;

	while (file && !found && getline(&line, &size, file) > 0)
		if (sscanf(line, " %*u: %x:%x %x:%x %x %*s %*s %*s %*u %*u %lu", &a, &local, &b, &remote, &state, &inode) == 6 &&
			a == htonl(INADDR_LOOPBACK) && b == a && local == local_port && remote == remote_port)
			found = inode;
	free(line);
	if (file)
		(void)fclose(file); /* only read */
	return found;
}

static bool
holds(int proc, const char *pid, const char *link)
{
	char name[NAME_MAX + sizeof("/fd")], text[64];
	kr_auto_fd int fd = -1;
	struct dirent *entry;
	bool found = false;
	ssize_t n;
	DIR *dir;

	snprintf(name, sizeof(name), "%s/fd", pid);
	fd = openat(proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (!dir)
		return false;
	(void)kr_steal_fd(fd); /* the directory's now */
	while (!found && (entry = readdir(dir))) {
		n = readlinkat(dirfd(dir), entry->d_name, text, sizeof(text) - 1);
		text[n > 0 ? n : 0] = '\0';
		found = strcmp(text, link) == 0;
	}
	(void)closedir(dir); /* only read */
	return found;
}

int
kr_socket_holders(uint16_t local_port, uint16_t remote_port, pid_t *out, int most)
{
	unsigned long inode = socket_inode(local_port, remote_port);
	struct dirent *entry;
	char link[64];
	uint64_t pid;
	int n = 0;
	DIR *proc;

	snprintf(link, sizeof(link), "socket:[%lu]", inode);
	proc = inode ? opendir("/proc") : NULL;
	if (!proc)
		return inode ? -1 : 0;
	while (n >= 0 && (entry = readdir(proc)))
		if (kr_text_to_u64(entry->d_name, INT32_MAX, &pid) && holds(dirfd(proc), entry->d_name, link)) {
			if (n < most)
				out[n] = (pid_t)pid;
			n = n < most ? n + 1 : -1;
		}
	(void)closedir(proc); /* only read */
	return n;
}

/* A client of either family can be at the other end of an IPv4 pair. */
int
kr_peer_uid(int fd, uid_t *out, struct kr_error *err)
{
	struct sockaddr_storage ours = { 0 }, theirs = { 0 };
	socklen_t ours_n = sizeof(ours), theirs_n = sizeof(theirs);
	char local[ENDPOINT_TEXT], remote[ENDPOINT_TEXT];
	unsigned found = 0;
	uid_t uid = 0;

	if (getsockname(fd, (struct sockaddr *)&ours, &ours_n) < 0 ||
		getpeername(fd, (struct sockaddr *)&theirs, &theirs_n) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot tell who is connected");
	if ((ours.ss_family != AF_INET && ours.ss_family != AF_INET6) || ours.ss_family != theirs.ss_family)
		return kr_fail(err, KR_E_UNSUPPORTED, "this is no TCP connection");
	if (is_v4(&theirs)) {
		endpoint_text(&theirs, false, local);
		endpoint_text(&ours, false, remote);
		found += find_owner("/proc/net/tcp", local, remote, &uid);
	}
	endpoint_text(&theirs, true, local);
	endpoint_text(&ours, true, remote);
	found += find_owner("/proc/net/tcp6", local, remote, &uid);
	if (found != 1)
		return kr_fail(
			err, KR_E_NOT_FOUND, "the other end of the connection is not on this machine, or closing");
	*out = uid;
	return 0;
}

void
kr_macos_look(struct kr_arena *arena, const char *sandbox_exec, struct kr_macos_facts *out)
{
	(void)arena;
	*out = (struct kr_macos_facts){
		.machine = KR_FAULT_MACOS_IS("ppc") ? "ppc" : "arm64",
		.sandbox_exec = sandbox_exec,
		.has_sandbox_exec = access(sandbox_exec, X_OK) == 0,
		.is_root = geteuid() == 0,
		.is_sandboxed = KR_FAULT_MACOS_IS("sandboxed"),
		.is_translated = KR_FAULT_MACOS_IS("translated"),
		.has_tools = !KR_FAULT_MACOS_IS("bare"),
		.developer = KR_FAULT_MACOS_IS("bare") ? "" : "/Library/Developer/CommandLineTools",
	};
}
