/*
 * An arena: everything that a configuration, a plan or a request needs lives in one and dies with it.
 * Ownership: pointers from it live until kr_arena_fini; nothing in it is freed alone. Allocation aborts when memory
 * is out, so sizes from outside meet a named limit first. All zero is a valid empty arena.
 */
#ifndef KR_BASE_ARENA_H
#define KR_BASE_ARENA_H

#include "base/base.h"

struct kr_arena {
	struct kr_arena_block *head;
};

void kr_arena_fini(struct kr_arena *arena);
void *kr_arena_alloc(struct kr_arena *arena, size_t size); /* zeroed, aligned for any type */
char *kr_arena_dup(struct kr_arena *arena, const char *s);
char *kr_arena_dup_n(struct kr_arena *arena, const char *s, size_t n);
char *kr_arena_printf(struct kr_arena *arena, const char *fmt, ...) KR_PRINTF(2, 3);

#define kr_arena_new(arena, type) ((type *)kr_arena_alloc((arena), sizeof(type)))

/* A growing list of strings in an arena (the strings are borrowed, not copied). v[n] is always NULL once n > 0. */
struct kr_strs {
	const char **v;
	size_t n, cap;
};
void kr_strs_add(struct kr_arena *arena, struct kr_strs *list, const char *s);
bool kr_strs_has(const struct kr_strs *list, const char *s);

#endif
