#include "../adder.h"

#include <stdio.h>

static int number, failed;

static void
check(const char *text, int want_status, long want_sum)
{
	long sum = 0;
	int status = adder_sum(text, &sum);
	int ok = status == want_status && (status != 0 || sum == want_sum);

	failed += !ok;
	printf("%s %d - sum of '%s'\n", ok ? "ok" : "not ok", ++number, text);
}

int
main(void)
{
	check("", 0, 0);
	check("1 2 3", 0, 6);
	check("40, 2", 0, 42);
	check("-5 5", 0, 0);
	check("one", -1, 0);
	check("9223372036854775807 1", -1, 0);
	printf("1..%d\n%d passed, %d failed\n", number, number - failed, failed);
	return failed != 0;
}
