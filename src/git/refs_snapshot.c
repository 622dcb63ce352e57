/*
 * The refs of the person's repository: all of them as one packed-refs file for a private git directory, and
 * one branch.
 *
 *   1. loose files below refs/, then packed-refs (see refs.c for the order)
 *   2. what a worker does not get is left out: refs/kraft/ and what belongs to one worktree (refs/bisect,
 * refs/worktree, refs/rewritten). A symbolic ref cannot stand in packed-refs and is left out too, like
 * origin/HEAD
 *   3. loose ones sorted, merged with the packed ones; the loose one wins, also where it is broken or
 * symbolic. A packed-refs that is sorted, as git writes it, is merged while it is read; another one is
 * collected and sorted before
 *
 * Trusted, and still bounded: files are small or refused, links are not followed but for `refs` itself
 * (git-new-workdir makes one). Where refs may be kept in another way (reftable) git is asked for the same
 * list.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/portable.h"
#include "base/text.h"
#include "git/internal.h"

enum {
	LOOSE_BYTES = 256,
	LOOSE_LINE_BYTES = 100, /* about; a start */
	REFS_MAX = 2000000,
	DEPTH_MAX = 64,         /* directories held open at once */
	LIST_BYTES = 128 << 20, /* what git prints */
	CONFIG_BYTES = 1 << 20,
};

struct ref {
	const char *name, *oid,
		*peeled; /* oid NULL: what is there cannot be taken along, and hides a packed one */
	unsigned name_len, oid_len;
};

struct refs {
	struct ref *v;
	size_t n, cap;
};

struct snapshot {
	struct kr_arena arena;     /* names and values of loose refs */
	struct refs loose, packed; /* packed: only when it had to be sorted */
	const struct kr_buf *text; /* packed-refs: the file as it was last read, or `listed` */
	struct kr_buf listed;      /* what git said in place of it */
};

static void
snapshot_fini(struct snapshot *s)
{
	kr_arena_fini(&s->arena);
	free(s->loose.v);
	free(s->packed.v);
	kr_buf_fini(&s->listed);
}

static int
refs_add(struct refs *refs, const struct ref *ref, struct kr_error *err)
{
	if (refs->n == REFS_MAX)
		return kr_fail(err, KR_E_LIMIT, "the repository has more than %d refs", REFS_MAX);
	if (refs->n == refs->cap) {
		refs->cap = refs->cap ? refs->cap * 2 : 256;
		refs->v = kr_xrealloc(refs->v, refs->cap * sizeof(*refs->v));
	}
	refs->v[refs->n++] = *ref;
	return 0;
}

static bool
begins(const char *name, size_t len, const char *prefix)
{
	size_t n = strlen(prefix);

	return len >= n && memcmp(name, prefix, n) == 0;
}

static bool
is_left_out(const char *name, size_t len)
{
	return begins(name, len, "refs/kraft/") || begins(name, len, "refs/bisect/") ||
		   begins(name, len, "refs/worktree/") || begins(name, len, "refs/rewritten/");
}

/* As git sorts packed-refs: by bytes. */
static int
compare(const void *a, const void *b)
{
	const struct ref *x = a, *y = b;
	int order = memcmp(x->name, y->name, x->name_len < y->name_len ? x->name_len : y->name_len);

	return order ? order : (x->name_len > y->name_len) - (x->name_len < y->name_len);
}

/* ---- loose ---- */

/* The value in a loose file, in the arena; NULL for a symbolic or broken one. False when it is gone. */
static bool
read_loose(struct snapshot *s, int dir_fd, const char *name, const char **oid)
{
	kr_auto_fd int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	char bytes[LOOSE_BYTES], value[KR_OID_HEX_MAX + 1];
	ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));

	*oid = NULL;
	if (fd < 0)
		return errno != ENOENT;
	while (n > 0 && strchr("\n\r\t ", bytes[n - 1]) && bytes[n - 1])
		n--; /* git takes any white space behind it */
	if (n > 0 && kr_ref_file_parse(bytes, (size_t)n, value))
		*oid = kr_arena_dup(&s->arena, value);
	return true;
}

static int walk(struct snapshot *s, int fd, const char *path, int depth, struct kr_error *err);

static bool
is_directory(int dir_fd, const struct dirent *e)
{
	struct stat st;

	if (e->d_type != DT_UNKNOWN)
		return e->d_type == DT_DIR;
	return fstatat(dir_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static int
walk_entry(
	struct snapshot *s, int dir_fd, const char *path, const struct dirent *e, int depth, struct kr_error *err)
{
	const char *name = kr_arena_printf(&s->arena, "%s/%s", path, e->d_name), *oid;
	size_t len = strlen(name);

	if (is_directory(dir_fd, e)) {
		if (is_left_out(kr_arena_printf(&s->arena, "%s/", name), len + 1))
			return 0;
		return walk(s, openat(dir_fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), name,
			depth + 1, err);
	}
	if (!kr_ref_name_is_valid(name, len) || is_left_out(name, len) || !read_loose(s, dir_fd, e->d_name, &oid))
		return 0;
	return refs_add(&s->loose,
		&(struct ref){
			.name = name, .name_len = (unsigned)len, .oid = oid, .oid_len = oid ? (unsigned)strlen(oid) : 0 },
		err);
}

/* Takes the descriptor. */
static int
walk(struct snapshot *s, int fd, const char *path, int depth, struct kr_error *err)
{
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int result = 0;

	if (!dir) {
		int saved = errno;

		kr_close_p(&fd);
		if (saved == ENOENT || saved == ENOTDIR || saved == ELOOP) /* gone: git removes what became empty */
			return 0;
		return kr_fail_errno(err, KR_E_SYSTEM, saved, "cannot open '%s'", path);
	}
	if (depth > DEPTH_MAX)
		result = kr_fail(err, KR_E_LIMIT, "'%s' lies deeper than %d directories", path, DEPTH_MAX);
	for (const struct dirent *e; !result && (e = readdir(dir));)
		if (e->d_name[0] != '.')
			result = walk_entry(s, dirfd(dir), path, e, depth, err);
	closedir(dir);
	return result;
}

/* ---- packed ---- */

static bool
is_same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool
is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
		   is_same_time(kr_mtime(a), kr_mtime(b)) && is_same_time(kr_ctime(a), kr_ctime(b));
}

/*
 * One start asks for HEAD, for a branch or two and for all refs, and each of them may stand in this file, which can be
 * large. So the last one is kept, for as long as it is the same file: git writes another one and renames it.
 */
const struct kr_buf *
kr_packed_refs_read(const char *common, struct kr_error *err)
{
	static struct kr_buf text;
	static struct stat of; /* st_ino 0: none is kept */
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	const char *path = kr_arena_printf(&arena, "%s/packed-refs", common);
	struct kr_error failed = { 0 };
	struct stat now;

	if (stat(path, &now) == 0 && of.st_ino && is_same_file(&of, &now))
		return &text;
	kr_buf_fini(&text);
	text = KR_BUF(KR_PACKED_REFS_BYTES);
	of = (struct stat){ 0 };
	if (kr_file_read_at(AT_FDCWD, path, &text, &failed) < 0) {
		kr_buf_fini(&text);
		text = KR_BUF(1);
		if (failed.sys_errno == ENOENT)
			return &text;
		if (err)
			*err = failed;
		return NULL;
	}
	if (stat(path, &of) < 0 || !is_same_file(&of, &now))
		of = (struct stat){ 0 }; /* replaced in between */
	return &text;
}

/* The first line lists what git knows of the file. */
static bool
says(const struct kr_buf *text, const char *trait)
{
	size_t len = text->len ? strcspn(text->data, "\n") : 0;

	return len && begins(text->data, len, "# pack-refs with:") &&
		   memmem(text->data, len, trait, strlen(trait)) != NULL;
}

/* Walks the packed refs: those that were collected, else the text. */
struct packed {
	const struct snapshot *s;
	size_t at;
	struct ref ref;
	bool is_end;
};

static void
packed_next(struct packed *p)
{
	const struct snapshot *s = p->s;
	struct kr_packed_ref ref;

	if (s->packed.v) {
		p->is_end = p->at == s->packed.n;
		if (!p->is_end)
			p->ref = s->packed.v[p->at++];
		return;
	}
	p->is_end = !s->text->len || !kr_packed_refs_next(s->text->data, s->text->len, &p->at, &ref);
	if (!p->is_end)
		p->ref = (struct ref){ .name = ref.name,
			.name_len = (unsigned)ref.name_len,
			.oid = ref.oid,
			.oid_len = (unsigned)ref.oid_len,
			.peeled = ref.peeled };
}

static int
collect_and_sort(struct snapshot *s, struct kr_error *err)
{
	struct refs all = { 0 };
	struct packed p = { .s = s };

	for (packed_next(&p); !p.is_end; packed_next(&p))
		if (refs_add(&all, &p.ref, err) < 0) {
			free(all.v);
			return -1;
		}
	if (all.n)
		qsort(all.v, all.n, sizeof(*all.v), compare);
	s->packed = all;
	return 0;
}

static int
read_files(struct snapshot *s, const char *common, struct kr_error *err)
{
	const char *refs = kr_arena_printf(&s->arena, "%s/refs", common);

	if (walk(s, open(refs, O_RDONLY | O_DIRECTORY | O_CLOEXEC), "refs", 0, err) < 0)
		return kr_wrap(err, "cannot read the refs of '%s'", common);
	s->text = kr_packed_refs_read(common, err);
	return s->text ? 0 : -1;
}

/* ---- another storage ---- */

/* Conservative: a word in a comment costs a git run and changes nothing. */
bool
kr_refs_need_git(const char *common)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	kr_auto_buf struct kr_buf config = KR_BUF(CONFIG_BYTES);
	struct stat st;

	if (lstat(kr_arena_printf(&arena, "%s/reftable", common), &st) == 0)
		return true;
	if (kr_file_read_at(AT_FDCWD, kr_arena_printf(&arena, "%s/config", common), &config, NULL) < 0)
		return false; /* no repository for git either */
	return config.len && strcasestr(config.data, "refstorage");
}

int
kr_refs_not_read(const char *common, const char *why, struct kr_error *err)
{
	kr_fail(err, KR_E_UNSUPPORTED,
		"the repository '%s' keeps its refs as reftable, which the git here does not read: %s", common, why);
	return kr_hint(err, "install git 2.45 or newer, or go back: git refs migrate --ref-format=files");
}

/* "<oid> <name> <target of a symbolic one>" lines into s->text, as lines of packed-refs. */
static int
ask_git(struct snapshot *s, const char *common, const char *pattern, struct kr_error *err)
{
	const char *const argv[] = { "for-each-ref", "--format=%(objectname) %(refname) %(symref)", pattern,
		NULL };
	const struct kr_git_where where = { .git_dir = common, .work_dir_fd = -1 };
	kr_auto_buf struct kr_buf said = KR_BUF(LIST_BYTES);
	struct kr_error failed = { 0 };

	if (kr_git_run(&where, argv, &said, &failed) < 0)
		return kr_refs_not_read(common, failed.message, err);
	s->text = &s->listed;
	s->listed = KR_BUF(LIST_BYTES);
	for (size_t i = 0; i < said.len;) {
		size_t n = strcspn(said.data + i, "\n");

		if (n && said.data[i + n - 1] == ' ') { /* no target */
			kr_buf_add(&s->listed, said.data + i, n - 1);
			kr_buf_add(&s->listed, "\n", 1);
		}
		i += n + 1;
	}
	return 0;
}

/* ---- writing ---- */

struct writing {
	const char *branch; /* refs/heads/... */
	size_t branch_len;
	struct kr_buf *out;
};

static bool
is_below(const char *name, size_t len, const char *above, size_t above_len)
{
	return len > above_len && name[above_len] == '/' && memcmp(name, above, above_len) == 0;
}

static int
write_one(const struct writing *w, const struct ref *ref, struct kr_error *err)
{
	if (is_below(ref->name, ref->name_len, w->branch, w->branch_len) ||
		is_below(w->branch, w->branch_len, ref->name, ref->name_len)) {
		kr_fail(err, KR_E_REFUSED, "the branch '%s' cannot be made beside '%.*s'",
			w->branch + strlen("refs/heads/"), (int)ref->name_len, ref->name);
		return kr_hint(err, "rename that one: git branch -m OLD NEW");
	}
	kr_buf_add(w->out, ref->oid, ref->oid_len);
	kr_buf_add(w->out, " ", 1);
	kr_buf_add(w->out, ref->name, ref->name_len);
	kr_buf_add(w->out, "\n", 1);
	if (ref->peeled) {
		kr_buf_add(w->out, "^", 1);
		kr_buf_add(w->out, ref->peeled, ref->oid_len);
		kr_buf_add(w->out, "\n", 1);
	}
	return 0;
}

static bool
is_wanted(const struct ref *ref)
{
	return ref->oid && !is_left_out(ref->name, ref->name_len);
}

enum merged { MERGED, NOT_SORTED, FAILED };

/* Both sorted; of equal names the loose one. */
static enum merged
merge(const struct snapshot *s, const struct writing *w, struct kr_error *err)
{
	const struct ref *loose = s->loose.v, *end = loose + s->loose.n;
	struct packed p = { .s = s };
	struct ref last;

	packed_next(&p);
	while (loose != end || !p.is_end) {
		int order = loose == end ? 1 : p.is_end ? -1 : compare(loose, &p.ref);
		const struct ref next = order <= 0 ? *loose++ : p.ref;

		if (is_wanted(&next) && write_one(w, &next, err) < 0)
			return FAILED;
		if (order < 0)
			continue;
		do {
			last = p.ref;
			packed_next(&p);
		} while (!p.is_end && compare(&last, &p.ref) == 0); /* the same name twice */
		if (!p.is_end && compare(&last, &p.ref) > 0)
			return NOT_SORTED;
	}
	return MERGED;
}

/* Only commits can be branches, so there is nothing to peel; of any other loose ref it is not known. */
static bool
knows_what_all_lead_to(const struct snapshot *s)
{
	for (size_t i = 0; i < s->loose.n; i++)
		if (is_wanted(&s->loose.v[i]) && !begins(s->loose.v[i].name, s->loose.v[i].name_len, "refs/heads/"))
			return false;
	return !s->text->len || says(s->text, " fully-peeled ");
}

/* In place of a loose one of the same name. */
static int
put_branch(struct snapshot *s, const char *ref, const char *oid, struct kr_error *err)
{
	const struct ref branch = {
		.name = ref, .name_len = (unsigned)strlen(ref), .oid = oid, .oid_len = (unsigned)strlen(oid)
	};

	for (size_t i = 0; i < s->loose.n; i++)
		if (compare(&s->loose.v[i], &branch) == 0) {
			s->loose.v[i] = branch;
			return 0;
		}
	return refs_add(&s->loose, &branch, err);
}

int
kr_refs_snapshot(const struct kr_checkout *checkout, const char *branch, const char *oid, struct kr_buf *out,
	struct kr_error *err)
{
	KR_CLEANUP(snapshot_fini) struct snapshot s = { 0 };
	char ref[KR_REF_NAME_MAX + 1];
	struct writing w = { .branch = ref, .out = out };
	enum merged merged;
	size_t start;

	KR_BUG_IF(!kr_oid_is_valid(oid, strlen(oid)));
	if (kr_ref_of_branch(branch, ref, err) < 0)
		return -1;
	w.branch_len = strlen(ref);
	if ((kr_refs_need_git(checkout->common) ? ask_git(&s, checkout->common, "refs/", err)
											: read_files(&s, checkout->common, err)) < 0 ||
		put_branch(&s, ref, oid, err) < 0)
		return -1;
	qsort(s.loose.v, s.loose.n, sizeof(*s.loose.v), compare);
	kr_buf_adds(out, knows_what_all_lead_to(&s) ? "# pack-refs with: peeled fully-peeled sorted \n"
												: "# pack-refs with: sorted \n");
	kr_buf_reserve(out, s.text->len + s.loose.n * LOOSE_LINE_BYTES);
	start = out->len;
	merged = merge(&s, &w, err);
	if (merged == NOT_SORTED) {
		out->len = start;
		merged = collect_and_sort(&s, err) < 0 ? FAILED : merge(&s, &w, err);
	}
	if (merged != MERGED)
		return -1;
	if (out->overflow)
		return kr_fail(
			err, KR_E_LIMIT, "the refs of '%s' are more than %zu bytes", checkout->common, out->max);
	return 0;
}

/* ---- one branch ---- */

static int
find_in(struct snapshot *s, const char *ref, char oid[KR_OID_HEX_MAX + 1])
{
	return s->text->len ? kr_packed_refs_find(s->text->data, s->text->len, ref, oid) : 0;
}

static int
read_branch_file(struct snapshot *s, const char *common, const char *ref, char oid[KR_OID_HEX_MAX + 1],
	struct kr_error *err)
{
	const char *value;
	struct stat st;

	/* A directory is what a deleted branch of a longer name left. */
	if (lstat(kr_arena_printf(&s->arena, "%s/%s", common, ref), &st) == 0 && !S_ISDIR(st.st_mode) &&
		read_loose(s, AT_FDCWD, kr_arena_printf(&s->arena, "%s/%s", common, ref), &value)) {
		if (!value)
			return kr_fail(err, KR_E_REFUSED, "'%s' of '%s' is a symbolic or a broken ref", ref, common);
		memcpy(oid, value, strlen(value) + 1);
		return 1;
	}
	s->text = kr_packed_refs_read(common, err);
	return s->text ? find_in(s, ref, oid) : -1;
}

int
kr_ref_read(const char *common, const char *ref, char oid[KR_OID_HEX_MAX + 1], struct kr_error *err)
{
	KR_CLEANUP(snapshot_fini) struct snapshot s = { 0 };

	if (!kr_refs_need_git(common))
		return read_branch_file(&s, common, ref, oid, err);
	return ask_git(&s, common, ref, err) < 0 ? -1 : find_in(&s, ref, oid);
}

int
kr_branch_read(const struct kr_checkout *checkout, const char *branch, char oid[KR_OID_HEX_MAX + 1],
	struct kr_error *err)
{
	char ref[KR_REF_NAME_MAX + 1];

	return kr_ref_of_branch(branch, ref, err) < 0 ? -1 : kr_ref_read(checkout->common, ref, oid, err);
}
