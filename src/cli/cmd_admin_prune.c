/*
 * kraft admin prune: the disk that ended work items still take. What it removes is work/archive.c's; here is
 * which items, and what a person is told. One that has to stay is named and is no failure; one that cannot be
 * removed does not hide the rest.
 */
#include "base/text.h"
#include "cli/work.h"
#include "config/policy_file.h"
#include "session/facts.h"

enum { DAYS_USUAL = 30, DAYS_MAX = 36500, DAY_MS = 86400000 };

enum { PRUNE_DRY, PRUNE_OLDER, PRUNE_JSON };
static const struct kr_option prune_options[] = {
	[PRUNE_DRY] = { "dry-run", 'n', NULL, "only tell what would be removed" },
	[PRUNE_OLDER] = { "older-than", 0, "DAYS", "items that ended so long ago; 0: all that ended" },
	[PRUNE_JSON] = { "json", 0, NULL, "for programs" },
	{ NULL },
};

struct pruning {
	struct kr_work work;
	uint64_t days, bytes; /* bytes: of what was, or would be, removed */
	size_t removed, kept;
	bool is_dry;
	json_t *items;          /* NULL: a person reads it */
	struct kr_error failed; /* the first that was no reason to keep one */
};

/* policy.yaml's 0 is "never by itself", and this is by hand. */
static int
find_days(struct pruning *p, const char *option, struct kr_error *err)
{
	struct kr_policy_file policy;

	if (option && !kr_text_to_u64(option, DAYS_MAX, &p->days))
		return kr_fail(
			err, KR_E_USAGE, "'--older-than' takes a number of days up to %d, not '%s'", DAYS_MAX, option);
	if (option)
		return 0;
	if (kr_policy_file_load(p->work.arena, &p->work.host.places, &policy, err) < 0)
		return -1;
	p->days = policy.archive_after_days ? policy.archive_after_days : DAYS_USUAL;
	return 0;
}

static const char *
size_text(struct kr_arena *arena, uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double size = (double)bytes;
	size_t unit = 0;

	for (; size >= 1024 && unit + 1 < KR_COUNT(units); unit++)
		size /= 1024;
	return kr_arena_printf(arena, unit && size < 100 ? "%.1f %s" : "%.0f %s", size, units[unit]);
}

static const char *
parts_text(struct kr_arena *arena, const struct kr_leftovers *l)
{
	const char *sessions =
		l->sessions.n ? kr_arena_printf(arena, "%zu session%s", l->sessions.n, l->sessions.n == 1 ? "" : "s")
					  : "";

	return kr_arena_printf(arena, "%s%s%s", l->has_worktree ? "worktree, home" : "",
		l->has_worktree && *sessions ? ", " : "", sessions);
}

static void
tell(struct pruning *p, const struct kr_leftovers *l, const char *kept)
{
	struct kr_arena *arena = p->work.arena;
	char safe[4096];

	if (p->items) {
		json_array_append_new(
			p->items, json_pack("{s:s, s:s, s:I, s:b, s:I, s:b, s:s?}", "id", l->row.id, "status",
						  l->row.status, "bytes", (json_int_t)l->bytes, "worktree", l->has_worktree,
						  "sessions", (json_int_t)l->sessions.n, "kept", kept != NULL, "reason", kept));
		return;
	}
	if (kept) {
		kr_text_escape(safe, sizeof(safe), kept, strlen(kept));
		printf("%-10s  %s: %s\n", "kept", l->row.id, safe);
		return;
	}
	printf("%-10s  %s: %s\n", size_text(arena, l->bytes), l->row.id, parts_text(arena, l));
}

/* A reason to keep it, or NULL. */
static const char *
prune_one(struct pruning *p, const struct kr_leftovers *l)
{
	struct kr_error err = { 0 };

	if (l->kept || p->is_dry || kr_work_archive(&p->work, l, "prune", &err) == 0)
		return l->kept;
	if (err.code != KR_E_BUSY && err.code != KR_E_REFUSED && p->failed.code == KR_E_NONE)
		p->failed = err;
	return kr_arena_dup(p->work.arena, err.message);
}

static void
prune_all(struct pruning *p, const struct kr_leftovers_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		const char *kept = prune_one(p, &list->v[i]);

		tell(p, &list->v[i], kept);
		p->kept += kept != NULL;
		p->removed += kept == NULL;
		p->bytes += kept ? 0 : list->v[i].bytes;
	}
}

static int
tell_sum(struct pruning *p, struct kr_error *err)
{
	if (p->items)
		return kr_print_json(json_pack("{s:b, s:I, s:O, s:I}", "dry_run", p->is_dry, "older_than_days",
									  (json_int_t)p->days, "items", p->items, "bytes", (json_int_t)p->bytes),
			err);
	if (!p->removed && !p->kept)
		printf("nothing is left of items that ended %llu days ago or earlier\n", (unsigned long long)p->days);
	else
		printf("%-10s  %s of %zu item%s%s\n", size_text(p->work.arena, p->bytes),
			p->is_dry ? "would be freed" : "freed", p->removed, p->removed == 1 ? "" : "s",
			p->kept ? kr_arena_printf(p->work.arena, ", %zu kept", p->kept) : "");
	return 0;
}

static int
prune(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct pruning p = { .is_dry = parsed->value[PRUNE_DRY] != NULL };
	struct kr_leftovers_list list;
	uint64_t now = kr_now_ms(), age;
	int result = kr_work_open_for_person(arena, &p.work, err);

	if (result == 0)
		result = find_days(&p, parsed->value[PRUNE_OLDER], err);
	age = p.days * DAY_MS;
	if (result == 0)
		result = kr_work_leftovers(&p.work, now > age ? now - age : 0, &list, err);
	if (result == 0) {
		p.items = parsed->value[PRUNE_JSON] ? json_array() : NULL;
		prune_all(&p, &list);
		result = tell_sum(&p, err);
	}
	json_decref(p.items);
	kr_work_close(&p.work);
	if (result < 0 || p.failed.code == KR_E_NONE)
		return result;
	*err = p.failed;
	return -1;
}

const struct kr_command kr_cmd_admin_prune = {
	.name = "admin prune",
	.usage = "[OPTIONS]",
	.summary = "free the disk that ended work items still take",
	.help = "Of items that were completed or cancelled long enough ago: worktree, home, results, and the "
			"logs of\n"
			"their sessions. Branches stay. What has commits that did not come out is kept and named.",
	.options = prune_options,
	.words_max = 0,
	.run = prune,
};
