/* Inside the room plan/ only: what its files share while a plan is built. */
#ifndef KR_PLAN_BUILD_H
#define KR_PLAN_BUILD_H

#include "lookup/lookup.h"
#include "plan/plan.h"

/* A host directory or file that will be shown, before merging and ordering. path is where, source what. */
struct kr_show {
	const char *path, *source, *because;
	bool writable;
	bool ours; /* kraft's or the request's: never merged away */
	bool adds; /* macOS: KR_STEP_ADD */
	enum kr_reach reach;
	enum kr_step_check check;
	uint64_t device, inode; /* both 0: whatever is there */
};

struct kr_build {
	struct kr_arena *arena;
	const struct kr_host *host;
	const struct kr_request *request;
	struct kr_plan *plan;
	struct kr_show *shows;
	size_t show_count, show_cap;
	struct kr_strs system_dirs;     /* resolved or links: shown whatever is asked for */
	struct kr_strs not_system;      /* macOS: directories in those that are not */
	struct kr_step *system_steps;   /* macOS: what is shown whatever is asked for, as steps */
	size_t system_step_count;
	struct kr_strs expose;          /* resolved */
	struct kr_strs protected_real;  /* protected paths that links lead elsewhere, resolved */
	struct kr_strs links;           /* pairs: a link to make again, its text */
	struct kr_strs link_why;        /* one per pair */
	struct kr_strs sealed;          /* directories in /tmp that hold places of the host */
	struct kr_strs masks, mask_why; /* files that read as empty */
};

/* Whether it is a variable that no configuration may set (env.c). */
bool kr_plan_sets(const struct kr_repo *repo, const char *name);

/* Where commands are looked up, and what the worker gets, when kraft's own PATH is unset. */
#define KR_PATH_DEFAULT "/usr/local/bin:/usr/bin:/bin"
/* What a container has where its image says nothing, with Docker and Podman alike. */
#define KR_PATH_OF_IMAGES "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

enum { KR_SEALED_BYTES = 1 << 20, KR_SEALED_INODES = 4096 };

#define kr_build_note(b, ...) \
	kr_strs_add((b)->arena, &(b)->plan->notes, kr_arena_printf((b)->arena, __VA_ARGS__))

/* Why this path may not be shown because somebody asked for it; NULL when it may. For the text and for where
 * it leads. */
const char *kr_build_why_not(const struct kr_build *b, const char *path);
/* Shown anyway, or writable by the worker already. */
bool kr_build_is_shown(const struct kr_build *b, const char *path);
void kr_build_show(struct kr_build *b, struct kr_show show);
void kr_build_links(struct kr_build *b, const struct kr_strs *pairs, const char *because);

/* Finds what must read as empty, and what must not be there, in a directory about to be shown (scan.c). */
int kr_build_scan(struct kr_build *b, const char *directory, const char *what, struct kr_error *err);

/* kraft's own places (own.c). */
void kr_build_own(struct kr_build *b);
void kr_build_show_own(struct kr_build *b, const char *path, const char *source, bool writable, const char *because);
const char *kr_build_result_path(const struct kr_build *b); /* where the session's result file is seen */

/* Places in the order of their mounts, then the steps; there has to be room for those. */
void kr_build_merge(struct kr_build *b);
void kr_build_step(struct kr_build *b, struct kr_step step);
void kr_build_step_sealed(struct kr_build *b, const char *fresh);
void kr_build_step_shows(struct kr_build *b);
void kr_build_step_no_git(struct kr_build *b);
void kr_build_step_masks(struct kr_build *b);
void kr_build_step_seals(struct kr_build *b);

/* kind: docker (container.c): the command's own name inside; places, steps and command. */
const char *kr_build_container_command(const struct kr_build *b);
int kr_build_container(struct kr_build *b, struct kr_error *err);

/* kind: os on macOS (macos.c): what is shown whatever is asked for; kraft's own places; the steps, when all is gathered. */
bool kr_build_is_macos(const struct kr_build *b);
void kr_build_macos_system(struct kr_build *b);
void kr_build_macos_own(struct kr_build *b);
void kr_build_macos_steps(struct kr_build *b);
const char *kr_build_bin(const struct kr_build *b); /* the directory of kraft's own commands, as the worker sees it */

/* The environment, and the CA files that the host's variables name (env.c). */
void kr_build_ca_files(struct kr_build *b);
void kr_build_environment(struct kr_build *b);

#endif
