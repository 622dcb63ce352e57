#include "cli/harnesses.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"

static bool
is_program(const char *path)
{
	struct stat st;

	return path && stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* On PATH as a launch has it: directories that are relative or empty are passed over. */
static const char *
find_program(struct kr_arena *arena, const struct kr_host *host, const char *command)
{
	const char *path = kr_host_env(host, "PATH");

	if (strchr(command, '/'))
		return is_program(command) ? command : NULL;
	for (size_t n; path; path = path[n] ? path + n + 1 : NULL) {
		const char *directory, *file;

		n = strcspn(path, ":");
		directory = kr_arena_dup_n(arena, path, n);
		file = *directory == '/' ? kr_path_join(arena, directory, command) : NULL;
		if (is_program(file))
			return file;
	}
	return NULL;
}

int
kr_harness_look(struct kr_arena *arena, const struct kr_host *host, const char *id, struct kr_harness_seen *out)
{
	*out = (struct kr_harness_seen){ .id = id };
	if (kr_harness_load(arena, &host->places, id, &out->harness, &out->err) < 0)
		return -1;
	out->loads = true;
	out->program = find_program(arena, host, out->harness.command);
	return 0;
}

struct kr_harness_seen *
kr_harnesses_look(struct kr_arena *arena, const struct kr_host *host, size_t *n, struct kr_error *err)
{
	struct kr_strs ids = { 0 };
	struct kr_harness_seen *seen;

	if (kr_harness_ids(arena, &host->places, &ids, err) < 0)
		return NULL;
	seen = kr_arena_alloc(arena, (ids.n + 1) * sizeof(*seen));
	for (size_t i = 0; i < ids.n; i++)
		(void)kr_harness_look(arena, host, ids.v[i], &seen[i]); /* the row says so */
	*n = ids.n;
	return seen;
}
