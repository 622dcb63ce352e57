/* base: text escaping, paths, arena, buffers, errors. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/sha256.h"
#include "base/text.h"

#include <cmocka.h>

static void
escape_neutralises_what_steers_a_terminal(void **state)
{
	static const struct { const char *in, *out; } cases[] = {
		{ "plain", "plain" },
		{ "a\tb", "a\tb" },
		{ "a\nb", "a\\nb" },
		{ "\033]0;t\a", "\\x1b]0;t\\x07" },
		{ "caf\xc3\xa9", "caf\xc3\xa9" },
		{ "\xc2\x9b" "31m", "\\xc2\\x9b31m" },
		{ "x\xe2\x80\xae" "y", "x\\xe2\\x80\\xaey" },
		{ "\xff\xc0\x80", "\\xff\\xc0\\x80" },
		{ "\xed\xa0\x80", "\\xed\\xa0\\x80" },
		{ "\xe2\x80", "\\xe2\\x80" },
	};
	char out[64];

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		kr_text_escape(out, sizeof(out), cases[i].in, strlen(cases[i].in));
		assert_string_equal(out, cases[i].out);
	}
	assert_int_equal(kr_text_escape(out, 4, "\001\001", 2), 0); /* never half an escape */
}

static void
plain_text_has_nothing_that_steers_a_terminal(void **state)
{
	static const struct { const char *in, *lines, *line; } cases[] = {
		{ "", "", "" },
		{ "a\tb\nc", "a\tb\nc", "abc" },
		{ "\033]0;t\a\r\177", "]0;t", "]0;t" },
		{ "caf\xc3\xa9 \xf0\x9f\x98\x80", "caf\xc3\xa9 \xf0\x9f\x98\x80", "caf\xc3\xa9 \xf0\x9f\x98\x80" },
		{ "\xc2\x9b" "31m\xe2\x80\xae\xe2\x80\x8b", "31m", "31m" },
		{ "\xff\xed\xa0\x80\xe2\x80", "??????", "??????" },
	};
	char out[64];

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		const size_t n = strlen(cases[i].in);

		assert_int_equal(kr_text_plain(out, cases[i].in, n, true), strlen(cases[i].lines));
		assert_string_equal(out, cases[i].lines);
		memcpy(out, cases[i].in, n);
		assert_int_equal(kr_text_plain(out, out, n, false), strlen(cases[i].line));
		assert_string_equal(out, cases[i].line);
	}
	assert_int_equal(kr_text_plain(out, "a\0b", 3, true), 2);
	assert_string_equal(out, "ab");
}

static void
distance_is_capped(void **state)
{
	(void)state;
	assert_int_equal(kr_text_distance("expose", "exposee", 2), 1);
	assert_int_equal(kr_text_distance("expose", "epxose", 2), 2);
	assert_int_equal(kr_text_distance("expose", "network", 2), 3);
}

static void
paths_are_cleaned(void **state)
{
	static const struct { const char *in, *out; } cases[] = {
		{ "/", "/" }, { "//", "/" }, { "/a/", "/a" }, { "/a//b/./c", "/a/b/c" }, { "/a/../b", "/b" },
		{ "/../../x", "/x" }, { "/a/b/../..", "/" }, { "/...", "/..." },
	};
	struct kr_arena arena = { 0 };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		assert_string_equal(kr_path_clean(&arena, cases[i].in), cases[i].out);
		assert_true(kr_path_is_clean(cases[i].out));
	}
	assert_null(kr_path_clean(&arena, "a/b"));
	assert_false(kr_path_is_clean("/a/"));
	assert_false(kr_path_is_clean("/a/../b"));
	assert_true(kr_path_is_within("/a/b", "/a"));
	assert_true(kr_path_is_within("/a", "/a"));
	assert_true(kr_path_is_within("/a", "/"));
	assert_false(kr_path_is_within("/ab", "/a"));
	assert_string_equal(kr_path_dirname(&arena, "/a"), "/");
	kr_arena_fini(&arena);
}

static void
open_refuses_links_anywhere(void **state)
{
	char top[] = "/tmp/kraft-unit-XXXXXX", path[128];
	struct kr_error err = { 0 };
	kr_auto_fd int fd = -1;

	(void)state;
	assert_non_null(mkdtemp(top));
	snprintf(path, sizeof(path), "%s/real/deep", top);
	fd = kr_path_make_dirs(path, &err);
	assert_true(fd >= 0);
	snprintf(path, sizeof(path), "%s/link", top);
	assert_int_equal(symlink("real", path), 0);
	assert_int_equal(kr_path_open(path, O_RDONLY, &err), -1);
	assert_int_equal(err.code, KR_E_REFUSED);
	snprintf(path, sizeof(path), "%s/link/deep", top);
	assert_int_equal(kr_path_open(path, O_RDONLY, &err), -1);
	assert_int_equal(err.code, KR_E_REFUSED);
	snprintf(path, sizeof(path), "%s/real/deep", top);
	kr_close_p(&fd);
	fd = kr_path_open(path, O_RDONLY | O_DIRECTORY, &err);
	assert_true(fd >= 0);
	unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
	snprintf(path, sizeof(path), "%s/link", top);
	unlink(path);
	snprintf(path, sizeof(path), "%s/real", top);
	rmdir(path);
	rmdir(top);
}

static void
buffers_stop_at_their_maximum(void **state)
{
	struct kr_buf buf = KR_BUF(8);

	(void)state;
	kr_buf_adds(&buf, "12345678");
	assert_false(buf.overflow);
	kr_buf_adds(&buf, "9");
	assert_true(buf.overflow);
	assert_string_equal(buf.data, "12345678");
	kr_buf_fini(&buf);
}

static void
files_are_replaced_whole(void **state)
{
	char top[] = "/tmp/kraft-unit-XXXXXX";
	struct kr_error err = { 0 };
	struct kr_buf buf = KR_BUF(16);
	kr_auto_fd int dir = -1;

	(void)state;
	assert_non_null(mkdtemp(top));
	dir = open(top, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	assert_int_equal(kr_file_write_at(dir, "f", "one", 3, 0600, &err), 0);
	assert_int_equal(kr_file_write_at(dir, "f", "two", 3, 0600, &err), 0);
	assert_int_equal(kr_file_read_at(dir, "f", &buf, &err), 0);
	assert_string_equal(buf.data, "two");
	assert_int_equal(mkfifoat(dir, "fifo", 0600), 0);
	assert_int_equal(kr_file_read_at(dir, "fifo", &buf, &err), -1); /* and does not block */
	kr_buf_fini(&buf);
	unlinkat(dir, "f", 0);
	unlinkat(dir, "fifo", 0);
	rmdir(top);
}

static void
trees_are_removed_and_links_are_not_followed(void **state)
{
	char top[] = "/tmp/kraft-unit-XXXXXX";
	kr_auto_fd int dir = -1, file = -1;

	(void)state;
	assert_non_null(mkdtemp(top));
	dir = open(top, O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	assert_int_equal(mkdirat(dir, "keep", 0700), 0);
	file = openat(dir, "keep/file", O_CREAT | O_WRONLY, 0600);
	assert_true(file >= 0);
	assert_int_equal(mkdirat(dir, "tree", 0700), 0);
	assert_int_equal(mkdirat(dir, "tree/a", 0700), 0);
	assert_int_equal(mkdirat(dir, "tree/a/b", 0700), 0);
	assert_int_equal(symlinkat("../../keep", dir, "tree/a/link"), 0);
	assert_int_equal(mkfifoat(dir, "tree/a/b/fifo", 0600), 0);
	assert_int_equal(symlinkat("keep", dir, "link"), 0);
	assert_int_equal(kr_tree_remove_at(dir, "tree"), 0);
	assert_int_equal(faccessat(dir, "tree", F_OK, AT_SYMLINK_NOFOLLOW), -1);
	assert_int_equal(kr_tree_remove_at(dir, "link"), 0); /* the link itself */
	assert_int_equal(kr_tree_remove_at(dir, "never"), 0);
	assert_int_equal(faccessat(dir, "keep/file", F_OK, 0), 0);
	assert_int_equal(kr_tree_remove_at(dir, "keep"), 0);
	assert_int_equal(rmdir(top), 0);
}

/* As a user: root opens every directory. */
static void
directories_closed_to_their_owner_are_removed(void **state)
{
	char top[] = "/tmp/kraft-tree-XXXXXX";
	kr_auto_fd int dir = -1;
	int status = -1;
	pid_t pid;

	(void)state;
	assert_non_null(mkdtemp(top));
	assert_int_equal(chmod(top, 0777), 0);
	dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pid = fork();
	if (pid == 0) {
		bool made = (geteuid() || setuid(65534) == 0) && mkdirat(dir, "tree", 0700) == 0 &&
					mkdirat(dir, "tree/closed", 0700) == 0 && mkdirat(dir, "tree/closed/below", 0700) == 0 &&
					mkdirat(dir, "tree/read", 0700) == 0 && mkdirat(dir, "tree/read/below", 0500) == 0 &&
					fchmodat(dir, "tree/closed", 0, 0) == 0 && fchmodat(dir, "tree/read", 0500, 0) == 0 &&
					fchmodat(dir, "tree", 0500, 0) == 0;

		_exit(!made ? 2 : kr_tree_remove_at(dir, "tree") == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(rmdir(top), 0);
}

static const char *
sha256_of(const char *bytes, size_t n, size_t piece)
{
	static char hex[KR_SHA256_HEX + 1];
	struct kr_sha256 sha;

	kr_sha256_init(&sha);
	for (size_t i = 0; i < n; i += piece)
		kr_sha256_add(&sha, bytes + i, n - i < piece ? n - i : piece);
	kr_sha256_hex(&sha, hex);
	return hex;
}

/* The examples of FIPS 180-4, and every length around a block's end in pieces of every size. */
static void
sha256_is_the_standards(void **state)
{
	static const char long_text[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
	char million[1000], text[200];
	struct kr_sha256 sha;
	char hex[KR_SHA256_HEX + 1];

	(void)state;
	assert_string_equal(sha256_of("", 0, 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	assert_string_equal(sha256_of("abc", 3, 3), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_string_equal(sha256_of(long_text, strlen(long_text), 7),
		"248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	memset(million, 'a', sizeof(million));
	kr_sha256_init(&sha);
	for (int i = 0; i < 1000; i++)
		kr_sha256_add(&sha, million, sizeof(million));
	kr_sha256_hex(&sha, hex);
	assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	memset(text, 'x', sizeof(text));
	for (size_t n = 50; n < 140; n++) {
		snprintf(hex, sizeof(hex), "%s", sha256_of(text, n, n));
		for (size_t piece = 1; piece < n; piece += 9)
			assert_string_equal(sha256_of(text, n, piece), hex);
	}
}

static void
errors_keep_their_place(void **state)
{
	struct kr_error err = { 0 };

	(void)state;
	assert_int_equal(kr_fail_errno(&err, KR_E_SYSTEM, ENOENT, "cannot open '%s'", "x"), -1);
	assert_string_equal(err.message, "cannot open 'x': No such file or directory");
	kr_wrap(&err, "reading '%s'", "y");
	assert_string_equal(err.message, "reading 'y': cannot open 'x': No such file or directory");
	assert_int_equal(kr_fail(NULL, KR_E_USAGE, "nobody listens"), -1);
}

static void
the_last_bytes_are_kept(void **state)
{
	struct kr_buf buf = KR_BUF(8);

	(void)state;
	kr_buf_add_last(&buf, "abc", 3);
	assert_string_equal(buf.data, "abc");
	kr_buf_add_last(&buf, "defghi", 6);
	assert_string_equal(buf.data, "bcdefghi");
	kr_buf_add_last(&buf, "0123456789", 10);
	assert_string_equal(buf.data, "23456789");
	kr_buf_add_last(&buf, "", 0);
	assert_string_equal(buf.data, "23456789");
	assert_false(buf.overflow);
	kr_buf_fini(&buf);
}

static void
a_pipe_is_no_standard_stream(void **state)
{
	int saved = dup(0), in = -1, out = -1;
	char byte = 0;

	(void)state;
	close(0);
	assert_int_equal(kr_pipe(&in, &out, NULL), 0);
	assert_true(in > 2 && out > 2);
	assert_int_equal(dup2(saved, 0), 0);
	assert_int_equal(write(out, "x", 1), 1);
	assert_int_equal(read(in, &byte, 1), 1);
	assert_true(byte == 'x' && fcntl(in, F_GETFD) == FD_CLOEXEC && fcntl(out, F_GETFD) == FD_CLOEXEC);
	close(saved);
	close(in);
	close(out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(escape_neutralises_what_steers_a_terminal),
		cmocka_unit_test(plain_text_has_nothing_that_steers_a_terminal),
		cmocka_unit_test(distance_is_capped),
		cmocka_unit_test(paths_are_cleaned),
		cmocka_unit_test(open_refuses_links_anywhere),
		cmocka_unit_test(buffers_stop_at_their_maximum),
		cmocka_unit_test(files_are_replaced_whole),
		cmocka_unit_test(trees_are_removed_and_links_are_not_followed),
		cmocka_unit_test(directories_closed_to_their_owner_are_removed),
		cmocka_unit_test(sha256_is_the_standards),
		cmocka_unit_test(errors_keep_their_place),
		cmocka_unit_test(the_last_bytes_are_kept),
		cmocka_unit_test(a_pipe_is_no_standard_stream),
	};

	return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
