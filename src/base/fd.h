/* Descriptors: -1 is none; close-on-exec from birth; files are read and written whole, bounded, by atomic rename. */
#ifndef KR_BASE_FD_H
#define KR_BASE_FD_H

#include "base/buf.h"
#include "base/error.h"

void kr_close_p(int *fd);
#define kr_auto_fd KR_CLEANUP(kr_close_p)
#define kr_steal_fd(fd)                                                                            \
	__extension__({                                                                                \
		int kr_stolen_fd_ = (fd);                                                                  \
		(fd) = -1;                                                                                 \
		kr_stolen_fd_;                                                                             \
	})

/* A pipe whose ends are not 0, 1 or 2, even when one of those was closed when kraft started; -1 with both as they are. */
int kr_pipe(int *read_end, int *write_end, struct kr_error *err);

/*
 * A lock of the whole file, F_RDLCK or F_WRLCK, of the open file description: who inherits the descriptor holds it too, and
 * it goes from one kind to the other without a moment in between. False when another one stands in the way. Never waits.
 */
bool kr_try_lock(int fd, short type);

/* All bytes or an error; EINTR is retried. */
int kr_write_all(int fd, const void *bytes, size_t n, struct kr_error *err);
/* Reads to the end into buf (up to buf->max; more is KR_E_LIMIT naming `name`). */
int kr_read_all(int fd, struct kr_buf *buf, const char *name, struct kr_error *err);

/* Opens a regular file (not a FIFO or device; never blocks) and reads it whole. dir_fd as for openat. */
int kr_file_read_at(int dir_fd, const char *path, struct kr_buf *buf, struct kr_error *err);
/* Writes to a temporary name beside `name`, fsyncs, renames over it. mode as for open. */
int kr_file_write_at(int dir_fd, const char *name, const void *bytes, size_t n, unsigned mode,
	struct kr_error *err);

/*
 * Removes `name` below dir_fd with everything in it, by held descriptors: no link is followed, also not one that takes a
 * directory's place meanwhile, and no other file system is entered; directories of ours that are closed to us are opened
 * up, and what its owner locked is unlocked (kr_unlock_at). 0 when it is gone or was never there; else -1 with
 * errno, and what could be removed is.
 */
int kr_tree_remove_at(int dir_fd, const char *name);

#endif
