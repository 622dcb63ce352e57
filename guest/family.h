/*
 * The processes of a session on macOS, where no namespace ends with it: which of all that run are its own, and in what
 * order they are ended (MAC-10). Free of system calls; processes.h fills the table, ending.c sends the signals.
 *
 * Two proofs, and either is enough. Descent: the system gives each process a number that is never used again and keeps
 * that of its parent, also when the parent has ended. It is lost when parent and grandparent ended between two looks. The
 * sandbox: a process cannot leave it, and it forgets nobody; but the system may not say.
 * A process number alone proves nothing, nor does a group, a session or a terminal: all of them can be somebody else's.
 *
 * Order: who is proven by the sandbox gets its signal in the moment it is seen. All are stopped first, until a look finds none that was not told before. What is stopped makes no new process, so
 * those that run on cannot outrun us, and while a parent is there its descent is known. Then all are killed, until two looks
 * in a row find nobody: one look is not a moment, and who was made meanwhile and whose parent is gone is in the next. A look that
 * missed somebody has not found nobody; on a host where others come and go all the time this ends after so many looks.
 */
#ifndef KG_FAMILY_H
#define KG_FAMILY_H

#include <signal.h>

#include "guest/sys.h"

enum kg_inside { KG_INSIDE_UNKNOWN, KG_INSIDE_NO, KG_INSIDE_YES };

struct kg_process {
	pid_t pid;
	uid_t uid;
	uint64_t id, parent_id; /* never used again while the system runs; 0: unknown */
	enum kg_inside inside;  /* this session's sandbox */
	bool has_ended;         /* nobody has reaped it yet */
	char name[KG_LEFT_NAME];
	/* what became of it */
	bool is_ours;
	bool was_struck;  /* got its signal when it was seen, in this look */
	bool was_stopped; /* told to stop, now or before */
	int signal;       /* to be sent now; 0: none */
};

/* What is known about the session beside the table. */
struct kg_family {
	pid_t self;                /* the launcher, and who else is never touched: */
	uint64_t self_id, kraft_id;
	uid_t uid;
	uint64_t command_id;       /* 0: it never started, or is unknown */
	const struct kg_process *before; /* the last look, judged */
	size_t before_count;
};

/* By itself, without a look at others: it is in the session's sandbox. */
bool kg_family_is_proven(const struct kg_family *family, const struct kg_process *one);

/* Says for each of the table whether it is ours, and puts it into the order of ids; returns how many of these still run. */
size_t kg_family_judge(const struct kg_family *family, struct kg_process *table, size_t n);

struct kg_ending {
	int empty;    /* looks in a row that found nobody */
	int missing;  /* looks that found nobody and missed somebody, since one that found somebody */
	int stopping; /* looks while all are being stopped */
	bool kills;
};
enum {
	KG_STOP_LOOKS = 16, /* then they are killed as they are */
	KG_MISSED_LOOKS = 64, /* then one that missed somebody counts as well */
};

/* After each look: what each of ours gets. missed: who was gone before the look could ask. True: the session is over. */
bool kg_ending_step(struct kg_ending *ending, struct kg_process *table, size_t n, size_t ours, size_t missed);

#endif
