/*
 * From configuration, facts of the host and a request to a plan. Pure: the host is only seen through
 * host->fs, nothing is opened, made or changed, and the same input gives the same plan, byte by byte.
 *
 * Order of phases:
 *   1. refuse what cannot be planned: no sandbox, a kind that is not built in
 *   2. gather what is shown: kraft's own places, exposed paths, the directories that commands need, CA files;
 * each is checked against the rules as written and as resolved, and searched for credential files, sockets
 * and FIFOs
 *   3. merge: a place that another one shows anyway goes; a writable place inside a read-only one stays
 *   4. order: system, /proc, /dev, /tmp; then places, parents before children; then links; then masks; last,
 * what was mounted so far on / and /dev becomes read-only
 *   5. the environment
 *
 * Nothing a worker can write (worktree, sandbox home) chooses anything here but where a path-named command
 * may not lead.
 */
#include "plan/build.h"

#include <errno.h>

#include "base/path.h"
#include "policy/policy.h"

const char *
kr_step_name(enum kr_step_kind kind)
{
	static const char *const names[] = {
#define X(kind, name) name,
		KR_STEP_KINDS(X)
#undef X
	};

	return (unsigned)kind < KR_COUNT(names) ? names[kind] : "unknown";
}

/* ---- what may be shown, what is shown ---- */

const char *
kr_build_why_not(const struct kr_build *b, const char *path)
{
	const char *why = kr_protect_why(b->arena, &b->host->places, path);

	if (!why)
		why = kr_protect_why_among(b->arena, &b->host->places, &b->protected_real, path);
	return why ? why : kr_place_why(b->arena, &b->host->places, path);
}

static bool
is_within_any(const struct kr_strs *directories, const char *path)
{
	for (size_t i = 0; i < directories->n; i++)
		if (kr_path_is_within(path, directories->v[i]))
			return true;
	return false;
}

bool
kr_build_is_shown(const struct kr_build *b, const char *path)
{
	if (is_within_any(&b->system_dirs, path) && !is_within_any(&b->not_system, path))
		return true;
	return kr_path_is_within(path, b->request->worktree) || kr_path_is_within(path, b->request->home);
}

void
kr_build_show(struct kr_build *b, struct kr_show show)
{
	if (b->show_count == b->show_cap) {
		size_t cap = b->show_cap ? b->show_cap * 2 : 32;
		struct kr_show *shows = kr_arena_alloc(b->arena, cap * sizeof(*shows));

		if (b->show_count)
			memcpy(shows, b->shows, b->show_count * sizeof(*shows));
		b->shows = shows;
		b->show_cap = cap;
	}
	b->shows[b->show_count++] = show;
}

void
kr_build_links(struct kr_build *b, const struct kr_strs *pairs, const char *because)
{
	if (kr_build_is_macos(b))
		return; /* a link is followed there as everywhere */
	for (size_t i = 0; i + 1 < pairs->n; i += 2) {
		bool known = false;

		for (size_t k = 0; k < b->links.n; k += 2)
			known = known || strcmp(b->links.v[k], pairs->v[i]) == 0;
		if (known || kr_build_is_shown(b, pairs->v[i]))
			continue;
		kr_strs_add(b->arena, &b->links, pairs->v[i]);
		kr_strs_add(b->arena, &b->links, pairs->v[i + 1]);
		kr_strs_add(b->arena, &b->link_why, because);
	}
}

/* Protected paths whose links lead elsewhere are protected there too. */
static void
resolve_protected(struct kr_build *b)
{
	struct kr_strs paths = { 0 };

	kr_protected_paths(b->arena, &b->host->places, &paths);
	for (size_t i = 0; i < paths.n; i++) {
		struct kr_fs_entry entry;
		const char *real = kr_fs_resolve(b->host->fs, b->arena, paths.v[i], &entry, NULL);

		if (real && strcmp(real, paths.v[i]) != 0)
			kr_strs_add(b->arena, &b->protected_real, real);
	}
}

/* ---- 1. kinds ---- */

int
kr_plan_check_network(const struct kr_repo *repo, struct kr_error *err)
{
	const struct kr_sandbox *sandbox = &repo->sandbox;

	if (sandbox->network.is_set || sandbox->unrestricted_network)
		return 0;
	kr_fail(err, KR_E_NO_NETWORK, "the sandbox of '%s' sets no 'network', so nothing says which hosts a worker may reach",
		repo->path);
	return kr_hint(err, "write 'network: {runtime: {allow: []}}' in it, with the hosts that are needed, or "
						"'unrestricted_network: true' for an open network from which nothing reaches kraft");
}

static int
check_kind(const struct kr_request *request, struct kr_error *err)
{
	enum kr_sandbox_kind kind = request->repo->sandbox.kind;

	if (kind == KR_SANDBOX_OS)
		return 0;
	if (kind == KR_SANDBOX_DOCKER && kr_plan_check_network(request->repo, err) < 0)
		return -1;
	if (kind == KR_SANDBOX_DOCKER && request->container)
		return 0;
	if (kind == KR_SANDBOX_KIT)
		return kr_fail(err, KR_E_UNSUPPORTED, "the kit of '%s' has not been looked up, and it says what its sandbox is",
			request->repo->path);
	if (kind != KR_SANDBOX_NONE)
		return kr_fail(
			err, KR_E_UNSUPPORTED, "kind: %s is not built into this kraft", kr_sandbox_kind_name(kind));
	kr_fail(err, KR_E_NO_SANDBOX, "no sandbox is set for '%s', and kraft runs nothing without one",
		request->repo->path);
	return kr_hint(
		err, "add 'sandbox: {kind: os, network: {runtime: {allow: []}}}' to its entry in repos.yaml");
}

/*
 * Inside, /var/tmp is a link to /tmp, so nothing can be mounted below it; and /dev/shm is the worker's, who
 * could rename the directories above kraft's places and put others there.
 */
static int
check_places(const struct kr_request *r, struct kr_error *err)
{
	static const char *const inside[] = { "/var/tmp", "/dev" };
	const char *const places[] = { r->worktree, r->home, r->results_dir, r->channel_dir };

	for (size_t i = 0; i < KR_COUNT(places) * KR_COUNT(inside); i++) {
		const char *place = places[i / KR_COUNT(inside)], *own = inside[i % KR_COUNT(inside)];

		if (!kr_path_is_within(place, own))
			continue;
		kr_fail(err, KR_E_REFUSED, "'%s' lies in %s, which is the sandbox's own inside", place, own);
		return kr_hint(err, "set KRAFT_HOME to a directory outside %s", own);
	}
	return 0;
}

/* ---- 2. what is shown ---- */

/* OS-MNT-01: the directories of the system, where the host has them. */
static void
add_system(struct kr_build *b)
{
	static const char *const directories[] = { "/usr", "/etc", "/bin", "/sbin", "/lib", "/lib64" };

	if (kr_build_is_macos(b)) {
		kr_build_macos_system(b);
		return;
	}
	for (size_t i = 0; i < KR_COUNT(directories); i++) {
		struct kr_fs_entry entry;

		if (kr_fs_resolve(b->host->fs, b->arena, directories[i], &entry, NULL) && entry.type == KR_FS_DIR)
			kr_strs_add(b->arena, &b->system_dirs, directories[i]);
	}
}

/* An error about one entry of `expose`, with its place in repos.yaml. */
static int
refuse_expose(const struct kr_build *b, const struct kr_expose *e, const char *why, struct kr_error *err)
{
	kr_fail(err, KR_E_EXPOSE_REFUSED, "exposed path '%s' %s", e->text, why);
	if (err && e->mark.line) {
		snprintf(err->place.path, sizeof(err->place.path), "%s/repos.yaml", b->host->places.config_dir);
		err->place.line = e->mark.line;
		err->place.column = e->mark.column;
	}
	return -1;
}

/* Resolves one entry and applies the rules to it as written and as resolved. NULL with the error set when it
 * is refused. */
static const char *
check_expose(struct kr_build *b, const struct kr_expose *e, struct kr_strs *links, struct kr_fs_entry *entry,
	struct kr_error *err)
{
	const char *why = kr_build_why_not(b, e->path), *real;

	if (why) {
		refuse_expose(b, e, why, err);
		return NULL;
	}
	real = kr_fs_resolve(b->host->fs, b->arena, e->path, entry, links);
	if (!real) {
		why = kr_arena_printf(b->arena, "cannot be reached: %s", strerror(entry->sys_errno));
		refuse_expose(b, e, entry->sys_errno == ENOENT ? "does not exist" : why, err);
		kr_hint(err, "create it, or take the entry out of the sandbox's expose list");
		return NULL;
	}
	why = kr_build_why_not(b, real);
	for (size_t i = 0; !why && !kr_build_is_macos(b) && i < links->n; i += 2)
		if (!kr_path_is_within(links->v[i], "/run"))
			why = kr_place_why(b->arena, &b->host->places, links->v[i]);
	if (!why && entry->type != KR_FS_FILE && entry->type != KR_FS_DIR)
		why = entry->type == KR_FS_SOCKET ? "is a socket"
			  : entry->type == KR_FS_FIFO ? "is a FIFO"
										  : "is a device";
	if (!why)
		return real;
	if (links->n)
		why = kr_arena_printf(b->arena, "leads to '%s', and that %s", real, why);
	refuse_expose(b, e, why, err);
	return NULL;
}

/* OS-MNT-10, OS-EXP-01 to -03, -05 */
static int
add_expose(struct kr_build *b, struct kr_error *err)
{
	const struct kr_sandbox *sandbox = &b->request->repo->sandbox;

	for (size_t i = 0; i < sandbox->expose_count; i++) {
		const struct kr_expose *e = &sandbox->expose[i];
		struct kr_strs links = { 0 };
		struct kr_fs_entry entry;
		const char *real = check_expose(b, e, &links, &entry, err);

		if (!real)
			return -1;
		kr_strs_add(b->arena, &b->expose, real);
		kr_build_links(b, &links, kr_arena_printf(b->arena, "leads to exposed '%s'", e->text));
		if (kr_build_is_shown(b, real))
			continue;
		if (entry.type == KR_FS_DIR && kr_build_scan(b, real, "exposed", err) < 0)
			return -1;
		kr_build_show(b, (struct kr_show){ .path = real,
							 .source = real,
							 .check = KR_CHECK_PROTECT,
							 .because = kr_arena_printf(b->arena, "exposed: '%s'", e->text) });
	}
	return 0;
}

/* ---- commands ---- */

static const char *
host_path(const struct kr_build *b)
{
	const char *path = kr_host_env(b->host, "PATH");

	return path ? path
				: KR_PATH_DEFAULT; /* an empty one names the current directory: nothing is found in it */
}

static int
look_up(struct kr_build *b, const char *command, struct kr_lookup *out, struct kr_error *err)
{
	const struct kr_lookup_input in = {
		.fs = b->host->fs,
		.places = &b->host->places,
		.path = host_path(b),
		.protected_real = &b->protected_real,
		.worktree = b->request->worktree,
		.home = b->request->home,
		.checkout = b->request->checkout,
		.cwd = b->request->cwd,
		.guest_bin = kr_path_join(b->arena, b->host->guest_dir, "bin"),
		.system_dirs = &b->system_dirs,
		.not_system = &b->not_system,
		.expose = &b->expose,
	};

	return kr_lookup_command(b->arena, &in, command, out, err);
}

/* What a lookup found: checked by the lookup itself, searched here. */
static int
show_lookup(struct kr_build *b, const struct kr_lookup *found, struct kr_error *err)
{
	for (size_t i = 0; i < found->mounts.n; i++) {
		if (kr_build_scan(b, found->mounts.v[i], "a command's directory", err) < 0)
			return -1;
		kr_build_show(b, (struct kr_show){ .path = found->mounts.v[i],
							 .source = found->mounts.v[i],
							 .check = KR_CHECK_PROTECT,
							 .because = found->mount_why.v[i] });
	}
	for (size_t i = 0; i < found->notes.n; i++)
		kr_build_note(b, "%s", found->notes.v[i]);
	kr_build_links(b, &found->links, "the name of a command leads through it");
	return 0;
}

static void
put_starter(struct kr_build *b)
{
	const struct kr_request *r = b->request;
	struct kr_strs argv = { 0 };

	if (!r->starter)
		return;
	for (const char *const *word = r->starter; *word; word++)
		kr_strs_add(b->arena, &argv, *word);
	kr_strs_add(b->arena, &argv, b->plan->exec_path);
	for (const char *const *word = r->argv + 1; *word; word++)
		kr_strs_add(b->arena, &argv, *word);
	b->plan->exec_path = r->starter[0];
	b->plan->argv = argv.v;
}

static int
add_command(struct kr_build *b, struct kr_error *err)
{
	struct kr_lookup found;
	int failed = look_up(b, b->request->argv[0], &found, err);

	b->plan->lookup = found.steps;
	if (failed)
		return -1;
	b->plan->exec_path = found.exec_path;
	put_starter(b);
	return show_lookup(b, &found, err);
}

/* OS-CMD-01: the repository's own commands run inside too; one that cannot is said, and refuses nothing. */
static void
add_repositorys_command(struct kr_build *b, const char *key, const char *line)
{
	struct kr_strs words = { 0 };

	kr_shell_commands(b->arena, line, &words);
	for (size_t i = 0; i < words.n; i++) {
		struct kr_lookup found;
		struct kr_error err = { 0 };

		if (strcmp(words.v[i], b->request->argv[0]) == 0)
			continue;
		if (look_up(b, words.v[i], &found, &err) < 0 || show_lookup(b, &found, &err) < 0)
			kr_build_note(b, "%s: %s", key, err.message);
	}
}

static int
add_commands(struct kr_build *b, struct kr_error *err)
{
	const struct kr_repo *repo = b->request->repo;

	if (add_command(b, err) < 0)
		return -1;
	if (repo->setup_command)
		add_repositorys_command(b, "setup_command", repo->setup_command);
	if (repo->test_command)
		add_repositorys_command(b, "test_command", repo->test_command);
	for (size_t i = 0; i < repo->test_scope_count; i++)
		add_repositorys_command(b, "test_scopes", repo->test_scopes[i].command);
	return 0;
}

/* ---- 3. merge ---- */

/* Parents before children; of one path the writable one first, then kraft's own. */
static int
show_order(const void *a, const void *b)
{
	const struct kr_show *x = a, *y = b;
	int order = strcmp(x->path, y->path);

	if (order)
		return order;
	if (x->writable != y->writable)
		return x->writable ? -1 : 1;
	return (int)y->ours - (int)x->ours;
}

/* What is shown at `path` because of others, apart from the place at `self`. */
static bool
is_covered(const struct kr_build *b, const struct kr_show *show, size_t kept)
{
	if (show->ours)
		return false;
	if (kr_build_is_shown(b, show->path))
		return true;
	for (size_t i = 0; i < kept; i++)
		if (b->shows[i].reach == KR_REACH_TREE && kr_path_is_within(show->path, b->shows[i].path))
			return true;
	return false;
}

/* Sorted, a place that covers another one stands before it. */
void
kr_build_merge(struct kr_build *b)
{
	size_t kept = 0;

	qsort(b->shows, b->show_count, sizeof(*b->shows), show_order);
	for (size_t i = 0; i < b->show_count; i++)
		if (!is_covered(b, &b->shows[i], kept))
			b->shows[kept++] = b->shows[i];
	b->show_count = kept;
}

static bool
in_a_show(const struct kr_build *b, const char *path)
{
	for (size_t i = 0; i < b->show_count; i++)
		if (kr_path_is_within(path, b->shows[i].path))
			return true;
	return false;
}

/* ---- 4. steps ---- */

void
kr_build_step(struct kr_build *b, struct kr_step s)
{
	b->plan->steps[b->plan->step_count++] = s;
}

/* A link on the host is a link inside when it leads into a directory that is shown too; else what it leads to
 * is shown. */
static void
step_system(struct kr_build *b)
{
	const struct kr_fs *fs = b->host->fs;

	for (size_t i = 0; i < b->system_dirs.n; i++) {
		const char *path = b->system_dirs.v[i], *text = fs->read_link(fs->context, b->arena, path);
		struct kr_fs_entry entry;
		const char *real = kr_fs_resolve(fs, b->arena, path, &entry, NULL);

		if (text && kr_path_is_within(real, "/usr"))
			kr_build_step(b, (struct kr_step){
						KR_STEP_LINK, .path = path, .source = text, .because = "a link on the host too" });
		else
			kr_build_step(b, (struct kr_step){ KR_STEP_BIND_RO, .path = path, .source = real,
						.because = "the system's programs, libraries and settings" });
	}
}

/* OS-MNT-02, -03 */
static void
step_fresh(struct kr_build *b)
{
	kr_build_step(b, (struct kr_step){ KR_STEP_PROC, .path = "/proc", .because = "the sandbox's own processes" });
	kr_build_step(b, (struct kr_step){ KR_STEP_DEV, .path = "/dev", .because = "null, zero, random, terminals" });
	kr_build_step(b, (struct kr_step){ KR_STEP_TMPFS, .path = "/tmp", .size_bytes = KR_TMP_BYTES,
				.inodes = KR_TMP_INODES, .because = "temporary files, gone with the session" });
	kr_build_step(b, (struct kr_step){ KR_STEP_TMPFS, .path = "/dev/shm", .size_bytes = KR_SHM_BYTES,
				.inodes = KR_SHM_INODES, .because = "shared memory, gone with the session" });
	kr_build_step(b, (struct kr_step){
				KR_STEP_LINK, .path = "/var/tmp", .source = "/tmp", .because = "/var/tmp is /tmp" });
}

/* The directory just below `top` on the way to `path`; NULL when the path is not deeper than that. */
static const char *
just_below(const struct kr_build *b, const char *top, const char *path)
{
	size_t n = strlen(top);

	if (!kr_path_is_within(path, top) || !path[n] || !strchr(path + n + 1, '/'))
		return NULL;
	return kr_arena_dup_n(b->arena, path, n + 1 + strcspn(path + n + 1, "/"));
}

static void
seal(struct kr_build *b, const char *fresh, const char *path)
{
	const char *top = just_below(b, fresh, path);

	if (!top || in_a_show(b, top) || kr_strs_has(&b->sealed, top))
		return;
	kr_strs_add(b->arena, &b->sealed, top);
	kr_build_step(b, (struct kr_step){ KR_STEP_TMPFS, .path = top, .size_bytes = KR_SEALED_BYTES,
						 .inodes = KR_SEALED_INODES, .because = "holds places below; sealed" });
}

/*
 * What lies in the host's /tmp is shown in the sandbox's own, where the worker could rename the directories
 * above it and put others in their place. So those directories are on a file system of their own that is
 * sealed at the end.
 */
void
kr_build_step_sealed(struct kr_build *b, const char *fresh)
{
	for (size_t i = 0; i < b->show_count; i++)
		seal(b, fresh, b->shows[i].path);
	for (size_t i = 0; i + 1 < b->links.n; i += 2)
		seal(b, fresh, b->links.v[i]);
}

void
kr_build_step_shows(struct kr_build *b)
{
	for (size_t i = 0; i < b->show_count; i++) {
		const struct kr_show *s = &b->shows[i];
		const enum kr_step_kind kind = s->adds ? KR_STEP_ADD : s->writable ? KR_STEP_BIND_RW : KR_STEP_BIND_RO;

		kr_build_step(b, (struct kr_step){ kind, .reach = s->reach, .path = s->path, .source = s->source,
							 .check = s->check, .device = s->device, .inode = s->inode, .because = s->because });
	}
}

void
kr_build_step_seals(struct kr_build *b)
{
	for (size_t k = 0; k < b->sealed.n; k++)
		kr_build_step(b, (struct kr_step){
							 KR_STEP_READ_ONLY, .path = b->sealed.v[k], .because = "only holds the places below it" });
}

/* Without a git, the worktree's `.git` leads nowhere. */
void
kr_build_step_no_git(struct kr_build *b)
{
	if (!b->request->git)
		kr_build_step(b, (struct kr_step){ KR_STEP_MASK, .path = kr_path_join(b->arena, b->request->worktree, ".git"),
							 .because = "the repository's git directory is not shown" });
}

static void
step_links(struct kr_build *b)
{
	for (size_t i = 0; i + 1 < b->links.n; i += 2)
		if (!in_a_show(b, b->links.v[i]))
			kr_build_step(b, (struct kr_step){ KR_STEP_LINK, .path = b->links.v[i], .source = b->links.v[i + 1],
						.because = b->link_why.v[i / 2] });
}

static int
step_path_order(const void *a, const void *b)
{
	return strcmp(((const struct kr_step *)a)->path, ((const struct kr_step *)b)->path);
}

void
kr_build_step_masks(struct kr_build *b)
{
	const size_t first = b->plan->step_count;

	for (size_t i = 0; i < b->masks.n; i++)
		kr_build_step(b, (struct kr_step){ KR_STEP_MASK, .path = b->masks.v[i], .because = b->mask_why.v[i] });
	qsort(b->plan->steps + first, b->masks.n, sizeof(*b->plan->steps), step_path_order);
}

static int
check_count(const struct kr_build *b, struct kr_error *err)
{
	size_t exposed = b->request->repo->sandbox.expose_count, count = exposed + b->masks.n;

	b->plan->expose_and_mask_count = count;
	if (count <= KR_PLAN_BINDS_MAX)
		return 0;
	kr_fail(err, KR_E_TOO_MANY_PLACES, "%zu exposed paths and masked credential files (%zu and %zu) are more than %d",
		count, exposed, b->masks.n, KR_PLAN_BINDS_MAX);
	return kr_hint(
		err, "expose one directory in place of many inside it, or narrower ones with fewer such files");
}

static void
make_steps(struct kr_build *b)
{
	size_t most = b->system_dirs.n + 3 * (b->show_count + b->links.n / 2) + b->masks.n + 16;

	b->plan->steps = kr_arena_alloc(b->arena, most * sizeof(*b->plan->steps));
	step_system(b);
	step_fresh(b);
	kr_build_step_sealed(b, "/tmp");
	kr_build_step_shows(b);
	step_links(b);
	kr_build_step_no_git(b);
	kr_build_step_masks(b);
	kr_build_step_seals(b);
	kr_build_step(b, (struct kr_step){
				KR_STEP_READ_ONLY, .path = "/", .because = "nothing is added outside the places above" });
	kr_build_step(b, (struct kr_step){ KR_STEP_READ_ONLY, .path = "/dev", .because = "no device is added" });
	KR_BUG_IF(b->plan->step_count > most);
}

/* ---- hosts ---- */

/* Facts of 1.2.5: only the runtime list of an agent's own session, and behind all that a person wrote. A kit's lists are its own. */
const struct kr_host_list *
kr_plan_hosts(struct kr_arena *arena, const struct kr_request *r, size_t *needed)
{
	const struct kr_host_list *own = &r->repo->sandbox.network.phase[r->phase];
	struct kr_host_list *list;

	*needed = 0;
	if (!r->agent || r->is_short_run || r->phase != KR_PHASE_RUNTIME || r->repo->sandbox.kit)
		return own;
	list = kr_arena_new(arena, struct kr_host_list);
	*list = *own;
	list->allow = (struct kr_strs){ 0 };
	for (size_t i = 0; i < own->allow.n; i++)
		kr_strs_add(arena, &list->allow, own->allow.v[i]);
	for (size_t i = 0; i < r->agent->hosts->n; i++)
		if (!kr_strs_has(&list->allow, r->agent->hosts->v[i])) {
			kr_strs_add(arena, &list->allow, r->agent->hosts->v[i]);
			(*needed)++;
		}
	return list;
}

/* ---- before a plan ---- */

int
kr_plan_find(struct kr_arena *arena, const struct kr_host *host, const struct kr_request *request,
	const char **exec_path, struct kr_error *err)
{
	const struct kr_sandbox *sandbox = &request->repo->sandbox;
	struct kr_plan plan = { .request = request };
	struct kr_build b = { .arena = arena, .host = host, .request = request, .plan = &plan };
	struct kr_lookup found;

	if (check_kind(request, err) < 0)
		return -1;
	if (request->container) {
		*exec_path = kr_build_container_command(&b);
		return 0;
	}
	resolve_protected(&b);
	add_system(&b);
	for (size_t i = 0; i < sandbox->expose_count; i++) {
		struct kr_strs links = { 0 };
		struct kr_fs_entry entry;
		const char *real = check_expose(&b, &sandbox->expose[i], &links, &entry, err);

		if (!real)
			return -1;
		kr_strs_add(arena, &b.expose, real);
	}
	if (look_up(&b, request->argv[0], &found, err) < 0)
		return -1;
	*exec_path = found.exec_path;
	return 0;
}

const struct kr_plan_env *
kr_plan_environment(
	struct kr_arena *arena, const struct kr_host *host, const struct kr_request *request, size_t *count)
{
	struct kr_plan plan = { .request = request };
	struct kr_build b = { .arena = arena, .host = host, .request = request, .plan = &plan };

	kr_build_environment(&b);
	*count = plan.env_count;
	return plan.env;
}

/* ---- all of it ---- */

static int
gather(struct kr_build *b, struct kr_error *err)
{
	resolve_protected(b);
	add_system(b);
	if (kr_build_is_macos(b))
		kr_build_macos_own(b);
	else
		kr_build_own(b);
	if (add_expose(b, err) < 0 || add_commands(b, err) < 0)
		return -1;
	kr_build_ca_files(b);
	return check_count(b, err);
}

static int
build_macos(struct kr_build *b, struct kr_error *err)
{
	KR_BUG_IF(!b->request->macos);
	if (gather(b, err) < 0)
		return -1;
	kr_build_merge(b);
	kr_build_macos_steps(b);
	return 0;
}

static int
build_os(struct kr_build *b, struct kr_error *err)
{
	if (kr_build_is_macos(b))
		return build_macos(b, err);
	if (check_places(b->request, err) < 0 || gather(b, err) < 0)
		return -1;
	kr_build_merge(b);
	make_steps(b);
	return 0;
}

const struct kr_plan *
kr_plan_build(struct kr_arena *arena, const struct kr_host *host, const struct kr_request *request,
	struct kr_strs *partial_lookup, struct kr_error *err)
{
	struct kr_plan *plan = kr_arena_new(arena, struct kr_plan);
	struct kr_build b = { .arena = arena, .host = host, .request = request, .plan = plan };

	KR_BUG_IF(request->repo->sandbox.credential_count && !request->secrets && !request->is_short_run);
	plan->request = request;
	plan->argv = request->argv;
	plan->cwd = request->cwd;
	plan->hosts = kr_plan_hosts(arena, request, &plan->needed_hosts);
	if (check_kind(request, err) < 0 || (request->container ? kr_build_container(&b, err) : build_os(&b, err)) < 0) {
		if (partial_lookup)
			*partial_lookup = plan->lookup;
		return NULL;
	}
	kr_build_environment(&b);
	return plan;
}
