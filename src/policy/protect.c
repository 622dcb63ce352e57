/*
 * Which host paths a worker may never be shown (OS-EXP-01 to -03). Pure on text: no link is followed here, so
 * a caller asks twice, for the path as written and for where it leads, and the launch asks a third time on
 * what it opened.
 *
 * Two rules differ on purpose. The home directory may not be shown whole, but toolchains live below it, so
 * "inside" is fine there. A protected directory is refused from all three sides: it, what holds it, what is
 * inside it.
 */
#include "policy/policy.h"

#include "base/path.h"

const char *const kr_credential_names[] = {
	"credentials.toml",
	"credentials",
	".npmrc",
	".netrc",
	".pypirc",
	".git-credentials",
};
const size_t kr_credential_name_count = KR_COUNT(kr_credential_names);

/* Below the home directory. The last two are macOS's; a name that does not exist costs nothing. */
static const char *const protected_in_home[] = {
	".ssh",
	".gnupg",
	".config/gh",
	".config/glab-cli",
	".aws",
	".kube",
	".docker",
	".claude",
	".codex",
	".local/share/keyrings",
	"Library/Keychains",
	"Library/Cookies",
};

bool
kr_is_credential_name(const char *basename)
{
	for (size_t i = 0; i < KR_COUNT(kr_credential_names); i++)
		if (strcmp(basename, kr_credential_names[i]) == 0)
			return true;
	return false;
}

void
kr_protected_paths(struct kr_arena *arena, const struct kr_places *places, struct kr_strs *out)
{
	kr_strs_add(arena, out, places->kraft_home);
	kr_strs_add(arena, out, places->run_dir);
	kr_strs_add(arena, out, places->config_dir);
	for (size_t i = 0; i < KR_COUNT(protected_in_home); i++)
		kr_strs_add(arena, out, kr_path_join(arena, places->home, protected_in_home[i]));
}

static const char *
why_home(struct kr_arena *arena, const char *home, const char *path)
{
	if (strcmp(path, home) == 0)
		return "is the home directory";
	if (kr_path_is_within(home, path))
		return kr_arena_printf(arena, "holds the home directory '%s'", home);
	return NULL;
}

static const char *
why_one(struct kr_arena *arena, const char *protected, const char *path)
{
	const char *relation;

	if (strcmp(path, protected) == 0)
		relation = "is";
	else if (kr_path_is_within(path, protected))
		relation = "is inside";
	else if (kr_path_is_within(protected, path))
		relation = "holds";
	else
		return NULL;
	return kr_arena_printf(arena, "%s '%s', which is protected", relation, protected);
}

const char *
kr_protect_why_among(struct kr_arena *arena, const struct kr_strs *protected, const char *path)
{
	const char *why = NULL;

	for (size_t i = 0; !why && i < protected->n; i++)
		why = why_one(arena, protected->v[i], path);
	return why;
}

/* Both without a leading slash. */
static bool
begins_with_directory(const char *path, const char *directory)
{
	size_t n = strlen(directory);

	return strncmp(path, directory, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* Compares below the home directory only, so that a path that is fine costs no allocation: planning asks
 * often. */
static const char *
why_in_home(struct kr_arena *arena, const char *home, const char *path)
{
	const char *rest = path + (home[1] ? strlen(home) + 1 : 1);

	if (!kr_path_is_within(path, home))
		return NULL;
	for (size_t i = 0; i < KR_COUNT(protected_in_home); i++) {
		const char *name = protected_in_home[i];

		if (begins_with_directory(rest, name) || begins_with_directory(name, rest))
			return why_one(arena, kr_path_join(arena, home, name), path);
	}
	return NULL;
}

const char *
kr_protect_why(struct kr_arena *arena, const struct kr_places *places, const char *path)
{
	const char *const own[] = { places->kraft_home, places->run_dir, places->config_dir }, *why;

	KR_BUG_IF(!kr_path_is_clean(path));
	why = why_home(arena, places->home, path);
	for (size_t i = 0; !why && i < KR_COUNT(own); i++)
		why = why_one(arena, own[i], path);
	if (!why)
		why = why_in_home(arena, places->home, path);
	if (!why && kr_is_credential_name(kr_path_basename(path)))
		why = kr_arena_printf(arena, "is named '%s', a name that holds credentials", kr_path_basename(path));
	return why;
}

/* What the sandbox makes itself. `below`: what is inside is the sandbox's too, or has no place to be mounted
 * on. */
static const struct {
	const char *path;
	bool below;
} own_places[] = {
	{ "/proc", true },
	{ "/sys", true },
	{ "/dev", true },
	{ "/run", true },     /* sockets of services live here */
	{ "/tmp", false },    /* a directory in it can be mounted, it cannot */
	{ "/var/tmp", true }, /* a link inside */
	{ "/opt/kraft", true },
};

const char *
kr_place_why(struct kr_arena *arena, const char *path)
{
	for (size_t i = 0; i < KR_COUNT(own_places); i++) {
		const char *own = own_places[i].path, *relation = NULL;

		if (strcmp(path, own) == 0)
			relation = "is";
		else if (kr_path_is_within(own, path))
			relation = "holds";
		else if (own_places[i].below && kr_path_is_within(path, own))
			relation = "is inside";
		if (relation)
			return kr_arena_printf(
				arena, "%s '%s', which the sandbox does not take from the host", relation, own);
	}
	return NULL;
}
