/*
 * store: events that outlive kill -9, writers at once, versions, files that are not ours, damage, a full
 * disk. A process of its own is forked wherever one must die, be limited or be another one; none of SQLite is
 * open across it.
 */
#include "repo.h"

#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "os/sys.h"
#include "store/internal.h"

#define EMPTY "{}"

static struct kr_store *
open_as(struct place *p, enum kr_store_mode mode, const struct kr_schema *schema)
{
	struct kr_store *store = NULL;
	struct kr_error err = { 0 };

	if (kr_store_open_as(below(p, "run"), mode, schema, &store, &err) < 0)
		fail_msg("%s", err.message);
	return store;
}

static struct kr_store *
open_store(struct place *p, enum kr_store_mode mode)
{
	return open_as(p, mode, &kr_store_schema);
}

static struct kr_error
open_fails(struct place *p, enum kr_store_mode mode, const struct kr_schema *schema)
{
	struct kr_store *store = NULL;
	struct kr_error err = { 0 };

	assert_int_equal(kr_store_open_as(below(p, "run"), mode, schema, &store, &err), -1);
	assert_null(store);
	return err;
}

#define assert_says(err, part)                                     \
	do {                                                           \
		if (!strstr((err).message, (part)))                        \
			fail_msg("'%s' is not in: %s", (part), (err).message); \
	} while (0)

static int64_t
add(struct kr_store *store, const char *type, const char *session, const char *data)
{
	struct kr_event event = { .ms = 7, .type = type, .session = session, .data = data };
	struct kr_error err = { 0 };

	if (kr_store_add_event(store, &event, &err) < 0)
		fail_msg("%s", err.message);
	return event.seq;
}

/* What a query gave: its numbers, as text. */
struct seen {
	char text[256];
	size_t used;
	long stop_after, n;
	int64_t last;
	bool is_rising;
};

static int
see(void *context, const struct kr_event *event)
{
	struct seen *seen = context;

	if (seen->used < sizeof(seen->text) - 24)
		seen->used += (size_t)snprintf(seen->text + seen->used, sizeof(seen->text) - seen->used, "%s%lld",
			seen->used ? " " : "", (long long)event->seq);
	seen->is_rising = (seen->n == 0 || seen->is_rising) && event->seq > seen->last;
	seen->last = event->seq;
	seen->n++;
	return seen->n == seen->stop_after ? -1 : 0;
}

static struct seen
ask(struct kr_store *store, struct kr_event_query query)
{
	struct seen seen = { 0 };
	struct kr_error err = { 0 };
	long n = kr_store_events(store, &query, see, &seen, &err);

	if (n < 0)
		fail_msg("%s", err.message);
	assert_int_equal(n, seen.n);
	return seen;
}

static long
count(struct place *p)
{
	struct kr_store *store = open_store(p, KR_STORE_READ);
	struct seen seen = ask(store, (struct kr_event_query){ 0 });

	kr_store_close(store);
	return seen.n;
}

/* Runs f in a process of its own, which must end well. */
static pid_t
in_child(void (*f)(struct place *, int), struct place *p, int n)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		f(p, n);
		_exit(0);
	}
	return pid;
}

static void
wait_well(pid_t pid)
{
	int status = -1;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status)
		fail_msg("a child ended with status %#x", (unsigned)status);
}

/* In a child a failed assertion of cmocka would go on in the parent's tests. */
#define must(cond)                                               \
	do {                                                         \
		if (!(cond)) {                                           \
			fprintf(stderr, "# line %d: %s\n", __LINE__, #cond); \
			_exit(1);                                            \
		}                                                        \
	} while (0)

/* ---- events ---- */

static void
events_are_numbered_and_found(void **state)
{
	struct place *p = *state;
	struct kr_store *store = open_store(p, KR_STORE_WRITE), *reader;
	struct kr_event event = {
		.ms = UINT64_MAX, .type = "b", .item = "i", .session = "s2", .data = "{\"k\": \"\u00e9\"}"
	};
	struct kr_error err = { 0 };

	assert_int_equal(add(store, "a", "s1", EMPTY), 1);
	assert_int_equal(add(store, "b", "s1", EMPTY), 2);
	assert_int_equal(add(store, "a", NULL, EMPTY), 3);
	assert_int_equal(kr_store_add_event(store, &event, &err), 0);
	assert_int_equal(event.seq, 4);
	assert_int_equal(add(store, "a", "s2", EMPTY), 5);

	reader = open_store(p, KR_STORE_READ);
	assert_string_equal(ask(reader, (struct kr_event_query){ 0 }).text, "1 2 3 4 5");
	assert_string_equal(ask(reader, (struct kr_event_query){ .after = 3 }).text, "4 5");
	assert_string_equal(ask(reader, (struct kr_event_query){ .after = INT64_MAX }).text, "");
	assert_string_equal(ask(reader, (struct kr_event_query){ .after = -9 }).text, "1 2 3 4 5");
	assert_string_equal(ask(reader, (struct kr_event_query){ .type = "a" }).text, "1 3 5");
	assert_string_equal(ask(reader, (struct kr_event_query){ .session = "s1" }).text, "1 2");
	assert_string_equal(ask(reader, (struct kr_event_query){ .item = "i" }).text, "4");
	assert_string_equal(
		ask(reader, (struct kr_event_query){ .type = "a", .session = "s2", .after = 2 }).text, "5");
	assert_string_equal(ask(reader, (struct kr_event_query){ .newest = 2 }).text, "4 5");
	assert_string_equal(ask(reader, (struct kr_event_query){ .newest = 2, .type = "a" }).text, "3 5");
	assert_string_equal(ask(reader, (struct kr_event_query){ .newest = 9, .after = 3 }).text, "4 5");

	assert_int_equal(add(store, "a", NULL, EMPTY), 6); /* a reader sees what came after it was opened */
	assert_string_equal(ask(reader, (struct kr_event_query){ .after = 5 }).text, "6");
	kr_store_close(reader);
	kr_store_close(store);
}

static int
compare_fields(void *context, const struct kr_event *event)
{
	const struct kr_event *want = context;

	assert_int_equal(event->ms, want->ms);
	assert_string_equal(event->type, want->type);
	assert_string_equal(event->item, want->item);
	assert_null(event->session);
	assert_string_equal(event->data, want->data);
	return 0;
}

/* CHAN-07: text from outside is data in every place. */
static void
text_of_any_kind_comes_back_as_it_was_CHAN_07(void **state)
{
	struct place *p = *state;
	struct kr_store *store = open_store(p, KR_STORE_WRITE);
	struct kr_event event = { .ms = 1753000000123,
		.type = "x' OR 1=1 --",
		.item = "\"; DROP TABLE events; \033[31m",
		.data = "{\"a\": \"'); DELETE FROM events; --\\u001b\"}" };
	struct kr_event_query q = { .type = event.type };
	struct kr_error err = { 0 };

	add(store, "other", NULL, EMPTY);
	assert_int_equal(kr_store_add_event(store, &event, &err), 0);
	assert_int_equal(kr_store_events(store, &q, compare_fields, &event, &err), 1);
	assert_int_equal(ask(store, (struct kr_event_query){ .session = "' OR '1'='1" }).n, 0);
	assert_int_equal(ask(store, (struct kr_event_query){ .item = event.item }).n, 1);
	assert_int_equal(ask(store, (struct kr_event_query){ 0 }).n, 2);
	kr_store_close(store);
}

static void
what_is_no_event_is_refused(void **state)
{
	static const char *const wrong[] = { "", "[]", "1", "null", "{", "{} {}", "{\"a\": 1,}" };
	struct place *p = *state;
	struct kr_store *store = open_store(p, KR_STORE_WRITE);
	char *large = kr_xcalloc(1, KR_EVENT_DATA_BYTES + 2);
	struct kr_event event = { .seq = -7, .type = "a" };
	struct kr_error err = { 0 };

	for (size_t i = 0; i < KR_COUNT(wrong); i++) {
		event.data = wrong[i];
		err = (struct kr_error){ 0 };
		assert_int_equal(kr_store_add_event(store, &event, &err), -1);
		assert_int_equal(err.code, KR_E_REFUSED);
	}
	event.data = EMPTY;
	event.type = "";
	assert_int_equal(kr_store_add_event(store, &event, &err), -1);
	event.type = "a";
	memset(large, ' ', KR_EVENT_DATA_BYTES + 1);
	memcpy(large, EMPTY, 2);
	event.data = large;
	assert_int_equal(kr_store_add_event(store, &event, &err), -1);
	assert_int_equal(err.code, KR_E_LIMIT);
	assert_int_equal(event.seq, -7);
	assert_int_equal(ask(store, (struct kr_event_query){ 0 }).n, 0);
	large[KR_EVENT_DATA_BYTES] = '\0';
	assert_int_equal(kr_store_add_event(store, &event, &err), 0);
	free(large);
	kr_store_close(store);
}

/* In one transaction and without waiting for the disk: for tests that need many. */
static void
add_many(struct kr_store *store, long n)
{
	assert_int_equal(sqlite3_exec(store->db, "BEGIN", NULL, NULL, NULL), SQLITE_OK);
	for (long i = 0; i < n; i++)
		add(store, i % 2 ? "odd" : "even", "s", EMPTY);
	assert_int_equal(sqlite3_exec(store->db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
}

static void
many_events_come_in_order_and_a_visitor_can_stop(void **state)
{
	struct place *p = *state;
	struct kr_store *store = open_store(p, KR_STORE_WRITE);
	struct seen seen = { .stop_after = 600 };
	struct kr_event_query all = { 0 };
	struct kr_error err = { 0 };

	add_many(store, 2000);
	assert_int_equal(ask(store, all).n, 2000);
	assert_true(ask(store, all).is_rising);
	assert_int_equal(ask(store, (struct kr_event_query){ .type = "odd" }).n, 1000);
	assert_int_equal(ask(store, (struct kr_event_query){ .newest = 700 }).n, 700);
	assert_int_equal(kr_store_events(store, &all, see, &seen, &err), 600);
	assert_int_equal(seen.last, 600);
	kr_store_close(store);
}

static void
a_number_is_never_given_twice(void **state)
{
	struct place *p = *state;
	struct kr_store *store = open_store(p, KR_STORE_WRITE);

	for (int i = 1; i <= 5; i++)
		assert_int_equal(add(store, "a", NULL, EMPTY), i);
	assert_int_equal(
		sqlite3_exec(store->db, "DELETE FROM events WHERE seq > 2", NULL, NULL, NULL), SQLITE_OK);
	kr_store_close(store);
	store = open_store(p, KR_STORE_WRITE);
	assert_int_equal(add(store, "a", NULL, EMPTY), 6);
	kr_store_close(store);
}

struct slow {
	struct place *p;
	off_t wal_bytes;
};

/* A visitor that waits while others write a lot. */
static int
wait_while_others_write(void *context, const struct kr_event *event)
{
	struct slow *slow = context;
	struct kr_store *store = open_store(slow->p, KR_STORE_WRITE);
	struct stat st;

	(void)event;
	assert_int_equal(sqlite3_exec(store->db, "PRAGMA synchronous = OFF", NULL, NULL, NULL), SQLITE_OK);
	for (int i = 0; i < 3000; i++)
		add(store, "a", "s", EMPTY);
	assert_int_equal(stat(below(slow->p, "run/orchestrator.db-wal"), &st), 0);
	slow->wal_bytes = st.st_size;
	kr_store_close(store);
	return -1;
}

static void
a_reader_that_never_finishes_does_not_grow_the_log_LIFE_14(void **state)
{
	struct place *p = *state;
	struct kr_store *store = open_store(p, KR_STORE_WRITE), *reader;
	struct slow slow = { .p = p };
	struct kr_event_query all = { 0 };
	struct kr_error err = { 0 };

	add(store, "a", NULL, EMPTY);
	reader = open_store(p, KR_STORE_READ);
	assert_int_equal(kr_store_events(reader, &all, wait_while_others_write, &slow, &err), 1);
	assert_in_range(slow.wal_bytes, 1, 8 << 20);
	/* The control: an open reading transaction does grow it. */
	assert_int_equal(
		sqlite3_exec(reader->db, "BEGIN; SELECT count(*) FROM events", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(kr_store_events(store, &all, wait_while_others_write, &slow, &err), 1);
	assert_true(slow.wal_bytes > 8 << 20);
	kr_store_close(reader);
	kr_store_close(store);
}

/* ---- processes ---- */

static int report_fd;

static void
write_until_killed(struct place *p, int n)
{
	struct kr_store *store = NULL;

	(void)n;
	must(kr_store_open(below(p, "run"), KR_STORE_WRITE, &store, NULL) == 0);
	for (;;) {
		struct kr_event event = {
			.type = "a", .session = "s", .data = "{\"text\": \"some more of it to fill pages with\"}"
		};

		must(kr_store_add_event(store, &event, NULL) == 0);
		must(write(report_fd, &event.seq, sizeof(event.seq)) == sizeof(event.seq));
	}
}

/* Reads at most `max` acknowledged numbers into a table; returns how many came. */
enum { SEQ_MAX = 1 << 20 };
static long
read_acknowledged(int fd, long max, uint8_t *is_acknowledged)
{
	int64_t seq;
	long n = 0;

	for (; n < max && read(fd, &seq, sizeof(seq)) == sizeof(seq); n++) {
		assert_in_range(seq, 1, SEQ_MAX - 1);
		is_acknowledged[seq] = 1;
	}
	return n;
}

static int
forget(void *context, const struct kr_event *event)
{
	uint8_t *is_acknowledged = context;

	is_acknowledged[event->seq] = 0;
	return 0;
}

static void
an_acknowledged_event_outlives_kill_9_LIFE_01(void **state)
{
	struct place *p = *state;
	uint8_t *is_acknowledged = kr_xcalloc(1, SEQ_MAX);
	struct kr_event_query all = { 0 };
	struct kr_error err = { 0 };
	long acknowledged = 0, stored = 0;

	srand(20250720);
	for (int round = 0; round < 40; round++) {
		struct kr_store *store;
		int fds[2], status;
		pid_t pid;

		assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
		(void)fcntl(fds[1], F_SETPIPE_SZ, 1 << 20);
		report_fd = fds[1];
		pid = in_child(write_until_killed, p, 0);
		(void)close(fds[1]);
		if (round % 4) /* else at any time, while it opens as well */
			acknowledged += read_acknowledged(fds[0], 1 + rand() % 12, is_acknowledged);
		(void)poll(NULL, 0, rand() % (round % 4 ? 4 : 30));
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		acknowledged += read_acknowledged(fds[0], SEQ_MAX, is_acknowledged);
		(void)close(fds[0]);
		if (access(below(p, "run/orchestrator.db"), F_OK) < 0)
			continue;                                                      /* killed before it had begun */
		store = open_store(p, round % 2 ? KR_STORE_READ : KR_STORE_WRITE); /* recovery by either */
		stored = kr_store_events(store, &all, forget, is_acknowledged, &err);
		kr_store_close(store);
		assert_true(
			stored >= acknowledged); /* one more each time at most: written, but killed before telling */
		assert_in_range(stored - acknowledged, 0, round + 1);
	}
	for (size_t seq = 0; seq < SEQ_MAX; seq++)
		assert_int_equal(is_acknowledged[seq], 0);
	assert_true(acknowledged > 40);
	free(is_acknowledged);
}

static void
write_some(struct place *p, int n)
{
	struct kr_store *store = NULL;
	struct kr_error err = { 0 };
	int64_t last = 0;

	if (kr_store_open(below(p, "run"), KR_STORE_WRITE, &store, &err) < 0)
		fprintf(stderr, "# %s\n", err.message);
	must(store);
	for (int i = 0; i < n; i++) {
		struct kr_event event = { .type = "a", .data = EMPTY };

		if (kr_store_add_event(store, &event, &err) < 0)
			fprintf(stderr, "# %s\n", err.message);
		must(event.seq > last);
		last = event.seq;
	}
	kr_store_close(store);
}

static void
writers_at_once_wait_for_each_other(void **state)
{
	struct place *p = *state;
	pid_t pids[4];

	for (size_t i = 0; i < KR_COUNT(pids); i++)
		pids[i] = in_child(write_some, p, 150);
	for (size_t i = 0; i < KR_COUNT(pids); i++)
		wait_well(pids[i]);
	assert_int_equal(count(p), 600);
}

/* The first of all opens makes the file, its log and its tables; here they are eight at once. */
static void
the_first_openers_at_once_make_one_store(void **state)
{
	struct place *p = *state;

	for (int round = 0; round < 8; round++) {
		pid_t pids[8];

		sh(p, "rm -rf run");
		for (size_t i = 0; i < KR_COUNT(pids); i++)
			pids[i] = in_child(write_some, p, 2);
		for (size_t i = 0; i < KR_COUNT(pids); i++)
			wait_well(pids[i]);
		assert_int_equal(count(p), 16);
		sh(p, "test ! -e run/orchestrator.db.before-1");
	}
}

static void
try_to_write_at_once(struct place *p, int n)
{
	sqlite3 *db = NULL;

	must(sqlite3_open(below(p, "run/orchestrator.db"), &db) == SQLITE_OK);
	must(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == n);
	(void)sqlite3_close(db);
}

/* A process that opens and closes the store a second time keeps the locks of the first. */
static void
opening_again_keeps_the_locks(void **state)
{
	struct place *p = *state;
	struct kr_store *store = open_store(p, KR_STORE_WRITE);

	assert_int_equal(sqlite3_exec(store->db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	kr_store_close(open_store(p, KR_STORE_READ));
	wait_well(in_child(try_to_write_at_once, p, SQLITE_BUSY));
	assert_int_equal(sqlite3_exec(store->db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	wait_well(in_child(try_to_write_at_once, p, SQLITE_OK));
	kr_store_close(store);
}

static void
a_writer_waits_some_seconds_and_then_says_for_whom(void **state)
{
	struct place *p = *state;
	struct kr_store *holder = open_store(p, KR_STORE_WRITE), *store = open_store(p, KR_STORE_WRITE);
	struct kr_event event = { .type = "a", .data = EMPTY };
	struct kr_error err = { 0 };

	assert_int_equal(sqlite3_exec(holder->db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(kr_store_add_event(store, &event, &err), -1);
	assert_int_equal(err.code, KR_E_BUSY);
	assert_says(err, "another process");
	assert_int_equal(sqlite3_exec(holder->db, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(kr_store_add_event(store, &event, &err), 0);
	kr_store_close(store);
	kr_store_close(holder);
}

/* ---- versions ---- */

/* A later kraft's schema: ours and one step more. */
static const struct kr_schema *
next_schema(const char *step)
{
	static const char *steps[8];
	static struct kr_schema next;

	assert_true((size_t)kr_store_schema.version + 1 < KR_COUNT(steps));
	for (int i = 0; i < kr_store_schema.version; i++)
		steps[i] = kr_store_schema.steps[i];
	steps[kr_store_schema.version] = step;
	next = (struct kr_schema){ .steps = steps, .version = kr_store_schema.version + 1 };
	return &next;
}

static const char *
file_before(struct place *p, int version)
{
	return below(p, kr_arena_printf(&p->arena, "run/orchestrator.db.before-%d", version));
}

static void
an_older_store_is_migrated_and_a_copy_kept(void **state)
{
	struct place *p = *state;
	const struct kr_schema *next = next_schema("ALTER TABLE events ADD COLUMN more TEXT");
	struct kr_store *store = open_store(p, KR_STORE_WRITE);
	struct kr_error err;
	struct stat st;

	assert_int_equal(access(file_before(p, 1), F_OK), -1); /* nothing was there to copy */
	add(store, "a", NULL, EMPTY);
	add(store, "a", NULL, EMPTY);
	err = open_fails(p, KR_STORE_READ, next); /* a reader never migrates */
	assert_int_equal(err.code, KR_E_UNSUPPORTED);
	sh(p, "echo left over from a killed one >run/orchestrator.db.before-%d.part", next->version);
	kr_store_close(open_as(
		p, KR_STORE_WRITE, next)); /* while another one has it open, with its log not yet in the file */
	kr_store_close(store);

	store = open_as(p, KR_STORE_WRITE, next);
	assert_int_equal(ask(store, (struct kr_event_query){ 0 }).n, 2);
	assert_int_equal(sqlite3_exec(store->db, "SELECT more FROM events", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(add(store, "a", NULL, EMPTY), 3);
	kr_store_close(store);

	assert_int_equal(stat(file_before(p, next->version), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	sh(p, "mkdir -m 700 old && mv '%s' old/orchestrator.db && mv run new && mv old run",
		file_before(p, next->version));
	assert_int_equal(count(p), 2); /* the copy is a store of the version before */
	sh(p, "test -z \"$(ls new | grep -F part)\"");
}

static void
a_migration_that_fails_leaves_the_old_store(void **state)
{
	struct place *p = *state;
	const struct kr_schema *next =
		next_schema("CREATE TABLE more (x INTEGER) STRICT; INSERT INTO nowhere VALUES (1)");
	struct kr_store *store = open_store(p, KR_STORE_WRITE);
	struct kr_error err;

	add(store, "a", NULL, EMPTY);
	kr_store_close(store);
	err = open_fails(p, KR_STORE_WRITE, next);
	assert_says(err, "no such table: nowhere");
	store = open_store(p, KR_STORE_WRITE);
	assert_int_equal(sqlite3_exec(store->db, "SELECT x FROM more", NULL, NULL, NULL), SQLITE_ERROR);
	assert_int_equal(add(store, "a", NULL, EMPTY), 2);
	kr_store_close(store);
}

static void
a_newer_store_is_refused_and_both_versions_named_LIFE_15(void **state)
{
	struct place *p = *state;
	const struct kr_schema *next = next_schema("CREATE TABLE more (x INTEGER) STRICT");
	char newer[64], own[64];

	snprintf(newer, sizeof(newer), "version %d, newer", next->version);
	snprintf(own, sizeof(own), "knows version %d", kr_store_schema.version);
	kr_store_close(open_as(p, KR_STORE_WRITE, next));
	for (int mode = KR_STORE_READ; mode <= KR_STORE_WRITE; mode++) {
		struct kr_error err = open_fails(p, (enum kr_store_mode)mode, &kr_store_schema);

		assert_int_equal(err.code, KR_E_UNSUPPORTED);
		assert_says(err, newer);
		assert_says(err, own);
	}
	kr_store_close(open_as(p, KR_STORE_WRITE, next));
}

static void
a_reader_makes_nothing(void **state)
{
	struct place *p = *state;

	assert_int_equal(open_fails(p, KR_STORE_READ, &kr_store_schema).code, KR_E_NOT_FOUND);
	sh(p, "test ! -e run && mkdir -m 700 run");
	assert_int_equal(open_fails(p, KR_STORE_READ, &kr_store_schema).code, KR_E_NOT_FOUND);
	sh(p, "test -z \"$(ls -A run)\" && umask 077 && : >run/orchestrator.db");
	assert_int_equal(open_fails(p, KR_STORE_READ, &kr_store_schema).code, KR_E_NOT_FOUND);
	kr_store_close(open_store(p, KR_STORE_WRITE)); /* the same empty file does for a writer */
	assert_int_equal(count(p), 0);
}

/* ---- the place ---- */

static void
every_file_is_closed_to_others(void **state)
{
	struct place *p = *state;
	mode_t old = umask(0);
	struct kr_store *store = open_store(p, KR_STORE_WRITE);

	add(store, "a", NULL, EMPTY);
	(void)umask(old);
	sh(p, "test \"$(cd run && stat -c '%%n %%a' * | tr '\\n' ' ')\" ="
		  " 'orchestrator.db 600 orchestrator.db-shm 600 orchestrator.db-wal 600 orchestrator.reserve 600 '");
	sh(p, "test $(stat -c %%a run) = 700");
	kr_store_close(store);
}

static void
refused_place(struct place *p, const char *change, const char *undo, const char *says)
{
	for (int mode = KR_STORE_READ; mode <= KR_STORE_WRITE; mode++) {
		struct kr_error err;

		sh(p, "%s", change);
		err = open_fails(p, (enum kr_store_mode)mode, &kr_store_schema);
		assert_int_equal(err.code, KR_E_REFUSED);
		assert_says(err, says);
		assert_true(err.hint[0] || strstr(says, "leads through"));
		sh(p, "%s", undo);
		kr_store_close(open_store(p, (enum kr_store_mode)mode)); /* the control: just that was wrong */
	}
}

static void
files_that_are_not_ours_alone_are_refused(void **state)
{
	struct place *p = *state;
	struct kr_store *store = open_store(p, KR_STORE_WRITE);

	add(store, "a", NULL, EMPTY);
	kr_store_close(store);
	refused_place(
		p, "chmod 640 run/orchestrator.db", "chmod 600 run/orchestrator.db", "open to others (mode 640)");
	refused_place(p, "chmod 602 run/orchestrator.db", "chmod 600 run/orchestrator.db", "open to others");
	refused_place(p, "mv run/orchestrator.db other && ln -s ../other run/orchestrator.db",
		"rm run/orchestrator.db && mv other run/orchestrator.db", "a symbolic link");
	refused_place(p, "ln run/orchestrator.db other", "rm other", "a hard link");
	refused_place(p, "mv run/orchestrator.db other && mkfifo -m 600 run/orchestrator.db",
		"rm run/orchestrator.db && mv other run/orchestrator.db", "no regular file");
	refused_place(
		p, "ln -s ../other run/orchestrator.db-wal", "rm run/orchestrator.db-wal", "a symbolic link");
	refused_place(p, "umask 077; : >run/orchestrator.db-shm && chmod 644 run/orchestrator.db-shm",
		"rm run/orchestrator.db-shm", "open to others");
	refused_place(
		p, "ln -s ../other run/orchestrator.db-journal", "rm run/orchestrator.db-journal", "a symbolic link");
	refused_place(p, "chmod 770 run", "chmod 700 run", "can be written by others");
	refused_place(
		p, "mv run other && ln -s other run", "rm run && mv other run", "leads through a symbolic link");
	if (geteuid() == 0) {
		refused_place(
			p, "chown 65534 run/orchestrator.db", "chown 0 run/orchestrator.db", "belongs to another user");
		refused_place(p, "chown 65534 run", "chown 0 run", "belongs to another user");
	}
	sh(p, "test ! -e other");
	assert_int_equal(count(p), 1);
}

static void
network_file_systems_are_told_from_local_ones(void **state)
{
	static const char *const networks[] = { "nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "fuse.rclone",
		"fuse", "fuse.s3fs", "ceph", "virtiofs", "afs" };
	static const char *const local[] = { "ext4", "xfs", "btrfs", "tmpfs", "zfs", "overlay", "fuseblk", "f2fs",
		"fuse.gocryptfs", "ecryptfs", "" };
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	kr_auto_fd int proc = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);

	(void)state;
	for (size_t i = 0; i < KR_COUNT(networks); i++)
		assert_true(kr_store_is_network_type(networks[i]));
	for (size_t i = 0; i < KR_COUNT(local); i++)
		assert_false(kr_store_is_network_type(local[i]));
	assert_string_equal(kr_file_system_type(&arena, proc), "proc");
}

static int
first_number(void *context, int n, char **values, char **names)
{
	(void)n;
	(void)names;
	*(long *)context = strtol(values[0], NULL, 10);
	return 0;
}

/* LIFE-05: a power cut cannot be had here; what SQLite promises for it hangs on these. */
static void
the_settings_that_the_promises_hang_on_LIFE_05(void **state)
{
	static const struct {
		const char *sql;
		long want;
	} settings[] = { { "PRAGMA synchronous", 2 },
		{ "SELECT journal_mode = 'wal' FROM pragma_journal_mode", 1 }, { "PRAGMA trusted_schema", 0 },
		{ "PRAGMA cell_size_check", 1 }, { "PRAGMA busy_timeout", 5000 }, { "PRAGMA mmap_size", 0 },
		{ "SELECT strict FROM pragma_table_list WHERE name = 'events'", 1 } };
	struct kr_store *store = open_store(*state, KR_STORE_WRITE);
	int is_defensive = 0;

	for (size_t i = 0; i < KR_COUNT(settings); i++) {
		long got = -1;

		assert_int_equal(sqlite3_exec(store->db, settings[i].sql, first_number, &got, NULL), SQLITE_OK);
		assert_int_equal(got, settings[i].want);
	}
	assert_int_equal(sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, -1, &is_defensive), SQLITE_OK);
	assert_int_equal(is_defensive, 1);
	kr_store_close(store);
}

/* ---- damage ---- */

static struct kr_error
fails_and_changes_nothing(struct place *p, enum kr_store_mode mode)
{
	struct kr_error err;

	sh(p, "(cd run && cat orchestrator.db*) | cksum >before");
	err = open_fails(p, mode, &kr_store_schema);
	sh(p, "(cd run && cat orchestrator.db*) | cksum | cmp - before");
	return err;
}

static void
a_damaged_store_is_named_and_left_as_it_is(void **state)
{
	static const char *const damages[] = {
		"dd if=/dev/urandom of=run/orchestrator.db bs=16 count=1 conv=notrunc",
		"dd if=/dev/zero of=run/orchestrator.db bs=4096 count=1 conv=notrunc",
		"truncate -s 100 run/orchestrator.db",
		"echo not a database at all >run/orchestrator.db",
	};
	struct place *p = *state;
	struct kr_store *store = open_store(p, KR_STORE_WRITE);

	add_many(store, 500);
	kr_store_close(store);
	sh(p, "cp -p run/orchestrator.db good");
	for (size_t i = 0; i < KR_COUNT(damages) * 2; i++) {
		struct kr_error err;

		sh(p, "cp -p good run/orchestrator.db && { %s; } 2>said", damages[i / 2]);
		err = fails_and_changes_nothing(p, i % 2 ? KR_STORE_READ : KR_STORE_WRITE);
		assert_int_equal(err.code, KR_E_SYSTEM);
		assert_says(err, "run/orchestrator.db");
		assert_says(err, "damaged");
		assert_non_null(strstr(err.hint, ".recover"));
	}
	sh(p, "cp -p good run/orchestrator.db");
	assert_int_equal(count(p), 500);
}

/* Damage that only shows when the page is read. */
static void
a_damaged_page_is_an_error_and_no_event_LIFE_15(void **state)
{
	struct place *p = *state;
	struct kr_store *store = open_store(p, KR_STORE_WRITE);
	struct kr_event_query all = { 0 };
	struct kr_error err = { 0 };
	struct seen seen = { 0 };

	add_many(store, 5000);
	kr_store_close(store);
	sh(p, "dd if=/dev/urandom of=run/orchestrator.db bs=4096 seek=60 count=60 conv=notrunc 2>said");
	store = open_store(p, KR_STORE_READ);
	assert_int_equal(kr_store_events(store, &all, see, &seen, &err), -1);
	assert_int_equal(err.code, KR_E_SYSTEM);
	assert_says(err, "damaged");
	kr_store_close(store);
}

static void
an_empty_file_beside_a_full_log_is_damage_LIFE_15(void **state)
{
	struct place *p = *state;
	struct kr_store *store = open_store(p, KR_STORE_WRITE);
	struct kr_error err;

	add(store, "a", NULL, EMPTY);
	sh(p, "cp -a run kept");
	kr_store_close(store);
	sh(p, "rm -rf run && mv kept run && cp -p run/orchestrator.db good && truncate -s 0 run/orchestrator.db");
	err = fails_and_changes_nothing(p, KR_STORE_WRITE);
	assert_says(err, "damaged");
	sh(p, "cp -p good run/orchestrator.db");
	assert_int_equal(count(p), 1);
}

static void
another_programs_database_is_refused(void **state)
{
	struct place *p = *state;
	sqlite3 *db = NULL;
	struct kr_error err;

	sh(p, "mkdir -m 700 run");
	assert_int_equal(sqlite3_open(below(p, "run/orchestrator.db"), &db), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(db, "CREATE TABLE t (x); INSERT INTO t VALUES (1)", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	sh(p, "chmod 600 run/orchestrator.db");
	err = fails_and_changes_nothing(p, KR_STORE_WRITE);
	assert_int_equal(err.code, KR_E_REFUSED);
	assert_says(err, "another program's");
}

/* ---- a full disk ---- */

static bool
is_limit(const struct kr_error *err)
{
	if (err->code != KR_E_LIMIT)
		fprintf(stderr, "# %s\n", err->message);
	return err->code == KR_E_LIMIT && err->hint[0];
}

static void
limit_files(rlim_t bytes)
{
	struct rlimit limit = { .rlim_cur = bytes, .rlim_max = RLIM_INFINITY };

	if (getrlimit(RLIMIT_FSIZE, &limit) < 0)
		_exit(1);
	limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
	must(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

static long
count_in_child(struct kr_store *store)
{
	struct kr_event_query all = { 0 };
	struct seen seen = { 0 };

	return kr_store_events(store, &all, see, &seen, NULL);
}

/* Opens and adds until there is no room, gets room, goes on: nothing that was acknowledged is missing. */
static void
run_out_of_room(struct place *p, int kib)
{
	struct kr_store *store = NULL;
	struct kr_error err = { 0 };
	struct kr_event event = { .type = "a", .data = EMPTY };
	long added = 0;

	must(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	limit_files((rlim_t)kib << 10);
	if (kr_store_open(below(p, "run"), KR_STORE_WRITE, &store, &err) < 0)
		must(is_limit(&err));
	while (store && added < 400 && kr_store_add_event(store, &event, &err) == 0)
		added++;
	must(!store || added == 400 || is_limit(&err));
	if (store && added < 400)
		must(kr_store_add_event(store, &event, NULL) < 0); /* the same again */
	limit_files(RLIM_INFINITY);
	if (!store)
		must(kr_store_open(below(p, "run"), KR_STORE_WRITE, &store, &err) == 0);
	must(count_in_child(store) == added);
	must(kr_store_add_event(store, &event, &err) == 0);
	must(count_in_child(store) == added + 1);
	kr_store_close(store);
	must(kr_store_open(below(p, "run"), KR_STORE_READ, &store, NULL) == 0);
	must(count_in_child(store) == added + 1);
	kr_store_close(store);
	must(kib > 8 || added == 0);
	must(kib < 4096 || added == 400);
}

static void
no_room_at_any_point_is_a_clean_error_LIFE_06(void **state)
{
	static const int kib[] = { 0, 1, 3, 4, 5, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 64, 100, 128, 200,
		400, 4096 };
	struct place *p = *state;

	for (size_t i = 0; i < KR_COUNT(kib); i++) {
		sh(p, "rm -rf run");
		wait_well(in_child(run_out_of_room, p, kib[i]));
	}
}

static void
migrate_without_room(struct place *p, int kib)
{
	const struct kr_schema *next = next_schema("CREATE TABLE more (x INTEGER) STRICT");
	struct kr_store *store = NULL;
	struct kr_error err = { 0 };

	must(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	limit_files((rlim_t)kib << 10);
	must(kr_store_open_as(below(p, "run"), KR_STORE_WRITE, next, &store, &err) < 0 && is_limit(&err));
	must(access(file_before(p, next->version), F_OK) < 0);
	must(kr_store_open(below(p, "run"), KR_STORE_READ, &store, &err) == 0); /* still of the old version */
	must(count_in_child(store) == 3000);
	kr_store_close(store);
}

static void
a_migration_without_room_leaves_the_old_store_LIFE_06(void **state)
{
	struct place *p = *state;
	struct kr_store *store = open_store(p, KR_STORE_WRITE);

	add_many(store, 3000);
	kr_store_close(store);
	wait_well(in_child(migrate_without_room, p, 40));
	sh(p, "test -z \"$(ls run | grep -F part)\"");
	kr_store_close(open_as(p, KR_STORE_WRITE, next_schema("CREATE TABLE more (x INTEGER) STRICT")));
}

static bool
write_file(const char *path, const char *text)
{
	kr_auto_fd int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* Mounts of our own; whoever is not root becomes root of a new user namespace for that. */
static bool
enter_own_mounts(void)
{
	char users[48], groups[48];

	snprintf(users, sizeof(users), "0 %u 1", (unsigned)geteuid());
	snprintf(groups, sizeof(groups), "0 %u 1", (unsigned)getegid());
	if (geteuid() == 0)
		return unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
	return unshare(CLONE_NEWNS | CLONE_NEWUSER) == 0 && write_file("/proc/self/uid_map", users) &&
		   write_file("/proc/self/setgroups", "deny") && write_file("/proc/self/gid_map", groups);
}

enum { CANNOT_MOUNT = 77 };

/* A real full disk: a file system of 400 KiB, filled up by somebody else. */
static void
fill_a_small_disk(struct place *p, int n)
{
	struct kr_store *store = NULL;
	struct kr_event event = { .type = "a", .data = EMPTY };
	struct kr_error err = { 0 };
	long added = 0;

	(void)n;
	must(mkdir(below(p, "run"), 0700) == 0);
	if (!enter_own_mounts() || mount("tmpfs", below(p, "run"), "tmpfs", 0, "size=400k,mode=700") < 0)
		_exit(CANNOT_MOUNT);
	if (kr_store_open(below(p, "run"), KR_STORE_WRITE, &store, &err) < 0)
		fprintf(stderr, "# %s\n", err.message);
	must(store);
	must(kr_store_add_event(store, &event, &err) == 0);
	must(try_sh(p, "cat /dev/zero >run/ballast 2>/dev/null") != 0);
	while (kr_store_add_event(store, &event, &err) == 0)
		added++;
	must(is_limit(&err));
	must(count_in_child(store) == added + 1);
	must(unlink(below(p, "run/ballast")) == 0);
	must(kr_store_add_event(store, &event, &err) == 0);
	must(count_in_child(store) == added + 2);
	kr_store_close(store);
}

static void
a_full_file_system_is_a_clean_error_LIFE_06(void **state)
{
	int status = -1;
	pid_t pid = in_child(fill_a_small_disk, *state, 0);

	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_MOUNT) {
		print_message("# skip: this system lets no user mount a small file system\n");
		skip();
	}
	assert_int_equal(status, 0);
}

/* A larger one, on which there is room for a reserve. */
static void
live_on_the_reserve(struct place *p, int n)
{
	struct kr_store *store = NULL;
	struct kr_event event = { .type = "a", .data = EMPTY };
	struct kr_error err = { 0 };
	long added = 0;

	(void)n;
	must(mkdir(below(p, "run"), 0700) == 0);
	if (!enter_own_mounts() || mount("tmpfs", below(p, "run"), "tmpfs", 0, "size=32m,mode=700") < 0)
		_exit(CANNOT_MOUNT);
	must(kr_store_open(below(p, "run"), KR_STORE_WRITE, &store, &err) == 0);
	kr_store_close(store);
	sh(p, "test $(stat -c %%b run/orchestrator.reserve) -ge 8192");
	sh(p, "mv run/orchestrator.reserve run/aside");
	must(try_sh(p, "cat /dev/zero >run/ballast 2>/dev/null") != 0);
	must(
		kr_store_open(below(p, "run"), KR_STORE_WRITE, &store, &err) < 0 && is_limit(&err)); /* the control */
	sh(p, "mv run/aside run/orchestrator.reserve");
	err = (struct kr_error){ 0 };
	must(kr_store_open(below(p, "run"), KR_STORE_WRITE, &store, &err) == 0);
	while (added < 100000 && kr_store_add_event(store, &event, &err) == 0)
		added++;
	must(added >= 500 && is_limit(&err));
	must(count_in_child(store) == added);
	sh(p, "test $(stat -c %%s run/orchestrator.reserve) = 0 && rm run/ballast");
	kr_store_close(store);
	must(kr_store_open(below(p, "run"), KR_STORE_WRITE, &store, &err) == 0);
	sh(p, "test $(stat -c %%b run/orchestrator.reserve) -ge 8192");
	kr_store_close(store);
}

static void
a_reserve_keeps_room_for_events_on_a_full_disk_LIFE_06(void **state)
{
	int status = -1;
	pid_t pid = in_child(live_on_the_reserve, *state, 0);

	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_MOUNT) {
		print_message("# skip: this system lets no user mount a small file system\n");
		skip();
	}
	assert_int_equal(status, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		place_test(events_are_numbered_and_found),
		place_test(text_of_any_kind_comes_back_as_it_was_CHAN_07),
		place_test(what_is_no_event_is_refused),
		place_test(many_events_come_in_order_and_a_visitor_can_stop),
		place_test(a_number_is_never_given_twice),
		place_test(a_reader_that_never_finishes_does_not_grow_the_log_LIFE_14),
		place_test(an_acknowledged_event_outlives_kill_9_LIFE_01),
		place_test(writers_at_once_wait_for_each_other),
		place_test(the_first_openers_at_once_make_one_store),
		place_test(opening_again_keeps_the_locks),
		place_test(a_writer_waits_some_seconds_and_then_says_for_whom),
		place_test(an_older_store_is_migrated_and_a_copy_kept),
		place_test(a_migration_that_fails_leaves_the_old_store),
		place_test(a_newer_store_is_refused_and_both_versions_named_LIFE_15),
		place_test(a_reader_makes_nothing),
		place_test(every_file_is_closed_to_others),
		place_test(files_that_are_not_ours_alone_are_refused),
		cmocka_unit_test(network_file_systems_are_told_from_local_ones),
		place_test(the_settings_that_the_promises_hang_on_LIFE_05),
		place_test(a_damaged_store_is_named_and_left_as_it_is),
		place_test(a_damaged_page_is_an_error_and_no_event_LIFE_15),
		place_test(an_empty_file_beside_a_full_log_is_damage_LIFE_15),
		place_test(another_programs_database_is_refused),
		place_test(no_room_at_any_point_is_a_clean_error_LIFE_06),
		place_test(a_migration_without_room_leaves_the_old_store_LIFE_06),
		place_test(a_full_file_system_is_a_clean_error_LIFE_06),
		place_test(a_reserve_keeps_room_for_events_on_a_full_disk_LIFE_06),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
