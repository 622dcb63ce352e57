#include <stdlib.h>

#include "guest/family.h"

static int
by_id(const void *a, const void *b)
{
	const struct kg_process *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

/* In a table in the order of its ids. */
static const struct kg_process *
find(const struct kg_process *table, size_t n, uint64_t id)
{
	const struct kg_process key = { .id = id };

	return id && n ? bsearch(&key, table, n, sizeof(*table), by_id) : NULL;
}

static const struct kg_process *
seen_before(const struct kg_family *family, uint64_t id)
{
	return find(family->before, family->before_count, id);
}

static bool
is_never_ours(const struct kg_family *family, const struct kg_process *one)
{
	return one->pid <= 1 || one->pid == family->self || (one->id && (one->id == family->self_id || one->id == family->kraft_id));
}

bool
kg_family_is_proven(const struct kg_family *family, const struct kg_process *one)
{
	return one->inside == KG_INSIDE_YES && one->uid == family->uid && !one->has_ended && !is_never_ours(family, one);
}

/* Without a look at other processes of this table. */
static bool
is_known(const struct kg_family *family, const struct kg_process *one)
{
	const struct kg_process *before = seen_before(family, one->id), *parent = seen_before(family, one->parent_id);

	if (one->inside == KG_INSIDE_YES && one->uid == family->uid)
		return true;
	if (!one->id)
		return false;
	return one->id == family->command_id || (one->parent_id && one->parent_id == family->command_id) ||
		   (one->parent_id && one->parent_id == family->self_id) || (before && before->is_ours) ||
		   (parent && parent->is_ours);
}

/* Ids mostly grow, so one turn is enough; where they do not, until nobody comes to it. */
static void
spread(const struct kg_family *family, struct kg_process *table, size_t n)
{
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < n; i++) {
			const struct kg_process *parent = table[i].is_ours ? NULL : find(table, n, table[i].parent_id);

			if (parent && parent->is_ours && !is_never_ours(family, &table[i]))
				more = table[i].is_ours = true;
		}
	}
}

size_t
kg_family_judge(const struct kg_family *family, struct kg_process *table, size_t n)
{
	size_t running = 0;

	if (n)
		qsort(table, n, sizeof(*table), by_id);
	for (size_t i = 0; i < n; i++) {
		const struct kg_process *before = seen_before(family, table[i].id);

		table[i].signal = 0;
		table[i].was_stopped = before && before->was_stopped;
		table[i].is_ours = !is_never_ours(family, &table[i]) && is_known(family, &table[i]);
	}
	spread(family, table, n);
	for (size_t i = 0; i < n; i++)
		running += table[i].is_ours && !table[i].has_ended;
	return running;
}

/* Returns how many were not told before. */
static size_t
stop_all(struct kg_process *table, size_t n)
{
	size_t told = 0;

	for (size_t i = 0; i < n; i++) {
		if (!table[i].is_ours || table[i].has_ended || table[i].was_stopped)
			continue;
		table[i].signal = table[i].was_struck ? 0 : SIGSTOP;
		table[i].was_stopped = true;
		told++;
	}
	return told;
}

bool
kg_ending_step(struct kg_ending *ending, struct kg_process *table, size_t n, size_t ours, size_t missed)
{
	if (!ours && missed && ending->missing < KG_MISSED_LOOKS) {
		ending->missing++;
		ending->empty = 0;
		return false;
	}
	if (!ours)
		return ++ending->empty >= 2;
	ending->empty = ending->missing = 0;
	if (!ending->kills && ending->stopping++ < KG_STOP_LOOKS && stop_all(table, n))
		return false;
	ending->kills = true;
	for (size_t i = 0; i < n; i++)
		if (table[i].is_ours && !table[i].has_ended)
			table[i].signal = SIGKILL;
	return false;
}
