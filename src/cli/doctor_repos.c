/*
 * Rows about repos.yaml. Whether a launch would be refused is asked of the planner itself: once for each
 * exposed path, so that one bad entry does not hide the next, then once for the whole entry.
 */
#include "cli/doctor.h"
#include "run/where.h"

#include <sys/stat.h>

#include "base/path.h"
#include "git/git.h"
#include "session/local_files.h"

enum { WALK_ENTRIES = 300000, WALK_DEPTH = 64 };

/* ---- the checkout ---- */

static void
check_checkout(struct kr_doctor *d, const struct kr_repo *repo)
{
	struct kr_error err = { 0 };
	struct kr_checkout checkout;
	char oid[KR_OID_HEX_MAX + 1];

	if (kr_checkout_find(d->arena, repo->path, &checkout, &err) < 0 ||
		kr_checkout_head(&checkout, oid, &err) < 0 || kr_local_files_check(repo, checkout.root, &err) < 0) {
		if (!err.hint[0])
			kr_hint(&err, "correct its path in repos.yaml, or take the entry out");
		kr_doctor_add_error(d, "checkout", &err);
		return;
	}
	kr_doctor_add(d, "checkout", KR_VERDICT_OK, "", "'%s' at %.12s", checkout.root, oid);
}

/* ---- what is exposed ---- */

/* A walk below an exposed directory, breadth first, bounded. */
struct walk {
	const struct kr_doctor *d;
	struct kr_strs level, next;
	const char *directory, *found;
	size_t entries, count; /* count: sockets and FIFOs */
};

static bool
visit(void *context, const char *name, enum kr_fs_type type)
{
	struct walk *w = context;

	if (++w->entries > WALK_ENTRIES)
		return false;
	if (type == KR_FS_DIR)
		kr_strs_add(w->d->arena, &w->next, kr_path_join(w->d->arena, w->directory, name));
	if (type == KR_FS_SOCKET || type == KR_FS_FIFO) {
		w->count++;
		if (!w->found)
			w->found = kr_path_join(w->d->arena, w->directory, name);
	}
	return true;
}

/* OS-SEC-08: those within the launch's own search refuse it; this is for the deeper ones. */
static void
look_for_channels(struct kr_doctor *d, const char *top)
{
	struct walk w = { .d = d };
	unsigned depth;

	kr_strs_add(d->arena, &w.next, top);
	for (depth = 0; w.next.n && depth < WALK_DEPTH && w.entries <= WALK_ENTRIES; depth++) {
		w.level = w.next;
		w.next = (struct kr_strs){ 0 };
		for (size_t i = 0; i < w.level.n && w.entries <= WALK_ENTRIES; i++) {
			w.directory = w.level.v[i];
			(void)d->host.fs->list(
				d->host.fs->context, w.directory, visit, &w); /* unreadable: the worker's too */
		}
	}
	if (w.found)
		kr_doctor_add(d, "sockets", KR_VERDICT_WARN,
			"remove it, or expose a narrower directory that does not hold it",
			"'%s'%s: a read-only view does not stop a worker from using it", w.found,
			w.count > 1 ? kr_arena_printf(d->arena, " and %zu more sockets or FIFOs", w.count - 1) : "");
	else if (w.next.n || w.entries > WALK_ENTRIES)
		kr_doctor_add(d, "sockets", KR_VERDICT_WARN, "expose narrower directories",
			"'%s' is too large to be searched whole for sockets; %zu entries were looked at", top, w.entries);
}

/* ---- would it launch? ---- */

static int
plan_for(struct kr_doctor *d, const struct kr_repo *repo, const struct kr_plan **out, struct kr_error *err)
{
	static const char *const argv[] = { "true", NULL };
	const char *run = d->host.places.run_dir;
	struct kr_request *request = kr_arena_new(d->arena, struct kr_request);

	*request = (struct kr_request){
		.repo = repo,
		.phase = KR_PHASE_RUNTIME,
		.item = "doctor",
		.session = "doctor",
		.worktree = kr_path_join(d->arena, run, "worktrees/doctor"),
		.checkout = repo->path,
		.home = kr_path_join(d->arena, run, "sandbox-home/doctor"),
		.results_dir = kr_path_join(d->arena, run, "results/doctor"),
		.result_file = kr_path_join(d->arena, run, "results/doctor/doctor.json"),
		.channel_dir = kr_path_join(d->arena, run, "sn/doctor"),
		.cwd = kr_path_join(d->arena, run, "worktrees/doctor"),
		.argv = argv,
		.macos = kr_plan_macos_shown(d->arena, &d->host, "doctor", NULL),
	};
	if (kr_plan_secrets(d->arena, request, NULL, &request->secrets, err) < 0)
		return -1;
	*out = kr_plan_build(d->arena, &d->host, request, NULL, err);
	return *out ? 0 : -1;
}

/* CFG-04, one entry alone. */
static bool
check_expose(struct kr_doctor *d, const struct kr_repo *repo, struct kr_expose *expose)
{
	const char *real;
	const struct kr_plan *plan;
	struct kr_repo alone = *repo;
	struct kr_error err = { 0 };
	struct kr_fs_entry entry;

	alone.sandbox.expose = expose;
	alone.sandbox.expose_count = 1;
	if (plan_for(d, &alone, &plan, &err) < 0) {
		kr_doctor_add_error(d, "expose", &err);
		return false;
	}
	kr_doctor_add(d, "expose", KR_VERDICT_OK, "", "'%s' can be shown", expose->text);
	real = kr_fs_resolve(d->host.fs, d->arena, expose->path, &entry, NULL);
	if (real && entry.type == KR_FS_DIR && !kr_path_is_within(real, "/usr") &&
		!kr_path_is_within(real, "/etc"))
		look_for_channels(d, real);
	return true;
}

static void
check_sandbox(struct kr_doctor *d, const struct kr_repo *repo)
{
	struct kr_repo bare = *repo;
	const struct kr_plan *plan;
	struct kr_error err = { 0 };
	bool well = true;

	bare.sandbox.expose_count = 0;
	if (plan_for(d, &bare, &plan, &err) < 0) {
		kr_doctor_add_error(d, "sandbox", &err);
		return;
	}
	for (size_t i = 0; i < repo->sandbox.expose_count; i++)
		well = check_expose(d, repo, &repo->sandbox.expose[i]) && well;
	if (!well)
		return;
	if (plan_for(d, repo, &plan, &err) < 0) {
		kr_doctor_add_error(d, "sandbox", &err);
		return;
	}
	kr_doctor_add(d, "sandbox", KR_VERDICT_OK, "",
		"a launch can be planned: %zu mounts, %zu of them exposed or masked", plan->step_count,
		plan->expose_and_mask_count);
	for (size_t i = 0; i < plan->notes.n; i++)
		kr_doctor_add(d, "sandbox", KR_VERDICT_WARN, "", "%s", plan->notes.v[i]);
}

bool
kr_doctor_needs_bubblewrap(struct kr_doctor *d)
{
	bool any_container = false;

	for (size_t i = 0; d->repos && i < d->repos->repo_count; i++) {
		struct kr_where where = { .repo = &d->repos->repo[i], .repos = d->repos };

		if (d->only && d->only != where.repo)
			continue;
		if (kr_where_layers(d->arena, &d->host.places, NULL, &where, NULL) < 0)
			return true;
		if (where.repo->sandbox.kind == KR_SANDBOX_OS)
			return true;
		any_container = any_container || where.repo->sandbox.kind != KR_SANDBOX_NONE;
	}
	return !any_container;
}

/* Whether they are found inside is the plan's, which says so in its notes. */
static void
check_commands(struct kr_doctor *d, const struct kr_repo *repo)
{
	const struct {
		const char *check, *line, *key;
	} both[] = { { "setup", repo->setup_command, "setup_command" }, { "tests", repo->test_command, "test_command" } };

	for (size_t i = 0; i < KR_COUNT(both); i++)
		if (both[i].line)
			kr_doctor_add(d, both[i].check, KR_VERDICT_OK, "", "%s", *both[i].line ? both[i].line : "none is needed");
		else
			kr_doctor_add(d, both[i].check, KR_VERDICT_SKIP, kr_arena_printf(d->arena, "write '%s' into its entry; \"\" when there is none", both[i].key),
				"none is declared");
}

static size_t
count_open(const struct kr_host_list *list)
{
	size_t n = 0;

	for (size_t i = 0; i < list->allow.n; i++)
		n += list->allow.v[i][0] == '*' && list->allow.v[i][1] != '.'; /* everything that is public */
	return n;
}

static void
check_hosts(struct kr_doctor *d, const struct kr_repo *repo)
{
	const struct kr_host_list *install = &repo->sandbox.network.phase[KR_PHASE_INSTALL], *runtime = &repo->sandbox.network.phase[KR_PHASE_RUNTIME];
	const size_t open = count_open(install) + count_open(runtime);

	if (!repo->sandbox.network.is_set)
		return;
	kr_doctor_add(d, "hosts", open ? KR_VERDICT_WARN : KR_VERDICT_OK, open ? "name the hosts themselves: whoever takes uploads takes secrets too" : "",
		"%zu entries for setup, %zu for sessions%s", install->allow.n, runtime->allow.n,
		open ? kr_arena_printf(d->arena, "; %zu of them for everything that is public", open) : "");
}

static void
check_repo(struct kr_doctor *d, const struct kr_repo *repo)
{
	struct kr_where where = { .repo = repo, .repos = d->repos };
	struct kr_error err = { 0 };

	d->repo = repo->name;
	check_checkout(d, repo);
	if (kr_where_layers(d->arena, &d->host.places, NULL, &where, &err) < 0)
		kr_doctor_add_error(d, "sandbox", &err);
	else if (where.repo->sandbox.kind == KR_SANDBOX_DOCKER || where.repo->sandbox.kind == KR_SANDBOX_KIT)
		kr_doctor_container(d, where.repo);
	else
		check_sandbox(d, where.repo);
	check_commands(d, repo);
	check_hosts(d, where.repo);
	d->repo = NULL;
}

void
kr_doctor_repos(struct kr_doctor *d)
{
	const struct kr_repos *repos = d->repos;

	if (!repos) {
		kr_doctor_add_error(d, "repos.yaml", &d->repos_why);
		return;
	}
	kr_doctor_add(d, "repos.yaml", KR_VERDICT_OK, "", "%zu repositor%s", repos->repo_count,
		repos->repo_count == 1 ? "y" : "ies");
	for (size_t i = 0; i < repos->warnings.n; i++)
		kr_doctor_add(
			d, "keys", KR_VERDICT_FAIL, "take the key out, or correct it", "%s", repos->warnings.v[i]);
	if (!d->host.guest_dir)
		d->host.guest_dir = "/opt/kraft"; /* its own row failed; the rest can still be planned */
	for (size_t i = 0; i < repos->repo_count; i++)
		if (!d->only || d->only == &repos->repo[i])
			check_repo(d, &repos->repo[i]);
}
