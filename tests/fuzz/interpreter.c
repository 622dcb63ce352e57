/* The first bytes of a file that anyone may have written, read as a #! line; and, the same bytes as a shell
 * line. */
#include "base/path.h"
#include "lookup/lookup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_interpreter(const char *head, size_t size)
{
	struct kr_interpreter got;

	memset(&got, 0x5a, sizeof(got));
	if (!kr_interpreter_parse(head, size, &got))
		return;
	KR_BUG_IF(size < 3 || head[0] != '#' || head[1] != '!');
	KR_BUG_IF(!memchr(got.path, '\0', sizeof(got.path)) || !memchr(got.name, '\0', sizeof(got.name)));
	KR_BUG_IF(got.path[0] == '\0' || strpbrk(got.path, " \t\n"));
	KR_BUG_IF(got.is_env != (strcmp(kr_path_basename(got.path), "env") == 0));
	KR_BUG_IF(!got.is_env && got.name[0]);
	KR_BUG_IF(strchr(got.name, '\n') || strchr(got.name, '=') || got.name[0] == '-');
}

static void
check_shell(const char *bytes, size_t size)
{
	struct kr_arena arena = { 0 };
	struct kr_strs words = { 0 };

	kr_shell_commands(&arena, kr_arena_dup_n(&arena, bytes, size), &words);
	for (size_t i = 0; i < words.n; i++)
		KR_BUG_IF(words.v[i][0] == '\0' || strlen(words.v[i]) > 255);
	kr_arena_fini(&arena);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_interpreter((const char *)data, size);
	check_shell((const char *)data, size < 4096 ? size : 4096);
	return 0;
}
