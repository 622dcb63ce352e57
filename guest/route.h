/*
 * The sandbox's only way out (OS-LCH-06): a listening socket on 127.0.0.1:3128, made by the init inside and handed to
 * kraft's proxy outside over the channel socket. The proxy accepts on it directly; no byte passes through the init.
 */
#ifndef KG_ROUTE_H
#define KG_ROUTE_H

#include <stdint.h>

struct kg_route {
	const char *path; /* of the channel socket; NULL: this session has no way out */
	int given;        /* the channel itself, where the path cannot be connected to; never made again; -1: none */
	int listener;     /* kept for the next proxy; -1 before, and while there will be none */
	int channel;      /* its life is the proxy's; -1: lost */
	int64_t again_at; /* when it is lost: the next try, CLOCK_MONOTONIC in ms */
};

/* Makes the listener, hands it over and waits for the proxy's word, some seconds at most. 0 or errno; EPIPE: the other
 * end of `pipe` is gone, and who is left should be too. */
int kg_route_open(struct kg_route *route, int pipe);
/* The channel is readable: the proxy is gone (or says what nobody asked for, which is the same). */
void kg_route_lost(struct kg_route *route);
/* Hands the listener over again when it is time to; never blocks. */
void kg_route_again(struct kg_route *route);
/* Milliseconds until kg_route_again has something to do, for poll(2); -1: it has not. */
int kg_route_wait_ms(const struct kg_route *route);

#endif
