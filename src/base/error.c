#include "base/error.h"

#include <stdarg.h>

#include "base/text.h"

static const struct {
	const char *name;
	int exit_status;
} codes[] = {
#define X(code, name, status) [KR_E_##code] = { name, KR_EXIT_##status },
	KR_ERROR_CODES(X)
#undef X
};
_Static_assert(KR_COUNT(codes) == KR_E_COUNT, "one row per error code");

enum { CLASS = 0xff, NUMBER_SHIFT = 8 };
_Static_assert((int)KR_E_COUNT <= (int)CLASS, "a class fits below the number");

int
kr_fail_at(struct kr_error *err, enum kr_error_code code, int sys_errno, const char *file, int line,
	const char *fmt, ...)
{
	va_list ap;
	size_t used;

	if (!err)
		return -1;
	*err = (struct kr_error){ .code = code & CLASS, .number = (unsigned)code >> NUMBER_SHIFT, .sys_errno = sys_errno, .file = file, .line = line };
	va_start(ap, fmt);
	vsnprintf(err->message, sizeof(err->message), fmt, ap);
	va_end(ap);
	used = strlen(err->message);
	if (sys_errno)
		snprintf(err->message + used, sizeof(err->message) - used, ": %s", strerror(sys_errno));
	return -1;
}

int
(kr_hint)(struct kr_error *err, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return -1;
	va_start(ap, fmt);
	vsnprintf(err->hint, sizeof(err->hint), fmt, ap);
	va_end(ap);
	return -1;
}

int
(kr_wrap)(struct kr_error *err, const char *fmt, ...)
{
	char old[sizeof(err->message)];
	va_list ap;
	size_t used;

	if (!err)
		return -1;
	memcpy(old, err->message, sizeof(old));
	va_start(ap, fmt);
	vsnprintf(err->message, sizeof(err->message), fmt, ap);
	va_end(ap);
	used = strlen(err->message);
	snprintf(err->message + used, sizeof(err->message) - used, ": %s", old);
	return -1;
}

int
kr_number(struct kr_error *err, enum kr_error_code code)
{
	if (err)
		err->number = (unsigned)code >> NUMBER_SHIFT;
	return -1;
}

void
kr_error_number_text(unsigned number, char out[KR_ERROR_NUMBER_TEXT])
{
	snprintf(out, KR_ERROR_NUMBER_TEXT, "E%04u", number % 10000);
}

const char *
kr_error_name(enum kr_error_code code)
{
	return (unsigned)code < KR_COUNT(codes) ? codes[code].name : "unknown";
}

int
kr_error_exit_status(enum kr_error_code code)
{
	return (unsigned)code < KR_COUNT(codes) ? codes[code].exit_status : KR_EXIT_FAILED;
}

int
kr_error_launch_status(enum kr_error_code code)
{
	return code == KR_E_NONE || code == KR_E_USAGE ? kr_error_exit_status(code) : KR_EXIT_LAUNCH;
}

void
kr_error_print(const struct kr_error *err, FILE *stream, bool colour)
{
	char safe[4 * sizeof(err->message)];
	const char *red = colour ? "\033[31m" : "", *off = colour ? "\033[0m" : "";

	fprintf(stream, "%skraft:%s ", red, off);
	if (err->place.line) {
		kr_text_escape(safe, sizeof(safe), err->place.path, strlen(err->place.path));
		fprintf(stream, "%s:%u:%u: ", safe, err->place.line, err->place.column);
	}
	kr_text_escape(safe, sizeof(safe), err->message, strlen(err->message));
	fprintf(stream, "%s\n", safe);
	if (err->place.excerpt[0]) {
		kr_text_escape(safe, sizeof(safe), err->place.excerpt, strlen(err->place.excerpt));
		fprintf(stream, "    %s\n    %*s^\n", safe, (int)err->place.caret, "");
	}
	if (err->hint[0]) {
		kr_text_escape(safe, sizeof(safe), err->hint, strlen(err->hint));
		fprintf(stream, "hint: %s\n", safe);
	}
	if (err->number) {
		char number[KR_ERROR_NUMBER_TEXT];

		kr_error_number_text(err->number, number);
		fprintf(stream, "see: kraft help %s\n", number);
	}
}
