/* What a session said: what there is, or with follow until it ends. */
#include "api/internal.h"

#include "base/fd.h"
#include "session/facts.h"
#include "session/log_lines.h"

/* Made visible and as JSON, a byte is five at most. */
enum { FOLLOW_MS = 100, LINE_BYTES = 5 * KR_LOG_LINE_BYTES + 1024 };

enum form { FORM_TEXT, FORM_LINES, FORM_EVENTS };

struct show {
	struct kr_api_call *call;
	enum form form;
	struct kr_log_lines lines;
};

static int
send_line(void *context, const struct kr_log_line *line)
{
	kr_auto_buf struct kr_buf out = KR_BUF(LINE_BYTES);
	json_t *json = kr_log_line_json(line);
	kr_auto_free char *text = json_dumps(json, JSON_COMPACT);
	struct show *show = context;

	json_decref(json);
	if (show->form == FORM_TEXT)
		kr_buf_addf(&out, "%s%s\n", line->stream == KR_LOG_NOTE ? "[kraft] " : "", line->text);
	else if (show->form == FORM_LINES)
		kr_buf_addf(&out, "%s\n", text ? text : "{}");
	else
		kr_buf_addf(&out, "data: %s\n\n", text ? text : "{}");
	return !out.overflow && kr_api_stream_add(show->call, out.data, out.len) ? 0 : -1;
}

/* The state before the log: when it had ended by then, nothing can come after that reading. */
static enum kr_session_state
state_of(int folder)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena turn = { 0 };
	struct kr_session_seen seen;

	return kr_session_facts_read(&turn, folder, &seen, NULL) < 0 ? KR_SESSION_LOST : seen.state;
}

static bool
send_end(struct show *show, enum kr_session_state state)
{
	const char *text = kr_arena_printf(
		show->call->arena, "event: end\ndata: {\"state\":\"%s\"}\n\n", kr_session_state_name(state));

	return show->form != FORM_EVENTS || kr_api_stream_add(show->call, text, strlen(text));
}

static int
send_log(struct show *show, int folder, struct kr_error *err)
{
	struct kr_log_reader reader;
	enum kr_session_state state;
	long pieces;

	kr_log_reader_init(&reader, folder);
	do {
		state = state_of(folder);
		pieces = kr_log_reader_next(&reader, kr_log_lines_add, &show->lines, err);
	} while (pieces >= 0 && show->form == FORM_EVENTS && state == KR_SESSION_RUNNING &&
			 kr_api_stream_nap(show->call, FOLLOW_MS));
	kr_log_reader_fini(&reader);
	if (pieces < 0 || kr_log_lines_end(&show->lines) < 0)
		return -1;
	return send_end(show, state) && kr_api_stream_end(show->call) ? 0 : -1;
}

int
kr_api_sessions_log(struct kr_api_call *call, struct kr_error *err)
{
	static const char *const types[] = { "text/plain; charset=utf-8", "application/jsonl",
		"text/event-stream" };
	struct show *show = kr_arena_new(call->arena, struct show);
	const char *format = kr_api_text(call, "format");
	kr_auto_fd int folder = -1;

	if (format && strcmp(format, "text") != 0 && strcmp(format, "jsonl") != 0)
		return kr_fail(err, KR_E_USAGE, "'format' is neither text nor jsonl");
	show->call = call;
	show->form = kr_api_flag(call, "follow")              ? FORM_EVENTS
				 : format && strcmp(format, "jsonl") == 0 ? FORM_LINES
														  : FORM_TEXT;
	show->lines.show = send_line;
	show->lines.context = show;
	if (kr_api_open(call, err) < 0)
		return -1;
	folder = kr_session_folder_open(call->work.host.places.run_dir, call->param[0], err);
	if (folder < 0)
		return -1;
	return kr_api_stream_begin(call, types[show->form]) ? send_log(show, folder, err) : 0;
}
