/*
 * After a command has ended, whatever became of it, in this order: is it the item's last session, what repositories were
 * planted in its worktree, its leftovers into a commit when that is wanted, its commits into the person's repository, and
 * the mark that spares the next start the look. And before the next session: what was planted stops the item.
 */
#ifndef KR_RUN_END_H
#define KR_RUN_END_H

#include "run/internal.h"
#include "git/planted.h"

/* ran: the command was started, so it may have left something. */
void kr_run_end(struct kr_run_state *run, const struct kr_job *job, bool ran);

/* put_back.c */
/* What lies in each tree's worktree now, as a git tree in its private directory. KR_E_BUSY beside another session. */
int kr_run_note_files(struct kr_run_state *run, struct kr_error *err);
/* False: it could not be, and nothing of its commits may be taken out; run->want->done tells why. */
bool kr_run_put_back(struct kr_run_state *run);
/* The same before a session, when a kraft that was killed left it. */
int kr_run_put_back_left(struct kr_run_state *run, struct kr_error *err);

/* KR_E_REFUSED naming what was planted. Costs one look at a mark where the last session's end found nothing. */
int kr_run_refuse_planted(struct kr_run_state *run, struct kr_error *err);

/* commit.c */
struct kr_run_leftovers {
	const char *session;
	const char *message;
	bool is_last;                     /* no other session of the item runs */
	const struct kr_planted *planted; /* NULL: nobody could look */
};
/*
 * Commits what lies uncommitted in the worktree on the item's branch, by a short run inside the walls. Not on another HEAD,
 * not in the middle of an operation, not beside planted repositories, not while another session runs, and not without
 * knowing who commits: then the event sweep_failed {error}, and a word. What could not be taken is the event
 * sweep_left_out {paths}, and a word. Nothing to commit: nothing. False when it could not be done.
 */
bool kr_run_commit_leftovers(struct kr_run_state *run, const struct kr_run_leftovers *left);

#endif
