/*
 * Parsing what a worker wrote in a process that holds no power: a child that has the bytes in its memory, can
 * ask for more memory and end, and nothing else (no descriptor, no file, no socket, no program; 2 s of
 * processor time, 256 MiB on Linux: macOS holds nobody to a limit of memory). The parser fills in one plain
 * struct; whatever it does, that struct is all that comes back, so it is to be checked like any other word of the worker's.
 *
 * Or, for what comes piece by piece: a child that reads from one descriptor and writes to another besides.
 */
#ifndef KR_OS_POWERLESS_H
#define KR_OS_POWERLESS_H

#include <sys/types.h>

#include "base/error.h"

/* Runs in the child; `out` is zeroed, of the caller's size, and must not need anything outside of itself. */
typedef void kr_parse_fn(const void *bytes, size_t n, void *out);

/* KR_E_REFUSED when the parser crashed, hung or asked for what it must not; out is then zeroed. KR_E_SYSTEM
 * when no such process can be had. */
int kr_powerless_parse(
	kr_parse_fn *parse, const void *bytes, size_t n, void *out, size_t out_size, struct kr_error *err);

/*
 * Runs in the child, with the two as its descriptors 0 and 1: it reads from 0, writes to 1, and has no other.
 * Signals that a person's keys send do not reach it: it ends when its input does. 64 MiB, and 600 s of
 * processor time.
 */
typedef void kr_pass_fn(void *context);
/* Reap *pid. Its status is 0 when it ended of itself. */
int kr_powerless_pass(
	kr_pass_fn *pass, void *context, int in_fd, int out_fd, pid_t *pid, struct kr_error *err);

#endif
