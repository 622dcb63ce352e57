/*
 * As much of cmocka's interface as the guest's unit tests use, in one header: for building them for a machine whose
 * libraries are not installed here (scripts/build-aarch64). On this machine the same tests are built with cmocka itself.
 */
#ifndef KR_CMOCKA_LITE_H
#define KR_CMOCKA_LITE_H

#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct CMUnitTest {
	const char *name;
	void (*run)(void **state);
};

static jmp_buf kr_lite_out;

static inline void
kr_lite_check(bool ok, const char *what, const char *file, int line)
{
	if (ok)
		return;
	printf("# %s:%d: %s\n", file, line, what);
	longjmp(kr_lite_out, 1);
}

#define KR_LITE(ok, what) kr_lite_check((ok), what, __FILE__, __LINE__)
#define assert_true(a) KR_LITE(!!(a), "not true: " #a)
#define assert_false(a) KR_LITE(!(a), "not false: " #a)
#define assert_null(a) KR_LITE((a) == NULL, "not NULL: " #a)
#define assert_non_null(a) KR_LITE((a) != NULL, "NULL: " #a)
#define assert_int_equal(a, b) KR_LITE((uintmax_t)(a) == (uintmax_t)(b), "not equal: " #a ", " #b)
#define assert_int_not_equal(a, b) KR_LITE((uintmax_t)(a) != (uintmax_t)(b), "equal: " #a ", " #b)
#define assert_string_equal(a, b) KR_LITE(strcmp((a), (b)) == 0, "not the same text: " #a ", " #b)
#define assert_memory_equal(a, b, n) KR_LITE(memcmp((a), (b), (n)) == 0, "not the same bytes: " #a ", " #b)
#define fail() KR_LITE(false, "failed")
#define fail_msg(...) KR_LITE(false, "failed")
#define print_message(...) printf(__VA_ARGS__)
#define skip() longjmp(kr_lite_out, 2)

#define cmocka_unit_test(function) { #function, function }
#define cmocka_run_group_tests_name(group, tests, setup, teardown) \
	kr_lite_run((tests), sizeof(tests) / sizeof((tests)[0]))

static inline int
kr_lite_run(const struct CMUnitTest *tests, size_t count)
{
	volatile int failed = 0;

	printf("1..%zu\n", count);
	for (volatile size_t i = 0; i < count; i++) {
		void *state = NULL;

		switch (setjmp(kr_lite_out)) {
		case 0:
			tests[i].run(&state);
			printf("ok %zu - %s\n", i + 1, tests[i].name);
			break;
		case 1:
			failed++;
			printf("not ok %zu - %s\n", i + 1, tests[i].name);
			break;
		default:
			printf("ok %zu - %s # SKIP the test says why\n", i + 1, tests[i].name);
		}
		fflush(stdout);
	}
	return failed;
}

#endif
