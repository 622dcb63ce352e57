/*
 * A view of a file system for questions only: the live one, or one written down in a golden test's host.json.
 * Planning reads the host through this table and nothing else, so a plan is a pure function of it.
 */
#ifndef KR_OS_FS_H
#define KR_OS_FS_H

#include "base/arena.h"
#include "base/error.h"

enum kr_fs_type { KR_FS_NONE, KR_FS_FILE, KR_FS_DIR, KR_FS_LINK, KR_FS_SOCKET, KR_FS_FIFO, KR_FS_OTHER };

struct kr_fs_entry {
	enum kr_fs_type type; /* KR_FS_NONE: does not exist (or cannot be reached; then sys_errno is set) */
	bool executable;      /* by us: a regular file with a fitting x bit */
	int sys_errno;
};

struct kr_fs {
	void *context;
	/* Never follows a final link. path is clean. */
	struct kr_fs_entry (*look)(void *context, const char *path);
	/* The text of a link, in the arena; NULL when it is none. */
	const char *(*read_link)(void *context, struct kr_arena *arena, const char *path);
	/* The first up to n bytes of a regular file; returns how many, or -1. */
	long (*read_head)(void *context, const char *path, char *out, size_t n);
	/* Calls visit for each entry but '.' and '..'; stops early when visit returns false. -1 when unreadable. */
	int (*list)(void *context, const char *path,
		bool (*visit)(void *visit_context, const char *name, enum kr_fs_type type), void *visit_context);
};

/* The live host. */
extern const struct kr_fs kr_fs_live;

/*
 * Resolves every link of a clean path (at most 40), component by component. Returns the resolved path when every
 * component exists, else NULL with *entry telling why. `links`, when not NULL, receives each link met on the way,
 * in order, as pairs: its own path (clean, with its directory resolved), then its text.
 */
const char *kr_fs_resolve(const struct kr_fs *fs, struct kr_arena *arena, const char *path,
	struct kr_fs_entry *entry, struct kr_strs *links);

#endif
