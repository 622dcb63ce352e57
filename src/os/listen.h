/* A listening stream socket at a path, 0600, close-on-exec, never blocking. What was left there by a process
 * that was killed goes. KR_E_LIMIT for a path that is longer than a socket may have; KR_E_SYSTEM. */
#ifndef KR_OS_LISTEN_H
#define KR_OS_LISTEN_H

#include "base/error.h"

int kr_listen_check(const char *path, struct kr_error *err); /* only the path's length */
int kr_listen_unix(const char *path, int backlog, struct kr_error *err);

/* The same on 127.0.0.1, at a port that the system chooses and nobody shares. */
int kr_listen_loopback(int backlog, uint16_t *port, struct kr_error *err);

#endif
