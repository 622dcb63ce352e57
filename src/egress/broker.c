/*
 * One ask's way:
 *
 *     read and checked --> decided --(literal)--------------------------> judged --> dialled --> answered
 *                             |                                             ^          |
 *                             '--(name)--> looked up, once --> each address '          '-- the next address,
 * or failed
 *
 * With an upstream proxy all of that but the dialling happens too; then the proxy's own name is looked up and
 * its addresses are dialled, which no list has to allow. A refused name never gets to the look-up (NET-05,
 * NET-15). What was judged is kept with the ask and dialled from there, so that no second answer of a name
 * server is ever used (NET-11, NET-12).
 *
 * A call is answered at once: it has been read whole, checked and judged before the next frame is looked at. KR_CALLS_MAX of
 * them may wait for their answer to be taken, which bounds the memory of those.
 *
 * An ask lives from its frame until its answer is all in the socket, and KR_ASKS_MAX of them are the bound of
 * everything: memory, connections under way, answers that wait. kraft-egress counts its asks too, so more of
 * them is a broken kraft-egress, as is a frame that does not pass its check: then the control socket is
 * closed and all is dropped, at the end of the step, because until then events of the same step may name an
 * ask.
 *
 * The look-ups and the diallings each have one time-out for all, so the first in a list is the next that is
 * due, and one timer serves both.
 */
#include "egress/broker.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/portable.h"
#include "egress/upstream.h"
#include "os/poller.h"
#include "os/timer.h"

enum {
	EVENTS_A_STEP = 64,
	FRAMES_A_STEP = 64, /* then the loop's others have their turn */
	KR_TOLD_ONCE = KR_CALL_ROUTE_MAX + KR_HOST_MAX, /* more than a route, or a host with a name and a number */
};

struct ask {
	struct kr_broker *broker;
	enum { LOOKING, DIALLING, ANSWERING } state;
	enum kr_ask_type type;
	struct kr_target target;
	TAILQ_ENTRY(ask) of_state;

	const struct kr_upstream *upstream; /* NULL: directly; known once the target is judged */
	struct kr_lookup lookup;            /* of the target, then of the upstream proxy */
	struct kr_found addresses;          /* to dial, judged */
	size_t dialled;                     /* the first so many of them failed */
	int64_t until_ms;                   /* of this dialling */
	int fd;                             /* on its way, or connected */

	struct kr_answer answer;
	uint32_t sent;
	bool is_call;
	struct kr_buf body; /* of a call's answer */
	uint32_t body_sent;
};

TAILQ_HEAD(asks, ask);

struct kr_broker {
	struct kr_broker_want want;
	struct kr_upstreams upstreams;
	struct kr_resolver *resolver;
	int poller, timer;
	int64_t timer_ms; /* set to; -1: not set */
	int64_t now_ms;   /* of this step */

	int control; /* -1: nobody attached */
	bool waits_for_room, is_broken;
	struct kr_ask frame_bytes;
	struct kr_frame frame;
	struct kr_call *call; /* what follows a frame, while it comes; NULL: nothing does */
	struct kr_frame call_frame;

	struct asks
		asks[ANSWERING + 1]; /* by state; LOOKING and DIALLING in the order in which their time runs out */
	unsigned asks_n, calls_n; /* calls are asks too */
	int64_t calls_full_ms;    /* when a burst of calls may begin anew */
	int64_t states_full_ms;   /* of those that only look after an ask */

	struct kr_arena own_arena;
	struct kr_addresses own;
	int64_t own_until_ms;

	char refused[KR_REFUSED_HOSTS_MAX][KR_TOLD_ONCE]; /* hosts; routes and what is told of TLS, which no host is like */
	unsigned refused_n;
	bool told_last;

	struct kr_managed_rule managed[KR_MANAGED_RULES]; /* host, port, variable, source; no value */
	size_t managed_n;
	uint64_t echoed; /* a bit for each rule whose secret came back */
	struct kr_arena managed_arena;
};

/* ---- answers ---- */

static void
move(struct ask *ask, int state)
{
	struct kr_broker *b = ask->broker;

	TAILQ_REMOVE(&b->asks[ask->state], ask, of_state);
	ask->state = state;
	TAILQ_INSERT_TAIL(&b->asks[state], ask, of_state);
}

static void
drop(struct ask *ask)
{
	struct kr_broker *b = ask->broker;

	kr_resolver_cancel(b->resolver, &ask->lookup);
	if (ask->state == DIALLING)
		kr_poller_remove(b->poller, ask->fd);
	kr_close_p(&ask->fd);
	TAILQ_REMOVE(&b->asks[ask->state], ask, of_state);
	b->asks_n--;
	b->calls_n -= ask->is_call;
	kr_buf_fini(&ask->body);
	free(ask);
}

static void
send_answers(struct kr_broker *b)
{
	struct ask *ask, *next;
	int status = 1;
	bool waits;

	for (ask = TAILQ_FIRST(&b->asks[ANSWERING]); ask && status > 0 && !b->is_broken; ask = next) {
		next = TAILQ_NEXT(ask, of_state);
		status = kr_frame_write(b->control, &ask->answer, sizeof(ask->answer), &ask->sent, ask->fd);
		if (status > 0 && ask->answer.bytes)
			status = kr_frame_write(b->control, ask->body.data, ask->answer.bytes, &ask->body_sent, -1);
		b->is_broken = status < 0;
		if (status > 0)
			drop(ask);
	}
	waits = status == 0;
	if (!b->is_broken && waits != b->waits_for_room) {
		b->waits_for_room = waits;
		kr_poller_change(b->poller, b->control, KR_POLL_IN | (waits ? KR_POLL_OUT : 0u), &b->control);
	}
}

/* The ask may be gone afterwards. */
static void
answer(struct ask *ask, enum kr_answer_type type, unsigned status, const char *text)
{
	struct kr_broker *b = ask->broker;

	ask->answer.type = type;
	ask->answer.status = status;
	snprintf(ask->answer.text, sizeof(ask->answer.text), "%s", text);
	move(ask, ANSWERING);
	if (!b->waits_for_room)
		send_answers(b);
}

static void
fail(struct ask *ask, unsigned status, const char *text)
{
	char line[KR_ANSWER_TEXT];

	snprintf(line, sizeof(line), "%s", text);
	for (char *at = line; *at; at++)
		if (*at < 0x20 || *at > 0x7e)
			*at = '?';
	answer(ask, KR_ANSWER_FAILED, status, line);
}

/* ---- refusals ---- */

static bool
was_told(const struct kr_broker *b, const char *what)
{
	for (unsigned i = 0; i < b->refused_n; i++)
		if (strcmp(b->refused[i], what) == 0)
			return true;
	return false;
}

/* what: that it is told once of. route: NULL for a host. */
static void
tell_once(struct kr_broker *b, const char *what, const struct kr_verdict *verdict, const char *route)
{
	struct kr_refusal refusal = { .verdict = verdict, .route = route };

	if (b->told_last || was_told(b, what))
		return;
	if (b->refused_n == KR_REFUSED_HOSTS_MAX)
		refusal.suppressed = b->told_last = true;
	else
		snprintf(b->refused[b->refused_n++], sizeof(b->refused[0]), "%s", what);
	if (b->want.on_refused)
		b->want.on_refused(b->want.context, &refusal);
}

static void
refuse(struct ask *ask, const struct kr_verdict *verdict)
{
	char line[KR_REFUSAL_LINE];

	kr_refusal_line(verdict, line);
	tell_once(ask->broker, verdict->target.host, verdict, NULL);
	answer(ask, KR_ANSWER_REFUSED, 403, line);
}

/* ---- dialling ---- */

static void
connected(struct ask *ask)
{
	if (ask->upstream)
		answer(ask, KR_ANSWER_UPSTREAM, 0, ask->upstream->authorization);
	else
		answer(ask, KR_ANSWER_DIRECT, 0, "");
}

static int
start_socket(const struct kr_address *address, unsigned port)
{
	const int on = 1;
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
	kr_auto_fd int fd =
		kr_socket_make(address->is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM, IPPROTO_TCP, true);
	int status;

	if (fd < 0)
		return -1;
	memcpy(&v4.sin_addr, address->b, sizeof(v4.sin_addr));
	memcpy(&v6.sin6_addr, address->b, sizeof(v6.sin6_addr));
	/* Neither can be missing, and without them it would only be slower. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	status = address->is_v6 ? connect(fd, (struct sockaddr *)&v6, sizeof(v6))
							: connect(fd, (struct sockaddr *)&v4, sizeof(v4));
	if (status < 0 && errno != EINPROGRESS && errno != EINTR)
		return -1;
	return kr_steal_fd(fd);
}

/*
 * 0: connected or failed, with the errno number in *failed; 1: neither yet. Asking connect again tells all three, and it
 * must be asked: a socket that was connected without waiting stays "connecting" for the kernel until then, and one that is
 * handed over must not be fit for another connection.
 */
static int
look_at(int fd, int *failed)
{
	const struct sockaddr_in6 peer = { .sin6_family = AF_INET6 }; /* is not looked at */

	*failed = connect(fd, (const struct sockaddr *)&peer, sizeof(peer)) < 0 && errno != EISCONN ? errno : 0;
	return *failed == EALREADY || *failed == EINPROGRESS || *failed == EINTR;
}

static void
fail_dialling(struct ask *ask, const struct kr_address *last, int failed)
{
	char text[KR_ANSWER_TEXT], address[KR_ADDRESS_TEXT];

	kr_address_format(last, address);
	if (ask->upstream)
		snprintf(text, sizeof(text), "cannot connect to the upstream proxy: %s", strerror(failed));
	else if (ask->target.is_address)
		snprintf(text, sizeof(text), "cannot connect to '%s' port %u: %s", address, ask->target.port,
			strerror(failed));
	else
		snprintf(text, sizeof(text), "cannot connect to '%s' port %u (%s): %s", ask->target.host,
			ask->target.port, address, strerror(failed));
	/* This process's own shortage says nothing about the host. */
	fail(
		ask, failed == EMFILE || failed == ENFILE || failed == ENOMEM || failed == ENOBUFS ? 503 : 502, text);
}

static unsigned
port_of(const struct ask *ask)
{
	return ask->upstream ? ask->upstream->proxy.port : ask->target.port;
}

/* Begins with the first address that has not failed. ask->fd is -1. */
static void
dial(struct ask *ask)
{
	struct kr_broker *b = ask->broker;
	int failed = 0;

	KR_BUG_IF(ask->dialled >= ask->addresses.n);
	for (; ask->dialled < ask->addresses.n; ask->dialled++) {
		ask->fd = start_socket(&ask->addresses.v[ask->dialled], port_of(ask));
		failed = errno;
		if (ask->fd < 0)
			continue;
		/* A host on the same machine has mostly answered by now: that spares a turn of the loop. */
		if (look_at(ask->fd, &failed) == 0) {
			if (!failed) {
				connected(ask);
				return;
			}
		} else if (kr_poller_add(b->poller, ask->fd, KR_POLL_OUT, ask) == 0) {
			ask->until_ms = b->now_ms + KR_DIAL_MS;
			move(ask, DIALLING);
			return;
		} else {
			failed = errno;
		}
		kr_close_p(&ask->fd);
	}
	fail_dialling(ask, &ask->addresses.v[ask->dialled - 1], failed);
}

/* It is connected, or failed with this errno number. */
static void
end_dialling(struct ask *ask, int failed)
{
	struct kr_broker *b = ask->broker;

	kr_poller_remove(b->poller, ask->fd);
	move(ask, LOOKING);
	if (!failed) {
		connected(ask);
		return;
	}
	kr_close_p(&ask->fd);
	if (++ask->dialled < ask->addresses.n)
		dial(ask);
	else
		fail_dialling(ask, &ask->addresses.v[ask->dialled - 1], failed);
}

static void
dialling_is_ready(struct ask *ask)
{
	int failed;

	if (look_at(ask->fd, &failed) == 0)
		end_dialling(ask, failed);
}

static void
give_up_dialling(struct kr_broker *b)
{
	struct ask *ask;

	while ((ask = TAILQ_FIRST(&b->asks[DIALLING])) && ask->until_ms <= b->now_ms)
		end_dialling(ask, ETIMEDOUT);
}

/* ---- the way: direct, or through the person's proxy ---- */

static void
proxy_is_found(void *context, const struct kr_found *found, const char *why)
{
	struct ask *ask = context;

	(void)why;
	if (!found) {
		fail(ask, 502, "the name of the upstream proxy does not resolve");
		return;
	}
	ask->addresses = *found;
	dial(ask);
}

/* on_done is called now when the answer is kept, else later. */
static void
look_up(struct ask *ask, const char *name, void (*on_done)(void *, const struct kr_found *, const char *))
{
	struct kr_broker *b = ask->broker;
	const struct kr_found *found;

	ask->lookup.on_done = on_done;
	ask->lookup.context = ask;
	found = kr_resolver_ask(b->resolver, name, &ask->lookup, b->now_ms);
	if (found)
		on_done(ask, found, NULL);
	else if (errno)
		fail(ask, 503, "kraft is out of memory");
}

/* The target is judged good. */
static void
take_way(struct ask *ask, const struct kr_found *judged)
{
	const struct kr_upstream *upstream = kr_upstream_for(&ask->broker->upstreams, ask->type, &ask->target);

	ask->upstream = upstream;
	ask->addresses = *judged;
	if (upstream && upstream->proxy.is_address)
		ask->addresses = (struct kr_found){ .v = { upstream->proxy.address }, .n = 1 };
	if (upstream && !upstream->proxy.is_address)
		look_up(ask, upstream->proxy.host, proxy_is_found);
	else
		dial(ask);
}

/* ---- the decision ---- */

/* Own addresses not older than KR_OWN_ADDRESSES_MS; without them nothing can be judged. */
static int
renew_own_addresses(struct kr_broker *b)
{
	struct kr_arena arena = { 0 };
	struct kr_addresses own;

	if (b->now_ms < b->own_until_ms)
		return 0;
	if (kr_own_addresses(&arena, &own, NULL) < 0) {
		kr_arena_fini(&arena);
		return -1;
	}
	kr_arena_fini(&b->own_arena);
	b->own_arena = arena;
	b->own = own;
	b->own_until_ms = b->now_ms + KR_OWN_ADDRESSES_MS;
	return 0;
}

/* Judged anew after a look-up: the lists are the same, but what this host's own addresses are may have
 * changed. */
static bool
decide(struct ask *ask, struct kr_verdict *out)
{
	struct kr_broker *b = ask->broker;

	if (renew_own_addresses(b) < 0) {
		fail(ask, 503, "cannot list the addresses of this host, which no session may reach");
		return false;
	}
	kr_host_decide(b->want.hosts, b->want.phase, &ask->target, &b->own, out);
	if (out->decision == KR_HOST_ALLOWED)
		return true;
	refuse(ask, out);
	return false;
}

static void
target_is_found(void *context, const struct kr_found *found, const char *why)
{
	struct ask *ask = context;
	struct kr_verdict host, verdict;

	if (!decide(ask, &host))
		return;
	if (found)
		kr_found_decide(&host, found, &ask->broker->own, NULL, &verdict);
	else
		kr_unresolved_decide(&host, why, &verdict);
	if (found && verdict.decision == KR_HOST_ALLOWED)
		take_way(ask, found);
	else
		refuse(ask, &verdict);
}

static void
begin(struct ask *ask)
{
	struct kr_verdict verdict;

	if (!decide(ask, &verdict))
		return;
	if (ask->target.is_address)
		take_way(ask, &(struct kr_found){ .v = { ask->target.address }, .n = 1 });
	else
		look_up(ask, ask->target.host, target_is_found);
}

/* ---- calls ---- */

/* A burst, and then so many a second: a worker may call as it likes, and neither fill the store nor keep this loop busy.
 * kraft-egress's own looking after asks is counted apart, so that asks that wait take nothing from the worker's calls. */
static bool
may_be_called(struct kr_broker *b, const struct kr_call *call)
{
	const bool looks_after = call->verb == KR_VERB_ASK_STATE || call->verb == KR_VERB_ASK_CLOSE;
	int64_t *full_ms = looks_after ? &b->states_full_ms : &b->calls_full_ms;
	int64_t full = *full_ms > b->now_ms ? *full_ms : b->now_ms;

	if (full - b->now_ms > (int64_t)(KR_CALLS_BURST - 1) * KR_CALL_EVERY_MS)
		return false;
	*full_ms = full + KR_CALL_EVERY_MS;
	return true;
}

static void
refuse_call(struct ask *ask, const struct kr_call *call, const char *why)
{
	struct kr_verdict verdict = { .decision = KR_HOST_ALWAYS,
		.phase = ask->broker->want.phase,
		.target = { .host = "kraft", .port = 80 } };
	char line[KR_REFUSAL_LINE];

	snprintf(verdict.reason, sizeof(verdict.reason), "'%s' was refused: %s", call->route, why);
	tell_once(ask->broker, call->route, &verdict, call->route);
	kr_refusal_line(&verdict, line);
	answer(ask, KR_ANSWER_REFUSED, 403, line);
}

static const char not_called[] = "it is none of the calls that a worker may make, which are POST http://kraft/w/VERB";

static void
answer_call(struct ask *ask, const struct kr_call *call)
{
	struct kr_broker *b = ask->broker;
	struct kr_call_answer out = { .body = KR_BUF(KR_CALL_ANSWER_BYTES) };

	if (!may_be_called(b, call))
		kr_call_fail(&out, 429, "too many calls: wait a second");
	else if (call->verb == KR_VERB_NONE)
		snprintf(out.refused, sizeof(out.refused), "%s", not_called);
	else if (!b->want.on_call)
		snprintf(out.refused, sizeof(out.refused), "this session has no calls to kraft");
	else
		b->want.on_call(b->want.context, call, &out);
	if (out.body.overflow)
		kr_call_fail(&out, 500, "the answer is too long");
	ask->body = out.body;
	if (out.refused[0]) {
		refuse_call(ask, call, out.refused);
		return;
	}
	ask->answer.next = out.next;
	ask->answer.bytes = (uint32_t)out.body.len;
	answer(ask, KR_ANSWER_CALL, out.status, "");
}

/* ---- kraft-egress ---- */

/* NULL: this kraft-egress is thrown out. */
static struct ask *
open_ask(struct kr_broker *b, const struct kr_ask *frame)
{
	struct kr_target target = { .port = 0 };
	bool is_call = frame->type == KR_ASK_CALL;
	struct ask *ask = NULL;

	if (b->asks_n < KR_ASKS_MAX && (!is_call || b->calls_n < KR_CALLS_MAX) && kr_ask_check(frame, &target))
		ask = calloc(1, sizeof(*ask));
	if (!ask) {
		b->is_broken = true;
		return NULL;
	}
	ask->broker = b;
	ask->type = (enum kr_ask_type)frame->type;
	ask->answer.id = frame->id;
	ask->target = target;
	ask->fd = -1;
	ask->is_call = is_call;
	TAILQ_INSERT_TAIL(&b->asks[LOOKING], ask, of_state);
	b->asks_n++;
	b->calls_n += is_call;
	return ask;
}

static void
tell_strangers(struct kr_broker *b, unsigned n)
{
	if (b->want.on_strangers)
		b->want.on_strangers(b->want.context, n);
}

/* It knows the token, which every process of this user can read; so it is answered, and told nothing. */
static bool
is_refused_stranger(struct ask *ask, const struct kr_ask *frame)
{
	struct kr_broker *b = ask->broker;

	if (!frame->client_port || !b->want.whose ||
		b->want.whose(b->want.context, (uint16_t)frame->client_port) != KR_PEER_OTHER)
		return false;
	tell_strangers(b, 1);
	answer(ask, KR_ANSWER_REFUSED, 403, "this proxy answers the processes of its session only");
	return true;
}

static void
take_ask(struct kr_broker *b, const struct kr_ask *frame)
{
	struct ask *ask = open_ask(b, frame);

	if (ask && !is_refused_stranger(ask, frame))
		begin(ask);
}

static void
take_strangers(struct kr_broker *b, const struct kr_ask *frame)
{
	struct kr_target none;

	b->is_broken = !kr_ask_check(frame, &none);
	if (!b->is_broken)
		tell_strangers(b, frame->id);
}

/* ---- what became of the hosts whose secrets are managed ---- */

void
kr_broker_manage(struct kr_broker *b, const struct kr_managed_rule *rules, size_t n)
{
	KR_BUG_IF(n > KR_MANAGED_RULES);
	kr_arena_fini(&b->managed_arena);
	b->managed_n = n;
	for (size_t i = 0; i < n; i++)
		b->managed[i] = (struct kr_managed_rule){ .host = kr_arena_dup(&b->managed_arena, rules[i].host),
			.port = rules[i].port,
			.header = kr_arena_dup(&b->managed_arena, rules[i].header),
			.variable = kr_arena_dup(&b->managed_arena, rules[i].variable),
			.source = kr_arena_dup(&b->managed_arena, rules[i].source) };
}

static void
take_echo(struct kr_broker *b, uint32_t which)
{
	uint64_t bit = (uint64_t)1 << which;

	if (!(b->echoed & bit) && b->want.on_echoed)
		b->want.on_echoed(b->want.context, b->managed[which].host, b->managed[which].variable);
	b->echoed |= bit;
}

static void
refuse_told(struct kr_broker *b, const struct kr_managed_rule *rule, const struct kr_ask *frame)
{
	struct kr_verdict verdict = { .decision = KR_HOST_ALWAYS, .phase = b->want.phase, .target = { .port = rule->port } };
	char what[KR_TOLD_ONCE];

	snprintf(verdict.target.host, sizeof(verdict.target.host), "%s", rule->host);
	snprintf(what, sizeof(what), "%s/%u/%u/%s", rule->host, rule->port, frame->bytes, frame->host);
	if (frame->bytes > KR_TOLD_HEAD)
		kr_secret_words(frame->bytes - KR_TOLD_HEAD, rule, verdict.reason);
	else
		snprintf(verdict.reason, sizeof(verdict.reason), "%s%s%s%s", kr_told_words(frame->bytes),
			frame->host[0] ? ": '" : "", frame->host, frame->host[0] ? "'" : "");
	tell_once(b, what, &verdict, NULL);
}

static void
take_told(struct kr_broker *b, const struct kr_ask *frame)
{
	struct kr_target none;

	b->is_broken = !kr_ask_check(frame, &none) || frame->id >= b->managed_n;
	if (!b->is_broken && frame->bytes == KR_TOLD_ECHO)
		take_echo(b, frame->id);
	else if (!b->is_broken)
		refuse_told(b, &b->managed[frame->id], frame);
}

/* One byte more than comes, for the text's NUL. */
static void
expect_call(struct kr_broker *b, const struct kr_ask *frame)
{
	struct kr_target none;

	if (b->calls_n < KR_CALLS_MAX && kr_ask_check(frame, &none))
		b->call = malloc(frame->bytes + 1);
	b->is_broken = !b->call;
	b->call_frame = (struct kr_frame){ .bytes = b->call, .size = frame->bytes, .fd = -1 };
}

static void
take_call(struct kr_broker *b)
{
	struct kr_call *call = kr_steal(b->call);
	bool is_good = kr_call_check(call, b->call_frame.size);
	struct ask *ask = is_good ? open_ask(b, &b->frame_bytes) : NULL;

	b->is_broken = !ask;
	if (ask && !is_refused_stranger(ask, &b->frame_bytes)) {
		((char *)call)[b->call_frame.size] = '\0';
		answer_call(ask, call);
	}
	free(call);
}

static void
take_frames(struct kr_broker *b)
{
	enum kr_frame_state state = KR_FRAME_DONE;

	for (int i = 0; i < FRAMES_A_STEP && !b->is_broken && state == KR_FRAME_DONE; i++) {
		state = kr_frame_read(b->control, b->call ? &b->call_frame : &b->frame, false);
		if (state == KR_FRAME_END)
			b->is_broken = true;
		if (state != KR_FRAME_DONE)
			return;
		b->frame.used = 0;
		if (b->call)
			take_call(b);
		else if (b->frame_bytes.type == KR_ASK_CALL)
			expect_call(b, &b->frame_bytes);
		else if (b->frame_bytes.type == KR_ASK_STRANGERS)
			take_strangers(b, &b->frame_bytes);
		else if (b->frame_bytes.type == KR_ASK_TOLD)
			take_told(b, &b->frame_bytes);
		else
			take_ask(b, &b->frame_bytes);
	}
}

static void
detach(struct kr_broker *b)
{
	struct ask *ask, *next;

	for (size_t i = 0; i < KR_COUNT(b->asks); i++)
		for (ask = TAILQ_FIRST(&b->asks[i]); ask; ask = next) {
			next = TAILQ_NEXT(ask, of_state);
			drop(ask);
		}
	if (b->control >= 0)
		kr_poller_remove(b->poller, b->control);
	kr_close_p(&b->control);
	free(kr_steal(b->call));
	b->waits_for_room = b->is_broken = false;
	b->frame = (struct kr_frame){ .bytes = &b->frame_bytes, .size = sizeof(b->frame_bytes), .fd = -1 };
}

int
kr_broker_attach(struct kr_broker *b, int control_fd, struct kr_error *err)
{
	detach(b);
	b->control = control_fd;
	if (kr_poller_add(b->poller, control_fd, KR_POLL_IN, &b->control) == 0)
		return 0;
	kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot listen to kraft-egress");
	kr_close_p(&b->control);
	return -1;
}

bool
kr_broker_attached(const struct kr_broker *b)
{
	return b->control >= 0;
}

/* ---- the loop's ---- */

static void
set_timer(struct kr_broker *b)
{
	const struct ask *first = TAILQ_FIRST(&b->asks[DIALLING]);
	int64_t due = kr_resolver_due_ms(b->resolver);

	if (first && (due < 0 || first->until_ms < due))
		due = first->until_ms;
	/* Set too early it only wakes for nothing, twice a minute; so most asks cost no call here. */
	if (due < 0 || (b->timer_ms >= 0 && b->timer_ms <= due))
		return;
	kr_timer_set(b->timer, due);
	b->timer_ms = due;
}

static void
stop_timer(struct kr_broker *b)
{
	kr_timer_set(b->timer, -1);
	b->timer_ms = -1;
}

void
kr_broker_step(struct kr_broker *b)
{
	struct kr_poll_event events[EVENTS_A_STEP];
	int n = kr_poller_wait(b->poller, events, EVENTS_A_STEP, 0);

	b->now_ms = kr_clock_ms();
	for (int i = 0; i < n && !b->is_broken; i++) {
		void *tag = events[i].tag;

		if (tag == &b->control) {
			if (events[i].events & (KR_POLL_OUT | KR_POLL_END))
				send_answers(b);
			take_frames(b);
		} else if (tag == &b->timer) {
			stop_timer(b);
		} else if (tag != &b->resolver) { /* the resolver has its turn in each step */
			dialling_is_ready(tag);
		}
	}
	kr_resolver_step(b->resolver, b->now_ms);
	give_up_dialling(b);
	if (b->is_broken)
		detach(b);
	set_timer(b);
}

int
kr_broker_fd(const struct kr_broker *b)
{
	return b->poller;
}

static int
open_all(struct kr_broker *b, struct kr_error *err)
{
	if (kr_upstreams_init(&b->upstreams, b->want.environment, err) < 0)
		return -1;
	b->resolver = kr_resolver_new(b->want.resolve ? b->want.resolve : kr_resolve, err);
	if (!b->resolver)
		return -1;
	b->poller = kr_poller_open(err);
	if (b->poller < 0)
		return -1;
	b->timer = kr_timer_open(err);
	if (b->timer < 0)
		return -1;
	if (kr_poller_add(b->poller, b->timer, KR_POLL_IN, &b->timer) < 0 ||
		kr_poller_add(b->poller, kr_resolver_fd(b->resolver), KR_POLL_IN, &b->resolver) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot wait for several descriptors at once");
	return 0;
}

int
kr_broker_new(const struct kr_broker_want *want, struct kr_broker **out, struct kr_error *err)
{
	struct kr_broker *b = kr_xcalloc(1, sizeof(*b));

	b->want = *want;
	b->poller = b->timer = b->control = -1;
	b->timer_ms = -1;
	for (size_t i = 0; i < KR_COUNT(b->asks); i++)
		TAILQ_INIT(&b->asks[i]);
	if (open_all(b, err) < 0) {
		kr_broker_free(b);
		return -1;
	}
	*out = b;
	return 0;
}

void
kr_broker_free(struct kr_broker *b)
{
	if (!b)
		return;
	detach(b);
	kr_resolver_free(b->resolver);
	kr_upstreams_fini(&b->upstreams);
	kr_close_p(&b->timer);
	kr_close_p(&b->poller);
	kr_arena_fini(&b->own_arena);
	kr_arena_fini(&b->managed_arena);
	free(b);
}
