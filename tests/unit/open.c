/* open: what was checked is what is mounted (OS-EXP-05), by descriptor, also under other names of the same place. */
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "session/session.h"

#include <cmocka.h>

struct world {
	char top[64];
	struct kr_arena arena;
	struct kr_host host;
};

static const char *
at(struct world *w, const char *name)
{
	return kr_arena_printf(&w->arena, "%s/%s", w->top, name);
}

static int
setup(void **state)
{
	static const char *const dirs[] = { "home/.ssh/keys", "home/.config/gh", "home/tool/bin", "outside/.ssh", "kraft/run" };
	struct world *w = kr_xcalloc(1, sizeof(*w));

	strncpy(w->top, "/tmp/kraft-unit-XXXXXX", sizeof(w->top) - 1);
	if (!mkdtemp(w->top))
		return -1;
	for (size_t i = 0; i < KR_COUNT(dirs); i++) {
		kr_auto_fd int fd = kr_path_make_dirs(at(w, dirs[i]), NULL);

		if (fd < 0)
			return -1;
	}
	w->host.places = (struct kr_places){ at(w, "home"), at(w, "kraft"), at(w, "kraft/run"), at(w, "kraft/config") };
	*state = w;
	return 0;
}

static int
teardown(void **state)
{
	struct world *w = *state;
	pid_t pid = fork();

	if (pid == 0) {
		execl("/bin/rm", "rm", "-rf", w->top, (char *)NULL);
		_exit(1);
	}
	waitpid(pid, NULL, 0);
	kr_arena_fini(&w->arena);
	free(w);
	return 0;
}

/* Opens one source as the launch does; the error's code, or KR_E_NONE. */
static enum kr_error_code
try(struct world *w, const char *source, enum kr_step_check check, struct kr_error *err)
{
	struct kr_step step = { .kind = KR_STEP_BIND_RO, .path = source, .source = source, .check = check };
	struct kr_plan plan = { .request = &(struct kr_request){ 0 }, .steps = &step, .step_count = 1 };
	struct kr_opened opened[1];

	*err = (struct kr_error){ 0 };
	if (kr_session_open_sources(&w->host, &plan, NULL, opened, err) == 0)
		kr_session_close_sources(opened, 1);
	return err->code;
}

static void
protected_places_are_refused_by_identity(void **state)
{
	static const struct { const char *name; bool refused; } cases[] = {
		{ "home/tool", false }, { "home/tool/bin", false }, { "outside", false }, { "outside/.ssh", false },
		{ "home", true }, { "home/.ssh", true }, { "home/.ssh/keys", true }, { "home/.config", true },
		{ "home/.config/gh", true }, { "kraft", true }, { "kraft/run", true }, { "", true },
	};
	struct world *w = *state;

	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_error err;
		const char *path = kr_path_clean(&w->arena, at(w, cases[i].name));

		if ((try(w, path, KR_CHECK_PROTECT, &err) == KR_E_REFUSED) != cases[i].refused)
			fail_msg("%s: %s", path, err.message);
		/* Control: the same place opens when it is ours and the rule does not apply. */
		assert_int_equal(try(w, path, KR_CHECK_SYSTEM, &err), KR_E_NONE);
	}
}

static void
a_swapped_link_is_refused(void **state)
{
	struct world *w = *state;
	struct kr_error err;

	assert_int_equal(try(w, at(w, "home/tool/bin"), KR_CHECK_PROTECT, &err), KR_E_NONE);
	assert_int_equal(rename(at(w, "home/tool"), at(w, "home/aside")), 0);
	assert_int_equal(symlink("aside", at(w, "home/tool")), 0);
	assert_int_equal(try(w, at(w, "home/tool/bin"), KR_CHECK_PROTECT, &err), KR_E_REFUSED);
	assert_int_equal(try(w, at(w, "home/tool"), KR_CHECK_SYSTEM, &err), KR_E_REFUSED);
	unlink(at(w, "home/tool"));
	rename(at(w, "home/aside"), at(w, "home/tool"));
}

static void
only_files_and_directories_are_shown(void **state)
{
	struct world *w = *state;
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	kr_auto_fd int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	struct kr_error err;

	snprintf(name.sun_path, sizeof(name.sun_path), "%s/home/tool/s", w->top);
	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof(name)), 0);
	assert_int_equal(mkfifo(at(w, "home/tool/f"), 0600), 0);
	assert_int_equal(try(w, at(w, "home/tool/s"), KR_CHECK_PROTECT, &err), KR_E_REFUSED);
	assert_int_equal(try(w, at(w, "home/tool/f"), KR_CHECK_PROTECT, &err), KR_E_REFUSED);
	unlink(at(w, "home/tool/s"));
	unlink(at(w, "home/tool/f"));
}

/* Another name of a protected place, made by a bind mount in a namespace of the test's own. */
static int
in_namespace(struct world *w)
{
	static const struct { const char *from, *to, *look; } aliases[] = {
		{ "home/.ssh", "outside/.ssh", "outside/.ssh" },
		{ "home/.ssh", "outside/.ssh", "outside/.ssh/keys" },
		{ "home/.config", "outside/.ssh", "outside/.ssh" },
		{ "home", "outside/.ssh", "outside/.ssh" },
	};

	if (unshare(getuid() ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) < 0 ||
		mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 2;
	for (size_t i = 0; i < KR_COUNT(aliases); i++) {
		struct kr_error err;

		if (mount(at(w, aliases[i].from), at(w, aliases[i].to), NULL, MS_BIND, NULL) < 0)
			return 2;
		if (try(w, at(w, aliases[i].look), KR_CHECK_PROTECT, &err) != KR_E_REFUSED)
			return 1;
		if (umount2(at(w, aliases[i].to), MNT_DETACH) < 0)
			return 2;
	}
	return 0;
}

static void
bind_mounts_do_not_hide_a_protected_place(void **state)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(in_namespace(*state));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(protected_places_are_refused_by_identity),
		cmocka_unit_test(a_swapped_link_is_refused),
		cmocka_unit_test(only_files_and_directories_are_shown),
		cmocka_unit_test(bind_mounts_do_not_hide_a_protected_place),
	};

	return cmocka_run_group_tests_name("open", tests, setup, teardown);
}
