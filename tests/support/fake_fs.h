/*
 * A file system written down: for unit tests as a table, for golden tests as the `files` of host.json.
 * Each entry is a clean path and a word: "dir", "file", "exec", "socket", "fifo", "device", "denied" (cannot
 * be reached, nor what is below), "-> TEXT" (a link), "#!..." (an executable script that starts so; "\n" ends
 * the line). Directories above an entry exist by themselves.
 */
#ifndef KR_TESTS_FAKE_FS_H
#define KR_TESTS_FAKE_FS_H

#include "os/fs.h"

struct fake_entry {
	const char *path, *what;
};

struct fake_fs {
	const struct fake_entry *entries; /* ends with a NULL path */
	unsigned looks, lists;            /* calls so far */
};

/* A view of `fake`, which must outlive it. */
struct kr_fs fake_fs_view(struct fake_fs *fake);

#endif
