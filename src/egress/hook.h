/*
 * POST http://kraft/w/permission-hook: an agent's hook asks whether a tool may be used, in the words of that
 * agent: a form of `harness` and `stdin`, the hook's JSON as it came. Pure; from there on it is what a call
 * by MCP is (mcp_host.c), but that its client is shown nothing until the answer.
 */
#ifndef KR_EGRESS_HOOK_H
#define KR_EGRESS_HOOK_H

#include "egress/mcp.h"

#define KR_HOOK_ROUTE "POST /w/permission-hook"

/* form[0, n) is used up; out borrows from it: KR_MCP_CALL with its harness, or KR_MCP_WRONG with why. */
void kr_hook_read(char *form, size_t n, struct kr_mcp *out);

enum kr_hook_decision { KR_HOOK_ALLOW, KR_HOOK_DENY, KR_HOOK_SILENT };
/* One object in one line. message[0, n): why it is denied; UTF-8. */
void kr_hook_write(const struct kr_mcp *mcp, enum kr_hook_decision decision, const char *message, size_t n,
	struct kr_buf *out);

#endif
