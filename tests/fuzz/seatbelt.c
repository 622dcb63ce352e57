/*
 * Paths of a plan in a Seatbelt profile: read back by a reader of its own, every string is a name of kraft's, one of these paths or
 * a pattern; no other rule has appeared, and each path stands where it was meant to. What has no safe spelling is an error.
 */
#include <stddef.h>
#include <stdint.h>

#include "backend/backend.h"
#include "base/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PROFILE_BYTES = 1 << 20, STEPS = 4 };

/* The string that begins at `text`, unquoted in place; *end is behind it. */
static const char *
read_string(char *text, char **end)
{
	char *to = text, *from = text + 1;

	KR_BUG_IF(*text != '"');
	for (; *from != '"'; from++) {
		KR_BUG_IF(!*from || (unsigned char)*from < 0x20 || *from == 0x7f);
		if (*from == '\\' && *++from != '\\' && *from != '"')
			KR_BUG_IF(true);
		*to++ = *from;
	}
	*to = '\0';
	*end = from + 1;
	return text;
}

/* How often the path stands as the one word of this filter, and how many rules there are. */
static void
count(const char *profile, const char *filter, const char *path, size_t *found, size_t *rules)
{
	char *copy = kr_xcalloc(1, strlen(profile) + 1), *p = copy;
	size_t depth = 0, n = strlen(filter);

	memcpy(copy, profile, strlen(profile));
	*found = *rules = 0;
	while (*p) {
		if (*p == '(') {
			const bool is_filter = strncmp(p + 1, filter, n) == 0 && p[n + 1] == ' ' && p[n + 2] == '"';

			*rules += depth++ == 0;
			p += is_filter ? n + 2 : 1;
			if (is_filter)
				*found += strcmp(read_string(p, &p), path) == 0;
		} else if (*p == '"') {
			(void)read_string(p, &p);
		} else {
			KR_BUG_IF(*p == ')' && !depth);
			depth -= *p == ')';
			p++;
		}
	}
	KR_BUG_IF(depth);
	free(copy);
}

static const char *
take(struct kr_arena *arena, const uint8_t **data, size_t *size)
{
	const size_t n = *size ? strnlen((const char *)*data, *size) : 0;
	const char *path = kr_arena_printf(arena, "/%.*s", (int)n, (const char *)*data);

	*data += n < *size ? n + 1 : n;
	*size -= n < *size ? n + 1 : n;
	return path;
}

static int
render(const struct kr_step *steps, size_t n, struct kr_buf *out)
{
	static const struct kr_repo repo;
	const struct kr_plan_macos macos = { .tmpdir = "/kraft-fuzz-tmpdir", .proxy_port = 4000 };
	const struct kr_request request = { .repo = &repo, .macos = &macos };
	const struct kr_plan plan = { .request = &request, .steps = (struct kr_step *)steps, .step_count = n };

	return kr_seatbelt_profile(&plan, out, NULL);
}

/* The paths that are asked for are as many rules as plain ones of the same shape. */
static void
check(const struct kr_step *steps, const struct kr_buf *out)
{
	struct kr_step plain[STEPS];
	kr_auto_buf struct kr_buf other = KR_BUF(PROFILE_BYTES);
	size_t found, rules, expected;

	for (size_t i = 0; i < STEPS; i++) {
		static const char *const names[STEPS] = { "/kraft-fuzz-a", "/kraft-fuzz-b", "/kraft-fuzz-c", "/kraft-fuzz-d" };

		plain[i] = steps[i];
		plain[i].path = names[i];
		for (size_t k = 0; k < STEPS; k++)
			if (k != i && kr_path_is_within(steps[i].path, steps[k].path))
				return; /* one lies in the other: another shape */
	}
	KR_BUG_IF(render(plain, STEPS, &other) < 0);
	count(other.data, "subpath", "", &found, &expected);
	for (size_t i = 0; i < STEPS; i++) {
		const bool is_tree = steps[i].reach == KR_REACH_TREE || steps[i].kind == KR_STEP_MASK;

		count(out->data, is_tree ? "subpath" : "literal", steps[i].path, &found, &rules);
		KR_BUG_IF(!found || rules != expected);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum kr_step_kind kinds[] = { KR_STEP_BIND_RO, KR_STEP_BIND_RW, KR_STEP_MASK, KR_STEP_ADD };
	const unsigned shape = size ? data[0] : 0;
	struct kr_arena arena = { 0 };
	struct kr_step steps[STEPS] = { 0 };
	kr_auto_buf struct kr_buf out = KR_BUF(PROFILE_BYTES);

	data += size != 0;
	size -= size != 0;
	for (size_t i = 0; i < STEPS; i++) {
		steps[i].kind = kinds[(shape >> 2 * i) % KR_COUNT(kinds)];
		steps[i].reach = steps[i].kind == KR_STEP_ADD ? KR_REACH_TREE : (enum kr_reach)((shape + i) % 3);
		steps[i].path = take(&arena, &data, &size);
	}
	if (render(steps, STEPS, &out) == 0)
		check(steps, &out);
	kr_arena_fini(&arena);
	return 0;
}
