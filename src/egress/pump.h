/*
 * Moving bytes with back pressure. What a side does not take at once is held for it, and nothing more is read
 * from the other side until that is out: a connection holds at most one buffer for each side, and an idle one
 * none.
 */
#ifndef KR_EGRESS_PUMP_H
#define KR_EGRESS_PUMP_H

#include <sys/uio.h>

#include "egress/connection.h"

/* Sends the parts in one call and holds what is not taken, behind what is held already. False: the side is
 * gone, or there is no memory. */
bool kr_side_send(struct kr_side *side, const struct iovec *parts, size_t n);
/* The same, as it is, also where the side speaks TLS. */
bool kr_side_put(struct kr_side *side, const struct iovec *parts, size_t n);
/* Sends what is held. False: the side is gone. */
bool kr_side_flush(struct kr_side *side);
static inline bool
kr_side_is_clear(const struct kr_side *side)
{
	return side->held == NULL;
}
/* No more will be sent to it. */
void kr_side_shut(struct kr_side *side);

/* Moves what can be moved towards the server (up) and the client (down), which may end the connection. */
void kr_tunnel_ready(struct kr_connection *connection, bool up, bool down);
/* What a side of a tunnel is to be watched for. */
int kr_tunnel_events(const struct kr_side *side, const struct kr_side *other);
/* Back to the pool; with bytes in it, closed. */
void kr_side_drop_pipe(struct kr_egress *egress, struct kr_side *side);

#endif
