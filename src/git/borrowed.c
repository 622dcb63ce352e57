/*
 * The object directories that a repository borrows from: lines of objects/info/alternates, and of theirs.
 *
 * As git reads them: '#' begins a comment, a relative path starts at the object directory, nesting ends at
 * five, what is not there is passed over, what was seen is not entered again (so that a loop ends). A quoted
 * line (git's way for a name with a newline) is refused: it would have to be believed here and by every git
 * inside alike. These files are the person's own: no worker can write there.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/path.h"
#include "git/internal.h"

enum { ALTERNATES_BYTES = 1 << 20, DEPTH_MAX = 5, BORROWED_MAX = 64 };

struct search {
	struct kr_arena *arena;
	const char *objects;
	struct kr_strs *found;
};

static int add_of(struct search *s, const char *objects, int depth, struct kr_error *err);

static int
add(struct search *s, const char *objects, const char *line, int depth, struct kr_error *err)
{
	const char *path = line[0] == '/' ? line : kr_arena_printf(s->arena, "%s/%s", objects, line);
	char resolved[KR_PATH_MAX];
	struct stat st;

	if (!realpath(path, resolved) || stat(resolved, &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	if (strcmp(resolved, s->objects) == 0 || kr_strs_has(s->found, resolved))
		return 0;
	if (s->found->n == BORROWED_MAX)
		return kr_fail(
			err, KR_E_REFUSED, "'%s' borrows from more than %d object directories", s->objects, BORROWED_MAX);
	path = kr_arena_dup(s->arena, resolved);
	kr_strs_add(s->arena, s->found, path);
	return add_of(s, path, depth + 1, err);
}

static int
refuse_quoted(const char *file, struct kr_error *err)
{
	kr_fail(err, KR_E_REFUSED, "'%s' has a path in quotes, which kraft does not read", file);
	return kr_hint(err, "write the path without quotes; if it holds a newline, rename the directory");
}

/* What `objects` itself names. */
static int
add_of(struct search *s, const char *objects, int depth, struct kr_error *err)
{
	kr_auto_buf struct kr_buf buf = KR_BUF(ALTERNATES_BYTES);
	const char *file = kr_arena_printf(s->arena, "%s/info/alternates", objects);
	struct kr_error failed = { 0 };

	if (depth >= DEPTH_MAX)
		return 0;
	if (kr_file_read_at(AT_FDCWD, file, &buf, &failed) < 0) {
		if (failed.sys_errno == ENOENT || failed.sys_errno == ENOTDIR)
			return 0;
		return kr_fail(err, KR_E_REFUSED, "the repository's alternates cannot be used: %s", failed.message);
	}
	for (size_t i = 0; i < buf.len;) {
		size_t n = strcspn(buf.data + i, "\n");
		const char *line = kr_arena_dup_n(s->arena, buf.data + i, n);

		if (line[0] == '"')
			return refuse_quoted(file, err);
		if (line[0] && line[0] != '#' && add(s, objects, line, depth, err) < 0)
			return -1;
		i += n + 1; /* a NUL ends a line as well */
	}
	return 0;
}

int
kr_objects_borrowed(struct kr_arena *arena, const char *objects, struct kr_strs *out, struct kr_error *err)
{
	struct kr_strs found = { 0 };
	struct search s = { .arena = arena, .objects = objects, .found = &found };

	if (add_of(&s, objects, 0, err) < 0)
		return -1;
	*out = found;
	return 0;
}
