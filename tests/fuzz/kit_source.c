/* What docker's client answers of a kit's manifest, a manifest, and a kept descriptor; the first byte chooses. Whatever it is, what
 * comes back is inside its bounds, and a digest is one or none. */
#include <jansson.h>

#include "backend/kit.h"
#include "os/powerless.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static kr_parse_fn *const readers[] = { kr_kit_read_docker, kr_kit_read_manifest, kr_kit_read_kept };
	static struct kr_kit_source source;

	if (!n)
		return 0;
	json_object_seed(1);
	source.said = KR_KIT_ODD;
	source.digest[0] = '\0';
	source.len = 0;
	readers[data[0] % KR_COUNT(readers)](data + 1, n - 1, &source);
	KR_BUG_IF((unsigned)source.said > KR_KIT_BYTES || source.len > sizeof(source.bytes));
	KR_BUG_IF(source.digest[0] && (strlen(source.digest) != KR_KIT_DIGEST_BYTES || strspn(source.digest + 7, "0123456789abcdef") != 64));
	KR_BUG_IF(source.said == KR_KIT_NONE && source.len);
	return 0;
}
