/* Versions as CLIs print them. */
#include "agent/agent.h"

static size_t
digits(const char *s, size_t n)
{
	size_t i = 0;

	while (i < n && s[i] >= '0' && s[i] <= '9')
		i++;
	return i;
}

/* The length of "1.2.3" at s; 0: there is none with a dot. */
static size_t
dotted(const char *s, size_t n)
{
	size_t at = digits(s, n), parts = at ? 1 : 0;

	while (parts && at + 1 < n && s[at] == '.') {
		size_t more = digits(s + at + 1, n - at - 1);

		if (!more)
			break;
		at += 1 + more;
		parts++;
	}
	return parts > 1 ? at : 0;
}

enum { VERSION_MAX = 64 };

const char *
kr_agent_version(struct kr_arena *arena, const char *printed, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t len;

		if (i && ((printed[i - 1] >= '0' && printed[i - 1] <= '9') || printed[i - 1] == '.'))
			continue; /* the middle of a number */
		len = dotted(printed + i, n - i);
		if (len && len <= VERSION_MAX)
			return kr_arena_dup_n(arena, printed + i, len);
	}
	return NULL;
}

/* The next part as a number's digits, without leading zeros; past it and its dot. */
static const char *
part(const char **s, size_t *n)
{
	const char *at = *s + strspn(*s, "0");

	*n = digits(at, strlen(at));
	*s = at[*n] == '.' ? at + *n + 1 : "";
	return at;
}

int
kr_agent_version_compare(const char *a, const char *b)
{
	while (*a || *b) {
		size_t n, m;
		const char *x = part(&a, &n), *y = part(&b, &m);
		int order = n != m ? (n < m ? -1 : 1) : memcmp(x, y, n);

		if (order)
			return order;
	}
	return 0;
}
