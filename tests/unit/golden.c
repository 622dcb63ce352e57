/*
 * Golden plans: tests/golden/plan/<case>/{repos.yaml,host.json} in, expected.plan (what `kraft explain`
 * prints) and expected.bwrap (bubblewrap's arguments, one a line) out; expected.json where host.json says
 * "json": true. A refused launch has only expected.plan, with the error and the lookup told so far.
 *
 * "system": "macos" makes it a Mac, over base-macos.json: in place of expected.bwrap it has expected.sb, the profile, which
 * tests/seatbelt asks its questions of.
 *
 * kind: docker has, in place of expected.bwrap, one file for each of the runtimes that host.json names: what `run` is told, or why
 * it cannot be. No value of a variable, and no word that opens a wall, may stand in any of them.
 *
 * KRAFT_GOLDEN=write renews the expected files; their diff is read as a change of what a worker can see.
 *
 * host.json, over the defaults of base.json: "about" (one sentence), "files" (see support/fake_fs.h), "many"
 * ([{"path": "/x/%d", "what": "file", "count": 3}]), "environment" (replaces the default one, by name),
 * "places", "request" {"argv", "phase", "cwd" (below the worktree), "terminal", "git", "members", "short_run"},
 * "request" of a Mac also has "branch" and "no_way_out"; its "git" and "members" are of the repository itself.
 * "container" {"image_id" (null: not here), "entrypoint", "env", "ca_bundle", "selinux", "limits" (of the runtime: default all),
 * "runtimes" (names of the table below)}.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <unistd.h>

#include "backend/container.h"
#include "base/fd.h"
#include "base/path.h"
#include "fake_fs.h"
#include "plan/plan.h"

enum { OUT_BYTES = 1 << 20 };

struct golden {
	struct kr_arena arena;
	const char *name, *directory; /* of the case */
	json_t *base, *json;
	struct fake_fs fake;
	struct kr_fs fs;
	struct kr_host host;
	struct kr_request request;
	const struct kr_repos *repos;
	struct kr_image image;
	struct kr_plan_container container;
	struct kr_plan_macos macos;
	struct kr_strs walls;
};

static const char *
file_of(struct golden *g, const char *name)
{
	return kr_arena_printf(&g->arena, "%s/%s", g->directory, name);
}

static json_t *
load(const char *path)
{
	json_error_t error;
	json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, &error);

	if (!json) {
		fprintf(stderr, "%s:%d:%d: %s\n", path, error.line, error.column, error.text);
		exit(2);
	}
	return json;
}

static const char *
string_of(struct golden *g, const json_t *object, const char *key, const char *fallback)
{
	const json_t *value = json_object_get(object, key);

	return json_is_string(value) ? kr_arena_dup(&g->arena, json_string_value(value)) : fallback;
}

/* ---- the host ---- */

struct entries {
	struct fake_entry *v;
	size_t n, cap;
};

/* A later entry replaces an earlier one; "none" takes it away. */
static void
put_entry(struct golden *g, struct entries *list, const char *path, const char *what)
{
	size_t i = 0;

	while (i < list->n && strcmp(list->v[i].path, path) != 0)
		i++;
	if (strcmp(what, "none") == 0) {
		if (i < list->n)
			list->v[i] = list->v[--list->n];
		return;
	}
	if (i == list->n) {
		if (list->n + 2 > list->cap) {
			list->cap = list->cap ? list->cap * 2 : 64;
			list->v = kr_xrealloc(list->v, list->cap * sizeof(*list->v));
		}
		list->n++;
	}
	list->v[i] = (struct fake_entry){ kr_arena_dup(&g->arena, path), kr_arena_dup(&g->arena, what) };
}

/* "/x/%d" with the number in it. */
static const char *
numbered(struct golden *g, const char *pattern, int number)
{
	size_t n = strcspn(pattern, "%");

	return kr_arena_printf(
		&g->arena, "%.*s%03d%s", (int)n, pattern, number, pattern[n] ? pattern + n + 2 : "");
}

static void
put_entries(struct golden *g, struct entries *list, json_t *source)
{
	const char *path;
	json_t *what, *many;
	size_t i;

	json_object_foreach(json_object_get(source, "files"), path, what)
		put_entry(g, list, path, json_string_value(what));
	json_array_foreach(json_object_get(source, "many"), i, many)
	{
		int count = (int)json_integer_value(json_object_get(many, "count"));

		for (int k = 1; k <= count; k++)
			put_entry(
				g, list, numbered(g, string_of(g, many, "path", ""), k), string_of(g, many, "what", "file"));
	}
}

static void
make_host(struct golden *g, struct entries *list)
{
	json_t *places = json_object_get(g->json, "places"),
		   *environment = json_object_get(g->json, "environment"), *value;
	struct kr_places *p = &g->host.places;
	struct kr_strs block = { 0 };
	const char *name;

	put_entries(g, list, g->base);
	put_entries(g, list, g->json);
	list->v[list->n] = (struct fake_entry){ NULL, NULL };
	g->fake = (struct fake_fs){ .entries = list->v };
	g->fs = fake_fs_view(&g->fake);
	g->host.os = p->is_macos ? KR_SYSTEM_MACOS : KR_SYSTEM_LINUX;
	p->home = string_of(g, places, "home", p->is_macos ? "/Users/ada" : "/home/ada");
	p->kraft_home = string_of(g, places, "kraft_home", kr_path_join(&g->arena, p->home, ".kraft"));
	p->run_dir = string_of(g, places, "run_dir", kr_path_join(&g->arena, p->kraft_home, "run"));
	p->config_dir = string_of(g, places, "config_dir", kr_path_join(&g->arena, p->kraft_home, "config"));
	if (!environment)
		environment = json_object_get(g->base, "environment");
	json_object_foreach(environment, name, value)
		kr_strs_add(&g->arena, &block, kr_arena_printf(&g->arena, "%s=%s", name, json_string_value(value)));
	if (!block.n)
		block.v = kr_arena_alloc(&g->arena, sizeof(*block.v));
	g->host.fs = &g->fs;
	g->host.user = "ada";
	g->host.environment = block.v;
	g->host.guest_dir = p->is_macos ? "/opt/homebrew/Cellar/kraft/0.1.0/libexec/kraft/guest" : "/usr/libexec/kraft/guest";
}

/* ---- the request ---- */

static struct kr_plan_git *
private_git(struct golden *g, const char *run, const char *checkout)
{
	struct kr_plan_git *git = kr_arena_new(&g->arena, struct kr_plan_git);

	git->dir = kr_path_join(&g->arena, run, "sandbox-git/run-app-0");
	git->git_file = kr_path_join(&g->arena, run, "sandbox-git/run-app-0.gitfile");
	git->objects = kr_path_join(&g->arena, checkout, ".git/objects");
	kr_strs_add(&g->arena, &git->borrowed, "/srv/mirror/objects");
	kr_strs_add(&g->arena, &git->identity, "GIT_AUTHOR_NAME=Ada");
	return git;
}

/* One member for each path below the worktree, "libs/lib": its repository is /srv/<name>. */
static struct kr_plan_git *
member_git(struct golden *g, const char *run, const char *below, size_t number)
{
	struct kr_plan_git *git = kr_arena_new(&g->arena, struct kr_plan_git);
	struct kr_plan_place *places = kr_arena_alloc(&g->arena, strlen(below) * sizeof(*places));
	const char *worktree = g->request.worktree;

	git->worktree = kr_path_join(&g->arena, worktree, below);
	git->dir = kr_arena_printf(&g->arena, "%s/sandbox-git/run-app-%zu", run, number);
	git->git_file = kr_arena_printf(&g->arena, "%s.gitfile", git->dir);
	git->objects = kr_arena_printf(&g->arena, "/srv/%s/.git/objects", kr_path_basename(git->worktree));
	kr_strs_add(&g->arena, &git->borrowed, "/srv/mirror/objects");
	for (const char *path = git->worktree; strcmp(path, worktree) != 0; path = kr_path_dirname(&g->arena, path))
		git->place_count++;
	git->places = places;
	for (size_t i = git->place_count; i-- > 0;)
		places[i].path = i + 1 == git->place_count ? git->worktree : kr_path_dirname(&g->arena, places[i + 1].path);
	return git;
}

static const struct kr_plan_git *
all_git(struct golden *g, const char *run, const char *checkout, json_t *members)
{
	struct kr_plan_git *root = private_git(g, run, checkout), *last = root;
	json_t *below;
	size_t i;

	json_array_foreach(members, i, below)
	{
		struct kr_plan_git *git = member_git(g, run, json_string_value(below), i + 1);

		last->next = git;
		last = git;
	}
	return root;
}

/* {"id", "hosts": [...], "env": {...}, "files": [...], "config_env", "keep": [...]} */
static const struct kr_plan_agent *
agent_of(struct golden *g, json_t *json)
{
	struct kr_plan_agent *agent = kr_arena_new(&g->arena, struct kr_plan_agent);
	struct kr_strs *hosts = kr_arena_new(&g->arena, struct kr_strs), *files = kr_arena_new(&g->arena, struct kr_strs);
	json_t *env = json_object_get(json, "env"), *value;
	struct kr_env_literal *literals = kr_arena_alloc(&g->arena, (json_object_size(env) + 1) * sizeof(*literals));
	struct kr_plan_place *kept = kr_arena_alloc(&g->arena, (json_array_size(json_object_get(json, "keep")) + 1) * sizeof(*kept));
	const char *name;
	size_t i;

	if (!json)
		return NULL;
	json_array_foreach(json_object_get(json, "hosts"), i, value)
		kr_strs_add(&g->arena, hosts, kr_arena_dup(&g->arena, json_string_value(value)));
	json_array_foreach(json_object_get(json, "files"), i, value)
		kr_strs_add(&g->arena, files, kr_arena_dup(&g->arena, json_string_value(value)));
	*agent = (struct kr_plan_agent){ .id = string_of(g, json, "id", ""), .hosts = hosts, .env = literals, .files = files };
	if (json_object_get(json, "config_env")) {
		agent->config_env = string_of(g, json, "config_env", NULL);
		agent->config_dir = kr_path_join(&g->arena, g->host.places.run_dir, "sessions/00112233aabbccdd/agent");
		agent->kept = kept;
		json_array_foreach(json_object_get(json, "keep"), i, value)
			kept[agent->kept_count++].path = kr_path_join(&g->arena, g->host.places.run_dir,
				kr_arena_printf(&g->arena, "sandbox-home/run-app/.kraft-agents/sample/%s", json_string_value(value)));
	}
	json_object_foreach(env, name, value)
		literals[agent->env_count++] = (struct kr_env_literal){ .name = kr_arena_dup(&g->arena, name),
			.value = kr_arena_dup(&g->arena, json_string_value(value)) };
	return agent;
}

static const struct {
	const char *file;
	struct kr_runtime runtime;
} runtimes[] = {
	{ "docker", { .kind = KR_RUNTIME_DOCKER, .name = "docker 20.10.24", .program = "/usr/bin/docker", .version = { 20, 10, 24 } } },
	{ "docker-28", { .kind = KR_RUNTIME_DOCKER, .name = "docker 28.2.2", .program = "/usr/bin/docker", .version = { 28, 2, 2 } } },
	{ "docker-rootless",
		{ .kind = KR_RUNTIME_DOCKER, .name = "rootless docker 20.10.24", .program = "/usr/bin/docker", .version = { 20, 10, 24 }, .is_rootless = true } },
	{ "docker-remap",
		{ .kind = KR_RUNTIME_DOCKER, .name = "docker 20.10.24", .program = "/usr/bin/docker", .version = { 20, 10, 24 }, .is_remapped = true } },
	{ "docker-selinux",
		{ .kind = KR_RUNTIME_DOCKER, .name = "docker 20.10.24", .program = "/usr/bin/docker", .version = { 20, 10, 24 }, .enforces_selinux = true } },
	{ "podman", { .kind = KR_RUNTIME_PODMAN, .name = "podman 4.3.1", .program = "/usr/bin/podman", .version = { 4, 3, 1 } } },
	{ "podman-rootless",
		{ .kind = KR_RUNTIME_PODMAN, .name = "rootless podman 4.3.1", .program = "/usr/bin/podman", .version = { 4, 3, 1 }, .is_rootless = true } },
	{ "podman-selinux",
		{ .kind = KR_RUNTIME_PODMAN, .name = "podman 4.3.1", .program = "/usr/bin/podman", .version = { 4, 3, 1 }, .enforces_selinux = true } },
};

static enum kr_selinux
selinux_of(struct golden *g, json_t *json)
{
	static const char *const names[] = {
#define X(choice, name) name,
		KR_SELINUX(X)
#undef X
	};
	const char *wanted = string_of(g, json, "selinux", "auto");
	size_t i = 0;

	while (i < KR_COUNT(names) && strcmp(names[i], wanted) != 0)
		i++;
	KR_BUG_IF(i == KR_COUNT(names));
	return (enum kr_selinux)i;
}

static unsigned
limits_of(json_t *list)
{
	static const char *const names[] = {
#define X(limit, name) name,
		KR_LIMITS(X)
#undef X
	};
	unsigned bits = 0;

	for (size_t i = 0; i < KR_COUNT(names); i++) {
		bool has = !list;
		json_t *name;
		size_t k;

		json_array_foreach(list, k, name)
			has = has || strcmp(json_string_value(name), names[i]) == 0;
		bits |= has ? 1u << i : 0;
	}
	return bits;
}

static bool
is_wanted(json_t *list, const char *name)
{
	json_t *wanted;
	size_t i;

	json_array_foreach(list, i, wanted)
		if (strcmp(json_string_value(wanted), name) == 0)
			return true;
	return false;
}

/* {"image_id": ..., "entrypoint": [...], "env": [...], "ca_bundle": ...} */
static const struct kr_plan_container *
container_of(struct golden *g, json_t *json)
{
	struct kr_runtime runtime = runtimes[0].runtime; /* explain tells of the first one that is wanted */
	struct kr_image *image = &g->image;
	json_t *word;
	size_t i;

	if (!json)
		return NULL;
	*image = (struct kr_image){ .name = g->repos->repo[0].sandbox.image, .id = string_of(g, json, "image_id", NULL) };
	json_array_foreach(json_object_get(json, "entrypoint"), i, word)
		kr_strs_add(&g->arena, &image->entrypoint, kr_arena_dup(&g->arena, json_string_value(word)));
	json_array_foreach(json_object_get(json, "env"), i, word)
		kr_strs_add(&g->arena, &image->env, kr_arena_dup(&g->arena, json_string_value(word)));
	json_array_foreach(json_object_get(json, "volumes"), i, word)
		kr_strs_add(&g->arena, &image->volumes, kr_arena_dup(&g->arena, json_string_value(word)));
	for (size_t r = KR_COUNT(runtimes); r-- > 0;)
		if (is_wanted(json_object_get(json, "runtimes"), runtimes[r].file))
			runtime = runtimes[r].runtime;
	runtime.limits = limits_of(json_object_get(json, "limits"));
	kr_container_walls(&g->arena, &runtime, &g->repos->repo[0].sandbox, selinux_of(g, json), 1000, 1001, &g->walls);
	g->container = (struct kr_plan_container){ .runtime = runtime.name,
		.image = image->name,
		.image_id = image->id,
		.entrypoint = &image->entrypoint,
		.image_env = &image->env,
		.volumes = &image->volumes,
		.ca_bundle = string_of(g, json, "ca_bundle", NULL),
		.walls = &g->walls };
	return &g->container;
}

/* A linked worktree of the repository itself. */
static struct kr_plan_shared_git *
shared_git(struct golden *g, const char *worktree, const char *common, const char *name)
{
	struct kr_plan_shared_git *git = kr_arena_new(&g->arena, struct kr_plan_shared_git);

	git->worktree = worktree;
	git->common = common;
	git->worktree_git_dir = kr_arena_printf(&g->arena, "%s/worktrees/%s", common, name);
	git->branch = string_of(g, json_object_get(g->json, "request"), "branch", "kraft/run-app");
	kr_strs_add(&g->arena, &git->identity, "GIT_AUTHOR_NAME=Ada");
	return git;
}

static const struct kr_plan_shared_git *
all_shared_git(struct golden *g, json_t *members)
{
	struct kr_plan_shared_git *root = shared_git(g, NULL, kr_path_join(&g->arena, g->request.checkout, ".git"), "run-app"),
							  *last = root;
	json_t *below;
	size_t i;

	kr_strs_add(&g->arena, &root->borrowed, "/srv/mirror/objects");
	json_array_foreach(members, i, below)
	{
		const char *worktree = kr_path_join(&g->arena, g->request.worktree, json_string_value(below));
		struct kr_plan_shared_git *git = shared_git(g, worktree,
			kr_arena_printf(&g->arena, "/Users/ada/code/%s/.git", kr_path_basename(worktree)), "run-app");

		last->next = git;
		last = git;
	}
	return root;
}

static const struct kr_plan_macos *
macos_of(struct golden *g, json_t *request)
{
	const bool has_way_out = !json_is_true(json_object_get(request, "no_way_out"));

	if (!g->host.places.is_macos || g->repos->repo[0].sandbox.kind == KR_SANDBOX_DOCKER)
		return NULL;
	g->macos = (struct kr_plan_macos){ .tmpdir = kr_path_join(&g->arena, g->host.places.run_dir, "t/0a1b2c"),
		.proxy = has_way_out ? "http://kraft:SECRET-TOKEN@127.0.0.1:49321" : NULL,
		.proxy_port = has_way_out ? 49321 : 0 };
	if (json_is_true(json_object_get(request, "git")))
		g->macos.git = all_shared_git(g, json_object_get(request, "members"));
	return &g->macos;
}

static void
make_request(struct golden *g)
{
	json_t *request = json_object_get(g->json, "request"), *word;
	const char *run = g->host.places.run_dir;
	struct kr_request *r = &g->request;
	struct kr_strs argv = { 0 }, starter = { 0 };
	size_t i;

	json_array_foreach(json_object_get(request, "starter"), i, word)
		kr_strs_add(&g->arena, &starter, kr_arena_dup(&g->arena, json_string_value(word)));
	json_array_foreach(json_object_get(request, "argv"), i, word)
		kr_strs_add(&g->arena, &argv, kr_arena_dup(&g->arena, json_string_value(word)));
	if (!argv.n)
		kr_strs_add(&g->arena, &argv, "make");
	*r = (struct kr_request){
		.repo = &g->repos->repo[0],
		.phase = strcmp(string_of(g, request, "phase", "runtime"), "install") == 0 ? KR_PHASE_INSTALL
																				   : KR_PHASE_RUNTIME,
		.item = "run-app",
		.session = "00112233aabbccdd",
		.worktree = kr_path_join(&g->arena, run, "worktrees/run-app"),
		.checkout = g->repos->repo[0].path,
		.home = kr_path_join(&g->arena, run, "sandbox-home/run-app"),
		.results_dir = kr_path_join(&g->arena, run, "results/run-app"),
		.result_file = kr_path_join(&g->arena, run, "results/run-app/00112233aabbccdd.json"),
		.channel_dir = kr_path_join(&g->arena, run, "sn/00112233aabbccdd"),
		.argv = argv.v,
		.starter = starter.v,
		.terminal = json_is_true(json_object_get(request, "terminal")),
	};
	r->cwd = kr_path_join(&g->arena, r->worktree, string_of(g, request, "cwd", "."));
	if (json_is_true(json_object_get(request, "git")) && !g->host.places.is_macos)
		r->git = all_git(g, run, r->checkout, json_object_get(request, "members"));
	r->agent = agent_of(g, json_object_get(request, "agent"));
	r->is_short_run = json_is_true(json_object_get(request, "short_run"));
	r->container = container_of(g, json_object_get(g->json, "container"));
	r->macos = macos_of(g, request);
}

/* ---- comparing ---- */

static bool
writing(void)
{
	const char *mode = getenv("KRAFT_GOLDEN");

	return mode && strcmp(mode, "write") == 0;
}

/* Tells the first line that differs. */
static void
tell_difference(const char *name, const char *expected, const char *got)
{
	int line = 1;

	for (;; line++) {
		size_t n = strcspn(expected, "\n"), m = strcspn(got, "\n");

		if (n != m || memcmp(expected, got, n) != 0 || !expected[n] || !got[m])
			break;
		expected += n + 1;
		got += m + 1;
	}
	printf("# %s differs at line %d\n# expected: %.*s\n# got:      %.*s\n", name, line,
		(int)strcspn(expected, "\n"), expected, (int)strcspn(got, "\n"), got);
}

/* out NULL: the file must not be there. */
static bool
compare(struct golden *g, const char *name, const struct kr_buf *out)
{
	const char *path = file_of(g, name), *got = out ? out->data : NULL;
	kr_auto_buf struct kr_buf expected = KR_BUF(OUT_BYTES);

	if (writing()) {
		(void)unlink(path);
		return !out || kr_file_write_at(AT_FDCWD, path, got, out->len, 0644, NULL) == 0;
	}
	if (kr_file_read_at(AT_FDCWD, path, &expected, NULL) < 0) {
		if (out)
			printf("# %s is missing\n", name);
		return !out;
	}
	if (!out) {
		printf("# %s should not be there\n", name);
		return false;
	}
	if (expected.len == out->len && memcmp(expected.data, got, out->len) == 0)
		return true;
	tell_difference(name, expected.data ? expected.data : "", got);
	return false;
}

static void
print_refusal(const struct kr_error *err, const struct kr_strs *lookup, struct kr_buf *out)
{
	kr_buf_addf(out, "%s: ", kr_error_name(err->code));
	if (err->place.line)
		kr_buf_addf(out, "%s:%u:%u: ", err->place.path, err->place.line, err->place.column);
	kr_buf_addf(out, "%s\n", err->message);
	if (err->hint[0])
		kr_buf_addf(out, "hint: %s\n", err->hint);
	for (size_t i = 0; i < lookup->n; i++)
		kr_buf_addf(out, "  %s\n", lookup->v[i]);
}

static bool
compare_arguments(struct golden *g, const struct kr_plan *plan)
{
	static const struct kr_bwrap bwrap = { .path = "/usr/bin/bwrap", .version = { 0, 8, 0 } };
	struct kr_bwrap_render render = { 0 };
	struct kr_error err = { 0 };
	bool same;

	if (kr_bwrap_args(plan, &bwrap, NULL, NULL, NULL, "/home/ada/.kraft/run/empty", &render, &err) < 0) {
		printf("# %s\n", err.message);
		return false;
	}
	for (size_t i = 0; i < render.args.len; i++)
		if (render.args.data[i] == '\0')
			render.args.data[i] = '\n';
	same = compare(g, "expected.bwrap", &render.args);
	kr_buf_fini(&render.args);
	kr_buf_fini(&render.verify);
	return same;
}

static bool
compare_profile(struct golden *g, const struct kr_plan *plan)
{
	kr_auto_buf struct kr_buf text = KR_BUF(OUT_BYTES);
	struct kr_error err = { 0 };

	if (kr_seatbelt_profile(plan, &text, &err) < 0) {
		printf("# %s\n", err.message);
		return false;
	}
	return compare(g, "expected.sb", &text);
}

/* MAC-06: not where a person or a log can read it. */
static bool
tells_token(const struct kr_buf *text)
{
	if (!text->data || !strstr(text->data, "SECRET-TOKEN"))
		return false;
	printf("# the session's token is told\n");
	return true;
}

/* ---- containers ---- */

/* CTR-01, CTR-04, CTR-07: whatever the case. Values that kraft may print are paths and constants. */
static bool
is_closed(const struct kr_plan *plan, const char *arg)
{
	static const char *const open[] = { "--privileged", "--cap-add", "docker.sock", "podman.sock", "--pid=host", "--pid=container",
		"--ipc=host", "--uts=host", "--userns=container", "--network=host", "--network=container", "--device", "--security-opt=seccomp",
		"--security-opt=apparmor", "--security-opt=systempaths", "--volumes-from", "--group-add" };

	for (size_t i = 0; i < KR_COUNT(open); i++)
		if (strstr(arg, open[i]) && strcmp(arg, "--privileged=false") != 0) {
			printf("# '%s' opens a wall\n", arg);
			return false;
		}
	for (size_t i = 0; i < plan->env_count; i++)
		if (plan->env[i].source != KR_ENV_KRAFT && *plan->env[i].value && strstr(arg, plan->env[i].value)) {
			printf("# '%s' has the value of %s\n", arg, plan->env[i].name);
			return false;
		}
	for (size_t i = 0; i < plan->request->container->image_env->n; i++)
		if (strstr(arg, plan->request->container->image_env->v[i])) {
			printf("# '%s' has a variable of the image\n", arg);
			return false;
		}
	return true;
}

/* One word a line, where a newline in it is shown as such. */
static bool
list_words(const struct kr_plan *plan, const struct kr_buf *args, struct kr_buf *out)
{
	bool closed = true;

	for (const char *arg = args->data; arg < args->data + args->len; arg += strlen(arg) + 1) {
		closed = is_closed(plan, arg) && closed;
		for (const char *c = arg; *c; c++)
			kr_buf_add(out, *c == '\n' ? "\\n" : c, *c == '\n' ? 2 : 1);
		kr_buf_adds(out, "\n");
	}
	return closed;
}

static bool
compare_runtime(struct golden *g, const struct kr_plan *plan, const struct kr_container *container, const char *file)
{
	kr_auto_buf struct kr_buf text = KR_BUF(OUT_BYTES);
	struct kr_container_render render = { 0 };
	static const struct kr_strs none;
	struct kr_error err = { 0 };
	bool closed = true;

	if (kr_runtime_check(container->runtime, &plan->request->repo->sandbox, container->selinux, &err) < 0 ||
		kr_container_args(plan, container, NULL, &render, &err) < 0)
		print_refusal(&err, &none, &text);
	else
		closed = list_words(plan, &render.args, &text);
	kr_buf_fini(&render.args);
	kr_buf_fini(&render.verify);
	return compare(g, file, &text) && closed;
}

static bool
compare_runtimes(struct golden *g, const struct kr_plan *plan)
{
	json_t *json = json_object_get(g->json, "container");
	bool same = true;

	for (size_t i = 0; i < KR_COUNT(runtimes); i++) {
		struct kr_runtime runtime = runtimes[i].runtime;
		const char *file = kr_arena_printf(&g->arena, "expected.%s", runtimes[i].file);
		const struct kr_container container = { .runtime = &runtime,
			.image = &g->image,
			.selinux = selinux_of(g, json),
			.home = g->host.places.kraft_home,
			.name = "kraft-00112233aabbccdd",
			.empty_path = kr_path_join(&g->arena, g->host.places.run_dir, "empty"),
			.client_dir = kr_path_join(&g->arena, g->host.places.run_dir, "sandbox-client/kraft-00112233aabbccdd"),
			.uid = 1000,
			.gid = 1001 };

		runtime.limits = limits_of(json_object_get(json, "limits"));
		if (!plan || !is_wanted(json_object_get(json, "runtimes"), runtimes[i].file))
			same = compare(g, file, NULL) && same;
		else
			same = compare_runtime(g, plan, &container, file) && same;
	}
	return same;
}

static bool
compare_plan(struct golden *g)
{
	kr_auto_buf struct kr_buf text = KR_BUF(OUT_BYTES), json = KR_BUF(OUT_BYTES);
	struct kr_strs lookup = { 0 }, beside = { 0 };
	struct kr_error err = { 0 };
	bool wants_json = json_is_true(json_object_get(g->json, "json")), same;
	const struct kr_plan *plan = NULL;

	if (g->request.is_short_run || kr_plan_secrets(&g->arena, &g->request, NULL, &g->request.secrets, &err) == 0)
		plan = kr_plan_build(&g->arena, &g->host, &g->request, &lookup, &err);

	if (!plan) {
		print_refusal(&err, &lookup, &text);
		same = compare(g, "expected.plan", &text);
		return compare(g, "expected.bwrap", NULL) && compare(g, "expected.sb", NULL) && compare_runtimes(g, NULL) && same;
	}
	if (g->request.macos)
		kr_seatbelt_beside(&g->arena, g->request.terminal, &beside);
	kr_plan_print(plan, &beside, &text);
	same = compare(g, "expected.plan", &text) && !tells_token(&text);
	if (wants_json) {
		kr_plan_print_json(plan, beside.n ? &beside : NULL, &json);
		same = compare(g, "expected.json", &json) && !tells_token(&json) && same;
	}
	if (g->request.macos)
		return compare(g, "expected.bwrap", NULL) && compare_profile(g, plan) && same;
	if (!g->request.container)
		return compare_arguments(g, plan) && compare_runtimes(g, NULL) && same;
	return compare(g, "expected.bwrap", NULL) && compare_runtimes(g, plan) && same;
}

static bool
run_case(const char *top, const char *name)
{
	struct golden g = { .name = name };
	struct entries list = { 0 };
	kr_auto_buf struct kr_buf yaml = KR_BUF(OUT_BYTES);
	struct kr_error err = { 0 };
	bool same = false;

	g.directory = kr_arena_printf(&g.arena, "%s/%s", top, name);
	g.json = load(file_of(&g, "host.json"));
	g.host.places.is_macos = strcmp(string_of(&g, g.json, "system", "linux"), "macos") == 0;
	g.base = load(kr_arena_printf(&g.arena, "%s/../base%s.json", top, g.host.places.is_macos ? "-macos" : ""));
	make_host(&g, &list);
	if (kr_file_read_at(AT_FDCWD, file_of(&g, "repos.yaml"), &yaml, &err) == 0)
		g.repos = kr_repos_parse(&g.arena, "repos.yaml", yaml.data, yaml.len, &g.host.places, &err);
	if (g.repos && g.repos->repo_count == 1) {
		make_request(&g);
		same = compare_plan(&g);
	} else {
		printf("# %s:%u: %s\n", name, err.place.line, err.message);
	}
	json_decref(g.base);
	json_decref(g.json);
	free(list.v);
	kr_arena_fini(&g.arena);
	return same;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int
main(int argc, char **argv)
{
	const char *top = argc > 1 ? argv[1] : KR_TEST_DIR "/golden/plan";
	struct kr_arena arena = { 0 };
	struct kr_strs names = { 0 };
	DIR *dir = opendir(top);
	int failed = 0;

	if (!dir) {
		fprintf(stderr, "%s: %s\n", top, strerror(errno));
		return 2;
	}
	for (const struct dirent *e; (e = readdir(dir)) != NULL;)
		if (e->d_name[0] != '.')
			kr_strs_add(&arena, &names, kr_arena_dup(&arena, e->d_name));
	(void)closedir(dir);
	qsort(names.v, names.n, sizeof(*names.v), by_name);
	printf("1..%zu\n", names.n);
	for (size_t i = 0; i < names.n; i++) {
		bool ok = run_case(top, names.v[i]);

		printf("%sok %zu - %s\n", ok ? "" : "not ", i + 1, names.v[i]);
		failed += !ok;
	}
	kr_arena_fini(&arena);
	return failed ? 1 : 0;
}
