/* SHA-256 (FIPS 180-4), for content that is named by it. No secrets: it is not constant-time on purpose or
 * otherwise. */
#ifndef KR_BASE_SHA256_H
#define KR_BASE_SHA256_H

#include "base/base.h"

enum { KR_SHA256_HEX = 64 };

struct kr_sha256 {
	uint32_t state[8];
	uint64_t bytes;
	unsigned char block[64];
};

void kr_sha256_init(struct kr_sha256 *sha);
void kr_sha256_add(struct kr_sha256 *sha, const void *bytes, size_t n);
/* Lower-case hex, terminated. The object is used up. */
void kr_sha256_hex(struct kr_sha256 *sha, char out[KR_SHA256_HEX + 1]);

#endif
