/*
 * Every setting of a repository through which git can start a program, times every verb that kraft runs on
 * the host: none starts one, except what is meant to (GIT-01, GIT-02, GIT-03, GIT-09, GIT-21; findings M11
 * and M12).
 *
 * Two things keep the two lists honest. A setting counts only when plain git starts its program (`shown_by`),
 * so that one that was misspelt fails. And the verbs are read from the source: one that is used there and has
 * no line here fails.
 */
#include "repo.h"

#include <dirent.h>
#include <glob.h>

/*
 * plant and shown_by are lines of shell in the repository; $run is a program that leaves a mark. The
 * repository has a changed file `f` with the attributes diff=d merge=m filter=x, a branch `other` that
 * conflicts in it, a branch `later` that HEAD can go forward to, a commit with a signature as its HEAD, a remote `origin`, and a submodule `sub`.
 */
static const struct key {
	const char *name, *plant, *shown_by;
	const char *meant; /* verbs that are meant to start it: " checkout add "; a push is the person's, with the person's hook, keys and remote */
} keys[] = {
	/* hooks */
	{ "hooks", "cp ../hooks/* .git/hooks", "git status", " push " },
	{ "core.hooksPath", "git config core.hooksPath ../hooks", "git status", " push " },
	{ "core.hooksPath, of a ref", "git config core.hooksPath ../hooks", "git update-ref refs/heads/z HEAD",
		" push " },
	{ "gc.auto and its hook",
		"cp ../hooks/pre-auto-gc .git/hooks; git config gc.auto 1; git config gc.autoDetach false;"
		" git config gc.autoPackLimit 1; for c in "
		"HEAD HEAD^ other; do git rev-parse $c |"
		" git pack-objects -q .git/objects/pack/pack; done",
		"git gc --auto" },
	{ "init.templateDir",
		"mkdir -p ../t && cp -r ../hooks ../t; git config --global init.templateDir $PWD/../t",
		"git init -q ../new && git -C ../new commit -q --allow-empty -m x" },
	{ "receive.procReceiveRefs",
		"cp ../hooks/* .git/hooks; git config receive.procReceiveRefs refs; rm -f .git/hooks/p[!r]*",
		"git clone -q . ../c && git -C ../c push -q origin HEAD:refs/for/x", " push " },
	/* the index and the working tree */
	{ "core.fsmonitor", "git config core.fsmonitor $run", "git status" },
	{ "core.fsmonitor, included", "git config -f ../i core.fsmonitor $run; git config include.path $PWD/../i",
		"git status" },
	{ "core.fsmonitor, on a condition",
		"git config -f ../i core.fsmonitor $run; git config includeIf.gitdir:/.path $PWD/../i",
		"git status" },
	{ "core.fsmonitor, of the worktree",
		"git config extensions.worktreeConfig true; git config --worktree core.fsmonitor $run",
		"git status" },
	{ "core.fsmonitor, of a submodule",
		"git -C sub config core.fsmonitor $run; git config submodule.sub.ignore none; git config "
		"diff.ignoreSubmodules none",
		"git status" },
	{ "submodule.recurse and a submodule's",
		"git -C sub config core.fsmonitor $run; git config submodule.recurse true; git config "
		"submodule.sub.active true;"
		" git config status.submoduleSummary true; git config diff.submodule diff",
		"git status" },
	{ "submodule.update", "git config submodule.sub.update \"!$run\"; git -C sub checkout -q HEAD^",
		"git submodule update" },
	{ "filter.clean", "git config filter.x.clean $run", "git add f", " add status merge " },
	{ "filter.smudge", "git config filter.x.smudge $run", "git checkout -f other", " checkout merge " },
	{ "filter.process", "git config filter.x.process $run", "git add f", " add status checkout merge " },
	{ "core.attributesFile and a filter",
		"echo '* filter=y' >../a; git config core.attributesFile $PWD/../a; git config filter.y.clean $run;"
		" git config filter.y.smudge $run",
		"git add .", " add status checkout merge " },
	/* showing */
	{ "core.pager", "git config core.pager $run", "script -qc 'git log' /dev/null" },
	{ "pager.log",
		"git config pager.log $run; git config pager.status $run; git config pager.config $run;"
		" git config pager.for-each-ref $run; git config pager.worktree $run",
		"script -qc 'git log' /dev/null" },
	{ "diff.external", "git config diff.external $run", "git diff" },
	{ "diff.command", "git config diff.d.command $run", "git diff" },
	{ "diff.textconv", "git config diff.d.textconv $run", "git diff" },
	{ "diff.tool", "git config diff.tool t; git config difftool.t.cmd $run", "git difftool -y" },
	{ "difftool.path", "git config diff.tool vimdiff; git config difftool.vimdiff.path $run",
		"git difftool -y" },
	{ "diff.guitool", "git config diff.guitool t; git config difftool.t.cmd $run", "git difftool -g -y" },
	{ "merge.tool", "git config merge.tool t; git config mergetool.t.cmd $run",
		"git commit -qam x; git merge other; git mergetool -y" },
	{ "mergetool.path", "git config merge.tool vimdiff; git config mergetool.vimdiff.path $run",
		"git commit -qam x; git merge other; git mergetool -y" },
	{ "merge.guitool", "git config merge.guitool t; git config mergetool.t.cmd $run",
		"git commit -qam x; git merge other; git mergetool -g -y" },
	{ "merge.driver", "git config merge.m.driver $run; git config merge.default m",
		"git commit -qam x; git merge other" },
	{ "interactive.diffFilter", "git config interactive.diffFilter $run; git config color.ui always",
		"echo q | TERM=xterm script -qc 'git add -p' /dev/null" },
	{ "man.viewer", "git config man.viewer v; git config man.v.cmd $run", "git help -m status" },
	{ "man.path", "git config man.viewer man; git config man.man.path $run", "git help -m status" },
	{ "web.browser", "git config web.browser b; git config browser.b.cmd $run", "git web--browse /" },
	{ "browser.path", "git config web.browser firefox; git config browser.firefox.path $run",
		"git web--browse --tool=firefox /; sleep 0.3" },
	{ "tar.command", "git config tar.x.command $run", "git archive --format=x HEAD" },
	/* writing */
	{ "core.editor", "git config core.editor $run", "git commit -a" },
	{ "sequence.editor", "git config sequence.editor $run", "git stash; git rebase -i HEAD^" },
	{ "trailer.command",
		"git config trailer.t.key T; git config trailer.t.command $run; git config trailer.t.ifmissing add",
		"echo x | git interpret-trailers --trailer T=v" },
	{ "trailer.cmd", "git config trailer.t.key T; git config trailer.t.cmd $run",
		"echo x | git interpret-trailers --trailer T=v" },
	{ "commit.gpgSign", "git config commit.gpgSign true; git config gpg.program $run", "git commit -qam x" },
	{ "tag.gpgSign", "git config tag.gpgSign true; git config gpg.openpgp.program $run", "git tag -m x t" },
	{ "push.gpgSign",
		"git config push.gpgSign if-asked; git config gpg.program $run; git -C ../up config"
		" receive.certNonceSeed x",
		"git push -q origin HEAD:refs/heads/new", " push " },
	{ "gpg.x509.program",
		"git config gpg.format x509; git config gpg.x509.program $run; git config commit.gpgSign true",
		"git commit -qam x" },
	{ "gpg.ssh.program",
		"git config gpg.format ssh; git config gpg.ssh.program $run; git config user.signingKey /k;"
		" git config commit.gpgSign true",
		"git commit -qam x" },
	{ "gpg.ssh.defaultKeyCommand",
		"git config gpg.format ssh; git config gpg.ssh.defaultKeyCommand $run;"
		" git config commit.gpgSign true",
		"git commit -qam x" },
	{ "log.showSignature", "git config log.showSignature true; git config gpg.program $run", "git log -1" },
	{ "merge.verifySignatures", "git config merge.verifySignatures true; git config gpg.program $run",
		"git stash -q; git checkout -q other; git merge main" },
	/* the network and what asks for a password */
	{ "core.sshCommand", "git config core.sshCommand $run", "git ls-remote ssh://x.example/y" },
	{ "core.gitProxy", "git config core.gitProxy $run", "git ls-remote git://x.example/y" },
	{ "core.askPass", "git config core.askPass $run",
		"printf 'protocol=https\\nhost=x.example\\n\\n' | git credential fill" },
	{ "credential.helper", "git config credential.helper \"!$run\"",
		"printf 'protocol=https\\nhost=x.example\\n\\n' | GIT_TERMINAL_PROMPT=0 git credential fill" },
	{ "credential.url.helper", "git config credential.https://x.example.helper $run",
		"printf 'protocol=https\\nhost=x.example\\n\\n' | GIT_TERMINAL_PROMPT=0 git credential fill" },
	{ "remote.uploadpack", "git config remote.origin.uploadpack $run", "git fetch" },
	{ "remote.receivepack", "git config remote.origin.receivepack $run",
		"git push origin HEAD:refs/heads/new", " push " },
	{ "remote.url", "git config remote.origin.url \"ext::$run\"; git config protocol.ext.allow always",
		"git fetch" },
	{ "url.insteadOf",
		"git config url.ext::$run.insteadOf http://x; git config remote.origin.url http://x;"
		" git config protocol.ext.allow always",
		"git fetch" },
	{ "remote.vcs", "git config remote.origin.vcs kraft-test", "PATH=$PWD/../helpers:$PATH git fetch" },
	{ "uploadpack.packObjectsHook", "git config --global uploadpack.packObjectsHook $run",
		"git clone -q --no-local . ../c" },
	{ "core.alternateRefsCommand",
		"echo $PWD/../up/.git/objects >.git/objects/info/alternates;"
		" git config core.alternateRefsCommand $run",
		"git rev-list --alternate-refs HEAD" },
	{ "imap.tunnel", "git config imap.tunnel $run; git config imap.folder x; git config imap.host x.example",
		"printf 'From x Mon Sep 17 00:00:00 2001\\nFrom: x\\nDate: x\\nSubject: x\\n\\nx\\n' | git "
		"imap-send" },
	/* A partial clone that lacks a file of an older commit, one that is in the index, and a tree. */
	{ "a promised object",
		"git config core.repositoryFormatVersion 1; git config extensions.partialClone origin;"
		" git config remote.origin.promisor true; git config remote.origin.uploadpack $run;"
		" for o in HEAD^:f HEAD:f HEAD:d; do o=$(git rev-parse $o);"
		" rm -f .git/objects/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-); done",
		"git cat-file -p HEAD:f" },
	/* names */
	{ "alias",
		"for v in zz status add log checkout worktree update-ref read-tree index-pack config; do"
		" git config alias.$v \"!$run\"; done",
		"git zz" },
	{ "help.autoCorrect", "git config help.autoCorrect immediate; git config alias.zzzz \"!$run\"",
		"git zzz" },
};

/*
 * At least one way of each, with what could start something left in. Those that kraft runs without a working
 * tree are run without one: a read-tree that had one would compare files that are as young as the index,
 * through their clean filter.
 */
enum tree { NO_TREE, TREE };
static const struct run {
	enum tree tree;
	const char *argv[8];
} runs[] = {
	{ TREE, { "add", "--all" } },
	{ NO_TREE, { "cat-file", "-t", "HEAD" } },
	{ NO_TREE, { "cat-file", "-e", "HEAD" } },
	{ NO_TREE, { "cat-file", "-p", "HEAD:f" } },
	{ NO_TREE, { "cat-file", "--batch-check=%(objecttype)" } },
	{ TREE, { "checkout", "--quiet", "--progress", "--force", "--detach", "other" } },
	{ TREE, { "checkout", "--quiet", "--force", "main" } },
	{ TREE, { "commit-tree", "--no-gpg-sign", "-p", "HEAD", "-m", "x", "HEAD^{tree}" } },
	{ NO_TREE, { "config", "--get", "remote.pushDefault" } },
	{ NO_TREE, { "config", "--includes", "-z", "--get-all", "safe.directory" } },
	{ NO_TREE, { "config", "--list", "-z", "--includes", "--show-scope" } },
	{ NO_TREE, { "diff-tree", "-r", "-z", "--raw", "--no-renames", "HEAD^", "HEAD", "--" } },
	{ NO_TREE, { "diff", "--no-ext-diff", "--no-textconv", "--submodule=short", "HEAD^", "HEAD", "--" } },
	{ NO_TREE, { "for-each-ref", "--format=%(objectname) %(refname) %(symref)" } },
	{ NO_TREE, { "index-pack", "--stdin", "--strict", "--fix-thin" } },
	{ TREE, { "log", "-1", "--format=%T %ct", "HEAD", "--" } },
	{ TREE, { "log", "-2", "-p", "--no-textconv", "--no-ext-diff" } },
	{ TREE, { "merge", "--ff-only", "later" } },
	{ NO_TREE, { "merge-base", "--is-ancestor", "other", "HEAD" } },
	{ TREE, { "push", "--no-follow-tags", "--", "origin", "HEAD:refs/heads/new" } },
	{ NO_TREE, { "read-tree", "-i", "--reset", "HEAD" } },
	{ NO_TREE, { "rev-list", "--objects", "--quiet", "HEAD", "--not", "other" } },
	{ NO_TREE, { "rev-list", "--count", "HEAD" } },
	{ TREE, { "rev-parse", "--verify", "HEAD^{commit}" } },
	{ TREE, { "status", "--porcelain", "-z", "--untracked-files=normal" } },
	{ NO_TREE, { "symbolic-ref", "-m", "x", "HEAD", "refs/heads/main" } },
	{ NO_TREE, { "update-ref", "-m", "x", "--no-deref", "refs/heads/z", "HEAD" } },
	{ NO_TREE, { "update-ref", "-d", "refs/heads/z" } },
	{ NO_TREE, { "version" } },
	{ TREE, { "worktree", "list", "--porcelain" } },
	{ TREE, { "worktree", "add", "--force", "--force", "--no-checkout", "--detach", "../linked" } },
	{ NO_TREE, { "worktree", "remove", "--force", "--force", "--", "../linked" } },
	{ TREE, { "write-tree" } },
};

/* ---- the verbs of the source ---- */

/* What kraft names for a run inside the walls; the host does not run it. */
static const char *const inside[] = { "pack-objects" };

static bool
is_known(const char *verb)
{
	for (size_t i = 0; i < KR_COUNT(runs); i++)
		if (strcmp(runs[i].argv[0], verb) == 0)
			return true;
	for (size_t i = 0; i < KR_COUNT(inside); i++)
		if (strcmp(inside[i], verb) == 0)
			return true;
	return false;
}

static bool
begins_a_value(const char *text, const char *brace)
{
	while (brace > text && strchr(" \t\n", brace[-1]))
		brace--;
	return brace > text && (brace[-1] == '=' || brace[-1] == ')');
}

/* `= { "verb"` or `){ "verb"`, as an argv begins, where verb is a command of git's. Returns how many. */
static unsigned
look_through(const char *path, const char *text, const char *commands)
{
	unsigned found = 0;

	for (const char *at = text; (at = strchr(at, '{')); at++) {
		const char *word = at + 1 + strspn(at + 1, " \t\n");
		char line[64];
		size_t n;

		if (*word != '"' || !begins_a_value(text, at))
			continue;
		n = strcspn(++word, "\"");
		snprintf(line, sizeof(line), "\n%.*s\n", (int)n, word);
		if (n > 40 || !strstr(commands, line))
			continue;
		found++;
		line[n + 1] = '\0';
		if (!is_known(line + 1))
			fail_msg("%s runs 'git %s', which no line of this test has", path, line + 1);
	}
	return found;
}

static void
every_verb_of_the_source_is_here(void **state) /* GIT-01 */
{
	struct place *p = *state;
	const char *commands = kr_arena_printf(&p->arena, "\n%s\n", sh_says(p, "git --list-cmds=main >said"));
	unsigned files = 0;
	glob_t sources;

	assert_non_null(strstr(commands, "\nupdate-ref\n"));
	assert_int_equal(glob(KR_TEST_DIR "/../src/*/*.c", 0, NULL, &sources), 0);
	for (size_t i = 0; i < sources.gl_pathc; i++) {
		kr_auto_buf struct kr_buf buf = KR_BUF(1 << 20);

		assert_int_equal(kr_file_read_at(AT_FDCWD, sources.gl_pathv[i], &buf, NULL), 0);
		if (!strstr(buf.data, "kr_git_run(") && !strstr(buf.data, "kr_git_start("))
			continue;
		files++;
		/* run.c is the caller itself; another file without a verb names it in a way that is not seen here. */
		if (look_through(sources.gl_pathv[i], buf.data, commands) == 0 &&
			!strstr(sources.gl_pathv[i], "/git/run.c"))
			fail_msg("%s runs git, but no verb of it is found", sources.gl_pathv[i]);
	}
	globfree(&sources);
	assert_true(files > 3);
	assert_int_equal(look_through("control", "x[] = { \"update-ref\", { \"nothing\"", commands), 1);
}

/* ---- the matrix ---- */

#define EACH_HOOK                                                                                            \
	"applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg "          \
	"commit-msg "                                                                                            \
	"post-commit pre-rebase post-checkout post-merge pre-push pre-receive update proc-receive post-receive " \
	"post-update reference-transaction push-to-checkout pre-auto-gc post-rewrite sendemail-validate "        \
	"fsmonitor-watchman post-index-change"

static void
make_template(struct place *p)
{
	sh(p,
		"printf '#!/bin/sh\\ntouch %s/marker\\n' >run && chmod +x run && mkdir hooks helpers && for h "
		"in " EACH_HOOK "; do cp run hooks/$h; done && cp run helpers/git-remote-kraft-test",
		p->top);
	sh(p, "git init -q up && cd up && mkdir d && echo 1 >f && echo 1 >d/x && printf 'f diff=d merge=m "
		  "filter=x\\n' >.gitattributes"
		  " && git add . && git commit -qm one && git clone -q . ../template && git init -q ../inner && cd "
		  "../inner &&"
		  " git commit -q --allow-empty -m x && echo s >s && git add s && git commit -qm y");
	sh(p,
		"cd template && git submodule --quiet add \"$PWD/../inner\" sub && git branch other && echo 2 >f && "
		"git "
		"commit -qam two &&"
		" git checkout -q other && echo 3 >f && git commit -qam three && git checkout -q main &&"
		" c=$(git cat-file commit HEAD | sed '/^committer/a gpgsig -----BEGIN PGP SIGNATURE-----\\n \\n x\\n"
		" -----END PGP SIGNATURE-----' | git hash-object -t commit -w --stdin) && git reset -q --hard $c &&"
		" git rev-parse HEAD | git pack-objects -q --revs --stdout >../pack &&"
		" git checkout -q -b later && echo 'g filter=x merge=m' >>.gitattributes && echo g >g && git add . &&"
		" git commit -qm four && git checkout -q main && echo dirty >f && cp "
		"../home/.gitconfig ../global");
}

/* A repository `r` with this key in it. The dates are set back so that every index is up to date but for what
 * differs. */
static void
plant(struct place *p, const struct key *key)
{
	sh(p,
		"{ rm -rf r || { sleep 1; rm -rf r; }; } && rm -rf linked c new t && git -C up update-ref -d refs/heads/new && cp -a template r && cp global home/.gitconfig && run=$PWD/run && cd r && "
		"{ %s; }"
		" >/dev/null && echo dirty >f && rm -f ../marker",
		key->plant);
}

static bool
left_a_mark(struct place *p)
{
	return unlink(below(p, "marker")) == 0;
}

/* How many programs were started that are not meant to be: 0 or 1. */
static int
starts_unmeant(struct place *p, const struct key *key, const struct run *run)
{
	const bool is_meant = key->meant && strstr(key->meant, kr_arena_printf(&p->arena, " %s ", run->argv[0]));
	kr_auto_fd int pack = open(below(p, "pack"), O_RDONLY | O_CLOEXEC);
	const struct kr_git_where where = {
		.git_dir = below(p, "r/.git"),
		.work_tree = run->tree == TREE ? below(p, "r") : NULL,
		.work_dir_fd = -1,
		.stdin_fd = pack,
		.pushes = strcmp(run->argv[0], "push") == 0,
	};
	kr_auto_buf struct kr_buf out = KR_BUF(1 << 20);

	(void)kr_git_run(
		&where, run->argv, &out, NULL); /* some of them cannot succeed, without a program that they lack */
	if (!left_a_mark(p) || is_meant)
		return 0;
	print_message("# %s: 'git %s %s' started a program\n", key->name, run->argv[0], run->argv[1] ? run->argv[1] : "");
	return 1;
}

static void
no_setting_starts_a_program(void **state) /* GIT-01, GIT-02, GIT-03, GIT-09, GIT-21 */
{
	struct place *p = *state;
	int unmeant = 0;

	make_template(p);
	for (size_t i = 0; i < KR_COUNT(keys); i++) {
		plant(p, &keys[i]);
		for (size_t j = 0; j < KR_COUNT(runs); j++)
			unmeant += starts_unmeant(p, &keys[i], &runs[j]);
		plant(p, &keys[i]);
		(void)try_sh(p, "run=$PWD/run; cd r && { %s; } </dev/null >../shown 2>&1", keys[i].shown_by);
		if (!left_a_mark(p)) {
			(void)try_sh(p, "cat shown");
			fail_msg("%s: not even plain git starts a program", keys[i].name);
		}
	}
	assert_int_equal(unmeant, 0);
	print_message("# %zu settings, %zu runs\n", KR_COUNT(keys), KR_COUNT(runs));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		place_test(every_verb_of_the_source_is_here),
		place_test(no_setting_starts_a_program),
	};

	return cmocka_run_group_tests_name("git_keys", tests, NULL, NULL);
}
