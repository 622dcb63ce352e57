#include "egress/secret.h"

#include <strings.h>

#include "base/text.h"

/* ---- comparing ---- */

static char
spelled(char c)
{
	return (char)(c == '_' ? '-' : c >= 'A' && c <= 'Z' ? c + 32 : c);
}

/* Behind a gateway of CGI's kind '_' and '-' are the same in a name, so here they are too: two spellings would be two identities. */
static bool
is_named(const struct kr_field *field, const char *name)
{
	if (field->name.n != strlen(name))
		return false;
	for (size_t i = 0; i < field->name.n; i++)
		if (spelled(field->name.at[i]) != spelled(name[i]))
			return false;
	return true;
}

/* In a time that does not tell how much of it was right. */
static unsigned char
differ(const char *a, const char *b, size_t n)
{
	volatile unsigned char found = 0;

	for (size_t i = 0; i < n; i++)
		found = (unsigned char)(found | (a[i] ^ b[i]));
	return found;
}

/* The format around what stands for "%s". */
static void
split_format(const struct kr_managed_rule *rule, struct kr_bytes *before, struct kr_bytes *after)
{
	const char *at = strstr(rule->format, "%s");

	KR_BUG_IF(!at);
	*before = (struct kr_bytes){ rule->format, (size_t)(at - rule->format) };
	*after = (struct kr_bytes){ at + 2, strlen(at + 2) };
}

static bool
carries_sentinel(const struct kr_managed_rule *rule, struct kr_bytes value)
{
	size_t n = strlen(rule->sentinel);
	struct kr_bytes before, after;

	split_format(rule, &before, &after);
	if (value.n != before.n + n + after.n)
		return false;
	return !(differ(value.at, before.at, before.n) | differ(value.at + before.n, rule->sentinel, n) |
			 differ(value.at + before.n + n, after.at, after.n));
}

/* ---- a sentinel where none belongs ---- */

/* The byte that stands at `at`, written as it is or as %XX; how many it takes. */
static size_t
decoded(const char *at, const char *end, char *out)
{
	*out = *at;
	if (*at != '%' || end - at < 3 || kr_hex_digit(at[1]) < 0 || kr_hex_digit(at[2]) < 0)
		return 1;
	*out = (char)(kr_hex_digit(at[1]) << 4 | kr_hex_digit(at[2]));
	return 3;
}

static bool
begins_with(const char *at, const char *end, const char *text)
{
	char c;

	for (; *text; text++) {
		if (at == end)
			return false;
		at += decoded(at, end, &c);
		if (c != *text)
			return false;
	}
	return true;
}

/* As it is, or with any of its bytes as %XX. */
static bool
holds(struct kr_bytes bytes, const char *text)
{
	for (size_t i = 0; i < bytes.n; i++)
		if (begins_with(bytes.at + i, bytes.at + bytes.n, text))
			return true;
	return false;
}

/* Of either alphabet. */
static int
digit(char c)
{
	return kr_base64_digit((char)(c == '-' ? '+' : c == '_' ? '/' : c));
}

/* Any of the session's sentinels in what is read as base64, in each of the four places where a group may begin: "Basic dXNlcjp..."
 * and its like. NULL: none. */
static const struct kr_managed_rule *
find_in_base64(const struct kr_secret_host *host, struct kr_bytes bytes)
{
	static char plain[KR_HEAD_BYTES];

	for (size_t first = 0; first < 4; first++) {
		uint32_t bits = 0;
		size_t n = 0, taken = 0;

		for (size_t i = first; i < bytes.n; i++) {
			int value = digit(bytes.at[i]);

			/* What is no digit ends a group; a byte that no digit of it gives keeps two texts from becoming one. */
			if (value < 0) {
				taken = 0;
				plain[n++] = '\0';
				continue;
			}
			bits = bits << 6 | (uint32_t)value;
			if (++taken % 4 != 1)
				plain[n++] = (char)(bits >> (taken % 4 == 2 ? 4 : taken % 4 == 3 ? 2 : 0));
		}
		for (size_t i = 0; i < host->all_n; i++)
			if (memmem(plain, n, host->all[i].sentinel, strlen(host->all[i].sentinel)))
				return &host->all[i];
	}
	return NULL;
}

static bool
is_rule_header(const struct kr_secret_host *host, const struct kr_field *field)
{
	for (size_t i = 0; i < host->n; i++)
		if (is_named(field, host->rules[i]->header))
			return true;
	return false;
}

static const struct kr_managed_rule *
find(const struct kr_secret_host *host, struct kr_bytes bytes)
{
	for (size_t i = 0; i < host->all_n; i++)
		if (holds(bytes, host->all[i].sentinel))
			return &host->all[i];
	return NULL;
}

/* The rule of a sentinel that is where none belongs; NULL: there is none. */
static const struct kr_managed_rule *
find_elsewhere(const struct kr_secret_host *host, const struct kr_head *head)
{
	const struct kr_managed_rule *found = find(host, head->target);

	for (size_t i = 0; i < head->n && !found; i++) {
		const struct kr_field *field = &head->fields[i];

		found = find(host, field->name);
		if (!found && !is_rule_header(host, field))
			found = find(host, field->value);
		if (!found && !is_rule_header(host, field))
			found = find_in_base64(host, field->value);
	}
	return found;
}

/* ---- the judgement ---- */

static bool
is_path(const struct kr_head *head)
{
	return head->method != KR_METHOD_CONNECT && !memchr(head->target.at, '#', head->target.n) &&
		   (head->target.at[0] == '/' || (head->method == KR_METHOD_OPTIONS && head->target.n == 1 && head->target.at[0] == '*'));
}

static bool
is_for_host(const struct kr_secret_host *host, const struct kr_head *head)
{
	size_t hosts;
	const struct kr_field *field = kr_head_find(head, "host", &hosts);
	struct kr_target target;

	return hosts == 1 && kr_target_parse(field->value.at, field->value.n, &target, NULL) &&
		   strcmp(target.host, host->target->host) == 0 && (target.port == host->target->port || target.port == 0);
}

/* Of one rule: how many of its headers there are, each good; -1: one is not. */
static int
count_good(const struct kr_managed_rule *rule, const struct kr_head *head)
{
	int n = 0;

	for (size_t i = 0; i < head->n; i++) {
		if (!is_named(&head->fields[i], rule->header))
			continue;
		if (!carries_sentinel(rule, head->fields[i].value))
			return -1;
		n++;
	}
	return n;
}

static enum kr_secret_reason
judge_headers(const struct kr_secret_host *host, const struct kr_head *head, const struct kr_managed_rule **rule)
{
	bool has_one = false;

	for (size_t i = 0; i < host->n; i++) {
		int n = count_good(host->rules[i], head);

		*rule = host->rules[i];
		if (n < 0)
			return KR_SECRET_WRONG;
		if (n > 0 && !host->rules[i]->value)
			return KR_SECRET_NO_VALUE;
		has_one |= n > 0;
	}
	*rule = host->rules[0];
	return has_one ? KR_SECRET_GOOD : KR_SECRET_MISSING;
}

enum kr_secret_reason
kr_secret_judge(const struct kr_secret_host *host, const struct kr_head *head, const struct kr_managed_rule **rule)
{
	const struct kr_managed_rule *elsewhere = find_elsewhere(host, head);

	*rule = host->rules[0];
	if (!is_path(head))
		return KR_SECRET_FORM;
	if (!is_for_host(host, head))
		return KR_SECRET_HOST;
	if (elsewhere) {
		*rule = elsewhere;
		return KR_SECRET_ELSEWHERE;
	}
	return judge_headers(host, head, rule);
}

void
kr_secret_words(unsigned reason, const struct kr_managed_rule *rule, char out[KR_SECRET_WORDS])
{
	static const struct {
		enum { NOTHING, VARIABLE, SOURCE } of;
		const char *words;
	} reasons[] = {
		[KR_SECRET_GOOD] = { NOTHING, "" },
#define X(reason, of, words) [KR_SECRET_##reason] = { of, words },
		KR_SECRET_REASONS(X)
#undef X
	};
	const char *words = reason < KR_COUNT(reasons) ? reasons[reason].words : "", *at = strstr(words, "%s");

	if (!at)
		snprintf(out, KR_SECRET_WORDS, "%s", words);
	else
		snprintf(out, KR_SECRET_WORDS, "%.*s%s%s", (int)(at - words), words,
			reasons[reason].of == SOURCE ? rule->source : rule->variable, at + 2);
}

bool
kr_secret_is_websocket(const struct kr_head *head)
{
	static const char name[] = "websocket";

	for (size_t i = 0; i < head->n; i++) {
		const struct kr_bytes value = head->fields[i].value;

		for (size_t at = 0; is_named(&head->fields[i], "upgrade") && at + sizeof(name) - 1 <= value.n; at++)
			if (strncasecmp(value.at + at, name, sizeof(name) - 1) == 0)
				return true;
	}
	return false;
}

/* ---- written anew ---- */

/* Headers that are known to carry a credential; whatever the worker has of its own in them is not sent. What asks
 * for an answer that could not be looked through for what must not come back (echo.h) is dropped too: packed, or in parts. */
static const char *const dropped[] = { "authorization", "proxy-authorization", "cookie", "x-api-key", "api-key", "apikey",
	"x-goog-api-key", "x-goog-iam-authorization-token", "x-auth-token", "x-access-token", "x-auth-key", "x-api-token",
	"private-token", "job-token", "deploy-token", "x-gitlab-token", "x-amz-security-token", "x-ms-authorization-auxiliary", "x-vault-token",
	"accept-encoding", "range", "request-range", "if-range" };

static bool
is_dropped(const void *context, const struct kr_field *field)
{
	for (size_t i = 0; i < KR_COUNT(dropped); i++)
		if (is_named(field, dropped[i]))
			return true;
	return is_rule_header(context, field);
}

/* In pieces: kr_buf_addf would leave a copy of the secret behind. */
static void
add_secrets(const void *context, const struct kr_head *head, struct kr_buf *out)
{
	const struct kr_secret_host *host = context;

	for (size_t i = 0; i < host->n; i++) {
		const struct kr_managed_rule *rule = host->rules[i];
		struct kr_bytes before, after;

		if (count_good(rule, head) <= 0)
			continue;
		split_format(rule, &before, &after);
		kr_buf_adds(out, rule->header);
		kr_buf_adds(out, ": ");
		kr_buf_add(out, before.at, before.n);
		kr_buf_adds(out, rule->value);
		kr_buf_add(out, after.at, after.n);
		kr_buf_adds(out, "\r\n");
	}
}

void
kr_secret_write(const struct kr_secret_host *host, const struct kr_head *head, const char *authority, struct kr_buf *out)
{
	struct kr_destination to = { .path = head->target };

	snprintf(to.authority, sizeof(to.authority), "%s", authority);
	kr_request_write(&(struct kr_request_write){ .head = head, .to = &to, .authorization = "", .keeps = true, .is_dropped = is_dropped,
						 .add = add_secrets, .context = host }, out);
}
