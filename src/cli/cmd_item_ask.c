/* kraft item allow, item deny: a person's answer to a worker that asks whether it may use a tool. kraft view
 * asks: those questions. What a worker wrote is shown with control characters visible. */
#include "cli/work.h"

#include "base/text.h"
#include "cli/view.h"

enum { INPUT_MAX = 2000 };

static void
print_safe(const char *text)
{
	char safe[4 * INPUT_MAX + 1];
	size_t n = strlen(text);

	kr_text_escape(safe, sizeof(safe), text, n < INPUT_MAX ? n : INPUT_MAX);
	printf("%s%s", safe, n > INPUT_MAX ? "..." : "");
}

/* ---- answering ---- */

enum { ANSWER_NOTE };
static const struct kr_option answer_options[] = {
	[ANSWER_NOTE] = { "note", 'm', "TEXT", "why; a denial's is told to the worker" },
	{ NULL },
};

static int
answer(struct kr_arena *arena, const struct kr_parsed *parsed, bool allow, struct kr_error *err)
{
	struct kr_work work = { 0 };
	struct kr_ask_row ask;
	int result = kr_work_open_for_person(arena, &work, err);

	if (result == 0)
		result = (allow ? kr_work_allow : kr_work_deny)(
			&work, parsed->words[0], parsed->value[ANSWER_NOTE], &ask, err);
	if (result == 0) {
		printf("%s %s: ", ask.id, allow ? "allowed, once" : "denied");
		print_safe(ask.tool);
		printf(" of %s\n", ask.item);
	}
	kr_work_close(&work);
	return result;
}

static int
allow(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	return answer(arena, parsed, true, err);
}

const struct kr_command kr_cmd_item_allow = {
	.name = "item allow",
	.usage = "[OPTIONS] ASK",
	.summary = "let a worker use the tool that it asks for",
	.help =
		"Once, with the input that 'kraft view asks' shows. Another input is another ask. Only a person can.",
	.options = answer_options,
	.words_min = 1,
	.words_max = 1,
	.run = allow,
};

static int
deny(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	return answer(arena, parsed, false, err);
}

const struct kr_command kr_cmd_item_deny = {
	.name = "item deny",
	.usage = "[OPTIONS] ASK",
	.summary = "do not let a worker use the tool that it asks for",
	.help = "The worker goes on without it, and is told the note.",
	.options = answer_options,
	.words_min = 1,
	.words_max = 1,
	.run = deny,
};

/* ---- view asks ---- */

enum { ASKS_JSON };
static const struct kr_option asks_options[] = {
	[ASKS_JSON] = { "json", 0, NULL, "for programs" },
	{ NULL },
};

void
kr_view_print_asks(const struct kr_ask_rows *asks)
{
	char time[32];

	for (size_t i = 0; i < asks->n; i++) {
		const struct kr_ask_row *r = &asks->v[i];

		printf("%s  %s  %s  %s  ", r->id, kr_ask_state_name(r->state),
			kr_view_local_time(r->state == KR_ASK_OPEN ? r->ms : r->answered_ms, time, sizeof(time)),
			r->item);
		print_safe(r->tool);
		printf("\n    ");
		print_safe(r->input);
		putchar('\n');
		if (r->note) {
			printf("    note: ");
			print_safe(r->note);
			putchar('\n');
		}
	}
}

static int
asks(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct kr_ask_query query = { .open_only = !parsed->word_count };
	struct kr_work work = { 0 };
	struct kr_ask_rows rows = { 0 };
	struct kr_item_row item;
	int result = kr_work_open(arena, &work, err);

	if (result == 0 && parsed->word_count) {
		result = kr_store_item_get(arena, work.store, parsed->words[0], &item, err);
		query.item = item.id;
	}
	if (result == 0)
		result = kr_store_asks(arena, work.store, &query, &rows, err);
	if (result == 0 && parsed->value[ASKS_JSON])
		result = kr_print_json(kr_work_asks_json(&rows), err);
	else if (result == 0 && rows.n)
		kr_view_print_asks(&rows);
	else if (result == 0)
		puts("(nothing)");
	kr_work_close(&work);
	return result;
}

const struct kr_command kr_cmd_view_asks = {
	.name = "view asks",
	.usage = "[OPTIONS] [ITEM]",
	.summary = "the tools that workers ask for, and wait for your answer",
	.help = "With ITEM all that was asked in it, and what became of it. 'kraft item allow' and 'kraft item "
			"deny' answer.",
	.options = asks_options,
	.words_max = 1,
	.run = asks,
};
