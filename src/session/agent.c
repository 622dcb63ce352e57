/*
 * A log holds up to 64 MiB; so much as is kept here is what the parser's 2 s of processor time are enough
 * for. The end tells what was used in all, the beginning which conversation it is. A line that was cut is
 * none.
 */
#include "session/agent.h"

#include "base/buf.h"
#include "base/fd.h"
#include "session/facts.h"
#include "session/log.h"

enum { OUT_HEAD = 1 << 20, OUT_TAIL = 4 << 20, ERR_TAIL = 64 << 10 };

/* The first `head` bytes of a stream and its last ones, `tail` to twice as many. */
struct kept {
	struct kr_buf buf;
	size_t head, tail;
	bool is_cut; /* until the next line begins */
};

/* Forgets the line that is not whole yet. */
static void
cut(struct kept *k)
{
	while (k->buf.len && k->buf.data[k->buf.len - 1] != '\n')
		k->buf.len--;
	k->is_cut = true;
}

static void
drop_middle(struct kept *k)
{
	struct kr_buf *b = &k->buf;
	const char *from = memchr(b->data + b->len - k->tail, '\n', k->tail), *end = b->data + b->len;
	struct kept head = { .buf = { .data = b->data, .len = k->head } };

	cut(&head);
	if (!from) { /* one line only; what it begins with goes, so all of it does */
		b->len = head.buf.len;
		k->is_cut = true;
		return;
	}
	memmove(b->data + head.buf.len, from + 1, (size_t)(end - from) - 1);
	b->len = head.buf.len + (size_t)(end - from) - 1;
}

static void
keep(struct kept *k, const char *bytes, size_t n)
{
	if (k->is_cut) {
		const char *line = memchr(bytes, '\n', n);

		if (!line)
			return;
		n -= (size_t)(line + 1 - bytes);
		bytes = line + 1;
		k->is_cut = false;
	}
	kr_buf_add(&k->buf, bytes, n);
	if (k->buf.len > k->head + 2 * k->tail)
		drop_middle(k);
}

struct streams {
	struct kept out, err;
};

static int
visit(void *context, const struct kr_log_piece *piece)
{
	struct streams *s = context;

	if (piece->stream == KR_LOG_STDERR)
		keep(&s->err, piece->bytes, piece->n);
	else if (piece->stream != KR_LOG_NOTE)
		keep(&s->out, piece->bytes, piece->n);
	else if (!piece->ms) { /* a gap */
		cut(&s->out);
		cut(&s->err);
	}
	return 0;
}

static int
read_streams(int folder, struct streams *s, struct kr_error *err)
{
	struct kr_log_reader reader;
	long pieces;

	kr_log_reader_init(&reader, folder);
	pieces = kr_log_reader_next(&reader, visit, s, err);
	kr_log_reader_fini(&reader);
	return pieces < 0 ? -1 : 0;
}

/* What it wrote to its standard error stands before its lines. */
static int
parse(enum kr_reader reader, struct streams *s, struct kr_agent_seen *out, struct kr_error *err)
{
	kr_auto_buf struct kr_buf all = KR_BUF(OUT_HEAD + 2 * OUT_TAIL + 2 * ERR_TAIL + (64 << 10));
	struct kr_agent_clock clock;

	kr_agent_clock_read(&clock);
	kr_buf_reserve(&all, s->err.buf.len + s->out.buf.len + 1);
	kr_buf_add(&all, s->err.buf.data, s->err.buf.len);
	kr_buf_adds(&all, "\n");
	kr_buf_add(&all, s->out.buf.data, s->out.buf.len);
	return kr_agent_stream_parse_apart(reader, all.data, all.len, &clock, out, err);
}

int
kr_agent_stream_read(const char *run_dir, const char *session, enum kr_reader reader,
	struct kr_agent_seen *out, struct kr_error *err)
{
	const size_t chunk = 64 << 10; /* more than a piece of the log */
	struct streams s = { .out = { .head = OUT_HEAD, .tail = OUT_TAIL }, .err = { .tail = ERR_TAIL } };
	kr_auto_fd int folder = -1;
	int result;

	*out = (struct kr_agent_seen){ 0 };
	if (reader == KR_READER_NONE)
		return 0;
	folder = kr_session_folder_open(run_dir, session, NULL);
	if (folder < 0)
		return 0;
	s.out.buf.max = OUT_HEAD + 2 * OUT_TAIL + chunk;
	s.err.buf.max = 2 * ERR_TAIL + chunk;
	result = read_streams(folder, &s, err) < 0 ? -1 : parse(reader, &s, out, err);
	kr_buf_fini(&s.out.buf);
	kr_buf_fini(&s.err.buf);
	return result;
}
