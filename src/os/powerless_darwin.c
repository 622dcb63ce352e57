/*
 * By a sandbox of the system's, which gives a process its memory and what it holds. It knows no list of system calls: what
 * needs no right of anybody's stays callable (time, its own limits, memory that is executed), and no limit holds for memory here.
 * What is open stays usable, so a child that parses has no descriptor at all when it comes here.
 */
#include "os/power.h"

#include "os/apple.h"

/* The same for both: there is no right that a child which reads and writes what it holds would need. */
bool
kr_power_drop(enum kr_power left)
{
	char *error = NULL; /* not freed: this process ends or goes on to parse */

	(void)left;
	return ptrace(KR_PT_DENY_ATTACH, 0, NULL, 0) == 0 && sandbox_init("pure-computation", KR_SANDBOX_NAMED, &error) == 0;
}
