#include "guest/mux.h"

#include <string.h>

#include "guest/protocol.h"

enum { CREDIT_STEP = KG_WINDOW / 4, ERRNO_MAX = 4095, HEAD = sizeof(struct kg_frame) };

_Static_assert(sizeof(struct kg_frame) == 8, "a frame's head has no holes");
_Static_assert(KG_MUX_OUT > 2 * (HEAD + KG_FRAME_BYTES), "there is room for data beside what has to be said");

static char *
ring_of(const struct kg_mux *mux, unsigned stream)
{
	return mux->rings + (size_t)stream * KG_WINDOW;
}

static void
open_stream(struct kg_mux *mux, unsigned stream)
{
	mux->stream[stream] = (struct kg_stream){ .open = true, .credit = KG_WINDOW };
}

void
kg_mux_init(struct kg_mux *mux, bool is_outside, bool terminal, char *rings)
{
	mux->is_outside = is_outside;
	mux->rings = rings;
	mux->hello_due = !is_outside;
	for (unsigned i = 0; i < KG_STREAM_FIRST; i++)
		if (i != KG_STREAM_TERMINAL || terminal)
			open_stream(mux, i);
	/* The command's own streams go one way. */
	for (unsigned i = KG_STREAM_STDIN; i <= KG_STREAM_STDERR; i++)
		if ((i == KG_STREAM_STDIN) == is_outside)
			mux->stream[i].got_end = true;
		else
			mux->stream[i].sent_end = true;
}

/* ---- taking ---- */

static void
free_if_over(struct kg_stream *s)
{
	if (s->got_closed && s->sent_closed)
		*s = (struct kg_stream){ 0 };
}

static bool
is_let_go(const struct kg_stream *s)
{
	return s->closed_due || s->sent_closed;
}

/* The inside's words come whole, so nobody waits for the rest of one. */
static bool
data_may_come(const struct kg_mux *mux, unsigned stream, uint32_t bytes)
{
	const struct kg_stream *s = &mux->stream[stream];

	if (!s->open || s->got_end || s->got_closed || bytes == 0 || bytes > KG_FRAME_BYTES)
		return false;
	if (mux->is_outside && stream == KG_STREAM_TALK && bytes % sizeof(struct kg_message))
		return false;
	/* What still comes on one that was let go of is dropped, and was within the window all the same. */
	return is_let_go(s) || bytes <= KG_WINDOW - s->n - s->owed;
}

static bool
take_credit(struct kg_stream *s, uint32_t bytes)
{
	if (!s->open || s->got_closed || bytes == 0 || bytes > KG_WINDOW - s->credit)
		return false;
	s->credit += bytes;
	return true;
}

static bool
take_mark(struct kg_stream *s, bool *mark, uint32_t value)
{
	if (!s->open || s->got_closed || *mark || value)
		return false;
	*mark = true;
	free_if_over(s);
	return true;
}

static bool
take_open(struct kg_mux *mux, unsigned stream, uint32_t value)
{
	if (!mux->is_outside || stream < KG_STREAM_FIRST || mux->stream[stream].open || value)
		return false;
	open_stream(mux, stream);
	return true;
}

static bool
take_route(struct kg_mux *mux, uint32_t value)
{
	if (mux->route_came || value > (mux->is_outside ? 0 : ERRNO_MAX))
		return false;
	mux->route_came = true;
	mux->route_value = value;
	return true;
}

/* Those that are of no stream. */
static bool
take_word(struct kg_mux *mux, const struct kg_frame *f)
{
	switch (f->kind) {
	case KG_FRAME_ROUTE:
		return take_route(mux, f->value);
	case KG_FRAME_SIZE:
		mux->size_came = true; /* only the newest one counts */
		mux->size_value = f->value;
		return !mux->is_outside;
	case KG_FRAME_BYE:
		if (!mux->is_outside || mux->bye_came || f->value)
			return false;
		mux->bye_came = true;
		return true;
	default:
		return false;
	}
}

static bool
take_head(struct kg_mux *mux)
{
	const struct kg_frame *f = &mux->head;
	struct kg_stream *s;

	if (f->zero || f->stream >= KG_STREAMS_MAX)
		return false;
	if (mux->is_outside && !mux->greeted) {
		mux->greeted = f->kind == KG_FRAME_HELLO && f->value == KG_HELLO && f->stream == 0;
		return mux->greeted;
	}
	s = &mux->stream[f->stream];
	switch (f->kind) {
	case KG_FRAME_OPEN:
		return take_open(mux, f->stream, f->value);
	case KG_FRAME_DATA:
		mux->left = f->value;
		return data_may_come(mux, f->stream, f->value);
	case KG_FRAME_CREDIT:
		return take_credit(s, f->value);
	case KG_FRAME_END:
		return take_mark(s, &s->got_end, f->value);
	case KG_FRAME_CLOSED:
		return take_mark(s, &s->got_closed, f->value);
	default:
		return f->stream == 0 && take_word(mux, f);
	}
}

/* Into the ring, or away. */
static void
take_data(struct kg_mux *mux, const char *bytes, uint32_t n)
{
	struct kg_stream *s = &mux->stream[mux->head.stream];
	char *ring = ring_of(mux, mux->head.stream);
	uint32_t to = (s->at + s->n) % KG_WINDOW, first = KG_WINDOW - to < n ? KG_WINDOW - to : n;

	mux->left -= n;
	if (is_let_go(s))
		return;
	memcpy(ring + to, bytes, first);
	memcpy(ring, bytes + first, n - first);
	s->n += n;
}

bool
kg_mux_take(struct kg_mux *mux, const char *bytes, size_t n)
{
	while (n) {
		size_t piece;

		if (mux->left) {
			piece = n < mux->left ? n : mux->left;
			take_data(mux, bytes, (uint32_t)piece);
		} else {
			piece = n < HEAD - mux->head_bytes ? n : HEAD - mux->head_bytes;
			memcpy((char *)&mux->head + mux->head_bytes, bytes, piece);
			mux->head_bytes += (uint32_t)piece;
			if (mux->head_bytes == HEAD) {
				mux->head_bytes = 0;
				if (!take_head(mux))
					return false;
			}
		}
		bytes += piece;
		n -= piece;
	}
	return true;
}

const char *
kg_mux_front(const struct kg_mux *mux, unsigned stream, size_t *n)
{
	const struct kg_stream *s = &mux->stream[stream];

	*n = KG_WINDOW - s->at < s->n ? KG_WINDOW - s->at : s->n;
	return ring_of(mux, stream) + s->at;
}

void
kg_mux_passed(struct kg_mux *mux, unsigned stream, size_t n)
{
	struct kg_stream *s = &mux->stream[stream];

	s->n -= (uint32_t)n;
	s->owed += (uint32_t)n;
	s->at = s->n ? (s->at + (uint32_t)n) % KG_WINDOW : 0; /* from the front again: less memory is touched */
}

/* ---- saying ---- */

static size_t
room(struct kg_mux *mux)
{
	if (mux->out_at == mux->out_n)
		mux->out_at = mux->out_n = 0;
	if (mux->out_at > KG_MUX_OUT / 2) {
		memmove(mux->out, mux->out + mux->out_at, mux->out_n - mux->out_at);
		mux->out_n -= mux->out_at;
		mux->out_at = 0;
	}
	return KG_MUX_OUT - mux->out_n;
}

static bool
say(struct kg_mux *mux, enum kg_frame_kind kind, unsigned stream, uint32_t value)
{
	const struct kg_frame f = { .kind = (uint8_t)kind, .stream = (uint16_t)stream, .value = value };

	if (room(mux) < HEAD)
		return false;
	memcpy(mux->out + mux->out_n, &f, HEAD);
	mux->out_n += HEAD;
	return true;
}

/* What is due and finds room is due no more. */
static bool
say_due(struct kg_mux *mux, bool *due, enum kg_frame_kind kind, unsigned stream, uint32_t value)
{
	if (*due && say(mux, kind, stream, value)) {
		*due = false;
		return true;
	}
	return false;
}

/* Credit is no use to one that ended. */
static void
say_of_stream(struct kg_mux *mux, unsigned stream)
{
	struct kg_stream *s = &mux->stream[stream];

	(void)say_due(mux, &s->open_due, KG_FRAME_OPEN, stream, 0);
	if (s->owed >= CREDIT_STEP && !s->got_end && !s->got_closed && !is_let_go(s) &&
		say(mux, KG_FRAME_CREDIT, stream, s->owed))
		s->owed = 0;
	if (say_due(mux, &s->end_due, KG_FRAME_END, stream, 0))
		s->sent_end = true;
	if (!s->end_due && !s->open_due && say_due(mux, &s->closed_due, KG_FRAME_CLOSED, stream, 0)) {
		s->sent_closed = true;
		free_if_over(s);
	}
}

const char *
kg_mux_out(struct kg_mux *mux, size_t *n)
{
	(void)say_due(mux, &mux->hello_due, KG_FRAME_HELLO, 0, KG_HELLO);
	(void)say_due(mux, &mux->route_due, KG_FRAME_ROUTE, 0, mux->route);
	(void)say_due(mux, &mux->size_due, KG_FRAME_SIZE, 0, mux->size);
	for (unsigned i = 0; i < KG_STREAMS_MAX; i++)
		if (mux->stream[i].open)
			say_of_stream(mux, i);
	(void)say_due(mux, &mux->bye_due, KG_FRAME_BYE, 0, 0);
	*n = mux->out_n - mux->out_at;
	return mux->out + mux->out_at;
}

void
kg_mux_sent(struct kg_mux *mux, size_t n)
{
	mux->out_at += n;
}

char *
kg_mux_place(struct kg_mux *mux, unsigned stream, size_t *most)
{
	const struct kg_stream *s = &mux->stream[stream];

	/* As much is left as has to be said of all streams; and nothing goes before the hello. */
	if (!s->open || s->open_due || s->end_due || s->sent_end || is_let_go(s) || s->got_closed || !s->credit ||
		mux->hello_due || room(mux) < 2 * (HEAD + KG_FRAME_BYTES))
		return NULL;
	*most = s->credit < KG_FRAME_BYTES ? s->credit : KG_FRAME_BYTES;
	return mux->out + mux->out_n + HEAD;
}

void
kg_mux_put(struct kg_mux *mux, unsigned stream, size_t n)
{
	(void)say(mux, KG_FRAME_DATA, stream, (uint32_t)n);
	mux->out_n += n;
	mux->stream[stream].credit -= (uint32_t)n;
}

void
kg_mux_end(struct kg_mux *mux, unsigned stream)
{
	struct kg_stream *s = &mux->stream[stream];

	if (s->open && !s->sent_end && !is_let_go(s))
		s->end_due = true;
}

void
kg_mux_close(struct kg_mux *mux, unsigned stream)
{
	struct kg_stream *s = &mux->stream[stream];

	if (!s->open || is_let_go(s))
		return;
	s->closed_due = true;
	s->n = s->at = 0;
}

static unsigned
free_number(const struct kg_mux *mux)
{
	for (unsigned i = KG_STREAM_FIRST; i < KG_STREAMS_MAX; i++)
		if (!mux->stream[i].open)
			return i;
	return 0;
}

bool
kg_mux_has_place(const struct kg_mux *mux)
{
	return free_number(mux) != 0;
}

unsigned
kg_mux_open(struct kg_mux *mux)
{
	unsigned i = free_number(mux);

	if (i) {
		open_stream(mux, i);
		mux->stream[i].open_due = true;
	}
	return i;
}
