/*
 * Who is at the other end of a connection to a session's proxy on the host's loopback: a second question beside the token, which
 * other processes of the same user can read (MAC-12). Pure: the table is os/sys.h's (kr_socket_holders), which processes are the
 * session's its supervisor's to say.
 *
 * A socket can have several holders, since children inherit it: one of the session's is enough. Where nobody is found, because it
 * has closed meanwhile or is another user's and the system does not say, the token decides.
 */
#ifndef KR_EGRESS_PEER_H
#define KR_EGRESS_PEER_H

#include <sys/types.h>

#include "base/base.h"

enum kr_peer {
	KR_PEER_UNKNOWN, /* the system does not say */
	KR_PEER_SESSION,
	KR_PEER_OTHER,   /* there is a holder, and none is of the session */
};

/* What the session says of a process: KR_PEER_UNKNOWN too, of one that it cannot tell. */
typedef enum kr_peer kr_peer_of_fn(void *context, pid_t pid);

/* n below 0: the table could not be read. */
enum kr_peer kr_peer_judge(const pid_t *holders, int n, kr_peer_of_fn *of, void *context);

#endif
