/*
 * What is only of kind: docker in a plan. The file system is the image's, so nothing of the host's is looked
 * up or searched here: kraft's own places lie over it at their own paths, and what a program writes to by
 * habit is memory. The image's entry point runs the command, both below kraft's init (backend/container.h).
 */
#include "plan/build.h"

#include "base/path.h"

enum { RUN_BYTES = 64 << 20, RUN_INODES = 65536, FRESH_MOST = 4 };

static const struct kr_strs none;

bool
kr_plan_has_open_network(const struct kr_request *request)
{
	return request->container && request->repo->sandbox.unrestricted_network && !request->is_short_run;
}

/* Of an image that is not known, none. */
static const struct kr_strs *
entrypoint_of(const struct kr_plan_container *container)
{
	return container->entrypoint ? container->entrypoint : &none;
}

static const struct kr_strs *
volumes_of(const struct kr_build *b)
{
	const struct kr_strs *volumes = b->request->container->volumes;

	return volumes ? volumes : &none;
}

/* ---- what is refused ---- */

/* Inside, these are the runtime's or kraft's: what lies there would be hidden, or the worker's to move. */
static int
check_places(const struct kr_build *b, struct kr_error *err)
{
	static const char *const inside[] = { "/dev", "/proc", "/sys", "/opt/kraft" };

	for (size_t i = 0; i < b->show_count * KR_COUNT(inside); i++) {
		const struct kr_show *show = &b->shows[i / KR_COUNT(inside)];
		const char *own = inside[i % KR_COUNT(inside)];

		if (!kr_path_is_within(show->source, own) || !kr_path_is_within(show->path, own))
			continue;
		kr_fail(err, KR_E_REFUSED, "'%s' lies in %s, which is the container's own inside", show->path, own);
		return kr_hint(
			err, "set KRAFT_HOME to a directory outside %s, and keep the repository outside too", own);
	}
	return 0;
}

/* A word of the image's that is relative is so to the image's own directory, where the command does not
 * stand. */
static int
check_entrypoint(const struct kr_plan_container *container, struct kr_error *err)
{
	const struct kr_strs *words = entrypoint_of(container);
	const char *first = words->n ? words->v[0] : "";

	if (*first == '/' || !strchr(first, '/'))
		return 0;
	kr_fail(err, KR_E_UNSUPPORTED, "the entry point '%s' of the image '%s' is a relative path", first,
		container->image);
	return kr_hint(
		err, "build the image with an absolute path, or a plain name, as the first word of its ENTRYPOINT");
}

/* Its mount point would be made in a directory of the host. */
static int
check_volumes(const struct kr_build *b, struct kr_error *err)
{
	const struct kr_strs *volumes = volumes_of(b);

	for (size_t i = 0; i < volumes->n * b->show_count; i++) {
		const char *path = volumes->v[i / b->show_count];
		const struct kr_show *show = &b->shows[i % b->show_count];

		if (strcmp(path, show->path) == 0 || !kr_path_is_within(path, show->path))
			continue;
		kr_fail(err, KR_E_UNSUPPORTED, "the volume '%s' of the image '%s' lies in '%s', which is shown inside", path,
			b->request->container->image, show->path);
		return kr_hint(err, "build the image without that VOLUME, or set KRAFT_HOME to another directory");
	}
	return 0;
}

/* ---- the command ---- */

/* A plain name is found inside, along PATH; a relative path is meant from where the command stands. */
const char *
kr_build_container_command(const struct kr_build *b)
{
	const struct kr_request *r = b->request;

	return strchr(r->argv[0], '/') ? kr_path_join(b->arena, r->cwd, r->argv[0]) : r->argv[0];
}

static void
tell_command(struct kr_build *b, const char *command)
{
	const struct kr_plan_container *c = b->request->container;
	struct kr_strs *told = &b->plan->lookup;

	kr_strs_add(b->arena, told,
		kr_arena_printf(b->arena,
			strchr(command, '/') ? "'%s' is run as it is there inside"
								 : "'%s' is looked up inside, along PATH",
			command));
	if (!c->image_id)
		kr_strs_add(b->arena, told, "whether the image has an entry point is not known yet");
	else if (entrypoint_of(c)->n)
		kr_strs_add(b->arena, told,
			kr_arena_printf(b->arena, "the entry point of the image, '%s', starts it", c->entrypoint->v[0]));
}

/* Entry point, starter, command: each finds the words of the next behind its own. */
static void
put_command(struct kr_build *b)
{
	const struct kr_request *r = b->request;
	const struct kr_strs *entry = entrypoint_of(r->container);
	const char *command = kr_build_container_command(b);
	struct kr_strs argv = { 0 };

	for (size_t i = 0; i < entry->n; i++)
		kr_strs_add(b->arena, &argv, entry->v[i]);
	for (const char *const *word = r->starter; word && *word; word++)
		kr_strs_add(b->arena, &argv, *word);
	b->plan->exec_path = argv.n ? argv.v[0] : command;
	kr_strs_add(b->arena, &argv, argv.n ? command : r->argv[0]);
	for (const char *const *word = r->argv + 1; *word; word++)
		kr_strs_add(b->arena, &argv, *word);
	b->plan->argv = argv.v;
	tell_command(b, command);
}

/* ---- steps ---- */

static void
step_fresh(struct kr_build *b)
{
	kr_build_step(b, (struct kr_step){ KR_STEP_TMPFS, .path = "/tmp", .size_bytes = KR_TMP_BYTES,
						 .inodes = KR_TMP_INODES, .because = "temporary files, gone with the session" });
	kr_build_step(b, (struct kr_step){ KR_STEP_TMPFS, .path = "/var/tmp", .size_bytes = KR_TMP_BYTES,
						 .inodes = KR_TMP_INODES, .because = "temporary files, gone with the session" });
	kr_build_step(
		b, (struct kr_step){ KR_STEP_TMPFS, .path = "/run", .size_bytes = RUN_BYTES, .inodes = RUN_INODES,
			   .because = "what programs say of themselves, gone with the session" });
	kr_build_step(b, (struct kr_step){ KR_STEP_TMPFS, .path = "/dev/shm", .size_bytes = KR_SHM_BYTES,
						 .inodes = KR_SHM_INODES, .because = "shared memory, gone with the session" });
}

static bool
has_place(const struct kr_build *b, const char *path)
{
	for (size_t i = 0; i < b->plan->step_count; i++)
		if (strcmp(b->plan->steps[i].path, path) == 0)
			return true;
	for (size_t i = 0; i < b->show_count; i++)
		if (strcmp(b->shows[i].path, path) == 0)
			return true;
	return false;
}

/* Left alone, the runtime makes a directory of the host's disk for each, writable and without a limit. */
static void
step_volumes(struct kr_build *b)
{
	const struct kr_strs *volumes = volumes_of(b);

	for (size_t i = 0; i < volumes->n; i++) {
		if (has_place(b, volumes->v[i]))
			continue;
		kr_build_step(b, (struct kr_step){ KR_STEP_TMPFS, .path = volumes->v[i], .size_bytes = RUN_BYTES,
							 .inodes = RUN_INODES, .because = "a volume of the image's, gone with the session" });
	}
}

static void
make_steps(struct kr_build *b)
{
	const struct kr_strs *volumes = volumes_of(b);
	size_t most = (3 + 2 * volumes->n) * b->show_count + FRESH_MOST + volumes->n + 1;

	b->plan->steps = kr_arena_alloc(b->arena, most * sizeof(*b->plan->steps));
	step_fresh(b);
	step_volumes(b);
	kr_build_step_sealed(b, "/tmp");
	kr_build_step_sealed(b, "/var/tmp");
	kr_build_step_sealed(b, "/run");
	for (size_t i = 0; i < volumes->n; i++)
		kr_build_step_sealed(b, volumes->v[i]);
	kr_build_step_shows(b);
	kr_build_step_no_git(b);
	kr_build_step_seals(b);
	KR_BUG_IF(b->plan->step_count > most);
}

/* ---- all of it ---- */

static void
tell(struct kr_build *b)
{
	const struct kr_plan_container *c = b->request->container;

	if (!c->image_id)
		kr_build_note(
			b, "what the image '%s' adds is not known yet: its entry point and its variables", c->image);
	if (kr_plan_has_open_network(b->request))
		kr_build_note(b,
			"unrestricted_network: the container has a network without a list, and no kraft command inside");
	for (size_t i = 0; c->notes && i < c->notes->n; i++)
		kr_build_note(b, "%s", c->notes->v[i]);
}

int
kr_build_container(struct kr_build *b, struct kr_error *err)
{
	const struct kr_plan_container *c = b->request->container;

	kr_build_own(b);
	if (c->ca_bundle)
		kr_build_show_own(
			b, KR_CA_BUNDLE, c->ca_bundle, false, "the image's certificates, and the extra one");
	if (check_places(b, err) < 0 || check_entrypoint(c, err) < 0 || check_volumes(b, err) < 0)
		return -1;
	kr_build_merge(b);
	make_steps(b);
	put_command(b);
	tell(b);
	return 0;
}
