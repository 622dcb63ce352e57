#include "cli/entry.h"

#include <unistd.h>

#include "base/path.h"
#include "git/git.h"

const char *
kr_entry_resolve(struct kr_arena *arena, const char *path)
{
	char resolved[KR_PATH_MAX], here[KR_PATH_MAX];

	if (realpath(path, resolved))
		return kr_arena_dup(arena, resolved);
	return getcwd(here, sizeof(here)) ? kr_path_join(arena, here, path) : NULL;
}

const struct kr_repo *
kr_entry_of(struct kr_arena *arena, const struct kr_repos *repos, const char *path)
{
	for (size_t i = 0; i < repos->repo_count; i++) {
		const char *resolved = kr_entry_resolve(arena, repos->repo[i].path);

		if (strcmp(repos->repo[i].path, path) == 0 || (resolved && strcmp(resolved, path) == 0))
			return &repos->repo[i];
	}
	return NULL;
}

/* The entry of a name or id; NULL with an error for several of one name, without one for none. */
static const struct kr_repo *
entry_named(const struct kr_repos *repos, const char *name, struct kr_error *err)
{
	const struct kr_repo *found = NULL;

	for (size_t i = 0; i < repos->repo_count; i++) {
		const struct kr_repo *repo = &repos->repo[i];

		if (repo->id && strcmp(repo->id, name) == 0)
			return repo;
		if (strcmp(repo->name, name) != 0)
			continue;
		if (found) {
			kr_fail(err, KR_E_USAGE, "'%s' names two repositories", name);
			kr_hint(err, "give the path: '%s' or '%s'", found->path, repo->path);
			return NULL;
		}
		found = repo;
	}
	return found;
}

static const struct kr_repo *
fail_unconnected(const struct kr_repos *repos, const char *path, struct kr_error *err)
{
	kr_fail(err, KR_E_NOT_FOUND, "'%s' is not connected", path);
	kr_hint(err, repos->repo_count ? "'kraft repo list' shows what is" : "'kraft repo connect' connects it");
	return NULL;
}

const struct kr_repo *
kr_entry_find(struct kr_arena *arena, const struct kr_repos *repos, const char *word, struct kr_error *err)
{
	const struct kr_repo *repo = NULL;
	struct kr_checkout checkout;
	const char *path;

	if (word && !strchr(word, '/') && word[0] != '.')
		repo = entry_named(repos, word, err);
	if (repo || err->code)
		return repo;
	path = kr_entry_resolve(arena, word ? word : ".");
	repo = path ? kr_entry_of(arena, repos, path) : NULL;
	if (repo)
		return repo;
	if (!path || access(path, F_OK) < 0)
		return fail_unconnected(repos, word ? word : ".", err);
	if (kr_checkout_find(arena, path, &checkout, err) < 0)
		return err->code == KR_E_NOT_FOUND ? fail_unconnected(repos, path, err) : NULL;
	repo = kr_entry_of(arena, repos, checkout.root);
	return repo ? repo : fail_unconnected(repos, checkout.root, err);
}
