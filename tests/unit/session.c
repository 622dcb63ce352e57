/* session: the log, terminal modes, paths outside the view, facts, the relay against a launcher of our own.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/text.h"
#include "guest/wire.h"
#include "session/facts.h"
#include "session/log.h"
#include "session/modes.h"
#include "session/outside.h"
#include "session/relay.h"

#include <cmocka.h>

/* ---- a folder per test ---- */

struct folder {
	char path[64];
	int fd;
};

static int
make_folder(void **state)
{
	struct folder *f = kr_xcalloc(1, sizeof(*f));

	snprintf(f->path, sizeof(f->path), "/tmp/kraft-session-XXXXXX");
	if (!mkdtemp(f->path))
		return -1;
	f->fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = f;
	return f->fd < 0 ? -1 : 0;
}

static int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int
remove_folder(void **state)
{
	struct folder *f = *state;

	close(f->fd);
	nftw(f->path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
	free(f);
	return 0;
}

static void
write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(kr_write_all(fd, text, strlen(text), NULL), 0);
	close(fd);
}

/* ---- log ---- */

struct seen {
	struct kr_buf text; /* "stream:bytes|" per run of pieces of one stream */
	uint64_t bytes, gaps;
	int stream;
};

static int
see(void *context, const struct kr_log_piece *piece)
{
	struct seen *s = context;

	if (piece->stream == KR_LOG_NOTE) {
		s->gaps++;
		return 0;
	}
	if (s->text.max) {
		if ((int)piece->stream != s->stream)
			kr_buf_addf(&s->text, "|%s:", kr_log_stream_name(piece->stream));
		s->stream = (int)piece->stream;
		kr_buf_add(&s->text, piece->bytes, piece->n);
	}
	s->bytes += piece->n;
	return 0;
}

static void
a_log_keeps_bytes_streams_and_order(void **state)
{
	struct folder *f = *state;
	struct seen seen = { .text = KR_BUF(4096), .stream = -1 };
	struct kr_log_reader reader;
	struct kr_error err = { 0 };
	struct kr_log log;
	struct stat st;

	kr_log_init(&log, f->fd, KR_LOG_LIMIT_BYTES);
	assert_int_not_equal(fstatat(f->fd, "log", &st, 0), 0); /* nothing was said: no log */
	kr_log_reader_init(&reader, f->fd);
	assert_int_equal(kr_log_reader_next(&reader, see, &seen, &err), 0);
	kr_log_add(&log, KR_LOG_STDOUT, "one\033[1m\0", 8, 1000);
	kr_log_add(&log, KR_LOG_STDERR, "two\n", 4, 1000);
	assert_true(kr_log_reader_next(&reader, see, &seen, &err) > 0);
	kr_log_add(&log, KR_LOG_STDERR, "three\n", 6, 1000);
	kr_log_add(&log, KR_LOG_STDERR, "four\n", 5, 2000);
	kr_log_add(&log, KR_LOG_STDOUT, "\xff", 1, 2000);
	assert_true(kr_log_reader_next(&reader, see, &seen, &err) > 0);
	assert_int_equal(kr_log_reader_next(&reader, see, &seen, &err), 0);
	assert_int_equal(seen.text.len, sizeof("|stdout:one\033[1m\0|stderr:two\nthree\nfour\n|stdout:\xff") - 1);
	assert_memory_equal(
		seen.text.data, "|stdout:one\033[1m\0|stderr:two\nthree\nfour\n|stdout:\xff", seen.text.len);
	assert_int_equal(fstatat(f->fd, "log", &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(st.st_size, 24); /* as it came: any tool reads it */
	kr_log_reader_fini(&reader);
	kr_log_close(&log);
	kr_buf_fini(&seen.text);
}

static uint64_t
disk_use(const struct folder *f)
{
	static const char *const names[] = { "log", "log.idx", "log.1", "log.1.idx", "log.2", "log.2.idx" };
	uint64_t sum = 0;
	struct stat st;

	for (size_t i = 0; i < KR_COUNT(names); i++)
		sum += fstatat(f->fd, names[i], &st, 0) == 0 ? (uint64_t)st.st_size : 0;
	return sum;
}

/* RES-05 */
static void
a_log_is_capped_and_keeps_both_ends(void **state)
{
	struct folder *f = *state;
	enum { LIMIT = 64 << 10 };
	struct seen seen = { .text = KR_BUF(1 << 20), .stream = -1 };
	struct kr_log_reader reader;
	struct kr_error err = { 0 };
	struct kr_log log;
	char line[32];

	kr_log_init(&log, f->fd, LIMIT);
	for (int i = 0; i < 100000; i++) {
		int n = snprintf(line, sizeof(line), "line %d\n", i);

		kr_log_add(&log, i & 1 ? KR_LOG_STDOUT : KR_LOG_STDERR, line, (size_t)n, (uint64_t)i);
		if (i % 1000 == 0)
			assert_true(disk_use(f) <= LIMIT);
	}
	assert_int_equal(log.sys_errno, 0);
	kr_log_close(&log);
	kr_log_reader_init(&reader, f->fd);
	assert_true(kr_log_reader_next(&reader, see, &seen, &err) > 0);
	assert_int_equal(seen.gaps, 1);
	assert_non_null(strstr(seen.text.data, "line 0\n"));
	assert_non_null(strstr(seen.text.data, "line 99999\n"));
	assert_null(strstr(seen.text.data, "line 50000\n"));
	assert_true(seen.bytes > LIMIT / 8);
	kr_log_reader_fini(&reader);
	kr_buf_fini(&seen.text);
}

/* One chunk larger than everything: it is cut, not refused, and the tail is its tail. */
static void
one_huge_write_is_cut(void **state)
{
	struct folder *f = *state;
	enum { LIMIT = 64 << 10, HUGE_BYTES = 1 << 20 };
	char *bytes = kr_xcalloc(1, HUGE_BYTES), tail[64];
	struct kr_log log;

	memset(bytes, 'x', HUGE_BYTES);
	memcpy(bytes + HUGE_BYTES - 3, "END", 3);
	kr_log_init(&log, f->fd, LIMIT);
	kr_log_add(&log, KR_LOG_OUTPUT, bytes, HUGE_BYTES, 1);
	assert_int_equal(log.total, HUGE_BYTES);
	assert_true(disk_use(f) <= LIMIT);
	kr_log_close(&log);
	assert_true(kr_log_tail(f->fd, tail, sizeof(tail)) >= 3);
	assert_non_null(memmem(tail, sizeof(tail), "END", 3));
	free(bytes);
}

/* A reader that follows while parts are replaced sees every byte once or a gap, never one twice. */
static void
a_follower_survives_rotation(void **state)
{
	struct folder *f = *state;
	struct seen seen = { 0 };
	struct kr_log_reader reader;
	struct kr_error err = { 0 };
	struct kr_log log;

	kr_log_init(&log, f->fd, 16 << 10);
	kr_log_reader_init(&reader, f->fd);
	for (int i = 0; i < 4000; i++) {
		kr_log_add(&log, KR_LOG_OUTPUT, "0123456789", 10, (uint64_t)i);
		if (i % 7 == 0)
			assert_true(kr_log_reader_next(&reader, see, &seen, &err) >= 0);
	}
	assert_true(kr_log_reader_next(&reader, see, &seen, &err) >= 0);
	assert_int_equal(seen.bytes, 40000); /* it kept up */
	assert_int_equal(seen.gaps, 0);
	kr_log_reader_fini(&reader);
	kr_log_close(&log);
}

static void
a_log_that_cannot_be_written_says_why(void **state)
{
	struct folder *f = *state;
	struct rlimit old, small = { 0 };
	struct kr_log log;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = (struct rlimit){ .rlim_cur = 4096, .rlim_max = old.rlim_max };
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	kr_log_init(&log, f->fd, 1 << 20);
	for (int i = 0; i < 1000; i++)
		kr_log_add(&log, KR_LOG_OUTPUT, "0123456789", 10, 1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(log.sys_errno, EFBIG);
	assert_int_equal(log.data_fd, -1);
	kr_log_close(&log);
}

/* A damaged index is an error, not a wild read. */
static void
a_damaged_index_is_refused(void **state)
{
	struct folder *f = *state;
	struct seen seen = { 0 };
	struct kr_log_reader reader;
	struct kr_error err = { 0 };
	struct kr_log log;
	uint64_t wild[2] = { 99ull << 56 | 5, 0 };
	int fd;

	kr_log_init(&log, f->fd, 1 << 20);
	kr_log_add(&log, KR_LOG_OUTPUT, "0123456789", 10, 1);
	kr_log_close(&log);
	fd = openat(f->fd, "log.idx", O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, wild, sizeof(wild)), sizeof(wild));
	close(fd);
	kr_log_reader_init(&reader, f->fd);
	assert_int_equal(kr_log_reader_next(&reader, see, &seen, &err), -1);
	assert_int_equal(err.code, KR_E_SYSTEM);
	kr_log_reader_fini(&reader);
}

/* ---- modes ---- */

static void
modes_left_on_are_reset(void **state)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "plain text", NULL },
		{ "\033[31mred", "" },
		{ "\033[?1049h\033[?25l", "\033[?1049l\033[?25h" },
		{ "\033[?1049h\033[?1049l", "" },
		{ "\033[?1000;1006;2004h", "\033[?1000l\033[?1006l\033[?2004l" },
		{ "\033[?25l\033[?25h\033[?7l", "\033[?7h" },
		{ "\033=", "\033>" },
		{ "\033=\033>", "" },
		{ "\033[>1u\033[>1u\033[<u", "\033[<1u" },
		{ "\033[?1049h\033c", "" },
		{ "\033[?1049h\033[!p", "" },
		{ "\033[2;10r", "\0337\033[r\0338" },
		{ "\033[2;10r\033[r", "" },
		{ "\033]0;title\033[?25l", "\033[?25h" }, /* a string cut short by another sequence */
		{ "\033]0;tit", "\030\033\\" },
		{ "\033[?99999999999999999999h", "" },
		{ "\033[?0000000000000000000000000000000000000000000000000000001h",
			"" }, /* too long to be believed */
		{ "\033[?1;;h", "\033[?1l" },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_modes whole = { 0 }, pieces = { 0 };
		kr_auto_buf struct kr_buf out = KR_BUF(1024), again = KR_BUF(1024);
		char expected[256] = "";

		kr_modes_feed(&whole, cases[i].in, strlen(cases[i].in));
		for (const char *p = cases[i].in; *p; p++)
			kr_modes_feed(&pieces, p, 1);
		kr_modes_reset(&whole, &out);
		kr_modes_reset(&pieces, &again);
		if (cases[i].out)
			snprintf(expected, sizeof(expected), "%s\033(B\017\033[0m", cases[i].out);
		assert_string_equal(out.data ? out.data : "", expected);
		assert_string_equal(again.data ? again.data : "", expected);
	}
}

static void
questions_to_the_terminal_are_counted(void **state)
{
	static const struct {
		const char *in;
		unsigned queries;
	} cases[] = {
		{ "\033[c\033[6n", 2 },
		{ "\033[>q", 1 },
		{ "\033[?u", 1 },
		{ "\033[?2026$p", 1 },
		{ "\033]11;?\a", 1 },
		{ "\033P+q544e\033\\", 1 },
		{ "\033[18t", 1 },
		{ "\033[8;24;80t", 0 },
		{ "\033[1m\033[2J\033]0;what\a", 0 },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_modes modes = { 0 };

		kr_modes_feed(&modes, cases[i].in, strlen(cases[i].in));
		assert_int_equal(modes.queries, cases[i].queries);
	}
}

/* ---- outside ---- */

static void
paths_are_found_in_text(void **state)
{
	static const struct {
		const char *in, *out; /* out: paths, each followed by a blank */
	} cases[] = {
		{ "", "" },
		{ "/ // /./", "" },
		{ "/opt/x", "/opt/x " },
		{ "cat: /opt/x: No such file or directory", "/opt/x " },
		{ "open('/opt/a b')", "/opt/a " },
		{ "ENOENT: no such file, open \"/home/u/.cfg/x.json\".", "/home/u/.cfg/x.json " },
		{ "at (/a/b.js:10:5)", "/a/b.js " },
		{ "see https://example.org/opt/x and file://host/etc/x", "" },
		{ "relative/path ./x ../y -I/inc", "" },
		{ "PATH=/a/bin:/b/bin", "/a/bin /b/bin " },
		{ "--root=/srv/x/.", "/srv/x " },
		{ "\033[31m/opt/red\033[0m", "/opt/red " },
		{ "\033]8;;file:///x/y\033\\/opt/link\033]8;;\033\\", "/opt/link " },
		{ "/a/../../etc/x /a//b/./c/", "/a/b/c " },
		{ "Missing /opt/lib.", "/opt/lib " },
		{ "`/opt/q`, [/opt/r]; </opt/s>", "/opt/q /opt/r /opt/s " },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		kr_auto_buf struct kr_buf out = KR_BUF(1024);
		char path[KR_OUTSIDE_PATH];
		size_t at = 0;

		while (kr_outside_next(cases[i].in, strlen(cases[i].in), &at, path))
			kr_buf_addf(&out, "%s ", path);
		assert_string_equal(out.data ? out.data : "", cases[i].out);
	}
}

static struct kr_step view[] = {
	{ .kind = KR_STEP_BIND_RO, .path = "/usr", .source = "/usr" },
	{ .kind = KR_STEP_TMPFS, .path = "/tmp" },
	{ .kind = KR_STEP_BIND_RW, .path = "/tmp/worktree", .source = "/tmp/worktree" },
	{ .kind = KR_STEP_MASK, .path = "/usr/share/credentials" },
	{ .kind = KR_STEP_READ_ONLY, .path = "/" },
};
static const struct kr_request view_request = { .checkout = "/tmp/checkout" };
static const struct kr_plan view_plan = {
	.request = &view_request, .steps = view, .step_count = KR_COUNT(view)
};

static void
the_view_decides_by_its_longest_step(void **state)
{
	(void)state;
	assert_true(kr_outside_is_visible(&view_plan, "/usr/bin/x"));
	assert_true(kr_outside_is_visible(&view_plan, "/usr"));
	assert_false(kr_outside_is_visible(&view_plan, "/usrx"));
	assert_false(kr_outside_is_visible(&view_plan, "/opt"));
	assert_true(kr_outside_is_visible(&view_plan, "/tmp"));
	assert_false(kr_outside_is_visible(&view_plan, "/tmp/other"));
	assert_true(kr_outside_is_visible(&view_plan, "/tmp/worktree/a"));
	assert_true(kr_outside_is_visible(&view_plan, "/usr/share/credentials"));
}

static void
what_exists_outside_is_named(void **state)
{
	struct folder *f = *state;
	struct kr_arena arena = { 0 };
	char home[96], text[1024];
	struct kr_outside out[KR_OUTSIDE_MAX];
	size_t n;

	snprintf(home, sizeof(home), "%s/home", f->path);
	assert_int_equal(mkdirat(f->fd, "home", 0700), 0);
	assert_int_equal(mkdirat(f->fd, "home/.ssh", 0700), 0);
	assert_int_equal(mkdirat(f->fd, "home/tool", 0700), 0);
	assert_int_equal(mkdirat(f->fd, "data", 0700), 0);
	assert_int_equal(mkdirat(f->fd, "data/set", 0700), 0);
	assert_int_equal(symlinkat("data", f->fd, "link"), 0);
	snprintf(text, sizeof(text), "%s/home/tool/x", f->path);
	write_file(text, "");
	snprintf(text, sizeof(text), "%s/home/.ssh/id", f->path);
	write_file(text, "");
	{
		const struct kr_host host = {
			.fs = &kr_fs_live,
			.places = { .home = home,
				.kraft_home = kr_arena_printf(&arena, "%s/.kraft", home),
				.run_dir = kr_arena_printf(&arena, "%s/.kraft/run", home),
				.config_dir = kr_arena_printf(&arena, "%s/.kraft/config", home) },
		};

		snprintf(text, sizeof(text),
			"'%s/home/tool/x' '%s/home/.ssh/id' '%s/home' '%s/data/set' '%s/link/set' '%s/none' "
			"'%s/data/set' /usr/bin/env",
			f->path, f->path, f->path, f->path, f->path, f->path, f->path);
		n = kr_outside_find(&arena, &host, &view_plan, text, strlen(text), out);
	}
	assert_int_equal(n, 2); /* not the protected ones, nothing through a link, nothing twice */
	assert_string_equal(out[0].expose, "~/tool");
	assert_string_equal(out[1].expose, kr_arena_printf(&arena, "%s/data/set", f->path));
	kr_arena_fini(&arena);
}

static void
known_messages_get_a_remark_once(void **state)
{
	static const struct {
		const char *said;
		const char *remark[2];
	} cases[] = {
		{ "curl: (6) Could not resolve host: example.com", { "proxy" } },
		{ "npm error code EAI_AGAIN\nnpm error getaddrinfo EAI_AGAIN", { "proxy" } },
		{ "Network is unreachable; fatal: invalid gitfile format: /w/.git", { "proxy" } },
		{ "assertion failed", { NULL } },
		{ "", { NULL } },
	};

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		size_t at = 0;

		for (size_t k = 0; k < 2; k++) {
			const char *remark = kr_outside_remark(cases[i].said, strlen(cases[i].said), &at);

			assert_int_equal(remark != NULL, cases[i].remark[k] != NULL);
			assert_true(!remark || strstr(remark, cases[i].remark[k]));
		}
		assert_null(kr_outside_remark(cases[i].said, strlen(cases[i].said), &at));
	}
}

/* ---- facts ---- */

static void
facts_tell_running_from_lost_and_ended(void **state)
{
	struct folder *f = *state;
	const char *const argv[] = { "sh", "-c", "echo \xff \"x\"", NULL };
	struct kr_session_facts facts = { .id = "0123456789abcdef",
		.item = "i",
		.repo = "/r",
		.worktree = "/w",
		.phase = "runtime",
		.purpose = "command",
		.argv = argv,
		.started_ms = 1234567890123 };
	struct kr_session_seen seen;
	struct kr_arena arena = { 0 };
	struct kr_error err = { 0 };
	int lock = kr_session_facts_write(f->fd, &facts, &err);

	assert_true(lock >= 0);
	assert_int_equal(kr_session_facts_read(&arena, f->fd, &seen, &err), 0);
	assert_int_equal(seen.state, KR_SESSION_RUNNING);
	assert_int_equal(seen.facts.started_ms, 1234567890123);
	assert_int_equal(seen.facts.host_pid, getpid());
	assert_true(seen.facts.host_start > 0);
	assert_true(seen.facts.host_boot[0] != '\0');
	assert_string_equal(seen.facts.argv[2], "echo \\xff \"x\"");
	assert_null(seen.facts.argv[3]);
	close(lock);
	assert_int_equal(kr_session_facts_read(&arena, f->fd, &seen, &err), 0);
	assert_int_equal(seen.state, KR_SESSION_LOST);
	assert_int_equal(kr_file_write_at(f->fd, "exit", "137 9 started\n", 14, 0600, &err), 0);
	assert_int_equal(kr_session_facts_read(&arena, f->fd, &seen, &err), 0);
	assert_int_equal(seen.state, KR_SESSION_EXITED);
	assert_int_equal(seen.signal, 9);
	kr_arena_fini(&arena);
}

static void
a_list_of_sessions_is_sorted_and_filtered(void **state)
{
	struct folder *f = *state;
	const char *const argv[] = { "true", NULL };
	struct kr_session_list list;
	struct kr_arena arena = { 0 };
	struct kr_error err = { 0 };

	assert_int_equal(kr_session_list(&arena, f->path, NULL, &list, &err), 0); /* no folder yet: none */
	assert_int_equal(list.n, 0);
	assert_int_equal(mkdirat(f->fd, "sessions", 0700), 0);
	assert_int_equal(mkdirat(f->fd, "sessions/not-an-id", 0700), 0);
	assert_int_equal(mkdirat(f->fd, "sessions/0000000000000009", 0700), 0); /* empty: passed over */
	for (int i = 0; i < 3; i++) {
		char name[64];
		struct kr_session_facts facts = {
			.item = i == 1 ? "b" : "a", .argv = argv, .started_ms = (uint64_t)(10 + i)
		};
		int fd;

		snprintf(name, sizeof(name), "sessions/000000000000000%d", i);
		facts.id = name + 9;
		assert_int_equal(mkdirat(f->fd, name, 0700), 0);
		fd = openat(f->fd, name, O_RDONLY | O_DIRECTORY);
		close(kr_session_facts_write(fd, &facts, &err));
		close(fd);
	}
	assert_int_equal(kr_session_list(&arena, f->path, NULL, &list, &err), 0);
	assert_int_equal(list.n, 3);
	assert_string_equal(list.v[0].facts.id, "0000000000000002");
	assert_int_equal(kr_session_list(&arena, f->path, "b", &list, &err), 0);
	assert_int_equal(list.n, 1);
	assert_int_equal(kr_session_folder_open(f->path, "../../etc", &err), -1);
	assert_int_equal(err.code, KR_E_NOT_FOUND);
	kr_arena_fini(&arena);
}

static void
make_session(struct folder *f, const char *kind, int number, bool lives, int *lock)
{
	const char *const argv[] = { "true", NULL };
	char name[64];
	struct kr_session_facts facts = { .item = "i", .argv = argv };
	int fd;

	snprintf(name, sizeof(name), "sn/%016x", (unsigned)number);
	facts.id = name + 3;
	if (*kind == 's')
		assert_int_equal(mkdirat(f->fd, name, 0700), 0);
	snprintf(name, sizeof(name), "sessions/%016x", (unsigned)number);
	facts.id = name + 9;
	assert_int_equal(mkdirat(f->fd, name, 0700), 0);
	fd = openat(f->fd, name, O_RDONLY | O_DIRECTORY);
	*lock = kr_session_facts_write(fd, &facts, NULL);
	if (!lives)
		kr_close_p(lock);
	close(fd);
}

static bool
is_there(const struct folder *f, const char *kind, int number)
{
	char name[64];
	struct stat st;

	snprintf(name, sizeof(name), "%s/%016x", kind, (unsigned)number);
	return fstatat(f->fd, name, &st, 0) == 0;
}

static bool
result_is_there(const struct folder *f, int number)
{
	char name[64];
	struct stat st;

	snprintf(name, sizeof(name), "results/i/%016x.json", (unsigned)number);
	return fstatat(f->fd, name, &st, 0) == 0;
}

static void
make_result(struct folder *f, int number)
{
	char name[64];

	snprintf(name, sizeof(name), "results/i/%016x.json", (unsigned)number);
	close(openat(f->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
	assert_true(result_is_there(f, number));
}

/* The oldest go, whoever lives stays, and so does what is just being made. */
static void
a_sweep_leaves_the_living_and_the_newest(void **state)
{
	struct folder *f = *state;
	enum { MANY = KR_SESSION_KEPT_MOST + 50 };
	const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	int alive, gone, unused;

	assert_int_equal(mkdirat(f->fd, "sessions", 0700), 0);
	assert_int_equal(mkdirat(f->fd, "sn", 0700), 0);
	assert_int_equal(mkdirat(f->fd, "results", 0700), 0);
	assert_int_equal(mkdirat(f->fd, "results/i", 0700), 0);
	make_session(f, "sn", 1, true, &alive);
	make_session(f, "sn", 2, false, &gone);
	assert_int_equal(mkdirat(f->fd, "sn/0000000000000003", 0700), 0); /* its folder is gone */
	assert_int_equal(mkdirat(f->fd, "sn/0000000000000004", 0700), 0); /* its session.json is still to come */
	assert_int_equal(mkdirat(f->fd, "sessions/0000000000000004", 0700), 0);
	kr_session_sweep(f->path, NULL);
	assert_true(
		is_there(f, "sn", 1) && !is_there(f, "sn", 2) && !is_there(f, "sn", 3) && is_there(f, "sn", 4));
	assert_true(is_there(f, "sessions", 2) && is_there(f, "sessions", 4));
	assert_int_equal(utimensat(f->fd, "sessions/0000000000000004", old, 0), 0); /* it never came */
	kr_session_sweep(f->path, NULL);
	assert_false(is_there(f, "sessions", 4) || is_there(f, "sn", 4));
	for (int i = 1; i <= 2; i++) {
		char name[64];

		snprintf(name, sizeof(name), "sessions/%016x", (unsigned)i);
		assert_int_equal(utimensat(f->fd, name, old, 0), 0);
	}
	for (int i = 0; i < MANY; i++)
		make_session(f, "", 1000 + i, false, &unused);
	make_result(f, 1);
	make_result(f, 2);
	make_result(f, 1000 + MANY - 1);
	kr_session_sweep(f->path, NULL);
	assert_true(result_is_there(f, 1) && result_is_there(f, 1000 + MANY - 1));
	assert_false(result_is_there(f, 2));     /* goes with its session */
	assert_true(is_there(f, "sessions", 1)); /* old, and alive */
	assert_false(is_there(f, "sessions", 2));
	assert_true(is_there(f, "sessions", 1000 + MANY - 1));
	assert_false(is_there(f, "sessions", 1000));
	close(alive);
}

static void
make_client(struct folder *f, int number)
{
	char name[64];

	snprintf(name, sizeof(name), "sandbox-client/kraft-%016x", (unsigned)number);
	assert_int_equal(mkdirat(f->fd, name, 0700), 0);
}

/* Another home's sessions have no trace here, and nobody's container is ended for that. */
static void
a_dead_sessions_client_tells_of_its_container_CTR_05(void **state)
{
	struct folder *f = *state;
	int alive, gone;

	assert_false(kr_session_left_client(f->path));
	assert_int_equal(mkdirat(f->fd, "sessions", 0700), 0);
	assert_int_equal(mkdirat(f->fd, "sandbox-client", 0700), 0);
	make_session(f, "", 1, true, &alive);
	make_session(f, "", 2, false, &gone);
	make_client(f, 1);
	assert_int_equal(mkdirat(f->fd, "sandbox-client/other", 0700), 0);
	assert_false(kr_session_left_client(f->path));
	assert_false(kr_session_is_over(f->path, "0000000000000001"));
	assert_true(kr_session_is_over(f->path, "0000000000000002"));
	assert_false(kr_session_is_over(f->path, "0000000000000003"));
	assert_false(kr_session_is_over(f->path, "../sessions"));
	make_client(f, 3); /* its folder is gone */
	assert_true(kr_session_is_over(f->path, "0000000000000003"));
	assert_true(kr_session_left_client(f->path));
	assert_int_equal(unlinkat(f->fd, "sandbox-client/kraft-0000000000000003", AT_REMOVEDIR), 0);
	assert_false(kr_session_left_client(f->path));
	make_client(f, 2);
	assert_true(kr_session_left_client(f->path));
	close(alive);
	assert_true(kr_session_is_over(f->path, "0000000000000001"));
}

/* ---- the relay: a child plays launcher, init and command ---- */

struct play {
	struct folder *folder;
	int in, out, err;       /* kraft's streams: given to the relay */
	int in_w, out_r, err_r; /* the person's ends */
	struct kr_log log;
	struct kr_session_end end;
	struct kr_error error;
	int result;
};

/* What the child has: the control socket and the worker's ends. It must end by _exit. */
struct role {
	int control, in, out, err;
};

static void
role_says(const struct role *role, enum kg_type type, int a, int b)
{
	struct kg_message m = { .type = (uint32_t)type, .a = a, .b = b };

	if (write(role->control, &m, sizeof(m)) != sizeof(m))
		_exit(99);
}

/* The next order of kraft; type 0 at the end of the socket. */
static struct kg_message
role_hears(const struct role *role)
{
	struct kg_message m = { 0 };

	if (read(role->control, &m, sizeof(m)) != sizeof(m))
		m.type = 0;
	return m;
}

static void
role_writes(int fd, const char *text)
{
	if (write(fd, text, strlen(text)) < 0)
		_exit(98);
}

static void
open_play(struct play *play, struct folder *folder)
{
	int fds[2];

	*play = (struct play){ .folder = folder };
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	play->in = fds[0];
	play->in_w = fds[1];
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	play->out_r = fds[0];
	play->out = fds[1];
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	play->err_r = fds[0];
	play->err = fds[1];
	kr_log_init(&play->log, folder->fd, KR_LOG_LIMIT_BYTES);
}

static void
close_play(struct play *play)
{
	kr_log_close(&play->log);
	kr_close_p(&play->in);
	kr_close_p(&play->out);
	kr_close_p(&play->err);
	kr_close_p(&play->in_w);
	kr_close_p(&play->out_r);
	kr_close_p(&play->err_r);
}

static void
run_play(struct play *play, void (*act)(const struct role *role))
{
	const struct kr_relay_want want = { .in = play->in,
		.out = play->out,
		.err = play->err,
		.folder = play->folder->path,
		.log = &play->log };
	struct kr_relay *relay = kr_relay_new(&want, &play->error);
	struct kr_session session = { .lifeline_fd = -1 };
	struct role role;
	int pair[2];

	assert_non_null(relay);
	kr_relay_worker_ends(relay, &role.in, &role.out, &role.err);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	session.control_fd = pair[0];
	role.control = pair[1];
	session.launcher = fork();
	if (session.launcher == 0) {
		alarm(20);
		/* As after an exec: only its own descriptors, and usual signals. */
		for (int fd = 3; fd < 256; fd++)
			if (fd != role.control && fd != role.in && fd != role.out && fd != role.err)
				close(fd);
		signal(SIGPIPE, SIG_DFL);
		act(&role);
		_exit(0);
	}
	close(pair[1]);
	play->result = kr_relay_follow(relay, &session, &play->end, &play->error);
	kr_relay_free(relay);
}

/* What arrived at the person's end, as far as it is there. */
static const char *
arrived(int fd, char *out, size_t size)
{
	ssize_t n;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	n = read(fd, out, size - 1);
	out[n > 0 ? n : 0] = '\0';
	return out;
}

static void
act_plain(const struct role *role)
{
	char bytes[64];
	ssize_t n;

	role_says(role, KG_STARTED, 0, 0);
	while ((n = read(role->in, bytes, sizeof(bytes))) > 0)
		if (write(role->out, bytes, (size_t)n) < 0)
			_exit(97);
	role_writes(role->err, "done\n");
	role_says(role, KG_EXIT, 7, 0);
}

static void
streams_are_carried_apart_and_end(void **state)
{
	struct play play;
	char text[64];

	open_play(&play, *state);
	assert_int_equal(write(play.in_w, "hello", 5), 5);
	kr_close_p(&play.in_w);
	run_play(&play, act_plain);
	assert_int_equal(play.result, 0);
	assert_true(play.end.started);
	assert_int_equal(kr_session_exit_status(&play.end), 7);
	assert_string_equal(arrived(play.out_r, text, sizeof(text)), "hello");
	assert_string_equal(arrived(play.err_r, text, sizeof(text)), "done\n");
	assert_int_equal(play.end.out_bytes, 10);
	close_play(&play);
}

static void
act_reads_a_little(const struct role *role)
{
	char bytes[5];

	role_says(role, KG_STARTED, 0, 0);
	if (read(role->in, bytes, sizeof(bytes)) != sizeof(bytes))
		_exit(97);
	poll(NULL, 0, 100);
	role_says(role, KG_EXIT, 0, 0);
}

/* `while read line; do kraft run ...; done <list` */
static void
what_is_left_of_a_file_is_put_back(void **state)
{
	struct folder *f = *state;
	static char big[300000];
	struct play play;
	char path[96];

	memset(big, 'x', sizeof(big) - 1);
	snprintf(path, sizeof(path), "%s/input", f->path);
	for (int round = 0; round < 2; round++) {
		open_play(&play, f);
		write_file(path, round ? big : "12345\n6789\n");
		kr_close_p(&play.in);
		play.in = open(path, O_RDONLY | O_CLOEXEC);
		run_play(&play, act_reads_a_little);
		assert_int_equal(kr_session_exit_status(&play.end), 0);
		assert_int_equal(lseek(play.in, 0, SEEK_CUR), 5);
		close_play(&play);
	}
}

static void
act_keeps_stdout_open(const struct role *role)
{
	role_says(role, KG_STARTED, 0, 0);
	role_writes(role->out, "result\n");
	if (fork() == 0) {
		alarm(5);
		pause(); /* holds every stream and the control socket */
		_exit(0);
	}
	role_says(role, KG_EXIT, 0, 0);
}

static uint64_t
monotonic_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* PROC-03 */
static void
a_grandchild_that_keeps_stdout_does_not_delay_the_end(void **state)
{
	struct play play;
	char text[64];
	uint64_t start = monotonic_ms();

	open_play(&play, *state);
	run_play(&play, act_keeps_stdout_open);
	assert_int_equal(kr_session_exit_status(&play.end), 0);
	assert_string_equal(arrived(play.out_r, text, sizeof(text)), "result\n");
	assert_true(monotonic_ms() - start < 3000);
	close_play(&play);
}

static void
act_writes_until_stopped(const struct role *role)
{
	static char block[65536];

	role_says(role, KG_STARTED, 0, 0);
	signal(SIGPIPE, SIG_IGN);
	while (write(role->out, block, sizeof(block)) > 0)
		;
	role_says(role, KG_EXIT, errno == EPIPE ? 42 : 1, 0);
}

static void
a_reader_that_goes_away_closes_the_worker_s_pipe(void **state)
{
	struct play play;

	open_play(&play, *state);
	kr_close_p(&play.out_r);
	run_play(&play, act_writes_until_stopped);
	assert_int_equal(kr_session_exit_status(&play.end), 42);
	assert_int_equal(play.end.write_errno, 0);
	close_play(&play);
}

static void
a_full_disk_is_told(void **state)
{
	struct play play;

	open_play(&play, *state);
	kr_close_p(&play.out);
	play.out = open("/dev/full", O_WRONLY | O_CLOEXEC);
	run_play(&play, act_writes_until_stopped);
	assert_int_equal(play.end.write_errno, ENOSPC);
	close_play(&play);
}

static void
act_measures_back_pressure(const struct role *role)
{
	static char block[4096];
	size_t sum = 0;
	struct pollfd poller = { .fd = role->out, .events = POLLOUT };

	role_says(role, KG_STARTED, 0, 0);
	fcntl(role->out, F_SETFL, O_NONBLOCK);
	while (sum < 64 << 20 && poll(&poller, 1, 300) > 0) {
		ssize_t n = write(role->out, block, sizeof(block));

		sum += n > 0 ? (size_t)n : 0;
	}
	/* The worker's pipe, our buffer, the person's pipe. */
	role_says(role, KG_EXIT, sum <= (64 + 32 + 64 + 8) << 10 ? 0 : 1, 0);
}

static void *
interrupt_late(void)
{
	pid_t parent = getpid();

	if (fork() == 0) {
		poll(NULL, 0, 1500);
		kill(parent, SIGTERM); /* the rest need not be delivered */
		_exit(0);
	}
	return NULL;
}

static void
a_slow_reader_holds_the_worker(void **state)
{
	struct play play;
	sigset_t term, old;

	/* Blocked here, so that an early one waits for the relay instead of ending the test. */
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, &old);
	open_play(&play, *state);
	interrupt_late();
	run_play(&play, act_measures_back_pressure);
	assert_int_equal(kr_session_exit_status(&play.end), 0);
	close_play(&play);
	while (waitpid(-1, NULL, 0) > 0)
		;
	sigprocmask(SIG_SETMASK, &old, NULL);
}

/* Sends this signal to kraft once it listens, then tells by the exit code what came back. */
static void
act_gets(const struct role *role, int signal, int times)
{
	int got = 0;

	role_says(role, KG_STARTED, 0, 0);
	for (int i = 0; i < times; i++) {
		struct kg_message m;

		kill(getppid(), signal);
		m = role_hears(role);
		got += m.type == KG_SIGNAL && m.a == signal;
		if (m.type == KG_KILL) {
			role_says(role, KG_EXIT, 137, 9);
			_exit(0);
		}
	}
	role_says(role, KG_EXIT, got, 0);
}

static void
act_term(const struct role *role)
{
	act_gets(role, SIGTERM, 1);
}

static void
act_hup(const struct role *role)
{
	act_gets(role, SIGHUP, 2);
}

static void
act_int_twice(const struct role *role)
{
	act_gets(role, SIGINT, 2);
}

static void
signals_are_passed_once_and_a_second_interrupt_ends(void **state)
{
	struct play play;

	open_play(&play, *state);
	run_play(&play, act_term);
	assert_int_equal(kr_session_exit_status(&play.end), 1);
	assert_false(play.end.killed_by_us);
	run_play(&play, act_hup);
	assert_int_equal(kr_session_exit_status(&play.end), 2);
	run_play(&play, act_int_twice);
	assert_true(play.end.killed_by_us);
	assert_int_equal(kr_session_exit_status(&play.end), 137);
	close_play(&play);
}

static void
act_sends_rubbish(const struct role *role)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} ancillary = { 0 };
	struct kg_message m = { .type = KG_TERMINAL };
	struct iovec piece = { &m, sizeof(m) };
	struct msghdr header = {
		.msg_iov = &piece, .msg_iovlen = 1, .msg_control = &ancillary, .msg_controllen = sizeof(ancillary)
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&header);
	int fd = open("/dev/null", O_RDWR);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	role_says(role, KG_STARTED, 0, 0);
	sendmsg(role->control, &header, 0);
	role_says(role, (enum kg_type)77, -1, -1);
	role_says(role, KG_EXIT, 3, 9999);
	role_writes(role->control, "half");
}

/* PROC-06: what the init says is the worker's word. */
static void
rubbish_on_the_control_socket_is_harmless(void **state)
{
	struct play play;
	int before, after;

	open_play(&play, *state);
	before = dup(0);
	run_play(&play, act_sends_rubbish);
	after = dup(0);
	assert_int_equal(before + 1, after); /* no descriptor was kept */
	assert_int_equal(kr_session_exit_status(&play.end), 3);
	close(before);
	close(after);
	close_play(&play);
}

static void
act_dies_silently(const struct role *role)
{
	(void)role;
	_exit(1);
}

static void
act_fails(const struct role *role)
{
	role_says(role, KG_LAUNCH_FAILED, KG_FAULT_NAMESPACE, EPERM); /* a remark */
	role_says(role, KG_LAUNCH_FAILED, KG_FAULT_KEYRING, EDQUOT);
}

static void
act_has_no_container(const struct role *role)
{
	role_says(role, KG_LAUNCH_FAILED, KG_FAULT_RUNTIME, 7);
}

static void
act_says_an_unknown_fault(const struct role *role)
{
	role_says(role, KG_LAUNCH_FAILED, KG_FAULT_END, 7);
}

static void
act_runs_out_of_memory(const struct role *role)
{
	role_says(role, KG_STARTED, 0, 0);
	role_says(role, KG_OOM, 2, 0);
	role_says(role, KG_EXIT, 137, 9);
}

static void
act_cannot_exec(const struct role *role)
{
	role_says(role, KG_EXEC_FAILED, EACCES, 0);
}

static void
kills_for_want_of_memory_are_in_the_end(void **state)
{
	struct folder *f = *state;
	struct play play;

	open_play(&play, f);
	run_play(&play, act_runs_out_of_memory);
	assert_int_equal(play.end.oom_kills, 2);
	assert_int_equal(kr_session_exit_status(&play.end), 137);
	run_play(&play, act_cannot_exec);
	assert_int_equal(play.end.oom_kills, 0);
	close_play(&play);
}

static void
ends_without_a_start_are_told_apart(void **state)
{
	struct folder *f = *state;
	struct play play;

	open_play(&play, f);
	run_play(&play, act_dies_silently);
	assert_false(play.end.started);
	assert_int_equal(kr_session_exit_status(&play.end), 125);
	run_play(&play, act_fails);
	assert_int_equal(play.end.fault, KG_FAULT_KEYRING);
	assert_int_equal(play.end.fault_errno, EDQUOT);
	assert_int_equal(kr_session_exit_status(&play.end), 125);
	run_play(&play, act_has_no_container);
	assert_int_equal(play.end.fault, KG_FAULT_RUNTIME);
	assert_int_equal(play.end.fault_errno, 7);
	assert_int_equal(kr_session_exit_status(&play.end), 125);
	run_play(&play, act_says_an_unknown_fault);
	assert_int_equal(play.end.fault, KG_FAULT_INTERNAL);
	run_play(&play, act_cannot_exec);
	assert_int_equal(kr_session_exit_status(&play.end), 126);
	close_play(&play);
}

static void
act_starts_and_vanishes(const struct role *role)
{
	role_says(role, KG_STARTED, 0, 0);
}

static void
the_exit_file_speaks_when_the_socket_does_not(void **state)
{
	struct folder *f = *state;
	struct play play;
	char path[96];

	open_play(&play, f);
	run_play(&play, act_starts_and_vanishes);
	assert_int_equal(kr_session_exit_status(&play.end), 137);
	snprintf(path, sizeof(path), "%s/exit", f->path);
	write_file(path, "5 0 started\n");
	run_play(&play, act_starts_and_vanishes);
	assert_int_equal(kr_session_exit_status(&play.end), 5);
	close_play(&play);
}

static void
act_says_in_order(const struct role *role)
{
	role_says(role, KG_STARTED, 0, 0);
	role_writes(role->out, "1");
	role_writes(role->err, "2");
	role_writes(role->out, "3");
	role_says(role, KG_EXIT, 0, 0);
}

static void
one_file_for_both_streams_keeps_their_order(void **state)
{
	struct play play;
	char text[64];

	open_play(&play, *state);
	kr_close_p(&play.err);
	play.err = dup(play.out);
	run_play(&play, act_says_in_order);
	assert_string_equal(arrived(play.out_r, text, sizeof(text)), "123");
	close_play(&play);
}

static void
what_the_command_left_is_told_in_one_line(void **state)
{
	struct kr_session_end end = { 0 };
	char words[KR_LEFT_WORDS];

	(void)state;
	kr_session_left_words(&end, words);
	assert_string_equal(words, "");
	end.left = 1;
	memcpy(end.left_names, "sleep", 6);
	kr_session_left_words(&end, words);
	assert_string_equal(words, "sleep");
	end.left = 12;
	memcpy(end.left_names, "a\033[2J\0b", 8);
	kr_session_left_words(&end, words);
	assert_string_equal(words, "a\\x1b[2J, b and 10 more");
	memset(end.left_names, 0, sizeof(end.left_names));
	kr_session_left_words(&end, words);
	assert_string_equal(words, "12 without a name");
	memset(end.left_names, '\001', sizeof(end.left_names)); /* no end: what an init of the worker's may say */
	kr_session_left_words(&end, words);
	assert_string_equal(words, "12 without a name");
	for (size_t i = 1; i <= KG_LEFT_SHOWN; i++)
		end.left_names[i * KG_LEFT_NAME - 1] = '\0';
	end.left = UINT32_MAX;
	kr_session_left_words(&end, words);
	assert_true(strlen(words) < KR_LEFT_WORDS && strstr(words, " and 42949672"));
}

int
main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)
	const struct CMUnitTest tests[] = {
		IN_FOLDER(a_log_keeps_bytes_streams_and_order),
		IN_FOLDER(a_log_is_capped_and_keeps_both_ends),
		IN_FOLDER(one_huge_write_is_cut),
		IN_FOLDER(a_follower_survives_rotation),
		IN_FOLDER(a_log_that_cannot_be_written_says_why),
		IN_FOLDER(a_damaged_index_is_refused),
		cmocka_unit_test(modes_left_on_are_reset),
		cmocka_unit_test(questions_to_the_terminal_are_counted),
		cmocka_unit_test(paths_are_found_in_text),
		cmocka_unit_test(the_view_decides_by_its_longest_step),
		IN_FOLDER(what_exists_outside_is_named),
		cmocka_unit_test(known_messages_get_a_remark_once),
		IN_FOLDER(facts_tell_running_from_lost_and_ended),
		IN_FOLDER(a_list_of_sessions_is_sorted_and_filtered),
		IN_FOLDER(a_sweep_leaves_the_living_and_the_newest),
		IN_FOLDER(a_dead_sessions_client_tells_of_its_container_CTR_05),
		IN_FOLDER(streams_are_carried_apart_and_end),
		IN_FOLDER(what_is_left_of_a_file_is_put_back),
		IN_FOLDER(a_grandchild_that_keeps_stdout_does_not_delay_the_end),
		IN_FOLDER(a_reader_that_goes_away_closes_the_worker_s_pipe),
		IN_FOLDER(a_full_disk_is_told),
		IN_FOLDER(a_slow_reader_holds_the_worker),
		IN_FOLDER(signals_are_passed_once_and_a_second_interrupt_ends),
		IN_FOLDER(rubbish_on_the_control_socket_is_harmless),
		IN_FOLDER(ends_without_a_start_are_told_apart),
		IN_FOLDER(kills_for_want_of_memory_are_in_the_end),
		IN_FOLDER(the_exit_file_speaks_when_the_socket_does_not),
		IN_FOLDER(one_file_for_both_streams_keeps_their_order),
		cmocka_unit_test(what_the_command_left_is_told_in_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
