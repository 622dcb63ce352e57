/* Inside the room cli/ only: which agents there are, whether their files load and their programs are here. */
#ifndef KR_CLI_HARNESSES_H
#define KR_CLI_HARNESSES_H

#include "config/harness.h"
#include "plan/plan.h"

/* A harness as it was found: loaded, with its program (NULL: it is not here), or the error. */
struct kr_harness_seen {
	const char *id;
	bool loads;
	struct kr_harness harness;
	const char *program;
	struct kr_error err;
};

/* -1: it does not load, and out->err says so. */
int kr_harness_look(struct kr_arena *arena, const struct kr_host *host, const char *id, struct kr_harness_seen *out);
/* All of them; one that does not load is among them. NULL with err. */
struct kr_harness_seen *kr_harnesses_look(struct kr_arena *arena, const struct kr_host *host, size_t *n, struct kr_error *err);

#endif
