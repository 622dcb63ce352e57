/*
 * One connection: head, body, answer, and again. It blocks, each wait with a deadline: 10 s for all of a
 * head, 30 s for all of a body, 60 s between requests, 60 s for a client that takes nothing of an answer. So
 * a client that is slow on purpose holds one process for a known time, and the server bounds those.
 *
 * Bytes are read where they are needed and no further, but for what came along with them: a request that was
 * sent behind another one is the next. After a request that could not be read, or whose body was not, nothing
 * on this connection can be trusted to begin where it seems to: it ends.
 */
#include "api/internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "os/sys.h"
#include "os/timer.h"

enum { LINGER_MS = 2000, LINGER_BYTES = 16 << 20, SCRATCH = 16 << 10, ADDRESS_TEXT = 64 };

struct kr_api_io {
	int fd;
	size_t n;                      /* bytes that came and belong to no request yet */
	char bytes[KR_HEAD_BYTES + 1]; /* one more than a head may have, so that one that is too long shows */
};

/* ---- bytes ---- */

enum got { GOT_SOME, GOT_END, GOT_LATE };

static bool
wait_for(int fd, short events, int64_t until_ms)
{
	for (;;) {
		struct pollfd p = { .fd = fd, .events = events };
		int64_t left = until_ms - kr_clock_ms();
		int n;

		if (left <= 0)
			return false;
		n = poll(&p, 1, left < INT32_MAX ? (int)left : INT32_MAX);
		if (n > 0)
			return true;
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return false;
	}
}

static enum got
receive(int fd, char *out, size_t room, int64_t until_ms, size_t *n)
{
	for (;;) {
		ssize_t got = recv(fd, out, room, MSG_DONTWAIT);

		if (got > 0) {
			*n = (size_t)got;
			return kr_clock_ms() < until_ms ? GOT_SOME : GOT_LATE;
		}
		if (got == 0 || (errno != EAGAIN && errno != EINTR))
			return GOT_END;
		if (!wait_for(fd, POLLIN, until_ms))
			return GOT_LATE;
	}
}

/* Whoever takes less than this in that time is not waited for. */
bool
kr_api_send(struct kr_api_io *io, const char *bytes, size_t n)
{
	int64_t until_ms = kr_clock_ms() + KR_API_WRITE_MS;
	size_t taken = 0;

	while (n) {
		ssize_t sent = send(io->fd, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (sent > 0) {
			bytes += sent;
			n -= (size_t)sent;
			taken += (size_t)sent;
		} else if ((errno != EAGAIN && errno != EINTR) || !wait_for(io->fd, POLLOUT, until_ms)) {
			return false;
		}
		if (taken >= KR_API_WRITE_BYTES) {
			taken = 0;
			until_ms = kr_clock_ms() + KR_API_WRITE_MS;
		}
	}
	return true;
}

/* A client that is answered bit by bit has nothing more to say: what it sends is dropped, and its end ends
 * it. */
bool
kr_api_io_nap(struct kr_api_io *io, int ms)
{
	const int64_t until_ms = kr_clock_ms() + ms;
	char scratch[512];

	while (wait_for(io->fd, POLLIN, until_ms)) {
		ssize_t got = recv(io->fd, scratch, sizeof(scratch), MSG_DONTWAIT);

		if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
			return false;
	}
	return true;
}

/* What the client still sends is taken in for a while: a close on unread bytes would take our answer from it.
 */
static void
linger(struct kr_api_io *io)
{
	const int64_t until_ms = kr_clock_ms() + LINGER_MS;
	char scratch[SCRATCH];
	size_t n, sum = 0;

	if (shutdown(io->fd, SHUT_WR) < 0)
		return;
	while (sum < LINGER_BYTES && receive(io->fd, scratch, sizeof(scratch), until_ms, &n) == GOT_SOME)
		sum += n;
}

/* ---- a head ---- */

static void
refuse(struct kr_api_io *io, unsigned status, const char *detail)
{
	const struct kr_api_refusal refusal = { status, detail, "" };

	(void)kr_api_answer_refusal(io, &refusal, true, false); /* the connection ends either way */
}

/* Its length; 0: there is none, and what had to be said was said. */
static size_t
read_head(struct kr_api_io *io, bool is_first)
{
	struct kr_head_scan scan = { 0 };
	int64_t until_ms = kr_clock_ms() + (is_first || io->n ? KR_API_HEAD_MS : KR_API_IDLE_MS);
	size_t n;

	for (;;) {
		enum kr_scan_state state = kr_head_scan(&scan, io->bytes, io->n);

		if (state == KR_SCAN_WHOLE)
			return scan.at;
		if (state == KR_SCAN_BAD || (io->n && !kr_request_begins(io->bytes, io->n))) {
			refuse(io, 400, "this is no request of HTTP/1.1");
			return 0;
		}
		switch (receive(io->fd, io->bytes + io->n, sizeof(io->bytes) - io->n, until_ms, &n)) {
		case GOT_SOME:
			if (!io->n)
				until_ms = kr_clock_ms() + KR_API_HEAD_MS;
			io->n += n;
			break;
		case GOT_LATE:
			if (io->n)
				refuse(io, 408, "the head of the request did not come in time");
			return 0;
		case GOT_END:
			return 0;
		}
	}
}

static void
drop_front(struct kr_api_io *io, size_t n)
{
	io->n -= n;
	memmove(io->bytes, io->bytes + n, io->n);
}

/* ---- a body ---- */

/* What came with the head first, then the rest. The head's bytes are gone from the buffer by then. */
static bool
read_body(struct kr_api_io *io, size_t length, bool expects, struct kr_buf *out)
{
	const int64_t until_ms = kr_clock_ms() + KR_API_BODY_MS;
	size_t had = io->n < length ? io->n : length, n;
	char scratch[SCRATCH];

	kr_buf_add(out, io->bytes, had);
	drop_front(io, had);
	if (expects && had < length && !kr_api_send(io, "HTTP/1.1 100 Continue\r\n\r\n", 25))
		return false;
	while (out->len < length) {
		size_t left = length - out->len;
		enum got got =
			receive(io->fd, scratch, left < sizeof(scratch) ? left : sizeof(scratch), until_ms, &n);

		if (got == GOT_LATE)
			refuse(io, 408, "the body did not come in time");
		if (got != GOT_SOME)
			return false;
		kr_buf_add(out, scratch, n);
	}
	return true;
}

/* ---- a request ---- */

static bool
wants_close(const struct kr_api_call *call)
{
	const struct kr_head *head = call->head;

	for (size_t i = 0; i < head->n; i++) {
		const struct kr_field *f = &head->fields[i];

		if (f->name.n == 10 && strncasecmp(f->name.at, "connection", 10) == 0 &&
			strcasestr(kr_arena_dup_n(call->arena, f->value.at, f->value.n), "close"))
			return true;
	}
	return head->minor == 0;
}

/* True: another request may follow. */
static bool
run(struct kr_api_call *call, bool keep)
{
	struct kr_error err = { 0 };
	int result;

	call->status = call->route->status;
	result = call->route->run(call, &err);
	if (call->is_streaming)
		return false;
	return (result < 0 ? kr_api_answer_error(call, &err, keep) : kr_api_answer(call, keep)) && keep;
}

static bool
refuse_call(struct kr_api_call *call, const struct kr_api_refusal *refusal, bool keep)
{
	return kr_api_answer_refusal(call->io, refusal, call->head->method != KR_METHOD_HEAD, keep) && keep;
}

static bool
serve(struct kr_api_call *call)
{
	const struct kr_head *head = call->head;
	const bool has_body = head->framing == KR_FRAMING_CHUNKED || head->length > 0;
	kr_auto_buf struct kr_buf body = KR_BUF(KR_API_BODY_BYTES);
	struct kr_api_refusal refusal;
	const bool keep = !wants_close(call);

	if (!kr_api_judge(call, &refusal))
		return refuse_call(call, &refusal, keep && !has_body);
	if (!read_body(call->io, (size_t)head->length, head->expects, &body))
		return false;
	if (!kr_api_take_body(call, body.data ? body.data : "", body.len, &refusal))
		return refuse_call(call, &refusal, keep);
	return run(call, keep);
}

static bool
serve_one(const struct kr_api *api, struct kr_api_client *client, struct kr_api_io *io, bool is_first)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_head *head = kr_arena_new(&arena, struct kr_head);
	size_t n = read_head(io, is_first);
	struct kr_api_call call = { .api = api, .client = client, .arena = &arena, .head = head, .io = io };
	const char *why, *bytes;
	unsigned status;
	bool go_on;

	if (!n)
		return false;
	bytes = kr_arena_dup_n(&arena, io->bytes, n); /* the head points into it */
	drop_front(io, n);
	status = kr_request_parse(bytes, n, head, &why);
	if (status) {
		refuse(io, status, why);
		return false;
	}
	client->now_s = (uint64_t)time(NULL);
	go_on = serve(&call);
	kr_api_call_fini(&call);
	return go_on;
}

/* ---- a connection ---- */

/* An IPv4 one that came over a socket of version 6 as what it is. */
static const char *
local_address(int fd, char out[ADDRESS_TEXT])
{
	struct sockaddr_storage ours = { 0 };
	const struct sockaddr_in6 *six = (const void *)&ours;
	const struct sockaddr_in *four = (const void *)&ours;
	socklen_t n = sizeof(ours);

	if (getsockname(fd, (struct sockaddr *)&ours, &n) < 0)
		return NULL;
	if (ours.ss_family == AF_INET)
		return inet_ntop(AF_INET, &four->sin_addr, out, ADDRESS_TEXT);
	if (ours.ss_family != AF_INET6)
		return NULL;
	if (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr))
		return inet_ntop(AF_INET, &six->sin6_addr.s6_addr[12], out, ADDRESS_TEXT);
	return inet_ntop(AF_INET6, &six->sin6_addr, out, ADDRESS_TEXT);
}

static bool
is_our_user(int fd)
{
	uid_t uid;

	return kr_peer_uid(fd, &uid, NULL) == 0 && uid == geteuid();
}

void
kr_api_connection(const struct kr_api *api, int fd)
{
	kr_auto_fd int own = fd;
	struct kr_api_io *io = kr_xcalloc(1, sizeof(*io));
	char local[ADDRESS_TEXT];
	struct kr_api_client client = {
		.is_ours = kr_access_is_loopback(api->access) && is_our_user(own),
		.local = local_address(own, local),
	};

	io->fd = own;
	for (bool is_first = true; serve_one(api, &client, io, is_first); is_first = false)
		;
	linger(io);
	free(io);
}
