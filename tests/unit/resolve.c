/*
 * egress: names resolved beside the loop. The clock is the test's; a resolver of the test's answers, fails or
 * stalls, and counts (NET-16).
 */
#include <setjmp.h>
#include <stdarg.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "egress/resolve.h"

#include <cmocka.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool is_stalled;
static unsigned inside, calls;
static sigset_t mask_of_thread;

/* "no..." fails, "slow..." stalls while is_stalled; others have the address 9.9.9.9. */
static int
resolve(const char *name, struct kr_found *out, struct kr_error *err)
{
	pthread_mutex_lock(&lock);
	calls++;
	inside++;
	pthread_sigmask(SIG_SETMASK, NULL, &mask_of_thread);
	while (is_stalled && strncmp(name, "slow", 4) == 0)
		pthread_cond_wait(&changed, &lock);
	inside--;
	pthread_mutex_unlock(&lock);
	if (strncmp(name, "no", 2) == 0)
		return kr_fail(err, KR_E_NOT_FOUND, "'%s' does not resolve: never heard", name);
	*out = (struct kr_found){ .v = { { .b = { 9, 9, 9, 9 } } }, .n = 1 };
	return 0;
}

static void
set_stalled(bool to)
{
	pthread_mutex_lock(&lock);
	is_stalled = to;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static unsigned
count(const unsigned *what)
{
	unsigned n;

	pthread_mutex_lock(&lock);
	n = *what;
	pthread_mutex_unlock(&lock);
	return n;
}

struct waiter {
	struct kr_lookup lookup;
	unsigned found, failed;
	char why[256];
};

static void
on_done(void *context, const struct kr_found *found, const char *why)
{
	struct waiter *w = context;

	if (found) {
		w->found++;
		assert_int_equal(found->n, 1);
		assert_int_equal(found->v[0].b[0], 9);
		assert_null(why);
	} else {
		w->failed++;
		snprintf(w->why, sizeof(w->why), "%s", why);
	}
}

/* True when the answer was there at once. */
static bool
ask(struct kr_resolver *r, const char *name, struct waiter *w, int64_t now_ms)
{
	const struct kr_found *found;

	w->lookup.on_done = on_done;
	w->lookup.context = w;
	found = kr_resolver_ask(r, name, &w->lookup, now_ms);
	if (!found)
		assert_int_equal(errno, 0);
	kr_resolver_step(r, now_ms);
	return found;
}

/* Until no thread is left; ten seconds at most. */
static void
settle(struct kr_resolver *r, int64_t now_ms)
{
	for (int i = 0; i < 1000 && kr_resolver_threads(r); i++) {
		struct pollfd p = { .fd = kr_resolver_fd(r), .events = POLLIN };

		poll(&p, 1, 10);
		kr_resolver_step(r, now_ms);
	}
	assert_int_equal(kr_resolver_threads(r), 0);
}

static struct kr_resolver *
new_resolver(void)
{
	struct kr_resolver *r = kr_resolver_new(resolve, NULL);

	assert_non_null(r);
	pthread_mutex_lock(&lock);
	calls = 0;
	pthread_mutex_unlock(&lock);
	return r;
}

static void
an_answer_is_kept_for_its_time_and_a_failure_never(void **state)
{
	struct kr_resolver *r = new_resolver();
	struct waiter w[6] = { 0 };

	(void)state;
	assert_false(ask(r, "x.example", &w[0], 1000));
	settle(r, 1500);
	assert_int_equal(w[0].found, 1);
	assert_true(ask(r, "x.example", &w[1], 1500 + KR_LOOKUP_KEPT_MS - 1));
	assert_int_equal(w[1].found + w[1].failed, 0);
	assert_int_equal(count(&calls), 1);
	assert_false(ask(r, "x.example", &w[2], 1500 + KR_LOOKUP_KEPT_MS));
	settle(r, 40000);
	assert_int_equal(w[2].found, 1);
	assert_int_equal(count(&calls), 2);
	for (int i = 3; i < 5; i++) {
		assert_false(ask(r, "no.example", &w[i], 40000));
		settle(r, 40000);
		assert_int_equal(w[i].failed, 1);
		assert_string_equal(w[i].why, "'no.example' does not resolve: never heard");
	}
	assert_int_equal(count(&calls), 4);
	assert_int_equal(kr_resolver_due_ms(r), -1);
	kr_resolver_free(r);
}

static void
the_same_name_at_once_is_asked_for_once(void **state)
{
	struct kr_resolver *r = new_resolver();
	struct waiter w[100] = { 0 };

	(void)state;
	set_stalled(true);
	for (size_t i = 0; i < KR_COUNT(w); i++)
		assert_false(ask(r, "slow.example", &w[i], 0));
	assert_int_equal(kr_resolver_threads(r), 1);
	set_stalled(false);
	settle(r, 0);
	for (size_t i = 0; i < KR_COUNT(w); i++)
		assert_int_equal(w[i].found, 1);
	assert_int_equal(count(&calls), 1);
	kr_resolver_free(r);
}

static void
threads_are_bounded_and_count_until_they_return_NET_16(void **state)
{
	struct kr_resolver *r = new_resolver();
	struct waiter w[1000] = { 0 }, later = { 0 }, again = { 0 };
	char name[64];

	(void)state;
	set_stalled(true);
	for (size_t i = 0; i < KR_COUNT(w); i++) {
		snprintf(name, sizeof(name), "slow%zu.example", i);
		assert_false(ask(r, name, &w[i], 0));
		assert_true(kr_resolver_threads(r) <= KR_LOOKUPS_MAX);
	}
	assert_int_equal(kr_resolver_due_ms(r), KR_LOOKUP_MS);
	kr_resolver_step(r, KR_LOOKUP_MS - 1);
	assert_int_equal(w[0].failed + w[999].failed, 0);
	assert_false(ask(r, "slow999.example", &again, KR_LOOKUP_MS - 1));
	kr_resolver_step(r, KR_LOOKUP_MS);
	for (size_t i = 0; i < KR_COUNT(w); i++)
		assert_int_equal(w[i].failed, 1);
	assert_non_null(strstr(w[7].why, "'slow7.example' does not resolve: no answer within 20 seconds"));
	/* Each has its own time, and the four threads are still held. */
	assert_int_equal(again.failed, 0);
	assert_int_equal(kr_resolver_threads(r), KR_LOOKUPS_MAX);
	assert_false(ask(r, "x.example", &later, KR_LOOKUP_MS));
	kr_resolver_step(r, KR_LOOKUP_MS + 1000);
	assert_int_equal(later.found + later.failed, 0);
	set_stalled(false);
	settle(r, KR_LOOKUP_MS + 2000);
	assert_int_equal(later.found, 1);
	assert_int_equal(again.found, 1);
	/* The four that began, and the two that somebody still waited for. */
	assert_int_equal(count(&calls), KR_LOOKUPS_MAX + 2);
	assert_true(ask(r, "slow0.example", &w[0], KR_LOOKUP_MS + 2000));
	kr_resolver_free(r);
}

static void
who_cancels_is_not_told_and_costs_no_look_up(void **state)
{
	struct kr_resolver *r = new_resolver();
	struct waiter w[8] = { 0 };
	char name[64];

	(void)state;
	set_stalled(true);
	for (size_t i = 0; i < KR_COUNT(w); i++) {
		snprintf(name, sizeof(name), "slow%zu.example", i);
		ask(r, name, &w[i], 0);
	}
	for (size_t i = 0; i < KR_COUNT(w); i++) {
		kr_resolver_cancel(r, &w[i].lookup);
		kr_resolver_cancel(r, &w[i].lookup); /* twice is once */
	}
	set_stalled(false);
	settle(r, 0);
	for (size_t i = 0; i < KR_COUNT(w); i++)
		assert_int_equal(w[i].found + w[i].failed, 0);
	assert_int_equal(count(&calls), KR_LOOKUPS_MAX);
	kr_resolver_free(r);
}

static void
a_resolver_may_go_before_its_threads(void **state)
{
	struct kr_resolver *r = new_resolver();
	struct waiter w[6] = { 0 };
	char name[64];

	(void)state;
	set_stalled(true);
	for (size_t i = 0; i < KR_COUNT(w); i++) {
		snprintf(name, sizeof(name), "slow%zu.example", i);
		ask(r, name, &w[i], 0);
	}
	while (count(&inside) < KR_LOOKUPS_MAX)
		usleep(1000);
	kr_resolver_free(r);
	set_stalled(false);
	for (int i = 0; i < 1000 && count(&inside); i++)
		usleep(10000);
	assert_int_equal(count(&inside), 0);
	usleep(50000); /* what they do after the resolver of the test returned: the sanitizers look on */
	for (size_t i = 0; i < KR_COUNT(w); i++)
		assert_int_equal(w[i].found + w[i].failed, 0);
}

static void
what_is_kept_is_bounded(void **state)
{
	struct kr_resolver *r = new_resolver();
	struct waiter w = { 0 };
	char name[64];
	int names = KR_LOOKUPS_KEPT_MAX + 50;

	(void)state;
	for (int i = 0; i < names; i++) {
		snprintf(name, sizeof(name), "n%d.example", i);
		assert_false(ask(r, name, &w, 0));
		settle(r, i);
	}
	assert_int_equal(w.found, names);
	assert_true(ask(r, name, &w, names)); /* the newest */
	assert_true(ask(r, "n50.example", &w, names));
	assert_false(ask(r, "n49.example", &w, names));
	settle(r, names);
	kr_resolver_free(r);
}

static void
a_thread_takes_no_signals(void **state)
{
	struct kr_resolver *r = new_resolver();
	struct waiter w = { 0 };
	sigset_t mine;

	(void)state;
	ask(r, "x.example", &w, 0);
	settle(r, 0);
	pthread_mutex_lock(&lock);
	assert_true(sigismember(&mask_of_thread, SIGINT) && sigismember(&mask_of_thread, SIGCHLD) &&
				sigismember(&mask_of_thread, SIGPIPE));
	pthread_mutex_unlock(&lock);
	pthread_sigmask(SIG_SETMASK, NULL, &mine);
	assert_false(sigismember(&mine, SIGINT));
	kr_resolver_free(r);
}

static void
the_systems_resolver_knows_localhost(void **state)
{
	struct kr_found found = { .n = 0 };
	struct kr_error err = { 0 };

	(void)state;
	if (kr_resolve("localhost", &found, &err) < 0)
		fail_msg("%s", err.message);
	assert_true(found.n >= 1);
	assert_true(found.v[0].is_v6 ? found.v[0].b[15] == 1 : found.v[0].b[0] == 127);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_is_kept_for_its_time_and_a_failure_never),
		cmocka_unit_test(the_same_name_at_once_is_asked_for_once),
		cmocka_unit_test(threads_are_bounded_and_count_until_they_return_NET_16),
		cmocka_unit_test(who_cancels_is_not_told_and_costs_no_look_up),
		cmocka_unit_test(a_resolver_may_go_before_its_threads),
		cmocka_unit_test(what_is_kept_is_bounded),
		cmocka_unit_test(a_thread_takes_no_signals),
		cmocka_unit_test(the_systems_resolver_knows_localhost),
	};

	return cmocka_run_group_tests_name("resolve", tests, NULL, NULL);
}
