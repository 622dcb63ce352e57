/* The end of a worker's output, read for paths: what is found is a clean path, and the text ends. */
#include <stddef.h>
#include <stdint.h>

#include "base/path.h"
#include "session/outside.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[KR_OUTSIDE_PATH];
	size_t at = 0, before = 0;

	while (kr_outside_next((const char *)data, size, &at, path)) {
		KR_BUG_IF(at <= before || at > size);
		KR_BUG_IF(!kr_path_is_clean(path) || !path[1] || strlen(path) >= KR_OUTSIDE_PATH);
		before = at;
	}
	KR_BUG_IF(at != size);
	return 0;
}
