/* Between the files of this room. */
#ifndef KR_SERVER_INTERNAL_H
#define KR_SERVER_INTERNAL_H

#include <sys/types.h>

#include "api/api.h"
#include "server/keep.h"
#include "server/server.h"
#include "work/work.h"

/* Behind the URL in the note of the server's lock. */
#define KR_SERVER_ENDS_HOSTS " ends-hosts"

/* A line of the server's own, on stderr, with the time. */
void kr_server_log(const char *fmt, ...) KR_PRINTF(1, 2);

/* ---- listen.c ---- */

/* Close-on-exec, never blocks; *port: the real one. KR_E_BUSY when another program has the port. */
int kr_listen(const char *address, unsigned port, unsigned *real_port, struct kr_error *err);
/* "http://127.0.0.1:8765", "http://[::1]:8765". */
const char *kr_listen_url(struct kr_arena *arena, const char *address, unsigned port);

/* ---- scope.c ---- */

/*
 * The words that put a program into a systemd scope of its own, where we are part of a service and a user manager
 * answers: a restart of the service then ends no host. NULL: none is needed, or, with *ends_hosts, none can be had (said on
 * stderr).
 */
const char *const *kr_scope_words(struct kr_arena *arena, bool *ends_hosts);

/* ---- keeper.c: the choice of keep.h, carried out ---- */

struct kr_keeper;
/* within: words that go before a host's (scope.c); borrowed. NULL: none. */
struct kr_keeper *kr_keeper_open(const struct kr_host *host, const char *const *within);
void kr_keeper_close(struct kr_keeper *keeper);
/* At most so many hosts. */
void kr_keeper_set_slots(struct kr_keeper *keeper, unsigned slots);
/* A child that ended: whether it was one of its own. */
bool kr_keeper_reaped(struct kr_keeper *keeper, pid_t pid);
/* Looks at the items when something changed since it last did, or must be tried again. Never fails: what goes wrong is
 * said and tried again. */
void kr_keeper_look(struct kr_keeper *keeper, struct kr_api_health *health);

/* ready.c */
void kr_tell_ready(void);

#endif
