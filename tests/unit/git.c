/* git: finding a checkout and its HEAD as data, the one caller, worktrees, snapshots. All with real git. */
#include "repo.h"

static struct kr_checkout
find(struct place *place, const char *name)
{
	struct kr_checkout out = { 0 };
	struct kr_error err = { 0 };

	if (kr_checkout_find(&place->arena, below(place, name), &out, &err) < 0)
		fail_msg("%s: %s", name, err.message);
	return out;
}

static enum kr_error_code
find_fails(struct place *place, const char *name, const char *part)
{
	struct kr_checkout out = { .root = "untouched" };
	struct kr_error err = { 0 };

	assert_int_equal(kr_checkout_find(&place->arena, below(place, name), &out, &err), -1);
	assert_string_equal(out.root, "untouched");
	if (!strstr(err.message, part))
		fail_msg("'%s' is not in: %s", part, err.message);
	return err.code;
}

/* HEAD as kraft reads it is HEAD as git reads it. */
static void
same_head(struct place *place, const char *name)
{
	struct kr_checkout c = find(place, name);
	struct kr_error err = { 0 };
	char oid[KR_OID_HEX_MAX + 1];

	if (kr_checkout_head(&c, oid, &err) < 0)
		fail_msg("%s: %s", name, err.message);
	assert_string_equal(oid, sh_says(place, "git -C '%s' rev-parse HEAD >said", name));
}

static void
a_checkout_is_found_from_below(void **state)
{
	struct place *p = *state;
	struct kr_checkout c;

	sh(p, "git init -q r && mkdir -p r/a/b && ln -s r link");
	c = find(p, "r/a/b");
	assert_string_equal(c.root, below(p, "r"));
	assert_string_equal(c.git_dir, below(p, "r/.git"));
	assert_string_equal(c.common, below(p, "r/.git"));
	c = find(p, "link/a");
	assert_string_equal(c.root, below(p, "r"));
	sh(p, "mkdir r/a/.git"); /* an empty one is none, as for git */
	c = find(p, "r/a");
	assert_string_equal(c.root, below(p, "r"));
}

static void
a_linked_git_directory_is_resolved(void **state)
{
	struct place *p = *state;
	struct kr_checkout c;

	sh(p, "git init -q r && mv r/.git store && ln -s ../store r/.git && git init -q --separate-git-dir=apart "
		  "s &&"
		  " git -C r commit -qm x --allow-empty && git -C s commit -qm x --allow-empty");
	c = find(p, "r");
	assert_string_equal(c.git_dir, below(p, "store"));
	c = find(p, "s");
	assert_string_equal(c.git_dir, below(p, "apart"));
	same_head(p, "r");
	same_head(p, "s");
}

static void
worktrees_and_submodules_are_found(void **state)
{
	struct place *p = *state;
	struct kr_checkout c;

	sh(p, "git init -q r && git -C r commit -qm one --allow-empty && git -C r worktree add -q ../w "
		  "2>/dev/null &&"
		  " git -C w commit -qm two --allow-empty && git init -q m && git -C m commit -qm m --allow-empty &&"
		  " git -C r submodule --quiet add ../m sub && git -C r commit -qam sub");
	c = find(p, "w");
	assert_string_equal(c.git_dir, below(p, "r/.git/worktrees/w"));
	assert_string_equal(c.common, below(p, "r/.git"));
	c = find(p, "r/sub");
	assert_string_equal(c.root, below(p, "r/sub"));
	assert_string_equal(c.git_dir, below(p, "r/.git/modules/sub"));
	assert_string_equal(c.common, c.git_dir);
	same_head(p, "r");
	same_head(p, "w");
	same_head(p, "r/sub");
}

static void
what_is_no_checkout_says_so(void **state)
{
	struct place *p = *state;

	sh(p, "git init -q --bare b.git && mkdir none gone bad && git init -q r && echo 'gitdir: /nowhere/x' "
		  ">gone/.git &&"
		  " echo hello >bad/.git && mkdir huge && head -c 9000 /dev/zero >huge/.git");
	assert_int_equal(find_fails(p, "none", "is not inside a git checkout"), KR_E_NOT_FOUND);
	assert_int_equal(find_fails(p, "absent", "cannot find"), KR_E_NOT_FOUND);
	assert_int_equal(find_fails(p, "b.git", "is a bare repository"), KR_E_NOT_FOUND);
	assert_int_equal(find_fails(p, "r/.git/hooks", "not a checkout"), KR_E_NOT_FOUND);
	assert_int_equal(find_fails(p, "gone", "'/nowhere/x', which is not there"), KR_E_NOT_FOUND);
	assert_int_equal(find_fails(p, "bad", "does not say 'gitdir:'"), KR_E_NOT_FOUND);
	assert_int_equal(find_fails(p, "huge", "is larger than"), KR_E_LIMIT);
}

static void
names_may_hold_anything(void **state)
{
	struct place *p = *state;
	static const char name[] = "a b\n'$(x)";

	sh(p, "d=\"$(printf \"a b\\n'\\044(x)\")\" && git init -q \"$d\" && git -C \"$d\" commit -qm x "
		  "--allow-empty &&"
		  " git -C \"$d\" worktree add -q --detach \"../w $d\" 2>/dev/null && git -C \"$d\" rev-parse HEAD "
		  ">said");
	for (unsigned i = 0; i < 2; i++) {
		struct kr_checkout c = find(p, i ? kr_arena_printf(&p->arena, "w %s", name) : name);
		char oid[KR_OID_HEX_MAX + 1];

		assert_int_equal(kr_checkout_head(&c, oid, NULL), 0);
		assert_string_equal(oid, said(p));
	}
}

/* CVE-2022-24765: GIT_DIR switches git's own check off. */
static void
another_users_repository_is_refused(void **state)
{
	struct place *p = *state;
	struct kr_checkout out;
	struct kr_error err = { 0 };

	sh(p, "git init -q r && git -C r commit -qm x --allow-empty && chown -R 12345 r/.git");
	assert_int_equal(find_fails(p, "r", "belongs to another user"), KR_E_REFUSED);
	sh(p, "git config --global --add safe.directory /elsewhere");
	assert_int_equal(find_fails(p, "r", "belongs to another user"), KR_E_REFUSED);
	sh(p, "git config --global --add safe.directory '%s/r'", p->top);
	assert_int_equal(kr_checkout_find(&p->arena, below(p, "r"), &out, &err), 0);
	sh(p, "git config --global --add safe.directory ''"); /* clears the list */
	assert_int_equal(find_fails(p, "r", "belongs to another user"), KR_E_REFUSED);
	sh(p, "git config -f r/.git/config safe.directory '*' && git config --global --unset-all safe.directory");
	assert_int_equal(find_fails(p, "r", "belongs to another user"), KR_E_REFUSED);
}

static void
head_is_read_in_every_storage(void **state)
{
	struct place *p = *state;

	sh(p, "git init -q r && cd r && git commit -qm one --allow-empty && git commit -qm two --allow-empty");
	same_head(p, "r");
	sh(p, "cd r && for i in 1 2 3; do git branch main$i HEAD~; git branch xmain$i HEAD~; done && git "
		  "pack-refs --all");
	same_head(p, "r");
	sh(p, "cd r && git commit -qm three --allow-empty"); /* loose wins over packed */
	same_head(p, "r");
	sh(p, "cd r && git checkout -q --detach HEAD~");
	same_head(p, "r");
	sh(p, "cd r && git checkout -q -b feat/ure/x && git pack-refs --all && git tag -a -m t v1");
	same_head(p, "r");
	sh(p, "cd r && git symbolic-ref refs/heads/alias refs/heads/main && git symbolic-ref HEAD "
		  "refs/heads/alias");
	same_head(p, "r");
	sh(p, "cd r && rm .git/HEAD && ln -s refs/heads/main .git/HEAD"); /* as git made it long ago */
	same_head(p, "r");
	sh(p, "git init -q --object-format=sha256 s && git -C s commit -qm x --allow-empty");
	same_head(p, "s");
}

static void
a_branch_without_a_commit_says_so(void **state)
{
	struct place *p = *state;
	struct kr_checkout c;
	struct kr_error err = { 0 };
	char oid[KR_OID_HEX_MAX + 1] = "untouched";

	sh(p, "git init -q r");
	c = find(p, "r");
	assert_int_equal(kr_checkout_head(&c, oid, &err), -1);
	assert_int_equal(err.code, KR_E_NOT_FOUND);
	assert_non_null(strstr(err.message, "has no commit yet: HEAD names 'refs/heads/main'"));
	assert_string_equal(oid, "untouched");
}

/* HEAD is a file that anybody may have edited: nothing outside the git directory is read for it. */
static void
a_head_that_leads_out_is_not_followed(void **state)
{
	struct place *p = *state;
	static const char *const heads[] = { "ref: ../../outside", "ref: refs/../../../outside",
		"ref: /etc/passwd", "", "ref: refs/heads/main" };
	struct kr_checkout c;

	sh(p, "git init -q r && git -C r commit -qm x --allow-empty && git -C r rev-parse HEAD >outside");
	c = find(p, "r");
	for (size_t i = 0; i < KR_COUNT(heads) - 1; i++) {
		struct kr_error err = { 0 };
		char oid[KR_OID_HEX_MAX + 1];

		sh(p, "printf '%%s' '%s' >r/.git/HEAD", heads[i]);
		assert_int_equal(kr_checkout_head(&c, oid, &err), -1);
		assert_int_equal(err.code, KR_E_GIT);
	}
	sh(p, "echo ref: refs/heads/l2 >r/.git/refs/heads/l1 && echo ref: refs/heads/l1 >r/.git/refs/heads/l2 &&"
		  " echo ref: refs/heads/l1 >r/.git/HEAD");
	assert_int_equal(kr_checkout_head(&c, (char[KR_OID_HEX_MAX + 1]){ 0 }, NULL), -1);
}

/* A storage that this kraft does not read: git is asked, and what it says is passed on. */
static void
another_ref_storage_is_gits_to_read(void **state)
{
	struct place *p = *state;
	struct kr_checkout c;
	struct kr_error err = { 0 };
	char oid[KR_OID_HEX_MAX + 1];

	sh(p, "git init -q r && git -C r commit -qm x --allow-empty");
	c = find(p, "r");
	sh(p, "cd r/.git && mkdir reftable && git rev-parse HEAD >../../said");
	assert_int_equal(kr_checkout_head(&c, oid, &err), 0); /* git still reads files here */
	assert_string_equal(oid, said(p));
	sh(p, "cd r/.git && printf '[core]\\n\\trepositoryformatversion = 1\\n[extensions]\\n\\trefStorage = "
		  "reftable\\n'"
		  " >config && echo 'ref: refs/heads/.invalid' >HEAD");
	assert_int_equal(kr_checkout_head(&c, oid, &err), -1);
	assert_int_equal(err.code, KR_E_UNSUPPORTED);
	assert_non_null(strstr(err.message, "keeps its refs as reftable"));
}

/* ---- the one caller ---- */

static const char *
run_out(struct place *p, const struct kr_git_where *where, const char *const argv[])
{
	struct kr_buf out = KR_BUF(1 << 20);
	struct kr_error err = { 0 };
	const char *text;

	if (kr_git_run(where, argv, &out, &err) < 0)
		fail_msg("%s", err.message);
	text = kr_arena_dup(&p->arena, out.len ? out.data : "");
	kr_buf_fini(&out);
	return text;
}

/* An alias shows what a helper of git would see: environment, descriptors, terminal. */
static const char *
seen_by_helper(struct place *p, const char *line)
{
	const char *const argv[] = { "-c", kr_arena_printf(&p->arena, "alias.look=!%s", line), "look", NULL };
	struct kr_checkout c = find(p, "r");
	struct kr_git_where where = { .git_dir = c.git_dir, .work_tree = c.root };

	return run_out(p, &where, argv);
}

static void
our_environment_does_not_steer_git(void **state)
{
	struct place *p = *state;
	static const char *const set[] = { "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY",
		"GIT_CONFIG_PARAMETERS", "GIT_EXEC_PATH", "GIT_SSH_COMMAND", "GIT_TRACE", "GIT_CONFIG_GLOBAL",
		"LD_AUDIT_X", "CANARY", "GIT_NAMESPACE", "GIT_EXTERNAL_DIFF", "GIT_TEMPLATE_DIR",
		"GIT_CEILING_DIRECTORIES" };
	const char *seen;

	sh(p, "git init -q r && git -C r commit -qm x --allow-empty");
	for (size_t i = 0; i < KR_COUNT(set); i++)
		setenv(set[i], "/canary", 1);
	seen = seen_by_helper(p, "env");
	for (size_t i = 0; i < KR_COUNT(set); i++)
		unsetenv(set[i]);
	if (strstr(seen, "canary"))
		fail_msg("crossed: %s", strstr(seen, "canary"));
	assert_non_null(strstr(seen, kr_arena_printf(&p->arena, "HOME=%s/home\n", p->top)));
	assert_non_null(strstr(seen, "LC_ALL=C\n"));
	assert_non_null(strstr(seen, "GIT_TERMINAL_PROMPT=0\n"));
	assert_non_null(strstr(seen, "GIT_OPTIONAL_LOCKS=0\n"));
	assert_non_null(strstr(seen, "GIT_NO_REPLACE_OBJECTS=1\n"));
	assert_non_null(strstr(seen, "GIT_NO_LAZY_FETCH=1\n"));
}

/* PROC-17 and its kind: what a checkout, a worktree or the current directory offers as a program is not run
 * on the host. */
static void
git_and_its_helpers_come_from_no_checkout(void **state)
{
	struct place *p = *state;
	char *before = kr_xstrdup(getenv("PATH"));
	const char *path, *seen;

	sh(p, "git init -q r && git -C r commit -qm x --allow-empty && mkdir -p r/bin/deep tools && ln -s r/bin "
		  "alias");
	sh(p, "git -C r worktree add -q ../w && mkdir w/bin");
	path = kr_arena_printf(&p->arena, ".::bin:%s:%s:%s:%s:%s:%s", below(p, "r/bin"), below(p, "r/bin/deep"),
		below(p, "alias"), below(p, "w/bin"), below(p, "tools"), before);
	setenv("PATH", path, 1);
	seen = seen_by_helper(p, "echo :$PATH:");
	setenv("PATH", before, 1);
	free(before);
	assert_null(strstr(seen, ":."));
	assert_null(strstr(seen, ":bin"));
	assert_null(strstr(seen, "/r/bin"));
	assert_null(strstr(seen, "/alias"));
	assert_null(strstr(seen, "/w/bin"));
	assert_non_null(strstr(seen, "/tools:")); /* a place of the person's own still counts */
}

/* PROC-15: a descriptor without close-on-exec, as some library may open one, stays ours. */
static void
descriptors_and_terminal_stay_ours(void **state)
{
	struct place *p = *state;
	kr_auto_fd int low = open("/", O_RDONLY | O_DIRECTORY), high = -1;
	const char *seen;

	sh(p, "git init -q r && git -C r commit -qm x --allow-empty");
	high = fcntl(low, F_DUPFD, 700);
	assert_true(high >= 700);
	seen = seen_by_helper(p, "for f in /proc/$$/fd/*; do readlink $f; done | grep -c '^/$' || :");
	assert_string_equal(seen, "0\n");
	seen =
		seen_by_helper(p, "readlink /proc/$$/fd/0; (: </dev/tty) 2>/dev/null && echo terminal || echo none");
	assert_string_equal(seen, "/dev/null\nnone\n");
}

static void
signals_of_ours_are_not_inherited(void **state)
{
	struct place *p = *state;
	sigset_t blocked, before;
	const char *seen;

	sh(p, "git init -q r && git -C r commit -qm x --allow-empty");
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	signal(SIGUSR2, SIG_IGN);
	seen = seen_by_helper(p, "grep -E '^Sig(Blk|Ign)' /proc/self/status | tr -d '\\t 0\\n'");
	sigprocmask(SIG_SETMASK, &before, NULL);
	signal(SIGUSR2, SIG_DFL);
	assert_string_equal(seen, "SigBlk:SigIgn:");
}

static void
errors_carry_gits_reason(void **state)
{
	struct place *p = *state;
	static const char *const bad[] = { "rev-parse", "--verify", "no-such-thing", NULL };
	static const char *const big[] = { "-c", "alias.big=!head -c 100000 /dev/zero", "big", NULL };
	static const char *const loud[] = { "-c",
		"alias.x=!head -c 1000000 /dev/zero >&2; printf '\\n\\033[2Jbye\\n' >&2; exit 3", "x", NULL };
	struct kr_buf out = KR_BUF(1000);
	struct kr_error err = { 0 };
	struct kr_checkout c;
	struct kr_git_where where = { 0 };

	sh(p, "git init -q r && git -C r commit -qm x --allow-empty");
	c = find(p, "r");
	where.git_dir = c.git_dir;
	where.work_tree = c.root;
	assert_int_equal(kr_git_run(&where, bad, &out, &err), -1);
	assert_int_equal(err.code, KR_E_GIT);
	assert_string_equal(err.message, "git rev-parse failed: Needed a single revision");
	assert_int_equal(kr_git_run(&where, big, &out, &err), -1);
	assert_int_equal(err.code, KR_E_LIMIT);
	assert_int_equal(
		kr_git_run(&where, loud, NULL, &err), -1); /* a megabyte of it fills no memory and blocks nobody */
	assert_string_equal(err.message, "git -c failed: \\x1b[2Jbye");
	kr_buf_fini(&out);
}

/* A filter's helper may stay behind and hold the pipes; the run ends with git all the same. */
static void
a_helper_that_stays_behind_blocks_nobody(void **state)
{
	struct place *p = *state;
	const char *seen;

	sh(p, "git init -q r && git -C r commit -qm x --allow-empty");
	alarm(20);
	seen = seen_by_helper(p, "sleep 60 & echo $!");
	alarm(0);
	assert_true(strlen(seen) > 1);
	sh(p, "kill %s", seen);
}

/* A kraft that is killed takes its git along. */
static void
git_dies_with_us(void **state)
{
	struct place *p = *state;
	const char *pid_file = below(p, "pid");
	pid_t child;
	int status;

	sh(p, "git init -q r && git -C r commit -qm x --allow-empty");
	child = fork();
	if (child == 0) {
		struct kr_checkout c = find(p, "r");
		struct kr_git_where where = { .git_dir = c.git_dir, .work_tree = c.root };
		static const char *const argv[] = { "cat-file", "--batch", NULL };
		struct kr_git_run run = { 0 };
		char text[32];
		int fd = open(pid_file, O_WRONLY | O_CREAT, 0600);

		/* stdin is /dev/null: it would end at once; so stop it first */
		if (kr_git_start(&where, argv, &run, NULL) < 0)
			_exit(1);
		kill(run.pid, SIGSTOP);
		snprintf(text, sizeof(text), "%d", run.pid);
		(void)!write(fd, text, strlen(text));
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	sh(p, "for i in $(seq 100); do kill -0 $(cat pid) 2>/dev/null || exit 0;"
		  " case $(cut -d' ' -f3 /proc/$(cat pid)/stat 2>/dev/null) in Z|'') exit 0;; esac; sleep 0.02; "
		  "done; exit 1");
}

/* GIT-01, GIT-02, GIT-13, GIT-09: what a repository's settings could start is pinned off. */
static void
settings_of_a_repository_start_nothing(void **state)
{
	struct place *p = *state;
	static const char *const verbs[][4] = {
		{ "status", "--porcelain", NULL },
		{ "diff", "--no-ext-diff", NULL },
		{ "add", "--all", NULL },
		{ "write-tree", NULL },
		{ "checkout", "-f", "--detach", NULL },
		{ "update-ref", "refs/heads/z", "HEAD", NULL },
		{ "log", "-1", NULL },
		{ "rev-parse", "HEAD", NULL },
		{ "worktree", "list", NULL },
		{ "branch", "y", NULL },
	};
	struct kr_checkout c;

	sh(p,
		"git init -q r && cd r && echo a >f && git add f && git commit -qm x && mkdir ../elsewhere &&"
		" for h in pre-commit post-checkout post-index-change reference-transaction fsmonitor-watchman "
		"pre-auto-gc; do"
		" printf '#!/bin/sh\\necho %%s >>%s/marker\\n' $h >.git/hooks/$h; chmod +x .git/hooks/$h;"
		" cp .git/hooks/$h ../elsewhere/$h; done &&"
		" git config core.fsmonitor \"$PWD/../elsewhere/pre-commit\" && git config core.pager \"touch "
		"%s/marker\" &&"
		" git config core.editor \"touch %s/marker\" && git config gc.auto 1 && git config core.hooksPath "
		"../elsewhere &&"
		" git config core.askPass \"touch %s/marker\" && git config commit.gpgSign true && git config "
		"gpg.program"
		" \"$PWD/../elsewhere/pre-commit\" && echo b >f && echo c >g && rm -f ../marker",
		p->top, p->top, p->top, p->top);
	sh(p, "cd r && git status >/dev/null; rm ../marker"); /* positive control: plain git runs them */
	c = find(p, "r");
	for (size_t i = 0; i < KR_COUNT(verbs); i++) {
		struct kr_git_where where = { .git_dir = c.git_dir, .work_tree = c.root };

		run_out(p, &where, verbs[i]);
		assert_int_equal(access(below(p, "marker"), F_OK), -1);
	}
}

/* What a worker put in its way: it says nothing, and does not end. */
static void
a_run_that_takes_too_long_is_ended(void **state)
{
	static const char *const argv[] = { "-c", "alias.x=!echo $$ >pid; sleep 100", "x", NULL };
	struct place *p = *state;
	struct kr_checkout c;
	struct kr_error err = { 0 };
	struct kr_git_where where = { .wall_s = 1 };

	sh(p, "git init -q r && git -C r commit -qm x --allow-empty");
	c = find(p, "r");
	where.git_dir = c.git_dir;
	where.work_tree = c.root;
	assert_int_equal(kr_git_run(&where, argv, NULL, &err), -1);
	assert_string_equal(err.message, "git -c was ended: it took too long");
	sh(p, "for i in $(seq 100); do kill -0 $(cat r/pid) 2>/dev/null || exit 0; sleep 0.02; done; exit 1");
}

static void
a_partial_clone_fetches_nothing(void **state)
{
	struct place *p = *state;
	static const char *const show[] = { "cat-file", "-p", "HEAD:f", NULL };
	struct kr_checkout c;
	struct kr_git_where where = { 0 };

	sh(p, "git init -q up && cd up && echo a >f && git add f && git commit -qm x && git config "
		  "uploadpack.allowFilter 1 &&"
		  " cd .. && git clone -q --no-checkout --filter=blob:none \"file://$PWD/up\" r &&"
		  " git -C r config remote.origin.uploadpack \"touch $PWD/marker; git-upload-pack\"");
	c = find(p, "r");
	where.git_dir = c.git_dir;
	assert_int_equal(kr_git_run(&where, show, NULL, NULL), -1);
	assert_int_equal(access(below(p, "marker"), F_OK), -1);
	sh(p, "git -C r cat-file -p HEAD:f >/dev/null && test -e marker"); /* positive control */
}

/* ---- worktrees ---- */

static const char *
add_worktree(struct place *p, const char *repo, const char *name)
{
	struct kr_checkout c = find(p, repo);
	struct kr_error err = { 0 };
	const char *git_dir = NULL;
	char oid[KR_OID_HEX_MAX + 1];

	if (kr_checkout_head(&c, oid, &err) < 0 ||
		kr_worktree_add(&p->arena, &c, below(p, name), oid, -1, &git_dir, &err) < 0)
		fail_msg("%s: %s", repo, err.message);
	assert_true(kr_worktree_is_linked(git_dir, below(p, name)));
	return git_dir;
}

static void
a_worktree_is_the_commit_and_runs_no_hook(void **state)
{
	struct place *p = *state;

	sh(p,
		"git init -q r && cd r && echo a >f && ln -s f l && mkdir d && echo x >d/x && chmod +x d/x && git "
		"add . &&"
		" git commit -qm x && printf '#!/bin/sh\\ntouch %s/marker\\n' >.git/hooks/post-checkout &&"
		" chmod +x .git/hooks/post-checkout && git config core.hooksPath .git/hooks && git status >/dev/null "
		"&&"
		" echo dirty >f && cp .git/index ../index.before",
		p->top);
	add_worktree(p, "r", "w");
	assert_int_equal(access(below(p, "marker"), F_OK), -1);
	sh(p,
		"test -z \"$(git -C w status --porcelain)\" && test $(cat w/f) = a && test -x w/d/x && test -L w/l &&"
		" ! git -C w symbolic-ref -q HEAD");
	sh(p,
		"cmp r/.git/index index.before && test $(cat r/f) = dirty && test \"$(git -C r branch)\" = '* main'");
	sh(p, "git -C r checkout -q -f --detach && test -e marker"); /* positive control */
}

/* GIT-22 */
static void
worktrees_of_every_kind_of_checkout(void **state)
{
	struct place *p = *state;

	sh(p, "git init -q --object-format=sha256 s && echo a >s/f && git -C s add f && git -C s commit -qm x");
	add_worktree(p, "s", "ws");
	sh(p, "test $(cat ws/f) = a");
	sh(p, "git init -q r && echo a >r/f && git -C r add f && git -C r commit -qm one &&"
		  " git -C r worktree add -q ../linked 2>/dev/null && echo b >linked/f && git -C linked commit -qam "
		  "two");
	assert_string_equal(add_worktree(p, "linked", "wl"), below(p, "r/.git/worktrees/wl"));
	sh(p, "test $(cat wl/f) = b");
	sh(p,
		"git init -q o && git -C o submodule --quiet add ../r sub && git -C o commit -qam sub &&"
		" printf '#!/bin/sh\\ntouch %s/marker\\n' >o/.git/hooks/post-checkout && chmod +x "
		"o/.git/hooks/post-checkout",
		p->top);
	assert_string_equal(add_worktree(p, "o/sub", "wsub"), below(p, "o/.git/modules/sub/worktrees/wsub"));
	sh(p, "test $(cat wsub/f) = a && test -z \"$(git -C wsub status --porcelain)\"");
	add_worktree(p, "o", "wo"); /* its submodule stays unpopulated (GIT-06) */
	sh(p, "test -d wo/sub && ! test -e wo/sub/f && ! test -e marker");
}

static void
a_worktree_that_is_gone_is_taken_over_alone(void **state)
{
	struct place *p = *state;

	sh(p, "git init -q r && echo a >r/f && git -C r add f && git -C r commit -qm one &&"
		  " git -C r worktree add -q ../unmounted 2>/dev/null && mv unmounted away");
	add_worktree(p, "r", "w");
	sh(p, "rm -rf w && echo initializing >r/.git/worktrees/w/locked"); /* as a killed `worktree add` leaves it
																		*/
	add_worktree(p, "r", "w");
	sh(p, "test $(cat w/f) = a && mv away unmounted && git -C unmounted status >/dev/null"); /* the person's
																								lives */
}

static void
a_worktree_that_cannot_be_made_says_why(void **state)
{
	struct place *p = *state;
	struct kr_checkout c;
	struct kr_error err = { 0 };

	sh(p, "git init -q r && echo a >r/f && git -C r add f && git -C r commit -qm one && mkdir w && touch "
		  "w/mine");
	c = find(p, "r");
	assert_int_equal(kr_worktree_add(&p->arena, &c, below(p, "w"), "0000000000000000000000000000000000000001",
						 -1, NULL, &err),
		-1);
	assert_int_equal(err.code, KR_E_GIT);
	assert_int_equal(kr_worktree_add(&p->arena, &c, below(p, "w"), "HEAD", -1, NULL, &err), -1);
	assert_non_null(strstr(err.message, "already exists"));
	sh(p, "test -e w/mine");
}

static void
filters_of_the_person_run(void **state)
{
	struct place *p = *state;

	/* as git-lfs does it: the person's own configuration names the filter */
	sh(p, "git config --global filter.up.clean 'tr a-z A-Z' && git config --global filter.up.smudge 'tr A-Z "
		  "a-z' &&"
		  " git init -q r && cd r && echo '*.u filter=up' >.gitattributes && echo hello >f.u && git add . &&"
		  " git commit -qm x && test $(git cat-file -p HEAD:f.u) = HELLO");
	add_worktree(p, "r", "w");
	sh(p, "test $(cat w/f.u) = hello");
}

/* ---- snapshots ---- */

static void
snapshot(struct place *p, const char *repo, char oid[KR_OID_HEX_MAX + 1])
{
	struct kr_checkout c = find(p, repo);
	struct kr_error err = { 0 };
	char head[KR_OID_HEX_MAX + 1];

	if (kr_checkout_head(&c, head, &err) < 0 || kr_checkout_snapshot(&c, head, oid, &err) < 0)
		fail_msg("%s: %s", repo, err.message);
}

static void
a_snapshot_leaves_everything_as_it_is(void **state)
{
	struct place *p = *state;
	char oid[KR_OID_HEX_MAX + 1], again[KR_OID_HEX_MAX + 1];

	sh(p, "git init -q r && cd r && for f in mod del staged both keep; do echo $f >$f; done && echo '*.o' "
		  ">.gitignore &&"
		  " git add . && git commit -qm x && echo 1 >>mod && rm del && echo 2 >>staged && git add staged && "
		  "echo 3 >>both &&"
		  " git add both && echo 4 >>both && echo new >'new file' && echo o >x.o && mkdir d && echo d >d/d &&"
		  " git add -N d/d && (find . -path ./.git/objects -prune -o -type f -print0 | sort -z | xargs -0 "
		  "sha256sum;"
		  " stat -c '%%n %%i %%y' .git .git/index .git/HEAD) >../before");
	snapshot(p, "r", oid);
	sh(p, "cd r && (find . -path ./.git/objects -prune -o -type f -print0 | sort -z | xargs -0 sha256sum;"
		  " stat -c '%%n %%i %%y' .git .git/index .git/HEAD) >../after; cmp ../before ../after");
	assert_string_equal(
		sh_says(p, "git -C r diff-tree -r --name-status --no-commit-id %s | tr '\\t\\n' '  ' >said", oid),
		"M both A d/d D del M mod A new file M staged ");
	assert_string_equal(sh_says(p, "git -C r cat-file -p %s:both | tr '\\n' ' ' >said", oid), "both 3 4 ");
	snapshot(p, "r", again);
	assert_string_equal(oid, again); /* so an unchanged checkout does not move the worktree */
	sh(p, "test $(ls -d /tmp/kraft-index-* 2>/dev/null | wc -l) = 0 || ! find /tmp/kraft-index-* -user $(id "
		  "-u) -newer before"
		  " -prune | grep -q .");
	add_worktree(p, "r", "w");
}

static void
a_clean_checkout_is_its_own_snapshot(void **state)
{
	struct place *p = *state;
	char oid[KR_OID_HEX_MAX + 1];

	sh(p, "git init -q r && cd r && echo a >f && git add f && git commit -qm x && git rev-parse HEAD "
		  ">../said && touch f");
	snapshot(p, "r", oid);
	assert_string_equal(oid, said(p));
}

/* The classic race: same size, same second as the index. A copy of the index with a newer time would miss it.
 */
static void
a_snapshot_sees_a_racy_change(void **state)
{
	struct place *p = *state;

	for (unsigned i = 0; i < 20; i++) {
		char oid[KR_OID_HEX_MAX + 1];

		sh(p, "rm -rf r && git init -q r && cd r && echo aaa >f && git add f && git commit -qm x && git add "
			  "f &&"
			  " t=$(stat -c %%y f) && echo bbb >f && touch -d \"$t\" f .git/index && sleep 0.01");
		snapshot(p, "r", oid);
		assert_string_equal(sh_says(p, "git -C r cat-file -p %s:f >said", oid), "bbb");
	}
}

static void
a_snapshot_copes_with_special_checkouts(void **state)
{
	struct place *p = *state;
	char oid[KR_OID_HEX_MAX + 1];

	/* no index, split index, sha256, a merge in progress, a linked worktree, names with newlines */
	sh(p,
		"git init -q a && cd a && echo a >f && git add f && git commit -qm x && rm .git/index && echo b >f");
	snapshot(p, "a", oid);
	assert_string_equal(sh_says(p, "git -C a cat-file -p %s:f >said && ! test -e a/.git/index", oid), "b");
	sh(p, "git init -q b && cd b && echo a >f && git add f && git commit -qm x && git update-index "
		  "--split-index &&"
		  " echo b >\"$(printf 'n\\nl')\" && ls .git | grep -c sharedindex >../said");
	snapshot(p, "b", oid);
	sh(p,
		"test $(ls b/.git | grep -c sharedindex) = $(cat said) && test $(git -C b ls-tree -r %s | wc -l) = 2",
		oid);
	sh(p, "git init -q --object-format=sha256 c && cd c && echo a >f && git add f && git commit -qm x && "
		  "echo b >f");
	snapshot(p, "c", oid);
	assert_int_equal(strlen(oid), 64);
	sh(p, "git init -q d && cd d && echo a >f && git add f && git commit -qm x && git checkout -qb o && echo "
		  "b >f &&"
		  " git commit -qam b && git checkout -q main && echo c >f && git commit -qam c && ! git merge -q o "
		  ">/dev/null 2>&1");
	snapshot(p, "d", oid);
	sh(p, "git -C d cat-file -p %s:f | grep -q '<<<<' && test -n \"$(git -C d ls-files -u)\"", oid);
	sh(p, "git -C a reset -q && git -C a worktree add -q ../e 2>/dev/null && echo e >e/g");
	snapshot(p, "e", oid);
	assert_string_equal(sh_says(p, "git -C a cat-file -p %s:g >said", oid), "e");
}

/* Submodules are not entered: neither their files nor their settings. */
static void
a_snapshot_does_not_enter_submodules(void **state)
{
	struct place *p = *state;
	char oid[KR_OID_HEX_MAX + 1];

	sh(p,
		"git init -q m && echo m >m/f && git -C m add f && git -C m commit -qm m && git init -q r && cd r &&"
		" git submodule --quiet add ../m sub && git commit -qm x && echo dirty >sub/f && echo u >sub/u && "
		"echo n >new &&"
		" printf '#!/bin/sh\\ntouch %s/marker\\n' >run && chmod +x run && mv run ../run &&"
		" git -C sub config core.fsmonitor %s/run && sha256sum .git/modules/sub/index >../before",
		p->top, p->top);
	snapshot(p, "r", oid);
	sh(p, "cd r && sha256sum .git/modules/sub/index | cmp - ../before && ! test -e ../marker");
	assert_string_equal(sh_says(p, "git -C r diff-tree -r --name-only --no-commit-id %s >said", oid), "new");
	sh(p, "git -C r/sub status >/dev/null; test -e marker"); /* positive control */
}

static void
a_snapshot_that_fails_says_why(void **state)
{
	struct place *p = *state;
	struct kr_checkout c;
	struct kr_error err = { 0 };
	char oid[KR_OID_HEX_MAX + 1], head[KR_OID_HEX_MAX + 1];

	sh(p, "git init -q r && cd r && echo a >f && git add f && git commit -qm x && git init -q inner");
	c = find(p, "r");
	assert_int_equal(kr_checkout_head(&c, head, NULL), 0);
	assert_int_equal(kr_checkout_snapshot(&c, head, oid, &err), -1);
	assert_int_equal(err.code, KR_E_GIT);
	if (!strstr(err.message, "'inner/' does not have a commit checked out"))
		fail_msg("%s", err.message);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		place_test(a_checkout_is_found_from_below),
		place_test(a_linked_git_directory_is_resolved),
		place_test(worktrees_and_submodules_are_found),
		place_test(what_is_no_checkout_says_so),
		place_test(names_may_hold_anything),
		place_test(head_is_read_in_every_storage),
		place_test(a_branch_without_a_commit_says_so),
		place_test(a_head_that_leads_out_is_not_followed),
		place_test(another_ref_storage_is_gits_to_read),
		place_test(our_environment_does_not_steer_git),
		place_test(git_and_its_helpers_come_from_no_checkout),
		place_test(descriptors_and_terminal_stay_ours),
		place_test(signals_of_ours_are_not_inherited),
		place_test(errors_carry_gits_reason),
		place_test(a_helper_that_stays_behind_blocks_nobody),
		place_test(git_dies_with_us),
		place_test(a_run_that_takes_too_long_is_ended),
		place_test(settings_of_a_repository_start_nothing),
		place_test(a_partial_clone_fetches_nothing),
		place_test(a_worktree_is_the_commit_and_runs_no_hook),
		place_test(worktrees_of_every_kind_of_checkout),
		place_test(a_worktree_that_is_gone_is_taken_over_alone),
		place_test(a_worktree_that_cannot_be_made_says_why),
		place_test(filters_of_the_person_run),
		place_test(a_snapshot_leaves_everything_as_it_is),
		place_test(a_clean_checkout_is_its_own_snapshot),
		place_test(a_snapshot_sees_a_racy_change),
		place_test(a_snapshot_copes_with_special_checkouts),
		place_test(a_snapshot_does_not_enter_submodules),
		place_test(a_snapshot_that_fails_says_why),
		place_test(another_users_repository_is_refused),
	};
	bool can_give_away = geteuid() == 0; /* what the last one needs */

	return _cmocka_run_group_tests("git", tests, KR_COUNT(tests) - !can_give_away, NULL, NULL);
}
