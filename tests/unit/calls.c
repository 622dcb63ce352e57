/*
 * session: what a worker of `kraft run` is answered (CHN-02 to CHN-07, CHN-12), with a store of the test's
 * own in which another item has events, too.
 */
#include "repo.h"

#include "session/calls.h"

struct desk {
	struct kr_store *store; /* NULL: it cannot be had */
	struct kr_calls calls;
};

static struct kr_store *
store_of(void *context, struct kr_error *err)
{
	(void)err;
	return ((struct desk *)context)->store;
}

static void
open_desk(struct place *p, struct desk *desk)
{
	struct kr_error err = { 0 };

	*desk = (struct desk){ .calls = { .item = "own",
							   .session = "s1",
							   .repo = "/home/x/code",
							   .worktree = "/w/own",
							   .branch = "kraft/own",
							   .store = store_of,
							   .context = desk } };
	if (kr_store_open(below(p, "run"), KR_STORE_WRITE, &desk->store, &err) < 0)
		fail_msg("%s", err.message);
}

static void
add(struct desk *desk, const char *item, const char *type, const char *data)
{
	struct kr_event event = { .ms = 7, .type = type, .item = item, .session = "s0", .data = data };

	assert_int_equal(kr_store_add_event(desk->store, &event, NULL), 0);
}

static struct kr_call
call_of(enum kr_verb verb)
{
	return (struct kr_call){ .verb = verb }; /* without a text */
}

/* Freed by the caller. */
static struct kr_call_answer
ask(struct desk *desk, const struct kr_call *call)
{
	struct kr_call_answer answer = { .body = KR_BUF(KR_CALL_ANSWER_BYTES) };

	kr_calls_answer(&desk->calls, call, &answer);
	assert_false(answer.body.overflow);
	assert_true(answer.refused[0] || (answer.status >= 200 && answer.body.max == KR_CALL_ANSWER_BYTES));
	return answer;
}

static void
expect(struct desk *desk, const struct kr_call *call, unsigned status, const char *body)
{
	struct kr_call_answer answer = ask(desk, call);

	assert_string_equal(answer.refused, "");
	assert_int_equal(answer.status, status);
	assert_string_equal(answer.body.data ? answer.body.data : "", body);
	assert_int_equal(answer.next, 0);
	kr_buf_fini(&answer.body);
}

static void
expect_refused(struct desk *desk, const struct kr_call *call, const char *part)
{
	struct kr_call_answer answer = ask(desk, call);

	if (!strstr(answer.refused, part))
		fail_msg("'%s' is not in '%s'", part, answer.refused);
	kr_buf_fini(&answer.body);
}

static int
pass(void *context, const struct kr_event *event)
{
	(void)context;
	(void)event;
	return 0;
}

static long
count_events(struct desk *desk, const char *type)
{
	const struct kr_event_query query = { .type = type };

	return kr_store_events(desk->store, &query, pass, NULL, NULL);
}

static void
events_are_the_items_own_CHN_04(void **state)
{
	struct desk desk;
	struct kr_call call = call_of(KR_VERB_EVENTS);

	open_desk(*state, &desk);
	expect(&desk, &call, 200, "");
	add(&desk, "own", "a", "{\"n\":1}");
	add(&desk, "other", "a", "{\"secret\":1}");
	add(&desk, "own", "b", "{\"t\":\"\\u007f\xc3\xa4\"}");
	add(&desk, NULL, "a", "{\"secret\":2}");
	add(&desk, "own", "a", "{}");
	expect(&desk, &call, 200,
		"{\"seq\":1,\"ms\":7,\"type\":\"a\",\"item\":\"own\",\"session\":\"s0\",\"data\":{\"n\":1}}\n"
		"{\"seq\":3,\"ms\":7,\"type\":\"b\",\"item\":\"own\",\"session\":\"s0\",\"data\":{\"t\":"
		"\"\\u007F\\u00E4\"}}\n"
		"{\"seq\":5,\"ms\":7,\"type\":\"a\",\"item\":\"own\",\"session\":\"s0\",\"data\":{}}\n");
	memcpy(call.id, "own", 3);
	memcpy(call.type, "a", 1);
	call.after = 1;
	expect(&desk, &call, 200,
		"{\"seq\":5,\"ms\":7,\"type\":\"a\",\"item\":\"own\",\"session\":\"s0\",\"data\":{}}\n");
	call.after = INT64_MAX;
	expect(&desk, &call, 200, "");
	/* CHAN-07: a type is a value and never a part of a statement */
	call = call_of(KR_VERB_EVENTS);
	memcpy(call.type, "a'OR'1'='1", 10);
	expect(&desk, &call, 200, "");
	kr_store_close(desk.store);
}

/* Parts, each within the limit, that together are all of it. */
static void
many_events_come_in_parts_CHN_04(void **state)
{
	enum { EVENTS = 40, BYTES = 60000 };
	struct desk desk;
	struct kr_call call = call_of(KR_VERB_EVENTS);
	char *data = kr_xcalloc(1, BYTES + 16);
	size_t lines = 0, parts = 0;

	open_desk(*state, &desk);
	memset(data, '\x7f', BYTES); /* six bytes each, in JSON */
	memcpy(data, "{\"x\":\"", 6);
	memcpy(data + BYTES, "\"}", 3); /* with its NUL */
	for (int i = 0; i < EVENTS; i++)
		add(&desk, "own", "a", data);
	do {
		struct kr_call_answer answer = ask(&desk, &call);

		assert_int_equal(answer.status, 200);
		for (char *at = answer.body.data; (at = strchr(at, '\n')); at++)
			lines++;
		assert_true(answer.next == 0 || answer.next > call.after);
		call.after = answer.next;
		parts++;
		kr_buf_fini(&answer.body);
	} while (call.after);
	assert_int_equal(lines, EVENTS);
	assert_true(parts > 1);
	free(data);
	kr_store_close(desk.store);
}

static void
progress_is_an_event_and_capped_CHAN_05(void **state)
{
	struct desk desk;
	struct kr_call call = call_of(KR_VERB_PROGRESS), look = call_of(KR_VERB_EVENTS);

	open_desk(*state, &desk);
	call.task = 3;
	expect(&desk, &call, 200, "{\"id\":\"own\",\"task\":3}\n");
	memcpy(look.type, "plan_progress", 13);
	{
		struct kr_call_answer answer = ask(&desk, &look);

		assert_non_null(strstr(answer.body.data,
			"\"item\":\"own\",\"session\":\"s1\",\"data\":{\"session_id\":\"s1\",\"task\":3}}\n"));
		kr_buf_fini(&answer.body);
	}
	desk.calls.progress = KR_PROGRESS_MAX - 1; /* as if it had */
	expect(&desk, &call, 200, "{\"id\":\"own\",\"task\":3}\n");
	expect(&desk, &call, 429, "{\"detail\":\"this session has told its progress often enough\"}\n");
	assert_int_equal(count_events(&desk, "plan_progress"), 2);
	kr_store_close(desk.store);
}

static void
show_tells_where_it_is(void **state)
{
	struct desk desk;
	struct kr_call call = call_of(KR_VERB_SHOW);

	open_desk(*state, &desk);
	expect(&desk, &call, 200,
		"{\"id\":\"own\",\"repo\":\"/home/x/code\",\"worktree\":\"/w/own\",\"branch\":\"kraft/"
		"own\",\"session\":\"s1\"}\n");
	desk.calls.branch = NULL;
	desk.calls.worktree = "/w/\xff";
	expect(&desk, &call, 200,
		"{\"id\":\"own\",\"repo\":\"/home/x/code\",\"worktree\":\"/w/"
		"\\\\xff\",\"branch\":null,\"session\":\"s1\"}\n");
	kr_store_close(desk.store);
}

/* CHAN-01 CHAN-04: whatever the verb. */
static void
another_item_is_refused_CHN_06(void **state)
{
	struct desk desk;

	open_desk(*state, &desk);
	for (enum kr_verb verb = KR_VERB_NONE + 1; verb < KR_VERB_END; verb++) {
		struct kr_call call = call_of(verb);

		memcpy(verb == KR_VERB_REPLY ? call.thread : call.id, "owner", 5);
		expect_refused(&desk, &call, "'owner' is not this session's");
		call = call_of(verb);
		memcpy(verb == KR_VERB_REPLY ? call.thread : call.id, "ow", 2);
		expect_refused(&desk, &call, "'ow' is not this session's");
	}
	assert_int_equal(count_events(&desk, NULL), 0);
	kr_store_close(desk.store);
}

static void
what_it_has_not_has_its_sentence_CHN_03(void **state)
{
	struct desk desk;
	struct kr_call call = call_of(KR_VERB_THREADS);

	open_desk(*state, &desk);
	expect(&desk, &call, 404, "{\"detail\":\"an item of 'kraft run' has no review threads\"}\n");
	call = call_of(KR_VERB_RETRY);
	expect(&desk, &call, 403, "{\"detail\":\"a worker session cannot act on its own work item\"}\n");
	assert_int_equal(count_events(&desk, NULL), 0);
	kr_store_close(desk.store);
}

static void
without_a_store_it_says_so_and_no_more(void **state)
{
	struct desk desk;
	struct kr_call call = call_of(KR_VERB_EVENTS);
	struct kr_store *store;

	open_desk(*state, &desk);
	store = kr_steal(desk.store);
	expect(&desk, &call, 503, "{\"detail\":\"the events cannot be read now\"}\n");
	call = call_of(KR_VERB_PROGRESS);
	expect(&desk, &call, 503, "{\"detail\":\"the progress cannot be recorded now\"}\n");
	assert_int_equal(desk.calls.progress, 0);
	kr_store_close(store);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		place_test(events_are_the_items_own_CHN_04),
		place_test(many_events_come_in_parts_CHN_04),
		place_test(progress_is_an_event_and_capped_CHAN_05),
		place_test(show_tells_where_it_is),
		place_test(another_item_is_refused_CHN_06),
		place_test(what_it_has_not_has_its_sentence_CHN_03),
		place_test(without_a_store_it_says_so_and_no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
