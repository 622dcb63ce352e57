/*
 * Which processes are a session's on macOS, and in what order they are ended (guest/family.c): fake tables, and a small
 * world in which processes fork between two looks, leave their group, lose their parent and do not end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "guest/family.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { ME = 501, OTHER = 502, LAUNCHER = 100, KRAFT = 90, LAUNCHER_ID = 1000, KRAFT_ID = 900, COMMAND_ID = 1001 };

static const struct kg_family family = {
	.self = LAUNCHER, .self_id = LAUNCHER_ID, .kraft_id = KRAFT_ID, .uid = ME, .command_id = COMMAND_ID
};

static struct kg_process
process(pid_t pid, uint64_t id, uint64_t parent_id)
{
	return (struct kg_process){ .pid = pid, .uid = ME, .id = id, .parent_id = parent_id, .inside = KG_INSIDE_NO };
}

static bool
is_ours(const struct kg_process *table, size_t n, uint64_t id)
{
	for (size_t i = 0; i < n; i++)
		if (table[i].id == id)
			return table[i].is_ours;
	fail();
	return false;
}

/* ---- whose it is ---- */

static void
mac_10_descendants_are_ours_in_any_order(void **state)
{
	struct kg_process table[] = {
		process(104, 1009, 1005), /* a grandchild, before its parent */
		process(101, COMMAND_ID, LAUNCHER_ID),
		process(102, 1005, COMMAND_ID),
		process(200, 1004, KRAFT_ID), /* kraft's proxy */
		process(LAUNCHER, LAUNCHER_ID, KRAFT_ID),
		process(KRAFT, KRAFT_ID, 5),
		process(300, 1006, 5), /* the person's own, of the same shell as kraft */
	};

	(void)state;
	assert_int_equal(kg_family_judge(&family, table, COUNT(table)), 3);
	assert_true(is_ours(table, COUNT(table), COMMAND_ID));
	assert_true(is_ours(table, COUNT(table), 1005));
	assert_true(is_ours(table, COUNT(table), 1009));
	assert_false(is_ours(table, COUNT(table), 1004));
	assert_false(is_ours(table, COUNT(table), LAUNCHER_ID));
	assert_false(is_ours(table, COUNT(table), KRAFT_ID));
	assert_false(is_ours(table, COUNT(table), 1006));
}

/* The command has ended and is reaped; its child went to launchd and keeps its parent's id. */
static void
mac_10_who_lost_its_parent_is_still_ours(void **state)
{
	struct kg_process table[] = { process(102, 1005, COMMAND_ID), process(1, 1, 0), process(103, 1006, 1) };

	(void)state;
	assert_int_equal(kg_family_judge(&family, table, COUNT(table)), 1);
	assert_true(is_ours(table, COUNT(table), 1005));
}

/* 1005 was there at the last look, and has ended; 1007 is its child. */
static void
mac_10_a_parent_of_the_last_look_counts(void **state)
{
	struct kg_process before[] = { process(102, 1005, COMMAND_ID), process(50, 500, 5) };
	struct kg_process table[] = { process(104, 1007, 1005), process(51, 1008, 500) };
	struct kg_family now = family;

	(void)state;
	(void)kg_family_judge(&family, before, COUNT(before));
	now.before = before;
	now.before_count = COUNT(before);
	assert_int_equal(kg_family_judge(&now, table, COUNT(table)), 1);
	assert_true(is_ours(table, COUNT(table), 1007));
	/* The control: without that look nothing says whose it is. */
	assert_int_equal(kg_family_judge(&family, table, COUNT(table)), 0);
}

static void
mac_10_the_sandbox_tells_of_who_has_no_parent(void **state)
{
	struct kg_process table[] = { process(104, 1007, 1005), process(105, 1010, 1007) };

	(void)state;
	assert_int_equal(kg_family_judge(&family, table, COUNT(table)), 0);
	table[0].inside = KG_INSIDE_UNKNOWN;
	assert_int_equal(kg_family_judge(&family, table, COUNT(table)), 0);
	table[0].inside = KG_INSIDE_YES;
	assert_int_equal(kg_family_judge(&family, table, COUNT(table)), 2);
}

/* The number is the same, the process is not. */
static void
mac_10_a_number_that_is_used_again_is_nobodys(void **state)
{
	struct kg_process before[] = { process(102, 1005, COMMAND_ID) };
	struct kg_process table[] = { process(102, 2000, 5) };
	struct kg_family now = family;

	(void)state;
	assert_int_equal(kg_family_judge(&family, before, COUNT(before)), 1);
	now.before = before;
	now.before_count = COUNT(before);
	assert_int_equal(kg_family_judge(&now, table, COUNT(table)), 0);
}

/* Whatever is said of them: a process of another user's, launchd, the launcher, kraft. */
static void
mac_10_some_are_never_ours(void **state)
{
	struct kg_process table[] = { process(1, 1, LAUNCHER_ID), process(LAUNCHER, LAUNCHER_ID, COMMAND_ID),
		process(KRAFT, KRAFT_ID, COMMAND_ID), process(300, 1100, 5), process(301, 1101, 5) };

	(void)state;
	for (size_t i = 0; i < COUNT(table); i++)
		table[i].inside = KG_INSIDE_YES;
	table[3].uid = OTHER;
	assert_int_equal(kg_family_judge(&family, table, COUNT(table)), 1);
	assert_true(is_ours(table, COUNT(table), 1101)); /* the control */
}

/* Who may get a signal before the look is over, when nothing is known but itself. */
static void
mac_10_the_sandbox_alone_is_proof(void **state)
{
	struct kg_process one = process(300, 1101, 5), other = one, self = process(LAUNCHER, LAUNCHER_ID, KRAFT_ID),
					  kraft = process(KRAFT, KRAFT_ID, 5), child = process(102, 1005, COMMAND_ID);

	(void)state;
	one.inside = other.inside = self.inside = kraft.inside = KG_INSIDE_YES;
	assert_true(kg_family_is_proven(&family, &one));
	other.uid = OTHER;
	assert_false(kg_family_is_proven(&family, &other));
	assert_false(kg_family_is_proven(&family, &self));
	assert_false(kg_family_is_proven(&family, &kraft));
	assert_false(kg_family_is_proven(&family, &child)); /* by descent, which takes the whole look */
	one.has_ended = true;
	assert_false(kg_family_is_proven(&family, &one));
	one.has_ended = false;
	one.inside = KG_INSIDE_UNKNOWN;
	assert_false(kg_family_is_proven(&family, &one));
}

static void
what_is_unknown_is_nobodys(void **state)
{
	struct kg_family blank = { .self = LAUNCHER, .uid = ME };
	struct kg_process table[] = { process(300, 0, 0), process(301, 0, 0), process(302, 7, 0) };

	(void)state;
	assert_int_equal(kg_family_judge(&blank, table, COUNT(table)), 0);
	assert_int_equal(kg_family_judge(&blank, table, 0), 0);
}

static void
who_has_ended_is_not_waited_for(void **state)
{
	struct kg_process table[] = { process(102, 1005, COMMAND_ID), process(103, 1006, 1005) };

	(void)state;
	table[0].has_ended = true;
	assert_int_equal(kg_family_judge(&family, table, COUNT(table)), 1);
}

/* ---- a world ---- */

enum { WORLD_MOST = 4096 };

enum nature { PLAIN, BOMB, RUNNER, STUCK };

struct member {
	pid_t pid;
	uint64_t id, parent_id;
	enum nature nature;
	bool stopped, foreign;
};

struct world {
	struct member member[WORLD_MOST];
	size_t count, room; /* room: the user's limit of processes */
	uint64_t next_id;
	pid_t next_pid;
	bool tells_inside, is_slow; /* slow: who is on the list can be gone when it is asked about */
	uint32_t chance;
	unsigned hurt; /* foreign ones that got a signal */
};

static void
spawn(struct world *world, uint64_t parent_id, enum nature nature, bool foreign)
{
	if (world->count == world->room)
		return; /* EAGAIN */
	world->member[world->count++] =
		(struct member){ world->next_pid++, world->next_id++, parent_id, nature, false, foreign };
	if (world->next_pid > 400)
		world->next_pid = 200; /* numbers come round quickly */
}

static void
leave(struct world *world, size_t at)
{
	world->member[at] = world->member[--world->count];
}

/* Three times in four, the same each time the test runs. */
static bool
moves(struct world *world)
{
	world->chance = world->chance * 1664525u + 1013904223u;
	return world->chance >> 30 != 0;
}

/* What happens between two looks: a bomb doubles; a runner has a child and ends. */
static void
tick(struct world *world)
{
	size_t n = world->count;

	for (size_t i = 0; i < n; i++)
		if (world->member[i].nature == BOMB && !world->member[i].stopped)
			spawn(world, world->member[i].id, BOMB, false);
	for (size_t i = 0; i < world->count; i++)
		if (world->member[i].nature == RUNNER && !world->member[i].stopped && moves(world)) {
			spawn(world, world->member[i].id, RUNNER, false);
			leave(world, i);
			break;
		}
}

static bool
is_there(const struct world *world, const struct member *one)
{
	for (size_t i = 0; i < world->count; i++)
		if (world->member[i].id == one->id)
			return true;
	return false;
}

static size_t
look(struct world *world, struct kg_process *out, size_t *missed)
{
	static struct member list[WORLD_MOST];
	const size_t listed = world->count;
	size_t n = 0;

	memcpy(list, world->member, listed * sizeof(list[0]));
	if (world->is_slow)
		tick(world);
	for (size_t i = listed; i-- > 0;) {
		const struct member *one = &list[i];

		if (world->is_slow && !is_there(world, one))
			continue;
		out[n] = process(one->pid, one->id, one->parent_id);
		out[n++].inside = !world->tells_inside ? KG_INSIDE_UNKNOWN : one->foreign ? KG_INSIDE_NO : KG_INSIDE_YES;
	}
	*missed = listed - n;
	return n;
}

static void
hit(struct world *world, const struct kg_process *target)
{
	for (size_t i = 0; i < world->count; i++) {
		struct member *one = &world->member[i];

		if (one->id != target->id || one->pid != target->pid)
			continue;
		world->hurt += one->foreign;
		if (target->signal == SIGSTOP)
			one->stopped = true;
		else if (one->nature != STUCK)
			leave(world, i);
		return;
	}
}

/* The launcher's loop; between a look and its signals, and behind them, the world goes on. Returns the looks it took, or -1. */
enum how { AS_IT_IS, ONLY_KILLS, BLIND_TO_MISSED };
static int
end_all(struct world *world, enum how how, int looks_most)
{
	static struct kg_process tables[2][WORLD_MOST];
	struct kg_family now = family;
	struct kg_ending ending = { .kills = how == ONLY_KILLS };

	for (int i = 0; i < looks_most; i++) {
		struct kg_process *table = tables[i & 1];
		size_t missed, n = look(world, table, &missed);

		tick(world);
		if (how == BLIND_TO_MISSED)
			missed = 0;
		if (kg_ending_step(&ending, table, n, kg_family_judge(&now, table, n), missed))
			return i + 1;
		for (size_t k = n; k-- > 0;) {
			if (table[k].signal)
				hit(world, &table[k]);
			if (k % 16 == 0)
				tick(world);
		}
		now.before = table;
		now.before_count = n;
	}
	return -1;
}

static struct world *
new_world(bool tells_inside)
{
	struct world *world = calloc(1, sizeof(*world));

	assert_non_null(world);
	*world = (struct world){ .room = WORLD_MOST, .next_id = 2000, .next_pid = 200, .tells_inside = tells_inside };
	for (int i = 0; i < 30; i++)
		spawn(world, 5, PLAIN, true);
	return world;
}

static size_t
left_of(const struct world *world, bool foreign)
{
	size_t n = 0;

	for (size_t i = 0; i < world->count; i++)
		n += world->member[i].foreign == foreign;
	return n;
}

static void
mac_10_nobody_left_takes_two_looks(void **state)
{
	struct world *world = new_world(true);

	(void)state;
	assert_int_equal(end_all(world, AS_IT_IS, 10), 2);
	assert_int_equal(left_of(world, true), 30);
	assert_int_equal(world->hurt, 0);
	free(world);
}

static void
mac_10_a_fork_bomb_is_ended(void **state)
{
	(void)state;
	for (int tells = 0; tells < 2; tells++) {
		struct world *world = new_world(tells);

		for (int i = 0; i < 20; i++)
			spawn(world, COMMAND_ID, BOMB, false);
		assert_int_not_equal(end_all(world, AS_IT_IS, 100), -1);
		assert_int_equal(left_of(world, false), 0);
		assert_int_equal(left_of(world, true), 30);
		assert_int_equal(world->hurt, 0);
		free(world);
	}
}

/* The control of the one above: killed as they are found, the others make more than that. */
static void
killing_alone_does_not_end_a_bomb(void **state)
{
	struct world *world = new_world(true);

	(void)state;
	for (int i = 0; i < 20; i++)
		spawn(world, COMMAND_ID, BOMB, false);
	assert_int_equal(end_all(world, ONLY_KILLS, 100), -1);
	assert_true(left_of(world, false) > 0);
	free(world);
}

/* Its parents mostly end before they are seen: its sandbox tells. */
static void
mac_10_one_that_runs_away_is_ended(void **state)
{
	struct world *world = new_world(true);

	(void)state;
	spawn(world, COMMAND_ID, RUNNER, false);
	assert_int_not_equal(end_all(world, AS_IT_IS, 100), -1);
	assert_int_equal(left_of(world, false), 0);
	assert_int_equal(world->hurt, 0);
	free(world);
}

/* So quick that a look's list is old before the questions are asked: that somebody was missed keeps the looks going. */
static void
mac_10_one_that_a_look_misses_is_ended(void **state)
{
	int left = 0;

	(void)state;
	for (uint32_t chance = 0; chance < 40; chance++) {
		struct world *world = new_world(true), *blind = new_world(true);

		world->is_slow = blind->is_slow = true;
		world->chance = blind->chance = chance * 7919;
		spawn(world, COMMAND_ID, RUNNER, false);
		spawn(blind, COMMAND_ID, RUNNER, false);
		assert_int_not_equal(end_all(world, AS_IT_IS, 2000), -1);
		assert_int_equal(left_of(world, false), 0);
		assert_int_equal(world->hurt, 0);
		(void)end_all(blind, BLIND_TO_MISSED, 2000);
		left += (int)left_of(blind, false);
		free(world);
		free(blind);
	}
	assert_true(left > 10); /* the control */
}

/* On a host where others come and go in each look. */
static void
mac_10_those_of_others_do_not_keep_it_for_ever(void **state)
{
	struct kg_ending ending = { 0 };
	int looks = 1;

	(void)state;
	while (!kg_ending_step(&ending, NULL, 0, 0, 3))
		assert_true(looks++ < 1000);
	assert_int_equal(looks, KG_MISSED_LOOKS + 2);
}

static void
mac_10_one_that_cannot_be_ended_is_left_alone(void **state)
{
	struct world *world = new_world(true);

	(void)state;
	spawn(world, COMMAND_ID, STUCK, false);
	for (int i = 0; i < 5; i++)
		spawn(world, COMMAND_ID, BOMB, false);
	assert_int_equal(end_all(world, AS_IT_IS, 100), -1); /* the launcher has a clock */
	assert_int_equal(left_of(world, false), 1);
	assert_int_equal(world->hurt, 0);
	free(world);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mac_10_descendants_are_ours_in_any_order),
		cmocka_unit_test(mac_10_who_lost_its_parent_is_still_ours),
		cmocka_unit_test(mac_10_a_parent_of_the_last_look_counts),
		cmocka_unit_test(mac_10_the_sandbox_tells_of_who_has_no_parent),
		cmocka_unit_test(mac_10_a_number_that_is_used_again_is_nobodys),
		cmocka_unit_test(mac_10_some_are_never_ours),
		cmocka_unit_test(mac_10_the_sandbox_alone_is_proof),
		cmocka_unit_test(what_is_unknown_is_nobodys),
		cmocka_unit_test(who_has_ended_is_not_waited_for),
		cmocka_unit_test(mac_10_nobody_left_takes_two_looks),
		cmocka_unit_test(mac_10_a_fork_bomb_is_ended),
		cmocka_unit_test(killing_alone_does_not_end_a_bomb),
		cmocka_unit_test(mac_10_one_that_runs_away_is_ended),
		cmocka_unit_test(mac_10_one_that_a_look_misses_is_ended),
		cmocka_unit_test(mac_10_those_of_others_do_not_keep_it_for_ever),
		cmocka_unit_test(mac_10_one_that_cannot_be_ended_is_left_alone),
	};

	return cmocka_run_group_tests_name("family", tests, NULL, NULL);
}
