/* The end of an index that a worker wrote. */
#include <stddef.h>
#include <stdint.h>

#include "git/internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char oid[KR_OID_HEX_MAX + 1];

	for (size_t raw = 20; raw <= 32; raw += 12)
		if (kr_index_tree((const char *)data, size, raw, oid))
			KR_BUG_IF(!kr_oid_is_valid(oid, strlen(oid)) || strlen(oid) != 2 * raw);
	return 0;
}
