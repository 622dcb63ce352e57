/*
 * The head of a request inside of ended TLS. What is judged good and written anew is read again as one request for the same host,
 * with each secret once at most, no sentinel anywhere, and the same framing.
 */
#include "egress/secret.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SENTINEL "sentinel-0123456789abcdef"
#define SENTINEL_B "b-sentinel-0123456789abcd"
#define REAL "the-secret"
#define REAL_B "b-secret"

static const struct kr_managed_rule all[] = {
	{ "api.example", 443, "x-api-key", "%s", SENTINEL, "A", "RA", REAL },
	{ "api.example", 443, "authorization", "Bearer %s", SENTINEL_B, "B", "RB", REAL_B },
};
static const struct kr_managed_rule *const rules[] = { &all[0], &all[1] };
static const struct kr_target target = { .host = "api.example", .port = 443 };

static size_t
count(const struct kr_buf *in, const char *text)
{
	size_t n = 0;

	for (const char *at = in->data; (at = memmem(at, in->len - (size_t)(at - in->data), text, strlen(text))); at++)
		n++;
	return n;
}

static void
check_written(const struct kr_head *head, const struct kr_buf *out)
{
	static struct kr_head again;
	struct kr_head_scan scan = { 0 };
	const char *why;
	size_t n;

	KR_BUG_IF(kr_head_scan(&scan, out->data, out->len) != KR_SCAN_WHOLE || scan.at != out->len);
	KR_BUG_IF(kr_request_parse(out->data, out->len, &again, &why) != 0);
	KR_BUG_IF(again.framing != head->framing || again.length != head->length || again.method != head->method);
	KR_BUG_IF(strncmp(kr_head_find(&again, "host", &n)->value.at, "api.example\r\n", 13) != 0 || n != 1);
	KR_BUG_IF(kr_head_find(&again, "x-api-key", &n) && n != 1);
	KR_BUG_IF(kr_head_find(&again, "authorization", &n) && n != 1);
	KR_BUG_IF(!kr_head_find(&again, "x-api-key", &n) && !kr_head_find(&again, "authorization", &n));
	KR_BUG_IF(count(out, SENTINEL) || count(out, SENTINEL_B) || count(out, ": " REAL "\r\n") > 1);
	KR_BUG_IF(kr_head_find(&again, "cookie", &n) || kr_head_find(&again, "connection", &n));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct kr_head head;
	static char buffer[KR_HEAD_BYTES * 2];
	const struct kr_secret_host host = { &target, rules, KR_COUNT(rules), all, KR_COUNT(all) };
	struct kr_buf out = { .data = buffer, .cap = sizeof(buffer), .max = sizeof(buffer) - 1 };
	const struct kr_managed_rule *rule;
	struct kr_head_scan scan = { 0 };
	char words[KR_SECRET_WORDS], *bytes = malloc(size + 1);
	enum kr_secret_reason reason;
	const char *why;

	KR_BUG_IF(!bytes);
	memcpy(bytes, data, size);
	if (kr_head_scan(&scan, bytes, size) == KR_SCAN_WHOLE && kr_request_parse(bytes, scan.at, &head, &why) == 0) {
		reason = kr_secret_judge(&host, &head, &rule);
		kr_secret_words(reason, rule, words);
		KR_BUG_IF((words[0] == '\0') != (reason == KR_SECRET_GOOD));
		/* The secrets are in no request that a worker could write. */
		if (reason == KR_SECRET_GOOD && !memmem(bytes, size, REAL, strlen(REAL)) && !memmem(bytes, size, REAL_B, strlen(REAL_B))) {
			kr_secret_write(&host, &head, "api.example", &out);
			if (!out.overflow)
				check_written(&head, &out);
		}
	}
	free(bytes);
	return 0;
}
