/*
 * Who hosts an item: run/worktrees/<item>.host (os/owner.h), held by the host and the tasks that it started
 * together.
 */
#include "work/internal.h"

#include "os/owner.h"

const char *
kr_work_path(struct kr_work *work, const char *item, const char *end)
{
	return kr_arena_printf(work->arena, "%s/worktrees/%s%s", work->host.places.run_dir, item, end);
}

static const char *
path_of(struct kr_work *work, const char *item)
{
	return kr_work_path(work, item, ".host");
}

int
kr_work_lock(struct kr_work *work, const char *item, struct kr_error *err)
{
	struct kr_error why = { 0 };
	int fd = kr_owner_take(path_of(work, item), "", &why);

	if (fd >= 0)
		return fd;
	if (why.code == KR_E_BUSY) {
		kr_fail(&why, KR_E_BUSY, "another process is at item '%s'", item);
		kr_hint(&why, "'kraft view show %s' tells how far it is; 'kraft item pause %s' ends that", item, item);
	}
	if (err)
		*err = why;
	return -1;
}

bool
kr_work_is_locked(struct kr_work *work, const char *item)
{
	return kr_owner_is_held(path_of(work, item));
}

pid_t
kr_work_host_pid(struct kr_work *work, const char *item)
{
	struct kr_owner owner;

	return kr_owner_find(path_of(work, item), &owner) ? owner.pid : 0;
}
