/* work_store: items, marks, sessions and threads in the store; one that an older kraft made; transactions. */
#include "repo.h"

#include "store/internal.h"
#include "store/work.h"

static struct kr_store *
open_as(struct place *p, const struct kr_schema *schema)
{
	struct kr_store *store = NULL;
	struct kr_error err = { 0 };

	if (kr_store_open_as(below(p, "run"), KR_STORE_WRITE, schema, &store, &err) < 0)
		fail_msg("%s", err.message);
	return store;
}

static struct kr_item_row
row_of(const char *id)
{
	return (struct kr_item_row){ .id = id,
		.title = "T",
		.description = "",
		.repo = "/r",
		.chain_id = "c",
		.chain = "x",
		.policy = "",
		.status = "paused",
		.stop = "",
		.reason = "",
		.place = "",
		.progress = -1,
		.run = 1,
		.created_ms = 5,
		.changed_ms = 6 };
}

static void
file_item(struct kr_store *store, const char *id)
{
	struct kr_item_row row = row_of(id);
	struct kr_error err = { 0 };

	if (kr_store_item_add(store, &row, &err) < 0)
		fail_msg("%s", err.message);
}

static void
an_item_comes_back_as_it_was_filed(void **state)
{
	struct place *p = *state;
	struct kr_store *store = open_as(p, &kr_store_schema);
	struct kr_item_row row = row_of("add-json-1234"), got;
	struct kr_error err = { 0 };

	row.base = "main";
	row.worker = "[\"a\",\"b c\"]";
	assert_int_equal(kr_store_item_add(store, &row, &err), 0);
	assert_int_equal(kr_store_item_get(&p->arena, store, "add-json-1234", &got, &err), 0);
	assert_string_equal(got.worker, row.worker);
	assert_string_equal(got.base, "main");
	assert_null(got.steer);
	assert_int_equal(got.progress, -1);
	assert_int_equal(got.created_ms, 5);
	got.status = "needs_human";
	got.stop = "gate";
	got.steer = "say 'it'; --";
	got.progress = 3;
	got.title = "never changes";
	assert_int_equal(kr_store_item_set(store, &got, &err), 0);
	assert_int_equal(kr_store_item_get(&p->arena, store, "add", &got, &err), 0);
	assert_string_equal(got.steer, "say 'it'; --");
	assert_string_equal(got.title, "T");
	assert_int_equal(got.progress, 3);
	got.id = "none";
	assert_int_equal(kr_store_item_set(store, &got, &err), -1);
	assert_int_equal(err.code, KR_E_NOT_FOUND);
	kr_store_close(store);
}

static void
an_id_may_be_shortened_as_long_as_it_is_one(void **state)
{
	struct place *p = *state;
	struct kr_store *store = open_as(p, &kr_store_schema);
	struct kr_error err = { 0 };
	struct kr_item_row got;

	file_item(store, "fix-a-0001");
	file_item(store, "fix-a-0001-more");
	file_item(store, "fix-b-0002");
	assert_int_equal(kr_store_item_get(&p->arena, store, "fix-b", &got, &err), 0);
	assert_int_equal(kr_store_item_get(&p->arena, store, "fix-a-0001", &got, &err), 0); /* whole wins */
	assert_string_equal(got.id, "fix-a-0001");
	for (const char *const *id = (const char *const[]){ "fix", "fix-a-", NULL }; *id; id++) {
		assert_int_equal(kr_store_item_get(&p->arena, store, *id, &got, &err), -1);
		assert_int_equal(err.code, KR_E_USAGE);
		assert_non_null(strstr(err.hint, "'fix-a-0001', 'fix-a-0001-more'"));
	}
	for (const char *const *id = (const char *const[]){ "", "%", "fix_b", "FIX-B", "fix-b-00022", NULL }; *id;
		 id++) {
		assert_int_equal(kr_store_item_get(&p->arena, store, *id, &got, &err), -1);
		assert_int_equal(err.code, KR_E_NOT_FOUND);
	}
	kr_store_close(store);
}

static void
a_list_can_leave_out_those_that_have_ended(void **state)
{
	static const char *const statuses[] = { "completed", "paused", "cancelled", "abandoned", "active" };
	static const char *const ended[] = { "completed", "cancelled", "abandoned" };
	struct place *p = *state;
	struct kr_store *store = open_as(p, &kr_store_schema);
	struct kr_error err = { 0 };
	struct kr_item_rows rows;

	for (size_t i = 0; i < KR_COUNT(statuses); i++) {
		struct kr_item_row row = row_of(statuses[i]);

		row.status = statuses[i];
		row.created_ms = 10 - i;
		assert_int_equal(kr_store_item_add(store, &row, &err), 0);
	}
	assert_int_equal(kr_store_items_except(&p->arena, store, ended, &rows, &err), 0);
	assert_int_equal(rows.n, 2);
	assert_string_equal(rows.v[0].id, "active"); /* the oldest first */
	assert_string_equal(rows.v[1].id, "paused");
	kr_store_close(store);
}

struct doing {
	struct kr_store *store;
	bool fails;
};

static int
add_two(void *context, struct kr_error *err)
{
	const struct doing *d = context;
	struct kr_event event = { .ms = 1, .type = "x", .item = "i", .data = "{}" };
	const struct kr_mark_row mark = { .path = "a", .kind = "done", .run = 1, .ms = 1 };

	if (kr_store_mark_add(d->store, "i", &mark, err) < 0 || kr_store_add_event(d->store, &event, err) < 0)
		return -1;
	return d->fails ? kr_fail(err, KR_E_REFUSED, "no") : 0;
}

static int
count_event(void *context, const struct kr_event *event)
{
	(void)event;
	++*(int *)context;
	return 0;
}

static void
a_transaction_is_all_or_nothing(void **state)
{
	struct place *p = *state;
	struct kr_store *store = open_as(p, &kr_store_schema);
	struct doing doing = { store, true };
	struct kr_event_query query = { .item = "i" };
	struct kr_error err = { 0 };
	struct kr_mark_rows marks;
	int events = 0;

	file_item(store, "i");
	assert_int_equal(kr_store_transact(store, add_two, &doing, &err), -1);
	assert_string_equal(err.message, "no");
	assert_int_equal(kr_store_marks(&p->arena, store, "i", &marks, &err), 0);
	assert_int_equal(kr_store_events(store, &query, count_event, &events, &err), 0);
	assert_true(marks.n == 0 && events == 0);
	doing.fails = false;
	assert_int_equal(kr_store_transact(store, add_two, &doing, &err), 0);
	assert_int_equal(kr_store_marks(&p->arena, store, "i", &marks, &err), 0);
	assert_int_equal(kr_store_events(store, &query, count_event, &events, &err), 1);
	assert_true(marks.n == 1 && events == 1);
	kr_store_close(store);
}

/* Nothing of an item that there is not. */
static void
what_belongs_to_no_item_is_refused(void **state)
{
	struct place *p = *state;
	struct kr_store *store = open_as(p, &kr_store_schema);
	const struct kr_mark_row mark = { .path = "a", .kind = "done", .run = 1 };
	const struct kr_thread_row thread = { .id = "t", .item = "none", .is_open = true };
	const struct kr_comment_row comment = { .author = "human", .body = "b" };
	struct kr_error err = { 0 };

	assert_int_equal(kr_store_mark_add(store, "none", &mark, &err), -1);
	assert_int_equal(kr_store_thread_add(store, &thread, &err), -1);
	assert_int_equal(kr_store_comment_add(store, "none", &comment, &err), -1);
	kr_store_close(store);
}

static void
sessions_and_threads_come_back_in_order(void **state)
{
	struct place *p = *state;
	struct kr_store *store = open_as(p, &kr_store_schema);
	struct kr_session_row session = {
		.id = "s2", .item = "i", .path = "a", .status = "running", .run = 1, .created_ms = 2
	};
	struct kr_thread_row thread = {
		.id = "t1", .item = "i", .file = "f", .line = 7, .must_fix = true, .is_open = true, .ms = 1
	};
	const struct kr_comment_row comments[] = { { .author = "human", .body = "one" },
		{ .author = "agent", .body = "two", .claim = "fixed" } };
	struct kr_session_rows sessions;
	struct kr_thread_rows threads;
	struct kr_error err = { 0 };

	file_item(store, "i");
	assert_int_equal(kr_store_session_add(store, &session, &err), 0);
	session.id = "s1";
	session.created_ms = 1;
	assert_int_equal(kr_store_session_add(store, &session, &err), 0);
	session.status = "done";
	session.reason = "why";
	session.ended_ms = 9;
	assert_int_equal(kr_store_session_set(store, &session, &err), 0);
	assert_int_equal(kr_store_sessions(&p->arena, store, "i", &sessions, &err), 0);
	assert_int_equal(sessions.n, 2);
	assert_string_equal(sessions.v[0].id, "s1");
	assert_string_equal(sessions.v[0].reason, "why");
	assert_int_equal(sessions.v[0].ended_ms, 9);
	assert_int_equal(sessions.v[1].ended_ms, 0);
	assert_int_equal(kr_store_thread_add(store, &thread, &err), 0);
	for (size_t i = 0; i < KR_COUNT(comments); i++)
		assert_int_equal(kr_store_comment_add(store, "t1", &comments[i], &err), 0);
	assert_int_equal(kr_store_thread_set_open(store, "t1", false, &err), 0);
	assert_int_equal(kr_store_thread_set_open(store, "t2", false, &err), -1);
	assert_int_equal(kr_store_threads(&p->arena, store, "i", &threads, &err), 0);
	assert_true(
		threads.n == 1 && threads.v[0].comment_count == 2 && !threads.v[0].is_open && threads.v[0].must_fix);
	assert_string_equal(threads.v[0].comments[1].claim, "fixed");
	assert_int_equal(threads.v[0].line, 7);
	kr_store_close(store);
}

static void
turns_come_back_by_thread_and_turn_ITM_05(void **state)
{
	struct place *p = *state;
	struct kr_store *store = open_as(p, &kr_store_schema);
	struct kr_session_row session = { .item = "i", .path = "escalation", .status = "pending", .run = 1 };
	struct kr_turn_row turn = {
		.item = "i", .thread = 1, .turn = 2, .is_auto = true, .message = "m", .retry_state = ""
	};
	struct kr_error err = { 0 };
	struct kr_turn_rows rows;
	struct kr_item_row item;

	file_item(store, "i");
	turn.session = "none";
	assert_int_equal(kr_store_turn_add(store, &turn, &err), -1); /* of no session */
	for (const char *const *id = (const char *const[]){ "s2", "s1", NULL }; *id; id++) {
		session.id = turn.session = *id;
		assert_int_equal(kr_store_session_add(store, &session, &err), 0);
		assert_int_equal(kr_store_turn_add(store, &turn, &err), 0);
		turn.turn--;
		turn.is_auto = false;
	}
	turn = (struct kr_turn_row){ .session = "s2", .retry = "{}", .retry_state = "asked" };
	assert_int_equal(kr_store_turn_set(store, &turn, &err), 0);
	turn.session = "s3";
	assert_int_equal(kr_store_turn_set(store, &turn, &err), -1);
	assert_int_equal(kr_store_turns(&p->arena, store, "i", &rows, &err), 0);
	assert_int_equal(rows.n, 2);
	assert_string_equal(rows.v[0].session, "s1");
	assert_null(rows.v[0].retry);
	assert_true(rows.v[1].is_auto && !rows.v[0].is_auto);
	assert_string_equal(rows.v[1].retry_state, "asked");
	assert_string_equal(rows.v[1].message, "m");
	assert_int_equal(kr_store_item_get(&p->arena, store, "i", &item, &err), 0);
	assert_null(item.turn);
	item.turn = "s2";
	assert_int_equal(kr_store_item_set(store, &item, &err), 0);
	assert_int_equal(kr_store_item_get(&p->arena, store, "i", &item, &err), 0);
	assert_string_equal(item.turn, "s2");
	kr_store_close(store);
}

/* One that the kraft before work items made keeps its events, and a copy of it stays. */
static void
an_older_store_is_brought_to_this_version(void **state)
{
	struct place *p = *state;
	const struct kr_schema first = { .steps = kr_store_schema.steps, .version = 1 };
	struct kr_event event = { .ms = 1, .type = "old", .item = "i", .data = "{}" };
	struct kr_event_query query = { .type = "old" };
	struct kr_store *store = open_as(p, &first);
	struct kr_error err = { 0 };
	int events = 0;

	assert_int_equal(kr_store_add_event(store, &event, &err), 0);
	kr_store_close(store);
	store = open_as(p, &kr_store_schema);
	file_item(store, "i");
	assert_int_equal(kr_store_events(store, &query, count_event, &events, &err), 1);
	assert_int_equal(access(kr_arena_printf(&p->arena, "%s.before-%d", below(p, "run/orchestrator.db"),
								kr_store_schema.version),
						 F_OK),
		0);
	kr_store_close(store);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		place_test(an_item_comes_back_as_it_was_filed),
		place_test(an_id_may_be_shortened_as_long_as_it_is_one),
		place_test(a_list_can_leave_out_those_that_have_ended),
		place_test(a_transaction_is_all_or_nothing),
		place_test(what_belongs_to_no_item_is_refused),
		place_test(sessions_and_threads_come_back_in_order),
		place_test(turns_come_back_by_thread_and_turn_ITM_05),
		place_test(an_older_store_is_brought_to_this_version),
	};

	return cmocka_run_group_tests_name("work_store", tests, NULL, NULL);
}
