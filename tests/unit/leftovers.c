/* git: what a command leaves in a worktree: planted repositories, uncommitted changes, and who looks. */
#include "repo.h"

#include "git/leftovers.h"
#include "git/planted.h"

#define TEXT(literal) literal, sizeof(literal) - 1

/* ---- planted repositories ---- */

static struct kr_planted
walk(struct place *p, const struct kr_strs *own)
{
	struct kr_planted found = { 0 };
	struct kr_error err = { 0 };

	if (kr_planted_walk(&p->arena, below(p, "wt"), own, &found, &err) < 0)
		fail_msg("%s", err.message);
	return found;
}

static int
by_path(const void *a, const void *b)
{
	return strcmp(((const struct kr_planted_found *)a)->path, ((const struct kr_planted_found *)b)->path);
}

/* "path path ..." in order; closed ones with a '!', links with a '>'. */
static const char *
paths(struct place *p, struct kr_planted found)
{
	static const char marks[] = { [KR_PLANTED_REPOSITORY] = ' ', [KR_PLANTED_CLOSED] = '!', [KR_PLANTED_LINK] = '>' };
	const char *out = "";

	if (found.n)
		qsort(found.v, found.n, sizeof(*found.v), by_path);
	for (size_t i = 0; i < found.n; i++)
		out = kr_arena_printf(&p->arena, "%s%c%s", out, marks[found.v[i].kind], found.v[i].path);
	return out;
}

static void
ref_04_whatever_is_called_dot_git_is_found(void **state)
{
	struct place *p = *state;

	sh(p, "mkdir wt && cd wt && touch .git && mkdir -p a/b/c d e/.git/f/.git g/.gitx .GIT h/.git/modules && touch a/b/c/.git"
		  " && ln -s /nowhere d/.git && mkdir -p h/below/.git real && ln -s ../e linked && mkfifo pipe real/pipe");
	assert_string_equal(paths(p, walk(p, NULL)), " a/b/c d e h");
	sh(p, "rm -r wt/a wt/d wt/e wt/h");
	assert_string_equal(paths(p, walk(p, NULL)), "");
}

static void
git_05_a_bare_repository_is_files(void **state)
{
	struct place *p = *state;

	sh(p, "mkdir wt && git init -q --bare wt/bare.git && git init -q --bare wt/x/y");
	assert_string_equal(paths(p, walk(p, NULL)), "");
	sh(p, "git init -q wt/x/z");
	assert_string_equal(paths(p, walk(p, NULL)), " x/z");
}

static void
krafts_own_checkouts_are_neither_found_nor_entered(void **state)
{
	struct place *p = *state;
	struct kr_strs own = { 0 };

	sh(p, "mkdir -p wt/member/sub/inner/.git wt/member/.git wt/memberx/.git");
	kr_strs_add(&p->arena, &own, "member");
	assert_string_equal(paths(p, walk(p, &own)), " memberx");
}

static void
ref_04_what_cannot_be_looked_into_is_found(void **state)
{
	struct place *p = *state;

	if (geteuid() == 0) { /* nothing is closed to root */
		sh(p, "mkdir wt");
	} else {
		sh(p, "mkdir -p wt/shut/x wt/list/.git wt/enter/.git && chmod 0 wt/shut && chmod 400 wt/list && chmod 100 wt/enter");
		assert_string_equal(paths(p, walk(p, NULL)), "!enter!list!shut");
		sh(p, "chmod 700 wt/* && rm -r wt/*");
	}
	sh(p, "cd wt && i=0; while [ $i -lt 300 ]; do mkdir d && cd d || exit 1; i=$((i+1)); done");
	assert_int_equal(walk(p, NULL).v[0].kind, KR_PLANTED_CLOSED);
}

static void
very_many_are_counted_no_further(void **state)
{
	struct place *p = *state;
	struct kr_planted found;

	sh(p, "mkdir wt && cd wt && seq 1 10100 | sed 's,$,/.git,' | xargs mkdir -p");
	found = walk(p, NULL);
	assert_int_equal(found.n, KR_PLANTED_MAX);
	assert_true(found.has_more);
	assert_non_null(strstr(kr_planted_sum_up(&p->arena, &found), "at least 9999 more"));
}

static void
a_worktree_that_is_gone_is_an_error(void **state)
{
	struct place *p = *state;
	struct kr_planted found = { 0 };
	struct kr_error err = { 0 };

	assert_int_equal(kr_planted_walk(&p->arena, below(p, "wt"), NULL, &found, &err), -1);
	assert_int_equal(err.sys_errno, ENOENT);
	assert_int_equal(found.n, 0);
}

static struct kr_planted
planted_of(struct place *p, const char *const *names, size_t n)
{
	struct kr_planted found = { .v = kr_arena_alloc(&p->arena, n * sizeof(*found.v)), .n = n, .cap = n };

	for (size_t i = 0; i < n; i++)
		found.v[i].path = names[i];
	return found;
}

static void
only_what_was_asked_and_in_order_is_taken_for_an_answer(void **state)
{
	static const char *const names[] = { ":(top)b", "a", "c\nd", "e" };
	static const struct {
		const char *bytes;
		size_t n;
		const char *left; /* NULL: no answer */
	} cases[] = {
		{ TEXT(""), " :(top)b a c\nd e" },
		{ TEXT("./a\0"), " :(top)b c\nd e" },
		{ TEXT("./:(top)b\0./e\0"), " a c\nd" },
		{ TEXT("./:(top)b\0./a\0./c\nd\0./e\0"), "" },
		{ TEXT("./a"), NULL },
		{ TEXT("a\0"), NULL },
		{ TEXT("./b\0"), NULL },
		{ TEXT("./e\0./a\0"), NULL },
		{ TEXT("./a\0./a\0"), NULL },
		{ TEXT("./a\0\0"), NULL },
		{ TEXT("\0"), NULL },
		{ TEXT("./e\0./x\0"), NULL },
	};
	struct place *p = *state;

	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_planted found = planted_of(p, names, KR_COUNT(names));
		bool is_answer = kr_planted_drop_ignored(&found, cases[i].bytes, cases[i].n);

		assert_int_equal(is_answer, cases[i].left != NULL);
		if (is_answer)
			assert_string_equal(paths(p, found), cases[i].left);
		else
			assert_int_equal(found.n, KR_COUNT(names));
	}
}

/* The command, run here as it would be inside. */
static void
git_answers_what_is_ignored(void **state)
{
	static const char *const names[] = { ":(top)odd", "a\nb", "build/x", "glob*", "kept", "sub/nm/y" };
	struct place *p = *state;
	struct kr_planted found = planted_of(p, names, KR_COUNT(names));
	const struct kr_private git = { .dir = below(p, "wt/.git") };
	const char *in;
	size_t n, words = 0;
	const char *const *argv = kr_planted_ask(&p->arena, &git, &found, &in, &n);
	kr_auto_buf struct kr_buf answer = KR_BUF(4096);
	kr_auto_fd int fd = open(below(p, "in"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	sh(p, "git init -q wt && cd wt && mkdir -p ./:\\(top\\)odd 'a\nb' build/x 'glob*' kept sub/nm/y && printf 'nm\\n/build/\\n:*\\nglob*\\n' >.gitignore");
	assert_int_equal(kr_write_all(fd, in, n, NULL), 0);
	while (argv[words])
		words++;
	assert_int_equal(words, 6);
	sh(p, "cd wt && '%s' '%s' '%s' '%s' '%s' '%s' <../in >../answer", argv[0], argv[1], argv[2], argv[3], argv[4],
		argv[5]);
	assert_int_equal(kr_file_read_at(AT_FDCWD, below(p, "answer"), &answer, NULL), 0);
	assert_true(kr_planted_drop_ignored(&found, answer.data, answer.len));
	assert_string_equal(paths(p, found), " a\nb kept");
}

/* ---- links ---- */

static const char *
oid(struct place *p, const char *name)
{
	return sh_says(p, "git -C wt rev-parse %s >said", name);
}

static void
ref_04_links_that_a_branch_brought_are_found(void **state)
{
	struct place *p = *state;
	const char *common = below(p, "wt/.git");
	struct kr_planted found = { 0 }, other = { 0 };
	struct kr_error err = { 0 };

#define LINK "git update-index --add --cacheinfo 160000,$(git rev-parse %s),%s && git commit -qm l"
	sh(p, "git init -q wt && cd wt && git commit -q --allow-empty -m 0 && " LINK " && git branch base && echo x >file && git add file"
		  " && git commit -qm 1 && " LINK " && " LINK " && git rm -q --cached old && git commit -qm 2", "HEAD", "old", "HEAD", "new", "HEAD", "odd");
	assert_int_equal(kr_planted_links(&p->arena, common, oid(p, "base"), oid(p, "HEAD"), &found, &err), 0);
	assert_string_equal(paths(p, found), ">new>odd");
	assert_int_equal(kr_planted_links(&p->arena, common, oid(p, "HEAD^"), oid(p, "HEAD"), &other, &err), 0);
	assert_int_equal(other.n, 0);
	assert_int_equal(kr_planted_links(&p->arena, common, oid(p, "HEAD~2"), oid(p, "HEAD"), &other, &err), 0);
	kr_planted_keep_common(&found, &other);
	assert_string_equal(paths(p, found), ">odd");
	found.n = 0;
	sh(p, "cd wt && " LINK, "base", "new");
	assert_int_equal(kr_planted_links(&p->arena, common, oid(p, "HEAD^"), oid(p, "HEAD"), &found, &err), 0);
	assert_string_equal(paths(p, found), ">new");
	assert_int_equal(kr_planted_links(&p->arena, common, oid(p, "HEAD"), "0000000000000000000000000000000000000001", &found, &err), -1);
	assert_int_equal(err.code, KR_E_GIT);
}

#define O40 "1111111111111111111111111111111111111111"
static void
what_is_no_diff_is_not_read_as_one(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		const char *links; /* NULL: not read */
	} cases[] = {
		{ TEXT(""), "" },
		{ TEXT(":000000 160000 " O40 " " O40 " A\0a b\nc\0"), ">a b\nc" },
		{ TEXT(":160000 000000 " O40 " " O40 " D\0a\0:100644 160000 " O40 " " O40 " T\0b\0"), ">b" },
		{ TEXT(":000000 160000 " O40 " " O40 " A\0"), NULL },
		{ TEXT(":000000 160000 " O40 " " O40 " A\0\0"), NULL },
		{ TEXT(":000000 160000 " O40 " " O40 " A\0a"), NULL },
		{ TEXT(":000000 160000 " O40 " A\0a\0"), NULL },
		{ TEXT("000000 160000 " O40 " " O40 " A\0a\0"), NULL },
		{ TEXT(":000000 160000 " O40 " " O40 " R100\0a\0b\0"), NULL },
		{ TEXT(":000000 160000 " O40 " " O40 " A\0a\0junk"), NULL },
		{ TEXT("\0"), NULL },
		{ TEXT(":\0"), NULL },
	};
	struct place *p = *state;

	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_planted found = { 0 };
		bool is_read = kr_planted_links_parse(&p->arena, cases[i].bytes, cases[i].n, &found);

		assert_int_equal(is_read, cases[i].links != NULL);
		assert_string_equal(paths(p, found), cases[i].links ? cases[i].links : "");
	}
}

static void
what_a_person_is_told_is_escaped(void **state)
{
	static const char *const names[] = { "\x1b[31m", "b" };
	struct place *p = *state;
	struct kr_planted found = planted_of(p, names, 2);

	assert_string_equal(kr_planted_sum_up(&p->arena, &found),
		"'\\x1b[31m' is a git repository that kraft did not make, and 1 more is in the way");
	found.n = 1;
	assert_string_equal(kr_planted_sum_up(&p->arena, &found), "'\\x1b[31m' is a git repository that kraft did not make");
}

/* ---- leftovers ---- */

static const char *
joined(struct place *p, const struct kr_strs *list)
{
	const char *out = "";

	for (size_t i = 0; i < list->n; i++)
		out = kr_arena_printf(&p->arena, "%s%s|", out, list->v[i]);
	return out;
}

static void
what_is_no_status_is_not_read_as_one(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		const char *paths; /* NULL: not read */
	} cases[] = {
		{ TEXT(""), "" },
		{ TEXT("?? a b\0 M c\0"), "a b|c|" },
		{ TEXT("?? new\nline\xff\x1b\0"), "new\\nline\\xff\\x1b|" },
		{ TEXT("?? a"), NULL },
		{ TEXT("?? a\0\0"), NULL },
		{ TEXT("?? \0"), NULL },
		{ TEXT("??a\0"), NULL },
		{ TEXT("R  a\0b\0"), NULL },
		{ TEXT("?? /etc\0"), NULL },
		{ TEXT("\0"), NULL },
		{ TEXT("x\0"), NULL },
	};
	struct place *p = *state;

	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_strs found = { 0 };
		bool is_read = kr_leftovers_parse(&p->arena, cases[i].bytes, cases[i].n, &found);

		assert_int_equal(is_read, cases[i].paths != NULL);
		assert_string_equal(joined(p, &found), cases[i].paths ? cases[i].paths : "");
	}
}

/* The command, run here as it would be inside; what it printed is in "answer". */
static int
commit_leftovers(struct place *p, const char *message)
{
	const struct kr_private git = { .dir = below(p, "wt/.git") };
	const char *const *argv = kr_leftovers_commit(&p->arena, &git, message);
	posix_spawn_file_actions_t actions;
	pid_t pid;
	int status = -1;

	assert_int_equal(chdir(below(p, "wt")), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 1, below(p, "answer"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_int_equal(posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)argv, environ), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	posix_spawn_file_actions_destroy(&actions);
	assert_int_equal(chdir("/"), 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static void
leftovers_are_committed_once(void **state)
{
	struct place *p = *state;

	sh(p, "git init -q wt && cd wt && echo '*.o' >.gitignore && echo 1 >gone && echo 1 >kept.o && git add -f . && git commit -qm 0 &&"
		  " rm gone && echo 2 >>kept.o && echo x >x.o && mkdir d && echo n >d/n && touch .git/index.lock");
	assert_int_equal(commit_leftovers(p, "# it's \"$(id)\""), 0);
	assert_string_equal(sh_says(p, "cd wt && git log -1 --format=%%s --name-status | tr '\\n\\t' '| ' >../said"),
		"# it's \"$(id)\"||A d/n|D gone|M kept.o|");
	assert_string_equal(sh_says(p, "cat answer >said"), "");
	assert_int_equal(commit_leftovers(p, "again"), 0);
	assert_string_equal(sh_says(p, "git -C wt rev-list --count HEAD >said"), "2");
	/* An object directory that takes nothing: no commit, and it says so. */
	sh(p, "cd wt && echo y >y && mv .git/objects .git/o && touch .git/objects");
	assert_int_equal(commit_leftovers(p, "broken"), KR_LEFTOVERS_FAILED);
	sh(p, "cd wt && rm .git/objects && mv .git/o .git/objects && test $(git rev-list --count HEAD) = 2 && test -f y");
}

static void
names_that_git_refuses_are_left_out(void **state)
{
	struct place *p = *state;
	struct kr_strs found = { 0 };
	kr_auto_buf struct kr_buf answer = KR_BUF(4096);

	sh(p, "git init -q wt && cd wt && git commit -q --allow-empty -m 0 && mkdir .GIT && touch .GIT/x git~1 fine && mkfifo pipe");
	assert_int_equal(commit_leftovers(p, "m"), 0);
	assert_int_equal(kr_file_read_at(AT_FDCWD, below(p, "answer"), &answer, NULL), 0);
	assert_true(kr_leftovers_parse(&p->arena, answer.data, answer.len, &found));
	assert_string_equal(joined(p, &found), ".GIT/x|git~1|");
	assert_string_equal(sh_says(p, "git -C wt ls-files >said"), "fine");
}

static void
ctr_05_a_commit_needs_both_names_and_addresses(void **state)
{
	static const char *const all[] = { "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@x", "GIT_COMMITTER_NAME=C",
		"GIT_COMMITTER_EMAIL=c@x" };
	struct place *p = *state;

	for (size_t without = 0; without <= KR_COUNT(all); without++) {
		struct kr_strs identity = { 0 };

		for (size_t i = 0; i < KR_COUNT(all); i++)
			if (i != without)
				kr_strs_add(&p->arena, &identity, all[i]);
		assert_int_equal(kr_leftovers_has_identity(&identity), without == KR_COUNT(all));
	}
	assert_string_equal(kr_leftovers_message(&p->arena, "/usr/bin/ma\nke", "x"), "kraft: left by ma\\nke in item x");
}

/* ---- who looks ---- */

static struct kr_private
opened(struct place *p, const struct kr_checkout *checkout)
{
	struct kr_private git;
	struct kr_error err = { 0 };

	if (kr_private_open(&p->arena, below(p, "run"), "it", 0, checkout, below(p, "wt"), &git, &err) < 0)
		fail_msg("%s", err.message);
	return git;
}

static void
ref_04_one_of_the_sessions_is_the_last(void **state)
{
	struct place *p = *state;
	struct kr_checkout checkout;
	struct kr_private a, b, c;
	struct kr_error err = { 0 };
	char start[KR_OID_HEX_MAX + 1];
	const struct kr_private_make want = { .branch = "kraft/it", .start = start, .synced = "" };

	sh(p, "git init -q r && git -C r commit -q --allow-empty -m 0");
	assert_int_equal(kr_checkout_find(&p->arena, below(p, "r"), &checkout, &err), 0);
	assert_int_equal(kr_checkout_head(&checkout, start, &err), 0);
	a = opened(p, &checkout);
	assert_int_equal(kr_private_make(&p->arena, &a, &checkout, &want, &err), 0);
	assert_int_equal(kr_private_share(&a, &err), 0);
	b = opened(p, &checkout);
	c = opened(p, &checkout);
	assert_true(b.is_shared && c.is_shared);
	/* In whatever order they end: while one has not, none is the last; then the first who asks is, and only that one. */
	assert_false(kr_private_is_last(&a));
	assert_false(kr_private_is_last(&b));
	assert_true(kr_private_is_last(&c));
	assert_false(kr_private_is_last(&a));
	kr_private_close(&c);
	kr_private_close(&b);
	kr_private_close(&a);
	a = opened(p, &checkout);
	assert_false(a.is_shared);
	assert_true(kr_private_is_last(&a));
	kr_private_close(&a);
	assert_false(kr_private_is_last(&a));
}

static void
the_mark_is_made_and_taken_away(void **state)
{
	struct place *p = *state;
	const struct kr_private git = { .dir = below(p, "it-0") };
	struct kr_error err = { 0 };

	assert_false(kr_private_is_clean(&git));
	assert_int_equal(kr_private_unmark_clean(&git, &err), 0);
	kr_private_mark_clean(&git);
	kr_private_mark_clean(&git);
	assert_true(kr_private_is_clean(&git));
	assert_int_equal(kr_private_unmark_clean(&git, &err), 0);
	assert_false(kr_private_is_clean(&git));
	sh(p, "mkdir it-0.clean"); /* a mark that cannot be taken away stops the launch */
	assert_int_equal(kr_private_unmark_clean(&git, &err), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		place_test(ref_04_whatever_is_called_dot_git_is_found),
		place_test(git_05_a_bare_repository_is_files),
		place_test(krafts_own_checkouts_are_neither_found_nor_entered),
		place_test(ref_04_what_cannot_be_looked_into_is_found),
		place_test(very_many_are_counted_no_further),
		place_test(a_worktree_that_is_gone_is_an_error),
		place_test(only_what_was_asked_and_in_order_is_taken_for_an_answer),
		place_test(git_answers_what_is_ignored),
		place_test(ref_04_links_that_a_branch_brought_are_found),
		place_test(what_is_no_diff_is_not_read_as_one),
		place_test(what_a_person_is_told_is_escaped),
		place_test(what_is_no_status_is_not_read_as_one),
		place_test(leftovers_are_committed_once),
		place_test(names_that_git_refuses_are_left_out),
		place_test(ctr_05_a_commit_needs_both_names_and_addresses),
		place_test(ref_04_one_of_the_sessions_is_the_last),
		place_test(the_mark_is_made_and_taken_away),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
