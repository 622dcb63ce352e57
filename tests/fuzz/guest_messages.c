/*
 * What a hostile init could say to the launcher, malformed blocks of the start message, and what the init
 * reads of its surroundings in a container: variables, a search path, a count of the kernel's. The first byte
 * chooses the reader. Whatever comes in: no read beyond the bytes, one descriptor at most, nothing after the
 * last word, and a result that fits the exit file.
 */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
/* The guest is no part of kraft's library: the one file of it that has no system call. */
#include "guest/protocol.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_result(const struct kg_talk *talk, bool killed)
{
	struct kg_result result = kg_result_of(talk, killed);
	char text[KG_RESULT_BYTES];
	size_t n = kg_result_text(&result, text);

	KR_BUG_IF(n == 0 || n > sizeof(text) || text[n - 1] != '\n');
	KR_BUG_IF(result.code < 0 || result.code > 255 || result.signal < 0 || result.signal > 64);
	KR_BUG_IF(result.started != talk->started);
}

/* Each message with a byte before it: how many descriptors came along. */
static void
talk(const uint8_t *data, size_t size)
{
	struct kg_talk talk = { 0 };
	size_t descriptors = 0;

	for (; size >= 1 + sizeof(struct kg_message);
		 data += 1 + sizeof(struct kg_message), size -= 1 + sizeof(struct kg_message)) {
		struct kg_talk before = talk;
		struct kg_message message;
		bool taken;

		memcpy(&message, data + 1, sizeof(message));
		taken = kg_talk_take(&talk, &message, data[0] & 3);
		KR_BUG_IF(taken && before.last_word);
		KR_BUG_IF(!taken && memcmp(&talk, &before, sizeof(talk)) != 0);
		KR_BUG_IF(before.started && !talk.started);
		if (taken)
			descriptors += data[0] & 3;
		KR_BUG_IF(kg_order_valid(&message) && taken);
	}
	KR_BUG_IF(descriptors > 1);
	check_result(&talk, false);
	check_result(&talk, true);
}

static void
verify(const char *block, size_t size)
{
	const char *at = block, *end = block + size;
	struct kg_verify entry;
	int more;

	while ((more = kg_verify_next(&at, end, &entry)) > 0) {
		KR_BUG_IF(at <= block || at > end || entry.path < block || entry.path + strlen(entry.path) + 1 != at);
		KR_BUG_IF(entry.path[0] != '/');
	}
	KR_BUG_IF(more == 0 && at != end);
}

static void
environment(const char *block, size_t size)
{
	long count = kg_env_count(block, size);
	size_t seen = 0;

	for (size_t i = 0; i < size; i++)
		seen += block[i] == '\0';
	KR_BUG_IF(count >= 0 && (size_t)count != seen);
}

static void
uncap(const char *args, size_t size)
{
	char *out = malloc(size + KG_UNCAP_ROOM);
	size_t n = kg_args_uncap(args, size, "/s/t", "/tmp", UINT64_MAX, out);

	KR_BUG_IF(n > size + KG_UNCAP_ROOM);
	for (size_t i = 0; i + 5 <= n && n; i++)
		KR_BUG_IF(i && out[i - 1] == '\0' && memcmp(out + i, "/s/t", 5) == 0 && i >= 8 &&
				  memcmp(out + i - 8, "\0--bind", 8) == 0 && i + 10 <= n &&
				  memcmp(out + i + 5, "/tmp", 5) == 0);
	free(out);
}

/* The bytes as a block of variables and as a search path, over an image with two variables and one that is
 * none. */
static void
image(const char *block, size_t size)
{
	static const char *const under[] = { "PATH=/bin", "A=1", "none", NULL };
	long count = kg_env_count(block, size);
	const char **out, *at;
	char *path, place[KG_PATH_ROOM];

	KR_BUG_IF(kg_oom_kills(block, size) > INT64_MAX);
	if (count >= 0) {
		out = malloc(((size_t)count + KR_COUNT(under)) * sizeof(*out));
		size_t n = kg_env_merge((char *const *)under, block, size, out);

		KR_BUG_IF(
			n < (size_t)count || n > (size_t)count + 2 || out[n] || !kg_env_find((char *const *)out, "PATH"));
		free(out);
	}
	path = malloc(size + 1);
	memcpy(path, block, size);
	path[size] = '\0';
	at = path;
	while (kg_path_next(&at, "sh", place))
		KR_BUG_IF(place[0] != '/' || strchr(place, ':') || strcmp(strrchr(place, '/'), "/sh") != 0);
	free(path);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy;

	if (size == 0)
		return 0;
	copy = malloc(size - 1 ? size - 1 : 1); /* nothing behind it: a read too far is seen */
	memcpy(copy, data + 1, size - 1);
	switch (data[0] & 7) {
	case 0:
		talk((const uint8_t *)copy, size - 1);
		break;
	case 1:
		verify(copy, size - 1);
		break;
	case 2:
		environment(copy, size - 1);
		break;
	case 3:
		uncap(copy, size - 1);
		break;
	default:
		image(copy, size - 1);
	}
	free(copy);
	return 0;
}
