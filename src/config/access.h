/*
 * <config_dir>/access.yaml: where the server listens and who may ask it from elsewhere. A missing file is the
 * defaults. Errors as in config.h.
 */
#ifndef KR_CONFIG_ACCESS_H
#define KR_CONFIG_ACCESS_H

#include "config/config.h"

struct kr_access {
	const char *bind;             /* an address, IPv4 or IPv6; 127.0.0.1 */
	unsigned port;                /* 8765; 0: any that is free */
	const char *password_hash;    /* as crypt(3) writes it; NULL: unset. Without it nothing but loopback is bound */
	unsigned session_expiry_days; /* of a login by password; 7 */
	struct kr_strs allowed_hosts; /* names in Host, beside loopback's and the bound address */
};

/* Pure. An empty document is the defaults. */
int kr_access_parse(struct kr_arena *arena, const struct kr_places *places, const char *file, const char *bytes,
	size_t n, struct kr_access *out, struct kr_error *err);
int kr_access_load(
	struct kr_arena *arena, const struct kr_places *places, struct kr_access *out, struct kr_error *err);
/* Whether the address is this machine's loopback. */
bool kr_access_is_loopback(const struct kr_access *access);
/* KR_E_REFUSED for an address that others reach while no password is set. */
int kr_access_may_bind(const struct kr_access *access, struct kr_error *err);

/* The file's bytes with this password_hash in it, every other byte as it was; `out` is checked by parsing it. */
int kr_access_edit_hash(const struct kr_places *places, const char *file, const char *bytes, size_t n,
	const char *hash, struct kr_buf *out, struct kr_error *err);

#endif
