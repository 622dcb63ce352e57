/*
 * The places of one session below the run directory. Directories 0700, files 0600; each is made, never
 * reused, and made relative to a descriptor that was reached without following links.
 */
#include "session/item.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/portable.h"

const char *
kr_session_new_id(struct kr_arena *arena, struct kr_error *err)
{
	uint64_t bits;

	if (!kr_random(&bits, sizeof(bits))) {
		kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot get random bytes");
		return NULL;
	}
	return kr_arena_printf(arena, "%016llx", (unsigned long long)bits);
}

/* A new directory <run_dir>/<kind>/<id>; one that exists is somebody else's. */
static const char *
new_directory(struct kr_arena *arena, const struct kr_host *host, const char *kind, const char *id,
	struct kr_error *err)
{
	const char *parent = kr_arena_printf(arena, "%s/%s", host->places.run_dir, kind);
	kr_auto_fd int fd = kr_path_make_dirs(parent, err);

	if (fd < 0)
		return NULL;
	if (mkdirat(fd, id, 0700) < 0) {
		kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot create '%s/%s'", parent, id);
		return NULL;
	}
	return kr_arena_printf(arena, "%s/%s", parent, id);
}

const char *
kr_item_result_file(struct kr_arena *arena, const struct kr_item *item, const char *session)
{
	return kr_arena_printf(arena, "%s/%s.json", item->results_dir, session);
}

static const char *
new_result_file(struct kr_arena *arena, const struct kr_item *item, const char *id, struct kr_error *err)
{
	const char *path = kr_item_result_file(arena, item, id);
	kr_auto_fd int dir_fd = kr_path_open(item->results_dir, KR_O_PLACE, err), fd = -1;

	if (dir_fd < 0)
		return NULL;
	fd = openat(dir_fd, kr_path_basename(path), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0) {
		kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot create '%s'", path);
		return NULL;
	}
	return path;
}

const char *
kr_session_channel_dir(struct kr_arena *arena, const struct kr_host *host, const char *id)
{
	return kr_arena_printf(arena, "%s/sn/%s", host->places.run_dir, id);
}

int
kr_session_paths_make(struct kr_arena *arena, const struct kr_host *host, const struct kr_item *item,
	const char *id, struct kr_session_paths *out, struct kr_error *err)
{
	struct kr_session_paths paths = { .id = id ? id : kr_session_new_id(arena, err) };

	if (!paths.id || !(paths.folder = new_directory(arena, host, "sessions", paths.id, err)) ||
		!(paths.channel_dir = new_directory(arena, host, "sn", paths.id, err)) ||
		!(paths.result_file = new_result_file(arena, item, paths.id, err)))
		return -1;
	*out = paths;
	return 0;
}

/* ---- the empty file ---- */

static int
make_empty(const struct kr_host *host, const char *path, struct kr_error *err)
{
	kr_auto_fd int dir_fd = kr_path_make_dirs(host->places.run_dir, err), fd = -1;

	if (dir_fd < 0)
		return -1;
	fd = openat(dir_fd, kr_path_basename(path), O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
	if (fd < 0 && errno != EEXIST) /* another kraft made it just now: it is checked like any */
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot create '%s'", path);
	if (fd >= 0 && fchmod(fd, 0444) < 0) /* whatever the umask */
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot set the mode of '%s'", path);
	return 0;
}

/* Every mask shows this file, so what is in it would be shown in place of each masked secret. */
static int
check_empty(int fd, const char *path, struct kr_error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot look at '%s'", path);
	if (S_ISREG(st.st_mode) && st.st_size == 0)
		return 0;
	kr_fail(err, KR_E_REFUSED, "'%s', which masks secrets, is not an empty regular file", path);
	return kr_hint(err, "remove it; kraft makes it again");
}

const char *
kr_session_empty_file(struct kr_arena *arena, const struct kr_host *host, struct kr_error *err)
{
	const char *path = kr_arena_printf(arena, "%s/empty", host->places.run_dir);
	struct kr_error opened = { 0 };
	kr_auto_fd int fd = kr_path_open(path, KR_O_LOOK, &opened);

	if (fd < 0 && opened.sys_errno == ENOENT) {
		if (make_empty(host, path, err) < 0)
			return NULL;
		fd = kr_path_open(path, KR_O_LOOK, &opened);
	}
	if (fd < 0) {
		if (err)
			*err = opened;
		return NULL;
	}
	return check_empty(fd, path, err) < 0 ? NULL : path;
}
