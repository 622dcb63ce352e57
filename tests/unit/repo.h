/* Real repositories in a temporary directory, for the tests of git and of items. */
#ifndef KR_TEST_REPO_H
#define KR_TEST_REPO_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/fd.h"
#include "base/path.h"
#include "git/git.h"

#include <cmocka.h>

extern char **environ;

/* Each test has its own; state is the pointer that cmocka carries. */
struct place {
	struct kr_arena arena;
	char top[64];
};

/* Runs a line of shell in the test's directory; returns its exit status. */
__attribute__((format(printf, 2, 3))) static inline int
try_sh(struct place *place, const char *fmt, ...)
{
	va_list ap;
	char line[4096];
	int used = snprintf(
			line, sizeof(line), "cd '%s' && export HOME=\"$PWD/home\" GIT_CONFIG_NOSYSTEM=1 && ", place->top),
		status = -1;
	const char *const argv[] = { "sh", "-c", line, NULL };
	pid_t pid;

	va_start(ap, fmt);
	used += vsnprintf(line + used, sizeof(line) - (size_t)used, fmt, ap);
	va_end(ap);
	assert_true((size_t)used < sizeof(line));
	assert_int_equal(posix_spawn(&pid, "/bin/sh", NULL, NULL, (char *const *)argv, environ), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

#define sh(place, ...) assert_int_equal(try_sh((place), __VA_ARGS__), 0)

static inline const char *
below(struct place *place, const char *name)
{
	return kr_arena_printf(&place->arena, "%s/%s", place->top, name);
}

/* What a line of shell prints, without the last newline. */
#define sh_says(place, ...) (sh((place), __VA_ARGS__), said(place))
static inline const char *
said(struct place *place)
{
	struct kr_buf buf = KR_BUF(1 << 16);
	struct kr_error err = { 0 };
	const char *out;

	assert_int_equal(kr_file_read_at(AT_FDCWD, below(place, "said"), &buf, &err), 0);
	while (buf.len && buf.data[buf.len - 1] == '\n')
		buf.data[--buf.len] = '\0';
	out = kr_arena_dup(&place->arena, buf.len ? buf.data : "");
	kr_buf_fini(&buf);
	return out;
}

static inline int
place_make(void **state)
{
	struct place *place = kr_xcalloc(1, sizeof(*place));

	snprintf(place->top, sizeof(place->top), "/tmp/kraft-unit-XXXXXX");
	if (!mkdtemp(place->top))
		return -1;
	sh(place,
		"mkdir home && git config --global user.name T && git config --global user.email t@t &&"
		" git config --global init.defaultBranch main && git config --global protocol.file.allow always");
	setenv("HOME", below(place, "home"), 1);
	*state = place;
	return 0;
}

static inline int
place_remove(void **state)
{
	struct place *place = *state;
	int status = try_sh(place, "cd / && chmod -R u+rwx '%s' && rm -rf '%s'", place->top, place->top);

	kr_arena_fini(&place->arena);
	free(place);
	return status;
}

#define place_test(f) cmocka_unit_test_setup_teardown(f, place_make, place_remove)

#endif
