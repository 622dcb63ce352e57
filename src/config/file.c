/*
 * From a configuration file's name, or an id, to the mapping at its top. The only place of this room that opens a
 * file; it reads regular files only, whole, and bounded.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

#include "config/schema.h"

#include "base/fd.h"
#include "base/path.h"

int
kr_config_load(struct kr_arena *arena, const char *file, const char *hint, const char **bytes, size_t *n,
	bool *is_missing, struct kr_error *err)
{
	struct kr_buf buf KR_CLEANUP(kr_buf_fini) =
		KR_BUF(KR_CONFIG_FILE_BYTES + 1); /* the parser refuses the last byte */
	struct kr_error own = { 0 };
	bool is_read = kr_file_read_at(AT_FDCWD, file, &buf, &own) == 0;

	*is_missing = !is_read && own.sys_errno == ENOENT;
	if (!is_read && !*is_missing && own.code != KR_E_LIMIT) {
		own.code = KR_E_CONFIG;
		kr_hint(&own, "%s", hint);
		if (err)
			*err = own;
		return -1;
	}
	/* One that is too large may not have filled the buffer to the byte; it is refused for its size all the
	 * same. */
	if (buf.overflow)
		while (buf.len <= KR_CONFIG_FILE_BYTES)
			kr_buf_add(&buf, "\n", 1);
	*bytes = kr_arena_dup_n(arena, buf.data ? buf.data : "", buf.len);
	*n = buf.len;
	return 0;
}

int
kr_config_parse(struct kr_config *c, const char *file, const char *bytes, size_t n, struct kr_yaml *doc,
	const char *begin)
{
	if (kr_yaml_parse(c->arena, file, bytes, n, doc, c->err) < 0)
		return -1;
	if (doc->root && kr_yaml_value(doc->root) == KR_VALUE_NULL)
		doc->root = NULL;
	if (!doc->root || kr_yaml_value(doc->root) == KR_VALUE_MAPPING)
		return 0;
	kr_config_fail(
		c, doc->root, "the file must be a mapping, not %s", kr_yaml_value_words(kr_yaml_value(doc->root)));
	return kr_hint(c->err, "begin it with %s", begin);
}

/* ---- files that an id names ---- */

#define SUFFIX ".yaml"

/* A name that may stand in the directory: no path, nothing hidden. */
static bool
is_file_name(const char *id)
{
	return *id && *id != '.' && !strchr(id, '/');
}

int
kr_config_find(struct kr_arena *arena, const struct kr_places *places, const char *kind, const char *id,
	const char *hint, const char **file, const char **bytes, size_t *n, bool *is_missing, struct kr_error *err)
{
	const char *text;

	*is_missing = true;
	if (!is_file_name(id))
		return 0;
	*file = kr_path_join(arena, places->config_dir, kr_arena_printf(arena, "%s/%s" SUFFIX, kind, id));
	if (!*file)
		return kr_fail(err, KR_E_LIMIT, "the path of '%s' is too long", id);
	if (kr_config_load(arena, *file, hint, bytes, n, is_missing, err) < 0)
		return -1;
	text = *is_missing ? kr_shipped_text(kind, id) : NULL;
	if (!text)
		return 0;
	*is_missing = false;
	*file = "kraft's own";
	*bytes = text;
	*n = strlen(text);
	return 0;
}

static int
add_ids(struct kr_arena *arena, DIR *dir, struct kr_strs *out)
{
	for (struct dirent *entry; (errno = 0, entry = readdir(dir));) {
		size_t n = strlen(entry->d_name), suffix = strlen(SUFFIX);

		if (n <= suffix || entry->d_name[0] == '.' || strcmp(entry->d_name + n - suffix, SUFFIX) != 0)
			continue;
		if (out->n == KR_CONFIG_FILES) {
			errno = E2BIG;
			return -1;
		}
		kr_strs_add(arena, out, kr_arena_dup_n(arena, entry->d_name, n - suffix));
	}
	return errno ? -1 : 0;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Twice the same is once. */
static void
sort(struct kr_strs *ids)
{
	size_t kept = 0;

	if (!ids->n)
		return;
	qsort(ids->v, ids->n, sizeof(*ids->v), by_name);
	for (size_t i = 0; i < ids->n; i++)
		if (!kept || strcmp(ids->v[i], ids->v[kept - 1]) != 0)
			ids->v[kept++] = ids->v[i];
	ids->n = kept;
	ids->v[kept] = NULL;
}

int
kr_config_ids(struct kr_arena *arena, const struct kr_places *places, const char *kind, struct kr_strs *out,
	struct kr_error *err)
{
	const char *path = kr_path_join(arena, places->config_dir, kind);
	DIR *dir = path ? opendir(path) : NULL;
	int failed = 0;

	if (!path)
		return kr_fail(err, KR_E_LIMIT, "the path of '%s' is too long", places->config_dir);
	if (!dir && errno != ENOENT)
		return kr_fail_errno(err, KR_E_CONFIG, errno, "cannot read the %s in '%s'", kind, path);
	if (dir) {
		failed = add_ids(arena, dir, out) < 0 ? errno : 0;
		closedir(dir);
	}
	if (failed == E2BIG)
		return kr_fail(err, KR_E_LIMIT, "'%s' holds more than %d %s", path, KR_CONFIG_FILES, kind);
	if (failed)
		return kr_fail_errno(err, KR_E_CONFIG, failed, "cannot read the %s in '%s'", kind, path);
	for (size_t i = 0; kr_shipped[i].kind; i++)
		if (strcmp(kr_shipped[i].kind, kind) == 0)
			kr_strs_add(arena, out, kr_shipped[i].id);
	sort(out);
	return 0;
}

int
kr_config_unknown(const char *what, const char *id, const struct kr_strs *ids, struct kr_error *err)
{
	kr_auto_buf struct kr_buf list = KR_BUF(400);

	kr_fail(err, KR_E_NOT_FOUND, "there is no %s '%s'", what, id);
	for (size_t i = 0; i < ids->n; i++)
		kr_buf_addf(&list, "%s%s", i ? ", " : "", ids->v[i]);
	return list.data ? kr_hint(err, "the %s%s are %s", what, what[strlen(what) - 1] == 's' ? "es" : "s", list.data)
					 : -1;
}
