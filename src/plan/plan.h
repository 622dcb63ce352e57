/*
 * The plan of a session: an ordered list of what the worker will see and run as, each with its reason. Pure:
 * configuration + facts of the host + the request go in, a const plan comes out, and nothing is decided later.
 * `kraft explain` and the golden tests print it; a backend renders it; the launch opens its sources and checks them
 * again on the descriptors.
 */
#ifndef KR_PLAN_PLAN_H
#define KR_PLAN_PLAN_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "config/config.h"
#include "os/fs.h"

/* Whose walls kind os has: bubblewrap's, or Seatbelt's (macos.c). */
enum kr_system { KR_SYSTEM_LINUX, KR_SYSTEM_MACOS };

/* Facts of the host, gathered by os/host.h or written in a golden test's host.json. All paths clean. */
struct kr_host {
	enum kr_system os; /* `system` is banned (base/banned.h) */
	const char *sandbox_exec; /* macOS: /usr/bin/sandbox-exec; what stands in for it where a test pretends (base/fault.h) */
	const struct kr_fs *fs;
	struct kr_places places;
	const char *user;                 /* login name */
	const char *const *environment;   /* "NAME=value", NULL-terminated */
	const char *guest_dir;            /* host directory shown as /opt/kraft: holds `init` and bin/kraft */
};
/* "http://127.0.0.1:3128", "localhost:8080", "socks5h://me:word@[::1]": in a container of its own network, another one. Pure. */
bool kr_proxy_is_loopback(const char *proxy);
const char *kr_host_env(const struct kr_host *host, const char *name); /* NULL when unset */

/* A directory that is mounted on itself, so that no worker can rename or remove it; by what it was when it was looked at. */
struct kr_plan_place {
	const char *path;
	uint64_t device, inode; /* both 0: not known yet */
};

/*
 * A private git directory of the item and what it borrows (git/private.h): the root's, and one for each member of a
 * workspace. All paths clean and resolved.
 */
struct kr_plan_git {
	const char *worktree;    /* a member's own, below the request's; NULL: the request's */
	const struct kr_plan_place *places; /* from the first directory below the request's worktree down to the member */
	size_t place_count;
	const struct kr_plan_git *next;     /* of the next member; NULL: the last */
	const char *dir;         /* read-write, but for objects/info/alternates */
	const char *git_file;    /* shown as the worktree's `.git` */
	const char *objects;     /* the repository's, read-only */
	struct kr_strs borrowed; /* what those borrow from, read-only */
	const char *lfs;         /* the repository's large files, read-only; NULL: none */
	struct kr_strs identity; /* "NAME=value": who commits */
};

/* An agent as the plan needs to know it (config/harness.h). */
struct kr_plan_agent {
	const char *id;                   /* of its harness */
	const struct kr_strs *hosts;      /* join the runtime list; a deny still wins */
	const struct kr_env_literal *env; /* set, unless the repository's env does */
	size_t env_count;
	const struct kr_strs *files; /* names of its settings in the request's channel_dir */
	const char *config_dir;      /* its own directory, made for this session, read-write; NULL: none */
	const char *config_env;      /* the variable that names it */
	/* Directories in it that outlive the session: where they lie else. */
	const struct kr_plan_place *kept;
	size_t kept_count;
	const struct kr_credential *credentials; /* what its harness says of its secrets; completes the sandbox's of the same name */
	size_t credential_count;
};

/* A secret that stays outside, and what the worker has in its place (secrets.c). */
struct kr_plan_secret {
	const char *variable; /* that the worker sees */
	const char *source;   /* kraft's own, which holds the secret */
	const char *sentinel;
};
/* Where one goes in: into this header of requests to this host, over TLS. All but the value (egress/managed.h). */
struct kr_plan_rule {
	const char *host;   /* canonical */
	uint16_t port;
	const char *header; /* in lower case */
	const char *format; /* with one "%s" */
	const char *sentinel, *variable, *source;
};
enum { KR_PLAN_RULES = 64 };
struct kr_plan_secrets {
	struct kr_plan_secret *secrets;
	size_t secret_count;
	struct kr_plan_rule *rules;
	size_t rule_count;
};

/* kind: docker, as far as a plan needs to know it (backend/container.h finds it out). */
struct kr_plan_container {
	const char *runtime;  /* for a person: "rootless podman 4.3.1" */
	const char *image;    /* as configured */
	const char *image_id; /* NULL: not known yet, nor what it adds, and the next two may be NULL (explain only) */
	const struct kr_strs *entrypoint; /* of the image: its words come before the command */
	const struct kr_strs *image_env;  /* "NAME=value"; they reach the command unless kraft or the repository sets them */
	const struct kr_strs *volumes;    /* of the image, sorted: memory in place of a volume; NULL: none */
	const char *ca_bundle; /* a host file shown at KR_CA_BUNDLE; NULL: none is needed */
	const struct kr_strs *walls; /* for a person: what the runtime is told beside the mounts (kr_container_walls); NULL: not asked */
	const struct kr_strs *notes; /* for a person: what else is to be known of the image; NULL: nothing */
};
#define KR_CA_BUNDLE "/etc/kraft/ca-bundle.pem"

/*
 * The repository itself, where its worker's git works (MAC-08): there are no mounts by which a private git directory could stand
 * in the place of the worktree's `.git`. All paths clean and resolved. The worker writes loose objects, its own branch with its
 * log, and the linked worktree's own files, but not those by which git finds anything else (alternates, packs, configuration,
 * hooks, gitdir, commondir).
 */
struct kr_plan_shared_git {
	const char *worktree;         /* a member's own, below the request's; NULL: the request's */
	const char *common;           /* the repository's git directory */
	const char *worktree_git_dir; /* of the linked worktree: <common>/worktrees/NAME */
	const char *branch;           /* without refs/heads/ */
	struct kr_strs borrowed;      /* object directories that the repository borrows from, read-only */
	struct kr_strs identity;      /* "NAME=value": who commits */
	const struct kr_plan_shared_git *next; /* of the next member; NULL: the last */
};
/*
 * Where there are members, what git is told in one tree's worktree alone is a file in the request's channel_dir, named so with the
 * tree's number (the root's is 0): who else commits there, and in the root what the members are. Git includes it by the place of
 * the worktree's git directory.
 */
#define KR_TREE_SETTINGS "git-settings"

/*
 * kind: os on macOS (macos.c). Nothing is mounted: every step is a BIND_RO, BIND_RW, ADD or MASK whose path and source are the same
 * place of the host, resolved, and a later step wins over an earlier one that holds it. A place that is not there is no error.
 */
struct kr_plan_macos {
	const char *tmpdir;  /* the session's TMPDIR, read-write; clean and resolved */
	const char *proxy;   /* "http://kraft:TOKEN@127.0.0.1:PORT", never printed; NULL: no way out */
	uint16_t proxy_port; /* on 127.0.0.1; 0: none */
	const struct kr_plan_shared_git *git; /* the root's, in place of the request's `git`; NULL: no git inside */
};

/*
 * Where an agent sees its session's result file. An agent's own tool writes a file by making another one beside it and renaming
 * that; in the read-only directory of the item's results it cannot. Here it can: /tmp is memory, the rename onto
 * a mount fails as busy, and then such a tool writes into the file itself.
 */
#define KR_AGENT_RESULT "/tmp/kraft-result.json" /* not on macOS: there it may make files beside the result (KR_REACH_BESIDE) */

/* What is asked for: who runs what where. All paths clean and resolved. */
struct kr_request {
	const struct kr_repo *repo;
	enum kr_phase phase;
	const char *item, *session;  /* ids */
	const char *worktree;        /* read-write; its `.git` is a file and is covered */
	const char *checkout;        /* the person's checkout: never shown */
	const char *home;            /* the item's sandbox home, HOME inside */
	const char *results_dir;     /* this item's results, read-only */
	const char *result_file;     /* this session's own, below results_dir, read-write */
	const char *channel_dir;     /* directory of the session's channel socket */
	const char *cwd;             /* the worktree or below it */
	const char *const *argv;     /* the command; argv[0] is looked up */
	const char *const *starter;  /* words of a program of kraft's below /opt/kraft, which starts the command in the init's
									place: its path and words come behind them; NULL: none */
	bool terminal;               /* a pseudo-terminal inside */
	const struct kr_plan_git *git; /* the root's; NULL: no git inside, the worktree's `.git` reads as empty */
	bool is_short_run;           /* a short run of kraft's own, of git or to ask a program something: it has no way out */
	const struct kr_plan_agent *agent; /* that runs, or is asked; NULL: none */
	const struct kr_plan_container *container; /* kind: docker; NULL: kind: os */
	const struct kr_plan_macos *macos; /* kind: os where host->os is KR_SYSTEM_MACOS; else NULL */
	/* kr_plan_secrets of this request. NULL: the sandbox has no `credentials`, or this is a short run, which gets no sentinel. */
	const struct kr_plan_secrets *secrets;
};

/* kind, name in --json; what the fields mean */
#define KR_STEP_KINDS(X)                                                                           \
	X(BIND_RO, "bind-ro")     /* source shown read-only at path */                                 \
	X(BIND_RW, "bind-rw")     /* source shown read-write (nodev, nosuid) at path */                \
	X(LINK, "link")           /* a symbolic link at path; source is its text */                    \
	X(PROC, "proc")           /* a fresh /proc */                                                  \
	X(DEV, "dev")             /* a fresh, minimal /dev */                                          \
	X(TMPFS, "tmpfs")         /* an empty file system, size_bytes and inodes at most */            \
	X(MASK, "mask")           /* an empty regular file, read-only, over a file that exists; on     \
	                             macOS what is at path cannot be read or written */                  \
	X(READ_ONLY, "read-only") /* what was mounted at path so far becomes read-only */              \
	X(ADD, "add")             /* macOS: git objects; readable, new ones may be made, none changed */

enum kr_step_kind {
#define X(kind, name) KR_STEP_##kind,
	KR_STEP_KINDS(X)
#undef X
	KR_STEP_COUNT
};
const char *kr_step_name(enum kr_step_kind kind);

/* Which rules are applied again to the opened descriptor at launch. */
enum kr_step_check {
	KR_CHECK_SYSTEM,  /* ours or the system's: existence only */
	KR_CHECK_PROTECT, /* from expose or a command: protected-path rule by device and inode (OS-EXP-05) */
};

/* macOS: how far a step goes. Elsewhere a mount is what it is. */
enum kr_reach {
	KR_REACH_TREE,   /* path and all below */
	KR_REACH_ALONE,  /* path itself: a file, or a directory's list of names */
	KR_REACH_BESIDE, /* a file that stays in its place, and the names beside it that begin with its own and a dot */
};

struct kr_step {
	enum kr_step_kind kind;
	enum kr_reach reach;
	const char *path;    /* inside, clean */
	const char *source;  /* host path (resolved), or a link's text; NULL where none */
	uint64_t size_bytes, inodes;
	enum kr_step_check check;
	uint64_t device, inode; /* what the source has to be; both 0: whatever is there */
	const char *because; /* one phrase */
};

enum kr_env_source {
	KR_ENV_KRAFT,  /* a literal of kraft's, may be printed */
	KR_ENV_REPO,   /* a literal of the repository's `env`; the value is never printed */
	KR_ENV_HARNESS, /* of the agent's harness; the value is never printed */
	KR_ENV_HOST,   /* crosses by name; the value is never printed */
	KR_ENV_SESSION, /* kraft's, with a secret of this session's in it; the value is never printed */
	KR_ENV_SENTINEL, /* a sentinel in a secret's place; the value is not printed: it is another one in each session */
};
struct kr_plan_env {
	const char *name;
	const char *value;  /* for KR_ENV_HOST the value found in host->environment */
	enum kr_env_source source;
	const char *because;
};

struct kr_plan {
	const struct kr_request *request; /* borrowed; lives as long as the plan */
	const char *exec_path;            /* absolute, inside; a name without '/' (kind: docker only): looked up there along PATH */
	const char *const *argv;
	const char *cwd;
	struct kr_step *steps;
	size_t step_count;
	struct kr_plan_env *env;          /* sorted by name, unique */
	size_t env_count;
	const struct kr_host_list *hosts; /* of the request's phase; the first ones borrowed from the configuration */
	size_t needed_hosts;              /* so many at the end of `allow` are there because the agent needs them */
	struct kr_strs lookup;            /* command lookup, step by step */
	struct kr_strs notes;             /* said on stderr or by explain: things left out and why */
	size_t expose_and_mask_count;
};

enum {
	KR_PLAN_BINDS_MAX = 300,       /* expose entries plus masks (bubblewrap's cost grows with the square) */
	KR_SCAN_DEPTH = 3,             /* OS-MNT-12, OS-SEC-08 */
	KR_SCAN_ENTRIES = 65536,       /* per directory tree scanned; more is refused with the path */
};
#define KR_TMP_BYTES (2ull << 30)  /* OS-MNT-03 */
#define KR_SHM_BYTES (256ull << 20)
#define KR_TMP_INODES 1048576ull
#define KR_SHM_INODES 65536ull

/*
 * Builds the plan. On refusal NULL with the error; *partial_lookup (may be NULL) then holds the lookup steps told so
 * far. Errors: KR_E_REFUSED, KR_E_LIMIT, KR_E_UNSUPPORTED (kind docker or kit, or no sandbox at all).
 */
const struct kr_plan *kr_plan_build(struct kr_arena *arena, const struct kr_host *host,
	const struct kr_request *request, struct kr_strs *partial_lookup, struct kr_error *err);

/* What a worker finds at a path (view.c). kind, name in --json */
#define KR_SIGHTS(X)                                                                                   \
	X(ABSENT, "absent")         /* nothing */                                                          \
	X(EMPTY, "masked")          /* an empty file in the place of one; on macOS it cannot be opened */  \
	X(OWN, "own")               /* the session's own: processes, devices, memory */                    \
	X(READ, "read-only")                                                                               \
	X(WRITE, "read-write")                                                                             \
	X(IMAGE, "image")           /* a container's: whatever its image has there */
enum kr_sight_kind {
#define X(kind, name) KR_SIGHT_##kind,
	KR_SIGHTS(X)
#undef X
};
const char *kr_sight_name(enum kr_sight_kind kind);
struct kr_sight {
	enum kr_sight_kind kind;
	const char *path;           /* where it leads inside, links followed */
	const struct kr_step *step; /* that says so; NULL: none holds it */
	bool is_there;              /* there is something, as far as the plan can tell */
};
/* `path` is clean. Pure but for what host->fs tells. */
void kr_plan_look(struct kr_arena *arena, const struct kr_host *host, const struct kr_plan *plan, const char *path, struct kr_sight *out);

/* CTR-11, CHN-11: a container says what of the network it has. Of kind: os the configuration asks for it. Pure. */
int kr_plan_check_network(const struct kr_repo *repo, struct kr_error *err);

/* Of what a plan comes to, before there is one: what the command is found as (as kr_plan_build's exec_path), and the
 * variables. Of the request only what they need is looked at. */
int kr_plan_find(struct kr_arena *arena, const struct kr_host *host, const struct kr_request *request,
	const char **exec_path, struct kr_error *err);
const struct kr_plan_env *kr_plan_environment(
	struct kr_arena *arena, const struct kr_host *host, const struct kr_request *request, size_t *count);

/* kind: os on macOS, of a plan that is shown and not launched: places and a way out as a session's would be. NULL on Linux. */
const struct kr_plan_macos *kr_plan_macos_shown(
	struct kr_arena *arena, const struct kr_host *host, const char *session, const struct kr_plan_shared_git *git);
/* What the plan of this request will say of its phase's hosts: macOS's way out is opened before there is a plan. *needed: as in
 * struct kr_plan. */
const struct kr_host_list *kr_plan_hosts(struct kr_arena *arena, const struct kr_request *request, size_t *needed);
/* CHN-11: whether this session has a network of the runtime's. A short run has none; kraft's commands are inside in neither. */
bool kr_plan_has_open_network(const struct kr_request *request);

/*
 * The sentinels and rules of a request's phase, new at each call. random: kr_random; NULL for a plan that is shown and not launched.
 * KR_E_CONFIG for a host that a harness names and the phase's list does not, and for two secrets in one header. Pure but for random.
 */
typedef bool kr_random_fn(void *out, size_t n);
int kr_plan_secrets(struct kr_arena *arena, const struct kr_request *request, kr_random_fn *random,
	const struct kr_plan_secrets **out, struct kr_error *err);
/* What is wrong with the value of a secret (NULL: it is not set), after its name: "is not set"; NULL: nothing. */
enum { KR_PLAN_SECRET_BYTES = 16384 };
const char *kr_plan_secret_fault(const char *value);
/* Whether `credentials` names it, as `env` or `source`, of any phase: then it crosses in no other way. */
bool kr_plan_is_managed(const struct kr_repo *repo, const char *name);

/* Whether a variable of kraft's own environment reaches the worker. */
bool kr_plan_crosses(const struct kr_repo *repo, const char *name);

/*
 * For a person, and as JSON (one object; keys and order are stable). Of variables only the values of KR_ENV_KRAFT.
 * kernel_rules: what the system-call filter answers, one line each (kr_seccomp_rule); on macOS what the profile allows beside the
 * plan (kr_seatbelt_beside); NULL leaves the section out.
 */
void kr_plan_print(const struct kr_plan *plan, const struct kr_strs *kernel_rules, struct kr_buf *out);
void kr_plan_print_json(const struct kr_plan *plan, const struct kr_strs *kernel_rules, struct kr_buf *out);

#endif
