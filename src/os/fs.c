/*
 * The live file system as planning sees it, and the resolution of links for any view of one.
 *
 * The live functions never follow a final link, never wait (a FIFO or a device may sit where a file is
 * expected) and change nothing. What they answer can be out of date a moment later: it is for planning and
 * for messages; the launch opens each source again without following links and checks the descriptor.
 */
#include "os/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"

enum { LINKS_MAX = 40 }; /* as Linux follows at most */

static enum kr_fs_type
type_of_mode(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return KR_FS_FILE;
	case S_IFDIR:
		return KR_FS_DIR;
	case S_IFLNK:
		return KR_FS_LINK;
	case S_IFSOCK:
		return KR_FS_SOCKET;
	case S_IFIFO:
		return KR_FS_FIFO;
	default:
		return KR_FS_OTHER;
	}
}

static struct kr_fs_entry
live_look(void *context, const char *path)
{
	struct kr_fs_entry entry = { 0 };
	struct stat st;

	(void)context;
	if (lstat(path, &st) < 0) {
		entry.sys_errno = errno;
		return entry;
	}
	entry.type = type_of_mode(st.st_mode);
	entry.executable =
		entry.type == KR_FS_FILE && (st.st_mode & 0111) && faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0;
	return entry;
}

static const char *
live_read_link(void *context, struct kr_arena *arena, const char *path)
{
	char text[KR_PATH_MAX];
	ssize_t n = readlink(path, text, sizeof(text));

	(void)context;
	if (n <= 0 || (size_t)n == sizeof(text))
		return NULL;
	return kr_arena_dup_n(arena, text, (size_t)n);
}

static long
live_read_head(void *context, const char *path, char *out, size_t n)
{
	struct stat st;
	kr_auto_fd int fd = -1;
	size_t have = 0;

	(void)context;
	/* Looked at before it is opened, since opening a device can do something; and again after, since it can
	 * change. */
	if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return -1;
	while (have < n) {
		ssize_t got = read(fd, out + have, n - have);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -1;
		if (got == 0)
			break;
		have += (size_t)got;
	}
	return (long)have;
}

static enum kr_fs_type
type_of_entry(int dir_fd, const struct dirent *e)
{
	struct stat st;

	switch (e->d_type) {
	case DT_REG:
		return KR_FS_FILE;
	case DT_DIR:
		return KR_FS_DIR;
	case DT_LNK:
		return KR_FS_LINK;
	case DT_SOCK:
		return KR_FS_SOCKET;
	case DT_FIFO:
		return KR_FS_FIFO;
	case DT_UNKNOWN: /* some file systems do not say */
		if (fstatat(dir_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return KR_FS_NONE;
		return type_of_mode(st.st_mode);
	default:
		return KR_FS_OTHER;
	}
}

static void
close_dir_p(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

static int
live_list(void *context, const char *path,
	bool (*visit)(void *visit_context, const char *name, enum kr_fs_type type), void *visit_context)
{
	kr_auto_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	KR_CLEANUP(close_dir_p) DIR *dir = NULL;

	(void)context;
	if (fd < 0 || !(dir = fdopendir(fd)))
		return -1;
	(void)kr_steal_fd(fd); /* the stream has it */
	for (;;) {
		const struct dirent *e;
		enum kr_fs_type type;

		errno = 0;
		if (!(e = readdir(dir)))
			return errno ? -1 : 0;
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		type = type_of_entry(dirfd(dir), e);
		if (type != KR_FS_NONE && !visit(visit_context, e->d_name, type))
			return 0;
	}
}

const struct kr_fs kr_fs_live = {
	.look = live_look,
	.read_link = live_read_link,
	.read_head = live_read_head,
	.list = live_list,
};

/* A walk in progress: `at` is resolved (a directory, or "/" at the start), `rest` is still to go. */
struct walk {
	const struct kr_fs *fs;
	struct kr_arena *arena;
	struct kr_strs *links;
	char at[KR_PATH_MAX];
	const char *rest;
	unsigned followed;
};

/* Where the path takes away its last component. */
static void
step_up(char *at)
{
	char *slash = strrchr(at, '/');

	slash[slash == at] = '\0';
}

/* Puts the link's text in place of the link; 0 or an errno. */
static int
follow(struct walk *w, const char *link, size_t n)
{
	const char *text = w->fs->read_link(w->fs->context, w->arena, link);

	if (!text)
		return EINVAL;
	if (++w->followed > LINKS_MAX)
		return ELOOP;
	if (w->links) {
		kr_strs_add(w->arena, w->links, link);
		kr_strs_add(w->arena, w->links, text);
	}
	w->rest = kr_arena_printf(w->arena, "%s/%s", text, w->rest + n);
	if (strlen(w->rest) >= KR_PATH_MAX)
		return ENAMETOOLONG;
	if (text[0] == '/') {
		w->at[0] = '/';
		w->at[1] = '\0';
	}
	return 0;
}

/* One component, n bytes of w->rest. Fills *entry when it is not a link. Returns 0 or an errno. */
static int
step(struct walk *w, size_t n, struct kr_fs_entry *entry)
{
	size_t len = strlen(w->at) == 1 ? 0 : strlen(w->at);
	char next[KR_PATH_MAX];

	if (len + 1 + n >= sizeof(next))
		return ENAMETOOLONG;
	memcpy(next, w->at, len);
	next[len] = '/';
	memcpy(next + len + 1, w->rest, n);
	next[len + 1 + n] = '\0';
	*entry = w->fs->look(w->fs->context, next);
	if (entry->type == KR_FS_NONE)
		return entry->sys_errno ? entry->sys_errno : ENOENT;
	if (entry->type == KR_FS_LINK) {
		entry->type = KR_FS_DIR; /* where we stand again: the link's directory, or "/" */
		return follow(w, kr_arena_dup(w->arena, next), n);
	}
	memcpy(w->at, next, len + n + 2);
	w->rest += n;
	return 0;
}

const char *
kr_fs_resolve(const struct kr_fs *fs, struct kr_arena *arena, const char *path, struct kr_fs_entry *entry,
	struct kr_strs *links)
{
	struct walk w = { .fs = fs, .arena = arena, .links = links, .at = "/", .rest = path };
	struct kr_fs_entry here = { .type = KR_FS_DIR };
	int failed = 0;

	KR_BUG_IF(path[0] != '/');
	while (!failed) {
		size_t n;

		w.rest += strspn(w.rest, "/");
		n = strcspn(w.rest, "/");
		if (n == 0)
			break;
		if (here.type != KR_FS_DIR) {
			failed = ENOTDIR;
		} else if (n == 1 && w.rest[0] == '.') {
			w.rest += n;
		} else if (n == 2 && w.rest[0] == '.' && w.rest[1] == '.') {
			step_up(w.at);
			here = (struct kr_fs_entry){ .type = KR_FS_DIR };
			w.rest += n;
		} else {
			failed = step(&w, n, &here);
		}
	}
	*entry = failed ? (struct kr_fs_entry){ .sys_errno = failed } : here;
	return failed ? NULL : kr_arena_dup(arena, w.at);
}
