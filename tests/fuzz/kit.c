/*
 * A kit's descriptor, whoever wrote it: what is refused is said and steers no terminal, and what is taken is inside what a
 * person could have written. With a byte in front: 'r' gives the rest as what a decoder left, whatever became of it.
 */
#include <jansson.h>

#include "base/text.h"
#include "config/kit.h"
#include "policy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char name[] = "a@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

static void
check_list(const struct kr_strs *list)
{
	struct kr_host_pattern pattern;

	for (size_t i = 0; i < list->n; i++)
		KR_BUG_IF(!kr_host_pattern_parse(list->v[i], &pattern, NULL));
}

static void
check_kit(struct kr_arena *arena, const struct kr_kit *kit)
{
	const struct kr_sandbox_file file = { .file = "sandbox.yaml" };
	const struct kr_sandbox from = { .kind = KR_SANDBOX_KIT };
	struct kr_error err = { 0 };
	struct kr_sandbox out;

	KR_BUG_IF(!kit->network.is_set || kit->resources.cpu < 0 || kit->skipped.n + kit->ignored.n > KR_KIT_NOTES);
	for (int p = 0; p < KR_PHASE_COUNT; p++) {
		check_list(&kit->network.phase[p].allow);
		check_list(&kit->network.phase[p].deny);
	}
	for (size_t i = 0; i < kit->credential_count; i++) {
		const struct kr_credential *c = &kit->credentials[i];

		KR_BUG_IF(!kr_text_is_env_name(c->env) || !c->service || !c->inject_count);
		for (size_t k = 0; k < c->inject_count; k++)
			KR_BUG_IF(!strstr(c->inject[k].format, "%s") || strpbrk(c->inject[k].header, "\r\n: ") || !c->inject[k].domain[0]);
	}
	if (kr_kit_lower(arena, kit, &file, &from, &out, &err) < 0)
		KR_BUG_IF(!kit->credential_count || !err.hint[0]);
	else
		KR_BUG_IF(out.kind != KR_SANDBOX_DOCKER || out.unrestricted_network || strcmp(out.image, kit->name) != 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct kr_kit_answer answer;
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_error err = { 0 };
	struct kr_kit kit;

	if (n && data[0] == 'r') {
		answer = (struct kr_kit_answer){ .is_whole = true, .len = n - 1 };
		memcpy(answer.records, data + 1, n - 1 < sizeof(answer.records) ? n - 1 : 0);
	} else {
		json_object_seed(1);
		kr_kit_decode(data, n, &answer);
		KR_BUG_IF(answer.is_whole == (answer.fault[0] != '\0'));
	}
	if (kr_kit_read(&arena, name, &answer, &kit, &err) == 0)
		check_kit(&arena, &kit);
	else
		KR_BUG_IF(err.code != KR_E_CONFIG || !err.hint[0] || strpbrk(err.message, "\x1b\n") ||
				  !kr_text_is_utf8(err.message, strlen(err.message)));
	return 0;
}
