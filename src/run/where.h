/* Where a command applies: the checkout a person stands in or names, its entry in repos.yaml, the phase. */
#ifndef KR_RUN_WHERE_H
#define KR_RUN_WHERE_H

#include "git/git.h"
#include "config/config.h"
#include "policy/layers.h"

struct kr_where {
	struct kr_checkout checkout;
	const struct kr_repo *repo;   /* after kr_where_layers: with the sandbox that holds */
	struct kr_policy policy;      /* after kr_where_layers: what they come to, without maxima */
	const char *sandbox_file;     /* where that is written */
	const char *sandbox_from;     /* in words: "'my-service' in '/.../repos.yaml'" */
	const struct kr_repos *repos; /* their warnings are for the person */
	const char *here;             /* the current directory */
};

/* "install" or "runtime"; NULL is runtime. KR_E_USAGE for another word. */
int kr_where_phase(const char *name, enum kr_phase *out, struct kr_error *err);

/*
 * Refuses a checkout that holds kraft's own directory: host git looks through all of a checkout (`status`, and
 * `add` for --with-changes), and must never open what a worker can write.
 */
int kr_where_check_apart(const struct kr_places *places, const char *root, struct kr_error *err);

/* repo: a path in the checkout; NULL: where we stand. Creates nothing. */
int kr_where_find(struct kr_arena *arena, const struct kr_places *places, const char *repo,
	struct kr_where *out, struct kr_error *err);

/*
 * What the layers come to. The sandbox that holds is the first layer's that sets one (CFG-08), so the repository's entry may have policy.yaml's, a
 * chain's or a task's. layers as of kr_policy_combine; NULL: policy.yaml as it is now, and the entry. KR_E_CONFIG when
 * a later layer sets another one, or turns it off.
 */
int kr_where_layers(struct kr_arena *arena, const struct kr_places *places,
	const struct kr_policy_layer *const layers[KR_LAYER_COUNT], struct kr_where *where, struct kr_error *err);

/*
 * The directory of `worktree` that answers to where we stand in the checkout, or the nearest one above it
 * that the worktree has: a directory that is not committed is not there. *wanted is the first choice.
 */
const char *kr_where_cwd(
	struct kr_arena *arena, const struct kr_where *where, const char *worktree, const char **wanted);

#endif
