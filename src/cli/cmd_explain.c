/*
 * kraft explain: what a session of this command would see, and why. Runs nothing and creates nothing: the
 * paths of the item are named whether they exist or not, and the plan is the one that `kraft run` would make
 * of the same host.
 */
#include <jansson.h>
#include <unistd.h>

#include "backend/backend.h"
#include "cli/cli.h"
#include "run/agent.h"
#include "run/container.h"
#include "run/kit.h"
#include "run/where.h"
#include "run/workspace.h"
#include "lookup/lookup.h"
#include "git/private.h"
#include "base/path.h"
#include "os/host.h"
#include "session/item.h"

enum { OUT_BYTES = 8 << 20 };

enum { JSON, REPO, PHASE, ITEM, WORKSPACE, HARNESS };
static const struct kr_option options[] = {
	[JSON] = { "json", 0, NULL, "print one JSON object" },
	[REPO] = { "repo", 'C', "PATH", "the checkout to work for, in place of the one you stand in" },
	[PHASE] = { "phase", 0, "PHASE", "which network lists hold: install or runtime (the usual one)" },
	[ITEM] = { "item", 0, "ID", "the worktree of this name, in place of the repository's own" },
	[WORKSPACE] = { "workspace", 0, "NAME", "with the members of this workspace below the root" },
	[HARNESS] = { "harness", 0, "ID", "an agent, in place of a command; a word is its prompt" },
	{ NULL },
};

struct explain {
	struct kr_arena *arena;
	struct kr_host host;
	struct kr_where where;
	struct kr_item item;
	struct kr_tree *trees;
	size_t tree_count;
	struct kr_request request;
	struct kr_strs lookup;
	struct kr_harness harness;
	struct kr_run_agent agent;
	struct kr_run_launch launch;
	struct kr_run_kit kit;
	struct kr_run_container container;
	const char *remark; /* about its image; NULL: none */
};

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
name_places(struct explain *e, struct kr_tree *tree)
{
	struct kr_plan_place *places = kr_arena_alloc(e->arena, (strlen(tree->below) / 2 + 1) * sizeof(*places));
	const char *start = tree->worktree + strlen(e->item.worktree) + 1;

	for (const char *p = start;; p++) {
		if (*p != '/' && *p)
			continue;
		places[tree->plan.place_count++] = (struct kr_plan_place){
			.path = kr_arena_dup_n(e->arena, tree->worktree, (size_t)(p - tree->worktree))
		};
		if (!*p)
			break;
	}
	tree->plan.places = places;
}

/* Who commits is not asked for: it takes a run of git. */
static int
plan_git(struct explain *e, struct kr_error *err)
{
	for (size_t i = 0; i < e->tree_count; i++) {
		struct kr_tree *tree = &e->trees[i];
		struct kr_private git;

		if (kr_private_name(
				e->arena, e->host.places.run_dir, e->item.id, (unsigned)i, &tree->checkout, &git, err) < 0)
			return -1;
		tree->plan = (struct kr_plan_git){ .dir = git.dir,
			.git_file = git.git_file,
			.objects = git.objects,
			.borrowed = git.borrowed,
			.lfs = git.lfs };
		tree->worktree = i ? kr_path_join(e->arena, e->item.worktree, tree->below) : e->item.worktree;
		if (i)
			name_places(e, tree);
	}
	kr_workspace_link(e->trees, e->tree_count);
	return 0;
}

/* MAC-08: on macOS the repository itself, by the names that a first session has. */
static const struct kr_plan_shared_git *
shared_git(struct explain *e)
{
	for (size_t i = 0; i < e->tree_count; i++) {
		struct kr_tree *tree = &e->trees[i];
		const char *worktrees = kr_path_join(e->arena, tree->checkout.common, "worktrees");

		tree->shared = (struct kr_plan_shared_git){ .worktree = i ? tree->worktree : NULL,
			.common = tree->checkout.common,
			.worktree_git_dir = kr_path_join(e->arena, worktrees, kr_path_basename(tree->worktree)),
			.branch = kr_arena_printf(e->arena, "kraft/%s", e->item.id),
			.borrowed = tree->plan.borrowed,
			.next = i + 1 < e->tree_count ? &e->trees[i + 1].shared : NULL };
	}
	return &e->trees->shared;
}

static int
find_trees(struct explain *e, const struct kr_parsed *parsed, struct kr_error *err)
{
	const char *workspace = parsed->value[WORKSPACE], *item = parsed->value[ITEM];

	if (kr_workspace_choose(e->arena, &e->host, &e->where, &workspace, &item, err) < 0 ||
		kr_workspace_trees(e->arena, &e->host.places, &e->where, workspace, &e->trees, &e->tree_count, err) <
			0)
		return -1;
	return kr_item_name(e->arena, &e->host, &e->where.checkout, item, &e->item, err);
}

/* In place of a command, as the launch would have it. Its program is not asked which version it is. */
static int
plan_agent(struct explain *e, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct kr_request *r = &e->request;
	const struct kr_run_at at = { .host = &e->host, .session = r->session, .home = r->home };

	if (parsed->word_count > 1)
		return kr_fail(err, KR_E_USAGE, "an agent's prompt is one word: put it in quotes");
	if (r->phase != KR_PHASE_RUNTIME)
		return kr_fail(err, KR_E_USAGE, "an agent runs in the runtime phase");
	if (kr_harness_load(e->arena, &e->host.places, parsed->value[HARNESS], &e->harness, err) < 0)
		return -1;
	e->agent = (struct kr_run_agent){ .harness = &e->harness,
		.prompt = parsed->word_count ? parsed->words[0] : "PROMPT" };
	if (kr_run_launch_make(e->arena, &e->agent, &e->where.policy, &at, NULL, &e->launch, err) < 0)
		return -1;
	r->argv = e->launch.launch.argv.v;
	r->agent = &e->launch.plan;
	return 0;
}

static int
make_request(struct explain *e, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct kr_request *r = &e->request;
	const char *wanted;

	if (kr_where_phase(parsed->value[PHASE], &r->phase, err) < 0 ||
		kr_host_gather(e->arena, &e->host, err) < 0 ||
		kr_where_find(e->arena, &e->host.places, parsed->value[REPO], &e->where, err) < 0 ||
		kr_where_layers(e->arena, &e->host.places, NULL, &e->where, err) < 0 ||
		find_trees(e, parsed, err) < 0 || plan_git(e, err) < 0)
		return -1;
	r->repo = e->where.repo;
	r->item = e->item.id;
	r->session = "SESSION";
	r->worktree = e->item.worktree;
	r->checkout = e->where.checkout.root;
	r->home = e->item.home;
	r->results_dir = e->item.results_dir;
	r->result_file = kr_item_result_file(e->arena, &e->item, r->session);
	r->channel_dir = kr_session_channel_dir(e->arena, &e->host, r->session);
	r->cwd = kr_where_cwd(e->arena, &e->where, e->item.worktree, &wanted);
	r->argv = parsed->word_count ? (const char *const *)parsed->words
								 : default_command(e->arena, r->repo, r->phase);
	if (e->host.os == KR_SYSTEM_MACOS && r->repo->sandbox.kind == KR_SANDBOX_OS)
		r->macos = kr_plan_macos_shown(e->arena, &e->host, r->session, shared_git(e));
	else
		r->git = &e->trees->plan;
	r->terminal = !parsed->value[HARNESS] && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	return parsed->value[HARNESS] ? plan_agent(e, parsed, err) : 0;
}

/* What holds beside the steps: the filter's rules, or on macOS what every profile allows. */
static const struct kr_strs *
rules_beside(struct kr_arena *arena, const struct kr_request *request)
{
	struct kr_strs *rules = kr_arena_new(arena, struct kr_strs);
	const char *rule;

	if (request->macos) {
		kr_seatbelt_beside(arena, request->terminal, rules);
		return rules;
	}
	if (kr_arch_here() == KR_ARCH_UNKNOWN)
		return NULL;
	for (size_t i = 0; (rule = kr_seccomp_rule(kr_arch_here(), i)) != NULL; i++)
		kr_strs_add(arena, rules, rule);
	return rules;
}

/* kind: docker. The runtime is asked and nothing is fetched; one that does not answer leaves the image
 * unknown, no more. */
static int
look_at_container(struct explain *e, struct kr_error *err)
{
	struct kr_run_container *c = &e->container;
	struct kr_error why = { 0 };
	const int result = kr_run_container_look(e->arena, &e->host, e->request.repo, c, &why);

	if (result < 0 && (why.code != KR_E_WALL || (c->has_runtime && !c->is_enforced))) {
		*err = why;
		return -1;
	}
	if (result < 0)
		e->remark = kr_arena_printf(
			e->arena, "what is in the image '%s' cannot be told: %s", c->image.name, why.message);
	else if (!c->image.id)
		e->remark = kr_arena_printf(
			e->arena, "the image '%s' is not here yet; the first run fetches it", c->image.name);
	if (c->is_enforced) {
		struct kr_strs *walls = kr_arena_new(e->arena, struct kr_strs);

		kr_container_walls(e->arena, &c->runtime, &e->request.repo->sandbox, c->file.selinux,
			(unsigned)geteuid(), (unsigned)getegid(), walls);
		c->plan.walls = walls;
	}
	if (e->kit.is_used) {
		struct kr_strs *notes = kr_arena_new(e->arena, struct kr_strs);

		kr_run_kit_tell(e->arena, &e->kit, notes);
		c->plan.notes = notes;
	}
	if (c->ca.path || e->request.secrets->rule_count)
		c->plan.ca_bundle = kr_run_container_bundle(e->arena, e->host.places.run_dir, e->request.session);
	e->request.container = &c->plan;
	return 0;
}

/* What planning could not see because the first run has still to make it. */
static const char *
missing_worktree(const struct explain *e)
{
	if (kr_fs_live.look(NULL, e->item.worktree).type != KR_FS_NONE)
		return NULL;
	return kr_arena_printf(e->arena,
		"the worktree '%s' is made by the first run; what is in it cannot be seen yet", e->item.worktree);
}

/* The refusal itself is reported by main; here is how far the lookup came. */
static void
print_refused(const struct explain *e, bool json, const struct kr_error *err, struct kr_buf *out)
{
	json_t *object, *lookup;
	char *text;

	if (!json) {
		for (size_t i = 0; i < e->lookup.n; i++)
			kr_buf_addf(out, "%s  %s\n", i ? "" : "command\n", e->lookup.v[i]);
		return;
	}
	lookup = json_array();
	for (size_t i = 0; i < e->lookup.n; i++)
		json_array_append_new(lookup, json_string(e->lookup.v[i]));
	object = json_pack("{s:{s:s,s:s,s:s},s:o}", "refused", "code", kr_error_name(err->code), "message",
		err->message, "hint", err->hint, "lookup", lookup);
	text = object ? json_dumps(object, JSON_INDENT(2)) : NULL;
	if (text)
		kr_buf_addf(out, "%s\n", text);
	free(text);
	json_decref(object);
}

static int
run(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct explain e = { .arena = arena };
	kr_auto_buf struct kr_buf out = KR_BUF(OUT_BYTES);
	bool json = parsed->value[JSON] != NULL;
	const struct kr_plan *plan = NULL;
	const char *missing;

	if (make_request(&e, parsed, err) < 0 ||
		kr_run_kit_find(arena, &e.host, false, -1, &e.request.repo, &e.kit, err) < 0)
		return -1;
	if (kr_plan_secrets(arena, &e.request, NULL, &e.request.secrets, err) == 0 &&
		(e.request.repo->sandbox.kind != KR_SANDBOX_DOCKER || look_at_container(&e, err) == 0))
		plan = kr_plan_build(arena, &e.host, &e.request, &e.lookup, err);
	if (!plan)
		print_refused(&e, json, err, &out);
	else if (json)
		kr_plan_print_json(plan, rules_beside(arena, &e.request), &out);
	else
		kr_plan_print(plan, rules_beside(arena, &e.request), &out);
	if (out.len)
		fwrite(out.data, 1, out.len, stdout);
	missing = missing_worktree(&e);
	fflush(stdout); /* into one file with it: not in the middle of a line */
	if (missing)
		fprintf(stderr, "kraft: %s\n", missing);
	if (e.remark)
		fprintf(stderr, "kraft: %s\n", e.remark);
	if (!plan)
		return -1;
	return e.request.agent ? kr_run_launch_login(arena, &e.host, &e.request, &e.harness, err) : 0;
}

const struct kr_command kr_cmd_explain = {
	.name = "explain",
	.usage = "[OPTIONS] [-- COMMAND [ARG...]]",
	.summary = "tell what a command would see in the sandbox, and why; run nothing",
	.help =
		"Prints how the command is found, what is shown at which path and why, which variables cross (never\n"
		"their values), which hosts are allowed, and what the kernel refuses. Without a command: the\n"
		"repository's test command (with --phase install its setup command). With --harness: an agent's\n"
		"session, with the hosts and variables that its harness adds.\n\n"
		"When a run would be refused it tells the reason and how far the lookup came, and ends with the "
		"status\n"
		"of that reason ('kraft help exit-codes'); the run itself would end with 125.",
	.options = options,
	.words_min = 0,
	.words_max = -1,
	.stops_at_word = true,
	.run = run,
};
