/* What the files of `kraft run` share: run.c is the way there, job.c one launch, git.c the item's git,
 * inside.c git inside the walls, container.c what kind: docker needs, kit.c what makes one of kind: kit, end.c what follows a command, tell.c what a person is told. */
#ifndef KR_RUN_INTERNAL_H
#define KR_RUN_INTERNAL_H

#include <jansson.h>

#include "run/agent.h"
#include "run/container.h"
#include "run/kit.h"
#include "run/run.h"
#include "run/where.h"
#include "run/workspace.h"
#include "git/publish.h"
#include "os/host.h"
#include "session/facts.h"
#include "session/item.h"
#include "session/log.h"
#include "session/network.h"
#include "session/relay.h"

/* `git status` in flight, counted as it arrives. */
struct kr_changes {
	struct kr_git_run git;
	size_t count;
	size_t column; /* in the present entry */
	bool is_rename, skip;
	bool started, running;
	bool quiet; /* a terminal program draws now: said at the end */
};

/* One `kraft run`. */
struct kr_run_state {
	struct kr_arena *arena;
	const struct kr_run_want *want;
	enum kr_phase phase;
	struct kr_host host;
	const struct kr_repo *repo; /* the root's: its sandbox holds for all of the item */
	struct kr_where where;
	const char *item_id;   /* as asked for; NULL: the checkout's own */
	const char *workspace; /* NULL: none */
	struct kr_tree *trees; /* the root first */
	size_t tree_count;
	struct kr_item item;
	struct kr_changes changes;
	struct kr_run_kit kit;
	struct kr_run_container container;
};

/* One launch. */
struct kr_job {
	const char *id; /* of the session; NULL: a new one */
	const char *purpose;
	enum kr_phase phase;
	const char *const *argv;
	const char *const *starter; /* as in a plan's request */
	const char *cwd;
	bool terminal;
	bool is_short_run;     /* of kraft's own: no way out, a home that is thrown away, and what it writes to out is data: not
							* in the log */
	int64_t limit_ms;      /* then it is ended; 0: no such limit */
	uint64_t limit_bytes;  /* of what it writes to out; the same */
	const struct kr_plan_agent *agent; /* of a short run that asks one; NULL: none is */
	const char *harness;         /* of an agent's session; NULL: it is none */
	struct kr_run_launch *launch; /* what it comes to; NULL: it is none, or refused */
	const struct kr_error *refusal; /* it does not start, for this; NULL: nothing refused it yet */
	int in, out, err;       /* as in struct kr_relay_want */
	/* what came of it: */
	struct kr_session_paths paths;
	const struct kr_plan *plan;
	struct kr_session_network *network; /* NULL: it has none */
	struct kr_run_container_launch *container; /* NULL: kind: os */
	bool is_launched;               /* a launcher was started */
	struct kr_session_end end;
	int log_errno;
	bool oom, oom_confirmed; /* as in struct kr_run_done */
};

/* job.c. A session with a folder, a log and an exit file, launched and followed to its end. Whatever is refused after
 * the folder exists is in its log too (OS-LCH-12). */
int kr_job_run(struct kr_run_state *run, struct kr_job *job, struct kr_error *err);

/* git.c */
/* Before a session: takes out what an interrupted one left, and makes the item's git anew, unless another session is at
 * work in it or it is to be kept. */
int kr_run_git_open(struct kr_run_state *run, struct kr_error *err);
/* Moves each tree to the commit that is wanted, by git inside the walls. */
int kr_run_git_move(struct kr_run_state *run, struct kr_error *err);
/* After setup: what it did to the refs is dropped (REF-05). */
int kr_run_git_reset(struct kr_run_state *run, struct kr_error *err);
/* By the item's last session, after its command: all that it did to refs, commits too, is dropped. */
int kr_run_git_drop(struct kr_run_state *run, struct kr_error *err);
/* For the root's git a member is not there: `git add -A` would take it for a submodule. Lines of patterns; none: no members. */
const struct kr_strs *kr_run_members_as_excludes(struct kr_run_state *run);
/* From exclusive to shared, before the command runs. */
int kr_run_git_share(struct kr_run_state *run, struct kr_error *err);
/* After a session, whatever became of it: its commits into the repositories, and a word about them. False when it is to be
 * tried again. is_last: as kr_private_is_last said. */
bool kr_run_git_publish(struct kr_run_state *run, const char *session, bool is_last);
/* Whether kind: os is Seatbelt's here: then the item works in the repository itself (git/shared.h). */
bool kr_run_is_macos(const struct kr_run_state *run);
void kr_run_git_close(struct kr_run_state *run);

/* inside.c. A short run in the worktree, or where the job's cwd says; its stderr is in the session's log only. The caller
 * has set the job's purpose, in and out. */
int kr_run_inside(struct kr_run_state *run, struct kr_job *job, const char *const *argv, struct kr_error *err);
/*
 * argv so that it ends after some seconds of the command's own, not counting the sandbox's start: `timeout` inside, and
 * KR_RUN_OUT_OF_TIME is the exit status. macOS has no such program: there the job's limit does it, and end.is_over_time says so.
 */
enum { KR_RUN_OUT_OF_TIME = 124 };
const char *const *kr_run_bounded(
	const struct kr_run_state *run, const char *const *argv, unsigned seconds, int64_t *limit_ms);
/* What git complains of: its first "error: " or "fatal: " line, with up to three of the files that it lists below. */
const char *kr_run_inside_reason(struct kr_run_state *run, const struct kr_job *job);
/* A nameless file in the run directory: a pack may be large, and /tmp may be memory. */
int kr_run_data_file(const struct kr_run_state *run, struct kr_error *err);
struct kr_run_question {
	const char *const *argv;
	const char *const *starter; /* as in a plan's request */
	const char *cwd; /* NULL: the item's worktree */
	const char *in;  /* what it reads; NULL: nothing */
	size_t in_len;
	int64_t limit_ms; /* that it may take (end.is_over_time); 0: any time */
	unsigned bound_s; /* as of kr_run_bounded, in place of limit_ms */
	const struct kr_plan_agent *agent; /* that is asked, with its variables; NULL: none is */
};
/* The same for a short answer (out->max; more is KR_E_LIMIT). Fills job in; how it ended is in there. */
int kr_run_ask_inside(struct kr_run_state *run, const char *purpose, const struct kr_run_question *question,
	struct kr_buf *out, struct kr_job *job, struct kr_error *err);

/* tell.c: an event of this item, with the session's id beside what data says (taken; NULL: out of memory). A store that
 * fails is told, and no more. */
void kr_run_record(const struct kr_run_state *run, const char *session, const char *type, json_t *data);
/* tell.c: on stderr, for a person. */
KR_PRINTF(1, 2) void kr_run_say(const char *fmt, ...);
void kr_changes_start(struct kr_run_state *run);
/* A side of the relay's. */
bool kr_changes_take(void *context);
/* Waits a moment for the last of it; a command that was done sooner than git does not wait for ever. */
void kr_changes_finish(struct kr_changes *changes, int wait_ms);
void kr_run_tell_network(const struct kr_run_state *run, const struct kr_job *job);
/* LIM-02: whether the memory limit of its sandbox ended the command, into job->oom; then it is the event sandbox_oom_killed. */
void kr_run_note_oom(const struct kr_run_state *run, struct kr_job *job);
/* MAC-10: each process of the session that did not end, told, logged, and the event sandbox_session_outlived. */
void kr_run_note_outlived(const struct kr_run_state *run, const struct kr_job *job, struct kr_log *log);
/* What an agent says went wrong, and what can be done. */
void kr_run_tell_agent(struct kr_run_state *run, const struct kr_job *job);
/* After the command. */
void kr_run_sum_up(struct kr_run_state *run, const struct kr_job *job);

#endif
