#include "base/arena.h"

#include <stdarg.h>

struct kr_arena_block {
	struct kr_arena_block *next;
	size_t used, size;
	_Alignas(max_align_t) unsigned char bytes[];
};

enum { BLOCK_BYTES = 16384 };

void
kr_arena_fini(struct kr_arena *arena)
{
	struct kr_arena_block *next;

	for (struct kr_arena_block *b = arena->head; b; b = next) {
		next = b->next;
		free(b);
	}
	arena->head = NULL;
}

void *
kr_arena_alloc(struct kr_arena *arena, size_t size)
{
	const size_t align = _Alignof(max_align_t);
	struct kr_arena_block *b = arena->head;
	void *p;

	KR_BUG_IF(size > SIZE_MAX / 2);
	size = (size + align - 1) / align * align;
	if (!b || b->size - b->used < size) {
		size_t bytes = size > BLOCK_BYTES ? size : BLOCK_BYTES;

		b = kr_xcalloc(1, sizeof(*b) + bytes);
		b->size = bytes;
		b->next = arena->head;
		arena->head = b;
	}
	p = b->bytes + b->used;
	b->used += size;
	return p;
}

char *
kr_arena_dup_n(struct kr_arena *arena, const char *s, size_t n)
{
	char *copy = kr_arena_alloc(arena, n + 1);

	memcpy(copy, s, n);
	return copy;
}

char *
kr_arena_dup(struct kr_arena *arena, const char *s)
{
	return kr_arena_dup_n(arena, s, strlen(s));
}

char *
kr_arena_printf(struct kr_arena *arena, const char *fmt, ...)
{
	va_list ap;
	int n;
	char *s;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	KR_BUG_IF(n < 0);
	s = kr_arena_alloc(arena, (size_t)n + 1);
	va_start(ap, fmt);
	vsnprintf(s, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return s;
}

void
kr_strs_add(struct kr_arena *arena, struct kr_strs *list, const char *s)
{
	if (list->n + 1 >= list->cap) {
		size_t cap = list->cap ? list->cap * 2 : 8;
		const char **v = kr_arena_alloc(arena, cap * sizeof(*v));

		if (list->n)
			memcpy(v, list->v, list->n * sizeof(*v));
		list->v = v;
		list->cap = cap;
	}
	list->v[list->n++] = s;
	list->v[list->n] = NULL;
}

bool
kr_strs_has(const struct kr_strs *list, const char *s)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->v[i], s) == 0)
			return true;
	return false;
}
