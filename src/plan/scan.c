/*
 * What a directory must not carry into the sandbox: files whose names hold credentials read as empty
 * (OS-MNT-12, FS-12, FS-13), sockets and FIFOs refuse the launch, because a read-only mount does not stop
 * anyone from talking through them (OS-SEC-08, FS-14, FS-15).
 *
 * The search goes three directories down, never through a link, and looks at a bounded number of entries, so
 * that the start of a session does not get slower with the size of what is exposed. Device nodes need no
 * refusal: every mount is nodev. What the worker may write anyway (the worktree inside an exposed directory)
 * is passed over.
 */
#include "plan/build.h"

#include "base/path.h"
#include "policy/policy.h"

struct scan {
	struct kr_build *b;
	const char *top, *what;
	size_t entries;
	struct kr_strs level, next; /* directories of this depth and of the one below */
	const char *directory;      /* the one being listed */
	struct kr_error *err;
	bool failed;
};

static int
refuse_channel(struct scan *s, const char *path, enum kr_fs_type type)
{
	kr_fail(s->err, KR_E_REFUSED,
		"'%s' is a %s inside %s '%s', and a read-only view does not stop a worker from using it", path,
		type == KR_FS_SOCKET ? "socket" : "FIFO", s->what, s->top);
	return kr_hint(s->err, "remove it, or expose a narrower directory that does not hold it");
}

static void
add_mask(struct kr_build *b, const char *path, const char *because)
{
	if (kr_strs_has(&b->masks, path))
		return;
	kr_strs_add(b->arena, &b->masks, path);
	kr_strs_add(b->arena, &b->mask_why, because);
}

/* The file behind a link of that name: it reads as empty too when it is in the same tree (FS-13). */
static void
mask_behind_link(struct scan *s, const char *link)
{
	struct kr_fs_entry entry;
	const char *real = kr_fs_resolve(s->b->host->fs, s->b->arena, link, &entry, NULL);

	if (real && entry.type == KR_FS_FILE && kr_path_is_within(real, s->top))
		add_mask(
			s->b, real, kr_arena_printf(s->b->arena, "'%s', a credential file's name, leads to it", link));
}

static bool
is_writable_place(const struct kr_build *b, const char *path)
{
	for (size_t i = 0; i < b->show_count; i++)
		if (b->shows[i].writable && strcmp(b->shows[i].path, path) == 0)
			return true;
	return false;
}

static bool
visit(void *context, const char *name, enum kr_fs_type type)
{
	struct scan *s = context;
	struct kr_arena *arena = s->b->arena;
	bool secret = kr_is_credential_name(&s->b->host->places, name);

	if (++s->entries > KR_SCAN_ENTRIES) {
		s->failed = true;
		kr_fail(s->err, KR_E_LIMIT, "%s '%s' holds more than %d entries in its first %d levels", s->what,
			s->top, KR_SCAN_ENTRIES, KR_SCAN_DEPTH + 1);
		kr_hint(s->err, "expose narrower directories, only those that are needed");
		return false;
	}
	/* Most entries are plain files with plain names: nothing is allocated for them. */
	if (type == KR_FS_DIR) {
		kr_strs_add(arena, &s->next, kr_path_join(arena, s->directory, name));
	} else if (type == KR_FS_SOCKET || type == KR_FS_FIFO) {
		s->failed = true;
		refuse_channel(s, kr_path_join(arena, s->directory, name), type);
	} else if (secret && type == KR_FS_FILE) {
		add_mask(s->b, kr_path_join(arena, s->directory, name), "a credential file's name");
	} else if (secret && type == KR_FS_LINK) {
		mask_behind_link(s, kr_path_join(arena, s->directory, name));
	}
	return !s->failed;
}

/* A directory that may be entered but not listed hides nothing from who knows the names: each is asked for.
 */
static void
look_for_names(struct scan *s)
{
	const struct kr_fs *fs = s->b->host->fs;

	for (size_t i = 0; i < kr_credential_name_count && !s->failed; i++) {
		const char *name = kr_credential_names[i];

		(void)visit(s, name, fs->look(fs->context, kr_path_join(s->b->arena, s->directory, name)).type);
	}
	kr_build_note(
		s->b, "'%s' cannot be listed: directories, sockets and FIFOs in it are not looked at", s->directory);
}

static int
scan_level(struct scan *s)
{
	const struct kr_fs *fs = s->b->host->fs;

	for (size_t i = 0; i < s->level.n && !s->failed; i++) {
		s->directory = s->level.v[i];
		if (is_writable_place(s->b, s->directory))
			continue;
		if (fs->list(fs->context, s->directory, visit, s) < 0)
			look_for_names(s);
	}
	return s->failed ? -1 : 0;
}

int
kr_build_scan(struct kr_build *b, const char *directory, const char *what, struct kr_error *err)
{
	struct scan s = { .b = b, .top = directory, .what = what, .err = err };
	size_t before = b->masks.n;

	kr_strs_add(b->arena, &s.next, directory);
	for (int depth = 0; depth <= KR_SCAN_DEPTH; depth++) {
		s.level = s.next;
		s.next = (struct kr_strs){ 0 };
		if (scan_level(&s) < 0) {
			b->masks.n = b->mask_why.n = before; /* the directory will not be shown */
			return -1;
		}
	}
	return 0;
}
