/* kind: os: the launcher starts bubblewrap, which gets every source by its descriptor. */
#include <errno.h>
#include <sys/stat.h>

#include "base/path.h"
#include "session/launch.h"

static const char *
make_scratch(struct kr_launch *launch, const char *name, struct kr_error *err)
{
	if (mkdirat(launch->folder, name, 0700) < 0 && errno != EEXIST) {
		kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make '%s' in '%s'", name, launch->start->folder);
		return NULL;
	}
	return kr_path_join(launch->arena, launch->start->folder, name);
}

static int
render(struct kr_launch *launch, struct kr_error *err)
{
	struct kr_bwrap_render text = { 0 };
	const char *empty;
	int result;

	if (kr_launch_open_sources(launch, &empty, err) < 0)
		return -1;
	result = kr_bwrap_args(
		launch->start->plan, &launch->bwrap, launch->opened, launch->tmp, launch->shm, empty, &text, err);
	if (result == 0)
		result = kr_launch_fill(launch, &text.args, &text.verify, err);
	kr_buf_fini(&text.args);
	kr_buf_fini(&text.verify);
	return result;
}

static int
prepare(struct kr_launch *launch, struct kr_error *err)
{
	if (kr_bwrap_probe(launch->arena, launch->start->host, &launch->bwrap, err) < 0 ||
		!(launch->tmp = make_scratch(launch, "tmp", err)) ||
		!(launch->shm = make_scratch(launch, "shm", err)))
		return -1;
	return render(launch, err);
}

static void
words(struct kr_launch *launch)
{
	kr_launch_word(launch, "--tmp");
	kr_launch_word(launch, launch->tmp);
	kr_launch_word(launch, "--shm");
	kr_launch_word(launch, launch->shm);
	kr_launch_word(launch, "--caps");
	kr_launch_word(launch, kr_arena_printf(launch->arena, "%llu,%llu,%llu,%llu", KR_TMP_BYTES, KR_TMP_INODES,
							   KR_SHM_BYTES, KR_SHM_INODES));
	kr_launch_word(launch, "--bwrap");
	kr_launch_word(launch, launch->bwrap.path);
	kr_launch_pass(launch, "--seccomp", launch->filter);
	for (size_t i = 0; i < launch->opened_count; i++)
		if (launch->opened[i].fd >= 0 && launch->bwrap.bind_fd)
			kr_launch_pass(launch, "--pass-fd", launch->opened[i].fd);
}

const struct kr_launch_kind kr_launch_bwrap = { .role = "launch", .has_filter = true, .prepare = prepare, .words = words };
