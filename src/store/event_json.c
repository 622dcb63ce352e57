/* An event as programs see it: `kraft view events --json`, and a worker's `kraft view events`. One line of
 * ASCII. */
#include <jansson.h>

#include "base/buf.h"
#include "store/store.h"

json_t *
kr_text_or_null(const char *text)
{
	return text && *text ? json_string(text) : json_null();
}

/* jansson leaves DEL as it is, the one control byte that JSON does. */
static void
add_ascii(struct kr_buf *out, const char *json)
{
	for (const char *del; (del = strchr(json, '\x7f')); json = del + 1) {
		kr_buf_add(out, json, (size_t)(del - json));
		kr_buf_adds(out, "\\u007F");
	}
	kr_buf_adds(out, json);
	kr_buf_adds(out, "\n");
}

void
kr_event_json(const struct kr_event *event, struct kr_buf *out)
{
	json_t *root = json_object();
	char *text;

	json_object_set_new(root, "seq", json_integer(event->seq));
	json_object_set_new(root, "ms", json_integer((json_int_t)event->ms));
	json_object_set_new(root, "type", json_string(event->type));
	json_object_set_new(root, "item", kr_text_or_null(event->item));
	json_object_set_new(root, "session", kr_text_or_null(event->session));
	json_object_set_new(root, "data", json_loads(event->data, 0, NULL));
	text = json_dumps(root, JSON_COMPACT | JSON_ENSURE_ASCII);
	json_decref(root);
	if (text)
		add_ascii(out, text);
	free(text);
}
