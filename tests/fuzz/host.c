/*
 * What is asked for, and address literals. Nothing crashes; what is read has one spelling, which reads as
 * itself; literals are those of inet_pton; and one decision on it keeps its promises.
 */
#include <arpa/inet.h>

#include "policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void
check_literal(const char *text, size_t n)
{
	struct kr_address address, again;
	char written[KR_ADDRESS_TEXT];
	uint8_t want[16] = { 0 };
	int family = strchr(text, ':') ? AF_INET6 : AF_INET;
	bool read = kr_address_parse(text, n, &address);

	if (strlen(text) == n) /* libc stops at a NUL */
		KR_BUG_IF(read != (inet_pton(family, text, want) == 1));
	if (!read)
		return;
	KR_BUG_IF(memcmp(address.b, want, family == AF_INET6 ? 16 : 4) != 0);
	kr_address_format(&address, written);
	KR_BUG_IF(!kr_address_parse(written, strlen(written), &again) || !kr_address_same(&address, &again));
	KR_BUG_IF(
		inet_pton(family, written, want) != 1 || memcmp(address.b, want, family == AF_INET6 ? 16 : 4) != 0);
}

static void
check_canonical(const struct kr_target *target)
{
	static const char in_names[] = "abcdefghijklmnopqrstuvwxyz0123456789-.", in_v6[] = "0123456789abcdef:";
	bool is_v6 = target->is_address && target->address.is_v6;
	size_t length = strlen(target->host);
	struct kr_target again;
	char text[KR_TARGET_TEXT];
	const char *why;

	KR_BUG_IF(length == 0 || length > KR_HOST_MAX || target->port > 65535);
	KR_BUG_IF(target->host[strspn(target->host, is_v6 ? in_v6 : in_names)]);
	KR_BUG_IF(
		!is_v6 && (strstr(target->host, "..") || target->host[0] == '.' || target->host[length - 1] == '.'));
	kr_target_format(target, text);
	KR_BUG_IF(
		!kr_target_parse(text, strlen(text), &again, &why) || memcmp(target, &again, sizeof(again)) != 0);
}

/* A name that is no literal must not be one for the resolver: inet_aton is what it tries first. */
static void
check_name(const struct kr_target *target)
{
	struct in_addr ignored;

	KR_BUG_IF(!target->is_address && inet_aton(target->host, &ignored));
}

static void
check_decision(const struct kr_target *asked)
{
	const char *everything[] = { "*", "**", "*.example", asked->host, NULL };
	struct kr_host_pattern pattern;
	struct kr_host_list list = { .allow = { everything, 4, 4 } };
	struct kr_target target = *asked;
	struct kr_address_report report;
	struct kr_verdict v;

	target.port = target.port ? target.port : 443;
	kr_host_decide(&list, KR_PHASE_RUNTIME, &target, NULL, &v);
	KR_BUG_IF(v.decision == KR_HOST_UNLISTED || v.decision == KR_HOST_DENIED || !v.reason[0]);
	KR_BUG_IF(v.decision == KR_HOST_ALWAYS && v.grant[0]);
	if (target.is_address) {
		kr_address_classify(&target.address, NULL, &report);
		KR_BUG_IF(kr_address_is_always_denied(report.class) != (v.decision == KR_HOST_ALWAYS));
		KR_BUG_IF(report.class == KR_ADDRESS_PRIVATE && (v.decision == KR_HOST_ALLOWED) != v.exact);
	}
	list = (struct kr_host_list){ .deny = { everything, 1, 4 }, .allow = { everything, 4, 4 } };
	kr_host_decide(&list, KR_PHASE_RUNTIME, &target, NULL, &v);
	KR_BUG_IF(v.decision != KR_HOST_DENIED && v.decision != KR_HOST_ALWAYS);
	kr_host_decide(&(struct kr_host_list){ 0 }, KR_PHASE_INSTALL, &target, NULL, &v);
	KR_BUG_IF(v.decision != KR_HOST_UNLISTED && v.decision != KR_HOST_ALWAYS);
	KR_BUG_IF(v.grant[0] && !kr_host_pattern_parse(v.grant, &pattern, NULL));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	kr_auto_free char *text = kr_xcalloc(1, n + 1);
	struct kr_target target;
	const char *why = NULL;

	if (n)
		memcpy(text, data, n);
	check_literal(text, n);
	if (!kr_target_parse(text, n, &target, &why)) {
		KR_BUG_IF(!why);
		return 0;
	}
	check_canonical(&target);
	check_name(&target);
	check_decision(&target);
	return 0;
}
