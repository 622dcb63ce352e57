/* What goes to a person's terminal: cut anywhere, it means the same, and the reset is short and made of known
 * pieces. */
#include <stddef.h>
#include <stdint.h>

#include "session/modes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
reset_of(const struct kr_modes *modes, struct kr_buf *out)
{
	kr_modes_reset(modes, out);
	KR_BUG_IF(out->overflow);
	for (size_t i = 0; i < out->len; i++) {
		unsigned char c = (unsigned char)out->data[i];

		KR_BUG_IF(c != '\033' && c != '\017' && c != '\030' && (c < 0x20 || c >= 0x7f));
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kr_modes whole = { 0 }, pieces = { 0 };
	kr_auto_buf struct kr_buf a = KR_BUF(1024), b = KR_BUF(1024);
	size_t step = size ? data[0] % 7 + 1u : 1;

	kr_modes_feed(&whole, (const char *)data, size);
	for (size_t i = 0; i < size; i += step)
		kr_modes_feed(&pieces, (const char *)data + i, size - i < step ? size - i : step);
	reset_of(&whole, &a);
	reset_of(&pieces, &b);
	KR_BUG_IF(a.len != b.len || (a.len && memcmp(a.data, b.data, a.len) != 0));
	KR_BUG_IF(whole.queries != pieces.queries);
	return 0;
}
