#include "git/large.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/sha256.h"

#define BYTES_MAX ((uint64_t)8 << 30) /* of one taking, as of a pack */
enum { ENTRIES_MAX = 1 << 20, CHUNK = 1 << 16 };

struct taking {
	int to;           /* the repository's lfs/objects; -1: not opened yet */
	const char *home; /* the directory that holds lfs */
	uint64_t bytes_left;
	size_t entries_left;
	struct kr_large found;
	struct kr_error *err;
};

static bool
is_hex(const char *name, size_t n)
{
	return strlen(name) == n && strspn(name, "0123456789abcdef") == n;
}

static int
open_directory(int at, const char *name)
{
	return openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
}

/* ---- where it goes ---- */

/* The person's own: links there are followed, as git-lfs does. The umask decides on modes, as with git. */
static int
make_below(int at, const char *name, struct kr_error *err)
{
	int fd = -1;

	if (mkdirat(at, name, 0777) == 0 || errno == EEXIST)
		fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		kr_fail_errno(err, KR_E_SYSTEM, errno, "cannot make '%s' for large files", name);
	return fd;
}

static int
open_to(struct taking *t)
{
	kr_auto_fd int home = -1, lfs = -1;

	if (t->to >= 0)
		return 0;
	home = kr_path_open(t->home, O_RDONLY | O_DIRECTORY, t->err);
	lfs = home < 0 ? -1 : make_below(home, "lfs", t->err);
	t->to = lfs < 0 ? -1 : make_below(lfs, "objects", t->err);
	return t->to < 0 ? -1 : 0;
}

/* ---- one file ---- */

/* Copies to the end or for as long as the bytes last; 1: it is what its name says, 0: it is not, -1 an error.
 */
static int
copy(struct taking *t, int from, int to, const char *hash)
{
	char hex[KR_SHA256_HEX + 1];
	struct kr_sha256 sha;

	kr_sha256_init(&sha);
	for (;;) {
		char chunk[CHUNK];
		ssize_t n = read(from, chunk, sizeof(chunk));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || (uint64_t)n > t->bytes_left)
			return 0;
		if (n == 0)
			break;
		t->bytes_left -= (uint64_t)n;
		kr_sha256_add(&sha, chunk, (size_t)n);
		if (kr_write_all(to, chunk, (size_t)n, t->err) < 0)
			return -1;
	}
	kr_sha256_hex(&sha, hex);
	return strcmp(hex, hash) == 0;
}

/* Under another name first: git-lfs believes a name. */
static int
copy_into(struct taking *t, int from, int directory, const char *hash)
{
	char temporary[KR_SHA256_HEX + 32];
	kr_auto_fd int to = -1;
	int good;

	snprintf(temporary, sizeof(temporary), "%s.kraft-%ld", hash, (long)getpid());
	(void)unlinkat(directory, temporary, 0); /* of a process of our number that died */
	to = openat(directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (to < 0)
		return kr_fail_errno(t->err, KR_E_SYSTEM, errno, "cannot create the large file '%s'", temporary);
	good = copy(t, from, to, hash);
	if (good > 0 && (fsync(to) < 0 || renameat(directory, temporary, directory, hash) < 0)) {
		good = -1;
		kr_fail_errno(t->err, KR_E_SYSTEM, errno, "cannot put the large file '%s' in place", hash);
	}
	if (good <= 0)
		(void)unlinkat(directory, temporary, 0); /* nothing believes in it */
	if (good == 0)
		t->found.left++;
	t->found.taken += good > 0;
	return good < 0 ? -1 : 0;
}

static int
take_file(struct taking *t, int directory, const char *hash)
{
	kr_auto_fd int from = openat(directory, hash, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY),
				   first = -1, second = -1;
	const char one[] = { hash[0], hash[1], '\0' }, two[] = { hash[2], hash[3], '\0' };
	struct stat st, there;

	if (from < 0 || fstat(from, &st) < 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_size > t->bytes_left) {
		t->found.left++;
		return 0;
	}
	if (open_to(t) < 0 || (first = make_below(t->to, one, t->err)) < 0 ||
		(second = make_below(first, two, t->err)) < 0)
		return -1;
	if (fstatat(second, hash, &there, AT_SYMLINK_NOFOLLOW) == 0)
		return 0;
	return copy_into(t, from, second, hash);
}

/* ---- all of them ---- */

/* lfs/objects/12/34/1234...: `start` is what the directories up to here make of the name. Takes the
 * descriptor. */
static int
take_below(struct taking *t, int fd, const char *start)
{
	size_t depth = strlen(start) / 2;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int result = 0;

	if (!dir) {
		kr_close_p(&fd);
		return 0; /* the worker's own doing, as with all that is not as it should be */
	}
	for (const struct dirent *e; result == 0 && (e = readdir(dir)) && t->entries_left;) {
		t->entries_left--;
		if (depth == 2 && is_hex(e->d_name, KR_SHA256_HEX) && memcmp(e->d_name, start, 4) == 0)
			result = take_file(t, dirfd(dir), e->d_name);
		if (depth < 2 && is_hex(e->d_name, 2)) {
			char next[5];

			snprintf(next, sizeof(next), "%s%.2s", start, e->d_name);
			result = take_below(t, open_directory(dirfd(dir), e->d_name), next);
		}
	}
	closedir(dir);
	return result;
}

int
kr_large_take(
	struct kr_arena *arena, const struct kr_private *git, struct kr_large *out, struct kr_error *err)
{
	struct taking t = {
		.to = -1,
		.home = kr_path_dirname(arena, git->objects),
		.bytes_left = BYTES_MAX,
		.entries_left = ENTRIES_MAX,
		.err = err,
	};
	kr_auto_fd int dir = kr_path_open(git->dir, O_RDONLY | O_DIRECTORY, err);
	kr_auto_fd int lfs = dir < 0 ? -1 : open_directory(dir, "lfs");
	int result;

	if (dir < 0)
		return -1;
	result = lfs < 0 ? 0 : take_below(&t, open_directory(lfs, "objects"), "");
	kr_close_p(&t.to);
	*out = t.found;
	return result;
}
