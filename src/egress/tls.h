/*
 * TLS of one side of a connection, over memory: what comes is fed in, what is to go out is taken and sent as everything else is
 * (pump.h), so the engine itself touches no socket. kraft-egress-tls has it (tls.c, OpenSSL); kraft-egress has no TLS at all
 * (no_tls.c), and there no side ever gets a struct kr_tls.
 *
 * A read decrypts all that has come, so nothing lies inside that the next one would have to be woken for, but an end: see
 * kr_tls_waits.
 */
#ifndef KR_EGRESS_TLS_H
#define KR_EGRESS_TLS_H

#include <sys/uio.h>

#include "egress/connection.h"

enum kr_handshake { KR_HANDSHAKE_MORE, KR_HANDSHAKE_DONE, KR_HANDSHAKE_BAD };
/* Moves what can be moved; an alert of ours is sent, or held, when it is BAD. */
enum kr_handshake kr_tls_handshake(struct kr_egress *egress, struct kr_side *side);

/* As kr_side_read and kr_side_send, which call them. An end without TLS's own word for it is KR_READ_ERROR: what came before may
 * be cut short. */
enum kr_read kr_tls_read(struct kr_egress *egress, struct kr_side *side, size_t *n);
bool kr_tls_send(struct kr_side *side, const struct iovec *parts, size_t n);
/* TLS's own word that nothing more comes; once. */
void kr_tls_close(struct kr_side *side);
/* There is something to read of which the descriptor does not tell. */
bool kr_tls_waits(const struct kr_side *side);
void kr_tls_free(struct kr_tls *tls); /* NULL is allowed */

#endif
