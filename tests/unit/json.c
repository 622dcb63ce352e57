/* base: JSON that somebody else wrote, checked and looked into where it lies; jansson is the judge. */
#include <setjmp.h>
#include <stdarg.h>

#include <jansson.h>

#include "base/json.h"

#include <cmocka.h>

static bool
check(const char *text, size_t n)
{
	char *bytes = malloc(n ? n : 1); /* exactly so large: a sanitizer sees a step too far */
	struct kr_json json;
	bool good;

	assert_non_null(bytes);
	memcpy(bytes, text, n);
	good = kr_json_check(bytes, n, &json);
	free(bytes);
	return good;
}

static void
json_is_what_jansson_says(void **state)
{
	static const char *const texts[] = { "{}", "[]", " { } ", "{\"a\":1}",
		"{\"a\":[1,{\"b\":null}],\"c\":true}", "\"x\"", "1", "-0", "0.5", "1e9", "1E+2", "-1.5e-3", "true",
		"false", "null", "[1,2,[3]]", "{\"a\":{}}", "\"\\u00e9\\n\\\\\"", "\"\\ud83d\\ude00\"",
		"\t\n\r [ 1 , 2 ] ", "", " ", "{", "}", "[", "]", "{]", "[}", "{\"a\"}", "{\"a\":}", "{\"a\":1,}",
		"{,}", "[1,]", "[,1]", "[1 2]", "{\"a\":1 \"b\":2}", "{a:1}", "{'a':1}", "{1:2}", "01", "-", "+1",
		".5", "1.", "1e", "1e+", "0x1", "NaN", "Infinity", "tru", "True", "nulll", "\"", "\"\\\"", "\"\\x\"",
		"\"\\u12\"", "\"\\ud800\"", "\"\\ud800\\u0041\"", "\"\\udc00\"", "\"\\ud800x\"", "\"a\nb\"",
		"\"a\tb\"", "{} {}", "[1]]", "1 2", "//x\n1", "[1/**/]", "\xef\xbb\xbf{}", "\"\xff\"", "\"\xc0\xaf\"",
		"\"\xed\xa0\x80\"", "\"\xc3\xa9\"", "{\"a\":\"b\",\"a\":1}" };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(texts); i++) {
		json_t *judge = json_loads(texts[i], JSON_DECODE_ANY, NULL);

		if (check(texts[i], strlen(texts[i])) != (judge != NULL))
			fail_msg("'%s'", texts[i]);
		json_decref(judge);
		for (size_t n = 0; n < strlen(texts[i]); n++)
			(void)check(texts[i], n); /* cut anywhere */
	}
	assert_false(check("\"a\0b\"", 5));
}

static void
depth_is_bounded_CHAN_06(void **state)
{
	char *text = malloc(200001);

	(void)state;
	assert_non_null(text);
	memset(text, '[', 100000);
	memset(text + 100000, ']', 100000);
	assert_false(check(text, 200000));
	assert_false(check(text, 100000));
	assert_true(check(text + 100000 - KR_JSON_DEPTH, (size_t)2 * KR_JSON_DEPTH));
	assert_false(check(text + 100000 - KR_JSON_DEPTH - 1, (size_t)2 * KR_JSON_DEPTH + 2));
	free(text);
}

static struct kr_json
json_of(const char *text)
{
	struct kr_json json;

	assert_true(kr_json_check(text, strlen(text), &json));
	return json;
}

static void
members_are_found_as_written(void **state)
{
	const struct kr_json all = json_of(
		" {\"a\" : [1,\"]}\",{\"b\":2}] , \"b\":-1.5e3,\"c\":\"x\\\"}\", \"\\u0064\" :null,\"e\":{}}");
	static const struct {
		const char *name, *text;
		enum kr_json_type type;
	} rows[] = { { "a", "[1,\"]}\",{\"b\":2}]", KR_JSON_ARRAY }, { "b", "-1.5e3", KR_JSON_NUMBER },
		{ "c", "\"x\\\"}\"", KR_JSON_STRING }, { "d", "null", KR_JSON_NULL }, { "e", "{}", KR_JSON_OBJECT } };
	struct kr_json found;

	(void)state;
	for (size_t i = 0; i < KR_COUNT(rows); i++) {
		assert_true(kr_json_member(&all, rows[i].name, &found));
		assert_int_equal(found.type, rows[i].type);
		assert_int_equal(found.n, strlen(rows[i].text));
		assert_memory_equal(found.at, rows[i].text, found.n);
	}
	assert_true(kr_json_member(&all, "A", &found));
	assert_int_equal(found.type, KR_JSON_ABSENT);
	assert_true(kr_json_member(&(struct kr_json){ KR_JSON_OBJECT, "{}", 2 }, "a", &found));
	found = json_of("{\"a\":1,\"\\u0061\":2}");
	assert_false(kr_json_member(&found, "a", &found));
}

static void
texts_are_decoded(void **state)
{
	const struct kr_json text = json_of("\"a\\u00e9\\ud83d\\ude00\\n\\/\\u0800\"");
	char out[16];
	size_t n = 0;

	(void)state;
	assert_true(kr_json_text(&text, out, sizeof(out), &n));
	assert_int_equal(n, 12);
	assert_memory_equal(out, "a\xc3\xa9\xf0\x9f\x98\x80\n/\xe0\xa0\x80", n);
	assert_true(kr_json_text(&text, out, 12, &n));
	assert_false(kr_json_text(&text, out, 11, &n));
	assert_true(kr_json_is(&text, "a\xc3\xa9\xf0\x9f\x98\x80\n/\xe0\xa0\x80"));
	assert_false(kr_json_is(&text, "a"));
}

static void
values_and_members_come_in_order(void **state)
{
	const struct kr_json array = json_of("[ 1,\"a]\" , [2,[3]],{\"b\":4} ]"),
						 object = json_of("{ \"a\":[1], \"b\" : 2 }");
	static const char *const items[] = { "1", "\"a]\"", "[2,[3]]", "{\"b\":4}" };
	const struct kr_json empty = json_of("[ ]"), none = json_of("{}");
	struct kr_json name, value = { 0 }, item = { 0 };
	size_t n = 0;

	(void)state;
	for (; kr_json_next(&array, &item); n++) {
		assert_true(n < KR_COUNT(items) && item.n == strlen(items[n]));
		assert_memory_equal(item.at, items[n], item.n);
	}
	assert_int_equal(n, KR_COUNT(items));
	for (n = 0; kr_json_next_member(&object, &name, &value); n++)
		assert_true(kr_json_is(&name, n ? "b" : "a") && value.type == (n ? KR_JSON_NUMBER : KR_JSON_ARRAY));
	assert_int_equal(n, 2);
	item = value = (struct kr_json){ 0 };
	assert_false(kr_json_next(&empty, &item) || kr_json_next_member(&none, &name, &value));
}

static void
a_text_comes_in_parts_of_whole_characters(void **state)
{
	static const char whole[] = "a\xc3\xa9\xf0\x9f\x98\x80\n\xe0\xa0\x80";

	(void)state;
	for (size_t size = 4; size < 16; size++) {
		struct kr_json rest = json_of("\"a\\u00e9\\ud83d\\ude00\\n\xe0\xa0\x80\"");
		char out[64], part[16];
		size_t n, used = 0;

		while ((n = kr_json_text_part(&rest, part, size)) > 0) {
			assert_true((part[0] & 0xc0) != 0x80);
			memcpy(out + used, part, n);
			used += n;
		}
		assert_int_equal(used, sizeof(whole) - 1);
		assert_memory_equal(out, whole, used);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_is_what_jansson_says),
		cmocka_unit_test(depth_is_bounded_CHAN_06),
		cmocka_unit_test(members_are_found_as_written),
		cmocka_unit_test(texts_are_decoded),
		cmocka_unit_test(values_and_members_come_in_order),
		cmocka_unit_test(a_text_comes_in_parts_of_whole_characters),
	};

	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
