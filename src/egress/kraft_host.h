/*
 * The host `kraft`: requests that are kraft's to answer and are never dialled (CHN-05, CHN-07). Only POST of
 * http://kraft/w/VERB, on port 80, is a call; everything else that names the host is told to kraft, which
 * refuses and records it. What the head says beside that is not looked at (CHN-06).
 */
#ifndef KR_EGRESS_KRAFT_HOST_H
#define KR_EGRESS_KRAFT_HOST_H

#include "egress/connection.h"

bool kr_is_kraft_host(const struct kr_destination *to);

/* From KR_STAGE_HEAD to KR_STAGE_CALL, or further. */
void kr_worker_call_begin(
	struct kr_connection *connection, const struct kr_head *head, const struct kr_destination *to);
/* In KR_STAGE_CALL: the client sent something, or went. */
void kr_worker_call_ready(struct kr_connection *connection, unsigned events);
/* In KR_STAGE_CALL: what the client is watched for. */
int kr_worker_call_events(const struct kr_connection *connection);
/* In KR_STAGE_CALL or KR_STAGE_ASKED: KR_CALL_MS are over. */
void kr_worker_call_overdue(struct kr_connection *connection);
/* In KR_STAGE_ASKED, once kraft is told: what is to be sent behind the ask. */
const struct kr_call *kr_worker_call_of(const struct kr_connection *connection, uint32_t *bytes);
/* kraft's answer; body[0, answer->bytes) is taken over. */
void kr_worker_call_answer(struct kr_connection *connection, const struct kr_answer *answer, char *body);
/* Gives its place to the next one. Nothing to do for a connection that is no call. */
void kr_worker_call_free(struct kr_connection *connection);
/* Once a round: lets those go on that wait for a place. */
void kr_worker_calls_settle(struct kr_egress *egress);

#endif
