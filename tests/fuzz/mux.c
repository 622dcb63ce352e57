/*
 * What the inside of a session in a virtual machine may say to the outside, and the other way: any bytes, in any
 * pieces. The first byte chooses the end that takes them; then pieces, each a byte of length, its bytes, and a byte
 * that says what the owner does meanwhile. Whatever comes in: nothing is written outside of a ring, no window is
 * overrun, and what is said back fits where it is written.
 */
#include <string.h>

#include "base/base.h"
/* The guest is no part of kraft's library. */
#include "guest/mux.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct kg_mux mux;
static char rings[KG_RINGS_BYTES];

static void
check(void)
{
	for (unsigned i = 0; i < KG_STREAMS_MAX; i++) {
		const struct kg_stream *s = &mux.stream[i];

		KR_BUG_IF(s->n > KG_WINDOW || s->at >= KG_WINDOW || s->credit > KG_WINDOW);
		KR_BUG_IF(!s->closed_due && !s->sent_closed && s->n + s->owed > KG_WINDOW);
		KR_BUG_IF(!s->open && (s->n || s->owed || s->credit));
	}
	KR_BUG_IF(mux.out_at > mux.out_n || mux.out_n > KG_MUX_OUT || mux.left > KG_FRAME_BYTES);
}

/* What an owner does with a stream: passes on, says something, ends, lets go; and what is written goes out. */
static void
act(uint8_t how)
{
	const unsigned stream = how >> 3;
	size_t n;

	switch (how & 7) {
	case 0:
		(void)kg_mux_front(&mux, stream, &n);
		kg_mux_passed(&mux, stream, n);
		break;
	case 1:
		if (kg_mux_place(&mux, stream, &n))
			kg_mux_put(&mux, stream, n);
		break;
	case 2:
		kg_mux_end(&mux, stream);
		break;
	case 3:
		kg_mux_close(&mux, stream);
		break;
	case 4:
		if (!mux.is_outside)
			(void)kg_mux_open(&mux);
		break;
	case 5:
		mux.route_due = mux.size_due = true;
		break;
	default:
		(void)kg_mux_out(&mux, &n);
		kg_mux_sent(&mux, n);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	memset(&mux, 0, sizeof(mux));
	kg_mux_init(&mux, data[0] & 1, data[0] & 2, rings);
	for (size_t at = 1; at + 1 < size;) {
		size_t n = data[at] < size - at - 2 ? data[at] : size - at - 2;

		if (!kg_mux_take(&mux, (const char *)data + at + 1, n))
			return 0;
		check();
		act(data[at + 1 + n]);
		check();
		at += n + 2;
	}
	return 0;
}
