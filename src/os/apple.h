/* Calls of libSystem whose headers (sandbox.h, sys/ptrace.h) are not in every SDK. */
#ifndef KR_OS_APPLE_H
#define KR_OS_APPLE_H

#include <stdint.h>
#include <sys/types.h>

/* profile: a profile's text, or with the flag the name of one of the system's own. For good, also for what is started. */
extern int sandbox_init(const char *profile, uint64_t flags, char **error);
enum { KR_SANDBOX_NAMED = 1 };
/* Asked for no operation: 1, the process is in a sandbox; 0, it is not. */
extern int sandbox_check(pid_t pid, const char *operation, int type, ...);

extern int ptrace(int request, pid_t pid, caddr_t address, int data);
enum { KR_PT_DENY_ATTACH = 31 };

#endif
