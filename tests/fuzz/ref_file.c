/* A loose ref that a worker wrote, and its HEAD's cousin: what is taken for a value is an id, and no other
 * bytes give it. */
#include <stddef.h>
#include <stdint.h>

#include "git/refs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	char oid[KR_OID_HEX_MAX + 1];

	if (kr_ref_file_parse(bytes, size, oid)) {
		size_t n = strlen(oid);

		KR_BUG_IF(!kr_oid_is_valid(oid, n) || memcmp(oid, bytes, n) != 0);
		KR_BUG_IF(size != n && (size != n + 1 || bytes[n] != '\n'));
		KR_BUG_IF(oid[strspn(oid, "0")] == '\0');
	}
	if (kr_ref_name_is_valid(bytes, size))
		KR_BUG_IF(memchr(bytes, '\0', size) || memchr(bytes, '\n', size) || bytes[size - 1] == '/' ||
				  memmem(bytes, size, "..", 2) || memmem(bytes, size, "//", 2));
	return 0;
}
