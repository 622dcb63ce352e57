/* kraft view list, show, threads: work items as they are. What a person or a worker wrote is shown with
 * control characters visible. */
#include "cli/work.h"

#include <unistd.h>

#include "base/text.h"
#include "cli/view.h"
#include "work/usage.h"

enum { ID_MIN = 8, TITLE_MAX = 60 };

/* One line of it. */
static void
print_safe(const char *text, size_t max)
{
	char safe[4096];
	size_t n = strcspn(text, "\n");

	kr_text_escape(safe, sizeof(safe), text, n < max ? n : max);
	fputs(safe, stdout);
	if (text[n] || n > max)
		fputs("...", stdout);
}

static const char *
or_dash(const char *text)
{
	return text && *text ? text : "-";
}

/* ---- list ---- */

enum { LIST_ALL, LIST_JSON };
static const struct kr_option list_options[] = {
	[LIST_ALL] = { "all", 'a', NULL, "also those that are done or cancelled" },
	[LIST_JSON] = { "json", 0, NULL, "for programs" },
	{ NULL },
};

enum { STATE_MIN = 10 };

static void
print_list(struct kr_arena *arena, const struct kr_work_brief *v, size_t n)
{
	const char **states = kr_arena_alloc(arena, (n + 1) * sizeof(*states));
	size_t width = ID_MIN, state = STATE_MIN;

	if (!n) {
		puts("(nothing)");
		return;
	}
	for (size_t i = 0; i < n; i++) {
		states[i] = kr_work_state(arena, &v[i].row, v[i].is_hosted);
		width = strlen(v[i].row.id) > width ? strlen(v[i].row.id) : width;
		state = strlen(states[i]) > state ? strlen(states[i]) : state;
	}
	printf("%-*s  %-*s %-14s %-20s %s\n", (int)width, "ID", (int)state, "STATUS", "GATE", "NODE", "TITLE");
	for (size_t i = 0; i < n; i++) {
		const struct kr_item_row *row = &v[i].row;

		printf("%-*s  %-*s %-14s %-20s ", (int)width, row->id, (int)state, states[i], or_dash(kr_work_gate(row)),
			or_dash(row->place));
		print_safe(row->title, TITLE_MAX);
		putchar('\n');
	}
}

static int
print_list_json(const struct kr_work_list *list, struct kr_error *err)
{
	json_t *items = json_array();

	for (size_t i = 0; i < list->n; i++)
		json_array_append_new(items, kr_work_row_json(&list->v[i].row, list->v[i].is_hosted));
	return kr_print_json(json_pack("{s:o}", "items", items), err);
}

static int
list(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct kr_work_list items;
	struct kr_work work;
	int result = kr_work_open(arena, &work, err);

	if (result == 0)
		result = kr_work_list(&work, parsed->value[LIST_ALL] != NULL, &items, err);
	if (result == 0 && parsed->value[LIST_JSON])
		result = print_list_json(&items, err);
	else if (result == 0)
		print_list(arena, items.v, items.n);
	kr_work_close(&work);
	return result;
}

const struct kr_command kr_cmd_view_list = {
	.name = "view list",
	.usage = "[OPTIONS]",
	.summary = "the work items, and which of them wait for you",
	.help = "",
	.options = list_options,
	.words_max = 0,
	.run = list,
};

/* ---- show ---- */

enum { SHOW_JSON };
static const struct kr_option show_options[] = {
	[SHOW_JSON] = { "json", 0, NULL, "for programs" },
	{ NULL },
};

static void
print_line(const char *key, const char *text)
{
	if (!text || !*text)
		return;
	printf("%-12s", key);
	print_safe(text, 2000);
	putchar('\n');
}

static void
print_time(const char *key, uint64_t ms)
{
	char text[32];

	print_line(key, kr_view_local_time(ms, text, sizeof(text)));
}

/* "5120 tokens, 9 more from a cache, $0.0412"; "": it is not known. */
static const char *
usage_words(struct kr_arena *arena, const struct kr_usage *u)
{
	const char *words;

	if (!u->is_known)
		return "";
	words = kr_arena_printf(arena, "%lld tokens", (long long)kr_usage_tokens(u));
	if (u->cache_read)
		words = kr_arena_printf(arena, "%s, %lld more from a cache", words, (long long)u->cache_read);
	return u->has_cost ? kr_arena_printf(arena, "%s, $%.4f", words, (double)u->cost_micro / 1e6) : words;
}

static void
print_used(struct kr_arena *arena, const struct kr_work_view *v)
{
	struct kr_spent spent;
	const char *words;

	kr_work_spent(v, false, &spent);
	words = usage_words(arena, &spent.usage);
	if (*words && spent.silent)
		words = kr_arena_printf(arena, "%s; %u of its sessions did not tell", words, spent.silent);
	print_line("used", words);
}

/* An agent's: which one, and what it used. */
static void
print_agent(struct kr_arena *arena, const struct kr_session_row *s)
{
	const char *words = usage_words(arena, &s->usage);

	if (!s->harness)
		return;
	fputs("  ", stdout);
	print_safe(s->harness, 64);
	if (s->model) {
		putchar(' ');
		print_safe(s->model, 64);
	}
	printf("%s%s", *words ? ", " : "", words);
}

static void
print_sessions(struct kr_arena *arena, const struct kr_work_view *v)
{
	for (size_t i = 0; i < v->sessions.n; i++) {
		const struct kr_session_row *s = &v->sessions.v[i];

		printf("%s  %-28s %-18s ", i ? "          " : "sessions  ", s->path, s->status);
		print_safe(s->id, 32);
		print_agent(arena, s);
		if (s->reason && *s->reason) {
			fputs("  ", stdout);
			print_safe(s->reason, 200);
		}
		putchar('\n');
	}
}

static void
print_turns(const struct kr_work_view *v)
{
	for (size_t i = 0; i < v->turns.n; i++) {
		const struct kr_turn_row *t = &v->turns.v[i];

		printf("%s  %lld.%lld by %s: ", i ? "          " : "turns     ", (long long)t->thread,
			(long long)t->turn, t->is_auto ? "kraft" : "you");
		print_safe(t->message, 200);
		printf("  %.16s", t->session);
		if (*t->retry_state)
			printf("  retry %s", t->retry_state);
		putchar('\n');
	}
}

static const char *
place_of(struct kr_arena *arena, const struct kr_work_view *v)
{
	if (!*v->row.place)
		return "";
	if (!v->next.cycle)
		return v->row.place;
	return kr_arena_printf(arena, "%s (repair %u of %u)", v->row.place, v->next.cycle, v->next.cycles_max);
}

static void
print_item(struct kr_arena *arena, const struct kr_work_view *v)
{
	print_line("id", v->row.id);
	print_line("title", v->row.title);
	print_line("status", kr_work_state(arena, &v->row, v->is_hosted));
	print_line("at", place_of(arena, v));
	print_line("reason", v->row.reason);
	print_line("gate", kr_work_gate(&v->row));
	for (size_t i = 0; i < v->dependencies.n; i++)
		print_line(i ? "" : "depends on",
			kr_arena_printf(arena, "%s (%s)", v->dependencies.v[i].id, v->dependencies.v[i].status));
	print_line("steer", v->row.steer);
	if (v->row.progress >= 0)
		print_line("progress", kr_arena_printf(arena, "%lld", (long long)v->row.progress));
	print_line("repo", v->row.repo);
	print_line("branch", kr_arena_printf(arena, "kraft/%s", v->row.id));
	print_line("chain", v->row.chain_id);
	print_line("harness", v->row.harness);
	print_line("base", v->row.base);
	print_time("created", v->row.created_ms);
	print_time("changed", v->row.changed_ms);
	print_used(arena, v);
	print_sessions(arena, v);
	print_turns(v);
	if (v->asks.n)
		puts("asks you");
	kr_view_print_asks(&v->asks);
}

static int
look_at(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_work *work, struct kr_work_view *v,
	struct kr_error *err)
{
	const char *id;

	if (kr_work_open(arena, work, err) < 0)
		return -1;
	id = kr_work_id(work, parsed->word_count ? parsed->words[0] : NULL, err);
	return id ? kr_work_look(work, id, v, err) : -1;
}

static int
show(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	struct kr_work work = { 0 };
	struct kr_work_view v;
	int result = look_at(arena, parsed, &work, &v, err);

	if (result == 0 && parsed->value[SHOW_JSON])
		result = kr_print_json(kr_work_json(&v), err);
	else if (result == 0)
		print_item(arena, &v);
	kr_work_close(&work);
	return result;
}

const struct kr_command kr_cmd_view_show = {
	.name = "view show",
	.usage = "[OPTIONS] [ITEM]",
	.summary = "one work item: where it stands, and what ran",
	.help = "",
	.options = show_options,
	.words_max = 1,
	.run = show,
};

/* ---- threads ---- */

enum { THREADS_OPEN, THREADS_JSON };
static const struct kr_option threads_options[] = {
	[THREADS_OPEN] = { "open", 0, NULL, "only those that are not resolved" },
	[THREADS_JSON] = { "json", 0, NULL, "for programs" },
	{ NULL },
};

static void
print_thread(struct kr_arena *arena, const struct kr_thread_row *t)
{
	printf("%s  %s%s  ", t->id, t->is_open ? "open" : "resolved", t->must_fix ? ", must be fixed" : "");
	if (t->file)
		print_safe(t->line ? kr_arena_printf(arena, "%s:%lld", t->file, (long long)t->line) : t->file, 200);
	putchar('\n');
	for (size_t i = 0; i < t->comment_count; i++) {
		const struct kr_comment_row *c = &t->comments[i];

		printf("    %s%s%s: ", c->author, c->claim ? ", " : "", c->claim ? c->claim : "");
		print_safe(c->body, 2000);
		putchar('\n');
	}
}

static int
threads(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	const bool open_only = parsed->value[THREADS_OPEN] != NULL;
	struct kr_work work = { 0 };
	struct kr_work_view v;
	size_t shown = 0;
	int result = look_at(arena, parsed, &work, &v, err);

	if (result == 0 && parsed->value[THREADS_JSON])
		result = kr_print_json(kr_work_threads_json(&v, open_only), err);
	else if (result == 0) {
		for (size_t i = 0; i < v.threads.n; i++)
			if (v.threads.v[i].is_open || !open_only) {
				print_thread(arena, &v.threads.v[i]);
				shown++;
			}
		if (!shown)
			puts("(nothing)");
	}
	kr_work_close(&work);
	return result;
}

const struct kr_command kr_cmd_view_threads = {
	.name = "view threads",
	.usage = "[OPTIONS] [ITEM]",
	.summary = "what was said about an item",
	.help = "",
	.options = threads_options,
	.words_max = 1,
	.run = threads,
};
