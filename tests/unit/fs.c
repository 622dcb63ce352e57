/* os/fs.c: the live view, and the resolution of links, in a temporary directory. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "os/fs.h"

#include <cmocka.h>

static char top[64];
static struct kr_arena arena;

static const char *
at(const char *name)
{
	return kr_arena_printf(&arena, "%s/%s", top, name);
}

static void
put(const char *name, const char *bytes, mode_t mode)
{
	kr_auto_fd int fd = open(at(name), O_WRONLY | O_CREAT | O_CLOEXEC, mode);

	assert_true(fd >= 0);
	assert_int_equal(kr_write_all(fd, bytes, strlen(bytes), NULL), 0);
}

static void
put_link(const char *text, const char *name)
{
	assert_int_equal(symlink(text, at(name)), 0);
}

static int
set_up(void **state)
{
	char template[] = "/tmp/kr-fs-XXXXXX";
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	kr_auto_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char *real;

	(void)state;
	if (!mkdtemp(template) || !(real = realpath(template, NULL)))
		return -1;
	snprintf(top, sizeof(top), "%s", real);
	free(real);
	assert_int_equal(mkdir(at("d"), 0700), 0);
	assert_int_equal(mkdir(at("d/e"), 0700), 0);
	put("d/tool", "#!/bin/sh\n", 0755);
	put("d/e/text", "hello", 0644);
	assert_int_equal(mkfifo(at("fifo"), 0600), 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", at("sock"));
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	put_link("d/tool", "rel");
	put_link(at("d"), "abs");
	put_link("missing", "dangling");
	put_link("loop2", "loop1");
	put_link("loop1", "loop2");
	put_link("../e/text", "d/up");
	put_link("../../d", "d/e/back");
	put_link(".", "self");
	put_link("/", "root");
	put_link("d/tool/../e", "through-file");
	return 0;
}

static int
tear_down(void **state)
{
	static const char *const names[] = { "d/e/text", "d/e/back", "d/e", "d/up", "d/tool", "d", "fifo", "sock",
		"rel", "abs", "dangling", "loop1", "loop2", "self", "root", "through-file" };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(names); i++)
		(void)remove(at(names[i]));
	(void)rmdir(top);
	kr_arena_fini(&arena);
	return 0;
}

static void
look_tells_each_type_and_follows_nothing(void **state)
{
	static const struct {
		const char *name;
		enum kr_fs_type type;
		bool executable;
	} cases[] = {
		{ "d", KR_FS_DIR, false },
		{ "d/tool", KR_FS_FILE, true },
		{ "d/e/text", KR_FS_FILE, false },
		{ "fifo", KR_FS_FIFO, false },
		{ "sock", KR_FS_SOCKET, false },
		{ "rel", KR_FS_LINK, false },
		{ "dangling", KR_FS_LINK, false },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_fs_entry e = kr_fs_live.look(NULL, at(cases[i].name));

		assert_int_equal(e.type, cases[i].type);
		assert_int_equal(e.executable, cases[i].executable);
	}
	assert_int_equal(kr_fs_live.look(NULL, "/dev/null").type, KR_FS_OTHER);
	assert_int_equal(kr_fs_live.look(NULL, at("none")).type, KR_FS_NONE);
	assert_int_equal(kr_fs_live.look(NULL, at("none")).sys_errno, ENOENT);
	assert_int_equal(kr_fs_live.look(NULL, at("d/tool/x")).sys_errno, ENOTDIR);
}

static void
heads_come_from_regular_files_only(void **state)
{
	char head[4];

	(void)state;
	assert_int_equal(kr_fs_live.read_head(NULL, at("d/tool"), head, sizeof(head)), 4);
	assert_memory_equal(head, "#!/b", 4);
	assert_int_equal(kr_fs_live.read_head(NULL, at("rel"), head, sizeof(head)), -1);
	assert_int_equal(kr_fs_live.read_head(NULL, at("fifo"), head, sizeof(head)), -1); /* and does not wait */
	assert_int_equal(kr_fs_live.read_head(NULL, at("sock"), head, sizeof(head)), -1);
	assert_int_equal(kr_fs_live.read_head(NULL, at("d"), head, sizeof(head)), -1);
	assert_int_equal(kr_fs_live.read_head(NULL, "/dev/zero", head, sizeof(head)), -1);
}

struct seen {
	unsigned count, types[KR_FS_OTHER + 1], stop_at;
};

static bool
count(void *context, const char *name, enum kr_fs_type type)
{
	struct seen *seen = context;

	assert_string_not_equal(name, ".");
	assert_string_not_equal(name, "..");
	seen->types[type]++;
	return ++seen->count != seen->stop_at;
}

static void
list_names_types_and_stops(void **state)
{
	struct seen all = { 0 }, two = { .stop_at = 2 };

	(void)state;
	assert_int_equal(kr_fs_live.list(NULL, top, count, &all), 0);
	assert_int_equal(all.count, 11);
	assert_int_equal(all.types[KR_FS_LINK], 8);
	assert_int_equal(all.types[KR_FS_SOCKET], 1);
	assert_int_equal(all.types[KR_FS_FIFO], 1);
	assert_int_equal(kr_fs_live.list(NULL, top, count, &two), 0);
	assert_int_equal(two.count, 2);
	assert_int_equal(kr_fs_live.list(NULL, at("abs"), count, &all), -1); /* a link is not followed */
	assert_int_equal(kr_fs_live.list(NULL, at("d/tool"), count, &all), -1);
}

static void
resolves_links_everywhere_in_a_path(void **state)
{
	static const struct {
		const char *in, *out;
		size_t links;
	} cases[] = {
		{ "d/tool", "d/tool", 0 },
		{ "rel", "d/tool", 1 },
		{ "abs/tool", "d/tool", 1 },
		{ "abs/e/text", "d/e/text", 1 },
		{ "d/e/back/e/back/tool", "d/tool", 2 },
		{ "self/self/abs", "d", 3 },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_strs links = { 0 };
		struct kr_fs_entry e;
		const char *got = kr_fs_resolve(&kr_fs_live, &arena, at(cases[i].in), &e, &links);

		assert_non_null(got);
		assert_string_equal(got, at(cases[i].out));
		assert_int_equal(links.n, 2 * cases[i].links);
	}
}

static void
links_are_told_with_their_resolved_place(void **state)
{
	struct kr_strs links = { 0 };
	struct kr_fs_entry e;

	(void)state;
	assert_string_equal(kr_fs_resolve(&kr_fs_live, &arena, at("abs/e/back/tool"), &e, &links), at("d/tool"));
	assert_true(e.executable);
	assert_string_equal(links.v[0], at("abs"));
	assert_string_equal(links.v[1], at("d"));
	assert_string_equal(links.v[2], at("d/e/back"));
	assert_string_equal(links.v[3], "../../d");
	assert_string_equal(kr_fs_resolve(&kr_fs_live, &arena, at("root"), &e, NULL), "/");
	assert_int_equal(e.type, KR_FS_DIR);
	assert_string_equal(kr_fs_resolve(&kr_fs_live, &arena, "/", &e, NULL), "/");
}

static void
what_does_not_exist_says_why(void **state)
{
	static const struct {
		const char *in;
		int sys_errno;
	} cases[] = {
		{ "none", ENOENT },
		{ "dangling", ENOENT },
		{ "loop1", ELOOP },
		{ "d/tool/x", ENOTDIR },
		{ "d/up", ENOENT },
		{ "through-file", ENOTDIR },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_fs_entry e;

		assert_null(kr_fs_resolve(&kr_fs_live, &arena, at(cases[i].in), &e, NULL));
		assert_int_equal(e.type, KR_FS_NONE);
		assert_int_equal(e.sys_errno, cases[i].sys_errno);
	}
}

/* CFG-07: forty links are followed, the forty-first is not. */
static void
forty_links_at_most(void **state)
{
	struct kr_fs_entry e;

	(void)state;
	for (int i = 0; i < 42; i++)
		put_link(kr_arena_printf(&arena, "chain%d", i), kr_arena_printf(&arena, "chain%d", i + 1));
	put("chain0", "", 0644);
	assert_non_null(kr_fs_resolve(&kr_fs_live, &arena, at("chain40"), &e, NULL));
	assert_null(kr_fs_resolve(&kr_fs_live, &arena, at("chain41"), &e, NULL));
	assert_int_equal(e.sys_errno, ELOOP);
	for (int i = 0; i <= 42; i++)
		(void)remove(at(kr_arena_printf(&arena, "chain%d", i)));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(look_tells_each_type_and_follows_nothing),
		cmocka_unit_test(heads_come_from_regular_files_only),
		cmocka_unit_test(list_names_types_and_stops),
		cmocka_unit_test(resolves_links_everywhere_in_a_path),
		cmocka_unit_test(links_are_told_with_their_resolved_place),
		cmocka_unit_test(what_does_not_exist_says_why),
		cmocka_unit_test(forty_links_at_most),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
