/*
 * kind: docker in `kraft run`, before its item is opened: sandbox.yaml, the runtime and what it enforces, the
 * image (fetched when it is not here), the CA that it has to trust as well. Whatever refuses a container
 * refuses it here, before anything runs or waits for an item. A sandbox of kind: os pays nothing for any of
 * it.
 */
#ifndef KR_RUN_CONTAINER_H
#define KR_RUN_CONTAINER_H

#include "backend/container.h"
#include "session/item.h"

struct kr_run_state;
struct kr_job;

struct kr_run_container {
	bool is_used; /* the sandbox is kind: docker; all else is for it only */
	struct kr_sandbox_file file;
	struct kr_runtime runtime;
	struct kr_image image;
	struct kr_ca ca;
	bool has_runtime,
		is_enforced;   /* how far kr_run_container_look came: one answered; it can do what the sandbox asks */
	const char *roots; /* of the image, with a CA: PEM, or "" */
	struct kr_plan_container plan; /* without the CA bundle, which is a session's */
};

/* One launch: what the plan and the launch of it get. */
struct kr_run_container_launch {
	struct kr_container container;
	struct kr_plan_container plan;
};

/* KR_E_UNSUPPORTED: this system has no containers of kraft's. */
int kr_run_container_check_host(const struct kr_host *host, struct kr_error *err);

/* sandbox.yaml, the runtime, the image as it is here; nothing is fetched: out->image.id may be NULL. After a
 * failure `out` tells how far it came. */
int kr_run_container_look(struct kr_arena *arena, const struct kr_host *host, const struct kr_repo *repo,
	struct kr_run_container *out, struct kr_error *err);

/* All of it for this run. */
int kr_run_container_find(struct kr_run_state *run, struct kr_error *err);
/* The item is open: what a worker is to write must be ours, else neither it nor we can work with it. */
int kr_run_container_check_owner(struct kr_run_state *run, struct kr_error *err);
const char *kr_run_container_bundle(
	struct kr_arena *arena, const char *run_dir, const char *session); /* its CA's */
/* A session's, without its CA bundle. */
struct kr_run_container_launch *kr_run_container_place(struct kr_run_state *run, const struct kr_session_paths *paths);
/* Its CA bundle, in its folder: the image's roots, the extra CA and the session's own (PEM; NULL: it has none). Without either of
 * the last two there is no bundle. */
int kr_run_container_trust(struct kr_run_state *run, const struct kr_session_paths *paths, const char *authority,
	struct kr_run_container_launch *launch, struct kr_error *err);
/* What a host that gets a secret is verified by: kraft's own SSL_CERT_FILE, else this system's roots, and sandbox.yaml's
 * ca_bundle. In the arena. */
int kr_run_container_host_roots(struct kr_run_state *run, const char **pem, size_t *bytes, struct kr_error *err);
/* The session is over: what the client left, and the container where it never ran. */
void kr_run_container_clear(struct kr_run_state *run, const struct kr_job *job);
/* Containers of sessions that died, when there is a trace of one. Best effort. */
void kr_run_container_sweep(struct kr_run_state *run);
/* The same outside of a run, whether there is a trace or not; may wait for the runtime. */
void kr_run_container_sweep_home(struct kr_arena *arena, const struct kr_host *host);
/* Names of containers that dead sessions left; nothing is ended. */
int kr_run_container_left(struct kr_arena *arena, const struct kr_host *host, const struct kr_runtime *runtime, struct kr_strs *names,
	struct kr_error *err);

/* container_ask.c */
/*
 * CTR-09: whether the image has the command of the job, asked once of an image through its entry point and
 * with the repository's variables. KR_E_CONFIG when it says no; whoever cannot be asked is not refused for
 * that.
 */
int kr_run_container_ask(
	struct kr_run_state *run, const char *command, const struct kr_plan_agent *agent, struct kr_error *err);
/* What a program in the image is, for what is known of it: another image, entry point or variable is another
 * program. */
const char *kr_run_container_identity(
	struct kr_run_state *run, const char *command, const struct kr_plan_agent *agent);

#endif
