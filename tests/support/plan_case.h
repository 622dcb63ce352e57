/* A host, a repository and a request by hand, for unit tests of plans and of what is rendered from them. */
#ifndef KR_TESTS_PLAN_CASE_H
#define KR_TESTS_PLAN_CASE_H

#include "fake_fs.h"
#include "plan/plan.h"

#define CASE_WORKTREE "/home/ada/.kraft/run/worktrees/w"

struct plan_case {
	struct kr_arena arena;
	struct fake_fs fake;
	struct kr_fs fs;
	struct kr_host host;
	struct kr_repo repo;
	struct kr_request request;
	struct kr_error err;
	struct kr_strs lookup;
};

/* `entries` come on top of a small system; `command` is the whole argv. */
void plan_case_init(struct plan_case *c, const struct fake_entry *entries, const char *command);
void plan_case_expose(struct plan_case *c, const char *path);
const struct kr_plan *plan_case_build(struct plan_case *c);
void plan_case_fini(struct plan_case *c);

#endif
