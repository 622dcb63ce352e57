/* What the commands about work items share. */
#ifndef KR_CLI_WORK_H
#define KR_CLI_WORK_H

#include "cli/cli.h"
#include "work/work.h"

/* Refuses a caller inside a session: what a worker starts may read, and say nothing for a person (CHN-12). */
int kr_work_refuse_session(struct kr_error *err);
int kr_work_open_for_person(struct kr_arena *arena, struct kr_work *out, struct kr_error *err);

/* The item that is meant: `word` (any beginning of an id); without one that whose worktree we stand in, else
 * the only one of this checkout that has not ended. NULL with err. */
const char *kr_work_id(struct kr_work *work, const char *word, struct kr_error *err);

#endif
