/* git's configuration for a checkout, asked once and used for all that one session needs of it. */
#ifndef KR_GIT_SETTINGS_H
#define KR_GIT_SETTINGS_H

#include "git/git.h"

/* Started early, it is there when it is needed: reading it costs a git run. All zero: not asked. */
struct kr_git_settings {
	struct kr_git_run run;
	const char *text; /* "scope\0key\nvalue\0" for each, in git's order; NULL until waited for */
	size_t len;
};
int kr_git_settings_start(const struct kr_checkout *checkout, struct kr_git_settings *settings, struct kr_error *err);
/* The text goes into the arena. Again: nothing happens. */
int kr_git_settings_wait(struct kr_arena *arena, struct kr_git_settings *settings, struct kr_error *err);
/* For one that nobody waited for. */
void kr_git_settings_fini(struct kr_git_settings *settings);

/* The last value of a key (section and variable in lower case); NULL when it is not set. Borrows. */
const char *kr_git_settings_find(const struct kr_git_settings *settings, const char *key);

/*
 * The configuration file of a private git directory. has_sparse_patterns: its info/sparse-checkout is there; only then
 * a sparse checkout is said to be one.
 */
void kr_git_settings_write(struct kr_arena *arena, const struct kr_git_settings *settings, bool has_sparse_patterns,
	struct kr_buf *out);

/*
 * The address of a remote without what may be a secret: user and password, and the query of a web address. NULL for one that
 * cannot be told apart from a secret.
 */
const char *kr_git_url_clean(struct kr_arena *arena, const char *url);

#endif
