/* What a hostile kraft-egress writes: frames cut anywhere, descriptors where none may come, every field bent.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "egress/control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What passes is canonical: written and read again it is the same. */
static void
check(const struct kr_ask *ask)
{
	char text[KR_TARGET_TEXT];
	struct kr_target target, again;

	if (!kr_ask_check(ask, &target))
		return;
	if (ask->type == KR_ASK_CALL) {
		KR_BUG_IF(
			ask->bytes < sizeof(struct kr_call) || ask->bytes > KR_CALL_BYTES_MAX);
		return;
	}
	if (ask->type == KR_ASK_STRANGERS || ask->type == KR_ASK_TOLD)
		return; /* nobody is asked for */
	kr_target_format(&target, text);
	KR_BUG_IF(!kr_target_parse(text, strlen(text), &again, NULL));
	KR_BUG_IF(strcmp(again.host, ask->host) != 0 || again.port != ask->port);
	KR_BUG_IF(again.is_address != target.is_address || !kr_address_same(&again.address, &target.address));
}

/* The first byte says how large the pieces are; the top bit, whether a descriptor rides on the second piece.
 */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kr_ask ask = { 0 };
	struct kr_frame frame = { .bytes = &ask, .size = sizeof(ask), .fd = -1 };
	int fds[2];

	memcpy(&ask, data, size < sizeof(ask) ? size : sizeof(ask));
	check(&ask);
	if (size < 2 || size > 4096 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return 0;
	for (size_t at = 1, piece = (data[0] & 0x7fu) + 1, n; at < size; at += n) {
		uint32_t used = 0;
		enum kr_frame_state state;

		n = size - at < piece ? size - at : piece;
		KR_BUG_IF(kr_frame_write(fds[0], data + at, (uint32_t)n, &used,
					  at == piece + 1 && data[0] & 0x80 ? fds[0] : -1) != 1);
		while ((state = kr_frame_read(fds[1], &frame, false)) == KR_FRAME_DONE) {
			check(&ask);
			frame.used = 0;
		}
		KR_BUG_IF(frame.fd >= 0);
		if (state == KR_FRAME_END)
			break;
	}
	close(fds[0]);
	close(fds[1]);
	return 0;
}
