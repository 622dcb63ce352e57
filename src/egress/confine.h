/*
 * What takes power away from kraft-egress, before it reads a byte of anybody's. Nothing here can be undone,
 * and nothing goes on after a step that failed: the caller exits with what kr_confine returned.
 *
 * Left over is a process that can read, write, accept on and close what it holds or is handed, and ask for
 * memory. It can make no socket and connect none, open no file, start nothing, signal nobody, and run no byte
 * it was sent.
 */
#ifndef KR_EGRESS_CONFINE_H
#define KR_EGRESS_CONFINE_H

#include "base/base.h"

/* Exit statuses of kraft-egress: KR_EXIT_CONFINE + the step that failed. */
#define KR_CONFINE_STEPS(X)                    \
	X(DESCRIPTORS, "close what was inherited") \
	X(PRIVILEGES, "give up new privileges")    \
	X(DUMPABLE, "be closed to debuggers")      \
	X(PARENT, "end with kraft")                \
	X(LIMITS, "set its limits")                \
	X(LANDLOCK, "raise Landlock")              \
	X(FILTER, "load the system-call filter")
enum kr_confine_step {
	KR_CONFINE_DONE,
#define X(step, words) KR_CONFINE_##step,
	KR_CONFINE_STEPS(X)
#undef X
};
enum { KR_EXIT_CONFINE = 80 };

/* Closes every descriptor from `first` on. */
enum kr_confine_step kr_confine_descriptors(unsigned first);

/* All the rest; KR_CONFINE_DONE, or the step that failed, with errno. A kernel without Landlock is no
 * failure: the filter alone has no call left that Landlock would judge. */
enum kr_confine_step kr_confine(void);

/* The same for kraft-egress-tls, whose filter has besides what OpenSSL calls: getrandom, getpid, and to wake a futex. */
enum kr_confine_step kr_confine_with_tls(void);
/* Of these the two that keep memory from others, for a process that holds secrets before it can give up the rest. */
enum kr_confine_step kr_confine_memory(void);

/* One of the steps: every right that this kernel's Landlock knows is handled, and none given. False: it
 * failed; *raised says whether the kernel has it. Needs no_new_privs. */
bool kr_confine_landlock(bool *raised);

/* What the connections of one process may use up together: RLIMIT_NOFILE as kr_confine could set it. */
unsigned kr_confine_files(void);

#endif
