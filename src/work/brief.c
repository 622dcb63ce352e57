#include "work/brief.h"

#include "base/text.h"
#include "plan/plan.h"
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

/* A block of text that may be a worker's. */
static void
add_plain(struct kr_arena *arena, struct kr_buf *out, const char *head, const char *text)
{
	const size_t n = text ? strlen(text) : 0;
	char *plain = kr_arena_alloc(arena, n + 1);

	(void)kr_brief_tail(plain, text ? text : "", n, false);
	add_block(out, head, plain);
}

static void
add_item(struct kr_buf *out, const struct kr_brief *b)
{
	kr_buf_addf(out, "%s\n", b->title);
	if (*b->description)
		kr_buf_addf(out, "\n%s\n", b->description);
}

static void
add_failures(struct kr_arena *arena, struct kr_buf *out, const struct kr_brief *b)
{
	for (size_t i = 0; i < b->failure_count; i++)
		add_failure(arena, out, &b->failures[i]);
	if (b->left_out)
		kr_buf_addf(out, "\nWhat failed beside these: %zu more.\n", b->left_out);
}

static void
add_steer(struct kr_arena *arena, struct kr_buf *out, const struct kr_brief *b)
{
	if (b->steer && b->is_agents_steer) {
		kr_buf_adds(out, "\n");
		add_plain(arena, out, "An agent that looked at what failed says:", b->steer);
	} else if (b->steer)
		kr_buf_addf(out, "\nA person says: %s\n", b->steer);
}

const char *
kr_brief_text(struct kr_arena *arena, const struct kr_brief *b)
{
	kr_auto_buf struct kr_buf out = KR_BUF(BRIEF_BYTES);

	add_item(&out, b);
	add_steer(arena, &out, b);
	if (b->prompt)
		kr_buf_addf(&out, "\n%s\n", b->prompt);
	add_failures(arena, &out, b);
	return kr_arena_dup(arena, out.data ? out.data : "");
}

/* ---- the context ---- */

static void
add_where(struct kr_buf *out, const struct kr_brief_context *c)
{
	kr_buf_addf(out,
		"You were started by kraft, for one work item of a repository, in a sandbox: this worktree, a home of your own, the\n"
		"%s, and %s When what you need is missing%s, do what can be done without it, and say\n"
		"what is missing. Nobody reads what you print while you work, and nobody answers.\n",
		c->is_image ? "programs of a container's image" : "tools of this host",
		c->has_channel ? "a network that reaches the hosts that a person has listed. Every other host is refused, and\n"
						 "nothing in here can change that."
					   : "an open network.",
		c->has_channel ? " or refused" : "");
}

static const char how_you_end[] =
	"    {\"status\": \"done\", \"session_summary\": \"what you did, in a few sentences\"}\n"
	"Its status is one of:\n"
	"    done                it is done\n"
	"    done_with_concerns  it is done, and \"concerns\" says what a person should look at\n"
	"    failed              it could not be done, and \"concerns\" says why\n"
	"    needs_context       \"question\" asks a person for what you have to know\n";

static const char channel[] =
	"\nThese commands tell kraft, and ask it:\n"
	"    kraft item progress N      you are at step N of your plan\n"
	"    kraft view threads --open  what reviewers said and nobody has settled\n"
	"    kraft item reply THREAD --body TEXT --claim fixed|answered|should_fix\n"
	"Answer each open thread that your work deals with.\n";

static const char no_channel[] =
	"\nNothing can be told to kraft while you work. Begin the subject of each commit with the step of your plan that it\n"
	"belongs to, as in \"[3] ...\", and say in \"session_summary\" what you did about each review thread.\n";

const char *
kr_brief_context_text(struct kr_arena *arena, const struct kr_brief_context *c)
{
	kr_auto_buf struct kr_buf out = KR_BUF(BRIEF_BYTES);

	add_where(&out, c);
	if (!c->is_reader)
		kr_buf_addf(&out, "\nCommit what you do on the branch that is checked out, and stay on it. %s\n",
			c->may_push ? "You may push it where the item asks for that." : "Never push: kraft takes your commits out.");
	kr_buf_addf(&out, "\nBefore you end, write one JSON object into %s%s. It is there, and empty; write\ninto that file "
		"itself, since it cannot be replaced by another one.\n%s",
		c->result ? c->result : "the file that $KRAFT_RESULT_PATH names", c->result ? " ($KRAFT_RESULT_PATH)" : "", how_you_end);
	kr_buf_adds(&out, c->is_by_result
						  ? "Without it you have failed, whatever you did. So you have when a process that you started still runs "
							"after\nyou: end what you put into the background.\n"
						  : "Without it your exit status tells: 0 is done.\n");
	kr_buf_adds(&out, c->has_channel ? channel : no_channel);
	return kr_arena_dup(arena, out.data ? out.data : "");
}

/* ---- a conversation that goes on ---- */

const char *
kr_brief_resume_text(struct kr_arena *arena, enum kr_break why, const struct kr_brief *b)
{
	static const char *const words[] = {
		[KR_BREAK_PAUSE] = "You had been paused.",
		[KR_BREAK_LIMIT] = "Your provider had turned you away, until now.",
		[KR_BREAK_CRASH] = "You were cut off: kraft, or its host, had ended.",
	};
	kr_auto_buf struct kr_buf out = KR_BUF(BRIEF_BYTES);

	kr_buf_addf(&out,
		"%s Go on where you were.\nWhat you had left uncommitted may be a commit by now, and a person may have "
		"added to the branch:\nlook at it before you change anything. What you had started no longer runs, and "
		"the file for your result is a\nnew one.\n",
		words[why]);
	add_steer(arena, &out, b);
	return kr_arena_dup(arena, out.data ? out.data : "");
}

/* ---- beside the chain ---- */

static void
add_said(struct kr_arena *arena, struct kr_buf *out, const struct kr_brief_said *said)
{
	kr_buf_addf(out, "\nTurn %lld. ", (long long)said->turn);
	add_plain(arena, out, said->by_kraft ? "kraft said:" : "A person said:", said->message);
	kr_buf_addf(out, "It ended: %s%s\n", said->status,
		strcmp(said->retry, "done") == 0      ? "; it asked for a retry, and that was done"
		: strcmp(said->retry, "dropped") == 0 ? "; it asked for a retry, and that was dropped"
											  : "");
	add_block(out, "The end of what it printed:", said->output);
}

static void
add_rules(struct kr_buf *out, const char *retries)
{
	kr_buf_adds(out,
		"\nWhat you print is kept for who reads this later. What you change in the worktree is committed on "
		"the item's branch\nwhen you end. You cannot approve, reject, skip or end anything.\n");
	if (retries)
		kr_buf_addf(out,
			"You may run 'kraft item retry' once (--steer TEXT leads the next agent's instruction). When you "
			"have then "
			"ended well,\n'%s' runs again from its beginning, with the repairs and attempts that it has "
			"left. Without "
			"that the item stays\nas it is, for a person to decide.\n",
			retries);
	else
		kr_buf_adds(out, "The item stays as it is: a person goes on with it.\n");
}

const char *
kr_brief_turn_text(struct kr_arena *arena, const struct kr_brief_turn *t)
{
	kr_auto_buf struct kr_buf out = KR_BUF(BRIEF_BYTES);

	add_item(&out, t->item);
	kr_buf_addf(&out, "\nThis work item %s%s%s.", t->is_paused ? "is paused" : "has stopped",
		*t->place ? " at " : "", t->place);
	if (*t->stop)
		kr_buf_addf(&out, " Kind of stop: %s.", t->stop);
	kr_buf_adds(&out, " You are asked to help with it.\n");
	add_plain(arena, &out, "Why it stopped:", t->reason);
	add_failures(arena, &out, t->item);
	for (size_t i = 0; i < t->said_count; i++)
		add_said(arena, &out, &t->said[i]);
	kr_buf_adds(&out, "\n");
	add_plain(arena, &out, t->by_kraft ? "kraft says:" : "A person says:", t->message);
	add_rules(&out, t->retries);
	return kr_arena_dup(arena, out.data ? out.data : "");
}

static void
add_thread(struct kr_arena *arena, struct kr_buf *out, const struct kr_thread_row *t)
{
	kr_buf_addf(out, "\nThread %s%s\n", t->id, t->must_fix ? ", which has to be fixed" : "");
	if (t->file)
		add_plain(arena, out,
			"About:", t->line ? kr_arena_printf(arena, "%s:%lld", t->file, (long long)t->line) : t->file);
	for (size_t i = 0; i < t->comment_count; i++)
		add_plain(arena, out,
			strcmp(t->comments[i].author, "human") == 0 ? "A person says:" : "An agent said:",
			t->comments[i].body);
}

const char *
kr_brief_reply_text(struct kr_arena *arena, const struct kr_brief *item, const struct kr_thread_rows *threads)
{
	kr_auto_buf struct kr_buf out = KR_BUF(BRIEF_BYTES);

	add_item(&out, item);
	kr_buf_adds(&out,
		"\nA person has reviewed this work item and left the threads below. Answer each one with\n"
		"kraft item reply THREAD --body TEXT --claim answered (or should_fix, when it is right and work is "
		"left to do).\nChange no file: whatever you change is put back, and what you commit is dropped.\n");
	for (size_t i = 0; i < threads->n; i++)
		if (threads->v[i].is_open)
			add_thread(arena, &out, &threads->v[i]);
	return kr_arena_dup(arena, out.data ? out.data : "");
}
