/* What tls.c and terminate.c share: the engine's inside. OpenSSL is known to these, authority.c and nobody else. */
#ifndef KR_EGRESS_TLS_OPENSSL_H
#define KR_EGRESS_TLS_OPENSSL_H

#include <openssl/ssl.h>

#include "egress/tls.h"

struct kr_tls {
	SSL *ssl; /* owns the two below */
	BIO *in, *out;
	const struct kr_tls_host *bound;
	enum kr_read end;  /* KR_READ_SOME: none yet; what the next read is told */
	enum kr_told why;  /* of a client's hello that was refused; 0: nothing of ours */
	char name[KR_HOST_MAX + 1]; /* with KR_TOLD_OTHER_NAME: canonical */
};

/* NULL: there is no memory. */
struct kr_tls *kr_tls_new(SSL_CTX *context, const struct kr_tls_host *bound);

#endif
