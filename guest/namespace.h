/* Capped /tmp and /dev/shm: see namespace.c. */
#ifndef KG_NAMESPACE_H
#define KG_NAMESPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One file system to be made. path NULL: none. */
struct kg_capped {
	const char *path, *dest;
	uint64_t bytes, inodes;
};

/*
 * In the process that is about to become bubblewrap: a user and a mount namespace of its own, and the file
 * systems in it. 0 or errno; after a failure the process is good for nothing but _exit.
 */
int kg_namespace_enter(const struct kg_capped *capped, size_t n);

/*
 * The arguments in `args_fd` with each capped file system written as bubblewrap's own, as a new memory file;
 * -errno on failure (EINVAL: the arguments do not name one of them).
 */
int kg_namespace_without(int args_fd, const struct kg_capped *capped, size_t n);

#endif
