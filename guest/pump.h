/*
 * The descriptors behind the streams of a mux, and the two pipes to the other end: what both ends share.
 * Nothing here blocks. Who owns a pump polls what it says beside its own, and lets it handle what came.
 *
 * A stream's descriptor is read as far as the other end has room for it and written as far as it takes bytes.
 * When both ways are over, or one breaks, it is closed and let go of.
 */
#ifndef KG_PUMP_H
#define KG_PUMP_H

#include <poll.h>
#include <sys/types.h>

#include "guest/mux.h"

enum { KG_PUMP_IN = KG_STREAMS_MAX, KG_PUMP_OUT, KG_PUMP_PLACES };

struct kg_pump {
	struct kg_mux mux;
	struct kg_pump_end {
		int fd; /* -1: nothing is behind it (yet, or any more) */
		bool is_socket, shut;
		bool is_broken; /* what looks like its end is none that was meant */
	} end[KG_STREAMS_MAX];
	int in, out; /* the pipes; -1: ended */
	unsigned turn; /* who is read first: each gets its turn */
	/* In place of read(2) and write(2), for a stream that is more than bytes; NULL: none. Results as theirs. */
	ssize_t (*read_talk)(struct kg_pump *pump, int fd, char *out, size_t most);
	ssize_t (*write_talk)(struct kg_pump *pump, int fd, const char *bytes, size_t n);
	/* A descriptor is about to be closed abruptly; one has ended, and whether it is_broken may be known now. NULL: none. */
	void (*dropping)(struct kg_pump *pump, unsigned stream);
	void (*ended)(void);
};

/* Sets both pipes to not block, and the memory up. 0 or errno. */
int kg_pump_init(struct kg_pump *pump, bool is_outside, bool terminal, int in, int out);
/* The descriptor becomes the pump's. It is to be one that does not block, or that is only ever ready when it will not. */
void kg_pump_attach(struct kg_pump *pump, unsigned stream, int fd, bool is_socket);
/* Closes what is behind it, and lets go of the stream. */
void kg_pump_drop(struct kg_pump *pump, unsigned stream);
/* Whether everything that came on it was passed on, and nothing more comes. */
bool kg_pump_is_dry(const struct kg_pump *pump, unsigned stream);

void kg_pump_watch(struct kg_pump *pump, struct pollfd at[KG_PUMP_PLACES]);
/* False: the other end broke the protocol. When `in` has ended it is -1. */
bool kg_pump_handle(struct kg_pump *pump, const struct pollfd at[KG_PUMP_PLACES]);

/* O_NONBLOCK on an open file description; false: it does not take it. */
bool kg_pump_unblock(int fd);

#endif
