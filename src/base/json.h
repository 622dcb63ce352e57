/*
 * JSON that somebody else wrote, read where it lies: a whole text is checked first (RFC 8259, UTF-8, depth),
 * and then its parts are found as spans of the same bytes. Pure; nothing is allocated, nothing recurses, so
 * neither depth nor size costs anything but the time to look at each byte.
 */
#ifndef KR_BASE_JSON_H
#define KR_BASE_JSON_H

#include "base/buf.h"

enum { KR_JSON_DEPTH = 64 };

enum kr_json_type {
	KR_JSON_ABSENT,
	KR_JSON_OBJECT,
	KR_JSON_ARRAY,
	KR_JSON_STRING,
	KR_JSON_NUMBER,
	KR_JSON_TRUE,
	KR_JSON_FALSE,
	KR_JSON_NULL,
};

/* A value, as written: blanks around it do not belong to it. Borrows. */
struct kr_json {
	enum kr_json_type type;
	const char *at;
	size_t n;
};

/* One value and nothing else but blanks, at most KR_JSON_DEPTH deep; a lone surrogate is no text. */
bool kr_json_check(const char *bytes, size_t n, struct kr_json *out);

/* Of a checked object. KR_JSON_ABSENT when it has no such member. False: it has two, and nobody can say which
 * is meant. */
bool kr_json_member(const struct kr_json *object, const char *name, struct kr_json *out);

/* The next value of a checked array; *item of type ABSENT: the first. False: that was the last. */
bool kr_json_next(const struct kr_json *array, struct kr_json *item);
/* The next member of a checked object, likewise. */
bool kr_json_next_member(const struct kr_json *object, struct kr_json *name, struct kr_json *value);

/*
 * Of a checked string: its next characters as UTF-8, as many as fit, no NUL behind them; *string is what is
 * left of it afterwards. Returns how many bytes; 0: nothing was left, or not even one character fits.
 */
size_t kr_json_text_part(struct kr_json *string, char *out, size_t size);
/* Of a checked string: its bytes as UTF-8, no NUL behind them. False: they are more than size. */
bool kr_json_text(const struct kr_json *string, char *out, size_t size, size_t *n);
/* Whether a checked string is this one. */
bool kr_json_is(const struct kr_json *string, const char *text);

/* What stands in a string: quotes, backslashes and control characters escaped. text is UTF-8. */
void kr_json_escape(struct kr_buf *out, const char *text, size_t n);

#endif
