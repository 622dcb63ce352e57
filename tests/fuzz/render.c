/* What is shown of an agent's lines: nothing in it drives a terminal, and pieces make no difference. The
 * first byte chooses the reader, the second how large the pieces are. */
#include <stddef.h>
#include <stdint.h>

#include "agent/render.h"
#include "base/buf.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
collect(void *context, const char *bytes, size_t n)
{
	kr_buf_add(context, bytes, n);
}

static void
show(
	struct kr_render *r, enum kr_reader reader, const char *bytes, size_t n, size_t piece, struct kr_buf *out)
{
	memset(r, 0, offsetof(struct kr_render, line)); /* the rest is a mebibyte */
	r->reader = reader;
	r->write = collect;
	r->context = out;
	for (size_t at = 0; at < n; at += piece)
		kr_render_feed(r, bytes + at, n - at < piece ? n - at : piece);
	kr_render_end(r);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct kr_render r;
	kr_auto_buf struct kr_buf whole = KR_BUF(1 << 20), pieces = KR_BUF(1 << 20), plain = KR_BUF(1 << 20);
	enum kr_reader reader;

	if (size < 2)
		return 0;
	reader = data[0] & 1 ? KR_READER_CLAUDE : KR_READER_CODEX;
	show(&r, reader, (const char *)data + 2, size - 2, size, &whole);
	show(&r, reader, (const char *)data + 2, size - 2, (size_t)data[1] + 1, &pieces);
	KR_BUG_IF(whole.len != pieces.len || (whole.len && memcmp(whole.data, pieces.data, whole.len) != 0));
	kr_buf_reserve(&plain, whole.len);
	KR_BUG_IF(whole.len && (kr_text_plain(plain.data, whole.data, whole.len, true) != whole.len ||
							   memcmp(plain.data, whole.data, whole.len) != 0));
	return 0;
}
