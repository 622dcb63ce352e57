/*
 * What is known of a session beside its log and its exit file: session.json in its folder, written once at
 * the start.
 *
 * The host process holds a lock on that file while it lives; so a reader knows whether a session without an
 * exit file still runs or was lost with its host, also when the pid was given to another process since.
 */
#ifndef KR_SESSION_FACTS_H
#define KR_SESSION_FACTS_H

#include "base/arena.h"
#include "base/error.h"

struct kr_session_facts {
	const char *id, *item, *repo, *worktree, *phase,
		*purpose;            /* purpose: "command", "setup", "checkout", "shell" */
	const char *harness;     /* of an agent; "": it is none (NULL may be written) */
	const char *container;   /* its name, under kind: docker; as harness */
	const char *const *argv; /* bytes that are no UTF-8 are kept escaped */
	uint64_t started_ms;     /* since the epoch */
	long host_pid;
	uint64_t host_start;   /* clock ticks since boot, from /proc */
	const char *host_boot; /* boot id */
};

enum kr_session_state {
	KR_SESSION_RUNNING,
	KR_SESSION_EXITED,
	KR_SESSION_FAILED, /* the command never started: config_error */
	KR_SESSION_LOST,   /* its host is gone and left no exit file */
};
struct kr_session_seen {
	struct kr_session_facts facts;
	enum kr_session_state state;
	int code, signal;  /* exited or failed */
	uint64_t ended_ms; /* 0 while running or lost */
};
const char *kr_session_state_name(enum kr_session_state state);

uint64_t kr_now_ms(void); /* since the epoch */

/* Fills the host_* fields in with this process and writes the file; returns the descriptor that holds the
 * lock: keep it until the session is over. */
int kr_session_facts_write(int folder_fd, struct kr_session_facts *facts, struct kr_error *err);
/* KR_E_NOT_FOUND when the folder has no session.json. */
int kr_session_facts_read(
	struct kr_arena *arena, int folder_fd, struct kr_session_seen *out, struct kr_error *err);

struct kr_session_list {
	struct kr_session_seen *v; /* the newest first */
	size_t n;
};
enum { KR_SESSION_LIST_MAX = 4096 }; /* the newest ones are kept */
/* Every session below <run_dir>/sessions; item NULL: of every item. Folders that hold none are passed over.
 */
int kr_session_list(struct kr_arena *arena, const char *run_dir, const char *item,
	struct kr_session_list *out, struct kr_error *err);
/*
 * Tidies up after sessions that are over: channel directories that are left go, folders that never got their
 * facts go after a minute, and when there are more than KR_SESSION_KEPT_MOST folders the oldest go, each with its result file, until
 * KR_SESSION_KEPT_LEAST are left.
 * On macOS, where guest_dir is not NULL, what such a session left running is ended and its TMPDIR goes.
 * Nothing of a session whose host lives is touched, nor of one that is just being made. Best effort: what
 * cannot be removed stays for the next time.
 */
enum { KR_SESSION_KEPT_MOST = 600, KR_SESSION_KEPT_LEAST = 300 };
void kr_session_sweep(const char *run_dir, const char *guest_dir);

/* True when nobody is at work in the session any more, or there is nothing of it but the directory that its container's client
 * stood in. A session that nothing is known of here is none of ours: false. */
bool kr_session_is_over(const char *run_dir, const char *id);
/* Whether such a directory is left of a session that is over. */
bool kr_session_left_client(const char *run_dir);

/* A session's folder; id must be 16 hex digits. KR_E_NOT_FOUND. */
int kr_session_folder_open(const char *run_dir, const char *id, struct kr_error *err);

#endif
