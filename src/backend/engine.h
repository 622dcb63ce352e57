/* The parts of engine.c, engine_read.c, engine_key.c, image.c and sweep.c that they share or that tests ask
 * alone; the rest of the world uses container.h. */
#ifndef KR_BACKEND_ENGINE_H
#define KR_BACKEND_ENGINE_H

#include "backend/container.h"

enum {
	KR_RUNTIME_TEXT_BYTES = 4 << 20, /* what a runtime may say about itself, an image, or its containers */
	KR_IMAGE_WORDS = 256,            /* of an entry point */
	KR_IMAGE_VARIABLES = 1024,
	KR_IMAGE_VOLUMES = 64,
	KR_IMAGE_BYTES = 128 << 10, /* of the words and variables of an image together */
};

/* ---- what a runtime said (engine_read.c); pure; KR_E_WALL when it is not what a runtime says ---- */

/* kind, version (the lower one of client and service) and name, without "rootless". */
int kr_runtime_read_version(
	struct kr_arena *arena, const char *json, size_t n, struct kr_runtime *out, struct kr_error *err);

struct kr_runtime_info {
	bool is_rootless, is_remapped, is_desktop;
	bool has_labels;      /* it gives its containers SELinux labels */
	const char *hostname; /* of the service's; NULL: it does not say */
	bool is_remote;       /* podman's client calls it so, which a socket of this host is too */
	bool swap_is_unknown; /* podman does not say: the kernel is asked (kr_runtime_settle) */
	unsigned limits;      /* with the swap bit wherever memory can be limited and swap_is_unknown */
	unsigned flaws;
	const char *kernel;
};
int kr_runtime_read_info(struct kr_arena *arena, enum kr_runtime_kind kind, const char *json, size_t n,
	struct kr_runtime_info *out, struct kr_error *err);

/* What this host's kernel says, beside what the runtime does. */
struct kr_runtime_host {
	const char *kernel;   /* its release */
	const char *hostname; /* NULL: unknown */
	bool enforces_selinux, accounts_swap;
};
/* Puts both together. Pure. */
void kr_runtime_settle(struct kr_arena *arena, const struct kr_runtime_info *info,
	const struct kr_runtime_host *host, struct kr_runtime *out);

/* `image inspect` of one image; out->name is kept. */
int kr_image_read(
	struct kr_arena *arena, const char *json, size_t n, struct kr_image *out, struct kr_error *err);

/* One container of `ps`, whosever it is. Texts are as their maker wrote them. */
struct kr_container_seen {
	const char *name, *home, *session; /* "" where it has no such label */
};
struct kr_containers_seen {
	struct kr_container_seen *v;
	size_t n;
};
int kr_containers_read(struct kr_arena *arena, enum kr_runtime_kind kind, const char *text, size_t n,
	struct kr_containers_seen *out, struct kr_error *err);

/* ---- patience ---- */

/* Failures to answer in time, one after the other, and when the last one was found. All zero: none. */
struct kr_runtime_wait {
	unsigned failures;
	int64_t at_ms; /* by the wall clock */
};
enum { KR_RUNTIME_FIRST_MS = 10000, KR_RUNTIME_NEXT_MS = 30000, KR_RUNTIME_BACK_OFF_MS = 30000 };
/* How long the next answer is waited for; 0: it is not asked. A clock that was set back asks. Pure. */
int64_t kr_runtime_patience(const struct kr_runtime_wait *wait, int64_t now_ms);

/* ---- one call (engine.c) ---- */

/* As kr_runtime_call, with what is not usual. KR_E_TIMEOUT when it was over its time. */
struct kr_runtime_ask {
	const char *const *argv;        /* without the program */
	const char *const *environment; /* NULL: the runtime's */
	int stdout_fd, stderr_fd;       /* as in struct kr_child */
	int64_t limit_ms;
};
int kr_runtime_ask(struct kr_arena *arena, const struct kr_runtime *runtime, const struct kr_runtime_ask *ask,
	struct kr_buf *out, struct kr_error *err);
/* What a CLI printed on stderr as one line that fits into a message: without warnings, escaped. Pure. */
const char *kr_runtime_words(struct kr_arena *arena, const char *text, size_t n);
/* The next step for what a CLI said, "" when nobody knows one. `program` as a person calls it. Pure. */
const char *kr_runtime_next_step(struct kr_arena *arena, const char *program, const char *said);

/* The environment of a call that goes out to a registry: with the proxy variables that the others have not (image.c). */
const char *const *kr_image_environment(struct kr_arena *arena, const struct kr_runtime *runtime);

/* ---- what the answers are of (engine_key.c) ---- */

/* The variables that count and the program's own, and what the person's names of them stand for now. */
const char *kr_runtime_key(struct kr_arena *arena, const struct kr_host *host, const char *program,
	const struct kr_strs *programs, const char *const *environment);

/* The URL of the service that a variable or a context of docker's names; NULL: the CLI's own default. */
const char *kr_runtime_service(struct kr_arena *arena, const struct kr_host *host, enum kr_runtime_kind kind);

#endif
