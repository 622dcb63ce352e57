/* Text from outside on its way to a terminal: whatever comes in, what goes out cannot steer one and is valid UTF-8. */
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char out[512];
	size_t room = size ? data[0] + 1u : 1, n = kr_text_escape(out, room, (const char *)data, size);

	KR_BUG_IF(n >= room || out[n] != '\0');
	KR_BUG_IF(!kr_text_is_utf8(out, n));
	for (size_t i = 0; i < n; i++)
		KR_BUG_IF(((unsigned char)out[i] < ' ' && out[i] != '\t') || out[i] == 0x7f);
	return 0;
}
