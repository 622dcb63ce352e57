/* What kraft-egress reads from kraft, taken for hostile: any bytes, any pieces, descriptors anywhere. */
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "egress/control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(const struct kr_answer *answer, bool has_fd)
{
	bool is_connected = answer->type == KR_ANSWER_DIRECT || answer->type == KR_ANSWER_UPSTREAM;

	if (!kr_answer_check(answer, has_fd))
		return;
	KR_BUG_IF(is_connected != has_fd);
	KR_BUG_IF(strpbrk(answer->text, "\r\n\x1b") != NULL);
	KR_BUG_IF(answer->bytes > (answer->type == KR_ANSWER_CALL ? KR_CALL_ANSWER_BYTES : 0));
}

/* Pieces: one byte of length and flags (top bit: a descriptor rides along), then so many bytes. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kr_answer answer = { 0 };
	struct kr_frame frame = { .bytes = &answer, .size = sizeof(answer), .fd = -1 };
	int fds[2];

	memcpy(&answer, data, size < sizeof(answer) ? size : sizeof(answer));
	check(&answer, true);
	check(&answer, false);
	if (size > 16384 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return 0;
	for (size_t at = 0, n; at + 1 < size; at += n + 1) {
		uint32_t used = 0;
		enum kr_frame_state state;

		n = (size_t)(data[at] & 0x7f) * 16 + 1;
		n = n < size - at - 1 ? n : size - at - 1;
		KR_BUG_IF(
			kr_frame_write(fds[0], data + at + 1, (uint32_t)n, &used, data[at] & 0x80 ? fds[0] : -1) != 1);
		while ((state = kr_frame_read(fds[1], &frame, true)) == KR_FRAME_DONE) {
			check(&answer, frame.fd >= 0);
			kr_close_p(&frame.fd);
			frame.used = 0;
		}
		if (state == KR_FRAME_END) {
			KR_BUG_IF(frame.fd >= 0);
			break;
		}
	}
	kr_close_p(&frame.fd);
	close(fds[0]);
	close(fds[1]);
	return 0;
}
