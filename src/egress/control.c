/*
 * The frames between kraft-egress and kraft: checks, and moving them over a socket that never blocks.
 *
 * Either side may be hostile to the other: kraft-egress after a mistake in its parser, kraft never, but
 * kraft-egress checks it all the same, so that a mistake of ours ends one process and not two. A frame is
 * believed field by field only after its check; a field that has no meaning must be zero, so that there is
 * one way to write a frame.
 *
 * A descriptor belongs to the frame in which it arrives. Reads end at the frame's end, and the kernel ends a
 * read behind bytes that carry a descriptor, so none can be taken for the next frame's. Where none may come
 * there is no room for one: the kernel then makes none and says MSG_CTRUNC, so a sender cannot fill this
 * process's table even for a moment.
 *
 * Only recvmsg and sendmsg are called: kraft-egress's filter knows no other way.
 */
#include "egress/control.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/portable.h"

/* ---- checks ---- */

static bool
is_zero(const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i])
			return false;
	return true;
}

static bool
check_call(const struct kr_ask *ask)
{
	return !ask->port && is_zero(ask->host, sizeof(ask->host)) && ask->bytes >= sizeof(struct kr_call) &&
		   ask->bytes <= KR_CALL_BYTES_MAX;
}

static bool
check_strangers(const struct kr_ask *ask)
{
	return ask->id && !ask->port && !ask->client_port && !ask->bytes && is_zero(ask->host, sizeof(ask->host));
}

/* Another spelling of the same host is as bad as none: what is judged must be what was written. */
static bool
check_host(const struct kr_ask *ask, struct kr_target *out)
{
	size_t n = strnlen(ask->host, sizeof(ask->host));

	return n < sizeof(ask->host) && is_zero(ask->host + n, sizeof(ask->host) - n) && kr_target_of_host(ask->host, out);
}

const char *
kr_told_words(unsigned told)
{
	static const char *const words[KR_TOLD_HEAD] = {
#define X(name, text) [KR_TOLD_##name] = text,
		KR_TOLDS(X)
#undef X
	};

	return told < KR_COUNT(words) ? words[told] : NULL;
}

static bool
check_told(const struct kr_ask *ask)
{
	struct kr_target name;
	bool is_named = ask->bytes == KR_TOLD_OTHER_NAME;
	bool is_known = ask->bytes == KR_TOLD_ECHO || kr_told_words(ask->bytes) || (ask->bytes > KR_TOLD_HEAD && ask->bytes < KR_TOLD_END);

	return ask->id < KR_MANAGED_RULES && is_known && !ask->port && !ask->client_port &&
		   (is_named ? check_host(ask, &name) : is_zero(ask->host, sizeof(ask->host)));
}

bool
kr_ask_check(const struct kr_ask *ask, struct kr_target *out)
{
	struct kr_target target;

	if (ask->client_port > 65535)
		return false;
	if (ask->type == KR_ASK_TOLD)
		return check_told(ask);
	if (ask->type == KR_ASK_STRANGERS)
		return check_strangers(ask);
	if (ask->type == KR_ASK_CALL)
		return check_call(ask);
	if (ask->type < KR_ASK_CONNECT || ask->type >= KR_ASK_TYPE_END || ask->bytes || ask->port < 1 || ask->port > 65535 ||
		!check_host(ask, &target))
		return false;
	target.port = ask->port;
	*out = target;
	return true;
}

static bool
is_printable(const char *text)
{
	for (; *text; text++)
		if (*text < 0x20 || *text > 0x7e)
			return false;
	return true;
}

bool
kr_answer_check(const struct kr_answer *answer, bool has_fd)
{
	if (answer->zero || answer->zero2 ||
		(answer->type != KR_ANSWER_CALL && (answer->bytes || answer->next)) ||
		strnlen(answer->text, sizeof(answer->text)) == sizeof(answer->text) || !is_printable(answer->text))
		return false;
	switch (answer->type) {
	case KR_ANSWER_DIRECT:
		return has_fd && answer->status == 0 && !answer->text[0];
	case KR_ANSWER_UPSTREAM:
		return has_fd && answer->status == 0;
	case KR_ANSWER_REFUSED:
		return !has_fd && answer->status == 403 && answer->text[0];
	case KR_ANSWER_FAILED:
		return !has_fd && answer->status >= 502 && answer->status <= 504 && answer->text[0];
	case KR_ANSWER_CALL:
		return !has_fd && answer->status >= 200 && answer->status <= 599 && !answer->text[0] &&
			   answer->next >= 0 && answer->bytes <= KR_CALL_ANSWER_BYTES;
	default:
		return false;
	}
}

/* ---- moving ---- */

/* Descriptors that one message may carry without being cut; more than one ends the conversation anyway. */
enum { ROOM = 4 };

union room {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(ROOM * sizeof(int))];
};

/* Takes every descriptor of the message: the first into *fd, the rest are closed. False for too many. */
static bool
take_descriptors(struct msghdr *message, int *fd)
{
	bool good = !(message->msg_flags & MSG_CTRUNC);
	int each;

	for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at; at = CMSG_NXTHDR(message, at)) {
		if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= at->cmsg_len; i++) {
			memcpy(&each, CMSG_DATA(at) + i * sizeof(int), sizeof(each));
			if (*fd < 0) {
				*fd = each;
				continue;
			}
			kr_close_p(&each);
			good = false;
		}
	}
	return good;
}

static enum kr_frame_state
end_of(struct kr_frame *frame)
{
	kr_close_p(&frame->fd);
	return KR_FRAME_END;
}

enum kr_frame_state
kr_frame_read(int socket_fd, struct kr_frame *frame, bool takes_fd)
{
	KR_BUG_IF(frame->used >= frame->size);
	while (frame->used < frame->size) {
		union room room;
		struct iovec part = { (char *)frame->bytes + frame->used, frame->size - frame->used };
		struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
		int fd = -1;
		bool good;
		ssize_t got;

		if (takes_fd) {
			message.msg_control = room.bytes;
			message.msg_controllen = sizeof(room.bytes);
		}
		got = kr_socket_receive(socket_fd, &message);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return KR_FRAME_MORE;
		if (got <= 0)
			return end_of(frame);
		good = take_descriptors(&message, &fd) && (fd < 0 || frame->used == 0);
		if (!good) {
			kr_close_p(&fd);
			return end_of(frame);
		}
		if (fd >= 0)
			frame->fd = fd;
		frame->used += (uint32_t)got;
	}
	return KR_FRAME_DONE;
}

int
kr_frame_write(int socket_fd, const void *bytes, uint32_t size, uint32_t *used, int fd)
{
	while (*used < size) {
		union room room = { .bytes = { 0 } };
		struct iovec part = { (char *)(uintptr_t)bytes + *used, size - *used };
		struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
		ssize_t sent;

		if (fd >= 0 && *used == 0) {
			message.msg_control = room.bytes;
			message.msg_controllen = CMSG_SPACE(sizeof(int));
			*CMSG_FIRSTHDR(&message) = (struct cmsghdr){
				.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))
			};
			memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &fd, sizeof(fd));
		}
		sent = sendmsg(socket_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -1;
		*used += (uint32_t)sent;
	}
	return 1;
}
