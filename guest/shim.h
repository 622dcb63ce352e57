/* Between shim.c, hook.c and prove.c: one call to kraft over the session's channel. */
#ifndef KG_SHIM_H
#define KG_SHIM_H

#include "guest/sys.h"

enum { KG_SHIM_HEAD_BYTES = 8192 };

struct kg_answer {
	int wait_ms; /* without a byte; set before it is read */
	uint64_t status, length, next;
	bool has_length;
	char head[KG_SHIM_HEAD_BYTES];
	size_t used, head_n; /* all that was read; how much of it is the head */
};

/* As a form's value; three bytes for each at the worst. Behind the last one. */
char *kg_shim_escape(char *to, const char *bytes, size_t n);
/* Connected to the way out, or -1 with errno. */
int kg_shim_dial(void);
/* 0 or errno. */
int kg_shim_post(int fd, const char *verb, const char *form, size_t n);
/* False with errno. */
bool kg_shim_read_head(int fd, struct kg_answer *answer);
/* Writes exactly as much as the head said to `to`; false with errno. */
bool kg_shim_copy_body(int fd, const struct kg_answer *answer, int to);

bool kg_shim_write(int fd, const char *bytes, size_t n);

/* hook.c: argv[3] on are the harness and its options. */
int kg_hook_main(int argc, char **argv);
/* What it denies with when kraft gives no answer. */
#define KG_DENIAL_REASON "Kraft: it could not be asked whether this may be done"

/* prove.c: argv[3] on are the harness and what is to be proven. */
int kg_prove_main(int argc, char **argv);

/* probe.c: argv[3] on are the questions. */
int kg_probe_main(int argc, char **argv);

#endif
