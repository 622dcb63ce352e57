/* probe: every known reason why no sandbox can be made has its own sentence and its fix (CFG-11, CFG-12). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/probe.h"
#include "base/fd.h"

#include <cmocka.h>

static void
versions_are_read(void **state)
{
	unsigned v[3] = { 9, 9, 9 };

	(void)state;
	assert_true(kr_bwrap_parse_version("bubblewrap 0.8.0\n", v));
	assert_int_equal(v[1], 8);
	assert_true(kr_bwrap_parse_version("bubblewrap 0.11", v));
	assert_int_equal(v[1], 11);
	assert_int_equal(v[2], 0);
	assert_false(kr_bwrap_parse_version("bwrap 1.0", v));
	assert_false(kr_bwrap_parse_version("", v));
	assert_int_equal(v[1], 11);
}

static const struct kr_namespace_facts fine = {
	.has_user_namespaces = true, .userns_clone = 1, .max_user_namespaces = 1000, .apparmor_restricts = -1,
};

static void
each_reason_has_its_fix(void **state)
{
	struct kr_namespace_facts none = fine, off = fine, zero = fine, armor = fine, chroot = fine, nested = fine, filtered = fine;
	const struct { const char *said; const struct kr_namespace_facts *facts; const char *message, *hint; } cases[] = {
		{ "bwrap: No permissions to create new namespace", &none, "built without user namespaces", "CONFIG_USER_NS" },
		{ "bwrap: No permissions to create a new namespace", &off, "unprivileged_userns_clone", "sysctl -w" },
		{ "bwrap: Creating new namespace failed: No space left on device", &zero, "max_user_namespaces is 0", "sysctl -w" },
		{ "bwrap: setting up uid map: Permission denied", &armor, "AppArmor", "profile" },
		{ "bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", &armor, "loopback device", "profile" },
		{ "bwrap: Creating new namespace failed: No space left on device", &fine, "limit of user namespaces", "raise" },
		{ "bwrap: Creating new namespace failed: Operation not permitted", &chroot, "chroot", "pivot_root" },
		{ "bwrap: Creating new namespace failed: Operation not permitted", &nested, "inside a container", "host" },
		{ "bwrap: Can't mount proc on /newroot/proc: Operation not permitted", &filtered, "inside a container", "host" },
		{ "bwrap: Can't mount proc on /newroot/proc: Operation not permitted", &fine, "own /proc", "outside" },
		{ "bwrap: something new", &fine, "something new", "doctor" },
		{ "", &fine, "gave no reason", "doctor" },
	};

	(void)state;
	none.has_user_namespaces = false;
	off.userns_clone = 0;
	zero.max_user_namespaces = 0;
	armor.apparmor_restricts = 1;
	chroot.in_chroot = true;
	nested.in_container = true;
	filtered.filtered = true;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_error err = { 0 };

		assert_int_equal(kr_bwrap_explain(cases[i].said, cases[i].facts, &err), -1);
		assert_int_equal(err.code, KR_E_WALL);
		if (!strstr(err.message, cases[i].message) || !strstr(err.hint, cases[i].hint))
			fail_msg("case %zu: '%s' / '%s'", i, err.message, err.hint);
	}
}

/* A program that answers as bubblewrap does, with the given version and help. */
static void
write_fake(const char *path, const char *version, const char *help, unsigned mode)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fprintf(f, "#!/bin/sh\necho asked >> \"$0.asked\"\ncase $1 in --version) echo 'bubblewrap %s';; --help) echo '%s';; esac\n",
		version, help);
	fclose(f);
	assert_int_equal(chmod(path, mode), 0);
}

struct fixture {
	char top[64], fake[96], variable[128];
	const char *environment[2];
	struct kr_host host;
	struct kr_arena arena;
};

static void
fixture_make(struct fixture *f)
{
	*f = (struct fixture){ .top = "/tmp/kraft-unit-XXXXXX" };
	assert_non_null(mkdtemp(f->top));
	snprintf(f->fake, sizeof(f->fake), "%s/bwrap", f->top);
	snprintf(f->variable, sizeof(f->variable), "KRAFT_BWRAP=%s", f->fake);
	f->environment[0] = f->variable;
	f->host.environment = f->environment;
	f->host.places.run_dir = f->top;
}

static void
fixture_remove(struct fixture *f)
{
	char path[128];
	static const char *const names[] = { "bwrap", "bwrap.asked", "cache/bwrap", "cache" };

	for (size_t i = 0; i < KR_COUNT(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", f->top, names[i]);
		remove(path);
	}
	rmdir(f->top);
	kr_arena_fini(&f->arena);
}

static off_t
asked(const struct fixture *f)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), "%s.asked", f->fake);
	return stat(path, &st) == 0 ? st.st_size : 0;
}

static void
one_program_is_asked_once(void **state)
{
	struct fixture f;
	struct kr_bwrap bwrap;
	off_t first;

	(void)state;
	fixture_make(&f);
	write_fake(f.fake, "0.8.0", " --bind-fd FD DEST  --ro-bind-fd FD DEST", 0755);
	assert_int_equal(kr_bwrap_probe(&f.arena, &f.host, &bwrap, NULL), 0);
	assert_true(bwrap.bind_fd);
	first = asked(&f);
	assert_int_equal(kr_bwrap_probe(&f.arena, &f.host, &bwrap, NULL), 0);
	assert_true(bwrap.bind_fd);
	assert_int_equal(bwrap.version[1], 8);
	assert_int_equal(asked(&f), first); /* the cache answered */
	unlink(f.fake);
	write_fake(f.fake, "0.11.1", "", 0755);
	assert_int_equal(kr_bwrap_probe(&f.arena, &f.host, &bwrap, NULL), 0);
	assert_int_equal(bwrap.version[1], 11); /* another file, asked anew */
	assert_false(bwrap.bind_fd);
	fixture_remove(&f);
}

static void
weak_ones_are_refused(void **state)
{
	static const struct { const char *version; unsigned mode; const char *message; } cases[] = {
		{ "0.6.1", 0755, "too old" },
		{ "0.7.9", 0755, "too old" },
		{ "0.8.0", 04755, "setuid" },
		{ "0.8.0", 02755, "setuid" },
		{ "zero", 0755, "does not say" },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct fixture f;
		struct kr_bwrap bwrap;
		struct kr_error err = { 0 };

		fixture_make(&f);
		write_fake(f.fake, cases[i].version, "", cases[i].mode);
		assert_int_equal(kr_bwrap_probe(&f.arena, &f.host, &bwrap, &err), -1);
		assert_int_equal(err.code, KR_E_WALL);
		assert_non_null(strstr(err.message, cases[i].message));
		assert_true(err.hint[0] != '\0');
		fixture_remove(&f);
	}
}

static void
a_missing_one_is_said(void **state)
{
	struct fixture f;
	struct kr_bwrap bwrap;
	struct kr_error err = { 0 };

	(void)state;
	fixture_make(&f);
	assert_int_equal(kr_bwrap_probe(&f.arena, &f.host, &bwrap, &err), -1);
	assert_int_equal(err.code, KR_E_WALL);
	f.environment[0] = "KRAFT_BWRAP=bwrap";
	assert_int_equal(kr_bwrap_probe(&f.arena, &f.host, &bwrap, &err), -1);
	assert_int_equal(err.code, KR_E_USAGE);
	fixture_remove(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions_are_read),
		cmocka_unit_test(each_reason_has_its_fix),
		cmocka_unit_test(one_program_is_asked_once),
		cmocka_unit_test(weak_ones_are_refused),
		cmocka_unit_test(a_missing_one_is_said),
	};

	return cmocka_run_group_tests_name("probe", tests, NULL, NULL);
}
