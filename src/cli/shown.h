/*
 * Inside the room cli/ only: the plan that a launch would make, for commands that only tell of it (explain, why). Runs nothing and
 * creates nothing: the paths of the item are named whether they exist or not.
 */
#ifndef KR_CLI_SHOWN_H
#define KR_CLI_SHOWN_H

#include "config/harness.h"
#include "plan/plan.h"
#include "run/agent.h"
#include "run/container.h"
#include "run/kit.h"
#include "run/where.h"
#include "run/workspace.h"
#include "session/item.h"

/* What the person asked about; NULL where nothing was said. */
struct kr_shown_want {
	const char *repo, *phase, *item, *workspace, *harness;
	char **words; /* the command; with a harness its prompt; none: the repository's own */
	int word_count;
};

struct kr_shown {
	struct kr_arena *arena;
	struct kr_host host;
	struct kr_where where;
	struct kr_item item;
	struct kr_tree *trees;
	size_t tree_count;
	struct kr_request request;
	struct kr_harness harness;
	struct kr_run_agent agent;
	struct kr_run_launch launch;
	struct kr_run_kit kit;
	struct kr_run_container container;
	const char *remark;        /* about its image; NULL: none */
	struct kr_strs lookup;     /* of the command, also when it is refused */
	const struct kr_plan *plan;
	struct kr_error refused;   /* without a plan: why a launch would be refused */
};

/* -1: it cannot be asked. 0: with a plan, or with what refuses it. */
int kr_shown_make(struct kr_arena *arena, const struct kr_shown_want *want, struct kr_shown *out, struct kr_error *err);
/* What planning could not see because the first run has still to make it; NULL: nothing. */
const char *kr_shown_missing(const struct kr_shown *shown);

#endif
