/*
 * The keeper looks at the store when its files changed, and every few seconds. It opens it for that only: the server
 * forks for each connection, and an open SQLite database must not be there then.
 */
#include "server/internal.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/portable.h"
#include "os/timer.h"

enum { ANYWAY_MS = 5000, LONG_MS = 60000, PAUSE_MS = 500 };

/* A host that we started. */
struct child {
	struct kr_work_child process;
	char *id;
	int64_t begun_ms;
	struct child *next;
};

/* An item whose host ended and left it as it was. */
struct trouble {
	char *id;
	unsigned failures;
	int64_t not_before_ms;
	char reason[768];
	struct trouble *next;
};

/* What tells that something was written. */
struct stamp {
	struct timespec db, log;
	off_t log_size;
};

struct kr_keeper {
	struct kr_host host;
	const char *const *within;
	struct child *children;
	struct trouble *troubles;
	struct stamp stamp;
	int64_t looked_ms, again_ms; /* again_ms 0: when something changes */
	unsigned slots;
	bool has_looked;
};

struct kr_keeper *
kr_keeper_open(const struct kr_host *host, const char *const *within)
{
	struct kr_keeper *keeper = kr_xcalloc(1, sizeof(*keeper));

	keeper->host = *host;
	keeper->within = within;
	return keeper;
}

static void
free_child(struct child *child)
{
	(void)close(child->process.word_fd);
	free(child->id);
	free(child);
}

void
kr_keeper_close(struct kr_keeper *keeper)
{
	while (keeper->children) {
		struct child *next = keeper->children->next;

		free_child(keeper->children);
		keeper->children = next;
	}
	while (keeper->troubles) {
		struct trouble *next = keeper->troubles->next;

		free(keeper->troubles->id);
		free(keeper->troubles);
		keeper->troubles = next;
	}
	free(keeper);
}

void
kr_keeper_set_slots(struct kr_keeper *keeper, unsigned slots)
{
	keeper->slots = slots;
	keeper->looked_ms = 0;
}

/* ---- trouble ---- */

static struct trouble *
find_trouble(struct kr_keeper *keeper, const char *id)
{
	struct trouble *t = keeper->troubles;

	while (t && strcmp(t->id, id) != 0)
		t = t->next;
	return t;
}

static void
forget_trouble(struct kr_keeper *keeper, const char *id)
{
	for (struct trouble **at = &keeper->troubles; *at; at = &(*at)->next)
		if (strcmp((*at)->id, id) == 0) {
			struct trouble *gone = *at;

			*at = gone->next;
			free(gone->id);
			free(gone);
			return;
		}
}

/* Whether the item was left as it was is seen at the next look. One that another process was still at is only tried
 * again. */
static void
note_trouble(struct kr_keeper *keeper, const char *id, int64_t lived_ms, const struct kr_error *why)
{
	struct trouble *t = find_trouble(keeper, id);

	if (!t) {
		t = kr_xcalloc(1, sizeof(*t));
		t->id = kr_xstrdup(id);
		t->next = keeper->troubles;
		keeper->troubles = t;
	}
	if (why->code != KR_E_BUSY)
		t->failures = lived_ms > LONG_MS ? 1 : t->failures + 1;
	t->not_before_ms = kr_clock_ms() + ((int64_t)PAUSE_MS << (t->failures < 8 ? t->failures : 8));
	snprintf(t->reason, sizeof(t->reason), "%s", why->message);
}

/* ---- children ---- */

static bool
is_child(const struct kr_keeper *keeper, const char *id)
{
	for (const struct child *c = keeper->children; c; c = c->next)
		if (strcmp(c->id, id) == 0)
			return true;
	return false;
}

bool
kr_keeper_reaped(struct kr_keeper *keeper, pid_t pid)
{
	struct child **at = &keeper->children, *child;
	struct kr_error err = { 0 };

	while (*at && (*at)->process.pid != pid)
		at = &(*at)->next;
	child = *at;
	if (!child)
		return false;
	*at = child->next;
	if (kr_work_child_word(child->process.word_fd, &err))
		kr_fail(&err, KR_E_SYSTEM, "its host ended before it had come to an end");
	note_trouble(keeper, child->id, kr_clock_ms() - child->begun_ms, &err);
	free_child(child);
	keeper->looked_ms = 0;
	return true;
}

static bool
is_of_interest(enum kr_status status)
{
	return status == KR_STATUS_ACTIVE || status == KR_STATUS_RATE_LIMITED || status == KR_STATUS_QUEUED ||
		   status == KR_STATUS_BLOCKED;
}

static void
start(struct kr_keeper *keeper, struct kr_work *work, const struct kr_keep *item)
{
	const bool turn_only = !is_of_interest(item->status) || item->status == KR_STATUS_BLOCKED;
	const char *id = item->id;
	struct child *child = kr_xcalloc(1, sizeof(*child));
	struct kr_error err = { 0 };

	if (kr_work_spawn(work, id, turn_only, keeper->within, &child->process, &err) < 0) {
		kr_server_log("item '%s': %s", id, err.message);
		note_trouble(keeper, id, 0, &err);
		free(child);
		return;
	}
	child->id = kr_xstrdup(id);
	child->begun_ms = kr_clock_ms();
	child->next = keeper->children;
	keeper->children = child;
	kr_server_log("item '%s': process %d is its host", id, (int)child->process.pid);
}

/* ---- looking ---- */

static enum kr_status
status_of(const struct kr_item_row *row)
{
	for (enum kr_status s = 0; s < KR_STATUS_COUNT; s++)
		if (kr_work_is(row, s))
			return s;
	return KR_STATUS_PAUSED; /* of a newer kraft: none of ours */
}

static int
does_wait(struct kr_work *work, const char *id, bool *out, struct kr_error *err)
{
	struct kr_work_view v = { 0 };

	if (kr_store_dependencies(work->arena, work->store, id, &v.dependencies, err) < 0)
		return -1;
	*out = kr_work_waits_for(&v) != NULL;
	return 0;
}

static int
read_items(struct kr_keeper *keeper, struct kr_work *work, struct kr_keep **out, size_t *count,
	struct kr_error *err)
{
	struct kr_item_rows rows;
	struct kr_keep *items;
	size_t n = 0;

	if (kr_work_rows(work->arena, work->store, &rows, err) < 0)
		return -1;
	items = kr_arena_alloc(work->arena, (rows.n + 1) * sizeof(*items));
	for (size_t i = 0; i < rows.n; i++) {
		const struct kr_item_row *row = &rows.v[i];
		const enum kr_status status = status_of(row);
		const struct trouble *t = find_trouble(keeper, row->id);

		if (!is_of_interest(status) && !row->turn) {
			forget_trouble(keeper, row->id);
			continue;
		}
		items[n] = (struct kr_keep){ .id = row->id,
			.status = status,
			.has_turn = row->turn != NULL,
			.is_hosted = is_child(keeper, row->id) || kr_work_is_locked(work, row->id),
			.failures = t ? t->failures : 0,
			.since_ms = row->changed_ms,
			.not_before_ms = t ? (uint64_t)t->not_before_ms : 0 };
		if (does_wait(work, row->id, &items[n++].waits, err) < 0)
			return -1;
	}
	*out = items;
	*count = n;
	return 0;
}

static int
give_up(struct kr_keeper *keeper, struct kr_work *work, const char *id, struct kr_error *err)
{
	const struct trouble *t = find_trouble(keeper, id);
	const char *reason = kr_arena_printf(work->arena, "no host stayed at it: %s; 'kraft item start %s' tries again",
		t ? t->reason : "", id);

	if (kr_work_give_up(work, id, reason, err) < 0)
		return -1;
	kr_server_log("item '%s': %s", id, reason);
	forget_trouble(keeper, id);
	return 0;
}

static int
carry_out(struct kr_keeper *keeper, struct kr_work *work, const struct kr_keep *item, struct kr_error *err)
{
	switch (item->word) {
	case KR_KEEP_START:
		start(keeper, work, item);
		return 0;
	case KR_KEEP_REQUEUE:
		keeper->again_ms = 1;
		return kr_work_requeue(work, item->id, err);
	case KR_KEEP_GIVE_UP:
		return give_up(keeper, work, item->id, err);
	case KR_KEEP_NOTHING:
		break;
	}
	return 0;
}

/* What the server found when it began. */
static void
count_first(struct kr_keeper *keeper, const struct kr_keep *items, size_t n, struct kr_api_health *health)
{
	if (keeper->has_looked)
		return;
	for (size_t i = 0; i < n; i++)
		if (items[i].status == KR_STATUS_ACTIVE || items[i].status == KR_STATUS_RATE_LIMITED) {
			health->scanned++;
			*(items[i].is_hosted ? &health->adopted : &health->resumed) += 1;
		}
	keeper->has_looked = true;
}

/* Soonest of those that have to wait for another try. */
static int64_t
soonest(const struct kr_keep *items, size_t n)
{
	uint64_t first = 0;

	for (size_t i = 0; i < n; i++)
		if (items[i].not_before_ms && !items[i].is_hosted && (!first || items[i].not_before_ms < first))
			first = items[i].not_before_ms;
	return (int64_t)first;
}

static int
look(struct kr_keeper *keeper, struct kr_work *work, struct kr_api_health *health, struct kr_error *err)
{
	struct kr_keep *items;
	size_t n;

	if (kr_store_open(work->host.places.run_dir, KR_STORE_WRITE, &work->store, err) < 0 ||
		read_items(keeper, work, &items, &n, err) < 0)
		return -1;
	count_first(keeper, items, n, health);
	kr_keep_choose(items, n, keeper->slots, (uint64_t)kr_clock_ms());
	keeper->again_ms = soonest(items, n);
	for (size_t i = 0; i < n; i++) {
		struct kr_error why = { 0 };

		/* Of a person who says something about it at this moment: seen at the next look. */
		if (carry_out(keeper, work, &items[i], &why) < 0 && why.code != KR_E_BUSY && why.code != KR_E_REFUSED) {
			*err = why;
			return -1;
		}
	}
	return 0;
}

static struct stamp
stamp_now(const struct kr_keeper *keeper)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const char *path = kr_path_join(&arena, keeper->host.places.run_dir, "orchestrator.db");
	struct stamp stamp = { 0 };
	struct stat st;

	if (stat(path, &st) == 0)
		stamp.db = kr_mtime(&st);
	if (stat(kr_arena_printf(&arena, "%s-wal", path), &st) == 0) {
		stamp.log = kr_mtime(&st);
		stamp.log_size = st.st_size;
	}
	return stamp;
}

static bool
is_due(struct kr_keeper *keeper, int64_t now)
{
	const struct stamp stamp = stamp_now(keeper);
	bool changed = memcmp(&stamp, &keeper->stamp, sizeof(stamp)) != 0;

	keeper->stamp = stamp;
	return changed || !keeper->looked_ms || now - keeper->looked_ms >= ANYWAY_MS ||
		   (keeper->again_ms && now >= keeper->again_ms);
}

void
kr_keeper_look(struct kr_keeper *keeper, struct kr_api_health *health)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_work work = { .arena = &arena, .host = keeper->host };
	const int64_t now = kr_clock_ms();
	struct kr_error err = { 0 };

	if (!is_due(keeper, now))
		return;
	keeper->looked_ms = now;
	if (look(keeper, &work, health, &err) < 0)
		kr_server_log("the items cannot be looked at: %s", err.message);
	kr_work_close(&work);
}
