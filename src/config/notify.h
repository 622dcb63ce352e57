/*
 * notify.yaml: how a person who is not looking is told that an item waits. Read anew each time; it belongs to
 * the host, and no item keeps it. Errors are KR_E_CONFIG with place, as in policy_file.h; a message may hold
 * the webhook's URL, and that may be a secret: it is for the person's terminal and nothing else.
 */
#ifndef KR_CONFIG_NOTIFY_H
#define KR_CONFIG_NOTIFY_H

#include "config/config.h"

/* occasion, name in YAML and in the message */
#define KR_OCCASIONS(X)                                                   \
	X(GATE, "gate")                                                       \
	X(STOP, "stop")                                                       \
	X(QUESTION, "question") /* a worker asks whether it may use a tool */ \
	X(COMPLETE, "complete")
enum kr_occasion {
#define X(occasion, name) KR_OCCASION_##occasion,
	KR_OCCASIONS(X)
#undef X
		KR_OCCASION_COUNT
};
const char *kr_occasion_name(enum kr_occasion occasion);

enum { KR_WEBHOOK_BYTES = 2048 };

struct kr_notify {
	struct kr_strs
		command; /* n 0: none. The first word: a name without '/', or a clean path that is not in run_dir */
	const char *webhook; /* NULL: none; printable ASCII without blank, quote and backslash */
	unsigned on;         /* bits of 1 << enum kr_occasion; gate, stop and question */
};

/* Pure. An empty document tells nobody; one with anything in it has `command` or `webhook`. */
int kr_notify_parse(struct kr_arena *arena, const struct kr_places *places, const char *file,
	const char *bytes, size_t n, struct kr_notify *out, struct kr_error *err);
/* Reads <config_dir>/notify.yaml; a missing file tells nobody, an unreadable one is an error. */
int kr_notify_load(
	struct kr_arena *arena, const struct kr_places *places, struct kr_notify *out, struct kr_error *err);

#endif
