/*
 * What goes on inside of ended TLS: the client's and the hosts' bytes in any pieces, ends at any time, each request judged and each
 * answer watched. TLS itself is OpenSSL's; here both sides speak without it, and this file is what terminate.c is otherwise.
 *
 * What a host gets is requests that llhttp reads without complaint, each with the secret in its header once and with no sentinel in
 * its head; what the client gets never holds the secret.
 */
#include <llhttp.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "egress/loop.h"
#include "egress/terminate.h"
#include "egress/tls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROUNDS = 4, GOT_MAX = 1 << 20 };
#define SENTINEL "sentinel-0123456789abcdef"
#define REAL "the+real/secret"

static const struct kr_managed_rule rule = { "api.example", 443, "x-api-key", "%s", SENTINEL, "A", "RA", REAL }, *const rules[] = { &rule };
static const struct kr_target target = { .host = "api.example", .port = 443 };
static const struct kr_secret_host secrets = { &target, rules, 1, &rule, 1 };
static struct kr_egress egress;
static struct kr_echo *echo;

/* ---- terminate.h and tls.h without TLS ---- */

struct kr_tls_host {
	int unused;
};
static const struct kr_tls_host bound;

bool
kr_terminator_start(int argc, char **argv, struct kr_terminator **out, int *status)
{
	return argc && argv && out && status;
}
const struct kr_tls_host *
kr_tls_host_of(const struct kr_egress *of, const struct kr_target *to)
{
	(void)of;
	(void)to;
	return NULL;
}
void
kr_tls_host_destination(const struct kr_tls_host *host, struct kr_destination *out)
{
	KR_BUG_IF(host != &bound);
	*out = (struct kr_destination){ .target = target, .authority = "api.example", .path = { "", 0 } };
}
bool
kr_is_refused_plain(struct kr_connection *connection, const struct kr_target *to)
{
	(void)connection;
	(void)to;
	return false;
}
void
kr_terminate_begin(struct kr_connection *connection, const struct kr_tls_host *host)
{
	KR_BUG_IF(connection || host);
}
void
kr_terminate_server(struct kr_connection *connection)
{
	kr_connection_send_request(connection);
}
void
kr_terminate_ready(struct kr_connection *connection, bool client, unsigned events)
{
	KR_BUG_IF(connection || client || events);
}
void
kr_terminate_events(const struct kr_connection *connection, int *client, int *server)
{
	KR_BUG_IF(connection || client || server);
}
void
kr_terminate_overdue(struct kr_connection *connection)
{
	KR_BUG_IF(connection);
}
bool
kr_terminate_judge(struct kr_connection *connection, const struct kr_head *head)
{
	const struct kr_managed_rule *of;

	if (kr_secret_judge(&secrets, head, &of) == KR_SECRET_GOOD)
		return true;
	kr_connection_refuse(connection, 403, "no");
	return false;
}
void
kr_terminate_write(const struct kr_connection *connection, const struct kr_head *head, struct kr_buf *out)
{
	(void)connection;
	kr_secret_write(&secrets, head, "api.example", out);
}
const struct kr_echo *
kr_terminate_echo(const struct kr_connection *connection)
{
	KR_BUG_IF(!connection->bound);
	return echo;
}
void
kr_terminate_echoed(struct kr_connection *connection, int which)
{
	KR_BUG_IF(!connection->bound || which != 0);
}
enum kr_handshake
kr_tls_handshake(struct kr_egress *of, struct kr_side *side)
{
	KR_BUG_IF(of || side);
	return KR_HANDSHAKE_BAD;
}
enum kr_read
kr_tls_read(struct kr_egress *of, struct kr_side *side, size_t *n)
{
	KR_BUG_IF(of || side || n);
	return KR_READ_ERROR;
}
bool
kr_tls_send(struct kr_side *side, const struct iovec *parts, size_t n)
{
	KR_BUG_IF(side || parts || n);
	return false;
}
void
kr_tls_close(struct kr_side *side)
{
	KR_BUG_IF(side);
}
bool
kr_tls_waits(const struct kr_side *side)
{
	KR_BUG_IF(side->tls);
	return false;
}
void
kr_tls_free(struct kr_tls *tls)
{
	KR_BUG_IF(tls);
}

/* ---- both ends ---- */

struct play {
	int client, control, server;
	llhttp_t reader; /* of what the server gets */
	unsigned keys;   /* in this request */
	char field[32];
	size_t field_n;
	char value[64];
	size_t value_n;
	char got[GOT_MAX]; /* by the client */
	size_t got_n;
};

static int
on_field(llhttp_t *parser, const char *at, size_t n)
{
	struct play *play = parser->data;

	for (size_t i = 0; i < n && play->field_n < sizeof(play->field); i++)
		play->field[play->field_n++] = at[i];
	return 0;
}

static int
on_value(llhttp_t *parser, const char *at, size_t n)
{
	struct play *play = parser->data;

	for (size_t i = 0; i < n && play->value_n < sizeof(play->value); i++)
		play->value[play->value_n++] = at[i];
	return 0;
}

static int
on_value_complete(llhttp_t *parser)
{
	struct play *play = parser->data;

	if (play->field_n == 9 && memcmp(play->field, "x-api-key", 9) == 0) {
		KR_BUG_IF(play->value_n != strlen(REAL) || memcmp(play->value, REAL, play->value_n) != 0);
		play->keys++;
	}
	KR_BUG_IF(memmem(play->value, play->value_n, SENTINEL, strlen(SENTINEL)));
	play->field_n = play->value_n = 0;
	return 0;
}

static int
on_headers_complete(llhttp_t *parser)
{
	struct play *play = parser->data;

	KR_BUG_IF(play->keys != 1);
	play->keys = 0;
	return 0;
}

static llhttp_settings_t settings = { .on_header_field = on_field,
	.on_header_value = on_value,
	.on_header_value_complete = on_value_complete,
	.on_headers_complete = on_headers_complete };

static void
go_on(struct play *play)
{
	static char bytes[1 << 16];
	ssize_t n;

	for (int i = 0; i < ROUNDS && !egress.broken; i++)
		kr_egress_round(&egress, 0);
	while (play->client >= 0 && (n = recv(play->client, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		if ((size_t)n <= sizeof(play->got) - play->got_n) {
			memcpy(play->got + play->got_n, bytes, (size_t)n);
			play->got_n += (size_t)n;
		}
	KR_BUG_IF(memmem(play->got, play->got_n, REAL, strlen(REAL)));
	while (play->server >= 0 && (n = recv(play->server, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		KR_BUG_IF(llhttp_execute(&play->reader, bytes, (size_t)n) != HPE_OK);
}

/* kraft is asked for nothing but this host. */
static void
answer(struct play *play)
{
	struct kr_answer frame = { .type = KR_ANSWER_DIRECT };
	struct kr_target to;
	struct kr_ask ask;
	uint32_t used = 0;
	int pair[2];

	if (recv(play->control, &ask, sizeof(ask), MSG_DONTWAIT) != (ssize_t)sizeof(ask))
		return;
	KR_BUG_IF(!kr_ask_check(&ask, &to) || ask.type != KR_ASK_CONNECT || strcmp(to.host, "api.example") != 0 || to.port != 443);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
		return;
	frame.id = ask.id;
	KR_BUG_IF(kr_frame_write(play->control, &frame, sizeof(frame), &used, pair[0]) != 1);
	kr_close_p(&pair[0]);
	kr_close_p(&play->server);
	play->server = pair[1];
	llhttp_init(&play->reader, HTTP_REQUEST, &settings);
	play->reader.data = play;
	play->keys = 0;
	play->field_n = play->value_n = 0;
}

static void
step(struct play *play, unsigned what, const uint8_t *bytes, size_t n)
{
	int *to = what & 1 ? &play->server : &play->client;

	if ((what & 6) != 6 && *to >= 0 && n)
		(void)send(*to, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	else if ((what & 6) == 6 && *to >= 0 && what & 8)
		(void)shutdown(*to, SHUT_WR);
	else if ((what & 6) == 6)
		kr_close_p(to);
	go_on(play);
	answer(play);
	go_on(play);
}

/* Steps: a byte of what, a byte of how many, then so many bytes. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const values[] = { REAL };
	static struct play play;
	struct kr_connection *connection;
	int control[2], client[2], channels[2];

	(void)signal(SIGPIPE, SIG_IGN);
	if (!echo)
		echo = kr_echo_new(values, 1);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, control) < 0 ||
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, client) < 0 ||
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, channels) < 0)
		return 0;
	play.client = client[1];
	play.control = control[1];
	play.server = -1;
	play.got_n = 0;
	KR_BUG_IF(kr_egress_init(&egress, control[0], channels[0], NULL, KR_EGRESS_FILES) < 0);
	connection = kr_connection_accept(&egress, client[0], 0);
	KR_BUG_IF(!connection);
	connection->bound = &bound;
	kr_connection_next(connection);
	for (size_t at = 0, n; at + 2 <= size && !egress.broken; at += 2 + n) {
		n = data[at + 1];
		n = n < size - at - 2 ? n : size - at - 2;
		step(&play, data[at], data + at + 2, n);
	}
	KR_BUG_IF(egress.broken); /* nothing here was kraft's fault */
	kr_egress_fini(&egress);
	kr_close_p(&play.client);
	kr_close_p(&play.server);
	kr_close_p(&play.control);
	kr_close_p(&channels[1]);
	return 0;
}
