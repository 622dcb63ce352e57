/* What the agent of a session said of itself, from the session's log. */
#ifndef KR_SESSION_AGENT_H
#define KR_SESSION_AGENT_H

#include "agent/stream.h"

/* All zero without a reader or a log. Of a long log the beginning and the end are read, in whole lines. -1
 * only when the log cannot be read or no parser can be had. */
int kr_agent_stream_read(const char *run_dir, const char *session, enum kr_reader reader,
	struct kr_agent_seen *out, struct kr_error *err);

#endif
