/*
 * What Linux and macOS do differently, one function each; linux.c and darwin.c are chosen by the build.
 */
#ifndef KR_OS_SYS_H
#define KR_OS_SYS_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

/* The running program's own file, resolved; NULL when the system does not say. */
const char *kr_self_path(struct kr_arena *arena);

/* A nameless file holding these bytes, at offset 0, close-on-exec; `name` shows up in diagnostics only. */
int kr_memory_file(const char *name, const void *bytes, size_t n, struct kr_error *err);

/*
 * Runs a program to its end with exactly this environment, stdin from /dev/null, and collects stdout and stderr together
 * (bounded by out->max). Never through a shell; every other descriptor is close-on-exec. *status as waitpid gives it.
 */
int kr_capture(const char *path, const char *const argv[], const char *const envp[], struct kr_buf *out,
	int *status, struct kr_error *err);

#endif
