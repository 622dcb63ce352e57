#include "work/brief.h"

#include "base/text.h"
#include "work/walk.h"

/* ---- the end of an output ---- */

/* Past the bytes of s[from..n) between two values. */
static size_t
skip_range(const char *s, size_t from, size_t n, unsigned char low, unsigned char high)
{
	while (from < n && (unsigned char)s[from] >= low && (unsigned char)s[from] <= high)
		from++;
	return from;
}

/* Past the one byte at `at` when it lies between two values. */
static size_t
skip_one(const char *s, size_t at, size_t n, unsigned char low, unsigned char high)
{
	return at < n && (unsigned char)s[at] >= low && (unsigned char)s[at] <= high ? at + 1 : at;
}

/* A string to the terminal (a title, ...): to its end, else to the end of the line. */
static size_t
skip_string(const char *s, size_t at, size_t n)
{
	for (; at < n && s[at] != '\n'; at++) {
		if (s[at] == '\a')
			return at + 1;
		if (s[at] == '\033')
			return at + 1 < n && s[at + 1] == '\\' ? at + 2 : at;
	}
	return at;
}

/* Past the escape sequence that begins at `at`, as ECMA-48 lays them out; one that is broken off ends where
 * it breaks. */
static size_t
skip_escape(const char *s, size_t at, size_t n)
{
	const size_t next = at + 1;

	if (next == n)
		return n;
	if (s[next] == '[')
		return skip_one(
			s, skip_range(s, skip_range(s, next + 1, n, 0x30, 0x3f), n, 0x20, 0x2f), n, 0x40, 0x7e);
	if (strchr("]PX^_", s[next]) && s[next])
		return skip_string(s, next + 1, n);
	return skip_one(s, skip_range(s, next, n, 0x20, 0x2f), n, 0x30, 0x7e);
}

/* A line that is cut in front tells less than it confuses; one long line is kept from its first whole
 * character on. */
static size_t
skip_cut(const char *in, size_t n)
{
	const char *newline = memchr(in, '\n', n);
	size_t at = 0;

	if (newline && (size_t)(newline - in) + 1 < n)
		return (size_t)(newline - in) + 1;
	while (at < n && at < 3 && ((unsigned char)in[at] & 0xc0) == 0x80)
		at++;
	return at;
}

size_t
kr_brief_tail(char *out, const char *in, size_t n, bool is_cut)
{
	size_t used = 0;

	for (size_t i = is_cut ? skip_cut(in, n) : 0; i < n;) {
		if (in[i] == '\033') {
			i = skip_escape(in, i, n);
			continue;
		}
		if (in[i] == '\r' && i + 1 < n && in[i + 1] == '\n')
			i++;
		out[used++] = in[i] == '\r' ? '\n' : in[i]; /* a line that was written over is a line */
		i++;
	}
	used = kr_text_plain(out, out, used, true);
	while (used && strchr("\n\t ", out[used - 1]))
		used--;
	out[used] = '\0';
	return used;
}

/* ---- what failed ---- */

bool
kr_brief_is_repair(const char *path)
{
	return strstr(path, ".fix_loop.") || strstr(path, ".on_failure.");
}

static bool
find_task(const struct kr_node *node, const char *path, size_t *step, size_t *task)
{
	for (size_t s = 0; s < node->steps.n; s++)
		for (size_t t = 0; t < node->steps.v[s].task_count; t++)
			if (strcmp(node->steps.v[s].tasks[t].path, path) == 0) {
				*step = s;
				*task = t;
				return true;
			}
	return false;
}

const struct kr_brief_failed *
kr_brief_failed(
	struct kr_arena *arena, const struct kr_node *node, const struct kr_mark_rows *marks, size_t *n)
{
	struct kr_brief_failed *found = kr_arena_alloc(arena, KR_CHAIN_TASKS * sizeof(*found));
	bool seen[KR_CHAIN_TASKS] = { false };
	size_t first = KR_CHAIN_TASKS, step = SIZE_MAX;

	/* From the newest mark on: past repairs, then back through the step that was judged, to where it was
	 * begun. */
	for (size_t i = marks->n; i-- > 0;) {
		const struct kr_mark_row *mark = &marks->v[i];
		enum kr_mark_kind kind;
		size_t s, t;

		if (!kr_mark_from_name(mark->kind, &kind) || kind > KR_MARK_UNKNOWN)
			continue; /* a person's word */
		if (!find_task(node, mark->path, &s, &t)) {
			if (step == SIZE_MAX && kr_brief_is_repair(mark->path))
				continue;
			break;
		}
		if ((step != SIZE_MAX && s != step) || seen[t])
			break;
		step = s;
		seen[t] = true;
		if (kind == KR_MARK_FAILED)
			found[--first] = (struct kr_brief_failed){ &node->steps.v[s].tasks[t], mark };
	}
	*n = KR_CHAIN_TASKS - first;
	return found + first;
}

/* ---- the whole ---- */

static void
add_block(struct kr_buf *out, const char *head, const char *text)
{
	if (!text || !*text)
		return;
	kr_buf_addf(out, "%s\n", head);
	while (*text) {
		size_t n = strcspn(text, "\n");

		kr_buf_addf(out, "    %.*s\n", (int)n, text);
		text += n + (text[n] == '\n');
	}
}

static void
add_failure(struct kr_arena *arena, struct kr_buf *out, const struct kr_brief_failure *f)
{
	size_t n = f->reason ? strlen(f->reason) : 0;
	char *reason = kr_arena_alloc(arena, n + 1);

	(void)kr_brief_tail(reason, f->reason ? f->reason : "", n, false);
	kr_buf_addf(out, "\nWhat failed: %s\n", f->path);
	add_block(out, "Its command:", f->command);
	add_block(out, "How it ended:", reason);
	add_block(out, "The end of what it printed:", f->output);
}

enum { BRIEF_BYTES = 4 << 20 }; /* far above what its parts may be */

const char *
kr_brief_text(struct kr_arena *arena, const struct kr_brief *b)
{
	kr_auto_buf struct kr_buf out = KR_BUF(BRIEF_BYTES);

	kr_buf_addf(&out, "%s\n", b->title);
	if (*b->description)
		kr_buf_addf(&out, "\n%s\n", b->description);
	if (b->steer)
		kr_buf_addf(&out, "\nA person says: %s\n", b->steer);
	if (b->prompt)
		kr_buf_addf(&out, "\n%s\n", b->prompt);
	for (size_t i = 0; i < b->failure_count; i++)
		add_failure(arena, &out, &b->failures[i]);
	if (b->left_out)
		kr_buf_addf(&out, "\nWhat failed beside these: %zu more.\n", b->left_out);
	return kr_arena_dup(arena, out.data ? out.data : "");
}
