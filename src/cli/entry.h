/* Inside the room cli/ only: which entry of repos.yaml a person means. */
#ifndef KR_CLI_ENTRY_H
#define KR_CLI_ENTRY_H

#include "config/config.h"

/* Every link resolved; the cleaned absolute path where nothing is there. NULL when it is too long. */
const char *kr_entry_resolve(struct kr_arena *arena, const char *path);
/* That of a checkout's top, by either of its spellings; NULL: none. */
const struct kr_repo *kr_entry_of(struct kr_arena *arena, const struct kr_repos *repos, const char *path);
/*
 * By a word: a name, an id, an entry's path (which may be gone), or a place in a connected checkout; NULL: where we stand.
 * KR_E_NOT_FOUND when it is not connected, KR_E_USAGE for a name of two. err is not NULL.
 */
const struct kr_repo *kr_entry_find(struct kr_arena *arena, const struct kr_repos *repos, const char *word, struct kr_error *err);

#endif
