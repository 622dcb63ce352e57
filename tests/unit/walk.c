/* walk: what comes next in a chain, by tables of marks; and a property over random walks (ITM-02 to ITM-04).
 */
#include "repo.h"

#include "work/walk.h"

static const char chain_text[] = "id: t\n"
								 "nodes:\n"
								 "  - id: make\n"
								 "    kind: exec\n"
								 "    steps:\n"
								 "      - id: one\n"
								 "        tasks:\n"
								 "          - {id: a, kind: subprocess, command: a}\n"
								 "          - {id: b, kind: subprocess, command: b}\n"
								 "      - id: two\n"
								 "        tasks:\n"
								 "          - {id: c, kind: subprocess, command: c}\n"
								 "  - id: check\n"
								 "    kind: exec\n"
								 "    tasks:\n"
								 "      - {id: t, kind: subprocess, command: t, skippable: false}\n"
								 "    on_failure:\n"
								 "      tasks:\n"
								 "        - {id: r, kind: subprocess, command: r}\n"
								 "    fix_loop:\n"
								 "      max_attempts: 2\n"
								 "      tasks:\n"
								 "        - {id: f, kind: subprocess, command: f}\n"
								 "  - id: gate\n"
								 "    kind: gate\n"
								 "    reject_to: make\n"
								 "  - id: last\n"
								 "    kind: exec\n"
								 "    tasks:\n"
								 "      - {id: z, kind: subprocess, command: z}\n";

static const struct kr_walk_limits limits = { .fix_attempts = 3, .rejections = 2 };

static struct kr_chain
parse(struct kr_arena *arena)
{
	static const struct kr_places places = { "/h", "/h/.kraft", "/h/.kraft/run", "/h/.kraft/config" };
	struct kr_error err = { 0 };
	struct kr_chain chain;

	if (kr_chain_parse(arena, &places, "t.yaml", "t", chain_text, strlen(chain_text), &chain, &err) < 0)
		fail_msg("%s", err.message);
	return chain;
}

static const char *
describe(struct kr_arena *arena, const struct kr_chain *chain, const struct kr_next *next)
{
	const char *text;

	switch (next->kind) {
	case KR_NEXT_RUN:
		text = "run";
		for (size_t i = 0; i < next->task_count; i++)
			text = kr_arena_printf(arena, "%s %s", text, next->tasks[i]->path);
		return text;
	case KR_NEXT_GATE:
		return kr_arena_printf(arena, "gate %s", chain->nodes[next->node].id);
	case KR_NEXT_STOP:
		return kr_arena_printf(arena, "stop %s %s", kr_stop_name(next->stop), next->path);
	default:
		return "complete";
	}
}

enum { MARKS_MAX = 400 };

/* "make.one.a=done gate=approved"; "check.main.t=failed:x": with the fingerprint x */
static size_t
read_marks(struct kr_arena *arena, const char *text, struct kr_work_mark marks[MARKS_MAX])
{
	char *copy = kr_arena_dup(arena, text), *rest = copy;
	size_t n = 0;

	for (char *word; (word = strsep(&rest, " "));) {
		char *sign = strchr(word, '=');

		if (!*word)
			continue;
		assert_non_null(sign);
		*sign = '\0';
		marks[n].fingerprint = strchr(sign + 1, ':');
		if (marks[n].fingerprint)
			*(char *)marks[n].fingerprint++ = '\0';
		assert_true(kr_mark_from_name(sign + 1, &marks[n].kind));
		marks[n++].path = word;
	}
	return n;
}

static const char *
next_of(struct kr_arena *arena, const struct kr_chain *chain, const char *text)
{
	struct kr_work_mark marks[MARKS_MAX];
	struct kr_error err = { 0 };
	struct kr_next next;

	if (kr_walk_next(arena, chain, &limits, marks, read_marks(arena, text, marks), &next, &err) < 0)
		return kr_arena_printf(arena, "refused %s", err.message);
	return describe(arena, chain, &next);
}

#define MADE "make.one.a=done make.one.b=done make.two.c=done "
#define CHECKED MADE "check.main.t=done "
#define F "check.main.t=failed "
#define RECOVERED F "check.on_failure.main.r=done "
#define FIXED "check.fix_loop.main.f=done "
#define FX "check.main.t=failed:x "
#define FY "check.main.t=failed:y "
#define MENDED FX "check.on_failure.main.r=done " FX FIXED /* its first attempt is spent */

static void
marks_lead_to_what_comes_next(void **state)
{
	static const struct {
		const char *marks, *next;
	} cases[] = {
		{ "", "run make.one.a make.one.b" },
		{ "make.one.b=done", "run make.one.a" },
		{ "make.one.b=done make.one.a=done_with_concerns", "run make.two.c" },
		{ "make.one.b=failed", "run make.one.a" }, /* the step is judged as a whole */
		{ "make.one.b=failed make.one.a=done", "stop failed make.one.b" },
		{ "make.one.b=failed make.one.a=unknown", "stop infra make.one.a" },
		{ "make.one.b=config_error make.one.a=failed", "stop config make.one.b" },
		{ "make.one.b=capped_out make.one.a=done", "stop cap make.one.b" },
		{ "make.one.b=over_budget make.one.a=done", "stop budget make.one.b" },
		{ "make.one.b=needs_context make.one.a=done", "stop question make.one.b" },
		{ MADE, "run check.main.t" },
		/* recovery once, then the fix loop, then a person */
		{ MADE F, "run check.on_failure.main.r" },
		{ MADE RECOVERED, "run check.main.t" },
		{ MADE RECOVERED F, "run check.fix_loop.main.f" },
		{ MADE RECOVERED F FIXED, "run check.main.t" },
		{ MADE RECOVERED F FIXED F, "run check.fix_loop.main.f" },
		{ MADE RECOVERED F FIXED F FIXED F, "stop cap check.main.t" },
		{ MADE F "check.on_failure.main.r=failed", "run check.fix_loop.main.f" },
		{ MADE RECOVERED F "check.fix_loop.main.f=failed", "stop failed check.fix_loop.main.f" },
		{ MADE F "check.on_failure.main.r=config_error", "stop config check.on_failure.main.r" },
		/* the same failure after a repair of the fix loop as before it */
		{ MADE FX "check.on_failure.main.r=done " FX, "run check.fix_loop.main.f" },
		{ MADE MENDED FX, "stop stuck check.main.t" },
		{ MADE MENDED FY, "run check.fix_loop.main.f" },
		{ MADE MENDED FY FIXED FX, "stop cap check.main.t" }, /* the attempts are spent, whatever it is */
		{ MADE MENDED FY FIXED FY, "stop cap check.main.t" },
		{ MADE MENDED F, "run check.fix_loop.main.f" },
		{ MADE RECOVERED FX FIXED F FIXED FX, "stop cap check.main.t" },
		{ MADE FX "check.on_failure.main.r=failed:x " FIXED FX, "stop stuck check.main.t" },
		{ MADE MENDED "check.main.t=config_error", "stop config check.main.t" },
		{ MADE MENDED FX "check=retried " FX, "run check.on_failure.main.r" },
		{ MADE MENDED FX "check=retried " MENDED, "run check.main.t" },
		{ MADE MENDED FX "check=skipped", "gate gate" },
		{ MADE MENDED "check.main.t=done gate=rejected " MADE FX, "run check.on_failure.main.r" },
		/* a turn tries the node again: with the attempts and the recovery that are left */
		{ MADE MENDED FX "check=retried_by_turn", "run check.main.t" },
		{ MADE MENDED FX "check=retried_by_turn check.main.t=done", "gate gate" },
		{ MADE MENDED FX "check=retried_by_turn " FX, "stop stuck check.main.t" },
		{ MADE MENDED FX "check=retried_by_turn " FY, "run check.fix_loop.main.f" },
		{ MADE MENDED FY FIXED FX "check=retried_by_turn " F, "stop cap check.main.t" },
		{ "make.one.b=failed make.one.a=done make=retried_by_turn", "run make.one.a make.one.b" },
		{ CHECKED "gate=retried_by_turn",
			"refused record 5 of the item, 'retried_by_turn' of 'gate', does not belong there" },
		{ MADE F "make=retried_by_turn",
			"refused record 5 of the item, 'retried_by_turn' of 'make', does not belong there" },
		/* what nothing useful ran for spends no attempt (ITM-02) */
		{ MADE "check.main.t=config_error", "stop config check.main.t" },
		/* gates (ITM-03) */
		{ CHECKED, "gate gate" },
		{ CHECKED "gate=approved", "run last.main.z" },
		{ CHECKED "gate=approved last.main.z=done", "complete" },
		{ CHECKED "gate=rejected", "run make.one.a make.one.b" },
		{ CHECKED "gate=rejected " CHECKED, "gate gate" },
		{ CHECKED "gate=rejected " CHECKED "gate=rejected " CHECKED "gate=rejected", "stop cap gate" },
		{ CHECKED "gate=rejected " CHECKED "gate=rejected " CHECKED "gate=approved", "run last.main.z" },
		/* a rejection gives the recovery and the attempts back */
		{ MADE RECOVERED "check.main.t=done gate=rejected " MADE F, "run check.on_failure.main.r" },
		/* retries (ITM-04) */
		{ "make.one.b=failed make.one.a=done make.one.b=retried", "run make.one.b" },
		{ "make.one.b=failed make.one.a=done make.one=retried", "run make.one.a make.one.b" },
		{ "make.one.b=failed make.one.a=done make=retried", "run make.one.a make.one.b" },
		{ MADE RECOVERED F FIXED F FIXED F "check=retried", "run check.main.t" },
		{ MADE RECOVERED F FIXED F FIXED F "check=retried " F, "run check.on_failure.main.r" },
		{ MADE RECOVERED F FIXED F FIXED F "make.two=retried", "run make.two.c" },
		{ MADE RECOVERED F FIXED F FIXED F "make.two=retried make.two.c=done", "run check.main.t" },
		{ MADE "check.main.t=config_error =retried", "run make.one.a make.one.b" },
		/* gates after a retry ask again */
		{ CHECKED "gate=approved last.main.z=failed make.two=retried make.two.c=done check.main.t=done",
			"gate gate" },
		/* skips */
		{ "make=skipped", "run check.main.t" },
		{ "make.one.b=failed make.one.a=done make.one.b=skipped", "run make.two.c" },
		{ "make.one.b=failed make.one.a=done make.one=skipped", "run make.two.c" },
		{ MADE RECOVERED F "check.fix_loop.main.f=failed check.main.t=skipped", "gate gate" },
		{ MADE RECOVERED F FIXED F FIXED F "check=skipped", "gate gate" },
		{ CHECKED "gate=skipped", "run last.main.z" },
		/* what does not belong there: the log is damaged, and nothing is guessed */
		{ "make.two.c=done", "refused record 1 of the item, 'done' of 'make.two.c', does not belong there" },
		{ "make.one.a=done make.one.a=done",
			"refused record 2 of the item, 'done' of 'make.one.a', does not belong there" },
		{ "gate=approved", "refused record 1 of the item, 'approved' of 'gate', does not belong there" },
		{ CHECKED "make=approved",
			"refused record 5 of the item, 'approved' of 'make', does not belong there" },
		{ "make.one.b=failed make.one.a=failed make.two=retried",
			"refused record 3 of the item, 'retried' of 'make.two', does not belong there" },
		{ "make.one.b=failed make.one.a=failed check=skipped",
			"refused record 3 of the item, 'skipped' of 'check', does not belong there" },
		{ "nothing=retried", "refused record 1 of the item, 'retried' of 'nothing', does not belong there" },
		{ CHECKED "gate=approved last.main.z=done last.main.z=done",
			"refused record 7 of the item, 'done' of 'last.main.z', does not belong there" },
	};
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_chain chain = parse(&arena);

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		const char *next = next_of(&arena, &chain, cases[i].marks);

		if (strcmp(next, cases[i].next) != 0)
			fail_msg("after '%s': '%s' and not '%s'", cases[i].marks, next, cases[i].next);
	}
}

static void
a_person_is_told_what_cannot_be_retried_or_skipped(void **state)
{
	static const struct {
		const char *marks, *path;
		bool retry, skip;
	} cases[] = {
		{ "make.one.b=failed make.one.a=done", "make.one.b", true, true },
		{ "make.one.b=failed make.one.a=done", "make.two", false, false },
		{ "make.one.b=failed make.one.a=done", "check", false, false },
		{ "make.one.b=failed make.one.a=done", "", true, false },
		{ "make.one.b=failed make.one.a=done", "make.three", false, false },
		{ "make.one.b=failed make.one.a=done", "make.one.b.x", false, false },
		{ MADE "check.main.t=config_error", "check.main.t", true, false }, /* skippable: false */
		{ MADE "check.main.t=config_error", "make", true, false },
		{ MADE "check.main.t=config_error", "check.fix_loop.main.f", false, false },
		{ CHECKED "gate=approved last.main.z=done", "last", true, false },
	};
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_chain chain = parse(&arena);

	(void)state;
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_work_mark marks[MARKS_MAX];
		struct kr_error err = { 0 };
		struct kr_next next;

		assert_int_equal(kr_walk_next(&arena, &chain, &limits, marks,
							 read_marks(&arena, cases[i].marks, marks), &next, &err),
			0);
		if ((kr_walk_may_retry(&chain, &next, cases[i].path, &err) == 0) != cases[i].retry)
			fail_msg("retry '%s' after '%s'", cases[i].path, cases[i].marks);
		if ((kr_walk_may_skip(&chain, &next, cases[i].path, &err) == 0) != cases[i].skip)
			fail_msg("skip '%s' after '%s'", cases[i].path, cases[i].marks);
	}
}

/* ---- properties ---- */

static unsigned
dice(unsigned *seed, unsigned sides)
{
	*seed = *seed * 1103515245u + 12345u;
	return (*seed >> 16) % sides;
}

static const char *const paths[] = { "", "make", "make.one", "make.one.a", "make.one.b", "make.two",
	"make.two.c", "check", "check.main", "check.main.t", "check.on_failure.main.r", "check.fix_loop.main.f",
	"gate", "last", "last.main.z", "none" };

/* One more mark that kraft could add now; false: there is none. */
static bool
roll(const struct kr_chain *chain, const struct kr_next *next, unsigned *seed, struct kr_work_mark *mark)
{
	static const enum kr_mark_kind ends[] = { KR_MARK_DONE, KR_MARK_DONE, KR_MARK_DONE, KR_MARK_CONCERNS,
		KR_MARK_FAILED, KR_MARK_FAILED, KR_MARK_QUESTION, KR_MARK_CONFIG, KR_MARK_CAPPED, KR_MARK_UNKNOWN };
	static const char *const hows[] = { NULL, "x", "x", "y" };
	const char *path = paths[dice(seed, KR_COUNT(paths))];

	switch (next->kind) {
	case KR_NEXT_RUN:
		*mark = (struct kr_work_mark){ next->tasks[dice(seed, (unsigned)next->task_count)]->path,
			ends[dice(seed, KR_COUNT(ends))], hows[dice(seed, KR_COUNT(hows))] };
		return true;
	case KR_NEXT_GATE:
		*mark = (struct kr_work_mark){ chain->nodes[next->node].id,
			dice(seed, 3) ? KR_MARK_APPROVED : KR_MARK_REJECTED };
		return true;
	case KR_NEXT_STOP:
		if (!dice(seed, 3) && !chain->nodes[next->node].is_gate)
			*mark = (struct kr_work_mark){ chain->nodes[next->node].id, KR_MARK_AGAIN };
		else if (kr_walk_may_retry(chain, next, path, NULL) == 0)
			*mark = (struct kr_work_mark){ path, KR_MARK_RETRIED };
		else if (kr_walk_may_skip(chain, next, path, NULL) == 0)
			*mark = (struct kr_work_mark){ path, KR_MARK_SKIPPED };
		else
			*mark = (struct kr_work_mark){ "", KR_MARK_RETRIED };
		return true;
	default:
		return false;
	}
}

static bool
is_failure(const struct kr_work_mark *mark, const char *how)
{
	return strcmp(mark->path, "check.main.t") == 0 && mark->kind == KR_MARK_FAILED && mark->fingerprint &&
		   (!how || strcmp(mark->fingerprint, how) == 0);
}

/* The newest marks: it failed (its recovery failed as well, perhaps), was mended, and fails in the same way.
 */
static bool
fails_again(const struct kr_work_mark *marks, size_t n)
{
	size_t before = n >= 3 ? n - 3 : 0;

	if (before && strcmp(marks[before].path, "check.on_failure.main.r") == 0)
		before--;
	return n >= 3 && is_failure(&marks[before], NULL) &&
		   is_failure(&marks[n - 1], marks[before].fingerprint) &&
		   strcmp(marks[n - 2].path, "check.fix_loop.main.f") == 0 &&
		   (marks[n - 2].kind == KR_MARK_DONE || marks[n - 2].kind == KR_MARK_CONCERNS);
}

/* The same, with what a turn tried again in between. */
static bool
failed_before(const struct kr_work_mark *marks, size_t n)
{
	for (size_t i = n - 1; i-- > 0;) {
		if (is_failure(&marks[i], NULL))
			return is_failure(&marks[n - 1], marks[i].fingerprint);
		if (marks[i].kind > KR_MARK_UNKNOWN && marks[i].kind != KR_MARK_AGAIN)
			break;
	}
	return false;
}

/* Whatever happens and whatever a person may say, the log stays one that can be replayed, no task is asked
 * for that has its mark, no gate is passed without a person's mark, and a walk that is left alone comes to an
 * end. It stops as stuck exactly when a repair changed nothing and attempts were left. */
static void
random_walks_never_get_lost(void **state)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_chain chain = parse(&arena);
	size_t stuck = 0;

	(void)state;
	for (unsigned run = 0; run < 4000; run++) {
		KR_CLEANUP(kr_arena_fini) struct kr_arena here = { 0 };
		struct kr_work_mark marks[MARKS_MAX];
		unsigned seed = run, alone = 0;
		size_t approvals = 0;

		for (size_t n = 0; n < MARKS_MAX; n++) {
			struct kr_error err = { 0 };
			struct kr_next next;
			bool is_stuck;

			if (kr_walk_next(&here, &chain, &limits, marks, n, &next, &err) < 0)
				fail_msg("run %u: %s", run, err.message);
			assert_true(next.kind != KR_NEXT_RUN || next.task_count > 0);
			assert_true(next.kind != KR_NEXT_STOP || (next.stop != KR_STOP_NONE && next.path));
			assert_true(next.kind != KR_NEXT_COMPLETE || approvals > 0);
			is_stuck = next.kind == KR_NEXT_STOP && next.stop == KR_STOP_STUCK;
			if (is_stuck ? !failed_before(marks, n) || !next.cycle || next.cycle >= next.cycles_max
						 : fails_again(marks, n) && next.cycle < next.cycles_max)
				fail_msg("run %u, mark %zu: %s", run, n, describe(&here, &chain, &next));
			stuck += is_stuck;
			alone = next.kind == KR_NEXT_RUN ? alone + 1 : 0;
			assert_true(alone < 60);
			if (!roll(&chain, &next, &seed, &marks[n]))
				break;
			approvals += marks[n].kind == KR_MARK_APPROVED || marks[n].kind == KR_MARK_SKIPPED;
		}
	}
	assert_in_range(stuck, 20, 4000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(marks_lead_to_what_comes_next),
		cmocka_unit_test(a_person_is_told_what_cannot_be_retried_or_skipped),
		cmocka_unit_test(random_walks_never_get_lost),
	};

	return cmocka_run_group_tests_name("walk", tests, NULL, NULL);
}
