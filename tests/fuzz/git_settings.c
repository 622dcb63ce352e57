/*
 * Settings written for a worker: whatever git's list holds, each line of the file is one of ours, and an
 * address keeps neither user nor password.
 */
#include <stddef.h>
#include <stdint.h>

#include "git/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_lines(const struct kr_buf *out)
{
	for (size_t at = 0; at < out->len;) {
		const char *line = out->data + at, *stop = memchr(line, '\n', out->len - at);

		KR_BUG_IF(!stop);
		KR_BUG_IF(line[0] != '[' && line[0] != '\t');
		KR_BUG_IF(line[0] == '[' && stop[-1] != ']');
		KR_BUG_IF(memmem(line, (size_t)(stop - line), "[include", 8) == line);
		at = (size_t)(stop - out->data) + 1;
	}
}

static void
check_address(struct kr_arena *arena, const char *url)
{
	const char *clean = kr_git_url_clean(arena, url), *again, *authority;

	if (!clean)
		return;
	authority = strstr(clean, "://");
	KR_BUG_IF(authority && strchr(clean, ':') == authority &&
			  memchr(authority + 3, '@', strcspn(authority + 3, "/?#")));
	again = kr_git_url_clean(arena, clean);
	KR_BUG_IF(again && strlen(again) > strlen(clean));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	kr_auto_buf struct kr_buf out = KR_BUF(1 << 22);
	struct kr_git_settings settings = { .text = kr_arena_dup_n(&arena, (const char *)data, size),
		.len = size };

	kr_git_settings_write(&arena, &settings, true, &out);
	(void)kr_git_settings_find(&settings, "user.name");
	check_lines(&out);
	check_address(&arena, settings.text);
	return 0;
}
