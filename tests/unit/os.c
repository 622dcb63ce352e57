/* What of room os/ is no system call, from what macOS's calls would say. */
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "os/kevents.h"
#include "os/sockets.h"

/* ---- kevents.h ---- */

enum { OPEN_FD = 5, ENDED_FD = 6 };

static int asked;

static bool
has_ended(int fd)
{
	asked++;
	return fd == ENDED_FD;
}

static int a, b;

static void
an_event_for_each_descriptor_with_both_directions(void **state)
{
	const struct kr_kevent seen[] = {
		{ .fd = OPEN_FD, .tag = &a, .is_read = true, .is_asked = true },
		{ .fd = ENDED_FD, .tag = &b, .is_asked = true },
		{ .fd = OPEN_FD, .tag = &a, .is_asked = true },
	};
	struct kr_poll_event out[3];

	(void)state;
	asked = 0;
	assert_int_equal(kr_kevents_join(seen, 3, has_ended, out), 2);
	assert_ptr_equal(out[0].tag, &a);
	assert_int_equal(out[0].events, KR_POLL_IN | KR_POLL_OUT);
	assert_ptr_equal(out[1].tag, &b);
	assert_int_equal(out[1].events, KR_POLL_OUT);
	assert_int_equal(asked, 0); /* nobody told of an end */
}

static void
what_nobody_asked_for_is_dropped_but_not_an_end(void **state)
{
	const struct kr_kevent seen[] = {
		{ .fd = OPEN_FD, .tag = &a, .is_read = true },                   /* bytes that nobody wants yet */
		{ .fd = OPEN_FD, .tag = &a, .is_read = true, .is_end = true },   /* one direction's */
		{ .fd = ENDED_FD, .tag = &b, .is_read = true, .is_end = true },
	};
	struct kr_poll_event out[3];

	(void)state;
	assert_int_equal(kr_kevents_join(seen, 3, has_ended, out), 1);
	assert_ptr_equal(out[0].tag, &b);
	assert_int_equal(out[0].events, KR_POLL_END);
}

static void
the_end_of_one_direction_is_read_and_no_end(void **state)
{
	const struct kr_kevent half = { .fd = OPEN_FD, .tag = &a, .is_read = true, .is_asked = true, .is_end = true };
	const struct kr_kevent broken = { .fd = OPEN_FD, .tag = &a, .is_asked = true, .is_end = true, .is_broken = true };
	struct kr_poll_event out[1];

	(void)state;
	assert_int_equal(kr_kevents_join(&half, 1, has_ended, out), 1);
	assert_int_equal(out[0].events, KR_POLL_IN);
	assert_int_equal(kr_kevents_join(&broken, 1, has_ended, out), 1);
	assert_int_equal(out[0].events, KR_POLL_OUT | KR_POLL_END);
}

static void
a_wait_that_failed_has_no_events(void **state)
{
	(void)state;
	assert_int_equal(kr_kevents_join(NULL, -1, has_ended, NULL), 0);
	assert_int_equal(kr_kevents_join(NULL, 0, has_ended, NULL), 0);
}

/* ---- sockets.h ---- */

static struct sockaddr_storage
v4(uint32_t address, uint16_t port)
{
	struct sockaddr_storage out = { 0 };
	const struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(address) };

	memcpy(&out, &in, sizeof(in));
	return out;
}

static struct sockaddr_storage
v6(const struct in6_addr *address, uint16_t port)
{
	struct sockaddr_storage out = { 0 };
	const struct sockaddr_in6 in = { .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = *address };

	memcpy(&out, &in, sizeof(in));
	return out;
}

static void
MAC_03_the_other_side_is_the_same_pair_the_other_way_round(void **state)
{
	const struct sockaddr_storage door = v4(INADDR_LOOPBACK, 4000), client = v4(INADDR_LOOPBACK, 50000),
								  other = v4(INADDR_LOOPBACK, 50001);
	struct kr_tcp ours, theirs;

	(void)state;
	assert_true(kr_end_of(&door, &ours.local) && kr_end_of(&client, &ours.remote));
	assert_true(kr_end_of(&client, &theirs.local) && kr_end_of(&door, &theirs.remote));
	assert_true(kr_tcp_is_other_side(&theirs, &ours));
	assert_false(kr_tcp_is_other_side(&ours, &ours)); /* our own end is no other side */
	assert_true(kr_end_of(&other, &theirs.local));
	assert_false(kr_tcp_is_other_side(&theirs, &ours));
}

static void
MAC_03_a_client_of_ipv6_is_the_other_side_of_an_ipv4_pair(void **state)
{
	struct in6_addr mapped = { .s6_addr = { [10] = 0xff, 0xff, 127, 0, 0, 1 } };
	const struct sockaddr_storage door = v4(INADDR_LOOPBACK, 4000), client = v4(INADDR_LOOPBACK, 50000),
								  mapped_door = v6(&mapped, 4000), mapped_client = v6(&mapped, 50000),
								  loopback_client = v6(&in6addr_loopback, 50000);
	struct kr_tcp ours, theirs;

	(void)state;
	assert_true(kr_end_of(&door, &ours.local) && kr_end_of(&client, &ours.remote));
	assert_true(kr_end_of(&mapped_client, &theirs.local) && kr_end_of(&mapped_door, &theirs.remote));
	assert_true(kr_tcp_is_other_side(&theirs, &ours));
	assert_true(kr_end_of(&loopback_client, &theirs.local)); /* ::1 is another address */
	assert_false(kr_tcp_is_other_side(&theirs, &ours));
}

static void
a_unix_socket_has_no_such_end(void **state)
{
	const struct sockaddr_storage unix_socket = { .ss_family = AF_UNIX };
	struct kr_end end;

	(void)state;
	assert_false(kr_end_of(&unix_socket, &end));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_for_each_descriptor_with_both_directions),
		cmocka_unit_test(what_nobody_asked_for_is_dropped_but_not_an_end),
		cmocka_unit_test(the_end_of_one_direction_is_read_and_no_end),
		cmocka_unit_test(a_wait_that_failed_has_no_events),
		cmocka_unit_test(MAC_03_the_other_side_is_the_same_pair_the_other_way_round),
		cmocka_unit_test(MAC_03_a_client_of_ipv6_is_the_other_side_of_an_ipv4_pair),
		cmocka_unit_test(a_unix_socket_has_no_such_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
