/*
 * The whole machine of one connection: the client's and the server's bytes in any pieces, kraft's answers of
 * any kind, ends at any time. What a server is sent for a plain request is one message that llhttp reads
 * without complaint, or the beginning of one; nothing is asked twice.
 *
 * An input that begins with 0xff is of a proxy on loopback: then nothing is asked unless the client's bytes hold the
 * token.
 */
#include <llhttp.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "egress/connection.h"
#include "egress/loop.h"
#include "egress/token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROUNDS = 4 };

#define TOKEN "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
/* One of these is in every spelling of the token, as many bytes as its name may have. */
static const char *const spellings[] = { "AxMjM0NTY3ODlhYmNkZWYw", "wMTIzNDU2Nzg5YWJjZGVm", "MDEyMzQ1Njc4OWFiY2Rl" };

static struct kr_egress egress;

struct play {
	int client, control, server;
	bool asked, answered, plain;
	bool complete; /* the server has a whole message */
	bool on_loopback;
	size_t sent_n;
	char sent[1 << 12]; /* on loopback: what the client sent; more than fits is not sent */
	struct kr_ask ask;
	llhttp_t reader;
	llhttp_settings_t settings;
};

static int
on_complete(llhttp_t *parser)
{
	((struct play *)parser->data)->complete = true;
	return HPE_PAUSED;
}

static void
read_server(struct play *play)
{
	static char bytes[1 << 16];
	ssize_t n;

	while (play->server >= 0 && (n = recv(play->server, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
		if (!play->plain)
			continue;
		KR_BUG_IF(play->complete); /* something rides behind the request */
		llhttp_errno_t result = llhttp_execute(&play->reader, bytes, (size_t)n);

		KR_BUG_IF(result != HPE_OK && !play->complete);
		KR_BUG_IF(play->complete && llhttp_get_error_pos(&play->reader) != bytes + n);
	}
}

static void
read_call(struct play *play)
{
	struct kr_call *call = malloc(play->ask.bytes);

	KR_BUG_IF(!call || recv(play->control, call, play->ask.bytes, MSG_DONTWAIT) != (ssize_t)play->ask.bytes);
	KR_BUG_IF(!kr_call_check(call, play->ask.bytes));
	free(call);
}

static bool
has_said(const struct play *play)
{
	for (size_t i = 0; i < KR_COUNT(spellings); i++)
		if (memmem(play->sent, play->sent_n, spellings[i], strlen(spellings[i])))
			return true;
	return false;
}

static void
go_on(struct play *play)
{
	static char bytes[1 << 16];
	struct kr_target target;

	for (int i = 0; i < ROUNDS && !egress.broken; i++)
		kr_egress_round(&egress, 0);
	while (play->client >= 0 && recv(play->client, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	read_server(play);
	if (recv(play->control, &play->ask, sizeof(play->ask), MSG_DONTWAIT) != (ssize_t)sizeof(play->ask))
		return;
	KR_BUG_IF(play->asked || !kr_ask_check(&play->ask, &target));
	if (play->ask.type == KR_ASK_STRANGERS) {
		KR_BUG_IF(!play->on_loopback);
		return;
	}
	KR_BUG_IF(play->on_loopback && !has_said(play));
	play->asked = true;
	play->plain = play->ask.type == KR_ASK_HTTP;
	if (play->ask.type == KR_ASK_CALL)
		read_call(play);
	else
		KR_BUG_IF(strcmp(target.host, "kraft") == 0); /* never a host to reach */
}

/* How a call is answered: a body of any length, or a refusal. */
static void
answer_call(struct play *play, unsigned how)
{
	struct kr_answer frame = { .type = KR_ANSWER_CALL, .id = play->ask.id, .status = 200, .next = how };
	static char body[KR_CALL_ANSWER_BYTES];
	uint32_t used = 0, body_used = 0;

	if (how & 1) {
		frame.type = KR_ANSWER_REFUSED;
		frame.status = 403;
		frame.next = 0;
		memcpy(frame.text, "no", 3);
	} else {
		frame.bytes = how * how; /* so many as the socket takes at once */
	}
	KR_BUG_IF(kr_frame_write(play->control, &frame, sizeof(frame), &used, -1) != 1);
	if (frame.bytes)
		KR_BUG_IF(kr_frame_write(play->control, body, frame.bytes, &body_used, -1) != 1);
}

static void
answer(struct play *play, unsigned how)
{
	struct kr_answer frame = { .type = 1 + how % (KR_ANSWER_CALL - 1), .id = play->ask.id };
	bool connects = frame.type == KR_ANSWER_DIRECT || frame.type == KR_ANSWER_UPSTREAM;
	int pair[2] = { -1, -1 };
	uint32_t used = 0;

	if (!play->asked || play->answered)
		return;
	play->answered = true;
	if (play->ask.type == KR_ASK_CALL) {
		answer_call(play, how);
		return;
	}
	if (connects && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
		return;
	frame.status = connects ? 0 : frame.type == KR_ANSWER_REFUSED ? 403 : 502;
	if (frame.type != KR_ANSWER_DIRECT)
		memcpy(frame.text, "Basic eDp5", 10);
	KR_BUG_IF(kr_frame_write(play->control, &frame, sizeof(frame), &used, pair[0]) != 1);
	kr_close_p(&pair[0]);
	play->server = pair[1];
}

static void
step(struct play *play, unsigned what, const uint8_t *bytes, size_t n)
{
	int to = what & 1 ? play->server : play->client;
	size_t room = sizeof(play->sent) - play->sent_n;

	if (play->on_loopback && !(what & 1) && !(what & 4)) {
		n = n < room ? n : room;
		memcpy(play->sent + play->sent_n, bytes, n);
		play->sent_n += n;
	}

	switch (what >> 1 & 3) {
	case 0:
	case 1:
		if (to >= 0 && n)
			(void)send(to, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
		break;
	case 2:
		answer(play, n ? bytes[0] : 0);
		break;
	case 3:
		if (to >= 0 && what & 8)
			(void)shutdown(to, SHUT_WR);
		else if (what & 1)
			kr_close_p(&play->server);
		else
			kr_close_p(&play->client);
		break;
	}
	go_on(play);
}

/* Steps: a byte of what, a byte of how many, then so many bytes. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct play play;
	int control[2], client[2], channels[2];

	(void)signal(SIGPIPE, SIG_IGN);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, control) < 0 ||
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, client) < 0 ||
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, channels) < 0)
		return 0;
	play = (struct play){ .server = -1, .on_loopback = size && data[0] == 0xff };
	KR_BUG_IF(kr_egress_init(&egress, control[0], channels[0], play.on_loopback ? TOKEN : NULL, KR_EGRESS_FILES) < 0);
	play.control = control[1];
	play.client = client[1];
	play.settings.on_message_complete = on_complete;
	llhttp_init(&play.reader, HTTP_REQUEST, &play.settings);
	play.reader.data = &play;
	kr_connection_accept(&egress, client[0], play.on_loopback ? 1234 : 0);
	for (size_t at = play.on_loopback, n; at + 2 <= size && !egress.broken; at += 2 + n) {
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
