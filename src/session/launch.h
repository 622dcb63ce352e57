/*
 * What the files of a launch share: launch.c is the way of every launch, launch_bwrap.c, launch_container.c and
 * launch_seatbelt.c are what each kind of sandbox adds to it.
 */
#ifndef KR_SESSION_LAUNCH_H
#define KR_SESSION_LAUNCH_H

#include <spawn.h>

#include "guest/wire.h"
#include "session/session.h"

/* One launch while it is put together. The descriptors (-1: none) exist only until the launcher has its own
 * copies. */
struct kr_launch {
	struct kr_arena *arena;
	const struct kr_session_start *start;
	struct kr_strs argv; /* the launcher's */
	posix_spawn_file_actions_t actions;
	int folder, args, verify, filter, control, lifeline;
	struct kr_opened *opened; /* for each step of the plan */
	size_t opened_count;
	/* bubblewrap: tmp and shm are where the launcher mounts the capped file systems (guest/wire.h) */
	struct kr_bwrap bwrap;
	const char *tmp, *shm;
	/* container */
	int client_env, client_dir, listener;
	const char *socket;
};

struct kr_launch_kind {
	const char *role; /* of the guest program */
	bool has_filter;  /* of system calls */
	/* Finds the program, opens and checks what is shown, fills folder, args, verify and filter. */
	int (*prepare)(struct kr_launch *launch, struct kr_error *err);
	/* The launcher's words for it. */
	void (*words)(struct kr_launch *launch);
};
extern const struct kr_launch_kind kr_launch_bwrap, kr_launch_container, kr_launch_seatbelt;

void kr_launch_word(struct kr_launch *launch, const char *text);
/* Says a descriptor by its number and lets it through: dup2 onto itself takes close-on-exec off in the child
 * only. */
void kr_launch_pass(struct kr_launch *launch, const char *option, int fd);
/* Every source of the plan, into `opened`. *empty: what masks show. */
int kr_launch_open_sources(struct kr_launch *launch, const char **empty, struct kr_error *err);
/* What was rendered, as files; where there is nothing to verify there is no such file. */
int kr_launch_fill(
	struct kr_launch *launch, const struct kr_buf *args, const struct kr_buf *verify, struct kr_error *err);

#endif
