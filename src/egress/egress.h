/*
 * A session's way out, seen from kraft: the channel socket, the kraft-egress that serves it and the broker that decides
 * for it, as one thing with one descriptor to look after.
 *
 * A kraft-egress that ends, for whatever reason, costs the session its open connections, is told of, and is started again
 * once; the init then hands its listener over again (guest/wire.h). After the second time the session has no way out.
 */
#ifndef KR_EGRESS_EGRESS_H
#define KR_EGRESS_EGRESS_H

#include "base/arena.h"
#include "egress/broker.h"
#include "egress/managed.h"
#include "egress/token.h"

struct kr_egress_want {
	const char *program;     /* kraft-egress, absolute */
	const char *channel_dir; /* the session's own, empty; the socket is made in it. Not looked at on loopback */
	struct kr_broker_want broker;
	void (*on_lost)(void *context, bool restarted); /* may be NULL; context is the broker's */
	/* Not NULL: `program` is kraft-egress-tls, and these hosts' TLS ends there. Called at each start of a kraft-egress; what it
	 * gives is copied and wiped with the start. False: err says why there is no start. Context is the broker's. */
	bool (*managed)(void *context, struct kr_managed *out, struct kr_error *err);
	bool is_on_loopback; /* macOS: it listens on 127.0.0.1 of the host itself, and answers only those who say the token */
};

/* Where a session's proxy listens on the host's own loopback, and what has to be said to it (MAC-06). */
struct kr_egress_door {
	uint16_t port;
	char token[KR_EGRESS_TOKEN + 1]; /* a secret of the session's: in its environment, in no log, event or argument list */
};

struct kr_egress;

/* Makes the socket, which queues who comes. KR_E_LIMIT: its path is too long for the system. */
int kr_egress_open(const struct kr_egress_want *want, struct kr_egress **out, struct kr_error *err);
/* Starts the kraft-egress; once. */
int kr_egress_serve(struct kr_egress *egress, struct kr_error *err);
/* Ends the kraft-egress with all its connections and removes the socket. NULL is allowed. */
void kr_egress_end(struct kr_egress *egress);

/* Of one that is on loopback, from open on; NULL: it is not. The user name in its URL is "kraft" and means nothing. */
const struct kr_egress_door *kr_egress_door(const struct kr_egress *egress);

/* With `managed`, from open on: the certificate of the session's own CA, PEM; its key never leaves kraft and kraft-egress.
 * NULL: there is none. */
const char *kr_egress_authority(const struct kr_egress *egress);

/* The channel socket's path, as long as the egress lives; NULL: it is on loopback. */
const char *kr_egress_socket(const struct kr_egress *egress);

/* Readable when there is something to do; then call step. */
int kr_egress_fd(const struct kr_egress *egress);
void kr_egress_step(struct kr_egress *egress);

#endif
