/*
 * git: an item that works in the repository itself, as on macOS. There are no walls here: what a worker does is done as if they let
 * through all that they let through on macOS (its branch and its log, loose objects, the worktree's own git directory). All with
 * real git.
 */
#include "repo.h"

#include "git/internal.h"
#include "git/shared.h"
#include "locked.h"

struct item {
	struct place *p;
	struct kr_checkout checkout;
	const char *git_dir; /* of the linked worktree `wt` */
	struct kr_private git;
};

static int
try_open(struct item *it, struct kr_error *err)
{
	kr_private_close(&it->git);
	return kr_shared_open(
		&it->p->arena, below(it->p, "run"), "it", 0, &it->checkout, it->git_dir, &it->git, err);
}

static int
try_make(struct item *it, const char *start, bool drops, struct kr_error *err)
{
	char oid[KR_OID_HEX_MAX + 1], synced[KR_OID_HEX_MAX + 1] = "";
	const struct kr_private_make want = { .branch = "kraft/it", .start = oid, .synced = synced };

	snprintf(oid, sizeof(oid), "%s", start);
	if (!drops && kr_branch_read(&it->checkout, "kraft/it", synced, err) < 0)
		return -1;
	return kr_shared_make(&it->p->arena, &it->git, &it->checkout, &want, drops, err);
}

static void
make(struct item *it, const char *start, bool drops)
{
	struct kr_error err = { 0 };

	if (try_make(it, start, drops, &err) < 0)
		fail_msg("%s", err.message);
}

static const char *
commit_of(struct place *p, const char *name)
{
	return sh_says(p, "git -C r rev-parse --verify -q '%s' >said || echo none >said", name);
}

#define REPO "git init -q r && cd r && echo 1 >a && mkdir d && echo 2 >d/b && git add . && git commit -qm 1 && git branch other"

/* The repository "r", its linked worktree "wt" on the item's branch. */
static struct item
item_of(struct place *p, const char *repo)
{
	struct item it = { .p = p, .git.lock_fd = -1 };
	struct kr_error err = { 0 };
	char oid[KR_OID_HEX_MAX + 1];

	sh(p, "%s", repo);
	if (kr_checkout_find(&p->arena, below(p, "r"), &it.checkout, &err) < 0 ||
		kr_checkout_head(&it.checkout, oid, &err) < 0 ||
		kr_worktree_add(&p->arena, &it.checkout, below(p, "wt"), oid, -1, &it.git_dir, &err) < 0 ||
		try_open(&it, &err) < 0)
		fail_msg("%s", err.message);
	make(&it, oid, false);
	return it;
}

static int
try_take(struct item *it, bool is_alone, struct kr_publish *out, struct kr_error *err)
{
	kr_auto_fd int pack = open(below(it->p, "pack"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	return kr_shared_take(&it->p->arena, &it->git, is_alone, pack, out, err);
}

static struct kr_publish
take(struct item *it, int expected)
{
	struct kr_publish out = { 0 };
	struct kr_error err = { 0 };
	int found = try_take(it, true, &out, &err);

	if (found < 0)
		fail_msg("%s", err.message);
	assert_int_equal(found, expected);
	return out;
}

/* Nobody's git is the worse for what was there. */
static void
check_repository(struct place *p)
{
	sh(p, "cd r && timeout 20 git fsck --strict >/dev/null 2>&1 && timeout 20 git status --porcelain >/dev/null &&"
		  " timeout 20 git worktree list >/dev/null && timeout 20 git for-each-ref >/dev/null &&"
		  " test \"$(git rev-parse main)\" = \"$(git rev-parse other)\"");
}

/* ---- what stays ---- */

static void
mac_08_a_commit_stays_on_its_branch(void **state)
{
	struct place *p = *state;
	struct item it = item_of(p, REPO);
	struct kr_publish done;
	const char *tip;

	assert_string_equal(commit_of(p, "kraft/it"), commit_of(p, "main"));
	sh(p, "cd wt && test \"$(git symbolic-ref HEAD)\" = refs/heads/kraft/it && test -z \"$(git status --porcelain)\"");
	take(&it, 0);
	sh(p, "cd wt && echo 2 >>a && git commit -qam 2 && echo 3 >new && git add new && git commit -qm 3");
	tip = commit_of(p, "kraft/it");
	done = take(&it, 1);
	assert_int_equal(done.what, KR_PUBLISHED_MOVED);
	assert_int_equal(done.commits, 2);
	assert_string_equal(done.to, tip);
	assert_string_equal(commit_of(p, "kraft/it"), tip);
	assert_string_equal(it.git.record.at, tip);
	take(&it, 0);
	check_repository(p);
	/* All of it is in a pack now: what a worker writes as a loose object of these names is not looked at. */
	sh(p, "cd r && git prune-packed && for o in $(git rev-list --objects kraft/it ^main | cut -d' ' -f1); do"
		  " test ! -e .git/objects/$(echo $o | sed 's,^..,&/,') || exit 1; done && test -z \"$(git -C ../wt status --porcelain)\"");
	kr_private_close(&it.git);
}

static void
mac_08_a_merge_of_a_packed_history_stays_and_is_not_packed_again(void **state)
{
	struct place *p = *state;
	struct item it = item_of(p, REPO " && git checkout -q -b side && for i in 1 2 3; do echo $i >s && git add s && git commit -qm s$i;"
									 " done && git checkout -q main && git repack -qad");
	struct kr_publish done;

	sh(p, "cd wt && git merge -q --no-ff -m m side");
	done = take(&it, 1);
	assert_int_equal(done.what, KR_PUBLISHED_MOVED);
	sh(p, "cd r && n=$(git show-index <$(ls -t .git/objects/pack/*.idx | head -1) | wc -l) && test $n -eq 1");
	sh(p, "cd r && timeout 20 git fsck --strict 2>/dev/null");
	kr_private_close(&it.git);
}

static void
mac_13_a_branch_that_moved_on_the_host_meanwhile_is_not_compared(void **state)
{
	struct place *p = *state;
	struct item it = item_of(p, REPO);

	sh(p, "cd r && git update-ref refs/heads/kraft/it $(git commit-tree -p main -m host main^{tree}) &&"
		  " cd ../wt && git commit -q --allow-empty -m inside");
	assert_int_equal(take(&it, 1).what, KR_PUBLISHED_MOVED);
	sh(p, "cd r && test \"$(git log --format=%%s kraft/it | tr '\\n' ' ')\" = 'inside host 1 '");
	kr_private_close(&it.git);
}

static void
a_packed_branch_is_read(void **state)
{
	struct place *p = *state;
	struct item it = item_of(p, REPO);

	sh(p, "cd r && git pack-refs --all && test ! -e .git/refs/heads/kraft/it");
	take(&it, 0);
	sh(p, "cd wt && git commit -q --allow-empty -m 2 && git -C ../r pack-refs --all");
	assert_int_equal(take(&it, 1).what, KR_PUBLISHED_MOVED);
	kr_private_close(&it.git);
}

/* ---- what is put back ---- */

/* In the worktree, with REF the branch's file and OBJ(id) an object's. */
#define HOSTILE                                                                                                     \
	"cd wt && REF=\"$PWD/../r/.git/refs/heads/kraft/it\" && obj() { echo ../r/.git/objects/$(echo $1 | sed 's,^..,&/,'); } &&"  \
	" to() { x=$(\"$@\") && echo $x >$REF; } && "

static const struct hostile {
	const char *name, *line;
	const char *reason; /* what the person is told */
} hostiles[] = {
	{ "a symbolic ref to another branch", "echo 'ref: refs/heads/other' >$REF", "held no commit" },
	{ "a symbolic ref to HEAD", "echo 'ref: HEAD' >$REF", "held no commit" },
	{ "a symbolic ref out of the repository", "echo 'ref: ../../../home/x' >$REF", "held no commit" },
	{ "a symbolic ref to itself", "echo 'ref: refs/heads/kraft/it' >$REF", "held no commit" },
	{ "an empty file", ": >$REF", "held no commit" },
	{ "a huge file", "rm $REF && truncate -s 3G $REF", "held no commit" },
	{ "an id with words behind it", "x=$(git rev-parse HEAD) && echo $x x >$REF", "held no commit" },
	{ "an id of zeroes", "echo 0000000000000000000000000000000000000000 >$REF", "held no commit" },
	{ "an id of another length", "x=$(git rev-parse HEAD | cut -c1-39) && echo $x >$REF", "held no commit" },
	{ "a FIFO", "rm $REF && mkfifo $REF", "held no commit" },
	{ "a socket", "rm $REF && python3 -c 'import socket,sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' $REF",
		"held no commit" },
	{ "a directory", "rm $REF && mkdir -p $REF/x && echo y >$REF/x/y", "held no commit" },
	{ "a link to another branch", "rm $REF && ln -s ../main $REF", "held no commit" },
	{ "a link out of the repository", "git rev-parse HEAD >../elsewhere && rm $REF && ln -s $PWD/../elsewhere $REF",
		"held no commit" },
	{ "deleted", "rm $REF", "held no commit" },
	{ "a tag object", "git tag -a -m t x HEAD && to git rev-parse x && git update-ref -d refs/tags/x", "at a tag" },
	{ "a tree", "to git rev-parse HEAD^{tree}", "at a tree" },
	{ "a blob", "to git rev-parse HEAD:a", "at a blob" },
	{ "an object that is not there", "echo 1234567890123456789012345678901234567890 >$REF", "" },
	{ "an id of another kind of repository", "to echo $(git rev-parse HEAD)$(git rev-parse HEAD | cut -c1-24)",
		"no object id of this repository" },
	{ "a commit whose parent is not there",
		"printf 'tree %s\\nparent %s\\nauthor a <a@a> 1 +0000\\ncommitter a <a@a> 1 +0000\\n\\nx\\n' $(git rev-parse HEAD^{tree})"
		" 1234567890123456789012345678901234567890 >../c && to git hash-object -t commit -w --literally ../c", "" },
	{ "a commit of which a file is not there",
		"echo gone >a && git commit -qam x && f=$(obj $(git rev-parse HEAD:a)) && rm -f $f && test ! -e $f", "" },
	{ "a commit that is no text of a commit",
		"to git hash-object -t commit -w --literally /dev/null", "" },
	{ "a commit whose file is broken", "git commit -q --allow-empty -m x && f=$(obj $(git rev-parse HEAD)) && rm -f $f &&"
									   " echo garbage >$f", "" },
	{ "a file's object that is a FIFO",
		"echo held >a && git commit -qam x && f=$(obj $(git rev-parse HEAD:a)) && rm -f $f && mkfifo $f", "" },
	{ "a file's object that is a link", "echo held >a && git commit -qam x && f=$(obj $(git rev-parse HEAD:a)) && mv $f ../moved &&"
										" ln -s $PWD/../moved $f", "" },
	{ "a file's object with another's bytes", "echo one >a && git commit -qam x && one=$(obj $(git rev-parse HEAD:a)) &&"
											  " two=$(obj $(echo two | git hash-object -w --stdin)) && cp -f $two $one", "" },
	{ "a tree with a file named .git", "b=$(git rev-parse HEAD:a) && t=$(printf '100644 blob %s\\t.git\\n' $b | git mktree) &&"
									   " to git commit-tree -m x $t", "" },
};

static void
one_is_put_back(struct place *p, const struct hostile *h)
{
	struct item it = item_of(p, REPO);
	const char *before = commit_of(p, "kraft/it");
	struct kr_publish done = { 0 };
	struct kr_error err = { 0 };
	int found;

	if (try_sh(p, HOSTILE "{ %s; }", h->line) != 0)
		fail_msg("%s: it could not be made", h->name);
	alarm(60);
	found = try_take(&it, true, &done, &err);
	alarm(0);
	if (found != 1 || done.what != KR_PUBLISHED_PUT_BACK)
		fail_msg("%s: %d, %d: %s", h->name, found, done.what, err.message);
	if (!strstr(done.problem, h->reason) || !strstr(done.problem, "was put back to"))
		fail_msg("%s: %s", h->name, done.problem);
	if (strcmp(sh_says(p, "cat r/.git/refs/heads/kraft/it >said"), before) != 0)
		fail_msg("%s: it is not back", h->name);
	assert_int_equal(try_sh(p, "test ! -L r/.git/refs/heads/kraft/it"), 0);
	if (strcmp(sh_says(p, "cat r/.git/refs/heads/main r/.git/refs/heads/other | uniq >said"), before) != 0)
		fail_msg("%s: another branch moved", h->name);
	take(&it, 0);
	/* And whoever goes on can. */
	make(&it, it.git.record.at, true);
	sh(p, "cd wt && git commit -q --allow-empty -m on");
	assert_int_equal(take(&it, 1).what, KR_PUBLISHED_MOVED);
	kr_private_close(&it.git);
}

static void
mac_07_a_branch_that_holds_anything_but_a_commit_is_put_back(void **state)
{
	for (size_t i = 0; i < KR_COUNT(hostiles); i++) {
		struct place *p = *state;

		one_is_put_back(p, &hostiles[i]);
		sh(p, "chmod -R u+w r && rm -rf r wt run moved elsewhere");
	}
}

/* ---- what else was left ---- */

static void
mac_07_what_would_hold_or_mislead_the_next_git_is_gone(void **state)
{
	struct place *p = *state;
	struct item it = item_of(p, REPO);

	sh(p, "echo mine >file && cd r/.git && rm logs/refs/heads/kraft/it && ln -s ../../../../../../file logs/refs/heads/kraft/it &&"
		  " rm -f worktrees/wt/HEAD && mkfifo worktrees/wt/HEAD worktrees/wt/ORIG_HEAD && rm -rf worktrees/wt/logs &&"
		  " ln -s ../../../../home worktrees/wt/logs && ln ../../file worktrees/wt/COMMIT_EDITMSG &&"
		  " touch refs/heads/kraft/it.lock worktrees/wt/HEAD.lock worktrees/wt/index.lock refs/heads/other.lock &&"
		  " mkdir -p objects/ab && mkfifo objects/ab/00000000000000000000000000000000000000");
	take(&it, 0);
	sh(p, "cd r/.git && test \"$(cat worktrees/wt/HEAD)\" = 'ref: refs/heads/kraft/it' && test ! -e worktrees/wt/ORIG_HEAD &&"
		  " test ! -L worktrees/wt/logs && test ! -e worktrees/wt/COMMIT_EDITMSG && test \"$(cat ../../file)\" = mine &&"
		  " test ! -e refs/heads/kraft/it.lock && test ! -e worktrees/wt/HEAD.lock && test ! -e worktrees/wt/index.lock &&"
		  " test -e refs/heads/other.lock && test -z \"$(find . -type p -o -type l)\" && test -d ../../home");
	sh(p, "rm r/.git/refs/heads/other.lock && cd wt && git commit -q --allow-empty -m 2");
	assert_int_equal(take(&it, 1).what, KR_PUBLISHED_MOVED);
	check_repository(p);
	kr_private_close(&it.git);
}

/* The other one's git may be at work. */
static void
beside_another_session_its_locks_stay(void **state)
{
	struct place *p = *state;
	struct item it = item_of(p, REPO);
	struct kr_publish done;
	struct kr_error err = { 0 };

	sh(p, "touch r/.git/worktrees/wt/index.lock r/.git/refs/heads/kraft/it.lock");
	assert_int_equal(try_take(&it, false, &done, &err), 0);
	sh(p, "test -e r/.git/worktrees/wt/index.lock && test -e r/.git/refs/heads/kraft/it.lock && : >r/.git/refs/heads/kraft/it");
	assert_int_equal(try_take(&it, false, &done, &err), 1);
	assert_int_equal(done.what, KR_PUBLISHED_PUT_BACK);
	assert_string_equal(commit_of(p, "kraft/it"), commit_of(p, "main"));
	kr_private_close(&it.git);
}

/* A tree of which no index can be made in the memory that there is. */
static void
mac_07_a_tree_that_nobody_can_check_out_is_put_back(void **state)
{
	struct place *p = *state;
	struct item it = item_of(p, REPO);

	sh(p, "cd wt && b=$(git rev-parse HEAD:a) && t=$(for i in $(seq 10); do printf '100644 blob %%s\\tf%%s\\n' $b $i; done | git mktree)"
		  " && for d in 1 2 3 4 5 6 7 8 9; do t=$(for i in 0 1 2 3 4 5 6 7 8 9; do printf '040000 tree %%s\\td%%s\\n' $t $i; done |"
		  " git mktree); done && c=$(git commit-tree -m bomb $t) && echo $c >../r/.git/refs/heads/kraft/it");
	assert_int_equal(take(&it, 1).what, KR_PUBLISHED_PUT_BACK);
	assert_string_equal(commit_of(p, "kraft/it"), commit_of(p, "main"));
	kr_private_close(&it.git);
}

/* ---- before a session ---- */

static void
ref_05_what_a_setup_command_did_to_the_branch_is_dropped(void **state)
{
	struct place *p = *state;
	struct item it = item_of(p, REPO);
	const char *start = commit_of(p, "main");

	sh(p, "cd wt && echo setup >>a && git commit -qam setup && echo staged >s && git add s && git checkout -q --detach &&"
		  " touch ../r/.git/worktrees/wt/MERGE_AUTOSTASH.lock");
	make(&it, start, true);
	sh(p, "cd wt && test \"$(git rev-parse HEAD)\" = '%s' && test \"$(git symbolic-ref HEAD)\" = refs/heads/kraft/it &&"
		  " test \"$(git status --porcelain | tr '\\n' ' ')\" = ' M a ?? s '",
		start);
	take(&it, 0);
	/* The control: without it a commit stays. */
	sh(p, "cd wt && git commit -qam kept");
	assert_int_equal(take(&it, 1).what, KR_PUBLISHED_MOVED);
	kr_private_close(&it.git);
}

static void
a_session_begins_at_another_commit(void **state)
{
	struct place *p = *state;
	struct item it = item_of(p, REPO);
	struct kr_error err = { 0 };
	const char *next;

	sh(p, "cd r && git commit -q --allow-empty -m next && cd ../wt && git checkout -q --detach main");
	next = commit_of(p, "main");
	make(&it, next, false);
	assert_string_equal(commit_of(p, "kraft/it"), next);
	assert_string_equal(it.git.record.at, next);
	sh(p, "cd wt && test -z \"$(git status --porcelain)\" && test \"$(git symbolic-ref HEAD)\" = refs/heads/kraft/it &&"
		  " git reflog exists refs/heads/kraft/it");
	/* Whoever moves it in between wins. */
	assert_int_equal(kr_shared_make(&p->arena, &it.git, &it.checkout,
						 &(const struct kr_private_make){ .branch = "kraft/it", .start = next, .synced = commit_of(p, "other") },
						 false, &err),
		-1);
	kr_private_close(&it.git);
}

static void
a_branch_that_somebody_else_has_checked_out_is_not_worked_on(void **state)
{
	struct place *p = *state;
	struct item it = item_of(p, REPO);
	struct kr_error err = { 0 };

	sh(p, "cd wt && git checkout -q --detach && cd ../r && git checkout -q kraft/it");
	assert_int_equal(try_make(&it, commit_of(p, "main"), false, &err), -1);
	assert_non_null(strstr(err.message, "it is checked out in"));
	sh(p, "cd r && git checkout -q main");
	make(&it, commit_of(p, "main"), false);
	kr_private_close(&it.git);
}

static void
ref_04_what_stands_in_the_way_is_found_in_the_worktree(void **state)
{
	struct place *p = *state;
	struct item it = item_of(p, REPO);
	struct kr_strs found = { 0 };
	struct kr_error err = { 0 };

	assert_int_equal(kr_private_obstacles(&p->arena, &it.git, &found, &err), 0);
	assert_int_equal(found.n, 0);
	sh(p, "cd wt && echo 2 >a && git commit -qam 2 && git checkout -q --detach HEAD~ && echo 3 >a && git commit -qam 3 &&"
		  " ! git merge -q kraft/it >/dev/null 2>&1");
	assert_int_equal(kr_private_obstacles(&p->arena, &it.git, &found, &err), 0);
	assert_int_equal(found.n, 2);
	assert_string_equal(found.v[0], "a merge is in progress");
	assert_non_null(strstr(found.v[1], "HEAD is detached at"));
	kr_private_close(&it.git);
}

/* ---- what is refused ---- */

static void
ctr_12_refs_that_are_no_files_are_refused_by_name(void **state)
{
	struct place *p = *state;
	struct item it = item_of(p, REPO);
	struct kr_error err = { 0 };

	sh(p, "mkdir r/.git/reftable");
	assert_int_equal(try_open(&it, &err), -1);
	assert_int_equal(err.code, KR_E_UNSUPPORTED);
	assert_non_null(strstr(err.message, "reftable"));
	sh(p, "rmdir r/.git/reftable");
	err = (struct kr_error){ 0 };
	assert_int_equal(try_open(&it, &err), 0);
	kr_private_close(&it.git);
}

static void
objects_elsewhere_and_other_kinds_of_items_are_refused(void **state)
{
	struct place *p = *state;
	struct item it = item_of(p, REPO);
	struct kr_error err = { 0 };

	sh(p, "mv r/.git/objects store && ln -s ../../store r/.git/objects");
	assert_int_equal(try_open(&it, &err), -1);
	assert_non_null(strstr(err.message, "lie elsewhere"));
	sh(p, "rm r/.git/objects && mv store r/.git/objects && mkdir run/sandbox-git/it-0");
	err = (struct kr_error){ 0 };
	assert_int_equal(try_open(&it, &err), -1);
	assert_non_null(strstr(err.message, "a git directory of its own"));
	sh(p, "rmdir run/sandbox-git/it-0 && git init -q q && mv r/.git/worktrees/wt/commondir saved &&"
		  " echo '%s' >r/.git/worktrees/wt/commondir",
		below(p, "q/.git"));
	err = (struct kr_error){ 0 };
	assert_int_equal(try_open(&it, &err), -1);
	assert_non_null(strstr(err.message, "does not lead to the repository"));
	sh(p, "mv saved r/.git/worktrees/wt/commondir");
	err = (struct kr_error){ 0 };
	assert_int_equal(try_open(&it, &err), 0);
	assert_true(it.git.is_made);
	kr_private_close(&it.git);
}

/* As a worker on macOS can lock each of them, and what is to be in their place is written by a rename. */
static void
lock_all(struct item *it)
{
	static const char *const names[] = { "r/.git/refs/heads/kraft/it", "r/.git/refs/heads/kraft/it.lock", "r/.git/logs/refs/heads/kraft/it" };
	static const char *const own[] = { "HEAD", "index", "index.lock", "." };

	locked_count = 0;
	sh(it->p, "cd r/.git && rm -f worktrees/wt/HEAD && mkfifo worktrees/wt/HEAD && echo ref: refs/heads/main >refs/heads/kraft/it &&"
			  " : >refs/heads/kraft/it.lock && : >worktrees/wt/index.lock");
	for (size_t i = 0; i < KR_COUNT(names); i++)
		lock_file(below(it->p, names[i]));
	for (size_t i = 0; i < KR_COUNT(own); i++)
		lock_file(kr_arena_printf(&it->p->arena, "%s/%s", it->git_dir, own[i]));
}

static void
mac_08_what_a_worker_locked_is_put_back_too(void **state)
{
	struct place *p = *state;
	struct item it = item_of(p, REPO);
	struct kr_publish done = { 0 };
	struct kr_error err = { 0 };
	const char *start = commit_of(p, "main");

	lock_all(&it);
	unlocks = false;
	assert_int_equal(try_take(&it, true, &done, &err), -1); /* the control: nobody unlocks */
	unlocks = true;
	done = take(&it, 1);
	assert_int_equal(done.what, KR_PUBLISHED_PUT_BACK);
	assert_string_equal(commit_of(p, "kraft/it"), start);
	sh(p, "test ! -e r/.git/worktrees/wt/index.lock && test ! -e r/.git/refs/heads/kraft/it.lock && test \"$(git -C wt symbolic-ref HEAD)\" ="
		  " refs/heads/kraft/it");
	check_repository(p);
	lock_all(&it);
	make(&it, start, true);
	assert_string_equal(commit_of(p, "kraft/it"), start);
	assert_int_equal(locked_count, 0);
	kr_private_close(&it.git);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		place_test(mac_08_a_commit_stays_on_its_branch),
		place_test(mac_08_a_merge_of_a_packed_history_stays_and_is_not_packed_again),
		place_test(mac_13_a_branch_that_moved_on_the_host_meanwhile_is_not_compared),
		place_test(a_packed_branch_is_read),
		place_test(mac_07_a_branch_that_holds_anything_but_a_commit_is_put_back),
		place_test(mac_07_what_would_hold_or_mislead_the_next_git_is_gone),
		place_test(beside_another_session_its_locks_stay),
		place_test(mac_07_a_tree_that_nobody_can_check_out_is_put_back),
		place_test(ref_05_what_a_setup_command_did_to_the_branch_is_dropped),
		place_test(a_session_begins_at_another_commit),
		place_test(a_branch_that_somebody_else_has_checked_out_is_not_worked_on),
		place_test(ref_04_what_stands_in_the_way_is_found_in_the_worktree),
		place_test(ctr_12_refs_that_are_no_files_are_refused_by_name),
		place_test(mac_08_what_a_worker_locked_is_put_back_too),
		place_test(objects_elsewhere_and_other_kinds_of_items_are_refused),
	};

	return cmocka_run_group_tests_name("shared", tests, NULL, NULL);
}
