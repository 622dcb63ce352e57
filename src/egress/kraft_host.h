/*
 * The host `kraft`: requests that are kraft's to answer and are never dialled (CHN-05, CHN-07). Only POST of
 * http://kraft/w/VERB, on port 80, is a call, and of http://kraft/mcp (mcp_host.c); everything else that
 * names the host is told to kraft, which refuses and records it. What the head says beside that is not looked
 * at (CHN-06).
 */
#ifndef KR_EGRESS_KRAFT_HOST_H
#define KR_EGRESS_KRAFT_HOST_H

#include "egress/body.h"
#include "egress/connection.h"
#include "egress/mcp.h"

bool kr_is_kraft_host(const struct kr_destination *to);

/* From KR_STAGE_HEAD to KR_STAGE_CALL, or further. */
void kr_worker_call_begin(
	struct kr_connection *connection, const struct kr_head *head, const struct kr_destination *to);
/* In KR_STAGE_CALL: the client sent something, or went. */
void kr_worker_call_ready(struct kr_connection *connection, unsigned events);
/* In KR_STAGE_CALL: what the client is watched for. */
int kr_worker_call_events(const struct kr_connection *connection);
/* In KR_STAGE_CALL, KR_STAGE_ASKED or KR_STAGE_WAIT: its time is over. */
void kr_worker_call_overdue(struct kr_connection *connection);
/* In KR_STAGE_ASKED, once kraft is told: what is to be sent behind the ask. */
const struct kr_call *kr_worker_call_of(const struct kr_connection *connection, uint32_t *bytes);
/* The client has gone. Whether kraft has to be told so: then there is something to be sent in place of what
 * was. */
bool kr_worker_call_is_left(struct kr_connection *connection);
/* kraft's answer; body[0, answer->bytes) is taken over. The client may have gone. */
void kr_worker_call_answer(struct kr_connection *connection, const struct kr_answer *answer, char *body);
/* Gives its place to the next one. Nothing to do for a connection that is no call. */
void kr_worker_call_free(struct kr_connection *connection);
/* Once a round: lets those go on that wait for a place. */
void kr_worker_calls_settle(struct kr_egress *egress);

/* ---- between kraft_host.c and mcp_host.c ---- */

struct kr_worker_call {
	struct kr_body body; /* must not move */
	enum kr_verb verb;
	bool waits, has_place;
	bool expects; /* a word before the body is sent */
	enum kr_framing framing;
	uint64_t length, total; /* of the body as announced; as it came */
	size_t most;            /* that is kept of it */
	char *form;             /* its first form_n bytes */
	size_t form_n, form_cap;
	struct kr_call *call;
	struct kr_mcp_call *mcp; /* NULL: it is neither by MCP nor a hook's */
};

/* It has a place from now on, until it gives it back. */
void kr_worker_call_take_place(struct kr_connection *connection);
void kr_worker_call_give_place(struct kr_connection *connection);
/* The last that the client gets, behind what is held for it; body[0, n) is taken over. */
void kr_worker_call_give(struct kr_connection *connection, char *body, size_t n);

bool kr_is_hook(const struct kr_head *head, const struct kr_destination *to);
bool kr_is_mcp(const struct kr_head *head, const struct kr_destination *to);
/* What is asked of it without being a message: the status to refuse it with, 0: nothing. */
unsigned kr_mcp_refuse(const struct kr_head *head, const char **why);
/* NULL: no memory. Freed by kr_mcp_call_free. */
struct kr_mcp_call *kr_mcp_call_new(const struct kr_head *head, bool is_hook);
void kr_mcp_call_free(struct kr_mcp_call *mcp);
/* The body is in call->form. */
void kr_mcp_call_take(struct kr_connection *connection);
void kr_mcp_call_answer(struct kr_connection *connection, const struct kr_answer *answer, const char *body);
bool kr_mcp_call_is_left(struct kr_connection *connection);
/* In KR_STAGE_WAIT. */
void kr_mcp_call_ready(struct kr_connection *connection, unsigned events);
void kr_mcp_call_tick(struct kr_connection *connection);
/* Whether the client has the head of a stream already, so that nothing but events can follow. */
bool kr_mcp_call_streams(const struct kr_mcp_call *mcp);

#endif
