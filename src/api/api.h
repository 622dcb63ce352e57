/*
 * The HTTP API: one connection of a client, read and answered in a process of its own. The server forks one for
 * each connection that it accepts, so nothing that a client sends reaches the process that keeps the items, and
 * a request that takes long holds up no other. What the routes do is work/'s and store/'s; none is the API's own.
 */
#ifndef KR_API_API_H
#define KR_API_API_H

#include "config/access.h"
#include "os/host.h"

/* What the server says about itself (GET /api/health). */
struct kr_api_health {
	int pid;
	uint64_t started_ms;
	/* Of the items that were active when it began: */
	unsigned scanned;
	unsigned adopted; /* a host from before was still at them */
	unsigned resumed; /* their host was gone: they were given a new one */
	unsigned unknown; /* nobody could be given to them: they stopped */
};

struct kr_api {
	const struct kr_access *access; /* as bound: the port is the real one */
	const char *token;              /* what a change has to carry */
	struct kr_api_health health;
};

/*
 * Blocks until the client has gone, its time is over, or the process is told to end; owns fd. For a process of its
 * own, with no other threads, signals at their default (git is waited for), and no store open.
 */
void kr_api_connection(const struct kr_api *api, int fd);

/* docs/api.md: the reference of all routes, made of their table. */
void kr_api_reference(struct kr_buf *out);

/* <run_dir>/token (0600, ours, no link): 43 letters; made when there is none. KR_E_REFUSED when others may read it. */
int kr_api_token(struct kr_arena *arena, const struct kr_places *places, const char **out, struct kr_error *err);
/* The one that is there; *out NULL: there is none yet. Makes none. */
int kr_api_token_look(struct kr_arena *arena, const struct kr_places *places, const char **out, struct kr_error *err);

#endif
