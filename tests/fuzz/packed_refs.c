/* A packed-refs file that a worker wrote: entries lie in it, in order, and what is found is what is listed.
 */
#include <stddef.h>
#include <stdint.h>

#include "git/refs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(const char *bytes, size_t size, const struct kr_packed_ref *ref)
{
	const char *end = bytes + size;

	KR_BUG_IF(!kr_oid_is_valid(ref->oid, ref->oid_len) || !kr_ref_name_is_valid(ref->name, ref->name_len));
	KR_BUG_IF(
		ref->oid < bytes || ref->name != ref->oid + ref->oid_len + 1 || ref->name + ref->name_len >= end);
	KR_BUG_IF(
		ref->peeled && (!kr_oid_is_valid(ref->peeled, ref->oid_len) || ref->peeled + ref->oid_len >= end));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	struct kr_packed_ref ref;
	char name[2048], oid[KR_OID_HEX_MAX + 1];
	size_t at = 0, before = 0;
	bool first = true;

	while (kr_packed_refs_next(bytes, size, &at, &ref)) {
		check(bytes, size, &ref);
		KR_BUG_IF(at <= before || at > size);
		before = at;
		memcpy(name, ref.name, ref.name_len);
		name[ref.name_len] = '\0';
		KR_BUG_IF(kr_packed_refs_find(bytes, size, name, oid) != 1);
		KR_BUG_IF(first && (strlen(oid) != ref.oid_len || memcmp(oid, ref.oid, ref.oid_len) != 0));
		first = false;
	}
	return 0;
}
