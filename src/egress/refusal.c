/* A refusal in words: for the worker that was refused, and for the event that tells the person. */
#include <jansson.h>

#include "egress/broker.h"

void
kr_refusal_line(const struct kr_verdict *v, char out[KR_REFUSAL_LINE])
{
	int n = snprintf(out, KR_REFUSAL_LINE, "%s", v->reason);

	if (v->grant[0])
		snprintf(out + n, (size_t)(KR_REFUSAL_LINE - n), "; to allow it, add \"%s\" to network.%s.allow",
			v->grant, kr_phase_name(v->phase));
	/* A resolver's words are in whatever language; they must not become a line of their own, or steer a
	 * terminal. */
	for (char *at = out; *at; at++)
		if (*at < 0x20 || *at > 0x7e)
			*at = '?';
}

char *
kr_refusal_json(const struct kr_refusal *refusal, const char *session_id)
{
	const struct kr_verdict *v = refusal->verdict;
	char line[KR_REFUSAL_LINE], *text;
	json_t *data;

	kr_refusal_line(v, line);
	data = json_pack("{s:s,s:s,s:i,s:s,s:s}", "session_id", session_id, "host", v->target.host, "port",
		(int)v->target.port, "phase", kr_phase_name(v->phase), "reason", line);
	if (data && refusal->route && json_object_set_new(data, "route", json_string(refusal->route)) < 0) {
		json_decref(data);
		data = NULL;
	}
	if (data && refusal->suppressed && json_object_set_new(data, "suppressed", json_true()) < 0) {
		json_decref(data);
		data = NULL;
	}
	text = data ? json_dumps(data, JSON_COMPACT) : NULL;
	json_decref(data);
	return text;
}
