/*
 * A service manager ends everything in a service's control group when it restarts it. A host in a scope of its own
 * is not in that group. systemd-run makes one and becomes the program, so the pid is the same.
 */
#include "server/internal.h"

#include <unistd.h>

#include "os/sys.h"

extern char **environ;

enum { WORDS = 6 }; /* before the program's */

/* By the person's own PATH; no relative entry. */
static const char *
find_program(struct kr_arena *arena)
{
	const char *p = getenv("PATH");

	for (; p && *p; p += strspn(p, ":")) {
		size_t n = strcspn(p, ":");
		const char *path = kr_arena_printf(arena, "%.*s/systemd-run", (int)n, p);

		if (*p == '/' && access(path, X_OK) == 0)
			return path;
		p += n;
	}
	return NULL;
}

/* NULL: it can; else why not. */
static const char *
try_one(struct kr_arena *arena, const char *argv[])
{
	kr_auto_buf struct kr_buf out = KR_BUF(4096);
	struct kr_error err = { 0 };
	int status = 0;

	if (!argv[0])
		return "there is no systemd-run";
	argv[WORDS] = "/bin/true";
	if (kr_capture(argv[0], argv, (const char *const *)environ, &out, &status, &err) < 0)
		return kr_arena_dup(arena, err.message);
	argv[WORDS] = NULL;
	return status == 0 ? NULL
					   : kr_arena_printf(arena, "systemd-run says: %.*s",
							 (int)strcspn(out.data ? out.data : "", "\n"), out.data ? out.data : "");
}

const char *const *
kr_scope_words(struct kr_arena *arena, bool *ends_hosts)
{
	const char *words[WORDS + 2] = { find_program(arena), "--user", "--scope", "--quiet",
		"--collect", "--" };
	const char **out = kr_arena_alloc(arena, sizeof(words)), *why;

	if (!getenv("INVOCATION_ID"))
		return NULL;
	why = try_one(arena, words);
	*ends_hosts = why != NULL;
	if (why) {
		kr_server_log("a restart of this service will end what runs: no scope can be made for it, %s", why);
		return NULL;
	}
	memcpy(out, words, sizeof(words));
	return out;
}
