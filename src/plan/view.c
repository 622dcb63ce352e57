/*
 * What a worker finds at a path. A built plan is itself a view of a file system: the last step that holds a path says what of the
 * host, if anything, lies there. So links are followed by the same function that follows the host's, over that view.
 */
#include "plan/plan.h"

#include <errno.h>

#include "base/path.h"

enum { LINKS_MAX = 40 }; /* as the kernel follows */

static bool
is_beside(const char *path, const char *file)
{
	size_t n = strlen(file);

	return strncmp(path, file, n) == 0 && (!path[n] || (path[n] == '.' && !strchr(path + n, '/')));
}

static bool
holds(const struct kr_step *step, const char *path)
{
	if (step->kind == KR_STEP_LINK || step->reach == KR_REACH_ALONE)
		return strcmp(step->path, path) == 0;
	return step->reach == KR_REACH_BESIDE ? is_beside(path, step->path) : kr_path_is_within(path, step->path);
}

/* The step that decides; NULL: none. What is mounted later, or on macOS said later, wins. */
static const struct kr_step *
deciding(const struct kr_plan *plan, const char *path)
{
	for (size_t i = plan->step_count; i--;)
		if (plan->steps[i].kind != KR_STEP_READ_ONLY && holds(&plan->steps[i], path))
			return &plan->steps[i];
	return NULL;
}

static bool
is_made_read_only(const struct kr_plan *plan, const struct kr_step *step)
{
	for (const struct kr_step *s = step; s < plan->steps + plan->step_count; s++)
		if (s->kind == KR_STEP_READ_ONLY && strcmp(s->path, step->path) == 0)
			return true;
	return false;
}

/* A directory that is there because something is mounted below it. */
static bool
leads_to_a_step(const struct kr_plan *plan, const struct kr_step *from, const char *path)
{
	for (const struct kr_step *s = from ? from + 1 : plan->steps; s < plan->steps + plan->step_count; s++)
		if (strcmp(s->path, path) != 0 && kr_path_is_within(s->path, path))
			return true;
	return false;
}

static const char *
on_host(struct kr_arena *arena, const struct kr_step *step, const char *path)
{
	return kr_arena_printf(arena, "%s%s", strcmp(step->source, "/") == 0 ? "" : step->source, path + strlen(step->path));
}

struct view {
	const struct kr_plan *plan;
	const struct kr_fs *host;
	struct kr_arena *arena;
};

static bool
shows_host(const struct kr_step *step)
{
	return step->kind == KR_STEP_BIND_RO || step->kind == KR_STEP_BIND_RW || step->kind == KR_STEP_ADD;
}

static struct kr_fs_entry
look(void *context, const char *path)
{
	const struct view *v = context;
	const struct kr_step *step = deciding(v->plan, path);
	struct kr_fs_entry entry = { .type = KR_FS_NONE, .sys_errno = ENOENT };

	if (step && shows_host(step))
		entry = v->host->look(v->host->context, on_host(v->arena, step, path));
	else if (step && step->kind == KR_STEP_LINK)
		entry.type = KR_FS_LINK;
	else if (step && step->kind == KR_STEP_MASK)
		entry.type = KR_FS_FILE;
	else if (step && strcmp(step->path, path) == 0)
		entry.type = KR_FS_DIR;
	if (entry.type == KR_FS_NONE && (strcmp(path, "/") == 0 || leads_to_a_step(v->plan, step, path)))
		entry = (struct kr_fs_entry){ .type = KR_FS_DIR };
	return entry;
}

static const char *
read_link(void *context, struct kr_arena *arena, const char *path)
{
	const struct view *v = context;
	const struct kr_step *step = deciding(v->plan, path);

	if (step && step->kind == KR_STEP_LINK)
		return step->source;
	return step && shows_host(step) ? v->host->read_link(v->host->context, arena, on_host(arena, step, path)) : NULL;
}

/* Where the path leads, as far as there is anything: links followed, one whose end is missing too. */
static const char *
follow(const struct view *v, const struct kr_fs *fs, const char *path, struct kr_fs_entry *entry)
{
	for (int i = 0; i < LINKS_MAX; i++) {
		const char *above = path, *real = kr_fs_resolve(fs, v->arena, path, entry, NULL), *text, *rest;
		size_t n;

		if (real)
			return real;
		while (!real && strcmp(above, "/") != 0) {
			struct kr_fs_entry ignored;

			above = kr_path_dirname(v->arena, above);
			real = kr_fs_resolve(fs, v->arena, above, &ignored, NULL);
		}
		if (!real)
			return path;
		rest = path + strlen(above) + (strcmp(above, "/") != 0);
		n = strcspn(rest, "/");
		path = kr_path_join(v->arena, real, kr_arena_dup_n(v->arena, rest, n));
		text = look(fs->context, path).type == KR_FS_LINK ? read_link(fs->context, v->arena, path) : NULL;
		if (text)
			path = kr_path_join(v->arena, real, text);
		if (rest[n])
			path = kr_path_join(v->arena, path, rest + n + 1);
		if (!text)
			return path;
	}
	return path;
}

static enum kr_sight_kind
kind_of(const struct kr_plan *plan, const struct kr_step *step, bool is_there)
{
	if (!step)
		return plan->request->container ? KR_SIGHT_IMAGE : KR_SIGHT_ABSENT;
	switch (step->kind) {
	case KR_STEP_PROC:
	case KR_STEP_DEV:
		return KR_SIGHT_OWN;
	case KR_STEP_MASK:
		return KR_SIGHT_EMPTY;
	case KR_STEP_TMPFS:
		return is_made_read_only(plan, step) ? (is_there ? KR_SIGHT_READ : KR_SIGHT_ABSENT) : KR_SIGHT_OWN;
	case KR_STEP_BIND_RW:
	case KR_STEP_ADD:
		return KR_SIGHT_WRITE;
	default:
		return is_there ? KR_SIGHT_READ : KR_SIGHT_ABSENT;
	}
}

void
kr_plan_look(struct kr_arena *arena, const struct kr_host *host, const struct kr_plan *plan, const char *path, struct kr_sight *out)
{
	struct view v = { plan, host->fs, arena };
	const struct kr_fs fs = { .context = &v, .look = look, .read_link = read_link };
	struct kr_fs_entry entry = { .type = KR_FS_NONE };
	const char *real = follow(&v, &fs, path, &entry);
	const struct kr_step *step = deciding(plan, real);
	bool is_there = entry.type != KR_FS_NONE;

	/* A directory that only leads to mounts: of a container's image where it has one. */
	*out = (struct kr_sight){ .kind = kind_of(plan, step, is_there), .path = real, .step = step, .is_there = is_there };
	if (!step && is_there && !plan->request->container)
		out->kind = KR_SIGHT_READ;
}

const char *
kr_sight_name(enum kr_sight_kind kind)
{
	static const char *const names[] = {
#define X(kind, name) name,
		KR_SIGHTS(X)
#undef X
	};

	return names[kind];
}
