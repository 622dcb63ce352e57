/*
 * What sessions leave behind, bounded. Runs beside the start of a sandbox, so nobody waits for it. Works relative to descriptors, without following links, and removes only names that kraft makes.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "backend/container.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/portable.h"
#include "session/facts.h"
#include "session/seatbelt.h"

enum { ID_DIGITS = 16, BEING_MADE_S = 60 };

static bool
is_id(const char *s)
{
	return strlen(s) == ID_DIGITS && strspn(s, "0123456789abcdef") == ID_DIGITS;
}

/* A descriptor of <run_dir>/<kind>, or -1. */
static int
open_below(const char *run_dir, const char *kind, struct kr_arena *arena)
{
	return kr_path_open(kr_arena_printf(arena, "%s/%s", run_dir, kind), O_RDONLY | O_DIRECTORY, NULL);
}

/* True when the session's host is gone: nobody holds the lock, or there never came a session.json. */
static bool
is_over(int sessions_fd, const char *id)
{
	kr_auto_fd int folder = openat(sessions_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	kr_auto_fd int facts =
		folder < 0 ? -1 : openat(folder, "session.json", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;

	if (folder < 0)
		return errno == ENOENT;
	if (facts >= 0)
		return flock(facts, LOCK_SH | LOCK_NB) == 0;
	return fstat(folder, &st) == 0 && time(NULL) - st.st_mtime > BEING_MADE_S;
}

bool
kr_session_is_over(const char *run_dir, const char *id)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	kr_auto_fd int sessions = open_below(run_dir, "sessions", &arena), clients = open_below(run_dir, KR_CONTAINER_CLIENTS, &arena);
	const char *client = kr_container_name(&arena, id);

	if (!is_id(id) || sessions < 0)
		return false;
	if (faccessat(sessions, id, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return clients >= 0 && faccessat(clients, client, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	return is_over(sessions, id);
}

bool
kr_session_left_client(const char *run_dir)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	int fd = open_below(run_dir, KR_CONTAINER_CLIENTS, &arena);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	bool found = false;

	if (!dir) {
		kr_close_p(&fd);
		return false;
	}
	for (const struct dirent *e; !found && (e = readdir(dir));) {
		const char *session = kr_container_session(e->d_name);

		found = session && kr_session_is_over(run_dir, session);
	}
	closedir(dir);
	return found;
}

struct aged {
	char id[ID_DIGITS + 1];
	struct timespec changed;
};

static int
oldest_first(const void *a, const void *b)
{
	const struct aged *x = a, *y = b;

	if (x->changed.tv_sec != y->changed.tv_sec)
		return x->changed.tv_sec < y->changed.tv_sec ? -1 : 1;
	return x->changed.tv_nsec < y->changed.tv_nsec ? -1 : x->changed.tv_nsec > y->changed.tv_nsec;
}

/* Calls each for every name that is a session's id. */
static size_t
each_id(int fd, void (*each)(void *context, const char *id), void *context)
{
	int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = own < 0 ? NULL : fdopendir(own);
	size_t n = 0;

	if (!dir) {
		kr_close_p(&own);
		return 0;
	}
	for (const struct dirent *e; (e = readdir(dir));)
		if (is_id(e->d_name)) {
			n++;
			each(context, e->d_name);
		}
	closedir(dir);
	return n;
}

struct ages {
	int fd;
	struct aged *v;
	size_t n, cap;
};

static void
note_age(void *context, const char *id)
{
	struct ages *ages = context;
	struct stat st;

	if (ages->n == ages->cap || fstatat(ages->fd, id, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	memcpy(ages->v[ages->n].id, id, ID_DIGITS + 1);
	ages->v[ages->n++].changed = kr_mtime(&st);
}

/* The worker of a session writes into its result file, but not into the directory: see OS-MNT-05. */
static void
remove_result(int sessions_fd, int results_fd, const char *id)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	kr_auto_fd int folder = openat(sessions_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), item = -1;
	struct kr_session_seen seen;

	if (folder < 0 || kr_session_facts_read(&arena, folder, &seen, NULL) < 0 || strchr(seen.facts.item, '/'))
		return;
	item = openat(results_fd, seen.facts.item, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (item >= 0)
		(void)unlinkat(item, kr_arena_printf(&arena, "%s.json", id), 0); /* may never have been made */
}

static void
remove_oldest(int sessions_fd, int results_fd, size_t count)
{
	struct ages ages = { .fd = sessions_fd, .v = kr_xcalloc(count, sizeof(*ages.v)), .cap = count };

	each_id(sessions_fd, note_age, &ages);
	if (ages.n)
		qsort(ages.v, ages.n, sizeof(*ages.v), oldest_first);
	for (size_t i = 0; i + KR_SESSION_KEPT_LEAST < ages.n; i++)
		if (is_over(sessions_fd, ages.v[i].id)) {
			remove_result(sessions_fd, results_fd, ages.v[i].id);
			(void)kr_tree_remove_at(sessions_fd, ages.v[i].id);
		}
	free(ages.v);
}

struct channels {
	int fd, sessions_fd;
};

static void
sweep_channel(void *context, const char *id)
{
	struct channels *c = context;

	if (is_over(c->sessions_fd, id))
		(void)kr_tree_remove_at(c->fd, id);
}

/* Of a host that died before it could say what it is: nothing refers to it. */
static void
sweep_nameless(void *context, const char *id)
{
	int fd = *(const int *)context;
	kr_auto_fd int folder = openat(fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (folder >= 0 && faccessat(folder, "session.json", F_OK, AT_SYMLINK_NOFOLLOW) < 0 && is_over(fd, id))
		(void)kr_tree_remove_at(fd, id); /* the next sweep tries again */
}

struct tmpdirs {
	int fd, sessions_fd;
	const char *guest_dir, *run_dir;
};

static void
sweep_tmpdir(void *context, const char *id)
{
	struct tmpdirs *t = context;

	if (is_over(t->sessions_fd, id))
		kr_seatbelt_sweep(t->fd, t->guest_dir, t->run_dir, id);
}

void
kr_session_sweep(const char *run_dir, const char *guest_dir)
{
	KR_CLEANUP(kr_arena_fini) struct kr_arena arena = { 0 };
	kr_auto_fd int sessions = open_below(run_dir, "sessions", &arena),
				   channels = open_below(run_dir, "sn", &arena),
				   results = open_below(run_dir, "results", &arena),
				   tmpdirs = open_below(run_dir, KR_TMPDIRS, &arena);
	size_t count;

	if (sessions < 0)
		return;
	if (channels >= 0)
		each_id(channels, sweep_channel, &(struct channels){ channels, sessions });
	if (tmpdirs >= 0 && guest_dir)
		each_id(tmpdirs, sweep_tmpdir, &(struct tmpdirs){ tmpdirs, sessions, guest_dir, run_dir });
	count = each_id(sessions, sweep_nameless, &sessions);
	if (count > KR_SESSION_KEPT_MOST)
		remove_oldest(sessions, results, count);
}
