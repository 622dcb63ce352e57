#include "base/buf.h"

#include <stdarg.h>

void
kr_buf_fini(struct kr_buf *buf)
{
	free(buf->data);
	*buf = (struct kr_buf){ .max = buf->max };
}

void
kr_buf_reserve(struct kr_buf *buf, size_t n)
{
	if (n > buf->max - buf->len || buf->cap >= buf->len + n + 1)
		return;
	buf->cap = buf->len + n + 1;
	buf->data = kr_xrealloc(buf->data, buf->cap);
	buf->data[buf->len] = '\0';
}

void
kr_buf_add(struct kr_buf *buf, const void *bytes, size_t n)
{
	if (n > buf->max - buf->len) {
		buf->overflow = true;
		return;
	}
	if (buf->cap < buf->len + n + 1) {
		size_t cap = buf->cap ? buf->cap : 256;

		while (cap < buf->len + n + 1)
			cap *= 2;
		buf->data = kr_xrealloc(buf->data, cap);
		buf->cap = cap;
	}
	if (n)
		memcpy(buf->data + buf->len, bytes, n);
	buf->len += n;
	buf->data[buf->len] = '\0';
}

void
kr_buf_adds(struct kr_buf *buf, const char *s)
{
	kr_buf_add(buf, s, strlen(s));
}

void
kr_buf_add_arg(struct kr_buf *buf, const char *s)
{
	kr_buf_add(buf, s, strlen(s) + 1);
}

void
kr_buf_addf(struct kr_buf *buf, const char *fmt, ...)
{
	va_list ap;
	int n;
	kr_auto_free char *text = NULL;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	KR_BUG_IF(n < 0);
	if ((size_t)n > buf->max - buf->len) {
		buf->overflow = true;
		return;
	}
	text = kr_xcalloc(1, (size_t)n + 1);
	va_start(ap, fmt);
	vsnprintf(text, (size_t)n + 1, fmt, ap);
	va_end(ap);
	kr_buf_add(buf, text, (size_t)n);
}

void
kr_buf_add_last(struct kr_buf *buf, const char *bytes, size_t n)
{
	if (n > buf->max) {
		bytes += n - buf->max;
		n = buf->max;
	}
	if (buf->len + n > buf->max) {
		size_t gone = buf->len + n - buf->max;

		memmove(buf->data, buf->data + gone, buf->len - gone);
		buf->len -= gone;
	}
	kr_buf_add(buf, bytes, n);
}
