/*
 * A host's answer in pieces: the same is found, and the same goes out, as in one; nothing of a secret does, and everything when there
 * is none. The first byte says how large the pieces are.
 */
#include "egress/echo.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const values[] = { "aab/aabaac+b", "bba" };

struct sent {
	char *bytes;
	size_t n;
	int found;
};

static struct sent
feed(const struct kr_echo *echo, const char *bytes, size_t n, size_t piece)
{
	struct sent sent = { .bytes = malloc(n + 1), .found = -1 };
	struct kr_echo_watch watch = { 0 };
	size_t before, now;

	KR_BUG_IF(!sent.bytes);
	for (size_t at = 0, some; at < n && sent.found < 0; at += some) {
		some = n - at < piece ? n - at : piece;
		sent.found = kr_echo_feed(echo, &watch, bytes + at, some, &before, &now);
		KR_BUG_IF(before > watch.held_n || now > some || (now && before != watch.held_n));
		memcpy(sent.bytes + sent.n, watch.held, before);
		memcpy(sent.bytes + sent.n + before, bytes + at, now);
		sent.n += before + now;
		if (sent.found < 0)
			kr_echo_keep(&watch, bytes + at, some, before, now);
	}
	if (sent.found < 0) {
		memcpy(sent.bytes + sent.n, watch.held, watch.held_n);
		sent.n += watch.held_n;
	}
	return sent;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct kr_echo *echo;
	const char *bytes = (const char *)data + 1;
	struct sent whole, parts;

	if (size < 2)
		return 0;
	if (!echo)
		echo = kr_echo_new(values, KR_COUNT(values));
	whole = feed(echo, bytes, size - 1, size);
	parts = feed(echo, bytes, size - 1, 1 + data[0]);
	KR_BUG_IF(whole.found != parts.found || whole.n != parts.n || memcmp(whole.bytes, parts.bytes, whole.n) != 0);
	KR_BUG_IF(memcmp(whole.bytes, bytes, whole.n) != 0 || (whole.found < 0) != (whole.n == size - 1));
	for (size_t i = 0; i < KR_COUNT(values); i++) {
		KR_BUG_IF(memmem(whole.bytes, whole.n, values[i], strlen(values[i])));
		KR_BUG_IF(whole.found < 0 && memmem(bytes, size - 1, values[i], strlen(values[i])));
	}
	free(whole.bytes);
	free(parts.bytes);
	return 0;
}
