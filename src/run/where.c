#include "run/where.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/portable.h"

int
kr_where_phase(const char *name, enum kr_phase *out, struct kr_error *err)
{
	if (!name)
		name = "runtime";
	for (int phase = 0; phase < KR_PHASE_COUNT; phase++)
		if (strcmp(name, kr_phase_name((enum kr_phase)phase)) == 0) {
			*out = (enum kr_phase)phase;
			return 0;
		}
	kr_fail(err, KR_E_USAGE, "there is no phase '%s'", name);
	return kr_hint(err, "one of 'install', 'runtime'");
}

int
kr_where_check_apart(const struct kr_places *places, const char *root, struct kr_error *err)
{
	const char *const own[] = { places->kraft_home, places->run_dir };

	for (size_t i = 0; i < KR_COUNT(own); i++) {
		if (!kr_path_is_within(own[i], root))
			continue;
		kr_fail(err, KR_E_REFUSED, "the checkout '%s' holds kraft's own directory '%s'", root, own[i]);
		return kr_hint(err, "set KRAFT_HOME to a directory outside of it");
	}
	return 0;
}

int
kr_where_find(struct kr_arena *arena, const struct kr_places *places, const char *repo, struct kr_where *out,
	struct kr_error *err)
{
	char cwd[KR_PATH_MAX];
	const char *start;

	if (!getcwd(cwd, sizeof(cwd)))
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot tell the current directory");
	out->here = kr_arena_dup(arena, cwd);
	start = repo ? kr_path_join(arena, out->here, repo) : out->here;
	if (!start)
		return kr_fail(err, KR_E_USAGE, "'%s' is too long for a path", repo);
	if (kr_checkout_find(arena, start, &out->checkout, err) < 0)
		return -1;
	if (kr_where_check_apart(places, out->checkout.root, err) < 0)
		return -1;
	out->repos = kr_repos_load(arena, places, err);
	if (!out->repos)
		return -1;
	out->repo = kr_repos_find(out->repos, out->checkout.root);
	if (out->repo)
		return 0;
	kr_fail(err, KR_E_NOT_CONNECTED, "'%s' is not connected to kraft", out->checkout.root);
	return kr_hint(
		err, "'kraft repo connect %s' writes its entry in '%s'", repo ? repo : ".", out->repos->file);
}

static void
tell_place(struct kr_arena *arena, const struct kr_places *places, struct kr_where *where, enum kr_layer layer)
{
	const bool is_host = layer == KR_LAYER_HOST;

	where->sandbox_file = is_host ? kr_path_join(arena, places->config_dir, "policy.yaml") : where->repos->file;
	where->sandbox_from = is_host || layer == KR_LAYER_REPO
							  ? kr_arena_printf(arena, "'%s' in '%s'", is_host ? "defaults" : where->repo->name,
									where->sandbox_file)
							  : kr_layer_words(layer);
}

int
kr_where_layers(struct kr_arena *arena, const struct kr_places *places,
	const struct kr_policy_layer *const layers[KR_LAYER_COUNT], struct kr_where *where, struct kr_error *err)
{
	const struct kr_policy_layer *usual[KR_LAYER_COUNT] = { [KR_LAYER_REPO] = &where->repo->policy };
	struct kr_policy_file *file = kr_arena_new(arena, struct kr_policy_file);
	struct kr_policy *policy = &where->policy;
	struct kr_repo *repo;

	if (!layers && kr_policy_file_load(arena, places, file, err) < 0)
		return -1;
	usual[KR_LAYER_HOST] = &file->layer;
	if (kr_policy_combine(arena, layers ? layers : usual, NULL, policy, err) < 0)
		return -1;
	tell_place(arena, places, where, policy->sandbox ? policy->sandbox_from : KR_LAYER_REPO);
	if (!policy->sandbox || policy->sandbox_from == KR_LAYER_REPO)
		return 0;
	repo = kr_arena_new(arena, struct kr_repo);
	*repo = *where->repo;
	repo->sandbox = policy->sandbox->sandbox;
	repo->sandbox_is_false = policy->sandbox->sandbox_is_false;
	where->repo = repo;
	return 0;
}

/* Looked up without following links, which a worker could have made. */
const char *
kr_where_cwd(struct kr_arena *arena, const struct kr_where *where, const char *worktree, const char **wanted)
{
	const char *root = where->checkout.root, *cwd = worktree;

	if (kr_path_is_within(where->here, root)) {
		cwd = kr_path_clean(arena, kr_arena_printf(arena, "%s/%s", worktree, where->here + strlen(root)));
		if (!cwd)
			cwd = worktree;
	}
	*wanted = cwd;
	while (strcmp(cwd, worktree) != 0) {
		kr_auto_fd int fd = kr_path_open(cwd, KR_O_PLACE, NULL);

		if (fd >= 0)
			break;
		cwd = kr_path_dirname(arena, cwd);
	}
	return cwd;
}
