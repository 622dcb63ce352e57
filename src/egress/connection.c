/*
 * The state machine of one connection; connection.h has the stages. Nothing is sent towards a server before
 * kraft has allowed the host, and what then goes out is what the head said, written anew.
 *
 * After each step the two sides are watched for exactly what the stage can use. A client that sends early
 * while kraft decides is not watched for more: its bytes wait in the kernel.
 */
#include "egress/connection.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "egress/channel.h"
#include "egress/http.h"
#include "egress/kraft_host.h"
#include "egress/pump.h"
#include "egress/terminate.h"
#include "egress/tls.h"
#include "egress/token.h"

enum { LINGER_MS = 2000, LINGER_BYTES = 1 << 20, INTAKE_FIRST = 1024 };

/* ---- intake ---- */

enum kr_read
kr_side_read(struct kr_egress *egress, struct kr_side *side, size_t *n)
{
	ssize_t got;

	if (side->tls)
		return kr_tls_read(egress, side, n);
	got = recv(side->watch.fd, egress->scratch, sizeof(egress->scratch), MSG_DONTWAIT);
	if (got < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? KR_READ_NONE : KR_READ_ERROR;
	*n = (size_t)got;
	side->ended = got == 0;
	return got ? KR_READ_SOME : KR_READ_END;
}

/* Two heads of full size at most: one, and what came behind it in one read. */
bool
kr_intake_add(struct kr_intake *intake, const char *bytes, size_t n)
{
	size_t need = intake->n + n, cap = intake->cap ? intake->cap : INTAKE_FIRST;
	char *grown;

	KR_BUG_IF(need > KR_HEAD_BYTES + KR_SCRATCH_BYTES);
	while (cap < need)
		cap *= 2;
	if (cap != intake->cap) {
		grown = realloc(intake->bytes, cap);
		if (!grown)
			return false;
		intake->bytes = grown;
		intake->cap = (uint32_t)cap;
	}
	memcpy(intake->bytes + intake->n, bytes, n);
	intake->n = (uint32_t)need;
	return true;
}

enum kr_read
kr_intake_read(struct kr_egress *egress, struct kr_side *side)
{
	size_t n = 0;
	enum kr_read got = kr_side_read(egress, side, &n);

	if (got == KR_READ_SOME && !kr_intake_add(&side->intake, egress->scratch, n))
		return KR_READ_ERROR;
	return got;
}

void
kr_intake_drop(struct kr_intake *intake, size_t n)
{
	intake->n -= (uint32_t)n;
	memmove(intake->bytes, intake->bytes + n, intake->n);
	intake->scan = (struct kr_head_scan){ 0 };
}

void
kr_intake_clear(struct kr_intake *intake)
{
	free(intake->bytes);
	*intake = (struct kr_intake){ 0 };
}

/* ---- beginning and end ---- */

void
kr_connection_set_deadline(struct kr_connection *connection, int64_t in_ms)
{
	connection->deadline_ms = connection->egress->now_ms + in_ms;
	kr_egress_due(connection->egress, connection->deadline_ms);
}

/* Its places are the session's from now on. */
static void
is_known(struct kr_connection *connection)
{
	struct kr_egress *egress = connection->egress;

	if (!connection->is_stranger)
		return;
	TAILQ_REMOVE(&egress->strangers, connection, of_strangers);
	egress->strangers_n--;
	connection->is_stranger = false;
}

static void
is_unknown(struct kr_connection *connection)
{
	struct kr_egress *egress = connection->egress;

	connection->is_stranger = true;
	connection->since_ms = egress->now_ms;
	TAILQ_INSERT_TAIL(&egress->strangers, connection, of_strangers);
	kr_connection_set_deadline(connection, KR_STRANGER_MS);
	if (++egress->strangers_n > egress->strangers_max)
		kr_connection_end(TAILQ_FIRST(&egress->strangers), true);
}

int64_t
kr_connection_place_ms(const struct kr_egress *egress)
{
	if (!egress->free_n || egress->strangers_n < egress->strangers_max)
		return INT64_MAX;
	return TAILQ_FIRST(&egress->strangers)->since_ms + KR_STRANGER_GRACE_MS;
}

bool
kr_connection_has_place(const struct kr_egress *egress)
{
	int64_t place_ms = kr_connection_place_ms(egress);

	return egress->free_n && (place_ms == INT64_MAX || place_ms <= egress->now_ms);
}

struct kr_connection *
kr_connection_accept(struct kr_egress *egress, int client_fd, uint16_t client_port)
{
	struct kr_connection *connection = egress->free_n ? calloc(1, sizeof(*connection)) : NULL;
	uint16_t slot;

	if (!connection) {
		(void)close(client_fd);
		return NULL;
	}
	slot = egress->free_slots[--egress->free_n];
	connection->egress = egress;
	connection->slot = slot;
	connection->turn = ++egress->turn;
	connection->client_port = client_port;
	connection->client.watch = (struct kr_watch){ .fd = client_fd, .kind = KR_WATCH_CLIENT, .events = -1 };
	connection->server.watch = (struct kr_watch){ .fd = -1, .kind = KR_WATCH_SERVER, .events = -1 };
	egress->connections[slot] = connection;
	kr_connection_set_deadline(connection, KR_HEAD_MS);
	if (egress->token)
		is_unknown(connection);
	if (!kr_watch_set(egress, &connection->client.watch, KR_POLL_IN))
		kr_connection_end(connection, true); /* its memory stays until the round is over */
	return connection;
}

static void
close_side(struct kr_connection *connection, struct kr_side *side, bool abruptly)
{
	const struct linger now = { .l_onoff = 1, .l_linger = 0 };

	if (abruptly && side == &connection->client && side->watch.fd >= 0 && connection->channel)
		kr_channel_tell_reset(connection->channel, connection->number);
	if (abruptly && side->watch.fd >= 0)
		(void)setsockopt(
			side->watch.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)); /* else it is a plain close */
	kr_watch_close(connection->egress, &side->watch);
	kr_tls_free(kr_steal(side->tls));
	kr_intake_clear(&side->intake);
	free(kr_steal(side->held));
	side->held_at = side->held_n = 0;
	kr_side_drop_pipe(connection->egress, side);
}

void
kr_connection_close_server(struct kr_connection *connection, bool abruptly)
{
	close_side(connection, &connection->server, abruptly);
	connection->server = (struct kr_side){ .watch = { .fd = -1, .kind = KR_WATCH_SERVER, .events = -1 } };
}

/* Out of the list of those that have something to read. */
static void
wait_no_more(struct kr_connection *connection)
{
	if (connection->waits)
		TAILQ_REMOVE(&connection->egress->waiting, connection, of_waiting);
	connection->waits = false;
}

void
kr_connection_end(struct kr_connection *connection, bool abruptly)
{
	struct kr_egress *egress = connection->egress;

	close_side(connection, &connection->client, abruptly);
	close_side(connection, &connection->server, abruptly);
	kr_http_free(kr_steal(connection->http));
	connection->deadline_ms = INT64_MAX;
	if (connection->stage == KR_STAGE_ASKED || connection->stage == KR_STAGE_DEAD)
		return;
	kr_worker_call_free(connection);
	is_known(connection);
	wait_no_more(connection);
	connection->stage = KR_STAGE_DEAD;
	egress->connections[connection->slot] = NULL;
	egress->free_slots[egress->free_n++] = connection->slot;
	connection->next = egress->dead;
	egress->dead = connection;
}

void
kr_connection_abandon(struct kr_connection *connection)
{
	connection->stage = KR_STAGE_LINGER;
	kr_connection_end(connection, true);
}

void
kr_connection_free_dead(struct kr_egress *egress)
{
	while (egress->dead) {
		struct kr_connection *dead = egress->dead;

		egress->dead = dead->next;
		free(dead);
	}
}

void
kr_connection_linger(struct kr_connection *connection)
{
	close_side(connection, &connection->server, false);
	kr_intake_clear(&connection->client.intake);
	kr_http_free(kr_steal(connection->http));
	connection->stage = KR_STAGE_LINGER;
	kr_connection_set_deadline(connection, connection->is_stranger ? LINGER_MS : KR_BODY_IDLE_MS);
	if (!kr_side_is_clear(&connection->client))
		return;
	kr_worker_call_free(connection);
	if (connection->client.tls && !connection->client.tls_closed) {
		connection->client.tls_closed = true;
		kr_tls_close(&connection->client);
		if (!kr_side_is_clear(&connection->client))
			return;
	}
	kr_side_shut(&connection->client);
	kr_connection_set_deadline(connection, LINGER_MS);
}

void
kr_connection_refuse(struct kr_connection *connection, unsigned status, const char *why)
{
	struct kr_buf out = kr_egress_written(connection->egress);
	struct iovec part;

	kr_refusal_write(status, why, !connection->bodyless, &out);
	part = (struct iovec){ out.data, out.len };
	/* A request that was begun towards a server must not look complete there. */
	close_side(connection, &connection->server, true);
	if (kr_side_send(&connection->client, &part, 1))
		kr_connection_linger(connection);
	else
		kr_connection_end(connection, true);
}

/* ---- asking ---- */

/* The head that was parsed before, once more: it is kept as bytes only. */
static bool
request_of(const struct kr_connection *connection, struct kr_head *head, struct kr_destination *to)
{
	const struct kr_intake *intake = &connection->client.intake;
	const char *why;

	if (kr_request_parse(intake->bytes, intake->scan.at, head, &why) != 0)
		return false;
	if (!connection->bound)
		return kr_request_destination(head, to, &why);
	kr_tls_host_destination(connection->bound, to);
	return true;
}

static void
fill_ask(struct kr_egress *egress, const struct kr_connection *connection)
{
	struct kr_head head;
	struct kr_destination to;

	egress->ask = (struct kr_ask){
		.id = (uint32_t)connection->turn << 16 | connection->slot, .client_port = connection->client_port
	};
	if (connection->call) {
		egress->ask.type = KR_ASK_CALL;
		(void)kr_worker_call_of(connection, &egress->ask.bytes);
		return;
	}
	KR_BUG_IF(!request_of(connection, &head, &to));
	egress->ask.type = connection->tunnel || connection->bound ? KR_ASK_CONNECT : KR_ASK_HTTP;
	egress->ask.port = to.target.port;
	memcpy(egress->ask.host, to.target.host, strlen(to.target.host));
}

static void
pop_asking(struct kr_egress *egress)
{
	egress->asking = egress->asking->next;
	if (!egress->asking)
		egress->asking_end = &egress->asking;
}

/* As kr_frame_write: the ask, and behind it what belongs to it. */
static int
send_ask(struct kr_egress *egress, const struct kr_connection *connection)
{
	int sent = egress->ask_used == sizeof(egress->ask) ? 1
													   : kr_frame_write(egress->control.fd, &egress->ask,
															 sizeof(egress->ask), &egress->ask_used, -1);
	const struct kr_call *call;
	uint32_t bytes;

	if (sent != 1 || !connection->call)
		return sent;
	call = kr_worker_call_of(connection, &bytes);
	return kr_frame_write(egress->control.fd, call, bytes, &egress->call_used, -1);
}

static bool
has_to_tell(const struct kr_egress *egress)
{
	return egress->told_begun || egress->tells_strangers || egress->tolds_n;
}

/* The next that is no ask, begun to be sent with its first byte. */
static void
begin_telling(struct kr_egress *egress)
{
	if (egress->tells_strangers) {
		egress->told = (struct kr_ask){ .type = KR_ASK_STRANGERS, .id = egress->refused_n };
		return;
	}
	egress->told = egress->tolds[0];
	memmove(egress->tolds, egress->tolds + 1, --egress->tolds_n * sizeof(egress->tolds[0]));
}

static void
end_telling(struct kr_egress *egress)
{
	egress->told_used = 0;
	if (egress->told.type != KR_ASK_STRANGERS)
		return;
	egress->refused_n -= egress->told.id;
	egress->tells_strangers = false;
}

/* Between two asks: what is none. 1: nothing of it is left to be sent, 0: not yet, -1: the other side is gone. */
static int
send_told(struct kr_egress *egress)
{
	int sent = 1;

	while (sent == 1 && has_to_tell(egress) && (egress->told_begun || !egress->ask_used)) {
		if (!egress->told_begun)
			begin_telling(egress);
		egress->told_begun = true;
		sent = kr_frame_write(egress->control.fd, &egress->told, sizeof(egress->told), &egress->told_used, -1);
		if (sent != 1)
			return sent;
		egress->told_begun = false;
		end_telling(egress);
	}
	return sent;
}

void
kr_egress_tell(struct kr_egress *egress, const struct kr_ask *told)
{
	if (egress->tolds_n < KR_TOLDS_MAX)
		egress->tolds[egress->tolds_n++] = *told;
	if (!kr_connection_send_asks(egress))
		egress->broken = true;
}

bool
kr_connection_send_asks(struct kr_egress *egress)
{
	int sent = send_told(egress);

	while (egress->asking && sent == 1) {
		struct kr_connection *first = egress->asking;

		if (egress->ask_used == 0 && first->client.watch.fd < 0 && !kr_worker_call_is_left(first)) {
			pop_asking(egress);
			first->stage = KR_STAGE_LINGER; /* never asked, so its place is free */
			kr_connection_end(first, false);
			continue;
		}
		if (egress->ask_used == 0)
			fill_ask(egress, first);
		sent = send_ask(egress, first);
		if (sent == 1) {
			pop_asking(egress);
			egress->ask_used = egress->call_used = 0;
		}
	}
	return sent >= 0 && kr_watch_set(egress, &egress->control,
							KR_POLL_IN | (egress->asking || has_to_tell(egress) ? KR_POLL_OUT : 0));
}

void
kr_connection_ask(struct kr_connection *connection)
{
	struct kr_egress *egress = connection->egress;

	connection->stage = KR_STAGE_ASKED;
	if (!connection->call)
		connection->deadline_ms = INT64_MAX; /* kraft answers, or ends */
	connection->next = NULL;
	*egress->asking_end = connection;
	egress->asking_end = &connection->next;
	if (egress->asking == connection && !kr_connection_send_asks(egress))
		egress->broken = true;
}

/* The first is told at once, those after it together, each second. */
static void
count_stranger(struct kr_egress *egress)
{
	bool is_first = !egress->had_strangers;

	egress->had_strangers = true;
	if (egress->refused_n < UINT32_MAX)
		egress->refused_n++;
	if (is_first)
		kr_egress_tell_strangers(egress);
	else
		kr_egress_due(egress, egress->now_ms);
}

static const char no_token[] = "this proxy answers only those who say its token: use the proxy's URL as it stands in "
							   "HTTP_PROXY, with the name and the password that it holds";

/* A head that is none, or asks for what cannot be: told only to those who said the token. */
static void
refuse_head(struct kr_connection *connection, unsigned status, const char *why)
{
	if (connection->is_stranger)
		count_stranger(connection->egress);
	kr_connection_refuse(connection, connection->is_stranger ? 407 : status, connection->is_stranger ? no_token : why);
}

static void
on_request(struct kr_connection *connection)
{
	struct kr_intake *intake = &connection->client.intake;
	const struct kr_tls_host *bound;
	struct kr_destination to;
	struct kr_head head;
	const char *why = "";
	unsigned status = kr_request_parse(intake->bytes, intake->scan.at, &head, &why);

	connection->bodyless = head.method == KR_METHOD_HEAD;
	connection->tunnel = head.method == KR_METHOD_CONNECT;
	if (connection->is_stranger && kr_token_is_said(&head, connection->egress->token))
		is_known(connection);
	if (status == 0 && !kr_request_destination(&head, &to, &why))
		status = 400;
	if (status || connection->is_stranger)
		refuse_head(connection, status, why);
	else if (kr_is_kraft_host(&to))
		kr_worker_call_begin(connection, &head, &to);
	else if (connection->tunnel && (bound = kr_tls_host_of(connection->egress, &to.target)))
		kr_terminate_begin(connection, bound);
	else if (connection->tunnel || !kr_is_refused_plain(connection, &to.target))
		kr_connection_ask(connection);
}

/* Inside of TLS that ends here. Where it goes is known; what it carries is judged before anything is asked or sent. */
static void
on_inner_request(struct kr_connection *connection)
{
	struct kr_intake *intake = &connection->client.intake;
	struct kr_head head;
	const char *why = "";
	unsigned status = kr_request_parse(intake->bytes, intake->scan.at, &head, &why);

	connection->bodyless = head.method == KR_METHOD_HEAD;
	connection->tunnel = false;
	if (status)
		kr_connection_refuse(connection, status, why);
	else if (!kr_terminate_judge(connection, &head))
		return;
	else if (connection->server.watch.fd >= 0)
		kr_connection_send_request(connection);
	else
		kr_connection_ask(connection);
}

/* What came behind the message before is looked at first. */
static enum kr_read
read_head(struct kr_connection *connection)
{
	const struct kr_intake *intake = &connection->client.intake;

	if (intake->n > intake->scan.at)
		return KR_READ_SOME;
	return kr_intake_read(connection->egress, &connection->client);
}

static void
on_head(struct kr_connection *connection)
{
	struct kr_intake *intake = &connection->client.intake;
	enum kr_read got = read_head(connection);

	if (got == KR_READ_NONE)
		return;
	if (got != KR_READ_SOME) {
		kr_connection_end(connection, false);
		return;
	}
	/* A stranger's head is waited for: only there it can say the token, and be told what is wrong with the rest. */
	if (!connection->is_stranger && !kr_request_begins(intake->bytes, intake->n)) {
		kr_connection_refuse(connection, 400, "this is no HTTP request that is passed on");
		return;
	}
	if (connection->bound && intake->scan.at == 0)
		kr_connection_set_deadline(connection, KR_HEAD_MS);
	switch (kr_head_scan(&intake->scan, intake->bytes, intake->n)) {
	case KR_SCAN_WHOLE:
		if (connection->bound)
			on_inner_request(connection);
		else
			on_request(connection);
		break;
	case KR_SCAN_BAD:
		refuse_head(connection, 400,
			"the head is too long, or holds a control character or a line end other than CR LF");
		break;
	case KR_SCAN_MORE:
		break;
	}
}

void
kr_connection_next(struct kr_connection *connection)
{
	connection->stage = KR_STAGE_HEAD;
	kr_connection_set_deadline(connection, KR_NEXT_REQUEST_MS);
}

/* A server that is kept between two requests says nothing then but that it goes; its TLS may talk to ours. */
static void
on_idle_server(struct kr_connection *connection)
{
	size_t n;

	if (kr_side_read(connection->egress, &connection->server, &n) != KR_READ_NONE)
		kr_connection_close_server(connection, false);
}

/* ---- answered ---- */

static const char established[] = "HTTP/1.1 200 Connection Established\r\n\r\n";

/* What came early from either side is the tunnel's first. */
static void
begin_tunnel(struct kr_connection *connection)
{
	struct kr_intake *client = &connection->client.intake, *server = &connection->server.intake;
	struct iovec down[2] = { { (char *)(uintptr_t)established, sizeof(established) - 1 },
		{ server->bytes + server->scan.at, server->n - server->scan.at } };
	struct iovec up = { client->bytes + client->scan.at, client->n - client->scan.at };
	bool good = kr_side_send(&connection->client, down, down[1].iov_len ? 2 : 1) &&
				(up.iov_len == 0 || kr_side_send(&connection->server, &up, 1));

	kr_intake_clear(client);
	kr_intake_clear(server);
	connection->stage = KR_STAGE_TUNNEL;
	kr_connection_set_deadline(connection, KR_TUNNEL_IDLE_MS);
	if (!good)
		kr_connection_end(connection, true);
}

static void
ask_upstream(struct kr_connection *connection, const char *authorization)
{
	struct kr_buf out = kr_egress_written(connection->egress);
	struct kr_head head;
	struct kr_destination to;
	struct iovec part;

	KR_BUG_IF(!request_of(connection, &head, &to));
	if (connection->bound)
		kr_target_format(&to.target, to.authority); /* with its port, which a Host leaves out where it is 443 */
	kr_connect_write(&to, authorization, &out);
	part = (struct iovec){ out.data, out.len };
	connection->stage = KR_STAGE_REPLY;
	kr_connection_set_deadline(connection, KR_UPSTREAM_REPLY_MS);
	if (!kr_side_send(&connection->server, &part, 1))
		kr_connection_refuse(connection, 502, "the upstream proxy closed the connection");
}

static void
on_reply_head(struct kr_connection *connection)
{
	struct kr_intake *intake = &connection->server.intake;
	struct kr_head head;
	const char *why;
	char text[96];

	if (!kr_response_parse(intake->bytes, intake->scan.at, &head, &why) || (connection->bound && intake->n > intake->scan.at)) {
		kr_connection_refuse(connection, 502, "the upstream proxy's answer cannot be read");
	} else if (head.status != 200) {
		(void)snprintf(
			text, sizeof(text), "the upstream proxy refused the tunnel with status %u", head.status);
		kr_connection_refuse(connection, 502, text);
	} else if (connection->bound) {
		kr_intake_clear(intake);
		kr_terminate_server(connection);
	} else {
		begin_tunnel(connection);
	}
}

static void
on_reply(struct kr_connection *connection)
{
	struct kr_intake *intake = &connection->server.intake;
	enum kr_read got;

	if (!kr_side_flush(&connection->server))
		got = KR_READ_ERROR;
	else
		got = kr_intake_read(connection->egress, &connection->server);
	if (got == KR_READ_NONE)
		return;
	if (got != KR_READ_SOME) {
		kr_connection_refuse(connection, 502, "the upstream proxy closed the connection");
		return;
	}
	switch (kr_head_scan(&intake->scan, intake->bytes, intake->n)) {
	case KR_SCAN_WHOLE:
		on_reply_head(connection);
		break;
	case KR_SCAN_BAD:
		kr_connection_refuse(connection, 502, "the upstream proxy's answer cannot be read");
		break;
	case KR_SCAN_MORE:
		break;
	}
}

static void
begin_request(struct kr_connection *connection, bool upstream, const char *authorization)
{
	struct kr_http_begin begin = { .upstream = upstream, .authorization = authorization };

	if (!request_of(connection, &begin.head, &begin.to))
		KR_BUG_IF(true);
	kr_http_begin(connection, &begin);
}

void
kr_connection_send_request(struct kr_connection *connection)
{
	begin_request(connection, false, "");
}

static void
on_connected(struct kr_connection *connection, const struct kr_answer *answer)
{
	const int on = 1;
	bool upstream = answer->type == KR_ANSWER_UPSTREAM, tunnel = connection->tunnel || connection->bound;

	(void)setsockopt(
		connection->server.watch.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* only slower without */
	if (tunnel && upstream)
		ask_upstream(connection, answer->text);
	else if (connection->bound)
		kr_terminate_server(connection);
	else if (tunnel)
		begin_tunnel(connection);
	else
		begin_request(connection, upstream, answer->text);
}

/* Whether this is an answer to what was asked: a call gets no socket, and a host no body. */
static bool
is_answer_to(const struct kr_connection *connection, const struct kr_answer *answer, int fd)
{
	return connection && connection->turn == answer->id >> 16 && connection->stage == KR_STAGE_ASKED &&
		   (connection->call ? fd < 0 : answer->type != KR_ANSWER_CALL);
}

bool
kr_connection_answer(struct kr_egress *egress, const struct kr_answer *answer, int fd, char *body)
{
	uint32_t slot = answer->id & 0xffff;
	struct kr_connection *connection = slot < KR_CONNECTIONS_MAX ? egress->connections[slot] : NULL;

	if (!is_answer_to(connection, answer, fd)) {
		if (fd >= 0)
			(void)close(fd);
		free(body);
		return false;
	}
	connection->stage = KR_STAGE_LINGER; /* asked no more: it can end */
	connection->server.watch.fd = fd;
	if (connection->call && connection->call->mcp)
		kr_worker_call_answer(connection, answer, kr_steal(body));
	else if (connection->client.watch.fd < 0)
		kr_connection_end(connection, true);
	else if (answer->type == KR_ANSWER_CALL)
		kr_worker_call_answer(connection, answer, kr_steal(body));
	else if (fd >= 0)
		on_connected(connection, answer);
	else
		kr_connection_refuse(connection, answer->status, answer->text);
	free(body);
	kr_connection_settle(connection);
	return true;
}

/* ---- events ---- */

static void
on_linger(struct kr_connection *connection)
{
	size_t n = 0;

	if (!kr_side_flush(&connection->client)) {
		kr_connection_end(connection, true);
		return;
	}
	if (kr_side_is_clear(&connection->client) && !connection->client.shut)
		kr_connection_linger(connection);
	switch (kr_side_read(connection->egress, &connection->client, &n)) {
	case KR_READ_SOME:
		connection->dropped += (uint32_t)n;
		if (connection->dropped > LINGER_BYTES && connection->client.shut)
			kr_connection_end(connection, false);
		break;
	case KR_READ_NONE:
		break;
	case KR_READ_END:
		if (connection->client.shut)
			kr_connection_end(connection, false);
		break;
	case KR_READ_ERROR:
		kr_connection_end(connection, true);
		break;
	}
}

/* While kraft or the upstream proxy thinks, only the client's end is of interest. */
static void
on_waiting(struct kr_connection *connection, bool client, unsigned events)
{
	if (client && events & KR_POLL_END)
		kr_connection_end(connection, true);
	else if (client)
		(void)kr_watch_set(
			connection->egress, &connection->client.watch, 0); /* it is in the set: no failure */
	else
		on_reply(connection);
}

/* What each side is to be watched for; false: leave it as it is. */
static bool
wanted(const struct kr_connection *connection, int *client, int *server)
{
	const struct kr_side *c = &connection->client, *s = &connection->server;

	*client = *server = -1;
	switch ((enum kr_stage)connection->stage) {
	case KR_STAGE_HEAD:
		*client = KR_POLL_IN | (kr_side_is_clear(c) ? 0 : KR_POLL_OUT);
		*server = KR_POLL_IN | (kr_side_is_clear(s) ? 0 : KR_POLL_OUT);
		return true;
	case KR_STAGE_HANDSHAKE:
		kr_terminate_events(connection, client, server);
		return true;
	case KR_STAGE_CALL:
		*client = kr_worker_call_events(connection);
		return true;
	case KR_STAGE_WAIT:
		*client = KR_POLL_IN | (kr_side_is_clear(c) ? 0 : KR_POLL_OUT);
		return true;
	case KR_STAGE_REPLY:
		*client = c->watch.events;
		*server = KR_POLL_IN | (kr_side_is_clear(s) ? 0 : KR_POLL_OUT);
		return true;
	case KR_STAGE_TUNNEL:
		*client = kr_tunnel_events(c, s);
		*server = kr_tunnel_events(s, c);
		return true;
	case KR_STAGE_HTTP:
		kr_http_events(connection, client, server);
		return true;
	case KR_STAGE_LINGER:
		*client = (c->ended ? 0 : KR_POLL_IN) | (kr_side_is_clear(c) ? 0 : KR_POLL_OUT);
		return true;
	case KR_STAGE_ASKED:
	case KR_STAGE_DEAD:
		break;
	}
	return false;
}

/* Of the client: what no event of its descriptor will tell of. */
static bool
has_read(const struct kr_connection *connection)
{
	const struct kr_intake *intake = &connection->client.intake;

	return kr_tls_waits(&connection->client) || (connection->stage == KR_STAGE_HEAD && intake->n > intake->scan.at);
}

static void
note_waiting(struct kr_connection *connection)
{
	bool client = connection->client.watch.events & KR_POLL_IN && has_read(connection);
	bool server = connection->server.watch.fd >= 0 && connection->server.watch.events & KR_POLL_IN &&
				  kr_tls_waits(&connection->server);

	if ((!client && !server) || connection->waits || connection->stage == KR_STAGE_DEAD)
		return;
	connection->waits = true;
	TAILQ_INSERT_TAIL(&connection->egress->waiting, connection, of_waiting);
}

void
kr_connection_settle(struct kr_connection *connection)
{
	struct kr_egress *egress = connection->egress;
	int client, server;

	if (!wanted(connection, &client, &server))
		return;
	if (!kr_watch_set(egress, &connection->client.watch, client) ||
		(connection->server.watch.fd >= 0 && !kr_watch_set(egress, &connection->server.watch, server)))
		kr_connection_end(connection, true);
	else
		note_waiting(connection);
}

void
kr_connections_go_on(struct kr_egress *egress)
{
	struct kr_connection *connection;
	size_t n = 0;

	TAILQ_FOREACH(connection, &egress->waiting, of_waiting)
		n++;
	for (; n && (connection = TAILQ_FIRST(&egress->waiting)); n--) {
		wait_no_more(connection);
		if (connection->client.watch.events & KR_POLL_IN && has_read(connection))
			kr_connection_ready(connection, true, KR_POLL_IN);
		else if (kr_tls_waits(&connection->server))
			kr_connection_ready(connection, false, KR_POLL_IN);
	}
}

/* An end that nobody can act on now is told again and again: the side leaves the set until it is wanted. */
static void
rest(struct kr_connection *connection, struct kr_watch *watch, unsigned events)
{
	if (events & KR_POLL_END && watch->fd >= 0 && watch->events == 0)
		(void)kr_watch_set(connection->egress, watch, -1); /* taking out cannot fail */
}

void
kr_connection_ready(struct kr_connection *connection, bool client, unsigned events)
{
	bool in = events & (KR_POLL_IN | KR_POLL_END), out = events & (KR_POLL_OUT | KR_POLL_END);

	switch ((enum kr_stage)connection->stage) {
	case KR_STAGE_HEAD:
		if (!kr_side_flush(client ? &connection->client : &connection->server))
			kr_connection_end(connection, true);
		else if (client)
			on_head(connection);
		else
			on_idle_server(connection);
		break;
	case KR_STAGE_HANDSHAKE:
		kr_terminate_ready(connection, client, events);
		break;
	case KR_STAGE_CALL:
		kr_worker_call_ready(connection, events);
		break;
	case KR_STAGE_WAIT:
		kr_mcp_call_ready(connection, events);
		break;
	case KR_STAGE_ASKED:
	case KR_STAGE_REPLY:
		on_waiting(connection, client, events);
		break;
	case KR_STAGE_TUNNEL:
		kr_tunnel_ready(connection, client ? in : out, client ? out : in);
		break;
	case KR_STAGE_HTTP:
		if (client && events & KR_POLL_END)
			kr_connection_end(connection, true);
		else
			kr_http_ready(connection, client ? in : out, client ? out : in);
		break;
	case KR_STAGE_LINGER:
		on_linger(connection);
		break;
	case KR_STAGE_DEAD:
		return;
	}
	kr_connection_settle(connection);
	rest(connection, client ? &connection->client.watch : &connection->server.watch, events);
}

void
kr_connection_overdue(struct kr_connection *connection)
{
	switch ((enum kr_stage)connection->stage) {
	case KR_STAGE_REPLY:
		kr_connection_refuse(connection, 502, "the upstream proxy did not answer in time");
		kr_connection_settle(connection);
		break;
	case KR_STAGE_HANDSHAKE:
		kr_terminate_overdue(connection);
		kr_connection_settle(connection);
		break;
	case KR_STAGE_CALL:
	case KR_STAGE_WAIT:
	case KR_STAGE_ASKED: /* only a call's has a deadline */
		kr_worker_call_overdue(connection);
		kr_connection_settle(connection);
		break;
	case KR_STAGE_LINGER:
		kr_connection_end(connection, !connection->client.shut);
		break;
	case KR_STAGE_HEAD:
		kr_connection_end(connection, false);
		break;
	default:
		kr_connection_end(connection, true);
		break;
	}
}
