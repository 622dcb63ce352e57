/*
 * egress: a worker's call, from the form that it writes to the typed value that kraft takes. What the form's
 * reader makes passes kraft's check; what is bent passes neither.
 */
#include <setjmp.h>
#include <stdarg.h>

#include "egress/call.h"
#include "egress/form.h"

#include <cmocka.h>

/* NULL: refused; then a reason must be there. */
static struct kr_call *
decode_bytes(enum kr_verb verb, const char *bytes, size_t n)
{
	char *form = malloc(n + 1); /* exactly so large: a sanitizer sees a step too far */
	const char *why = NULL;
	struct kr_call *call;

	assert_non_null(form);
	memcpy(form, bytes, n);
	call = kr_form_decode(verb, form, n, &why);
	free(form);
	if (call)
		assert_true(kr_call_check(call, sizeof(*call) + call->text_n));
	else
		assert_non_null(why);
	return call;
}

static struct kr_call *
decode(enum kr_verb verb, const char *form)
{
	return decode_bytes(verb, form, strlen(form));
}

static void
expect_text(const struct kr_call *call, const char *text)
{
	assert_int_equal(call->text_n, strlen(text));
	assert_memory_equal(call->text, text, call->text_n);
}

static void
each_verb_takes_its_fields_CHN_02(void **state)
{
	struct kr_call *call;

	(void)state;
	call = decode(KR_VERB_PROGRESS, "task=12&id=an-item.1");
	assert_int_equal(call->task, 12);
	assert_string_equal(call->id, "an-item.1");
	assert_string_equal(call->route, "POST /w/progress");
	free(call);
	call = decode(KR_VERB_REPLY, "claim=should_fix&thread=t%2F1&body=a+b%0a%C3%A4%26%3d");
	assert_int_equal(call->claim, KR_CLAIM_SHOULD_FIX);
	assert_string_equal(call->thread, "t/1");
	expect_text(call, "a b\n\xc3\xa4&=");
	free(call);
	call = decode(KR_VERB_RETRY, "steer=once+more&id=x");
	expect_text(call, "once more");
	free(call);
	call = decode(KR_VERB_THREADS, "open=1");
	assert_int_equal(call->open, 1);
	free(call);
	call = decode(KR_VERB_EVENTS, "after=9223372036854775807&type='%22;--");
	assert_int_equal(call->after, INT64_MAX);
	assert_string_equal(call->type, "'\";--");
	free(call);
	for (enum kr_verb verb = KR_VERB_NONE + 1; verb < KR_VERB_FORM_END; verb++)
		if (verb != KR_VERB_PROGRESS && verb != KR_VERB_REPLY)
			free(decode(verb, ""));
}

/* What the verb needs, and of the same name as the field, nothing. */
static struct kr_call *
decode_with(enum kr_verb verb, const char *field)
{
	static const char *const needed[][2] = {
		[KR_VERB_PROGRESS] = { "task=1" }, [KR_VERB_REPLY] = { "thread=1", "body=x" }
	};
	size_t name_n = strcspn(field, "=");
	char form[256];
	int n = snprintf(form, sizeof(form), "%s", field);

	for (size_t i = 0; i < 2 && verb <= KR_VERB_REPLY; i++)
		if (needed[verb][i] && strncmp(needed[verb][i], field, name_n + 1) != 0)
			n += snprintf(form + n, sizeof(form) - (size_t)n, "&%s", needed[verb][i]);
	return decode(verb, form);
}

static void
what_a_verb_does_not_take_is_refused(void **state)
{
	static const struct {
		const char *field;
		unsigned verbs;
	} rows[] = { { "id=x", 1 << KR_VERB_PROGRESS | 1 << KR_VERB_RETRY | 1 << KR_VERB_SHOW |
							   1 << KR_VERB_THREADS | 1 << KR_VERB_EVENTS },
		{ "task=1", 1 << KR_VERB_PROGRESS }, { "thread=1", 1 << KR_VERB_REPLY },
		{ "body=x", 1 << KR_VERB_REPLY }, { "claim=fixed", 1 << KR_VERB_REPLY },
		{ "steer=x", 1 << KR_VERB_RETRY }, { "open=1", 1 << KR_VERB_THREADS },
		{ "after=1", 1 << KR_VERB_EVENTS }, { "type=x", 1 << KR_VERB_EVENTS },
		/* who calls is nobody's to say, and no gate is theirs (CHN-06, CHN-12) */
		{ "session=x", 0 }, { "session_id=x", 0 }, { "token=x", 0 }, { "gate=review", 0 }, { "approve=1", 0 },
		{ "%69d=x", 0 }, { "ID=x", 0 }, { "id =x", 0 }, { "=x", 0 }, { "id", 0 } };

	(void)state;
	for (enum kr_verb verb = KR_VERB_NONE + 1; verb < KR_VERB_FORM_END; verb++)
		for (size_t i = 0; i < KR_COUNT(rows); i++) {
			struct kr_call *call = decode_with(verb, rows[i].field);

			if ((call != NULL) != (rows[i].verbs >> verb & 1))
				fail_msg("'%s' with '%s'", kr_verb_name(verb), rows[i].field);
			free(call);
		}
}

static void
a_bent_form_is_refused_CHAN_06(void **state)
{
	static const struct {
		enum kr_verb verb;
		const char *form;
	} rows[] = { { KR_VERB_PROGRESS, "" }, { KR_VERB_PROGRESS, "id=x" }, { KR_VERB_PROGRESS, "task=" },
		{ KR_VERB_PROGRESS, "task=+1" }, { KR_VERB_PROGRESS, "task=-1" }, { KR_VERB_PROGRESS, "task=1.5" },
		{ KR_VERB_PROGRESS, "task=1e3" }, { KR_VERB_PROGRESS, "task=0x1" },
		{ KR_VERB_PROGRESS, "task=1000001" }, { KR_VERB_PROGRESS, "task=18446744073709551617" },
		{ KR_VERB_PROGRESS, "task=1&task=1" }, { KR_VERB_PROGRESS, "task=1&&id=x" },
		{ KR_VERB_PROGRESS, "&task=1" }, { KR_VERB_PROGRESS, "task=1;id=x" }, { KR_VERB_EVENTS, "after=-1" },
		{ KR_VERB_EVENTS, "after=9223372036854775808" }, { KR_VERB_EVENTS, "after=x" },
		{ KR_VERB_EVENTS, "type=" }, { KR_VERB_EVENTS, "type=a+b" }, { KR_VERB_EVENTS, "type=%00" },
		{ KR_VERB_EVENTS, "type=%7f" }, { KR_VERB_EVENTS, "type=%C3%A4" }, { KR_VERB_SHOW, "id=%" },
		{ KR_VERB_SHOW, "id=%4" }, { KR_VERB_SHOW, "id=%4g" }, { KR_VERB_SHOW, "id=%g4" },
		{ KR_VERB_SHOW, "id=a%0Ab" }, { KR_VERB_REPLY, "thread=1" }, { KR_VERB_REPLY, "body=x" },
		{ KR_VERB_REPLY, "thread=1&body=" }, { KR_VERB_REPLY, "thread=1&body=%00" },
		{ KR_VERB_REPLY, "thread=1&body=%1b[2J" }, { KR_VERB_REPLY, "thread=1&body=%7F" },
		{ KR_VERB_REPLY, "thread=1&body=%C3" }, { KR_VERB_REPLY, "thread=1&body=%ED%A0%80" },
		{ KR_VERB_REPLY, "thread=1&body=%C0%80" }, { KR_VERB_REPLY, "thread=1&body=x&claim=" },
		{ KR_VERB_REPLY, "thread=1&body=x&claim=done" }, { KR_VERB_THREADS, "open=" },
		{ KR_VERB_THREADS, "open=true" } };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(rows); i++)
		if (decode(rows[i].verb, rows[i].form))
			fail_msg("'%s' is taken", rows[i].form);
	assert_null(decode_bytes(KR_VERB_SHOW, "id=a\0b", 6));
	free(decode(KR_VERB_PROGRESS, "task=1&")); /* an end that is empty is none */
}

static void
sizes_are_held_CHAN_06(void **state)
{
	size_t room = KR_CALL_FORM_BYTES;
	char *form = malloc(room);
	struct kr_call *call;

	(void)state;
	assert_non_null(form);
	memset(form, 'x', room);
	memcpy(form, "id=", 3);
	call = decode_bytes(KR_VERB_SHOW, form, 3 + KR_CALL_WORD_MAX);
	assert_int_equal(strlen(call->id), KR_CALL_WORD_MAX);
	free(call);
	assert_null(decode_bytes(KR_VERB_SHOW, form, 3 + KR_CALL_WORD_MAX + 1));
	assert_null(decode_bytes(KR_VERB_SHOW, form, room));
	memcpy(form, "thread=1&body=", 14);
	call = decode_bytes(KR_VERB_REPLY, form, 14 + KR_CALL_TEXT_BYTES);
	assert_int_equal(call->text_n, KR_CALL_TEXT_BYTES);
	free(call);
	assert_null(decode_bytes(KR_VERB_REPLY, form, 14 + KR_CALL_TEXT_BYTES + 1));
	/* all of a text escaped is still a form */
	for (size_t i = 14; i + 3 <= 14 + 3 * KR_CALL_TEXT_BYTES; i += 3)
		memcpy(form + i, "%0A", 3);
	call = decode_bytes(KR_VERB_REPLY, form, 14 + 3 * KR_CALL_TEXT_BYTES);
	assert_int_equal(call->text_n, KR_CALL_TEXT_BYTES);
	free(call);
	memset(form, '&', room);
	assert_null(decode_bytes(KR_VERB_SHOW, form, room));
	/* 100,000 nested arrays are a text like any other, and no number */
	memset(form, '[', 100000);
	memcpy(form, "task=", 5);
	assert_null(decode_bytes(KR_VERB_PROGRESS, form, 100000));
	free(form);
}

/* ---- kraft's side ---- */

static struct kr_call *
good_call(size_t text_n)
{
	struct kr_call *call = calloc(1, sizeof(*call) + text_n + 1);

	assert_non_null(call);
	call->verb = KR_VERB_REPLY;
	call->text_n = (uint32_t)text_n;
	memset(call->text, 't', text_n);
	memcpy(call->thread, "1", 1);
	memcpy(call->route, "POST /w/reply", 13);
	return call;
}

/* Every field out of its range, and every byte that must be zero. */
static void
kraft_believes_no_call_CHN_06(void **state)
{
	struct kr_call *call = good_call(3), *bent = good_call(3);
	size_t bytes = sizeof(*call) + 3;

	(void)state;
	assert_true(kr_call_check(call, bytes));
	assert_false(kr_call_check(call, bytes - 1));
	assert_false(kr_call_check(call, bytes + 1));
	assert_false(kr_call_check(call, sizeof(*call) - 1));
#define BENT(what)             \
	memcpy(bent, call, bytes); \
	what;                      \
	assert_false(kr_call_check(bent, bytes))
	BENT(bent->verb = KR_VERB_NONE);
	BENT(bent->verb = KR_VERB_SHOW);
	BENT(bent->verb = KR_VERB_END);
	BENT(bent->verb = UINT32_MAX);
	BENT(bent->claim = KR_CLAIM_END);
	BENT(bent->open = 1);
	BENT(bent->task = 1);
	BENT(bent->task = -1);
	BENT(bent->after = 1);
	BENT(bent->after = INT64_MIN);
	BENT(bent->text_n = 4);
	BENT(bent->text_n = 2);
	BENT(bent->text_n = UINT32_MAX);
	BENT(bent->thread[0] = '\0');
	BENT(bent->thread[2] = 'x');
	BENT(bent->thread[0] = ' ');
	BENT(bent->thread[0] = '\n');
	BENT(bent->thread[0] = '\x80');
	BENT(memset(bent->thread, 'x', sizeof(bent->thread)));
	BENT(memset(bent->thread, 'x', KR_CALL_WORD_MAX + 1));
	BENT(bent->id[0] = 'x');
	BENT(bent->type[0] = 'x');
	BENT(bent->route[0] = '\0');
	BENT(bent->route[sizeof(bent->route) - 1] = 'x');
	BENT(memset(bent->route, 'x', sizeof(bent->route)));
	BENT(bent->route[1] = '\x1b');
	BENT(bent->text[0] = '\0');
	BENT(bent->text[0] = '\x1b');
	BENT(bent->text[0] = '\xff');
#undef BENT
	free(call);
	free(bent);
	call = good_call(KR_CALL_TEXT_BYTES + 1);
	assert_false(kr_call_check(call, sizeof(*call) + KR_CALL_TEXT_BYTES + 1));
	free(call);
}

static void
a_refused_route_is_printable_and_short(void **state)
{
	char path[1000];
	struct kr_call *call;

	(void)state;
	memset(path, 'x', sizeof(path));
	memcpy(path, "GET /\x1b[2J\n", 9);
	call = kr_call_new(KR_VERB_NONE, path, sizeof(path));
	assert_true(kr_call_check(call, sizeof(*call)));
	assert_int_equal(strlen(call->route), KR_CALL_ROUTE_MAX);
	assert_memory_equal(call->route, "GET /?[2J", 9);
	free(call);
}

static void
names_and_verbs_agree(void **state)
{
	(void)state;
	for (enum kr_verb verb = KR_VERB_NONE + 1; verb < KR_VERB_FORM_END; verb++)
		assert_int_equal(kr_verb_of(kr_verb_name(verb), strlen(kr_verb_name(verb))), verb);
	assert_int_equal(kr_verb_of("", 0), KR_VERB_NONE);
	assert_int_equal(kr_verb_of("shown", 4), KR_VERB_SHOW);
	assert_int_equal(kr_verb_of("shown", 5), KR_VERB_NONE);
	assert_int_equal(kr_verb_of("permission-hook", 15), KR_VERB_NONE);
}

static void
a_failure_is_json_whatever_it_quotes(void **state)
{
	struct kr_call_answer answer = { .body = KR_BUF(1024) };

	(void)state;
	kr_buf_adds(&answer.body, "half an answer");
	kr_call_fail(&answer, 404, "no '\"\\\n\x1b\xc3\xa4'");
	assert_int_equal(answer.status, 404);
	assert_string_equal(answer.body.data, "{\"detail\":\"no '\\\"\\\\?"
										  "?"
										  "?"
										  "?'\"}\n");
	kr_buf_fini(&answer.body);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_verb_takes_its_fields_CHN_02),
		cmocka_unit_test(what_a_verb_does_not_take_is_refused),
		cmocka_unit_test(a_bent_form_is_refused_CHAN_06),
		cmocka_unit_test(sizes_are_held_CHAN_06),
		cmocka_unit_test(kraft_believes_no_call_CHN_06),
		cmocka_unit_test(a_refused_route_is_printable_and_short),
		cmocka_unit_test(names_and_verbs_agree),
		cmocka_unit_test(a_failure_is_json_whatever_it_quotes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
