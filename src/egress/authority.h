/*
 * The certificate authority of one session, and what it signs: leaves for the hosts whose secrets are managed. EC P-256. Its
 * key is in the memory of kraft and of the session's kraft-egress-tls and nowhere else, so it is worth nothing when the session
 * is over, and to nobody who holds its certificate.
 */
#ifndef KR_EGRESS_AUTHORITY_H
#define KR_EGRESS_AUTHORITY_H

#include <openssl/x509.h>

#include "base/buf.h"

enum {
	KR_AUTHORITY_DAYS = 30, /* as long as a session may last */
	KR_LEAF_HOURS = 24,
	KR_LEAF_AGAIN_HOURS = 12, /* a leaf this old is made anew */
	KR_EARLY_S = 300,         /* valid so long before it is made: clocks differ */
};

/* A new one, as struct kr_managed has it: certificate and key in PEM, a NUL behind each. False: there is no memory or no
 * randomness. */
bool kr_authority_make(struct kr_buf *out);

struct kr_authority {
	X509 *certificate;
	EVP_PKEY *key;
	EVP_PKEY *leaf_key; /* of all leaves of this process */
};

/* Bytes as kr_managed_is_authority wants them; makes the leaves' key. False: they are no key and its certificate. */
bool kr_authority_init(struct kr_authority *authority, const char *bytes);
void kr_authority_fini(struct kr_authority *authority);

/* A leaf for this host, canonical, a name or a literal address; the caller's to free. NULL: there is no memory. */
X509 *kr_authority_sign(const struct kr_authority *authority, const char *host, bool is_address);

#endif
