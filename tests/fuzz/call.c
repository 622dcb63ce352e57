/*
 * The form of a worker's call: whatever it says, what comes out passes kraft's check and is within its
 * limits, and what does not come out has a reason. The same bytes as the call itself, as a hostile
 * kraft-egress would send it.
 */
#include "egress/form.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(const struct kr_call *call, size_t bytes)
{
	KR_BUG_IF(!kr_call_check(call, bytes));
	KR_BUG_IF(call->text_n > KR_CALL_BYTES_MAX || strlen(call->id) > KR_CALL_WORD_MAX ||
			  strlen(call->thread) > KR_CALL_WORD_MAX || strlen(call->type) > KR_CALL_WORD_MAX ||
			  strlen(call->route) > KR_CALL_ROUTE_MAX || call->task < 0 || call->after < 0);
	KR_BUG_IF(call->verb == KR_VERB_REPLY && (!call->text_n || !call->thread[0]));
	KR_BUG_IF(memchr(call->text, 0, call->text_n) != NULL);
}

/* The first byte is the verb. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kr_call *call;
	const char *why;
	char *form;

	if (size == 0 || size > KR_CALL_FORM_BYTES)
		return 0;
	form = malloc(size);
	KR_BUG_IF(!form);
	memcpy(form, data, size);
	if (size >= sizeof(*call) && kr_call_check((const struct kr_call *)(void *)form, size))
		KR_BUG_IF(((const struct kr_call *)(void *)form)->verb >= KR_VERB_END);
	call = kr_form_decode((enum kr_verb)(1 + data[0] % (KR_VERB_FORM_END - 1)), form + 1, size - 1, &why);
	KR_BUG_IF(!call && !why);
	if (call)
		check(call, sizeof(*call) + call->text_n);
	free(call);
	call = kr_call_new(KR_VERB_NONE, (const char *)data, size);
	KR_BUG_IF(!call || (data[0] && !kr_call_check(call, sizeof(*call))));
	free(call);
	free(form);
	return 0;
}
