/*
 * The private git directory of an item: opening it, its lock, its record, what stands in the way, its end.
 * How it is made is in private_make.c.
 *
 * The lock is an open-file-description lock: only this kind goes from exclusive to shared without a moment in
 * which somebody else can take it. Its file is removed with the item, so who got a lock looks whether the
 * file is still that one.
 *
 * The record lies beside the directory, where no worker can write, and is believed. In the directory nothing
 * is: it is looked at relative to a held descriptor, without following a link.
 */
#include "git/private.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/text.h"
#include "git/internal.h"

enum {
	RECORD_BYTES = 1 << 16,
	VERSION = 1,
	HEAD_BYTES = 4096,
	NAME_BYTES = 512,
	WAIT_MS = 10000, /* for another kraft that makes the directory, or takes commits out before it does */
	STEP_MS = 10,
};

static const char *
place_of(struct kr_arena *arena, const char *run_dir)
{
	return kr_arena_printf(arena, "%s/sandbox-git", run_dir);
}

const char *
kr_private_dir(struct kr_arena *arena, const char *run_dir, const char *item, unsigned tree)
{
	return kr_arena_printf(arena, "%s/%s-%u", place_of(arena, run_dir), item, tree);
}

/* The directory that holds the private ones. */
static int
open_place(struct kr_arena *arena, const struct kr_private *git, struct kr_error *err)
{
	return kr_path_open(kr_path_dirname(arena, git->dir), O_DIRECTORY | O_RDONLY, err);
}

/* ---- the lock ---- */

static int
open_lock(int place_fd, const char *name, struct kr_error *err)
{
	kr_auto_fd int fd = openat(place_fd, name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot open the lock '%s'", name);
	if (!S_ISREG(st.st_mode))
		return kr_fail(err, KR_E_REFUSED, "the lock '%s' is not a regular file", name);
	return kr_steal_fd(fd);
}

static bool
is_still_there(int place_fd, const char *name, int fd)
{
	struct stat held, there;

	return fstat(fd, &held) == 0 && fstatat(place_fd, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
		   held.st_ino == there.st_ino && held.st_dev == there.st_dev;
}

/* 1: got it; 0: somebody else has it; -1: error. *type: the better one first, where both would do. */
static int
lock_once(int place_fd, const char *name, bool may_share, bool *is_shared, int *out, struct kr_error *err)
{
	kr_auto_fd int fd = open_lock(place_fd, name, err);

	if (fd < 0)
		return -1;
	*is_shared = false;
	if (!kr_try_lock(fd, F_WRLCK)) {
		if (errno != EAGAIN && errno != EACCES)
			return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot lock '%s'", name);
		if (!may_share || !kr_try_lock(fd, F_RDLCK))
			return 0;
		*is_shared = true;
	}
	if (!is_still_there(place_fd, name, fd))
		return 0;
	*out = kr_steal_fd(fd);
	return 1;
}

static int
take_lock(
	struct kr_arena *arena, int place_fd, const char *item, struct kr_private *git, struct kr_error *err)
{
	const struct timespec step = { .tv_nsec = STEP_MS * 1000000L };
	const char *name = kr_arena_printf(arena, "%s.lock", kr_path_basename(git->dir));

	for (int waited = 0; waited <= WAIT_MS; waited += STEP_MS) {
		int got = lock_once(place_fd, name, true, &git->is_shared, &git->lock_fd, err);

		if (got)
			return got < 0 ? -1 : 0;
		(void)nanosleep(&step, NULL);
	}
	kr_fail(err, KR_E_BUSY, "another session is preparing the git directory of item '%s'", item);
	return kr_hint(err, "wait for it, or use an item of its own: --item NAME");
}

int
kr_private_share(struct kr_private *git, struct kr_error *err)
{
	if (!kr_try_lock(git->lock_fd, F_RDLCK))
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot share the lock of '%s'", git->dir);
	return 0;
}

/*
 * The lock's second byte stands for a command that has not ended. Each session lets its own go and then tries to have it
 * alone: all but the last one fail, and of two that end together only one can have it. It keeps others from beginning,
 * because they want all bytes.
 */
bool
kr_private_is_last(struct kr_private *git)
{
	struct flock byte = { .l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = 1 };

	if (fcntl(git->lock_fd, F_OFD_SETLK, &byte) < 0)
		return false;
	byte.l_type = F_WRLCK;
	return fcntl(git->lock_fd, F_OFD_SETLK, &byte) == 0;
}

/* What a make put aside. Nobody makes another one while a lock is held, shared or not. */
static void
drop_old(const struct kr_private *git)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	kr_auto_fd int place_fd = open_place(&arena, git, NULL);

	if (place_fd >= 0) /* if it stays, the next make says why */
		(void)kr_tree_remove_at(place_fd, kr_arena_printf(&arena, "%s.old", kr_path_basename(git->dir)));
}

void
kr_private_close(struct kr_private *git)
{
	if (git->lock_fd >= 0)
		drop_old(git);
	kr_close_p(&git->lock_fd);
}

/* ---- the record ---- */

static const struct field {
	const char *name;
	size_t offset;
} fields[] = {
	{ "checkout", offsetof(struct kr_private_record, checkout) },
	{ "common", offsetof(struct kr_private_record, common) },
	{ "worktree_git_dir", offsetof(struct kr_private_record, worktree_git_dir) },
	{ "branch", offsetof(struct kr_private_record, branch) },
};

static void
json_free_p(json_t **json)
{
	json_decref(*json);
}

static const char **
field_of(struct kr_private_record *record, const struct field *field)
{
	return (const char **)(void *)((char *)record + field->offset);
}

static bool
parse_oid(const json_t *json, const char *name, bool may_be_none, char oid[KR_OID_HEX_MAX + 1])
{
	const char *value = json_string_value(json_object_get(json, name));

	if (!value || !((may_be_none && !*value) || kr_oid_is_valid(value, strlen(value))))
		return false;
	memcpy(oid, value, strlen(value) + 1);
	return true;
}

static bool
parse(struct kr_arena *arena, const json_t *json, struct kr_private_record *out)
{
	struct kr_private_record record;

	if (json_integer_value(json_object_get(json, "version")) != VERSION ||
		!parse_oid(json, "start", false, record.start) || !parse_oid(json, "at", false, record.at) ||
		!parse_oid(json, "synced", true, record.synced))
		return false;
	for (size_t i = 0; i < KR_COUNT(fields); i++) {
		const char *value = json_string_value(json_object_get(json, fields[i].name));

		if (!value)
			return false;
		*field_of(&record, &fields[i]) = kr_arena_dup(arena, value);
	}
	if (!parse_oid(json, "noted", true, record.noted))
		record.noted[0] = '\0'; /* of a kraft that had none */
	record.is_in_repository = json_is_true(json_object_get(json, "in_repository"));
	*out = record;
	return true;
}

/* 1 read; 0 there is none, or a damaged one; -1 error. */
static int
read_record(struct kr_arena *arena, int place_fd, const char *name, struct kr_private_record *out,
	struct kr_error *err)
{
	KR_CLEANUP(json_free_p) json_t *json = NULL;
	kr_auto_buf struct kr_buf buf = KR_BUF(RECORD_BYTES);
	struct kr_error failed = { 0 };

	if (kr_file_read_at(place_fd, name, &buf, &failed) < 0) {
		if (failed.sys_errno == 0 || failed.sys_errno == ENOENT)
			return 0;
		if (err)
			*err = failed;
		return -1;
	}
	json = json_loadb(buf.data ? buf.data : "", buf.len, JSON_REJECT_DUPLICATES, NULL);
	return json && parse(arena, json, out);
}

int
kr_private_record_read(
	struct kr_arena *arena, const struct kr_private *git, struct kr_private_record *out, struct kr_error *err)
{
	kr_auto_fd int place_fd = open_place(arena, git, err);
	const char *name = kr_arena_printf(arena, "%s.json", kr_path_basename(git->dir));
	int found = place_fd < 0 ? -1 : read_record(arena, place_fd, name, out, err);

	if (found == 0)
		return kr_fail(err, KR_E_SYSTEM, "the record '%s.json' was lost while it was in use", git->dir);
	return found < 0 ? -1 : 0;
}

int
kr_private_record_write(const struct kr_private *git, struct kr_error *err)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	KR_CLEANUP(json_free_p) json_t *json = json_object();
	kr_auto_free char *text = NULL;
	kr_auto_fd int place_fd = open_place(&arena, git, err);
	struct kr_private_record copy = git->record;
	const char *name = kr_arena_printf(&arena, "%s.json", kr_path_basename(git->dir));

	/* It would not be read again. */
	KR_BUG_IF(!kr_oid_is_valid(copy.start, strlen(copy.start)) || !kr_oid_is_valid(copy.at, strlen(copy.at)));
	if (place_fd < 0)
		return -1;
	json_object_set_new(json, "version", json_integer(VERSION));
	for (size_t i = 0; i < KR_COUNT(fields); i++) {
		const char *value = *field_of(&copy, &fields[i]);

		if (!kr_text_is_utf8(value, strlen(value)))
			return kr_fail(err, KR_E_UNSUPPORTED, "'%s' is not UTF-8, so it cannot be recorded", value);
		json_object_set_new(json, fields[i].name, json_string(value));
	}
	json_object_set_new(json, "start", json_string(copy.start));
	json_object_set_new(json, "at", json_string(copy.at));
	json_object_set_new(json, "synced", json_string(copy.synced));
	json_object_set_new(json, "noted", json_string(copy.noted));
	if (copy.is_in_repository)
		json_object_set_new(json, "in_repository", json_true());
	text = json_dumps(json, JSON_INDENT(2));
	KR_BUG_IF(!text);
	return kr_file_write_at(place_fd, name, text, strlen(text), 0600, err);
}

/* ---- what is there ---- */

static int
find_objects(
	struct kr_arena *arena, const struct kr_checkout *checkout, struct kr_private *git, struct kr_error *err)
{
	const char *objects = kr_arena_printf(arena, "%s/objects", checkout->common);
	char resolved[KR_PATH_MAX];
	struct stat st;

	if (!realpath(objects, resolved) || stat(resolved, &st) < 0 || !S_ISDIR(st.st_mode))
		return kr_fail(err, KR_E_REFUSED, "the repository's objects '%s' are not a directory", objects);
	git->objects = kr_arena_dup(arena, resolved);
	if (kr_objects_borrowed(arena, git->objects, &git->borrowed, err) < 0)
		return -1;
	/* git-lfs takes what it lacks from <directory that holds an alternate>/lfs; a link there leads nowhere
	 * inside. */
	git->lfs = kr_arena_printf(arena, "%s/lfs", kr_path_dirname(arena, git->objects));
	if (lstat(git->lfs, &st) < 0 || !S_ISDIR(st.st_mode))
		git->lfs = NULL;
	return 0;
}

static bool
is_whole(struct kr_arena *arena, int place_fd, const char *name, const struct kr_private *git)
{
	kr_auto_buf struct kr_buf buf = KR_BUF((size_t)2 * KR_PATH_MAX);
	const char *git_file = kr_arena_printf(arena, "%s.gitfile", name);
	struct stat st;

	return fstatat(place_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
		   kr_file_read_at(place_fd, git_file, &buf, NULL) == 0 && buf.len &&
		   strcmp(buf.data, kr_arena_printf(arena, "gitdir: %s\n", git->dir)) == 0;
}

/* A worktree that was made anew may have another git directory than the one it had when this was made. */
static int
follow_worktree(struct kr_private *git, const char *worktree_git_dir, struct kr_error *err)
{
	if (strcmp(git->record.worktree_git_dir, worktree_git_dir) == 0)
		return 0;
	git->record.worktree_git_dir = worktree_git_dir;
	return git->is_made ? kr_private_record_write(git, err) : 0;
}

const char *
kr_private_git_dir(const struct kr_private *git)
{
	return git->record.is_in_repository ? git->record.worktree_git_dir : git->dir;
}

/* An item that has had the one kind of git has commits there that are not looked for in the other. */
static int
check_kind(int place_fd, const char *item, bool is_in_repository, const struct kr_private *git, struct kr_error *err)
{
	struct stat st;

	if (!is_in_repository || fstatat(place_fd, kr_path_basename(git->dir), &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	kr_fail(err, KR_E_REFUSED, "item '%s' has a git directory of its own, from sessions in a container", item);
	return kr_hint(err, "choose another name for this one with --item NAME, or begin anew: 'kraft item remove %s'", item);
}

/* Does: the state under the lock. A record of another repository is somebody's work that must not be taken
 * for ours. */
static int
settle(struct kr_arena *arena, int place_fd, const char *item, const struct kr_checkout *checkout,
	const char *worktree_git_dir, bool is_in_repository, struct kr_private *git, struct kr_error *err)
{
	const char *name = kr_path_basename(git->dir);
	int found = read_record(arena, place_fd, kr_arena_printf(arena, "%s.json", name), &git->record, err);

	if (found < 0 || check_kind(place_fd, item, is_in_repository, git, err) < 0)
		return -1;
	git->is_made = found && git->record.is_in_repository == is_in_repository &&
				   (is_in_repository || is_whole(arena, place_fd, name, git));
	git->record.is_in_repository = is_in_repository;
	if (git->is_made && strcmp(git->record.common, checkout->common) != 0) {
		kr_fail(err, KR_E_REFUSED, "item '%s' belongs to the repository '%s'", item, git->record.common);
		return kr_hint(err, "choose another name for this one: --item NAME");
	}
	if (git->is_shared && !git->is_made)
		return kr_fail(
			err, KR_E_BUSY, "another session runs in item '%s', and its git directory is gone", item);
	return git->is_shared ? 0 : follow_worktree(git, worktree_git_dir, err);
}

int
kr_private_name(struct kr_arena *arena, const char *run_dir, const char *item, unsigned tree,
	const struct kr_checkout *checkout, struct kr_private *out, struct kr_error *err)
{
	const char *dir = kr_private_dir(arena, run_dir, item, tree);
	struct kr_private git = {
		.dir = dir,
		.git_file = kr_arena_printf(arena, "%s.gitfile", dir),
		.record = { .checkout = checkout->root,
			.common = checkout->common,
			.worktree_git_dir = "",
			.branch = "" },
		.lock_fd = -1,
	};

	if (find_objects(arena, checkout, &git, err) < 0)
		return -1;
	*out = git;
	return 0;
}

int
kr_private_open_as(struct kr_arena *arena, const char *run_dir, const char *item, unsigned tree,
	const struct kr_checkout *checkout, const char *worktree_git_dir, bool is_in_repository,
	struct kr_private *out, struct kr_error *err)
{
	struct kr_private git;
	kr_auto_fd int place_fd = -1;

	if (kr_private_name(arena, run_dir, item, tree, checkout, &git, err) < 0)
		return -1;
	place_fd = kr_path_make_dirs(place_of(arena, run_dir), err);
	if (place_fd < 0 || take_lock(arena, place_fd, item, &git, err) < 0)
		return -1;
	if (settle(arena, place_fd, item, checkout, worktree_git_dir, is_in_repository, &git, err) < 0) {
		kr_private_close(&git);
		return -1;
	}
	*out = git;
	return 0;
}

int
kr_private_open(struct kr_arena *arena, const char *run_dir, const char *item, unsigned tree,
	const struct kr_checkout *checkout, const char *worktree_git_dir, struct kr_private *out,
	struct kr_error *err)
{
	return kr_private_open_as(arena, run_dir, item, tree, checkout, worktree_git_dir, false, out, err);
}

/* ---- what stands in the way ---- */

static const struct {
	const char *name, *phrase;
} operations[] = {
	{ "rebase-merge", "a rebase is in progress" },
	{ "rebase-apply", "a rebase or 'git am' is in progress" },
	{ "MERGE_HEAD", "a merge is in progress" },
	{ "MERGE_AUTOSTASH", "changes that a merge put aside are not back" },
	{ "CHERRY_PICK_HEAD", "a cherry-pick is in progress" },
	{ "REVERT_HEAD", "a revert is in progress" },
	{ "BISECT_LOG", "a bisect is in progress" },
	{ "sequencer", "a series of cherry-picks or reverts is in progress" },
};

static const char *
shown(struct kr_arena *arena, const char *text, size_t n)
{
	char escaped[256];

	kr_text_escape(escaped, sizeof(escaped), text, n);
	return kr_arena_dup(arena, escaped);
}

/* NULL when HEAD is on the branch, else what it is. */
static const char *
judge_head(struct kr_arena *arena, const struct kr_buf *head, const char *branch)
{
	const char *prefix = "ref: refs/heads/";
	size_t n = head->len - (head->len && head->data[head->len - 1] == '\n'), skip = strlen(prefix);

	if (kr_oid_is_valid(head->data ? head->data : "", n))
		return kr_arena_printf(arena, "HEAD is detached at %.12s, not on branch '%s'", head->data, branch);
	if (n <= skip || memcmp(head->data, prefix, skip) != 0)
		return kr_arena_printf(arena, "HEAD names no branch, but should name '%s'", branch);
	if (n - skip == strlen(branch) && memcmp(head->data + skip, branch, n - skip) == 0)
		return NULL;
	return kr_arena_printf(
		arena, "HEAD is on branch '%s', not on '%s'", shown(arena, head->data + skip, n - skip), branch);
}

/* NULL when it is where it should be. */
static const char *
look_at_head(struct kr_arena *arena, int dir_fd, const char *branch)
{
	kr_auto_buf struct kr_buf head = KR_BUF(HEAD_BYTES);
	kr_auto_fd int fd = kr_path_open_below(dir_fd, "HEAD", O_RDONLY | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || kr_read_all(fd, &head, "HEAD", NULL) < 0)
		return "HEAD is no file that can be read";
	return judge_head(arena, &head, branch);
}

int
kr_private_obstacles(
	struct kr_arena *arena, const struct kr_private *git, struct kr_strs *out, struct kr_error *err)
{
	kr_auto_fd int dir_fd = kr_path_open(kr_private_git_dir(git), O_RDONLY | O_DIRECTORY, err);
	const char *head;
	struct stat st;

	if (dir_fd < 0)
		return -1;
	for (size_t i = 0; i < KR_COUNT(operations); i++)
		if (fstatat(dir_fd, operations[i].name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			kr_strs_add(arena, out, operations[i].phrase);
	head = look_at_head(arena, dir_fd, git->record.branch);
	if (head)
		kr_strs_add(arena, out, head);
	return 0;
}

/* ---- the mark ---- */

static const char *
mark_of(struct kr_arena *arena, const struct kr_private *git)
{
	return kr_arena_printf(arena, "%s.clean", git->dir);
}

bool
kr_private_is_clean(const struct kr_private *git)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	struct stat st;

	return lstat(mark_of(&arena, git), &st) == 0;
}

/* Without it the next start looks, and that is all. */
void
kr_private_mark_clean(const struct kr_private *git)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	int fd = open(mark_of(&arena, git), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	kr_close_p(&fd);
}

int
kr_private_unmark_clean(const struct kr_private *git, struct kr_error *err)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const char *mark = mark_of(&arena, git);

	if (unlink(mark) == 0 || errno == ENOENT)
		return 0;
	return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot remove '%s'", mark);
}

/* ---- the end ---- */

static int
remove_all(int place_fd, const char *name, struct kr_error *err)
{
	/* The record before the rest: without it what is left is no directory of an item's any more. The lock last. */
	static const char *const suffixes[] = { ".clean", ".json", ".gitfile", "", ".new", ".old", ".index", ".publish", ".lock" };
	char entry[NAME_BYTES];

	for (size_t i = 0; i < KR_COUNT(suffixes); i++) {
		snprintf(entry, sizeof(entry), "%s%s", name, suffixes[i]);
		if (kr_tree_remove_at(place_fd, entry) < 0)
			return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot remove '%s'", entry);
	}
	return 0;
}

int
kr_private_remove(const char *run_dir, const char *item, unsigned tree, struct kr_error *err)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	kr_auto_fd int place_fd = kr_path_open(place_of(&arena, run_dir), O_DIRECTORY | O_RDONLY, NULL),
				   lock_fd = -1, publish_fd = -1;
	const char *name = kr_path_basename(kr_private_dir(&arena, run_dir, item, tree));
	bool is_shared;
	int got;

	if (place_fd < 0)
		return 0; /* no item ever had one */
	if (strlen(name) + sizeof(".publish") > NAME_BYTES)
		return kr_fail(err, KR_E_LIMIT, "the name '%s' is too long", item);
	got = lock_once(place_fd, kr_arena_printf(&arena, "%s.lock", name), false, &is_shared, &lock_fd, err);
	if (got == 1)
		got = lock_once(
			place_fd, kr_arena_printf(&arena, "%s.publish", name), false, &is_shared, &publish_fd, err);
	if (got == 0) {
		kr_fail(err, KR_E_BUSY, "a session uses the git directory of item '%s'", item);
		return kr_hint(err, "wait for its end");
	}
	return got < 0 ? -1 : remove_all(place_fd, name, err);
}
