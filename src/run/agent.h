/*
 * An agent in place of a command (struct kr_run_agent), in this order: what its harness and the policy come
 * to, or a refusal; its login; which version it is, and that its hook holds, where it has one that fails open
 * (known.c). Only then its session begins, with its settings written anew where no worker can change them.
 * Whatever refuses it is in that session's log too.
 *
 * `kraft explain` takes the first two, which start nothing.
 */
#ifndef KR_RUN_AGENT_H
#define KR_RUN_AGENT_H

#include "agent/agent.h"
#include "plan/plan.h"
#include "run/gate.h"
#include "run/run.h"
#include "session/item.h"

struct kr_run_state;
struct kr_job;

/* One launch. */
struct kr_run_launch {
	const struct kr_run_agent *agent;
	struct kr_agent_want want;
	struct kr_agent_launch launch;
	struct kr_plan_agent plan;
	struct kr_strs files;       /* their names, for the plan */
	struct kr_plan_place *kept; /* the plan's, to be filled in when they are there */
	/* while it runs */
	int input_fd;  /* -1: none */
	int render_fd; /* the lines for a person go in there; -1: they are shown as they come */
	pid_t renderer;
};

/* Where it is to run. */
struct kr_run_at {
	const struct kr_host *host;
	const char *session, *home; /* home: the item's */
	const char *result;         /* the session's own place for its result inside, to be told; NULL: it is told already, or has none */
};
/* gate: of a hook that was proven; NULL: not yet, or there is none. Looks at nothing and makes nothing.
 * Errors as of kr_agent_launch; KR_E_LIMIT for what no command line takes. */
int kr_run_launch_make(struct kr_arena *arena, const struct kr_run_agent *agent,
	const struct kr_policy *policy, const struct kr_run_at *at, const struct kr_gate *gate,
	struct kr_run_launch *out, struct kr_error *err);
/* KR_E_LOGIN when none of the harness's variables would be there, with where to put it (OS-ENV-01, -02, -05).
 */
int kr_run_launch_login(struct kr_arena *arena, const struct kr_host *host, const struct kr_request *request,
	const struct kr_harness *harness, struct kr_error *err);

/* Fills in the job's id, argv and launch. */
int kr_run_agent_prepare(struct kr_run_state *run, struct kr_job *job, struct kr_error *err);
/* The session's directories are there: its settings, and its own directory. */
int kr_run_agent_place(struct kr_run_state *run, struct kr_run_launch *launch,
	const struct kr_session_paths *paths, struct kr_error *err);
/* The session is over: its own directory goes. */
void kr_run_agent_clear(const struct kr_session_paths *paths);
/* Its standard input and who shows its output, around kr_job_run. `end` is good after any begin. */
int kr_run_agent_begin(struct kr_run_launch *launch, struct kr_job *job, struct kr_error *err);
void kr_run_agent_end(struct kr_run_launch *launch);

/* known.c. What is known of the program that will run: asked once, and kept in
 * <run_dir>/cache/agents/<harness>[-<image>].json until it is another program. KR_E_CONFIG when the image has none (CTR-09). Its version is not asked for a harness
 * without min_version. KR_E_REFUSED when it is too old, does not tell, or its hook is not proven. gate: all
 * zero when it has no hook that has to be trusted. */
int kr_run_agent_know(struct kr_run_state *run, const struct kr_run_launch *launch,
	const struct kr_request *request, struct kr_gate *gate, struct kr_error *err);

/* What is known of a program by now, without asking it: one that was updated is another one, of which nothing is. */
struct kr_run_agent_recalled {
	const char *version; /* NULL: it was not asked */
	bool heeds_hook;     /* it was shown to */
};
void kr_run_agent_recall(struct kr_arena *arena, const struct kr_host *host, const struct kr_harness *harness, const char *program,
	struct kr_run_agent_recalled *out);

#endif
