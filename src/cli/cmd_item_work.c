/*
 * kraft item start, pause, approve, ...: what a person says about a work item. All have the same shape: open,
 * find the item, say it, and go on in the background where the word lets the item go on.
 */
#include "cli/work.h"

#include <unistd.h>

#include "base/text.h"

/* A call of one of these commands. */
struct call {
	struct kr_work work;
	const struct kr_parsed *parsed;
	const char *id;
};

static int
begin(struct call *c, struct kr_arena *arena, const struct kr_parsed *parsed, const char *word,
	struct kr_error *err)
{
	*c = (struct call){ .parsed = parsed };
	if (kr_work_open_for_person(arena, &c->work, err) < 0)
		return -1;
	c->id = kr_work_id(&c->work, word, err);
	return c->id ? 0 : -1;
}

static int
look_and_tell(struct call *c, struct kr_work_view *v, struct kr_error *err)
{
	if (kr_work_look(&c->work, c->id, v, err) < 0)
		return -1;
	printf("%s %s%s%s\n", v->row.id, kr_work_state(c->work.arena, &v->row, v->is_hosted), *v->row.place ? " at " : "",
		v->row.place);
	if (*v->row.reason) {
		char safe[4096];

		kr_text_escape(safe, sizeof(safe), v->row.reason, strlen(v->row.reason));
		printf("    %s\n", safe);
	}
	return 0;
}

static int
tell(struct call *c, struct kr_error *err)
{
	struct kr_work_view v;

	return look_and_tell(c, &v, err);
}

/* 1: it stopped at what failed, or paused without a person's word. */
static int
tell_and_judge(struct call *c, struct kr_error *err)
{
	struct kr_work_view v;

	if (look_and_tell(c, &v, err) < 0)
		return -1;
	if (strcmp(v.row.status, kr_status_name(KR_STATUS_PAUSED)) == 0 && *v.row.reason)
		return 1;
	return v.next.kind == KR_NEXT_STOP && v.next.stop != KR_STOP_QUESTION && !v.is_hosted;
}

/* After a word that lets it go on. */
static int
go_on(struct call *c, bool stay, struct kr_error *err)
{
	if (!stay && kr_work_go_on(&c->work, c->id, err) < 0)
		return -1;
	return tell(c, err);
}

static int
end(struct call *c, int result)
{
	kr_work_close(&c->work);
	return result;
}

static const char *
word_of(const struct kr_parsed *parsed, int at)
{
	return parsed->word_count > at ? parsed->words[at] : NULL;
}

/* ---- start, pause ---- */

enum { START_DETACH, START_STEER, START_HOSTED };
static const struct kr_option start_options[] = {
	[START_DETACH] = { "detach", 'd', NULL, "in the background; it goes on when you log out" },
	[START_STEER] = { "steer", 0, "TEXT", "a word that leads the next agent's instruction, once" },
	[START_HOSTED] = { "hosted", 0, "[=turn]",
		"as kraft itself starts it in the background: nobody is at a terminal" },
	{ NULL },
};

static void
tell_begun(void *context)
{
	(void)context;
	kr_work_tell_word(NULL);
}

/* Who started us hears when it has begun, or why not. */
static int
start_hosted(struct call *c, struct kr_error *err)
{
	const struct kr_work_start start = { .turn_only = strcmp(c->parsed->value[START_HOSTED], "turn") == 0,
		.on_start = tell_begun };

	(void)setsid(); /* fails where we lead one */
	if (kr_work_host(&c->work, c->id, start, err) == 0)
		return 0;
	kr_work_tell_word(err);
	return -1;
}

static int
start_here(struct call *c, struct kr_error *err)
{
	if (c->parsed->value[START_DETACH])
		return kr_work_go_on(&c->work, c->id, err);
	if (c->parsed->value[START_HOSTED])
		return start_hosted(c, err);
	return kr_work_host(&c->work, c->id, (struct kr_work_start){ .show = true }, err);
}

static int
start(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct call c;
	int result = begin(&c, arena, parsed, word_of(parsed, 0), err);

	if (result == 0 && parsed->value[START_STEER])
		result = kr_work_steer(&c.work, c.id, parsed->value[START_STEER], err);
	if (result == 0)
		result = start_here(&c, err);
	return end(&c, result == 0 ? tell_and_judge(&c, err) : result);
}

const struct kr_command kr_cmd_item_start = {
	.name = "item start",
	.usage = "[OPTIONS] [ITEM]",
	.summary = "walk an item through its chain until it needs you",
	.help = "In front of you, with the output of its tasks; Ctrl-C pauses it. What another process had begun "
			"and\n"
			"did not finish (a crash, a power cut) runs again.\n\n"
			"Exit status: 0 when it waits for you or is done, 1 when it stopped at what failed, or\nfor want "
			"of disk.",
	.options = start_options,
	.words_max = 1,
	.run = start,
};

static int
item_pause(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct call c;
	int result = begin(&c, arena, parsed, word_of(parsed, 0), err);

	if (result == 0)
		result = kr_work_pause(&c.work, c.id, err);
	return end(&c, result == 0 ? tell(&c, err) : result);
}

const struct kr_command kr_cmd_item_pause = {
	.name = "item pause",
	.usage = "[ITEM]",
	.summary = "end what runs in an item; 'kraft item start' goes on",
	.help = "",
	.words_max = 1,
	.run = item_pause,
};

static int
unblock(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct call c;
	int result = begin(&c, arena, parsed, parsed->words[0], err);

	if (result == 0)
		result = kr_work_unblock(&c.work, c.id, word_of(parsed, 1), err);
	return end(&c, result == 0 ? tell(&c, err) : result);
}

const struct kr_command kr_cmd_item_unblock = {
	.name = "item unblock",
	.usage = "ITEM [ITEM]",
	.summary = "let an item begin without what it waits for",
	.help = "It no longer waits for the second item, or for any without one.",
	.words_min = 1,
	.words_max = 2,
	.run = unblock,
};

/* ---- gates ---- */

enum { GATE_NOTE, GATE_STAY };
static const struct kr_option gate_options[] = {
	[GATE_NOTE] = { "note", 'm', "TEXT", "why; a rejection's note leads the next agent's instruction" },
	[GATE_STAY] = { "no-start", 0, NULL, "do not go on in the background" },
	{ NULL },
};

static int
approve(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct call c;
	int result = begin(&c, arena, parsed, word_of(parsed, 0), err);

	if (result == 0)
		result = kr_work_approve(&c.work, c.id, parsed->value[GATE_NOTE], err);
	return end(&c, result == 0 ? go_on(&c, parsed->value[GATE_STAY] != NULL, err) : result);
}

const struct kr_command kr_cmd_item_approve = {
	.name = "item approve",
	.usage = "[OPTIONS] [ITEM]",
	.summary = "let an item through the gate that it waits at",
	.help = "Only a person can. Open threads that have to be fixed stand in the way.",
	.options = gate_options,
	.words_max = 1,
	.run = approve,
};

static int
reject(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct call c;
	int result = begin(&c, arena, parsed, word_of(parsed, 0), err);

	if (result == 0 && !parsed->value[GATE_NOTE])
		result = kr_fail(err, KR_E_USAGE, "a rejection needs --note: it is what the next run is told");
	if (result == 0)
		result = kr_work_reject(&c.work, c.id, parsed->value[GATE_NOTE], err);
	return end(&c, result == 0 ? go_on(&c, parsed->value[GATE_STAY] != NULL, err) : result);
}

const struct kr_command kr_cmd_item_reject = {
	.name = "item reject",
	.usage = "--note TEXT [OPTIONS] [ITEM]",
	.summary = "send an item back from the gate that it waits at",
	.help = "It goes on where the gate's reject_to says, else at the nearest node before it.",
	.options = gate_options,
	.words_max = 1,
	.run = reject,
};

/* ---- after a stop ---- */

enum { RETRY_PATH, RETRY_RESTART, RETRY_STEER, RETRY_STAY };
static const struct kr_option retry_options[] = {
	[RETRY_PATH] = { "path", 0, "PATH",
		"from this NODE, NODE.STEP or NODE.STEP.TASK; without it the node that stopped" },
	[RETRY_RESTART] = { "restart", 0, NULL, "from the chain's beginning" },
	[RETRY_STEER] = { "steer", 0, "TEXT", "a word that leads the next agent's instruction, once" },
	[RETRY_STAY] = { "no-start", 0, NULL, "do not go on in the background" },
	{ NULL },
};

static int
retry(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct call c;
	int result = begin(&c, arena, parsed, word_of(parsed, 0), err);
	const char *path = parsed->value[RETRY_RESTART] ? "" : parsed->value[RETRY_PATH];

	if (result == 0 && parsed->value[RETRY_RESTART] && parsed->value[RETRY_PATH])
		result = kr_fail(err, KR_E_USAGE, "--restart and --path say two things");
	if (result == 0)
		result = kr_work_retry(&c.work, c.id, path, parsed->value[RETRY_STEER], err);
	return end(&c, result == 0 ? go_on(&c, parsed->value[RETRY_STAY] != NULL, err) : result);
}

const struct kr_command kr_cmd_item_retry = {
	.name = "item retry",
	.usage = "[OPTIONS] [ITEM]",
	.summary = "try again what an item stopped at",
	.help = "What came out well beside and before it stands; what follows it runs again, and gates after it "
			"ask again.",
	.options = retry_options,
	.words_max = 1,
	.run = retry,
};

enum { SKIP_NOTE, SKIP_PATH, SKIP_STAY };
static const struct kr_option skip_options[] = {
	[SKIP_NOTE] = { "note", 'm', "TEXT", "why" },
	[SKIP_PATH] = { "path", 0, "PATH",
		"this NODE, NODE.STEP or NODE.STEP.TASK; without it the node where it stands" },
	[SKIP_STAY] = { "no-start", 0, NULL, "do not go on in the background" },
	{ NULL },
};

static int
skip(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct call c;
	int result = begin(&c, arena, parsed, word_of(parsed, 0), err);

	if (result == 0)
		result = kr_work_skip(&c.work, c.id, parsed->value[SKIP_PATH], parsed->value[SKIP_NOTE], err);
	return end(&c, result == 0 ? go_on(&c, parsed->value[SKIP_STAY] != NULL, err) : result);
}

const struct kr_command kr_cmd_item_skip = {
	.name = "item skip",
	.usage = "[OPTIONS] [ITEM]",
	.summary = "go past where an item stands",
	.help = "",
	.options = skip_options,
	.words_max = 1,
	.run = skip,
};

/* ---- help, reviews ---- */

enum { ESCALATE_NEW, ESCALATE_STOP };
static const struct kr_option escalate_options[] = {
	[ESCALATE_NEW] = { "new-thread", 0, NULL, "begin anew: the agent is not told what earlier turns said" },
	[ESCALATE_STOP] = { "stop", 0, NULL, "end the turn, or the reply agent, that is at work" },
	{ NULL },
};

/* Somebody who names the item and forgets the message. */
static int
refuse_id(struct call *c, const char *message, struct kr_error *err)
{
	struct kr_error ignored = { 0 };
	struct kr_item_row row;

	if (kr_store_item_get(c->work.arena, c->work.store, message, &row, &ignored) < 0 ||
		strcmp(row.id, message) != 0)
		return 0;
	return kr_fail(err, KR_E_USAGE, "what is the agent of item '%s' to be told?", row.id);
}

static int
escalate(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	const bool stop = parsed->value[ESCALATE_STOP] != NULL;
	struct call c;
	int result;

	if (stop ? parsed->word_count > 1 || parsed->value[ESCALATE_NEW] : !parsed->word_count)
		return kr_fail(err, KR_E_USAGE, stop ? "--stop takes no message" : "what is the agent to be told?");
	result = begin(&c, arena, parsed, stop || parsed->word_count > 1 ? word_of(parsed, 0) : NULL, err);
	if (result == 0 && !stop)
		result = refuse_id(&c, parsed->words[parsed->word_count - 1], err);
	if (result == 0)
		result = stop ? kr_work_escalate_stop(&c.work, c.id, err)
					  : kr_work_escalate(&c.work, c.id, parsed->words[parsed->word_count - 1],
							parsed->value[ESCALATE_NEW] != NULL, err);
	return end(&c, result == 0 ? tell(&c, err) : result);
}

const struct kr_command kr_cmd_item_escalate = {
	.name = "item escalate",
	.usage = "[--new-thread] [ITEM] MESSAGE | --stop [ITEM]",
	.summary = "have an item's agent find out why it waits",
	.help =
		"In the background, while the item needs you or is paused. The agent may ask for one retry of what\n"
		"stopped; it is done when the agent has ended well. 'kraft view show' has its turns.",
	.options = escalate_options,
	.words_max = 2,
	.run = escalate,
};

enum { REVIEW_OUTCOME, REVIEW_SUMMARY, REVIEW_STAY, REVIEW_JSON };
static const struct kr_option review_options[] = {
	[REVIEW_OUTCOME] = { "outcome", 0, "WORD", "approve, request-changes or comment" },
	[REVIEW_SUMMARY] = { "summary", 0, "TEXT", "what is said on the whole; of a comment it begins a thread" },
	[REVIEW_STAY] = { "no-start", 0, NULL, "do not go on in the background" },
	[REVIEW_JSON] = { "json", 0, NULL, "print one JSON object: the item, and whether an agent answers" },
	{ NULL },
};

static int
tell_reviewed(struct call *c, enum kr_outcome outcome, const char *no_reply, struct kr_error *err)
{
	struct kr_work_view v;

	if (!c->parsed->value[REVIEW_JSON]) {
		if (no_reply)
			fprintf(stderr, "kraft: nobody answers: %s\n", no_reply);
		return tell(c, err);
	}
	return kr_work_look(&c->work, c->id, &v, err) < 0
			   ? -1
			   : kr_print_json(kr_work_reviewed_json(&v, outcome, no_reply), err);
}

static int
review_here(struct call *c, enum kr_outcome outcome, struct kr_error *err)
{
	const char *no_reply;

	if (kr_work_review(&c->work, c->id, outcome, c->parsed->value[REVIEW_SUMMARY], &no_reply, err) < 0)
		return -1;
	if (outcome != KR_OUTCOME_COMMENT && !c->parsed->value[REVIEW_STAY] &&
		kr_work_go_on(&c->work, c->id, err) < 0)
		return -1;
	return tell_reviewed(c, outcome, no_reply, err);
}

static int
review(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	const char *word = parsed->value[REVIEW_OUTCOME];
	enum kr_outcome outcome;
	struct call c;
	int result;

	if (!word || !kr_outcome_from_name(word, &outcome))
		return kr_fail(err, KR_E_USAGE, "a review needs --outcome approve, request-changes or comment");
	result = begin(&c, arena, parsed, word_of(parsed, 0), err);
	return end(&c, result == 0 ? review_here(&c, outcome, err) : result);
}

const struct kr_command kr_cmd_item_review = {
	.name = "item review",
	.usage = "--outcome WORD [OPTIONS] [ITEM]",
	.summary = "review an item at its gate, with the threads that are open",
	.help =
		"'approve' and 'request-changes' pass the gate and send the item back, whose next agent is told the\n"
		"summary and the open threads. 'comment' leaves it at its gate, and its agent answers the threads.",
	.options = review_options,
	.words_max = 1,
	.run = review,
};

/* ---- ends ---- */

enum { END_REASON };
static const struct kr_option end_options[] = {
	[END_REASON] = { "reason", 'm', "TEXT", "why" },
	{ NULL },
};

static int
end_item(struct kr_arena *arena, const struct kr_parsed *parsed, enum kr_status status, struct kr_error *err)
{
	struct call c;
	int result = begin(&c, arena, parsed, parsed->words[0], err);

	if (result == 0)
		result = kr_work_end(&c.work, c.id, status, parsed->value[END_REASON], err);
	return end(&c, result == 0 ? tell(&c, err) : result);
}

static int
complete(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	return end_item(arena, parsed, KR_STATUS_COMPLETED, err);
}

static int
cancel(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	return end_item(arena, parsed, KR_STATUS_CANCELLED, err);
}

const struct kr_command kr_cmd_item_complete = {
	.name = "item complete",
	.usage = "[OPTIONS] ITEM",
	.summary = "say that an item is done, wherever it stands",
	.help = "Its worktree and its branch stay.",
	.options = end_options,
	.words_min = 1,
	.words_max = 1,
	.run = complete,
};

const struct kr_command kr_cmd_item_cancel = {
	.name = "item cancel",
	.usage = "[OPTIONS] ITEM",
	.summary = "give an item up",
	.help = "Its worktree and its branch stay; 'kraft item remove' removes the worktree.",
	.options = end_options,
	.words_min = 1,
	.words_max = 1,
	.run = cancel,
};

static int
abandon(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct call c;
	int result = begin(&c, arena, parsed, parsed->words[0], err);

	if (result == 0)
		result = kr_work_abandon(&c.work, c.id, parsed->value[END_REASON], err);
	return end(&c, result == 0 ? tell(&c, err) : result);
}

const struct kr_command kr_cmd_item_abandon = {
	.name = "item abandon",
	.usage = "[OPTIONS] ITEM",
	.summary = "give an item up and remove what it left",
	.help = "Its worktree with what was not committed, its home and its logs go; its branch stays.",
	.options = end_options,
	.words_min = 1,
	.words_max = 1,
	.run = abandon,
};

static int
archive(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct kr_leftovers l;
	struct call c;
	int result = begin(&c, arena, parsed, parsed->words[0], err);

	if (result == 0)
		result = kr_work_leftovers_of(&c.work, c.id, &l, err);
	if (result == 0 && !kr_work_has_ended(&l.row)) {
		kr_fail(err, KR_E_REFUSED, "item '%s' is %s: only what has ended is archived", c.id, l.row.status);
		result = kr_hint(err, "'kraft item abandon %s' gives it up", c.id);
	}
	if (result == 0 && l.kept)
		result = kr_fail(err, KR_E_REFUSED, "item '%s' has to stay: %s", c.id, l.kept);
	if (result == 0)
		result = kr_work_archive(&c.work, &l, parsed->value[END_REASON] ? parsed->value[END_REASON] : "by hand", err);
	return end(&c, result == 0 ? tell(&c, err) : result);
}

const struct kr_command kr_cmd_item_archive = {
	.name = "item archive",
	.usage = "[OPTIONS] ITEM",
	.summary = "remove what an item that has ended left",
	.help = "Its worktree with what was not committed, its home and its logs go; its branch, the item and its\n"
			"events stay. 'kraft admin prune' does so for all that ended long enough ago.",
	.options = end_options,
	.words_min = 1,
	.words_max = 1,
	.run = archive,
};

/* ---- threads ---- */

enum { COMMENT_FILE, COMMENT_LINE, COMMENT_MUST_FIX };
static const struct kr_option comment_options[] = {
	[COMMENT_FILE] = { "file", 0, "PATH", "the file that it is about" },
	[COMMENT_LINE] = { "line", 0, "N", "and the line" },
	[COMMENT_MUST_FIX] = { "must-fix", 0, NULL, "no gate is passed while it is open" },
	{ NULL },
};

static int
comment(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	const char *body = parsed->words[parsed->word_count - 1], *line = parsed->value[COMMENT_LINE], *thread;
	struct kr_work_comment want = {
		.body = body, .file = parsed->value[COMMENT_FILE], .must_fix = parsed->value[COMMENT_MUST_FIX] != NULL
	};
	uint64_t number = 0;
	struct call c;
	int result = begin(&c, arena, parsed, parsed->word_count > 1 ? parsed->words[0] : NULL, err);

	if (result == 0 && line && (!want.file || !kr_text_to_u64(line, INT32_MAX, &number) || !number))
		result = kr_fail(err, KR_E_USAGE, "--line is a number from 1 on, of a --file");
	want.line = (int64_t)number;
	if (result == 0)
		result = kr_work_comment(&c.work, c.id, &want, &thread, err);
	if (result == 0)
		puts(thread);
	return end(&c, result);
}

const struct kr_command kr_cmd_item_comment = {
	.name = "item comment",
	.usage = "[OPTIONS] [ITEM] TEXT",
	.summary = "begin a thread about an item",
	.help = "Prints the thread's id. The worker reads it ('kraft view threads' inside), and can answer.",
	.options = comment_options,
	.words_min = 1,
	.words_max = 2,
	.run = comment,
};

enum { THREAD_ITEM };
static const struct kr_option thread_options[] = {
	[THREAD_ITEM] = { "item", 0, "ID", "the item that it is of" },
	{ NULL },
};

static int
set_open(struct kr_arena *arena, const struct kr_parsed *parsed, bool is_open, struct kr_error *err)
{
	struct call c;
	int result = begin(&c, arena, parsed, parsed->value[THREAD_ITEM], err);

	if (result == 0)
		result = kr_work_set_open(&c.work, c.id, parsed->words[0], is_open, err);
	return end(&c, result);
}

static int
resolve(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	return set_open(arena, parsed, false, err);
}

static int
reopen(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	return set_open(arena, parsed, true, err);
}

const struct kr_command kr_cmd_item_resolve = {
	.name = "item resolve",
	.usage = "[OPTIONS] THREAD",
	.summary = "say that a thread is settled",
	.help = "",
	.options = thread_options,
	.words_min = 1,
	.words_max = 1,
	.run = resolve,
};

const struct kr_command kr_cmd_item_reopen = {
	.name = "item reopen",
	.usage = "[OPTIONS] THREAD",
	.summary = "say that a thread is not settled",
	.help = "",
	.options = thread_options,
	.words_min = 1,
	.words_max = 1,
	.run = reopen,
};

static int
reply(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct call c;
	int result = begin(&c, arena, parsed, parsed->value[THREAD_ITEM], err);

	if (result == 0)
		result = kr_work_reply(&c.work, c.id, parsed->words[0], "human", NULL, parsed->words[1], err);
	return end(&c, result);
}

const struct kr_command kr_cmd_item_reply = {
	.name = "item reply",
	.usage = "[OPTIONS] THREAD TEXT",
	.summary = "answer in a thread",
	.help = "",
	.options = thread_options,
	.words_min = 2,
	.words_max = 2,
	.run = reply,
};
