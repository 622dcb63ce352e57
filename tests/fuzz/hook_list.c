/* codex's list of hooks: whatever it says, only a hook that is ours, and can stand between quotes, is relied
 * on. */
#include <stddef.h>
#include <stdint.h>

#include "agent/hook_list.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define COMMAND "/opt/kraft/bin/kraft admin permission-hook codex"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct kr_hook_list list;
	const struct kr_hook *ours;
	struct kr_error err = { 0 };

	kr_hook_list_parse(data, size, &list);
	KR_BUG_IF(memchr(list.error, '\0', sizeof(list.error)) == NULL ||
			  !kr_text_is_utf8(list.error, strlen(list.error)));
	KR_BUG_IF(memchr(list.version, '\0', sizeof(list.version)) == NULL);
	for (size_t i = 0; i < KR_HOOKS_MAX; i++)
		KR_BUG_IF(!kr_text_is_utf8(list.hooks[i].command, strlen(list.hooks[i].command)) ||
				  !kr_text_is_utf8(list.hooks[i].source, strlen(list.hooks[i].source)));
	kr_hook_list_check(&list);
	ours = kr_hook_list_find(&list, "codex", COMMAND, NULL, &err);
	KR_BUG_IF(!ours && (err.code != KR_E_REFUSED || !err.hint[0]));
	if (!ours)
		return 0;
	KR_BUG_IF(strcmp(ours->command, COMMAND) != 0 || !ours->is_enabled || list.error[0] || !list.is_answered);
	KR_BUG_IF(!ours->key[0] || strpbrk(ours->key, "\"\\\n") || strpbrk(ours->hash, "\"\\\n "));
	return 0;
}
