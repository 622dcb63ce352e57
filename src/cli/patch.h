/*
 * What git prints, for a person: line by line, with everything that could steer a terminal made visible
 * (GIT-15), and in colours of ours. A line's part is told by counting a hunk's lines, not by its looks: a
 * deleted line "-- a/x" is no header.
 */
#ifndef KR_CLI_PATCH_H
#define KR_CLI_PATCH_H

#include <stdio.h>

#include "base/base.h"

enum { KR_PATCH_LINE = 8192 };

enum kr_patch_part { KR_PATCH_HEADER, KR_PATCH_HUNK, KR_PATCH_OLD, KR_PATCH_NEW, KR_PATCH_SAME };

/* All zero but `out` and `colour` at its beginning. */
struct kr_patch {
	FILE *out;
	bool colour;
	size_t binary;               /* files that git says to be binary */
	uint64_t old_left, new_left; /* of the present hunk */
	enum kr_patch_part part;
	bool is_open; /* the present line has begun on `out` */
	size_t n;
	char line[KR_PATCH_LINE];
};

/* Of type kr_git_run.sink; context: a kr_patch. -1 when `out` cannot be written. */
int kr_patch_add(void *context, const char *bytes, size_t n);
/* The rest of a last line without an end. */
void kr_patch_end(struct kr_patch *patch);

#endif
