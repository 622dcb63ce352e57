/* keep: which items get a host (server/keep.h), and who holds a lock (os/owner.h). */
#include "repo.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/owner.h"
#include "server/keep.h"

static const char *
chosen(struct kr_keep *items, size_t n, unsigned slots, uint64_t now)
{
	static const char letters[] = ".srg";
	static char out[32];

	kr_keep_choose(items, n, slots, now);
	for (size_t i = 0; i < n; i++)
		out[i] = letters[items[i].word];
	out[n] = '\0';
	return out;
}

#define Q(since) { .id = "q", .status = KR_STATUS_QUEUED, .since_ms = (since) }
#define HOSTED { .id = "h", .status = KR_STATUS_ACTIVE, .is_hosted = true }

static void
the_queue_has_an_order_and_as_many_as_there_are_slots(void **state)
{
	struct kr_keep items[] = { Q(3), Q(1), Q(2) }, busy[] = { HOSTED, Q(1), Q(2) };

	(void)state;
	assert_string_equal(chosen(items, 3, 0, 9), "...");
	assert_string_equal(chosen(items, 3, 1, 9), ".s.");
	assert_string_equal(chosen(items, 3, 2, 9), ".ss");
	assert_string_equal(chosen(items, 3, 9, 9), "sss");
	assert_string_equal(chosen(busy, 3, 1, 9), "...");
	assert_string_equal(chosen(busy, 3, 2, 9), ".s.");
}

static void
what_lost_its_host_comes_first(void **state)
{
	struct kr_keep items[] = { Q(1), { .id = "a", .status = KR_STATUS_ACTIVE, .since_ms = 5 } };
	struct kr_keep limited[] = { Q(1), { .id = "l", .status = KR_STATUS_RATE_LIMITED, .since_ms = 5 } };

	(void)state;
	assert_string_equal(chosen(items, 2, 1, 9), ".s");
	assert_string_equal(chosen(limited, 2, 1, 9), ".s");
	items[1].is_hosted = true;
	assert_string_equal(chosen(items, 2, 1, 9), "..");
}

static void
nothing_that_waits_for_another_or_for_a_person_begins(void **state)
{
	struct kr_keep items[] = { { .id = "b", .status = KR_STATUS_BLOCKED, .waits = true },
		{ .id = "p", .status = KR_STATUS_PAUSED }, { .id = "n", .status = KR_STATUS_NEEDS_HUMAN },
		{ .id = "q", .status = KR_STATUS_QUEUED, .waits = true } };

	(void)state;
	assert_string_equal(chosen(items, 4, 9, 9), "....");
	items[0].waits = items[3].waits = false;
	assert_string_equal(chosen(items, 4, 9, 9), "r..s");
}

static void
one_whose_hosts_end_is_tried_again_later_and_then_given_up(void **state)
{
	struct kr_keep item = { .id = "a", .status = KR_STATUS_ACTIVE, .failures = 1, .not_before_ms = 10 };

	(void)state;
	assert_string_equal(chosen(&item, 1, 1, 9), ".");
	assert_string_equal(chosen(&item, 1, 1, 10), "s");
	item.failures = KR_KEEP_FAILURES;
	assert_string_equal(chosen(&item, 1, 1, 9), "g");
	item.is_hosted = true;
	assert_string_equal(chosen(&item, 1, 1, 99), ".");
}

/* Whatever there is: never more than the slots, nothing that is hosted or waits, and the earliest of the queue. */
static void
any_state_keeps_the_rules_ITM_01(void **state)
{
	unsigned seed = 7;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		struct kr_keep items[8];
		unsigned slots = (unsigned)rand_r(&seed) % 5, hosted = 0, started = 0;
		uint64_t latest_started = 0, earliest_left = UINT64_MAX;

		for (size_t i = 0; i < KR_COUNT(items); i++) {
			items[i] = (struct kr_keep){ .id = "x",
				.status = (enum kr_status)(rand_r(&seed) % KR_STATUS_COUNT),
				.is_hosted = rand_r(&seed) % 3 == 0,
				.waits = rand_r(&seed) % 3 == 0,
				.since_ms = (uint64_t)rand_r(&seed) };
			hosted += items[i].is_hosted;
		}
		kr_keep_choose(items, KR_COUNT(items), slots, 1);
		for (size_t i = 0; i < KR_COUNT(items); i++) {
			const struct kr_keep *k = &items[i];

			if (k->word == KR_KEEP_START) {
				started++;
				assert_false(k->is_hosted || k->waits);
				assert_true(k->status == KR_STATUS_ACTIVE || k->status == KR_STATUS_RATE_LIMITED || k->status == KR_STATUS_QUEUED);
				if (k->status == KR_STATUS_QUEUED && k->since_ms > latest_started)
					latest_started = k->since_ms;
			} else if (k->status == KR_STATUS_QUEUED && !k->is_hosted && !k->waits && k->since_ms < earliest_left)
				earliest_left = k->since_ms;
		}
		assert_true(!started || hosted + started <= slots);
		assert_true(latest_started <= earliest_left);
	}
}

static void
a_lock_names_its_holder_and_nobody_else_LIFE_08(void **state)
{
	struct place *p = *state;
	const char *path = below(p, "owner");
	struct kr_owner owner;
	struct kr_error err = { 0 };
	int fd = kr_owner_take(path, "first", &err), ends[2];
	pid_t child, heir = 0;

	assert_true(fd >= 0);
	assert_true(kr_owner_find(path, &owner) && owner.pid == getpid());
	assert_string_equal(owner.note, "first");
	assert_int_equal(kr_owner_tell(fd, "second", &err), 0);
	assert_true(kr_owner_find(path, &owner));
	assert_string_equal(owner.note, "second");
	assert_int_equal(kr_owner_take(path, "", &err), -1);
	assert_int_equal(err.code, KR_E_BUSY);
	(void)close(fd);
	assert_false(kr_owner_find(path, &owner)); /* its words stay, and mean nothing */
	assert_false(kr_owner_is_held(path));
	/* Held by one who inherited it, and named by one who is gone: nobody is to be told anything. */
	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (child == 0) {
		fd = kr_owner_take(path, "", NULL);
		heir = fork();
		if (heir == 0)
			(void)pause();
		_exit(write(ends[1], &heir, sizeof(heir)) != sizeof(heir));
	}
	assert_int_equal(read(ends[0], &heir, sizeof(heir)), sizeof(heir));
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_true(kr_owner_is_held(path));
	assert_false(kr_owner_find(path, &owner));
	assert_int_equal(kill(heir, SIGKILL), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_queue_has_an_order_and_as_many_as_there_are_slots),
		cmocka_unit_test(what_lost_its_host_comes_first),
		cmocka_unit_test(nothing_that_waits_for_another_or_for_a_person_begins),
		cmocka_unit_test(one_whose_hosts_end_is_tried_again_later_and_then_given_up),
		cmocka_unit_test(any_state_keeps_the_rules_ITM_01),
		place_test(a_lock_names_its_holder_and_nobody_else_LIFE_08),
	};

	return cmocka_run_group_tests_name("keep", tests, NULL, NULL);
}
