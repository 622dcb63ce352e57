/*
 * A session: one launch of one command inside the walls. This room opens what the plan names, starts the launcher, and
 * follows it to its end. `kraft run`, `kraft shell` and the setup command use it; a server will.
 *
 * States: prepared -> launched -> started -> exited, or launched -> failed (no started byte: config_error, OS-LCH-09).
 */
#ifndef KR_SESSION_SESSION_H
#define KR_SESSION_SESSION_H

#include <sys/types.h>

#include "backend/backend.h"
#include "backend/container.h"
#include "plan/plan.h"

struct kr_session_start {
	const struct kr_host *host;
	const struct kr_plan *plan;
	const char *folder; /* run/sessions/<id>: made by kr_session_folder */
	int stdin_fd, stdout_fd, stderr_fd; /* the worker's ends; -1: /dev/null. Under a terminal only what the
	                                     * launcher and bubblewrap say comes out of them */
	unsigned short rows, columns;       /* of the terminal inside at its start; 0: unknown */
	bool keep_stderr;   /* under a terminal: the command's stderr is stderr_fd all the same */
	const char *channel_socket; /* where the init hands over the listener of the way out; NULL: it has none */
	bool lifeline;      /* the sandbox ends with us */
	const struct kr_container *container; /* NULL: bubblewrap */
};

struct kr_session {
	pid_t launcher;     /* 0 when none */
	int control_fd;     /* struct kg_message both ways */
	int lifeline_fd;    /* ours; closing it ends the sandbox */
};

/* Opens and checks every source, renders, and posix_spawns the launcher. On failure nothing runs. */
int kr_session_launch(struct kr_arena *arena, const struct kr_session_start *start,
	struct kr_session *out, struct kr_error *err);

/* Opens every source of the plan without following links and applies the rules again on the descriptors
 * (OS-EXP-05). opened has plan->step_count places; the caller closes the descriptors. */
int kr_session_open_sources(const struct kr_host *host, const struct kr_plan *plan, const char *empty_path,
	struct kr_opened *opened, struct kr_error *err);
void kr_session_close_sources(struct kr_opened *opened, size_t count);

#endif
