/*
 * What the parts of the launcher share. launch.c is what every session has: the talk between kraft and the
 * init, the exit file. What the sandbox is made with is one of two kinds: launch_bwrap.c, launch_container.c.
 */
#ifndef KG_LAUNCH_H
#define KG_LAUNCH_H

#include <poll.h>

#include "guest/control.h"
#include "guest/namespace.h"
#include "guest/sys.h"

/* How far the process that becomes another program came. It shares our memory until its exec. */
enum kg_stage { KG_STAGE_NAMESPACE, KG_STAGE_EXEC, KG_STAGE_DONE };

struct kg_kind;

struct kg_launch {
	const struct kg_kind *kind;
	/* the command line */
	const char *terminal_size, *channel, *cwd, *exec;
	struct kg_control control;
	int lifeline, args, verify;
	const char *keep[KG_KEEP_MAX];
	size_t keep_count;
	bool terminal, keep_stderr;
	char **command;
	int command_count;
	char **environment;
	struct {
		const char *program;
		int seccomp;
		int pass[KG_PASS_MAX];
		size_t pass_count;
		struct kg_capped tmp, shm, capped[2];
		size_t capped_count;
		bool has_caps;
		const char **argv;
		int init_end; /* of the pipe, until the init has spoken */
	} bwrap;
	struct {
		const char *program, *connect;
		int environment, directory, filter, listener; /* descriptors */
		const char **argv, **variables;
		struct kg_client client;
		int init; /* pidfd of process 1; -1: it has not connected, or is gone */
		bool is_machine; /* the child is a pump, and who connects is it */
		bool connected, stopping;
		int64_t stop_at; /* the client is ended then, CLOCK_MONOTONIC in ms; 0: it is not to be */
	} container;
	/* the process that the kind starts */
	pid_t child;
	int child_fd;                 /* its pidfd */
	volatile enum kg_stage stage; /* where it failed, or KG_STAGE_DONE */
	volatile int stage_errno;
	/* the talk */
	int pipe; /* to the init */
	char *start;
	size_t start_room, start_bytes, start_sent;
	struct kg_talk talk;
	bool spoke, killed, deaf;
	struct kg_message word;
	size_t word_bytes, word_fds;
	int word_fd;
	uint64_t signals; /* bit n-1: signal n waits to be passed on */
};

enum { KG_KIND_PLACES = 2 };
struct kg_kind {
	/* The start message is written: starts the process, and sends the message when there is an init to take
	 * it. */
	void (*start)(struct kg_launch *launch);
	/* What it waits for, in places that are all -1; returns milliseconds for poll(2). */
	int (*watch)(const struct kg_launch *launch, struct pollfd at[KG_KIND_PLACES]);
	/* What came of it; is_late: nothing did, in that time. True: the sandbox is gone. */
	bool (*look)(struct kg_launch *launch, const struct pollfd at[KG_KIND_PLACES], bool is_late);
	/* The init has said its first word. */
	void (*spoke)(struct kg_launch *launch);
	/* The sandbox is to end, whatever it does; the pipe is already shut. */
	void (*end)(struct kg_launch *launch);
	/* It is gone: nothing of it may be left. */
	void (*reap)(struct kg_launch *launch);
	/* It is gone, nobody ended it, and the init never spoke: why. */
	void (*explain)(struct kg_launch *launch);
};
extern const struct kg_kind kg_kind_bwrap;

extern const struct kg_kind kg_kind_container;

/* Reads the command line and chooses the kind, or refuses. */
void kg_launch_options(struct kg_launch *launch, int argc, char **argv);

/* Says it to kraft; stderr and the exit file say it too. */
void kg_launch_fault(struct kg_launch *launch, enum kg_fault fault, int failed);
/* Ends before the sandbox: the fault, the exit file, 125. */
__attribute__((noreturn)) void kg_launch_refuse(struct kg_launch *launch, enum kg_fault fault, int failed);
__attribute__((noreturn)) void kg_launch_refuse_errno(
	struct kg_launch *launch, enum kg_fault fault, const char *what);

/* The init's words that do not depend on the kind, and the NULL behind them. out has room for KG_INIT_WORDS
 * and the command. */
enum { KG_INIT_WORDS = 13 };
void kg_launch_init_words(const struct kg_launch *launch, const char **out);
/* The size of a named file, or refuses: it is no file, or larger than max. */
size_t kg_launch_file_bytes(struct kg_launch *launch, int fd, size_t max, const char *what);
/* As much of the start message as the pipe takes now. */
void kg_launch_send_start(struct kg_launch *launch);
/*
 * Makes launch->child, as vfork does it, but on a stack of its own: a copy of our memory, small as it is,
 * costs more than all else that the launcher does. We stand still until its exec. It writes to nothing of our
 * memory but the stage.
 */
void kg_launch_child(struct kg_launch *launch, int (*become)(void *), enum kg_fault fault, const char *what);

#endif
