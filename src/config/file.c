/*
 * From a configuration file's name to the mapping at its top. The only place of this room that opens a file;
 * it reads regular files only, whole, and bounded.
 */
#include <errno.h>
#include <fcntl.h>

#include "config/schema.h"

#include "base/fd.h"

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
