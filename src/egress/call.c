/* What a call may hold. kraft-egress makes sure that it only sends such, and kraft that it only takes such.
 */
#include "egress/call.h"

#include "base/text.h"

_Static_assert(
	sizeof(struct kr_call) == offsetof(struct kr_call, text), "no padding: it is sent as it stands");

static const char *const verbs[] = { [KR_VERB_NONE] = "",
#define X(verb, name) [KR_VERB_##verb] = name,
	KR_VERBS(X) KR_ASK_VERBS(X)
#undef X
};
static const char *const claims[] = { [KR_CLAIM_NONE] = "",
#define X(claim, name) [KR_CLAIM_##claim] = name,
	KR_CLAIMS(X)
#undef X
};

const char *
kr_verb_name(enum kr_verb verb)
{
	return verbs[verb];
}

enum kr_verb
kr_verb_of(const char *name, size_t n)
{
	for (enum kr_verb verb = KR_VERB_NONE + 1; verb < KR_VERB_FORM_END; verb++)
		if (strlen(verbs[verb]) == n && memcmp(verbs[verb], name, n) == 0)
			return verb;
	return KR_VERB_NONE;
}

const char *
kr_claim_name(enum kr_claim claim)
{
	return claims[claim];
}

static const char *const harnesses[] = { [KR_HARNESS_NONE] = "",
#define X(harness, name) [KR_HARNESS_##harness] = name,
	KR_HARNESSES(X)
#undef X
};

const char *
kr_hooked_name(enum kr_hooked harness)
{
	return harnesses[harness];
}

enum kr_hooked
kr_hooked_of(const char *name, size_t n)
{
	for (enum kr_hooked harness = KR_HARNESS_NONE + 1; harness < KR_HARNESS_END; harness++)
		if (strlen(harnesses[harness]) == n && memcmp(harnesses[harness], name, n) == 0)
			return harness;
	return KR_HARNESS_NONE;
}

/* ---- what may stand in it ---- */

static bool
is_printable(const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i] < 0x20 || bytes[i] > 0x7e)
			return false;
	return true;
}

bool
kr_call_is_word(const char *bytes, size_t n)
{
	return n >= 1 && n <= KR_CALL_WORD_MAX && is_printable(bytes, n) && !memchr(bytes, ' ', n);
}

static bool
is_text(const char *bytes, size_t n, size_t most)
{
	if (n > most || !kr_text_is_utf8(bytes, n))
		return false;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)bytes[i] < 0x20 && !memchr("\t\n\r", bytes[i], 3))
			return false;
	return memchr(bytes, 0x7f, n) == NULL;
}

bool
kr_call_is_text(const char *bytes, size_t n)
{
	return is_text(bytes, n, KR_CALL_TEXT_BYTES);
}

bool
kr_call_is_input(const char *bytes, size_t n)
{
	return n > 0 && is_text(bytes, n, KR_ASK_INPUT_BYTES);
}

static bool
is_zero(const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i])
			return false;
	return true;
}

static bool
is_padded(const char *array, size_t size, size_t n)
{
	return n < size && is_zero(array + n, size - n);
}

static bool
check_word(const char *array, size_t size, bool may_be, bool must_be)
{
	size_t n = strnlen(array, size);

	if (!is_padded(array, size, n) || (n == 0 && must_be) || (n > 0 && !may_be))
		return false;
	return n == 0 || kr_call_is_word(array, n);
}

static bool
check_route(const struct kr_call *call)
{
	size_t n = strnlen(call->route, sizeof(call->route));

	return n > 0 && n <= KR_CALL_ROUTE_MAX && is_padded(call->route, sizeof(call->route), n) &&
		   is_printable(call->route, n);
}

static bool
check_numbers(const struct kr_call *call)
{
	return call->claim < (call->verb == KR_VERB_REPLY ? KR_CLAIM_END : 1u) &&
		   call->open <= (call->verb == KR_VERB_THREADS) && call->task >= 0 &&
		   call->task <= (call->verb == KR_VERB_PROGRESS ? KR_CALL_TASK_MAX : 0) && call->after >= 0 &&
		   (call->after == 0 || call->verb == KR_VERB_EVENTS);
}

static bool
check_tool(const struct kr_call *call)
{
	const bool is_ask = call->verb == KR_VERB_ASK;
	size_t n = strnlen(call->tool, sizeof(call->tool));

	return is_padded(call->tool, sizeof(call->tool), n) && is_printable(call->tool, n) &&
		   !memchr(call->tool, ' ', n) && n <= (is_ask ? KR_MCP_WORD_BYTES : 0) && (n > 0) == is_ask &&
		   call->has_command <= is_ask && call->harness < (is_ask ? KR_HARNESS_END : 1u) && !call->zero &&
		   call->command_n <= (call->has_command ? KR_ASK_COMMAND_BYTES : 0u) &&
		   call->command_n <= call->text_n;
}

static bool
check_text(const struct kr_call *call)
{
	if (call->verb == KR_VERB_ASK)
		return kr_call_is_text(call->text, call->command_n) &&
			   kr_call_is_input(call->text + call->command_n, call->text_n - call->command_n);
	if (call->verb == KR_VERB_REPLY && call->text_n == 0)
		return false;
	if (call->verb != KR_VERB_REPLY && call->verb != KR_VERB_RETRY && call->text_n)
		return false;
	return kr_call_is_text(call->text, call->text_n);
}

bool
kr_call_check(const struct kr_call *call, size_t bytes)
{
	bool is_reply = call->verb == KR_VERB_REPLY;
	bool has_id = call->verb > KR_VERB_NONE && call->verb < KR_VERB_FORM_END && !is_reply;
	bool has_ask = call->verb == KR_VERB_ASK_STATE || call->verb == KR_VERB_ASK_CLOSE;

	return bytes >= sizeof(*call) && bytes - sizeof(*call) == call->text_n && call->verb < KR_VERB_END &&
		   check_numbers(call) && check_route(call) &&
		   check_word(call->id, sizeof(call->id), has_id, false) &&
		   check_word(call->thread, sizeof(call->thread), is_reply, is_reply) &&
		   check_word(call->type, sizeof(call->type), call->verb == KR_VERB_EVENTS, false) &&
		   check_word(call->ask, sizeof(call->ask), has_ask, has_ask) && check_tool(call) && check_text(call);
}

/* ---- its answer ---- */

/* By hand, since kraft-egress has this file too and no JSON: the detail is ours, but it may quote a word of a
 * worker's. */
void
kr_call_fail(struct kr_call_answer *answer, unsigned status, const char *detail)
{
	answer->status = status;
	answer->body.len = 0;
	kr_buf_adds(&answer->body, "{\"detail\":\"");
	for (; *detail; detail++)
		if (*detail == '"' || *detail == '\\')
			kr_buf_addf(&answer->body, "\\%c", *detail);
		else if (*detail < 0x20 || *detail > 0x7e)
			kr_buf_adds(&answer->body, "?");
		else
			kr_buf_add(&answer->body, detail, 1);
	kr_buf_adds(&answer->body, "\"}\n");
}
