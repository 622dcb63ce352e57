/*
 * Many streams over two pipes: what goes between the two ends of a session whose container lives in a virtual
 * machine, where nothing of the host can be connected to (pump_outside.c, pump_inside.c). Pure: bytes in, bytes
 * out, no call of the system; the same code is in both ends, in its unit test and under the fuzzer.
 *
 * A frame is a head of fixed size in the byte order of both, which are of one architecture, and behind
 * KG_FRAME_DATA so many bytes as it says. Each direction of a stream has a window: its sender never has more
 * on the way than the receiver has room for, so what is received always finds its place, and a stream that
 * nobody reads holds up no other one.
 *
 * Life of a stream: open (the fixed ones are from the beginning; a connection by KG_FRAME_OPEN, which only the
 * inside says) -> each side may say that nothing more comes from it (END) -> each side says CLOSED once, as its
 * last word on that stream: it has let go of what was behind it. CLOSED without END before is an abrupt end.
 * When both have said it the number is free; so no frame is ever meant for the stream before.
 *
 * The outside trusts nothing of what it takes: a worker may have become the inside. What may not come ends the
 * session.
 */
#ifndef KG_MUX_H
#define KG_MUX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kg_frame_kind {
	KG_FRAME_HELLO = 1, /* inside, first and once: value KG_HELLO */
	KG_FRAME_OPEN,      /* inside: somebody connected to the listener */
	KG_FRAME_DATA,      /* value = bytes, which follow */
	KG_FRAME_CREDIT,    /* value = bytes that were taken: the sender may send so many more */
	KG_FRAME_END,
	KG_FRAME_CLOSED,
	KG_FRAME_ROUTE, /* inside: a listener is there, value 0; outside, once: value = errno of the way out, 0: it is open */
	KG_FRAME_SIZE,  /* outside: value = rows << 16 | columns of the terminal */
	KG_FRAME_BYE,   /* inside, once: everything was said; it ends when its input does */
	KG_FRAME_END_OF_KINDS
};

struct kg_frame {
	uint8_t kind, zero;
	uint16_t stream; /* 0 where the kind has none */
	uint32_t value;  /* 0 where the kind has none */
};

enum kg_fixed_stream {
	KG_STREAM_TALK, /* the init pipe of wire.h, without its descriptors */
	KG_STREAM_STDIN,
	KG_STREAM_STDOUT,
	KG_STREAM_STDERR,
	KG_STREAM_TERMINAL,
	KG_STREAM_FIRST /* from here on: connections */
};

enum {
	KG_HELLO = 0x4b524601,        /* "KRF", and the version of all this */
	KG_CONNECTIONS = 512,         /* at once; who connects then waits in the listener's backlog */
	KG_STREAMS_MAX = KG_STREAM_FIRST + KG_CONNECTIONS,
	KG_WINDOW = 64 << 10,         /* of each direction of a stream */
	KG_FRAME_BYTES = 16 << 10,    /* of data in one frame */
	KG_MUX_OUT = 256 << 10,       /* written for the other end, not yet taken by the pipe */
	KG_RINGS_BYTES = KG_STREAMS_MAX * KG_WINDOW,
};

struct kg_stream {
	bool open;
	/* what comes */
	bool got_end, got_closed;
	uint32_t at, n; /* in its ring: not yet passed on */
	uint32_t owed;  /* passed on, not yet told as credit */
	/* what goes */
	bool open_due, end_due, closed_due; /* to be said */
	bool sent_end, sent_closed;
	uint32_t credit;
};

struct kg_mux {
	bool is_outside;
	bool greeted;
	char *rings; /* KG_RINGS_BYTES */
	struct kg_stream stream[KG_STREAMS_MAX];
	/* the frame that is being taken */
	struct kg_frame head;
	uint32_t head_bytes, left;
	/* what is to be said */
	bool hello_due, route_due, size_due, bye_due;
	uint32_t route, size;
	char out[KG_MUX_OUT];
	size_t out_at, out_n;
	/* what was said, for its owner, who takes the marks away */
	bool route_came, size_came, bye_came;
	uint32_t route_value, size_value;
};

/* rings: KG_RINGS_BYTES of memory, which is touched only as far as it is needed. mux is all zero. */
void kg_mux_init(struct kg_mux *mux, bool is_outside, bool terminal, char *rings);

/* Takes bytes of the other end. False: it says what it may not say, and the state is of no use any more. */
bool kg_mux_take(struct kg_mux *mux, const char *bytes, size_t n);

/* What came on a stream and was not passed on; how many bytes lie together there. Then so many of them were passed on. */
const char *kg_mux_front(const struct kg_mux *mux, unsigned stream, size_t *n);
void kg_mux_passed(struct kg_mux *mux, unsigned stream, size_t n);

/* Where data for a stream is to be written, and how much at most; NULL: not now. Then so many bytes (not 0) are there. */
char *kg_mux_place(struct kg_mux *mux, unsigned stream, size_t *most);
void kg_mux_put(struct kg_mux *mux, unsigned stream, size_t n);
/* Nothing more goes on it, after what was put. */
void kg_mux_end(struct kg_mux *mux, unsigned stream);
/* It was let go of: what still comes is dropped. */
void kg_mux_close(struct kg_mux *mux, unsigned stream);
/* A new connection (the inside); 0: there is no number. */
unsigned kg_mux_open(struct kg_mux *mux);
bool kg_mux_has_place(const struct kg_mux *mux);

/* What is to go out now, as many bytes as *n says. Then so many of them went. */
const char *kg_mux_out(struct kg_mux *mux, size_t *n);
void kg_mux_sent(struct kg_mux *mux, size_t n);

#endif
