/*
 * kraft explain: what a session of this command would see, and why. The plan is the one that
 * `kraft run` would make of the same host (shown.c).
 */
#include <jansson.h>

#include "backend/backend.h"
#include "cli/cli.h"
#include "cli/shown.h"

enum { OUT_BYTES = 8 << 20 };

enum { JSON, REPO, PHASE, ITEM, WORKSPACE, HARNESS };
static const struct kr_option options[] = {
	[JSON] = { "json", 0, NULL, "print one JSON object" },
	[REPO] = { "repo", 'C', "PATH", "the checkout to work for, in place of the one you stand in" },
	[PHASE] = { "phase", 0, "PHASE", "which network lists hold: install or runtime (the usual one)" },
	[ITEM] = { "item", 0, "ID", "the worktree of this name, in place of the repository's own" },
	[WORKSPACE] = { "workspace", 0, "NAME", "with the members of this workspace below the root" },
	[HARNESS] = { "harness", 0, "ID", "an agent, in place of a command; a word is its prompt" },
	{ NULL },
};

/* What holds beside the steps: the filter's rules, or on macOS what every profile allows. */
static const struct kr_strs *
rules_beside(struct kr_arena *arena, const struct kr_request *request)
{
	struct kr_strs *rules = kr_arena_new(arena, struct kr_strs);
	const char *rule;

	if (request->macos) {
		kr_seatbelt_beside(arena, request->terminal, rules);
		return rules;
	}
	if (kr_arch_here() == KR_ARCH_UNKNOWN)
		return NULL;
	for (size_t i = 0; (rule = kr_seccomp_rule(kr_arch_here(), i)) != NULL; i++)
		kr_strs_add(arena, rules, rule);
	return rules;
}

/* The refusal itself is reported by main; here is how far the lookup came. */
static void
print_refused(const struct kr_shown *shown, bool json, struct kr_buf *out)
{
	const struct kr_error *err = &shown->refused;
	json_t *object, *lookup;
	char *text;

	if (!json) {
		for (size_t i = 0; i < shown->lookup.n; i++)
			kr_buf_addf(out, "%s  %s\n", i ? "" : "command\n", shown->lookup.v[i]);
		return;
	}
	lookup = json_array();
	for (size_t i = 0; i < shown->lookup.n; i++)
		json_array_append_new(lookup, json_string(shown->lookup.v[i]));
	object = json_pack("{s:{s:s,s:s,s:s},s:o}", "refused", "code", kr_error_name(err->code), "message",
		err->message, "hint", err->hint, "lookup", lookup);
	text = object ? json_dumps(object, JSON_INDENT(2)) : NULL;
	if (text)
		kr_buf_addf(out, "%s\n", text);
	free(text);
	json_decref(object);
}

static int
run(struct kr_arena *arena, const struct kr_parsed *parsed, struct kr_error *err)
{
	const struct kr_shown_want want = { .repo = parsed->value[REPO],
		.phase = parsed->value[PHASE],
		.item = parsed->value[ITEM],
		.workspace = parsed->value[WORKSPACE],
		.harness = parsed->value[HARNESS],
		.words = parsed->words,
		.word_count = parsed->word_count };
	struct kr_shown shown;
	kr_auto_buf struct kr_buf out = KR_BUF(OUT_BYTES);
	bool json = parsed->value[JSON] != NULL;
	const char *missing;

	if (kr_shown_make(arena, &want, &shown, err) < 0)
		return -1;
	if (!shown.plan)
		print_refused(&shown, json, &out);
	else if (json)
		kr_plan_print_json(shown.plan, rules_beside(arena, &shown.request), &out);
	else
		kr_plan_print(shown.plan, rules_beside(arena, &shown.request), &out);
	if (out.len)
		fwrite(out.data, 1, out.len, stdout);
	missing = kr_shown_missing(&shown);
	fflush(stdout); /* into one file with it: not in the middle of a line */
	if (missing)
		fprintf(stderr, "kraft: %s\n", missing);
	if (shown.remark)
		fprintf(stderr, "kraft: %s\n", shown.remark);
	if (!shown.plan) {
		*err = shown.refused;
		return -1;
	}
	return shown.request.agent ? kr_run_launch_login(arena, &shown.host, &shown.request, &shown.harness, err) : 0;
}

const struct kr_command kr_cmd_explain = {
	.name = "explain",
	.usage = "[OPTIONS] [-- COMMAND [ARG...]]",
	.summary = "tell what a command would see in the sandbox, and why; run nothing",
	.help =
		"Prints how the command is found, what is shown at which path and why, which variables cross (never\n"
		"their values), which hosts are allowed, and what the kernel refuses. Without a command: the\n"
		"repository's test command (with --phase install its setup command). With --harness: an agent's\n"
		"session, with the hosts and variables that its harness adds.\n\n"
		"When a run would be refused it tells the reason and how far the lookup came, and ends with the "
		"status\n"
		"of that reason ('kraft help exit-codes'); the run itself would end with 125.",
	.options = options,
	.words_min = 0,
	.words_max = -1,
	.stops_at_word = true,
	.run = run,
};
