/*
 * What is only of kind: os on macOS in a plan. Seatbelt has no mounts: it allows operations on places of the host or denies
 * them. So a step says what may be done at a place, at the path that the place has; nothing of kraft's is anywhere else than
 * where it is installed, /tmp is the host's and not for the worker, and its TMPDIR is a directory of the session's (MAC-03, -04, -07).
 *
 * Order: the system, with what in it is not the system's; then places, parents before children; then masks. A later step wins.
 *
 * git works on the repository itself (MAC-08). What of its directory is for the worker is a list of what git needs, not of what
 * it must not have: a name that is on no list, in whatever spelling, is neither readable nor writable. Written are
 *   - the linked worktree's own directory, but for the files by which git finds the repository and the worktree from there
 *   - one branch and its log, by their names and the names of their locks
 *   - objects: new ones, none that is there. An object's name is believed to be that of its content, so who could change one
 *     would change what other branches hold.
 * hooks, configuration, info, packs, alternates, other branches, other worktrees and the repository's HEAD are not.
 */
#include "plan/build.h"

#include "base/path.h"
#include "base/text.h"

#define XCODE_SELECTED "/var/db/xcode_select_link"
#define XCODE_USUAL "/Applications/Xcode.app/Contents/Developer"

enum { SYSTEM_MOST = 32 };

bool
kr_build_is_macos(const struct kr_build *b)
{
	return b->host->os == KR_SYSTEM_MACOS && !b->request->container;
}

const char *
kr_build_bin(const struct kr_build *b)
{
	return kr_build_is_macos(b) ? kr_path_join(b->arena, b->host->guest_dir, "bin") : "/opt/kraft/bin";
}

const struct kr_plan_macos *
kr_plan_macos_shown(
	struct kr_arena *arena, const struct kr_host *host, const char *session, const struct kr_plan_shared_git *git)
{
	struct kr_plan_macos *macos = kr_arena_new(arena, struct kr_plan_macos);

	macos->tmpdir = kr_arena_printf(arena, "%s/t/%s", host->places.run_dir, session);
	macos->git = git;
	macos->proxy = "http://127.0.0.1"; /* no value of it is printed */
	return host->os == KR_SYSTEM_MACOS ? macos : NULL;
}

/* ---- the system ---- */

static const struct {
	const char *path, *because;
	enum kr_step_kind kind;
	enum kr_reach reach;
} system_places[] = {
	{ "/", "the names in it; programs look at it as they start", KR_STEP_BIND_RO, KR_REACH_ALONE },
	{ "/usr", "the system's programs and libraries", KR_STEP_BIND_RO, KR_REACH_TREE },
	{ "/usr/local", "not the system's; expose it", KR_STEP_MASK, KR_REACH_TREE },
	{ "/bin", "the system's programs", KR_STEP_BIND_RO, KR_REACH_TREE },
	{ "/sbin", "the system's programs", KR_STEP_BIND_RO, KR_REACH_TREE },
	{ "/System", "the system", KR_STEP_BIND_RO, KR_REACH_TREE },
	{ "/System/Volumes", "the whole disk by other names", KR_STEP_MASK, KR_REACH_TREE },
	{ "/System/Volumes/Preboot/Cryptexes", "the part of the system that is updated by itself", KR_STEP_BIND_RO, KR_REACH_TREE },
	{ "/private/etc", "the system's settings and certificates", KR_STEP_BIND_RO, KR_REACH_TREE },
	{ "/private/var/db/timezone", "time zones", KR_STEP_BIND_RO, KR_REACH_TREE },
	{ "/private/var/db/dyld", "the loader's", KR_STEP_BIND_RO, KR_REACH_TREE },
	{ "/Library/Developer/CommandLineTools", "git, compilers: /usr/bin/git leads there", KR_STEP_BIND_RO, KR_REACH_TREE },
	{ "/Library/Preferences/com.apple.dt.Xcode.plist", "whether Xcode's licence is accepted", KR_STEP_BIND_RO, KR_REACH_ALONE },
	{ "/Library/Apple/System/Library/PrivateFrameworks/MobileDevice.framework", "Xcode loads it before its first launch", KR_STEP_BIND_RO,
		KR_REACH_TREE },
};

static void
add_system_step(struct kr_build *b, struct kr_step step)
{
	struct kr_strs *list = step.kind == KR_STEP_MASK ? &b->not_system : &b->system_dirs;

	KR_BUG_IF(b->system_step_count == SYSTEM_MOST);
	b->system_steps[b->system_step_count++] = step;
	if (step.reach == KR_REACH_TREE)
		kr_strs_add(b->arena, list, step.path);
}

static bool
is_there(const struct kr_build *b, const char *path)
{
	return b->host->fs->look(b->host->fs->context, path).type != KR_FS_NONE;
}

/* An application is shown with what it brings; another developer directory as it is. */
static const char *
contents_of(struct kr_build *b, const char *developer)
{
	const char *contents = kr_path_dirname(b->arena, developer);

	return strcmp(kr_path_basename(developer), "Developer") == 0 && strcmp(kr_path_basename(contents), "Contents") == 0
			   ? contents
			   : developer;
}

/* What xcode-select has chosen, by the link that it writes; where it has not, what xcrun takes then. */
static void
add_xcode(struct kr_build *b)
{
	struct kr_fs_entry entry;
	const char *real = kr_fs_resolve(b->host->fs, b->arena, XCODE_SELECTED, &entry, NULL), *why;

	if (!real)
		real = kr_fs_resolve(b->host->fs, b->arena, XCODE_USUAL, &entry, NULL);
	if (!real || entry.type != KR_FS_DIR || kr_build_is_shown(b, real))
		return;
	real = contents_of(b, real);
	why = kr_build_why_not(b, real);
	if (why)
		kr_build_note(b, "the developer directory that xcode-select has chosen needs '%s' shown, and that %s: left out", real, why);
	else
		add_system_step(b, (struct kr_step){ KR_STEP_BIND_RO, .path = real, .source = real, .check = KR_CHECK_PROTECT,
							   .because = "the developer tools that xcode-select has chosen" });
}

void
kr_build_macos_system(struct kr_build *b)
{
	b->system_steps = kr_arena_alloc(b->arena, SYSTEM_MOST * sizeof(*b->system_steps));
	for (size_t i = 0; i < KR_COUNT(system_places); i++) {
		const char *path = system_places[i].path;

		if (system_places[i].kind == KR_STEP_MASK || is_there(b, path))
			add_system_step(b, (struct kr_step){ system_places[i].kind, .reach = system_places[i].reach, .path = path,
								   .source = path, .because = system_places[i].because });
	}
	add_xcode(b);
}

/* ---- kraft's own places ---- */

static void
show(struct kr_build *b, const char *path, bool writable, enum kr_reach reach, const char *because)
{
	kr_build_show(b, (struct kr_show){ .path = path, .source = path, .writable = writable, .ours = true, .reach = reach,
						 .check = KR_CHECK_SYSTEM, .because = because });
}

/* Two members of one repository, or two repositories that borrow from one, need one place. */
static bool
is_shown_already(const struct kr_build *b, const char *path)
{
	for (size_t i = 0; i < b->show_count; i++)
		if (strcmp(b->shows[i].path, path) == 0)
			return true;
	return false;
}

static void
show_once(struct kr_build *b, const char *path, enum kr_reach reach, const char *because)
{
	if (!is_shown_already(b, path))
		show(b, path, false, reach, because);
}

/* What git reads of a repository. Its configuration is whole, with what addresses of remotes carry: git does not work without. */
static const struct {
	const char *name;
	enum kr_reach reach;
	const char *because;
} git_reads[] = {
	{ "HEAD", KR_REACH_ALONE, "without it, it is no repository" },
	{ "config", KR_REACH_ALONE, "the repository's settings" },
	{ "config.worktree", KR_REACH_ALONE, "the repository's settings" },
	{ "packed-refs", KR_REACH_ALONE, "branches and tags" },
	{ "refs", KR_REACH_TREE, "branches and tags" },
	{ "shallow", KR_REACH_ALONE, "where its history is cut off" },
	{ "info", KR_REACH_TREE, "what is ignored" },
	{ "lfs", KR_REACH_TREE, "the repository's large files" },
};

static void
add_common(struct kr_build *b, const struct kr_plan_shared_git *git)
{
	const char *objects = kr_path_join(b->arena, git->common, "objects");

	show_once(b, git->common, KR_REACH_ALONE, "the names in the repository's git directory");
	for (size_t i = 0; i < KR_COUNT(git_reads); i++) {
		const char *path = kr_path_join(b->arena, git->common, git_reads[i].name);

		if (is_there(b, path))
			show_once(b, path, git_reads[i].reach, git_reads[i].because);
	}
	if (!is_shown_already(b, objects))
		kr_build_show(b, (struct kr_show){ .path = objects, .source = objects, .ours = true, .adds = true,
							 .check = KR_CHECK_SYSTEM, .because = "the repository's objects; new ones can be added, none changed" });
	for (size_t i = 0; i < git->borrowed.n; i++)
		show_once(b, git->borrowed.v[i], KR_REACH_TREE, "objects that the repository borrows");
}

static void
add_branch(struct kr_build *b, const struct kr_plan_shared_git *git)
{
	const char *ref = kr_arena_printf(b->arena, "%s/refs/heads/%s", git->common, git->branch);

	show(b, ref, true, KR_REACH_ALONE, "the item's branch");
	show(b, kr_arena_printf(b->arena, "%s.lock", ref), true, KR_REACH_ALONE, "git writes a branch by its lock");
	show(b, kr_arena_printf(b->arena, "%s/logs/refs/heads/%s", git->common, git->branch), true, KR_REACH_ALONE,
		"the log of the item's branch");
}

/* By these git goes on from the worktree's directory: the worker's git would not need to write them, and the host's believes them. */
static void
add_worktree_directory(struct kr_build *b, const struct kr_plan_shared_git *git)
{
	static const char *const kept[] = { "commondir", "gitdir", "config.worktree", "locked" };

	show(b, git->worktree_git_dir, true, KR_REACH_TREE, "the worktree's own index, HEAD and log");
	for (size_t i = 0; i < KR_COUNT(kept); i++)
		show(b, kr_path_join(b->arena, git->worktree_git_dir, kept[i]), false, KR_REACH_ALONE, "leads the host's git: stays as it is");
}

static void
add_git(struct kr_build *b)
{
	for (const struct kr_plan_shared_git *git = b->request->macos->git; git; git = git->next) {
		const char *worktree = git->worktree ? git->worktree : b->request->worktree;

		add_common(b, git);
		add_branch(b, git);
		add_worktree_directory(b, git);
		show(b, kr_path_join(b->arena, worktree, ".git"), false, KR_REACH_ALONE, "leads to the repository");
	}
}

/* What outlives the session lies in the item's home, and a link in the agent's directory leads there. */
static void
add_config_dir(struct kr_build *b, const struct kr_plan_agent *agent)
{
	show(b, agent->config_dir, true, KR_REACH_TREE, "the agent's own directory, of this session alone");
	for (size_t i = 0; i < agent->kept_count; i++)
		kr_build_show(b, (struct kr_show){ .path = agent->kept[i].path, .source = agent->kept[i].path, .writable = true, .ours = true,
							 .check = KR_CHECK_SYSTEM, .device = agent->kept[i].device, .inode = agent->kept[i].inode,
							 .because = "kept for the agent's next session" });
}

void
kr_build_macos_own(struct kr_build *b)
{
	const struct kr_request *r = b->request;
	const bool is_agents = r->agent && !r->is_short_run;

	show(b, b->host->guest_dir, false, KR_REACH_TREE, "kraft's own programs");
	show(b, r->results_dir, false, KR_REACH_TREE, "the item's results");
	show(b, r->result_file, true, KR_REACH_BESIDE, "this session's result");
	show(b, r->channel_dir, false, KR_REACH_TREE, is_agents && r->agent->files->n ? "the agent's settings" : "the session's own");
	show(b, r->home, true, KR_REACH_TREE, "the item's home, HOME inside");
	show(b, r->worktree, true, KR_REACH_TREE, "the worktree");
	show(b, r->macos->tmpdir, true, KR_REACH_TREE, "TMPDIR, gone with the session");
	add_git(b);
	if (is_agents && r->agent->config_dir)
		add_config_dir(b, r->agent);
}

/* ---- steps ---- */

void
kr_build_macos_steps(struct kr_build *b)
{
	const size_t most = b->system_step_count + b->show_count + b->masks.n + 1;

	b->plan->steps = kr_arena_alloc(b->arena, most * sizeof(*b->plan->steps));
	for (size_t i = 0; i < b->system_step_count; i++)
		kr_build_step(b, b->system_steps[i]);
	kr_build_step_shows(b);
	if (!b->request->macos->git)
		kr_build_step(b, (struct kr_step){ KR_STEP_MASK, .path = kr_path_join(b->arena, b->request->worktree, ".git"),
							 .because = "the repository's git directory is not shown" });
	kr_build_step_masks(b);
	KR_BUG_IF(b->plan->step_count > most);
}
