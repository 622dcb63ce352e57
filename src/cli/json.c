/* What commands print of texts and lists that are not theirs. */
#include <errno.h>
#include <jansson.h>

#include "base/text.h"
#include "cli/cli.h"

int
kr_print_json(json_t *json, struct kr_error *err)
{
	kr_auto_free char *text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;

	json_decref(json);
	if (!text)
		return kr_fail(err, KR_E_SYSTEM, "no memory for the answer");
	return puts(text) < 0 ? kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot write") : 0;
}

const char *
kr_shown(struct kr_arena *arena, const char *text)
{
	size_t size = 4 * strlen(text) + 1;
	char *out = kr_arena_alloc(arena, size);

	kr_text_escape(out, size, text, strlen(text));
	return out;
}
