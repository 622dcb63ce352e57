/*
 * The channel socket: how a listener gets out of the sandbox (OS-LCH-06). Whoever is inside can connect to it
 * and hand over a listening TCP socket on 127.0.0.1; as long as that connection lives, what connects to the
 * listener is served.
 *
 *     it sends    'L', one descriptor
 *     we answer   'A'
 *
 * Where the sandbox cannot connect to the host, its listener stays inside, and somebody between us hands over
 * each connection that was accepted on it, as one end of a pair of unix sockets:
 *
 *     it sends    'C', a number of four bytes, one descriptor, as often as somebody connects
 *     both send   'R', that number, before they close one that is to look reset
 *
 * Such a socket may do what an accepted connection may. Anything else closes the channel. What is handed over stays shared with a process inside, which can make it block or
 * take connections from it; that holds up nobody but this session.
 */
#ifndef KR_EGRESS_CHANNEL_H
#define KR_EGRESS_CHANNEL_H

#include <sys/types.h>

#include "egress/loop.h"

struct kr_channel {
	struct kr_watch watch, listener;
	struct kr_channel *next;
	uint32_t last_round; /* in which somebody connected */
	bool hands_over;     /* connections, so it waits itself when there is no place */
};

/* A listener that is there from the beginning: the host's loopback, with no channel and nobody to answer. Takes fd. */
int kr_channels_open_door(struct kr_egress *egress, int fd);
void kr_channels_accept(struct kr_egress *egress);
void kr_channel_ready(struct kr_egress *egress, struct kr_channel *channel);
void kr_listener_ready(struct kr_egress *egress, struct kr_channel *channel, unsigned events);
/* Listens as far as there are places. */
void kr_channels_settle(struct kr_egress *egress);
/* Tries again what the system had no room for. */
void kr_channels_resume(struct kr_egress *egress);
void kr_channels_close(struct kr_egress *egress);
void kr_channel_free_dead(struct kr_egress *egress);

/* One message from a channel: whether it hands over exactly one descriptor and nothing else, or tells a reset.
 * *fd is that descriptor, or -1; every other one is closed. */
enum kr_hand_over {
	KR_HAND_OVER_NONE,
	KR_HAND_OVER_LISTENER,
	KR_HAND_OVER_CONNECTION,
	KR_HAND_OVER_RESET, /* of the connection of that number; no descriptor */
	KR_HAND_OVER_BAD,
};
enum kr_hand_over kr_hand_over_read(int channel_fd, int *fd, uint32_t *number);
/* The connection of that number is about to end abruptly. */
void kr_channel_tell_reset(struct kr_channel *channel, uint32_t number);
/* A TCP socket that listens on 127.0.0.1. */
bool kr_listener_check(int fd);
/* A unix stream socket that is connected to this user's. */
bool kr_handed_connection_check(int fd, uid_t uid);
/* Whether who connected runs as this user: the socket's mode and its directory's say the same (CHAN-13). */
bool kr_channel_peer_check(int fd, uid_t uid);

#endif
