/*
 * What kraft, the launcher and the init say to each other. One header for all three; no other type crosses.
 *
 * kraft <-> launcher: a stream pair ("control"). launcher <-> init: a stream pair ("init pipe").
 * Both carry struct kg_message, fixed size, host byte order (both ends are the same machine). A descriptor
 * rides on KG_TERMINAL only. The launcher passes messages through in both directions and keeps what it needs
 * for the exit file. A launcher that is told to end (KG_KILL, lifeline) ends with code 137, signal 9.
 * Nobody trusts what comes from the init beyond its own session: after the command started, it is the
 * worker's word.
 *
 * In a container (see --client below) the pipe is a connection that the init makes, and two things come
 * before the start: KG_STREAMS, with three descriptors: stdin, stdout and stderr of the command; and KG_FILTER
 * with a = bytes of a seccomp filter (struct sock_filter), then the filter, which the init installs on itself
 * before it starts anything.
 *
 * Start on the init pipe, launcher -> init: KG_START with a = bytes of environment block, b = bytes of verify
 * block, then the two blocks: the environment ("NAME=value\0"...), and the verify block ("device inode flags
 * path\0"..., decimal; flags bit 0: must be read-only, bit 1: see --machine).
 */
#ifndef KG_WIRE_H
#define KG_WIRE_H

#include <stdint.h>

enum kg_type {
	KG_START = 1,     /* launcher -> init: see above */
	KG_TERMINAL,      /* init -> kraft: the pseudo-terminal's master rides along */
	KG_STARTED,       /* init -> kraft: the command's exec succeeded (OS-LCH-09) */
	KG_EXEC_FAILED,   /* init -> kraft: a = errno */
	KG_STOPPED,       /* init -> kraft: the command was stopped; a = signal */
	KG_CONTINUED,     /* init -> kraft */
	KG_EXIT,          /* init -> kraft: a = exit code, b = signal or 0 (then a is 128 + b) */
	KG_WALL,          /* init -> kraft: a mount is not what was checked; a = index in the block, b = errno */
	KG_SIGNAL,        /* kraft -> init: a = signal for the command, delivered exactly once (OS-LCH-07) */
	KG_KILL,          /* kraft -> launcher: end the sandbox now */
	KG_CHILD,         /* launcher -> kraft: a = host pid of the init, as the kernel says it; comes first */
	KG_LAUNCH_FAILED, /* launcher or init -> kraft: a = enum kg_fault, b = errno; exit 125 */
	KG_LEFT,          /* init -> kraft: a = processes that still ran when the command had ended; before KG_EXIT */
	KG_LEFT_NAMES,    /* init -> kraft: a, b = the next eight bytes of their names; after KG_LEFT */
	KG_STREAMS,       /* launcher -> init: see above; three descriptors ride along */
	KG_FILTER,        /* launcher -> init: see above */
	KG_OOM,           /* init -> kraft: a = processes that ran out of the container's memory; before KG_EXIT */
	KG_INSIDE,        /* start -> launcher (macOS): it runs, and under the profile */
	KG_OUTLIVED,      /* launcher -> kraft (macOS): a = a process of the session that did not end; before KG_EXIT */
	KG_TYPE_END
};

/* Why the launcher or the init could not do its part (exit 125). */
enum kg_fault {
	KG_FAULT_NONE,
	KG_FAULT_KEYRING,   /* no session keyring: b EDQUOT is the user's key quota */
	KG_FAULT_BWRAP,     /* bubblewrap could not be started (b), or ended before the init spoke (b is 0) */
	KG_FAULT_NAMESPACE, /* no namespace for capped file systems: it goes on without, no exit 125 */
	KG_FAULT_ROUTE,     /* the proxy did not take the listener (b): nothing runs without its route (POL-09) */
	KG_FAULT_PTY,
	KG_FAULT_CWD,
	KG_FAULT_INTERNAL,
	KG_FAULT_CLIENT,  /* the container's CLI could not be started (b is an errno) */
	KG_FAULT_RUNTIME, /* the container's CLI ended with exit code b before the init had connected, or (b is 0) it
					   * never did */
	KG_FAULT_FILTER,  /* the kernel did not take the seccomp filter (b) */
	KG_FAULT_SEATBELT, /* sandbox-exec could not be started (b), or ended before it had started anything (b is 0) */
	KG_FAULT_END
};

struct kg_message {
	uint32_t type;
	int32_t a, b;
	uint32_t zero; /* must be 0 */
};

/* What the command left: names as in /proc (a worker's bytes), each with its NUL, zero behind the last one. */
enum {
	KG_LEFT_SHOWN = 8,
	KG_LEFT_NAME = 16,
	KG_LEFT_BYTES = KG_LEFT_SHOWN * KG_LEFT_NAME,
	KG_LEFT_PIECE = 8,
	KG_LEFT_PIECES = KG_LEFT_BYTES / KG_LEFT_PIECE,
};

/* In the directory of the session's channel, which is mounted inside at its own path. */
#define KG_CHANNEL_SOCKET "s.sock"
#define KG_INIT_SOCKET "i.sock" /* of a container's init: taken away once it is connected */
enum {
	KG_PROXY_PORT = 3128, /* inside, on 127.0.0.1 (OS-LCH-06) */
	KG_PROOF_PORT = 3129, /* the same, in a short run: see prove.c */
	KG_HAND_OVER = 'L',
	/* In its place: a connection that was accepted inside, as a connected unix stream socket, with a number of four
	 * bytes behind the letter. And the word of either that it ends the one of that number abruptly, which is said before
	 * the socket ends: such a socket cannot show it. */
	KG_CONNECTION = 'C',
	KG_RESET = 'R',
	KG_NUMBERED_BYTES = 5,
	KG_TAKEN = 'A',
};

/* Files the launcher writes in the session's folder by atomic rename. */
#define KG_STARTED_FILE "started" /* empty, made when KG_STARTED came */
#define KG_EXIT_FILE "exit"       /* "CODE SIGNAL STATE\n": STATE is started, not-started */

enum {
	KG_EXIT_REFUSED = 125,
	KG_EXIT_NOT_EXECUTABLE = 126,
	KG_EXIT_NOT_FOUND = 127,
	KG_ENV_BYTES = 1 << 20,    /* environment block at most */
	KG_VERIFY_BYTES = 2 << 20, /* verify block at most */
	KG_FILTER_BYTES = 4096,    /* seccomp filter at most; a multiple of KG_FILTER_STEP */
	KG_FILTER_STEP = 8,
	KG_CLIENT_BYTES = 2 << 20, /* words, or variables, of the container's CLI at most; no exec takes more */
	KG_KEEP_MAX = 1024,        /* --keep names at most */
	KG_PASS_MAX = 1024,        /* --pass-fd at most */
	KG_OUTLIVED_MAX = 8,       /* processes that are told by their number */
};

/*
 * kraft-guest launch OPTIONS --cwd DIR --exec PATH -- ARGV...
 *   --bwrap PATH     absolute path of bubblewrap
 *   --folder FD      directory of the session (exit file, started mark)
 *   --control FD     stream socket to kraft
 *   --lifeline FD    pipe whose end (kraft died) ends the sandbox; optional
 *   --args FD        bubblewrap's arguments, NUL-separated, without the command; a file, as it may be read
 * again
 *   --seccomp FD     the filter
 *   --verify FD      the verify block, a file; optional
 *   --tmp PATH --shm PATH  empty host directories; the arguments then say `--bind PATH /tmp` and
 *                    `--bind PATH /dev/shm`. Before bubblewrap starts, a tmpfs with size and inode cap is
 *                    mounted on each in a mount namespace of its own. Where that is not allowed, the launcher
 *                    writes `--perms 1777 --size BYTES --tmpfs DEST` over those three arguments, says
 *                    KG_LAUNCH_FAILED with KG_FAULT_NAMESPACE, and goes on.
 *   --caps TMPBYTES,TMPINODES,SHMBYTES,SHMINODES  with --tmp or --shm
 *   --keep NAME      a variable of the launcher's environment that the command gets; repeated
 *   --pass-fd FD     a mount source that bubblewrap needs; repeated
 *   --terminal       the command gets a pseudo-terminal; --terminal-size ROWS,COLUMNS is optional, and so is
 *                    --terminal-keep-stderr: stdin and stdout only
 *   --channel PATH   see below
 *   --cwd DIR        where the command starts, inside
 *   --exec PATH      what is executed, inside; ARGV[0] is the name it is called by
 * Every descriptor above 2 that is not named is closed. It runs, with an empty environment:
 *   BWRAP --args FD --seccomp FD --
 *     /opt/kraft/init init --pipe FD [--terminal ...] --cwd DIR --exec PATH -- ARGV...
 *
 * The arguments must say --as-pid-1 and must not say --die-with-parent. bubblewrap asks for the parent-death
 * signal after it has made process 1 and before it lets it run; a launcher killed in between would take
 * bubblewrap with it and leave process 1 waiting for ever. The same holds for --info-fd, whose reader may be
 * gone. Instead the init ends when its pipe ends, which is from its first instruction on, and asks for the
 * parent-death signal itself. The host's number of the init is the sender that the kernel notes on its first
 * message (SCM_CREDENTIALS).
 *
 * kraft-guest init --pipe FD [--terminal] [--terminal-size ROWS,COLUMNS] [--channel PATH] --cwd DIR --exec PATH --
 *     ARGV...
 *
 * The way out (--channel PATH, a unix socket inside; absent: none): before the command starts the init makes a
 * listening socket on 127.0.0.1, connects to PATH and sends the byte KG_HAND_OVER with that descriptor. kraft's proxy
 * answers KG_TAKEN and accepts on it as long as the connection lives. When it ends, the init connects again and hands
 * the same socket over, so who is connected to the port or waits for it never sees it closed. The worker can do the
 * same with a listener of its own, which then speaks for the same session.
 *
 * In a container: kraft-guest launch with, in place of --bwrap, --seccomp, --tmp, --shm, --caps and --pass-fd,
 *   --client PATH    absolute path of the runtime's CLI
 *   --args FD        all of its words, the name it is called by first; the init's come behind them
 *   --client-env FD  its environment ("NAME=value\0"...), a file
 *   --client-dir FD  directory that it is started in
 *   --filter FD      the seccomp filter, a file, for KG_FILTER
 *   --listen FD      a listening unix socket: the first connection of our own user is the init's, then it is
 *                    closed and its file removed
 *   --connect PATH   where that socket is, for us and inside
 * It runs CLIENT ARGS... init --connect PATH --image-env [...as above], with nothing on its stdin, its stdout
 * going nowhere and its stderr to the launcher's. It is to end by itself when the container runs: with 0, or the
 * launch has failed (KG_FAULT_RUNTIME). The launcher opens a pidfd of the connection's process, ends the container
 * through it (SIGKILL to process 1), and is done when that pidfd says so: then nothing of the container runs any
 * more. Who removes a container that was made and never spoke is kraft.
 *
 * --machine: the container lives in a virtual machine, and nothing of the host's can be connected to. The launcher then
 * runs itself in the client's place,
 *   kraft-guest pump --connect PATH [--channel PATH] [--terminal] [--terminal-size ROWS,COLUMNS] --client PATH -- ARGS...
 * which runs CLIENT ARGS... init --stdio --image-env [...as above] with pipes on its stdin and stdout and speaks mux.h over
 * them. It connects to --connect as the init does, when the init has spoken, and ends with the client, which is to stay as
 * long as the container runs and end it when its stdin ends. The launcher ends the container by ending its connection, and
 * is done when the client is. Of device and inode in the verify block nothing is compared: they are other ones inside. The
 * flags say so (bit 1), and the two numbers are what can be compared: the type of the file (S_IFMT of its mode), and 1
 * for a directory in which more is than what is mounted in it.
 *
 * kraft-guest init --connect PATH --image-env: in place of --pipe. The command's variables are the container's
 * own, and over them those of the start. An EXEC without '/' is looked up along their PATH as execvp(3) does it,
 * but for elements that are no absolute paths: what those find is the repository's choice.
 *
 * On macOS: kraft-guest launch-seatbelt with --folder, --control, --lifeline, --keep, --terminal..., --cwd and --exec as
 * above, and
 *   --seatbelt PATH  sandbox-exec
 *   --profile PATH   what it reads
 *   --own PATH       a place that this profile lets its processes write, and no other session's does
 *   --other PATH     one beside it that this profile does not: by the two a process of this session is known
 * There is no process 1 inside: the launcher itself owns the terminal, passes signals on and tells of the command. It runs,
 * with an empty environment,
 *   SANDBOX-EXEC -f PROFILE ARGV[0] start --environment FD --status FD --cwd DIR --exec PATH -- ARGV...
 *
 * kraft-guest start reads the environment block from one pipe and says on the other KG_INSIDE, then KG_EXEC_FAILED or
 * KG_LAUNCH_FAILED. That one is closed by the exec: its end without such a word means that the command runs.
 *
 * kraft-guest end --own PATH --other PATH --: for the session whose launcher was killed. Ends what it left and prints the
 * number of each process that does not end, one a line.
 *
 * kraft-guest called as `kraft`: the worker's shim.
 */

#endif
