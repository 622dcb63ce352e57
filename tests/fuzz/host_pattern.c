/* One entry of a network list. What is read must be a host of DNS's shape, and reading it again must change
 * nothing. */
#include "policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
check_host(const struct kr_host_pattern *pattern)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";
	size_t n = strlen(pattern->host);

	KR_BUG_IF(pattern->any != (n == 0));
	KR_BUG_IF(pattern->any && (pattern->star || pattern->port));
	KR_BUG_IF(pattern->host[strspn(pattern->host, allowed)] || strstr(pattern->host, ".."));
	KR_BUG_IF(n && (strchr(".-", pattern->host[0]) || strchr(".-", pattern->host[n - 1])));
	KR_BUG_IF(pattern->port > 65535);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	kr_auto_free char *text = kr_xcalloc(1, n + 1);
	struct kr_host_pattern pattern, again;
	char canonical[KR_HOST_MAX + 16];
	const char *why = NULL;

	if (n)
		memcpy(text, data, n);
	if (!kr_host_pattern_parse(text, &pattern, &why)) {
		KR_BUG_IF(!why);
		return 0;
	}
	check_host(&pattern);
	if (pattern.port)
		snprintf(
			canonical, sizeof(canonical), "%s%s:%u", pattern.star ? "*." : "", pattern.host, pattern.port);
	else
		snprintf(canonical, sizeof(canonical), "%s%s",
			pattern.any    ? "*"
			: pattern.star ? "*."
						   : "",
			pattern.host);
	KR_BUG_IF(
		!kr_host_pattern_parse(canonical, &again, &why) || memcmp(&pattern, &again, sizeof(again)) != 0);
	return 0;
}
