/*
 * publish: what a worker committed comes into the repository, and nothing else of it. All with real git; the
 * export command, which runs inside the walls in kraft, is run here as it is.
 */
#include "repo.h"

#include <time.h>

#include "git/publish.h"

/* ---- an item ---- */

struct item {
	struct place *p;
	struct kr_private git;
};

static const char *
commit_of(struct place *p, const char *repo, const char *name)
{
	return sh_says(p, "git -C '%s' rev-parse --verify -q '%s' >said || echo none >said", repo, name);
}

/* A repository `r` with a linked worktree `w`, and the private directory sandbox-git/i-0 with the item's
 * branch. */
static struct item
make_item_with(struct place *p, const char *init)
{
	struct item item = { .p = p };
	struct kr_private *git = &item.git;
	struct kr_private_record *record = &git->record;

	sh(p,
		"git init -q %s r && cd r && mkdir d && for i in 1 2 3; do echo $i >d/$i; done && git add . &&"
		" git commit -qm base && git branch other && git worktree add -q --detach ../w",
		init);
	sh(p,
		"mkdir sandbox-git && git init -q %s --bare sandbox-git/i-0 && cd sandbox-git/i-0 &&"
		" echo \"$PWD/../../r/.git/objects\" >objects/info/alternates && git config core.bare false &&"
		" git symbolic-ref HEAD refs/heads/kraft/i && cp ../../r/.git/worktrees/w/index . &&"
		" (echo '# pack-refs with: peeled fully-peeled sorted'; c=$(git -C ../../r rev-parse HEAD);"
		" echo $c refs/heads/kraft/i; echo $c refs/heads/main; echo $c refs/heads/other) >packed-refs",
		init);
	git->dir = below(p, "sandbox-git/i-0");
	git->git_file = below(p, "sandbox-git/i-0.gitfile");
	git->objects = below(p, "r/.git/objects");
	git->is_made = true;
	git->lock_fd = -1;
	record->checkout = below(p, "r");
	record->common = below(p, "r/.git");
	record->worktree_git_dir = below(p, "r/.git/worktrees/w");
	record->branch = "kraft/i";
	snprintf(record->start, sizeof(record->start), "%s", commit_of(p, "r", "HEAD"));
	memcpy(record->at, record->start, sizeof(record->at));
	assert_int_equal(kr_private_record_write(git, NULL), 0);
	return item;
}

static struct item
make_item(struct place *p)
{
	return make_item_with(p, "");
}

/* A line of shell in the worktree as the worker sees it. */
#define work(item, ...) work_(item, kr_arena_printf(&(item)->p->arena, __VA_ARGS__))
static void
work_(struct item *item, const char *line)
{
	sh(item->p, "cd w && export GIT_DIR='%s' GIT_WORK_TREE=\"$PWD\" && { %s; }", item->git.dir, line);
}

/* ---- the three steps ---- */

static int
look(struct item *item, char *tip, int *lock)
{
	struct kr_error err = { 0 };
	int there = kr_publish_look(&item->p->arena, &item->git, tip, lock, &err);

	if (there < 0)
		fail_msg("%s", err.message);
	return there;
}

/* The export, into `pack`. Its exit status is not kraft's to believe. */
static int
export_pack(struct item *item, const char *tip)
{
	const char *text = NULL, *line = "";
	struct kr_error err = { 0 };
	const char *const *argv = kr_publish_export(&item->p->arena, &item->git, tip, &text);

	for (; *argv; argv++)
		line = kr_arena_printf(&item->p->arena, "%s '%s'", line, *argv);
	assert_int_equal(kr_file_write_at(AT_FDCWD, below(item->p, "revs"), text, strlen(text), 0600, &err), 0);
	return try_sh(item->p, "%s <revs >pack 2>export-said", line);
}

static struct kr_publish
take(struct item *item, const char *tip)
{
	struct kr_publish out = { 0 };
	struct kr_error err = { 0 };
	kr_auto_fd int fd = open(below(item->p, "pack"), O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	if (kr_publish_take(&item->p->arena, &item->git, tip, fd, &out, &err) < 0)
		fail_msg("%s", err.message);
	return out;
}

static struct kr_publish
publish(struct item *item)
{
	char tip[KR_OID_HEX_MAX + 1];
	int lock = -1;
	struct kr_publish out;

	assert_int_equal(look(item, tip, &lock), 1);
	(void)export_pack(item, tip);
	out = take(item, tip);
	kr_close_p(&lock);
	return out;
}

static void
has_nothing(struct item *item)
{
	char tip[KR_OID_HEX_MAX + 1];
	int lock = -1;

	assert_int_equal(look(item, tip, &lock), 0);
}

static void
is_moved(struct item *item, const struct kr_publish *out)
{
	if (out->what != KR_PUBLISHED_MOVED)
		fail_msg("%d: %s", out->what, out->problem);
	assert_string_equal(out->problem, "");
	assert_string_equal(commit_of(item->p, "r", "refs/heads/kraft/i"), out->to);
	assert_string_equal(item->git.record.synced, out->to);
}

static void
says(const struct kr_publish *out, enum kr_published what, const char *part)
{
	if (out->what != what || !strstr(out->problem, part) || strchr(out->problem, '\n'))
		fail_msg("%d, '%s' is not in: %s", out->what, part, out->problem);
}

static bool
nothing_left(struct item *item)
{
	char tip[KR_OID_HEX_MAX + 1];
	int lock = -1;
	int there = look(item, tip, &lock);

	kr_close_p(&lock);
	return there == 0;
}

/* Everything of the repository but what publishing may change. */
static const char *
the_rest(struct item *item)
{
	return sh_says(item->p,
		"cd r && (git for-each-ref; cat .git/HEAD .git/config; git ls-files -s; find .git/hooks .git/objects "
		"-type f |"
		" sort | xargs sha1sum; git status --porcelain) | grep -v refs/heads/kraft/i | sha1sum >../said");
}

/* ---- what works ---- */

static void
commits_come_out_and_the_worktree_follows(void **state) /* REF-02 */
{
	struct item item = make_item(*state);
	struct kr_publish out;
	const char *first;

	assert_true(nothing_left(&item));
	work(&item, "echo new >n && rm d/1 && echo two >d/2 && git add -A . && git commit -qm one &&"
				" echo again >n && git commit -qam two");
	out = publish(&item);
	is_moved(&item, &out);
	assert_string_equal(out.from, "");
	assert_int_equal(out.commits, 2);
	assert_true(nothing_left(&item));
	sh(item.p, "git -C r fsck --strict --no-dangling 2>fsck-said && ! test -s fsck-said");
	/* The person sees a worktree on the branch, with nothing to commit. */
	assert_string_equal(sh_says(item.p, "cd w && git status --porcelain=v2 --branch >../said"),
		kr_arena_printf(&item.p->arena, "# branch.oid %s\n# branch.head kraft/i", out.to));
	first = kr_arena_dup(&item.p->arena, out.to);
	work(&item, "git commit -q --amend -m three && git commit -q --allow-empty -m four");
	out = publish(&item);
	is_moved(&item, &out);
	assert_string_equal(out.from, first);
	assert_int_equal(out.commits, 2);
	assert_string_equal(sh_says(item.p, "git -C r reflog -1 --format=%%gs refs/heads/kraft/i >said"),
		"kraft: sandboxed session");
}

static void
only_the_branch_comes_back(void **state) /* GIT-11, REF-01 */
{
	struct item item = make_item(*state);
	struct kr_publish out;

	sh(item.p, "git -C r pack-refs --all && git -C r gc -q");
	sh(item.p, "find r -type f ! -path '*/worktrees/*' -print0 | xargs -0 sha1sum >before");
	work(&item,
		"git commit -q --allow-empty -m one && git branch -f other && git branch -f main && git tag t &&"
		" git branch kraft/i2 && git update-ref refs/kraft/base/i HEAD && git stash list &&"
		" git symbolic-ref refs/heads/alias refs/heads/kraft/i && mkdir -p $GIT_DIR/refs/heads/../../.. &&"
		" git config core.hooksPath /tmp && mkdir -p $GIT_DIR/refs/heads/kraft/j/i.lock");
	out = publish(&item);
	is_moved(&item, &out);
	sh(item.p,
		"sha1sum --quiet -c before"); /* of the files that were there, none changed, and none is gone */
	assert_string_equal(sh_says(item.p, "git -C r for-each-ref --format='%%(refname)' >said"),
		"refs/heads/kraft/i\nrefs/heads/main\nrefs/heads/other");
	assert_string_equal(commit_of(item.p, "r", "other"), item.git.record.start);
	assert_string_equal(commit_of(item.p, "r", "main"), item.git.record.start);
}

static void
what_the_repository_has_is_left_out(void **state)
{
	struct item item = make_item(*state);
	struct kr_publish out;

	/* The worker merges a branch of 50 commits that are in the repository, and makes one file. */
	sh(item.p, "cd r && git checkout -q -b big && for i in $(seq 50); do head -c 3000 /dev/urandom >b$i; git "
			   "add b$i;"
			   " git commit -qm b; done && git rev-parse HEAD >../big");
	work(&item, "git merge -q --no-ff -m merged $(cat ../big) && git read-tree -u --reset HEAD");
	out = publish(&item);
	is_moved(&item, &out);
	assert_string_equal(sh_says(item.p, "test $(stat -c %%s pack) -lt 2000 && echo small >said"), "small");
	assert_int_equal(out.commits, 51);
	/* Positive control: without --local all of it comes. */
	sh(item.p,
		"printf '%s\\n^%s\\n' | git --git-dir=sandbox-git/i-0 pack-objects --revs --stdout -q >all &&"
		" test $(stat -c %%s all) -gt 150000",
		out.to, item.git.record.start);
}

static void
an_export_is_not_needed_twice(void **state)
{
	struct item item = make_item(*state);
	struct kr_publish out;
	char tip[KR_OID_HEX_MAX + 1];
	int lock = -1;

	work(&item, "git reset -q --hard && git commit -q --allow-empty -m one");
	assert_int_equal(look(&item, tip, &lock), 1);
	assert_int_equal(export_pack(&item, tip), 0);
	sh(item.p, "git -C r index-pack --stdin <pack >/dev/null");
	/* Now --local leaves everything out. */
	assert_int_equal(export_pack(&item, tip), 0);
	assert_string_equal(sh_says(item.p, "stat -c %%s pack >said"), "32");
	out = take(&item, tip);
	is_moved(&item, &out);
	assert_string_equal(sh_says(item.p, "ls r/.git/objects/pack | grep -c pack$ >said"), "1");
	kr_close_p(&lock);
	/* The same of an export that gave nothing at all, for a rewind. */
	work(&item, "git reset -q --hard HEAD^");
	assert_int_equal(look(&item, tip, &lock), 1);
	sh(item.p, ": >pack");
	out = take(&item, tip);
	is_moved(&item, &out);
	assert_int_equal(out.commits, 0);
	kr_close_p(&lock);
}

static void
every_kind_of_repository(void **state) /* GIT-22 */
{
	struct item item;
	struct kr_publish out;

	item = make_item_with(*state, "--object-format=sha256");
	work(&item, "echo x >n && git add n && git commit -qm one");
	out = publish(&item);
	is_moved(&item, &out);
	assert_int_equal(strlen(out.to), 64);
	work(&item,
		"o=$(git rev-parse HEAD | cut -c1-40) && echo $o >$GIT_DIR/refs/heads/kraft/i"); /* of the other
																							hash's length */
	out = publish(&item);
	says(&out, KR_PUBLISHED_LOST, "no object id of this repository");
}

static void
a_worktree_that_was_removed_is_not_missed(void **state)
{
	struct item item = make_item(*state);
	struct kr_publish out;

	work(&item, "git commit -q --allow-empty -m one");
	sh(item.p, "git -C r worktree remove --force w");
	out = publish(&item);
	is_moved(&item, &out);
	assert_int_equal(access(below(item.p, "r/.git/worktrees/w"), F_OK), -1);
}

/* ---- what cannot move ---- */

static void
a_branch_that_moved_keeps_both_tips(void **state) /* GIT-12, REF-03 */
{
	struct item item = make_item(*state);
	struct kr_publish out;
	const char *mine, *first;

	work(&item, "git commit -q --allow-empty -m one");
	sh(item.p, "cd r && git branch kraft/i $(git commit-tree -p HEAD -m mine HEAD^{tree})");
	mine = commit_of(item.p, "r", "kraft/i");
	out = publish(&item);
	says(&out, KR_PUBLISHED_KEPT,
		"it was made in the repository meanwhile; the commits are kept at "
		"refs/kraft/unsynced/kraft/i");
	assert_string_equal(commit_of(item.p, "r", "kraft/i"), mine);
	assert_string_equal(commit_of(item.p, "r", "refs/kraft/unsynced/kraft/i"), out.to);
	assert_string_equal(item.git.record.synced, "");
	/* The files are the worker's, and HEAD and index say so. */
	assert_string_equal(sh_says(item.p, "cd w && git status --porcelain=v2 --branch >../said"),
		kr_arena_printf(&item.p->arena, "# branch.oid %s\n# branch.head (detached)", out.to));
	/* It is not taken out again. */
	first = kr_arena_dup(&item.p->arena, out.to);
	has_nothing(&item);
	assert_string_equal(sh_says(item.p, "git -C r for-each-ref refs/kraft | wc -l >said"), "1");
	/* An older one is not lost. */
	work(&item, "git commit -q --amend --allow-empty -m other");
	out = publish(&item);
	says(&out, KR_PUBLISHED_KEPT,
		kr_arena_printf(&item.p->arena, "refs/kraft/unsynced/kraft/i-%.12s", out.to));
	assert_string_equal(commit_of(item.p, "r", "refs/kraft/unsynced/kraft/i"), first);
}

static void
a_branch_that_was_deleted_stays_so(void **state) /* GIT-12 */
{
	struct item item = make_item(*state);
	struct kr_publish out;

	work(&item, "git commit -q --allow-empty -m one");
	out = publish(&item);
	is_moved(&item, &out);
	sh(item.p, "git -C w checkout -q --detach && git -C r branch -q -D kraft/i");
	work(&item, "git commit -q --allow-empty -m two");
	out = publish(&item);
	says(&out, KR_PUBLISHED_KEPT, "it was deleted in the repository meanwhile");
	assert_string_equal(commit_of(item.p, "r", "kraft/i"), "none");
}

static void
no_room_for_the_branch(void **state) /* a ref `kraft` leaves none for `kraft/i` */
{
	struct item item = make_item(*state);
	struct kr_publish out;

	sh(item.p, "git -C r branch kraft && git -C r update-ref refs/kraft/unsynced/kraft HEAD");
	work(&item, "git commit -q --allow-empty -m one");
	out = publish(&item);
	says(&out, KR_PUBLISHED_KEPT, "'refs/heads/kraft' exists; cannot create 'refs/heads/kraft/i'");
	says(&out, KR_PUBLISHED_KEPT, kr_arena_printf(&item.p->arena, "refs/kraft/unsynced/kraft-i-%s", out.to));
}

static void
a_branch_below_is_not_taken_for_it(void **state)
{
	struct item item = make_item(*state);
	struct kr_publish out;

	sh(item.p, "git -C r branch kraft/i/below");
	work(&item, "git commit -q --allow-empty -m one");
	out = publish(&item);
	says(&out, KR_PUBLISHED_KEPT, "'refs/heads/kraft/i/below' exists");
}

static void
a_symbolic_branch_moves_nothing(void **state) /* REF-02 */
{
	struct item item = make_item(*state);
	struct kr_publish out;

	sh(item.p, "git -C r symbolic-ref refs/heads/kraft/i refs/heads/main");
	work(&item, "git commit -q --allow-empty -m one");
	snprintf(item.git.record.synced, sizeof(item.git.record.synced), "%s", item.git.record.start);
	assert_int_equal(kr_private_record_write(&item.git, NULL), 0);
	out = publish(&item);
	says(&out, KR_PUBLISHED_KEPT, "it is a symbolic ref in the repository, to refs/heads/main");
	assert_string_equal(commit_of(item.p, "r", "main"), item.git.record.start);
	sh(item.p, "git -C r symbolic-ref -q refs/heads/kraft/i >/dev/null");
}

static void
a_branch_that_is_checked_out_elsewhere_stays(void **state)
{
	struct item item = make_item(*state);
	struct kr_publish out;

	work(&item, "git commit -q --allow-empty -m one");
	out = publish(&item);
	is_moved(&item, &out);
	sh(item.p, "git -C w checkout -q --detach && git -C r checkout -q kraft/i");
	work(&item, "git commit -q --allow-empty -m two");
	out = publish(&item);
	says(&out, KR_PUBLISHED_KEPT,
		kr_arena_printf(&item.p->arena, "it is checked out in '%s'", below(item.p, "r")));
	has_nothing(&item);
	sh(item.p, "git -C r checkout -q main"); /* and when it no longer is, the next commit takes it along */
	work(&item, "git commit -q --allow-empty -m three");
	out = publish(&item);
	is_moved(&item, &out);
}

/* ---- what a worker may try ---- */

/* The export, or what is in its place, gives at worst a pack that is refused. */
static void
is_refused(struct item *item, const char *part)
{
	const char *before = the_rest(item);
	struct kr_publish out = publish(item);

	says(&out, KR_PUBLISHED_LOST, part);
	assert_string_equal(the_rest(item), before);
	assert_string_equal(commit_of(item->p, "r", "refs/heads/kraft/i"), "none");
}

static void
a_directory_without_its_alternates(void **state)
{
	struct item item = make_item(*state);
	struct kr_publish out;

	work(&item, "echo x >n && git add n && git commit -qm one && git repack -q -a -d && rm "
				"$GIT_DIR/objects/info/alternates");
	out = publish(&item);
	is_moved(&item, &out);
	sh(item.p, "git -C r fsck --strict");
	/* Without the objects there is nothing to export. */
	work(&item, "echo y >n && git commit -qam two && rm $GIT_DIR/objects/pack/*");
	sh(item.p, "rm -f pack");
	out = publish(&item);
	says(&out, KR_PUBLISHED_LOST, "were not taken");
}

static void
a_shallow_or_grafted_directory(void **state)
{
	struct item item = make_item(*state);
	struct kr_publish out;

	work(&item, "git commit -q --allow-empty -m one && echo x >n && git add n && git commit -qm two &&"
				" git rev-parse HEAD >$GIT_DIR/shallow");
	is_refused(&item, "git index-pack failed");
	work(&item,
		"rm $GIT_DIR/shallow && mkdir -p $GIT_DIR/info && echo $(git rev-parse HEAD) $(git rev-parse HEAD~2)"
		" >$GIT_DIR/info/grafts");
	is_refused(&item, "git index-pack failed");
	work(&item, "rm $GIT_DIR/info/grafts"); /* positive control */
	out = publish(&item);
	is_moved(&item, &out);
}

static void
a_partial_directory(void **state)
{
	struct item item = make_item(*state);

	work(&item, "echo x >n && git add n && git commit -qm one && o=$(git rev-parse HEAD:n) &&"
				" git repack -q -a -d -l && git unpack-objects -q </dev/null; git config "
				"extensions.partialClone origin &&"
				" git config core.repositoryFormatVersion 1 && git config remote.origin.url ext::false &&"
				" git config remote.origin.promisor true && mv $GIT_DIR/objects/pack ../packs && mkdir "
				"$GIT_DIR/objects/pack &&"
				" for p in ../packs/*.pack; do git unpack-objects -q <$p; done &&"
				" rm -f $GIT_DIR/objects/$(echo $o | cut -c1-2)/$(echo $o | cut -c3-)");
	is_refused(&item, "were not taken");
}

static void
replaced_objects(void **state)
{
	struct item item = make_item(*state);
	struct kr_publish out;

	work(&item, "echo evil >n && git add n && git commit -qm evil && c=$(git rev-parse HEAD) && git reset -q "
				"--hard HEAD^ &&"
				" echo good >n && git add n && git commit -qm good && git replace HEAD $c");
	out = publish(&item);
	is_moved(&item, &out); /* what the branch truly is */
	assert_string_equal(sh_says(item.p, "git -C r show refs/heads/kraft/i:n >said"), "good");
	assert_string_equal(sh_says(item.p, "git -C r for-each-ref refs/replace >said"), "");
}

/* Packs of the worker's own making, in place of what the export gives. */
static void
forged(struct item *item, const char *line, const char *part)
{
	char tip[KR_OID_HEX_MAX + 1];
	int lock = -1;
	const char *before = the_rest(item);
	struct kr_publish out;

	assert_int_equal(look(item, tip, &lock), 1);
	assert_int_equal(export_pack(item, tip), 0);
	sh(item->p, "rm -f forged && %s && mv forged pack", line);
	out = take(item, tip);
	says(&out, KR_PUBLISHED_LOST, part);
	assert_string_equal(the_rest(item), before);
	kr_close_p(&lock);
}

static void
forged_packs(void **state) /* GIT-08, GIT-18 */
{
	struct item item = make_item(*state);
	struct kr_publish out;

	work(&item, "echo x >n && git add n && git commit -qm one");
	forged(&item, "head -c 100 pack >forged", "git index-pack failed");
	forged(&item, "head -c 100000 /dev/urandom >forged", "git index-pack failed");
	forged(&item, "printf 'PACK' >forged", "git index-pack failed");
	forged(&item, "printf 'PACK\\0\\0\\0\\2\\0\\0\\0\\0 and more' >forged", "git cat-file failed");
	forged(&item, "(printf 'PACK\\0\\0\\0\\2\\377\\377\\377\\377'; tail -c +13 pack) >forged",
		"git index-pack failed");
	forged(&item, "(cat pack; echo more) >forged", "git index-pack failed");
	forged(&item,
		"git --git-dir=sandbox-git/i-0 rev-parse kraft/i | git --git-dir=sandbox-git/i-0 pack-objects "
		"--stdout -q"
		" >forged",
		"git index-pack failed"); /* a commit without its tree */
	forged(&item,
		"git --git-dir=sandbox-git/i-0 rev-parse kraft/i:n | git --git-dir=sandbox-git/i-0 pack-objects "
		"--stdout -q"
		" >forged && sleep 0",
		"git cat-file failed"); /* well-formed, but without the commit: its objects come in for nothing */
	forged(&item, ": >forged && truncate -s 9G forged", "more than 8 GiB");
	out = publish(&item); /* positive control */
	is_moved(&item, &out);
}

static void
trees_that_fsck_refuses(void **state) /* GIT-16 */
{
	static const struct {
		const char *tree, *part;
	} cases[] = {
		{ "printf '100644 .git\\0' && b", "hasDotgit" },
		{ "printf '100644 .GIT\\0' && b", "hasDotgit" },
		{ "printf '100644 git~1\\0' && b", "hasDotgit" },
		{ "printf '100644 .g\\342\\200\\214it\\0' && b", "hasDotgit" },
		{ "printf '100644 ..\\0' && b", "hasDotdot" },
		{ "printf '100644 a/b\\0' && b", "fullPathname" },
		{ "printf '100644 a\\0' && b && printf '100644 a\\0' && b", "duplicateEntries" },
		{ "printf '120000 a\\0' && b && printf '40000 a\\0' && t", "duplicateEntries" },
		{ "printf '120000 .gitmodules\\0' && b", "gitmodulesSymlink" },
	};
	struct item item = make_item(*state);
	struct kr_publish out;

	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		work(&item,
			"b() { git rev-parse main:d/1 | xxd -r -p; } && t() { git rev-parse main:d | xxd -r -p; } &&"
			" t=$({ %s; } | git hash-object -t tree --literally -w --stdin) &&"
			" git update-ref refs/heads/kraft/i $(git commit-tree -p %s -m x $t)",
			cases[i].tree, item.git.record.start);
		is_refused(&item, cases[i].part);
	}
	work(&item,
		"t=$(git read-tree main; git write-tree) &&"
		" git update-ref refs/heads/kraft/i $(git commit-tree -p %s -m x $t)",
		item.git.record.start);
	out = publish(&item); /* positive control */
	is_moved(&item, &out);
}

static void
a_branch_that_is_no_commit(void **state)
{
	struct item item = make_item(*state);

	work(&item, "git rev-parse HEAD:d/1 >../o && cp ../o $GIT_DIR/refs/heads/kraft/i 2>/dev/null ||"
				" { mkdir -p $GIT_DIR/refs/heads/kraft && cp ../o $GIT_DIR/refs/heads/kraft/i; }");
	is_refused(&item, "at a blob, not at a commit");
	work(&item, "git tag -a -m t t main && git rev-parse t >$GIT_DIR/refs/heads/kraft/i");
	is_refused(&item, "at a tag, not at a commit");
	work(&item, "printf '%%040d\\n' 1 >$GIT_DIR/refs/heads/kraft/i");
	is_refused(&item, "were not taken");
}

static void
trees_that_describe_more_than_there_is(void **state) /* GIT-17 */
{
	struct item item = make_item(*state);
	struct kr_publish out;

	/* 4,000 long names, thousands of times. */
	work(&item,
		"b=$(git rev-parse HEAD:d/1) && t=$(seq 4000 | sed \"s/^/100644 blob $b\\t$(printf 'n%%0199d' 0)/\" "
		"| git mktree) &&"
		" t=$(seq 9999 | sed \"s/^/040000 tree $t\\t/\" | git mktree) && mkdir -p $GIT_DIR/refs/heads/kraft "
		"&&"
		" git update-ref refs/heads/kraft/i $(git commit-tree -p HEAD -m x $t)");
	out = publish(&item);
	says(&out, KR_PUBLISHED_KEPT, "git read-tree failed: Out of memory");
}

/* ---- the person meanwhile ---- */

static void
the_person_collects_garbage_at_any_time(void **state)
{
	struct item item = make_item(*state);
	struct kr_checkout checkout = { below(item.p, "r"), below(item.p, "r/.git"), below(item.p, "r/.git") };
	static const char gc[] =
		"cd r && git reflog expire --expire=now --all && git gc -q --prune=now && git worktree prune";
	struct kr_publish out;
	struct kr_error err = { 0 };
	char tip[KR_OID_HEX_MAX + 1];
	int lock = -1;

	assert_int_equal(kr_base_keep(&checkout, "i", item.git.record.start, &err), 0);
	/* The person throws away everything that the item stands on. */
	sh(item.p,
		"cd r && git checkout -q --orphan fresh && git rm -rqf . && git commit -q --allow-empty -m fresh &&"
		" git branch -D main other && git -C ../w update-ref --no-deref HEAD $(git rev-parse fresh)");
	sh(item.p, "%s", gc);
	work(&item, "git read-tree kraft/i && echo x >n && git add n && git commit -qm one");
	sh(item.p, "%s", gc);
	assert_int_equal(look(&item, tip, &lock), 1);
	sh(item.p, "%s", gc);
	assert_int_equal(export_pack(&item, tip), 0);
	sh(item.p, "%s", gc);
	/* A kraft that was killed after index-pack; the person's gc drops what came in, and it comes in again. */
	sh(item.p, "git -C r index-pack --stdin --fix-thin <pack >/dev/null && git -C r cat-file -e %s && %s",
		tip, gc);
	assert_int_not_equal(try_sh(item.p, "git -C r cat-file -e %s 2>/dev/null", tip), 0);
	out = take(&item, tip);
	is_moved(&item, &out);
	kr_close_p(&lock);
	sh(item.p, "%s && git fsck --strict", gc);
	assert_string_equal(commit_of(item.p, "r", "kraft/i"), tip);
	assert_int_equal(kr_base_drop(&checkout, "i", &err), 0);
	assert_int_equal(kr_base_drop(&checkout, "i", &err), 0); /* twice is once */
	assert_string_equal(sh_says(item.p, "git -C r for-each-ref refs/kraft >said"), "");
}

/* ---- the linked worktree ---- */

static void
an_index_is_made_without_a_look_at_a_file(void **state)
{
	struct place *p = *state;
	struct item item = make_item(p);
	struct kr_error err = { 0 };
	const char *new;
	char line[256];
	pid_t pid;
	int status;

	if (try_sh(p, "command -v strace >/dev/null") != 0)
		skip();
	sh(p, "cd r && echo '* filter=f' >.gitattributes && echo n >n && echo '[submodule \"x\"]' >.gitmodules "
		  "&& git rm -qf d/1 &&"
		  " git add . && git commit -qm new");
	new = commit_of(p, "r", "HEAD");
	/* Files of the same names, FIFOs among them: who opened one would wait. */
	sh(p, "rm -rf w/d/2 w/.gitattributes && mkfifo w/d/2 w/.gitattributes w/.gitmodules w/n && sleep 1.1 && "
		  "touch w/d/3 &&"
		  " rm w/.git && mkfifo w/.git");
	pid = fork();
	if (pid == 0) {
		(void)raise(SIGSTOP);
		_exit(kr_worktree_stands_at(item.git.record.worktree_git_dir, new, NULL, &err) < 0 ||
			  kr_worktree_stands_at(item.git.record.worktree_git_dir, new, "main", &err) < 0);
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	snprintf(line, sizeof(line),
		"strace -f -qq -o trace -e trace=file -p %d & sleep 0.5; kill -CONT %d; wait", pid, pid);
	sh(p, "%s", line);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_string_equal(
		sh_says(p,
			"grep -c 'worktrees/w/HEAD\\|worktrees/w/kraft-index' trace >said; test $(cat said) -gt 5 &&"
			" grep \"$PWD/w\\|open.*\\\"\\(/*d/[123]\\|n\\|\\.git[am].*\\)\\\"\" trace >said; true"),
		"");
	assert_string_equal(sh_says(p, "cat r/.git/worktrees/w/HEAD >said"), "ref: refs/heads/main");
}

static void
an_index_keeps_what_it_knows(void **state)
{
	struct place *p = *state;
	struct item item = make_item(p);
	struct kr_error err = { 0 };
	const char *git_dir = item.git.record.worktree_git_dir, *before;

	before = sh_says(p, "git -C w ls-files --debug d/3 >said");
	sh(p, "cd r && echo new >d/1 && git commit -qam new");
	assert_int_equal(kr_worktree_stands_at(git_dir, commit_of(p, "r", "HEAD"), NULL, &err), 0);
	assert_string_equal(sh_says(p, "git -C w ls-files --debug d/3 >said"), before);
	assert_string_equal(sh_says(p, "git -C w ls-files --debug d/1 | grep -c 'mtime: 0:0' >said"), "1");
	assert_string_equal(sh_says(p, "git -C w status --porcelain >said"), " M d/1");
	/* Whatever is there in place of an index: conflicts, nonsense, nothing, what a killed run left. */
	sh(p, "cd w && git reset -q --hard && printf '0 %%040d\\td/1\\n100644 %%s 1\\td/1\\n100644 %%s "
		  "2\\td/1\\n' 0 $(git rev-parse"
		  " HEAD:d/1 HEAD:d/2) | git update-index --index-info && git ls-files -u | grep -q d/1");
	assert_int_equal(kr_worktree_stands_at(git_dir, commit_of(p, "r", "HEAD"), NULL, &err), 0);
	assert_string_equal(sh_says(p, "git -C w status --porcelain >said"), "");
	for (size_t i = 0; i < 3; i++) {
		static const char *const odd[] = { "echo nonsense >index", "rm index",
			"touch kraft-index kraft-index.lock index.lock" };

		sh(p, "cd '%s' && %s", git_dir, odd[i]);
		if (kr_worktree_stands_at(git_dir, commit_of(p, "r", "HEAD"), NULL, &err) < 0)
			fail_msg("%s", err.message);
		sh(p, "rm -f '%s/index.lock'", git_dir);
		assert_string_equal(sh_says(p, "git -C w status --porcelain >said"), "");
	}
	assert_int_equal(access(below(p, "r/.git/worktrees/w/kraft-index"), F_OK), -1);
	assert_int_equal(
		kr_worktree_stands_at(git_dir, "0000000000000000000000000000000000000001", NULL, &err), -1);
}

/* A file that changed as the index was written, with size and times kept as far as a worker can: the new
 * index, though younger, must not call it unchanged. */
static void
an_index_does_not_hide_a_racy_change(void **state)
{
	struct place *p = *state;
	struct item item = make_item(p);
	struct kr_error err = { 0 };

	sh(p, "cd w && git config core.trustCtime false && touch -d '2020-01-01 00:00:00' d/1 && git "
		  "update-index --refresh &&"
		  " touch -d '2020-01-01 00:00:00' \"$(git rev-parse --git-path index)\" && echo X >d/1 && touch -d "
		  "'2020-01-01"
		  " 00:00:00' d/1 && test \"$(git --no-optional-locks status --porcelain)\" = ' M d/1'");
	sh(p, "cd r && echo new >d/2 && git commit -qam new");
	assert_int_equal(
		kr_worktree_stands_at(item.git.record.worktree_git_dir, commit_of(p, "r", "HEAD"), NULL, &err), 0);
	assert_string_equal(
		sh_says(p, "git -C w --no-optional-locks status --porcelain >said"), " M d/1\n M d/2");
}

/* ---- kill -9 ---- */

static uint64_t
now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void
one_that_is_killed(struct item *item, uint64_t after_us)
{
	pid_t pid = fork();

	if (pid == 0) {
		char tip[KR_OID_HEX_MAX + 1];
		int lock = -1, fd = open(below(item->p, "pack"), O_RDONLY | O_CLOEXEC);
		struct kr_publish out;

		if (kr_publish_look(&item->p->arena, &item->git, tip, &lock, NULL) == 1)
			(void)kr_publish_take(&item->p->arena, &item->git, tip, fd, &out, NULL);
		_exit(0);
	}
	usleep((useconds_t)after_us);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void
killed_at_any_time_it_is_finished_by_the_next(void **state)
{
	struct item item = make_item(*state);
	unsigned rounds = 30, unfinished = 0, done = 0;
	uint64_t takes_us, seed = 12345;

	if (getenv("KRAFT_TEST_KILLS"))
		rounds = (unsigned)strtoul(getenv("KRAFT_TEST_KILLS"), NULL, 10);
	work(&item, "git commit -q --allow-empty -m first");
	takes_us = now_us();
	(void)publish(&item);
	takes_us = now_us() - takes_us;
	for (unsigned i = 0; i < rounds; i++) {
		char tip[KR_OID_HEX_MAX + 1];
		struct kr_publish out = { 0 };
		int lock = -1;

		work(&item, "echo %u >d/1 && echo %u >n%u && git add . && git commit -qm c%u", i, i, i, i);
		assert_int_equal(look(&item, tip, &lock), 1);
		assert_int_equal(export_pack(&item, tip), 0);
		kr_close_p(&lock);
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		one_that_is_killed(&item, (seed >> 33) % (takes_us + takes_us / 4));
		if (look(&item, tip, &lock) == 1) {
			unfinished++;
			(void)export_pack(&item, tip);
			out = take(&item, tip);
			is_moved(&item, &out);
		} else {
			done++;
		}
		kr_close_p(&lock);
		assert_string_equal(
			commit_of(item.p, "r", "kraft/i"), commit_of(item.p, "sandbox-git/i-0", "kraft/i"));
		assert_string_equal(item.git.record.synced, commit_of(item.p, "r", "kraft/i"));
		assert_string_equal(
			sh_says(item.p, "cd w && git --no-optional-locks status --porcelain --branch >../said"),
			"## kraft/i");
	}
	assert_true(unfinished > 0);
	print_message("# of %u, %u were cut off and %u had ended\n", rounds, unfinished, done);
	sh(item.p, "cd r && git fsck --strict --no-dangling && ! find .git -name '*.lock' | grep .");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		place_test(commits_come_out_and_the_worktree_follows),
		place_test(only_the_branch_comes_back),
		place_test(what_the_repository_has_is_left_out),
		place_test(an_export_is_not_needed_twice),
		place_test(every_kind_of_repository),
		place_test(a_worktree_that_was_removed_is_not_missed),
		place_test(a_branch_that_moved_keeps_both_tips),
		place_test(a_branch_that_was_deleted_stays_so),
		place_test(no_room_for_the_branch),
		place_test(a_branch_below_is_not_taken_for_it),
		place_test(a_symbolic_branch_moves_nothing),
		place_test(a_branch_that_is_checked_out_elsewhere_stays),
		place_test(a_directory_without_its_alternates),
		place_test(a_shallow_or_grafted_directory),
		place_test(a_partial_directory),
		place_test(replaced_objects),
		place_test(forged_packs),
		place_test(trees_that_fsck_refuses),
		place_test(a_branch_that_is_no_commit),
		place_test(trees_that_describe_more_than_there_is),
		place_test(the_person_collects_garbage_at_any_time),
		place_test(an_index_is_made_without_a_look_at_a_file),
		place_test(an_index_keeps_what_it_knows),
		place_test(an_index_does_not_hide_a_racy_change),
		place_test(killed_at_any_time_it_is_finished_by_the_next),
	};

	return cmocka_run_group_tests_name("publish", tests, NULL, NULL);
}
