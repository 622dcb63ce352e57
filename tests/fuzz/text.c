#include <stddef.h>
#include <stdint.h>
#include "base/text.h"
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char out[64];
	(void)kr_text_escape(out, sizeof(out), (const char *)data, size);
	return 0;
}
