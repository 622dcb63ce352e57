/* doctor: which file system holds a directory, read from the mount table. The rows themselves are tested
 * live. */
#include <setjmp.h>
#include <stdarg.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/doctor.h"

#include <cmocka.h>

static const char table[] = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
							"23 22 0:20 / /home rw shared:2 master:3 - nfs4 server:/home rw,addr=10.0.0.1\n"
							"24 23 8:2 / /home/me/my\\040disk rw - xfs /dev/sdb1 rw\n"
							"25 22 0:21 / /data rw - tmpfs tmpfs rw\n"
							"26 22 0:22 / /data rw - fuse.sshfs me@host:/ rw\n"
							"27 22 0:23 / /mnt/c rw - 9p C:\\134 rw\n"
							"28 22 0:24 /a /odd\\134name rw - btrfs x rw\n"
							"broken line\n"
							"29 22 0:25 / /cut\n";

static void
the_nearest_mount_counts(void **state)
{
	static const struct {
		const char *path, *type;
	} cases[] = {
		{ "/", "ext4" },
		{ "/root/.kraft/run", "ext4" },
		{ "/homework", "ext4" },
		{ "/home", "nfs4" },
		{ "/home/me/.kraft/run", "nfs4" },
		{ "/home/me/my disk", "xfs" },
		{ "/home/me/my disk/run", "xfs" },
		{ "/data/run", "fuse.sshfs" },
		{ "/mnt/c/Users", "9p" },
		{ "/odd\\name/x", "btrfs" },
		{ "/cut/x", "ext4" },
	};
	struct kr_arena arena = { 0 };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++)
		assert_string_equal(kr_mount_type(&arena, table, cases[i].path), cases[i].type);
	assert_null(kr_mount_type(&arena, "", "/"));
	assert_null(kr_mount_type(&arena, "\n\n 1 2\n", "/"));
	kr_arena_fini(&arena);
}

static void
network_file_systems_are_told_apart(void **state)
{
	(void)state;
	assert_int_equal(kr_mount_verdict("nfs4"), KR_VERDICT_FAIL);
	assert_int_equal(kr_mount_verdict("9p"), KR_VERDICT_FAIL);
	assert_int_equal(kr_mount_verdict("fuse.sshfs"), KR_VERDICT_FAIL);
	assert_int_equal(kr_mount_verdict("fuse.mergerfs"), KR_VERDICT_WARN);
	assert_int_equal(kr_mount_verdict("fuseblk"), KR_VERDICT_WARN);
	assert_int_equal(kr_mount_verdict("ext4"), KR_VERDICT_OK);
	assert_int_equal(kr_mount_verdict("nfsx"), KR_VERDICT_OK);
}

static void
a_proxy_of_this_machine_is_known_by_its_host(void **state)
{
	static const char *const here[] = { "http://127.0.0.1:3128", "http://127.9.9.9", "127.0.0.1:80", "socks5://[::1]:1080/",
		"http://localhost", "HTTP://LocalHost:1", "http://user:p@ss@localhost:3", "http://localhost." };
	static const char *const elsewhere[] = { "", "http://10.0.0.1:3128", "http://proxy.example:127", 
		"http://localhosts", "http://notlocalhost", "http://[::2]:1", "http://localhost@proxy.example/",
		"http://proxy.example/?x@127.0.0.1" };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(here); i++)
		if (!kr_proxy_is_loopback(here[i]))
			fail_msg("%s", here[i]);
	for (size_t i = 0; i < KR_COUNT(elsewhere); i++)
		if (kr_proxy_is_loopback(elsewhere[i]))
			fail_msg("%s", elsewhere[i]);
}

/* ---- --fix ---- */

static void
what_is_mended_loses_rights_and_no_more(void **state)
{
	char folder[] = "/tmp/kraft-doctor-XXXXXX", file[64], link[64];
	struct kr_error err = { 0 };
	struct stat st;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/file", folder);
	snprintf(link, sizeof(link), "%s/link", folder);
	fd = open(file, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0 && fchmod(fd, 0466) == 0 && close(fd) == 0);
	assert_int_equal(symlink("file", link), 0);
	assert_int_equal(kr_mend_apply(&(struct kr_mend){ .path = link, .mode = 0600 }, NULL, &err), -1);
	assert_true(stat(file, &st) == 0 && (st.st_mode & 0777) == 0466);
	assert_int_equal(kr_mend_apply(&(struct kr_mend){ .path = file, .mode = 0600 }, NULL, &err), 0);
	assert_true(stat(file, &st) == 0 && (st.st_mode & 0777) == 0400); /* none is given */
	assert_int_equal(unlink(link) | unlink(file) | rmdir(folder), 0);
}

/* In the place of sudo a shell that says what it was given. */
static void
a_script_runs_as_it_was_shown(void **state)
{
	char folder[] = "/tmp/kraft-doctor-XXXXXX", sudo[64], out[64], said[256] = "";
	struct kr_error err = { 0 };
	const struct kr_mend mend = { .script = "cat >/x <<'END'\n  userns,\nEND" };
	FILE *file;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(sudo, sizeof(sudo), "%s/sudo", folder);
	snprintf(out, sizeof(out), "%s/out", folder);
	assert_int_equal(kr_mend_apply(&mend, sudo, &err), -1);
	assert_int_equal(err.code, KR_E_UNSUPPORTED);
	file = fopen(sudo, "w");
	KR_BUG_IF(!file);
	fprintf(file, "#!/bin/sh\nprintf '%%s|' \"$@\" >%s\ncase $3 in *fail*) exit 1;; esac\n", out);
	assert_int_equal(fclose(file) | chmod(sudo, 0700), 0);
	assert_int_equal(kr_mend_apply(&mend, sudo, &err), 0);
	file = fopen(out, "r");
	KR_BUG_IF(!file);
	said[fread(said, 1, sizeof(said) - 1, file)] = '\0';
	fclose(file);
	assert_string_equal(said, "/bin/sh|-ec|cat >/x <<'END'\n  userns,\nEND|");
	assert_int_equal(kr_mend_apply(&(struct kr_mend){ .script = "fail" }, sudo, &err), -1);
	assert_int_equal(unlink(sudo) | unlink(out) | rmdir(folder), 0);
}

/* ---- macOS ---- */

static const struct kr_doctor_row *
row_of(const struct kr_doctor *d, const char *name)
{
	for (size_t i = 0; i < d->row_count; i++)
		if (strcmp(d->rows[i].name, name) == 0)
			return &d->rows[i];
	fail_msg("no row '%s'", name);
	return NULL;
}

static void
mac_11_what_macos_lacks_is_a_row_with_its_fix(void **state)
{
	static const struct {
		struct kr_macos_facts facts;
		struct kr_macos_trial trial;
		const char *name, *detail, *fix;
		enum kr_verdict verdict;
	} cases[] = {
		{ { .has_sandbox_exec = true, .has_tools = true }, { true, "" }, "sandbox", "one was made", "", KR_VERDICT_OK },
		{ { .has_sandbox_exec = true, .has_tools = true }, { true, "" }, "machine", "this machine's kind", "", KR_VERDICT_OK },
		{ { .has_tools = true, .developer = "/Applications/Xcode.app/Contents/Developer" }, { false, "" }, "developer tools", "Xcode.app", "",
			KR_VERDICT_OK },
		{ { .has_tools = true }, { false, "" }, "sandbox-exec", "'/s' is not there", "kind: docker", KR_VERDICT_FAIL },
		{ { .has_tools = true }, { false, "" }, "sandbox", "cannot be tried", "", KR_VERDICT_SKIP },
		{ { .has_sandbox_exec = true }, { false, "sandbox_apply: Operation not permitted" }, "sandbox", "Operation not permitted",
			"a terminal of your own", KR_VERDICT_FAIL },
		{ { .has_sandbox_exec = true }, { false, "" }, "sandbox", "gave no reason", "a terminal of your own", KR_VERDICT_FAIL },
		{ { .has_sandbox_exec = true }, { true, "" }, "developer tools", "neither Xcode nor", "xcode-select --install", KR_VERDICT_FAIL },
		{ { .is_translated = true }, { false, "" }, "machine", "Rosetta", "Apple silicon", KR_VERDICT_FAIL },
		{ { .is_sandboxed = true }, { false, "" }, "machine", "inside a sandbox", "a terminal", KR_VERDICT_FAIL },
		{ { .is_root = true }, { false, "" }, "machine", "root", "ordinary user", KR_VERDICT_FAIL },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
		struct kr_doctor d = { .arena = &arena };
		struct kr_macos_facts facts = cases[i].facts;
		const struct kr_doctor_row *row;

		facts.machine = "arm64";
		facts.sandbox_exec = "/s";
		kr_doctor_macos_judge(&d, &facts, &cases[i].trial);
		row = row_of(&d, cases[i].name);
		if (!row)
			fail_msg("%zu: there is no such row", i);
		else if (row->verdict != cases[i].verdict || !strstr(row->detail, cases[i].detail) || !strstr(row->fix, cases[i].fix) ||
			!*row->fix != !*cases[i].fix)
			fail_msg("%zu: %s: %s", i, row->detail, row->fix);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_nearest_mount_counts),
		cmocka_unit_test(network_file_systems_are_told_apart),
		cmocka_unit_test(a_proxy_of_this_machine_is_known_by_its_host),
		cmocka_unit_test(what_is_mended_loses_rights_and_no_more),
		cmocka_unit_test(a_script_runs_as_it_was_shown),
		cmocka_unit_test(mac_11_what_macos_lacks_is_a_row_with_its_fix),
	};

	return cmocka_run_group_tests_name("doctor", tests, NULL, NULL);
}
