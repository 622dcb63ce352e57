/*
 * The server: one process for a store that gives each item which is to go on a host, and answers the HTTP API.
 * It hosts no session itself: hosts are processes of their own (work/queue.c), so it can be killed and started
 * again at any moment, and finds them by their locks (OS-LIM-01, ITM-06). Clients that only change the store, the
 * command line first of all, need not know it: it looks at the rows.
 *
 *     server.c   one loop: connections, children, signals     keep.c     which item gets a host (the choice is pure)
 *     client.c   what the command line asks a server          scope.c    a scope of its own for each host
 *     listen.c   the socket
 */
#ifndef KR_SERVER_SERVER_H
#define KR_SERVER_SERVER_H

#include <jansson.h>

#include "os/host.h"

struct kr_server_want {
	const char *bind; /* NULL: access.yaml's */
	int port;         /* -1: access.yaml's; 0: any that is free */
	/* Called once, when it listens; url: "http://127.0.0.1:8765". NULL is allowed. */
	void (*on_ready)(void *context, const char *url);
	void *context;
};
/*
 * Until SIGTERM or SIGINT; hosts live on. KR_E_BUSY when a server keeps this store already, KR_E_REFUSED for an
 * address that may not be bound. Says what it does on stderr, a line each.
 */
int kr_server_run(const struct kr_server_want *want, struct kr_error *err);

/* ---- client.c: KR_E_SERVER when none runs ---- */

struct kr_server_seen {
	int pid;
	const char *url;
	bool ends_hosts; /* it is part of a service whose restart ends what runs (OS-LIM-01) */
};
int kr_server_find(struct kr_arena *arena, const struct kr_places *places, struct kr_server_seen *out,
	struct kr_error *err);
/* What GET /api/health answers; a reference of the caller's. KR_E_TIMEOUT after 5 s. */
int kr_server_health(const struct kr_server_seen *server, json_t **out, struct kr_error *err);
/* Asks it to end and waits until it has; KR_E_TIMEOUT after 10 s. */
int kr_server_stop(struct kr_arena *arena, const struct kr_places *places, struct kr_error *err);
/* Asks it to read its configuration again; the caller has seen that it loads. */
int kr_server_reload(struct kr_arena *arena, const struct kr_places *places, struct kr_error *err);

#endif
