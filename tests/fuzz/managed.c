/* What is handed over to kraft-egress-tls: any bytes are refused or read, and what is read packs to the same bytes. */
#include "egress/managed.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kr_arena arena = { 0 };
	struct kr_managed found;
	struct kr_buf packed = { 0 };
	char *bytes = malloc(size + 1);

	KR_BUG_IF(!bytes);
	memcpy(bytes, data, size);
	if (kr_managed_unpack(&arena, bytes, size, &found)) {
		KR_BUG_IF(kr_managed_pack(&found, &packed, NULL) < 0);
		KR_BUG_IF(packed.len != size || memcmp(packed.data, data, size) != 0);
		kr_managed_wipe(&packed);
	}
	kr_arena_fini(&arena);
	free(bytes);
	return 0;
}
