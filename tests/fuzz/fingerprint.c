/* What a failing task printed, as it is compared: the same for the same output, never longer than it may be,
 * and not changed by what stands in front of enough telling lines. */
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "work/brief.h"
#include "work/fingerprint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	char *text = kr_xcalloc(1, size + 1), line[KR_FINGERPRINT_LINE + 1];
	const char *first, *five = "fail a\nfail b\nfail c\nfail d\nfail e";

	(void)kr_brief_tail(text, (const char *)data, size, false);
	first = kr_fingerprint(&arena, "1", text);
	KR_BUG_IF(strcmp(first, kr_fingerprint(&arena, "1", text)) != 0);
	KR_BUG_IF(strcmp(first, kr_fingerprint(&arena, "2", text)) == 0);
	KR_BUG_IF(strcmp(kr_fingerprint(&arena, "1", five),
				  kr_fingerprint(&arena, "1", kr_arena_printf(&arena, "%s\n%s", text, five))) != 0);
	kr_fingerprint_line(line, text, strlen(text));
	KR_BUG_IF(strlen(line) > KR_FINGERPRINT_LINE);
	free(text);
	return 0;
}
