#include "fake_fs.h"

#include <errno.h>

#include "base/path.h"
#include "base/text.h"

static enum kr_fs_type
type_of(const char *what)
{
	static const struct {
		const char *prefix;
		enum kr_fs_type type;
	} types[] = {
		{ "dir", KR_FS_DIR },
		{ "file", KR_FS_FILE },
		{ "exec", KR_FS_FILE },
		{ "#!", KR_FS_FILE },
		{ "-> ", KR_FS_LINK },
		{ "fifo", KR_FS_FIFO },
		{ "socket", KR_FS_SOCKET },
		{ "device", KR_FS_OTHER },
		{ "denied", KR_FS_NONE },
	};

	for (size_t i = 0; i < KR_COUNT(types); i++)
		if (kr_text_has_prefix(what, types[i].prefix))
			return types[i].type;
	fprintf(stderr, "fake_fs: unknown word '%s'\n", what);
	abort();
}

static bool
is_executable(const char *what)
{
	return strcmp(what, "exec") == 0 || kr_text_has_prefix(what, "#!");
}

static const struct fake_entry *
find(const struct fake_fs *fake, const char *path)
{
	for (const struct fake_entry *e = fake->entries; e->path; e++)
		if (strcmp(e->path, path) == 0)
			return e;
	return NULL;
}

/* What stands in the way above `path`: a file gives ENOTDIR, "denied" EACCES. */
static int
blocked(const struct fake_fs *fake, const char *path)
{
	for (const struct fake_entry *e = fake->entries; e->path; e++) {
		if (strcmp(path, e->path) == 0 || !kr_path_is_within(path, e->path))
			continue;
		if (strcmp(e->what, "denied") == 0)
			return EACCES;
		if (type_of(e->what) == KR_FS_FILE)
			return ENOTDIR;
	}
	return 0;
}

static struct kr_fs_entry
look(void *context, const char *path)
{
	struct fake_fs *fake = context;
	const struct fake_entry *e = find(fake, path);
	struct kr_fs_entry out = { .sys_errno = blocked(fake, path) };

	fake->looks++;
	if (out.sys_errno)
		return out;
	if (e) {
		out.type = type_of(e->what);
		out.executable = is_executable(e->what);
		out.sys_errno = out.type == KR_FS_NONE ? EACCES : 0;
		return out;
	}
	out.sys_errno = ENOENT;
	for (e = fake->entries; e->path; e++)
		if (kr_path_is_within(e->path, path))
			out = (struct kr_fs_entry){ .type = KR_FS_DIR };
	return out;
}

static const char *
read_link(void *context, struct kr_arena *arena, const char *path)
{
	const struct fake_entry *e = find(context, path);

	return e && type_of(e->what) == KR_FS_LINK ? kr_arena_dup(arena, e->what + 3) : NULL;
}

static long
read_head(void *context, const char *path, char *out, size_t n)
{
	const struct fake_entry *e = find(context, path);
	size_t len;

	if (!e || type_of(e->what) != KR_FS_FILE)
		return -1;
	len = kr_text_has_prefix(e->what, "#!") ? strlen(e->what) : 0;
	len = len < n ? len : n;
	memcpy(out, e->what, len);
	return (long)len;
}

/* The child of `path` on the way to `below`, n bytes; NULL when there is none. */
static const char *
child(const char *path, const char *below, size_t *n)
{
	const char *name;

	if (strcmp(path, below) == 0 || !kr_path_is_within(below, path))
		return NULL;
	name = below + (path[1] ? strlen(path) + 1 : 1);
	*n = strcspn(name, "/");
	return name;
}

static int
list(void *context, const char *path,
	bool (*visit)(void *visit_context, const char *name, enum kr_fs_type type), void *visit_context)
{
	struct fake_fs *fake = context;
	struct kr_arena arena = { 0 };
	struct kr_strs seen = { 0 };
	bool more = true;

	fake->lists++;
	if (look(context, path).type != KR_FS_DIR)
		return -1;
	for (const struct fake_entry *e = fake->entries; e->path && more; e++) {
		size_t n;
		const char *name = child(path, e->path, &n);

		if (!name)
			continue;
		name = kr_arena_dup_n(&arena, name, n);
		if (kr_strs_has(&seen, name))
			continue;
		kr_strs_add(&arena, &seen, name);
		more = visit(visit_context, name, look(context, kr_path_join(&arena, path, name)).type);
	}
	kr_arena_fini(&arena);
	return 0;
}

struct kr_fs
fake_fs_view(struct fake_fs *fake)
{
	return (struct kr_fs){
		.context = fake,
		.look = look,
		.read_link = read_link,
		.read_head = read_head,
		.list = list,
	};
}
