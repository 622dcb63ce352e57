#include "adder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int
adder_sum(const char *text, long *sum)
{
	long total = 0;

	for (;;) {
		char *end;
		long value;

		text += strspn(text, " ,\t\n");
		if (*text == '\0')
			break;
		errno = 0;
		value = strtol(text, &end, 10);
		if (end == text || errno || __builtin_add_overflow(total, value, &total))
			return -1;
		if (*end && !strchr(" ,\t\n", *end))
			return -1;
		text = end;
	}
	*sum = total;
	return 0;
}
