/*
 * Named points in the life of an item and its sessions at which a test may end, stop or hold the process that
 * comes there, or fill the disk under it. They exist in a build with -Dfault_points=true only: in every other
 * KR_FAULT is nothing, and the program holds neither their names nor the variable's.
 *
 *     KRAFT_FAULT=POINT:ACTION:FILE   ACTION: kill (SIGKILL), stop (SIGSTOP), wait (until FILE.go is there,
 *                                     at most a minute), full (FILE.fill takes all room of its file system)
 *     KRAFT_FAULT_CLOCK=FILE          holds milliseconds to add to the time of day
 *     KRAFT_PRETEND_MACOS=PROGRAM     kind: os goes macOS's way, with this program in the place of sandbox-exec
 *     KRAFT_PRETEND_MACOS_IS=WORD     and this Mac is not as it should be: translated, sandboxed, bare (no tools), ppc
 *
 * The first process that comes to the point makes FILE, writes its name and its process number there, and does
 * what is asked; once FILE exists nobody does.
 */
#ifndef KR_BASE_FAULT_H
#define KR_BASE_FAULT_H

#include "base/base.h"

/* In the order in which an item comes by them. A new one: a line here, KR_FAULT(NAME) where it happens, and who
 * reaches it in tests/live/test_kill.py, which fails for one that nothing reaches. */
#define KR_FAULT_POINTS(X)                                             \
	X(item_filed)           /* row and event are written */            \
	X(host_locked)          /* work/host.c has the item's lock */      \
	X(in_transaction)       /* all is written, COMMIT is not said */   \
	X(sessions_settled)     /* another host's sessions are unknown */  \
	X(item_active)          /* the row says that it runs */            \
	X(node_told)            /* node_started is recorded */             \
	X(session_row)          /* the session is recorded */              \
	X(task_forked)          /* its process is there; the host's view */ \
	X(task_begun)           /* the same, its own view */               \
	X(item_making)          /* its record says: being made */          \
	X(worktree_added)       /* git made it */                          \
	X(item_ready)           /* its record says: ready */               \
	X(private_built)        /* the private git directory, as .new */   \
	X(private_aside)        /* the old one is .old */                  \
	X(private_made)         /* it is in place, with its record */      \
	X(base_kept)            /* refs/kraft/base */                      \
	X(folder_made)          /* the session's, without facts */         \
	X(facts_written)        /* and with them */                        \
	X(channel_bound)        /* the socket is there */                  \
	X(sources_opened)       /* all of the plan */                      \
	X(launcher_spawned)     /* bubblewrap comes next */                \
	X(egress_started)       /* kraft-egress runs */                    \
	X(started_seen)         /* the command runs */                     \
	X(exit_seen)            /* the launcher is gone */                 \
	X(leftovers_committed)  /* git inside committed them */            \
	X(pack_out)             /* the commits are a file of ours */       \
	X(quarantine_made)      /* an empty directory of objects */        \
	X(pack_indexed)         /* judged, in quarantine */                \
	X(pack_taken)           /* in the repository */                    \
	X(index_made)           /* beside the worktree's own */            \
	X(ref_moved)            /* the branch is at the commits */         \
	X(head_placed)          /* the worktree's HEAD */                  \
	X(index_placed)         /* and its index */                        \
	X(record_written)       /* nothing is left to take out */          \
	X(task_reported)        /* its process has said how it was */      \
	X(outcome_known)        /* the host has read it */                 \
	X(mark_written)         /* mark, session, row, event */            \
	X(gate_asked)           /* the row says who is needed */           \
	X(lock_given)           /* somebody else may host it */            \
	X(notifier_forked)      /* who tells is on its way */              \
	X(approved)             /* a person's word is recorded */          \
	X(completed)            /* the row says that it is done */         \
	X(private_removed)      /* the archive, on its way */              \
	X(tree_removed)         /* files of the worktree */                \
	X(tree_forgotten)       /* git's side of it, and the base */       \
	X(item_removed)         /* homes, results, records, locks */       \
	X(archived)             /* the event */                            \
	X(sessions_removed)     /* their folders */

#ifdef KR_FAULT_POINTS_ON

enum kr_fault_point {
#define X(name) KR_FAULT_AT_##name,
	KR_FAULT_POINTS(X)
#undef X
};
void kr_fault_reach(enum kr_fault_point point);
int64_t kr_fault_clock_ms(void);
const char *kr_fault_macos(void); /* NULL: it is not asked for */
bool kr_fault_macos_is(const char *word);
#define KR_FAULT(name) kr_fault_reach(KR_FAULT_AT_##name)
#define KR_FAULT_CLOCK_MS() kr_fault_clock_ms()
#define KR_FAULT_MACOS() kr_fault_macos()
#define KR_FAULT_MACOS_IS(word) kr_fault_macos_is(word)

#else

#define KR_FAULT(name) ((void)0)
#define KR_FAULT_CLOCK_MS() ((int64_t)0)
#define KR_FAULT_MACOS() ((const char *)0)
#define KR_FAULT_MACOS_IS(word) false

#endif

#endif
