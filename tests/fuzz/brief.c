/* The end of a worker's output: what an agent reads is UTF-8 without control characters, no longer than it
 * was, the same when it is cleaned in place, and clean already when it is cleaned again. */
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "work/brief.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *out = kr_xcalloc(1, size + 1), *again = kr_xcalloc(1, size + 1);
	bool is_cut = size && data[0] & 1;
	size_t n = kr_brief_tail(out, (const char *)data, size, is_cut);

	KR_BUG_IF(n > size || strlen(out) != n || !kr_text_is_utf8(out, n));
	for (size_t i = 0; i < n; i++)
		KR_BUG_IF(((unsigned char)out[i] < 0x20 && out[i] != '\n' && out[i] != '\t') || out[i] == 0x7f);
	if (size)
		memcpy(again, data, size);
	KR_BUG_IF(kr_brief_tail(again, again, size, is_cut) != n || strcmp(again, out) != 0);
	KR_BUG_IF(kr_brief_tail(again, out, n, false) != n || strcmp(again, out) != 0);
	free(again);
	free(out);
	return 0;
}
