/*
 * Paths as text (pure), and opening one without following anything that could have been changed.
 * A "clean" path is absolute, with no '.', '..', empty component or trailing slash ("/" alone is clean).
 */
#ifndef KR_BASE_PATH_H
#define KR_BASE_PATH_H

#include "base/arena.h"
#include "base/error.h"

enum { KR_PATH_MAX = 4096 };

bool kr_path_is_clean(const char *path);
/* Lexical: removes '.', doubled and trailing slashes; '..' takes the component before it away (for text from a
 * configuration, where links are resolved afterwards). NULL when the path is not absolute or too long. */
const char *kr_path_clean(struct kr_arena *arena, const char *path);
/* "a/b" joined to a clean directory and cleaned; an absolute `name` is returned cleaned. */
const char *kr_path_join(struct kr_arena *arena, const char *directory, const char *name);
const char *kr_path_dirname(struct kr_arena *arena, const char *clean);
const char *kr_path_basename(const char *clean); /* borrows; "/" gives "" */
/* Both clean. True when path is `directory` or below it. */
bool kr_path_is_within(const char *path, const char *directory);
/*
 * The same for a file system on which names that differ in case alone are one name, as a Mac's: letters of ASCII, and the two
 * characters that become such a letter. Other letters are compared as they are; what is opened is compared by its inode.
 */
bool kr_path_is_within_folded(const char *path, const char *directory);

/*
 * Opens a clean path from '/' without following any symbolic link (openat2 RESOLVE_NO_SYMLINKS where the kernel has
 * it, else component by component). flags as for open, O_CLOEXEC is added; use KR_O_LOOK (base/portable.h) for a mount source.
 * Returns the descriptor or -1; a link on the way is KR_E_REFUSED, anything else KR_E_SYSTEM with sys_errno.
 */
int kr_path_open(const char *clean, int flags, struct kr_error *err);

/* The same for a relative path without '..', below a directory. A plain system call: -1 with errno, ELOOP for a link. */
int kr_path_open_below(int dir_fd, const char *relative, int flags);

/* mkdir -p, 0700, refusing links on the way. Returns a descriptor of the directory that is good for the *at calls. */
int kr_path_make_dirs(const char *clean, struct kr_error *err);

#endif
