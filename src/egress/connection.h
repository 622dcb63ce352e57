/*
 * One client connection, from accept to close.
 *
 *     HEAD -> ASKED -> TUNNEL                    CONNECT
 *                   -> REPLY -> TUNNEL           CONNECT through an upstream proxy
 *                   -> HTTP                      a plain request and its response
 *     HEAD -> CALL -> ASKED                      a call to kraft itself (kraft_host.h)
 *                     ASKED -> WAIT -> ASKED     one that a person is asked about (mcp_host.c)
 *     HEAD -> HANDSHAKE -> HEAD                  CONNECT to a host whose secrets are managed (terminate.h): TLS ends here
 *             HEAD -> ASKED -> HANDSHAKE -> HTTP   and then each request inside; the first, and one after the host hung up
 *             HEAD -> HTTP -> HEAD                 the next ones
 *     each -> LINGER                             an answer of ours, or the end of the response, is on its way
 * out
 *
 * From ASKED on the connection has its place until kraft's answer is there, even when the client is gone
 * before: so asks without an answer are never more than connections.
 *
 * Where the proxy listens on the host's loopback, a connection is a stranger until its head has said the token: whatever else it
 * says is answered 407 and closed, so there is nothing behind such a head that could be read as a request. There are at most
 * KR_STRANGERS_MAX of them; then the oldest makes room for the next, once it has had its KR_STRANGER_GRACE_MS. Who knows the token
 * says it at once, so a flood of others takes no place from them, and makes them wait.
 */
#ifndef KR_EGRESS_CONNECTION_H
#define KR_EGRESS_CONNECTION_H

#include <sys/queue.h>

#include "egress/head.h"
#include "egress/loop.h"

enum kr_stage {
	KR_STAGE_HEAD,
	KR_STAGE_CALL,
	KR_STAGE_ASKED,
	KR_STAGE_WAIT,
	KR_STAGE_REPLY,
	KR_STAGE_HANDSHAKE,
	KR_STAGE_TUNNEL,
	KR_STAGE_HTTP,
	KR_STAGE_LINGER,
	KR_STAGE_DEAD,
};

/* Bytes that have been read and are not used up: a head that is not whole, and what came behind one. */
struct kr_intake {
	char *bytes;
	uint32_t n, cap;
	struct kr_head_scan scan;
};

struct kr_side {
	struct kr_watch watch;
	bool ended; /* it sends nothing more */
	bool shut;  /* we told it that we send nothing more */
	struct kr_intake intake;
	char *held; /* to be written to it: held[held_at, held_n) */
	uint32_t held_at, held_n;
	struct kr_pipe *pipe; /* a tunnel's: from this side to the other one, when large amounts come */
	uint32_t piped;       /* bytes in it */
	bool tls_closed;      /* TLS's own word that nothing more comes is said */
	struct kr_tls *tls;   /* what goes over it is TLS, and ends here; NULL: it is passed on as it is */
};

struct kr_http;
struct kr_worker_call;
struct kr_tls;
struct kr_tls_host;

struct kr_connection {
	struct kr_egress *egress;
	struct kr_side client, server;
	int64_t deadline_ms; /* INT64_MAX: none */
	uint32_t dropped;    /* LINGER: bytes read and thrown away */
	uint16_t slot;
	uint16_t turn; /* with the slot: the id of its ask */
	uint8_t stage; /* enum kr_stage */
	bool tunnel;   /* from ASKED on: it is a CONNECT */
	bool bodyless; /* from ASKED on: it is a HEAD */
	bool is_stranger;            /* on loopback: it has not said the token */
	uint16_t client_port;        /* on loopback: its end; else 0 */
	int64_t since_ms;            /* on loopback: it was accepted */
	TAILQ_ENTRY(kr_connection) of_strangers;
	struct kr_http *http;
	struct kr_worker_call *call; /* from KR_STAGE_CALL until its answer is out */
	struct kr_channel *channel;  /* that handed it over, while that is open; NULL: none did */
	uint32_t number;             /* there */
	const struct kr_tls_host *bound; /* the host whose TLS ends here; NULL: no TLS does */
	bool waits;                   /* in the egress's list of those */
	TAILQ_ENTRY(kr_connection) of_waiting;
	struct kr_connection *next;  /* in the list of those that ask, or of the dead */
};

/* Whether there is a place for one more. */
bool kr_connection_has_place(const struct kr_egress *egress);
/* When there will be, where only time makes one; INT64_MAX: it is not time that is waited for. */
int64_t kr_connection_place_ms(const struct kr_egress *egress);
/* Takes client_fd. client_port: of one that came over loopback; else 0. NULL: there is no place, and it is closed. */
struct kr_connection *kr_connection_accept(struct kr_egress *egress, int client_fd, uint16_t client_port);
void kr_connection_ready(struct kr_connection *connection, bool client, unsigned events);
/* Takes fd (-1: none) and body (NULL: none). False: kraft answered what nobody asked. */
bool kr_connection_answer(struct kr_egress *egress, const struct kr_answer *answer, int fd, char *body);
/* Sends asks as long as the control socket takes them; false: it is broken. */
bool kr_connection_send_asks(struct kr_egress *egress);
void kr_connection_overdue(struct kr_connection *connection);
/* Ends it whatever it waits for; only when the conversation with kraft is over. */
void kr_connection_abandon(struct kr_connection *connection);
/* Those that have something to read which no descriptor tells of: once each. */
void kr_connections_go_on(struct kr_egress *egress);
void kr_connection_free_dead(struct kr_egress *egress);

/* ---- for pump.c, http.c, kraft_host.c and terminate.c ---- */

/* To kraft; from now on it has its place until the answer is there. */
void kr_connection_ask(struct kr_connection *connection);
/* Watches each side for what the stage can use. */
void kr_connection_settle(struct kr_connection *connection);

/* The server's side alone; abruptly: likewise. */
void kr_connection_close_server(struct kr_connection *connection, bool abruptly);
/* A response is out and the client may send its next request, which may be there already. */
void kr_connection_next(struct kr_connection *connection);
/* The TLS with the server is verified: the request that waits goes out. */
void kr_connection_send_request(struct kr_connection *connection);
/* Closes both sides; abruptly: what was sent so far must not look complete. */
void kr_connection_end(struct kr_connection *connection, bool abruptly);
/* Answers with a refusal of ours and lingers. */
void kr_connection_refuse(struct kr_connection *connection, unsigned status, const char *why);
/* The response is out: waits for the client to close, so that no reset can overtake it. */
void kr_connection_linger(struct kr_connection *connection);
void kr_connection_set_deadline(struct kr_connection *connection, int64_t in_ms);

/* Reads once from the side into the loop's buffer; the bytes are there until the next read of anybody's. */
enum kr_read { KR_READ_SOME, KR_READ_NONE, KR_READ_END, KR_READ_ERROR };
enum kr_read kr_side_read(struct kr_egress *egress, struct kr_side *side, size_t *n);
/* The same, behind what the intake holds; no memory is KR_READ_ERROR. */
enum kr_read kr_intake_read(struct kr_egress *egress, struct kr_side *side);
/* Bytes of the next message, that came behind one. False: there is no memory. */
bool kr_intake_add(struct kr_intake *intake, const char *bytes, size_t n);
/* Drops the first n bytes; the scan begins again. */
void kr_intake_drop(struct kr_intake *intake, size_t n);
void kr_intake_clear(struct kr_intake *intake);

#endif
