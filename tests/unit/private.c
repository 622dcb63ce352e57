/* git: the private git directory of an item, made by kraft and used by git as the worker's git would. */
#include "repo.h"

#include <pthread.h>
#include <sys/file.h>
#include <time.h>

#include "git/internal.h"

struct item {
	struct place *p;
	struct kr_checkout checkout;
	const char *worktree, *git_dir; /* the linked worktree */
	struct kr_private git;
};

static const char *
run_dir(struct place *p)
{
	return below(p, "run");
}

/* The repository "r" with a commit, its linked worktree "wt". */
static struct item
item_of(struct place *p, const char *name)
{
	struct item it = { .p = p, .worktree = below(p, "wt"), .git.lock_fd = -1 };
	struct kr_error err = { 0 };
	char oid[KR_OID_HEX_MAX + 1];

	if (kr_checkout_find(&p->arena, below(p, name), &it.checkout, &err) < 0 ||
		kr_checkout_head(&it.checkout, oid, &err) < 0 ||
		kr_worktree_add(&p->arena, &it.checkout, it.worktree, oid, -1, &it.git_dir, &err) < 0)
		fail_msg("%s", err.message);
	return it;
}

static int
try_open(struct item *it, struct kr_error *err)
{
	return kr_private_open(&it->p->arena, run_dir(it->p), "it", 0, &it->checkout, it->git_dir, &it->git, err);
}

static int
try_make(struct item *it, struct kr_error *err)
{
	char oid[KR_OID_HEX_MAX + 1];
	const struct kr_private_make want = { .branch = "kraft/it",
		.start = oid,
		.synced = "",
		.index = kr_arena_printf(&it->p->arena, "%s/index", it->git_dir) };

	if (kr_checkout_head(&it->checkout, oid, err) < 0)
		return -1;
	return kr_private_make(&it->p->arena, &it->git, &it->checkout, &want, err);
}

/* Opens, makes, and puts the git file in the worktree's place, as a mount would. */
static void
prepare(struct item *it)
{
	struct kr_error err = { 0 };

	kr_private_close(&it->git);
	if (try_open(it, &err) < 0 || try_make(it, &err) < 0)
		fail_msg("%s", err.message);
	assert_true(it->git.is_made);
	sh(it->p, "test -e saved.git || cp wt/.git saved.git; cp '%s' wt/.git", it->git.git_file);
}

#define REPO                                                                                               \
	"git init -q r && cd r && echo 1 >a && mkdir d && echo 2 >d/b && git add . && git commit -qm 1 && cd " \
	".. && "

/* ---- made ---- */

static void
ref_01_git_works_in_it(void **state)
{
	struct place *p = *state;
	struct item it;

	sh(p, REPO "cd r && git branch other && git tag -m t v1 && git update-ref refs/kraft/base/x HEAD");
	it = item_of(p, "r");
	prepare(&it);
	sh(p, "cd wt && test \"$(git symbolic-ref HEAD)\" = refs/heads/kraft/it && test -z \"$(git status "
		  "--porcelain)\" &&"
		  " git rev-parse -q --verify other >/dev/null && git rev-parse -q --verify v1^{commit} >/dev/null &&"
		  " ! git rev-parse -q --verify refs/kraft/base/x && git fsck --strict &&"
		  " echo 3 >>a && git commit -qam 2 && git tag mine && git branch -D -q other && git stash list && "
		  "git gc -q &&"
		  " git rebase -q HEAD~ && git worktree list >/dev/null && git fsck --strict");
	/* Nothing of it is in the repository. */
	sh(p, "cd r && git rev-parse -q --verify other && ! git rev-parse -q --verify mine && ! git rev-parse -q "
		  "--verify kraft/it &&"
		  " git fsck --strict && test -z \"$(git status --porcelain)\"");
}

static void
the_record_says_what_was_made(void **state)
{
	struct place *p = *state;
	struct item it;
	struct kr_private_record record;
	struct kr_error err = { 0 };

	sh(p, REPO "true");
	it = item_of(p, "r");
	assert_int_equal(try_open(&it, &err), 0);
	assert_false(it.git.is_made || it.git.is_shared);
	assert_string_equal(it.git.objects, below(p, "r/.git/objects"));
	prepare(&it);
	assert_string_equal(it.git.dir, below(p, "run/sandbox-git/it-0"));
	assert_int_equal(kr_private_record_read(&p->arena, &it.git, &record, &err), 0);
	assert_string_equal(record.branch, "kraft/it");
	assert_string_equal(record.common, it.checkout.common);
	assert_string_equal(record.worktree_git_dir, it.git_dir);
	assert_string_equal(record.start, sh_says(p, "git -C r rev-parse HEAD >said"));
	assert_string_equal(record.synced, "");
	snprintf(it.git.record.synced, sizeof(it.git.record.synced), "%s", record.start);
	assert_int_equal(kr_private_record_write(&it.git, &err), 0);
	kr_private_close(&it.git);
	assert_int_equal(try_open(&it, &err), 0);
	assert_true(it.git.is_made);
	assert_string_equal(it.git.record.synced, record.start);
	kr_private_close(&it.git);
	/* Made anew at the same commit, after commits of it were taken out elsewhere: it stands at its start
	 * again. */
	memset(it.git.record.at, 'a', strlen(it.git.record.at));
	assert_int_equal(kr_private_record_write(&it.git, &err), 0);
	it.git.record.synced[0] = '\0';
	prepare(&it);
	memset(it.git.record.at, 'b', strlen(it.git.record.at));
	assert_int_equal(kr_private_record_write(&it.git, &err), 0);
	prepare(&it); /* all else is as it was */
	assert_int_equal(kr_private_record_read(&p->arena, &it.git, &record, &err), 0);
	assert_string_equal(record.at, record.start);
	kr_private_close(&it.git);
	it.git_dir = "/another"; /* the worktree was made anew; leftovers are published with this one */
	assert_int_equal(try_open(&it, &err), 0);
	assert_int_equal(kr_private_record_read(&p->arena, &it.git, &record, &err), 0);
	assert_string_equal(record.worktree_git_dir, "/another");
	kr_private_close(&it.git);
	sh(p, "echo '{' >run/sandbox-git/it-0.json"); /* damaged: the directory is not known to be whole */
	assert_int_equal(try_open(&it, &err), 0);
	assert_false(it.git.is_made);
	kr_private_close(&it.git);
}

static void
what_a_worker_did_to_it_is_gone(void **state)
{
	struct place *p = *state;
	struct item it;

	sh(p, REPO "true");
	it = item_of(p, "r");
	prepare(&it);
	sh(p, "cd wt && echo x >>a && git commit -qam w && git config alias.x '!false' && git tag t && mkdir "
		  "../run/sandbox-git/it-0/hooks"
		  " && ln -s / ../run/sandbox-git/it-0/link && chmod 0 ../run/sandbox-git/it-0/hooks && git -C ../r "
		  "commit -qm 2 --allow-empty");
	prepare(&it);
	kr_private_close(&it.git);
	sh(p, "cd wt && ! git config alias.x && ! git rev-parse -q --verify t && test ! -e "
		  "../run/sandbox-git/it-0/hooks &&"
		  " test $(git rev-parse HEAD) = $(git -C ../r rev-parse HEAD) && test -d /etc && ls "
		  "../run/sandbox-git >../said");
	assert_string_equal(said(p), "it-0\nit-0.gitfile\nit-0.json\nit-0.lock");
}

static void
git_22_sha256_shallow_bare_and_plain_files_come_along(void **state)
{
	struct place *p = *state;
	struct item it;

	sh(p, "git init -q --object-format=sha256 s && cd s && echo 1 >a && git add . && git commit -qm 1 && git "
		  "tag -m t t");
	it = item_of(p, "s");
	prepare(&it);
	sh(p, "cd wt && git fsck --strict && echo 2 >a && git commit -qam 2 && git rev-parse HEAD | grep -qE "
		  "'^.{64}$'");
	kr_private_close(&it.git);
	sh(p,
		"rm -rf wt run saved.git && " REPO "cd r && echo 2 >a && git commit -qam 2 && cd .. &&"
		" git clone -q --depth 1 \"file://$PWD/r\" shallow && echo '*.ignored' >shallow/.git/info/exclude &&"
		" echo 'a -diff' >shallow/.git/info/attributes");
	it = item_of(p, "shallow");
	prepare(&it);
	sh(p, "cd wt && git fsck --strict && test $(git log --oneline | wc -l) = 1 && : >x.ignored &&"
		  " test -z \"$(git status --porcelain)\" && git check-attr diff a | grep -q unset");
	kr_private_close(&it.git);
	sh(p, "rm -rf wt run saved.git && git clone -q --bare r bare.git && git -C bare.git worktree add -q "
		  "../main2 2>/dev/null");
	it = item_of(p, "main2");
	prepare(&it);
	sh(p, "cd wt && git fsck --strict && echo 9 >a && git commit -qam 3 && test -z \"$(git status "
		  "--porcelain)\"");
	kr_private_close(&it.git);
}

static void
a_sparse_checkout_stays_one(void **state)
{
	struct place *p = *state;
	struct item it;

	sh(p, REPO
		"cd r && git sparse-checkout set --cone d && test -e d/b && git sparse-checkout set --no-cone /a");
	it = item_of(p, "r");
	prepare(&it);
	sh(p, "cd wt && test -z \"$(git status --porcelain)\" && test -e a && git checkout -q -f HEAD && echo 4 "
		  ">a &&"
		  " git commit -qam 2 && git ls-tree -r --name-only HEAD | grep -q d/b && git sparse-checkout list "
		  ">/dev/null");
	kr_private_close(&it.git);
}

/* ---- the index ---- */

/* Whether git had to write the index to know that nothing changed: its time says so. */
static void
the_index_is_copied_with_its_time(void **state)
{
	struct place *p = *state;
	struct item it;

	sh(p, REPO "true");
	it = item_of(p, "r");
	prepare(&it);
	sh(p, "cmp r/.git/worktrees/wt/index run/sandbox-git/it-0/index && test \"$(stat -c %%y "
		  "r/.git/worktrees/wt/index)\" ="
		  " \"$(stat -c %%y run/sandbox-git/it-0/index)\"");
	kr_private_close(&it.git);
}

static void
an_index_is_kept_unless_objects_would_be_missing(void **state)
{
	struct place *p = *state;
	struct item it;

	sh(p, REPO "true");
	it = item_of(p, "r");
	prepare(&it);
	sh(p, "cd wt && touch -d 2001-01-01 a && git status >/dev/null && git write-tree >/dev/null &&"
		  " cp ../run/sandbox-git/it-0/index ../before && ! cmp -s ../before ../r/.git/worktrees/wt/index");
	prepare(&it); /* it knows the file's new time */
	sh(p, "cmp before run/sandbox-git/it-0/index");
	sh(p, "cd wt && git checkout -q -B kraft/it && echo staged >a && git add a");
	prepare(&it); /* its object was in the old directory alone */
	sh(p, "cmp r/.git/worktrees/wt/index run/sandbox-git/it-0/index && cd wt && git diff --quiet --cached &&"
		  " git commit -qam 2 && git fsck --strict");
	prepare(&it); /* a commit that was not taken */
	sh(p, "cd wt && git diff --quiet --cached && git commit -qam 3 && git fsck --strict");
	sh(p, "cd wt && git update-index --split-index && git write-tree >/dev/null");
	prepare(&it);
	sh(p, "cd wt && git status >/dev/null && git commit -qam 4 --allow-empty && git fsck --strict");
	kr_private_close(&it.git);
}

static void
a_planted_index_is_not_followed(void **state)
{
	struct place *p = *state;
	static const char *const plants[] = { "ln -s ../../r/.git/index index", "mkfifo index", "mkdir index",
		": >index", "head -c 5000 /dev/urandom >index", "truncate -s 1T index" };
	struct item it;

	sh(p, REPO "true");
	it = item_of(p, "r");
	for (size_t i = 0; i < KR_COUNT(plants); i++) {
		prepare(&it);
		sh(p, "cd run/sandbox-git/it-0 && rm index && %s", plants[i]);
		prepare(&it);
		sh(p, "cmp r/.git/worktrees/wt/index run/sandbox-git/it-0/index && test -z \"$(git -C wt status "
			  "--porcelain)\"");
	}
	kr_private_close(&it.git);
}

static void
the_tree_of_an_index_is_what_git_wrote(void **state)
{
	struct place *p = *state;
	static const char *const formats[] = { "sha1", "sha256" };

	for (size_t i = 0; i < KR_COUNT(formats); i++)
		for (int version = 2; version <= 4; version++) {
			kr_auto_buf struct kr_buf buf = KR_BUF(1 << 20);
			char oid[KR_OID_HEX_MAX + 1] = "";
			size_t raw = i ? 32 : 20;

			sh(p,
				"rm -rf x && git init -q --object-format=%s x && cd x && mkdir TREE && echo 1 >TREE/TREE && "
				"echo 2 >TREETREE &&"
				" git add . && git commit -qm 1 && git update-index --index-version %d && git write-tree "
				">../said",
				formats[i], version);
			assert_int_equal(kr_file_read_at(AT_FDCWD, below(p, "x/.git/index"), &buf, NULL), 0);
			assert_true(kr_index_tree(buf.data, buf.len, raw, oid));
			assert_string_equal(oid, said(p));
			for (size_t n = 0; n < buf.len; n++)
				assert_false(kr_index_tree(buf.data, n, raw, oid)); /* cut off */
			sh(p, "cd x && echo 3 >new && git add new");
			kr_buf_fini(&buf);
			assert_int_equal(kr_file_read_at(AT_FDCWD, below(p, "x/.git/index"), &buf, NULL), 0);
			assert_false(kr_index_tree(buf.data, buf.len, raw, oid));
		}
}

/* ---- alternates ---- */

static void
open_with_alternates(struct item *it, struct kr_error *err, int wanted)
{
	*err = (struct kr_error){ 0 };
	kr_private_close(&it->git);
	if (try_open(it, err) != wanted)
		fail_msg("%s", err->message);
}

static void
git_08_borrowed_objects_are_found_and_bounded(void **state)
{
	struct place *p = *state;
	struct item it;
	struct kr_error err;

	sh(p, REPO "git clone -q --bare r one.git && git clone -q --bare -s one.git two.git && git clone -q -s "
			   "two.git s &&"
			   " cd s && git commit -qm 2 --allow-empty");
	it = item_of(p, "s");
	open_with_alternates(&it, &err, 0);
	assert_int_equal(it.git.borrowed.n, 2);
	assert_string_equal(it.git.borrowed.v[0], below(p, "two.git/objects"));
	assert_string_equal(it.git.borrowed.v[1], below(p, "one.git/objects"));
	prepare(&it);
	sh(p, "cd wt && git fsck --strict && echo 5 >a && git commit -qam 3");
	/* Comments, blanks, what is not there, relative ones, links, a loop back. */
	sh(p,
		"ln -s one.git link && printf '# "
		"x\\n\\n/nowhere\\n%s/r/.git/config\\n../../../link/objects\\n../../../two.git/objects' '%s'"
		" >s/.git/objects/info/alternates && echo '%s/s/.git/objects' >one.git/objects/info/alternates",
		"%s", p->top, p->top);
	open_with_alternates(&it, &err, 0);
	assert_int_equal(it.git.borrowed.n, 2);
	assert_string_equal(it.git.borrowed.v[0], below(p, "one.git/objects"));
	assert_string_equal(it.git.borrowed.v[1], below(p, "two.git/objects"));
	sh(p, "echo '\"%s/one.git/objects\"' >s/.git/objects/info/alternates", p->top);
	open_with_alternates(&it, &err, -1);
	assert_int_equal(err.code, KR_E_REFUSED);
	assert_non_null(strstr(err.message, "s/.git/objects/info/alternates' has a path in quotes"));
	sh(p, "rm s/.git/objects/info/alternates && mkfifo s/.git/objects/info/alternates");
	open_with_alternates(&it, &err, -1);
	assert_int_equal(err.code, KR_E_REFUSED);
	/* A chain: five are taken, as git does. */
	sh(p, "rm s/.git/objects/info/alternates && for i in 1 2 3 4 5 6 7; do git init -q --bare c$i; done &&"
		  " for i in 1 2 3 4 5 6; do echo \"$PWD/c$((i+1))/objects\" >c$i/objects/info/alternates; done &&"
		  " echo \"$PWD/c1/objects\" >s/.git/objects/info/alternates");
	open_with_alternates(&it, &err, 0);
	assert_int_equal(it.git.borrowed.n, 5);
	kr_private_close(&it.git);
}

static void
objects_and_lfs_are_named_as_they_are(void **state)
{
	struct place *p = *state;
	struct item it;
	struct kr_error err;

	sh(p, REPO "mkdir r/.git/lfs");
	it = item_of(p, "r");
	open_with_alternates(&it, &err, 0);
	assert_string_equal(it.git.lfs, below(p, "r/.git/lfs"));
	sh(p, "rmdir r/.git/lfs && mkdir big && ln -s ../../big r/.git/lfs && mv r/.git/objects o && ln -s "
		  "../../o r/.git/objects");
	open_with_alternates(&it, &err, 0);
	assert_null(it.git.lfs);
	assert_string_equal(it.git.objects, below(p, "o"));
	prepare(&it);
	sh(p, "cd wt && git fsck --strict && echo 5 >a && git commit -qam 3");
	sh(p, "rm r/.git/objects && : >r/.git/objects");
	open_with_alternates(&it, &err, -1);
	assert_int_equal(err.code, KR_E_REFUSED);
}

static void
places_may_hold_anything(void **state)
{
	struct place *p = *state;
	struct kr_private git;
	struct kr_checkout c;
	struct kr_error err = { 0 };
	const char *name = "a \"b\n'$(x)";
	char oid[KR_OID_HEX_MAX + 1];
	const struct kr_private_make want = { .branch = "kraft/it", .start = oid, .synced = "" };

	setenv("NAME", name, 1);
	sh(p, "git init -q \"$NAME\" && git -C \"$NAME\" commit -qm x --allow-empty");
	assert_int_equal(kr_checkout_find(&p->arena, below(p, name), &c, &err), 0);
	assert_int_equal(kr_checkout_head(&c, oid, &err), 0);
	assert_int_equal(kr_private_open(&p->arena, run_dir(p), "it", 0, &c, c.git_dir, &git, &err), 0);
	if (kr_private_make(&p->arena, &git, &c, &want, &err) < 0)
		fail_msg("%s", err.message);
	sh(p,
		"git --git-dir=run/sandbox-git/it-0 cat-file -e %s && git --git-dir=run/sandbox-git/it-0 fsck "
		"--strict",
		oid);
	kr_private_close(&git);
}

/* ---- configuration ---- */

static void
settings_pass_by_a_list_and_unchanged(void **state)
{
	struct place *p = *state;
	struct item it;

	sh(p,
		REPO "cd r && git config core.autocrlf input && git config filter.x.clean 'sed \"s/a/b\\\\/\" # ; "
			 "$HOME' &&"
			 " git config 'filter.a \"b]\\.c.required' true && git config user.name ' lead \"and\" trail ' &&"
			 " git config user.email \"$(printf 'a\\nb\\tc\\\\')\" && git config merge.m.driver 'true %%A' &&"
			 " git config diff.d.xfuncname '^\\[.*' && git config remote.o.fetch "
			 "'+refs/heads/*:refs/remotes/o/*' &&"
			 " git config --add remote.o.fetch '+refs/x/*:refs/remotes/x/*' && git config branch.Main.merge "
			 "refs/heads/main &&"
			 " git config rebase.autoSquash true && git config init.defaultBranch trunk && printf "
			 "'[commit]\\n\\tverbose\\n' >>.git/config &&"
			 " git config --global core.abbrev 9 && git config --global pull.ff only");
	it = item_of(p, "r");
	prepare(&it);
	/* Both as git reads them, in order; kraft's own three lines aside. */
	sh(p, "f='^(core.(autocrlf|abbrev)|filter|user|merge|diff|remote|branch|rebase|init|commit|pull)' &&"
		  " git config -f run/sandbox-git/it-0/config --get-regexp -z \"$f\" >got &&"
		  " env -u GIT_CONFIG_NOSYSTEM git -C r config --get-regexp -z \"$f\" >wanted && cmp got wanted &&"
		  " git -C r config --local --get-regexp -z \"$f\" | tr -cd '\\0' | wc -c >said");
	assert_string_equal(said(p), "13");
	sh(p, "test $(git -C wt config --local user.name | head -c 1 | od -An -tx1) = 20");
	kr_private_close(&it.git);
}

static void
secrets_and_programs_stay_out(void **state)
{
	struct place *p = *state;
	struct item it;

	sh(p, REPO "printf '[core]\\n\\tabbrev = 11\\n[http]\\n\\tproxy = SECRET\\n' >home/inc && cd r &&"
			   " git config include.path ../../home/inc && git config http.https://h.example/.extraHeader "
			   "'X: SECRET' &&"
			   " git config credential.helper '!SECRET' && git config "
			   "url.https://u:SECRET@h.example/.insteadOf gh: &&"
			   " git config core.hooksPath SECRET && git config core.fsmonitor SECRET && git config "
			   "core.sshCommand SECRET &&"
			   " git config core.excludesFile SECRET && git config alias.x SECRET && git config "
			   "user.signingKey SECRET &&"
			   " git config gpg.program SECRET && git config commit.gpgSign true && git config "
			   "commit.template SECRET &&"
			   " git config diff.x.textconv SECRET && git config diff.x.command SECRET && git config "
			   "diff.external SECRET &&"
			   " git config sendemail.smtpPass SECRET && git config remote.o.url "
			   "https://me:SECRET@h.example/r?private_token=SECRET &&"
			   " git config remote.o.pushurl SECRET@h.example:r && git config remote.o.proxy http://SECRET &&"
			   " git config remote.https://SECRET@h.example.promisor true && git config branch.main.remote "
			   "https://SECRET@h.example/r &&"
			   " git config submodule.s.url ssh://SECRET:SECRET@h.example/s && git config submodule.s.update "
			   "'!SECRET' &&"
			   " git config lfs.url https://SECRET@h.example/lfs && git config lfs.https://h.example.access "
			   "SECRET &&"
			   " git config lfs.storage /SECRET && git config lfs.customtransfer.x.args SECRET && git config "
			   "core.editor SECRET &&"
			   " git config filter.f.clean true && git config core.worktree \"$PWD\"");
	it = item_of(p, "r");
	prepare(&it);
	sh(p, "grep -q SECRET r/.git/config && ! grep -i -e SECRET -e include run/sandbox-git/it-0/config &&"
		  " test \"$(git -C wt config core.abbrev)\" = 11 && test \"$(git -C wt config filter.f.clean)\" = "
		  "true &&"
		  " test \"$(git -C wt config remote.o.url)\" = https://h.example/r && test \"$(git -C wt config "
		  "remote.o.pushurl)\" = h.example:r &&"
		  " test \"$(git -C wt config branch.main.remote)\" = https://h.example/r &&"
		  " test \"$(git -C wt config submodule.s.url)\" = ssh://h.example/s && test \"$(git -C wt config "
		  "lfs.url)\" = https://h.example/lfs &&"
		  " ! git -C wt config core.worktree && test \"$(git -C wt config core.bare)\" = false && git -C wt "
		  "status >/dev/null");
	kr_private_close(&it.git);
}

static void
addresses_lose_user_and_password(void **state)
{
	struct place *p = *state;
	static const char *const pairs[][2] = {
		{ "https://h.example/r", "https://h.example/r" },
		{ "https://u@h.example/r", "https://h.example/r" },
		{ "https://u:p@h.example:8443/r", "https://h.example:8443/r" },
		{ "https://u:p@x@h.example/r", "https://h.example/r" },
		{ "https://h.example/a@b:c", "https://h.example/a@b:c" },
		{ "https://h.example/r?t=1", "https://h.example/r" },
		{ "https://u:p/w@h.example/r", NULL },
		{ "https://u:p?w@h.example/r", NULL },
		{ "ssh://git@[::1]:22/r", "ssh://[::1]:22/r" },
		{ "git@h.example:a/b@c", "h.example:a/b@c" },
		{ "u:p@h.example:r", NULL },
		{ "h.example:r", "h.example:r" },
		{ "/home/a@b:c/r", "/home/a@b:c/r" },
		{ "./x@y:z", "./x@y:z" },
		{ "../sub", "../sub" },
		{ "file:///a@b/c", "file:///a@b/c" },
		{ "ext::sh -c p", NULL },
		{ "origin", "origin" },
		{ "", "" },
	};

	for (size_t i = 0; i < KR_COUNT(pairs); i++) {
		const char *got = kr_git_url_clean(&p->arena, pairs[i][0]);

		if ((got == NULL) != (pairs[i][1] == NULL) || (got && strcmp(got, pairs[i][1]) != 0))
			fail_msg("'%s' became '%s'", pairs[i][0], got ? got : "(none)");
	}
}

static const char *
identity(struct place *p, const struct kr_checkout *c)
{
	struct kr_strs out = { 0 };
	struct kr_error err = { 0 };
	const char *text = "";

	if (kr_git_identity(&p->arena, c, &out, &err) < 0)
		fail_msg("%s", err.message);
	for (size_t i = 0; i < out.n; i++)
		text = kr_arena_printf(&p->arena, "%s%s\n", text, out.v[i]);
	return text;
}

static void
ctr_05_identity_is_the_environments_else_gits(void **state)
{
	struct place *p = *state;
	struct kr_checkout c;

	sh(p, REPO "git -C r config user.email r@r.example");
	assert_int_equal(kr_checkout_find(&p->arena, below(p, "r"), &c, NULL), 0);
	assert_string_equal(identity(p, &c),
		"GIT_AUTHOR_NAME=T\nGIT_AUTHOR_EMAIL=r@r.example\nGIT_COMMITTER_NAME=T\n"
		"GIT_COMMITTER_EMAIL=r@r.example\n");
	setenv("GIT_COMMITTER_NAME", "Bot", 1);
	sh(p, "git -C r config author.name 'A B'");
	assert_string_equal(identity(p, &c),
		"GIT_AUTHOR_NAME=A B\nGIT_AUTHOR_EMAIL=r@r.example\nGIT_COMMITTER_NAME=Bot\n"
		"GIT_COMMITTER_EMAIL=r@r.example\n");
	unsetenv("GIT_COMMITTER_NAME");
	sh(p, "git config --global --unset user.name && git -C r config --unset author.name && git -C r config "
		  "--unset user.email &&"
		  " git config --global --unset user.email");
	assert_string_equal(identity(p, &c), "");
}

static void
one_git_run_serves_identity_and_configuration(void **state)
{
	struct place *p = *state;
	struct item it;
	struct kr_git_settings settings;
	struct kr_strs out = { 0 };
	struct kr_error err = { 0 };
	char oid[KR_OID_HEX_MAX + 1];
	const struct kr_private_make want = {
		.branch = "kraft/it", .start = oid, .synced = "", .settings = &settings
	};

	sh(p, REPO "true");
	it = item_of(p, "r");
	assert_int_equal(try_open(&it, &err), 0);
	assert_int_equal(kr_checkout_head(&it.checkout, oid, &err), 0);
	assert_int_equal(kr_git_settings_start(&it.checkout, &settings, &err), 0);
	assert_int_equal(kr_git_settings_wait(&p->arena, &settings, &err), 0);
	kr_git_identity_from(&p->arena, &settings, &out);
	assert_int_equal(out.n, 4);
	sh(p, "echo '[broken' >home/.gitconfig"); /* a second run would fail */
	if (kr_private_make(&p->arena, &it.git, &it.checkout, &want, &err) < 0)
		fail_msg("%s", err.message);
	kr_git_settings_fini(&settings);
	assert_int_equal(kr_git_settings_start(&it.checkout, &settings, &err), 0);
	assert_int_equal(kr_git_settings_wait(&p->arena, &settings, &err), -1);
	assert_int_equal(err.code, KR_E_GIT);
	kr_private_close(&it.git);
}

/* ---- obstacles ---- */

static const char *
obstacles(struct item *it)
{
	struct kr_strs out = { 0 };
	struct kr_error err = { 0 };
	const char *text = "";

	if (kr_private_obstacles(&it->p->arena, &it->git, &out, &err) < 0)
		fail_msg("%s", err.message);
	for (size_t i = 0; i < out.n; i++)
		text = kr_arena_printf(&it->p->arena, "%s%s%s", text, i ? "; " : "", out.v[i]);
	return text;
}

static void
ref_04_operations_in_progress_are_named(void **state)
{
	struct place *p = *state;
	static const struct {
		const char *command, *abort, *phrase;
	} cases[] = {
		{ "git merge -q side", "git merge --abort", "a merge is in progress" },
		{ "git rebase -q side", "git rebase --abort", "a rebase is in progress; HEAD is detached at " },
		{ "git rebase -q --apply side", "git rebase --abort",
			"a rebase or 'git am' is in progress; HEAD is detached at " },
		{ "git cherry-pick side", "git cherry-pick --abort", "a cherry-pick is in progress" },
		{ "git cherry-pick side~ side", "git cherry-pick --abort",
			"a cherry-pick is in progress; a series of cherry-picks or reverts is in progress" },
		{ "git revert --no-edit HEAD~", "git revert --abort", "a revert is in progress" },
		{ "git bisect start; false", "git bisect reset", "a bisect is in progress" },
		{ "git checkout -q --detach; false", "git checkout -q kraft/it", "HEAD is detached at " },
		{ "git checkout -q side; false", "git checkout -q kraft/it",
			"HEAD is on branch 'side', not on 'kraft/it'" },
	};
	struct item it;

	sh(p, REPO "true");
	it = item_of(p, "r");
	prepare(&it);
	sh(p, "cd wt && git checkout -q -b side && echo s0 >a && git commit -qam s0 && echo s >a && git commit "
		  "-qam s && git checkout -q kraft/it &&"
		  " echo m >a && git commit -qam m && echo m2 >a && git commit -qam m2");
	assert_string_equal(obstacles(&it), "");
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		assert_int_not_equal(try_sh(p, "cd wt && { %s; } >/dev/null 2>&1", cases[i].command), 0);
		if (strncmp(obstacles(&it), cases[i].phrase, strlen(cases[i].phrase)) != 0)
			fail_msg("%s: %s", cases[i].command, obstacles(&it));
		sh(p, "cd wt && { %s; } >/dev/null 2>&1", cases[i].abort);
		assert_string_equal(obstacles(&it), "");
	}
	kr_private_close(&it.git);
}

static void
ref_04_a_strange_head_is_no_branch(void **state)
{
	struct place *p = *state;
	static const char *const plants[] = {
		"ln -s real HEAD",
		"mkfifo HEAD",
		"mkdir HEAD",
		"true",
		": >HEAD",
		"echo 'ref:  refs/heads/kraft/it' >HEAD",
		"printf 'ref: refs/heads/kraft/it\\n\\n' >HEAD",
		"printf 'ref: refs/heads/kraft/it\\0\\n' >HEAD",
		"echo 'ref: refs/heads/kraft/it2' >HEAD",
		"printf 'ref: refs/heads/\\033[2J' >HEAD",
		"head -c 5000 /dev/zero >HEAD",
	};
	struct item it;

	sh(p, REPO "true");
	it = item_of(p, "r");
	prepare(&it);
	sh(p, "cd run/sandbox-git/it-0 && cp HEAD real");
	assert_string_equal(obstacles(&it), "");
	for (size_t i = 0; i < KR_COUNT(plants); i++) {
		sh(p, "cd run/sandbox-git/it-0 && rm -rf HEAD && %s", plants[i]);
		if (!*obstacles(&it) || strchr(obstacles(&it), '\033'))
			fail_msg("%s: %s", plants[i], obstacles(&it));
	}
	sh(p, "cd run/sandbox-git/it-0 && rm -rf HEAD && mv real HEAD && ln -s /nowhere MERGE_HEAD"); /* by being
																									 there */
	assert_string_equal(obstacles(&it), "a merge is in progress");
	kr_private_close(&it.git);
}

/* ---- locks, crashes, the end ---- */

static void *
share_later(void *context)
{
	struct item *it = context;

	nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	return kr_private_share(&it->git, NULL) == 0 ? it : NULL;
}

static void
sessions_of_one_item_share_it(void **state)
{
	struct place *p = *state;
	struct item first, second;
	struct kr_error err = { 0 };
	pthread_t thread;
	void *shared;

	sh(p, REPO "true");
	first = item_of(p, "r");
	prepare(&first);
	second = first;
	pthread_create(&thread, NULL, share_later, &first); /* the second waits for it */
	assert_int_equal(try_open(&second, &err), 0);
	pthread_join(thread, &shared);
	assert_non_null(shared);
	assert_true(second.git.is_shared && second.git.is_made);
	assert_int_equal(kr_private_remove(run_dir(p), "it", 0, &err), -1);
	assert_int_equal(err.code, KR_E_BUSY);
	kr_private_close(&first.git);
	assert_int_equal(kr_private_remove(run_dir(p), "it", 0, &err), -1);
	kr_private_close(&second.git);
	assert_int_equal(try_open(&first, &err), 0);
	assert_false(first.git.is_shared);
	kr_private_close(&first.git);
}

static void
an_item_of_another_repository_is_refused(void **state)
{
	struct place *p = *state;
	struct item it;
	struct kr_error err = { 0 };

	sh(p, REPO "git clone -q r r2");
	it = item_of(p, "r");
	prepare(&it);
	kr_private_close(&it.git);
	assert_int_equal(kr_checkout_find(&p->arena, below(p, "r2"), &it.checkout, &err), 0);
	assert_int_equal(try_open(&it, &err), -1);
	assert_int_equal(err.code, KR_E_REFUSED);
	assert_non_null(strstr(err.message, "belongs to the repository"));
}

static void
removing_leaves_nothing(void **state)
{
	struct place *p = *state;
	struct item it;
	struct kr_error err = { 0 };

	assert_int_equal(kr_private_remove(run_dir(p), "it", 0, &err), 0); /* there never was one */
	sh(p, REPO "true");
	it = item_of(p, "r");
	prepare(&it);
	kr_private_close(&it.git);
	sh(p, "mkdir run/sandbox-git/it-0.old run/sandbox-git/other-0 && : >run/sandbox-git/it-0.publish");
	assert_int_equal(kr_private_remove(run_dir(p), "it", 0, &err), 0);
	assert_string_equal(sh_says(p, "ls run/sandbox-git >said"), "other-0");
	assert_int_equal(try_open(&it, &err), 0);
	assert_false(it.git.is_made);
	kr_private_close(&it.git);
}

/* Killed at any time: what is there is either not whole, or the old one or the new one with its record. */
static void
a_make_that_is_cut_off_is_made_again(void **state)
{
	struct place *p = *state;
	struct item it;
	struct kr_error err = { 0 };
	int whole = 0;

	sh(p, REPO "true");
	it = item_of(p, "r");
	prepare(&it);
	sh(p, "cd wt && echo 5 >a && git commit -qam 2 && git tag old");
	for (unsigned i = 0; i < 60; i++) {
		pid_t pid;

		kr_private_close(&it.git);
		assert_int_equal(try_open(&it, &err), 0);
		pid = fork();
		if (pid == 0) {
			(void)try_make(&it, NULL);
			_exit(0);
		}
		nanosleep(&(struct timespec){ .tv_nsec = i * 200000 }, NULL);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		kr_private_close(&it.git);
		assert_int_equal(try_open(&it, &err), 0);
		if (it.git.is_made) {
			whole++;
			sh(p, "git --git-dir=run/sandbox-git/it-0 rev-parse -q --verify kraft/it >/dev/null &&"
				  " git --git-dir=run/sandbox-git/it-0 fsck --strict");
		}
		if (i % 2)
			prepare(&it);
	}
	assert_true(whole > 0);
	prepare(&it);
	kr_private_close(&it.git);
	sh(p, "cd wt && git fsck --strict && ! git rev-parse -q --verify old && git commit -qam 3 && ls "
		  "../run/sandbox-git >../said");
	assert_string_equal(said(p), "it-0\nit-0.gitfile\nit-0.json\nit-0.lock");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		place_test(ref_01_git_works_in_it),
		place_test(the_record_says_what_was_made),
		place_test(what_a_worker_did_to_it_is_gone),
		place_test(git_22_sha256_shallow_bare_and_plain_files_come_along),
		place_test(a_sparse_checkout_stays_one),
		place_test(the_index_is_copied_with_its_time),
		place_test(an_index_is_kept_unless_objects_would_be_missing),
		place_test(a_planted_index_is_not_followed),
		place_test(the_tree_of_an_index_is_what_git_wrote),
		place_test(git_08_borrowed_objects_are_found_and_bounded),
		place_test(objects_and_lfs_are_named_as_they_are),
		place_test(places_may_hold_anything),
		place_test(settings_pass_by_a_list_and_unchanged),
		place_test(secrets_and_programs_stay_out),
		place_test(addresses_lose_user_and_password),
		place_test(ctr_05_identity_is_the_environments_else_gits),
		place_test(one_git_run_serves_identity_and_configuration),
		place_test(ref_04_operations_in_progress_are_named),
		place_test(ref_04_a_strange_head_is_no_branch),
		place_test(sessions_of_one_item_share_it),
		place_test(an_item_of_another_repository_is_refused),
		place_test(removing_leaves_nothing),
		place_test(a_make_that_is_cut_off_is_made_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
