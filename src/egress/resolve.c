/*
 * A name's life:
 *
 *     WAITING --a thread is free--> ASKED --thread returned, addresses--> KEPT --time or too many--> gone
 *        |                            |
 *        '-- the last waiter left     '-- thread returned, failure --> gone
 *
 * The question (name in, addresses or a reason out) is what a thread and the loop share: two references, and
 * `done` as the only thing that both look at meanwhile. The thread writes its answer, sets done, writes one
 * byte into the pipe and lets go; the loop reads nothing of a question that is not done. Each question has a
 * pipe end of its own, so a thread that outlives the resolver still writes into its own descriptor.
 */
#include "egress/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/portable.h"

enum {
	STACK_BYTES = 256 << 10,
	BUCKETS = 256, /* power of two */
	WHY_MAX = 512,
};

struct question {
	atomic_uint holders;
	atomic_bool done;
	int wake_fd; /* the thread's, once there is one */
	kr_resolve_fn *resolve;
	char name[KR_HOST_MAX + 1];
	bool failed;
	struct kr_found found; /* of one that did not fail */
	char why[WHY_MAX];     /* of one that did */
};

enum state { WAITING, ASKED, KEPT };

TAILQ_HEAD(lookups, kr_lookup);

struct kr_name {
	struct question *question;
	enum state state;
	int64_t until_ms; /* KEPT */
	struct lookups lookups;
	TAILQ_ENTRY(kr_name) of_state;
	LIST_ENTRY(kr_name) of_bucket;
};

TAILQ_HEAD(names, kr_name);
LIST_HEAD(bucket, kr_name);

struct kr_resolver {
	kr_resolve_fn *resolve;
	int read_fd, write_fd;
	unsigned asked_n, kept_n;
	struct names names[KEPT + 1]; /* by state; the oldest first */
	struct lookups lookups;       /* all, in the order in which their time runs out */
	struct bucket buckets[BUCKETS];
};

/* ---- the question, and the thread ---- */

static void
let_go(struct question *q)
{
	if (atomic_fetch_sub(&q->holders, 1) == 1)
		free(q);
}

static void *
answer(void *argument)
{
	struct question *q = argument;
	struct kr_error err = { 0 };

	if (q->resolve(q->name, &q->found, &err) < 0) {
		q->failed = true;
		snprintf(q->why, sizeof(q->why), "%.*s", WHY_MAX - 1, err.message);
	}
	atomic_store(&q->done, true);
	/* Fails when nobody reads any more, or when the pipe is full of bytes that wake just as well. SIGPIPE is
	 * blocked. */
	if (write(q->wake_fd, "", 1) < 0)
		errno = 0;
	kr_close_p(&q->wake_fd);
	let_go(q);
	return NULL;
}

/* All signals blocked in the thread: handlers are for the loop's thread. An errno number. */
static int
start_thread(struct question *q)
{
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int failed = pthread_attr_init(&attr);

	if (failed)
		return failed;
	sigfillset(&all);
	KR_BUG_IF(pthread_attr_setstacksize(&attr, STACK_BYTES) != 0);
	KR_BUG_IF(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED) != 0);
	KR_BUG_IF(pthread_sigmask(SIG_SETMASK, &all, &before) != 0);
	atomic_fetch_add(&q->holders, 1);
	failed = pthread_create(&thread, &attr, answer, q);
	if (failed)
		atomic_fetch_sub(&q->holders, 1);
	KR_BUG_IF(pthread_sigmask(SIG_SETMASK, &before, NULL) != 0);
	pthread_attr_destroy(&attr);
	return failed;
}

/* ---- names ---- */

static struct bucket *
bucket_of(struct kr_resolver *r, const char *name)
{
	uint32_t hash =
		2166136261u; /* FNV-1a; who makes names collide makes the wait longer by what it asks itself */

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619u;
	return &r->buckets[hash & (BUCKETS - 1)];
}

static struct kr_name *
find(struct kr_resolver *r, const char *name)
{
	struct kr_name *at;

	LIST_FOREACH(at, bucket_of(r, name), of_bucket)
	if (strcmp(at->question->name, name) == 0)
		return at;
	return NULL;
}

static struct kr_name *
add(struct kr_resolver *r, const char *name)
{
	struct kr_name *n = calloc(1, sizeof(*n));
	struct question *q = calloc(1, sizeof(*q));

	if (!n || !q) {
		free(n);
		free(q);
		return NULL;
	}
	atomic_init(&q->holders, 1);
	q->wake_fd = -1;
	q->resolve = r->resolve;
	snprintf(q->name, sizeof(q->name), "%s", name);
	n->question = q;
	TAILQ_INIT(&n->lookups);
	TAILQ_INSERT_TAIL(&r->names[WAITING], n, of_state);
	LIST_INSERT_HEAD(bucket_of(r, name), n, of_bucket);
	return n;
}

static void
count(struct kr_resolver *r, enum state state, int by)
{
	if (state == ASKED)
		r->asked_n += (unsigned)by;
	if (state == KEPT)
		r->kept_n += (unsigned)by;
}

static void
move(struct kr_resolver *r, struct kr_name *n, enum state to)
{
	TAILQ_REMOVE(&r->names[n->state], n, of_state);
	count(r, n->state, -1);
	n->state = to;
	TAILQ_INSERT_TAIL(&r->names[to], n, of_state);
	count(r, to, 1);
}

/* Nobody waits for it any more. */
static void
drop(struct kr_resolver *r, struct kr_name *n)
{
	TAILQ_REMOVE(&r->names[n->state], n, of_state);
	count(r, n->state, -1);
	LIST_REMOVE(n, of_bucket);
	let_go(n->question);
	free(n);
}

static void
drop_old(struct kr_resolver *r, int64_t now_ms, unsigned at_most)
{
	struct kr_name *n, *next;

	for (n = TAILQ_FIRST(&r->names[KEPT]); n && (n->until_ms <= now_ms || r->kept_n > at_most); n = next) {
		next = TAILQ_NEXT(n, of_state);
		drop(r, n);
	}
}

/* ---- who waits ---- */

static void
leave(struct kr_resolver *r, struct kr_lookup *lookup)
{
	TAILQ_REMOVE(&lookup->name->lookups, lookup, of_name);
	TAILQ_REMOVE(&r->lookups, lookup, of_all);
	lookup->name = NULL;
}

/* Only who waited when it began is told: who asks anew from on_done waits for the next answer. */
static void
tell(struct kr_resolver *r, struct lookups *waiting, const struct kr_found *found, const char *why)
{
	struct kr_lookup *lookup;

	TAILQ_FOREACH(lookup, waiting, of_name)
	{
		TAILQ_REMOVE(&r->lookups, lookup, of_all);
		lookup->name = NULL;
	}
	while ((lookup = TAILQ_FIRST(waiting))) {
		TAILQ_REMOVE(waiting, lookup, of_name);
		lookup->on_done(lookup->context, found, why);
	}
}

static void
take_waiting(struct kr_name *n, struct lookups *out)
{
	TAILQ_INIT(out);
	TAILQ_CONCAT(out, &n->lookups, of_name);
}

static void
fail(struct kr_resolver *r, struct kr_name *n, const char *why)
{
	struct lookups waiting;
	char text[WHY_MAX];

	snprintf(text, sizeof(text), "%s", why);
	take_waiting(n, &waiting);
	drop(r, n);
	tell(r, &waiting, NULL, text);
}

/* ---- what a step does ---- */

static void
take_answer(struct kr_resolver *r, struct kr_name *n, int64_t now_ms)
{
	struct lookups waiting;

	if (n->question->failed) {
		fail(r, n, n->question->why);
		return;
	}
	n->until_ms = now_ms + KR_LOOKUP_KEPT_MS;
	move(r, n, KEPT);
	take_waiting(n, &waiting);
	tell(r, &waiting, &n->question->found, NULL);
}

static void
take_answers(struct kr_resolver *r, int64_t now_ms)
{
	struct kr_name *n, *next;
	char bytes[64];

	if (!r->asked_n)
		return;
	while (read(r->read_fd, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes))
		;
	for (n = TAILQ_FIRST(&r->names[ASKED]); n; n = next) {
		next = TAILQ_NEXT(n, of_state);
		if (atomic_load(&n->question->done))
			take_answer(r, n, now_ms);
	}
	drop_old(r, now_ms, KR_LOOKUPS_KEPT_MAX);
}

static void
give_up(struct kr_resolver *r, int64_t now_ms)
{
	struct kr_lookup *lookup, *next;
	char why[WHY_MAX];

	for (lookup = TAILQ_FIRST(&r->lookups); lookup && lookup->until_ms <= now_ms; lookup = next) {
		struct kr_name *n = lookup->name;

		next = TAILQ_NEXT(lookup, of_all);
		snprintf(why, sizeof(why), "'%s' does not resolve: no answer within %d seconds", n->question->name,
			KR_LOOKUP_MS / 1000);
		leave(r, lookup);
		if (n->state == WAITING && TAILQ_EMPTY(&n->lookups))
			drop(r, n);
		lookup->on_done(lookup->context, NULL, why);
	}
}

static void
begin_waiting(struct kr_resolver *r)
{
	struct kr_name *n;

	while (r->asked_n < KR_LOOKUPS_MAX && (n = TAILQ_FIRST(&r->names[WAITING]))) {
		char why[WHY_MAX];
		int failed;

		n->question->wake_fd = fcntl(r->write_fd, F_DUPFD_CLOEXEC, 0);
		failed = n->question->wake_fd < 0 ? errno : start_thread(n->question);
		if (!failed) {
			move(r, n, ASKED);
			continue;
		}
		kr_close_p(&n->question->wake_fd);
		snprintf(why, sizeof(why), "'%s' does not resolve: cannot start a look-up: %s", n->question->name,
			strerror(failed));
		fail(r, n, why);
	}
}

/* ---- the door ---- */

struct kr_resolver *
kr_resolver_new(kr_resolve_fn *resolve, struct kr_error *err)
{
	struct kr_resolver *r = kr_xcalloc(1, sizeof(*r));
	int fds[2];

	if (kr_pipe_pair(fds, true) < 0) {
		free(r);
		kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make a pipe");
		return NULL;
	}
	r->resolve = resolve;
	r->read_fd = fds[0];
	r->write_fd = fds[1];
	TAILQ_INIT(&r->lookups);
	for (size_t i = 0; i < KR_COUNT(r->names); i++)
		TAILQ_INIT(&r->names[i]);
	for (size_t i = 0; i < BUCKETS; i++)
		LIST_INIT(&r->buckets[i]);
	return r;
}

void
kr_resolver_free(struct kr_resolver *r)
{
	struct kr_lookup *lookup, *later;
	struct kr_name *n, *next;

	if (!r)
		return;
	for (lookup = TAILQ_FIRST(&r->lookups); lookup; lookup = later) {
		later = TAILQ_NEXT(lookup, of_all);
		leave(r, lookup);
	}
	for (size_t i = 0; i < KR_COUNT(r->names); i++)
		for (n = TAILQ_FIRST(&r->names[i]); n; n = next) {
			next = TAILQ_NEXT(n, of_state);
			drop(r, n);
		}
	kr_close_p(&r->read_fd);
	kr_close_p(&r->write_fd);
	free(r);
}

int
kr_resolver_fd(const struct kr_resolver *r)
{
	return r->read_fd;
}

const struct kr_found *
kr_resolver_ask(struct kr_resolver *r, const char *name, struct kr_lookup *lookup, int64_t now_ms)
{
	struct kr_name *n;

	KR_BUG_IF(strlen(name) > KR_HOST_MAX || lookup->name);
	drop_old(r, now_ms, KR_LOOKUPS_KEPT_MAX);
	n = find(r, name);
	if (n && n->state == KEPT)
		return &n->question->found;
	if (!n)
		n = add(r, name);
	errno = n ? 0 : ENOMEM;
	if (!n)
		return NULL;
	lookup->name = n;
	lookup->until_ms = now_ms + KR_LOOKUP_MS;
	TAILQ_INSERT_TAIL(&n->lookups, lookup, of_name);
	TAILQ_INSERT_TAIL(&r->lookups, lookup, of_all);
	return NULL;
}

void
kr_resolver_cancel(struct kr_resolver *r, struct kr_lookup *lookup)
{
	struct kr_name *n = lookup->name;

	if (!n)
		return;
	leave(r, lookup);
	if (n->state == WAITING && TAILQ_EMPTY(&n->lookups))
		drop(r, n);
}

void
kr_resolver_step(struct kr_resolver *r, int64_t now_ms)
{
	take_answers(r, now_ms);
	give_up(r, now_ms);
	begin_waiting(r);
}

int64_t
kr_resolver_due_ms(const struct kr_resolver *r)
{
	const struct kr_lookup *first = TAILQ_FIRST(&r->lookups);

	return first ? first->until_ms : -1;
}

unsigned
kr_resolver_threads(const struct kr_resolver *r)
{
	return r->asked_n;
}
