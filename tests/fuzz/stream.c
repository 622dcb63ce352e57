/* What an agent prints: whatever it is, texts are clean and ended, figures are none below zero, and a
 * conversation is a word that no command line takes for an option. The first byte chooses the reader. */
#include <stddef.h>
#include <stdint.h>

#include "agent/stream.h"
#include "base/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_text(const char *text, size_t size, bool lines)
{
	char plain[KR_AGENT_SAID];
	size_t n = strnlen(text, size);

	KR_BUG_IF(n == size);
	KR_BUG_IF(kr_text_plain(plain, text, n, lines) != n || memcmp(plain, text, n) != 0);
}

static void
check_usage(const struct kr_usage *u)
{
	KR_BUG_IF(u->input < 0 || u->output < 0 || u->cache_write < 0 || u->cache_read < 0 || u->cost_micro < 0);
	KR_BUG_IF(!u->is_known && (u->input || u->output || u->cache_write || u->cache_read));
	KR_BUG_IF(!u->has_cost && u->cost_micro);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct kr_agent_clock clock = { 1796050266000, 3600 };
	static struct kr_agent_seen seen;
	struct kr_usage since;

	if (!size)
		return 0;
	kr_agent_stream_parse(
		data[0] & 1 ? KR_READER_CLAUDE : KR_READER_CODEX, (const char *)data + 1, size - 1, &clock, &seen);
	check_text(seen.conversation, sizeof(seen.conversation), false);
	check_text(seen.model, sizeof(seen.model), false);
	check_text(seen.limit_kind, sizeof(seen.limit_kind), false);
	check_text(seen.said, sizeof(seen.said), true);
	KR_BUG_IF(seen.conversation[0] == '-' || strpbrk(seen.conversation, " \t.=/"));
	KR_BUG_IF((unsigned)seen.trouble >= KR_TROUBLE_COUNT);
	KR_BUG_IF(seen.trouble != KR_TROUBLE_RATE_LIMIT && (seen.resets_ms || seen.limit_kind[0]));
	check_usage(&seen.usage);
	check_usage(&seen.own);
	kr_agent_usage_since(KR_READER_CODEX, &seen, &seen.own, &since);
	check_usage(&since);
	return 0;
}
