#include "base/base.h"

void
kr_bug(const char *file, int line, const char *what)
{
	fprintf(stderr, "kraft: bug at %s:%d: %s\n", file, line, what);
	abort();
}

void *
kr_xcalloc(size_t count, size_t size)
{
	void *p = calloc(count ? count : 1, size ? size : 1);

	KR_BUG_IF(!p);
	return p;
}

void *
kr_xrealloc(void *old, size_t size)
{
	void *p = realloc(old, size ? size : 1);

	KR_BUG_IF(!p);
	return p;
}

char *
kr_xstrdup(const char *s)
{
	char *copy = strdup(s);

	KR_BUG_IF(!copy);
	return copy;
}

void
kr_free_p(void *pointer_to_pointer)
{
	free(*(void **)pointer_to_pointer);
}
