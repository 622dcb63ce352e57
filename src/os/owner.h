/*
 * Who is at something: a file whose lock is held by a process, with that process's name in it (pid, start time,
 * boot) and a note of its own. The lock is the truth; the words only tell whom to ask. A process that inherits the
 * descriptor holds it too.
 */
#ifndef KR_OS_OWNER_H
#define KR_OS_OWNER_H

#include <sys/types.h>

#include "base/arena.h"
#include "base/error.h"

/* A descriptor that holds it; makes the file (0600). -1: KR_E_BUSY, whose message the caller words, when another
 * process does. note: one line, "" for none. */
int kr_owner_take(const char *path, const char *note, struct kr_error *err);
/* In place of the note. */
int kr_owner_tell(int fd, const char *note, struct kr_error *err);
bool kr_owner_is_held(const char *path);

enum { KR_OWNER_NOTE = 256 };
struct kr_owner {
	pid_t pid;
	char note[KR_OWNER_NOTE];
};
/* False when nobody holds it, or who does is not known or not alive. */
bool kr_owner_find(const char *path, struct kr_owner *out);

#endif
