/* git: refs as data, of a private directory that a worker wrote and of the person's repository. Git is the
 * oracle. */
#include "repo.h"

#include "git/refs.h"

#define A40 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B40 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define B64 "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define ZERO "0000000000000000000000000000000000000000"

static struct kr_checkout
find(struct place *p, const char *name)
{
	struct kr_checkout out = { 0 };
	struct kr_error err = { 0 };

	if (kr_checkout_find(&p->arena, below(p, name), &out, &err) < 0)
		fail_msg("%s: %s", name, err.message);
	return out;
}

/* ---- parsers ---- */

static void
object_ids_are_hex_and_nothing_else(void **state)
{
	(void)state;
	assert_true(kr_oid_is_valid(A40, 40));
	assert_true(kr_oid_is_valid(B64, 64));
	assert_false(kr_oid_is_valid(A40, 39));
	assert_false(kr_oid_is_valid(B64, 41));
	assert_false(kr_oid_is_valid("Aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 40));
	assert_false(kr_oid_is_valid("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", 40));
	assert_false(kr_oid_is_valid("", 0));
}

static void
names_of_refs_are_those_that_git_takes(void **state)
{
	struct place *p = *state;
	static const char *const names[] = {
		"refs/heads/a",
		"refs/heads/a/b.c/d-e_f",
		"refs/heads/\xc3\xa4",
		"refs/heads/\xff\xfe",
		"refs/heads/@",
		"refs/heads/a@b",
		"refs/heads/{x}",
		"refs/heads/-x",
		"refs/heads/a.lockx",
		"refs/x",
		"refs/heads/a..b",
		"refs/heads/../../config",
		"refs/heads/.a",
		"refs/heads/a/.b",
		"refs/heads/a.",
		"refs/heads/a./b",
		"refs/heads/a.lock",
		"refs/heads/a.lock/b",
		"refs/heads//a",
		"refs/heads/a/",
		"refs/heads/a b",
		"refs/heads/a~1",
		"refs/heads/a^",
		"refs/heads/a:b",
		"refs/heads/a?",
		"refs/heads/a*",
		"refs/heads/a[",
		"refs/heads/a\\b",
		"refs/heads/a@{1}",
		"refs/heads/a\x7f",
		"refs/heads/a\tb",
		"refs/",
	};

	for (size_t i = 0; i < KR_COUNT(names); i++) {
		setenv("NAME", names[i], 1);
		if (kr_ref_name_is_valid(names[i], strlen(names[i])) !=
			(try_sh(p, "git check-ref-format \"$NAME\"") == 0))
			fail_msg("'%s'", names[i]);
	}
	assert_false(kr_ref_name_is_valid("HEAD", 4));
	assert_false(kr_ref_name_is_valid("refs/heads/a\0b", 14));
}

static void
a_ref_file_is_one_id(void **state)
{
	static const char *const bad[] = { "", "\n", A40 "\n\n", A40 " ", A40 "\r\n", " " A40,
		"ref: refs/heads/x\n", A40 "a", ZERO "\n", "xyz" };
	char oid[KR_OID_HEX_MAX + 1] = "untouched";

	(void)state;
	for (size_t i = 0; i < KR_COUNT(bad); i++)
		if (kr_ref_file_parse(bad[i], strlen(bad[i]), oid))
			fail_msg("'%s'", bad[i]);
	assert_string_equal(oid, "untouched");
	assert_true(kr_ref_file_parse(A40 "\n", 41, oid));
	assert_string_equal(oid, A40);
	assert_true(kr_ref_file_parse(B64, 64, oid));
	assert_string_equal(oid, B64);
}

static void
packed_refs_are_found_by_whole_names(void **state)
{
	static const char text[] =
		"# pack-refs with: peeled fully-peeled sorted \n" B40 " refs/heads/x\n" A40 " refs/heads/x/y\n" B40
		" refs/tags/t\n^" A40 "\n" ZERO " refs/heads/zero\n"
		"nonsense refs/heads/n\n^" B40 "\n" B64 " refs/heads/long\n" A40 " refs/heads/cut";
	struct kr_packed_ref ref;
	char oid[KR_OID_HEX_MAX + 1] = "untouched";
	size_t at = 0, n = sizeof(text) - 1, count = 0;

	(void)state;
	assert_int_equal(kr_packed_refs_find(text, n, "refs/heads/x/y", oid), 1);
	assert_string_equal(oid, A40);
	assert_int_equal(kr_packed_refs_find(text, n, "refs/heads/x", oid), 1);
	assert_string_equal(oid, B40);
	assert_int_equal(kr_packed_refs_find(text, n, "refs/heads/long", oid), 1);
	assert_string_equal(oid, B64);
	assert_int_equal(kr_packed_refs_find(text, n, "refs/heads", oid), 0);
	assert_int_equal(kr_packed_refs_find(text, n, "refs/heads/zero", oid), 0);
	assert_int_equal(kr_packed_refs_find(text, n, "refs/heads/n", oid), 0);
	assert_int_equal(kr_packed_refs_find(text, n, "refs/heads/cut", oid), 0); /* who knows how it goes on */
	assert_int_equal(kr_packed_refs_find(text, (size_t)1 << 40, "refs/heads/x", oid), -1);
	while (kr_packed_refs_next(text, n, &at, &ref)) {
		count++;
		assert_int_equal(ref.peeled != NULL, memcmp(ref.name, "refs/tags/t", 11) == 0);
	}
	assert_int_equal(count, 4);
}

/* ---- what a worker wrote ---- */

/* The branch x of the git directory "w": its value, or NULL. */
static const char *
hostile(struct place *p, const char *branch)
{
	kr_auto_fd int fd = open(below(p, "w"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct kr_error err = { 0 };
	char oid[KR_OID_HEX_MAX + 1] = "untouched";
	int found = kr_ref_read_hostile(fd, branch, oid, &err);

	if (found < 0)
		fail_msg("%s", err.message);
	if (!found)
		assert_string_equal(oid, "untouched");
	return found ? kr_arena_dup(&p->arena, oid) : NULL;
}

static void
git_11_what_git_wrote_is_read(void **state)
{
	struct place *p = *state;

	sh(p,
		"git init -q r && mv r/.git w && cd r && echo gitdir: ../w >.git && git commit -qm 1 --allow-empty &&"
		" git branch feat/x && git checkout -q feat/x && git commit -qm 2 --allow-empty");
	assert_string_equal(hostile(p, "feat/x"), sh_says(p, "git -C r rev-parse HEAD >said"));
	assert_string_equal(hostile(p, "main"), sh_says(p, "git -C r rev-parse main >said"));
	sh(p, "cd r && git gc -q && test ! -e ../w/refs/heads/feat/x");
	assert_string_equal(hostile(p, "feat/x"), sh_says(p, "git -C r rev-parse HEAD >said"));
	sh(p, "cd r && git commit -qm 3 --allow-empty"); /* loose wins */
	assert_string_equal(hostile(p, "feat/x"), sh_says(p, "git -C r rev-parse HEAD >said"));
	assert_null(hostile(p, "feat"));
	assert_null(hostile(p, "absent"));
	sh(p, "cd r && git checkout -q main && git branch -qD feat/x");
	assert_null(hostile(p, "feat/x"));
}

static void
git_11_what_is_no_plain_value_is_none(void **state)
{
	struct place *p = *state;
	static const char *const plants[] = {
		"ln -s ../../../elsewhere refs/heads/x",
		"ln -s ../../packed refs/heads/x",
		"mkfifo refs/heads/x",
		"mkdir refs/heads/x",
		"echo 'ref: refs/heads/main' >refs/heads/x",
		"echo AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA >refs/heads/x",
		"echo " ZERO " >refs/heads/x",
		"echo '" A40 " ' >refs/heads/x",
		": >refs/heads/x",
		"head -c 300 /dev/zero | tr '\\0' a >refs/heads/x",
		"truncate -s 1T refs/heads/x",
		"python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"refs/heads/x\")'",
		"mv refs/heads ../h && ln -s ../../h refs/heads && echo " B40 " >refs/heads/x",
		"mv refs ../h && ln -s ../h refs && echo " B40 " >refs/heads/x",
	};

	sh(p, "echo " A40 " >elsewhere");
	for (size_t i = 0; i < KR_COUNT(plants); i++) {
		sh(p, "rm -rf w h && mkdir -p w/refs/heads && cd w && echo '" A40 " refs/heads/x' >packed-refs &&"
			  " echo " B40 " >refs/heads/y && echo " A40 " >packed");
		assert_string_equal(hostile(p, "x"), A40); /* the control: packed */
		assert_string_equal(hostile(p, "y"), B40);
		sh(p, "cd w && %s", plants[i]);
		if (hostile(p, "x"))
			fail_msg("%s", plants[i]);
	}
}

static void
git_11_packed_refs_are_a_plain_file_or_none(void **state)
{
	struct place *p = *state;
	static const char *const plants[] = { "ln -s ../elsewhere packed-refs", "mkfifo packed-refs",
		"mkdir packed-refs", ": >packed-refs" };
	kr_auto_fd int fd = -1;
	struct kr_error err = { 0 };
	char oid[KR_OID_HEX_MAX + 1] = "untouched";

	sh(p, "echo '" A40 " refs/heads/x' >elsewhere");
	for (size_t i = 0; i < KR_COUNT(plants); i++) {
		sh(p, "rm -rf w && mkdir w && cd w && %s", plants[i]);
		assert_null(hostile(p, "x"));
	}
	sh(p, "rm -rf w && mkdir w && cp elsewhere w/packed-refs");
	assert_string_equal(hostile(p, "x"), A40); /* the control */
	sh(p, "truncate -s 67108865 w/packed-refs");
	fd = open(below(p, "w"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(kr_ref_read_hostile(fd, "x", oid, &err), -1);
	assert_int_equal(err.code, KR_E_LIMIT);
	assert_int_equal(kr_ref_read_hostile(fd, "../../x", oid, &err), -1);
	assert_int_equal(err.code, KR_E_REFUSED);
	assert_string_equal(oid, "untouched");
}

/* ---- the repository's ---- */

static const char *
snapshot(struct place *p, const char *name, const char *branch, const char *oid)
{
	struct kr_checkout c = find(p, name);
	kr_auto_buf struct kr_buf out = KR_BUF(1 << 24);
	struct kr_error err = { 0 };

	if (kr_refs_snapshot(&c, branch, oid, &out, &err) < 0)
		fail_msg("%s", err.message);
	return kr_arena_dup(&p->arena, out.data);
}

/* What git makes of the snapshot is what it makes of the repository, less what is left out, with the branch.
 */
static void
same_refs(struct place *p, const char *name, const char *head)
{
	const char *text = snapshot(p, name, "kraft/it", head);
	kr_auto_fd int dir = open(p->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(kr_file_write_at(dir, "text", text, strlen(text), 0600, NULL), 0);
	sh(p,
		"rm -rf copy && format=$(git -C '%s' rev-parse --show-object-format) &&"
		" git init -q --bare --object-format=$format copy && mv text copy/packed-refs &&"
		" echo \"$(git -C '%s' rev-parse --path-format=absolute --git-common-dir)/objects\" "
		">copy/objects/info/alternates &&"
		" f='%%(objectname) %%(refname) %%(*objectname)' && git -C copy for-each-ref --format=\"$f\" >got &&"
		" { git -C '%s' for-each-ref --format=\"$f %%(symref)\" | sed -n 's/ $//p' |"
		"   grep -v -e refs/kraft/ -e refs/bisect/ -e refs/worktree/ -e refs/rewritten/ -e "
		"'refs/heads/kraft/it ';"
		"   echo '%s refs/heads/kraft/it '; } | LC_ALL=C sort -k2 >wanted && LC_ALL=C sort -c -k2,2 got && "
		"diff wanted got &&"
		" git -C copy show-ref -d >got && git -C copy pack-refs --all && git -C copy show-ref -d | diff got "
		"- &&"
		" git -C copy fsck --strict",
		name, name, name, head);
}

static const char *
head_of(struct place *p, const char *name)
{
	return sh_says(p, "git -C '%s' rev-parse HEAD >said", name);
}

static void
ref_01_the_snapshot_is_what_git_lists(void **state)
{
	struct place *p = *state;
	const char *fully = "# pack-refs with: peeled fully-peeled sorted \n",
			   *plainly = "# pack-refs with: sorted \n";

	sh(p, "git init -q r && git -C r commit -qm 1 --allow-empty");
	same_refs(p, "r", head_of(p, "r"));
	sh(p, "cd r && for b in a a-b a.b a0 z/y/x; do git branch $b; done && git tag light && git tag -m t "
		  "annotated &&"
		  " git tag -m n nested annotated 2>/dev/null && git pack-refs --all && git commit -qm 2 "
		  "--allow-empty && git branch -f a");
	assert_memory_equal(snapshot(p, "r", "x", head_of(p, "r")), fully, strlen(fully));
	same_refs(p, "r", head_of(p, "r"));
	sh(p, "cd r && git tag -m l loose && git update-ref refs/remotes/origin/main HEAD &&"
		  " git symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/main && git update-ref "
		  "refs/kraft/base/it HEAD &&"
		  " git update-ref refs/bisect/bad HEAD && git update-ref refs/worktree/own HEAD &&"
		  " git update-ref refs/heads/kraft/it HEAD~ && git branch kraft/it-2 && git branch -D -q z/y/x &&"
		  " mkdir -p .git/refs/heads/empty/er && : >.git/refs/heads/leftover.lock");
	assert_memory_equal(snapshot(p, "r", "x", head_of(p, "r")), plainly, strlen(plainly));
	same_refs(p, "r", head_of(p, "r"));
	sh(p, "cd r && git pack-refs --all --prune"); /* refs/kraft too */
	same_refs(p, "r", head_of(p, "r"));
	sh(p, "cd r && git branch -f a HEAD~ && git worktree add -q ../wt 2>/dev/null && cd ../wt && git bisect "
		  "start >/dev/null");
	same_refs(p, "wt", head_of(p, "wt"));
}

static void
a_packed_file_of_any_order_is_sorted(void **state)
{
	struct place *p = *state;

	sh(p, "git init -q r && cd r && git commit -qm 1 --allow-empty && git branch a && git branch b && git "
		  "branch c &&"
		  " git commit -qm 2 --allow-empty && git tag -m t t && git pack-refs --all &&"
		  " { grep ' refs/tags' -A1 .git/packed-refs; grep ' refs/heads' .git/packed-refs | sort -r; } >x && "
		  "mv x .git/packed-refs");
	same_refs(p, "r", head_of(p, "r"));
}

static void
a_broken_or_symbolic_file_hides_a_packed_ref(void **state)
{
	struct place *p = *state;
	const char *text;

	sh(p, "git init -q r && cd r && git commit -qm 1 --allow-empty && git branch a && git branch b && git "
		  "branch c &&"
		  " git pack-refs --all && echo 'ref: refs/heads/main' >.git/refs/heads/a && : >.git/refs/heads/b");
	text = snapshot(p, "r", "x", head_of(p, "r"));
	assert_null(strstr(text, "refs/heads/a\n"));
	assert_null(strstr(text, "refs/heads/b\n"));
	assert_non_null(strstr(text, "refs/heads/c\n"));
	sh(p, "mkfifo r/.git/refs/heads/fifo && ln -s /dev/zero r/.git/refs/heads/link");
	assert_string_equal(text, snapshot(p, "r", "x", head_of(p, "r")));
}

static void
git_22_sha256_and_linked_refs_are_read(void **state)
{
	struct place *p = *state;

	sh(p, "git init -q --object-format=sha256 s && cd s && git commit -qm 1 --allow-empty && git tag -m t t "
		  "&& git branch b");
	same_refs(p, "s", head_of(p, "s"));
	sh(p, "git -C s pack-refs --all");
	same_refs(p, "s", head_of(p, "s"));
	sh(p, "cd s/.git && mv refs ../apart && ln -s ../apart refs && git -C .. branch c"); /* git-new-workdir */
	same_refs(p, "s", head_of(p, "s"));
}

static void
a_ref_in_the_way_of_the_branch_is_named(void **state)
{
	struct place *p = *state;
	struct kr_checkout c;
	kr_auto_buf struct kr_buf out = KR_BUF(1 << 20);
	struct kr_error err = { 0 };

	sh(p, "git init -q r && git -C r commit -qm 1 --allow-empty && git -C r branch kraft");
	c = find(p, "r");
	assert_int_equal(kr_refs_snapshot(&c, "kraft/it", A40, &out, &err), -1);
	assert_int_equal(err.code, KR_E_REFUSED);
	assert_non_null(strstr(err.message, "'kraft/it' cannot be made beside 'refs/heads/kraft'"));
	sh(p, "cd r && git branch -D -q kraft && git branch kraft/it/er");
	assert_int_equal(kr_refs_snapshot(&c, "kraft/it", A40, &out, &err), -1);
	assert_int_equal(kr_refs_snapshot(&c, "kraft/..", A40, &out, &err), -1);
	assert_non_null(strstr(err.message, "cannot be the name of a branch"));
}

/* A word in the configuration is enough to ask git, and the answer is the same. */
static void
ctr_12_git_is_asked_for_another_storage(void **state)
{
	struct place *p = *state;
	const char *before, *head;
	char oid[KR_OID_HEX_MAX + 1];
	struct kr_checkout c;

	sh(p, "git init -q r && cd r && git commit -qm 1 --allow-empty && git branch a && git symbolic-ref "
		  "refs/heads/s"
		  " refs/heads/a && git update-ref refs/kraft/base/x HEAD && git pack-refs --all && git branch b");
	head = head_of(p, "r");
	c = find(p, "r");
	before = snapshot(p, "r", "kraft/it", head);
	sh(p, "echo '# refStorage' >>r/.git/config && rm -f r/.git/refs/heads/gone");
	/* One difference: git here says nothing of peeling. */
	assert_string_equal(strstr(before, "\n"), strstr(snapshot(p, "r", "kraft/it", head), "\n"));
	assert_int_equal(kr_branch_read(&c, "b", oid, NULL), 1);
	assert_string_equal(oid, head);
	assert_int_equal(kr_branch_read(&c, "absent", oid, NULL), 0);
}

static void
ctr_12_a_reftable_that_git_cannot_read_is_named(void **state)
{
	struct place *p = *state;
	struct kr_checkout c;
	kr_auto_buf struct kr_buf out = KR_BUF(1 << 20);
	struct kr_error err = { 0 };
	char oid[KR_OID_HEX_MAX + 1] = "untouched";

	sh(p, "git init -q r && git -C r commit -qm x --allow-empty");
	c = find(p, "r");
	sh(p, "cd r/.git && mkdir reftable && printf '[core]\\n\\trepositoryformatversion = "
		  "1\\n[extensions]\\n\\trefStorage = "
		  "kraft-test\\n' >config");
	assert_int_equal(kr_refs_snapshot(&c, "x", A40, &out, &err), -1);
	assert_int_equal(err.code, KR_E_UNSUPPORTED);
	assert_non_null(strstr(err.message, "reftable"));
	assert_int_equal(kr_branch_read(&c, "main", oid, &err), -1);
	assert_int_equal(err.code, KR_E_UNSUPPORTED);
	assert_string_equal(oid, "untouched");
}

/* With a git that knows it; the one of Debian 12 does not, and then this is what the test before says. */
static void
ctr_12_a_reftable_that_git_reads_works(void **state)
{
	struct place *p = *state;

	if (try_sh(p, "git init -q --ref-format=reftable r 2>/dev/null") != 0)
		return;
	sh(p, "cd r && git commit -qm 1 --allow-empty && git branch a && git tag -m t t");
	same_refs(p, "r", head_of(p, "r"));
}

static void
a_branch_is_read_loose_and_packed(void **state)
{
	struct place *p = *state;
	struct kr_checkout c;
	struct kr_error err = { 0 };
	char oid[KR_OID_HEX_MAX + 1] = "untouched";

	sh(p, "git init -q r && cd r && git commit -qm 1 --allow-empty && git branch kraft/it && git branch "
		  "kraft/on/e");
	c = find(p, "r");
	assert_int_equal(kr_branch_read(&c, "absent", oid, &err), 0);
	assert_int_equal(kr_branch_read(&c, "kraft", oid, &err), 0);
	assert_string_equal(oid, "untouched");
	assert_int_equal(kr_branch_read(&c, "kraft/it", oid, &err), 1);
	assert_string_equal(oid, head_of(p, "r"));
	sh(p, "cd r && git pack-refs --all && mkdir -p .git/refs/heads/kraft/it/empty && git commit -qm 2 "
		  "--allow-empty");
	assert_int_equal(kr_branch_read(&c, "kraft/it", oid, &err), 1);
	assert_string_equal(oid, sh_says(p, "git -C r rev-parse HEAD~ >said"));
	sh(p, "cd r && rm -r .git/refs/heads/kraft && git symbolic-ref refs/heads/kraft/it refs/heads/main");
	assert_int_equal(kr_branch_read(&c, "kraft/it", oid, &err), -1);
	assert_int_equal(err.code, KR_E_REFUSED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(object_ids_are_hex_and_nothing_else),
		place_test(names_of_refs_are_those_that_git_takes),
		cmocka_unit_test(a_ref_file_is_one_id),
		cmocka_unit_test(packed_refs_are_found_by_whole_names),
		place_test(git_11_what_git_wrote_is_read),
		place_test(git_11_what_is_no_plain_value_is_none),
		place_test(git_11_packed_refs_are_a_plain_file_or_none),
		place_test(ref_01_the_snapshot_is_what_git_lists),
		place_test(a_packed_file_of_any_order_is_sorted),
		place_test(a_broken_or_symbolic_file_hides_a_packed_ref),
		place_test(git_22_sha256_and_linked_refs_are_read),
		place_test(a_ref_in_the_way_of_the_branch_is_named),
		place_test(ctr_12_git_is_asked_for_another_storage),
		place_test(ctr_12_a_reftable_that_git_cannot_read_is_named),
		place_test(ctr_12_a_reftable_that_git_reads_works),
		place_test(a_branch_is_read_loose_and_packed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
