#include "cli/shown.h"

#include <unistd.h>

#include "backend/backend.h"
#include "base/path.h"
#include "git/private.h"
#include "lookup/lookup.h"
#include "os/host.h"

/* With no command: the setup command in the install phase, else the test command, else `true`. */
static const char *const *
default_command(struct kr_arena *arena, const struct kr_repo *repo, enum kr_phase phase)
{
	const char *line = phase == KR_PHASE_INSTALL ? repo->setup_command : repo->test_command;
	struct kr_strs words = { 0 }, shell = { 0 };

	if (!line || !*line)
		line = "true";
	if (phase == KR_PHASE_RUNTIME && kr_shell_split(arena, line, &words))
		return words.v;
	kr_strs_add(arena, &shell, "/bin/sh");
	kr_strs_add(arena, &shell, "-c");
	kr_strs_add(arena, &shell, line);
	return shell.v;
}

/* The directories down to a member by their names: whether they are what kraft made is asked before a launch.
 */
static void
name_places(struct kr_shown *shown, struct kr_tree *tree)
{
	struct kr_plan_place *places = kr_arena_alloc(shown->arena, (strlen(tree->below) / 2 + 1) * sizeof(*places));
	const char *start = tree->worktree + strlen(shown->item.worktree) + 1;

	for (const char *p = start;; p++) {
		if (*p != '/' && *p)
			continue;
		places[tree->plan.place_count++] = (struct kr_plan_place){
			.path = kr_arena_dup_n(shown->arena, tree->worktree, (size_t)(p - tree->worktree))
		};
		if (!*p)
			break;
	}
	tree->plan.places = places;
}

/* Who commits is not asked for: it takes a run of git. */
static int
plan_git(struct kr_shown *shown, struct kr_error *err)
{
	for (size_t i = 0; i < shown->tree_count; i++) {
		struct kr_tree *tree = &shown->trees[i];
		struct kr_private git;

		if (kr_private_name(
				shown->arena, shown->host.places.run_dir, shown->item.id, (unsigned)i, &tree->checkout, &git, err) < 0)
			return -1;
		tree->plan = (struct kr_plan_git){ .dir = git.dir,
			.git_file = git.git_file,
			.objects = git.objects,
			.borrowed = git.borrowed,
			.lfs = git.lfs };
		tree->worktree = i ? kr_path_join(shown->arena, shown->item.worktree, tree->below) : shown->item.worktree;
		if (i)
			name_places(shown, tree);
	}
	kr_workspace_link(shown->trees, shown->tree_count);
	return 0;
}

/* MAC-08: on macOS the repository itself, by the names that a first session has. */
static const struct kr_plan_shared_git *
shared_git(struct kr_shown *shown)
{
	for (size_t i = 0; i < shown->tree_count; i++) {
		struct kr_tree *tree = &shown->trees[i];
		const char *worktrees = kr_path_join(shown->arena, tree->checkout.common, "worktrees");

		tree->shared = (struct kr_plan_shared_git){ .worktree = i ? tree->worktree : NULL,
			.common = tree->checkout.common,
			.worktree_git_dir = kr_path_join(shown->arena, worktrees, kr_path_basename(tree->worktree)),
			.branch = kr_arena_printf(shown->arena, "kraft/%s", shown->item.id),
			.borrowed = tree->plan.borrowed,
			.next = i + 1 < shown->tree_count ? &shown->trees[i + 1].shared : NULL };
	}
	return &shown->trees->shared;
}

static int
find_trees(struct kr_shown *shown, const struct kr_shown_want *want, struct kr_error *err)
{
	const char *workspace = want->workspace, *item = want->item;

	if (kr_workspace_choose(shown->arena, &shown->host, &shown->where, &workspace, &item, err) < 0 ||
		kr_workspace_trees(shown->arena, &shown->host.places, &shown->where, workspace, &shown->trees, &shown->tree_count, err) <
			0)
		return -1;
	return kr_item_name(shown->arena, &shown->host, &shown->where.checkout, item, &shown->item, err);
}

/* In place of a command, as the launch would have it. Its program is not asked which version it is. */
static int
plan_agent(struct kr_shown *shown, const struct kr_shown_want *want, struct kr_error *err)
{
	struct kr_request *r = &shown->request;
	const struct kr_run_at at = { .host = &shown->host, .session = r->session, .home = r->home };

	if (want->word_count > 1)
		return kr_fail(err, KR_E_USAGE, "an agent's prompt is one word: put it in quotes");
	if (r->phase != KR_PHASE_RUNTIME)
		return kr_fail(err, KR_E_USAGE, "an agent runs in the runtime phase");
	if (kr_harness_load(shown->arena, &shown->host.places, want->harness, &shown->harness, err) < 0)
		return -1;
	shown->agent = (struct kr_run_agent){ .harness = &shown->harness,
		.prompt = want->word_count ? want->words[0] : "PROMPT" };
	if (kr_run_launch_make(shown->arena, &shown->agent, &shown->where.policy, &at, NULL, &shown->launch, err) < 0)
		return -1;
	r->argv = shown->launch.launch.argv.v;
	r->agent = &shown->launch.plan;
	return 0;
}

static int
make_request(struct kr_shown *shown, const struct kr_shown_want *want, struct kr_error *err)
{
	struct kr_request *r = &shown->request;
	const char *wanted;

	if (kr_where_phase(want->phase, &r->phase, err) < 0 ||
		kr_host_gather(shown->arena, &shown->host, err) < 0 ||
		kr_where_find(shown->arena, &shown->host.places, want->repo, &shown->where, err) < 0 ||
		kr_where_layers(shown->arena, &shown->host.places, NULL, &shown->where, err) < 0 ||
		find_trees(shown, want, err) < 0 || plan_git(shown, err) < 0)
		return -1;
	r->repo = shown->where.repo;
	r->item = shown->item.id;
	r->session = "SESSION";
	r->worktree = shown->item.worktree;
	r->checkout = shown->where.checkout.root;
	r->home = shown->item.home;
	r->results_dir = shown->item.results_dir;
	r->result_file = kr_item_result_file(shown->arena, &shown->item, r->session);
	r->channel_dir = kr_session_channel_dir(shown->arena, &shown->host, r->session);
	r->cwd = kr_where_cwd(shown->arena, &shown->where, shown->item.worktree, &wanted);
	r->argv = want->word_count ? (const char *const *)want->words
								 : default_command(shown->arena, r->repo, r->phase);
	if (shown->host.os == KR_SYSTEM_MACOS && r->repo->sandbox.kind == KR_SANDBOX_OS)
		r->macos = kr_plan_macos_shown(shown->arena, &shown->host, r->session, shared_git(shown));
	else
		r->git = &shown->trees->plan;
	r->terminal = !want->harness && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	return want->harness ? plan_agent(shown, want, err) : 0;
}

/* kind: docker. The runtime is asked and nothing is fetched; one that does not answer leaves the image
 * unknown, no more. */
static int
look_at_container(struct kr_shown *shown, struct kr_error *err)
{
	struct kr_run_container *c = &shown->container;
	struct kr_error why = { 0 };
	const int result = kr_run_container_look(shown->arena, &shown->host, shown->request.repo, c, &why);

	if (result < 0 && (why.code != KR_E_WALL || (c->has_runtime && !c->is_enforced))) {
		*err = why;
		return -1;
	}
	if (result < 0)
		shown->remark = kr_arena_printf(
			shown->arena, "what is in the image '%s' cannot be told: %s", c->image.name, why.message);
	else if (!c->image.id)
		shown->remark = kr_arena_printf(
			shown->arena, "the image '%s' is not here yet; the first run fetches it", c->image.name);
	if (c->is_enforced) {
		struct kr_strs *walls = kr_arena_new(shown->arena, struct kr_strs);

		kr_container_walls(shown->arena, &c->runtime, &shown->request.repo->sandbox, c->file.selinux,
			(unsigned)geteuid(), (unsigned)getegid(), walls);
		c->plan.walls = walls;
	}
	if (shown->kit.is_used) {
		struct kr_strs *notes = kr_arena_new(shown->arena, struct kr_strs);

		kr_run_kit_tell(shown->arena, &shown->kit, notes);
		c->plan.notes = notes;
	}
	if (c->ca.path || shown->request.secrets->rule_count)
		c->plan.ca_bundle = kr_run_container_bundle(shown->arena, shown->host.places.run_dir, shown->request.session);
	shown->request.container = &c->plan;
	return 0;
}

const char *
kr_shown_missing(const struct kr_shown *shown)
{
	if (kr_fs_live.look(NULL, shown->item.worktree).type != KR_FS_NONE)
		return NULL;
	return kr_arena_printf(shown->arena,
		"the worktree '%s' is made by the first run; what is in it cannot be seen yet", shown->item.worktree);
}

int
kr_shown_make(struct kr_arena *arena, const struct kr_shown_want *want, struct kr_shown *out, struct kr_error *err)
{
	struct kr_request *r = &out->request;

	*out = (struct kr_shown){ .arena = arena };
	if (make_request(out, want, err) < 0 || kr_run_kit_find(arena, &out->host, false, -1, &r->repo, &out->kit, err) < 0)
		return -1;
	if (kr_plan_secrets(arena, r, NULL, &r->secrets, &out->refused) == 0 &&
		(r->repo->sandbox.kind != KR_SANDBOX_DOCKER || look_at_container(out, &out->refused) == 0))
		out->plan = kr_plan_build(arena, &out->host, r, &out->lookup, &out->refused);
	return 0;
}
