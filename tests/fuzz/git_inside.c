/* What git inside the walls prints: which paths are ignored, what is left over; and the shape of a raw diff. */
#include <stddef.h>
#include <stdint.h>

#include "git/leftovers.h"
#include "git/planted.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
answer(const char *bytes, size_t n)
{
	struct kr_planted_found v[] = { { 0, "a" }, { 0, "b/c" }, { 0, ":(top)d" }, { 0, "e\n" } };
	struct kr_planted found = { .v = v, .n = KR_COUNT(v), .cap = KR_COUNT(v) };
	bool taken = kr_planted_drop_ignored(&found, bytes, n);

	KR_BUG_IF(found.n > KR_COUNT(v) || (!taken && found.n != KR_COUNT(v)) || (taken && n && found.n == KR_COUNT(v)));
	for (size_t i = 1; i < found.n; i++)
		KR_BUG_IF(found.v[i].path == found.v[i - 1].path);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const char *bytes = (const char *)data;
	struct kr_strs paths = { 0 };
	struct kr_planted links = { 0 };

	answer(bytes, size);
	if (!kr_leftovers_parse(&arena, bytes, size, &paths))
		KR_BUG_IF(paths.n);
	for (size_t i = 0; i < paths.n; i++)
		KR_BUG_IF(!paths.v[i][0]);
	if (!kr_planted_links_parse(&arena, bytes, size, &links))
		KR_BUG_IF(links.n);
	for (size_t i = 0; i < links.n; i++)
		KR_BUG_IF(!links.v[i].path[0]);
	return 0;
}
