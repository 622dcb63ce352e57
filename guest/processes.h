/* The system's table of processes, for family.h: processes_darwin.c, and processes_linux.c for tests that pretend. */
#ifndef KG_PROCESSES_H
#define KG_PROCESSES_H

#include "guest/family.h"

/*
 * By what a process of this session's sandbox is known. macOS: its profile lets it write to `own` and not to `other`. Each
 * alone would be true of other sandboxes too: one that denies all, one that denies next to nothing.
 */
struct kg_mark {
	const char *own, *other;
	uint64_t space; /* where a test's stand-in gave the session a user namespace: that; else 0 */
};

/* The first process of the session is there: takes what can be known of it only now. */
void kg_processes_mark(struct kg_mark *mark, pid_t command);

struct kg_look {
	const struct kg_family *family;
	int signal;    /* sent to each that the sandbox proves (kg_family_is_proven) when it is seen; 0: none. What forks and ends is gone
	                * when a look is over */
	size_t missed; /* out: how many were gone before all could be asked about them, whose child may have come too late for this look */
};
/* For those who look: right after one was described. */
static inline void
kg_strike(const struct kg_look *look, struct kg_process *one)
{
	if (look->signal && kg_family_is_proven(look->family, one))
		one->was_struck = kill(one->pid, look->signal) == 0;
}

/* All that run, as far as the system lets us see. The count, or -errno; -ENOSPC: there are more. */
long kg_processes_look(const struct kg_mark *mark, struct kg_look *look, struct kg_process *out, size_t room);

/* 0: there is no such process. */
uint64_t kg_process_id(pid_t pid);

#endif
