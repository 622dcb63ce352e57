/*
 * What a task comes to: the words of a command, or an agent with what it is told; its policy, its time, and what is left
 * of the caps that it counts against.
 */
#ifndef KR_WORK_LAUNCH_H
#define KR_WORK_LAUNCH_H

#include "run/run.h"
#include "work/internal.h"

struct kr_work_launch {
	const char *const *argv;        /* NULL: an agent, or nothing */
	const char *instruction;        /* for its stdin; NULL: none */
	const struct kr_run_agent *agent; /* NULL: it is none */
	const struct kr_session_row *resumed; /* whose conversation it goes on with; NULL: none */
	double seconds;          /* that it may take */
	const char *cap;         /* the key that says so, of sessions that were before it too; NULL: it is not one of these */
	enum kr_bound bound;     /* with cap */
	struct kr_policy policy; /* its tools' lists are what the worker is answered by */
	bool commit;             /* what it leaves uncommitted */
	const struct kr_policy_layer **layers; /* the sandbox is theirs too */
};

/* Neither argv nor agent: nothing is to be started, and `out` says what that means. */
void kr_work_find_launch(struct kr_work *work, const struct kr_work_task *task, struct kr_work_launch *launch,
	struct kr_work_outcome *out);

/* agent.c: the same of a task of an agent. */
void kr_work_find_agent(struct kr_work *work, const struct kr_work_task *task, const struct kr_repo *repo,
	struct kr_work_launch *launch, struct kr_work_outcome *out);
/* What it is told of its task. */
const char *kr_work_instruction(struct kr_work *work, const struct kr_work_task *task, const struct kr_repo *repo,
	const struct kr_policy *policy);

/* What the layers of the task's policy come to. */
int kr_work_policy(struct kr_work *work, const struct kr_work_view *view, const struct kr_task *task, bool is_beside,
	const struct kr_repo *repo, const struct kr_policy_layer **layers, struct kr_policy *out, struct kr_error *err);

/* What is known of a session when it has ended. */
struct kr_work_ran {
	int status; /* of kr_run; -1: it refused, or failed */
	const struct kr_run_done *done;
	const char *message; /* with -1; "": none */
	bool has_result;
	const struct kr_policy_layer *walls; /* whose sandbox it had; NULL: none */
};
/*
 * Pure. True: it never got to its work, so the item stops as a configuration error, and nothing tries again by itself: the
 * launch was refused or failed, whatever stood in its way, or the memory limit killed it, and it left no result (LIM-02).
 */
bool kr_work_judge_launch(struct kr_arena *arena, const struct kr_work_ran *ran, struct kr_work_outcome *out);

/* It does not start: config_error, for this reason. */
void kr_work_refuse(struct kr_work_outcome *out, const char *reason);

#endif
