/*
 * Whose commits a worker makes (CTR-05): what kraft's own environment says, else what git is configured to
 * say, for each of the four alone. author.* and committer.* come before user.*, as in git.
 */
#include <stdlib.h>

#include "git/private.h"

static const struct {
	const char *variable, *key, *general;
} parts[] = {
	{ "GIT_AUTHOR_NAME", "author.name", "user.name" },
	{ "GIT_AUTHOR_EMAIL", "author.email", "user.email" },
	{ "GIT_COMMITTER_NAME", "committer.name", "user.name" },
	{ "GIT_COMMITTER_EMAIL", "committer.email", "user.email" },
};

void
kr_git_identity_from(struct kr_arena *arena, const struct kr_git_settings *settings, struct kr_strs *out)
{
	for (size_t i = 0; i < KR_COUNT(parts); i++) {
		const char *value = getenv(parts[i].variable);

		if (!value || !*value)
			value = kr_git_settings_find(settings, parts[i].key);
		if (!value || !*value)
			value = kr_git_settings_find(settings, parts[i].general);
		if (value && *value)
			kr_strs_add(arena, out, kr_arena_printf(arena, "%s=%s", parts[i].variable, value));
	}
}

int
kr_git_identity(
	struct kr_arena *arena, const struct kr_checkout *checkout, struct kr_strs *out, struct kr_error *err)
{
	KR_CLEANUP(kr_git_settings_fini) struct kr_git_settings settings = { 0 };

	if (kr_git_settings_start(checkout, &settings, err) < 0 ||
		kr_git_settings_wait(arena, &settings, err) < 0)
		return -1;
	kr_git_identity_from(arena, &settings, out);
	return 0;
}
