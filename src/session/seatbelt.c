#include "session/seatbelt.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "base/path.h"
#include "os/sys.h"

enum { END_MS = 10000, ANSWER_BYTES = 4096 };

static const char *
tmpdir(struct kr_arena *arena, const char *run_dir, const char *id)
{
	return kr_arena_printf(arena, "%s/" KR_TMPDIRS "/%s", run_dir, id);
}

const char *
kr_seatbelt_tmpdir(struct kr_arena *arena, const struct kr_host *host, const char *id)
{
	return tmpdir(arena, host->places.run_dir, id);
}

int
kr_seatbelt_make_tmpdir(struct kr_arena *arena, const struct kr_host *host, const char *id, const char **path,
	struct kr_error *err)
{
	kr_auto_fd int parent = kr_path_make_dirs(kr_arena_printf(arena, "%s/" KR_TMPDIRS, host->places.run_dir), err);

	if (parent < 0)
		return -1;
	if (mkdirat(parent, id, 0700) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot create '%s'", tmpdir(arena, host->places.run_dir, id));
	*path = tmpdir(arena, host->places.run_dir, id);
	return 0;
}

/* "123\n456\n" */
static size_t
read_numbers(const char *text, int outlived[KR_OUTLIVED_MAX])
{
	size_t n = 0;

	for (char *end; *text && n < KR_OUTLIVED_MAX; text = end + 1) {
		const long pid = strtol(text, &end, 10);

		if (*end != '\n' || pid <= 1 || pid > INT32_MAX)
			break;
		outlived[n++] = (int)pid;
	}
	return n;
}

int
kr_seatbelt_end(struct kr_arena *arena, const char *guest_dir, const char *run_dir, const char *id,
	int outlived[KR_OUTLIVED_MAX], size_t *count, struct kr_error *err)
{
	const char *program = kr_path_join(arena, guest_dir, "init");
	const char *const argv[] = { program, "end", "--own", tmpdir(arena, run_dir, id), "--other",
		kr_arena_printf(arena, "%s/sessions/%s", run_dir, id), "--", NULL };
	static const char *const no_environment[] = { NULL };
	const struct kr_child call = { .path = program, .argv = argv, .envp = no_environment, .limit_ms = END_MS };
	kr_auto_buf struct kr_buf answer = KR_BUF(ANSWER_BYTES), errors = KR_BUF(ANSWER_BYTES);
	int status;

	if (kr_child_run(&call, &answer, &errors, &status, err) < 0)
		return kr_wrap(err, "ending what session '%s' left", id);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return kr_fail(err, KR_E_SYSTEM, "what session '%s' left could not be ended: %s", id, errors.len ? errors.data : "");
	*count = answer.len ? read_numbers(answer.data, outlived) : 0;
	return 0;
}

void
kr_seatbelt_sweep(int parent, const char *guest_dir, const char *run_dir, const char *id)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	int outlived[KR_OUTLIVED_MAX];
	size_t count = 0;

	if (kr_seatbelt_end(&arena, guest_dir, run_dir, id, outlived, &count, NULL) == 0 && !count)
		(void)kr_tree_remove_at(parent, id); /* the next sweep tries again, as it does where somebody is left */
}
