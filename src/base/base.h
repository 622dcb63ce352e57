/* What every host source may assume: cleanup attributes, ownership words, counted arrays, broken invariants. */
#ifndef KR_BASE_BASE_H
#define KR_BASE_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/banned.h"

#define KR_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))
#define KR_CLEANUP(fn) __attribute__((cleanup(fn)))
#define KR_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Built with AddressSanitizer, whose run time needs more memory and calls: for tests only. */
#if defined(__SANITIZE_ADDRESS__)
#define KR_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KR_SANITIZED 1
#endif
#endif
#ifndef KR_SANITIZED
#define KR_SANITIZED 0
#endif

/* A broken invariant of ours, never a user's or worker's fault: says where and aborts. */
#define KR_BUG_IF(cond)                                                                            \
	do {                                                                                           \
		if (cond)                                                                                  \
			kr_bug(__FILE__, __LINE__, #cond);                                                     \
	} while (0)
__attribute__((noreturn)) void kr_bug(const char *file, int line, const char *what);

/* Heap allocation that aborts when memory is out: for small sizes that we chose, never for a size from outside. */
void *kr_xcalloc(size_t count, size_t size);
void *kr_xrealloc(void *old, size_t size);
char *kr_xstrdup(const char *s);

void kr_free_p(void *pointer_to_pointer);
#define kr_auto_free KR_CLEANUP(kr_free_p)

/* Takes the value out of an owning variable and leaves "none" behind. */
#define kr_steal(p)                                                                                \
	__extension__({                                                                                \
		__typeof__(p) kr_stolen_ = (p);                                                            \
		(p) = NULL;                                                                                \
		kr_stolen_;                                                                                \
	})

#endif
