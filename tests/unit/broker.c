/*
 * egress: the broker, with the test in kraft-egress's place. Names are answered by a table of the test's;
 * real name servers are a live test's matter, as are real hosts: no address of this machine may be dialled,
 * so what gets through goes to a small proxy on loopback, as a person's own.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/fd.h"
#include "egress/egress.h"
#include "os/timer.h"

#include <cmocka.h>

enum { PATIENCE_MS = 20000 };

/* ---- names ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool is_stalled;
static unsigned calls, inside;

static const struct {
	const char *name;
	const char *addresses[6];
} names[] = {
	{ "good.example", { "8.8.8.8", "2600::1" } },
	{ "proxy.example", { "127.0.0.1" } },
	{ "two.proxy.example", { "127.0.0.2", "127.0.0.3", "127.0.0.1" } },
	{ "dead.proxy.example", { "127.0.0.2", "127.0.0.3" } },
	{ "private.x.example", { "10.1.2.3" } },
	{ "mixed.x.example", { "8.8.8.8", "10.1.2.3" } },
	{ "loop.x.example", { "127.0.0.1" } },
	{ "bad-last.x.example", { "8.8.8.8", "8.8.4.4", "2600::1", "9.9.9.9", "169.254.169.254" } },
	{ "bad-first.x.example", { "127.0.0.1", "8.8.8.8" } },
	{ "bad-mapped.x.example", { "8.8.8.8", "::ffff:127.0.0.1" } },
	{ "bad-nat64.x.example", { "8.8.8.8", "64:ff9b::7f00:1" } },
	{ "bad-6to4.x.example", { "8.8.8.8", "2002:7f00:1::" } },
	{ "bad-zero.x.example", { "8.8.8.8", "0.0.0.0" } },
	{ "bad-private-and-loop.x.example", { "10.1.2.3", "127.0.0.1" } },
};

/* "slow..." stalls while is_stalled and then is good; "many..." has too many addresses. */
static int
resolve(const char *name, struct kr_found *out, struct kr_error *err)
{
	*out = (struct kr_found){ .n = 0 };
	pthread_mutex_lock(&lock);
	calls++;
	inside++;
	while (is_stalled && strncmp(name, "slow", 4) == 0)
		pthread_cond_wait(&changed, &lock);
	inside--;
	pthread_mutex_unlock(&lock);
	if (strncmp(name, "slow", 4) == 0)
		name = "good.example";
	if (strncmp(name, "many", 4) == 0)
		return kr_fail(err, KR_E_LIMIT, "'%s' has more than %d addresses", name, KR_LOOKUP_ADDRESSES);
	for (size_t i = 0; i < KR_COUNT(names); i++)
		for (size_t j = 0; strcmp(names[i].name, name) == 0 && names[i].addresses[j]; j++)
			KR_BUG_IF(
				!kr_address_parse(names[i].addresses[j], strlen(names[i].addresses[j]), &out->v[out->n++]));
	return out->n
			   ? 0
			   : kr_fail(err, KR_E_NOT_FOUND, "'%s' does not resolve: Nom ou service \xc3\xa9trange\n", name);
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

static void
wait_for_threads(void)
{
	for (int i = 0; i < 1000 && count(&inside); i++)
		usleep(10000);
}

/* ---- a session ---- */

static unsigned
open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static const char *const allowed[] = { "good.example", "*.x.example", "gone.example", "many.example",
	"127.0.0.1", "169.254.169.254", "localhost", "metadata", "8.8.8.8", "10.1.1.1", "port.example:8443",
	"denied.example", "*.slow.example", "exact.private.x.example", "private.x.example:444" };
static const char *const denied[] = { "denied.example" };
static const char *const everything[] = { "*" };

struct session {
	struct kr_broker *broker;
	struct kr_host_list hosts;
	int fd, listener; /* the other end of the control socket; the person's proxy */
	uint32_t id;
	unsigned before;
	unsigned told, suppressed, called, strangers, echoed;
	unsigned client_port; /* of the asks; on loopback */
	enum kr_peer peer;    /* what is at it */
	unsigned looked;
	unsigned answer_status; /* of the calls; 0: refused */
	size_t answer_bytes;
	char last_call[sizeof(struct kr_call)];
	char last_text[64];
	char last_host[KR_HOST_MAX + 1], last_json[4096];
	char https[128], http[128];
	const char *environment[4];
};

static void
on_refused(void *context, const struct kr_refusal *refusal)
{
	struct session *s = context;
	char *json = kr_refusal_json(refusal, "s-1");

	assert_non_null(json);
	s->told++;
	s->suppressed += refusal->suppressed;
	snprintf(s->last_host, sizeof(s->last_host), "%s", refusal->verdict->target.host);
	snprintf(s->last_json, sizeof(s->last_json), "%s", json);
	free(json);
}

static enum kr_peer
whose(void *context, uint16_t client_port)
{
	struct session *s = context;

	assert_int_equal(client_port, s->client_port);
	s->looked++;
	return s->peer;
}

static void
on_strangers(void *context, unsigned n)
{
	((struct session *)context)->strangers += n;
}

static void
on_echoed(void *context, const char *host, const char *variable)
{
	((struct session *)context)->echoed++;
	assert_string_equal(host, "api.example");
	assert_string_equal(variable, "KEY");
}

static void
on_call(void *context, const struct kr_call *call, struct kr_call_answer *answer)
{
	struct session *s = context;

	s->called++;
	memcpy(s->last_call, call, sizeof(s->last_call));
	snprintf(s->last_text, sizeof(s->last_text), "%s", call->text);
	if (!s->answer_status) {
		snprintf(answer->refused, sizeof(answer->refused), "item 'x' is not\x1b its own");
		return;
	}
	answer->status = s->answer_status;
	answer->next = 5;
	for (size_t i = 0; i < s->answer_bytes; i++)
		kr_buf_add(&answer->body, "x", 1);
}

/* A listener on 127.0.0.1 and its port. */
static int
listen_here(unsigned *port, int backlog)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(here);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&here, sizeof(here)), 0);
	assert_int_equal(listen(fd, backlog), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&here, &size), 0);
	*port = ntohs(here.sin_port);
	return fd;
}

static void
attach(struct session *s)
{
	int fds[2];

	kr_close_p(&s->fd);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	s->fd = fds[0];
	assert_int_equal(kr_broker_attach(s->broker, fds[1], NULL), 0);
	assert_true(kr_broker_attached(s->broker));
}

/* proxy: the upstream's host, NULL for none. */
static void
start_with(struct session *s, const char *proxy, const char *const *allow, size_t allow_n, int backlog)
{
	struct kr_broker_want want;
	struct kr_error err = { 0 };
	unsigned port;

	*s = (struct session){ .before = open_descriptors(), .fd = -1, .answer_status = 200, .answer_bytes = 3 };
	s->listener = listen_here(&port, backlog);
	s->hosts.allow = (struct kr_strs){ .v = (const char **)(uintptr_t)allow, .n = allow_n };
	s->hosts.deny = (struct kr_strs){ .v = (const char **)(uintptr_t)denied, .n = KR_COUNT(denied) };
	snprintf(s->https, sizeof(s->https), "https_proxy=http://u:p@%s:%u", proxy ? proxy : "", port);
	snprintf(s->http, sizeof(s->http), "http_proxy=%s:%u", proxy ? proxy : "", port);
	if (proxy) {
		s->environment[0] = s->https;
		s->environment[1] = s->http;
	}
	want = (struct kr_broker_want){ .hosts = &s->hosts,
		.phase = KR_PHASE_RUNTIME,
		.environment = s->environment,
		.on_refused = on_refused,
		.on_call = on_call,
		.whose = whose,
		.on_strangers = on_strangers,
		.on_echoed = on_echoed,
		.context = s,
		.resolve = resolve };
	if (kr_broker_new(&want, &s->broker, &err) < 0)
		fail_msg("%s", err.message);
	attach(s);
	pthread_mutex_lock(&lock);
	calls = 0;
	pthread_mutex_unlock(&lock);
}

static void
start(struct session *s, const char *proxy)
{
	start_with(s, proxy, allowed, KR_COUNT(allowed), 128);
}

static void
stop(struct session *s)
{
	kr_broker_free(s->broker);
	kr_close_p(&s->fd);
	kr_close_p(&s->listener);
	wait_for_threads();
	/* A thread that has its answer still has to write it, and to close its end of the pipe. */
	for (int i = 0; i < 1000 && open_descriptors() != s->before; i++)
		usleep(10000);
	assert_int_equal(open_descriptors(), s->before);
}

static void
send_ask(struct session *s, enum kr_ask_type type, const char *host, unsigned port)
{
	struct kr_ask ask = { .type = type, .id = ++s->id, .port = port, .client_port = s->client_port };
	uint32_t used = 0;

	snprintf(ask.host, sizeof(ask.host), "%s", host);
	while (kr_frame_write(s->fd, &ask, sizeof(ask), &used, -1) == 0)
		kr_broker_step(s->broker);
	assert_int_equal(used, sizeof(ask));
}

static void
turn(struct session *s, int timeout_ms)
{
	struct pollfd p = { .fd = kr_broker_fd(s->broker), .events = POLLIN };

	poll(&p, 1, timeout_ms);
	kr_broker_step(s->broker);
}

/* The next answer; *fd is what came with it. False when the broker hung up. */
static bool
next_answer(struct session *s, struct kr_answer *out, int *fd)
{
	struct kr_frame frame = { .bytes = out, .size = sizeof(*out), .fd = -1 };
	int64_t until = kr_clock_ms() + PATIENCE_MS;
	enum kr_frame_state state;

	while ((state = kr_frame_read(s->fd, &frame, true)) == KR_FRAME_MORE) {
		if (kr_clock_ms() > until)
			fail_msg("no answer");
		turn(s, 100);
	}
	*fd = frame.fd;
	if (state == KR_FRAME_DONE && !kr_answer_check(out, frame.fd >= 0))
		fail_msg("an answer that must not be: type %u, status %u, '%s'", out->type, out->status, out->text);
	return state == KR_FRAME_DONE;
}

/* Asks and waits; a descriptor is closed. */
static struct kr_answer
ask(struct session *s, const char *host, unsigned port)
{
	struct kr_answer answer = { 0 };
	int fd = -1;

	send_ask(s, KR_ASK_CONNECT, host, port);
	if (!next_answer(s, &answer, &fd))
		fail_msg("hung up on '%s'", host);
	assert_int_equal(answer.id, s->id);
	kr_close_p(&fd);
	return answer;
}

/* How many connected to the person's proxy since. */
static unsigned
connections(struct session *s)
{
	unsigned n = 0;
	int fd;

	while ((fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		close(fd);
		n++;
	}
	return n;
}

static void
expect_refused(struct session *s, const char *host, unsigned port, const char *text)
{
	struct kr_answer answer = ask(s, host, port);

	assert_int_equal(answer.type, KR_ANSWER_REFUSED);
	assert_int_equal(answer.status, 403);
	if (!strstr(answer.text, text))
		fail_msg("'%s': '%s' has no '%s'", host, answer.text, text);
}

/* ---- refusals ---- */

static void
a_refusal_says_why_and_the_smallest_grant_POL_06(void **state)
{
	struct session s;
	struct kr_answer answer;

	(void)state;
	start(&s, "127.0.0.1");
	answer = ask(&s, "other.example", 443);
	assert_string_equal(answer.text,
		"'other.example' port 443 is not on the allow list of the runtime phase; to allow it, "
		"add \"other.example:443\" to network.runtime.allow");
	assert_string_equal(s.last_json,
		"{\"session_id\":\"s-1\",\"host\":\"other.example\",\"port\":443,\"phase\":\"runtime\","
		"\"reason\":\"'other.example' port 443 is not on the allow list of the runtime phase; to "
		"allow it, add \\\"other.example:443\\\" to network.runtime.allow\"}");
	expect_refused(&s, "port.example", 443,
		"'port.example:8443' is for port 8443; to allow it, add \"port.example:443\"");
	expect_refused(&s, "2600::2", 443, "no entry can name an IPv6 address");
	assert_int_equal(connections(&s), 0);
	stop(&s);
}

static void
what_no_grant_can_lift_offers_none_POL_03(void **state)
{
	static const char *const hosts[] = { "denied.example", "localhost", "a.localhost", "metadata",
		"metadata.google.internal", "kraft", "127.0.0.1", "169.254.169.254", "0.0.0.0", "224.0.0.1",
		"255.255.255.255", "::1", "::", "fe80::1", "ff02::1", "64:ff9b::7f00:1",
		"2002:7f00:1::", "fd00:ec2::254", "100.100.100.200" };
	struct session s;

	(void)state;
	start(&s, "127.0.0.1");
	for (size_t i = 0; i < KR_COUNT(hosts); i++) {
		struct kr_answer answer = ask(&s, hosts[i], 443);

		assert_int_equal(answer.type, KR_ANSWER_REFUSED);
		if (strstr(answer.text, "to allow it"))
			fail_msg("'%s': %s", hosts[i], answer.text);
	}
	assert_int_equal(s.told, KR_COUNT(hosts));
	assert_int_equal(count(&calls), 0);
	assert_int_equal(connections(&s), 0);
	stop(&s);
}

static void
a_refused_name_is_never_looked_up_NET_05_NET_15(void **state)
{
	struct session s;
	char name[128];

	(void)state;
	start(&s, "127.0.0.1");
	for (int i = 0; i < 50; i++) {
		snprintf(name, sizeof(name), "d%05dquiteasecret.leak.example", i);
		expect_refused(&s, name, 443, "is not on the allow list");
	}
	expect_refused(&s, "denied.example", 443, "deny list");
	expect_refused(&s, "good.example.test", 443, "is not on the allow list");
	assert_int_equal(count(&calls), 0);
	assert_int_equal(ask(&s, "good.example", 443).type, KR_ANSWER_UPSTREAM);
	assert_int_equal(count(&calls), 1);
	assert_int_equal(connections(&s), 1);
	stop(&s);
}

static void
a_name_that_does_not_resolve_is_refused_in_one_printable_line(void **state)
{
	struct session s;
	struct kr_answer answer;

	(void)state;
	start(&s, "127.0.0.1");
	answer = ask(&s, "gone.example", 443);
	assert_int_equal(answer.type, KR_ANSWER_REFUSED);
	assert_string_equal(answer.text, "'gone.example' does not resolve: Nom ou service ??trange?");
	expect_refused(&s, "many.example", 443, "'many.example' has more than 64 addresses");
	assert_int_equal(s.told, 2);
	stop(&s);
}

static void
one_bad_address_refuses_the_name_NET_11_POL_05(void **state)
{
	static const char *const hosts[] = { "bad-last.x.example", "bad-first.x.example", "bad-mapped.x.example",
		"bad-nat64.x.example", "bad-6to4.x.example", "bad-zero.x.example", "bad-private-and-loop.x.example",
		"loop.x.example" };
	struct session s;

	(void)state;
	start(&s, "127.0.0.1");
	for (size_t i = 0; i < KR_COUNT(hosts); i++) {
		struct kr_answer answer = ask(&s, hosts[i], 443);

		assert_int_equal(answer.type, KR_ANSWER_REFUSED);
		assert_non_null(strstr(answer.text, "is refused whatever the lists say"));
		assert_null(strstr(answer.text, "to allow it"));
	}
	/* POL-07: neither did anything reach the person's proxy. */
	assert_int_equal(connections(&s), 0);
	assert_int_equal(ask(&s, "good.example", 443).type, KR_ANSWER_UPSTREAM);
	assert_int_equal(connections(&s), 1);
	stop(&s);
}

static void
a_private_address_needs_the_exact_name_POL_04(void **state)
{
	struct session s;

	(void)state;
	start(&s, "127.0.0.1");
	expect_refused(
		&s, "private.x.example", 443, "to allow it, add \"private.x.example:443\" to network.runtime.allow");
	expect_refused(&s, "mixed.x.example", 443, "'*.x.example' does not");
	assert_int_equal(connections(&s), 0);
	assert_int_equal(ask(&s, "private.x.example", 444).type, KR_ANSWER_UPSTREAM);
	assert_int_equal(ask(&s, "10.1.1.1", 443).type, KR_ANSWER_UPSTREAM);
	expect_refused(&s, "10.1.1.2", 443, "is not on the allow list");
	assert_int_equal(connections(&s), 2);
	stop(&s);
}

/* As kraft-egress does: read, and asked for when it can be read; then as it stands, which a hostile one could
 * do. */
static void
no_spelling_of_a_closed_address_gets_through_NET_10(void **state)
{
	static const char *const spellings[] = { "127.0.0.1", "2130706433", "017700000001", "0x7f000001",
		"0x7f.0.0.1", "0177.0.0.1", "127.1", "127.0.1", "127.00.0.1", "127.0.0.01", "0x7f.1", "0177.1",
		"127.0.0.1.", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:7f00:1]", "[::127.0.0.1]",
		"[::7f00:1]", "[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[2002:7f00:0001::1]",
		"[2001:0:7f00:1::]", "[2001:0:1:2::80ff:fffe]", "[::1]", "[::0001]", "[0:0:0:0:0:0:0:1]", "[::1%lo]",
		"[::1%25lo]", "[::ffff:0:127.0.0.1]", "[::ffff:0:7f00:1]", "0", "0.0.0.0", "[::]", "169.254.169.254",
		"2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "169.254.43518", "[::ffff:169.254.169.254]",
		"[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::]", "[fe80::1%eth0]", "[fd00:ec2::254]", "localhost",
		"LOCALHOST", "localhost." };
	static const char *const open_to[] = { "*", "**", "127.0.0.1", "169.254.169.254", "0.0.0.0",
		"localhost" };
	struct session s;
	unsigned judged = 0;

	(void)state;
	assert_true(KR_COUNT(spellings) >= 40);
	start_with(&s, "127.0.0.1", open_to, KR_COUNT(open_to), 128);
	for (size_t i = 0; i < KR_COUNT(spellings); i++) {
		struct kr_answer answer = { 0 };
		struct kr_target target;
		int fd = -1;

		if (kr_target_parse(spellings[i], strlen(spellings[i]), &target, NULL)) {
			expect_refused(&s, target.host, 443, "is refused whatever the lists say");
			judged++;
		}
		send_ask(&s, KR_ASK_CONNECT, spellings[i], 443);
		if (next_answer(&s, &answer, &fd))
			assert_int_equal(answer.type, KR_ANSWER_REFUSED);
		else
			attach(&s);
		assert_int_equal(fd, -1);
	}
	assert_true(judged >= 20);
	assert_int_equal(connections(&s), 0);
	assert_int_equal(count(&calls), 0);
	assert_int_equal(ask(&s, "8.8.8.8", 443).type, KR_ANSWER_UPSTREAM);
	assert_int_equal(connections(&s), 1);
	stop(&s);
}

static void
a_host_is_told_once_and_the_last_says_so_POL_06(void **state)
{
	struct session s;
	char name[64];

	(void)state;
	start(&s, NULL);
	for (int round = 0; round < 2; round++)
		for (unsigned i = 0; i < KR_REFUSED_HOSTS_MAX + 50; i++) {
			snprintf(name, sizeof(name), "n%u.example", i);
			expect_refused(&s, name, 443 + i % 3, "is not on the allow list");
			if (round == 0 && i == KR_REFUSED_HOSTS_MAX - 1) {
				assert_int_equal(s.told, KR_REFUSED_HOSTS_MAX);
				assert_int_equal(s.suppressed, 0);
				assert_null(strstr(s.last_json, "suppressed"));
			}
		}
	assert_int_equal(s.told, KR_REFUSED_HOSTS_MAX + 1);
	assert_int_equal(s.suppressed, 1);
	assert_string_equal(s.last_host, "n100.example");
	assert_non_null(strstr(s.last_json, "\"suppressed\":true"));
	stop(&s);
}

/* ---- dialling ---- */

static void
a_connection_is_handed_over_ready_for_use(void **state)
{
	struct session s;
	struct kr_answer answer;
	int fd, other, value = 0;
	socklen_t size = sizeof(value);
	char byte = 0;

	(void)state;
	start(&s, "127.0.0.1");
	send_ask(&s, KR_ASK_CONNECT, "good.example", 443);
	assert_true(next_answer(&s, &answer, &fd));
	assert_int_equal(answer.type, KR_ANSWER_UPSTREAM);
	assert_string_equal(answer.text, "Basic dTpw");
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &size), 0);
	assert_true(value);
	value = 0;
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, &size), 0);
	assert_true(value);
	other = accept4(s.listener, NULL, NULL, SOCK_CLOEXEC);
	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(read(other, &byte, 1), 1);
	assert_int_equal(byte, 'x');
	/* No copy of it stays with the broker: the end is seen. */
	close(fd);
	assert_int_equal(read(other, &byte, 1), 0);
	close(other);
	send_ask(&s, KR_ASK_HTTP, "good.example", 80);
	assert_true(next_answer(&s, &answer, &fd));
	assert_int_equal(answer.type, KR_ANSWER_UPSTREAM);
	assert_string_equal(answer.text, "");
	close(fd);
	stop(&s);
}

static void
addresses_are_dialled_in_order_until_one_answers(void **state)
{
	struct session s;

	(void)state;
	start(&s, "two.proxy.example");
	assert_int_equal(ask(&s, "good.example", 443).type, KR_ANSWER_UPSTREAM);
	assert_int_equal(connections(&s), 1);
	assert_int_equal(count(&calls), 2);
	/* Both names are kept: no look-up, the same way. */
	assert_int_equal(ask(&s, "good.example", 443).type, KR_ANSWER_UPSTREAM);
	assert_int_equal(count(&calls), 2);
	assert_int_equal(connections(&s), 1);
	stop(&s);
}

static void
no_answer_from_any_address_is_502(void **state)
{
	struct session s;
	struct kr_answer answer;

	(void)state;
	start(&s, "dead.proxy.example");
	answer = ask(&s, "good.example", 443);
	assert_int_equal(answer.type, KR_ANSWER_FAILED);
	assert_int_equal(answer.status, 502);
	assert_string_equal(answer.text, "cannot connect to the upstream proxy: Connection refused");
	assert_int_equal(s.told, 0);
	stop(&s);
	start(&s, "gone.proxy.example");
	answer = ask(&s, "good.example", 443);
	assert_int_equal(answer.type, KR_ANSWER_FAILED);
	assert_int_equal(answer.status, 502);
	assert_string_equal(answer.text, "the name of the upstream proxy does not resolve");
	stop(&s);
}

/* A listener whose backlog is full drops what comes next: that dialling stays under way. */
static int
fill_backlog(struct session *s, int *fds, int n)
{
	struct sockaddr_in here;
	socklen_t size = sizeof(here);
	int used = 0;

	assert_int_equal(getsockname(s->listener, (struct sockaddr *)&here, &size), 0);
	for (; used < n; used++) {
		struct pollfd p;

		fds[used] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		(void)connect(fds[used], (struct sockaddr *)&here, sizeof(here));
		p = (struct pollfd){ .fd = fds[used], .events = POLLOUT };
		if (poll(&p, 1, 100) == 0)
			return used + 1;
	}
	fail_msg("the backlog is never full");
	return used;
}

static void
a_kraft_egress_gone_mid_dial_leaves_nothing_open(void **state)
{
	struct session s;
	struct kr_answer answer;
	int fds[16], n, fd = -1;
	unsigned quiet, dialling;

	(void)state;
	start_with(&s, "127.0.0.1", allowed, KR_COUNT(allowed), 0);
	n = fill_backlog(&s, fds, 16);
	quiet = open_descriptors();
	for (int i = 0; i < 100; i++)
		send_ask(&s, KR_ASK_CONNECT, "8.8.8.8", 443);
	for (int i = 0; i < 10; i++)
		turn(&s, 20);
	dialling = open_descriptors();
	assert_int_equal(dialling, quiet + 100);
	/* Others are not held up. */
	send_ask(&s, KR_ASK_CONNECT, "other.example", 443);
	assert_true(next_answer(&s, &answer, &fd));
	assert_int_equal(answer.type, KR_ANSWER_REFUSED);
	kr_close_p(&s.fd);
	for (int i = 0; i < 10 && kr_broker_attached(s.broker); i++)
		turn(&s, 100);
	assert_false(kr_broker_attached(s.broker));
	assert_int_equal(open_descriptors(), quiet - 2);
	/* And the next one is served. */
	attach(&s);
	expect_refused(&s, "other.example", 443, "is not on the allow list");
	/* With diallings under way the whole broker may go too. */
	send_ask(&s, KR_ASK_CONNECT, "8.8.8.8", 443);
	turn(&s, 100);
	while (n)
		close(fds[--n]);
	stop(&s);
}

static void
a_slow_dialling_ends_with_its_connection(void **state)
{
	struct session s;
	struct kr_answer answer;
	int fds[16], n, fd = -1;

	(void)state;
	start_with(&s, "127.0.0.1", allowed, KR_COUNT(allowed), 0);
	n = fill_backlog(&s, fds, 16);
	send_ask(&s, KR_ASK_CONNECT, "8.8.8.8", 443);
	turn(&s, 50);
	assert_int_equal(listen(s.listener, 128), 0); /* makes room; the kernel tries again within some seconds */
	assert_true(next_answer(&s, &answer, &fd));
	assert_int_equal(answer.type, KR_ANSWER_UPSTREAM);
	close(fd);
	while (n)
		close(fds[--n]);
	stop(&s);
}

/* ---- many, and hostile ones ---- */

static void
a_thousand_stalled_look_ups_hold_nobody_else_up_NET_16(void **state)
{
	struct session s;
	struct kr_answer answer;
	char name[64];
	unsigned refused = 0, connected = 0;
	int fd;

	(void)state;
	start(&s, "127.0.0.1");
	assert_int_equal(ask(&s, "good.example", 443).type, KR_ANSWER_UPSTREAM);
	set_stalled(true);
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "slow%d.slow.example", i);
		send_ask(&s, KR_ASK_CONNECT, name, 443);
	}
	for (int i = 0; i < 100; i++)
		turn(&s, 1);
	assert_true(count(&inside) <= KR_LOOKUPS_MAX);
	for (int i = 0; i < 20; i++) {
		refused += ask(&s, "other.example", 443).type == KR_ANSWER_REFUSED;
		connected += ask(&s, "good.example", 443).type == KR_ANSWER_UPSTREAM;
	}
	assert_int_equal(refused, 20);
	assert_int_equal(connected, 20);
	set_stalled(false);
	for (int i = 0; i < 1000; i++) {
		assert_true(next_answer(&s, &answer, &fd));
		assert_int_equal(answer.type, KR_ANSWER_UPSTREAM);
		close(fd);
		connections(&s);
	}
	assert_int_equal(count(&calls), 1001);
	stop(&s);
}

static void
more_asks_than_may_be_open_end_it(void **state)
{
	struct session s;
	struct kr_answer answer;
	int fd;

	(void)state;
	start(&s, "127.0.0.1");
	set_stalled(true);
	for (int i = 0; i < KR_ASKS_MAX; i++)
		send_ask(&s, KR_ASK_CONNECT, "slow.slow.example", 443);
	for (int i = 0; i < 100; i++)
		turn(&s, 1);
	assert_true(kr_broker_attached(s.broker));
	send_ask(&s, KR_ASK_CONNECT, "slow.slow.example", 443);
	assert_false(next_answer(&s, &answer, &fd));
	assert_false(kr_broker_attached(s.broker));
	set_stalled(false);
	stop(&s);
}

static void
answers_wait_for_who_does_not_read(void **state)
{
	struct session s;
	struct kr_answer answer;
	int fd;

	(void)state;
	start(&s, "127.0.0.1");
	for (int i = 0; i < KR_ASKS_MAX; i++)
		send_ask(&s, KR_ASK_CONNECT, i % 8 ? "other.example" : "8.8.8.8", 443);
	for (int i = 0; i < 100; i++)
		turn(&s, 1);
	assert_true(kr_broker_attached(s.broker));
	for (uint32_t i = 0; i < KR_ASKS_MAX; i++) {
		assert_true(next_answer(&s, &answer, &fd));
		assert_int_equal(fd >= 0, (answer.id - 1) % 8 == 0);
		kr_close_p(&fd);
		connections(&s);
	}
	assert_int_equal(ask(&s, "other.example", 443).type, KR_ANSWER_REFUSED);
	stop(&s);
}

static void
a_bad_frame_ends_that_kraft_egress(void **state)
{
	static const struct kr_ask frames[] = {
		{ .type = 0, .port = 443, .host = "good.example" },
		{ .type = KR_ASK_TYPE_END, .port = 443, .host = "good.example" },
		{ .type = KR_ASK_CONNECT, .port = 0, .host = "good.example" },
		{ .type = KR_ASK_CONNECT, .port = 65536, .host = "good.example" },
		{ .type = KR_ASK_CONNECT, .port = 443, .client_port = 65536, .host = "good.example" },
		{ .type = KR_ASK_CONNECT, .port = 443, .host = "Good.example" },
		{ .type = KR_ASK_CONNECT, .port = 443, .host = "good.example\0x" },
		{ .type = KR_ASK_CONNECT, .port = 443, .host = "" },
	};
	struct session s;
	struct kr_answer answer;
	int fd;

	(void)state;
	start(&s, "127.0.0.1");
	for (size_t i = 0; i < KR_COUNT(frames) + 1; i++) {
		struct kr_ask frame = frames[i < KR_COUNT(frames) ? i : 0];
		uint32_t used = 0;

		if (i == KR_COUNT(frames)) { /* a good one with a descriptor */
			frame.type = KR_ASK_CONNECT;
			assert_int_equal(kr_frame_write(s.fd, &frame, sizeof(frame), &used, s.listener), 1);
		} else {
			assert_int_equal(kr_frame_write(s.fd, &frame, sizeof(frame), &used, -1), 1);
		}
		assert_false(next_answer(&s, &answer, &fd));
		assert_false(kr_broker_attached(s.broker));
		attach(&s);
		assert_int_equal(ask(&s, "other.example", 443).type, KR_ANSWER_REFUSED);
	}
	assert_int_equal(count(&calls), 0);
	assert_int_equal(connections(&s), 0);
	stop(&s);
}

static void
MAC_06_an_ask_of_another_process_is_refused_before_it_is_judged(void **state)
{
	struct session s;
	struct kr_answer answer;
	int fd;

	(void)state;
	start(&s, "127.0.0.1");
	s.client_port = 4321;
	s.peer = KR_PEER_OTHER;
	for (int i = 0; i < 2; i++) {
		send_ask(&s, i ? KR_ASK_HTTP : KR_ASK_CONNECT, i ? "other.example" : "good.example", 443);
		assert_true(next_answer(&s, &answer, &fd));
		assert_int_equal(answer.type, KR_ANSWER_REFUSED);
		assert_string_equal(answer.text, "this proxy answers the processes of its session only");
	}
	assert_int_equal(s.strangers, 2);
	assert_int_equal(s.told, 0);
	assert_int_equal(count(&calls), 0);
	/* The session's own, and one of which nothing is known, are judged; where there is no loopback nobody looks. */
	for (int i = 0; i < 3; i++) {
		s.peer = i == 0 ? KR_PEER_SESSION : i == 1 ? KR_PEER_UNKNOWN : KR_PEER_OTHER;
		s.client_port = i == 2 ? 0 : 4321;
		send_ask(&s, KR_ASK_CONNECT, "other.example", 443);
		assert_true(next_answer(&s, &answer, &fd));
		assert_int_equal(answer.type, KR_ANSWER_REFUSED);
		assert_non_null(strstr(answer.text, "other.example"));
	}
	assert_int_equal(s.looked, 4);
	assert_int_equal(s.strangers, 2);
	assert_int_equal(s.told, 1);
	stop(&s);
}

static void
MAC_06_strangers_are_counted_and_not_answered(void **state)
{
	struct session s;
	struct kr_ask frame = { .type = KR_ASK_STRANGERS, .id = 7 };
	uint32_t used = 0;
	char byte;

	(void)state;
	start(&s, NULL);
	for (int i = 0; i < 2; i++, used = 0)
		assert_int_equal(kr_frame_write(s.fd, &frame, sizeof(frame), &used, -1), 1);
	for (int i = 0; i < 3; i++)
		turn(&s, 20);
	assert_int_equal(s.strangers, 14);
	assert_int_equal(recv(s.fd, &byte, 1, MSG_DONTWAIT), -1);
	assert_true(kr_broker_attached(s.broker));
	frame.port = 1;
	assert_int_equal(kr_frame_write(s.fd, &frame, sizeof(frame), &used, -1), 1);
	for (int i = 0; i < 3; i++)
		turn(&s, 20);
	assert_false(kr_broker_attached(s.broker));
	assert_int_equal(s.strangers, 14);
	stop(&s);
}

static void
tell(struct session *s, uint32_t rule, uint32_t what, const char *name)
{
	struct kr_ask frame = { .type = KR_ASK_TOLD, .id = rule, .bytes = what };
	uint32_t used = 0;

	memcpy(frame.host, name, strlen(name));
	assert_int_equal(kr_frame_write(s->fd, &frame, sizeof(frame), &used, -1), 1);
	for (int i = 0; i < 3; i++)
		turn(s, 20);
}

static void
SEN_02_what_is_told_of_managed_hosts_is_said_once(void **state)
{
	static const struct kr_managed_rule rules[] = { { .host = "api.example", .port = 443, .header = "x-key", .variable = "KEY", .source = "REAL_KEY" },
		{ .host = "two.example", .port = 8443, .header = "x-key", .variable = "TWO", .source = "REAL_TWO" } };
	struct session s;

	(void)state;
	start(&s, NULL);
	kr_broker_manage(s.broker, rules, 2);
	tell(&s, 0, KR_TOLD_OTHER_NAME, "evil.example");
	assert_int_equal(s.told, 1);
	assert_string_equal(s.last_host, "api.example");
	assert_non_null(strstr(s.last_json, "\"port\":443"));
	assert_non_null(strstr(s.last_json, "'evil.example'"));
	tell(&s, 0, KR_TOLD_OTHER_NAME, "evil.example");
	assert_int_equal(s.told, 1);
	tell(&s, 0, KR_TOLD_OTHER_NAME, "other.example");
	tell(&s, 1, KR_TOLD_HEAD + KR_SECRET_NO_VALUE, "");
	assert_int_equal(s.told, 3);
	assert_non_null(strstr(s.last_json, "'REAL_TWO'"));
	assert_non_null(strstr(s.last_json, "\"port\":8443"));
	tell(&s, 0, KR_TOLD_ECHO, "");
	tell(&s, 0, KR_TOLD_ECHO, "");
	assert_int_equal(s.echoed, 1);
	assert_int_equal(s.told, 3);
	assert_true(kr_broker_attached(s.broker));
	tell(&s, 2, KR_TOLD_ECHO, ""); /* no such rule */
	assert_false(kr_broker_attached(s.broker));
	stop(&s);
}

static void
a_newer_kraft_egress_takes_the_place_of_an_older(void **state)
{
	struct session s;
	struct kr_answer answer;
	int old, fd;
	char byte;

	(void)state;
	start(&s, "127.0.0.1");
	set_stalled(true);
	send_ask(&s, KR_ASK_CONNECT, "slow.slow.example", 443);
	turn(&s, 100);
	old = s.fd;
	s.fd = -1;
	attach(&s);
	assert_int_equal(read(old, &byte, 1), 0);
	close(old);
	set_stalled(false);
	/* What the older one asked for is not answered to the newer. */
	send_ask(&s, KR_ASK_CONNECT, "other.example", 443);
	assert_true(next_answer(&s, &answer, &fd));
	assert_int_equal(answer.id, s.id);
	for (int i = 0; i < 5; i++)
		turn(&s, 20);
	assert_int_equal(recv(s.fd, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(connections(&s), 0);
	stop(&s);
}

static void
a_broker_may_go_while_names_are_looked_up(void **state)
{
	struct session s;

	(void)state;
	start(&s, NULL);
	set_stalled(true);
	send_ask(&s, KR_ASK_CONNECT, "slow.slow.example", 443);
	turn(&s, 100);
	kr_broker_free(s.broker);
	s.broker = NULL;
	set_stalled(false);
	stop(&s);
}

static void
a_proxy_variable_that_cannot_be_read_is_an_error(void **state)
{
	static const char *const environment[] = { "https_proxy=socks5://u:geheim@proxy.example", NULL };
	struct kr_host_list hosts = { .allow_marked = 0 };
	struct kr_broker_want want = { .hosts = &hosts, .environment = environment };
	struct kr_broker *broker = NULL;
	struct kr_error err = { 0 };
	unsigned before = open_descriptors();

	(void)state;
	assert_int_equal(kr_broker_new(&want, &broker, &err), -1);
	assert_null(broker);
	assert_int_equal(err.code, KR_E_USAGE);
	assert_null(strstr(err.message, "geheim"));
	assert_int_equal(open_descriptors(), before);
}

static void
two_thousand_asks_for_a_kept_name_are_one_look_up(void **state)
{
	struct session s;
	int64_t from;
	enum { ASKS = 2000 };

	(void)state;
	start_with(&s, "127.0.0.1", everything, 1, 128);
	assert_int_equal(ask(&s, "good.example", 443).type, KR_ANSWER_UPSTREAM);
	from = kr_clock_ms();
	for (int i = 0; i < ASKS; i++) {
		assert_int_equal(ask(&s, "good.example", 443).type, KR_ANSWER_UPSTREAM);
		connections(&s);
	}
	print_message("# %d asks a second\n", (int)(ASKS * 1000 / (kr_clock_ms() - from + 1)));
	assert_int_equal(count(&calls), 1);
	stop(&s);
}

/* ---- calls ---- */

struct frame {
	struct kr_ask ask;
	_Alignas(struct kr_call) char bytes[sizeof(struct kr_call) + 64];
};
#define CALL_OF(frame) ((struct kr_call *)(void *)(frame)->bytes)

static struct frame
call_frame(enum kr_verb verb, const char *route, const char *text)
{
	struct frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.ask.type = KR_ASK_CALL;
	CALL_OF(&frame)->verb = verb;
	CALL_OF(&frame)->text_n = (uint32_t)strlen(text);
	frame.ask.bytes = (uint32_t)(sizeof(struct kr_call) + strlen(text));
	memcpy(CALL_OF(&frame)->route, route, strlen(route));
	memcpy(CALL_OF(&frame)->text, text, strlen(text));
	return frame;
}

static void
send_all(struct session *s, const void *bytes, size_t n)
{
	uint32_t used = 0;

	while (kr_frame_write(s->fd, bytes, (uint32_t)n, &used, -1) == 0)
		kr_broker_step(s->broker);
}

static void
send_call(struct session *s, struct frame *frame)
{
	frame->ask.id = ++s->id;
	send_all(s, &frame->ask, sizeof(frame->ask));
	send_all(s, frame->bytes, frame->ask.bytes);
}

/* The answer to the call; a body goes to body, which has room for all. */
static struct kr_answer
call(struct session *s, struct frame *frame, char *body)
{
	struct kr_answer answer = { 0 };
	int fd = -1;

	send_call(s, frame);
	if (!next_answer(s, &answer, &fd))
		fail_msg("hung up on '%s'", CALL_OF(frame)->route);
	assert_int_equal(fd, -1);
	assert_int_equal(answer.id, s->id);
	for (uint32_t used = 0; used < answer.bytes;) {
		ssize_t got = recv(s->fd, body + used, answer.bytes - used, MSG_DONTWAIT);

		if (got > 0)
			used += (uint32_t)got;
		else
			turn(s, 100);
	}
	body[answer.bytes] = '\0';
	return answer;
}

static void
a_call_is_handed_on_and_answered_CHN_05(void **state)
{
	static char body[KR_CALL_ANSWER_BYTES + 1];
	struct frame frame = call_frame(KR_VERB_RETRY, "POST /w/retry", "once more");
	struct kr_answer answer;
	struct session s;

	(void)state;
	start(&s, NULL);
	answer = call(&s, &frame, body);
	assert_int_equal(answer.type, KR_ANSWER_CALL);
	assert_int_equal(answer.status, 200);
	assert_int_equal(answer.next, 5);
	assert_string_equal(body, "xxx");
	assert_memory_equal(s.last_call, frame.bytes, sizeof(s.last_call));
	assert_string_equal(s.last_text, "once more");
	s.answer_bytes = 0;
	assert_int_equal(call(&s, &frame, body).bytes, 0);
	s.answer_bytes = KR_CALL_ANSWER_BYTES;
	assert_int_equal(call(&s, &frame, body).bytes, KR_CALL_ANSWER_BYTES);
	s.answer_bytes++;
	assert_int_equal(call(&s, &frame, body).status, 500);
	assert_int_equal(s.told, 0);
	stop(&s);
}

static void
a_refused_call_is_told_once_for_each_route_CHN_07(void **state)
{
	char body[256];
	struct frame reply = call_frame(KR_VERB_SHOW, "POST /w/show", ""),
				 none = call_frame(KR_VERB_NONE, "GET /x", "");
	struct kr_answer answer;
	struct session s;

	(void)state;
	start(&s, NULL);
	s.answer_status = 0;
	answer = call(&s, &reply, body);
	assert_int_equal(answer.type, KR_ANSWER_REFUSED);
	assert_int_equal(answer.status, 403);
	assert_string_equal(answer.text, "'POST /w/show' was refused: item 'x' is not? its own");
	assert_string_equal(s.last_json,
		"{\"session_id\":\"s-1\",\"host\":\"kraft\",\"port\":80,\"phase\":\"runtime\",\"reason\":"
		"\"'POST /w/show' was refused: item 'x' is not? its own\",\"route\":\"POST /w/show\"}");
	call(&s, &reply, body);
	assert_int_equal(s.told, 1);
	assert_int_equal(s.called, 2);
	assert_int_equal(call(&s, &none, body).type, KR_ANSWER_REFUSED);
	assert_int_equal(s.told, 2);
	assert_int_equal(s.called, 2); /* what is no call is nobody's to judge */
	/* as a host it is never reached, whatever the lists say (CHAN-08) */
	expect_refused(&s, "kraft", 80, "kraft's own name");
	assert_int_equal(s.told, 3);
	stop(&s);
}

static void
a_session_without_calls_refuses_them(void **state)
{
	char body[256];
	struct frame frame = call_frame(KR_VERB_SHOW, "POST /w/show", "");
	struct kr_answer answer;
	struct session s;

	(void)state;
	start(&s, NULL);
	kr_broker_free(s.broker);
	assert_int_equal(kr_broker_new(&(struct kr_broker_want){ .hosts = &s.hosts,
									   .phase = KR_PHASE_RUNTIME,
									   .environment = s.environment,
									   .resolve = resolve },
						 &s.broker, NULL),
		0);
	attach(&s);
	answer = call(&s, &frame, body);
	assert_string_equal(answer.text, "'POST /w/show' was refused: this session has no calls to kraft");
	assert_int_equal(s.called, 0);
	stop(&s);
}

static void
routes_fill_the_store_no_more_than_hosts_do_CHAN_05(void **state)
{
	char body[256], route[64];
	struct session s;

	(void)state;
	start(&s, NULL);
	for (unsigned i = 0; i < KR_REFUSED_HOSTS_MAX + 20; i++) {
		struct frame frame;

		snprintf(route, sizeof(route), "GET /%u", i);
		frame = call_frame(KR_VERB_NONE, route, "");
		for (;;) {
			struct kr_answer answer = call(&s, &frame, body);

			if (answer.type == KR_ANSWER_REFUSED)
				break;
			assert_int_equal(answer.status, 429);
			usleep(KR_CALL_EVERY_MS * 1000);
		}
	}
	assert_int_equal(s.told, KR_REFUSED_HOSTS_MAX + 1);
	assert_int_equal(s.suppressed, 1);
	assert_non_null(strstr(s.last_json, "\"suppressed\":true"));
	stop(&s);
}

static void
a_flood_of_calls_is_slowed_down_CHAN_05(void **state)
{
	enum { CALLS = 1000 };
	char body[256];
	struct frame frame = call_frame(KR_VERB_SHOW, "POST /w/show", "");
	unsigned good = 0;
	int64_t start_ms;
	struct session s;

	(void)state;
	start(&s, NULL);
	start_ms = kr_clock_ms();
	for (int i = 0; i < CALLS; i++) {
		struct kr_answer answer = call(&s, &frame, body);

		assert_true(answer.status == 200 || answer.status == 429);
		good += answer.status == 200;
	}
	assert_true(good >= KR_CALLS_BURST);
	assert_true(good <= KR_CALLS_BURST + 2 + (unsigned)(kr_clock_ms() - start_ms) / KR_CALL_EVERY_MS);
	assert_int_equal(s.called, good);
	assert_string_equal(body, "{\"detail\":\"too many calls: wait a second\"}\n");
	/* who asks for a host does not wait for it */
	expect_refused(&s, "other.example", 1, "not on the allow list");
	stop(&s);
}

static void
more_calls_than_may_be_open_end_it(void **state)
{
	static char body[KR_CALL_ANSWER_BYTES + 1];
	struct frame frame = call_frame(KR_VERB_SHOW, "POST /w/show", "");
	struct session s;

	(void)state;
	start(&s, NULL);
	s.answer_bytes = KR_CALL_ANSWER_BYTES; /* more than the socket takes, so they stay */
	for (unsigned i = 0; i < KR_CALLS_MAX; i++)
		send_call(&s, &frame);
	for (int i = 0; i < 20; i++)
		turn(&s, 5);
	assert_true(kr_broker_attached(s.broker));
	assert_int_equal(s.called, KR_CALLS_MAX);
	send_call(&s, &frame);
	for (int i = 0; i < 20 && kr_broker_attached(s.broker); i++)
		turn(&s, 5);
	assert_false(kr_broker_attached(s.broker));
	assert_int_equal(s.called, KR_CALLS_MAX);
	attach(&s); /* the next one begins with none open */
	assert_int_equal(call(&s, &frame, body).status, 200);
	stop(&s);
}

/* Every way to write a call that a kraft-egress must not write ends it, and nobody is called. */
static void
a_bad_call_ends_that_kraft_egress(void **state)
{
	struct frame bad[12];
	struct session s;
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < KR_COUNT(bad); i++)
		bad[i] = call_frame(KR_VERB_RETRY, "POST /w/retry", "text");
	bad[n++].ask.port = 80;
	bad[n++].ask.host[0] = 'k';
	bad[n++].ask.client_port = 65536;
	bad[n++].ask.bytes = 0;
	bad[n++].ask.bytes = sizeof(struct kr_call) - 1;
	bad[n++].ask.bytes = KR_CALL_BYTES_MAX + 1;
	bad[n++].ask.bytes = UINT32_MAX;
	CALL_OF(&bad[n++])->verb = KR_VERB_END;
	CALL_OF(&bad[n++])->route[0] = '\0';
	CALL_OF(&bad[n++])->id[70] = 'x';
	CALL_OF(&bad[n++])->text_n = 3;
	CALL_OF(&bad[n++])->text[0] = '\xff';
	assert_int_equal(n, KR_COUNT(bad));
	start(&s, NULL);
	for (size_t i = 0; i < n; i++) {
		send_all(&s, &bad[i].ask, sizeof(bad[i].ask));
		send_all(&s, bad[i].bytes, sizeof(struct kr_call) + 4);
		for (int j = 0; j < 20 && kr_broker_attached(s.broker); j++)
			turn(&s, 5);
		if (kr_broker_attached(s.broker))
			fail_msg("frame %zu is taken", i);
		attach(&s);
	}
	assert_int_equal(s.called, 0);
	/* half a call, and the end of it */
	send_all(&s, &bad[8].ask, sizeof(bad[8].ask));
	send_all(&s, bad[8].bytes, 100);
	turn(&s, 5);
	kr_close_p(&s.fd);
	turn(&s, 100);
	assert_false(kr_broker_attached(s.broker));
	stop(&s);
}

/* CHAN-13: what is at the socket's place before goes, and nothing behind it is touched. */
static void
CHAN_13_a_link_at_the_sockets_place_is_replaced(void **state)
{
	char dir[] = "/tmp/kraft-egress-place-XXXXXX", place[64], canary[64];
	static const char *const none[] = { NULL };
	const struct kr_egress_want want = {
		.program = "/nowhere", .channel_dir = dir, .broker = { .environment = none }
	};
	struct stat at;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(place, sizeof(place), "%s/s.sock", dir);
	(void)snprintf(canary, sizeof(canary), "%s/canary", dir);
	for (int kind = 0; kind < 4; kind++) {
		struct kr_egress *egress = NULL;
		int fd = open(canary, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

		assert_true(fd >= 0 && write(fd, "x", 1) == 1);
		(void)close(fd);
		if (kind == 0)
			assert_int_equal(symlink(canary, place), 0);
		else if (kind == 1)
			assert_int_equal(link(canary, place), 0);
		else if (kind == 2)
			assert_int_equal(mkfifo(place, 0666), 0);
		else
			assert_int_equal(symlink("/nowhere/else", place), 0);
		assert_int_equal(kr_egress_open(&want, &egress, NULL), 0);
		assert_int_equal(lstat(place, &at), 0);
		assert_true(S_ISSOCK(at.st_mode));
		assert_int_equal(at.st_mode & 07777, 0600);
		assert_int_equal(lstat(canary, &at), 0);
		assert_true(S_ISREG(at.st_mode) && at.st_size == 1 && (at.st_mode & 07777) == 0644);
		kr_egress_end(egress);
		assert_int_equal(lstat(place, &at), -1);
		assert_int_equal(unlink(canary), 0);
	}
	/* what cannot go is not gone around: a directory */
	assert_int_equal(mkdir(place, 0700), 0);
	assert_int_equal(kr_egress_open(&want, &(struct kr_egress *){ NULL }, NULL), -1);
	assert_int_equal(rmdir(place), 0);
	assert_int_equal(rmdir(dir), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refusal_says_why_and_the_smallest_grant_POL_06),
		cmocka_unit_test(what_no_grant_can_lift_offers_none_POL_03),
		cmocka_unit_test(a_refused_name_is_never_looked_up_NET_05_NET_15),
		cmocka_unit_test(a_name_that_does_not_resolve_is_refused_in_one_printable_line),
		cmocka_unit_test(one_bad_address_refuses_the_name_NET_11_POL_05),
		cmocka_unit_test(a_private_address_needs_the_exact_name_POL_04),
		cmocka_unit_test(no_spelling_of_a_closed_address_gets_through_NET_10),
		cmocka_unit_test(a_host_is_told_once_and_the_last_says_so_POL_06),
		cmocka_unit_test(a_connection_is_handed_over_ready_for_use),
		cmocka_unit_test(addresses_are_dialled_in_order_until_one_answers),
		cmocka_unit_test(no_answer_from_any_address_is_502),
		cmocka_unit_test(a_kraft_egress_gone_mid_dial_leaves_nothing_open),
		cmocka_unit_test(a_slow_dialling_ends_with_its_connection),
		cmocka_unit_test(a_thousand_stalled_look_ups_hold_nobody_else_up_NET_16),
		cmocka_unit_test(more_asks_than_may_be_open_end_it),
		cmocka_unit_test(answers_wait_for_who_does_not_read),
		cmocka_unit_test(a_bad_frame_ends_that_kraft_egress),
		cmocka_unit_test(MAC_06_an_ask_of_another_process_is_refused_before_it_is_judged),
		cmocka_unit_test(MAC_06_strangers_are_counted_and_not_answered),
		cmocka_unit_test(SEN_02_what_is_told_of_managed_hosts_is_said_once),
		cmocka_unit_test(a_newer_kraft_egress_takes_the_place_of_an_older),
		cmocka_unit_test(a_broker_may_go_while_names_are_looked_up),
		cmocka_unit_test(a_proxy_variable_that_cannot_be_read_is_an_error),
		cmocka_unit_test(two_thousand_asks_for_a_kept_name_are_one_look_up),
		cmocka_unit_test(CHAN_13_a_link_at_the_sockets_place_is_replaced),
		cmocka_unit_test(a_call_is_handed_on_and_answered_CHN_05),
		cmocka_unit_test(a_refused_call_is_told_once_for_each_route_CHN_07),
		cmocka_unit_test(a_session_without_calls_refuses_them),
		cmocka_unit_test(routes_fill_the_store_no_more_than_hosts_do_CHAN_05),
		cmocka_unit_test(a_flood_of_calls_is_slowed_down_CHAN_05),
		cmocka_unit_test(more_calls_than_may_be_open_end_it),
		cmocka_unit_test(a_bad_call_ends_that_kraft_egress),
	};

	return cmocka_run_group_tests_name("broker", tests, NULL, NULL);
}
