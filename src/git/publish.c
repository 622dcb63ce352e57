/*
 * A worker's commits on their way into the person's repository.
 *
 * What comes from the worker: one object id, read as data, and one pack. Everything is judged by git on the
 * host with the repository's own git directory, where no worker can write:
 *
 *   index-pack --strict  every object of the pack is well-formed, and what it names is there
 *   cat-file, rev-list   the tip is a commit, and all of its history is there
 *   rename               the pack comes from a directory of its own (the quarantine, as for a push) into the
 * repository for-each-ref, worktree list   the branch is an ordinary one, and nobody else has it checked out
 *   read-tree            an index for the linked worktree, made beside the one it has
 *   update-ref           the branch moves if it still is what kraft brought it to
 *   symbolic-ref, rename the linked worktree stands there
 *   the record           last, so that whatever was cut off before is done again
 *
 * Each step is harmless when it is done twice, and done again it gives the same. So the only question after a
 * kill is whether the record is behind; then the branch of the private directory still differs from it, and
 * the next start takes the commits out once more. The runs that change a ref are not killed with us: a lock
 * file that they leave behind would stand in everybody's way.
 *
 * What cannot move is kept: at refs/kraft/unsynced/<branch>, or beside it when something else is there.
 * Nothing that a worker does moves another ref.
 *
 * An item that works in the repository itself (git/shared.h) has no private directory: its branch has moved already, and is
 * judged here by the same steps, without those that move something. What it made are loose objects, which git does not hold
 * against their names when it reads them. So git on the host packs them, index-pack gives each the name that its bytes have,
 * and once more nothing may be left over to pack: then all that the branch brought is in packs, where no worker writes, and git
 * looks there first.
 *
 * Must not: run git in the private directory; open a file of the worktree (read-tree -i looks at none, and
 * the worktree is not even named to it); believe a count or a size that the pack claims.
 */
#include "git/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/portable.h"
#include "base/text.h"
#include "git/internal.h"
#include "os/sys.h"

#define PACK_BYTES_MAX 8589934592 /* 8 GiB, as index-pack is told too */
#define PACK_BYTES_WORDS "8589934592"
#define MEMORY_BYTES ((uint64_t)4 << 30)
#define INDEX_MEMORY_BYTES \
	((uint64_t)2 << 30) /* some 20 million entries; ten small trees can describe 10^10 */
#define HEADS "refs/heads/"
#define UNSYNCED "refs/kraft/unsynced/"
#define REFLOG "kraft: sandboxed session"

enum {
	CPU_S = 1200,
	WALL_S = 3600,
	INDEX_CPU_S = 60,
	ANSWER_BYTES = 4096,
	WORKTREES_BYTES = 16 << 20, /* what git says of all of them */
	HEAD_BYTES = 4096,
	PACK_HEADER = 12, /* "PACK", version, number of objects */
	OID_SHORT = 12,
};

/* ---- git, and what its failures mean ---- */

struct kr_git_where
kr_publish_where(const char *git_dir)
{
	return (struct kr_git_where){
		.git_dir = git_dir,
		.work_dir_fd = -1,
		.memory_bytes = MEMORY_BYTES,
		.cpu_s = CPU_S,
		.wall_s = WALL_S,
	};
}

/* One answer, without the newline at its end; NULL on failure. */
static const char *
ask(struct kr_arena *arena, const struct kr_git_where *where, const char *const argv[], size_t max,
	struct kr_error *err)
{
	kr_auto_buf struct kr_buf out = KR_BUF(max);

	if (kr_git_run(where, argv, &out, err) < 0)
		return NULL;
	while (out.len && out.data[out.len - 1] == '\n')
		out.len--;
	return kr_arena_dup_n(arena, out.len ? out.data : "", out.len);
}

/* Changes a ref: not killed with us. */
static int
run_ref(const char *git_dir, const char *const argv[], struct kr_error *err)
{
	struct kr_git_where where = kr_publish_where(git_dir);

	where.lives_on = true;
	return kr_git_run(&where, argv, NULL, err);
}

/*
 * Whether it may go well another time although the worker's bytes stay the same. git gives the reason in
 * words only; LC_ALL is C. (Out of memory is not here: the limit is ours, and the bytes are what meets it.)
 */
bool
kr_publish_is_systems(const struct kr_error *err)
{
	static const char *const words[] = {
		"No space left on device",
		"Disk quota exceeded",
		"Read-only file system",
		"Input/output error",
		"Too many open files",
		"Resource temporarily unavailable",
		"was ended by signal 9",
		"was ended by signal 15",
		"was ended: it took too long",
	};

	if (err->code != KR_E_GIT)
		return err->code != KR_E_REFUSED && err->code != KR_E_LIMIT;
	for (size_t i = 0; i < KR_COUNT(words); i++)
		if (strstr(err->message, words[i]))
			return true;
	return false;
}

static int
pass_on(const struct kr_error *why, struct kr_error *err)
{
	if (err)
		*err = *why;
	return -1;
}

/* ---- 1: look ---- */

/* An open-file-description lock, as all of an item's. */
int
kr_publish_lock(struct kr_arena *arena, const struct kr_private *git, struct kr_error *err)
{
	const char *path = kr_arena_printf(arena, "%s.publish", git->dir);
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	kr_auto_fd int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

	if (fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot open '%s'", path);
	while (fcntl(fd, F_OFD_SETLKW, &lock) < 0)
		if (errno != EINTR)
			return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot lock '%s'", path);
	return kr_steal_fd(fd);
}

/* What the branch of the private directory was when there was nothing to take out. */
static const char *
base_of(const struct kr_private_record *record)
{
	return record->at;
}

int
kr_publish_look(struct kr_arena *arena, struct kr_private *git, char tip[KR_OID_HEX_MAX + 1], int *lock_fd,
	struct kr_error *err)
{
	kr_auto_fd int lock = -1, dir = -1;
	char found[KR_OID_HEX_MAX + 1] = "";
	int there;

	*lock_fd = -1;
	if (!git->is_made)
		return 0;
	lock = kr_publish_lock(arena, git, err);
	if (lock < 0 || kr_private_record_read(arena, git, &git->record, err) < 0)
		return -1;
	dir = kr_path_open(git->dir, O_RDONLY | O_DIRECTORY, err);
	there = dir < 0 ? -1 : kr_ref_read_hostile(dir, git->record.branch, found, err);
	if (there < 0)
		return kr_wrap(err, "cannot read what is in '%s'", git->dir);
	if (there == 0 || strcmp(found, base_of(&git->record)) == 0)
		return 0;
	memcpy(tip, found, sizeof(found));
	*lock_fd = kr_steal_fd(lock);
	return 1;
}

/* ---- 2: export ---- */

/*
 * --local leaves out what the alternates have, so that only what the worker made comes, also when it merged
 * other branches; --thin lets the pack name a base that it does not hold, which index-pack puts in.
 */
const char *const *
kr_publish_export(
	struct kr_arena *arena, const struct kr_private *git, const char *tip, const char **stdin_text)
{
	const struct kr_private_record *record = &git->record;
	const bool has_synced = record->synced[0] && strcmp(record->synced, record->start) != 0;
	struct kr_strs words = { 0 };

	kr_strs_add(arena, &words, "git");
	kr_strs_add(arena, &words, kr_arena_printf(arena, "--git-dir=%s", git->dir));
	for (const char *const *word = (const char *const[]){ "pack-objects", "--revs", "--stdout", "--local",
			 "--thin", "--delta-base-offset", "-q", NULL };
		 *word; word++)
		kr_strs_add(arena, &words, *word);
	*stdin_text = kr_arena_printf(arena, "%s\n^%s\n%s%s%s", tip, record->start, has_synced ? "^" : "",
		has_synced ? record->synced : "", has_synced ? "\n" : "");
	return (const char *const *)words.v;
}

/* ---- 3: take: the objects ---- */

struct take {
	struct kr_arena *arena;
	const struct kr_private_record *record;
	const char *directory; /* the private one */
	const char *tip, *ref; /* ref: "refs/heads/<branch>" */
	int pack_fd;
	bool has_no_index; /* none can be made of the tip */
};

static int
check_tip(const struct take *t, struct kr_error *err)
{
	size_t n = strlen(t->tip);

	if (kr_oid_is_valid(t->tip, n) && n == strlen(t->record->start))
		return 0;
	return kr_fail(err, KR_E_REFUSED, "the branch's value in the sandbox is no object id of this repository");
}

/*
 * A directory of objects that borrows the repository's, below them so that a rename brings a pack over. The
 * name is one that git's own `prune` clears away; the next take of this directory does it sooner. A refused
 * pack never was in the repository, and neither was the half of one that index-pack leaves.
 */
struct quarantine {
	int objects_fd; /* the repository's; -1: there is no pack, and nothing to keep apart */
	const char *name, *env[3];
};

/* As git reads it: in quotes a colon is part of the path. */
static const char *
quoted(struct kr_arena *arena, const char *path)
{
	char *out = kr_arena_alloc(arena, 2 * strlen(path) + 3), *p = out;

	*p++ = '"';
	for (; *path; path++) {
		if (*path == '"' || *path == '\\')
			*p++ = '\\';
		*p++ = *path;
	}
	*p = '"';
	return out;
}

static void
quarantine_end(struct quarantine *q)
{
	if (q->objects_fd < 0)
		return;
	(void)kr_tree_remove_at(q->objects_fd, q->name); /* what stays, prune takes */
	kr_close_p(&q->objects_fd);
}

static int
quarantine_begin(const struct take *t, struct quarantine *q, struct kr_error *err)
{
	const char *objects = kr_arena_printf(t->arena, "%s/objects", t->record->common);

	q->objects_fd = open(objects, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (q->objects_fd < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot open '%s'", objects);
	q->name = kr_arena_printf(t->arena, "tmp_objdir-kraft-%s", kr_path_basename(t->directory));
	q->env[0] = kr_arena_printf(t->arena, "GIT_OBJECT_DIRECTORY=%s/%s", objects, q->name);
	q->env[1] = kr_arena_printf(t->arena, "GIT_ALTERNATE_OBJECT_DIRECTORIES=%s", quoted(t->arena, objects));
	q->env[2] = NULL;
	if (kr_tree_remove_at(q->objects_fd, q->name) < 0 || mkdirat(q->objects_fd, q->name, 0700) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make '%s/%s'", objects, q->name);
	KR_FAULT(quarantine_made);
	return 0;
}

/* The index last: with it the pack is there. A pack of this name has these bytes, so one that is there is
 * replaced by itself. */
static int
quarantine_release(const struct take *t, const struct quarantine *q, const char *pack, struct kr_error *err)
{
	static const char *const ends[] = { "pack", "rev", "idx" };

	if (mkdirat(q->objects_fd, "pack", 0777) < 0 && errno != EEXIST)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make the directory 'pack' for objects");
	for (size_t i = 0; i < KR_COUNT(ends); i++) {
		const char *to = kr_arena_printf(t->arena, "pack/pack-%s.%s", pack, ends[i]);
		const char *from = kr_arena_printf(t->arena, "%s/%s", q->name, to);

		if (renameat(q->objects_fd, from, q->objects_fd, to) < 0 && !(errno == ENOENT && i == 1))
			return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot rename '%s'", from);
	}
	return 0;
}

/* 1: there is a pack to index; 0: no byte (the export failed, or was not needed), or a pack of no objects. */
static int
look_at_pack(int fd, struct kr_error *err)
{
	unsigned char header[PACK_HEADER];
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0 || (n = pread(fd, header, sizeof(header), 0)) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot read the pack from the sandbox");
	KR_BUG_IF(!S_ISREG(st.st_mode));
	if (st.st_size > PACK_BYTES_MAX)
		return kr_fail(err, KR_E_REFUSED, "the commits are a pack of more than 8 GiB");
	return n > 0 &&
		   !(n == PACK_HEADER && memcmp(header, "PACK", 4) == 0 && memcmp(header + 8, "\0\0\0\0", 4) == 0);
}

/* The pack's name; NULL on failure. */
static const char *
index_pack(const struct take *t, const struct quarantine *q, struct kr_error *err)
{
	static const char *const argv[] = { "index-pack", "--stdin", "--strict", "--fix-thin",
		"--max-input-size=" PACK_BYTES_WORDS, NULL };
	struct kr_git_where where = kr_publish_where(t->record->common);
	const char *said;

	where.stdin_fd = t->pack_fd;
	where.extra_env = q->env;
	said = ask(t->arena, &where, argv, ANSWER_BYTES, err);
	if (!said)
		return NULL;
	if (!kr_text_has_prefix(said, "pack\t") || !kr_oid_is_valid(said + 5, strlen(said + 5))) {
		kr_fail(err, KR_E_GIT, "git index-pack did not name the pack");
		return NULL;
	}
	return said + 5;
}

static int
check_commit(const struct take *t, const struct quarantine *q, struct kr_error *err)
{
	const char *const argv[] = { "cat-file", "-t", t->tip, NULL };
	struct kr_git_where where = kr_publish_where(t->record->common);
	const char *type;

	where.extra_env = q->env;
	type = ask(t->arena, &where, argv, ANSWER_BYTES, err);
	if (!type)
		return -1;
	if (strcmp(type, "commit") != 0)
		return kr_fail(err, KR_E_REFUSED, "the branch in the sandbox is at a %s, not at a commit", type);
	return 0;
}

/* In the repository the branch itself is one of all refs, and other items' branches are other workers' words. */
static int
check_connected(const struct take *t, const struct quarantine *q, struct kr_error *err)
{
	const struct kr_private_record *record = t->record;
	const char *const argv[] = { "rev-list", "--objects", "--quiet", t->tip, "--not", "--all", NULL };
	const char *const here[] = { "rev-list", "--objects", "--quiet", t->tip, "--not", record->start, record->at, NULL };
	struct kr_git_where where = kr_publish_where(record->common);

	where.extra_env = q->env;
	return kr_git_run(&where, record->is_in_repository ? here : argv, NULL, err);
}

/* Takes the stream. What is reachable from tip and in no pack yet; env: where else objects are, NULL: nowhere. */
static int
pack_unpacked(const struct take *t, const char *const *env, int (*sink)(void *context, const char *bytes, size_t n),
	void *context, struct kr_error *err)
{
	static const char *const argv[] = { "pack-objects", "--revs", "--incremental", "--stdout",
		"--delta-base-offset", "-q", NULL };
	const char *text = kr_arena_printf(t->arena, "%s\n^%s\n^%s\n", t->tip, t->record->start, t->record->at);
	kr_auto_fd int in = kr_memory_file("kraft-revisions", text, strlen(text), err);
	struct kr_git_where where = kr_publish_where(t->record->common);
	struct kr_git_run run = { 0 };

	where.stdin_fd = in;
	where.extra_env = env;
	if (in < 0 || kr_git_start(&where, argv, &run, err) < 0)
		return -1;
	run.sink = sink;
	run.sink_context = context;
	return kr_git_finish(&run, NULL, err);
}

struct head {
	unsigned char bytes[PACK_HEADER];
	size_t n;
};

static int
take_head(void *context, const char *bytes, size_t n)
{
	struct head *head = context;

	for (size_t i = 0; i < n && head->n < sizeof(head->bytes); i++)
		head->bytes[head->n++] = (unsigned char)bytes[i];
	return 0;
}

/* A loose object whose bytes are another object's came in under that other name: it itself is still in no pack. */
static int
check_all_packed(const struct take *t, const struct quarantine *q, struct kr_error *err)
{
	struct head head = { .n = 0 };

	if (!t->record->is_in_repository)
		return 0;
	if (pack_unpacked(t, q->env, take_head, &head, err) < 0)
		return -1;
	if (head.n == PACK_HEADER && memcmp(head.bytes, "PACK", 4) == 0 && memcmp(head.bytes + 8, "\0\0\0\0", 4) == 0)
		return 0;
	return kr_fail(err, KR_E_REFUSED, "an object of its is not what its name says");
}

static int
judge_and_take(const struct take *t, struct quarantine *q, struct kr_error *err)
{
	int has_pack = look_at_pack(t->pack_fd, err);
	const char *pack = NULL;

	if (has_pack < 0)
		return -1;
	if (has_pack) {
		pack = quarantine_begin(t, q, err) < 0 ? NULL : index_pack(t, q, err);
		if (!pack)
			return -1;
	}
	KR_FAULT(pack_indexed);
	if (check_commit(t, q, err) < 0 || check_connected(t, q, err) < 0 || check_all_packed(t, q, err) < 0)
		return -1;
	return pack ? quarantine_release(t, q, pack, err) : 0;
}

static int
take_objects(const struct take *t, struct kr_error *err)
{
	struct quarantine q = { .objects_fd = -1 };
	int result = check_tip(t, err) < 0 ? -1 : judge_and_take(t, &q, err);

	KR_FAULT(pack_taken);
	quarantine_end(&q);
	return result < 0 ? kr_wrap(err, "the commits of the sandbox were not taken") : 0;
}

/* ---- the linked worktree ---- */

/*
 * A file beside the worktree's index, made from it: entries that the commit has too keep what git knows of
 * their files, so that the next `git status` does not read them all.
 */
struct new_index {
	const char *git_dir, *path, *old;
};

static struct new_index
new_index_of(struct kr_arena *arena, const char *git_dir)
{
	return (struct new_index){
		.git_dir = git_dir,
		.path = kr_arena_printf(arena, "%s/kraft-index", git_dir),
		.old = kr_arena_printf(arena, "%s/index", git_dir),
	};
}

static void
drop_index(struct kr_arena *arena, const struct new_index *index)
{
	(void)unlink(index->path); /* mostly not there */
	(void)unlink(kr_arena_printf(arena, "%s.lock", index->path));
}

/* -i: no look at a file. */
static int
read_tree(const struct new_index *index, const char *oid, struct kr_error *err)
{
	const char *const argv[] = { "read-tree", "-i", "--reset", oid, NULL };
	struct kr_git_where where = kr_publish_where(index->git_dir);

	where.index_file = index->path;
	where.memory_bytes = INDEX_MEMORY_BYTES;
	where.cpu_s = INDEX_CPU_S;
	return kr_git_run(&where, argv, NULL, err);
}

/* git takes an entry that is as young as its index for one that may have changed since: the new index must
 * not look younger than what it knows. */
static int
keep_time(const struct new_index *index, const struct stat *old, struct kr_error *err)
{
	if (utimensat(AT_FDCWD, index->path, (const struct timespec[]){ kr_atime(old), kr_mtime(old) }, 0) == 0)
		return 0;
	return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot set the time of '%s'", index->path);
}

/* A tree that is too much for one run is too much for another. */
static bool
is_too_much(const struct kr_error *err)
{
	return strstr(err->message, "was ended by signal") || strstr(err->message, "Out of memory");
}

/* git replaces an index and never writes into one, so a link is a copy. Without one, or when git cannot use
 * the old one, the new one begins empty: correct too, only slower for whoever comes next. */
static int
make_index(struct kr_arena *arena, const struct new_index *index, const char *oid, struct kr_error *err)
{
	struct kr_error why = { 0 };
	struct stat old;

	drop_index(arena, index);
	if (lstat(index->old, &old) == 0 && S_ISREG(old.st_mode) && link(index->old, index->path) == 0) {
		if (read_tree(index, oid, &why) == 0)
			return keep_time(index, &old, err);
		drop_index(arena, index);
		if (is_too_much(&why))
			return pass_on(&why, err);
	}
	return read_tree(index, oid, err);
}

static bool
head_says(struct kr_arena *arena, const char *git_dir, const char *text)
{
	kr_auto_buf struct kr_buf buf = KR_BUF(HEAD_BYTES);

	return kr_file_read_at(AT_FDCWD, kr_arena_printf(arena, "%s/HEAD", git_dir), &buf, NULL) == 0 &&
		   buf.len && strcmp(buf.data, text) == 0;
}

static int
place_head(
	struct kr_arena *arena, const char *git_dir, const char *oid, const char *branch, struct kr_error *err)
{
	const char *ref = branch ? kr_arena_printf(arena, HEADS "%s", branch) : NULL;
	const char *const attach[] = { "symbolic-ref", "-m", REFLOG, "HEAD", ref, NULL };
	const char *const detach[] = { "update-ref", "--no-deref", "-m", REFLOG, "HEAD", oid, NULL };

	if (head_says(arena, git_dir, kr_arena_printf(arena, ref ? "ref: %s\n" : "%s\n", ref ? ref : oid)))
		return 0;
	return run_ref(git_dir, ref ? attach : detach, err);
}

static int
place_index(const struct new_index *index, struct kr_error *err)
{
	if (rename(index->path, index->old) < 0)
		return kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot rename '%s'", index->path);
	return 0;
}

int
kr_worktree_stands_at(const char *git_dir, const char *oid, const char *branch, struct kr_error *err)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const struct new_index index = new_index_of(&arena, git_dir);

	if (make_index(&arena, &index, oid, err) < 0 || place_head(&arena, git_dir, oid, branch, err) < 0 ||
		place_index(&index, err) < 0)
		return kr_wrap(err, "cannot bring the worktree of '%s' to '%s'", git_dir, oid);
	return 0;
}

/* A worktree that the person removed meanwhile needs no index. */
static bool
has_worktree(const struct take *t)
{
	struct stat st;

	return t->record->worktree_git_dir &&
		   lstat(kr_arena_printf(t->arena, "%s/HEAD", t->record->worktree_git_dir), &st) == 0;
}

/* ---- take: the branch ---- */

/* The branch's value in the repository, "" when it has none. A symbolic one is nobody's to move. */
static int
read_branch(const struct take *t, const char **value, struct kr_error *err)
{
	const char *const argv[] = { "for-each-ref", "--count=1", "--format=%(refname) %(objectname) %(symref)",
		"--", t->ref, NULL };
	const struct kr_git_where where = kr_publish_where(t->record->common);
	const char *line = ask(t->arena, &where, argv, ANSWER_BYTES, err), *space;
	size_t n = strlen(t->ref);

	if (!line)
		return -1;
	*value = "";
	if (strncmp(line, t->ref, n) != 0 || line[n] != ' ')
		return 0; /* nothing, or a branch below */
	line += n + 1;
	space = strchr(line, ' ');
	if (!space || space[1])
		return kr_fail(err, KR_E_REFUSED, "it is a symbolic ref in the repository%s%s", space ? ", to " : "",
			space ? space + 1 : "");
	*value = kr_arena_dup_n(t->arena, line, (size_t)(space - line));
	return 0;
}

/* The path that this worktree's git directory gives for it; "" when it does not say. */
static const char *
own_path(const struct take *t)
{
	kr_auto_buf struct kr_buf buf = KR_BUF(KR_PATH_MAX);
	const char *file = kr_arena_printf(t->arena, "%s/gitdir", t->record->worktree_git_dir);
	size_t end = strlen("/.git\n");

	if (kr_file_read_at(AT_FDCWD, file, &buf, NULL) < 0 || buf.len <= end)
		return "";
	return kr_arena_dup_n(t->arena, buf.data, buf.len - end);
}

/* Another worktree's index and files would not follow the branch. */
static int
check_nobody_has_it(const struct take *t, struct kr_error *err)
{
	static const char *const argv[] = { "worktree", "list", "--porcelain", NULL };
	const struct kr_git_where where = kr_publish_where(t->record->common);
	const char *text = ask(t->arena, &where, argv, WORKTREES_BYTES, err), *place = "";
	const char *own = has_worktree(t) ? own_path(t) : "";

	if (!text)
		return -1;
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *words = kr_arena_dup_n(t->arena, line, strcspn(line, "\n"));

		if (kr_text_has_prefix(words, "worktree "))
			place = words + strlen("worktree ");
		else if (kr_text_has_prefix(words, "branch ") && strcmp(words + strlen("branch "), t->ref) == 0 &&
				 strcmp(place, own) != 0)
			return kr_fail(err, KR_E_REFUSED, "it is checked out in '%s'", place);
	}
	return 0;
}

static const char *
zeros(const struct take *t)
{
	return kr_arena_printf(t->arena, "%0*d", (int)strlen(t->tip), 0);
}

/* --no-deref: a symbolic ref that came meanwhile is not followed to another branch. */
static int
compare_and_swap(const struct take *t, struct kr_error *err)
{
	const char *old = t->record->synced[0] ? t->record->synced : zeros(t);
	const char *const argv[] = { "update-ref", "-m", REFLOG, "--no-deref", t->ref, t->tip, old, NULL };
	const char *now;

	if (run_ref(t->record->common, argv, err) == 0)
		return 0;
	/* The same by a run whose kraft was killed is as good. */
	return read_branch(t, &now, NULL) == 0 && strcmp(now, t->tip) == 0 ? 0 : -1;
}

static int
move_branch(struct take *t, struct kr_error *err)
{
	const bool has_tree = has_worktree(t);
	const struct new_index index = new_index_of(t->arena, has_tree ? t->record->worktree_git_dir : "");
	const char *now = "";

	if (read_branch(t, &now, err) < 0)
		return -1;
	if (strcmp(now, t->tip) != 0) {
		if (strcmp(now, t->record->synced) != 0)
			return kr_fail(err, KR_E_REFUSED, "it was %s in the repository meanwhile",
				!now[0]                 ? "deleted"
				: !t->record->synced[0] ? "made"
										: "moved");
		if (check_nobody_has_it(t, err) < 0)
			return -1;
	}
	/* Before the branch moves: a commit that no index can be made of is none that a person can use. */
	t->has_no_index = has_tree && make_index(t->arena, &index, t->tip, err) < 0;
	if (t->has_no_index)
		return -1;
	KR_FAULT(index_made);
	if (strcmp(now, t->tip) != 0 && compare_and_swap(t, err) < 0)
		return -1;
	KR_FAULT(ref_moved);
	if (!has_tree)
		return 0;
	if (place_head(t->arena, index.git_dir, t->tip, t->record->branch, err) < 0)
		return -1;
	KR_FAULT(head_placed);
	if (place_index(&index, err) < 0)
		return -1;
	KR_FAULT(index_placed);
	return 0;
}

/* Of a branch that is where it should be: what cannot be checked out is none that a person can use. The index is of no use. */
static int
check_index(struct kr_arena *arena, const struct take *t, struct kr_error *err)
{
	const struct new_index index = {
		.git_dir = t->record->common,
		.path = kr_arena_printf(arena, "%s.index", t->directory),
	};
	int result;

	drop_index(arena, &index);
	result = read_tree(&index, t->tip, err);
	drop_index(arena, &index);
	return result;
}

/* ---- take: what could not move ---- */

/* Makes a ref that was not there; one that is at the tip already is as good. */
static int
make_ref(const struct take *t, const char *ref, struct kr_error *err)
{
	const char *const make[] = { "update-ref", "--no-deref", ref, t->tip, zeros(t), NULL };
	const char *const same[] = { "update-ref", "--no-deref", ref, t->tip, t->tip, NULL };

	return run_ref(t->record->common, same, NULL) == 0 ? 0 : run_ref(t->record->common, make, err);
}

static const char *
flat(struct kr_arena *arena, const char *branch)
{
	char *out = kr_arena_dup(arena, branch);

	for (char *p = out; *p; p++)
		if (*p == '/')
			*p = '-';
	return out;
}

/* The first name that is free: an older commit is kept beside this one, and a ref `a` leaves no room for
 * `a/b`. */
static const char *
keep_commit(const struct take *t, struct kr_error *err)
{
	const char *branch = t->record->branch;
	const char *const names[] = {
		kr_arena_printf(t->arena, UNSYNCED "%s", branch),
		kr_arena_printf(t->arena, UNSYNCED "%s-%.*s", branch, OID_SHORT, t->tip),
		kr_arena_printf(t->arena, UNSYNCED "%s-%s", flat(t->arena, branch), t->tip),
	};

	for (size_t i = 0; i < KR_COUNT(names); i++)
		if (make_ref(t, names[i], err) == 0)
			return names[i];
	return NULL;
}

/* ---- take ---- */

static size_t
count_commits(const struct take *t, const char *from)
{
	const char *const argv[] = { "rev-list", "--count", t->tip, "--not", from, NULL };
	const struct kr_git_where where = kr_publish_where(t->record->common);
	const char *text = ask(t->arena, &where, argv, ANSWER_BYTES, NULL);
	uint64_t n = 0;

	return text && kr_text_to_u64(text, SIZE_MAX, &n) ? (size_t)n : 0;
}

static void
set_problem(struct kr_publish *out, const char *text)
{
	(void)kr_text_escape(out->problem, sizeof(out->problem), text, strlen(text));
}

/* The worktree's files are what the worker left, so its HEAD and index follow, without the branch. A commit
 * of which no index can be made stays without. */
static int
keep(const struct take *t, const struct kr_error *why, struct kr_publish *out, struct kr_error *err)
{
	struct kr_error problem = { 0 };
	const char *ref = keep_commit(t, &problem);

	if (!ref && kr_publish_is_systems(&problem))
		return pass_on(&problem, err);
	out->what = ref ? KR_PUBLISHED_KEPT : KR_PUBLISHED_LOST;
	set_problem(out,
		ref ? kr_arena_printf(t->arena, "the branch '%s' was not moved: %s; the commits are kept at %s",
				  t->record->branch, why->message, ref)
			: kr_arena_printf(t->arena, "the branch '%s' was not moved: %s; nor were the commits kept: %s",
				  t->record->branch, why->message, problem.message));
	if (ref && has_worktree(t) && !t->has_no_index)
		(void)kr_worktree_stands_at(t->record->worktree_git_dir, t->tip, NULL, NULL); /* see above */
	return 0;
}

/* Taken out, whatever became of the branch: it is not to be taken out again. */
static int
handled(struct kr_private *git, const struct take *t, struct kr_error *err)
{
	(void)memcpy(git->record.at, t->tip, strlen(t->tip) + 1);
	if (kr_private_record_write(git, err) < 0)
		return -1;
	KR_FAULT(record_written);
	return 0;
}

static int
publish(struct kr_private *git, struct take *t, struct kr_publish *out, struct kr_error *err)
{
	struct kr_error why = { 0 };

	if (take_objects(t, &why) < 0 || (t->record->is_in_repository && check_index(t->arena, t, &why) < 0)) {
		if (kr_publish_is_systems(&why))
			return pass_on(&why, err);
		out->what = KR_PUBLISHED_LOST;
		set_problem(out, why.message);
		return 0;
	}
	out->commits = count_commits(t, base_of(t->record));
	if (t->record->is_in_repository || move_branch(t, &why) == 0)
		(void)memcpy(git->record.synced, t->tip, strlen(t->tip) + 1);
	else if (kr_publish_is_systems(&why))
		return pass_on(&why, err);
	else if (keep(t, &why, out, err) < 0)
		return -1;
	return out->what == KR_PUBLISHED_LOST ? 0 : handled(git, t, err);
}

static struct take
take_of(struct kr_arena *arena, const struct kr_private *git, const char *tip, int pack_fd)
{
	return (struct take){
		.arena = arena,
		.record = &git->record,
		.directory = git->dir,
		.tip = tip,
		.ref = kr_arena_printf(arena, HEADS "%s", git->record.branch),
		.pack_fd = pack_fd,
	};
}

int
kr_publish_take(struct kr_arena *arena, struct kr_private *git, const char *tip, int pack_fd,
	struct kr_publish *out, struct kr_error *err)
{
	struct take t = take_of(arena, git, tip, pack_fd);
	struct kr_publish made = { 0 };

	snprintf(made.from, sizeof(made.from), "%s", git->record.synced);
	snprintf(made.to, sizeof(made.to), "%s", tip);
	if (publish(git, &t, &made, err) < 0)
		return -1;
	*out = made;
	return 0;
}

/* ---- in the repository ---- */

struct packing {
	int fd;
	off_t left;
};

static int
write_pack(void *context, const char *bytes, size_t n)
{
	struct packing *packing = context;

	packing->left -= (off_t)n;
	return packing->left < 0 ? -1 : kr_write_all(packing->fd, bytes, n, NULL);
}

int
kr_publish_pack(
	struct kr_arena *arena, const struct kr_private *git, const char *tip, int pack_fd, struct kr_error *err)
{
	const struct take t = take_of(arena, git, tip, pack_fd);
	struct packing packing = { pack_fd, (off_t)PACK_BYTES_MAX };

	if (check_tip(&t, err) < 0)
		return -1;
	return pack_unpacked(&t, NULL, write_pack, &packing, err);
}

int
kr_publish_check_free(struct kr_arena *arena, const struct kr_private *git, struct kr_error *err)
{
	const struct take t = take_of(arena, git, "", -1);

	return check_nobody_has_it(&t, err);
}

/* ---- the base ---- */

static const char *
base_ref(struct kr_arena *arena, const char *item)
{
	return kr_arena_printf(arena, "refs/kraft/base/%s", item);
}

int
kr_base_keep(const struct kr_checkout *checkout, const char *item, const char *oid, struct kr_error *err)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const char *const argv[] = { "update-ref", "--no-deref", base_ref(&arena, item), oid, NULL };
	char now[KR_OID_HEX_MAX + 1];

	/* Mostly it is there already, and a look is cheaper than a run. */
	if (kr_ref_read(checkout->common, base_ref(&arena, item), now, NULL) == 1 && strcmp(now, oid) == 0)
		return 0;
	if (run_ref(checkout->common, argv, err) < 0)
		return kr_wrap(err, "cannot keep the base of '%s'", item);
	return 0;
}

int
kr_base_drop(const struct kr_checkout *checkout, const char *item, struct kr_error *err)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const char *const argv[] = { "update-ref", "--no-deref", "-d", base_ref(&arena, item), NULL };

	if (run_ref(checkout->common, argv, err) < 0)
		return kr_wrap(err, "cannot let go of the base of '%s'", item);
	return 0;
}
