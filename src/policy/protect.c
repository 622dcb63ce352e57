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

/* As the file system compares them (MAC-04): what has another spelling is the same file on a Mac. */
static bool
is_within(const struct kr_places *places, const char *path, const char *directory)
{
	return places->is_macos ? kr_path_is_within_folded(path, directory) : kr_path_is_within(path, directory);
}

static bool
is_same(const struct kr_places *places, const char *a, const char *b)
{
	return places->is_macos ? is_within(places, a, b) && is_within(places, b, a) : strcmp(a, b) == 0;
}

bool
kr_is_credential_name(const struct kr_places *places, const char *basename)
{
	for (size_t i = 0; i < KR_COUNT(kr_credential_names); i++)
		if (is_same(places, basename, kr_credential_names[i]))
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
why_home(struct kr_arena *arena, const struct kr_places *places, const char *path)
{
	if (is_same(places, path, places->home))
		return "is the home directory";
	if (is_within(places, places->home, path))
		return kr_arena_printf(arena, "holds the home directory '%s'", places->home);
	return NULL;
}

static const char *
why_one(struct kr_arena *arena, const struct kr_places *places, const char *protected, const char *path)
{
	const char *relation;

	if (is_same(places, path, protected))
		relation = "is";
	else if (is_within(places, path, protected))
		relation = "is inside";
	else if (is_within(places, protected, path))
		relation = "holds";
	else
		return NULL;
	return kr_arena_printf(arena, "%s '%s', which is protected", relation, protected);
}

const char *
kr_protect_why_among(
	struct kr_arena *arena, const struct kr_places *places, const struct kr_strs *protected, const char *path)
{
	const char *why = NULL;

	for (size_t i = 0; !why && i < protected->n; i++)
		why = why_one(arena, places, protected->v[i], path);
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
 * often. Where case does not count, what is below begins at no certain byte. */
static const char *
why_in_home(struct kr_arena *arena, const struct kr_places *places, const char *path)
{
	const char *home = places->home, *rest = path + (home[1] ? strlen(home) + 1 : 1), *why = NULL;

	if (!is_within(places, path, home))
		return NULL;
	for (size_t i = 0; !why && i < KR_COUNT(protected_in_home); i++) {
		const char *name = protected_in_home[i];

		if (places->is_macos || begins_with_directory(rest, name) || begins_with_directory(name, rest))
			why = why_one(arena, places, kr_path_join(arena, home, name), path);
	}
	return why;
}

const char *
kr_protect_why(struct kr_arena *arena, const struct kr_places *places, const char *path)
{
	const char *const own[] = { places->kraft_home, places->run_dir, places->config_dir }, *why;

	KR_BUG_IF(!kr_path_is_clean(path));
	why = why_home(arena, places, path);
	for (size_t i = 0; !why && i < KR_COUNT(own); i++)
		why = why_one(arena, places, own[i], path);
	if (!why)
		why = why_in_home(arena, places, path);
	if (!why && kr_is_credential_name(places, kr_path_basename(path)))
		why = kr_arena_printf(arena, "is named '%s', a name that holds credentials", kr_path_basename(path));
	return why;
}

/* What the sandbox makes itself, or does not take from the host. `below`: nor what is inside; that is the sandbox's too, or has
 * no place to be mounted on. */
struct own_place {
	const char *path;
	bool below;
};
static const struct own_place own_on_linux[] = {
	{ "/proc", true },
	{ "/sys", true },
	{ "/dev", true },
	{ "/run", true },     /* sockets of services live here */
	{ "/tmp", false },    /* a directory in it can be mounted, it cannot */
	{ "/var/tmp", true }, /* a link inside */
	{ "/opt/kraft", true },
};
/* There are no mounts: what is shown is the host's own. Each by the name of its link and by the name that is behind it. */
static const struct own_place own_on_macos[] = {
	{ "/dev", true },
	{ "/.vol", true },           /* every file by its number */
	{ "/System/Volumes", true }, /* the whole disk, by other names than the rules are about */
	{ "/tmp", false },           /* everybody's: a directory in it can be shown, it cannot */
	{ "/private/tmp", false },
	{ "/var/tmp", false },
	{ "/private/var/tmp", false },
	{ "/var/folders", false },
	{ "/private/var/folders", false },
	{ "/var/run", true }, /* sockets of services live here */
	{ "/private/var/run", true },
};

static const char *
why_own(struct kr_arena *arena, const struct kr_places *places, const struct own_place *own, const char *path)
{
	const char *relation = NULL;

	if (is_same(places, path, own->path))
		relation = "is";
	else if (is_within(places, own->path, path))
		relation = "holds";
	else if (own->below && is_within(places, path, own->path))
		relation = "is inside";
	if (!relation)
		return NULL;
	return kr_arena_printf(arena, "%s '%s', which the sandbox does not take from the host", relation, own->path);
}

const char *
kr_place_why(struct kr_arena *arena, const struct kr_places *places, const char *path)
{
	const struct own_place *own = places->is_macos ? own_on_macos : own_on_linux;
	const size_t n = places->is_macos ? KR_COUNT(own_on_macos) : KR_COUNT(own_on_linux);
	const char *why = NULL;

	for (size_t i = 0; !why && i < n; i++)
		why = why_own(arena, places, &own[i], path);
	return why;
}
