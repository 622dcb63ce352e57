/* What comes on the channel socket: any bytes, any number of descriptors of any kind. None may be left open.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "egress/channel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 12 };

static void
send_piece(int fd, const uint8_t *bytes, size_t n, size_t count)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(MOST * sizeof(int))];
	} room = { .bytes = { 0 } };
	struct iovec part = { (void *)(uintptr_t)bytes, n };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	int fds[MOST];

	for (size_t i = 0; i < count; i++)
		fds[i] = i % 2 ? STDERR_FILENO : fd;
	if (count) {
		message.msg_control = room.bytes;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		*CMSG_FIRSTHDR(&message) = (struct cmsghdr){
			.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(count * sizeof(int))
		};
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), fds, count * sizeof(int));
	}
	(void)sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Pieces: a byte of length and number of descriptors, then so many bytes. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int pair[2], before, after;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return 0;
	before = dup(pair[0]);
	for (size_t at = 0, n; at + 1 < size; at += n + 1) {
		enum kr_hand_over got;
		int listener = -1;
		uint32_t number;

		n = 1 + (data[at] & 7);
		n = n < size - at - 1 ? n : size - at - 1;
		send_piece(pair[0], data + at + 1, n, (data[at] >> 3) % (MOST + 1));
		got = kr_hand_over_read(pair[1], &listener, &number);
		KR_BUG_IF((got == KR_HAND_OVER_LISTENER || got == KR_HAND_OVER_CONNECTION) != (listener >= 0));
		if (listener >= 0) {
			KR_BUG_IF(data[at + 1] != (got == KR_HAND_OVER_LISTENER ? 'L' : 'C'));
			KR_BUG_IF(kr_listener_check(listener)); /* none of these listens */
		}
		kr_close_p(&listener);
		after = dup(pair[0]);
		KR_BUG_IF(after != before + 1);
		kr_close_p(&after);
		if (got == KR_HAND_OVER_BAD)
			break;
	}
	kr_close_p(&before);
	kr_close_p(&pair[0]);
	kr_close_p(&pair[1]);
	return 0;
}
