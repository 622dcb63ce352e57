/*
 * kraft's own places, as every kind of sandbox shows them: each at its own path, and each a mount where a
 * worker could otherwise put another directory or file in its place.
 */
#include "plan/build.h"

#include "base/path.h"

void
kr_build_show_own(
	struct kr_build *b, const char *path, const char *source, bool writable, const char *because)
{
	kr_build_show(b, (struct kr_show){ .path = path,
						 .source = source,
						 .writable = writable,
						 .ours = true,
						 .check = KR_CHECK_SYSTEM,
						 .because = because });
}

static bool
is_own(const struct kr_build *b, const char *path)
{
	for (size_t i = 0; i < b->show_count; i++)
		if (b->shows[i].ours && strcmp(b->shows[i].path, path) == 0)
			return true;
	return false;
}

/* Read-only; two repositories may borrow from one. */
static void
show_once(struct kr_build *b, const char *path, const char *because)
{
	if (!is_own(b, path))
		kr_build_show_own(b, path, path, false, because);
}

/*
 * REF-01. The worker's git is its own, but for the file through which it finds the repository's objects: that
 * one, and each directory on the way to it, is a mount, so none can be renamed and another put in its place.
 * `.git` of the worktree is covered for the same reason: who calls git there later, outside, must not be led
 * elsewhere (GIT-04).
 */
static void
add_tree(struct kr_build *b, const struct kr_plan_git *git)
{
	const char *worktree = git->worktree ? git->worktree : b->request->worktree;
	const char *objects = kr_path_join(b->arena, git->dir, "objects");
	const char *info = kr_path_join(b->arena, git->dir, "objects/info");
	const char *alternates = kr_path_join(b->arena, git->dir, "objects/info/alternates");

	kr_build_show_own(b, git->dir, git->dir, true, "the item's own git directory");
	kr_build_show_own(b, objects, objects, true, "its objects; a mount, so that it stays in its place");
	kr_build_show_own(b, info, info, true, "a mount, so that it stays in its place");
	kr_build_show_own(b, alternates, alternates, false, "names the repository's objects");
	show_once(b, git->objects, "the repository's objects");
	for (size_t i = 0; i < git->borrowed.n; i++)
		show_once(b, git->borrowed.v[i], "objects that the repository borrows");
	if (git->lfs)
		show_once(b, git->lfs, "the repository's large files");
	kr_build_show_own(b, kr_path_join(b->arena, worktree, ".git"), git->git_file, false,
		"leads to the item's own git directory");
}

/* REF-06, GIT-22: whoever could rename a directory on the way to a member could put another one in its place.
 */
static void
add_places(struct kr_build *b, const struct kr_plan_git *git)
{
	for (size_t i = 0; i < git->place_count; i++) {
		const struct kr_plan_place *place = &git->places[i];

		if (is_own(b, place->path))
			continue; /* on the way to two members */
		kr_build_show(
			b, (struct kr_show){ .path = place->path,
				   .source = place->path,
				   .writable = true,
				   .ours = true,
				   .check = KR_CHECK_SYSTEM,
				   .device = place->device,
				   .inode = place->inode,
				   .because = i + 1 == git->place_count ? "a member; a mount, so that it stays in its place"
														: "a mount, so that it stays in its place" });
	}
}

static void
add_git(struct kr_build *b)
{
	for (const struct kr_plan_git *git = b->request->git; git; git = git->next) {
		add_places(b, git);
		add_tree(b, git);
	}
}

/* A mount, so that what an earlier session put into the place of what is kept is not taken for it. */
static void
add_config_dir(struct kr_build *b, const struct kr_plan_agent *agent)
{
	kr_build_show_own(
		b, agent->config_dir, agent->config_dir, true, "the agent's own directory, of this session alone");
	for (size_t i = 0; i < agent->kept_count; i++) {
		const struct kr_plan_place *kept = &agent->kept[i];

		kr_build_show(b,
			(struct kr_show){ .path = kr_path_join(b->arena, agent->config_dir, kr_path_basename(kept->path)),
				.source = kept->path,
				.writable = true,
				.ours = true,
				.check = KR_CHECK_SYSTEM,
				.device = kept->device,
				.inode = kept->inode,
				.because = "kept for the agent's next session" });
	}
}

static const char *
channel_because(const struct kr_build *b)
{
	const struct kr_plan_agent *agent = b->request->is_short_run ? NULL : b->request->agent;
	const char *because = "the session's channel to kraft";

	for (size_t i = 0; agent && i < agent->files->n; i++)
		because = kr_arena_printf(
			b->arena, "%s%s%s", because, i ? ", " : ", and the agent's settings: ", agent->files->v[i]);
	return because;
}

const char *
kr_build_result_path(const struct kr_build *b)
{
	const struct kr_request *r = b->request;

	return r->agent && !r->is_short_run && !r->macos ? KR_AGENT_RESULT : r->result_file;
}

/* OS-MNT-04, -05, -07 to -09; CTR-03, CTR-04 */
void
kr_build_own(struct kr_build *b)
{
	const struct kr_request *r = b->request;

	if (r->repo->sandbox.unrestricted_network)
		kr_build_show_own(
			b, "/opt/kraft/init", kr_path_join(b->arena, b->host->guest_dir, "init"), false, "kraft's init");
	else
		kr_build_show_own(
			b, "/opt/kraft", b->host->guest_dir, false, "kraft's init, and the kraft command for the worker");
	kr_build_show_own(b, r->results_dir, r->results_dir, false, "the item's results");
	kr_build_show_own(b, kr_build_result_path(b), r->result_file, true, "this session's result");
	kr_build_show_own(b, r->channel_dir, r->channel_dir, false, channel_because(b));
	kr_build_show_own(b, r->home, r->home, true, "the item's home, HOME inside");
	kr_build_show_own(b, r->worktree, r->worktree, true, "the worktree");
	if (r->git)
		add_git(b);
	if (r->agent && !r->is_short_run && r->agent->config_dir)
		add_config_dir(b, r->agent);
}
