#include "session/log_lines.h"

#include "base/text.h"

/* Takes colours out: they mean nothing here, and \x1b[31m in front of every word hides what was said. */
static size_t
drop_colours(char *bytes, size_t n)
{
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		size_t k = i + 2;

		if (bytes[i] == '\033' && i + 1 < n && bytes[i + 1] == '[') {
			while (k < n && ((bytes[k] >= '0' && bytes[k] <= '9') || bytes[k] == ';' || bytes[k] == ':'))
				k++;
			if (k < n && bytes[k] == 'm') {
				i = k;
				continue;
			}
		}
		bytes[used++] = bytes[i];
	}
	return used;
}

static int
show(struct kr_log_lines *lines, enum kr_log_stream stream, bool has_end)
{
	char *bytes = lines->line[stream].bytes, safe[4 * KR_LOG_LINE_BYTES + 1];
	size_t n = lines->line[stream].n;

	lines->line[stream].n = 0;
	if (n && bytes[n - 1] == '\r' && has_end)
		n--; /* a terminal's line end */
	n = drop_colours(bytes, n);
	kr_text_escape(safe, sizeof(safe), bytes, n);
	return lines->show(
		lines->context, &(struct kr_log_line){ stream, lines->line[stream].ms, safe, has_end });
}

int
kr_log_lines_add(void *context, const struct kr_log_piece *piece)
{
	struct kr_log_lines *lines = context;
	const enum kr_log_stream stream = piece->stream;

	for (size_t i = 0; i < piece->n; i++) {
		const bool is_end = piece->bytes[i] == '\n';

		if (!lines->line[stream].n)
			lines->line[stream].ms = piece->ms;
		if (!is_end)
			lines->line[stream].bytes[lines->line[stream].n++] = piece->bytes[i];
		if ((is_end || lines->line[stream].n == KR_LOG_LINE_BYTES) && show(lines, stream, is_end) < 0)
			return -1;
	}
	if (stream == KR_LOG_NOTE && lines->line[stream].n)
		return show(lines, stream, true);
	return 0;
}

int
kr_log_lines_end(struct kr_log_lines *lines)
{
	for (int stream = 0; stream < KR_LOG_STREAM_COUNT; stream++)
		if (lines->line[stream].n && show(lines, (enum kr_log_stream)stream, false) < 0)
			return -1;
	return 0;
}

json_t *
kr_log_line_json(const struct kr_log_line *line)
{
	json_t *root = json_object();

	json_object_set_new(root, "ms", json_integer((json_int_t)line->ms));
	json_object_set_new(root, "stream", json_string(kr_log_stream_name(line->stream)));
	json_object_set_new(root, "text", json_string(line->text));
	json_object_set_new(root, "complete", json_boolean(line->is_complete));
	return root;
}
