/*
 * One command in the walls of the repository that a person stands in: the way that `kraft run` and `kraft
 * shell` share.
 */
#ifndef KR_RUN_RUN_H
#define KR_RUN_RUN_H

#include "base/arena.h"
#include "base/error.h"
#include "config/config.h"

struct kr_run_want {
	const char *repo;    /* a path in the checkout; NULL: where we stand */
	const char *item;    /* NULL: the repository's own */
	const char *workspace; /* NULL: the one that the item was made for, if any */
	const char *phase;   /* "install" or "runtime"; NULL: runtime */
	const char *purpose; /* for session.json: "command", "shell" */
	bool keep, with_changes;
	const char *commit;  /* what is left uncommitted becomes a commit with this message; "": one of kraft's; NULL: stays */
	const char *const *argv;
};

/* Returns the exit status of kraft; -1 with err when the command was not run. */
int kr_run(struct kr_arena *arena, const struct kr_run_want *want, struct kr_error *err);

#endif
