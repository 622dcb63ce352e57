/* What the init does in a container that bubblewrap does for it elsewhere: see container.c. */
#ifndef KG_CONTAINER_H
#define KG_CONTAINER_H

#include <stddef.h>
#include <stdint.h>

#include "guest/wire.h"

/* Receives KG_STREAMS and makes them our 0, 1 and 2. 0 or errno; EPIPE: the launcher is gone. */
int kg_container_take_streams(int pipe);

/* KG_FILTER. */
struct kg_filter {
	size_t bytes; /* 0: none */
	_Alignas(8) char text[KG_FILTER_BYTES];
};
/* Receives it. 0 or errno; EPIPE: the launcher is gone. */
int kg_container_take_filter(int pipe, struct kg_filter *out);
/* Puts ourselves and all that we start under it. 0 or errno. */
int kg_container_install(const struct kg_filter *filter);

/* The count of kills by the container's memory limit, where the kernel shows it to us. */
struct kg_oom {
	int fd; /* -1: it does not */
	uint64_t before;
};
void kg_container_watch_oom(struct kg_oom *out);
/* How many since then. */
uint64_t kg_container_oom_kills(const struct kg_oom *oom);

#endif
