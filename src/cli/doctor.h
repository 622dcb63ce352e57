/*
 * Inside the room cli/ only: the rows of `kraft admin doctor`. A row is one question about this host or
 * configuration, its verdict, and, when it is not well, the fix. Each check asks the function that decides at
 * a launch; none re-derives a rule.
 */
#ifndef KR_CLI_DOCTOR_H
#define KR_CLI_DOCTOR_H

#include "backend/container.h"
#include "os/sys.h"
#include "plan/plan.h"

/* verdict, name in --json, how it is printed */
#define KR_VERDICTS(X)                                                                                   \
	X(OK, "ok", "ok  ")                                                                                  \
	X(SKIP, "skip", "skip") /* cannot be asked, because of an earlier row; or it does not matter here */ \
	X(WARN, "warn", "warn") /* works, but somebody should know */                                        \
	X(FAIL, "fail", "FAIL") /* a launch is or may be refused; exit status 1 */

enum kr_verdict {
#define X(verdict, name, shown) KR_VERDICT_##verdict,
	KR_VERDICTS(X)
#undef X
		KR_VERDICT_COUNT
};

/* What --fix does about a row: one of these. Neither weakens the host. */
struct kr_mend {
	const char *path;   /* of ours: a file or directory that keeps of its mode only what is in `mode` */
	unsigned mode;
	const char *name, *value; /* not NULL: a line NAME=value is added to it, and it is made where it is missing; the value is not shown */
	const char *script; /* for sh, by sudo */
};

struct kr_doctor_row {
	const char *check; /* "bubblewrap", "run directory" */
	const char *repo;  /* whose; NULL: this host's */
	const char *name;  /* for a person: both */
	const char *id;    /* for programs, stable: "run-directory", "expose:myrepo" */
	enum kr_verdict verdict;
	const char *detail;
	const char *fix; /* "" for none; may have several lines */
	struct kr_mend mend; /* all zero: none that kraft itself can do */
};

/* kind: docker; found once. */
struct kr_doctor_runtime {
	bool has_file, has_runtime;
	struct kr_sandbox_file file;
	struct kr_runtime runtime;
	struct kr_error why; /* without a runtime */
};

struct kr_doctor {
	struct kr_arena *arena;
	struct kr_doctor_runtime *runtime; /* NULL: nobody has asked */
	struct kr_host host; /* guest_dir NULL when it was not found */
	const struct kr_repos *repos; /* NULL: they do not load, as `repos_why` says */
	struct kr_error repos_why;
	const struct kr_repo *only;   /* what is asked about; NULL: every repository */
	const char *repo;             /* whose rows are added now; NULL: the host's */
	struct kr_doctor_row *rows;
	size_t row_count, row_cap;
};

void kr_doctor_add(struct kr_doctor *doctor, const char *check, enum kr_verdict verdict, const char *fix,
	const char *fmt, ...) KR_PRINTF(5, 6);
/* A row that fails with this error and its hint. */
void kr_doctor_add_error(struct kr_doctor *doctor, const char *check, const struct kr_error *err);

/* To the row that was added last. */
void kr_doctor_mend(struct kr_doctor *doctor, struct kr_mend mend);
/* When the path is ours and has more rights than `mode`: that --fix can take them away. */
void kr_doctor_mend_mode(struct kr_doctor *doctor, const char *path, unsigned mode);

/* doctor_fix.c. Whether there is anything to do. */
bool kr_doctor_can_mend(const struct kr_doctor *doctor);
/* Shows each and asks on the terminal, unless `yes`. Returns how many were done; -1. */
int kr_doctor_fix(const struct kr_doctor *doctor, bool yes, struct kr_error *err);
/* One, without a question. sudo: the program; NULL: there is none. */
int kr_mend_apply(const struct kr_mend *mend, const char *sudo, struct kr_error *err);

/* With doctor->host and repos: who runs kraft, its places and programs (doctor_host.c); the walls of kind: os (doctor_walls.c); what
 * runs or ran, and the agents (doctor_running.c). */
void kr_doctor_host(struct kr_doctor *doctor);
void kr_doctor_walls(struct kr_doctor *doctor);
void kr_doctor_running(struct kr_doctor *doctor);
void kr_doctor_repos(struct kr_doctor *doctor);
/* Whether any repository's workers run in bubblewrap; true where nobody can say. */
bool kr_doctor_needs_bubblewrap(struct kr_doctor *doctor);

/* doctor_containers.c: the rows of a repository of kind: docker or kit, and once those of this host. */
void kr_doctor_container(struct kr_doctor *doctor, const struct kr_repo *repo);

/* doctor_probe.c: the promises, tried from inside of a session of each of these kinds, in a home and a repository of its own. Prints a
 * table; 1 when a row is not right. host: with its guest_dir. */
struct kr_probe_kind {
	const char *name;  /* "os", "docker" */
	const char *image; /* of a container; NULL: kind os */
};
int kr_doctor_probe(struct kr_arena *arena, const struct kr_host *host, const struct kr_probe_kind *kinds, size_t n, bool json, struct kr_error *err);

/* doctor_macos.c: what kind: os needs on macOS (MAC-11). */
void kr_doctor_macos(struct kr_doctor *doctor);
struct kr_macos_trial {
	bool is_raised;   /* a sandbox that allows everything */
	const char *said; /* why not, in sandbox-exec's own words; "" */
};
/* Pure: the rows of these facts, and of the trial where sandbox-exec is there. */
void kr_doctor_macos_judge(struct kr_doctor *doctor, const struct kr_macos_facts *facts, const struct kr_macos_trial *trial);

/* The type of the file system that holds `path`, from bytes in the form of /proc/self/mountinfo; NULL when it
 * has no such line. Pure. */
const char *kr_mount_type(struct kr_arena *arena, const char *mountinfo, const char *path);
/* What a type means for the run directory, where locks and logs live. */
enum kr_verdict kr_mount_verdict(const char *type);

#endif
