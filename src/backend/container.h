/*
 * kind: docker, on Docker and Podman (container.c, docker.c, podman.c, engine.c, image.c).
 *
 * One container for each session, started by `CLI run --detach --rm` with kraft's init as its entry point and, but for
 * `unrestricted_network`, no network. The init connects to a socket of the launcher's that lies in the session's channel
 * directory, gets streams, environment, filter and the list of what it has to find mounted from there (guest/wire.h), and the
 * container lives as long as that connection: no client, no daemon and no restart can leave a worker running.
 *
 *   find    which CLI, what it is and what it can enforce; asked once, then cached by what it is asked of
 *   image   what is known of an image: id, entry point, variables
 *   render  pure: plan -> the words of `CLI run`, up to the image
 */
#ifndef KR_BACKEND_CONTAINER_H
#define KR_BACKEND_CONTAINER_H

#include "backend/backend.h"
#include "config/sandbox_file.h"

/* What a CLI is, whatever its name: a `docker` that is podman's is podman. name */
#define KR_RUNTIMES(X) X(DOCKER, "docker") X(PODMAN, "podman")
enum kr_runtime_kind {
#define X(kind, name) KR_RUNTIME_##kind,
	KR_RUNTIMES(X)
#undef X
		KR_RUNTIME_COUNT
};

/* LIM-01. bit, key of `resources` */
#define KR_LIMITS(X) X(CPU, "cpu") X(MEMORY, "memory") X(SWAP, "memory (swap)") X(PIDS, "pids")
enum kr_limit {
#define X(limit, name) KR_LIMIT_##limit,
	KR_LIMITS(X)
#undef X
		KR_LIMIT_COUNT
};
enum { KR_PIDS_DEFAULT = 4096 };

/* What is known to go wrong with a runtime and refuses no launch: doctor warns of it. */
enum kr_runtime_flaw {
	KR_FLAW_DEV_LINK,     /* runc before 1.2, of a rootful podman: /dev/ptmx is made through an image's link at /dev, on the host */
	KR_FLAW_LONG_RUNROOT, /* podman's own clean-up refuses it */
	KR_FLAW_COUNT
};

struct kr_runtime {
	enum kr_runtime_kind kind;
	const char *name;    /* for a person: "docker 20.10.24", "rootless podman 4.3.1" */
	const char *program; /* absolute */
	const char *const *environment; /* of each call of it; NULL-terminated; no proxy variables, which a CLI hands on */
	const char *key;     /* what the answers are of: another program, service, boot or configuration has another key */
	unsigned version[3]; /* the older of the CLI, which reads the words, and its service */
	bool is_rootless;
	bool is_remapped;      /* docker with userns-remap: `--userns=host` is needed */
	bool is_machine;       /* in a virtual machine: Docker Desktop, podman machine */
	bool enforces_selinux; /* labels are applied to containers on this host */
	unsigned limits;       /* bits 1 << enum kr_limit: what it can enforce */
	unsigned flaws;        /* bits 1 << enum kr_runtime_flaw */
};

/*
 * Finds the CLI (sandbox.yaml's `cli`, else docker, else podman, on kraft's PATH, never in a worktree) and asks it. An answer is
 * waited for 10 s, the next time 30 s, then only every 30 s (the state is in <run_dir>/cache). KR_E_WALL: there is none, it does not
 * answer, it refuses us; each with the next step.
 */
int kr_runtime_find(struct kr_arena *arena, const struct kr_host *host, const struct kr_sandbox_file *file,
	struct kr_runtime *out, struct kr_error *err);
/* LIM-01, CTR-02: a limit that would be dropped, SELinux without an answer: KR_E_WALL naming it. Pure. */
int kr_runtime_check(const struct kr_runtime *runtime, const struct kr_sandbox *sandbox, enum kr_selinux selinux,
	struct kr_error *err);

/* One call of the CLI to its end: argv without the program; stdout (and stderr, into the error) bounded. The exit status, or -1.
 * Over limit_ms it is ended: KR_E_WALL. */
int kr_runtime_call(struct kr_arena *arena, const struct kr_runtime *runtime, const char *const *argv, int64_t limit_ms,
	struct kr_buf *out, struct kr_error *err);
enum { KR_RUNTIME_CALL_MS = 30000 };

struct kr_image {
	const char *name;          /* as configured */
	const char *id;            /* NULL: it is not here yet */
	struct kr_strs entrypoint; /* words; none: the command is started itself */
	struct kr_strs env;        /* "NAME=value" */
	struct kr_strs volumes;    /* its VOLUMEs, clean absolute paths, sorted */
	const char *architecture;  /* as the runtime writes it: "amd64", "arm64" */
};
/* What is here under this name now. Not here: 0, id NULL. */
int kr_image_look(struct kr_arena *arena, const struct kr_runtime *runtime, const char *name, struct kr_image *out,
	struct kr_error *err);
/* CTR-13: fetches it. Where stderr_fd is a terminal the CLI shows its own progress there, and podman its reasons; else they
 * are in the error. */
int kr_image_pull(struct kr_arena *arena, const struct kr_runtime *runtime, const char *name, int stderr_fd, int64_t limit_ms,
	struct kr_error *err);

/*
 * The CA that every container trusts beside its image's roots: sandbox.yaml's `ca_bundle`, else the environment's
 * SSL_CERT_FILE. Read anew at each launch; doctor asks the same.
 */
enum { KR_CA_BYTES = 4 << 20 };
struct kr_ca {
	const char *path;    /* NULL: none */
	const char *pem;     /* its certificates as they were when it was looked at, nothing else of it: no key, no comment */
	size_t pem_len;
	const char *revoked; /* its lists of revoked certificates (PEM, "X509 CRL"), for kraft-egress alone; "" for none */
	size_t revoked_len;
	const char *ignored; /* why SSL_CERT_FILE is not used; NULL: it is, or is not asked for */
};
/* KR_E_CONFIG with its place: `ca_bundle` cannot be read, is no regular file, is too large, holds no certificate, or a list of revoked ones that is
 * not whole. */
int kr_ca_extra(struct kr_arena *arena, const struct kr_host *host, const struct kr_sandbox_file *file, struct kr_ca *out,
	struct kr_error *err);
/* Adds the whole certificate blocks of a PEM text. Returns how many. Pure. */
size_t kr_ca_certificates(const char *bytes, size_t n, struct kr_buf *out);
/* The same with its lists of revoked certificates. False: one is not whole, so nobody could say what it revokes. */
bool kr_ca_revocations(const char *bytes, size_t n, struct kr_buf *out);

/* A session's container and, below the run directory, where its client stands. */
#define KR_CONTAINER_CLIENTS "sandbox-client"
const char *kr_container_name(struct kr_arena *arena, const char *session);
const char *kr_container_client_dir(struct kr_arena *arena, const char *run_dir, const char *name);
/* The session whose container has this name, a part of it; NULL: it is not one that kraft makes. */
const char *kr_container_session(const char *name);

/* What a launch adds to the plan. All names; pure data. */
struct kr_container {
	const struct kr_runtime *runtime;
	const struct kr_image *image;
	enum kr_selinux selinux;
	const char *home;       /* KRAFT_HOME resolved: label kraft.home, whose sweep it is */
	const char *name;       /* kraft-<session> */
	const char *empty_path; /* an empty regular file, for masks */
	const char *client_dir; /* <run_dir>/sandbox-client/<name>: where the CLI stands; the container's id is in `cid` there */
	unsigned uid, gid;      /* who files have to belong to */
};
struct kr_container_render {
	struct kr_buf args;   /* NUL-separated: the CLI's name, `run`, options, the image's id */
	struct kr_buf verify; /* as kr_bwrap_render's */
};
/* Pure; opened may be NULL (goldens). KR_E_UNSUPPORTED: a path that this CLI has no words for, named. */
int kr_container_args(const struct kr_plan *plan, const struct kr_container *container, const struct kr_opened *opened,
	struct kr_container_render *out, struct kr_error *err);

/*
 * The words, without the program, of one attached run of the image's own `sh`: with the labels, walls and limits of a session's
 * container, but no network, nothing of the host's, and nothing to write to. Pure.
 */
int kr_container_script_args(struct kr_arena *arena, const struct kr_container *container, const char *session,
	const struct kr_resources *resources, const char *script, struct kr_strs *out, struct kr_error *err);

/* What it is told beside the mounts, for a person: who runs inside, what is taken away, the limits. Pure. */
void kr_container_walls(struct kr_arena *arena, const struct kr_runtime *runtime, const struct kr_sandbox *sandbox,
	enum kr_selinux selinux, unsigned uid, unsigned gid, struct kr_strs *out);

/*
 * Ends and removes the containers of dead sessions of this KRAFT_HOME, by label, and their client directories; what belongs to
 * a session for which is_alive says yes, or to another home, stays. Returns how many were removed; -1 with err.
 */
int kr_container_sweep(struct kr_arena *arena, const struct kr_runtime *runtime, const struct kr_host *host,
	bool (*is_alive)(void *context, const char *session), void *context, struct kr_error *err);
/* Which those are, and nothing is ended. */
int kr_container_left(struct kr_arena *arena, const struct kr_runtime *runtime, const struct kr_host *host,
	bool (*is_alive)(void *context, const char *session), void *context, struct kr_strs *names, struct kr_error *err);
/* One container by its name, whatever state it is in; that there is none is fine. */
int kr_container_remove(struct kr_arena *arena, const struct kr_runtime *runtime, const char *name, struct kr_error *err);

#endif
