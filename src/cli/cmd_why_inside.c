/*
 * kraft why path, command, env: one path, command or variable as a worker meets it, and what decides so. The plan that a launch
 * would make is asked; what would help is tried on a plan of its own, so nothing is advised that would be refused.
 */
#include <jansson.h>
#include <unistd.h>

#include "base/path.h"
#include "cli/cli.h"
#include "cli/shown.h"
#include "config/yaml.h"

enum { OUT_BYTES = 1 << 20 };

enum { REPO, PHASE, ITEM, HARNESS, JSON };
static const struct kr_option options[] = {
	[REPO] = { "repo", 'C', "PATH", "the checkout to work for, in place of the one you stand in" },
	[PHASE] = { "phase", 0, "PHASE", "install or runtime (the usual one)" },
	[ITEM] = { "item", 0, "ID", "the worktree of this name, in place of the repository's own" },
	[HARNESS] = { "harness", 0, "ID", "as a session of this agent" },
	[JSON] = { "json", 0, NULL, "print one JSON object" },
	{ NULL },
};

/* What a worker that runs `word` (NULL: whatever) would meet. -1 when there is no plan for another reason than a rule. */
static int
make(struct kr_arena *arena, const struct kr_parsed *parsed, const char *word, struct kr_shown *out, struct kr_error *err)
{
	char **words = kr_arena_alloc(arena, 2 * sizeof(*words)); /* the plan borrows them */
	const struct kr_shown_want want = { .repo = parsed->value[REPO],
		.phase = parsed->value[PHASE],
		.item = parsed->value[ITEM],
		.harness = parsed->value[HARNESS],
		.words = words,
		.word_count = parsed->value[HARNESS] && !word ? 0 : 1 };

	words[0] = kr_arena_dup(arena, word ? word : "true");
	words[1] = NULL;
	if (kr_shown_make(arena, &want, out, err) < 0)
		return -1;
	if (out->plan || (word && out->refused.code == KR_E_REFUSED))
		return 0;
	*err = out->refused;
	return kr_wrap(err, "a session would be refused, so there is nothing to tell of");
}

/* The answer: 0 or 1 is the exit status. */
static int
answer(const struct kr_parsed *parsed, struct kr_buf *text, json_t *object, int status, struct kr_error *err)
{
	if (!parsed->value[JSON]) {
		json_decref(object);
		fwrite(text->data ? text->data : "", 1, text->len, stdout);
		return status;
	}
	return kr_print_json(object, err) < 0 ? -1 : status;
}

/* ---- a path ---- */

struct path_answer {
	struct kr_sight sight;
	const char *copy;         /* of a file of the checkout: the worktree's; NULL */
	bool expose_helps;
	struct kr_error refused;  /* why an entry would be refused */
};

/* Whether an entry of `expose` would show it: by a plan that has one. */
static void
try_expose(struct kr_shown *shown, const char *path, struct path_answer *out)
{
	struct kr_repo repo = *shown->request.repo;
	struct kr_request request = shown->request;
	struct kr_expose *entries = kr_arena_alloc(shown->arena, (repo.sandbox.expose_count + 1) * sizeof(*entries));
	const struct kr_plan *plan;
	struct kr_sight sight;

	if (repo.sandbox.expose_count)
		memcpy(entries, repo.sandbox.expose, repo.sandbox.expose_count * sizeof(*entries));
	entries[repo.sandbox.expose_count++] = (struct kr_expose){ .text = path, .path = path };
	repo.sandbox.expose = entries;
	request.repo = &repo;
	plan = kr_plan_build(shown->arena, &shown->host, &request, NULL, &out->refused);
	if (!plan)
		return;
	kr_plan_look(shown->arena, &shown->host, plan, path, &sight);
	out->expose_helps = sight.kind == KR_SIGHT_READ && sight.is_there;
}

/* Memory, or nothing: what the host has there could be shown all the same. */
static bool
is_not_of_host(const struct kr_sight *sight)
{
	return !sight->step || sight->step->kind == KR_STEP_TMPFS;
}

static void
look_at(struct kr_shown *shown, const char *path, struct path_answer *out)
{
	const struct kr_request *r = &shown->request;

	*out = (struct path_answer){ 0 };
	kr_plan_look(shown->arena, &shown->host, shown->plan, path, &out->sight);
	if (!is_not_of_host(&out->sight))
		return;
	if (kr_path_is_within(path, r->checkout))
		out->copy = kr_arena_printf(shown->arena, "%s%s", r->worktree, path + strlen(r->checkout));
	else if (!out->sight.is_there && out->sight.kind != KR_SIGHT_IMAGE && !shown->kit.is_used)
		try_expose(shown, path, out);
}

static void
print_step(const struct kr_sight *sight, struct kr_buf *out)
{
	const struct kr_step *step = sight->step;

	if (!step)
		return;
	kr_buf_addf(out, "  by '%s'", step->path);
	if (step->source && strcmp(step->source, step->path) != 0)
		kr_buf_addf(out, ", which is '%s' on the host", step->source);
	kr_buf_addf(out, " (%s): %s\n", kr_step_name(step->kind), step->because);
}

static const char *
remark(const struct path_answer *a)
{
	const struct kr_sight *sight = &a->sight;

	switch (sight->kind) {
	case KR_SIGHT_ABSENT:
		return a->copy ? "the checkout is never shown" : !is_not_of_host(sight) ? "nothing is there on the host either" : "nothing shows it";
	case KR_SIGHT_EMPTY:
		return "its contents are kept from workers";
	case KR_SIGHT_OWN:
		return "nothing of the host's is there";
	case KR_SIGHT_READ:
		return !is_not_of_host(sight) ? NULL : "a directory that only leads to what is shown below it";
	case KR_SIGHT_WRITE:
		return sight->is_there ? NULL : "nothing is there yet; the worker may make it";
	case KR_SIGHT_IMAGE:
		break;
	}
	return "nothing of the host's is there, only what the image has";
}

static void
print_path(const struct kr_shown *shown, const char *path, const struct path_answer *a, struct kr_buf *out)
{
	const char *more = remark(a);

	kr_buf_addf(out, "%s  %s\n", kr_sight_name(a->sight.kind), path);
	if (strcmp(path, a->sight.path) != 0)
		kr_buf_addf(out, "  it leads to '%s'\n", a->sight.path);
	print_step(&a->sight, out);
	if (more)
		kr_buf_addf(out, "  %s\n", more);
	if (a->copy)
		kr_buf_addf(out, "  the worker's own is '%s'\n", a->copy);
	if (a->refused.code != KR_E_NONE)
		kr_buf_addf(out, "  an entry for it would be refused: %s\n", a->refused.message);
	if (!a->expose_helps)
		return;
	kr_buf_addf(out, "to show it, read-only and all of it, add in %s", shown->where.sandbox_file);
	if (shown->request.repo->sandbox.mark.line)
		kr_buf_addf(out, ", in the sandbox at line %u", shown->request.repo->sandbox.mark.line);
	kr_buf_addf(out, ":\n  expose:\n    - ");
	kr_yaml_add_string(out, path);
	kr_buf_addf(out, "\n");
}

static json_t *
path_json(const char *path, const struct path_answer *a)
{
	const struct kr_step *step = a->sight.step;
	json_t *object = json_pack("{s:s,s:s,s:s,s:b,s:s*,s:s*,s:b,s:s*}", "path", path, "verdict", kr_sight_name(a->sight.kind), "leads_to",
		a->sight.path, "exists", a->sight.is_there, "reason", step ? step->because : remark(a), "worktree_copy", a->copy, "expose_helps",
		a->expose_helps, "refused", a->refused.code != KR_E_NONE ? a->refused.message : NULL);

	if (object && step)
		json_object_set_new(object, "step", json_pack("{s:s,s:s,s:s*}", "kind", kr_step_name(step->kind), "path", step->path, "source", step->source));
	return object;
}

/* Whether the worker finds there what was asked for. */
static bool
is_found(const struct kr_sight *sight)
{
	return sight->kind == KR_SIGHT_READ || sight->kind == KR_SIGHT_WRITE ||
		   (sight->kind == KR_SIGHT_OWN && (sight->is_there || sight->step->kind != KR_STEP_TMPFS));
}

static int
why_path(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	kr_auto_buf struct kr_buf out = KR_BUF(OUT_BYTES);
	struct path_answer a;
	struct kr_shown shown;
	const char *path;

	if (make(arena, parsed, NULL, &shown, err) < 0)
		return -1;
	path = parsed->words[0][0] ? kr_path_join(arena, shown.where.here, parsed->words[0]) : NULL;
	if (!path)
		return kr_fail(err, KR_E_USAGE, "'%.300s' is no path", parsed->words[0]);
	look_at(&shown, path, &a);
	print_path(&shown, path, &a, &out);
	return answer(parsed, &out, path_json(path, &a), is_found(&a.sight) ? 0 : 1, err);
}

const struct kr_command kr_cmd_why_path = {
	.name = "why path",
	.usage = "[OPTIONS] PATH",
	.summary = "tell what a worker finds at a path, by which rule, and what would show it",
	.help = "Follows links as the worker's kernel would. Of what is not shown it says whether an entry of 'expose' could show\n"
			"it; a protected path is never advised.\n\n"
			"Exit status: 0 it is there for the worker, 1 it is not.",
	.options = options,
	.words_min = 1,
	.words_max = 1,
	.run = why_path,
};

/* ---- a command ---- */

static json_t *
command_json(const char *name, const struct kr_shown *shown)
{
	const struct kr_plan *plan = shown->plan;
	const struct kr_strs *steps = plan ? &plan->lookup : &shown->lookup;
	json_t *lookup = json_array();

	for (size_t i = 0; i < steps->n; i++)
		json_array_append_new(lookup, json_string(steps->v[i]));
	return json_pack("{s:s,s:b,s:s*,s:s*,s:s*,s:o}", "command", name, "found", plan != NULL, "path", plan ? plan->exec_path : NULL, "reason",
		plan ? NULL : shown->refused.message, "hint", plan || !shown->refused.hint[0] ? NULL : shown->refused.hint, "lookup", lookup);
}

/* What the lookup says last is the reason itself. */
static void
print_refused(const struct kr_shown *shown, const char *name, struct kr_buf *out)
{
	kr_buf_addf(out, "refused  %s\n", name);
	for (size_t i = 0; i < shown->lookup.n; i++)
		if (strcmp(shown->lookup.v[i], shown->refused.message) != 0)
			kr_buf_addf(out, "  %s\n", shown->lookup.v[i]);
	kr_buf_addf(out, "  %s\n", shown->refused.message);
	if (shown->refused.hint[0])
		kr_buf_addf(out, "%s\n", shown->refused.hint);
}

static void
print_found(const struct kr_plan *plan, const char *name, struct kr_buf *out)
{
	kr_buf_addf(out, "found  %s\n", name);
	for (size_t i = 0; i < plan->lookup.n; i++)
		kr_buf_addf(out, "  %s\n", plan->lookup.v[i]);
	kr_buf_addf(out, "  starts '%s'%s\n", plan->exec_path, strchr(plan->exec_path, '/') ? "" : ", looked up inside along PATH");
}

static int
why_command(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	kr_auto_buf struct kr_buf out = KR_BUF(OUT_BYTES);
	const char *name = parsed->words[0];
	struct kr_shown shown;

	if (parsed->value[HARNESS])
		return kr_fail(err, KR_E_USAGE, "a command is looked up the same way for every agent: leave '--harness' out");
	if (make(arena, parsed, name, &shown, err) < 0)
		return -1;
	if (shown.plan)
		print_found(shown.plan, name, &out);
	else
		print_refused(&shown, name, &out);
	return answer(parsed, &out, command_json(name, &shown), shown.plan ? 0 : 1, err);
}

const struct kr_command kr_cmd_why_command = {
	.name = "why command",
	.usage = "[OPTIONS] NAME",
	.summary = "tell where a worker finds a command, or what refuses it",
	.help = "The lookup of a launch, step by step: NAME is what stands first in 'kraft run -- NAME'.\n\n"
			"Exit status: 0 it would be started, 1 it would be refused.",
	.options = options,
	.words_min = 1,
	.words_max = 1,
	.run = why_command,
};

/* ---- a variable ---- */

struct source {
	const char *name, *words; /* for programs; for a person */
};

static struct source
source_of(enum kr_env_source source)
{
	switch (source) {
	case KR_ENV_KRAFT:
	case KR_ENV_SESSION:
		return (struct source){ "kraft", "by kraft" };
	case KR_ENV_REPO:
		return (struct source){ "repository", "by the repository's 'env'" };
	case KR_ENV_HARNESS:
		return (struct source){ "harness", "by the agent's harness" };
	case KR_ENV_HOST:
		return (struct source){ "host", "from the environment that kraft has here" };
	case KR_ENV_SENTINEL:
		break;
	}
	return (struct source){ "sentinel", "to what stands for a secret" };
}

static const struct kr_plan_env *
find_variable(const struct kr_plan_env *env, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(env[i].name, name) == 0)
			return &env[i];
	return NULL;
}

/* Whether `env_passthrough` would bring it: by the variables of a request that has it there. */
static bool
would_pass(struct kr_shown *shown, const char *name)
{
	struct kr_repo repo = *shown->request.repo;
	struct kr_request request = shown->request;
	struct kr_strs names = { 0 };
	const struct kr_plan_env *env;
	size_t n;

	for (size_t i = 0; i < repo.env_passthrough.n; i++)
		kr_strs_add(shown->arena, &names, repo.env_passthrough.v[i]);
	kr_strs_add(shown->arena, &names, name);
	repo.env_passthrough = names;
	request.repo = &repo;
	env = kr_plan_environment(shown->arena, &shown->host, &request, &n);
	return find_variable(env, n, name) != NULL;
}

static const char *
why_absent(const struct kr_shown *shown, const char *name, bool is_set)
{
	const struct kr_repo *repo = shown->request.repo;

	if (kr_plan_is_managed(repo, name))
		return "'credentials' keeps it outside, and gives nothing in its place in this phase";
	if (!is_set && kr_plan_crosses(repo, name))
		return "it may cross, but is not set in the environment that kraft has here";
	return is_set ? "nothing lets it cross" : "nothing sets it";
}

static int
why_env(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	kr_auto_buf struct kr_buf out = KR_BUF(OUT_BYTES);
	const char *name = parsed->words[0], *reason, *value = NULL;
	const struct kr_plan_env *found;
	struct kr_shown shown;
	bool is_set, helps;

	if (!*name || strchr(name, '='))
		return kr_fail(err, KR_E_USAGE, "'%.300s' is no name of a variable", name);
	if (make(arena, parsed, NULL, &shown, err) < 0)
		return -1;
	found = find_variable(shown.plan->env, shown.plan->env_count, name);
	is_set = kr_host_env(&shown.host, name) != NULL;
	helps = !found && is_set && would_pass(&shown, name);
	reason = found ? found->because : why_absent(&shown, name, is_set);
	if (found && found->source == KR_ENV_KRAFT)
		value = found->value;
	kr_buf_addf(&out, "%s  %s\n", found ? "set" : "absent", name);
	if (found)
		kr_buf_addf(&out, "  %s: %s\n", source_of(found->source).words, reason);
	else
		kr_buf_addf(&out, "  %s\n", reason);
	if (value)
		kr_buf_addf(&out, "  its value is '%s'\n", value);
	if (!found && shown.request.container)
		kr_buf_addf(&out, "  the image may have one of its own\n");
	if (helps)
		kr_buf_addf(&out, "to let it cross, and be the worker's, add in %s, to the repository '%s':\n  env_passthrough:\n    - %s\n",
			shown.where.repos->file, shown.where.repo->name, name);
	return answer(parsed, &out,
		json_pack("{s:s,s:b,s:s*,s:s,s:s*,s:b}", "variable", name, "set", found != NULL, "source", found ? source_of(found->source).name : NULL,
			"reason", reason, "value", value, "passthrough_helps", helps),
		found ? 0 : 1, err);
}

const struct kr_command kr_cmd_why_env = {
	.name = "why env",
	.usage = "[OPTIONS] NAME",
	.summary = "tell whether a worker has a variable, where from, and what would give it",
	.help = "Only what kraft itself sets is printed with its value.\n\n"
			"Exit status: 0 the worker has it, 1 it has not.",
	.options = options,
	.words_min = 1,
	.words_max = 1,
	.run = why_env,
};
