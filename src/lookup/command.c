/*
 * From the word a person types to the directories a sandbox must show for it to run (OS-CMD-01 to -09).
 *
 * Order: find the file (on PATH, or where the word says); follow its links to the real file; decide what to
 * show for it; then the same once for the interpreter of a script; last, which links on the way have to be
 * made again inside, because the command keeps the name and path it has on the host.
 *
 * Trust: PATH and the directories on it are the person's. The checkout and the worktree are the worker's:
 * nothing in them is found by a bare name, and a file or link in them never chooses what is shown. That is
 * why a path-named command may only lead into what is shown anyway, and why the #! line of one in the
 * worktree is not read.
 */
#include "lookup/lookup.h"

#include <errno.h>

#include "base/path.h"
#include "policy/policy.h"

enum { SKIPS_TOLD_MAX = 32 }; /* a PATH of 100 KiB of nonsense must not become a story of the same length */

/* One lookup in progress. */
struct finder {
	struct kr_arena *arena;
	const struct kr_lookup_input *in;
	struct kr_lookup *out;
	const char *command;
	struct kr_strs links; /* pairs, every link met on the way to something that is shown */
	unsigned skips;
	const char *hint; /* for a command found nowhere: why a candidate was passed over */
};

/* A file found, before it is decided what to show. */
struct found {
	const char *path; /* as it is named */
	const char *real;
	struct kr_fs_entry entry;
	struct kr_strs links;
};

#define say(f, ...) kr_strs_add((f)->arena, &(f)->out->steps, kr_arena_printf((f)->arena, __VA_ARGS__))

/* A candidate is passed over: told, and kept as the hint for "not found". */
#define skip(f, ...)                                                 \
	do {                                                             \
		const char *why_ = kr_arena_printf((f)->arena, __VA_ARGS__); \
		if ((f)->skips++ < SKIPS_TOLD_MAX)                           \
			say((f), "%s: passed over", why_);                       \
		if (!(f)->hint)                                              \
			(f)->hint = why_;                                        \
	} while (0)

static bool
within_any(const struct kr_strs *directories, const char *path)
{
	for (size_t i = 0; i < directories->n; i++)
		if (kr_path_is_within(path, directories->v[i]))
			return true;
	return false;
}

static bool
is_within(const struct finder *f, const char *path, const char *directory)
{
	return f->in->places->is_macos ? kr_path_is_within_folded(path, directory) : kr_path_is_within(path, directory);
}

/* The worker's: the worktree, its home, and the person's checkout of the same files. */
static bool
is_workers(const struct finder *f, const char *path)
{
	return is_within(f, path, f->in->worktree) || (f->in->home && is_within(f, path, f->in->home)) ||
		   (f->in->checkout && is_within(f, path, f->in->checkout));
}

/* Shown whatever the command is. */
static bool
is_shown(const struct finder *f, const char *path)
{
	const bool is_system = within_any(f->in->system_dirs, path) && !(f->in->not_system && within_any(f->in->not_system, path));

	return is_system || kr_path_is_within(path, f->in->worktree) || (f->in->home && kr_path_is_within(path, f->in->home)) ||
		   within_any(f->in->expose, path);
}

/* A link that cannot be made again inside: the sandbox has something else there. /run is empty inside, so one
 * can. On macOS none has to be made. */
static bool
cannot_be_made(const struct finder *f, const char *link)
{
	return !f->in->places->is_macos && !kr_path_is_within(link, "/run") && kr_place_why(f->arena, f->in->places, link) != NULL;
}

/* The first link on the way that could not exist inside; NULL when all can. */
static const char *
impossible_link(const struct finder *f, const struct kr_strs *links)
{
	for (size_t i = 0; i < links->n; i += 2)
		if (!is_shown(f, links->v[i]) && cannot_be_made(f, links->v[i]))
			return links->v[i];
	return NULL;
}

/*
 * A clean path that names what `path` (absolute, perhaps with "..") names for the kernel, which takes ".."
 * after it has followed a link. NULL when it is too long.
 */
static const char *
clean_as_kernel(const struct finder *f, const char *path)
{
	const char *clean = kr_path_clean(f->arena, path), *physical, *lexical;
	struct kr_fs_entry entry;

	if (!clean || !strstr(path, ".."))
		return clean;
	physical = kr_fs_resolve(f->in->fs, f->arena, path, &entry, NULL);
	lexical = kr_fs_resolve(f->in->fs, f->arena, clean, &entry, NULL);
	return physical && (!lexical || strcmp(physical, lexical) != 0) ? physical : clean;
}

/* Follows the links of `path`. False when nothing is there; found->entry.sys_errno says why. */
static bool
follow(const struct finder *f, const char *path, struct found *found)
{
	*found = (struct found){ .path = path };
	found->real = kr_fs_resolve(f->in->fs, f->arena, path, &found->entry, &found->links);
	return found->real != NULL;
}

static void
tell_links(const struct finder *f, const struct found *found)
{
	for (size_t i = 0; i + 1 < found->links.n; i += 2)
		say(f, "'%s' is a link to '%s'", found->links.v[i], found->links.v[i + 1]);
	if (found->links.n)
		say(f, "the real file is '%s'", found->real);
}

/* ---- on PATH ---- */

/* Is this candidate on PATH one that can be run? Says why not when there is something there. */
static bool
usable(struct finder *f, const char *path, struct found *found)
{
	const char *link;

	if (!follow(f, path, found)) {
		int why = found->entry.sys_errno;

		if (why == ENOENT && f->in->fs->look(f->in->fs->context, path).type == KR_FS_LINK)
			skip(f, "'%s' is a link that leads nowhere", path);
		else if (why != ENOENT && why != ENOTDIR)
			skip(f, "'%s' cannot be reached (%s)", path, strerror(why));
		return false;
	}
	if (found->entry.type != KR_FS_FILE || !found->entry.executable)
		skip(f, "'%s' is not an executable file", path);
	else if (is_workers(f, found->real))
		skip(f, "'%s' leads to '%s', and nothing in the checkout or worktree is found by its name", path,
			found->real);
	else if ((link = impossible_link(f, &found->links)) != NULL)
		skip(f, "'%s' leads through '%s', which cannot be the same inside", path, link);
	else
		return true;
	return false;
}

/* An entry that is not used: worth a hint only when the command lies there. */
static void
pass_over_entry(struct finder *f, const char *raw, const char *why)
{
	const char *there = raw[0] == '/' ? raw : kr_path_join(f->arena, f->in->cwd, raw), *file;

	if (f->skips++ < SKIPS_TOLD_MAX)
		say(f, "the entry '%s' of PATH is %s: passed over", raw, why);
	file = there ? kr_path_join(f->arena, there, f->command) : NULL;
	if (!f->hint && file && f->in->fs->look(f->in->fs->context, file).type != KR_FS_NONE)
		f->hint = kr_arena_printf(f->arena, "nothing in the checkout or worktree is found by its name: "
											"call it by its path in the worktree");
}

/* The directory that one entry of PATH names, when it may be used; else NULL, told. */
static const char *
path_entry(struct finder *f, const char *text, size_t n)
{
	const char *raw = kr_arena_dup_n(f->arena, text, n), *directory;

	if (raw[0] != '/') {
		pass_over_entry(f, raw, n ? "not absolute" : "empty");
		return NULL;
	}
	directory = clean_as_kernel(f, raw);
	if (!directory || is_workers(f, directory)) {
		pass_over_entry(f, raw, directory ? "in the checkout or worktree" : "too long");
		return NULL;
	}
	return directory;
}

static bool
on_path(struct finder *f, const char *name, struct found *found)
{
	if (strlen(name) >= KR_PATH_MAX)
		return false;
	for (const char *p = f->in->path;; p++) {
		size_t n = strcspn(p, ":");
		const char *directory = path_entry(f, p, n), *candidate;

		candidate = directory ? kr_path_join(f->arena, directory, name) : NULL;
		if (candidate && usable(f, candidate, found))
			return true;
		p += n;
		if (!*p)
			return false;
	}
}

static const char *
bin_inside(const struct finder *f)
{
	return f->in->places->is_macos ? f->in->guest_bin : "/opt/kraft/bin";
}

/* kraft's own directory comes first, as it does on the worker's own PATH. */
static bool
is_krafts_own(const struct finder *f, const char *name)
{
	const char *path = f->in->guest_bin ? kr_path_join(f->arena, f->in->guest_bin, name) : NULL;

	return path && strcmp(kr_path_dirname(f->arena, path), f->in->guest_bin) == 0 &&
		   f->in->fs->look(f->in->fs->context, path).executable;
}

/* ---- what to show ---- */

/* Why a directory may not be shown for a command (OS-EXP-04). */
static const char *
why_not(const struct finder *f, const char *directory)
{
	const char *why = kr_protect_why(f->arena, f->in->places, directory);

	if (!why && f->in->protected_real)
		why = kr_protect_why_among(f->arena, f->in->places, f->in->protected_real, directory);
	if (!why)
		why = kr_place_why(f->arena, f->in->places, directory);
	if (!why && f->in->checkout && is_within(f, f->in->checkout, directory))
		why = kr_arena_printf(f->arena, "holds the checkout '%s'", f->in->checkout);
	return why;
}

static int
refuse_directory(const struct finder *f, const struct found *found, const char *role, const char *narrow,
	const char *directory, const char *why, struct kr_error *err)
{
	bool widened = strcmp(narrow, directory) != 0;

	say(f, "refused: '%s' %s", directory, why);
	kr_fail(err, KR_E_COMMAND_PROTECTED, "%s'%s' is at '%s' and needs '%s' shown, and that %s", role, f->command,
		found->real, directory, why);
	if (widened && !why_not(f, narrow))
		return kr_hint(
			err, "add '%s' to the sandbox's expose list, so that only that directory is shown", narrow);
	return kr_hint(err, "install '%s' in a directory of its own, outside the protected ones",
		kr_path_basename(found->path));
}

static void
show(const struct finder *f, const char *directory, const char *why)
{
	kr_strs_add(f->arena, &f->out->mounts, directory);
	kr_strs_add(f->arena, &f->out->mount_why, why);
}

/* Decides what to show for a real file (OS-CMD-02, -04, -05). */
static int
show_file(struct finder *f, const struct found *found, const char *role, struct kr_error *err)
{
	const char *narrow = kr_path_dirname(f->arena, found->real), *directory = narrow, *why;
	bool is_bin = strcmp(kr_path_basename(narrow), "bin") == 0;

	for (size_t i = 0; i < found->links.n; i++)
		kr_strs_add(f->arena, &f->links, found->links.v[i]);
	if (within_any(f->in->expose, found->real)) {
		say(f, "'%s' is inside an exposed path: nothing more is shown", found->real);
		return 0;
	}
	if (is_shown(f, found->real)) {
		say(f, "'%s' is shown anyway", found->real);
		return 0;
	}
	if (is_bin)
		directory = kr_path_dirname(f->arena, narrow);
	why = why_not(f, directory);
	if (why)
		return refuse_directory(f, found, role, narrow, directory, why, err);
	if (is_bin)
		say(f, "'%s' is a bin/ that no exposed path covers: the prefix above it, '%s', is shown", narrow,
			directory);
	else
		say(f, "'%s', the directory of the real file, is shown", directory);
	if (!within_any(&f->out->mounts, directory))
		show(f, directory,
			kr_arena_printf(f->arena, "%s '%s': %s of '%s'", *role ? "the interpreter of" : "the command",
				f->command, is_bin ? "prefix" : "directory", found->path));
	return 0;
}

/* ---- scripts ---- */

/* Where env would find NAME. A name with a slash is a path; a relative one would be the worktree's. */
static bool
find_for_env(struct finder *f, const char *name, struct found *found)
{
	if (!strchr(name, '/'))
		return !is_krafts_own(f, name) && on_path(f, name, found);
	return name[0] == '/' && kr_path_clean(f->arena, name) && follow(f, kr_path_clean(f->arena, name), found);
}

/* Shows one file that a #! line names; what is missing or the worker's is left to exec. */
static int
show_interpreter(struct finder *f, const struct found *found, struct kr_error *err)
{
	const char *link = impossible_link(f, &found->links);

	if (is_workers(f, found->real) || link) {
		say(f, "'%s' leads to '%s', which is not shown for a script", found->path, link ? link : found->real);
		return 0;
	}
	tell_links(f, found);
	return show_file(f, found, "the interpreter of ", err);
}

static int
show_env_name(struct finder *f, const struct kr_interpreter *script, struct kr_error *err)
{
	struct found found;

	if (!script->name[0]) {
		say(f, "what its env line runs is not plain to see: left to env");
		return 0;
	}
	if (!find_for_env(f, script->name, &found)) {
		say(f, "'%s', which env looks for, is not on PATH: left to env", script->name);
		return 0;
	}
	say(f, "env finds '%s'", found.path);
	return show_interpreter(f, &found, err);
}

/* OS-CMD-03: one level; the interpreter's own #! line is not followed. */
static int
follow_script(struct finder *f, const char *real, struct kr_error *err)
{
	char head[KR_INTERPRETER_HEAD];
	long n = f->in->fs->read_head(f->in->fs->context, real, head, sizeof(head));
	struct kr_interpreter script;
	struct found found;
	const char *path;

	if (n <= 0 || !kr_interpreter_parse(head, (size_t)n, &script))
		return 0;
	say(f, "'%s' is a script for '%s%s%s'", real, script.path, script.name[0] ? " " : "", script.name);
	path = script.path[0] == '/' ? kr_path_clean(f->arena, script.path) : NULL;
	if (!path || !follow(f, path, &found)) {
		say(f, "'%s' %s: left to exec", script.path, path ? "is missing" : "is a relative path");
		return 0;
	}
	if (show_interpreter(f, &found, err) < 0)
		return -1;
	return script.is_env ? show_env_name(f, &script, err) : 0;
}

/* ---- links to be made again ---- */

static void
keep_link(struct finder *f, const char *path, const char *text)
{
	if (is_shown(f, path) || within_any(&f->out->mounts, path))
		return;
	for (size_t i = 0; i < f->out->links.n; i += 2)
		if (strcmp(f->out->links.v[i], path) == 0)
			return;
	kr_strs_add(f->arena, &f->out->links, path);
	kr_strs_add(f->arena, &f->out->links, text);
	if (!f->in->places->is_macos)
		say(f, "the link '%s' is made again inside, so that the name leads to the file", path);
}

/*
 * A program reached through the bin/ of a Python virtual environment runs, since the real file is shown, but
 * without the environment's packages: python looks for pyvenv.cfg beside the name it was called by.
 */
static void
note_virtual_environment(struct finder *f, const char *link)
{
	const char *bin = kr_path_dirname(f->arena, link), *prefix = kr_path_dirname(f->arena, bin);
	const char *mark = kr_path_join(f->arena, prefix, "pyvenv.cfg");

	if (strcmp(kr_path_basename(bin), "bin") != 0 || is_shown(f, prefix) ||
		within_any(&f->out->mounts, prefix) || f->in->fs->look(f->in->fs->context, mark).type != KR_FS_FILE)
		return;
	kr_strs_add(f->arena, &f->out->notes,
		kr_arena_printf(f->arena,
			"'%s' is of the Python virtual environment '%s', whose packages are not shown; add '%s' "
			"to the sandbox's expose list",
			f->command, prefix, prefix));
}

static void
keep_links(struct finder *f)
{
	for (size_t i = 0; i + 1 < f->links.n; i += 2)
		keep_link(f, f->links.v[i], f->links.v[i + 1]);
	for (size_t i = 0; i < f->out->links.n && !f->out->notes.n; i += 2)
		note_virtual_environment(f, f->out->links.v[i]);
}

/* ---- the two ways to name a command ---- */

static int
refuse_bare(const struct finder *f, struct kr_error *err)
{
	say(f, "'%s' was not found on PATH", f->command);
	kr_fail(err, KR_E_NO_COMMAND, "'%s' was not found on PATH", f->command);
	if (f->hint)
		return kr_hint(err, "%s", f->hint);
	return kr_hint(err, "put its directory on the PATH that kraft starts with (expose does not add to PATH)");
}

static int
look_up_bare(struct finder *f, struct kr_error *err)
{
	struct found found;

	if (is_krafts_own(f, f->command)) {
		f->out->exec_path = kr_path_join(f->arena, bin_inside(f), f->command);
		say(f, "'%s' is kraft's own, '%s'", f->command, f->out->exec_path);
		return 0;
	}
	if (!on_path(f, f->command, &found))
		return refuse_bare(f, err);
	say(f, "'%s' is '%s' on PATH", f->command, found.path);
	f->out->exec_path = found.path;
	tell_links(f, &found);
	if (show_file(f, &found, "", err) < 0)
		return -1;
	return follow_script(f, found.real, err);
}

static int
refuse_outside(const struct finder *f, const char *path, struct kr_error *err)
{
	const char *checkout = f->in->checkout;

	say(f, "'%s' is outside the sandbox's view", path);
	kr_fail(err, KR_E_REFUSED,
		"%s leads to %s, outside the sandbox's view; add its directory to the sandbox's expose list", f->command,
		path);
	/* Exposing the checkout is never the way: the worktree has the same file. */
	if (checkout && strcmp(path, checkout) != 0 && kr_path_is_within(path, checkout))
		return kr_hint(err, "it is in your checkout, which is not shown; '%s' is the worktree's own, from its top",
			kr_arena_printf(f->arena, ".%s", path + strlen(checkout)));
	return -1;
}

/*
 * Where a path-named command leaves the view; NULL when it does not. The links the person typed may lie
 * outside and are made again inside; once the way has been through the worktree, the checkout chooses it, and
 * it has to stay inside.
 */
static const char *
leaves_view(const struct finder *f, const struct found *found)
{
	bool workers = is_workers(f, found->path);
	const char *impossible = impossible_link(f, &found->links);

	for (size_t i = 0; i < found->links.n; i += 2) {
		if (workers && !is_shown(f, found->links.v[i]))
			return found->links.v[i];
		workers = workers || is_workers(f, found->links.v[i]);
	}
	if (impossible)
		return impossible;
	return is_shown(f, found->real) ? NULL : found->real;
}

static bool
goes_through_workers(const struct finder *f, const struct found *found)
{
	for (size_t i = 0; i < found->links.n; i += 2)
		if (is_workers(f, found->links.v[i]))
			return true;
	return is_workers(f, found->path) || is_workers(f, found->real);
}

static int
look_up_path(struct finder *f, struct kr_error *err)
{
	const char *raw = f->command, *path, *outside;
	struct found found;

	if (raw[0] != '/')
		raw = kr_arena_printf(f->arena, "%s/%s", f->in->cwd, raw);
	path = clean_as_kernel(f, raw);
	if (!path)
		return kr_fail(err, KR_E_LIMIT, "the path of the command is longer than %d bytes", KR_PATH_MAX - 1);
	f->out->exec_path = path;
	if (kr_path_is_within(path, kr_path_dirname(f->arena, bin_inside(f)))) {
		say(f, "'%s' is kraft's own", path);
		return 0;
	}
	if (!follow(f, path, &found)) {
		if (found.entry.sys_errno == ELOOP)
			return kr_fail(err, KR_E_LIMIT, "'%s' leads through more than 40 links", f->command);
		say(f, "'%s' %s: left to exec", path,
			found.links.n ? "is a link that leads nowhere" : "does not exist");
		return 0;
	}
	say(f, "'%s' names '%s'", f->command, path);
	tell_links(f, &found);
	outside = leaves_view(f, &found);
	if (outside)
		return refuse_outside(f, outside, err);
	if (goes_through_workers(f, &found)) {
		say(f, "it is the worktree's own: it adds nothing, and its #! line is not followed");
		return 0;
	}
	if (show_file(f, &found, "", err) < 0)
		return -1;
	return follow_script(f, found.real, err);
}

int
kr_lookup_command(struct kr_arena *arena, const struct kr_lookup_input *in, const char *command,
	struct kr_lookup *out, struct kr_error *err)
{
	struct finder f = { .arena = arena, .in = in, .out = out, .command = command };
	int failed;

	*out = (struct kr_lookup){ 0 };
	if (!command[0])
		return kr_fail(err, KR_E_REFUSED, "the command is empty");
	failed = strchr(command, '/') ? look_up_path(&f, err) : look_up_bare(&f, err);
	if (!failed)
		keep_links(&f);
	return failed;
}
