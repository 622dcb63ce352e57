/*
 * Opens what the plan names, once, and checks what was opened: the step between a plan (paths) and a sandbox (descriptors).
 *
 * Trusts: nothing about the paths but their text. Each is opened from '/' without following a link, so a directory that was
 * swapped for a link since planning is an error; then the protected-path rule is applied again by device and inode, which
 * sees through bind mounts and other names of the same directory (OS-EXP-05). What was checked is what is mounted.
 * Does: open, fstat, compare. Must not: create, follow, or read anything.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/portable.h"
#include "policy/policy.h"
#include "session/session.h"

enum { IDENTITIES_MAX = 256, CLIMB_MAX = 256 };

/* A place in the file system by its identity rather than its name. */
struct identity {
	dev_t device;
	ino_t inode;
	const char *path;
};

/* Protected places, and everything above them: showing one of those would show the protected place too. */
struct guard {
	struct identity inside[IDENTITIES_MAX], above[IDENTITIES_MAX];
	size_t inside_count, above_count;
};

static bool
same(const struct identity *id, const struct stat *st)
{
	return id->device == st->st_dev && id->inode == st->st_ino;
}

static const struct identity *
find(const struct identity *list, size_t count, const struct stat *st)
{
	for (size_t i = 0; i < count; i++)
		if (same(&list[i], st))
			return &list[i];
	return NULL;
}

static void
add(struct identity *list, size_t *count, const char *path)
{
	struct stat st;

	/* A place that does not exist cannot be shown under another name. */
	if (stat(path, &st) < 0 || find(list, *count, &st))
		return;
	KR_BUG_IF(*count == IDENTITIES_MAX);
	list[(*count)++] = (struct identity){ st.st_dev, st.st_ino, path };
}

static void
guard_add(struct guard *guard, struct kr_arena *arena, const char *path)
{
	add(guard->inside, &guard->inside_count, path);
	while (path[1]) {
		path = kr_path_dirname(arena, path);
		add(guard->above, &guard->above_count, path);
	}
}

static void
guard_fill(struct guard *guard, struct kr_arena *arena, const struct kr_places *places)
{
	struct kr_strs paths = { 0 };
	const char *home = places->home;

	kr_protected_paths(arena, places, &paths);
	for (size_t i = 0; i < paths.n; i++)
		guard_add(guard, arena, paths.v[i]);
	/* The home directory may not be shown whole, but places inside it may. */
	add(guard->above, &guard->above_count, home);
	while (home[1]) {
		home = kr_path_dirname(arena, home);
		add(guard->above, &guard->above_count, home);
	}
}

static int
refuse(const char *source, const char *how, const struct identity *place, struct kr_error *err)
{
	kr_fail(err, KR_E_REFUSED, "'%s' %s '%s', which is protected", source, how, place->path);
	return kr_hint(err, "expose a narrower directory that holds no such place");
}

/* Climbs from an opened directory to the root; neither it nor any directory above may be a protected place. */
static int
check_upwards(int directory, const char *source, const struct guard *guard, struct kr_error *err)
{
	kr_auto_fd int at = openat(directory, ".", KR_O_PLACE | O_CLOEXEC);
	struct stat st, before = { 0 };

	for (int i = 0; i < CLIMB_MAX; i++) {
		const struct identity *place;
		int up;

		if (at < 0 || fstat(at, &st) < 0)
			return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot look above '%s'", source);
		place = find(guard->inside, guard->inside_count, &st);
		if (place)
			return refuse(source, "is or is inside", place, err);
		if (i && st.st_dev == before.st_dev && st.st_ino == before.st_ino)
			return 0; /* '..' of the root is the root */
		before = st;
		up = openat(at, "..", KR_O_PLACE | O_CLOEXEC);
		kr_close_p(&at);
		at = up;
	}
	return kr_fail(err, KR_E_LIMIT, "'%s' lies more than %d directories deep", source, CLIMB_MAX);
}

static int
check_protected(int fd, const struct stat *st, const char *source, const struct guard *guard,
	struct kr_arena *arena, struct kr_error *err)
{
	const struct identity *place = find(guard->above, guard->above_count, st);
	kr_auto_fd int parent = -1;

	if (place)
		return refuse(source, "is or holds", place, err);
	if (S_ISDIR(st->st_mode))
		return check_upwards(fd, source, guard, err);
	place = find(guard->inside, guard->inside_count, st);
	if (place)
		return refuse(source, "is", place, err);
	if (!S_ISREG(st->st_mode))
		return kr_fail(err, KR_E_REFUSED, "'%s' is neither a regular file nor a directory", source);
	parent = kr_path_open(kr_path_dirname(arena, source), KR_O_PLACE, err);
	if (parent < 0)
		return -1;
	return check_upwards(parent, source, guard, err);
}

static int
open_step(const struct kr_step *step, const char *source, const struct guard *guard, struct kr_arena *arena,
	struct kr_opened *out, struct kr_error *err)
{
	kr_auto_fd int fd = kr_path_open(source, KR_O_LOOK, err);
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot look at '%s'", source);
	if ((step->device || step->inode) && (step->device != (uint64_t)st.st_dev || step->inode != (uint64_t)st.st_ino)) {
		kr_fail(err, KR_E_REFUSED, "'%s' is not what was checked before the start: somebody changed it in between",
			source);
		return kr_hint(err, "run the command again");
	}
	if (step->check == KR_CHECK_PROTECT && check_protected(fd, &st, source, guard, arena, err) < 0)
		return -1;
	*out = (struct kr_opened){ .fd = kr_steal_fd(fd),
		.device = (uint64_t)st.st_dev,
		.inode = (uint64_t)st.st_ino,
		.type = (unsigned)st.st_mode & S_IFMT };
	return 0;
}

/* On macOS nothing is bound, so only what there is to compare is opened. */
static bool
is_opened(const struct kr_plan *plan, const struct kr_step *step)
{
	return !plan->request->macos || step->check == KR_CHECK_PROTECT || step->device || step->inode;
}

int
kr_session_open_sources(const struct kr_host *host, const struct kr_plan *plan, const char *empty_path,
	struct kr_opened *opened, struct kr_error *err)
{
	struct guard *guard = kr_xcalloc(1, sizeof(*guard));
	struct kr_arena arena = { 0 };
	int result = 0;

	guard_fill(guard, &arena, &host->places);
	for (size_t i = 0; i < plan->step_count; i++)
		opened[i] = (struct kr_opened){ .fd = -1 };
	for (size_t i = 0; i < plan->step_count && result == 0; i++) {
		const struct kr_step *step = &plan->steps[i];

		if (!is_opened(plan, step))
			continue;
		if (step->kind == KR_STEP_BIND_RO || step->kind == KR_STEP_BIND_RW)
			result = open_step(step, step->source, guard, &arena, &opened[i], err);
		else if (step->kind == KR_STEP_MASK)
			result = open_step(step, empty_path, guard, &arena, &opened[i], err);
	}
	if (result < 0)
		kr_session_close_sources(opened, plan->step_count);
	kr_arena_fini(&arena);
	free(guard);
	return result;
}

void
kr_session_close_sources(struct kr_opened *opened, size_t count)
{
	for (size_t i = 0; i < count; i++)
		kr_close_p(&opened[i].fd);
}
