/*
 * What Linux and macOS do differently, one function each; linux.c and darwin.c are chosen by the build.
 */
#ifndef KR_OS_SYS_H
#define KR_OS_SYS_H

#include <signal.h>
#include <spawn.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

/* The running program's own file, resolved; NULL when the system does not say. */
const char *kr_self_path(struct kr_arena *arena);

/* A nameless file holding these bytes, at offset 0, close-on-exec; `name` shows up in diagnostics only. In memory on Linux. */
int kr_memory_file(const char *name, const void *bytes, size_t n, struct kr_error *err);

/*
 * posix_spawn with every signal at its default and none blocked; exactly this environment. 0, or what posix_spawn says (an
 * errno).
 */
int kr_spawn(const char *path, const posix_spawn_file_actions_t *actions, const char *const argv[],
	const char *const envp[], pid_t *pid);

/*
 * The calling process, which goes on as kraft, gets this signal when its parent ends, and ends now when it has already. Called
 * when what it does not keep is closed: macOS takes a descriptor for it.
 */
void kr_end_with_parent(pid_t parent, int signal);

/*
 * A program started in a session of its own, every signal at its default and none blocked. `become` runs in the child and
 * executes the program; it makes nothing but async-signal-safe calls, changes no memory, and comes back with errno if it cannot.
 * Waiting for *pid and kill(-*pid) work whoever that is: where the system sends nobody a signal when a parent ends (macOS), a
 * process that leads the session, watches over the program and ends as it did. 0, or an errno: then nothing was started.
 */
struct kr_start {
	int (*become)(const void *context);
	const void *context;
	bool ends_with_us; /* killed when the thread that called this is */
};
int kr_start_program(const struct kr_start *start, pid_t *pid);

/*
 * A program run to its end: exactly this environment, stdin from /dev/null, never through a shell, in a process group of its own;
 * every other descriptor is close-on-exec. stdout goes to `out` (bounded by out->max), and stderr there too when `errors` is
 * NULL; else `errors` holds its last errors->max bytes. *status as waitpid gives it. It is ended, with its group, and -1 comes
 * back, when it is over its time (KR_E_TIMEOUT), prints too much (KR_E_LIMIT), or when a signal comes that ends kraft: that
 * one does afterwards what it would have done.
 */
struct kr_child {
	const char *path;
	const char *const *argv, *const *envp;
	const char *directory;    /* where it runs; NULL: where we do */
	int stdout_fd, stderr_fd; /* above 0: it writes there in place of us */
	int64_t limit_ms;         /* 0: none */
};
int kr_child_run(const struct kr_child *call, struct kr_buf *out, struct kr_buf *errors, int *status, struct kr_error *err);

/* The same without a limit of time, stdout and stderr together. */
int kr_capture(const char *path, const char *const argv[], const char *const envp[], struct kr_buf *out,
	int *status, struct kr_error *err);

/* In a child of its own: what a launcher does before bubblewrap starts. 0, or an errno; ENOTSUP where there is no such thing. */
int kr_try_capped_mount(void);
/* Likewise: whether a session keyring is to be had (OS-LCH-02). */
int kr_try_keyring(void);

/* Another open file description of what fd is open on, not shared with anybody; -1 with errno where that cannot be (macOS: of
 * all but a terminal). */
int kr_reopen(int fd, int flags);
/* The master of a pseudo-terminal, and nothing that is only like one. */
bool kr_is_terminal_master(int fd);
/* A descriptor that tells of the signals in the set, which the caller has blocked; close-on-exec, never blocks. */
int kr_signals_open(const sigset_t *set, struct kr_error *err);
/* The next signal that came; 0: none. */
int kr_signals_next(int fd);
/* A descriptor that becomes readable when the child ends, close-on-exec. */
int kr_process_watch(pid_t pid, struct kr_error *err);
/* When a process started, in the system's own unit since boot: with the pid and the boot id it names one process for
 * good. 0 when there is no such process. */
uint64_t kr_process_start(pid_t pid);
/* Which system this is, as it names itself to a person: "macOS 14.1 (23B74)"; "" when it does not say. */
const char *kr_system_words(struct kr_arena *arena);
/* Names this boot of the system; "" when the system does not say. */
const char *kr_boot_id(struct kr_arena *arena);

/*
 * The user whose socket is at the other end of a TCP connection over this machine's loopback: the one open socket that has
 * exactly our pair of addresses the other way round. KR_E_NOT_FOUND when there is none, it is closing, or (macOS, which tells a
 * user of the user's own processes only) it is another user's.
 */
int kr_peer_uid(int fd, uid_t *out, struct kr_error *err);

/*
 * The processes that hold the open socket 127.0.0.1:local_port whose other end is 127.0.0.1:remote_port, at most `most` of them: how
 * many, 0 when there is none or they are another user's, -1 when the system does not say or there are more.
 */
int kr_socket_holders(uint16_t local_port, uint16_t remote_port, pid_t *out, int most);

/* What has to be true of a Mac and of kraft on it before there are walls (MAC-11; judged by kr_macos_check of backend/backend.h). */
struct kr_macos_facts {
	const char *machine;      /* of the kernel: "arm64", "x86_64" */
	const char *sandbox_exec; /* where it has to be */
	bool has_sandbox_exec;    /* it is there and may be run */
	bool is_root;
	bool is_sandboxed;     /* kraft itself: the system puts no second profile on a process */
	bool is_translated;    /* a program for Intel, run by Rosetta */
	bool has_tools;        /* Command Line Tools or an Xcode: without, /usr/bin/git only asks to install them */
	const char *developer; /* where they are; "": there are none */
};
/* On Linux, for tests that pretend (base/fault.h): a Mac that has all, but for what they ask. */
void kr_macos_look(struct kr_arena *arena, const char *sandbox_exec, struct kr_macos_facts *out);

/* The type of the file system that fd (KR_O_LOOK will do) lies on, as the mount table names it ("ext4", "nfs4", "fuse.sshfs");
 * "" when the system does not say. */
const char *kr_file_system_type(struct kr_arena *arena, int fd);

#endif
