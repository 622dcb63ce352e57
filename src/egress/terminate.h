/*
 * A connection whose TLS ends in kraft-egress-tls (SEN-01, SEN-02): a CONNECT to exactly the host and port of a rule. Nobody is
 * asked and nothing is dialled before a request inside has been judged; nothing is sent to the host before its certificate is
 * verified. Requests and responses inside are http.c's, as all others.
 *
 * In kraft-egress (no_tls.c) no host is bound, so none of the rest is ever called.
 */
#ifndef KR_EGRESS_TERMINATE_H
#define KR_EGRESS_TERMINATE_H

#include "egress/connection.h"
#include "egress/echo.h"

/* Before confinement. `authority` as the program's argument: makes one on standard output, and is done. Else reads what kraft
 * hands over at descriptor 5 and closes it. False: the program ends with *status. */
bool kr_terminator_start(int argc, char **argv, struct kr_terminator **out, int *status);

/* NULL: no rule is for exactly this host and port, so a tunnel to it is blind. */
const struct kr_tls_host *kr_tls_host_of(const struct kr_egress *egress, const struct kr_target *target);
/* Where it is, as a request in absolute form would name it; without a path. */
void kr_tls_host_destination(const struct kr_tls_host *bound, struct kr_destination *out);
/* A plain request to the name of a bound host, whatever the port: refused and told of. */
bool kr_is_refused_plain(struct kr_connection *connection, const struct kr_target *target);

/* The CONNECT is whole in the client's intake: it is answered and the handshake begins. */
void kr_terminate_begin(struct kr_connection *connection, const struct kr_tls_host *bound);
/* The server is connected: TLS with it. */
void kr_terminate_server(struct kr_connection *connection);
/* In KR_STAGE_HANDSHAKE, of either side. */
void kr_terminate_ready(struct kr_connection *connection, bool client, unsigned events);
void kr_terminate_events(const struct kr_connection *connection, int *client, int *server);
void kr_terminate_overdue(struct kr_connection *connection);

/* Whether a request inside may go on; else it has been refused and told of. */
bool kr_terminate_judge(struct kr_connection *connection, const struct kr_head *head);
/* Its head, written anew with the secrets in it, into the egress's buffer, which the caller wipes. */
void kr_terminate_write(const struct kr_connection *connection, const struct kr_head *head, struct kr_buf *out);

/* What a response must not hold; NULL: no TLS ends here. */
const struct kr_echo *kr_terminate_echo(const struct kr_connection *connection);
/* It holds this secret: kraft is told. */
void kr_terminate_echoed(struct kr_connection *connection, int which);

#endif
