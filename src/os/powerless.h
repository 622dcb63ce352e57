/*
 * Parsing what a worker wrote in a process that holds no power: a child that has the bytes in its memory, can
 * ask for more memory and end, and nothing else (no descriptor, no file, no socket, no program; 2 s of
 * processor time, 256 MiB). The parser fills in one plain struct; whatever it does, that struct is all that
 * comes back, so it is to be checked like any other word of the worker's.
 */
#ifndef KR_OS_POWERLESS_H
#define KR_OS_POWERLESS_H

#include "base/error.h"

/* Runs in the child; `out` is zeroed, of the caller's size, and must not need anything outside of itself. */
typedef void kr_parse_fn(const void *bytes, size_t n, void *out);

/* KR_E_REFUSED when the parser crashed, hung or asked for what it must not; out is then zeroed. KR_E_SYSTEM
 * when no such process can be had. */
int kr_powerless_parse(
	kr_parse_fn *parse, const void *bytes, size_t n, void *out, size_t out_size, struct kr_error *err);

#endif
