/*
 * What a checkout seems to be, from the files at its top: the setup and test commands to propose, and the
 * hosts that the setup needs. Proposals only: a person reads them in repos.yaml, and changes them there.
 */
#ifndef KR_CONFIG_DETECT_H
#define KR_CONFIG_DETECT_H

#include "base/arena.h"
#include "os/fs.h"

struct kr_detected {
	const char *setup_command; /* NULL: nothing is known of the checkout; "": there is nothing to set up */
	const char *test_command;  /* NULL: none was found */
	struct kr_strs install_hosts;
	struct kr_strs found;       /* "package.json and package-lock.json (npm)", for the person */
	struct kr_strs other_tests; /* further test commands, not chosen */
};

enum { KR_DETECT_FILE_BYTES = 256 << 10 }; /* no more of any file is read */

/* Reads the file system through fs only; `root` is clean. Everything in *out lives in the arena. */
void kr_detect(struct kr_arena *arena, const struct kr_fs *fs, const char *root, struct kr_detected *out);

#endif
