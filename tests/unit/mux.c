/* guest/mux.c: two ends that speak to each other, and what the outside does not take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "guest/mux.h"

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct kg_mux outside, inside;
static char *rings[2];

static int
start(void **state)
{
	(void)state;
	memset(&outside, 0, sizeof(outside));
	memset(&inside, 0, sizeof(inside));
	for (size_t i = 0; i < COUNT(rings); i++)
		assert_non_null(rings[i] = calloc(1, KG_RINGS_BYTES));
	kg_mux_init(&outside, true, true, rings[0]);
	kg_mux_init(&inside, false, true, rings[1]);
	return 0;
}

static int
stop(void **state)
{
	(void)state;
	free(rings[0]);
	free(rings[1]);
	return 0;
}

/* What one has to say reaches the other in pieces of this size. */
static void
carry(struct kg_mux *from, struct kg_mux *to, size_t piece)
{
	const char *bytes;
	size_t n;

	while (bytes = kg_mux_out(from, &n), n) {
		n = n < piece ? n : piece;
		assert_true(kg_mux_take(to, bytes, n));
		kg_mux_sent(from, n);
	}
}

static void
talk(size_t piece)
{
	carry(&inside, &outside, piece);
	carry(&outside, &inside, piece);
	carry(&inside, &outside, piece);
}

/* As many bytes of a pattern as may go now. */
static size_t
put(struct kg_mux *mux, unsigned stream, size_t at, size_t n)
{
	size_t done = 0, most;
	char *place;

	while (done < n && (place = kg_mux_place(mux, stream, &most))) {
		most = most < n - done ? most : n - done;
		for (size_t i = 0; i < most; i++)
			place[i] = (char)((at + done + i) * 7 % 251);
		kg_mux_put(mux, stream, most);
		done += most;
	}
	return done;
}

static size_t
get(struct kg_mux *mux, unsigned stream, size_t at, size_t most)
{
	size_t done = 0, n;
	const char *bytes;

	while (done < most && (bytes = kg_mux_front(mux, stream, &n), n)) {
		n = n < most - done ? n : most - done;
		for (size_t i = 0; i < n; i++)
			assert_int_equal((unsigned char)bytes[i], (at + done + i) * 7 % 251);
		kg_mux_passed(mux, stream, n);
		done += n;
	}
	return done;
}

static void
much_goes_through_in_any_pieces(void **state)
{
	static const size_t pieces[] = { 1, 3, 8, 4096, 1 << 20 };
	enum { ALL = 300000 };

	(void)state;
	for (size_t i = 0; i < COUNT(pieces); i++) {
		size_t sent = 0, got = 0;

		for (int rounds = 0; got < ALL; rounds++) {
			assert_true(rounds < 1000);
			sent += put(&inside, KG_STREAM_STDOUT, sent, ALL - sent);
			talk(pieces[i]);
			got += get(&outside, KG_STREAM_STDOUT, got, 10007);
		}
		assert_true(sent == ALL && got == ALL);
		talk(pieces[i]);
	}
}

/* A stream that nobody reads gets its window and no more, and another one goes on. */
static void
a_slow_stream_stops_no_other(void **state)
{
	(void)state;
	for (int i = 0; i < 8; i++) {
		(void)put(&inside, KG_STREAM_STDOUT, 0, KG_WINDOW);
		talk(1000);
	}
	assert_int_equal(outside.stream[KG_STREAM_STDOUT].n, KG_WINDOW);
	assert_int_equal(put(&inside, KG_STREAM_STDOUT, 0, 1), 0);
	assert_int_equal(put(&inside, KG_STREAM_STDERR, 0, 100), 100);
	talk(1000);
	assert_int_equal(get(&outside, KG_STREAM_STDERR, 0, 100), 100);
	assert_int_equal(get(&outside, KG_STREAM_STDOUT, 0, KG_WINDOW), KG_WINDOW);
	talk(1000);
	assert_true(put(&inside, KG_STREAM_STDOUT, 0, 1) == 1);
}

static void
each_way_ends_alone_and_a_number_is_used_again(void **state)
{
	unsigned stream;

	(void)state;
	for (int i = 0; i < 3 * KG_CONNECTIONS; i++) {
		stream = kg_mux_open(&inside);
		assert_int_equal(stream, KG_STREAM_FIRST);
		talk(5);
		assert_true(outside.stream[stream].open);
		assert_int_equal(put(&inside, stream, 0, 5), 5);
		kg_mux_end(&inside, stream);
		talk(5);
		assert_true(outside.stream[stream].got_end && !outside.stream[stream].got_closed);
		assert_int_equal(get(&outside, stream, 0, 10), 5);
		assert_int_equal(put(&outside, stream, 0, 7), 7);
		kg_mux_end(&outside, stream);
		kg_mux_close(&outside, stream);
		talk(5);
		assert_true(inside.stream[stream].got_end && inside.stream[stream].got_closed);
		assert_int_equal(get(&inside, stream, 0, 10), 7);
		kg_mux_close(&inside, stream);
		talk(5);
		assert_false(inside.stream[stream].open || outside.stream[stream].open);
	}
}

/* What was on the way to one that was let go of is dropped, and never reaches the next one of that number. */
static void
what_comes_too_late_is_dropped(void **state)
{
	unsigned stream;

	(void)state;
	stream = kg_mux_open(&inside);
	talk(100);
	assert_int_equal(put(&outside, stream, 0, 1000), 1000);
	kg_mux_close(&inside, stream);
	assert_int_not_equal(kg_mux_open(&inside), stream); /* not free yet */
	talk(100);
	assert_int_equal(inside.stream[stream].n, 0);
	assert_true(outside.stream[stream].got_closed && !outside.stream[stream].got_end);
	kg_mux_close(&outside, stream);
	talk(100);
	assert_int_equal(kg_mux_open(&inside), stream);
	talk(100);
	assert_int_equal(inside.stream[stream].n, 0);
}

static void
there_are_so_many_and_no_more(void **state)
{
	(void)state;
	for (int i = 0; i < KG_CONNECTIONS; i++)
		assert_int_not_equal(kg_mux_open(&inside), 0);
	assert_false(kg_mux_has_place(&inside));
	assert_int_equal(kg_mux_open(&inside), 0);
	talk(1 << 20);
	for (unsigned i = KG_STREAM_FIRST; i < KG_STREAMS_MAX; i++)
		assert_true(outside.stream[i].open);
}

/* ---- what may not come ---- */

static bool
takes(struct kg_mux *mux, int kind, int zero, unsigned stream, uint32_t value)
{
	const struct kg_frame f = { (uint8_t)kind, (uint8_t)zero, (uint16_t)stream, value };

	return kg_mux_take(mux, (const char *)&f, sizeof(f));
}

static void
refused(int kind, int zero, unsigned stream, uint32_t value)
{
	struct kg_mux *copy = malloc(sizeof(*copy));

	memcpy(copy, &outside, sizeof(*copy));
	if (takes(copy, kind, zero, stream, value))
		fail_msg("kind %d, zero %d, stream %u, value %u is taken", kind, zero, stream, value);
	free(copy);
}

static void
the_outside_takes_nothing_else_CTR_14(void **state)
{
	(void)state;
	refused(KG_FRAME_DATA, 0, KG_STREAM_STDOUT, 1); /* before hello */
	refused(KG_FRAME_HELLO, 0, 0, KG_HELLO + 1);
	refused(KG_FRAME_HELLO, 0, 1, KG_HELLO);
	assert_true(takes(&outside, KG_FRAME_HELLO, 0, 0, KG_HELLO));
	refused(KG_FRAME_HELLO, 0, 0, KG_HELLO);
	refused(0, 0, 0, 0);
	for (int kind = KG_FRAME_END_OF_KINDS; kind < 256; kind++)
		refused(kind, 0, 0, 0);
	refused(KG_FRAME_END, 1, KG_STREAM_STDOUT, 0);
	refused(KG_FRAME_END, 0, KG_STREAM_STDOUT, 1);
	refused(KG_FRAME_END, 0, KG_STREAMS_MAX, 0);
	refused(KG_FRAME_END, 0, KG_STREAM_STDIN, 0); /* nothing comes on it */
	refused(KG_FRAME_DATA, 0, KG_STREAM_STDIN, 1);
	refused(KG_FRAME_DATA, 0, KG_STREAM_STDOUT, 0);
	refused(KG_FRAME_DATA, 0, KG_STREAM_STDOUT, KG_FRAME_BYTES + 1);
	refused(KG_FRAME_DATA, 0, KG_STREAM_STDOUT, UINT32_MAX);
	refused(KG_FRAME_DATA, 0, KG_STREAM_TALK, 15); /* a part of a word */
	refused(KG_FRAME_DATA, 0, KG_STREAM_FIRST, 1); /* not open */
	refused(KG_FRAME_OPEN, 0, KG_STREAM_STDOUT, 0);
	refused(KG_FRAME_OPEN, 0, KG_STREAM_FIRST, 1);
	refused(KG_FRAME_CREDIT, 0, KG_STREAM_STDIN, 0);
	refused(KG_FRAME_CREDIT, 0, KG_STREAM_STDIN, 1); /* more than the window */
	refused(KG_FRAME_CREDIT, 0, KG_STREAM_STDIN, UINT32_MAX);
	refused(KG_FRAME_SIZE, 0, 0, 0);
	refused(KG_FRAME_ROUTE, 0, 0, 1);
	refused(KG_FRAME_ROUTE, 0, 1, 0);
	assert_true(takes(&outside, KG_FRAME_ROUTE, 0, 0, 0));
	refused(KG_FRAME_ROUTE, 0, 0, 0);
	assert_true(takes(&outside, KG_FRAME_OPEN, 0, KG_STREAM_FIRST, 0));
	refused(KG_FRAME_OPEN, 0, KG_STREAM_FIRST, 0);
	assert_true(takes(&outside, KG_FRAME_CLOSED, 0, KG_STREAM_FIRST, 0));
	refused(KG_FRAME_CLOSED, 0, KG_STREAM_FIRST, 0);
	refused(KG_FRAME_DATA, 0, KG_STREAM_FIRST, 1);
	refused(KG_FRAME_END, 0, KG_STREAM_FIRST, 0);
	refused(KG_FRAME_CREDIT, 0, KG_STREAM_FIRST, 1);
	assert_true(takes(&outside, KG_FRAME_END, 0, KG_STREAM_STDOUT, 0));
	refused(KG_FRAME_DATA, 0, KG_STREAM_STDOUT, 1);
	refused(KG_FRAME_END, 0, KG_STREAM_STDOUT, 0);
	assert_true(takes(&outside, KG_FRAME_BYE, 0, 0, 0));
	refused(KG_FRAME_BYE, 0, 0, 0);
}

static void
no_more_than_the_window_is_taken_CTR_14(void **state)
{
	static char bytes[KG_FRAME_BYTES];

	(void)state;
	assert_true(takes(&outside, KG_FRAME_HELLO, 0, 0, KG_HELLO));
	for (int i = 0; i < KG_WINDOW / KG_FRAME_BYTES; i++) {
		assert_true(takes(&outside, KG_FRAME_DATA, 0, KG_STREAM_STDOUT, KG_FRAME_BYTES));
		assert_true(kg_mux_take(&outside, bytes, sizeof(bytes)));
	}
	refused(KG_FRAME_DATA, 0, KG_STREAM_STDOUT, 1);
	/* What was passed on, but not told, is no room that the other end could know of. */
	kg_mux_passed(&outside, KG_STREAM_STDOUT, 1);
	refused(KG_FRAME_DATA, 0, KG_STREAM_STDOUT, 1);
}

#define IN(test) cmocka_unit_test_setup_teardown(test, start, stop)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		IN(much_goes_through_in_any_pieces),
		IN(a_slow_stream_stops_no_other),
		IN(each_way_ends_alone_and_a_number_is_used_again),
		IN(what_comes_too_late_is_dropped),
		IN(there_are_so_many_and_no_more),
		IN(the_outside_takes_nothing_else_CTR_14),
		IN(no_more_than_the_window_is_taken_CTR_14),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
