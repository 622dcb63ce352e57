#include "server/keep.h"

/* Who waits for a provider has one too: it goes on by itself. */
static bool
had_slot(const struct kr_keep *k)
{
	return k->status == KR_STATUS_ACTIVE || k->status == KR_STATUS_RATE_LIMITED;
}

static bool
is_wanted(const struct kr_keep *k, uint64_t now_ms)
{
	const bool is_to_go_on = had_slot(k) || k->status == KR_STATUS_QUEUED;

	return ((is_to_go_on && !k->waits) || k->has_turn) && !k->is_hosted && k->not_before_ms <= now_ms;
}

/* Active ones first: they had a slot. */
static bool
comes_before(const struct kr_keep *a, const struct kr_keep *b)
{
	const bool a_active = had_slot(a), b_active = had_slot(b);

	return a_active != b_active ? a_active : a->since_ms < b->since_ms;
}

static struct kr_keep *
first_wanted(struct kr_keep *items, size_t n, uint64_t now_ms)
{
	struct kr_keep *first = NULL;

	for (size_t i = 0; i < n; i++)
		if (items[i].word == KR_KEEP_NOTHING && is_wanted(&items[i], now_ms) &&
			(!first || comes_before(&items[i], first)))
			first = &items[i];
	return first;
}

void
kr_keep_choose(struct kr_keep *items, size_t n, unsigned slots, uint64_t now_ms)
{
	struct kr_keep *next;
	unsigned hosted = 0;

	for (size_t i = 0; i < n; i++) {
		struct kr_keep *k = &items[i];

		k->word = KR_KEEP_NOTHING;
		hosted += k->is_hosted;
		if (k->status == KR_STATUS_BLOCKED && !k->is_hosted && !k->waits)
			k->word = KR_KEEP_REQUEUE;
		else if (k->failures >= KR_KEEP_FAILURES && is_wanted(k, UINT64_MAX))
			k->word = KR_KEEP_GIVE_UP;
	}
	for (; hosted < slots && (next = first_wanted(items, n, now_ms)); hosted++)
		next->word = KR_KEEP_START;
}
