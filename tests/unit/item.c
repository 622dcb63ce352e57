/* item: ids, the lock, the worktree's state machine with real git, local files, the places of a session. */
#include "repo.h"

#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "session/item.h"
#include "session/record.h"

/* What kr_item_open is called with; made anew for each call, as each run of kraft does. */
struct call {
	struct kr_host host;
	struct kr_checkout checkout;
	struct kr_repo repo;
	struct kr_item_want want;
};

static struct call
call_for(struct place *p, const char *repo)
{
	struct call c = { .host.places.run_dir = below(p, "run") };
	struct kr_error err = { 0 };

	if (kr_checkout_find(&p->arena, below(p, repo), &c.checkout, &err) < 0)
		fail_msg("%s", err.message);
	c.repo.path = c.checkout.root;
	return c;
}

static int
try_open(struct place *p, const struct call *c, struct kr_item *item, struct kr_error *err)
{
	struct kr_tree *root = kr_arena_new(&p->arena, struct kr_tree);

	*root = kr_tree_of(&c->repo, &c->checkout);
	*err = (struct kr_error){ 0 };
	return kr_item_open(&p->arena, &c->host, root, 1, &c->want, item, err);
}

static struct kr_item
open_item(struct place *p, const struct call *c)
{
	struct kr_item item = { 0 };
	struct kr_error err;
	int left = 100, failed;

	/* What a process that was killed had forked has the lock until it executes git or ends: a moment, on a busy machine a longer one. */
	while ((failed = try_open(p, c, &item, &err)) < 0 && err.code == KR_E_BUSY && left-- > 0)
		usleep(20000);
	if (failed < 0)
		fail_msg("%s", err.message);
	return item;
}

static struct kr_error
open_fails(struct place *p, const struct call *c)
{
	struct kr_item item = { .lock_fd = -7 };
	struct kr_error err;

	assert_int_equal(try_open(p, c, &item, &err), -1);
	assert_int_equal(item.lock_fd, -7);
	return err;
}

#define assert_says(err, part)                                     \
	do {                                                           \
		if (!strstr((err).message, (part)))                        \
			fail_msg("'%s' is not in: %s", (part), (err).message); \
	} while (0)

/* Can somebody else have the lock in this way now? */
static bool
lock_is_free_for(struct place *p, const struct kr_item *item, short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET };
	kr_auto_fd int fd =
		open(below(p, kr_arena_printf(&p->arena, "run/worktrees/%s.lock", item->id)), O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

static void
make_repo(struct place *p)
{
	sh(p,
		"git init -q r && cd r && echo one >f && git add f && git commit -qm one && echo .env >.gitignore &&"
		" git add .gitignore && git commit -qm two");
}

/* The worktree is exactly the commit, as git sees it. */
static void
assert_stands_at(struct place *p, const struct kr_item *item, const char *rev)
{
	sh(p,
		"test $(git -C '%s' rev-parse HEAD) = $(git -C r rev-parse %s) && test -z \"$(git -C '%s' status "
		"--porcelain)\"",
		item->worktree, rev, item->worktree);
}

/* ---- ids ---- */

static void
an_item_is_named_after_the_checkout(void **state)
{
	struct place *p = *state;
	static const struct {
		const char *directory, *part;
	} cases[] = {
		{ "plain", "run-plain-" },
		{ "My Repo", "run-My-Repo-" },
		{ ".dots.", "run-dots-" },
		{ "...", "run-repo-" },
		{ "caf\xc3\xa9 x", "run-caf-x-" },
		{ "0123456789012345678901234567890123456789012345", "run-0123456789012345678901234567890123456789-" },
	};

	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct call c;
		struct kr_item item;
		size_t n = strlen(cases[i].part);

		if (strcmp(cases[i].directory, "...") == 0)
			continue; /* see below: git takes it, so only its slug is looked at */
		sh(p, "git init -q '%s' && git -C '%s' commit -qm x --allow-empty", cases[i].directory,
			cases[i].directory);
		c = call_for(p, cases[i].directory);
		item = open_item(p, &c);
		assert_memory_equal(item.id, cases[i].part, n);
		assert_int_equal(strspn(item.id + n, "0123456789abcdef"), 8);
		assert_int_equal(strlen(item.id), n + 8);
		assert_true(strlen(item.id) <= 64);
		kr_item_close(&item);
	}
}

static void
an_id_is_checked(void **state)
{
	struct place *p = *state;
	static const char *const bad[] = { "", ".", "..", ".x", "-x", "a/b", "a b", "a\nb", "a.json", "a.lock",
		"a.json.1.new", "a.aside-1", "caf\xc3\xa9",
		"01234567890123456789012345678901234567890123456789012345678901234" };
	static const char *const good[] = { "a", "A-b_c.d", "1", "_",
		"0123456789012345678901234567890123456789012345678901234567890123" };
	struct call c;

	make_repo(p);
	c = call_for(p, "r");
	for (size_t i = 0; i < KR_COUNT(bad); i++) {
		c.want.id = bad[i];
		assert_int_equal(open_fails(p, &c).code, KR_E_USAGE);
	}
	assert_int_equal(access(below(p, "run"), F_OK), -1); /* nothing was made for them */
	for (size_t i = 0; i < KR_COUNT(good); i++) {
		struct kr_item item;

		c.want.id = good[i];
		item = open_item(p, &c);
		assert_string_equal(item.id, good[i]);
		kr_item_close(&item);
	}
}

/* ---- the way of a worktree ---- */

static void
an_item_is_made_once_and_then_ready(void **state)
{
	struct place *p = *state;
	struct call c;
	struct kr_item item;

	make_repo(p);
	c = call_for(p, "r");
	item = open_item(p, &c);
	assert_int_equal(item.state, KR_ITEM_MADE);
	assert_true(item.setup_done); /* there is none */
	assert_string_equal(item.trees->at, item.trees->wanted);
	assert_string_equal(item.trees->checkout.common, below(p, "r/.git"));
	assert_int_equal(item.notes.n, 0);
	assert_stands_at(p, &item, "HEAD");
	assert_true(lock_is_free_for(p, &item, F_RDLCK));
	assert_false(lock_is_free_for(p, &item, F_WRLCK));
	sh(p, "for d in run run/worktrees run/sandbox-home run/sandbox-home/* run/results run/results/*; do"
		  " test $(stat -c %%a $d) = 700 || exit 1; done; test $(stat -c %%a run/worktrees/*.json) = 600");
	kr_item_close(&item);
	sh(p, "echo worker >%s/f && touch %s/new", item.worktree, item.worktree);
	item = open_item(p, &c);
	assert_int_equal(item.state, KR_ITEM_READY);
	assert_string_equal(item.trees->git_dir, below(p, kr_arena_printf(&p->arena, "r/.git/worktrees/%s", item.id)));
	sh(p, "test $(cat %s/f) = worker && test -e %s/new", item.worktree, item.worktree);
	kr_item_close(&item);
}

static void
a_new_head_asks_for_a_move(void **state)
{
	struct place *p = *state;
	struct call c;
	struct kr_item item;
	char first[KR_OID_HEX_MAX + 1];

	make_repo(p);
	c = call_for(p, "r");
	item = open_item(p, &c);
	memcpy(first, item.trees->at, sizeof(first));
	kr_item_close(&item);
	sh(p, "cd r && echo two >f && git commit -qam three");
	c.want.keep = true;
	item = open_item(p, &c);
	assert_int_equal(item.state, KR_ITEM_READY);
	assert_string_equal(item.trees->wanted, first);
	kr_item_close(&item);
	c.want.keep = false;
	item = open_item(p, &c);
	assert_int_equal(item.state, KR_ITEM_NEEDS_CHECKOUT);
	assert_string_equal(item.trees->at, first);
	assert_string_equal(item.trees->wanted, sh_says(p, "git -C r rev-parse HEAD >said"));
	assert_false(lock_is_free_for(p, &item, F_RDLCK));
	sh(p, "git -C %s checkout -q --detach %s", item.worktree,
		item.trees->wanted); /* kraft does this inside the walls */
	assert_int_equal(kr_item_moved(&c.host, &item, NULL), 0);
	assert_int_equal(item.state, KR_ITEM_READY);
	assert_int_equal(kr_item_share(&item, NULL), 0);
	assert_true(lock_is_free_for(p, &item, F_RDLCK));
	kr_item_close(&item);
	item = open_item(p, &c);
	assert_int_equal(item.state, KR_ITEM_READY);
	kr_item_close(&item);
}

/* A kraft that was killed between the order to move and the end of the move: nobody knows where the files
 * stand. */
static void
a_move_that_did_not_end_is_made_again(void **state)
{
	struct place *p = *state;
	struct call c;
	struct kr_item item;

	make_repo(p);
	c = call_for(p, "r");
	item = open_item(p, &c);
	kr_item_close(&item);
	sh(p, "cd r && echo two >f && git commit -qam three");
	item = open_item(p, &c);
	assert_int_equal(item.state, KR_ITEM_NEEDS_CHECKOUT);
	assert_int_equal(kr_item_moving(&c.host, &item, NULL), 0);
	kr_item_close(&item);                       /* killed here */
	sh(p, "cd r && git reset -q --hard HEAD~"); /* the record's commit is wanted again */
	item = open_item(p, &c);
	assert_string_equal(item.trees->at, item.trees->wanted);
	assert_int_equal(item.state, KR_ITEM_NEEDS_CHECKOUT);
	kr_item_close(&item);
	c.want.keep = true;
	item = open_item(p, &c);
	assert_int_equal(item.state, KR_ITEM_NEEDS_CHECKOUT);
	assert_int_equal(kr_item_moved(&c.host, &item, NULL), 0);
	kr_item_close(&item);
	item = open_item(p, &c);
	assert_int_equal(item.state, KR_ITEM_READY);
	kr_item_close(&item);
}

/* GIT-19: a git that was killed during the move left its locks; one that was there before is the person's. */
static void
locks_of_a_killed_move_are_removed(void **state)
{
	struct place *p = *state;
	struct call c;
	struct kr_item item;

	make_repo(p);
	c = call_for(p, "r");
	item = open_item(p, &c);
	kr_item_close(&item);
	sh(p, "touch -d '1 hour ago' '%s/HEAD.lock' && cd r && echo two >f && git commit -qam three",
		item.trees->git_dir);
	item = open_item(p, &c);
	assert_int_equal(item.state, KR_ITEM_NEEDS_CHECKOUT);
	assert_int_equal(kr_item_moving(&c.host, &item, NULL), 0);
	sh(p, "touch '%s/index.lock'", item.trees->git_dir);
	kr_item_close(&item); /* killed here */
	item = open_item(p, &c);
	assert_int_equal(item.state, KR_ITEM_NEEDS_CHECKOUT);
	sh(p, "! test -e '%s/index.lock' && test -e '%s/HEAD.lock'", item.trees->git_dir, item.trees->git_dir);
	assert_int_equal(kr_item_moved(&c.host, &item, NULL), 0);
	kr_item_close(&item);
	sh(p, "touch '%s/index.lock'", item.trees->git_dir);
	item = open_item(p, &c);
	assert_int_equal(item.state, KR_ITEM_READY);
	sh(p, "test -e '%s/index.lock'", item.trees->git_dir);
	kr_item_close(&item);
}

static void
changes_are_taken_along_when_asked(void **state)
{
	struct place *p = *state;
	struct call c;
	struct kr_item item;

	make_repo(p);
	sh(p, "cd r && echo dirty >f && echo u >untracked");
	c = call_for(p, "r");
	item = open_item(p, &c);
	sh(p, "test $(cat %s/f) = one && ! test -e %s/untracked", item.worktree, item.worktree);
	kr_item_close(&item);
	c.want.with_changes = true;
	item = open_item(p, &c);
	assert_int_equal(item.state, KR_ITEM_NEEDS_CHECKOUT);
	kr_item_close(&item);
	c.want.id = "other";
	item = open_item(p, &c);
	assert_int_equal(item.state, KR_ITEM_MADE);
	sh(p, "test $(cat %s/f) = dirty && test -e %s/untracked", item.worktree, item.worktree);
	kr_item_close(&item);
	item = open_item(p, &c); /* the same changes are the same commit */
	assert_int_equal(item.state, KR_ITEM_READY);
	kr_item_close(&item);
}

static void
setup_is_remembered_by_its_command(void **state)
{
	struct place *p = *state;
	struct call c;
	struct kr_item item;

	make_repo(p);
	c = call_for(p, "r");
	c.repo.setup_command = "make deps";
	item = open_item(p, &c);
	assert_false(item.setup_done);
	assert_false(lock_is_free_for(p, &item, F_RDLCK));
	kr_item_close(&item); /* it failed, or kraft was killed */
	item = open_item(p, &c);
	assert_int_equal(item.state, KR_ITEM_READY);
	assert_false(item.setup_done);
	assert_int_equal(kr_item_set_up(&c.host, &item, NULL), 0);
	assert_true(item.setup_done);
	kr_item_close(&item);
	item = open_item(p, &c);
	assert_true(item.setup_done);
	assert_true(lock_is_free_for(p, &item, F_RDLCK));
	c.repo.setup_command = "make more";
	assert_int_equal(open_fails(p, &c).code, KR_E_BUSY);
	kr_item_close(&item);
	item = open_item(p, &c);
	assert_false(item.setup_done);
	kr_item_close(&item);
	c.repo.setup_command = "";
	item = open_item(p, &c);
	assert_true(item.setup_done);
	kr_item_close(&item);
	sh(p, "rm -rf %s", item.worktree); /* a new worktree has not been set up */
	c.repo.setup_command = "make deps";
	item = open_item(p, &c);
	assert_int_equal(item.state, KR_ITEM_MADE);
	assert_false(item.setup_done);
	kr_item_close(&item);
}

static void
a_worktree_removed_by_hand_is_made_again(void **state)
{
	struct place *p = *state;
	struct call c;
	struct kr_item item;

	make_repo(p);
	c = call_for(p, "r");
	for (unsigned i = 0; i < 3; i++) {
		item = open_item(p, &c);
		assert_int_equal(item.state, KR_ITEM_MADE);
		assert_int_equal(item.notes.n, 0);
		assert_stands_at(p, &item, "HEAD");
		kr_item_close(&item);
		if (i == 0)
			sh(p, "rm -rf %s", item.worktree);
		else
			sh(p, "git -C r worktree remove --force %s", item.worktree);
	}
	sh(p, "test $(ls r/.git/worktrees 2>/dev/null | wc -l) = 0 && ! ls -d run/worktrees/*aside* 2>/dev/null");
}

/* What may be somebody's work is never removed. */
static void
unknown_directories_are_put_aside(void **state)
{
	struct place *p = *state;
	struct call c;
	struct kr_item item;

	make_repo(p);
	c = call_for(p, "r");
	c.want.id = "x";
	sh(p, "mkdir -p run/worktrees/x && chmod 700 run && echo work >run/worktrees/x/work");
	item = open_item(p, &c); /* no record */
	assert_int_equal(item.state, KR_ITEM_MADE);
	assert_int_equal(item.notes.n, 1);
	assert_non_null(strstr(item.notes.v[0], below(p, "run/worktrees/x.aside-1")));
	sh(p, "test $(cat run/worktrees/x.aside-1/work) = work");
	assert_stands_at(p, &item, "HEAD");
	kr_item_close(&item);

	sh(p, "echo mine >run/worktrees/x/mine && rm -rf r/.git/worktrees"); /* the repository forgot it */
	item = open_item(p, &c);
	assert_int_equal(item.state, KR_ITEM_MADE);
	assert_int_equal(item.notes.n, 1);
	sh(p, "test $(cat run/worktrees/x.aside-2/mine) = mine");
	kr_item_close(&item);

	sh(p, "echo mine >run/worktrees/x/mine && echo '{' >run/worktrees/x.json"); /* the record is damaged */
	item = open_item(p, &c);
	assert_int_equal(item.notes.n, 1);
	sh(p, "test $(cat run/worktrees/x.aside-3/mine) = mine");
	kr_item_close(&item);

	sh(p, "rm -rf run/worktrees/x && mkdir target && touch target/t && ln -s %s/target run/worktrees/x",
		p->top);
	item = open_item(p, &c); /* a link in its place: FS-02 */
	assert_int_equal(item.state, KR_ITEM_MADE);
	sh(p, "test -L run/worktrees/x.aside-4 && test -e target/t && ! test -e target/f");
	kr_item_close(&item);

	sh(p, "rm -rf run/worktrees/x run/worktrees/x.json && mkdir run/worktrees/x");
	item = open_item(p, &c); /* an empty directory is nobody's work */
	assert_int_equal(item.notes.n, 0);
	kr_item_close(&item);
}

/* The admin directory below .git/worktrees now belongs to a worktree of the person's. */
static void
a_name_taken_over_in_the_repository_is_not_used(void **state)
{
	struct place *p = *state;
	struct call c;
	struct kr_item item;

	make_repo(p);
	c = call_for(p, "r");
	c.want.id = "x";
	item = open_item(p, &c);
	kr_item_close(&item);
	sh(p,
		"git -C r worktree remove --force %s && git -C r worktree add -q --detach ../person/x && mkdir "
		"run/worktrees/x &&"
		" echo w >run/worktrees/x/w",
		item.worktree);
	item = open_item(p, &c);
	assert_int_equal(item.state, KR_ITEM_MADE);
	assert_string_not_equal(item.trees->git_dir, below(p, "r/.git/worktrees/x"));
	assert_stands_at(p, &item, "HEAD");
	sh(p, "git -C person/x status >/dev/null && test -e run/worktrees/x.aside-1/w");
	kr_item_close(&item);
	/* Forgotten by git alone: it gives the same name again, and what was put aside must not lead to the new
	 * one. */
	sh(p, "rm -rf %s/r/.git/worktrees/*", p->top);
	item = open_item(p, &c);
	assert_int_equal(item.state, KR_ITEM_MADE);
	sh(p, "test -e run/worktrees/x.aside-2/f || test -d run/worktrees/x.aside-2");
	sh(p, "! test -e run/worktrees/x.aside-2/.git && ! git -C run/worktrees/x.aside-2 status 2>/dev/null");
	sh(p, "git -C run/worktrees/x status >/dev/null"); /* control: the new one is a worktree */
	kr_item_close(&item);
}

static void
an_item_of_another_checkout_is_refused(void **state)
{
	struct place *p = *state;
	struct call c, other;
	struct kr_item item;
	struct kr_error err;

	make_repo(p);
	sh(p, "git clone -q r s");
	c = call_for(p, "r");
	other = call_for(p, "s");
	c.want.id = other.want.id = "x";
	item = open_item(p, &c);
	kr_item_close(&item);
	err = open_fails(p, &other);
	assert_int_equal(err.code, KR_E_REFUSED);
	assert_says(err, below(p, "r"));
	assert_non_null(strstr(err.hint, "--item NAME"));
	other.want.id = NULL;
	c.want.id = NULL;
	item = open_item(p, &c);
	other.want.id = NULL;
	kr_item_close(&item);
	item = open_item(p, &other);
	kr_item_close(&item);
}

static void
a_checkout_without_a_commit_makes_nothing(void **state)
{
	struct place *p = *state;
	struct call c;

	sh(p, "git init -q r");
	c = call_for(p, "r");
	assert_says(open_fails(p, &c), "has no commit yet");
	assert_int_equal(access(below(p, "run"), F_OK), -1);
}

/* ---- the lock ---- */

static void
sessions_share_and_changes_wait(void **state)
{
	struct place *p = *state;
	struct call c;
	struct kr_item one, two;
	struct kr_error err;

	make_repo(p);
	c = call_for(p, "r");
	one = open_item(p, &c);
	two = open_item(p, &c);
	assert_int_equal(two.state, KR_ITEM_READY);
	sh(p, "cd r && echo two >f && git commit -qam three");
	err = open_fails(p, &c);
	assert_int_equal(err.code, KR_E_BUSY);
	assert_says(err, one.id);
	assert_non_null(strstr(err.hint, "--item NAME"));
	assert_non_null(strstr(err.hint, "--keep"));
	kr_item_close(&one);
	assert_int_equal(open_fails(p, &c).code, KR_E_BUSY);
	sh(p, "rm -rf %s", two.worktree);
	assert_says(open_fails(p, &c), "its worktree is gone");
	kr_item_close(&two);
	one = open_item(p, &c);
	assert_int_equal(one.state, KR_ITEM_MADE);
	kr_item_close(&one);
}

static void
who_prepares_is_waited_for_a_while(void **state)
{
	struct place *p = *state;
	struct call c;
	struct kr_item item;
	struct kr_error err;
	struct timespec a, b;

	make_repo(p);
	c = call_for(p, "r");
	c.repo.setup_command = "x";
	item = open_item(p, &c);
	clock_gettime(CLOCK_MONOTONIC, &a);
	err = open_fails(p, &c);
	clock_gettime(CLOCK_MONOTONIC, &b);
	assert_int_equal(err.code, KR_E_BUSY);
	assert_says(err, "is preparing item");
	assert_true(b.tv_sec - a.tv_sec >= 2 && b.tv_sec - a.tv_sec < 10);
	kr_item_close(&item);
}

/* The lock ends with the process, whatever it started. */
static void
the_lock_survives_nothing(void **state)
{
	struct place *p = *state;
	struct call c;
	struct kr_item item;
	pid_t child;
	int status;

	make_repo(p);
	c = call_for(p, "r");
	c.repo.setup_command = "x";
	child = fork();
	if (child == 0) {
		static const char *const argv[] = { "sleep", "30", NULL };
		pid_t sleeper;
		FILE *out;

		item = open_item(p, &c);
		if (posix_spawnp(&sleeper, "sleep", NULL, NULL, (char *const *)argv, environ) != 0)
			_exit(1);
		out = fopen(below(p, "said"), "w");
		fprintf(out, "%d\n", sleeper);
		fclose(out);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	item = open_item(p, &c);
	assert_false(item.setup_done);
	kr_item_close(&item);
	sh(p, "kill $(cat said)");
}

/* Many kraft at once on one item: one makes it, all of them get it. */
static void
all_who_come_at_once_are_served(void **state)
{
	struct place *p = *state;
	enum { MANY = 12 };
	struct call c;
	pid_t child[MANY];

	make_repo(p);
	c = call_for(p, "r");
	for (unsigned round = 0; round < 5; round++) {
		int made = 0;

		for (unsigned i = 0; i < MANY; i++) {
			child[i] = fork();
			if (child[i] == 0) {
				struct kr_item item;
				struct kr_error err;

				if (try_open(p, &c, &item, &err) < 0) {
					fprintf(stderr, "# %s\n", err.message);
					_exit(9);
				}
				usleep(50000); /* its session */
				_exit(item.state == KR_ITEM_MADE);
			}
		}
		for (unsigned i = 0; i < MANY; i++) {
			int status;

			assert_int_equal(waitpid(child[i], &status, 0), child[i]);
			assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
			made += WEXITSTATUS(status);
		}
		assert_int_equal(made, 1);
		sh(p, "rm -rf run");
	}
}

/* ---- a kill at any moment ---- */

static unsigned
random_below(unsigned n)
{
	static uint64_t x =
		88172645463325252u; /* the same moments each time; what happens in them is random enough */

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return (unsigned)(x % n);
}

/* Opens the item in a child that is killed after some microseconds; true when it was done before. */
static bool
open_and_kill(struct place *p, const struct call *c, unsigned after_us)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		struct kr_item item;
		struct kr_error err;

		if (try_open(p, c, &item, &err) < 0) {
			fprintf(stderr, "# %s\n", err.message);
			_exit(9);
		}
		if (item.state == KR_ITEM_NEEDS_CHECKOUT)
			_exit(0);
		_exit(kr_item_set_up(&c->host, &item, NULL) < 0);
	}
	usleep(after_us);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status))
		assert_int_equal(WEXITSTATUS(status), 0);
	return WIFEXITED(status);
}

/* How long making takes on this machine under its present load. */
static unsigned
time_of_open(struct place *p, const struct call *c)
{
	struct timespec a, b;
	struct kr_item item;

	clock_gettime(CLOCK_MONOTONIC, &a);
	item = open_item(p, c);
	clock_gettime(CLOCK_MONOTONIC, &b);
	kr_item_close(&item);
	sh(p, "rm -rf %s", item.worktree);
	return (unsigned)((b.tv_sec - a.tv_sec) * 1000000 + (b.tv_nsec - a.tv_nsec) / 1000);
}

/* LIFE-01, LIFE-03: five kills in a row and more; the next call gives what one clean call gives. */
static void
a_kill_at_any_moment_is_mended(void **state)
{
	struct place *p = *state;
	struct call c;
	unsigned finished = 0, kills = 0, whole_us, rounds = getenv("KRAFT_ALL") ? 200 : 40;

	make_repo(p);
	sh(p, "cd r && for i in $(seq 100); do echo $i >n$i; done && git add . && git commit -qm many && echo "
		  "secret >.env");
	c = call_for(p, "r");
	c.want.id = "x";
	c.repo.setup_command = "make";
	kr_strs_add(&p->arena, &c.repo.local_files, ".env");
	whole_us = time_of_open(p, &c);
	while (kills < rounds) {
		struct kr_item item;

		do
			finished += open_and_kill(p, &c, random_below(whole_us * 5 / 4));
		while (++kills % 5);
		item = open_item(p, &c);
		assert_int_equal(item.notes.n, 0); /* a half-made one is known as such, never put aside */
		assert_stands_at(p, &item, "HEAD");
		sh(p, "test $(cat %s/.env) = secret", item.worktree);
		kr_item_close(&item);
		sh(p, "rm -rf %s", item.worktree);
	}
	print_message("# %u kills within %u us, %u came too late\n", kills, whole_us, finished);
	sh(p, "cd r && test -z \"$(git status --porcelain)\" && git fsck --no-progress --no-dangling && git "
		  "worktree list >/dev/null"
		  " && test $(ls .git/worktrees | wc -l) -le 1"); /* nothing is broken or piles up in the person's
															 repository */
}

/* ---- local files ---- */

/* Who waits on the lock of an item that is being removed must not come out with a lock that nobody else looks at. */
static void
a_lock_that_was_removed_is_not_taken(void **state)
{
	struct place *p = *state;
	struct call c;
	struct kr_item item;
	int ready[2];
	char byte;
	pid_t pid;

	make_repo(p);
	c = call_for(p, "r");
	item = open_item(p, &c);
	kr_item_close(&item);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		int dir = open(below(p, "run/worktrees"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		bool held = kr_item_lock_alone(dir, item.id, NULL) >= 0;

		(void)!write(ready[1], "x", 1);
		usleep(100000);
		_exit(held && unlinkat(dir, kr_arena_printf(&p->arena, "%s.lock", item.id), 0) == 0 ? 0 : 1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	item = open_item(p, &c);
	assert_false(lock_is_free_for(p, &item, F_WRLCK)); /* the one that lies there now */
	kr_item_close(&item);
	sh(p, "true");
	assert_int_equal(waitpid(pid, &(int){ 0 }, 0), pid);
	close(ready[0]);
	close(ready[1]);
}

static void
local_files_are_copied(void **state)
{
	struct place *p = *state;
	struct call c;
	struct kr_item item;

	make_repo(p);
	sh(p, "cd r && echo secret >.env && chmod 600 .env && mkdir -p conf/deep && echo l >conf/deep/local && "
		  "chmod 755"
		  " conf/deep/local && echo changed >f");
	c = call_for(p, "r");
	kr_strs_add(&p->arena, &c.repo.local_files, ".env");
	kr_strs_add(&p->arena, &c.repo.local_files, "./conf//deep/local");
	kr_strs_add(&p->arena, &c.repo.local_files, "f");
	item = open_item(p, &c);
	sh(p,
		"cd %s && test $(cat .env) = secret && test $(stat -c %%a .env) = 600 && test $(cat conf/deep/local) "
		"= l &&"
		" test $(stat -c %%a conf/deep/local) = 755 && test $(cat f) = changed",
		item.worktree);
	kr_item_close(&item);
}

static void
local_files_do_not_lead_out(void **state)
{
	struct place *p = *state;
	static const struct {
		const char *name, *part;
	} cases[] = {
		{ "absent", "is not there" },
		{ "f/x", "is not there" },
		{ "../outside", "leads out of the checkout" },
		{ "d/../../outside", "leads out of the checkout" },
		{ "/etc/passwd", "is not a relative path" },
		{ "", "is not a relative path" },
		{ "link", "is a symbolic link" },
		{ "dirlink/outside", "is a symbolic link" },
		{ "d", "is a directory" },
		{ ".", "is a directory" },
		{ ".git/config", "is git's own" },
		{ "sub/.git", "is git's own" },
		{ "fifo", "is not a regular file" },
		{ "big", "is larger than 256 MiB" },
	};
	struct call c;

	make_repo(p);
	sh(p, "echo secret >outside && cd r && ln -s ../outside link && ln -s .. dirlink && mkdir d && mkfifo "
		  "fifo &&"
		  " truncate -s 257M big");
	c = call_for(p, "r");
	alarm(60); /* a FIFO must not block */
	for (size_t i = 0; i < KR_COUNT(cases); i++) {
		struct kr_error err;

		c.repo.local_files = (struct kr_strs){ 0 };
		kr_strs_add(&p->arena, &c.repo.local_files, cases[i].name);
		err = open_fails(p, &c);
		assert_int_equal(err.code, KR_E_REFUSED);
		assert_says(err, kr_arena_printf(&p->arena, "local file '%s'", cases[i].name));
		assert_says(err, cases[i].part);
		assert_true(err.hint[0]);
	}
	alarm(0);
	sh(p, "! ls -d run/worktrees/run-r-???????? 2>/dev/null"); /* found out before anything was made */
}

/* The commit may hold a link where the copy goes. */
static void
local_files_are_not_written_through_links(void **state)
{
	struct place *p = *state;
	struct call c;
	struct kr_error err;

	sh(p, "mkdir victim && echo safe >victim/env && git init -q r && cd r && ln -s ../../../victim conf && "
		  "git add . &&"
		  " git commit -qm x && rm conf && mkdir conf && echo secret >conf/env");
	c = call_for(p, "r");
	kr_strs_add(&p->arena, &c.repo.local_files, "conf/env");
	err = open_fails(p, &c);
	assert_says(err, "without following links");
	sh(p, "test $(cat victim/env) = safe && test $(ls victim | wc -l) = 1");
	sh(p, "cd r && git reset -q --hard && rm conf && echo x >real && git rm -q --cached conf && ln -s "
		  "../../../victim/env"
		  " file && git add . && git commit -qm y && rm file && echo secret >file");
	c.repo.local_files = (struct kr_strs){ 0 };
	kr_strs_add(&p->arena, &c.repo.local_files, "file");
	{
		struct kr_item item = open_item(p, &c);

		sh(p, "test $(cat victim/env) = safe && test ! -L %s/file && test $(cat %s/file) = secret",
			item.worktree, item.worktree);
		kr_item_close(&item);
	}
}

/* ---- sessions ---- */

static void
a_session_gets_places_of_its_own(void **state)
{
	struct place *p = *state;
	struct call c;
	struct kr_item item;
	struct kr_session_paths one, two;
	struct kr_error err = { 0 };

	make_repo(p);
	c = call_for(p, "r");
	item = open_item(p, &c);
	umask(0);
	assert_int_equal(kr_session_paths_make(&p->arena, &c.host, &item, NULL, &one, &err), 0);
	assert_int_equal(kr_session_paths_make(&p->arena, &c.host, &item, NULL, &two, &err), 0);
	umask(022);
	assert_string_not_equal(one.id, two.id);
	assert_int_equal(strlen(one.id), 16);
	assert_int_equal(strspn(one.id, "0123456789abcdef"), 16);
	sh(p,
		"test $(stat -c %%a%%F %s | tr -d ' ') = 700directory && test $(stat -c %%a %s) = 700 && test $(stat "
		"-c %%a-%%s %s) = 600-0",
		one.folder, one.channel_dir, one.result_file);
	assert_string_equal(one.result_file, kr_arena_printf(&p->arena, "%s/%s.json", item.results_dir, one.id));
	assert_string_equal(one.channel_dir, below(p, kr_arena_printf(&p->arena, "run/sn/%s", one.id)));
	assert_string_equal(one.folder, below(p, kr_arena_printf(&p->arena, "run/sessions/%s", one.id)));
	kr_item_close(&item);
}

/* FS-02: what a worker left in the home is neither followed nor changed. */
static void
links_below_the_run_directory_are_refused(void **state)
{
	struct place *p = *state;
	struct call c;
	struct kr_item item;
	struct kr_session_paths paths;
	struct kr_error err = { 0 };

	make_repo(p);
	c = call_for(p, "r");
	c.want.id = "x";
	sh(p, "mkdir -p victim run/sandbox-home/x && chmod 755 victim && cd run/sandbox-home/x && ln -s "
		  "../../../victim .cache &&"
		  " ln -s /etc/passwd .npmrc");
	item = open_item(p, &c);
	sh(p,
		"test -L run/sandbox-home/x/.cache && test $(stat -c %%a victim) = 755 && test -z \"$(ls victim)\"");
	kr_item_close(&item);
	for (unsigned i = 0; i < 2; i++) {
		const char *name = i ? "sandbox-home/x" : "results/x";

		sh(p, "mv run/%s kept && ln -s %s/victim run/%s", name, p->top, name);
		open_fails(p, &c);
		sh(p, "rm run/%s && mv kept run/%s && test -z \"$(ls victim)\"", name, name);
	}
	item = open_item(p, &c);
	sh(p, "ln -s %s/victim run/sn", p->top);
	assert_int_equal(kr_session_paths_make(&p->arena, &c.host, &item, NULL, &paths, &err), -1);
	sh(p, "rm run/sn && mv run/results/x kept && ln -s %s/victim run/results/x", p->top);
	assert_int_equal(kr_session_paths_make(&p->arena, &c.host, &item, NULL, &paths, &err), -1);
	assert_int_equal(err.code, KR_E_REFUSED);
	sh(p, "test -z \"$(ls victim)\"");
	kr_item_close(&item);
}

static void
the_mask_is_empty_at_each_use(void **state)
{
	struct place *p = *state;
	struct kr_host host = { .places.run_dir = below(p, "run") };
	static const char *const bad[] = {
		"echo x >empty",
		"mkdir empty",
		"ln -s /dev/null empty",
		"mkfifo empty",
		"ln -s absent empty",
	};

	umask(077);
	for (unsigned i = 0; i < 2; i++)
		assert_string_equal(kr_session_empty_file(&p->arena, &host, NULL), below(p, "run/empty"));
	umask(022);
	sh(p, "test $(stat -c %%a-%%s run/empty) = 444-0");
	for (size_t i = 0; i < KR_COUNT(bad); i++) {
		struct kr_error err = { 0 };

		sh(p, "cd run && rm -rf empty && %s", bad[i]);
		assert_null(kr_session_empty_file(&p->arena, &host, &err));
		assert_int_equal(err.code, KR_E_REFUSED);
	}
	sh(p, "rm run/empty");
	assert_non_null(kr_session_empty_file(&p->arena, &host, NULL));
}

/* ---- the record ---- */

static void
a_record_that_makes_no_sense_is_absent(void **state)
{
	struct place *p = *state;
	static const char *const bad[] = { "", "{", "[]", "null", "{\"version\":2}",
		"{\"version\":1,\"state\":\"ready\"}", "{\"version\":1,\"version\":1}",
		"{\"version\":1,\"state\":\"x\",\"checkout\":\"/r\",\"git_dir\":\"\","
		"\"git_common\":\"\",\"commit\":\"\",\"setup\":\"\"}",
		"{\"version\":1,\"state\":\"absent\",\"checkout\":\"/r\",\"git_dir\":\"\","
		"\"git_common\":\"\",\"commit\":\"\",\"setup\":\"\"}" };
	kr_auto_fd int dir = open(p->top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct kr_record record = { .state = KR_RECORD_MOVING,
		.checkout = "/a \"b\"\n",
		.git_dir = "/g",
		.git_common = "/c",
		.commit = "1234",
		.setup = "" },
					 back;

	assert_int_equal(kr_record_read(&p->arena, dir, "x", &back, NULL), 0);
	assert_int_equal(back.state, KR_RECORD_ABSENT);
	for (size_t i = 0; i < KR_COUNT(bad); i++) {
		assert_int_equal(kr_file_write_at(dir, "x.json", bad[i], strlen(bad[i]), 0600, NULL), 0);
		assert_int_equal(kr_record_read(&p->arena, dir, "x", &back, NULL), 0);
		assert_int_equal(back.state, KR_RECORD_ABSENT);
	}
	assert_int_equal(kr_record_write(dir, "x", &record, NULL), 0);
	assert_int_equal(kr_record_read(&p->arena, dir, "x", &back, NULL), 0);
	assert_int_equal(back.state, KR_RECORD_MOVING);
	assert_string_equal(back.checkout, record.checkout);
	assert_string_equal(back.commit, "1234");
	record.checkout = "/\xff";
	assert_int_equal(kr_record_write(dir, "x", &record, NULL), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		place_test(an_item_is_named_after_the_checkout),
		place_test(an_id_is_checked),
		place_test(an_item_is_made_once_and_then_ready),
		place_test(a_new_head_asks_for_a_move),
		place_test(a_move_that_did_not_end_is_made_again),
		place_test(locks_of_a_killed_move_are_removed),
		place_test(changes_are_taken_along_when_asked),
		place_test(setup_is_remembered_by_its_command),
		place_test(a_worktree_removed_by_hand_is_made_again),
		place_test(unknown_directories_are_put_aside),
		place_test(a_name_taken_over_in_the_repository_is_not_used),
		place_test(an_item_of_another_checkout_is_refused),
		place_test(a_checkout_without_a_commit_makes_nothing),
		place_test(sessions_share_and_changes_wait),
		place_test(who_prepares_is_waited_for_a_while),
		place_test(the_lock_survives_nothing),
		place_test(all_who_come_at_once_are_served),
		place_test(a_kill_at_any_moment_is_mended),
		place_test(a_lock_that_was_removed_is_not_taken),
		place_test(local_files_are_copied),
		place_test(local_files_do_not_lead_out),
		place_test(local_files_are_not_written_through_links),
		place_test(a_session_gets_places_of_its_own),
		place_test(links_below_the_run_directory_are_refused),
		place_test(the_mask_is_empty_at_each_use),
		place_test(a_record_that_makes_no_sense_is_absent),
	};

	return cmocka_run_group_tests_name("item", tests, NULL, NULL);
}
