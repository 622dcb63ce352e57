/*
 * Events, by pages and as they come. A stream is a loop of "what is newer than the last one": the store's
 * number is the only state, so a client that was cut off goes on where it was by naming it (Last-Event-ID),
 * and one that is slow holds up nobody but its own process.
 */
#include "api/internal.h"

#include <strings.h>

#include "base/text.h"
#include "os/timer.h"

enum {
	FOLLOW_MS = 250,
	COMMENT_MS = 15000,
	LIMIT = 100,
	PAGE_BYTES = 4 << 20,
	LINE_BYTES = KR_EVENT_JSON_BYTES + 64
};

/* ---- a page ---- */

struct page {
	json_t *events;
	size_t limit, bytes;
	bool more;
};

static int
add_event(void *context, const struct kr_event *event)
{
	kr_auto_buf struct kr_buf line = KR_BUF(LINE_BYTES);
	struct page *page = context;

	if (json_array_size(page->events) == page->limit || page->bytes > PAGE_BYTES) {
		page->more = true;
		return -1;
	}
	kr_event_json(event, &line);
	page->bytes += line.len;
	json_array_append_new(page->events, json_loadb(line.data, line.len, 0, NULL));
	return 0;
}

int
kr_api_events_list(struct kr_api_call *call, struct kr_error *err)
{
	struct page page = { .events = json_array(), .limit = (size_t)kr_api_number(call, "limit", LIMIT) };
	struct kr_event_query query = { .after = kr_api_number(call, "after_seq", 0),
		.type = kr_api_text(call, "type") };
	struct kr_item_row row = { 0 };
	int result = kr_api_open(call, err);

	if (result == 0)
		result = kr_store_item_get(call->arena, call->work.store, call->param[0], &row, err);
	query.item = row.id;
	if (result == 0 && kr_store_events(call->work.store, &query, add_event, &page, err) < 0)
		result = -1;
	call->json = json_pack("{s:o, s:b}", "events", page.events, "more", page.more);
	return result;
}

/* ---- a stream ---- */

struct stream {
	struct kr_api_call *call;
	struct kr_event_query query; /* after: the last one that was sent or passed over */
	int64_t said_ms;             /* when something was */
	bool is_gone;
};

/* An event's JSON is one line of ASCII. */
static int
send_event(void *context, const struct kr_event *event)
{
	kr_auto_buf struct kr_buf out = KR_BUF(LINE_BYTES);
	struct stream *s = context;

	kr_buf_addf(&out, "id: %lld\ndata: ", (long long)event->seq);
	kr_event_json(event, &out);
	kr_buf_adds(&out, "\n");
	s->is_gone = out.overflow || !kr_api_stream_add(s->call, out.data, out.len);
	s->query.after = event->seq;
	s->said_ms = kr_clock_ms();
	return s->is_gone ? -1 : 0;
}

static bool
say_something(struct stream *s)
{
	static const char comment[] = ": nothing new\n\n";

	if (kr_clock_ms() - s->said_ms < COMMENT_MS)
		return true;
	s->said_ms = kr_clock_ms();
	return kr_api_stream_add(s->call, comment, strlen(comment));
}

static int
note_seq(void *context, const struct kr_event *event)
{
	*(int64_t *)context = event->seq;
	return 0;
}

/* What is not asked for is passed over once, and not with each look again. */
static int
send_new(struct stream *s, struct kr_error *err)
{
	const struct kr_event_query last = { .newest = 1 };
	struct kr_store *store = s->call->work.store;
	int64_t newest = 0;

	if (kr_store_events(store, &last, note_seq, &newest, err) < 0)
		return -1;
	if (newest <= s->query.after)
		return 0;
	if (kr_store_events(store, &s->query, send_event, s, err) < 0)
		return -1;
	if (!s->is_gone && s->query.after < newest)
		s->query.after = newest;
	return 0;
}

static int
follow(struct stream *s, struct kr_error *err)
{
	do {
		if (send_new(s, err) < 0)
			return -1;
	} while (!s->is_gone && say_something(s) && kr_api_stream_nap(s->call, FOLLOW_MS));
	return 0;
}

static bool
accepts_stream(const struct kr_api_call *call)
{
	const char *accept = kr_api_header(call, "accept");

	return !*accept || strcasestr(accept, "text/event-stream") || strstr(accept, "*/*") ||
		   strcasestr(accept, "text/*");
}

/* What a browser that was cut off says of itself is newer than the address it began with. */
static int64_t
first_number(const struct kr_api_call *call)
{
	uint64_t seen;

	if (kr_text_to_u64(kr_api_header(call, "last-event-id"), INT64_MAX, &seen))
		return (int64_t)seen;
	return kr_api_number(call, "after_seq", 0);
}

/* Any beginning of an item's id, or the whole id of one that is not filed: a plain run has events, too. */
static const char *
item_of(struct kr_api_call *call)
{
	const char *text = kr_api_text(call, "item");
	struct kr_item_row row;

	if (text && kr_store_item_get(call->arena, call->work.store, text, &row, NULL) == 0)
		return row.id;
	return text;
}

int
kr_api_events_stream(struct kr_api_call *call, struct kr_error *err)
{
	struct stream s = { .call = call, .said_ms = kr_clock_ms() };

	if (!accepts_stream(call)) {
		call->status = 406;
		call->json = json_pack("{s:s}", "detail", "this is text/event-stream, which Accept leaves out");
		return 0;
	}
	if (kr_api_open(call, err) < 0)
		return -1;
	s.query = (struct kr_event_query){
		.after = first_number(call), .type = kr_api_text(call, "type"), .item = item_of(call)
	};
	return kr_api_stream_begin(call, "text/event-stream") ? follow(&s, err) : 0;
}
