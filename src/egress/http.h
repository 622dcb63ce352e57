/*
 * One plain request and its response. Both heads are ours by now (head.h); bodies are read by llhttp and
 * framed anew.
 */
#ifndef KR_EGRESS_HTTP_H
#define KR_EGRESS_HTTP_H

#include "egress/connection.h"

struct kr_http_begin {
	struct kr_head head; /* of the request; points into the client's intake */
	struct kr_destination to;
	bool upstream;
	const char *authorization; /* for the upstream proxy; "": none */
};

/* The server is connected: sends the request's head and what is there of its body. */
void kr_http_begin(struct kr_connection *connection, const struct kr_http_begin *begin);
/* The request can go on (up), the response can (down). */
void kr_http_ready(struct kr_connection *connection, bool up, bool down);
void kr_http_events(const struct kr_connection *connection, int *client, int *server);
void kr_http_free(struct kr_http *http); /* NULL is allowed */

#endif
