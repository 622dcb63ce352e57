/*
 * One shell and three gits in one run: a run costs more than they do. The shell gets everything as arguments; nothing of a
 * worker's is in its text.
 *
 * The worktree is named, or core.worktree of the worker's configuration would choose another one. Hooks are off by the
 * environment's pins; what else could stop, ask or sign is off here. safecrlf may refuse files that a conversion would
 * change: that is for a person who can decide, so they are taken. A lock is that of a git which was killed with its session:
 * nobody else runs.
 */
#include "git/leftovers.h"

#include "base/path.h"
#include "base/text.h"

static const char script[] =
	"export GIT_DIR=\"$1\" GIT_WORK_TREE=\"$2\" GIT_EDITOR=false GIT_TERMINAL_PROMPT=0\n"
	"rm -f \"$1/index.lock\" \"$1/HEAD.lock\"\n"
	"git -c core.safecrlf=false add -A --ignore-errors || test $? -eq 1 || exit 3\n"
	"git diff-index --cached --quiet --ignore-submodules=none HEAD -- ||\n"
	"git -c gc.auto=0 -c maintenance.auto=false commit -q --no-verify --no-gpg-sign --no-edit"
	" --cleanup=whitespace -m \"$3\" >&2 || exit 3\n"
	"exec git --no-optional-locks status --porcelain=v1 -z --untracked-files=all --no-renames --ignore-submodules=dirty\n";

const char *const *
kr_leftovers_commit(struct kr_arena *arena, const struct kr_private *git, const char *message)
{
	const char *const words[] = { "/bin/sh", "-c", script, "sh", kr_private_git_dir(git), ".", message };
	struct kr_strs argv = { 0 };

	for (size_t i = 0; i < KR_COUNT(words); i++)
		kr_strs_add(arena, &argv, words[i]);
	return argv.v;
}

const char *
kr_leftovers_escape(struct kr_arena *arena, const char *path)
{
	const size_t n = strlen(path);
	char *out = kr_arena_alloc(arena, 4 * n + 1);

	(void)kr_text_escape(out, 4 * n + 1, path, n);
	return out;
}

/* "XY path". With --no-renames there is one path. */
static bool
is_entry(const char *entry, size_t n)
{
	static const char letters[] = " MTADU?!";

	return n > 3 && n < KR_PATH_MAX + 3 && entry[0] && strchr(letters, entry[0]) && entry[1] &&
		   strchr(letters, entry[1]) && entry[2] == ' ' && entry[3] != '/';
}

bool
kr_leftovers_parse(struct kr_arena *arena, const char *bytes, size_t n, struct kr_strs *out)
{
	if (n && bytes[n - 1])
		return false;
	for (const char *p = bytes; p < bytes + n; p += strlen(p) + 1)
		if (!is_entry(p, strlen(p)))
			return false;
	for (const char *p = bytes; p < bytes + n; p += strlen(p) + 1)
		kr_strs_add(arena, out, kr_leftovers_escape(arena, p + 3));
	return true;
}

const char *
kr_leftovers_message(struct kr_arena *arena, const char *command, const char *item)
{
	const char *name = strrchr(command, '/') ? strrchr(command, '/') + 1 : command;

	return kr_arena_printf(arena, "kraft: left by %s in item %s", kr_leftovers_escape(arena, name), item);
}

bool
kr_leftovers_has_identity(const struct kr_strs *identity)
{
	static const char *const names[] = { "GIT_AUTHOR_NAME=", "GIT_AUTHOR_EMAIL=", "GIT_COMMITTER_NAME=",
		"GIT_COMMITTER_EMAIL=" };
	size_t found = 0;

	for (size_t i = 0; i < KR_COUNT(names); i++)
		for (size_t k = 0; k < identity->n; k++)
			found += kr_text_has_prefix(identity->v[k], names[i]) && identity->v[k][strlen(names[i])];
	return found == KR_COUNT(names);
}
