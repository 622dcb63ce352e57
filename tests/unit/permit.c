/* The gate of permissions: facts of the decision row by row, and which commands are instances of a grant. */
#include <setjmp.h>
#include <stdarg.h>

#include "policy/permit.h"

#include <cmocka.h>

#define COMMIT (1u << KR_GRANT_INDEX_COMMIT)
#define REBASE (1u << KR_GRANT_INDEX_REBASE)
#define PUSH (1u << KR_GRANT_INDEX_PUSH)
#define ALL (COMMIT | REBASE | PUSH)
#define BRANCH "kraft/a-1"

/* Words with blanks between; NULL: the policy has no such list. */
static void
fill(struct kr_arena *arena, struct kr_strs *list, const char *text)
{
	while (text && *text) {
		size_t n = strcspn(text, " ");

		kr_strs_add(arena, list, kr_arena_dup_n(arena, text, n));
		text += n + (text[n] == ' ');
	}
}

struct row {
	const char *allowed, *denied, *asked;
	unsigned grants;
	const char *tool, *also, *command;
	enum kr_permit prompt, enforce;
};

#define A KR_PERMIT_ALLOW
#define D KR_PERMIT_DENY
#define Q KR_PERMIT_ASK
#define S KR_PERMIT_SILENT

static const struct row rows[] = {
	/* 4: no list at all */
	{ NULL, NULL, NULL, 0, "Bash", NULL, "rm -r x", A, S },
	/* 2: denied, whatever else there is */
	{ NULL, "Bash", NULL, 0, "Bash", NULL, "ls", D, D },
	{ "Bash", "Bash", "Bash", ALL, "Bash", NULL, "git commit -m x", D, D },
	{ "Write Edit", "Edit", NULL, 0, "Write", "Edit", NULL, D, D },
	{ NULL, "bash Bas Bash2", NULL, 0, "Bash", NULL, "ls", A, S },
	/* 3: a grant that is held */
	{ "Read", NULL, NULL, COMMIT, "Bash", NULL, "git commit -m x", A, A },
	{ "", NULL, "Bash", COMMIT, "Bash", NULL, "git commit -m x", A, A },
	{ "Read", NULL, NULL, REBASE | PUSH, "Bash", NULL, "git commit -m x", D, D },
	{ "Read", NULL, NULL, ALL, "Bash", NULL, "git commit -m x; ls", D, D },
	{ "Read", NULL, NULL, ALL, "Shell", NULL, "git commit -m x", D, D },
	{ "Read", NULL, NULL, ALL, "Bash", NULL, NULL, D, D },
	{ "Read", NULL, NULL, PUSH, "Bash", NULL, "git push origin " BRANCH, A, A },
	/* 5: listed */
	{ "Read Bash", NULL, NULL, 0, "Bash", NULL, "ls", A, A },
	{ "Write Edit", NULL, NULL, 0, "Write", "Edit", NULL, A, A },
	{ "mcp__a__b", NULL, NULL, 0, "mcp__a__b", NULL, NULL, A, A },
	/* 6: not listed */
	{ "Read", NULL, NULL, 0, "Bash", NULL, "ls", D, D },
	{ "", NULL, NULL, 0, "Read", NULL, NULL, D, D },
	{ "Write", NULL, NULL, 0, "Write", "Edit", NULL, D, D },
	/* ask_tools: below deny, above allow */
	{ NULL, NULL, "Bash", 0, "Bash", NULL, "ls", Q, Q },
	{ "Bash", NULL, "Bash", 0, "Bash", NULL, "ls", Q, Q },
	{ "Read", NULL, "Bash", 0, "Bash", NULL, "ls", D, D },
	{ NULL, "Bash", "Bash", 0, "Bash", NULL, "ls", D, D },
	{ NULL, NULL, "Edit", 0, "Write", "Edit", NULL, Q, Q },
	{ NULL, NULL, "Bash", 0, "Read", NULL, NULL, A, S },
};

static void
check_row(const struct row *row)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct kr_policy policy = { .has_allowed_tools = row->allowed != NULL, .grants = row->grants };
	struct kr_strs also = { 0 };
	struct kr_permit_call call = { .tool = row->tool,
		.also = &also,
		.command = row->command,
		.command_n = row->command ? strlen(row->command) : 0,
		.branch = BRANCH };
	struct kr_permit_verdict prompt, enforce;

	fill(&arena, &policy.allowed_tools, row->allowed);
	fill(&arena, &policy.deny_tools, row->denied);
	fill(&arena, &policy.ask_tools, row->asked);
	fill(&arena, &also, row->also);
	kr_permit_decide(&policy, KR_PERMIT_PROMPT, false, &call, &prompt);
	kr_permit_decide(&policy, KR_PERMIT_ENFORCE, true, &call, &enforce);
	if (prompt.permit != row->prompt || enforce.permit != row->enforce)
		fail_msg("row %d: %s, %s", (int)(row - rows), kr_permit_name(prompt.permit),
			kr_permit_name(enforce.permit));
	assert_true(*prompt.reason && *enforce.reason);
	assert_true(!prompt.grant || prompt.permit == KR_PERMIT_ALLOW);
}

static void
each_row_of_the_decision_CHN_09(void **state)
{
	(void)state;
	for (size_t i = 0; i < KR_COUNT(rows); i++)
		check_row(&rows[i]);
}

static void
an_unresolved_policy_denies(void **state)
{
	const struct kr_permit_call call = { .tool = "Read" };
	struct kr_permit_verdict v;

	(void)state;
	kr_permit_decide(NULL, KR_PERMIT_PROMPT, false, &call, &v);
	assert_int_equal(v.permit, KR_PERMIT_DENY);
	kr_permit_decide(NULL, KR_PERMIT_ENFORCE, true, &call, &v);
	assert_int_equal(v.permit, KR_PERMIT_DENY);
	kr_permit_decide(NULL, KR_PERMIT_ENFORCE, false, &call, &v);
	assert_int_equal(v.permit, KR_PERMIT_SILENT);
}

static void
an_agents_tools_have_their_names(void **state)
{
	const char *also;

	(void)state;
	assert_string_equal(kr_permit_name_of_tool("codex", "apply_patch", &also), "Write");
	assert_string_equal(also, "Edit");
	assert_string_equal(kr_permit_name_of_tool("codex", "shell", &also), "Bash");
	assert_null(also);
	assert_string_equal(kr_permit_name_of_tool("cursor", "Shell", &also), "Bash");
	assert_string_equal(kr_permit_name_of_tool("codex", "Shell", &also), "Shell");
	assert_string_equal(kr_permit_name_of_tool("", "apply_patch", &also), "apply_patch");
}

/* ---- grants ---- */

static void
expect(const char *command, enum kr_grant grant)
{
	enum kr_grant found = kr_permit_grant(command, strlen(command), BRANCH);

	if (found != grant)
		fail_msg("'%s' is %s", command, found == KR_GRANT_COUNT ? "none" : kr_grant_name(found));
}

static void
plain_commands_are_instances(void **state)
{
	static const char *const commits[] = { "git commit", "git commit -m x", "git commit -am 'a (b) $x `y` !'",
		"git commit -m \"a b; c | d\"", "git --no-pager commit", "git -P commit --amend",
		"git -c user.name='A B' -c user.email=a@b.example commit -m x", "  git   commit  -m  'x'  ",
		"'git' \"commit\"", "git commit -m '' -- a.c b/c.d", "git commit -m 'sch\xc3\xb6n'",
		"git commit --author='A <a@b.example>'" };
	static const char *const rebases[] = { "git rebase main", "git rebase --continue", "git rebase -i HEAD~3",
		"git rebase --onto main a b", "git rebase --strategy-option=ours main", "git rebase HEAD^" };
	static const char *const pushes[] = { "git push origin " BRANCH, "git push -u origin HEAD:" BRANCH,
		"git push origin refs/heads/" BRANCH, "git push origin a:refs/heads/" BRANCH,
		"git push --force-with-lease origin " BRANCH, "git push origin " BRANCH " --force-with-lease=" BRANCH,
		"git push my.fork_2-x " BRANCH " HEAD:" BRANCH };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(commits); i++)
		expect(commits[i], KR_GRANT_INDEX_COMMIT);
	for (size_t i = 0; i < KR_COUNT(rebases); i++)
		expect(rebases[i], KR_GRANT_INDEX_REBASE);
	for (size_t i = 0; i < KR_COUNT(pushes); i++)
		expect(pushes[i], KR_GRANT_INDEX_PUSH);
}

static void
whatever_a_shell_could_expand_is_none(void **state)
{
	static const char *const bad[] = { "", "git", "git status", "ls", "gitcommit", "git commitx",
		"git commit; ls", "git commit && ls", "git commit & ls", "git commit | cat", "git commit > x",
		"git commit < x", "git commit 2>x", "git commit $(ls)", "git commit `ls`", "git commit $HOME",
		"git commit \"$HOME\"", "git commit \"`ls`\"", "git commit \"a!b\"", "git commit !x",
		"git commit {a,b}", "git commit *", "git commit a?", "git commit [a]", "git commit \\a",
		"git commit \"\\a\"", "git commit -m x\nls", "git commit\tx", "git commit\rx", "git commit (ls)",
		"git commit #x", "git commit ~", "git commit ~root/x", "git commit =ls", "git commit ^a",
		"A=b git commit", "GIT_DIR=x git commit", "env git commit", "sudo git commit", "/usr/bin/git commit",
		"./git commit", "git -C /x commit", "git commit -C HEAD", "git --git-dir=x commit",
		"git -c core.editor=x commit", "git -c user.name commit", "git -c alias.commit=!ls commit",
		"git -ccore.pager=x commit", "git -c", "git --exec-path=/x commit", "git commit -m 'x",
		"git commit -m \"x", "'git commit'", "git 'commit -m'", "git commit -m x\\", "git commit '-C' HEAD",
		"\xc2\xa0git commit", "git commit \xc2\xa0ls" };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(bad); i++)
		expect(bad[i], KR_GRANT_COUNT);
	assert_int_equal(kr_permit_grant("git commit\0ls", 13, BRANCH), KR_GRANT_COUNT);
}

static void
what_runs_or_pushes_more_is_none(void **state)
{
	static const char *const bad[] = { "git rebase --exec ls main", "git rebase --exec=ls main",
		"git rebase --ex ls main", "git rebase --e ls main", "git rebase -x ls main",
		"git rebase -ix ls main", "git rebase -xls main", "git rebase '-x' ls",
		"git rebase --strategy ours main", "git rebase --strat=x main", "git rebase --s x main",
		"git rebase -s ours main", "git rebase -C 1", "git push", "git push origin", "git push " BRANCH,
		"git push origin main", "git push origin HEAD:main", "git push origin " BRANCH " main",
		"git push origin :" BRANCH, "git push origin +" BRANCH, "git push origin +a:" BRANCH,
		"git push origin a:b:" BRANCH, "git push --force origin " BRANCH, "git push -f origin " BRANCH,
		"git push -uf origin " BRANCH, "git push --forc origin " BRANCH, "git push --delete origin " BRANCH,
		"git push -d origin " BRANCH, "git push --mirror origin " BRANCH, "git push --all origin " BRANCH,
		"git push --prune origin " BRANCH, "git push --tags origin " BRANCH,
		"git push --follow-tags origin " BRANCH, "git push --recurse-submodules=on-demand origin " BRANCH,
		"git push --repo=x origin " BRANCH, "git push -o x origin " BRANCH,
		"git push --push-option=x origin " BRANCH, "git push --receive-pack=ls origin " BRANCH,
		"git push --exec=ls origin " BRANCH, "git push --rec ls origin " BRANCH,
		"git push https://x.example/r " BRANCH, "git push ../x " BRANCH, "git push x:y " BRANCH,
		"git push -origin " BRANCH, "git push .x " BRANCH, "git push _x " BRANCH, "git push '' " BRANCH,
		"git push origin ''", "git push origin refs/tags/" BRANCH,
		"git push origin refs/heads/refs/heads/" BRANCH, "git push origin a:" BRANCH "2",
		"git push -- origin " BRANCH, "git push --force-with-leasex o " BRANCH };

	(void)state;
	for (size_t i = 0; i < KR_COUNT(bad); i++)
		expect(bad[i], KR_GRANT_COUNT);
	assert_int_equal(kr_permit_grant("git push o x", 12, NULL), KR_GRANT_COUNT);
	assert_int_equal(kr_permit_grant("git push o x", 12, "x"), KR_GRANT_INDEX_PUSH);
}

static void
long_commands_end_somewhere(void **state)
{
	char *text = malloc(8192);

	(void)state;
	assert_non_null(text);
	memset(text, 'a', 8192);
	memcpy(text, "git commit -m ", 14);
	assert_int_equal(kr_permit_grant(text, 4096, NULL), KR_GRANT_INDEX_COMMIT);
	assert_int_equal(kr_permit_grant(text, 4097, NULL), KR_GRANT_COUNT);
	for (size_t i = 14; i < 4096; i++)
		text[i] = i & 1 ? ' ' : 'a';
	assert_int_equal(kr_permit_grant(text, 200, NULL), KR_GRANT_INDEX_COMMIT);
	assert_int_equal(kr_permit_grant(text, 4096, NULL), KR_GRANT_COUNT);
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_row_of_the_decision_CHN_09),
		cmocka_unit_test(an_unresolved_policy_denies),
		cmocka_unit_test(an_agents_tools_have_their_names),
		cmocka_unit_test(plain_commands_are_instances),
		cmocka_unit_test(whatever_a_shell_could_expand_is_none),
		cmocka_unit_test(what_runs_or_pushes_more_is_none),
		cmocka_unit_test(long_commands_end_somewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
