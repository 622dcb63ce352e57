/*
 * http://kraft/mcp: the Model Context Protocol over streamable HTTP, with the one tool permission_request.
 * Pure: a body and three fields of its head become a struct kr_mcp, and what is answered is written here. All
 * but a call of the tool is answered without kraft, so a client that starts never waits for a store or a
 * policy.
 *
 *     2024-11-05 to 2025-11-25   initialize, notifications/initialized, ping, tools/list, tools/call
 *     2026-07-28                 server/discover, tools/list, tools/call; Mcp-Method and Mcp-Name agree with
 * the body
 *
 * No sessions: nothing is kept between two requests, and ids of sessions are not looked at. One message in a
 * body: a list of them (2025-03-26 had it) is refused, since no client sends one.
 */
#ifndef KR_EGRESS_MCP_H
#define KR_EGRESS_MCP_H

#include "base/buf.h"
#include "egress/call.h"
#include "egress/head.h"
#include "base/json.h"

/* Of a request's head; "" for a field that is not there. What is longer is cut, and is then no known value.
 */
struct kr_mcp_fields {
	char version[KR_MCP_WORD_BYTES + 1]; /* MCP-Protocol-Version */
	char method[KR_MCP_WORD_BYTES + 1];  /* Mcp-Method */
	char name[KR_MCP_WORD_BYTES + 1];    /* Mcp-Name */
};

enum kr_mcp_kind {
	KR_MCP_WRONG,     /* status, code and why say how */
	KR_MCP_NOTED,     /* a notification, or an answer to what was never asked: 202 */
	KR_MCP_CANCELLED, /* a notification: nobody waits any more for the answer to `cancelled` */
	KR_MCP_INITIALIZE,
	KR_MCP_PING,
	KR_MCP_DISCOVER,
	KR_MCP_LIST,
	KR_MCP_CALL, /* of permission_request */
};

/* Borrows from the body. Ids and tokens are as they were written. */
struct kr_mcp {
	enum kr_mcp_kind kind;
	bool is_modern;                      /* 2026-07-28 */
	struct kr_json id, token, cancelled; /* absent: none */
	const char *version;                 /* INITIALIZE: the one that it will be */
	/* WRONG */
	unsigned status;
	int code;
	const char *why;
	const char
		*requested; /* the version that is not known; NULL: it is not about one. Borrowed from the fields */
	/* CALL */
	char tool[KR_MCP_WORD_BYTES + 1]; /* printable ASCII without a blank */
	struct kr_json input;             /* an object of at most KR_ASK_INPUT_BYTES */
	bool has_command; /* the input has one that can be read and is not too long: for the grants */
	char command[KR_ASK_COMMAND_BYTES];
	size_t command_n;
	enum kr_hooked harness; /* of a hook (hook.h) */
};

void kr_mcp_read(const struct kr_mcp_fields *fields, const char *body, size_t n, struct kr_mcp *out);

/* The JSON of the answer to anything but KR_MCP_CALL; nothing for a notification. */
void kr_mcp_write(const struct kr_mcp *mcp, struct kr_buf *out);
/* To KR_MCP_CALL: what it is told of its tool. message[0, n): of a denial; UTF-8. */
void kr_mcp_write_permit(
	const struct kr_mcp *mcp, bool allow, const char *message, size_t n, struct kr_buf *out);
/* Whether it can be shown that it is being waited: it gave a token. seconds: so far. */
bool kr_mcp_write_progress(const struct kr_mcp *mcp, const char *ask, int64_t seconds, struct kr_buf *out);

/* For hook.c: into out->tool; and from out->input, where there is one that is meant without doubt. */
bool kr_mcp_read_tool(const struct kr_json *name, struct kr_mcp *out);
void kr_mcp_read_command(struct kr_mcp *out);

#endif
